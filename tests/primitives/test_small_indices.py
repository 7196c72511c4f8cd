"""No rule needs NumPy's indices to have 64 bits: in a browser they have 32."""

from types import SimpleNamespace

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.core import Primitive
from minijax.primitives import gather_scatter, joining, sort

PRIMITIVES = [value for module in (gather_scatter, joining, sort) for value in vars(module).values()
              if isinstance(value, Primitive)
              and getattr(value.impl, "__module__", "") == module.__name__]


class OnlyIntp(np.ndarray):
    """An array with `take` and `put` as where `intp` has 32 bits, which int64 does not cast to."""

    def take(self, indices, *args, **kwargs):
        return super().take(accepted(indices), *args, **kwargs)

    def put(self, indices, *args, **kwargs):
        return super().put(accepted(indices), *args, **kwargs)


def accepted(indices):
    """Indices as NumPy casts them there: safely or not at all."""
    dtype = np.asarray(indices).dtype
    if dtype.itemsize > 4 and isinstance(indices, np.ndarray):
        raise TypeError(f"Cannot cast array data from {dtype!r} to dtype('int32') according to "
                        "the rule 'safe'")
    return indices


class SmallNumPy(SimpleNamespace):
    """NumPy, but for what it is given."""

    def __getattr__(self, name):
        return getattr(np, name)


def small(monkeypatch, *modules):
    """Give modules a NumPy whose `intp` and default integer have 32 bits."""
    def array(x, *args, **kwargs):
        return np.array(x, *args, subok=True, **kwargs)

    def arange(*args, dtype=np.int32):
        return np.arange(*args, dtype=dtype)

    def zeros(shape, dtype=float, **kwargs):
        return np.zeros(shape, np.int32 if dtype is int else dtype, **kwargs)

    def prod(x, *args, dtype=None, **kwargs):
        return np.prod(x, *args, dtype=np.int32 if dtype is int else dtype, **kwargs)
    for module in modules:
        monkeypatch.setattr(module, "np", SmallNumPy(
            intp=np.dtype(np.int32), array=array, arange=arange, zeros=zeros, prod=prod))


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=str)
def test_indices_of_32_bits_are_enough(primitive, monkeypatch):
    small(monkeypatch, gather_scatter, joining, sort)
    for example in primitive.examples():
        args = [np.asarray(x) for x in example.args]
        results = primitive.impl(*(x.view(OnlyIntp) for x in args), **example.params)
        monkeypatch.undo()
        for small_one, usual in zip(results, primitive.impl(*args, **example.params), strict=True):
            np.testing.assert_array_equal(np.asarray(small_one), usual)
        small(monkeypatch, gather_scatter, joining, sort)


def test_the_emulator_needs_no_indices_of_64_bits(monkeypatch):
    from minijax.compiler.targets import emulator
    small(monkeypatch, emulator)
    device = jax.devices("emulator")[0]
    x = jax.device_put(jnp.arange(4096.).reshape(64, 64), device)
    result = jax.jit(lambda x: x.sum() + jnp.sort(x.T @ x, 1).sum(0) + x[5, ::-1])(x)
    host = np.arange(4096., dtype=np.float32).reshape(64, 64)
    expected = host.sum() + np.sort(host.T @ host, 1).sum(0) + host[5, ::-1]
    np.testing.assert_allclose(result, expected, 1e-4)
