"""Where the user's program is: frames, notes, and the names of arguments."""

import contextlib
import functools
import gc
import inspect
import weakref

import jax
import numpy as np
import pytest
from jax._src.api_util import debug_info as jax_debug_info

from minijax.util import source_info
from minijax.util.source_info import SourceInfo, add_user_note, describe, user_frame


def line_of_caller():
    return inspect.currentframe().f_back.f_lineno


def package_code(source, **names):
    """Functions compiled as if they stood in the package."""
    exec(compile(source, source_info.__file__, "exec"), names)
    return names


inside = package_code(
    """
import contextlib, functools
def call(f, *args): return f(*args)
def fail(f, *args):
    f(*args)
@contextlib.contextmanager
def context():
    yield here()
def wrap(f):
    @functools.wraps(f)
    def wrapped(*args): return f(*args)
    return wrapped
""",
    here=user_frame,
)


def test_the_users_line_is_the_innermost_one_outside_the_package():
    def f():
        return inside["call"](user_frame)

    found = inside["call"](f)
    assert found.function == "f"
    assert found.file == __file__
    assert found.text == 'return inside["call"](user_frame)'
    assert found.line == f.__code__.co_firstlineno + 1


def test_decorators_and_with_blocks_of_the_library_are_passed_over():
    with inside["context"]() as found:
        line = line_of_caller() - 1
    assert (found.function, found.line) == (
        "test_decorators_and_with_blocks_of_the_library_are_passed_over",
        line,
    )
    partial = functools.partial(inside["call"], user_frame)
    assert partial().function == "test_decorators_and_with_blocks_of_the_library_are_passed_over"


def test_generated_code_of_the_package_is_internal():
    names = {"user_frame": user_frame}
    exec(compile("def generated(): return user_frame()", "<minijax call>", "exec"), names)
    assert names["generated"]().file == __file__


def test_frames_are_listed_the_innermost_last():
    def f():
        return inside["call"](g)

    def g():
        return source_info.user_frames(3)

    here = "test_frames_are_listed_the_innermost_last"
    assert [source.function for source in f()] == [here, "f", "g"]
    assert [source.function for source in g()][1:] == [here, "g"]


def test_the_callers_of_a_generator_are_read_again():
    memo = []

    def places():
        while True:
            yield source_info.user_frames(2, memo)

    def called():
        return source_info.user_frames(2, memo), source_info.user_frames(2, memo)

    resumed = places()
    first, second = next(resumed), next(resumed)
    third = next(resumed)
    assert [frames[0].line - first[0].line for frames in (second, third)] == [0, 1]
    before, after = called()
    assert before[0] is after[0] and before[0].function.startswith("test_the_callers")


def test_a_place_has_the_column_of_the_expression():
    found = [0, user_frame()][1]
    assert found.column == 16
    line = line_of_caller() - 2
    assert found.place == (
        f"{__file__}:{line}:16 (test_a_place_has_the_column_of_the_expression)"
    )


def test_a_source_compares_by_its_place():
    places = [user_frame() for _ in range(2)]
    assert places[0] == places[1] and hash(places[0]) == hash(places[1])
    assert places[0] != user_frame()


def test_a_line_that_cannot_be_read_is_empty():
    names = {"user_frame": user_frame}
    exec(compile("\n\nfound = user_frame()", "<no such file>", "exec"), names)
    assert names["found"].text == ""
    assert names["found"].summary == "<no such file>:3 (<module>)"


def test_a_note_names_function_file_and_line_once():
    def user_function():
        inside["fail"](add_user_note, error)

    error = ValueError("shapes differ")
    user_function()
    inside["call"](add_user_note, error)
    line = user_function.__code__.co_firstlineno + 1
    note = f"minijax: in `user_function`, test_source_info.py:{line}: "
    assert error.__notes__ == [note + 'inside["fail"](add_user_note, error)']


def test_a_note_may_name_another_line():
    error = ValueError("shapes differ")
    add_user_note(error, SourceInfo(describe.__code__, describe.__code__.co_firstlineno))
    assert error.__notes__[0].startswith("minijax: in `describe`, source_info.py:")


# ---- names of arguments, as JAX gives them


def f(x, *args, y=2, **kw):
    return x


def g(a, b=1, /, c=2, *, d=3):
    return a


class Model:
    def __call__(self, a, b):
        return a

    def method(self, a, b):
        return a

    @classmethod
    def make(cls, a):
        return a


def decorate(function):
    @functools.wraps(function)
    def decorated(*args, **kwargs):
        return function(*args, **kwargs)

    return decorated


A = np.ones(3)
TREE = {"w": A, "b": (A, [A])}

CALLS = {
    "positional": (f, (A,), {}),
    "trees, rest, keywords": (f, (TREE, A, [A, A]), {"y": A, "z": {"q": A}}),
    "keywords in another order": (f, (), {"y": A, "x": A, "b": A, "a": A}),
    "positional only": (g, (A, A, A), {"d": A}),
    "defaults by keyword": (g, (A,), {"c": A, "d": A}),
    "no argument": (f, (), {}),
    "none is no leaf": (f, (None, (A, None)), {}),
    "partial": (functools.partial(f, A), (A,), {}),
    "partial of partial": (functools.partial(functools.partial(f, A), A), (A, A), {}),
    "partial keyword": (functools.partial(f, y=A), (A,), {}),
    "bound method": (Model().method, (A,), {"b": TREE}),
    "class method": (Model.make, (TREE,), {}),
    "decorated": (decorate(f), (A, A), {"k": A}),
    "lambda": (lambda p, q: p, (A, TREE), {}),
    "builtin": (max, (A, A), {}),
}


@pytest.mark.parametrize("case", CALLS)
def test_arguments_are_named_as_jax_names_them(case):
    fun, args, kwargs = CALLS[case]
    assert describe(fun, args, kwargs, "jit").arg_names == jax_names(fun, args, kwargs)


def jax_names(fun, args, kwargs, **static):
    names = jax_debug_info("jit", fun, args, kwargs, **static).arg_names
    return tuple(names)


@pytest.mark.parametrize("case", [case for case in CALLS if case != "builtin"])
def test_the_function_is_named_as_jax_names_it(case):
    fun, args, kwargs = CALLS[case]
    ours, theirs = describe(fun, args, kwargs, "jit"), jax_debug_info("jit", fun, args, kwargs)
    assert ours.func_src_info == theirs.func_src_info
    assert ours.func_src_info.endswith(f" at {__file__}:{ours.func_lineno}")


def test_a_call_that_does_not_fit_the_signature_is_named_as_far_as_it_fits():
    assert describe(g, (A, A, A, A), {}, "jit").arg_names == ("a", "b", "c", "args[3]")
    assert describe(g, (A,), {"z": A}, "jit").arg_names == ("a", "kwargs['z']")


def test_a_callable_object_is_named_by_its_class():
    info = describe(Model(), (A, A), {}, "jit")
    assert info.func_name == "Model"
    assert info.func_src_info.endswith(f"{__file__}:{Model.__call__.__code__.co_firstlineno}")
    assert info.arg_names == ("a", "b")


@pytest.mark.parametrize("nums", [(), (0,), (1,), (-1,), (0, 2)])
def test_static_positions_have_no_name(nums):
    args = (A, A, A)
    positive = tuple(n % 3 for n in nums)
    expected = jax_names(f, args, {}, static_argnums=positive)
    assert describe(f, args, {}, "jit", static_argnums=nums).arg_names == expected


def test_static_names_have_no_name():
    info = describe(f, (A,), {"y": "fast", "z": A}, "jit", static_argnames=("y",))
    assert info.arg_names == ("x", "kw['z']")
    info = describe(g, ("fast", A), {}, "jit", static_argnames=("a",))
    assert info.arg_names == ("b",)


def test_names_are_there_after_the_function_and_the_arguments_are_gone():
    def short_lived(params):
        return params

    class Leaf:
        pass

    leaf = Leaf()
    info = describe(short_lived, ({"leaf": leaf},), {}, "grad")
    gone = weakref.ref(short_lived), weakref.ref(leaf)
    del short_lived, leaf
    gc.collect()
    assert [reference() for reference in gone] == [None, None]
    assert info.arg_names == ("params['leaf']",)


def test_results_have_paths():
    from minijax import tree_util

    tree = tree_util.tree_structure((1, {"w": 2}))
    assert source_info.result_paths(tree) == ["[0]", "[1]['w']"]


def test_a_transformed_function_is_called_by_its_own_name():
    assert describe(jax.jit(f), (A,), {}, "grad").func_name == "f"


def test_a_cycle_of_wrapped_functions_ends():
    def loop():
        pass

    loop.__wrapped__ = loop
    with contextlib.suppress(ValueError):
        assert describe(loop, (), {}, "jit").func_name == "loop"
