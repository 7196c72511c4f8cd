"""Simplification of a jaxpr: inlining, constant folding, common subexpressions, dead code, laws.

Complex numbers become pairs of reals, keys their words. Builds on algebraic_simplification.py,
pairs.py, scan_hoisting.py, transpose_folding.py and scatters.py.
Chapter 22. In JAX: `pe.dce_jaxpr`, `pjit`'s inlining, and XLA's simplification passes.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax.util import context
from minijax import core
from minijax.core.jaxpr import (
    Atom, ClosedJaxpr, JaxprEqn, Literal, Var, partition_list, subjaxprs)
from minijax.core.dce import without_dead_equations
from minijax.primitives.convert import copy_p

from .algebraic_simplification import by_law, multiply_by_reciprocals
from .dilated_convolutions import by_phases
from .pairs import grouped, in_parts, parts, parts_of, program_of, with_programs
from .scan_hoisting import hoist_products
from .scatters import as_comparison, as_scatter_add, as_update
from .transpose_folding import fold_transposes

# Of an array that is computed while the program is compiled: the most elements, and operations.
MOST, STEPS = 1 << 22, 12
SMALL = 1 << 10  # elements of a constant that is compared with others
# Equations that only call the program in this parameter.
# JAX: a checkpointed program is not kept apart here, so equal equations may be shared again.
# `checkpoint` is not among them: merged with the forward pass, nothing would be computed again.
CALLS = {"jit": "jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}

# Of a nested program in the first parameter: the parameter with the number of its inputs that are
# operands as they are, in the order of the operands; "" if all are.
CONSTANTS = {"jaxpr": "num_consts", "cond_jaxpr": "cond_nconsts", "body_jaxpr": "body_nconsts",
             "branches": ""}


def simplify(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same function of the same inputs, in fewer equations; effects stay, in their order.

    >>> import minijax
    >>> f = minijax.jit(lambda x: x * 2.0 + x * 2.0)
    >>> simplify(minijax.make_jaxpr(f)(1.0))
    { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[]; c:f32[] = add b b in (c,) }
    """
    result: ClosedJaxpr = closed.derived(
        ("simplified",), lambda: Simplifier().program(closed)) or closed
    result.derived(("simplified",), lambda: None)  # it is simple; a reference to itself would stay
    return result


class Simplifier:
    """Rewrites one program from top to bottom; a complex number becomes two atoms."""

    def __init__(self) -> None:
        self.env: dict[Var, Sequence[Atom]] = {}
        self.eqns: list[JaxprEqn] = []
        self.consts: dict[Hashable, tuple[Var, Any]] = {}
        self.eqns_by_key: dict[Hashable, Sequence[Atom]] = {}
        self.producers: dict[Atom, JaxprEqn] = {}  # of results of equations that are kept
        self.values: dict[Atom, np.ndarray | None] = {}  # of those that depend on no input
        self.owned_sums: set[Atom] = set()  # that may be added to where they are

    @context.leaving(core.current_source)
    def program(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        inputs = [Var(aval) for aval in parts_of(closed.in_avals)]
        self.owned_sums.update(inputs)
        outs = self.enter(closed, inputs)
        live = without_dead_equations(ClosedJaxpr(closed.jaxpr.replace(
            constvars=[v for v, _ in self.consts.values()], invars=inputs, outvars=outs,
            eqns=self.eqns), tuple(x for _, x in self.consts.values())))
        jaxpr = multiply_by_reciprocals(fold_transposes(live.jaxpr))
        return without_dead_equations(ClosedJaxpr(jaxpr, live.consts))

    def enter(self, closed: ClosedJaxpr, args: Sequence[Atom]) -> Sequence[Atom]:
        """Inline a program whose inputs are `args`; returns the atoms of its outputs."""
        jaxpr = closed.jaxpr
        # A program called twice has each variable twice: the latest call counts.
        self._define(jaxpr.invars, args)
        for v, value in zip(jaxpr.constvars, closed.consts, strict=True):
            self.env[v] = self._constant(value, v.aval)
        for eqn in jaxpr.eqns:
            core.current_source.set(eqn.source_info)
            self._define(eqn.outvars, self.results(eqn))
        return self._atoms(jaxpr.outvars)

    def _define(self, variables: Sequence[Var], atoms: Iterable[Atom]) -> None:
        self.env.update(zip(variables, grouped(atoms, [v.aval for v in variables]), strict=True))

    def _atoms(self, atoms: Iterable[Atom]) -> tuple[Atom, ...]:
        """The atoms that replace these atoms."""
        return tuple(part for x in atoms for part in (
            self.env[x] if isinstance(x, Var) else self._constant(x.value, x.aval)))

    def _constant(self, value: Any, aval: core.ShapedArray) -> Sequence[Atom]:
        types = parts_of([aval])
        if types != [aval]:
            pairs = zip(parts(buffer_of(value)), types, strict=True)
            return [atom for part, each in pairs for atom in self._constant(part, each)]
        if not aval.shape:
            return [_literal(buffer_of(value), aval)]
        buffer = buffer_of(value)  # a program may make a small one several times
        key = buffer.tobytes() if buffer.size <= SMALL else id(value)
        return [self.consts.setdefault((key, aval), (Var(aval), value))[0]]

    def results(self, eqn: JaxprEqn) -> Sequence[Atom]:
        """The atoms that replace the outputs of an equation."""
        args = self._atoms(eqn.invars)
        if eqn.primitive is copy_p:  # arrays are immutable
            return args
        called = eqn.params.get(CALLS.get(eqn.primitive.name, "")) or program_of(eqn)
        if called is None:
            eqn = self.with_places_inside(eqn)
            args = self._atoms(eqn.invars)
            eqn = in_parts(eqn, args, simplify)
            called = hoist_products(eqn) or by_phases(eqn)
        if called is not None:
            return self.enter(called, args)
        if comparison := as_comparison(eqn, self.producers, self.value_of):
            outs = self.enter(*comparison)
            self.producers[outs[0]] = eqn  # for sums with it
            return outs
        if update := as_update(eqn, self.value_of):
            return self.enter(*update)
        if scatter := as_scatter_add(eqn, self.owned_sums, self.producers):
            total = self.enter(*scatter)
            self.owned_sums.update(total)
            return total
        return self._simplified(eqn)

    def with_places_inside(self, eqn: JaxprEqn) -> JaxprEqn:
        """A loop or branches that know the few constant integers that they read and write at."""
        params, start = eqn.params, int("branches" in eqn.params)
        kept = list(eqn.invars[:start])
        for name, counter in CONSTANTS.items():
            if name not in params or counter and counter not in params:
                continue
            stop = start + params[counter] if counter else len(eqn.invars)
            own, start = eqn.invars[start:stop], stop
            values = [self.value_of(self._atoms([x])[0]) if x.aval.ndim == 1 and x.aval.size < 8
                      and x.aval.dtype.kind == "i" else None for x in own]
            unknown = [x for x, value in zip(own, values, strict=True) if value is None]
            kept += unknown
            if len(unknown) < len(own):
                known = with_programs({name: params[name]}, partial(_with_constants, values))
                params = params | known | ({counter: len(unknown)} if counter else {})
        return eqn if params is eqn.params else eqn.replace(
            invars=(*kept, *eqn.invars[start:]), params=params)

    def _simplified(self, eqn: JaxprEqn) -> Sequence[Atom]:
        """The results of an equation of the new program; the first of equal equations is kept."""
        folded = _fold(eqn)
        if folded is not None:
            return folded
        rewritten = self.by_law(eqn)
        if rewritten is not None:
            return [rewritten]
        key = object() if eqn.effects else _equation_key(eqn)
        if key not in self.eqns_by_key:
            self.eqns_by_key[key] = eqn.outvars
            self.producers.update((v, eqn) for v in eqn.outvars)
            self.eqns.append(eqn)
        return self.eqns_by_key[key]

    def value_of(self, x: Atom, steps: int = STEPS) -> np.ndarray | None:
        """The array of an atom that depends on no input, if few steps compute it."""
        if isinstance(x, Literal):
            return buffer_of(x.value)
        if x not in self.values:
            constants, eqn = dict(self.consts.values()), self.producers.get(x)
            self.values[x] = buffer_of(constants[x]) if x in constants else None
            if steps and eqn and x.aval.size <= MOST and (
                    values := _evaluated(eqn, lambda v: self.value_of(v, steps - 1))):
                self.values[x] = values[eqn.outvars.index(x)]
        return self.values[x]

    def by_law(self, eqn: JaxprEqn) -> Atom | None:
        """The result of an equation by a law of real numbers; None if none applies."""
        return by_law(eqn, self.producers, partial(self._emit, eqn),
                      lambda x: any(x is v for v, _ in self.consts.values()))

    def _emit(self, eqn: JaxprEqn, primitive: core.Primitive, operands: Sequence[Atom]) -> Atom:
        """The result of an elementwise operation in place of an equation."""
        aval = eqn.outvars[0].aval
        shape = np.broadcast_shapes(*(x.aval.shape for x in operands))
        out, = self._simplified(eqn.replace(primitive=primitive, invars=tuple(operands), params={},
                                            outvars=(Var(aval.update(shape=shape)),)))
        return out


def _with_constants(values: Sequence[Any], closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program that knows the values of the first inputs, but for those that are None."""
    is_known = [value is not None for value in values]
    own, known = partition_list(closed.jaxpr.invars[:len(values)], is_known)
    return ClosedJaxpr(closed.jaxpr.replace(
        invars=[*own, *closed.jaxpr.invars[len(values):]],
        constvars=[*closed.jaxpr.constvars, *known]),
        (*closed.consts, *(value for value in values if value is not None)))


def buffer_of(value: Any) -> np.ndarray:
    """The NumPy array of a constant, which may be an array of ours or of NumPy."""
    return np.asarray(getattr(value, "_buffer", value))


def _literal(buffer: np.ndarray, aval: core.ShapedArray) -> Literal:
    is_plain = aval.weak_type or aval.dtype == np.bool_
    return Literal(buffer.item() if is_plain else buffer[()], aval)


def _fold(eqn: JaxprEqn) -> list[Literal] | None:
    """The literal results of an equation on literals, if they are scalars.

    Python callbacks, which have no `element`, are not folded: their branch may never run.
    """
    results = [v.aval for v in eqn.outvars]
    values = None if not eqn.invars or any(aval.shape for aval in results) else _evaluated(
        eqn, lambda x: buffer_of(x.value) if isinstance(x, Literal) else None)
    return None if values is None else [_literal(np.asarray(value, aval.dtype), aval)
                                        for value, aval in zip(values, results, strict=True)]


def _evaluated(eqn: JaxprEqn, value_of: Callable[[Atom], Any]) -> list[np.ndarray] | None:
    """The results of an equation; None if it cannot be folded, or an operand is not known."""
    values = list(map(value_of, eqn.invars)) if _is_foldable(eqn) else [None]
    with np.errstate(all="ignore"):
        return None if any(x is None for x in values) else eqn.primitive.impl(
            *values, **eqn.params)


def _is_foldable(eqn: JaxprEqn) -> bool:
    return (not eqn.effects and not any(subjaxprs(eqn.params))
            and callable(eqn.primitive.impl) and callable(eqn.primitive.element))


def _equation_key(eqn: JaxprEqn) -> Hashable:
    """A key that is equal for equations that compute the same; unique where parameters cannot be
    compared.
    """
    key = (eqn.primitive, *map(_atom_key, eqn.invars), *(v.aval for v in eqn.outvars),
           _frozen(tuple(sorted(eqn.params.items()))))
    try:
        hash(key)
    except TypeError:
        return object()
    return key


def _atom_key(x: Atom) -> Hashable:
    # Bytes, so that 0.0 and -0.0 differ and nan equals itself.
    return (buffer_of(x.value).tobytes(), x.aval) if isinstance(x, Literal) else x


def _frozen(value: Any) -> Hashable:
    """A key for a parameter that distinguishes values that merely compare equal: 1 and True, 0.0
    and -0.0.
    """
    if isinstance(value, tuple):
        return tuple(map(_frozen, value))
    return (type(value), value.hex() if isinstance(value, float) else value)
