"""Arguments made by chance, and how a row of the tables of public functions says what it takes."""

import functools
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import ml_dtypes
import numpy as np

DTYPES = {"f": np.float32, "h": ml_dtypes.bfloat16, "e": np.float16, "i": np.int32, "b": np.bool_,
          "u": np.uint8, "p": np.int8, "w": np.uint32, "c": np.complex64}
SHAPES = [(2, 3), (3,), (), (0, 3), (1,), (2, 1, 3), (4, 2)]
PAIRS = [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (3,)), ((), (3,)), ((), ()), ((0, 3), (3,)),
         ((2, 1, 3), (4, 1)), ((3,), (2,))]
EDGES = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, 0.5]


class Of(NamedTuple):
    """An argument that each library has its own of."""

    make: Callable[[Any], Any]

    def __repr__(self) -> str:
        return "<its own>"


class Call(NamedTuple):
    """A function's arguments: those that are traced, and those that are known."""

    args: tuple
    first: tuple = ()  # known ones that come before
    static: tuple = ()  # and after
    options: dict = {}

    def arrays(self) -> list:
        return [x for x in jax.tree_util.tree_leaves(self.args) if isinstance(x, np.ndarray)]

    def with_arrays(self, xs: Any) -> tuple:
        """The arguments with other arrays."""
        flat, tree = jax.tree_util.tree_flatten(self.args)
        rest = iter(xs)
        return tree.unflatten([next(rest) if isinstance(x, np.ndarray) else x for x in flat])

    def run(self, f: Callable, args: Any, lib: Any) -> Any:
        own = functools.partial(resolved, lib)
        options = {name: own(x) for name, x in self.options.items()}
        return f(*map(own, self.first), *args, *map(own, self.static), **options)


def resolved(lib, x):
    if isinstance(x, Of):
        return x.make(lib)
    return [resolved(lib, y) for y in x] if type(x) is list else x


def call(*args: Any, first: tuple = (), static: tuple = (), **options: Any) -> Call:
    return Call(args, first, static, options)


class Draw(random.Random):
    """Random arguments; the same ones for the same seed."""

    def array(self, kinds: str = "f", shape: Any = None, domain: str = "any") -> Any:
        """An array of one of these kinds; s, n and t are Python's float, int and bool."""
        kind = self.choice(kinds)
        if shape is None:
            shape = self.choice(SHAPES)
        if kind in "snt":
            return {"s": self.choice([0.5, 0.25, 0.75, 1.0]), "n": self.choice([1, 2, 3, 0]),
                    "t": self.random() < 0.5}[kind]
        return np.asarray(self.numbers(kind, shape, domain), DTYPES[kind])

    def numbers(self, kind: str, shape: tuple, domain: str) -> np.ndarray:
        rng = np.random.default_rng(self.getrandbits(32))
        if kind == "b":
            return rng.random(shape) < 0.5
        if kind in "iupw":
            low, high = (0 if kind in "uw" else -4), 5
            if domain == "any" and self.random() < 0.2:
                info = np.iinfo(DTYPES[kind])
                return rng.choice([info.min, info.max, 0, 1, 3], shape)
            return rng.integers({"positive": 1, "unit": 0}.get(domain, low), high, shape)
        low, high = {"positive": (0.125, 4), "unit": (-0.9, 0.9), "above one": (1, 4)}.get(
            domain, (-4, 4))
        x = np.round(rng.uniform(low, high, shape) * 64) / 64
        if kind == "c":
            return x + 1j * np.round(rng.uniform(low, high, shape) * 64) / 64
        if domain in ("any", "floats") and self.random() < 0.3:
            x = np.where(rng.random(shape) < 0.4, rng.choice(EDGES, shape), x)
        return x

    def distinct(self, shape: tuple, kind: str = "f") -> np.ndarray:
        x = np.arange(np.prod(shape, dtype=int)) - 2.0
        return np.random.default_rng(self.getrandbits(32)).permutation(x).reshape(
            shape).astype(DTYPES[kind])

    def matrix(self, kinds: str = "f", shape: tuple = (3, 3), positive: bool = False) -> Any:
        """Square matrices, all far from singular; `positive`: symmetric, and positive definite."""
        return self.far_from_singular(self.array(kinds, shape, "unit"), positive)

    def far_from_singular(self, x: Any, positive: bool) -> Any:
        diagonal = (3 * np.eye(x.shape[-1])).astype(x.dtype)
        return x @ np.conj(x.mT) + diagonal if positive else x + diagonal

    def key(self) -> Any:
        return self.array("w", (2,))

    def pair(self) -> tuple:
        return self.choice(PAIRS)

    def axis(self, ndim: int, several: bool = True) -> Any:
        axes = [None, *range(-ndim, ndim)]
        if several and ndim > 1:
            axes += [(0, 1), (0, -1), ()]
        return self.choice(axes)

    def one_axis(self, ndim: int) -> int:
        return self.choice(range(-ndim, ndim))

    def some(self, **options: Any) -> dict:
        """Some of these options; a function among them draws the value."""
        return {name: x() if callable(x) and not isinstance(x, type) else x
                for name, x in options.items() if self.random() < 0.4}


Maker = Callable[[Draw], Call]
FULL = [shape for shape in SHAPES if shape and 0 not in shape]
RICH = [(2, 3), (3,), (0, 3), (2, 1, 3), (4, 2)]  # shapes with at least one axis
REAL = "fffhe"
KEEP = {"keepdims": [True, False]}


def unary(kinds: str = "fffhebiupwcsn", domain: str = "any", **options: list) -> Maker:
    return lambda d: call(d.array(kinds, domain=domain), **d.some(**{
        name: functools.partial(d.choice, values) for name, values in options.items()}))


def binary(kinds: str = "ffffiiihepuwbcsn", domain: str = "any", same: bool = False) -> Maker:
    def make(d: Draw) -> Call:
        one, two = d.pair()
        kind = d.choice(kinds)
        others = kind if same else d.choice([kind, kind, *kinds])
        if same:
            two = one
        return call(d.array(kind, one, domain), d.array(others, two, domain))
    return make


def reduction(kinds: str = "ffffiihebuc", several: bool = True, where: bool = True,
              domain: str = "any", shapes: Any = SHAPES, **options: list) -> Maker:
    """`f(x, axis=, keepdims=, where=, …)`; these options have the values that are listed."""
    def make(d: Draw) -> Call:
        shape = d.choice(shapes)
        given = {name: d.choice(values) for name, values in options.items() if d.random() < 0.4}
        mask = d.array("b", shape) if where and d.random() < 0.3 else None
        if mask is not None:
            given["where"] = mask
        if d.random() < 0.7:
            given["axis"] = d.axis(len(shape), several)
        return call(d.array(kinds, shape, domain), **given)
    return make


def along_axis(kinds: str = "fffiihub", shapes: Any = RICH, domain: str = "finite",
               **options: list) -> Maker:
    """`f(x, axis=, …)` with one axis."""
    def make(d: Draw) -> Call:
        shape = d.choice(shapes)
        given = {name: d.choice(values) for name, values in options.items() if d.random() < 0.5}
        if d.random() < 0.7:
            given["axis"] = d.one_axis(len(shape))
        return call(d.array(kinds, shape, domain), **given)
    return make


def either(*makers: Maker) -> Maker:
    return lambda d: d.choice(makers)(d)


def arrays(count: Any, kinds: str = "ffib", shapes: Any = RICH, **options: Any) -> Maker:
    """`f([x, y, …], axis=)` with arrays of one shape."""
    def make(d: Draw) -> Call:
        shape = d.choice(shapes)
        xs = [d.array(kinds, shape, "finite") for _ in range(d.choice(count))]
        given = {name: option(d, len(shape)) for name, option in options.items()
                 if d.random() < 0.6}
        return call(xs, **given)
    return make


def fixed(*calls: Call) -> Maker:
    return lambda d: d.choice(calls)


def named(names: str, make: Maker) -> dict[str, Maker]:
    return dict.fromkeys(names.split(), make)


F23, F3, F33 = (np.float32(np.arange(1, n + 1)).reshape(s) / 4
                for n, s in ((6, (2, 3)), (3, (3,)), (9, (3, 3))))
I23 = np.int32([[3, -1, 2], [0, 2, -4]])
