"""Transformations inside each other, as deep as JAX manages at Python's usual recursion limit."""

import inspect
import threading

import jax as theirs
import pytest

import minijax as ours
from minijax import core
from minijax.core import jaxpr
from minijax.core.jaxpr import jaxpr_as_fun
from minijax.util import inner_first


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
    "grad": lambda lib: lib.grad,
    "checkpoint": lambda lib: lib.checkpoint,
    "custom_jvp": rule,
    "vjp": lambda lib: lambda f: lambda x: lib.vjp(f, x)[0],
    "while_loop": lambda lib: lambda f: lambda x: lib.lax.while_loop(
        lambda s: s[1] < 1, lambda s: (f(s[0]), s[1] + 1), (x, 0))[0],
    "cond": lambda lib: lambda f: lambda x: lib.lax.cond(x > 0, f, lambda y: y, x),
    "scan": lambda lib: lambda f: lambda x: lib.lax.scan(
        lambda c, _: (f(c), None), x, None, length=1)[0]}


def nested(transform, depth):
    if depth == 0:
        return lambda x: x * 1.5
    return transform(lambda x: nested(transform, depth - 1)(x) + 1.0)


# As deep as JAX; NumPy's arrays have at most 64 axes, which `vmap` of one example each uses up.
@pytest.mark.parametrize("name, depth", [
    ("jit", 120), ("jvp", 95), ("vmap", 60), ("linearize", 106), ("value_and_grad", 79),
    ("grad", 73), ("vjp", 106), ("checkpoint", 106), ("custom_jvp", 110), ("cond", 137),
    ("while_loop", 106), ("scan", 90)])
def test_transformations_nest_so_deep(name, depth, monkeypatch):
    monkeypatch.setattr(core.base_trace, "__class__", core.EvalTrace)  # no check has been on
    transform = TRANSFORMATIONS[name](ours)
    value = 3.0 + depth if name != "grad" else 0.0
    assert on_a_fresh_stack(lambda: nested(transform, depth)(2.0)) == value


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_what_is_nested_is_traced_and_printed_as_by_jax(name):
    def text(lib):
        return str(lib.make_jaxpr(nested(TRANSFORMATIONS[name](lib), 12))(2.0))
    mine, jaxs = on_a_fresh_stack(lambda: text(ours)), on_a_fresh_stack(lambda: text(theirs))
    assert mine.count("add") == jaxs.count("add") >= 12


@pytest.mark.parametrize("use, value", [
    (lambda f: ours.grad(f)(2.0), 1.5), (lambda f: ours.jit(ours.grad(f))(2.0), 1.5),
    (lambda f: ours.vmap(f)(ours.numpy.ones(3))[0], 101.5),
    (lambda f: ours.jvp(f, (2.0,), (1.0,))[1], 1.5),
    (lambda f: ours.hessian(f)(2.0), 0.0),
    (lambda f: ours.jit(f).lower(2.0).compile()(2.0), 103.0)],
    ids=["grad", "jit of grad", "vmap", "jvp", "hessian", "lower and compile"])
def test_functions_inside_each_other_are_transformed_and_compiled(use, value):
    assert on_a_fresh_stack(lambda: use(nested(ours.jit, 100))) == value


# ── Programs that were made from the inside out are not limited by what made them ────────────

def program(kind, depth):
    """A function that runs a program of programs inside each other, `depth` of them."""
    closed = ours.make_jaxpr(lambda x: x * 1.5)(2.0)
    for _ in range(depth):
        inner = jaxpr_as_fun(closed)
        closed = ours.make_jaxpr(
            TRANSFORMATIONS[kind](ours)(lambda x, inner=inner: inner(x)[0] + 1.0))(2.0)
    return lambda x: jaxpr_as_fun(closed)(x)[0]


USES = {
    "call": (lambda f: f(2.0), lambda n: 3.0 + n),
    "grad": (lambda f: ours.grad(f)(2.0), lambda n: 1.5),
    "jit of grad": (lambda f: ours.jit(ours.grad(f))(2.0), lambda n: 1.5),
    "jvp": (lambda f: ours.jvp(f, (2.0,), (1.0,))[1], lambda n: 1.5),
    "linearize": (lambda f: ours.linearize(f, 2.0)[1](1.0), lambda n: 1.5),
    "hessian": (lambda f: ours.hessian(f)(2.0), lambda n: 0.0),
    "vmap": (lambda f: ours.vmap(f)(ours.numpy.ones(3))[0], lambda n: 1.5 + n),
    "checkpoint": (lambda f: ours.grad(ours.checkpoint(f))(2.0), lambda n: 1.5),
    "lowered": (lambda f: ours.jit(f).lower(2.0).as_text().count("def "), lambda n: 1),
}


@pytest.mark.parametrize("kind, depth, use", [
    *(("jit", 300, use) for use in USES), ("checkpoint", 60, "grad"), ("cond", 60, "grad"),
    ("scan", 60, "grad"), ("scan", 60, "vmap"), ("while_loop", 60, "jvp"),
    ("while_loop", 60, "vmap")])
def test_programs_inside_each_other_are_transformed_however_deep_they_are(kind, depth, use):
    run, value = USES[use]
    assert on_a_fresh_stack(lambda: run(program(kind, depth))) == value(depth)


@pytest.mark.parametrize("kind", ["jit", "scan", "cond"])
def test_what_is_derived_of_programs_inside_each_other_is_that_of_the_outermost_first(
        kind, monkeypatch):
    def texts():
        ours.clear_caches()
        g = program(kind, 5)
        return [str(ours.make_jaxpr(h)(2.0)) for h in (ours.grad(g), ours.vmap(g, axis_size=2,
                in_axes=None, axis_name="i"), lambda x: ours.jvp(g, (x,), (x,)))]
    monkeypatch.setattr(inner_first, "NESTED", 1000)
    outermost_first = texts()
    monkeypatch.setattr(inner_first, "NESTED", 1)
    assert texts() == outermost_first


def test_a_program_inside_is_derived_under_the_flags_of_who_asks(monkeypatch):
    monkeypatch.setattr(inner_first, "NESTED", 1)
    flags = []
    outer = ours.make_jaxpr(lambda x: ours.jit(lambda y: y + 1.0)(x))(1.0)
    (inside,) = jaxpr.subjaxprs(outer.eqns[0].params)

    def of_inside():
        flags.append(ours.config.jax_numpy_rank_promotion)
        return len(flags)

    def of_outer():
        with ours.numpy_rank_promotion("raise"):
            return inside.derived(("a",), of_inside)
    assert outer.derived(("b",), of_outer) == 1 and flags == ["raise"]


def test_a_derivation_that_never_finds_what_it_has_asked_for_ends_all_the_same(monkeypatch):
    monkeypatch.setattr(inner_first, "NESTED", 1)
    outer = ours.make_jaxpr(lambda x: ours.jit(lambda y: y + 1.0)(x))(1.0)
    (inside,) = jaxpr.subjaxprs(outer.eqns[0].params)
    assert outer.derived(("b",), lambda: inside.derived((object(),), lambda: 3)) == 3


def test_an_error_in_what_is_derived_first_is_that_of_who_asked(monkeypatch):
    monkeypatch.setattr(inner_first, "NESTED", 1)
    outer = ours.make_jaxpr(lambda x: ours.jit(lambda y: y + 1.0)(x))(1.0)
    (inside,) = jaxpr.subjaxprs(outer.eqns[0].params)

    def refuse():
        raise ValueError("no derivative")
    for _ in range(2):
        with pytest.raises(ValueError, match="no derivative"):
            outer.derived(("b",), lambda: inside.derived(("a",), refuse))
    assert ours.grad(lambda x: jaxpr_as_fun(outer)(x)[0])(2.0) == 1.0


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
    assert any("nested too deeply" in note for note in error.__notes__)
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
