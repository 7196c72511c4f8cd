"""Machine code as Python functions: buffers in, new buffers out.

Builds on pool.py, and on recycling.py for large results. Chapter 26.
In JAX: `jaxlib`'s loaded executables (`xla/pjrt`).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.util import caches
from minijax.core import Avals

from . import host, pool, recycling
from .tiers import QuickCode


WIDE = 512  # so many arrays: the call is in loops


class Code(NamedTuple):
    """Machine code in memory, with its constants and workspace size."""

    run: Callable[[list[np.ndarray]], int] | None  # none on disk
    key: str  # its key in the disk cache
    externals: frozenset[str]  # that it calls
    constants: Sequence[np.ndarray]
    workspace: int  # bytes


def callable_of(code: Code, num_inputs: int, out_avals: Avals,
                describe_loop: Callable[[int], str] = str) -> Callable[..., list[np.ndarray]]:
    """The call as Python text, without a loop unless it is WIDE: that saves half a microsecond.
    Python would compile the text of a wide one for too long.

    `describe_loop` describes the loop of a number, in which a signal ended the kernel.
    """
    names: dict[str, Any] = {
        "ndarray": np.ndarray, "asarray": np.asarray, "run": code.run, "reraise": host.reraise,
        "where": describe_loop, "asleep": pool.asleep, "wake": pool.wake}

    def allocated(x: str, shape: tuple[int, ...], dtype: np.dtype) -> str:
        """The line that allocates an array."""
        large = math.prod(shape, start=dtype.itemsize) >= recycling.MIN_POOLED
        names.update({f"shape_{x}": shape, f"dtype_{x}": dtype,
                      f"new_{x}": recycling.empty if large else np.empty})
        return f"{x} = new_{x}(shape_{x}, dtype_{x})"

    types = [(aval.shape, np.dtype(aval.dtype)) for aval in out_avals]
    # Anything but an array has no address to pass on: machine code would read elsewhere.
    parameters = inputs = [f"x{k}" for k in range(num_inputs)]
    if num_inputs + len(out_avals) > WIDE:
        inputs, outputs, constants = ["*inputs"], ["*outputs"], ["*constants"]
        names |= {"types": types, "empty": recycling.empty, "constants": code.constants}
        lines = ["inputs = [x if type(x) is ndarray else asarray(x) for x in ["
                 f"{', '.join(parameters)}]]",
                 "outputs = [empty(shape, dtype) for shape, dtype in types]"]
    else:
        outputs = [f"o{k}" for k in range(len(types))]
        constants = [f"c{k}" for k in range(len(code.constants))]
        names |= zip(constants, code.constants, strict=True)
        lines = [f"if type({x}) is not ndarray: {x} = asarray({x})" for x in inputs]
        lines += [allocated(x, *of) for x, of in zip(outputs, types, strict=True)]
    if not code.externals.isdisjoint(pool.SHARING):
        lines.append("if asleep: wake()")
    arguments = [*inputs, *outputs, *constants]
    if code.workspace:
        lines.append(allocated("w", (code.workspace,), np.dtype(np.uint8)))
        arguments.append("w")
    lines += [f"status = run([{', '.join(arguments)}])", "if status: reraise(status, where)",
              f"return [{', '.join(outputs)}]"]
    source = f"def call({', '.join(parameters)}):\n" + "".join(f"    {x}\n" for x in lines)
    call = caches.written(source, "call", names)
    if isinstance(code.run, QuickCode):
        code.run.callers.add(call)
        call.improve = code.run.improve
    return call
