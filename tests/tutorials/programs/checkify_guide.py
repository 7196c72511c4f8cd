"""Checks of values inside of compiled functions: `checkify` makes errors of them, as results."""

import jax
import jax.numpy as jnp
from jax.experimental import checkify


def raised(f, *args):
    """What an error says when it is thrown, or that there is none."""
    try:
        f(*args)
    except Exception as error:
        assert isinstance(error, ValueError | TypeError | AssertionError), error
        return str(error).splitlines()[0]
    return "nothing"


def picked(x, i):
    checkify.check(i >= 0, "the place must not be negative, and is {i}", i=i)
    return jnp.sin(x[i])


def a_check_is_an_error_value():
    error, value = jax.jit(checkify.checkify(picked))(jnp.ones(5), -2)
    print(error.get())
    return value


def nothing_went_wrong():
    error, value = jax.jit(checkify.checkify(picked))(jnp.ones(5), 2)
    error.throw()
    return error.get() is None, value


def checks_that_are_made_for_everything():
    errors = checkify.user_checks | checkify.index_checks | checkify.float_checks
    f = checkify.checkify(picked, errors=errors)
    for x, i in ((jnp.ones(5), 100), (jnp.ones(5), -1), (jnp.array([jnp.inf, 1.0]), 0),
                 (jnp.array([5.0, 1.0]), 0)):
        error, _ = f(x, jnp.asarray(i))
        print(error.get())
        print(raised(error.throw))


def a_check_that_nobody_makes_pure():
    return raised(jax.jit(picked), jnp.ones(5), -1)


def a_check_outside_of_a_program_raises_at_once():
    return raised(picked, jnp.ones(5), -1), raised(picked, jnp.ones(5), 1)


def assertions_work_where_values_are_known():
    def f(x):
        assert x > 0.0, "too small"
        return jnp.log(x)
    print(raised(jax.grad(f), 0.0))
    print(raised(jax.jit(f), 0.0).partition(" of ")[0])


def errors_by_hand():
    @jax.jit
    def checked_log(x):
        return x <= 0.0, jnp.log(x)
    return [checked_log(x) for x in (1.0, -1.0)]


def errors_by_checkify():
    def f(x):
        checkify.check(x > 0.0, "{} is too small", x)
        return jnp.log(x)
    error, value = jax.jit(checkify.checkify(f))(-1.0)
    print(raised(error.throw))
    return value


def which_checks_are_made():
    programs = {"an index": lambda: jnp.arange(3)[jnp.asarray(5)],
                "a nan": lambda: jnp.sin(jnp.inf),
                "a division": lambda: jnp.ones(3) / jnp.arange(3)}
    for name, f in programs.items():
        for errors in (checkify.user_checks, checkify.index_checks, checkify.nan_checks,
                       checkify.div_checks, checkify.float_checks, checkify.automatic_checks,
                       checkify.all_checks):
            error, _ = checkify.checkify(f, errors=errors)()
            print(name, error.get())


def read(x, i):
    return x[i]


def around_jit_and_inside_of_it():
    x = jnp.ones(5)
    for f in (checkify.checkify(jax.jit(read), errors=checkify.index_checks),
              jax.jit(checkify.checkify(read, errors=checkify.index_checks))):
        error, value = f(x, 100)
        print(error.get())


def careful(x, i):
    checkify.check(i >= 0, "the place must not be negative!")
    return x[i]


def an_error_for_each_of_a_batch():
    f = checkify.checkify(careful, errors=checkify.all_checks)
    errors, values = jax.vmap(f)(jnp.ones((3, 5)), jnp.array([-1, 2, 100]))
    try:
        errors.throw()
    except Exception as error:
        print(error)
    return values[:2]


def one_error_for_a_batch():
    f = checkify.checkify(jax.vmap(careful), errors=checkify.all_checks)
    error, values = f(jnp.ones((3, 5)), jnp.array([-1, 2, 100]))
    print(error.get())


def checks_in_loops_and_branches():
    def body(c, x):
        checkify.check(x < 3, "{x} is too much", x=x)
        return c + x, c
    error, out = checkify.checkify(lambda xs: jax.lax.scan(body, 0, xs))(jnp.arange(5))
    print(error.get())

    def turn(x):
        checkify.check(x < 5, "went as far as {}", x)
        return x + 2
    error, value = checkify.checkify(
        lambda x: jax.lax.while_loop(lambda x: x < 8, turn, x))(0)
    print(error.get())
    error, value = checkify.checkify(lambda x: jax.lax.cond(x > 0, turn, lambda x: x, x))(7)
    print(error.get())
    return out, value


def derivatives_are_checked():
    def f(x):
        return x / (1 + jnp.sqrt(x))
    error, _ = checkify.checkify(jax.grad(f), errors=checkify.nan_checks)(0.0)
    print(error.get())
    error, _ = jax.jit(checkify.checkify(f, errors=checkify.nan_checks))(0.0)
    print(error.get())


@jax.custom_vjp
def falling(x):
    return x


def falling_fwd(x):
    return x, None


def falling_bwd(_, ct):
    checkify.check(ct < 0, "the gradient must be negative, and is {}", ct)
    return (ct,)


falling.defvjp(falling_fwd, falling_bwd)


def a_check_of_a_gradient():
    print(raised(jax.grad(falling), -1.0))
    for sign in (1.0, -1.0):
        error, slope = checkify.checkify(jax.grad(lambda x, s=sign: s * falling(x)))(-1.0)
        print(error.get(), slope)


def an_error_is_raised_again():
    def f(x):
        error, y = checkify.checkify(jnp.log, errors=checkify.nan_checks)(x)
        checkify.check_error(error)
        return y
    error, _ = checkify.checkify(jax.jit(f))(-1.0)
    print(error.get() is not None, str(error.get()).partition(" by ")[0])


def checks_for_debugging_only():
    def f(x):
        checkify.debug_check(x > 0, "not positive")
        return x
    error, value = checkify.checkify(f, errors=checkify.user_checks)(-1.0)
    print(error.get() is not None)
    return f(-1.0), jax.jit(f)(-1.0)


def conditions_must_be_scalars():
    print(raised(lambda: checkify.check(jnp.array([True, False]), "several")).partition(":")[0])
    print(raised(lambda: checkify.check("text", "no condition")).partition(":")[0])
    print(raised(lambda: checkify.check(True, "a format {}", "text")))
