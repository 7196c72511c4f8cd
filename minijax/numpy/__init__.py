"""`minijax.numpy`: NumPy's functions for arrays and tracers, as composites over `lax`.

One file per family; importing it puts operators and methods on arrays.
In JAX: `jax/numpy/__init__.py`.
"""

import sys as _sys

import numpy as _np

from minijax.core import Array as ndarray
from minijax.core import get_aval as _get_aval
from minijax.dtypes import finfo, float0, iinfo, issubdtype, promote_types, result_type
from minijax.numpy import fft, linalg
from minijax.numpy.arithmetic import *
from minijax.numpy.contractions import *
from minijax.numpy.creation import *
from minijax.numpy.diagonals import *
from minijax.numpy.joining import *
from minijax.numpy.logic import *
from minijax.numpy.operators import install_operators
from minijax.numpy.reductions import *
from minijax.numpy.scalar_types import can_cast, isdtype
from minijax.numpy.scalar_types import (bfloat16, bool_, cdouble, complex128, complex64, complex_,
                                        complexfloating, csingle, double, e, euler_gamma, float16,
                                        float32, float64, float_, floating, generic, inexact, inf,
                                        int16, int32, int64, int8, int_, integer, nan, newaxis,
                                        number, pi, signedinteger, single, uint, uint16, uint32,
                                        uint64, uint8, unsignedinteger)
from minijax.numpy.searching import *
from minijax.numpy.sequences import *
from minijax.numpy.sets import *
from minijax.numpy.shaping import *
from minijax.numpy.sorting import *
from minijax.numpy.unary import *
from minijax.numpy.vectorize import *

dtype = _np.dtype
bool = bool_
set_printoptions, get_printoptions, printoptions = (
    _np.set_printoptions, _np.get_printoptions, _np.printoptions)

install_operators(_sys.modules[__name__])
