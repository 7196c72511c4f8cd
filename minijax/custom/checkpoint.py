"""`checkpoint`: recompute intermediate values in the backward pass instead of saving them.

Builds on `compiled`.  Chapter 10, *Your own rules and checkpointing*.
In JAX: `jax/_src/ad_checkpoint.py`.
"""

import functools
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from minijax.util import source_info, tracebacks
from minijax import config, core, errors
from minijax.transforms import arguments, array_refs, compiled, discharge
from minijax.control_flow.cond import refuse_io
from minijax.control_flow.program_rules import rearranged, split_list
from minijax.control_flow.traced_functions import Operands, TraceRequest, TracedFunction
from minijax.custom.custom_jvp_vjp import only_evaluated
from minijax.custom.remat import Policy, dce_jaxpr, inline_calls, partial_eval_with_policy
from minijax.core import dce, tracing
from minijax.core.partial_eval import PartialEvalResult, partial_eval_jaxpr
from minijax.core.jaxpr import (Atom, ClosedJaxpr, JaxprEqn, cached_on_jaxpr, eval_jaxpr,
                                merge_lists, partition_list)

TRACED_FOR = "checkpoint / remat"


@cached_on_jaxpr
def _partial_eval(closed: ClosedJaxpr, unknown: Sequence[bool], policy: Policy | None
                  ) -> tuple[ClosedJaxpr, ClosedJaxpr, Sequence[bool], Sequence[bool]]:
    """The known and the unknown half; which outputs are unknown; which inputs the latter reads.

    Values saved by a policy become outputs of the known half and inputs of the unknown one.
    """
    forward, again, saved_avals = (closed, closed, []) if policy is None else (
        partial_eval_with_policy(inline_calls(closed), unknown, policy))
    num_inputs, num_outputs = len(closed.in_avals), len(closed.out_avals)
    halves = partial_eval_jaxpr(forward, unknown)
    unknown_out = halves.unknown_out[:num_outputs]
    again = dce_jaxpr(rearranged(
        again, outputs=partition_list(range(num_outputs), unknown_out)[True]))
    used = dce.used_inputs(again)
    used_args, used_residuals = split_list(used, num_inputs)
    residuals = partition_list(range(len(saved_avals)), used_residuals)[True]
    count = unknown_out.count(False)
    known = rearranged(halves.known, outputs=[*range(count), *(count + i for i in residuals)])
    unknown_half = rearranged(again, partition_list(range(len(used)), used)[True])
    return dce_jaxpr(known), unknown_half, unknown_out, used_args


def _split(unknown: Sequence[bool], args: Sequence[Any], *, jaxpr: ClosedJaxpr,
           policy: Policy | None = None, **params: Any) -> PartialEvalResult:
    """The known outputs now; the unknown ones later, with all that they need, from `args`."""
    if any(unknown):
        refuse_io(jaxpr, NotImplementedError, "Effects not supported in partial-eval of "
                  f"`checkpoint`/`remat`: {[*jaxpr.effects]}")
    known, unknown_half, unknown_out, used = _partial_eval(jaxpr, unknown, policy)
    _log_residuals((aval for aval, later, read in zip(jaxpr.in_avals, unknown, used, strict=True)
                    if read and not later), known.jaxpr.outvars[unknown_out.count(False):],
                   known.eqns)
    params["policy"] = policy
    return PartialEvalResult(
        partition_list(args, unknown)[False], {"jaxpr": known, **params},
        lambda residuals: [*partition_list(args, used)[True], *residuals],
        {"jaxpr": unknown_half, **params, "differentiated": True}, unknown_out)


def _log_residuals(inputs: Iterable[core.ShapedArray], saved: Sequence[Atom],
                   eqns: Sequence[JaxprEqn]) -> None:
    """Log what the backward pass keeps: arguments, and results of operations."""
    if not (config.read("log_checkpoint_residuals") or compiled.logger.isEnabledFor(logging.DEBUG)):
        return
    sources = {v: eqn for eqn in eqns for v in eqn.outvars}
    kept = [f"  {aval.str_long()}" for aval in inputs]
    lines = ["remat-decorated function saving inputs with shapes:", *kept] if kept else []
    if saved:
        lines.append("and saving these intermediates:" if kept else
                     "remat-decorated function saving these intermediates:")
        lines += [f"  {v.aval.str_long()} from output of {sources[v].primitive.name} from "
                  f"{source.place if (source := sources[v].source_info) else 'an unknown line'}"
                  for v in saved if v in sources]
    if lines:
        compiled.log("%s\n", "\n".join(lines), flag="log_checkpoint_residuals")


class CheckpointPrimitive(compiled.CallPrimitive):
    """Applies a program; operation by operation, where the user has given one its meaning."""

    def evaluate(self, args: Sequence[Any], params: core.Params) -> list[core.ArrayImpl]:
        closed = params["jaxpr"]
        if closed.derived(("has users' operations",), lambda: any(
                eqn.primitive.impl is not eqn.primitive.as_made["impl"] for eqn in closed.eqns)):
            return eval_jaxpr(closed.jaxpr, closed.consts, *args)
        return super().evaluate(args, params)


checkpoint_p = compiled.call_of_program("checkpoint", _split, recomputes=True,
                                        kind=CheckpointPrimitive)


def checkpoint(fun: Callable | None = None, *, prevent_cse: bool | Sequence[bool] = True,
               policy: Policy | None = None, static_argnums: int | tuple[int, ...] = (),
               static_argnames: str | Iterable[str] = (), concrete: Any = None) -> Any:
    """A function whose backward pass recomputes its intermediate values.

    Its derivative needs memory for the arguments only, and the time of a second forward pass.

    Args:
      fun: a function of arrays and trees of arrays.
      prevent_cse: accepted for JAX's sake; the second computation is never merged with the first.
      policy: ``(primitive, *types, **params)``, true if the result may be saved, as in
        `checkpoint_policies`; None: only the arguments are saved.
      static_argnums: positions of arguments that are not arrays.
      static_argnames: names of such arguments.
      concrete: refused, as in JAX.

    Returns:
      A function of the same arguments.

    Raises:
      ValueError: on call, for the position of an argument that was not passed.

    >>> import minijax as jax
    >>> f = checkpoint(lambda x: jax.numpy.sin(jax.numpy.sin(x)))
    >>> jax.grad(f)(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    if fun is None:
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy,
                                 static_argnums=static_argnums, static_argnames=static_argnames,
                                 concrete=concrete)
    if concrete is not None:
        raise NotImplementedError(
            "The `concrete` option to `jax.checkpoint` was deprecated in JAX v0.8.2, and removed "
            "in JAX v0.10.0. In its place please use `static_argnums`; for details refer to "
            "https://docs.jax.dev/en/latest/jep/11830-new-remat-checkpoint.html.")
    if not isinstance(prevent_cse, bool | Sequence):
        raise TypeError(f"prevent_cse must be a bool or tuple of bools, got {type(prevent_cse)=}")
    numbers = (static_argnums,) if isinstance(static_argnums, int) else static_argnums
    # JAX: 0.10.2 takes names and does nothing about them.
    static = arguments.named_arguments(fun, None, static_argnames, "static")

    def called(function: Callable, args: tuple, kwargs: dict) -> Any:
        places = {i % len(args) for i in (*numbers, *static.places(len(args)))} | {
            i for i, x in enumerate(args) if discharge.has_refs(x)}
        traced, values = _staged(function, args, kwargs, places)
        outs = compiled.called(lambda: checkpoint_p.bind(
            *traced.consts, *values, jaxpr=traced.program, name=source_info.function_name(fun),
            differentiated=False, policy=policy),
            lambda: arguments.flattened(function, args, TRACED_FOR, False, kwargs, places)[0](
                *values))
        return traced.tree_of(outs)

    @tracebacks.standing_for(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        _check_static(numbers, args)
        named = {name: kwargs.pop(name) for name in [*kwargs]
                 if name in static.names or discharge.has_refs(kwargs[name])}
        function = functools.partial(fun, **named) if named else fun

        def with_refs(refs: Sequence[array_refs.Ref], values: list) -> tuple[Any, list]:
            return called(tracebacks.wraps(fun)(discharge.reading(function, refs)), args,
                          {"values_of_references": values, **kwargs}), values

        try:
            return called(function, args, kwargs)
        except arguments.NotCarriedError as error:
            caught = error
        try:
            return discharge.carrying_refs(with_refs, discharge.carry(caught, []))
        except discharge.NotStagedError as error:
            trace = core.current_trace.get()
            if type(trace) is tracing.DynamicJaxprTrace:
                return only_evaluated(function(*args, **kwargs), str(error))
            is_written_twice = error.ref is not None and error.ref.kind is None
            if is_written_twice and trace is not core.base_trace:
                raise NotImplementedError(*error.args) from None
            return function(*args, **kwargs)
    return checkpointed


def _check_static(numbers: Any, args: tuple) -> None:
    if not isinstance(numbers, tuple) or not all(type(n) is int for n in numbers):
        raise TypeError("the `static_argnums` argument to `jax.checkpoint` / `jax.remat` must be "
                        f"an int, tuple of ints or, bool, but got value {numbers}")
    if not all(-len(args) <= n < len(args) for n in numbers):
        raise ValueError("the `static_argnums` argument to `jax.checkpoint` / `jax.remat` can only "
                         "take integer values greater than or equal to `-len(args)` and less than "
                         f"`len(args)`, but got {numbers}, while `len(args)` = {len(args)}")


def _staged(fun: Callable, args: tuple, kwargs: dict, static: Collection[int]
            ) -> tuple[TracedFunction, list]:
    """The program of a function for arguments, and the arrays that these consist of."""
    arguments.check_callable(fun)
    is_static = [i in static for i in range(len(args))]
    dynamic_args, static_args = partition_list(args, is_static)
    operands = Operands((dynamic_args, kwargs))
    arg_types, kwarg_types = operands.types
    types = tuple(merge_lists((arg_types, static_args), is_static))
    try:
        return TraceRequest(fun, types, TRACED_FOR, kwarg_types, static, tracing.is_captured
                            ).traced(), operands.values
    except errors.ConcretizationTypeError as error:
        if "for checkpoint" in str(error):
            errors.with_cure(error, "Consider using the `static_argnums` parameter for `jax.remat` "
                                    "or `jax.checkpoint`.")
        raise


remat = checkpoint
