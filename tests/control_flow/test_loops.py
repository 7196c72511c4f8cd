"""What branches and loops share: staging functions of the user's, the state of a loop."""

import gc
import weakref

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import core, lax
from minijax.control_flow import traced_functions
from minijax.control_flow.traced_functions import TracedFunction, share_consts
from minijax.control_flow.loops import Carry
from minijax.core.jaxpr import check_jaxpr, eval_jaxpr

F32 = core.ShapedArray((), np.float32)


def test_a_body_takes_what_it_closed_over_first():
    table = jnp.arange(3.0)
    body = TracedFunction.of(lambda x: {"out": x * table}, (F32,), "scan")
    assert body.consts == (table,) and len(body.program.in_avals) == 2
    assert body.debug_info.arg_names == ("x",) and body.out_avals[0].shape == (3,)


def test_bodies_can_share_their_constants():
    a, b = jnp.arange(3.0), jnp.arange(2.0)
    bodies = [TracedFunction.of(lambda x: x * a.sum(), (F32,), "cond"),
              TracedFunction.of(lambda x: x * b.sum() + a.sum(), (F32,), "cond")]
    programs, consts = share_consts(bodies)
    assert len(consts) == 2
    for closed, want in zip(programs, (6.0, 5.0), strict=True):
        check_jaxpr(closed.jaxpr)
        assert eval_jaxpr(closed.jaxpr, (), *consts, np.float32(2))[0] == want


def test_a_carry_adapts_only_what_is_weak():
    carry = Carry((0, np.int32(0)), "scan", "scan")
    assert carry.adapted((F32, core.ShapedArray((), np.int32)))
    assert [x.dtype for x in carry.values] == [np.float32, np.int32]
    assert not carry.adapted((F32, F32))
    with pytest.raises(TypeError, match=r"component c\[1\] has type int32\[\]"):
        carry.check(lambda c: c, (F32, F32))


def test_an_eager_loop_is_compiled_once():
    def run(x):
        return lax.fori_loop(0, 3, step, x)

    def step(i, c):
        return c * 2
    from minijax.transforms import compiled
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


def _traces(lib, run):
    """How often a function is traced that `run` gives to what runs programs, and what it gives."""
    count = 0

    def seen(*args):
        nonlocal count
        count += 1
        return args[-1] if len(args) == 1 else args
    outs = run(lib, seen)
    return count, [np.asarray(x).tolist() for x in jax.tree.leaves(outs)]


RUNS = {
    "scan": lambda lib, f: [lib.lax.scan(f, 0., np.arange(n)) for n in (3, 4)],
    "scan, in reverse": lambda lib, f: [lib.lax.scan(f, 0, X, reverse=r) for r in (False, True)],
    "scan of other types": lambda lib, f: [lib.lax.scan(f, c, X) for c in (0, 1.)],
    "scan in jit": lambda lib, f: lib.jit(lambda x: [lib.lax.scan(f, x, X) for _ in "ab"])(1.),
    "scan in jit and out of it": lambda lib, f: [
        lib.jit(lambda: lib.lax.scan(f, 0, X))(), lib.lax.scan(f, 0, X)],
    "scan in grad": lambda lib, f: [
        lib.grad(lambda v: lib.lax.scan(f, v, X)[0])(v) for v in (1., 2.)],
    "scan under another flag": lambda lib, f: [lib.lax.scan(f, 0, X), wide(lib, f)],
    "cond": lambda lib, f: [lib.lax.cond(p, f, f, 1, 2) for p in (True, False)],
    "cond of two functions": lambda lib, f: lib.lax.cond(True, lambda x: f(x), lambda x: f(x), 1),
    "switch": lambda lib, f: [lib.lax.switch(1, [f] * n, 1) for n in (3, 2)],
    "while_loop": lambda lib, f: [
        lib.lax.while_loop(lambda x: x < 3, lambda x: f(x) + 1, 0) for _ in "ab"],
    "fori_loop": lambda lib, f: [lib.lax.fori_loop(0, n, f_of(f), 0.) for n in (3, 4)],
    "map": lambda lib, f: [lib.lax.map(f, X) for _ in "ab"],
    "after clear_caches": lambda lib, f: [
        lib.lax.scan(f, 0, X), lib.clear_caches(), lib.lax.scan(f, 0, X)],
}
X = np.arange(3)


def wide(lib, f):
    with lib.enable_x64(True):
        return lib.lax.scan(f, 0, X)


def f_of(f, known={}):  # noqa: B006  what is made of a function is the same each time
    return known.setdefault(f, lambda i, x: f(x))


@pytest.mark.parametrize("name", RUNS)
def test_a_function_is_traced_as_often_as_in_jax(name):
    assert _traces(minijax, RUNS[name]) == _traces(jax, RUNS[name])


def test_what_a_body_read_elsewhere_stays_as_in_jax(monkeypatch):
    """A function that was traced is not looked at again; `debug_purity` tells."""
    def body(c, x):
        return c + outside[0], x

    for lib in (minijax, jax):
        outside = [1.]
        assert lib.lax.scan(body, 0., X)[0] == 3
        outside = [10.]
        assert lib.lax.scan(body, 0., X)[0] == 3
    with minijax.debug_purity(True):
        minijax.lax.scan(body, 1., X)
        outside = [20.]
        with pytest.raises(minijax.errors.ImpureFunctionError, match="was .* when `body` was"):
            minijax.lax.scan(body, 1., X)


def test_what_a_body_took_from_a_trace_that_has_ended_is_traced_anew():
    def body(c, x):
        return c + outside, x

    def f(v):
        nonlocal outside
        outside = v
        return lax.scan(body, 0., X)[0]
    outside = None
    assert minijax.grad(f)(1.) == minijax.jit(f)(1.) == 3 and f(2.) == 6


def test_a_function_that_is_gone_leaves_nothing_behind():
    def run():
        def body(c, x):
            return c + x, x
        lax.scan(body, 0, X)
        return weakref.ref(body)
    gc.collect()
    before, ref = len(traced_functions._traced_functions._all), run()
    gc.collect()
    assert ref() is None and len(traced_functions._traced_functions._all) == before


@pytest.mark.parametrize("lib", [jax, minijax])
def test_what_nobody_reads_needs_no_derivative(lib):
    def body(c, x):
        lib.lax.igamma(x, c)  # whose derivative by the first argument has none
        return c * x, None

    def f(c):
        return lib.lax.scan(body, c, jax.numpy.ones(2) if lib is jax else jnp.ones(2))[0]
    assert lib.hessian(f)(1.) == 0


def test_what_all_branches_hand_on_is_no_result_of_theirs():
    def f(x, b):
        return lax.cond(x > 0, lambda b: (x, b), lambda b: (x + 1, b), b)
    assert str(minijax.make_jaxpr(f)(1., 2.)).count("in (") == 3
    first, second = minijax.vmap(f, in_axes=(0, None), out_axes=(0, None))(jnp.arange(2.), 2.)
    assert first.tolist() == [1, 1] and second == 2
