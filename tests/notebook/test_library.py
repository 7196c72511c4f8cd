"""The reader's library: cells write it, and it grows from chapter to chapter."""

import ast
import itertools
import json
import random
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.notebook import library, weave
from minijax.notebook.library import Library, with_cell
from tests.size import code_lines

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


def test_a_cell_that_is_run_again_changes_nothing(mini):
    for cell in 2 * ["import math", "pi = math.pi\nkept = [pi]\nkept.append(2)"]:
        mini.write(cell)
    assert mini.module.kept == [mini.module.pi, 2]


def test_of_two_statements_about_a_value_the_last_one_counts(mini):
    for cell in ("table = {}", "table[1] = 'right'", "table[1] = 'wrong'", "table[1] = 'right'"):
        mini.write(cell)
    assert mini.module.table == {1: "right"}


def test_no_chapter_begins_the_library_anew_in_its_midst():
    """A reader's file is that of the chapter before: what was written since would be lost."""
    for path in CHAPTERS:
        text = path.read_text(encoding="utf-8")
        assert len(re.findall(r"^%mini begin", text, re.MULTILINE)) <= 1, path
        assert "library.begin" not in text, path


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
    assert mini.save() == "mini: written to my_mini_02.py"
    again = Library()
    assert again.begin("02") == "mini: yours, from my_mini_02.py"
    again.write("a = 8")
    again.save()
    assert Path("my_mini_02.py").read_text() == "a = 7\n"
    assert Path("my_mini_03.py").read_text() == "a = 8\n"


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_what_is_kept_after_a_chapter_is_what_its_cells_write(path):
    assert path.read_text(encoding="utf-8") == KEPT[path], "run: make notebooks"


# ---------------------------------------------------------------- tracebacks

_FRAME = re.compile(r"^in (\S+)\.py, in .*:\n((?:(?:-->|   ) *\d+ .*\n?)+)", re.MULTILINE)
_ROW = re.compile(r"^(?:-->|   ) *(\d+) (.*)$", re.MULTILINE)


def misquoted(cells: Iterable[dict]) -> Iterator[str]:
    """The rows of a chapter's tracebacks that are not rows of `mini` as it is there."""
    text = ""
    for cell in cells:
        source = "".join(cell["source"])
        if begun := re.match(r"%mini begin (\d\d)", source):
            text = (ROOT / f"notebooks/mini/after_{begun[1]}.py").read_text(encoding="utf-8")
        if source.startswith("%%mini\n") and cell["cell_type"] == "code":
            text = with_cell(text, source.partition("\n")[2])
        lines = text.splitlines()
        for output in cell.get("outputs", ()):
            trace = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(output.get("traceback", ())))
            for file, rows in _FRAME.findall(trace):
                yield from (f"{file}.py, {number}: {row}" for number, row in _ROW.findall(rows)
                            if file != "mini" or [row] != lines[int(number) - 1:int(number)])


QUOTING = [path for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
           if re.search(r"in [\w/]+\.py, in ", path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("chapter", QUOTING, ids=lambda path: path.stem)
def test_a_traceback_quotes_the_library_as_it_is(chapter):
    cells = json.loads(chapter.read_text(encoding="utf-8"))["cells"]
    assert not [*misquoted(cells)], "run: make notebooks"


def test_a_row_that_has_moved_is_reported():
    trace = "TypeError: no\n\nin mini.py, in f:\n     1 def f():\n-->  2     raise TypeError\n"
    cells = [{"cell_type": "code", "source": ["%%mini\n", "def f():\n", "    raise TypeError"]},
             {"cell_type": "code", "source": "f()", "outputs": [{"traceback": [trace]}]}]
    assert [*misquoted(cells)] == []
    cells[0]["source"].insert(1, "a = 1\n")
    assert len([*misquoted(cells)]) == 2


# ---------------------------------------------------------------- mini against minijax


def kept(number: str, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.chdir(ROOT / "notebooks")
    monkeypatch.setitem(sys.modules, "mini", None)
    one = Library()
    monkeypatch.setattr(library, "OWN", "nobody's")
    one.begin(number)
    return one.module


def wave(lib):
    return lambda x: lib.mul(2.0, lib.sin(lib.mul(x, x)))


class OurNames:
    """minijax under the names that mini has."""

    sin, cos, exp, log, tanh, sum, dot = (
        jnp.sin, jnp.cos, jnp.exp, jnp.log, jnp.tanh, jnp.sum, jnp.dot)
    where = jnp.where
    mul, jvp, vmap, grad, jit = jnp.multiply, jax.jvp, jax.vmap, jax.grad, jax.jit
    cond, scan, while_loop, fori_loop = lax.cond, lax.scan, lax.while_loop, lax.fori_loop
    custom_jvp, custom_vjp, checkpoint = jax.custom_jvp, jax.custom_vjp, jax.checkpoint
    psum, axis_index, value_and_grad = lax.psum, lax.axis_index, jax.value_and_grad


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


def branching(lib):
    return lambda x: lib.cond(lib.sum(x) > 0.1, lambda x: lib.sin(x) * x, lambda x: -x, x)


def looping(lib):
    def run(x):
        def step(carry, row):
            a, b = carry
            return (a * lib.sin(row) + b, b + row * lib.sum(x)), a * b
        (a, b), rows = lib.scan(step, (lib.sum(x), 1.0), x)
        return rows * a + b
    return run


def waiting(lib):
    def run(x):
        def step(carry):
            n, y = carry
            return n + 1.0, lib.sin(y) + 0.1 * lib.sum(x) * y
        return lib.while_loop(lambda carry: carry[0] < 3.0, step, (0.0 * lib.sum(x), x))[1]
    return run


def own_rule(lib):
    def run(x):
        f = lib.custom_jvp(lambda y: lib.sin(y) * 2.0)
        f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * lib.exp(primals[0])))
        return f(x * x) + x
    return run


def own_rule_backwards(lib):
    def run(x):
        f = lib.custom_vjp(lambda y, z: lib.sin(y) * z)
        f.defvjp(lambda y, z: (f(y, z), (y, z)),
                 lambda saved, ct: (ct * lib.exp(saved[0]), lib.sum(ct * saved[1])))
        return f(x * x, lib.sum(x)) + x
    return run


def computed_again(lib):
    return lib.checkpoint(lambda x: lib.sin(lib.sin(x) * lib.sum(x)))


def shares(lib):
    def run(x):
        def one(e):
            return lib.exp(e) / lib.psum(lib.exp(e), "all") + lib.psum(1.0, "all") * e
        return lib.vmap(one, axis_name="all")(x)
    return run


def numbered(lib):
    def one(e):
        inner = lib.vmap(lambda y: y * lib.psum(e * y, "rows") - lib.axis_index("rows") * y)
        return lib.sum(inner(np.array([1.0, 2.0])) * lib.axis_index("rows"))
    return lambda x: lib.vmap(one, axis_name="rows")(x) * x


def forward(lib, f):
    return lambda x: lib.jvp(f, (x,), (x,))[1]


def twice(lib, f):
    return lambda x: lib.vmap(lambda s: f(x * s))(np.array([1.0, 0.5]))


def written(lib, f):
    """f by way of its program."""
    def run(x):
        if lib is OurNames:
            return f(x)
        jaxpr, consts = lib.stage(lambda y: [f(y)], [lib.get_aval(x)])
        return lib.eval_jaxpr(jaxpr, *consts, x)[0]
    return run


def compiled(lib, f):
    return lib.jit(f)


def reverse(lib, f):
    return lambda x: lib.grad(lambda y: lib.sum(f(y) * f(y)))(x)


def of_elements(lib, f):
    return lambda x: lib.vmap(lambda e: f(x * e))(x)


def kept_small(lib, f):
    return lib.checkpoint(f)


def each_with_all(lib, f):
    return lambda x: lib.vmap(lambda e: lib.sum(f(x * e)))(x)


def added(lib, f):
    return lambda x: lib.sum(twice(lib, f)(x), axis=0)


def in_a_loop(lib, f):
    return lambda x: lib.scan(lambda c, r: (0.5 * f(c) + r * c, r), x, np.array([0.1, 0.2]))[0]


def in_a_branch(lib, f):
    return lambda x: lib.cond(lib.sum(x * x) > 0.5, f, lambda y: 2.0 * y, x)


COMPILER = "27"  # the last chapter that gives the library's compiler something
CASES = [("02", wave, [forward]), ("03", bent, [forward]),
         *[("04", f, [forward, twice, of_elements]) for f in (bent, coupled, layer)],
         ("05", of_a_tree, [forward, twice]),
         *[("06", f, [forward, twice, of_elements, written]) for f in (bent, coupled, layer)],
         *[("07", f, [forward, twice, of_elements, written, reverse])
           for f in (bent, coupled, layer)],
         ("08", coupled, [forward, twice, reverse, compiled]), ("08", layer, [compiled]),
         *[("09", f, [forward, twice, of_elements, reverse]) for f in (branching, looping)],
         ("09", waiting, [forward, twice, of_elements]), ("09", looping, [compiled]),
         ("09", waiting, [compiled]), ("09", branching, [compiled]),
         *[("10", f, [forward, twice, of_elements, reverse]) for f in (own_rule, computed_again)],
         ("10", own_rule_backwards, [twice, of_elements]), ("10", own_rule_backwards, [reverse]),
         *[("10", f, [compiled]) for f in (own_rule, own_rule_backwards, computed_again)],
         *[("11", f, [forward, twice, of_elements, reverse]) for f in (shares, numbered)],
         ("11", shares, [compiled, kept_small]),
         (COMPILER, coupled, [compiled, reverse]), (COMPILER, layer, [compiled]),
         *[(COMPILER, f, [compiled]) for f in (looping, branching, waiting, shares)]]


@pytest.mark.parametrize("number, program, ways", CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_mini_agrees_with_minijax_in_any_nesting(number, program, ways, monkeypatch):
    mini = kept(number, monkeypatch)
    x = np.array([0.3, -0.8, 0.5])
    pairs = list(itertools.product(ways, repeat=2))
    chosen = random.Random(number + program.__name__).sample(pairs, min(len(pairs), 4))
    with jax.enable_x64(True):
        for stack in [(), *[(w,) for w in ways], *chosen]:
            found, wanted = (program(lib) for lib in (mini, OurNames))
            for way in stack:
                found, wanted = way(mini, found), way(OurNames, wanted)
            np.testing.assert_allclose(found(x), wanted(x), rtol=1e-12, atol=1e-12)


PROGRAMS = [bent, coupled, of_a_tree, branching, looping, waiting, own_rule, own_rule_backwards,
            computed_again, shares, numbered]
WAYS = [forward, added, each_with_all, reverse, kept_small, in_a_loop, in_a_branch]
MEANINGLESS = {waiting: reverse, own_rule_backwards: forward}


def nestings() -> list[tuple]:
    """Triples of transformations, each on one program in turn, where they have a meaning."""
    triples = random.Random(0).sample(list(itertools.product(WAYS, repeat=3)), 40)
    chosen = [(PROGRAMS[k % len(PROGRAMS)], triple) for k, triple in enumerate(triples)]
    return [(program, triple) for program, triple in chosen
            if MEANINGLESS.get(program) not in triple]


@pytest.mark.parametrize("program, stack", [
    *nestings(), (coupled, (reverse, compiled, forward)), (shares, (compiled, added, reverse))],
    ids=lambda x: getattr(x, "__name__", ""))
def test_mini_at_the_end_agrees_in_nestings_of_all_kinds(program, stack, monkeypatch):
    mini = kept("11", monkeypatch)
    x = np.array([0.3, -0.8])
    with jax.enable_x64(True):
        found, wanted = (program(lib) for lib in (mini, OurNames))
        for way in stack:
            found, wanted = way(mini, found), way(OurNames, wanted)
        np.testing.assert_allclose(found(x), wanted(x), rtol=1e-9, atol=1e-12)


def test_perturbations_of_different_levels_of_mini_do_not_mix(monkeypatch):
    grad = kept("11", monkeypatch).grad
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(2.0) == 1.0
    assert grad(lambda x: grad(lambda y: x * y * y)(3.0) * x)(5.0) == 60.0


def network_loss(lib, params, x, y):
    """The loss of the tour's network: two layers, and the surprise about the right answers."""
    hidden, last = params
    active = lib.dot(x, hidden["w"]) + hidden["b"]
    active = lib.where(active > 0.0, active, 0.0)
    scores = lib.dot(active, last["w"]) + last["b"]
    log_sum = lib.log(lib.sum(lib.exp(scores), axis=1))
    return lib.sum(log_sum - lib.sum(scores * y, axis=1)) / 40.0


def test_mini_trains_the_network_of_the_tour_as_minijax_does(monkeypatch):
    mini, rng = kept("11", monkeypatch), np.random.default_rng(0)
    start = [{"w": rng.normal(size=(8, 6)), "b": np.zeros(6)},
             {"w": rng.normal(size=(6, 3)), "b": np.zeros(3)}]
    x, digits = rng.normal(size=(40, 8)), rng.integers(0, 3, 40)
    y = np.eye(3)[digits]

    def train(lib):
        params, losses = start, []
        for _ in range(20):
            loss, grads = lib.value_and_grad(lambda p: network_loss(lib, p, x, y))(params)
            params = jax.tree.map(lambda p, g: p - 0.3 * g, params, grads)
            losses.append(float(loss))
        return losses, params

    with jax.enable_x64(True):
        (ours, found), (theirs, wanted) = train(mini), train(OurNames)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert ours[-1] < 0.7 * ours[0]
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7)


@pytest.mark.parametrize("number, most", [("07", 400), ("11", 812)])
def test_mini_has_some_four_hundred_lines_of_code_and_then_eight_hundred(number, most):
    assert code_lines((ROOT / "notebooks" / "mini" / f"after_{number}.py").read_text()) <= most


def definitions(text: str) -> list[ast.AST]:
    """The functions and classes of a module, and the methods whose name says not all."""
    top = [node for node in ast.parse(text).body
           if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return top + [method for node in top if isinstance(node, ast.ClassDef) for method in node.body
                  if isinstance(method, ast.FunctionDef) and not method.name.startswith("__")]


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_kept_library_is_a_module_to_read(path):
    """A header, imports on top, sections in their order, and a docstring for each definition."""
    text, module = KEPT[path], ast.parse(KEPT[path])
    assert ast.get_docstring(module)
    places = [k for k, node in enumerate(module.body)
              if isinstance(node, ast.Import | ast.ImportFrom)]
    assert places == [*range(1, 1 + len(places))]
    titles = re.findall(r"^# ── (.+?) ─+$", text, re.MULTILINE)
    assert titles == [title for title in library.SECTIONS if title in titles]
    assert [node.name for node in definitions(text) if not ast.get_docstring(node)] == []
    assert [line for line in text.splitlines() if len(line) > 100] == []


def test_a_definition_goes_to_its_section_and_above_what_the_cell_has_below_it():
    text = with_cell("", "# ── Programs ──\ndef run():\n    pass\n")
    text = with_cell(text, "# ── Types ──\ndef kind():\n    pass\n")
    text = with_cell(text, "# ── Programs ──\nstep = 1\n\n\ndef run():\n    return step\n")
    text = with_cell(text, '"""What it is."""\nimport math\n\n\nlast = run()\n')
    assert re.sub(r"(\n+| ─*$)", " ", text, flags=re.MULTILINE).split() == (
        '"""What it is.""" import math # ── Types def kind(): pass # ── Programs step = 1 '
        "def run(): return step last = run()").split()
    assert with_cell(text, "import math\nstep = 1\n") == text


@pytest.mark.parametrize("number", ["11", COMPILER])
def test_mini_says_what_is_wrong(number, monkeypatch):
    mini = kept(number, monkeypatch)
    with pytest.raises(NotImplementedError, match=r"the primitive 'sin' has no rule 'transpose'"):
        mini.backward_pass(mini.make_jaxpr(mini.sin)(1.0),
                           [mini.Undefined(mini.get_aval(1.0))], [1.0])
    with pytest.raises(ValueError, match=r"axes of one size.* \[3, 2\]"):
        mini.vmap(mini.mul)(np.ones(3), np.ones(2))
    mini.odd = mini.Primitive("odd", impl=lambda x: [x])
    with pytest.raises(NotImplementedError, match=r"no text for an element of 'odd'"):
        mini.jit(lambda x: mini.odd(x))(np.ones(3))


@pytest.mark.parametrize("before, after, most", [("11", "26", 390), ("26", "27", 120)],
                         ids=["for a CPU", "for a GPU, which is emulated"])
def test_the_compiler_of_mini_is_short(before, after, most):
    lines = {n: code_lines((ROOT / "notebooks" / "mini" / f"after_{n}.py").read_text())
             for n in (before, after)}
    assert lines[after] - lines[before] <= most


def kernel_of(mini, f, x):
    return mini.Text(mini.simplified(mini.make_jaxpr(f)(x)), {}).kernel


@pytest.mark.parametrize("program", ["total", "rows", "turned", "columns"])
def test_mini_gives_the_same_bits_with_any_number_of_threads(program, monkeypatch):
    mini = kept(COMPILER, monkeypatch)
    f, wanted = {
        "total": (lambda x: mini.sum(x * mini.exp(-x)), lambda x: np.sum(x * np.exp(-x))),
        "rows": (mini.vmap(lambda row: row / mini.sum(row)),
                 lambda x: x / x.sum(1, keepdims=True)),
        "turned": (lambda x: x + mini.transpose(x, (1, 0)), lambda x: x + x.T),
        "columns": (lambda x: mini.sum(x, 0), lambda x: x.sum(0))}[program]
    x = np.random.default_rng(0).uniform(1.0, 2.0, (601, 601))
    assert (len(mini.in_parts(kernel_of(mini, f, x))) > 1) is (program != "columns")
    run, results = mini.jit(f), []
    for threads in (1, 2, 8):
        monkeypatch.setattr(mini, "THREADS", threads)
        results.append(np.asarray(run(x)))
    np.testing.assert_allclose(results[0], wanted(x), rtol=1e-12)
    assert len({found.tobytes() for found in results}) == 1


def test_a_short_program_of_mini_is_one_function_without_threads(monkeypatch):
    mini = kept(COMPILER, monkeypatch)
    kernel = kernel_of(mini, lambda x: mini.sum(x * x), np.ones(100))
    assert mini.in_parts(kernel) == [kernel]


@pytest.mark.parametrize("body, is_independent", [
    ([("Load", "a", "x", ("i",)), ("Store", "y", ("i",), "a")], True),
    ([("Load", "a", "x", ("i",)), ("Let", "b", "-{}", ("a",))], True),
    ([("Let", "own", "0", ()), ("Assign", "own", "{} + 1", ("own",))], True),
    ([("Load", "a", "x", ("i",)), ("Store", "y", (0,), "a")], False),
    ([("Let", "j", "{} // 2", ("i",)), ("Store", "y", ("j",), "s")], False),
    ([("Store", "y", ("ii",), "s")], False),
    ([("Assign", "s", "{} + 1", ("s",))], False),
    ([("Call", ("r",), "f0", ("x",))], False)],
    ids=lambda body: body if isinstance(body, bool) else "-".join(each[0] for each in body))
@pytest.mark.parametrize("deep", [False, True], ids=["in the loop", "in a loop inside"])
def test_threads_share_a_loop_of_mini_only_if_no_two_rounds_write_the_same(
        body, is_independent, deep, monkeypatch):
    mini = kept(COMPILER, monkeypatch)
    statements = tuple(getattr(mini, kind)(*parts) for kind, *parts in body)
    inside = (mini.For("k", 0, 4, statements),) if deep else statements
    loop = mini.For("i", 0, 9, inside)
    assert mini.independent(loop) is is_independent


def test_a_tree_of_mini_says_what_its_statements_define_and_mention(monkeypatch):
    mini = kept(COMPILER, monkeypatch)
    body = (mini.Call(("a", "b"), "f0", ("x",)),
            mini.For("i", 0, 9, (mini.Load("c", "a", ("i",)),
                                 mini.If("flag", (mini.Assign("b", "{} + {}", ("c", 2.0)),)))),
            mini.While((mini.Let("d", "{} > 1", ("b",)),), "d", ()))
    assert list(mini.defined(body)) == ["a", "b", "i", "c", "d"]
    assert {"a", "b", "c", "d", "i", "x", "flag"} <= {*mini.names(body)}
    assert mini.cost_of(body) == 1 + 1 + 9 * 2 + 1
    assert list(mini.lines(body)) == [
        "(a, b, ) = f0(x)", "for i in range(9):", "    c = a[i]", "    if flag:",
        "        b = c + 2.0", "while True:", "    d = b > 1", "    if not d: break"]


@pytest.mark.parametrize("number", ["24", "26", "27"])
def test_no_text_is_taken_apart_in_the_compiler_of_mini(number):
    """What wants to know something about loops asks the tree."""
    text = (ROOT / "notebooks" / "mini" / f"after_{number}.py").read_text(encoding="utf-8")
    assert not re.search(r"^(?:import|from) (?:re|ast)\b|splitlines", text, re.MULTILINE)


def test_a_call_of_mini_that_takes_the_short_way_gives_what_the_long_way_gives(monkeypatch):
    mini = kept(COMPILER, monkeypatch)
    run, x = mini.jit(lambda x: mini.sin(x) * x), np.linspace(0.0, 1.0, 12).reshape(3, 4)
    wanted = np.sin(x) * x
    for given, out in ((x, wanted), (x, wanted), (x.T, wanted.T), (x[1], wanted[1]),
                       (x[:, 1], wanted[:, 1]), (0.5, np.sin(0.5) * 0.5)):
        np.testing.assert_allclose(run(given), out)
    slope = np.cos(x) * x + np.sin(x)
    np.testing.assert_allclose(mini.jvp(run, (x,), (np.ones((3, 4)),))[1], slope)
    np.testing.assert_allclose(mini.vmap(run)(x), wanted)


def test_each_chapter_goes_on_where_the_one_before_it_has_saved(mini, monkeypatch):
    numbers = [path.stem.split("_")[1] for path in KEPT]
    for number, following in itertools.pairwise(numbers):
        monkeypatch.chdir(ROOT / "notebooks")
        mini.begin(number)
        assert mini.chapter == following


@pytest.mark.parametrize("program", [
    lambda lib, x: lib.exp(-x * x) * 2.0 + 1.0, lambda lib, x: lib.sum(x, 0),
    lambda lib, x: lib.sum(x, 1), lambda lib, x: lib.transpose(x, (1, 0)) + 1.0,
    lambda lib, x: lib.vmap(lambda row: lib.exp(row) / lib.sum(lib.exp(row)))(x),
    lambda lib, x: lib.vmap(lambda row: row / lib.sum(row) + lib.sum(row * row))(x),
    lambda lib, x: lib.grad(lambda x: lib.sum(lib.sin(lib.dot(x, lib.transpose(x, (1, 0))))))(x),
    lambda lib, x: lib.dot(x, lib.transpose(x, (1, 0)))])
def test_launches_of_mini_give_the_numbers_of_its_loops_and_are_never_refused(
        program, monkeypatch):
    mini = kept("27", monkeypatch)
    for shape in [(5, 70), (64, 3), (2, 64)]:
        x = np.random.default_rng(0).normal(size=shape)
        found = mini.on_gpu(lambda x: program(mini, x))(x)
        np.testing.assert_allclose(found, program(mini, x), rtol=1e-12, atol=1e-12)
