"""Methods and properties of arrays and tracers agree with JAX."""

import inspect

import pytest

import minijax as jax
from minijax import core

METHODS = ("sum prod mean max min argmax argmin any all std var ptp cumsum cumprod ravel flatten "
           "squeeze transpose conj conjugate round argsort sort nonzero copy tolist diagonal trace "
           "tobytes").split()


@pytest.mark.parametrize("name", METHODS)
def test_a_method_without_arguments_agrees_with_jax(agrees_with_jax, name):
    agrees_with_jax(f"f.{name}()", rtol=1e-5)
    agrees_with_jax(f"i.{name}()", rtol=1e-5)


@pytest.mark.parametrize("expression", [
    "f.sum(0)", "f.sum(axis=1, keepdims=True)", "f.mean(1)", "f.max(axis=0)", "f.std(ddof=1)",
    "f.astype(int)", "f.astype('bfloat16')", "i.astype(bool)", "f.astype(jnp.uint8)",
    "b.astype(float)", "c.astype(float)", "f.astype(complex)",
    "jnp.arange(254.0, 258.0).astype('uint8')",
    "n.astype(int)", "f.reshape(3, 2)", "f.reshape((3, 2))", "f.reshape(-1)", "f.reshape(6, 1)",
    "f.reshape(3, -1, order='F')", "t.transpose(1, 0, 2)", "t.transpose((1, 0, 2))",
    "t.transpose(None)", "t.swapaxes(0, 1)", "f.dot(v)", "f.clip(0, 1)", "f.clip(max=1)",
    "f.take(k)", "f.take(k, axis=1)", "v.repeat(2)", "f.round(1)", "w.searchsorted(3)", "f.T",
    "t.mT", "c.real", "c.imag", "f.real", "f.imag", "f.nbytes", "h.itemsize", "f.ndim", "f.size",
    "f.shape", "f.dtype", "s.weak_type", "f.item(2)", "f.item(0, 1)", "f.item()", "s.item()",
    "b[0, 0].item()", "f.view('int32')", "i.view('float32')", "u.view('int8')",
    "p[:2].view('int16')",
    "w.view('uint8')", "b.view('uint8')", "f.argmax(1)", "f.cumsum(1)", "f.block_until_ready()",
    "f.copy_to_host_async()", "f.is_deleted()", "f.at[0].set(1)", "f.at[0, 1].add(2.0)",
    "jax.jit(lambda x: x.sum(0))(f)", "jax.jit(lambda x: x.reshape(-1).T.mean())(f)",
    "jax.jit(lambda x: x.astype(int))(f)", "jax.vmap(lambda x: x.max())(f)",
    "jax.grad(lambda x: x.std())(f)", "f.reshape(4)", "f.sum(axis=3)", "f.astype('U1')",
    "f.squeeze(0)", "str(f.devices())", "repr(f.device)", "repr(f.sharding)",
    "f.is_fully_addressable", "f.to_device(f.device)", "f.sum(dtype=int)", "f.view('int64')",
])
def test_methods_and_properties_agree_with_jax(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-5)


def test_methods_say_what_they_do():
    import minijax.numpy as jnp

    assert jnp.ndarray.sum.__doc__.startswith("The sum")
    assert "axis" in str(__import__("inspect").signature(jnp.ndarray.sum))


def subclasses(kind):
    return [kind, *(deep for direct in kind.__subclasses__() for deep in subclasses(direct))]


def test_no_tracer_hides_a_method_behind_an_attribute_of_its_own():
    """`x.var()` and `x.trace()` failed under jit: a tracer had its variable and trace there."""
    methods = {name for name, value in vars(core.Array).items() if inspect.isfunction(value)}
    assert "var" in methods
    for kind in subclasses(core.Tracer):
        hidden = {n for n in vars(kind) if n in methods and not n.startswith("_")}
        assert not hidden, kind
    assert jax.jit(lambda x: x.var() + x.trace())(jax.numpy.ones((2, 2))) == 2
