"""Reading and writing by an index: everything that NumPy allows, as JAX does it."""

import functools
import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax
from minijax import lax
from minijax.core import as_value
from minijax.numpy.index_plan import parse
from minijax.numpy.indexing import _IndexUpdateHelper, rewriting_take

X = np.arange(24, dtype=np.float32).reshape(4, 6)
V = np.arange(4, dtype=np.float32)
I3 = np.arange(3, dtype=np.int32)


class Ours:
    """An array with nothing but this module's indexing."""

    def __init__(self, x):
        self.x = as_value(x)
        self.at = _IndexUpdateHelper(self.x)

    def __getitem__(self, index):
        return rewriting_take(self.x, index)


def outcome(f, *args):
    with warnings.catch_warnings(record=True) as given_warnings:
        warnings.simplefilter("always")
        try:
            result = f(*args)
        except Exception as error:
            result = error
    return result, [(w.category, str(w.message)) for w in given_warnings
                    if w.category is not DeprecationWarning]


def compare(ours, theirs):
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        assert type(ours).__name__ == type(theirs).__name__, (ours, theirs)
        assert str(ours) == str(theirs)
        return
    assert str(ours.dtype) == str(theirs.dtype)
    assert ours.shape == theirs.shape
    assert ours.weak_type == theirs.weak_type
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


# ── Generated indices ────────────────────────────────────────────────────────────────────────

class Traced(tuple):
    """Holds the index array that each package gets in its own array type."""


def entries(size):
    place = st.integers(-size - 2, size + 1)
    bound = st.none() | st.integers(-size - 2, size + 2)
    step = st.sampled_from([None, 1, 2, 3, -1, -2, -3])
    shape = st.sampled_from([(), (1,), (2,), (3,), (2, 2), (1, 2), (2, 1)])
    array = shape.flatmap(lambda s: st.lists(
        place, min_size=int(np.prod(s, dtype=int)), max_size=int(np.prod(s, dtype=int))).map(
            lambda numbers: np.array(numbers, np.int32).reshape(s)))
    mask = st.lists(st.booleans(), min_size=size, max_size=size).map(np.array)
    return st.one_of(place, st.builds(slice, bound, bound, step), st.none(), array,
                     array.map(lambda a: Traced((a,))), mask)


@st.composite
def operands_and_indices(draw):
    shape = draw(st.sampled_from([(), (4,), (3, 5), (2, 3, 4), (1, 4)]))
    index, axis = [], 0
    while axis < len(shape) and draw(st.integers(0, 4)):
        entry = draw(entries(shape[axis]))
        index.append(entry)
        axis += entry is not None
    if draw(st.booleans()):
        index.insert(draw(st.integers(0, len(index))), Ellipsis)
    dtype = draw(st.sampled_from([np.float32, np.int32]))
    return np.arange(1, np.prod(shape) + 1, dtype=dtype).reshape(shape), tuple(index)


def converted(index, to_array):
    return tuple(to_array(e[0]) if isinstance(e, Traced) else e for e in index)


MODES = st.sampled_from([None, "fill", "clip", "drop", "promise_in_bounds"])


@settings(max_examples=100, deadline=None)
@given(operands_and_indices(), MODES, st.booleans())
def test_what_is_read_is_what_jax_reads(case, mode, wrap):
    x, index = case
    options = {"mode": mode, "wrap_negative_indices": wrap}
    ours, _ = outcome(lambda: Ours(x).at[converted(index, as_value)].get(**options))
    theirs, _ = outcome(lambda: jnp.array(x).at[converted(index, jnp.array)].get(**options))
    compare(ours, theirs)


METHODS = st.sampled_from(["set", "add", "subtract", "multiply", "divide", "min", "max"])


@settings(max_examples=100, deadline=None)
@given(operands_and_indices(), METHODS, MODES, st.booleans())
def test_what_is_written_is_what_jax_writes(case, method, mode, wrap):
    x, index = case
    shown, _ = outcome(lambda: rewriting_take(x, converted(index, as_value)))
    shape = () if isinstance(shown, Exception) else shown.shape
    y = (np.arange(np.prod(shape)).reshape(shape) * 3 - 4).astype(x.dtype)
    options = {"mode": mode, "wrap_negative_indices": wrap}

    def update(at, to_array):
        return getattr(at[converted(index, to_array)], method)(y, **options)

    compare(outcome(update, Ours(x).at, as_value)[0],
            outcome(update, jnp.array(x).at, jnp.array)[0])


@settings(max_examples=60, deadline=None)
@given(operands_and_indices())
def test_inside_of_the_array_indices_mean_what_they_mean_in_numpy(case):
    x, index = case
    wanted, _ = outcome(lambda: x[converted(index, np.asarray)])
    if not isinstance(wanted, Exception):
        found = rewriting_take(x, converted(index, as_value))
        np.testing.assert_array_equal(np.asarray(found), wanted)


@settings(max_examples=25, deadline=None)
@given(operands_and_indices())
def test_compiled_and_batched_reads_are_the_eager_ones(case):
    x, index = case
    eager, _ = outcome(lambda: rewriting_take(x, converted(index, as_value)))
    if isinstance(eager, Exception):
        return
    traced = [as_value(e[0]) for e in index if isinstance(e, Traced)]

    def read(x, *arrays):
        given_arrays = iter(arrays)
        return rewriting_take(x, converted(index, lambda _: next(given_arrays)))

    np.testing.assert_array_equal(np.asarray(minijax.jit(read)(x, *traced)), np.asarray(eager))
    batch = [np.stack([a, a]) for a in (x, *traced)]
    np.testing.assert_array_equal(np.asarray(minijax.vmap(read)(*batch)),
                                  np.stack([np.asarray(eager)] * 2))


# ── Cases by hand: odd indices, odd values, and what is refused ──────────────────────────────

@pytest.mark.parametrize("f", [
    lambda x, v, i, a: x[[0, 1]],
    lambda x, v, i, a: x[[0, slice(1)]],
    lambda x, v, i, a: x[[[0, 1]]],
    lambda x, v, i, a: x[0, [0, 1]],
    lambda x, v, i, a: x[[]],
    lambda x, v, i, a: x[1, 2, 3],
    lambda x, v, i, a: x[1.0],
    lambda x, v, i, a: x[a(np.float32(1))],
    lambda x, v, i, a: x[np.array([1.0])],
    lambda x, v, i, a: x["a"],
    lambda x, v, i, a: x[{}],
    lambda x, v, i, a: x[..., ...],
    lambda x, v, i, a: x[[1.5]],
    lambda x, v, i, a: x[0, [1.5]],
    lambda x, v, i, a: v[:a(np.int32(2))],
    lambda x, v, i, a: v[1.:],
    lambda x, v, i, a: x[slice(None, None, 0)],
    lambda x, v, i, a: x[a(np.array([True, False]))],
    lambda x, v, i, a: x[np.ones((4, 5), bool)],
    lambda x, v, i, a: x[:, a(np.array([True, False]))],
    lambda x, v, i, a: x[True],
    lambda x, v, i, a: x[False],
    lambda x, v, i, a: x[True, 0],
    lambda x, v, i, a: v[()],
    lambda x, v, i, a: x[None, ..., None],
    lambda x, v, i, a: x[a(np.array([0, 1])), a(np.array([1, 2, 3]))],
    lambda x, v, i, a: x[a(np.array([44], np.int8))],
    lambda x, v, i, a: v[np.zeros((0,), int)],
    lambda x, v, i, a: v[np.zeros((0,))],
    lambda x, v, i, a: v.at[0:2].set(np.ones(3, np.float32)),
    lambda x, v, i, a: v.at[0].set(np.ones(3, np.float32)),
    lambda x, v, i, a: i.at[0].set(1.5),
    lambda x, v, i, a: i.at[0].add(1.5),
    lambda x, v, i, a: i.at[0].set(True),
    lambda x, v, i, a: i.at[0].set(2**31),
    lambda x, v, i, a: i.at[1:].divide(2),
    lambda x, v, i, a: v.at[1].set("a"),
    lambda x, v, i, a: v.at[1].set([1.0]),
    lambda x, v, i, a: v.at[1:2].set([1.0]),
    lambda x, v, i, a: v.at[True].set(2.0),
    lambda x, v, i, a: v.at[1.0].set(0),
    lambda x, v, i, a: v.at[np.array([1, 1, 2])].divide(2.0),
    lambda x, v, i, a: v.at[1:3].power(3),
    lambda x, v, i, a: v.at[1:3].mul(3),
    lambda x, v, i, a: v.at[a(np.array([3, -1, 2**31 - 1]))].mul(3),
    lambda x, v, i, a: v.at[1:3].apply(lambda e: e + 1),
    lambda x, v, i, a: x.at[..., None].set(0.0),
    lambda x, v, i, a: x.at[:, None, [0, 1]].add(np.ones((4, 1, 2), np.float32)),
    lambda x, v, i, a: v.at[1].get(mode="wrap"),
    lambda x, v, i, a: v.at[9].get(mode="fill", fill_value=np.ones(2)),
    lambda x, v, i, a: v.at[9].get(mode="fill", fill_value=7),
])
def test_results_warnings_and_errors_are_those_of_jax(f):
    ours, our_warnings = outcome(f, Ours(X), Ours(V), Ours(I3), as_value)
    theirs, their_warnings = outcome(f, jnp.array(X), jnp.array(V), jnp.array(I3), jnp.array)
    compare(ours, theirs)
    assert our_warnings == their_warnings


def test_the_helpers_print_as_in_jax():
    assert repr(Ours(V).at) == repr(jnp.array(V).at)
    assert repr(Ours(V).at[1]) == repr(jnp.array(V).at[1])


def test_a_place_of_an_empty_axis_is_refused():
    for f in (lambda: rewriting_take(np.zeros(0), 0), lambda: Ours(np.zeros(0)).at[0].set(1.0)):
        with pytest.raises(IndexError, match="index is out of bounds for axis 0 with size 0"):
            f()


def test_a_traced_mask_is_refused():
    for f in (lambda v: rewriting_take(v, v > 0), lambda v: _IndexUpdateHelper(v)[v > 0].set(1)):
        with pytest.raises(minijax.errors.NonConcreteBooleanIndexError,
                           match="Array boolean indices must be concrete"):
            minijax.jit(f)(V)


def test_a_mask_whose_value_is_known_may_be_used_under_grad():
    total = minijax.grad(lambda v: rewriting_take(v, v > 1).sum())(V)
    assert np.asarray(total).tolist() == [0, 0, 1, 1]


def test_a_slice_with_a_traced_bound_is_refused_with_its_place():
    with pytest.raises(IndexError, match="Slice entries must be static integers. Got slice"):
        minijax.jit(lambda v, n: rewriting_take(v, slice(None, n)))(V, 3)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32])
def test_the_largest_and_smallest_places_are_moved_to_the_ends(dtype):
    x = np.arange(300, dtype=np.int32)
    places = as_value(np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype))
    low, high = (int(np.clip(n + 300 if n < 0 else n, 0, 299))
                 for n in (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)))
    assert np.asarray(rewriting_take(x, places)).tolist() == [low, high]
    assert np.asarray(minijax.jit(rewriting_take)(x, places)).tolist() == [low, high]
    assert np.asarray(rewriting_take(x, np.asarray(places))).tolist() == [low, high]


@pytest.mark.parametrize("wrap", [lambda f: f, minijax.jit])
def test_the_derivative_of_a_read_outside_is_an_update_outside_and_so_dropped(wrap):
    at = lambda i: np.asarray(wrap(minijax.grad(lambda v: rewriting_take(v, i)))(V)).tolist()
    assert at(9) == at(-9) == [0, 0, 0, 0]
    assert at(3) == at(-1) == [0, 0, 0, 1]


def test_a_scalar_mask_beside_new_axes_means_what_it_means_in_numpy():
    index = (np.array([True]), None, True, slice(None))
    x = X[:1]
    np.testing.assert_array_equal(np.asarray(rewriting_take(x, index)), x[index])


@pytest.mark.parametrize(("index", "primitives"), [
    (1, ["slice", "squeeze"]),
    ((slice(None, None, 2), 1), ["slice", "squeeze"]),
    (slice(None, None, -1), ["rev"]),
    ((Ellipsis, None), ["broadcast_in_dim"]),
    (slice(None), []),
])
def test_static_indices_become_static_slices(index, primitives):
    jaxpr = minijax.make_jaxpr(lambda x: rewriting_take(x, index))(X).jaxpr
    theirs = jax.make_jaxpr(lambda x: x[index])(X).jaxpr
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == primitives
    assert [eqn.primitive.name for eqn in theirs.eqns] == primitives


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize("step", [None, 1, 2, 7, -1, -2, -7])
def test_a_slice_prints_as_in_jax(size, step):
    for start, stop in itertools.product((None, 0, 1, 3, -1, -2, 7), (None, 0, 1, 4, -1, -3, 9)):
        one = slice(start, stop, step)
        if step in (-2, -7) and not range(*one.indices(size)):
            continue  # nothing of it is read, between which bounds
        ours, theirs = (str(lib.make_jaxpr(lambda x, one=one: x[one])(np.ones(size, np.float32)))
                        for lib in (minijax, jax))
        assert ours.split() == theirs.split()


@pytest.mark.parametrize("shape", [(), (2,), (2, 1)])
def test_places_are_compared_with_numbers_as_in_jax(shape):
    places, equations = np.ones(shape, np.int32), []
    for lib in (minijax, jax):
        jaxpr = lib.make_jaxpr(lambda x, i: x[i])(X, places).jaxpr
        equations.append([(eqn.primitive.name, *(v.aval.shape for v in (*eqn.invars, *eqn.outvars)))
                          for eqn in jaxpr.eqns[:3]])
    assert equations[0] == equations[1]


def test_a_traced_place_becomes_a_dynamic_slice():
    jaxpr = minijax.make_jaxpr(lambda x, i: rewriting_take(x, (i, slice(1, 3))))(X, 1).jaxpr
    assert jaxpr.eqns[-2].primitive is lax.dynamic_slice_p


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16"])
def test_indices_become_places_by_the_equations_of_jax(dtype):
    for indices in (np.array([2, 0]).astype(dtype), 2):
        jaxprs = (lib.make_jaxpr(lambda x, i: x[i])(X[0], indices).jaxpr for lib in (minijax, jax))
        ours, theirs = (sorted((eqn.primitive.name, eqn.outvars[0].aval.shape)
                               for eqn in jaxpr.eqns) for jaxpr in jaxprs)
        assert ours == theirs


@pytest.mark.parametrize("size", [127, 128, 300])
def test_an_axis_longer_than_the_indices_can_count_is_counted_from_its_end(size):
    x, indices = np.arange(size), np.array([-1, -128 + (size < 128), 5], np.int8)
    for f in (rewriting_take, minijax.jit(rewriting_take)):
        np.testing.assert_array_equal(f(minijax.numpy.asarray(x), minijax.numpy.asarray(indices)),
                                      x[indices])


def test_parsing_gives_every_axis_its_entry():
    entries = parse((None, 1, ..., True), (2, 3, 4))
    assert [entry.kind for entry in entries] == [
        "new axis", "integer", "slice", "slice", "array"]
    assert [entry.axis for entry in entries] == [None, 0, 1, 2, None]
    assert [entry.size for entry in entries] == [1, 2, 3, 4, 1]


@pytest.mark.parametrize("call", [
    lambda lib, x, i: x[0], lambda lib, x, i: x[i], lambda lib, x, i: x.at[0].add(1),
    lambda lib, x, i: x.at[i].set(1), lambda lib, x, i: x.at[i].get(mode="fill"),
    lambda lib, x, i: lib.jit(lambda x, i: x.at[:, i].set(1))(x.T, i)])
def test_one_place_of_an_empty_axis_is_refused(call, refused_alike):
    refused_alike(lambda lib: call(lib, lib.numpy.zeros((0, 3)), lib.numpy.array(0)))


# ── Windows that begin at a traced place ─────────────────────────────────────────────────────

LINE, PLANE = np.arange(10, dtype=np.float32), np.arange(20, dtype=np.float32).reshape(4, 5)
WINDOWS = {
    "read": lambda lib, i: line(lib)[lib.ds(i, 3)],
    "every second": lambda lib, i: line(lib)[lib.ds(i, 3, 2)],
    "nothing": lambda lib, i: line(lib)[lib.ds(i, 0)],
    "one": lambda lib, i: line(lib)[lib.ds(i, 1)],
    "all": lambda lib, i: line(lib)[lib.ds(i, 10)],
    "two axes": lambda lib, i: plane(lib)[lib.ds(i, 2), lib.ds(i + 1, 2)],
    "and a place": lambda lib, i: plane(lib)[lib.ds(i, 2), -1],
    "and a traced place": lambda lib, i: plane(lib)[i, lib.ds(i, 2)],
    "and an array": lambda lib, i: plane(lib)[lib.ds(i, 2), lib.numpy.array([0, 3])],
    "and slices": lambda lib, i: plane(lib)[None, lib.ds(i, 2), ..., ::-1],
    "filled": lambda lib, i: line(lib).at[lib.ds(i, 3)].get(mode="fill", fill_value=-7),
    "every second, filled": lambda lib, i: line(lib).at[lib.ds(i, 2, 2)].get(
        mode="fill", fill_value=-7),
    "clipped": lambda lib, i: line(lib).at[lib.ds(i, 3)].get(mode="clip"),
    "set": lambda lib, i: line(lib).at[lib.ds(i, 3)].set(100 + lib.numpy.arange(3)),
    "set every second": lambda lib, i: line(lib).at[lib.ds(i, 2, 2)].set(-1),
    "set, clipped": lambda lib, i: line(lib).at[lib.ds(i, 3)].set(100, mode="clip"),
    "add": lambda lib, i: plane(lib).at[lib.ds(i, 2), 1:3].add(100),
    "slope": lambda lib, i: lib.grad(lambda x: (x[lib.ds(i, 2)] ** 2).sum())(line(lib))}


def line(lib):
    return lib.numpy.asarray(LINE)


def plane(lib):
    return lib.numpy.asarray(PLANE)


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_begins_where_it_does_in_jax_wherever_it_is_asked_to(name):
    places = np.array([0, 2, 3, 8, 9, 20, -1, -3, -30])
    f = functools.partial(WINDOWS[name], minijax)
    compiled = minijax.jit(f)
    wanted = [WINDOWS[name](jax, i) for i in places]
    np.testing.assert_array_equal(minijax.vmap(f)(places), wanted)
    np.testing.assert_array_equal([compiled(i) for i in places], wanted)
    np.testing.assert_array_equal([f(i) for i in places], wanted)


@pytest.mark.parametrize("asked", [
    lambda lib, i: line(lib)[lib.ds(i, 12)], lambda lib, i: line(lib)[lib.ds(0, i)],
    lambda lib, i: line(lib)[lib.ds(0, 2, i)], lambda lib, i: line(lib)[lib.ds(0, 2, -1)],
    lambda lib, i: line(lib)[lib.ds(i * 1.0, 2)]])
def test_a_window_is_refused_where_jax_refuses_it(asked):
    def refusal(lib):
        with pytest.raises((TypeError, ValueError)) as found:
            lib.jit(lambda i: asked(lib, i))(2)
        return type(found.value), str(found.value).split("got")[0].split("\n")[0].rstrip(". ")
    assert refusal(minijax) == refusal(jax)


def test_a_window_outside_is_told():
    with (minijax.config.debug_out_of_bounds(True),
          pytest.raises(minijax.errors.OutOfBoundsError, match="index 9 .* a window of 3")):
        minijax.jit(lambda i: line(minijax)[minijax.ds(i, 3)])(9)


# Places along several axes, each of a type of its own, where there are 64 bits.
PLACES = ("jnp.int8(1)", "jnp.int32(1)", "jnp.int64(1)", "jnp.uint32(1)", "jnp.array([0, 1])",
          "np.int16(1)", "1", "True")
READ = ("x[i, j]", "x[i, :, j]", "x.at[i, j].get(mode='fill')", "x.at[i, j].set(9)",
        "jax.jit(lambda x, i, j: x[i, j])(x, i, j)", "lax.dynamic_slice(x, (i, j, 0), (1, 1, 2))",
        "lax.dynamic_update_slice(x, x[:1, :1], (i, j, j))",
        "lax.fori_loop(0, i, lambda k, c: c + x[k, j], x[0, 0])")


@pytest.mark.parametrize("expression", READ)
def test_places_of_different_types_are_taken_together(expression):
    for pair in itertools.combinations_with_replacement(PLACES, 2):
        shapes = []
        for lib in (minijax, jax):
            with lib.enable_x64(True):
                names = {"jnp": lib.numpy, "lax": lib.lax, "np": np, "jax": lib}
                i, j = (eval(place, names) for place in pair)
                names |= {"x": lib.numpy.zeros((2, 3, 4)), "i": i, "j": j}
                try:
                    out = lib.eval_shape(lambda: eval(expression, names))  # noqa: B023
                    shapes.append((out.shape, str(out.dtype)))
                except (TypeError, IndexError, ValueError):
                    shapes.append("refused")
        assert shapes[0] == shapes[1], pair
