"""Sums of products named by letters, and the product of two labelled arrays behind them.

Stands on `arguments` and `lax.dot_general`.  Chapter 23, *An array is a function of an index*.
In JAX: `jax/_src/numpy/einsum.py`, which asks `opt_einsum` for the best order.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array
from minijax.numpy.arguments import ArrayLike, check_arraylike, convert, promote_dtypes

Labels = Sequence[Hashable]
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


# ── Two labelled arrays ──────────────────────────────────────────────────────────────────────

def dot_general(x: Any, y: Any, dimension_numbers: Any, precision: Any = None,
                preferred_element_type: Any = None) -> Any:
    """`lax.dot_general` as `numpy` calls it: the result keeps dtype and weakness."""
    preferred = dtypes.check_user_dtype_supported(preferred_element_type, "dot")
    weak = preferred is None and x.weak_type and y.weak_type
    out = lax.dot_general(x, y, dimension_numbers, precision=precision,
                          preferred_element_type=x.dtype if preferred is None else preferred)
    return convert(out, out.dtype, weak)


def contract(x: Any, x_labels: Labels, y: Any, y_labels: Labels, out: Labels,
             precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The product of two arrays, summed over the labels that `out` does not have.

    Labels of size one in one array stretch to the other's size, as in broadcasting.
    """
    x, x_labels = _without_ones(x, x_labels, y, y_labels)
    y, y_labels = _without_ones(y, y_labels, x, x_labels)
    x, x_labels = _summed(x, x_labels, {*out, *y_labels})
    y, y_labels = _summed(y, y_labels, {*out, *x_labels})
    shared = [label for label in x_labels if label in y_labels]
    batch = [label for label in shared if label in out]
    inner = [label for label in shared if label not in out]

    def places(labels: Labels, wanted: Labels) -> list[int]:
        return [list(labels).index(label) for label in wanted]
    product = dot_general(
        x, y, ((places(x_labels, inner), places(y_labels, inner)),
               (places(x_labels, batch), places(y_labels, batch))),
        precision, preferred_element_type)
    found = [*batch, *(label for label in x_labels if label not in shared),
             *(label for label in y_labels if label not in shared)]
    return _arranged(product, found, out)


def _without_ones(x: Any, labels: Labels, other: Any, others: Labels) -> tuple[Any, Labels]:
    """Drop the axes of size one that the other array has."""
    ones = [d for d, label in enumerate(labels) if x.shape[d] == 1 and label in others
            and other.shape[list(others).index(label)] != 1]
    if not ones:
        return x, labels
    return lax.squeeze(x, ones), [label for d, label in enumerate(labels) if d not in ones]


def _summed(x: Any, labels: Labels, needed: set) -> tuple[Any, list]:
    """Sum over the axes whose label nobody needs."""
    axes = tuple(d for d, label in enumerate(labels) if label not in needed)
    return (lax.reduce_sum(x, axes) if axes else x,
            [label for label in labels if label in needed])


def _arranged(x: Any, labels: Labels, out: Labels) -> Any:
    """The axes in the order of `out`."""
    return lax.transpose(x, [list(labels).index(label) for label in out])


def _diagonal(x: Any, labels: Labels) -> tuple[Any, list]:
    """The elements at which axes of the same label have the same index."""
    kept: list = []
    for label in labels:
        if label in kept:
            first, second = kept.index(label), len(kept)
            i, j = (lax.broadcasted_iota(np.dtype("int32"), x.shape, d) for d in (first, second))
            zeros = lax.full_like(x, 0)
            x = lax.reduce_sum(lax.select(i == j, x, zeros), (second,))
        else:
            kept.append(label)
    return x, kept


# ── einsum ───────────────────────────────────────────────────────────────────────────────────

def einsum(subscripts: Any, /, *operands: ArrayLike, out: None = None, optimize: Any = None,
           precision: Any = None, preferred_element_type: Any = None) -> Array:
    """The sum of products that letters describe: one letter an axis, summed where left out.

    >>> x, y = np.ones((2, 3)), np.ones((3, 4))
    >>> einsum("ij,jk->ik", x, y).shape
    (2, 4)
    >>> einsum("ii->i", np.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)

    Raises:
      ValueError: where sizes of one letter differ, or the letters do not fit the arrays.
    """
    # JAX: contracts in the order that costs least; here from left to right.
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.einsum is not supported.")
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists((subscripts, *operands))
    check_arraylike("einsum", *operands)
    arrays = promote_dtypes(*operands)
    terms, result = _parse(subscripts, [x.ndim for x in arrays])
    _check_sizes(terms, arrays)
    labelled = [_diagonal(x, term) for x, term in zip(arrays, terms, strict=True)]
    x, labels = labelled.pop(0)
    while labelled:
        y, y_labels = labelled.pop(0)
        later = {*result}.union(*(others for _, others in labelled))
        kept = [label for label in dict.fromkeys([*labels, *y_labels]) if label in later]
        kept = list(result) if not labelled else kept
        x, labels = contract(x, labels, y, y_labels, kept, precision,
                             preferred_element_type), kept
    x, labels = _summed(x, labels, set(result))
    return _arranged(x, labels, result)


def _from_lists(args: tuple) -> tuple[str, tuple]:
    """The form ``einsum(x, [0, 1], y, [1, 2], [0, 2])`` as letters."""
    operands, lists = args[0:len(args) - len(args) % 2:2], args[1::2]
    result = args[-1] if len(args) % 2 else None

    def letters(axes: Sequence) -> str:
        return "".join("..." if axis is Ellipsis else _LETTERS[axis] for axis in axes)
    text = ",".join(map(letters, lists))
    return (text if result is None else f"{text}->{letters(result)}"), operands


def _parse(subscripts: str, ranks: list[int]) -> tuple[list[list], list]:
    """The labels of every operand and of the result; an ellipsis becomes numbered labels."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"einsum: {subscripts!r} describes {len(terms)} operand(s), but "
                         f"{len(ranks)} were given.")
    found = [_labels(term, rank, subscripts) for term, rank in zip(terms, ranks, strict=True)]
    spread = max((sum(isinstance(label, int) for label in term) for term in found), default=0)
    if arrow:
        kept = spread if "..." in right else 0  # what the result leaves out is summed over
        result = _labels(right, len(right.replace("...", "")) + kept, subscripts)
    else:
        once = sorted({c for c in left if c.isalpha() and left.count(c) == 1})
        result = [*range(-spread, 0), *once]
    unknown = [label for label in result if not any(label in term for term in found)]
    if unknown or len(set(result)) != len(result):
        raise ValueError(f"einsum: the result of {subscripts!r} must name each of its labels "
                         "once, and only labels of the operands.")
    return found, result


def _labels(term: str, rank: int, subscripts: str) -> list:
    before, dots, after = term.partition("...")
    missing = rank - len(before) - len(after)
    if missing < 0 or (missing and not dots) or not (before + after).isalpha() and before + after:
        raise ValueError(f"einsum: {term!r} in {subscripts!r} does not describe an operand of "
                         f"{rank} axes.")
    return [*before, *range(-missing, 0), *after]


def _check_sizes(terms: list[list], arrays: list[Any]) -> None:
    sizes: dict[Any, int] = {}
    for place, (term, x) in enumerate(zip(terms, arrays, strict=True)):
        for label, size in zip(term, x.shape, strict=True):
            known = sizes.setdefault(label, size)
            if 1 not in (known, size) and known != size:
                raise ValueError(f"Size of label '{label}' for operand {place} ({known}) does "
                                 f"not match previous terms ({size}).")
            sizes[label] = max(known, size)
