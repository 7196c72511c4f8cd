"""Branches: `cond`, `switch`, and the primitive behind them.

Stands on `programs`.  Chapter 09, *Control flow*.
In JAX: `jax/_src/lax/control_flow/conditionals.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax import config, core, dtypes, tree_util
from minijax.core import Axis, Example, ShapedArray
from minijax.higher_order.active import run_for_active, select_along_batch
from minijax.higher_order.compiled import called, interpret
from minijax.higher_order.programs import (Body, CompiledPrimitive, how_types_differ, listed,
                                           share_consts, types_of, with_output_types)
from minijax.higher_order.rules import batch_of, chosen, joined, jvp_of, transpose_of
from minijax.interpreters.split import Halves, split_jaxpr
from minijax.interpreters.vmap import Dim, batch_jaxpr, batch_to
from minijax.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.primitives.algebra import mul_p
from minijax.primitives.analytic import sin_p
from minijax.primitives.checks import check_effect
from minijax.primitives.choice import clamp_p, eq_p, ne_p
from minijax.primitives.convert import convert_element_type_p, stop_gradient_p
from minijax.primitives.emitted import move_axis, zeros
from minijax.stage import stage
from minijax.tree_util import equality_errors_pytreedef

Branches = tuple[ClosedJaxpr, ...]


# ── The block ────────────────────────────────────────────────────────────────────────────────

def _impl(index: np.ndarray, *buffers: np.ndarray, branches: Branches) -> list[np.ndarray]:
    taken = branches[int(np.clip(index, 0, len(branches) - 1))]
    return interpret(taken, *buffers)


def _bind(index: Any, branches: Sequence[ClosedJaxpr], operands: Sequence[Any]) -> list:
    return cond_p.bind(index, *operands, branches=tuple(branches))


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, branches: Branches
         ) -> tuple[list, list]:
    return jvp_of(branches, primals[1:], tangents[1:], functools.partial(_bind, primals[0]))


def _batch(axis: Axis, args: Sequence[Any], dims: Sequence[Dim], *, branches: Branches
           ) -> tuple[list, list]:
    if dims[0] is not None:
        return _batch_select(axis, args, dims, branches)
    return batch_of(branches, axis, args[1:], dims[1:], functools.partial(_bind, args[0]))


def _batch_select(axis: Axis, args: Sequence[Any], dims: Sequence[Dim], branches: Branches
                  ) -> tuple[list, list]:
    """A choice per example: run every branch on the whole batch, and select."""
    index = move_axis(args[0], dims[0] or 0, 0)
    last = len(branches) - 1
    index = clamp_p.bind(np.int32(0), index, np.int32(last))
    which = index if last > 1 else ne_p.bind(index, np.int32(0))
    operands = [batch_to(x, d, 0, axis.size) for x, d in zip(args[1:], dims[1:], strict=True)]
    batched = [True] * len(operands)
    results = []
    for n, branch in enumerate(branches):
        keep = [True] * len(branch.out_avals)
        taken = eq_p.bind(index, np.int32(n))
        own = [_constant_elsewhere(x, taken) for x in operands]
        if check_effect in branch.effects:
            results.append(run_for_active(taken, axis, branch, own, batched, keep, run_if))
            continue
        program, _ = batch_jaxpr(branch, axis, batched, keep=keep)
        results.append(eval_jaxpr(program.jaxpr, program.consts, *own))
    outs = [select_along_batch(which, cases) for cases in zip(*results, strict=True)]
    return outs, [0] * len(outs)


def _constant_elsewhere(x: Any, taken: Any) -> Any:
    """An operand, constant for examples that take another branch: its derivative may be nan."""
    if not dtypes.issubdtype(x.dtype, np.inexact):
        return x
    return select_along_batch(taken, [stop_gradient_p.bind(x), x])


def _split(unknown: Sequence[bool], args: Sequence[Any], *, branches: Branches) -> Halves | None:
    if unknown[0]:
        return None
    index, *operands = args
    inner = list(unknown[1:])
    none_forwarded = [False] * len(inner)
    out = joined(split_jaxpr(b, inner, forwardable=none_forwarded).unknown_out for b in branches)
    halves = [split_jaxpr(b, inner, out, none_forwarded) for b in branches]
    counts = [len(h.residual_avals) for h in halves]
    avals = [a for h in halves for a in h.residual_avals]
    known = tuple(_returning_all(h.known, n, avals, sum(counts[:n]), counts[n])
                  for n, h in enumerate(halves))
    rest = tuple(_taking_all(h.unknown, avals, sum(counts[:n]), counts[n])
                 for n, h in enumerate(halves))
    not_inner = [not u for u in inner]
    return Halves([index, *chosen(operands, not_inner)], {"branches": known},
                  lambda residuals: [index, *residuals, *chosen(operands, inner)],
                  {"branches": rest}, out)


def _returning_all(known: ClosedJaxpr, place: int, avals: Sequence[ShapedArray], start: int,
                   count: int) -> ClosedJaxpr:
    """A known half that returns every branch's residuals: zeros in place of the others'."""
    def run(*args: Any) -> list:
        outs = eval_jaxpr(known.jaxpr, known.consts, *args)
        outs, own = outs[:len(outs) - count], outs[len(outs) - count:]
        before, after = avals[:start], avals[start + count:]
        return [*outs, *map(zeros, before), *own, *map(zeros, after)]
    return known.derived(("residuals", place, tuple(avals), start),
                         lambda: stage(run, known.in_avals, known.jaxpr.debug_info))


def _taking_all(unknown: ClosedJaxpr, avals: Sequence[ShapedArray], start: int, count: int
                ) -> ClosedJaxpr:
    """An unknown half that is given every branch's residuals and uses its own."""
    def run(*args: Any) -> list:
        own, rest = args[start:start + count], args[len(avals):]
        return eval_jaxpr(unknown.jaxpr, unknown.consts, *own, *rest)
    in_avals = [*avals, *unknown.in_avals[count:]]
    return unknown.derived(("residuals", tuple(avals), start),
                           lambda: stage(run, in_avals, unknown.jaxpr.debug_info))


def _transpose(cotangents: Sequence[Any], index: Any, *operands: Any, branches: Branches
               ) -> list:
    found = transpose_of(branches, cotangents, operands, functools.partial(_bind, index))
    return [None, *found]


def _lower(b: Any, outputs: Sequence[Any], operands: Sequence[Any], *, branches: Branches
           ) -> None:
    index = b.clamp(operands[0](()), 0, len(branches) - 1)
    for n, branch in enumerate(branches):
        with b.when(b.eq(index, n)):
            b.jaxpr(branch, operands[1:], into=outputs)


def _examples() -> list[Example]:
    aval = ShapedArray((3,), np.float32)
    one = stage(lambda x, y: [mul_p.bind(x, y), x], [aval, aval])
    two = stage(lambda x, y: [sin_p.bind(x), y], [aval, aval])
    x = np.array([0.5, -1.0, 2.0], np.float32)
    return [Example((np.int32(i), x, x + 1), {"branches": (one, two)}) for i in (0, 1)]


cond_p = CompiledPrimitive(
    "cond",
    impl=_impl,
    abstract_eval=lambda index, *avals, branches: branches[0].out_avals,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    loop=_lower,
    split=_split,
    examples=_examples,
    multiple_results=True,
    handles_keys=True)


def run_if(index: Any, program: ClosedJaxpr, operands: Sequence[Any]) -> None:
    """Run a program that returns nothing where the index is 1, and not where it is 0."""
    nothing = stage(lambda *_: [], program.in_avals)
    cond_p.bind(index, *operands, branches=(nothing, program))


# ── As users call it ─────────────────────────────────────────────────────────────────────────

def cond(*args: Any, **kwargs: Any) -> Any:
    """Run one of two functions.

    Args:
      pred: a scalar; true means not zero.
      true_fun: takes the operands; its results have the types of `false_fun`'s.
      false_fun: the other one.
      operands: arrays and trees of arrays; a single one may be given as `operand=`.

    Returns:
      What the chosen function returns.

    The older form ``cond(pred, true_operand, true_fun, false_operand, false_fun)`` is taken, too.

    Raises:
      TypeError: when `pred` is no scalar, or the functions' results differ in tree or type.

    >>> cond(True, lambda x: x + 1, lambda x: x - 1, 3)
    Array(4, dtype=int32, weak_type=True)
    """
    is_older = len(args) == 5 and not kwargs and not callable(args[1])
    if is_older and callable(args[2]) and callable(args[4]):
        pred, one, true_fun, other, false_fun = args
        return _cond(pred, lambda both: true_fun(both[0]), lambda both: false_fun(both[1]),
                     (one, other))
    return _cond(*args, **kwargs)


NOT_GIVEN: Any = object()


def _with_operand(operands: tuple, operand: Any) -> tuple:
    """The operands, given by position or as a single one by keyword, which may be None.

    Raises:
      TypeError: when they are given both ways.
    """
    if operand is NOT_GIVEN:
        return operands
    if operands:
        raise TypeError("if 'operand' keyword is passed then no positional operands can be "
                        f"passed, got operand={operand} and positional operands {operands}")
    return (operand,)


def _cond(pred: Any, true_fun: Callable, false_fun: Callable, *operands: Any,
          operand: Any = NOT_GIVEN) -> Any:
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    operands = _with_operand(operands, operand)
    pred = _scalar_predicate(pred)
    if config.disable_jit.value and core.is_concrete(pred):
        return (true_fun if core.concrete_or_error(pred) else false_fun)(*operands)
    return _bind_branches(_branch_index(pred), (false_fun, true_fun), operands,
                          ("false_fun", "true_fun"))


def _branch_index(pred: Any) -> Any:
    if isinstance(pred, core.ArrayImpl) and pred.is_literal:
        return np.int32(bool(pred._buffer))
    if pred.dtype != np.bool_:
        pred = ne_p.bind(pred, np.zeros((), pred.dtype)[()])
    return convert_element_type_p.bind(pred, new_dtype=np.dtype(np.int32), weak_type=False)


def _scalar_predicate(pred: Any) -> Any:
    if pred is None:
        raise TypeError("cond predicate is None")
    try:
        value = core.as_value(pred)
    except TypeError:
        raise TypeError(f"Pred must be a scalar, got {pred} of type {type(pred)}") from None
    if value.shape != ():
        raise TypeError(f"Pred must be a scalar, got {pred} of shape {value.shape}.")
    if value.dtype != bool and (dtypes.issubdtype(value.dtype, np.complexfloating)
                                or not dtypes.issubdtype(value.dtype, np.number)):
        raise TypeError(f"Pred type must be either boolean or number, got {value.dtype}.")
    return value


def switch(index: Any, branches: Sequence[Callable], *operands: Any,
           operand: Any = NOT_GIVEN) -> Any:
    """Run one of several functions.

    Args:
      index: an integer scalar, clamped to the number of branches.
      branches: functions of the operands whose results have the same types.
      operands: arrays and trees of arrays; a single one may be given as `operand=`.

    Returns:
      What the chosen function returns.

    Raises:
      TypeError: when `index` is no integer scalar, or results differ in tree or type.
      ValueError: when there are no branches.

    >>> switch(1, [lambda x: x, lambda x: x * 10], 4)
    Array(40, dtype=int32, weak_type=True)
    """
    if not all(map(callable, branches)):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    operands, branches = _with_operand(operands, operand), list(branches)
    if not branches:
        raise ValueError("Empty branch sequence")
    if not core.is_array_like(index):
        raise TypeError(f"Index type must be an integer, got {index} of type {type(index)}")
    value = core.as_value(index)
    if value.shape != ():
        raise TypeError(f"Branch index must be scalar, got {index} of shape {value.shape}.")
    if not dtypes.issubdtype(value.dtype, np.integer):
        raise TypeError(f"Index type must be an integer, got {index} as {value.dtype}")
    if len(branches) == 1:
        return branches[0](*operands)
    value = convert_element_type_p.bind(value, new_dtype=np.dtype(np.int32), weak_type=False)
    value = clamp_p.bind(np.int32(0), value, np.int32(len(branches) - 1))
    if config.disable_jit.value and core.is_concrete(value):
        return branches[int(core.concrete_or_error(value))](*operands)  # type: ignore[arg-type]
    names = ["branch 0", *(f"branch{n}" for n in range(1, len(branches)))]
    return _bind_branches(value, branches, operands, names)


def _bind_branches(index: Any, functions: Sequence[Callable], operands: Sequence[Any],
                   names: Sequence[str]) -> Any:
    types = types_of(tuple(operands))
    kind = "cond" if names[0] == "false_fun" else "switch"
    bodies = [Body(f, types, kind) for f in functions]
    _check_branches(bodies, names)
    programs, consts = share_consts(bodies)
    # whether a result is weak is said by the first branch, which for `cond` is the false one
    branches = tuple(with_output_types(p, programs[0].out_avals) for p in programs)
    call = functools.partial(cond_p.bind, index, *consts, *tree_util.tree_leaves(operands),
                             branches=branches)
    outs = called(call, lambda: functions[_known_index(index)](*operands))
    return tree_util.tree_unflatten(bodies[0].out_tree, outs)


def _known_index(index: Any) -> int:
    return int(core.concrete_or_error(index))  # type: ignore[arg-type]


def _check_branches(bodies: Sequence[Body], names: Sequence[str]) -> None:
    """Refuse branches whose results differ in tree or type, naming both."""
    pairs = list(zip(names, bodies, strict=True))
    kind = "switch"
    if names[0] == "false_fun":
        kind, pairs = "cond", pairs[::-1]  # kept as (false, true), spoken of as (true, false)
    (first, one), *others = pairs
    for second, two in others:
        places = (f"{first} is {one.info.func_src_info}\n{second} is {two.info.func_src_info}")
        if one.out_tree != two.out_tree:
            differ = [(tree_util.keystr(path), *texts) for path, *texts in
                      equality_errors_pytreedef(one.out_tree, two.out_tree)]
            lines = [f"{first} output{place} is a {have} but {second} output{place} is a {got}, "
                     f"so {why}" for place, have, got, why in differ]
            raise TypeError(
                f"{kind} branch outputs must have the same pytree structure, but they differ:"
                f"\n\n{places}\n\n{listed(lines)}\n\nRevise {first} and/or {second} so that "
                "they have the same pytree structure.")
        if wrong := list(_differences(one, two, first, second)):
            raise TypeError(
                f"{kind} branches must have equal output types but they differ."
                f"\n\n{places}\n\n" + "\n\n".join(wrong)
                + f"\n\nRevise {first} and/or {second} so that all output types match.")


def _differences(one: Body, two: Body, first: str, second: str) -> Iterator[str]:
    paths = one.info.with_results(one.out_tree).result_paths or ()
    for a, b, path in zip(one.out_avals, two.out_avals, paths, strict=True):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            where = path.removeprefix("result")
            part = f" at path {where}" if where else ""
            yield (f"The output of {first}{part} has type {a.str_long()} but the corresponding "
                   f"output of {second} has type {b.str_long()}, so {how_types_differ(a, b)}.")
