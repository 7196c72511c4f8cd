"""Where in the user's program are we: frames, the line of an equation, the names of arguments.

Stands on tracebacks and tree_util. Explained in chapter 06.
In JAX: jax/_src/source_info_util.py and api_util.py.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
import itertools
import linecache
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

from minijax import caches, context, tree_util
from minijax.errors import internal_files, is_internal
from minijax.lazily import cached_property
from minijax.tracebacks import is_user_frame

T = TypeVar("T")

# ---------------------------------------------------------------- frames


class SourceInfo:
    """One line of the user's program: where it is, kept cheaply, and its text, read on demand.

    >>> def here():
    ...     return user_frame()
    >>> here().function, here().line
    ('here', 2)
    """

    __slots__ = ("backward", "code", "instruction", "line")

    def __init__(self, code: CodeType, line: int, instruction: int = -1,
                 backward: bool = False) -> None:
        self.code = code
        self.line = line
        self.instruction = instruction  # its offset in the code, -1 where unknown
        self.backward = backward  # whether it is the line's backward pass that runs

    def reversed(self) -> SourceInfo:
        """The same line, in its backward pass."""
        return SourceInfo(self.code, self.line, self.instruction, True)

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_name

    @property
    def column(self) -> int | None:
        """Where on the line the running expression begins, from 0; None where unknown."""
        if self.instruction < 0:
            return None
        position = next(itertools.islice(self.code.co_positions(), self.instruction // 2, None))
        return position[2]

    @property
    def text(self) -> str:
        """The line itself, stripped; empty where the file can no longer be read."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def short_file(self) -> str:
        """The file's name without its directories; `<cell>` for a cell of a notebook."""
        folder, name = os.path.split(self.file)
        # Jupyter's kernel names a cell's file by a hash of its text, in a folder of its own.
        return "<cell>" if os.path.basename(folder).startswith("ipykernel_") else name

    @property
    def summary(self) -> str:
        """Short form, as in a comment beside an equation: `file.py:12 (f)`."""
        return f"{self.short_file}:{self.line} ({self.function})"

    @property
    def place(self) -> str:
        """Long form, as in an error message: the whole path, line, column and function."""
        column = "" if self.column is None else f":{self.column}"
        return f"{self.file}:{self.line}{column} ({self.function})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SourceInfo):
            return NotImplemented
        return (self.code is other.code and self.line == other.line
                and self.instruction == other.instruction and self.backward == other.backward)

    def __hash__(self) -> int:
        return hash((id(self.code), self.line, self.instruction, self.backward))

    def __repr__(self) -> str:
        return f"SourceInfo({self.summary})"


def user_frame() -> SourceInfo | None:
    """The innermost line outside the package on the calling thread's stack, or None."""
    frame: FrameType | None = sys._getframe(1)
    known = internal_files
    while frame is not None:
        filename = frame.f_code.co_filename
        internal = known.get(filename)
        if internal is None:
            internal = is_internal(filename)
        if not internal:
            return SourceInfo(frame.f_code, frame.f_lineno, frame.f_lasti)
        frame = frame.f_back
    return None


def user_frames(limit: int) -> tuple[SourceInfo, ...]:
    """The innermost lines outside the package, at most `limit`, the innermost last."""
    frame: FrameType | None = sys._getframe(1)
    found: list[SourceInfo] = []
    known = internal_files
    while frame is not None and len(found) < limit:
        internal = known.get(frame.f_code.co_filename)  # `is_user_frame` without the call
        if internal is False or internal is None and is_user_frame(frame):
            found.append(SourceInfo(frame.f_code, frame.f_lineno, frame.f_lasti))
            if frame.f_code.co_name == "<module>":
                break  # here the program begins; below lies what runs it, such as a notebook
        frame = frame.f_back
    return tuple(reversed(found))


# ---------------------------------------------------------------- steps


class Step(NamedTuple):
    """One round of what is done many times: an iteration of a loop, an example of a batch.

    >>> print(Step("scan", 3, 10), "and", Step("vmap", 0, 4, (2,)))
    iteration 3 of a scan of 10 and example 0 of a vmap over 4 (and 2)
    """

    kind: str  # "scan", "while_loop", "vmap"
    number: int  # from 0
    of: int | None = None  # how many there are, where that is known
    others: tuple[int, ...] = ()  # which of them are like it

    def __str__(self) -> str:
        if self.kind == "vmap":
            shown = ", ".join(map(str, self.others[:5])) + (", …" if self.others[5:] else "")
            also = f" (and {shown})" if shown else ""
            return f"example {self.number} of a vmap over {self.of}{also}"
        of = "" if self.of is None else f" of {self.of}"
        return f"iteration {self.number} of a {self.kind}{of}"


# The steps we are in while loops and batches run piece by piece, the outermost first.
current_steps: contextvars.ContextVar[tuple[Step, ...]] = contextvars.ContextVar(
    "minijax_current_steps", default=())


def in_step(step: Step, f: Callable[..., T], *args: Any, outside: int | None = None,
            **kwargs: Any) -> T:
    """`f(*args, **kwargs)`, with the step known to whoever asks where we are.

    Args:
      outside: how many of the steps we are in are around this one; None: all of them.

    >>> in_step(Step("scan", 3, 10), lambda: list(map(str, current_steps.get())))
    ['iteration 3 of a scan of 10']
    """
    steps = current_steps.get()
    outer = len(steps) if outside is None else outside
    return context.with_values({current_steps: (*steps[:outer], step, *steps[outer:])},
                               f, *args, **kwargs)


# ---------------------------------------------------------------- errors


PLACE_NOTE = "minijax: in `"  # how a note begins that names the user's line


def add_user_note(exc: BaseException, source: SourceInfo | None = None) -> None:
    """Add to an exception, once, a note with the user's function, file and line.

    The line is that of `source` (the equation that failed), or else the caller's own.

    >>> error = TypeError("shapes differ")
    >>> add_user_note(error)
    >>> add_user_note(error)
    >>> len(error.__notes__)
    1
    """
    if any(note.startswith(PLACE_NOTE) for note in getattr(exc, "__notes__", ())):
        return
    source = source or user_frame()
    if source is not None:
        place = f"{PLACE_NOTE}{source.function}`, {source.short_file}:{source.line}"
        exc.add_note(f"{place}: {source.text}" if source.text else place)


# ---------------------------------------------------------------- functions and their arguments

Parameters = tuple[inspect.Parameter, ...]
Names = tuple[str | None, ...]


@dataclass(frozen=True)
class DebugInfo:
    """What a transformation works on: the function, where it stands, its arguments' names.

    `names` is the tuple of the flat arguments' names, or a function that computes it when an
    error or a printer asks; `arg_names` is the tuple. The function itself is not kept alive.
    """

    traced_for: str
    func_name: str
    func_filename: str | None = None
    func_lineno: int | None = None
    names: Names | Callable[[], Names] = field(default=(), repr=False, compare=False)
    result_paths: tuple[str, ...] | None = field(default=None, compare=False)

    @cached_property
    def arg_names(self) -> Names:
        """One per flat argument, such as `x`, `params['w']`, `args[0]`; None where unknown."""
        return self.names() if callable(self.names) else self.names

    @property
    def func_src_info(self) -> str:
        """The function and its place, `f at file.py:12`."""
        if self.func_filename is None:
            return self.func_name
        return f"{self.func_name} at {self.func_filename}:{self.func_lineno}"

    def with_results(self, tree: tree_util.PyTreeDef) -> DebugInfo:
        """The same with `result_paths`, the paths of the leaves of the function's result.

        A path begins with `result`, such as `result[0]['w']`.
        """
        paths = tuple("result" + tree_util.keystr(path) for path in _leaf_paths(tree))
        return replace(self, result_paths=paths)


def describe(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    traced_for: str,
    static_argnums: Iterable[int] = (),
    static_argnames: Iterable[str] = (),
) -> DebugInfo:
    """Say what a transformation works on, for error messages and printers.

    Names follow the order in which `(args, kwargs)` flattens, static arguments left out.

    >>> def loss(params, *batch, scale=1.0):
    ...     return scale
    >>> info = describe(loss, ({"w": 1.0, "b": 2.0}, 3.0), {"scale": 4.0}, "grad")
    >>> info.arg_names
    ("params['b']", "params['w']", 'batch[0]', 'scale')
    """
    parameters = _parameters(fun)
    static_names = frozenset(static_argnames)
    count = len(args)
    static_places = {place % count for place in static_argnums if -count <= place < count}
    positions = [_position_name(parameters, place) for place in range(count)]
    places = [
        place
        for place in range(count)
        if place not in static_places and positions[place] not in static_names
    ]
    dynamic = {key: value for key, value in kwargs.items() if key not in static_names}
    roots = [positions[place] for place in places]
    tree = tree_util.tree_structure((tuple(args[place] for place in places), dynamic))
    name, code = identify(fun)
    return DebugInfo(
        traced_for,
        name,
        code.co_filename if code else None,
        code.co_firstlineno if code else None,
        functools.partial(_argument_names, tree, roots, parameters),
    )


def function_name(fun: Callable[..., Any]) -> str:
    """The name by which messages call a function.

    >>> import functools
    >>> function_name(functools.partial(max, 1)), function_name(lambda x: x)
    ('max', '<lambda>')
    """
    return identify(fun)[0]


def identify(fun: Callable[..., Any]) -> tuple[str, CodeType | None]:
    """A callable's name and, where it was written in Python, its code."""
    fun = _unwrap(fun)
    code = getattr(fun, "__code__", None)
    if code is None and not hasattr(fun, "__name__"):
        code = getattr(type(fun).__call__, "__code__", None)
    name = getattr(fun, "__name__", None) or type(fun).__name__
    return name, code if isinstance(code, CodeType) else None


def _unwrap(fun: Any) -> Any:
    """The function under any `functools.partial` and `functools.wraps`."""
    for _ in range(1000):  # a cycle of `__wrapped__` must not hang an error message
        if isinstance(fun, functools.partial):
            fun = fun.func
        elif callable(inner := getattr(fun, "__wrapped__", None)):
            fun = inner
        else:
            return fun
    return fun


def _parameters(fun: Callable[..., Any]) -> Parameters | None:
    """A callable's parameters; None where it has no signature (some builtins)."""
    code = getattr(fun, "__code__", None)
    if inspect.isfunction(fun) and not hasattr(fun, "__wrapped__") and code is not None:
        return _code_parameters(code)
    try:
        return tuple(inspect.signature(fun).parameters.values())
    except (ValueError, TypeError):
        return None


# Bounded, so that a program that makes functions for ever does not keep all their code.
@caches.remembered(maxsize=1024)
def _code_parameters(code: CodeType) -> Parameters:
    """The parameters of a plain function, from its code alone (`inspect.signature` is slow)."""
    kinds = inspect.Parameter
    positional, keyword = code.co_argcount, code.co_kwonlyargcount
    names = iter(code.co_varnames)
    found = [kinds(next(names), kinds.POSITIONAL_OR_KEYWORD) for _ in range(positional)]
    by_keyword = [kinds(next(names), kinds.KEYWORD_ONLY) for _ in range(keyword)]
    if code.co_flags & inspect.CO_VARARGS:
        found.append(kinds(next(names), kinds.VAR_POSITIONAL))
    found += by_keyword
    if code.co_flags & inspect.CO_VARKEYWORDS:
        found.append(kinds(next(names), kinds.VAR_KEYWORD))
    return tuple(found)


def _position_name(parameters: Parameters | None, place: int) -> str:
    """What the signature calls the argument at a place."""
    for before, parameter in enumerate(parameters or ()):
        if parameter.kind is parameter.VAR_POSITIONAL:
            return f"{parameter.name}[{place - before}]"
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
            break
        if before == place:
            return parameter.name
    return f"args[{place}]"


def _keyword_name(parameters: Parameters | None, key: str) -> str:
    """What the signature calls the argument given by a keyword."""
    collector = "kwargs"
    for parameter in parameters or ():
        if parameter.name == key and parameter.kind is not parameter.POSITIONAL_ONLY:
            return key
        if parameter.kind is parameter.VAR_KEYWORD:
            collector = parameter.name
    return f"{collector}[{key!r}]"


def _argument_names(
    tree: tree_util.PyTreeDef, roots: Sequence[str], parameters: Parameters | None
) -> Names:
    """One name per leaf of `(args, kwargs)`: its argument's, then the path inside the argument."""
    try:
        paths = _leaf_paths(tree)
    except Exception:  # a user's class may refuse the numbers that stand for its leaves
        return (None,) * tree.num_leaves
    names = []
    for path in paths:
        group, root, *rest = path
        if group.idx == 0:
            name = roots[root.idx]
        else:
            name = _keyword_name(parameters, root.key)
        names.append(name + tree_util.keystr(tuple(rest)))
    return tuple(names)


def _leaf_paths(tree: tree_util.PyTreeDef) -> list[tuple[Any, ...]]:
    """The key path of every leaf. The tree is rebuilt around numbers: it holds no leaves."""
    numbered = tree_util.tree_unflatten(tree, range(tree.num_leaves))
    return [path for path, _ in tree_util.tree_flatten_with_path(numbered)[0]]
