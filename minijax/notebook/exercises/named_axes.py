"""The exercises of chapter 11, *Named axes and many devices*."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import exercise, expect, near

CHAPTER = "11_named_axes"


def _agrees(found: Any, wanted: Any, given: str) -> None:
    expect(near(found, wanted), f"for {given} the answer is {np.asarray(wanted).tolist()}, "
           f"and yours is {np.asarray(found).tolist()}")


def _batches() -> list[list[float]]:
    random = np.random.default_rng(0)
    return [[1.0, 2.0, 5.0], *(random.integers(-9, 9, n).astype(float).tolist() for n in (1, 4, 6))]


def _primitives(f: Callable, x: Any, name: str) -> set[str]:
    """The collectives in a function of one example, as it is before any `vmap`."""
    seen: set[str] = set()

    def look(x: Any) -> Any:
        def names(jaxpr: Any) -> None:
            for eqn in jaxpr.eqns:
                seen.add(eqn.primitive.name)
                for value in eqn.params.values():
                    if hasattr(value, "eqns"):
                        names(value)
        names(jax.make_jaxpr(f)(x).jaxpr)
        return x
    jax.vmap(look, axis_name=name)(x)
    return seen


# ── 1. times_the_sum ─────────────────────────────────────────────────────────────────────────

def grade_times_the_sum(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 3,
           "three numbers, one for each example")
    expect(not near(answer, [1.0, 4.0, 9.0]), "that is each number times itself; the sum is over "
           "all examples")
    expect(not near(answer, [1.0, 3.0, 6.0]) and not near(answer, [1.0, 6.0, 18.0]),
           "each example gets the whole sum, not the sum so far")
    expect(near(answer, [6.0, 12.0, 18.0]), "what is the sum of all three, and what is each times "
           "that?")


exercise("times_the_sum", chapter=CHAPTER, grade=grade_times_the_sum, solution="[6.0, 12.0, 18.0]",
         wrong=[("[1.0, 4.0, 9.0]", "times itself"), ("[1.0, 6.0, 18.0]", "not the sum so far"),
                ("36.0", "three numbers"), ("[6.0, 6.0, 6.0]", "each times that")])


# ── 2. pmean ─────────────────────────────────────────────────────────────────────────────────

def grade_pmean(pmean: Callable) -> None:
    from minijax.notebook.library import library
    mini = library.module
    for xs in _batches():
        found = mini.vmap(lambda x: x - pmean(x, "i"), axis_name="i")(np.array(xs))
        _agrees(found, np.array(xs) - np.mean(xs), f"x - pmean(x) and {xs}")
    found = mini.vmap(lambda x: mini.vmap(lambda y: pmean(x * y, "out"))(np.array([1.0, 2.0])),
                      axis_name="out")(np.array([1.0, 3.0, 8.0]))
    _agrees(found, [[4.0, 8.0]] * 3, "the outer one of two axes, and [1, 3, 8] times [1, 2],")
    slope = mini.grad(lambda xs: mini.sum(mini.vmap(
        lambda x: x * pmean(x, "i"), axis_name="i")(xs)))(np.array([1.0, 2.0, 5.0]))
    _agrees(slope, np.full(3, 16 / 3), "the gradient of the sum of x * pmean(x) at [1, 2, 5]")


_MINI = """
from minijax.notebook.library import library
library.begin("11")
from mini import axis_index, psum, sum
"""

exercise(
    "pmean", chapter=CHAPTER, grade=grade_pmean, given=_MINI,
    solution="def pmean(x, axis_name):\n    return psum(x, axis_name) / psum(1.0, axis_name)",
    wrong=[("def pmean(x, axis_name):\n    return psum(x, axis_name)", "the answer is"),
           ("def pmean(x, axis_name):\n    return psum(x, axis_name) / psum(x, axis_name)",
            "the answer is"),
           ("def pmean(x, axis_name):\n    return psum(x, 'i') / psum(1.0, 'i')",
            "unbound axis name"),
           ("def pmean(x, axis_name):\n    return psum(x, axis_name) / len(x)",
            "your answer raised")])


# ── 3. numbers_sent ──────────────────────────────────────────────────────────────────────────

def grade_numbers_sent(answer: Any) -> None:
    expect(isinstance(answer, int), "a whole number")
    expect(answer != 2048, "the vector has a gradient, too")
    expect(answer not in (1000 * 2080, 8000 * 2080), "a device adds up its own examples before it "
           "sends anything")
    expect(answer != 8 * 2080, "that is what all of them send together")
    expect(answer not in (1000, 8000, 64000), "it is not the examples that are sent")
    expect(answer == 64 * 32 + 32, "the gradient has one number for each parameter: how many are "
           "there?")


exercise("numbers_sent", chapter=CHAPTER, grade=grade_numbers_sent, solution="2080",
         wrong=[("2048", "the vector"), ("2_080_000", "adds up its own"),
                ("1000", "not the examples"),
                ("16640", "all of them"), ("96", "how many are")])


# ── 4. standardised ──────────────────────────────────────────────────────────────────────────

def grade_standardised(f: Callable) -> None:
    for xs in ([1.0, 2.0, 5.0], [0.0, 10.0], [3.0, -1.0, 4.0, 1.0, -5.0]):
        wanted = (np.array(xs) - np.mean(xs)) / np.std(xs)
        found = jax.vmap(f, axis_name="batch")(jnp.array(xs))
        expect(np.shape(found) == (len(xs),), f"for each example one number: {len(xs)} in all, "
               f"not the shape {np.shape(found)}")
        _agrees(found, wanted.round(5), f"{xs}")


_STANDARDISED = """
def standardised(x):
    far = x - lax.{mean}(x, "batch")
    return {out}
"""


def _standard_text(mean: str = "pmean", out: str = 'far / jnp.sqrt(lax.pmean(far ** 2, "batch"))'
                   ) -> str:
    return _STANDARDISED.format(mean=mean, out=out)


exercise(
    "standardised", chapter=CHAPTER, grade=grade_standardised, solution=_standard_text(),
    wrong=[(_standard_text(mean="psum"), "the answer is"),
           (_standard_text(out='far / lax.pmean(far ** 2, "batch")'), "the answer is"),
           (_standard_text(out='far / jnp.sqrt(lax.psum(far ** 2, "batch"))'), "the answer is"),
           ("def standardised(x):\n    return (x - jnp.mean(x)) / (jnp.std(x) + 1.0)",
            "the answer is"),
           (_standard_text(out='far / jnp.sqrt(lax.pmean(far ** 2, "i"))'), "unbound axis name")])


# ── 5. from_example ──────────────────────────────────────────────────────────────────────────

def grade_from_example(f: Callable) -> None:
    for xs in _batches():
        for k in range(len(xs)):
            found = jax.vmap(lambda x, k=k: f(x, k), axis_name="i")(jnp.array(xs))
            _agrees(found, [xs[k]] * len(xs), f"{xs} and k = {k}")
    names = _primitives(lambda x: f(x, 0), jnp.arange(3.0), "i")
    expect("psum" in names, "use `lax.psum`")


_FROM = """
def from_example(x, k):
    return lax.{collective}(jnp.where({test}, x, {other}), "i")
"""


def _from_text(collective: str = "psum", test: str = 'lax.axis_index("i") == k',
               other: str = "0") -> str:
    return _FROM.format(collective=collective, test=test, other=other)


exercise(
    "from_example", chapter=CHAPTER, grade=grade_from_example, solution=_from_text(),
    wrong=[(_from_text(other="x"), "the answer is"),
           (_from_text(collective="pmean"), "the answer is"),
           (_from_text(collective="pmax"), "the answer is"),
           (_from_text(test="x == k"), "the answer is"),
           ('def from_example(x, k):\n    return lax.all_gather(x, "i")[k]', "use `lax.psum`")])


# ── 6. place ─────────────────────────────────────────────────────────────────────────────────

def grade_place(place: Callable) -> None:
    for xs in (*_batches(), [2.0, 2.0, 1.0]):
        found = jax.vmap(place, axis_name="i")(jnp.array(xs))
        expect(np.shape(found) == (len(xs),), f"for each example one number: {len(xs)} in all, "
               f"not the shape {np.shape(found)}")
        _agrees(found, [sum(y < x for y in xs) for x in xs], f"{xs}")


exercise(
    "place", chapter=CHAPTER, grade=grade_place,
    solution='def place(x):\n    return jnp.sum(lax.all_gather(x, "i") < x)',
    wrong=[('def place(x):\n    return jnp.sum(lax.all_gather(x, "i") <= x)', "the answer is"),
           ('def place(x):\n    return lax.all_gather(x, "i") < x', "not the shape"),
           ('def place(x):\n    return lax.axis_index("i")', "the answer is"),
           ('def place(x):\n    return jnp.sum(lax.all_gather(x, "i") > x)', "the answer is")])


# ── 7. parallel_gradient ─────────────────────────────────────────────────────────────────────

def grade_parallel_gradient(parallel_gradient: Callable) -> None:
    def loss(w: Any, xs: Any) -> Any:
        return jnp.mean(jnp.sin(xs @ w) ** 2)

    random = np.random.default_rng(0)
    for devices, examples in ((3, 5), (1, 4), (4, 2)):
        w = jnp.asarray(random.normal(size=2).round(2))
        xs = jnp.asarray(random.normal(size=(devices, examples, 2)).round(2))
        found = parallel_gradient(loss)(w, xs)
        wanted = jax.grad(loss)(w, xs.reshape(-1, 2))
        expect(np.shape(found) == (2,), "the gradient has the shape of w, (2,), and yours "
               f"{np.shape(found)}")
        _agrees(found, wanted, f"{devices} devices with {examples} examples each,")


_PARALLEL = """
def parallel_gradient(loss):
    def one(w, xs):
        return {inside}
    return jax.vmap(one, in_axes={axes}, out_axes={out}, axis_name="devices")
"""


def _parallel_text(inside: str = 'lax.pmean(jax.grad(loss)(w, xs), "devices")',
                   axes: str = "(None, 0)", out: str = "None") -> str:
    return _PARALLEL.format(inside=inside, axes=axes, out=out)


exercise(
    "parallel_gradient", chapter=CHAPTER, grade=grade_parallel_gradient, solution=_parallel_text(),
    wrong=[(_parallel_text(inside='lax.psum(jax.grad(loss)(w, xs), "devices")'), "the answer is"),
           (_parallel_text(out="0"), "the shape of w"),
           (_parallel_text(inside="jax.grad(loss)(w, xs)"), "your answer raised"),
           (_parallel_text(axes="0"), "your answer raised")])


# ── 8. ring_sum ──────────────────────────────────────────────────────────────────────────────

def grade_ring_sum(ring_sum: Callable) -> None:
    for xs in _batches():
        of_all = functools.partial(ring_sum, count=len(xs))
        found = jax.vmap(of_all, axis_name="i")(jnp.array(xs))
        expect(np.shape(found) == (len(xs),), f"for each example one number: {len(xs)} in all, "
               f"not the shape {np.shape(found)}")
        _agrees(found, [np.sum(xs)] * len(xs), f"{xs}")
    names = _primitives(lambda x: ring_sum(x, 3), jnp.arange(3.0), "i")
    expect("psum" not in names, "no `psum` here: each device speaks only to the next")


_RING = """
def ring_sum(x, count):
    ring = [(k, {to}) for k in range(count)]
    total = {start}
    for _ in range({rounds}):
        x = lax.ppermute({sent}, "i", ring)
        total = total + x
    return total
"""


def _ring_text(to: str = "(k + 1) % count", start: str = "x", rounds: str = "count - 1",
               sent: str = "x") -> str:
    return _RING.format(to=to, start=start, rounds=rounds, sent=sent)


exercise(
    "ring_sum", chapter=CHAPTER, grade=grade_ring_sum, solution=_ring_text(),
    wrong=[(_ring_text(rounds="count"), "the answer is"),
           (_ring_text(sent="total"), "the answer is"),
           (_ring_text(to="k + 1"), "your answer raised"),
           (_ring_text(rounds="1"), "the answer is"),
           ('def ring_sum(x, count):\n    return lax.psum(x, "i")', "no `psum` here")])
