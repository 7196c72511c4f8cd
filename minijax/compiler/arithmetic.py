"""Scalar arithmetic of the builder: common subexpressions, code motion, constant folding.

Builds on loops.py. Pure expressions are shared and hoisted out of loops; narrow numbers are
computed in a wider dtype; a linear index is divided out only where it is used. Chapter 23. In JAX
this role is played by MLIR builders and XLA's elemental IR emitter.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minijax.dtypes import BFLOAT16, computed_in, iinfo

from .loops import INT64, OPS, Constant, Let, Operand, Scalar, Statement
from .scalars import FLOAT32, Scalars, kind_of, result_dtype

# By kind of dtype ("i": signed or not): the identity and the absorbing element of an operation, on
# the right, or on either side if it commutes. Exact ones only: x + 0.0 is not x for x = -0.0, but
# x - 0.0 is.
IDENTITIES = {
    "b": {"and": 1, "mul": 1, "or": 0, "add": 0}, "f": {"mul": 1, "div": 1, "sub": 0},
    "i": {"mul": 1, "div": 1, "sub": 0, "add": 0, "or": 0, "xor": 0, "shl": 0, "shr_logical": 0,
          "shr_arithmetic": 0}}
COMMUTING = ("add", "mul", "and", "or", "xor")
ABSORBING = {"b": {"and": 0, "mul": 0, "or": 1, "add": 1}, "f": {}, "i": {"mul": 0, "and": 0}}


class Component(Scalar):
    """One component of an unravelled linear index, divided out only where it is used; by `inner`
    the linear index grows with it, and `outer` is the number of positions of the axes before.
    """

    position: Operand
    outer: int
    size: int
    inner: int


@dataclass(eq=False)
class Scope:
    """A body under construction, with the expressions available in it."""

    depth: int
    let_floor: int   # the outermost depth to which pure operations may be moved from here,
    load_floor: int  # and loads
    loop_depth: int  # the depth of the innermost loop around
    trip_count: int | None = 1
    statements: list[Statement] = field(default_factory=list)
    table: dict[Any, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Arithmetic(Scalars):
    """The part of the builder without memory and control.

    >>> s = Arithmetic()
    >>> s.add(s.const(2, "int32"), 3).value
    np.int32(5)
    """

    operands = (Scalar, Constant)

    def __init__(self) -> None:
        self.scopes = [Scope(0, 0, 0, 0)]
        # The depth of the scope that defined a scalar; of constants 0.
        self._depth: defaultdict[Operand, int] = defaultdict(int)
        self.lets: dict[Operand, Let] = {}  # scalars → the operations that define them
        self._constants: dict[Any, Constant] = {}
        self._folded: dict[Any, Constant] = {}  # operations on constants → their results
        self._raveled: dict[Any, list[tuple[Operand, int]]] = {}
        self._components: dict[Any, Component] = {}
        self._component_of: dict[Operand, Component] = {}  # emitted components → their parts

    # -- operands ------------------------------------------------------------------------------

    def const(self, value: Any, dtype: Any) -> Constant:
        """A literal of a dtype; equal literals are one object."""
        key = dtype, value
        is_plain = type(value) is int or type(value) is float and value != 0  # of either sign
        if is_plain and key in self._constants:
            return self._constants[key]
        dtype = np.dtype(dtype)
        scalar = np.asarray(value).astype(dtype)[()]
        constant = self._constants.setdefault((dtype, scalar.tobytes()), Constant(scalar, dtype))
        if is_plain:
            self._constants[key] = constant
        return constant

    def index(self, value: int | Operand) -> Operand:
        """An int64 operand from a Python integer or an operand."""
        return value if isinstance(value, self.operands) else self.const(value, INT64)

    def actual(self, x: Operand) -> Operand:
        """x itself; for a component of a linear index the emitted quotient and remainder."""
        if not isinstance(x, Component):
            return x
        position = x.position
        last, extent = self._raveled.get(position, [(position, 0)])[-1]
        if x.outer > 1 and extent % (x.inner * x.size) == 0 and not isinstance(last, Component):
            position = last  # the terms before it are multiples
        component = self.div(position, x.inner)
        if x.outer > 1:
            component = self.rem(component, x.size)
        self._component_of.setdefault(component, x)
        return component

    # -- pure operations -----------------------------------------------------------------------

    def let(self, op: str, args: tuple, target: np.dtype | None = None) -> Operand:
        """One operation: folded, taken from the available expressions, or emitted at the outermost
        depth that its arguments allow.
        """
        kinds = {*map(type, args)}
        if Component in kinds:
            args = tuple(map(self.actual, args))
        dtype = result_dtype(op, tuple([x.dtype for x in args]), target)
        if Constant in kinds or len(args) > len({*args}):
            folded = self.fold(op, args, dtype)
            if folded is not None:
                return folded
        key, outermost = (op, dtype, args), max(map(self._depth.__getitem__, args))
        depth = max(self.scopes[-1].let_floor, outermost)
        swapped = (op, dtype, args[::-1]) if op in COMMUTING else key
        for scope in self.scopes[outermost:depth + 1]:
            if known := scope.table.get(key) or scope.table.get(swapped):
                return known
        result = self._define(dtype, depth)
        let = self.lets[result] = Let(result, op, args)
        self._append(depth, let, key, result)
        return result

    def _define(self, dtype: np.dtype, depth: int, hint: str = "t") -> Scalar:
        scalar = Scalar(hint, dtype)
        self._depth[scalar] = depth
        return scalar

    def _append(self, depth: int, statement: Statement, key: Any, scalar: Scalar) -> None:
        """Append the statement that defines a scalar, and record the expression in its scope."""
        self.scopes[depth].statements.append(statement)
        self.scopes[depth].table[key] = scalar

    def fold(self, op: str, args: Any, dtype: np.dtype) -> Operand | None:
        """The operand that equals op(*args), if no operation is needed; else None."""
        constants = [type(x) is Constant for x in args]
        if False not in constants:
            if (known := self._folded.get((op, dtype, args))) is not None:
                return known
            target = [dtype] if OPS[op].result == "target" else []
            result = self.const(OPS[op].meaning(*(x.value for x in args), *target), dtype)
            return self._folded.setdefault((op, dtype, args), result)
        if op == "select" and isinstance(args[0], Constant):
            return args[1] if args[0].value else args[2]
        if len(args) == 2 and (True in constants or args[0] is args[1]):
            return self._fold_pair(op, *args)
        return None

    def _fold_pair(self, op: str, x: Any, y: Any) -> Operand | None:
        kind = "i" if x.dtype.kind == "u" else x.dtype.kind
        identity, absorbing = (self.const(table[kind][op], x.dtype) if op in table[kind] else None
                               for table in (IDENTITIES, ABSORBING))
        for constant, other in ((y, x), (x, y)):
            if constant is identity and (constant is y or op in COMMUTING):
                return other
            if constant is absorbing:
                return constant
        if kind == "i" and (x is y and op == "sub" or op == "rem" and y is self.const(1, y.dtype)):
            return self.const(0, x.dtype)
        return self._sum_of_constants(op, x, y) if kind == "i" else None

    def _sum_of_constants(self, op: str, x: Any, y: Any) -> Operand | None:
        """±(±z + c) + d is ±z + (d ± c), which wraps the same way."""
        inner = self.lets.get(x if type(y) is Constant else y)
        if op not in ("add", "sub") or inner is None or inner.op not in ("add", "sub"):
            return None
        with np.errstate(over="ignore"):
            outer, summands = _signed_sum(op, x, y), _signed_sum(inner.op, *inner.args)
            if outer is None or summands is None:
                return None
            (sign, _, d), (inner_sign, z, c) = outer, summands
            total = d + c if sign > 0 else d - c
            if sign != inner_sign:
                return self.sub(total, z)
            return self.sub(z, -total) if total < 0 else self.add(z, total)

    def lookup(self, key: Any) -> Any:
        """The available expression with a key, or None."""
        for scope in reversed(self.scopes):
            if key in scope.table:
                return scope.table[key]
        return None

    def remember(self, key: Any, value: Any) -> None:
        """Make a value available under a key until the current scope closes."""
        self.scopes[-1].table[key] = value

    def available(self, key: Any, make: Callable[[], Any]) -> Any:
        """The value under a key: made now, unless it is available until the scope closes."""
        value = self.lookup(key)
        if value is None:
            value = make()
            self.remember(key, value)
        return value

    def convert(self, x: Operand, dtype: Any) -> Operand:
        """x in another dtype; narrow numbers go through the wide ones, floats are rounded once."""
        dtype = np.dtype(dtype)
        if x.dtype == dtype:
            return x
        for narrow in (x.dtype, dtype):
            wide = computed_in(narrow)
            if narrow is not wide and wide not in (x.dtype, dtype):
                return self.convert(self._to_wide(x, wide, dtype), dtype)
        return self.let("convert", (x,), dtype)

    def _to_wide(self, x: Operand, wide: np.dtype, dtype: np.dtype) -> Operand:
        """x in the wide dtype of a conversion, clamped or rounded as the narrow one needs."""
        if x.dtype == np.float64 and wide == FLOAT32 and dtype != BFLOAT16:
            return self._float32_to_odd(x)
        converted = self.convert(x, wide)
        if wide == computed_in(dtype) != FLOAT32 and kind_of(computed_in(x.dtype)) == "f":
            limits = iinfo(dtype)
            return self.clamp(converted, limits.min, limits.max)
        return converted

    def _float32_to_odd(self, x: Operand) -> Operand:
        """A float64 as float32, rounded to odd behind some digits more than narrow floats have: a
        second rounding is then exact.
        """
        bits = self.bitcast(x, np.int64)
        rest = self.and_(bits, (1 << 31) - 1)
        odd = self.or_(self.xor(bits, rest), self.shl(self.convert(self.ne(rest, 0), np.int64), 31))
        return self.convert(self.bitcast(odd, x.dtype), FLOAT32)

    # -- positions -----------------------------------------------------------------------------

    def ravel(self, index: Sequence[Any], shape: Sequence[int]) -> Operand:
        """The row-major linear index of an index in a shape."""
        terms: list[tuple[Operand, int]] = []
        for i, n in zip(index, shape, strict=True):
            if n != 1:
                terms.append((self.index(i), n))
                self._merge_components(terms)
        position: Operand = self.const(0, INT64)
        for x, n in terms:
            position = self.add(self.mul(position, n), x)
        if len(terms) > 1:
            self._raveled[position] = terms
        return position

    def _merge_components(self, terms: list[tuple[Operand, int]]) -> None:
        """Replace the last terms, if they are neighbouring components of one linear index, by the
        component that they are together, or by that index.
        """
        while len(terms) > 1:
            (x, m), (y, n) = terms[-2:]
            if not (isinstance(x, Component) and isinstance(y, Component)) or (
                    (x.position, x.outer * m, x.inner) != (y.position, y.outer, n * y.inner)
                    or (x.size, y.size) != (m, n)):
                return
            terms[-2:] = [(self._component(x.position, x.outer, m * n, y.inner), m * n)]

    def unravel(self, position: Operand, shape: Sequence[int]) -> tuple[Operand, ...]:
        """The index at a row-major linear index; its components cost nothing until they are used.
        """
        dims = [n for n in shape if n != 1]
        if 0 in dims or not dims:
            return tuple(self.const(0, INT64) for _ in shape)
        terms = self._raveled.get(position, [])
        if math.prod(n for _, n in terms) != math.prod(dims):
            terms = [(position, math.prod(dims))]
        return self.whole(self._regroup(terms, dims), shape)

    def whole(self, loops: Iterable[Operand], shape: Sequence[int]) -> tuple[Operand, ...]:
        """The index of an element from the indices of loops: axes of length one have no loop."""
        indices = iter(loops)
        return tuple(next(indices) if n != 1 else self.const(0, INT64) for n in shape)

    def divided(self, position: Operand, shape: Sequence[int]) -> list[Operand]:
        """The same with all its components emitted, for use in several bodies."""
        return [self.actual(x) for x in self.unravel(position, shape)]

    def _regroup(self, terms: Sequence[tuple[Operand, int]], dims: Sequence[int]) -> list[Operand]:
        """Components for `dims` from those of other sizes, with as few splits as possible."""
        result: list[Operand] = []
        while dims:
            source = target = 1  # the smallest leading groups of equal extent
            while (extent := math.prod(n for _, n in terms[:source])) != math.prod(dims[:target]):
                if extent < math.prod(dims[:target]):
                    source += 1
                else:
                    target += 1
            position = self.ravel(*zip(*terms[:source], strict=True))
            result += [self._component(position, math.prod(dims[:axis]), dims[axis],
                                       math.prod(dims[axis + 1:target])) for axis in range(target)]
            terms, dims = terms[source:], dims[target:]
        return result

    def within(self, index: Sequence[Any], shape: Sequence[int]) -> tuple[Operand, ...]:
        """The canonical form of an index: 0 on each axis of length one, and components of a linear
        index as such.
        """
        zero = self.const(0, INT64)
        return tuple([zero if n == 1 else self._component_of.get(x := self.index(i), x)
                      for i, n in zip(index, shape, strict=True)])

    def _component(self, position: Operand, *sizes: int) -> Operand:
        """The component of an axis; of the only one the linear index itself."""
        outer, _, inner = sizes
        if outer == inner == 1:
            return position
        component = Component("part", INT64, position, *sizes)
        return self._components.setdefault((position, sizes), component)


def _signed_sum(op: str, x: Any, y: Any) -> tuple[int, Operand, Any] | None:
    """(sign, z, c), if op(x, y) is z + c or -z + c with a constant c; else None."""
    if op in ("add", "sub") and isinstance(y, Constant):
        return 1, x, y.value if op == "add" else -y.value
    if op == "sub" and isinstance(x, Constant):
        return -1, y, x.value
    return None
