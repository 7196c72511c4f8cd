"""Eager evaluation of long formulas: compiled for strips of a few lengths, for any shape.

Builds on `compiled`, `devices`.  Chapter 25, *exp from scratch*, has such formulas.
In JAX: `jax/_src/dispatch.py`, `apply_primitive`, which compiles each operation for each shape.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.util import caches
from minijax import config
from minijax.core import ArrayImpl, Params, Primitive, ShapedArray
from minijax.transforms.compiled import executable, is_interpreted
from minijax.placement.devices import CPU
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.tracing import stage

_LENGTHS = [16 ** k for k in range(1, 6)]
_TURNS = 4  # most strips, but of long arrays: a call costs as much as a hundred elements


def evaluated(primitive: Primitive, args: Sequence[Any], params: Params) -> list[ArrayImpl] | None:
    """The result of the formula's compiled code; None where `impl` must run.

    Both agree but for products that are contracted.
    """
    if (config.disable_jit.value or primitive.eager_dispatch
            or not all(type(x) is ArrayImpl for x in args)):
        return None
    [aval] = primitive.type_of([x.aval for x in args], params)
    n = next((n for n in _LENGTHS if aval.size <= _TURNS * n), _LENGTHS[-1])
    closed = _program(primitive, n, tuple(x.dtype for x in args), tuple(params.items()),
                      config.trace_key())
    if is_interpreted(closed, CPU):
        return None
    run, flat = executable(closed, primitive.name), [_flat(x._buffer, aval.shape) for x in args]
    out = np.empty(aval.size, aval.dtype)
    for start in range(0, aval.size, n):
        place = slice(start, min(start + n, aval.size))
        [values] = run(*(_strip(x[place], n) for x in flat))
        out[place] = values[:place.stop - start]
    return [ArrayImpl(out.reshape(aval.shape), aval)]


@caches.remembered(maxsize=1024)
def _program(primitive: Primitive, n: int, dtypes: tuple, params: tuple, _: Any) -> ClosedJaxpr:
    return stage(lambda *args: primitive.bind_list(*args, **dict(params)),
                 [ShapedArray((n,), dtype) for dtype in dtypes])


def _flat(buffer: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(buffer, shape).reshape(-1)


def _strip(values: np.ndarray, n: int) -> np.ndarray:
    """The values, padded with zeros."""
    strip = np.zeros(n, values.dtype)
    strip[:values.size] = values
    return strip
