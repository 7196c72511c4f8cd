"""Every law on every primitive, from the examples of its block; and the laws themselves tested.

A law takes a primitive and its cases and fails with an AssertionError; readers of the course run
those of `minijax.notebook.laws` on primitives of their own.  Adding a primitive adds its tests;
planting a wrong rule into any of its slots must make some law fail.
"""

import ast
import contextlib
import functools
import importlib
import itertools
import os
import pkgutil
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax import control_flow, core, custom, dtypes, lax, placement, primitives, transforms
from minijax.compiler import schedule
from minijax.compiler.scalars import OPS
from minijax.core import Array, SLOTS, Primitive, cannot
from minijax.core.jaxpr import jaxpr_as_fun, subjaxprs
from minijax.experimental.jet import jet
from minijax.notebook import laws
from minijax.notebook.laws import (
    Case, a_new_nan_is_declared, check_primitive, check_slots, compiled_is_the_meaning, direction,
    evaluation_is_the_meaning, is_key, jit_of_jit_is_jit, jvp_does_not_change_the_primal,
    jvp_is_the_slope, linearize_is_jvp, no_examples_are_of_the_type_of_two, numbers, same,
    slope_of_slope_is_symmetric, smooth, the_meaning_has_the_type_that_was_promised,
    transpose_of_transpose_is_the_operation, vjp_agrees_with_jvp, vmap_is_a_python_loop,
    vmap_of_vmap_is_two_loops, with_as_many)
from minijax.primitives.algebra import in_parts
from minijax.primitives.ad_util import zeros
from tests import ranks, sanitiser
from tests.checker import each_nest_by_itself, loops_of
from tests.generated.running import quick_compiler


def every_block():
    for package in (primitives, control_flow, custom, lax, placement, transforms):
        for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            for value in vars(importlib.import_module(info.name)).values():
                if isinstance(value, Primitive):
                    yield value


def every_primitive():
    return {p.name: p for p in every_block() if callable(p.examples)}


PRIMITIVES = every_primitive()
LARGE = bool(os.environ.get("LARGE"))  # run every law at every size

# Those whose programs take long to compile, and which of their examples do for a law.
LONG = {**dict.fromkeys(("zeta", "digamma", "lgamma"), slice(None, None, 4)),
        **dict.fromkeys(("igamma", "regularized_incomplete_beta"), slice(None, None, 3)),
        **dict.fromkeys(("igammac", "igamma_grad_a"), slice(1, None, 2))}

# Whose laws are tested elsewhere, and why.
WITHOUT_EXAMPLES = {
    **dict.fromkeys(("all_gather", "all_gather_invariant", "all_to_all", "axis_index", "ppermute",
                     "psum", "psum_invariant", "pmax", "pmin", "pvary",
                     "ragged_all_to_all"), "they need a named axis"),
    **dict.fromkeys(("across_reduce", "across_gather", "across_exchange", "across_permute", "rank"),
                    "they need ranks: tests/placement/test_partition.py"),
    **dict.fromkeys(("pure_callback", "io_callback"), "Python computes their results"),
    "rng_uniform": "no two evaluations agree",
    "random_gamma": "samplers call it: tests/public",
    "custom_lin": "it is only ever transposed",
    **dict.fromkeys(("debug_callback", "check", "dce_sink"), "they have no result")}
_FORWARD = ("jvp_does_not_change_the_primal", "jvp_is_the_slope", "slope_of_slope_is_symmetric",
            "derivatives_along_a_curve_are_slopes_of_slopes", "linearize_is_jvp",
            "vjp_agrees_with_jvp")
_REVERSE = ("vjp_agrees_with_jvp", "transpose_of_transpose_is_the_operation")
EXEMPT = {
    **{("custom_vjp_call", law): "it refuses forward mode" for law in (
        *_FORWARD, "no_examples_are_of_the_type_of_two")},
    **{(name, "compiled_is_the_meaning_at_sizes_where_loops_change"): "a repeated matrix is "
       "singular" for name in ("cholesky", "lu", "qr", "eigh", "svd", "triangular_solve",
                               "custom_linear_solve", "solve")},
    **{(name, "compiled_complex_numbers_are_the_meaning"): "a row of jax_differences.toml" for name
       in ("cholesky", "lu", "qr", "eigh", "svd", "triangular_solve", "solve")},
    **{("sharding_constraint", law): "it names a mesh of one device; "
       "tests/placement/test_partition.py has others" for law in (
           "blocks_are_the_meaning", "blocks_are_the_meaning_of_what_is_derived")},
    ("div", "vmap_is_a_python_loop"): "1 / 1e-40 is infinite, in JAX, too: "
    "tests/primitives/test_algebra.py",
    ("top_k", "compiled_complex_numbers_are_the_meaning"): "its function refuses complex numbers",
    **{(name, "compiled_is_the_meaning_at_sizes_where_loops_change"): "its errors are those of "
       "the largest number: tests/numpy/test_fft.py holds them, at all sizes"
       for name in ("fourier", "of_real", "to_real")},
    ("unstack", "compiled_is_the_meaning_at_sizes_where_loops_change"): "it would have as many "
    "results as there are rows",
    **{("while", law): "it refuses reverse mode" for law in _REVERSE},
    **{(name, "slope_of_slope_is_symmetric"): "its slope has no slope, as in JAX"
       for name in ("igamma", "igammac")},
    **{("regularized_incomplete_beta", law): "it has no slope in its first arguments, as in JAX"
       for law in _FORWARD},
    **{("composite", law): "it has no rules but its meaning, as in JAX" for law in (
        *_FORWARD, *_REVERSE, "no_examples_are_of_the_type_of_two", "vmap_is_a_python_loop",
        "vmap_of_vmap_is_two_loops")},
    **{("custom_vmap_call", law): "it refuses reverse mode" for law in (
        "linearize_is_jvp", *_REVERSE)},
    **{("rng_bit_generator", law): "one key draws for a whole batch, as in JAX: "
       "tests/primitives/test_bit_generators.py"
       for law in ("vmap_is_a_python_loop", "vmap_of_vmap_is_two_loops")},
    **{(name, "transpose_of_transpose_is_the_operation"): "it is like one that is linear, of the "
       "examples, and has no transpose in JAX" for name in (
           "nextafter", "reduce", "sort", "stop_gradient", "top_k")},
    ("of_real", "transpose_of_transpose_is_the_operation"): "`fft` has it",
    ("sort", "complex_numbers_have_a_formula_or_are_refused"): "parts are more operands: pairs.py",
    **{(name, "a_new_nan_is_declared"): "JAX does not look for nans of its, either" for name in (
        "bitcast_convert_type", "gather", "select_and_scatter_add")},
    ("rng_bit_generator", "three_at_once_have_the_loops_of_each"): "what one nest has loaded for "
    "others is loaded again after a duplicate",
    ("stop_gradient", "jvp_is_the_slope"): "it hides its slope; that is what it is for",
    **{(name, law): "it reads one triangle, and its slope is that along symmetric changes, as "
       "in JAX: tests/primitives/test_linalg.py" for name in ("cholesky", "eigh")
       for law in ("jvp_is_the_slope", "slope_of_slope_is_symmetric")}}


def cases(p):
    chosen = slice(None) if LARGE else LONG.get(p.name, slice(None))
    return [Case(p, example) for example in p.examples()[chosen]]


# ── The laws ─────────────────────────────────────────────────────────────────────────────────


def every_slot_is_filled(p, cases):
    check_slots(p)
    assert cases or p.name in WITHOUT_EXAMPLES, f"{p} brings no example"


# At so many elements loops come in blocks and tiles, and threads share them. Made longer: every
# axis, the first, the last.
SIZES = [(6_000, "all"), (6_000, "first"), (6_000, "last"), (300_000, "all")]
if LARGE:
    SIZES += [(70, "all"), (70, "last"), (300_000, "first"), (300_000, "last")]


# For each number NumPy takes as long as for thousands of others.
MANY_STEPS = ("igamma", "igammac", "igamma_grad_a", "random_gamma_grad",
              "regularized_incomplete_beta")


def sizes_of(p):
    """All of them; one, in turn, of what has no loop of its own: all such operations share one."""
    turn = list(PRIMITIVES).index(p.name) % len(SIZES)
    if p.name in MANY_STEPS and not LARGE:
        return SIZES[:1]
    return SIZES if LARGE or p.loop else SIZES[turn:turn + 1]


def longer(case, size, which):
    """The example with its arrays repeated along some axes, by a factor and one; or None."""
    arrays = [numbers(x) for x in case.args]
    most = max(arrays, key=lambda x: x.size, default=np.zeros(()))
    if not most.ndim or not most.size or any(map(is_key, case.args)):
        return None
    if any(subjaxprs(case.example.params)) or callable(case.example.params.get("call")):
        return None  # a program is for the types of its arguments
    factor = size / most.size
    factor = int(factor ** (1 / most.ndim) if which == "all" else factor)
    found = []
    for x in arrays:
        for axis in {"all": range(x.ndim), "first": range(x.ndim)[:1],
                     "last": range(x.ndim)[-1:]}[which]:
            n = x.shape[axis]
            if x.size * factor > 2 * size:
                return None
            x = x.take(np.arange(n * factor + 1) % n if n else [], axis)
        if "prod" in case.p.name and dtypes.issubdtype(x.dtype, np.floating):
            x = np.where(x < 0, -1, 1).astype(x.dtype)  # else they overflow on the way
        found.append(x)
    example = case.example._replace(args=tuple(found))
    try:
        with case.mode():
            longer = Case(case.p, example)
            outs = case.p.type_of([x.aval for x in longer.args], example.params)
            return longer if sum(x.size for x in outs) < 4 * size else None
    except (TypeError, ValueError, IndexError):
        return None  # its parameters fit the short arrays only


def compiled_is_the_meaning_at_sizes_where_loops_change(p, cases):
    for size, which in sizes_of(p):
        by_dtype = {}
        for case in cases:
            longer_case = longer(case, size, which)
            if longer_case is not None:
                kinds = tuple(str(x.dtype) for x in case.args)
                by_dtype.setdefault(kinds, []).append(longer_case)
        chosen = [c for group in by_dtype.values() for c in group[:2 if LARGE else 1]]
        compiled_is_the_meaning(p, chosen if LARGE or size < 10_000 else chosen[:1], True)


def in_complex_numbers(case):
    """The example with complex numbers in place of floats, where the operation takes them."""
    if not case.has_floats(np.float64, np.float32) or any(subjaxprs(case.example.params)):
        return None
    args = [in_parts(x, np.roll(x, 1)) if dtypes.issubdtype(x.dtype, np.floating) else x
            for x in map(numbers, case.args)]
    found = Case(case.p, case.example._replace(args=tuple(args)))
    try:
        with found.mode():
            found.run(*found.args)
        return found
    except (TypeError, ValueError, NotImplementedError):
        return None


NARROW = [{np.dtype(wide): np.dtype(getattr(ml_dtypes, narrow)) for wide, narrow in pairs.items()}
          for pairs in ({"float32": "float8_e4m3fn", "int32": "int4", "uint8": "uint4"},
                        {"float32": "float8_e5m2", "int8": "int4", "uint32": "uint4"})]


def in_narrow_numbers(case, narrow):
    """The example with narrow numbers in place of wide ones, where the operation takes them."""
    params, args = case.example.params, list(map(numbers, case.args))
    if any(map(is_key, case.args)) or any(subjaxprs(params)) or callable(params.get("call")):
        return None
    if not narrow.keys() & {x.dtype for x in args}:
        return None
    floats = [x for x in args if x.dtype.kind == "f"]  # the integers beside them may be places
    with np.errstate(all="ignore"):
        args = [x.astype(narrow.get(x.dtype, x.dtype)) if x.dtype.kind == "f" or not floats else x
                for x in args]
    found = Case(case.p, case.example._replace(args=tuple(args)))
    try:
        case.p.type_of([x.aval for x in found.args], params)
        return found
    except (TypeError, ValueError, NotImplementedError):
        return None


def compiled_narrow_numbers_are_the_meaning(p, cases):
    for narrow in NARROW:
        found = [in_narrow_numbers(case, narrow) for case in cases if not case.x64]
        compiled_is_the_meaning(p, list(filter(None, found))[::3])


def complex_numbers_have_a_formula_or_are_refused(p, cases):
    if p.complex_parts or p.complex_loop or p.program:
        return
    for case in filter(None, (*cases, *map(in_complex_numbers, cases))):
        assert any(subjaxprs(case.example.params)) or not any(
            numbers(x).dtype.kind == "c" for x in case.args), (
            f"{case} takes complex numbers: it needs complex_parts, or complex_loop=LEFT_TO_NUMPY")


def is_tame(case):
    """Whether no number is infinite, nan, or so large or small that functions of it may be."""
    sizes = np.concatenate([np.abs(numbers(case.args[i])).ravel() for i in case.varying])
    return np.all((sizes == 0) | (sizes > 1e-30) & (sizes < 80))


def compiled_complex_numbers_are_the_meaning(p, cases):
    """Special values are the business of the corners."""
    found = filter(None, map(in_complex_numbers, cases))
    compiled_is_the_meaning(p, [c for c in found if is_tame(c)])


def narrow_floats_are_rounded_once(p, cases):
    """At every float16: a formula that rounds after each of its steps is wrong at a tenth."""
    if any(len(c.args) != 1 or c.example.params for c in cases) or not any(
            numbers(c.args[0]).dtype == np.float16 for c in cases):
        return
    every = np.arange(2 ** 16, dtype=np.uint16).view(np.float16)
    x = every[np.isfinite(every)]
    with np.errstate(all="ignore"):
        [meaning], [compiled] = p.impl(x), [minijax.jit(p.bind)(x)]
    differ = ~((np.asarray(compiled) == meaning) | np.isnan(meaning))
    assert np.mean(differ) < 0.005, f"{np.mean(differ):.1%} of all float16 differ"


def the_text_as_python_is_the_meaning(p, cases):
    from minijax.compiler.lowered import Lowered
    from tests.running_text import run_text
    for c in cases[:1 if p.name in LONG and not LARGE else 4]:
        if any(map(is_key, c.args)):
            continue
        with c.mode():
            closed = minijax.make_jaxpr(lambda *args, c=c: c.run(*args))(*c.args)
            kernel = Lowered(closed, p.name).kernel
            with np.errstate(all="ignore"):
                found = run_text(kernel, list(map(numbers, c.args)))
            wanted = c.run(*c.args)
            same([x.view(y.dtype).reshape(y.shape) if y.dtype.kind == "c" else x
                  for x, y in zip(found, wanted, strict=True)], wanted, c)


def memory_holds_what_is_read(p, cases):
    for c in cases[:8]:
        if any(map(is_key, c.args)) or max(
                [numbers(x).size for x in c.args], default=0) > 500:
            continue
        with c.mode():
            sanitiser.check(lambda *args, c=c: c.run(*args), *c.args)


def three_at_once_have_the_loops_of_each(p, cases):
    """Equal nests are lowered once: all that their loops depend on is in their key."""
    for c in cases[:4]:
        def three(*copies, c=c):
            return [c.run(*map(twice, args)) for args in copies]

        def twice(x):
            return x * 2 if isinstance(x, Array) and x.dtype == np.float32 else x
        with c.mode():
            program = minijax.jit(three).trace(*[c.args] * 3).lower()._lowered.program
            made = schedule.lower_to_kernel(program, "f")
            with each_nest_by_itself():
                assert loops_of(made) == loops_of(schedule.lower_to_kernel(program, "f"))


def derivatives_along_a_curve_are_slopes_of_slopes(p, cases):
    """Where a block has a rule for them; others follow from the slope."""
    if not (p.jet or p.extend):
        return
    for case in smooth(cases)[:4]:
        with case.mode():
            point = case.point()
            one, two = ([direction(x, turn) for x in point] for turn in (1, 2))

            def at(time, case=case, point=point, one=one, two=two):
                along = [minijax.lax.convert_element_type(factor, v.dtype) * v
                         for factor, line in ((time, one), (time * time / 2, two)) for v in line]
                return case.of_varying(*(x + u + v for x, u, v in zip(
                    point, along[:len(point)], along[len(point):], strict=True)))

            _, found = jet(case.of_varying, point, [[u, v, zeros(u.aval)] for u, v in zip(
                one, two, strict=True)])
            now = np.float64(0) if case.x64 else np.float32(0)
            for order in range(3):
                at = functools.partial(lambda f, time, now=now: minijax.jvp(
                    f, [time], [now + 1])[1], at)
                same([each[order] for each in found], at(now), case, 1e-9 if case.x64 else 2e-4)


def blocks_are_the_meaning(p, cases):
    """Each axis of each argument cut, and one axis of all: blocks and communication give the same.

    In one of twelve ways, in turn; with LARGE in all.
    """
    turn = itertools.count(list(PRIMITIVES).index(p.name))
    for case in cases if LARGE or p.name not in LONG else []:
        check_blocks(case, case.run, case.args, lambda: LARGE or next(turn) % 12 == 0)


def blocks_are_the_meaning_of_what_is_derived(p, cases):
    """Of the batch, the derivative and the pull-back of an example in sixteen; with LARGE of all.
    """
    turn = itertools.count(list(PRIMITIVES).index(p.name))
    for case in cases if LARGE or p.name not in LONG else []:
        if LARGE or next(turn) % 16 == 0:
            with case.mode():
                derived = list(programs_derived_from(case))
            for function, args in derived:
                check_blocks(case, function, args, lambda: LARGE or next(turn) % 4 == 0)


def check_blocks(case, function, args, is_chosen):
    with case.mode(), np.errstate(all="ignore"):
        chosen = [cut for cut in ranks.every_cut(args) if is_chosen()]
        if not chosen:
            return
        try:
            program = ranks.staged(function, args)
            wanted = jaxpr_as_fun(program)(*args)
        except (NotImplementedError, ValueError, TypeError):
            return  # there is no such derivative
        for count, layouts in chosen:
            _, outs = ranks.run(program, ranks.mesh_of(count), layouts, args)
            tolerance = 1e-4 if {x.dtype for x in wanted} <= {np.dtype("float32")} else None
            same(outs, wanted, (case, layouts), tolerance, summed=True)


def programs_derived_from(case):
    """Functions of flat arguments, and arguments."""
    if case.args:
        yield (lambda *xs: minijax.vmap(lambda *args: case.run(*args))(*xs),
               with_as_many(case, [0] * len(case.args), 2))
    if case.varying and case.is_finite:
        point = case.point()
        count = len(point)
        yield (lambda *xs: list(itertools.chain(*minijax.jvp(
            case.of_varying, xs[:count], xs[count:]))), [*point, *map(direction, point)])
        yield (lambda *xs: minijax.vjp(case.of_varying, *xs[:count])[1](list(xs[count:])),
               [*point, *(direction(y, 2) for y in case.of_varying(*point))])


LAWS = [
    every_slot_is_filled, a_new_nan_is_declared, blocks_are_the_meaning,
    blocks_are_the_meaning_of_what_is_derived,
    narrow_floats_are_rounded_once,
    the_meaning_has_the_type_that_was_promised, evaluation_is_the_meaning,
    vmap_is_a_python_loop, vmap_of_vmap_is_two_loops, no_examples_are_of_the_type_of_two,
    jvp_does_not_change_the_primal,
    jvp_is_the_slope, slope_of_slope_is_symmetric, derivatives_along_a_curve_are_slopes_of_slopes,
    linearize_is_jvp, vjp_agrees_with_jvp,
    transpose_of_transpose_is_the_operation, compiled_is_the_meaning, jit_of_jit_is_jit,
    compiled_is_the_meaning_at_sizes_where_loops_change,
    complex_numbers_have_a_formula_or_are_refused, compiled_complex_numbers_are_the_meaning,
    compiled_narrow_numbers_are_the_meaning, the_text_as_python_is_the_meaning,
    memory_holds_what_is_read, three_at_once_have_the_loops_of_each]


OF_MACHINE_CODE = {compiled_is_the_meaning, jit_of_jit_is_jit,
                   compiled_is_the_meaning_at_sizes_where_loops_change,
                   compiled_complex_numbers_are_the_meaning,
                   compiled_narrow_numbers_are_the_meaning}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", PRIMITIVES)
def test_law(name, law):
    p = PRIMITIVES[name]
    if (name, law.__name__) not in EXEMPT and (
            name not in WITHOUT_EXAMPLES or law is every_slot_is_filled):
        with quick_compiler(law not in OF_MACHINE_CODE):
            law(p, cases(p))


# ── The laws tested: a wrong rule in any slot makes some law fail ────────────────────────────

def spoiled(x):
    """Other values of the same type."""
    x = np.asarray(x)
    if x.dtype == bool:
        return ~x
    return x + x + x.dtype.type(1) if x.dtype.kind != "V" else x


def wrong_impl(p, rule):
    return lambda *args, **params: [spoiled(x) for x in rule(*args, **params)]


def wrong_abstract_eval(p, rule):
    def other(aval):
        return aval.update(dtype=np.dtype("int8" if aval.dtype != np.int8 else "int16"))
    return lambda *avals, **params: [other(aval) for aval in rule(*avals, **params)]


def wrong_jvp(p, rule):
    def twice(primals, tangents, **params):
        outs, slopes = rule(primals, tangents, **params)
        return outs, [_doubled(t) for t in slopes]
    return twice


def _doubled(t):
    if not isinstance(t, core.Zero):
        return minijax.lax.add(t, t)
    if t.aval.dtype == dtypes.float0:
        return t
    return minijax.lax.full(t.aval.shape, 1, t.aval.dtype)


def wrong_transpose(p, rule):
    def twice(cotangents, *args, **params):
        return [ct if ct is None else _doubled(ct) for ct in rule(cotangents, *args, **params)]
    return twice


def wrong_batch(p, rule):
    def backwards(axis, args, dims, **params):
        outs, out_dims = rule(axis, args, dims, **params)
        return [x if d is None else minijax.lax.rev(x, (d,))
                for x, d in zip(outs, out_dims, strict=True)], out_dims
    return backwards


def spoiled_scalar(s, x):
    if x.dtype == bool:
        return s.not_(x)
    return s.add(x, 1) if x.dtype.kind in "iu" else s.add(s.add(x, x), 1)


def wrong_element(p, rule):
    def other(s, *args, **params):
        found = rule(s, *args, **params)
        if isinstance(found, list | tuple):
            return [spoiled_scalar(s, x) for x in found]
        return spoiled_scalar(s, found)
    return other


def wrong_loop(p, rule):
    def other(b, outputs, operands, **params):
        rule(b, outputs, operands, **params)
        for out in outputs:
            if 0 not in out.shape:
                first = (0,) * len(out.shape)
                b.store(out, first, spoiled_scalar(b, b.load(out, first)))
    return other


def wrong_jet(p, rule):
    return lambda n, *curves, **params: _doubled(rule(n, *curves, **params))


def wrong_extend(p, rule):
    def twice(derive, count, args, companions, **params):
        return rule(derive, count, args, [[_doubled(x) for x in row] for row in companions],
                    **params)
    return twice


# Where nothing can notice, and why.
UNSEEN = {
    # its results are complex, so compiled programs call its meaning: tests/lax/test_linalg.py
    "impl": {"eig"},
    "element": {"real", "imag", "complex", "conj"},  # pairs are made before loops are
    # inlined before loops are made, and what is left to NumPy
    "loop": {"jit", "custom_jvp_call", "custom_vjp_call", "eig"},
    # fma's derivative is made of products and sums, that of a derived primitive of its program's
    # (tests/transforms/test_derived.py); a rule of the user's runs before transposing
    "transpose": {"fma", "symmetric_product", "custom_jvp_call"},
    "extend": {"custom_vjp_call"},  # has no forward mode to compare with: test_jet.py
}
WRONG = {"impl": wrong_impl, "abstract_eval": wrong_abstract_eval, "jvp": wrong_jvp,
         "transpose": wrong_transpose, "jet": wrong_jet, "extend": wrong_extend,
         "batch": wrong_batch, "element": wrong_element,
         "loop": wrong_loop, "library": wrong_loop}
# The first that notices is enough: interpreting the text is quicker than compiling it.
WATCHING = laws.WATCHING | {
    **{slot: (the_text_as_python_is_the_meaning, *laws.WATCHING[slot][:1]) for slot in
       core.LOWERINGS},
    **dict.fromkeys(("jet", "extend"), (derivatives_along_a_curve_are_slopes_of_slopes,)),
    "impl": (evaluation_is_the_meaning, the_text_as_python_is_the_meaning, compiled_is_the_meaning),
    "loop": (the_text_as_python_is_the_meaning, compiled_is_the_meaning, evaluation_is_the_meaning)}


def can_be_wrong(p, slot, cases):
    """Whether the slot has a rule, and the primitive a way to show what the rule does."""
    if not callable(getattr(p, slot)):
        return False
    if slot in ("jvp", "transpose"):
        with contextlib.suppress(NotImplementedError, TypeError):
            for case in smooth(cases):
                with case.mode():
                    if any(y.size for y in case.of_varying(*case.point())):
                        return True
        return False
    if slot == "loop" and p.program is not None:
        return False  # a program in its place is inlined before loops are made
    if slot == "batch":
        return any(case.args for case in cases)
    return True


def broken(law, p, cases):
    try:
        law(p, cases())
    except Exception:
        return True
    return False


def test_no_primitive_of_the_package_has_an_empty_slot():
    for p in every_block():
        check_slots(p)


# Files with more than three primitives in one table, and why.
WITH_A_TABLE = {
    "compiler/algebraic_simplification.py": "the laws of real numbers that XLA applies",
    "as_jax/traces.py": "which operations take JAX's parameter for a sharding",
    "experimental/key_reuse/_core.py": "which operations use keys up, as JAX's rules have it",
    "experimental/checked.py": "how failures leave loops and functions with rules of the user's",
    "experimental/sparse/transform.py": "what sparsify makes of operations, as JAX's registry",
    "placement/carried_sums.py": "what is linear in its first operand, beside literals",
    "transforms/recording.py": "the functions of NumPy that only read"}


def tables_of_primitives(source, names):
    """The primitives in each literal of a module, and in each string of words, that has many."""
    for node in ast.walk(ast.parse(source)):
        items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
        words = [ast.unparse(x).strip("'").rpartition(".")[2] for x in items if x is not None]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split() if len(node.value.split()) < 1000 else ()
        found = [word for word in words if word in names or word.endswith("_p")]
        if len(found) > 3 and 4 * len(found) > len(words):
            yield found


def test_what_is_said_of_each_primitive_stands_in_its_block():
    """And not in a table elsewhere, which who adds a primitive would have to know."""
    names = {p.name for p in every_block()} - set(OPS) - {"name"}
    package = Path(minijax.__file__).parent
    tables = {path.relative_to(package).as_posix(): found for path in package.rglob("*.py")
              for found in tables_of_primitives(path.read_text(), names)}
    assert tables.keys() == WITH_A_TABLE.keys(), tables


@pytest.mark.parametrize("source", [
    "RULES = {'squeeze': f, 'transpose': g, 'rev': h, 'dot_general': k}",
    "RULES = {squeeze_p: f, transpose_p: g, contract.dot_general_p: h, rev_p: k}",
    "NAMES = frozenset('reduce_sum reduce_prod cumsum conv_general_dilated add mul'.split())",
    "FIRST, SECOND = ('squeeze', 'transpose', 'rev', 'dot_general'), None"])
def test_a_table_of_primitives_is_found(source):
    assert list(tables_of_primitives(source, PRIMITIVES.keys()))


def test_an_empty_slot_is_named():
    p = Primitive("half", impl=lambda x: [x / 2], abstract_eval=lambda x: [x])
    with pytest.raises(AssertionError, match="half has no jvp"):
        check_slots(p)


def test_a_reason_fills_a_slot_and_two_lowerings_do_not():
    why = cannot("it has no meaning")
    slots = dict.fromkeys(SLOTS, why)
    check_slots(Primitive("nothing", **slots, element=why))
    with pytest.raises(AssertionError, match="exactly one of element, loop, library"):
        check_slots(Primitive("nothing", **slots, element=why, loop=why))


@pytest.mark.parametrize(("slot", "law"), [
    ("impl", "compiled_is_the_meaning"), ("jvp", "jvp_is_the_slope"), ("batch", "vmap_is_a_python_"
     "loop"), ("transpose", "vjp_agrees_with_jvp"), ("element", "launches_are_the_meaning")])
def test_a_report_names_the_laws_that_a_wrong_rule_breaks(slot, law, monkeypatch):
    assert not check_primitive(lax.neg_p, lax.neg_p.examples()[:4]).broken
    monkeypatch.setattr(lax.neg_p, slot, WRONG[slot](lax.neg_p, getattr(lax.neg_p, slot)))
    report = check_primitive(lax.neg_p, lax.neg_p.examples()[:4])
    assert law in report.broken and "neg[{}](" in report.laws[law], report


@pytest.mark.of_tests
@pytest.mark.parametrize("slot", WRONG)
def test_a_wrong_rule_breaks_a_law(slot, monkeypatch):
    unnoticed = []
    for name, p in PRIMITIVES.items():
        if name in WITHOUT_EXAMPLES or not can_be_wrong(p, slot, cases(p)):
            continue
        with monkeypatch.context() as patch:
            patch.setattr(p, slot, WRONG[slot](p, getattr(p, slot)))
            count = 4 if slot in core.LOWERINGS else None  # compiling takes its time
            if not any(broken(law, p, lambda p=p, n=count: cases(p)[:n])
                       for law in WATCHING[slot]):
                unnoticed.append(name)
    assert not set(unnoticed) - UNSEEN.get(slot, set())


@pytest.mark.of_tests
@pytest.mark.parametrize("name", ["sinh", "concatenate", "reduce_max", "cholesky", "lu"])
def test_complex_numbers_without_a_formula_break_a_law(name, monkeypatch):
    p = PRIMITIVES[name]
    monkeypatch.setattr(p, "complex_parts", None)
    monkeypatch.setattr(p, "complex_loop", None)
    assert broken(complex_numbers_have_a_formula_or_are_refused, p, lambda: cases(p))


@pytest.mark.of_tests
@pytest.mark.parametrize("name", ["sub", "sin", "reduce_prod", "cumsum", "dot_general",
                                  "scatter-add", "cholesky", "fourier", "igamma", "solve"])
def test_a_nan_that_is_not_declared_breaks_a_law(name, monkeypatch):
    p = PRIMITIVES[name]
    monkeypatch.setattr(p, "may_produce_nan", False)
    assert broken(a_new_nan_is_declared, p, lambda: cases(p))


@pytest.mark.of_tests
@pytest.mark.parametrize(("name", "change"), [
    ("reduce_max", {"reduced": {}}), ("reduce_sum", {"reduced": dict.fromkeys(range(3), "max")}),
    ("transpose", {"results": [range(3)]}), ("dot_general", {"reduced": {}}),
    ("broadcast_in_dim", {"sizes": {}}), ("cumsum", {"operands": [range(3)]}),
    ("scatter-add", {"start": None})])
def test_a_wrong_rule_for_cut_axes_breaks_a_law(name, change, monkeypatch):
    p = PRIMITIVES[name]
    rule = p.sharding
    monkeypatch.setattr(p, "sharding", lambda *types, **params: rule(*types, **params)._replace(
        **change))
    monkeypatch.setattr(sys.modules[__name__], "LARGE", True)
    assert broken(blocks_are_the_meaning, p, lambda: cases(p))


def dividing_by_how_many(axis, outs, dims):
    return outs, dims if 12 // axis.size else None


def taking_one_at_least(axis, outs, dims):
    return [x if d is None or axis.size else zeros(x.aval.update(
        shape=(*x.shape[:d], 1, *x.shape[d + 1:]))) for x, d in zip(outs, dims, strict=True)], dims


@pytest.mark.of_tests
@pytest.mark.parametrize("mistake", [dividing_by_how_many, taking_one_at_least])
def test_a_rule_that_forgets_batches_of_none_breaks_a_law(mistake, monkeypatch):
    law, unnoticed = no_examples_are_of_the_type_of_two, []
    for name, p in PRIMITIVES.items():
        if not can_be_wrong(p, "batch", cases(p)) or (name, law.__name__) in EXEMPT:
            continue
        with monkeypatch.context() as patch:
            rule = p.batch
            patch.setattr(p, "batch", lambda *args, rule=rule, **params: mistake(
                args[0], *rule(*args, **params)))
            if not broken(law, p, lambda p=p: cases(p)):
                unnoticed.append(name)
    assert not unnoticed


@pytest.mark.of_tests
@pytest.mark.parametrize(("name", "slot"), [
    ("sin", "element"), ("add", "element"), ("cumsum", "loop"), ("dot_general", "library")])
def test_compiled_code_shows_a_wrong_rule_too(name, slot, monkeypatch):
    p = PRIMITIVES[name]
    monkeypatch.setattr(p, slot, WRONG[slot](p, getattr(p, slot)))
    assert broken(compiled_is_the_meaning, p, lambda: cases(p)[:4])


def with_rule(name, slot, rule):
    return pytest.param(name, slot, rule, id=f"{name}-{slot}")


def dropping_a_term(p, primals, tangents, **params):
    out = p.bind(*primals, **params)
    return [out], [p.bind(tangents[0], primals[1], **params)]


def forgetting_the_sign(p, cotangents, x, y):
    [ct] = cotangents
    return [ct if isinstance(v, core.Undefined) and v.aval.shape == ct.shape else None
            for v in (x, y)]


@pytest.mark.of_tests
@pytest.mark.parametrize(("name", "slot", "rule"), [
    with_rule("transpose", "transpose", lambda p, cts, x, permutation: [
        p.bind(cts[0], permutation=permutation)]),  # not the inverse
    with_rule("transpose", "batch", lambda p, axis, args, dims, permutation: (
        [p.bind(minijax.numpy.moveaxis(args[0], dims[0], 0),
                permutation=(0, *(d + 1 for d in permutation[::-1])))], [0])),
    with_rule("cumsum", "transpose", lambda p, cts, x, axis, reverse: [
        p.bind(cts[0], axis=axis, reverse=reverse)]),  # not from the other end
    with_rule("dot_general", "jvp", dropping_a_term),
    with_rule("sub", "transpose", forgetting_the_sign),
    with_rule("mul", "jvp", dropping_a_term),
    with_rule("reduce_sum", "batch", lambda p, axis, args, dims, axes: (
        [p.bind(args[0], axes=axes)], [0])),  # axes of one example taken for those of the batch
    with_rule("select_n", "element", lambda p, s, index, which, *cases: cases[0](index)),
    with_rule("rev", "element", lambda p, s, index, x, dimensions: x(index)),
    with_rule("max", "jvp", lambda p, primals, tangents: ([p.bind(*primals)], [tangents[0]])),
])
def test_a_plausible_mistake_breaks_a_law(name, slot, rule, monkeypatch):
    p = PRIMITIVES[name]
    monkeypatch.setattr(p, slot, lambda *args, **params: rule(p, *args, **params))
    assert any(broken(law, p, lambda: cases(p)) for law in WATCHING[slot])
