"""Dtypes: their kinds, promotion, the dtype of a value, and weak types.

Builds on NumPy, ml_dtypes, `config` and `errors`; values are recognised by their ``aval`` or
``dtype``, so that no outer ring is imported.  Chapter 01, *Arrays, dtypes and weak types*.
In JAX: ``jax/_src/dtypes.py``.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from minijax.util import caches, lazily
from minijax import config, errors
from minijax.errors import TypePromotionError

# -- numbers -------------------------------------------------------------------------------------


def _dtypes(*names: str) -> list[np.dtype[Any]]:
    """The dtypes with these names that the installed versions have."""
    return [np.dtype(name) for name in names if hasattr(np, name) or hasattr(ml_dtypes, name)]


bfloat16 = ml_dtypes.bfloat16
BOOL = np.dtype(bool)
BFLOAT16 = np.dtype(bfloat16)
FLOAT4 = _dtypes("float4_e2m1fn")
FLOAT6 = _dtypes("float6_e2m3fn", "float6_e3m2fn")
FLOAT8 = _dtypes("float8_e3m4", "float8_e4m3", "float8_e8m0fnu", "float8_e4m3b11fnuz",
                 "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
SMALL_SIGNED = _dtypes("int1", "int2", "int4")
SMALL_UNSIGNED = _dtypes("uint1", "uint2", "uint4")
SMALL_INTEGERS = SMALL_SIGNED + SMALL_UNSIGNED
SMALL_FLOATS = FLOAT4 + FLOAT6 + FLOAT8
SIGNED = SMALL_SIGNED + _dtypes("int8", "int16", "int32", "int64")
UNSIGNED = SMALL_UNSIGNED + _dtypes("uint8", "uint16", "uint32", "uint64")
FLOATS = [*SMALL_FLOATS, BFLOAT16, *_dtypes("float16", "float32", "float64")]
COMPLEX = _dtypes("complex64", "complex128")
NUMERIC = SIGNED + UNSIGNED + FLOATS + COMPLEX

# Narrow dtypes, and the dtypes in which they are computed.
_WIDE = {**dict.fromkeys([*_dtypes("float16"), BFLOAT16, *SMALL_FLOATS], np.dtype("float32")),
         **dict.fromkeys(SMALL_SIGNED, np.dtype("int8")),
         **dict.fromkeys(SMALL_UNSIGNED, np.dtype("uint8"))}


def is_narrow(dtype: Any) -> bool:
    """Return whether arithmetic on `dtype` is done in a wider one and then rounded.

    >>> is_narrow(BFLOAT16), is_narrow(np.dtype("int4")), is_narrow(np.dtype("int8"))
    (True, True, False)
    """
    return dtype in _WIDE


def computed_in(dtype: Any) -> Any:
    """Return the dtype in which numbers of `dtype` are added up and multiplied.

    >>> computed_in(BFLOAT16), computed_in(np.dtype("uint4")), computed_in(np.dtype("float64"))
    (dtype('float32'), dtype('uint8'), dtype('float64'))
    """
    return _WIDE.get(dtype, dtype)


def kind(dtype: Any) -> str:
    """Return "b", "i", "u", "f" or "c", NumPy's letter, for narrow dtypes too; "V" for others.

    >>> kind(np.dtype("int4")), np.dtype("int4").kind
    ('i', 'V')
    """
    return computed_in(dtype).kind


# -- no numbers: the tangents of integers, and keys ----------------------------------------------

float0: np.dtype[Any] = np.dtype([("float0", np.void, 0)])
"""The dtype of tangents of integers and booleans: the one such tangent takes no space."""


class extended(np.generic):
    """The abstract scalar type of every dtype that is not NumPy's; for ``issubdtype`` only.

    >>> issubdtype(key_dtype("threefry2x32"), extended)
    True
    """


class prng_key(extended):
    """The abstract scalar type of random keys; for ``issubdtype`` only.

    >>> issubdtype(key_dtype("threefry2x32"), prng_key), issubdtype("uint32", prng_key)
    (True, False)
    """


class KeyType:
    """The dtype of typed random keys: one element is, physically, a small array of words.

    There is one object per generator; ``key_dtype`` gives it. `impl` is its name, or what
    `extend.random` defined: the functions that do with words what primitives do with Threefry's.

    >>> key_dtype("threefry2x32"), key_dtype("threefry2x32").shape
    (key<fry>, (2,))
    """

    # The kind is opaque, as NumPy's void is: no arithmetic, no promotion.
    type, base_dtype, kind = prng_key, np.dtype("uint32"), "V"

    def __init__(self, impl: Any, tag: str, *key_shape: int) -> None:
        self.impl, self.tag, self.name, self.key_shape = impl, tag, f"key<{tag}>", key_shape
        self.shape = (math.prod(key_shape),)  # in memory the words form a vector
        self.itemsize = self.shape[0] * self.base_dtype.itemsize

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[..., KeyType], tuple[str]]:
        return key_dtype, (self.impl,)


DType: TypeAlias = "np.dtype[Any] | KeyType"

_KEY_TYPES = {impl: KeyType(impl, tag, words) for impl, tag, words in zip(
    config.GENERATORS, "fry fry4 rbg urbg phx2 phx4".split(), (2, 4, 4, 4, 1, 2), strict=True)}


def is_key(dtype: Any) -> bool:
    """Whether a dtype is that of PRNG keys."""
    return isinstance(dtype, KeyType)


def key_dtype(impl: str) -> KeyType:
    """Return the dtype of the keys of a generator.

    >>> key_dtype("threefry2x32").itemsize
    8
    """
    if impl not in _KEY_TYPES:
        all_ = ", ".join(f'"{name}"' for name in _KEY_TYPES)
        raise ValueError(f'unrecognized PRNG implementation "{impl}". Did you mean one of: {all_}?')
    return _KEY_TYPES[impl]


# -- kinds ---------------------------------------------------------------------------------------

VALID = frozenset([BOOL, *NUMERIC, float0])

KINDS = {
    "bool": [BOOL], "signed integer": SIGNED, "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED, "real floating": FLOATS, "complex floating": COMPLEX,
    "numeric": NUMERIC}


def is_valid_dtype(dtype: Any) -> bool:
    """Return whether arrays can have this dtype.

    >>> is_valid_dtype(np.dtype("bool")), is_valid_dtype(np.dtype("U3"))
    (True, False)
    """
    return isinstance(dtype, KeyType) or dtype in VALID


# ml_dtypes' scalar classes are no subclasses of NumPy's: these are the bases they would have.
_PARENTS: dict[Any, type] = {
    **{d.type: np.floating for d in [*SMALL_FLOATS, BFLOAT16]},
    **{d.type: np.signedinteger for d in SMALL_SIGNED},
    **{d.type: np.unsignedinteger for d in SMALL_UNSIGNED}}


def issubdtype(a: Any, b: Any) -> bool:
    """Return whether one dtype is another, or belongs to that kind.

    Knows bfloat16 and the other small types, and typed keys.

    >>> issubdtype("bfloat16", np.floating), issubdtype("int8", np.floating)
    (True, False)
    """
    if isinstance(b, KeyType):
        return a is b
    lower, upper = _scalar_type(a), _scalar_type(b)
    return upper is lower or issubclass(_PARENTS.get(lower, lower), upper)


def _scalar_type(x: Any) -> Any:
    """Return the scalar class of a dtype, a name, or a class that stands for one."""
    if isinstance(x, (KeyType, np.dtype)):
        return x.type
    return x if isinstance(x, type) and issubclass(x, np.generic) else np.dtype(x).type


# -- size and name, and what operations make of a dtype ------------------------------------------

finfo = ml_dtypes.finfo  # NumPy's, plus the small floats
iinfo = ml_dtypes.iinfo


def itemsize_bits(dtype: Any) -> int:
    """Return the number of bits of one element; 4-bit types have four, whatever they occupy.

    Raises:
      ValueError: for None, which NumPy takes for float64.

    >>> itemsize_bits("int4"), itemsize_bits("complex64"), itemsize_bits(bool)
    (4, 64, 8)
    """
    if dtype is None:
        raise ValueError("dtype cannot be None.")
    dtype = dtype if isinstance(dtype, KeyType) else np.dtype(dtype)
    if dtype in SMALL_INTEGERS + SMALL_FLOATS:
        return int((iinfo if dtype in SMALL_INTEGERS else finfo)(dtype).bits)
    return int(8 * dtype.itemsize)


@functools.cache
def short_name(dtype: DType) -> str:
    """Return how jaxprs print a dtype.

    >>> [short_name(np.dtype(n)) for n in ("float32", "bool", "uint8", bfloat16)]
    ['f32', 'bool', 'u8', 'bf16']
    """
    if dtype == float0:
        return "float0"
    return re.sub("float|uint|int|complex", lambda word: word[0][0], dtype.name)


def to_numeric_dtype(dtype: Any) -> np.dtype[Any]:
    """Return `dtype`, or int32 for bool.

    >>> to_numeric_dtype(bool)
    dtype('int32')
    """
    numpy_dtype = np.dtype(dtype)
    return np.dtype("int32") if numpy_dtype == BOOL else numpy_dtype


def to_inexact_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the floating dtype in which functions such as sin compute `dtype`.

    >>> to_inexact_dtype("int8"), to_inexact_dtype("float16")
    (dtype('float32'), dtype('float16'))
    """
    numpy_dtype = np.dtype(dtype)
    if numpy_dtype.kind in "iu" and numpy_dtype.itemsize == 8:
        return np.dtype("float64")
    return np.dtype("float32") if numpy_dtype in (BOOL, *SIGNED, *UNSIGNED) else numpy_dtype


def to_floating_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the real dtype of what functions such as abs give for `dtype`.

    >>> to_floating_dtype("complex64"), to_floating_dtype("int8")
    (dtype('float32'), dtype('float32'))
    """
    return np.dtype(finfo(to_inexact_dtype(dtype)).dtype)


def to_complex_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the complex dtype whose parts hold `dtype`.

    >>> to_complex_dtype("float32")
    dtype('complex64')
    """
    wide = to_inexact_dtype(dtype) in (np.dtype("float64"), np.dtype("complex128"))
    return np.dtype("complex128" if wide else "complex64")


# -- the lattice ---------------------------------------------------------------------------------

Node: TypeAlias = "np.dtype[Any] | type"

# The steps up: each type, and those just above it.  int, float and complex in Python's sense are
# the weak types; a weak type lies below every strong type of its kind, and so gives way to it.
_STEPS: tuple[tuple[Any, str], ...] = (
    ("bool", "int*"),
    ("int*", "uint8 int8"),
    ("uint8", "uint16 int16"), ("uint16", "uint32 int32"), ("uint32", "uint64 int64"),
    ("int8", "int16"), ("int16", "int32"), ("int32", "int64"),
    ("uint64", "float*"), ("int64", "float*"),
    ("float*", "bfloat16 float16 complex*"),
    ("bfloat16", "float32"), ("float16", "float32"), ("float32", "float64 complex64"),
    ("float64", "complex128"),
    ("complex*", "complex64"), ("complex64", "complex128"), ("complex128", ""),
)
_WEAK_NODES: dict[str, type] = {"int*": int, "float*": float, "complex*": complex}


def _node(name: str) -> Node:
    return _WEAK_NODES.get(name) or np.dtype(name)


def _steps_up(strict: bool, x64: bool) -> dict[Node, list[Node]]:
    if strict:  # nothing but weak types gives way
        return {int: [float, *SIGNED, *UNSIGNED], float: [complex, *FLOATS],
                complex: [*COMPLEX], **{d: [] for d in (BOOL, *NUMERIC)}}
    steps = {_node(low): [_node(name) for name in high.split()] for low, high in _STEPS}
    # the small types give way to nothing but themselves
    steps[int] = [*steps[int], *SMALL_INTEGERS]
    steps[float] = [*steps[float], *SMALL_FLOATS]
    steps |= {d: [] for d in SMALL_INTEGERS + SMALL_FLOATS}
    if not x64:  # the one step that makes 64 bits of 32
        steps[np.dtype("uint32")] = [np.dtype("uint64"), np.dtype("int32")]
    return steps


@functools.cache
def _everything_above(strict: bool, x64: bool) -> dict[Node, frozenset[Node]]:
    """Return, for each type, the set of all types at or above it."""
    steps = _steps_up(strict, x64)

    @functools.cache
    def above(node: Node) -> frozenset[Node]:
        return frozenset([node]).union(*(above(high) for high in steps[node]))

    return {node: above(node) for node in steps}


@caches.remembered(maxsize=4096)
def _least_upper_bound(strict: bool, x64: bool, nodes: frozenset[Node]) -> Node:
    """Return the lowest type that is at or above all `nodes`."""
    above = _everything_above(strict, x64)
    for node in nodes:
        if node not in above:
            raise ValueError(f"dtype={node!r} is not a valid dtype for JAX type promotion.")
    common = frozenset.intersection(*(above[node] for node in nodes))
    for candidate in common:
        if common <= above[candidate]:
            return candidate
    raise TypePromotionError(_no_common_type(strict, nodes))


_SMALL_FAMILIES = ((FLOAT8, "8-bit floats", "float32"), (FLOAT6, "6-bit floats", "float32"),
                   (FLOAT4, "4-bit floats", "float32"),
                   (SMALL_INTEGERS, "1-bit, 2-bit and 4-bit integers", "int32"))


def _no_common_type(strict: bool, nodes: Iterable[Node]) -> str:
    nodes = sorted(nodes, key=str)
    message = (f"Input dtypes {tuple(str(n) for n in nodes)} have no available implicit dtype "
               "promotion path")
    if strict:
        return (f"{message} when jax_numpy_dtype_promotion=strict. Try explicitly casting inputs "
                "to the desired output type, or set jax_numpy_dtype_promotion=standard.")
    for family, words, instead in _SMALL_FAMILIES:
        if any(node in family for node in nodes):
            return (f"{message}. To avoid unintended promotion, {words} do not support implicit "
                    "promotion. If you'd like your inputs to be promoted to another type, you can "
                    f"do so explicitly using e.g. x.astype('{instead}')")
    return f"{message}. Try explicitly casting inputs to the desired output type."


# -- promotion of two dtypes ---------------------------------------------------------------------


def promote_types(a: Any, b: Any) -> Any:
    """Return the dtype in which a binary operation on `a` and `b` computes.

    ``int``, ``float`` and ``complex`` stand for Python numbers, which adapt.
    Raises TypePromotionError where there is none.

    >>> promote_types("int32", "float16"), promote_types("uint8", int)
    (dtype('float16'), dtype('uint8'))
    """
    if isinstance(a, KeyType) and a is b:
        return a
    return np.dtype(join(x if is_weak_node(x) else np.dtype(x) for x in (a, b)))


is_asked_by_user = lazily.later("minijax.util.users_calls", "is_asked_by_user")


def is_strict() -> bool:
    """Return whether the user forbids what promotes here: it is the user's own call.

    >>> is_strict()
    False
    """
    return config.numpy_dtype_promotion.value == "strict" and is_asked_by_user()


def join(nodes: Iterable[Node]) -> Node:
    return _least_upper_bound(is_strict(), config.enable_x64.value, frozenset(nodes))


def is_weak_node(x: Any) -> bool:
    return x is int or x is float or x is complex


# -- canonical dtypes ----------------------------------------------------------------------------

_NARROWER = {np.dtype(wide): np.dtype(narrow) for wide, narrow in (
    ("int64", "int32"), ("uint64", "uint32"), ("float64", "float32"), ("complex128", "complex64"))}


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = True) -> Any:
    """Return the dtype that is used for `dtype`: 64 bits become 32 unless enable_x64 is on.

    >>> canonicalize_dtype("float64"), canonicalize_dtype(int), canonicalize_dtype("uint8")
    (dtype('float32'), dtype('int32'), dtype('uint8'))
    """
    if isinstance(dtype, KeyType):
        if not allow_extended_dtype:
            raise ValueError(f"{dtype} is not a NumPy dtype, which is required here.")
        return dtype
    if not isinstance(dtype, np.dtype):
        dtype = np.dtype(dtype)
    return dtype if config.enable_x64.value else _NARROWER.get(dtype, dtype)


def default_int_dtype() -> np.dtype[Any]:
    """Return the dtype of integers that were given none.

    >>> default_int_dtype()
    dtype('int32')
    """
    return canonicalize_dtype("int64")


def default_uint_dtype() -> np.dtype[Any]:
    """Return the dtype of unsigned integers that were given none.

    >>> default_uint_dtype()
    dtype('uint32')
    """
    return canonicalize_dtype("uint64")


def default_float_dtype() -> np.dtype[Any]:
    """Return the dtype of floats that were given none.

    >>> default_float_dtype()
    dtype('float32')
    """
    return canonicalize_dtype("float64")


def check_user_dtype_supported(dtype: Any, fun_name: str | None = None) -> Any:
    """Return the dtype to use where a user asked for `dtype` (None stays None).

    Gives a UserWarning, at the user's line, where 64 bits are asked for and will be 32.
    Raises TypeError for what no array can hold, such as strings and objects.

    >>> check_user_dtype_supported(float), check_user_dtype_supported("int8")
    (dtype('float32'), dtype('int8'))
    >>> check_user_dtype_supported("U3", "zeros")
    Traceback (most recent call last):
    ...
    TypeError: JAX only supports number, bool, and string dtypes, got dtype U3 in zeros
    """
    if dtype is None or isinstance(dtype, KeyType):
        return dtype
    if hasattr(dtype, "aval"):
        raise ValueError("Passing an array as a dtype argument is no longer supported; instead of "
                         "dtype=arr use dtype=arr.dtype.")
    # `in` would compare with ==, which makes a NumPy dtype of its other side
    if isinstance(dtype, type) and dtype in _PYTHON_SCALARS:
        return canonicalize_dtype(_PYTHON_SCALARS[dtype])
    requested = np.dtype(dtype)
    if requested not in VALID:
        got = f"got dtype {dtype} in {fun_name}" if fun_name else f"got dtype {dtype}"
        raise TypeError(f"JAX only supports number, bool, and string dtypes, {got}")
    canonical = canonicalize_dtype(requested)
    if canonical != requested:
        _warn_of_truncation(dtype, canonical, fun_name)
    return canonical


def _warn_of_truncation(requested: Any, canonical: np.dtype[Any], fun_name: str | None) -> None:
    where = f"requested in {fun_name}" if fun_name else ""  # the page prints the blank, too
    errors.warn(
        f"Explicitly requested dtype {requested} {where} is not available, and will be truncated "
        f"to dtype {canonical.name}. To enable more dtypes, set the jax_enable_x64 configuration "
        "option or the JAX_ENABLE_X64 shell environment variable. "
        "See https://github.com/google/jax#current-gotchas for more.")


# -- the dtype of a value ------------------------------------------------------------------------

_PYTHON_SCALARS: dict[Any, np.dtype[Any]] = {
    bool: BOOL, int: np.dtype("int64"), float: np.dtype("float64"),
    complex: np.dtype("complex128")}


def dtype(x: Any) -> Any:
    """Return the dtype of a value, or the one that a type, a name or a NumPy dtype stands for.

    Arrays and avals keep theirs; everything else is canonicalised.

    >>> dtype(3), dtype(2.5), dtype(np.ones(2)), dtype(int)
    (dtype('int32'), dtype('float32'), dtype('float32'), dtype('int32'))
    """
    if (python := python_type(x)) is not None:
        return canonicalize_dtype(_PYTHON_SCALARS[python])
    if isinstance(x, (type, str, np.dtype, KeyType)):
        return checked(canonicalize_dtype(_PYTHON_SCALARS.get(x, x)), x)
    aval = getattr(x, "aval", x)
    aval_dtype = getattr(aval, "dtype", None)
    if hasattr(aval, "weak_type"):  # an aval, or what has one: its dtype is canonical already
        return aval_dtype
    if aval_dtype is None and x is None:
        raise ValueError("Invalid argument to dtype: None.")
    if aval_dtype is None:
        raise TypeError(f"Cannot determine dtype of {x}")
    return checked(canonicalize_dtype(aval_dtype), x)


def checked(canonical: Any, x: Any) -> Any:
    """The dtype of a value, if arrays may have it."""
    if not is_valid_dtype(canonical):
        raise TypeError(f"Value {str(x)!r} with dtype {canonical} is not a valid JAX array type. "
                        "Only arrays of numeric types are supported by JAX.")
    return canonical


def python_type(x: Any) -> type | None:
    """Return which type of Python's numbers `x` is of, or of a subclass of; None for all others.

    NumPy's scalars have dtypes of their own, those that are floats of Python, too.

    >>> import enum
    >>> python_type(1j), python_type(enum.IntEnum("Side", "LEFT").LEFT), python_type(np.float64(1))
    (<class 'complex'>, <class 'int'>, None)
    """
    kind = type(x)
    if kind in _PYTHON_SCALARS:
        return kind
    if isinstance(x, np.generic):
        return None
    return next((python for python in _PYTHON_SCALARS if isinstance(x, python)), None)


# By kind: the type of Python's numbers.
_PYTHON_TYPES: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def scalar_type_of(x: Any) -> type:
    """Return the Python type that holds what one element of `x` holds.

    >>> scalar_type_of(np.int8(3)), scalar_type_of("bfloat16")
    (<class 'int'>, <class 'float'>)
    """
    if (letter := kind(dtype(x))) not in _PYTHON_TYPES:
        raise TypeError(f"Invalid scalar value {x}")
    return _PYTHON_TYPES[letter]


# -- promotion of values: weak types -------------------------------------------------------------

def is_weakly_typed(x: Any) -> bool:
    """Return whether `x` adapts to the dtype of other operands, as Python numbers do.

    >>> is_weakly_typed(3), is_weakly_typed(True), is_weakly_typed(np.float32(3))
    (True, False, False)
    """
    if (python := python_type(x)) is not None:
        return python is not bool
    return bool(getattr(getattr(x, "aval", x), "weak_type", False))


def lattice_result_type(*args: Any) -> tuple[Any, bool]:
    """Return (dtype, weak) of an operation on `args`, before weak results get their default.

    >>> lattice_result_type(np.int8(1), 2), lattice_result_type(1, 2.0)
    ((dtype('int8'), False), (dtype('float32'), True))
    """
    dtypes = [dtype(x) for x in args]
    weak = [is_weak_node(x) or is_weakly_typed(x) for x in args]
    if len(args) == 1:
        return dtypes[0], weak[0] and dtypes[0] != BOOL
    if len(set(dtypes)) == 1 and not all(weak):  # also the only way for keys
        return dtypes[0], False
    if all(weak) and not is_strict():
        # a weak type may be of another width than Python's: the strong dtypes are joined
        return _canonical_join(set(dtypes))[0], True
    return _canonical_join(_node_of(d, w) for d, w in zip(dtypes, weak, strict=True))


def _node_of(dtype: Any, weak: bool) -> Node:
    if not weak or dtype == BOOL:
        return dtype
    return scalar_type_of(dtype)


def _canonical_join(nodes: Iterable[Node]) -> tuple[Any, bool]:
    joined = join(nodes)
    return dtype(joined), is_weak_node(joined)


# By kind: what a weak result becomes, before it is cut to size.
_DEFAULTS = {"i": "int64", "u": "uint64", "f": "float64", "c": "complex128"}


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Return the dtype of an operation on `args`: values, dtypes or types (None: default float).

    With `return_weak_type_flag`, return (dtype, weak).  Raises TypePromotionError where the
    arguments have no common dtype.

    >>> result_type(np.float16(1), 2.5), result_type("uint8", "int8")
    (dtype('float16'), dtype('int16'))
    >>> result_type(1, 2.0, return_weak_type_flag=True)
    (dtype('float32'), True)
    """
    if not args:
        raise ValueError("at least one array or dtype is required")
    result, weak = lattice_result_type(*(default_float_dtype() if x is None else x for x in args))
    if weak and result != BOOL:
        result = canonicalize_dtype(_DEFAULTS["f" if result in FLOATS else result.kind])
    return (result, weak) if return_weak_type_flag else result


def safe_to_cast(source: Any, target: Any) -> bool:
    """Return whether promotion alone takes `source` (a dtype or value) to `target`.

    >>> safe_to_cast("int16", "float32"), safe_to_cast("float32", "int16")
    (True, False)
    """
    target_dtype = dtype(target)
    return bool(dtype(source) == target_dtype or result_type(source, target_dtype) == target_dtype)
