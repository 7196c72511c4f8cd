"""Which elements there are: NumPy's dtypes, smaller ones, keys of random numbers, and no number.

Stands on NumPy and ml_dtypes.  Its chapter is "Arrays, dtypes and weak types".
In JAX: a part of ``jax/_src/dtypes.py``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

# -- numbers -------------------------------------------------------------------------------------


def _from_ml_dtypes(*names: str) -> list[np.dtype[Any]]:
    return [np.dtype(getattr(ml_dtypes, name)) for name in names if hasattr(ml_dtypes, name)]


def _from_numpy(names: str) -> list[np.dtype[Any]]:
    return [np.dtype(name) for name in names.split()]


bfloat16 = ml_dtypes.bfloat16
BOOL = np.dtype(bool)
BFLOAT16 = np.dtype(bfloat16)
FLOAT4 = _from_ml_dtypes("float4_e2m1fn")
FLOAT6 = _from_ml_dtypes("float6_e2m3fn", "float6_e3m2fn")
FLOAT8 = _from_ml_dtypes("float8_e3m4", "float8_e4m3", "float8_e8m0fnu", "float8_e4m3b11fnuz",
                          "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
SMALL_SIGNED = _from_ml_dtypes("int1", "int2", "int4")
SMALL_UNSIGNED = _from_ml_dtypes("uint1", "uint2", "uint4")
SMALL_INTEGERS = SMALL_SIGNED + SMALL_UNSIGNED
SMALL_FLOATS = FLOAT4 + FLOAT6 + FLOAT8
SIGNED = SMALL_SIGNED + _from_numpy("int8 int16 int32 int64")
UNSIGNED = SMALL_UNSIGNED + _from_numpy("uint8 uint16 uint32 uint64")
FLOATS = [*SMALL_FLOATS, BFLOAT16, *_from_numpy("float16 float32 float64")]
COMPLEX = _from_numpy("complex64 complex128")
NUMERIC = SIGNED + UNSIGNED + FLOATS + COMPLEX


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

    There is one object per generator; ``key_dtype`` gives it.

    >>> key_dtype("threefry2x32"), key_dtype("threefry2x32").shape
    (key<fry>, (2,))
    """

    type = prng_key
    kind = "V"  # opaque, as NumPy's void is: no arithmetic, no promotion
    base_dtype = np.dtype("uint32")

    def __init__(self, impl: str, tag: str, words: int) -> None:
        self.impl, self.name, self.shape = impl, f"key<{tag}>", (words,)
        self.itemsize = words * self.base_dtype.itemsize

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[..., KeyType], tuple[str]]:
        return key_dtype, (self.impl,)

    def __copy__(self) -> KeyType:
        return self

    def __deepcopy__(self, memo: object) -> KeyType:
        return self


DType: TypeAlias = "np.dtype[Any] | KeyType"

# JAX: also 'rbg' and 'unsafe_rbg', of four words each.
_KEY_TYPES = {"threefry2x32": KeyType("threefry2x32", "fry", 2)}


def key_dtype(impl: str) -> KeyType:
    """Return the dtype of the keys of a generator.

    >>> key_dtype("threefry2x32").itemsize
    8
    """
    try:
        return _KEY_TYPES[impl]
    except KeyError:
        raise ValueError(f"There is no generator {impl!r}; there is {', '.join(_KEY_TYPES)}."
                         ) from None


# -- kinds ---------------------------------------------------------------------------------------

VALID = frozenset([BOOL, *NUMERIC, float0])

KINDS = {
    "bool": [BOOL],
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED,
    "real floating": FLOATS,
    "complex floating": COMPLEX,
    "numeric": NUMERIC,
}


def is_valid_dtype(dtype: Any) -> bool:
    """Return whether arrays can have this dtype.

    >>> is_valid_dtype(np.dtype("bool")), is_valid_dtype(np.dtype("U3"))
    (True, False)
    """
    return isinstance(dtype, KeyType) or dtype in VALID


def numpy_dtype(requested: Any) -> np.dtype[Any]:
    try:
        return np.dtype(requested)
    except TypeError as problem:
        raise TypeError(str(problem)) from None


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether `dtype` is of a kind: a word of the array API, a dtype, or a tuple of these.

    >>> isdtype("float32", "real floating"), isdtype("int8", ("bool", "uint8"))
    (True, False)
    """
    wanted = dtype if isinstance(dtype, KeyType) else np.dtype(dtype)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return any(wanted in _dtypes_of_kind(each) for each in kinds)


def _dtypes_of_kind(kind: Any) -> list[Any]:
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind]
    if isinstance(kind, KeyType):
        return [kind]
    try:
        return [np.dtype(kind)]
    except TypeError:
        if isinstance(kind, str):
            raise ValueError(f"Unrecognized kind={kind!r} expected one of {list(KINDS)}, "
                             "or a compatible input for jnp.dtype()") from None
        raise TypeError(f"Expected kind to be a dtype, string, or tuple; got kind={kind!r}"
                        ) from None


_ABOVE_FLOATS = (np.floating, np.inexact, np.number, np.generic)
_ABOVE_SIGNED = (np.signedinteger, np.integer, np.number, np.generic)
_ABOVE_UNSIGNED = (np.unsignedinteger, np.integer, np.number, np.generic)
# ml_dtypes' scalar classes are no subclasses of NumPy's: here is what they would inherit from.
_ABOVE_ML_DTYPES: dict[Any, tuple[Any, ...]] = {
    **{d.type: _ABOVE_FLOATS for d in [*SMALL_FLOATS, BFLOAT16]},
    **{d.type: _ABOVE_SIGNED for d in SMALL_SIGNED},
    **{d.type: _ABOVE_UNSIGNED for d in SMALL_UNSIGNED},
}


def issubdtype(a: Any, b: Any) -> bool:
    """Return whether dtype `a` is `b` or belongs to the kind `b`.

    Knows bfloat16 and the other small types, and typed keys.

    >>> issubdtype("bfloat16", np.floating), issubdtype("int8", np.floating)
    (True, False)
    """
    if isinstance(b, KeyType):
        return a is b
    lower, upper = _scalar_type(a), _scalar_type(b)
    if lower in _ABOVE_ML_DTYPES:
        return upper is lower or upper in _ABOVE_ML_DTYPES[lower]
    return issubclass(lower, upper)


def _scalar_type(x: Any) -> Any:
    """Return the scalar class of a dtype, a name, or a class that stands for one."""
    if isinstance(x, (KeyType, np.dtype)):
        return x.type
    if isinstance(x, type) and issubclass(x, np.generic):
        return x
    return np.dtype(x).type


# -- size and name, and what operations make of a dtype ------------------------------------------

finfo = ml_dtypes.finfo  # NumPy's, plus the small floats
iinfo = ml_dtypes.iinfo


def itemsize_bits(dtype: Any) -> int:
    """Return the number of bits of one element; 4-bit types have four, whatever they occupy.

    >>> itemsize_bits("int4"), itemsize_bits("complex64"), itemsize_bits(bool)
    (4, 64, 8)
    """
    if isinstance(dtype, KeyType):
        return 8 * dtype.itemsize
    wanted = np.dtype(dtype)
    if wanted in SMALL_INTEGERS:
        return int(iinfo(wanted).bits)
    if wanted in SMALL_FLOATS:
        return int(finfo(wanted).bits)
    return 8 * wanted.itemsize


_SHORTER = (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c"))


@functools.cache
def short_name(dtype: DType) -> str:
    """Return how jaxprs print a dtype.

    >>> [short_name(np.dtype(n)) for n in ("float32", "bool", "uint8", bfloat16)]
    ['f32', 'bool', 'u8', 'bf16']
    """
    if isinstance(dtype, KeyType):
        return dtype.name
    if dtype == float0:
        return "float0"
    name = dtype.name
    for word, letter in _SHORTER:
        name = name.replace(word, letter)
    return name


def to_numeric_dtype(dtype: Any) -> np.dtype[Any]:
    """Return `dtype`, or int32 for bool.

    >>> to_numeric_dtype(bool)
    dtype('int32')
    """
    wanted = np.dtype(dtype)
    return np.dtype("int32") if wanted == BOOL else wanted


def to_inexact_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the floating dtype in which functions such as sin compute `dtype`.

    >>> to_inexact_dtype("int8"), to_inexact_dtype("float16")
    (dtype('float32'), dtype('float16'))
    """
    wanted = np.dtype(dtype)
    if wanted.kind in "iu" and wanted.itemsize == 8:
        return np.dtype("float64")
    return np.dtype("float32") if wanted in (BOOL, *SIGNED, *UNSIGNED) else wanted


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
