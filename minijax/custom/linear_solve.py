"""Linear functions with transposes that the user defines, linear solves, roots of functions.

Builds on `custom_jvp_vjp`, `compiled`.  Chapter 10, *Your own rules*.
In JAX: `jax/_src/lax/control_flow/solves.py`, `jax/_src/custom_derivatives.py` (`linear_call`).
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import core, tree_util
from minijax.core import (Axis, Example, ForPrimitive, Outs, Primitive, ShapedArray, Zero, cannot,
                          jvp, linearize, tracing, vmap)
from minijax.transforms.compiled import ProgramPrimitive, running
from minijax.control_flow.traced_functions import Operands, TracedFunction, share_consts
from minijax.custom.custom_jvp_vjp import SymbolicZero, custom_jvp, zero_from_primal
from minijax.control_flow.program_rules import has_tangent, separate_known_eqns, split_list
from minijax.core.transpose import transpose_jaxpr
from minijax.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.primitives import algebra


# ── The block ────────────────────────────────────────────────────────────────────────────────

class Directions(NamedTuple):
    """The programs of a linear function, all of [residuals, linear arguments].

    The results x for arguments b may solve ``A x = b``; `equation` then computes ``A x``, which
    gives their derivative by the residuals.  After them `forward` may return constant results.
    """

    forward: ClosedJaxpr
    equation: ClosedJaxpr | None = None
    backward: ClosedJaxpr | None = None
    back_equation: ClosedJaxpr | None = None

    def transposed(self) -> "Directions":
        if self.backward is None:
            raise TypeError("transpose_solve required for backwards mode automatic "
                            "differentiation of custom_linear_solve")
        return Directions(self.backward, self.back_equation, self.forward, self.equation)

    def bind(self, p: Primitive, residuals: Sequence[Any], linear: Sequence[Any]) -> list:
        return p.bind_list(*residuals, *map(core.instantiate, linear), num_res=len(residuals),
                           **self._asdict())


@ForPrimitive
def _jvp(p: Primitive, primals: list, tangents: list, *, num_res: int, **programs: Any) -> Outs:
    directions, residuals = Directions(**programs), primals[:num_res]
    outs = directions.bind(p, residuals, primals[num_res:])
    residual_tangents, linear_tangents = split_list(tangents, num_res)
    if any(has_tangent(residual_tangents)):
        if directions.equation is None:
            raise NotImplementedError("linear_call is differentiated by its linear arguments only; "
                                      "its residuals must not depend on differentiated values.")
        xs = outs[:len(linear_tangents)]
        zeros = [Zero(x.aval.to_tangent_aval()) for x in xs]
        _, changes = jvp.jvp_flat(jaxpr_as_fun(directions.equation), [*residuals, *xs],
                                  [*residual_tangents, *zeros])
        linear_tangents = [algebra.sub(core.instantiate(b), core.instantiate(change))
                           for b, change in zip(linear_tangents, changes, strict=True)]
    count = len(linear_tangents)
    return outs, [*directions.bind(p, residuals, linear_tangents)[:count],
                  *(Zero(x.aval.to_tangent_aval()) for x in outs[count:])]


@ForPrimitive
def _transpose(p: Primitive, cts: list, /, *args: Any, num_res: int, **programs: Any) -> list:
    count = len(args) - num_res
    outs = Directions(**programs).transposed().bind(p, args[:num_res], cts[:count])
    return [*[None] * num_res, *outs[:count]]


@ForPrimitive
def _batch(p: Primitive, axis: Axis, args: list, dims: list, /, *, num_res: int, **programs: Any
           ) -> Outs:
    batched = [d is not None or i >= num_res for i, d in enumerate(dims)]
    residuals, linear = split_list([core.batch_to(x, d, 0, axis.size) if b else x
                                    for x, d, b in zip(args, dims, batched, strict=True)], num_res)

    def on_batch(program: Any) -> Any:
        return program and vmap.batch_jaxpr(program, axis.cache_key, batched,
                                            [True] * len(program.out_avals))[0]
    outs = Directions(*map(on_batch, Directions(**programs))).bind(p, residuals, linear)
    return outs, [0] * len(outs)


def _examples() -> list[Example]:
    aval = ShapedArray((3,), np.float32)
    solve = tracing.stage(lambda a, b: [algebra.div(b, a)], [aval, aval])
    equation = tracing.stage(lambda a, x: [algebra.mul(a, x)], [aval, aval])
    a, b = np.array([0.5, -1.0, 2.0], np.float32), np.array([3.0, 0.25, -1.0], np.float32)
    return [Example((a, b), {"num_res": 1, **Directions(
        solve, equation, solve, equation)._asdict()})]


def linear_primitive(name: str, **options: Any) -> ProgramPrimitive:
    """A primitive whose parameters are `Directions`."""
    return ProgramPrimitive(
        name, **running("forward"), jvp=_jvp, transpose=_transpose, batch=_batch,
        split=cannot("it is linear in what is unknown"), examples=_examples, **options)


linear_call_p = linear_primitive("linear_call", users_transpose=True)
linear_solve_p = linear_primitive("custom_linear_solve", may_produce_nan=True)


# ── As users call them ───────────────────────────────────────────────────────────────────────

def linear_call(fun: Callable, fun_transpose: Callable, residual_args: Any, linear_args: Any
                ) -> Any:
    """Call a function that is linear in its second argument, with a custom transpose.

    Args:
      fun: ``(residuals, x) -> y``, linear in ``x``.
      fun_transpose: ``(residuals, ct) -> cotangent of x``.
      residual_args: a tree of arrays, by which the call has no derivative.
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
    residuals, linear = Operands(residual_args), Operands(linear_args)
    forward = TracedFunction.of(fun, (residuals.types, linear.types), "linear_call fun")
    backward = TracedFunction.of(fun_transpose, (residuals.types, forward.out_types),
                                 "linear_call fun_transpose")
    if backward.out_tree != linear.tree:
        raise TypeError("transpose output pytree structure must match that of linear inputs, got "
                        f"output structure {backward.out_tree} and input structure {linear.tree}.")
    (program, transpose), consts = share_consts([forward, backward])
    return forward.tree_of(Directions(program, backward=transpose).bind(
        linear_call_p, [*consts, *residuals.values], linear.values))


def custom_linear_solve(matvec: Callable, b: Any, solve: Callable[[Callable, Any], Any],
                        transpose_solve: Callable[[Callable, Any], Any] | None = None,
                        symmetric: bool = False, has_aux: bool = False) -> Any:
    """The solution x of ``matvec(x) = b``; its derivative is that of the equation, not of `solve`.

    Args:
      matvec: a linear function from a tree of arrays to one of the same types.
      b: such a tree.
      solve: ``(matvec, b) -> x``.
      transpose_solve: ``(vecmat, b) -> x`` for the transposed function; for reverse derivatives.
      symmetric: whether `matvec` is its own transpose; then `transpose_solve` may be left out.
      has_aux: whether `solve` and `transpose_solve` return ``(x, aux)``.

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
    operands = Operands(b)

    def staged(name: str, fun: Callable, has_aux: bool = False) -> TracedFunction:
        return _staged_checked(name, fun, (operands.types,), "custom_linear_solve", "b",
                               operands.types, has_aux)

    matrix = staged("matvec", matvec)
    functions = [staged("solve", functools.partial(solve, matrix.called), has_aux), matrix]
    if symmetric or transpose_solve:
        transpose = matrix if symmetric else staged("vecmat", _transposed(matrix, operands))
        functions += [staged("transpose_solve", functools.partial(
            transpose_solve or solve, transpose.called), has_aux), transpose]
    programs, consts = share_consts(functions)
    return functions[0].tree_of(Directions(*programs).bind(linear_solve_p, consts, operands.values))


def _transposed(matrix: TracedFunction, operands: Operands) -> Callable:
    """The transpose of a matrix, from and to trees as it is itself."""
    linear = [False] * len(matrix.consts) + [True] * len(operands.values)
    transpose, _ = transpose_jaxpr(separate_known_eqns(matrix.program, linear), linear,
                                   matrix.out_avals, [True] * len(operands.values))
    return lambda ct: operands.tree.unflatten(jaxpr_as_fun(transpose)(
        *matrix.consts, *tree_util.tree_leaves(ct)))


def _staged_checked(name: str, fun: Callable, arg_types: tuple, traced_for: str, expected_name: str,
                    expected_types: Any, has_aux: bool = False) -> TracedFunction:
    """A traced function, refused unless its result has the expected tree and shapes."""
    traced = TracedFunction.of(
        fun, arg_types, f"{traced_for} {name}" if name.endswith("solve") else traced_for)
    (avals, tree), (expected_avals, expected_tree) = map(tree_util.tree_flatten, (
        traced.out_types[0] if has_aux else traced.out_types, expected_types))
    if tree != expected_tree:
        raise TypeError(f"{name}() output pytree structure must match {expected_name}, got {tree} "
                        f"and {expected_tree}.")
    shapes, expected_shapes = ([a.shape for a in each] for each in (avals, expected_avals))
    if shapes != expected_shapes:
        raise ValueError(f"{name}() output shapes must match {expected_name}, got {shapes} and "
                         f"{expected_shapes}")
    return traced


def custom_root(f: Callable, initial_guess: Any, solve: Callable[[Callable, Any], Any],
                tangent_solve: Callable[[Callable, Any], Any], has_aux: bool = False) -> Any:
    """The solution x of ``f(x) = 0``; its derivative is that of the equation, not of `solve`.

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
    guess = Operands(initial_guess)
    function = _staged_checked("f", f, (guess.types,), "custom_root", "initial_guess", guess.types)
    solution = _staged_checked("solve", functools.partial(solve, f), (guess.types,), "custom_root",
                               "initial_guess", guess.types, has_aux)
    types = solution.out_types[0] if has_aux else solution.out_types

    def solve_tangents(x: Any, y: Any) -> Any:
        of_leaves = functools.partial(jaxpr_as_fun(function.program), *function.consts)
        _, f_jvp = linearize.linearize_flat(of_leaves, tree_util.tree_leaves(x))
        return tangent_solve(lambda t: function.tree_of(f_jvp(*tree_util.tree_leaves(t))), y)
    tangents = _staged_checked("tangent_solve", solve_tangents, (types, types), "custom_root",
                               "x", types)
    programs, consts = share_consts([function, solution, tangents])
    flat_f, flat_solve, flat_solve_tangents = map(jaxpr_as_fun, programs)

    @custom_jvp
    def root(consts: list, guess: list) -> list:
        return flat_solve(*consts, *guess)

    @functools.partial(root.defjvp, symbolic_zeros=True)
    def rule(primals: Any, tangents: Any) -> Outs:
        (consts, guess), (const_tangents, _) = primals, tangents
        outs = root(consts, guess)
        xs = outs[:len(guess)]
        zeros = map(SymbolicZero.from_primal_value, xs)
        _, f_tangents = jvp.jvp_flat(flat_f, [*consts, *xs], [
            Zero(t.aval) if isinstance(t, SymbolicZero) else t for t in (*const_tangents, *zeros)])
        x_tangents = flat_solve_tangents(*consts, *xs, *map(core.instantiate, f_tangents))
        return outs, [*map(algebra.neg, x_tangents), *map(zero_from_primal, outs[len(xs):])]
    return solution.tree_of(root(consts, guess.values))
