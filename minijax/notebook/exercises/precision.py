"""The exercises of chapter 20, *Precision, and where NumPy differs*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import agree, exercise, expect, near, numbers, shown

CHAPTER = "20_precision"

LINES = ("jnp.int32(2**31 - 1) + 1 > 0", "jnp.float32(2**24) + 1 > 2**24",
         "jnp.array([300.0]).astype('uint8')[0] == 44", "jnp.int32(7) // 0 == 0",
         "(jnp.float32(1) * np.float64(2)).dtype == 'float32'")


def grade_foreseen(foreseen: Any) -> None:
    expect(isinstance(foreseen, list | tuple) and len(foreseen) == 5,
           "a list of five truth values is wanted, one for each line")
    why = ["an int32 goes round at its end", "above 2**24 the float32s are two apart",
           "a cast from float to integer stops at the end of the range; it does not go round",
           "NumPy gives 0 there, and this is not NumPy",
           "nothing has 64 bits here unless the flag is on"]
    right = [False, False, False, False, True]
    for line, answer, wanted, hint in zip(LINES, foreseen, right, why, strict=True):
        expect(bool(answer) == wanted, f"{line}: {hint}")


exercise(
    "foreseen", chapter=CHAPTER, grade=grade_foreseen,
    solution="[False, False, False, False, True]",
    wrong=[
        ("[True, False, False, False, True]", "goes round"),
        ("[False, True, False, False, True]", "two apart"),
        ("[False, False, True, False, True]", "stops at the end"),
        ("[False, False, False, True, True]", "not NumPy"),
        ("[False, False, False, False, False]", "64 bits"),
        ("[False]", "five truth values"),
    ],
    hints=["the ruler answers the second line, the section on casts the third"])


def grade_elapsed(elapsed: Callable) -> None:
    random = np.random.default_rng(0)
    given = [1.7e9 + np.array([0.0, 0.25, 1.0, 60.5, 3600.125])]
    given += [start + np.cumsum(random.integers(0, 40, 5) / 8) for start in (1.7e9, 5e8, 1e6, 0.0)]
    for stamps in given:
        out: Any = elapsed(stamps)
        wanted = stamps - stamps[0]
        expect(isinstance(out, jax.Array), f"for stamps = {stamps.tolist()} yours is of "
               f"type {type(out).__name__}\nreturn an array of ours, not NumPy's")
        expect(out.dtype == jnp.float32, f"a float32 is wanted, and this is {out.dtype}")
        agree(f"stamps = {stamps.tolist()}", out, wanted,
              (near(out, stamps), "seconds since the *first* stamp are wanted"),
              (near(out, stamps.astype(np.float32) - np.float32(stamps[0])), "when the subtraction "
               "was done, the digits were gone"),
              "subtract the first stamp, which is not always 1.7e9", tolerance=1e-6)


exercise(
    "elapsed", chapter=CHAPTER, grade=grade_elapsed,
    solution="""
def elapsed(stamps):
    return jnp.asarray(stamps - stamps[0])
""",
    wrong=[
        ("def elapsed(stamps):\n    stamps = jnp.asarray(stamps)\n    return stamps - stamps[0]",
         "digits were gone"),
        ("def elapsed(stamps):\n    return stamps - stamps[0]", "an array of ours"),
        ("def elapsed(stamps):\n    return jnp.asarray(stamps)", "since the *first*"),
        ("def elapsed(stamps):\n    return jnp.asarray(stamps - 1.7e9)", "not always"),
    ],
    hints=["what is done in NumPy is done with 64 bits"])


def grade_middle(middle: Callable) -> None:
    random, ends = np.random.default_rng(0), [-2**31, 2**31 - 1, 2**31 - 3, 2**30 + 1, 0, -1]
    small = [(a, b) for a in range(-3, 4) for b in range(-3, 4)]
    same, far = [(n, n) for n in ends], [(a, b) for a in ends for b in ends]
    for pairs in (small, same, far, random.integers(-2**31, 2**31, (40, 2)).tolist()):
        x, y = np.array(pairs, np.int32).T
        out: Any = numbers(middle(jnp.asarray(x), jnp.asarray(y)))
        expect(getattr(out, "dtype", None) == jnp.int32, f"for x = {pairs[0][0]} and y = "
               f"{pairs[0][1]} yours is {shown(np.ravel(out)[0])}, of dtype "
               f"{getattr(out, 'dtype', None)}\nthe result should be an int32")
        wanted, found = (x.astype(np.int64) + y) // 2, np.asarray(out)
        for k in np.flatnonzero(found != wanted)[:1]:
            agree(f"x = {x[k]} and y = {y[k]}", found[k], wanted[k],
                  (pairs is small, "round down, and see to what a halving loses"),
                  (pairs is same, "something on the way does not fit into 32 bits, or into a "
                   "float"),
                  "does their sum fit into 32 bits? Does their difference?", tolerance=0)


exercise(
    "middle", chapter=CHAPTER, grade=grade_middle,
    solution="""
def middle(x, y):
    return x // 2 + y // 2 + (x % 2 + y % 2) // 2
""",
    wrong=[
        ("def middle(x, y):\n    return (x + y) // 2", "32 bits"),
        ("def middle(x, y):\n    return x + (y - x) // 2", "Does their difference"),
        ("def middle(x, y):\n    return jnp.floor(x / 2 + y / 2).astype(jnp.int32)", "a float"),
        ("def middle(x, y):\n    return x // 2 + y // 2", "a halving loses"),
        ("def middle(x, y):\n    return (x + y) / 2", "should be an int32"),
    ],
    hints=["halve first, then add; and see to the two halves that are lost",
           "`%` gives what a halving has lost: 0 or 1"])


def grade_to_bytes(to_bytes: Callable) -> None:
    greys = [0.0, 1.0, 0.5, 0.999, *(np.arange(256) / 255).tolist(), 0.3, 0.0019, 0.002]
    inside = np.array(greys, np.float32)
    for x in (inside, np.array([-0.3, 1.7, -5.0, 300.0, 1.001, np.inf, -np.inf], np.float32),
              np.array([np.nan], np.float32)):
        out: Any = numbers(to_bytes(jnp.asarray(x)))
        expect(getattr(out, "dtype", None) == jnp.uint8, f"for x = {shown(x[:3])} the dtype is "
               f"{getattr(out, 'dtype', None)}\nthe result should be a uint8")
        # half a byte up and half a byte down are both right
        wanted = np.clip(np.nan_to_num(x, nan=0.0), 0, 1) * 255.0
        found = np.asarray(out).astype(float)
        for k in np.flatnonzero(np.abs(found - wanted) > 0.5 + 1e-4)[:1]:
            agree(f"x = {x[k]:.4g}", found[k], np.round(wanted[k]),
                  (x[k] == 1, "1.0 should become 255: multiply first"),
                  (np.isnan(x[k]), "a nan should be black, 0"),
                  (x is not inside, "below 0 is black, above 1 white"),
                  f"x times 255 is {wanted[k]:.1f}: what is the nearest byte?")
    with jax.checking_sharp_bits(False, collect=True) as findings, jax.config.debug_unsafe_casts():
        to_bytes(jnp.array([-0.3, 1.7, jnp.nan]))
    expect(not findings, "right, but it leaves to the cast what does not fit; a GPU may do it "
           "otherwise: bring the values into the range first, and a nan, too")


exercise(
    "to_bytes", chapter=CHAPTER, grade=grade_to_bytes,
    solution="""
def to_bytes(x):
    x = jnp.where(jnp.isnan(x), 0.0, jnp.clip(x, 0.0, 1.0))
    return jnp.round(255 * x).astype(jnp.uint8)
""",
    wrong=[
        ("def to_bytes(x):\n    return x.astype(jnp.uint8)", "1.0 should become 255"),
        ("def to_bytes(x):\n    return (255 * x).astype(jnp.uint8)", "nearest byte"),
        ("def to_bytes(x):\n    return jnp.round(255 * x).astype(jnp.uint8)",
         "leaves to the cast"),
        ("def to_bytes(x):\n    return jnp.round(255 * jnp.clip(x, 0.0, 1.0))", "a uint8"),
    ],
    hints=["jnp.clip keeps a nan as it is"])
