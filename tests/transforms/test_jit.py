"""jit: when it traces, what it keeps, what it refuses."""

import inspect
import copy
import functools
import gc
import pickle
import weakref

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import config, lax
from minijax.util import source_info

X = np.array([0.5, -0.3, 1.2], np.float32)


class Counted:
    """A function that counts how often its Python runs."""

    def __init__(self, f):
        self.f, self.runs = f, 0

    def __call__(self, *args, **kwargs):
        self.runs += 1
        return self.f(*args, **kwargs)


def test_it_traces_once_for_each_shape_dtype_and_weakness():
    f = Counted(lambda x: x + 1)
    g = minijax.jit(f)
    for args in ((1.0,), (2.0,), (np.float32(1),), (X,), (X + 1,), (1,)):
        g(*args)
    assert f.runs == 4


def test_two_jits_of_one_function_share_their_traces():
    f = Counted(lambda x: x + 1)
    minijax.jit(f)(1.0)
    minijax.jit(f)(2.0)
    assert f.runs == 1


def test_nothing_keeps_a_function_alive():
    captured = jnp.ones(3)

    def f(x):
        return jnp.sin(x) * captured
    minijax.jit(f)(X)
    jitted = minijax.jit(f)
    minijax.grad(lambda x: jitted(x).sum())(X)
    dead = weakref.ref(f)
    f = jitted = None
    gc.collect()
    assert dead() is None


def test_bound_methods_are_told_apart_by_their_object():
    class Scale:
        def __init__(self, by):
            self.by = by

        def apply(self, x):
            return x * self.by
    two, three = Scale(2.0), Scale(3.0)
    for _ in range(2):
        assert minijax.jit(two.apply)(1.0) == 2.0
        assert minijax.jit(three.apply)(1.0) == 3.0


def test_a_method_can_be_jitted_where_it_is_defined():
    class Model:
        @functools.partial(minijax.jit, static_argnums=0)
        def apply(self, x):
            return x * 2
    assert Model().apply(3.0) == 6.0


@pytest.mark.parametrize("ask", [
    lambda m: (type(m).__name__, m.__name__, m.__qualname__, m.__doc__, type(m.__func__).__name__),
    lambda m: (m == m, hash(m) == hash(m), m.__self__.weight, str(inspect.signature(m))),
    lambda m: repr(m).partition(" of ")[0], lambda m: m.lower(m.__self__, 3.0).out_tree,
    lambda m: float(m(3.0))])
def test_it_is_a_bound_method_there(beside_jax, ask):
    def asked(lib):
        class Layer:
            weight = 2.0

            @functools.partial(lib.jit, static_argnums=0)
            def scaled(self, x):
                """x, scaled."""
                return x * self.weight
        return ask(Layer().scaled)
    ours, theirs = beside_jax(asked)
    assert str(ours) == str(theirs)


def test_static_arguments_are_values():
    @functools.partial(minijax.jit, static_argnums=1, static_argnames="flip")
    def f(x, n, flip=False):
        out = sum([x] * n)
        return -out if flip else out
    assert f(2.0, 3) == 6.0 and f(2.0, 3, flip=True) == -6.0


@pytest.mark.parametrize("call", [
    lambda lib, f: lib.jit(f, static_argnums=0)(3, "a"),
    lambda lib, f: lib.jit(f, static_argnums=(0, 2))(3, 1.0, "s", "a"),
    lambda lib, f: lib.jit(f, static_argnames="n")(x="a", n=3),
])
def test_what_is_no_array_is_named_as_the_function_names_it_whatever_is_static(call):
    def f(n, x, *rest):
        return x
    with pytest.raises(TypeError) as theirs:
        call(jax, f)
    with pytest.raises(TypeError) as ours:
        call(minijax, f)
    assert str(ours.value) == str(theirs.value)


def test_equal_static_values_of_different_types_are_different():
    f = Counted(lambda x, s: x * s)
    g = minijax.jit(f, static_argnums=1)
    assert (g(2.0, 1).dtype, g(2, True).dtype) == (np.float32, np.int32)
    g(2.0, 1.0)
    assert f.runs == 3


@pytest.mark.parametrize("call", [
    lambda lib: lib.jit(lambda x: x, static_argnums=0)([1]),
    lambda lib: lib.jit(3),
    lambda lib: lib.jit(lambda x: x, static_argnums=4),
    lambda lib: lib.jit(lambda x: x, static_argnames="y"),
], ids=["unhashable", "not callable", "no such position", "no such name"])
def test_what_jax_refuses_is_refused_in_the_same_words(call):
    with pytest.raises(Exception) as theirs:
        call(jax)
    with pytest.raises(type(theirs.value)) as ours:
        call(minijax)
    assert str(ours.value)[:60] == str(theirs.value)[:60]


def test_the_flags_that_change_tracing_are_part_of_the_key():
    f = minijax.jit(lambda: jnp.asarray(1.0))
    assert f().dtype == np.float32
    with minijax.enable_x64(True):
        assert f().dtype == np.float64
    assert f().dtype == np.float32


def test_without_jit_the_python_runs():
    f = Counted(lambda x: x if x > 0 else -x)
    with minijax.disable_jit():
        assert minijax.jit(f)(-2.0) == 2.0


def test_every_backend_gives_the_same():
    f = lambda x: jnp.where(x > 0, jnp.exp(x), x).cumsum()  # noqa: E731
    compiled = minijax.jit(f)(X)
    config.update("jax_platforms", "numpy")
    try:
        np.testing.assert_allclose(minijax.jit(f)(X), compiled, rtol=1e-6)
    finally:
        config.update("jax_platforms", None)


def test_a_backend_that_does_not_exist_is_refused():
    config.update("jax_platforms", "abacus")
    try:
        with pytest.raises(RuntimeError, match="abacus"):
            minijax.jit(lambda x: x)(1.0)
    finally:
        config.update("jax_platforms", None)


def test_a_failed_trace_is_not_remembered():
    fail = [True]

    @minijax.jit
    def f(x):
        if fail[0]:
            raise RuntimeError("not yet")
        return x
    with pytest.raises(RuntimeError):
        f(1.0)
    fail[0] = False
    assert f(1.0) == 1.0


def test_trees_go_in_and_come_out():
    f = minijax.jit(lambda tree, *, k: {"sum": tree["a"] + tree["b"][0], "k": (k, None)})
    out = f({"a": 1.0, "b": [2.0]}, k=X)
    assert out["sum"] == 3.0 and out["k"][1] is None
    np.testing.assert_array_equal(out["k"][0], X)


def test_every_stage_can_be_looked_at():
    lowered = minijax.jit(lambda x: jnp.sin(x) * 2).lower(X)
    assert "sin" in lowered.as_text("jaxpr") and "lambda" in lowered.as_text("simplified")
    assert "for " in lowered.as_text("source") and lowered.as_text() == lowered.as_text("source")
    compiled = lowered.compile()
    assert "define" in compiled.as_text("llvm") and "ret" in compiled.as_text("asm")
    np.testing.assert_allclose(compiled(X), np.sin(X) * 2, rtol=1e-6)
    with pytest.raises(TypeError, match="compiled with float32"):
        compiled(X[:2])


@pytest.mark.parametrize("transform", ["jit", "grad", "vmap"])
def test_compiled_code_refuses_tracers_in_jaxs_words(transform):
    for lib in (minijax, jax):
        compiled = lib.jit(lambda x: x.sum()).lower(X[0]).compile()
        with pytest.raises(TypeError, match="Cannot apply JAX transformations to a function"):
            getattr(lib, transform)(lambda x, f=compiled: f(x))(X if transform == "vmap" else X[0])


def test_a_trace_shows_what_it_captured_as_constants():
    def f(x):
        traced = minijax.jit(lambda y: y * x).trace(2.0)
        assert len(traced.jaxpr.consts) == len(traced.jaxpr.in_avals) == 1
        return x
    minijax.grad(f)(1.0)


def test_types_are_enough_to_lower():
    shape = minijax.ShapeDtypeStruct((4,), np.float32)
    lowered = minijax.jit(lambda x: x.sum()).lower(shape)
    assert lowered.out_info.shape == () and lowered.out_info.dtype == np.float32
    with pytest.raises(TypeError, match="has no value"):
        minijax.jit(lambda x: x)(shape)


def test_an_inlined_function_leaves_no_equation():
    f = minijax.jit(lambda x: lax.sin(x), inline=True)
    assert "jit" not in str(minijax.make_jaxpr(lambda x: f(x))(1.0))


def test_a_callable_that_is_not_hashable_can_be_jitted():
    class Affine:
        __hash__ = None

        def __init__(self, by):
            self.by = by

        def __call__(self, x):
            return x * self.by
    f, g = minijax.jit(Affine(2.0)), minijax.jit(Affine(3.0))
    assert f(1.0) == f(1.0) == 2.0 and g(1.0) == 3.0


def test_clearing_the_caches_traces_again():
    f = Counted(lambda x: x + 1)
    g = minijax.jit(f)
    g(X), g(X)
    minijax.clear_caches()
    g(X)
    assert f.runs == 2
    g.clear_cache()
    g(X)
    assert f.runs == 3


def test_a_function_that_closed_over_a_tracer_is_traced_anew_in_the_next_transformation():
    held = {}

    @minijax.jit
    def inner(y):
        return held["x"] * y

    def outer(x):
        held["x"] = x
        return inner(2.0) * x
    assert minijax.grad(outer)(3.0) == 12.0
    assert minijax.grad(outer)(5.0) == 20.0


def test_a_long_list_of_numbers_is_described_once_and_not_for_each_number(monkeypatch):
    described = []
    describe = source_info.describe
    monkeypatch.setattr(source_info, "describe",
                        lambda *args: described.append(args) or describe(*args))
    assert minijax.jit(lambda xs: sum(xs))([1.0] * 20) == 20.0
    assert len(described) == 1


# ── Copies ───────────────────────────────────────────────────────────────────────────────────

def plus_one(x):
    return x + 1


@minijax.jit
def twice(x):
    return x * 2


class Model:
    """An object that holds what has run."""

    def __init__(self):
        self.step, self.known = minijax.jit(plus_one, static_argnums=()), twice
        self.compiled = self.step.lower(1.0).compile()
        self.weights = jnp.ones(3)
        self.moved = minijax.jit(self.move)

    def move(self, x):
        return x + self.weights

    @minijax.jit
    def norm(x):
        return (x * x).sum()

    def run(self):
        return [f(self.weights) for f in (self.step, self.known, self.moved, Model.norm)]


def test_an_object_with_jitted_functions_that_have_run_can_be_copied():
    model = Model()
    expected = model.run()
    for made in (copy.copy(model), copy.deepcopy(model)):
        minijax.tree.map(np.testing.assert_array_equal, made.run(), expected)
        assert made.compiled(1.0) == 2
    other = copy.deepcopy(model)
    assert other.moved is not model.moved and other.known is twice
    other.weights = jnp.zeros(3)
    assert other.moved._fun.__self__ is other and other.run()[2].tolist() != expected[2].tolist()
    assert minijax.jit(lambda x: copy.deepcopy(twice)(x))(3.0) == 6


def test_a_jitted_function_that_has_run_is_pickled_by_name_or_by_its_function():
    x = jnp.ones(3)
    for f in (twice, Model.norm, minijax.jit(plus_one), minijax.jit(plus_one, static_argnums=(0,)),
              minijax.tree_util.Partial(twice)):
        if not any(getattr(f, "_static", ())):
            f(x)
        made = pickle.loads(pickle.dumps(f))
        assert made(2.0) == f(2.0)
        assert (made is f) == (f is twice or f is Model.norm)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(minijax.jit(lambda x: x))


def test_machine_code_is_not_pickled_and_says_so():
    with pytest.raises(TypeError, match="belongs to this process"):
        pickle.dumps(minijax.jit(plus_one).lower(1.0).compile())


DONATIONS = {
    "by position": lambda lib, x: lib.jit(lambda x: x + 1, donate_argnums=0)(x),
    "by name": lambda lib, x: lib.jit(lambda x: x + 1, donate_argnames="x")(x),
    "by position, given by name": lambda lib, x: lib.jit(lambda x: x + 1, donate_argnums=0)(x=x),
    "beside a static one": lambda lib, x: lib.jit(
        lambda n, x: x * n, static_argnums=0, donate_argnums=1)(2, x),
    "in a tree": lambda lib, x: lib.jit(lambda t: t["x"] * 2, donate_argnums=0)({"x": x}),
    "for another dtype": lambda lib, x: lib.jit(lambda x: x.astype(int), donate_argnums=0)(x),
    "given back": lambda lib, x: lib.jit(lambda x: x, donate_argnums=0)(x),
    "not used": lambda lib, x: lib.jit(lambda x, y: y, donate_argnums=0)(x, 1.0),
    "read by what nobody reads": lambda lib, x: lib.jit(
        lambda x, y: (x + x, y * 2)[1], donate_argnums=0)(x, lib.numpy.ones(3)),
    "not donated": lambda lib, x: lib.jit(lambda x, y: x + y, donate_argnums=1)(
        x, lib.numpy.ones(3)),
    "counted from the end": lambda lib, x: lib.jit(lambda x: x + 1, donate_argnums=-1)(x),
    "inside of a program": lambda lib, x: lib.jit(
        lambda x: lib.jit(lambda x: x + 1, donate_argnums=0)(x) + x)(x),
    "to a smaller result": lambda lib, x: lib.jit(lambda x: x.sum(), donate_argnums=0)(x),
    "a row of it": lambda lib, x: lib.jit(lambda x: x[:1], donate_argnums=0)(x),
}


@pytest.mark.parametrize("name", DONATIONS)
def test_a_donated_array_is_used_up_where_jax_uses_it_up(name):
    import warnings

    def outcome(lib):
        x = lib.numpy.arange(3.0)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            out = DONATIONS[name](lib, x)
        return np.asarray(out).tolist(), x.is_deleted(), [str(w.message) for w in heard]
    assert outcome(minijax) == outcome(jax)


@pytest.mark.parametrize("use", [
    np.asarray, repr, str, list, lambda x: x + 1, lambda x: x[0], lambda x: x.tolist(),
    lambda x: x.copy(), lambda x: x.at[0].set(1), lambda x: x == x])
def test_a_deleted_array_cannot_be_read(use, refused_alike):
    def used(lib):
        x = lib.numpy.arange(3.0)
        x.delete()
        x.delete()
        assert x.is_deleted() and (x.shape, x.size, x.weak_type) == ((3,), 3, False)
        return use(x)
    refused_alike(used)


def test_a_deleted_array_cannot_be_computed_with(refused_alike):
    def deleted(lib):
        x = lib.numpy.arange(3.0)
        x.delete()
        return x
    refused_alike(lambda lib: lib.jit(lambda x: x + 1)(deleted(lib)))
    refused_alike(lambda lib: lib.grad(lambda x: x.sum())(deleted(lib)))
    refused_alike(lambda lib: lib.lax.scan(lambda c, y: (c + y, c), 0.0, deleted(lib)))


TWICE = {
    "donated, used": lambda lib, x: lib.jit(lambda a, b: a + b, donate_argnums=0)(x, x),
    "used, donated": lambda lib, x: lib.jit(lambda a, b: a + b, donate_argnums=1)(x, x),
    "twice": lambda lib, x: lib.jit(lambda a, b: (a + 1, b + 1), donate_argnums=(0, 1))(x, x),
    "for one result": lambda lib, x: lib.jit(lambda a, b: a + b, donate_argnums=(0, 1))(x, x),
    "for none": lambda lib, x: lib.jit(lambda a, b: (a + b).sum(), donate_argnums=(0, 1))(x, x),
    "not used": lambda lib, x: lib.jit(lambda a, b: b + 1, donate_argnums=0)(x, x),
    "used once": lambda lib, x: lib.jit(lambda a, b: a + 1, donate_argnums=0)(x, x),
    "in a list": lambda lib, x: lib.jit(lambda t: [y + 1 for y in t], donate_argnums=0)([x, x]),
    "in a dict": lambda lib, x: lib.jit(lambda t, s: t["x"] + s, donate_argnums=0)({"x": x}, x),
    "by name": lambda lib, x: lib.jit(lambda a, b: a + b, donate_argnames="b")(x, b=x),
    "one of four": lambda lib, x: lib.jit(
        lambda a, b, c, d: (a + 1, b + d, c + 1), donate_argnums=(0, 2))(x, x + 1, x, x + 2),
    "device_put": lambda lib, x: lib.jit(lambda a, b: a + b, donate_argnums=0)(
        x, lib.device_put(x)),
    "asarray": lambda lib, x: lib.jit(lambda a, b: a + b, donate_argnums=0)(
        x, lib.numpy.asarray(x)),
    "ahead of time": lambda lib, x: lib.jit(lambda a, b: a + b, donate_argnums=0).lower(
        x, x).compile()(x, x),
    "in jit": lambda lib, x: lib.jit(lambda x: lib.jit(
        lambda a, b: a + b, donate_argnums=0)(x, x))(x),
    "pmap": lambda lib, x: lib.pmap(lambda a, b: a + b, donate_argnums=0)(x[None], x[None]),
    "without jit": lambda lib, x: lib.disable_jit()(lambda: lib.jit(
        lambda a, b: a + b, donate_argnums=0)(x, x))(),
    "the second time": lambda lib, x: (lambda f: [f(x + 1, x), f(x, x)])(
        lib.jit(lambda a, b: a + b, donate_argnums=0)),
    "used up before": lambda lib, x: (lambda f: [f(x), f(x)])(
        lib.jit(lambda x: x + 1, donate_argnums=0)),
    "used up elsewhere": lambda lib, x: (lambda f, g: [g(1.0, x), f(x), g(1.0, x)])(
        lib.jit(lambda x: x + 1, donate_argnums=0), lib.jit(lambda y, x: y * x)),
    "used up, not run": lambda lib, x: [x.delete(), lib.jit(lambda x: x + 1)(x)],
    "used up, waited for": lambda lib, x: [x.delete(), x.block_until_ready()],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TWICE)
def test_an_array_is_donated_once_and_then_not_used(name):
    def outcome(lib):
        x = lib.numpy.arange(3.0)
        try:
            said = [y.tolist() for y in lib.tree.leaves(TWICE[name](lib, x)) if y is not None]
        except Exception as error:
            said = type(error).__name__, str(error).split("\nminijax:")[0]
        return said, x.is_deleted()
    assert outcome(minijax) == outcome(jax)


def test_what_is_no_function_is_refused(refused_alike):
    refused_alike(lambda lib: lib.jit(None))


BAD_DONATIONS = [
    {"donate_argnums": 3}, {"donate_argnums": -2}, {"donate_argnames": "q"},
    {"donate_argnums": "x"}, {"donate_argnums": 1.0}, {"donate_argnums": 0, "static_argnums": 0},
    {"donate_argnames": "x", "static_argnums": 0}]


@pytest.mark.parametrize("options", BAD_DONATIONS, ids=str)
def test_an_argument_that_is_not_there_cannot_be_donated(options, refused_alike):
    refused_alike(lambda lib: lib.jit(lambda x: x + 1, **options))


@pytest.mark.parametrize("copied", [
    lambda lib, x: x.copy(), lambda lib, x: lib.numpy.array(x), lambda lib, x: lib.numpy.copy(x),
    lambda lib, x: copy.copy(x), lambda lib, x: copy.deepcopy(x),
    lambda lib, x: lib.numpy.squeeze(x), lambda lib, x: lib.jit(lambda x: x)(x),
    lambda lib, x: x.reshape(3, 1), lambda lib, x: x[:2],
    lambda lib, x: lib.numpy.astype(x, x.dtype, copy=True), lambda lib, x: x.swapaxes(0, 0),
    lambda lib, x: lib.numpy.moveaxis(x, 0, 0), lambda lib, x: lib.numpy.roll(x, 0),
    lambda lib, x: lib.numpy.broadcast_arrays(x)[0]])
def test_a_copy_outlives_what_was_donated(copied):
    for lib in (minijax, jax):
        x = lib.numpy.arange(3.0)
        kept = copied(lib, x)
        lib.jit(lambda x, kept: x + kept.sum(), donate_argnums=0)(x, kept)
        assert x.is_deleted() and not kept.is_deleted()
        np.testing.assert_array_equal(np.asarray(kept).ravel(), np.arange(kept.size))


def test_a_jitted_function_has_the_signature_of_its_own():
    f = minijax.jit(lambda x, *, y=2: x)
    for follow in (True, False):
        assert str(inspect.signature(f, follow_wrapped=follow)) == "(x, *, y=2)"


def test_a_callable_object_may_have_attributes_of_any_name():
    class Scale:
        def __init__(self):
            self._run, self._traced, self.trace, self.places, self.note = 3.0, 4, 5, 6, "kept"

        def __call__(self, x):
            return x * self._run
    for wrap in (minijax.jit, minijax.checkpoint, minijax.grad,
                 lambda f: minijax.vmap(f, axis_size=1, in_axes=None, out_axes=None)):
        assert wrap(Scale())(1.0) == 3.0 and wrap(Scale()).note == "kept"
    assert minijax.jit(Scale()).lower(1.0).compile()(2.0) == 6.0


def test_what_has_a_shape_and_a_dtype_is_an_argument_to_trace():
    class Like:
        shape, dtype = (3,), np.dtype("float32")
    assert minijax.eval_shape(lambda x: x + 1, Like()).shape == (3,)
    with pytest.raises(TypeError, match="has no value"):
        minijax.jit(lambda x: x)(Like())


@pytest.mark.parametrize("static, args, kwargs", [
    ({"static_argnums": 0, "static_argnames": "b"}, ("x", 2.), {}),
    ({"static_argnums": 0, "static_argnames": "b"}, ("x", "y"), {}),
    ({"static_argnums": 0, "static_argnames": "b"}, ("x",), {"b": "y"}),
    ({"static_argnums": 1, "static_argnames": "c"}, (1.,), {"b": "y"}),
    ({"static_argnums": 1, "static_argnames": "c"}, (1., "y", "z"), {}),
    ({"static_argnums": (), "static_argnames": "b"}, (1., "y"), {}),
    ({"static_argnames": "b"}, (1., "y"), {}), ({"static_argnums": 1}, (1.,), {"b": "y"})])
def test_numbers_and_names_imply_each_other_only_where_the_others_are_not_given(
        static, args, kwargs):
    def f(a, b, c=0):
        return 1.

    def found(lib):
        try:
            return lib.jit(f, **static)(*args, **kwargs).item()
        except TypeError as error:
            return str(error).partition("at path")[2]
    assert found(minijax) == found(jax)


def test_what_is_jitted_is_told_by_its_name_as_in_jax():
    """Chex looks for it in the name of the type."""
    ours, theirs = minijax.jit(np.sin), jax.jit(np.sin)
    assert repr(ours) == repr(theirs) and type(ours).__name__ == type(theirs).__name__
    assert type(ours) is type(pickle.loads(pickle.dumps(ours)))
