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
    """Carries whole batches, and where their axis is."""

    def __init__(self, parent, axis):
        super().__init__(parent)
        self.axis = axis

    def join(self, x, dim):
        if dim is None:
            return x
        shape, dtype = aval_of(x)
        return Tracer(self, ShapedArray(shape[:dim] + shape[dim + 1:], dtype), batch=x, dim=dim)

    def split(self, x):
        return (x.batch, x.dim) if self.owns(x) else (x, None)

    def interpret(self, primitive, args, params):
        values, dims = zip(*map(self.split, args))
        outs, out_dims = run_with(self.parent, primitive.batch, self.axis, values, dims, **params)
        return list(map(self.join, outs, out_dims))


def vmap(f, in_axes=0):
    """f for many examples at once, which lie along these axes of its arguments."""
    def batched(*args):
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        [size] = {np.shape(x)[axis] for x, axis in zip(args, axes) if axis is not None}
        trace = BatchTrace(current, Axis(size))
        out = run_with(trace, f, *map(trace.join, args, axes))
        return in_front(*trace.split(out), size)
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


def with_slopes(name, impl, *slopes, **rules):
    """An operation whose tangent is a sum of one term for each argument."""
    def jvp(primals, tangents):
        y = primitive(*primals)
        terms = [slope(t, y, *primals) for slope, t in zip(slopes, tangents) if t is not zero]
        return [y], [functools.reduce(add, terms) if terms else zero]

    def batch(axis, values, dims):
        return primitive.bind(*(in_front(x, d, axis.size) for x, d in zip(values, dims))), [0]

    primitive = Primitive(name, impl=lambda *xs: [impl(*xs)], jvp=jvp, batch=batch, **rules)
    return primitive


def elementwise(name, impl, *slopes, **rules):
    """An operation, element by element, on what is first stretched to one shape."""
    def stretching(*args):
        shape = np.broadcast_shapes(*map(np.shape, args))
        return primitive(*(broadcast(x, shape) for x in args))

    primitive = with_slopes(name, impl, *slopes, **rules)
    return stretching


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


class Axis(NamedTuple):
    """The axis of a batch."""

    size: int


def in_front(x, dim, size):
    """A batch with its axis in front; what is the same for all is repeated."""
    shape = np.shape(x)
    if dim is None:
        return broadcast(x, (size, *shape))
    return transpose(x, (dim, *(k for k in range(len(shape)) if k != dim))) if dim else x


def linear(name, impl, batch):
    """A linear operation on one array; a tangent goes the same way."""
    def batched(axis, values, dims, **params):
        x = in_front(values[0], dims[0], axis.size)
        return [primitive(x, **batch(axis.size, **params))], [0]

    def jvp(primals, tangents, **params):
        [x], [t] = primals, tangents
        return [primitive(x, **params)], [zero if t is zero else primitive(t, **params)]

    primitive = Primitive(name, impl=lambda x, **params: [impl(np.asarray(x), **params)],
                          batch=batched, jvp=jvp)
    return primitive


def expanded(x, shape, axes):
    """x repeated to a shape, in which its own axes stand at the places in axes."""
    return np.broadcast_to(np.expand_dims(x, others(axes, len(shape))), shape)


def others(axes, n):
    """Those of n axes that are not among these."""
    return tuple(k for k in range(n) if k not in axes)


def shifted(axes):
    return (0, *(k + 1 for k in axes))


broadcast_p = linear("broadcast", expanded, lambda n, shape, axes: {
    "shape": (n, *shape), "axes": shifted(axes)})


transpose_p = linear("transpose", np.transpose, lambda n, axes: {"axes": shifted(axes)})
reshape_p = linear("reshape", np.reshape, lambda n, shape: {"shape": (n, *shape)})


def transpose(x, axes):
    return transpose_p(x, axes=tuple(axes))


def reshape(x, shape):
    return x if np.shape(x) == tuple(shape) else reshape_p(x, shape=tuple(shape))


def broadcast(x, shape):
    """x repeated to a shape, by NumPy's rules: axes of size 1 stretch, new ones come in front."""
    before, shape = np.shape(x), tuple(shape)
    if before == shape:
        return x
    new = len(shape) - len(before)
    kept = [k for k, n in enumerate(before) if n == shape[k + new]]
    return broadcast_p(reshape(x, [before[k] for k in kept]), shape=shape,
                       axes=tuple(k + new for k in kept))


sum_p = linear("sum", lambda x, axes: np.sum(x, axis=axes),
               lambda n, axes: {"axes": shifted(axes)[1:]})


dot_p = with_slopes("dot", np.matmul, lambda t, z, x, y: dot_p(t, y),
                    lambda t, z, x, y: dot_p(x, t))


def sum(x, axis=None):
    n = len(np.shape(x))
    axes = range(n) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return sum_p(x, axes=tuple(k % n for k in axes))


def dot(x, y):
    """The product of a matrix and a matrix or a vector."""
    if len(np.shape(y)) > 1:
        return dot_p(x, y)
    return reshape(dot_p(x, reshape(y, (*np.shape(y), 1))), np.shape(x)[:-1])
