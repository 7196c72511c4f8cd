"""Looking at values inside of compiled functions: printed, called back, at a breakpoint."""

import io

import jax
import jax.numpy as jnp

XS = jnp.array([0.5, 0.25, 2.0])


@jax.jit
def doubled(x):
    jax.debug.print("before: {x}", x=x, ordered=True)
    y = x * 2
    jax.debug.print("after: {}, of {}", y, x, ordered=True)
    return y


def values_are_printed():
    return doubled(0.5), doubled(XS)


def shapes_need_no_such_thing():
    def f(x):
        print("traced for", x.shape, x.dtype)
        return x
    g = jax.jit(f)
    return g(XS), g(XS), g(XS[:2])


def step(x):
    jax.debug.print("x: {}", x, ordered=True)
    y = x * x
    jax.debug.print("y: {}", y, ordered=True)
    return y


def the_order_shows_how_it_is_computed():
    print("mapped")
    first = jax.vmap(step)(XS)
    jax.effects_barrier()
    print("one after the other")
    second = jax.lax.map(step, XS)
    jax.effects_barrier()
    print("scanned")
    third = jax.lax.scan(lambda c, x: (c, step(x)), None, XS)[1]
    return first, second, third


def only_the_forward_pass_prints():
    return jax.grad(step)(1.5), jax.jit(jax.grad(step))(2.5), jax.jvp(step, (0.5,), (1.0,))


@jax.custom_vjp
def printing_its_gradient(x):
    return x


def printing_fwd(x):
    return x, None


def printing_bwd(_, ct):
    jax.debug.print("gradient: {}", ct, ordered=True)
    return (ct,)


printing_its_gradient.defvjp(printing_fwd, printing_bwd)


def a_gradient_is_printed():
    return jax.grad(lambda x: jnp.square(printing_its_gradient(x)))(3.0), jax.jit(jax.grad(
        lambda x: (printing_its_gradient(x * XS) * 4).sum()))(1.0)


def formats_and_trees():
    @jax.jit
    def f(tree):
        jax.debug.print("{:.2f} and {b:>8} and {c[0]}", tree["a"], b=tree["b"], c=[tree["a"]],
                        ordered=True)
        jax.debug.print("{tree} and braces {{}}", tree=tree, ordered=True)
        jax.debug.print("nothing to fill in", ordered=True)
        return tree["a"]
    return f({"a": 1.5, "b": 7})


def in_every_kind_of_control_flow():
    def body(i, x):
        jax.debug.print("turn {}", i, ordered=True)
        return x * 2

    def up(x):
        jax.debug.print("up {}", x, ordered=True)
        return x + 1
    f = jax.jit(lambda x: jax.lax.cond(x > 4, up, lambda x: -x, jax.lax.fori_loop(0, 3, body, x)))
    return f(1.0), f(0.25), jax.lax.while_loop(lambda x: x < 3, up, 1)


def anything_may_be_called_back():
    seen = []

    @jax.jit
    def f(x):
        jax.debug.callback(lambda x, scale: seen.append(float((x * scale).sum())), x, scale=2)
        return x + 1
    f(XS)
    f(XS + 1)
    jax.effects_barrier()
    return seen


def effects_can_be_waited_for():
    seen = []
    f = jax.jit(lambda x: (jax.debug.callback(seen.append, x), x + 1)[1])
    f(1.0).block_until_ready()
    jax.effects_barrier()
    return len(seen)


def at_a_breakpoint(*commands):
    """A function that stops, and what the prompt says to these commands."""
    said = io.StringIO()

    def stop():
        jax.debug.breakpoint(stdin=io.StringIO("\n".join([*commands, "c"]) + "\n"), stdout=said)
    return stop, said


def a_program_stops():
    stop, said = at_a_breakpoint("u", "p float(y), float(z)", "pp x + 0", "l", "d", "d",
                                "undefined")

    @jax.jit
    def f(x):
        y, z = x * 3, x - 1
        stop()
        return y * z
    result = f(2.0)
    jax.effects_barrier()
    print(said.getvalue())
    return result


def it_stops_where_something_is_wrong():
    stop, said = at_a_breakpoint("u", "p float(x)")

    def stop_if_not_finite(x):
        def wrong(x):
            stop()
            return None
        jax.lax.cond(jnp.isfinite(x).all(), lambda x: None, wrong, x)

    @jax.jit
    def f(x, y):
        z = x / y
        stop_if_not_finite(z)
        return z
    results = f(2.0, 1.0), f(2.0, 0.0)
    jax.effects_barrier()
    print(said.getvalue())
    return results
