"""Loops that are printed in vectors: which ones, and that they give the bits of scalar loops."""

import re

import numpy as np
import pytest

from minijax import config, disable_jit, jit, lax, numpy as jnp, tree
from minijax.compiler import cpu, function_text, llvm
from minijax.compiler.builder import Builder
from minijax.compiler.loops import For, Buffer, walk
from minijax.compiler.lowered import Lowered
from minijax.compiler.steps import Steps
from minijax.compiler.vectorization import PER_GATHER, gathers, lanes_in
from tests.compiler.scalar_loops import scalar_loops
from tests.compiler.test_llvm import accumulation, run

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 1000)).astype(np.float32)
LEVELS = [None, *(level for level in ("x86-64", "x86-64-v2", "x86-64-v3")
                  if cpu.host().triple.startswith("x86_64") and cpu.has("fma"))]

PROGRAMS = {
    "functions": lambda x: jnp.tanh(jnp.exp(x)) + jnp.log1p(jnp.abs(x)),
    "a rare case": lambda x: jnp.sin(x * jnp.where(jnp.arange(1000) % 100 == 7, 1e9, 1.)),
    "bools": lambda x: ((x > 0) & (x < 1)) | (jnp.arange(1000) % 3 == 0),
    "integers of a byte": lambda x: (x * 50).astype(jnp.int8) * 3 + 1,
    "two widths": lambda x: (x * 1e3).astype(jnp.int16).astype(jnp.float32) / x,
    "bfloat16": lambda x: jnp.exp(x.astype(jnp.bfloat16)) * 2,
    "float16": lambda x: x.astype(jnp.float16) / 3,
    "an index as a number": lambda x: x + jnp.arange(1000) * 3,
    "every other element": lambda x: jnp.sin(x[:, ::2]) * jnp.cos(x[:, 1::2]),
    "backwards": lambda x: jnp.exp(x[:, ::-1]) + jnp.exp(x),
    "backwards, of every width": lambda x: [
        jnp.flip((x * 9).astype(t), 1) for t in ("int8", "float16", "int32", "float32")],
    "backwards, with a rest": lambda x: x[:, :77][:, ::-1] * 2,
    "functions of less than a vector": lambda x: [jnp.exp(x[:, :n]) for n in (3, 5, 9, 15, 17)],
    "few columns": lambda x: [jnp.exp(x[:, :n].T - x[:, :n].T.max(0)).sum(0) for n in (5, 10)],
    "a gather": lambda x: jnp.exp(jnp.sin(x[:, jnp.arange(1000) * 7 % 1000])),
    "padding, with masks": lambda x: lax.pad(x, 0.5, [(1, 1, 0), (3, 2, 1)]) * 2,
    "windows": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID"),
    "short sums inside": lambda x: x.reshape(5, 8, 125).sum(1),
    "the largest": lambda x: (x.max(), x.min(1), jnp.argmax(x, 1)),
    "rows that end within a vector": lambda x: jnp.exp(x[:, :28]) * 2 + x[:, 3:31].cumsum(0),
    "a short row": lambda x: jnp.tanh(x[:, :7]) + lax.rev(x[:, :7], (1,)),
    "rows that are added to in place": lambda x: lax.fori_loop(
        0, 3, lambda i, y: lax.scatter_add(
            y.at[i, :77].mul(2.), jnp.stack([0, 100 + i]), y[:, 200:229],
            lax.ScatterDimensionNumbers((0, 1), (), (0, 1))), x),
    "the largest of rows of eight": lambda x: x.reshape(-1, 8).max(1),
    "sums of integers": lambda x: jnp.sum((x * 9).astype(jnp.int32), 1),
    "a product": lambda x: x[:, :500] @ x[:, 500:].T,
    "a product of bytes": lambda x: lax.dot((x[:, :500] * 50).astype(jnp.int8),
                                            (x[:, 500:] * 50).astype(jnp.int8).T,
                                            preferred_element_type=jnp.int32),
    "a branch": lambda x: lax.cond(x[0, 0] > 9, jnp.sin, lambda x: x / 2, x),
    "complex parts": lambda x: (lax.complex(x, -x) * (2 + 1j)).conj(),
    "rows of four": lambda x: jnp.cumsum(jnp.sin(x.reshape(-1, 4)), 1),
    "rows of eight, of which each is a column": lambda x: jnp.fft.fft(x[:, :64]).real,
    "sums with a rest": lambda x: (x[:, :999].sum(1), x[:, :77].prod(1),
                                   jnp.exp(x[:, :75]).sum(1)),
    "sums of what is gathered, with a rest": lambda x: (
        (x[:, jnp.arange(999) * 7 % 1000] * x[:, jnp.arange(999) ** 2 % 1000]).sum(1),
        jnp.exp(x[:, jnp.arange(75) * 7]).sum(1)),
    "a sum of quotients, with a rest": lambda x: jnp.sum(
        100 // (x[:, :77] * 50).astype(jnp.int32), 1),
    "merged axes": lambda x: (jnp.kron(x[:, :40], x[:2, :13]), jnp.repeat(x, 7, axis=1) + 1,
                              x[:, :990].reshape(5, 9, 10, 11).swapaxes(1, 2).reshape(5, 990)),
    "a sum of bytes": lambda x: jnp.sum((x * 50).astype(jnp.int8), 1, dtype=jnp.int8),
    "a sum over short searches": lambda x: jnp.mean(jnp.argmax(x.reshape(-1, 10), 1) == 3),
    "a flag": lambda x: jnp.where(x[0, 0] > 0, jnp.sin(x), x) + jnp.where(x[0, 0] > 9, x / 3, 1),
    "complex numbers": lambda x: jnp.exp(x * 1j).real,
    "random bits": lambda x: x * lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), x.shape)[1],
}


def compiled(f, level, *args):
    with config.cpu(level):
        outs = jit(lambda *xs: f(*xs)).lower(*args).compile()(*args)
        return [np.asarray(y).tobytes() for y in tree.leaves(outs)]


def in_vectors(f, *args):
    """The text of the kernel of a function, in vectors."""
    return llvm.assembly(Lowered(jit(f).trace(*args).program, "f").kernel)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_vectors_give_the_bits_of_scalar_loops(name, level):
    in_vectors = compiled(PROGRAMS[name], level, X)
    with scalar_loops():
        assert compiled(PROGRAMS[name], level, X) == in_vectors


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - {"a gather", "a sum over short searches"}))
def test_these_programs_are_in_vectors(name):
    assert re.search(r"<\d+ x (float|double|i8|i16|i32)>", in_vectors(PROGRAMS[name], X))


def test_elements_in_the_wrong_order_are_found(monkeypatch):
    right, f = compiled(PROGRAMS["backwards"], None, X), PROGRAMS["backwards"]
    usual = Steps.at
    monkeypatch.setattr(Steps, "at", lambda *args: None if (k := usual(*args)) is None else abs(k))
    with config.disable_most_optimizations(True):
        assert compiled(f, None, X) != right


def test_what_is_updated_in_place_would_be_updated_twice_where_vectors_overlap(monkeypatch):
    f = PROGRAMS["rows that are added to in place"]
    right = compiled(f, None, X)
    monkeypatch.setattr(function_text, "may_repeat", lambda loop: True)
    with config.disable_most_optimizations(True):
        assert compiled(f, None, X) != right


def loop_of(write, vectorize="parallel", size=64, dtype=np.float32):
    """A loop over the elements of buffers x and y."""
    b = Builder()
    x, y = (Buffer(name, np.dtype(dtype), (size, 2), role)
            for name, role in (("x", "input"), ("y", "output")))
    with b.loop(size // 2, vectorize=vectorize) as i:
        write(b, x, y, i)
    return next(each for each in walk(b.scopes[0].statements) if isinstance(each, For))


def flat(i):
    return (i,)


@pytest.mark.parametrize("lanes, write", [
    (16, lambda b, x, y, i: b.store(y, flat(i), b.load(x, flat(b.add(i, 3))))),
    (16, lambda b, x, y, i: b.store(y, (i, b.index(0)), b.load(x, (i, b.index(1))))),
    (0, lambda b, x, y, i: b.store(y, flat(b.mul(i, 9)), b.load(x, flat(b.mul(i, 9))))),
    (16, lambda b, x, y, i: b.store(y, flat(b.mul(i, 2)), b.load(x, flat(i)))),
    (16, lambda b, x, y, i: b.store(y, flat(i), b.exp(b.load(x, flat(b.mul(i, 2))))))])
def test_a_loop_is_in_vectors_if_that_is_faster(lanes, write):
    assert lanes_in(loop_of(write), 64) == lanes


@pytest.mark.parametrize("dtype, size, lanes", [
    (np.int8, 4, 0), (bool, 4, 0), (np.int8, 8, 4), (np.int16, 4, 2), (np.float32, 4, 2)])
def test_a_vector_has_four_bytes_at_least(dtype, size, lanes):
    copy = lambda b, x, y, i: b.store(y, flat(i), b.load(x, flat(i)))
    assert lanes_in(loop_of(copy, size=size, dtype=dtype), 64) == lanes


def test_iterations_that_depend_on_each_other_are_not():
    copy = lambda b, x, y, i: b.store(y, flat(i), b.load(x, flat(i)))
    assert lanes_in(loop_of(copy), 64) == 16
    assert lanes_in(loop_of(copy, ""), 64) == lanes_in(loop_of(copy, "reduce"), 64) == 0


def in_a_branch(*accesses):
    """A loop with loads at these multiples of its index, where x is positive."""
    def write(b, x, y, i):
        with b.when(b.gt(b.load(x, flat(i)), 0.)):
            for k in accesses:
                b.store(y, flat(i), b.exp(b.exp(b.load(x, flat(b.mul(i, k))))))
    return loop_of(write)


@pytest.mark.parametrize("accesses, lanes", [((1,), 16), ((2,), 0), ((1, 2), 0), ((2, 1), 0)])
def test_a_branch_accesses_neighbours_only(accesses, lanes):
    assert lanes_in(in_a_branch(*accesses), 64) == lanes


def test_a_variable_that_a_branch_assigns_is_no_index_of_one_element():
    def write(b, x, y, i):
        place = b.variable(b.index(0))
        with b.when(b.gt(b.load(x, flat(i)), 0.)):
            b.assign(place, b.index(1))
        b.store(y, flat(i), b.load(x, flat(b.read(place))))
    assert gathers(loop_of(write))[0] == PER_GATHER


def test_steps_are_those_of_the_numbers():
    b = Builder()
    with b.loop(10, vectorize="parallel") as i:
        numbers = [b.add(i, 3), b.sub(5, i), b.mul(i, -4), b.mul(b.add(i, i), 3), b.mul(i, i)]
    [loop] = [each for each in b.scopes[0].statements if isinstance(each, For)]
    steps = Steps({loop.index: 1})
    for each in loop.body:
        steps[each.target] = steps.of(each)
    assert [steps[x] for x in numbers] == [1, -1, -4, 6, None]


# -- sums in lanes ---------------------------------------------------------------------------------

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def total(op, x, lanes):
    """The reduction of an array in lanes, by NumPy."""
    combine, start = {"add": (np.add, 0), "mul": (np.multiply, 1)}[op]
    partials = np.full(max(lanes, 1), start, x.dtype)
    for first in range(0, x.size, partials.size):
        row = x[first:first + partials.size]
        partials[:row.size] = combine(partials[:row.size], row)
    while partials.size > 1:
        partials = combine(*np.split(partials, 2))
    return combine(x.dtype.type(0), partials[0])


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("op, dtype, size, lanes", [
    ("add", F32, 15, 0), ("add", F32, 16, 16), ("add", F32, 63, 16), ("add", F32, 64, 32),
    ("add", F32, 1000, 32), ("add", F64, 1000, 16), ("add", F64, 17, 8)])
def test_a_sum_has_the_order_of_its_lanes(op, dtype, size, lanes, quick):
    x = np.random.default_rng(size).normal(size=size).astype(dtype)
    with config.disable_most_optimizations(quick):
        _, [result] = run(accumulation(op, dtype, size, "reduce"), x)
    assert result.tobytes() == total(op, x, lanes).tobytes()


def test_sums_in_other_orders_differ():
    x = np.random.default_rng(1000).normal(size=1000).astype(F32)
    assert len({total("add", x, lanes).tobytes() for lanes in (0, 8, 16, 32)}) > 2


@pytest.mark.parametrize("n", [3, 16, 20, 64, 100, 1000])
@pytest.mark.parametrize("f", [
    lambda y: (y > .9).any(), lambda y: (y < 2).all(), lambda y: (y * 50).astype("int8").max(),
    lambda y: (y * 50).astype("int16").sum(), lambda y: y.astype("float16").max(),
    lambda y: ((y > .9).any(), y.sum())])
def test_terms_may_be_narrower_than_the_functions_that_they_come_from(f, n):
    x = jnp.linspace(-8, 9, n)
    for g in (jnp.sin, jnp.exp):  # a called one, and one that is inlined
        with disable_jit():
            expected = f(g(x))
        for found, wanted in zip(*map(tree.leaves, (jit(lambda x, g=g: f(g(x)))(x), expected)),
                                 strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
