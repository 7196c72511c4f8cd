"""Every public function is called as JAX's: names, order, kinds and defaults of its parameters."""

import importlib
import inspect

import pytest

MODULES = ["", "numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "random", "nn",
           "nn.initializers", "tree_util", "tree", "scipy.special", "scipy.linalg", "scipy.stats",
           "flatten_util", "debug", "errors", "custom_derivatives", "custom_batching", "sharding",
           "test_util", "dtypes", "ops", "stages"]

# Those that differ, and why.
DIFFERENT = {
    "numpy.set_printoptions": "NumPy's own, whose parameters have names",
    "numpy.result_type": "one parameter of JAX's is for JAX alone",
    "numpy.array": "NumPy's has names, JAX's takes what it is given",
    "lax.random_gamma_grad": "JAX's takes any names",
    "lax.mulhi": "made with the other operations of two arguments, all of which take names",
    **dict.fromkeys(("checkpoint", "remat"), "may be called without a function, as a decorator"),
    "jit": "the same",
    **dict.fromkeys(("checking_leaks", "transfer_guard"), "flags like the others here"),
    "ds": "the size is needed",
    "dtypes.canonicalize_dtype": "keys are dtypes as any other here",
}


def described(parameter: inspect.Parameter) -> tuple:
    """Its name, kind and default; objects that only say that nothing was given are alike."""
    default = parameter.default
    if type(default).__module__ in ("builtins", "numpy") and type(default) is not object:
        shown = getattr(default, "__name__", None) or repr(default)
    elif default is inspect.Parameter.empty:
        shown = None
    else:
        shown = getattr(default, "__name__", "its own")
    return parameter.name, parameter.kind.name, shown


def is_private(parameter: inspect.Parameter) -> bool:
    return parameter.name.startswith("_")


def parameters(function: object) -> list | None:
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    given = [described(parameter) for parameter in found if not is_private(parameter)]
    by_name = [row for row in given if row[1] == "KEYWORD_ONLY"]  # their order does not matter
    return [*(row for row in given if row not in by_name), *sorted(by_name)]


@pytest.mark.parametrize("module", MODULES)
def test_parameters_are_those_of_jax(module):
    theirs = importlib.import_module("jax" + ("." + module if module else ""))
    ours = importlib.import_module("minijax" + ("." + module if module else ""))
    different = {}
    for name in dir(theirs):
        wanted, found = getattr(theirs, name), getattr(ours, name, None)
        full = f"{module}.{name}".lstrip(".")
        if (name.startswith("_") or found is None or not callable(wanted)
                or inspect.isclass(wanted) or full in DIFFERENT):
            continue
        expected = parameters(wanted)
        if expected is not None and parameters(found) != expected:
            different[full] = parameters(found), expected
    assert not different
