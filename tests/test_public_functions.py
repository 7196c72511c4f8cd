"""Every public function of these modules agrees with JAX on generated arguments.

Eager, compiled, batched and differentiated: dtype, weak type, shape and value. Each name stands
in a table of `tests/public` with how its arguments are made, or in a list with the reason why not.
`MINIJAX_CASES=40` makes more cases of each; `MINIJAX_SEED` other ones.
"""

import functools
import inspect
import itertools
import operator
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.scipy.special
import numpy as np
import pytest

import minijax
import minijax.scipy.special
from minijax.core import tracing
from tests.recorded import Answers, Array, Refused, digest, refusal

from .public import ADAPTED, CONCRETE, NAMES, NOT_HERE, TABLE
from .public.draw import Call, Draw, Maker

CASES = int(os.environ.get("MINIJAX_CASES", "2"))
SEED = os.environ.get("MINIJAX_SEED", "")

# ── Comparing ────────────────────────────────────────────────────────────────────────────────

def function_of(lib: Any, module: str, name: str) -> Callable:
    f = operator.attrgetter(f"{module}.{name}")(lib)
    adapt = ADAPTED.get(f"{module}.{name}")
    return adapt(f, lib) if adapt else f


def leaves(lib: Any, x: Any) -> list:
    return lib.tree_util.tree_leaves(x)


def kind_of(x: Any) -> str:
    return str(x.dtype) if hasattr(x, "dtype") else type(x).__name__


def is_smooth(x: Any) -> bool:
    return type(x) is float or getattr(x, "dtype", None) == np.float32


def attempt(f: Callable, *args: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f(*args)
        except Exception as error:
            return refusal(error)


def value(lib: Any, f: Callable, case: Call, args: tuple) -> Any:
    return attempt(lambda: leaves(lib, case.run(f, args, lib)))


def direction(shape: tuple, dtype: Any) -> np.ndarray:
    return np.cos(np.arange(np.prod(shape, dtype=int)).reshape(shape) + 1.0).astype(dtype)


def slopes(lib: Any, f: Callable, case: Call, args: tuple) -> Any:
    """The cotangents of the float32 arguments."""
    flat, tree = lib.tree_util.tree_flatten(args)
    smooth = [i for i, x in enumerate(jax.tree_util.tree_leaves(case.args)) if is_smooth(x)]

    def of_smooth(*xs):
        given = dict(zip(smooth, xs, strict=True))
        whole = tree.unflatten([given.get(i, x) for i, x in enumerate(flat)])
        return [y for y in leaves(lib, case.run(f, whole, lib))
                if getattr(y, "dtype", None) == np.float32]

    def derivative():
        outs, back = lib.vjp(of_smooth, *[flat[i] for i in smooth])
        found = back([direction(np.shape(y), y.dtype) for y in outs]) if outs else []
        return [lib.lax.convert_element_type(x, np.float32) for x in found]  # never weak

    finite = all(np.all(np.isfinite(x)) for x in jax.tree_util.tree_leaves(case.args)
                 if is_smooth(x))
    return attempt(derivative) if smooth and finite else []


def assert_same(ours: Any, theirs: Any, case: Call, rough: float = 1.0, nans: bool = True) -> None:
    """They agree; where not `nans`, only where JAX has numbers."""
    if isinstance(theirs, Refused) or isinstance(ours, Refused):
        assert type(ours) is type(theirs), (case, ours, theirs)
        assert theirs.kinds[0] in ours.kinds, (case, ours, theirs)
        return
    assert len(ours) == len(theirs), (case, ours, theirs)
    for x, y in zip(ours, theirs, strict=True):
        assert_same_leaf(x, y, case, rough, nans)


def assert_same_leaf(x: Any, y: Any, case: Call, rough: float, nans: bool) -> None:
    if not isinstance(y, (jax.Array, np.ndarray, Array)):
        assert x == y, (case, x, y)
        return
    assert str(x.dtype) == str(y.dtype), (case, x, y)
    if str(y.dtype) != "bool":  # a weak bool promotes as any other
        assert getattr(x, "weak_type", False) == getattr(y, "weak_type", False), (case, x, y)
    assert x.shape == y.shape, (case, x, y)
    x, y = np.asarray(x), np.asarray(y)
    given = ... if nans else ~np.isnan(y)
    assert_close(x[given], y[given], case, rough)


def assert_close(x: np.ndarray, y: np.ndarray, case: Call, rough: float = 1.0) -> None:
    if x.dtype.kind in "biu":
        np.testing.assert_array_equal(x, y, err_msg=str(case))
        return
    half = str(x.dtype) in ("bfloat16", "float16")
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    rtol, atol = (2e-2, 1e-2) if half else (2e-5, 4e-6)
    np.testing.assert_allclose(x.astype(wide), y.astype(wide), rtol=rough * rtol,
                               atol=rough * atol, err_msg=str(case))


# ── The tests ────────────────────────────────────────────────────────────────────────────────

# Loops within loops, which take seconds to compile, in JAX above all: half as many cases.
SLOW = ("ball beta binomial chisquare dirichlet f fresnel gamma generalized_normal hyp2f1 igamma "
        "igammac igamma_grad_a loggamma multinomial t").split()


def cases(module: str, name: str, make: Maker) -> list[Call]:
    count = -(-CASES // 2) if name in SLOW else CASES
    return [make(Draw(f"{module}.{name} {i}{SEED}")) for i in range(count)]


def everything(lib: Any, f: Callable, chosen: list[Call], compiled: bool) -> list:
    """Values and cotangents of all cases; errors are found while the program is staged."""
    refused = {}

    def program(argss):
        found = []
        for i, (case, xs) in enumerate(zip(chosen, argss, strict=True)):
            for which, g in enumerate((value, slopes)):
                result = g(lib, f, case, case.with_arrays(xs))
                if isinstance(result, Refused):
                    refused[i, which] = result
                    result = []
                found.append(result)
        return found

    argss = [case.arrays() for case in chosen]
    found = (lib.jit(program) if compiled else program)(argss)
    return [(refused.get((i, 0), found[2 * i]), refused.get((i, 1), found[2 * i + 1]))
            for i in range(len(chosen))]


def check_batched(f: Callable, case: Call, eager: Any) -> None:
    """A batch of two, the second with its elements in another order, is a loop over the two."""
    xs = case.arrays()
    if isinstance(eager, Refused) or not xs or any(not hasattr(y, "shape") for y in eager):
        return

    def of_arrays(*xs):
        return leaves(minijax, case.run(f, case.with_arrays(xs), minijax))

    turned = [np.flip(x).copy() for x in xs]
    found = minijax.vmap(of_arrays)(*map(np.stack, zip(xs, turned, strict=True)))
    for x, y, z in zip(found, eager, of_arrays(*turned), strict=True):
        assert str(x.dtype) == str(y.dtype), (case, x, y)
        assert x.shape == (2, *y.shape), (case, x, y)
        assert_close(np.asarray(x), np.stack([np.asarray(y), np.asarray(z)]), case)


def is_finite(result: Any) -> bool:
    """Whether there is a result, and a derivative of it to speak of."""
    return type(result) is list and all(
        np.all(np.isfinite(np.asarray(x))) for x in result if is_smooth(x))


# Where the answer or its derivative is nan in JAX, and a number here.
NAN_IN_JAX = dict.fromkeys(("exp1", "expi", "expn", "spence"), "some logarithms, or their slopes")
NAN_IN_JAX |= {"bessel_jn": "near zero the recurrence overflows"}


def in_complex_numbers(case: Call, result: Any) -> bool:
    xs = [*jax.tree_util.tree_leaves(case.args), *(result if type(result) is list else [])]
    return any(getattr(x, "dtype", np.dtype(bool)).kind == "c" for x in xs)


@pytest.mark.parametrize(("module", "name"), NAMES, ids=map(".".join, NAMES))
def test_agrees_with_jax(module, name, guards, answers):
    chosen = cases(module, name, TABLE[module][name])
    f = function_of(minijax, module, name)
    ours = everything(minijax, f, chosen, compiled=False)
    for case, (values, _) in zip(chosen, ours, strict=True):
        check_batched(f, case, values)
    simple = [i for i, case in enumerate(chosen) if not in_complex_numbers(case, ours[i][0])]
    compiled = minijax.jit(lambda argss: [
        value(minijax, f, chosen[i], chosen[i].with_arrays(xs))
        if not isinstance(ours[i][0], Refused) else []
        for i, xs in zip(simple, argss, strict=True)])([chosen[i].arrays() for i in simple])

    def compare(theirs):
        nans = name not in NAN_IN_JAX
        for case, found, wanted in zip(chosen, ours, theirs, strict=True):
            assert_same(found[0], wanted[0], case, nans=nans)
            if is_finite(wanted[0]):
                assert_same(found[1], wanted[1], case, rough=4, nans=nans)
        for i, found in zip(simple, compiled, strict=True):
            if not isinstance(ours[i][0], Refused):
                assert_same(found, theirs[i][0], chosen[i], nans=nans)

    answers.check(answers.key(SOURCES, module, name, chosen), compare, lambda: everything(
        jax, function_of(jax, module, name), chosen, compiled=True))


# Their bodies are the user's, and each may be a new function.
WITH_BODIES = {("lax", name) for name in ("cond", "fori_loop", "map", "reduce", "reduce_window",
                                          "scan", "switch", "while_loop")}


@pytest.mark.parametrize(("module", "name"), [row for row in NAMES if row not in WITH_BODIES],
                         ids=str)
def test_a_call_like_the_one_before_traces_no_loop_anew(module, name, monkeypatch):
    [case, *_] = cases(module, name, TABLE[module][name])
    f, staged = function_of(minijax, module, name), []
    value(minijax, f, case, case.args)
    recorded = tracing._recorded
    monkeypatch.setattr(tracing, "_recorded", lambda *of: staged.append(of) or recorded(*of))
    value(minijax, f, case, case.args)
    assert not staged


def types(lib: Any, f: Callable, case: Call, given: Callable) -> Any:
    """The types of the results of a case; `given(k, x)` is the type of its array k."""
    def run(*arrays: Any) -> list:
        return leaves(lib, case.run(f, case.with_arrays(arrays), lib))

    arguments = [lib.ShapeDtypeStruct(x.shape, **given(k, x))
                 for k, x in enumerate(case.arrays())]
    return attempt(lambda: [(x.shape, str(x.dtype), x.weak_type)
                            for x in lib.eval_shape(run, *arguments)])


def same_types(answers: Answers, *question: Any, of: Callable = types) -> None:
    """The types of a case of a function, whose arguments are of the types that `given` says."""
    module, name, case, given = question
    ours, ask = (functools.partial(of, lib, function_of(lib, module, name), case, given)
                 for lib in (minijax, jax))
    ours = ours()

    def compare(theirs):
        assert isinstance(ours, Refused) == isinstance(theirs, Refused), (case, ours, theirs)
        assert isinstance(theirs, Refused) or ours == theirs, case
    answers.check(answers.key(
        SOURCES, of.__name__, module, name, case,
        [given(k, x) for k, x in enumerate(case.arrays())]), compare, ask)


def every_second(module: str, name: str, first: int) -> list[Call]:
    """Half of the cases; the only one, where there is one."""
    every = cases(module, name, TABLE[module][name])
    return every[first::2] or every


@pytest.mark.parametrize("part", range(4))
def test_with_disable_jit_a_function_gives_the_same(part):
    for module, name in NAMES[part::4]:
        f = function_of(minijax, module, name)
        for case in every_second(module, name, 0):
            args = case.with_arrays([minijax.numpy.asarray(x) for x in case.arrays()])
            usual = value(minijax, f, case, args)
            with minijax.disable_jit():
                here = value(minijax, f, case, args)
            assert isinstance(here, Refused) == isinstance(usual, Refused), (case, here, usual)
            for x, y in zip(here, usual, strict=True) if isinstance(usual, list) else ():
                assert not hasattr(x, "dtype") or (x.dtype, x.shape) == (y.dtype, y.shape), case
                if minijax.numpy.issubdtype(getattr(y, "dtype", bool), np.number):
                    np.testing.assert_allclose(x, y, 1e-3, 1e-5, err_msg=str(case))


# Which arguments are weak, or have 64 bits: all, the first, all others.
AMONG_OTHERS = (lambda k: True, lambda k: k == 0, lambda k: k > 0)

# Where JAX's answer depends on the way that it takes: by chance, and of no use.
WEAK_BY_CHANCE = {"numpy.diagonal": "of a square matrix strong, of another weak",
                  "numpy.logical_and": "of two scalars as weak as one of them, for some dtypes"}
WEAK_BY_CHANCE |= dict.fromkeys(("numpy.logical_or", "numpy.logical_xor"),
                                WEAK_BY_CHANCE["numpy.logical_and"])
WEAK_BY_CHANCE |= dict.fromkeys(("scipy.special.rel_entr", "scipy.special.kl_div"),
                                "of a scalar and an array as weak as both, of two arrays strong")
WIDE_BY_CHANCE = {"scipy.special.sph_harm_y": "as wide as the widest of its whole numbers"}


@pytest.mark.parametrize(("module", "name"), [
    row for row in NAMES if ".".join(row) not in WEAK_BY_CHANCE], ids=str)
def test_weak_arguments_have_results_as_weak_as_those_of_jax(module, name, answers):
    for case, which in itertools.product(every_second(module, name, 0), AMONG_OTHERS):
        same_types(answers, module, name, case, functools.partial(as_weak, which))


def as_weak(which: Callable[[int], bool], k: int, x: np.ndarray) -> dict[str, Any]:
    return {"dtype": x.dtype, "weak_type": which(k) and x.dtype in (np.float32, np.int32)}


def derivative_types(lib: Any, f: Callable, case: Call, given: Callable) -> Any:
    """Types of results of a case, cotangents of its float32 arguments, tangents: all as weak."""
    def program(*arrays: Any) -> list:
        flat, tree = lib.tree_util.tree_flatten(case.with_arrays(arrays))
        smooth = [i for i, x in enumerate(flat) if is_smooth(x)]

        def of_smooth(*xs: Any) -> list:
            given = dict(zip(smooth, xs, strict=True))
            whole = tree.unflatten([given.get(i, x) for i, x in enumerate(flat)])
            return [y for y in leaves(lib, case.run(f, whole, lib)) if is_smooth(y)]
        xs = tuple(flat[i] for i in smooth)
        outs, back = lib.vjp(of_smooth, *xs)
        return leaves(lib, [outs, back(outs), lib.jvp(of_smooth, xs, xs)[1]])

    arguments = [lib.ShapeDtypeStruct(x.shape, **given(k, x))
                 for k, x in enumerate(case.arrays())]
    return attempt(lambda: [(x.shape, str(x.dtype), x.weak_type)
                            for x in lib.eval_shape(program, *arguments)])


# A derivative is as weak as the formula that JAX has for it: where ours is another one.
OTHER_FORMULA = """
lax.conv_general_dilated_local lax.cumlogsumexp lax.cummax lax.cummin lax.cumprod lax.digamma
lax.scatter_max lax.scatter_min nn.dot_product_attention nn.sparse_plus numpy.choose numpy.cross
numpy.dot numpy.einsum numpy.fill_diagonal numpy.histogramdd numpy.inner numpy.insert numpy.interp
numpy.intersect1d numpy.linalg.cross numpy.linalg.eigvalsh numpy.linalg.lstsq
numpy.linalg.matrix_norm numpy.linalg.multi_dot numpy.linalg.norm numpy.linalg.pinv numpy.linalg.qr
numpy.linalg.svdvals numpy.linalg.vecdot numpy.linalg.vector_norm numpy.matvec numpy.median
numpy.nanpercentile numpy.nanquantile numpy.pad numpy.percentile numpy.place numpy.polyval
numpy.quantile numpy.radians numpy.roll numpy.setxor1d numpy.vdot numpy.vecdot numpy.vecmat
scipy.special.digamma scipy.special.exp1 scipy.special.expn scipy.special.sici
scipy.special.zeta""".split()


@pytest.mark.parametrize(("module", "name"), [
    row for row in NAMES if ".".join(row) not in (*WEAK_BY_CHANCE, *OTHER_FORMULA)
    and row[1] not in SLOW], ids=str)
def test_derivatives_are_as_weak_as_those_of_jax(module, name, answers):
    smooth = [case for case in cases(module, name, TABLE[module][name])
              if any(map(is_smooth, case.arrays()))]
    for case, which in itertools.product(smooth, AMONG_OTHERS):
        same_types(answers, module, name, case, functools.partial(as_weak, which),
                   of=derivative_types)


@pytest.fixture
def with_64_bits():
    for lib in (minijax, jax):
        lib.config.update("jax_enable_x64", True)
    yield
    for lib in (minijax, jax):
        lib.config.update("jax_enable_x64", False)


@pytest.mark.parametrize(("module", "name"), [
    row for row in NAMES if ".".join(row) not in WIDE_BY_CHANCE], ids=str)
def test_arguments_of_64_bits_among_others_have_results_of_jaxs_types(
        module, name, with_64_bits, answers):
    wide = {np.dtype("int32"): np.dtype("int64"), np.dtype("float32"): np.dtype("float64")}
    for case, which in itertools.product(every_second(module, name, 1), AMONG_OTHERS):
        same_types(answers, module, name, case, lambda k, x, which=which: {
            "dtype": wide.get(x.dtype, x.dtype) if which(k) else x.dtype})


# What JAX's answers depend on, beside the arguments: what is made of them here.
SOURCES = digest(*(path.read_text() for path in sorted(Path(__file__).parent.glob("public/*.py"))),
                 *map(inspect.getsource, (value, slopes, everything, types, derivative_types)))

CONCRETE_NAMES = [(module, name) for module, table in CONCRETE.items() for name in table]


@pytest.mark.parametrize(("module", "name"), CONCRETE_NAMES, ids=map(".".join, CONCRETE_NAMES))
def test_agrees_with_jax_on_known_values(module, name, answers):
    def result(lib: Any, case: Call) -> Any:
        """The name of its type, and its leaves."""
        args = jax.tree_util.tree_map(
            lambda x: lib.numpy.asarray(x) if isinstance(x, np.ndarray) else x, case.args)
        whole = attempt(lambda: case.run(getattr(getattr(lib, module), name), args, lib))
        if isinstance(whole, Refused):
            return whole
        return [type(whole).__name__.replace("ArrayImpl", "Array"), *leaves(lib, whole)]

    for case in cases(module, name, CONCRETE[module][name]):
        ours = result(minijax, case)
        answers.check(answers.key(SOURCES, "known", module, name, case),
                      lambda theirs, ours=ours, case=case: assert_same(ours, theirs, case),
                      lambda case=case: result(jax, case))


# Here, for answers are recorded under the text of the tables.
WITHOUT_ARRAYS = {**dict.fromkeys(("lax.create_token", "lax.after_all"), "tokens are no arrays"),
                  **dict.fromkeys(("lax.psend", "lax.precv"), "refused; tests/test_sharding.py"),
                  "lax.stage": "no operation; its docstring"}


def test_every_public_function_is_here():
    def names(lib: Any, module: str) -> set[str]:
        members = inspect.getmembers(operator.attrgetter(module)(lib), callable)
        return {f"{module}.{name}" for name, _ in members if not name.startswith("_")}

    whole = ("numpy", "lax", "nn")  # which hold what is public alone
    public = {name for module in TABLE for name in names(minijax, module) & (
        names(minijax if module in whole else jax, module))}
    tested = {f"{module}.{name}" for table in (TABLE, CONCRETE)
              for module, rows in table.items() for name in rows}
    missing = public - tested - {*NOT_HERE, *WITHOUT_ARRAYS}
    assert not missing, f"add a row, or a reason: {sorted(missing)}"
    assert not (tested | set(NOT_HERE)) - public, "rows for what is not public"
