"""How layouts go through operations with programs inside: calls, branches and loops.

Each program is partitioned for the layouts of its inputs.  Builds on `primitives.layouts`.
Chapter 11, *Named axes and many devices*.  In JAX: XLA's partitioner.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import errors
from minijax.control_flow.program_rules import split_list
from minijax.core import Avals, Primitive
from minijax.core.jaxpr import ClosedJaxpr
from minijax.placement import engine
from minijax.primitives.layouts import OnBlocks, on_blocks


def inlined(ins: Avals, outs: Avals, *, field: str, **params: Any) -> OnBlocks:
    """Of an operation that only runs the program in a parameter."""
    return OnBlocks(None, params[field])


def called(ins: Avals, outs: Avals, *, field: str, **_: Any) -> OnBlocks:
    """Of one that stays, as its program must be kept apart."""
    def rule(ranks: Any, p: Primitive, blocks: list, **params: Any) -> list:
        program, layouts = ranks.program(params[field], layouts_of(blocks))
        return ranks.bound(p, blocks, layouts, **params | {field: program})
    return OnBlocks(rule)


@on_blocks
def branches(ranks: Any, p: Primitive, blocks: list, *, branches: tuple) -> list:
    """The results of all branches have the layout that cuts most."""
    operands = layouts_of(blocks[1:])
    layouts = [max(each, key=lambda layout: parts(ranks, layout)) for each in zip(
        *(ranks.program(branch, operands)[1] for branch in branches), strict=True)]
    programs = tuple(ranks.program(branch, operands, layouts)[0] for branch in branches)
    return ranks.bound(p, blocks, layouts, branches=programs)


# ── Python ───────────────────────────────────────────────────────────────────────────────────

@on_blocks
def debug_callback(ranks: Any, p: Primitive, blocks: list, *, callback: Any, **params: Any) -> list:
    """Python gets whole arrays, on the first rank."""
    blocks = [ranks.gathered(x, p.name, "Python gets whole arrays") for x in blocks]
    first = callback.called_where(lambda: engine.current.get().rank == ranks.grid.ranks[0])
    return ranks.bound(p, blocks, [], callback=first, **params)


class CalledOnce:
    """A function of the user that each process calls once: its ranks share the results."""

    def __init__(self, callback: Any, group: engine.Group, where: str):
        self.callback, self.group, self.where = callback, group, where

    def __call__(self, *buffers: np.ndarray) -> list:
        return engine.current.get().once(lambda: self.callback(*buffers), self.group, self.where)

    def evaluate(self, *buffers: np.ndarray) -> list:
        return engine.current.get().once(
            lambda: self.callback.evaluate(*buffers), self.group, self.where)

    def __repr__(self) -> str:
        return repr(self.callback)


def _call_once(ranks: Any, p: Primitive, blocks: list, *, callback: Any, result_avals: Avals,
               **params: Any) -> list:
    """Each process calls Python with whole arrays."""
    blocks = [ranks.gathered(x, p.name, "Python gets whole arrays") for x in blocks]
    once = CalledOnce(callback, ranks.grid.ranks, p.name)
    return ranks.bound(p, blocks, [((),) * aval.ndim for aval in result_avals], callback=once,
                       result_avals=result_avals, **params)


pure_callback = on_blocks(_call_once)


@on_blocks
def io_callback(ranks: Any, p: Primitive, blocks: list, **params: Any) -> list:
    if any(x.is_cut for x in blocks) and engine.current.get().ranks_are_processes:
        raise errors.with_cure(
            NotImplementedError("io_callback of an array that is cut over several devices: "
                                "no process has all of it."),
            "Gather it first, jax.lax.with_sharding_constraint(x, P()): each process then "
            "calls the function with the whole array.")
    return _call_once(ranks, p, blocks, **params)


# ── Loops ────────────────────────────────────────────────────────────────────────────────────

@on_blocks
def scan_loop(ranks: Any, p: Primitive, blocks: list, *, jaxpr: ClosedJaxpr, num_consts: int,
              num_carry: int, **params: Any) -> list:
    """Rows are whole along the axis of the loop."""
    consts, carry, rows = split_list(blocks, num_consts, num_carry)
    rows = [ranks.relayout(x, ((), *x.layout[1:]), "a loop runs along its first axis", p.name)
            for x in rows]
    body, consts, carry, of_rows, sums = loop_body(
        ranks, p, jaxpr, consts, carry, [layout[1:] for layout in layouts_of(rows)])
    starts = [x._replace(value=ranks.on_first(x.value, names, 0)) if names else x
              for x, names in zip(carry, sums, strict=False)]
    outs = ranks.bound(p, [*consts, *starts, *rows],
                       [*layouts_of(carry), *(((), *layout) for layout in of_rows)],
                       jaxpr=body, num_consts=num_consts, num_carry=num_carry, **params)
    return [x._replace(value=ranks.reduced(x.value, "add", names, p.name)) if names else x
            for x, names in zip(outs, sums, strict=True)]


@on_blocks
def while_loop(ranks: Any, p: Primitive, blocks: list, *, cond_jaxpr: ClosedJaxpr,
               cond_nconsts: int, body_jaxpr: ClosedJaxpr, body_nconsts: int) -> list:
    tests, consts, carry = split_list(blocks, cond_nconsts, body_nconsts)
    body, consts, carry, *_ = loop_body(ranks, p, body_jaxpr, consts, carry, None)
    test, _ = ranks.program(cond_jaxpr, layouts_of([*tests, *carry]))
    return ranks.bound(p, [*tests, *consts, *carry], layouts_of(carry), cond_jaxpr=test,
                       body_jaxpr=body, cond_nconsts=cond_nconsts, body_nconsts=body_nconsts)


def loop_body(ranks: Any, p: Primitive, body: ClosedJaxpr, consts: list, carry: list,
              rows: list | None) -> tuple[ClosedJaxpr, list, list, list, list]:
    """The body over blocks; its constants and first carry; the layouts of its other results; and
    the mesh axes along which results are summed after the loop, which has rows then.

    A carried value has the layout that cuts it most, of those of its first value and of what the
    body returns for it.  A constant has the one layout in which the body uses it, if it is one.
    """
    fixed, carried, of_rows = layouts_of(consts), layouts_of(carry), rows or []
    while True:
        _, outs = ranks.program(body, [*fixed, *carried, *of_rows])
        cut = [new if parts(ranks, new) > parts(ranks, old) else old
               for old, new in zip(carried, outs, strict=False)]
        if cut == carried:
            break
        carried = cut
    layouts_out = [*carried, *[None] * (len(outs) - len(carried))]
    fixed = ranks.uses_of_inputs(body, [*fixed, *carried, *of_rows], layouts_out)[:len(fixed)]
    program, outs, sums = ranks.loop_body(body, [*fixed, *carried, *of_rows], layouts_out,
                                          len(consts), len(carry), rows is not None)
    consts, carry = ([
        ranks.relayout(x, layout, "that is its layout in the loop", p.name)
        for x, layout in zip(blocks, layouts, strict=True)]
        for blocks, layouts in ((consts, fixed), (carry, carried)))
    return program, consts, carry, outs[len(carry):], sums


# ── Parts ────────────────────────────────────────────────────────────────────────────────────

def layouts_of(blocks: Sequence) -> list:
    return [x.layout for x in blocks]


def parts(ranks: Any, layout: Sequence) -> int:
    """How many different blocks a layout makes."""
    return math.prod(map(ranks.count, layout))
