"""Transposition: run a linear program backwards, adding up cotangents.

Stands on `jaxpr`, `stage`.  Chapter 07, *Reverse derivatives*.
In JAX: `jax/_src/interpreters/ad.py` (`backward_pass`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax import context, core
from minijax.core import Array, Undefined, Zero
from minijax.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from minijax.primitives.emitted import add_cotangents, instantiate
from minijax.stage import stage


def backward_pass(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any],
                  cotangents: Sequence[Any]) -> list[Any]:
    """The cotangents of the inputs a program is linear in.

    Rules are not asked where all cotangents are `Zero`: one that is called for an operation of
    one result is given an array.

    Args:
      jaxpr: the program.
      consts: values of its constants.
      args: for each input its value, or `Undefined` where the program is linear in it.
      cotangents: for each output an array or `Zero`.

    Returns:
      For each input an array or `Zero`; None where it was no linear one.
    """
    run = _BackwardPass(jaxpr, consts, args)
    source = core.current_source.get()  # the equations change it
    return context.with_values({core.current_source: source}, run, cotangents)


class _BackwardPass:
    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]):
        self.jaxpr = jaxpr
        self.linear = {v for v, x in zip(jaxpr.invars, args, strict=True)
                       if isinstance(x, Undefined)}
        self.values: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
        self.values.update(zip(jaxpr.invars, args, strict=True))
        self.cotangents: dict[Var, Any] = {}

    def __call__(self, cotangents: Sequence[Any]) -> list[Any]:
        linear_eqns = self.run_nonlinear_equations()
        for v, ct in zip(self.jaxpr.outvars, cotangents, strict=True):
            self.accumulate(v, ct)
        for eqn in reversed(linear_eqns):
            self.transpose(eqn)
        return [self.cotangents.get(v, Zero(v.aval)) if v in self.linear else None
                for v in self.jaxpr.invars]

    def run_nonlinear_equations(self) -> list[JaxprEqn]:
        """Evaluate what does not depend on the linear inputs; return the rest."""
        rest = []
        for eqn in self.jaxpr.eqns:
            if any(v in self.linear for v in eqn.invars):
                self.linear.update(eqn.outvars)
                rest.append(eqn)
            else:
                core.current_source.set(eqn.source_info)
                outs = eqn.primitive.bind_list(*map(self.read, eqn.invars), **eqn.params)
                self.values.update(zip(eqn.outvars, outs, strict=True))
        return rest

    def transpose(self, eqn: JaxprEqn) -> None:
        cotangents = [self.cotangents.pop(v, Zero(v.aval)) for v in eqn.outvars]
        if all(isinstance(ct, Zero) for ct in cotangents):
            return
        core.current_source.set(eqn.source_info and eqn.source_info.reversed())
        args = [Undefined(v.aval) if v in self.linear else self.read(v) for v in eqn.invars]
        rule = eqn.primitive.rule("transpose")
        for v, ct in zip(eqn.invars, rule(cotangents, *args, **eqn.params), strict=True):
            if v in self.linear:
                self.accumulate(v, ct)

    def read(self, atom: Atom) -> Any:
        return atom.value if isinstance(atom, Literal) else self.values[atom]

    def accumulate(self, atom: Atom, cotangent: Any) -> None:
        if isinstance(atom, Var) and atom in self.linear:
            total = add_cotangents(self.cotangents.get(atom), cotangent)
            if total is not None and not isinstance(total, Zero):
                self.cotangents[atom] = total


def transpose_jaxpr(closed: ClosedJaxpr, linear_in: Sequence[bool],
                    has_cotangent: Sequence[bool], keep: Sequence[bool] | None = None
                    ) -> tuple[ClosedJaxpr, Sequence[bool]]:
    """The program from (non-linear inputs, cotangents that exist) to cotangents of linear inputs.

    Args:
      closed: a program.
      linear_in: the inputs that it is linear in.
      has_cotangent: which of its outputs have a cotangent.
      keep: the linear inputs whose cotangent is wanted even when it is zero.

    Returns:
      The program, and for each linear input whether its cotangent is among the outputs.
    """
    wanted = tuple(keep) if keep is not None else (False,) * sum(linear_in)
    return closed.derived(("transpose", tuple(linear_in), tuple(has_cotangent), wanted),
                          lambda: _transpose_jaxpr(closed, linear_in, has_cotangent, wanted))


def _transpose_jaxpr(closed: ClosedJaxpr, linear_in: Sequence[bool],
                     has_cotangent: Sequence[bool], keep: Sequence[bool]
                     ) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    out_has: list[bool] = []
    fixed_avals = [a for a, lin in zip(closed.in_avals, linear_in, strict=True) if not lin]
    ct_avals = [a for a, has in zip(closed.out_avals, has_cotangent, strict=True) if has]

    def backwards(*values: Array) -> list[Array]:
        fixed, given = iter(values[:len(fixed_avals)]), iter(values[len(fixed_avals):])
        args = [Undefined(a) if lin else next(fixed)
                for a, lin in zip(closed.in_avals, linear_in, strict=True)]
        cts = [next(given) if has else Zero(a)
               for a, has in zip(closed.out_avals, has_cotangent, strict=True)]
        found = backward_pass(closed.jaxpr, closed.consts, args, cts)
        linear = [ct for ct, lin in zip(found, linear_in, strict=True) if lin]
        out_has[:] = [k or not isinstance(ct, Zero) for k, ct in zip(keep, linear, strict=True)]
        return [instantiate(ct) for ct, has in zip(linear, out_has, strict=True) if has]

    program = stage(backwards, fixed_avals + ct_avals, closed.jaxpr.debug_info)
    return program, tuple(out_has)
