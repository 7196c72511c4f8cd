"""all_gather and ppermute give what they give in JAX; sums along an axis: `test_vmap.py`."""

import jax
import numpy as np
import pytest

import minijax

X = np.arange(6, dtype=np.float32).reshape(3, 2)
CYCLE = [(0, 1), (1, 2), (2, 0)]


def over(lib, f, *args, **options):
    return lib.vmap(f, axis_name="i", **options)(*args)


CALLS = {
    "all_gather": lambda lib: over(lib, lambda x: lib.lax.all_gather(x, "i"), X),
    "all_gather, last": lambda lib: over(lib, lambda x: lib.lax.all_gather(x, "i", axis=-1), X),
    "all_gather, tiled": lambda lib: over(
        lib, lambda x: lib.lax.all_gather(x, "i", tiled=True), X),
    "all_gather, tiled, inside": lambda lib: over(
        lib, lambda x: lib.lax.all_gather(x, "i", axis=1, tiled=True), X.reshape(3, 1, 2)),
    "all_gather of a tree": lambda lib: over(
        lib, lambda x: lib.lax.all_gather({"x": x, "y": (x[0], 1.0)}, "i"), X),
    "all_gather under another axis": lambda lib: over(lib, lib.vmap(
        lambda x: lib.lax.all_gather(x, "i", axis=1), in_axes=1, out_axes=1),
        np.arange(24.0, dtype=np.float32).reshape(3, 2, 4)),
    "all_gather of all axes": lambda lib: over(lib, lambda x: lib.vmap(
        lambda y: lib.lax.all_gather(lib.lax.all_gather(y, "i"), "j"), axis_name="j")(x), X),
    "the slope of all_gather": lambda lib: over(lib, lib.grad(
        lambda x: (lib.lax.all_gather(x, "i") * X).sum()), X),
    "the slope around all_gather": lambda lib: lib.grad(lambda x: over(
        lib, lambda r: (lib.lax.all_gather(r, "i") * X * r).sum(), x).sum())(X),
    "the direction through all_gather": lambda lib: lib.jvp(
        lambda x: over(lib, lambda r: lib.lax.all_gather(r * r, "i"), x), (X,), (X,)),
    "ppermute": lambda lib: over(lib, lambda x: lib.lax.ppermute(x, "i", CYCLE), X),
    "ppermute of truth values": lambda lib: over(
        lib, lambda x: lib.lax.ppermute(x > 2, "i", CYCLE), X),
    "ppermute of a tree": lambda lib: over(
        lib, lambda x: lib.lax.ppermute([x, x[1]], "i", CYCLE), X),
    "ppermute, compiled": lambda lib: lib.jit(lambda x: over(
        lib, lambda r: lib.lax.ppermute(lib.lax.all_gather(r, "i"), "i", CYCLE), x))(X),
    "the slope of ppermute": lambda lib: over(lib, lib.grad(
        lambda x: (lib.lax.ppermute(x, "i", CYCLE) * x).sum()), X),
}


@pytest.mark.parametrize("name", CALLS)
def test_collectives_give_what_jax_gives(name):
    ours, theirs = CALLS[name](minijax), CALLS[name](jax)
    for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert (str(a.dtype), a.shape) == (str(b.dtype), b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-6)


BAD = {
    "unbound": lambda lib: lib.lax.all_gather(X, "i"),
    "no such axis": lambda lib: over(lib, lambda x: lib.lax.all_gather(x, "i", axis=3), X),
    "a number has no axis": lambda lib: over(
        lib, lambda x: lib.lax.all_gather(x[0], "i", tiled=True), X),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_jaxs_words(name, refused_alike):
    refused_alike(BAD[name])


def test_where_nothing_is_sent_there_are_zeros():
    def forward(x):
        return minijax.lax.ppermute(x, "i", [(0, 1), (1, 2)])
    np.testing.assert_array_equal(over(minijax, forward, X + 1),
                                  np.concatenate([np.zeros((1, 2)), X[:2] + 1]))
    slope = over(minijax, minijax.grad(lambda x: (forward(x) * x).sum()), X)
    after, before = np.vstack([X[1:], [[0, 0]]]), np.vstack([[[0, 0]], X[:2]])
    np.testing.assert_array_equal(slope, after + before)


@pytest.mark.parametrize("perm, words", [
    ([(0, 1), (0, 2)], "must be unique"), ([(0, 1), (2, 1)], "must be unique"),
    ([(0, 3)], "between 0 and 2"), ([(-1, 0)], "between 0 and 2")])
def test_a_permutation_that_is_none_is_refused(perm, words):
    for lib, kind in ((minijax, ValueError), (jax, AssertionError)):  # JAX: of its own, no words
        with pytest.raises(kind, match=words if lib is minijax else None):
            over(lib, lambda x, lib=lib: lib.lax.ppermute(x, "i", perm), X)
