"""vmap, make_jaxpr, eval_shape and devices as users call them."""

import sys
import types
from collections.abc import Sized

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.compiler.targets import driver

X = np.arange(6, dtype=np.float32).reshape(3, 2)

CALLS = {
    "axes": lambda lib: lib.vmap(lambda x, y: x + y, in_axes=(0, 1))(X, X.T),
    "negative axes": lambda lib: lib.vmap(lambda x: x * 2, in_axes=-1, out_axes=-1)(X),
    "an axis for each leaf": lambda lib: lib.vmap(
        lambda t: t["a"] * t["b"], in_axes=({"a": 0, "b": None},))({"a": X, "b": 2.0}),
    "a list of axes": lambda lib: lib.vmap(lambda x, y: x * y, in_axes=[0, None])(X, 2.0),
    "keywords are mapped": lambda lib: lib.vmap(lambda *, k: k.sum())(k=X),
    "a result that is not mapped": lambda lib: lib.vmap(
        lambda x: (x, 1.0), out_axes=(0, None))(X),
    "a constant result is repeated": lambda lib: lib.vmap(lambda x: 1.0)(X),
    "axis_size alone": lambda lib: lib.vmap(lambda: 1.0, axis_size=3)(),
    "nested": lambda lib: lib.vmap(lib.vmap(lambda x: x * 2, in_axes=0), in_axes=1)(X),
}


@pytest.mark.parametrize("name", CALLS)
def test_vmap_gives_what_jax_gives(name):
    ours, theirs = CALLS[name](minijax), CALLS[name](jax)
    for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.shape(a) == np.shape(b)


BAD = {
    "no axes": lambda lib: lib.vmap(lambda x: x, in_axes=None)(X),
    "axes that are none": lambda lib: lib.vmap(lambda x: x, in_axes="a"),
    "too many axes": lambda lib: lib.vmap(lambda x: x, in_axes=(0, 0))(X),
    "an axis that is not there": lambda lib: lib.vmap(lambda x: x, in_axes=2)(X),
    "a scalar": lambda lib: lib.vmap(lambda x: x)(1.0),
    "a string": lambda lib: lib.vmap(lambda x: x)("a"),
    "sizes differ": lambda lib: lib.vmap(lambda x, y: x)(X, X[:2]),
    "sizes differ in a tree": lambda lib: lib.vmap(lambda x, y: x)(X, {"a": X, "b": X[:2]}),
    "axis_size differs": lambda lib: lib.vmap(lambda x: x, axis_size=4)(X),
    "no prefix": lambda lib: lib.vmap(lambda x, y: x, in_axes=(0, {"a": 0}))(X, {"a": X, "b": X}),
    "out axis that is not there": lambda lib: lib.vmap(lambda x: x[0], out_axes=3)(X),
    "mapped result called unmapped": lambda lib: lib.vmap(lambda x: x, out_axes=None)(X),
    "mapped results called unmapped": lambda lib: lib.vmap(
        lambda x: (1, {"a": x}), out_axes=None)(X),
    "a mapped result of a named axis": lambda lib: lib.vmap(
        lambda x: x, out_axes=None, axis_name="i")(X),
    **{f"{n} of jit, {what}": lambda lib, n=n, names=names: lib.jit(takes, **{n: names})
       for n in ("static_argnames", "donate_argnames") for what, names in {
           "by position only": ("a", "c"), "the rest": ("args", "c"),
           "not there": ("z",)}.items()},
    "names of a function without a signature": lambda lib: lib.jit(
        type("F", (), {"__signature__": 3, "__call__": lambda self: 1,
                       "__repr__": lambda self: "f"})(), donate_argnames="a"),
    "a platform": lambda lib: lib.device_put(X, "cpu"),
    "to alias and to donate": lambda lib: lib.device_put(X, may_alias=True, donate=True),
}


def takes(a, /, b, c, *args):
    """Sums nothing."""


NAMES = {
    "make_jaxpr": lambda lib: [getattr(lib.make_jaxpr(takes), name) for name in (
        "__name__", "__qualname__", "__module__")],
    "jit": lambda lib: repr(lib.jit(type("F", (), {
        "__call__": lambda self: 1, "__repr__": lambda self: 1 / 0})())),
    "docstrings": lambda lib: [
        transform(fun, *how).__doc__ for fun in (takes, lambda x: x) for transform, *how in (
            [lib.vmap], [lib.grad], [lib.grad, 1], [lib.value_and_grad, (0, 1)], [lib.jacfwd],
            [lib.jacrev, -1], [lib.hessian])],
    "isscalar": lambda lib: lib.numpy.isscalar(type("A", (), {
        "__jax_array__": lambda self: lib.numpy.float32(1)})()),
    "zeros of float0": lambda lib: [repr(f().shape) for f in map(lib.jit, (
        lambda: lib.numpy.zeros((), lib.dtypes.float0), lambda: lib.numpy.zeros_like(
            np.zeros(2, lib.dtypes.float0))))],
    "float0 in NumPy": lambda lib: str(np.asarray(lib.numpy.zeros(2, lib.dtypes.float0)).dtype),
    "float0": lambda lib: [bool(np.all(op)) for x in [lib.numpy.zeros(2, lib.dtypes.float0)]
                           for op in (x == np.zeros(2, lib.dtypes.float0), x != x)],
    "linear_transpose": lambda lib: [np.asarray(x) for x in lib.jit(lambda f: f(X))(
        lib.jit(lambda x: lib.linear_transpose(lambda y: y * x, types.SimpleNamespace(
            shape=X.shape, dtype=X.dtype)))(2.0))],
    "device_put": lambda lib: [(y is x, lib.device_put(x, may_alias=False) is x) for s in [
        lib.sharding.NamedSharding(lib.make_mesh((1,), ("x",)), lib.sharding.PartitionSpec("x"))]
        for x in [lib.device_put(X, s)] for y in [lib.device_put(x, s)]],
}


@pytest.mark.parametrize("name", NAMES)
def test_what_functions_are_called_and_return_is_as_in_jax(name):
    np.testing.assert_equal(NAMES[name](minijax), NAMES[name](jax))


def test_copy_to_host_async_asks_others_that_can():
    class Other:
        copied = 0

        def copy_to_host_async(self):
            self.copied += 1
    other = Other()
    assert minijax.copy_to_host_async([other, 1, X])[0].copied == 1


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_jaxs_words(name, refused_alike):
    refused_alike(BAD[name])


def test_make_jaxpr_prints_what_jax_prints():
    def f(lib):
        return lib.make_jaxpr(lib.grad(lambda x: x * x * lib.lax.sin(x)))(1.0)
    assert str(f(minijax)) == str(f(jax))


def test_make_jaxpr_takes_static_arguments_types_and_axes():
    f = lambda x, n: x * n  # noqa: E731
    assert "2.0" in str(minijax.make_jaxpr(f, static_argnums=1)(1.0, 2))
    shape = minijax.ShapeDtypeStruct((2,), np.float32)
    closed, out = minijax.make_jaxpr(lambda x: {"y": x}, return_shape=True)(shape)
    assert out["y"] == shape and closed.in_avals[0].shape == (2,)
    env = [("i", 4)]
    assert "psum" in str(minijax.make_jaxpr(lambda x: minijax.lax.psum(x, "i"), axis_env=env)(1.0))


def test_a_type_has_a_length_and_is_made_like_a_value():
    for lib in (minijax, jax):
        struct = lib.ShapeDtypeStruct
        assert len(struct((3, 2), np.float32)) == 3 and isinstance(struct((1,), "int8"), Sized)
        with pytest.raises(TypeError, match="unsized object"):
            len(struct((), np.float32))
        with pytest.raises(ValueError, match="dtype must be specified"):
            struct((), None)
        for x in (1.5, np.int8([1]), lib.numpy.ones(2), lib.random.key(0)):
            like = struct.like(x)
            assert (like.shape, str(like.dtype), like.weak_type, like.sharding) == (
                np.shape(x), str(lib.typeof(x).dtype), isinstance(x, float), None)
        traced = []
        lib.jit(lambda x, s=struct, traced=traced: traced.append(s.like(x)))(np.ones(2, np.int8))
        assert traced == [struct((2,), np.int8)]


def run(lib, closed, *args):
    """A program of either library on its arguments."""
    if lib is minijax:
        from minijax.core.jaxpr import eval_jaxpr
    else:
        from jax.core import eval_jaxpr
    return eval_jaxpr(closed.jaxpr, closed.consts, *args)[0]


# What is written down inside of a transformation, from a function of `y` that uses its `x` too.
CAPTURING = {
    "itself": lambda lib, x: lambda y: y * x + 1,
    "in a jit": lambda lib, x: lambda y: lib.jit(lambda z: z * x)(y),
    "in a loop": lambda lib, x: lambda y: lib.lax.fori_loop(0, 3, lambda i, c: c * x, y),
    "in a derivative": lambda lib, x: lib.grad(lambda y: y * y * x),
    "beside constants": lambda lib, x: lambda y: (y * X * x * (X + 1)).sum() * x,
    "of another program": lambda lib, x: lambda y: run(
        lib, lib.make_jaxpr(lambda z: z * x * y)(1.0), 3.0),
}
AROUND = {
    "grad": lambda lib, f: lib.grad(f)(5.0),
    "grad of grad": lambda lib, f: lib.grad(lib.grad(f))(5.0),
    "jvp": lambda lib, f: lib.jvp(f, (5.0,), (1.0,)),
    "vmap": lambda lib, f: lib.vmap(f)(X[:, 0]),
    "jit": lambda lib, f: lib.jit(f)(5.0),
    "jit of vmap of grad": lambda lib, f: lib.jit(lib.vmap(lib.grad(f)))(X[:, 0]),
    "make_jaxpr": lambda lib, f: run(lib, lib.make_jaxpr(f)(2.0), 5.0),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", CAPTURING)
def test_a_program_written_down_inside_a_transformation_keeps_what_it_captured(name, around):
    def result(lib):
        texts = []

        def f(x):
            closed = lib.make_jaxpr(CAPTURING[name](lib, x))(2.0)
            texts.append((len(closed.in_avals), len(closed.consts), len(closed.jaxpr.constvars)))
            return run(lib, closed, 3.0)
        return AROUND[around](lib, f), texts[0]
    (ours, our_counts), (theirs, their_counts) = result(minijax), result(jax)
    assert our_counts == their_counts
    for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_eval_shape_computes_nothing():
    def f(x):
        assert not isinstance(x, np.ndarray)
        return {"mean": x.mean(), "rows": x[:2].astype(jnp.bfloat16)}
    ours = minijax.eval_shape(f, X)
    assert ours["mean"].shape == () and ours["rows"].dtype == jnp.bfloat16
    assert repr(minijax.eval_shape(lambda x: x, X)) == repr(jax.eval_shape(lambda x: x, X))


def test_there_is_one_device_and_everything_is_on_it():
    (device,) = minijax.devices()
    assert device.platform == minijax.default_backend() == "cpu"
    x = minijax.device_put(X)
    assert isinstance(x, minijax.Array) and minijax.block_until_ready(x) is x
    np.testing.assert_array_equal(minijax.device_get(x), X)


def test_device_get_leaves_keys_and_tracers_as_they_are():
    key = minijax.random.key(0)
    assert minijax.device_get({"k": key, "n": None, "s": "a"}) == {"k": key, "n": None, "s": "a"}
    for lib in (minijax, jax):
        assert lib.jit(lambda x, lib=lib: lib.device_get(x) + 1)(1.) == 2
        assert lib.grad(lambda x, lib=lib: lib.device_get(x) * 2)(1.) == 2


@pytest.mark.parametrize("backend", ["gpu", "cuda"])
def test_a_device_that_is_not_there_is_refused_in_jaxs_words_with_what_would_help(
        monkeypatch, backend):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    driver.bindings.cache_clear()
    with pytest.raises(RuntimeError) as ours:
        minijax.devices(backend)
    with pytest.raises(RuntimeError) as theirs:
        jax.devices(backend)
    assert str(ours.value) == str(theirs.value)
    cure = ours.value.__notes__[0]
    assert "A GPU needs NVIDIA's bindings" in cure and "pip install" in cure


def test_jit_is_disabled_and_enabled_again():
    for lib in (minijax, jax):
        seen = []
        f = lib.jit(lambda x, seen=seen, kind=lib.core.Tracer: seen.append(isinstance(x, kind)))
        with lib.disable_jit(disable=True):
            f(1.0)
            with lib.disable_jit(False):
                f(1.0)
        assert seen == [False, True]


@pytest.mark.parametrize("program", [
    "jax.eval_shape(lambda x: x + 1, jax.ShapeDtypeStruct((2,), dtype))",
    "jax.jit(lambda x: x).lower(jax.ShapeDtypeStruct((2,), dtype)).in_avals",
    "jax.make_jaxpr(lambda x: x)(jax.ShapeDtypeStruct((2,), dtype))",
    "jax.numpy.zeros_like(jax.ShapeDtypeStruct((2,), dtype))",
    "jax.linear_transpose(lambda x: 2 * x, jax.ShapeDtypeStruct((2,), dtype))("
    "jax.numpy.ones(2, dtype))",
    "jax.ShapeDtypeStruct((2,), dtype)"])
@pytest.mark.parametrize("dtype", [int, float, "uint8", "bfloat16"])
def test_the_type_of_a_struct_with_64_bits_has_32(program, dtype):
    ours, theirs = (repr(eval(program, {"jax": lib, "np": np, "dtype": dtype}))
                    for lib in (minijax, jax))
    assert ours == theirs
