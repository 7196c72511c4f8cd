"""The reader's library: cells write it, and it grows from chapter to chapter."""

import sys
from pathlib import Path

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook import library, weave
from minijax.notebook.library import Library, with_cell

ROOT = Path(__file__).parent.parent.parent
CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9]*.md"))
KEPT = weave.kept_libraries(CHAPTERS)


@pytest.fixture
def mini(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Library:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "mini", None)
    return Library()


def test_a_function_that_is_defined_again_takes_the_place_of_the_old():
    assert with_cell("def f(): return 1\n\n\nx = 1\n", "def f(): return 2") == (
        "def f(): return 2\n\n\nx = 1\n")


def test_a_value_that_is_defined_again_comes_last_without_what_was_set_on_it():
    assert with_cell("p = make()\np.rule = one\nq = 2\n", "p = make_better()") == (
        "q = 2\np = make_better()\n")


def test_what_stands_earlier_sees_what_is_written_later(mini):
    mini.write("class A:\n    word = 'old'\n\n\nclass B(A):\n    pass")
    mini.write("class A:\n    word = 'new'")
    import mini as module
    assert module.B.word == "new"


def test_a_cell_that_cannot_be_run_changes_nothing(mini):
    mini.write("a = 1")
    with pytest.raises(NameError):
        mini.write("b = nothing_of_that_name")
    assert mini.text == "a = 1\n" and mini.module.a == 1


def test_a_reader_goes_on_from_a_file_of_their_own(mini):
    mini.write("a = 7")
    assert mini.save() == "mini: written to my_mini.py"
    assert Library().begin("02") == "mini: yours, from my_mini.py"


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_what_is_kept_after_a_chapter_is_what_its_cells_write(path):
    assert path.read_text(encoding="utf-8") == KEPT[path], "run: make notebooks"


# ---------------------------------------------------------------- mini against minijax


def kept(number: str, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.chdir(ROOT / "notebooks")
    monkeypatch.setitem(sys.modules, "mini", None)
    one = Library()
    monkeypatch.setattr(library, "OWN", Path("nobody's"))
    one.begin(number)
    return one.module


def wave(lib):
    return lambda x: lib.mul(2.0, lib.sin(lib.mul(x, x)))


class OurNames:
    """minijax under the names that mini has."""

    sin, cos, exp, log, tanh, sum, dot = (
        jnp.sin, jnp.cos, jnp.exp, jnp.log, jnp.tanh, jnp.sum, jnp.dot)
    mul, jvp, vmap, grad, jit = jnp.multiply, jax.jvp, jax.vmap, jax.grad, jax.jit


def bent(lib):
    return lambda x: lib.exp(-x * x) / (1.0 + lib.tanh(x)) - lib.cos(x)


def coupled(lib):
    return lambda x: lib.sum(lib.tanh(x) * x) * lib.sin(x)


def layer(lib):
    weights = np.linspace(-1.0, 1.0, 6).reshape(2, 3)
    return lambda x: lib.dot(weights, lib.sin(x)) * lib.sum(x * x)


def of_a_tree(lib):
    def run(x):
        nest = lib.vmap(lambda d: [lib.sin(d["a"]), {"b": d["a"] * d["b"]}])({"a": x, "b": x * x})
        return nest[0] + nest[1]["b"]
    return run


def forward(lib, f):
    return lambda x: lib.jvp(f, (x,), (x,))[1]


def twice(lib, f):
    return lambda x: lib.vmap(lambda s: f(x * s))(np.array([1.0, 0.5]))


def written(lib, f):
    """f by way of its program."""
    def run(x):
        if lib is OurNames:
            return f(x)
        jaxpr, outside = lib.stage(lambda y: [f(y)], [lib.aval_of(x)])
        return lib.eval_jaxpr(jaxpr, *outside, x)[0]
    return run


def compiled(lib, f):
    return lib.jit(f)


def reverse(lib, f):
    return lambda x: lib.grad(lambda y: lib.sum(f(y) * f(y)))(x)


def of_elements(lib, f):
    return lambda x: lib.vmap(lambda e: f(x * e))(x)


CASES = [("02", wave, [forward]), ("03", bent, [forward]),
         *[("04", f, [forward, twice, of_elements]) for f in (bent, coupled, layer)],
         ("05", of_a_tree, [forward, twice]),
         *[("06", f, [forward, twice, of_elements, written]) for f in (bent, coupled, layer)],
         *[("07", f, [forward, twice, of_elements, written, reverse])
           for f in (bent, coupled, layer)],
         ("08", coupled, [forward, twice, reverse, compiled]), ("08", layer, [compiled])]


@pytest.mark.parametrize("number, program, ways", CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_mini_agrees_with_minijax_in_any_nesting(number, program, ways, monkeypatch):
    mini = kept(number, monkeypatch)
    x = np.array([0.3, -0.8, 0.5])
    with jax.enable_x64(True):
        for stack in [(), *[(w,) for w in ways], *[(v, w) for v in ways for w in ways]]:
            found, wanted = (program(lib) for lib in (mini, OurNames))
            for way in stack:
                found, wanted = way(mini, found), way(OurNames, wanted)
            np.testing.assert_allclose(found(x), wanted(x), rtol=1e-12, atol=1e-12)
