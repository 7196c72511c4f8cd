"""Contraction: a product that one sum reads becomes a fused multiply-add, which rounds once.

Builds on loops.py; the compilers for CPUs begin with it. Chapter 20. In LLVM: the flag `contract`,
which XLA sets for all that it compiles.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple

from . import cpu
from .loops import (Constant, Kernel, Let, Load, Operand, Read, Scalar, Statement,
                    cached_on_node, changed, used, walk, with_bodies)
from .scalars import kind_of


class Signs(NamedTuple):
    """Whether a number has an odd number of negations, and of negative constant factors."""

    negated: bool = False
    odd: bool = False


class Product(NamedTuple):
    """A product that is read once: x * y, or -(x * y)."""

    x: Operand
    y: Operand
    lets: tuple[Let, ...]  # the operations that compute it
    rank: int
    signs: Signs
    is_negative: bool = False


@cached_on_node
def contracted(kernel: Kernel, rounded: frozenset[Operand] = frozenset()) -> Kernel:
    """The kernel with its products contracted, if the processor has the instruction; but for some
    that are rounded.
    """
    if not cpu.has("fma"):
        return kernel
    uses = Counter(x for each in walk(kernel.body) for x in used(each))
    uses.update((*rounded, *kernel.notes.get("rounded", ())))
    sizes = {x: v.aval.size for x, v in kernel.notes.get("origins", {}).items()}
    return replace(kernel, body=Contraction(uses, sizes).of(kernel.body))


class Contraction:
    """The contraction of one body.

    Ranks are those of LLVM's pass `reassociate`, which sorts the operands of a sum: values count
    up as they are loaded, and an operation is one above its operands.

    Args:
      uses: how often each scalar is read; a product that is rounded counts as read twice.
      sizes: how many elements the arrays have whose elements scalars are, where that is known. A
        product that is broadcast is rounded: XLA computes it in a loop of its own.
    """

    def __init__(self, uses: Mapping[Any, int], sizes: Mapping[Any, int]) -> None:
        self.uses, self.sizes = uses, sizes
        self.ranks: defaultdict[Any, int] = defaultdict(int)
        self.signs: defaultdict[Operand, Signs] = defaultdict(Signs)
        self.counter = count(1)
        self.products: dict[Operand, Product] = {}
        self.statements: list[Statement] = []
        self.fused: set[Statement] = set()

    def of(self, body: Iterable[Statement]) -> tuple[Statement, ...]:
        """The body with contracted products."""
        for each in body:
            if isinstance(each, Let):
                self.add(each)
                continue
            if isinstance(each, Load | Read):
                self.ranks[each.target] = next(self.counter)
            elif each.bodies_at:
                each = with_bodies(
                    each, lambda inner: Contraction(self.uses, self.sizes).of(inner))
            self.statements.append(each)
        return tuple(x for x in self.statements if x not in self.fused)

    def add(self, let: Let) -> None:
        """Append an operation, or the fused multiply-add that it becomes."""
        if kind_of(let.target.dtype) != "f":
            self.statements.append(let)
            return
        size = self.sizes.get(let.target, 0)
        terms = [self.products[x] for x in let.args
                 if x in self.products and self.sizes.get(x, size) >= size]
        rank = max(map(self.ranks.__getitem__, let.args)) + (let.op != "neg")
        self.ranks[let.target] = rank
        if terms and let.op in ("add", "sub"):
            product = terms[0] if len(terms) == 1 else first_of(let.op, *terms)
            self.fused.update(product.lets)
            self.statements += fused_multiply_add(let, product)
            return
        self.statements.append(let)
        if let.op not in ("neg", "mul"):
            return
        signs = self.signs[let.target] = self.signs_of(let)
        if self.uses[let.target] != 1:
            return
        if let.op == "mul":
            x, y = let.args
            self.products[let.target] = Product(x, y, (let,), rank, signs)
        elif terms:
            [term] = terms
            self.products[let.target] = term._replace(
                lets=(*term.lets, let), signs=signs, is_negative=not term.is_negative)

    def signs_of(self, let: Let) -> Signs:
        """The signs of a product or a negation: a constant factor takes in the negations."""
        signs = [Signs(odd=bool(x.value < 0)) if isinstance(x, Constant) else self.signs[x]
                 for x in let.args]
        negated = (sum(each.negated for each in signs) + (let.op == "neg")) % 2 == 1
        odd = sum(each.odd for each in signs) % 2 == 1
        factors = (self.products[let.args[0]][:2] if let.op == "neg" and let.args[0] in
                   self.products else let.args)
        if any(isinstance(x, Constant) for x in factors):
            return Signs(False, odd != negated)
        return Signs(negated, odd)


def first_of(op: str, left: Product, right: Product) -> Product:
    """The one of two products that is contracted: the first, in the order in which LLVM puts them.

    What is negated is subtracted. In a sum the one of lower rank comes first; but what has a
    negative constant is subtracted, too.
    """
    is_subtracted = right.signs.negated != (op == "sub")
    if left.signs.negated != is_subtracted:
        return right if left.signs.negated else left
    if is_subtracted and op == "add":
        return right
    if right.rank < left.rank:
        left, right = right, left
    return right if left.signs.odd and not right.signs.odd else left


def fused_multiply_add(let: Let, product: Product) -> list[Statement]:
    """The sum or difference of a product and another number."""
    left, right = let.args
    is_left = product.lets[-1].target is left
    x, z = product.x, right if is_left else left
    statements: list[Statement] = []

    def negated(x: Operand) -> Operand:
        if isinstance(x, Constant):
            return Constant(-x.value, x.dtype)
        negative = Scalar("t", x.dtype)
        statements.append(Let(negative, "neg", (x,)))
        return negative

    if product.is_negative != (let.op == "sub" and not is_left):
        x = negated(x)
    if let.op == "sub" and is_left:
        z = negated(z)
    return [*statements, changed(let, op="fma", args=(x, product.y, z))]
