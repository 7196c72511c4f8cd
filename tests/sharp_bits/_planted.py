"""Programs with a fault planted in one line, nested in transformations drawn at random."""

from __future__ import annotations

import linecache
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import minijax as jax
from minijax import lax, numpy as jnp

# Each is good for numbers in [1, 2], and a nan at 0; the last one only in its backward pass.
FAULTS = (
    "v * 0.0 / v",
    "jnp.log(v - 0.5)",
    "jnp.sqrt(v - 0.5)",
    "jnp.arcsin(1.5 - v)",
    "jnp.power(v - 0.5, 0.5)",
    "jnp.exp(300.0 * (1.0 - v)) * (v * 0.0)",
    "jnp.arccosh(v + 0.5)",
    "jnp.where(v > 0.5, jnp.sqrt(v), v)")
BACKWARD = len(FAULTS) - 1
DECOY = "jnp.where(v > 9.0, jnp.log(v - 9.0), 1.0)"  # a nan that is not chosen

# What a level adds: its source, whether it takes an axis of the data away, and which kind of
# step an error has to name for it.  `{f}` is the function within.
LEVELS = {
    "jit": ("    return jax.jit({f})(x)\n", False, None),
    "grad": ("    value, slope = jax.value_and_grad({f})(x)\n"
             "    return value + jnp.sum(slope)\n", False, None),
    "checkpoint": ("    return jax.checkpoint({f})(x)\n", False, None),
    "cond": ("    def other(x):\n"
             "        return jnp.sum(jnp.log(-1.0 - x))\n"
             "    return lax.cond(jnp.sum(x) > -1.0, {f}, other, x)\n", False, None),
    "switch": ("    return lax.switch(1, [lambda x: 0.0, {f}, lambda x: 1.0], x)\n", False, None),
    "vmap": ("    return jnp.sum(jax.vmap({f})(x))\n", True, "vmap"),
    "scan": ("    def body(total, row):\n"
             "        y = {f}(row)\n"
             "        return total + y, y\n"
             "    return lax.scan(body, 0.0, x)[0]\n", True, "scan"),
    "map": ("    return jnp.sum(lax.map({f}, x))\n", True, "scan"),
    "fori": ("    return lax.fori_loop(0, x.shape[0], lambda i, s: s + {f}(x[i]), 0.0)\n",
             True, "scan"),
    "while": ("    def step(state):\n"
              "        i, total = state\n"
              "        return i + 1, total + {f}(x[i])\n"
              "    return lax.while_loop(lambda s: s[0] < x.shape[0], step, (0, 0.0))[1]\n",
              True, "while_loop"),
}


@dataclass
class Planted:
    """A program, its input, and what a report of its fault has to say."""

    name: str
    run: Any
    x: Any
    line: int
    steps: list[tuple[str, int]] = field(default_factory=list)
    has_grad: bool = False


def planted(seed: int) -> Planted:
    """The program of a seed."""
    draw = random.Random(seed)
    levels = [draw.choice(list(LEVELS)) for _ in range(draw.randint(1, 4))]  # the outermost first
    for i, level in enumerate(levels):
        if level == "while" and "grad" in levels[:i]:
            levels[i] = "scan"  # a while loop has no backward pass
    if draw.random() < 0.5:
        levels.insert(0, "jit")
    fault = draw.randrange(len(FAULTS) if "grad" in levels else BACKWARD)
    if fault == BACKWARD:
        levels = [level for i, level in enumerate(levels) if level != "grad"
                  or i == levels.index("grad")]
    source, line = _source(levels, FAULTS[fault], levels[0] == "jit" and draw.random() < 0.7)
    name = f"planted_{seed}.py"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names: dict[str, Any] = {"jax": jax, "jnp": jnp, "lax": lax}
    exec(compile(source, name, "exec"), names)
    x, steps = _data(levels, draw)
    return Planted(name, names["program"], jnp.asarray(x), line, steps, "grad" in levels)


def _source(levels: list[str], fault: str, has_decoy: bool) -> tuple[str, int]:
    """The text of a program, and the line in it of the fault."""
    source = "def f0(v):\n    a = jnp.sin(v) + 2.0\n"
    if has_decoy:
        source += f"    a = a * {DECOY}\n"
    source += f"    b = {fault}\n"
    line = source.count("\n")
    source += "    c = a * b\n    return c + jnp.cos(v)\n\n\n"
    for n, level in enumerate(reversed(levels)):
        source += f"def f{n + 1}(x):\n" + LEVELS[level][0].format(f=f"f{n}") + "\n\n"
    return source + f"program = f{len(levels)}\n", line


def _data(levels: list[str], draw: random.Random) -> tuple[np.ndarray, list[tuple[str, int]]]:
    """Good numbers but for one 0, and the steps that lead to it, the outermost first."""
    kinds = [kind for level in levels if (kind := LEVELS[level][2]) is not None]
    shape = [draw.randint(2, 4) for _ in kinds]
    place = tuple(draw.randrange(size) for size in shape)
    x = np.random.default_rng(draw.randrange(1000)).uniform(1, 2, shape).astype(np.float32)
    x[place] = 0.0
    return x, list(zip(kinds, place, strict=True))
