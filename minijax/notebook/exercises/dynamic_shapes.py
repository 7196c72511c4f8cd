"""The exercises of chapter 18, *Dynamic shapes*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import exercise, expect, near

CHAPTER = "18_dynamic_shapes"


def grade_mean_of_positive(mean_of_positive: Callable) -> None:
    x = jnp.array([1.0, -5.0, 3.0, 0.0, 5.0])
    out = jax.jit(mean_of_positive)(x)
    expect(jnp.shape(out) == (), "one number is wanted")
    expect(not near(out, 1.8), "the sum is right, and it was divided by 5: how many are positive?")
    expect(not near(out, 2.25), "0 is not positive, and was counted")
    expect(not near(out, 9.0), "that is the sum")
    expect(near(out, 3.0), "of (1, -5, 3, 0, 5) it is the mean of 1, 3 and 5")
    slopes = jax.grad(mean_of_positive)(x)
    expect(near(slopes, [1 / 3, 0.0, 1 / 3, 0.0, 1 / 3]), "right, but its gradient should be 1/3 "
           f"where x is positive and 0 elsewhere, also at 0, and is {np.round(slopes, 2)}")


exercise(
    "mean_of_positive", chapter=CHAPTER, grade=grade_mean_of_positive,
    solution="""
def mean_of_positive(x):
    positive = x > 0
    return jnp.sum(jnp.where(positive, x, 0.0)) / jnp.sum(positive)
""",
    wrong=[
        ("def mean_of_positive(x):\n    return jnp.mean(x[x > 0])",
         "NonConcreteBooleanIndexError"),
        ("def mean_of_positive(x):\n    return jnp.mean(jnp.where(x > 0, x, 0.0))",
         "divided by 5"),
        ("def mean_of_positive(x):\n    return jnp.sum(x, where=x > 0)", "that is the sum"),
        ("def mean_of_positive(x):\n    return jnp.mean(x, where=x >= 0)", "0 is not positive"),
        ("def mean_of_positive(x):\n    return jnp.maximum(x, 0).sum() / (x > 0).sum()",
         "also at 0"),
    ],
    hints=["how many are positive is a sum, too"])


def grade_count_different(count_different: Callable) -> None:
    compiled = jax.jit(count_different)
    out = compiled(jnp.array([3, 1, 3, 2, 1]))
    expect(jnp.shape(out) == (), "one number is wanted")
    expect(not near(out, 5), "that is how many there are; how many are different?")
    expect(not near(out, 2), "one is missing: the first is new as well")
    expect(near(out, 3), "(3, 1, 3, 2, 1) has three different ones")
    expect(near(compiled(jnp.array([4, 4, 4])), 1), "(4, 4, 4) has one")
    expect(near(compiled(jnp.array([0, 5, 0, -1])), 3), "(0, 5, 0, -1) has three: is any number "
           "treated as special?")
    many = jnp.array([n % 11 for n in range(40)])
    expect(near(compiled(many), 11), "wrong for the numbers 0 to 39, modulo 11")


exercise(
    "count_different", chapter=CHAPTER, grade=grade_count_different,
    solution="""
def count_different(x):
    x = jnp.sort(x)
    return 1 + jnp.sum(x[1:] != x[:-1])
""",
    wrong=[
        ("def count_different(x):\n    return jnp.unique(x).size", "ConcretizationTypeError"),
        ("def count_different(x):\n    return jnp.unique(x, size=x.size).size",
         "how many there are"),
        ("def count_different(x):\n    x = jnp.sort(x)\n    return jnp.sum(x[1:] != x[:-1])",
         "the first is new"),
        ("def count_different(x):\n"
         "    return jnp.sum(jnp.unique(x, size=x.size, fill_value=0) != 0)", "special"),
    ],
    hints=["after sorting, compare each with its neighbour: x[1:] and x[:-1]"])


def grade_first_few(first_few: Callable) -> None:
    x = jnp.array([5.0, 6.0, 7.0, 8.0, 9.0])
    mask = jnp.array([False, True, False, True, True])
    compiled = jax.jit(first_few, static_argnums=2)
    out = compiled(x, mask, 4)
    expect(jnp.shape(out) == (4,), "k elements are wanted, whatever the mask")
    expect(not near(out, [6.0, 8.0, 9.0, 5.0]), "the missing one was filled with place 0, and is "
           "x[0]")
    expect(not near(out, [6.0, 8.0, 9.0, 9.0]), "the missing one is the last element of x: -1 "
           "counts from the end, and a place beyond the end is moved inside, unless `mode` says "
           "what to do")
    expect(not near(out, [np.nan, 6.0, np.nan, 8.0]), "the ones that are not wanted should go, "
           "not leave a gap")
    expect(near(out, [6.0, 8.0, 9.0, np.nan]), "of (5, 6, 7, 8, 9), the second, fourth and fifth "
           "are wanted, and then nan")
    expect(near(compiled(x, mask, 2), [6.0, 8.0]), "right for k = 4, not for k = 2")


exercise(
    "first_few", chapter=CHAPTER, grade=grade_first_few,
    solution="""
def first_few(x, mask, k):
    places = jnp.nonzero(mask, size=k, fill_value=x.size)[0]
    return x.at[places].get(mode="fill", fill_value=jnp.nan)
""",
    wrong=[
        ("def first_few(x, mask, k):\n    return x[mask][:k]", "NonConcreteBooleanIndexError"),
        ("def first_few(x, mask, k):\n    return x[jnp.nonzero(mask, size=k)[0]]", "place 0"),
        ("def first_few(x, mask, k):\n"
         "    return x[jnp.nonzero(mask, size=k, fill_value=x.size)[0]]", "last element"),
        ("def first_few(x, mask, k):\n    return jnp.where(mask, x, jnp.nan)[:k]", "leave a gap"),
    ],
    hints=["`nonzero` with a size, filled with a place that does not exist"])


def grade_window(window: Callable) -> None:
    x = jnp.array([1.0, 2.0, 3.0, 4.0, 5.0])
    compiled = jax.jit(window)
    out = compiled(x, 1)
    expect(jnp.shape(out) == (3,), "three elements are wanted")
    expect(near(out, [2.0, 3.0, 4.0]), "from place 1 it should be (2, 3, 4)")
    out = compiled(x, 3)
    expect(not near(out, [3.0, 4.0, 5.0]), "the window was moved back until it fits; it should "
           "stay, and show a zero")
    expect(not near(out, [4.0, 5.0, 5.0]), "beyond the end the last element is repeated")
    expect(near(out, [4.0, 5.0, 0.0]), "from place 3 it should be (4, 5, 0)")
    expect(near(compiled(x, 4), [5.0, 0.0, 0.0]), "right from place 3, but not from place 4")


exercise(
    "window", chapter=CHAPTER, grade=grade_window,
    solution="""
def window(x, start):
    return x.at[start + jnp.arange(3)].get(mode="fill", fill_value=0.0)
""",
    wrong=[
        ("def window(x, start):\n    return x[start:start + 3]", "raised IndexError"),
        ("def window(x, start):\n    return lax.dynamic_slice_in_dim(x, start, 3)",
         "moved back"),
        ("def window(x, start):\n    return x[start + jnp.arange(3)]", "is repeated"),
        ("def window(x, start):\n"
         "    return lax.dynamic_slice_in_dim(jnp.append(x, 0.0), start, 3)", "from place 4"),
    ],
    hints=["which three places? They may lie beyond the end, if you say what stands there"])


def grade_largest(largest: Callable) -> None:
    real, asked = largest.__globals__.get("masked_max"), []

    def listening(x: Any, n: Any) -> Any:
        asked.append(np.shape(x))
        return real(x, n)  # type: ignore[misc]

    largest.__globals__["masked_max"] = listening
    try:
        for n in range(1, 65):
            values = -1.0 - np.arange(n, dtype=np.float32)
            out = largest(values)
            expect(near(out, -1.0), f"the largest of {n} numbers, from -1 down, is -1, and not "
                   f"{np.asarray(out):.1f}: how many of them count?")
            expect(asked and len(asked[-1]) == 1, "let `masked_max` do the work, on a vector")
            expect(asked[-1][0] <= 2 * n, f"{n} numbers became {asked[-1][0]}, more than twice "
                   "as many")
    finally:
        largest.__globals__["masked_max"] = real
    count = len(set(asked))
    expect(count <= 7, f"right, but {count} different shapes, and as many programs: pad to few "
           "sizes")


exercise(
    "largest", chapter=CHAPTER, grade=grade_largest,
    given="""
@jax.jit
def masked_max(x, n):
    return jnp.max(jnp.where(jnp.arange(x.size) < n, x, -jnp.inf))
""",
    solution="""
def largest(values):
    n = len(values)
    size = 1 << (n - 1).bit_length()
    return masked_max(np.pad(values, (0, size - n)), n)
""",
    wrong=[
        ("def largest(values):\n    return masked_max(values, len(values))", "pad to few sizes"),
        ("def largest(values):\n    n = len(values)\n"
         "    return masked_max(np.pad(values, (0, 64 - n)), n)", "more than twice"),
        ("def largest(values):\n    size = 1 << (len(values) - 1).bit_length()\n"
         "    padded = np.pad(values, (0, size - len(values)))\n"
         "    return masked_max(padded, size)", "how many of them count"),
        ("def largest(values):\n    return np.max(values)", "do the work"),
    ],
    afterthought="after this, all lengths up to 64 are compiled",
    hints=["the next power of two: 1 << (n - 1).bit_length()"])
