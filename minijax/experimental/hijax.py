"""Operations with rules of their own, which a subclass of `VJPHiPrimitive` defines.

Builds on `custom`.  In JAX: `jax/_src/hijax.py`, whose user-defined types are not here.
Source: JAX, *Custom derivative rules with hijax primitives*.
"""

import functools
from collections.abc import Hashable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from minijax import core, tree_util
from minijax.core.tracing import stage
from minijax.custom.custom_jvp_vjp import (Call, Rule, SymbolicZero, custom_call_primitive,
                                           custom_vjp, run_jvp_rule, run_vjp_rule)
from minijax.custom.custom_vmap import custom_vmap
from minijax.primitives.ad_util import batch_to, public_tangent
from minijax.primitives.analytic import cos_p, sin_p
from minijax.util import tracebacks

__all__ = ["VJPHiPrimitive"]


class AxisData(NamedTuple):
    """The axis of `vmap` that a rule for batches is told of: its size, and its name."""

    size: int
    name: Hashable = None
    spmd_name: Hashable = None
    explicit_mesh_axis: Hashable = None


class Accumulator:
    """What `vjp_bwd` adds the cotangent of one argument to."""

    def __init__(self, aval: core.ShapedArray):
        self.aval = aval
        self.total: Any = None

    def accum(self, cotangent: Any) -> None:
        """Add a cotangent; None adds nothing."""
        if cotangent is not None:
            self.total = cotangent if self.total is None else self.total + cotangent


def _zeros(x: Any) -> Any:
    return public_tangent(core.Zero(x.aval)) if isinstance(x, SymbolicZero) else x


class VJPHiPrimitive:
    """An operation on trees of arrays that has its own derivatives, and its own batches.

    The `__init__` of a subclass sets three attributes, and then calls this one.

    Args:
      in_avals: the types of the arguments, a tuple of trees.
      out_aval: the type of the result, a tree.
      params: what else the operation depends on, which becomes attributes, too.

    Raises:
      AttributeError: if one of the three is missing.

    >>> import minijax as jax
    >>> class Sine(VJPHiPrimitive):
    ...     def __init__(self, aval):
    ...         self.in_avals, self.out_aval, self.params = (aval,), aval, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return jax.numpy.sin(x)
    ...     def vjp_fwd(self, nzs_in, x):
    ...         return self(x), x
    ...     def vjp_bwd_retval(self, x, ct):
    ...         return (10 * ct * jax.numpy.cos(x),)
    >>> jax.grad(lambda x: Sine(jax.typeof(x))(x))(0.0)
    Array(10., dtype=float32, weak_type=True)
    """

    in_avals: tuple
    out_aval: Any
    params: dict[str, Hashable]

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        if self._defines("vjp_bwd") and self._defines("vjp_bwd_retval"):
            raise AttributeError(f"subclass {type(self)} should not override both `vjp_bwd` and "
                                 "`vjp_bwd_retval`")
        self.in_avals_flat, self.in_tree = tree_util.tree_flatten(tuple(self.in_avals))
        self.out_avals_flat, self.out_tree = tree_util.tree_flatten(self.out_aval)
        vars(self).update(self.params)
        self.check(*self.in_avals)

    def _defines(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(VJPHiPrimitive, name)

    def _missing(self, use: str, rules: str) -> NotImplementedError:
        return NotImplementedError(f"for {use} support, subclass {type(self)} must implement "
                                   f"{rules}")

    # -- rules of a subclass -------------------------------------------------------------------

    def expand(self, *args: Any) -> Any:
        """The result, by other operations."""
        raise NotImplementedError(f"subclass {type(self)} must implement `expand`")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> tuple:
        """The result, and residuals for `vjp_bwd`; `nzs_in` says which arguments have tangents."""
        raise self._missing("grad", "`vjp_fwd`")

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> tuple:
        """The cotangents of the arguments; None stands for zeros."""
        raise self._missing("grad", "`vjp_bwd` or `vjp_bwd_retval`")

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        """Add the cotangents of the arguments to a tree of accumulators, by their `accum`."""
        for accumulators, cts in zip(arg_accums, self.vjp_bwd_retval(res, outgrad), strict=True):
            flat, tree = tree_util.tree_flatten(accumulators)
            for each, ct in zip(flat, tree_util.flatten_axes("vjp_bwd_retval", tree, cts),
                                strict=True):
                each.accum(ct)

    def jvp(self, primals: tuple, tangents: tuple) -> tuple:
        """The result and its tangent."""
        raise self._missing("jvp", "`jvp`")

    def lin(self, nzs_in: Any, /, *primals: Any) -> tuple:
        """The result, and residuals for `linearized`."""
        raise self._missing("linearize", "`lin` and `linearized`")

    def linearized(self, residuals: Any, /, *tangents: Any) -> Any:
        """The tangent of the result."""
        raise self._missing("linearize", "`lin` and `linearized`")

    def batch(self, axis_data: Any, args: tuple, dims: tuple) -> tuple:
        """The results of a batch, and their batch dimensions."""
        raise self._missing("vmap", "`batch` or `batch_dim_rule`")

    def batch_dim_rule(self, axis_data: Any, dims: tuple, /) -> Any:
        """The batch dimensions of the results. It is not called: they follow from `expand`."""
        raise self._missing("vmap", "`batch` or `batch_dim_rule`")

    def check(self, *arg_tys: Any) -> None:
        """Refuse types of arguments."""

    # -- the operation -------------------------------------------------------------------------

    def __call__(self, *args: Any) -> Any:
        """The result; raises a `TypeError` for a tree or types that are not those declared."""
        self._check_types("arguments", args, self.in_tree, self.in_avals_flat)
        return _Operation(self)(*args)

    def _result(self, *args: Any) -> Any:
        out = self.expand(*args)
        self._check_types("a result", out, self.out_tree, self.out_avals_flat)
        return out

    def _check_types(self, what: str, values: Any, tree: Any, avals: list) -> None:
        leaves, found = tree_util.tree_flatten(values)
        types = [core.get_aval(x) for x in leaves]
        if found != tree or any((x.shape, x.dtype) != (y.shape, y.dtype)
                                for x, y in zip(types, avals, strict=True)):
            declared, given = (tree_util.tree_unflatten(t, [x.str_long() for x in some])
                               for t, some in ((tree, avals), (found, types)))
            raise TypeError(f"{type(self).__name__} declares {what} of type {declared}, "
                            f"got {given}.")

    def _forward_pass(self, *args: Any) -> tuple:
        perturbed, values = (tree_util.tree_map(lambda x: getattr(x, each), args)  # noqa: B023
                             for each in ("perturbed", "value"))
        return self.vjp_fwd(perturbed, *values)[:2]

    def _backward_pass(self, residuals: Any, cotangent: Any) -> tuple:
        accumulators = [Accumulator(aval) for aval in self.in_avals_flat]
        self.vjp_bwd(residuals, tree_util.tree_map(_zeros, cotangent),
                     *tree_util.tree_unflatten(self.in_tree, accumulators))
        return tuple(tree_util.tree_unflatten(self.in_tree, [
            SymbolicZero(x.aval.to_tangent_aval()) if x.total is None else x.total
            for x in accumulators]))

    def _jvp(self, primals: tuple, tangents: tuple) -> Any:
        return self(*primals), self._tangents(primals, tangents)

    def _tangents(self, primals: tuple, tangents: tuple) -> Any:
        """The tangent of the result in forward mode."""
        if self._defines("jvp"):
            return self.jvp(primals, tangents)[1]
        residuals = self.lin(tree_util.tree_map(lambda _: True, primals), *primals)[1]
        return self.linearized(residuals, *tangents)

    def _of_batch(self, size: int, is_batched: Any, *args: Any) -> tuple:
        dims = tree_util.tree_map(lambda batched: 0 if batched else None, is_batched)
        out, out_dims = self.batch(AxisData(size), args, tuple(dims))
        dims_flat = tree_util.flatten_axes("batch", self.out_tree, out_dims)
        leaves = [x if d is None else batch_to(core.as_value(x), d, 0, size)
                  for x, d in zip(tree_util.tree_leaves(out), dims_flat, strict=True)]
        return (tree_util.tree_unflatten(self.out_tree, leaves),
                tree_util.tree_unflatten(self.out_tree, [d is not None for d in dims_flat]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(self.params.items())))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.params == other.params


class _Operation(custom_vjp):
    """`expand` with the rules that the subclass defines."""

    def __init__(self, prim: VJPHiPrimitive):
        fun: Any = lambda *args: prim._result(*args)  # noqa: E731
        fun.__name__ = fun.__qualname__ = type(prim).__name__
        if prim._defines("batch"):
            fun = tracebacks.update_wrapper(custom_vmap(fun), fun)
            fun.def_vmap(prim._of_batch)
        super().__init__(fun)
        self.prim = prim
        self.defvjp(prim._forward_pass, prim._backward_pass, symbolic_zeros=True)
        self.has_forward = prim._defines("jvp") or prim._defines("lin")
        self.forward = prim._tangents if self.has_forward else None

    def refuse_forward(self) -> NoReturn:
        raise self.prim._missing("jvp", "`jvp`")

    def rule(self, call: Call) -> Rule:
        of_tangents = self.has_forward and not self.prim._defines("vjp_fwd")
        run = functools.partial(run_jvp_rule, call, self.prim._jvp, False) if of_tangents else (
            functools.partial(run_vjp_rule, call, self))
        return Rule(run, {"_prim": repr(self.prim)})


def _examples() -> list[core.Example]:
    class Sine(VJPHiPrimitive):
        def __init__(self) -> None:
            self.in_avals, self.out_aval, self.params = (core.get_aval(X),), core.get_aval(X), {}
            super().__init__()

        def expand(self, x: Any) -> Any:
            return sin_p.bind(x)

        def vjp_fwd(self, nzs_in: Any, /, x: Any) -> tuple:
            return self(x), cos_p.bind(x)

        def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> tuple:
            return (res * outgrad,)
    (eqn,) = stage(lambda x: [Sine()(x)], [core.get_aval(X)]).eqns
    return [core.Example((X,), eqn.params)]


X = np.array([0.5, -1.0, 2.0], np.float32)
call_hi_primitive_p = custom_call_primitive(
    "call_hi_primitive", _examples, printed=lambda *, jvp, **_: jvp.names)
_Operation.primitive = call_hi_primitive_p
