"""Every error: where it stands, what it says, and that its docstring is a page of the book."""

import contextlib
import inspect
import os
import re
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import minijax
from minijax import errors
from minijax.sharp_bits import captured

ORIGIN = ("\nThe error occurred while tracing the function f at model.py:7 for jit. This concrete "
          "value was not available in Python because it depends on the value of the argument x.")
TRACER = SimpleNamespace(aval=SimpleNamespace(str_long=lambda: "bool[5]"),
                         _origin_msg=lambda: ORIGIN, level=SimpleNamespace(debug_info=None))
CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)
           if issubclass(kind, Exception) and not kind.__name__.startswith("_")]
BUILTIN = (TypeError, IndexError, ValueError, RuntimeError, NotImplementedError,
           FloatingPointError)


def page(name):
    return f"See https://jax.readthedocs.io/en/latest/errors.html#jax.errors.{name}"


def test_every_class_of_jax_errors_is_here_with_the_same_builtin_bases():
    for name, theirs in inspect.getmembers(jax.errors, inspect.isclass):
        ours = getattr(errors, name)
        for builtin in BUILTIN:
            assert issubclass(ours, builtin) == issubclass(theirs, builtin), (name, builtin)


def test_the_classes_inherit_from_each_other_as_in_jax():
    names = [n for n, _ in inspect.getmembers(jax.errors, inspect.isclass)]
    for one in names:
        for other in names:
            ours = issubclass(getattr(errors, one), getattr(errors, other))
            assert ours == issubclass(getattr(jax.errors, one), getattr(jax.errors, other))


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_class_is_explained_in_its_docstring(kind):
    words = inspect.getdoc(kind)
    assert len(words.splitlines()[0]) < 90
    if kind not in (errors.JAXTypeError, errors.JAXIndexError,
                    errors.InconclusiveDimensionOperation):
        assert "**What happened.**" in words and "**The fix.**" in words


def test_the_boolean_conversion_error_says_what_the_page_says():
    said = str(errors.TracerBoolConversionError(TRACER))
    assert said == ("Attempted boolean conversion of traced array with shape bool[5].." + ORIGIN
                    + "\n" + page("TracerBoolConversionError"))


def test_the_boolean_index_error_says_what_the_page_says():
    said = str(errors.NonConcreteBooleanIndexError(TRACER))
    assert said == ("Array boolean indices must be concrete; got ShapedArray(bool[5])" + ORIGIN
                    + "\n\n" + page("NonConcreteBooleanIndexError"))


def test_the_concretization_error_carries_its_context():
    said = str(errors.ConcretizationTypeError(TRACER, "It arose in jnp.nonzero."))
    assert said.startswith("Abstract tracer value encountered where concrete value is expected: "
                           "traced array with shape bool[5].\nIt arose in jnp.nonzero." + ORIGIN)
    assert said.endswith(page("ConcretizationTypeError"))
    assert str(errors.ConcretizationTypeError(tracer=TRACER)).count(ORIGIN) == 1


@pytest.mark.parametrize("kind, method", [
    (errors.TracerArrayConversionError, "__array__()"),
    (errors.TracerIntegerConversionError, "__index__()")])
def test_conversion_errors_name_the_method_and_the_origin(kind, method):
    said = str(kind(TRACER))
    assert method in said and ORIGIN in said and said.endswith(page(kind.__name__))


def test_messages_hold_every_line_of_jaxs_own():
    """JAX's text, its address and the tracer's second full stop aside."""
    def theirs(f, *args):
        with pytest.raises(Exception) as caught:
            jax.jit(f)(*args)
        return str(caught.value).split("\n")[0].split("traced array")[0].split("; got")[0]
    for kind, f in ((errors.TracerBoolConversionError, lambda x: 1 if x.any() else 2),
                    (errors.TracerArrayConversionError, lambda x: jax.numpy.asarray(x).__array__()),
                    (errors.TracerIntegerConversionError, lambda x: [1][x[0]]),
                    (errors.NonConcreteBooleanIndexError, lambda x: x[x > 0]),
                    (errors.ConcretizationTypeError, lambda x: x.min(x[0]))):
        assert str(kind(TRACER)).startswith(theirs(f, jnp.arange(3))), kind


PROGRAMS = (Path(__file__).parent / "error_messages.txt").read_text().splitlines()


def normalized(said):
    """A message without what the seed pages print otherwise, and without extra white space."""
    said = said.replace("docs.jax.dev/en/latest", "jax.readthedocs.io/en/latest")
    said = said.replace("minijax", "jax").replace("..", ".")
    said = re.sub(r"(traced array with shape \S+?\])\.?", r"\1", said)
    tracer = r"Traced<ShapedArray\((\w+\[[\d,]*\])(, weak_type=True)?\)>with<\w+\(level=\d/0\)>"
    said = re.sub(tracer, r"JitTracer(\1)", said)
    return " ".join(said.replace("JitTracer(~", "JitTracer(").split())


def message_of(program, lib):
    names = {"jax": lib, "jnp": lib.numpy, "lax": lib.lax, "nn": lib.nn, "random": lib.random,
             "np": np, "jit": lib.jit, "grad": lib.grad, "vmap": lib.vmap,
             "X": np.array([3, 1, 0, 2, 0, 3])}
    try:
        return f"no error: {eval(program, names)}"
    except Exception as error:
        return normalized(f"{type(error).__name__}: {error}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_wrong_program_gets_the_class_and_the_words_of_jax(program):
    ours = message_of(program, minijax)
    assert ours == message_of(program, jax) and not ours.startswith("no error")


@pytest.mark.parametrize("program, cure", [
    ("vmap(lambda x, y: x)(jnp.ones(3), 2.0)", "argument is y"),
    ("grad(lambda x: x)(2)", "write 2.0"),
    ("grad(lambda x: x)(jnp.ones(3))", "vmap(grad(f))"),
    ("random.normal(0)", "jax.random.key(0)"),
    ("lax.scan(lambda c, x: c, 0.0, jnp.ones(3))", "(carry, output)"),
    ("lax.psum(1.0, 'i')", "axis_name='i'")])
def test_what_to_do_about_it_is_a_note_below_the_words_of_jax(program, cure):
    names = {"jnp": minijax.numpy, "lax": minijax.lax, "random": minijax.random,
             "grad": minijax.grad, "vmap": minijax.vmap}
    with pytest.raises(Exception) as caught:
        eval(program, names)
    assert any(cure in note for note in caught.value.__notes__)


def test_to_assign_to_at_is_refused_with_what_was_meant():
    with pytest.raises(TypeError, match=r"Write x = x.at\[idx\].set\(y\)"):
        minijax.numpy.ones(3).at[0] = 1


def test_the_unexpected_tracer_error_is_made_from_a_message():
    said = str(errors.UnexpectedTracerError("my words"))
    assert said == "my words\n" + page("UnexpectedTracerError")


def test_a_leak_error_lists_the_tracers():
    said = str(errors.TracerLeakError("of f for jit", ["Traced<f32[]> kept by a list"]))
    assert said.lower().startswith("leaked trace") and "kept by a list" in said


def test_a_nan_error_is_a_floating_point_error_with_the_words_of_the_page():
    error = errors.NonFiniteError("invalid value (nan) encountered in div", "model.py:7 (f)", "So.")
    assert isinstance(error, FloatingPointError)
    assert str(error).splitlines()[0] == "invalid value (nan) encountered in div"
    assert "model.py:7 (f)" in str(error) and str(error).endswith("So.")


@pytest.mark.parametrize("rule, words", [
    ("jvp", "Differentiation rule for 'foo' not implemented"),
    ("batch", "Batching rule for 'foo' not implemented"),
    ("transpose", "Transpose rule (for reverse-mode differentiation) for 'foo' not implemented")])
def test_a_missing_rule_is_named_as_in_jax(rule, words):
    assert str(errors.RuleNotImplementedError("foo", rule)) == words
    assert str(errors.RuleNotImplementedError("foo", rule, "no.")) == words + ": no."


# -- warnings that point to the user -------------------------------------------------------------


def from_file(filename, body):
    """Return the function `call(f)` compiled as if it stood in `filename`."""
    namespace = {}
    exec(compile(body, filename, "exec"), namespace)
    return namespace["call"]


@pytest.mark.parametrize("filename", [
    errors.__file__, contextlib.__file__, "<minijax dispatch of f>"])
def test_warnings_point_past_the_package_to_the_users_line(filename):
    inside = from_file(filename, "def call(f):\n  def deeper(): f('mind the step')\n  deeper()")
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        inside(errors.warn)
    assert [str(w.message) for w in given] == ["mind the step"]
    assert given[0].filename == __file__


def test_only_frames_of_the_package_are_internal():
    assert errors.is_internal(errors.__file__) and errors.is_internal("<minijax text of f>")
    assert not errors.is_internal(__file__) and not errors.is_internal("<stdin>")


def test_files_of_libraries_and_of_the_package_are_not_the_users():
    for file in ("model.py", "<stdin>", os.path.join(tempfile.gettempdir(), "cell.py"), __file__):
        assert captured.is_own(file), file
    for module in (np, os, jax, pytest, errors):
        assert not captured.is_own(module.__file__), module


@pytest.mark.parametrize("expression", [
    "x.devices()", "x.delete()", "x.is_deleted()", "x.on_device_size_in_bytes()",
    "x.unsafe_buffer_pointer()", "x.addressable_data(0)", "x.addressable_shards",
    "x.global_shards", "x.committed", "x.is_fully_addressable", "x.is_fully_replicated"])
@pytest.mark.parametrize("transform", ["jit", "vmap", "grad"])
def test_what_only_concrete_arrays_have_is_refused_for_tracers_in_two_lines_of_jax(
        transform, expression):
    def said(lib):
        with pytest.raises(lib.errors.ConcretizationTypeError) as caught:
            getattr(lib, transform)(eval(f"lambda x: {expression}"))(
                1.0 if transform == "grad" else np.ones(2, np.float32))
        return [line.rstrip(".") for line in str(caught.value).splitlines()[:2]]
    assert said(minijax) == said(jax)
