"""Vectorising: a batch gives what a Python loop over its examples gives."""

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import core, lax
from minijax.core.vmap import batch_jaxpr

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def looped(f, *batches):
    return np.stack([np.asarray(f(*example)) for example in zip(*batches, strict=True)])


@pytest.mark.parametrize("f", [lambda x: jnp.sin(x) * x, lambda x: x.sum(), lambda x: x[::-1],
                               lambda x: jnp.outer(x, x), lambda x: jnp.where(x > 2, x, 0),
                               lambda x: lax.cond(x[0] > 3, jnp.sin, jnp.cos, x)])
def test_a_batch_is_a_loop_over_examples(f):
    np.testing.assert_allclose(minijax.vmap(f)(X), looped(f, X), rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_the_axis_is_chosen_going_in_and_coming_out(axis):
    f = lambda x: x * 2 + x[0]  # noqa: E731
    moved = np.moveaxis(X, 0, axis)
    out = minijax.vmap(f, in_axes=axis, out_axes=axis)(moved)
    np.testing.assert_allclose(np.moveaxis(np.asarray(out), axis, 0), looped(f, X))


def test_trees_and_unmapped_arguments():
    f = lambda tree, y: {"out": tree["a"] * y + tree["b"]}  # noqa: E731
    tree = {"a": X, "b": np.float32(1)}
    out = minijax.vmap(f, in_axes=({"a": 0, "b": None}, None))(tree, np.float32(3))
    np.testing.assert_allclose(out["out"], X * 3 + 1)


def test_what_is_not_mapped_is_computed_once():
    closed = minijax.make_jaxpr(minijax.vmap(lambda x, y: x * jnp.sin(y), (0, None)))(X, X[0, 0])
    sine = next(eqn for eqn in closed.eqns if eqn.primitive.name == "sin")
    assert sine.outvars[0].aval.shape == ()


def test_the_batched_program_says_which_outputs_are_batched():
    closed = minijax.make_jaxpr(lambda x, y: (x * 2, y + 1))(1.0, 2.0)
    axis = core.Axis(5).cache_key
    program, batched = batch_jaxpr(closed, axis, [True, False])
    assert list(batched) == [True, False] and program.out_avals[0].shape == (5,)
    program, batched = batch_jaxpr(closed, axis, [True, False], keep=[True, True])
    assert list(batched) == [True, True] and program.out_avals[1].shape == (5,)


def test_vmap_nests_and_composes_with_grad():
    f = lambda x, y: jnp.sin(x) * y  # noqa: E731
    both = minijax.vmap(minijax.vmap(minijax.grad(f), (None, 0)), (0, None))(X[:, 0], X[0])
    np.testing.assert_allclose(both, np.cos(X[:, :1]) * X[0], rtol=1e-6, atol=1e-6)


def test_sums_along_a_named_axis():
    f = lambda x: x / lax.psum(x, "rows")  # noqa: E731
    out = minijax.vmap(f, axis_name="rows")(X + 1)
    np.testing.assert_allclose(out, (X + 1) / (X + 1).sum(0), rtol=1e-6)
    mean = minijax.vmap(minijax.jit(lambda x: lax.pmean(x, "rows")), axis_name="rows")(X)
    np.testing.assert_allclose(mean, np.broadcast_to(X.mean(0), X.shape), rtol=1e-6)


def test_an_inner_axis_of_the_same_name_hides_the_outer_one():
    inner = minijax.vmap(lambda x: lax.psum(x, "i"), axis_name="i")
    out = minijax.vmap(inner, axis_name="i")(X)
    np.testing.assert_allclose(out, np.broadcast_to(X.sum(1, keepdims=True), X.shape))


ONES = {n: np.ones(n, np.float32) for n in (2, 3, 4, 5)}
ILL_TYPED = {  # x has 3 elements
    "a sum": lambda lib, x: x + ONES[5],
    "a product of matrices": lambda lib, x: x @ ONES[4],
    "dot": lambda lib, x: lib.numpy.dot(x, ONES[4]),
    "a choice": lambda lib, x: lib.numpy.where(x > 0, x, ONES[5]),
    "a shape": lambda lib, x: x.reshape(2, 2),
    "an index": lambda lib, x: x[0, 0],
    "a sum over an axis": lambda lib, x: x.sum(1),
    "an update": lambda lib, x: x.at[:2].set(x),
    "dtypes": lambda lib, x: lib.lax.add(x, np.ones(3, np.int32)),
}
B = np.ones((2, 3), np.float32)
MAPPED = {
    "vmap": lambda lib, f: lib.vmap(f)(B),
    "vmap of vmap": lambda lib, f: lib.vmap(lib.vmap(f))(B[None]),
    "vmap of jvp": lambda lib, f: lib.vmap(lambda x: lib.jvp(f, (x,), (x,)))(B),
    "jvp of vmap": lambda lib, f: lib.jvp(lib.vmap(f), (B,), (B,)),
    "grad of vmap": lambda lib, f: lib.grad(lambda b: lib.vmap(f)(b).sum())(B),
    "jit of vmap": lambda lib, f: lib.jit(lib.vmap(f))(B),
    "vmap of jit": lambda lib, f: lib.vmap(lib.jit(f))(B),
    "vmap in scan": lambda lib, f: lib.lax.scan(lambda c, x: (c, lib.vmap(f)(x)), 0.0, B[None]),
}


@pytest.mark.parametrize("mapped", MAPPED)
def test_a_mistake_of_shapes_is_told_of_one_example_in_jaxs_words(mapped, refused_alike):
    for f in ILL_TYPED.values():
        refused_alike(lambda lib, f=f: MAPPED[mapped](lib, lambda x: f(lib, x)))


@pytest.mark.parametrize(("program", "shape"), [
    (lambda x: lax.add(x, ONES[5]), "(5,)"),
    (lambda x: lax.concatenate([x, np.ones((2, 2), np.float32)], 0), "(3,), (2, 2)"),
    (lambda x: lax.slice(x, (0,), (5,)), "(3,)"),
    (lambda x: lax.dynamic_slice(x, (0,), (5,)), "(3,)"),
    (lambda x: lax.select(ONES[5] > 0, x, x), "(3,)"),
    (lambda x: lax.rev(x, (1,)), "(1,)"),
    (lambda x: lax.sort((x, ONES[5])), "(3,) (5,)"),
    (lambda x: lax.transpose(x, (1, 0)), "(3,)"),
])
def test_the_shapes_in_an_error_are_those_of_one_example(program, shape):
    outside = pytest.raises((TypeError, ValueError), program, X[0, :3])
    for mapped in (minijax.vmap, lambda f: minijax.vmap(minijax.vmap(f))):
        batch = B if mapped is minijax.vmap else B[None]
        inside = pytest.raises(type(outside.value), mapped(program), batch)
        assert str(inside.value) == str(outside.value) and shape in str(inside.value)


def test_a_mistake_of_a_batching_rule_is_shown_as_it_is():
    twice = core.Primitive("twice", abstract_eval=lambda x: [x])
    twice.batch = lambda axis, args, dims: lax.reshape(args[0], (7,))
    with pytest.raises(TypeError, match=r"\(7,\).*\(2, 3\)"):
        minijax.vmap(twice.bind)(B)
    without_type = core.Primitive("untyped", batch=lambda axis, args, dims: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        minijax.vmap(without_type.bind)(B)


# ── What is not mapped ───────────────────────────────────────────────────────────────────────

UNMAPPED = [3, 2.5, np.float64(2), np.arange(3.0), "text", len, [1, "two"], None]


@pytest.mark.parametrize("given", UNMAPPED, ids=repr)
def test_what_is_not_mapped_is_handed_on_as_it_is(given):
    """As in JAX: it need not be an array, and numbers are divided by Python."""
    def kinds(lib):
        seen = []

        def f(x, y):
            seen.append(lib.tree.map(type, y))
            return x
        lib.vmap(f, in_axes=(0, None))(X, given)
        return seen
    assert kinds(minijax) == kinds(jax)


@pytest.mark.parametrize("given", UNMAPPED[:4], ids=repr)
def test_and_comes_back_as_it_was_where_no_axis_is_asked_for(given):
    def out(lib):
        return lib.vmap(lambda x, y: (x, y), in_axes=(0, None), out_axes=(0, None))(X, given)[1]
    assert type(out(minijax)) is type(out(jax)) and out(minijax) is given


def with_rule(lib):
    f = lib.custom_vjp(lib.numpy.sin)
    f.defvjp(lambda x: (lib.numpy.sin(x), x), lambda x, ct: (ct * lib.numpy.cos(x),))
    return f


def as_reference(lib, x):
    ref = lib.new_ref(x)
    ref[0] = ref[1] * 2
    return ref[...]


# Programs whose primitives the laws do not know, or whose batching rules look into programs.
OVER_NONE = {
    "psum": lambda lib, x: lib.lax.psum(x, "i"), "pmean": lambda lib, x: lib.lax.pmean(x, "i"),
    "pmax": lambda lib, x: lib.lax.pmax(x, "i"),
    "psum of one": lambda lib, x: lib.lax.psum(lib.numpy.ones(2), "i") * x[0],
    "all_gather": lambda lib, x: lib.lax.all_gather(x, "i", axis=1),
    "all_to_all": lambda lib, x: lib.lax.all_to_all(x, "i", 0, 0) if x.size == 0 else x,
    "ppermute": lambda lib, x: lib.lax.ppermute(x, "i", []),
    "psum_scatter": lambda lib, x: lib.lax.psum_scatter(x[:0], "i"),
    "axis_index": lambda lib, x: lib.lax.axis_index("i") + x,
    "scan": lambda lib, x: lib.lax.scan(lambda c, y: (c + y, c * y), x[0], x),
    "while": lambda lib, x: lib.lax.while_loop(lambda c: c[0] < 5, lambda c: c + 1, x),
    "cond": lambda lib, x: lib.lax.cond(x[0] > 0, lib.numpy.sin, lambda y: y * 2, x),
    "psum in cond": lambda lib, x: lib.lax.cond(
        x[0] > 0, lambda y: lib.lax.psum(y, "i"), lambda y: y, x),
    "custom_vjp": lambda lib, x: with_rule(lib)(x),
    "checkpoint": lambda lib, x: lib.checkpoint(lambda y: lib.numpy.sin(y) * y)(x),
    "reference": as_reference,
    "io_callback": lambda lib, x: lib.experimental.io_callback(
        np.sin, lib.ShapeDtypeStruct((4,), np.float32), x),
    **{method: lambda lib, x, method=method: lib.pure_callback(
        np.sin, lib.ShapeDtypeStruct((4,), np.float32), x, vmap_method=method)
       for method in ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all")},
    "integers": lambda lib, x: lib.jvp(lib.numpy.argsort, (x,), (x,))}


@pytest.mark.parametrize("name", OVER_NONE)
def test_programs_over_an_axis_of_length_0_give_the_types_of_jaxs(name):
    def types(lib, derived, wrap):
        def pulled_back(x):
            out, back = lib.vjp(of, x)
            return back(out)
        of = lambda x: OVER_NONE[name](lib, x)  # noqa: E731
        try:
            outs = wrap(lib.vmap(pulled_back if derived else of, axis_name="i"))(X[:0])
        except (TypeError, ValueError, NotImplementedError, AttributeError):
            return "refused"
        return [(x.shape, x.dtype) for x in lib.tree_util.tree_leaves(outs)]
    for derived in (False, True):
        wanted = types(jax, derived, lambda f: f)
        if (name, derived) != ("reference", True):  # JAX fails there
            assert types(minijax, derived, lambda f: f) == wanted
            assert types(minijax, derived, minijax.jit) == wanted
