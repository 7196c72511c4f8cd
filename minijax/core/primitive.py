"""Primitives: one block for each operation, with a slot for the rule of each transformation.

Builds on `trace` and `conversion`.  Chapter 02, *Primitives and tracers*.
In JAX: `Primitive` of `jax/_src/core.py`.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.util import caches, source_info
from minijax import config, errors
from minijax.core.array import Array, ArrayImpl
from minijax.core.conversion import as_value, as_value_or_raise
from minijax.core.trace import Axis, base_trace, current_source, current_trace
from minijax.core.types import (Avals, Effects, Params, ShapedArray, Undefined, Zero, has_key_dtype,
                                no_effects, physical_aval, programs_in)


class Cannot(NamedTuple):
    """Fills the slot of a rule that cannot exist; the error message quotes the reason."""

    reason: str


def cannot(reason: str) -> Any:
    return Cannot(reason)


class ForPrimitive(NamedTuple):
    """A rule that takes the primitive as its first argument, as a method does."""

    rule: Callable


class Example(NamedTuple):
    """Arguments inside a primitive's domain, on which every law is tested."""

    args: tuple
    params: Params = {}


SLOTS = ("impl", "abstract_eval", "jvp", "transpose", "batch", "examples")

LOWERINGS = ("element", "loop", "library", "program")

_HOST_ARRAYS = frozenset({ArrayImpl})

# Python's `with` would take twice the time.
_without_warnings = np.errstate(all="ignore")(lambda run, args, params: run(*args, **params))


def joined_effects(**params: Any) -> Effects:
    """The effects of the programs among an equation's parameters."""
    return no_effects.union(*[program.effects for program in programs_in(params)])


class Primitive:
    """An operation that every transformation has a rule for: one block, one slot a rule.

    Args:
      name: as a jaxpr prints it.
      impl: its evaluation: NumPy arrays to a list of NumPy arrays.
      abstract_eval: types to a list of types.
      jvp: ``(primals, tangents, **params) -> (outs, out_tangents)``.
      transpose: ``(cotangents, *args, **params) -> cotangents``, linear arguments `Undefined`.
      batch: ``(axis, args, dims, **params) -> (outs, dims)``.
      element, loop, library, program: its lowering: one element, a loop nest, an external, or a
        program of other operations (for an operation on keys, on their words).
      split: for primitives with programs inside: their known and unknown half.
      effects: its effects; by default those of the programs inside.
      examples: a function that lists arguments inside its domain.
      handles_keys: whether `impl` and lowering take the words of PRNG keys themselves.
      consumes_key: whether the key that is its first argument must not be used again.
      users_transpose: whether `transpose` runs a user's rule, which is called even if all
        its cotangents are symbolic zeros.
      can_fuse_operands: whether `loop` reads each element of an operand at most twice, so that the
        operand may be fused instead of stored.
      rows: ``(**params) -> indices`` of the operands that `loop` reads row by row.
      in_place: ``(k, /, **params) -> places`` of the arguments whose buffer output k may take over.
      printed: ``(**params) -> params``: the parameters of a printed program.
      jet: ``(n, out, *args, **params)``: the n-th derivative of the result along a curve, an array
        or `Zero`; of curves ``x[i]`` is the i-th.  By default it follows from `jvp`.
      extend: ``(derive, count, args, companions, **params) -> outs``: for primitives with programs
        inside: runs their derived programs, with ``count(type)`` companions of each value.
      complex_parts: ``(c, *args, **params) -> result``: its formula in real arithmetic, where a
        complex number is a `Pair`; `c` are the formulas of `primitives.complex_pairs`.
      complex_loop: `loop` on the parts, or `cannot`: NumPy computes complex numbers.
      sharding: ``(operand avals, result avals, **params) -> Alignment``: which axes of operands and
        results are the same, so that ranks may compute blocks; see `primitives.layouts`.
      may_produce_nan: whether it computes floats, and does not only move or select them.
      standard_vma: whether operands must vary along the same axes of a mesh, and the results then
        do; otherwise `abstract_eval` says along which.
    """

    def __init__(self, name: str, *, impl: Any = None, abstract_eval: Any = None,
                 jvp: Any = None, transpose: Any = None, batch: Any = None,
                 element: Any = None, loop: Any = None, library: Any = None, program: Any = None,
                 split: Any = None, effects: Callable[..., Effects] = joined_effects,
                 examples: Callable[[], list[Example]] | None = None,
                 multiple_results: bool = False,
                 # rare: for random keys, loops that reuse memory, long parameters in print
                 handles_keys: bool = False, consumes_key: bool = False,
                 users_transpose: bool = False, can_fuse_operands: bool = False,
                 rows: Callable[..., Sequence[int]] = lambda **params: (),
                 in_place: Callable[..., Sequence[int]] = lambda k, /, **params: (),
                 printed: Callable[..., Params] | None = None,
                 # for Taylor mode, complex numbers in loops, many devices, checks of nans
                 jet: Any = None, extend: Any = None, complex_parts: Any = None,
                 complex_loop: Any = None, sharding: Any = None, may_produce_nan: bool = False,
                 standard_vma: bool = True):
        self.name, self.impl, self.abstract_eval = name, impl, abstract_eval
        self.jvp, self.transpose, self.batch, self.jet, self.extend, self.complex_parts = (
            types.MethodType(slot.rule, self) if isinstance(slot, ForPrimitive) else slot
            for slot in (jvp, transpose, batch, jet, extend, complex_parts))
        self.element, self.loop, self.library, self.program = element, loop, library, program
        self.split, self.effects, self.examples = split, effects, examples
        self.multiple_results, self.users_transpose = multiple_results, users_transpose
        self.handles_keys, self.consumes_key = handles_keys, consumes_key
        self.can_fuse_operands, self.rows = can_fuse_operands, rows
        self.in_place, self.printed, self.complex_loop = in_place, printed, complex_loop
        self.sharding, self.may_produce_nan = sharding, may_produce_nan
        self.standard_vma = standard_vma and split is None
        self.as_made = dict(vars(self))  # users may change single slots

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive under the current trace, or its nearest parent that processes it."""
        before = trace = current_trace.get()
        try:
            values = [x if isinstance(x, Array) else self._argument(x, i)
                      for i, x in enumerate(args)]
            if trace.cast_operands is not None and self.standard_vma:
                values = trace.cast_operands(values)
            while not trace.concerns(self, values, params):
                trace = trace.parent or base_trace
            current_trace.set(trace.ground or trace)
            outs = trace.process_primitive(self, values, params)
        except Exception as error:
            source_info.add_user_note(error, current_source.get())
            raise
        finally:
            current_trace.set(before)
        return outs if self.multiple_results else outs[0]

    def _argument(self, x: Any, position: int) -> Array:
        if isinstance(x, Zero | Undefined):
            raise TypeError(
                f"{self.name} got a tangent or cotangent that has no value ({x}). Either the "
                "function is transposed (linear_transpose, custom rules) and is not linear in its "
                "arguments, or a differentiation rule takes a symbolic zero for an array.")
        return as_value_or_raise(x, lambda: (
            f"Error interpreting argument to {self.name} as a JAX value. The problematic value is "
            f"of type {type(x)} and was passed to {self.name} at position {position}.\n"))

    def bind_list(self, *args: Any, **params: Any) -> list:
        outs = self.bind(*args, **params)
        return outs if self.multiple_results else [outs]

    def listed(self, outs: Any) -> list:
        """The results of `bind`, or of a rule in a slot, as a list."""
        return list(outs) if self.multiple_results or isinstance(outs, list) else [outs]

    def rule(self, slot: str) -> Callable:
        """The rule in a slot.

        Raises:
          RuleNotImplementedError: where there is none; says why, or what is missing.
        """
        rule = getattr(self, slot)
        if callable(rule):
            return rule
        reason = rule.reason if isinstance(rule, Cannot) else ""
        raise errors.RuleNotImplementedError(self.name, slot, reason)

    def type_of(self, avals: Avals, params: Params) -> tuple[ShapedArray, ...]:
        """The types of the outputs."""
        rule = self.rule("abstract_eval")
        # A cache entry would keep the programs inside alive, and they have their types anyway; so
        # it would functions, and what they close over.
        if self.split is None and not self.calls_python(params):
            try:
                return _cached_types(rule, self, tuple(avals), tuple(params.items()),
                                     config.state())
            except TypeError:  # an unhashable parameter, or an error that recurs below
                pass
        return _types(rule, self, avals, params)

    eager_dispatch: Any = None  # a hook: true where operations may run on another device
    apply_to_parts: Any = None  # a hook: applies a formula of real and imaginary parts to arrays

    def evaluate(self, args: Sequence[Any], params: Params) -> list[ArrayImpl]:
        """Run `impl` on the buffers."""
        if (self.eager_dispatch or not _HOST_ARRAYS.issuperset(map(type, args))) and (
                outs := self.eager_dispatch.evaluated(self, args, params)) is not None:
            return outs
        run, avals, inputs = self.rule("impl"), [x.aval for x in args], [x._buffer for x in args]
        if self.abstract_eval is None:  # a new primitive: its results have their types
            return list(map(as_value, run(*inputs, **params)))
        out_avals = self.type_of(avals, params)
        if not self.handles_keys and any(map(has_key_dtype, avals)):
            words = [ArrayImpl(x._buffer, physical_aval(x.aval)) for x in args]
            buffers = bind_physically(self, avals, words, params,
                                      lambda x, *axes: np.moveaxis(x._buffer, *axes))
            return [_checked_array(self, b, a) for b, a in zip(buffers, out_avals, strict=True)]
        buffers = _without_warnings(run, inputs, params)
        return [_checked_array(self, b, aval, inputs)
                for b, aval in zip(buffers, out_avals, strict=True)]

    def calls_python(self, params: Params) -> bool:
        """Whether a parameter is a Python function, which may close over tracers."""
        return False

    def staged(self, args: Sequence[Any], params: Params) -> tuple[Primitive, Sequence, Params]:
        """The same operation with programs in place of Python functions among its parameters.

        For traces that cannot call these functions, under the current trace; see `calls_python`.
        """
        return self, args, params

    # The interface of JAX's tutorials on new primitives; each method fills a slot.

    def def_impl(self, impl: Callable) -> Callable:
        if self.impl:  # programs may have been made of it
            caches.clear_all()
        # of buffers: copies, since the function may change its result later; users call it, too
        self.impl = lambda *args, **params: impl(*args, **params) if any(
            isinstance(x, Array) for x in args) else [np.array(as_value(out)._buffer)
            for out in self.listed(impl(*map(as_value, args), **params))]
        return impl

    def def_abstract_eval(self, rule: Callable) -> Callable:
        self.abstract_eval = lambda *avals, **params: self.listed(rule(*avals, **params))
        return rule

    def get_bind_params(self, params: Params) -> Params:
        """The arguments of `bind` for an equation: here its parameters."""
        return params

    def __repr__(self) -> str:
        return self.name


def _types(rule: Callable, primitive: Primitive, avals: Avals, params: Any,
           flags: Any = None) -> tuple[ShapedArray, ...]:
    outs = rule(*avals, **dict(params))
    if any(aval.explicit_sharding is not None for aval in avals):
        outs = ShapedArray.shardings.of_results(primitive, avals, outs, dict(params))
    vma = primitive.standard_vma and frozenset().union(*(aval.vma for aval in avals))
    return tuple(out.update(vma=vma) if vma else out for out in outs)


_cached_types = caches.remembered(maxsize=8192)(_types)


def _checked_array(primitive: Primitive, buffer: Any, aval: ShapedArray,
                   inputs: Sequence[np.ndarray] = ()) -> ArrayImpl:
    """The result of an evaluation rule, checked against its abstract evaluation."""
    buffer = np.asarray(buffer, order="C")
    if (buffer.dtype, buffer.shape) != (aval.dtype, aval.shape) and (
            (stored := physical_aval(aval)).dtype, stored.shape) != (buffer.dtype, buffer.shape):
        raise TypeError(f"the evaluation rule of {primitive.name} returned "
                        f"{buffer.dtype}{[*buffer.shape]}, but its abstract evaluation rule "
                        f"returned {aval.str_long()}")
    # A view must not keep a larger buffer alive.
    if buffer.base is not None and any(np.may_share_memory(buffer, x) for x in inputs):
        buffer = buffer.copy()
    return ArrayImpl(buffer, aval)


def bind_physically(primitive: Primitive, avals: Avals, args: Sequence[Any],
                    params: Params, move_axis: Callable[[Any, int, int], Any]) -> list:
    """A shape primitive on keys: its batch rule, with the axis of words as the batch.

    Args:
      avals: the types as the program sees them.
      args: the words of keys, and ordinary values as they are.
      move_axis: ``(x, source, destination) -> x``, to move the words back to the last axis.
    """
    words = next(aval.dtype.shape[0] for aval in avals if has_key_dtype(aval))
    dims = [aval.ndim if has_key_dtype(aval) else None for aval in avals]
    outs, out_dims = primitive.rule("batch")(Axis(words), list(args), dims, **params)
    return [out if dim is None else move_axis(out, dim, -1)
            for out, dim in zip(outs, out_dims, strict=True)]
