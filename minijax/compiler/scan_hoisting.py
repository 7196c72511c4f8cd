"""Hoisting matrix products out of scans: products of inputs are batched before the loop; products
that feed only outputs, and sums of products, are batched after it.

Builds on `core`. Chapter 22. In XLA: while-loop invariant code motion; in
JAX: `_split_transpose` of `scan`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minijax.core import Array, Axis, tracing
from minijax.core.vmap import batch_jaxpr
from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn, eval_jaxpr, partition_list, subjaxprs
from minijax.core.dce import without_dead_equations
from minijax.primitives.ad_util import add_any_p

MAX_BYTES = 1 << 26  # bytes of stacked values
# The cost of stacking a number, and that of calling a product, in numbers that a step reads again.
STACKING_COST, CALL_COST = 8, 4096


def hoist_products(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The program that replaces a scan, with fewer products in its loop; None if nothing moves, or
    for another equation.

    >>> import minijax, numpy as np
    >>> f = lambda h, w, xs: minijax.lax.scan(lambda h, x: (minijax.lax.sin(h + x @ w), x), h, xs)
    >>> closed = minijax.make_jaxpr(f)(np.ones(8), np.ones((8, 8)), np.ones((5, 8)))
    >>> [str(eqn.primitive) for eqn in hoist_products(closed.eqns[-1]).eqns]
    ['dot_general', 'scan']
    """
    if eqn.primitive.name != "scan" or eqn.params["length"] < 2:
        return None
    scan = _Scan(eqn)
    moves = scan.hoisted or scan.sunk
    return tracing.stage(scan.run, [x.aval for x in eqn.invars]) if moves else None


def _is_product(eqn: JaxprEqn) -> bool:
    return eqn.primitive.name == "dot_general" and eqn.outvars[0].aval.dtype in (
        np.float32, np.float64)


def _is_movable(eqn: JaxprEqn) -> bool:
    return not (eqn.effects or any(subjaxprs(eqn.params))) and callable(eqn.primitive.batch)


class _Scan:
    """A scan, and the equations that leave its loop.

    `hoisted` are products that do not depend on the state: one batched product computes them before
    the loop. `sunk` are products that the next state does not need: these and all that depends on
    them is computed after the loop, from the values in `stacked`. `sums` are products that are only
    added to a part of the state; they map that part to its product.
    """

    def __init__(self, eqn: JaxprEqn) -> None:
        self.eqn, self.body, self.length = eqn, eqn.params["jaxpr"], eqn.params["length"]
        jaxpr, first = self.body.jaxpr, eqn.params["num_consts"]
        last = first + eqn.params["num_carry"]
        self.eqns, self.inputs = jaxpr.eqns, jaxpr.invars
        self.state, self.rows = self.inputs[first:last], self.inputs[last:]
        self.next = dict(zip(self.state, jaxpr.outvars, strict=False))
        self.ys = jaxpr.outvars[last - first:]
        self.step_dependent = self._dependents((*self.state, *self.rows))
        pinned = [v for eqn in self.eqns if not _is_movable(eqn) for v in eqn.outvars]
        self.varying = self._dependents((*self.state, *pinned))
        self.sums = self._find_sums()
        needed = [x for v, x in self.next.items() if v not in self.sums]
        inside = set(self._part(self.inputs, [*needed, *pinned], self.eqns).eqns)
        after = [eqn for eqn in self.eqns if eqn not in inside]
        self.sunk = list(filter(_is_product, after))
        self.stacked = self._stacked_values(after)
        if not self._is_profitable(set(self.stacked).difference(self.ys), self.sunk):
            self.sunk, self.sums = [], {}
            self.stacked = self._stacked_values([])
        self.hoisted = [eqn.outvars[0] for eqn in filter(_is_product, self.eqns)
                        if eqn not in self.sunk and self.varying.isdisjoint(eqn.outvars)
                        and self._is_profitable(eqn.outvars, [eqn])]

    def _dependents(self, start: Iterable[Any]) -> set[Any]:
        """Some variables and all that depend on them."""
        dependents = set(start)
        for eqn in self.eqns:
            if not dependents.isdisjoint(eqn.invars):
                dependents.update(eqn.outvars)
        return dependents

    def _find_sums(self) -> dict[Any, JaxprEqn]:
        uses = Counter(x for xs in (self.body.jaxpr.outvars, *(e.invars for e in self.eqns))
                       for x in xs)
        producers: dict[Any, JaxprEqn] = {v: eqn for eqn in self.eqns for v in eqn.outvars}
        sums = {}
        for carry_in, carry_out in self.next.items():
            add = producers.get(carry_out)
            if (add is not None and add.primitive.name in ("add", "add_any")
                    and carry_in in add.invars
                    and all(uses[x] == 1 for x in (*add.invars, carry_out))):
                product = producers.get(add.invars[1 - add.invars.index(carry_in)])
                if (product and _is_product(product)
                        and self.step_dependent.issuperset(product.invars)):
                    sums[carry_in] = product
        return sums

    def _stacked_values(self, after: Sequence[JaxprEqn]) -> list[Any]:
        """The values that the loop must stack if these equations come after it."""
        inside = self.varying.difference(self.sums, *(eqn.outvars for eqn in after))
        read = (x for xs in (self.ys, *(eqn.invars for eqn in after)) for x in xs)
        return list(dict.fromkeys(x for x in read if x in inside))

    def _is_profitable(self, stored: Iterable[Any], products: Sequence[JaxprEqn]) -> bool:
        """Whether stacking some values costs less than products in each step."""
        reread = [x for eqn in products for x in (
            eqn.outvars if eqn in self.sums.values() else {*eqn.invars} - self.step_dependent)]
        kept = {*stored, *(eqn.outvars[0] for eqn in products)}
        nbytes = self.length * sum(v.aval.size * v.aval.dtype.itemsize for v in kept)
        return nbytes <= MAX_BYTES and (
            STACKING_COST * sum(v.aval.size for v in stored)
            <= sum(x.aval.size for x in reread) + CALL_COST * len(products))

    def run(self, *args: Array) -> list[Array]:
        """Run the equations before the loop, the loop, and those after it."""
        values: dict[Any, Array] = dict(zip(self.inputs, args, strict=True))
        state = {v: values.pop(v) for v in self.state}
        batched_vars = set(self.rows)  # variables that are batched over steps

        def compute(outvars: Sequence[Any], keep: bool) -> tuple[list[Array], Sequence[bool]]:
            """Compute some variables for all steps at once; returns which of them are batched over
            steps.
            """
            part = self._part([*values], outvars, filter(_is_movable, self.eqns))
            program, batched = batch_jaxpr(part, Axis(self.length).cache_key, [
                v in batched_vars for v in values], [keep] * len(outvars))
            return eval_jaxpr(program.jaxpr, program.consts, *values.values()), batched

        outs, batched = compute(self.hoisted, False)
        values |= zip(self.hoisted, outs, strict=True)
        batched_vars.update(v for v, each in zip(self.hoisted, batched, strict=True) if each)
        consts, rows = partition_list(list(values), [v in batched_vars for v in values])
        carry = [v for v in self.state if v not in self.sums]
        body = self._part([*consts, *carry, *rows], [*map(self.next.get, carry), *self.stacked],
                          self.eqns)
        operands = map((values | state).__getitem__, body.jaxpr.invars)
        outs = self.eqn.primitive.bind_list(*operands, **self.eqn.params | {
            "jaxpr": body, "num_consts": len(consts), "num_carry": len(carry)})
        state |= zip(carry, outs, strict=False)
        values |= zip(self.stacked, outs[len(carry):], strict=True)
        batched_vars.update(self.stacked)
        operands_of_sums = [x for product in self.sums.values() for x in product.invars]
        outs, _ = compute([*operands_of_sums, *self.ys], True)
        for v, product in self.sums.items():
            x, y, *outs = outs
            contract, batch = (tuple(tuple(d + 1 for d in axes) for axes in pair)
                               for pair in product.params["dimension_numbers"])
            dims = tuple((0, *axes) for axes in contract), batch
            total = product.primitive.bind(x, y, **product.params | {"dimension_numbers": dims})
            state[v] = add_any_p.bind(state[v], total)
        return [*state.values(), *outs]

    def _part(self, invars: Sequence, outvars: Sequence, eqns: Iterable[JaxprEqn]) -> ClosedJaxpr:
        """The part of a step, of these equations, that computes `outvars` from `invars`."""
        eqns = [eqn for eqn in eqns if set(invars).isdisjoint(eqn.outvars)]
        jaxpr = self.body.jaxpr.replace(invars=tuple(invars), outvars=tuple(outvars), eqns=eqns)
        return without_dead_equations(ClosedJaxpr(jaxpr, self.body.consts))
