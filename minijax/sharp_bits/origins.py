"""Bad numbers, and descriptions of the operations that produce them.

Builds on `core`, `findings`.  Chapter 19, *NaNs*.  In JAX: `jax/_src/dispatch.py`.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from minijax import config, core, dtypes
from minijax.util import source_info, tracebacks
from minijax.core import ArrayImpl, Primitive
from minijax.sharp_bits.findings import (SHARDED, Finding, current_steps, finding, has_collected)

# For each kind of bad number: the flag that looks for it, the test, what to do about it.
KINDS: dict[str, tuple[config.Flag, Any]] = {
    "nan": (config.debug_nans, np.isnan), "inf": (config.debug_infs, np.isinf)}

FIX = ("Keep the operation away from such operands: choose safe ones with `jnp.where` before it, "
       "and the result you want after it.")
FIX_PASSED_ON = ("Here the de-optimized function did not make the value: it came in with an input "
                 "or a literal.")
FIX_BACKWARD = ("The derivative of what `jnp.where` does not choose is computed too, and 0 * inf "
                "is nan: choose safe operands before the operation as well.")


# ── Which numbers are bad ────────────────────────────────────────────────────────────────────

def gathered(x: Any) -> Any:
    """An array of several processes whole, in each of them; other values are unchanged."""
    return x._gathered() if hasattr(type(x), "_gathered") else x


def has_sharding(x: Any) -> bool:
    """Whether a value is an array with a sharding."""
    return bool(getattr(getattr(x, "home", None), "is_global", False))


def bad_places(x: Any, kind: str) -> np.ndarray:
    """The bad elements of a value, or of a tracer's value, as booleans of its shape.

    >>> bad_places(core.as_value(np.float32([1, np.nan])), "nan")
    array([False,  True])
    """
    numbers = gathered(x)._buffer if isinstance(x, ArrayImpl) else x
    if isinstance(numbers, np.ndarray | np.generic) and dtypes.issubdtype(x.dtype, np.inexact):
        return KINDS[kind][1](numbers)
    if hasattr(x, "batch_dim"):
        return bad_places(x.value, kind).any(axis=x.batch_dim)
    if hasattr(x, "tangent"):
        return bad_places(x.primal, kind) | bad_places(x.tangent, kind)
    return np.zeros(x.shape, bool)


def is_bad(values: Sequence[Any], kind: str) -> bool:
    """Whether any of some values has a bad element."""
    return any(bad_places(x, kind).any() for x in values
               if isinstance(x, core.Array | np.ndarray | np.generic))


def without_bad(x: Any, kind: str) -> Any:
    """The array with ones in place of bad numbers; other values are unchanged."""
    if isinstance(x, np.ndarray | np.generic | float | complex):
        x = core.as_value(x)
    bad = bad_places(x, kind) if isinstance(x, ArrayImpl) else np.zeros((), bool)
    return ArrayImpl(np.where(bad, np.ones((), x.dtype), x._buffer), x.aval) if bad.any() else x


# ── Of which derivative it is ──────────────────────────────────────────────────────────────────

def is_new_in_the_backward_pass(kind: str) -> bool:
    """Whether a step of a backward pass is running with good cotangents.

    A bad factor in it was then made by the derivative of a function that is itself good; unless it
    comes from what has been collected before.
    """
    variables = _innermost("transpose_eqn")
    if variables is None or _innermost("backward_pass.<locals>.accumulate") is not None:
        return False
    return not (is_bad(variables["cotangents"], kind) or has_collected(KINDS[kind][0].name))


def derivative_of(primitive: Primitive) -> str | None:
    """The operation whose derivative rule is running, if it is not `primitive` itself."""
    outer = (_innermost("JVPTrace.process_primitive") or {}).get("primitive", primitive)
    return None if outer is primitive else outer.name


def _innermost(function: str) -> Mapping[str, Any] | None:
    """The local variables of the innermost running call of a function of the package."""
    return next((frame.f_locals for frame in frames_inside()
                 if frame.f_code.co_qualname == function), None)


def frames_inside() -> Iterator[FrameType]:
    """The running frames of the package, from the innermost out to the user's line."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not tracebacks.is_user_frame(frame):
        yield frame
        frame = frame.f_back


# ── The messages ─────────────────────────────────────────────────────────────────────────────

class Origin(NamedTuple):
    """An operation that made a bad number: the kind, the line, and the finding."""

    kind: str
    source: source_info.SourceInfo | None
    finding: Finding


def origin(kind: str, primitive: Primitive, operands: Sequence[ArrayImpl], outs: Sequence[Any],
           is_sharded: bool = False) -> Origin:
    """The description of a running operation with a bad output, and perhaps with shardings."""
    flag, source = KINDS[kind][0], core.current_source.get() or source_info.user_frame()
    is_backward, outer = source is not None and source.backward, derivative_of(primitive)
    where = ", in the backward pass" if is_backward else (
        f", in the derivative of {outer}" if outer else "")
    where += "".join(f", in {step}" for step in current_steps.get())
    # the backward pass of a mapped function runs the operations of all devices at once
    is_sharded = is_backward and is_sharded or SHARDED in [x.kind for x in current_steps.get()]
    start = f"Invalid value ({kind}) encountered in {SHARDED}: " if is_sharded else ""
    is_passed_on = primitive.split is not None or is_bad(operands, kind)  # or it is a literal
    fix = FIX_PASSED_ON if is_passed_on else FIX_BACKWARD if is_backward else FIX
    message = (f"{start}invalid value ({kind}) encountered in {primitive.name}"
               f"{operands_text(kind, primitive, operands, outs)}{where}")
    return Origin(kind, source, finding(flag.name, message, fix, source,
                                        by=(flag.name, source and (source.code, source.line))))


def operands_text(kind: str, primitive: Primitive, operands: Sequence[ArrayImpl],
                  outs: Sequence[Any]) -> str:
    """Short texts of the operands: their elements where the output is bad."""
    out = next(x for x in outs if bad_places(x, kind).any())
    is_elementwise = callable(primitive.element)
    bad = bad_places(out, kind)
    for x in operands:  # where it was made tells more than where it was handed on
        made = bad & ~bad_places(x, kind) if x.shape == out.shape else bad
        bad = made if made.any() else bad
    place = tuple(int(i) for i in np.argwhere(bad)[0])
    shown = [_number(x._buffer[place]) if is_elementwise and x.shape == out.shape
             else _short(x) for x in operands]
    more = f" (and {others} more)" if (others := int(bad.sum()) - 1) else ""
    at = f" at index {list(place)} of {out.aval.str_long()}{more}" if place else ""
    return (f" of {' and '.join(shown)}" if shown else "") + at


def _short(x: ArrayImpl) -> str:
    """A short text of an array: itself if small, or its range."""
    text, dtype = x.aval.str_long(), x.dtype
    if x.size <= 4 and not core.has_key_dtype(x.aval):
        return "[" * (x.ndim > 0) + ", ".join(map(_number, x._buffer.flat)) + "]" * (x.ndim > 0)
    if dtypes.issubdtype(dtype, np.floating) or dtypes.issubdtype(dtype, np.integer):
        numbers = x._buffer.astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        if finite.size:
            text += f" from {_number(np.min(finite))} to {_number(np.max(finite))}"
    return text


def _number(x: Any) -> str:
    """A number with up to six digits.

    >>> _number(np.float32(0.1)), _number(np.int32(3)), _number(np.float32(-np.inf))
    ('0.1', '3', '-inf')
    """
    if isinstance(x, np.bool_ | np.integer):
        return str(x)
    text = f"{x if isinstance(x, np.complexfloating) else float(x):.6g}"
    return text if not text.lstrip("-").isdigit() else f"{text}.0"
