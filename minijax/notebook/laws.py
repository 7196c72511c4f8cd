"""The laws of primitives: what the rules of one block owe each other, checked on its examples.

Builds on the public package.  A law takes a primitive and its cases, and fails with an
AssertionError; `tests/test_laws.py` runs these and others on every primitive of the package.
Chapter 30, *A primitive that is missing*.  In JAX: `tests/lax_autodiff_test.py`, and others.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minijax
from minijax import config, core, dtypes
from minijax.core import LOWERINGS, SLOTS, ArrayImpl, Cannot, Example, Primitive, ShapedArray
from minijax.core.jaxpr import subjaxprs

__all__ = ["check_primitive"]

# ── Arguments and comparisons ────────────────────────────────────────────────────────────────


class Case:
    """An example as arrays, within the mode (32 or 64 bits) that its dtypes ask for."""

    def __init__(self, p: Primitive, example: Example) -> None:
        self.p, self.example = p, example
        kinds = [np.asarray(x) for x in example.args if isinstance(x, np.ndarray | np.generic)]
        self.x64 = any(x.dtype in (np.float64, np.int64, np.uint64, np.complex128) for x in kinds)
        with self.mode():
            self.args = [as_array(x) for x in example.args]

    def mode(self) -> Any:
        return config.enable_x64(True) if self.x64 else contextlib.nullcontext()

    def run(self, *args: Any) -> list:
        return self.p.bind_list(*args, **self.example.params)

    def at(self, args: Iterable[Any]) -> Case:
        """The same example with other arguments."""
        there = copy.copy(self)
        there.args = list(args)
        return there

    @property
    def varying(self) -> list[int]:
        """The places of the arguments that have tangents."""
        return [i for i, x in enumerate(self.args) if dtypes.issubdtype(x.dtype, np.inexact)]

    def has_floats(self, double: Any, single: Any) -> bool:
        floats = {np.dtype(self.args[i].dtype) for i in self.varying}
        return bool(floats) and floats <= {np.dtype(double), np.dtype(single)}

    @property
    def is_finite(self) -> bool:
        return all(np.all(np.isfinite(numbers(self.args[i]))) for i in self.varying)

    def of_varying(self, *xs: Any) -> list:
        """The floating outputs as a function of the floating arguments."""
        args = list(self.args)
        for i, x in zip(self.varying, xs, strict=True):
            args[i] = x
        return [y for y in self.run(*args) if dtypes.issubdtype(y.dtype, np.inexact)]

    def point(self) -> list:
        return [self.args[i] for i in self.varying]

    def __repr__(self) -> str:
        avals = ", ".join(x.aval.str_short(True) for x in self.args)
        return f"{self.p}[{self.example.params}]({avals})"


Cases = Sequence[Case]
Law = Callable[[Primitive, Cases], None]


def is_key(x: Any) -> bool:
    return isinstance(x, core.Array) and core.has_key_dtype(x.aval)


def as_array(x: Any) -> Any:
    if isinstance(x, core.Array):
        return x
    buffer = np.array(x, dtypes.dtype(x), order="C")
    return ArrayImpl(buffer, ShapedArray(buffer.shape, buffer.dtype))


def numbers(x: Any) -> Any:
    return x._buffer if isinstance(x, ArrayImpl) else np.asarray(x)


TOLERANCE = {1: .26, 2: 2e-2, 4: 2e-5, 8: 1e-11}  # one unit of a float of a byte


def same(outs: Sequence, expected: Sequence, case: Any, tolerance: float | None = None,
         summed: bool = False) -> None:
    """They agree; where `summed`, but for errors as small beside the largest of them."""
    assert len(outs) == len(expected), case
    for x, y in zip(outs, expected, strict=True):
        x, y = numbers(x), numbers(y)
        assert x.dtype == y.dtype, (case, x.dtype, y.dtype)
        assert x.shape == y.shape, (case, x.shape, y.shape)
        if dtypes.issubdtype(x.dtype, np.inexact):
            size = x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1)
            wide = np.complex128 if x.dtype.kind == "c" else np.float64
            scale = tolerance or TOLERANCE[size]
            x, y = x.astype(wide), y.astype(wide)
            largest = np.max(np.abs(y), initial=1, where=np.isfinite(y)) if summed else 1
            np.testing.assert_allclose(x, y, rtol=scale, atol=scale * .1 * largest,
                                       err_msg=str(case))
        else:
            np.testing.assert_array_equal(x, y, err_msg=str(case))


def direction(x: Any, turn: int = 1) -> Any:
    """A tangent or cotangent without symmetries."""
    buffer = numbers(x)
    values: Any = np.cos(np.arange(buffer.size) * 1.7 + turn).reshape(buffer.shape) + .1
    if buffer.dtype.kind == "c":
        values = values + 1j * np.sin(values)
    return as_array(values.astype(buffer.dtype))


def varied(x: Any, turn: int) -> np.ndarray:
    """Another argument inside the same domain: the elements in another order."""
    buffer = numbers(x)
    if not buffer.ndim:  # signed integers may be places in an array
        return (buffer * (1 - .05 * turn) if dtypes.issubdtype(buffer.dtype, np.inexact)
                else buffer + turn if buffer.dtype.kind == "u" else buffer).astype(buffer.dtype)
    turns = [min(turn, n - 1) for n in buffer.shape]  # of two elements there is one other order
    return np.array(np.roll(buffer, turns, axis=tuple(range(buffer.ndim))), order="C")


def as_like(x: Any, buffer: Any) -> ArrayImpl:
    return ArrayImpl(np.array(buffer), x.aval)


def stack(xs: Sequence, dim: int) -> ArrayImpl:
    aval = xs[0].aval
    shape = (*aval.shape[:dim], len(xs), *aval.shape[dim:])
    return ArrayImpl(np.ascontiguousarray(np.stack([numbers(x) for x in xs], dim)),
                     aval.update(shape=shape))


# ── Slots, values, types ─────────────────────────────────────────────────────────────────────


def check_slots(p: Primitive) -> None:
    """Refuse a block with an empty slot; what has no meaning is filled with `cannot(reason)`."""
    for slot in SLOTS:
        rule = getattr(p, slot)
        assert isinstance(rule, Cannot) or callable(rule), (
            f'the primitive {p} has no {slot}; fill the slot, or say cannot("why")')
    filled = [slot for slot in LOWERINGS if getattr(p, slot) is not None]
    assert len(filled) == 1, (f"the primitive {p} must be lowered by exactly one of "
                              f"{', '.join(LOWERINGS)}; it has {', '.join(filled) or 'none'}")


def the_meaning_has_the_type_that_was_promised(p: Primitive, cases: Cases) -> None:
    if not callable(p.impl):
        return
    for case in cases:
        if any(map(is_key, case.args)):
            continue
        with case.mode(), np.errstate(all="ignore"):
            types = p.type_of([x.aval for x in case.args], case.example.params)
            outs = p.impl(*map(numbers, case.args), **case.example.params)
            for out, aval in zip(outs, types, strict=True):
                aval = core.physical_aval(aval)
                if aval.dtype != dtypes.float0:
                    assert np.asarray(out).dtype == aval.dtype, case
                assert np.shape(out) == aval.shape, case


def evaluation_is_the_meaning(p: Primitive, cases: Cases) -> None:
    if not callable(p.impl):
        return
    for case in cases:
        if any(map(is_key, case.args)):
            continue
        with case.mode(), np.errstate(all="ignore"):
            outs = p.impl(*map(numbers, case.args), **case.example.params)
            same(case.run(*case.args), [np.asarray(out) for out in outs], case)


EXTREMES = (0., -np.inf, 1., np.inf, -1e300)  # of short floats the last is infinite, too


def extreme(x: np.ndarray, turn: int) -> np.ndarray:
    """An array of the same type, of extreme numbers in turn; of integers the same."""
    if not dtypes.issubdtype(x.dtype, np.inexact):
        return x
    return np.resize(np.roll(EXTREMES, turn), x.shape).astype(x.dtype)


def a_new_nan_is_declared(p: Primitive, cases: Cases) -> None:
    """Also among infinities, zeros and the largest numbers."""
    for case in cases:
        if p.may_produce_nan or any(subjaxprs(case.example.params)) or any(map(is_key, case.args)):
            continue
        with case.mode(), np.errstate(all="ignore"):
            for turn in range(len(EXTREMES)):
                args = [extreme(numbers(x), turn * (1 + i)) for i, x in enumerate(case.args)]
                for out in p.rule("impl")(*args, **case.example.params):
                    if dtypes.issubdtype(np.asarray(out).dtype, np.inexact):
                        assert not np.any(np.isnan(out)), (case, args, out)


# ── Batches ──────────────────────────────────────────────────────────────────────────────────


def batched(case: Case, dims: Sequence[int | None]) -> tuple[list, list]:
    """`vmap` of an example along `dims`, and the same by a Python loop."""
    rows = [[x if d is None else as_like(x, varied(x, turn))
             for x, d in zip(case.args, dims, strict=True)] for turn in (0, 1, 2)]
    stacked = [x if d is None else stack([row[i] for row in rows], d)
               for i, (x, d) in enumerate(zip(case.args, dims, strict=True))]
    outs = minijax.vmap(lambda *args: case.run(*args), in_axes=tuple(dims))(*stacked)
    columns = zip(*(case.run(*row) for row in rows), strict=True)
    return outs, [stack(list(column), 0) for column in columns]


def ways_to_batch(case: Case) -> list[list]:
    """Every argument at once along the first axis, each alone along its last, and mixed."""
    everywhere = [0] * len(case.args)
    ways: list[list] = [everywhere, [x.ndim for x in case.args]]
    if len(case.args) > 1:
        ways += [[x.ndim if j == i else None for j, x in enumerate(case.args)]
                 for i in range(len(case.args))]
        ways += [[x.ndim if j % 2 else 0 for j, x in enumerate(case.args)]]
    return ways


def vmap_is_a_python_loop(p: Primitive, cases: Cases) -> None:
    for case in cases:
        if not case.args:
            continue
        with case.mode():
            for dims in ways_to_batch(case):
                same(*batched(case, dims), (case, dims), 1e-5 if not case.x64 else None)


def vmap_of_vmap_is_two_loops(p: Primitive, cases: Cases) -> None:
    case = cases[0]
    if not case.args:
        return
    with case.mode():
        rows = [stack([as_like(x, varied(x, turn)) for turn in range(2)], x.ndim)
                for x in case.args]
        one = minijax.vmap(lambda *args: case.run(*args), in_axes=-1, out_axes=-1)
        same(minijax.vmap(one)(*[stack([x, x], 0) for x in rows]),
             [stack([y, y], 0) for y in one(*rows)], case)


def with_as_many(case: Case, dims: Sequence[int | None], count: int) -> list:
    """The arguments of an example, each along its place in `dims` so many times."""
    return [x if d is None else ArrayImpl(
        np.ascontiguousarray(np.repeat(np.expand_dims(numbers(x), d), count, d)),
        x.aval.update(shape=(*x.shape[:d], count, *x.shape[d:])))
        for x, d in zip(case.args, dims, strict=True)]


def with_derivatives(case: Case) -> list[tuple[Callable, bool]]:
    """An example's function of all its arguments, and its derivatives in those that vary."""
    def forward(*args: Any) -> Any:
        there = case.at(args)
        return minijax.jvp(there.of_varying, there.point(), there.point())

    def backward(*args: Any) -> Any:
        there = case.at(args)
        outs, back = minijax.vjp(there.of_varying, *there.point())
        return back(outs)
    value: list[tuple[Callable, bool]] = [(lambda *args: case.run(*args), False)]
    return value + [(forward, True), (backward, True)] * bool(case.varying)


def types_of(evaluate: Callable, *args: Any) -> list[ShapedArray]:
    return [x.aval for x in minijax.tree_util.tree_leaves(evaluate(*args))]


def check_no_examples(f: Callable, none: Sequence, two: Sequence, ways: Sequence[Callable],
                      may_be_refused: bool) -> None:
    try:
        types = types_of(functools.partial(minijax.eval_shape, f), *two)
    except (NotImplementedError, TypeError, ValueError):
        if may_be_refused:
            return
        raise
    types = [aval.update(shape=(0, *aval.shape[1:])) for aval in types]
    for way in ways:
        assert types_of(way(f), *none) == types


def no_examples_are_of_the_type_of_two(p: Primitive, cases: Cases) -> None:
    """So are the derivatives of none.  The numbers are asked for once: they are none."""
    of_shapes: dict[tuple, Case] = {}
    for case in cases:
        shapes = [x.shape for x in case.args]
        of_shapes.setdefault((*shapes, *map(str, case.example.params.values())), case)
    shape_of = lambda f: functools.partial(minijax.eval_shape, f)
    for i, case in enumerate(list(of_shapes.values())[:4]):
        ways = ways_to_batch(case) if case.args else []
        with case.mode():
            for dims in ways[:3 if i else None]:
                none, two = (with_as_many(case, dims, count) for count in (0, 2))
                values = [lambda f: f, minijax.jit] if (i, dims) == (0, ways[0]) else []
                for f, is_derivative in with_derivatives(case)[:1 if i else None]:
                    check_no_examples(minijax.vmap(f, in_axes=tuple(dims)), none, two,
                                      [shape_of, *values], may_be_refused=is_derivative)


# ── Derivatives ──────────────────────────────────────────────────────────────────────────────


def smooth(cases: Cases) -> Cases:
    """Where derivatives are tested: at float64 examples, or, where there are none, at float32."""
    chosen = [c for c in cases if c.has_floats(np.float64, np.complex128)]
    return chosen or [c for c in cases if c.has_floats(np.float32, np.float32) and c.is_finite]


def jvp_does_not_change_the_primal(p: Primitive, cases: Cases) -> None:
    if not callable(p.jvp):
        return
    for case in cases:
        if not case.varying:
            continue
        with case.mode():
            point = case.point()
            outs, _ = minijax.jvp(case.of_varying, point, [direction(x) for x in point])
            same(outs, case.of_varying(*point), case)


def jvp_is_the_slope(p: Primitive, cases: Cases) -> None:
    if not callable(p.jvp):
        return
    for case in smooth(cases):
        step, tolerance = (1e-6, 2e-6) if case.x64 else (1e-2, 2e-2)
        with case.mode():
            point = case.point()
            along = [direction(x) for x in point]
            _, slopes = minijax.jvp(case.of_varying, point, along)
            ahead, behind = (case.of_varying(*[
                as_array(numbers(x) + sign * step * numbers(t)) for x, t in zip(
                    point, along, strict=True)]) for sign in (1, -1))
            for slope, a, b in zip(slopes, ahead, behind, strict=True):
                assert slope.dtype == a.dtype, case
                quotient = (numbers(a) - numbers(b)) / (2 * step)
                quotient = np.where(np.isnan(quotient), 0, quotient)  # filled in for the missing
                np.testing.assert_allclose(numbers(slope), quotient, rtol=tolerance,
                                           atol=tolerance / 20, err_msg=str(case))


def slope_of_slope_is_symmetric(p: Primitive, cases: Cases) -> None:
    """The second derivative exists and does not depend on the order of its directions."""
    if not callable(p.jvp):
        return
    for case in smooth(cases)[:3]:
        with case.mode():
            point = case.point()
            one, two = (tuple(direction(x, turn) for x in point) for turn in (1, 2))

            def along(t: Any, u: Any, case: Case = case, point: list = point) -> list:
                first = lambda *xs: minijax.jvp(case.of_varying, xs, t)[1]
                return minijax.jvp(first, tuple(point), u)[1]
            same(along(one, two), along(two, one), case, 1e-8 if case.x64 else 1e-4)


def linearize_is_jvp(p: Primitive, cases: Cases) -> None:
    if not callable(p.jvp):
        return
    for case in smooth(cases):
        with case.mode():
            point = case.point()
            along = [direction(x) for x in point]
            outs, slopes = minijax.jvp(case.of_varying, point, along)
            linear_outs, linear = minijax.linearize(case.of_varying, *point)
            same(linear_outs, outs, case)
            same(linear(*along), slopes, case)


def pairing(xs: Sequence, ys: Sequence) -> Any:
    return sum(np.real(np.sum(numbers(x) * numbers(y))) for x, y in zip(xs, ys, strict=True))


def vjp_agrees_with_jvp(p: Primitive, cases: Cases) -> None:
    if not callable(p.jvp):
        return
    for case in smooth(cases):
        with case.mode():
            point = case.point()
            along = [direction(x) for x in point]
            _, slopes = minijax.jvp(case.of_varying, point, along)
            outs, back = minijax.vjp(case.of_varying, *point)
            weights = [direction(y, 2) for y in outs]
            cotangents = back(weights)
            for ct, x in zip(cotangents, point, strict=True):
                assert ct.aval.str_short() == x.aval.str_short(), case
            np.testing.assert_allclose(pairing(cotangents, along), pairing(weights, slopes),
                                       rtol=1e-9 if case.x64 else 1e-4, atol=1e-6,
                                       err_msg=str(case))


def transpose_of_transpose_is_the_operation(p: Primitive, cases: Cases) -> None:
    refused: dict[int, list[bool]] = {}
    for case in smooth(cases):
        with case.mode():
            for i in case.varying:
                if not check_transpose(case, i):
                    refused.setdefault(i, []).append(is_linear(*alone(case, i)))
    assert not any(map(all, refused.values())), f"{p} is linear in {refused}: it has a transpose"


def alone(case: Case, i: int) -> tuple[Callable[[Any], list], Any]:
    """The operation as a function of one argument, and this."""
    def f(x: Any) -> list:
        return [y for y in case.run(*case.args[:i], x, *case.args[i + 1:])
                if dtypes.issubdtype(y.dtype, np.inexact)]
    return f, case.args[i]


def check_transpose(case: Case, i: int) -> bool:
    """The law for one argument, if it is linear in it alone; False if it has no transpose."""
    f, x = alone(case, i)
    try:
        transposed = minijax.linear_transpose(f, x)
        outs = [direction(y) for y in f(x)]
        transposed(outs)
    except NotImplementedError:
        return False
    except TypeError as error:
        if "has no value" in str(error):
            return True  # a program that is not linear
        raise
    zero = f(as_array(np.zeros_like(numbers(x))))
    if not any(np.any(numbers(y)) for y in zero):  # or it is linear together with the others
        again = minijax.linear_transpose(lambda ct: transposed(ct)[0], outs)
        same(again(x)[0], f(x), case)
    return True


def is_linear(f: Callable[[Any], list], x: Any) -> bool:
    """Whether values are those of a linear function at some points."""
    x, along = numbers(x), numbers(direction(x, 5))
    at_x, at_other, at_sum = ([numbers(y) for y in f(as_array(point))]
                              for point in (x, along, -3 * x - along))
    return all(np.allclose(total, -3 * y - other, rtol=1e-3, atol=1e-4)
               for y, other, total in zip(at_x, at_other, at_sum, strict=True))


# ── Compiled programs ────────────────────────────────────────────────────────────────────────


def compiled_is_the_meaning(p: Primitive, cases: Cases, summed: bool = False) -> None:
    for x64 in (False, True):
        chosen = [c for c in cases if c.x64 == x64]
        if not chosen:
            continue
        with config.enable_x64(x64):
            with config.disable_jit(True):  # else long formulas would be compiled here, too
                expected = [c.run(*c.args) for c in chosen]
            outs = minijax.jit(lambda argss, chosen=chosen: [
                c.run(*args) for c, args in zip(chosen, argss, strict=True)])(
                    [c.args for c in chosen])
            for c, x, y in zip(chosen, outs, expected, strict=True):
                same(x, y, c, summed=summed)


def jit_of_jit_is_jit(p: Primitive, cases: Cases) -> None:
    case = cases[0]
    with case.mode():
        once = minijax.jit(lambda *args: case.run(*args))
        same(minijax.jit(once)(*case.args), once(*case.args), case, 1e-12)


def launches_are_the_meaning(p: Primitive, cases: Cases) -> None:
    """The same loops as a GPU would run them, on the emulator."""
    [device] = minijax.devices("emulator")
    for case in cases[:4]:
        if any(map(is_key, case.args)):
            continue
        with case.mode():
            args = [minijax.device_put(x, device) for x in case.args]
            outs = minijax.jit(lambda *args, case=case: case.run(*args))(*args)
            same([np.asarray(x) for x in outs], case.run(*case.args), case, summed=True)


# ── A primitive of one's own ─────────────────────────────────────────────────────────────────

LAWS: tuple[Law, ...] = (
    the_meaning_has_the_type_that_was_promised, evaluation_is_the_meaning, a_new_nan_is_declared,
    vmap_is_a_python_loop, vmap_of_vmap_is_two_loops, no_examples_are_of_the_type_of_two,
    jvp_does_not_change_the_primal, jvp_is_the_slope, slope_of_slope_is_symmetric,
    linearize_is_jvp, vjp_agrees_with_jvp, transpose_of_transpose_is_the_operation,
    compiled_is_the_meaning, jit_of_jit_is_jit, launches_are_the_meaning)

# By slot: the laws that notice a wrong rule in it; the first is the quickest.
WATCHING: dict[str, tuple[Law, ...]] = {
    "impl": (evaluation_is_the_meaning, compiled_is_the_meaning),
    "abstract_eval": (the_meaning_has_the_type_that_was_promised, compiled_is_the_meaning),
    "jvp": (jvp_is_the_slope,),
    "transpose": (vjp_agrees_with_jvp, transpose_of_transpose_is_the_operation),
    "batch": (vmap_is_a_python_loop,), "may_produce_nan": (a_new_nan_is_declared,),
    **dict.fromkeys(LOWERINGS, (compiled_is_the_meaning, launches_are_the_meaning))}


@dataclass(frozen=True, repr=False)
class Report:
    """How a primitive stands: for each law what speaks against it, or an empty string."""

    laws: dict[str, str]

    @property
    def broken(self) -> list[str]:
        """The names of the laws that do not hold."""
        return [name for name, complaint in self.laws.items() if complaint]

    def __repr__(self) -> str:
        lines = [f"{'✗' if complaint else '✔'} {name.replace('_', ' ')}"
                 + f"\n    {complaint}" * bool(complaint)
                 for name, complaint in self.laws.items()]
        return "\n".join([*lines, f"{len(self.laws) - len(self.broken)} of {len(self.laws)} hold"])


def check_primitive(p: Primitive, examples: Sequence[Example] | None = None) -> Report:
    """Whether the rules of a primitive agree with each other: the laws, on its examples.

    Args:
      p: the primitive; a slot without a rule holds ``core.cannot("the reason")``.
      examples: by default those of its block.  Derivatives are tested at those with float64, which
        should be where the operation is smooth.

    Returns:
      A report, which prints a line for each law; ``broken`` lists the laws that do not hold.

    >>> from minijax import lax
    >>> check_primitive(lax.rev_p)
    ✔ every slot is filled
    ✔ the meaning has the type that was promised
    ...
    16 of 16 hold
    """
    complaints = {"every_slot_is_filled": complaint_of(lambda: check_slots(p))}
    if examples is None:
        examples = p.examples() if callable(p.examples) else ()
    for law in LAWS if examples else ():
        cases = [Case(p, example) for example in examples]
        complaints[law.__name__] = complaint_of(functools.partial(law, p, cases))
    return Report(complaints)


def complaint_of(law: Callable[[], Any]) -> str:
    """What a law says where it does not hold: its first lines, as one; empty where it holds."""
    try:
        law()
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        name = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        return name + "; ".join(lines[:3] or [type(error).__name__])
    return ""
