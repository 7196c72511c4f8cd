"""Branches: values, derivatives, batches and refusals are JAX's; what a check sees of a batch."""

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import config, errors, grad, jit, lax, random, vmap

X = np.array([0.5, -0.3, 1.2], np.float32)


def both(f):
    return f(minijax), f(jax)


def same(f, rtol=1e-5):
    ours, theirs = both(f)
    for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert (a.dtype, a.weak_type) == (b.dtype, b.weak_type)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


def choose(lib):
    jnp = lib.numpy
    return lambda x: lib.lax.cond(x > 0, lambda v: jnp.sin(v) * 2, lambda v: v * v, x)


@pytest.mark.parametrize("x", [0.7, -0.7])
@pytest.mark.parametrize("transform", [
    lambda lib, f: f, lambda lib, f: lib.jit(f), lambda lib, f: lib.grad(f),
    lambda lib, f: lib.jit(lib.grad(lib.grad(f))),
    lambda lib, f: lambda x: lib.linearize(f, x)[1](2.0),
    lambda lib, f: lambda x: lib.vmap(f)(lib.numpy.stack([x, -x]))],
    ids=["eval", "jit", "grad", "jit grad grad", "linearize", "vmap"])
def test_a_branch_under_every_transformation(transform, x):
    same(lambda lib: transform(lib, choose(lib))(x))


def test_a_batched_choice_selects_for_each_example():
    same(lambda lib: lib.vmap(lib.grad(choose(lib)))(X))
    same(lambda lib: lib.vmap(lambda i, x: lib.lax.switch(
        i, [lib.numpy.sin, lib.numpy.cos, lambda v: v], x))(np.array([0, 2, 7]), X))


def test_a_batched_branch_that_is_not_taken_cannot_spoil_a_derivative():
    x = np.array([0.0, 2.0, -2.0], np.float32)
    same(lambda lib: lib.grad(lambda x: lib.vmap(lambda v: lib.lax.cond(
        v > 0, lib.numpy.log, lambda v: 0.0, v))(x).sum())(x))
    same(lambda lib: lib.grad(lambda x: lib.vmap(lambda i, v: lib.lax.switch(
        i, [lambda v: 0.0 * v, lib.numpy.log, lib.numpy.sqrt], v))(
            np.array([0, 1, 7]), x * x).sum())(x))


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_an_index_is_clamped_to_the_branches(index):
    same(lambda lib: lib.lax.switch(index, [lambda x: x, lambda x: x * 10, lambda x: -x], 2.0))


def test_branches_may_close_over_different_values():
    def f(lib):
        a, b = lib.numpy.float32(2), lib.numpy.ones(3)
        return lib.grad(lambda x: lib.lax.cond(x > 0, lambda: (a * x * b).sum(),
                                               lambda: x * a))(1.5)
    same(f)


def test_weak_types_give_way():
    same(lambda lib: lib.lax.cond(True, lambda: 1.0, lambda: np.float32(2)))
    same(lambda lib: lib.lax.cond(True, lambda: 1.0, lambda: 2.0))


def test_old_and_keyword_forms():
    same(lambda lib: lib.lax.cond(True, lambda x: x, lambda x: -x, operand=3.0))
    same(lambda lib: lib.lax.cond(np.float32(2.0), lambda: 1, lambda: 2))


CALLS = {
    "operand=None is an operand": lambda lib: lib.lax.cond(
        True, lambda x: 1.0 if x is None else 2.0, lambda x: 3.0, operand=None),
    "operand=None of switch": lambda lib: lib.lax.switch(
        1, [lambda x: 3.0, lambda x: 1.0 if x is None else 2.0], operand=None),
    "operand= of switch": lambda lib: lib.lax.switch(0, [abs, abs], operand=-2.0),
    "an operand for each": lambda lib: [lib.lax.cond(
        p, (1.0, 2.0), lambda x: x[0] + x[1], 5.0, lambda x: x) for p in (True, False)],
    "nothing for each": lambda lib: lib.lax.cond(True, None, lambda x: 1.0, None, lambda x: 2.0),
    "functions by keyword": lambda lib: lib.lax.cond(
        pred=0, true_fun=lambda x: x, false_fun=lambda x: -x, operand=4.0),
    "a tuple of branches": lambda lib: lib.lax.switch(1, (abs, lambda x: x), -1.0),
    "weak and strong": lambda lib: [
        lib.lax.cond(True, *fs) for one in (lambda: 1, lambda: np.int32(2))
        for fs in ((one, lambda: 1), (one, lambda: np.int32(2)))],
    "weak and strong in a batch": lambda lib: lib.vmap(lambda p: lib.lax.cond(
        p, lambda: np.int32(2), lambda: 1))(lib.numpy.array([True, False]))[0],
    "weak and strong of switch": lambda lib: lib.lax.switch(
        1, [lambda: 1.0, lambda: np.float32(2)]),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "disable_jit"])
def test_every_form_of_call_means_what_it_means_in_jax(name, compiled):
    with minijax.disable_jit(not compiled), jax.disable_jit(not compiled):
        ours, theirs = both(CALLS[name])
    for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert float(a) == float(b)
        assert getattr(a, "weak_type", type(a)) == getattr(b, "weak_type", type(b))


BAD = {
    "operand=None and another": lambda lib: lib.lax.cond(
        True, lambda x: x, lambda x: x, 1.0, operand=None),
    "both kinds of operand of switch": lambda lib: lib.lax.switch(
        0, [lambda x: x], 1.0, operand=2.0),
    "a complex predicate": lambda lib: lib.lax.cond(1j, lambda: 1, lambda: 2),
    "a weak type that would change": lambda lib: lib.lax.cond(True, lambda: 1, lambda: np.int8(1)),
    "no scalar": lambda lib: lib.lax.cond(X, lambda: 1, lambda: 2),
    "no callable": lambda lib: lib.lax.cond(True, lambda x: x, 3, 1),
    "no number": lambda lib: lib.lax.cond("a", lambda: 1, lambda: 2),
    "no array": lambda lib: lib.lax.cond(True, lambda x: x, lambda x: x, "a"),
    "other dtypes": lambda lib: lib.lax.cond(True, lambda: np.float32(1), lambda: np.int32(2)),
    "another tree": lambda lib: lib.lax.cond(True, lambda: 1, lambda: [1]),
    "another tree inside": lambda lib: lib.lax.switch(0, [lambda: {"a": 1}, lambda: {"a": (1,)}]),
    "other shapes": lambda lib: lib.lax.cond(True, lambda: (1, X), lambda: (1, X[:2])),
    "three other types": lambda lib: lib.lax.cond(True, lambda: (1, X, 1j), lambda: (X, 1.0, 1)),
    "three other trees": lambda lib: lib.lax.switch(
        0, [lambda: (1, (2,), [3]), lambda: ((1,), 2, 3)]),
    "float index": lambda lib: lib.lax.switch(1.0, [lambda: 1, lambda: 2]),
    "no branches": lambda lib: lib.lax.switch(1, []),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_jaxs_words(name, refused_alike):
    refused_alike(BAD[name])


def test_branches_are_traced_in_jaxs_order(beside_jax):
    def traced(lib):
        seen = []
        lib.lax.cond(False, lambda: seen.append("true"), lambda: seen.append("false"))
        lib.lax.switch(1, [lambda i=i: seen.append(i) for i in range(3)])
        return seen
    ours, theirs = beside_jax(traced)
    assert ours == theirs


def test_branches_of_different_trees_are_named_with_their_lines():
    one, two = (lambda: (1, 2)), (lambda: 1)
    with pytest.raises(TypeError, match="same pytree structure") as caught:
        minijax.lax.cond(True, one, two)
    assert str(caught.value).count("test_cond.py:") == 2


# ── A batch of which only some examples take part: a check counts for these alone ────────────

ROWS = np.arange(5.0, dtype=np.float32)
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
    "jit of grad of vmap of checkpoint": lambda f: jit(summed(minijax.checkpoint(f))),
    "vmap of vmap": lambda f: vmap(vmap(f, (None, 0)), (0, None))}


def run(transform, f, i):
    x = jnp.asarray(ROWS)
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
        assert vmap(find, (None, 0))(jnp.asarray(ROWS), jnp.array([2.0, 4.0])).tolist() == [2, 4]
        with pytest.raises(errors.OutOfBoundsError, match="index 5"):
            vmap(find, (None, 0))(jnp.asarray(ROWS), jnp.array([2.0, 9.0]))


def test_collecting_changes_no_value_and_prints_no_more(capfd):
    def f(x, i):
        def read():
            minijax.debug.print("{i}", i=i)
            return x[i] + random.uniform(random.fold_in(random.key(0), i))
        return lax.cond(i <= 5, read, lambda: -1.0)
    x, i = jnp.asarray(ROWS), jnp.array([7, 5, 2])
    plain = jit(vmap(f, (None, 0)))(x, i)
    printed = capfd.readouterr().out
    collecting = minijax.checking_sharp_bits(False, collect=True)
    with collecting as found, config.debug_out_of_bounds(True):
        checked = jit(vmap(f, (None, 0)))(x, i)
    np.testing.assert_array_equal(np.asarray(checked), np.asarray(plain))
    assert capfd.readouterr().out == printed
    assert len(found) == 1 and "index 5" in found[0].message


def test_keys_may_be_among_the_operands():
    def f(i, key):
        return lax.cond(i < 5, lambda i, k: jnp.asarray(ROWS)[i] + random.uniform(k),
                        lambda i, k: random.normal(k), i, key)
    keys = random.split(random.key(0), 3)
    plain = vmap(f)(jnp.asarray(INSIDE), keys)
    with config.debug_out_of_bounds(True):
        np.testing.assert_array_equal(np.asarray(vmap(f)(jnp.asarray(INSIDE), keys)),
                                      np.asarray(plain))


def test_a_derivative_rule_of_a_branch_that_is_not_taken_is_not_looked_at():
    @minijax.custom_jvp
    def row(x, i):
        return x[i]
    row.defjvp(lambda primals, tangents: (row(*primals), tangents[0][primals[1]]))

    def f(x, i):
        return lax.cond(i < 5, lambda: row(x, i), lambda: -1.0)
    for i in (INSIDE, NONE):
        plain = run("grad of vmap", f, i)
        with config.debug_out_of_bounds(True):
            np.testing.assert_array_equal(np.asarray(run("grad of vmap", f, i)), np.asarray(plain))


def test_examples_that_talk_to_each_other_are_left_alone():
    def f(i):
        return lax.cond(i < 5, lambda: lax.psum(jnp.asarray(ROWS)[i], "batch"), lambda: 0.0)
    plain = vmap(f, axis_name="batch")(jnp.asarray(INSIDE))
    with config.debug_out_of_bounds(True):
        checked = vmap(f, axis_name="batch")(jnp.asarray(INSIDE))
    np.testing.assert_array_equal(np.asarray(checked), np.asarray(plain))


def test_a_batch_of_nothing_is_not_looked_at():
    with config.debug_out_of_bounds(True):
        for f in (guarded, walk):
            assert vmap(f, (None, 0))(jnp.asarray(ROWS), jnp.zeros(0, int)).shape == (0,)
