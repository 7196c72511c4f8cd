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


sin = Primitive("sin", impl=lambda x: [np.sin(x)])
cos = Primitive("cos", impl=lambda x: [np.cos(x)])
mul = Primitive("mul", impl=lambda x, y: [np.multiply(x, y)])


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

    def __init__(self, trace, **parts):
        self.trace = trace
        self.__dict__.update(parts)


class JVPTrace(Trace):
    """Carries a tangent beside each primal."""

    def split(self, x):
        return (x.primal, x.tangent) if self.owns(x) else (x, 0.0)

    def interpret(self, primitive, args, params):
        primals, tangents = zip(*map(self.split, args))
        outs, out_tangents = run_with(self.parent, primitive.jvp, primals, tangents, **params)
        return [Tracer(self, primal=x, tangent=t) for x, t in zip(outs, out_tangents)]


def jvp(f, primals, tangents):
    """f's value, and how fast it changes where its arguments change at these speeds."""
    trace = JVPTrace(current)
    args = [Tracer(trace, primal=x, tangent=t) for x, t in zip(primals, tangents)]
    return trace.split(run_with(trace, f, *args))


sin.jvp = lambda xs, ts: ([sin(xs[0])], [mul(cos(xs[0]), ts[0])])
cos.jvp = lambda xs, ts: ([cos(xs[0])], [mul(-1.0, mul(sin(xs[0]), ts[0]))])
mul.jvp = lambda xs, ts: ([mul(*xs)], [add(mul(ts[0], xs[1]), mul(xs[0], ts[1]))])


add = Primitive("add", impl=lambda x, y: [np.add(x, y)],
                jvp=lambda xs, ts: ([add(*xs)], [add(*ts)]))


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
