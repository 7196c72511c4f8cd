"""The Numba program of a kernel: each operation as its NumPy meaning, whole programs as `jit`.

Numba types and compiles the text by itself, so that it is a second opinion on our printer.
"""

import re
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax import config, jit, lax, numpy as jnp
from minijax.compiler import numba_compiler
from minijax.compiler.elementary import FORMULAS
from minijax.compiler.loops import BOOL, INT64, OPS, Buffer, Let, Load, Scalar, Store
from minijax.compiler.numba_text import FORMS, NARROW, NotInNumba, _helpers
from tests.compiler.test_llvm import (CASES, CONVERSIONS, accumulation, assert_same, combinations,
                                      edges, every, kernel, loop)
from tests.test_laws import LARGE, PRIMITIVES, WITHOUT_EXAMPLES, cases, same


def share(values, *names):
    """All of them, if every law runs at every size; else those with these names."""
    return [value for value in values if LARGE or str(value) in names]


def run(made, *arrays):
    return numba_compiler.callable_of(made, made.outputs)(*arrays)


def elementwise(rows):
    """One kernel of many operations, each in a loop of its own: (op, dtypes, result, arrays)."""
    inputs, outputs, body = [], [], []
    for op, kinds, result, arrays in rows:
        xs = [Buffer("x", kind, x.shape, "input") for kind, x in zip(kinds, arrays, strict=True)]
        y, i = Buffer("y", result, arrays[0].shape, "output"), Scalar("i", INT64)
        args, value = tuple(Scalar("a", kind) for kind in kinds), Scalar("v", result)
        body.append(loop(i, arrays[0].size, *(Load(a, x, (i,)) for a, x in zip(
            args, xs, strict=True)), Let(value, op.name, args), Store(y, (i,), value)))
        inputs += xs
        outputs.append(y)
    return kernel(inputs, outputs, *body)


def check(rows, expected):
    got = run(elementwise(rows), *(x for row in rows for x in row[3]))
    for x, y, row in zip(got, expected, rows, strict=True):
        try:
            assert_same(x, np.asarray(y))
        except AssertionError as error:
            raise AssertionError(f"{row[0].name} of {row[1]}: {error}") from None


# ── Operations ───────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("dtype", share(
    dict.fromkeys(dtype for _, dtype in CASES if dtype.isbuiltin == 1 or dtype in NARROW),
    "float32", "uint8"), ids=str)
def test_each_operation_gives_its_numpy_meaning_at_every_edge(dtype):
    rows = []
    for op in (op for op, kind in CASES if kind == dtype and (LARGE or op.name not in FORMULAS)):
        values = op.arity - (op.name == "select")
        kinds = [BOOL] * (op.name == "select") + [dtype] * values
        rows.append((op, kinds, BOOL if op.result == "bool" else dtype, combinations(kinds)))
    check(rows, [op.meaning(*arrays) for op, _, _, arrays in rows])


@pytest.mark.parametrize("target", share(
    dict.fromkeys(to for _, to in CONVERSIONS if to.isbuiltin == 1 or to in NARROW),
    "float32", "int32", "uint64", "float16"), ids=str)
def test_each_conversion_gives_its_numpy_meaning_at_every_edge(target):
    rows = []
    for source in (a for a, b in CONVERSIONS if b == target and (a.isbuiltin == 1 or a in NARROW)):
        x = every(source) if source in NARROW else edges(source)
        if source.kind == "f" and source not in NARROW:
            limits = 2.0 ** np.arange(-160, 128, 0.25)
            x = np.concatenate([x, limits, -limits, limits + 0.5]).astype(source)
        rows.append((OPS["convert"], [source], target, [x]))
    check(rows, [OPS["convert"].meaning(arrays[0], target) for _, _, _, arrays in rows])


@pytest.mark.parametrize("narrow", NARROW, ids=str)
def test_floats_are_rounded_to_narrow_ones_as_ml_dtypes_rounds_them(narrow):
    x = np.random.default_rng(0).integers(0, 2**32, 100_000, np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        exact = np.sort(every(narrow).astype(np.float64))
        ties = ((exact[:-1] + exact[1:]) / 2).astype(np.float32)
        x = np.concatenate([x, ties, np.nextafter(ties, np.float32(0)), np.nextafter(ties, np.inf)],
                           dtype=np.float32)
        expected = x.astype(narrow)
    check([(OPS["convert"], [x.dtype], narrow, [x])], [expected])


@pytest.mark.parametrize(("source", "target"), [("float32", "int32"), ("uint64", "float64"),
                                                ("float16", "uint16"), ("int8", "uint8")])
def test_a_bitcast_keeps_the_bits(source, target):
    x = edges(np.dtype(source))
    check([(OPS["bitcast"], [x.dtype], np.dtype(target), [x])], [x.view(target)])


def test_a_sum_keeps_its_order_unless_the_loop_says_otherwise():
    x = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    [in_order] = run(accumulation("add", x.dtype, 1000, ""), x)
    assert in_order == np.add.accumulate(x)[-1]
    [free] = run(accumulation("add", x.dtype, 1000, "reduce"), x)
    np.testing.assert_allclose(free, x.astype(np.float64).sum(), rtol=1e-5)


def test_every_helper_is_used():
    named = {name for form in FORMS.values() for name in re.findall(r"(?<!\.)\b\w+(?=\()", form)}
    assert set(_helpers()) == named - {"abs", "min", "max"} | {
        "bitcast", "plus", "times", "saturated"}


# ── Primitives ───────────────────────────────────────────────────────────────────────────────

REFUSED = {"cholesky", "column_order", "eig", "eigh", "hessenberg", "lu", "qr", "schur", "solve",
           "svd", "tridiagonal"}  # which call LAPACK, or Python


@pytest.mark.parametrize("name", share(
    sorted(PRIMITIVES.keys() - WITHOUT_EXAMPLES.keys()), "atan2", "gather", "scan", "qr"))
def test_numba_computes_the_meaning_of_a_primitive(name):
    p, refused = PRIMITIVES[name], 0
    for x64 in (False, True):
        chosen = [case for case in cases(p) if case.x64 == x64]
        # Some examples of these are not refused, and so each is compiled by itself.
        for group in [[case] for case in chosen] if name in REFUSED else [chosen] * bool(chosen):
            with config.enable_x64(x64), config.disable_jit(True):
                expected = [case.run(*case.args) for case in group]
            with config.enable_x64(x64), config.compiler("numba"):
                try:
                    outs = jit(lambda argss, group=group: [
                        case.run(*args) for case, args in zip(group, argss, strict=True)])(
                            [case.args for case in group])
                except NotInNumba:
                    refused += 1
                    continue
            for case, x, y in zip(group, outs, expected, strict=True):
                same(x, y, case)
    assert bool(refused) == (name in REFUSED)


# ── Programs ─────────────────────────────────────────────────────────────────────────────────

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
LONG = np.linspace(-2, 2, 1_000_000, dtype=np.float32)


def loss(w, x):
    def step(h, row):
        return jnp.tanh(h @ w + row), h.sum()
    h, sums = lax.scan(step, jnp.zeros(4), x)
    return (h * h).sum() + sums.mean()


PROGRAMS = {
    "elementwise": (lambda x: jnp.sin(x) * 2 + x.astype(jnp.int32), X),
    "reductions": (lambda x: (x.sum(0), x.max(1), jnp.argmin(x), jnp.cumsum(x, 1)), X),
    "products": (lambda x: jnp.einsum("ij,kj->ik", x, x), np.ones((40, 50), np.float32)),
    "gradient of a scan": (minijax.grad(loss), np.eye(4, dtype=np.float32), X),
    "sort": (lambda x: (jnp.sort(x, 0), jnp.argsort(-x, 1)), X),
    "random": (lambda key: minijax.random.normal(key, (5, 3)), minijax.random.key(3)),
    "while": (lambda n: lax.while_loop(lambda c: c < 100, lambda c: c * 3 + 1, n), 7),
    "branches": (lambda x: lax.cond(x.sum() > 0, jnp.cos, jnp.exp, x), X),
    "scatter": (lambda x: x.at[jnp.array([0, 2, 0])].add(1.5), X),
    "complex numbers": (lambda x: jnp.exp(x + 1j) / x, X),
    "transform": (lambda x: jnp.fft.fft(x).real, X),
    "narrow": (lambda x: (x.astype(jnp.bfloat16) * 3, x.astype(jnp.float16) + 1), X),
    "constants": (lambda x: x @ np.arange(12, dtype=np.float32).reshape(4, 3), X),
    "threads": (lambda x: jnp.tanh(x) * 0.5, LONG),
    "no elements": (lambda x: x[:0] * 2, X),
}


@pytest.mark.parametrize("name", share(
    PROGRAMS, "gradient of a scan", "branches", "complex numbers", "narrow", "no elements"))
def test_a_program_gives_what_the_other_compiler_gives(name):
    f, *args = PROGRAMS[name]
    expected = minijax.tree.leaves(jit(f)(*args))
    with config.compiler("numba"):
        outs = minijax.tree.leaves(jit(f)(*args))
    for x, y in zip(outs, expected, strict=True):
        assert x.aval == y.aval
        np.testing.assert_allclose(np.asarray(x, np.complex128), np.asarray(y, np.complex128),
                                   rtol=2e-6, atol=2e-6)


ALONE = """
import sys

class Refuse:
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] in ("minijax", "jax", "ml_dtypes", "scipy"):
            raise ImportError(name)

sys.meta_path.insert(0, Refuse)
import runpy
import numpy as np

for name in sys.argv[1:]:
    main = runpy.run_path(name + ".py")["main"]
    with np.load(name + ".npz") as arrays:
        args = [arrays[f"x{k}"] for k in range(sum(x[0] == "x" for x in arrays))]
        outs = main(*args)
        outs = outs if isinstance(outs, tuple) else (outs,)
        for k, out in enumerate(outs):
            assert out.dtype == arrays[f"y{k}"].dtype, (name, out.dtype)
            np.testing.assert_allclose(out, arrays[f"y{k}"], rtol=2e-6, atol=2e-6, err_msg=name)
"""


def test_printed_programs_run_without_minijax(tmp_path):
    """With NumPy and Numba alone; complex numbers and keys as the arrays behind them."""
    paths = []
    for name in share(("products", "sort", "constants", "random", "transform", "threads"),
                      "sort", "constants", "random"):
        f, *args = PROGRAMS[name]
        if name == "random":
            args = [minijax.random.key_data(args[0])]
            f = lambda words: PROGRAMS["random"][0](minijax.random.wrap_key_data(words))  # noqa: E731
        path = tmp_path / f"program_{name}"
        path.with_suffix(".py").write_text(jit(f).lower(*args).as_text("numba"), "utf-8")
        arrays = {f"x{k}": np.asarray(x) for k, x in enumerate(args)}
        arrays |= {f"y{k}": np.asarray(y) for k, y in enumerate(minijax.tree.leaves(jit(f)(*args)))}
        np.savez(path.with_suffix(".npz"), **arrays)
        paths.append(str(path))
    subprocess.run([sys.executable, "-c", ALONE, *paths], check=True, cwd=tmp_path, timeout=300)


@pytest.mark.parametrize("name", ["main", "max", "np", "exp", "float32"])
def test_a_kernel_may_have_a_name_that_the_module_uses(name):
    def f(x):
        return jnp.exp(x).max(), jnp.maximum(x.astype(jnp.int32), 0)
    f.__name__ = name
    names = {"__name__": "program"}
    exec(jit(f).lower(X).as_text("numba"), names)
    for got, expected in zip(names["main"](X), jit(f)(X), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_names_comments_and_lines_are_those_of_the_readable_text():
    def scaled(x):
        y = x * 2.0
        return y.sum(0)
    lowered = jit(scaled).lower(X)
    source, program = lowered.as_text("source"), lowered.as_text("numba")
    comments = [line.strip() for line in source.splitlines() if line.strip().startswith("#")]
    assert comments and all(line in program for line in comments)
    assert "def scaled(" in program and Path(__file__).name in program


@pytest.mark.parametrize(("f", "named"), [
    (jnp.linalg.eigh, "LAPACK's ssyevd"),
    (lambda x: minijax.pure_callback(np.sin, x, x), "a Python callback")])
def test_what_has_no_meaning_in_a_numba_program_is_refused_by_name(f, named):
    x = np.eye(3, dtype=np.float32)
    with pytest.raises(NotImplementedError, match=named):
        jit(f).lower(x).as_text("numba")
    with config.compiler("numba"), pytest.raises(NotImplementedError, match=named):
        jit(f)(x)
    np.testing.assert_allclose(minijax.tree.leaves(jit(f)(x))[0], minijax.tree.leaves(f(x))[0])


def test_narrow_floats_but_16_bits_are_refused():
    x = Buffer("x", np.dtype(ml_dtypes.float8_e5m2), (3,), "input")
    i, v = Scalar("i", INT64), Scalar("v", x.dtype)
    y = Buffer("y", x.dtype, (3,), "output")
    with pytest.raises(NotInNumba, match="float8_e5m2"):
        run(kernel([x], [y], loop(i, 3, Load(v, x, (i,)), Store(y, (i,), v))),
            np.zeros(3, x.dtype))


def test_the_compiler_is_part_of_the_key_of_jit():
    traces = []

    @jit
    def f(x):
        traces.append(1)
        return x + 1
    f(1.0), f(1.0)
    with config.compiler("numba"):
        f(1.0), f(1.0)
    f(1.0)
    assert len(traces) == 2


def test_machine_code_of_numba_is_kept_on_disk(tmp_path, monkeypatch):
    from numba.core.dispatcher import Dispatcher
    compiled = []
    compile_ = Dispatcher.compile
    monkeypatch.setattr(Dispatcher, "compile", lambda *args: compiled.append(1) or compile_(*args))

    def first_call(x):
        minijax.clear_caches()
        compiled.clear()
        result = jit(lambda x: jnp.exp(x).sum() * 3 + jnp.sort(x)[0])(x)
        return np.asarray(result), bool(compiled)
    with config.compilation_cache_dir(str(tmp_path)), config.compiler("numba"):
        expected, was_compiled = first_call(LONG)
        assert was_compiled
        assert first_call(LONG) == (expected, False)
        for path in tmp_path.iterdir():
            path.write_bytes(path.read_bytes()[:-1])
        assert first_call(LONG) == (expected, True)
