"""Products out of loops: a scan's products of rows become one before it; those that its results
alone need, and sums of products, one after it.

Stands on jaxpr.py and the interpreters. Chapter 22. In XLA: while-loop invariant code motion; in
JAX: `_split_transpose` of `scan`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minijax import stage
from minijax.core import Array
from minijax.interpreters.vmap import batch_jaxpr
from minijax.jaxpr import (
    ClosedJaxpr, JaxprEqn, Var, eval_jaxpr, parted, subjaxprs, without_dead_equations,
)
from minijax.primitives.emitted import add_any_p

MOST = 1 << 26  # bytes that may be stored so that a product can leave a loop
# Numbers that are read again in each step, in the time that it takes to store one for all steps;
# and in that of a call of a product.
TIMES, CALL = 8, 4096


def with_products_outside(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The program that a scan stands for, with fewer products in its loop; None if all stay,
    and of other equations.

    >>> import minijax, numpy as np
    >>> f = lambda h, w, xs: minijax.lax.scan(lambda h, x: (minijax.lax.sin(h + x @ w), x), h, xs)
    >>> closed = minijax.make_jaxpr(f)(np.ones(8), np.ones((8, 8)), np.ones((5, 8)))
    >>> [str(eqn.primitive) for eqn in with_products_outside(closed.eqns[-1]).eqns]
    ['dot_general', 'scan']
    """
    if eqn.primitive.name != "scan" or eqn.params["length"] < 2:
        return None
    scan = _Scan(eqn)
    moves = scan.handed or scan.after
    return stage.stage(scan.run, [x.aval for x in eqn.invars]) if moves else None


def _is_product(eqn: JaxprEqn) -> bool:
    return eqn.primitive.name == "dot_general" and eqn.outvars[0].aval.dtype in (
        np.float32, np.float64)


def _can_move(eqn: JaxprEqn) -> bool:
    return not (eqn.effects or any(subjaxprs(eqn.params))) and callable(eqn.primitive.batch)


def _size(variables: Iterable[Any]) -> int:
    return sum(v.aval.size for v in variables)


class _Scan:
    """A scan, and what is computed outside of its loop.

    `handed` are products that are known before it, of which each step is given its own. `after` is
    what is computed after it, from what the steps have `stacked`; to that belong the `sums`,
    products that do no more than add up in a part of the state, by the place of that.
    """

    def __init__(self, eqn: JaxprEqn) -> None:
        self.eqn, self.body, self.length = eqn, eqn.params["jaxpr"], eqn.params["length"]
        jaxpr, first = self.body.jaxpr, eqn.params["num_consts"]
        last = first + eqn.params["num_carry"]
        self.eqns = jaxpr.eqns
        self.consts, self.state, self.rows = (
            jaxpr.invars[:first], jaxpr.invars[first:last], jaxpr.invars[last:])
        self.next, self.ys = jaxpr.outvars[:last - first], jaxpr.outvars[last - first:]
        products = list(filter(_is_product, self.eqns))
        fixed = [eqn for eqn in self.eqns if not _can_move(eqn)]
        self.each_step = self._reached((*self.state, *self.rows))
        self.sums = self._find_sums()
        self.varying = self._reached((*self.state, *(v for e in fixed for v in e.outvars)))
        needed = self._behind((*(x for e in fixed for x in e.invars),
                               *(x for k, x in enumerate(self.next) if k not in self.sums)))
        self.after: set[Any] = set()
        self.stacked: list[Any] = []
        for product in products:
            if needed.isdisjoint(product.outvars):
                self._try_after(product)
        self.sums = {k: eqn for k, eqn in self.sums.items() if eqn.outvars[0] in self.after}
        self.handed = [eqn.outvars[0] for eqn in products if self._fit(eqn.outvars)
                       and (self.varying | self.after).isdisjoint(eqn.outvars)
                       and self._is_worth(eqn.outvars, eqn)]

    # -- what depends on what ------------------------------------------------------------------

    def _reached(self, start: Iterable[Any]) -> set[Any]:
        """Some variables, and all that depend on them."""
        found = set(start)
        for eqn in self.eqns:
            if not found.isdisjoint(eqn.invars):
                found.update(eqn.outvars)
        return found

    def _behind(self, start: Iterable[Any]) -> set[Any]:
        """Some variables, and all that they depend on."""
        found = set(start)
        for eqn in reversed(self.eqns):
            if not found.isdisjoint(eqn.outvars):
                found.update(eqn.invars)
        return found

    def _find_sums(self) -> dict[int, JaxprEqn]:
        uses = Counter(x for xs in (self.next, self.ys, *(e.invars for e in self.eqns)) for x in xs)
        makers: dict[Any, JaxprEqn] = {v: eqn for eqn in self.eqns for v in eqn.outvars}
        found = {}
        for k, (old, new) in enumerate(zip(self.state, self.next, strict=True)):
            add = makers.get(new)
            if (add is not None and add.primitive.name in ("add", "add_any") and old in add.invars
                    and all(uses[x] == 1 for x in (*add.invars, new))):
                product = makers.get(add.invars[1 - add.invars.index(old)])
                if product and _is_product(product) and self.each_step.issuperset(product.invars):
                    found[k] = product
        return found

    # -- choices -------------------------------------------------------------------------------

    def _try_after(self, product: JaxprEqn) -> None:
        after = self.after | self._reached(product.outvars)
        inside = self.varying - after - {self.state[k] for k in self.sums}
        stacked = list(dict.fromkeys(x for eqn in self.eqns if not after.isdisjoint(eqn.outvars)
                                     for x in eqn.invars if x in inside))
        new = [x for x in stacked if x not in (*self.ys, *self.stacked)]
        if self._is_worth(new, product) and self._fit([*stacked, *product.outvars]):
            self.after, self.stacked = after, stacked

    def _is_worth(self, stored: Iterable[Any], product: JaxprEqn) -> bool:
        """Whether to store something takes no longer than to have the product in each step."""
        again = ([*product.outvars] if product in self.sums.values() else
                 [x for x in product.invars if x not in self.each_step])
        return TIMES * _size(stored) <= _size(again) + CALL

    def _fit(self, variables: Iterable[Any]) -> bool:
        nbytes = sum(v.aval.size * v.aval.dtype.itemsize for v in variables)
        return self.length * nbytes <= MOST

    # -- the program ---------------------------------------------------------------------------

    def run(self, *args: Array) -> list[Array]:
        """What comes before, the loop, what comes after: from its operands to its results."""
        inputs = (*self.consts, *self.state, *self.rows)
        values: dict[Any, Array] = dict(zip(inputs, args, strict=True))
        starts = [values.pop(v) for v in self.state]
        along = set(self.rows)  # whose values have an axis of steps
        self._compute(self.handed, values, along)
        last = self._loop(starts, values, along)
        operands = [x for product in self.sums.values() for x in product.invars]
        self._compute([*operands, *(y for y in self.ys if y in self.after)], values, along, True)
        for k, product in self.sums.items():
            contract, batch = (tuple(tuple(d + 1 for d in axes) for axes in pair)
                               for pair in product.params["dimension_numbers"])
            dims = tuple((0, *axes) for axes in contract), batch
            total = product.primitive.bind(*map(values.__getitem__, product.invars),
                                           **product.params | {"dimension_numbers": dims})
            last[k] = add_any_p.bind(starts[k], total)
        return [*last, *map(values.__getitem__, self.ys)]

    def _loop(self, starts: Sequence[Array], values: dict[Any, Array], along: set[Any]
              ) -> list[Any]:
        """What the state is in the end, but for the sums; what is stacked becomes known."""
        kept = [k for k in range(len(starts)) if k not in self.sums]
        state = [self.state[k] for k in kept]
        out = list(dict.fromkeys([*(y for y in self.ys if y not in self.after), *self.stacked]))
        body = self._part([*values, *state], [*(self.next[k] for k in kept), *out], self.eqns)
        read = set(body.jaxpr.outvars).union(*(eqn.invars for eqn in body.eqns))
        inputs = [v for v in values if v in read]
        consts, rows = parted(inputs, [v in along for v in inputs])
        body = ClosedJaxpr(body.jaxpr.replace(invars=(*consts, *state, *rows)), body.consts)
        operands = [*map(values.__getitem__, consts), *(starts[k] for k in kept),
                    *map(values.__getitem__, rows)]
        outs = self.eqn.primitive.bind_list(*operands, **self.eqn.params | {
            "jaxpr": body, "num_consts": len(consts), "num_carry": len(kept)})
        values.update(zip(out, outs[len(kept):], strict=True))
        along.update(out)
        last = dict(zip(kept, outs, strict=False))
        return [last.get(k) for k in range(len(starts))]

    def _compute(self, wanted: Sequence[Any], values: dict[Any, Array], along: set[Any],
                 keep: bool = False) -> None:
        """Have some variables known, for all steps at once."""
        given = [v for v in values if isinstance(v, Var)]
        part = self._part(given, wanted, filter(_can_move, self.eqns))
        program, found = batch_jaxpr(part, self.length, None, [v in along for v in given],
                                     [keep] * len(wanted))
        outs = eval_jaxpr(program.jaxpr, program.consts, *map(values.__getitem__, given))
        values.update(zip(wanted, outs, strict=True))
        along.update(v for v, each in zip(wanted, found, strict=True) if each)

    def _part(self, given: Sequence[Any], wanted: Sequence[Any], eqns: Iterable[JaxprEqn]
              ) -> ClosedJaxpr:
        """The part of a step, of these equations, that computes some variables from others."""
        eqns = [eqn for eqn in eqns if set(given).isdisjoint(eqn.outvars)]
        jaxpr = self.body.jaxpr.replace(invars=tuple(given), outvars=tuple(wanted), eqns=eqns)
        return without_dead_equations(ClosedJaxpr(jaxpr, self.body.consts))
