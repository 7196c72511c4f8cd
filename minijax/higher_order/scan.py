"""Loops of known length: `scan`, and the primitive behind it.

Stands on `programs`.  Chapter 09, *Control flow*.
In JAX: `jax/_src/lax/control_flow/loops.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import config, core, errors, tree_util
from minijax.core import Axis, Example, ShapedArray, Undefined
from minijax.higher_order.compiled import called, interpret
from minijax.higher_order.jit import jit
from minijax.higher_order.programs import Body, Carry, CompiledPrimitive
from minijax.higher_order.rules import BodyWithTangents, chosen, cut, fixpoint, rearranged
from minijax.interpreters.split import Halves, SplitProgram, split_jaxpr
from minijax.interpreters.transpose import backward_pass
from minijax.interpreters.vmap import Dim, batch_jaxpr, batch_to, with_axis, without_axis
from minijax.jaxpr import ClosedJaxpr
from minijax.primitives.algebra import add_p, mul_p
from minijax.primitives.analytic import sin_p
from minijax.primitives.emitted import add_cotangents, instantiate, zeros
from minijax.primitives.slicing import index_leading, stack
from minijax.source_info import Step, in_step
from minijax.stage import stage

# The operands of a scan are [constants, initial carry, arrays to run over]; its body takes
# [constants, carry, one row of each array] and returns [carry, one row of each stacked output].


# ── The block ────────────────────────────────────────────────────────────────────────────────

def _impl(*buffers: np.ndarray, jaxpr: ClosedJaxpr, length: int, reverse: bool, num_consts: int,
          num_carry: int, unroll: int) -> list[np.ndarray]:
    consts, carry, xs = cut(buffers, num_consts, num_carry)
    avals = [core.physical_aval(a) for a in jaxpr.out_avals[num_carry:]]
    ys = [np.zeros((length, *a.shape), a.dtype) for a in avals]
    for i in reversed(range(length)) if reverse else range(length):
        outs = in_step(Step("scan", i, length), interpret, jaxpr, *consts, *carry,
                       *(x[i].copy() for x in xs))
        carry = outs[:num_carry]
        for y, row in zip(ys, outs[num_carry:], strict=True):
            y[i] = row
    return [*carry, *ys]


def _types(*avals: ShapedArray, jaxpr: ClosedJaxpr, length: int, num_carry: int, **_: Any
           ) -> list[ShapedArray]:
    carry, rows = cut(jaxpr.out_avals, num_carry)
    return [*carry, *(with_axis(a, 0, length) for a in rows)]


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr,
         num_consts: int, num_carry: int, **params: Any) -> tuple[list, list]:
    body = BodyWithTangents(jaxpr, num_consts, num_carry, primals, tangents)
    consts, carry, xs = body.operands
    outs = scan_p.bind(*consts, *carry, *xs, jaxpr=body.program, num_consts=len(consts),
                       num_carry=len(carry), **params)
    return body.primals_and_tangents(outs)


def _batch(axis: Axis, args: Sequence[Any], dims: Sequence[Dim], *, jaxpr: ClosedJaxpr,
           num_consts: int, num_carry: int, **params: Any) -> tuple[list, list]:
    consts_b, init_b, xs_b = cut([d is not None for d in dims], num_consts, num_carry)
    rows = len(jaxpr.out_avals) - num_carry

    def batched(carry_b: Sequence[bool]) -> tuple[ClosedJaxpr, Sequence[bool]]:
        return batch_jaxpr(jaxpr, axis, [*consts_b, *carry_b, *xs_b],
                           [*carry_b, *[False] * rows])

    carry_b = fixpoint(init_b, lambda flags: batched(flags)[1][:num_carry])
    body, out_b = batched(carry_b)
    # the leading axis of `xs` is the loop's, so the batch comes second there
    wanted = [*[0] * (num_consts + num_carry), *[1] * len(xs_b)]
    moved = [batch_to(x, d, w, axis.size) if b else x for x, d, w, b in
             zip(args, dims, wanted, [*consts_b, *carry_b, *xs_b], strict=True)]
    outs = scan_p.bind(*moved, jaxpr=body, num_consts=num_consts, num_carry=num_carry, **params)
    places = [*[0] * num_carry, *[1] * rows]
    return outs, [p if b else None for p, b in zip(places, out_b, strict=True)]


def _split(unknown: Sequence[bool], args: Sequence[Any], *, jaxpr: ClosedJaxpr,
           num_consts: int, num_carry: int, **params: Any) -> Halves:
    consts_u, init_u, xs_u = cut(unknown, num_consts, num_carry)
    rows = len(jaxpr.out_avals) - num_carry
    # a carry changes from step to step, so the unknown half needs it stacked, not as it is
    forwardable = [*[True] * num_consts, *[False] * num_carry, *[True] * len(xs_u)]

    def halves_for(carry_u: Sequence[bool]) -> Any:
        keep = [*carry_u, *[False] * rows]
        return split_jaxpr(jaxpr, [*consts_u, *carry_u, *xs_u], keep, forwardable)

    carry_u = fixpoint(init_u, lambda flags: halves_for(flags).unknown_out[:num_carry])
    halves = halves_for(carry_u)
    flags = [*consts_u, *carry_u, *xs_u]
    known = {"jaxpr": halves.known, "num_consts": num_consts - sum(consts_u),
             "num_carry": num_carry - sum(carry_u), **params}
    from_consts = [i for i in halves.needs if i is not None and i < num_consts]
    order = _unknown_order(halves, consts_u, carry_u, num_consts)
    body = halves.unknown.derived(("scan split", num_consts, num_carry),
                                  lambda: rearranged(halves.unknown, order))
    rest = {"jaxpr": body, "num_consts": len(from_consts) + sum(consts_u),
            "num_carry": sum(carry_u), **params}
    consts, init, xs = cut(args, num_consts, num_carry)

    def unknown_args(residuals: Sequence[Any]) -> list:
        needed = halves.needed(args, residuals)
        rows = [x for x, i in zip(needed, halves.needs, strict=True)
                if i is None or i >= num_consts]
        return [*(args[i] for i in from_consts), *chosen(consts, consts_u),
                *chosen(init, carry_u), *rows, *chosen(xs, xs_u)]
    return Halves(chosen(args, [not u for u in flags]), known, unknown_args, rest,
                  halves.unknown_out)


def _unknown_order(halves: SplitProgram, consts_u: Sequence[bool], carry_u: Sequence[bool],
                   num_consts: int) -> list[int]:
    """Inputs of the unknown half, from (needed, unknown) to a scan's order."""
    count = len(halves.needs)
    is_const = [i is not None and i < num_consts for i in halves.needs]
    consts, carry, xs = cut(range(count, len(halves.unknown.in_avals)), sum(consts_u),
                            sum(carry_u))
    return [*(p for p in range(count) if is_const[p]), *consts, *carry,
            *(p for p in range(count) if not is_const[p]), *xs]


def _transpose(cotangents: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, num_consts: int,
               num_carry: int, reverse: bool, **params: Any) -> list:
    linear = [isinstance(x, Undefined) for x in args]
    # the whole carry is linear, though it may start from a known value, namely zero
    consts_lin, init_lin, xs_lin = cut(linear, num_consts, num_carry)
    consts, init, xs = cut(args, num_consts, num_carry)
    key = ("scan transpose", num_consts, num_carry, *linear)
    body = jaxpr.derived(key, lambda: _transposed_body(jaxpr, consts_lin, xs_lin, num_carry))
    fixed_consts = chosen(consts, [not lin for lin in consts_lin])
    fixed_xs = chosen(xs, [not lin for lin in xs_lin])
    sums = [zeros(x.aval) for x in chosen(consts, consts_lin)]
    ct_carry, ct_ys = cut([instantiate(ct) for ct in cotangents], num_carry)
    outs = scan_p.bind(*fixed_consts, *sums, *ct_carry, *ct_ys, *fixed_xs, jaxpr=body,
                       num_consts=len(fixed_consts), num_carry=len(sums) + num_carry,
                       reverse=not reverse, **params)
    ct_consts, ct_init, ct_xs = map(iter, cut(outs, len(sums), num_carry))
    return [*(next(ct_consts) if lin else None for lin in consts_lin),
            *(ct if lin else None for ct, lin in zip(ct_init, init_lin, strict=True)),
            *(next(ct_xs) if lin else None for lin in xs_lin)]


def _transposed_body(jaxpr: ClosedJaxpr, consts_lin: Sequence[bool], xs_lin: Sequence[bool],
                     num_carry: int) -> ClosedJaxpr:
    """One step back: (fixed consts | sums, carry cotangents | row cotangents, fixed rows)."""
    consts, carry, xs = cut(jaxpr.in_avals, len(consts_lin), num_carry)
    fixed_consts = chosen(consts, [not lin for lin in consts_lin])
    fixed_xs = chosen(xs, [not lin for lin in xs_lin])
    lin_consts = chosen(consts, consts_lin)
    out_carry, out_rows = cut(jaxpr.out_avals, num_carry)

    def step_back(*args: Any) -> list:
        known, sums, ct_carry, ct_rows, rows = cut(
            args, len(fixed_consts), len(lin_consts), num_carry, len(out_rows))
        known_it, rows_it = iter(known), iter(rows)
        inputs = [Undefined(a) if lin else next(known_it)
                  for a, lin in zip(consts, consts_lin, strict=True)]
        inputs += [Undefined(a) for a in carry]
        inputs += [Undefined(a) if lin else next(rows_it)
                   for a, lin in zip(xs, xs_lin, strict=True)]
        found = backward_pass(jaxpr.jaxpr, jaxpr.consts, inputs, [*ct_carry, *ct_rows])
        ct_consts, ct_init, ct_xs = cut(found, len(consts), num_carry)
        totals = [instantiate(add_cotangents(s, ct))
                  for s, ct in zip(sums, chosen(ct_consts, consts_lin), strict=True)]
        return [*totals, *map(instantiate, ct_init), *map(instantiate, chosen(ct_xs, xs_lin))]

    return stage(step_back, [*fixed_consts, *lin_consts, *out_carry, *out_rows, *fixed_xs],
                 jaxpr.jaxpr.debug_info)


def _lower(b: Any, outputs: Sequence[Any], operands: Sequence[Any], *, jaxpr: ClosedJaxpr,
           length: int, reverse: bool, num_consts: int, num_carry: int, unroll: int) -> None:
    consts, init, xs = cut(operands, num_consts, num_carry)
    ys = outputs[num_carry:]
    cells = [b.cell(x, out) for x, out in zip(init, outputs[:num_carry], strict=True)]
    with b.loop(length) as step:
        row = b.sub(length - 1, step) if reverse else step
        b.jaxpr(jaxpr, [*consts, *cells, *(b.row(x, row) for x in xs)],
                into=[*cells, *(b.view(y, row) for y in ys)])
    for cell, out in zip(cells, outputs[:num_carry], strict=True):
        b.materialize(cell, into=out)


def _examples() -> list[Example]:
    scalar, vector = ShapedArray((), np.float32), ShapedArray((2,), np.float32)

    def body(w: Any, c: Any, x: Any) -> list:
        new = add_p.bind(mul_p.bind(w, sin_p.bind(c)), x)
        return [new, mul_p.bind(new, new)]
    closed = stage(body, [scalar, vector, vector])
    w, c = np.float32(0.9), np.array([0.1, -0.4], np.float32)
    xs = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
    shared = {"jaxpr": closed, "num_consts": 1, "num_carry": 1, "unroll": 1}
    return [Example((w, c, xs), {**shared, "length": 3, "reverse": False}),
            Example((w, c, xs), {**shared, "length": 3, "reverse": True}),
            Example((w, c, xs[:0]), {**shared, "length": 0, "reverse": False})]


scan_p = CompiledPrimitive(
    "scan",
    impl=_impl,
    abstract_eval=_types,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    loop=_lower,
    split=_split,
    examples=_examples,
    multiple_results=True,
    handles_keys=True)


# ── As users call it ─────────────────────────────────────────────────────────────────────────

def scan(f: Callable, init: Any, xs: Any = None, length: int | None = None,
         reverse: bool = False, unroll: int | bool = 1, _split_transpose: bool = False
         ) -> tuple[Any, Any]:
    """Run a function over the leading axis of arrays, carrying a state along.

    Args:
      f: ``(carry, x) -> (carry, y)``; the carry keeps its tree, shapes and dtypes.
      init: the first carry, a tree of arrays.
      xs: a tree of arrays with the same leading axis, or None.
      length: the number of steps, needed where `xs` has no leaves.
      reverse: go from the last row to the first.
      unroll: accepted for JAX's sake; the loop is native code either way.

    Returns:
      The last carry, and the `y` of every step, stacked along a leading axis.

    Raises:
      ValueError: when the leading axes differ, or no length is given.
      TypeError: when the carry changes its tree or type.

    >>> total, sums = scan(lambda c, x: (c + x, c + x), 0, np.arange(4))
    >>> total, sums
    (Array(6, dtype=int32), Array([0, 1, 3, 6], dtype=int32))
    """
    if not callable(f):
        raise TypeError("lax.scan: f argument should be a callable.")
    if not isinstance(unroll, int) or unroll < 0:
        raise ValueError("`unroll` must be a `bool` or a non-negative `int`.")
    x_leaves, x_tree = tree_util.tree_flatten(xs)
    rows = [core.as_value(x) for x in x_leaves]
    steps = loop_length(rows, length)
    if config.disable_jit.value:
        return _scan_in_python(f, init, rows, x_tree, steps, reverse)
    row_types = tree_util.tree_unflatten(x_tree, [without_axis(x.aval, 0) for x in rows])
    carry = Carry(init, "scan")
    body = Body(f, (carry.types, row_types), "scan")
    if carry.adapted(_carry_types(body)):
        body = Body(f, (carry.types, row_types), "scan")
    carry.check(_carry_types(body), body.argument_name)
    call = functools.partial(_looped, body, carry, rows, length=steps, reverse=bool(reverse),
                             unroll=int(unroll))
    outs = called(call, lambda: _scan_in_python(
        jit(f), init, rows, x_tree, steps, reverse))
    return tree_util.tree_unflatten(body.out_tree, outs)


def _looped(body: Body, carry: Carry, rows: Sequence[Any], **params: Any) -> list:
    """The outputs of the loop, which computes what its body does not merely hand on."""
    jaxpr, kept = body.closed.jaxpr, carry.kept_by(body)
    changes = [not k for k in kept]
    consts, state, row = cut(jaxpr.invars, len(body.consts), len(kept))
    copied = dict(zip(row, rows, strict=True))
    handed_on = [*(x if k else None for x, k in zip(carry.given, kept, strict=True)),
                 *(copied.get(y) for y in jaxpr.outvars[len(kept):])]
    program = jaxpr.replace(
        invars=(*chosen(state, kept), *consts, *chosen(state, changes), *row),
        outvars=tuple(v for v, x in zip(jaxpr.outvars, handed_on, strict=True) if x is None))
    computed = iter(scan_p.bind(
        *chosen(carry.values, kept), *body.consts, *chosen(carry.values, changes), *rows,
        jaxpr=ClosedJaxpr(program, body.closed.consts), num_consts=len(consts) + sum(kept),
        num_carry=sum(changes), **params))
    return [next(computed) if x is None else x for x in handed_on]


def loop_length(rows: Sequence[Any], length: int | None) -> int:
    if any(x.ndim == 0 for x in rows):
        scalars = ", ".join(str(x) for x in rows if x.ndim == 0)
        raise ValueError(f"scan got value with no leading axis to scan over: {scalars}.")
    sizes = list(dict.fromkeys(x.shape[0] for x in rows))
    if length is None:
        if not sizes:
            raise ValueError("scan got no values to scan over and `length` not provided.")
        if len(sizes) > 1:
            raise ValueError("scan got values with different leading axis sizes: "
                             f"{', '.join(str(x.shape[0]) for x in rows)}.")
        return sizes[0]
    steps = int(core.concrete_or_error(length, "The `length` argument to `scan` expects a "
                                               "concrete `int` value."))  # type: ignore[arg-type]
    if any(size != steps for size in sizes):
        raise ValueError(f"scan got `length` argument of {steps} which disagrees with leading "
                         f"axis sizes {[x.shape[0] for x in rows]}.")
    return steps


def _carry_types(body: Body) -> Any:
    """The types of the carry that the body returns.

    Raises:
      TypeError: when it returns no pair.
    """
    out = tree_util.tree_unflatten(body.out_tree, body.out_avals)
    if not (isinstance(out, tuple | list) and len(out) == 2):
        weak = "~" if isinstance(out, ShapedArray) and out.weak_type else ""
        shown = weak + out.str_long() if isinstance(out, ShapedArray) else out
        raise errors.with_cure(TypeError(f"scan body output must be a pair, got {shown}."),
                               "Return (carry, output); the output may be None.")
    return out[0]


def _scan_in_python(f: Callable, carry: Any, rows: Sequence[Any], x_tree: Any, steps: int,
                    reverse: bool) -> tuple[Any, Any]:
    """For `disable_jit`: the loop a reader can step through."""
    ys = []
    for i in reversed(range(steps)) if reverse else range(steps):
        row = [index_leading(x, i) for x in rows]
        carry, y = in_step(Step("scan", i, steps), f, carry,
                           tree_util.tree_unflatten(x_tree, row))
        ys.append(y)
    if not ys:
        raise ValueError("zero-length scan is not supported in disable_jit() mode because the "
                         "output type is unknown.")
    in_order = ys[::-1] if reverse else ys
    return carry, tree_util.tree_map(lambda *parts: stack([*map(core.as_value, parts)]), *in_order)
