"""The examples in JAX's own docstrings, run on minijax: for every name that exists here.

`python tests/test_jax_docstrings.py -v` prints what fails and why.
"""

import collections
import contextlib
import doctest
import functools
import importlib
import inspect
import io
import re
import sys
import warnings

import numpy as np
import pytest

import minijax

MODULES = ["", "numpy", "lax", "nn", "nn.initializers", "random", "tree_util", "tree",
           "scipy.linalg", "scipy.special", "numpy.linalg", "numpy.fft", "lax.linalg", "dtypes",
           "errors", "ops", "custom_derivatives", "custom_batching", "test_util", "ref",
           "example_libraries.optimizers", "example_libraries.stax"]
WANTED = 0.995  # of those that pass on JAX
FAIL_ON_JAX = {"numpy.save": "its text has a # before what is printed"}
DEVICES = 8  # that the examples of `pmap` and of meshes take for granted


def module_of(root, name):
    return importlib.import_module(".".join(filter(None, (root, name))))


def public_names(module):
    return [n for n in (getattr(module, "__all__", None) or dir(module)) if not n.startswith("_")]


def shared_objects():
    """(module, name, JAX's object) for every documented name that both libraries have."""
    for module in MODULES:
        try:
            ours = module_of("minijax", module)
        except ModuleNotFoundError:
            continue
        theirs = module_of("jax", module)
        for name in public_names(theirs):
            thing = getattr(theirs, name)
            if hasattr(ours, name) and not inspect.ismodule(thing) and callable(thing):
                yield module, name, thing


def rewritten(source):
    """The example's code with its import lines changed, and nothing else."""
    source = re.sub(r"^(\s*)import jax$", r"\1import minijax as jax", source, flags=re.M)
    return re.sub(r"^(\s*(?:import|from)) jax\b", r"\1 minijax", source, flags=re.M)


def example_of(module, name, thing):
    test = doctest.DocTestFinder(recurse=False).find(
        thing, name, globs={}, module=False)
    examples = [e for t in test for e in t.examples]
    if not examples:
        return None
    kept = []
    for e in examples:
        kept.append(doctest.Example(rewritten(e.source), e.want, e.exc_msg, e.lineno, e.indent,
                                    e.options))
    # JAX runs an example with the names of the module that defines the function
    globs = {**dict(inspect.getmembers(module_of("minijax", module))),
             "jax": minijax, "jnp": minijax.numpy, "np": np, "lax": minijax.lax,
             "partial": functools.partial, "P": minijax.P}
    return doctest.DocTest(kept, globs, f"{module}.{name}".lstrip("."), None, 0, None)


# Texts that rows of `jax_differences.toml` keep: of tracers, of numbers that come out as they went
# in, of leaks, which here have a class of their own.
AS_HERE = [(r"JitTracer\(~(\w+)\[\]\)",
            r"Traced<ShapedArray(\1[], weak_type=True)>with<DynamicJaxprTrace(level=1/0)>"),
           (r"JitTracer\((.*?\])\)", r"Traced<ShapedArray(\1)>with<DynamicJaxprTrace(level=1/0)>"),
           (r"TypedFloat\((\d+\.)0, dtype=float32\)", r"Array(\1, dtype=float32, weak_type=True)"),
           (r"^Exception$", "TracerLeakError")]


class Checker(doctest.OutputChecker):
    """Texts agree when their words do, and their numbers to the digits that are written."""

    NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?")

    def check_output(self, want, got, flags):
        for theirs, ours in AS_HERE:
            want = re.sub(theirs, ours, want)
        if super().check_output(want, got, flags):
            return True
        wanted, found = self.NUMBER.findall(want), self.NUMBER.findall(got)
        words = [re.sub(r"\s+", "", self.NUMBER.sub("#", text)) for text in (want, got)]
        return (words[0] == words[1] and len(wanted) == len(found)
                and all(map(self.near, wanted, found)))

    def near(self, want, got):
        digits = len(want.split("e")[0].partition(".")[2])
        slack = max(1.5 * 10.0 ** -digits, 2e-6) if "." in want else 0
        return abs(float(want) - float(got)) <= slack * max(1.0, abs(float(want)))


def run(test):
    """What goes wrong in an example; the empty string when nothing does."""
    flags = (doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL)
    runner = doctest.DocTestRunner(Checker(), optionflags=flags, verbose=False)
    said = io.StringIO()
    # the examples were printed with JAX's default layout of random bits
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()), \
            np.printoptions(), minijax.threefry_partitionable(True), \
            minijax.config.num_cpu_devices(DEVICES):
        warnings.simplefilter("ignore")
        runner.run(test, out=said.write)
    return said.getvalue()


def tally():
    """(passed, failures by name) for each module."""
    passed, failed = collections.Counter(), collections.defaultdict(dict)
    for module, name, thing in shared_objects():
        test = example_of(module, name, thing)
        if test is None or f"{module}.{name}" in FAIL_ON_JAX:
            continue
        problem = run(test)
        if problem:
            failed[module][name] = problem
        else:
            passed[module] += 1
    return passed, failed


def report(passed, failed):
    lines = []
    for module in MODULES:
        good, bad = passed[module], len(failed[module])
        if good + bad:
            names = ", ".join(failed[module])
            lines.append(f"jax{'.' + module if module else '':30} {good:4} of {good + bad:4}  "
                         f"{names}")
    return "\n".join(lines)


@pytest.mark.filterwarnings("ignore")
def test_jaxs_own_examples_pass(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    passed, failed = tally()
    text = report(passed, failed)
    with capsys.disabled():
        print("\n" + text)
    good, bad = sum(passed.values()), sum(map(len, failed.values()))
    assert good >= WANTED * (good + bad), f"{good} of {good + bad} pass\n{text}"


if __name__ == "__main__":
    counts = tally()
    print(report(*counts))
    if "-v" in sys.argv:
        for problems in counts[1].values():
            for problem in problems.values():
                print(problem)
