"""A jaxpr made simpler: calls inlined, constants folded, equal equations shared, dead ones dropped.

Stands on jaxpr.py and stage.py.
Chapter 22. In JAX: `pe.dce_jaxpr`, `pjit`'s inlining, and XLA's simplification passes.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from minijax import context, core, stage
from minijax.core import Array, ShapedArray, has_key_dtype
from minijax.jaxpr import (
    Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, remove_dead_equations, subjaxprs,
    without_dead_equations,
)

from .steps import with_products_outside
from .turned import turn_products

# Equations that only call the program in this parameter.
# JAX: a checkpointed program is not kept apart here, so equal equations may be shared again.
# `checkpoint` is not among them: merged with the forward pass, nothing would be computed again.
CALLS = {"jit": "jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}


def simplify(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same function of the same inputs, in fewer equations; effects stay, in their order.

    >>> import minijax
    >>> f = minijax.jit(lambda x: x * 2.0 + x * 2.0)
    >>> simplify(minijax.make_jaxpr(f)(1.0))
    { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[]; c:f32[] = add b b in (c,) }
    """
    result = closed.derived(("simplified",), lambda: _Simplifier().program(closed))
    return result.derived(("simplified",), lambda: result)


class _Simplifier:
    """Rewrites one program from top to bottom."""

    def __init__(self) -> None:
        self.env: dict[Var, Atom] = {}
        self.eqns: list[JaxprEqn] = []
        self.consts: dict[Var, Any] = {}
        self.seen: dict[Hashable, tuple[Atom, ...]] = {}

    def program(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        jaxpr = closed.jaxpr
        self.enter(jaxpr, closed.consts, jaxpr.invars)
        outs = tuple(self.atom(v) for v in jaxpr.outvars)
        kept = turn_products(remove_dead_equations(jaxpr.replace(
            constvars=tuple(self.consts), outvars=outs, eqns=tuple(self.eqns))))
        return without_dead_equations(ClosedJaxpr(kept, tuple(self.consts.values())))

    def atom(self, x: Atom) -> Atom:
        return self.env.get(x, x) if isinstance(x, Var) else x

    def enter(self, jaxpr: Jaxpr, consts: Sequence[Any], args: Iterable[Atom]) -> None:
        """Walk a program whose inputs are `args`."""
        for v, value in zip(jaxpr.constvars, consts, strict=True):
            self.env[v] = self._constant(v.aval, value)
        # A program called twice has each variable twice: the latest call counts.
        self.env.update(zip(jaxpr.invars, list(args), strict=True))
        for eqn in jaxpr.eqns:
            self.env.update(zip(eqn.outvars, self.results(eqn), strict=True))

    def _constant(self, aval: ShapedArray, value: Any) -> Atom:
        if not aval.shape and not has_key_dtype(aval):
            return _literal(buffer_of(value), aval)
        for v, other in self.consts.items():
            if other is value and v.aval is aval:
                return v
        v = Var(aval)
        self.consts[v] = value
        return v

    def results(self, eqn: JaxprEqn) -> Sequence[Atom]:
        """What stands for the outputs of an equation, which is kept where it is the first."""
        invars = tuple(self.atom(x) for x in eqn.invars)
        called = program_called(eqn)
        if called is not None:
            self.enter(called.jaxpr, called.consts, invars)
            return [self.atom(v) for v in called.jaxpr.outvars]
        folded = _fold(eqn, invars)
        if folded is not None:
            return folded
        key = object() if eqn.effects else _equation_key(eqn, invars)
        if key not in self.seen:
            # Fresh variables: a program that is inlined twice defines its own only once.
            self.seen[key] = outs = tuple(Var(v.aval) for v in eqn.outvars)
            params = with_programs(eqn.params, simplify)
            self.eqns.append(eqn.replace(invars=invars, outvars=outs, params=params))
        return self.seen[key]


def program_called(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The program that an equation runs once, or stands for."""
    primitive = eqn.primitive
    if primitive.name in CALLS:
        return eqn.params.get(CALLS[primitive.name])
    if primitive.name == "scan":
        return with_products_outside(eqn.replace(params=with_programs(eqn.params, simplify)))
    if primitive.program is None:
        return None

    @context.leaving(core.current_source)
    def run(*args: Array) -> list[Array]:
        core.current_source.set(eqn.source_info)
        outs = primitive.program(*args, **eqn.params)
        return outs if primitive.multiple_results else [outs]

    return stage.stage(run, [x.aval for x in eqn.invars])


def with_programs(params: dict[str, Any], change: Callable[[ClosedJaxpr], ClosedJaxpr]
                   ) -> dict[str, Any]:
    """The parameters of an equation with every program among them changed."""

    def changed(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(changed, value))
        return change(value) if isinstance(value, ClosedJaxpr) else value

    return {name: changed(value) for name, value in params.items()}


def buffer_of(value: Any) -> np.ndarray:
    """The numbers of a constant, which may be an array of ours or of NumPy."""
    return np.asarray(getattr(value, "_buffer", value))


def _literal(buffer: np.ndarray, aval: ShapedArray) -> Literal:
    plain = aval.weak_type or aval.dtype == np.bool_
    return Literal(buffer.item() if plain else buffer[()], aval)


def _fold(eqn: JaxprEqn, invars: Sequence[Atom]) -> list[Literal] | None:
    """The results of an equation on literals, where they are scalars."""
    literals = [x for x in invars if isinstance(x, Literal)]
    results = [v.aval for v in eqn.outvars]
    if (len(literals) != len(invars) or not invars or eqn.effects or any(subjaxprs(eqn.params))
            or any(aval.shape or has_key_dtype(aval) for aval in results)
            or not callable(eqn.primitive.impl)):
        return None
    with np.errstate(all="ignore"):
        values = eqn.primitive.impl(*(buffer_of(x.value) for x in literals), **eqn.params)
    return [_literal(np.asarray(value, aval.dtype), aval)
            for value, aval in zip(values, results, strict=True)]


def _equation_key(eqn: JaxprEqn, invars: Sequence[Atom]) -> Hashable:
    """What two equations share when they compute the same; nothing, if that cannot be compared."""
    key = (eqn.primitive, tuple(map(_atom_key, invars)), _frozen(tuple(sorted(eqn.params.items()))),
           tuple(v.aval for v in eqn.outvars))
    try:
        hash(key)
    except TypeError:
        return object()
    return key


def _atom_key(x: Atom) -> Hashable:
    # Bytes, so that 0.0 and -0.0 differ and nan equals itself.
    return (buffer_of(x.value).tobytes(), x.aval) if isinstance(x, Literal) else x


def _frozen(value: Any) -> Hashable:
    """A parameter, from which others differ that only compare equal: 1 and True, 0.0 and -0.0."""
    if isinstance(value, tuple):
        return tuple(map(_frozen, value))
    return (type(value), value.hex() if isinstance(value, float) else value)
