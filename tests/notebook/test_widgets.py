"""The widgets of the course: what they show is what happens."""

import re
from typing import Any

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook import step, watch


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
