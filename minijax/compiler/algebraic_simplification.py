"""Algebraic simplification: laws of real numbers, applied to floating-point numbers as XLA does.

A result may differ in its last bits from that outside of `jit`, and where a number in between is
infinite or nan it is another: under `jit`, log(exp(1000)) is 1000.  Builds on jaxpr.py.
Chapter 22.  In XLA: `AlgebraicSimplifier`.
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.core import Primitive, ShapedArray
from minijax.core.jaxpr import Atom, Jaxpr, JaxprEqn, Literal, Var
from minijax.primitives.algebra import add_p, div_p, masked_p, mul_p, neg_p, sqrt_p, sub_p
from minijax.primitives.analytic import exp_p, log_p, pow_p
from minijax.primitives.rounding import abs_p

# Here k and l are constants; p is an array of bools, but no constant, whose product XLA computes
# while it compiles. For divisors that are broadcast see `multiply_by_reciprocals`.
LAWS = """
a / k = a * (1 / k)
a + 0 = a
a * convert_element_type(p) = masked(a, p)
convert_element_type(p) * a = masked(a, p)

(a * k) * l = a * (k * l)
(a + k) + l = a + (k + l)
(a + k) - l = a + (k - l)
(a - k) + l = a + (l - k)
(a - k) - l = a - (k + l)
(k - a) + l = (k + l) - a
(k - a) - l = (k - l) - a

(a / b) / (c / d) = (a * d) / (b * c)
(a / b) / c = a / (b * c)
a / (b / c) = (a * c) / b
a / rsqrt(b) = a * sqrt(b)

exp(a) / exp(b) = exp(a - b)
a / exp(b) = a * exp(-b)
exp(a) * exp(b) = exp(a + b)
exp(a) ** 2 = exp(a + a)
pow(exp(a), b) = exp(a * b)

log(exp(a)) = a
log(sqrt(a)) = log(a) * 0.5
log(rsqrt(a)) = log(a) * -0.5
log(pow(a, k)) = log(abs(a)) * k

pow(a, 1) = a
pow(a, 2) = a * a
pow(a, 3) = a * (a * a)
pow(a, -1) = 1 / a
a / pow(b, c) = a * pow(b, -c)
sqrt(a * a) = abs(a)
sqrt(a ** 2) = abs(a)
"""
CONSTANTS, BOOLS = "kl", "p"
PRIMITIVES = {p.name: p for p in (
    abs_p, add_p, div_p, exp_p, log_p, masked_p, mul_p, neg_p, pow_p, sqrt_p, sub_p)}
PRECISE = {np.dtype(name) for name in ("float16", "float32", "float64")}  # XLA widens bfloat16

_OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "integer_pow",
    ast.USub: "neg"}


def _term(node: Any) -> Any:
    """One side of a law: a variable's name, a number, or an operation's name and its operands."""
    match node:
        case ast.Name():
            return node.id
        case ast.Constant(int() | float() as value):
            return float(value)
        case ast.UnaryOp(operand=ast.Constant()):
            return -_term(node.operand)
        case ast.UnaryOp():
            return _OPERATORS[type(node.op)], _term(node.operand)
        case ast.BinOp():
            return _OPERATORS[type(node.op)], _term(node.left), _term(node.right)
        case ast.Call():
            return node.func.id, *map(_term, node.args)  # type: ignore[attr-defined]


# The two sides of each law, by the outermost operation of the left one.
laws: defaultdict[str, list[tuple[Any, Any]]] = defaultdict(list)
for _line in filter(None, LAWS.splitlines()):
    _left, _right = (_term(ast.parse(side.strip(), mode="eval").body) for side in _line.split("="))
    laws[_left[0]].append((_left, _right))


def by_law(eqn: JaxprEqn, producers: Mapping[Atom, JaxprEqn],
           emit: Callable[[Primitive, Sequence[Atom]], Atom],
           is_constant: Callable[[Atom], bool]) -> Atom | None:
    """The result of an equation by the first law whose left side it matches; else None.

    Args:
      producers: the equations of the intermediate results.
      emit: adds an equation of the right side, and returns its result.
      is_constant: whether the program holds the array of an atom.
    """
    def matches(term: Any, x: Any) -> bool:
        """Whether an atom is of a form; binds the form's variables to atoms."""
        if isinstance(term, float):
            return term == (x.val if isinstance(x, Literal) else x)
        if isinstance(term, str):
            is_fit = (isinstance(x, Literal) if term in CONSTANTS else
                      term not in BOOLS or x.aval.dtype == bool and not is_constant(x))
            return is_fit and bindings.setdefault(term, x) is x
        return x in producers and x.aval.shape == aval.shape and is_of_form(term, producers[x])

    def is_of_form(term: Any, eqn: JaxprEqn) -> bool:
        (name, *terms), (operation, *operands) = term, _operation(eqn)
        is_other = name != operation or name == "div" and _is_broadcast(operands[1], eqn)
        return not is_other and all(map(matches, terms, operands))

    def built(term: Any) -> Atom:
        if isinstance(term, str):
            return bindings[term]
        if isinstance(term, float):
            return _number(term, aval)
        name, *operands = term
        return emit(PRIMITIVES[name], [*map(built, operands)])

    for left, right in laws.get(_operation(eqn)[0], ()):
        aval, bindings = eqn.outvars[0].aval, dict[str, Atom]()
        if aval.dtype in PRECISE and is_of_form(left, eqn):
            return built(right)
    return None


def _operation(eqn: JaxprEqn) -> tuple[Any, ...]:
    """The name of an operation and its operands, as laws write them: a constant comes second."""
    name, operands = eqn.primitive.name, eqn.invars
    if name in ("square", "integer_pow"):
        return "integer_pow", *operands, float(eqn.params.get("y", 2))
    if name in ("add", "mul") and isinstance(operands[0], Literal):
        operands = operands[::-1]
    return name, *operands


def _is_broadcast(x: Atom, eqn: JaxprEqn) -> bool:
    return isinstance(x, Var) and x.aval.size < eqn.outvars[0].aval.size


def _number(x: float, aval: ShapedArray) -> Literal:
    return Literal(aval.dtype.type(x), aval.update(shape=(), weak_type=False))


def multiply_by_reciprocals(jaxpr: Jaxpr) -> Jaxpr:
    """The same program, in which an array is not divided by a smaller one, broadcast: the
    reciprocals of that are fewer, and multiply it.

    A scalar that is broadcast to this shape twice still divides; so it is in XLA.

    >>> import minijax, numpy as np
    >>> f = minijax.make_jaxpr(lambda x, y: x / y)(np.ones((2, 3)), np.ones(3))
    >>> print([str(eqn.primitive) for eqn in multiply_by_reciprocals(f.jaxpr).eqns])
    ['broadcast_in_dim', 'div', 'mul']
    """
    uses = Counter((x, v.aval.shape) for eqn in jaxpr.eqns for v in eqn.outvars for x in eqn.invars)
    eqns = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is div_p and _is_broadcast(eqn.invars[1], eqn):
            (dividend, divisor), aval = eqn.invars, eqn.outvars[0].aval
            if aval.dtype in PRECISE and (divisor.aval.ndim or uses[divisor, aval.shape] == 1):
                reciprocal = Var(divisor.aval)
                eqns.append(eqn.replace(invars=(_number(1, aval), divisor), outvars=(reciprocal,)))
                eqn = eqn.replace(primitive=mul_p, invars=(dividend, reciprocal))
        eqns.append(eqn)
    return jaxpr.replace(eqns=eqns)
