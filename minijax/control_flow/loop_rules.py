"""The primitives behind `scan` and `while_loop`, and the rules that they share.

The rules of a loop are methods of its parameters.  Builds on `program_rules`, `cond`.
Chapter 09, *Control flow*.  In JAX: `jax/_src/lax/control_flow/loops.py`.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np

from minijax.core import (Avals, Axis, Example, Outs, Params, ShapedArray, Undefined, Zero,
                          physical_aval)
from minijax.util import lazily
from minijax.transforms.compiled import ProgramPrimitive, interpret
from minijax.control_flow.cond import refuse_io, run_for_active, select_along_batch
from minijax.control_flow.loop_invariants import hoist_invariant_outputs, hoist_linear_consts
from minijax.control_flow.program_rules import (Flags, has_tangent, rearranged, refusing,
                                                split_list, types_of, with_zeros)
from minijax.core.jvp import instantiate_nonzero, jvp_jaxpr
from minijax.core.partial_eval import PartialEvalResult, SplitProgram, partial_eval_jaxpr
from minijax.core.transpose import backward_pass
from minijax.core.vmap import batch_jaxpr, with_axis, without_axis
from minijax.core.jaxpr import (ClosedJaxpr, cached_on_jaxpr, jaxpr_as_fun, merge_lists,
                                partition_list)
from minijax.primitives import analytic, reduce
from minijax.primitives.ad_util import add_cotangents, batch_to, instantiate, zeros
from minijax.sharp_bits.findings import Step, in_step
from minijax.core.tracing import stage, stage_with_aux

T = TypeVar("T")

# The kinds of a loop's operands: constants of its condition, constants of its body, the carry, and
# arrays that are read row by row, one in each iteration.  Operands come in this order, and so do
# inputs and outputs of the body, which does not get the condition's constants.
TEST, CONST, CARRY, ROW = range(4)
Kinds = list[int]


# ── Both loops ───────────────────────────────────────────────────────────────────────────────

class Loop:
    """The parameters of a loop: its body is from [constants, carry, rows] to [carry, rows]."""

    primitive: ProgramPrimitive

    def __init__(self, body: ClosedJaxpr, num_tests: int, num_consts: int, num_carry: int):
        self.body, self.num_consts, self.num_carry = body, num_consts, num_carry
        self.kinds, self.out_kinds = (
            [CONST] * consts + [CARRY] * num_carry + [ROW] * (len(avals) - consts - num_carry)
            for consts, avals in ((num_consts, body.in_avals), (0, body.out_avals)))
        self.tests = [TEST] * num_tests

    def params(self, body: ClosedJaxpr, kinds: Kinds) -> Params:
        """The parameters of the loop with another body, for operands of these kinds."""
        raise NotImplementedError

    def run(self, program: ClosedJaxpr, kinds: Kinds, args: Sequence[Any], out_kinds: Kinds,
            **changes: Any) -> list:
        """The loop with a body that has inputs and outputs of these kinds, in any order."""
        body, _, out_order = in_order(program, [k for k in kinds if k != TEST], out_kinds)
        operands = [args[i] for i in sorted(range(len(kinds)), key=kinds.__getitem__)]
        outs = self.primitive.bind(*operands, **self.params(body, kinds) | changes)
        return [x for _, x in sorted(zip(out_order, outs, strict=True), key=itemgetter(0))]

    def carry_fixpoint(self, derive: Callable[[ClosedJaxpr, Flags, Flags], tuple[T, Flags]],
                       flags: Flags) -> tuple[T, list[bool], list[bool]]:
        """The derived body, with the least flags of the carry that the body preserves.

        Args:
          derive: ``(program, flags of its inputs, flags that its outputs must have) -> (derived,
            flags of its outputs)``.
          flags: of the inputs in the first iteration.

        Returns:
          What is derived, and the flags of the body's inputs and outputs.
        """
        consts, carry, rows = split_list(flags, self.num_consts, self.num_carry)
        while True:
            flags = [*consts, *carry, *rows]
            keep = [*carry, *[False] * (len(self.out_kinds) - self.num_carry)]
            derived, out_flags = derive(self.body, flags, keep)
            if list(out_flags[:self.num_carry]) == carry:
                return derived, flags, list(out_flags)
            carry = list(out_flags[:self.num_carry])

    def rows(self) -> list[int]:
        """The operands that are read row by row."""
        return [i for i, kind in enumerate((*self.tests, *self.kinds)) if kind == ROW]

    def in_place(self, k: int) -> list[int]:
        """The carry overwrites its first value."""
        return [len(self.tests) + self.num_consts + k] if k < self.num_carry else []

    def jvp(self, primals: list, tangents: list) -> Outs:
        """Outputs and their tangents, which the loop carries along."""
        tangents = tangents[len(self.tests):]  # a condition has none
        program, has, out_has = self.carry_fixpoint(jvp_jaxpr, has_tangent(tangents))
        outs = self.run(program, [*self.tests, *self.kinds, *partition_list(self.kinds, has)[True]],
                        [*primals, *map(instantiate, partition_list(tangents, has)[True])],
                        [*self.out_kinds, *partition_list(self.out_kinds, out_has)[True]])
        return with_zeros(outs, out_has)

    def extend(self, derive: Callable[[ClosedJaxpr], ClosedJaxpr],
               count: Callable[[ShapedArray], int], args: list, companions: list[list]) -> list:
        """Outputs and their companions, which the loop carries along."""
        companions = companions[len(self.tests):]  # a condition has none
        kinds = [k for k, some in zip(self.kinds, companions, strict=True) for _ in some]
        out_kinds = [k for k, aval in zip(self.out_kinds, self.body.out_avals, strict=True)
                     for _ in range(count(aval))]
        return self.run(derive(self.body), [*self.tests, *self.kinds, *kinds],
                        [*args, *itertools.chain(*companions)], [*self.out_kinds, *out_kinds])


def in_order(program: ClosedJaxpr, kinds: Kinds, out_kinds: Kinds
             ) -> tuple[ClosedJaxpr, Sequence[int], Sequence[int]]:
    """A program with inputs and outputs of these kinds as a body; the order of both in the body."""
    order, out_order = (sorted(range(len(some)), key=some.__getitem__)
                        for some in (kinds, out_kinds))
    return rearranged(program, order, out_order), order, out_order


def partial_eval_body(forwardable: Flags | None = None
                      ) -> Callable[..., tuple[SplitProgram, Flags]]:
    """For `carry_fixpoint`: the halves of a program, and which of its outputs are unknown."""
    def derive(closed: ClosedJaxpr, unknown: Flags, keep: Flags) -> tuple[SplitProgram, Flags]:
        halves = partial_eval_jaxpr(closed, unknown, keep, forwardable)
        return halves, halves.unknown_out
    return derive


# The loops in Python: their meaning, and what runs under `disable_jit`.

def scan_in_python(f: Callable[[Any, Any], Any], carry: Any, row: Callable[[int], Any],
                   length: int, reverse: bool) -> tuple[Any, list]:
    """The last carry, and the outputs in the order of the rows ``row(i)``."""
    ys = []
    for i in range(length)[::-1 if reverse else 1]:
        carry, y = in_step(Step("scan", i, length), f, carry, row(i))
        ys.append(y)
    return carry, ys[::-1] if reverse else ys


def while_in_python(cond_fun: Callable, body_fun: Callable, state: Any) -> Any:
    for i in itertools.count():
        step = Step("while_loop", i)
        if not in_step(step, cond_fun, state):
            break
        state = in_step(step, body_fun, state)
    return state


def loop_primitive(name: str, view: type[Any], examples: Callable[[], list[Example]]
                   ) -> ProgramPrimitive:
    """A primitive whose rules are the methods of its parameters, seen as a `view`."""
    def rule(method: Callable) -> Callable:
        @functools.wraps(method)
        def of_params(*args: Any, **params: Any) -> Any:
            return method(view(**params), *args)
        return of_params
    slots: Any = {slot: rule(getattr(view, slot)) for slot in (
        "impl", "abstract_eval", "jvp", "transpose", "batch", "loop", "split", "extend", "rows",
        "in_place")}
    view.primitive = ProgramPrimitive(
        name, **slots, examples=examples, multiple_results=True, handles_keys=True,
        sharding=lazily.later("minijax.control_flow.layouts", f"{name}_loop"))
    return view.primitive


# ── scan ─────────────────────────────────────────────────────────────────────────────────────

class Scan(Loop):
    """A loop of known length: its operands are [constants, initial carry, arrays to run over]."""

    def __init__(self, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, length: int,
                 reverse: bool, unroll: int):
        super().__init__(jaxpr, 0, num_consts, num_carry)
        self.length, self.reverse, self.unroll = length, reverse, unroll

    def params(self, body: ClosedJaxpr, kinds: Kinds) -> Params:
        return {"jaxpr": body, "num_consts": kinds.count(CONST), "num_carry": kinds.count(CARRY),
                "length": self.length, "reverse": self.reverse, "unroll": self.unroll}

    def impl(self, *buffers: np.ndarray) -> list[np.ndarray]:
        consts, init, xs = split_list(buffers, self.num_consts, self.num_carry)

        def step(carry: list, row: list) -> list[list]:
            return split_list(interpret(self.body, *consts, *carry, *row), self.num_carry)
        carry, rows = scan_in_python(step, init, lambda i: [x[i].copy() for x in xs], self.length,
                                     self.reverse)
        avals = [physical_aval(a) for a in self.body.out_avals[self.num_carry:]]
        columns = zip(*rows, strict=True) if rows else [()] * len(avals)
        return [*carry, *(np.array(column, a.dtype).reshape(self.length, *a.shape)
                          for column, a in zip(columns, avals, strict=True))]

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        carry, rows = split_list(self.body.out_avals, self.num_carry)
        return [*carry, *(with_axis(a, 0, self.length) for a in rows)]

    def batch(self, axis: Axis, args: list, dims: list) -> Outs:
        body, batched, out_batched = self.carry_fixpoint(
            lambda closed, *flags: batch_jaxpr(closed, axis.cache_key, *flags),
            [d is not None for d in dims])
        # the leading axis of rows is the loop's, so the batch axis comes second there
        moved = [batch_to(x, d, int(kind == ROW), axis.size) if b else x
                 for x, d, kind, b in zip(args, dims, self.kinds, batched, strict=True)]
        outs = scan_p.bind(*moved, **self.params(body, self.kinds))
        return outs, [int(kind == ROW) if b else None
                      for kind, b in zip(self.out_kinds, out_batched, strict=True)]

    def split(self, unknown: Sequence[bool], args: Sequence[Any]) -> PartialEvalResult:
        # a carry changes from step to step, so the unknown half needs it stacked
        forwardable = [kind != CARRY for kind in self.kinds]
        halves, flags, _ = self.carry_fixpoint(partial_eval_body(forwardable), unknown)
        known_args, unknown_args = partition_list(args, flags)
        known_kinds, unknown_kinds = partition_list(self.kinds, flags)
        num_consts = known_kinds.count(CONST)
        invariant_program, known, is_invariant = hoist_invariant_outputs(
            halves.known, num_consts, halves.unknown_out.count(False))
        residual_kinds = iter(CONST if invariant else ROW for invariant in is_invariant)
        kinds = [*(next(residual_kinds) if place is None else self.kinds[place]
                   for place in halves.needs), *unknown_kinds]
        body, order, _ = in_order(halves.unknown, kinds,
                                  partition_list(self.out_kinds, halves.unknown_out)[True])

        def unknown_operands(stacked: Sequence[Any]) -> list:
            invariant = jaxpr_as_fun(invariant_program)(*known_args[:num_consts])
            residuals = merge_lists((stacked, invariant), is_invariant)
            values = [*halves.needed(args, residuals), *unknown_args]
            return [values[i] for i in order]
        return PartialEvalResult(known_args, self.params(known, known_kinds), unknown_operands,
                                 self.params(body, kinds), halves.unknown_out)

    def transpose(self, cotangents: list, *args: Any) -> list:
        consts, rest = split_list(args, self.num_consts)
        hoisted, body = hoist_linear_consts(self.body, [isinstance(x, Undefined) for x in consts])
        new = [Undefined(aval) for aval in hoisted.out_avals]
        scan = Scan(**self.params(body, [*([CONST] * len(new)), *self.kinds]))
        cts = scan.transpose_body(cotangents, *consts, *new, *rest)
        const_cts, hoisted_cts, other_cts = split_list(cts, len(consts), len(new))
        if not all(ct is None for ct in hoisted_cts):
            const_cts = list(map(add_cotangents, const_cts, backward_pass(
                hoisted.jaxpr, hoisted.consts, consts, [
                    Zero(aval) if ct is None else ct
                    for ct, aval in zip(hoisted_cts, hoisted.out_avals, strict=True)])))
        return [*const_cts, *other_cts]

    def transpose_body(self, cotangents: list, *args: Any) -> list:
        """The cotangents of linear operands, by a loop in the other direction."""
        undefined = [isinstance(x, Undefined) for x in args]
        # the whole carry is linear, though its first value may be known: zero
        linear = [u or kind == CARRY for u, kind in zip(undefined, self.kinds, strict=True)]
        fixed_kinds, kinds = partition_list(self.kinds, linear)
        known = partition_list(args, linear)[False]
        # cotangents of the carry are carried, zero or not; of the rows those that are not zero
        carried, rows = split_list(cotangents, self.num_carry)
        first = [a.to_tangent_aval() for a in self.body.in_avals[self.num_consts:]]
        cts = [*(zeros(a) if isinstance(ct, Zero) else ct
                 for ct, a in zip(carried, first, strict=False)), *rows]
        has = has_tangent(cts)
        types = [without_axis(ct, 0) if kind == ROW and ct is not None else ct
                 for ct, kind in zip(types_of(cts), self.out_kinds, strict=True)]
        body, has_ct = _transpose_body(self.body, linear, kinds, types)
        kinds = partition_list(kinds, has_ct)[True]
        sums = body.in_avals[:kinds.count(CONST)]  # of the cotangents of linear constants
        outs = iter(self.run(
            body, [*[CARRY] * len(sums), *partition_list(self.out_kinds, has)[True], *fixed_kinds],
            [*map(zeros, sums), *partition_list(cts, has)[True], *known],
            [max(kind, CARRY) for kind in kinds], reverse=not self.reverse))
        results = (next(outs) if each else None for each in has_ct)
        return [next(results) if is_linear else None for is_linear in linear]

    def loop(self, b: Any, outputs: Sequence[Any], operands: Sequence[Any]) -> None:
        consts, init, xs = split_list(operands, self.num_consts, self.num_carry)
        last, ys = split_list(outputs, self.num_carry)
        cells = [b.cell(x, out) for x, out in zip(init, last, strict=True)]

        def iteration(step: Any) -> None:
            row = b.sub(self.length - 1, step) if self.reverse else step
            b.jaxpr(self.body, [*consts, *cells, *(b.row(x, row) for x in xs)],
                    into=[*cells, *(b.row(y, row) for y in ys)])

        unroll = min(max(self.unroll, 1), max(self.length, 1))
        # Without a carry iterations are independent.  A GPU schedules loops by its own rules.
        side_by_side = not (self.num_carry or b.on_gpu)
        with b.loop(self.length // unroll, vectorize="parallel" * side_by_side) as k:
            for n in range(unroll):
                iteration(b.add(b.mul(b.index(k), unroll), n))
        for step in range(self.length - self.length % unroll, self.length):
            iteration(b.index(step))
        for cell, out in zip(cells, last, strict=True):
            b.materialize(cell, into=out)


@cached_on_jaxpr
def _transpose_body(body: ClosedJaxpr, linear: Flags, kinds: Kinds,
                    ct_avals: Sequence[ShapedArray | None]) -> tuple[ClosedJaxpr, Flags]:
    """The transposed body: (sums, cotangents of outputs, other inputs) to (sums, other cotangents).

    Args:
      linear: the inputs that the body is linear in.
      kinds: those of these inputs.
      ct_avals: the types of the outputs' cotangents, None for those that have none.

    Returns:
      The program, and which linear inputs have a cotangent; those of constants are summed up.
    """
    fixed, avals = partition_list(body.in_avals, linear)
    carry = iter(ct_avals)  # what is carried has the types that the loop returns
    avals = [next(carry) or a if kind == CARRY else a for a, kind in zip(avals, kinds, strict=True)]
    nonzero_avals = [ct for ct in ct_avals if ct is not None]
    sums = [a for a, kind in zip(avals, kinds, strict=True) if kind == CONST]

    def transposed(*args: Any) -> tuple[list, tuple]:
        old_sums, nonzero_cts, values = map(iter, split_list(args, len(sums), len(nonzero_avals)))
        cts = [Zero(a) if ct is None else next(nonzero_cts)
               for a, ct in zip(body.out_avals, ct_avals, strict=True)]
        accumulators = [next(old_sums) if kind == CONST else None for kind in kinds]
        new = partition_list(backward_pass(
            body.jaxpr, body.consts, merge_lists(([*values], [*map(Undefined, avals)]), linear),
            cts, merge_lists(([None] * len(fixed), accumulators), linear)), linear)[True]
        # an accumulator that nothing was added to is no cotangent
        return instantiate_nonzero([Zero(a) if x is old else x
                                    for x, old, a in zip(new, accumulators, avals, strict=True)],
                                   [kind == CARRY for kind in kinds])
    program, has_ct = stage_with_aux(transposed, [*sums, *nonzero_avals, *fixed],
                                     body.jaxpr.debug_info)
    used_sums = [i for i, each in enumerate(has_ct[:len(sums)]) if each]
    return rearranged(program, [*used_sums, *range(len(sums), len(program.in_avals))]), has_ct


def _scan_examples() -> list[Example]:
    scalar, vector = ShapedArray((), np.float32), ShapedArray((2,), np.float32)

    def body(w: Any, c: Any, x: Any) -> list:
        new = w * analytic.sin_p.bind(c) + x
        return [new, new * new]
    shared = {"jaxpr": stage(body, [scalar, vector, vector]), "num_consts": 1, "num_carry": 1}
    w, c = np.float32(0.9), np.array([0.1, -0.4], np.float32)
    xs = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
    return [Example((w, c, xs[:length]), {**shared, "length": length, "reverse": reverse,
                                          "unroll": unroll})
            for length, reverse, unroll in ((3, False, 1), (3, True, 2), (0, False, 1))]


scan_p = loop_primitive("scan", Scan, _scan_examples)


# ── while ────────────────────────────────────────────────────────────────────────────────────

NO_REVERSE = ("Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
              "dynamic start/stop values. Try using lax.scan, or using fori_loop with static "
              "start/stop.")


class While(Loop):
    """A loop with a condition: of [constants of the condition, constants of the body, carry]."""

    def __init__(self, cond_jaxpr: ClosedJaxpr, cond_nconsts: int, body_jaxpr: ClosedJaxpr,
                 body_nconsts: int):
        super().__init__(body_jaxpr, cond_nconsts, body_nconsts, len(body_jaxpr.out_avals))
        self.condition, self.sizes = cond_jaxpr, (cond_nconsts, body_nconsts)

    def params(self, body: ClosedJaxpr, kinds: Kinds) -> Params:
        num_tests, num_consts = kinds.count(TEST), kinds.count(CONST)
        num_inputs = len(self.condition.in_avals)
        ignored = body.in_avals[num_consts:][num_inputs - num_tests:]  # what is carried besides
        condition = rearranged(self.condition, [*range(num_inputs), *ignored])
        return _while_params(condition, num_tests, body, num_consts)

    def impl(self, *buffers: np.ndarray) -> list[np.ndarray]:
        cond_consts, body_consts, init = split_list(buffers, *self.sizes)
        return while_in_python(lambda carry: interpret(self.condition, *cond_consts, *carry)[0],
                               lambda carry: interpret(self.body, *body_consts, *carry), init)

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        return self.body.out_avals

    def batch(self, axis: Axis, args: list, dims: list) -> Outs:
        cond_b, body_b = split_list([d is not None for d in dims], self.sizes[0])

        def derive(body: ClosedJaxpr, flags: Flags, keep: Flags) -> tuple[tuple, Flags]:
            condition, (each,) = batch_jaxpr(self.condition, axis.cache_key,
                                             [*cond_b, *flags[self.num_consts:]])
            # where the condition is batched, so is the whole carry
            program, out_flags = batch_jaxpr(body, axis.cache_key, flags,
                                             [each or k for k in keep])
            return (condition, program, each), out_flags

        (condition, body, each), body_b, carry_b = self.carry_fixpoint(derive, body_b)
        moved = [batch_to(x, d, 0, axis.size) if b else x
                 for x, d, b in zip(args, dims, [*cond_b, *body_b], strict=True)]
        consts, body_consts, carry = split_list(moved, *self.sizes)
        if each:
            condition, body = self.until_all_stop(axis, condition, body_b, carry_b,
                                                  [x.aval for x in moved])
            body_consts = [*consts, *body_consts]
        outs = while_p.bind(*consts, *body_consts, *carry,
                            **_while_params(condition, len(consts), body, len(body_consts)))
        return outs, [0 if b else None for b in carry_b]

    def until_all_stop(self, axis: Axis, condition: ClosedJaxpr, batched: Flags,
                       carry_batched: Flags, avals: Avals) -> tuple[ClosedJaxpr, ClosedJaxpr]:
        """Condition and body of a batch: loop while any example continues; others keep their carry.

        Args:
          condition: whether each example continues.
          batched, carry_batched: which inputs and outputs of the body are batched.
          avals: the types of all operands.
        """
        for program in (self.condition, self.body):
            refuse_io(program, Exception, "Unordered IO effects not supported in while_loop with "
                                          "batched predicate")
        continues = jaxpr_as_fun(condition)

        def step(*args: Any) -> list:
            cond_consts, body_consts, carry = split_list(args, *self.sizes)
            (which,) = continues(*cond_consts, *carry)
            new = run_for_active(which, axis, self.body, [*body_consts, *carry], batched,
                                 carry_batched)
            return [select_along_batch(which, [old, x]) if axis.size > 1 else x  # one goes on here
                    for old, x in zip(carry, new, strict=True)]

        any_continues = lambda *args: [reduce.reduce_or_p.bind(continues(*args)[0], axes=(0,))]
        return (stage(any_continues, condition.in_avals, condition.jaxpr.debug_info),
                stage(step, avals, self.body.jaxpr.debug_info))

    def split(self, unknown: Sequence[bool], args: Sequence[Any]) -> PartialEvalResult | None:
        """The known half is the loop on known values; the unknown half is the whole loop again."""
        cond_u, body_u = split_list(unknown, self.sizes[0])
        halves, body_u, carry_u = self.carry_fixpoint(partial_eval_body(), body_u)
        condition = partial_eval_jaxpr(self.condition, [*cond_u, *carry_u])
        if condition.unknown_out[0]:
            return None
        consts, body_consts, _ = split_list([not u for u in (*cond_u, *body_u)], *self.sizes)
        body = rearranged(halves.known, outputs=range(carry_u.count(False)))
        return PartialEvalResult(
            partition_list(args, [*cond_u, *body_u])[False],
            _while_params(condition.known, sum(consts), body, sum(body_consts)), lambda _: args,
            _while_params(self.condition, self.sizes[0], self.body, self.sizes[1]), carry_u)

    transpose = refusing(ValueError, NO_REVERSE)

    def loop(self, b: Any, outputs: Sequence[Any], operands: Sequence[Any]) -> None:
        cond_consts, body_consts, init = split_list(operands, *self.sizes)
        cells = [b.cell(x, out) for x, out in zip(init, outputs, strict=True)]
        b.while_loop(lambda: b.jaxpr(self.condition, [*cond_consts, *cells])[0](()),
                     lambda: b.jaxpr(self.body, [*body_consts, *cells], into=cells))
        for cell, out in zip(cells, outputs, strict=True):
            b.materialize(cell, into=out)


def _while_params(condition: ClosedJaxpr, cond_nconsts: int, body: ClosedJaxpr, body_nconsts: int
                  ) -> Params:
    return {"cond_jaxpr": condition, "cond_nconsts": cond_nconsts,
            "body_jaxpr": body, "body_nconsts": body_nconsts}


def _while_examples() -> list[Example]:
    scalar, vector = ShapedArray((), np.float32), ShapedArray((2,), np.float32)
    condition = stage(lambda limit, c, x: [c < limit], [scalar, scalar, vector])
    body = stage(lambda w, c, x: [c * w, x * w], [scalar, scalar, vector])
    x = np.array([0.5, -1.0], np.float32)
    return [Example((np.float32(limit), np.float32(1.5), np.float32(1.0), x),
                    _while_params(condition, 1, body, 1)) for limit in (20.0, -1.0)]


while_p = loop_primitive("while", While, _while_examples)
