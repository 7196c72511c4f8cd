"""JAX rebuilt small: derivatives and batches, in any nesting, over NumPy alone.

A `Primitive` is an operation, a row of rules. A `Trace` is a transformation at work: its tracers
stand for values, and its rules run in its parent. Names are those of minijax and of JAX.
"""

import numpy as np


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

    def __init__(self, trace, **parts):
        self.trace = trace
        self.__dict__.update(parts)


# ── Forward derivatives ──────────────────────────────────────────────────────────────────────────

class JVPTrace(RuleTrace):
    """Carries a tangent beside each primal."""

    def split(self, x):
        """The primal and the tangent of a value."""
        return (x.primal, x.tangent) if self.owns(x) else (x, 0.0)

    def process_primitive(self, primitive, args, params):
        """Tracers of the results, by the rule `jvp`."""
        primals, tangents = zip(*map(self.split, args))
        outs, out_tangents = primitive.rule("jvp")(primals, tangents, **params)
        return [Tracer(self, primal=x, tangent=t) for x, t in zip(outs, out_tangents)]


def jvp(f, primals, tangents):
    """f's value, and how fast it changes where its arguments change at these speeds."""
    trace = JVPTrace(current_trace)
    args = [Tracer(trace, primal=x, tangent=t) for x, t in zip(primals, tangents)]
    return trace.split(run_with(trace, f, *args))


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

sin = Primitive("sin", impl=lambda x: [np.sin(x)])
cos = Primitive("cos", impl=lambda x: [np.cos(x)])
mul = Primitive("mul", impl=lambda x, y: [np.multiply(x, y)])
sin.jvp = lambda xs, ts: ([sin(xs[0])], [mul(cos(xs[0]), ts[0])])
cos.jvp = lambda xs, ts: ([cos(xs[0])], [mul(-1.0, mul(sin(xs[0]), ts[0]))])
mul.jvp = lambda xs, ts: ([mul(*xs)], [add(mul(ts[0], xs[1]), mul(xs[0], ts[1]))])
add = Primitive("add", impl=lambda x, y: [np.add(x, y)],
                jvp=lambda xs, ts: ([add(*xs)], [add(*ts)]))
