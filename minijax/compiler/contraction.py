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


# Bits of the signs of a product: an odd number of negations, and of negative constant factors.
NEGATED, ODD = 1, 2


class Product(NamedTuple):
    """A product that is read once: x * y, or -(x * y)."""

    x: Operand
    y: Operand
    lets: tuple[Let, ...]  # the operations that compute it
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
        self.ranks: defaultdict[Operand, int] = defaultdict(int)
        self.factors: dict[Operand, Let] = {}  # products and negations
        self.signs: defaultdict[Operand, int] = defaultdict(int)
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
        op, target, args = let.op, let.target, let.args
        self.ranks[target] = max([self.ranks[x] for x in args]) + (op != "neg")
        if op in ("mul", "neg"):
            self.factors[target] = let
            self.signs[target] = self.signs_of(let)
            if self.uses[target] == 1 and (product := self.product_of(let)):
                self.products[target] = product
        elif op in ("add", "sub"):
            size = self.sizes.get(target, 0)
            terms = [x for x in args if x in self.products and self.sizes.get(x, size) >= size]
            if terms:
                product = self.products[terms[0] if len(terms) == 1 else self.first_of(op, *terms)]
                self.fused.update(product.lets)
                self.statements += fused_multiply_add(let, product)
                return
        self.statements.append(let)

    def product_of(self, let: Let) -> Product | None:
        """The product that an operation computes, if it does."""
        if let.op == "mul":
            x, y = let.args
            return Product(x, y, (let,))
        if (product := self.products.get(let.args[0])) is None:
            return None
        return product._replace(lets=(*product.lets, let), is_negative=not product.is_negative)

    def first_of(self, op: str, left: Operand, right: Operand) -> Operand:
        """The one of two products that is contracted: the first, in the order in which LLVM puts
        them.

        What is negated is subtracted. In a sum the one of lower rank comes first; but what has a
        negative constant is subtracted, too.
        """
        signs = self.signs
        is_negated, is_subtracted = (bool(signs[x] & NEGATED) for x in (left, right))
        is_subtracted ^= op == "sub"
        if is_negated != is_subtracted:
            return right if is_negated else left
        if is_subtracted and op == "add":
            return right
        if self.ranks[right] < self.ranks[left]:
            left, right = right, left
        return right if signs[left] & ODD > signs[right] & ODD else left

    def signs_of(self, let: Let) -> int:
        """The signs of a product or a negation: a constant factor takes in the negations."""
        signs = NEGATED * (let.op == "neg")
        for x in let.args:
            signs ^= self.signs[x] if not isinstance(x, Constant) else ODD * bool(x.value < 0)
        inner = self.factors.get(let.args[0], let) if let.op == "neg" else let
        if signs & NEGATED and any(isinstance(x, Constant) for x in inner.args):
            signs ^= NEGATED | ODD
        return signs


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
