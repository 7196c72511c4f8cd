"""`composite`: an operation with a name, a version, and a function that defines it.

Builds on `compiled`, `traced_functions`.  Chapter 06, *Programs as data*, for readers of programs.
In JAX: `jax/_src/lax/lax.py` (`composite`).
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import errors, tree_util
from minijax.util import tracebacks
from minijax.core import Array, Example, Tracer, cannot
from minijax.control_flow.program_rules import refusing
from minijax.control_flow.traced_functions import Operands, TracedFunction
from minijax.transforms.compiled import CallPrimitive, jit_p, running


# ── The block ────────────────────────────────────────────────────────────────────────────────

def _not_implemented(rule: str, cure: str) -> Callable:
    """The derivative of an operation with a name would not have that name: there is none."""
    return refusing(ValueError, f"{rule} rule for composite not implemented. You can use {cure} to "
                    "add support. See https://docs.jax.dev/en/latest/_autosummary/"
                    "jax.custom_jvp.html")


composite_p = CallPrimitive(
    "composite", **running("jaxpr"), jvp=_not_implemented("JVP", "`jax.custom_jvp`"),
    transpose=_not_implemented("Transpose", "`jax.custom_jvp` or `jax.custom_vjp`"), batch=cannot(
        "its name is that of an operation on one example. Batch what it is composed of, or give it "
        "a rule of its own with jax.custom_batching.custom_vmap."),
    examples=lambda: [Example(x.args, {**x.params, "version": 1, "attributes": ()})
                      for x in jit_p.rule("examples")()])


# ── As users call it ─────────────────────────────────────────────────────────────────────────

class HashableArray:
    """An array among the attributes; two are equal if all their elements are."""

    def __init__(self, array: Any):
        self.array = array.copy()  # a NumPy array can be changed
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
    attributes = []
    for key, value in kwargs.items():
        leaves, tree = tree_util.tree_flatten(value)
        if any(isinstance(x, Tracer) for x in leaves):
            raise _captured(name, "an attribute", "\n\nNote: If you are passing jax arrays as "
                                                  "attributes, use numpy arrays instead.")
        hashable = tuple(HashableArray(x) if isinstance(x, np.ndarray | Array) else x
                         for x in leaves)
        attributes.append((key, hashable, tree))
    return tuple(attributes)


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
    """A function as one operation with a name, which another compiler may know.

    Here it is compiled as the function.  It has no derivative and no batching rule: `custom_jvp`,
    `custom_vjp` and `custom_vmap` add them.

    Args:
      decomposition: a function of arrays, by position, and of attributes, by keyword, which are
        known when it is traced.
      name: the name of the operation.
      version: the version of its meaning.

    Returns:
      A function of the same arguments.

    Raises:
      UnexpectedTracerError: on call, for tracers among the attributes or in the function's closure.

    >>> import minijax as jax
    >>> double = composite(lambda x: 2 * x, "my.double")
    >>> double(1.5)
    Array(3., dtype=float32, weak_type=True)
    >>> jax.make_jaxpr(double)(1.5).eqns[0].params["name"]
    'my.double'
    """
    # Traces are cached by function, so equal attributes must give the same function.
    functions: dict[tuple, Callable] = {}

    @tracebacks.standing_for(decomposition)
    def called(*args: Any, **kwargs: Any) -> Any:
        attributes = _attributes(name, kwargs)
        # 1, 1. and True are equal, but give different programs; so do 0. and -0.
        key = attributes, tuple((type(x), str(x)) for _, leaves, _ in attributes for x in leaves)
        function = functions.setdefault(key, _with_attributes(decomposition, attributes))
        operands = Operands(args)
        traced = TracedFunction.of(function, operands.types, "composite")
        if traced.captures_tracers:
            raise _captured(name, "a constant")
        return traced.tree_of(composite_p.bind(
            *traced.consts, *operands.values, attributes=attributes, jaxpr=traced.program,
            name=name, version=version))
    return called
