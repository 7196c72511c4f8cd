"""What branches and loops share: staging functions of the user's, the state of a loop."""

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import core, lax
from minijax.higher_order.control_flow import Body, Carry, share_consts
from minijax.jaxpr import check_jaxpr, eval_jaxpr

F32 = core.ShapedArray((), np.float32)


def test_a_body_takes_what_it_closed_over_first():
    table = jnp.arange(3.0)
    body = Body(lambda x: {"out": x * table}, (F32,), "scan")
    assert body.consts == (table,) and len(body.closed.in_avals) == 2
    assert body.argument_name == "x" and body.out_avals[0].shape == (3,)


def test_bodies_can_share_their_constants():
    a, b = jnp.arange(3.0), jnp.arange(2.0)
    bodies = [Body(lambda x: x * a.sum(), (F32,), "cond"),
              Body(lambda x: x * b.sum() + a.sum(), (F32,), "cond")]
    programs, consts = share_consts(bodies)
    assert len(consts) == 2
    for closed, want in zip(programs, (6.0, 5.0), strict=True):
        check_jaxpr(closed.jaxpr)
        assert eval_jaxpr(closed.jaxpr, (), *consts, np.float32(2))[0] == want


def test_a_carry_adapts_only_what_is_weak():
    carry = Carry((0, np.int32(0)), "scan")
    assert carry.adapted((F32, core.ShapedArray((), np.int32)))
    assert [x.dtype for x in carry.values] == [np.float32, np.int32]
    assert not carry.adapted((F32, F32))
    with pytest.raises(TypeError, match=r"component c\[1\] has type int32\[\]"):
        carry.check((F32, F32), "c")


def test_an_eager_loop_is_compiled_once():
    def run(x):
        return lax.fori_loop(0, 3, step, x)

    def step(i, c):
        return c * 2
    from minijax.higher_order import compiled
    calls, real = [], compiled._make_executable
    compiled._make_executable = lambda *args: calls.append(args) or real(*args)
    try:
        closed = minijax.make_jaxpr(run)(1.0)
        for x in (1.0, 2.0, 3.0):
            eval_jaxpr(closed.jaxpr, closed.consts, x)
    finally:
        compiled._make_executable = real
    assert len(calls) == 1


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 7])
def test_a_function_is_mapped_over_rows(batch_size):
    rows = {"a": np.arange(15, dtype=np.float32).reshape(5, 3), "b": np.arange(5)}

    def run(lib):
        return lib.lax.map(lambda r: (r["a"].sum() * r["b"], r["a"][::-1]), rows,
                           batch_size=batch_size)
    for ours, theirs in zip(run(minijax), run(jax), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


TEN_TIMES = (lambda x: x, lambda x: x * 10, lambda x: x + 1)


@pytest.mark.parametrize(("program", "args"), [
    (lambda lax, x: lax.switch(1, TEN_TIMES, x), (np.float32(4),)),
    (lambda lax, i, x: lax.switch(i, TEN_TIMES, x), (np.int32(1), np.float32(4))),
    (lambda lax, x: lax.scan(lambda c, y: (c + y, c), 0, x), (np.ones(3, np.float32),)),
    (lambda lax, n: lax.fori_loop(0, n, lambda i, c: c + i, 0), (np.int8(3),)),
])
def test_a_number_of_the_program_stays_one_and_nothing_is_converted_twice(program, args):
    ours, theirs = (lib.make_jaxpr(lambda *xs, lib=lib: program(lib.lax, *xs))(*args)
                    for lib in (minijax, jax))
    assert str(ours) == str(theirs)
