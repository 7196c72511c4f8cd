"""JAX's tables of rules fill the slots of our primitives, and read them; beside JAX itself."""

import jax
import jax.extend.core
import numpy as np
import pytest
from jax.interpreters import ad, batching, mlir

import minijax
import minijax.extend.core
from minijax import core
from minijax.extend import rules


class Ours:
    """The names of JAX that its tutorial on new primitives uses, here."""

    jax, ad, batching, mlir = minijax, rules, rules, rules
    Primitive, ShapedArray = minijax.extend.core.Primitive, core.ShapedArray
    Zero, is_undefined = core.Zero, staticmethod(rules.is_undefined_primal)


class Theirs:
    """The same of JAX."""

    jax, ad, batching, mlir = jax, ad, batching, mlir
    Primitive, ShapedArray = jax.extend.core.Primitive, jax.core.ShapedArray
    Zero, is_undefined = ad.Zero, staticmethod(ad.is_undefined_primal)


def multiply_add(lib, lowering=True):
    """``x * y + z`` as a primitive with every rule, as the tutorial writes it."""
    p = lib.Primitive("multiply_add")
    p.def_impl(lambda x, y, z: np.asarray(x) * y + z)
    p.def_abstract_eval(lambda x, y, z: lib.ShapedArray(x.shape, x.dtype))

    def bind(*args):
        return p.bind(*args)

    def jvp(primals, tangents):
        x, y, z = primals
        xt, yt, zt = (lib.jax.numpy.zeros_like(x) if type(t) is lib.Zero else t
                      for t, x in zip(tangents, primals, strict=True))
        return bind(x, y, z), bind(xt, y, bind(x, yt, zt))

    def transpose(ct, x, y, z):
        if not lib.is_undefined(x):
            return None, bind(ct, x, lib.jax.numpy.zeros_like(ct)), ct
        return bind(ct, y, lib.jax.numpy.zeros_like(ct)), None, ct

    def batch(args, dims):
        assert all(d in (0, None) for d in dims)
        size = next(x.shape[0] for x, d in zip(args, dims, strict=True) if d == 0)
        whole = [x if d == 0 else lib.jax.numpy.broadcast_to(x, (size, *np.shape(x)))
                 for x, d in zip(args, dims, strict=True)]
        return bind(*whole), 0

    lib.ad.primitive_jvps[p] = jvp
    lib.ad.primitive_transposes[p] = transpose
    lib.batching.primitive_batchers[p] = batch
    if lowering:
        lib.mlir.register_lowering(p, lib.mlir.lower_fun(lambda x, y, z: x * y + z, False))
    return bind


def several(lib):
    """Sine and cosine as one primitive of two results, batched by a rule that is told the axis."""
    p = lib.Primitive("sine_and_cosine")
    p.multiple_results = True
    jnp = lib.jax.numpy
    p.def_impl(lambda x: [jnp.sin(x), jnp.cos(x)])
    p.def_abstract_eval(lambda x: [lib.ShapedArray(x.shape, x.dtype)] * 2)

    def jvp(primals, tangents):
        (x,), (t,) = primals, tangents
        s, c = p.bind(x)
        return [s, c], [c * t, -s * t]

    def batch(size, name, kind, args, dims):
        return p.bind(*args), [dims[0]] * 2

    lib.ad.primitive_jvps[p] = jvp
    lib.batching.axis_primitive_batchers[p] = batch
    lib.mlir.register_lowering(p, lib.mlir.lower_fun(lambda x: [jnp.sin(x), jnp.cos(x)]))
    return lambda x: p.bind(x)


def as_a_class(lib, results):
    """A primitive as K-FAC writes it: its rules are methods, and types come with effects."""
    class Multiples(lib.Primitive):
        multiple_results = results > 1

        def impl(self, x, by):
            return [by * x, 2 * by * x][:results] if self.multiple_results else by * x

        def abstract_eval(self, x, by):
            types = [lib.ShapedArray(x.shape, x.dtype)] * results
            return types if self.multiple_results else types[0], set()

    p = Multiples("multiples")
    lib.mlir.register_lowering(p, lib.mlir.lower_fun(p.impl, p.multiple_results))
    lib.ad.primitive_jvps[p] = lambda xs, ts, by: (p.bind(*xs, by=by), p.bind(*ts, by=by))
    return lambda x: p.bind(x, by=3)


def programs(lib):
    xs = np.linspace(0.5, 2, 3, dtype=np.float32)
    f, g, j = multiply_add(lib), several(lib), lib.jax
    one = lambda x: f(f(x, x, 1.0), x, x)  # noqa: E731
    yield f(2.0, 10.0, 3.0)
    yield j.jit(one)(2.0)
    yield j.jvp(one, (2.0,), (1.0,))
    yield j.jit(j.grad(one))(2.0)
    yield j.vmap(f, (0, None, 0))(xs, np.float32(2), xs)
    yield j.jit(j.vmap(j.grad(one)))(xs)
    yield j.linear_transpose(lambda x: f(x, 3.0, np.float32(0)), np.float32(1))(2.0)
    yield j.jit(g)(xs)
    yield j.jvp(g, (xs,), (xs,))
    yield j.vmap(j.jit(g), axis_name="i")(xs)
    for results in (1, 2):
        p = as_a_class(lib, results)
        yield p(xs)
        yield j.jit(p)(xs)
        yield j.jvp(j.jit(p), (xs,), (xs,))


def test_the_tutorials_rules_give_jaxs_numbers():
    for ours, theirs in zip(programs(Ours), programs(Theirs), strict=True):
        np.testing.assert_allclose(np.array(minijax.tree.leaves(ours)),
                                   np.array(jax.tree.leaves(theirs)), rtol=1e-6)


def test_rules_of_the_package_are_read_in_jaxs_form():
    from minijax import lax
    out, tangent = rules.primitive_jvps[lax.mul_p]([2.0, 3.0], [1.0, core.Zero(core.typeof(3.0))])
    assert (float(out), float(tangent)) == (6.0, 3.0)
    out, dim = rules.primitive_batchers[lax.sin_p]((np.zeros((2, 3), "f"),), (1,))
    assert out.shape == (2, 3) and dim == 1
    linear = core.Undefined(core.typeof(np.zeros(2, "f")))
    assert rules.primitive_transposes[lax.neg_p](np.ones(2, "f"), linear)[0].tolist() == [-1, -1]


def test_a_primitive_without_a_rule_is_not_in_the_table():
    p = core.Primitive("bare")
    assert p not in rules.primitive_jvps
    rules.primitive_jvps[p] = rule = lambda primals, tangents: (primals[0], tangents[0])
    assert rules.primitive_jvps[p] is rule and p in list(rules.primitive_jvps)
    assert minijax.jvp(p.bind, (1.0,), (2.0,))[1] == 2.0
    del rules.primitive_jvps[p]
    assert p not in rules.primitive_jvps


def test_a_lowering_rule_serves_functions_that_were_compiled_in_vain():
    p = Ours.Primitive("twice")
    p.def_abstract_eval(lambda x: x)
    twice = minijax.jit(p.bind)
    with pytest.raises(NotImplementedError, match="Lowering rule"):
        twice(3.0)
    rules.register_lowering(p, rules.lower_fun(lambda x: x + x, False))
    assert twice(3.0) == 6.0


def shorter(lib):
    """The same by JAX's shorter ways to fill the tables."""
    jnp, made = lib.jax.numpy, {}

    def primitive(name, fun):
        p = made[name] = lib.Primitive(name)
        p.def_impl(fun)
        p.def_abstract_eval(lambda x, *rest: lib.ShapedArray(x.shape, x.dtype))
        lib.batching.defvectorized(p)
        lib.mlir.register_lowering(p, lib.mlir.lower_fun(fun, False))
        return p

    power = primitive("power", lambda x, y: jnp.power(x, y))
    lib.ad.defjvp(power, lambda t, x, y: t * y * x ** (y - 1), None)
    root = primitive("root", jnp.sqrt)
    lib.ad.defjvp2(root, lambda t, ans, x: t / (2 * ans))
    flip = primitive("flip", lambda x: -x)
    lib.ad.deflinear2(flip, lambda ct, x: [flip.bind(ct)])
    times = primitive("times", lambda x, y: x * y)
    lib.ad.defbilinear(times, lambda ct, x, y: times.bind(ct, y),
                       lambda ct, x, y: times.bind(x, ct))
    return made


def test_shorter_ways_to_fill_the_tables():
    x = np.linspace(1, 2, 3, dtype=np.float32)

    def found(lib):
        p, j = shorter(lib), lib.jax
        f = lambda x: p["times"].bind(p["flip"].bind(p["root"].bind(x)),  # noqa: E731
                                      p["power"].bind(x, x))
        g = lambda x: p["flip"].bind(p["root"].bind(x))  # noqa: E731
        return [np.asarray(y) for y in (f(x[0]), j.grad(f)(x[0]), j.jit(j.vmap(g))(x),
                                        j.vmap(j.grad(g))(x))]
    for ours, theirs in zip(found(Ours), found(Theirs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_a_lowering_that_writes_mlir_is_refused_when_it_is_compiled():
    bind = multiply_add(Ours, lowering=False)
    p = minijax.make_jaxpr(bind)(1.0, 1.0, 1.0).eqns[0].primitive
    rules.register_lowering(p, lambda ctx, *args: None)
    with pytest.raises(NotImplementedError, match="lower_fun"):
        minijax.jit(bind)(1.0, 1.0, 1.0)


def test_a_lowering_rule_calls_python_and_other_rules():
    def sorted_in_python(lib, seen):
        p = lib.Primitive("sorted_in_python")
        p.multiple_results = True
        p.def_abstract_eval(lambda x: [lib.ShapedArray(x.shape, x.dtype)])

        def lowering(ctx, x):
            seen.append([(x.shape, x.dtype) for x in (*ctx.avals_in, *ctx.avals_out)])
            y, _, keep = lib.mlir.emit_python_callback(
                ctx, lambda x: (np.sort(x),), None, [x], ctx.avals_in, ctx.avals_out,
                has_side_effect=False)
            ctx.module_context.add_keepalive(keep)
            return lib.mlir.lower_fun(lambda y: [2 * y])(ctx, *y)
        lib.mlir.register_lowering(p, lowering)
        return lib.jax.jit(lambda x: p.bind(x + 1)[0])(np.float32([2, 0, 1])), seen
    (ours, seen), (theirs, seen_there) = (sorted_in_python(lib, []) for lib in (Ours, Theirs))
    np.testing.assert_array_equal(ours, theirs)
    assert seen == seen_there


def test_the_evaluation_of_a_primitive_is_the_users_function():
    def evaluated(lib):
        p = lib.Primitive("swap")
        p.multiple_results = True
        p.def_impl(lambda x, y: (y, x))
        return lib.jax.jit(lambda x: p.impl(x, x + 1)[0])(1.0), p.impl(lib.jax.numpy.ones(2), 3)[0]
    assert list(map(repr, evaluated(Ours))) == list(map(repr, evaluated(Theirs)))


def test_rules_of_derivatives_get_tuples_of_primals_and_tangents():
    def kinds(lib):
        p, seen = lib.Primitive("noted"), []
        p.def_impl(lambda x: x)
        p.def_abstract_eval(lambda x: x)

        def jvp(primals, tangents):
            seen.append((type(primals), type(tangents)))
            return p.bind(*primals), tangents[0]
        lib.ad.primitive_jvps[p] = jvp
        lib.jax.jvp(p.bind, (1.0,), (1.0,))
        return seen
    assert kinds(Ours) == kinds(Theirs) == [(tuple, tuple)]
