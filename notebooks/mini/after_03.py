"""JAX rebuilt small: derivatives and batches, in any nesting, over NumPy alone.

A `Primitive` is an operation, a row of rules. A `Trace` is a transformation at work: its tracers
stand for values, and its rules run in its parent. Names are those of minijax and of JAX.
"""

import functools
from typing import NamedTuple

import numpy as np


# ── Types ────────────────────────────────────────────────────────────────────────────────────────

class ShapedArray(NamedTuple):
    """The type of a value: what is known of it before its numbers are."""

    shape: tuple
    dtype: np.dtype

    def __str__(self):
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def get_aval(x):
    """The type of a value."""
    aval = getattr(x, "aval", None)
    return aval if isinstance(aval, ShapedArray) else ShapedArray(np.shape(x), np.result_type(x))


# ── Primitives and traces ────────────────────────────────────────────────────────────────────────

class Primitive:
    """An operation: a name, and a rule for each way to interpret it. Rules give lists."""

    def __init__(self, name, **rules):
        self.name = name
        self.__dict__.update(rules)

    def bind(self, *args, **params):
        """Apply it under the current trace, or the first around it that it concerns."""
        trace = current_trace
        while not trace.concerns(self, args, params):
            trace = trace.parent
        return run_with(trace.ground, trace.process_primitive, self, args, params)

    def rule(self, slot):
        """The rule in a slot."""
        if getattr(self, slot, None) is None:
            raise NotImplementedError(f"the primitive {self.name!r} has no rule {slot!r}")
        return getattr(self, slot)

    def __call__(self, *args, **params):
        """Its one result."""
        [out] = self.bind(*args, **params)
        return out


class Trace:
    """What happens to operations; this one takes all that come."""

    def __init__(self, parent=None):
        self.parent, self.ground = parent, self

    def owns(self, x):
        """Whether a value is one of its tracers."""
        return isinstance(x, Tracer) and x.trace is self

    def concerns(self, primitive, args, params):
        """Whether it processes the operation; if not, its parent is asked."""
        return True


class EvalTrace(Trace):
    """The last trace: it computes."""

    def process_primitive(self, primitive, args, params):
        """The results, which are numbers."""
        return primitive.rule("impl")(*args, **params)


current_trace = EvalTrace()


def run_with(trace, f, /, *args, **params):
    """Call f while this trace is the current one."""
    global current_trace
    before, current_trace = current_trace, trace
    try:
        return f(*args, **params)
    finally:
        current_trace = before


class RuleTrace(Trace):
    """Processes what has a tracer of its own, by rules that run in its parent."""

    def __init__(self, parent):
        self.parent = self.ground = parent

    def concerns(self, primitive, args, params):
        """Whether an argument is one of its tracers."""
        return any(map(self.owns, args))


class Tracer:
    """Stands for a value, and holds what its trace needs."""

    __array_ufunc__ = None  # NumPy's arrays leave the operators to us

    def __init__(self, trace, aval=None, **parts):
        self.trace, self.aval = trace, aval
        self.__dict__.update(parts)

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)

    def __neg__(self): return neg(self)
    def __add__(self, other): return add(self, other)
    def __sub__(self, other): return sub(self, other)
    def __rsub__(self, other): return sub(other, self)
    def __mul__(self, other): return mul(self, other)
    def __truediv__(self, other): return div(self, other)
    def __rtruediv__(self, other): return div(other, self)

    __radd__, __rmul__ = __add__, __mul__


# ── Forward derivatives ──────────────────────────────────────────────────────────────────────────

class Zero:
    """A tangent that is zero: nobody has computed it, and nobody needs to."""


zero = Zero()


class JVPTrace(RuleTrace):
    """Carries a tangent beside each primal that moves."""

    def join(self, x, t):
        """A primal and its tangent as one value."""
        return x if t is zero else Tracer(self, get_aval(x), primal=x, tangent=t)

    def split(self, x):
        """The primal and the tangent of a value."""
        return (x.primal, x.tangent) if self.owns(x) else (x, zero)

    def process_primitive(self, primitive, args, params):
        """The results, and their tangents, by the rule `jvp`."""
        primals, tangents = zip(*map(self.split, args))
        outs, out_tangents = primitive.rule("jvp")(primals, tangents, **params)
        return list(map(self.join, outs, out_tangents))


def jvp(f, primals, tangents):
    """f's value, and how fast it changes where its arguments change at these speeds."""
    trace = JVPTrace(current_trace)
    out, t = trace.split(run_with(trace, f, *map(trace.join, primals, tangents)))
    return out, 0.0 if t is zero else t


# ── Vectorising ──────────────────────────────────────────────────────────────────────────────────

class BatchTrace(RuleTrace):
    """Carries a whole batch, as if it were one example."""

    def batch(self, x):
        """The batch behind a value."""
        return x.batch if self.owns(x) else x

    def process_primitive(self, primitive, args, params):
        """Tracers of the results, for whole batches at once."""
        outs = primitive.bind(*map(self.batch, args), **params)
        return [Tracer(self, batch=y) for y in outs]


def vmap(f):
    """f, for a batch of arguments at once."""
    def batched(x):
        trace = BatchTrace(current_trace)
        return trace.batch(run_with(trace, f, Tracer(trace, batch=x)))
    return batched


# ── Operations ───────────────────────────────────────────────────────────────────────────────────

def with_slopes(name, impl, *slopes):
    """An operation whose tangent is a sum of one term for each argument."""
    def jvp(primals, tangents):
        y = primitive(*primals)
        terms = [slope(t, y, *primals) for slope, t in zip(slopes, tangents) if t is not zero]
        return [y], [functools.reduce(add, terms) if terms else zero]

    primitive = Primitive(name, impl=lambda *xs: [impl(*xs)], jvp=jvp)
    return primitive


def elementwise(name, impl, *slopes):
    """An operation, element by element."""
    return with_slopes(name, impl, *slopes)


neg = elementwise("neg", np.negative, lambda t, y, x: -t)
sin = elementwise("sin", np.sin, lambda t, y, x: t * cos(x))
cos = elementwise("cos", np.cos, lambda t, y, x: -t * sin(x))
exp = elementwise("exp", np.exp, lambda t, y, x: t * y)
log = elementwise("log", np.log, lambda t, y, x: t / x)
tanh = elementwise("tanh", np.tanh, lambda t, y, x: t * (1.0 - y * y))
add = elementwise("add", np.add, lambda t, z, x, y: t, lambda t, z, x, y: t)
sub = elementwise("sub", np.subtract, lambda t, z, x, y: t, lambda t, z, x, y: -t)
mul = elementwise("mul", np.multiply, lambda t, z, x, y: t * y, lambda t, z, x, y: x * t)
div = elementwise("div", np.divide, lambda t, z, x, y: t / y, lambda t, z, x, y: -t * z / y)
