"""Ordinary differential equations, by the Dormand-Prince method with adaptive steps.

The derivative solves the adjoint equation backwards in time, and saves no step.
Builds on `numpy`, `lax`, `custom`.  In JAX: `jax/experimental/ode.py`.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minijax import config, core, lax, numpy as jnp, tree_util
from minijax.transforms import api, derivatives
from minijax.core import Array
from minijax.custom_derivatives import closure_convert, custom_vjp
from minijax.flatten_util import ravel_pytree

# A step computes the slope at seven stages: at these fractions of the step, from sums of earlier
# slopes with these weights.  The last stage is the end of the step, of fifth order.
TIMES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
WEIGHTS = np.array([
    [1 / 5, 0, 0, 0, 0, 0, 0],
    [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
    [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0]])
# Weights of the error, the end minus the end of fourth order, and of the middle of the step.
ERROR = WEIGHTS[-1] - np.array([
    1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60])
MIDDLE = np.array([
    6025192743 / 30085553152, 0, 51252292925 / 65400821598, -2691868925 / 45128329728,
    187940372067 / 1594534317056, -1776094331 / 19743644256, 11237099 / 235043384]) / 2
# The polynomial of fourth order with the slopes at both ends, through both ends and the middle.
QUARTIC = np.array([[-2, 2, -8, -8, 16], [5, -3, 18, 14, -32], [-4, 1, -11, -5, 16],
                    [1, 0, 0, 0, 0], [0, 0, 1, 0, 0]])


def odeint(func: Callable, y0: Any, t: Array, *args: Any, rtol: float = 1.4e-8,
           atol: float = 1.4e-8, mxstep: float = np.inf, hmax: float = np.inf) -> Any:
    """The solution of ``dy/dt = func(y, t, *args)`` with the value `y0` at the first of the times.

    >>> odeint(lambda y, t: -y, jnp.array([1.]), jnp.array([0., 1.]), rtol=1e-5).round(1)
    Array([[1. ],
           [0.4]], dtype=float32)

    Args:
      func: the slope: of the tree, shapes and dtypes of `y0`.
      y0: an array, or a tree of arrays.
      t: (n,) floats that grow: the times of the solution.
      args: arrays and trees of arrays; derivatives by them, `y0` and `t` are reverse ones.
      rtol, atol: the relative and the absolute tolerance of the error of a step.
      mxstep: the largest number of steps from one of the times to the next.
      hmax: the largest length of a step.

    Returns:
      The tree of `y0`, whose arrays have a new leading axis of size n.

    Raises:
      TypeError: when `y0`, `t` or `args` are not what they should be.
    """
    tree_util.tree_map(lambda arg: core.as_value_or_raise(arg, lambda: (
        f"The contents of odeint *args must be arrays or scalars, but got {arg}.")), args)
    if not jnp.issubdtype(t.dtype, jnp.floating):
        raise TypeError(f"t must be an array of floats, but got {t}.")
    dtype = ravel_pytree(y0)[0].dtype
    if not jnp.issubdtype(dtype, jnp.inexact):
        raise TypeError("y0 must have floating-point numbers, to which steps can be added, but is "
                        f"of {dtype}.")
    converted, consts = closure_convert(func, y0, t[0], *args)
    return _odeint(converted, Limits(rtol, atol, mxstep, hmax), y0, t, *args, *consts)


class Limits(NamedTuple):
    """The limits of errors and steps among the arguments of `odeint`."""

    rtol: float
    atol: float
    mxstep: float
    hmax: float


class State(NamedTuple):
    """The state of the solver: the solution, its slope, the next step, and the last step."""

    count: Any
    y: Any
    slope: Any
    t: Any
    step: Any
    last_t: Any
    quartic: Any  # (5, …): the solution from last_t to t, of the fraction of that time


@api.jit(static_argnums=(0, 1))
def _odeint(func: Callable, limits: Limits, y0: Any, ts: Array, *args: Any) -> Any:
    flat, unravel = ravel_pytree(y0)

    def slope(y: Array, t: Array, *args: Any) -> Array:
        return ravel_pytree(func(unravel(y), t, *args))[0]
    with config.default_matmul_precision("highest"):
        return api.vmap(unravel)(_solution(slope, limits, flat, ts, *args))


# ── The solver ───────────────────────────────────────────────────────────────────────────────

@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def _solution(func: Callable, limits: Limits, y0: Array, ts: Array, *args: Any) -> Array:
    """The solution at all times: (n, size of y)."""
    def slope(y: Any, t: Any) -> Any:
        return func(y, t, *args)

    def advance_to(state: State, target: Any) -> tuple[State, Any]:
        state = lax.while_loop(
            lambda s: (s.t < target) & (s.count < limits.mxstep) & (s.step > 0),
            lambda s: _dormand_prince_step(slope, limits, s), state._replace(count=0))
        fraction = (target - state.last_t) / (state.t - state.last_t)
        return state, jnp.polyval(state.quartic, fraction.astype(y0.dtype))
    first = slope(y0, ts[0])
    step: Any = jnp.clip(_initial_step(slope, limits, ts[0], y0, first), 0., limits.hmax)
    state = State(0, y0, first, ts[0], step, ts[0], jnp.stack([y0] * 5))
    _, ys = lax.scan(advance_to, state, ts[1:])
    return jnp.concatenate([y0[None], ys])


def _dormand_prince_step(slope: Callable, limits: Limits, s: State) -> State:
    """The state after a step, or that before with a shorter next step if the error is too large."""
    dtype, step = s.y.dtype, s.step.astype(s.y.dtype)
    stages, end = [s.slope], s.y
    for time, weights in zip(TIMES, WEIGHTS, strict=True):
        slopes = jnp.stack(stages)
        end = s.y + step * jnp.dot(jnp.array(weights[:len(stages)], dtype), slopes)
        stages.append(slope(end, s.t + s.step * jnp.array(time, s.step.dtype)))
    k = jnp.stack(stages)
    error, middle = (step * jnp.dot(jnp.array(w, dtype), k) for w in (ERROR, MIDDLE))
    tolerance: Any = limits.atol + limits.rtol * jnp.maximum(abs(s.y), abs(end))
    error = error / tolerance.astype(dtype)
    ratio = jnp.sqrt(jnp.mean(jnp.real(error * jnp.conj(error))))
    ends = jnp.stack([step * k[0], step * k[-1], s.y, end, s.y + middle])
    quartic = jnp.dot(jnp.array(QUARTIC, dtype), ends)
    following = jnp.clip(_next_step(s.step, ratio), 0., limits.hmax)
    after = State(s.count + 1, end, k[-1], s.t + s.step, following, s.t, quartic)
    before = s._replace(count=s.count + 1, step=following)
    return tree_util.tree_map(functools.partial(jnp.where, ratio <= 1), after, before)


def _next_step(step: Array, ratio: Array) -> Array:
    """The step whose error of fifth order would just be within the tolerance; bounded changes."""
    least = jnp.where(ratio < 1, 1., 0.2)
    factor = jnp.minimum(10., jnp.maximum(ratio ** -0.2 * 0.9, least))
    return jnp.where(ratio == 0, step * 10., step * factor)


def _initial_step(slope: Callable, limits: Limits, t0: Array, y0: Array, first: Array) -> Array:
    """A first guess of the step, by Hairer, Nørsett and Wanner, *Solving ODEs I*, II.4."""
    scale = (limits.atol + abs(y0) * limits.rtol).astype(y0.dtype)
    y_norm, slope_norm = jnp.linalg.norm(y0 / scale), jnp.linalg.norm(first / scale)
    trial = jnp.where((y_norm < 1e-5) | (slope_norm < 1e-5), 1e-6, 0.01 * y_norm / slope_norm)
    later = slope(y0 + trial.astype(y0.dtype) * first, t0 + trial)
    curvature = jnp.linalg.norm((later - first) / scale) / trial
    step = jnp.where((slope_norm <= 1e-15) & (curvature <= 1e-15), jnp.maximum(1e-6, trial * 1e-3),
                     (0.01 / jnp.maximum(slope_norm, curvature)) ** 0.2)
    return jnp.minimum(100. * trial, step)


# ── The adjoint ──────────────────────────────────────────────────────────────────────────────

def _forward(func: Callable, limits: Limits, y0: Array, ts: Array, *args: Any) -> tuple:
    ys = _solution(func, limits, y0, ts, *args)
    return ys, (ys, ts, args)


def _backward(func: Callable, limits: Limits, residuals: tuple, g: Array) -> tuple:
    """Solve the adjoint equation: the solution and the cotangents, backwards from the last time."""
    ys, ts, args = residuals

    def reversed_slope(state: tuple, minus_t: Array, *args: Any) -> tuple:
        y, y_bar, _, _ = state
        slope, pull_back = derivatives.vjp(func, y, -minus_t, *args)
        y_bar, t_bar, *args_bar = pull_back(y_bar)
        return -slope, y_bar, t_bar, tuple(args_bar)

    def back_to_previous(carry: tuple, i: Array) -> tuple:
        y_bar, t0_bar, args_bar = carry
        t_bar = jnp.real(jnp.dot(func(ys[i], ts[i], *args), g[i]))
        state = ys[i], y_bar, t0_bar - t_bar, args_bar
        solved = odeint(reversed_slope, state, jnp.stack([-ts[i], -ts[i - 1]]), *args,
                        **limits._asdict())
        _, y_bar, t0_bar, args_bar = tree_util.tree_map(lambda x: x[1], solved)
        return (y_bar + g[i - 1], t0_bar, args_bar), t_bar
    start = g[-1], jnp.zeros((), ts.dtype), tree_util.tree_map(jnp.zeros_like, args)
    (y_bar, t0_bar, args_bar), ts_bar = lax.scan(
        back_to_previous, start, jnp.arange(len(ts) - 1, 0, -1))
    return y_bar, jnp.concatenate([t0_bar[None], ts_bar[::-1]]), *args_bar


_solution.defvjp(_forward, _backward)
