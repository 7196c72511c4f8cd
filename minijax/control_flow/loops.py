"""The public loops: `scan`, `while_loop`, `fori_loop`, `map`.

Each stages its functions, checks their types, and binds `scan_p` or `while_p`.
Builds on `loop_rules`, `traced_functions`, `jit`.  Chapter 09, *Control flow*.
In JAX: `jax/_src/lax/control_flow/loops.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from minijax.util import caches, source_info
from minijax import config, core, dtypes, errors, tree_util
from minijax.control_flow.traced_functions import (
    Operands, TraceRequest, TracedFunction, capitalized, is_internal, listed, pcast_advice,
    type_differences)
from minijax.transforms.compiled import called
from minijax.transforms.jit import jit
from minijax.control_flow.loop_rules import (CARRY, CONST, ROW, TEST, Loop, Scan, While,
                                             scan_in_python, while_in_python)
from minijax.transforms.arguments import NotCarriedError
from minijax.transforms.array_refs import Ref
from minijax.transforms.discharge import (NotStagedError, carry, carrying_refs, check_distinct,
                                          discharged)
from minijax.control_flow.program_rules import rearranged, split_list
from minijax.core.vmap import vmap_flat, without_axis
from minijax.core.dce import used_inputs
from minijax.core.jaxpr import partition_list
from minijax.primitives import algebra, comparison
from minijax.primitives.convert import converted
from minijax.primitives.ad_util import batch_to, on_mesh, reshaped
from minijax.primitives.joining import concatenate, stack
from minijax.primitives.slicing import index_leading, slice_in_dim
from minijax.core.tracing import FlatFunction, is_tracer


# ── The state of a loop ──────────────────────────────────────────────────────────────────────

class Carry(Operands):
    """The carry of a loop, whose types its body must keep; `kind` names the loop in messages."""

    def __init__(self, init: Any, kind: str, traced_for: str):
        super().__init__(init)
        self.kind, self.traced_for = kind, traced_for

    def staged(self, f: Callable, *others: Any, carry_of: Callable = lambda out: out
               ) -> TracedFunction:
        """The body of the loop; `carry_of` takes the carry out of its result."""
        body = TraceRequest(f, (self.types, *others), self.traced_for).traced()
        if self.adapted(carry_of(body.out_types)):
            body = TraceRequest(f, (self.types, *others), self.traced_for).traced()
        while self.cast(f, tree_util.tree_leaves(carry_of(body.out_types))):
            body = TraceRequest(f, (self.types, *others), self.traced_for).traced()
        return body

    def cast(self, f: Callable, out_avals: core.Avals) -> bool:
        """Take values as varying along the axes of a mesh along which the body has them vary, and
        sharded as the body has them, if it is part of the package: users cast theirs.  Whether any
        changed.
        """
        fewer = [i for i, (x, out) in enumerate(zip(self.values, out_avals, strict=False))
                 if out.vma - x.aval.vma or out.explicit_sharding and not x.aval.explicit_sharding]
        if not (fewer and is_internal(f)):
            return False
        for i in fewer:
            self.leaves[i] = self.values[i] = on_mesh(self.values[i], out_avals[i])
        return True

    def adapted(self, out_types: Any) -> bool:
        """Convert weakly typed values to the dtypes that the body returns; whether any changed."""
        out_avals, out_tree = tree_util.tree_flatten(out_types)
        if out_tree != self.tree:
            return False
        changed = False
        for i, (x, out) in enumerate(zip(self.values, out_avals, strict=True)):
            if x.weak_type and x.dtype != out.dtype:
                self.leaves[i] = self.values[i] = converted(x, dtypes.result_type(x, out))
                changed = True
        return changed

    def invariants(self, body: TracedFunction) -> list[bool]:
        """Which values the body returns as they are: constants of the loop."""
        jaxpr = body.program.jaxpr
        carry = jaxpr.invars[len(body.consts):][:len(self.values)]
        return [v is jaxpr.outvars[i] for i, v in enumerate(carry)]

    def check(self, f: Callable, out_types: Any) -> None:
        """Refuse a body that changes the tree or a type of the carry."""
        out_avals, out_tree = tree_util.tree_flatten(out_types)
        what = f"{self.kind} body function carry input and carry output must have"
        name = source_info.position_name(source_info.parameters_of(f), 0).partition("[")[0]

        def part(path: tuple) -> str:
            return f"the input carry {'component ' if path else ''}{name}{tree_util.keystr(path)}"
        if out_tree != self.tree:
            lines = (f"the input tree structure is:\n{self.tree}\nthe output tree structure is:\n"
                     f"{out_tree}") if out_types is None else capitalized(listed([
                         f"{part(path)} is a {have} but the corresponding component of the carry "
                         f"output is a {got}, so {why}" for path, have, got, why
                         in tree_util.equality_errors(self.types, out_types)], "\n"))
            raise TypeError(f"{what} the same pytree structure, but they differ:\n\n{lines}\n\n"
                            "Revise the function so that the carry output has the same pytree "
                            "structure as the carry input.")
        parts = [part(path) for path, _ in tree_util.tree_flatten_with_path(self.types)[0]]
        rows = [*zip(parts, [x.aval for x in self.values], out_avals, strict=True)]
        if wrong := type_differences((where, aval, "output carry component", out)
                                     for where, aval, out in rows):
            advice = pcast_advice(
                (aval, out, f", to the initial carry value corresponding to {where}")
                for where, aval, out in rows)
            raise TypeError(f"{what} equal types, but they differ:\n\n" + capitalized(listed(
                wrong, "\n")) + f"\n\n{advice}Revise the function so that all output types match "
                "the corresponding input types.")


# ── scan, map ────────────────────────────────────────────────────────────────────────────────

def scan(f: Callable, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False,
         unroll: int | bool = 1, _split_transpose: bool = False) -> tuple[Any, Any]:
    """Run a function over the leading axis of arrays, with a carry from step to step.

    Args:
      f: ``(carry, x) -> (carry, y)``; the carry keeps its tree, shapes and dtypes.
      init: the first carry, a tree of arrays.
      xs: a tree of arrays with the same leading axis, or None; a reference gives one to each row.
      length: the number of steps, needed where `xs` has no leaves.
      reverse: go from the last row to the first.
      unroll: the number of steps in one iteration of the compiled loop; True for all of them.

    Returns:
      The last carry, and the `y` of every step, stacked along a leading axis.

    Raises:
      ValueError: when the leading axes differ, or no length is given.
      TypeError: when the carry changes its tree or type.

    >>> total, sums = scan(lambda c, x: (c + x, c + x), 0, np.arange(4))
    >>> total, sums
    (Array(6, dtype=int32), Array([0, 1, 3, 6], dtype=int32))
    """
    if not callable(f):
        raise TypeError("lax.scan: f argument should be a callable.")
    if is_tracer(unroll):
        raise errors.ConcretizationTypeError(
            unroll, "The `unroll` argument to `scan` expects a concrete `int` or `bool` value.")
    if not isinstance(unroll, int) or unroll < 0:
        raise ValueError("`unroll` must be a `bool` or a non-negative `int`.")
    leaves, tree = tree_util.tree_flatten(xs)
    has_rows = any(core.is_ref(x) for x in leaves)  # that are references
    rows = Operands([x.read() if core.is_ref(x) else x for x in leaves] if has_rows else xs)
    steps = _loop_length(rows.values, length)

    def row(i: int) -> Any:
        return tree_util.tree_unflatten(tree, [
            y.at[i] if core.is_ref(y) else index_leading(x, i)
            for x, y in zip(rows.values, leaves, strict=True)])
    if config.disable_jit.value:
        return _scan_in_python(f, init, row, steps, reverse)
    if has_rows:
        check_distinct(leaves, source_info.describe(f, (None, xs), {}, "scan"))
    body = _of_row_values(f, leaves, tree) if has_rows else f

    def with_refs(refs: Sequence[Ref], values: list) -> tuple[Any, list]:
        def body_with_refs(state: tuple, x: Any) -> tuple[tuple, Any]:
            (carry, y), values = discharged(body, refs)(state[1], state[0], x)
            return (carry, values), y
        (last, values), ys = _scan(body_with_refs, (init, values), rows, steps, reverse, unroll)
        return (last, ys), values
    try:
        last, ys = _scan(body, init, rows, steps, reverse, unroll)
    except NotCarriedError as error:
        try:
            last, ys = carrying_refs(with_refs, carry(error, []))
        except NotStagedError:
            return _scan_in_python(f, tree_util.tree_map(core.as_value, init), row, steps, reverse)
    if has_rows:
        ys, new_values = ys
        for ref, value in zip(filter(core.is_ref, leaves), new_values, strict=True):
            ref.write(value)
    return last, ys


def _of_row_values(f: Callable, leaves: Sequence[Any], tree: tree_util.PyTreeDef) -> Callable:
    """The body of a loop over rows of references, on those of their values: it returns new ones."""
    def body(carry: Any, values: list) -> tuple[Any, Any]:
        row = [Ref(x) if core.is_ref(y) else x for x, y in zip(values, leaves, strict=True)]
        out = f(carry, tree_util.tree_unflatten(tree, row))
        return _carry_of(out), (out[1], [x.read() for x in row if core.is_ref(x)])
    return body


def _scan(f: Callable, init: Any, rows: Operands, steps: int, reverse: bool, unroll: int | bool
          ) -> Any:
    row_types = rows.tree.unflatten_types([without_axis(x.aval, 0) for x in rows.values])
    carry = Carry(init, "scan", "scan")
    body = carry.staged(f, row_types, carry_of=_carry_of)
    carry.check(f, _carry_of(body.out_types))
    if isinstance(unroll, bool):
        unroll = max(steps, 1) if unroll else 1
    loop = Scan(body.program, len(body.consts), len(carry.values), steps, bool(reverse), unroll)
    outs = called(lambda: _run_loop(loop, body, carry, carry.invariants(body), rows.values),
                  lambda: _scan_in_python(jit(f), init, lambda i: tree_util.tree_unflatten(
                      rows.tree, [index_leading(x, i) for x in rows.values]), steps, reverse))
    return body.tree_of(outs)


def _run_loop(loop: Loop, body: TracedFunction, carry: Carry, invariant: Sequence[bool],
              rows: Sequence[Any] = (), test_consts: Sequence[Any] = ()) -> list:
    """The outputs of a loop, which computes only those that its body does not forward.

    `invariant` says which parts of the carry are constants.
    """
    jaxpr = body.program.jaxpr
    consts, state, row = split_list(range(len(jaxpr.invars)), len(body.consts), len(invariant))
    copied: dict[Any, Any] = {jaxpr.invars[i]: x for i, x in zip(row, rows, strict=True)}
    forwarded = [*(x if fixed else None for x, fixed in zip(carry.leaves, invariant, strict=True)),
                 *(copied.get(y) for y in jaxpr.outvars[len(invariant):])]
    computed = [i for i, x in enumerate(forwarded) if x is None]
    outs = iter(loop.run(
        rearranged(body.program, [*state, *consts, *row], computed),
        [*[TEST] * len(test_consts), *(CONST if fixed else CARRY for fixed in invariant),
         *[CONST] * len(consts), *[ROW] * len(row)],
        [*test_consts, *carry.values, *body.consts, *rows],
        [CARRY if i < len(invariant) else ROW for i in computed]))
    return [next(outs) if x is None else x for x in forwarded]


def _loop_length(rows: Sequence[Any], length: int | None) -> int:
    if any(x.ndim == 0 for x in rows):
        scalars = ", ".join(str(x) for x in rows if x.ndim == 0)
        raise ValueError(f"scan got value with no leading axis to scan over: {scalars}.")
    sizes = [x.shape[0] for x in rows]
    if any(x.aval.sharding.spec[0] for x in rows if x.aval.explicit_sharding):
        raise ValueError("0th dimension of all xs should be replicated. Got "
                         + ", ".join(str(x.aval.sharding.spec) for x in rows))
    if length is None:
        if not sizes:
            raise ValueError("scan got no values to scan over and `length` not provided.")
        if len(set(sizes)) > 1:
            raise ValueError("scan got values with different leading axis sizes: "
                             f"{', '.join(str(size) for size in sizes)}.")
        return sizes[0]
    steps = int(core.concrete_or_error(length, (
        "The `length` argument to `scan` expects a concrete `int` value. For scan-like iteration "
        "with a dynamic length, use `while_loop` or `fori_loop`.")))  # type: ignore[arg-type]
    if any(size != steps for size in sizes):
        raise ValueError(f"scan got `length` argument of {steps} which disagrees with leading "
                         f"axis sizes {sizes}.")
    return steps


def _carry_of(out: Any) -> Any:
    """The carry in the result of a scan's body.

    Raises:
      TypeError: when the result is not a pair.
    """
    if not (isinstance(out, tuple | list) and len(out) == 2):
        weak = "~" if isinstance(out, core.ShapedArray) and out.weak_type else ""
        shown = weak + out.str_long() if isinstance(out, core.ShapedArray) else out
        raise errors.with_cure(TypeError(f"scan body output must be a pair, got {shown}."),
                               "Return (carry, output); the output may be None.")
    return out[0]


def _scan_in_python(f: Callable, carry: Any, row: Callable[[int], Any], steps: int, reverse: bool
                    ) -> tuple[Any, Any]:
    """For `disable_jit`: the loop a reader can step through."""
    if not steps:
        raise ValueError("zero-length scan is not supported in disable_jit() mode because the "
                         "output type is unknown.")
    carry, ys = scan_in_python(f, carry, row, steps, reverse)
    return carry, tree_util.tree_map(lambda *parts: stack([core.as_value(y) for y in parts]), *ys)


def map(f: Callable, xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply a function to each row of arrays, one after the other, and stack the results.

    Args:
      f: a function of one row (a tree of arrays).
      xs: a tree of arrays with the same leading axis.
      batch_size: the number of rows to compute at a time, by `vmap`; None or 0: one, without it.

    Returns:
      The tree of results, stacked along a leading axis.

    Raises:
      ValueError: when the leading axes differ or there is none.

    >>> map(lambda x: x * x, np.arange(4))
    Array([0, 1, 4, 9], dtype=int32)
    """
    if not batch_size:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    operands = Operands(((xs,), {}))
    rows = operands.values
    flat, length = FlatFunction(f, operands.tree), _loop_length(rows, None)

    def each_row(rows: Sequence[Any], count: int) -> list:
        outs, dims = core.leaving_no_tracer(vmap_flat)(flat, count, None, rows, [0] * len(rows))
        return [batch_to(x, d, 0, count) for x, d in zip(outs, dims, strict=True)]

    pieces, whole = [], length - length % batch_size
    if whole:
        shape = whole // batch_size, batch_size
        batches = [reshaped(slice_in_dim(x, 0, whole), (*shape, *x.shape[1:])) for x in rows]
        stacked = scan(lambda _, part: (None, each_row(part, batch_size)), None, batches)[1]
        pieces.append([reshaped(y, (whole, *y.shape[2:])) for y in stacked])
    if whole < length or not length:
        pieces.append(each_row([slice_in_dim(x, whole, length) for x in rows], length - whole))
    outs = [concatenate(ys, 0) for ys in zip(*pieces, strict=True)]
    return flat.result(outs)


# ── while_loop, fori_loop ────────────────────────────────────────────────────────────────────

def while_loop(cond_fun: Callable, body_fun: Callable, init_val: Any) -> Any:
    """Repeat a function while a condition is true.

    Args:
      cond_fun: takes the state, returns a boolean scalar.
      body_fun: takes the state, returns the next one: same tree, shapes and dtypes.
      init_val: the first state, a tree of arrays.

    Returns:
      The first state for which the condition is false.

    Raises:
      TypeError: when the condition gives no boolean scalar, or the state changes its type.

    >>> while_loop(lambda x: x < 10, lambda x: x * 2, 1)
    Array(16, dtype=int32, weak_type=True)
    """
    if not (callable(body_fun) and callable(cond_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    if config.disable_jit.value:
        try:
            return while_in_python(cond_fun, body_fun, tree_util.tree_map(core.as_value, init_val))
        except errors.ConcretizationTypeError:
            pass  # the condition depends on a tracer, of vmap for instance
    try:
        return _while(cond_fun, body_fun, init_val)
    except NotCarriedError as error:
        caught = error
    try:
        return carrying_refs(lambda refs, values: _while(
            lambda state: discharged(cond_fun, refs)(state[1], state[0])[0],
            lambda state: discharged(body_fun, refs)(state[1], state[0]), (init_val, values)),
            carry(caught, []))
    except NotStagedError as error:
        try:
            return while_in_python(cond_fun, body_fun, tree_util.tree_map(core.as_value, init_val))
        except errors.ConcretizationTypeError:
            raise error from None


def _while(cond_fun: Callable, body_fun: Callable, init_val: Any) -> Any:
    carry = Carry(init_val, "while_loop", "while_body")
    body = carry.staged(body_fun)
    condition = TracedFunction.of(cond_fun, (carry.types,), "while_cond")
    _check_condition(condition)
    carry.check(body_fun, body.out_types)
    return body.tree_of(called(lambda: _run_while(condition, body, carry),
                               lambda: while_in_python(cond_fun, jit(body_fun), init_val)))


def _run_while(condition: TracedFunction, body: TracedFunction, carry: Carry) -> list:
    """The last state; an invariant is a constant only where the condition does not read it."""
    is_read = used_inputs(condition.program)
    test_consts, tested = split_list(range(len(is_read)), len(condition.consts))
    invariant = [fixed and not is_read[i]
                 for fixed, i in zip(carry.invariants(body), tested, strict=True)]
    program = rearranged(condition.program,
                         [*test_consts, *partition_list(tested, invariant)[False]])
    return _run_loop(While(program, len(test_consts), body.program, len(body.consts)), body, carry,
                     invariant, test_consts=condition.consts)


def _check_condition(condition: TracedFunction) -> None:
    got = None
    if not tree_util.treedef_is_leaf(condition.out_tree) or not condition.out_avals:
        got = f"pytree {condition.out_tree}"
    elif (aval := condition.out_avals[0]).shape != () or aval.dtype != np.bool_:
        got = f"output type(s) {condition.out_avals}"
    if got:
        raise TypeError(f"cond_fun must return a boolean scalar, but got {got}.")


def fori_loop(lower: Any, upper: Any, body_fun: Callable, init_val: Any, *,
              unroll: int | bool | None = None) -> Any:
    """Repeat a function for each integer of a range.

    With bounds that are known while tracing it is a `scan`, and has a reverse derivative.

    Args:
      lower: the first integer.
      upper: the integer at which to stop.
      body_fun: ``(i, state) -> state``.
      init_val: the first state, a tree of arrays.
      unroll: as of `scan`, where the bounds are known.

    Returns:
      The last state.

    Raises:
      TypeError, ValueError: for bounds that are no scalars of one type, a state that changes its
        type, `unroll` where a bound is not known.

    >>> fori_loop(0, 5, lambda i, x: x + i, 0)
    Array(10, dtype=int32, weak_type=True)
    """
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    first, last = _bounds(lower, upper)
    if core.is_concrete(first) and core.is_concrete(last):
        start, stop = int(first), int(last)
        if config.disable_jit.value:
            return functools.reduce(lambda x, i: body_fun(i, x), range(start, stop), init_val)
        return scan(_fori_bodies[body_fun].of_scan, (start, init_val), None, max(stop - start, 0),
                    unroll=1 if unroll is None else unroll)[0][1]
    if unroll is not None and unroll is not False and unroll != 1:
        raise ValueError("Can only use `unroll` in `fori_loop` if the loop bounds are statically "
                         "known.")
    return while_loop(_is_before, _fori_bodies[body_fun].of_while, (first, last, init_val))[2]


def _is_before(carry: tuple) -> Any:
    return comparison.lt_p.bind(*carry[:2])


class _ForiBodies(NamedTuple):
    """The body of a `fori_loop` as the bodies of a `scan` and of a `while_loop`."""

    of_scan: Callable
    of_while: Callable

    @classmethod
    def of(cls, body_fun: Callable) -> _ForiBodies:
        fun = caches.SameObject(body_fun).ref

        def of_while(loop_carry: tuple) -> tuple:
            i, *upper, state = loop_carry
            one = np.ones((), i.dtype)[()]
            return (algebra.add_p.bind(i, one.item() if i.weak_type else one), *upper,
                    fun()(i, state))

        def of_scan(loop_carry: tuple, _: None) -> tuple[tuple, None]:
            return of_while(loop_carry), None

        def described(loop_carry: tuple, *_: None) -> source_info.DebugInfo:
            i, *upper, state = loop_carry
            info = source_info.describe(fun(), (i, state), {}, "fori_loop")
            return replace(info, names=lambda: (
                info.arg_names[0], *[None] * len(upper), *info.arg_names[1:]))
        for body in (of_while, of_scan):
            vars(body).update(stands_for_internal=is_internal(body_fun), debug_info_of=described)
        return cls(of_scan, of_while)


# The same bodies for the same function, so that they are traced once.
_fori_bodies: caches.OfObjects[_ForiBodies] = caches.OfObjects(_ForiBodies.of)


def _bounds(lower: Any, upper: Any) -> tuple[Any, Any]:
    """The bounds with one dtype; a Python integer adapts to a signed integer."""
    first, last = bounds = core.as_value(lower), core.as_value(upper)
    if first.ndim or last.ndim:
        raise TypeError("lower and upper arguments to fori_loop must be scalars, got shapes "
                        f"{first.shape} and {last.shape}")
    if first.dtype == last.dtype:
        return bounds
    weak, strong = bounds if first.weak_type else (last, first)
    signed = all(dtypes.issubdtype(x.dtype, np.signedinteger) for x in bounds)
    if not signed or not weak.weak_type or strong.weak_type:
        raise TypeError("lower and upper arguments to fori_loop must have equal types, "
                        f"got {first.dtype} and {last.dtype}")
    first, last = (x if x is strong else converted(x, strong.dtype) for x in bounds)
    return first, last
