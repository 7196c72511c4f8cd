"""Machine code as Python functions: buffers in, new buffers out.

Builds on pool.py, and on recycling.py for large results. Chapter 26.
In JAX: `jaxlib`'s loaded executables (`xla/pjrt`).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.util import caches
from minijax.core import ShapedArray

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
    loops: Sequence[int] = ()  # for each of its loops the place of the equation that it is from


def callable_of(code: Code, num_inputs: int, out_avals: Sequence[ShapedArray],
                describe_loop: Callable[[int], str] = str) -> Callable[..., list[np.ndarray]]:
    """The call as Python text, without a loop unless it is WIDE: that saves half a microsecond.

    `describe_loop` describes the loop of a number, in which a signal ended the kernel.
    """
    if num_inputs + len(out_avals) > WIDE:
        return _wide_call(code, num_inputs, out_avals, describe_loop)
    inputs = [f"x{k}" for k in range(num_inputs)]
    outputs = [f"o{k}" for k in range(len(out_avals))]
    constants = {f"c{k}": value for k, value in enumerate(code.constants)}
    names: dict[str, Any] = constants | {
        "ndarray": np.ndarray, "asarray": np.asarray, "run": code.run, "reraise": host.reraise,
        "where": describe_loop, "asleep": pool.asleep, "wake": pool.wake}
    # Anything but an array has no address to pass on: machine code would read elsewhere.
    lines = [f"if type({x}) is not ndarray: {x} = asarray({x})" for x in inputs]
    if not code.externals.isdisjoint(pool.SHARING):
        lines.append("if asleep: wake()")
    new = {x: (aval.shape, np.dtype(aval.dtype))
           for x, aval in zip(outputs, out_avals, strict=True)}
    if code.workspace:
        new["w"] = (code.workspace,), np.dtype(np.uint8)
    for x, (shape, dtype) in new.items():
        names |= {f"shape_{x}": shape, f"dtype_{x}": dtype, f"new_{x}": _allocator(shape, dtype)}
        lines.append(f"{x} = new_{x}(shape_{x}, dtype_{x})")
    arguments = ", ".join([*inputs, *outputs, *constants, *list(new)[len(outputs):]])
    lines += [f"status = run([{arguments}])", "if status: reraise(status, where)",
              f"return [{', '.join(outputs)}]"]
    source = f"def call({', '.join(inputs)}):\n" + "".join(f"    {x}\n" for x in lines)
    call = caches.written(source, "call", names)
    if isinstance(code.run, QuickCode):
        code.run.callers.add(call)
        call.improve = code.run.improve
    return call


def _allocator(shape: tuple[int, ...], dtype: np.dtype) -> Callable[..., np.ndarray]:
    large = math.prod(shape, start=dtype.itemsize) >= recycling.MIN_POOLED
    return recycling.empty if large else np.empty


def _wide_call(code: Code, num_inputs: int, out_avals: Sequence[ShapedArray],
               describe_loop: Callable[[int], str]) -> Callable[..., list[np.ndarray]]:
    """The call in loops over its buffers: Python would compile their text for too long."""
    run: Any = code.run
    types = [(aval.shape, np.dtype(aval.dtype)) for aval in out_avals]
    new = [(_allocator(*of), *of) for of in types]
    shares = not code.externals.isdisjoint(pool.SHARING)

    def call(*inputs: Any) -> list[np.ndarray]:
        if len(inputs) != num_inputs:
            raise TypeError(f"call() takes {num_inputs} arguments, got {len(inputs)}")
        if shares and pool.asleep:
            pool.wake()
        outs = [empty(shape, dtype) for empty, shape, dtype in new]
        workspace = [recycling.empty((code.workspace,), np.dtype(np.uint8))] * bool(code.workspace)
        status = run([*[x if type(x) is np.ndarray else np.asarray(x) for x in inputs], *outs,
                      *code.constants, *workspace])
        if status:
            host.reraise(status, describe_loop)
        return outs
    return call
