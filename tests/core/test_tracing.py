"""Python to program: what is recorded, what is a constant, what is refused."""

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import ShapedArray, Tracer
from minijax.core.tracing import convert_constvars, convert_tracers, stage

F32 = ShapedArray((), np.float32)


def test_scalars_become_literals_and_arrays_constants():
    table = jnp.arange(3.0)
    closed = minijax.make_jaxpr(lambda x: x * 2.0 + table)(np.float32(1))
    assert len(closed.consts) == 1 and closed.consts[0] is table
    assert "mul a 2.0" in str(closed).replace("b 2.0", "a 2.0")


def test_the_same_array_is_one_constant():
    table = jnp.arange(3.0)
    closed = minijax.make_jaxpr(lambda x: x * table + table)(np.float32(1))
    assert len(closed.consts) == 1


def test_everything_is_staged_under_jit_even_what_no_argument_reaches():
    closed = minijax.make_jaxpr(lambda x: lax.sin(np.float32(1.0)))(1.0)
    assert [eqn.primitive.name for eqn in closed.eqns] == ["sin"]


def test_closed_over_tracers_can_be_made_inputs():
    found = []

    def outer(x):
        closed = stage(lambda y: [lax.mul(x, y)], [F32])
        found.append((convert_tracers(closed), convert_constvars(closed)))
        return x
    minijax.jit(outer)(np.float32(1))
    for closed, consts in found[0]:
        assert len(consts) == 1 and isinstance(consts[0], Tracer)
        assert closed.consts == [] and len(closed.jaxpr.invars) == 2


@pytest.mark.parametrize("f", [lambda x: "a", lambda x: (x, object())])
def test_a_result_that_is_no_array_is_refused_with_the_functions_place(f):
    with pytest.raises(TypeError, match="is not a valid JAX type") as caught:
        minijax.jit(f)(1.0)
    assert f"test_tracing.py:{f.__code__.co_firstlineno}" in str(caught.value)


def message(lib, f, *args):
    with pytest.raises(TypeError) as caught:
        f(lib)(*args)
    return str(caught.value).split("\n\n")[0].replace("minijax", "jax")


def branching(lib):
    @lib.jit
    def f(x, y):
        if x < y:
            return x
        return y
    return f


def test_a_python_branch_on_a_traced_value_names_the_arguments_behind_it():
    text = message(minijax, branching, 1.0, 2.0)
    assert "depends on the values of the arguments x and y" in text
    assert "tracing the function f at" in text and "for jit" in text


def of_three(lib):
    return lib.jit(lambda x, y, z: bool(x + y * z))


def of_a_shape(lib):
    return lib.jit(lambda x, y, z: x.reshape(lib.numpy.array((1, 1)).prod()))


def of_constants(lib):
    def f(x, y, z):
        total = lib.numpy.arange(3) * 2
        total += 1
        return int(total.sum())
    return lib.jit(f)


def of_many_constants(lib):
    def f(x, y, z):
        total = lib.numpy.arange(3)
        for _ in range(6):
            total = total + 1
        return bool(total[0])
    return lib.jit(f)


@pytest.mark.parametrize("program, words", [
    (of_three, "the arguments x, y, and z."), (of_a_shape, "operation a:i32[] = reduce_prod"),
    (of_constants, "operation a:i32[3] = add b 1"), (of_many_constants, "are not shown.)")])
def test_an_error_says_where_a_value_comes_from_as_jax_does(program, words):
    found = []
    for lib in (minijax, jax):
        with pytest.raises(TypeError) as caught:
            program(lib)(1.0, 2.0, 3.0)
        found.append(str(caught.value).partition("The error occurred")[2].partition("See")[0])
    assert found[0].strip() == found[1].strip() and words in found[0]


def test_an_argument_that_is_no_array_is_refused_as_jax_does():
    ours = message(minijax, lambda lib: lib.jit(lambda x: x), "a")
    theirs = message(jax, lambda lib: lib.jit(lambda x: x), "a")
    assert ours.split(">")[-1] == theirs.split(">")[-1]


def test_a_type_may_be_returned_and_has_no_value():
    import jax
    for lib in (minijax, jax):
        struct = lib.ShapeDtypeStruct((2,), np.float32)
        assert lib.eval_shape(lambda x, s=struct: (x, s), 1.0)[1] == struct
        assert str(lib.make_jaxpr(lambda s=struct: s)()).split() == (
            "{ lambda a:f32[2]; . let in (a,) }".split())
        with pytest.raises(TypeError, match="ShapeDtypeStruct does not have a value"):
            lib.jit(lambda s=struct: s)()
        with pytest.raises(TypeError, match="ShapeDtypeStruct"):
            lib.numpy.sin(struct)


class Doubled:
    """A container that computes when it is taken apart, and when it is put together."""

    def __init__(self, half):
        self.half = half


minijax.tree_util.register_pytree_node(
    Doubled, lambda x: ((x.half * 2,), None), lambda _, whole: Doubled(whole[0] / 2))


@pytest.mark.parametrize("transform", [
    minijax.jit,
    minijax.grad,
    lambda f: minijax.jit(minijax.grad(f)),
    lambda f: lambda x: minijax.jvp(f, (x,), (x,))[1],
    lambda f: lambda x: minijax.linearize(f, x)[1](x),
    lambda f: lambda x: minijax.vmap(f)(Doubled(x.half[None])),
    minijax.jacfwd,
    minijax.make_jaxpr,
    lambda f: lambda x: minijax.vjp(f, x)[1](jnp.float32(1)),
    lambda f: lambda x: minijax.lax.cond(x.half > 0, f, f, x),
    lambda f: minijax.grad(minijax.checkpoint(f)),
    lambda f: lambda x: minijax.lax.while_loop(
        lambda x: x.half < 99, lambda x: Doubled(f(x)), x),
    lambda f: lambda x: minijax.lax.scan(
        lambda x, row: (Doubled(f(x)), x), x, Doubled(jnp.ones(3)))[1],
    lambda f: lambda x: minijax.jit(f).lower(x).compile()(x),
    lambda f: lambda x: minijax.eval_shape(f, x),
], ids=["jit", "grad", "jit of grad", "jvp", "linearize", "vmap", "jacfwd", "make_jaxpr", "vjp",
        "cond", "checkpoint", "while_loop", "scan", "lower", "eval_shape"])
def test_a_container_may_compute_where_its_function_is_traced(transform):
    def square(x):
        assert isinstance(x, Doubled)
        return Doubled(x.half * x.half).half

    transform(square)(Doubled(jnp.float32(3)))
    returned = minijax.jit(lambda x: Doubled(x.half + 1))(Doubled(jnp.float32(3)))
    assert returned.half == 4
