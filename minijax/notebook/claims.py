"""Claims: a sentence of a chapter about an output, tied to the values that it speaks of.

`says` fails where the values differ from the claim's numbers, and `weave.unsaid` where the prose
beside the cell does not contain the claim: so a sentence cannot outlive what it describes.
Builds on nothing.  JAX has no counterpart.
"""

import re
from typing import Any

import numpy as np

WORDS = {word: str(n) for n, word in enumerate(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty".split())
    if word != "one"} | {"thirty": "30", "half": "0.5"}  # "this one" is no number
_NUMBER = re.compile(
    rf"(?<!\w)-?\d+(?:,\d{{3}})*(?:\.\d+)?%?|\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)


def says(claim: str, *values: Any) -> None:
    """Assert what the prose beside this cell says, in the words in which it says it.

    Args:
      claim: words of the prose, literally.
      values: the values of its numbers, in order, which must be these numbers as they are rounded
        there; or none, and after them conditions that must hold.

    Raises:
      AssertionError: where a value is another, or a condition does not hold.

    >>> says("about 3.14, or 22 sevenths", 3.14159, 22)
    >>> says("Ten blocks of ten are best", 10, 10)
    >>> says("a third of 1,000", 334.2)
    Traceback (most recent call last):
    ...
    AssertionError: the text says "a third of 1,000", and it is 334.2
    """
    numbers = _NUMBER.findall(claim)
    conditions = [x for x in values if np.asarray(x).dtype.kind == "b"]
    measured = values[:len(values) - len(conditions)]
    if len(measured) not in (0, len(numbers)):
        raise AssertionError(f'"{claim}" has {len(numbers)} numbers, and {len(measured)} values')
    wrong = [x for x, number in zip(measured, numbers, strict=False) if not is_rounded(x, number)]
    if wrong or not all(map(bool, conditions)):
        raise AssertionError(f'the text says "{claim}", and it is '
                             + (", ".join(f"{float(x):.6g}" for x in wrong) or "not so"))


def is_rounded(value: Any, number: str) -> bool:
    """Whether a text's number is the value, to the digits that are written."""
    text = WORDS.get(number.lower(), number).replace(",", "")
    digits = text.removesuffix("%")
    value = float(value) * (100 if text.endswith("%") else 1)
    decimals = len(digits.partition(".")[2])
    return abs(value - float(digits)) <= 0.5 * 10.0 ** -decimals * (1 + 1e-9)


def plain(text: str) -> str:
    """Prose as it is compared: without marks, and with single spaces."""
    return " ".join(re.sub(r"[*`]", "", text).split())
