"""JAX's page on checkify and more, run by both: the messages, and the numbers beside them."""

from types import SimpleNamespace

import jax.experimental.checkify
import numpy as np
import pytest

import jax
import minijax
import minijax.experimental.checkify
from jax._src.checkify import nan_primitives
from tests import test_laws

THEIRS = SimpleNamespace(jax=jax, jnp=jax.numpy, lax=jax.lax, c=jax.experimental.checkify)
OURS = SimpleNamespace(jax=minijax, jnp=minijax.numpy, lax=minijax.lax,
                       c=minijax.experimental.checkify)
PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


def told(library, f):
    """What a program gives, with errors as their messages; or the error that it raises."""
    def shown(x):
        return x.get() if isinstance(x, library.c.Error) else np.asarray(x)
    try:
        found = f(library)
    except Exception as error:
        kind = next(k for k in type(error).__mro__ if k.__module__ == "builtins")
        return f"{kind.__name__}: {error}"
    is_error = lambda x: isinstance(x, library.c.Error)
    return [shown(x) for x in library.jax.tree.leaves(found, is_leaf=is_error)]


def same(one, other):
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.allclose(one, other, equal_nan=True)
    return one == other


# ── The page ─────────────────────────────────────────────────────────────────────────────────

def sine_at(library):
    def f(x, i):
        library.c.check(i >= 0, "index needs to be non-negative, got {i}", i=i)
        return library.jnp.sin(x[i])
    return f


def all_checks(library):
    return library.c.user_checks | library.c.index_checks | library.c.float_checks


@program
def a_check_with_a_value(m):
    return m.jax.jit(m.c.checkify(sine_at(m)))(m.jnp.ones((5,)), -2)


@program
def an_index_out_of_bounds(m):
    return m.c.checkify(sine_at(m), errors=all_checks(m))(m.jnp.ones((5,)), 100)


@program
def a_nan(m):
    return m.c.checkify(sine_at(m), errors=all_checks(m))(m.jnp.array([m.jnp.inf, 1]), 0)


@program
def no_error(m):
    return m.c.checkify(sine_at(m), errors=all_checks(m))(m.jnp.array([5, 1]), 0)


@program
def a_check_that_is_not_functionalized(m):
    return m.jax.jit(sine_at(m))(m.jnp.ones((5,)), -1)


@program
def a_check_that_is_not_compiled(m):
    return sine_at(m)(m.jnp.ones((5,)), m.jnp.array(-1))


@program
def a_position_in_the_message(m):
    def f(x):
        m.c.check(x > 0., "{} must be positive!", x)
        return m.jnp.log(x)
    return m.jax.jit(m.c.checkify(f))(-1.)


@program
def checkify_of_jit_and_jit_of_checkify(m):
    f = lambda x, i: x[i]
    return [g(m.jnp.ones((5,)), 100) for g in (
        m.c.checkify(m.jax.jit(f), errors=m.c.index_checks),
        m.jax.jit(m.c.checkify(f, errors=m.c.index_checks)))]


@program
def a_batch_of_errors(m):
    f = m.c.checkify(sine_at(m), errors=m.c.all_checks)
    return m.jax.vmap(f)(m.jnp.ones((3, 5)), m.jnp.array([-1, 2, 100]))


@program
def a_batch_of_errors_that_is_thrown(m):
    f = m.c.checkify(sine_at(m), errors=m.c.all_checks)
    m.jax.vmap(f)(m.jnp.ones((3, 5)), m.jnp.array([-1, 2, 100]))[0].throw()


@program
def one_error_of_a_batch(m):
    f = m.c.checkify(m.jax.vmap(sine_at(m)), errors=m.c.user_checks)
    return f(m.jnp.ones((4, 5)), m.jnp.array([-1, 2, -3, 100]))


@program
def a_division_by_zero(m):
    f = m.c.checkify(lambda x: x / x, errors=m.c.float_checks)
    return [m.jax.jit(f)(m.jnp.arange(3.)), f(m.jnp.arange(1., 3.))]


@program
def a_nan_in_a_derivative(m):
    f = lambda x: x / (1 + m.jnp.sqrt(x))
    return m.c.checkify(m.jax.grad(f), errors=m.c.nan_checks)(0.)


@program
def a_check_of_a_gradient(m):
    @m.jax.custom_vjp
    def f(x):
        return x

    def bwd(_, grad):
        m.c.check(grad < 0, "gradient needs to be negative!")
        return (grad,)
    f.defvjp(lambda x: (f(x), None), bwd)
    return [m.c.checkify(m.jax.grad(f))(-1.), m.jax.grad(f)(-1.)]


# ── Its docstrings ───────────────────────────────────────────────────────────────────────────

@program
def a_nan_inside_of_jit(m):
    f = m.jax.jit(lambda x: x + m.jnp.sin(x))
    return m.c.checkify(f, errors=m.c.float_checks)(m.jnp.inf)


@program
def a_debug_check(m):
    def f(x):
        m.c.debug_check(x != 0, "cannot be zero!")
        return x
    zero = m.jnp.array(0)
    return [f(zero), m.jax.jit(f)(zero), m.jax.jit(m.c.checkify(f))(zero)]


@program
def an_error_thrown_again(m):
    def f(x):
        m.c.check(x > 0, "must be positive!")
        return x

    def outer(x):
        error, out = m.jax.jit(m.c.checkify(f))(x)
        m.c.check_error(error)
        return out
    return [outer(1), m.c.checkify(outer)(-1), m.jax.jit(m.c.checkify(outer))(1), outer(-1)]


@program
def an_error_thrown_inside_of_jit(m):
    def f(x):
        error, out = m.c.checkify(m.jnp.sin, errors=m.c.nan_checks)(x)
        error.throw()
        return out
    return [m.c.checkify(m.jax.jit(f))(m.jnp.inf), m.c.checkify(f, errors=m.c.nan_checks)(
        m.jnp.inf), m.jax.jit(f)(1.)]


# ── Control flow ─────────────────────────────────────────────────────────────────────────────

@program
def branches(m):
    def f(n, x):
        def positive(x):
            m.c.check(x > 0, "{} is not positive", x)
            return m.jnp.log(x)

        def small(x):
            m.c.check(x < 9, "too large")
            return x / x
        return m.lax.switch(n, [positive, small, lambda x: x], x)
    checked = m.jax.jit(m.c.checkify(f, errors=m.c.all_checks))
    return [checked(n, m.jnp.float32(x)) for n in (0, 1, 2) for x in (-1., 0., 1., 10.)]


@program
def a_scan_tells_the_first_turn(m):
    def turn(c, x):
        m.c.check(x != 3, "three, after {c}", c=c)
        m.c.check(x != 2, "two, after {c}", c=c)
        return c + x, 1 / x
    return [m.c.checkify(m.lax.scan, errors)(turn, 0., m.jnp.arange(6.), reverse=back)
            for back in (False, True)
            for errors in (m.c.user_checks, m.c.div_checks, m.c.all_checks)]


@program
def a_while_loop_and_its_condition(m):
    def f(x):
        def condition(x):
            m.c.check(x != 5, "five")
            return x < 10

        def body(x):
            m.c.check(x != 7, "seven")
            return x + 2
        return m.lax.while_loop(condition, body, x)
    return [m.jax.jit(m.c.checkify(f))(m.jnp.int32(x)) for x in (0, 1, 5, 7, 12)]


@program
def loops_inside_of_branches_inside_of_loops(m):
    def f(xs):
        def step(i, total):
            def inner(total):
                m.c.check(i != 3, "third {}", total)
                return m.lax.fori_loop(0, i, lambda j, t: t / (3 - j), total)
            return m.lax.cond(xs[i] > 0, inner, lambda t: t + 1, total)
        return m.lax.fori_loop(0, 5, step, 1.)
    checked = m.jax.jit(m.c.checkify(f, errors=m.c.all_checks))
    return [checked(m.jnp.array(xs)) for xs in (
        [1., 1, 1, 1, 1], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1], [1., 1, 0, 0, 0])]


@program
def a_loop_whose_turns_are_many(m):
    def f(x):
        return m.lax.fori_loop(0, 1000, lambda i, x: x - 1 / (x - 500), x)
    return m.jax.jit(m.c.checkify(f, errors=m.c.div_checks))(500.)


@program
def batches_of_batches(m):
    def f(x, y):
        m.c.check(x != y, "both are {} {}", x, y)
        return x
    x, y = m.jnp.arange(3), m.jnp.arange(1, 5)
    over = lambda f: m.jax.vmap(m.jax.vmap(f, (None, 0)), (0, None))
    return [over(m.c.checkify(f))(x, y), m.c.checkify(over(f))(x, y),
            m.jax.vmap(m.c.checkify(m.jax.vmap(f, (None, 0))), (0, None))(x, y)]


# ── Derivatives ──────────────────────────────────────────────────────────────────────────────

@program
def a_gradient_beside_the_error(m):
    def f(x):
        m.c.check(m.jnp.all(x > 0), "not positive: {}", x)
        return m.jnp.sum(m.jnp.sqrt(x))

    def loss(x):
        error, out = m.c.checkify(f, errors=m.c.all_checks)(x)
        return out, error
    return [m.jax.jit(m.jax.value_and_grad(loss, has_aux=True))(m.jnp.array(x))
            for x in ([1., 4], [1., -4])]


@program
def a_function_with_a_derivative_of_its_own(m):
    @m.jax.custom_jvp
    def f(x):
        m.c.check(x > 0, "not positive")
        return m.jnp.log(x)
    f.defjvp(lambda primals, tangents: (m.jnp.log(primals[0]), 10. * tangents[0]))
    checked = m.c.checkify(f, errors=m.c.all_checks)
    return [checked(2.), checked(-2.), m.jax.grad(lambda x: checked(x)[1])(2.),
            m.c.checkify(m.jax.grad(f))(2.), m.jax.vmap(checked)(m.jnp.array([1., -1]))]


@program
def a_checkpoint(m):
    f = m.jax.checkpoint(lambda x: m.jnp.sin(x) / x)
    checked = m.c.checkify(m.jax.grad(f), errors=m.c.float_checks)
    return [checked(0.), checked(1.)]


# ── Which errors ─────────────────────────────────────────────────────────────────────────────

@program
def what_is_not_asked_for_is_not_told(m):
    f = m.jax.jit(sine_at(m))
    return [m.c.checkify(f, errors=errors)(m.jnp.ones(3), -5) for errors in (
        m.c.index_checks, m.c.nan_checks, m.c.div_checks, m.c.user_checks, m.c.automatic_checks)]


@program
def kinds_of_access(m):
    x = m.jnp.arange(12.).reshape(3, 4)
    row = m.jnp.array([0, 7])
    return [m.c.checkify(f, errors=m.c.index_checks)()[0] for f in (
        lambda: x[row], lambda: x[0, row], lambda: x[-row], lambda: x[m.jnp.int32(2)],
        lambda: x.at[row].set(1.), lambda: x.at[:, row].add(1.),
        lambda: m.lax.dynamic_slice(x, (2, 1), (2, 2)), lambda: m.lax.dynamic_index_in_dim(x, 3),
        lambda: m.lax.dynamic_update_slice(x, x[:1], (3, 0)), lambda: m.jnp.take(x, 5, axis=1))]


@program
def integers_are_divided(m):
    f = m.c.checkify(lambda x: x // m.jnp.array([1, 0]), errors=m.c.div_checks)
    return f(m.jnp.arange(2))[0]


@program
def an_array_in_a_message(m):
    """Is one, and not a NumPy scalar, wherever the check is made."""
    x = m.jnp.float32(1.5)
    return [m.c.checkify(lambda: m.c.check(x > 2, "{tree}", tree={"a": x}))(),
            m.c.check(x > 2, "{tree}", tree={"a": x})]


# ── What is refused ──────────────────────────────────────────────────────────────────────────

@program
def a_condition_that_is_no_scalar(m):
    m.c.check(m.jnp.array([True, False]), "message")


@program
def a_condition_that_is_a_number(m):
    m.c.debug_check(m.jnp.array(1), "message")


@program
def an_argument_of_the_message_that_is_no_array(m):
    m.c.check(False, "message {}", "text")


@program
def an_error_that_is_none(m):
    m.c.check_error("text")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_tells_what_jax_tells(name):
    ours, theirs = (told(library, PROGRAMS[name]) for library in (OURS, THEIRS))
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert same(one, other), (one, other)


def test_where_jax_looks_for_nans_a_block_says_that_there_may_be_one():
    ours = {p.name: p.may_produce_nan for p in test_laws.every_block()}
    names = [p.name for p in nan_primitives]
    assert len(set(names) & ours.keys()) > 40
    assert not [name for name in names if not ours.get(name, True)]


def test_a_batch_of_loops_has_the_errors_of_those_that_go_on():
    """Which JAX refuses; in the differences stands more of this kind."""
    m = OURS

    def f(x):
        def body(x):
            m.c.check(x != 7, "seven")
            return x + 2
        return m.lax.while_loop(lambda x: x < 10, body, x)
    errors, out = m.jax.vmap(m.c.checkify(f))(m.jnp.arange(5))
    assert errors.get() == ("at mapped index 1: seven (`check` failed)\n"
                            "at mapped index 3: seven (`check` failed)")
    error, again = m.c.checkify(m.jax.vmap(f))(m.jnp.array([0, 10, 17]))
    assert error.get() is None and out.tolist() == [10, 11, 10, 11, 10]
    assert again.tolist() == [10, 10, 17]


def test_compiled_code_raises_where_the_flag_says_so():
    def f(x):
        OURS.c.check(x > 0, "{} is not positive", x)
        return x
    with minijax.config.xla_runtime_errors(True):
        run = minijax.jit(f)
        assert run(2) == 2
        with pytest.raises(minijax.errors.JaxRuntimeError, match="-2 is not positive"):
            run(-2)


def test_an_error_says_where_the_check_stands():
    def f(x):
        OURS.c.check(x > 0, "not positive")  # here
    error, _ = minijax.jit(OURS.c.checkify(f))(-1)
    with pytest.raises(OURS.c.JaxRuntimeError) as found:
        error.throw()
    assert '"not positive")  # here' in found.value.__cause__.__notes__[0]
    assert str(error) == "Error(not positive (`check` failed))"


@pytest.fixture
def two_devices():
    before = minijax.config.num_cpu_devices.value
    minijax.config.update("num_cpu_devices", 2)
    yield
    minijax.config.update("num_cpu_devices", before)


def on_both_rows(m, mapped, x):
    m.c.debug_check(m.jnp.all(x > 1), "for debugging")
    m.c.check(m.jnp.all(x > 0), "not positive: {}", x)
    errors, _ = mapped(m.c.checkify(lambda x: m.c.check(x > 1, "{} is not above one", x)))(x)
    assert errors.get() == "at mapped index 0: 1.0 is not above one (`check` failed)"
    errors.throw()


@pytest.mark.parametrize("values", [[1, 2], [0, 1]])
def test_a_check_of_an_array_on_several_devices_raises_as_on_one(values, two_devices):
    x = np.float32(values)
    ours = minijax.pmap(lambda x: x)(x)
    assert len(ours.devices()) == 2
    assert told(OURS, lambda m: on_both_rows(m, minijax.pmap, ours)) == told(
        THEIRS, lambda m: on_both_rows(m, jax.vmap, jax.numpy.array(x)))
