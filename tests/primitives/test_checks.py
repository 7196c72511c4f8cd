"""The primitive `check`: it tells what it finds, when the program runs, and changes nothing."""

import math

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import config, errors, grad, jit, lax, vmap
from minijax.core.jaxpr import check_jaxpr
from minijax.compiler.lowered import Lowered
from minijax.compiler.simplify import simplify
from tests.running_text import run_text
from minijax.primitives.checks import Report, check_effect, check_p


class Heard(Report):
    """A report that keeps what it is told."""

    def __init__(self):
        self.told = []

    def __call__(self, x):
        self.told.append(np.asarray(x).tolist())


@pytest.fixture
def heard():
    return Heard()


def checking(heard, low=0, high=9, finite=True):
    def f(x):
        check_p.bind(x, low=low, high=high, finite=finite, report=heard)
        return x + x
    return f


def ways_to_run(f):
    def by_text(*args):
        closed = jax.make_jaxpr(f)(*args)
        return run_text(Lowered(closed, "f").kernel, [np.asarray(x) for x in args])[0]

    def by_numpy(*args):
        with config.platforms("numpy"):
            return jit(f)(*args)
    return {"eager": f, "compiled": jit(f), "text": by_text, "numpy": by_numpy}


@pytest.mark.parametrize("x", [
    np.int32(3), np.int32(-1), np.int32(10), np.arange(10, dtype=np.int32),
    np.array([[1, 2], [3, 40]], np.uint8), np.zeros(0, np.int32), np.zeros((0, 3), np.float32),
    np.float32(9.5), np.float32(np.nan), np.array([1, np.inf], np.float32),
    np.array([1, 9, 10], np.float16), np.arange(9000, dtype=np.int16) % 10,
    np.arange(9000, dtype=np.int32).reshape(9, 1000)], ids=lambda x: f"{x.dtype}{x.shape}")
def test_every_way_to_run_a_program_tells_the_same(x):
    for finite in {True, x.dtype.kind in "iu"}:
        wanted = [v for v in x.ravel().tolist()
                  if not 0 <= v <= 9 and (finite or math.isfinite(v))][:1]
        for name, run in ways_to_run(checking(heard := Heard(), finite=finite)).items():
            heard.told.clear()
            out = run(jnp.asarray(x))
            np.testing.assert_array_equal(np.asarray(out), x + x, err_msg=name)
            assert repr(heard.told) == repr(wanted), (name, finite)


def test_infinities_and_nans_are_inside_where_only_numbers_count(heard):
    f = jit(checking(heard, -1, 1, finite=False))
    f(jnp.array([np.nan, np.inf, -np.inf, 0.5]))
    assert not heard.told
    f(jnp.array([np.nan, 2.0]))
    assert len(heard.told) == 1


def test_a_report_that_raises_stops_the_call_and_nothing_else():
    class Told(Exception):
        finding = "what was told"

    class Refusing(Report):
        def __call__(self, x):
            raise Told(x.tolist())
    refuse = Refusing()
    f = jit(lambda x: lax.fori_loop(0, 3, lambda i, y: checking(refuse)(y), x))
    for _ in range(2):
        with pytest.raises(Told, match="12"):
            f(jnp.int32(3))  # 3, 6, 12: the first that is outside is told
        assert int(f(jnp.int32(1))) == 8


def test_the_effect_keeps_the_equation_where_nobody_reads_a_result(heard):
    def f(x):
        checking(heard)(x)
        checking(heard)(x)
        return 1.0
    closed = jax.make_jaxpr(f)(jnp.int32(3))
    assert closed.effects == {check_effect}
    assert len(simplify(closed).eqns) == 2  # equal equations with an effect are not merged
    check_jaxpr(closed.jaxpr)
    jit(f)(jnp.int32(30))
    assert heard.told == [30, 30]


def test_of_a_batch_it_tells_once(heard):
    f = vmap(vmap(checking(heard)), in_axes=1)
    f(jnp.array([[1, 20], [30, 4]]))
    assert len(heard.told) == 1 and heard.told[0] in (20, 30)
    jit(f)(jnp.array([[1, 2], [3, 4]]))
    assert len(heard.told) == 1


@pytest.mark.parametrize("transform", [
    lambda f: lambda x: jax.jvp(f, (x,), (x,)), grad, lambda f: lambda x: jax.vjp(f, x)[1](x),
    lambda f: lambda x: jax.linearize(f, x)[1](x), lambda f: jit(grad(f)),
    lambda f: grad(jit(f)), lambda f: grad(jax.checkpoint(f)),
    lambda f: lambda x: grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 1)[0])(x)])
def test_differentiation_looks_at_the_primal(heard, transform):
    transform(checking(heard))(jnp.float32(3.0))
    assert heard.told == []
    transform(checking(heard))(jnp.float32(11.0))
    assert set(heard.told) == {11.0}


def test_a_linear_program_is_transposed_past_a_check(heard):
    transposed = jax.linear_transpose(checking(heard), jnp.float32(1.0))
    assert float(transposed(jnp.float32(20.0))[0]) == 40.0
    assert heard.told == []  # the value is never there to be looked at


def test_there_is_no_way_back_through_it():
    with pytest.raises(errors.RuleNotImplementedError, match="it has no result"):
        check_p.rule("transpose")


def test_it_prints_its_bounds_and_not_who_is_told(heard):
    assert "check[high=9 low=0] a" in str(jax.make_jaxpr(checking(heard))(jnp.int32(3)))


def test_what_is_known_to_be_inside_is_not_recorded():
    x = jnp.arange(5.0)
    with config.debug_out_of_bounds(True), config.debug_unsafe_casts(True):
        text = str(jax.make_jaxpr(lambda y: (
            y[2], y[jnp.array([0, 4])], y[np.array([-1])], y.at[1].set(0), y[1:3],
            lax.dynamic_slice(y, (1,), (2,)), jnp.float16(2.5)))(x))
        assert "check" not in text
        assert "check" in str(jax.make_jaxpr(lambda y: y[7])(x))
