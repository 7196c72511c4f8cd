"""How layouts go through operations with programs inside: calls, branches and loops.

Each program is partitioned for the layouts of its inputs.  Builds on `primitives.layouts`.
Chapter 11, *Named axes and many devices*.  In JAX: XLA's partitioner.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minijax.control_flow.program_rules import split_list
from minijax.core import Primitive
from minijax.core.jaxpr import ClosedJaxpr
from minijax.primitives.layouts import OnBlocks, Types


def inlined(ins: Types, outs: Types, *, field: str, **params: Any) -> OnBlocks:
    """Of an operation that only runs the program in a parameter."""
    return OnBlocks(None, params[field])


def called(ins: Types, outs: Types, *, field: str, **_: Any) -> OnBlocks:
    """Of one that stays, as its program must be kept apart."""
    def rule(ranks: Any, p: Primitive, blocks: list, **params: Any) -> list:
        program, layouts = ranks.program(params[field], layouts_of(blocks))
        return ranks.bound(p, blocks, layouts, **params | {field: program})
    return OnBlocks(rule)


def branches(ins: Types, outs: Types, **_: Any) -> OnBlocks:
    """The results of all branches have the layout that cuts most."""
    def rule(ranks: Any, p: Primitive, blocks: list, *, branches: tuple) -> list:
        operands = layouts_of(blocks[1:])
        layouts = [max(each, key=lambda layout: parts(ranks, layout)) for each in zip(
            *(ranks.program(branch, operands)[1] for branch in branches), strict=True)]
        programs = tuple(ranks.program(branch, operands, layouts)[0] for branch in branches)
        return ranks.bound(p, blocks, layouts, branches=programs)
    return OnBlocks(rule)


def scan_loop(ins: Types, outs: Types, **_: Any) -> OnBlocks:
    """Rows are whole along the axis of the loop."""
    def rule(ranks: Any, p: Primitive, blocks: list, *, jaxpr: ClosedJaxpr, num_consts: int,
             num_carry: int, **params: Any) -> list:
        consts, carry, rows = split_list(blocks, num_consts, num_carry)
        rows = [ranks.relayout(x, ((), *x.layout[1:]), "a loop runs along its first axis", p.name)
                for x in rows]
        body, carried, out_layouts = loop_body(
            ranks, jaxpr, layouts_of(consts), layouts_of(carry),
            [layout[1:] for layout in layouts_of(rows)])
        carry = [ranks.relayout(x, layout, "the layout of a carry", p.name)
                 for x, layout in zip(carry, carried, strict=True)]
        layouts = [*carried, *(((), *layout) for layout in out_layouts[num_carry:])]
        return ranks.bound(p, [*consts, *carry, *rows], layouts, jaxpr=body, num_consts=num_consts,
                     num_carry=num_carry, **params)
    return OnBlocks(rule)


def while_loop(ins: Types, outs: Types, **_: Any) -> OnBlocks:
    def rule(ranks: Any, p: Primitive, blocks: list, *, cond_jaxpr: ClosedJaxpr, cond_nconsts: int,
             body_jaxpr: ClosedJaxpr, body_nconsts: int) -> list:
        tests, consts, carry = split_list(blocks, cond_nconsts, body_nconsts)
        body, carried, _ = loop_body(ranks, body_jaxpr, layouts_of(consts), layouts_of(carry), [])
        carry = [ranks.relayout(x, layout, "the layout of a carry", p.name)
                 for x, layout in zip(carry, carried, strict=True)]
        test, _ = ranks.program(cond_jaxpr, [*layouts_of(tests), *carried])
        return ranks.bound(p, [*tests, *consts, *carry], carried, cond_jaxpr=test, body_jaxpr=body,
                     cond_nconsts=cond_nconsts, body_nconsts=body_nconsts)
    return OnBlocks(rule)


def loop_body(ranks: Any, body: ClosedJaxpr, consts: list, carry: list, rows: list
              ) -> tuple[ClosedJaxpr, list, list]:
    """The body over blocks, the layouts of the carry, and those of all its results.

    The layout of a carried value is the one that cuts it most, of its first value and of those
    that the body returns for it.
    """
    while True:
        _, outs = ranks.program(body, [*consts, *carry, *rows])
        cut = [new if parts(ranks, new) > parts(ranks, old) else old
               for old, new in zip(carry, outs, strict=False)]
        if cut == carry:
            break
        carry = cut
    program, outs = ranks.program(body, [*consts, *carry, *rows],
                                  [*carry, *[None] * (len(outs) - len(carry))])
    return program, carry, outs


# ── Parts ────────────────────────────────────────────────────────────────────────────────────

def layouts_of(blocks: Sequence) -> list:
    return [x.layout for x in blocks]


def parts(ranks: Any, layout: Sequence) -> int:
    """How many different blocks a layout makes."""
    return math.prod(map(ranks.count, layout))
