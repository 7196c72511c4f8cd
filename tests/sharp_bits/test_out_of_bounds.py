"""An index out of bounds is named, with its line, wherever it is; what is inside, or meant, is not.

``GENERATED=200`` generates two hundred programs; by default a few.
"""

import os

import jax as real_jax
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import config, errors, grad, jit, lax, ops, random, vmap
from tests.sharp_bits.generated_indexing import Generated

X = np.arange(1.0, 6.0, dtype=np.float32)
TABLE = np.arange(12.0, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def checked():
    with config.debug_out_of_bounds(True):
        yield


def refusal(f, *args):
    """What is said where `f` goes out of bounds."""
    with pytest.raises(errors.OutOfBoundsError) as caught:
        f(*args)
    return str(caught.value).splitlines()[0]


def findings_of(f, *args):
    with (jax.checking_sharp_bits(False, collect=True) as found,
          config.debug_out_of_bounds(True), config.debug_unsafe_casts(True)):
        return f(*args), found


# ---- generated programs


@pytest.mark.parametrize("seed", range(int(os.environ.get("GENERATED", 8))))
def test_the_line_is_named_and_the_twins_are_silent(seed):
    program = Generated(seed)
    x, bad, good = jnp.asarray(X), jnp.int32(program.bad), jnp.int32(program.good)
    plain = [program.plain(x, bad), program.plain(x, good), program.guarded(x, bad)]
    collected, found = findings_of(program.plain, x, bad)
    assert [(f.file, f.line, f.function) for f in found] == [(*program.line, "innermost")], program
    with config.debug_out_of_bounds(True), config.debug_unsafe_casts(True):
        with pytest.raises(program.error) as caught:
            program.plain(x, bad)
        assert caught.value.finding == found[0]
        checked = [collected, program.plain(x, good), program.guarded(x, bad)]
    np.testing.assert_allclose(np.asarray(checked), np.asarray(plain), rtol=1e-5)


# ---- what is said


@pytest.mark.parametrize("index", [5, -6, 100])
def test_an_index_is_refused_in_the_words_of_numpy(checked, index):
    with pytest.raises(IndexError) as theirs:
        X[index]
    for call in (lambda: jnp.asarray(X)[index], lambda: jit(lambda i: jnp.asarray(X)[i])(index),
                 lambda: jnp.asarray(X)[np.array([0, index])],
                 lambda: jnp.asarray(X).at[index].set(0.0),
                 lambda: vmap(lambda i: jnp.asarray(X)[i])(jnp.array([0, index, 1]))):
        assert refusal(call).startswith(f"{theirs.value}. Unchecked, ")


def test_the_error_names_function_file_and_line_and_what_to_do(checked):
    @jit
    def pick(x, i):
        return x[i] * 2

    with pytest.raises(errors.OutOfBoundsError) as caught:
        pick(X, 7)
    said, found = str(caught.value), caught.value.finding
    assert "In pick, test_out_of_bounds.py:" in said and "return x[i] * 2" in said
    assert "mode='fill'" in said
    assert (found.kind, found.function, found.file) == (
        "debug_out_of_bounds", "pick", "test_out_of_bounds.py")
    assert found.line == pick.__wrapped__.__code__.co_firstlineno + 2


def test_the_axis_is_that_of_the_array(checked):
    x = jnp.asarray(TABLE)
    assert "index 4 is out of bounds for axis 1 with size 4" in refusal(lambda: x[1, 4])
    assert "index 3 is out of bounds for axis 0 with size 3" in refusal(lambda: x[3])
    assert "axis 1 with size 4" in refusal(lambda: x[..., jnp.array([1, -5])])
    assert "axis 1 with size 4" in refusal(lambda: x[None, True, :, jnp.array([1, -5])])
    assert "axis 0 with size 3" in refusal(lambda: jnp.take(x, 3, axis=0))


@pytest.mark.parametrize("call, said", [
    (lambda x, i: lax.dynamic_slice(x, (i,), (2,)),
     "index 4 (or -1) is out of bounds for a window of 2 along axis 0 with size 5. Unchecked, "
     "the window is moved inside."),
    (lambda x, i: lax.dynamic_update_slice(x, x[:2], (i,)),
     "index 4 (or -1) is out of bounds for a window of 2 along axis 0 with size 5. Unchecked, "
     "the window is moved inside, and written there."),
    (lambda x, i: lax.gather(x, i[None], lax.GatherDimensionNumbers((0,), (), (0,)), (2,)),
     "index 4 is out of bounds for a window of 2 along axis 0 with size 5. Unchecked, the "
     "window is moved inside."),
    (lambda x, i: lax.scatter_add(x, i[None], x[:2], lax.ScatterDimensionNumbers(
        (0,), (), (0,))),
     "index 4 is out of bounds for a window of 2 along axis 0 with size 5. Unchecked, nothing "
     "is written there."),
    (lambda x, i: lax.dynamic_index_in_dim(x, i + 1, 0),
     "index 5 is out of bounds for axis 0 with size 5. Unchecked, the window is moved inside.")])
def test_a_window_that_sticks_out_is_refused(checked, call, said):
    for f in (call, jit(call)):
        assert refusal(f, jnp.asarray(X), jnp.int32(4)) == said


@pytest.mark.parametrize("call", [
    lambda x, i: x[i], lambda x, i: x.at[i].get(), lambda x, i: jnp.take(x, i),
    lambda x, i: x.at[i].set(7.0), lambda x, i: x.at[i].add(7.0),
    lambda x, i: lax.dynamic_slice(x, (i,), (2,)), lambda x, i: x.at[i].min(0.0)])
def test_what_happens_unchecked_is_what_jax_does(call):
    theirs = {real_jax.numpy: call}
    ours = call(jnp.asarray(X), jnp.int32(7))
    found = findings_of(call, jnp.asarray(X), jnp.int32(7))
    names = {**call.__globals__, "jnp": real_jax.numpy, "lax": real_jax.lax}
    theirs = type(call)(call.__code__, names)(real_jax.numpy.asarray(X), 7)
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    np.testing.assert_array_equal(np.asarray(found[0]), np.asarray(theirs))
    assert len(found[1]) == 1


# ---- what is not said


@pytest.mark.parametrize("mode", ["clip", "fill", "drop"])
def test_a_mode_that_was_given_says_that_outside_is_meant(checked, mode):
    @jit
    def f(x, i):
        place = lax.GatherDimensionNumbers((), (0,), (0,))
        return (x.at[i].get(mode=mode), x.at[i].set(0.0, mode=mode), x.at[i].add(1.0, mode=mode),
                lax.gather(x, i[:, None], place, (1,), mode=mode),
                lax.scatter(x, i[:, None], x[:2], lax.ScatterDimensionNumbers(*place[:3]),
                            mode=mode))
    f(X, np.array([9, -9]))


def test_modes_of_take_that_were_given_are_not_refused(checked):
    for mode in ("clip", "fill", "wrap"):
        jit(lambda x, i, mode=mode: jnp.take(x, i, mode=mode))(X, np.array([9, -9]))


def test_a_promise_that_is_broken_is_refused(checked):
    place = jnp.array([[7]])
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    for call in (lambda x: x.at[7].get(mode="promise_in_bounds"),
                 lambda x: x.at[7].set(1.0, mode="promise_in_bounds"),
                 lambda x: lax.gather(x, place, numbers, (1,), mode="promise_in_bounds"),
                 lambda x: lax.scatter(x, place, x[:1], lax.ScatterDimensionNumbers(*numbers[:3]),
                                       mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)):
        assert "index 7 is out of bounds for axis 0 with size 5" in refusal(call, jnp.asarray(X))


def test_segments_that_are_not_there_are_dropped_as_documented(checked):
    total = ops.segment_sum(jnp.asarray(X), jnp.array([0, 1, 9, -1, 0]), num_segments=2)
    np.testing.assert_array_equal(np.asarray(total), [6.0, 2.0])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_indices_of_every_type_are_compared_with_what_they_can_say(checked, dtype):
    x = jnp.zeros(300)
    largest = min(np.iinfo(dtype).max, 299)
    places = jnp.array([0, largest], dtype)
    jit(lambda x, i: (x[i], x.at[i].add(1.0), jnp.take(x, i)))(x, places)
    if np.iinfo(dtype).max >= 300:
        assert "index 300" in refusal(jit(lambda x, i: x[i]), x, jnp.array([0, 300], dtype))
    if np.iinfo(dtype).min < 0:
        assert "index -4" in refusal(jit(lambda x, i: x[:3][i]), x, jnp.array([-4], dtype))


@pytest.mark.parametrize("index", [2 ** 40, -2 ** 70, np.array([2 ** 40]),
                                   np.array([2 ** 64 - 1], np.uint64)], ids=str)
def test_an_index_that_32_bits_cannot_say_is_outside(checked, index):
    assert "is out of bounds for axis 0 with size 5" in refusal(lambda: jnp.asarray(X)[index])


def test_empty_indices_masks_and_slices_are_never_outside(checked):
    x = jnp.asarray(X)
    assert x[jnp.zeros(0, int)].shape == (0,)
    assert x[x > 9].shape == (0,) and x[7:].shape == (0,) and x[:99].shape == (5,)


def test_the_branch_that_does_not_run_may_hold_an_index_that_is_known_to_be_outside(checked):
    short = jnp.arange(2.0)
    f = jit(lambda long: lax.cond(long, lambda: short[3], lambda: short[1]))
    assert f(False) == 1.0
    assert vmap(f)(jnp.array([False, False])).tolist() == [1.0, 1.0]
    assert "index 3" in refusal(f, True)


def test_functions_of_the_package_index_within_bounds(checked):
    x = jnp.asarray(TABLE)
    key = random.key(0)
    for call in (lambda: jnp.sort(x), lambda: jnp.searchsorted(x[0], x[1]), lambda: jnp.roll(x, 2),
                 lambda: random.choice(key, x[0], (9,)), lambda: random.permutation(key, x),
                 lambda: jnp.interp(x, x[0], x[1]), lambda: jnp.bincount(jnp.array([0, 9, 3])),
                 lambda: jnp.unique(x), lambda: jnp.linalg.solve(x[:, :3] + jnp.eye(3), x),
                 lambda: jnp.percentile(x, 30.0), lambda: jnp.linalg.svd(x),
                 lambda: jit(jnp.roll)(x, jnp.int32(-9))):
        call()


# ---- where it is looked


def test_every_backend_and_disable_jit_refuse_alike(checked):
    def walk(x, n):
        return lax.scan(lambda c, i: (c + x[i], x[i]), 0.0, jnp.arange(n))
    said = refusal(walk, jnp.asarray(X), 7)
    assert "index 5" in said
    with config.platforms("numpy"):
        assert refusal(walk, jnp.asarray(X), 7) == refusal(jit(walk, static_argnums=1), X, 7)
        assert refusal(walk, jnp.asarray(X), 7) == said
    with config.disable_jit(True):
        assert refusal(jit(walk, static_argnums=1), jnp.asarray(X), 7) == said
        walk(jnp.asarray(X), 5)


def test_the_forward_pass_alone_is_looked_at(checked):
    f = jit(grad(lambda x, i: x[i] ** 2 + jax.checkpoint(lambda x: x[i])(x)))
    assert "index 6" in refusal(f, X, 6)
    text = str(jax.make_jaxpr(grad(lambda x, i: x[i] ** 2))(X, 6))
    assert text.count("check[") == 1 and "scatter" in text or "dynamic_update_slice" in text
    np.testing.assert_array_equal(np.asarray(f(X, 1)), [0.0, 5.0, 0.0, 0.0, 0.0])


def test_a_check_is_kept_once_by_every_transformation(checked):
    def f(x):
        y = x[jnp.array([0, 2])]
        return y.sum()

    def g(x, i):
        return x[i]
    for transformed in (jit(g), lambda x, i: vmap(g, (None, 0))(x, jnp.stack([i, i])),
                        lambda x, i: jax.jvp(lambda x: g(x, i), (x,), (x,)),
                        lambda x, i: jax.linearize(lambda x: g(x, i), x)[0],
                        lambda x, i: jit(jit(g))(x, i)):
        text = str(jax.make_jaxpr(transformed)(X, 0))
        assert text.count("check[") == 1, text
    assert "check[" not in str(jax.make_jaxpr(f)(X))  # these are known to be inside


def test_a_loop_that_is_wrong_a_hundred_times_is_one_finding():
    x = jnp.asarray(X)
    total, found = findings_of(
        lambda: lax.fori_loop(0, 100, lambda i, c: c + x[i], 0.0))
    assert float(total) == 15.0 + 95 * 5.0
    assert len(found) == 1 and "index 5" in found[0].message


def test_nothing_is_left_after_an_error():
    f = jit(lambda x, i: x[i])
    x = jnp.asarray(X)
    with config.debug_out_of_bounds(True):
        for _ in range(3):
            assert "index 9" in refusal(f, x, 9)
            assert float(f(x, 4)) == 5.0
    assert float(f(x, 9)) == 5.0


def test_programs_are_the_same_where_the_flag_is_off():
    def f(x, i):
        y = jnp.take(x, i) + x[i] + x.at[i].set(i.astype("float32"))[0]
        return y + lax.dynamic_slice(x, (i,), (1,))
    before = str(jax.make_jaxpr(f)(X, np.int32(1)))
    with config.debug_out_of_bounds(True):
        checked = str(jax.make_jaxpr(f)(X, np.int32(1)))
    assert "check" not in before
    assert str(jax.make_jaxpr(f)(X, np.int32(1))) == before
    assert checked.count("check[") == 4 and "effects" not in before
