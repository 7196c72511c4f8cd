"""Loops of unknown length: `while_loop`, `fori_loop`, and the primitive behind them.

Stands on `programs`, `scan`.  Chapter 09, *Control flow*.
In JAX: `jax/_src/lax/control_flow/loops.py`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import config, core, dtypes, errors, tree_util
from minijax.core import Array, Axis, Example, ShapedArray
from minijax.higher_order.active import run_for_active, select_along_batch
from minijax.higher_order.compiled import called, interpret
from minijax.higher_order.cond import run_if
from minijax.higher_order.jit import jit
from minijax.higher_order.programs import Body, Carry, CompiledPrimitive
from minijax.higher_order.rules import BodyWithTangents, chosen, cut, fixpoint, rearranged
from minijax.higher_order.scan import scan
from minijax.interpreters.split import Halves, split_jaxpr
from minijax.interpreters.vmap import Dim, batch_jaxpr, batch_to
from minijax.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.primitives.algebra import add_p, mul_p
from minijax.primitives.checks import check_effect
from minijax.primitives.choice import lt_p
from minijax.primitives.convert import convert_element_type_p
from minijax.primitives.reduce import reduce_or_p
from minijax.source_info import Step, in_step
from minijax.stage import stage

# The operands of a while loop are [constants of the condition, constants of the body, carry].

NO_REVERSE = ("Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
              "dynamic start/stop values. Try using lax.scan, or using fori_loop with static "
              "start/stop.")


# ── The block ────────────────────────────────────────────────────────────────────────────────

def _impl(*buffers: np.ndarray, cond_jaxpr: ClosedJaxpr, cond_nconsts: int,
          body_jaxpr: ClosedJaxpr, body_nconsts: int) -> list[np.ndarray]:
    cond_consts, body_consts, carry = cut(buffers, cond_nconsts, body_nconsts)
    for i in itertools.count():
        step = Step("while_loop", i)
        if not in_step(step, interpret, cond_jaxpr, *cond_consts, *carry)[0]:
            break
        carry = in_step(step, interpret, body_jaxpr, *body_consts, *carry)
    return carry


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, cond_jaxpr: ClosedJaxpr,
         cond_nconsts: int, body_jaxpr: ClosedJaxpr, body_nconsts: int) -> tuple[list, list]:
    body = BodyWithTangents(body_jaxpr, body_nconsts, len(body_jaxpr.out_avals),
                            primals[cond_nconsts:], tangents[cond_nconsts:])
    consts, carry, _ = body.operands
    condition = cond_jaxpr.derived(("while jvp", *body.out_has), lambda: _ignoring(
        cond_jaxpr, chosen(body_jaxpr.out_avals, body.out_has)))
    outs = while_p.bind(*primals[:cond_nconsts], *consts, *carry, cond_jaxpr=condition,
                        cond_nconsts=cond_nconsts, body_jaxpr=body.program,
                        body_nconsts=len(consts))
    return body.primals_and_tangents(outs)


def _ignoring(condition: ClosedJaxpr, tangent_avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The condition, given tangents that it does not look at."""
    count = len(condition.in_avals)
    avals = [*condition.in_avals, *(a.to_tangent_aval() for a in tangent_avals)]
    return stage(lambda *xs: eval_jaxpr(condition.jaxpr, condition.consts, *xs[:count]), avals,
                 condition.jaxpr.debug_info)


def _batch(axis: Axis, args: Sequence[Any], dims: Sequence[Dim], *, cond_jaxpr: ClosedJaxpr,
           cond_nconsts: int, body_jaxpr: ClosedJaxpr, body_nconsts: int) -> tuple[list, list]:
    cond_b, body_b, init_b = cut([d is not None for d in dims], cond_nconsts, body_nconsts)

    def out_batched(carry_b: Sequence[bool]) -> Sequence[bool]:
        if batch_jaxpr(cond_jaxpr, axis, [*cond_b, *carry_b])[1][0]:
            return [True] * len(carry_b)  # each example stops in its own time
        return batch_jaxpr(body_jaxpr, axis, [*body_b, *carry_b], carry_b)[1]

    carry_b = fixpoint(init_b, out_batched)
    condition, (each_its_own,) = batch_jaxpr(cond_jaxpr, axis, [*cond_b, *carry_b])
    body, _ = batch_jaxpr(body_jaxpr, axis, [*body_b, *carry_b], carry_b)
    moved = [batch_to(x, d, 0, axis.size) if b else x
             for x, d, b in zip(args, dims, [*cond_b, *body_b, *carry_b], strict=True)]
    consts, body_consts, carry = cut(moved, cond_nconsts, body_nconsts)
    if each_its_own:
        step = functools.partial(_step, axis, body_jaxpr, body, [*body_b, *carry_b], carry_b)
        body, condition = _until_all_stop(condition, cond_nconsts, body, body_nconsts, step)
        body_consts = [*consts, *body_consts]
    outs = while_p.bind(*consts, *body_consts, *carry, cond_jaxpr=condition,
                        cond_nconsts=cond_nconsts, body_jaxpr=body,
                        body_nconsts=len(body_consts))
    return outs, [0 if b else None for b in carry_b]


def _step(axis: Axis, body: ClosedJaxpr, batched: ClosedJaxpr, flags: Sequence[bool],
          keep: Sequence[bool], goes_on: Array, args: Sequence[Any]) -> list:
    """The body on a batch, of which only the examples that go on count."""
    if check_effect not in body.effects:
        return eval_jaxpr(batched.jaxpr, batched.consts, *args)
    return run_for_active(goes_on, axis, body, args, flags, keep, run_if)


def _until_all_stop(condition: ClosedJaxpr, cond_nconsts: int, body: ClosedJaxpr,
                    body_nconsts: int, step_of: Callable[[Array, Sequence[Any]], list]
                    ) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Loop while any example goes on; examples that have stopped keep their carry."""
    consts, carry_avals = cut(condition.in_avals, cond_nconsts)
    body_const_avals, _ = cut(body.in_avals, body_nconsts)

    def goes_on(*args: Any) -> list:
        return eval_jaxpr(condition.jaxpr, condition.consts, *args)

    def step(*args: Any) -> list:
        cond_consts, body_consts, carry = cut(args, cond_nconsts, body_nconsts)
        (which,) = goes_on(*cond_consts, *carry)
        new = step_of(which, [*body_consts, *carry])
        return [select_along_batch(which, [old, x]) for old, x in zip(carry, new, strict=True)]

    def any_goes_on(*args: Any) -> list:
        return [reduce_or_p.bind(goes_on(*args)[0], axes=(0,))]

    return (stage(step, [*consts, *body_const_avals, *carry_avals], body.jaxpr.debug_info),
            stage(any_goes_on, condition.in_avals, condition.jaxpr.debug_info))


def _split(unknown: Sequence[bool], args: Sequence[Any], *, cond_jaxpr: ClosedJaxpr,
           cond_nconsts: int, body_jaxpr: ClosedJaxpr, body_nconsts: int) -> Halves | None:
    """The loop on what is known; the unknown half is the whole loop over again."""
    cond_u, body_u, init_u = cut(unknown, cond_nconsts, body_nconsts)
    carry_u = fixpoint(init_u, lambda flags: split_jaxpr(
        body_jaxpr, [*body_u, *flags], keep_unknown=flags).unknown_out)
    if split_jaxpr(cond_jaxpr, [*cond_u, *carry_u]).unknown_out[0]:
        return None
    flags = [*cond_u, *body_u, *carry_u]
    keeps = [not u for u in carry_u]
    condition = split_jaxpr(cond_jaxpr, [*cond_u, *carry_u]).known
    halves = split_jaxpr(body_jaxpr, [*body_u, *carry_u], keep_unknown=carry_u)
    body = halves.known.derived(("while split",), lambda: rearranged(
        halves.known, outputs=range(sum(keeps))))
    known = {"cond_jaxpr": condition, "cond_nconsts": cond_nconsts - sum(cond_u),
             "body_jaxpr": body, "body_nconsts": body_nconsts - sum(body_u)}
    whole = {"cond_jaxpr": cond_jaxpr, "cond_nconsts": cond_nconsts,
             "body_jaxpr": body_jaxpr, "body_nconsts": body_nconsts}
    return Halves(chosen(args, [not u for u in flags]), known, lambda _: args, whole, carry_u)


def _transpose(*_: Any, **__: Any) -> list:
    raise ValueError(NO_REVERSE)


def _lower(b: Any, outputs: Sequence[Any], operands: Sequence[Any], *, cond_jaxpr: ClosedJaxpr,
           cond_nconsts: int, body_jaxpr: ClosedJaxpr, body_nconsts: int) -> None:
    cond_consts, body_consts, init = cut(operands, cond_nconsts, body_nconsts)
    cells = [b.cell(x, out) for x, out in zip(init, outputs, strict=True)]
    b.while_loop(lambda: b.jaxpr(cond_jaxpr, [*cond_consts, *cells])[0](()),
                 lambda: b.jaxpr(body_jaxpr, [*body_consts, *cells], into=cells))
    for cell, out in zip(cells, outputs, strict=True):
        b.materialize(cell, into=out)


def _examples() -> list[Example]:
    scalar, vector = ShapedArray((), np.float32), ShapedArray((2,), np.float32)
    condition = stage(lambda limit, c, x: [lt_p.bind(c, limit)], [scalar, scalar, vector])
    body = stage(lambda w, c, x: [mul_p.bind(c, w), mul_p.bind(x, w)], [scalar, scalar, vector])
    params = {"cond_jaxpr": condition, "cond_nconsts": 1, "body_jaxpr": body, "body_nconsts": 1}
    x = np.array([0.5, -1.0], np.float32)
    return [Example((np.float32(20.0), np.float32(1.5), np.float32(1.0), x), params),
            Example((np.float32(-1.0), np.float32(1.5), np.float32(1.0), x), params)]


while_p = CompiledPrimitive(
    "while",
    impl=_impl,
    abstract_eval=lambda *avals, body_jaxpr, **_: body_jaxpr.out_avals,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    loop=_lower,
    split=_split,
    examples=_examples,
    multiple_results=True,
    handles_keys=True)


# ── As users call it ─────────────────────────────────────────────────────────────────────────

def while_loop(cond_fun: Callable, body_fun: Callable, init_val: Any) -> Any:
    """Repeat a function while a condition holds.

    Args:
      cond_fun: takes the state, returns a boolean scalar.
      body_fun: takes the state, returns the next one: same tree, shapes and dtypes.
      init_val: the first state, a tree of arrays.

    Returns:
      The first state for which the condition does not hold.

    Raises:
      TypeError: when the condition gives no boolean scalar, or the state changes its type.

    >>> while_loop(lambda x: x < 10, lambda x: x * 2, 1)
    Array(16, dtype=int32, weak_type=True)
    """
    if not (callable(body_fun) and callable(cond_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    if config.disable_jit.value:
        try:
            return _run_in_python(cond_fun, body_fun, init_val)
        except errors.ConcretizationTypeError:
            pass  # the condition depends on a value that is not known, one of a vmap for instance
    carry = Carry(init_val, "while_loop")
    body = Body(body_fun, (carry.types,), "while_loop")
    if carry.adapted(tree_util.tree_unflatten(body.out_tree, body.out_avals)):
        body = Body(body_fun, (carry.types,), "while_loop")
    condition = Body(cond_fun, (carry.types,), "while_cond")
    _check_condition(condition)
    name = body.argument_name
    carry.check(tree_util.tree_unflatten(body.out_tree, body.out_avals), name)
    outs = called(lambda: _looped(condition, body, carry),
                        lambda: _run_in_python(cond_fun, jit(body_fun), init_val))
    return tree_util.tree_unflatten(body.out_tree, outs)


def _looped(condition: Body, body: Body, carry: Carry) -> list:
    """The last state, of which the loop computes what its body does not merely hand on."""
    test, jaxpr = condition.closed.jaxpr, body.closed.jaxpr
    test_consts, tested = cut(test.invars, len(condition.consts))
    consts, state = cut(jaxpr.invars, len(body.consts))
    read = {*test.outvars, *(v for eqn in test.eqns for v in eqn.invars)}
    kept = [k and v not in read for k, v in zip(carry.kept_by(body), tested, strict=True)]
    changes = [not k for k in kept]
    step = jaxpr.replace(invars=(*chosen(state, kept), *consts, *chosen(state, changes)),
                         outvars=tuple(chosen(jaxpr.outvars, changes)))
    test = test.replace(invars=(*test_consts, *chosen(tested, changes)))
    computed = iter(while_p.bind(
        *condition.consts, *chosen(carry.values, kept), *body.consts,
        *chosen(carry.values, changes),
        cond_jaxpr=ClosedJaxpr(test, condition.closed.consts), cond_nconsts=len(test_consts),
        body_jaxpr=ClosedJaxpr(step, body.closed.consts), body_nconsts=len(consts) + sum(kept)))
    return [x if k else next(computed) for x, k in zip(carry.given, kept, strict=True)]


def _run_in_python(cond_fun: Callable, body_fun: Callable, state: Any) -> Any:
    """For `disable_jit`: the loop a reader can step through."""
    for i in itertools.count():
        step = Step("while_loop", i)
        if not in_step(step, cond_fun, state):
            break
        state = in_step(step, body_fun, state)
    return state


def _check_condition(condition: Body) -> None:
    if not tree_util.treedef_is_leaf(condition.out_tree):
        raise TypeError("cond_fun must return a boolean scalar, but got pytree "
                        f"{condition.out_tree}.")
    (aval,) = condition.out_avals
    if aval.shape != () or aval.dtype != np.bool_:
        raise TypeError("cond_fun must return a boolean scalar, but got output type(s) "
                        f"{condition.out_avals}.")


def fori_loop(lower: Any, upper: Any, body_fun: Callable, init_val: Any, *,
              unroll: int | bool | None = None) -> Any:
    """Repeat a function for each integer of a range.

    With bounds known while tracing it is a `scan`, and can be differentiated in reverse.

    Args:
      lower: the first integer.
      upper: the integer at which to stop.
      body_fun: ``(i, state) -> state``.
      init_val: the first state, a tree of arrays.
      unroll: accepted for JAX's sake; the loop is native code either way.

    Returns:
      The last state.

    Raises:
      TypeError: when the bounds are no scalars of one type, or the state changes its type.
      ValueError: for `unroll` where a bound is not known.

    >>> fori_loop(0, 5, lambda i, x: x + i, 0)
    Array(10, dtype=int32, weak_type=True)
    """
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    first, last = _bounds(lower, upper)
    if core.is_concrete(first) and core.is_concrete(last):
        start, stop = (int(core.concrete_or_error(x)) for x in (first, last))  # type: ignore[arg-type]
        if config.disable_jit.value and stop <= start:
            return init_val
        return scan(_counted(body_fun), (start, init_val), None, max(stop - start, 0))[0][1]
    if unroll is not None:
        raise ValueError("Can only use `unroll` in `fori_loop` if the loop bounds are statically "
                         "known.")

    def step(loop_carry: tuple) -> tuple:
        i, stop, state = loop_carry
        return add_p.bind(i, _one_like(i)), stop, body_fun(i, state)
    return while_loop(lambda loop_carry: lt_p.bind(*loop_carry[:2]), step,
                      (first, last, init_val))[2]


def _counted(body_fun: Callable) -> Callable:
    def step(loop_carry: tuple, _: None) -> tuple:
        i, state = loop_carry
        return (add_p.bind(i, _one_like(i)), body_fun(i, state)), None
    return step


def _one_like(i: Any) -> Any:
    one = np.ones((), i.dtype)[()]
    return one.item() if i.weak_type else one


def _bounds(lower: Any, upper: Any) -> tuple[Any, Any]:
    """The bounds with one dtype; Python integers adapt to the other bound, a signed integer."""
    first, last = core.as_value(lower), core.as_value(upper)
    if first.ndim or last.ndim:
        raise TypeError("lower and upper arguments to fori_loop must be scalars, got shapes "
                        f"{first.shape} and {last.shape}")
    if first.dtype == last.dtype:
        return first, last
    weak, strong = (first, last) if first.weak_type else (last, first)
    signed = all(dtypes.issubdtype(x.dtype, np.signedinteger) for x in (weak, strong))
    if not signed or not weak.weak_type or strong.weak_type:
        raise TypeError("lower and upper arguments to fori_loop must have equal types, "
                        f"got {first.dtype} and {last.dtype}")
    first, last = (x if x is strong else convert_element_type_p.bind(
        x, new_dtype=strong.dtype, weak_type=False) for x in (first, last))
    return first, last
