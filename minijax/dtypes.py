"""The dtype of a value, what several of them make, and what 64 bits become without the flag.

Stands on `element_types` and `promotion`; values are known by their ``aval`` or ``dtype``, so
nothing above is imported.  Its chapter is "Arrays, dtypes and weak types".
In JAX: ``jax/_src/dtypes.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, overload

import numpy as np

from minijax import config, errors
from minijax.element_types import BOOL, FLOATS, KINDS, VALID, numpy_dtype
from minijax.element_types import DType as DType
from minijax.element_types import KeyType as KeyType
from minijax.element_types import bfloat16 as bfloat16
from minijax.element_types import extended as extended
from minijax.element_types import finfo as finfo
from minijax.element_types import float0 as float0
from minijax.element_types import iinfo as iinfo
from minijax.element_types import is_valid_dtype as is_valid_dtype
from minijax.element_types import isdtype as isdtype
from minijax.element_types import issubdtype as issubdtype
from minijax.element_types import itemsize_bits as itemsize_bits
from minijax.element_types import key_dtype as key_dtype
from minijax.element_types import prng_key as prng_key
from minijax.element_types import short_name as short_name
from minijax.element_types import to_complex_dtype as to_complex_dtype
from minijax.element_types import to_floating_dtype as to_floating_dtype
from minijax.element_types import to_inexact_dtype as to_inexact_dtype
from minijax.element_types import to_numeric_dtype as to_numeric_dtype
from minijax.errors import TypePromotionError as TypePromotionError
from minijax.promotion import Node, is_weak_node, join
from minijax.promotion import promote_types as promote_types

# -- cut to size ---------------------------------------------------------------------------------

_NARROWER = {np.dtype(wide): np.dtype(narrow) for wide, narrow in (
    ("int64", "int32"), ("uint64", "uint32"), ("float64", "float32"), ("complex128", "complex64"))}


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = True) -> Any:
    """Return the dtype that is used for `dtype`: 64 bits become 32 unless enable_x64 is on.

    >>> canonicalize_dtype("float64"), canonicalize_dtype(int), canonicalize_dtype("uint8")
    (dtype('float32'), dtype('int32'), dtype('uint8'))
    """
    if isinstance(dtype, KeyType):
        if not allow_extended_dtype:
            raise ValueError(f"{dtype} is no NumPy dtype, and here one is needed.")
        return dtype
    if not isinstance(dtype, np.dtype):
        dtype = numpy_dtype(dtype)
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


def default_complex_dtype() -> np.dtype[Any]:
    """Return the dtype of complex numbers that were given none.

    >>> default_complex_dtype()
    dtype('complex64')
    """
    return canonicalize_dtype("complex128")


@overload
def check_user_dtype_supported(dtype: None, fun_name: str | None = None) -> None: ...
@overload
def check_user_dtype_supported(dtype: Any, fun_name: str | None = None) -> Any: ...


def check_user_dtype_supported(dtype: Any, fun_name: str | None = None) -> Any:
    """Return the dtype to use where a user asked for `dtype` (None stays None).

    Gives a UserWarning, at the user's line, where 64 bits are asked for and will be 32.
    Raises TypeError for what no array can hold, such as strings and objects.

    >>> check_user_dtype_supported(float), check_user_dtype_supported("int8")
    (dtype('float32'), dtype('int8'))
    >>> check_user_dtype_supported("U3", "zeros")
    Traceback (most recent call last):
    ...
    TypeError: JAX only supports number and bool dtypes, got dtype U3 in zeros
    """
    if dtype is None or isinstance(dtype, KeyType):
        return dtype
    # `in` would compare with ==, which makes a NumPy dtype of its other side
    if isinstance(dtype, type) and dtype in _PYTHON_SCALARS:
        return canonicalize_dtype(_PYTHON_SCALARS[dtype])
    wanted = numpy_dtype(dtype)
    if wanted not in VALID:
        where = f" in {fun_name}" if fun_name else ""
        raise TypeError(f"JAX only supports number and bool dtypes, got dtype {dtype}{where}")
    given = canonicalize_dtype(wanted)
    if given != wanted:
        _warn_of_truncation(dtype, given, fun_name)
    return given


def _warn_of_truncation(requested: Any, given: np.dtype[Any], fun_name: str | None) -> None:
    where = f"requested in {fun_name}" if fun_name else ""  # the page prints the blank, too
    errors.warn(
        f"Explicitly requested dtype {requested} {where} is not available, and will be truncated "
        f"to dtype {given.name}. To enable more dtypes, set the jax_enable_x64 configuration "
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
    python = _PYTHON_SCALARS.get(type(x))
    if python is not None:
        return canonicalize_dtype(python)
    if isinstance(x, (type, str, np.dtype, KeyType)):
        return _dtype_named(x)
    aval = getattr(x, "aval", x)
    found = getattr(aval, "dtype", None)
    if hasattr(aval, "weak_type"):  # an aval, or what has one: its dtype is canonical already
        return found
    if found is None:
        found = _dtype_of_sequence_scalar(x)
    return _checked(canonicalize_dtype(found), x)


def _dtype_named(x: Any) -> Any:
    named = canonicalize_dtype(_PYTHON_SCALARS.get(x, x))
    return _checked(named, x)


def _checked(found: Any, x: Any) -> Any:
    if not is_valid_dtype(found):
        raise TypeError(f"Value {str(x)!r} with dtype {found} is not a valid JAX array type. "
                        "Only arrays of numeric types are supported by JAX.")
    return found


def _dtype_of_sequence_scalar(x: Any) -> np.dtype[Any]:
    for python, default in _PYTHON_SCALARS.items():
        if isinstance(x, python):  # a subclass of int or float, such as an IntEnum
            return default
    if x is None:
        raise ValueError("Invalid argument to dtype: None.")
    raise TypeError(f"Cannot determine dtype of {x}")


def is_python_scalar(x: Any) -> bool:
    """Return whether `x` is a Python bool, int, float or complex (and no subclass).

    >>> is_python_scalar(1j), is_python_scalar(np.float64(1))
    (True, False)
    """
    return type(x) in _PYTHON_SCALARS


def scalar_type_of(x: Any) -> type:
    """Return the Python type that holds what one element of `x` holds.

    >>> scalar_type_of(np.int8(3)), scalar_type_of("bfloat16")
    (<class 'int'>, <class 'float'>)
    """
    found = dtype(x)
    for kind, python in (("bool", bool), ("integral", int), ("real floating", float),
                         ("complex floating", complex)):
        if found in KINDS[kind]:
            return python
    raise TypeError(f"Invalid scalar value {x}")


def coerce_to_array(x: Any, dtype: Any = None) -> np.ndarray:
    """Return `x` as a NumPy array of canonical dtype; Python numbers get their default dtype.

    Raises OverflowError for a Python integer that does not fit.

    >>> coerce_to_array(3), coerce_to_array(np.ones(2)).dtype
    (array(3, dtype=int32), dtype('float32'))
    """
    wanted = canonicalize_dtype(dtype) if dtype is not None else None
    if wanted is None and type(x) in _PYTHON_SCALARS:
        wanted = canonicalize_dtype(_PYTHON_SCALARS[type(x)])
    if type(x) is int and wanted is not None and wanted.kind in "iu":
        _check_fits(x, wanted)
    found = np.asarray(x, wanted)
    return found.astype(canonicalize_dtype(found.dtype), copy=False)


def _check_fits(number: int, wanted: np.dtype[Any]) -> None:
    limits = iinfo(wanted)
    if not limits.min <= number <= limits.max:
        raise OverflowError(f"Python int {number} too large to convert to {wanted}")


# -- promotion of values: weak types -------------------------------------------------------------

_WEAK_PYTHON_SCALARS = (int, float, complex)


def is_weakly_typed(x: Any) -> bool:
    """Return whether `x` adapts to the dtype of what it meets, as Python numbers do.

    >>> is_weakly_typed(3), is_weakly_typed(True), is_weakly_typed(np.float32(3))
    (True, False, False)
    """
    if type(x) in _WEAK_PYTHON_SCALARS:
        return True
    return bool(getattr(getattr(x, "aval", x), "weak_type", False))


def lattice_result_type(*args: Any) -> tuple[Any, bool]:
    """Return (dtype, weak) of an operation on `args`, before weak results get their default.

    >>> lattice_result_type(np.int8(1), 2), lattice_result_type(1, 2.0)
    ((dtype('int8'), False), (dtype('float32'), True))
    """
    found = [dtype(x) for x in args]
    weak = [is_weak_node(x) or is_weakly_typed(x) for x in args]
    if len(args) == 1:
        return found[0], weak[0] and found[0] != BOOL
    if len(set(found)) == 1 and not all(weak):  # also the only way for keys
        return found[0], False
    if all(weak) and config.numpy_dtype_promotion.value != "strict":
        # a weak type may be of another width than Python's: what joins is the strong dtypes
        return _canonical_join(set(found))[0], True
    return _canonical_join(_node_of(d, w) for d, w in zip(found, weak, strict=True))


def _node_of(found: Any, weak: bool) -> Node:
    if not weak or found == BOOL:
        return found
    return scalar_type_of(found)


def _canonical_join(nodes: Iterable[Node]) -> tuple[Any, bool]:
    joined = join(nodes)
    return dtype(joined), is_weak_node(joined)


# By kind: what a weak result becomes, before it is cut to size.
_DEFAULTS = {"i": "int64", "u": "uint64", "f": "float64", "c": "complex128"}


@overload
def result_type(*args: Any, return_weak_type_flag: Literal[True]) -> tuple[Any, bool]: ...
@overload
def result_type(*args: Any, return_weak_type_flag: Literal[False] = False) -> Any: ...


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
    found, weak = lattice_result_type(
        *(default_float_dtype() if x is None else x for x in args))
    if weak:
        found = canonicalize_dtype(_DEFAULTS["f" if found in FLOATS else found.kind])
    return (found, weak) if return_weak_type_flag else found


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Return whether a cast is allowed by NumPy's rule `casting`.

    >>> can_cast("int8", "int16"), can_cast("int32", "float32")
    (True, False)
    """
    return bool(np.can_cast(from_, to, casting))


def safe_to_cast(source: Any, target: Any) -> bool:
    """Return whether promotion alone takes `source` (a dtype or value) to `target`.

    >>> safe_to_cast("int16", "float32"), safe_to_cast("float32", "int16")
    (True, False)
    """
    wanted = dtype(target)
    return bool(dtype(source) == wanted or result_type(source, wanted) == wanted)
