"""Transpose folding: a matrix product absorbs the transposes of its operands and of its result.

Builds on jaxpr.py. Chapter 22. In XLA: `DotDecomposer` and layout assignment.
"""

from collections import Counter
from collections.abc import Iterable

from minijax.core.jaxpr import Atom, Jaxpr, JaxprEqn, Var


def fold_transposes(jaxpr: Jaxpr) -> Jaxpr:
    """The same program with fewer transposes.

    (x y)ᵀ is yᵀ xᵀ, and which axis of an operand a product sums over is free to choose.

    >>> import minijax, numpy as np
    >>> f = minijax.make_jaxpr(lambda x, y: (x @ y).T)(np.ones((2, 3)), np.ones((3, 4)))
    >>> print([str(eqn.primitive) for eqn in fold_transposes(f.jaxpr).eqns])
    ['dot_general', 'dot_general']
    """
    uses = Counter(x for xs in (jaxpr.outvars, *(eqn.invars for eqn in jaxpr.eqns)) for x in xs)
    products: dict[Atom, JaxprEqn] = {}
    transposes: dict[Atom, JaxprEqn] = {}
    eqns = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "transpose":
            transposes[eqn.outvars[0]] = eqn
            if uses[eqn.invars[0]] == 1 and eqn.invars[0] in products:
                eqn = _fold_into_result(eqn, products[eqn.invars[0]])
        if eqn.primitive.name == "dot_general":
            products[eqn.outvars[0]] = eqn = _fold_into_operands(eqn, transposes)
        eqns.append(eqn)
    return jaxpr.replace(eqns=eqns)


def _product(eqn: JaxprEqn, sides: Iterable[tuple], outvars: list[Var]) -> JaxprEqn:
    """A product with other sides: each an operand, its contracting axes and its batch axes."""
    invars, contract, batch = zip(*sides, strict=True)
    return eqn.replace(invars=list(invars), outvars=outvars,
                       params=eqn.params | {"dimension_numbers": (contract, batch)})


def _sides(eqn: JaxprEqn) -> list[tuple]:
    return list(zip(eqn.invars, *eqn.params["dimension_numbers"], strict=True))


def _fold_into_operands(eqn: JaxprEqn, transposes: dict[Atom, JaxprEqn]) -> JaxprEqn:
    """A product that reads through the transposes of its operands."""
    def side(x: Atom, contract: tuple, batch: tuple) -> tuple:
        axes = transposes[x].params["permutation"] if x in transposes else ()
        free = [axes[d] for d in range(len(axes)) if d not in (*contract, *batch)]
        if not axes or free != sorted(free):  # the result would be transposed instead
            return x, contract, batch
        return (transposes[x].invars[0], tuple(axes[d] for d in contract),
                tuple(axes[d] for d in batch))
    return _product(eqn, [side(*each) for each in _sides(eqn)], eqn.outvars)


def _fold_into_result(eqn: JaxprEqn, product: JaxprEqn) -> JaxprEqn:
    """A transpose that only exchanges the free axes of a product becomes the product with its sides
    swapped.
    """
    (x, contract, batch), right = _sides(product)
    start, middle, rank = len(batch), x.aval.ndim - len(contract), eqn.outvars[0].aval.ndim
    if eqn.params["permutation"] != (*range(start), *range(middle, rank), *range(start, middle)):
        return eqn
    return _product(product, [right, (x, contract, batch)], eqn.outvars)
