"""What all blocks with functions of the user's inside share: staging bodies, running eagerly.

Stands on `stage`, `jit`.  Chapter 09, *Control flow*.
In JAX: `jax/_src/lax/control_flow/common.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes, source_info, tree_util
from minijax.core import ArrayImpl, Params, Primitive, ShapedArray
from minijax.higher_order import compiled
from minijax.jaxpr import ClosedJaxpr, Jaxpr, Var, eval_jaxpr, make_eqn, subjaxprs
from minijax.primitives.convert import convert_element_type_p
from minijax.stage import FlatFunction, hoist_consts, stage
from minijax.tree_util import equality_errors


class Body:
    """A function of trees staged as a program, with what it closed over as leading inputs.

    Args:
      fun: the function.
      arg_types: its arguments, with a `ShapedArray` for every array.
      traced_for: ``"scan"``, ``"cond"`` …, for messages.
    """

    def __init__(self, fun: Callable, arg_types: Sequence[Any], traced_for: str):
        avals, in_tree = tree_util.tree_flatten((tuple(arg_types), {}))
        self.info = source_info.describe(fun, tuple(arg_types), {}, traced_for)
        flat = FlatFunction(fun, in_tree, self.info)
        staged = stage(flat, avals, self.info)
        self.closed, self.consts = hoist_consts(staged)
        assert flat.out_tree is not None
        self.out_tree = flat.out_tree

    @property
    def argument_name(self) -> str:
        """What the function calls its first argument."""
        names = self.info.arg_names
        return names[0].split("[")[0] if names and names[0] else "carry"

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self.closed.out_avals


def share_consts(bodies: Sequence[Body]) -> tuple[list[ClosedJaxpr], list[Any]]:
    """The bodies' programs with the same leading inputs: all that any of them closed over."""
    consts = {id(c): c for body in bodies for c in body.consts}
    programs = []
    for body in bodies:
        own = body.closed.jaxpr.invars[:len(body.consts)]
        by_id = {id(c): v for c, v in zip(body.consts, own, strict=True)}
        leading = tuple(by_id.get(i) or Var(c.aval) for i, c in consts.items())
        rest = body.closed.jaxpr.invars[len(body.consts):]
        programs.append(ClosedJaxpr(body.closed.jaxpr.replace(invars=leading + rest),
                                    body.closed.consts))
    return programs, list(consts.values())


def with_output_types(closed: ClosedJaxpr, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The program with weak output types made strong, or the other way round, as wanted."""
    if all(have is want for have, want in zip(closed.out_avals, avals, strict=True)):
        return closed

    def cast(*args: Any) -> list:
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        return [x if x.aval is want else convert_element_type_p.bind(
                    x, new_dtype=want.dtype, weak_type=want.weak_type)
                for x, want in zip(outs, avals, strict=True)]
    return stage(cast, closed.in_avals, closed.jaxpr.debug_info)


def types_of(tree: Any) -> Any:
    """The same tree with the type of every array in its place.

    Raises:
      TypeError: for a leaf that is no array.
    """
    return tree_util.tree_map(_checked_type, tree)


def _checked_type(x: Any) -> ShapedArray:
    if isinstance(x, ShapedArray):
        return x
    if not core.is_array_like(x):
        raise TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type")
    return core.get_aval(x)


class Carry:
    """The state of a loop, whose types its body must keep; `kind` names the loop in messages."""

    def __init__(self, init: Any, kind: str):
        self.kind = kind
        self.given, self.tree = tree_util.tree_flatten(init)
        self.values = [core.as_value(x) for x in self.given if _checked_type(x)]

    @property
    def types(self) -> Any:
        return tree_util.tree_unflatten(self.tree, [x.aval for x in self.values])

    def adapted(self, out_types: Any) -> bool:
        """Let weakly typed values take the types the body returns; whether any did."""
        out_avals, out_tree = tree_util.tree_flatten(out_types)
        if out_tree != self.tree:
            return False
        changed = False
        for i, (x, out) in enumerate(zip(self.values, out_avals, strict=True)):
            if x.weak_type and x.dtype != out.dtype:
                dtype = dtypes.result_type(x, out)
                if dtype != x.dtype:
                    self.given[i] = self.values[i] = convert_element_type_p.bind(
                        x, new_dtype=np.dtype(dtype), weak_type=False)
                    changed = True
        return changed

    def kept_by(self, body: Body) -> list[bool]:
        """Which values the body hands on as they are: no state, but constants of the loop."""
        jaxpr = body.closed.jaxpr
        state = jaxpr.invars[len(body.consts):][:len(self.values)]
        return [v is jaxpr.outvars[i] for i, v in enumerate(state)]

    def check(self, out_types: Any, name: str) -> None:
        """Refuse a body that changes the tree or a type of the carry."""
        out_avals, out_tree = tree_util.tree_flatten(out_types)
        what = f"{self.kind} body function carry input and carry output must have"
        if out_tree != self.tree:
            place, have, got = _tree_difference(self.types, out_types)
            part = f"carry component {name}{place}" if place else f"carry {name}"
            raise TypeError(
                f"{what} the same pytree structure, but they differ:\n\nThe input {part} "
                f"is {have} but the corresponding component of the carry output is {got}.\n\n"
                "Revise the function so that the carry output has the same pytree structure "
                "as the carry input.")
        wrong = list(self._type_differences(out_avals, name))
        if wrong:
            lines = f"The {wrong[0]}." if len(wrong) == 1 else listed([f"the {w}" for w in wrong])
            raise TypeError(f"{what} equal types, but they differ:\n\n{lines}\n\nRevise the "
                            "function so that all output types match the corresponding input "
                            "types.")

    def _type_differences(self, out_avals: Sequence[ShapedArray], name: str) -> Iterator[str]:
        paths = [p for p, _ in tree_util.tree_flatten_with_path(self.types)[0]]
        for path, x, out in zip(paths, self.values, out_avals, strict=True):
            if (x.shape, x.dtype) != (out.shape, out.dtype):
                place = tree_util.keystr(path)
                part = f"carry component {name}{place}" if place else f"carry {name}"
                yield (f"input {part} has type {x.aval.str_long()} but the corresponding output "
                       f"carry component has type {out.str_long()}, so "
                       f"{how_types_differ(x.aval, out)}")


def listed(lines: Sequence[str]) -> str:
    """A sentence, or a list of several, for an error message."""
    if len(lines) == 1:
        return f"{lines[0]}."
    return ";\n".join(f"  * {line}" for line in lines) + "."


def how_types_differ(one: ShapedArray, two: ShapedArray) -> str:
    parts = []
    if one.dtype != two.dtype:
        parts.append("the dtypes do not match")
    if one.shape != two.shape:
        parts.append("the shapes do not match")
    return ", and ".join(parts)


def _tree_difference(one: Any, two: Any) -> tuple[str, str, str]:
    """Where two trees first differ, and what stands there in each."""
    path, have, got, why = next(iter(equality_errors(one, two)))
    return tree_util.keystr(path), f"a {have}", f"a {got}, so {why}"


def _is_complex(closed: ClosedJaxpr) -> bool:
    """Whether a program computes with complex numbers anywhere."""
    def among(jaxpr: Any) -> bool:
        found = [*jaxpr.invars, *(v for eqn in jaxpr.eqns for v in eqn.outvars)]
        return (any(v.aval.dtype.kind == "c" for v in found)
                or any(among(inner.jaxpr) for eqn in jaxpr.eqns for inner in subjaxprs(eqn.params)))
    return among(closed.jaxpr)


class CompiledPrimitive(Primitive):
    """A primitive with programs inside: called eagerly, it is compiled as a program of its own.

    `impl` stays its meaning, which the NumPy backend runs.
    """

    def evaluate(self, args: Sequence[Any], params: Params) -> list[ArrayImpl]:
        closed = self.as_program(tuple(x.aval for x in args), params)
        # JAX: compiles complex numbers, too.
        if compiled.backend() == "numpy" or closed.derived(
                ("complex",), lambda: _is_complex(closed)):
            return super().evaluate(args, params)
        outs = compiled.executable(closed, self.name)(*[x._buffer for x in args])
        return [ArrayImpl(out, aval) for out, aval in zip(outs, closed.out_avals, strict=True)]

    def as_program(self, avals: tuple[ShapedArray, ...], params: Params) -> ClosedJaxpr:
        """A program of this one equation, kept as long as the first program inside it."""
        def make() -> ClosedJaxpr:
            invars = tuple(Var(a) for a in avals)
            outvars = tuple(Var(a) for a in self.type_of(avals, params))
            eqn = make_eqn(invars, outvars, self, params)
            return ClosedJaxpr(Jaxpr((), invars, outvars, (eqn,), eqn.effects))
        key = ("program", self.name, avals, tuple(params.items()))
        return next(subjaxprs(params)).derived(key, make)
