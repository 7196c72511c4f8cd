"""`minijax.numpy`: NumPy's functions for arrays and tracers, as composites over `lax`.

One file per family; importing it puts operators and methods on arrays.
In JAX: `jax/numpy/__init__.py`.
"""

import sys as _sys

import numpy as _np

from minijax.core import Array as ndarray, get_aval as _get_aval
from minijax.dtypes import finfo, float0, iinfo, promote_types, result_type
from minijax.numpy import fft, linalg
from minijax.numpy.arithmetic import *
from minijax.numpy.bits import *
from minijax.numpy.contractions import *
from minijax.numpy.creation import *
from minijax.numpy.diagonals import *
from minijax.numpy.files import *
from minijax.numpy.grids import *
from minijax.numpy.joining import *
from minijax.numpy.logic import *
from minijax.numpy.polynomials import *
from minijax.numpy.operators import install_operators
from minijax.numpy.putting import *  # type: ignore[assignment]
from minijax.numpy.reductions import *
from minijax.numpy.scalar_types import (can_cast, isdtype, issubdtype, ComplexWarning, bfloat16,
                                        bool_, cdouble, character, complex128, complex64, complex_,
                                        complexfloating, csingle, double, e, euler_gamma, flexible,
                                        float16, float32, float4_e2m1fn, float64, float6_e2m3fn,
                                        float6_e3m2fn, float8_e3m4, float8_e4m3, float8_e4m3b11fnuz,
                                        float8_e4m3fn, float8_e4m3fnuz, float8_e5m2,
                                        float8_e5m2fnuz, float8_e8m0fnu, float_, floating, generic,
                                        inexact, inf, int1, int16, int2, int32, int4, int64, int8,
                                        int_, integer, nan, newaxis, number, object_, pi,
                                        signedinteger, single, uint, uint1, uint16, uint2, uint32,
                                        uint4, uint64, uint8, unsignedinteger)
from minijax.numpy.searching import *
from minijax.numpy.sequences import *
from minijax.numpy.sets import *
from minijax.numpy.shaping import *
from minijax.numpy.sorting import *
from minijax.numpy.statistics import *
from minijax.numpy.unary import *
from minijax.numpy.vectorize import *
from minijax.numpy.windows import *

dtype = _np.dtype
bool = bool_
set_printoptions, get_printoptions, printoptions = (
    _np.set_printoptions, _np.get_printoptions, _np.printoptions)

install_operators(_sys.modules[__name__])  # the operators are functions, as they are quicker

from minijax.numpy.ufuncs import *  # noqa: E402
