"""Which dtypes other libraries' arrays may have, beside JAX."""

import jax
import numpy as np

import minijax
import minijax.dlpack


def outcome(f, *args, **kwargs):
    try:
        return repr(f(*args, **kwargs))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def test_dtypes_that_dlpack_takes():
    for dtype in ["bool", "int8", "uint64", "float16", "bfloat16", "complex64", "U3", "O", None,
                  "datetime64[s]", np.float64]:
        assert (outcome(minijax.dlpack.is_supported_dtype, dtype)
                == outcome(jax.dlpack.is_supported_dtype, dtype)), dtype
    assert minijax.dlpack.from_dlpack(np.arange(3.)).tolist() == [0, 1, 2]
