"""What JAX's own tests found: the corners of functions, and the words of errors."""

import gc
import logging
import weakref

import numpy as np
import pytest

import minijax as jax
from minijax.extend import core as extend_core
from minijax import lax, numpy as jnp
from tests.public import TABLE
from tests.public.draw import Draw
from tests.test_public_functions import function_of, value

NAN = "jnp.array([1 + 1j, 0, complex(0, jnp.nan), complex(jnp.nan, 1), 1 + 1j])"
REPEATED = "jnp.array([1, 1, 9, -1, 2])"
TIMES = "lambda x: x * 10 + 1"


@pytest.mark.parametrize("expression", [
    # places that are repeated
    f"jnp.arange(5.).at[{REPEATED}].apply({TIMES})",
    f"jax.jit(lambda x, i: x.at[i].apply({TIMES}))(jnp.arange(5.), {REPEATED})",
    f"jax.vmap(lambda x, i: x.at[i].apply({TIMES}))(t[0], jnp.array([[1, 1], [0, 1], [3, -1]]))",
    f"lax.scatter_apply(f, jnp.array([[[0], [0]]]), {TIMES}, "
    "lax.ScatterDimensionNumbers((2,), (0,), (0,)), update_shape=(1, 2, 3))",
    # sets, zeros, bits
    f"jnp.unique({NAN}, return_counts=True)", f"jnp.unique({NAN}, equal_nan=False).size",
    "jnp.setxor1d(jnp.array([1, 1, 2]), jnp.array([2, 3, 3, 3]), assume_unique=True)",
    "jnp.setxor1d(jnp.array([1, 2]), jnp.array([2, 3]), assume_unique=True, size=3)",
    "jnp.trim_zeros(jnp.zeros(3), 'b')", "jnp.trim_zeros(jnp.zeros((2, 3)), 'b')",
    "jnp.spacing(jnp.array([-1, 1, 0, jnp.inf, 65504, -6e-8], 'float16'))",
    "jnp.spacing(jnp.array([-1, 1, jnp.inf, 3.4028235e38]))", "jnp.spacing(3)",
    "jnp.modf(jnp.array([-2.5, -0., jnp.inf, -jnp.inf, jnp.nan]))",
    "jax.random.lognormal(jax.random.key(42), v, dtype='complex64')",
    "jax.scipy.special.gamma(1j).weak_type", "type(lax.linalg.lu(jnp.eye(2))).__name__",
    "jnp.arange(-8, 8).astype('int4').reshape(2, 8).view('int16')",
    "jnp.arange(8).astype('int8').view('uint4')", "jnp.eye(3, k=10**30)",
    "jnp.array(np.ma.array([1, 2], mask=[True, False]))",
    "jax.jit(lambda x, i, j: x[[i, j], 1])(t, 1, 0)", "t[jnp.arange(2, dtype='uint8')]",
    # sums, lines and statistics
    "jnp.trapezoid(t, f, axis=1).shape", "jnp.trapezoid(t[0], f[0, :1] + v, axis=0)",
    "jnp.trapezoid(t, t[0], axis=-1)",
    "jnp.interp(f, v, v, period=-2.)",
    "jax.grad(lambda z: jnp.interp(z, z, jnp.ones(9)).sum())(jnp.exp(jnp.linspace(-90, -20, 9)))",
    "jnp.cov(f, fweights=jnp.array([1, 2, 1], 'uint8'))",
    "jnp.cov(f, aweights=jnp.array([True, True, False]))",
    "jnp.histogram2d(v, v, bins=[3, jnp.arange(4.)])[0]",
    "jnp.extract(jnp.array([True]), jnp.array([1]), size=0)",
    # matrices
    *(f"jnp.linalg.norm(jnp.zeros({shape}), ord={order})" for shape, order in [
        ("(0, 2)", "2"), ("(0, 2)", "jnp.inf"), ("(2, 0)", "1"), ("(0,)", "jnp.inf")]),
    "jnp.linalg.slogdet(m, method='qr')", "jnp.linalg.slogdet(t[:, :2, :2], method='qr')",
    "jax.scipy.linalg.rsf2csf(jnp.sin(t[0, :, :3]), jnp.eye(3))",
    "jax.scipy.linalg.cho_solve((jnp.stack([m, m + 1]), True), m)",
    "jax.scipy.linalg.cho_solve((jnp.stack([m, m + 1]), True), m[0])",
    "jax.scipy.sparse.linalg.gmres(lambda x: x * 2., 1.)[0]",
    "lax.ragged_dot_general(t, jnp.ones((2, 4, 2)), jnp.array([[1, 3], [2, 1]]), "
    "lax.RaggedDotDimensionNumbers((([2], [1]), ([0], [0])), [2], []))",
    # special functions, random numbers
    "lax.log1p(jnp.array([1e-5, 1e-5 + 1e-3j, 1e-3j, .3 + .4j, 2j]))",
    "jax.scipy.stats.beta.logpdf(jnp.array([.5, 2.]), jnp.array([-1., 1.]), 2.)",
    "jax.scipy.stats.beta.logpdf(.5, 1., 2., 0., -1.)",
    "jax.random.geometric(jax.random.key(0), jnp.array([.1, .5], 'bfloat16'))",
    "jax.random.binomial(jax.random.key(0), jnp.float16(100), jnp.float16(.5), (3,))",
    "jax.random.gumbel(jax.random.key(0), (9,), mode='highest')",
    *(f"(lambda k, d: [d(k), d(jax.random.split(k, (2, 3))), d(jax.random.fold_in(k, -5)), "
      "jax.random.bits(k, (2, 3)), jax.random.bits(k, (5,), 'uint8'), "
      "jax.vmap(jax.random.normal)(jax.random.split(k, 3))])"
      f"(jax.random.key(-3, impl='{impl}'), jax.random.key_data)"
      for impl in ("threefry4x32", "philox2x32", "philox4x32")),
    "jax.grad(lambda a: lax.exp(jax.random.loggamma(jax.random.key(0), a)))(1e-3)",
])
def test_values_are_those_of_jax(expression, agrees_with_jax):
    agrees_with_jax(expression, rtol=1e-5)


@pytest.mark.parametrize("impl", ["threefry4x32", "philox2x32", "philox4x32"])
def test_bits_of_64_are_those_of_jax(impl, agrees_with_64_bits):
    key = f"jax.random.key(2**40 + 5, impl='{impl}')"
    agrees_with_64_bits(f"jax.random.bits({key}, (3,), 'uint64')")


def gathering(dims, sizes, indices=(5, 5)):
    return lambda: lax.gather(jnp.ones((10, 9, 8, 7, 6)), np.zeros(indices, int),
                              lax.GatherDimensionNumbers(*dims), sizes)


def ragged(dims, axis, groups, sizes=(3,), lhs=(11, 5), rhs=(3, 5, 7)):
    return lambda: lax.ragged_dot_general(
        jnp.ones(lhs), jnp.ones(rhs), jnp.ones(sizes, int),
        lax.RaggedDotDimensionNumbers((dims, ((), ())), axis, groups))


@pytest.mark.parametrize(("call", "words"), [
    (gathering([(1, 99), (), ()], (1,) * 5), "Offset dimension 1 in gather op is out of bounds"),
    (gathering([(1, 2, 3, 4), (1,), range(5)], (10, 9, 8, 7, 6)),
     "collapse slice dims with bound 1, but bound is 9 for index 1 at position 0"),
    (gathering([(), (0, 1), range(5), (), (0, 1)], (1,) * 5),
     "cannot have the index vector dimension as a batching dimension"),
    (gathering([(), (1, 2), (1, 2, 3, 4), (0,), ()], (1,) * 5, (5, 4)),
     "requires equal numbers of operand_batching_dims and start_indices_batching_dims"),
    (ragged(((1,), (1,)), (0, 1), (0,)), "expects exactly one lhs ragged dimension"),
    (ragged(((1,), (1,)), (1,), (0,)), "requires zero group dimensions in the rhs"),
    (ragged(((1,), (1,)), (0,), (1,)), "distinct from contracting and batch dimensions"),
    (ragged(((1,), (1,)), (0,), (0,), (2, 3)), r"to have shape \(3,\), got \(2, 3\)"),
    (lambda: lax.conv_general_dilated(
        np.ones((1, 1, 1)), np.ones((1, 1, 1, 1)), (1,), [(0, 0)],
        dimension_numbers=lax.ConvDimensionNumbers(*[(0, 1, 2)] * 3)),
     "must have the same number of dimensions"),
    (lambda: lax.conv_general_dilated_patches(jnp.ones((1, 1, 4)), (2,), (1,), (3,)),
     "padding argument"),
    (lambda: lax.reduce_window(np.ones(1), 0., lambda x, y: [x + y], (1,)), "same tree structure"),
    (lambda: jax.eval_shape(lambda x: lax.top_k(x, 9), jax.ShapeDtypeStruct((2**31 + 1,), float)),
     "will overflow"),
    (lambda: jax.jit(lambda n: lax.scan(lambda c, x: (c, x), 0, jnp.arange(3), unroll=n))(2),
     "expects a concrete `int` or `bool`"),
    (lambda: lax.scan(lambda c, x: ([[c[0]], [c[0]]], x), [(0,), ()], jnp.arange(3)),
     r"\n\n  \* the input carry component c\[0\][^;]*;\n  \* the input carry component c\[1\]"),
    (lambda: lax.convert_element_type(np.int32(0), jax.random.key(0).dtype), "int32 to key<fry>"),
    (lambda: jnp.zeros(2, 3), r"when you meant `jax\.numpy\.zeros\(\(2, 3\)\)`"),
    (lambda: jnp.array([1], None, True, "K", 0, "extra"), "array.. takes at most 5 positional"),
    *((lambda f=f: getattr(jnp, f)(jnp.ones(2), where=jnp.ones(2)), f"jnp.{f}: where must be None")
      for f in ("nansum", "mean", "var", "std", "nanstd", "prod", "max")),
    (lambda: jax.scipy.special.sici(1j), "must be real-valued"),
    *((lambda f=f: f(jnp.ones((2, 3)), axis=[1, 1]), "does not support multiple axes") for f in (
        jnp.fft.fft, jnp.fft.ifft, jnp.fft.rfft, jnp.fft.irfft, jnp.fft.hfft, jnp.fft.ihfft)),
    (lambda: jnp.linalg.multi_dot([]), "at least two arrays; got len.arrays.=0"),
    (lambda: jnp.linalg.multi_dot([jnp.ones(2)] * 3), "except for the first and last array which"),
    (lambda: jnp.linalg.multi_dot([jnp.eye(2), jnp.eye(3)]),
     r"first dimension of following array. Got array shapes \[\(2, 2\), \(3, 3\)\]"),
])
def test_errors_say_what_jaxs_say(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


@pytest.mark.parametrize("name", ["shape", "ndim", "size"])
def test_the_shape_of_a_list_is_deprecated(name):
    with pytest.warns(DeprecationWarning, match=f"{name} requires ndarray or scalar arguments"):
        assert getattr(jnp, name)([[1, 2]]) == {"shape": (1, 2), "ndim": 2, "size": 2}[name]


@pytest.mark.parametrize("name", [x.name for x in lax.DotAlgorithmPreset if x.name != "DEFAULT"])
def test_the_algorithms_of_products_may_be_the_default_precision(name):
    with jax.default_matmul_precision(name):
        assert jax.config.jax_default_matmul_precision == name
    with jax.default_matmul_precision("F32_F32_F32"):
        assert "precision=F32_F32_F32" in str(jax.make_jaxpr(jnp.dot)(jnp.ones(2), jnp.ones(2)))


def test_keys_need_no_transfer_of_their_own():
    seed = jax.device_put(42)
    with jax.transfer_guard("disallow"):
        assert jax.random.key(seed).shape == ()


@pytest.mark.parametrize("f", ["cov", "corrcoef"])
def test_one_row_of_observations_in_columns_is_one_of_several_quantities(f):
    row = jnp.array([[1., 2., 4.]])
    assert getattr(jnp, f)(row, rowvar=False, **{"ddof": 0} if f == "cov" else {}).shape == (3, 3)
    assert getattr(jnp, f)(row).shape == ()


def test_grids_of_whole_and_other_numbers_need_no_promotion_of_the_users():
    with jax.numpy_dtype_promotion("strict"):
        assert jnp.mgrid[1:6:8j, 2:4].dtype == jnp.ogrid[1:6:8j, 2:4][1].dtype == jnp.float32


def test_a_pseudo_inverse_promotes_its_tolerance_with_the_singular_values_alone():
    a = jnp.eye(2) + 1j
    with jax.numpy_dtype_promotion("strict"):
        assert jnp.linalg.pinv(a).dtype == jnp.linalg.pinv(a, np.float32(.1)).dtype == a.dtype
        with pytest.raises(jax.dtypes.TypePromotionError if hasattr(
                jax.dtypes, "TypePromotionError") else ValueError):
            jnp.linalg.pinv(a, np.int32(1))


def test_the_derivative_of_a_pseudo_inverse_makes_no_large_square():
    a = np.random.default_rng(0).normal(size=(5000, 2)).astype(np.float32)
    shapes = {v.aval.shape for eqn in jax.make_jaxpr(
        lambda a: jax.jvp(jnp.linalg.pinv, (a,), (a,)))(a).eqns for v in eqn.outvars}
    assert (5000, 5000) not in shapes


@pytest.mark.parametrize("call", [
    lambda f, x: jax.linearize(f, x), lambda f, x: jax.grad(f)(x), lambda f, x: jax.vmap(f)(x),
    lambda f, x: jax.make_jaxpr(f)(x), lambda f, x: jax.jit(f).lower(x),
    lambda f, x: jax.jit(lambda x: jax.grad(f)(x)).lower(x)])
def test_transformations_leave_no_cycles_for_the_collector(call):
    f, x = lambda x: (x * 2.).sum(), jnp.ones(3)
    call(f, x)
    gc.collect()
    try:
        gc.set_debug(gc.DEBUG_SAVEALL)
        call(lambda x: (x * 3.).sum(), x)
        assert gc.collect() == 0, gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def test_a_jitted_function_that_is_gone_keeps_no_array():
    def weakly(made):
        f = jax.jit((lambda x: lambda: x)(made))
        f(), f()
        return weakref.ref(made)
    gc.disable()
    try:
        ref = weakly(jnp.ones(3) + 1)
        assert ref() is None
    finally:
        gc.enable()


STRUCT = jax.ShapeDtypeStruct((3,), np.float32)


@pytest.mark.parametrize("f", [
    jnp.sin, lax.sin, jax.jit(lambda x: x + 1), jax.vmap(jax.jit(lambda x: x * 2)),
    jax.grad(lambda x: (x * x).sum()), lambda x: lax.scan(lambda c, x: (c, x), x, length=2)[0],
    lambda x: lax.cond(True, lambda x: x, lambda x: x + 1, x)])
def test_a_type_stands_for_an_array_while_a_function_is_traced(f):
    assert jax.eval_shape(lambda: f(STRUCT)) == STRUCT
    with pytest.raises(TypeError, match="does not have a value"):
        jax.jit(lambda: f(STRUCT))()
    with pytest.raises(TypeError):
        f(STRUCT)


@pytest.mark.parametrize("copy", [jnp.array, jnp.copy, lambda x: x.copy()])
def test_a_copy_is_another_array_under_each_transformation(copy):
    x, t = jnp.ones(3), jnp.ones(3)
    (y, u), (z, pull) = jax.jvp(copy, (x,), (t,)), jax.vjp(copy, x)
    results = (y, u, z, pull(t)[0], jax.vmap(copy)(x), jax.jit(copy)(x))
    assert not any(each is x or each is t for each in results)
    assert "copy a" in str(jax.make_jaxpr(copy)(x))
    assert "copy" not in jax.jit(copy).lower(x).as_text("simplified")


def test_a_static_argument_that_cannot_be_compared_is_refused():
    class Odd:
        __hash__ = lambda self: 1

        def __eq__(self, other):
            raise NotImplementedError("odd")
    f = jax.jit(lambda x, mode: x, static_argnums=1)
    f(1., Odd())
    with pytest.raises(ValueError, match="static arguments should be comparable using __eq__"):
        f(1., Odd())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_half_precision_may_be_forbidden(dtype):
    x = jnp.ones((1, 3), dtype)
    with jax.allow_f16_reductions(False):
        assert lax.reduce_sum(x, [0]).shape == (3,)
        for refused in (lambda: lax.reduce_sum(x, [1]),
                        lambda: jax.grad(lambda y: (y + x.repeat(2, 0))[0, 0])(x[0])):
            with pytest.raises(ValueError, match="reduce_sum on operand .* is not allowed"):
                refused()


def test_the_result_of_eval_shape_has_the_sharding_that_jit_was_given():
    one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    assert jax.jit(lambda x: {"y": x}, out_shardings=one).eval_shape(1.)["y"].sharding == one


@pytest.mark.parametrize(("policy", "words"), [
    (None, "saving inputs with shapes:\n  float32[3]"),
    (lambda *_, **__: True, "saving these intermediates:\n  float32[3] from output of cos from "),
    (lambda p, *_, **__: str(p) == "cos",
     "float32[3]\nand saving these intermediates:\n  float32[3] from output of cos from ")])
def test_the_residuals_of_a_checkpoint_are_in_the_log(policy, words, caplog):
    with caplog.at_level(logging.DEBUG):
        jax.grad(jax.checkpoint(lambda x: jnp.cos(jnp.sin(x).sum()), policy=policy))(jnp.ones(3))
    assert any(words in record.message for record in caplog.records)


@pytest.mark.parametrize("where", [None, np.array([True, False, True])])
def test_a_softmax_by_its_result_has_the_same_derivative_and_one_residual(where):
    f = lambda x: jax.nn.softmax(x, where=where)
    x, t = jnp.array([1., 2., 5.]), jnp.array([3., -1., 2.])
    plain = jax.jvp(f, (x,), (t,)), jax.hessian(f)(x)
    with jax.softmax_custom_jvp(True):
        same = jax.jvp(f, (x,), (t,)), jax.hessian(f)(x)
        residuals = jax.ad_checkpoint.saved_residuals(jax.nn.softmax, x)
    for one, other in zip(jax.tree.leaves(plain), jax.tree.leaves(same), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    assert [aval.shape for aval, _ in residuals] == [(3,)]


def test_a_checkpoint_runs_a_primitive_that_is_only_evaluated():
    add_one_p = extend_core.Primitive("add_one")
    calls = []
    add_one_p.def_impl(lambda x: calls.append(x) or x + 1)
    add_one_p.def_abstract_eval(lambda x: x)
    assert jax.checkpoint(lambda x: add_one_p.bind(add_one_p.bind(x)))(1.) == 3
    assert len(calls) == 2


def test_a_nan_that_is_written_in_a_branch_is_refused():
    f = jax.jit(lambda x: lax.cond(x == 1, lambda: np.nan, lambda: 2.))
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="encountered in cond"):
        f(1)


def test_searchsorted_counts_no_further_than_its_integers():
    a, v = jax.ShapeDtypeStruct((2**31,), np.float32), jax.ShapeDtypeStruct((), np.float32)
    with pytest.warns(UserWarning, match="int64"), pytest.raises(
            OverflowError, match="2147483648 out of bounds for int32"):
        jax.eval_shape(jnp.searchsorted, a, v)


def test_eigenvectors_belong_to_the_matrix_with_the_numbers_above_its_diagonal():
    d, e = np.complex64([1, 2, 3]), np.complex64([1j, 2 - 1j])
    values, vectors = jax.scipy.linalg.eigh_tridiagonal(d, e)
    whole = np.diag(d) + np.diag(e, 1) + np.diag(e.conj(), -1)
    np.testing.assert_allclose(whole @ vectors, vectors * values, atol=1e-5)


class Wrapped:
    """An object that stands for an array."""

    def __init__(self, x):
        self.x = x

    def __jax_array__(self):
        return jnp.asarray(self.x)


def test_what_stands_for_an_array_is_taken_as_that_array():
    others = set()
    for module in ("numpy", "numpy.linalg", "numpy.fft"):
        for name, make in TABLE[module].items():
            f, case = function_of(jax, module, name), make(Draw(f"{module}.{name} 0"))
            plain, wrapped = (value(jax, f, case, case.with_arrays(xs)) for xs in (
                case.arrays(), [*map(Wrapped, case.arrays())]))
            if str(plain) != str(wrapped):
                others.add(f"{module}.{name}")
    assert not others
