"""The exercises of chapter 20, *Precision, and where NumPy differs*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import exercise, expect, near

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
    stamps = 1.7e9 + np.array([0.0, 0.25, 1.0, 60.5, 3600.125])
    out: Any = elapsed(stamps)
    expect(isinstance(out, jax.Array), "return an array of ours, not NumPy's")
    expect(out.dtype == jnp.float32, f"a float32 is wanted, and this is {out.dtype}")
    expect(not near(out, stamps - 1.7e9 + 1.7e9), "seconds since the *first* stamp are wanted")
    expect(not near(out[1], 0.0), "0.25 seconds became 0: when the subtraction was done, the "
           "digits were gone")
    expect(near(out, stamps - stamps[0], 1e-6), "the differences are not those of the stamps")
    expect(near(elapsed(stamps + 5.0), out, 1e-6), "the first stamp is not always 1.7e9")


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
    x, y = (jnp.array(values, jnp.int32) for values in ([1, 3, -4, 7], [5, 4, -7, 7]))
    out: Any = middle(x, y)
    expect(getattr(out, "dtype", None) == jnp.int32, "the result should be an int32")
    expect(near(out, [3, 3, -6, 7]), "of 3 and 4 it is 3, of -4 and -7 it is -6: round down")
    big: Any = jnp.array([2**31 - 1, 2**31 - 3, -2**31, 2**30 + 1], jnp.int32)
    same: Any = middle(big, big)
    expect(np.array_equal(np.asarray(same), np.asarray(big)),
           f"of a number and itself it is that number; of {int(big[0])} it came out as "
           f"{int(same[0])}, so something on the way does not fit into 32 bits, or into a float")
    low, high = jnp.array([-2**31], jnp.int32), jnp.array([2**31 - 1], jnp.int32)
    expect(int(middle(low, high)[0]) == -1, "of the least and the largest number it is -1: does "
           "their difference fit?")


exercise(
    "middle", chapter=CHAPTER, grade=grade_middle,
    solution="""
def middle(x, y):
    return x // 2 + y // 2 + (x % 2 + y % 2) // 2
""",
    wrong=[
        ("def middle(x, y):\n    return (x + y) // 2", "32 bits"),
        ("def middle(x, y):\n    return x + (y - x) // 2", "does their difference"),
        ("def middle(x, y):\n    return jnp.floor(x / 2 + y / 2).astype(jnp.int32)", "a float"),
        ("def middle(x, y):\n    return x // 2 + y // 2", "round down"),
        ("def middle(x, y):\n    return (x + y) / 2", "should be an int32"),
    ],
    hints=["halve first, then add; and see to the two halves that are lost",
           "`%` gives what a halving has lost: 0 or 1"])


def grade_to_bytes(to_bytes: Callable) -> None:
    x = jnp.array([0.0, 0.5, 1.0, 0.999])
    out: Any = to_bytes(x)
    expect(getattr(out, "dtype", None) == jnp.uint8, "the result should be a uint8")
    expect(int(out[2]) != 1, "1.0 should become 255")
    expect(near(out, [0, 128, 255, 255]), "0.999 * 255 is 254.7: the nearest byte is 255")
    expect(near(to_bytes(jnp.array([-0.3, 1.7])), [0, 255]), "below 0 is black, above 1 white")
    expect(int(to_bytes(jnp.array([jnp.nan]))[0]) == 0, "a nan should be black, 0")
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
