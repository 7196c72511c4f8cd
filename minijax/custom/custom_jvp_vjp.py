"""Functions with custom derivative rules: `custom_jvp`, `custom_vjp`.

Builds on `core`.  Chapter 10, *Your own rules*.
In JAX: `jax/_src/custom_derivatives.py`.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from minijax.util import context, source_info, tracebacks
from minijax import config, core, dtypes, errors, tree_util
from minijax.core import (Array, ArrayImpl, Avals, Axis, ForPrimitive, Outs, Params, Primitive,
                          ShapedArray, Zero, cannot, transpose)
from minijax.transforms import arguments, compiled, discharge, prepared
from minijax.control_flow.program_rules import has_tangent, split_half
from minijax.control_flow.traced_functions import is_internal, mismatch
from minijax.core.jvp import is_symbolic_zero, jvp_flat
from minijax.core.vmap import BatchTrace, Dim, vmap_flat, with_axis, without_axis
from minijax.core.jaxpr import ClosedJaxpr, jaxpr_as_fun, merge_lists, partition_list
from minijax.primitives import families
from minijax.primitives.analytic import cos_p, sin_p
from minijax.primitives.ad_util import batch_to, instantiate, public_tangent, reduce_sum_p
from minijax.primitives.dynamic_slice import with_batch_axis
from minijax.primitives.named_axes import checks_vma, varying_along
from minijax.core.tracing import (DynamicJaxprTrace, FlatFunction, check_arg, convert_tracers,
                                  is_tracer, stage, unflattened_call)


# ── The block ────────────────────────────────────────────────────────────────────────────────

@dataclass(frozen=True, eq=False)
class Rule:
    """A derivative rule on flat arrays: from primals and tangents to results and their tangents.

    A tangent may be a `Zero`.  A jaxpr prints the names of the user's functions, and whether they
    take symbolic zeros.
    """

    call: Callable[..., list]
    names: dict[str, Any]

    def __call__(self, *args: Any) -> list:
        return self.call(*args)

    call_wrapped = __call__  # as interpreters of equations call it

    def with_call(self, call: Callable[..., list]) -> Rule:
        """A rule of the same names that calls another function."""
        return Rule(call, self.names)

    def __repr__(self) -> str:
        return ", ".join(x for x in self.names.values() if isinstance(x, str))


def _call_user_rule(rule: Callable, *args: Any) -> Any:
    """Call a rule; equations that a user's rule stages have its source lines."""
    _, code = source_info.identify(rule)
    if code is None or errors.is_internal(code.co_filename):
        return rule(*args)
    return context.with_values({core.current_source: None}, rule, *args)


class CustomPrimitive(Primitive):
    """Binds Python functions; where the call is staged, the primal function becomes a program."""

    def get_bind_params(self, params: Params) -> Params:
        """The name, and as `subfuns` the function and its rule."""
        function = Rule(jaxpr_as_fun(params["call_jaxpr"]), {})
        return {"name": params["name"], "subfuns": (function, params["jvp"])}

    def bind(self, *args: Any, subfuns: Sequence[Callable] | None = None, **params: Any) -> Any:
        """Call a function with its rule, which an interpreter of equations passes as `subfuns`."""
        if subfuns:
            params |= dict(zip(("fun", "jvp"), subfuns, strict=True))
        return super().bind(*args, **params)

    def evaluate(self, args: Sequence[Any], params: Params) -> list[ArrayImpl]:
        f, args, kwargs, outputs = unflattened_call(_function(**params), args)
        return outputs(f(*args, **kwargs))

    def calls_python(self, params: Params) -> bool:
        return "fun" in params

    def staged(self, args: Sequence[Any], params: Params) -> tuple[Primitive, Sequence, Params]:
        if "call_jaxpr" in params:
            return self, args, params
        closed, captured = convert_tracers(stage(params["fun"], [x.aval for x in args]))
        rule, count = params["jvp"], len(captured)
        if isinstance(params["fun"], Call):
            params["fun"].keep_type(closed.out_avals)

        def of_arguments(*primals_and_tangents: Any) -> list:
            primals, tangents = split_half(primals_and_tangents)
            return rule(*primals[count:], *tangents[count:])
        return self, [*captured, *args], {
            "name": params["name"], "call_jaxpr": closed,
            "jvp": rule.with_call(of_arguments) if captured else rule}


def _function(*, call_jaxpr: ClosedJaxpr | None = None, fun: Any = None, **_: Any) -> Callable:
    return fun if call_jaxpr is None else jaxpr_as_fun(call_jaxpr)


def _jvp(primals: list, tangents: list, *, jvp: Rule, **_: Any) -> Outs:
    outs, out_tangents = split_half(jvp(*primals, *tangents))
    return outs, [Zero(t.aval) if is_symbolic_zero(t) else t for t in out_tangents]


@ForPrimitive
def _batch(p: Primitive, axis: Axis, args: list, dims: list, /, *, jvp: Rule, name: str,
           **function: Any) -> Outs:
    out_dims: list[Dim] = []
    typed = _typed_dims(axis, function["call_jaxpr"].out_avals) if checks_vma(axis) else None
    fun = _batched(_function(**function), axis, dims, out_dims, typed)
    rule = jvp.with_call(_batched(jvp, axis, [*dims, *dims], out_dims, typed))
    outs = p.bind(*args, name=name, fun=fun, jvp=rule)
    return outs, out_dims[:len(outs)]  # a rule returns tangents too


def _typed_dims(axis: Axis, avals: Avals) -> list[Dim]:
    """Where types say what varies along the axis: the batch dims of values of these types."""
    return [0 if axis.name in aval.vma else None for aval in avals]


def _transpose(cotangents: list, *args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> list:
    """In a linear program: the transpose of the function itself, not of its rule."""
    return transpose.backward_pass(call_jaxpr.jaxpr, call_jaxpr.consts, args, cotangents)


def custom_call_primitive(name: str, examples: Callable[[], list[core.Example]], **slots: Any
                          ) -> CustomPrimitive:
    """The primitive that calls a function which has a derivative rule."""
    return CustomPrimitive(name, **{
        **compiled.running("call_jaxpr"),
        "jvp": _jvp, "transpose": _transpose, "batch": _batch,
        "split": cannot("its rule is applied before partial evaluation"),
        "examples": examples,
        "printed": lambda *, jvp, **params: {**params, **jvp.names},
        **slots})


def _batched(f: Callable, axis: Axis, dims: Sequence[Dim], out_dims: list[Dim],
             typed: Sequence[Dim] | None = None) -> Callable[..., list]:
    """A function of flat arrays on a batch; every result has the batch axis in front.

    It writes the batch dims of its results into `out_dims`: None where all examples are the same,
    or where the types of results, and of their tangents, say so in `typed`.  A `Zero` stays one.
    """
    def on_batch(*args: Any) -> list:
        is_zero = [isinstance(x, Zero) for x in args]
        values, zeros = partition_list(args, is_zero)
        value_dims, zero_dims = partition_list(dims, is_zero)
        zeros = [x if d is None else Zero(without_axis(x.aval, d))
                 for x, d in zip(zeros, zero_dims, strict=True)]
        outs_of_one: list = []

        def on_one(*values: Any) -> list:
            outs_of_one[:] = f(*merge_lists((values, zeros), is_zero))
            return [*map(instantiate, outs_of_one)]
        outs, rule_dims = vmap_flat(
            on_one, axis.size, axis.name, values, value_dims, level=axis.level,
            on_devices=axis.on_devices, vma_trace=axis.vma_trace)
        is_same = all(d is None for d in (*dims, *rule_dims))
        out_dims[:] = [None if is_same else 0] * len(outs)
        if typed is not None:
            out_dims[:] = typed if len(typed) == len(outs) else [*typed, *typed]
        return [Zero(with_axis(y.aval, new, axis.size, axis.name, axis.sharding))
                if isinstance(y, Zero) else with_batch_axis(x, old, new, axis.size)
                for x, y, old, new in zip(outs, outs_of_one, rule_dims, out_dims, strict=True)]
    return on_batch


# ── Symbolic zeros, as rules with `symbolic_zeros=True` get them ──────────────────────────────

@dataclass(frozen=True, repr=False)
class SymbolicZero(core.Typed):
    """A tangent or cotangent that is zero and is not computed.

    >>> SymbolicZero.from_primal_value(np.ones(3, np.float32)).shape
    (3,)
    """

    aval: ShapedArray

    @staticmethod
    def from_primal_value(val: Any) -> SymbolicZero:
        return SymbolicZero(core.get_aval(val).to_tangent_aval())

    def __repr__(self) -> str:
        return "SymbolicZero"


@dataclass(frozen=True)
class CustomVJPPrimal:
    """An argument of `fwd`: its value, and whether it has a tangent."""

    value: Any
    perturbed: bool


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The values in a tree of `CustomVJPPrimal`.

    >>> custom_vjp_primal_tree_values([CustomVJPPrimal(1.0, perturbed=True)])
    [1.0]

    Raises:
      TypeError: for another leaf.
    """
    def value(leaf: Any) -> Any:
        if type(leaf) is not CustomVJPPrimal:
            raise TypeError(f"unexpected leaf of type {type(leaf)}")
        return leaf.value
    return tree_util.tree_map(value, tree)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Zero tangents for a tree of values: arrays, or of class `SymbolicZero`.

    >>> zero_from_primal(np.ones(2, np.float32))
    Array([0., 0.], dtype=float32)
    """
    def zero_of(x: Any) -> Any:
        zero = SymbolicZero.from_primal_value(x)
        return zero if symbolic_zeros else public_tangent(Zero(zero.aval))
    return tree_util.tree_map(zero_of, val)


def sum_of_tangents(terms: Sequence[Any], result: Any) -> Any:
    """The tangent of a result: what each argument adds to it; zero where there is nothing."""
    if not terms:
        return zero_from_primal(result)
    return functools.reduce(lambda a, b: tree_util.tree_map(lambda x, y: x + y, a, b), terms)


def _rule_tangent(t: Any, symbolic_zeros: bool) -> Any:
    """A tangent or cotangent as a rule gets it."""
    return SymbolicZero(t.aval) if symbolic_zeros and isinstance(t, Zero) else public_tangent(t)


# ── As users call it ─────────────────────────────────────────────────────────────────────────

def all_positional(fun: Callable, args: tuple, kwargs: dict, kind: str) -> tuple:
    """The arguments by position, keywords and defaults filled in; `kind` is for the error.

    A keyword-only argument has no position: it keeps its default, and may not be passed.
    """
    partial = isinstance(fun, functools.partial)  # its own arguments are not passed to a rule
    try:
        bound = inspect.signature(
            (lambda *args, **kwargs: None) if partial else fun,
            follow_wrapped=callable(getattr(fun, "__wrapped__", fun))).bind(*args, **kwargs)
        bound.apply_defaults()
        if unplaced := [name for name in bound.kwargs if name in kwargs]:
            raise TypeError("The following keyword arguments could not be resolved to positions: "
                            + ", ".join(unplaced))
    except TypeError as error:
        raise TypeError(
            f"The input arguments to the {kind}-decorated function "
            f"{source_info.function_name(fun)} could not be resolved to positional-only "
            f"arguments. Binding failed with the error:\n{error}") from error
    return bound.args


class Call(FlatFunction):
    """One call of a custom function.  The rules in a program refer to it: it keeps no tracer."""

    fun: arguments.Filled  # a function of the differentiable arguments
    of_primal: tuple[tree_util.PyTreeDef, Avals] | None = None

    def keep_type(self, avals: Avals) -> None:
        """Keep the type of the primal result, where it is known before a rule runs."""
        self.of_primal = self.out_tree, avals

    def difference(self, result: Any, kind: str) -> str:
        """How a rule's primal result differs in its type from the function's; empty if it does not.

        `kind` is the decorator's name, for the error.
        """
        if self.of_primal is None:
            return ""
        expected_tree, expected = self.of_primal
        leaves, tree = tree_util.tree_flatten(result)
        avals = [core.get_aval(x) for x in leaves]
        if tree == expected_tree and all(
                (a.shape, a.dtype) == (b.shape, b.dtype)
                for a, b in zip(avals, expected, strict=True)):
            return ""
        what, stop = (("shapes/dtypes of", "") if tree == expected_tree
                      else ("container/pytree structure", "."))
        one, other = (str(tree_util.tree_unflatten(t, [a.str_long() for a in some]))
                      .replace("'", "") for t, some in ((tree, avals), (expected_tree, expected)))
        name = source_info.function_name(self.fun)
        return (f"had {what}:\n    {one}\nwhile the {kind}-decorated function {name} had output "
                f"{what}:\n    {other}{stop}")


def rule_of_wrapped(self: Any, name: str) -> Any:
    """The `__getattr__` of a function with a rule: the methods `def…` of the function inside."""
    if name.startswith("def"):
        return getattr(self.fun, name)
    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class CustomFunction:
    """A function and the rule for its derivative, which a subclass flattens."""

    primitive: CustomPrimitive
    __getattr__ = rule_of_wrapped

    def __init__(self, fun: Callable, nondiff_argnums: Sequence[int] = (),
                 nondiff_argnames: Sequence[str] = ()):
        arguments.looks_like(self, fun)
        self.fun, named = fun, arguments.as_tuple(nondiff_argnames, str)
        places = [i for i, p in enumerate(inspect.signature(fun).parameters.values())
                  if p.name in named and p.kind is not p.KEYWORD_ONLY] if named else []
        self.is_prepared = is_internal(fun)
        self.nondiff_argnums = (*nondiff_argnums, *(i for i in places if i not in nondiff_argnums))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def _of_refs(self, args: tuple) -> set[int]:
        """The positions of arguments with references, which are passed to the rules."""
        leaves = tree_util.tree_leaves(args)
        if not any(map(core.is_ref, leaves)):
            return set()
        info = source_info.describe(self.fun, args, {}, type(self).__name__)
        discharge.check_distinct(leaves, info)
        return {i for i, x in enumerate(args) if discharge.has_refs(x)}

    def _without_refs(self, result: Any) -> Any:
        """Refuse a result with references."""
        for x in filter(core.is_ref, tree_util.tree_leaves(result)):
            raise ValueError(
                f"{type(self).__name__} primal function {source_info.function_name(self.fun)} "
                f"returned a mutable array reference of type {x.aval}, but mutable array "
                "references cannot be returned.")
        return result

    def rule(self, call: Call) -> Rule | None:
        """The rule for one call; None if it is not defined."""
        raise NotImplementedError

    def _call_with_tracers(self, args: tuple, places: Sequence[int]) -> Any:
        """A call with tracers among the arguments at these `nondiff_argnums`."""
        raise NotImplementedError

    @functools.partial(tracebacks.api_boundary, quick=prepared.repeated)
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args = all_positional(self.fun, args, kwargs, type(self).__name__)
        places = sorted(range(len(args))[i] for i in self.nondiff_argnums)
        if places and core.current_trace.get() is not core.base_trace and any(
                map(is_tracer, tree_util.tree_leaves([args[i] for i in places]))):
            return self._call_with_tracers(args, places)
        fun, carried = self.fun, self._of_refs(args)
        if carried:
            fun = tracebacks.wraps(fun)(lambda *args: self._without_refs(self.fun(*args)))
        if carried and _is_staged():
            return only_evaluated(fun(*args), (
                f"{source_info.function_name(self.fun)} has a custom derivative rule and takes an "
                "array reference; it is part of a program, which has no references, and whose "
                "derivative is taken. Take that of the function, not of its program."))
        filled, dynamic = arguments.without_static(fun, args, places, carried=carried)
        leaves, in_tree = tree_util.tree_flatten((dynamic, {}))
        name, call = source_info.function_name(filled), Call(filled, in_tree)
        if type(self) is custom_vjp and config.read("custom_vjp3"):
            _refuse_captured(call, [core.get_aval(x) for x in leaves])
        rule = self.rule(call)
        if rule is None:
            kind = type(self).__name__
            raise AttributeError(f"No {kind[-3:].upper()} defined for {kind} function {name} "
                                 f"using def{kind[-3:]}.")
        if core.current_trace.get() is core.base_trace and not self.is_prepared:
            return self._evaluated(call, leaves)
        return call.result(self.primitive.bind(*leaves, name=name, fun=call, jvp=rule))

    def _evaluated(self, call: Call, leaves: Sequence[Any]) -> Any:
        """The result outside of all transformations: Python's numbers stay what they are."""
        values = [self.primitive._argument(x, place) for place, x in enumerate(leaves)]
        f, args, kwargs, outputs = unflattened_call(call, [
            x if dtypes.python_type(x) is type(x) else value
            for x, value in zip(leaves, values, strict=True)])
        outs = outputs(f(*args, **kwargs))
        return call.result(call.plain.get(i, x) for i, x in enumerate(outs))


def _is_staged() -> bool:
    """Whether a call becomes part of a program, and no derivative is taken around it."""
    trace: Any = core.current_trace.get()
    while isinstance(trace, BatchTrace):
        trace = trace.parent
    return type(trace) is DynamicJaxprTrace


def _refuse_captured(call: Call, avals: Avals) -> None:
    """Refuse a function that uses tracers from outside, which the flag `custom_vjp3` forbids."""
    _, captured = convert_tracers(stage(call, avals))
    if captured:
        raise errors.UnexpectedTracerError(
            f"custom_vjp-decorated function {call.fun} closed over a {type(captured[0]).__name__} "
            f"of type {captured[0].aval.str_long()}, but custom_vjp functions can't close over "
            f"Tracers. Rewrite {call.fun} to take it as an explicit input.")


def _part_of_key(f: CustomFunction) -> CustomFunction:
    """The part of a function in the key of its call; a user's may do more than compute."""
    if not f.is_prepared:
        raise KeyError
    return f


def _example_of(f: CustomFunction) -> list[core.Example]:
    (eqn,) = stage(lambda x: [f(x)], [ShapedArray((3,), np.float32)]).eqns
    return [core.Example((np.array([0.5, -1.0, 2.0], np.float32),), eqn.params)]


# ── custom_jvp ───────────────────────────────────────────────────────────────────────────────

def _jvp_examples() -> list[core.Example]:
    f = custom_jvp(sin_p.bind)
    f.defjvps(lambda t, out, x: cos_p.bind(x) * t)
    return _example_of(f)


custom_jvp_call_p = custom_call_primitive("custom_jvp_call", _jvp_examples)


class custom_jvp(CustomFunction):
    """A function with a custom forward derivative.

    Args:
      fun: a function of arrays and trees of arrays.
      nondiff_argnums: positions of arguments that are not differentiated and may be any objects;
        the rule gets them first.
      nondiff_argnames: the same by name.

    >>> @custom_jvp
    ... def f(x):
    ...     return x * x
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return f(x), 10.0 * x * t
    >>> import minijax
    >>> minijax.grad(f)(3.0)
    Array(30., dtype=float32, weak_type=True)
    """

    primitive = custom_jvp_call_p
    jvp: Callable | None = None
    symbolic_zeros = False

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Define ``(primals, tangents) -> (result, tangent of the result)``; returns `jvp`.

        With `symbolic_zeros` a tangent that is zero is a `SymbolicZero`.
        """
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Define for each argument ``(tangent, result, *primals) -> tangent``, or None for zero."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
            result = self(*primals)
            terms = [f(t, result, *primals) for f, t in zip(jvps, tangents, strict=True) if f]
            return result, sum_of_tangents(terms, result)
        self.defjvp(jvp)

    def rule(self, call: Call) -> Rule | None:
        return self.jvp and Rule(
            functools.partial(run_jvp_rule, call, self.jvp, self.symbolic_zeros),
            {"jvp": source_info.function_name(self.jvp), "symbolic_zeros": self.symbolic_zeros})

    def _call_with_tracers(self, args: tuple, places: Sequence[int]) -> Any:
        """Call a function of these tracers, too, whose rule ignores their tangents."""
        is_nondiff = [i in places for i in range(len(args))]
        diff_args, nondiff_args = partition_list(args, is_nondiff)
        leaves, tree = tree_util.tree_flatten(nondiff_args)
        are_tracers = [*map(is_tracer, leaves)]
        static, tracers = partition_list(leaves, are_tracers)
        user_rule: Any = self.jvp

        def nondiff_with(values: Sequence[Any]) -> list:
            return tree_util.tree_unflatten(tree, merge_lists((static, values), are_tracers))

        def fun(values: Sequence[Any], *diff_args: Any) -> Any:
            return self.fun(*merge_lists((diff_args, nondiff_with(values)), is_nondiff))

        def rule(primals: tuple, tangents: tuple) -> Any:
            return _call_user_rule(user_rule, *nondiff_with(primals[0]), primals[1:], tangents[1:])
        fun.__name__ = source_info.function_name(self.fun)
        of_tracers = custom_jvp(fun)
        if user_rule is not None:
            rule.__name__ = source_info.function_name(user_rule)
            of_tracers.defjvp(rule, self.symbolic_zeros)
        return of_tracers(tracers, *diff_args)


prepared.PARTS[custom_jvp] = _part_of_key


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def only_evaluated(result: Any, why: str) -> Any:
    """The result, unchanged, as part of a program that cannot be differentiated.

    Its derivative raises a `NotStagedError` that says why.
    """
    return result


@only_evaluated.defjvp
def _refuse_derivative(why: str, primals: tuple, tangents: tuple) -> NoReturn:
    raise discharge.NotStagedError(why)


def run_jvp_rule(call: Call, rule: Callable, symbolic_zeros: bool, *primals_and_tangents: Any
                  ) -> list:
    """A user's rule on flat arrays: from primals and tangents to results and their tangents."""
    flat_primals, flat_tangents = split_half(primals_and_tangents)
    rule_tangents = [_rule_tangent(t, symbolic_zeros) for t in flat_tangents]
    primals, tangents = (call.in_tree.unflatten(leaves)[0]
                         for leaves in (flat_primals, rule_tangents))
    if not all(call.fun.takes_part):  # references have no tangent
        primals = call.fun.with_carried(primals)
        tangents = tuple(merge_lists(([None] * call.fun.takes_part.count(False), tangents),
                                call.fun.takes_part))
    pair = _call_user_rule(rule, *call.fun.fixed, primals, tangents)
    name, function = source_info.function_name(rule), source_info.function_name(call.fun)
    who = f"Custom JVP rule {name} for function {function}"
    if not _is_pair(pair):
        raise TypeError(f"{who} must produce a pair (list or tuple of length two) representing "
                        f"primal and tangent outputs, but got {pair}.")
    if text := call.difference(pair[0], "custom_jvp"):
        like = ("of the same container/pytree structure" if "structure:" in text
                else "with leaves of the same shape/dtype")
        raise TypeError(f"{who} must produce a pair (list or tuple of length two) where the first "
                        "element represents the primal output (equal in value to the output of the "
                        f"custom_jvp-decorated function {function}, and in particular {like}), but "
                        f"instead the JVP rule output's first element {text}")
    outs = call.outputs(pair[0])
    out_tangents, tangent_tree = tree_util.tree_flatten(pair[1])
    if tangent_tree != call.out_tree:
        raise TypeError(f"{who} must produce primal and tangent outputs with equal container "
                        f"(pytree) structures, but got {call.out_tree} and {tangent_tree} "
                        "respectively.")
    tangents = [t if isinstance(t, SymbolicZero) else check_arg(t) for t in out_tangents]
    return outs + _checked_tangents(outs, tangents)


def _is_pair(x: Any) -> bool:
    return isinstance(x, tuple | list) and len(x) == 2


def _checked_tangents(outs: Sequence[Array], tangents: Sequence[Array | SymbolicZero]
                      ) -> list[Array | Zero]:
    rows = [(x.aval, t.aval, x.aval.to_tangent_aval()) for x, t in zip(outs, tangents, strict=True)]
    wrong = [[aval.str_long() for aval in (x, t, expected)] for x, t, expected in rows
             if (expected.shape, expected.dtype) != (t.shape, t.dtype)]
    if wrong:
        (x, t, expected), *_ = wrong
        raise TypeError(
            "Custom JVP rule must produce primal and tangent outputs with corresponding shapes "
            "and dtypes" + (f". Expected {expected} (tangent type of {x}) but got {t}."
                            if len(outs) == 1 else ", but got:\n" + "\n".join(
                f"  primal {x} with tangent {t}, expecting tangent {expected}"
                for x, t, expected in wrong)))
    return [Zero(expected) if isinstance(t, SymbolicZero) else t
            for t, (*_, expected) in zip(tangents, rows, strict=True)]


# ── custom_vjp ───────────────────────────────────────────────────────────────────────────────

def _no_forward() -> NoReturn:
    raise errors.with_cure(
        TypeError("can't apply forward-mode autodiff (jvp) to a custom_vjp function."),
        "Its rule is for reverse mode: grad, vjp, jacrev. A rule of jax.custom_jvp serves both.")


def _lin_forward(*args: Any, forward: Callable, **_: Any) -> list:
    return forward(*args)


def _lin_batch(axis: Axis, args: list, dims: list, *, bwd: Callable, forward: Callable,
               num_residuals: int, out_avals: Avals, **printed: Any) -> Outs:
    if not checks_vma(axis) and all(d is None for d in dims):
        printed |= {"bwd": bwd, "forward": forward, "num_residuals": num_residuals,
                    "out_avals": out_avals}
        return custom_lin_p.bind(*args, **printed), [None] * len(out_avals)
    out_dims = _typed_dims(axis, out_avals) if checks_vma(axis) else [0] * len(out_avals)

    @functools.wraps(bwd)
    def bwd_batched(*values: Any) -> list:
        ct_dims: list[Dim] = []
        cts = _batched(bwd, axis, [*dims[:num_residuals], *out_dims], ct_dims)(*values)
        return [ct if own is None else _unbatched(ct, d, axis)
                for ct, own, d in zip(cts, ct_dims, dims[num_residuals:], strict=True)]
    avals = tuple(with_axis(a, d, axis.size, axis.name, axis.sharding)
                  for a, d in zip(out_avals, out_dims, strict=True))
    outs = custom_lin_p.bind(
        *args, bwd=bwd_batched, num_residuals=num_residuals, out_avals=avals, forward=_batched(
            forward, axis, dims, [], out_dims), **printed)
    return outs, out_dims


def _unbatched(ct: Any, dim: Dim, axis: Axis) -> Any:
    """A batch of cotangents for an argument: along its batch axis, or summed if it had none.

    Where types say what varies, the rule has summed them: they are all the same.
    """
    if isinstance(ct, Zero) or ct.aval.dtype == dtypes.float0:
        return Zero(without_axis(ct.aval, 0) if dim is None else ct.aval)
    if dim is None and checks_vma(axis):
        return with_batch_axis(ct, 0, None, axis.size)
    return reduce_sum_p.bind(ct, axes=(0,)) if dim is None else batch_to(ct, 0, dim, ct.shape[0])


class CustomLin(Primitive):
    """Its transpose calls Python, which may use the axes around it."""

    def calls_python(self, params: Params) -> bool:
        return True


# The derivative of a custom_vjp function: a linear primitive whose transpose is the backward rule.
# Evaluating it, by `forward`, is an error unless the function has a rule for forward mode, too.
custom_lin_p = CustomLin(
    "custom_lin", impl=families.by_program(_lin_forward), program=_lin_forward,
    abstract_eval=lambda *_, out_avals, **__: list(out_avals),
    jvp=lambda primals, tangents, *, forward, **_: jvp_flat(forward, primals, tangents),
    transpose=lambda cotangents, *args, bwd, num_residuals, **_: [
        *[None] * num_residuals, *bwd(*args[:num_residuals], *cotangents)],
    users_transpose=True,
    standard_vma=False, batch=_lin_batch,
    printed=lambda *, bwd, forward, num_residuals, out_avals, in_zeros, **params: {
        **params, "bwd": bwd.__name__, "in_zeros": [*in_zeros], "num_res": num_residuals},
    examples=list,  # it has no value, only a transpose, which the examples of custom_vjp_call test
    multiple_results=True)


def _vjp_examples() -> list[core.Example]:
    f = custom_vjp(sin_p.bind)
    f.defvjp(lambda x: (sin_p.bind(x), cos_p.bind(x)), lambda c, ct: (c * ct,))
    return _example_of(f)


def _extend(derive: Callable, count: Callable, args: list, companions: list[list], *,
            call_jaxpr: ClosedJaxpr, **_: Any) -> list:
    """The derived program of the function itself; its custom rule does not apply."""
    return jaxpr_as_fun(derive(call_jaxpr))(*args, *(x for some in companions for x in some))


custom_vjp_call_p = custom_call_primitive("custom_vjp_call", _vjp_examples, extend=_extend)


class custom_vjp(CustomFunction):
    """A function with a custom reverse derivative.

    Args:
      fun: a function of arrays and trees of arrays.
      nondiff_argnums: positions of arguments that are not differentiated and may be any objects;
        `fwd` gets them in their places, `bwd` gets them first.
      nondiff_argnames: the same by name.

    >>> @custom_vjp
    ... def f(x):
    ...     return x * x
    >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (10.0 * x * ct,))
    >>> import minijax
    >>> minijax.grad(f)(3.0)
    Array(30., dtype=float32, weak_type=True)
    """

    primitive = custom_vjp_call_p
    fwd: Callable | None = None
    bwd: Callable | None = None
    forward: Callable | None = None  # from primals and tangents to the tangents of the result
    refuse_forward = staticmethod(_no_forward)
    symbolic_zeros = False

    def defvjp(self, fwd: Callable, bwd: Callable, symbolic_zeros: bool = False,
               optimize_remat: bool = False) -> None:
        """Define ``fwd(*args) -> (result, residuals)`` and ``bwd(residuals, ct) -> cotangents``.

        With `symbolic_zeros`, `fwd` gets a `CustomVJPPrimal` for each array, and `bwd` a
        `SymbolicZero` for a cotangent that is zero.  `optimize_remat` is accepted for JAX's sake.
        """
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError("remat optimization for custom_vjp does not support "
                                      "symbolic zeros")
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def rule(self, call: Call) -> Rule | None:
        if self.fwd is None or self.bwd is None:
            return None
        run = functools.partial(run_vjp_rule, call, self)
        return Rule(run, {
            "fwd": source_info.function_name(self.fwd), "bwd": source_info.function_name(self.bwd),
            "symbolic_zeros": self.symbolic_zeros})

    def _call_with_tracers(self, args: tuple, places: Sequence[int]) -> Any:
        raise errors.UnexpectedTracerError(
            "Found a JAX Tracer object passed as an argument to a custom_vjp function in a "
            "position indicated by nondiff_argnums as non-differentiable. Tracers cannot be passed "
            "as non-differentiable arguments to custom_vjp functions; instead, nondiff_argnums "
            "should only be used for arguments that can't be or contain JAX tracers, e.g. "
            "function-valued arguments. In particular, array-valued arguments should typically not "
            "be indicated as nondiff_argnums.")


def run_vjp_rule(call: Call, function: custom_vjp, *primals_and_tangents: Any) -> list:
    """A user's rules on flat arrays: `fwd` for the results, and a `custom_lin_p` with `bwd`.

    From primals and tangents to results and their tangents.
    """
    fwd: Any = function.fwd
    bwd: Any = function.bwd
    symbolic_zeros = function.symbolic_zeros
    primals, tangents = split_half(primals_and_tangents)
    perturbed = has_tangent(tangents)
    diff_args, _ = tree_util.tree_unflatten(call.in_tree, (
        map(CustomVJPPrimal, primals, perturbed) if symbolic_zeros else primals))
    pair = _call_user_rule(fwd, *call.fun.all_arguments(diff_args))
    text = call.difference(pair[0], "custom_vjp") if _is_pair(pair) else "no pair"
    if text:
        raise TypeError(_no_pair(fwd, call.fun, pair, text))
    leaves, res_tree = tree_util.tree_flatten(pair[1])
    outs = call.outputs(pair[0])
    are_arrays = [isinstance(x, Array) for x in leaves]
    # a Python number stays a Python number
    python_values, residuals = partition_list(leaves, are_arrays)
    for x in python_values:
        if not discharge.has_refs(x):  # which both passes share
            check_arg(x)
    ct_avals = [core.get_aval(x).to_tangent_aval() for x in primals]
    count = len(residuals)
    of_tangents = function.forward
    start = primals if of_tangents else []
    num_residuals = count + len(start)

    def forward(*values: Any) -> list:
        if of_tangents is None:
            return function.refuse_forward()
        zeros = [public_tangent(Zero(aval)) for aval in partition_list(ct_avals, perturbed)[False]]
        filled = merge_lists((zeros, values[num_residuals:]), perturbed)
        return tree_util.tree_leaves(of_tangents(*(tree_util.tree_unflatten(
            call.in_tree, some)[0] for some in (values[count:num_residuals], filled))))

    def flat_bwd(*values: Any) -> list:
        cotangents = [_rule_tangent(ct, symbolic_zeros) for ct in values[num_residuals:]]
        res_leaves = merge_lists((python_values, values[:count]), are_arrays)
        return partition_list(_run_bwd(call, bwd, res_tree, ct_avals, *res_leaves, *cotangents),
                              perturbed)[True]
    flat_bwd.__name__ = source_info.function_name(bwd)
    out_tangents = custom_lin_p.bind(
        *residuals, *start, *partition_list(tangents, perturbed)[True], bwd=flat_bwd,
        forward=forward, num_residuals=num_residuals,
        out_avals=tuple(x.aval.to_tangent_aval() for x in outs), symbolic_zeros=symbolic_zeros,
        in_zeros=tuple(not has for has in perturbed))
    return [*outs, *out_tangents]


def _no_pair(fwd: Callable, fun: Callable, pair: Any, text: str) -> str:
    """The error of a forward rule whose result is no pair, or whose primal output differs so."""
    name, function = source_info.function_name(fwd), source_info.function_name(fun)
    those, problem = (("those", f"instead of a pair the fwd rule {name} produced {pair}.")
                      if not _is_pair(pair) else
                      ("the output", f"instead the fwd rule output's first element {text}"))
    return (f"Custom VJP fwd rule {name} for function {function} must produce a pair (list or "
            f"tuple of length two) where the first element represents the primal output (equal to "
            f"{those} of the custom_vjp-decorated function {function}) and the second element "
            "represents residuals (i.e. values stored from the forward pass for use on the "
            f"backward pass), but {problem}")


def _run_bwd(call: Call, bwd: Callable, res_tree: tree_util.PyTreeDef,
             ct_avals: Avals, *values: Any) -> list:
    """The rule's cotangents of these types, one for each flat argument; None stands for zeros."""
    residuals = tree_util.tree_unflatten(res_tree, values[:res_tree.num_leaves])
    cts = _call_user_rule(bwd, *call.fun.fixed, residuals,
                          call.result(values[res_tree.num_leaves:]))
    in_tree = call.in_tree.children()[0]
    is_diff = call.fun.takes_part
    if isinstance(cts, tuple | list) and len(cts) == len(is_diff):
        cts = type(cts)(partition_list(cts, is_diff)[True])
    if isinstance(cts, list):
        cts = tuple(cts)
    try:
        if not isinstance(cts, tuple):
            raise ValueError("no arguments' cotangents")
        flat, tree = tree_util.tree_flatten(cts)
        if tree != in_tree:  # a cotangent may stand for a whole subtree
            flat = tree_util.flatten_axes("bwd", in_tree, cts)
    except ValueError:
        raise TypeError(
            "Custom VJP bwd rule must produce an output with the same container (pytree) "
            "structure as the args tuple of the primal function, and in particular must produce a "
            "tuple of length equal to the number of arguments to the primal function, but got bwd "
            f"output structure {tree_util.tree_structure(cts)} for primal input structure "
            f"{in_tree}.") from None
    return [_check_cotangent(in_tree, i, aval, ct, is_internal(bwd))
            for i, (aval, ct) in enumerate(zip(ct_avals, flat, strict=True))]


def _check_cotangent(in_tree: tree_util.PyTreeDef, place: int, aval: ShapedArray, ct: Any,
                     is_ours: bool) -> Any:
    where = f"output{source_info.result_paths(in_tree)[place]}"
    if isinstance(ct, SymbolicZero) and mismatch(ct.aval, aval):
        raise ValueError("Custom VJP bwd rule produced a SymbolicZero with a shape/dtype that does "
                         f"not match the corresponding input tangent shape/dtype: at {where} the "
                         f"SymbolicZero had shape/dtype {ct.aval.str_long()} while the "
                         f"corresponding input had shape/dtype {aval.str_long()}. Consider just "
                         "returning a None here instead of a SymbolicZero object.")
    if ct is None or aval.dtype == dtypes.float0 or isinstance(ct, SymbolicZero):
        return Zero(aval)
    value = check_arg(ct)
    if is_ours and value.aval.vma != aval.vma:  # users sum theirs over devices
        value = varying_along(value, aval.vma)
    inexact = dtypes.issubdtype(aval.dtype, np.inexact)  # of which JAX takes any dtype
    if not config.read("disable_bwd_checks") and (why := mismatch(
            value.aval.update(dtype=aval.dtype) if inexact else value.aval, aval)):
        raise ValueError("Custom VJP bwd rule must produce an output with the same type as the "
                         f"args tuple of the primal function, but at {where} the bwd rule produced "
                         f"an output of type {value.aval.str_long()} corresponding to an input of "
                         f"type {aval.str_long()}, so {why}")
    return value
