"""Transformations inside each other, as deep as JAX manages at Python's usual recursion limit."""

import inspect
import threading

import jax as theirs
import pytest

import minijax as ours
from minijax import core


def on_a_fresh_stack(f):
    """What a function gives that may use all of the stack: a test stands on some of it."""
    given = []

    def run():
        try:
            given.append(f())
        except RecursionError as error:
            given.append(error)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return given[0]


def rule(lib):
    def with_rule(f):
        g = lib.custom_jvp(f)
        g.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
        return g
    return with_rule


TRANSFORMATIONS = {
    "jit": lambda lib: lib.jit,
    "jvp": lambda lib: lambda f: lambda x: lib.jvp(f, (x,), (1.0,))[0],
    "vmap": lambda lib: lambda f: lambda x: lib.vmap(f)(lib.numpy.asarray(x)[None])[0],
    "linearize": lambda lib: lambda f: lambda x: lib.linearize(f, x)[0],
    "value_and_grad": lambda lib: lambda f: lambda x: lib.value_and_grad(f)(x)[0],
    "checkpoint": lambda lib: lib.checkpoint,
    "custom_jvp": rule,
    "cond": lambda lib: lambda f: lambda x: lib.lax.cond(x > 0, f, lambda y: y, x),
    "scan": lambda lib: lambda f: lambda x: lib.lax.scan(
        lambda c, _: (f(c), None), x, None, length=1)[0]}


def nested(transform, depth):
    if depth == 0:
        return lambda x: x * 1.5
    return transform(lambda x: nested(transform, depth - 1)(x) + 1.0)


@pytest.mark.parametrize("name, depth", [
    ("jit", 95), ("jvp", 60), ("vmap", 50), ("linearize", 38), ("value_and_grad", 34),
    ("checkpoint", 70), ("custom_jvp", 80), ("cond", 55), ("scan", 55)])
def test_transformations_nest_so_deep(name, depth):
    transform = TRANSFORMATIONS[name](ours)
    assert on_a_fresh_stack(lambda: nested(transform, depth)(2.0)) == 3.0 + depth


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_what_is_nested_is_traced_and_printed_as_by_jax(name):
    def text(lib):
        return str(lib.make_jaxpr(nested(TRANSFORMATIONS[name](lib), 12))(2.0))
    mine, jaxs = on_a_fresh_stack(lambda: text(ours)), on_a_fresh_stack(lambda: text(theirs))
    assert mine.count("add") == jaxs.count("add") >= 12


@pytest.mark.parametrize("use, value", [
    (lambda f: ours.grad(f)(2.0), 1.5), (lambda f: ours.jit(ours.grad(f))(2.0), 1.5),
    (lambda f: ours.vmap(f)(ours.numpy.ones(3))[0], 31.5),
    (lambda f: ours.jvp(f, (2.0,), (1.0,))[1], 1.5),
    (lambda f: ours.jit(f).lower(2.0).compile()(2.0), 33.0)],
    ids=["grad", "jit of grad", "vmap", "jvp", "lower and compile"])
def test_functions_inside_each_other_are_transformed_and_compiled(use, value):
    assert on_a_fresh_stack(lambda: use(nested(ours.jit, 30))) == value


def test_the_signature_of_functions_inside_each_other_is_that_of_the_innermost():
    def innermost(x, *, scale=2.0):
        return x * scale
    f = innermost
    for _ in range(40):  # asked twice by each, the innermost would answer a billion times
        f = ours.jit(ours.grad(f))
    assert inspect.signature(f) == inspect.signature(innermost)


def test_too_deep_is_said_and_leaves_nothing_open():
    error = on_a_fresh_stack(lambda: nested(ours.jit, 2000)(2.0))
    assert isinstance(error, RecursionError)
    assert any("too deep inside each other" in note for note in error.__notes__)
    assert core.current_trace.get() is core.base_trace
    assert ours.jit(ours.grad(lambda x: x * x))(3.0) == 6.0


@pytest.mark.parametrize("depth", [100, 1000])
def test_a_deep_tree_goes_through_a_jitted_function_again_and_again(depth):
    tree = 1.0
    for _ in range(depth):
        tree = {"a": [tree], "b": ()}
    f = ours.jit(lambda t: ours.tree.map(lambda x: x + 1.0, t))
    once = f(tree)
    assert ours.tree.leaves(once) == [2.0] and ours.tree.leaves(f(once)) == [3.0]
    assert ours.tree.structure(f(f(once))) == ours.tree.structure(tree)
