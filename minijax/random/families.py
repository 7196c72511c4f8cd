"""Distributions with parameters: formulas over normal, uniform and gamma numbers.

Builds on `samplers`, `rejection`.  Chapter 16, *Random numbers*.
In JAX: `jax/_src/random/core.py`.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array, refuse
from minijax.transforms.arguments import bound
from minijax.primitives.convert import converted
from minijax.primitives.families import documented
from minijax.random.choices import _rademacher
from minijax.random.keys import split
from minijax.random.rejection import _gamma
from minijax.random.samplers import (Shape, _normal, _uniform, after_minus_one, broadcast_to,
                                     check_shape, checked, compiled, refuse_wider, scaled_erf_inv)

Formula = Callable[..., Array]
_ONE = np.float32(1)


def family(meaning: str, example: str, *, shape: Any = None, kind: Any = np.floating,
           rounds: bool = False, promotes: bool = False) -> Callable[[Formula], Callable]:
    """Make a public sampler of a formula ``(key, shape, dtype, *parameters)``.

    Args:
      meaning: what the numbers are, for the docstring.
      example: the arguments after the key, for the docstring.
      shape: the default shape; None is that of the parameters together.
      kind: of the dtype: floating, inexact, or integer.
      rounds: whether wider parameters are rounded to the dtype; otherwise they raise an error.
      promotes: whether the parameters are passed unchanged, and promote the dtype of the result;
        otherwise they become arrays of the dtype and of the shape.  Such a sampler takes no
        `out_sharding`.
    """
    def decorate(formula: Formula) -> Callable:
        name = formula.__name__.strip("_")
        signature, names = _public_signature(formula, shape, () if promotes else (_SHARDING,))

        def drawn(key: Array, shape: Shape, dtype: np.dtype, *values: Any) -> Array:
            if promotes:
                return formula(key, shape, dtype, *values)
            arrays = [converted(x, dtype if kind is not np.integer else dtypes.canonicalize_dtype(
                dtypes.to_inexact_dtype(dtypes.dtype(x)))) for x in values]
            return formula(key, shape, dtype, *(
                broadcast_to(x, shape) if x.ndim else x for x in arrays))

        drawn.__name__ = drawn.__qualname__ = f"_{name}"  # as programs name it
        draw = compiled("shape", "dtype")(drawn)

        def sample(*args: Any, **kwargs: Any) -> Array:
            binding = bound(signature, name, args, kwargs)
            binding.apply_defaults()
            arguments = binding.arguments
            values = [arguments[n] for n in names]
            typed, sizes, dtype = checked(
                name, arguments["key"], arguments["shape"], arguments["dtype"], kind,
                *(() if promotes else map(np.shape, values)))
            if not (rounds or promotes) and kind is not np.integer:
                refuse_wider(name, dtype, *values)
            return draw(typed, sizes, dtype, *values)

        sample.__signature__ = signature  # type: ignore[attr-defined]
        listed = f"{', '.join(names)}: numbers, or arrays that broadcast to the shape.\n      "
        text = meaning + _ARGUMENTS.format(
            listed if names else "", "an integer" if kind is np.integer else "a float")
        return documented(sample, name, text, "from minijax.random import key\n"
                          f"    >>> {name}(key(0), {example}).shape -> (3,)",
                          "ValueError: for another dtype, or shapes that do not fit.")
    return decorate


_ARGUMENTS = """

    Args:
      key: a key, typed or raw.
      {}shape: the shape of the result.
      dtype: {} dtype; None is the default one."""
_SHARDING = inspect.Parameter("out_sharding", inspect.Parameter.KEYWORD_ONLY, default=None)


def _public_signature(formula: Formula, shape: Any, keywords: Iterable[inspect.Parameter]
                      ) -> tuple[inspect.Signature, list[str]]:
    """``(key, *parameters, shape=shape, dtype=None, *keywords)``, and the names of parameters."""
    first, of_shape, of_dtype, *parameters = (
        p.replace(annotation=inspect.Parameter.empty)
        for p in inspect.signature(formula).parameters.values())
    last = of_shape.replace(default=shape), of_dtype.replace(default=None)
    return inspect.Signature([first, *parameters, *last, *keywords]), [p.name for p in parameters]


def _standard_uniform(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    return _uniform(key, shape, dtype, 0., 1.)


def _exponential(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    return -lax.log1p(-_standard_uniform(key, shape, dtype))


# ── From gamma numbers ───────────────────────────────────────────────────────────────────────

@family("Numbers whose density is proportional to x^(a-1) exp(-x).", "2., (3,)", rounds=True)
def gamma(key: Array, shape: Shape, dtype: np.dtype, a: Array) -> Array:
    return _gamma(key, a, shape, dtype, log_space=False)


@family("The logarithms of gamma numbers, exact for small ones.", "2., (3,)", rounds=True)
def loggamma(key: Array, shape: Shape, dtype: np.dtype, a: Array) -> Array:
    return _gamma(key, a, shape, dtype)


@family("Numbers whose density is proportional to x^(a-1) (1-x)^(b-1).", "2., 3., (3,)")
def beta(key: Array, shape: Shape, dtype: np.dtype, a: Array, b: Array) -> Array:
    # one gamma number divided by the sum of two, from their logarithms
    first, second = split(key)
    x, y = _gamma(first, a, shape, dtype), _gamma(second, b, shape, dtype)
    largest = lax.max(x, y)
    x, y = lax.exp(x - largest), lax.exp(y - largest)
    return x / (x + y)


def _chisquare(key: Array, shape: Shape, dtype: np.dtype, df: Array) -> Array:
    return 2 * lax.exp(_gamma(key, df / 2, shape, dtype))


chisquare = family("Sums of `df` squares of normal numbers.", "2., (3,)")(_chisquare)


@family("Ratios of two means of squares of normal numbers.", "2., 3., (3,)")
def f(key: Array, shape: Shape, dtype: np.dtype, dfnum: Array, dfden: Array) -> Array:
    den_key, num_key = split(key)
    denominator = _chisquare(den_key, shape, dtype, dfden) / dfden
    return (_chisquare(num_key, shape, dtype, dfnum) / dfnum) / denominator


@family("Student's numbers, of `df` degrees of freedom.", "2., (3,)")
def t(key: Array, shape: Shape, dtype: np.dtype, df: Array) -> Array:
    first, second = split(key)
    half = df / 2
    return _normal(first, shape, dtype) * lax.sqrt(
        half / _gamma(second, half, shape, dtype, log_space=False))


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None, *,
              out_sharding: Any = None) -> Array:
    """Probabilities that add up to one: gamma numbers divided by their sum.

    Args:
      key: a key, typed or raw.
      alpha: the parameters, along the last axis.
      shape: the shape of the result without its last axis; None is that of `alpha`.
      dtype: a float dtype.

    >>> from minijax.random import key
    >>> dirichlet(key(0), np.ones(3), (2,)).shape
    (2, 3)

    Raises:
      ValueError: when `alpha` is a scalar, for another dtype, or shapes that do not fit.
    """
    if np.ndim(alpha) < 1:
        raise ValueError(f"dirichlet requires alpha.ndim >= 1, got alpha.ndim == {np.ndim(alpha)}")
    typed, sizes, dtype = checked("dirichlet", key, shape, dtype, np.floating, np.shape(alpha)[:-1])
    return _dirichlet(typed, alpha, (*sizes, np.shape(alpha)[-1]), dtype)


@compiled("shape", "dtype")
def _dirichlet(key: Array, alpha: Any, shape: Shape, dtype: np.dtype) -> Array:
    logs, last = _gamma(key, alpha, shape, dtype), (len(shape) - 1,)
    parts = lax.exp(logs - lax.stop_gradient(lax.expand_dims(lax.reduce_max(logs, last), last)))
    return parts / lax.expand_dims(lax.reduce_sum(parts, last), last)


# ── From normal numbers ──────────────────────────────────────────────────────────────────────

@family("Numbers whose logarithm is normal.", "1., (3,)", kind=np.inexact)
def lognormal(key: Array, shape: Shape, dtype: np.dtype, sigma: Any = _ONE) -> Array:
    return lax.exp(_normal(key, shape, dtype) * sigma)


def _maxwell(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    x = _normal(key, (*shape, 3), dtype)
    return lax.sqrt(lax.reduce_sum(x * x, (len(shape),)))


maxwell = family("The lengths of vectors of three normal numbers.", "(3,)", shape=())(_maxwell)


@family("Maxwell numbers with a random sign, scaled and moved.", "1., 2., (3,)", shape=(),
        promotes=True)
def double_sided_maxwell(key: Array, shape: Shape, dtype: np.dtype, loc: Array, scale: Array
                         ) -> Array:
    first, second = split(key)
    shape = (*shape, *lax.broadcast_shapes(np.shape(loc), np.shape(scale)))
    lengths = _maxwell(first, shape, dtype)
    return _rademacher(second, shape, dtype) * lengths * scale + loc


# Source: Michael, Schucany, Haas, *Generating random variates using transformations with multiple
# roots* (1976).
@family("When a moving point first has gone a way of length one.", "2., (3,)")
def wald(key: Array, shape: Shape, dtype: np.dtype, mean: Array) -> Array:
    first, second = split(key)
    z, u = _normal(first, shape, dtype), _standard_uniform(second, shape, dtype)
    square, mean_square = lax.integer_pow(z, 2), lax.integer_pow(mean, 2)
    root = lax.sqrt(4 * mean * square + mean_square * lax.integer_pow(square, 2))
    x = mean + mean_square * square / 2 - mean / 2 * root
    return lax.select(u <= mean / (mean + x), x, mean_square / x)


@family("Standard normal numbers that lie between two bounds.", "-1., 1., (3,)", rounds=True)
def truncated_normal(key: Array, shape: Shape, dtype: np.dtype, lower: Array, upper: Array
                     ) -> Array:
    root = dtype.type(np.sqrt(2))
    uniforms = _uniform(key, shape, dtype, *(lax.erf(x / root) for x in (lower, upper)))
    # rounding may have moved a number onto a bound, or beyond it
    least = lax.nextafter(lax.stop_gradient(lower), dtype.type(np.inf))
    most = lax.nextafter(lax.stop_gradient(upper), dtype.type(-np.inf))
    least, most = (lax.broadcast_to_rank(x, len(shape)) for x in (least, most))
    return lax.min(most, lax.max(least, scaled_erf_inv(uniforms, dtype)))


# ── From uniform numbers ─────────────────────────────────────────────────────────────────────

exponential = family("Numbers whose density is exp(-x) on [0, ∞).", "(3,)", shape=())(_exponential)


@family("Numbers whose density is exp(-|x|) / 2.", "(3,)", shape=())
def laplace(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    u = _uniform(key, shape, dtype, after_minus_one(dtype), 1.0)
    return lax.sign(u) * lax.log1p(-lax.abs(u))


@family("Numbers whose distribution function is 1 / (1 + exp(-x)).", "(3,)", shape=())
def logistic(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    u = _uniform(key, shape, dtype, dtypes.finfo(dtype).tiny, 1.0)
    return lax.log(u) - lax.log1p(-u)


@family("Numbers whose density is 1 / (π (1 + x²)).", "(3,)", shape=())
def cauchy(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    u = _uniform(key, shape, dtype, dtypes.finfo(dtype).eps, 1.0)
    return lax.tan(np.pi * (u - 0.5))


@family("How many trials there are until the first success.", ".2, (3,)", kind=np.integer)
def geometric(key: Array, shape: Shape, dtype: np.dtype, p: Array) -> Array:
    u = _standard_uniform(key, shape, p.dtype)
    u = lax.select(u == 0, lax.full_like(u, 1), u)
    return converted(lax.floor(lax.log(u) / lax.log1p(-p)) + 1, dtype)


@family("Numbers whose density is b / x^(b+1) on [1, ∞).", "2., (3,)")
def pareto(key: Array, shape: Shape, dtype: np.dtype, b: Array) -> Array:
    return lax.exp(_exponential(key, shape, dtype) / b)


@family("The lengths of vectors of two normal numbers, times a scale.", "2., (3,)")
def rayleigh(key: Array, shape: Shape, dtype: np.dtype, scale: Array) -> Array:
    return scale * lax.sqrt(lax.log(_standard_uniform(key, shape, dtype)) * -2)


@family("Numbers whose density is a triangle.", "0., .5, 1., (3,)")
def triangular(key: Array, shape: Shape, dtype: np.dtype, left: Array, mode: Array, right: Array
               ) -> Array:
    u = _standard_uniform(key, shape, dtype)
    rising = left + lax.sqrt(u * (right - left) * (mode - left))
    falling = right - lax.sqrt((1 - u) * (right - left) * (right - mode))
    return lax.select(u < (mode - left) / (right - left) + 0 * u, rising, falling)


@family("Powers of waiting times: Weibull's numbers.", "1., 2., (3,)", shape=(), promotes=True)
def weibull_min(key: Array, shape: Shape, dtype: np.dtype, scale: Array, concentration: Array
                ) -> Any:
    return _exponential(key, shape, dtype) ** (1.0 / concentration) * scale


# ── Several dimensions ───────────────────────────────────────────────────────────────────────

def generalized_normal(key: Any, p: float, shape: Any = (), dtype: Any = None, *,
                       out_sharding: Any = None) -> Array:
    """Numbers whose density is proportional to exp(-|x|^p).

    Args:
      key: a key, typed or raw.
      p: a positive number.
      shape: the shape of the result.
      dtype: a float dtype.

    >>> from minijax.random import key
    >>> generalized_normal(key(0), 2., (3,)).shape
    (3,)
    """
    check_shape("gamma", shape, np.shape(p))
    return _generalized_normal(*checked("generalized_normal", key, shape, dtype), p)


@compiled("shape", "dtype")
def _generalized_normal(key: Array, shape: Shape, dtype: np.dtype, p: Any) -> Array:
    sizes, signs = split(key)
    drawn = _gamma(sizes, converted(1 / p, dtype), shape, dtype, log_space=False)
    return _rademacher(signs, shape, dtype) * drawn ** (1 / p)


def ball(key: Any, d: int, p: float = 2, shape: Any = (), dtype: Any = None, *,
         out_sharding: Any = None) -> Array:
    """Points inside the unit ball of a p-norm, all parts of it equally likely.

    Args:
      key: a key, typed or raw.
      d: how many dimensions the ball has.
      p: which norm.
      shape: the shape of the result without its last axis, which is of size `d`.
      dtype: a float dtype.

    >>> from minijax.random import key
    >>> ball(key(0), 2, shape=(3,)).shape
    (3, 2)
    """
    return _ball(*checked("ball", key, shape, dtype), d, p)


@compiled("shape", "dtype", "d")
def _ball(key: Array, shape: Shape, dtype: np.dtype, d: int, p: Any) -> Array:
    direction, radius = split(key)
    points = _generalized_normal(direction, (*shape, d), dtype, p)
    last = (len(shape),)
    total = lax.reduce_sum(abs(points) ** p, last) + _exponential(radius, shape, dtype)
    return points / lax.expand_dims(total ** (1 / p), last)


def orthogonal(key: Any, n: int, shape: Any = (), dtype: Any = None, m: int | None = None, *,
               out_sharding: Any = None) -> Array:
    """Orthogonal matrices, all directions equally likely.

    Args:
      key: a key, typed or raw.
      n, m: the rows and columns; `m` is `n` by default.
      shape: the shape of the result without its last two axes.
      dtype: a float or complex dtype.

    >>> from minijax.random import key
    >>> x = orthogonal(key(0), 3)
    >>> bool(abs(x @ x.T - np.eye(3)).max() < 1e-5)
    True
    """
    typed, sizes, dtype = checked("orthogonal", key, shape, dtype, np.inexact)
    return _orthogonal(typed, (*sizes, n, n if m is None else m), dtype)


@compiled("shape", "dtype")
def _orthogonal(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    *outer, n, m = shape
    z = _normal(key, (*outer, max(n, m), min(n, m)), dtype)
    q, r = lax.linalg.qr(z, full_matrices=False)
    is_diagonal = lax.broadcasted_iota(np.int32, r.shape, r.ndim - 1) == lax.broadcasted_iota(
        np.int32, r.shape, r.ndim - 2)
    diagonal = lax.reduce_sum(lax.select(is_diagonal, r, lax.full_like(r, 0)), (r.ndim - 2,))
    is_complex = dtypes.issubdtype(dtype, np.complexfloating)
    signs = diagonal / converted(lax.abs(diagonal), dtype) if is_complex else lax.sign(diagonal)
    q = q * lax.expand_dims(signs, (r.ndim - 2,))
    return q if n >= m else lax.transpose(q, (*range(len(outer)), len(outer) + 1, len(outer)))


def multivariate_normal(key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = None,
                        method: str = "cholesky", *, out_sharding: Any = None) -> Array:
    """Normal vectors with a mean and a covariance.

    Args:
      key: a key, typed or raw.
      mean: (…, n).
      cov: (…, n, n), symmetric and positive.
      shape: the shape of the result without its last axis; None is that of `mean` and `cov`.
      dtype: a float dtype.
      method: how to take the root of the covariance: "cholesky", "eigh" or "svd".

    >>> from minijax.random import key
    >>> multivariate_normal(key(0), np.zeros(3), np.eye(3), (2,)).shape
    (2, 3)

    Raises:
      ValueError: for shapes that do not fit, another dtype or method.
    """
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError("method must be one of {'svd', 'eigh', 'cholesky'}")
    promoted = dtypes.to_inexact_dtype(dtypes.result_type(mean, cov))
    typed, _, dtype = checked("multivariate_normal", key, (), promoted if dtype is None else dtype)
    mean, cov = (converted(x, promoted) for x in (mean, cov))
    name = "multivariate_normal requires"
    refuse((mean.ndim < 1, f"{name} mean.ndim >= 1, got mean.ndim == 0"),
           (cov.ndim < 2, f"{name} cov.ndim >= 2, got cov.ndim == {cov.ndim}"), error=ValueError)
    n = mean.shape[-1]
    if cov.shape[-2:] != (n, n):
        raise ValueError("multivariate_normal requires cov.shape == (..., n, n) for n="
                         f"{n}, but got cov.shape == {cov.shape}.")
    if shape is None:
        sizes = lax.broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
    else:
        sizes = check_shape("normal", shape, mean.shape[:-1], cov.shape[:-2])
    return _multivariate_normal(typed, mean, cov, sizes, dtype, method)


@compiled("shape", "dtype", "method")
def _multivariate_normal(key: Array, mean: Array, cov: Array, shape: Shape, dtype: np.dtype,
                         method: str) -> Array:
    n = mean.shape[-1]
    if method == "cholesky":
        root = lax.linalg.cholesky(cov)
    else:
        vectors, values, *_ = lax.linalg.eigh(cov) if method == "eigh" else lax.linalg.svd(cov)
        root = vectors * lax.sqrt(lax.expand_dims(values, (cov.ndim - 2,)))
    z = _normal(key, (*shape, n), dtype)
    root = broadcast_to(root, (*shape, n, n))
    batch = tuple(range(len(shape)))
    root, z = (converted(x, dtypes.promote_types(cov.dtype, dtype)) for x in (root, z))
    deviations = lax.dot_general(root, z, (((len(shape) + 1,), (len(shape),)), (batch, batch)))
    return broadcast_to(mean, (*shape, n)) + deviations
