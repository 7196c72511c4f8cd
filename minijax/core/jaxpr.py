"""Programs as data: variables, equations, jaxprs, and the loop that runs them.

Builds on `core`.  Chapter 06, *Programs as data*.  In JAX: `jax/_src/core.py`.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np

from minijax.util import caches, context, lazily
from minijax.util.inner_first import inner_first
from minijax import config, core
from minijax.core import Effects, Primitive, ShapedArray, no_effects
from minijax.errors import JaxprTypeError
from minijax.util.source_info import DebugInfo, SourceInfo

F = TypeVar("F", bound=Callable[..., Any])


class Var:
    """A variable: defined once, equal only to itself."""

    __slots__ = ("aval",)
    text: str | None = None  # a name, chosen by each printed program

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class Literal:
    """A scalar written into the program."""

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: ShapedArray | None = None):
        self.val = val
        self.aval = aval or core.get_aval(val)

    @property
    def value(self) -> core.Array:
        """The array of the literal when the program runs."""
        if isinstance(self.val, core.Array):
            return self.val
        return core.ArrayImpl(np.array(self.val, self.aval.dtype), self.aval, is_literal=True)

    @property
    def text(self) -> str:
        """Its text, such as `2.0:f32[]`."""
        value = "[...]" if np.shape(self.val) else str(np.asarray(self.val).item())
        return f"{value}:{self.aval.str_short(True)}"

    def __repr__(self) -> str:
        return f"Literal({self.val})"


Atom = Var | Literal


@dataclass(frozen=True, eq=False, slots=True)
class JaxprEqn:
    """One equation: ``outvars = primitive[params] invars``."""

    invars: list[Atom]
    outvars: list[Var]
    primitive: Primitive
    params: dict[str, Any]
    effects: Effects = no_effects
    source_info: SourceInfo | None = None

    def replace(self, **changes: Any) -> JaxprEqn:
        return dataclasses.replace(self, **changes)

    __repr__ = lazily.later("minijax.util.jaxpr_text", "equation_text")


@dataclass(frozen=True, eq=False)
class Jaxpr(core.Program):
    """A program: its inputs, its equations in order, its outputs."""

    constvars: list[Var]
    invars: list[Var]
    outvars: list[Atom]
    eqns: list[JaxprEqn]
    effects: Effects = no_effects
    debug_info: DebugInfo | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("constvars", "invars", "outvars", "eqns"):
            object.__setattr__(self, name, list(getattr(self, name)))

    replace = dataclasses.replace
    __repr__ = lazily.later("minijax.util.jaxpr_text", "jaxpr_text")
    pretty_print = lazily.later("minijax.util.jaxpr_text", "pretty_print")


@dataclass(frozen=True, eq=False)
class ClosedJaxpr(core.Program):
    """A program together with the values of its constants."""

    jaxpr: Jaxpr
    consts: Sequence[Any] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "consts", list(self.consts))
        if len(self.consts) != len(self.jaxpr.constvars):
            raise ValueError(f"a program with {len(self.jaxpr.constvars)} constants "
                             f"was closed over {len(self.consts)} values")

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.jaxpr.outvars]

    literals = property(operator.attrgetter("consts"))
    eqns = property(operator.attrgetter("jaxpr.eqns"))
    effects = property(operator.attrgetter("jaxpr.effects"))
    pretty_print, replace = Jaxpr.pretty_print, dataclasses.replace

    def derived(self, key: tuple, make: Callable[[], Any]) -> Any:
        """The result of `make` on this program, computed once and kept as long as the program."""
        memo = self.__dict__.get("_derived")
        if memo is None:
            memo = self.__dict__.setdefault("_derived", {})
            _with_memo.add(self)
        key = (*key, config.trace_key())
        cached = memo.get(key, memo)
        if cached is not memo:
            return cached
        return inner_first(lambda: memo.setdefault(key, make()),
                           lambda: sum(len([*subjaxprs(eqn.params)]) for eqn in self.eqns))

    def __repr__(self) -> str:
        return repr(self.jaxpr)


_with_memo = caches.Holders(lambda closed: closed.__dict__.pop("_derived", None))


def cached_on_jaxpr(make: F) -> F:
    """A function of a program and of flags, computed once for each, and kept with the program."""
    @functools.wraps(make)
    def kept(closed: ClosedJaxpr, *flags: Any, **named: Any) -> Any:
        key = [tuple(x) if isinstance(x, list) else x for x in (*flags, *named.values())]
        return closed.derived((make, *named, *key),
                              functools.partial(make, closed, *flags, **named))
    return cast(F, kept)


def partition_list(items: Sequence[Any], flags: Sequence[bool]) -> tuple[list[Any], list[Any]]:
    """The items whose flag is False, and those whose flag is True.

    >>> partition_list("abc", [True, False, True])
    (['b'], ['a', 'c'])
    """
    parts: tuple[list[Any], list[Any]] = [], []
    for item, flag in zip(items, flags, strict=True):
        parts[flag].append(item)
    return parts


def merge_lists(parts: Sequence[Sequence[Any]], flags: Sequence[bool]) -> list[Any]:
    """The items of both parts in one list: the inverse of `partition_list`.

    >>> merge_lists((["b"], ["a", "c"]), [True, False, True])
    ['a', 'b', 'c']
    """
    rest = [iter(part) for part in parts]
    return [next(rest[flag]) for flag in flags]


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any,
               propagate_source_info: bool = True) -> list[Any]:
    """Run a program, equation by equation, under the current trace.

    Args:
      jaxpr: the program.
      consts: one value for each of its constants.
      args: one value for each of its inputs.
      propagate_source_info: whether staged equations and errors have the lines of the program,
        not the caller's.

    Returns:
      A list with one value for each of its outputs.

    >>> import minijax
    >>> closed = minijax.make_jaxpr(lambda x: x * 2.0)(1.0)
    >>> eval_jaxpr(closed.jaxpr, closed.consts, 3.0)
    [Array(6., dtype=float32, weak_type=True)]
    """
    if len(args) != len(jaxpr.invars):
        raise TypeError(f"the program takes {len(jaxpr.invars)} arguments, got {len(args)}")
    env = all_values(jaxpr, consts, args, propagate_source_info)
    return [env[atom] for atom in jaxpr.outvars]


class Environment(dict[Any, Any]):
    """The values of variables; a literal evaluates to its array."""

    def __missing__(self, literal: Literal) -> Any:
        return literal.value

    def run(self, eqn: JaxprEqn) -> None:
        """Bind the equation under the current trace."""
        core.current_source.set(eqn.source_info)
        outs = eqn.primitive.bind_list(*map(self.__getitem__, eqn.invars), **eqn.params)
        self.update(zip(eqn.outvars, outs, strict=True))


@context.leaving(core.current_source)
def all_values(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any],
               as_its_lines: bool = True) -> Environment:
    """The value of every variable in a run of a program.

    `as_its_lines` is `propagate_source_info` of `eval_jaxpr`.
    """
    here = core.current_source.get()
    env = Environment(zip(jaxpr.constvars + jaxpr.invars, (*consts, *args), strict=True))
    for eqn in jaxpr.eqns:
        env.run(eqn if as_its_lines else eqn.replace(source_info=here))
    return env


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    return lambda *args: eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)


def make_eqn(invars: Sequence[Atom], outvars: Sequence[Var], primitive: Primitive,
             params: dict[str, Any], source_info: SourceInfo | None = None) -> JaxprEqn:
    """An equation with the effects its primitive declares for these parameters."""
    return JaxprEqn(list(invars), list(outvars), primitive, params,
                    primitive.effects(**params), source_info)


def effects_of(eqns: Sequence[JaxprEqn]) -> Effects:
    return no_effects.union(*(eqn.effects for eqn in eqns))


def subjaxprs(params: dict[str, Any]) -> Iterator[ClosedJaxpr]:
    """The closed jaxprs among an equation's parameters; `core.programs_in` gives all programs."""
    return (program for program in core.programs_in(params) if isinstance(program, ClosedJaxpr))


def types_in(jaxpr: Jaxpr) -> Iterator[ShapedArray]:
    """The types of all values of a program, those of the programs inside it, too."""
    yield from (v.aval for v in (*jaxpr.constvars, *jaxpr.invars))
    for eqn in jaxpr.eqns:
        yield from (v.aval for v in (*eqn.invars, *eqn.outvars))
        for inner in subjaxprs(eqn.params):
            yield from types_in(inner.jaxpr)


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Check that every variable is defined once, before its use, and with the right type.

    Raises:
      JaxprTypeError: naming the equation.
    """
    steps: list[tuple[Any, Sequence[Atom], Sequence[Var]]] = [
        ("the inputs", (), jaxpr.constvars + jaxpr.invars),
        *((eqn.primitive, eqn.invars, eqn.outvars) for eqn in jaxpr.eqns),
        ("the outputs", jaxpr.outvars, ())]
    defined: set[Var] = set()
    for where, used, new in steps:
        wrong = [(v, "used before its definition, by") for v in used
                 if isinstance(v, Var) and v not in defined]
        wrong += [(v, "defined twice, again by") for v in new if v in defined]
        for v, what in wrong:
            raise JaxprTypeError(
                f"a variable of type {v.aval.str_short(True)} is {what}: {where}\nin\n{jaxpr}")
        defined.update(new)
    for eqn in jaxpr.eqns:
        _check_types(eqn)
        for inner in subjaxprs(eqn.params):
            check_jaxpr(inner.jaxpr)
    if jaxpr.effects != effects_of(jaxpr.eqns):
        raise JaxprTypeError(f"the program declares {set(jaxpr.effects)} but its equations "
                             f"have {set(effects_of(jaxpr.eqns))}")


def _check_types(eqn: JaxprEqn) -> None:
    inferred = eqn.primitive.type_of([v.aval for v in eqn.invars], eqn.params)
    declared = [v.aval for v in eqn.outvars]
    same = len(inferred) == len(declared) and all(
        f.strip_weak_type() is d.strip_weak_type() for f, d in zip(inferred, declared, strict=True))
    if not same:
        raise JaxprTypeError(f"{eqn.primitive} declares outputs {declared} "
                             f"but its rule returns {inferred}")
