"""Families: functions that make similar primitives.

Builds on `slots` and `ad_util`.  Chapters 02 to 04 show the rules of such primitives.
In JAX: the helpers `unop`, `naryop`, `defjvp`, `deflinear2`.
"""

import functools
import math
import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from minijax.core import (Array, ArrayImpl, Effect, EvalTrace, ForPrimitive, Outs, Params,
                          Primitive, ShapedArray, Zero, base_trace, cannot, current_trace, run_with)
from minijax.util.lazily import later
from minijax.primitives.ad_util import add_any_p, batch_elementwise, broadcast_to
from minijax.primitives.examples import Examples, points
from minijax.primitives.precision import check_accuracy
from minijax.primitives.slots import (FLOAT, INEXACT, NOT_LINEAR, NUMBER, Formula, by_formula,
                                      elementary, elementwise_type, in_numpy, in_pairs, kind_name,
                                      pointwise, wide)

AROUND_ZERO = points((-2., 2.))

# ── Derivatives, one rule an argument ────────────────────────────────────────────────────────

def per_argument(*rules: Callable | None) -> Any:
    """A derivative as a sum over arguments.

    A rule is ``(tangent, result, *arguments, **params) -> tangent``; None: it does not vary.
    Without rules, no result varies with any argument.
    """
    @ForPrimitive
    def jvp(p: Primitive, primals: list, tangents: list, **params: Any) -> Outs:
        outs = p.listed(p.bind(*primals, **params))
        terms = [broadcast_to(rule(t, outs[0], *primals, **params), outs[0].shape)
                 for rule, t in zip(rules, tangents, strict=bool(rules))
                 if rule is not None and not isinstance(t, Zero)]
        return outs, [sum_of(terms)] if terms else [Zero(x.aval.to_tangent_aval()) for x in outs]
    return jvp


# The derivative of what does not vary with any argument.
constant_in_all = per_argument()


def sum_of(terms: Sequence[Array]) -> Array:
    return functools.reduce(add_any_p.bind, terms)


def combination(terms: Iterable[tuple[int, Any]], like: Array) -> Any:
    """The sum of factors times derivatives of `like`, each of which may be `Zero`."""
    arrays = [x if factor == 1 else factor * x for factor, x in terms if not isinstance(x, Zero)]
    return functools.reduce(operator.add, arrays) if arrays else Zero(like.aval.to_tangent_aval())


@ForPrimitive
def general_leibniz_rule(p: Primitive, n: int, out: Any, x: Any, y: Any, **params: Any) -> Any:
    """The n-th derivative of a product, or of what else is linear in each of two arguments."""
    pairs = ((math.comb(n, i), x[i], y[n - i]) for i in range(n + 1))
    return combination([(factor, p.bind(a, b, **params)) for factor, a, b in pairs
                        if Zero not in (type(a), type(b))], out[0])


# ── Elementwise operations ───────────────────────────────────────────────────────────────────

class FormulaPrimitive(Primitive):
    """A primitive with a long formula, which evaluation compiles; `impl` remains its meaning."""

    # Evaluates by compiled code, once `jit` is loaded; None where it must not.
    compiled: ClassVar[Callable[..., list[ArrayImpl] | None] | None] = None

    def evaluate(self, args: Sequence[Any], params: Params) -> list[ArrayImpl]:
        outs = self.compiled and self.compiled(self, args, params)
        return super().evaluate(args, params) if outs is None else outs


def elementwise(name: str, *, impl: Callable[..., list] | None = None,
                accepts: Sequence[tuple] = (), result: Callable | None = None,
                abstract_eval: Callable[..., list] | None = None,
                derivatives: Sequence[Callable | None] = (), jvp: Any = None,
                transpose: Any = NOT_LINEAR, element: Formula | None = None,
                may_produce_nan: bool = True, primitive_class: type[Primitive] = Primitive,
                by_parts: bool = False, **slots: Any) -> Primitive:
    """An elementwise primitive, whose operands broadcast to one shape.

    Args:
      impl: by default the formula of one element, run over whole arrays.
      accepts, result: as of `elementwise_type`; not with `abstract_eval`.
      derivatives: the rules of `per_argument`; not with `jvp`.
      element: the formula of one element; by default the operation of `compiler.scalars`, or the
        function of `compiler.elementary`, of that name.
      primitive_class: `FormulaPrimitive` for a long formula of which NumPy has no function.
      by_parts: whether `complex_parts` is also the meaning for complex numbers.
      slots: others of `Primitive`; `complex_parts` is by default, where it accepts complex numbers,
        the function of `complex_pairs` of that name.
    """
    element = element or elementary(name)
    meaning = impl or by_formula(element)
    if accepts and np.complexfloating in accepts[0]:
        slots.setdefault("complex_parts", of_one_shape(in_pairs(name)))
    if by_parts:
        of_complex, of_real = meaning_of_parts(slots["complex_parts"]), meaning
        meaning = lambda *xs, **params: (  # noqa: E731
            of_complex if xs[0].dtype.kind == "c" else of_real)(*xs, **params)
    return primitive_class(
        name, impl=meaning, abstract_eval=abstract_eval or elementwise_type(name, accepts, result),
        jvp=jvp or per_argument(*derivatives), transpose=transpose, batch=batch_elementwise,
        element=pointwise(element), may_produce_nan=may_produce_nan, **slots)


def meaning_of_parts(formula: Callable[..., Any]) -> Callable[..., list]:
    """The meaning for complex numbers by the formula of their parts, as compiled code has it."""
    return by_program(lambda *xs, **params: Primitive.apply_to_parts(formula, *xs, **params))


def of_one_shape(complex_parts: Callable[..., Any]) -> Callable[..., Any]:
    """A formula of complex numbers whose operands are broadcast to one shape first."""
    def broadcast(c: Any, *args: Any) -> Any:
        shape = np.broadcast_shapes(*(x.shape for x in args))
        return complex_parts(c, *(c.map_parts(x, lambda part: broadcast_to(part, shape))
                                  for x in args))
    return broadcast


def unary(name: str, meaning: str, *, derivative: Callable | None = None, accepts: tuple = INEXACT,
          examples: Examples = AROUND_ZERO, shows: str = "", accurate: bool = False, **slots: Any
          ) -> tuple[Primitive, Callable[[Any], Any]]:
    """A primitive of one operand without parameters, and the function that applies it.

    Args:
      name: as a jaxpr prints it and users call it.
      meaning: the first sentence of the function's docstring.
      derivative: ``(tangent, result, x) -> tangent``; None: the result does not vary.
      shows: an argument and the result, for the docstring: ``"0.0 -> 1."``.
      accurate: whether the function takes an `accuracy`; the highest is used in any case.
      slots: others of `elementwise`; `impl` is a NumPy function, by default the one of that name.
        Narrow floats go through `element` in float32, and are rounded once.
    """
    p = _of_numpy(name, [accepts], derivatives=[derivative], examples=examples, **slots)

    def function(x: Any) -> Any:
        return p.bind(x)

    def with_accuracy(x: Any, *, accuracy: Any = None) -> Any:
        check_accuracy(accuracy)
        return p.bind(x)
    return p, documented(with_accuracy if accurate else function, *_explained(
        name, meaning, "x: an array of a dtype", accepts, shows))


# Of one float, by a formula that evaluation compiles.
by_long_formula = functools.partial(unary, accepts=FLOAT, primitive_class=FormulaPrimitive)


def binary(name: str, meaning: str, *, accepts: tuple = NUMBER, shows: str = "", **slots: Any
           ) -> tuple[Primitive, Callable[[Any, Any], Any]]:
    """A primitive of two operands without parameters, and the function that applies it.

    The arguments are those of `unary`, with a rule for each operand or one `jvp` for both.
    """
    p = _of_numpy(name, [accepts, accepts], **slots)

    def function(x: Any, y: Any) -> Any:
        return p.bind(x, y)
    return p, documented(function, *_explained(
        name, meaning,
        "x, y: arrays of one rank or scalars, whose axes of size one stretch, of one dtype",
        accepts, shows))


def _of_numpy(name: str, accepts: Sequence[tuple], impl: Callable[..., Any] | None = None,
              takes_halves: bool = False, in_float64: bool = False, **slots: Any) -> Primitive:
    if "element" in slots:
        slots["element"] = wide(slots["element"])
    elif impl is None:
        impl = getattr(np, name, None)
    return elementwise(name, accepts=accepts, **slots,
                       impl=impl and in_numpy(impl, takes_halves, in_float64))


def _explained(name: str, meaning: str, operands: str, accepts: tuple, shows: str
               ) -> tuple[str, str, str, str]:
    """The name, the text, the example and the errors of a function of a family."""
    name = f"bitwise_{name}" if name in ("not", "and", "or", "xor") else name
    kinds = ", ".join(map(kind_name, accepts))
    call, _, shown = shows.partition(" -> ")
    dtype = ("bool" if shown in ("True", "False") else "complex64" if "j" in shown else
             "float32" if "." in shown else "int32")
    return (name, f"{meaning}\n\n    Args:\n      {operands} among: {kinds}.",
            shows and f"{name}({call}) -> Array({shown}, dtype={dtype}, weak_type=True)",
            "TypeError: for other types.")


def documented(function: Callable, name: str, text: str, shows: str, raises: str = "") -> Callable:
    """Set the name of a generated function, and a docstring with an example."""
    call, _, result = shows.partition(" -> ")
    function.__name__ = function.__qualname__ = name
    function.__module__ = sys._getframe(2).f_globals["__name__"]  # where the name is
    raises = raises and f"\n    Raises:\n      {raises}\n"
    example = shows and f"\n    >>> {call}\n    {result}\n    "
    function.__doc__ = f"{text}\n{raises}{example}"
    return function


def without_results(name: str, effect: Effect, **slots: Any) -> Primitive:
    """A primitive that is there for its effect; it has no result that a law could test."""
    return Primitive(
        name, abstract_eval=lambda *_, **__: [], effects=lambda **_: frozenset([effect]),
        transpose=cannot("it has no result, and so no cotangent"), examples=list,
        multiple_results=True, **slots)


# ── Rules by hand-written loops, and by programs of other primitives ─────────────────────────

def kernel(name: str, anywhere: bool = False) -> Callable[..., None]:
    """A `loop` or `library` rule: the hand-written loops of that name.

    `anywhere`: outputs are objects that store elements, and need not be whole buffers.
    """
    rule = later("minijax.compiler.kernels", name)
    rule.anywhere = anywhere  # type: ignore[attr-defined]
    return rule


def by_program(program: Callable[..., Any]) -> Callable[..., list]:
    """The meaning of a primitive that is defined by a program of other primitives."""
    def impl(*buffers: np.ndarray, **params: Any) -> list[np.ndarray]:
        trace = current_trace.get()
        out: Any = run_with(trace if isinstance(trace, EvalTrace) else base_trace,
                            program, *map(_as_array, buffers), **params)
        return [x._buffer for x in (out if isinstance(out, list) else [out])]
    return impl


def _as_array(buffer: Any) -> ArrayImpl:
    view = (buffer if isinstance(buffer, np.ndarray) else np.asarray(buffer)).view()
    return ArrayImpl(view, ShapedArray(view.shape, view.dtype))
