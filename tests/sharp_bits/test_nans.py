"""`debug_nans` and `debug_infs`: the line, the operation, its operands, the example, the round."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback

import jax as real
import numpy as np
import pytest
from ._planted import planted

import minijax as jax
from minijax import config, core, lax, nn, numpy as jnp
from minijax.scipy import special

PLANTED = int(os.environ.get("MINIJAX_PLANTED_PROGRAMS", "12"))


def finding_of(call):
    """What `call` is found to do, by the error that it raises."""
    with pytest.raises(FloatingPointError) as caught:
        call()
    assert isinstance(caught.value, jax.errors.NonFiniteError)
    return caught.value.finding


def line_of(function, number=1):
    """Line `number` of a function, its `def` being 0."""
    return function.__code__.co_firstlineno + number


def frames_of(call):
    with pytest.raises(FloatingPointError) as caught:
        call()
    return [(f.name, f.lineno) for f in traceback.extract_tb(caught.value.__traceback__)]


def guarded_root(x):
    return jnp.where(x > 0, jnp.sqrt(x), 0.0)


def quotient(x, y):
    product = x * y
    gap = x - y
    return product / gap


# ── Eager ────────────────────────────────────────────────────────────────────────────────────

def test_an_operation_that_gives_a_nan_is_named_with_its_line_and_its_operands():
    with jax.debug_nans(True):
        found = finding_of(lambda: quotient(jnp.float32(0.0), jnp.float32(0.0)))
    assert found.kind == "debug_nans"
    assert found.message == "invalid value (nan) encountered in div of 0.0 and 0.0"
    assert (found.function, found.file, found.line) == (
        "quotient", "test_nans.py", line_of(quotient, 3))
    assert "jnp.where" in found.fix


def test_in_an_array_the_operands_are_shown_where_the_output_is_bad():
    x = np.ones((3, 40), np.float32)
    x[2, 7] = -5.0
    with jax.debug_nans(True):
        found = finding_of(lambda: jnp.log(x))
    assert "log of -5.0 at index [2, 7] of float32[3,40]" in found.message


def test_long_operands_of_a_sum_are_shown_by_their_range():
    x = np.linspace(-1, 2, 50, dtype=np.float32)
    x[3], x[4] = np.inf, -np.inf
    with jax.debug_nans(True):
        found = finding_of(lambda: jnp.sum(x))
    assert "reduce_sum of float32[50] from -1.0 to 2.0" in found.message


def test_infinities_are_looked_for_by_a_flag_of_their_own():
    with jax.debug_nans(True):
        assert np.isinf(jnp.divide(1.0, 0.0))
    with jax.debug_infs(True):
        found = finding_of(lambda: jnp.divide(1.0, 0.0))
        assert np.isnan(jnp.divide(0.0, 0.0))
    assert found.kind == "debug_infs"
    assert found.message == "invalid value (inf) encountered in div of 1.0 and 0.0"


NAN = np.array([1.0, np.nan], np.float32)
AS_IN_JAX = {
    "div": lambda np_, x: np_.divide(0.0, 0.0),
    "log": lambda np_, x: np_.log(np_.array([1.0, -1.0])),
    "add of a nan": lambda np_, x: x + 1,
    "reshape of a nan": lambda np_, x: x.reshape(1, 2),
    "inf - inf": lambda np_, x: np_.inf * np_.ones(2) - np_.inf * np_.ones(2),
    "a nan that is not chosen": lambda np_, x: np_.where(np_.isnan(x), 0.0, x),
    "nanmean": lambda np_, x: np_.nanmean(x),
    "logaddexp": lambda np_, x: np_.logaddexp(-np_.inf, -np_.inf),
    "a guard that comes too late": lambda np_, x: np_.where(
        np_.array([1.0, -1.0]) > 0, np_.log(np_.array([1.0, -1.0])), 0.0),
    "filling": lambda np_, x: np_.arange(3.0).at[9].get(mode="fill", fill_value=np_.nan),
    "complex": lambda np_, x: np_.log(np_.array([0j])) * 0,
    "bfloat16": lambda np_, x: np_.array([0.0], "bfloat16") / 0,
    "integers": lambda np_, x: np_.arange(4) // 2,
    "jit": lambda np_, x: top(np_).jit(np_.log)(-np_.ones(2)),
    "vmap": lambda np_, x: top(np_).vmap(np_.sqrt)(-np_.ones(2)),
    "a callback": lambda np_, x: top(np_).pure_callback(lambda y: np.float32([0, np.nan]), x, x),
    "a callback that is fine": lambda np_, x: top(np_).jit(lambda y: top(np_).pure_callback(
        lambda y: np.ones(2, np.float32), x, y))(1.0),
}


def top(np_):
    return jax if np_ is jnp else real


@pytest.mark.parametrize("name", AS_IN_JAX)
def test_what_raises_is_what_raises_in_jax_with_the_same_words(name, capsys):
    def words(package):
        x = package.numpy.asarray(NAN)
        with package.debug_nans(True):
            try:
                AS_IN_JAX[name](package.numpy, x)
            except FloatingPointError as error:
                return type(error).__name__, str(error).split("\n")[0]
        return None

    ours, theirs = words(jax), words(real)
    assert (ours is None) == (theirs is None)
    if ours is not None and name != "complex":
        assert ours == theirs


def test_an_array_that_is_only_made_holds_nans_in_peace():
    with jax.debug_nans(True):
        assert np.isnan(jnp.array([np.nan]))


# ── jit ──────────────────────────────────────────────────────────────────────────────────────

def test_a_jitted_function_is_run_again_as_python_so_that_its_frame_is_on_the_stack(capsys):
    x, y = jnp.array([2.0, 0.0]), jnp.array([3.0, 0.0])
    with jax.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        jax.jit(quotient)(x, y)
    assert capsys.readouterr().out == ("Invalid nan value encountered in the output of a jax.jit "
                                       "function. Calling the de-optimized version.\n")
    step = caught.value.__traceback__
    while step.tb_frame.f_code.co_name != "quotient":
        step = step.tb_next
    assert step.tb_lineno == line_of(quotient, 3)
    np.testing.assert_array_equal(step.tb_frame.f_locals["product"], [6, 0])


def test_levels_of_jit_are_taken_off_one_after_the_other(capsys):
    inner = jax.jit(lambda v: jnp.log(v - 10.0))

    def outer(v):
        return inner(v) + 1.0
    with jax.debug_nans(True):
        names = [name for name, _ in frames_of(lambda: jax.jit(outer)(jnp.ones(2)))]
    assert names[-2:] == ["outer", "<lambda>"]


def test_only_what_a_jitted_function_returns_is_looked_at():
    with jax.debug_nans(True):
        np.testing.assert_array_equal(jax.jit(guarded_root)(jnp.array([-1.0, 4.0])), [0, 2])


def test_a_nan_that_is_chosen_away_from_is_not_blamed_for_one_that_is_not(capsys):
    def two_nans(x):
        a = jnp.where(x > 0, jnp.log(x), 0.0)
        b = jnp.where(x < 9, a, jnp.sqrt(-x))
        return b + (x - x) / (x - x)
    with jax.debug_nans(True):
        found = finding_of(lambda: jax.jit(two_nans)(jnp.array([-1.0, 1.0])))
    assert found.line == line_of(two_nans, 3)
    assert "div of 0.0 and 0.0" in found.message


def test_a_function_compiled_before_the_flag_was_set_is_looked_at_and_not_after(capsys):
    f = jax.jit(quotient)
    assert np.isnan(f(0.0, 0.0))
    assert np.isnan(f(0.0, 0.0))
    config.update("jax_debug_nans", True)
    try:
        for _ in range(3):  # the second call must not take the shortest way
            assert f(2.0, 1.0) == 2.0
            finding_of(lambda: f(np.float32(0.0), 0.0))
    finally:
        config.update("jax_debug_nans", False)
    assert np.isnan(f(0.0, 0.0))


def test_a_nan_that_comes_in_and_goes_out_is_told_of_and_goes_on(capsys):
    with jax.debug_nans(True):
        out = jax.jit(lambda x: x)(jnp.asarray(NAN))
    np.testing.assert_array_equal(out, NAN)
    said = capsys.readouterr().out
    assert "Calling the de-optimized version." in said
    assert "it is in an argument" in said


def test_a_nan_of_compiled_code_alone_is_told_of_and_goes_on(capsys):
    odd = core.Primitive("odd", impl=lambda x: [x], abstract_eval=lambda x: [x],
                         element=lambda s, i, x: s.div(s.sub(x(i), x(i)), s.sub(x(i), x(i))))
    with jax.debug_nans(True):
        out = jax.jit(lambda x: odd.bind(x))(jnp.ones(2))
    assert np.isnan(out).all()
    assert "only compiled code has it" in capsys.readouterr().out


def test_a_nan_of_one_device_is_one_of_a_sharded_computation():
    with jax.debug_nans(True), pytest.raises(
            FloatingPointError, match=r"Invalid value \(nan\) encountered in sharded computation"):
        jax.pmap(lambda x: 0.0 / x)(jnp.zeros(1))


def test_a_nan_in_the_derivative_of_a_mapped_function_is_one_of_a_sharded_computation():
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    for f in (jax.pmap(lambda x: jnp.log(x ** 2)), jax.shard_map(
            lambda x: jnp.log(x ** 2), mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))):
        with jax.debug_nans(True), pytest.raises(
                FloatingPointError, match=r"Invalid value .* sharded computation: .* in mul"):
            jax.vjp(f, jnp.zeros(1))[1](jnp.ones(1))


def test_the_python_runs_on_numbers_as_they_were_passed(capsys):
    for lib in (real, jax):
        with lib.debug_nans(True), pytest.raises(ZeroDivisionError) as raised:
            lib.jit(quotient)(0.0, 0.0)
    assert raised.value.__notes__[0] == "invalid value (nan) encountered in div of 0.0 and 0.0"
    with jax.checking_sharp_bits(collect=True) as findings:
        assert np.isnan(jax.jit(quotient)(0.0, 0.0))
    assert [found.kind for found in findings] == ["debug_nans"]


def test_static_arguments_reach_the_python_as_they_reached_the_trace(capsys):
    def scaled(x, mode, *, by):
        assert mode == "log"
        return jnp.log(x) / by
    f = jax.jit(scaled, static_argnums=1)
    with jax.debug_nans(True):
        assert finding_of(lambda: f(-2.0, "log", by=2)).message.endswith("log of -2.0")
        assert "div of 0.0 and 0.0" in finding_of(
            lambda: jax.jit(quotient)(0, np.float32(0.0))).message


def test_compiled_stages_are_looked_at():
    run = jax.jit(quotient).lower(1.0, 2.0).compile()
    with jax.debug_nans(True):
        assert run(2.0, 1.0) == 2.0
        assert finding_of(lambda: run(0.0, 0.0)).line == line_of(quotient, 3)


def test_what_compiled_code_calls_back_is_looked_at():
    def look_at(v):
        jnp.log(v - 2.0)

    def f(x):
        jax.debug.callback(look_at, x)
        return x * 2.0
    for call, x in ((f, 1.0), (jax.jit(f), 1.0), (jax.vmap(jax.jit(f)), jnp.ones(2))):
        with jax.debug_nans(True):
            assert finding_of(lambda call=call, x=x: call(x)).line == line_of(look_at)
    with jax.checking_sharp_bits(collect=True) as findings:
        assert jax.jit(f)(1.0) == 2.0
    assert [found.line for found in findings] == [line_of(look_at)]


def test_the_numpy_backend_is_looked_at_in_the_same_way(capsys):
    with config.platforms("numpy"), jax.debug_nans(True):
        np.testing.assert_array_equal(jax.jit(guarded_root)(jnp.array([-1.0, 4.0])), [0, 2])
        zeros = jnp.zeros(2)
        assert finding_of(lambda: jax.jit(quotient)(*zeros)).line == line_of(quotient, 3)


def test_without_jit_each_operation_is_looked_at():
    with config.disable_jit(True), jax.debug_nans(True):
        assert "iteration 1" in finding_of(
            lambda: lax.scan(lambda c, x: (c, jnp.log(x)), 0.0, jnp.array([1.0, -1.0]))).message


# ── Derivatives ──────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("make", [
    jax.grad, lambda f: jax.jit(jax.grad(f)), lambda f: jax.grad(jax.jit(f)),
    lambda f: jax.grad(jax.checkpoint(f)),
    lambda f: lambda x: jax.vjp(f, x)[1](1.0),
    lambda f: jax.grad(lambda x: lax.fori_loop(0, 2, lambda i, s: s + f(x), 0.0))])
def test_a_nan_of_the_backward_pass_is_named_with_the_forward_line_it_belongs_to(make, capsys):
    with jax.debug_nans(True):
        found = finding_of(lambda: make(guarded_root)(0.0))
    assert found.line == line_of(guarded_root)
    assert found.message.startswith(
        "invalid value (nan) encountered in mul of 0.0 and inf, in the backward pass")
    assert "choose safe operands before" in found.fix


@jax.custom_vjp
def bad_backward(x):
    return x * 2.0


def _backward(x, ct):
    gap = x - x
    return (ct * (gap / gap),)


bad_backward.defvjp(lambda x: (bad_backward(x), x), _backward)


@jax.custom_jvp
def bad_forward(x):
    return x * 2.0


@bad_forward.defjvp
def _forward(primals, tangents):
    (x,), (t,) = primals, tangents
    return bad_forward(x), t * ((x - x) / (x - x))


@pytest.mark.parametrize("fun, rule, number", [(bad_backward, _backward, 2),
                                               (bad_forward, _forward, 3)])
def test_a_nan_of_a_rule_of_ones_own_is_named_with_the_line_of_the_rule(fun, rule, number, capsys):
    def looped(x):
        return lax.scan(lambda c, _: (fun(c), None), x, None, 3)[0]
    for gradient in (jax.grad(fun), jax.jit(jax.grad(fun)), jax.grad(jax.jit(fun)),
                     jax.grad(looped)):
        with jax.debug_nans(True):
            assert finding_of(lambda gradient=gradient: gradient(1.0)).line == line_of(rule, number)


# ── Batches and loops ────────────────────────────────────────────────────────────────────────

ONE_BAD = np.ones((3, 4), np.float32)
ONE_BAD[1, 2] = -1.0


def log_row(c, x):
    y = jnp.log(x)
    return c, y


@pytest.mark.parametrize("call, steps", [
    (lambda x: jax.vmap(jnp.log)(x[1]), ["example 2 of a vmap over 4"]),
    (lambda x: jax.vmap(jnp.log)(x), ["example 1 of a vmap over 3"]),
    (lambda x: jax.vmap(jax.vmap(jnp.log))(x),
     ["example 1 of a vmap over 3", "example 2 of a vmap over 4"]),
    (lambda x: jax.vmap(jax.vmap(jnp.log), in_axes=1)(x),
     ["example 2 of a vmap over 4", "example 1 of a vmap over 3"]),
    (lambda x: jax.jit(jax.vmap(jax.jit(jax.vmap(jnp.log))))(x),
     ["example 1 of a vmap over 3", "example 2 of a vmap over 4"]),
    (lambda x: lax.scan(log_row, 0.0, x), ["iteration 1 of a scan of 3"]),
    (lambda x: lax.scan(log_row, 0.0, x, reverse=True), ["iteration 1 of a scan of 3"]),
    (lambda x: lax.map(lambda row: lax.map(jnp.log, row), x),
     ["iteration 1 of a scan of 3", "iteration 2 of a scan of 4"]),
    (lambda x: jax.vmap(lambda row: lax.scan(log_row, 0.0, row)[1])(x),
     ["example 1 of a vmap over 3", "iteration 2 of a scan of 4"]),
    (lambda x: lax.scan(lambda c, row: (c, jax.vmap(jnp.log)(row)), 0.0, x),
     ["iteration 1 of a scan of 3", "example 2 of a vmap over 4"]),
    (lambda x: jax.jit(lambda x: lax.fori_loop(
        0, 3, lambda i, s: s + jnp.log(x[i]).sum(), 0.0))(x), ["iteration 1 of a scan of 3"]),
    (lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + jnp.log(x[s[0]])),
                              (0, jnp.zeros(4))), ["iteration 1 of a while_loop"]),
    (lambda x: jax.vmap(lambda row: lax.cond(row[0] > 0, lambda r: jnp.log(r), lambda r: r, row))(
        x), ["example 1 of a vmap over 3"]),
    (lambda x: jax.grad(lambda w: jax.vmap(lambda v: jnp.sqrt(w * v))(x[1]).sum())(1.0),
     ["example 2 of a vmap over 4"]),
])
def test_the_example_of_a_batch_and_the_round_of_a_loop_are_named_the_outermost_first(
        call, steps, capsys):
    with jax.debug_nans(True):
        found = finding_of(lambda: call(jnp.asarray(ONE_BAD)))
    assert re.findall(r", in ((?:example|iteration) [^,]*)", found.message) == steps


def test_the_frame_of_a_loops_body_is_on_the_stack(capsys):
    with jax.debug_nans(True):
        frames = frames_of(lambda: jax.jit(lambda x: lax.scan(log_row, 0.0, x))(
            jnp.asarray(ONE_BAD)))
    assert frames[-1] == ("log_row", line_of(log_row))


def test_a_branch_that_an_example_does_not_take_gives_no_alarm():
    def log_or_zero(x):
        return lax.cond(x > 0, jnp.log, lambda x: 0.0 * x, x)

    def halve_until_small(x):
        return lax.while_loop(lambda v: v > 1.0, lambda v: jnp.sqrt(v - 1.0) + 0.5, x)
    x = jnp.array([1.0, -1.0, 30.0])
    with jax.debug_nans(True):
        assert np.isfinite(jax.vmap(log_or_zero)(x)).all()
        assert np.isfinite(jax.vmap(jax.grad(log_or_zero))(x)).all()
        assert np.isfinite(jax.vmap(halve_until_small)(x)).all()


def test_an_operation_that_needs_its_whole_batch_is_named_too():
    def normalised(v):
        return v / lax.psum(v, "batch")
    with jax.debug_nans(True):
        found = finding_of(lambda: jax.vmap(normalised, axis_name="batch")(jnp.zeros(3)))
        assert found.line == line_of(normalised)
        found = finding_of(lambda: jax.vmap(lambda v: lax.psum(v, "batch"), axis_name="batch")(
            jnp.array([jnp.inf, -jnp.inf])))
    assert "reduce_sum" in found.message


# ── Planted faults ───────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("seed", range(PLANTED))
def test_the_line_of_a_fault_planted_in_nested_transformations_is_named(seed, capsys):
    program = planted(seed)
    with jax.debug_nans(True):
        found = finding_of(lambda: program.run(program.x))
    assert (found.file, found.function, found.line) == (program.name, "f0", program.line)
    if not program.has_grad:
        check_steps(found.message, program.steps)


@pytest.mark.parametrize("seed", [*range(0, PLANTED, 6), 67, 69])
def test_of_a_planted_fault_its_line_alone_is_collected_and_without_it_nothing(seed):
    program = planted(seed)
    with jax.checking_sharp_bits(collect=True) as findings:
        program.run(program.x)
    assert {(f.file, f.line) for f in findings if f.kind == "debug_nans"} == {
        (program.name, program.line)}
    assert {f.kind for f in findings} <= {"debug_nans", "debug_infs"}
    with jax.checking_sharp_bits(collect=True) as findings:
        program.run(jnp.where(program.x == 0, 1.5, program.x))
    assert findings == []


def check_steps(message, steps):
    """Every round of a loop is named; and every example, or it is an index of the output."""
    said = [(kind or "vmap", int(i or j)) for i, kind, j in re.findall(
        r"iteration (\d+) of a (\w+)|example (\d+) of", message)]
    missing = list(steps)
    for step in said:
        missing.remove(step)
    assert said == [step for step in steps if step not in missing]
    index = re.search(r"at index \[([\d, ]*)\]", message)
    assert missing == [("vmap", int(i)) for i in index[1].split(",")] if index else not missing


# ── Under the switch for all checks ──────────────────────────────────────────────────────────

MASK = np.array([True, True, False])


@pytest.mark.parametrize("call", [
    lambda: jnp.where(MASK, jnp.ones(3), -jnp.inf),
    lambda: nn.softmax(jnp.where(MASK, jnp.ones(3), -jnp.inf)),
    lambda: jax.grad(lambda x: nn.log_softmax(jnp.where(MASK, x, -jnp.inf))[0])(jnp.ones(3)),
    lambda: jax.jit(lambda x: jnp.max(jnp.where(MASK, x, -jnp.inf)))(jnp.ones(3)),
    lambda: jnp.nanmean(NAN) + jnp.nansum(NAN),
    lambda: jnp.asarray(NAN) * 2 + jnp.full(2, jnp.nan),
    lambda: jax.jit(lambda x: x * 2)(jnp.asarray(NAN)),
    lambda: jnp.arange(3.0).at[9].get(mode="fill", fill_value=jnp.nan),
    lambda: special.xlogy(0.0, 0.0) + jax.grad(special.xlogy)(0.0, 1.0),
    lambda: nn.logsumexp(jnp.array([-jnp.inf, -jnp.inf])),
    lambda: jnp.logaddexp(-jnp.inf, -jnp.inf),
    lambda: jax.vmap(jnp.logaddexp)(jnp.full(2, -jnp.inf), jnp.full(2, -jnp.inf)),
    lambda: jnp.isclose(jnp.inf, jnp.inf),
    lambda: jax.vmap(lambda x: lax.cond(x > 0, jnp.log, lambda x: x, x))(jnp.array([1.0, -1.0])),
    lambda: lax.scan(lambda c, x: (jnp.maximum(c, x), None), -jnp.inf, jnp.ones(3)),
    lambda: jnp.min(jnp.ones(3), where=MASK, initial=jnp.inf),
])
def test_a_correct_program_that_uses_nans_and_infinities_gives_no_alarm(call, capsys):
    with jax.checking_sharp_bits(collect=True) as findings:
        call()
    with jax.checking_sharp_bits():
        call()
    assert findings == []
    assert capsys.readouterr().out == ""


def test_collected_findings_are_one_for_each_place_and_the_program_goes_on():
    def faulty(x):
        a = jnp.log(x)
        b = jnp.sqrt(x - 1.0)
        return a, b + a
    with jax.checking_sharp_bits(collect=True) as findings:
        for _ in range(2):
            a, b = faulty(jnp.array([-1.0, 2.0]))
    np.testing.assert_array_equal(np.isnan([a, b]), [[True, False], [True, False]])
    assert [(f.kind, f.line) for f in findings] == [
        ("debug_nans", line_of(faulty, 1)), ("debug_nans", line_of(faulty, 2))]
    with jax.checking_sharp_bits(collect=True) as compiled:
        out = jax.jit(lambda x: lax.map(faulty, x))(jnp.array([-1.0, 2.0, -3.0]))
    assert np.isnan(out[0]).tolist() == [True, False, True]
    assert [(f.kind, f.line) for f in compiled] == [(f.kind, f.line) for f in findings]
    assert "iteration 0" in compiled[0].message


def test_a_nan_is_found_where_it_is_made_among_others_that_are_data():
    x = jnp.asarray(np.array([np.nan, 4.0, -1.0], np.float32))
    with jax.checking_sharp_bits(collect=True) as findings:
        jnp.sqrt(x + 1.0 - 1.0)
        jax.jit(lambda x: jnp.sqrt(x) * 2)(x)
    assert len(findings) == 2
    assert all("sqrt of -1.0 at index [2] of float32[3]" in f.message for f in findings)


def test_an_infinite_derivative_is_found_though_no_operation_but_its_own_shows_it():
    with jax.checking_sharp_bits(collect=True) as findings:
        assert np.isinf(jax.grad(jnp.sqrt)(0.0))
    assert [f.kind for f in findings] == ["debug_infs"]


def test_a_random_key_is_not_consumed_again_when_a_function_is_run_again(capsys):
    def noise(key):
        return jnp.log(jax.random.uniform(key) - 2.0)
    with jax.checking_sharp_bits(collect=True) as findings:
        jax.jit(noise)(jax.random.key(0))
        jax.vmap(noise)(jax.random.split(jax.random.key(1)))
    assert {f.kind for f in findings} == {"debug_nans"}


# ── Nothing is left behind ───────────────────────────────────────────────────────────────────

def test_after_an_error_everything_is_as_before(capsys):
    f = jax.jit(lambda x: lax.scan(log_row, 0.0, x)[1])
    with jax.debug_nans(True):
        finding_of(lambda: f(jnp.asarray(ONE_BAD)))
        finding_of(lambda: jax.vmap(f)(jnp.asarray(ONE_BAD)))
    assert np.isnan(f(jnp.asarray(ONE_BAD))).sum() == 1
    assert np.isnan(jax.vmap(f)(jnp.asarray(ONE_BAD))).sum() == 1
    with jax.debug_nans(True):
        np.testing.assert_array_equal(f(jnp.ones((3, 4))), np.zeros((3, 4)))


def test_while_the_flags_are_off_the_check_is_not_even_imported():
    program = ("import sys, minijax as jax, minijax.numpy as jnp\n"
               "jax.jit(jax.vmap(jax.grad(jnp.sin)))(jnp.ones(3)); jnp.log(-1.0)\n"
               "assert 'minijax.sharp_bits.nans' not in sys.modules")
    environment = {k: v for k, v in os.environ.items() if "SHARP" not in k and "DEBUG" not in k}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
