"""Functions with a custom batching rule: `custom_vmap`, `sequential_vmap`.

Builds on `custom_jvp_vjp`, `loops`.  Chapter 10, *Your own rules*.
In JAX: `jax/_src/custom_batching.py`.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.util import source_info, tracebacks
from minijax import core, tree_util
from minijax.core import (Array, Axis, Example, ForPrimitive, Outs, Primitive, ShapedArray, Zero,
                          cannot, tracing)
from minijax.control_flow import loops, traced_functions
from minijax.transforms.arguments import looks_like
from minijax.transforms.compiled import ProgramPrimitive, running
from minijax.custom.custom_jvp_vjp import all_positional, rule_of_wrapped
from minijax.control_flow.program_rules import (batch_axes_first, elementwise_or, has_tangent,
                                                refusing, split_list, with_zeros)
from minijax.core.jvp import jvp_flat, jvp_jaxpr
from minijax.core.jaxpr import ClosedJaxpr, merge_lists, partition_list
from minijax.core.vmap import Dim, vmap_flat
from minijax.primitives.analytic import sin_p
from minijax.primitives.dynamic_slice import dynamic_index_in_dim

# (axis size, which arguments are batched, *flat arguments) -> (flat results, which are batched)
Rule = Callable[..., tuple[list, list[bool]]]


# ── The block ────────────────────────────────────────────────────────────────────────────────

@ForPrimitive
def _jvp(p: Primitive, primals: list, tangents: list, *, call: ClosedJaxpr, rule: Rule) -> Outs:
    has, keep = has_tangent(tangents), [True] * len(call.out_avals)

    def with_tangents(size: int, batched: Sequence[bool], *args: Any) -> tuple[list, list[bool]]:
        """The derivative of the rule, for which an argument is batched where its tangent is, too.

        Where only one of them is, the rule itself is batched along its axis.
        """
        primals_batched, nonzero_batched = split_list(batched, len(has))
        both_batched = [*map(operator.and_, primals_batched, merge_lists(
            ([False] * has.count(False), nonzero_batched), has))]
        dims = [0 if b and not both else None for b, both in zip(
            batched, [*both_batched, *partition_list(both_batched, has)[True]], strict=True)]
        out_batched: list[bool] = []

        def outs_of_rule(*values: Any) -> list:
            outs, out_batched[:] = rule(size, both_batched, *values)
            return outs

        def derivative(*args: Any) -> list:
            values, nonzero = split_list(args, len(has))
            zeros = [Zero(x.aval.to_tangent_aval()) for x in partition_list(values, has)[False]]
            outs, out_tangents = jvp_flat(outs_of_rule, values, merge_lists((zeros, nonzero), has))
            return [*outs, *map(core.instantiate, out_tangents)]
        outs, out_dims = (derivative(*args), [None] * 2 * len(keep)) if dims.count(None) == len(
            dims) else vmap_flat(derivative, size, None, args, dims)
        return ([_with_one_axis(x, d, b, size) for x, d, b in zip(
            outs, out_dims, out_batched * 2, strict=True)],
            elementwise_or((out_batched * 2, [d is not None for d in out_dims])))
    outs = p.bind(*primals, *partition_list(tangents, has)[True],
                  call=jvp_jaxpr(call, has, keep)[0], rule=with_tangents)
    return with_zeros(outs, keep)


def _with_one_axis(x: Array, dim: Dim, batched: bool, size: int) -> Array:
    """A result with its batch axis in front; where its rule has made another, their diagonal."""
    if dim is None or not batched:
        return x if dim is None else core.batch_to(x, dim, 0, size)
    outs, _ = vmap_flat(lambda x, i: [dynamic_index_in_dim(x, i, 0, keepdims=False)], size, None,
                        [x, core.as_value(np.arange(size, dtype=np.int32))], [dim, 0])
    return outs[0]


def _batch(axis: Axis, args: list, dims: list, *, call: ClosedJaxpr, rule: Rule) -> Outs:
    outs, out_batched = rule(axis.size, [d is not None for d in dims],
                             *batch_axes_first(args, dims))
    return outs, [0 if b else None for b in out_batched]


def _examples() -> list[Example]:
    call = tracing.stage(lambda x: [sin_p.bind(x)], [ShapedArray((3,), np.float32)])
    return [Example((np.array([0.5, -1.0, 2.0], np.float32),), {
        "call": call, "rule": lambda size, batched, x: ([sin_p.bind(x)], batched)})]


custom_vmap_call_p = ProgramPrimitive(
    "custom_vmap_call", **running("call"), jvp=_jvp, batch=_batch,
    transpose=cannot("a function with a custom batching rule counts as non-linear"),
    split=refusing(
        ValueError, "Linearization failed to produce known values for all output primals. This is "
        "typically caused by attempting to differentiate a function uses an operation that does "
        "not support reverse-mode autodiff."),
    examples=_examples)


# ── As users call it ─────────────────────────────────────────────────────────────────────────

class custom_vmap:
    """A function with a custom batching rule.  For a reverse derivative wrap it in `custom_vjp`.

    Args:
      fun: a function of arrays and trees of arrays.

    >>> import minijax
    >>> @custom_vmap
    ... def f(x, y):
    ...     return x + y
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, xs, ys):
    ...     return xs * ys, True
    >>> minijax.vmap(f)(np.arange(3), np.arange(1, 4))
    Array([0, 2, 6], dtype=int32)
    """

    __getattr__ = rule_of_wrapped

    def __init__(self, fun: Callable):
        looks_like(self, fun)
        self.fun: Callable = fun
        self.vmap_rule: Callable | None = None

    def def_vmap(self, vmap_rule: Callable) -> Callable:
        """Define ``(axis_size, in_batched, *args) -> (result, out_batched)``; returns it.

        Batch axes come first; `in_batched` is a list like `args`, `out_batched` like `result`.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    @tracebacks.api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.vmap_rule is None:
            raise AttributeError("No batching rule defined for custom_vmap function "
                                 f"{source_info.function_name(self.fun)} using def_vmap.")
        operands = traced_functions.Operands(all_positional(self.fun, args, kwargs, "custom_vmap"))
        traced = traced_functions.TracedFunction.of(self.fun, operands.types, "custom_vmap fun")
        rule = functools.partial(_flat_rule, self.vmap_rule, len(traced.consts), operands.tree,
                                 traced.out_tree)
        return traced.tree_of(custom_vmap_call_p.bind(*traced.consts, *operands.values,
                                                      call=traced.program, rule=rule))


def _flat_rule(vmap_rule: Callable, num_consts: int, tree: tree_util.PyTreeDef,
               out_tree: tree_util.PyTreeDef, size: int, batched: Sequence[bool], *values: Any
               ) -> tuple[list, list[bool]]:
    args, flags = (tree_util.tree_unflatten(tree, some[num_consts:]) for some in (values, batched))
    result, out_flags = vmap_rule(size, list(flags), *args)
    name = f"returned by custom vmap rule ({source_info.function_name(vmap_rule)})"
    outs, rule_tree = tree_util.tree_flatten(result)
    out_batched, flag_tree = tree_util.tree_flatten(out_flags)
    if rule_tree != flag_tree:
        raise ValueError(f"structure of output value and output batching specification {name} do "
                         f"not match.\nOutput values: {rule_tree}\nBatching spec: {flag_tree}")
    if rule_tree != out_tree:
        raise ValueError(f"structure of output {name} does not match that of original "
                         f"custom-vmapped function.\nOriginal output: {out_tree}\n"
                         f"Rule output: {rule_tree}")
    return list(map(tracing.check_arg, outs)), out_batched


def sequential_vmap(f: Callable) -> custom_vmap:
    """A function whose batching rule is a loop over the examples.

    Args:
      f: a function of arrays and trees of arrays.

    >>> import minijax
    >>> minijax.vmap(sequential_vmap(lambda x: 2 * x))(np.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    mapped = custom_vmap(f)

    @mapped.def_vmap
    def rule(axis_size: int, in_batched: list, *args: Any) -> tuple:
        leaves, tree = tree_util.tree_flatten(args)
        flags = tree_util.tree_leaves(in_batched)
        whole, rows = partition_list(leaves, flags)
        result = loops.map(lambda row: mapped(*tree_util.tree_unflatten(
            tree, merge_lists((whole, row), flags))), rows)
        return result, tree_util.tree_map(lambda _: True, result)
    return mapped
