"""The loop tree: a small, typed, frozen program over buffers and scalars.

Builds on scalars.py. schedule.py builds the tree; text.py and llvm.py print it. Chapter 24.
In JAX this role is played by HLO after fusion and by XLA's own loop emitters.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeAlias, TypeVar, cast, dataclass_transform

import numpy as np

from .scalars import BOOL as BOOL, INT64 as INT64, OPS as OPS, NumpyScalars as NumpyScalars


BODIES = ("condition", "then", "orelse", "body")
_KEY_FIELDS = ("dtype", "shape", "role")  # the fields of a named node that other nodes depend on


@dataclass_transform(frozen_default=True, eq_default=False)
class Node:
    """A node of the tree: a record that never changes, compared by identity."""

    __slots__ = ("cached",)  # by functions and arguments: the results of cached_on_node
    cached: dict[Any, Any]
    bodies_at: ClassVar[tuple[str, ...]] = ()  # its fields that are bodies
    parts_at: ClassVar[tuple[str, ...]] = ()  # those where operands, variables or buffers may be

    def __init_subclass__(cls) -> None:
        dataclass(eq=False)(cls)  # frozen for mypy: a check at run time would take longer
        types = {x.name: x.type for x in fields(cls)}  # type: ignore[arg-type]
        cls.bodies_at = tuple(name for name in BODIES if name in types)
        cls.parts_at = tuple(name for name, t in types.items()
                             if name not in BODIES and t not in ("str", "int"))


F = TypeVar("F", bound=Callable[..., Any])


def cached_on_node(f: F) -> F:
    """A function of a node, and of numbers, computed once for each, and kept with the node."""
    @functools.wraps(f)
    def kept(node: Node, *args: Any) -> Any:
        try:
            cached = node.cached
        except AttributeError:
            cached = node.cached = {}
        key = kept, *args
        if key not in cached:
            cached[key] = f(node, *args)
        return cached[key]
    return cast(F, kept)


class Named(Node):
    """A node with a name, for texts."""

    name: str


class Buffer(Named):
    """A C-contiguous array in memory; role is "input", "output", "constant" or "temp".

    On a GPU also "shared", of a block of threads, or "local", of one thread.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    role: str
    value: np.ndarray | None = None

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.size * self.dtype.itemsize


class Scalar(Named):
    """A value defined exactly once: by a Let, a Load, a Read, or as the index of a For."""

    dtype: np.dtype


class Constant(Node):
    """A literal operand; `value` is a NumPy scalar of `dtype`."""

    value: Any
    dtype: np.dtype


class Variable(Named):
    """A mutable scalar: declared, read and assigned."""

    dtype: np.dtype


Operand: TypeAlias = Scalar | Constant


def integer(k: int) -> Constant:
    """A literal int64."""
    return Constant(np.int64(k), INT64)


# A number for each axis of a buffer; or fewer: the first is then a position in several axes.
Index: TypeAlias = tuple[Operand, ...]


class Address(Node):
    """An argument of a Call: the address of the element of `buffer` at `index`."""

    buffer: Buffer
    index: Index


class Statement(Node):
    """A statement of a body."""


class Let(Statement):
    """target = op(*args); `convert` and `bitcast` go to the target's dtype."""

    target: Scalar
    op: str
    args: tuple[Operand, ...]


class Load(Statement):
    """target = buffer[index]; the index must be inside the buffer."""

    target: Scalar
    buffer: Buffer
    index: Index


class Store(Statement):
    """buffer[index] = value; the index must be inside the buffer."""

    buffer: Buffer
    index: Index
    value: Operand


class Declare(Statement):
    """A new variable, visible to the end of the enclosing body."""

    variable: Variable
    value: Operand


class Assign(Statement):
    """variable = value."""

    variable: Variable
    value: Operand


class Read(Statement):
    """target = the variable's value now."""

    target: Scalar
    variable: Variable


class For(Statement):
    """for index in range(start, stop): body. 0 <= start; an empty range runs nothing.

    vectorize: "parallel": iterations are independent of each other; "apart": they are, if each has
    its own copy of the temps that only this loop uses; "reduce": updates `v = v op x` of variables
    declared outside may be done in any association, see `lanes_of_sum`; "running": the same,
    for a scan, where each iteration stores the variable; "chained": a long iteration does so with
    one variable, which is nowhere else, and does all that it can before; or, in one loop, with each
    integer of a buffer; "": nothing is known.
    """

    index: Scalar
    start: Operand
    stop: Operand
    body: tuple[Statement, ...]
    note: str = ""
    vectorize: str = ""

    @property
    def trip_count(self) -> int | None:
        """The trip count; None if it is not known at compile time."""
        if isinstance(self.start, Constant) and isinstance(self.stop, Constant):
            return int(self.stop.value) - int(self.start.value)
        return None


class Duplicate(Statement):
    """An earlier loop or call of the kernel once more, with other operands: its `captures` are in
    place of those that duplicates.py finds in the first.
    """

    first: Statement
    captures: tuple[Buffer | Scalar, ...]

    @property
    def note(self) -> str:
        """The comment on the first."""
        return getattr(self.first, "note", "")


class While(Statement):
    """Run `condition`; while its scalar `test` holds run `body`, which sees those scalars."""

    condition: tuple[Statement, ...]
    test: Operand
    body: tuple[Statement, ...]


class If(Statement):
    """One of two bodies."""

    test: Operand
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()


class Call(Statement):
    """A library external on buffers (their addresses), addresses inside them, and scalars."""

    external: str
    args: tuple[Buffer | Address | Scalar | Constant, ...]


class Check(Statement):
    """When `ok` is false the kernel returns `code` (positive) at once."""

    ok: Operand
    code: int


class Launch(Statement):
    """On a GPU: a body that many blocks of many threads run; `block` and `thread` are their
    numbers.
    """

    block: Scalar
    blocks: int
    thread: Scalar
    threads: int
    body: tuple[Statement, ...]


class Barrier(Statement):
    """Each thread of a block waits for all others, and then sees what they have stored."""


class Shuffle(Statement):
    """target = the value of the thread in the warp whose number differs in the bits `lane_mask`.

    `mask` has the bits of the participating threads, which are all active ones.
    """

    target: Scalar
    value: Operand
    lane_mask: int
    mask: int


class Atomic(Statement):
    """target = buffer[index]; buffer[index] = op(target, value): no other thread comes between.

    `op`: add, min, max, of numbers of 32 or 64 bits; "turn": one more, and 0 after `value`; "read":
    nothing new. If it is `ordered`, other blocks that come later see all that this block stored
    before a barrier.
    """

    target: Scalar
    op: str
    buffer: Buffer
    index: Index
    value: Operand
    ordered: int = 0


class MMA(Statement):
    """sums += x @ y on a GPU's tensor cores: a matrix of 16 x k times one of k x 8, with a part of
    each in every thread of a warp.

    k is 8 for float32, whose numbers have the 11 significant bits of TF32, else 16. Each product is
    exact, the sums are float32. Thread t has of x the rows t // 4 and 8 below, of y the column
    t // 4, of sums the rows of x and the columns t % 4 * 2 and the next. Its terms are those of
    word t % 4 of a row or column, and of the fourth word after it: a word of 32 bits has one
    float32, or two of the others.
    """

    sums: tuple[Variable, ...]
    x: tuple[Operand, ...]
    y: tuple[Operand, ...]


WRITES = Store | Atomic
# The fields of what statements define.
DEFINITIONS = {Declare: "variable", For: "index",
               **dict.fromkeys((Let, Load, Read, Shuffle, Atomic), "target")}


class Kernel(Node):
    """The body of a compiled function: it takes arrays and returns a status.

    Its arguments are inputs, outputs and constants, then one workspace of `workspace_size` bytes
    and a cache line. Each temp lies at `offsets[temp]` from the first cache line of the workspace.
    """

    name: str
    inputs: tuple[Buffer, ...] = ()
    outputs: tuple[Buffer, ...] = ()
    constants: tuple[Buffer, ...] = ()
    temps: tuple[Buffer, ...] = ()
    workspace_size: int = 0
    offsets: Mapping[Buffer, int] = field(default_factory=dict)
    body: tuple[Statement, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """All buffers: inputs, outputs, constants, temps."""
        return self.inputs + self.outputs + self.constants + self.temps


# -- traversal, uses and definitions ---------------------------------------------------------------


def bodies(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The bodies of a statement, in order."""
    return tuple([getattr(statement, name) for name in statement.bodies_at])


def with_bodies(statement: Statement, f: Callable[[Any], Iterable[Statement]]) -> Any:
    """A statement with a function applied to each of its bodies."""
    parts = {name: tuple(f(getattr(statement, name))) for name in statement.bodies_at}
    # Unchanged, it is the same node, with all facts about it.
    return statement if (*parts.values(),) == bodies(statement) else changed(statement, **parts)


def changed(statement: Statement, **parts: Any) -> Any:
    """A statement that a transformation makes of another one, which it is known to come from."""
    return with_origin(replace(statement, **parts), statement)


def with_origin(new: Any, old: Statement) -> Any:
    """A new statement, known to come from an old one."""
    new.cached = {origin: origin(old)}
    return new


def innermost_first(transform: Callable[[For], Iterable[Statement]]
                    ) -> Callable[[Iterable[Statement]], tuple[Statement, ...]]:
    """A transformation of statements, from one of a loop in which the loops are done."""
    @functools.wraps(transform)
    def of_body(body: Iterable[Statement]) -> tuple[Statement, ...]:
        done = (with_bodies(each, of_body) if each.bodies_at else each for each in body)
        return tuple(new for each in done for new in (
            transform(each) if isinstance(each, For) else [each]))
    return of_body


def origin(statement: Statement) -> Statement:
    """The statement that this one was before all transformations."""
    return getattr(statement, "cached", {}).get(origin, statement)


def walk(body: Iterable[Statement]) -> Iterator[Statement]:
    """All statements at any depth, in preorder."""
    for statement in body:
        yield statement
        if type(statement).bodies_at:
            yield from _inside(statement)


@cached_on_node
def _inside(statement: Statement) -> list[Statement]:
    """All statements in the bodies of a statement, in preorder."""
    return [each for body in bodies(statement) for each in walk(body)]


@cached_on_node
def _parts(node: Node) -> list[Any]:
    """The operands, variables and buffers of a node, without those of its bodies."""
    parts: list[Any] = []
    for name in type(node).parts_at:
        value = getattr(node, name)
        for each in value if type(value) is tuple else (value,):
            if isinstance(each, (Named, Constant)):
                parts.append(each)
            elif isinstance(each, Address):
                parts += _parts(each)
    return parts


@cached_on_node
def structure(node: Node) -> tuple[tuple[Any, ...], list[Named]]:
    """The words of a node as one key, equal for nodes that differ in names and notes only, and its
    named nodes, which are numbered in order of their first use.
    """
    key: list[Any] = []
    numbers: dict[Named, int] = {}

    def extend_key(node: Node) -> None:
        key.append(type(node))
        for name in type(node).__match_args__:  # type: ignore[attr-defined]
            value = getattr(node, name) if name != "note" else ""
            for each in value if type(value) is tuple else (value,):
                if isinstance(each, Named):
                    if each not in numbers:
                        numbers[each] = len(numbers)
                        key.extend((type(each), *(getattr(each, k, None) for k in _KEY_FIELDS)))
                    key.append(numbers[each])
                elif isinstance(each, Constant):
                    key.extend((each.dtype, each.value.tobytes()))
                elif isinstance(each, Node):
                    extend_key(each)
                else:
                    key.append(each)
            key.append(")")
    extend_key(node)
    return tuple(key), list(numbers)


def used(statement: Statement) -> tuple[Operand | Variable, ...]:
    """The operands and variables that a statement itself reads, indices included; no buffers."""
    if isinstance(statement, Let):  # which most statements are
        return statement.args
    if isinstance(statement, Load):
        return statement.index
    if isinstance(statement, Store):
        return *statement.index, statement.value
    new = defined(statement)
    return tuple(x for x in _parts(statement) if x is not new and not isinstance(x, Buffer))


def defined(statement: Node) -> Scalar | Variable | None:
    """The scalar or variable that a statement defines."""
    name = DEFINITIONS.get(type(statement))
    return getattr(statement, name) if name else None


def substituted(x: Any, names: Mapping[Any, Operand]) -> Any:
    """A node, or the nodes of a tuple, with some operands replaced."""
    if isinstance(x, tuple):
        return tuple(substituted(each, names) for each in x)
    if isinstance(x, Node) and not isinstance(x, Named | Constant):
        return type(x)(*[substituted(value, names) for value in vars(x).values()])
    return names.get(x, x)


def copied(statements: Sequence[Statement], names: dict[Any, Any]) -> tuple[Statement, ...]:
    """The same statements, with new names for all that they define, which join the others."""
    names.update((x, (Variable if isinstance(x, Variable) else Scalar)(x.name, x.dtype))
                 for x in map(defined, walk(statements)) if x)
    return substituted(tuple(statements), names)


def accessed(statement: Statement) -> tuple[Buffer, ...]:
    """The buffers that a statement itself loads from or stores to; a call may do both."""
    if isinstance(statement, Let):
        return ()
    if isinstance(statement, (Load, Store)):
        return (statement.buffer,)
    return tuple([x for x in _parts(statement) if isinstance(x, Buffer)])


def accesses(statements: Iterable[Statement], kinds: Any = Statement) -> Iterator[Buffer]:
    """The buffers that statements of these kinds themselves access, as often as they do."""
    return (x for each in statements if isinstance(each, kinds) for x in accessed(each))


def private_temps(loop: For, uses: Mapping[Buffer, int]) -> list[Buffer]:
    """The temps of an "apart" loop that nothing else accesses: each iteration may have a copy.

    `uses` counts the accesses in the kernel.
    """
    counts = Counter(accesses(walk((loop,))) if loop.vectorize == "apart" else ())
    return [x for x, count in counts.items() if x.role == "temp" and count == uses[x]]
