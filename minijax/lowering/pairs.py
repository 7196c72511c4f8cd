"""Programs in real numbers: complex ones become pairs of them, typed PRNG keys their words.

Stands on simplify.py and on the formulas of `primitives.pairs`. Loops and printers see real numbers
alone; where a kernel is entered and left, both parts of a complex one are in one buffer.
Chapter 22. In XLA: the elemental emitter of complex operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax import context, core
from minijax.core import Array, ArrayImpl, Primitive, ShapedArray, has_key_dtype, physical_aval
from minijax.jaxpr import ClosedJaxpr, Environment, Jaxpr, JaxprEqn, subjaxprs, types_in
from minijax.primitives import algebra, emitted
from minijax.primitives.pairs import EACH_PART, FORMULAS, RULES, Pair, each_of
from minijax.primitives.slots import real_dtype
from minijax.stage import DynamicJaxprTrace, stage

from .simplify import program_called, with_programs

# -- values and their parts ------------------------------------------------------------------------


def is_complex(aval: ShapedArray) -> bool:
    return getattr(aval.dtype, "kind", "") == "c"


def has_parts(aval: ShapedArray) -> bool:
    return is_complex(aval) or has_key_dtype(aval)


def parts_of(avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """The types of the real values that stand for values of these types."""
    return [each for aval in map(physical_aval, avals) for each in (
        [aval.update(dtype=real_dtype(aval.dtype))] * 2 if is_complex(aval) else [aval])]


def apart(values: Sequence[Any]) -> list[Any]:
    """The values, with the parts of a pair one after the other."""
    return [x for z in values for x in (z.parts if isinstance(z, Pair) else (z,))]


def together(parts: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """The values of these types from their parts."""
    rest = iter(parts)
    return [Pair(next(rest), next(rest)) if is_complex(aval) else next(rest) for aval in avals]


def _value(x: Any) -> Any:
    """What stands for a constant."""
    if not isinstance(x, ArrayImpl) or not has_parts(x.aval):
        return x
    parts = (x._buffer.real.copy(), x._buffer.imag.copy()) if is_complex(x.aval) else (x._buffer,)
    found = [ArrayImpl(each, aval, x.is_literal)
             for each, aval in zip(parts, parts_of([x.aval]), strict=True)]
    return together(found, [x.aval])[0]


# -- programs --------------------------------------------------------------------------------------


def in_pairs(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program of the parts of its complex numbers, which stand one after the other, and
    of the words of its keys: `uint32`, with a trailing axis.

    >>> import minijax
    >>> in_pairs(minijax.make_jaxpr(lambda z: minijax.lax.conj(z))(1j))
    { lambda ; a:f32[] b:f32[]. let c:f32[] = neg b in (a, c) }
    """
    if not any(map(has_parts, types_in(closed.jaxpr))):
        return closed

    @context.leaving(core.current_source)
    def run(*args: Array) -> list[Array]:
        return apart(_walk(closed.jaxpr, closed.consts, together(args, closed.in_avals)))

    return closed.derived(("in pairs",), lambda: stage(
        run, parts_of(closed.in_avals), closed.jaxpr.debug_info))


def _walk(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """The outputs of a program, of which complex values are pairs."""
    env = Environment(zip(jaxpr.constvars + jaxpr.invars, (*map(_value, consts), *args),
                          strict=True))
    for eqn in jaxpr.eqns:
        core.current_source.set(eqn.source_info)
        outs = _results(eqn, [_value(env[x]) for x in eqn.invars])
        env.update(zip(eqn.outvars, outs, strict=True))
    return [_value(env[v]) for v in jaxpr.outvars]


def _results(eqn: JaxprEqn, args: Sequence[Any]) -> Sequence[Any]:
    """The results of an equation."""
    primitive, params, name = eqn.primitive, eqn.params, eqn.primitive.name
    types, outs = [x.aval for x in eqn.invars], [v.aval for v in eqn.outvars]
    inside = any(subjaxprs(params))
    if any(map(has_key_dtype, (*types, *outs))) and not inside:
        if not primitive.handles_keys:
            return core.bind_physically(primitive, types, args, params, emitted.move_axis)
        if primitive.program is not None:  # an operation on keys is a program on their words
            return [primitive.program(*args, **params)]
    inner = None if name == "scan" else program_called(eqn)  # from which products go later
    if inner is not None:
        return _walk(inner.jaxpr, inner.consts, args)
    if any(map(is_complex, (*types, *outs))) and not inside:
        if name in EACH_PART:
            return [Pair(*(_of_part(eqn, args, k) for k in range(2)))]
        if name in FORMULAS:
            return [FORMULAS[name](*(each_of(x, lambda v: emitted.stretched(v, outs[0].shape))
                                     for x in args), **params)]
        if name in RULES:
            return [RULES[name](*args, **params)]
        if name not in ("sort", "debug_callback"):
            meaning = partial(primitive.rule("impl"), **params)
            primitive, params = in_numpy_p, {"callback": np.errstate(all="ignore")(meaning)}
    trace = core.current_trace.get()
    assert isinstance(trace, DynamicJaxprTrace)
    found = trace.record(primitive, apart(args), _of_parts(params, types), parts_of(outs))
    return together(found, outs)


def _of_part(eqn: JaxprEqn, args: Sequence[Any], k: int) -> Any:
    """An equation on the real parts, or on the imaginary ones."""
    params = dict(eqn.params)
    if params.get("fill_value") is not None:
        fill = np.asarray(params["fill_value"])
        params["fill_value"] = (fill.imag if k else fill.real).item()
    return eqn.primitive.bind(*(apart([x])[k] if isinstance(x, Pair) else x for x in args),
                              **params)


# How many operands are of a kind, in the order of the operands: of loops, and of sorts.
COUNTS = ("num_consts", "num_carry", "cond_nconsts", "body_nconsts", "num_keys")


def _of_parts(params: dict[str, Any], types: Sequence[ShapedArray]) -> dict[str, Any]:
    """The parameters of an equation whose operands are both parts of what they were."""
    params, rest = with_programs(params, in_pairs), types
    for name in COUNTS:
        if name in params:
            own, rest = rest[:params[name]], rest[params[name]:]
            params[name] = len(parts_of(own))
    if "callback" in params:
        params["callback"] = partial(_of_whole, params["callback"], types)
    return params


def _of_whole(callback: Callable[..., Any], types: Sequence[ShapedArray], *parts: np.ndarray
              ) -> list[np.ndarray]:
    """What a function of NumPy arrays makes of complex ones, given and taken as their parts."""
    found = callback(*(algebra.in_parts(x.re, x.im) if isinstance(x, Pair) else x
                       for x in together(parts, types)))
    return apart([Pair(x.real, x.imag) if x.dtype.kind == "c" else x for x in found])


# An operation of complex numbers that is left to NumPy.
in_numpy_p = Primitive("in_numpy", multiple_results=True, loop=lambda b, outputs, operands, *,
                       callback: b.host_call(callback, operands, outputs))
