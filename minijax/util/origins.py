"""Where a traced value comes from, for the errors of what needs its number.

Loaded by the first such error.  Chapter 21, *Errors*.
In JAX: `DynamicJaxprTracer._origin_msg` of `partial_eval.py`.
"""

from collections.abc import Sequence
from typing import Any


def origin_of(var: Any, trace: Any) -> str:
    """The sentence on the arguments that a variable of a program is computed from, or else on the
    operations that make it of constants.
    """
    names = arguments_behind(var, trace)
    return _of_arguments(names) if names else _of_operations(_operations_behind(var, trace))


def arguments_behind(var: Any, trace: Any) -> list[str]:
    """The names of the arguments that the value of `var` was computed from."""
    reached = {var}
    for eqn in reversed(trace.eqns):
        if not reached.isdisjoint(eqn.outvars):
            reached.update(_variables(eqn))
    names = trace.level.debug_info.arg_names if trace.level.debug_info else ()
    reaching = [name for v, name in zip(trace.invars, names, strict=False) if v in reached]
    return [name for name in reaching if name is not None]


def _operations_behind(var: Any, trace: Any) -> list[str]:
    """The operations on constants that the value of `var` was computed from, the last one first."""
    reached, found, constants = {var}, [], {v for v, _ in trace.constants.values()}
    for eqn in reversed(trace.eqns):
        if not reached.isdisjoint(eqn.outvars):
            reached.update(_variables(eqn))
            if len(_variables(eqn)) < len(eqn.invars) or not constants.isdisjoint(_variables(eqn)):
                place = eqn.source_info.place if eqn.source_info else "unknown"
                found.append(f"  operation {eqn}\n    from line {place}")
    return found


def _variables(eqn: Any) -> list[Any]:
    """The inputs of an equation that are no literals."""
    return [x for x in eqn.invars if not hasattr(x, "val")]


def _of_arguments(names: Sequence[str]) -> str:
    if len(names) == 1:
        what = f"value of the argument {names[0]}"
    else:
        comma = ", " if len(names) > 2 else " "
        what = f"values of the arguments {', '.join(names[:-1])}{comma}and {names[-1]}"
    return f" This concrete value was not available in Python because it depends on the {what}."


def _of_operations(latest_first: Sequence[str]) -> str:
    if not latest_first:
        return ""
    more = ["(Additional originating lines are not shown.)"] if len(latest_first) > 5 else []
    return "\n\n".join([" This value became a tracer due to JAX operations on these lines:",
                        *latest_first[:-6:-1], *more])
