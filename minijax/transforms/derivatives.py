"""The public directional derivatives: `jvp`, `linearize`, `vjp`.

Builds on `core`.  Chapters 03 and 07.  In JAX: `jax/_src/api.py`.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any


from minijax import core, dtypes, tree_util
from minijax.util import lazily, source_info, tracebacks
from minijax.core import Array, ShapedArray, Zero, transpose
from minijax.transforms.arguments import check_function, flattened
from minijax.core.jvp import jvp_flat
from minijax.core.linearize import LinearProgram, linearize_flat
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.core.tracing import FlatFunction, check_arg

_tree_error = lazily.later("minijax.transforms.tangent_errors", "tree_error")
_type_error = lazily.later("minijax.transforms.tangent_errors", "type_error")


# ── Flat arguments and the trees around them ─────────────────────────────────────────────────

def unflattened_args(in_tree: tree_util.PyTreeDef, leaves: Sequence[Any]) -> tuple:
    """Tangents or cotangents of a function's leaves, in the trees of its arguments."""
    args: tuple = tree_util.tree_unflatten(in_tree, map(core.public_tangent, leaves))[0]
    return args


# ── Forward ──────────────────────────────────────────────────────────────────────────────────

def jvp(fun: Callable, primals: Sequence[Any], tangents: Sequence[Any],
        has_aux: bool = False) -> Any:
    """A function's value and its derivative along a direction.

    Args:
      fun: a function of arrays and trees of arrays.
      primals: the point: a tuple or list of arguments.
      tangents: the direction: the same trees, shapes and dtypes (`float0` for integers).
      has_aux: `fun` returns (result, aux); aux is passed through.

    Returns:
      ``(result, tangent of the result)``, and aux if asked for.

    Raises:
      TypeError: when primals and tangents differ in tree or dtype.
      ValueError: when they differ in shape.

    >>> jvp(lambda x: x * x, (3.0,), (1.0,))
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    if not (isinstance(primals, tuple | list) and isinstance(tangents, tuple | list)):
        raise TypeError("primal and tangent arguments to jax.jvp must be tuples or lists; found "
                        f"{type(primals).__name__} and {type(tangents).__name__}.")
    check_function(fun)
    flat, leaves = flattened(fun, tuple(primals), "jvp", has_aux)
    in_tree = (flat.in_tree.children()[0] if type(primals) is tuple else
               tree_util.tree_structure(primals))
    dots, dot_tree = tree_util.tree_flatten(tangents)
    if in_tree != dot_tree:
        raise TypeError("primal and tangent arguments to jax.jvp must have the same tree "
                        f"structure; primals have tree structure {in_tree} whereas tangents "
                        f"have tree structure {dot_tree}.")
    points = [check_arg(x) for x in leaves]
    directions = [_check_direction(x, check_arg(t)) for x, t in zip(points, dots, strict=True)]
    outs, out_dots = core.leaving_no_tracer(jvp_flat)(flat, points, directions, flat.debug_info)
    return flat.with_aux(flat.result(outs), flat.result(map(core.public_tangent, out_dots)))


def _check_direction(x: Array, t: Array) -> Array | Zero:
    want = x.aval.to_tangent_aval()
    if want.dtype != t.dtype:
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in "
            "case of int/bool primal dtype the tangent dtype must be float0."
            f"Got primal dtype {x.dtype} and so expected tangent dtype {want.dtype}, but got "
            f"tangent dtype {t.dtype} instead.")
    if x.shape != t.shape:
        raise ValueError("jvp called with different primal and tangent shapes;"
                         f"Got primal shape {x.shape} and tangent shape as {t.shape}")
    return Zero(want) if t.dtype == dtypes.float0 else t


# ── Linearize, vjp ───────────────────────────────────────────────────────────────────────────

class Derivative:
    """The derivative of a function of trees, without its residuals."""

    def __init__(self, flat: FlatFunction, primals: Sequence[Array], outs: Sequence[Array],
                 program: LinearProgram):
        self.in_tree, self.out_tree, self.info = flat.in_tree, flat.out_tree, flat.debug_info
        self.in_avals, self.out_avals = [x.aval for x in primals], [x.aval for x in outs]
        self.jaxpr, self.out_zeros = program.closed.jaxpr, program.out_zeros
        self.in_has_tangent = program.in_has_tangent

    def pull_back(self, residuals: Sequence[Any], cotangents: Sequence[Any],
                  requested: Sequence[bool] | None = None) -> list[Any]:
        """The cotangents of the arguments' leaves; None for those that are not requested."""
        requested = requested or [True] * len(self.in_avals)
        is_requested = [w for w, has in zip(requested, self.in_has_tangent, strict=True) if has]
        linear = [core.Undefined(v.aval) if ask else None
                  for v, ask in zip(self.jaxpr.invars, is_requested, strict=True)]
        places = zip(cotangents, self.out_zeros, strict=True)
        in_cts = iter(transpose.backward_pass(self.jaxpr, residuals, linear,
                                             [ct for ct, zero in places if zero is None]))
        return [next(in_cts) if has else Zero(aval.to_tangent_aval())
                for aval, has in zip(self.in_avals, self.in_has_tangent, strict=True)]

    def checked(self, cotangent: Any) -> list[Any]:
        """The leaves of a cotangent of the result, refused if their types differ."""
        cts, tree = tree_util.tree_flatten(cotangent)
        if tree != self.out_tree:
            raise _tree_error(self.info, self.out_tree, tree)
        return [_checked(aval, ct, True) for aval, ct in zip(self.out_avals, cts, strict=True)]

    @tracebacks.api_boundary
    def push(self, jaxpr: Jaxpr, residuals: Sequence[Any], *tangents: Any) -> Any:
        """The tangent of the result, by the program `jaxpr` of the derivative."""
        in_tree, _ = self.in_tree.children()
        dots, tree = tree_util.tree_flatten(tangents)
        if tree != in_tree:
            raise TypeError(f"expected {in_tree}, got {tree}")
        values = [_checked(aval, t, False)
                  for aval, t in zip(self.in_avals, dots, strict=True)]
        closed = ClosedJaxpr(jaxpr, tuple(residuals))
        run = LinearProgram(closed, self.in_has_tangent, self.out_zeros)
        return tree_util.tree_unflatten(self.out_tree, run(*values))


def at_point(fun: Callable, args: tuple, traced_for: str, has_aux: bool = False
             ) -> tuple[FlatFunction, list[Array], source_info.DebugInfo | None]:
    """The arguments of `linearize_flat`."""
    check_function(fun)
    flat, leaves = flattened(fun, args, traced_for, has_aux)
    stop = "." if traced_for == "vjp" else ""  # as in JAX
    return flat, [check_arg(x, stop) for x in leaves], flat.debug_info


class Linearized:
    """A function at a point: its value there, and its derivative as a program.

    Args:
      point: of `at_point`.
      linearized: its `linearize_flat`, called by the caller to save a frame.
    """

    def __init__(self, point: tuple[FlatFunction, list[Array], Any],
                 linearized: tuple[list[Array], LinearProgram]):
        (self.flat, self.primals, _), (self.outs, self.program) = point, linearized
        self.result = self.flat.result(self.outs)
        self.derivative = Derivative(self.flat, self.primals, self.outs, self.program)

    def pull_back(self, cotangents: Sequence[Any]) -> tuple:
        """The cotangents of the arguments."""
        return unflattened_args(self.flat.in_tree, self.derivative.pull_back(
            self.program.closed.consts, cotangents))


def linearize(fun: Callable, *primals: Any, has_aux: bool = False) -> Any:
    """A function's value, and its derivative there as a function of tangents.

    Args:
      fun: a function of arrays and trees of arrays.
      primals: the point.
      has_aux: `fun` returns (result, aux); aux is passed through.

    Returns:
      ``(result, derivative)``, and aux if asked for; the derivative repeats no primal work.

    Raises:
      ValueError: when the derivative is given tangents of other types.

    >>> y, dy = linearize(lambda x: x * x, 3.0)
    >>> y, dy(1.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    point = at_point(fun, primals, "linearize", has_aux)
    at = Linearized(point, core.leaving_no_tracer(linearize_flat)(*point))
    push = functools.partial(at.derivative.push, at.derivative.jaxpr)  # which programs read there
    return at.flat.with_aux(at.result, tree_util.Partial(push, at.program.closed.consts))


def no_reduce_axes(name: str, reduce_axes: Sequence[Hashable]) -> None:
    if reduce_axes:
        raise NotImplementedError(f"reduce_axes argument to {name} is deprecated")


def vjp(fun: Callable, *primals: Any, has_aux: bool = False,
        reduce_axes: Sequence[Hashable] = ()) -> Any:
    """A function's value, and the transpose of its derivative there.

    Args:
      fun: a function of arrays and trees of arrays.
      primals: the point.
      has_aux: `fun` returns (result, aux); aux is passed through.
      reduce_axes: empty; JAX refuses others, too.

    Returns:
      ``(result, pull)``, and aux if asked for.  `pull` is a `VJP`: it takes a cotangent of the
      result's tree and types, and returns a tuple with a cotangent for each argument.  It is a
      tree, whose leaves are the values that it remembers.

    Raises:
      ValueError: when `pull` is given a cotangent of another tree or type.

    >>> y, pull = vjp(lambda x, z: x * z, 3.0, 4.0)
    >>> pull(1.0)
    (Array(4., dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True))
    """
    no_reduce_axes("vjp", reduce_axes)
    point = at_point(fun, primals, "vjp", has_aux)
    at = Linearized(point, core.leaving_no_tracer(linearize_flat)(*point))
    return at.flat.with_aux(at.result, VJP.of(at))


# ── The pull-back, and destinations of cotangents ───────────────────────────────────────────────

@dataclass(frozen=True)
class Sentinel:
    """A named marker, equal only to itself."""


class GradValue(Sentinel):
    """Return the cotangent of an argument: the default."""


class DontWant(Sentinel):
    """Do not compute the cotangent of an argument."""


class GradRef(Sentinel):
    """The cotangent was added to a reference."""


class DidntWant(Sentinel):
    """The cotangent was not computed."""


class NotNeeded(Sentinel):
    """The backward pass does not need this argument."""


for _kind in (GradRef, DidntWant, NotNeeded):
    tree_util.register_pytree_node(_kind, lambda x: ((), type(x)), lambda kind, _: kind())

ad = types.SimpleNamespace(DidntWant=DidntWant, DontWant=DontWant, GradRef=GradRef,
                           GradValue=GradValue)


class VJP:
    """The transposed derivative of a function at a point: from its result's cotangent to its
    arguments'.  A tree, whose leaves are the residuals.

    args_res: the tuple of arguments, with `NotNeeded` in place of those that are no residuals
    opaque_residuals: the other ones
    """

    def __init__(self, derivative: Derivative, args_res: list, opaque_residuals: list,
                 places: Sequence[int | None]):
        self.derivative, self.places = derivative, places
        self.args_res, self.opaque_residuals = args_res, opaque_residuals

    @classmethod
    def of(cls, at: Linearized) -> VJP:
        where = {id(x): i for i, x in enumerate(at.primals)}
        places = tuple(where.get(id(x)) for x in at.program.closed.consts)
        kept = [x if i in places else NotNeeded() for i, x in enumerate(at.primals)]
        args = at.flat.in_tree.unflatten_types(kept)[0]
        return cls(at.derivative, list(args), [
            x for x, i in zip(at.program.closed.consts, places, strict=True) if i is None], places)

    in_tree = property(lambda self: self.derivative.in_tree.children()[0])
    out_tree = property(lambda self: self.derivative.out_tree)
    jaxpr = property(lambda self: self.derivative.jaxpr)
    _name = property(lambda self: self.derivative.info.func_name)

    @property
    def residuals(self) -> list[Any]:
        """Values of the constants of the derivative's program."""
        args = tree_util.tree_leaves(self.args_res, is_leaf=lambda x: isinstance(x, NotNeeded))
        others = iter(self.opaque_residuals)
        return [next(others) if i is None else args[i] for i in self.places]

    @tracebacks.api_boundary
    def __call__(self, out_ct: Any, *extra_args: Any) -> tuple:
        if extra_args:
            raise TypeError(
                f"\nThe function returned by `jax.vjp` applied to {self._name} was called with "
                f"{len(extra_args) + 1} arguments,\nbut functions returned by `jax.vjp` must be "
                "called with a single argument\ncorresponding to the single value returned by the "
                "function being differentiated\n(even if that returned value is a tuple or other "
                "container).\n")
        return unflattened_args(self.derivative.in_tree, self.derivative.pull_back(
            self.residuals, self.derivative.checked(out_ct)))

    def with_refs(self, *maybe_ct_refs: Any) -> Callable[[Any], tuple]:
        """The same, with destinations for the cotangents of the arguments.

        Args:
          maybe_ct_refs: for each leaf of the arguments, in their trees, a reference, to which the
            cotangent is added; `GradValue`, to have it returned; or `DontWant`, to have it not
            computed.

        >>> from minijax import new_ref
        >>> total = new_ref(10.0)
        >>> _, pull = vjp(lambda x, y: x * y, 3.0, 4.0)
        >>> pull.with_refs(total, ad.DontWant())(1.0), total
        ((GradRef(), DidntWant()), Ref(14., dtype=float32, weak_type=True))
        """
        wishes, tree = tree_util.tree_flatten(maybe_ct_refs)
        if tree != self.in_tree:
            raise ValueError("with_refs takes one reference, GradValue() or DontWant() for each "
                             f"array among the arguments, in their tree {self.in_tree}, but got "
                             f"{tree}")

        @tracebacks.api_boundary
        def pull(out_ct: Any) -> tuple:
            cotangents = self.derivative.pull_back(
                self.residuals, self.derivative.checked(out_ct),
                [not isinstance(wish, DontWant) for wish in wishes])
            return tree_util.tree_unflatten(self.in_tree, map(_handed_over, wishes, cotangents))
        return pull

    def __repr__(self) -> str:
        return (f"VJP({self._name}, args_res={self.args_res}, "
                f"opaque_residuals={self.opaque_residuals})")


def _handed_over(wish: Any, ct: Any) -> Any:
    """The returned value for an argument: its cotangent, or a marker."""
    if isinstance(wish, DontWant):
        return DidntWant()
    if not core.is_ref(wish):
        return core.public_tangent(ct)
    if not isinstance(ct, Zero):
        wish.addupdate(ct)
    return GradRef()


tree_util.register_pytree_node(
    VJP, lambda pull: ((pull.args_res, pull.opaque_residuals), (pull.derivative, pull.places)),
    lambda fixed, children: VJP(fixed[0], children[0], children[1], fixed[1]))


def _checked(x: ShapedArray, tangent: Any, is_of_vjp: bool) -> Any:
    """A tangent or cotangent, refused if its type does not match `x`."""
    t, want = check_arg(tangent), x.to_tangent_aval()
    # JAX: accepts any number of the right shape for a result without derivative
    fits = is_of_vjp and want.dtype == dtypes.float0 or want.dtype == t.dtype
    if want.shape != t.shape or not fits or want.vma != t.aval.vma and t.dtype != dtypes.float0:
        raise _type_error(x, t.aval, is_of_vjp)
    return Zero(want) if want.dtype == dtypes.float0 else t
