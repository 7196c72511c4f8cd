"""The builder of loop trees, used by lowering rules.

Builds on arithmetic.py (expressions); adds memory, variables, control flow and reductions.
Chapter 23. In JAX this role is played by MLIR builders and XLA's loop emitters.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from minijax.primitives.slots import extremum_identity

from .arithmetic import Arithmetic, Component, Scope
from .loops import (INT64, Address, Assign, Atomic, Buffer, Call, Check, Constant, Declare, For, If,
                    Index, Load, Operand, Read, Scalar, Statement, Store, Variable, While, accessed)

# Blocked summation, so that rounding errors grow slowly: terms are added up in blocks, in
# registers, and rows of terms in chains; the partial sums are added up in the same manner.
BLOCK = 1024
CHAIN = 16
ROWS = 8     # rows of terms that are combined before the row of results is loaded and stored
# Operations of one instruction, for which short rows are combined so; a maximum takes six.
CHEAP = {"add", "mul"}
LANES = 256  # columns whose sums are in registers
# The most terms of rows that are put in lanes (outer_loop_vectorization.py): of any rows, and of
# those with elementary functions.
SHORT_ROW, MIDDLING_ROW = 16, 48
ROWS_IN_LANES = 256  # a multiple of so many, which fill the vectors of any processor
# On a GPU: terms of a block, and of a thread down a column; enough blocks, and enough threads.
BLOCK_TERMS, THREAD_TERMS, MIN_BLOCKS, MIN_THREADS = 1 << 14, 128, 1 << 10, 1 << 17


def block_size(n: int, max_size: int) -> int:
    """The block size for n elements: a divisor of n if possible, and a multiple of the vector
    width.

    >>> block_size(100, 1024), block_size(1_000_000, 1024), block_size(1009, 16)
    (100, 1000, 16)
    """
    if n <= max_size:
        return n
    sizes = (size for step in (ROWS, 1)
             for size in range(max_size - max_size % step, max_size // 2, -step))
    return next((size for size in sizes if n % size == 0), max_size)


def reduce_pairwise(combine: Callable[[Any, Any], Any], terms: Sequence[Any]) -> Any:
    """Combine some terms pairwise, as a balanced tree."""
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        terms = [*(combine(*pair) for pair in pairs), *terms[len(terms) & ~1:]]
    return terms[0]


def identity_element(op: str, dtype: np.dtype) -> Any:
    """The identity element of an operation, to be cast to the dtype: -1 has all bits."""
    if op in ("min", "max"):
        return extremum_identity(op, dtype)
    return {"mul": 1, "and": -1}.get(op, 0)


class Builder(Arithmetic):
    """Emits statements into the innermost open body.

    >>> b = Builder()
    >>> x = b.temp((3,), "float32")
    >>> with b.loop(3) as i:
    ...     b.store(x, (i,), b.convert(i, "float32"))
    >>> type(b.scopes[0].statements[0]).__name__
    'For'
    """

    on_gpu = False  # if so, no loops are blocked for the registers and caches of a CPU

    def __init__(self) -> None:
        super().__init__()
        self.temps: list[Buffer] = []
        # Reads of variables after their last assignment: aliases.
        self.finals: dict[Scalar, Variable] = {}
        self._version: dict[Buffer | Variable, int] = {}
        self._frozen: dict[Buffer, Scope] = {}

    # -- memory --------------------------------------------------------------------------------

    def temp(self, shape: Sequence[int], dtype: Any, hint: str = "temp") -> Buffer:
        """A new buffer in the workspace."""
        buffer = Buffer(hint, np.dtype(dtype), tuple(shape), "temp")
        self.temps.append(buffer)
        return buffer

    def freeze(self, buffer: Buffer) -> None:
        """Promise that the buffer is not written again before the present scope closes."""
        self._frozen[buffer] = self.scopes[-1]

    def is_frozen(self, buffer: Buffer) -> bool:
        """Whether loads from a buffer may be moved out of all loops that are to come."""
        return buffer.role in ("input", "constant") or buffer in self._frozen

    def _buffer_depth(self, buffer: Buffer) -> int:
        """The outermost depth to which a load from the buffer may be hoisted."""
        if buffer.role in ("input", "constant"):
            return 0
        scope = self._frozen.get(buffer)
        if scope is not None and scope.depth < len(self.scopes) and (
                self.scopes[scope.depth] is scope):
            return scope.depth
        return len(self.scopes) - 1

    def place(self, buffer: Buffer, index: Any) -> Index:
        """A legal index of a buffer: linear if its components come from one linear index."""
        if len(index) != len(buffer.shape):
            return (self.actual(self.index(*index)),)
        operands = self.within(index, buffer.shape)
        if any(isinstance(i, Component) for i in operands):
            return (self.actual(self.ravel(operands, buffer.shape)),)
        return operands

    def load(self, buffer: Buffer, index: Any) -> Scalar:
        """buffer[index]; the index must lie inside."""
        at = self.place(buffer, index)
        home = self._buffer_depth(buffer)
        mutable = home == len(self.scopes) - 1 and buffer.role not in ("input", "constant")
        key = ("load", buffer, at, self._version.get(buffer, 0),
               self.scopes[self.scopes[-1].loop_depth] if mutable else None)
        cached = self.lookup(key)
        if cached is not None:
            return cached
        floor = max(home, self.scopes[-1].load_floor)
        depth = max([floor, *map(self._depth.__getitem__, at)])
        target = self._define(buffer.dtype, depth)
        self._append(depth, Load(target, buffer, at), key, target)
        return target

    def store(self, buffer: Buffer, index: Any, value: Any) -> None:
        """buffer[index] = value."""
        x = self.operand(value, buffer.dtype)
        self.emit(Store(buffer, self.place(buffer, index), self.actual(x)))
        self.invalidate(buffer)

    def atomic(self, op: str, buffer: Buffer, index: Any, value: Any) -> None:
        """buffer[index] = op(buffer[index], value), on a GPU, whatever other iterations do there.
        """
        x = self.actual(self.operand(value, buffer.dtype))
        self.emit(Atomic(Scalar("old", buffer.dtype), op, buffer, self.place(buffer, index), x))
        self.invalidate(buffer)

    def store_all(self, buffers: Sequence[Buffer], index: Any, values: Sequence[Any]) -> None:
        """Store a value at the same index of each buffer."""
        for buffer, value in zip(buffers, values, strict=True):
            self.store(buffer, index, value)

    def invalidate(self, buffer: Buffer | Variable) -> None:
        """Invalidate what was loaded from a buffer or read from a variable that has changed."""
        self._version[buffer] = self._version.get(buffer, 0) + 1
        self._frozen.pop(buffer, None)  # type: ignore[arg-type]

    def emit(self, statement: Statement) -> None:
        """Append a statement to the innermost open body."""
        self.scopes[-1].statements.append(statement)

    def call(self, external: str, *args: Any) -> None:
        """A library external on buffers, addresses in them, and scalars."""
        def argument(arg: Any) -> Any:
            if isinstance(arg, Address):
                return Address(arg.buffer, self.place(arg.buffer, arg.index))
            return arg if isinstance(arg, Buffer) else self.actual(self.index(arg))
        call = Call(external, tuple(map(argument, args)))
        self.emit(call)
        for buffer in accessed(call):
            if buffer.role in ("output", "temp"):
                self.invalidate(buffer)

    def check(self, ok: Operand, code: int) -> None:
        """Return `code` from the kernel unless `ok`."""
        if isinstance(ok, Constant) and ok.value:
            return
        self.emit(Check(ok, code))
        self.scopes[-1].load_floor = len(self.scopes) - 1

    # -- variables -----------------------------------------------------------------------------

    def variable(self, init: Any, dtype: Any = None) -> Variable:
        """A mutable scalar with an initial value."""
        value = self.operand(init, dtype)
        variable = Variable("acc", value.dtype)
        self.emit(Declare(variable, self.actual(value)))
        return variable

    def read(self, variable: Variable) -> Scalar:
        """The variable's value now."""
        def emitted() -> Scalar:
            value = self._define(variable.dtype, len(self.scopes) - 1)
            self.emit(Read(value, variable))
            return value
        return self.available(("read", variable, self._version.get(variable, 0),
                               self.scopes[self.scopes[-1].loop_depth]), emitted)

    def assign(self, variable: Variable, value: Any) -> None:
        """variable = value."""
        self.emit(Assign(variable, self.actual(self.operand(value, variable.dtype))))
        self.invalidate(variable)

    # -- control -------------------------------------------------------------------------------

    @contextmanager
    def _scope(self, *, loop: bool = False, runs: bool = False) -> Iterator[Scope]:
        """Open the body of a loop or a branch."""
        outer, depth = self.scopes[-1], len(self.scopes)
        scope = Scope(depth, outer.let_floor if loop else depth,
                      outer.load_floor if runs else depth, depth if loop else outer.loop_depth)
        self.scopes.append(scope)
        try:
            yield scope
        finally:
            self.scopes.pop()

    @contextmanager
    def loop(self, stop: Any, start: Any = 0, vectorize: str = "") -> Iterator[Any]:
        """for index in range(start, stop). A loop of one iteration becomes straight code.

        A "parallel" loop that needs scratch space becomes "apart": its iterations would share that
        space.
        """
        first, last = self.index(start), self.index(stop)
        for bound in (first, last):
            if getattr(bound, "dtype", INT64) != INT64:
                raise TypeError(f"a loop counts in int64, and not to a number of {bound.dtype}: "
                                "convert it, b.convert(n, np.int64)")
        trip_count = (int(last.value) - int(first.value)
                      if isinstance(first, Constant) and isinstance(last, Constant) else None)
        if trip_count == 1:
            yield first
            return
        first, last = self.actual(first), self.actual(last)
        temps = len(self.temps)
        with self._scope(loop=True, runs=trip_count is not None and trip_count > 0) as scope:
            scope.trip_count = trip_count
            index = self._define(INT64, scope.depth, "i")
            yield index
        if vectorize == "parallel" and len(self.temps) > temps:
            vectorize = "apart"
        if trip_count is None or trip_count > 0:
            self.emit(For(index, first, last, tuple(scope.statements), "\n".join(scope.notes),
                          vectorize))

    def note(self, line: str) -> None:
        """Add a comment to the innermost open loop, unless an enclosing loop has it."""
        if line and not any(line in scope.notes for scope in self.scopes):
            self.scopes[self.scopes[-1].loop_depth].notes.append(line)

    @contextmanager
    def when(self, condition: Any) -> Iterator[None]:
        """Run the body only where the condition holds; for a constant one as it is, or not at all.
        """
        known = bool(condition.value) if isinstance(condition, Constant) else condition
        if known is True:
            yield
            return
        with self._scope() as scope:
            yield
        if known is not False:
            self.emit(If(condition, tuple(scope.statements)))

    def while_loop(self, condition: Callable[[], Operand], body: Callable[[], None]) -> None:
        """Run `body` as long as `condition` is true."""
        with self._scope(loop=True) as first:
            test = self.actual(condition())
        with self._scope(loop=True) as second:
            second.table = first.table  # the body sees what the condition computed
            body()
        self.emit(While(tuple(first.statements), test, tuple(second.statements)))

    def choose(self, condition: Operand, then: Callable[[], Operand],
               orelse: Callable[[], Operand]) -> Operand:
        """then() or orelse(): only the one that the condition selects is evaluated."""
        if isinstance(condition, Constant):
            return then() if condition.value else orelse()
        sides = []
        for side in (then, orelse):
            with self._scope() as scope:
                x = self.actual(side())
            sides.append((scope.statements, x))
        if not any(statements or self._depth[x] >= len(self.scopes) for statements, x in sides):
            return self.select(condition, *(x for _, x in sides))
        result = self.variable(0, x.dtype)
        bodies = [(*statements, Assign(result, x)) for statements, x in sides]
        self.emit(If(condition, *bodies))
        self.invalidate(result)
        return self.read(result)

    # -- reductions ----------------------------------------------------------------------------

    def accumulate(self, op: str, extents: Sequence[int], f: Callable[..., Operand],
                   in_order: bool = False) -> Operand:
        """f(k…) op f(k…) op … over all k below `extents`: in any association, or `in_order`.

        `op` is one of add, mul, min, max, and, or, xor. The result has the dtype of `f`.
        """
        if not extents:
            return f()
        n, *rest = map(int, extents)
        [total] = self.reduce([op], n, lambda k, _: [self.accumulate(
            op, rest, functools.partial(f, k))], math.prod(rest), in_order=in_order)
        return total

    def reduce(self, ops: Sequence[str], n: int, terms_at: Callable[..., Sequence[Operand]],
               inner_terms: int = 1, width: int = 1, block: int = BLOCK, in_order: bool = False
               ) -> list:
        """Reduce the terms of all iterations k below n, with one operation for each term.

        `inner_terms`: how many terms an iteration reduces itself. With a `width` the results are
        rows, whose element j has the terms terms_at(k, j). Blocks are reduced in any order, their
        partial results in a fixed one. `in_order`: on a CPU one term after the other.
        """
        if in_order and not self.on_gpu:
            return self._reduce_serially(ops, self.index(0), n, terms_at, width, in_order)
        size = (self._terms_on_gpu if self.on_gpu else self._terms)(
            n, inner_terms, width, block, "add" in ops)
        if n <= size and not (self.on_gpu and width > 1):
            return self._reduce_serially(ops, self.index(0), n, terms_at, width)
        shape = (-(-n // size), width)[:1 + (width > 1)]
        partials: list[Buffer] = []

        def reduce_block(i: Operand, first: Operand, count: int) -> None:
            with self._totals(ops, first, count, terms_at, width) as (j, totals):
                if not partials:  # now the dtypes are known
                    partials.extend(Buffer("partial", x.dtype, shape, "temp") for x in totals)
                for partial, x in zip(partials, totals, strict=True):
                    self.store(partial, (i, j)[:len(shape)], self.at(x, j))

        self.in_blocks(n, size, reduce_block)
        self.temps += partials
        for partial in partials:
            self.freeze(partial)
        if n <= size:
            return partials
        return self.reduce(
            ops, shape[0], lambda *at: [self.load(x, at[:len(shape)]) for x in partials],
            width=width, block=CHAIN if "add" in ops else BLOCK)

    def _terms(self, n: int, inner_terms: int, width: int, block: int, adds: bool) -> int:
        """The number of iterations of n that a block reduces."""
        most = ROWS * CHAIN if width > 1 else max(block // max(inner_terms, 1), 1)
        if adds and inner_terms > MIDDLING_ROW:
            most = min(most, CHAIN)
        size = block_size(n, most)
        if size < n and 1 < inner_terms <= MIDDLING_ROW:
            size = max(size // ROWS_IN_LANES, 1) * ROWS_IN_LANES
        return size

    def _terms_on_gpu(self, n: int, inner_terms: int, width: int, *_: Any) -> int:
        """The same on a GPU, where a thread block reduces a row, or a thread a part of a column."""
        if width == 1 and n * inner_terms <= BLOCK_TERMS:
            return n
        max_terms, min_parts, min_terms = (BLOCK_TERMS, MIN_BLOCKS, MIN_BLOCKS) if width == 1 else (
            THREAD_TERMS, MIN_THREADS // width, THREAD_TERMS // 4)
        terms = min(max(n * inner_terms // min_parts, min_terms), max_terms)
        return block_size(n, max(terms // inner_terms, 1))

    @contextmanager
    def _totals(self, ops: Sequence[str], first: Operand, n: int, terms_at: Callable, width: int
                ) -> Iterator[tuple[Operand, list]]:
        """A loop over a row, with the totals of n iterations; on a GPU each column has its own."""
        if self.on_gpu:
            with self.loop(width, vectorize="parallel") as j:
                yield j, self._reduce_serially(ops, first, n, lambda k, _: terms_at(k, j), 1)
            return
        totals = self._reduce_serially(ops, first, n, terms_at, width)
        with self.loop(width, vectorize="parallel") as j:
            yield j, totals

    def strip(self, k: Any, n: int, size: int) -> tuple[Operand, Operand]:
        """The start and the length of the k-th strip of n indices; the last may be shorter."""
        first = self.mul(k, size)
        return first, self.min(self.sub(n, first), size) if n % size else self.index(size)

    def in_blocks(self, n: int, size: int, emit: Callable[[Operand, Operand, int], None]) -> None:
        """Call `emit(i, first, count)` for each block of n iterations; the last may be shorter."""
        with self.loop(n // size, vectorize="apart") as i:
            emit(i, self.mul(i, size), size)
        if n % size:
            emit(self.index(n // size), self.index(n - n % size), n % size)

    def at(self, x: Any, j: Any) -> Operand:
        """The j-th element of a row buffer, or the value of a variable or scalar."""
        if isinstance(x, Buffer):
            return self.load(x, (0, j)[-len(x.shape):])
        return self.read(x) if isinstance(x, Variable) else x

    def _reduce_serially(self, ops: Sequence[str], first: Operand, n: int, terms_at: Callable,
                         width: int, in_order: bool = False) -> list:
        """Reduce n iterations from `first` in one loop. Accumulators are initialised once their
        dtypes are known.
        """
        if n == width == 1:
            return [self.actual(x) for x in terms_at(first, self.index(0))]
        is_unrolled = width > LANES or (width > 1 and not CHEAP.isdisjoint(ops))
        step = ROWS if is_unrolled and n >= 2 * ROWS else 1
        outer = self.scopes[-1]
        start = len(outer.statements)
        totals: list[Any] = []

        def reduce_block(k: Operand, count: int) -> None:
            with self.loop(width, vectorize="parallel") as j:
                rows = [terms_at(self.add(k, u), j) for u in range(count)]
                for i, (op, *terms) in enumerate(zip(ops, *rows, strict=True)):
                    if not in_order:
                        terms = [reduce_pairwise(getattr(self, op), terms)]
                    x = self.actual(terms[0])
                    if i == len(totals):
                        totals.append(Buffer("sums", x.dtype, (width,), "temp")
                                      if width > 1 else Variable("acc", x.dtype))
                    put(totals[i], j, functools.reduce(getattr(self, op), [
                        self.at(totals[i], j), x, *terms[1:]]))

        def put(total: Any, j: Operand, x: Operand, statement: Any = Assign) -> None:
            if width > 1:
                self.store(total, (j,), x)
            else:
                self.emit(statement(total, x))
                self.invalidate(total)

        with self.loop(n // step, vectorize="" if width > 1 or in_order else "reduce") as k:
            reduce_block(self.add(self.mul(k, step), first), step)
        if n % step:
            reduce_block(self.add(first, n - n % step), n % step)
        reduction, outer.statements[start:] = outer.statements[start:], []
        with self.loop(width, vectorize="parallel") as j:
            for op, total in zip(ops, totals, strict=True):
                put(total, j, self.starting_value(op, total.dtype), Declare)
        outer.statements += reduction
        if width > 1:
            self.temps += totals
            return totals
        finals = [self.read(variable) for variable in totals]
        self.finals |= zip(finals, totals, strict=True)
        return finals

    def starting_value(self, op: str, dtype: np.dtype) -> Operand:
        """The identity element of an operation."""
        return self.const(identity_element(op, dtype), dtype)
