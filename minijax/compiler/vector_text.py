"""Loops in vectors: the text of several iterations at once.

Builds on function_text.py; vectorization.py says which loops are printed so. llvm.py prints with it
the elementary functions, too. Chapter 26. In XLA: LLVM's loop vectoriser.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.primitives.smooth_lengths import prime_factors

from .builder import Builder
from .loops import (BOOL, Assign, Buffer, Constant, Declare, If, Index, Let, Load,
                    Operand, Read, Scalar, Store, Variable, integer)
from .function_text import MANGLED, FunctionText, llvm_type, mangled
from .interleaving import Group, is_near
from .steps import Steps
from .vectors import Function

MANY_STEPS = 3  # of sorting interleaved vectors: LLVM would look long for fewer


class VectorText(FunctionText):
    """Prints statements for several lanes, among the lines of a printer of scalars.

    A scalar that is equal in all lanes is printed once. So is an integer that grows by the same
    step from lane to lane, as indices do: its name is that of the first lane.
    """

    def __init__(self, text: Any, lanes: int) -> None:
        vars(self).update(vars(text))  # the lines and the names are the same objects
        self.scalars, self.lanes, self.width, self.active = text, lanes, lanes, lanes
        # Names of vectors: of all that differs between lanes, and of what is needed of the rest.
        self.vectors: dict[Operand | Variable, str] = {}
        self.steps = Steps()
        self.totals: Mapping[Variable, str] = {}  # the vectors of variables that are in memory
        self.groups: Mapping[Load | Store, Group] = {}  # of interleaved accesses, by their members
        self.stored: set[Store] = set()  # of them, those whose turn has been
        self.mask = ""  # which lanes run here, and have taken the branches around; empty: all

    def run_first(self, count: int) -> None:
        """Run only so many lanes, the first ones."""
        self.active = count
        self.mask = f"<{', '.join(f'i1 {int(lane < count)}' for lane in range(self.lanes))}>"

    def emit(self, instruction: str) -> None:
        self.scalars.emit(instruction)  # which may be a subclass's, with locations

    def value(self, x: Any) -> str:
        """The vector of an operand."""
        if isinstance(x, Constant):
            return f"splat ({self.scalars.typed(x)})"
        if x not in self.vectors:
            self.vectors[x] = self.in_all_lanes(x)
        return self.vectors[x]

    def in_all_lanes(self, x: Scalar | Variable) -> str:
        """The name of a vector of a scalar that is printed once."""
        t, one, step = self.type_of(x.dtype), self.scalars.type_of(x.dtype), self.steps[x]
        first = self.computed(
            "%first", f"insertelement {t} poison, {one} {self.scalars.value(x)}, i64 0")
        name = self.computed("%all", f"shufflevector {t} {first}, {t} poison, "
                             f"<{self.lanes} x i32> zeroinitializer")
        places = ", ".join(f"{one} {k * (step or 0)}" for k in range(self.lanes))
        return self.computed("%steps", f"add {t} {name}, <{places}>") if step else name

    def define(self, target: Scalar | Variable, expression: str) -> None:
        self.vectors[target], self.steps[target] = self.computed("%lanes", expression), None

    def alias(self, target: Scalar | Variable, x: Operand | Variable) -> None:
        self.steps[target] = self.steps[x]
        if self.steps[x] is None:
            self.vectors[target] = self.vectors[x]
        else:
            self.vectors.pop(target, None)
            self.scalars.alias(target, x)

    def print_let(self, let: Let) -> None:
        step = self.steps.of(let)
        if step is None:
            return self.print_halves(let) if let.op == "halves" else super().print_let(let)
        self.scalars.print_let(let)
        self.steps[let.target] = step
        self.vectors.pop(let.target, None)

    def print_halves(self, let: Let) -> None:
        """`halves`, in the pattern for which LLVM selects a single instruction."""
        count, t, half = 2 * self.lanes, llvm_type(let.target.dtype), 4 * let.target.dtype.itemsize
        wide = f"<{count} x {t}>"
        x, y = (self.computed("%wide", f"sext <{count} x i{half}> {part} to {wide}") for part in [
            self.computed("%halves", f"bitcast {self.typed(arg)} to <{count} x i{half}>")
            for arg in let.args])
        products = [self.computed("%products", f"mul {wide} {x}, {y}")]
        low, high = (self.shuffled(t, count, products, range(first, count, 2)) for first in (0, 1))
        self.define(let.target, f"add {self.in_lanes(t)} {low}, {high}")

    def function(self, f: Function) -> str:
        """The name of the result of an elementary function of vectors; its rare case is computed
        only if an element needs it.
        """
        b, t = Builder(), self.type_of(f.dtype)
        result, statements = f.with_branch(b, f.parameters), b.scopes[0].statements
        self.totals = {each.variable: self.at_entry(f"alloca {t}") for each in statements
                       if isinstance(each, Declare)}
        for each in statements:
            if isinstance(each, If):
                label, is_any = self.fresh("rare"), f"@llvm.vector.reduce.or.v{self.lanes}i1"
                some = self.computed("%some", f"call i1 {is_any}({self.typed(each.test)})")
                self.emit(f"br i1 {some}, label %{label}, label %{label}.end")
                self.start_block(label)
            self.body([each])
            if isinstance(each, If):
                self.emit(f"br label %{label}.end")
                self.start_block(f"{label}.end")
        return self.value(result)

    # Variables, which no other iteration sees; branches, with masks

    def print_assign(self, assign: Assign | Declare) -> None:
        x, new = assign.variable, assign.value
        if self.mask and isinstance(assign, Assign):
            old, chosen = Scalar("", x.dtype), Scalar("", x.dtype)
            self.print_read(Read(old, x))
            self.define(chosen, f"select {self.in_lanes('i1')} {self.mask}, {self.typed(new)}, "
                                f"{self.typed(old)}")
            new = chosen
        if x in self.totals:
            return self.emit(f"store {self.typed(new)}, ptr {self.totals[x]}")
        self.alias(x, new)

    def print_declare(self, declare: Declare) -> None:
        self.print_assign(declare)

    def print_if(self, branch: If) -> None:
        before, test, t = self.mask, self.value(branch.test), self.in_lanes("i1")
        for side, statements in enumerate((branch.then, branch.orelse)):
            if side:
                test = self.computed("%else", f"xor {t} {test}, splat (i1 true)")
            self.mask = self.computed("%mask", f"and {t} {before}, {test}") if before else test
            self.body(statements)
        self.mask = before

    def print_read(self, read: Read) -> None:
        x = read.variable
        if x in self.totals:
            t = self.type_of(x.dtype)
            return self.define(read.target, f"load {t}, ptr {self.totals[x]}")
        self.alias(read.target, x)

    def of_names(self, op: str, dtype: np.dtype, vectors: Sequence[str]) -> str:
        """The name of the result of an operation on vectors."""
        target, args = Scalar("", dtype), tuple(Scalar("", dtype) for _ in vectors)
        self.vectors |= zip(args, vectors, strict=True)
        self.steps |= dict.fromkeys(args)
        self.print_let(Let(target, op, args))
        return self.vectors[target]

    # Memory

    def address(self, buffer: Buffer, index: Index) -> str:
        return self.scalars.address(buffer, index)

    def in_lane(self, x: Operand, lane: int) -> Operand:
        """An operand as the scalar of one lane."""
        step, result = self.steps[x], Scalar("", x.dtype)
        if step is None:
            self.scalars.define(result, f"extractelement {self.typed(x)}, i64 {lane}")
        elif step and lane:
            self.scalars.print_let(Let(result, "add", (x, integer(lane * step))))
        else:
            return x
        return result

    def print_load(self, load: Load) -> None:
        x, step = load.target, self.steps.at(load.buffer, load.index)
        if step == 0:
            self.scalars.print_load(load)
            self.steps[x] = 0
        elif step == 1:
            super().print_load(load)
        elif group := self.group_of(load):
            self.print_loads(load, group)
        elif not self.mask and is_near(load, step or 0) and 2 * (step or 0) <= self.lanes:
            self.vectors[x], self.steps[x] = self.strided(load, step or 0), None
        else:
            self.steps[x] = None
            self.vectors[x] = "poison" if self.active == self.lanes else "zeroinitializer"
            for lane in range(self.active):
                element = Scalar("", x.dtype)
                self.scalars.print_load(Load(element, load.buffer, self.of_lane(load.index, lane)))
                number = self.scalars.typed(element)
                self.define(x, f"insertelement {self.typed(x)}, {number}, i64 {lane}")

    def strided(self, load: Load, step: int) -> str:
        """Every so many-th element of some vectors; the last vector ends with the last of them."""
        t, n, last = llvm_type(load.target.dtype), self.lanes, step - 1
        offsets = [*range(0, last * n, n), last * (n - 1)]
        places = self.places(load, self.address(load.buffer, load.index), offsets)
        wide = [self.computed("%wide", f"load {self.in_lanes(t)}, {place}") for place in places]
        return self.picked(t, wide, [k + last * (k >= last * n) for k in range(0, step * n, step)])

    def group_of(self, access: Load | Store) -> Group:
        """The interleaved accesses that one belongs to; one that goes backwards is such by itself.
        """
        return self.groups.get(access) or (access,) * self.is_backwards(access)

    def is_backwards(self, access: Load | Store, apart: int = 1) -> bool:
        """Whether the accesses of all lanes are so far apart, from the last one on."""
        return (self.steps.at(access.buffer, access.index) == -apart and not self.mask
                and access.buffer.dtype != BOOL)

    def last_of(self, access: Load | Store) -> str:
        """The address of what the last lane accesses."""
        return self.address(access.buffer, self.of_lane(access.index, self.lanes - 1))

    def reversed(self, dtype: np.dtype, vector: str) -> str:
        return self.shuffled(llvm_type(dtype), self.lanes, [vector], range(self.lanes)[::-1])

    def of_lane(self, index: Iterable[Operand], lane: int) -> tuple[Operand, ...]:
        return tuple(self.in_lane(x, lane) for x in index)

    def print_loads(self, load: Load, group: Group) -> None:
        """A group of interleaved loads, with the first that is printed."""
        if self.steps[load.target] is None:
            return  # printed with another one
        t = llvm_type(load.target.dtype)
        parts = [[self.computed("%wide", f"load {self.in_lanes(t)}, {place}")
                  for place in self.places_of(group, load)]]
        factors = prime_factors(len(group))
        for p in factors:  # every p-th element from the first on, from the second
            parts = [[self.sort_step(
                t, part[k:k + p], range(first, p * self.lanes, p), len(factors))
                for k in range(0, len(part), p)] for first in range(p) for part in parts]
        if self.is_backwards(load, len(group)):
            parts = [[self.reversed(load.target.dtype, part)] for [part] in parts]
        for each, [part] in zip(group, parts, strict=True):
            self.vectors[each.target], self.steps[each.target] = part, None  # type: ignore[union-attr]

    def print_stores(self, store: Store, group: Group) -> None:
        """A group of interleaved stores, with the last of them."""
        self.stored.add(store)
        if not self.stored.issuperset(group):
            return
        t, n = llvm_type(store.buffer.dtype), self.lanes
        parts = [[self.value(each.value)] for each in group]  # type: ignore[union-attr]
        if self.is_backwards(store, len(group)):
            parts = [[self.reversed(store.buffer.dtype, part)] for [part] in parts]
        factors = prime_factors(len(group))
        for p in reversed(factors):  # of p vectors in turns
            order = [k % p * n + k // p for k in range(p * n)]
            rest = len(parts) // p
            parts = [[self.sort_step(t, vectors, order[first:first + n], len(factors))
                      for vectors in zip(*parts[k::rest], strict=True)
                      for first in range(0, p * n, n)] for k in range(rest)]
        for part, place in zip(parts[0], self.places_of(group, store), strict=True):
            self.emit(f"store {self.in_lanes(t)} {part}, {place}")

    def sort_step(self, t: str, vectors: Sequence[str], order: Iterable[int], steps: int) -> str:
        """The name of a vector after one of so many steps of sorting. After one of many stands a
        fence, across which LLVM combines no shuffles: it takes long, and finds nothing better.
        """
        name = self.picked(t, vectors, order)
        if steps < MANY_STEPS or t not in MANGLED:
            return name
        fence = f"@llvm.arithmetic.fence.v{self.lanes}{MANGLED[t]}"
        return self.computed("%part", f"call {self.in_lanes(t)} {fence}({self.in_lanes(t)} {name})")

    def picked(self, t: str, vectors: Sequence[str], elements: Iterable[int]) -> str:
        """The name of a vector of elements of two or more vectors, which are counted through."""
        places = [divmod(e, self.lanes) for e in elements]
        name, *rest = vectors
        for k, vector in enumerate(rest, 1):
            name = self.shuffled(t, self.lanes, (name, vector), [
                self.lanes + place if source == k else place if k == 1 else lane
                for lane, (source, place) in enumerate(places)])
        return name

    def shuffled(self, t: str, count: int, vectors: Sequence[str], order: Iterable[int]) -> str:
        """The name of a vector of elements of one or two others."""
        lanes, (x, y) = [f"i32 {k}" for k in order], (*vectors, "poison")[:2]
        return self.computed("%part", f"shufflevector <{count} x {t}> {x}, <{count} x {t}> {y}, "
                             f"<{len(lanes)} x i32> <{', '.join(lanes)}>")

    def places_of(self, group: Group, access: Load | Store) -> Iterator[str]:
        """Where the vectors of neighbours are that a group accesses, from one of its accesses."""
        first = (self.last_of(access) if self.is_backwards(access, len(group))
                 else self.address(access.buffer, access.index))
        return self.places(access, first, [k * self.lanes - group.index(access)
                                           for k in range(len(group))])

    def places(self, access: Load | Store, first: str, offsets: Iterable[int]) -> Iterator[str]:
        """Where vectors of neighbours are, so many elements after an address."""
        t, itemsize = llvm_type(access.buffer.dtype), access.buffer.dtype.itemsize
        for offset in offsets:
            place = f"getelementptr inbounds {t}, ptr {first}, i64 {offset}"
            yield f"ptr {self.computed('%at', place)}, align {itemsize}"

    def print_store(self, store: Store) -> None:
        if self.steps.at(store.buffer, store.index) == 1:
            return super().print_store(store)
        if group := self.group_of(store):
            return self.print_stores(store, group)
        for lane in range(self.active):
            value = self.in_lane(store.value, lane)
            self.scalars.print_store(Store(store.buffer, self.of_lane(store.index, lane), value))

    def access(self, x: Load | Store, t: str, value: str = "") -> str:
        """A load or a store of neighbours, of those lanes that the mask has."""
        if not self.mask:
            return super().access(x, t, value)
        size, dtype = x.buffer.dtype.itemsize, x.buffer.dtype
        at = f"ptr {self.address(x.buffer, x.index)}, i32 {size}, {self.in_lanes('i1')} "
        name = f"v{self.lanes}i8" if dtype == BOOL else mangled(dtype, self.lanes)
        return (f"call void @llvm.masked.store.{name}.p0({value}, {at}{self.mask})" if value else
                f"call {t} @llvm.masked.load.{name}.p0({at}{self.mask}, {t} zeroinitializer)")
