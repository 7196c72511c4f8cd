"""The flags of the package: their names, meanings and allowed values.

Builds on the standard library alone.  Users see this module as ``minijax.config``.
Chapter 08, *jit*: a flag that changes tracing is part of the key.
In JAX: ``jax/_src/config.py``.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import operator
import os
import sys
import types
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from minijax.util import caches, context, lazily

T = TypeVar("T")
_TRUE = ("1", "true", "t", "yes", "y", "on")
_FALSE = ("0", "false", "f", "no", "n", "off", "")
PREFIXES = ("minijax_", "jax_")


# -- kinds of value ------------------------------------------------------------------------------


class Kind(NamedTuple):
    """What a flag may be set to: how it is checked, how it is read from text, and in words.

    >>> boolean.check(1), integer.read("12")
    (True, 12)
    """

    check: Callable[[Any], Any]  # returns it as the flag keeps it, or raises
    read: Callable[[str], object]
    expected: str


def _truth(value: object) -> bool:
    # `in` would let 1.0 pass, and NumPy's booleans are no `bool`
    if type(value).__name__ in ("bool", "bool_", "int") and value in (0, 1):
        return bool(value)
    raise ValueError("not True or False")


def _text_or_none(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    raise TypeError("not a string")


def _anything(value: object) -> Hashable:
    hash(value)  # it becomes part of the jit key
    return value


boolean = Kind(_truth, lambda text: (_FALSE + _TRUE).index(text.strip().lower()) >= len(_FALSE),
               "True or False")
integer = Kind(operator.index, int, "an integer")
optional_text = Kind(_text_or_none, str, "a string or None")
hashable = Kind(_anything, lambda text: text or None, "any hashable value")


# -- where the values live -----------------------------------------------------------------------


_UNSET: Any = object()
_OFF = (False, None, "", "allow", "cpu")  # values at which no `Hook` has anything to do
_STATE = ""  # the entry that says of which state the others are; no flag is called so


class State:
    """What all flags are at one time: the same object until one of them changes.

    `around` is the state of what all threads see, where a thread has set more by `with`.
    """

    __slots__ = ("around", "key")

    def __init__(self, around: State | None = None) -> None:
        self.around = around
        self.key: tuple[Any, ...] | None = None  # see `trace_key`


class Overrides(dict[str, Any]):
    """What a thread has set by `with`: one object for the same values, which never changes."""

    __slots__ = ("state",)
    __hash__, __eq__ = object.__hash__, object.__eq__  # type: ignore[assignment]

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.state = State()


flags: dict[str, Flag] = {}
traced_names: list[str] = []  # of the flags that change what tracing gives: `trace_key`'s order
_shared: dict[str, Any] = {_STATE: State()}  # what all threads see
_NOTHING = Overrides({})
# What this thread has set by `with`; nothing nearly always.
_overrides: ContextVar[Overrides] = ContextVar("minijax_flags", default=_NOTHING)


def _share(values: Mapping[str, Any]) -> None:
    _shared.update({**values, _STATE: State()})  # no thread and no interrupt comes between


@caches.remembered(maxsize=256)
def _held(values: frozenset[tuple[str, type, Any]]) -> Overrides:
    return Overrides({name: value for name, _, value in values})


@caches.remembered(maxsize=1024)
def _changed(now: Overrides, names: tuple[str, ...], other: Overrides) -> Overrides:
    """These overrides, but those of some names as others have them."""
    values = {name: value for name, value in now.items() if name not in names} | {
        name: other[name] for name in names if name in other}
    return _held(frozenset((name, type(value), value) for name, value in values.items()))


class Held(ContextDecorator):
    """A flag held at a value, in this thread, while a ``with`` or a decorated function runs.

    >>> wide = enable_x64(True)
    >>> with wide, wide:
    ...     enable_x64.value
    True
    """

    def __init__(self, hold: Callable[[], AbstractContextManager[None]]) -> None:
        self._hold = hold
        self._entered: list[AbstractContextManager[None]] = []

    def __enter__(self) -> None:
        self._entered.append(self._hold())
        self._entered[-1].__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        return self._entered.pop().__exit__(*error)

    def _recreate_cm(self) -> Held:  # for each call of what is decorated
        return Held(self._hold)


class Flag:
    """One switch.  Read ``flag.value``; ``with flag(value):`` changes it for a while, here only.

    Others that change `together` with it take the same value.

    >>> enable_x64.value
    False
    >>> with enable_x64(True):
    ...     enable_x64.value
    True
    """

    def __init__(self, name: str, kind: Kind, default: Any, doc: str,
                 together: tuple[Flag, ...] = ()) -> None:
        self.name, self.kind, self.default = name, kind, default
        self.together = (self, *together)
        self.names = tuple([flag.name for flag in self.together])
        self.__doc__ = doc

    @property
    def value(self) -> Any:
        """The value in this thread, now."""
        overrides = _overrides.get()
        if overrides and self.name in overrides:
            return overrides[self.name]
        return _shared[self.name]

    def __call__(self, new_val: Any = _UNSET) -> Held:
        """Return a context manager that sets the flag in this thread (a bare switch: to True)."""
        if new_val is _UNSET:
            if self.kind is not boolean:
                raise TypeError(f"{self.name} needs a value: {self.kind.expected}.")
            new_val = True
        return Held(functools.partial(self._held_at, self.check(new_val)))

    @contextmanager
    def _held_at(self, value: Any) -> Iterator[None]:
        before, names = _overrides.get(), self.names
        override = _held(frozenset([(name, type(value), value) for name in names]))
        # Set inside `try`, and restore twice: an interrupt may hit one of the two.
        try:
            try:
                _overrides.set(_changed(before, names, override))
                yield
            finally:
                _overrides.set(_changed(_overrides.get(), names, before))
        finally:
            _overrides.set(_changed(_overrides.get(), names, before))

    def set(self, value: Any) -> None:
        """Set the flag for all threads, for good."""
        _share(dict.fromkeys(self.names, value))

    def check(self, value: Any, text_of: str = "") -> Any:
        """Return `value` as it is kept; raise ValueError with what the flag takes.

        With `text_of`, it is a text of that origin, which the error blames.
        """
        try:
            return self.kind.check(self.kind.read(value) if text_of else value)
        except (ValueError, TypeError):
            raise ValueError(f"{text_of or 'jax_' + self.name} takes {self.kind.expected}, "
                             f"not {value!r}.") from None

    def __repr__(self) -> str:
        return f"<flag jax_{self.name} = {self.value!r}>"


def carried(work: Callable[..., T]) -> Callable[..., T]:
    """Return `work` as it would run here: in another thread it sees this thread's flags.

    >>> with enable_x64(True):
    ...     read_later = carried(lambda: enable_x64.value)
    >>> read_later()
    True
    """
    return functools.partial(context.with_values, {_overrides: _overrides.get()}, work)


def trace_key() -> tuple[Any, ...]:
    """Return the values of all flags that change what tracing gives: part of the jit key.

    >>> before = trace_key()
    >>> with enable_x64(True):
    ...     trace_key() == before
    False
    """
    now = state()
    if now.key is None:  # of values that are read after the state: at worst nobody asks for it
        values = {**_shared, **_overrides.get()}
        now.key = tuple([values[name] for name in traced_names])
    return now.key


def state() -> State:
    """Return what stays the same object as long as no flag changes: the fast half of a key.

    >>> with enable_x64(True):
    ...     inside = state()
    >>> inside is state()
    False
    >>> with enable_x64(True):
    ...     inside is state()
    True
    """
    overrides, shared = _overrides.get(), _shared[_STATE]
    if not overrides:
        return shared
    now = overrides.state
    if now.around is not shared:
        now = overrides.state = State(shared)
    return now


class Hook:
    """A module that inner rings call while one of some flags is on; loaded at its first use.

    It is true while one of the flags is on in this thread. Its attributes are the module's.

    >>> hook = Hook("math", debug_nans, debug_infs)
    >>> with debug_nans(True):
    ...     bool(hook), hook.floor(1.5)
    (True, 1)
    >>> bool(hook)
    False
    """

    def __init__(self, module: str, *on: Flag) -> None:
        self.module, self.flags = module, on
        self._last: tuple[State | None, bool] = (None, False)  # the answer for the last state
        self._loaded: types.ModuleType | None = None

    def __bool__(self) -> bool:
        now, (last, answer) = state(), self._last
        if now is not last:
            answer = any(flag.value not in _OFF for flag in self.flags)
            self._last = now, answer
        return answer

    def __getattr__(self, name: str) -> Any:
        if self._loaded is None:
            with lazily.importing:
                self._loaded = importlib.import_module(self.module)
        return getattr(self._loaded, name)


# -- declaring -----------------------------------------------------------------------------------


def define(name: str, kind: Kind, default: Any, doc: str, *, traced: bool = False,
           together: tuple[Flag, ...] = ()) -> Flag:
    """Declare a flag, give it its value from the environment, and return it.

    `traced` says that the flag changes what tracing gives, so that it belongs to the jit key.

    >>> define("doctest_only", boolean, False, "A switch that this example declares.").value
    False
    >>> del flags["doctest_only"]
    """
    flag = flags[name] = Flag(name, kind, default, doc, together)
    if traced:
        traced_names.append(name)
    said = [variable for variable in map(str.upper, spellings(flag)) if variable in os.environ]
    value = (flag.check(os.environ[said[0]], f"The environment variable {said[0]}")
             if said else default)
    _share(dict.fromkeys(flag.names if value else (name,), value))  # a value: also those together
    return flag


def switch(name: str, doc: str, *, traced: bool = False, together: tuple[Flag, ...] = ()) -> Flag:
    """Declare a flag that is off unless it is turned on."""
    return define(name, boolean, False, doc, traced=traced, together=together)


def choice(name: str, *choices: str | None, doc: str, traced: bool = False,
           together: tuple[Flag, ...] = ()) -> Flag:
    """Declare a flag that takes one of a few words; the first unless another is given."""
    kind = Kind(lambda value: choices[choices.index(value)], lambda text: text or None,
                "one of " + ", ".join(map(repr, choices)))
    return define(name, kind, choices[0], doc, traced=traced, together=together)


def spellings(flag: Flag) -> list[str]:
    """What a flag may be called from outside; ours comes first, and decides."""
    return [prefix + flag.name for prefix in PREFIXES]


enable_x64 = switch("enable_x64", traced=True, doc=(
    "Allow 64-bit types; off, they are truncated to 32 bits (with a warning if explicit)."))
numpy_dtype_promotion = choice("numpy_dtype_promotion", "standard", "strict", traced=True, doc=(
    "'strict' refuses to promote between two array dtypes; Python numbers still adapt."))
numpy_rank_promotion = choice("numpy_rank_promotion", "allow", "warn", "raise", traced=True, doc=(
    "The treatment of operands of different rank that are broadcast against each other."))
default_matmul_precision = choice("default_matmul_precision", None, *(
    "default high highest bfloat16 tensorfloat32 float32 bfloat16_3x ANY_F8_ANY_F8_F32 "
    "ANY_F8_ANY_F8_F32_FAST_ACCUM ANY_F8_ANY_F8_ANY ANY_F8_ANY_F8_ANY_FAST_ACCUM F16_F16_F16 "
    "F16_F16_F32 BF16_BF16_BF16 BF16_BF16_F32 BF16_BF16_F32_X3 BF16_BF16_F32_X6 BF16_BF16_F32_X9 "
    "TF32_TF32_F32 TF32_TF32_F32_X3 F32_F32_F32 F64_F64_F64").split(),
    traced=True, doc="The default precision of products; all are full precision on the CPU.")

# JAX: partitionable by default since 0.5; the pages that minijax restates have the original bits.
threefry_partitionable = switch("threefry_partitionable", traced=True, doc=(
    "Draw random bits in the layout of independent pieces."))
GENERATORS = "threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32"
default_prng_impl = choice("default_prng_impl", *GENERATORS, traced=True,
                           doc="The default generator of random.key and random.PRNGKey.")
enable_custom_prng = switch("enable_custom_prng", traced=True, doc=(
    "Let random.PRNGKey return typed keys, as random.key does."))
legacy_prng_key = choice("legacy_prng_key", "allow", "warn", "error", traced=True, doc=(
    "The treatment of a raw uint32 key in place of a typed key."))
random_seed_offset = define("random_seed_offset", integer, 0, traced=True, doc=(
    "A number added to every seed: the same program with other random numbers."))

disable_jit = switch("disable_jit", "Run the Python of jitted functions and of control flow.")
check_tracer_leaks = switch("check_tracer_leaks", traced=True, doc=(
    "Raise at the end of a transformation if one of its tracers is still referenced."))
debug_nans = switch("debug_nans", "Raise FloatingPointError at the operation that produces a nan.")
debug_infs = switch("debug_infs", doc=(
    "Raise FloatingPointError at the operation that produces an infinity."))
debug_key_reuse = switch("debug_key_reuse", traced=True, doc=(
    "Raise KeyReuseError when a random key is consumed twice."))
debug_out_of_bounds = switch("debug_out_of_bounds", traced=True, doc=(
    "Raise IndexError with index, axis and bound where an index is clamped or dropped."))
debug_purity = switch("debug_purity", traced=True, doc=(
    "Check traced functions for side effects, and for globals that changed since tracing."))
debug_recompiles = switch("debug_recompiles", doc=(
    "Warn, with the reason, when a jitted function is traced again and again."))
debug_dtype_truncation = switch("debug_dtype_truncation", doc=(
    "Warn when 64-bit NumPy data loses bits, also without an explicit dtype."))
debug_unsafe_casts = switch("debug_unsafe_casts", traced=True, doc=(
    "Raise when astype converts a value that the new dtype cannot represent."))
xla_runtime_errors = switch("experimental_unsafe_xla_runtime_errors", doc=(
    "Let a checkify.check that is compiled without checkify raise, from compiled code."))
enable_checks = switch("enable_checks", doc=(
    "Check every jaxpr after each transformation, for work on minijax itself."))

log_compiles = switch("log_compiles", doc=(
    "Log, at level WARNING, each function that is traced and compiled, and how long it took."))
profiling = switch("profiling", doc=(
    "Record each operation in the profile of `jax.profiler`; `start_trace` sets it."))
no_tracing = switch("no_tracing", "Refuse to trace a function that was not traced before.")
no_execution = switch("no_execution", "Refuse to run an operation or a jitted function.")


def _transfer_guard(what: str = "", together: tuple[Flag, ...] = ()) -> Flag:
    """A flag that guards transfers; `sharp_bits.guards` has the checks."""
    return choice(
        "transfer_guard" + what, None, "allow", "log", "disallow", "log_explicit",
        "disallow_explicit", together=together, doc=(
            "The treatment of transfers from and to Python and NumPy: allowed, logged or refused; "
            "of implicit transfers only, or (with '_explicit') of explicit ones, too."))


transfer_guard_device_to_device = _transfer_guard("_device_to_device")
transfer_guard_device_to_host = _transfer_guard("_device_to_host")
transfer_guard_host_to_device = _transfer_guard("_host_to_device")
transfer_guard = _transfer_guard(together=(
    transfer_guard_device_to_device, transfer_guard_device_to_host, transfer_guard_host_to_device))

explain_cache_misses = switch("explain_cache_misses", doc=(
    "Log, at level WARNING, why a call of a jitted function had to be traced."))
traceback_filtering = choice(
    "traceback_filtering", "auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames",
    "quiet", doc=("The removal of the package's frames from tracebacks: 'off' shows everything, "
                  "'quiet' is short for 'quiet_remove_frames'."))
tracer_error_num_traceback_frames = define("tracer_error_num_traceback_frames", integer, 5, doc=(
    "How many frames of the tracer's creation an UnexpectedTracerError shows."))

platforms = define("platforms", optional_text, None, doc=(
    "The platform of new arrays, and of programs without arguments on a device: cpu, numpy (the "
    "CPU without a compiler), cuda (an NVIDIA GPU) or emulator (a GPU in NumPy). Of several, "
    "separated by commas, the first is taken; None means cpu."))
platform_name = define("platform_name", optional_text, None, doc=(
    "The same as `platforms`, which has precedence."))
default_device = define("default_device", hashable, None, traced=True, doc=(
    "The device, or platform, of new arrays, and of programs without arguments on a device; "
    "None means the first device of `platforms`."))
mesh = define("mesh", hashable, None, traced=True, doc="The mesh that `set_mesh` has set.")
num_cpu_devices = define("num_cpu_devices", integer, -1, doc=(
    "The number of CPU devices, which are threads of this process; -1 means one."))
collective_timeout = define("collective_timeout", integer, 300, doc=(
    "The seconds that a process waits for others, until it names them and ends the program."))
enable_compilation_cache = define("enable_compilation_cache", boolean, True, doc=(
    "Keep compiled kernels on disk for the next process."))
disable_most_optimizations = switch("disable_most_optimizations", doc=(
    "Compile without LLVM's optimiser, in a tenth of the time; programs run slower."))
# In XLA `--xla_gpu_deterministic_ops`, which is off by default, too.
deterministic_ops = switch("deterministic_ops", traced=True, doc=(
    "On a GPU, scatters add floats in the order of their updates: slower, with equal bits."))
prepared_calls = define("prepared_calls", boolean, True, doc=(
    "Without jit, repeat the NumPy calls of a public function for arrays of the same types."))
cpu = choice("cpu", None, "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", doc=(
    "The level of x86-64 of what is compiled later; None means all features of this processor."))
compiler = choice("compiler", "llvm", "numba", traced=True, doc=(
    "The compiler: 'llvm' takes a tenth of the time; 'numba' compiles the program of as_text("
    "'numba'), which cannot call LAPACK or Python, or on a GPU that of as_text('numba.cuda')."))
compilation_cache_dir = define("compilation_cache_dir", optional_text, None, doc=(
    "The directory of compiled kernels; None means the user's cache directory."))

checking_leaks = check_tracer_leaks


# -- as users call it ----------------------------------------------------------------------------


def names() -> list[str]:
    """Return the names of all flags, as JAX spells them.

    >>> "jax_enable_x64" in names()
    True
    """
    return ["jax_" + name for name in flags]


def _find(name: str) -> Flag:
    bare = name.removeprefix("minijax_").removeprefix("jax_")
    if (flag := flags.get(bare)) is None:
        near = difflib.get_close_matches(bare, flags, n=3, cutoff=0.5)
        hint = "Did you mean " + " or ".join("jax_" + n for n in near) + "?" if near else (
            "minijax.config.names() lists them all.")
        raise AttributeError(f"Unrecognized config option: {name}. {hint}")
    return flag


def update(name: str, value: Any) -> None:
    """Set a flag for all threads, for good: ``config.update("jax_enable_x64", True)``.

    The prefix may be ``jax_``, ``minijax_`` or missing.  Raises AttributeError for a name that
    no flag has, ValueError for a value that the flag does not take.

    >>> update("jax_log_compiles", True)
    >>> read("log_compiles")
    True
    >>> update("jax_log_compiles", False)
    """
    flag = _find(name)
    flag.set(flag.check(value))


def read(name: str) -> Any:
    """Return the value that a flag has in this thread.

    >>> read("jax_numpy_rank_promotion")
    'allow'
    """
    return _find(name).value


class Config:
    """The object `minijax.config`, which is no module in JAX: it has the names of this module, and
    flags as attributes, which cannot be assigned.

    >>> config.jax_enable_x64
    False
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith(PREFIXES):
            return read(name)
        if name == "values":
            # in JAX the mesh is no flag
            return {"jax_" + name: flag.value for name, flag in flags.items() if flag is not mesh}
        if name == "x64_enabled":
            return enable_x64.value
        if name in flags:  # which is declared where it is used
            return flags[name]
        return vars(self)["__getattr__"](name)  # which loads names on their first use

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith(PREFIXES) or name in flags:
            raise AttributeError(f"Flags are not assigned: use config.update({name!r}, {value!r}) "
                                 "for good, or a `with` statement for a while.")
        super().__setattr__(name, value)

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *names()]


config = Config()
config.__dict__ = globals()
# The module does the same for those who import it by its path, as libraries do `jax._src.config`.
sys.modules[__name__].__class__ = type("ConfigModule", (Config, types.ModuleType), {})
