"""Products of blocks with scales, beside JAX, whose CPU lacks the product of what is quantised."""

import jax
import numpy as np
import pytest
from jax.interpreters import mlir

import minijax
from minijax import dtypes

RNG = np.random.default_rng(0)
LHS = RNG.standard_normal((2, 32, 64)).astype(np.float32)
RHS = (RNG.standard_normal((2, 64, 64)) * np.exp(5 * RNG.standard_normal((2, 64, 1)))).astype(
    np.float32)
STACKED = (((2,), (2,)), ((0,), (0,)))
MODES = [["mxfp8"] * 3, ["nvfp4"] * 3, ["nvfp4", "nvfp4", "mxfp8"]]


def by_its_definition(a, b, a_scales, b_scales, *, preferred_element_type):
    """What JAX's documentation says of `scaled_matmul`, in JAX."""
    a, b = (x.astype(np.float32) * jax.numpy.repeat(
        s.astype(np.float32), x.shape[-1] // s.shape[-1], -1)
        for x, s in ((a, a_scales), (b, b_scales)))
    return jax.numpy.einsum("bmk,bnk->bmn", a, b, preferred_element_type=preferred_element_type)


@pytest.fixture(scope="module", autouse=True)
def product_on_the_cpu():
    """JAX compiles it for NVIDIA's GPUs; here it is given its definition for CPUs, too."""
    one = np.ones((1, 1, 1), np.float32)
    call = jax.make_jaxpr(jax.nn.scaled_matmul)(one, one, one, one).eqns[0]
    primitive = call.params["jaxpr"].eqns[0].primitive
    mlir.register_lowering(primitive, mlir.lower_fun(by_its_definition, multiple_results=False),
                           platform="cpu")


def arrays(lib, dtype, *values):
    return [lib.numpy.asarray(x, dtype) for x in values]


def same(found, wanted, rtol=2e-5):
    pairs = zip(*map(jax.tree_util.tree_leaves, (found, wanted)), strict=True)
    for x, y in pairs:
        assert x.shape == y.shape and str(x.dtype) == str(y.dtype)
        x, y = (np.asarray(z).astype(np.float32) for z in (x, y))
        np.testing.assert_allclose(x, y, rtol, rtol * np.abs(y).mean())


def configs(lib, modes, scale=None):
    return [lib.nn.get_scaled_dot_general_config(
        mode, None if scale is None else lib.numpy.full(1, scale)) for mode in modes]


# ── scaled_matmul ────────────────────────────────────────────────────────────────────────────

SCALES = [RNG.uniform(.5, 2, (2, n, 4)).astype(np.float32) for n in (32, 64)]


@pytest.mark.parametrize("preferred", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("kinds", [("float32", "float32"), ("float8_e4m3fn", "float8_e8m0fnu"),
                                   ("float4_e2m1fn", "float8_e4m3fn")])
def test_rows_times_rows_in_blocks(kinds, preferred, jax_says):
    def product(lib):
        return lib.nn.scaled_matmul(
            *arrays(lib, kinds[0], LHS, RHS.clip(-100, 100)), *arrays(lib, kinds[1], *SCALES),
            preferred_element_type=preferred)
    same(product(minijax), jax_says(lambda: product(jax)),
         2e-5 if preferred == "float32" else 1e-2)


def test_compiled_and_in_batches_it_is_the_same():
    given = LHS, RHS, *SCALES
    wanted = minijax.nn.scaled_matmul(*given)
    same(minijax.jit(minijax.nn.scaled_matmul)(*given), wanted)
    same(minijax.vmap(minijax.nn.scaled_matmul)(*(x[None] for x in given))[0], wanted)


@pytest.mark.parametrize("shapes", [
    [(4, 8), (3, 8), (4, 2), (3, 2)], [(1, 4, 8), (2, 3, 8), (1, 4, 2), (2, 3, 2)],
    [(1, 4, 8), (1, 3, 6), (1, 4, 2), (1, 3, 2)], [(1, 4, 8), (1, 3, 8), (1, 4, 2), (1, 3, 4)],
    [(1, 4, 8), (1, 3, 8), (1, 3, 2), (1, 3, 2)]])
def test_rows_that_do_not_fit_are_refused_in_jaxs_words(shapes):
    said = []
    for lib in (minijax, jax):
        with pytest.raises(ValueError) as error:
            lib.nn.scaled_matmul(*(lib.numpy.ones(shape) for shape in shapes))
        said.append(str(error.value))
    assert said[0].splitlines()[0] == said[1]


def test_scales_for_parts_of_blocks_are_refused():
    with pytest.raises(ValueError, match="whole blocks"):
        minijax.nn.scaled_matmul(*map(np.ones, [(1, 2, 8), (1, 2, 8), (1, 2, 3), (1, 2, 3)]))


# ── scaled_dot_general ───────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("scale", [None, .25])
@pytest.mark.parametrize("modes", MODES, ids="-".join)
def test_quantised_products_and_derivatives_are_those_of_jax(
        modes, scale, as_users_compile, jax_says):
    weights = np.cos(np.arange(2 * 32 * 64)).reshape(2, 32, 64).astype(np.float32)

    def both(lib, compiled=lambda f: f):
        def product(a, b):
            return lib.nn.scaled_dot_general(a, b, STACKED, configs=configs(lib, modes, scale))
        sides = arrays(lib, "float32", LHS, RHS)
        return compiled(product)(*sides), compiled(lib.grad(
            lambda a, b: (product(a, b) * weights).sum(), (0, 1)))(*sides)
    if len(set(modes)) > 1:
        scale = None  # in JAX a cotangent in another format forgets the scale of the other side
    # told to be quick, XLA rounds some quotients to the wrong side of a tie
    same(both(minijax), jax_says(lambda: both(jax, as_users_compile)))


def test_nothing_flows_back_to_what_was_cut_off():
    slope = minijax.grad(lambda x: minijax.nn.scaled_dot_general(
        x, np.ones((1, 16), np.float32), (((1,), (1,)), ((), ())),
        configs=configs(minijax, ["nvfp4"] * 3, 1e-3)).sum())(minijax.numpy.ones((1, 16)).at[
            0, 0].set(3.))
    np.testing.assert_array_equal(slope, [[0.] + [1.] * 15])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_short_floats(dtype, jax_says):
    def product(lib):
        return lib.nn.scaled_dot_general(*arrays(lib, dtype, LHS, RHS.clip(-100, 100)), STACKED,
                                         dtype, configs=configs(lib, MODES[0]))
    same(product(minijax), jax_says(lambda: product(jax)), 1e-2)


@pytest.mark.parametrize("axes", [
    (LHS[0], RHS[0], (((1,), (1,)), ((), ()))), (LHS, RHS, (((2,), (2,)), ((), ()))),
    (LHS.T, RHS.transpose(1, 2, 0), (((0,), (1,)), ((2,), (2,))))])
def test_axes_in_any_order(axes, jax_says):
    def product(lib):
        lhs, rhs, numbers = axes
        return lib.nn.scaled_dot_general(*arrays(lib, "float32", lhs, rhs), numbers,
                                         configs=configs(lib, MODES[0]))
    same(product(minijax), jax_says(lambda: product(jax)))


def test_compiled_batched_and_with_a_scale_that_is_traced():
    def product(a, b, scale):
        chosen = [minijax.nn.get_scaled_dot_general_config("nvfp4", scale)] * 3
        return minijax.nn.scaled_dot_general(a, b, (((1,), (1,)), ((), ())), configs=chosen)
    one = minijax.numpy.full(1, .5)
    wanted = np.stack([product(LHS[i], RHS[i], one) for i in range(2)])
    np.testing.assert_array_equal(minijax.vmap(product, (0, 0, None))(LHS, RHS, one), wanted)
    np.testing.assert_array_equal(minijax.jit(product)(LHS[0], RHS[0], one), wanted[0])
    slope = minijax.grad(lambda s: product(LHS[0], RHS[0], s).sum())(one)
    assert not slope.any()


def test_zeros_stay_zeros():
    x = np.zeros((2, 32), np.float32)
    out = minijax.nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())),
                                        configs=configs(minijax, MODES[0]))
    np.testing.assert_array_equal(out, np.zeros((2, 2)))


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="no multiple"):
        minijax.nn.scaled_dot_general(LHS[..., :40], RHS[..., :40], STACKED,
                                      configs=configs(minijax, MODES[0]))
    for lib in (minijax, jax):
        with pytest.raises(TypeError, match="Only support preferred_element_type"):
            lib.nn.scaled_dot_general(LHS, RHS, STACKED, np.int32, configs=configs(lib, MODES[0]))


def test_formats_are_those_of_jax():
    for mode in ("mxfp8", "nvfp4"):
        found, wanted = (lib.nn.get_scaled_dot_general_config(mode) for lib in (minijax, jax))
        for name in ("mode", "block_size", "data_type", "scale_type", "infer_only"):
            assert getattr(found, name) == getattr(wanted, name)
        assert str(found.global_scale) == str(wanted.global_scale)
    assert minijax.nn.get_scaled_dot_general_config("mxfp8").scale_type in {
        d.type for d in dtypes.FLOAT8}
