"""The text of a kernel, run as Python: what its loops mean, in NumPy."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from minijax.compiler import routines
from minijax.compiler.loops import OPS, Buffer, Call, Kernel, NumpyScalars, walk
from minijax.compiler.targets import calls
from minijax.compiler.text import CALLS, CONVERTERS, NUMPYS, kernel_text


def run_text(kernel: Kernel, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Run the text of a kernel; returns the outputs.

    Raises:
      RuntimeError: where a check of the kernel fails.
    """
    text = kernel_text(kernel)
    namespace = runtime(s.external for s in walk(kernel.body) if isinstance(s, Call))
    exec(compile(text, f"<minijax {kernel.name}>", "exec"), namespace)
    function = namespace[re.match(r"def (\w+)", text)[1]]
    outputs = [np.zeros(buffer.shape, buffer.dtype) for buffer in kernel.outputs]
    with np.errstate(all="ignore"):
        status = function(*map(laid_out, inputs, kernel.inputs), *outputs,
                          *[buffer.value for buffer in kernel.constants])
    if status:
        raise RuntimeError(f"{kernel.name}: check {status} failed")
    return outputs


def laid_out(x: np.ndarray, buffer: Buffer) -> np.ndarray:
    """What lies in the buffer of an input: of complex numbers, both parts side by side."""
    if x.dtype.kind == "c":
        return np.ascontiguousarray(x).view(buffer.dtype).reshape(buffer.shape)
    return x.astype(buffer.dtype, copy=False)


def runtime(externals: Iterable[str] = ()) -> dict[str, Any]:
    """What a text calls: converters, operations, library routines, NumPy integers."""
    s = NumpyScalars()
    names: dict[str, Any] = {NUMPYS.get(name, name): getattr(s, name) for name in OPS}
    for name in CONVERTERS:
        dtype = np.dtype(getattr(np, name, None) or getattr(ml_dtypes, name))
        names[name] = partial(s.convert, dtype=dtype)
    names |= {
        "inf": float("inf"), "nan": float("nan"),
        "at": lambda x, *index: x.reshape(-1)[np.ravel_multi_index(
            index, x.shape if len(index) > 1 else x.size):],
        "bitcast": lambda x, to: s.bitcast(x, **to.keywords),
        "range": lambda *ends: (np.int64(i) for i in range(*ends)),
        "empty": lambda shape, to: np.zeros(shape, **to.keywords)}
    assert names.keys() == CALLS
    return names | {"__builtins__": {}} | {name: _on_flat_arrays(name) for name in externals}


def _on_flat_arrays(external: str) -> Callable[..., None]:
    def run(*args: Any) -> None:
        meaning(external)(*(x.reshape(-1) if isinstance(x, np.ndarray) else x for x in args))

    return run


def meaning(external: str) -> Callable[..., None]:
    """What an external does to NumPy arrays: an address arrives as a 1-D array that begins there.
    """
    if match := re.fullmatch(routines.BLOCK, external):
        return partial(_block, int(match[3]), bool(match[1]))
    return calls.meaning(external)


def _block(rows: int, halves: bool, x: np.ndarray, down: int, right: int, y: np.ndarray, step: int,
           k: int, z: np.ndarray, below: int, row: int, column: int, stop: int,
           added: int) -> None:
    def matrix(start: np.ndarray, shape: tuple[int, int], *steps: int) -> np.ndarray:
        strides = [int(each) * start.itemsize for each in steps]
        return np.lib.stride_tricks.as_strided(start, shape, strides)

    terms, others = matrix(x, (rows, k), down, right), matrix(y, (k, stop), step, 1)
    if halves:  # each number is two terms
        terms, others = (
            np.concatenate([each << 16 >> 16, each >> 16], axis)
            for each, axis in ((terms, 1), (others, 0)))
    total = terms @ others
    into = matrix(z, (rows, stop), below, 1)[row:, column:]
    into[...] = into + total[row:, column:] if added else total[row:, column:]
