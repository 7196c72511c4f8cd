"""JAX's tables of rules as views of the slots of primitives.

Builds on `core`.  Chapter 02 has the slots.
In JAX: `jax/interpreters/{ad,batching,mlir}.py`.
"""

import functools
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from minijax import core, tree_util
from minijax.core import Outs, Primitive, Undefined, Zero
from minijax.custom import host_callback
from minijax.util import caches

Rule = Callable[..., Any]


class Rules(MutableMapping[Primitive, Rule]):
    """A table from primitives to rules of JAX's form, stored in a slot of each primitive.

    >>> from minijax import lax
    >>> primitive_jvps[lax.sin_p]([0.0], [1.0])
    (Array(0., dtype=float32, weak_type=True), Array(1., dtype=float32, weak_type=True))
    """

    def __init__(self, slot: str, to_ours: Callable[[Primitive, Rule], Rule],
                 to_jax: Callable[[Primitive, Rule], Rule]):
        self.slot, self.to_ours, self.to_jax = slot, to_ours, to_jax
        self.jax_rules: dict[Primitive, Rule] = {}

    def __setitem__(self, primitive: Primitive, rule: Rule) -> None:
        self.jax_rules[primitive] = rule
        setattr(primitive, self.slot, self.to_ours(primitive, rule))

    def __getitem__(self, primitive: Primitive) -> Rule:
        if primitive in self.jax_rules:
            return self.jax_rules[primitive]
        rule = getattr(primitive, self.slot, None)
        if not callable(rule):
            raise KeyError(primitive)
        return self.to_jax(primitive, rule)

    def __delitem__(self, primitive: Primitive) -> None:
        self[primitive]  # or else KeyError
        self.jax_rules.pop(primitive, None)
        setattr(primitive, self.slot, None)

    def __iter__(self) -> Iterator[Primitive]:
        return iter(self.jax_rules)  # the package's primitives fill their slots themselves

    def __len__(self) -> int:
        return len(self.jax_rules)


class StandIns(MutableMapping[type, Any]):
    """JAX's table of functions that make arrays of values of other classes."""

    def __setitem__(self, cls: type, stand_in: Callable[[Any], Any] | None) -> None:
        core.stand_ins[cls] = stand_in or np.asarray

    def __getitem__(self, cls: type) -> Callable[[Any], Any]:
        return core.stand_ins.get(cls, np.asarray)

    def __delitem__(self, cls: type) -> None:
        del core.stand_ins[cls]

    def __iter__(self) -> Iterator[type]:
        return iter(core.stand_ins)

    def __len__(self) -> int:
        return len(core.stand_ins)


canonicalize_dtype_handlers = StandIns()


def as_list(primitive: "Primitive | ProgramRule", result: Any) -> list:
    """What a rule of JAX's form returns, as a list: those of a single result return no list."""
    return list(result) if primitive.multiple_results else [result]


def as_result(primitive: Primitive, results: list) -> Any:
    return results if primitive.multiple_results else results[0]


def _pairs_to_ours(primitive: Primitive, rule: Rule) -> Rule:
    """A JVP or batching rule, which returns outputs, and their tangents or batch dimensions.

    It takes tuples, since rules compare their structure with that of other tuples.
    """
    def ours(*args: Any, **params: Any) -> Outs:
        outs, others = rule(*(tuple(x) if type(x) is list else x for x in args), **params)
        return list(map(core.as_value, as_list(primitive, outs))), as_list(primitive, others)
    return ours


def _pairs_to_jax(primitive: Primitive, rule: Rule) -> Rule:
    return lambda *args, **params: tuple(
        as_result(primitive, results) for results in rule(*args, **params))


def _jvp_to_jax(primitive: Primitive, rule: Rule) -> Rule:
    def on_values(primals: Any, tangents: Any, **params: Any) -> Any:
        return rule([core.as_value(x) for x in primals],
                    [t if isinstance(t, Zero) else core.as_value(t) for t in tangents], **params)
    return _pairs_to_jax(primitive, on_values)


def _transpose_to_ours(primitive: Primitive, rule: Rule) -> Rule:
    def ours(cotangents: list, *args: Any, **params: Any) -> list:
        in_cotangents = rule(as_result(primitive, cotangents), *args, **params)
        if in_cotangents is None or _is_zero(in_cotangents):
            in_cotangents = [None] * len(args)
        return [ct if ct is None or _is_zero(ct) else core.as_value(ct) for ct in in_cotangents]
    return ours


def _transpose_to_jax(primitive: Primitive, rule: Rule) -> Rule:
    return lambda ct, *args, **params: rule(as_list(primitive, ct), *args, **params)


def _batch_to_ours(primitive: Primitive, rule: Rule) -> Rule:
    return _pairs_to_ours(primitive, lambda axis, args, dims, **params: rule(args, dims, **params))


def _sized_batch_to_ours(primitive: Primitive, rule: Rule) -> Rule:
    return _pairs_to_ours(primitive, lambda axis, args, dims, **params: rule(
        axis.size, axis.name, None, args, dims, **params))


def _batch_to_jax(primitive: Primitive, rule: Rule) -> Rule:
    def theirs(args: Any, dims: Any, **params: Any) -> tuple:
        size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
        return _pairs_to_jax(primitive, rule)(core.Axis(size), list(args), list(dims), **params)
    return theirs


primitive_jvps = Rules("jvp", _pairs_to_ours, _jvp_to_jax)
primitive_transposes = Rules("transpose", _transpose_to_ours, _transpose_to_jax)
primitive_batchers = Rules("batch", _batch_to_ours, _batch_to_jax)
axis_primitive_batchers = Rules("batch", _sized_batch_to_ours, _batch_to_jax)
fancy_primitive_batchers = Rules("batch", _pairs_to_ours, _pairs_to_jax)


# ── Functions that set rules ─────────────────────────────────────────────────────────────────

def _is_zero(t: Any) -> bool:
    return isinstance(t, Zero)


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents, either of which may be a `Zero`."""
    return y if _is_zero(x) else x if _is_zero(y) else core.as_value(x) + y


def defjvp(primitive: Primitive, *rules: Rule | None) -> None:
    """Derivatives argument by argument: ``rule(tangent, *primals, **params) -> tangent``."""
    defjvp2(primitive, *(rule and (lambda t, ans, *primals, rule=rule, **params:
                                   rule(t, *primals, **params)) for rule in rules))


def defjvp2(primitive: Primitive, *rules: Rule | None) -> None:
    """`defjvp` for rules that take the result, too: ``rule(tangent, ans, *primals, …)``."""
    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple:
        ans = primitive.bind(*primals, **params)
        terms = [rule(t, ans, *primals, **params)
                 for rule, t in zip(rules, tangents, strict=True) if rule and not _is_zero(t)]
        zero = Zero(core.get_aval(ans).to_tangent_aval())
        return ans, functools.reduce(add_tangents, terms, zero)
    primitive_jvps[primitive] = jvp


def deflinear2(primitive: Primitive, transpose: Rule) -> None:
    """A linear primitive: ``transpose(cotangent, *args, **params)`` returns all cotangents."""
    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple:
        return (primitive.bind(*primals, **params),
                primitive.bind(*map(core.instantiate, tangents), **params))
    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose


def deflinear(primitive: Primitive, transpose: Rule) -> None:
    """`deflinear2` for a rule that does not take the arguments."""
    deflinear2(primitive, lambda ct, *args, **params: transpose(ct, **params))


def defbilinear(primitive: Primitive, left: Rule, right: Rule) -> None:
    """A primitive linear in each of two: ``left(ct, x, y, …)``, ``right(ct, x, y, …)``."""
    bind = primitive.bind
    defjvp(primitive, lambda t, x, y, **params: bind(t, y, **params),
           lambda t, x, y, **params: bind(x, t, **params))
    primitive_transposes[primitive] = lambda ct, x, y, **params: (
        (left(ct, x, y, **params), None) if isinstance(x, Undefined) else
        (None, right(ct, x, y, **params)))


def defvectorized(primitive: Primitive) -> None:
    """The batching rule of an elementwise primitive, all of whose arguments have one shape."""
    def batch(args: Any, dims: Any, **params: Any) -> tuple:
        size, dim = next((x.shape[d], d) for x, d in zip(args, dims, strict=True) if d is not None)
        return primitive.bind(*(core.batch_to(core.as_value(x), d, dim, size)
                                for x, d in zip(args, dims, strict=True)), **params), dim
    primitive_batchers[primitive] = batch


def is_undefined_primal(x: Any) -> bool:
    """Whether `x` is an argument whose cotangent a transpose rule must return."""
    return isinstance(x, Undefined)


# ── Lowering ─────────────────────────────────────────────────────────────────────────────────

class ModuleContext:
    """What the rules of one program share."""

    def add_keepalive(self, value: Any) -> None:
        """Keep a value for as long as the program, whose parameters hold it already."""


@dataclass(frozen=True)
class LoweringRuleContext:
    """The first argument of a lowering rule: the primitive, and types of operands and results."""

    primitive: Primitive | None
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    module_context: ModuleContext = ModuleContext()

    def replace(self, **changes: Any) -> Self:
        """The same context with other values of some fields."""
        return replace(self, **changes)


class ProgramRule(NamedTuple):
    """A lowering rule that replaces a primitive by other operations."""

    fun: Rule
    multiple_results: bool

    def __call__(self, ctx: LoweringRuleContext, *args: Any, **params: Any) -> list:
        return as_list(self, self.fun(*args, **params))


def lower_fun(fun: Rule, multiple_results: bool = True) -> ProgramRule:
    """A lowering rule from a function of traceable operations, for `register_lowering`."""
    return ProgramRule(fun, multiple_results)


def emit_python_callback(ctx: LoweringRuleContext, callback: Rule, token: Any, operands: Any,
                         operand_avals: Any, result_avals: Any, *, has_side_effect: bool,
                         **options: Any) -> tuple[list, Any, Any]:
    """In a lowering rule: the call of a Python function of flat arrays.

    Returns:
      The results, the token, and what must be kept alive: nothing.
    """
    call = host_callback.io_callback if has_side_effect else host_callback.pure_callback
    return list(call(callback, list(result_avals), *operands)), token, None


def register_lowering(prim: Primitive, rule: Rule, platform: str | None = None,
                      inline: bool = True, cacheable: bool = True) -> Rule:
    """Set how a primitive is compiled: by a rule from `lower_fun`, or one that calls such rules.

    A rule that writes MLIR is accepted; compiling the primitive raises an error with this advice.
    """
    def program(*args: Any, **params: Any) -> Any:
        avals = [core.get_aval(x) for x in args]
        ctx = LoweringRuleContext(prim, avals, prim.type_of(avals, params))
        if isinstance(rule, ProgramRule):
            return as_result(prim, rule(ctx, *args, **params))
        try:
            return as_result(prim, list(map(core.as_value, rule(ctx, *args, **params))))
        except Exception as error:
            raise NotImplementedError(f"the lowering rule of {prim} emits MLIR, which minijax does "
                                      "not have: pass `mlir.lower_fun(f)` to register_lowering, "
                                      f"where f computes {prim} by other operations.") from error
    prim.program = program
    caches.clear_all()  # programs that were prepared without the rule
    return rule


def apply_primitive(primitive: Primitive, *args: Any, **params: Any) -> Any:
    """Evaluate a primitive by compiling it, as the argument of ``def_impl``."""
    from minijax.transforms.jit import jit
    return jit(lambda *xs: primitive.bind(*xs, **params))(*args)


tree_util.register_pytree_node(Zero, lambda zero: ((), zero.aval), lambda aval, _: Zero(aval))
tree_util.register_pytree_node(Undefined, lambda x: ((), x.aval), lambda aval, _: Undefined(aval))
