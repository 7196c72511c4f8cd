"""Provenance: the equations behind each loop statement, and the statements behind each instruction.

Equations are numbered, and passes propagate the numbers, as they do the user's lines.  Statements
belong to the equations of the values that they compute; instructions belong to statements by debug
locations, emitted for this purpose only.  Builds on `compiler`.  JAX has no counterpart.
"""

from __future__ import annotations

import itertools
import linecache
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, subjaxprs
from minijax.compiler import cpu, llvm
from minijax.compiler.costs import costs_of, memory_of
from minijax.compiler.function_text import FunctionText
from minijax.compiler.loops import (Assign, Let, Load, Read, Scalar, Statement, Store,
                                    accessed, bodies, defined, origin, used, walk)
from minijax.compiler.lowered import Lowered
from minijax.compiler.outlining import Outlined
from minijax.compiler.pairs import with_programs
from minijax.compiler.text import KernelText
from minijax.compiler.vectors import Function
from minijax.util.jaxpr_text import Doc, Names, Printer, Row, layout
from minijax.util.source_info import SourceInfo

Numbers = frozenset[int]
NONE: Numbers = frozenset()
Listed = list[tuple[Statement, ...]]


class Piece(NamedTuple):
    """Some text of a stage, and the numbers of the equations and statements that it comes from."""

    text: str
    equations: Numbers = NONE
    statements: Numbers = NONE
    style: str = ""


# ---- equations


class Numbered(SourceInfo):
    """The user's line of an equation that has a number."""

    number = 0


def numbered(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program; its equations, and those of programs inside, are numbered from 1 on."""
    count, known = itertools.count(1), dict[Jaxpr, Jaxpr]()

    def program(closed: ClosedJaxpr) -> ClosedJaxpr:
        jaxpr = closed.jaxpr
        if jaxpr not in known:
            known[jaxpr] = jaxpr.replace(eqns=tuple(map(equation, jaxpr.eqns)))
        return ClosedJaxpr(known[jaxpr], closed.consts)

    def equation(eqn: JaxprEqn) -> JaxprEqn:
        source = eqn.source_info and Numbered(*eqn.source_info)
        if source:
            source.number = next(count)
        return eqn.replace(source_info=source, params=with_programs(eqn.params, program))

    return program(closed)


def equations_in(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """All equations at any depth."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in subjaxprs(eqn.params):
            yield from equations_in(inner.jaxpr)


def numbers_of(eqns: Iterable[JaxprEqn]) -> Numbers:
    return frozenset(getattr(eqn.source_info, "number", 0) for eqn in eqns) - {0}


@dataclass(frozen=True)
class NumberPrinter(Printer):
    """Remembers for each piece of text the innermost equation that it is of."""

    owners: dict[int, Numbers] = field(default_factory=dict)

    def equation(self, eqn: JaxprEqn) -> Doc:
        todo = [super().equation(eqn)]
        numbers = numbers_of((eqn, *equations_in(Jaxpr([], [], [], [eqn]))))
        for part in todo:  # grows while it is read
            if isinstance(part, Row):
                todo += part.parts
            else:
                self.owners.setdefault(id(part), numbers)
        return todo[0]


def pieces_of_program(closed: ClosedJaxpr) -> list[Piece]:
    """A program as it is printed."""
    printer = NumberPrinter(Names(closed.jaxpr))
    doc = printer.top(closed.jaxpr)
    return [Piece(x.text, printer.owners.get(id(x), NONE), style=x.style)
            for x in layout(doc, 80)] + [Piece("\n")]


def pieces_of_lines(closed: ClosedJaxpr) -> list[Piece]:
    """The user's lines that equations come from."""
    found: dict[tuple[str, str, int], Numbers] = defaultdict(frozenset)
    for eqn in equations_in(closed.jaxpr):
        if source := eqn.source_info:
            found[source.short_file, source.file, source.line] |= numbers_of([eqn])
    pieces, before = [], ""
    for (name, file, line), numbers in sorted(found.items()):
        pieces += [Piece(f"# {name}\n")] * (name != before)
        pieces.append(Piece(f"{line:3}  {linecache.getline(file, line).rstrip()}\n", numbers))
        before = name
    return pieces


# ---- loops


class Provenance:
    """A program whose equations have numbers, and its loops: each statement has a number, and the
    numbers of equations.
    """

    def __init__(self, closed: ClosedJaxpr, name: str) -> None:
        self.lowered = lowered = Lowered(numbered(closed), name)
        self.kernel = lowered.kernel
        every = list(walk(self.kernel.body))
        self.numbers = {statement: k for k, statement in enumerate(every, 1)}
        self.makers: dict[Any, Statement] = {
            defined(x): x for x in every if isinstance(x, Let | Load | Read)}
        makers = {v: numbers_of([eqn]) for eqn in equations_in(lowered.simplified.jaxpr)
                  for v in eqn.outvars}
        notes, holds = self.kernel.notes, defaultdict[Any, Numbers](frozenset)
        for thing, v in (*notes["origins"].items(), *notes["others"]):
            holds[thing] |= makers.get(v, NONE)
        self.equations = _equations_behind(every, holds)

    @property
    def counts(self) -> dict[str, int]:
        """What a call does, and the memory that it takes."""
        memory = memory_of(self.kernel)
        return {**costs_of(self.kernel.body), "bytes of arguments": memory.argument_size_in_bytes,
                "bytes of results": memory.output_size_in_bytes,
                "bytes in between": memory.temp_size_in_bytes}

    def stages(self, wanted: Sequence[str]) -> dict[str, list[Piece]]:
        """The pieces of each stage."""
        made: dict[str, Callable[[], list[Piece]]] = {
            "lines": lambda: pieces_of_lines(self.lowered.jaxpr),
            "jaxpr": lambda: pieces_of_program(self.lowered.jaxpr),
            "simplified": lambda: pieces_of_program(self.lowered.simplified),
            "source": lambda: LoopLines(self).pieces(),
            "llvm": lambda: pieces_of_machine_code(self, "llvm"),
            "asm": lambda: pieces_of_machine_code(self, "asm")}
        return {stage: made[stage]() for stage in wanted}

    def piece(self, text: str, statements: Collection[Statement]) -> Piece:
        """Text that is made of statements, without those inside of them."""
        return Piece(text, NONE.union(*map(self.equations.__getitem__, statements)),
                     frozenset(map(self.numbers.__getitem__, statements)))


def _equations_behind(every: list[Statement], holds: dict[Any, Numbers]
                      ) -> dict[Statement, Numbers]:
    """For each statement the equations whose values it makes; where it makes none, those of what
    reads its result: that stands below it, or above in the next turn of a loop.
    """
    asked: dict[Any, Numbers] = defaultdict(frozenset)
    found: dict[Statement, Numbers] = {}
    made: list[Any]
    for each in every[::-1] * 2:
        match each:
            case Store(place, _, value) | Assign(place, value):
                made = [value if holds.get(value) else place]
            case Load(value) | Let(value):
                made = [value]
            case _:
                made = [defined(each), *accessed(each)]
        found[each] = NONE.union(*(holds.get(x) or asked[x] for x in made),
                                 *(found[inner] for body in bodies(each) for inner in body))
        for x in (*used(each), *accessed(each)):
            asked[x] |= found[each]
    return found


class Line(str):
    """A line of the loops as Python, and the statement that it begins with."""

    first: Statement | None = None


class LoopLines(KernelText):
    """Prints loops as Python, and remembers which statements stand in each line."""

    now: Statement | None = None

    def __init__(self, of: Provenance) -> None:
        super().__init__(of.kernel)
        self.of = of

    def print(self, statement: Statement) -> None:
        before, self.now = self.now, statement if statement in self.of.numbers else self.now
        super().print(statement)
        self.now = before

    def name(self, target: Scalar) -> None:
        before, self.now = self.now, self.of.makers[target]
        super().name(target)
        self.now = before

    def write(self, line: str) -> None:
        super().write(line)
        self.lines[-1] = signed = Line(self.lines[-1])
        signed.first = self.now

    def pieces(self) -> list[Piece]:
        """The lines; a comment on statements belongs to the line below it."""
        self.text()
        kernel, found, whole = self.of.kernel, list[Piece](), list[Statement]()
        head = 1 + len(kernel.inputs + kernel.outputs + kernel.constants)
        for k, line in reversed([*enumerate(self.lines)]):
            first = getattr(line, "first", None)
            if k < head or not line.lstrip().startswith("#"):
                whole = [*walk([first]), *self._within(first)] if first else []
            found.append(self.of.piece(f"{line}\n", whole))
        return found[::-1]

    def _within(self, statement: Statement) -> Iterator[Statement]:
        """What has no name, and is written where it is used."""
        for x in used(statement):
            maker = self.of.makers.get(x)
            if maker is not None and x not in self.names and x not in self.finals:
                yield maker
                yield from self._within(maker)


# ---- machine code


class LocatedFunction(FunctionText):
    """Prints one function; a comment behind each instruction is the number of its statement among
    those of the function, so that equal loops still have equal texts.
    """

    def __init__(self, module: LocatedModule, *args: Any) -> None:
        super().__init__(module, *args)
        self.located, self.here = module, 0
        self.statements: Listed = [()]  # by these numbers

    def body(self, statements: Iterable[Statement]) -> None:
        before = self.here
        for statement in statements:
            if origin(statement) in self.located.of.numbers:
                self.here = len(self.statements)
                self.statements.append((origin(statement),))
            super().body((statement,))
            self.here = before

    def emit(self, instruction: str) -> None:
        super().emit(f"{instruction} ; {self.here}")

    def text(self, signature: str, result: str = "void") -> str:
        self.located.behind[re.findall(r"@[\w.]+", signature)[0]] = self.statements
        return super().text(signature, result)


class LocatedModule(llvm.ModuleText):
    """Prints a kernel with a debug location at each instruction."""

    def __init__(self, of: Provenance) -> None:
        super().__init__(llvm.transformed(of.kernel, False))
        self.of = of
        # For each function the statements behind each number in its comments.
        self.behind: dict[str, Listed] = {}
        # What is not printed, for it equals what is.
        self.copies: dict[Statement, dict[Statement, None]] = {}

    def printer(self, lanes: int = 0) -> LocatedFunction:
        return LocatedFunction(self, lanes)

    def function(self, loop: Statement, poll: str) -> str:
        first = self.outlined[loop].first or loop
        if first is not loop:
            for x, copy in zip(walk([first]), walk([loop]), strict=True):
                self.copies.setdefault(origin(x), {})[origin(copy)] = None
        return super().function(loop, poll)

    def print_function(self, loop: Statement, outlined: Outlined, poll: str) -> str:
        name = super().print_function(loop, outlined, poll)
        _, *own = self.behind.pop("@loop")
        others = self.behind.get(name) or [()] * (1 + len(own))
        own = [(origin(loop),), *own]
        self.behind[name] = [(*x, *y) for x, y in zip(own, others, strict=True)]
        return name

    def _with_copies(self, x: Statement) -> Iterator[Statement]:
        yield x
        for copy in self.copies.get(x, ()):
            yield from self._with_copies(copy)

    def elementary_function(self, f: Function) -> str:
        name = super().elementary_function(f)
        self.behind[name] = [tuple(x for x in self.of.numbers if isinstance(x, Let)
                                     and (x.op, x.target.dtype) == (f.name, f.dtype))]
        return name

    def located(self) -> tuple[str, Listed]:
        """The text; its locations are lines of a list of statements, which is given too."""
        text, listed = self.text(), Listed([()])
        lines, scope = list[str](), 3
        nodes = ["!llvm.dbg.cu = !{!0}", "!llvm.module.flags = !{!1}",
                 "!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !2, "
                 "emissionKind: DebugDirectivesOnly)",
                 '!1 = !{i32 2, !"Debug Info Version", i32 3}',
                 '!2 = !DIFile(filename: "loops", directory: "")',
                 "!3 = !DISubroutineType(types: !{})"]
        for line in text.splitlines():
            name = re.match(r"define [^@]*(@[\w.]+)", line)
            number = re.search(r" ; (\d+)$", line)
            if name and name[1] in self.behind:
                scope, first = scope + 1, len(listed)
                listed += [tuple(y for x in xs for y in self._with_copies(x))
                           for xs in self.behind[name[1]]]
                nodes.append(f"!{scope} = distinct !DISubprogram(file: !2, type: !3, unit: !0, "
                             "spFlags: DISPFlagDefinition)")
                line = f"{line[:-1]}!dbg !{scope} {{"
            elif number:
                line = (f"{line[:number.start()]}, !dbg !DILocation(line: "
                        f"{first + int(number[1])}, scope: !{scope})")
            lines.append(line)
        return "\n".join([*lines, *nodes]), listed


def pieces_of_machine_code(of: Provenance, stage: str) -> list[Piece]:
    """What the processor runs, as LLVM text or as assembler; of both the instructions alone."""
    module = LocatedModule(of)
    located, listed = module.located()
    text = cpu.undisturbed(lambda: cpu.compile(located, stage))
    return [*(_of_llvm(of, text, listed) if stage == "llvm" else
              _of_asm(of, text, listed, {name[1:] for name in module.behind}))]


def _of_llvm(of: Provenance, text: str, listed: Listed) -> Iterator[Piece]:
    places = {node: int(line) for node, line in
              re.findall(r"^(!\d+) = .*!DILocation\(line: (\d+)", text, re.MULTILINE)}
    for function in re.findall(r"^define [^\n]* !dbg .*?^}\n", text, re.MULTILINE | re.DOTALL):
        for line in function.splitlines():
            node = re.search(r"!dbg (!\d+)", line)
            shown = re.sub(r"( unnamed_addr)?( #\d+)?,? +[;!].*?( {)?$", r"\3", line)
            yield of.piece(f"{shown}\n", listed[places.get(node[1], 0)] if node else ())


def _of_asm(of: Provenance, text: str, listed: Listed, functions: set[str]) -> Iterator[Piece]:
    here, inside = 0, False
    for line in text.splitlines():
        shown = re.sub(r"\s+(#|//|;)\s.*", "", line).expandtabs(8)
        if location := re.match(r"\s+\.loc\s+\d+ (\d+)", line):
            here = int(location[1])
        elif label := re.match(r"([A-Za-z_][\w.]*|\.?L\w+):", line):
            name = label[1].removeprefix("_")
            inside = name in functions or inside and "L" in name[:2]
            if name in functions or inside and "BB" in name:
                yield Piece(f"{shown}\n")
        elif inside and re.match(r"\s+\w", shown):
            yield of.piece(f"{shown[4:]}\n", listed[here])
