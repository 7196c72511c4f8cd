"""Taylor mode: the derivatives of a function along a curve, to any order.

``y = f(x)`` has the derivative ``y' = Df(x) x'``, a function of two curves, so the JVP rule of a
primitive yields its derivatives of all orders.  A rule in its slot `jet` is faster.
Builds on `core`, `transforms`.  In JAX: `jax/experimental/jet.py`.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from minijax import core, dtypes, lax, numpy as jnp, tree_util
from minijax.util import source_info
from minijax.core import Array, Params, Primitive, ShapedArray, Trace, Zero
from minijax.transforms.arguments import flattened
from minijax.core.jaxpr import ClosedJaxpr, cached_on_jaxpr, jaxpr_as_fun
from minijax.core.tracing import check_arg, run_flat, stage


def jet(fun: Callable, primals: Sequence[Any], series: Sequence[Sequence[Any]],
        factorial_scaled: bool = True, **_: Any) -> tuple[Any, Any]:
    """The value of a function at a point of a curve, and its derivatives along the curve.

    >>> value, derivatives = jet(lambda x: x ** 3, (2.,), ((1., 0., 0.),))
    >>> float(value), [float(d) for d in derivatives]
    (8.0, [12.0, 12.0, 6.0])

    Args:
      fun: a function of arrays, which may return a tree of them.
      primals: the point: an array of floats for each argument.
      series: for each argument, the first, second, … derivative of the curve, of its shape.
      factorial_scaled: whether the terms of `series` and of the result are derivatives; otherwise
        they are Taylor coefficients, the n-th derivatives divided by ``n!``.

    Returns:
      The function's value, and in the same tree the list of its derivatives.

    Raises:
      ValueError: when arguments have series of different lengths, or are trees.
      TypeError: for an argument that is not made of floats.
      RuleNotImplementedError: where an operation has no derivative.
    """
    lengths = set(map(len, series))
    if len(lengths) != 1:
        raise ValueError("jet terms have inconsistent lengths for different arguments")
    [order] = lengths
    for i, (x, terms) in enumerate(zip(primals, series, strict=False)):
        if not tree_util.all_leaves([x]):
            raise ValueError(f"primal value at position {i} is not an array")
        for j, term in enumerate(terms):
            if not tree_util.all_leaves([term]):
                raise ValueError(f"term {j} for argument {i} is not an array")
        if not has_derivatives(core.get_aval(x)) and core.get_aval(x).dtype != bool:
            raise TypeError(f"jet requires floating-point arguments, but argument {i} has the "
                            f"dtype {core.get_aval(x).dtype}. Convert it, or close over it.")
    flat, leaves = flattened(fun, tuple(primals), "jet")
    values = [check_arg(x) for x in leaves]
    factors = [1. if factorial_scaled else float(math.factorial(n + 1)) for n in range(order)]
    input_derivatives = [
        [Zero(value.aval.to_tangent_aval())] * order if value.dtype == bool else
        [_as_derivative(value, t) * f for t, f in zip(terms, factors, strict=True)]
        for value, terms in zip(values, series, strict=False)]
    outs, derivatives = core.leaving_no_tracer(jet_flat)(
        flat, values, input_derivatives, order, flat.debug_info)
    returned = [[t / f if f != 1 else t for t, f in zip(terms, factors, strict=True)]
                for terms in derivatives]
    tree = tree_util.tree_structure(flat.result(outs))
    return flat.result(outs), tree_util.tree_unflatten(tree, returned)


def _as_derivative(value: Array, term: Any) -> Array:
    """A term of a series as an array of the value's dtype."""
    if jnp.shape(term) != value.shape:
        raise ValueError(f"a term has shape {jnp.shape(term)}, but its argument has shape "
                         f"{value.shape}; they must be equal.")
    term = jnp.asarray(term)
    return term if term.dtype == value.dtype else term.astype(value.dtype)  # weak if it was


def fact(n: Any) -> Array:
    """The factorial of a number, as an array.

    >>> round(float(fact(4)), 3)
    24.0
    """
    return jnp.exp(lax.lgamma(n + 1.))


class ZeroSeries:
    """The class of `zero_series`."""


# JAX: the derivatives of a constant inside of `jet`, which are instances of `Zero` here.
zero_series = ZeroSeries()


# ── Curves ───────────────────────────────────────────────────────────────────────────────────

class Curve:
    """A point of a curve and its derivatives there, each computed on first use.

    Args:
      value: the point.
      derivative: the n-th from n, an array or `Zero`; None where the curve is one point.
    """

    def __init__(self, value: Any, derivative: Callable[[int], Any] | None = None):
        self.terms: list[Any] = [value]
        self.derivative = derivative or (lambda n: Zero(value.aval.to_tangent_aval()))

    def __getitem__(self, n: int) -> Any:
        while len(self.terms) <= n:
            self.terms.append(self.derivative(len(self.terms)))
        return self.terms[n]

    def slope(self) -> "Curve":
        """Its first derivative, as a curve."""
        return Curve(core.instantiate(self[1]), lambda n: self[n + 1])


def has_derivatives(aval: ShapedArray) -> bool:
    return aval.to_tangent_aval().dtype != dtypes.float0


class JetTracer(core.Tracer):
    """A point with its curve."""

    __slots__ = ("curve",)

    def __init__(self, trace: "JetTrace", curve: Curve):
        super().__init__(trace, curve[0].aval)
        self.curve = curve

    def _concrete(self) -> core.ArrayImpl | None:
        return self.curve[0]._concrete()


class JetTrace(core.RuleTrace):
    """Runs operations on curves. `order`: of the derivatives that inner programs compute."""

    def __init__(self, parent: Trace, order: int, debug_info: source_info.DebugInfo | None = None):
        super().__init__(core.Level(parent, debug_info), parent)
        self.order = order

    def join(self, curve: Curve) -> Array:
        return JetTracer(self, curve) if has_derivatives(curve[0].aval) else curve[0]

    def split(self, x: Any) -> Curve:
        return x.curve if self.owns(x) else Curve(x)

    def below(self, f: Callable, *args: Any, **params: Any) -> Any:
        return core.run_with(self.parent, f, *args, **params)

    def process_primitive(self, primitive: Primitive, args: Sequence, params: Params) -> list:
        rule = series_rule if primitive.jet else program_rule if primitive.extend else jvp_rule
        return rule(self, primitive, args, params)


def jet_flat(fun: Callable[..., Sequence[Any]], values: Sequence[Array],
             series: Sequence[Sequence[Any] | None], order: int,
             debug_info: source_info.DebugInfo | None = None) -> tuple[list[Array], list[list]]:
    """Values and derivatives of a function of flat arguments; None: the argument is constant."""
    trace = JetTrace(core.current_trace.get(), order, debug_info)
    args = [x if terms is None else trace.join(_curve(x, terms))
            for x, terms in zip(values, series, strict=True)]
    curves = list(map(trace.split, run_flat(trace, fun, args)))
    return [c[0] for c in curves], [[_term(c, n + 1) for n in range(order)] for c in curves]


def _curve(value: Array, terms: Sequence[Any]) -> Curve:
    # rules may read derivatives of a higher order, on which no result depends
    zero = Zero(value.aval.to_tangent_aval())
    return Curve(value, lambda n: terms[n - 1] if n <= len(terms) else zero)


def _term(curve: Curve, n: int) -> Array:
    if has_derivatives(curve[0].aval):
        return core.instantiate(curve[n])
    return jnp.zeros(curve[0].shape)


# ── Rules: from curves to curves ─────────────────────────────────────────────────────────────

def jvp_rule(trace: JetTrace, primitive: Primitive, args: Sequence, params: Params) -> list:
    """The slope of an output is the tangent of it, for the slopes of the inputs as tangents."""
    curves = [trace.split(x) for x in args]
    outs = trace.below(primitive.bind_list, *(c[0] for c in curves), **params)
    jvp = primitive.rule("jvp")  # where there is none, the error has the user's line

    @functools.cache
    def slopes() -> list[Curve]:
        tangents = [trace.join(c.slope()) if trace.owns(x) else Zero(x.aval.to_tangent_aval())
                    for x, c in zip(args, curves, strict=True)]
        _, out_tangents = core.run_with(trace, jvp, list(args), tangents, **params)
        return [trace.split(t) for t in out_tangents]

    def output(i: int, x: Array) -> Array:
        return trace.join(Curve(x, lambda n: slopes()[i][n - 1]))
    return [output(i, x) for i, x in enumerate(outs)]


def series_rule(trace: JetTrace, primitive: Primitive, args: Sequence, params: Params) -> list:
    """The rule of a primitive that has one for each derivative in turn."""
    curves = list(map(trace.split, args))
    out = Curve(trace.below(primitive.bind, *(c[0] for c in curves), **params),
                lambda n: trace.below(primitive.jet, n, out, *curves, **params))
    return [trace.join(out)]


# ── Inner programs: derivatives follow all values ────────────────────────────────────────────

@cached_on_jaxpr
def jet_jaxpr(closed: ClosedJaxpr, order: int) -> ClosedJaxpr:
    """From [inputs, derivatives of those that are floats] to [outputs, derivatives likewise]."""
    avals = [a.to_tangent_aval() for a in closed.in_avals if has_derivatives(a)]

    def with_derivatives(*args: Array) -> list[Array]:
        inputs = iter(args)
        values = [next(inputs) for _ in closed.in_avals]
        series = [[next(inputs) for _ in range(order)] if has_derivatives(x.aval) else None
                  for x in values]
        outs, out_series = jet_flat(jaxpr_as_fun(closed), values, series, order)
        return [*outs, *(t for x, ts in zip(outs, out_series, strict=True)
                         if has_derivatives(x.aval) for t in ts)]
    return stage(with_derivatives, [*closed.in_avals, *(a for a in avals for _ in range(order))],
                 closed.jaxpr.debug_info)


def program_rule(trace: JetTrace, primitive: Primitive, args: Sequence, params: Params) -> list:
    """The rule of a primitive with programs inside, which compute derivatives, too."""
    def count(aval: ShapedArray) -> int:
        return trace.order if has_derivatives(aval) else 0
    primitive, args, params = core.run_with(trace, primitive.staged, args, params)
    curves = list(map(trace.split, args))
    values = [c[0] for c in curves]
    derivatives = [[core.instantiate(c[n + 1]) for n in range(count(c[0].aval))] for c in curves]
    outs = iter(trace.below(primitive.extend, lambda closed: jet_jaxpr(closed, trace.order), count,
                            values, derivatives, **params))
    results = [next(outs) for _ in primitive.type_of([x.aval for x in values], params)]
    return [trace.join(_curve(x, [next(outs) for _ in range(count(x.aval))])) for x in results]
