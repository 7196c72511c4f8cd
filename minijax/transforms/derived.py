"""Primitives that are programs of others, from which all of their rules come.

Such a primitive has a name in printed programs and for users' tables of rules.
Builds on `jit` and `vjp`.
Chapter 06, *Programs as data*.  In JAX: primitives with rules and kernels of their own.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from minijax.core import Axis, Example, Outs, Primitive, ShapedArray, Undefined, cannot, tracing
from minijax.core.jaxpr import merge_lists, partition_list
from minijax.core.jvp import jvp_flat
from minijax.core.vmap import vmap_flat
from minijax.primitives import families
from minijax.primitives.ad_util import zeros as zeros_of
from minijax.transforms.derivatives import vjp
from minijax.transforms.jit import jit


def derived(name: str, program: Callable[..., Any], examples: Callable[[], list[Example]],
            linear: Collection[int] = (), lowered: Callable[..., Any] | None = None,
            kind: type[Primitive] = Primitive, **slots: Any) -> Primitive:
    """A primitive with one result from a function of arrays, by position, and of its parameters.

    Args:
      name: as a jaxpr prints it.
      program: the function.
      linear: the arguments in which it is linear.
      lowered: the same function of the words of keys.
      kind: its class.
      examples, slots: as in `Primitive`; a slot replaces the rule that comes from the program.
    """
    lowered = lowered or program

    def listed(**params: Any) -> Callable[..., list]:
        return lambda *args: [program(*args, **params)]

    def abstract_eval(*avals: ShapedArray, **params: Any) -> list[ShapedArray]:
        return list(tracing.stage(listed(**params), avals).out_avals)

    def jvp(primals: list, tangents: list, **params: Any) -> Outs:
        return jvp_flat(listed(**params), primals, tangents)

    def batch(axis: Axis, args: list, dims: list, **params: Any) -> Outs:
        return vmap_flat(listed(**params), axis.size, axis.name, args, dims)

    def transpose(cotangents: list, *args: Any, **params: Any) -> list:
        if any(isinstance(x, Undefined) and i not in linear for i, x in enumerate(args)):
            raise NotImplementedError(f"{name} is linear only in its arguments {linear}")
        unknown = [isinstance(x, Undefined) for x in args]
        others, zeros = partition_list(
            [zeros_of(x.aval) if isinstance(x, Undefined) else x for x in args], unknown)
        _, pull = vjp(lambda *xs: program(*merge_lists([others, xs], unknown), **params), *zeros)
        return merge_lists([[None] * len(others), pull(cotangents[0])], unknown)

    @partial(jit, static_argnames="params")
    def compiled(*args: Any, params: tuple) -> Any:
        return lowered(*args, **dict(params))

    def impl(*buffers: Any, **params: Any) -> list:
        return families.by_program(compiled)(*buffers, params=tuple(params.items()))
    return kind(name, program=lowered, examples=examples, may_produce_nan=True, **{
        "impl": impl, "abstract_eval": abstract_eval, "jvp": jvp, "batch": batch,
        "transpose": transpose if linear else cannot(f"{name} is linear in no argument"), **slots})
