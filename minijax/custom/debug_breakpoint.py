"""A breakpoint in a compiled program, `debug.breakpoint`, and its prompt.

Builds on `custom.debug_callback`.  Chapter 12.  In JAX: `jax/_src/debugger/`.
"""

import cmd
import inspect
import itertools
import pprint
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, Self

from minijax import core, tree_util
from minijax.util import source_info
from minijax.custom.debug_callback import debug_callback
from minijax.custom.host_callback import pure_callback
from minijax.core.jaxpr import merge_lists, partition_list
from minijax.placement.meshes import Sentinel
from minijax.primitives.convert import stop_gradient


@dataclass(frozen=True)
class DebuggerFrame:
    """A frame of the user's code, as it was when the program was traced."""

    filename: str
    lineno: int
    source: Sequence[str]  # the lines of its function
    offset: int | None  # the index of its line there; None without source
    locals: dict[str, Any]

    @classmethod
    def of(cls, frame: FrameType) -> Self:
        try:
            lines, start = inspect.getsourcelines(frame)
            source, offset = "".join(lines).split("\n"), frame.f_lineno - max(start, 1)
        except OSError:
            source, offset = [], -1
        has_source = 0 <= offset < len(source)
        return cls(frame.f_code.co_filename, frame.f_lineno, source if has_source else [],
                   offset if has_source else None, _trees(frame.f_locals))

    def lines(self, around: int) -> list[str]:
        """The lines around the current one, which is marked."""
        if self.offset is None:
            return []
        first, last = max(self.offset - 1 - around, 0), self.offset + around + 1
        return [("->  " if i == self.offset else "    ") + line
                for i, line in enumerate(self.source[first:last], first)]


class Prompt(cmd.Cmd):
    """The prompt: it evaluates commands and expressions in the current frame."""

    prompt = "(jdb) "
    intro = "Entering jdb:"

    def __init__(self, frames: Sequence[DebuggerFrame], stdin: Any = None, stdout: Any = None,
                 completekey: str = "tab"):
        super().__init__(completekey, stdin, stdout)
        self.use_rawinput = stdin is None
        self.frames, self.at = frames, 0

    def say(self, *lines: str) -> None:
        print("\n".join(lines), file=self.stdout)

    def say_value(self, expression: str, text: Callable[[Any], str] = repr) -> None:
        try:
            self.say(text(eval(expression, {}, dict(self.frames[self.at].locals))))
        except Exception as error:
            self.say("*** " + traceback.format_exception_only(error)[-1].strip())

    def say_where(self, around: int = 2) -> None:
        frame = self.frames[self.at]
        self.say(f"> {frame.filename}({frame.lineno})", *frame.lines(around))

    def do_p(self, line: str) -> None:
        """p expression: evaluates and prints it"""
        self.say_value(line)

    default = do_p  # where a line begins with no command

    def do_pp(self, arg: str) -> None:
        """pp expression: evaluates it, and prints it in lines of a good length"""
        self.say_value(arg, pprint.pformat)

    def do_up(self, _: str) -> None:
        """u(p): goes to the frame that called this one"""
        self._go(1, "At topmost frame.")

    def do_down(self, _: str) -> None:
        """d(own): goes to the frame that this one called"""
        self._go(-1, "At bottommost frame.")

    def _go(self, step: int, refusal: str) -> None:
        if 0 <= self.at + step < len(self.frames):
            self.at += step
        else:
            self.say(refusal)
        self.say_where()

    def do_list(self, _: str) -> None:
        """l(ist): the lines around this one"""
        self.say_where(5)

    def do_where(self, _: str) -> None:
        """w(here), bt: all frames, the innermost last"""
        self.say("Traceback:", *(
            line for frame in reversed(self.frames) for line in (
                f'  File "{frame.filename}", line {frame.lineno}',
                "    <no source>" if frame.offset is None else
                f"    {frame.source[frame.offset].strip()}")))

    def do_continue(self, _: str) -> bool:
        """c(ont(inue)): goes on with the program"""
        return True

    def do_quit(self, _: str) -> None:
        """q(uit), exit: ends the process"""
        sys.exit(0)

    do_u, do_d, do_l, do_w, do_bt = do_up, do_down, do_list, do_where, do_where
    do_c = do_cont = do_continue
    do_q = do_EOF = do_exit = do_quit


# ── As users call it ─────────────────────────────────────────────────────────────────────────

def breakpoint(*, backend: str | None = None, filter_frames: bool = True,
               num_frames: int | None = None, ordered: bool = False, token: Any = None,
               **kwargs: Any) -> Any:
    """Stop the program here when it runs, and open a prompt with the values here.

    At the prompt an expression shows its value; ``u`` and ``d`` go from frame to frame, ``l`` and
    ``bt`` show lines, ``c`` goes on and ``q`` ends the process.

    Args:
      backend: accepted for JAX's sake; there is one, in the terminal.
      filter_frames: leave out the frames of this package.
      num_frames: the number of frames at the prompt; all of them if None.
      ordered: accepted for JAX's sake; breakpoints are always in order here.
      token: arrays that are returned as they are; the program stops when they are computed, and
        only if the returned arrays are used.
      kwargs: ``stdin`` and ``stdout`` of the prompt.

    Returns:
      The token.

    Raises:
      ValueError: for `ordered` together with a token.

    >>> import io, sys
    >>> import minijax as jax
    >>> @jax.jit
    ... def f(x):
    ...     y = x * 2
    ...     breakpoint(stdin=io.StringIO("y + 1\\nc\\n"), stdout=sys.stdout)
    ...     return y
    >>> f(3.0)
    Entering jdb:
    (jdb) Array(7., dtype=float32)
    (jdb) Array(6., dtype=float32, weak_type=True)
    """
    if token is not None and ordered:
        raise ValueError("`ordered` and `token` are mutually exclusive arguments.")
    stack = (list(source_info.frames_outside()) if filter_frames else
             [info.frame for info in inspect.stack()[1:]])
    frames = [DebuggerFrame.of(frame) for frame in itertools.islice(stack, num_frames)]
    leaves, tree = tree_util.tree_flatten([frame.locals for frame in frames])
    is_traced = [isinstance(x, core.Tracer) for x in leaves]
    fixed, traced = partition_list(leaves, is_traced)

    def stop(*values: Any) -> None:
        variables = tree_util.tree_unflatten(tree, merge_lists((fixed, values), is_traced))
        Prompt([replace(frame, locals=each) for frame, each in zip(frames, variables, strict=True)],
               **kwargs).cmdloop()
    if token is None:
        debug_callback(stop, *traced, ordered=ordered)
        return None

    def stop_and_return(token: Any, *values: Any) -> Any:
        stop(*values)
        return token
    token, traced = tree_util.tree_map(stop_gradient, (token, traced))
    return pure_callback(stop_and_return, tree_util.tree_map(core.typeof, token), token, *traced)


def _trees(variables: Mapping[str, Any]) -> dict[str, Any]:
    """The variables, without those that cannot be flattened."""
    trees = {}
    for name, value in variables.items():
        try:
            tree_util.tree_flatten(value)
        except Exception:
            value = Sentinel("<cant_flatten>")
        trees[name] = value
    return trees
