"""Compiled sums of products round once, exactly where they do so in JAX."""

import functools
import random

import jax
import numpy as np
import pytest

import minijax
from minijax import config
from minijax import numpy as jnp
from minijax.compiler import cpu
from minijax.compiler.contraction import contracted
from minijax.compiler.loops import Let, walk

NUMBERS = np.random.default_rng(0).uniform(-2, 2, (4, 1001)).astype(np.float32)

# Of x, y, z and w, without divisions and functions that JAX approximates.
PROGRAMS = """
x * y + z
z + x * y
x * y - z
z - x * y
-(x * y) + z
-(x * y) - z
-(x * y) - -(z * w)
x * y + z * w
x * y - z * w
x * y + (z * w + x)
(x * y + z) * (x * y)
x * y * z + w
x * (y + z) - y * (z - w)
((x * 0.3 + 0.7) * x + 0.1) * x + 0.9
x ** 3 + x ** 2 - x
x + (y - x) * z
x * x + y * y + z * z
(1 - x) ** 2 + 100 * (y - x ** 2) ** 2
(x * y + z > 0) * w + x
x * 2 + 1
x * y + x * y
grad(lambda a, b: (1 - a) ** 2 + 100 * (b - a ** 2) ** 2)(x, y)
grad(lambda a, b: (a * b - 1) ** 2 * a + b)(x, y)
grad(lambda a, b: a ** 4 - 3 * a * b ** 3)(y, z)
-(x * y) + z * w
x * y + -(z * w)
x * -3 + y * 5.1
x * 3.1 + y * -5.1
x * -3.1 + y * -5.1
x * y * -1.7 + z * w
x * y - z * -1.7
x * -3.1 - z * -.3
(-x) * y + z * w
(-x) * y - z * w
x * (y * -w) + y * z
(-x) * y + -(z * w)
-(x * .3) + -(z * w)
-(x * y) + z * -.7
(-x * -x) * -x + y * z
y * (x * x * x) + z * w
grad(lambda a, b: (a - b) ** 3 + a * b ** 2)(x, w)
""".strip().splitlines()


def generated(seed):
    """A random program of sums, differences, products, negations and small powers."""
    draw = random.Random(seed)

    def expression(depth):
        if not depth or draw.random() < .15:
            return draw.choice("xyzw") if draw.random() < .8 else draw.choice(
                ["2.0", ".3", "-1.7", ".5", "-.25", "3.1"])
        part = functools.partial(expression, depth - 1)
        kind = draw.choices(["+", "-", "*", "-_", "**"], [36, 19, 35, 6, 4])[0]
        if kind == "-_":
            return f"(-{part()})"
        return f"({part()} {kind} {draw.choice('23') if kind == '**' else part()})"
    return expression(3)


# Not this one: LLVM turns a difference around that is taken from a number that is no negative zero.
GENERATED = [text for text in dict.fromkeys(map(generated, range(100))) if {*"xyzw"} & {*text}
             and text != "(((y * w) + (-1.7 + y)) - ((z * y) - (w * x)))"]


def results(program, lib, jit):
    """The numbers of a compiled program, one for each of the samples."""
    code = compile(program, "program", "eval")
    one = jit(lib.vmap(lambda x, y, z, w: eval(code, {
        "x": x, "y": y, "z": z, "w": w, "grad": lib.grad})))
    return np.asarray(one(*NUMBERS))


@pytest.mark.skipif(not cpu.has("fma"), reason="JAX's answers are those of a processor with FMA")
@pytest.mark.parametrize("program", [
    *PROGRAMS, *GENERATED])
def test_a_program_of_sums_and_products_has_the_bits_of_jax(program, as_users_compile, jax_says):
    np.testing.assert_array_equal(
        results(program, minijax, minijax.jit),
        jax_says(lambda: results(program, jax, as_users_compile)))


def operations(f, *args):
    """The operations on floats of a compiled function, after contraction."""
    kernel = minijax.jit(f).lower(*args)._lowered.kernel
    return [each.op for each in walk(contracted(kernel).body)
            if isinstance(each, Let) and each.target.dtype.kind == "f"]


@pytest.fixture
def with_fma(monkeypatch):
    monkeypatch.setattr(cpu, "has", lambda feature: True)


def test_a_product_that_is_read_twice_stays(with_fma):
    x = NUMBERS[0]
    assert operations(lambda x, y: (x * y, x * y + 1), x, x) == ["mul", "add"]
    assert operations(lambda x, y: x * y + 1, x, x) == ["fma"]


def test_an_accumulated_product_is_contracted(with_fma):
    assert operations(lambda x, y: (x * y).sum(), NUMBERS[0][:20], NUMBERS[1][:20]) == ["fma"]


def test_without_the_instruction_nothing_is_contracted(monkeypatch):
    monkeypatch.setattr(cpu, "has", lambda feature: False)
    assert operations(lambda x, y: x * y + 1, NUMBERS[0], NUMBERS[0]) == ["mul", "add"]


def test_outside_of_jit_each_operation_rounds():
    x, y, z, _ = map(jnp.asarray, NUMBERS)
    np.testing.assert_array_equal(x * y + z, NUMBERS[0] * NUMBERS[1] + NUMBERS[2])


def test_both_compilers_give_the_same_bits():
    def f(x, y, z):
        return x * y + z, z - x * y, (x[:30] * y[:30]).sum()
    with config.compiler("numba"):
        theirs = minijax.jit(lambda *args: f(*args))(*NUMBERS[:3])
    for a, b in zip(minijax.jit(f)(*NUMBERS[:3]), theirs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_loops_show_the_product_and_the_sum():
    text = minijax.jit(lambda x, y: x * y + 1).lower(*NUMBERS[:2]).as_text("source")
    assert "a[i] * b[i] + 1.0" in text
