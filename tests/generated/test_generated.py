"""Generated programs give under `jit`, and eagerly, what they give without a compiler.

`make fuzz` runs many; here are a few of each kind, and the tools themselves. `GENERATED=1000` runs
more of them.
"""

import contextlib
import os

import numpy as np
import pytest

import minijax
from minijax.compiler.targets import thread_block
from minijax.placement import moves
from minijax.primitives import analytic
from tests.generated import grammar, planted
from tests.generated.programs import Input, Line, Program, Rejected, Writer, generate
from tests.generated.running import (
    check, differs, firm, minimise, operations_that_are, poisoned_memory, run, uncompiled,
)

COUNT = int(os.environ.get("GENERATED", "8")) * 3
SEEDS = range(COUNT)


@pytest.fixture(autouse=True)
def poison():
    with poisoned_memory():
        yield


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_numbers_under_jit(seed):
    program = generate(seed)
    difference = check(program, "eager")
    assert difference is None, f"{difference}\n{minimise(program, 'eager', difference).print()}"


@pytest.mark.parametrize("seed", [seed for seed in SEEDS if seed != 15])  # that takes 15 s
def test_the_same_numbers_on_the_emulated_gpu(seed):
    difference = check(generate(seed, "gpu"), "gpu")
    assert difference is None, f"{difference}\n{generate(seed, 'gpu').print()}"


@pytest.mark.parametrize("seed", range(COUNT // 6))
def test_the_same_numbers_on_four_ranks(seed):
    difference = check(generate(seed, "ranks"), "ranks")
    assert difference is None, f"{difference}\n{generate(seed, 'ranks').print()}"


def test_the_same_seed_gives_the_same_program_and_its_text_runs():
    program = generate(1)
    assert program == generate(1) != generate(2)
    names = {}
    exec(program.print().partition("print(")[0], names)
    found = minijax.tree.leaves(names["program"](names["x"], names["n"]))
    for x, y in zip(found, run(program), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize("name", [*grammar.LINES, *grammar.FUNCTIONS])
def test_every_row_of_the_table_is_written(name):
    """A row whose text never runs would be left out in silence."""
    rows = grammar.LINES | grammar.FUNCTIONS
    for seed in range(200):
        d = Writer(seed)
        d.beside_jax = True
        for kind in "ffibhepu":
            d.input(kind)
        d.write("n3 > 1" if d.values[3].ndim else "jnp.array([True])")
        with contextlib.suppress(Rejected, IndexError, ValueError, TypeError):
            assert d.write(rows[name][1](d))
            return
    raise AssertionError(f"{name} wrote nothing that runs")


X = Input("x0", "float32", (3,), 1)


def program_of(*texts, outs="[v2]"):
    lines = [Line(f"v{k}", text) for k, text in enumerate(texts)]
    return Program((X,), (*lines, Line("return", outs)), ("jit", "vmap"))


@pytest.mark.of_tests
def test_a_difference_is_found_and_made_small(monkeypatch):
    monkeypatch.setattr(analytic.exp_p, "element", lambda b, at, x, **_: [b.mul(x(at), 2.0)])
    program = program_of("x0 + 1", "jnp.sin(v0)", "jnp.exp(v1) * v0", outs="[v0, v2, v1]")
    difference = check(program, "eager")
    assert difference.kind == "value" and difference.way == "jit"
    small = minimise(program, "eager", difference)
    assert len(small.lines) == 2 and not small.layers and "exp" in small.lines[0].text


@pytest.mark.parametrize("name", planted.MISTAKES)
def test_the_place_of_a_planted_mistake_is_there(name):
    with planted.MISTAKES[name]():
        pass


@pytest.mark.of_tests
def test_launches_without_barriers_are_found(monkeypatch):
    def barrier(self):
        self.stored, self.loaded = set(), set()
    monkeypatch.setattr(thread_block.ThreadBlock, "barrier", barrier)
    found = (check(generate(seed, "gpu"), "gpu") for seed in range(100))
    difference = next(each for each in found if each is not None)
    assert difference.kind == "raises" and "a race for" in difference.text


@pytest.mark.of_tests
def test_a_rank_that_takes_the_block_of_another_is_found(monkeypatch):
    monkeypatch.setattr(moves.Moves, "rank", lambda self, names: np.int32(0))
    assert any(check(generate(seed, "ranks"), "ranks") for seed in range(30))


@pytest.mark.of_tests
def test_a_planted_mistake_is_found():
    with planted.MISTAKES["two temps that share memory"]():
        assert any(check(generate(seed), "eager", ["jit"]) for seed in range(20))


@pytest.mark.of_tests
def test_a_planted_mistake_of_bits_is_found(monkeypatch):
    monkeypatch.setenv("MINIJAX_CACHE_DIR", "")  # from disk comes optimised code
    program = program_of("jnp.sqrt(x0 * x0 + 2)", "v0[::-1] * 3", "v1 + v0 * x0")
    assert check(program, "scalars") is None
    with planted.MISTAKES_OF_BITS["an index that goes backwards, taken forwards"]():
        assert check(program, "scalars").kind == "value"


def test_numbers_that_no_rounding_explains_differ():
    x = np.float32([1, 1e-3, np.nan, np.inf])
    assert not differs(x, x * np.float32(1 + 1e-6)).any()
    assert differs(x, np.float32([1.001, 2e-3, 0, -np.inf])).all()


def test_what_small_changes_turn_over_is_no_difference():
    wanted, found = np.int32([1, 0, 5]), np.int32([0, 1, 5])
    same, moved = np.int32([1, 0, 5]), np.int32([1, 1, 4])  # one that is counted elsewhere
    assert firm(wanted, [same, same], found).all() and not firm(wanted, [same, moved], found).any()
    lost, huge = np.float32([np.nan, np.nan]), np.float32([np.inf, 1])  # a nan for 1 is one
    assert firm(lost, [lost], huge).tolist() == [False, True]


@pytest.mark.parametrize("seed", [6, 9])
def test_noise_of_operations_reaches_the_results_and_raises_nothing(seed):
    program = generate(seed)
    results = uncompiled(program)
    with operations_that_are(lambda x: x * x.dtype.type(1.25) if x.dtype.kind == "f" else x):
        noisy_results = uncompiled(program)
    assert len(noisy_results) == len(results)
    assert any((np.asarray(x) != np.asarray(y)).any()
               for x, y in zip(noisy_results, results, strict=True))
