"""Keys that are consumed twice are found wherever they went; what is computed again is no use."""

import copy
import gc
import re
import threading

import jax as real_jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import config, errors, lax, random
from minijax.sharp_bits import key_reuse


@pytest.fixture(autouse=True)
def checked():
    with config.debug_key_reuse(True):
        yield


# ---- programs that consume a key twice, and JAX's check finds it


def two_draws(jax):
    key = jax.random.key(0)
    return jax.random.normal(key), jax.random.uniform(key)


def a_draw_after_a_split(jax):
    key = jax.random.key(0)
    jax.random.split(key)
    return jax.random.normal(key)


def a_loop_of_python(jax):
    key = jax.random.key(0)
    return [jax.random.normal(key) for _ in range(3)]


def two_draws_in_compiled_code(jax):
    f = jax.jit(lambda key: jax.random.normal(key) + jax.random.uniform(key))
    return f(jax.random.key(0))


def two_calls_of_compiled_code(jax):
    f, key = jax.jit(jax.random.normal), jax.random.key(0)
    return f(key), f(key)


def a_key_that_compiled_code_closed_over(jax):
    key = jax.random.key(0)
    f = jax.jit(lambda x: x * jax.random.normal(key))
    return f(1.0), f(2.0)


def a_constant_of_a_scan(jax):
    key = jax.random.key(0)
    return jax.lax.scan(lambda c, _: (c + jax.random.normal(key), None), 0.0, None, length=3)


def a_carry_of_a_scan(jax):
    def body(carry, _):
        x, key = carry
        return (x + jax.random.normal(key), key), None
    return jax.lax.scan(body, (0.0, jax.random.key(0)), None, length=3)


def a_constant_of_a_while_loop(jax):
    key = jax.random.key(0)
    return jax.lax.while_loop(lambda x: x < 3, lambda x: x + 1 + 0 * jax.random.uniform(key), 0.0)


def after_a_branch(jax):
    key = jax.random.key(0)
    x = jax.jit(lambda flag, key: jax.lax.cond(
        flag, jax.random.normal, jax.random.uniform, key))(True, key)
    return x + jax.random.normal(key)


def one_key_of_several_in_compiled_code(jax):
    @jax.jit
    def f(keys):
        return jax.random.normal(keys[0]) + jax.random.uniform(keys[0])
    return f(jax.random.split(jax.random.key(0)))


def many_keys_twice(jax):
    keys = jax.random.split(jax.random.key(0), 4)
    return jax.vmap(jax.random.normal)(keys), jax.vmap(jax.random.uniform)(keys)


def a_derivative_twice(jax):
    key = jax.random.key(0)
    slope = jax.grad(lambda x: x * jax.random.normal(key))
    return slope(1.0), slope(2.0)


def a_key_of_a_checkpointed_function(jax):
    f = jax.checkpoint(lambda x, key: x * jax.random.normal(key))
    key = jax.random.key(0)
    return jax.jit(lambda x, key: f(x, key) + f(x, key))(1.0, key)


def numbers_by_rejection(jax):
    key = jax.random.key(0)
    return jax.random.gamma(key, 1.0), jax.random.loggamma(key, 2.0)


REUSED = [two_draws, numbers_by_rejection, a_draw_after_a_split, a_loop_of_python,
          two_draws_in_compiled_code, two_calls_of_compiled_code,
          a_key_that_compiled_code_closed_over, a_constant_of_a_scan,
          a_carry_of_a_scan, a_constant_of_a_while_loop, after_a_branch,
          one_key_of_several_in_compiled_code, many_keys_twice, a_derivative_twice,
          a_key_of_a_checkpointed_function]


# ---- programs that consume each key once


def a_chain_of_splits(jax):
    key = jax.random.key(0)
    for _ in range(3):
        key, part = jax.random.split(key)
        jax.random.normal(part)


def folding_in(jax):
    key = jax.random.key(0)
    return [jax.random.normal(jax.random.fold_in(key, i)) for i in range(3)]


def the_same_seed_twice(jax):
    return jax.random.normal(jax.random.key(0)), jax.random.normal(jax.random.key(0))


def a_clone(jax):
    key = jax.random.key(0)
    return jax.random.normal(key), jax.random.normal(jax.random.clone(key))


def looking_at_a_key(jax):
    key = jax.random.key(0)
    jax.random.normal(key)
    return jax.random.key_data(key), key == key, repr(key)


def a_scan_that_splits(jax):
    def body(carry, _):
        x, key = carry
        key, part = jax.random.split(key)
        return (x + jax.random.normal(part), key), None
    return jax.lax.scan(body, (0.0, jax.random.key(0)), None, length=5)


def a_scan_over_keys(jax):
    keys = jax.random.split(jax.random.key(0), 20)
    return jax.lax.scan(lambda c, k: (c + jax.random.normal(k), None), 0.0, keys)


def a_while_loop_that_folds_in(jax):
    def body(carry):
        i, key = carry
        return i + 1 + 0 * jax.random.bits(jax.random.fold_in(key, 1)).astype("int32"), key
    return jax.lax.while_loop(lambda c: c[0] < 3, body, (0, jax.random.key(0)))


def one_use_in_each_branch(jax):
    f = jax.jit(lambda flag, key: jax.lax.cond(
        flag, jax.random.normal, jax.random.uniform, key))
    return f(True, jax.random.key(0)), f(False, jax.random.key(1))


def a_checkpoint_under_grad(jax):
    f = jax.checkpoint(lambda x, key: jax.numpy.sin(x) * jax.random.normal(key) * x)
    return jax.grad(lambda x: f(jax.numpy.cos(x), jax.random.key(0)))(1.0)


def a_checkpoint_under_grad_in_compiled_code(jax):
    f = jax.checkpoint(lambda x, key: jax.numpy.sin(x) * jax.random.normal(key) * x)
    return jax.jit(jax.grad(lambda x, key: f(jax.numpy.cos(x), key)))(1.0, jax.random.key(0))


def a_second_derivative(jax):
    key = jax.random.key(0)
    return jax.hessian(lambda x: jax.numpy.sin(x) * jax.random.normal(key))(1.0)


def a_key_shared_by_a_batch(jax):
    return jax.vmap(lambda key, x: jax.random.normal(key) + x, in_axes=(None, 0))(
        jax.random.key(0), jax.numpy.arange(3.0))


def a_batch_of_loops(jax):
    def one(x):
        def body(carry, _):
            x, key = carry
            key, part = jax.random.split(key)
            return (x * jax.random.normal(part), key), None
        return jax.lax.scan(body, (x, jax.random.key(0)), None, length=3)[0][0]
    return jax.vmap(one)(jax.numpy.arange(3.0))


def keys_in_a_table(jax):
    keys = jax.random.split(jax.random.key(0), (2, 2))
    return jax.vmap(jax.vmap(jax.random.normal))(keys.reshape(4)[::-1].reshape(2, 2))


FINE = [a_chain_of_splits, folding_in, the_same_seed_twice, a_clone, looking_at_a_key,
        a_scan_that_splits, a_scan_over_keys, a_while_loop_that_folds_in, one_use_in_each_branch,
        a_checkpoint_under_grad, a_checkpoint_under_grad_in_compiled_code, a_second_derivative,
        a_key_shared_by_a_batch, a_batch_of_loops, keys_in_a_table]


@pytest.mark.parametrize("program", REUSED)
def test_a_key_is_consumed_twice_by(program):
    with pytest.raises(errors.KeyReuseError, match="Previously-consumed key|already consumed"):
        program(minijax)


def test_a_branch_that_names_the_first_key_beyond_the_table_leaves_room_for_the_next_branch():
    key_reuse.names.count = len(key_reuse.names.consumed)
    with pytest.raises(errors.KeyReuseError, match="already consumed|Previously-consumed"):
        after_a_branch(minijax)


@pytest.mark.parametrize("program", FINE)
def test_no_key_is_consumed_twice_by(program):
    program(minijax)


# JAX compiles each of these anew, so only some are asked for.
@pytest.mark.parametrize("program", [*REUSED[:3], *REUSED[6:8], *FINE[:6]])
def test_jaxs_check_agrees_on(program):
    with real_jax.debug_key_reuse(True):
        if program in REUSED:
            with pytest.raises(real_jax.errors.KeyReuseError):
                program(real_jax)
        else:
            program(real_jax)


# ---- what JAX's check does not see: raw keys, and single keys of several


def raw_twice():
    key = random.PRNGKey(0)
    random.normal(key), random.uniform(key)


def raw_twice_in_compiled_code():
    minijax.jit(lambda key: random.normal(key) + random.uniform(key))(random.PRNGKey(0))


def a_raw_row_twice():
    keys = random.split(random.PRNGKey(0))
    random.normal(keys[1]), random.uniform(keys[1])


def a_raw_row_and_the_unpacked_one():
    keys = random.split(random.PRNGKey(0))
    _, part = keys
    random.normal(keys[1]), random.uniform(part)


def a_row_and_the_whole():
    keys = random.split(random.key(0), 4)
    random.normal(keys[2])
    minijax.vmap(random.normal)(keys[jnp.array([0, 2])])


def a_row_that_a_scan_consumed():
    keys = random.split(random.key(0), 50)
    lax.scan(lambda c, k: (c + random.normal(k), None), 0.0, keys)
    random.normal(keys[40])


def rows_of_a_long_scan(rows=slice(None), after=None):
    keys = random.split(random.key(0), 5000)
    lax.scan(lambda c, k: (c + random.normal(k), None), 0.0, keys[rows])
    if after is not None:
        random.normal(keys[after])


def a_row_that_a_long_scan_consumed():
    rows_of_a_long_scan(after=4321)


def the_last_row_of_a_long_scan():
    rows_of_a_long_scan(after=-1)


def the_same_row_again_late_in_a_long_scan():
    rows_of_a_long_scan(np.r_[0:4000, 3000, 4000:5000])


def keys_that_take_turns():
    def body(keys, _):
        return keys[::-1], random.normal(keys[0])
    lax.scan(body, random.split(random.key(0)), None, length=3)


def a_key_written_into_a_table():
    key = random.key(1)
    keys = random.split(random.key(0), 3).at[0].set(key)
    random.normal(key), random.normal(keys[0])


@pytest.mark.parametrize("program", [
    raw_twice, raw_twice_in_compiled_code, a_raw_row_twice, a_raw_row_and_the_unpacked_one,
    a_row_and_the_whole, a_row_that_a_scan_consumed, a_row_that_a_long_scan_consumed,
    the_last_row_of_a_long_scan, the_same_row_again_late_in_a_long_scan, keys_that_take_turns,
    a_key_written_into_a_table])
def test_beyond_jax_a_key_is_consumed_twice_by(program):
    with pytest.raises(errors.KeyReuseError):
        program()


SAME_KEYS = {
    "index": lambda keys: keys[::-1][::-1], "ellipsis": lambda keys: keys[...],
    "ravel": lambda keys: keys.ravel().reshape(keys.shape),
    "reshape": lambda keys: keys.reshape(keys.shape),
    "squeeze": jnp.squeeze, "atleast_1d": jnp.atleast_1d, "array": jnp.array,
    "asarray": jnp.asarray, "copy": jnp.copy, "method copy": lambda keys: keys.copy(),
    "copy.copy": copy.copy, "copy.deepcopy": copy.deepcopy, "device_put": minijax.device_put,
    "device_put a copy": lambda keys: minijax.device_put(keys, may_alias=False),
    "jit": minijax.jit(lambda keys: keys),
    "broadcast": lambda keys: jnp.broadcast_to(keys, keys.shape),
    "stop_gradient": lax.stop_gradient, "expand_dims": lambda keys: keys[None][0],
}
SAME_WORDS = {"positive": jnp.positive, "conj": jnp.conj, "real": jnp.real,
              "astype": lambda keys: keys.astype("uint32")}


@pytest.mark.parametrize("way", [*SAME_KEYS, *SAME_WORDS])
def test_keys_are_the_same_keys_after(way):
    same = (SAME_KEYS | SAME_WORDS)[way]
    for make in (random.key, random.PRNGKey)[way in SAME_WORDS:]:
        keys = random.split(make(0))
        others = same(keys)
        random.normal(keys[1])
        random.normal(others[0])
        with pytest.raises(errors.KeyReuseError):
            random.normal(others[1])


def raw_keys_in_a_chain():
    key = random.PRNGKey(0)
    for _ in range(3):
        key, part = random.split(key)
        random.normal(part)


def raw_keys_in_compiled_code():
    @minijax.jit
    def f(key):
        a, b = random.split(key)
        return random.normal(a) + random.uniform(b)
    f(random.PRNGKey(0))


def each_row_of_keys_once():
    keys = random.split(random.key(0), 4)
    return random.normal(keys[0]), random.normal(keys[1]), [random.normal(k) for k in keys[2:]]


def a_loop_that_indexes_keys():
    keys = random.split(random.key(0), 5)
    minijax.jit(lambda keys: lax.fori_loop(
        0, 5, lambda i, c: c + random.normal(keys[i]), 0.0))(keys)


def a_loop_that_a_linear_function_runs_again():
    def body(carry):
        x, i, key = carry
        key, part = random.split(key)
        return x * random.normal(part), i + 1, key
    _, linear = minijax.linearize(lambda x: lax.while_loop(
        lambda c: c[1] < 3, body, (x, 0, random.key(0)))[0], 1.0)
    linear(1.0), linear(2.0)


def a_jitted_function_in_a_checkpoint():
    key = random.key(0)
    noisy = minijax.checkpoint(minijax.jit(lambda x: jnp.sin(x * random.normal(key))))
    minijax.jit(minijax.grad(lambda x: noisy(jnp.cos(x))))(1.0)


@pytest.mark.parametrize("program", [
    raw_keys_in_a_chain, raw_keys_in_compiled_code, each_row_of_keys_once,
    a_loop_that_indexes_keys, a_loop_that_a_linear_function_runs_again,
    a_jitted_function_in_a_checkpoint])
def test_beyond_jax_no_key_is_consumed_twice_by(program):
    program()


SAMPLERS = {"bernoulli": (), "bits": (), "categorical": (jnp.zeros(3),), "cauchy": (),
            "choice": (5, (3,), False), "exponential": (), "gumbel": (), "laplace": (),
            "logistic": (), "normal": (), "permutation": (7,), "rademacher": ((2,),),
            "randint": ((3,), 0, 9), "split": (), "truncated_normal": (-1.0, 1.0),
            "uniform": ()}


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_consumes_its_key_once(name):
    draw, key = getattr(random, name), random.key(0)
    draw(key, *SAMPLERS[name])
    with pytest.raises(errors.KeyReuseError):
        draw(key, *SAMPLERS[name])


# ---- what the error says, and what is kept


def draw_twice(key):
    random.normal(key)
    return random.uniform(key)


def test_the_error_names_both_lines():
    with pytest.raises(errors.KeyReuseError) as caught:
        draw_twice(random.key(0))
    line = draw_twice.__code__.co_firstlineno
    message = str(caught.value)
    assert re.search(rf"test_key_reuse.py:{line + 1} \(draw_twice\): random.normal\(key\)\n"
                     rf"and is consumed again at\n.*:{line + 2} \(draw_twice\)", message)
    found = caught.value.finding
    assert (found.kind, found.line) == ("debug_key_reuse", line + 2)
    assert "key, part = random.split(key)" in found.fix


def test_in_compiled_code_the_caller_is_named_too():
    with pytest.raises(errors.KeyReuseError) as caught:
        minijax.jit(draw_twice)(random.key(0))
    assert "called at test_key_reuse.py:" in str(caught.value)
    assert caught.value.finding.function == "draw_twice"


def test_a_sampler_traced_elsewhere_is_blamed_on_the_line_that_calls_it_now():
    random.normal(random.key(0), (17,))  # traced for this line
    key = random.key(1)
    random.normal(key, (17,))
    with pytest.raises(errors.KeyReuseError) as caught:
        random.normal(key, (17,))
    assert str(caught.value).count("random.normal(key, (17,))") == 2


def test_while_collecting_the_numbers_come_out_as_ever():
    with minijax.checking_sharp_bits(False, collect=True) as findings, config.debug_key_reuse():
        found = draw_twice(random.key(0))
    assert [f.kind for f in findings] == ["debug_key_reuse"]
    with config.debug_key_reuse(False):
        assert found == draw_twice(random.key(0))


def test_a_key_stays_consumed_after_the_error_and_another_is_free():
    key = random.key(0)
    for _ in range(2):
        with pytest.raises(errors.KeyReuseError):
            draw_twice(key)
    random.normal(random.key(0))


def test_what_was_consumed_without_the_check_counts_as_new():
    key = random.key(0)
    with config.debug_key_reuse(False):
        draw_twice(key)
    random.normal(key)


def test_set_for_good_the_check_sees_calls_that_were_remembered():
    draw = minijax.jit(random.normal)
    with config.debug_key_reuse(False):
        draw(random.key(0)), draw(random.key(0))
    key = random.key(0)
    config.update("jax_debug_key_reuse", True)
    try:
        draw(random.key(1)), draw(key)
        with pytest.raises(errors.KeyReuseError):
            draw(key)
    finally:
        config.update("jax_debug_key_reuse", False)


def test_nothing_is_kept_of_keys_that_are_gone():
    gc.collect()
    before = len(key_reuse._shadows)
    for seed in range(5):
        random.normal(random.key(seed))
    gc.collect()
    assert len(key_reuse._shadows) == before


def test_threads_do_not_mix_up_their_keys():
    problems = []

    def work(seed):
        try:
            with config.debug_key_reuse(True):
                raw_keys_in_a_chain()
                a_scan_that_splits(minijax)
        except Exception as error:
            problems.append(error)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_the_numpy_backend_is_checked_too():
    with config.platforms("numpy"):
        a_scan_that_splits(minijax)
        with pytest.raises(errors.KeyReuseError):
            two_draws_in_compiled_code(minijax)


def test_without_jit_each_operation_is_checked():
    with config.disable_jit(True):
        a_scan_that_splits(minijax)
        with pytest.raises(errors.KeyReuseError):
            a_constant_of_a_scan(minijax)


def test_under_the_flag_values_are_the_same():
    with config.debug_key_reuse(False):
        plain = [np.asarray(x) for x in a_scan_over_keys(minijax)[:1]]
    np.testing.assert_array_equal(plain, [np.asarray(a_scan_over_keys(minijax)[0])])


def test_a_long_loop_over_keys_that_nobody_uses_twice_is_quiet_and_ends():
    rows_of_a_long_scan()
    rows_of_a_long_scan(slice(None, None, -1), after=None)
    random.gamma(random.key(3), 2.0, (200_000,))
