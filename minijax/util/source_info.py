"""Positions in the user's program: frames, the line of an equation, the names of arguments.

Builds on `errors`, `tree_util`.  Chapter 06, *Programs as data*.
In JAX: `jax/_src/source_info_util.py`, `jax/_src/api_util.py`.
"""

import functools
import inspect
import itertools
import linecache
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, NamedTuple, Self

from minijax import tree_util
from minijax.errors import internal_files, is_internal
from minijax.util.lazily import cached_property

# ---------------------------------------------------------------- frames

# The flags of a function whose frame several callers may resume, one after the other.
_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class SourceInfo(NamedTuple):
    """One line of the user's program: where it is, kept cheaply, and its text, read on demand.

    >>> def here():
    ...     return user_frame()
    >>> here().function, here().line
    ('here', 2)
    """

    code: CodeType
    line: int
    instruction: int = -1  # its offset in the code, -1 where unknown
    backward: bool = False  # whether it is the line's backward pass that runs

    def reversed(self) -> Self:
        """The same line, in its backward pass."""
        return self._replace(backward=True)

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_name

    @property
    def column(self) -> int | None:
        """The column at which the expression begins, from 0; None where unknown."""
        if self.instruction < 0:
            return None
        return next(itertools.islice(self.code.co_positions(), self.instruction // 2, None))[2]

    @property
    def text(self) -> str:
        """The line itself, stripped; empty where the file can no longer be read."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def short_file(self) -> str:
        """The file's name without its directories; `<cell>` for a cell of a notebook."""
        folder, _, name = self.file.rpartition(os.sep)
        # Jupyter's kernel names a cell's file by a hash of its text, in a folder of its own.
        return "<cell>" if folder.rpartition(os.sep)[2].startswith("ipykernel_") else name

    @property
    def summary(self) -> str:
        """Short form, as in a comment beside an equation: `file.py:12 (f)`."""
        return f"{self.short_file}:{self.line} ({self.function})"

    @property
    def place(self) -> str:
        """Long form, as in an error message: path, line, column, qualified name."""
        column = f":{self.column}" if self.column else ""
        return f"{self.file}:{self.line}{column} ({self.code.co_qualname})"

    def __repr__(self) -> str:
        return f"SourceInfo({self.summary})"


def source_of(frame: FrameType) -> SourceInfo:
    """The line that a frame is running."""
    return SourceInfo(frame.f_code, frame.f_lineno, frame.f_lasti)


def frames_outside() -> Iterator[FrameType]:
    """The frames outside the package on the calling thread's stack, from the innermost on."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        # `is_internal`, mostly without the call
        if not internal_files.get(file := frame.f_code.co_filename) and not is_internal(file):
            yield frame
        frame = frame.f_back


def user_frame() -> SourceInfo | None:
    """The innermost line outside the package on the calling thread's stack, or None."""
    return next(map(source_of, frames_outside()), None)


def user_frames(limit: int, memo: list[Any] | None = None) -> tuple[SourceInfo, ...]:
    """The innermost lines outside the package, at most `limit`, the innermost last.

    `memo` keeps the others while the innermost function runs: no generator, its callers wait.
    """
    memo = [] if memo is None else memo
    outside = frames_outside()
    if limit < 1 or (innermost := next(outside, None)) is None:
        return ()
    if memo[:2] != [innermost, limit] or innermost.f_code.co_flags & _RESUMED:
        frames = [innermost, *itertools.islice(outside, limit - 1)]
        # At `<module>` the program begins; below lies what runs it, such as a notebook.
        last = [*(frame.f_code.co_name for frame in frames), "<module>"].index("<module>")
        memo[:] = innermost, limit, [*map(source_of, frames[last:0:-1])]
    return *memo[2], source_of(innermost)


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

Names = tuple[str | None, ...]


class Parameters(NamedTuple):
    """The names of a callable's parameters; none are known where it has no signature."""

    positional: Sequence[str] = ()
    by_keyword: Sequence[str] = ()
    rest: str = ""  # collects what is given by position besides, as `*args` does
    other: str = "kwargs"  # collects what is given by keyword besides


@dataclass(frozen=True)
class DebugInfo:
    """The function of a transformation, its place in the source, and its arguments' names.

    `names` is the tuple of the flat arguments' names, or a function that computes it when an
    error or a printer asks; `arg_names` is the tuple. The function itself is not kept alive.
    """

    traced_for: str
    func_name: str
    func_filename: str | None = None
    func_lineno: int | None = None
    names: Names | Callable[[], Names] = field(default=(), repr=False, compare=False)

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


def describe(fun: Callable, args: Sequence, kwargs: Mapping[str, Any], traced_for: str,
             static_argnums: Iterable[int] = (), static_argnames: Iterable[str] = ()) -> DebugInfo:
    """Say what a transformation works on, for error messages and printers.

    Names follow the order in which `(args, kwargs)` flattens, static arguments left out.

    >>> def loss(params, *batch, scale=1.0):
    ...     return scale
    >>> info = describe(loss, ({"w": 1.0, "b": 2.0}, 3.0), {"scale": 4.0}, "grad")
    >>> info.arg_names
    ("params['b']", "params['w']", 'batch[0]', 'scale')
    """
    parameters, count = parameters_of(fun), len(args)
    static_places = {place % count for place in static_argnums if -count <= place < count}
    names = [position_name(parameters, place) for place in range(count)]
    places = [place for place, name in enumerate(names)
              if place not in static_places and name not in {*static_argnames}]
    dynamic = {key: value for key, value in kwargs.items() if key not in {*static_argnames}}
    tree = tree_util.tree_structure((tuple(args[place] for place in places), dynamic))
    name, code = identify(fun)
    return DebugInfo(
        traced_for, name, code.co_filename if code else None,
        code.co_firstlineno if code else None,
        functools.partial(_argument_names, tree, [names[place] for place in places], parameters,
                          tree_util.keystr if traced_for == "vmap" else path_name))


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
    name = getattr(fun, "__name__", None)
    if code is None and not isinstance(name, str):
        code = getattr(type(fun).__call__, "__code__", None)
    name = name if isinstance(name, str) and name else type(fun).__name__
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


def parameters_of(fun: Callable[..., Any]) -> Parameters:
    """The names of a callable's parameters."""
    if inspect.isfunction(fun) and not vars(fun).keys() & {"__wrapped__", "__signature__"}:
        code = fun.__code__  # `inspect.signature` is slow
        names, rest, other = inspect.getargs(code)
        return Parameters(names[:code.co_argcount], names[code.co_posonlyargcount:], rest or "",
                          other or "kwargs")
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (ValueError, TypeError):
        return Parameters()
    only, both, rests, keyword, others = (
        [p.name for p in parameters if p.kind == kind] for kind in range(5))
    return Parameters(only + both, both + keyword, *(rests or [""]), *(others or ["kwargs"]))


def position_name(parameters: Parameters, place: int) -> str:
    """The name of a positional argument in the signature."""
    count = len(parameters.positional)
    if place < count:
        return parameters.positional[place]
    return f"{parameters.rest}[{place - count}]" if parameters.rest else f"args[{place}]"


def path_name(path: tuple) -> str:
    """A path as Python would write it, in which the children of any node have numbers."""
    return "".join(f"[{key.key}]" if isinstance(key, tree_util.FlattenedIndexKey) else str(key)
                   for key in path)


def _argument_names(tree: tree_util.PyTreeDef, roots: Sequence[str], parameters: Parameters,
                    name_of: Callable[[tuple], str]) -> Names:
    """One name per leaf of `(args, kwargs)`: its argument's, then the path inside the argument."""
    try:
        paths = _leaf_paths(tree)
    except Exception:  # a user's class may refuse the numbers that stand for its leaves
        return (None,) * tree.num_leaves
    names = []
    for group, root, *rest in paths:
        if group.idx == 0:
            name = roots[root.idx]
        else:
            known = root.key in parameters.by_keyword
            name = root.key if known else f"{parameters.other}[{root.key!r}]"
        names.append(name + name_of(tuple(rest)))
    return tuple(names)


def result_paths(tree: tree_util.PyTreeDef,
                 name_of: Callable[[tuple], str] = tree_util.keystr) -> list[str]:
    """The paths of the leaves of a function's result, such as `[0]['w']`."""
    return [name_of(path) for path in _leaf_paths(tree)]


def _leaf_paths(tree: tree_util.PyTreeDef) -> list[tuple[Any, ...]]:
    """The key path of every leaf. The tree is rebuilt around numbers: it holds no leaves."""
    numbered = tree_util.tree_unflatten(tree, range(tree.num_leaves))
    return [path for path, _ in tree_util.tree_flatten_with_path(numbered)[0]]
