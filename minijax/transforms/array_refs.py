"""Array references, which can be written: `new_ref`, `freeze`; how loops and `jit` carry them.

A reference holds a value of its trace.  Stands on `core`.  Chapter 13.
In JAX: `jax/_src/state/`, `jax/_src/core.py` (`Ref`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from minijax import core, errors, tree_util
from minijax.core import Array, ShapedArray
from minijax.core.jvp import JVPTracer
from minijax.core.vmap import BatchTracer
from minijax.primitives.convert import converted
from minijax.primitives.ad_util import zeros
from minijax.util.source_info import DebugInfo
from minijax.core.tracing import DynamicJaxprTrace

T = TypeVar("T")


class NotCarriedError(ValueError):
    """A function that is written down as a program uses a reference that was made outside of it.

    `jit`, `scan`, `while_loop`, `cond` and what stands on them hand references over; others do
    not, and there the value is to be passed and returned.
    """

    def __init__(self, ref: Ref):
        self.ref = ref
        super().__init__(
            "a function that is traced uses an array reference that was made outside of it: "
            f"{ref.inner_aval.str_long()}. Pass the value of the reference to the function, and "
            "return the new one.")


@dataclass(frozen=True, repr=False)
class AbstractRef:
    """The type of an array reference."""

    inner_aval: ShapedArray
    memory_space: Any = None
    kind: Any = None

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval.str_long()}}}"


class Ref:
    """An array that can be written in place; made by `new_ref`."""

    is_reference = True

    def __init__(self, value: Array):
        self.inner_aval: ShapedArray = value.aval
        self._value: Array | None = value
        self._home = core.current_trace.get()
        self.passed_as: str | None = None  # while it is an argument: what a second way in is told

    aval = property(lambda self: AbstractRef(self.inner_aval))
    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)
    weak_type = property(lambda self: self.inner_aval.weak_type)
    ndim = property(lambda self: self.inner_aval.ndim)
    size = property(lambda self: self.inner_aval.size)

    def is_open(self) -> bool:
        """Whether the trace in which it was made goes on."""
        return any(trace.level is self._home.level
                   for trace in core.current_trace.get().ancestry())

    def read(self) -> Array:
        """The whole value."""
        for trace in core.current_trace.get().ancestry():
            if trace.level is self._home.level:
                break
            if type(trace) is DynamicJaxprTrace:
                raise ValueError(self.passed_as) if self.passed_as else NotCarriedError(self)
        if self._value is None:
            raise errors.with_cure(RuntimeError(
                f"Array reference has been deleted with shape={self.inner_aval.str_long()}."),
                "It was given to `freeze` or `free_ref`, which end it.")
        return self._value

    def write(self, value: Array) -> None:
        """Replace the whole value."""
        self.read()
        while isinstance(value, core.Tracer) and not self._home.is_open(value.level):
            value = self._without_level(value)
        self._value = value

    def add(self, value: Array) -> None:
        """Add to the whole value."""
        addupdate(self, (), value)

    def _without_level(self, value: core.Tracer) -> Array:
        what = {JVPTracer: ("a differentiated value on a non-differentiated",
                            "of the differentiated"),
                BatchTracer: ("vmapped value on an unbatched", "to the vmapped")}.get(type(value))
        if what is None:
            raise errors.UnexpectedTracerError(core.leak_message(value))
        raise ValueError(f"performing a set/swap operation with {what[0]} array reference of type "
                         f"{self.aval}. Move the array reference to be an argument {what[1]} "
                         "function?")

    def __getitem__(self, index: Any) -> Array:
        return get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        swap(self, index, value)

    def __len__(self) -> int:
        return len(self.read())

    def __repr__(self) -> str:
        value = self._value
        if isinstance(value, core.Tracer):
            return f"Ref({value!r})"
        return f"Ref({'<deleted>' if value is None else repr(value).partition('(')[2][:-1]})"


# ── As users call it ─────────────────────────────────────────────────────────────────────────

def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A reference to a new array.

    Args:
      init_val: an array, which stays as it is.
      memory_space, kind: accepted for JAX's sake.

    Raises:
      TypeError: for what is no array.

    >>> import minijax
    >>> ref = new_ref(minijax.numpy.zeros(3))
    >>> ref[0] = 5.0
    >>> ref[1:] += 1.0
    >>> ref[...]
    Array([5., 1., 1.], dtype=float32)
    """
    return Ref(core.alias(core.as_value_or(init_val, lambda: (
        "Error interpreting argument to new_ref as a JAX value. The problematic value is of type "
        f"{type(init_val)} and was passed to new_ref at position 0."))))


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference to a new array of the shape and dtype of `ty`, in which anything may stand.

    >>> import minijax
    >>> empty_ref(minijax.ShapeDtypeStruct((2,), "float32")).shape
    (2,)
    """
    return Ref(zeros(ShapedArray(ty.shape, ty.dtype)))


def freeze(ref: Ref) -> Array:
    """The value of a reference, which must not be used again.

    >>> freeze(new_ref(3))
    Array(3, dtype=int32, weak_type=True)
    """
    value = ref.read()
    ref._value = None
    return value


def free_ref(ref: Ref) -> None:
    """End a reference, which must not be used again."""
    freeze(ref)


def get(ref: Ref, idx: Any = None) -> Array:
    """What stands at an index: ``ref[idx]``; the whole array where it is None.

    >>> get(new_ref(3))
    Array(3, dtype=int32, weak_type=True)
    """
    value: Any = ref.read()
    _check_index(ref, idx)
    return core.alias(value) if _is_whole(idx) else value[idx]


def swap(ref: Ref, idx: Any, value: Any, _function_name: str = "ref_swap") -> Array:
    """Write at an index, and return what stood there.

    Raises:
      ValueError: when the value is not of the shape and dtype of what stands there.

    >>> ref = new_ref(3)
    >>> swap(ref, (), 4), ref
    (Array(3, dtype=int32, weak_type=True), Ref(4, dtype=int32, weak_type=True))
    """
    old, new, aval = get(ref, idx), core.as_value(value), ref.inner_aval
    _check_fits("swap", ref, old, new)
    new, whole = converted(new, aval.dtype, aval.weak_type), ref.read()
    ref.write(core.alias(new) if _is_whole(idx) else whole.at[idx].set(new))
    return old


def set(ref: Ref, idx: Any, value: Any) -> None:
    """Write at an index: ``ref[idx] = value``; raises what `swap` raises."""
    swap(ref, idx, value)


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """Add to what stands at an index; raises what `swap` raises.

    >>> ref = new_ref(3)
    >>> addupdate(ref, (), 4)
    >>> ref
    Ref(7, dtype=int32, weak_type=True)
    """
    old, more = get(ref, idx), core.as_value(x)
    _check_fits("addupdate", ref, old, more)
    swap(ref, idx, old + more)


def _check_fits(name: str, ref: Ref, old: Array, new: Array) -> None:
    if new.dtype != ref.dtype:
        raise ValueError(f"Invalid dtype for `{name}`. Ref dtype: {ref.dtype}. "
                         f"Value dtype: {new.dtype}. ")
    if old.shape != new.shape:
        raise ValueError(f"Invalid shape for `{name}`. Ref shape: {ref.shape}. Expected shape: "
                         f"{old.shape}. Value shape: {new.shape}. ")


def _is_whole(idx: Any) -> bool:
    return idx is None or idx is Ellipsis or isinstance(idx, tuple) and idx == ()


def _check_index(ref: Ref, idx: Any) -> None:
    """Refuse what references do not take, though arrays do."""
    if _is_whole(idx):
        return
    places = idx if isinstance(idx, tuple) else (idx,)
    if len(places) - any(x is Ellipsis for x in places) > ref.ndim:
        raise ValueError("`indices` must not be longer than `shape`: "
                         f"indices={idx}, shape={ref.shape}")
    for place in places:
        if place is None:  # JAX: fails to unpack a list
            raise ValueError("a reference is not indexed with None: index what it holds, ref[...].")
        if getattr(place, "ndim", 0) and place.dtype.kind == "b":  # JAX: the same error
            raise IndexError("Too many indices: a reference is not indexed with a mask; index what "
                             "it holds, ref[...].")
    rest = next((k for k, x in enumerate(places) if x is Ellipsis), len(places))
    before, after = places[:rest], places[rest + 1:]
    for place, size in [*zip(before, ref.shape, strict=False),
                        *zip(after[::-1], ref.shape[::-1], strict=False)]:
        if isinstance(place, int) and not -size <= place < size:
            raise ValueError(f"Out of bound indexer: idx={place}, dim={size}.")
        if isinstance(place, slice):
            _check_slice(place, size)


def _check_slice(place: slice, size: int) -> None:
    if not all(isinstance(x, int | None) for x in (place.start, place.stop, place.step)):
        return
    if place.step is not None and place.step < 0:
        raise ValueError(f"slice must have a step >= 1 (found: {place.step})")
    start, _, _ = place.indices(size)
    if size and start >= size:
        raise ValueError(f"Out of bound slice: start={start}, dim={size}.")


# ── References among arguments ───────────────────────────────────────────────────────────────

def check_distinct(leaves: Sequence[Any], info: DebugInfo) -> None:
    """Refuse a reference that is passed more than once."""
    names: dict[int, list[str]] = {}
    for x, name in zip(leaves, info.arg_names, strict=True):
        if type(x) is Ref:
            names.setdefault(id(x), []).append(str(name))
            if len(names[id(x)]) > 1:
                raise ValueError(
                    "only one reference to a mutable array may be passed as an argument to a "
                    f"function, but when tracing {info.func_src_info} for {info.traced_for} the "
                    f"mutable array reference of type {x.aval} appeared at both "
                    f"{' and '.join(names[id(x)])}.")


@contextlib.contextmanager
def passed(leaves: Sequence[Any], info: DebugInfo) -> Iterator[None]:
    """The references among arguments are these for the time of a call, and nothing else."""
    check_distinct(leaves, info)
    refs = [(x, name) for x, name in zip(leaves, info.arg_names, strict=True) if type(x) is Ref]
    before = [ref.passed_as for ref, _ in refs]
    for ref, name in refs:
        ref.passed_as = (
            f"when tracing {info.func_src_info} for {info.traced_for}, a mutable array reference "
            f"of type {ref.aval} was both closed over and passed as the argument {name}")
    try:
        yield
    finally:
        for (ref, _), old in zip(refs, before, strict=True):
            ref.passed_as = old


def closed_over(function: Callable, operands: Sequence[Any]) -> tuple[Callable, list]:
    """A function of operands as one of those that are no references, and these operands."""
    leaves, tree = tree_util.tree_flatten(tuple(operands))
    places = [i for i, x in enumerate(leaves) if type(x) is not Ref]

    def of_the_others(*others: Any) -> Any:
        given = list(leaves)
        for i, x in zip(places, others, strict=True):
            given[i] = x
        return function(*tree_util.tree_unflatten(tree, given))
    return of_the_others, [leaves[i] for i in places]


def has_refs(tree: Any) -> bool:
    return any(type(x) is Ref for x in tree_util.tree_leaves(tree))


# ── Programs that use references from outside ────────────────────────────────────────────────

@contextlib.contextmanager
def _holding(refs: Sequence[Ref], values: Sequence[Array]) -> Iterator[None]:
    """The references hold these values of the current trace, and then their own again."""
    before = [(ref._value, ref._home) for ref in refs]
    for ref, value in zip(refs, values, strict=True):
        ref._value, ref._home = value, core.current_trace.get()
    try:
        yield
    finally:
        for ref, (old, home) in zip(refs, before, strict=True):
            ref._value, ref._home = old, home


def discharged(fun: Callable, refs: Sequence[Ref]) -> Callable[..., tuple[Any, list]]:
    """A function from the references' values, and its arguments, to its result and new values."""
    def pure(values: Sequence[Array], *args: Any, **kwargs: Any) -> tuple[Any, list]:
        with _holding(refs, values):
            return fun(*args, **kwargs), [ref.read() for ref in refs]
    pure.gives_more = True  # type: ignore[attr-defined]  # than the user's function: errors ask
    return pure


def reading(fun: Callable, refs: Sequence[Ref]) -> Callable[..., Any]:
    """The same function, given the references' values by keyword; it must not write to them."""
    def pure(*args: Any, values_of_references: Sequence[Array], **kwargs: Any) -> Any:
        with _holding(refs, values_of_references):
            result = fun(*args, **kwargs)
            if any(ref.read() is not x for ref, x in zip(refs, values_of_references, strict=True)):
                raise NotImplementedError(
                    "a function that is computed again, by jax.checkpoint, writes to an array "
                    "reference that was made outside of it. It may read there; return the new "
                    "value, and write it outside.")
            return result
    return pure


def carry(error: NotCarriedError, refs: list[Ref]) -> None:
    """Add the reference to those that an operation carries, or raise the error again."""
    if any(error.ref is ref for ref in refs) or not error.ref.is_open():
        raise error  # who is around must carry it first, or it was made by what has failed
    refs.append(error.ref)


def carried_first(error: NotCarriedError) -> list[Ref]:
    """What an operation carries that has met a reference from outside; see `carry`."""
    refs: list[Ref] = []
    carry(error, refs)
    return refs


def carrying_refs(with_refs: Callable[[Sequence[Ref], list], tuple[T, list]], refs: list[Ref]
                  ) -> T:
    """An operation, some of whose functions use references from outside.

    Args:
      with_refs: from references and their values, its result and the references' new values.
      refs: those that are known; others are found by trying, and are added.
    """
    while True:
        try:
            result, values = with_refs(refs, [ref.read() for ref in refs])
        except NotCarriedError as error:
            carry(error, refs)
        else:
            for ref, value in zip(refs, values, strict=True):
                ref.write(value)
            return result
