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
        except Exception as error:
            results += [type(error), str(error)]
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        if isinstance(other, np.ndarray):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        else:
            assert one == other


def floats(lib, *shape):
    return lib.ShapeDtypeStruct(shape, np.float32)


def io(lib):
    return lambda x: lib.experimental.io_callback(lambda x: x, floats(lib), x)


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
        np.sin, floats(lib), x))(1.),
    lambda lib: lib.pmap(lambda x: lib.pure_callback(np.sin, floats(lib, 3), x))(X[None]),
    lambda lib: lib.vmap(lambda x: lib.lax.cond(x > 0, io(lib), io(lib), x))(X),
    lambda lib: lib.vmap(lambda x: lib.lax.while_loop(lambda x: x < 1, io(lib), x))(X),
    *(lambda lib, name=name: lib.linear_transpose(
        lambda x: getattr(lib, name, lib.experimental.io_callback)(np.sin, floats(lib, 3), x),
        X)(X) for name in ("pure_callback", "io_callback"))])
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


ONE, THREE, INTEGER = ((), np.float32), ((3,), np.float32), ((), np.int32)
RETURNED = [
    (np.ones(3, np.float32), ONE), (np.float64(1), ONE), (np.int32(1), ONE), (1, ONE), (1.0, ONE),
    (np.complex64(1), ONE), (True, ONE), ((1.0, 2.0), ONE), (None, ONE), ([1.0], ONE),
    ({"b": np.float32(1)}, {"a": ONE}), ([np.float32(1)], [ONE]), ("a", ONE), (object(), ONE),
    ([[1], [1, 2]], ONE), (1.5, INTEGER), (np.ones((1, 3), np.float32), THREE), (np.ones(3), THREE)]


def last_line(lib, call):
    """What a call gives; of an error its class, and the first and the last of JAX's lines."""
    try:
        return lib.tree.map(lambda x: (x.shape, str(x.dtype), float(x.sum())),
                            lib.block_until_ready(call()))
    except Exception as error:
        lines = str(error).split("\nminijax:")[0].split("\n")
        return type(error).__name__, lines[0], lines[-1]


@pytest.mark.parametrize("place", ["eager", "jit", "scan", "vmap"])
@pytest.mark.parametrize("name", ["pure_callback", "io_callback"])
def test_what_python_returns_or_raises_is_told_as_in_jax(name, place):
    def placed(lib, call):
        return {"eager": lambda: call(np.float32(1)), "jit": lambda: lib.jit(call)(1.0),
                "scan": lambda: lib.lax.map(call, X), "vmap": lambda: lib.vmap(call)(X)}[place]

    def outcome(lib, function, types):
        structs = lib.tree.map(lambda one: lib.ShapeDtypeStruct(*one), types,
                               is_leaf=lambda one: type(one) is tuple)
        calling = getattr(lib, name, None) or getattr(lib.experimental, name)
        options = {"vmap_method": "sequential"} if name == "pure_callback" else {}
        return last_line(lib, placed(lib, lambda x: calling(function, structs, x, **options)))

    def fails(x):
        raise KeyError("boom")
    table = RETURNED if place == "eager" else RETURNED[:1]  # the others come by the same way
    for function, types in [(fails, ONE), (7, ONE), *(
            (lambda x, result=result: result, types) for result, types in table)]:
        ours, theirs = (outcome(lib, function, types) for lib in (minijax, jax))
        assert ours == theirs


def test_an_error_in_python_names_the_users_lines_and_is_the_cause():
    def fails(x):
        raise KeyError("boom")
    call = lambda x: minijax.pure_callback(fails, floats(minijax), x)  # noqa: E731
    for f in (call, minijax.jit(call)):
        with pytest.raises(minijax.errors.JaxRuntimeError) as caught:
            f(1.0)
        said = str(caught.value)
        assert f'File "{__file__}", line ' in said and ", in fails" in said
        assert type(caught.value.__cause__) is KeyError


@pytest.mark.parametrize("calling", [
    lambda lib: lib.pure_callback(len, floats(lib), "a"),
    lambda lib: lib.experimental.io_callback(len, floats(lib), "a")])
def test_what_is_no_array_is_refused_where_it_is_passed_on(calling):
    ours, theirs = (last_line(lib, lambda lib=lib: calling(lib)) for lib in (minijax, jax))
    assert ours == theirs


@pytest.mark.parametrize("program", [
    lambda lib, call, k: call(k[0]), lambda lib, call, k: lib.jit(call)(k[0]),
    lambda lib, call, k: lib.jit(call)(k), lambda lib, call, k: lib.vmap(call)(k),
    lambda lib, call, k: lib.lax.map(call, k)])
@pytest.mark.parametrize("method", [None, "sequential", "expand_dims", "broadcast_all"])
def test_keys_come_to_python_as_their_words(program, method):
    seen = {minijax: [], jax: []}

    def run(lib):
        def draw(k):
            seen[lib].append((type(k).__name__, str(k.dtype), k.shape))
            return np.asarray(k).sum(-1)

        def call(k):
            struct = lib.ShapeDtypeStruct(k.shape, np.uint32)
            if method is None:
                return lib.experimental.io_callback(draw, struct, k)
            return lib.pure_callback(draw, struct, k, vmap_method=method)
        return program(lib, call, lib.random.split(lib.random.key(0), 3))
    both(run)
    assert seen[minijax] == seen[jax]


def test_what_happens_once_is_not_computed_again():
    with pytest.raises(NotImplementedError, match="Effects not supported in partial-eval"):
        minijax.grad(minijax.checkpoint(lambda x: io(minijax)(2.0) * x))(1.0)


def test_the_log_names_the_function_whose_callback_fails(caplog):
    with pytest.raises(Exception, match="Ooops"):
        minijax.jit(lambda x: minijax.pure_callback(lambda x: int("Ooops"), floats(minijax), x))(1.)
    assert "jax.pure_callback failed" in caplog.text and "Traceback" in caplog.text
