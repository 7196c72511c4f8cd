"""Runs a loop tree with a shadow: for every element of memory, which value of the program it holds.

A load that finds another value than the planner believed, or none, is an error with its equation
and place; so is an index outside, a loop whose turns depend on each other though it says they do
not, and a result that was never written. Numbers are computed only where they decide something:
an index, a branch, a check, what a library is called with.

    check(f, x)
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple
from unittest import mock

import numpy as np

import minijax
from minijax.compiler import host, schedule
from minijax.compiler.arithmetic import Component
from minijax.compiler.loops import (Address, Assign, Buffer, Call, Check, Constant, Declare, For,
                                    If, Index, Kernel, Let, Load, Operand, Read, Scalar, Store,
                                    While, accessed, walk)
from minijax.compiler.lowered import Lowered
from minijax.compiler.operands import ProgramBuilder, Stored
from minijax.compiler.scalars import INT64, OPS
from tests import running_text
from tests.checker import each_nest_by_itself

POISON = (0xA5, 0x5A)  # what memory holds that nobody has written, in two runs of a library


class Found(AssertionError):
    """Memory does not hold what the planner believed."""


def check(f: Any, *args: Any, seed: int = 0, loads: int | None = None) -> int | None:
    """Run what `jit` makes of a function of trees of arrays; returns the kernel's status."""
    closed = minijax.make_jaxpr(f)(*args)
    leaves = [np.asarray(x) for x in minijax.tree.leaves(args)]
    return run(kernel_of(Lowered(closed, "f")), leaves, seed, loads)


@contextmanager
def watching(most: int = 2_000) -> Iterator[None]:
    """Meanwhile the first call of each kernel of at most so many elements runs in here too."""
    honest = Lowered.compile

    def compile(self: Lowered) -> Any:
        call = honest(self)
        calls_host = any(isinstance(each, Call) and each.external == host.CALL
                         for each in walk(self.kernel.body))
        if calls_host or sum(x.size for x in self.kernel.buffers) > most:
            return call
        marked = [kernel_of(self)]

        def watched(*inputs: np.ndarray) -> list[np.ndarray]:
            while marked:
                run(marked.pop(), [np.array(x) for x in inputs], loads=200_000)
            return call(*inputs)

        return watched

    Lowered.compile = compile  # type: ignore[method-assign]
    try:
        yield
    finally:
        Lowered.compile = honest  # type: ignore[method-assign]


def kernel_of(program: Lowered) -> Kernel:
    """The loops of a program, with what the planner believes written into them."""
    with each_nest_by_itself(), ExitStack() as stack:
        for owner, name_of_it, around in MARKING:
            stack.enter_context(mock.patch.object(
                owner, name_of_it, around(getattr(owner, name_of_it))))
        return schedule.lower_to_kernel(program.jaxpr, program.name)


# -- what the planner believes ---------------------------------------------------------------------


@dataclass(eq=False)  # the tree keeps facts about its statements with them
class Mark:
    """A statement of this module alone: what the planner believes at this point of a tree.

    `what` is "begins" (a run of `owner`'s program), "reads" (`target` is the element of `value` at
    `index`), "writes" (what lies in buffer `target` at `place` is), "holds" and "expects" (all of
    buffer `target` below `index` is `value`, from here on and until here). `shape` is that of
    `value`.
    """

    what: str
    owner: Any
    value: Any = None
    target: Any = None
    index: tuple[Operand, ...] = ()
    shape: tuple[int, ...] = ()
    place: Index = ()
    bodies_at: ClassVar[tuple[str, ...]] = ()
    parts_at: ClassVar[tuple[str, ...]] = ()  # no pass is to see what it speaks of


class Held(NamedTuple):
    """What lies in memory below the first `outer` indices; a carry is its own owner."""

    owner: Any
    value: Any
    outer: int = 0

    def mark(self, what: str, at: Stored, target: Any, index: Sequence[Any]) -> None:
        """Say it of an element, or of the part of a buffer below an index."""
        shape = at.buffer.shape[:len(at.buffer.shape) - len(at.suffix)]
        whole = at.b.within((*index, *shape[len(index):]), shape)[:len(index)]
        skip = self.outer if what == "reads" else 0
        mark(at.b, what, self.owner, self.value, target, whole[skip:], shape[self.outer:])


def mark(b: Any, *facts: Any) -> None:
    b.emit(Mark(*facts))


def held_by(x: Any) -> Held | None:
    return getattr(x, "held", None)


def marking_a_run(honest: Any) -> Any:
    def run(self: schedule.Lowering) -> Any:
        mark(self.b, "begins", self)
        results = honest(self)
        for place in self.into:
            if held := held_by(place):  # a carry: it has a new value
                held.mark("holds", place, place.buffer, ())  # type: ignore[arg-type, union-attr]
        return results
    return run


def marking_loads(honest: Any) -> Any:
    def load(self: schedule.Lowering, v: Any, index: tuple) -> Operand:
        place = self.storage[v][0]
        held = vars(place).pop("held", None)  # the new value of a carry, not the old
        x = honest(self, v, index)
        if held is not None:
            place.held = held
        mark(self.b, "reads", self, v, x, self.b.within(index, v.aval.shape), v.aval.shape)
        return x
    return load


def marking_a_leaf(honest: Any) -> Any:
    def leaf(self: schedule.Lowering, tasks: Sequence[Any], index: tuple, *args: Any, **kwargs: Any
             ) -> Any:
        terms = honest(self, tasks, index, *args, **kwargs)
        for task in (task for task in tasks if task not in terms):
            element = self.b.whole(index, task.shape)
            inside = self.b.within(element, task.shape)
            for v in task.outvars:
                for place in self.storage.get(v, []):
                    at = self.b.place(place.buffer, (
                        *place.prefix, *self.at(v, element), *place.suffix))
                    mark(self.b, "writes", self, v, place.buffer, inside, task.shape, at)
        return terms
    return leaf


def marking_a_rule(honest: Any) -> Any:
    def emit_opaque(self: schedule.Lowering, task: Any) -> None:
        rule = task.rule

        @functools.wraps(rule)
        def marked(b: Any, outputs: Sequence, given: Sequence, **params: Any) -> None:
            for x in map(self.in_memory, task.eqn.invars):
                if (held := held_by(x)) and not x.suffix:  # type: ignore[attr-defined]
                    held.mark("expects", x, x.buffer, x.prefix)  # type: ignore[arg-type, attr-defined]
            rule(b, outputs, given, **params)
            for v, out in zip(task.outvars, outputs, strict=True):
                whole = out.whole if isinstance(out, Stored) else out
                if whole is not None:
                    mark(b, "holds", self, v, whole, (), whole.shape)

        task.rule = marked
        honest(self, task)
        task.rule = rule
        for v in task.outvars:
            self.env[v].held = Held(self, v)  # type: ignore[attr-defined]
    return emit_opaque


def marking_what_is_in_memory(honest: Any) -> Any:
    def in_memory(self: schedule.Lowering, atom: Any) -> Any:
        x = honest(self, atom)
        if not isinstance(x, Stored) or x is self.read(atom):  # what others have stored
            return x
        x = Stored(x.b, x.buffer, x.prefix, x.suffix)
        x.held = Held(self, atom, len(x.prefix))  # type: ignore[attr-defined]
        return x
    return in_memory


def marking_carries(honest: Any) -> Any:
    def cell(self: Any, x: Any, buffer: Buffer) -> Any:
        found = honest(self, x, buffer)
        if isinstance(found, Stored):
            found.held = Held(found, found)  # type: ignore[attr-defined]
            found.held.mark("holds", found, buffer, ())  # type: ignore[attr-defined]
        return found
    return cell


def marking_elements(honest: Any) -> Any:
    def element(self: Stored, index: Sequence[Any] = ()) -> Operand:
        x = honest(self, index)
        if held := held_by(self):
            held.mark("reads", self, x, (*self.prefix, *index))
        return x
    return element


def marking_rows(honest: Any) -> Any:
    def row(self: Stored, i: Any) -> Stored:
        found = honest(self, i)
        if held := held_by(self):
            found.held = held
        return found
    return row


MARKING = [
    (schedule.Lowering, "run", marking_a_run), (schedule.Lowering, "load", marking_loads),
    (schedule.Lowering, "leaf", marking_a_leaf),
    (schedule.Lowering, "_emit_opaque", marking_a_rule),
    (schedule.Lowering, "in_memory", marking_what_is_in_memory),
    (ProgramBuilder, "cell", marking_carries), (Stored, "__call__", marking_elements),
    (Stored, "row", marking_rows)]


# -- the machine -----------------------------------------------------------------------------------


class Enough(Exception):
    """So many loads have been looked at as were asked for."""


def run(kernel: Kernel, inputs: Sequence[np.ndarray], seed: int = 0, loads: int | None = None
        ) -> int | None:
    """Run a marked kernel, as far as so many loads; returns its status, or None.

    Raises:
      Found: at the first element that is not what it should be.
    """
    writer = _Writer(kernel)
    machine = _Machine(kernel, seed, loads)
    for buffer, x in zip(kernel.inputs, inputs, strict=True):
        machine.fill(buffer, running_text.laid_out(np.asarray(x), buffer))
    for buffer in kernel.constants:
        machine.fill(buffer, buffer.value)
    namespace = writer.names | {"m": machine, "np": np, "Found": Found}
    exec(compile(writer.text, "<sanitiser>", "exec"), namespace)
    with np.errstate(all="ignore"):
        try:
            status = namespace["run"]()
        except Enough:
            return None
    if not status:
        for buffer in kernel.outputs:
            machine.expect_written(buffer)
    return status


class Memory:
    """One buffer: its numbers, and for each the name of what it holds (None: nothing)."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer, self.size = buffer, buffer.size
        self.numbers = np.frombuffer(bytearray([POISON[0]]) * buffer.nbytes, buffer.dtype).copy()
        self.held: list[Any] = [None] * buffer.size
        self.turns: list[tuple] = [()] * buffer.size  # in which turns of which loops it was written
        self.stores = [0] * buffer.size
        self.called: list[Any] = [None] * buffer.size  # its last name, also when it is lost
        self.overlaps: list[tuple[Memory, int]] = []  # others in the same bytes, and how far off

    def forget(self, start: int, stop: int) -> None:
        """Bytes that somebody else has written."""
        size = self.buffer.dtype.itemsize
        for k in range(max(start // size, 0), min(-(-stop // size), self.size)):
            self.held[k], self.turns[k] = None, ()

    def forget_all(self) -> None:
        """A new copy of it, in which nothing stands."""
        self.held[:], self.turns[:] = [None] * self.size, [()] * self.size


class _Machine:
    """The memory of one run, and what the marks ask of it."""

    def __init__(self, kernel: Kernel, seed: int, loads: int | None) -> None:
        self.left = loads or 0  # never reaches 0 from there, if not asked for
        self.memory = {buffer: Memory(buffer) for buffer in kernel.buffers}
        self.instances: Counter[Any] = Counter()
        self.draw = random.Random(seed)
        self.loops = 0
        self.open: dict[int, int] = {}  # the loops around whose turns are independent → their turns
        for x in kernel.temps:
            for y in kernel.temps:
                apart = kernel.offsets[x] - kernel.offsets[y]
                if x is not y and -x.nbytes < apart < y.nbytes:
                    self.memory[x].overlaps.append((self.memory[y], apart))

    def fill(self, buffer: Buffer, value: np.ndarray) -> None:
        memory = self.memory[buffer]
        memory.numbers[:] = np.ravel(value)
        memory.held[:] = [buffer] * memory.size

    # -- what statements do --------------------------------------------------------------------

    def turns(self, start: int, stop: int, shuffled: bool, private: tuple) -> Iterator[int]:
        """The turns of a loop: independent ones in any order, each with its own scratch space."""
        order = list(range(start, stop))
        if not shuffled:
            yield from order
            return
        self.draw.shuffle(order)
        self.loops += 1
        loop = self.loops
        for turn in order:
            for memory in private:
                memory.forget_all()
            self.open[loop] = turn
            yield turn
        self.open.pop(loop, None)

    def same_turn(self, memory: Memory, k: int) -> None:
        for loop, turn in memory.turns[k]:
            if self.open.get(loop, turn) != turn:
                raise Found(f"turn {self.open[loop]} of a loop whose turns are independent meets "
                            f"{memory.buffer.name} at {k}, written by turn {turn}")

    @staticmethod
    def at(memory: Memory, index: tuple[int, ...]) -> int:
        shape, position = memory.buffer.shape, 0
        for i, n in zip(index, shape, strict=True):
            if not 0 <= i < n:
                raise Found(f"index {tuple(map(int, index))} lies outside of {memory.buffer.name}"
                            f"{list(shape)}")
            position = position * n + int(i)
        return position

    @staticmethod
    def flat(memory: Memory, position: int) -> int:
        if not 0 <= position < memory.size:
            raise Found(f"position {position} lies outside of {memory.buffer.name}"
                        f"{list(memory.buffer.shape)}")
        return int(position)

    def load(self, memory: Memory, k: int) -> tuple:
        """What is known of what is there; the number is read beside."""
        self.left -= 1
        if self.left == 0:
            raise Enough
        held = memory.held[k]
        if held is None:
            raise Found(f"{memory.buffer.name} is read at {k}, where nothing was written, or "
                        "something else has been since")
        self.same_turn(memory, k)
        return held, memory, k, memory.stores[k]

    def store(self, memory: Memory, k: int) -> None:
        self.same_turn(memory, k)
        memory.held[k], memory.turns[k] = memory.buffer, tuple(self.open.items())
        memory.stores[k], memory.called[k] = memory.stores[k] + 1, None
        size = memory.buffer.dtype.itemsize
        for other, apart in memory.overlaps:
            other.forget(k * size + apart, (k + 1) * size + apart)

    def call(self, meaning: Any, args: list) -> None:
        """A library: it runs twice, and what it does may not depend on what nobody has written."""
        memories = {arg[0] for arg in args if isinstance(arg, tuple)}
        before = {memory: memory.numbers.copy() for memory in memories}
        after = []
        for poison in POISON:
            for memory in memories:
                unwritten = np.array([held is None for held in memory.held], bool)
                memory.numbers[:] = before[memory]
                memory.numbers.view(np.uint8).reshape(
                    memory.size, memory.numbers.itemsize)[unwritten] = poison
            start = {memory: memory.numbers.copy() for memory in memories}
            meaning(*[arg[0].numbers[arg[1]:] if isinstance(arg, tuple) else arg for arg in args])
            after.append((start, {memory: memory.numbers.copy() for memory in memories}))
        (start, one), (other_start, other) = after
        for memory in memories:
            words = (-1, memory.buffer.dtype.itemsize)
            same = (one[memory].view(np.uint8).reshape(words)
                    == other[memory].view(np.uint8).reshape(words)).all(1)
            touched = [(x[memory].view(np.uint8).reshape(words)
                        != y[memory].view(np.uint8).reshape(words)).any(1)
                       for x, y in ((start, one), (other_start, other))]
            for k in np.flatnonzero((touched[0] | touched[1]) & ~same):
                raise Found(f"a library call makes {memory.buffer.name} at {k} of memory that "
                            "nobody has written")
            for k in np.flatnonzero(touched[0] | touched[1]):
                self.store(memory, int(k))

    # -- what marks ask ------------------------------------------------------------------------

    def begins(self, owner: Any) -> None:
        self.instances[owner] += 1

    def name(self, mark: Mark, position: int) -> tuple:
        return (mark.owner, mark.value, self.instances[mark.owner], position)

    def reads(self, mark: Mark, loaded: tuple, position: int) -> None:
        """It was that when it was loaded, or what was loaded has been given that name since."""
        held, memory, k, stores = loaded
        wanted = self.name(mark, position)
        if held != wanted and (memory.stores[k], memory.called[k]) != (stores, wanted):
            raise Found(f"wanted {_described(wanted)}, found {_described(held)}")

    def writes(self, mark: Mark, memory: Memory, k: int, position: int) -> None:
        memory.held[k] = memory.called[k] = self.name(mark, position)

    def part(self, mark: Mark, index: tuple[int, ...]) -> Iterator[tuple[Memory, int, int]]:
        """The elements below an index: where they are, and their position in the value."""
        if mark.target not in self.memory:  # it has no elements, or nobody uses it
            return
        memory, rest = self.memory[mark.target], mark.target.shape[len(index):]
        size = int(np.prod(rest, dtype=np.int64))
        outer = len(mark.target.shape) - len(mark.shape)  # indices before those of the value
        first = self.at(memory, (*index, *[0] * len(rest))) if size else 0
        start = self.at(memory, (*index[:outer], *[0] * len(mark.shape))) if size else 0
        for k in range(first, first + size):
            yield memory, k, k - start

    def holds(self, mark: Mark, index: tuple[int, ...]) -> None:
        if mark.owner is mark.value:  # a carry: it has a new value
            self.begins(mark.owner)
        for memory, k, position in self.part(mark, index):
            memory.called[k] = self.name(mark, position)
            if memory.held[k] is not None:  # what nobody reads may have lost its place already
                memory.held[k] = memory.called[k]

    def expects(self, mark: Mark, index: tuple[int, ...]) -> None:
        for memory, k, position in self.part(mark, index):
            if memory.held[k] is not None:
                self.reads(mark, (memory.held[k], memory, k, memory.stores[k]), position)

    def expect_written(self, buffer: Buffer) -> None:
        for k, held in enumerate(self.memory[buffer].held):
            if held is None:
                raise Found(f"{buffer.name} is not written at {k}")


def _described(held: Any) -> str:
    if held is None:
        return "nothing"
    if isinstance(held, Buffer):
        return f"what a rule wrote into {held.name}"
    owner, value, instance, position = held
    if owner is value:
        return f"element {position} of a carry of turn {instance}"
    eqn = next(eqn for eqn in owner.jaxpr.eqns if value in eqn.outvars)
    what = f"'{eqn.primitive.name}' ({value.aval.str_short(True)}) {schedule.note_of(eqn)}"
    return f"element {position} of {what} (run {instance})"


class _Needed:
    """The scalars, variables and buffers whose numbers decide something; found backwards."""

    def __init__(self, kernel: Kernel) -> None:
        self.known: set[Any] = set()
        self.buffers: set[Buffer] = set()
        self.statements = list(walk(kernel.body))
        size = -1
        while size != len(self.known) + len(self.buffers):
            size = len(self.known) + len(self.buffers)
            for statement in reversed(self.statements):
                self.visit(statement)

    def add(self, *operands: Any) -> None:
        for x in operands:
            if isinstance(x, Component):
                self.add(x.position)
            elif isinstance(x, Scalar):
                self.known.add(x)

    def index(self, index: Any) -> None:
        self.add(*index)

    def visit(self, statement: Any) -> None:
        match statement:
            case Let(target, _, args) if target in self.known:
                self.add(*args)
            case Load(target, buffer, index):
                self.index(index)
                if target in self.known:
                    self.buffers.add(buffer)
            case Store(buffer, index, value):
                self.index(index)
                if buffer in self.buffers:
                    self.add(value)
            case (Declare(variable, value) | Assign(variable, value)) if variable in self.known:
                self.add(value)
            case Read(target, variable) if target in self.known:
                self.known.add(variable)
            case For(_, start, stop):
                self.add(start, stop)
            case While(_, test, _) | If(test):
                self.add(test)
            case Check(ok, _):
                self.add(ok)
            case Mark(index=index, place=place):
                self.add(*index, *place)
            case Call(_, args):
                for arg in args:
                    if isinstance(arg, Buffer):
                        self.buffers.add(arg)
                    elif isinstance(arg, Address):
                        self.buffers.add(arg.buffer)
                        self.index(arg.index)
                    else:
                        self.add(arg)


PLAIN = {"add": "({} + {})", "sub": "({} - {})", "mul": "({} * {})", "lt": "({} < {})",
         "le": "({} <= {})", "gt": "({} > {})", "ge": "({} >= {})", "eq": "({} == {})",
         "ne": "({} != {})", "min": "min({}, {})", "max": "max({}, {})"}


class _Writer:
    """A kernel as Python text: statements on `m`, the machine."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.needed = kernel, _Needed(kernel)
        self.uses = Counter(_buffers(kernel.body))
        self.names: dict[str, Any] = {}
        self.known: dict[Any, str] = {}
        self.lines = ["def run():"]
        for buffer in kernel.buffers:
            self.line(1, f"{self.memory(buffer)} = m.memory[{self.constant(buffer)}]")
        self.body(kernel.body, 1)
        self.line(1, "return 0")
        self.text = "\n".join(self.lines)

    def line(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    def constant(self, value: Any) -> str:
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def memory(self, buffer: Buffer) -> str:
        return self.known.setdefault(buffer, f"memory{len(self.known)}")

    def name(self, x: Any) -> str:
        return self.known.setdefault(x, f"x{len(self.known)}")

    def operand(self, x: Any) -> str:
        if isinstance(x, Component):
            whole = f"({self.operand(x.position)} // {x.inner})"
            return whole if x.outer == 1 else f"({whole} % {x.size})"
        if isinstance(x, Constant):
            return str(int(x.value)) if x.dtype == INT64 else self.constant(x.value)
        return self.name(x)

    def place(self, buffer: Buffer, index: Any) -> str:
        if len(index) != len(buffer.shape):
            return f"m.flat({self.memory(buffer)}, {self.operand(*index)})"
        return f"m.at({self.memory(buffer)}, {self.tuple(index)})"

    def tuple(self, operands: Sequence[Any]) -> str:
        return "(" + "".join(f"{self.operand(x)}, " for x in operands) + ")"

    def body(self, statements: Sequence[Any], depth: int) -> None:
        before = len(self.lines)
        for statement in statements:
            self.statement(statement, depth)
        if len(self.lines) == before:
            self.line(depth, "pass")

    def statement(self, statement: Any, depth: int) -> None:
        needed = self.needed
        match statement:
            case Let(target, op, args):
                if target in needed.known:
                    self.line(depth, f"{self.name(target)} = {self.value(target, op, args)}")
            case Load(target, buffer, index):
                name, memory = self.name(target), self.memory(buffer)
                self.line(depth, f"k = {self.place(buffer, index)}")
                self.line(depth, f"held_{name} = m.load({memory}, k)")
                if target in needed.known:
                    number = f"{memory}.numbers[k]"
                    self.line(depth, f"{name} = " + (
                        f"int({number})" if target.dtype == INT64 else number))
            case Store(buffer, index, value):
                memory = self.memory(buffer)
                self.line(depth, f"k = {self.place(buffer, index)}")
                self.line(depth, f"m.store({memory}, k)")
                if buffer in needed.buffers:
                    self.line(depth, f"{memory}.numbers[k] = {self.operand(value)}")
            case Declare(variable, value) | Assign(variable, value):
                if variable in needed.known:
                    self.line(depth, f"{self.name(variable)} = {self.operand(value)}")
            case Read(target, variable):
                if target in needed.known:
                    self.line(depth, f"{self.name(target)} = {self.name(variable)}")
            case For(index, start, stop, inner, _, independent):
                shuffled = independent in ("parallel", "apart")
                private = self.private(inner) if shuffled else []
                self.line(depth, f"for {self.name(index)} in m.turns({self.operand(start)}, "
                                 f"{self.operand(stop)}, {shuffled}, "
                                 f"({''.join(self.memory(x) + ', ' for x in private)})):")
                self.body(inner, depth + 1)
            case While(condition, test, inner):
                self.line(depth, "while True:")
                self.body(condition, depth + 1)
                self.line(depth + 1, f"if not {self.operand(test)}: break")
                self.body(inner, depth + 1)
            case If(test, then, orelse):
                self.line(depth, f"if {self.operand(test)}:")
                self.body(then, depth + 1)
                self.line(depth, "else:")
                self.body(orelse, depth + 1)
            case Call(external, args):
                meaning = self.constant(running_text.meaning(external))
                self.line(depth, f"m.call({meaning}, [{', '.join(map(self.argument, args))}])")
            case Check(ok, code):
                self.line(depth, f"if not {self.operand(ok)}: return {code}")
            case Mark("begins"):
                self.line(depth, f"m.begins({self.constant(statement.owner)})")
            case Mark("holds" | "expects" as what):
                self.line(depth, f"m.{what}({self.constant(statement)}, "
                                 f"{self.tuple(statement.index)})")
            case Mark(what, target=target, index=index, shape=shape):
                position = "0"
                for i, n in zip(index, shape, strict=True):
                    position = f"({position} * {n} + {self.operand(i)})"
                where = (f"held_{self.name(target)}" if what == "reads" else
                         f"{self.memory(target)}, {self.place(target, statement.place)}")
                self.line(depth, f"m.{what}({self.constant(statement)}, {where}, int({position}))")

    def private(self, body: Sequence[Any]) -> list[Buffer]:
        """The scratch space that is used in this loop alone: each turn may have its own."""
        inside = Counter(_buffers(body))
        return [x for x, uses in inside.items() if x.role == "temp" and uses == self.uses[x]]

    def value(self, target: Scalar, op: str, args: Sequence[Any]) -> str:
        given = ", ".join(map(self.operand, args))
        if op in PLAIN and args[0].dtype == INT64:
            return PLAIN[op].format(*map(self.operand, args))
        wide = ", ".join(f"np.int64({self.operand(x)})" if x.dtype == INT64 else self.operand(x)
                         for x in args)
        if op in ("convert", "bitcast"):
            wide += f", {self.constant(target.dtype)}"
        result = f"{self.constant(OPS[op].meaning)}({wide or given})"
        return f"int({result})" if target.dtype == INT64 else result

    def argument(self, arg: Any) -> str:
        if isinstance(arg, Buffer):
            return f"({self.memory(arg)}, 0)"
        if isinstance(arg, Address):
            return f"({self.memory(arg.buffer)}, {self.place(arg.buffer, arg.index)})"
        return self.operand(arg)


def _buffers(body: Sequence[Any]) -> Iterator[Buffer]:
    for statement in walk(body):
        yield from accessed(statement)
