"""Tracebacks show the user's lines; the package's frames are one attribute away."""

import builtins
import contextlib
import inspect
import pdb
import traceback

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax, random
from minijax.util import source_info, tracebacks
from minijax.errors import UnfilteredStackTrace
from minijax.util.tracebacks import filter_traceback

HERE = __file__


@pytest.fixture(autouse=True)
def outside_of_a_notebook():
    with jax.config.traceback_filtering("quiet_remove_frames"):
        yield


def package_code(source, **names):
    """Functions compiled as if they stood in the package."""
    exec(compile(source, source_info.__file__, "exec"), names)
    return names


inside = package_code(
    """
import functools
def fail(f, *args):
    f(*args)
def wrap(f):
    @functools.wraps(f)
    def wrapped(*args): return f(*args)
    return wrapped
""")


def boundary(f):
    """A function of the package that calls the user's, as `jit` and `grad` do."""
    between = package_code("def between(*args): return f(*args)", f=f)["between"]
    return tracebacks.api_boundary(between)


def functions_in(tb):
    return [frame.name for frame in traceback.extract_tb(tb)]


def files_in(tb):
    return {frame.filename for frame in traceback.extract_tb(tb)}


# ---- one traceback


def test_a_filtered_traceback_has_the_users_frames_only():
    def user_function():
        return 1 / 0

    def outer():
        inside["fail"](inside["wrap"](user_function))

    try:
        outer()
    except ZeroDivisionError as error:
        full, kept = error.__traceback__, filter_traceback(error.__traceback__)
    here = "test_a_filtered_traceback_has_the_users_frames_only"
    assert functions_in(kept) == [here, "outer", "user_function"]
    assert kept.tb_next.tb_next.tb_lineno == user_function.__code__.co_firstlineno + 1
    assert full.tb_next.tb_next.tb_frame.f_code.co_name == "fail"


def test_a_traceback_without_a_user_frame_becomes_none():
    assert filter_traceback(None) is None


def test_an_error_that_leaves_the_package_shows_the_users_frames_and_keeps_the_others():
    def innermost():
        raise KeyError("here")

    def middle():
        boundary(innermost)()

    with pytest.raises(KeyError) as caught:
        boundary(middle)()
    here = "test_an_error_that_leaves_the_package_shows_the_users_frames_and_keeps_the_others"
    assert functions_in(caught.value.__traceback__) == [here, "middle", "innermost"]
    full = ["boundary", "between", "middle", "boundary", "between", "innermost"]
    assert functions_in(caught.value.full_traceback) == full


def test_an_error_of_the_package_itself_points_at_the_users_call():
    fail = package_code("def fail(): raise TypeError('shapes differ')")["fail"]
    with pytest.raises(TypeError) as caught:
        boundary(boundary(fail))()
    here = "test_an_error_of_the_package_itself_points_at_the_users_call"
    assert functions_in(caught.value.__traceback__) == [here]
    full = ["boundary", "between", "boundary", "between", "fail"]
    assert functions_in(caught.value.full_traceback) == full


# ---- every way into the package


def broken(x):
    return x / "two"


def wrong_when_pulled(x):
    return jax.vjp(jnp.sin, x)[1]("no array")


@jax.custom_jvp
def custom(x):
    return x


custom.defjvp(lambda primals, tangents: broken(primals[0]))
ONES = jnp.ones(3)
ENTRIES = {
    "jit": lambda: jax.jit(broken)(1.0),
    "lower": lambda: jax.jit(broken).lower(1.0),
    "grad": lambda: jax.grad(broken)(1.0),
    "value_and_grad": lambda: jax.value_and_grad(broken)(1.0),
    "vmap": lambda: jax.vmap(broken)(ONES),
    "jvp": lambda: jax.jvp(broken, (1.0,), (1.0,)),
    "vjp": lambda: wrong_when_pulled(1.0),
    "linearize": lambda: jax.linearize(broken, 1.0),
    "hessian": lambda: jax.hessian(broken)(1.0),
    "make_jaxpr": lambda: jax.make_jaxpr(broken)(1.0),
    "eval_shape": lambda: jax.eval_shape(broken, 1.0),
    "checkpoint": lambda: jax.checkpoint(broken)(1.0),
    "custom_jvp": lambda: jax.grad(custom)(1.0),
    "cond": lambda: lax.cond(True, broken, broken, 1.0),
    "scan": lambda: lax.scan(lambda c, x: (broken(c), x), 1.0, ONES),
    "while_loop": lambda: lax.while_loop(lambda x: x < 3, broken, 1.0),
    "fori_loop": lambda: lax.fori_loop(0, 3, lambda i, x: broken(x), 1.0),
    "tree.map": lambda: jax.tree.map(broken, [1.0]),
    "vectorize": lambda: jnp.vectorize(broken)(ONES),
    "deep": lambda: jax.jit(jax.vmap(jax.grad(lambda x: lax.cond(x > 0, broken, broken, x))))(ONES),
    "lax": lambda: lax.add(ONES, jnp.ones(2)),
    "operator": lambda: ONES + jnp.ones(2),
    "method": lambda: ONES.reshape(2),
    "index": lambda: ONES["a"],
    "update": lambda: ONES.at[0].set([1, 2]),
    "assignment": lambda: ONES.__setitem__(0, 1),
    "truth": lambda: bool(ONES),
    "function": lambda: jnp.sum([1]),
    "nn": lambda: jax.nn.softmax("a"),
    "random": lambda: random.normal("a"),
    "linalg": lambda: jnp.linalg.cholesky(ONES),
    "device_put": lambda: jax.device_put("a"),
    "not a function": lambda: jax.grad(5),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_comes_out_shows_no_frame_of_the_package(entry):
    with pytest.raises(Exception) as caught:
        ENTRIES[entry]()
    assert files_in(caught.value.__traceback__) == {HERE}
    assert any("minijax" in name for name in files_in(caught.value.full_traceback))
    if broken.__name__ in functions_in(caught.value.full_traceback):
        assert functions_in(caught.value.__traceback__)[-1] == broken.__name__


@pytest.mark.parametrize("module", [jax, jnp, lax, jax.nn, random, jax.tree, jax.debug,
                                    lax.linalg])
def test_every_function_of_a_facade_is_a_boundary(module):
    functions = [f for name in dir(module) if not name.startswith("_")
                 and inspect.isfunction(f := getattr(module, name))]
    assert functions and all(f.__code__.co_name == "boundary" for f in functions)
    assert all(inspect.unwrap(f) is not f for f in functions)


def test_the_second_name_of_a_function_is_its_own():
    assert [f.__name__ for f in (jnp.abs, jnp.pow, jnp.amax)] == ["abs", "pow", "amax"]
    assert jnp.abs is jnp.abs and jax.nn.swish is jax.nn.silu


# ---- the modes


def failing(mode):
    """The error of a jitted function under a mode, as it comes out."""
    with jax.config.traceback_filtering(mode), pytest.raises(TypeError) as caught:
        jax.jit(broken)(1.0)
    return caught.value


def test_off_shows_everything_and_says_nothing():
    error = failing("off")
    assert len(files_in(error.__traceback__)) > 1
    assert not hasattr(error, "full_traceback") and not hasattr(error, "__notes__")


def test_the_quiet_mode_adds_one_note_however_many_boundaries_there_were():
    with pytest.raises(TypeError) as caught:
        ENTRIES["deep"]()
    (note,) = [n for n in caught.value.__notes__ if "removed its internal frames" in n]
    assert "JAX_TRACEBACK_FILTERING=off" in note
    assert caught.value.__cause__ is None


def test_remove_frames_keeps_the_full_traceback_as_the_cause():
    error = failing("remove_frames")
    assert files_in(error.__traceback__) == {HERE}
    cause = error.__cause__
    assert type(cause) is UnfilteredStackTrace and str(error) in str(cause)
    assert len(files_in(cause.__traceback__)) > 1
    assert not hasattr(error, "__notes__")


def test_remove_frames_keeps_what_the_error_was_raised_from():
    def fail(x):
        raise ValueError("outer") from KeyError("inner")

    with jax.config.traceback_filtering("remove_frames"), pytest.raises(ValueError) as caught:
        jax.jit(jax.vmap(fail))(ONES)
    assert type(caught.value.__cause__) is UnfilteredStackTrace
    assert type(caught.value.__cause__.__cause__) is KeyError


def test_tracebackhide_marks_the_packages_frames_for_those_who_draw():
    error = failing("tracebackhide")
    frames = [entry.tb_frame for entry in tracebacks._entries(error.__traceback__)]
    for frame in frames:
        assert ("__tracebackhide__" in frame.f_locals) == (frame.f_code.co_filename != HERE)
    assert len(frames) > 3 and not hasattr(error, "__notes__")


def test_tracebackhide_ends_at_the_users_line_for_the_last_frame_is_always_drawn():
    with jax.config.traceback_filtering("tracebackhide"), pytest.raises(TypeError) as caught:
        jax.jit(lambda x: jnp.sum([x]))(1.0)
    assert functions_in(caught.value.__traceback__)[-1] == "<lambda>"
    assert functions_in(caught.value.full_traceback)[-1] == "check_arraylike"


def test_auto_marks_in_ipython_and_removes_elsewhere(monkeypatch):
    monkeypatch.setattr(builtins, "get_ipython", lambda: None, raising=False)
    assert len(files_in(failing("auto").__traceback__)) > 1
    monkeypatch.delattr(builtins, "get_ipython")
    assert files_in(failing("auto").__traceback__) == {HERE}


def test_ipython_draws_the_users_frames_only():
    ultratb = pytest.importorskip("IPython.core.ultratb")
    error = failing("tracebackhide")
    drawn = "\n".join(ultratb.VerboseTB(theme_name="nocolor").structured_traceback(
        type(error), error, error.__traceback__))
    assert "broken" in drawn and "_call_here" not in drawn


@pytest.mark.parametrize("mode", ["tracebackhide", "remove_frames", "quiet"])
def test_post_mortem_lands_in_the_users_function(mode):
    debugger = pdb.Pdb()
    debugger.reset()
    debugger.setup(None, failing(mode).__traceback__)
    assert debugger.curframe.f_code.co_name == "broken"
    assert debugger.curframe.f_locals == {"x": debugger.curframe.f_locals["x"]}


def test_an_error_that_is_handled_inside_a_traced_function_leaves_nothing():
    def careful(x):
        with contextlib.suppress(TypeError):
            broken(x)
        return x + 1

    assert jax.jit(careful)(1.0) == 2.0


def test_an_interrupt_keeps_its_traceback():
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        jax.jit(interrupted)(1.0)
    assert len(files_in(caught.value.__traceback__)) > 1
