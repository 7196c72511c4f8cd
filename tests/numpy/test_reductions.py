"""Reductions agree with JAX: dtypes, axes, `where`, `initial`, empty arrays, errors."""
import jax
import numpy as np
import pytest

import minijax


NAMES = "sum prod mean var std max min argmax argmin any all ptp count_nonzero"


@pytest.mark.parametrize("arguments", ["n, 0", "i, -1", "u", "b, 0", "h, 1", "s"])
@pytest.mark.parametrize("name", NAMES.split())
def test_a_reduction_agrees_with_jax(agrees_with_jax, name, arguments):
    if (name, arguments[0]) != ("ptp", "b"):  # bools have no difference
        agrees_with_jax(f"jnp.{name}({arguments})", rtol=2e-2 if arguments[0] == "h" else 1e-5)


@pytest.mark.parametrize("name", "sum mean max any std".split())
def test_axes_and_keepdims(agrees_with_jax, name):
    for axis in ("(0, 2)", "1", "-1", "None", "()"):
        agrees_with_jax(f"jnp.{name}(t, axis={axis}, keepdims=True)", rtol=1e-5)


@pytest.mark.parametrize("expression", [
    "jnp.sum(f, dtype=int)", "jnp.sum(p, promote_integers=False)", "jnp.sum(i, initial=5)",
    "jnp.sum(f, where=b)", "jnp.prod(f, where=b, initial=2.0)",
    "jnp.max(i, where=b, initial=-3)", "jnp.min(f, where=b, initial=9.0)",
    "jnp.mean(f, where=b)", "jnp.mean(f, axis=0, where=b)", "jnp.var(f, where=b)",
    "jnp.std(f, axis=1, ddof=1)", "jnp.var(f, ddof=3, axis=1)", "jnp.var(c)",
    "jnp.var(f, correction=1)", 'jnp.mean(i, dtype="float16")', "jnp.mean(c, 0)", "jnp.sum(c)",
    "jnp.any(f, where=b)", "jnp.all(f, where=b, axis=0)", "jnp.argmax(f, keepdims=True)",
    "jnp.argmax(f, axis=0, keepdims=True)", "jnp.argmin(b, 1)", "jnp.average(f, weights=g)",
    "jnp.average(f, axis=1, weights=v)", "jnp.average(f, (1, 0), weights=f.T)",
    "jnp.average(f, weights=v)", "jnp.average(i, 0, weights=jnp.float16(2) + jnp.zeros(2))",
    "jnp.average(f, axis=0, returned=True)",
    "jnp.average(i)", "jnp.sum(e)", "jnp.prod(e, axis=0)", "jnp.mean(e)", "jnp.sum(e, 0)",
    "jnp.max(e, axis=1)", "jnp.max(e, initial=1.0)", "jnp.amax(f)", "jnp.amin(f)", "jnp.max(b)",
    "jnp.min(b, 0)", "jnp.sum(jnp.ones(5, 'float16'))", "jnp.sum(True)",
    "jnp.sum(b, promote_integers=False)", "jnp.prod(b, promote_integers=False)",
])
def test_arguments(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jnp.{}(b, 0, dtype=bool)", "jnp.{}(v, dtype=bool)", "jnp.{}(w * 0, dtype='bool')",
    "jnp.nan{}(n, dtype=bool)", "jnp.cum{}(b, 0, dtype=bool)", "jnp.cum{}(b)",
    "jnp.cum{}(jnp.array([0, 1, -1]), dtype=bool)", "jnp.nancum{}(n, dtype=bool)",
    "jnp.cumulative_{}(w - 2, dtype=bool, include_initial=True)",
    "jnp.{}(b, dtype=bool, where=~b)", "jnp.{}(b, 0, dtype=bool, initial=1)",
    "jnp.{}(e, dtype=bool)", "jax.jit(lambda x: jnp.{}(x, dtype=bool))(b)"])
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_sums_and_products_of_bools(agrees_with_jax, name, expression):
    agrees_with_jax(expression.format(name))


@pytest.mark.parametrize("expression", [
    "jnp.{}(jnp.full(3, 4e4), dtype='float16')", "jnp.{}(jnp.full(3, 4e4, 'float16'))",
    "jnp.{}(jnp.full((2, 3), 1e5), 1, dtype='float16')", "jnp.{}(g, dtype='float16')",
    "jnp.{}(jnp.array([1.0, 1.0005]), dtype='float16')", "jnp.{}(n, dtype='float16')"])
@pytest.mark.parametrize("name", "sum prod mean var std nansum nanmean nanvar".split())
def test_a_short_dtype_of_the_user_is_the_dtype_of_every_step(agrees_with_jax, name, expression):
    agrees_with_jax(expression.format(name), rtol=2e-3)


@pytest.mark.parametrize("expression", [
    "jnp.sum([1, 2])", "jnp.mean((1, 2))", "jnp.max(e)", "jnp.min(e, axis=0)", "jnp.argmax(e)",
    "jnp.mean(b, dtype=bool)",
    "jnp.sum(f, axis=2)", "jnp.sum(f, axis=(0, 0))", "jnp.sum(f, axis=1.5)",
    "jnp.max(f, where=b)", "jnp.sum(f, out=f)", "jnp.average(f, weights=jnp.ones(5), axis=0)",
    "jax.jit(lambda x, axis: x.min(axis))(w, 0)",
    "jax.jit(lambda x, axis: jnp.sum(x, axis=(0, axis)))(f, 1)",
])
def test_refusals(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jax.grad(lambda x: jnp.sum(x ** 2))(f)", "jax.grad(lambda x: jnp.mean(x, 0).sum())(f)",
    "jax.grad(lambda x: jnp.prod(x))(f)", "jax.grad(lambda x: jnp.max(x))(f)",
    "jax.grad(lambda x: jnp.max(x))(jnp.ones(3))", "jax.grad(lambda x: jnp.var(x))(f)",
    "jax.grad(lambda x: jnp.std(x))(f)", "jax.vmap(jnp.mean)(f)", "jax.vmap(jnp.argmax)(f)",
    "jax.jit(jnp.var)(f)", "jax.jit(lambda x: jnp.max(x, 1))(f)",
    "jax.grad(lambda x: jnp.sum(x, where=b))(f)", "jax.vmap(lambda x: jnp.std(x, 0))(t)",
    "jax.jit(lambda x: jnp.argmin(x, 0))(f)",
])
def test_transformed_reductions(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-05)


def test_a_traced_axis_is_refused_as_the_page_of_errors_says():
    import minijax

    with pytest.raises(minijax.errors.ConcretizationTypeError,
                       match=r"axis argument to jnp\.min\(\)\."):
        minijax.jit(lambda x, axis: x.min(axis))(minijax.numpy.arange(4), 0)


def test_a_sum_prints_as_one_equation():
    import minijax

    jaxpr = minijax.make_jaxpr(minijax.numpy.sum)(minijax.numpy.ones((2, 3)))
    assert str(jaxpr) == "{ lambda ; a:f32[2,3]. let b:f32[] = reduce_sum[axes=(0, 1)] a in (b,) }"


@pytest.mark.parametrize("name",
                         "sum mean max min var std ptp count_nonzero nansum nanmean".split())
def test_a_named_axis_is_reduced_over_like_one_of_the_array(agrees_with_jax, name):
    for axis in ("'i'", "('i', 0)", "(-1, 'i')"):
        agrees_with_jax(f"jax.vmap(lambda x: jnp.{name}(x, axis={axis}), axis_name='i')(t)",
                        rtol=1e-5)


@pytest.mark.parametrize("name", "sum mean max min var std ptp count_nonzero nanvar".split())
def test_an_axis_name_that_nobody_bears_is_a_name_error(name):
    for lib in (minijax, jax):
        with pytest.raises(NameError, match="unbound axis name: i"):
            getattr(lib.numpy, name)(lib.numpy.ones((2, 3)), axis="i")


@pytest.mark.parametrize("name", "prod any all".split())
def test_what_has_no_named_reduction_says_so(agrees_with_jax, name):
    agrees_with_jax(f"jnp.{name}(f, axis='i')")


STRICT = ("sum prod max min any all mean std var cumsum cumprod argmax argsort sort ptp trace "
          "nonzero median count_nonzero nansum nanmean nanmax unique histogram diff gradient "
          "sinc round sign square average bincount").split()


@pytest.mark.parametrize("name", STRICT)
def test_strict_promotion_forbids_what_it_forbids_in_jax_and_no_more(name):
    for dtype in (bool, np.int8, np.int32, np.float32):
        found = []
        for lib in (minijax, jax):
            x = lib.numpy.ones((2, 2) if name == "trace" else 3, dtype)
            with lib.numpy_dtype_promotion("strict"):
                try:
                    getattr(lib.numpy, name)(x)
                    found.append(None)
                except (TypeError, ValueError) as error:
                    found.append(type(error).__name__)
        assert found[0] == found[1] or (name, dtype) == ("round", bool), dtype


NAMES = "nansum nanprod nanmax nanmin nanmean nanvar nanstd nanargmax nanargmin"


@pytest.mark.parametrize("arguments", ["n", "n, 0", "n, 1", "i", "jnp.full((2, 2), jnp.nan), 0"])
@pytest.mark.parametrize("name", NAMES.split())
def test_a_reduction_that_skips_nan_agrees_with_jax(agrees_with_jax, name, arguments):
    agrees_with_jax(f"jnp.{name}({arguments})", rtol=1e-5)


@pytest.mark.parametrize("expression", [
    "jnp.nansum(n, where=b)", "jnp.nanmax(n, initial=0, where=b)",
    "jnp.nanmean(n, axis=0, where=b)", "jnp.nanvar(n, where=b)", "jnp.cumsum(f)",
    "jnp.cumsum(f, 0)", "jnp.cumsum(p)", "jnp.cumsum(b)", "jnp.cumsum(i, axis=-1, dtype=float)",
    "jnp.cumsum(3)", "jnp.cumprod(f, 1)", "jnp.cumprod(i)", "jnp.cumprod(b, 0)",
    "jnp.nancumsum(n, 1)", "jnp.median(f)", "jnp.median(f, axis=0)", "jnp.median(i, axis=1)",
    "jnp.median(n, axis=1)", "jnp.median(t, axis=(0, 2))", "jnp.median(f, keepdims=True)",
    "jnp.quantile(f, 0.3)", "jnp.quantile(f, jnp.array([0.1, 0.9]), axis=1)",
    "jnp.quantile(f, 0.3, method='lower')", "jnp.quantile(f, 0.3, method='higher')",
    "jnp.quantile(f, 0.3, method='nearest')", "jnp.quantile(f, 0.3, method='midpoint')",
    "jnp.quantile(f, 0.5, axis=0, keepdims=True)", "jnp.percentile(f, 25)",
    "jnp.percentile(i, jnp.array([25, 75]))", "jax.jit(lambda x: jnp.cumsum(x, 0))(f)",
    "jax.grad(lambda x: (jnp.cumsum(x) * jnp.arange(6)).sum())(f)",
    "jax.grad(lambda x: jnp.median(x))(v)", "jax.vmap(jnp.median)(f)", "jax.vmap(jnp.cumsum)(f)",
    "jnp.cumsum([1, 2])", "jnp.cumsum(f, 2)", "jnp.quantile(f, 0.3, method='magic')",
])
def test_running_sums_and_quantiles(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-05)
