"""Every public function says in one line what it does, and shows it."""

import doctest
import inspect

import pytest

import minijax.nn
import minijax.numpy

SURFACES = (minijax.numpy, minijax.nn, minijax.nn.initializers, minijax.numpy.linalg,
            minijax.numpy.fft)
FUNCTIONS = {f"{surface.__name__}.{name}": function for surface in SURFACES
             for name, function in vars(surface).items()
             if not name.startswith("_") and callable(function)
             and not isinstance(function, type)
             and str(getattr(function, "__module__", "")).startswith(
                 ("minijax.numpy", "minijax.nn"))
             and not function.__module__.endswith((".arguments", ".operators"))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_has_one_line_and_an_example_that_runs(name):
    function = FUNCTIONS[name]
    text = inspect.getdoc(function)
    assert text and text.splitlines()[0].rstrip().endswith((".", "```", ":", "``."))
    assert ">>>" in text, f"{name} shows no example"
    written = (function._parts.func if isinstance(function, minijax.numpy.ufunc)
               else function)
    home = inspect.getmodule(written)
    names = {**vars(home), function.__name__: function}
    test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    told = []
    runner.run(test, out=told.append)
    assert not runner.failures, "".join(told)
