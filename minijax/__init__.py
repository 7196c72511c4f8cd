"""minijax: JAX rebuilt small enough to read.  This module is the list of its public names.

Start with `notebooks/00_tour.ipynb`.  In JAX: `jax/__init__.py`.
"""

from minijax import config as config
from minijax import debug as debug
from minijax import dtypes as dtypes
from minijax import errors as errors
from minijax import extend as extend
from minijax import lax as lax
from minijax import nn as nn
from minijax import numpy as numpy
from minijax import ops as ops
from minijax import random as random
from minijax import tree as tree
from minijax import tree_util as tree_util
from minijax.api import ShapeDtypeStruct as ShapeDtypeStruct
from minijax.api import block_until_ready as block_until_ready
from minijax.api import default_backend as default_backend
from minijax.api import device_count as device_count
from minijax.api import device_get as device_get
from minijax.api import device_put as device_put
from minijax.api import devices as devices
from minijax.api import eval_shape as eval_shape
from minijax.api import hessian as hessian
from minijax.api import jacfwd as jacfwd
from minijax.api import jacobian as jacobian
from minijax.api import jacrev as jacrev
from minijax.api import local_device_count as local_device_count
from minijax.api import local_devices as local_devices
from minijax.api import make_jaxpr as make_jaxpr
from minijax.api import vmap as vmap
from minijax.config import check_tracer_leaks as check_tracer_leaks
from minijax.config import checking_leaks as checking_leaks
from minijax.config import debug_dtype_truncation as debug_dtype_truncation
from minijax.config import debug_infs as debug_infs
from minijax.config import debug_key_reuse as debug_key_reuse
from minijax.config import debug_nans as debug_nans
from minijax.config import debug_out_of_bounds as debug_out_of_bounds
from minijax.config import debug_purity as debug_purity
from minijax.config import debug_recompiles as debug_recompiles
from minijax.config import debug_unsafe_casts as debug_unsafe_casts
from minijax.config import default_device as default_device
from minijax.config import default_matmul_precision as default_matmul_precision
from minijax.config import default_prng_impl as default_prng_impl
from minijax.config import disable_jit as disable_jit
from minijax.config import enable_checks as enable_checks
from minijax.config import enable_custom_prng as enable_custom_prng
from minijax.config import enable_x64 as enable_x64
from minijax.config import explain_cache_misses as explain_cache_misses
from minijax.config import legacy_prng_key as legacy_prng_key
from minijax.config import log_compiles as log_compiles
from minijax.config import numpy_dtype_promotion as numpy_dtype_promotion
from minijax.config import numpy_rank_promotion as numpy_rank_promotion
from minijax.config import threefry_partitionable as threefry_partitionable
from minijax.core import Array as Array
from minijax.core import typeof as typeof
from minijax.derivatives import grad as grad
from minijax.derivatives import jvp as jvp
from minijax.derivatives import linear_transpose as linear_transpose
from minijax.derivatives import linearize as linearize
from minijax.derivatives import value_and_grad as value_and_grad
from minijax.derivatives import vjp as vjp
from minijax.dtypes import float0 as float0
from minijax.higher_order.checkpoint import checkpoint as checkpoint
from minijax.higher_order.checkpoint import remat as remat
from minijax.higher_order.custom_derivatives import custom_jvp as custom_jvp
from minijax.higher_order.custom_derivatives import custom_vjp as custom_vjp
from minijax.higher_order.jit import clear_caches as clear_caches
from minijax.higher_order.jit import jit as jit
from minijax.parallel import pmap as pmap
from minijax.sharp_bits.findings import checking_sharp_bits as checking_sharp_bits
from minijax.tracebacks import guard as _guard

__version__ = "0.1.0"
_guard(globals(), vars(ops))


def __getattr__(name: str) -> object:
    """`minijax.scipy` is loaded when first named: few programs do, and all would pay for it."""
    if name == "scipy":
        import importlib
        return importlib.import_module("minijax.scipy")
    raise AttributeError(f"module 'minijax' has no attribute {name!r}")
