"""Derivatives against finite differences: `check_grads`, `check_jvp`, `check_vjp`.

Builds on `derivatives`.  Chapter 10, *Your own rules*.  In JAX: `jax/test_util.py`.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes, tree_util, numpy as jnp
from minijax.transforms.derivatives import jvp, linearize, vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]

Tolerance = float | Mapping[Any, float] | None
STEP = 1e-4
_DTYPES = list(map(np.dtype, "bfloat16 float16 float32 complex64 float64 complex128".split()))
TOLERANCES = dict(zip(_DTYPES, (1e-1, 1e-2, 2e-3, 1e-3, 1e-5, 1e-5), strict=True))
TOLERANCES_OF_VALUES = dict(zip(_DTYPES, (1e-2, 1e-3, 1e-6, 1e-6, 1e-15, 1e-15), strict=True))


def check_jvp(f: Callable, f_jvp: Callable, args: Sequence[Any], atol: Tolerance = None,
              rtol: Tolerance = None, eps: float = STEP, err_msg: str = "") -> None:
    """Compare a forward derivative with finite differences, along one random direction.

    Args:
      f: a function of arrays and trees of arrays.
      f_jvp: ``(primals, tangents) -> (result, tangent)``, such as ``partial(jvp, f)``.
      args: the point.
      atol, rtol: absolute and relative tolerance: a number, or one for each dtype.
      eps: the step of the differences.
      err_msg: a prefix of the error's message.

    Raises:
      AssertionError: when they differ.

    >>> check_jvp(jnp.sin, functools.partial(jvp, jnp.sin), (1.0,))
    """
    direction = tree_util.tree_map(_Random(), tuple(args))
    result, slope = f_jvp(tuple(args), direction)
    _check(result, f(*args), atol, rtol, f"{err_msg} primal")
    _check(slope, _difference(f, args, direction, eps), atol, rtol, f"{err_msg} tangent")


def check_vjp(f: Callable, f_vjp: Callable, args: Sequence[Any], atol: Tolerance = None,
              rtol: Tolerance = None, eps: float = STEP, err_msg: str = "") -> None:
    """Compare a reverse derivative with finite differences, along one random direction.

    Args:
      f: a function of arrays and trees of arrays.
      f_vjp: ``(*primals) -> (result, pull)``, such as ``partial(vjp, f)``.
      args: the point.
      atol, rtol, eps, err_msg: as for `check_jvp`.

    Raises:
      AssertionError: when they differ.

    >>> check_vjp(jnp.sin, functools.partial(vjp, jnp.sin), (1.0,))
    """
    random = _Random()
    result, pull = f_vjp(*args)
    _check(result, f(*args), atol, rtol, f"{err_msg} primal")
    direction = tree_util.tree_map(random, tuple(args))
    slope = _difference(f, args, direction, eps)
    cotangent = tree_util.tree_map(random, result)
    gradients = tree_util.tree_map(_conj, pull(tree_util.tree_map(_conj, cotangent)))
    _check(_inner(direction, gradients), _inner(slope, cotangent), atol, rtol,
           f"{err_msg} cotangent projection")


def check_grads(f: Callable, args: Sequence[Any], order: int, modes: Sequence[str] = ("fwd", "rev"),
                atol: Tolerance = None, rtol: Tolerance = None, eps: float | None = None) -> None:
    """Compare derivatives up to an order with finite differences, along random directions.

    Args:
      f: a function of arrays and trees of arrays.
      args: the point.
      order: of the highest derivative.
      modes: ``"fwd"``, ``"rev"`` and ``"lin"``: by `jvp`, `vjp`, `linearize`.
      atol, rtol, eps: as for `check_jvp`.

    Raises:
      AssertionError: when they differ.

    >>> check_grads(jnp.sin, (1.0,), order=2)
    """
    options: dict[str, Any] = {"atol": atol, "rtol": rtol, "eps": eps or STEP}

    def linearized(f: Callable, primals: tuple, tangents: tuple) -> tuple:
        result, slope = linearize(f, *primals)
        return result, slope(*tangents)

    def gradient(f: Callable, *args: Any) -> Any:
        result, pull = vjp(f, *args)
        return pull(result)

    def check(f: Callable, args: tuple, order: int, where: str) -> None:
        for mode, derive, name in (("fwd", jvp, "JVP"), ("lin", linearized, "LIN"),
                                   ("rev", vjp, "VJP")):
            if mode in modes:
                message = f"{name} of {where}" if where else name
                is_reverse = mode == "rev"
                compare = check_vjp if is_reverse else check_jvp
                compare(f, functools.partial(derive, f), args, **options, err_msg=message)
                if order > 1:
                    check(functools.partial(gradient if is_reverse else derive, f),
                          args if is_reverse else (args, args), order - 1, message)
    check(f, tuple(args), order, "")


def check_close(xs: Any, ys: Any, atol: Tolerance = None, rtol: Tolerance = None,
                err_msg: str = "") -> None:
    """Compare two trees of arrays, up to the rounding of their dtypes.

    Args:
      xs, ys: the trees.
      atol, rtol, err_msg: as for `check_jvp`.

    Raises:
      AssertionError: when they differ.

    >>> check_close({"x": jnp.float32(1)}, {"x": jnp.float32(1.000001)})
    """
    def check(x: Any, y: Any) -> None:
        if np.shape(x) != np.shape(y):
            raise AssertionError(f"{err_msg} shapes {np.shape(x)} and {np.shape(y)}".strip())
        _check(x, y, atol, rtol, err_msg, TOLERANCES_OF_VALUES)
    tree_util.tree_map(check, xs, ys)


class _Random:
    """Random arrays of the types of others, the same for each instance."""

    def __init__(self) -> None:
        self.generator = np.random.RandomState(0)

    def __call__(self, x: Any) -> Any:
        aval = core.get_aval(x).to_tangent_aval()
        if aval.dtype == dtypes.float0:
            return np.zeros(aval.shape, aval.dtype)
        values = self.generator.randn(*aval.shape)
        if aval.dtype.kind == "c":
            values = values + 1j * self.generator.randn(*aval.shape)
        return jnp.asarray(values, aval.dtype)


def _difference(f: Callable, args: Sequence[Any], direction: tuple, eps: float) -> Any:
    def shifted(step: float) -> Any:
        return f(*tree_util.tree_map(lambda x, t: _shifted(x, t, step), tuple(args), direction))

    def slope(above: Any, below: Any) -> Any:
        if not dtypes.issubdtype(dtypes.dtype(above), np.inexact):
            return np.zeros(np.shape(above), dtypes.float0)
        return (above - below) * np.asarray(0.5 / eps, above.dtype)
    return tree_util.tree_map(slope, shifted(eps), shifted(-eps))


def _shifted(x: Any, t: Any, step: float) -> Any:
    return x if t.dtype == dtypes.float0 else x + t * jnp.asarray(step, t.dtype)


def _conj(x: Any) -> Any:
    return x if x.dtype == dtypes.float0 else jnp.conj(x)


def _inner(xs: Any, ys: Any) -> Any:
    pairs = zip(tree_util.tree_leaves(xs), tree_util.tree_leaves(ys), strict=True)
    return sum(np.real(np.vdot(x, y)) for x, y in pairs if x.dtype != dtypes.float0)


def _check(actual: Any, desired: Any, atol: Tolerance, rtol: Tolerance, err_msg: str,
           defaults: Mapping[Any, float] = TOLERANCES) -> None:
    for x, y in zip(tree_util.tree_leaves(actual), tree_util.tree_leaves(desired), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if x.dtype != dtypes.float0:
            limits = [max(_limit(v, tolerance, defaults) for v in (x, y))
                      for tolerance in (atol, rtol)]
            wide = [np.asarray(v, complex if v.dtype.kind == "c" else float) for v in (x, y)]
            np.testing.assert_allclose(wide[0], wide[1], limits[1] * x.size, limits[0] * x.size,
                                       err_msg=err_msg.strip())


def _limit(x: Any, tolerance: Tolerance, defaults: Mapping[Any, float]) -> float:
    if isinstance(tolerance, Mapping):
        by_dtype = {**defaults, **{np.dtype(key): value for key, value in tolerance.items()}}
        return by_dtype.get(x.dtype, 0.0)
    return defaults.get(x.dtype, 0.0) if tolerance is None else tolerance
