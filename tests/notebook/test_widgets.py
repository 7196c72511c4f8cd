"""The widgets of the course: what they show is what happens."""

import re
from typing import Any

import minijax as jax
import minijax.numpy as jnp
from minijax.interpreters.jvp import JVPTrace
from minijax.notebook import step, watch, widgets
from minijax.notebook.widgets.confusion import observed


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
