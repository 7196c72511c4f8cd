"""JAX rebuilt small: derivatives both ways, batches, programs and `jit`, in any nesting.

    jit(grad(lambda x: sum(sin(x) * x)))(np.array([0.0, 1.0]))

A `Primitive` is an operation, a row of rules. A `Trace` is a transformation at work: its tracers
stand for values, and its rules run in its parent. A `Jaxpr` is what a function does, written down:
for the way back, to be transformed again, and to become fused loops, which Numba compiles. Names
are those of minijax and of JAX.
"""

import functools
import math
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
    """The types of an operation's results: said by it, or as they come out of one run."""
    if hasattr(primitive, "abstract_eval"):
        return primitive.abstract_eval(*avals, **params)
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


# ── Programs as parameters ───────────────────────────────────────────────────────────────────────

def floats(avals):
    """Which types are those of floats."""
    return [np.issubdtype(a.dtype, np.floating) for a in avals]


def only(chosen, xs):
    """Those that are chosen."""
    return [x for c, x in zip(chosen, xs) if c]


def merge(chosen, yes, no):
    """One list again: the next of yes where chosen, else the next of no."""
    yes, no = iter(yes), iter(no)
    return [next(yes) if c else next(no) for c in chosen]


def pieces(xs, *counts):
    """A list cut into lists of these lengths."""
    xs = iter(xs)
    return [[next(xs) for _ in range(count)] for count in counts]


@functools.lru_cache(None)
def jvp_jaxpr(jaxpr):
    """From inputs and the tangents of the floats among them, to the tangents of the outputs."""
    moving = floats(jaxpr.in_avals)

    def f(*args):
        primals, ts = pieces(args, len(moving), moving.count(True))
        _, ts = jvp_flat(functools.partial(eval_jaxpr, jaxpr), primals,
                         merge(moving, ts, [zero] * len(moving)))
        return only(floats(jaxpr.out_avals), map(instantiate, ts, jaxpr.out_avals))

    return stage(f, jaxpr.in_avals + only(moving, jaxpr.in_avals))[0]


def on_batches(f, axis):
    """f, which takes arrays and gives a list, of batches, all of them in front."""
    return lambda *args: vmap_flat(f, axis, args, [0] * len(args))


@functools.lru_cache(None)
def batch_jaxpr(jaxpr, axis):
    """From batches of the inputs to batches of the outputs, all of them in front."""
    avals = [ShapedArray((axis.size, *a.shape), a.dtype) for a in jaxpr.in_avals]
    return stage(on_batches(functools.partial(eval_jaxpr, jaxpr), axis), avals)[0]


@functools.lru_cache(None)
def transpose_jaxpr(jaxpr, linear):
    """From the other inputs and all cotangents, to those of the inputs it is linear in."""
    known = [not lin for lin in linear]

    def f(*args):
        values, cts = pieces(args, known.count(True), len(jaxpr.outvars))
        values = merge(known, values, map(Undefined, only(linear, jaxpr.in_avals)))
        in_cts = backward_pass(jaxpr, values, cts)
        return only(linear, map(instantiate, in_cts, jaxpr.in_avals))

    return stage(f, only(known, jaxpr.in_avals) + jaxpr.out_avals)[0]


def running_one_of(name, impl, first=0):
    """A primitive that runs one of its programs: each transformation transforms them all.

    The first arguments say which; the others are those of the programs.
    """
    def jvp(primals, tangents, programs):
        avals = programs[0].in_avals
        ts = only(floats(avals), map(instantiate, tangents[first:], avals))
        outs = primitive.bind(*primals, programs=programs)
        ts = primitive.bind(*primals, *ts, programs=tuple(map(jvp_jaxpr, programs)))
        return outs, merge(floats(programs[0].out_avals), ts, [zero] * len(outs))

    def batch(axis, values, dims, programs):
        args = [bdim_at_front(x, d, axis.size) for x, d in zip(values[first:], dims[first:])]
        programs = tuple(batch_jaxpr(jaxpr, axis) for jaxpr in programs)
        if all(d is None for d in dims[:first]):
            outs = primitive.bind(*values[:first], *args, programs=programs)
        else:
            outs = chosen(values[0], *(eval_jaxpr(jaxpr, *args) for jaxpr in programs))
        return outs, [0] * len(outs)

    def transpose(cts, *args, programs):
        which, args = args[:first], args[first:]
        linear = tuple(isinstance(x, Undefined) for x in args)
        outs = primitive.bind(*which, *only([not lin for lin in linear], args),
                              *map(instantiate, cts, programs[0].out_avals),
                              programs=tuple(transpose_jaxpr(p, linear) for p in programs))
        return [None] * first + merge(linear, outs, [None] * len(args))

    primitive = Primitive(name, impl=impl, jvp=jvp, batch=batch, transpose=transpose,
                          abstract_eval=lambda *avals, programs: programs[0].out_avals)
    return primitive


# ── Loops as text ────────────────────────────────────────────────────────────────────────────────

class Page:
    """The lines of a Python function, while they are written."""

    def __init__(self, functions):
        self.functions, self.lines, self.count, self.values = functions, [], 0, {}

    def fresh(self):
        """A name that is new."""
        self.count += 1
        return f"v{self.count}"

    def named(self, v, name):
        """The name, by which a variable is known from now on."""
        self.values[v] = name
        return name

    def emit(self, line, depth=0):
        """Write a line, in so many loops."""
        self.lines.append("    " * (depth + 1) + line)

    def loop(self, shape, statement):
        """Loops over all places in an array of a shape, around one statement."""
        at = [self.fresh() for _ in shape]
        for k, (i, n) in enumerate(zip(at, shape)):
            self.emit(f"for {i} in range({n}):", k)
        self.emit(statement(at), len(shape))


def place(name, at):
    """The text of one element of an array."""
    return f"{name}[{', '.join(at) or '()'}]"


TEXT = {  # an element of the result, from elements in the same place
    "neg": "-{0}", "add": "({0} + {1})", "sub": "({0} - {1})", "mul": "({0} * {1})",
    "div": "({0} / {1})", "sin": "math.sin({0})", "cos": "math.cos({0})", "exp": "math.exp({0})",
    "log": "math.log({0})", "tanh": "math.tanh({0})", "greater": "({0} > {1})",
    "where": "({1} if {0} else {2})",
}
SOURCE = {  # the place in the operand, from the place in the result
    "broadcast": lambda at, shape, axes: [at[k] for k in axes],
    "transpose": lambda at, axes: [at[axes.index(k)] for k in range(len(axes))],
}


def recipe(name, parts, params):
    """From a place to the text of that element of a result; parts are such functions, too."""
    if name in SOURCE:
        return lambda at: parts[0](SOURCE[name](at, **params))
    if name not in TEXT:
        raise NotImplementedError(f"no text for an element of {name!r}, in TEXT, SOURCE or LOOPS")
    return lambda at: TEXT[name].format(*(part(at) for part in parts))


class Values(Page):
    """Finds, besides, an element of any variable, or an array that holds it."""

    def element(self, atom):
        """From a place to the text of that element."""
        value = self.values.get(atom) or self.constant(atom)
        return value if callable(value) else lambda at: place(value, at)

    def constant(self, literal):
        """A recipe for a number; the name of an array."""
        if np.ndim(literal.value) == 0:
            return lambda at: repr(np.asarray(literal.value).item())
        name = f"c{len(self.functions)}"
        self.functions[name] = np.ascontiguousarray(literal.value)
        return name

    def array(self, atom):
        """The name of an array; if need be, its elements are computed now."""
        value = self.values.get(atom)
        return value if isinstance(value, str) else self.stored(atom, self.element(atom))

    def stored(self, v, element):
        """A new array for a variable, and a loop that writes its elements."""
        name, kind = self.fresh(), {"bool": "bool_"}.get(str(v.aval.dtype), v.aval.dtype)
        self.emit(f"{name} = np.empty({v.aval.shape}, np.{kind})")
        if element:
            self.loop(v.aval.shape, lambda at: f"{place(name, at)} = {element(at)}")
        return self.named(v, name)


LOOPS = {}  # operations that are loops of their own: none yet


class Text(Values):
    """A program as the text of a Python function: loops, in which operations are fused."""

    def __init__(self, jaxpr, functions):
        super().__init__(functions)
        reads = [v for eqn in jaxpr.eqns for v in eqn.invars] + list(jaxpr.outvars)
        names = [self.named(v, self.fresh()) for v in jaxpr.invars]
        for eqn in jaxpr.eqns:
            name, out = eqn.primitive.name, eqn.outvars[0]
            if name in LOOPS:
                LOOPS[name](self, eqn, **eqn.params)
            else:
                self.values[out] = recipe(name, list(map(self.element, eqn.invars)), eqn.params)
                if reads.count(out) > 1:
                    self.array(out)
        outs = "".join(f"{self.array(v)}, " for v in jaxpr.outvars)
        self.text = "\n".join([f"def program({', '.join(names)}):", *self.lines,
                               f"    return ({outs})"])


def sum_loop(text, eqn, axes):
    """Add each element to its place in the result."""
    [x], [v] = eqn.invars, eqn.outvars
    part, total = text.element(x), text.stored(v, lambda at: "0")

    def statement(at):
        kept = [i for k, i in enumerate(at) if k not in axes]
        return f"{place(total, kept)} += {part(at)}"
    text.loop(x.aval.shape, statement)


def dot_loop(text, eqn):
    """Add each product of two elements to its place in the result."""
    [x, y], [v] = map(text.array, eqn.invars), eqn.outvars
    total = text.stored(v, lambda at: "0")
    *stack, n, m = v.aval.shape

    def statement(at):
        *s, i, k, j = at
        return (f"{place(total, [*s, i, j])} += {place(x, [*s, i, k])} * {place(y, [*s, k, j])}")
    text.loop([*stack, n, eqn.invars[0].aval.shape[-1], m], statement)


LOOPS.update(sum=sum_loop, dot=dot_loop)


def reshape_loop(text, eqn, shape):
    """The same memory, in another shape."""
    text.named(eqn.outvars[0], f"{text.array(eqn.invars[0])}.reshape({shape})")


def call_program(text, jaxpr, args, depth=0):
    """The text of a call; the names of its results."""
    name = f"f{len(text.functions)}"
    text.functions[name] = None  # taken: what is made next has functions, too
    text.functions[name] = compiled(Text(jaxpr, text.functions))
    outs = [text.fresh() for _ in jaxpr.outvars]
    text.emit(f"({''.join(f'{x}, ' for x in outs)}) = {name}({', '.join(args)})", depth)
    return outs


def call_loop(text, eqn, programs, **others):
    """The call of a program as a function of its own."""
    args = list(map(text.array, eqn.invars))
    text.values.update(zip(eqn.outvars, call_program(text, programs[0], args)))


LOOPS.update(reshape=reshape_loop, jit=call_loop)


# ── Compiling ────────────────────────────────────────────────────────────────────────────────────

def jit(f):
    """f as a program, written at the first call with arguments of a type."""
    programs = {}

    def jitted(*args):
        flat, in_tree = tree_flatten(args)
        key = in_tree, tuple(map(get_aval, flat))
        if key not in programs:
            g, out_tree = flat_function(f, in_tree)
            programs[key] = *stage(g, key[1]), out_tree()
        jaxpr, consts, tree = programs[key]
        return tree_unflatten(tree, jit_p.bind(*consts, *flat, programs=(jaxpr,)))
    return jitted


def njit(function, **options):
    """A function as machine code; where there is no Numba, as in a browser, as it is."""
    try:
        import numba
    except ModuleNotFoundError:
        return function
    return numba.njit(function, error_model="numpy", **options)


def compiled(text):
    """The function of a text, as machine code."""
    names = {"np": np, "math": math, **text.functions}
    exec(text.text, names)
    return njit(names["program"])


@functools.lru_cache(None)
def executable(jaxpr):
    """A program as machine code, made once."""
    return compiled(Text(jaxpr, {}))


def run_compiled(*args, programs):
    """What `jit` does with numbers."""
    args = [np.require(x, a.dtype, "CW") for x, a in zip(args, programs[0].in_avals)]
    return list(executable(programs[0])(*args))


jit_p = running_one_of("jit", run_compiled)


# ── Control flow ─────────────────────────────────────────────────────────────────────────────────

def aligned(one, two):
    """Two staged programs, made to take the constants of both first; and these."""
    (one, consts), (two, more) = one, two
    n, others_of = len(consts), lambda values: [Var(get_aval(x)) for x in values]
    one = Jaxpr([*one.invars[:n], *others_of(more), *one.invars[n:]], one.outvars, one.eqns)
    two = Jaxpr([*others_of(consts), *two.invars], two.outvars, two.eqns)
    return (one, two), consts + more


def cond(which, if_true, if_false, *args):
    """if_true(*args) or if_false(*args)."""
    flat, in_tree = tree_flatten(args)
    fs, trees = unzip(flat_function(f, in_tree) for f in (if_true, if_false))
    programs, consts = aligned(*(stage(f, list(map(get_aval, flat))) for f in fs))
    types = [(tree(), program.out_avals) for tree, program in zip(trees, programs)]
    if types[0] != types[1]:
        raise TypeError(f"the branches give different types: {types[0]} and {types[1]}")
    return tree_unflatten(trees[0](), cond_p.bind(which, *consts, *flat, programs=programs))


def chosen(which, yes, no):
    """For each example of a batch, what it has chosen of two lists of results."""
    def rows(x):
        return reshape(which, (*np.shape(which), *(1,) * (len(np.shape(x)) - 1)))
    return [where(rows(x), x, y) for x, y in zip(yes, no)]


cond_p = running_one_of("cond", lambda which, *args, programs: eval_jaxpr(
    programs[0 if which else 1], *args), first=1)


def while_loop(test, body, start):
    """body of body of … start, for as long as test says so."""
    flat, in_tree = tree_flatten((start,))
    avals = list(map(get_aval, flat))
    (test, body), consts = aligned(*(
        stage(flat_function(f, in_tree)[0], avals) for f in (test, body)))
    if body.out_avals != avals:
        raise TypeError(f"the body takes {avals} and gives {body.out_avals}")
    n = len(consts)
    body = Jaxpr(body.invars, body.invars[:n] + body.outvars, body.eqns)
    return tree_unflatten(in_tree, while_p.bind(*consts, *flat, test=test, body=body)[n:])[0]


def while_impl(*carry, test, body):
    """The loop, in Python."""
    while eval_jaxpr(test, *carry)[0]:
        carry = eval_jaxpr(body, *carry)
    return list(carry)


def while_jvp(primals, tangents, test, body):
    """A loop in which tangents go round, too."""
    n, moving = len(primals), floats(body.in_avals)
    args = [*primals, *only(moving, map(instantiate, tangents, body.in_avals))]
    avals = list(map(get_aval, args))

    def both(*args):
        return eval_jaxpr(body, *args[:n]) + eval_jaxpr(jvp_jaxpr(body), *args)

    outs = while_p.bind(*args, body=stage(both, avals)[0], test=stage(
        lambda *args: eval_jaxpr(test, *args[:n]), avals)[0])
    return outs[:n], merge(moving, outs[n:], [zero] * n)


def while_batch(axis, values, test, body):
    """A loop that goes on while any example does; the others stay as they are."""
    test, body = (batch_jaxpr(program, axis) for program in (test, body))

    def any_goes_on(*carry):
        return [sum(where(eval_jaxpr(test, *carry)[0], 1.0, 0.0)) > 0.0]

    def step(*carry):
        return chosen(eval_jaxpr(test, *carry)[0], eval_jaxpr(body, *carry), carry)

    return while_p.bind(*values, test=stage(any_goes_on, body.in_avals)[0],
                        body=stage(step, body.in_avals)[0])


while_p = Primitive("while", impl=while_impl, jvp=while_jvp, batch=batch_in_front(while_batch),
                    abstract_eval=lambda *avals, test, body: body.out_avals)


def scan(f, init, xs):
    """A loop over the rows of xs, from (carry, x) to (carry, y): the last carry, and all y."""
    flat, in_tree = tree_flatten((init, xs))
    n, avals = len(tree_flatten(init)[0]), list(map(get_aval, flat))
    rows = [ShapedArray(a.shape[1:], a.dtype) for a in avals[n:]]
    g, out_tree = flat_function(f, in_tree)
    body, consts = stage(g, avals[:n] + rows)
    outs = scan_p.bind(*consts, *flat, body=body, length=avals[n].shape[0], reverse=False,
                       consts=len(consts), carries=n)
    return tree_unflatten(out_tree(), outs)


def scan_impl(*args, body, length, reverse, consts, carries):
    """The loop, in Python."""
    fixed, carry, xs = args[:consts], list(args[consts:consts + carries]), args[consts + carries:]
    ys = [np.empty((length, *a.shape), a.dtype) for a in body.out_avals[carries:]]
    for k in reversed(range(length)) if reverse else range(length):
        outs = eval_jaxpr(body, *fixed, *carry, *(x[k] for x in xs))
        carry = outs[:carries]
        for y, row in zip(ys, outs[carries:]):
            y[k] = row
    return carry + ys


def scan_types(*avals, body, length, carries, **how):
    """The types of the last carry, and of the rows put together."""
    return body.out_avals[:carries] + [ShapedArray((length, *a.shape), a.dtype)
                                       for a in body.out_avals[carries:]]


def rows_first(x):
    """The first two axes exchanged."""
    return transpose(x, (1, 0, *range(2, len(np.shape(x)))))


def scan_batch(axis, values, dims, body, consts, carries, **how):
    """A loop over rows of batches."""
    values = [bdim_at_front(x, d, axis.size) for x, d in zip(values, dims)]
    end = consts + carries
    outs = scan_p.bind(*values[:end], *map(rows_first, values[end:]), consts=consts,
                       carries=carries, body=batch_jaxpr(body, axis), **how)
    return outs, [0] * carries + [1] * (len(outs) - carries)


def scan_jvp(primals, tangents, body, consts, carries, **how):
    """Two loops: of the values, which keeps its carries, and of the tangents."""
    end, floating = consts + carries, floats(body.in_avals)
    # The loop of values, which gives the carry that came into each round, too.
    keeping = Jaxpr(body.invars, body.outvars + body.invars[consts:end], body.eqns)
    outs = scan_p.bind(*primals, body=keeping, consts=consts, carries=carries, **how)
    outs, history = outs[:len(body.outvars)], outs[len(body.outvars):]
    # The tangents: which go round, and which are rows.
    tangents = [instantiate(t, get_aval(x)) for x, t in zip(primals, tangents)]
    ts, xts = only(floating[:end], tangents), only(floating[end:], tangents[end:])
    # A round of tangents: what is fixed, what goes round, rows.
    program, n = jvp_jaxpr(body), floating[:consts].count(True)
    fixed, kept, rows, moving, row_ts = pieces(program.invars, consts, carries,
                                               len(primals) - end, len(ts), len(xts))
    program = Jaxpr(fixed + moving + kept + rows + row_ts, (*moving[:n], *program.outvars),
                    program.eqns)
    # The loop of tangents.
    ts = scan_p.bind(*primals[:consts], *ts, *history, *primals[end:], *xts, body=program,
                     consts=consts, carries=len(ts), **how)
    return outs, merge(floats(body.out_avals), ts[n:], [zero] * len(outs))


def scan_transpose(cts, *args, body, length, reverse, consts, carries):
    """A loop of cotangents, from the other end."""
    # All of the carry is linear: a known zero at its start is a tangent, too.
    linear = tuple(k >= consts and (k < consts + carries or isinstance(x, Undefined))
                   for k, x in enumerate(args))
    known = only([not lin for lin in linear], args)
    cts = list(map(instantiate, cts, scan_types(body=body, length=length, carries=carries)))
    # A round back: what is fixed, what goes round, rows.
    program = transpose_jaxpr(body, linear)
    fixed, rows, carry, row_cts = pieces(program.invars, consts, len(known) - consts, carries,
                                         len(cts) - carries)
    program = Jaxpr(fixed + carry + rows + row_cts, program.outvars, program.eqns)
    # The loop back, from the other end.
    outs = scan_p.bind(*known[:consts], *cts[:carries], *known[consts:], *cts[carries:],
                       body=program, length=length, reverse=not reverse, consts=consts,
                       carries=carries)
    return merge(linear, outs, [None] * len(args))


scan_p = Primitive("scan", impl=scan_impl, abstract_eval=scan_types, jvp=scan_jvp, batch=scan_batch,
                   transpose=scan_transpose)


def fori_loop(start, stop, body, x):
    """body(k, x) for each k from start up to stop."""
    return scan(lambda x, k: (body(k, x), 0.0), x, np.arange(start, stop))[0]


def assign(text, targets, program, args):
    """Write a call in a loop, and put its results into these names."""
    for target, result in zip(targets, call_program(text, program, args, 1)):
        text.emit(f"{target} = {result}", 1)


def cond_loop(text, eqn, programs):
    """Two calls, of which one is made."""
    which, *args = map(text.array, eqn.invars)
    names = [text.named(v, text.fresh()) for v in eqn.outvars]
    for line, program in zip((f"if {which}[()]:", "else:"), programs):
        text.emit(line)
        assign(text, names, program, args)


LOOPS["cond"] = cond_loop


def carried(text, variables, start):
    """Names for what goes round, with copies of what it starts from."""
    names = [text.named(v, text.fresh()) for v in variables]
    for name, x in zip(names, start):
        text.emit(f"{name} = {x}.copy()")
    return names


def while_text(text, eqn, test, body):
    """A loop of calls, until the test says no."""
    names = carried(text, eqn.outvars, map(text.array, eqn.invars))
    text.emit("while True:")
    [goes_on] = call_program(text, test, names, 1)
    text.emit(f"if not {goes_on}[()]: break", 1)
    assign(text, names, body, names)


LOOPS["while"] = while_text


def scan_text(text, eqn, body, length, reverse, consts, carries):
    """A loop of calls, one for each row."""
    args, end = list(map(text.array, eqn.invars)), consts + carries
    names = carried(text, eqn.outvars[:carries], args[consts:end])
    ys = [text.stored(v, None) for v in eqn.outvars[carries:]]
    k, bounds = text.fresh(), f"{length - 1}, -1, -1" if reverse else f"{length}"
    text.emit(f"for {k} in range({bounds}):")
    rows = [f"{x}[{k}:{k} + 1].reshape({v.aval.shape[1:]})"
            for x, v in zip(args[end:], eqn.invars[end:])]
    assign(text, names + [f"{y}[{k}:{k} + 1]" for y in ys], body, args[:consts] + names + rows)


LOOPS["scan"] = scan_text
