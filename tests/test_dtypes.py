"""Which dtypes there are, those of values, and what several make, against JAX and the pages."""

import copy
import itertools
import pickle
import warnings
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import minijax
from minijax import config, dtypes
from minijax.errors import TypePromotionError

STRONG = [np.dtype(d) for d in (
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "bfloat16",
    "float16", "float32", "float64", "complex64", "complex128", "int4", "uint4", "int2",
    "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float6_e2m3fn")]
WEAK = [int, float, complex]
X64 = pytest.mark.parametrize("x64", [False, True])
FLOAT64_PAGE = (
    "Explicitly requested dtype {}  is not available, and will be truncated to dtype float32. To "
    "enable more dtypes, set the jax_enable_x64 configuration option or the JAX_ENABLE_X64 shell "
    "environment variable. See https://github.com/google/jax#current-gotchas for more.")


def value_of(dtype, weak):
    """Something with a dtype and an aval, as arrays and tracers have them: JAX takes it too."""
    aval = SimpleNamespace(dtype=np.dtype(dtype), weak_type=weak)
    return SimpleNamespace(dtype=aval.dtype, aval=aval)


def outcome(f):
    try:
        return f()
    except ValueError as problem:
        return type(problem).__name__


def both_x64(x64):
    return config.enable_x64(x64), jax.enable_x64(x64)


def warned(f):
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        result = f()
    return [str(w.message) for w in given], result, given


# -- kinds ---------------------------------------------------------------------------------------


def test_issubdtype_agrees_with_jax_on_all_types_and_kinds():
    kinds = [np.bool_, np.integer, np.signedinteger, np.unsignedinteger, np.floating, np.inexact,
             np.complexfloating, np.number, np.generic, np.void, float, int, "float32", "bfloat16"]
    lower = [*STRONG, dtypes.float0, float, int, "int8"]
    for a, b in itertools.product(lower, kinds + STRONG):
        assert dtypes.issubdtype(a, b) == jnp.issubdtype(a, b), (a, b)


def test_isdtype_agrees_with_jax():
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating",
             "complex floating", "numeric", "int8", ("bool", "float32")]
    for d, kind in itertools.product(STRONG, kinds):
        assert minijax.numpy.isdtype(d, kind) == jnp.isdtype(d, kind), (d, kind)
    with pytest.raises(ValueError, match="Unrecognized kind='x'"):
        minijax.numpy.isdtype("int8", "x")


def test_short_names_are_those_of_jaxprs():
    wanted = {"bool": "bool", "int32": "i32", "uint8": "u8", "float64": "f64", "bfloat16": "bf16",
              "complex64": "c64", "float8_e4m3fn": "f8_e4m3fn", "int4": "i4"}
    assert {d: dtypes.short_name(np.dtype(d)) for d in wanted} == wanted
    assert dtypes.short_name(dtypes.float0) == "float0"


def test_related_dtypes_agree_with_jax():
    from jax._src import dtypes as theirs
    for d in STRONG[:15]:
        for name in ("to_inexact_dtype", "to_floating_dtype", "to_complex_dtype",
                     "to_numeric_dtype", "itemsize_bits"):
            assert getattr(dtypes, name)(d) == getattr(theirs, name)(d), (name, d)


# -- keys and float0 -----------------------------------------------------------------------------


def test_key_types_are_one_object_with_jaxs_name_and_size():
    ours, theirs = dtypes.key_dtype("threefry2x32"), jax.random.key(0).dtype
    assert (repr(ours), ours.name, ours.itemsize) == (repr(theirs), theirs.name, theirs.itemsize)
    for copied in (copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert copied is ours
    assert ours != np.dtype("uint32")
    assert hash(ours) == hash(dtypes.key_dtype("threefry2x32"))


def test_keys_are_a_kind_of_their_own():
    key = dtypes.key_dtype("threefry2x32")
    for kind in (dtypes.prng_key, dtypes.extended):
        assert dtypes.issubdtype(key, kind)
    assert not dtypes.issubdtype(key, np.number)
    assert not dtypes.issubdtype("int8", key)


def test_an_unknown_generator_is_refused():
    with pytest.raises(ValueError, match='unrecognized PRNG implementation "mt19937"'):
        dtypes.key_dtype("mt19937")


def test_float0_is_jaxs_and_takes_no_space():
    assert dtypes.float0 == jax.dtypes.float0 and dtypes.float0.itemsize == 0
    assert dtypes.is_valid_dtype(dtypes.float0)


# -- the lattice -------------------------------------------------------------------------------


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("mode", ["standard", "strict"])
def test_promote_types_agrees_with_jax_on_all_pairs(x64, mode):
    with (config.enable_x64(x64), config.numpy_dtype_promotion(mode),
          jax.enable_x64(x64), jax.numpy_dtype_promotion(mode)):
        for a, b in itertools.product(STRONG + WEAK, repeat=2):
            ours = outcome(lambda: dtypes.promote_types(a, b))  # noqa: B023
            theirs = outcome(lambda: jnp.promote_types(a, b))  # noqa: B023
            assert ours == theirs, (a, b)


def test_promotion_is_associative():
    # uint64 with a signed type gives a *weak* float, which `promote_types` cannot hand on
    types = [d for d in STRONG[:15] if d != np.dtype("uint64")]
    for x64 in (False, True):
        with config.enable_x64(x64):
            for a, b, c in itertools.combinations(types, 3):
                left = dtypes.promote_types(dtypes.promote_types(a, b), c)
                right = dtypes.promote_types(a, dtypes.promote_types(c, b))
                assert left == right, (a, b, c)


def test_types_without_a_common_one_are_refused_with_the_way_out():
    with pytest.raises(TypePromotionError, match=r"8-bit floats.*x.astype\('float32'\)"):
        dtypes.promote_types("float8_e4m3fn", "float32")
    with config.numpy_dtype_promotion("strict"), \
            pytest.raises(TypePromotionError, match="numpy_dtype_promotion=strict"):
        dtypes.promote_types("int8", "int16")


# -- promotion -----------------------------------------------------------------------------------


@X64
def test_result_type_agrees_with_jax_on_all_pairs_of_weak_and_strong_values(x64):
    narrow = [d for d in STRONG if x64 or d.itemsize <= 4 or d == np.dtype("complex64")]
    weak = ["int32", "float32", "complex64", "int8", "bfloat16"] + ["int64", "float64"] * x64
    kinds = [(d, False) for d in narrow] + [(np.dtype(d), True) for d in weak]
    ours_64, theirs_64 = both_x64(x64)
    with ours_64, theirs_64:
        for a, b in itertools.product(kinds, repeat=2):
            ours = outcome(lambda: dtypes.result_type(
                value_of(*a), value_of(*b), return_weak_type_flag=True))  # noqa: B023
            theirs = outcome(lambda: jax.dtypes.result_type(
                value_of(*a), value_of(*b), return_weak_type_flag=True))  # noqa: B023
            assert ours == theirs, (a, b)


@X64
def test_python_numbers_and_types_promote_as_in_jax(x64):
    things = [True, 1, 2.5, 3j, int, float, complex, bool, None, np.int8(1), np.float16(2),
              np.ones(2, "int16"), "uint8", np.dtype("bfloat16")]
    ours_64, theirs_64 = both_x64(x64)
    with ours_64, theirs_64:
        for picked in itertools.chain(itertools.product(things, repeat=2), [(t,) for t in things]):
            ours = dtypes.result_type(*picked, return_weak_type_flag=True)
            theirs = jax.dtypes.result_type(*picked, return_weak_type_flag=True)
            assert ours == theirs, picked


def test_result_type_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one array or dtype is required"):
        dtypes.result_type()


# -- canonical dtypes ----------------------------------------------------------------------------


def test_64_bits_become_32_unless_the_flag_is_on():
    wide = ["int64", "uint64", "float64", "complex128", "float16", "bool"]
    assert [str(dtypes.canonicalize_dtype(d)) for d in wide] == [
        "int32", "uint32", "float32", "complex64", "float16", "bool"]
    with config.enable_x64(True):
        assert [str(dtypes.canonicalize_dtype(d)) for d in wide] == wide


def test_foreign_byte_order_is_refused_as_in_jax():
    with pytest.raises(TypeError, match="got dtype >f4"):
        dtypes.check_user_dtype_supported(">f4")
    with pytest.raises(TypeError, match="not a valid JAX array type"):
        dtypes.dtype(np.ones(2, ">f8"))


def test_values_keep_their_dtype_and_numpy_data_is_canonicalised():
    assert dtypes.dtype(value_of("float64", False)) == np.dtype("float64")
    assert dtypes.dtype(np.ones(2)) == np.dtype("float32")
    assert [dtypes.dtype(x) for x in (True, 1, 1., 1j)] == [
        np.dtype(n) for n in ("bool", "int32", "float32", "complex64")]


@pytest.mark.parametrize("thing, kind, words", [
    (None, ValueError, "Invalid argument to dtype"),
    ([1, 2], TypeError, "Cannot determine dtype"),
    (np.array(["a"]), TypeError, "not a valid JAX array type"),
    ("U3", TypeError, "not a valid JAX array type")])
def test_what_no_array_can_hold_has_no_dtype(thing, kind, words):
    with pytest.raises(kind, match=words):
        dtypes.dtype(thing)


def test_python_numbers_are_weak_and_python_truth_is_not():
    assert [dtypes.is_weakly_typed(x) for x in (1, 1., 1j, True, np.float32(1), np.ones(1))] == [
        True, True, True, False, False, False]
    assert dtypes.is_weakly_typed(value_of("int32", True))


def test_python_integers_that_do_not_fit_overflow():
    with pytest.raises(OverflowError, match="Python int 4294967296 too large to convert to int32"):
        minijax.numpy.asarray(2 ** 32)
    with config.enable_x64(True):
        assert minijax.numpy.asarray(2 ** 32) == 2 ** 32


# -- what users ask for --------------------------------------------------------------------------


class ScalarType(type):
    """As ``jax.numpy.float64`` is: a class with a dtype."""

    def __repr__(cls):
        return "<class 'jax.numpy.float64'>"


@pytest.mark.parametrize("requested, said", [
    ("float64", "float64"), (np.float64, "<class 'numpy.float64'>"), (np.dtype("f8"), "float64"),
    (ScalarType("float64", (), {"dtype": np.dtype("float64")}), "<class 'jax.numpy.float64'>")])
def test_asking_for_64_bits_warns_with_the_text_of_the_page(requested, said):
    messages, given, _ = warned(lambda: dtypes.check_user_dtype_supported(requested))
    assert messages == [FLOAT64_PAGE.format(said)]
    assert given == np.dtype("float32")


def test_the_warning_names_the_function_and_points_to_the_users_line():
    messages, _, given = warned(lambda: dtypes.check_user_dtype_supported("int64", "zeros"))
    assert messages[0].startswith("Explicitly requested dtype int64 requested in zeros is not")
    assert given[0].filename == __file__


def test_nothing_is_warned_of_where_nothing_is_lost():
    for requested in (float, int, complex, "float32", "bfloat16", None):
        messages, _, _ = warned(lambda: dtypes.check_user_dtype_supported(requested))  # noqa: B023
        assert messages == []
    with config.enable_x64(True):
        assert warned(lambda: dtypes.check_user_dtype_supported("float64"))[0] == []


@pytest.mark.parametrize("requested", ["U3", object, "datetime64[s]", "S1"])
def test_strings_and_objects_are_refused(requested):
    with pytest.raises(TypeError, match="supports number, bool, and string dtypes.* in zeros"):
        dtypes.check_user_dtype_supported(requested, "zeros")


def test_unknown_names_are_refused_with_numpys_words():
    with pytest.raises(TypeError, match="nope"):
        dtypes.check_user_dtype_supported("nope")


def test_python_types_that_hold_an_element_are_jaxs():
    from jax._src import dtypes as theirs
    with jax.enable_x64(True):
        for d in STRONG[:15]:
            assert dtypes.scalar_type_of(d) is theirs.scalar_type_of(d), d


def test_keys_meet_only_their_like():
    key = dtypes.key_dtype("threefry2x32")
    assert dtypes.result_type(key, key) is key
    with pytest.raises(ValueError, match="key<fry>"):
        dtypes.result_type(key, 1)
    assert dtypes.canonicalize_dtype(key) is key and dtypes.dtype(key) is key


@pytest.mark.parametrize("others", [(), (True,), (1,), (1.0,), (np.int8(1),), (np.float16(1),)],
                         ids=str)
def test_a_truth_about_weak_numbers_is_as_weak_and_stays_a_bool(others):
    found, wanted = ([lib.lax.ge(1.0, 0.5), *others] for lib in (minijax, jax))
    assert found[0].weak_type and wanted[0].weak_type
    assert minijax.numpy.result_type(*found) == jnp.result_type(*wanted)


X = np.float32([[1, 2, 4], [3, 2, 0]])
WIDE = {
    "corrcoef": lambda lib: lib.numpy.corrcoef(X),
    "corrcoef of complex numbers": lambda lib: lib.numpy.corrcoef(X + 1j * X[::-1]),
    "matrix_rank": lambda lib: lib.numpy.linalg.matrix_rank(X),
    "matrix_rank of a vector": lambda lib: lib.numpy.linalg.matrix_rank(X[0]),
    "lstsq": lambda lib: lib.numpy.linalg.lstsq(X.T, X[0])[2],
    "shape_as_value": lambda lib: lib.lax.shape_as_value((2, 3)),
    "argpartition": lambda lib: lib.numpy.argpartition(X, 1),
    "var": lambda lib: [lib.numpy.var(X), lib.numpy.std(X), lib.numpy.median(X), lib.numpy.cov(X)],
    "histogram": lambda lib: lib.numpy.histogram(X),
    "trapezoid": lambda lib: [lib.numpy.trapezoid(X), lib.numpy.gradient(X), lib.numpy.unwrap(X)],
    "polyfit": lambda lib: lib.numpy.polyfit(X[0], X[1], 1),
    "logsumexp": lambda lib: [lib.nn.logsumexp(X), lib.nn.softmax(X), lib.nn.gelu(X)],
    "norm": lambda lib: [lib.numpy.linalg.norm(X), lib.numpy.linalg.cond(X[:, :2])],
}


@pytest.mark.parametrize("name", WIDE)
def test_results_have_jaxs_types_where_64_bits_are_enabled(name):
    def found(lib):
        with lib.enable_x64(True):
            return [(str(x.dtype), x.shape, getattr(x, "weak_type", False))
                    for x in jax.tree.leaves(WIDE[name](lib))]
    assert found(minijax) == found(jax)


@pytest.mark.parametrize("lib", [minijax, jax])
def test_a_tracer_is_a_dtype_without_a_warning_and_an_array_with_one(lib):
    """Equinox asks NumPy for the dtype of what it traces, under errors for warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lib.jit(lambda x: x.astype(np.dtype(x)))(1.0)
    with pytest.warns(DeprecationWarning, match="use dtype=arr.dtype"):
        np.zeros(1, dtype=lib.numpy.ones(1))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "ptp", "cumsum", "cumprod", "nansum",
                                  "zeros_like", "ones_like", "empty_like", "flip", "mean"])
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
def test_what_an_array_of_64_bits_becomes_where_there_are_32_is_as_in_jax(name, dtype):
    found = []
    for lib in (minijax, jax):
        with lib.enable_x64(True):
            x = lib.numpy.ones(3, dtype)
        with warnings.catch_warnings(action="ignore"):
            found.append(getattr(lib.numpy, name)(x).dtype)
    assert found[0] == found[1]
