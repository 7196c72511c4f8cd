import numpy as np


class Primitive:
    """An operation: a name, and a rule for each way to interpret it. Rules give lists."""

    def __init__(self, name, **rules):
        self.name = name
        self.__dict__.update(rules)

    def bind(self, *args, **params):
        return current.process(self, args, params)

    def __call__(self, *args, **params):
        [out] = self.bind(*args, **params)
        return out


class EvalTrace:
    """The last trace: it computes."""

    def process(self, primitive, args, params):
        return primitive.impl(*args, **params)


current = EvalTrace()


def run_with(trace, f, /, *args, **params):
    """Call f while this trace is the current one."""
    global current
    before, current = current, trace
    try:
        return f(*args, **params)
    finally:
        current = before


class Trace:
    """Interprets operations on its own tracers, and leaves all others to its parent."""

    def __init__(self, parent):
        self.parent = parent

    def owns(self, x):
        return isinstance(x, Tracer) and x.trace is self

    def process(self, primitive, args, params):
        if any(map(self.owns, args)):
            return self.interpret(primitive, args, params)
        return run_with(self.parent, primitive.bind, *args, **params)


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


class JVPTrace(Trace):
    """Carries a tangent beside each primal that moves."""

    def join(self, x, t):
        return x if t is zero else Tracer(self, aval_of(x), primal=x, tangent=t)

    def split(self, x):
        return (x.primal, x.tangent) if self.owns(x) else (x, zero)

    def interpret(self, primitive, args, params):
        primals, tangents = zip(*map(self.split, args))
        outs, out_tangents = run_with(self.parent, primitive.jvp, primals, tangents, **params)
        return list(map(self.join, outs, out_tangents))


def jvp(f, primals, tangents):
    """f's value, and how fast it changes where its arguments change at these speeds."""
    trace = JVPTrace(current)
    out, t = trace.split(run_with(trace, f, *map(trace.join, primals, tangents)))
    return out, 0.0 if t is zero else t


class BatchTrace(Trace):
    """Carries a whole batch, as if it were one example."""

    def batch(self, x):
        return x.batch if self.owns(x) else x

    def interpret(self, primitive, args, params):
        outs = run_with(self.parent, primitive.bind, *map(self.batch, args), **params)
        return [Tracer(self, batch=y) for y in outs]


def vmap(f):
    """f, for a batch of arguments at once."""
    def batched(x):
        trace = BatchTrace(current)
        return trace.batch(run_with(trace, f, Tracer(trace, batch=x)))
    return batched


from typing import NamedTuple


class ShapedArray(NamedTuple):
    """The type of a value: what is known of it before its numbers are."""

    shape: tuple
    dtype: np.dtype

    def __str__(self):
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def aval_of(x):
    return x.aval if isinstance(x, Tracer) else ShapedArray(np.shape(x), np.result_type(x))


import functools


class Zero:
    """A tangent that is zero: nobody has computed it, and nobody needs to."""


zero = Zero()


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
