"""Small reductions over ranks joined to one: what costs is that ranks wait, not what they send.

Builds on `across`.  Chapter 11, *Named axes and many devices*.
In JAX: XLA's `AllReduceCombiner`.
"""

import itertools
from collections.abc import Iterator, Sequence

from minijax.core import Array, current_source, tracing
from minijax.core.jaxpr import ClosedJaxpr, Environment, JaxprEqn, Var
from minijax.placement.across import Communication, across_reduce_p
from minijax.placement.moves import bytes_of
from minijax.primitives import ad_util, convert, joining, slicing
from minijax.util import context

SMALL = 1 << 14  # bytes: to copy more costs as much as another reduction


def with_joined_reductions(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with small reductions that do not wait for each other joined to one."""
    groups = list(scheduled(closed.eqns))
    if max(map(len, groups), default=0) < 2:
        return closed

    @context.leaving(current_source)
    def run(*args: Array) -> list[Array]:
        jaxpr = closed.jaxpr
        env = Environment(zip(jaxpr.constvars + jaxpr.invars, (*closed.consts, *args), strict=True))
        for group in groups:
            if len(group) == 1:
                env.run(group[0])
            else:
                current_source.set(group[0].source_info)
                outs = reduced_together(group, [env[eqn.invars[0]] for eqn in group])
                env.update(zip((eqn.outvars[0] for eqn in group), outs, strict=True))
        return [env[x] for x in jaxpr.outvars]
    return tracing.stage(run, closed.in_avals, closed.jaxpr.debug_info)


def scheduled(eqns: Sequence[JaxprEqn]) -> Iterator[list[JaxprEqn]]:
    """The equations, in an order in which reductions wait until no other equation can go on."""
    while eqns:
        group: list[JaxprEqn] = []
        later: list[JaxprEqn] = []
        missing: set = set()
        shows = False  # whether an equation that shows something to the user waits
        for eqn in eqns:
            does_show = any(e.observable and not isinstance(e, Communication) for e in eqn.effects)
            if not missing.isdisjoint(x for x in eqn.invars if isinstance(x, Var)) or (
                    does_show and shows):
                later.append(eqn)
                shows |= does_show
            elif is_small(eqn) and (not group or kind_of(eqn) == kind_of(group[0])):
                group.append(eqn)
            else:
                yield [eqn]
                continue
            missing.update(eqn.outvars)
        if group:
            yield group
        eqns = later


def is_small(eqn: JaxprEqn) -> bool:
    return eqn.primitive is across_reduce_p and bytes_of(eqn.outvars[0].aval) <= SMALL


def kind_of(eqn: JaxprEqn) -> tuple:
    """What reductions that are joined have in common."""
    return eqn.params["op"], eqn.params["grid"], eqn.params["names"], eqn.outvars[0].aval.dtype


def reduced_together(group: Sequence[JaxprEqn], values: Sequence[Array]) -> Iterator[Array]:
    """The results of reductions, by one of their operands in one row."""
    row = joining.concatenate([ad_util.reshaped(x, (x.size,)) for x in values], 0)
    total = across_reduce_p.bind(row, **group[0].params)
    ends = itertools.accumulate(x.size for x in values)
    for x, end in zip(values, ends, strict=True):
        out = ad_util.reshaped(slicing.part(total, end - x.size, end), x.shape)
        yield convert.converted(out, x.dtype, x.weak_type)
