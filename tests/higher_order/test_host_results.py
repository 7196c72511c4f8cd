"""Python functions whose results programs go on with, beside JAX."""

import jax
import jax.experimental
import numpy as np
import pytest

import minijax
import minijax.experimental

X = np.float32([1, 2, 3])


def both(program):
    found, wanted = [], []
    for lib, results in ((minijax, found), (jax, wanted)):
        try:
            results += [np.asarray(x) for x in jax.tree.leaves(program(lib))]
        except (ValueError, NotImplementedError) as error:
            results += [type(error), str(error)]
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        if isinstance(other, np.ndarray):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        else:
            assert one == other


def floats(lib, *shape):
    return lib.ShapeDtypeStruct(shape, np.float32)


@pytest.mark.parametrize("program", [
    lambda lib: lib.pure_callback(np.sin, floats(lib, 3), X),
    lambda lib: lib.jit(lambda x: 2 * lib.pure_callback(np.sin, floats(lib, 3), x))(X),
    lambda lib: lib.jit(lambda x: lib.pure_callback(
        lambda a, *, b: {"sum": np.asarray(a + b), "one": np.asarray(a)[:1]},
        {"sum": floats(lib, 3), "one": floats(lib, 1)}, x, b=x))(X),
    lambda lib: lib.lax.scan(lambda c, x: (lib.pure_callback(
        lambda a: np.asarray(a + 1), floats(lib), c), c), np.float32(0), X),
    lambda lib: lib.jvp(lambda x: lib.pure_callback(np.sin, floats(lib, 3), x), (X,), (X,)),
    lambda lib: lib.vmap(lambda x: lib.pure_callback(np.sin, floats(lib), x))(X),
    lambda lib: lib.pure_callback(np.sin, floats(lib, 3), X, vmap_method="some"),
    lambda lib: lib.pure_callback(np.sin, lib.ShapeDtypeStruct((3,), np.float64), X),
    lambda lib: lib.experimental.io_callback(lambda x: np.asarray(2 * x), floats(lib, 3), X),
    lambda lib: lib.vmap(lambda x: lib.experimental.io_callback(
        lambda x: np.asarray(2 * x), floats(lib), x))(X),
    lambda lib: lib.vmap(lambda x: lib.experimental.io_callback(
        print, None, x, ordered=True))(X),
    lambda lib: lib.grad(lambda x: lib.experimental.io_callback(
        np.sin, floats(lib), x))(1.)])
def test_results_and_errors_are_those_of_jax(program):
    both(program)


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims",
                                    "broadcast_all", "legacy_vectorized"])
def test_a_batch_is_given_to_python_as_in_jax(method):
    seen = {minijax: [], jax: []}

    def program(lib):
        def add(a, b):
            seen[lib].append((a.shape, b.shape))
            return np.asarray(a + b)
        return lib.jit(lib.vmap(lambda x: lib.pure_callback(
            add, floats(lib), x, np.float32(1), vmap_method=method)))(X)
    both(program)
    assert seen[minijax] == seen[jax]


@pytest.mark.parametrize("program", [
    lambda lib, call, x: lib.lax.cond(x < 0, lambda: call(0), lambda: x),
    lambda lib, call, x: lib.lax.cond(x > 0, lambda: call(0), lambda: x),
    lambda lib, call, x: lib.lax.switch(np.int32(2), [lambda: call(0), lambda: call(1), lambda: x]),
    lambda lib, call, x: lib.lax.while_loop(lambda c: c < 0, lambda c: c + call(0), x),
    lambda lib, call, x: lib.lax.while_loop(lambda c: c < 4, lambda c: c + call(1), x),
    lambda lib, call, x: lib.lax.fori_loop(0, 0, lambda i, c: c + call(x), x)])
def test_python_is_called_where_its_branch_is_taken_alone(program):
    seen = {minijax: [], jax: []}

    def jitted(lib):
        def call(x):
            return lib.pure_callback(
                lambda a: np.float32(seen[lib].append(float(a)) or 1), floats(lib),
                lib.numpy.float32(x))
        return lib.jit(lambda x: program(lib, call, x))(1.)
    both(jitted)
    assert seen[minijax] == seen[jax]


def test_calls_with_effects_are_made_each_time_and_in_order():
    seen = []

    @minijax.jit
    def f(x):
        minijax.experimental.io_callback(lambda v: seen.append(float(v)), None, x, ordered=True)
        minijax.experimental.io_callback(lambda v: seen.append(float(v)), None, x + 1)
        return x
    f(1.)
    f(5.)
    minijax.effects_barrier()
    assert seen == [1, 2, 5, 6]


@pytest.mark.parametrize("wrong", [lambda x: np.zeros(2, np.float32), lambda x: (x, x),
                                   lambda x: np.zeros(3, complex)])
def test_what_python_returns_must_be_what_was_said(wrong):
    with pytest.raises(RuntimeError, match="Incorrect output|Mismatched result"):
        minijax.pure_callback(wrong, floats(minijax, 3), X)
