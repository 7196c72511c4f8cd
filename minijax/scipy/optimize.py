"""`minijax.scipy.optimize`: a minimum of a function of vectors, by quasi-Newton steps.

After J. Nocedal and S. J. Wright, Numerical Optimization (1999): algorithms 3.5, 3.6, 8.1 and 9.1.
Builds on `gradients`, `lax.while_loop`.  In JAX: `jax/_src/scipy/optimize/`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from minijax import lax, numpy as jnp, tree_util
from minijax.core import Array
from minijax.transforms.gradients import value_and_grad
from minijax.transforms.prepared import export_all as _export_all


class OptimizeResults(NamedTuple):
    """The result of `minimize`, and how it ended."""

    x: Array  # the minimiser,
    success: Any  # whether it is a minimum,
    status: Any  # 0: it is; 1: too many steps; 3, 5: no step goes down; 4: the value stays
    fun: Array  # the value there,
    jac: Array  # the gradient there,
    hess_inv: Array | None  # and an estimate of the inverse Hessian
    nfev: Any  # how often the function was called,
    njev: Any  # and its gradient,
    nit: Any  # in how many steps.


def minimize(fun: Callable, x0: Array, args: tuple = (), *, method: str, tol: float | None = None,
             options: Mapping[str, Any] | None = None) -> OptimizeResults:
    """A local minimum of a function of a vector.

    >>> result = minimize(lambda x: ((x - 3) ** 2).sum(), jnp.zeros(2), method="BFGS")
    >>> result.x.round(), bool(result.success)
    (Array([3., 3.], dtype=float32), True)

    Args:
      fun: takes x and `args`, and gives a number.
      x0: where to begin, of shape (n,).
      method: "BFGS"; or by JAX's long name L-BFGS, which keeps the last steps in place of a matrix,
        and takes complex x.
      tol: how large the gradient may be at a minimum; `gtol` of the options by default.
      options: `gtol`, `norm` (by which the gradient is measured), `maxiter`,
        `line_search_maxiter`; of L-BFGS `maxls` in its place, `maxcor` (how many steps are kept)
        and `ftol` (how small a relative decrease of the value ends it).

    Raises:
      TypeError: where `args` is no tuple.
      ValueError: for other methods, and for an x0 that is no vector.
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    if method.lower() not in _METHODS:
        raise ValueError(f"Method {method} not recognized. Use BFGS, or {L_BFGS}.")
    x = jnp.asarray(x0)
    if x.ndim != 1:
        raise ValueError(f"x0 must be a vector, got shape {x.shape}. Flatten it, for example with "
                         "jax.flatten_util.ravel_pytree.")
    defaults = {} if tol is None else {"gtol": tol}  # JAX: ignores it
    return _METHODS[method.lower()](lambda x: fun(x, *args), x, **{**defaults, **(options or {})})


# ── Line search ──────────────────────────────────────────────────────────────────────────────

class _Point(NamedTuple):
    """A point of the line, with the function's value and gradient."""

    step: Any
    value: Any
    slope: Any  # along the line
    gradient: Any


class _Search(NamedTuple):
    """The state of a line search: an interval that contains acceptable steps."""

    low: _Point  # the end where the function is smaller
    high: _Point  # the other end; infinite until there is one
    before: _Point  # the end that was replaced last
    iteration: Any  # with a finite interval, or without
    count: Any
    is_good: Any
    status: Any  # 1: the interval is empty; 3: it has no finite end


def _select(condition: Any, x: Any, y: Any) -> Any:
    return tree_util.tree_map(lambda a, b: jnp.where(condition, a, b), x, y)


def _interpolated_step(low: _Point, high: _Point, before: _Point) -> Any:
    """The minimum of an interpolating cubic or parabola if well inside, else the midpoint."""
    d, e = high.step - low.step, before.step - low.step

    def curvature(point: _Point, distance: Any) -> Any:
        return (point.value - low.value - low.slope * distance) / distance ** 2

    def is_inside(step: Any, margin: float) -> Any:
        share = (step - low.step) / d
        return (share > margin) & (share < 1 - margin)
    parabola = curvature(high, d)
    rise = (parabola - curvature(before, e)) / (d - e)
    bend = parabola - rise * d
    by_cubic = low.step + (jnp.sqrt(bend ** 2 - 3 * rise * low.slope) - bend) / (3 * rise)
    by_parabola = low.step - low.slope / (2 * parabola)
    return jnp.where(is_inside(by_cubic, .2), by_cubic, jnp.where(
        is_inside(by_parabola, .1), by_parabola, low.step + d / 2))


def _line_search(point_at: Callable, start: _Point, first: Any, max_steps: int) -> _Search:
    """A step that satisfies the strong Wolfe conditions."""
    narrow = 1e-10 if start.step.dtype == np.float64 else 1e-5

    def iteration(search: _Search) -> _Search:
        low, high, before, iterations = search[:4]
        has_end = high.step != jnp.inf
        new = point_at(jnp.where(has_end, _interpolated_step(low, high, before),
                                 jnp.where(low.step == 0, first, 2 * low.step)))
        is_down = (new.value <= start.value + 1e-4 * new.step * start.slope) & (
            (new.value < low.value) | (low.step == 0))
        is_good = is_down & (jnp.abs(new.slope) <= -.9 * start.slope)
        crosses = is_down & (new.slope * (high.step - low.step) >= 0)
        status = jnp.where(has_end, jnp.where(
            (jnp.abs(high.step - low.step) <= narrow) | (iterations >= 30), 1, 0),
            jnp.where(iterations >= max_steps, 3, 0))
        return _Search(
            _select(is_down, new, low), _select(is_down, _select(crosses, low, high), new),
            _select(is_down & ~crosses, low, high),
            jnp.where(~has_end & (crosses | ~is_down), 1, iterations + 1),
            search.count + 1, is_good, jnp.where(is_good, 0, status))
    nowhere = start._replace(step=start.step + jnp.inf)
    return lax.while_loop(lambda search: ~search.is_good & (search.status == 0), iteration,
                          _Search(start, nowhere, nowhere, *map(jnp.array, (1, 0, False, 0))))


# ── Quasi-Newton steps ───────────────────────────────────────────────────────────────────────

class _Matrix:
    """The inverse of the Hessian as a matrix, improved by each step."""

    def start(self, x: Array) -> Array:
        return jnp.eye(x.size, dtype=x.dtype)

    def times(self, inverse: Array, gradient: Array) -> Array:
        return inverse @ gradient

    def first_step(self, expected: Array) -> Array:
        """The step that is tried first, where this one would decrease the value as the last did."""
        return jnp.minimum(1, expected)

    def improved(self, inverse: Array, s: Array, y: Array, is_first: Any) -> Array:
        """The inverse after a step `s` along which the gradient changed by `y`."""
        rho, shear = 1 / (y @ s), jnp.eye(s.size, dtype=s.dtype) - jnp.outer(s, y) / (y @ s)
        # rounding errors of an identity that is much larger than the true inverse would remain
        size = (y @ s) / (y @ y)
        before = jnp.where(is_first & (size < 10 * jnp.finfo(s.dtype).eps), size * inverse, inverse)
        return jnp.where(jnp.isfinite(rho), shear @ before @ shear.T + rho * jnp.outer(s, s),
                         inverse)


class _LastSteps:
    """The inverse of the Hessian by the last steps, and the changes of the gradient in them."""

    def __init__(self, count: int):
        self.count = count

    def start(self, x: Array) -> tuple[Array, Array]:
        none = jnp.zeros((self.count, x.size), x.dtype)
        return none, none

    def times(self, inverse: tuple[Array, Array], gradient: Array) -> Array:
        """The product, by two loops over the steps; those that are not there yet do nothing."""
        steps, changes = inverse
        products = (steps * changes).sum(1)
        rho = jnp.where(products == 0, 0, 1 / jnp.where(products == 0, 1, products))

        def back(q: Array, row: tuple) -> tuple[Array, Array]:
            s, y, rho = row
            alpha = rho * (s @ q)
            return q - alpha * y, alpha

        def forth(r: Array, row: tuple) -> tuple[Array, None]:
            s, y, rho, alpha = row
            return r + (alpha - rho * (y @ r)) * s, None
        rows = steps, changes, rho
        q, alphas = lax.scan(back, gradient, rows, reverse=True)
        y = changes[-1]
        scale = jnp.where(rho[-1] == 0, 1, products[-1] / jnp.where(rho[-1] == 0, 1, y @ y))
        return lax.scan(forth, scale * q, (*rows, alphas))[0]

    def first_step(self, expected: Array) -> Array:
        return jnp.ones_like(expected)

    def improved(self, inverse: tuple[Array, Array], s: Array, y: Array, is_first: Any
                 ) -> tuple[Array, Array]:
        new = jnp.concatenate([inverse[0][1:], s[None]]), jnp.concatenate([inverse[1][1:], y[None]])
        return _select(y @ s > 0, new, inverse)


class _Descent(NamedTuple):
    """The state of `_descend`."""

    x: Any
    value: Any
    gradient: Any
    inverse: Any  # of the Hessian, approximately
    decrease: Any  # of the value, in the last step
    steps: Any
    calls: Any
    status: Any


def _descend(fun: Callable, x0: Array, hessian: _Matrix | _LastSteps, maxiter: int | None,
             norm: Any, gtol: float, ftol: float, max_search: int) -> OptimizeResults:
    """Quasi-Newton steps until the gradient is small, or the value stays."""
    max_steps = 200 * x0.size if maxiter is None else maxiter
    value_and_gradient = value_and_grad(fun)

    def status_of(gradient: Any, search_status: Any = 0, decrease: Any = np.inf) -> Any:
        failed = jnp.where(search_status == 0, jnp.where(decrease < ftol, 4, -1), search_status + 2)
        return jnp.where(jnp.linalg.norm(gradient, ord=norm) < gtol, 0, failed)

    def step(state: _Descent) -> _Descent:
        direction = -hessian.times(state.inverse, state.gradient)

        def point_at(length: Any) -> _Point:
            value, gradient = value_and_gradient(state.x + length * direction)
            return _Point(length, value, gradient @ direction, gradient)
        slope = state.gradient @ direction
        start = _Point(jnp.zeros_like(slope), state.value, slope, state.gradient)
        search = _line_search(point_at, start, hessian.first_step(2.02 * state.decrease / -slope),
                              max_search)
        point = _select(search.status == 3, start, search.low)
        s, y = point.step * direction, point.gradient - state.gradient
        decrease = state.value - point.value
        size = jnp.maximum(jnp.maximum(jnp.abs(state.value), jnp.abs(point.value)), 1)
        return _Descent(state.x + s, point.value, point.gradient,
                        hessian.improved(state.inverse, s, y, state.steps == 0),
                        decrease, state.steps + 1, state.calls + search.count,
                        status_of(point.gradient, search.status, decrease / size))
    value, gradient = value_and_gradient(x0)
    final = lax.while_loop(
        lambda state: (state.status == -1) & (state.steps < max_steps), step,
        _Descent(x0, value, gradient, hessian.start(x0), jnp.linalg.norm(gradient) / 2,
                 jnp.array(0), jnp.array(1), status_of(gradient)))
    status = jnp.where((final.status != 0) & (final.steps >= max_steps), 1, final.status)
    inverse = final.inverse if isinstance(hessian, _Matrix) else None
    success = final.status == np.int32(0)  # not weakly typed
    return OptimizeResults(final.x, success, status, final.value, final.gradient, inverse,
                           final.calls, final.calls, final.steps)


def _minimize_bfgs(fun: Callable, x0: Array, maxiter: int | None = None, norm: Any = np.inf,
                   gtol: float = 1e-5, line_search_maxiter: int = 10) -> OptimizeResults:
    return _descend(fun, x0, _Matrix(), maxiter, norm, gtol, -np.inf, line_search_maxiter)


def _minimize_lbfgs(fun: Callable, x0: Array, maxiter: int | None = None, norm: Any = np.inf,
                    maxcor: int = 10, ftol: float = 2.220446049250313e-09, gtol: float = 1e-5,
                    maxls: int = 20) -> OptimizeResults:
    maxiter = None if maxiter is None else maxiter + 1  # JAX: looks at it after a step
    if not jnp.iscomplexobj(x0):
        return _descend(fun, x0, _LastSteps(maxcor), maxiter, norm, gtol, ftol, maxls)

    def joined(parts: Array, sign: int = 1) -> Array:
        return lax.complex(parts[:x0.size], sign * parts[x0.size:])
    result = _descend(lambda parts: fun(joined(parts)), jnp.concatenate([x0.real, x0.imag]),
                      _LastSteps(maxcor), maxiter, norm, gtol, ftol, maxls)
    return result._replace(x=joined(result.x), jac=joined(result.jac, -1))


L_BFGS = "l-bfgs-experimental-do-not-rely-on-this"
_METHODS: dict[str, Callable[..., OptimizeResults]] = {
    "bfgs": _minimize_bfgs, L_BFGS: _minimize_lbfgs}

_export_all(globals())
