"""Every public function, with how its arguments are made, or with the reason why it is not here."""

from collections.abc import Callable

from .draw import Maker
from .of_lax import LAX, LAX_CONCRETE
from .of_linalg import FFT, LINALG
from .of_nn import NN
from .of_numpy import NUMPY, NUMPY_CONCRETE
from .of_random import RANDOM
from .of_special import SPECIAL

TABLE: dict[str, dict[str, Maker]] = {
    "numpy": NUMPY, "lax": LAX, "nn": NN, "numpy.linalg": LINALG, "numpy.fft": FFT,
    "scipy.special": SPECIAL, "random": RANDOM}
CONCRETE: dict[str, dict[str, Maker]] = {"numpy": NUMPY_CONCRETE, "lax": LAX_CONCRETE}
NAMES = [(module, name) for module, table in TABLE.items() for name in table]

# Functions of functions: what is compared is what comes out in the end.
ADAPTED: dict[str, Callable] = {
    "numpy.block": lambda f, lib: lambda x, y: f([[x, y], [y, x]]),
    "numpy.vectorize": lambda f, lib: lambda g, *xs, **options: f(g, **options)(*xs),
    "lax.reduce": lambda f, lib: lambda x, axis: f(x, 0, lib.lax.add, (axis,)),
    "lax.reduce_window": lambda f, lib: lambda x, **o: f(x, 0., lib.lax.add, (2, 2), **o),
    "lax.scatter_apply": lambda f, lib: lambda x, places: f(
        x, places, lambda x: 2 * x, lib.lax.ScatterDimensionNumbers((1,), (0,), (0,)),
        update_shape=(3, 3)),
    "lax.ragged_dot_general": lambda f, lib: lambda *args: f(
        *args, lib.lax.RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), (1,), ())),
    "lax.platform_dependent": lambda f, lib: lambda x: f(
        x, cpu=lambda x: 2 * x, default=lambda x: x),
    "lax.cond": lambda f, lib: lambda p: f(p, lambda x: x + 1, lambda x: x * 3, 2.0),
    "lax.switch": lambda f, lib: lambda i, x: f(i, [lib.numpy.sin, lambda x: 2 * x,
                                                    lambda x: x - x], x),
    "lax.fori_loop": lambda f, lib: lambda x: f(0, 3, lambda i, x: lib.numpy.sin(x) + i, x),
    "lax.while_loop": lambda f, lib: lambda x: f(lambda x: x.sum() < 50, lambda x: x * 2, x),
    "lax.scan": lambda f, lib: lambda x, xs, **o: f(
        lambda c, x: (c * 0.5 + lib.numpy.sin(x), (c, x * 2)), x, xs, **o),
    "lax.map": lambda f, lib: lambda xs, **o: f(lambda x: lib.numpy.sin(x) * x, xs, **o),
    # The directions of vectors are LAPACK's choice.
    "numpy.linalg.eigh": lambda f, lib: lambda a, **o: (
        lambda w, v: (w, v * w[..., None, :] @ v.mT.conj()))(*f(a, **o)),
    "numpy.linalg.eig": lambda f, lib: lambda a: (
        lambda w, v: (w, a @ v - v * w[..., None, :]))(*f(a)),
    # Typed keys are compared by their words.
    "random.key": lambda f, lib: lambda seed: lib.random.key_data(f(seed)),
    "random.wrap_key_data": lambda f, lib: lambda key: lib.random.key_data(f(key)),
}

# Public callables without a row, and why.
TYPES = ("bfloat16 bool bool_ cdouble complex128 complex64 complex_ complexfloating csingle double "
         "dtype finfo float16 float32 float64 float_ floating generic iinfo inexact int16 int32 "
         "int64 int8 int_ integer ndarray number signedinteger single uint uint16 uint32 uint64 "
         "uint8 unsignedinteger character flexible object_ ComplexWarning float4_e2m1fn "
         "float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
         "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int1 int2 int4 uint1 uint2 "
         "uint4")
NOT_HERE = {
    **{f"numpy.{name}": "a type; tests/numpy/test_scalar_types.py" for name in TYPES.split()},
    **{f"numpy.{name}": "NumPy's own" for name in (
        "get_printoptions", "set_printoptions", "printoptions", "array_repr", "array_str",
        "save", "savez")},
    "numpy.einsum_path": "its text is NumPy's; tests/numpy/test_contractions.py",
    "numpy.load": "needs a file; its example makes one",
    **{f"numpy.{name}": "gives a function; tests/numpy/test_ufuncs.py" for name in (
        "frompyfunc", "ufunc")},
    **{f"lax.{name}": "a type" for name in (
        "GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers",
        "AccuracyMode", "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers",
        "DotAlgorithm", "DotAlgorithmPreset", "DotDimensionNumbers", "FftType", "Precision",
        "PrecisionLike", "RandomAlgorithm", "RaggedDotDimensionNumbers", "RoundingMethod",
        "Tolerance")},
    **{f"lax.{name}": "needs a named axis; tests/core/test_vmap.py" for name in (
        "all_gather", "axis_index", "axis_size", "pmax", "pmean", "pmin", "ppermute", "psum")},
    **{f"lax.{name}": f"takes functions; tests/control_flow/test_{file}.py" for name, file in (
        ("associative_scan", "associative"), ("composite", "composite"),
        ("custom_linear_solve", "linear"), ("custom_root", "linear"))},
    **{f"lax.{name}": "needs a named axis; tests/test_sharding.py" for name in (
        "all_to_all", "pbroadcast", "pcast", "pshuffle", "psum_scatter", "pswapaxes",
        "ragged_all_to_all")},
    "lax.rng_bit_generator": "one key draws for a batch; tests/primitives/test_bit_generators.py",
    "nn.scaled_matmul": "JAX has it on GPUs only; tests/nn/test_scaled.py",
    "lax.rng_uniform": "no two calls agree; tests/lax/test_stateful_rng.py",
    "lax.with_sharding_constraint": "needs devices; tests/test_sharding.py",
    **{f"random.{name}": "tells of a type; tests/random/test_keys.py" for name in (
        "key_impl", "key_dtype")},
}
