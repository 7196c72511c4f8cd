"""Elementary functions are written where they stand, or called: the numbers are the same."""

import re

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.transforms.compiled import lowered
from minijax.compiler import llvm, vectors
from tests.compiler.test_elementary import EDGES, any_bits


def text(f, *args):
    """The LLVM text of a program."""
    return llvm.assembly(lowered(jax.jit(f).trace(*args).jaxpr, "f").kernel)


def definitions(name, assembly):
    return [line for line in assembly.split("\n")
            if line.startswith("define") and f"@{name}." in line]


def often(x):
    for _ in range(10):
        x = jnp.tanh(x)
    return x


def test_what_stands_often_is_defined_once_and_called():
    x = jnp.ones(100)
    assert not definitions("tanh", text(jnp.tanh, x))
    assert len(definitions("tanh", text(often, x))) == 1


def test_functions_of_two_dtypes_share_the_lanes_of_the_wider_one():
    def f(x, y):
        return often(x).astype("float64") + often(y)
    with jax.enable_x64(True):
        assembly = text(f, jnp.ones(100, "float32"), jnp.ones(100, "float64"))
    lanes = {dtype: {n for line in definitions("tanh", assembly)
                     for n in re.findall(rf"<(\d+) x {dtype}>", line)}
             for dtype in ("float", "double")}
    assert lanes["float"] & lanes["double"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["exp", "tanh", "log1p", "pow", "erf_inv", "atan2"])
def test_called_or_written_gives_the_same_bits(name, dtype, monkeypatch):
    count = 2 if name in ("pow", "atan2") else 1
    with jax.enable_x64(True):
        edges = np.array(EDGES, dtype)
        args = [np.concatenate([any_bits(np.dtype(dtype), 400), np.roll(edges, k)])
                for k in range(count)]
        f = getattr(jax.lax, name)
        written = jax.jit(lambda *args: f(*args))(*args)
        monkeypatch.setattr(vectors, "MAX_INLINED", 0)
        called = jax.jit(lambda *args: f(*args))(*args)
    np.testing.assert_array_equal(called, written)


@pytest.mark.parametrize("name", ["exp", "sin", "log1p", "pow"])
def test_a_function_of_one_number_gives_the_bits_of_that_of_vectors(name, monkeypatch):
    monkeypatch.setattr(vectors, "MAX_INLINED", 0)
    count = 2 if name == "pow" else 1
    edges, some = np.array(EDGES, np.float32), any_bits(np.dtype("float32"), 100)
    args = [np.concatenate([some, np.roll(edges, k)]) for k in range(count)]
    f = getattr(jax.lax, name)
    one_by_one = jax.jit(lambda *args: jax.lax.scan(lambda c, x: (c, f(*x)), 0, args)[1])(*args)
    np.testing.assert_array_equal(one_by_one, jax.jit(lambda *args: f(*args))(*args))


def test_a_function_called_with_one_exponent_everywhere_keeps_its_parameters():
    def f(x, y):
        for _ in range(3):
            y = y ** -1.5 + 1.0
        return x + y
    np.testing.assert_allclose(jax.jit(f)(np.ones(100, np.float32), 1.5), 2.5330644, rtol=1e-6)


@pytest.mark.parametrize("f", [jnp.sin, jnp.cos, jnp.tan])
def test_a_huge_angle_changes_no_neighbour(f):
    x = np.random.default_rng(0).normal(size=100).astype(np.float32)
    mixed = x.copy()
    mixed[::7] = 1e30
    few, all_of_them = jax.jit(f)(mixed), jax.jit(f)(x)
    rest = np.arange(100) % 7 != 0
    np.testing.assert_array_equal(few[rest], all_of_them[rest])
    np.testing.assert_allclose(few[::7], getattr(np, f.__name__)(np.float64(mixed[::7])), rtol=3e-7)


def test_llvm_has_nothing_to_remark_on(capfd, monkeypatch):
    monkeypatch.setenv("MINIJAX_CACHE_DIR", "")

    def serial(x):
        return jax.lax.scan(lambda c, a: (jnp.sin(c + a), often(c)), 0.0, x)[1]

    def conditional(x):
        return jax.lax.map(lambda a: jax.lax.cond(a > 0, jnp.cos, often, a), x)
    for f in (serial, conditional, jnp.sin):
        jax.jit(f)(np.ones(37, np.float32))
        jax.jit(jax.grad(lambda x, f=f: f(x).sum()))(np.ones(37, np.float32))
    assert capfd.readouterr() == ("", "")
