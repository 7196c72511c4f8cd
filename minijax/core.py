"""The machine: abstract values, arrays, tracers, primitives, and the one current trace.

Stands on `dtypes`, `errors`, `source_info`.  Chapter 02, *Primitives and tracers*.
In JAX: `jax/_src/core.py`.
"""

from __future__ import annotations

import contextvars
import math
import operator
import threading
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from minijax import caches, config, dtypes, errors, lazily, source_info

_bool = np.dtype(bool)
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Params = dict[str, Any]


# ── Abstract values ──────────────────────────────────────────────────────────────────────────

class ShapedArray:
    """The type of an array: its shape, dtype, and whether the dtype is weak.

    Equal types are the same object, so types compare and hash by identity; a type that nobody
    holds is forgotten.

    >>> ShapedArray((2, 3), np.float32)
    ShapedArray(float32[2,3])
    >>> ShapedArray((), np.int32, weak_type=True) is ShapedArray((), np.int32, weak_type=True)
    True
    """

    __slots__ = ("__weakref__", "dtype", "shape", "weak_type")
    _interned: weakref.WeakValueDictionary[tuple, ShapedArray] = weakref.WeakValueDictionary()
    _interning = threading.RLock()

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool

    # JAX: a type says how its arrays are spread over devices. Here arrays do, and `typeof` of one.
    def __new__(cls, shape: Sequence[int], dtype: Any, weak_type: bool = False, *,
                sharding: Any = None) -> ShapedArray:
        if not isinstance(dtype, (np.dtype, dtypes.KeyType)):
            dtype = np.dtype(dtype)
        key = (tuple(shape), dtype, bool(weak_type))
        found = cls._interned.get(key)
        if found is None:
            new = object.__new__(cls)
            object.__setattr__(new, "shape", key[0])
            object.__setattr__(new, "dtype", dtype)
            object.__setattr__(new, "weak_type", key[2])
            with cls._interning:  # one winner among threads
                found = cls._interned.setdefault(key, new)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a ShapedArray is immutable; use .update({name}=...)")

    def __reduce__(self) -> tuple:
        return ShapedArray, (self.shape, self.dtype, self.weak_type)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def update(self, **changes: Any) -> ShapedArray:
        """The same type with some of its parts replaced."""
        parts = {"shape": self.shape, "dtype": self.dtype, "weak_type": self.weak_type}
        return ShapedArray(**{**parts, **changes})

    def strip_weak_type(self) -> ShapedArray:
        return ShapedArray(self.shape, self.dtype) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """The type of its tangents: itself, or `float0` where there is nothing to vary."""
        if dtypes.issubdtype(self.dtype, np.inexact):
            return self
        return ShapedArray(self.shape, dtypes.float0)

    at_least_vspace = to_tangent_aval  # what JAX called it before

    def str_short(self, short_dtypes: bool = False) -> str:
        """As an error message writes it, ``float32[2,3]``; or as a jaxpr does: ``f32[2,3]``."""
        name = dtypes.short_name if short_dtypes else dtype_name
        return f"{name(self.dtype)}[{','.join(map(str, self.shape))}]"

    def str_long(self) -> str:
        """As an error message writes it: ``float32[2,3]``."""
        return f"{dtype_name(self.dtype)}[{','.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_long()}{weak})"


lazily.hold_over_forks(ShapedArray._interning)


def dtype_name(dtype: Any) -> str:
    if dtype == dtypes.float0:
        return "float0"
    return dtype.name if isinstance(dtype, dtypes.KeyType) else str(np.dtype(dtype))


def has_key_dtype(aval: ShapedArray) -> bool:
    return isinstance(aval.dtype, dtypes.KeyType)


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the buffer behind a value: keys are `uint32` words in a trailing axis, and what
    has no tangent is False.
    """
    if aval.dtype == dtypes.float0:
        return aval.update(dtype=_bool)
    if has_key_dtype(aval):
        return ShapedArray((*aval.shape, *aval.dtype.shape), np.uint32)
    return aval


# ── Arrays ───────────────────────────────────────────────────────────────────────────────────

# `minijax.numpy` installs operators and methods; to a type checker an array may have any.
Installed: Any = Any if TYPE_CHECKING else object


class Typed:
    """What has a type, and answers for its parts."""

    __slots__ = ()
    aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    dtype = property(operator.attrgetter("aval.dtype"))
    weak_type = property(operator.attrgetter("aval.weak_type"))
    ndim = property(operator.attrgetter("aval.ndim"))
    size = property(operator.attrgetter("aval.size"))


class Array(Typed, Installed):
    """What programs compute with: concrete arrays and the tracers that stand for them.

    Operators and methods are installed on it by `minijax.numpy`.
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 100

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    def __hash__(self) -> int:
        kind = type(self)
        raise TypeError(f"unhashable type: '{kind.__module__}.{kind.__qualname__}'")


class ArrayImpl(Array):
    """An array with its numbers: an immutable C-contiguous buffer and its type.

    A key array holds the words of its keys in a trailing axis of the buffer.
    """

    __slots__ = ("__dict__", "_buffer", "aval", "is_literal")  # the first is for users' attributes
    _buffer: np.ndarray
    is_literal: bool  # written in the program as a Python or NumPy scalar: prints as a literal
    _committed = False  # whether it was put on its device by name

    def __init__(self, buffer: np.ndarray, aval: ShapedArray, is_literal: bool = False):
        buffer.flags.writeable = False
        self._buffer = buffer
        self.aval = aval
        self.is_literal = is_literal

    def _concrete(self) -> ArrayImpl:
        return self

    def __getattr__(self, name: str) -> Any:
        """Asked only for what is not there: the buffer of an array that was deleted."""
        if name == "_buffer":
            raise deleted(self.aval)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _is_deleted(self) -> bool:
        try:
            self._buffer  # noqa: B018
        except RuntimeError:
            return True
        return False

    def _delete(self) -> None:
        if not self._is_deleted():
            del self._buffer

    def _another(self) -> ArrayImpl:
        return ArrayImpl(self._buffer, self.aval)

    def _holder(self) -> Any:
        """What holds the numbers: one object for all arrays that share them."""
        return self._buffer


class Valueless(Array):
    """An array in a program of which there is the type alone: it may be passed on, not read."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @property
    def _buffer(self) -> np.ndarray:
        raise TypeError("A ShapeDtypeStruct does not have a value and cannot be used as a constant "
                        "in a JAX function.")

    def _concrete(self) -> None:
        return None


def deleted(aval: ShapedArray) -> Exception:
    """What reading an array of this type raises, once it has been given away."""
    return errors.with_cure(
        RuntimeError(f"Array has been deleted with shape={aval.str_long()}."),
        "It was donated to a jitted function (donate_argnums), or deleted by hand.")


def give_away(x: Any) -> None:
    """Let go of an array's buffer; reading it raises from now on."""
    if isinstance(x, ArrayImpl):
        x._delete()


def another(x: Any) -> Any:
    """An array of the same numbers, which stays when `x` is given away."""
    return x._another() if isinstance(x, ArrayImpl) else x


def is_given_away(x: ArrayImpl) -> bool:
    return x._is_deleted()


def array_from_buffer(buffer: np.ndarray, aval: ShapedArray) -> ArrayImpl:
    """An array of the given type that shares nothing with a caller's writeable memory."""
    wanted = physical_aval(aval)
    owned = np.array(buffer, dtype=wanted.dtype, order="C", copy=True)
    return ArrayImpl(owned.reshape(wanted.shape), aval)


# A scalar in a program is turned into an array so often that small ones are kept.
@caches.remembered(maxsize=4096)
def _scalar_array(value: Any, kind: str, sign: float, x64: bool) -> ArrayImpl:
    dtype = dtypes.dtype(value)
    aval = ShapedArray((), dtype, dtypes.is_weakly_typed(value))
    return ArrayImpl(np.asarray(value, dtype), aval, is_literal=True)


def as_value(x: Any) -> Array:
    """`x` as an array or tracer: scalars and NumPy arrays are converted, the rest refused.

    Raises:
      TypeError: for what is not a number or an array of numbers.
    """
    if isinstance(x, Array):
        return x
    kind = type(x)
    if kind in (bool, int, float):
        try:
            sign = math.copysign(1.0, x) if kind is float else 1.0  # 0.0 == -0.0, yet differ
            return _scalar_array(x, kind.__name__, sign, config.enable_x64.value)
        except OverflowError:
            raise source_info.too_large(x) from None
    return _as_value_slow(x)


def stood_for(x: Any) -> Any:
    """The array that an object with `__jax_array__` stands for; anything else is itself."""
    if isinstance(x, Array) or not hasattr(x, "__jax_array__"):
        return x
    return x.__jax_array__()


def as_value_or(x: Any, refusal: Callable[[], str]) -> Array:
    """`x` as an array or tracer; what cannot be one is refused in other words."""
    try:
        return as_value(x)
    except TypeError:
        raise TypeError(refusal()) from None


# What stands for values of classes that are no arrays: an array, or a number.
stand_ins: dict[type, Callable[[Any], Any]] = {}


def _as_value_slow(x: Any) -> Array:
    for kind in type(x).__mro__ if stand_ins else ():
        if kind in stand_ins:
            return as_value(stand_ins[kind](x))
    python = dtypes.python_type(x)
    if python is not None and python is not type(x):  # a subclass, such as an IntEnum
        return as_value(python(x))
    if python is not None or isinstance(x, (np.ndarray, np.generic)):
        aval = _type_of_numbers(x)
        if aval.dtype == dtypes.float0:
            return ArrayImpl(np.zeros(x.shape, bool), aval)
        base_trace.note("narrow", x, aval.dtype)
        if isinstance(x, np.ndarray):
            return array_from_buffer(x, aval)
        return ArrayImpl(np.array(x, aval.dtype), aval, is_literal=True)
    if hasattr(x, "__jax_array__"):
        raise ValueError("Triggering __jax_array__() during abstractification is no longer "
                         "supported. To avoid this error, either explicitly convert your object "
                         "using jax.numpy.array(), or register your object as a pytree.")
    raise _no_array(x)


def _no_array(x: Any) -> Exception:
    dtype_of = f" with dtype {x.dtype}" if hasattr(x, "dtype") else ""
    shown = f"'{x}'" if dtype_of else repr(x)
    return TypeError(f"Value {shown}{dtype_of} is not a valid JAX array type. "
                     "Only arrays of numeric types are supported by JAX.")


def _type_of_numbers(x: Any) -> ShapedArray:
    """The type of the array that is made of a number or a NumPy array.

    Raises:
      ValueError: for a masked array, whose mask would be lost.
      TypeError: for what holds no numbers, or such as no array can hold.
    """
    if python := dtypes.python_type(x):
        return ShapedArray((), dtypes.dtype(python), python is not bool)
    refuse_mask(x)
    if x.dtype != dtypes.float0 and not dtypes.is_valid_dtype(x.dtype):
        raise _no_array(x)
    return ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype))


def refuse_mask(x: Any) -> None:
    """Refuse NumPy's masked arrays: no array here has a mask."""
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray and isinstance(
            x, np.ma.MaskedArray):
        raise ValueError("numpy masked arrays are not supported as direct inputs to JAX functions. "
                         "Use arr.filled() to convert the value to a standard numpy array.")


def get_aval(x: Any) -> ShapedArray:
    """The type of a value.

    >>> get_aval(1.5)
    ShapedArray(float32[], weak_type=True)
    """
    if isinstance(x, Typed):
        return x.aval
    return _type_of_numbers(x) if isinstance(x, np.ndarray | np.generic) else as_value(x).aval


def typeof(x: Any) -> Any:
    """The type of a value, or of an array reference.

    >>> typeof(np.zeros(3, np.int32))
    ShapedArray(int32[3])
    """
    return x.aval if getattr(x, "is_reference", False) else getattr(x, "told_type", get_aval(x))


def is_array_like(x: Any) -> bool:
    """Whether `as_value` would take `x`."""
    try:
        get_aval(x)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


class Zero(NamedTuple):
    """A tangent or cotangent that is zero and was never computed."""

    aval: ShapedArray


class Undefined(NamedTuple):
    """In a transpose rule: the argument the operation is linear in."""

    aval: ShapedArray


# ── Effects ──────────────────────────────────────────────────────────────────────────────────

class Effect:
    """Something an equation does besides computing its outputs.

    An `observable` effect keeps the equation: no pass drops, merges or reorders it.
    """

    observable = True


@dataclass(frozen=True, repr=False)
class NamedAxisEffect(Effect):
    """The equation refers to a named axis, so it must be batched along it."""

    name: Any
    observable = False

    def __repr__(self) -> str:
        return f"NamedAxisEffect({self.name!r})"


Effects = frozenset[Effect]
no_effects: Effects = frozenset()


class Program:
    """What an equation may hold among its parameters, and does when it runs."""

    effects: Effects


def programs_in(params: Params) -> Iterator[Program]:
    """The programs among an equation's parameters, in their order."""
    for value in params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(part, Program):
                yield part


# ── Levels and traces ────────────────────────────────────────────────────────────────────────

class Level:
    """One transformation that was entered: how deep, and for which function.

    Tracers belong to a level.  A level lives exactly as long as a trace of it is reachable from
    the current trace, so there is nothing to close and nothing an exception could leave open.
    """

    depth: int
    is_watched = False
    steps_outside: int  # for who looks for nans, as `is_watched` is for who looks for leaks

    def __init__(self, parent: Trace, debug_info: source_info.DebugInfo | None = None):
        self.depth = parent.level.depth + 1 if parent.level else 1
        self.debug_info = debug_info
        base_trace.note("level", self)


class Axis(NamedTuple):
    """The axis a `vmap` maps over, as batching rules and collectives see it."""

    size: int
    name: Any = None
    level: Level | None = None
    on_devices: bool = False  # whether each example stands for a device


class Trace:
    """What happens to a primitive while a transformation runs.

    ground: the trace that is current while it processes a primitive
    """

    def __init__(self, level: Level | None, parent: Trace | None):
        self.level = level
        self.parent = parent
        self.ground = self
        self.axes: tuple[Axis, ...] = parent.axes if parent else ()

    def concerns(self, primitive: Primitive, args: Sequence[Array], params: Params) -> bool:
        """Whether it processes the primitive; if not, its parent is asked."""
        return True

    def owns(self, x: Any) -> bool:
        return isinstance(x, Tracer) and x.level is self.level

    def process_primitive(self, primitive: Primitive, args: Sequence[Array],
                          params: Params) -> list:
        raise NotImplementedError

    def ancestry(self) -> Iterator[Trace]:
        trace: Trace | None = self
        while trace is not None:
            yield trace
            trace = trace.parent

    def is_open(self, level: Level) -> bool:
        return any(trace.level is level for trace in self.ancestry())

    def __repr__(self) -> str:
        depth = self.level.depth if self.level else 0
        return f"{type(self).__name__}(level={depth}/0)"


class RuleTrace(Trace):
    """Processes what holds values of its own level, by rules that run in its parent."""

    level: Level
    parent: Trace

    def __init__(self, level: Level, parent: Trace):
        super().__init__(level, parent)
        self.ground = parent

    def concerns(self, primitive: Primitive, args: Sequence[Array], params: Params) -> bool:
        return any(map(self.owns, args))


class EvalTrace(Trace):
    """Evaluation: every primitive runs on the numbers at once.

    What else happens while a program runs, it is told by `note` and `around`, and does nothing
    about it.  A check is another evaluation, which does.
    """

    goes_straight = True  # whether nobody minds if compiled code runs without being told here

    def process_primitive(self, primitive: Primitive, args: Sequence[Array],
                          params: Params) -> list:
        for x in args:
            if isinstance(x, Tracer):
                raise errors.UnexpectedTracerError(leak_message(x))
        return primitive.evaluate(args, params)

    def note(self, moment: str, *facts: Any, **details: Any) -> None:
        """Be told of something that has happened."""

    def around(self, moment: str, run: F) -> F:
        """What is to be called in place of `run`, which is what happens at the moment."""
        return run


class Tracer(Array):
    """Stands for an array while a transformation runs."""

    __slots__ = ("aval", "frames", "level")
    level: Level
    frames: Sequence[source_info.SourceInfo]  # of the user's, where it was made, if they were noted

    def _concrete(self) -> ArrayImpl | None:
        """The array of numbers behind the tracer, where the transformation knows it."""
        return None

    def __init__(self, trace: Any, aval: ShapedArray):
        self.level = trace.level
        self.aval = aval
        self.frames = user_frames_for_errors() if self.level.is_watched else ()

    def trace_name(self) -> str:
        return type(self).__name__.removesuffix("r")  # a JVPTracer is of a JVPTrace

    def _origin_msg(self) -> str:
        """For errors: which function was traced, and which arguments the value depends on."""
        info = self.level.debug_info
        if info is None:
            return ""
        return (f"\nThe error occurred while tracing the function {info.func_src_info} "
                f"for {info.traced_for}.")

    def __repr__(self) -> str:
        return f"Traced<{self.aval}>with<{self.trace_name()}(level={self.level.depth}/0)>"


def user_frames_for_errors() -> tuple[source_info.SourceInfo, ...]:
    """The innermost frames of the user's, as many as an error is to show.

    A program that runs again has one: the line that made the equation.
    """
    source = current_source.get()
    if source is not None:
        return (source,)
    return source_info.user_frames(config.tracer_error_num_traceback_frames.value)


def leak_message(tracer: Tracer) -> str:
    """Which value leaked, out of which function, where it was made, and how to find the leak."""
    info, frames, rule = tracer.level.debug_info, tracer.frames, "-" * 30
    parts = ["Encountered an unexpected tracer. A function transformed by JAX had a side effect, "
             "allowing for a reference to an intermediate value with type "
             f"{tracer.aval.str_long()} wrapped in a {type(tracer).__name__} to escape the scope "
             "of the transformation.\nJAX transformations require that functions explicitly "
             "return their outputs, and disallow saving intermediate values to global state."]
    if info is not None:
        parts.append(f"The function being traced when the value leaked was "
                     f"{info.func_src_info} traced for {info.traced_for}.")
    if frames:
        limit = config.tracer_error_num_traceback_frames.value
        shown = [f.place for f in frames[-limit:]]
        parts += [rule, f"The leaked intermediate value was created on line {shown[-1]}. ", rule,
                  f"When the value was created, the final {limit} stack frames (most recent last) "
                  "excluding JAX-internal frames were:", rule, *shown, rule, ""]
    parts.append("To catch the leak earlier, try setting the environment variable "
                 "JAX_CHECK_TRACER_LEAKS or using the `jax.checking_leaks` context manager.")
    return "\n".join(parts)


base_trace = EvalTrace(None, None)
current_trace: contextvars.ContextVar[Trace] = contextvars.ContextVar(
    "minijax_current_trace", default=base_trace)
# While a recorded program is run again, the line of the user's that each equation came from.
current_source: contextvars.ContextVar[source_info.SourceInfo | None] = contextvars.ContextVar(
    "minijax_current_source", default=None)


def run_with(trace: Trace, f: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """`f(*args, **kwargs)` with another current trace.

    It is `context.with_values`, written out because every operation that is traced comes by.
    """
    before = current_trace.get()
    try:
        try:
            current_trace.set(trace)
            return f(*args, **kwargs)
        finally:
            current_trace.set(before)
    finally:  # an interrupt may have hit the line above
        if current_trace.get() is not before:
            current_trace.set(before)


def leaving_no_tracer(enter: F) -> F:
    """`enter`, which runs a user's function at a new level; nobody should hold a tracer of that
    level as it returns, and a check may look whether somebody does.
    """
    return base_trace.around("enter", enter)


def as_method(fun: Callable) -> Callable:
    """What is called as `fun` is; an object's method takes a frame less of Python's stack."""
    call = type(fun).__call__
    return types.MethodType(call, fun) if isinstance(call, types.FunctionType) else fun


def check_not_leaked(trace: Trace, x: Tracer) -> None:
    """Refuse a tracer whose transformation has ended."""
    if not trace.is_open(x.level):
        raise errors.UnexpectedTracerError(leak_message(x))


# ── Primitives ───────────────────────────────────────────────────────────────────────────────

class Cannot(NamedTuple):
    """Fills a rule's slot that has no meaning; the reason is what the user reads."""

    reason: str


def cannot(reason: str) -> Any:
    return Cannot(reason)


class ForPrimitive(NamedTuple):
    """Fills a slot with a function that becomes a method of the primitive whose slot it is."""

    rule: Callable


class Example(NamedTuple):
    """Arguments inside a primitive's domain, on which every law is tested."""

    args: tuple
    params: Params = {}


SLOTS = ("impl", "abstract_eval", "jvp", "transpose", "batch", "examples")
LOWERINGS = ("element", "loop", "library", "program")


def joined_effects(**params: Any) -> Effects:
    """The effects of the programs among an equation's parameters."""
    return no_effects.union(*(program.effects for program in programs_in(params)))


class Primitive:
    """An operation that every transformation has a rule for: one block, one slot a rule.

    Args:
      name: as a jaxpr prints it.
      impl: its meaning: NumPy arrays to a list of NumPy arrays.
      abstract_eval: types to a list of types.
      jvp: ``(primals, tangents, **params) -> (outs, out_tangents)``.
      transpose: ``(cotangents, *args, **params) -> cotangents``, linear arguments `Undefined`.
      batch: ``(axis, args, dims, **params) -> (outs, dims)``.
      element, loop, library, program: how it is computed: one element, a loop nest, an external,
        or the other operations it stands for (of an operation on keys, on their words).
      split: for primitives with programs inside: their known and unknown half.
      effects: what it does besides; by default what the programs inside it do.
      examples: a function that lists arguments inside its domain.
      handles_keys: whether `impl` and lowering take the words of PRNG keys themselves.
      consumes_key: whether the key that is its first argument must not be used again.
      users_transpose: whether `transpose` runs a rule of the user's, who may count its calls: it
        is asked where all cotangents are zero, too.
      asks_lazily: whether `loop` asks at most twice for an element of an operand, as it is made.
      rows: ``(**params) -> places`` of the operands that `loop` goes along, a row at each turn.
      in_place: ``(k, /, **params) -> places`` of the arguments whose buffer output k may take over.
      printed: ``(**params) -> params``: which of them a printed program shows.
    """

    def __init__(self, name: str, *, impl: Any = None, abstract_eval: Any = None,
                 jvp: Any = None, transpose: Any = None, batch: Any = None,
                 element: Any = None, loop: Any = None, library: Any = None, program: Any = None,
                 split: Any = None, effects: Callable[..., Effects] = joined_effects,
                 examples: Callable[[], list[Example]] | None = None,
                 multiple_results: bool = False,
                 # rare: for random keys, for loops that reuse memory, for what is long to print
                 handles_keys: bool = False, consumes_key: bool = False,
                 users_transpose: bool = False, asks_lazily: bool = False,
                 rows: Callable[..., Sequence[int]] = lambda **params: (),
                 in_place: Callable[..., Sequence[int]] = lambda k, /, **params: (),
                 printed: Callable[..., Params] | None = None):
        self.name, self.impl, self.abstract_eval = name, impl, abstract_eval
        self.jvp, self.transpose, self.batch = (
            types.MethodType(slot.rule, self) if isinstance(slot, ForPrimitive) else slot
            for slot in (jvp, transpose, batch))
        self.element, self.loop, self.library, self.program = element, loop, library, program
        self.split, self.effects, self.examples = split, effects, examples
        self.multiple_results = multiple_results
        self.handles_keys, self.consumes_key = handles_keys, consumes_key
        self.users_transpose = users_transpose
        self.asks_lazily, self.rows = asks_lazily, rows
        self.in_place, self.printed = in_place, printed
        self.as_made = dict(vars(self))  # which a user may change, slot by slot

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive under the current trace, or the first around it that it concerns."""
        before = trace = current_trace.get()
        try:
            values = [x if isinstance(x, Array) else self._argument(x, i)
                      for i, x in enumerate(args)]
            while not trace.concerns(self, values, params):
                trace = trace.parent or base_trace
            current_trace.set(trace.ground)
            outs = trace.process_primitive(self, values, params)
        except Exception as error:
            source_info.add_user_note(error, current_source.get())
            raise
        finally:
            current_trace.set(before)
        return outs if self.multiple_results else outs[0]

    def _argument(self, x: Any, position: int) -> Array:
        if isinstance(x, Zero | Undefined):
            raise TypeError(
                f"{self.name} was given a tangent or cotangent that has no value ({x}). Either the "
                "function is transposed (linear_transpose, custom rules) and is not linear in its "
                "arguments, or a differentiation rule takes a zero for an array.")
        return as_value_or(x, lambda: (
            f"Error interpreting argument to {self.name} as a JAX value. The problematic value is "
            f"of type {type(x)} and was passed to {self.name} at position {position}.\n"))

    def bind_list(self, *args: Any, **params: Any) -> list:
        outs = self.bind(*args, **params)
        return outs if self.multiple_results else [outs]

    def listed(self, outs: Any) -> list:
        """What `bind` returns, as a list of results."""
        return list(outs) if self.multiple_results else [outs]

    def rule(self, slot: str) -> Callable:
        """The rule in a slot.

        Raises:
          RuleNotImplementedError: where there is none; says why, or what is missing.
        """
        rule = getattr(self, slot)
        if callable(rule):
            return rule
        reason = rule.reason if isinstance(rule, Cannot) else ""
        raise errors.RuleNotImplementedError(self.name, slot, reason)

    def type_of(self, avals: Sequence[ShapedArray], params: Params
                ) -> tuple[ShapedArray, ...]:
        """The types of the outputs."""
        rule = self.rule("abstract_eval")
        # A cache entry would keep the programs inside alive, and their types are at hand anyway.
        if self.split is None:
            try:
                return _cached_types(rule, tuple(avals), tuple(params.items()), config.trace_key())
            except TypeError:  # a parameter has no hash; or the rule refuses, and will once more
                pass
        return tuple(rule(*avals, **params))

    # Evaluates where the arguments lie, once a device other than the CPU has been asked for.
    elsewhere: ClassVar[Callable[..., list[ArrayImpl] | None] | None] = None

    def evaluate(self, args: Sequence[Any], params: Params) -> list[ArrayImpl]:
        """Run the meaning on the numbers."""
        if self.elsewhere is not None and (outs := self.elsewhere(self, args, params)) is not None:
            return outs
        run, avals, inputs = self.rule("impl"), [x.aval for x in args], [x._buffer for x in args]
        if self.abstract_eval is None:  # a new primitive: what it gives shows its own type
            return list(map(as_value, run(*inputs, **params)))
        out_avals = self.type_of(avals, params)
        if not self.handles_keys and any(map(has_key_dtype, avals)):
            words = [ArrayImpl(x._buffer, physical_aval(x.aval)) for x in args]
            buffers = bind_physically(self, avals, words, params, _move_axis)
            return [_checked_array(self, b, a) for b, a in zip(buffers, out_avals, strict=True)]
        with np.errstate(all="ignore"):
            buffers = run(*inputs, **params)
        return [_checked_array(self, b, aval, inputs)
                for b, aval in zip(buffers, out_avals, strict=True)]

    def calls_python(self, params: Params) -> bool:
        """Whether a parameter is a Python function, which may have closed over tracers."""
        return False

    def staged(self, args: Sequence[Any], params: Params) -> tuple[Primitive, Sequence, Params]:
        """The form in which a program records it; differs where parameters are callables."""
        return self, args, params

    # What the tutorials on new primitives call; each fills the slot of the block.

    def def_impl(self, impl: Callable) -> Callable:
        # copies: what the function returns may be its own, to be changed later
        self.impl = lambda *args, **params: [
            np.array(as_value(out)._buffer)
            for out in self.listed(impl(*map(as_value, args), **params))]
        return impl

    def def_abstract_eval(self, rule: Callable) -> Callable:
        self.abstract_eval = lambda *avals, **params: self.listed(rule(*avals, **params))
        return rule

    def get_bind_params(self, params: Params) -> Params:
        """What an interpreter of equations gives `bind`: here what the equation holds."""
        return params

    def __repr__(self) -> str:
        return self.name


@caches.remembered(maxsize=8192)
def _cached_types(rule: Callable, avals: tuple, params: tuple, flags: tuple
                  ) -> tuple[ShapedArray, ...]:
    return tuple(rule(*avals, **dict(params)))


def _checked_array(primitive: Primitive, buffer: Any, aval: ShapedArray,
                   inputs: Sequence[np.ndarray] = ()) -> ArrayImpl:
    """What an evaluation rule returned, which must be of the type that was promised."""
    wanted = physical_aval(aval)
    buffer = np.asarray(buffer, order="C")
    if buffer.dtype != wanted.dtype or buffer.shape != wanted.shape:
        raise TypeError(f"the evaluation rule of {primitive.name} returned "
                        f"{buffer.dtype}{[*buffer.shape]}, where its abstract evaluation rule "
                        f"promised {aval.str_long()}")
    # A row must not keep the whole table alive.
    if buffer.base is not None and any(np.may_share_memory(buffer, x) for x in inputs):
        buffer = buffer.copy()
    return ArrayImpl(buffer, aval)


def bind_physically(primitive: Primitive, avals: Sequence[ShapedArray], args: Sequence[Any],
                    params: Params, move_axis: Callable[[Any, int, int], Any]) -> list:
    """A shape primitive on keys: its batch rule, with the axis of words as the batch.

    Args:
      avals: the types as the program sees them.
      args: the words of keys, and ordinary values as they are.
      move_axis: ``(x, source, destination) -> x``, to bring the words to the end again.
    """
    words = next(aval.dtype.shape[0] for aval in avals if has_key_dtype(aval))
    dims = [aval.ndim if has_key_dtype(aval) else None for aval in avals]
    outs, out_dims = primitive.rule("batch")(Axis(words), list(args), dims, **params)
    return [out if dim is None else move_axis(out, dim, -1)
            for out, dim in zip(outs, out_dims, strict=True)]


def _move_axis(x: ArrayImpl, source: int, destination: int) -> np.ndarray:
    return np.moveaxis(x._buffer, source, destination)


# ── Concrete values ──────────────────────────────────────────────────────────────────────────

def concrete_or_error(x: Any, context: str = "") -> np.ndarray | None:
    """The NumPy array behind `x`.

    Raises:
      ConcretizationTypeError: when `x` is traced and its value is not known.
    """
    if isinstance(x, Array):
        known = x._concrete()
        if known is None:
            raise errors.ConcretizationTypeError(x, context)
        return known._buffer
    return np.asarray(x)


def is_concrete(x: Any) -> bool:
    return not isinstance(x, Tracer) or x._concrete() is not None
