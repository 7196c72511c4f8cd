"""How a block names what stands elsewhere: loops written by hand, a program of other primitives.

Stands on `stage`, and on `lowering.kernels`, which is loaded when it is first needed.
In JAX: the name of a custom call; `mlir.lower_fun`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import caches, config, core, jaxpr, lazily
from minijax.core import Array, ArrayImpl, ShapedArray
from minijax.stage import stage

Program = Callable[..., Array]  # (*arrays, **params)


def kernel(name: str) -> Callable[..., None]:
    """The loops of that name which are written by hand: a `loop` or `library` rule."""
    def rule(b: Any, outputs: Sequence, operands: Sequence, **params: Any) -> None:
        with lazily.importing:
            f = getattr(importlib.import_module("minijax.lowering.kernels"), name)
        f(b, outputs, operands, **params)
    return rule


def by_program(program: Program) -> tuple[Callable[..., list], Callable[..., None]]:
    """The meaning, and a `loop` rule, of what is a program of other operations."""
    def impl(*buffers: np.ndarray, **params: Any) -> list[np.ndarray]:
        out: Any = core.run_with(core.base_trace, program, *map(_as_array, buffers), **params)
        return [out._buffer]

    def loop(b: Any, outputs: Sequence, operands: Sequence, **params: Any) -> None:
        avals = tuple(ShapedArray(x.shape, x.dtype) for x in operands)
        closed = _staged(program, avals, tuple(params.items()), config.trace_key())
        b.jaxpr(closed, operands, into=outputs)
    return impl, loop


def _as_array(buffer: Any) -> ArrayImpl:
    view = np.asarray(buffer).view()
    return ArrayImpl(view, ShapedArray(view.shape, view.dtype))


@caches.remembered(maxsize=1024)
def _staged(program: Program, avals: tuple[ShapedArray, ...], params: tuple,
            flags: tuple) -> jaxpr.ClosedJaxpr:
    return stage(lambda *arrays: [program(*arrays, **dict(params))], avals)
