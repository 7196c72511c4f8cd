"""`composite`: an operation with a name and a version, and a function that says what it does.

Stands on `compiled`, `traced_bodies`.  Chapter 06, *Programs as data*, for what reads programs.
In JAX: `jax/_src/lax/lax.py` (`composite`).
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import errors, tree_util
from minijax.util import tracebacks
from minijax.core import Array, Example, ShapedArray, Tracer, cannot
from minijax.control_flow.traced_bodies import Body
from minijax.transforms.compiled import CallPrimitive, running
from minijax.primitives.analytic import sin_p
from minijax.core.tracing import check_arg, stage


# ── The block ────────────────────────────────────────────────────────────────────────────────

def _refusing(rule: str, cure: str) -> Callable:
    """A derivative would be one of what the operation stands for, and no operation of a name."""
    def refuse(*_: Any, **__: Any) -> Any:
        raise ValueError(f"{rule} rule for composite not implemented. You can use {cure} to add "
                         "support. See https://docs.jax.dev/en/latest/_autosummary/"
                         "jax.custom_jvp.html")
    return refuse


def _examples() -> list[Example]:
    program = stage(lambda x, y: [sin_p.bind(x) * y, x], [ShapedArray((3,), np.float32)] * 2)
    x = np.array([0.5, -1.0, 2.0], np.float32)
    return [Example((x, x + 1), {"jaxpr": program, "name": "f", "version": 1, "attributes": ()})]


composite_p = CallPrimitive(
    "composite", **running("jaxpr"), jvp=_refusing("JVP", "`jax.custom_jvp`"),
    transpose=_refusing("Transpose", "`jax.custom_jvp` or `jax.custom_vjp`"), batch=cannot(
        "its name is that of an operation on one example. Batch what it is composed of, or give it "
        "a rule of its own with jax.custom_batching.custom_vmap."),
    examples=_examples)


# ── As users call it ─────────────────────────────────────────────────────────────────────────

class HashableArray:
    """An array among the attributes; two are equal if all their numbers are."""

    def __init__(self, array: Any):
        self.array = array.copy()  # NumPy's can be written to
        numbers = np.asarray(array)
        self._key = type(array), numbers.shape, numbers.dtype, numbers.tobytes()

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashableArray) and self._key == other._key

    def __repr__(self) -> str:
        return f"HashableArray({self.array!r})"


Attributes = tuple[tuple[str, tuple, Any], ...]  # the name, leaves and tree of each


def _attributes(name: str, kwargs: dict[str, Any]) -> Attributes:
    found = []
    for key, value in kwargs.items():
        leaves, tree = tree_util.tree_flatten(value)
        if any(isinstance(x, Tracer) for x in leaves):
            raise _captured(name, "an attribute", "\n\nNote: If you are passing jax arrays as "
                                                  "attributes, use numpy arrays instead.")
        found.append((key, tuple(HashableArray(x) if isinstance(x, np.ndarray | Array) else x
                                 for x in leaves), tree))
    return tuple(found)


def _with_attributes(decomposition: Callable, attributes: Attributes) -> Callable:
    return functools.partial(decomposition, **{
        key: tree_util.tree_unflatten(tree, [
            x.array if isinstance(x, HashableArray) else x for x in leaves])
        for key, leaves, tree in attributes})


def _captured(name: str, what: str, note: str = "") -> Exception:
    return errors.UnexpectedTracerError(
        f"Found a JAX Tracer as {what} in the decomposition for the composite op {name!r}. This "
        "means that the decomposition function closes over a value that is involved in a JAX "
        "transformation. Any values that aren't explicitly known at compile time must be "
        f"explicitly passed as arguments to the composite.{note}")


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """A function as one operation with a name, which those who read programs may know.

    Here nobody does, so it does what the function does.  It has no derivative and no rule for
    batches: `custom_jvp`, `custom_vjp` and `custom_vmap` give it some.

    Args:
      decomposition: a function of arrays, positional, and of attributes, by keyword, which are
        known when it is traced.
      name: that of the operation.
      version: of what it means.

    Returns:
      A function of the same arguments.

    Raises:
      UnexpectedTracerError: on call, for tracers that the function closed over, and tracers among
        the attributes.

    >>> import minijax as jax
    >>> double = composite(lambda x: 2 * x, "my.double")
    >>> double(1.5)
    Array(3., dtype=float32, weak_type=True)
    >>> jax.make_jaxpr(double)(1.5).eqns[0].params["name"]
    'my.double'
    """
    # What was traced is remembered by function, so equal attributes are to give the same one.
    functions: dict[tuple, Callable] = {}

    @tracebacks.standing_for(decomposition)
    def called(*args: Any, **kwargs: Any) -> Any:
        attributes = _attributes(name, kwargs)
        # 1, 1. and True are equal, and make different programs; so do 0. and -0.
        key = attributes, tuple((type(x), str(x)) for _, leaves, _ in attributes for x in leaves)
        function = functions.setdefault(key, _with_attributes(decomposition, attributes))
        leaves, tree = tree_util.tree_flatten(args)
        values = [check_arg(x) for x in leaves]
        body = Body.of(function, tree.unflatten_types([x.aval for x in values]),
                       "composite")
        if body.captures_tracers:
            raise _captured(name, "a constant")
        return body.tree_of(composite_p.bind(*body.consts, *values, attributes=attributes,
                                             jaxpr=body.program, name=name, version=version))
    return called
