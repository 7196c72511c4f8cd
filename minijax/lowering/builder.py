"""The builder: what lowering rules write loop trees with.

Stands on arithmetic.py (expressions); here are memory, variables, control and reductions.
Chapter 23. In JAX this role is played by MLIR builders and XLA's loop emitters.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from minijax.primitives.slots import extremum_of_nothing

from .arithmetic import Arithmetic, Part, Scope
from .loops import (
    INT64, Address, Assign, Buffer, Call, Check, Constant, Declare, Flat, For, If, Index,
    Load, Operand, Read, Scalar, Statement, Store, Variable,
    While, touched,
)

# However long a sum, no number is rounded often: terms are added up in blocks, in registers, and
# whole rows of terms in chains; what blocks and chains give is added up in the same manner.
BLOCK = 1024
CHAIN = 16
ROWS = 8  # of terms, taken together before the row of sums is touched


def block_of(n: int, most: int) -> int:
    """How many of n stand in a block: at best all blocks are alike, and full of vectors.

    >>> block_of(100, 1024), block_of(1_000_000, 1024), block_of(1009, 16)
    (100, 1000, 16)
    """
    alike = [size for size in range(min(n, most), most // 2, -1) if n % size == 0]
    return max(alike or [min(n, most)], key=lambda size: (size % ROWS == 0, size))


class Builder(Arithmetic):
    """Emits statements into the innermost open body.

    >>> b = Builder()
    >>> x = b.temp((3,), "float32")
    >>> with b.loop(3) as i:
    ...     b.store(x, (i,), b.convert(i, "float32"))
    >>> type(b.scopes[0].statements[0]).__name__
    'For'
    """

    def __init__(self) -> None:
        super().__init__()
        self.temps: list[Buffer] = []
        # Reads of variables that do not change any more: two names for one thing.
        self.finals: dict[Scalar, Variable] = {}
        self._version: dict[Buffer | Variable, int] = {}
        self._frozen: dict[Buffer, Scope] = {}

    # -- memory --------------------------------------------------------------------------------

    def temp(self, shape: Sequence[int], dtype: Any, hint: str = "temp") -> Buffer:
        """A buffer in the workspace."""
        buffer = Buffer(self.fresh(hint), np.dtype(dtype), tuple(shape), "temp")
        self.temps.append(buffer)
        return buffer

    def freeze(self, buffer: Buffer) -> None:
        """Promise that the buffer is not written again before the present scope closes."""
        self._frozen[buffer] = self.scopes[-1]

    def _buffer_depth(self, buffer: Buffer) -> int:
        """The outermost depth at which a load from the buffer may stand."""
        if buffer.role in ("input", "constant"):
            return 0
        scope = self._frozen.get(buffer)
        if scope is not None and scope.depth < len(self.scopes) and (
                self.scopes[scope.depth] is scope):
            return scope.depth
        return len(self.scopes) - 1

    def place(self, buffer: Buffer, index: Any) -> Index:
        """A legal index of a buffer: flat where its components are parts of one position."""
        if isinstance(index, Flat):
            return Flat(self.actual(index.position))
        operands = self.within(index, buffer.shape)
        if any(isinstance(i, Part) for i in operands):
            return Flat(self.actual(self.ravel(operands, buffer.shape)))
        return operands

    def load(self, buffer: Buffer, index: Any) -> Scalar:
        """buffer[index]; the index must lie inside."""
        at = self.place(buffer, index)
        keys = (at.position,) if isinstance(at, Flat) else at
        own = self._buffer_depth(buffer)
        mutable = own == len(self.scopes) - 1 and buffer.role not in ("input", "constant")
        key = ("load", buffer, isinstance(at, Flat), keys, self._version.get(buffer, 0),
               self.scopes[self.scopes[-1].loop_depth] if mutable else None)
        found = self.find(key)
        if found is not None:
            return found
        floor = max(own, self.scopes[-1].load_floor)
        depth = max([floor, *(self.depth_of(k) for k in keys)])
        target = self._define(buffer.dtype, depth)
        self._put(depth, Load(target, buffer, at), key, target)
        return target

    def store(self, buffer: Buffer, index: Any, value: Any) -> None:
        """buffer[index] = value."""
        x = self.operand(value, buffer.dtype)
        self._emit(Store(buffer, self.place(buffer, index), self.actual(x)))
        self.touch(buffer)

    def touch(self, buffer: Buffer | Variable) -> None:
        """Forget what was read from something that has changed."""
        self._version[buffer] = self._version.get(buffer, 0) + 1
        self._frozen.pop(buffer, None)  # type: ignore[arg-type]

    def _emit(self, statement: Statement) -> None:
        self.scopes[-1].statements.append(statement)

    def call(self, external: str, *args: Any) -> None:
        """A library external on buffers, addresses in them, and scalars."""
        def argument(arg: Any) -> Any:
            if isinstance(arg, Address):
                return Address(arg.buffer, Flat(self.actual(arg.index.position)))
            return arg if isinstance(arg, Buffer) else self.actual(self.index(arg))
        call = Call(external, tuple(map(argument, args)))
        self._emit(call)
        for buffer in touched(call):
            if buffer.role in ("output", "temp"):
                self.touch(buffer)

    def check(self, ok: Operand, code: int) -> None:
        """Leave the kernel with `code` unless `ok`."""
        if isinstance(ok, Constant) and ok.value:
            return
        self._emit(Check(ok, code))
        self.scopes[-1].load_floor = len(self.scopes) - 1

    # -- variables -----------------------------------------------------------------------------

    def variable(self, init: Any, dtype: Any = None) -> Variable:
        """A mutable scalar with an initial value."""
        value = self.operand(init, dtype)
        variable = Variable(self.fresh("v"), value.dtype)
        self._emit(Declare(variable, self.actual(value)))
        return variable

    def read(self, variable: Variable) -> Scalar:
        """The variable's value now."""
        key = ("read", variable, self._version.get(variable, 0),
               self.scopes[self.scopes[-1].loop_depth])
        found = self.find(key)
        if found is None:
            found = self._define(variable.dtype, len(self.scopes) - 1)
            self._emit(Read(found, variable))
            self.remember(key, found)
        return found

    def assign(self, variable: Variable, value: Any) -> None:
        """variable = value."""
        self._emit(Assign(variable, self.actual(self.operand(value, variable.dtype))))
        self.touch(variable)

    # -- control -------------------------------------------------------------------------------

    @contextmanager
    def _scope(self, *, loop: bool = False, certain: bool = False) -> Iterator[Scope]:
        """A body that is open meanwhile: of a loop, or else of a branch."""
        outer, depth = self.scopes[-1], len(self.scopes)
        scope = Scope(depth, outer.let_floor if loop else depth,
                      outer.load_floor if certain else depth, depth if loop else outer.loop_depth)
        self.scopes.append(scope)
        try:
            yield scope
        finally:
            self.scopes.pop()

    @contextmanager
    def loop(self, stop: Any, start: Any = 0, vectorize: str = "") -> Iterator[Any]:
        """for index in range(start, stop); a loop of one turn is no loop.

        A "parallel" one that needs scratch space is "apart": its turns would share that space.
        """
        first, last = self.index(start), self.index(stop)
        trips = (int(last.value) - int(first.value)
                 if isinstance(first, Constant) and isinstance(last, Constant) else None)
        if trips == 1:
            yield first
            return
        first, last = self.actual(first), self.actual(last)
        temps = len(self.temps)
        with self._scope(loop=True, certain=trips is not None and trips > 0) as scope:
            scope.trips = trips
            index = self._define(INT64, scope.depth, "i")
            yield index
        if vectorize == "parallel" and len(self.temps) > temps:
            vectorize = "apart"
        if trips is None or trips > 0:
            self._emit(For(index, first, last, tuple(scope.statements), "\n".join(scope.notes),
                           vectorize))

    def note(self, line: str) -> None:
        """Write a line over the innermost open loop, unless it stands over one around it."""
        if line and not any(line in scope.notes for scope in self.scopes):
            self.scopes[self.scopes[-1].loop_depth].notes.append(line)

    @contextmanager
    def when(self, condition: Operand) -> Iterator[None]:
        """Run the body only where the condition holds."""
        with self._scope() as scope:
            yield
        self._emit(If(condition, tuple(scope.statements)))

    def while_loop(self, condition: Callable[[], Operand], body: Callable[[], None]) -> None:
        """Run `body` as long as `condition` gives true."""
        with self._scope(loop=True) as first:
            test = self.actual(condition())
        with self._scope(loop=True) as second:
            second.table = first.table  # the body sees what the condition computed
            body()
        self._emit(While(tuple(first.statements), test, tuple(second.statements)))

    def choose(self, condition: Operand, then: Callable[[], Operand],
               orelse: Callable[[], Operand]) -> Operand:
        """then() or orelse(), evaluating only the one that is asked for."""
        if isinstance(condition, Constant):
            return then() if condition.value else orelse()
        sides = []
        for side in (then, orelse):
            with self._scope() as scope:
                x = self.actual(side())
            sides.append((scope.statements, x))
        result = self.variable(0, x.dtype)
        bodies = [(*statements, Assign(result, x)) for statements, x in sides]
        self._emit(If(condition, *bodies))
        self.touch(result)
        return self.read(result)

    # -- reductions ----------------------------------------------------------------------------

    def accumulate(self, op: str, extents: Sequence[int], f: Callable[..., Operand]) -> Operand:
        """f(k…) op f(k…) op … over all k below `extents`, in any association.

        `op` is one of add, mul, min, max, and, or, xor. The result has the dtype of `f`.
        """
        if not extents:
            return f()
        n, *rest = map(int, extents)
        [total] = self.join([op], n, lambda k: [self.accumulate(
            op, rest, functools.partial(f, k))], math.prod(rest))
        return total

    def join(self, ops: Sequence[str], n: int, turn: Callable[[Operand], Sequence[Operand]],
             inside: int = 1, block: int = BLOCK) -> list[Operand]:
        """What each operation makes of the terms that all turns k below n give it, side by side.

        `inside`: how many terms a turn joins itself. Blocks are joined one by one, in any order;
        then what they gave, in one order.
        """
        most = max(block // max(inside, 1), 1)
        if inside != 1 and "add" in ops:  # short inner loops are unrolled, turns taken abreast
            most = min(most, CHAIN if inside >= CHAIN else 4 * CHAIN)
        return self._in_blocks(
            n, most, lambda first, count: self._join_in_turn(ops, first, count, turn),
            lambda partials, n: self.join(ops, n, lambda k: [self.load(x, (k,)) for x in partials],
                                          block=CHAIN if "add" in ops else BLOCK))

    def _in_blocks(self, n: int, most: int, join: Callable[[Operand, int], list], again: Callable,
                   width: int = 0) -> list:
        """What `join` makes of n turns if they are few; else `again` of what it makes of blocks:
        scalars, or rows of some width.
        """
        if n <= most:
            return join(self.index(0), n)
        size = block_of(n, most)
        whole, left = divmod(n, size)
        partials: list[Buffer] = []

        def block(i: Operand, count: int) -> None:
            found = join(self.mul(i, size), count)
            if not partials:  # now the dtypes are known
                shape = (whole + bool(left), width)[:1 + bool(width)]
                partials.extend(self.temp(shape, x.dtype, "partial") for x in found)
            for partial, x in zip(partials, found, strict=True):
                if not width:
                    self.store(partial, (i,), x)
                    continue
                with self.loop(width, vectorize="parallel") as j:
                    self.store(partial, (i, j), self.load(x, (j,)))

        with self.loop(whole, vectorize="apart") as i:
            block(self.index(i), size)
        if left:
            block(self.index(whole), left)
        for partial in partials:
            self.freeze(partial)
        return again(partials, whole + bool(left))

    def _join_in_turn(self, ops: Sequence[str], start: Any, n: int,
                      turn: Callable[[Operand], Sequence[Operand]]) -> list[Operand]:
        """One loop of n turns from `start`. The variables are declared once the dtypes are known.
        """
        if n == 1:
            return [self.actual(x) for x in turn(self.index(start))]
        outside = self.scopes[-1]
        slot = len(outside.statements)
        variables: list[Variable] = []
        with self.loop(n, vectorize="reduce") as k:
            for op, term in zip(ops, turn(self.add(self.index(k), start)), strict=True):
                x = self.actual(term)
                variables.append(Variable(self.fresh("v"), x.dtype))
                self.assign(variables[-1], self.operation(op, (self.read(variables[-1]), x)))
        outside.statements[slot:slot] = [Declare(v, self.starting_value(op, v.dtype))
                                         for op, v in zip(ops, variables, strict=True)]
        totals = [self.read(variable) for variable in variables]
        self.finals |= zip(totals, variables, strict=True)
        return [*totals]

    def join_rows(self, ops: Sequence[str], dtypes: Sequence[np.dtype], n: int, width: int,
                  terms: Callable[[Operand, Operand], Sequence[Operand]]) -> list[Buffer]:
        """For each operation a row: what it makes of the terms that terms(k, j) gives it for all k
        below n, for each j below `width`. Blocks of rows are joined as by `join`.
        """
        return self._in_blocks(
            n, ROWS * (CHAIN if "add" in ops else BLOCK),
            lambda first, count: self._join_some_rows(ops, dtypes, first, count, width, terms),
            lambda partials, n: self.join_rows(ops, dtypes, n, width, lambda k, j: [
                self.load(x, (k, j)) for x in partials]), width)

    def _join_some_rows(self, ops: Sequence[str], dtypes: Sequence[np.dtype], first: Operand,
                        n: int, width: int, terms: Callable) -> list[Buffer]:
        """n rows from `first` on, several at a time."""
        sums = [self.temp((width,), dtype, "sums") for dtype in dtypes]
        with self.loop(width, vectorize="parallel") as j:
            for op, x in zip(ops, sums, strict=True):
                self.store(x, (j,), self.starting_value(op, x.dtype))

        def join(k: Operand, count: int) -> None:
            with self.loop(width, vectorize="parallel") as j:
                rows = [terms(self.add(k, u), self.index(j)) for u in range(count)]
                for op, x, *xs in zip(ops, sums, *rows, strict=True):
                    while len(xs) > 1:
                        pairs = zip(xs[::2], xs[1::2], strict=False)
                        xs = [*(self.operation(op, pair) for pair in pairs), *xs[len(xs) & ~1:]]
                    self.store(x, (j,), self.operation(op, (self.load(x, (j,)), *xs)))

        step = ROWS if n >= 2 * ROWS else 1
        with self.loop(n // step) as k:
            join(self.add(first, self.mul(self.index(k), step)), step)
        if n % step:
            join(self.add(first, n - n % step), n % step)
        return sums

    def starting_value(self, op: str, dtype: np.dtype) -> Operand:
        """What an accumulation begins with: the operation's identity."""
        value = (extremum_of_nothing(op, dtype) if op in ("min", "max")
                 else {"mul": 1, "and": -1}.get(op, 0))
        return self.const(value, dtype)
