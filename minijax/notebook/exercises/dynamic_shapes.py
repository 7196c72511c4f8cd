"""The exercises of chapter 18, *Dynamic shapes*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
from minijax.notebook.checks import agree, exercise, expect, near, numbers, shown

CHAPTER = "18_dynamic_shapes"


def grade_mean_of_positive(mean_of_positive: Callable) -> None:
    compiled, random = jax.jit(mean_of_positive), np.random.default_rng(0)
    given = [[1, -5, 3, 0, 5], *random.integers(-5, 6, (5, 5)).tolist()]
    for values in given:
        x = np.array(values, np.float32)
        if not (x > 0).any():
            continue
        total, count = x[x > 0].sum(), (x > 0).sum()
        out = numbers(compiled(x))
        agree(f"x = {values}", out, total / count,
              (np.shape(out) != (), "one number is wanted"),
              (near(out, total / 5), "the sum is right, and it was divided by 5: how many are "
               "positive?"),
              (near(out, total), "that is the sum"),
              (near(out, total / (x >= 0).sum()), "0 is not positive, and was counted"),
              "take the sum of the positive ones, and divide by how many there are")
        agree(f"x = {values}", jax.grad(mean_of_positive)(x), np.where(x > 0, 1 / count, 0),
              "the mean is right, but its gradient should be 0 where x is not positive, also at 0",
              what="the gradient")


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
    compiled, random = jax.jit(count_different), np.random.default_rng(0)
    given = [[3, 1, 3, 2, 1], [4, 4, 4, 4, 4], [0, 5, 0, -1, 2],
             *random.integers(-2, 4, (8, 5)).tolist(), [n % 11 for n in range(40)]]
    for values in given:
        out, wanted = numbers(compiled(np.array(values, np.int32))), len(set(values))
        agree(f"x = {values}", out, wanted,
              (np.shape(out) != (), "one number is wanted"),
              (near(out, wanted - 1) and 0 in values, "is any number treated as special?"),
              (near(out, wanted - 1), "one is missing: the first is new as well"),
              (near(out, len(values)), "that is how many there are; how many are different?"),
              "sort, and count where something new begins")


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
    compiled, random = jax.jit(first_few, static_argnums=2), np.random.default_rng(0)
    x = np.array([5, 6, 7, 8, 9], np.float32)
    masks = [[False, True, False, True, True], *(random.random((5, 5)) < 0.5).tolist()]
    for k in (4, 2):
        for mask in masks:
            m = np.array(mask)
            wanted = np.append(x[m], np.full(k, np.nan))[:k]
            out = numbers(compiled(x, m, k))
            filled = [np.where(np.isnan(wanted), value, wanted) for value in (x[0], x[-1])]
            agree(f"x = {shown(x)}, k = {k} and the mask {shown(m.astype(int))}", out, wanted,
                  (np.shape(out) != (k,), "k elements are wanted, whatever the mask"),
                  (near(out, filled[0]), "the missing ones were filled with place 0, and are "
                   "x[0]"),
                  (near(out, filled[1]), "the missing ones are the last element of x: -1 counts "
                   "from the end, and a place beyond the end is moved inside, unless `mode` says "
                   "what to do"),
                  (near(out, np.where(m, x, np.nan)[:k]), "the ones that are not wanted should "
                   "go, not leave a gap"),
                  "first those where the mask is true, in their order, and then nan")


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
    compiled = jax.jit(window)
    x = np.array([1, 2, 3, 4, 5], np.float32)
    for start in (1, 3, 0, 2, 4, 5, 9):
        wanted = np.append(x, np.zeros(12))[start:start + 3]
        out, moved = numbers(compiled(x, start)), x[min(start, 2):min(start, 2) + 3]
        agree(f"x = {shown(x)} and start = {start}", out, wanted,
              (np.shape(out) != (3,), "three elements are wanted"),
              (near(out, moved), "the window was moved back until it fits; it should stay, and "
               "show zeros"),
              (near(out, x[np.minimum(start + np.arange(3), 4)]), "beyond the end the last element "
               "is repeated"),
              (start > 3, "right from place 3, but not further on"),
              "beyond the end there are zeros")


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
         "    return lax.dynamic_slice_in_dim(jnp.append(x, 0.0), start, 3)", "not further on"),
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
            agree(f"the {n} numbers from -1 down to {-n}", out, -1.0,
                  "how many of the numbers in the array count?")
            expect(asked and len(asked[-1]) == 1, "let `masked_max` do the work, on a vector")
            expect(asked[-1][0] <= 2 * n, f"of length {n} it became {asked[-1][0]}, more than "
                   "twice as long")
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
         "    return masked_max(padded, size)", "how many of the numbers"),
        ("def largest(values):\n    return np.max(values)", "do the work"),
    ],
    afterthought="after this, all lengths up to 64 are compiled",
    hints=["the next power of two: 1 << (n - 1).bit_length()"])
