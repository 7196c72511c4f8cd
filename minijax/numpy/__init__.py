"""`minijax.numpy`: NumPy's functions for arrays and tracers, as composites over `lax`.

One module for each family of functions; the import installs operators and methods on arrays.
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
from minijax.numpy.scalar_types import *
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
bool = bool_  # noqa: F405
set_printoptions, get_printoptions, printoptions = (
    _np.set_printoptions, _np.get_printoptions, _np.printoptions)

install_operators(_sys.modules[__name__])  # as functions, which are faster than ufuncs

from minijax.numpy.ufuncs import *  # noqa: E402
