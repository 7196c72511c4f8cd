"""The widgets of the course: what they show is what happens."""

import itertools
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax as real_jax
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import P, core, dtypes, tree_util
from minijax.transforms.derivatives import at_point
from minijax.core.linearize import linearize_flat
from minijax.core.jvp import JVPTrace
from minijax.notebook import explain, step, watch, widgets
from minijax.notebook.accesses import accesses
from minijax.notebook.widgets.checkpointing import moments
from minijax.notebook.widgets.confusion import observed
from minijax.notebook.widgets.held_blocks import Held
from minijax.notebook.widgets.lattice import NODES, steps
from minijax.notebook.widgets.reverse import reverse_pass
from minijax.placement.across import Grid
from minijax.placement.communication_costs import Machine, planned, transfers
from tests import ranks


def captions(film: Any) -> list[str]:
    return [frame.caption for frame in film.frames]


# ---- step


def derivatives_of_a_batch(x: Any) -> Any:
    return jax.vmap(lambda x: jax.jvp(jnp.sin, (x,), (1.0,)))(x)


def test_step_meets_what_watch_prints_in_the_same_order(capsys: Any) -> None:
    x = jnp.array([0.0, 0.5, 1.0])
    watch(derivatives_of_a_batch, x)
    watched = [line.split() for line in capsys.readouterr().out.splitlines()]
    met = [re.search(r"(?:Level \d+, (\w+), meets|Evaluation computes) `(\w+) ", said)
           for said in captions(step(derivatives_of_a_batch, x))]
    assert [(m[1] or "eval", m[2]) for m in met if m] == [
        (words[0], words[words.index("=") + 1]) for words in watched]


def test_step_shows_the_levels_and_the_values() -> None:
    x = jnp.array([0.0, 0.5, 1.0])
    said = captions(step(derivatives_of_a_batch, x))
    assert said[0].startswith("Level 2, jvp, meets `sin a`, opens `a = (b; 1)`")
    assert said[1].startswith("Level 1, vmap, meets `sin b`, opens `b = [0 0.5 1]`")
    sines, slopes = ("[" + " ".join(f"{n:.3g}" for n in xs) + "]"
                     for xs in derivatives_of_a_batch(x))
    assert said[2] == f"Evaluation computes `sin [0 0.5 1]`: `{sines}`."
    assert said[-2] == f"Back on level 1: the result of `mul 1 d` is `e = {slopes}`."
    assert said[-1] == "Back on level 2: the result of `sin a` is `f = (c; e)`."


def test_step_of_two_derivatives_has_two_levels() -> None:
    film = step(lambda x: jax.jvp(lambda x: jax.jvp(lambda y: y * y, (x,), (1.0,))[1],
                                  (x,), (1.0,)), 3.0)
    assert "level 2 · jvp" in film.drawing(film.frames[0])
    assert "level 1 · jvp" in film.drawing(film.frames[0])
    assert film.frames[-1].caption.startswith("Back on level 2")


def test_step_through_a_function_of_several_operations_and_of_none() -> None:
    assert len(step(lambda x: jnp.sin(x) + 1.0, 0.5).frames) == 2
    assert "no primitive was seen" in repr(step(lambda: 1))


# ---- tangent


def test_the_tangent_is_the_derivative_at_each_place() -> None:
    film = widgets.tangent(lambda x: jnp.sin(x) * x, -2.0, 2.0, places=5)
    slope = jax.grad(lambda x: jnp.sin(x) * x)
    said = [re.findall(r"[-\d.]*\d", said.replace("−", "-")) for said in captions(film)]
    assert [float(x) for x, *_ in said] == [-2.0, -1.0, 0.0, 1.0, 2.0]
    for x, value, given in said:
        assert abs(float(value) - float(jnp.sin(float(x))) * float(x)) < 1e-3
        assert abs(float(given) - float(slope(float(x)))) < 1e-3
    assert film.opens == 2
    assert all(f'data-place="{k}"' in film.drawing(film.frames[0]) for k in range(5))


# ---- confusion


def slope_of_x_times_slope() -> float:
    def f(x: Any) -> Any:
        return x * jax.jvp(lambda y: x + y, (1.0,), (1.0,))[1]
    return float(jax.jvp(f, (1.0,), (1.0,))[1])


def test_confusion_with_levels_gives_what_jvp_gives_and_without_them_two() -> None:
    film = widgets.confusion()
    on, off = film.rows["on",][-1].caption, film.rows["off",][-1].caption
    assert f"the slope is {slope_of_x_times_slope():g}. That is right" in on
    assert "the slope is 2. That is wrong" in off


def test_confusion_puts_everything_back() -> None:
    ordinary = JVPTrace.split
    widgets.confusion()
    assert JVPTrace.split is ordinary and slope_of_x_times_slope() == 1.0


def test_confusion_shows_two_speeds_of_the_sum_with_levels_and_one_without() -> None:
    with_levels, without = (observed(levels)["x + y"] for levels in (True, False))
    assert with_levels == (2.0, {1: 1.0, 2: 1.0})
    assert without == (2.0, {2: 2.0})


# ---- lattice


@pytest.mark.parametrize("x64", [False, True])
def test_two_dtypes_meet_where_jax_says(x64: bool) -> None:
    with jax.enable_x64(x64), real_jax.enable_x64(x64):
        film = widgets.lattice()
        for a, b in itertools.product(NODES, NODES):
            *_, last = film.rows[a, b]
            found = re.search(r"`([^`]+)`", last.caption)
            assert found
            theirs = real_jax.numpy.promote_types(*(dtypes._node(name) for name in (a, b)))
            mine = dtypes._node(found[1])
            assert (np.dtype(mine).kind if found[1].endswith("*") else mine) in (
                theirs, theirs.kind), (a, b)


def test_both_walk_along_the_steps_of_the_lattice() -> None:
    above = steps()
    for (a, b), row in widgets.lattice().rows.items():
        for walker, start in enumerate((a, b)):
            at = [re.findall(r"`([^`]+)`", frame.caption) for frame in row]
            places = [names[walker] if len(names) > 1 else names[0] for names in at]
            assert places[0] == start
            assert all(one == two or two in above[one] for one, two in itertools.pairwise(places))


def test_in_32_bits_a_uint32_steps_to_int32_and_every_dtype_can_be_pressed() -> None:
    film = widgets.lattice("uint32", "int8")
    assert captions(film) == ["`uint32` and `int8` set out.", "At `int32` and `int16`.",
                              "They meet in `int32`."]
    drawing = film.drawing(film.frames[0])
    assert sorted(map(int, re.findall(r'data-choice="(\d+)"', drawing))) == list(range(len(NODES)))


# ---- reverse


def test_the_reverse_pass_arrives_at_the_gradient() -> None:
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y + x * y
    film = widgets.reverse(f, 1.0, 2.0)
    gradient = jax.grad(f, argnums=(0, 1))(1.0, 2.0)
    assert captions(film)[-1].endswith(f"`{gradient[0]:.4g}`, `{gradient[1]:.4g}`.")


def test_every_equation_passes_on_the_sum_of_what_has_come_to_it() -> None:
    def f(x: Any) -> Any:
        y = jnp.sin(x)
        return y * y + y * x
    program, moments, [gradient] = reverse_pass(f, (0.5,))
    arrived: dict[Any, float] = {}
    for moment in moments:
        [out] = moment.eqn.outvars
        assert arrived.get(out, 1.0) == pytest.approx(float(moment.had))
        for v, ct in moment.sent:
            arrived[v] = arrived.get(v, 0.0) + float(ct)
    assert [moment.eqn for moment in moments] == list(program.eqns[::-1])
    assert arrived[program.invars[0]] == pytest.approx(float(gradient))
    assert sum(" it is added: " in said for said in captions(widgets.reverse(f, 0.5))) == 3


# ---- prefix


def test_a_prefix_covers_what_flatten_up_to_finds() -> None:
    full = ({"w": jnp.zeros((3, 2)), "b": jnp.zeros(2)}, [1.0, None])
    film = widgets.prefix((0, [1, None]), full)
    parts = jax.tree.structure((0, [1, 2])).flatten_up_to(full)
    counts = [int(n) for said in captions(film)[2:-1] for n in re.findall(r"for (\d)", said)]
    assert counts == [len(jax.tree.leaves(part)) for part in parts] == [2, 1, 0]
    told = tree_util.broadcast_prefix((0, [1, None]), full, lambda x: x is None)
    assert captions(film)[-1].endswith(f"`{', '.join(map(repr, told))}`.")


def test_what_is_no_prefix_is_refused_with_the_words_of_tree_util() -> None:
    with pytest.raises(ValueError, match="different lengths of tuple"):
        widgets.prefix((0,), (1.0, 2.0))


# ---- kept


def test_a_row_is_filled_exactly_when_the_body_runs() -> None:
    ran = []

    def f(x: Any) -> Any:
        ran.append(x)
        return x * 2.0
    calls = (1.0, 2.0, jnp.zeros(3), jnp.float32(1.0), 3, jnp.ones(3))
    written = ["The body runs" in said for said in captions(widgets.kept(f, *calls))]
    assert written == [True, False, True, True, True, False]
    assert len(ran) == written.count(True)


def test_the_value_of_a_static_argument_decides() -> None:
    said = captions(widgets.kept(lambda x, n: x ** n, (2.0, 3), (3.0, 3), (2.0, 2),
                                 static_argnums=1))
    assert ["for `f32[] weak, n=3`" in one for one in said] == [True, True, False]
    assert ["The body runs" in one for one in said] == [True, False, True]


# ---- blocks


def test_each_rank_is_drawn_with_the_block_that_it_holds() -> None:
    mesh = ranks.mesh_of(2, 2)
    grid, layout, x = Grid.of(mesh), ((), ("j", "i")), np.zeros((3, 8))
    drawn = Held("x", core.get_aval(x), layout)
    for rank in range(4):
        place = ranks.place_of(x.shape, layout, grid, rank)
        assert drawn.part(grid, rank) == [(s.start / n, s.stop / n)
                                          for s, n in zip(place, x.shape, strict=True)]


def test_what_is_held_and_sent_is_that_of_the_plan() -> None:
    specs, args = (P(), P("i")), ({"a": np.ones((3, 5), "f")}, np.ones((8, 3), "f"))
    f = lambda w, x: (jax.tree.map(jnp.subtract, w, jax.grad(
        lambda w: jnp.sum(jnp.sin(x @ w["a"])))(w)), jnp.sort(x, 0))
    plan = planned(f, {"i": 4}, specs)(*args)
    said = captions(widgets.blocks(f, {"i": 4}, specs, *args))
    held = [sum(aval.size * 4 for aval in avals)
            for avals in (plan.jaxpr.in_avals, plan.jaxpr.out_avals)]
    assert said[0] == f"Each rank holds its block of `x`, and all of `w['a']`: {held[0]} bytes."
    assert said[-1].endswith(f"all of `result 0`, `result 1`: {held[1]} bytes.")
    assert [re.search(r": (\w+) of (\d+) bytes", one).groups() for one in said[1:-1]] == [
        (sent.kind, str(sent.bytes)) for sent in transfers(plan.jaxpr)] and len(said) == 4


# ---- checkpointing


def sines(size: int, n: int = 16) -> Any:
    def chain(n: int) -> Any:
        def f(x: Any) -> Any:
            for _ in range(n):
                x = jnp.sin(x)
            return x
        return f
    if not size:
        return chain(n)
    block = jax.checkpoint(chain(size))

    def f(x: Any) -> Any:
        for _ in range(n // size):
            x = block(x)
        return x
    return f


def sines_in(text: str) -> int:
    """How many a printed program computes, with those of the programs that it names."""
    named = dict(re.findall(r"^let (\w+) = (.*?) in$", text, re.M | re.S))

    def count(body: str) -> int:
        return body.count("= sin ") + sum(
            count(named[name]) for name in re.findall(r"jaxpr=(\w+)", body))
    return count(text.rpartition(" in\n")[2] if named else text)


@pytest.mark.parametrize("size", [0, 2, 4, 8, 16])
def test_a_chain_computes_as_many_sines_and_keeps_as_many_numbers_as_shown(size: int) -> None:
    shown = list(moments(16, size))
    x = jnp.float32(1.0)
    text = jax.jit(jax.value_and_grad(sines(size))).lower(x).as_text("simplified")
    assert sum(moment.does != "back" for moment in shown) == sines_in(text)
    _, program = linearize_flat(*at_point(sines(size), (x,), "vjp"))
    assert shown[15].held == len(program.closed.consts)
    assert shown[-1].held == 0
    assert max(moment.held for moment in shown) == (16 // size + size if size else 16)


def test_checkpointing_has_a_row_for_each_size_of_blocks() -> None:
    film = widgets.checkpointing(4)
    assert list(film.rows) == [("no checkpoints",), ("blocks of 2",), ("blocks of 4",)]
    assert film.rows["blocks of 2",][-1].caption == (
        "Done: 6 sines, and never more than 4 numbers at once.")


@pytest.mark.parametrize("f", [
    jax.grad(lambda x: jnp.sin(x) * x), jax.grad(jax.jit(lambda x: x * x)), jax.jit(jnp.cos),
    jax.vmap(jax.grad(lambda x: x * x), axis_size=2, in_axes=None),
    jax.jacfwd(jax.grad(lambda x: x * x * x))])
def test_step_draws_no_box_over_another(f: Any) -> None:
    for frame in step(f, 3.0).frames:
        boxes = re.findall(r'<rect x="([^"]+)" y="([^"]+)"[^>]*data-place', "".join(frame.parts))
        assert boxes and len(boxes) == len(set(boxes))


# ---- explain


def slopes(x: Any) -> Any:
    return jax.vmap(jax.grad(lambda x: x**3 + 2 * x))(x)


def test_explain_shows_six_stages_or_a_choice_of_them() -> None:
    shown = explain(slopes, jnp.ones(8))
    assert re.findall(r"^── (\w+):", repr(shown), re.MULTILINE) == [
        "lines", "jaxpr", "simplified", "source", "llvm", "asm"]
    assert shown.html.count("<pre") == 6
    shown = explain(jax.jit(slopes), jnp.ones(8), stages="source jaxpr")
    assert re.findall(r"^── (\w+):", repr(shown), re.MULTILINE) == ["source", "jaxpr"]


def parts_of(shown: Any) -> list[list[tuple[str, list[int], list[int]]]]:
    """By pane, each part that can be pointed at: its text, its equations, its statements."""
    data = re.search(r'<script type="application/json">(.*?)</script>', shown.html)
    assert data
    marks = json.loads(data[1])
    panes = re.findall(r"<pre.*?</pre>", shown.html, re.DOTALL)
    found = [re.findall(r'data-mark="(\d+)"[^>]*>(.*?)(?:</span>)?\n', pane) for pane in panes]
    return [[(re.sub("<.*?>", "", text), *marks[int(mark)]) for mark, text in pane]
            for pane in found]


def test_explain_marks_what_comes_from_the_same_equation_in_every_stage() -> None:
    panes = parts_of(explain(slopes, jnp.ones(1000)))
    texts = [[text for text, equations, _ in pane if 7 in equations] for pane in panes]
    assert all(texts)
    assert [len(pane) for pane in texts[:3]] == [1, 1, 1]
    assert texts[2] == ["c:f32[1000] = mul b 3.0:f32[]"]
    assert texts[3][-1] == "d[i] = 2.0 + t * t * 3.0"
    assert all(statements for pane in panes[3:] for _, _, statements in pane)


def test_explain_strikes_out_what_simplifying_drops() -> None:
    gone = re.findall(r"class=gone>(.*?)\n", explain(slopes, jnp.ones(8)).html)
    assert re.findall(r" = (\w+)", re.sub("<.*?>", "", "\n".join(gone))) == [
        "integer_pow", "mul", "mul", "add", "mul"]


def test_explain_counts_what_the_compiled_function_says_of_itself() -> None:
    x = jnp.ones((100, 30))
    shown = repr(explain(jax.nn.softmax, x, stages="")).split("── a call ──\n")[1]
    rows = {name.strip(): int(number.replace(",", ""))
            for name, number in re.findall(r"(.*?)  +([\d,]+)", shown)}
    compiled = jax.jit(jax.nn.softmax).lower(x).compile()
    memory = compiled.memory_analysis()
    assert rows == {**compiled.cost_analysis(), "bytes of arguments": x.nbytes,
                    "bytes of results": x.nbytes, "bytes in between": memory.temp_size_in_bytes}


def test_explain_is_found_beside_jit_and_loads_no_ipython() -> None:
    code = ("import sys; sys.modules['IPython'] = None\nimport minijax\n"
            "assert 'minijax.notebook' not in sys.modules\n"
            "print(minijax.explain(lambda x: x + 1.0, 2.0, stages='jaxpr'))")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "1 { lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }" in run.stdout


# ---- places


@pytest.mark.parametrize(("mode", "read", "write"), [
    ("not given", {}, {}), ("clip", {"mode": "clip"}, {"mode": "clip"}),
    ("fill, drop", {"mode": "fill"}, {"mode": "drop"})])
def test_an_index_lands_where_it_does_in_jax(mode: str, read: dict, write: dict) -> None:
    x = real_jax.numpy.arange(1.0, 6.0) * 10
    for i, said in zip(range(-8, 8), captions_of(widgets.places(), mode), strict=True):
        value = float(x.at[i].get(**read))
        written = np.flatnonzero(np.asarray(x.at[i].set(0.0, **write)) == 0)
        assert f"`x[{i}]`" in said and f" {value:g}. " in said
        assert ("nothing" in said) == (len(written) == 0)
        assert not len(written) or f"writes `x[{written[0]}]`" in said


def captions_of(film: Any, option: str) -> list[str]:
    return [frame.caption for frame in film.rows[option,]]


# ---- rounds


def test_the_rounds_back_end_at_the_gradient() -> None:
    xs = [0.5, -1.0, 2.0]

    def step(c: Any, x: Any) -> Any:
        return jnp.sin(c) * x + c

    def last(c: Any, xs: Any) -> Any:
        return jax.lax.scan(lambda c, x: (step(c, x), None), c, xs)[0]
    said = captions(widgets.rounds(step, 0.25, xs))
    of_carry, of_rows = jax.grad(last, (0, 1))(0.25, jnp.array(xs))
    assert said[3].startswith(f"The result is the last carry, {last(0.25, jnp.array(xs)):.4g}.")
    told = [float(re.findall(r"its row is ([-\d.e]+),", one)[0]) for one in said[:3:-1]]
    np.testing.assert_allclose(told, of_rows, rtol=2e-3)
    assert said[-1].endswith(f"of its carry {of_carry:.4g}.")


# ---- sectors, roof


@pytest.mark.parametrize("stride", [1, 2, 3, 8])
def test_a_stride_sends_the_sectors_that_the_emulator_sends(stride: int) -> None:
    [(_, [load, *_])] = accesses(lambda x: x[::stride] * 2, np.ones(32 * stride, np.float32))
    assert load.name.startswith("load")
    said = captions(widgets.sectors())[stride - 1]
    assert f"lie in {len(load.sectors())} sector" in said and f"{load.percent}%" in said


def test_the_edge_of_the_roof_is_where_both_limits_meet() -> None:
    said = captions(widgets.roof(50e9, 100e9, places=11))
    assert ["memory is the limit" in one for one in said] == [True] * 4 + [False] * 7
    assert "the edge" in said[4] and said[3].startswith("1 operations per byte: memory is the limit"
                                                        ". It allows 50 billion a second, 50%")


# ---- keys


@pytest.mark.parametrize(("way", "other", "count"), [
    ("split into 2", "split into 3", 0), ("fold_in, for 3", "fold_in, for 2", 2)])
def test_children_by_fold_in_stay_when_there_are_more(way: str, other: str, count: int) -> None:
    film = widgets.keys()
    first, second = (re.findall(r"words (.{17})\. It is", " ".join(captions_of(film, option)))
                     for option in (way, other))
    assert len(set(first) & set(second)) == count
    assert captions_of(film, way)[-1].startswith(f"{count} of these keys are among")
    number = float(jax.random.uniform(jax.random.fold_in(jax.random.key(0), 1)))
    assert f"the number {number:.3f}" in captions_of(film, "fold_in, for 2")[2]


# ---- simplifying, scopes


def test_simplifying_ends_at_the_program_that_is_compiled() -> None:
    def f(x: Any) -> Any:
        unread = jnp.cos(x)  # noqa: F841
        return jnp.sin(x * 2.0) + jax.jit(jnp.sin)(x * 2.0) * jnp.exp(0.0)
    film = widgets.simplifying(f, jnp.zeros(3))
    left = jax.jit(f).lower(jnp.zeros(3)).as_text("simplified").count(" = ")
    assert captions(film)[-2:] == ["Nothing that is left reads the result of `_ = cos a`.",
                                   f"Of 9 equations {left} are left."]
    last = film.drawing(film.frames[-1])
    assert all(f">{line}<" in last for line in ("b = mul a 2.0", "c = sin b", "i = add c h"))


def test_a_program_called_twice_is_named_anew_at_each_call() -> None:
    @jax.jit
    def g(x: Any) -> Any:
        return jnp.sin(x) * 2.0
    said = captions(widgets.simplifying(lambda x: g(g(x)), 1.0))
    assert [one.partition("`")[2].partition("`")[0] for one in said[:-1]] == [
        "b = g a", "c = sin a", "b = mul c 2.0", "d = g b", "e = sin b", "d = mul e 2.0"]


def test_a_line_drops_into_the_innermost_loop_of_its_operands() -> None:
    def element(b: Any, x: Any, y: Any, i: Any, j: Any) -> Any:
        row = b.exp(b.load(x, [i]))
        first = b.load(y, [b.index(3)])
        return b.add(b.mul(row, b.load(y, [j])), b.add(b.exp(b.load(x, [i])), first))
    said = [one.partition(", as far")[0].replace("is written in the loop over", "in")
            for one in captions(widgets.scopes(element, 10, 20))]
    assert said == [
        "`a = x[i]` in `i`", "`b = exp(a)` in `i`", "`c = y[3]` is written before all loops",
        "`d = y[j]` in `j`", "`e = b * d` in `j`", "`x[i]` has been written: it is `a`.",
        "`exp(a)` has been written: it is `b`.", "`f = b + c` in `i`", "`g = e + f` in `j`",
        "The element is stored in the innermost loop."]


# ---- barrier, scaling


@pytest.mark.parametrize(("option", "has_barrier"), [("in its place", True), ("left out", False)])
def test_threads_race_where_the_emulated_gpu_of_the_course_refuses(option: str, has_barrier: bool
                                                                   ) -> None:
    path = Path(__file__).parents[2] / "notebooks/mini/after_27.py"
    mini = SimpleNamespace(**runpy.run_path(str(path)))

    def kernel(block: int, k: int, shared: Any, out: Any) -> Any:
        shared[k] = k
        if has_barrier:
            yield
        out[k] = shared[63 - k]
    out = np.zeros(64)
    if has_barrier:
        mini.launch(kernel, 1, out=out)
        np.testing.assert_array_equal(out, np.arange(64)[::-1])
    else:
        with pytest.raises(mini.Refused, match="a race for shared"):
            mini.launch(kernel, 1, out=out)
    last = captions_of(widgets.barrier(), option)[-1]
    assert ("a race" in last) is not has_barrier


def test_a_larger_batch_scales_further() -> None:
    machine = Machine(flops=1e9)

    def plan(rows: int, ranks: int) -> Any:
        x = jax.ShapeDtypeStruct((rows, 64), "float32")
        return planned(lambda x: (x * x).sum(0), {"data": ranks}, P("data"))(x)
    said = captions(widgets.scaling(machine, plan, [1 << 12, 1 << 16]))
    seconds = [machine.cost(plan(1 << 12, 4**k).jaxpr).seconds for k in range(7)]
    assert said[0].startswith(f"A batch of 4,096: {4 ** int(np.argmin(seconds)):,} ranks are")
    most = [int(one.partition(": ")[2].partition(" ")[0].replace(",", "")) for one in said]
    assert most[0] < most[1]
