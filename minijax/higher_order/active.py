"""Batches of which only some examples take part: run on all, but checked for these alone.

Stands on `cond`, which becomes this under `vmap`, as `while_loop` does.  Chapter 14,
*Out-of-bounds indexing*.  In JAX: nothing, for there are no checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import config
from minijax.core import Array, Axis, Effect, NamedAxisEffect
from minijax.higher_order.custom_derivatives import Rule
from minijax.interpreters.vmap import batch_jaxpr
from minijax.jaxpr import ClosedJaxpr, effects_of, eval_jaxpr, remove_dead_equations, subjaxprs
from minijax.primitives.checks import check_effect
from minijax.primitives.choice import select_n_p
from minijax.primitives.convert import convert_element_type_p
from minijax.primitives.emitted import broadcast_batch, broadcast_in_dim_p
from minijax.primitives.index import dynamic_slice_p
from minijax.primitives.locate import argmax_p
from minijax.primitives.reduce import reduce_or_p
from minijax.primitives.shape import squeeze_p

INT = np.dtype(np.int32)
RunIf = Callable[[Array, ClosedJaxpr, Sequence[Any]], None]


def run_for_active(active: Array, axis: Axis, program: ClosedJaxpr, args: Sequence[Any],
                   batched: Sequence[bool], keep: Sequence[bool], run_if: RunIf) -> list:
    """The outputs of a program on a batch of which only the active examples count.

    Its checks see, in place of every other example, the first that is active: what they find
    then, they find of an example that counts.

    Args:
      active: which examples are, with shape ``(batch,)``.
      axis: the axis of the batch.
      program: for one example.
      args, batched: its inputs, and which of them have the batch axis in front.
      keep: the outputs that must have it.
      run_if: ``(index, program, operands)``: run a program where the index is 1, not where it is 0.
    """
    # Where examples talk to each other along the axis, none can stand in for another.
    if axis.size and NamedAxisEffect(axis.name) not in program.effects:
        _run_checks(active, axis, program, args, batched, run_if)
    quiet, _ = batch_jaxpr(without_checks(program), axis, batched, keep)
    return eval_jaxpr(quiet.jaxpr, quiet.consts, *args)


def _run_checks(active: Array, axis: Axis, program: ClosedJaxpr, args: Sequence[Any],
                batched: Sequence[bool], run_if: RunIf) -> None:
    checks, _ = batch_jaxpr(_only_checks(program), axis, batched)
    first = argmax_p.bind(active, axes=(0,), index_dtype=INT)
    given = [_standing_in(active, first, x) if b else x for x, b in zip(args, batched, strict=True)]
    any_active = convert_element_type_p.bind(reduce_or_p.bind(active, axes=(0,)), new_dtype=INT,
                                             weak_type=False)
    run_if(any_active, checks, given)


def _standing_in(active: Array, first: Array, x: Array) -> Array:
    """A batch in which the first active example takes the place of those that are not."""
    zero = np.int32(0)
    row = dynamic_slice_p.bind(x, first, *[zero] * (x.ndim - 1), slice_sizes=(1, *x.shape[1:]))
    row = squeeze_p.bind(row, dimensions=(0,))
    return select_along_batch(active, [broadcast_batch(row, 0, x.shape[0]), x])


def select_along_batch(which: Any, cases: Sequence[Any]) -> Any:
    """`select_n` with a chooser of shape ``(batch,)`` and cases of shape ``(batch, ...)``."""
    if len(cases) == 1:
        return cases[0]
    shape = cases[0].shape
    if which.shape != shape:
        which = broadcast_in_dim_p.bind(which, shape=shape, broadcast_dimensions=(0,))
    return select_n_p.bind(which, *cases)


def without_checks(program: ClosedJaxpr) -> ClosedJaxpr:
    """The program without its checks."""
    return program.derived(("without checks",), lambda: _without(
        program, lambda effect: effect is check_effect))


def _only_checks(program: ClosedJaxpr) -> ClosedJaxpr:
    """What the program does for its checks alone: it returns nothing."""
    def make() -> ClosedJaxpr:
        quiet = _without(program, lambda effect: effect is not check_effect)
        jaxpr = remove_dead_equations(quiet.jaxpr.replace(outvars=()))
        return ClosedJaxpr(jaxpr, quiet.consts)
    return program.derived(("only checks",), make)


def _unchecked(rule: Callable) -> Callable:
    """A custom derivative rule, which is Python to be traced when it is needed, without checks."""
    def call(*args: Any) -> Any:
        with config.debug_out_of_bounds(False), config.debug_unsafe_casts(False):
            return rule(*args)
    return call


def _without(program: ClosedJaxpr, unwanted: Callable[[Effect], bool]) -> ClosedJaxpr:
    """The program without equations that do nothing but this, those of inner programs, too."""
    def stripped(value: Any) -> Any:
        if isinstance(value, tuple) and any(isinstance(x, ClosedJaxpr) for x in value):
            return tuple(map(stripped, value))
        if isinstance(value, Rule) and unwanted(check_effect):
            return value.changed(_unchecked(value))
        return _without(value, unwanted) if isinstance(value, ClosedJaxpr) else value

    eqns = []
    for eqn in program.eqns:
        if any(map(unwanted, eqn.effects)):
            if not any(subjaxprs(eqn.params)) and not eqn.outvars:
                continue
            params = {name: stripped(value) for name, value in eqn.params.items()}
            eqn = eqn.replace(params=params, effects=eqn.primitive.effects(**params))
        eqns.append(eqn)
    jaxpr = program.jaxpr.replace(eqns=tuple(eqns), effects=effects_of(eqns))
    return ClosedJaxpr(jaxpr, program.consts)
