"""What a public function does with its first arguments is what JAX does, however they are given."""

import inspect

import jax
import numpy as np
import pytest

import minijax
from tests.public import NAMES


@pytest.mark.parametrize("expression", [
    "jnp.reshape(a=f, shape=(-1,))", "jnp.reshape(a=[1, 2], shape=(-1,))", "jnp.negative([1])",
    "jnp.take(indices=jnp.array([1, 0]), a=v)", "jnp.take(v, indices=[0])", "jnp.take([1], v)",
    "jnp.take(v, 1)", "jnp.searchsorted(v=1.5, a=v)", "jnp.quantile(v, q=0.25)",
    "jnp.add(1, [2])", "jnp.add((1,), 2)", "jnp.hypot(3, 4)", "jnp.remainder(True, True)",
    "jnp.expand_dims(f, None)", "jnp.fill_diagonal([1], 2)",
    "jnp.gradient(i)", "jnp.square(b)", "jnp.isclose(b=2.0, a=f)", "jnp.maximum(i, 2.5)",
])
def test_arguments_become_arrays_or_are_refused_at_their_place(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("call", ["jnp.reshape()", "jnp.add(f)", "jnp.take(v)", "jnp.negative()",
                                  "jnp.add(f, f, f)", "jnp.reshape(f, (6,), 'C', 1)"])
def test_a_call_with_the_wrong_number_of_arguments_is_refused(agrees_with_jax, call):
    agrees_with_jax(call)


@pytest.mark.parametrize("call", [
    "jnp.round(f, 0, f)", "jnp.stack([f, f], 0, f)", "jnp.stack([f, f], out=f)",
    "jnp.sum(f, out=f)", "jnp.trace(f, out=f)", "jnp.nanmax(f, None, f)",
    "jnp.einsum('ij->i', f, out=f)", "jnp.argmax(f, None, f)"])
def test_no_function_takes_a_place_for_its_result(agrees_with_jax, call):
    agrees_with_jax(call)


@pytest.mark.parametrize("expression", [
    "jnp.sum(f, None, 'int32')", "jnp.sum(f, dtype='U3')", "jnp.zeros(2, dtype=int)",
    "jnp.zeros_like(f, 'U3')", "jnp.nansum(f, dtype='U3')", "jnp.nanmean(f, dtype='float16')",
    "jnp.vstack([f, f], dtype='U3')", "jnp.eye(2, dtype=complex)", "jnp.full((2,), 1, 'U3')",
    "jnp.trace(m, dtype='U3')", "jnp.std(f, dtype='float16')", "jnp.linspace(0, 1, 3, dtype='U3')"])
def test_a_dtype_is_one_that_an_array_may_have(agrees_with_jax, expression):
    agrees_with_jax(expression)


# ── Axes ─────────────────────────────────────────────────────────────────────────────────────

AXES = {"range": range(1, 3), "an array": np.array([0, 2]), "bytes": np.array([0, 2], np.uint8),
        "a set": {0, 2}, "keys": {0: 0, 2: 0}.keys(), "a list": [0, 2], "an empty range": range(0),
        "an array of one": np.array(1), "tuple of NumPy's": (np.int64(0), np.array(2))}


def functions_with(parameter, modules=("numpy", "numpy.linalg", "numpy.fft", "nn", "lax")):
    """The public functions of an array that have such a parameter, with one for each library."""
    for module, name in NAMES:
        if module in modules:
            functions = []
            for lib in (minijax, jax):
                for part in f"{module}.{name}".split("."):
                    lib = getattr(lib, part)
                functions.append(lib)
            parameters = inspect.signature(functions[1]).parameters.values()
            required = [p.name for p in parameters if p.default is p.empty and p.kind in (
                p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name != parameter]
            if len(required) == 1 and parameter in [p.name for p in parameters]:
                yield f"{module}.{name}", functions


@pytest.mark.parametrize("kind", AXES)
def test_axes_that_jax_takes_are_taken(kind):
    count = 0
    for parameter in ("axis", "axes"):
        for name, functions in functions_with(parameter):
            shapes, x = [], np.ones((1, 3, 1) if name.endswith("squeeze") else (2, 3, 4), "f")
            for lib, function in zip((minijax, jax), functions, strict=True):
                try:
                    out = lib.eval_shape(lambda: function(x, **{parameter: AXES[kind]}))  # noqa: B023
                    shapes.append([leaf.shape for leaf in lib.tree.leaves(out)])
                except (TypeError, ValueError, IndexError, AssertionError):
                    shapes.append(None)
            count += shapes[1] is not None
            assert shapes[1] in (None, shapes[0]), name
    assert count > 2


# ── Integers that are too large ──────────────────────────────────────────────────────────────

# `extract` and `diagflat` are compiled there under other names; `append` and spaces are not here.
OTHER_NAMES = ("append", "block", "diagflat", "extract", "geomspace", "lexsort", "linspace",
               "logspace", "nan_to_num", "unravel_index", "unstack")


def path_of(function, *args):
    """Of which argument an integer is said to be too large."""
    try:
        function(*args)
    except OverflowError as error:
        return str(error).partition("path is ")[2].partition(". ")[0] or "not said"
    except Exception:
        return None
    return None


def test_the_argument_that_is_too_large_is_named_as_in_jax():
    count = 0
    for name, required, (ours, theirs) in functions_of_arrays():
        for place in range(required):
            args = [1 << 31 if i == place else np.arange(3) for i in range(required)]
            path = path_of(jax.eval_shape, lambda: theirs(*args))  # noqa: B023
            if path not in (None, "not said") and not path.startswith("args["):
                count += 1
                assert path_of(ours, *args) == path, (name, args)
    assert count > 100


def functions_of_arrays():
    """The functions of `numpy` that need arrays alone, as sizes would be too large; how many."""
    for module, name in NAMES:
        if module == "numpy" and name not in OTHER_NAMES:
            function = getattr(jax.numpy, name)
            required = [p for p in inspect.signature(function).parameters.values()
                        if p.default is p.empty]
            if all(str(p.annotation).startswith("Array") for p in required):
                yield name, len(required), (getattr(minijax.numpy, name), function)


@pytest.mark.parametrize("expression", [
    "i + (1 << 31)", "(1 << 31) - i", "i * -(1 << 40)", "i == 1 << 31", "(1 << 31) // i",
    "f @ (1 << 31)", "divmod(i, 1 << 31)", "i.clip(0, 1 << 31)", "jax.jit(lambda x: x)(1 << 31)",
    "jax.jit(lambda x, **options: x)({'a': [1, 1 << 31]})", "jnp.asarray(1 << 31)",
    "jax.jit(lambda x, *rest, n: x, static_argnames='n')(1, 1 << 40, n=3)",
    "jax.jit(lambda x, **options: x)(1, size=1 << 40)", "jax.grad(lambda x: x)(1 << 31)"])
def test_an_integer_that_is_too_large_is_refused_in_jaxs_words(expression):
    texts = []
    for lib in (minijax, jax):
        with pytest.raises(OverflowError) as raised:
            eval(expression, {"jax": lib, "jnp": lib.numpy, "i": lib.numpy.arange(3),
                              "f": lib.numpy.ones(3)})
        texts.append(str(raised.value).partition("\n")[0])
    assert texts[0] == texts[1]
