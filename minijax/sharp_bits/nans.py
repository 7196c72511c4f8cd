"""NaN and infinity checks: a bad number is reported at the operation that produces it.

Compiled code is checked at its outputs. If these are bad, its program is evaluated equation by
equation, up to the one that produces the bad number. Builds on `jaxpr`, `findings`, `origins`.
Chapter 19, *NaNs*. In JAX: `jax/_src/dispatch.py`.
"""

from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from minijax import config, core, errors, tree_util
from minijax.util.context import with_values
from minijax.core import ArrayImpl, Params, Primitive
from minijax.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, all_values
from minijax.primitives import ad_util, slicing
from minijax.sharp_bits.findings import (SHARDED, Finding, Step, current_steps, in_step,
                                         is_collecting, quoted, report, sharp_bits)
from minijax.sharp_bits.origins import (KINDS, Origin, bad_places, frames_inside, gathered,
                                        has_sharding, is_bad, is_new_in_the_backward_pass, origin,
                                        without_bad)
from minijax.util.source_info import SourceInfo

T = TypeVar("T")

# The mode of a run: bad numbers are reported; or `_OriginsFound` ends the run, in a search for
# their origin; or nothing is checked.
REPORT, FIND, OFF = "report", "find", "off"


class _Mode(NamedTuple):
    """The mode of checking of the running program."""

    mode: str = REPORT
    sources: Sequence[SourceInfo | None] | None = None  # only these lines are reported; None: all
    bad_kinds: list[str] | None = None  # the kinds of bad outputs while unchecked
    is_rerun: bool = False  # a repeated run, whose random keys are consumed already
    is_sharded: bool = False  # an operand or a result of the running operation has a sharding


_REPORTING = _Mode()
_mode: ContextVar[_Mode] = ContextVar("minijax_nans", default=_REPORTING)


def _in_mode(settings: dict[str, Any], f: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """`f(*args, **kwargs)`, checked as before except for the settings in `settings`."""
    return with_values({_mode: _mode.get()._replace(**settings)}, f, *args, **kwargs)


class _OriginsFound(Exception):
    """Ends a run in mode `FIND`, with the origins."""

    def __init__(self, origins: list[Origin]):
        self.origins = origins


def _kinds() -> list[str]:
    """The enabled kinds of bad numbers, of "nan" and "inf"."""
    return [kind for kind, (flag, _) in KINDS.items() if flag.value]


def _kinds_in(values: Sequence[Any]) -> list[str]:
    """The enabled kinds of bad numbers among some values."""
    return [kind for kind in _kinds() if is_bad(values, kind)]


def _only_origins() -> bool:
    """Whether bad numbers may be passed on, as in a program that uses them as data.

    JAX raises for each operation with a nan among its outputs, and so does `debug_nans`. Under the
    switch for all checks a correct program must raise no alarm.
    """
    return bool(sharp_bits.value)


def _unchecked(f: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """`f(*args, **kwargs)`, unchecked."""
    return _in_mode({"mode": OFF, "bad_kinds": None}, f, *args, **kwargs)


def _find_origins(f: Callable, *args: Any, **kwargs: Any) -> list[Origin]:
    """The independent origins of bad numbers in a run of `f`."""
    try:
        _in_mode({"mode": FIND, "is_rerun": True}, f, *args, **kwargs)
    except _OriginsFound as search:
        return search.origins
    return []


# ── One operation ────────────────────────────────────────────────────────────────────────────

def evaluated(evaluate: Callable, primitive: Primitive, args: Sequence, params: Params) -> list:
    """The outputs of an operation on numbers, checked."""
    if primitive.calls_python(params):  # its operations are checked one by one
        return evaluate(primitive, args, params)
    run: Callable = primitive.evaluate if _mode.get().is_rerun else partial(evaluate, primitive)
    outs = _unchecked(run, args, params)  # which may be a program
    mode, _, bad_kinds, *_ = _mode.get()
    if mode != OFF:
        look(primitive, args, params, outs)
    elif bad_kinds is not None:
        bad_kinds += _kinds_in(outs)
    return outs


def look(primitive: Primitive, args: Sequence[ArrayImpl], params: Params, outs: Sequence[Any]
         ) -> None:
    """Report bad numbers among the outputs of an operation."""
    for kind in _kinds_in(outs):
        is_sharded = _mode.get().is_sharded or any(map(has_sharding, (*args, *outs)))
        args, outs = list(map(gathered, args)), list(map(gathered, outs))
        if primitive.split is not None:  # it runs programs inside
            buffers = [x._buffer for x in args]
            origins = _in_mode({"is_sharded": is_sharded}, _find_origins, primitive.rule("impl"),
                               *buffers, **params)
            if not (origins or _only_origins() or is_bad(args, kind)) and is_bad(
                    _unchecked(primitive.rule("impl"), *buffers, **params), kind):
                origins = [origin(kind, primitive, args, outs, is_sharded)]  # a literal inside
            _report_origins(origins)
        elif (not _only_origins() or _is_made(primitive, args, params, kind)
                or is_new_in_the_backward_pass(kind)):
            _report_origins([origin(kind, primitive, args, outs, is_sharded)])


def _is_made(primitive: Primitive, args: Sequence[ArrayImpl], params: Params, kind: str) -> bool:
    """Whether an operation made a bad output, and did not merely pass it on.

    The test: would the output be bad if the operands were not?
    """
    return not _is_intended(args, params, kind) and is_bad(
        _without(primitive, args, params, kind, range(len(args))), kind)


def _without(primitive: Primitive, args: Sequence[ArrayImpl], params: Params, kind: str,
             places: Collection[int]) -> list:
    """The outputs of an operation with the operands at these positions made good."""
    clean = [without_bad(x, kind) if i in places else x for i, x in enumerate(args)]
    return _unchecked(primitive.evaluate, clean, params)


def _is_intended(args: Sequence[ArrayImpl], params: Params, kind: str) -> bool:
    """Whether a bad number is intended: the maximum of nothing, a fill value of nan."""
    return not any(x.size for x in args) or any(
        isinstance(p, float | np.inexact) and KINDS[kind][1](p) for p in params.values())


def _report_origins(origins: list[Origin]) -> None:
    """Report origins, unless a search for them, or for others, is running."""
    mode, sources, *_ = _mode.get()
    if origins and mode == FIND:
        raise _OriginsFound(origins)
    for kind, source, finding in origins:
        if sources is None or source in sources:
            error = errors.NonFiniteError(finding.message, quoted(source), finding.fix)
            _report(finding, error, kind)


def whole_functions_running() -> int:
    """The number of nested running functions that users see as one operation.

    >>> whole_functions_running()
    0
    """
    return sum(frame.f_code.co_name == "boundary" and bool(frame.f_locals.get("is_whole"))
               for frame in frames_inside())


def _report(finding: Finding, error: errors.NonFiniteError, kind: str, settled: int = 0) -> None:
    """Report a finding; but first each function of the package around it may settle it."""
    if whole_functions_running() > settled:
        error.settle = partial(_settle, finding, error, kind)
        raise error
    error.settle = None
    report(finding, error)


def _settle(finding: Finding, error: errors.NonFiniteError, kind: str, fun: Callable, args: tuple,
            kwargs: dict) -> tuple | None:
    """The result of a function of the package, in a tuple; None if the error in it stands.

    The function may select another value in place of a bad number, or a bad argument may account
    for it.
    """
    def is_good(tree: Any) -> bool:
        return not any(is_bad(tree_util.tree_leaves(tree), each) for each in (kind, "nan"))

    rerun = partial(_in_mode, {"mode": OFF, "is_rerun": True}, fun)
    result = rerun(*args, **kwargs)
    if is_good(result):
        return (result,)
    if _only_origins() and not is_good((args, kwargs)):
        clean_args, clean_kwargs = tree_util.tree_map(
            lambda x: without_bad(without_bad(x, kind), "nan"), (args, kwargs))
        if is_good(rerun(*clean_args, **clean_kwargs)):
            return (result,)
    try:
        _report(finding, error, kind, settled=1)
    except errors.NonFiniteError:
        return None
    return (result,)


# ── Programs ─────────────────────────────────────────────────────────────────────────────────

def interpreted(interpret: Callable, closed: ClosedJaxpr, args: Sequence[ArrayImpl],
                compiled: Callable[[], list[ArrayImpl]]) -> list[ArrayImpl]:
    """The outputs of a program; in mode `FIND`, raises the origins of bad ones.

    Args:
      interpret: runs it equation by equation.
      closed, args: the program, and its inputs.
      compiled: runs it compiled.
    """
    if _mode.get().mode != FIND:
        return interpret(closed, args, compiled)
    outs = _unchecked(compiled)
    for kind in _kinds_in(outs):
        core.run_with(core.base_trace, _trace_origins, closed, args, kind)
    return outs


def _trace_origins(closed: ClosedJaxpr, args: Sequence[ArrayImpl], kind: str) -> None:
    """Check the equations of a program that made its bad outputs."""
    read = _unchecked(all_values, closed.jaxpr, closed.consts, args).__getitem__
    origins: list[Origin] = []
    for eqn in _makers(closed.jaxpr, read, kind):
        origins += with_values(
            {core.current_source: eqn.source_info}, _find_origins, look, eqn.primitive,
            [*map(read, eqn.invars)], eqn.params, [*map(read, eqn.outvars)])
    _report_origins(origins)


def _makers(jaxpr: Jaxpr, read: Callable[[Atom], Any], kind: str) -> list[JaxprEqn]:
    """The equations that made the bad numbers of the outputs; for a bad input, those that read it.
    """
    made_by: dict[Atom, JaxprEqn] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    pending: list[tuple[Any, np.ndarray]] = [
        (v, bad_places(read(v), kind)) for v in jaxpr.outvars if is_bad([read(v)], kind)]
    makers, seen = set(), set()
    while pending:
        atom, places = pending.pop()
        if atom not in made_by or atom in seen:
            continue
        seen.add(atom)
        eqn = made_by[atom]
        args, number = [read(v) for v in eqn.invars], eqn.outvars.index(atom)
        causes = _causes(eqn, args, kind, number, places)
        is_input = all(eqn.invars[i] not in made_by for i in causes)
        if not causes or (is_input and not _only_origins()):
            makers.add(eqn)
        pending += [(eqn.invars[i], _narrowed(bad_places(args[i], kind), places)) for i in causes]
    return [eqn for eqn in jaxpr.eqns if eqn in makers]


def _causes(eqn: JaxprEqn, args: Sequence[ArrayImpl], kind: str, number: int, places: np.ndarray
            ) -> list[int]:
    """The operands that pass on the bad numbers at these positions of an output; none if the
    operation made them.
    """
    def still_bad(cleaned: Collection[int]) -> np.ndarray:
        outs = _without(eqn.primitive, args, eqn.params, kind, cleaned)
        return bad_places(outs[number], kind) & places

    bad_operands = [i for i, x in enumerate(args) if is_bad([x], kind)]
    if not _is_intended(args, eqn.params, kind) and still_bad(bad_operands).any():
        return []
    # several, each of which suffices
    return [i for i in bad_operands if (places & ~still_bad([i])).any()] or bad_operands


def _narrowed(bad: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The bad positions of an operand that matter for these positions of the output."""
    return bad & places if bad.shape == places.shape and (bad & places).any() else bad


# ── Functions that are compiled, and can be run as Python ────────────────────────────────────

def called(call: Callable[..., T], python: Callable[[], Any], function: str | None) -> T:
    """The result of a compiled function; if it is bad, its Python is run to find the line.

    The arguments are those of `transforms.compiled.called`.
    """
    compiled = partial(call, python, function)
    mode, sources, *_ = _mode.get()
    if mode == OFF:
        return compiled()
    bad_kinds: list[str] = []  # of residuals, too
    result = _in_mode({"mode": OFF, "bad_kinds": bad_kinds}, compiled)
    visible = _kinds_in(tree_util.tree_leaves(result))
    for kind in dict.fromkeys((*visible, *bad_kinds)):
        origins = _find_origins(compiled)
        if mode == FIND:
            _report_origins(origins)
        elif not origins and kind in visible and not _only_origins():
            _announce(kind, function, only_compiled=True)
        elif origins and (sources is None or any(o.source in sources for o in origins)):
            _announce(kind, function)
            _rerun(python, origins)
    return result


def called_back(function: Callable[..., T], *arrays: Any) -> T:
    """The result of a Python callback of compiled code, which is always checked."""
    settings = {} if _mode.get().is_rerun else {"mode": REPORT, "sources": None}
    return _in_mode(settings, function, *arrays)


def _rerun(python: Callable[[], Any], origins: list[Origin]) -> None:
    """Run the Python of a compiled function, so that the error comes from the user's line."""
    try:
        with config.debug_recompiles(False):
            _in_mode({"sources": [o.source for o in origins], "is_rerun": True}, python)
    except ZeroDivisionError as error:  # of numbers of Python, which a compiled function took
        if not is_collecting():
            error.add_note(origins[0].finding.message)
            raise
    except Exception as error:  # other errors of the Python run do not matter here
        if isinstance(error, errors.NonFiniteError):
            raise
    _report_origins(origins)


def _announce(kind: str, function: str | None, only_compiled: bool = False) -> None:
    is_first = _mode.get().sources is None  # nested jitted functions are silent
    if function is not None and is_first and not is_collecting():
        print(f"Invalid {kind} value encountered in the output of a {function} function. "
              "Calling the de-optimized version.")
        if only_compiled:
            print(f"The de-optimized version produced no {kind}: it is in an argument or in a "
                  "constant, or only compiled code has it. Execution continues.")


# ── Batches ──────────────────────────────────────────────────────────────────────────────────

def entered(level: core.Level) -> None:
    """Record for a new level how many of the current steps are around it."""
    level.steps_outside = len(current_steps.get())


def batched(rule: Callable[..., tuple[list, list]], primitive: Primitive, values: Sequence[Any],
            dims: Sequence[int | None], params: Params) -> tuple[list, list]:
    """The result of a batching rule; if it is bad, the operation is run on one example at a time.

    So a finding names the example; and branches that an example does not take give none.

    Args:
      rule: applies the batching rule: a method of the `BatchTrace`.
      primitive, values, dims, params: the operation, and the operands with their batch axes.
    """
    apply_rule = partial(rule, primitive, values, dims, params)
    if _mode.get().mode == OFF:
        return apply_rule()
    trace: Any = rule.__self__  # type: ignore[attr-defined]

    def operation(i: int) -> Any:
        if trace.axis.name is not None and trace.concerns(primitive, (), params):
            return apply_rule()  # the examples need each other
        example = _unchecked(core.run_with, trace.parent, lambda: [
            x if d is None else slicing.index_leading(ad_util.move_axis(x, d, 0), i)
            for x, d in zip(values, dims, strict=True)])
        return core.run_with(trace.parent, primitive.bind_list, *example, **params)

    outs, out_dims = _unchecked(apply_rule)
    for kind in _kinds():
        bad = _bad_examples(outs, out_dims, kind)
        for i in bad[:3]:
            step = Step(SHARDED if trace.axis.on_devices else "vmap", i, trace.axis.size,
                        tuple(k for k in bad if k != i))
            _in_mode({"is_rerun": True}, in_step, step, operation, i,
                     outside=getattr(trace.level, "steps_outside", None))
    return outs, out_dims


def _bad_examples(outs: Sequence[Any], dims: Sequence[int | None], kind: str) -> list[int]:
    """The indices of the bad examples."""
    examples: set[int] = set()
    for x, dim in zip(outs, dims, strict=True):
        bad = bad_places(x, kind)
        others = tuple(d for d in range(bad.ndim) if d != dim)  # all, if it is for all examples
        examples.update(np.flatnonzero(bad.any(axis=others)).tolist())
    return sorted(examples)
