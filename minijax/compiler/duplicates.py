"""Duplicates: of equal loops, as of the layers of a network, the first is built, transformed and
compiled, as a function that runs on the buffers of all.

Builds on loops.py; schedule.py and llvm.py make them. Chapters 24 and 26. In LLVM: the passes
`mergefunc` and `iroutliner`, which come after most of the work is done."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from minijax.core.jaxpr import Var

from . import host
from .loops import (Call, Check, Duplicate, For, Kernel, Statement, Variable, cached_on_node,
                    copied, defined, origin, structure, walk, with_origin)
from .routines import ALONE


@cached_on_node
def captures(statement: Statement) -> tuple[Any, ...]:
    """The buffers, scalars and variables of a statement that it does not define; those of equal
    statements correspond.
    """
    if isinstance(statement, Duplicate):
        return statement.captures
    inner = {defined(each) for each in walk((statement,))}
    return tuple(x for x in structure(statement)[1] if x not in inner)


@cached_on_node
def leaves(statement: Statement) -> bool:
    """Whether a statement may return from the kernel, calls Python, or holds threads back."""
    return any(isinstance(x, Check) or isinstance(x, Call) and (
        x.external == host.CALL or x is statement and x.external == ALONE)
        for x in walk((statement,)))


@cached_on_node
def is_function(statement: Statement) -> bool:
    """Whether a statement is a loop or a call that can be a function of its captures."""
    return isinstance(statement, For | Call) and not leaves(statement) and not any(
        isinstance(x, Variable) for x in captures(statement))


def duplicate(first: Any, names: Mapping[Any, Any], of: Statement) -> Duplicate:
    """A loop once more, with other names for its captures; it comes from the statement `of`."""
    return with_origin(Duplicate(first, tuple(names.get(x, x) for x in captures(first))), of)


def repeated(statements: Sequence[Statement], names: dict[Any, Any]) -> list[Statement]:
    """Statements once more, with other names: loops as duplicates, where they can be functions.

    The new names of what the others define join the names.
    """
    return [duplicate(each, names, each) if is_function(each) else copied((each,), names)[0]
            for each in statements]


def as_statement(statement: Duplicate, names: dict[Any, Any] | None = None) -> Any:
    """A duplicate as a statement of its own, whose names join the names."""
    names = {} if names is None else names
    names.update(zip(captures(statement.first), statement.captures, strict=True))
    [loop] = copied((statement.first,), names)
    for old, new in zip(walk((statement.first,)), walk((loop,)), strict=True):
        new.cached = {origin: origin(old)}
    key, named = structure(statement.first)
    loop.cached[structure,] = key, [names.get(x, x) for x in named]
    return loop


def transformed_once(body: Sequence[Statement], transform: Callable[..., tuple[Statement, ...]]
                     ) -> Iterator[Statement]:
    """The statements, each transformed; of equal loops the first is, and the others are duplicates
    of what it becomes.

    Args:
      transform: gets a statement in a tuple, and the buffers that others access, too.
    """
    counts = Counter(x for each in body for x in captures(each))
    shared = {x for x, count in counts.items() if count > 1}
    done: dict[Any, tuple[tuple[Any, ...], tuple[Statement, ...]]] = {}
    for statement in body:
        first = statement.first if isinstance(statement, Duplicate) else statement
        if not is_function(first):
            yield from transform((first,), shared) if first.bodies_at else (first,)
            continue
        own = captures(statement)
        key = structure(first)[0], *(k for k, x in enumerate(own) if x in shared)
        if key in done and all(map(is_function, done[key][1])):
            theirs, results = done[key]
            names = dict(zip(theirs, own, strict=True))
            yield from (duplicate(each, names, statement) for each in results)
            continue
        loop = as_statement(statement) if isinstance(statement, Duplicate) else statement
        results = transform((loop,), shared)
        done.setdefault(key, (own, results))
        yield from results


# -- kernels without duplicates --------------------------------------------------------------------


@cached_on_node
def expanded(kernel: Kernel) -> Kernel:
    """A kernel with a loop in place of each duplicate, and the notes on it."""
    if not any(isinstance(each, Duplicate) for each in kernel.body):
        return kernel
    notes: dict[str, Any] = {key: copy(x) for key, x in kernel.notes.items()}
    more: dict[Any, list[Any]] = {}
    for thing, v in notes["others"]:
        more.setdefault(thing, []).append(v)

    def loop_of(each: Statement) -> Statement:
        if not isinstance(each, Duplicate):
            return each
        names: dict[Any, Any] = {}
        loop = as_statement(each, names)
        variables = dict(notes["variables"].get(each, {}))

        def own(v: Any) -> Any:
            return variables.setdefault(v, Var(v.aval))
        for old, new in names.items():
            if old in notes["origins"]:
                notes["origins"].setdefault(new, own(notes["origins"][old]))
            notes["others"] += [(new, own(v)) for v in more.get(old, ())]
            if old in notes["finals"]:
                notes["finals"][new] = names[notes["finals"][old]]
        notes["rounded"] += [names[x] for x in kernel.notes["rounded"] if x in names]
        for old, new in zip(walk((each.first,)), walk((loop,)), strict=True):
            new.cached.pop(origin, None)
            for lines in (notes["lines"], notes["loops"]):
                if old in lines:
                    lines[new] = lines[old]
        if line := notes["loops"].get(each):
            notes["loops"][loop] = line
        return loop
    return replace(kernel, body=tuple(map(loop_of, kernel.body)), notes=notes)
