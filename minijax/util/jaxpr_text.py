"""The text of a jaxpr, as JAX prints it.

Builds on `core`.  Names no primitive: an equation is its name, parameters and operands.
Chapter 06, *Programs as data*.  In JAX: `jax/_src/core.py` (`pp_*`), `pretty_printer.py`.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from minijax.core import Program, programs_in
from minijax.util.source_info import function_name

if TYPE_CHECKING:  # what a program is made of prints itself by this module, and is above it
    from minijax.core.jaxpr import Atom, Jaxpr, JaxprEqn, Var

# ---------------------------------------------------------------- documents
#
# A document says where lines *may* break; `layout` decides where they do. Every document knows
# the width of its text on one line, so a group is laid out flat exactly when that width fits.


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text; `style` colours it.

    One that `breaks` is a line break, or the text where the group around it fits on one line.
    """

    text: str
    style: str = ""
    breaks: bool = False

    @property
    def width(self) -> int:
        return len(self.text)


@dataclass(frozen=True, slots=True)
class Row:
    """Documents one after the other; their lines are indented by `indent`.

    The breaks of a `group` are all flat if it fits on the rest of the line.
    """

    parts: tuple[Doc, ...]
    indent: int = 0
    group: bool = False
    width: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", sum(part.width for part in self.parts))


Doc = Text | Row


def row(*parts: Doc, indent: int = 0) -> Row:
    return Row(parts, indent)


def group(*parts: Doc) -> Row:
    return Row(parts, group=True)


def line_break(flat: str = " ") -> Text:
    return Text(flat, breaks=True)


def join(separator: Doc, parts: Iterable[Doc]) -> Row:
    separated = [doc for part in parts for doc in (separator, part)]
    return Row(tuple(separated[1:]))


def bracketed(opening: str, parts: Sequence[Doc], closing: str) -> Row:
    listed = row(Text(opening), line_break(""), join(line_break(), parts), indent=2)
    return group(listed, line_break(""), Text(closing))


def layout(doc: Doc, width: int) -> list[Text]:
    """The pieces of text of a document broken to a width, newlines among them.

    >>> fruit = join(line_break(), [Text("apple"), Text("pear"), Text("plum")])
    >>> "".join(piece.text for piece in layout(group(fruit), 20))
    'apple pear plum'
    >>> "".join(piece.text for piece in layout(group(fruit), 10))
    'apple\\npear\\nplum'
    """
    pieces: list[Text] = []
    column = 0
    todo: list[tuple[int, bool, Doc]] = [(0, False, doc)]
    while todo:
        indent, flat, doc = todo.pop()
        if isinstance(doc, Row):
            flat = flat or doc.group and column + doc.width <= width
            todo += [(indent + doc.indent, flat, part) for part in reversed(doc.parts)]
        elif doc.breaks and not flat:
            pieces.append(Text("\n" + " " * indent))
            column = indent
        else:
            pieces.append(doc)
            column += doc.width
    return pieces


# ---------------------------------------------------------------- names


def variable_name(number: int) -> str:
    """The name of the n-th variable.

    >>> [variable_name(n) for n in (0, 25, 26, 27, 26 * 26)]
    ['a', 'z', 'ba', 'bb', 'baa']
    """
    name = ""
    while not name or number:
        number, digit = divmod(number, 26)
        name = chr(ord("a") + digit) + name
    return name


def inner_jaxpr(program: Any) -> Jaxpr:
    """The program itself, where it may come with its constants' values."""
    return getattr(program, "jaxpr", program)


LONG = 10  # an inner program with more equations than this is printed apart


def _shared_names(top: Jaxpr) -> dict[Jaxpr, str]:
    """Names for the inner programs to print first: those used again, and the long ones."""
    uses: Counter[Jaxpr] = Counter()
    called: dict[Jaxpr, str] = {}
    queue = [top]
    for program in queue:  # grows while it is read
        uses[program] += 1
        if uses[program] > 2:
            continue  # what is inside is known to be shared by now
        for eqn in program.eqns:
            for inner in map(inner_jaxpr, programs_in(eqn.params)):
                queue.append(inner)
                if "name" in eqn.params:
                    called.setdefault(inner, str(eqn.params["name"]).strip("<>"))
    taken: Counter[str] = Counter()
    names: dict[Jaxpr, str] = {}
    for program, count in uses.items():
        if program is not top and (count > 1 or len(program.eqns) > LONG):
            stem = called.get(program, "jaxpr")
            name = f"{stem}{taken[stem]}" if taken[stem] else stem
            taken[stem] += 1
            taken[name] += name != stem
            names[program] = name
    return names


class Names:
    """The names of variables and of shared programs while one text is printed."""

    def __init__(self, top: Jaxpr | None = None) -> None:
        self.programs = _shared_names(top) if top else {}
        self.variables = _unread(top) if top else {}
        self._fresh = (name for name in map(variable_name, itertools.count())
                       if name not in self.programs.values())

    def of(self, atom: Atom) -> str:
        """The name of a variable, given to it at its first sight; a literal's value and type."""
        if atom.text is not None:
            return atom.text
        if atom not in self.variables:
            self.variables[atom] = next(self._fresh)
        return self.variables[atom]

    def repeat(self, inner: Sequence[Atom], outer: Sequence[Atom]) -> None:
        """Name the variables of a called program as at its call."""
        seen: set[Atom] = set()
        for mine, theirs in zip(inner, outer, strict=False):
            named = theirs.text is not None or theirs in seen or mine in self.variables
            if mine.text is None and not named:
                seen.add(theirs)
                self.variables[mine] = self.of(theirs)


def _unread(program: Jaxpr) -> dict[Atom, str]:
    """The results of equations that nothing reads; they print as `_`."""
    read: set[Atom] = set(program.outvars).union(*(eqn.invars for eqn in program.eqns))
    return {v: "_" for eqn in program.eqns for v in eqn.outvars if v not in read}


# ---------------------------------------------------------------- jaxprs as documents


@dataclass(frozen=True)
class Printer:
    """Turns programs into documents."""

    names: Names

    def top(self, program: Jaxpr) -> Doc:
        """The whole text: shared programs first, each under its name."""
        parts: list[Doc] = []
        for shared, name in self.names.programs.items():
            parts += [Text("let ", "keyword"), Text(name, "program"), Text(" = ")]
            parts += [self.body(shared), Text(" in", "keyword"), line_break()]
        return row(*parts, self.body(program))

    def program(self, program: Jaxpr) -> Doc:
        name = self.names.programs.get(program)
        return Text(name, "program") if name else self.body(program)

    def body(self, program: Jaxpr) -> Doc:
        """`{ lambda constants ; inputs. let equations in (outputs) }`."""
        constants, inputs = self.binders(program.constvars), self.binders(program.invars)
        equations = join(line_break("; "), [self.equation(eqn) for eqn in program.eqns])
        outputs = self.spaced([Text(self.names.of(v), "variable") for v in program.outvars], ",")
        inside = row(
            Text("{ "), Text("lambda ", "keyword"), constants, Text("; "), inputs, Text(". "),
            Text("let", "keyword"), row(line_break(), equations, indent=2), line_break(),
            Text("in ", "keyword"), Text("("), outputs,
            Text(",)" if len(program.outvars) == 1 else ")"), indent=2)
        return group(inside, Text(" }"))

    def equation(self, eqn: JaxprEqn) -> Doc:
        """`outputs = primitive[parameters] operands`."""
        params = printed_params(eqn)
        inner = inner_jaxpr(eqn.params.get("jaxpr"))
        if "name" in params and isinstance(inner, Program) and inner not in self.names.programs:
            # called by name, it takes its operands one by one, so its names can be theirs
            self.names.repeat(inner.invars, eqn.invars)
            self.names.repeat(inner.outvars, eqn.outvars)
        equals = [self.binders(eqn.outvars), Text(" = ")] if eqn.outvars else []
        operands = self.spaced([Text(self.names.of(v), "variable") for v in eqn.invars])
        # The parameters come before the operands, so their variables are named before.
        return row(*equals, self.operation(eqn), self.params(params), Text(" "), operands)

    def operation(self, eqn: JaxprEqn) -> Text:
        return Text(eqn.primitive.name, "primitive")

    def binders(self, variables: Sequence[Var]) -> Doc:
        """Variables with their types, as many to a line as fit."""
        return self.spaced([
            row(Text(self.names.of(v), "variable"), Text(":" + v.aval.str_short(True), "type"))
            for v in variables])

    def spaced(self, parts: Sequence[Doc], separator: str = "") -> Doc:
        gap = row(Text(separator), group(line_break()))
        return row(group(join(gap, parts)), indent=2)

    def params(self, params: dict[str, Any]) -> Doc:
        if not params:
            return Text("")
        pairs = [row(Text(f"{name}="), self.param(value)) for name, value in params.items()]
        return bracketed("[", pairs, "]")

    def param(self, value: Any) -> Doc:
        if isinstance(value, Program):
            return self.program(inner_jaxpr(value))
        if isinstance(value, tuple) and all(isinstance(v, Program) for v in value):
            return bracketed("(", [self.program(inner_jaxpr(v)) for v in value], ")")
        return Text(_param_text(value))


def printed_params(eqn: JaxprEqn) -> dict[str, Any]:
    """The parameters to print, sorted, a `name` first.

    A primitive with parameters that say nothing to a reader has `printed`, a function from the
    parameters to those worth a place.
    """
    printed = eqn.primitive.printed
    params = printed(**eqn.params) if printed else eqn.params
    return {name: params[name] for name in sorted(params, key=lambda name: (name != "name", name))}


def _param_text(value: Any) -> str:
    if isinstance(value, frozenset):
        return f"frozenset({{{', '.join(sorted(map(repr, value)))}}})"
    if isinstance(value, type) and issubclass(value, np.generic):
        return value.__name__
    if callable(value) and not isinstance(value, type):
        return function_name(value)
    return re.sub(r" at 0x[0-9a-fA-F]+", " at 0x...", str(value))


# ---------------------------------------------------------------- text


def pieces_of(program: Program, *, width: int = 80) -> list[Text]:
    """A program as pieces of text, each with its style."""
    return layout(Printer(Names(inner_jaxpr(program))).top(inner_jaxpr(program)), width)


def jaxpr_text(program: Program, *, width: int = 80) -> str:
    """A program as JAX prints it.

    >>> import minijax
    >>> print(jaxpr_text(minijax.make_jaxpr(lambda x: x * 2.0 + 1.0)(3.0)))
    { lambda ; a:f32[]. let
        b:f32[] = mul a 2.0:f32[]
        c:f32[] = add b 1.0:f32[]
      in (c,) }
    """
    return "".join(piece.text for piece in pieces_of(program, width=width))


def pretty_print(program: Program, *, source_info: bool = False, print_shapes: bool = True,
                 custom_pp_eqn_rules: bool = True, name_stack: bool = False,
                 print_effects: bool = False, use_color: bool | None = None, **_: Any) -> str:
    """The text of a program by JAX's name; of the options the defaults are possible.

    Raises:
      NotImplementedError: for another choice of one.

    >>> import minijax
    >>> minijax.make_jaxpr(abs)(1.0).pretty_print(use_color=False)
    '{ lambda ; a:f32[]. let b:f32[] = abs a in (b,) }'
    """
    if source_info or name_stack or print_effects or use_color or not print_shapes:
        raise NotImplementedError("pretty_print has one form of text here; read eqn.source_info "
                                  "and eqn.effects of the equations instead")
    return jaxpr_text(program)


def equation_text(eqn: JaxprEqn, *, names: Names | None = None, width: int = 80) -> str:
    """One equation by itself, its variables named from `a` on or as they are elsewhere."""
    pieces = layout(Printer(names or Names()).equation(eqn), width)
    return "".join(piece.text for piece in pieces).rstrip()
