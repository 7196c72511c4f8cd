"""Each primitive on a GPU, by the examples of its block: the emulator gives what the CPU gives.

Here nearly every loop is a launch, which blocks share; `LARGE=1` runs the examples also as the
scheduler would have them, and the large matrices of `lu`, which take the emulator seconds.
"""

import os

import numpy as np
import pytest

import minijax as jax
import minijax.experimental
from minijax.compiler.schedule import lower_to_kernel
from minijax.compiler.targets import launches
from minijax.compiler.targets.programs import emulate
from tests.running_text import laid_out
from tests.test_laws import (
    NARROW, PRIMITIVES, WITHOUT_EXAMPLES, cases, in_complex_numbers, in_narrow_numbers, is_key,
    is_tame, numbers, same,
)

LARGE = bool(os.environ.get("LARGE"))
WIDE = [64, launches.WIDE] if LARGE else [64]
SLOW = {} if LARGE else {"lu": 1 << 11}  # numbers in an argument, at most

# Those that have no examples, in programs: what vmap or a derivative makes of them.
X = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)


def for_each(f):
    return jax.vmap(f, axis_name="i")


PROGRAMS = {
    "all_gather": for_each(lambda x: jax.lax.all_gather(x, "i").T @ x[:3]),
    "all_to_all": for_each(lambda x: jax.lax.all_to_all(x[:3], "i", 0, 0)),
    "random_gamma": lambda x: jax.random.gamma(jax.random.key(0), 1 + x * x),
    "ragged_all_to_all": for_each(lambda x: jax.lax.ragged_all_to_all(
        x[:, None], x[:, None], *[jax.numpy.ones(3, int)] * 4, axis_name="i")[:, 0]),
    "ppermute": for_each(lambda x: jax.lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)])),
    "pure_callback": lambda x: jax.pure_callback(lambda y: np.asarray(y) + 1, x, x) * 2,
    "io_callback": lambda x: jax.experimental.io_callback(lambda y: np.asarray(y) + 1, x, x) * 2,
    "axis_index": for_each(lambda x: x + jax.lax.axis_index("i")),
    "psum": for_each(lambda x: x / jax.lax.psum(x + 3, "i")),
    "pmax": for_each(lambda x: x - jax.lax.pmax(x, "i")),
    "pmin": for_each(lambda x: x - jax.lax.pmin(x, "i")),
    "custom_lin": jax.grad(lambda x: jax.nn.relu(x).sum()),
    "debug_callback": lambda x: (jax.debug.callback(lambda y: None, x), x + 1)[1],
    "dce_sink": lambda x: (jax.lax.dce_sink(x * 2), x + 1)[1],
}
# Nothing to compare: why.
REFUSED = {"check": "it raises, or does nothing: test_launches.py has a program that raises",
           "rng_uniform": "other numbers on each call, which the host draws",
           **dict.fromkeys(("across_reduce", "across_gather", "across_exchange", "across_permute",
                            "rank"), "ranks are processes, each on its CPU"),
           **dict.fromkeys(("psum_invariant", "all_gather_invariant", "pvary"),
                           "they are psum, all_gather and nothing, where types say what varies")}


def words(x):
    """The numbers of an argument or result, of keys the words."""
    return numbers(jax.random.key_data(x) if is_key(x) else x)


def emulated(f, args, seed=0):
    """The results of a function on an emulated GPU, as they lie there."""
    source = lower_to_kernel(jax.make_jaxpr(f)(*args), "f", on_gpu=True)
    given = [laid_out(words(x), buffer) for x, buffer in zip(args, source.inputs, strict=True)]
    return emulate(launches.scheduled(source), given, seed)


@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("name", PRIMITIVES)
def test_launches_are_the_meaning(monkeypatch, name, wide):
    monkeypatch.setattr(launches, "WIDE", wide)
    found = [c for c in cases(PRIMITIVES[name])
             if all(words(x).size <= SLOW.get(name, np.inf) for x in c.args)]
    assert found or name in WITHOUT_EXAMPLES
    for seed, case in enumerate(found):
        with case.mode():
            wanted = [words(x) for x in case.run(*case.args)]
            outs = emulated(case.run, case.args, seed)
            same([x.view(y.dtype).reshape(y.shape) if y.dtype.kind == "c" else x
                  for x, y in zip(outs, wanted, strict=True)], wanted, case)


TRANSFORMS = {"fourier", "of_real", "to_real"}  # their functions refuse narrow numbers


@pytest.mark.parametrize("name", sorted(PRIMITIVES.keys() - TRANSFORMS))
def test_launches_on_narrow_numbers_are_the_meaning(name):
    for narrow in NARROW:
        found = filter(None, (in_narrow_numbers(case, narrow) for case in cases(PRIMITIVES[name])))
        for case in list(found)[::6]:
            same(emulated(case.run, case.args), [words(x) for x in case.run(*case.args)], case)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_launches_on_complex_numbers_are_the_meaning(name):
    examples = [c for c in map(in_complex_numbers, cases(PRIMITIVES[name])) if c and is_tame(c)]
    for case in examples if LARGE else examples[:1]:
        with case.mode():
            wanted = [words(x) for x in case.run(*case.args)]
            outs = emulated(case.run, case.args)
            same([x.view(y.dtype).reshape(y.shape) if y.dtype.kind == "c" else x
                  for x, y in zip(outs, wanted, strict=True)], wanted, case)


def test_all_others_are_in_a_program_or_said_to_be_refused():
    assert {*PROGRAMS, *REFUSED} == {*WITHOUT_EXAMPLES}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_becomes_of_the_others_runs(name):
    [found] = emulated(PROGRAMS[name], [jax.numpy.asarray(X)])
    np.testing.assert_allclose(found, PROGRAMS[name](X), rtol=1e-5)
