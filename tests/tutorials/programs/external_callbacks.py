"""Python functions that a compiled program calls: pure ones, ones that do something, to look."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback


def told(f, *args):
    """What a call gives, or how it is refused."""
    try:
        return f(*args)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def printing_while_tracing():
    @jax.jit
    def f(x):
        y = x * 3
        print(f"traced: {y.dtype}{list(y.shape)}")
        return y - 1
    return f(2), f(5)


def printing_while_running():
    @jax.jit
    def f(x):
        y = x * 3
        jax.debug.print("y is {}, and x {x}", y, x=x)
        return y - 1
    return f(2), f(5)


def cube_on_host(x):
    return (np.asarray(x) ** 3).astype(x.dtype)


def cube(x):
    return jax.pure_callback(cube_on_host, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


XS = jnp.linspace(-1.0, 1.0, 5)


def a_pure_function_is_called():
    return cube(XS), jax.jit(cube)(XS)


def a_pure_function_is_mapped():
    def in_one_call(x, **how):
        return jax.pure_callback(lambda x: (print("called with", np.shape(x)), cube_on_host(x))[1],
                                 jax.ShapeDtypeStruct(x.shape, x.dtype), x, **how)
    results = []
    for method in ("sequential", "expand_dims", "broadcast_all", "legacy_vectorized"):
        print(method)
        results.append(jax.vmap(partial(in_one_call, vmap_method=method))(XS[:2]))
        jax.effects_barrier()
    return results


def two_arguments_one_of_them_mapped():
    def host(x, y):
        print(np.shape(x), np.shape(y))
        return np.asarray(x + y, np.float32)

    def total(x, y, method):
        return jax.pure_callback(host, jax.ShapeDtypeStruct((), jnp.float32), x, y,
                                 vmap_method=method)
    results = []
    for method in ("sequential", "expand_dims", "broadcast_all"):
        results.append(jax.vmap(partial(total, method=method), (0, None))(XS[:3], 2.0))
        jax.effects_barrier()
    return results


def without_a_method_it_cannot_be_mapped():
    return told(jax.vmap(cube), XS)


def a_pure_function_in_a_loop():
    return (jax.lax.scan(lambda c, x: (c, cube(x)), None, XS)[1],
            jax.lax.fori_loop(0, 3, lambda i, x: cube(x), jnp.float32(1.1)),
            jax.lax.while_loop(lambda x: x < 100, cube, jnp.float32(2.0)),
            jax.lax.cond(True, cube, lambda x: x, jnp.float32(4.0)))


def a_pure_function_has_no_derivative():
    return told(jax.grad(lambda x: cube(x).sum()), XS), told(
        lambda: jax.jvp(cube, (XS,), (XS,)))


def results_in_a_tree():
    def host(x):
        return {"half": np.asarray(x / 2, np.float32), "size": np.int32(x.size)}
    types = {"half": jax.ShapeDtypeStruct((5,), jnp.float32),
             "size": jax.ShapeDtypeStruct((), jnp.int32)}
    return jax.jit(lambda x: jax.pure_callback(host, types, x))(XS)


def announce():
    print("somebody called")
    return np.int32(7)


def a_result_that_is_used():
    return jax.jit(lambda: jax.pure_callback(announce, jax.ShapeDtypeStruct((), np.int32)))()


def a_result_that_nobody_uses():
    @jax.jit
    def f():
        jax.pure_callback(announce, jax.ShapeDtypeStruct((), np.int32))
        return 1.0
    return f()


def results_of_another_type():
    def wrong(x):
        return np.ones(3, np.float32)
    try:
        jax.block_until_ready(jax.pure_callback(
            wrong, jax.ShapeDtypeStruct((2,), np.float32), XS))
    except Exception as error:
        return isinstance(error, RuntimeError | ValueError)


def an_error_on_the_host():
    def fails(x):
        raise KeyError("nothing here")
    try:
        jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(
            fails, jax.ShapeDtypeStruct((), np.float32), x))(1.0))
    except Exception as error:
        return "nothing here" in str(error)


class Urn:
    """Draws without end, each draw another number."""

    def __init__(self, seed):
        self.numbers = np.random.default_rng(seed)

    def draw_like(self, x):
        print(f"drawing {x.dtype}{list(x.shape)}")
        return self.numbers.uniform(size=x.shape).astype(x.dtype)


def something_happens():
    urn = Urn(1)
    f = jax.jit(lambda x: io_callback(urn.draw_like, x, x))
    return f(jnp.zeros(4)), f(jnp.zeros(4))


def what_happens_is_mapped():
    urn = Urn(1)
    return jax.vmap(jax.jit(lambda x: io_callback(urn.draw_like, x, x)))(jnp.zeros(4))


def what_is_ordered_cannot_be_mapped():
    urn = Urn(1)
    return told(jax.vmap(lambda x: io_callback(urn.draw_like, x, x, ordered=True)), jnp.zeros(4))


def what_is_ordered_happens_in_a_loop():
    urn = Urn(1)
    f = jax.jit(lambda x: io_callback(urn.draw_like, x, x, ordered=True))
    return jax.lax.scan(lambda c, x: (c, f(x)), None, jnp.zeros(4))[1]


def ordered_ones_stay_in_order():
    def say(text):
        print(text)
        return np.int32(0)

    @jax.jit
    def f(x):
        for text in ("first", "second", "third"):
            x += io_callback(partial(say, text), jax.ShapeDtypeStruct((), np.int32), ordered=True)
        return x
    return f(1)


def what_happens_has_no_derivative():
    urn = Urn(1)
    return told(jax.grad(lambda x: io_callback(urn.draw_like, x, x).sum()), XS)


def but_may_stand_beside_what_has_one():
    @jax.jit
    def f(x):
        io_callback(lambda: print("passing by"), None)
        return x * x
    return jax.grad(f)(3.0)


def what_happens_is_never_left_out():
    seen = []

    @jax.jit
    def f(x):
        io_callback(lambda x: seen.append(float(x)), None, x + 1)
        return 2.0
    f(1.0), f(5.0)
    jax.effects_barrier()
    return seen


def note(x):
    print("noted", x)


@jax.jit
def noted(x):
    jax.debug.callback(note, x)
    return x * 2


def a_look_at_a_value():
    return noted(1.5)


def a_look_at_each_of_a_batch():
    return jax.vmap(noted)(jnp.arange(3.0))


def a_look_while_differentiating():
    return jax.grad(noted)(1.5)


def looks_in_loops_and_branches():
    def body(i, x):
        jax.debug.callback(note, i, ordered=True)
        return x + i
    return jax.lax.fori_loop(0, 3, body, 10), jax.jit(lambda x: jax.lax.cond(
        x > 0, noted, lambda x: x, x))(1.0)


def options_first_then_the_call():
    def f(x):
        jax.debug.callback(ordered=True)(note, x)
        jax.debug.callback(ordered=True, partitioned=False)(note, x + 1)
        return x
    return jax.jit(f)(2.0)


def names_and_trees_are_given_as_they_are():
    def show(pair, *, scale):
        print("pair", [float(x) for x in pair], "scale", float(scale))

    @jax.jit
    def f(x):
        jax.debug.callback(show, (x, x + 1), scale=2 * x, ordered=True)
        jax.debug.print("{tree[a]} of {n}", tree={"a": x}, n=3, ordered=True)
        return x
    return f(2.0)


def an_f_string_prints_too_early():
    return (told(jax.jit(lambda x: jax.debug.print("no place for it", x)), 1.0).partition("[")[0],
            told(jax.jit(lambda x: jax.debug.print("named {x}", y=x)), 1.0),
            told(lambda: jax.debug.callback(3)))


def bessel_on_host(order, x):
    import scipy.special
    return scipy.special.jv(order, x).astype(np.asarray(x).dtype)


def bessel(order, x):
    order, x = jnp.asarray(order), jnp.asarray(x)
    x = x.astype(jnp.result_type(float, x.dtype))
    shape = jnp.broadcast_shapes(order.shape, x.shape)
    return jax.pure_callback(bessel_on_host, jax.ShapeDtypeStruct(shape, x.dtype), order, x,
                             vmap_method="broadcast_all")


def a_function_of_scipy():
    xs = jnp.array([0.5, 1.0, 4.0])
    f = partial(bessel, 2)
    return f(xs), jax.jit(f)(xs), jax.vmap(f)(xs)


def it_has_no_derivative_yet():
    return told(jax.grad(lambda x: bessel(2, x)), 1.0)


@jax.custom_jvp
def smooth_bessel(order, x):
    return bessel(order, x)


@smooth_bessel.defjvp
def smooth_bessel_jvp(primals, tangents):
    order, x = primals
    below, above = smooth_bessel(order - 1, x), smooth_bessel(order + 1, x)
    slope = jnp.where(order == 0, -above, (below - above) / 2)
    return smooth_bessel(order, x), slope * tangents[1]


def it_is_given_one():
    f = partial(smooth_bessel, 2)
    return jax.grad(f)(1.5), jax.hessian(f)(1.5), jax.vmap(jax.grad(f))(jnp.array([0.5, 2.0])), (
        jax.jit(jax.grad(partial(smooth_bessel, 0)))(1.0))
