"""A new primitive: each transformation asks for a rule, is refused, and is given one."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core
from jax.interpreters import ad, batching, mlir

depth = 0


def say(text):
    print("  " * depth + text)


def shown(x):
    """Of a number or an array, which may be traced, the type."""
    if type(x) is ad.Zero:
        return "nothing"
    if isinstance(x, tuple | list):
        return "(" + ", ".join(map(shown, x)) + ")"
    if x is None or isinstance(x, int):
        return str(x)
    return f"{jnp.result_type(x)}{list(jnp.shape(x))}"


def watched(function):
    """The function, which says when it is called and what it gives."""
    @functools.wraps(function)
    def wrapper(*args):
        global depth
        say(f"{function.__name__}{shown(args)}")
        depth += 1
        result = function(*args)
        depth -= 1
        say(f"= {shown(result)}")
        return result
    return wrapper


def refused(f, *args):
    """What is said where a rule is missing."""
    global depth
    try:
        return f(*args)
    except NotImplementedError as error:
        depth = 0
        return str(error).splitlines()[0]


def two_products_lax(a, b, c, d):
    return lax.add(lax.mul(a, b), lax.mul(c, d))


def squares_lax(x, y):
    return two_products_lax(x, x, y, y)


def written_by_primitives_that_exist():
    return squares_lax(2.0, 3.0), jax.grad(squares_lax)(2.0, 3.0), jax.grad(
        squares_lax, argnums=1)(2.0, 3.0)


@watched
def two_products_numpy(a, b, c, d):
    return jnp.add(jnp.multiply(a, b), jnp.multiply(c, d))


@watched
def squares_numpy(x, y):
    return two_products_numpy(x, x, y, y)


def the_calls_of_an_evaluation():
    return squares_numpy(2.0, 3.0)


def the_calls_of_a_gradient():
    return jax.grad(squares_numpy)(2.0, 3.0)


two_products_p = core.Primitive("two_products")


@watched
def two_products(a, b, c, d):
    return two_products_p.bind(a, b, c, d)


@watched
def squares(x, y):
    return two_products(x, x, y, y)


def without_any_rule():
    return refused(squares, 2.0, 3.0)


def evaluated():
    @watched
    def two_products_impl(a, b, c, d):
        return np.asarray(np.multiply(a, b) + np.multiply(c, d), np.float32)
    two_products_p.def_impl(two_products_impl)
    return squares(2.0, 3.0), squares(np.array([1.0, 2.0]), np.array([0.5, -0.5]))


def compiled_without_a_type():
    return refused(jax.jit(squares), 2.0, 3.0)


def given_a_type():
    def two_products_type(a, b, c, d):
        assert a.shape == b.shape == c.shape == d.shape
        return jax.core.ShapedArray(a.shape, a.dtype)
    two_products_p.def_abstract_eval(two_products_type)
    print(jax.eval_shape(lambda x, y: squares(x, y), jnp.ones(2), jnp.ones(2)))
    print(jax.make_jaxpr(lambda x, y: squares(x, y))(2.0, 3.0))


def compiled_without_a_lowering():
    return "'two_products'" in refused(jax.jit(squares), 2.0, 3.0)


def compiled():
    """By other operations: a rule that writes HLO would be for XLA alone."""
    mlir.register_lowering(two_products_p,
                           mlir.lower_fun(two_products_lax, multiple_results=False))
    return jax.jit(lambda x, y: two_products_p.bind(x, x, y, y))(2.0, 3.0)


def compiled_for_one_value():
    f = jax.jit(lambda x, y: two_products_p.bind(x, x, y, y), static_argnums=1)
    return f(2.0, 3.0), f(2.0, 4.0)


def pushed_forward_without_a_rule():
    return refused(lambda: jax.jvp(squares, (2.0, 3.0), (1.0, 1.0)))


def pushed_forward():
    @watched
    def two_products_jvp(primals, tangents):
        a, b, c, d = primals

        def number(t):
            return lax.full_like(a, 0) if type(t) is ad.Zero else t
        da, db, dc, dd = map(number, tangents)
        say("value")
        value = two_products(a, b, c, d)
        say("tangent")
        return value, two_products(jnp.ones_like(a), two_products(da, b, a, db),
                                   jnp.ones_like(a), two_products(dc, d, c, dd))
    ad.primitive_jvps[two_products_p] = two_products_jvp
    return jax.jvp(squares, (2.0, 3.0), (1.0, 1.0))


def pushed_forward_and_compiled():
    return jax.jit(lambda at, along: jax.jvp(squares, at, along))((2.0, 3.0), (1.0, 1.0))


def pulled_back_without_a_rule():
    return refused(jax.grad(squares), 2.0, 3.0)


def pulled_back():
    @watched
    def two_products_transpose(ct, a, b, c, d):
        def product(first, second):
            if ad.is_undefined_primal(first):
                assert not ad.is_undefined_primal(second)
                return ct * second, None
            return None, (ct * first if ad.is_undefined_primal(second) else None)
        return *product(a, b), *product(c, d)
    ad.primitive_transposes[two_products_p] = (
        lambda ct, *args: two_products_transpose.__wrapped__(ct, *args))
    return jax.grad(squares)(2.0, 3.0), jax.grad(squares, argnums=(0, 1))(2.0, 3.0)


def pulled_back_and_compiled():
    return jax.jit(jax.grad(squares))(2.0, 3.0)


def mapped_without_a_rule():
    return refused(lambda: jax.vmap(squares)(jnp.array([2.0, 3.0]), jnp.array([10.0, 20.0])))


def mapped():
    @watched
    def two_products_batch(args, axes):
        size, = {x.shape[axis] for x, axis in zip(args, axes, strict=True) if axis is not None}
        whole = [jnp.broadcast_to(x, (size, *jnp.shape(x))) if axis is None
                 else jnp.moveaxis(x, axis, 0) for x, axis in zip(args, axes, strict=True)]
        return two_products(*whole), 0
    batching.primitive_batchers[two_products_p] = two_products_batch
    return jax.vmap(squares)(jnp.array([2.0, 3.0]), jnp.array([10.0, 20.0]))


def mapped_and_compiled():
    return jax.jit(jax.vmap(squares))(jnp.array([2.0, 3.0]), jnp.array([10.0, 20.0]))


def everything_together():
    f = jax.jit(jax.vmap(jax.grad(lambda x, y: two_products_p.bind(x, x, y, y))))
    return f(jnp.array([2.0, 3.0]), jnp.array([10.0, 20.0]))


def several_results():
    both_p = core.Primitive("sum_and_difference")
    both_p.multiple_results = True
    both_p.def_impl(lambda x, y: [x + y, x - y])
    both_p.def_abstract_eval(lambda x, y: [jax.core.ShapedArray(x.shape, x.dtype)] * 2)
    mlir.register_lowering(both_p, mlir.lower_fun(lambda x, y: [x + y, x - y]))
    ad.primitive_jvps[both_p] = lambda primals, tangents: (
        both_p.bind(*primals), both_p.bind(*map(ad.instantiate_zeros, tangents)))

    def transpose(cts, x, y):
        first, second = map(ad.instantiate_zeros, cts)
        return [first + second, first - second]
    ad.primitive_transposes[both_p] = transpose
    f = jax.jit(lambda x, y: both_p.bind(x, y))
    print(jax.make_jaxpr(f)(1.0, 2.0))
    return f(3.0, 5.0), jax.grad(lambda x, y: f(x, y)[0] * f(x, y)[1], (0, 1))(3.0, 5.0)


def a_linear_primitive_in_few_lines():
    twice_p = core.Primitive("twice")
    twice_p.def_impl(lambda x: 2 * x)
    twice_p.def_abstract_eval(lambda x: jax.core.ShapedArray(x.shape, x.dtype))
    mlir.register_lowering(twice_p, mlir.lower_fun(lambda x: 2 * x, multiple_results=False))
    ad.deflinear2(twice_p, lambda ct, x: [twice_p.bind(ct)])
    batching.defvectorized(twice_p)
    xs = jnp.array([1.0, 2.0])
    return (jax.vmap(jax.grad(twice_p.bind))(xs), jax.jit(jax.vmap(twice_p.bind))(xs),
            jax.jvp(twice_p.bind, (xs,), (xs,)), jax.linear_transpose(twice_p.bind, xs)(xs))
