"""Linear operations that are given with their transposes; roots of functions.

Stands on `custom_jvp_vjp`, `compiled`.  Chapter 10, *Your own rules*.
In JAX: `jax/_src/lax/control_flow/solves.py`, `jax/_src/custom_derivatives.py` (`linear_call`).
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import tree_util
from minijax.core import (Axis, Example, ForPrimitive, Primitive, ShapedArray, Undefined, Zero,
                          cannot)
from minijax.transforms.compiled import ProgramPrimitive, running
from minijax.control_flow.traced_bodies import Body, share_consts
from minijax.control_flow.cond_scan_while import Carry
from minijax.custom.custom_jvp_vjp import SymbolicZero, custom_jvp, zero_from_primal
from minijax.control_flow.program_rules import has_tangent, split_list
from minijax.core.jvp import jvp_flat
from minijax.core.linearize import linearize_flat
from minijax.core.partial_eval import separate_known_eqns
from minijax.core.transpose import transpose_jaxpr
from minijax.core.vmap import Dim, batch_jaxpr, batch_to
from minijax.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.primitives import algebra
from minijax.primitives.ad_util import instantiate
from minijax.core.tracing import stage


# ── The block ────────────────────────────────────────────────────────────────────────────────

class Directions(NamedTuple):
    """The programs of a linear operation, all of [residuals, linear arguments].

    The results x for arguments b may solve an equation ``A x = b``; then it says how they depend
    on the residuals.  Behind them `forward` may return more, which is constant.
    """

    forward: ClosedJaxpr
    backward: ClosedJaxpr | None
    equation: ClosedJaxpr | None = None
    back_equation: ClosedJaxpr | None = None

    def transposed(self) -> "Directions":
        if self.backward is None:
            raise TypeError("transpose_solve required for backwards mode automatic "
                            "differentiation of custom_linear_solve")
        return Directions(self.backward, self.forward, self.back_equation, self.equation)

    def bind(self, p: Primitive, residuals: Sequence[Any], linear: Sequence[Any]) -> list:
        return p.bind_list(*residuals, *map(instantiate, linear), num_res=len(residuals),
                           **self._asdict())


@ForPrimitive
def _jvp(p: Primitive, primals: Sequence[Any], tangents: Sequence[Any], *, num_res: int,
         **programs: Any) -> tuple[list, list]:
    directions, residuals = Directions(**programs), primals[:num_res]
    outs = directions.bind(p, residuals, primals[num_res:])
    moves, dots = split_list(tangents, num_res)
    if any(has_tangent(moves)):
        if directions.equation is None:
            raise NotImplementedError("linear_call is differentiated by its linear arguments only; "
                                      "what its residuals depend on must not vary.")
        xs = outs[:len(dots)]
        still = [Zero(x.aval.to_tangent_aval()) for x in xs]
        _, found = jvp_flat(jaxpr_as_fun(directions.equation), [*residuals, *xs], [*moves, *still])
        dots = [algebra.sub(instantiate(b), instantiate(r))
                for b, r in zip(dots, found, strict=True)]
    found = directions.bind(p, residuals, dots)[:len(dots)]
    return outs, [*found, *(Zero(x.aval.to_tangent_aval()) for x in outs[len(found):])]


@ForPrimitive
def _transpose(p: Primitive, cotangents: Sequence[Any], /, *args: Any, num_res: int,
               **programs: Any) -> list:
    residuals, linear = split_list(args, num_res)
    found = Directions(**programs).transposed().bind(p, residuals, cotangents[:len(linear)])
    return [*[None] * num_res, *(ct if isinstance(x, Undefined) else None
                                 for x, ct in zip(linear, found, strict=False))]


@ForPrimitive
def _batch(p: Primitive, axis: Axis, args: Sequence[Any], dims: Sequence[Dim], /, *, num_res: int,
           **programs: Any) -> tuple[list, list]:
    residuals = [d is not None for d in dims[:num_res]]
    args = [batch_to(x, d, 0, axis.size) if d is not None or i >= num_res else x
            for i, (x, d) in enumerate(zip(args, dims, strict=True))]

    def batched(program: Any) -> Any:
        return program and batch_jaxpr(
            program, axis.size, axis.name,
            [*residuals, *[True] * (len(program.in_avals) - num_res)],
            [True] * len(program.out_avals))[0]
    new = Directions(*map(batched, Directions(**programs)))
    outs = new.bind(p, args[:num_res], args[num_res:])
    return outs, [0] * len(outs)


def _examples() -> list[Example]:
    aval = ShapedArray((3,), np.float32)
    solve = stage(lambda a, b: [algebra.div(b, a)], [aval, aval])
    equation = stage(lambda a, x: [algebra.mul(a, x)], [aval, aval])
    a, b = np.array([0.5, -1.0, 2.0], np.float32), np.array([3.0, 0.25, -1.0], np.float32)
    return [Example((a, b), {"num_res": 1, **Directions(
        solve, solve, equation, equation)._asdict()})]


def given_both_ways(name: str, **options: Any) -> ProgramPrimitive:
    return ProgramPrimitive(
        name, **running("forward"), jvp=_jvp, transpose=_transpose, batch=_batch,
        split=cannot("it is linear in what is unknown"), examples=_examples, **options)


linear_call_p = given_both_ways("linear_call", users_transpose=True)
linear_solve_p = given_both_ways("custom_linear_solve")


# ── As users call them ───────────────────────────────────────────────────────────────────────

def linear_call(fun: Callable, fun_transpose: Callable, residual_args: Any, linear_args: Any
                ) -> Any:
    """Call a function that is linear in its second argument, and whose transpose you define.

    Args:
      fun: ``(residuals, x) -> y``, linear in ``x``.
      fun_transpose: ``(residuals, ct) -> cotangent of x``.
      residual_args: a tree of arrays, which must not vary.
      linear_args: a tree of arrays.

    Returns:
      What `fun` returns.

    Raises:
      TypeError: when the transpose does not return the tree of `linear_args`.

    >>> import minijax
    >>> f = lambda x: linear_call(lambda r, x: x / r, lambda r, ct: ct / r, 4.0, x)
    >>> f(2.0), minijax.linear_transpose(f, 2.0)(1.0)
    (Array(0.5, dtype=float32, weak_type=True), (Array(0.25, dtype=float32, weak_type=True),))
    """
    fixed, linear = Carry(residual_args, "linear_call"), Carry(linear_args, "linear_call")
    there = Body.of(fun, (fixed.types, linear.types), "linear_call")
    back = Body.of(fun_transpose, (fixed.types, there.out_types), "linear_call")
    if back.out_tree != linear.tree:
        raise TypeError("transpose output pytree structure must match that of linear inputs, got "
                        f"output structure {back.out_tree} and input structure {linear.tree}.")
    programs, consts = share_consts([there, back])
    return there.tree_of(Directions(*programs).bind(linear_call_p, [*consts, *fixed.values],
                                                    linear.values))


def custom_linear_solve(matvec: Callable, b: Any, solve: Callable[[Callable, Any], Any],
                        transpose_solve: Callable[[Callable, Any], Any] | None = None,
                        symmetric: bool = False, has_aux: bool = False) -> Any:
    """The x for which ``matvec(x) = b``, differentiated by this equation and not through `solve`.

    Args:
      matvec: a linear function from a tree of arrays to one of the same types.
      b: such a tree.
      solve: ``(matvec, b) -> x``.
      transpose_solve: ``(vecmat, b) -> x`` for the transposed function; for reverse derivatives.
      symmetric: whether `matvec` is its own transpose; `solve` then solves for that, too.
      has_aux: whether the two return ``(x, aux)``.

    Returns:
      What `solve` returns.

    Raises:
      TypeError: when a function returns another tree than `b`.
      ValueError: when it returns other shapes.

    >>> import minijax
    >>> def halved(a, b):
    ...     return custom_linear_solve(lambda x: a * x, b, lambda mv, b: b / a, symmetric=True)
    >>> minijax.grad(halved, (0, 1))(2.0, 3.0)
    (Array(-0.75, dtype=float32, weak_type=True), Array(0.5, dtype=float32, weak_type=True))
    """
    given = Carry(b, "custom_linear_solve")

    def checked(fun: Callable, name: str, has_aux: bool = False) -> Body:
        body = Body.of(fun, (given.types,), "custom_linear_solve")
        _check(f"{name}()", "b", body.out_types[0] if has_aux else body.out_types, given.types)
        return body

    matrix = checked(matvec, "matvec")
    bodies = [checked(lambda b: solve(matrix.called, b), "solve", has_aux), matrix]
    if symmetric or transpose_solve:
        back = matrix if symmetric else checked(_transposed(matrix, given), "vecmat")
        bodies += [checked(lambda ct: (transpose_solve or solve)(back.called, ct),
                           "transpose_solve", has_aux), back]
    programs, consts = share_consts(bodies)
    forward, equation, *rest = programs
    backward, back_equation = rest or (None, None)
    directions = Directions(forward, backward, equation, back_equation)
    return bodies[0].tree_of(directions.bind(linear_solve_p, consts, given.values))


def _transposed(matrix: Body, given: Carry) -> Callable:
    """The transpose of a matrix, from and to trees as it is itself."""
    num, count = len(matrix.consts), len(given.values)
    linear = [False] * num + [True] * count
    back, _ = transpose_jaxpr(separate_known_eqns(matrix.program, linear), linear,
                              matrix.out_avals, [True] * count)
    return lambda ct: tree_util.tree_unflatten(given.tree, jaxpr_as_fun(back)(
        *matrix.consts, *tree_util.tree_leaves(ct)))


def _check(who: str, whose: str, types: Any, wanted: Any) -> None:
    """Refuse a result that is not of the wanted tree and shapes."""
    (avals, tree), (wanted_avals, wanted_tree) = map(tree_util.tree_flatten, (types, wanted))
    if tree != wanted_tree:
        raise TypeError(f"{who} output pytree structure must match {whose}, got {tree} and "
                        f"{wanted_tree}.")
    shapes, wanted_shapes = ([a.shape for a in some] for some in (avals, wanted_avals))
    if shapes != wanted_shapes:
        raise ValueError(f"{who} output shapes must match {whose}, got {shapes} and "
                         f"{wanted_shapes}")


def custom_root(f: Callable, initial_guess: Any, solve: Callable[[Callable, Any], Any],
                tangent_solve: Callable[[Callable, Any], Any], has_aux: bool = False) -> Any:
    """The x for which ``f(x) = 0``, differentiated by this equation and not through `solve`.

    Args:
      f: a function from a tree of arrays to one of the same types.
      initial_guess: such a tree.
      solve: ``(f, initial_guess) -> x``.
      tangent_solve: ``(g, y) -> x`` with ``g(x) = y``, for a linear function.
      has_aux: whether `solve` returns ``(x, aux)``.

    Returns:
      What `solve` returns.

    Raises:
      TypeError: when a function returns another tree than `initial_guess`.
      ValueError: when it returns other shapes.

    >>> import minijax
    >>> def root(a):
    ...     return custom_root(lambda x: x * x - a, a, lambda f, x: minijax.numpy.sqrt(a),
    ...                        lambda g, y: y / g(1.0))
    >>> minijax.grad(root)(4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    guess = Carry(initial_guess, "custom_root")
    zero = Body.of(f, (guess.types,), "custom_root")
    _check("f()", "initial_guess", zero.out_types, guess.types)
    found = Body.of(lambda x: solve(f, x), (guess.types,), "custom_root")
    types = found.out_types[0] if has_aux else found.out_types
    _check("solve()", "initial_guess", types, guess.types)

    def step(x: Any, y: Any) -> Any:
        of_leaves = functools.partial(jaxpr_as_fun(zero.program), *zero.consts)
        _, slope = linearize_flat(of_leaves, tree_util.tree_leaves(x))
        return tangent_solve(lambda t: zero.tree_of(slope(*tree_util.tree_leaves(t))), y)
    direction = Body.of(step, (types, types), "custom_root")
    _check("tangent_solve()", "x", direction.out_types, types)
    programs, consts = share_consts([zero, found, direction])
    zero_of, found_of, direction_of = map(jaxpr_as_fun, programs)

    @custom_jvp
    def root(consts: list, guess: list) -> list:
        return found_of(*consts, *guess)

    @functools.partial(root.defjvp, symbolic_zeros=True)
    def rule(primals: Any, tangents: Any) -> tuple[list, list]:
        (consts, guess), (moves, _) = primals, tangents
        outs = root(consts, guess)
        xs = outs[:len(guess)]
        still = map(SymbolicZero.from_primal_value, xs)
        _, dots = jvp_flat(zero_of, [*consts, *xs], [
            Zero(t.aval) if isinstance(t, SymbolicZero) else t for t in (*moves, *still)])
        steps = direction_of(*consts, *xs, *map(instantiate, dots))
        return outs, [*map(algebra.neg, steps), *map(zero_from_primal, outs[len(xs):])]
    return found.tree_of(root(consts, guess.values))
