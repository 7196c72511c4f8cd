"""Machine code as Python functions: buffers in, new buffers out.

Stands on pool.py, and on recycling.py for large results. Chapter 26.
In JAX: `jaxlib`'s loaded executables (`xla/pjrt`).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import ShapedArray

from . import host, pool, recycling


class Code(NamedTuple):
    """Machine code in memory, and what it is passed besides inputs and outputs."""

    run: Callable[[list[np.ndarray]], int]
    key: str  # by which it is on disk
    externals: frozenset[str]  # that it calls
    constants: Sequence[np.ndarray]
    workspace: int  # bytes


def callable_of(name: str, code: Code, takes: int, gives: Sequence[ShapedArray]
                ) -> Callable[..., list[np.ndarray]]:
    """The call as Python text without a loop: half a microsecond sooner than with one."""
    inputs = [f"x{k}" for k in range(takes)]
    outputs = [f"o{k}" for k in range(len(gives))]
    constants = {f"c{k}": value for k, value in enumerate(code.constants)}
    names: dict[str, Any] = constants | {
        "ndarray": np.ndarray, "asarray": np.asarray, "empty": np.empty,
        "large": recycling.empty, "run": code.run, "reraise": host.reraise, "uint8": np.uint8,
        "take": recycling.take, "give_back": recycling.give_back, "size": code.workspace,
        "asleep": pool.asleep, "wake": pool.wake}
    # Anything but an array has no address to pass on: machine code would read elsewhere.
    lines = [f"if type({x}) is not ndarray: {x} = asarray({x})" for x in inputs]
    if "threads" in code.externals:
        lines.append("if asleep: wake()")
    for k, aval in enumerate(gives):
        names[f"shape{k}"], names[f"dtype{k}"] = aval.shape, np.dtype(aval.dtype)
        is_large = aval.size * np.dtype(aval.dtype).itemsize >= recycling.LARGE
        lines.append(f"o{k} = {'large' if is_large else 'empty'}(shape{k}, dtype{k})")
    work = ["w"] if code.workspace else []
    is_large = code.workspace >= recycling.LARGE
    if work:
        lines.append("room = take(size); w = room.memory" if is_large else "w = empty(size, uint8)")
    lines += [f"status = run([{', '.join([*inputs, *outputs, *constants, *work])}])",
              *(["give_back(room)"] if is_large else []),
              "if status: reraise()", f"return [{', '.join(outputs)}]"]
    source = f"def call({', '.join(inputs)}):\n" + "".join(f"    {x}\n" for x in lines)
    exec(compile(source, f"<minijax call of {name}>", "exec"), names)
    return names.pop("call")  # which would keep itself alive
