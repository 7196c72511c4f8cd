"""JAX in 400 lines of code: derivatives both ways, batches and programs, over NumPy alone.

    grad(lambda x: sum(sin(x) * x))(np.array([0.0, 1.0]))

A `Primitive` is an operation, a row of rules. A `Trace` is a transformation at work: its tracers
stand for values, and its rules run in its parent. A `Jaxpr` is what a function does, written down.
Reverse derivatives are forward ones, written down and run backwards. Names are those of minijax
and of JAX.
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
    def __gt__(self, other): return greater(self, other)
    def __lt__(self, other): return greater(other, self)

    def __bool__(self):
        """Whether it is true, which nobody knows."""
        raise TypeError(f"only the type of this value is known, {self.aval}: use where or cond")

    __radd__, __rmul__ = __add__, __mul__


# ── Trees ────────────────────────────────────────────────────────────────────────────────────────

class PyTreeDef(NamedTuple):
    """How a nest is put together, without its leaves."""

    kind: type
    data: object = None
    children: tuple = ()


LEAF = PyTreeDef(object)
registry = {  # for each container: how it comes apart, into children and data, and together
    tuple: (lambda x: (x, None), lambda _, children: tuple(children)),
    list: (lambda x: (x, None), lambda _, children: list(children)),
    dict: (lambda x: ([x[k] for k in sorted(x)], tuple(sorted(x))),
           lambda keys, children: dict(zip(keys, children))),
    type(None): (lambda x: ((), None), lambda _, children: None),
}


def unzip(pairs):
    """Two lists from pairs."""
    return [*map(list, zip(*pairs))] or [[], []]


def tree_flatten(x):
    """The leaves of a nest, and how it is put together."""
    if type(x) not in registry:
        return [x], LEAF
    children, data = registry[type(x)][0](x)
    leaves, trees = unzip(map(tree_flatten, children))
    return [leaf for part in leaves for leaf in part], PyTreeDef(type(x), data, tuple(trees))


def tree_unflatten(tree, leaves):
    """The nest with these leaves."""
    leaves = iter(leaves)

    def build(tree):
        if tree is LEAF:
            return next(leaves)
        return registry[tree.kind][1](tree.data, [build(child) for child in tree.children])
    return build(tree)


def flat_function(f, in_tree):
    """f from leaves to leaves; and a function that tells the output's tree afterwards."""
    trees = []

    def flat(*leaves):
        outs, tree = tree_flatten(f(*tree_unflatten(in_tree, leaves)))
        trees.append(tree)
        return outs
    return flat, lambda: trees[-1]


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


def jvp_flat(f, primals, tangents):
    """Outputs and their tangents, of a function of arrays that gives a list."""
    trace = JVPTrace(current_trace)
    outs = run_with(trace, f, *map(trace.join, primals, tangents))
    return unzip(map(trace.split, outs))


def jvp(f, primals, tangents):
    """f's value, and how fast it changes where its arguments change at these speeds."""
    flat, in_tree = tree_flatten(primals)
    g, out_tree = flat_function(f, in_tree)
    outs, ts = jvp_flat(g, flat, tree_flatten(tangents)[0])
    ts = map(instantiate, ts, map(get_aval, outs))
    return tree_unflatten(out_tree(), outs), tree_unflatten(out_tree(), ts)


def instantiate(t, aval):
    """A tangent as an array."""
    return np.zeros(aval.shape, aval.dtype) if t is zero else t


# ── Vectorising ──────────────────────────────────────────────────────────────────────────────────

class Axis(NamedTuple):
    """The axis of a batch."""

    size: int


class BatchTrace(RuleTrace):
    """Carries whole batches, and where their axis is."""

    def __init__(self, parent, axis):
        super().__init__(parent)
        self.axis = axis

    def join(self, x, dim):
        """A batch, and where its axis is, as one example."""
        if dim is None:
            return x
        shape, dtype = get_aval(x)
        dim = dim % len(shape)  # -1 is the last axis
        return Tracer(self, ShapedArray(shape[:dim] + shape[dim + 1:], dtype), batch=x, dim=dim)

    def split(self, x):
        """The batch behind a value, and where its axis is."""
        return (x.batch, x.dim) if self.owns(x) else (x, None)

    def process_primitive(self, primitive, args, params):
        """The results for all examples, by the rule `batch`."""
        values, dims = zip(*map(self.split, args))
        outs, out_dims = primitive.rule("batch")(self.axis, values, dims, **params)
        return list(map(self.join, outs, out_dims))


def mapped_size(args, dims):
    """How many examples there are, along the axes that are mapped."""
    sizes = [np.shape(x)[dim] for x, dim in zip(args, dims) if dim is not None]
    if len(set(sizes)) != 1:
        raise ValueError(f"vmap maps over axes of one size, and those given have the sizes {sizes}")
    return sizes[0]


def vmap_flat(f, axis, args, dims):
    """Outputs with their batch in front, of a function of arrays that gives a list."""
    trace = BatchTrace(current_trace, axis)
    outs = run_with(trace, f, *map(trace.join, args, dims))
    return [bdim_at_front(*trace.split(x), axis.size) for x in outs]


def vmap(f, in_axes=0):
    """f for many examples at once, which lie along these axes of its arguments."""
    def batched(*args):
        flat, in_tree = tree_flatten(args)
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        dims = [axis for axis, x in zip(axes, args) for _ in tree_flatten(x)[0]]
        g, out_tree = flat_function(f, in_tree)
        outs = vmap_flat(g, Axis(mapped_size(flat, dims)), flat, dims)
        return tree_unflatten(out_tree(), outs)
    return batched


def bdim_at_front(x, dim, size):
    """A batch with its axis in front; what is the same for all is repeated."""
    shape = np.shape(x)
    if dim is None:
        return broadcast(x, (size, *shape))
    return transpose(x, (dim, *(k for k in range(len(shape)) if k != dim))) if dim else x


def batch_in_front(rule):
    """A rule for batches anywhere, from one that takes and gives all of them in front."""
    def batch(axis, values, dims, **params):
        values = [bdim_at_front(x, dim, axis.size) for x, dim in zip(values, dims)]
        outs = rule(axis, values, **params)
        return outs, [0] * len(outs)
    return batch


# ── Programs ─────────────────────────────────────────────────────────────────────────────────────

class Var:
    """A name for a value."""

    def __init__(self, aval):
        self.aval = aval


class Literal:
    """A value that is known."""

    def __init__(self, value):
        self.value, self.aval = value, get_aval(value)


class JaxprEqn(NamedTuple):
    """outvars = primitive[params] invars"""

    invars: tuple
    outvars: tuple
    primitive: Primitive
    params: dict


class Jaxpr:
    """A program: its inputs, its outputs, and the equations between, in order."""

    def __init__(self, invars, outvars, eqns):
        self.invars, self.outvars, self.eqns = tuple(invars), tuple(outvars), tuple(eqns)
        self.in_avals = [v.aval for v in self.invars]
        self.out_avals = [v.aval for v in self.outvars]

    def __repr__(self):
        return "{…}"

    def __str__(self):
        names = {}

        def name(v):
            if isinstance(v, Literal):
                return str(v.value) if np.ndim(v.value) == 0 else "[…]"
            letter, number = "abcdefghijklmnopqrstuvwxyz"[len(names) % 26], len(names) // 26
            return names.setdefault(v, letter + str(number or ""))

        def typed(vs):
            return " ".join(f"{name(v)}:{v.aval}" for v in vs)

        lines = [f"{{ {typed(self.invars)}"]
        for eqn in self.eqns:
            params = ", ".join(f"{k}={v!r}" for k, v in eqn.params.items())
            lines.append(f"    {typed(eqn.outvars)} = {eqn.primitive.name}[{params}] "
                         f"{' '.join(map(name, eqn.invars))}")
        return "\n".join([*lines, f"  return {' '.join(map(name, self.outvars))} }}"])


class DynamicJaxprTrace(Trace):
    """Writes operations down, and computes nothing."""

    def __init__(self, parent):
        super().__init__(parent)
        self.eqns, self.consts = [], {}

    def new_arg(self, aval):
        """A tracer for a new variable."""
        return Tracer(self, aval, var=Var(aval))

    def atom(self, x):
        """A variable of this program: of its own, or for a value that a trace outside holds."""
        if not isinstance(x, Tracer):
            return Literal(x)
        if self.owns(x):
            return x.var
        return self.consts.setdefault(id(x), (Var(x.aval), x))[0]

    def process_primitive(self, primitive, args, params):
        """Tracers for the results of a new equation."""
        invars = tuple(map(self.atom, args))
        outs = [self.new_arg(aval) for aval in type_of(primitive, map(get_aval, args), params)]
        self.eqns.append(JaxprEqn(invars, tuple(x.var for x in outs), primitive, params))
        return outs

    def program(self, args, outs):
        """What was written and is read; and its constants, which are its first inputs."""
        outvars = tuple(map(self.atom, outs))
        read, kept = set(outvars), []
        for eqn in reversed(self.eqns):
            if not read.isdisjoint(eqn.outvars):
                kept.append(eqn)
                read.update(eqn.invars)
        constvars, consts = unzip((v, x) for v, x in self.consts.values() if v in read)
        return Jaxpr([*constvars, *(x.var for x in args)], outvars, kept[::-1]), consts


def type_of(primitive, avals, params):
    """The types of an operation's results: as they come out of one run."""
    outs = primitive.rule("impl")(*(np.ones(a.shape, a.dtype) for a in avals), **params)
    return list(map(get_aval, outs))


def stage(f, avals):
    """The program of a function of arrays; and its constants, which are its first inputs."""
    trace = DynamicJaxprTrace(current_trace)
    args = list(map(trace.new_arg, avals))
    return trace.program(args, run_with(trace, f, *args))


def make_jaxpr(f):
    """The function that returns the program of f, for arguments like its own."""
    def made(*args):
        flat, in_tree = tree_flatten(args)
        return stage(flat_function(f, in_tree)[0], map(get_aval, flat))[0]
    return made


def eval_jaxpr(jaxpr, *args):
    """Run a program, operation by operation, under the current trace."""
    values = dict(zip(jaxpr.invars, args))

    def read(atom):
        return atom.value if isinstance(atom, Literal) else values[atom]

    for eqn in jaxpr.eqns:
        values.update(zip(eqn.outvars, eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)))
    return list(map(read, jaxpr.outvars))


# ── Reverse derivatives ──────────────────────────────────────────────────────────────────────────

class SplitTrace(DynamicJaxprTrace):
    """Writes down what mentions an unknown; all else runs in the parent."""

    concerns = RuleTrace.concerns


def is_float(x):
    """Whether a value can move."""
    return np.issubdtype(get_aval(x).dtype, np.floating)


def linearize_flat(f, primals):
    """Outputs; their derivative, a program of tangents, with its constants; which of them move."""
    trace = SplitTrace(current_trace)
    tangents = [trace.new_arg(get_aval(x)) if is_float(x) else zero for x in primals]
    outs, out_tangents = run_with(trace, jvp_flat, f, primals, tangents)
    moving = [t is not zero for t in out_tangents]
    jaxpr, consts = trace.program([t for t in tangents if t is not zero],
                                  [t for t in out_tangents if t is not zero])
    return outs, jaxpr, consts, moving


class Undefined(NamedTuple):
    """An argument that an operation is linear in, while it runs backwards."""

    aval: ShapedArray


def backward_pass(jaxpr, args, cotangents):
    """The cotangents of the arguments that are Undefined, in which the program is linear."""
    values, sums = dict(zip(jaxpr.invars, args)), {}

    def read(atom):
        return atom.value if isinstance(atom, Literal) else values[atom]

    def give(atom, ct):
        if isinstance(read(atom), Undefined) and ct is not zero:
            sums[atom] = add(sums[atom], ct) if atom in sums else ct

    linear_eqns = []
    for eqn in jaxpr.eqns:
        operands = list(map(read, eqn.invars))
        if any(isinstance(x, Undefined) for x in operands):
            linear_eqns.append(eqn)
            values.update((v, Undefined(v.aval)) for v in eqn.outvars)
        else:
            values.update(zip(eqn.outvars, eqn.primitive.bind(*operands, **eqn.params)))
    for atom, ct in zip(jaxpr.outvars, cotangents):
        give(atom, ct)
    for eqn in reversed(linear_eqns):
        cts = [sums.get(v, zero) for v in eqn.outvars]
        if any(ct is not zero for ct in cts):
            in_cts = eqn.primitive.rule("transpose")(cts, *map(read, eqn.invars), **eqn.params)
            for atom, ct in zip(eqn.invars, in_cts):
                give(atom, ct)
    return [sums.get(v, zero) for v in jaxpr.invars]


def vjp(f, *args):
    """f's result, and the function from a cotangent of it to those of the arguments."""
    flat, in_tree = tree_flatten(args)
    g, out_tree = flat_function(f, in_tree)
    outs, jaxpr, consts, moving = linearize_flat(g, flat)

    def back(cotangents):
        cts = [ct for ct, moves in zip(tree_flatten(cotangents)[0], moving) if moves]
        unknown = [Undefined(aval) for aval in jaxpr.in_avals[len(consts):]]
        in_cts = iter(backward_pass(jaxpr, [*consts, *unknown], cts)[len(consts):])
        return tree_unflatten(in_tree, [
            instantiate(next(in_cts), get_aval(x)) if is_float(x) else None for x in flat])
    return tree_unflatten(out_tree(), outs), back


def value_and_grad(f):
    """f's value, and its gradient with regard to the first argument."""
    def both(x, *rest):
        out, back = vjp(lambda x: f(x, *rest), x)
        if np.shape(out) != ():
            raise TypeError(f"a gradient is of one number, not of {get_aval(out)}")
        return out, back(1.0)[0]
    return both


def grad(f):
    """f's gradient with regard to the first argument."""
    return lambda *args: value_and_grad(f)(*args)[1]


# ── Operations ───────────────────────────────────────────────────────────────────────────────────

def with_slopes(name, impl, *slopes, **rules):
    """An operation whose tangent is a sum of one term for each argument."""
    def jvp(primals, tangents):
        y = primitive(*primals)
        terms = [slope(t, y, *primals) for slope, t in zip(slopes, tangents) if t is not zero]
        return [y], [functools.reduce(add, terms) if terms else zero]

    primitive = Primitive(name, impl=lambda *xs: [impl(*xs)], jvp=jvp, **rules,
                          batch=batch_in_front(lambda axis, values: primitive.bind(*values)))
    return primitive


def elementwise(name, impl, *slopes, **rules):
    """An operation, element by element, on what is first stretched to one shape."""
    def stretching(*args):
        shape = np.broadcast_shapes(*map(np.shape, args))
        return primitive(*(broadcast(x, shape) for x in args))

    primitive = with_slopes(name, impl, *slopes, **rules)
    return stretching


sin = elementwise("sin", np.sin, lambda t, y, x: t * cos(x))
cos = elementwise("cos", np.cos, lambda t, y, x: -t * sin(x))
exp = elementwise("exp", np.exp, lambda t, y, x: t * y)
log = elementwise("log", np.log, lambda t, y, x: t / x)
tanh = elementwise("tanh", np.tanh, lambda t, y, x: t * (1.0 - y * y))


def linear(name, impl, batch, back):
    """A linear operation on one array; a tangent goes the same way, and a cotangent back."""
    primitive = Primitive(
        name, impl=lambda x, **params: [impl(np.asarray(x), **params)],
        jvp=lambda xs, ts, **params: ([primitive(*xs, **params)], [primitive(*ts, **params)]),
        transpose=lambda cts, x, **params: [back(cts[0], x.aval.shape, **params)],
        batch=batch_in_front(
            lambda axis, xs, **params: [primitive(*xs, **batch(axis.size, **params))]))
    return primitive


def expanded(x, shape, axes):
    """x repeated to a shape, in which its own axes stand at the places in axes."""
    return np.broadcast_to(np.expand_dims(x, others(axes, len(shape))), shape)


def others(axes, n):
    """Those of n axes that are not among these."""
    return tuple(k for k in range(n) if k not in axes)


def shifted(axes):
    """The same axes, with one more in front."""
    return (0, *(k + 1 for k in axes))


def transpose(x, axes):
    """x with its axes in another order."""
    return transpose_p(x, axes=tuple(axes))


def reshape(x, shape):
    """The same elements in another shape."""
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


def sum(x, axis=None):
    """The sum along an axis, along several, or of all elements."""
    n = len(np.shape(x))
    axes = range(n) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return sum_p(x, axes=tuple(k % n for k in axes))


def dot(x, y):
    """The product of a matrix and a matrix or a vector."""
    if len(np.shape(y)) > 1:
        return dot_p(x, y)
    return reshape(dot_p(x, reshape(y, (*np.shape(y), 1))), np.shape(x)[:-1])


greater = elementwise("greater", np.greater)


def transposed(*rules):
    """The transpose of an operation that is linear in each of some arguments."""
    def transpose(cotangents, *args, **params):
        [ct] = cotangents
        return [rule(ct, *args, **params) if isinstance(x, Undefined) else None
                for rule, x in zip(rules, args)]
    return transpose


neg = elementwise("neg", np.negative, lambda t, y, x: -t, transpose=transposed(lambda ct, x: -ct))
add = elementwise("add", np.add, lambda t, z, x, y: t, lambda t, z, x, y: t,
                  transpose=transposed(lambda ct, x, y: ct, lambda ct, x, y: ct))
sub = elementwise("sub", np.subtract, lambda t, z, x, y: t, lambda t, z, x, y: -t,
                  transpose=transposed(lambda ct, x, y: ct, lambda ct, x, y: -ct))
mul = elementwise("mul", np.multiply, lambda t, z, x, y: t * y, lambda t, z, x, y: x * t,
                  transpose=transposed(lambda ct, x, y: ct * y, lambda ct, x, y: x * ct))
div = elementwise("div", np.divide, lambda t, z, x, y: t / y, lambda t, z, x, y: -t * z / y,
                  transpose=transposed(lambda ct, x, y: ct / y, None))
where = elementwise("where", np.where, None, lambda t, z, c, x, y: where(c, t, 0.0),
                    lambda t, z, c, x, y: where(c, 0.0, t),
                    transpose=transposed(None, lambda ct, c, x, y: where(c, ct, 0.0),
                                         lambda ct, c, x, y: where(c, 0.0, ct)))
broadcast_p = linear("broadcast", expanded, lambda n, shape, axes: {
    "shape": (n, *shape), "axes": shifted(axes)}, lambda ct, before, shape, axes: sum(
        ct, others(axes, len(shape))))
transpose_p = linear("transpose", np.transpose, lambda n, axes: {"axes": shifted(axes)},
                     lambda ct, before, axes: transpose(ct, np.argsort(axes).tolist()))
reshape_p = linear("reshape", np.reshape, lambda n, shape: {"shape": (n, *shape)},
                   lambda ct, before, shape: reshape(ct, before))
sum_p = linear("sum", lambda x, axes: np.sum(x, axis=axes),
               lambda n, axes: {"axes": shifted(axes)[1:]},
               lambda ct, before, axes: broadcast_p(
                   ct, shape=before, axes=others(axes, len(before))))


def turned(x):
    """Matrices, each with rows and columns exchanged."""
    n = len(np.shape(x))
    return transpose(x, (*range(n - 2), n - 1, n - 2))


dot_p = with_slopes("dot", np.matmul, lambda t, z, x, y: dot_p(t, y),
                    lambda t, z, x, y: dot_p(x, t),
                    transpose=transposed(lambda ct, x, y: dot_p(ct, turned(y)),
                                         lambda ct, x, y: dot_p(turned(x), ct)))
