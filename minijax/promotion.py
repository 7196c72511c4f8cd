"""Promotion: the lattice in which two dtypes meet, and Python's numbers below all of their kind.

Stands on `element_types`, `config` and `errors`.  Its chapter is "Arrays, dtypes and weak types".
In JAX: a part of ``jax/_src/dtypes.py``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from minijax import caches, config
from minijax.element_types import (
    BFLOAT16, BOOL, COMPLEX, FLOAT4, FLOAT6, FLOAT8, FLOATS, NUMERIC, SIGNED, SMALL_FLOATS,
    SMALL_INTEGERS, UNSIGNED, KeyType, numpy_dtype,
)
from minijax.errors import TypePromotionError

# -- the lattice ---------------------------------------------------------------------------------

Node: TypeAlias = "np.dtype[Any] | type"

# The steps up: each type, and those just above it.  int, float and complex in Python's sense are
# the weak types; a weak type lies below every strong type of its kind, and so gives way to it.
_STEPS: tuple[tuple[Any, str], ...] = (
    ("bool", "int*"),
    ("int*", "uint8 int8"),
    ("uint8", "uint16 int16"), ("uint16", "uint32 int32"), ("uint32", "uint64 int64"),
    ("int8", "int16"), ("int16", "int32"), ("int32", "int64"),
    ("uint64", "float*"), ("int64", "float*"),
    ("float*", "bfloat16 float16 complex*"),
    ("bfloat16", "float32"), ("float16", "float32"), ("float32", "float64 complex64"),
    ("float64", "complex128"),
    ("complex*", "complex64"), ("complex64", "complex128"), ("complex128", ""),
)
_WEAK_NODES: dict[str, type] = {"int*": int, "float*": float, "complex*": complex}


def _node(name: str) -> Node:
    if name in _WEAK_NODES:
        return _WEAK_NODES[name]
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


def _steps_up(strict: bool, x64: bool) -> dict[Node, list[Node]]:
    if strict:  # nothing but weak types gives way
        return {int: [float, *SIGNED, *UNSIGNED], float: [complex, *FLOATS],
                complex: [*COMPLEX], **{d: [] for d in (BOOL, *NUMERIC)}}
    steps = {_node(low): [_node(name) for name in high.split()] for low, high in _STEPS}
    # the small types give way to nothing but themselves
    steps[int] = [*steps[int], *SMALL_INTEGERS]
    steps[float] = [*steps[float], *SMALL_FLOATS]
    steps |= {d: [] for d in SMALL_INTEGERS + SMALL_FLOATS}
    if not x64:  # the one step that makes 64 bits of 32
        steps[np.dtype("uint32")] = [np.dtype("uint64"), np.dtype("int32")]
    return steps


@functools.cache
def _everything_above(strict: bool, x64: bool) -> dict[Node, frozenset[Node]]:
    """Return, for each type, the set of all types at or above it."""
    steps = _steps_up(strict, x64)

    @functools.cache
    def above(node: Node) -> frozenset[Node]:
        return frozenset([node]).union(*(above(high) for high in steps[node]))

    return {node: above(node) for node in steps}


@caches.remembered(maxsize=4096)
def _least_upper_bound(strict: bool, x64: bool, nodes: frozenset[Node]) -> Node:
    """Return the lowest type that is at or above all `nodes`."""
    above = _everything_above(strict, x64)
    for node in nodes:
        if node not in above:
            raise ValueError(f"dtype={node} is not a valid dtype for JAX type promotion.")
    common = frozenset.intersection(*(above[node] for node in nodes))
    for candidate in common:
        if common <= above[candidate]:
            return candidate
    raise TypePromotionError(_no_common_type(strict, nodes))


_SMALL_FAMILIES = ((FLOAT8, "8-bit floats", "float32"), (FLOAT6, "6-bit floats", "float32"),
                   (FLOAT4, "4-bit floats", "float32"),
                   (SMALL_INTEGERS, "1-bit, 2-bit and 4-bit integers", "int32"))


def _no_common_type(strict: bool, nodes: Iterable[Node]) -> str:
    nodes = sorted(nodes, key=str)
    said = (f"Input dtypes {tuple(str(n) for n in nodes)} have no available implicit dtype "
            "promotion path")
    if strict:
        return (f"{said} when jax_numpy_dtype_promotion=strict. Try explicitly casting inputs to "
                "the desired output type, or set jax_numpy_dtype_promotion=standard.")
    for family, words, instead in _SMALL_FAMILIES:
        if any(node in family for node in nodes):
            return (f"{said}. To avoid unintended promotion, {words} do not support implicit "
                    "promotion. If you'd like your inputs to be promoted to another type, you can "
                    f"do so explicitly using e.g. x.astype('{instead}')")
    return f"{said}. Try explicitly casting inputs to the desired output type."


# -- how two dtypes meet -------------------------------------------------------------------------


def promote_types(a: Any, b: Any) -> Any:
    """Return the dtype in which a binary operation on `a` and `b` computes.

    ``int``, ``float`` and ``complex`` stand for Python numbers, which adapt.
    Raises TypePromotionError where there is none.

    >>> promote_types("int32", "float16"), promote_types("uint8", int)
    (dtype('float16'), dtype('uint8'))
    """
    if isinstance(a, KeyType) and a is b:
        return a
    return np.dtype(join(x if is_weak_node(x) else numpy_dtype(x) for x in (a, b)))


def join(nodes: Iterable[Node]) -> Node:
    strict = config.numpy_dtype_promotion.value == "strict"
    return _least_upper_bound(strict, config.enable_x64.value, frozenset(nodes))


def is_weak_node(x: Any) -> bool:
    return x is int or x is float or x is complex
