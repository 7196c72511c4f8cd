"""The key of a program in the disk cache: a digest of all that its machine code depends on.

Builds on simplify.py. Chapter 26. In JAX: `jax/_src/cache_key.py`, which digests a module of MLIR.
"""

import enum
import hashlib
import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from minijax.util import caches
from minijax import config
from minijax.core import Array, Primitive, ShapedArray
from minijax.dtypes import KeyType
from minijax.core.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal, Var, subjaxprs

from .simplify import CALLS, buffer_of


class Unnameable(Exception):
    """A part of a program has only an address: a Python function, a user's primitive."""


def digest_of(closed: ClosedJaxpr) -> str | None:
    """The digest of a program: equal in every process for equal operations, types and constants.

    None if a part of the program cannot be named.
    """
    try:
        return hashed(canonical((package(), config.trace_key(), closed)))
    except Unnameable:
        return None


def hashed(value: Any) -> str:
    """The SHA-256 digest of a value in canonical form."""
    return hashlib.sha256(repr(value).encode()).hexdigest()


@cache
def package() -> str:
    """The version of the compiler: the sizes and times of this package's files.

    Raises:
      Unnameable: where it is not in files, or they have changed since they were loaded.
    """
    files = [os.path.join(folder, name) for folder, _, names in os.walk(Path(__file__).parents[1])
             for name in names if name.endswith(".py")]
    stats = [(name, os.stat(name)) for name in sorted(files)]
    if max((stat.st_mtime for _, stat in stats), default=np.inf) > caches.loaded_at:
        unnameable()
    return hashed([sys.version, np.__version__, ml_dtypes.__version__,
                   *((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)])


def unnameable() -> str:
    """Replaces `package` where programs cannot be named.

    Raises:
      Unnameable: always.
    """
    raise Unnameable


def constants_of(closed: ClosedJaxpr) -> Iterator[np.ndarray]:
    """The constants of a program and of those inside it."""
    yield from map(buffer_of, closed.consts)
    for eqn in closed.eqns:
        for inner in subjaxprs(eqn.params):
            yield from constants_of(inner)


# -- canonical forms -------------------------------------------------------------------------------


def canonical(x: Any) -> Any:
    """The canonical form of a value, whose text is the same for equal values only.

    >>> import minijax
    >>> f = minijax.make_jaxpr(lambda x: x + 1.0)
    >>> canonical(f(2.0)) == canonical(f(3.0)) != canonical(f(2))
    True
    """
    kind = type(x)
    if kind in _AS_THEY_ARE:
        return x
    match x:
        case tuple() | list():
            return kind.__qualname__, *map(canonical, x)
        case ShapedArray():
            return kind.__name__, _type_text(x)
        case np.dtype() | KeyType() | enum.Enum():
            return kind.__name__, str(x)
        case Primitive() if x in _ours(len(sys.modules)) and x.as_made.items() <= vars(x).items():
            return x.name
        case ClosedJaxpr():
            return x.derived(("words",), lambda: hashed(_program(x)))
        case float() | complex() | np.generic() | np.ndarray() | Array():
            value = buffer_of(x)
            if not value.dtype.hasobject:
                words = value.tobytes()
                words = words if value.ndim == 0 else hashlib.sha256(words).digest()
                return kind.__name__, _type_text(value.dtype), value.shape, words
    raise Unnameable


_AS_THEY_ARE = frozenset({type(None), bool, int, str})
_type_text = caches.remembered(maxsize=4096)(str)


@caches.remembered(maxsize=1)
def _ours(modules: int) -> set[Primitive]:
    """The primitives of the package, cached by the number of loaded modules."""
    return set().union(*[_defined_in(name, len(vars(module))) for name, module
                         in [*sys.modules.items()] if name.startswith("minijax.")])


@caches.remembered(maxsize=1024)
def _defined_in(module: str, names: int) -> set[Primitive]:
    """The primitives of a module, cached by the number of its names: it may still be loading."""
    return {x for x in [*vars(sys.modules[module]).values()] if isinstance(x, Primitive)}


def _program(closed: ClosedJaxpr) -> tuple:
    """The canonical form of a program: variables are numbered in the order of definition."""
    jaxpr = closed.jaxpr
    numbers: dict[Any, int] = {}
    named = cache(canonical)  # for types and primitives, which occur more than once

    def define(variables: Sequence[Var]) -> list:
        numbers.update(zip(variables, itertools.count(len(numbers))))
        return [named(v.aval) for v in variables]

    def use(atoms: Sequence[Atom]) -> list:
        return [(named(x.aval), canonical(x.value)) if isinstance(x, Literal) else numbers[x]
                for x in atoms]

    def equation(eqn: JaxprEqn) -> tuple:
        params = eqn.params
        if called := CALLS.get(eqn.primitive.name):
            params = {called: params.get(called)}  # the others have no effect
        words = [(name, canonical(params[name])) for name in sorted(params)
                 if name != "computation"]  # a function, whose program is another parameter
        return named(eqn.primitive), use(eqn.invars), words, define(eqn.outvars)

    inputs = define((*jaxpr.constvars, *jaxpr.invars)), canonical(closed.consts)
    return inputs, [*map(equation, jaxpr.eqns)], use(jaxpr.outvars)
