"""Branches: `cond`, `switch`, the primitive behind them, and batches with inactive examples.

Builds on `program_rules`, `traced_functions`.  Chapters 09, *Control flow*, and 14,
*Out-of-bounds indexing*.  In JAX: `jax/_src/lax/control_flow/conditionals.py`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import config, core, dtypes, tree_util
from minijax.util import lazily, source_info
from minijax.core import Array, Axis, Example, NamedAxisEffect, Outs, ShapedArray, dce, vmap
from minijax.transforms import arguments, compiled
from minijax.transforms.discharge import (NotStagedError, carry, carrying_refs, check_distinct,
                                          closed_over, discharged, has_refs)
from minijax.custom import custom_jvp_vjp
from minijax.control_flow.program_rules import (Flags, elementwise_or, join_residuals, rearranged,
                                                running_one_of)
from minijax.control_flow.traced_functions import (
    Operands, TraceRequest, TracedFunction, capitalized, listed, pcast_advice, share_consts,
    type_differences)
from minijax.core.partial_eval import PartialEvalResult, partial_eval_jaxpr
from minijax.core.jaxpr import (ClosedJaxpr, cached_on_jaxpr, effects_of, eval_jaxpr,
                                partition_list, subjaxprs)
from minijax.primitives import ad_util, analytic, comparison, reduce, sort
from minijax.primitives.checks import check_effect
from minijax.placement import devices
from minijax.primitives.convert import convert_element_type_p, converted, stop_gradient_p
from minijax.primitives.dynamic_slice import dynamic_slice_p
from minijax.primitives.shape import squeeze_p
from minijax.core.tracing import stage

INT = np.dtype(np.int32)
Branches = tuple[ClosedJaxpr, ...]


# ── The block ────────────────────────────────────────────────────────────────────────────────

def _impl(index: np.ndarray, *buffers: np.ndarray, branches: Branches) -> list[np.ndarray]:
    return compiled.interpret(branches[int(np.clip(index, 0, len(branches) - 1))], *buffers)


RULES = running_one_of("branches", leading=1)


def _batch(axis: Axis, args: list, dims: list, *, branches: Branches) -> Outs:
    """With a batched index: run every branch on all examples, and select."""
    if dims[0] is None:
        return RULES["batch"].rule(cond_p, axis, args, dims, branches=branches)
    for branch in branches:
        refuse_io(branch, NotImplementedError, "IO effect not supported in vmap-of-cond.")
    index = ad_util.move_axis(args[0], dims[0], 0)
    last = len(branches) - 1
    index = comparison.clamp_p.bind(np.int32(0), index, np.int32(last))
    which = index if last > 1 else comparison.ne_p.bind(index, np.int32(0))
    operands = [core.batch_to(x, d, 0, axis.size) for x, d in zip(args[1:], dims[1:], strict=True)]
    results = []
    for n, branch in enumerate(branches):
        taken = comparison.eq_p.bind(index, np.int32(n))
        own = [_constant_elsewhere(x, taken) for x in operands]
        results.append(run_for_active(taken, axis, branch, own, [True] * len(own),
                                      [True] * len(branch.out_avals)))
    outs = [select_along_batch(which, cases) for cases in zip(*results, strict=True)]
    return outs, [0] * len(outs)


def _constant_elsewhere(x: Any, taken: Any) -> Any:
    """An operand without derivative for examples of other branches: it might be nan."""
    if not dtypes.issubdtype(x.dtype, np.inexact):
        return x
    return select_along_batch(taken, [stop_gradient_p.bind(x), x])


def _split(unknown: Flags, args: Sequence[Any], *, branches: Branches) -> PartialEvalResult | None:
    if unknown[0]:
        return None
    index, inner = args[0], list(unknown[1:])
    known_args, unknown_args = partition_list(args[1:], inner)
    none_forwarded = [False] * len(inner)
    unknown_out = elementwise_or(
        partial_eval_jaxpr(b, inner, forwardable=none_forwarded).unknown_out for b in branches)
    halves = [partial_eval_jaxpr(b, inner, unknown_out, none_forwarded) for b in branches]
    known_branches, unknown_branches, _ = zip(*join_residuals(
        [(h.known, h.unknown, h.residual_avals) for h in halves], start=0), strict=True)
    return PartialEvalResult(
        [index, *known_args], {"branches": known_branches},
        lambda residuals: [index, *residuals, *unknown_args], {"branches": unknown_branches},
        unknown_out)


def _lower(b: Any, outputs: Sequence[Any], operands: Sequence[Any], *, branches: Branches) -> None:
    index = b.clamp(operands[0](()), 0, len(branches) - 1)
    for n, branch in enumerate(branches):
        with b.when(b.eq(index, n)):
            b.jaxpr(branch, operands[1:], into=outputs)


def _in_place(k: int, /, *, branches: Branches) -> list[int]:
    """Any operand of the type may be overwritten: each branch checks what it still reads."""
    out = branches[0].out_avals[k].strip_weak_type()
    return [n for n, aval in enumerate(branches[0].in_avals, 1) if aval.strip_weak_type() is out]


def _examples() -> list[Example]:
    aval = ShapedArray((3,), np.float32)
    one = stage(lambda x, y: [x * y, x], [aval, aval])
    two = stage(lambda x, y: [analytic.sin_p.bind(x), y], [aval, aval])
    x = np.array([0.5, -1.0, 2.0], np.float32)
    return [Example((np.int32(i), x, x + 1), {"branches": (one, two)}) for i in (0, 1)]


cond_p = compiled.ProgramPrimitive(
    "cond",
    impl=_impl,
    # The first branch decides whether a result is weak; for `cond` it is the false one.
    abstract_eval=lambda index, *avals, branches: branches[0].out_avals,
    **RULES | {"batch": _batch},
    sharding=lazily.later("minijax.control_flow.layouts", "branches"),
    loop=_lower,
    split=_split,
    in_place=_in_place,
    examples=_examples,
    multiple_results=True,
    handles_keys=True)


# ── A batch with inactive examples ───────────────────────────────────────────────────────────

def refuse_io(program: ClosedJaxpr, error: type[Exception], message: str) -> None:
    """Refuse a program that calls Python, where it would do so more often than it says."""
    if any(getattr(effect, "happens_once", False) for effect in program.effects):
        raise error(message)


def run_for_active(active: Array, axis: Axis, program: ClosedJaxpr, args: Sequence[Any],
                   batched: Sequence[bool], keep: Sequence[bool]) -> list:
    """The outputs of a program on a batch with inactive examples.

    For its checks every inactive example is replaced by the first active one, so that they report
    active examples only.

    Args:
      active: whether each example is active, with shape ``(batch,)``.
      axis: the batch axis.
      program: the program of one example.
      args, batched: its inputs, and which of them have the batch axis in front.
      keep: the outputs that must have the batch axis.
    """
    if check_effect in program.effects:
        # With collectives along the axis no example can replace another.
        if axis.size and NamedAxisEffect(axis.name) not in program.effects:
            _run_checks(active, axis, program, args, batched)
        program = without_checks(program)
    quiet, _ = vmap.batch_jaxpr(program, axis.cache_key, batched, keep)
    return eval_jaxpr(quiet.jaxpr, quiet.consts, *args)


def _run_checks(active: Array, axis: Axis, program: ClosedJaxpr, args: Sequence[Any],
                batched: Sequence[bool]) -> None:
    only = dce.without_dead_equations(rearranged(_part(program, checks=True), outputs=()))
    checks, _ = vmap.batch_jaxpr(only, axis.cache_key, batched)
    first = sort.argmax_p.bind(active, axes=(0,), index_dtype=INT)
    operands = [_replace_inactive(active, first, x) if b else x
                for x, b in zip(args, batched, strict=True)]
    any_active = convert_element_type_p.bind(
        reduce.reduce_or_p.bind(active, axes=(0,)), new_dtype=INT, weak_type=False)
    cond_p.bind(any_active, *operands, branches=(stage(lambda *_: [], checks.in_avals), checks))


def _replace_inactive(active: Array, first: Array, x: Array) -> Array:
    """A batch in which the first active example takes the place of those that are not."""
    zero = np.int32(0)
    row = dynamic_slice_p.bind(x, first, *[zero] * (x.ndim - 1), slice_sizes=(1, *x.shape[1:]))
    row = squeeze_p.bind(row, dimensions=(0,))
    return select_along_batch(active, [ad_util.broadcast_batch(row, 0, x.shape[0]), x])


def select_along_batch(which: Any, cases: Sequence[Any]) -> Any:
    """`select_n` with a chooser of shape ``(batch,)`` and cases of shape ``(batch, ...)``."""
    shape = cases[0].shape
    return comparison.select_n_p.bind(
        which if which.shape == shape else ad_util.broadcast_at(which, (0,), shape), *cases)


def _unchecked(rule: Callable, *args: Any) -> Any:
    """The results of a custom rule, which is Python traced on demand: without checks."""
    with config.debug_out_of_bounds(False), config.debug_unsafe_casts(False):
        return rule(*args)


def without_checks(program: ClosedJaxpr) -> ClosedJaxpr:
    """The program without its checks, and so the programs inside it."""
    return _part(program, checks=False)


@cached_on_jaxpr
def _part(program: ClosedJaxpr, checks: bool) -> ClosedJaxpr:
    """The program without its checks, or without its other effects; and so the programs inside it.
    """
    def stripped(value: Any) -> Any:
        if isinstance(value, tuple) and any(isinstance(x, ClosedJaxpr) for x in value):
            return tuple(map(stripped, value))
        if isinstance(value, custom_jvp_vjp.Rule) and not checks:
            return value.with_call(functools.partial(_unchecked, value))
        return _part(value, checks) if isinstance(value, ClosedJaxpr) else value

    eqns = []
    for eqn in program.eqns:
        if any((effect is check_effect) != checks for effect in eqn.effects):
            if not any(subjaxprs(eqn.params)) and not eqn.outvars:
                continue
            params = {name: stripped(value) for name, value in eqn.params.items()}
            eqn = eqn.replace(params=params, effects=eqn.primitive.effects(**params))
        eqns.append(eqn)
    jaxpr = program.jaxpr.replace(eqns=tuple(eqns), effects=effects_of(eqns))
    return ClosedJaxpr(jaxpr, program.consts)


# ── cond, switch ─────────────────────────────────────────────────────────────────────────────

NOT_GIVEN: Any = object()


def _with_operand(operands: tuple, operand: Any) -> tuple:
    """The operands, which were passed by position or as one keyword, which may be None.

    Raises:
      TypeError: when both were used.
    """
    if operand is NOT_GIVEN:
        return operands
    if operands:
        raise TypeError("if 'operand' keyword is passed then no positional operands can be "
                        f"passed, got operand={operand} and positional operands {operands}")
    return (operand,)


def cond(pred: Any, true_fun: Any, false_fun: Callable, *operands: Any,
         operand: Any = NOT_GIVEN) -> Any:
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
    is_older = len(operands) == 2 and not callable(true_fun) and callable(false_fun)
    if is_older and callable(operands[1]):
        one, true_of, (other, false_of) = true_fun, false_fun, operands
        return cond(pred, lambda both: true_of(both[0]), lambda both: false_of(both[1]),
                    (one, other), operand=operand)
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    return _bind_branches(_branch_index(pred), (false_fun, true_fun),
                          _with_operand(operands, operand), ("false_fun", "true_fun"))


def _branch_index(pred: Any) -> Any:
    """The index of the branch that a predicate chooses: 1 where it is true."""
    if pred is None:
        raise TypeError("cond predicate is None")
    if dtypes.python_type(pred) in (bool, int, float):  # it may be too large for an array
        return np.int32(bool(pred))
    value = _scalar(pred, _no_predicate, "Pred must be a scalar")
    if value.dtype != bool and (dtypes.issubdtype(value.dtype, np.complexfloating)
                                or not dtypes.issubdtype(value.dtype, np.number)):
        raise TypeError(f"Pred type must be either boolean or number, got {value.dtype}.")
    if core.is_literal(value, core.current_trace.get().staging_level):
        return np.int32(bool(value._buffer))
    if value.dtype != np.bool_:
        value = comparison.ne_p.bind(value, np.zeros((), value.dtype)[()])
    return converted(value, INT)


def _no_predicate(pred: Any) -> str:
    if isinstance(pred, str | bytes | list | tuple):
        return f"Pred must be a scalar, got {pred!s} of type {type(pred)}"
    return f"Pred type must be either boolean or number, got {pred}."


def _no_index(index: Any) -> str:
    if isinstance(index, list | tuple):
        return f"Branch index must be scalar, got {index} of shape {np.shape(index)}."
    return f"Index type must be an integer, got {index}{' as float32' if index is None else '.'}"


def _scalar(x: Any, no_array: Callable[[Any], str], no_scalar: str) -> Any:
    value = core.as_value_or_raise(x, lambda: no_array(x))
    if value.shape != ():
        raise TypeError(f"{no_scalar}, got {x} of shape {value.shape}.")
    return value


def switch(index: Any, branches: Sequence[Callable], *operands: Any,
           operand: Any = NOT_GIVEN) -> Any:
    """Run one of several functions.

    Args:
      index: an integer scalar, clamped into range.
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
    if not all(callable(f) for f in branches):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    operands, branches = _with_operand(operands, operand), list(branches)
    if not branches:
        raise ValueError("Empty branch sequence")
    value = _scalar(index, _no_index, "Branch index must be scalar")
    if not dtypes.issubdtype(value.dtype, np.integer):
        raise TypeError(f"Index type must be an integer, got {index} as {value.dtype}")
    if len(branches) == 1:
        return branches[0](*operands)
    value = comparison.clamp_p.bind(np.int32(0), converted(value, INT), np.int32(len(branches) - 1))
    names = ["branch 0", *(f"branch{n}" for n in range(1, len(branches)))]
    return _bind_branches(value, branches, operands, names)


def _known_index(index: Any) -> int:
    return int(core.concrete_or_error(index))  # type: ignore[arg-type]


def _bind_branches(index: Any, functions: Sequence[Callable], operands: Sequence[Any],
                   names: Sequence[str]) -> Any:
    if config.disable_jit.value and core.is_concrete(index):
        return functions[_known_index(index)](*operands)
    kind = "cond" if names[0] == "false_fun" else "switch"
    if has_refs(operands):
        check_distinct(tree_util.tree_leaves(operands),
                       source_info.describe(functions[-1], operands, {}, kind))
        functions, (operands, *_) = zip(*(closed_over(f, operands) for f in functions), strict=True)
    args = Operands(tuple(operands))
    types = args.types
    step = -1 if kind == "cond" else 1  # the true branch is traced, and named, first
    traced = []
    try:
        # a comprehension would be one more frame where branches nest deeply
        for f in functions[::step]:
            traced.append(TraceRequest(f, types, kind).traced())  # noqa: PERF401
    except arguments.NotCarriedError as error:
        refs = carry(error, [])
    if len(traced) < len(functions):
        return carrying_refs(lambda refs, values: _bind_branches(
            index, [discharged(f, refs) for f in functions], (values, *operands), names), refs)
    _check_branches(kind, [*zip(names[::step], traced, strict=True)])
    programs, consts = share_consts(traced)
    programs = programs[::step]
    inputs, forwarded = [*consts, *args.values], _forwarded_inputs(programs)
    branches = tuple(rearranged(p, None, [i for i, place in enumerate(forwarded) if place is None])
                     for p in programs)

    def run() -> list:
        outs = iter(cond_p.bind(index, *inputs, branches=branches))
        return [next(outs) if place is None else inputs[place] for place in forwarded]
    chosen = lambda: functions[_known_index(index)](*operands)  # noqa: E731
    try:
        return traced[0].tree_of(compiled.called(run, chosen))
    except NotStagedError:
        if not core.is_concrete(index):
            raise
        return chosen()


def _forwarded_inputs(programs: Sequence[ClosedJaxpr]) -> list[int | None]:
    """For each output the index of the input that every program returns there, if there is one."""
    forwarded = []
    for outs in zip(*(p.jaxpr.outvars for p in programs), strict=True):
        places = {p.jaxpr.invars.index(v) if v in p.jaxpr.invars else None
                  for p, v in zip(programs, outs, strict=True)}
        forwarded.append(places.pop() if len(places) == 1 else None)
    return forwarded


def _check_branches(kind: str, pairs: list[tuple[str, TracedFunction]]) -> None:
    """Refuse branches whose results differ in tree or type, naming both."""
    (first, one), *others = pairs
    for second, two in others:
        places = (f"\n\n{first} is {one.debug_info.func_src_info}"
                  f"\n{second} is {two.debug_info.func_src_info}")
        advice = f"\n\nRevise {first} and/or {second} so that"
        if one.out_tree != two.out_tree:
            differ, gap = [], "\n"
            for path, have, got, why in tree_util.equality_errors_pytreedef(
                    one.out_tree, two.out_tree):
                at = f" at path {tree_util.keystr(path)}" if path else ""
                differ.append(f"{first} output{at} is a {have} but {second} output{at} is a {got}, "
                              f"so {why}")
            raise TypeError(
                f"{kind} branch outputs must have the same pytree structure, but they differ:"
                f"{places}\n\n{listed(differ, gap)}{advice} they have the same pytree structure.")
        ats = [path and f" at path {path}" for path in source_info.result_paths(one.out_tree)]
        rows = [*zip(ats, one.out_avals, two.out_avals, strict=True)]
        if wrong := type_differences((f"the output of {first}{at}", a, f"output of {second}", b)
                                     for at, a, b in rows):
            raise TypeError(f"{kind} branches must have equal output types but they differ."
                            f"{places}\n\n{capitalized(listed(wrong))}\n\n" + pcast_advice(
                                (x, y, f" to the output of {name}{at}") for at, a, b in rows
                                for name, x, y in ((first, a, b), (second, b, a)))
                            + f"{advice.lstrip()} all output types match.")


def platform_dependent(*args: Any, default: Callable | None = None, **per_platform: Callable
                       ) -> Any:
    """Call the function for the platform in use; JAX stages the functions for all platforms.

    Args:
      args: what the function is called with.
      default: the function for all other platforms.
      per_platform: a function for each platform: `cpu`, `cuda` and so on.

    >>> platform_dependent(2., cpu=lambda x: x + 1, default=lambda x: x)
    3.0

    Raises:
      NotImplementedError: when there is no function for this platform.
    """
    for name, branch in {**per_platform, "default": default}.items():
        if branch is not None and not callable(branch):
            raise TypeError(f"lax.platform_dependent: the '{name}' branch must be a callable.")
    platform = devices.device_of(()).platform
    chosen = per_platform.get("cuda" if platform == "gpu" else platform, default)
    if chosen is None:
        raise NotImplementedError(
            f"translation rule of platform_dependent not found for platform {platform}: it has "
            f"functions for {', '.join(per_platform) or 'none'}; give it a default.")
    return chosen(*args)
