"""Every kind of argument in every entrance: what JAX makes of it, or how it refuses it.

A kind is a value that stands for an array or a number, or for none; an entrance is a place where
users' values become arrays. A pair gives JAX's type and weakness, or its class of errors.
"""

import collections
import enum

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax


class Metres(float):
    pass


class Count(int):
    pass


class Phase(complex):
    pass


class Row(np.ndarray):
    pass


class Items(list):
    pass


Pair = collections.namedtuple("Pair", "a b")
Side = enum.IntEnum("Side", "LEFT")
Flag = enum.IntFlag("Flag", "A B")

KINDS = {
    "bool": True, "int": 1, "float": 2.0, "complex": 1j, "IntEnum": Side.LEFT,
    "IntFlag": Flag.A | Flag.B, "a float's subclass": Metres(2), "an int's subclass": Count(1),
    "a complex's subclass": Phase(1j), "np.bool_": np.bool_(True), "np.int8": np.int8(1),
    "np.float64": np.float64(2), "np.float64's subclass": type("F", (np.float64,), {})(2),
    "bfloat16": ml_dtypes.bfloat16(2), "int64 of rank 0": np.array(1), "float64": np.ones(2),
    "longdouble": np.ones(2, np.longdouble), "strings": np.array(["a", "b"]),
    "objects": np.array([None, 1], object), "dates": np.array(["2020"], "M8[Y]"),
    "a subclass of ndarray": np.ones(2).view(Row), "matrix": np.matrix([[1.0, 2.0]]),
    "masked": np.ma.array([1.0, 2.0], mask=[0, 1]), "masked number": np.ma.masked,
    "list": [1, 2], "tuple": (1, 2), "a subclass of list": Items([1, 2]), "namedtuple": Pair(1, 2),
    "str": "ab", "None": None, "object": object, "1 << 31": 1 << 31, "1 << 40": 1 << 40,
    "-(1 << 31) - 1": -(1 << 31) - 1, "1 << 70": 1 << 70,
}

ENTRANCES = {
    **{name: eval(f"lambda lib, x, y: {text}") for name, text in (
        ("x + y", "x + y"), ("y * x", "y * x"), ("x == y", "x == y"), ("x != y", "x != y"),
        ("y == x", "y == x"), ("x < y", "x < y"), ("x @ y", "x @ y"), ("divmod", "divmod(x, y)"))},
    **{name: lambda lib, x, y, name=name: getattr(lib.numpy, name)(y) for name in (
        "asarray", "array", "sin", "sum", "zeros_like", "expand_dims", "stack")},
    "add": lambda lib, x, y: lib.numpy.add(x, y), "full": lambda lib, x, y: lib.numpy.full(2, y),
    "expand_dims": lambda lib, x, y: lib.numpy.expand_dims(y, 0),
    "stack": lambda lib, x, y: lib.numpy.stack([y, y]),
    "where": lambda lib, x, y: lib.numpy.where(x > 0, x, y),
    "full of int8": lambda lib, x, y: lib.numpy.full(2, y, "int8"),
    "full_like": lambda lib, x, y: lib.numpy.full_like(x, y),
    "lax.full_like": lambda lib, x, y: lib.lax.full_like(y, 1),
    "set": lambda lib, x, y: x.at[0].set(y), "lax.add": lambda lib, x, y: lib.lax.add(y, y),
    "jit": lambda lib, x, y: lib.jit(lambda y: (y, 1))(y)[0],
    "jit by name": lambda lib, x, y: lib.jit(lambda x, *, y: x + y)(x, y=y),
    "static": lambda lib, x, y: lib.jit(lambda x, y: x + y, static_argnums=1)(x, y),
    "constant": lambda lib, x, y: lib.jit(lambda x: x + y)(x),
    "result": lambda lib, x, y: lib.jit(lambda: y)(), "grad": lambda lib, x, y: lib.grad(
        lambda y: y * 3.0)(y),
    "vmap": lambda lib, x, y: lib.vmap(lambda x, y: x + y, (0, None))(x, y),
    "scan": lambda lib, x, y: lib.lax.scan(lambda c, _: (c, c), y, None, length=2)[1],
    "carry": lambda lib, x, y: lib.lax.scan(lambda c, _: (c + y, None), x, None, length=2)[0],
    "cond": lambda lib, x, y: lib.lax.cond(y, lambda: 1, lambda: 2),
    "operand": lambda lib, x, y: lib.lax.cond(True, lambda y: y, lambda y: y, y),
    "device_put": lambda lib, x, y: lib.device_put(y),
}

# What no array holds is refused, always; JAX takes some of it where a function is compiled already,
# or where it is cast.
REFUSED = ("longdouble", "strings", "objects", "dates", "masked", "masked number")

# The rows of `jax_differences.toml` say why these differ.
SUBCLASSES = ("IntEnum", "IntFlag", "a float's subclass", "an int's subclass",
              "a complex's subclass")
DIFFERENT = {("bfloat16", "cond"), *((kind, entrance) for kind in SUBCLASSES
                                     for entrance in ("zeros_like", "lax.full_like"))}


def outcome(lib, entrance, kind):
    x = lib.numpy.array([1, 2, 0], "int8")
    try:
        out = lib.eval_shape(lambda: ENTRANCES[entrance](lib, x, KINDS[kind]))
    except Exception as error:
        return type(error).__name__
    return [(leaf.shape, str(leaf.dtype), leaf.weak_type) for leaf in lib.tree.leaves(out)]


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_what_becomes_of_an_argument_is_what_jax_makes_of_it(entrance):
    differing = []
    for kind in KINDS:
        ours, theirs = (outcome(lib, entrance, kind) for lib in (minijax, jax))
        refused = kind in REFUSED and ours in ("TypeError", "ValueError")
        if ours != theirs and not refused and (kind, entrance) not in DIFFERENT:
            differing.append((kind, ours, theirs))
    assert not differing
