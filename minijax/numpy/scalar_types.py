"""Dtypes as callable types, such as `float32(1.5)`, and constants.

Builds on `creation`.  Chapter 01, *Arrays, dtypes and weak types*.
In JAX: `jax/_src/numpy/scalar_types.py`.
"""

import copyreg
from typing import Any

import ml_dtypes
import numpy as np

from minijax import dtypes
from minijax.core import Array
from minijax.numpy.creation import asarray
from minijax.transforms.prepared import PARTS


class ScalarType(type):
    """The type of `float32` and its like: calling one makes an array of that dtype.

    >>> float32, float32(1), np.dtype(float32)
    (<class 'jax.numpy.float32'>, Array(1., dtype=float32), dtype('float32'))
    """

    dtype: np.dtype[Any]

    def __call__(cls, x: Any) -> Array:
        return asarray(x, dtype=cls.dtype)

    def __eq__(cls, other: object) -> bool:
        return cls is other or bool(cls.dtype.type == other)

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class 'jax.numpy.{cls.__name__}'>"  # as JAX's warnings print it


PARTS[ScalarType] = PARTS[type]


def _scalar_type(of_one: type | str | np.dtype) -> ScalarType:
    dtype: np.dtype[Any] = np.dtype(of_one)
    doc = f"Makes an array of dtype {dtype.name}; stands for the dtype, too."
    return ScalarType(dtype.name, (), {"dtype": dtype, "__doc__": doc, "__module__": __name__})


bool_ = _scalar_type(np.bool_)
int8, int16, int32, int64 = map(_scalar_type, (np.int8, np.int16, np.int32, np.int64))
uint8, uint16, uint32, uint64 = map(_scalar_type, (np.uint8, np.uint16, np.uint32, np.uint64))
float16, float32, float64 = map(_scalar_type, (np.float16, np.float32, np.float64))
bfloat16 = _scalar_type(ml_dtypes.bfloat16)
complex64, complex128 = map(_scalar_type, (np.complex64, np.complex128))

int_, uint, float_, complex_ = int64, uint64, float64, complex128
single, double, csingle, cdouble = float32, float64, complex64, complex128

# Arrays of narrow dtypes can be created, stored and converted; `jit` does not compute with them.
(float4_e2m1fn, float6_e2m3fn, float6_e3m2fn, float8_e3m4, float8_e4m3, float8_e8m0fnu,
 float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz) = map(
     _scalar_type, dtypes.SMALL_FLOATS)
int2, int4, uint2, uint4 = map(_scalar_type, ("int2", "int4", "uint2", "uint4"))
if hasattr(ml_dtypes, "int1"):  # from ml_dtypes 0.6 on
    int1, uint1 = _scalar_type(ml_dtypes.int1), _scalar_type(ml_dtypes.uint1)

copyreg.pickle(ScalarType, lambda cls: "bool_" if cls is bool_ else cls.__name__)


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Return whether a cast is allowed by NumPy's rule `casting`.

    >>> can_cast("int8", "int16"), can_cast("int32", "float32")
    (True, False)
    """
    return bool(np.can_cast(from_, to, casting))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether `dtype` is of a kind: a word of the array API, a dtype, or a tuple of these.

    >>> isdtype("float32", "real floating"), isdtype("int8", ("bool", "uint8"))
    (True, False)
    """
    dtype = dtype if isinstance(dtype, dtypes.KeyType) else np.dtype(dtype)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return any(dtype in _dtypes_of_kind(each) for each in kinds)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether one dtype is another, or belongs to that kind.

    >>> issubdtype("bfloat16", np.floating), issubdtype("int8", np.floating)
    (True, False)
    """
    return dtypes.issubdtype(arg1, arg2)


def _dtypes_of_kind(kind: Any) -> list[Any]:
    if isinstance(kind, str) and kind in dtypes.KINDS:
        return dtypes.KINDS[kind]
    if isinstance(kind, dtypes.KeyType):
        return [kind]
    try:
        return [np.dtype(kind)]
    except TypeError:
        if isinstance(kind, str):
            raise ValueError(f"Unrecognized kind={kind!r} expected one of {list(dtypes.KINDS)}, "
                             "or a compatible input for jnp.dtype()") from None
        raise TypeError(f"Expected kind to be a dtype, string, or tuple; got kind={kind!r}"
                        ) from None
