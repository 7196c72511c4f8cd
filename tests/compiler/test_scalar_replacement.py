"""Scalar replacement: the same numbers, and nothing known is computed or loaded again."""

import numpy as np
import pytest

from minijax.compiler.builder import Builder
from minijax.compiler.loop_unrolling import unroll_loops
from minijax.compiler.loops import (INT64, Assign, Buffer, Constant, Declare, For, If, Kernel, Let,
                                    Load, Read, Scalar, Store, Variable, While, defined, walk)
from minijax.compiler.scalar_replacement import replace_by_scalars
from tests.running_text import run_text

F32 = np.dtype(np.float32)
X, Y = (Buffer(name, F32, (2, 3), role) for name, role in (("x", "input"), ("y", "output")))
TEMP = Buffer("temp", F32, (4,), "temp")


def at(*numbers):
    return tuple(Constant(np.int64(x), INT64) for x in numbers)


def scalar(name, dtype=F32):
    return Scalar(name, dtype)


def random_body(random):
    """Statements that load, store and compute at random, with branches and loops among them."""
    b = Builder()
    values = [b.load(X, at(0, k)) for k in range(3)]
    which = b.convert(b.gt(values[0], 0.), INT64)
    total = b.variable(values[1])

    def place():
        return random.choice(2), (which, *at(0, 1, 2))[random.integers(4)]

    def step(depth):
        kind = random.integers(7 - 2 * depth)
        if kind == 0:
            values.append(b.load(Y, place()))
        elif kind == 1:
            b.store(Y, place(), values[random.integers(len(values))])
        elif kind == 2:
            x, y = (values[k] for k in random.integers(len(values), size=2))
            values.append(b.add(b.mul(x, 0.5), y))
        elif kind == 3:
            b.assign(total, values[random.integers(len(values))])
        elif kind == 4:
            values.append(b.read(total))
        else:
            known = len(values)
            with b.when(b.gt(values[2], 0.)) if kind == 5 else b.loop(2):
                for _ in range(3):
                    step(1)
            del values[known:]
    for _ in range(25):
        step(0)
    for k, value in enumerate(values[-3:]):
        b.store(Y, at(1, k), value)
    return tuple(b.scopes[0].statements)


@pytest.mark.parametrize("seed", range(60))
def test_the_numbers_of_random_statements_stay(seed):
    random = np.random.default_rng(seed)
    body = random_body(random)
    x = random.normal(size=(2, 3)).astype(F32)
    old, new = (Kernel("k", (X,), (Y,), (), (), 0, {}, each)
                for each in (body, replace_by_scalars(body)))
    assert len([*walk(new.body)]) <= len([*walk(old.body)])
    np.testing.assert_array_equal(run_text(new, [x]), run_text(old, [x]))


def test_what_was_computed_loaded_or_stored_is_known():
    a, b, c, d = map(scalar, "abcd")
    body = replace_by_scalars((
        Load(a, X, at(0, 1)), Load(b, X, at(0, 1)), Let(c, "add", (a, b)), Store(Y, at(1, 2), c),
        Let(d, "add", (b, a)), Load(e := scalar("e"), Y, at(1, 2)), Store(Y, at(0, 0), e),
        Store(Y, at(0, 1), d)))
    assert [type(each) for each in body] == [Load, Let, Store, Store, Store]
    assert [each.value for each in body[2:]] == [c, c, c]


def test_zeros_of_both_signs_differ():
    zeros = [Constant(np.float32(x), F32) for x in (0., -0.)]
    body = tuple(Let(scalar("a"), "div", (Constant(np.float32(1), F32), x)) for x in zeros)
    assert len(replace_by_scalars(body)) == 2


def test_a_store_at_a_place_that_is_not_known_forgets_the_elements_of_its_buffer():
    i, value = Scalar("i", INT64), scalar("v")
    loads = [Load(scalar("a"), Y, at(0, 0)), Store(Y, (*at(0), i), value),
             Load(scalar("b"), Y, at(0, 0)), Load(scalar("c"), Y, (*at(0), i))]
    assert [*map(type, replace_by_scalars(loads))] == [Load, Store, Load]


def test_what_a_branch_stores_is_not_known():
    test, value = Scalar("t", np.dtype(bool)), scalar("v")
    body = (Load(scalar("a"), Y, at(0, 0)), If(test, (Store(Y, at(0, 0), value),)),
            Load(scalar("b"), Y, at(0, 0)))
    assert [*map(type, replace_by_scalars(body))] == [Load, If, Load]


def test_variables_are_operands_unless_an_inner_body_accesses_them():
    x, y = Variable("x", F32), Variable("y", F32)
    test, value = Scalar("t", np.dtype(bool)), scalar("v")
    body = (Declare(x, value), Declare(y, value), If(test, (Assign(y, value),)),
            Read(a := scalar("a"), x), Read(b := scalar("b"), y), Store(Y, at(0, 0), a),
            Store(Y, at(0, 1), b))
    assert [*map(type, replace_by_scalars(body))] == [Declare, If, Read, Store, Store]


def test_scalars_that_others_need_keep_their_names():
    a, b, x = scalar("a"), scalar("b"), Variable("x", F32)
    loads = Load(a, X, at(0, 0)), Load(b, X, at(0, 0))
    assert len(replace_by_scalars(loads)) == 1
    assert [each.target for each in replace_by_scalars(loads, needed={b})] == [a, b]
    body = Declare(x, a), Read(b, x)
    assert replace_by_scalars(body) == ()
    assert [*map(type, replace_by_scalars(body, needed={b}))] == [Declare, Read]


def test_what_a_while_loop_asks_for_keeps_its_name():
    i, total, test = Scalar("i", INT64), Variable("total", F32), scalar("test")
    a, b, c = map(scalar, "abc")
    add = Load(a, X, (*at(0), i)), Read(b, total), Let(c, "add", (a, b)), Assign(total, c)
    condition = Declare(total, Constant(np.float32(0), F32)), For(i, *at(0, 3), add)
    loop, = unroll_loops((While((*condition, Read(test, total)), test, ()),))
    assert not any(isinstance(each, For) for each in loop.condition)
    assert test in map(defined, loop.condition)


def test_elements_of_a_private_temp_are_scalars_if_all_are_known():
    value = scalar("v")
    stored, loaded = Store(TEMP, at(1), value), Load(scalar("a"), TEMP, at(1))
    out = Store(Y, at(0, 0), loaded.target)
    new, = replace_by_scalars((stored, loaded, out), {TEMP})
    assert new.buffer is Y and new.value is value
    assert replace_by_scalars((loaded, out), {TEMP}) is None
