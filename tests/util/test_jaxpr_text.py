"""The text of a jaxpr is JAX's text."""

import re

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import minijax
import minijax.lax as mlax
import minijax.numpy as mnp
from minijax.util import jaxpr_text
from minijax.core import Primitive, ShapedArray
from minijax.dtypes import key_dtype
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

# ---- JAX's programs, rebuilt from minijax's parts: only the printer is under test here


class Rebuild:
    """Rebuilds JAX's jaxprs equation by equation; shared programs stay shared."""

    def __init__(self):
        self.variables, self.programs = {}, {}

    def aval(self, aval):
        dtype = key_dtype("threefry2x32") if "key" in str(aval.dtype) else aval.dtype
        return ShapedArray(aval.shape, dtype, aval.weak_type)

    def atom(self, atom):
        if not hasattr(atom, "count") and hasattr(atom, "val"):
            return Literal(atom.val, self.aval(atom.aval))
        if atom not in self.variables:
            self.variables[atom] = Var(self.aval(atom.aval))
        return self.variables[atom]

    def program(self, jaxpr):
        if jaxpr not in self.programs:
            ends = [jaxpr.constvars, jaxpr.invars, jaxpr.outvars]
            ends = [tuple(map(self.atom, end)) for end in ends]
            self.programs[jaxpr] = Jaxpr(*ends, tuple(map(self.equation, jaxpr.eqns)))
        return self.programs[jaxpr]

    def param(self, value):
        if isinstance(value, jax.extend.core.ClosedJaxpr):
            return ClosedJaxpr(self.program(value.jaxpr), tuple(value.consts))
        if isinstance(value, tuple) and value and hasattr(value[0], "eqns"):
            return tuple(map(self.param, value))
        return value

    def equation(self, eqn):
        params = {key: self.param(value) for key, value in shown(eqn).items()}
        invars, outvars = [tuple(map(self.atom, vs)) for vs in (eqn.invars, eqn.outvars)]
        return JaxprEqn(invars, outvars, Primitive(eqn.primitive.name), params)


def shown(eqn):
    """The parameters that JAX's own rules for single primitives leave to print."""
    name, params = eqn.primitive.name, dict(eqn.params)
    if name == "jit":
        return {key: params[key] for key in ("name", "jaxpr")}
    if name == "custom_jvp_call":
        params["jvp"] = params.pop("jvp_jaxpr_fun").debug_info.func_name
        params["name"] = params["call_jaxpr"].jaxpr.debug_info.func_name
        del params["num_consts"]
    if name == "dot_general":
        (left, right), (left_batch, right_batch) = params["dimension_numbers"]
        numbers = (list(left), list(right)), (list(left_batch), list(right_batch))
        return {
            "dimension_numbers": numbers,
            "preferred_element_type": params["preferred_element_type"],
        }
    if name == "broadcast_in_dim":
        kept = params["broadcast_dimensions"]
        return {"broadcast_dimensions": kept} if kept else {}
    if name == "scan":
        return {key: value for key, value in params.items() if key in SCAN}
    return {key: value for key, value in params.items() if key not in NEVER.get(name, ())}


SCAN = {"jaxpr", "length", "num_carry", "num_consts", "reverse", "unroll"}
UNARY = {"sin", "cos", "tanh", "exp", "log", "sqrt", "log1p", "logistic"}
NEVER = dict.fromkeys(UNARY, ("accuracy",))
NEVER |= {"mul": ("out_dtype",), "convert_element_type": ("sharding",)}


@jax.jit
def inner(x):
    return jnp.sin(x) * 2


@jax.jit
def outer(x):
    return inner(x) + 1


@jax.jit
def two(x):
    return jnp.sin(x), jnp.cos(x)


def long(x):
    for _ in range(12):
        x = x * 2.0
    return x


def network(params, x):
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return jnp.mean(x**2)


A = np.arange(3, dtype=np.float32)
LAYERS = [(np.ones((3, 3), np.float32), A)] * 3

PROGRAMS = {
    "the identity": (lambda x: x, 1.0),
    "no argument": (lambda: 1.0,),
    "a literal result": (lambda x: 2.0, 1.0),
    "three equations": (lambda x: (x * 2, x + 1, jnp.sin(x)), A),
    "a constant": (lambda x: x * np.arange(3.0), A),
    "many arguments": (lambda *xs: sum(xs), *[1.0] * 60),
    "many arguments, no equation": (lambda *xs: xs[0], *[1.0] * 20),
    "many results": (lambda x: (x,) * 50, 1.0),
    "no operand": (lambda: lax.iota(np.int32, 3),),
    "an unread result": (lambda x: lax.top_k(x, 2)[0], A),
    "literals of all kinds": (
        lambda x: (x + np.inf, x * -0.1, x.astype(int) + 7, (x > 0) & True, x * 1j),
        A,
    ),
    "a call": (lambda x: inner(x) + 1, A),
    "a call with a literal": (lambda x: jax.jit(lambda x, y: x * y)(x, 2.0), A),
    "a call with one operand twice": (lambda x: jax.jit(lambda x, y: x + y)(x, x), A),
    "a call that gives its operand back": (lambda x: jax.jit(lambda x: (x, x + 1))(x), A),
    "a call with an unread result": (lambda x: two(x)[0], A),
    "the same call twice": (lambda x: inner(x) + inner(x), A),
    "calls in calls": (lambda x: outer(x) + outer(x) + inner(x), A),
    "a long call": (lambda x: jax.jit(long)(x) + 1, A),
    "scan": (lambda x: lax.scan(lambda c, y: (c + inner(y).sum(), c * y), 0.0, x), A),
    "a long scan": (lambda x: lax.fori_loop(0, 3, lambda i, c: long(c), x), A),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda x: x + 1, inner, x), A),
    "long branches": (lambda x: lax.cond(x[0] > 0, long, lambda x: long(long(x)), x), A),
    "while": (
        lambda x: lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] * 2), (0, x)),
        A,
    ),
    "a custom derivative": (jax.nn.relu, A),
    "random numbers": (lambda key: jax.random.normal(key, (3,)), jax.random.key(0)),
    "the gradient of a call": (jax.grad(lambda x: jnp.sum(inner(x))), A),
    "the gradient of a network": (jax.grad(network), LAYERS, np.ones((2, 3), np.float32)),
    "a batched gradient under jit": (
        jax.jit(jax.vmap(jax.grad(network), (None, 0))),
        LAYERS,
        np.ones((4, 2, 3), np.float32),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_is_the_text_of_jax(name):
    function, *args = PROGRAMS[name]
    theirs = jax.make_jaxpr(function)(*args)
    ours = Rebuild().program(theirs.jaxpr)
    assert jaxpr_text.jaxpr_text(ours) == str(theirs)


@pytest.mark.parametrize("width", [20, 40, 79, 120])
def test_lines_break_at_the_width_where_jax_breaks_them(width):
    theirs = jax.make_jaxpr(jax.grad(network))(LAYERS, np.ones((2, 3), np.float32))
    ours = Rebuild().program(theirs.jaxpr)
    assert jaxpr_text.jaxpr_text(ours, width=width) == theirs.pretty_print(width=width)


def rebuilt(name):
    function, *args = PROGRAMS[name]
    return Rebuild().program(jax.make_jaxpr(function)(*args).jaxpr)


def test_an_equation_prints_by_itself():
    program = rebuilt("three equations")
    assert repr(program.eqns[0]) == "a:f32[3] = mul b 2.0:f32[]"


def test_a_primitive_chooses_the_parameters_worth_printing():
    quiet = Primitive("quiet")
    quiet.printed = lambda axis, noise: {"axis": axis}
    x = Var(ShapedArray((3,), np.float32))
    eqn = JaxprEqn((x,), (Var(x.aval),), quiet, {"axis": 0, "noise": 1})
    assert repr(eqn) == "a:f32[3] = quiet[axis=0] b"


def test_a_function_among_the_parameters_prints_as_its_name():
    x = Var(ShapedArray((), np.float32))
    params = {"jvp": np.sin, "who": two, "thing": object()}
    text = repr(JaxprEqn((x,), (Var(x.aval),), Primitive("call"), params))
    assert "jvp=sin" in text and "who=two" in text
    assert "thing=<object object at 0x...>" in text


# ---- minijax's own programs

SEEDS_PERMISSIVE_SUM = """\
{ lambda ; a:i32[] b:i32[] c:i32[] d:i32[] e:i32[] f:i32[] g:i32[] h:i32[] i:i32[]
    j:i32[]. let
    k:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
    l:i32[] = convert_element_type[new_dtype=int32 weak_type=False] b
    m:i32[] = convert_element_type[new_dtype=int32 weak_type=False] c
    n:i32[] = convert_element_type[new_dtype=int32 weak_type=False] d
    o:i32[] = convert_element_type[new_dtype=int32 weak_type=False] e
    p:i32[] = convert_element_type[new_dtype=int32 weak_type=False] f
    q:i32[] = convert_element_type[new_dtype=int32 weak_type=False] g
    r:i32[] = convert_element_type[new_dtype=int32 weak_type=False] h
    s:i32[] = convert_element_type[new_dtype=int32 weak_type=False] i
    t:i32[] = convert_element_type[new_dtype=int32 weak_type=False] j
    u:i32[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,)] k
    v:i32[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,)] l
    w:i32[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,)] m
    x:i32[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,)] n
    y:i32[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,)] o
    z:i32[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,)] p
    ba:i32[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,)] q
    bb:i32[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,)] r
    bc:i32[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,)] s
    bd:i32[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,)] t
    be:i32[10] = concatenate[dimension=0] u v w x y z ba bb bc bd
    bf:i32[] = reduce_sum[axes=(0,)] be
  in (bf,) }"""


def test_the_program_of_the_sharp_bits_page_prints_as_there():
    def permissive_sum(x):
        return mnp.sum(mnp.array(x))

    assert str(minijax.make_jaxpr(permissive_sum)(list(range(10)))) == SEEDS_PERMISSIVE_SUM


def plain(text):
    """Without what minijax does not have (shardings) or prints as the older page does."""
    text = re.sub(r"np\.int64\((\d+)\)", r"\1", text)  # left behind by JAX's batching rules
    text = re.sub(r" ?(out_)?sharding=None| ?dimensions=None(?= new_sizes)", "", text)
    text = re.sub(r"(broadcast_in_dim|dot_general)\[[^]]*(\][^]]*)*?\](?= [a-z0-9])", r"\1", text)
    return " ".join(text.replace("[ ", "[").split())


def both(np_like, lax_like, jax_like):
    """Programs written once for either library, by name."""
    relu = jax_like.jit(lambda x: np_like.maximum(x, 0.0))
    return {
        "arithmetic": (lambda x: x * 2.0 + x / 3.0, A),
        "a call": (lambda x: relu(x) + 1.0, A),
        "a call twice": (lambda x: relu(x) + relu(x), A),
        "cond": (
            lambda p, x: lax_like.cond(p > 0.0, lambda x: x + 1.0, lambda x: x * 2.0, x),
            1.0,
            A,
        ),
        "scan": (lambda x: lax_like.scan(lambda c, y: (c + y, c * y), 0.0, x), A),
        "while": (lambda x: lax_like.while_loop(lambda c: c < 9.0, lambda c: c * 2.0, x), 1.0),
        "grad": (jax_like.grad(lambda x: np_like.sum(np_like.sin(x) * x)), A),
        "vmap": (jax_like.vmap(lambda x: np_like.sum(x) * x), np.ones((2, 3), np.float32)),
        "jvp": (lambda x: jax_like.jvp(np_like.tanh, (x,), (x,)), A),
        "a constant": (lambda x: x + np.arange(3.0, dtype=np.float32), A),
        "a tree": (lambda tree: (tree["a"] + 1.0, tree["b"][0] * 2.0), {"a": A, "b": (A,)}),
        "a product": (lambda x: x @ x, np.ones((3, 3), np.float32)),
    }


OURS, THEIRS = both(mnp, mlax, minijax), both(jnp, lax, jax)


@pytest.mark.parametrize("name", OURS)
def test_a_program_traced_here_prints_as_the_one_traced_by_jax(name):
    function, *args = OURS[name]
    ours = minijax.make_jaxpr(function)(*args)
    function, *args = THEIRS[name]
    assert plain(str(ours)) == plain(str(jax.make_jaxpr(function)(*args)))
