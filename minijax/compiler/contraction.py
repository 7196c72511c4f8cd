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
from .loops import (Constant, Kernel, Let, Operand, Scalar, Statement, cached_on_node, changed,
                    defined, used, walk, with_bodies)
from .scalars import kind_of


class Product(NamedTuple):
    """A product that is read once: x * y, or -(x * y)."""

    x: Operand
    y: Operand
    lets: tuple[Let, ...]  # the operations that compute it
    rank: int
    is_negative: bool = False
    is_odd: bool = False  # whether it has an odd number of negative constants

    @property
    def has_constant(self) -> bool:
        """Whether it takes in a sign."""
        return isinstance(self.x, Constant) or isinstance(self.y, Constant)

    @property
    def is_negation(self) -> bool:
        """Whether a sign is left before it."""
        return self.is_negative and not self.has_constant


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
        self.counter = count(1)
        self.products: dict[Operand, Product] = {}
        self.statements: list[Statement] = []
        self.fused: set[Statement] = set()

    def of(self, body: Iterable[Statement]) -> tuple[Statement, ...]:
        """The body with contracted products."""
        for each in body:
            if isinstance(each, Let):
                self.add(each)
            else:
                self.ranks[defined(each)] = next(self.counter)
                self.statements.append(with_bodies(
                    each, lambda inner: Contraction(self.uses, self.sizes).of(inner)))
        return tuple(x for x in self.statements if x not in self.fused)

    def add(self, let: Let) -> None:
        """Append an operation, or the fused multiply-add that it becomes."""
        size = self.sizes.get(let.target, 0)
        terms = [self.products[x] for x in let.args
                 if x in self.products and self.sizes.get(x, size) >= size]
        rank = self.ranks[let.target] = max(map(self.ranks.__getitem__, let.args)) + (
            let.op != "neg")
        if terms and let.op in ("add", "sub"):
            product = terms[0] if len(terms) == 1 else first_of(let.op, *terms)
            self.fused.update(product.lets)
            self.statements += fused_multiply_add(let, product)
            return
        self.statements.append(let)
        if self.uses[let.target] != 1 or kind_of(let.target.dtype) != "f":
            return
        if let.op == "mul":
            x, y = let.args
            signs = [each.value < 0 for each in let.args if isinstance(each, Constant)]
            is_odd = sum([*signs, *(term.is_odd for term in terms)]) % 2 == 1
            self.products[let.target] = Product(x, y, (let,), rank, is_odd=is_odd)
        elif terms and let.op == "neg":
            [term] = terms
            self.products[let.target] = term._replace(
                lets=(*term.lets, let), is_negative=not term.is_negative,
                is_odd=term.is_odd != term.has_constant)


def first_of(op: str, left: Product, right: Product) -> Product:
    """The one of two products that is contracted: the first, in the order in which LLVM puts them.

    It subtracts what has a sign, or a negative constant, and else begins with the lower rank.
    """
    is_subtracted = right.is_negation != (op == "sub")
    if op == "sub" or left.is_negation != is_subtracted:
        return left if is_subtracted else right
    if right.rank < left.rank:
        left, right = right, left
    return right if left.is_odd and not right.is_odd else left


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
