"""The exercises of chapter 14, *Out-of-bounds indexing*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import agree, exercise, expect, near, numbers, shown

CHAPTER = "14_out_of_bounds"


def quiet(f: Callable, *args: Any) -> bool:
    """Whether nothing is found where `f` runs, compiled, with the check turned on."""
    with jax.checking_sharp_bits(False, collect=True) as found, jax.debug_out_of_bounds(True):
        jax.jit(f)(*args)
    return not found


def grade_five_results(five_results: Any) -> None:
    expect(isinstance(five_results, (list, tuple)) and len(five_results) == 5,
           "a list of five numbers is wanted")
    one, two, three, four, five = five_results
    expect(near(one, 30.0), "the first is a read: it is moved to the nearest element")
    expect(near(two, 60.0), "the second is a sum after an update, and an update outside is left "
           "out")
    expect(not near(three, 30.0), "the third: take does not clip, unless it is told to")
    expect(np.isnan(np.asarray(three, float)), "the third is a value that is to be noticed")
    expect(not near(four, 30.0), "the fourth: is -3 outside of three elements?")
    expect(near(four, 10.0), "the fourth counts from the end: -1 is the last element")
    expect(near(five, 50.0), "the fifth is a whole window of two: where does it go, so that it "
           "fits?")


exercise(
    "five_results", chapter=CHAPTER, grade=grade_five_results,
    solution="""
[30.0, 60.0, float("nan"), 10.0, 50.0]
""",
    wrong=[
        ("[10.0, 60.0, float('nan'), 10.0, 50.0]", "moved to the nearest element"),
        ("[30.0, 65.0, float('nan'), 10.0, 50.0]", "left out"),
        ("[30.0, 60.0, 30.0, 10.0, 50.0]", "unless it is told to"),
        ("[30.0, 60.0, float('nan'), 30.0, 50.0]", "is -3 outside"),
        ("[30.0, 60.0, float('nan'), 10.0, 30.0]", "so that it fits"),
    ],
    hints=["each is one line of the tables above"])


def grade_neighbours(neighbours: Callable) -> None:
    random = np.random.default_rng(0)
    for values in ([1, 2, 4, 8], [7], [3, 5], *random.integers(1, 50, (3, 6)).tolist()):
        x = np.array(values, np.float32)
        left, right = np.append(0, x[:-1]), np.append(x[1:], 0)
        out = numbers(neighbours(jnp.asarray(x)))
        agree(f"x = {values}", out, left + right,
              (np.shape(out) != x.shape, "a sum for each of the elements is wanted"),
              (near(np.ravel(out)[:1], (right + x[-1])[:1]), "the first element takes the last one "
               "for its neighbour: an index of -1 counts from the end"),
              (near(out, np.append(x[0], x[:-1]) + right)
               or near(out, np.append(x[0], x[:-1]) + np.append(x[1:], x[-1])), "the ends are "
               "their own neighbours here: that is what moving an index inside does"),
              (np.isnan(np.asarray(out)).any(), "there is a nan: the fill value is yours to say"),
              "outside there are zeros")
    expect(quiet(neighbours, jnp.arange(4.0)), "right; but the check finds an index for which no "
           "mode is given")


exercise(
    "neighbours", chapter=CHAPTER, grade=grade_neighbours,
    solution="""
def neighbours(x):
    i = jnp.arange(x.size)
    options = dict(mode="fill", fill_value=0.0, wrap_negative_indices=False)
    return x.at[i - 1].get(**options) + x.at[i + 1].get(**options)
""",
    wrong=[
        ("def neighbours(x):\n    i = jnp.arange(x.size)\n    return x[jnp.maximum(i - 1, 0)] + "
         "x[i + 1]", "their own neighbours"),
        ("def neighbours(x):\n    return jnp.roll(x, 1) + jnp.roll(x, -1)", "counts from the end"),
        ("def neighbours(x):\n    i = jnp.arange(x.size)\n    return x.at[i - 1].get(mode='fill', "
         "wrap_negative_indices=False) + x.at[i + 1].get(mode='fill')", "yours to say"),
        ("def neighbours(x):\n    i = jnp.arange(x.size)\n    right = jnp.where(i + 1 < x.size, "
         "x[i + 1], 0.0)\n    return right + jnp.where(i > 0, x[i - 1], 0.0)",
         "no mode is given"),
    ],
    afterthought="`jnp.pad` and two slices do it, too, and need no mode",
    hints=["x.at[i].get takes mode, fill_value and wrap_negative_indices"])


def grade_votes(votes: Callable) -> None:
    def counted(ballots: np.ndarray) -> np.ndarray:
        return np.bincount(ballots, minlength=3)[:3]

    random, compiled = np.random.default_rng(0), jax.jit(lambda b: votes(b, 3))
    given = [np.array([0, 2, 2, 7, -1, 2, 1]), *random.integers(-5, 9, (4, 7))]
    for b in given:
        out, low, high = numbers(compiled(b)), b < 0, b > 2
        valid, from_end = b[~low & ~high], b[~high & (b >= -3)] % 3
        agree(f"the ballots {shown(b)} and 3 candidates", out, counted(valid),
              (np.shape(out) != (3,), "one count for each of the three candidates is wanted"),
              (near(out, counted(np.clip(np.where(low, b + 3, b), 0, 2))), "what is too large was "
               "moved inside, and what is negative counted from the end"),
              (near(out, counted(np.clip(b, 0, 2))), "those that are outside were moved inside"),
              (near(out, counted(from_end)), "candidate 2 has a vote too many: who is -1?"),
              (near(out, counted(np.maximum(b[~high], 0))), "candidate 0 has a vote too many: -1 "
               "was moved inside"),
              (near(out, np.minimum(counted(valid), 1)), "`set` writes, and does not count"),
              "count those from 0 to 2")
    expect(quiet(lambda b: votes(b, 3), jnp.asarray(given[0])),
           "right; but the check cannot know that the invalid votes are meant to be left out")


exercise(
    "votes", chapter=CHAPTER, grade=grade_votes,
    solution="""
def votes(ballots, candidates):
    counts = jnp.zeros(candidates, int)
    return counts.at[ballots].add(1, mode="drop", wrap_negative_indices=False)
""",
    wrong=[
        ("def votes(ballots, candidates):\n    return jnp.zeros(candidates, int).at[ballots].add("
         "1)", "who is -1"),
        ("def votes(ballots, candidates):\n    return jnp.zeros(candidates, int).at[ballots].add("
         "1, mode='clip', wrap_negative_indices=False)", "were moved inside"),
        ("def votes(ballots, candidates):\n    return jnp.zeros(candidates, int).at[ballots].add("
         "1, mode='clip')", "counted from the end"),
        ("def votes(ballots, candidates):\n    return jnp.zeros(candidates, int).at[ballots].set("
         "1, mode='drop', wrap_negative_indices=False)", "does not count"),
        ("def votes(ballots, candidates):\n    return jnp.bincount(ballots, length=candidates)",
         "candidate 0 has"),
        ("def votes(ballots, candidates):\n    return jnp.zeros(candidates, int).at[ballots].add("
         "1, wrap_negative_indices=False)", "cannot know"),
    ],
    hints=["what may be dropped is to be said; and so is what a negative index means"])


def grade_last_of(last_of: Callable) -> None:
    random, compiled = np.random.default_rng(0), jax.jit(last_of)
    for lengths in ([4, 1, 2], [4, 0, 2], *random.integers(0, 5, (4, 3)).tolist()):
        rows, n = random.integers(10, 99, (3, 4)).astype(np.float32), np.array(lengths)
        last = rows[np.arange(3), n - 1]
        out = numbers(compiled(rows, n))
        agree(f"the rows {shown(rows)} and the lengths {lengths}", out, np.where(n > 0, last, 0),
              (np.shape(out) != (3,), "one number for each row is wanted"),
              (near(out, rows[np.arange(3), np.minimum(n, 3)]), "a row of 1 has its last element "
               "at place 0"),
              (near(out, last), "of a row of no elements this is the element at -1, from the end"),
              "a row of no elements has no last one: there 0 is wanted")
    expect(quiet(last_of, rows, jnp.array([4, 0, 2])), "right; but the check finds an index "
           "outside: it does not know that you throw away what is read there")


exercise(
    "last_of", chapter=CHAPTER, grade=grade_last_of,
    solution="""
def last_of(rows, lengths):
    def one(row, n):
        return row.at[n - 1].get(mode="fill", fill_value=0.0, wrap_negative_indices=False)
    return jax.vmap(one)(rows, lengths)
""",
    wrong=[
        ("def last_of(rows, lengths):\n    return jax.vmap(lambda row, n: row[n])(rows, lengths)",
         "at place 0"),
        ("def last_of(rows, lengths):\n    return jax.vmap(lambda row, n: row[n - 1])(rows, "
         "lengths)", "from the end"),
        ("def last_of(rows, lengths):\n    return rows[jnp.arange(3), jnp.maximum(lengths - 1, 0)]",
         "has no last one"),
        ("def last_of(rows, lengths):\n    return jax.vmap(lambda row, n: jnp.where(n > 0, "
         "row[jnp.where(n > 0, n - 1, 9)], 0.0))(rows, lengths)", "throw away"),
    ],
    hints=["write it for one row, with jax.vmap around"])
