"""Cumulative results are JAX's: trees, axes, both directions, under transformations."""

import functools

import jax
import numpy as np
import pytest

import minijax

DRAW = np.random.default_rng(0)
ROWS = DRAW.standard_normal((7, 3)).astype(np.float32)
MATRICES = (DRAW.standard_normal((6, 2, 2)) / 2).astype(np.float32)
LONG = DRAW.standard_normal(5000).astype(np.float32)


def recurrence(a, b):
    return a[0] * b[0], b[0] * a[1] + b[1]


SCANS = {
    "sums": lambda lib, **o: lib.lax.associative_scan(lib.numpy.add, ROWS, **o),
    "recurrence": lambda lib, **o: lib.lax.associative_scan(recurrence, (ROWS, ROWS), **o),
    "names": lambda lib, **o: lib.lax.associative_scan(
        lambda a, b: {"m": lib.numpy.maximum(a["m"], b["m"])}, {"m": ROWS}, **o),
}


@pytest.mark.parametrize("scan", SCANS)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_an_associative_scan_is_jaxs(scan, axis, reverse):
    ours, theirs = (lib.tree.leaves(SCANS[scan](lib, axis=place, reverse=reverse))
                    for lib, place in ((minijax, axis), (jax, axis % 2)))  # it refuses both there
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16", "complex64", "bool"])
def test_running_totals_with_a_name_are_those_of_jax(name, dtype, beside_jax):
    if dtype == "bool" and name in ("add", "mul"):
        return
    rows = np.asarray(np.round(ROWS * 4) / 4 + .25).astype(jax.numpy.dtype(dtype))
    rows[2, 1] = np.nan if dtype in ("float32", "bfloat16") else 0
    for fn, reverse in ((lambda x, y: (x, y), False), (lambda x, y: (y, x), True)):
        ours, theirs = beside_jax(lambda lib: lib.lax.associative_scan(
            lambda x, y, lib=lib, fn=fn: getattr(lib.lax, name)(*fn(x, y)), rows, reverse))
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(np.asarray(ours, complex), np.asarray(theirs, complex),
                                   rtol=3e-2 if dtype == "bfloat16" else 1e-5)


@pytest.mark.parametrize("length", [1, 2, 300])
@pytest.mark.parametrize("name", ["add", "mul", "max", "min", "rem"])
def test_weak_types_are_those_of_jax(name, length, beside_jax):
    ours, theirs = beside_jax(lambda lib: lib.lax.associative_scan(
        getattr(lib.lax, name), lib.numpy.broadcast_to(2., (length,))))
    assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)


def test_a_sum_is_one_running_total():
    lines = str(minijax.make_jaxpr(lambda x: minijax.lax.associative_scan(
        minijax.numpy.add, x, axis=1))(ROWS))
    assert "cumsum[axis=1 reverse=False]" in lines and "scan" not in lines


PROGRAMS = {
    "matrices": lambda lib, f: f(lib.numpy.matmul, MATRICES),
    "matrices from the end": lambda lib, f: f(lib.numpy.matmul, MATRICES, reverse=True),
    "gradient": lambda lib, f: lib.grad(
        lambda x: (f(recurrence, (x, 2 * x))[1] ** 2).sum())(lib.numpy.asarray(ROWS)),
    "batch": lambda lib, f: lib.vmap(lambda x: f(lib.numpy.add, x))(ROWS),
    "long": lambda lib, f: lib.jit(lambda x: f(recurrence, (x / 4, x)))(LONG),
    "long from the end": lambda lib, f: lib.jit(
        lambda x: f(lib.numpy.add, x, reverse=True))(LONG[:400]),
    "long and narrow": lambda lib, f: lib.jit(lambda x: f(lib.numpy.add, x, axis=1))(
        np.arange(800, dtype=np.int32).reshape(2, 400)),
    "one": lambda lib, f: f(lib.numpy.add, ROWS[:1]),
    "none": lambda lib, f: f(lib.numpy.add, ROWS[:0]),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_with_it_give_what_they_give_in_jax(program, beside_jax):
    ours, theirs = beside_jax(
        lambda lib: lib.tree.leaves(PROGRAMS[program](lib, lib.lax.associative_scan)))
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_its_sums_are_as_precise_as_jaxs(beside_jax):
    exact = np.cumsum(LONG.astype(float))

    def error(lib):
        sums = lib.jit(functools.partial(lib.lax.associative_scan, lib.numpy.add))(LONG)
        return np.abs(np.asarray(sums) - exact).max()
    ours, theirs = beside_jax(error)
    assert ours <= 2 * theirs


REFUSED = {
    "no function": lambda lib: lib.lax.associative_scan(3, ROWS),
    "lengths": lambda lib: lib.lax.associative_scan(lib.numpy.add, (ROWS[0], ROWS[:, 0])),
    "axis": lambda lib: lib.lax.associative_scan(lib.numpy.add, ROWS, axis=2),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_in_jaxs_words(case):
    with pytest.raises((TypeError, ValueError)) as theirs:
        REFUSED[case](jax)
    with pytest.raises(theirs.type) as ours:
        REFUSED[case](minijax)
    assert str(ours.value).split("\n")[0] == str(theirs.value)


@pytest.mark.parametrize("elems", ["(v, v + 1)", "[v, i[0]]", "{'a': v, 'b': f.T}", "(v,)"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("container", ["tuple", "list", "lambda xs: dict(enumerate(xs))"])
def test_of_what_the_function_returns_the_leaves_count(agrees_with_jax, elems, reverse, container):
    agrees_with_jax(
        f"(lambda make: jax.tree.leaves(lax.associative_scan(lambda a, b: make([x * y for x, y in "
        f"zip(*map(jax.tree.leaves, (a, b)))]), {elems}, reverse={reverse})))({container})")


@pytest.mark.parametrize("expression", [
    "lax.associative_scan(lambda a, b: (a[0],), (v, v))", "lax.associative_scan("
    "lambda a, b: (a, b), v)", "lax.associative_scan(lambda a, b: (a + b,), v)",
    "lax.reduce(v, 0., lambda a, b: [a + b], (0,))",
    "lax.reduce((v, v), (0., 1.), lambda a, b: [a[0] + b[0], a[1] * b[1]], (0,))"])
def test_other_numbers_of_leaves(agrees_with_jax, expression):
    agrees_with_jax(expression)
