"""In a batch of which only some examples take part, a check counts for these alone."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import config, errors, grad, jit, lax, random, vmap

X = np.arange(5.0, dtype=np.float32)
INSIDE, NONE, ALL = np.array([7, 0, 2]), np.array([7, 8, 9]), np.array([1, 0, 2])


def guarded(x, i):
    return lax.cond(i < 5, lambda i: x[i] ** 2, lambda i: -1.0, i)


def badly_guarded(x, i):
    return lax.cond(i <= 5, lambda i: x[i] ** 2, lambda i: -1.0, i)


def nested(x, i):
    return lax.cond(i > 0, lambda: guarded(x, i) + guarded(x, i - 1), lambda: x[i + 4])


def switched(x, i):
    return lax.switch(i, [lambda: x[i + 4], lambda: x[i + 3], lambda: x[jnp.minimum(i, 4)]])


def walk(x, i, limit=5):
    return lax.while_loop(lambda s: s[0] < limit, lambda s: (s[0] + 1, s[1] + x[s[0]]),
                          (i, 0.0))[1]


def scanned(x, i):
    return lax.scan(lambda c, j: (c + guarded(x, i + j), guarded(x, j)), 0.0,
                    jnp.arange(3))[0]


def summed(f):
    return lambda x, i: grad(lambda x: vmap(f, (None, 0))(x, i).sum())(x)


TRANSFORMED = {
    "vmap": lambda f: vmap(f, (None, 0)),
    "jit of vmap": lambda f: jit(vmap(f, (None, 0))),
    "vmap of jit": lambda f: vmap(jit(f), (None, 0)),
    "vmap of grad": lambda f: vmap(grad(f), (None, 0)),
    "grad of vmap": summed,
    "jit of grad of vmap of checkpoint": lambda f: jit(summed(jax.checkpoint(f))),
    "vmap of vmap": lambda f: vmap(vmap(f, (None, 0)), (0, None))}


def run(transform, f, i):
    x = jnp.asarray(X)
    return TRANSFORMED[transform](f)(jnp.stack([x, x + 1]) if transform == "vmap of vmap" else x,
                                     jnp.asarray(i))


FEW = ["vmap", "jit of vmap", "grad of vmap"]
CASES = [(guarded, transform, i) for transform in TRANSFORMED for i in (INSIDE, NONE, ALL)]
CASES += [(f, transform, i) for f in (nested, switched, scanned) for transform in FEW
          for i in (INSIDE, NONE)]


@pytest.mark.parametrize("f, transform, i", CASES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_a_branch_that_an_example_does_not_take_is_not_looked_at_for_it(f, transform, i):
    plain = run(transform, f, i)
    with config.debug_out_of_bounds(True):
        checked = run(transform, f, i)
    np.testing.assert_allclose(np.asarray(checked), np.asarray(plain), rtol=1e-6)


@pytest.mark.parametrize("transform", TRANSFORMED)
def test_a_branch_that_one_example_takes_is(transform):
    plain = run(transform, guarded, INSIDE)
    with config.debug_out_of_bounds(True):
        checked = run(transform, guarded, INSIDE)
        np.testing.assert_allclose(np.asarray(checked), np.asarray(plain), rtol=1e-6)
        run(transform, badly_guarded, NONE)
        with pytest.raises(errors.OutOfBoundsError, match="index 5 is out of bounds") as caught:
            run(transform, badly_guarded, [7, 5, 2])
    assert caught.value.finding.function == "<lambda>"


@pytest.mark.parametrize("transform", ["vmap", "jit of vmap", "vmap of jit", "vmap of vmap"])
def test_examples_whose_loop_has_ended_are_not_looked_at(transform):
    starts = [0, 3, 5, 9]
    plain = run(transform, walk, starts)
    with config.debug_out_of_bounds(True):
        np.testing.assert_array_equal(np.asarray(run(transform, walk, starts)), np.asarray(plain))
        with pytest.raises(errors.OutOfBoundsError, match="index 5 is out of bounds"):
            run(transform, lambda x, i: walk(x, i, 6), starts)


def test_a_condition_of_a_loop_is_looked_at_for_every_example():
    def find(x, wanted):
        return lax.while_loop(lambda i: x[i] != wanted, lambda i: i + 1, 0)
    with config.debug_out_of_bounds(True):
        assert vmap(find, (None, 0))(jnp.asarray(X), jnp.array([2.0, 4.0])).tolist() == [2, 4]
        with pytest.raises(errors.OutOfBoundsError, match="index 5"):
            vmap(find, (None, 0))(jnp.asarray(X), jnp.array([2.0, 9.0]))


def test_collecting_changes_no_value_and_prints_no_more(capfd):
    def f(x, i):
        def read():
            jax.debug.print("{i}", i=i)
            return x[i] + random.uniform(random.fold_in(random.key(0), i))
        return lax.cond(i <= 5, read, lambda: -1.0)
    x, i = jnp.asarray(X), jnp.array([7, 5, 2])
    plain = jit(vmap(f, (None, 0)))(x, i)
    printed = capfd.readouterr().out
    with jax.checking_sharp_bits(False, collect=True) as found, config.debug_out_of_bounds(True):
        checked = jit(vmap(f, (None, 0)))(x, i)
    np.testing.assert_array_equal(np.asarray(checked), np.asarray(plain))
    assert capfd.readouterr().out == printed
    assert len(found) == 1 and "index 5" in found[0].message


def test_keys_may_be_among_the_operands():
    def f(i, key):
        return lax.cond(i < 5, lambda i, k: jnp.asarray(X)[i] + random.uniform(k),
                        lambda i, k: random.normal(k), i, key)
    keys = random.split(random.key(0), 3)
    plain = vmap(f)(jnp.asarray(INSIDE), keys)
    with config.debug_out_of_bounds(True):
        np.testing.assert_array_equal(np.asarray(vmap(f)(jnp.asarray(INSIDE), keys)),
                                      np.asarray(plain))


def test_examples_that_talk_to_each_other_are_left_alone():
    def f(i):
        return lax.cond(i < 5, lambda: lax.psum(jnp.asarray(X)[i], "batch"), lambda: 0.0)
    plain = vmap(f, axis_name="batch")(jnp.asarray(INSIDE))
    with config.debug_out_of_bounds(True):
        checked = vmap(f, axis_name="batch")(jnp.asarray(INSIDE))
    np.testing.assert_array_equal(np.asarray(checked), np.asarray(plain))


def test_a_batch_of_nothing_is_not_looked_at():
    with config.debug_out_of_bounds(True):
        for f in (guarded, walk):
            assert vmap(f, (None, 0))(jnp.asarray(X), jnp.zeros(0, int)).shape == (0,)
