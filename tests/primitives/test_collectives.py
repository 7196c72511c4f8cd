"""Collectives give what they give in JAX, for every dtype, for constants, along several axes."""

import jax
import numpy as np
import pytest

import minijax

X = np.arange(6, dtype=np.float32).reshape(3, 2)
CYCLE = [(0, 1), (1, 2), (2, 0)]


def over(lib, f, *args, **options):
    return lib.vmap(f, axis_name="i", **options)(*args)


GRID = np.arange(144, dtype=np.float32).reshape(2, 3, 12, 2)


def over_grid(lib, f):
    return lib.vmap(lib.vmap(f, axis_name="j"), axis_name="i")(GRID)


CALLS = {
    **{f"all_to_all along {names}, from {split} to {to}":
       lambda lib, names=names, split=split, to=to:
       over_grid(lib, lambda x: lib.lax.all_to_all(x, names, split, to, tiled=True))
       for names in (("i", "j"), ("j", "i"), ("i",)) for split, to in ((0, 0), (0, 1))},
    "all_to_all along two axes, untiled": lambda lib: over_grid(
        lib, lambda x: lib.lax.all_to_all(x[:6], ("j", "i"), 0, 1)),
    "pswapaxes of two axes": lambda lib: over_grid(
        lib, lambda x: lib.lax.pswapaxes(x[:6], ("i", "j"), 0)),
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
def test_collectives_give_what_jax_gives(name, beside_jax):
    ours, theirs = beside_jax(CALLS[name])
    for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert (str(a.dtype), a.shape) == (str(b.dtype), b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-6)


DTYPES = ["bool", "int8", "uint8", "int16", "int32", "uint32", "float16", "bfloat16", "float32",
          "complex64"]
REDUCTIONS = ["psum", "pmean", "pmax", "pmin"]


def of_all_dtypes(lib):
    numbers = np.array([[3, 0], [1, 7], [4, 100]])
    return {dtype: lib.numpy.asarray(numbers).astype(dtype) for dtype in DTYPES}


def reduced(lib, op):
    """What a reduction gives, by what it is of."""
    reduce = getattr(lib.lax, op)

    def nested(f, x):
        return lib.vmap(lib.vmap(f, axis_name="j"), axis_name="i")(x)
    trees = of_all_dtypes(lib)
    constants = [True, 2, -7, 1.5, np.float32(2), np.int8(100), np.bool_(True), np.array([1, 2])]
    return {
        "every dtype": over(lib, lambda t: reduce(t, "i"), trees),
        "two axes": nested(lambda t: reduce(t, ("i", "j")), trees),
        "the outer axis": nested(lambda t: reduce(t, "i"), trees),
        "what is not mapped": over(lib, lambda x: reduce({
            k: v[1] for k, v in trees.items()}, "i"), X),
        "an axis of its own": over(lib, lambda x: reduce(
            x, "i" if op == "pmean" else ("i", 0)), X),
        "constants": over(lib, lambda x: [reduce(c, "i") for c in constants], X),
        "constants, two axes": nested(lambda x: [reduce(c, ("i", "j")) for c in constants], X),
        "constants times small integers": over(
            lib, lambda x: [reduce(c, "i") * x for c in constants], X.astype(np.int8)),
        "in a program": over(lib, lib.jit(lambda x: reduce(x > 2, "i") + reduce(1, "i") * x), X),
    }


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions_along_an_axis_are_jaxs_for_every_kind_of_value(op):
    ours, theirs = reduced(minijax, op), jax.jit(lambda: reduced(jax, op))()
    for name, values in ours.items():
        for a, b in zip(minijax.tree.leaves(values), jax.tree.leaves(theirs[name]), strict=True):
            kinds = [(str(x.dtype), x.shape, x.weak_type) if hasattr(x, "weak_type") else type(x)
                     for x in (a, b)]
            assert kinds[0] == kinds[1], name
            np.testing.assert_allclose(*(np.asarray(x, np.complex64) for x in (a, b)), rtol=1e-2,
                                       err_msg=name)


@pytest.mark.parametrize("op", REDUCTIONS)
def test_what_is_of_weak_type_stays_so(op):
    def weak(lib):
        return [x.weak_type for x in over(lib, lambda x: [
            getattr(lib.lax, op)(lib.lax.axis_index("i") * 2.0, "i"),
            getattr(lib.lax, op)(lib.numpy.asarray(2), "i"), getattr(lib.lax, op)(x, "i")], X)]
    assert weak(minijax) == weak(jax) == [True, True, False]


def test_the_sum_of_a_number_is_a_number(beside_jax):
    def seen(lib):
        found = []

        def f(x):
            found.extend([lib.lax.psum(1, "i"), lib.lax.psum(np.int8(100), "i"),
                          lib.lax.pmean(3, "i"), lib.lax.axis_size(("i",))])
            return lib.numpy.zeros(lib.lax.psum(1, "i")) + x
        out = over(lib, lib.jit(f), X[:, :1])
        return [(type(x), x) for x in found], out.shape
    ours, theirs = beside_jax(seen)
    assert ours == theirs


def test_several_axes_have_one_index():
    def grid(lib):
        return over(lib, lambda x: lib.vmap(
            lambda y: lib.lax.axis_index(("i", "j")) * 10 + lib.lax.axis_index("j"),
            axis_name="j")(x), X)
    np.testing.assert_array_equal(grid(minijax), grid(jax))


BAD = {
    "unbound sum": lambda lib: over(lib, lambda x: lib.lax.psum(x, "q"), X),
    "unbound mean": lambda lib: lib.jit(lambda x: lib.lax.pmean(x, "q"))(X),
    "unbound extreme": lambda lib: over(lib, lambda x: lib.lax.pmax(x, ("i", "q")), X),
    "unbound number": lambda lib: lib.lax.psum(1, "q"),
    "unbound index": lambda lib: lib.lax.axis_index("q"),
    "unbound size": lambda lib: lib.lax.axis_size("q"),
    "no array": lambda lib: over(lib, lambda x: lib.lax.psum("a", "i"), X),
    "groups": lambda lib: over(lib, lambda x: lib.lax.psum(
        x, "i", axis_index_groups=[[0], [1, 2]]), X),
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


@pytest.mark.parametrize("op", ["psum", "pmean", "pmax"])
@pytest.mark.parametrize("shape", [(), (3,), (3, 1)])
def test_what_no_example_owns_is_as_weak_as_in_jax(op, shape, beside_jax):
    def weak(lib):
        number = lib.numpy.full(shape, 2.0)
        return lib.vmap(lambda x: getattr(lib.lax, op)(number, "i"), axis_name="i")(X).weak_type
    ours, theirs = beside_jax(weak)
    assert ours == theirs
