"""`minijax.scipy.optimize`: a minimum of a function of vectors, by quasi-Newton steps (BFGS).

After J. Nocedal and S. J. Wright, Numerical Optimization (1999): algorithms 3.5, 3.6 and 8.1.
Builds on `gradients`, `lax.while_loop`.  In JAX: `jax/_src/scipy/optimize/`.
"""

from __future__ import annotations

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
    status: Any  # 0: it is; 1: too many steps; 3, 5: no step goes down; -1: not decided
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
    >>> result.x.round(3), bool(result.success)
    (Array([3., 3.], dtype=float32), True)

    Args:
      fun: takes x and `args`, and gives a number.
      x0: where to begin, of shape (n,).
      method: "BFGS".
      tol: how large the gradient may be at a minimum; `gtol` of the options by default.
      options: `gtol`, `norm` (by which the gradient is measured), `maxiter`,
        `line_search_maxiter`.

    Raises:
      TypeError: where `args` is no tuple.
      ValueError: for other methods, and for an x0 that is no vector.
    """
    if not isinstance(args, tuple):
        raise TypeError("args argument to jax.scipy.optimize.minimize must be a tuple, "
                        f"got {args}")
    if method.lower() != "bfgs":
        raise ValueError(f"Method {method} not recognized. Use BFGS.")
    x = jnp.asarray(x0)
    if x.ndim != 1:
        raise ValueError(f"x0 must be a vector, got shape {x.shape}. Flatten it, for example with "
                         "jax.flatten_util.ravel_pytree.")
    defaults = {} if tol is None else {"gtol": tol}  # JAX: ignores it
    return _minimize_bfgs(lambda x: fun(x, *args), x, **{**defaults, **(options or {})})


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
    return lax.while_loop(
        lambda search: ~search.is_good & (search.status == 0), iteration,
        _Search(start, nowhere, nowhere, jnp.array(1), jnp.array(0), jnp.array(False),
                jnp.array(0)))


# ── Quasi-Newton steps ───────────────────────────────────────────────────────────────────────

class _Descent(NamedTuple):
    """The state of `_minimize_bfgs`."""

    x: Any
    value: Any
    gradient: Any
    inverse: Any  # of the Hessian, approximately
    decrease: Any  # of the value, in the last step
    steps: Any
    calls: Any
    status: Any


def _minimize_bfgs(fun: Callable, x0: Array, maxiter: int | None = None, norm: Any = np.inf,
                   gtol: float = 1e-5, line_search_maxiter: int = 10) -> OptimizeResults:
    max_steps = 200 * x0.size if maxiter is None else maxiter
    value_and_gradient = value_and_grad(fun)

    def status_of(gradient: Any, search_status: Any = 0) -> Any:
        failed = jnp.where(search_status == 0, -1, search_status + 2)
        return jnp.where(jnp.linalg.norm(gradient, ord=norm) < gtol, 0, failed)

    def step(state: _Descent) -> _Descent:
        direction = -(state.inverse @ state.gradient)

        def point_at(length: Any) -> _Point:
            value, gradient = value_and_gradient(state.x + length * direction)
            return _Point(length, value, gradient @ direction, gradient)
        slope = state.gradient @ direction
        search = _line_search(
            point_at, _Point(jnp.zeros_like(slope), state.value, slope, state.gradient),
            jnp.minimum(1, 2.02 * state.decrease / -slope), line_search_maxiter)
        point = search.low
        s, y = point.step * direction, point.gradient - state.gradient
        rho, shear = 1 / (y @ s), jnp.eye(x0.size, dtype=x0.dtype) - jnp.outer(s, y) / (y @ s)
        inverse = jnp.where(jnp.isfinite(rho), shear @ state.inverse @ shear.T
                            + rho * jnp.outer(s, s), state.inverse)
        return _Descent(state.x + s, point.value, point.gradient, inverse,
                        state.value - point.value, state.steps + 1, state.calls + search.count,
                        status_of(point.gradient, search.status))
    value, gradient = value_and_gradient(x0)
    final = lax.while_loop(
        lambda state: (state.status == -1) & (state.steps < max_steps), step,
        _Descent(x0, value, gradient, jnp.eye(x0.size, dtype=x0.dtype),
                 jnp.linalg.norm(gradient) / 2, jnp.array(0), jnp.array(1), status_of(gradient)))
    status = jnp.where((final.status != 0) & (final.steps >= max_steps), 1, final.status)
    return OptimizeResults(final.x, final.status == 0, status, final.value, final.gradient,
                           final.inverse, final.calls, final.calls, final.steps)


_export_all(globals())
