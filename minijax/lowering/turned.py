"""Transposes around products of matrices: a product can read and write its sides turned.

Stands on jaxpr.py. Chapter 22. In XLA: `DotDecomposer` and layout assignment.
"""

from __future__ import annotations

from collections import Counter

from minijax.jaxpr import Jaxpr, JaxprEqn, Var, remove_dead_equations


def turn_products(jaxpr: Jaxpr) -> Jaxpr:
    """The same program with fewer transposes.

    (x y)ᵀ is yᵀ xᵀ, and which axis of an operand a product sums over is free to choose.

    >>> import minijax, numpy as np
    >>> f = minijax.make_jaxpr(lambda x, y: (x @ y).T)(np.ones((2, 3)), np.ones((3, 4)))
    >>> print([str(eqn.primitive) for eqn in turn_products(f.jaxpr).eqns])
    ['dot_general']
    """
    if not any(eqn.primitive.name == "dot_general" for eqn in jaxpr.eqns):
        return jaxpr
    uses = Counter(x for eqn in jaxpr.eqns for x in eqn.invars if isinstance(x, Var))
    uses.update(x for x in jaxpr.outvars if isinstance(x, Var))
    made: dict[Var, JaxprEqn] = {}
    eqns = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "dot_general":
            eqn = _reading_turned(eqn, made)
        elif eqn.primitive.name == "transpose":
            eqn = _writing_turned(eqn, made, uses)
        made.update(dict.fromkeys(eqn.outvars, eqn))
        eqns.append(eqn)
    return remove_dead_equations(jaxpr.replace(eqns=tuple(eqns)))


def _reading_turned(eqn: JaxprEqn, made: dict[Var, JaxprEqn]) -> JaxprEqn:
    """A product whose operands are transposes: it reads what was transposed."""
    contract, batch = eqn.params["dimension_numbers"]
    invars, new_contract, new_batch = list(eqn.invars), list(contract), list(batch)
    for side, x in enumerate(eqn.invars):
        source = made.get(x) if isinstance(x, Var) else None
        if source is None or source.primitive.name != "transpose":
            continue
        axes = source.params["permutation"]
        free = [axes[d] for d in range(len(axes)) if d not in (*contract[side], *batch[side])]
        if free == sorted(free):  # else the result would be transposed instead
            invars[side] = source.invars[0]
            new_contract[side] = tuple(axes[d] for d in contract[side])
            new_batch[side] = tuple(axes[d] for d in batch[side])
    numbers = tuple(new_contract), tuple(new_batch)
    return eqn.replace(invars=tuple(invars), params=eqn.params | {"dimension_numbers": numbers})


def _writing_turned(eqn: JaxprEqn, made: dict[Var, JaxprEqn], uses: Counter[Var]) -> JaxprEqn:
    """A transpose that only brings the right side's axes before the left's: the sides swapped."""
    [x] = eqn.invars
    product = made.get(x) if isinstance(x, Var) and uses[x] == 1 else None
    if product is None or product.primitive.name != "dot_general":
        return eqn
    (left_contract, right_contract), (left_batch, right_batch) = (
        product.params["dimension_numbers"])
    left, right = product.invars
    start = len(left_batch)
    middle = left.aval.ndim - len(left_contract)
    rank = eqn.outvars[0].aval.ndim
    if eqn.params["permutation"] != (*range(start), *range(middle, rank), *range(start, middle)):
        return eqn
    numbers = ((right_contract, left_contract), (right_batch, left_batch))
    return product.replace(invars=(right, left), outvars=eqn.outvars,
                           params=product.params | {"dimension_numbers": numbers})
