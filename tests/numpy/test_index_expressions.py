"""Generated index expressions, reads and updates, inside and outside of the array.

Each agrees with NumPy (outside, with NumPy on an array that has a margin) and, in turn, with
JAX; run at once and compiled, with guard bytes around every buffer that compiled code is given.
`MINIJAX_INDEX_EXPRESSIONS=10000` makes that many and asks JAX about all of them.  Derivatives of
such, and of `take` and `take_along_axis`, are JAX's, too.
"""

import ctypes
import os
import random
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import minijax

COUNT = int(os.environ.get("MINIJAX_INDEX_EXPRESSIONS", "1000"))
CHUNK = 25  # expressions in one compiled program
ALL_BY_JAX = COUNT >= 10_000
SHAPES = [(5,), (3, 4), (2, 3, 4), (1, 4), (2, 19), (), (0, 3)]
DTYPES = [np.float32, np.float32, np.int32, np.uint8, np.bool_]
READS = ("[]", "get", "take", "take_along_axis")
METHODS = {"set": None, "add": np.add, "subtract": np.subtract, "multiply": np.multiply,
           "min": np.minimum, "max": np.maximum, "divide": np.multiply, "power": np.multiply}


# ── Expressions ──────────────────────────────────────────────────────────────────────────────

class Traced(NamedTuple):
    """An index array that is an argument of the compiled program."""

    places: np.ndarray


class Expression(NamedTuple):
    """`x[index]`, or `x.at[index].method(y, mode=…, wrap_negative_indices=…)`."""

    x: np.ndarray
    index: tuple
    method: str
    y: Any
    options: dict

    def arguments(self) -> tuple:
        traced = [e.places for e in self.index if isinstance(e, Traced)]
        return (self.x, *traced, *([self.y] if isinstance(self.y, np.ndarray) else []))

    def run(self, lib: Any, args: Any) -> Any:
        x, *rest = map(lib.numpy.asarray, args)
        if self.method in ("take", "take_along_axis"):
            return getattr(lib.numpy, self.method)(x, rest[0], **self.options)
        index = tuple(rest.pop(0) if isinstance(e, Traced) else e for e in self.index)
        y = rest.pop() if rest else self.y
        if self.method == "[]":
            return x[index]
        at = x.at[index]
        return at.get(**self.options) if self.method == "get" else getattr(
            at, self.method)(y, **self.options)


class Draw(random.Random):
    """Random expressions; the same ones for the same seed."""

    def array_of_places(self, size: int) -> Any:
        shape = self.choice([(), (1,), (2,), (3,), (2, 2), (1, 2), (9,), (0,)] if size else [(0,)])
        outside = 0 if self.random() < 0.5 else 3
        dtype = self.choice([np.int32, np.int32, np.int8, np.uint8])
        low = 0 if dtype == np.uint8 else -size - outside
        numbers = [self.choice(range(low, size + outside)) for _ in range(int(np.prod(shape)))]
        if outside and numbers and self.random() < 0.1:
            numbers[0] = self.choice([np.iinfo(dtype).min, np.iinfo(dtype).max])
        places = np.array(numbers, dtype).reshape(shape)
        return Traced(places) if self.random() < 0.6 or not shape else places

    def entry(self, size: int) -> Any:
        kind = self.choice("iissssaaaamn")
        if kind == "i" and size:
            return self.choice(range(-size - 2, size + 2))
        if kind == "s" or kind == "i":
            bounds = [self.choice([None, *range(-size - 2, size + 3)]) for _ in range(2)]
            return slice(*bounds, self.choice([None, 1, 2, 3, -1, -2, -3]))
        if kind == "m":
            return np.array([self.random() < 0.5 for _ in range(size)], bool)
        return None if kind == "n" else self.array_of_places(size)

    def index(self, shape: tuple) -> tuple:
        index: list = []
        axis = 0
        while axis < len(shape) and self.random() < 0.8:
            index.append(self.entry(shape[axis]))
            axis += index[-1] is not None
        if self.random() < 0.3:
            index.insert(self.randrange(len(index) + 1), Ellipsis)
        return tuple(index)

    def expression(self) -> Expression:
        while True:
            shape, dtype = self.choice(SHAPES), self.choice(DTYPES)
            index = self.index(shape)
            x = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 7 + 1, dtype)
            try:
                shown = inside(x, index, {}).shape
            except IndexError:  # arrays that do not broadcast
                continue
            method = self.choice(["[]", "[]", "get", *METHODS])
            if dtype == np.bool_ and method not in ("[]", "get", "set"):
                continue
            if dtype != np.float32 and method in ("divide", "power"):
                continue
            options = {} if method == "[]" else {
                "mode": self.choice([None, None, "fill", "drop", "clip", "promise_in_bounds"]),
                "wrap_negative_indices": self.random() < 0.7}
            return Expression(x, index, method, self.value(shown, dtype), options)

    def taken(self) -> Expression:
        """`take` or `take_along_axis`, along an axis or of the flat array."""
        x = np.asarray(np.arange(12).reshape(3, 4) % 7 + 1, np.float32)
        axis = self.choice([0, 1, -1, None])
        size = x.size if axis is None else x.shape[axis]
        method = self.choice(["take", "take_along_axis"])
        shape = (3,) if axis is None or method == "take" else (
            self.choice([(2, 4), (2, 1)]) if axis == 0 else self.choice([(3, 2), (1, 2)]))
        places = np.array([self.choice(range(-size - 3, size + 3))
                           for _ in range(int(np.prod(shape)))], np.int32).reshape(shape)
        modes = [None, "fill", "clip", "wrap" if method == "take" else "promise_in_bounds"]
        return Expression(x, (Traced(places),), method, None,
                          {"axis": axis, "mode": self.choice(modes)})

    def value(self, shape: tuple, dtype: Any) -> Any:
        """What is written: of the whole shape, of one that broadcasts, or a number."""
        shape = self.choice([shape, shape, shape[1:], tuple(
            n if self.random() < 0.5 else 1 for n in shape), None])
        if shape is None:
            return True if dtype == np.bool_ else 2
        return np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 3 + 1, dtype)


# ── What NumPy makes of it ───────────────────────────────────────────────────────────────────

def complete(index: tuple, ndim: int) -> list:
    """(entry, axis) for every axis of the operand; an ellipsis stays only if it is for none."""
    taken = sum(e is not None and e is not Ellipsis for e in index)
    if Ellipsis not in [e for e in index if not isinstance(e, (np.ndarray, Traced))]:
        index = (*index, Ellipsis)
    found, axis = [], 0
    for e in index:
        if e is Ellipsis:
            found += [(slice(None), axis + k) for k in range(ndim - taken)] or [(Ellipsis, -1)]
            axis += ndim - taken
        elif e is None:
            found.append((None, -1))
        else:
            found.append((e, axis))
            axis += 1
    return found


def moved(e: Any, size: int, margin: int, clip: bool, wrap: bool) -> Any:
    """An entry for an axis with a margin on both sides; places beyond it are moved onto it."""
    if e is None or e is Ellipsis:
        return e
    if isinstance(e, slice):
        steps = range(*e.indices(size))
        if not len(steps):
            return slice(0, 0)
        stop = steps.stop + margin
        return slice(steps.start + margin, None if stop < 0 else stop, steps.step)
    if isinstance(e, np.ndarray) and e.dtype == bool:
        return np.pad(e, margin)
    places = np.asarray(e.places if isinstance(e, Traced) else e).astype(np.int64)
    places = np.where((places < 0) & wrap, places + size, places)
    low, high = (0, max(size - 1, 0)) if clip else (-1, size)
    places = np.clip(places, low, high) + margin
    return int(places) if isinstance(e, int) else places


def with_margin(expression: Expression, margin: int, clip: bool) -> tuple:
    x, index, options = expression.x, expression.index, expression.options
    wrap = options.get("wrap_negative_indices", True)
    return tuple(moved(e, x.shape[axis] if axis >= 0 else 0, margin, clip, wrap)
                 for e, axis in complete(index, x.ndim))


def inside(x: np.ndarray, index: tuple, options: dict) -> np.ndarray:
    """`x[index]` with all places moved into the array."""
    return np.asarray(x[with_margin(Expression(x, index, "[]", None, options), 0, True)])


def is_inside(expression: Expression) -> bool:
    """Whether NumPy itself gives the answer."""
    for e, axis in complete(expression.index, expression.x.ndim):
        if e is None or e is Ellipsis or isinstance(e, slice) or (
                isinstance(e, np.ndarray) and e.dtype == bool):
            continue
        places = np.asarray(e.places if isinstance(e, Traced) else e).astype(np.int64)
        size = expression.x.shape[axis]
        low = -size if expression.options.get("wrap_negative_indices", True) else 0
        if np.any(places < low) or np.any(places >= size):
            return False
    return True


def by_numpy(expression: Expression) -> np.ndarray:
    x, index, method, y, options = expression
    if is_inside(expression):
        index = tuple(e.places if isinstance(e, Traced) else e for e in index)
        return read_or_written(x, index, method, y)
    mode = options.get("mode")
    if mode == "clip" or (method in ("[]", "get") and mode in (None, "promise_in_bounds")):
        return read_or_written(x, with_margin(expression, 0, True), method, y)
    fill = {"f": np.nan, "i": np.iinfo(np.int32).min, "u": 255, "b": True}[x.dtype.kind]
    padded = np.pad(x, 1, constant_values=fill) if x.ndim else x
    out = read_or_written(padded, with_margin(expression, 1, False), method, y)
    return out if method in ("[]", "get") else out[(slice(1, -1),) * x.ndim]


def read_or_written(x: np.ndarray, index: tuple, method: str, y: Any) -> np.ndarray:
    if method in ("[]", "get"):
        return np.asarray(x[index])
    out = np.ones_like(x) if method in ("divide", "power") else x.copy()
    y = np.asarray(y, x.dtype)
    if method == "set":
        out[index] = y
    else:
        # `at` of one index array does not broadcast: it reads on behind the end of y
        y = np.broadcast_to(y, np.shape(out[index])).copy()
        METHODS[method].at(out, index, y)
    if method == "divide":
        return x / out
    return x ** out if method == "power" else out


# ── The tests ────────────────────────────────────────────────────────────────────────────────

def assert_same(found: Any, wanted: np.ndarray, expression: Expression) -> None:
    assert str(found.dtype) == str(wanted.dtype), expression
    assert found.shape == wanted.shape, expression
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-6,
                               err_msg=str(expression))


def compiled(lib: Any, chunk: list[Expression]) -> list:
    program = lambda argss: [e.run(lib, args) for e, args in zip(chunk, argss, strict=True)]
    return lib.jit(program)([e.arguments() for e in chunk])


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("part", range(-(-COUNT // CHUNK)))
def test_an_index_means_what_it_means_in_numpy_and_in_jax(part, guards):
    draw = Draw(part)
    chunk = [draw.expression() for _ in range(CHUNK)]
    with np.errstate(all="ignore"):
        wanted = [by_numpy(e) for e in chunk]
    for e, y in zip(chunk, wanted, strict=True):
        assert_same(e.run(minijax, e.arguments()), y, e)
    for e, x, y in zip(chunk, compiled(minijax, chunk), wanted, strict=True):
        assert_same(x, y, e)
    assert guards.calls, "compiled code ran without guards"
    if ALL_BY_JAX or part % 20 == 0:
        for e, x, y in zip(chunk, compiled(jax, chunk), wanted, strict=True):
            assert_same(x, y, e)


# ── Derivatives ──────────────────────────────────────────────────────────────────────────────

def has_its_own_derivative(e: Expression) -> bool:
    """Where tests/jax_differences.toml says so: at some places outside."""
    mode = e.options.get("mode")
    if is_inside(e):
        return False
    if e.method in READS:
        return mode in (None, "promise_in_bounds") and any(isinstance(i, int) for i in e.index)
    return mode == "promise_in_bounds" or (mode == "clip" and e.method in ("min", "max"))


def differentiable(draw: Draw) -> Expression:
    while True:
        e = draw.taken() if draw.random() < 0.2 else draw.expression()
        if e.x.dtype == np.float32 and not has_its_own_derivative(e):
            return e


def derivatives(lib: Any, e: Expression, args: Any) -> list:
    """The value, a tangent, and the cotangents of the array and of what is written."""
    jnp = lib.numpy
    x, *rest = map(jnp.asarray, args)
    takes_update = e.method in ("set", "add", "subtract") and isinstance(e.y, np.ndarray)
    *places, y = rest if takes_update else (*rest, jnp.float32(0))

    def f(x, y):
        return e.run(lib, (x, *places, *([y] if takes_update else [])))

    def numbers(shape):
        return jnp.asarray(np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape), x.dtype)
    out, tangent = lib.jvp(f, (x, y), (numbers(x.shape), numbers(y.shape)))
    return [out, tangent, *lib.vjp(f, x, y)[1](numbers(out.shape))]


def all_derivatives(lib: Any, chunk: list[Expression]) -> Any:
    return lambda argss: [derivatives(lib, e, args) for e, args in zip(chunk, argss, strict=True)]


@pytest.mark.parametrize("part", range(-(-COUNT // CHUNK // 20)))
def test_derivatives_of_an_index_are_what_they_are_in_jax(part):
    draw = Draw(1000 + part)
    chunk = [differentiable(draw) for _ in range(CHUNK)]
    arguments = [e.arguments() for e in chunk]
    wanted = jax.jit(all_derivatives(jax, chunk))(arguments)
    for run in (all_derivatives(minijax, chunk), minijax.jit(all_derivatives(minijax, chunk))):
        for e, ours, theirs in zip(chunk, run(arguments), wanted, strict=True):
            for x, y in zip(ours, theirs, strict=True):
                assert_same(x, y, e)


@pytest.mark.parametrize("kind", ["read", "written"])
def test_guards_see_what_is_read_and_written_outside(kind, guards):
    def wild(arrays):
        """Stands for machine code that does what compiled code never may."""
        place = ctypes.cast(arrays[0].ctypes.data, ctypes.POINTER(ctypes.c_uint8))
        size = arrays[0].nbytes
        place[size if kind == "written" else 0] = place[size] + (kind == "written")
        return 0

    with pytest.raises(AssertionError, match=f"{kind} outside"):
        guards.around(wild)([np.zeros(4, np.int32)])
