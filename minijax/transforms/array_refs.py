"""Mutable array references: `new_ref`, `freeze`, `get`, `swap`.

A reference has a value of its trace; `discharge` passes it to programs.  Builds on `core`.
Chapter 13, *In-place updates*.  In JAX: `jax/_src/state/`, `jax/_src/core.py` (`Ref`).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from minijax import core, errors
from minijax.core import Array, ShapedArray
from minijax.core.jvp import JVPTracer
from minijax.core.vmap import BatchTrace, BatchTracer
from minijax.primitives.ad_util import batch_to
from minijax.primitives.convert import converted
from minijax.transforms.arguments import NotCarriedError
from minijax.util.source_info import DebugInfo


@dataclass(frozen=True, repr=False)
class AbstractRef:
    """The type of an array reference."""

    inner_aval: ShapedArray
    memory_space: Any = None
    kind: Any = None

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval.str_long()}}}"


class Indexed:
    """What a reference and a part of one share: elements are read and written at an index."""

    is_reference = True
    inner_aval: ShapedArray
    passed_as: str | None = None  # while it is an argument: the error of capturing it
    _is_written = False  # since the value was read or added to

    aval = property(lambda self: AbstractRef(self.inner_aval))
    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)
    weak_type = property(lambda self: self.inner_aval.weak_type)
    ndim = property(lambda self: self.inner_aval.ndim)
    size = property(lambda self: self.inner_aval.size)
    at = property(lambda self: _At(self))

    def read(self) -> Array:
        """The whole value."""
        raise NotImplementedError

    def write(self, value: Array) -> None:
        """Replace the whole value."""
        raise NotImplementedError

    def addupdate(self, x: Any, idx: Any = ()) -> None:
        """Add to the elements at an index, by default to all."""
        addupdate(self, idx, x)

    def __getitem__(self, index: Any) -> Array:
        return get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        swap(self, index, value)


class TransformedRef(Indexed):
    """A part of a reference, read and written in its place: ``ref.at[index]``."""

    def __init__(self, ref: Indexed, index: Any):
        self.ref, self.index = ref, index
        self.inner_aval = get(ref, index).aval

    def read(self) -> Array:
        return get(self.ref, self.index)

    def write(self, value: Array) -> None:
        swap(self.ref, self.index, value)

    def __repr__(self) -> str:
        return f"TransformedRef(ref={self.ref!r}, index={self.index!r})"


class _At(NamedTuple):
    ref: Indexed

    def __getitem__(self, index: Any) -> TransformedRef:  # type: ignore[override]
        return TransformedRef(self.ref, index)


class Ref(Indexed):
    """An array that can be written in place; made by `new_ref`."""

    def __init__(self, value: Array, kind: str | None = None):
        self.inner_aval: ShapedArray = value.aval
        self.kind = kind
        self._value: Array | None = value
        self._home = core.current_trace.get()
        frames = core.user_frames_for_errors() if self._home.staging_level is not None else ()
        self.origin = f"created on line {frames[-1].place}" if frames else ""

    sharding = property(lambda self: self.read().sharding)
    committed = property(lambda self: self.read().committed)
    format = property(lambda self: self.read().format)

    def is_open(self) -> bool:
        """Whether the trace of its creation is active."""
        return core.current_trace.get().is_open(self._home.level)  # type: ignore[arg-type]

    def read(self) -> Array:
        if core.current_trace.get().staging_level not in (None, self._home.staging_level):
            raise ValueError(self.passed_as) if self.passed_as else NotCarriedError(self)
        value = self._load()
        if value is None:
            raise errors.with_cure(RuntimeError(
                f"Array reference has been deleted with shape={self.inner_aval.str_long()}."),
                "It was passed to `freeze` or `free_ref`, which delete it.")
        return value

    def _load(self) -> Array | None:
        return self._value

    def _store(self, value: Array) -> None:
        self._value = value

    def error_of_returning(self, info: DebugInfo, place: str) -> ValueError:
        """The error of a traced function that returns it at a place of its result."""
        origin = f"\n\nThe returned mutable array was {self.origin}." if self.origin else ""
        return ValueError(
            f"function {info.func_src_info} traced for {info.traced_for} returned a mutable array "
            f"reference of type {self.aval}{place}, but mutable array references cannot be "
            f"returned.{origin}")

    def write(self, value: Array) -> None:
        self.read()
        while isinstance(value, core.Tracer) and not self._home.is_open(value.level):
            value = self._without_level(value)
        is_weak = self.inner_aval.weak_type and not self._home.staging_level
        self._store(converted(value, self.inner_aval.dtype, is_weak))
        self._is_written = True

    def _without_level(self, value: core.Tracer) -> Array:
        if self.kind == "no_grad_no_remat" and isinstance(value, JVPTracer):
            return value.primal
        what = {JVPTracer: ("a differentiated value on a non-differentiated",
                            "of the differentiated"),
                BatchTracer: ("vmapped value on an unbatched", "to the vmapped")}.get(type(value))
        if what is None:
            raise value._leak_error()
        raise ValueError(f"performing a set/swap operation with {what[0]} array reference of type "
                         f"{self.aval}. Move the array reference to be an argument {what[1]} "
                         "function?")

    def __len__(self) -> int:
        return len(self.read())

    def unsafe_buffer_pointer(self) -> int:
        """The address of the value, which a write moves."""
        return self.read().unsafe_buffer_pointer()

    def __repr__(self) -> str:
        value = self._value
        if isinstance(value, core.Tracer):
            return f"Ref({value!r})"
        if value is None:
            return "Ref(<deleted>)"
        text = repr(value).partition("(")[2]  # not weak when it was set, as in JAX
        return f"Ref({text.replace(', weak_type=True', '') if self._is_written else text}"


class MappedRef(Ref):
    """One example's part of a reference that `vmap` maps over: a write is one of the whole batch.

    Args:
      tracer: the example's value.
      ref, dim: the reference, and the axis of the examples in it.
    """

    def __init__(self, tracer: BatchTracer, ref: Indexed, dim: int):
        super().__init__(tracer)
        self.ref, self.dim = ref, dim
        self._value = None  # a program that carries the reference sets its value

    def _load(self) -> Array | None:
        if self._value is not None:
            return self._value
        for trace in core.current_trace.get().ancestry():
            if trace.level is self._home.level and isinstance(trace, BatchTrace):
                return trace.join(self.ref.read(), self.dim)
        raise errors.UnexpectedTracerError(
            f"an example's part of an array reference, of type {self.aval}, was used after the "
            "vmapped function had returned.")

    def _store(self, value: Array) -> None:
        if self._value is not None:
            self._value = value
            return
        is_batched = isinstance(value, BatchTracer) and value.level is self._home.level
        values, dim = (value.value, value.batch_dim) if is_batched else (value, None)
        self.ref.write(batch_to(values, dim, self.dim, self.ref.shape[self.dim]))


# ── As users call it ─────────────────────────────────────────────────────────────────────────

def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A reference to a new array.

    Args:
      init_val: an array, which is not changed.
      memory_space: accepted for JAX's sake.
      kind: "no_grad_no_remat": writes have no derivative, and a function under `checkpoint` writes
        once, in the forward pass.

    Raises:
      TypeError: for what is no array.

    >>> import minijax
    >>> ref = new_ref(minijax.numpy.zeros(3))
    >>> ref[0] = 5.0
    >>> ref[1:] += 1.0
    >>> ref[...]
    Array([5., 1., 1.], dtype=float32)
    """
    return Ref(core.alias(core.as_value_or_raise(init_val, lambda: (
        "Error interpreting argument to new_ref as a JAX value. The problematic value is of type "
        f"{type(init_val)} and was passed to new_ref at position 0."))), kind)


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference to a new array of the shape and dtype of `ty`, with arbitrary elements.

    >>> import minijax
    >>> empty_ref(minijax.ShapeDtypeStruct((2,), "float32")).shape
    (2,)
    """
    return Ref(core.zeros(ShapedArray(ty.shape, ty.dtype)))


def freeze(ref: Ref) -> Array:
    """The value of a reference, which must not be used again.

    >>> freeze(new_ref(3))
    Array(3, dtype=int32, weak_type=True)
    """
    if not isinstance(ref, Ref):
        raise TypeError(f"freeze and free_ref end a whole reference, got {ref!r}")
    value = ref.read()
    ref._value = None
    return value


def free_ref(ref: Ref) -> None:
    """End a reference, which must not be used again."""
    freeze(ref)


def get(ref: Indexed, idx: Any = None) -> Array:
    """The elements at an index: ``ref[idx]``; the whole array for None.

    >>> get(new_ref(3))
    Array(3, dtype=int32, weak_type=True)
    """
    value: Any = ref.read()
    _check_index(ref, idx)
    ref._is_written = False
    return core.alias(value) if _is_whole(idx) else value[idx]


def swap(ref: Indexed, idx: Any, value: Any, _function_name: str = "ref_swap") -> Array:
    """Write at an index, and return the old elements.

    Raises:
      ValueError: when the value differs from the old elements in shape or dtype.

    >>> ref = new_ref(3)
    >>> swap(ref, (), 4), ref
    (Array(3, dtype=int32, weak_type=True), Ref(4, dtype=int32))
    """
    old, new, aval = get(ref, idx), core.as_value(value), ref.inner_aval
    _check_fits("swap", ref, old, new)
    new, whole = converted(new, aval.dtype, aval.weak_type), ref.read()
    ref.write(core.alias(new) if _is_whole(idx) else whole.at[idx].set(new))
    return old


def set(ref: Indexed, idx: Any, value: Any) -> None:
    """Write at an index: ``ref[idx] = value``; raises the errors of `swap`."""
    swap(ref, idx, value)


def addupdate(ref: Indexed, idx: Any, x: Any) -> None:
    """Add to the elements at an index; raises the errors of `swap`.

    >>> ref = new_ref(3)
    >>> addupdate(ref, (), 4)
    >>> ref
    Ref(7, dtype=int32, weak_type=True)
    """
    old, more = get(ref, idx), core.as_value(x)
    _check_fits("addupdate", ref, old, more)
    swap(ref, idx, old + more)
    ref._is_written = False


def _check_fits(name: str, ref: Indexed, old: Array, new: Array) -> None:
    core.refuse(
        (new.dtype != ref.dtype, f"Invalid dtype for `{name}`. Ref dtype: {ref.dtype}. Value "
                                 f"dtype: {new.dtype}. "),
        (old.shape != new.shape, f"Invalid shape for `{name}`. Ref shape: {ref.shape}. Expected "
         f"shape: {old.shape}. Value shape: {new.shape}. "), error=ValueError)


def _is_whole(idx: Any) -> bool:
    return idx is None or idx is Ellipsis or isinstance(idx, tuple) and idx == ()


def _check_index(ref: Indexed, idx: Any) -> None:
    """Refuse indices that arrays accept and references do not."""
    if _is_whole(idx):
        return
    places = idx if isinstance(idx, tuple) else (idx,)
    if len(places) - any(x is Ellipsis for x in places) > ref.ndim:
        raise ValueError("`indices` must not be longer than `shape`: "
                         f"indices={idx}, shape={ref.shape}")
    for place in places:
        if place is None:  # JAX: fails to unpack a list
            raise ValueError("a reference is not indexed with None: index its value, ref[...].")
        if getattr(place, "ndim", 0) and place.dtype.kind == "b":  # JAX: the same error
            raise IndexError("Too many indices: a reference is not indexed with a mask; index its "
                             "value, ref[...].")
    # in a program JAX converts indices to numbers, without their sizes
    is_evaluated = not core.current_trace.get().staging_level
    rest = next((k for k, x in enumerate(places) if x is Ellipsis), len(places))
    before, after = places[:rest], places[rest + 1:]
    for place, size in [*zip(before, ref.shape, strict=False),
                        *zip(after[::-1], ref.shape[::-1], strict=False)]:
        if is_evaluated and _is_integer(place) and not -size <= int(place) < size:
            raise ValueError(f"Out of bound indexer: idx={place}, dim={size}.")
        if isinstance(place, slice):
            _check_slice(place, size)


def _is_integer(place: Any) -> bool:
    """Whether an index is a concrete integer."""
    return isinstance(place, int | np.integer) or (
        isinstance(place, core.ArrayImpl | np.ndarray) and place.ndim == 0
        and place.dtype.kind in "iu")


def _check_slice(place: slice, size: int) -> None:
    if not all(isinstance(x, int | None) for x in (place.start, place.stop, place.step)):
        return
    if place.step is not None and place.step < 0:
        raise ValueError(f"slice must have a step >= 1 (found: {place.step})")
    start, _, _ = place.indices(size)
    if size and start >= size:
        raise ValueError(f"Out of bound slice: start={start}, dim={size}.")
