"""Programs are compiled once, and under `log_compiles` they say so."""

import logging
import re
import warnings

import jax as theirs
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp


def log_of(program, caplog):
    with jax.log_compiles(True), caplog.at_level(logging.WARNING):
        program()
    return [re.sub(r"[\d.]+ sec", "… sec", record.message) for record in caplog.records]


def test_what_is_traced_and_compiled_is_logged_with_its_time(caplog):
    def halved(x):
        return x / 2
    f = jax.jit(halved)

    def program():
        f(jnp.ones(3))
        f(jnp.ones(3))
    assert log_of(program, caplog) == [
        "Finished tracing halved for jit in … sec",
        "Compiling jit(halved) with global shapes and types (ShapedArray(float32[3]),). "
        "Argument mapping: (UnspecifiedValue,).",
        "Finished jaxpr to MLIR module conversion jit(halved) in … sec",
        "Finished XLA compilation of jit(halved) in … sec"]


def test_a_function_that_fails_is_not_finished(caplog):
    def program():
        with pytest.raises(ZeroDivisionError):
            jax.jit(lambda x: x + 1 / 0)(1.0)
    assert log_of(program, caplog) == []


def test_without_the_flag_nothing_is_logged(caplog):
    with caplog.at_level(logging.WARNING):
        jax.jit(lambda x: x / 3)(1.0)
    assert not caplog.records


@pytest.mark.parametrize("call", [
    lambda f: jax.jit(f)(1.0), lambda f: jax.jit(f).lower(1.0).compile(),
    lambda f: jax.lax.scan(lambda c, _: (f(c), None), 1.0, length=2),
    lambda f: jax.vmap(jax.grad(jax.jit(f)))(jnp.ones(2))],
    ids=["jit", "lower", "scan", "vmap of grad"])
def test_a_mistake_of_the_compiler_says_whose_it_is_and_what_to_do(call, monkeypatch):
    def broken(*_):
        raise IndexError("list index out of range")

    def half(x):
        return x * 0.5
    monkeypatch.setattr("minijax.compiler.lowered.lower_to_kernel", broken)
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL: the compiler") as caught:
        call(half)
    assert "IndexError: list index out of range" in str(caught.value)
    assert isinstance(caught.value.__cause__, IndexError)
    assert any("disable_jit" in note and "report" in note for note in caught.value.__notes__)
    with jax.disable_jit():
        assert half(1.0) == 0.5


def test_what_the_compiler_says_to_users_is_left_as_it_is(monkeypatch):
    def refuses(*_):
        raise NotImplementedError("it cannot be compiled")
    monkeypatch.setattr("minijax.compiler.lowered.lower_to_kernel", refuses)
    with pytest.raises(NotImplementedError, match="it cannot be compiled"):
        jax.jit(lambda x: x * 0.25)(1.0)


def test_every_stage_knows_the_arguments_and_the_results():
    f = lambda state, *, rate: {"new": state["w"] * rate, "rate": rate}  # noqa: E731
    state = {"w": np.ones((2, 3), np.float32), "unused": np.arange(4)}

    def facts(lib):
        traced = lib.jit(f, donate_argnums=0).trace(state, rate=0.5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what cannot be donated
            stages = [traced, traced.lower(), traced.lower().compile()]
        return [(str(stage.in_tree), str(stage.out_tree), stage.donate_argnums,
                 lib.tree.map(lambda x: (x.shape, str(x.dtype), x.donated, str(x)[:14]),
                              stage.args_info),
                 lib.tree.map(lambda x: (x.shape, str(x.dtype), x.weak_type),
                              (stage.in_avals, stage.out_info)))
                for stage in stages]
    assert facts(jax) == facts(theirs)


def test_machine_code_is_called_with_arguments_in_their_tree():
    def said(lib):
        compiled = lib.jit(lambda d, y: d["a"] + y).lower({"a": 1.0}, 2.0).compile()
        with pytest.raises(TypeError) as caught:
            compiled({"b": 1.0}, 2.0)
        return str(caught.value)
    assert said(jax) == said(theirs)


def test_what_machine_code_is_given_away_is_gone():
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.ones(3)
    f.lower(x).compile()(x)
    assert x.is_deleted()


SMALL = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e8m0fnu", "float4_e2m1fn",
         "int4", "uint4", "int2"]
SMALL_PROGRAMS = {
    "sums": lambda lib, x: x + x,
    "there and back": lambda lib, x: (x.astype("float32") * 3).astype(x.dtype),
    "of its numbers": lambda lib, x: lib.numpy.sum(x.astype("float32")),
    "chosen": lambda lib, x: lib.numpy.where(x > x[0], x, x[1]),
    "a loop": lambda lib, x: lib.lax.fori_loop(0, 2, lambda i, y: y + x, x),
    "rows": lambda lib, x: lib.vmap(lambda v: v * v)(x),
    "a slope": lambda lib, x: lib.grad(lambda y: lib.numpy.sum(
        y.astype(x.dtype).astype("float32") ** 2))(lib.numpy.ones(3)),
}


@pytest.mark.parametrize("program", SMALL_PROGRAMS)
@pytest.mark.parametrize("dtype", SMALL)
def test_programs_of_numbers_of_few_bits_give_under_jit_what_they_give_in_jax(program, dtype):
    def run(lib):
        x = lib.numpy.asarray([1, 0, 1]).astype(dtype)
        f = lib.jit(lambda x: SMALL_PROGRAMS[program](lib, x))
        return [(str(y.dtype), str(np.asarray(y).astype(float))) for y in (
            f(x), f.lower(x).compile()(x))]

    try:
        wanted = run(theirs)
    except Exception:
        pytest.skip("JAX refuses it")
    assert run(jax) == wanted


def tangents_of_integers(lib):
    """Programs that handle what has no tangent, of a tree of arrays."""
    slope = lambda x: lib.jvp(lib.numpy.argsort, (x,), (x,))[1]  # noqa: E731
    gradient = lib.grad(lambda n: lib.numpy.sin(n).sum(), allow_int=True)
    return {
        "jvp": slope, "vmap": lib.vmap(slope), "out_axes": lib.vmap(slope, out_axes=1),
        "map": lambda x: lib.lax.map(slope, x), "jit": lib.jit(slope),
        "checkpoint": lib.checkpoint(slope), "grad": lambda x: gradient(x.astype(int)),
        "cond": lambda x: lib.lax.cond(x[0, 0] > 0, slope, slope, x),
        "carried": lambda x: lib.lax.scan(lambda c, row: (slope(row), row), slope(x[0]), x),
        "while": lambda x: lib.lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, slope(x)), (0, slope(x))),
        "given": lambda x: lib.jvp(lambda n: n * 2, (x.astype(int),), (
            np.zeros((2, 3), lib.dtypes.float0),))}


@pytest.mark.parametrize("name", tangents_of_integers(jax))
@pytest.mark.parametrize("batched", [False, True])
def test_tangents_of_integers_are_compiled(name, batched):
    def types(lib, wrap):
        f, x = tangents_of_integers(lib)[name], np.zeros((2, 2, 3), np.float32)
        outs = wrap(lib.vmap(f))(x) if batched else wrap(f)(x[0])
        return [(x.shape, x.dtype) for x in lib.tree_util.tree_leaves(outs)]
    wanted = types(theirs, theirs.jit)
    for wrap in (jax.jit, lambda f: f):
        assert types(jax, wrap) == wanted
    with jax.disable_jit():
        assert types(jax, lambda f: f) == wanted


def test_an_argument_without_a_tangent_is_compiled():
    zero = np.zeros(2, jax.float0)
    assert jax.jit(lambda x: x)(zero).dtype == jax.float0
    assert jax.jit(jax.vmap(lambda x: x))(zero).shape == (2,)


def test_forward_mode_of_a_rule_for_reverse_mode_is_refused_in_compiled_programs_too():
    f = jax.custom_vjp(jax.numpy.sin)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct,))
    for wrap in (lambda f: f, jax.jit):
        with pytest.raises(TypeError, match="can't apply forward-mode autodiff"):
            wrap(lambda x: jax.jvp(f, (x,), (x,)))(1.)


def test_each_step_is_in_the_log_at_its_lowest_level(caplog):
    f = jax.jit(lambda x: x * 3.25)
    with caplog.at_level("DEBUG", logger="minijax"):
        f(2.0)
    assert [record.levelname for record in caplog.records] == ["DEBUG"] * 4
    assert "Compiling jit(<lambda>)" in caplog.text and "Finished XLA compilation" in caplog.text


def test_the_loops_of_a_lowered_program_are_built_once(monkeypatch):
    from minijax.compiler import lowered
    built, build = [], lowered.lower_to_kernel
    monkeypatch.setattr(lowered, "lower_to_kernel", lambda *args: built.append(1) or build(*args))
    program = jax.jit(lambda x: jnp.cos(x) * 0.8125).lower(jnp.ones(7))
    assert "cos" in program.as_text()
    np.testing.assert_allclose(program.compile()(jnp.zeros(7)), 0.8125)
    assert len(built) == 1
