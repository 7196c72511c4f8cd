"""Equations in real numbers: complex numbers become pairs of reals, typed PRNG keys their words.

Builds on the formulas of `primitives.complex_pairs`; simplify.py calls it for each equation.
Loops and printers see real numbers only. In the kernel's arguments both parts of a complex array
are in one buffer. Chapter 22. In XLA: the elemental emitter of complex operations.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax.core import (Avals, Primitive, ShapedArray, bind_physically, has_key_dtype,
                          physical_aval)
from minijax.core.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal, Var, subjaxprs
from minijax.primitives import ad_util, complex_pairs
from minijax.primitives.algebra import in_parts as joined, is_complex
from minijax.primitives.analytic import pow_p
from minijax.primitives.complex_pairs import Pair
from minijax.primitives.slots import real_dtype
from minijax.core.tracing import stage

# -- values and their parts ------------------------------------------------------------------------


def parts_of(avals: Avals) -> list[ShapedArray]:
    """The real types that represent values of these types."""
    return [each for aval in avals for each in (
        [aval.update(dtype=real_dtype(aval.dtype))] * 2 if is_complex(aval)
        else [physical_aval(aval)])]


def parts(x: np.ndarray) -> list[np.ndarray]:
    return [x.real, x.imag] if x.dtype.kind == "c" else [x]


def grouped(values: Iterable[Any], avals: Avals) -> list[list[Any]]:
    """The parts of each value of these types, from a flat sequence of parts."""
    rest = iter(values)
    return [[next(rest) for _ in range(1 + is_complex(aval))] for aval in avals]


def together(values: Sequence[Any], avals: Avals) -> list[Any]:
    """The values of these types, joined from their parts."""
    return [Pair(*each) if len(each) > 1 else each[0] for each in grouped(values, avals)]


def apart(values: Sequence[Any]) -> list[Any]:
    """The flat sequence of the values' parts."""
    return [x for z in values for x in (z.parts if isinstance(z, Pair) else (z,))]


# -- equations -------------------------------------------------------------------------------------


def program_of(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The program that replaces an equation: on words for keys; on parts for complex numbers, if
    there is a formula.
    """
    primitive, params, types = eqn.primitive, eqn.params, [x.aval for x in eqn.invars]
    physical = list(map(physical_aval, types))
    if any(map(has_key_dtype, types)) and not primitive.handles_keys:
        return stage(lambda *words: bind_physically(
            primitive, types, words, params, ad_util.move_axis), physical)
    if primitive.program is not None:
        program = partial(primitive.program, **params)
        return stage(program if primitive.multiple_results else lambda *x: [program(*x)], physical)
    formula = primitive.complex_parts
    if not formula or not any(is_complex(x.aval) for x in (*eqn.invars, *eqn.outvars)):
        return None
    if primitive is pow_p and (power := _whole_power(eqn.invars[1])):
        formula = lambda c, z, _: c.integer_pow(z, power)
    return stage(lambda *args: apart([formula(complex_pairs, *together(args, types), **params)]),
                 parts_of(types))


def _whole_power(exponent: Atom) -> int | None:
    """The exponent of an integer power, which XLA computes by products or as a reciprocal of these.
    """
    value = exponent.value if isinstance(exponent, Literal) else None
    return next((power for power in (-1, 1, 2, 3) if value == power), None)


# How many operands are of a kind, in the order of the operands: of loops, and of sorts.
COUNTS = ("num_consts", "num_carry", "cond_nconsts", "body_nconsts", "num_keys")


Change = Callable[[ClosedJaxpr], ClosedJaxpr]


def in_parts(eqn: JaxprEqn, args: tuple[Atom, ...], change: Change) -> JaxprEqn:
    """The equation on real operands and new variables, with every nested program rewritten."""
    primitive, params = eqn.primitive, with_programs(eqn.params, change)
    types, outs = [x.aval for x in eqn.invars], [v.aval for v in eqn.outvars]
    if any(map(is_complex, (*types, *outs))):
        if not any(subjaxprs(params)) and primitive.name != "sort":
            meaning = np.errstate(all="ignore")(partial(primitive.rule("impl"), **params))
            loop = primitive.complex_loop
            primitive, params = in_numpy_p, {
                "callback": partial(_of_whole, meaning, types),
                "of_parts": partial(loop, **params) if callable(loop) else None}
        rest = types
        for name in COUNTS:
            if name in params:
                own, rest = rest[:params[name]], rest[params[name]:]
                params[name] = len(parts_of(own))
    return eqn.replace(primitive=primitive, params=params, invars=args,
                       outvars=tuple(map(Var, parts_of(outs))))


def with_programs(params: dict[str, Any], change: Change) -> dict[str, Any]:
    """The parameters of an equation, with a function applied to every nested program."""

    def changed(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(changed, value))
        return change(value) if isinstance(value, ClosedJaxpr) else value

    return {name: changed(value) for name, value in params.items()}


def _of_whole(callback: Callable[..., Any], types: Avals, *values: np.ndarray) -> list[np.ndarray]:
    """Call a function of complex NumPy arrays with joined parts; returns the parts of its results.
    """
    results = callback(*(joined(*x) if len(x) > 1 else x[0] for x in grouped(values, types)))
    return [part for x in results for part in parts(x)]


def _in_numpy(b: Any, outputs: Sequence, operands: Sequence, *, callback: Callable[..., Any],
              of_parts: Callable[..., Any] | None) -> None:
    if of_parts is None or b.on_gpu:
        b.host_call(callback, operands, outputs)
    else:
        of_parts(b, outputs, operands)


# An operation of complex numbers that is left to NumPy, unless there are loops for their parts.
in_numpy_p = Primitive("in_numpy", multiple_results=True, loop=_in_numpy)
