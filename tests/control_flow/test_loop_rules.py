"""Loops of known and unknown length: values, derivatives, batches and refusals are JAX's."""

import re

import jax
import numpy as np
import pytest

import minijax
from minijax import lax, numpy as jnp
from minijax.control_flow.loop_rules import scan_p
from tests.wording import wording

X = np.array([0.5, -0.3, 1.2], np.float32)
W = np.arange(9, dtype=np.float32).reshape(3, 3) / 10


def same(f, rtol=1e-5):
    ours, theirs = f(minijax), f(jax)
    for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert (np.asarray(a).dtype, a.weak_type) == (np.asarray(b).dtype, b.weak_type)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


def rnn(lib, reverse=False):
    def loss(w, h, xs):
        def step(h, x):
            h = lib.numpy.tanh(w @ h + x)
            return h, h.sum()
        h, sums = lib.lax.scan(step, h, xs, reverse=reverse)
        return (h * h).sum() + (sums ** 2).sum()
    return loss


XS = np.stack([X, X / 2, -X, X + 1])
ONE = (W, X, XS)
BATCH = (W, np.stack([X, 2 * X], 1), XS)
BOTH = (W, np.stack([X, 2 * X], 1), np.stack([XS, XS / 2], 2))
TRANSFORMED = {
    "eval": (lambda lib, f: f, ONE),
    "jit": (lambda lib, f: lib.jit(f), ONE),
    "grad": (lambda lib, f: lib.grad(f, (0, 1, 2)), ONE),
    "jit grad": (lambda lib, f: lib.jit(lib.grad(f)), ONE),
    "jvp": (lambda lib, f: lambda *args: lib.jvp(f, args, args), ONE),
    "grad grad": (lambda lib, f: lib.grad(lambda *a: lib.grad(f, 1)(*a).sum()), ONE),
    "vmap": (lambda lib, f: lib.vmap(f, (None, 1, None)), BATCH),
    "vmap grad": (lambda lib, f: lib.vmap(lib.grad(f, (0, 2)), (None, 1, 2)), BOTH),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", TRANSFORMED)
def test_a_recurrent_network_under_every_transformation(name, reverse):
    transform, args = TRANSFORMED[name]
    same(lambda lib: transform(lib, rnn(lib, reverse))(*args), rtol=1e-4)


def test_trees_are_carried_and_stacked():
    def f(lib):
        def step(carry, x):
            return {"a": carry["a"] + x["u"], "n": carry["n"] + 1}, (x["u"] * 2, carry["n"])
        return lib.lax.scan(step, {"a": np.float32(0), "n": 0}, {"u": X})
    same(f)


@pytest.mark.parametrize("length", [0, 1, 5])
def test_without_arrays_the_length_counts(length):
    same(lambda lib: lib.lax.scan(lambda c, _: (c * 2, c), 1.0, None, length))


def test_an_integer_counter_may_ride_in_the_carry_of_a_gradient():
    def f(lib):
        return lib.grad(lambda x: lib.lax.scan(
            lambda c, _: ((c[0] + 1, c[1] * lib.numpy.sin(c[1] * c[0])), None),
            (0, x), None, 3)[0][1])(1.3)
    same(f)


def test_a_weak_start_takes_the_type_the_body_returns():
    same(lambda lib: lib.lax.scan(lambda c, x: (c + x, c), 0, X))
    same(lambda lib: lib.lax.fori_loop(0, 3, lambda i, x: x + 1.5, 0))


def test_the_swap_of_two_carries_is_parallel():
    same(lambda lib: lib.lax.scan(lambda c, x: ((c[1], c[0] + c[1]), c[0]), (X, X[::-1].copy()),
                                  None, 4))


def test_without_jit_the_python_loop_gives_the_same():
    f = lambda: minijax.lax.scan(lambda c, x: (c * x, c + x), 1.0, X, reverse=True)  # noqa: E731
    compiled = f()
    with minijax.disable_jit():
        for a, b in zip(f(), compiled, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_without_jit_rows_that_are_python_numbers_are_stacked():
    for lib in (jax, minijax):
        with lib.disable_jit():
            total, before = lib.lax.scan(lambda c, x: (c + x, c), 0, np.arange(4))
        assert total == 6 and before.dtype == np.int32
        np.testing.assert_array_equal(before, [0, 0, 1, 3])


BAD = {
    "no rows": lambda lib: lib.lax.scan(lambda c, x: (c, x), 0.0),
    "lengths differ": lambda lib: lib.lax.scan(lambda c, x: (c, x), 0.0, (X, X[:2])),
    "length argument differs": lambda lib: lib.lax.scan(lambda c, x: (c, x), 0.0, X, length=4),
    "scalar row": lambda lib: lib.lax.scan(lambda c, x: (c, x), 0.0, 1.0),
    "dtype changes": lambda lib: lib.lax.scan(lambda c, x: (c.astype(int), x), X[0], X),
    "two types change": lambda lib: lib.lax.scan(
        lambda c, x: ((c[0].astype(int), c[1][:1]), x), (X, X), X),
    "three types change": lambda lib: lib.lax.scan(
        lambda c, x: ((c[1], c[2][:1], c[0] > 0), x), (X[0], X, X > 0), X),
    "no carry": lambda lib: lib.lax.scan(lambda c, x: (None, x), (X, 1), X),
    "trees change": lambda lib: lib.lax.scan(
        lambda c, x: (((), (1, 2), ()), x), ((1,), (1,), (1, 2)), X),
    "no array": lambda lib: lib.lax.scan(lambda c, x: (c, x), "a", X),
    "no callable": lambda lib: lib.lax.scan(3, 0.0, X),
    "weak start of another kind": lambda lib: lib.lax.scan(lambda c, x: (1, x), 0.0, X),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_jaxs_words(name, refused_alike):
    refused_alike(BAD[name])


def test_a_carry_that_changes_its_tree_is_told_where():
    with pytest.raises(TypeError, match=r"same pytree structure.*\n.*\n.*carry c is a"):
        minijax.lax.scan(lambda c, x: ({"a": c}, x), (X, X), X)
    with pytest.raises(TypeError, match="scan body output must be a pair"):
        minijax.lax.scan(lambda c, x: c, 0.0, X)


@pytest.mark.parametrize("transform", ["grad", "jacfwd", "hessian"])
def test_one_program_may_be_the_body_of_loops_that_divide_its_arguments_otherwise(transform):
    def body():
        return minijax.make_jaxpr(lambda a, b: (a * b, a + b))(2.0, 3.0)

    def found(jaxpr, division):
        def f(x):
            return scan_p.bind(x[0], x[1], jaxpr=jaxpr, length=3, reverse=False, unroll=1,
                               **dict(zip(("num_consts", "num_carry"), division, strict=True)))[0]
        return getattr(minijax, transform)(f)(X)
    shared = body()
    for division in [(0, 2), (1, 1)]:  # two carries; or a constant, a carry and a row of results
        np.testing.assert_array_equal(found(shared, division), found(body(), division))


@pytest.mark.parametrize("program", [
    lambda L, z: L.lax.fori_loop(0, 3, lambda i, z: z * z + 1j, z),
    lambda L, z: L.lax.while_loop(lambda z: abs(z) < 2, lambda z: z * z + 1j, z),
    lambda L, z: L.lax.scan(lambda c, x: (c * x, c), z, np.ones(3, np.float32)),
    lambda L, z: L.lax.cond(True, lambda z: z * 2, lambda z: z, z),
    lambda L, z: L.lax.map(lambda t: abs(t * z), np.ones(3, np.float32)),
    lambda L, z: L.lax.scan(lambda c, x: (c + abs(x + 1j), c), 0., np.ones(3, np.float32))])
def test_complex_numbers_run_through_eager_loops_and_branches(program, beside_jax):
    leaves = beside_jax(lambda lib: jax.tree.leaves(program(lib, lib.numpy.array(.5 + .1j))))
    for ours, theirs in zip(*leaves, strict=True):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-6)


@pytest.mark.parametrize("body", [
    lambda c, x: ((c[0] + x, c[1]), (c[1], x, c[0])),
    lambda c, x: ((c[1], c[0]), x),
    lambda c, x: ((c[0], c[0]), None),
    lambda c, x: (c, (x, 1.)),
], ids=["a carry", "two that change places", "one into two", "all"])
@pytest.mark.parametrize("reverse", [False, True])
def test_what_the_body_hands_on_is_not_computed_by_the_loop(body, reverse, beside_jax):
    def program(lib):
        return lambda a, b, xs: lib.lax.scan(body, (a, b), xs, reverse=reverse)
    ours, theirs = beside_jax(lambda lib: str(lib.make_jaxpr(program(lib))(2., 3., X)))
    assert ours == theirs
    same(lambda lib: lib.jit(program(lib))(np.float32(2), np.float32(3), X))
    same(lambda lib: lib.jacrev(program(lib), (0, 1, 2))(np.float32(2), np.float32(3), X))


# ── Loops of unknown length ──────────────────────────────────────────────────────────────────

START = np.array([0.5, 0.3, 1.2], np.float32)


def newton(lib):
    """The cube root: stops when the step is small."""
    def root(a):
        def far(state):
            x, step = state
            return lib.numpy.abs(step) > 1e-4

        def step(state):
            x, _ = state
            delta = (x ** 3 - a) / (3 * x ** 2)
            return x - delta, delta
        return lib.lax.while_loop(far, step, (a, lib.numpy.float32(1)))[0]
    return root


OF_NEWTON = {
    "eval": lambda lib, f: f(np.float32(2)),
    "jit": lambda lib, f: lib.jit(f)(np.float32(2)),
    "jvp": lambda lib, f: lib.jvp(f, (np.float32(2),), (np.float32(1),)),
    "linearize": lambda lib, f: lib.linearize(f, np.float32(2))[1](np.float32(3)),
    "jacfwd": lambda lib, f: lib.jit(lib.jacfwd(f))(np.float32(2)),
    "vmap": lambda lib, f: lib.vmap(f)(START),
    "vmap jvp": lambda lib, f: lib.vmap(lambda a: lib.jvp(f, (a,), (a,))[1])(START),
    "jvp jvp": lambda lib, f: lib.jvp(
        lambda a: lib.jvp(f, (a,), (a,))[1], (START[0],), (START[1],)),
}


@pytest.mark.parametrize("name", OF_NEWTON)
def test_newton_under_every_transformation(name):
    same(lambda lib: OF_NEWTON[name](lib, newton(lib)), rtol=1e-4)


def test_each_example_of_a_batch_stops_in_its_own_time():
    def count(lib):
        return lambda x: lib.lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] * 2, c[1] + 1),
                                            (x, 0))
    same(lambda lib: lib.vmap(count(lib))(START))


@pytest.mark.parametrize("shape", [(1,), (1, 3), (3, 1)])
def test_a_batch_of_one_writes_in_place(shape):
    def filled(lib):
        def fill(n, x):
            return lib.lax.while_loop(lambda c: c[0] < n, lambda c: (
                c[0] + 1, c[1].at[c[0]].set(n)), (0, x))[1]
        for _ in shape:
            fill = lib.vmap(fill)
        return fill
    n = np.arange(np.prod(shape), dtype=np.int32).reshape(shape) * 2
    x = np.zeros((*shape, 6), np.int32)
    same(lambda lib: filled(lib)(n, x))
    program = str(minijax.make_jaxpr(filled(minijax))(n, x))
    # the only example continues wherever the body runs: a choice would copy the array each time
    assert len(re.findall(r":bool\[\S+,6\]", program)) == (max(shape) > 1)


def test_a_loop_that_never_starts_returns_its_start():
    same(lambda lib: lib.lax.while_loop(lambda x: x > 10, lambda x: x + 1, 3))


@pytest.mark.parametrize("bounds", [(0, 5), (2, 2), (5, 1), (-3, 3), (np.int8(0), np.int8(4))])
def test_a_counted_loop_counts(bounds):
    same(lambda lib: lib.lax.fori_loop(*bounds, lambda i, x: x + i * 2, np.int32(1)))
    same(lambda lib: lib.jit(lambda lo, hi: lib.lax.fori_loop(
        lo, hi, lambda i, x: x + i * 2, np.int32(1)))(*bounds))


def test_a_counted_loop_with_known_bounds_can_be_differentiated_in_reverse():
    same(lambda lib: lib.grad(lambda x: lib.lax.fori_loop(
        0, 4, lambda i, c: lib.numpy.sin(c) * x + i, x))(1.5))


def test_a_counted_loop_with_unknown_bounds_is_a_while_loop():
    text = str(minijax.make_jaxpr(lambda n, x: minijax.lax.fori_loop(
        0, n, lambda i, c: c * i, x))(3, 1.0))
    assert "while[" in text and "scan[" not in text


def test_without_jit_a_loop_runs_in_python_unless_its_condition_is_mapped():
    def powers(lib):
        return lambda y: lib.lax.while_loop(lambda x: x < y, lambda x: x * 2, np.float32(1))

    for lib in (jax, minijax):
        with lib.disable_jit():
            assert powers(lib)(5) == 8
            np.testing.assert_array_equal(lib.vmap(powers(lib))(np.arange(6)), [1, 1, 2, 4, 4, 8])


BAD_WHILE = {
    "no boolean": lambda lib: lib.lax.while_loop(lambda c: c, lambda c: c, 0.0),
    "a tree": lambda lib: lib.lax.while_loop(lambda c: (True,), lambda c: c, 0.0),
    "type changes": lambda lib: lib.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0], c[0]), (0, 1.0)),
    "bounds of two types": lambda lib: lib.lax.fori_loop(0, 3.0, lambda i, x: x, 0),
    "no callable": lambda lib: lib.lax.while_loop(3, 4, 0),
    "no result": lambda lib: lib.lax.while_loop(lambda c: True, lambda c: None, 0),
    "text": lambda lib: lib.lax.while_loop(lambda c: True, lambda c: "a", 0),
    "text of a fori_loop": lambda lib: lib.lax.fori_loop(0, 3, lambda i, x: (x, "a"), (1, 2)),
    "text of a loop with a traced bound": lambda lib: lib.jit(
        lambda n: lib.lax.fori_loop(0, n, lambda i, x: "a", 1))(3),
    "reverse derivative": lambda lib: lib.grad(lambda x: lib.lax.while_loop(
        lambda c: c < 3, lambda c: c * 2, x))(1.0),
}


@pytest.mark.parametrize("name", BAD_WHILE)
def test_bad_input_of_a_while_loop_is_refused_in_jaxs_words(name, refused_alike):
    refused_alike(BAD_WHILE[name])


@pytest.mark.parametrize("program", [
    lambda lib: lib.lax.fori_loop(0, 3, lambda i, x: bool(x), 0),
    lambda lib: lib.lax.fori_loop(0, 3, lambda i, x: bool(i), 0),
    lambda lib: lib.jit(lambda n: lib.lax.fori_loop(0, n, lambda i, x: bool(x[1]), (1, 2)))(3),
    lambda lib: lib.lax.while_loop(lambda x: True, lambda x: bool(x), 3),
    lambda lib: lib.lax.scan(lambda c, x: bool(x), 3, X),
    lambda lib: lib.lax.reduce(X, np.float32(0), lambda x, y: bool(x), (0,)),
    lambda lib: lib.lax.custom_root(lambda x: x, 1.0, lambda f, x: bool(x), lambda g, y: y),
    lambda lib: lib.lax.custom_linear_solve(lambda x: x, 1.0, lambda m, b: bool(b))])
def test_a_value_that_is_needed_is_told_of_the_users_function_and_argument(program, beside_jax):
    def told(lib):
        with pytest.raises(lib.errors.TracerBoolConversionError) as caught:
            program(lib)
        function, place = str(caught.value).splitlines()[1].split(" at ")
        return function, place.rpartition("/")[2]
    ours, theirs = beside_jax(told)
    assert ours == theirs


@pytest.mark.parametrize("loop", [
    lambda lax: lax.fori_loop(0, 3, lambda i, x: (x[1], x[0]), (1, 2.0)),
    lambda lax: lax.while_loop(lambda x: x[0] < 3, lambda x: (x[1] + 1, x[0]), (0, 1.0)),
    lambda lax: lax.scan(lambda c, _: ((c[1], c[0]), None), (1, 2.0), None, 2)[0]])
def test_parts_of_a_carry_that_trade_dtypes_are_strong(loop, beside_jax):
    ours, theirs = beside_jax(lambda lib: [(float(x), x.weak_type) for x in loop(lib.lax)])
    assert ours == theirs


@pytest.mark.parametrize("compiled", [True, False], ids=["in a program", "at once"])
def test_the_counter_of_a_loop_has_the_type_it_has_in_jax(compiled):
    bounds = [1, 1.0, True, np.int8(1), np.int32(1), np.uint8(1), np.float32(1)]

    def types(lib, one, two):
        seen = []

        def loop(lower, upper):
            def step(i, c):
                seen.append((str(i.dtype), i.weak_type))
                return c
            return lib.lax.fori_loop(lower, upper, step, lib.numpy.zeros(()))
        try:
            (lib.jit(loop) if compiled else loop)(one, two)
        except TypeError as error:
            return wording(error)
        return seen[0]
    for one in bounds:
        for two in bounds:
            assert types(minijax, one, two) == types(jax, one, two), (one, two)


def test_what_an_unroll_may_be(refused_alike):
    refused_alike(lambda lib: lib.jit(lambda n: lib.lax.fori_loop(
        0, n, lambda i, c: c, 0.0, unroll=2))(3))
    refused_alike(lambda lib: lib.lax.scan(lambda c, x: (c, x), 0, np.ones(3), unroll=-1))


@pytest.mark.parametrize("unroll", [True, False, 0, 2, 9])
def test_an_unroll_is_printed_as_jax_prints_it(unroll):
    def printed(lib):
        def f(x, n):
            def body(i, c):
                return c * 0.5 + i
            some = lib.lax.fori_loop(0, 5, body, x, unroll=unroll)
            return some, lib.lax.fori_loop(0, n, body, x, unroll=bool(unroll))
        return re.findall(r"unroll=\w+", str(lib.make_jaxpr(f)(1.0, 3)))
    assert printed(minijax) == printed(jax) and len(printed(jax)) == 1


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [True, 0, 2, 3, 9])
def test_an_unrolled_loop_gives_the_same_in_fewer_turns(unroll, reverse):
    def f(x, xs):
        return minijax.lax.scan(lambda c, x: (minijax.numpy.sin(c) + x, c[::-1]), x, xs,
                                unroll=unroll, reverse=reverse)
    def rolled(x, xs):
        return minijax.lax.scan(lambda c, x: (minijax.numpy.sin(c) + x, c[::-1]), x, xs,
                                reverse=reverse)
    x, xs = np.arange(3, dtype=np.float32), np.arange(21, dtype=np.float32).reshape(7, 3)
    for one, two in zip(minijax.jit(f)(x, xs), minijax.jit(rolled)(x, xs), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-6)
    turns = 7 // min(max(int(unroll) if unroll is not True else 7, 1), 7)
    assert (f"in range({turns}):" in minijax.jit(f).lower(x, xs).as_text("source")) == (turns > 1)


HANDED_ON = {
    "a carry": lambda x: lambda s: (s[0] + 1, s[1], x * s[1]),
    "two that change places": lambda x: lambda s: (s[0] + 1, s[2], s[1]),
    "one into two": lambda x: lambda s: (s[0] + 1, s[1], s[1]),
}


@pytest.mark.parametrize("body", HANDED_ON.values(), ids=HANDED_ON.keys())
def test_a_carry_that_is_handed_on_is_a_constant_of_the_loop(body, beside_jax):
    def program(lib):
        def f(x, y):
            return lib.lax.while_loop(lambda s: s[0] < 3, body(x), (0, x, y))
        return f
    ours, theirs = beside_jax(lambda lib: str(lib.make_jaxpr(program(lib))(2., 3.)))
    assert ours == theirs
    same(lambda lib: lib.jit(lambda *xs: lib.jvp(program(lib), xs, xs)[0])(START[0], START[1]))
    same(lambda lib: lib.jit(lib.vmap(program(lib)))(START, START))


def test_what_is_handed_on_has_a_reverse_derivative():
    same(lambda lib: lib.grad(lambda x: lib.lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (0, x))[1] ** 2)(np.float32(2)))
    same(lambda lib: lib.jit(lib.grad(lambda x, n: lib.lax.fori_loop(
        0, n, lambda i, s: (s[0], s[1] + 1), (x, 1))[0]))(np.float32(2), 3))


def test_what_the_condition_reads_is_no_constant():
    def f(lib):
        return lib.make_jaxpr(lambda x: lib.lax.while_loop(
            lambda s: s[0] < s[1], lambda s: (s[0] + 1, s[1]), (0., x)))(2.)
    assert str(f(minijax)) == str(f(jax))


def test_a_python_number_that_is_handed_on_comes_back_as_it_is():
    for lib in (minijax, jax):
        assert type(lib.lax.fori_loop(0, 5, lambda i, x: x, 2.)) is float


def what_runs(lib):
    """Loops with Python's numbers in them, and the types that their bodies are given."""
    seen = []

    def told(*values):
        seen.append(tuple(type(x).__name__ for x in values))
        return values[-1]

    np_rows = np.arange(2.0, dtype=np.float32)
    for bounds in ((0, 2), (np.int32(0), 2), (lib.numpy.int32(1), lib.numpy.int32(3)), (2, 0)):
        seen.append(lib.lax.fori_loop(*bounds, lambda i, x: told(i, x) + i, 1.0))
        seen.append(lib.lax.fori_loop(*bounds, lambda i, x: x * i, lib.numpy.ones(2)).tolist())
    last, same = lib.lax.while_loop(lambda c: c[0] < 3, lambda c: (told(c[0]) + 1, c[1]), (0, 2.5))
    seen += [int(last), str(last.dtype), str(same.dtype)]
    last, rows = lib.lax.scan(lambda c, x: (told(x, c), x), 0.5, np_rows)
    seen += [last, rows.tolist(), lib.lax.map(lambda x: told(x) * 2, np_rows).tolist()]
    return seen


def test_loops_under_disable_jit_give_their_bodies_what_jax_gives(beside_jax):
    with minijax.disable_jit(), jax.disable_jit():
        ours, theirs = beside_jax(what_runs)
        assert ours == theirs


# Each step is given numbers whose slope is infinite: zero times it, where one would do, is nan.
BESIDE = {
    "a row that nobody reads": lambda edge, c, row: (c * row[0], row[0]),
    "a row of results that nobody reads": lambda edge, c, row: (c * row[0], (row[0], c * row[1])),
    "a constant that nobody reads": lambda edge, c, row: (c * row[0], (row[0], c * edge[0])),
}


@pytest.mark.parametrize("body", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("reverse", [False, True])
def test_what_no_result_depends_on_has_no_cotangent(body, reverse):
    def gradient(lib):
        def f(x):
            edge = lib.numpy.sqrt(x * 0)
            c, ys = lib.lax.scan(lambda c, row: body(edge, c, row), x[0], (x, edge),
                                 reverse=reverse)
            read = ys[0] if isinstance(ys, tuple) else ys
            return (read * read).sum() + c
        return lib.grad(f)(lib.numpy.array(X)), lib.jit(lib.hessian(f))(lib.numpy.array(X))
    same(gradient)
    assert np.isfinite(gradient(minijax)[0]).all()


# ── What of a constant is read in each turn ──────────────────────────────────────────────────

READS = {
    "a slice": lambda a, i: a[1:4, :3], "a row": lambda a, i: a[2, :3] * jnp.ones((3, 1)),
    "a transpose": lambda a, i: a.T[:3, :3], "a reshape": lambda a, i: a.reshape(10, 6)[:3, :3],
    "a sum": lambda a, i: a.sum(0)[:3] * jnp.ones((3, 1)), "itself": lambda a, i: (a @ a.T)[:3, :3],
    "a scaling": lambda a, i: (2 * a)[:3, :3], "a function": lambda a, i: jnp.exp(a)[:3, :3],
    "itself and a part": lambda a, i: a[:3, :3] + a.sum() * jnp.eye(3),
    "a window": lambda a, i: lax.dynamic_slice(a, (i, i), (3, 3)),
    "rows": lambda a, i: a[(2 * i + jnp.arange(3)) % 6, :3],
    "a row twice": lambda a, i: a[i, :3] * a[i + 1, 1:4] * jnp.ones((3, 1)),
    "a branch": lambda a, i: lax.cond(i % 2 == 0, lambda: a[:3, :3], lambda: a[2:5, 1:4]),
    "a loop inside": lambda a, i: lax.fori_loop(0, 2, lambda j, x: x + a[j, :3], a[:3, :3]),
    "more of it": lambda a, i: jnp.broadcast_to(a[0, 0], (3, 3)),
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("read", READS)
def test_a_gradient_by_what_each_turn_reads_of_a_constant_is_that_of_the_turns_written_out(
        read, jitted):
    def total(a, over):
        def step(h, i):
            return jnp.tanh(READS[read](a, i) @ h), None
        return over(step, jnp.ones(3), jnp.arange(4)).sum()

    def written_out(step, h, rows):
        for i in rows:
            h, _ = step(h, i)
        return h

    def scanned(step, h, rows):
        return lax.scan(step, h, rows)[0]

    a = np.random.default_rng(0).normal(size=(6, 10)).astype(np.float32)
    how = minijax.jit if jitted else lambda f: f
    found = how(minijax.grad(lambda a: total(a, scanned)))(a)
    expected = minijax.grad(lambda a: total(a, written_out))(a)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    _, forwards = how(lambda a: minijax.jvp(lambda a: total(a, scanned), (a,), (a,)))(a)
    np.testing.assert_allclose(forwards, (expected * a).sum(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype, inside", [("float32", "bfloat16"), ("bfloat16", "float32"),
                                           ("float32", "float16")])
def test_the_cotangents_of_a_constant_are_summed_up_in_its_dtype(dtype, inside):
    """One and then a thousand times 1/256: in bfloat16 no sum grows from 2."""
    def gradient(lib):
        xs = lib.numpy.asarray([1.0, *[0.00390625] * 1000], inside)

        def loss(w):
            return lib.lax.scan(lambda c, x: (c, w.astype(inside) * x), 0., xs)[1].astype(
                "float32").sum()
        return lib.jit(lib.grad(loss))(lib.numpy.asarray(1.5, dtype))

    same(gradient, rtol=0)


@pytest.mark.parametrize("read", ["a slice", "a transpose", "a reshape", "a sum", "a scaling",
                                  "a function"])
def test_nothing_that_is_the_same_in_each_turn_is_kept_for_each_or_summed_up_whole(read):
    def f(a):
        return lax.scan(lambda h, i: (jnp.tanh(READS[read](a, i) @ h), None), jnp.ones(3),
                        jnp.arange(9))[0].sum()

    *_, scan = [eqn for eqn in minijax.make_jaxpr(minijax.grad(f))(np.ones((6, 10))).eqns
                if eqn.primitive.name == "scan"]
    assert scan.params["reverse"]
    assert not any(v.aval.shape[:1] == (9,) and v.aval.ndim > 2 for v in scan.invars)
    assert not any(v.aval.shape == (6, 10) for v in scan.outvars)


@pytest.mark.parametrize("told", [lambda c, s: c, lambda c, s: s])  # JAX: a constant only once
def test_what_a_body_prints_is_printed_in_each_turn_of_a_loop_that_is_differentiated(told, capsys):
    def printed(lib):
        def step(c, s):
            lib.debug.print("{}", told(c, s))
            return c * s, None
        lib.block_until_ready(lib.jit(lib.grad(lambda x: lib.lax.scan(step, x, X)[0]))(2.0))
        lib.effects_barrier()
        return capsys.readouterr().out
    assert printed(minijax) == printed(jax) != ""


@pytest.mark.parametrize("loop", [
    "lax.scan(lambda c, y: (c * y, c), c, jnp.ones(3))[0]",
    "lax.scan(lambda c, y: (c * 2., c), c, jnp.ones(3))[0]",
    "lax.scan(lambda k, y: (k * c, None), S, None, length=3)[0]",
    "lax.scan(lambda k, y: (k * c, None), 2., None, length=3)[0]",
    "lax.scan(lambda k, y: (k, k * c), 2., None, length=3)[1].sum()",
    "lax.fori_loop(0, 3, lambda i, c: c * S, c)", "lax.fori_loop(0, 3, lambda i, c: c * 2., c)",
    "lax.scan(lambda s, y: ((s[0] * y, s[1] * 2.), s[1]), (c, c), jnp.ones(3))[0][0]",
    "lax.scan(lambda s, y: ((s[0] * y, s[1] * 2.), s[1]), (c, c), jnp.ones(3))[0][1]",
    "sum(lax.scan(lambda s, y: ((s[0] * y, s[1] * 2.), s[1]), (c, c), jnp.ones(3))[0])",
])
def test_derivatives_through_a_loop_are_as_weak_as_in_jax(loop, beside_jax):
    def weak_types(j):
        names = {"lax": j.lax, "jnp": j.numpy, "S": j.numpy.float32(2)}
        f = eval(f"lambda c: {loop}", names)
        derivatives = [j.grad(f), j.jit(j.grad(f)), j.jacfwd(f), j.grad(j.grad(f)),
                       lambda x: j.vmap(j.grad(f))(j.numpy.stack([x * j.numpy.ones(()), x])),
                       lambda x: j.linearize(f, x)[1](1.)]
        return [g(1.).weak_type for g in derivatives]
    ours, theirs = beside_jax(weak_types)
    assert ours == theirs
