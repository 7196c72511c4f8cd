"""Every public function of `numpy`, `lax` and `nn` agrees with JAX on generated arguments.

Eager, compiled, batched and differentiated: dtype, weak type, shape and value. Each name stands
in a table with how its arguments are made, or in a short list with the reason why it does not.
`MINIJAX_CASES=40` makes more cases of each; `MINIJAX_SEED` other ones.
"""

import functools
import os
import random
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax

CASES = int(os.environ.get("MINIJAX_CASES", "2"))
SEED = os.environ.get("MINIJAX_SEED", "")

# ── Arguments ────────────────────────────────────────────────────────────────────────────────

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

# ── The table: numpy ─────────────────────────────────────────────────────────────────────────

KEEP = {"keepdims": [True, False]}
TYPED = {"dtype": [np.float32, np.int32, "float16"]}

NUMPY: dict[str, Maker] = {
    **named("abs absolute fabs negative positive sign signbit square floor ceil trunc rint "
            "isfinite isinf isnan isneginf isposinf real imag conj conjugate logical_not "
            "exp exp2 expm1 log log1p log2 log10 sqrt cbrt sin cos tan arctan atan sinh "
            "cosh tanh arcsinh asinh deg2rad degrees rad2deg radians reciprocal sinc copy "
            "iscomplex isreal", unary()),
    **named("arcsin asin arccos acos arctanh atanh", unary(domain="unit")),
    **named("arccosh acosh", unary(domain="above one")),
    **named("round around", unary("ffhics", decimals=[0, 1, -1])),
    "angle": unary("ffcis", deg=[True, False]),
    "nan_to_num": unary("fffheics", nan=[1.5], posinf=[7.0], neginf=[-7]),
    **named("bitwise_invert bitwise_not invert", unary("iiupwbn")),
    **named("add subtract multiply divide true_divide equal not_equal less less_equal greater "
            "greater_equal logical_and logical_or logical_xor maximum minimum fmax fmin "
            "arctan2 atan2 copysign hypot logaddexp logaddexp2 nextafter fmod remainder mod "
            "floor_divide divmod heaviside isclose allclose float_power",
            binary()),
    **named("pow power", either(binary("ffihpusn", "positive"), lambda d: call(
        d.array("fffihc"), static=(d.choice([0, 1, 2, 3, -1, 0.5, 7]),)))),
    "ldexp": lambda d: call(d.array("ffhi", (2, 3), "positive"), d.array("in", (3,), "unit")),
    **named("bitwise_and bitwise_or bitwise_xor", binary("iiupwbn")),
    **named("left_shift right_shift bitwise_left_shift bitwise_right_shift",
            binary("iiupwn", "unit")),
    "array_equal": binary("fib"),
    "array_equiv": lambda d: call(*[d.array("fib", s) for s in d.choice(PAIRS[:-1])]),
    **named("sum", reduction(initial=[2, 0.5], **TYPED, **KEEP)),
    **named("prod", reduction(domain="unit", initial=[2, 0.5], **TYPED, **KEEP)),
    **named("mean", reduction(domain="floats", **TYPED, **KEEP)),
    **named("std var", reduction("ffffihe", ddof=[0, 1], domain="finite", **KEEP)),
    **named("max min amax amin", reduction(initial=[0], **KEEP)),
    **named("ptp", reduction("ffih", where=False, **KEEP)),
    **named("any all", reduction(**KEEP)),
    "count_nonzero": reduction(where=False, **KEEP),
    **named("argmax argmin", reduction("fffihub", several=False, where=False, **KEEP)),
    **named("nansum nanprod nanmax nanmin nanmean", reduction(
        "fffih", domain="floats", **KEEP)),
    **named("nanvar nanstd", reduction("fff", ddof=[0, 1], **KEEP)),
    **named("nanargmax nanargmin", reduction("fffi", several=False, where=False, **KEEP)),
    **named("median", reduction("ffi", where=False, domain="finite", shapes=FULL, **KEEP)),
    **named("cumsum cumprod nancumsum nancumprod", reduction("fffihub", several=False, where=False,
                                                             **TYPED)),
    "average": lambda d: call(x := d.array("ffi", d.choice(RICH), "positive"), **d.some(
        weights=lambda: np.asarray(np.ones(x.shape) + 0.5 * (x > 1), np.float32),
        keepdims=True)),
    **named("quantile percentile", lambda d: call(
        d.array("ffi", d.choice([(2, 3), (4, 2), (5,)]), "finite"),
        d.choice([0.5, np.float32([0.25, 0.75]), 0.3]), **d.some(
            axis=lambda: d.choice([0, -1]), keepdims=True,
            method=lambda: d.choice(["lower", "higher", "nearest", "midpoint", "linear"])))),
    **named("sort", along_axis(descending=[True], stable=[True, False])),
    **named("argsort", along_axis(descending=[True], stable=[True])),
    "lexsort": lambda d: call([d.array("iif", (4,), "finite") for _ in range(d.choice([1, 2]))]),
    "searchsorted": lambda d: call(
        np.sort(d.array("fi", (5,), "finite")), d.array("fi", d.choice(SHAPES), "finite"),
        **d.some(side="right", method=lambda: d.choice(["scan", "sort", "compare_all"]))),
    "digitize": lambda d: call(d.array("fi", (2, 3), "finite"), np.float32([-1, 0, 0.5, 2]),
                               **d.some(right=True)),
    "bincount": lambda d: call(d.array("iu", (6,), "unit"), **d.some(
        weights=lambda: d.array("f", (6,), "finite"), minlength=6), length=5),
    "histogram": lambda d: call(d.array("f", (7,), "finite"), **d.some(
        bins=4, range=(-2.0, 2.0), density=True)),
    "histogram_bin_edges": lambda d: call(d.array("f", (7,), "finite"), **d.some(bins=4)),
    **named("argwhere nonzero flatnonzero", lambda d: call(
        d.array("ib", d.choice(RICH), "finite"), size=d.choice([2, 4]), **d.some(
            fill_value=-1))),
    "where": either(lambda d: call(d.array("b", (2, 3)), d.array("fins", (3,)),
                                   d.array("fihs", (2, 1))),
                    lambda d: call(d.array("bi", d.choice(SHAPES)), d.array("s"),
                                   d.array("sn"))),
    "clip": lambda d: call(d.array("ffihun", domain="finite"), *d.choice(
        [(0, 2), (None, 1.5), (-1, None), (np.float32(0), 1)])),
    "piecewise": lambda d: call(x := d.array("fi", (5,), "finite"), [x < 0, x > 1],
                                static=([lambda v: -v, 3, lambda v: v * v],)),
    "select": lambda d: call([d.array("b", (2, 3)) for _ in range(2)],
                             [d.array("fi", (2, 3)), d.array("fi", (3,))],
                             d.choice([0, 1.5])),
    "diff": lambda d: call(d.array("fib", (2, 4), "finite"), **d.some(
        n=2, axis=0, prepend=1, append=lambda: np.float32([[1], [2]]))),
    "ediff1d": lambda d: call(d.array("fi", (2, 3), "finite"), **d.some(to_end=9, to_begin=-9)),
    "gradient": lambda d: call(d.array("f", (3, 4), "finite"), *d.choice([(), (0.5,), (2, 0.5)]),
                               ),
    "trapezoid": lambda d: call(d.array("fi", (2, 3), "finite"), **d.some(
        x=lambda: np.float32([0, 1, 3]), dx=0.5)),
    "interp": lambda d: call(d.array("fis", domain="finite"), np.float32([-2, 0, 1]),
                             np.float32([3, 1, 2]), **d.some(left=-1, right=lambda: 9.0)),
    "polyval": lambda d: call(d.array("fi", (3,), "finite"), d.array("fis", domain="unit")),
    **named("convolve correlate", lambda d: call(
        d.array("fi", (5,), "finite"), d.array("fi", (3,), "finite"),
        **d.some(mode=lambda: d.choice(["same", "valid", "full"])))),
    **named("dot", lambda d: call(*[d.array("ffihc", s, "finite") for s in d.choice(
        [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 2)), ((), (3,)), ((2, 2, 3), (3,)),
         ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (2,))])])),
    **named("matmul", lambda d: call(*[d.array("ffihcu", s, "finite") for s in d.choice(
        [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 2)), ((3,), (4, 3, 2)),
         ((2, 1, 2, 3), (4, 3, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((), (3,))])])),
    **named("inner", lambda d: call(*[d.array("ffih", s, "finite") for s in d.choice(
        [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (4, 3)), ((), (3,))])])),
    "outer": lambda d: call(d.array("fihc", domain="finite"), d.array("fi", (2, 2), "finite")),
    **named("vdot", lambda d: call(d.array("fic", (2, 3), "finite"),
                                   d.array("fic", (2, 3), "finite"))),
    "vecdot": lambda d: call(d.array("fic", (2, 3), "finite"), d.array("fi", (3,), "finite"),
                             **d.some(axis=-1)),
    "matvec": lambda d: call(d.array("fi", (2, 4, 3), "finite"), d.array("fi", (3,), "finite")),
    "tensordot": lambda d: call(d.array("fi", (2, 3), "finite"), d.array("fi", (3, 2), "finite"),
                                **d.some(axes=lambda: d.choice([0, 1, ((0, 1), (1, 0))]))),
    "einsum": lambda d: d.choice([
        call(d.array("fi", (2, 3), "finite"), d.array("f", (3, 4), "finite"),
             first=("ij,jk->ik",)),
        call(d.array("f", (3, 3), "finite"), first=("ii",)),
        call(d.array("f", (3, 3), "finite"), first=("ii->i",)),
        call(d.array("f", (2, 3), "finite"), d.array("f", (3,), "finite"),
             d.array("f", (2,), "finite"), first=("ij,j,i",)),
        call(d.array("f", (2, 3, 4), "finite"), d.array("f", (2, 4, 3), "finite"),
             first=("...ij,...jk->...ik",)),
        call(d.array("f", (2, 3), "finite"), first=("ij->ji",)),
    ]),
    "kron": lambda d: call(d.array("fi", (2, 2), "finite"), d.array("fi", (2, 3), "finite")),
    "cross": lambda d: call(d.array("fi", (2, 3), "finite"), d.array("fi", (2, 3), "finite")),
    "trace": lambda d: call(d.array("fih", d.choice([(3, 3), (2, 4), (2, 3, 3)]), "finite"),
                            **d.some(offset=lambda: d.choice([1, -1]))),
    "diagonal": lambda d: call(d.array("fi", d.choice([(3, 3), (2, 4), (2, 3, 3)])),
                               **d.some(offset=lambda: d.choice([1, -1]), axis2=1)),
    **named("diag diagflat", lambda d: call(
        d.array("fi", d.choice([(3,), (2, 3), (0,)])), **d.some(k=lambda: d.choice([1, -2])))),
    **named("tril triu", lambda d: call(d.array("fihb", d.choice([(3, 3), (2, 4), (2, 3, 3)])),
                                        **d.some(k=lambda: d.choice([1, -2])))),
    "fill_diagonal": lambda d: call(d.array("fi", d.choice([(3, 3), (2, 4)])),
                                    d.choice([2, 1.5, np.float32(7)]), inplace=False),
    "vander": lambda d: call(d.array("fi", (3,), "finite"), **d.some(N=2, increasing=True)),
    "reshape": lambda d: call(d.array("fibc", (2, 6)), static=(d.choice(
        [(3, 4), -1, (2, -1, 3), (12,), (5, 2)]),), **d.some(order=lambda: d.choice("CF"))),
    "ravel": lambda d: call(d.array("fib"), **d.some(order=lambda: d.choice("CF"))),
    "transpose": lambda d: call(d.array("fib", (2, 1, 3)), **d.some(
        axes=lambda: d.choice([(2, 0, 1), (0, 1, 2), (-1, 0, 1), (0, 1)]))),
    "permute_dims": lambda d: call(d.array("fi", (2, 1, 3)), static=((2, 0, 1),)),
    "matrix_transpose": lambda d: call(d.array("fi", d.choice([(2, 3), (4, 2, 3), (3,)]))),
    "swapaxes": lambda d: call(d.array("fi", (2, 1, 3)), static=(d.choice([0, -1]),
                                                                  d.choice([1, 2]))),
    "moveaxis": lambda d: call(d.array("fi", (2, 1, 3)), static=d.choice(
        [(0, -1), ((0, 1), (2, 0)), (5, 0)])),
    "rollaxis": lambda d: call(d.array("fi", (2, 1, 3)), static=(d.choice([0, 1, 2]),),
                               **d.some(start=2)),
    "expand_dims": lambda d: call(d.array("fi"), static=(d.choice([0, -1, (0, 1), 4]),)),
    "squeeze": lambda d: call(d.array("fi", (2, 1, 3, 1)), **d.some(
        axis=lambda: d.choice([1, (1, 3), -1, 0]))),
    "broadcast_to": lambda d: call(d.array("fis", d.choice([(), (3,), (2, 1), (2, 3)])),
                                   static=(d.choice([(2, 3), (4, 2, 3), (3, 2)]),)),
    "broadcast_arrays": lambda d: call(*[d.array("fis", s) for s in d.pair()]),
    **named("atleast_1d atleast_2d atleast_3d", lambda d: d.choice(
        [call(d.array("fis")), call(d.array("fi"), d.array("f"))])),
    "flip": lambda d: call(x := d.array("fib"), **d.some(
        axis=lambda: d.axis(np.ndim(x)))),
    **named("fliplr flipud", lambda d: call(d.array("fi"))),
    "roll": lambda d: call(d.array("fi", d.choice([(2, 3), (0, 3), (4, 2)])),
                           *d.choice([(1,), (-4,), (np.int32(2),)]), **d.some(axis=1)),
    "rot90": lambda d: call(d.array("fi", (2, 3)), **d.some(k=lambda: d.choice([2, 3, -1]))),
    "repeat": lambda d: d.choice([
        call(d.array("fi"), static=(2,)), call(d.array("fi", (2, 3)), static=(2,), axis=1),
        call(d.array("fi", (3,)), np.int32([1, 0, 2]), total_repeat_length=3)]),
    "tile": lambda d: call(d.array("fis"), static=(d.choice([2, (2, 1), (1, 2, 2), ()]),)),
    "pad": lambda d: call(d.array("fi", (2, 3)), static=(d.choice(
        [1, ((1, 0), (2, 1)), (1, 2)]), d.choice(
            ["constant", "edge", "reflect", "symmetric", "wrap", "maximum", "mean",
             "linear_ramp", "minimum"]))),
    **named("concatenate concat", arrays([1, 2, 3], axis=lambda d, n: d.one_axis(n))),
    **named("stack", arrays([1, 2, 3], shapes=SHAPES, axis=lambda d, n: d.choice([0, -1, n]))),
    **named("hstack vstack dstack column_stack", arrays([1, 2, 3], shapes=SHAPES)),
    "unstack": lambda d: call(d.array("fi", d.choice(RICH)), **d.some(
        axis=lambda: d.choice([0, -1]))),
    "append": lambda d: call(d.array("fi", (2, 3)), d.array("fi", (2, 3)), **d.some(axis=1)),
    "delete": lambda d: call(d.array("fi", (5,)), static=(d.choice(
        [0, -1, slice(1, 3), np.array([0, 3])]),)),
    "split": lambda d: call(d.array("fi", (4, 2)), static=(d.choice([2, [1, 3], 4, [5]]),)),
    "array_split": lambda d: call(d.array("fi", (5, 2)), static=(d.choice([2, 3, [1, 3]]),)),
    **named("hsplit", lambda d: call(d.array("fi", (2, 4)), static=(2,))),
    **named("vsplit", lambda d: call(d.array("fi", (4, 2)), static=(d.choice([2, [1]]),))),
    "dsplit": lambda d: call(d.array("fi", (1, 2, 4)), static=(2,)),
    "take": lambda d: call(d.array("fib", (4, 3)), d.array("iu", d.choice([(2,), (), (2, 2)])),
                           **d.some(axis=lambda: d.choice([0, 1, -1]), mode=lambda: d.choice(
                               ["fill", "clip", "wrap"]))),
    "take_along_axis": lambda d: call(
        d.array("fi", (2, 3)), d.array("i", (2, 2)), **d.some(
            axis=1, mode=lambda: d.choice(["fill", "clip"]))),
    "compress": lambda d: call(d.array("b", (3,)), d.array("fi", (3,)), size=2),
    "extract": lambda d: call(d.array("b", (2, 3)), d.array("fi", (2, 3)), size=2),
    "isin": lambda d: call(d.array("fi", domain="finite"), d.array("fi", (4,), "finite"),
                           **d.some(invert=True)),
    "unique": lambda d: call(d.array("fi", d.choice([(6,), (2, 3)]), "finite"), size=4, **d.some(
        return_index=True, return_inverse=True, return_counts=True, fill_value=0)),
    **named("union1d intersect1d setdiff1d setxor1d", lambda d: call(
        d.array("fi", domain="finite"), d.array("fi", (4,), "finite"), size=4, **d.some(
            fill_value=0))),
    **named("unique_all unique_counts unique_inverse unique_values", lambda d: call(
        d.array("fi", d.choice([(6,), (2, 3)]), "finite"), size=4, **d.some(fill_value=0))),
    **named("zeros_like ones_like empty_like", lambda d: call(d.array("fibhs"), **d.some(
        dtype=np.int8, shape=(2,)))),
    "full_like": lambda d: call(d.array("fihs"), d.choice([2, 1.5, np.int32(3)]), **d.some(
        dtype=np.int8, shape=(2,))),
    "full": lambda d: call(first=(d.choice([(2, 3), (), 3, (0,)]),), static=(d.choice(
        [2, 1.5, True, np.float32(2)]),), **d.some(dtype=lambda: d.choice([np.int8, "float16"]))),
    **named("zeros ones empty", lambda d: call(first=(d.choice([(2, 3), (), 3, (0,)]),), **d.some(
        dtype=lambda: d.choice([np.int8, bool, "bfloat16"])))),
    **named("array asarray", lambda d: call(d.choice(
        [d.array("fihbcsnt", domain="finite"), [1, 2.5], [[1, 2], [3, 4]], [True],
         [d.array("f", (3,), "finite")] * 2, []]),
        **d.some(dtype=lambda: d.choice([np.float32, "int8", bool])))),
    "arange": lambda d: call(first=d.choice(
        [(5,), (2, 7), (2, 9, 3), (0.0, 1.0, 0.25), (5, 0, -2), (0,), (3.5,)]), **d.some(
            dtype=lambda: d.choice([np.float32, np.int8]))),
    "linspace": lambda d: call(*d.choice([(0, 1), (0.5, -2), (np.float32([0, 1]), 3)]),
                               **d.some(num=lambda: d.choice([5, 1, 0]), endpoint=False,
                                        retstep=True, dtype=np.float32)),
    "logspace": lambda d: call(0, 2, **d.some(num=5, base=2.0, endpoint=False)),
    "geomspace": lambda d: call(1.0, 16.0, **d.some(num=5, endpoint=False)),
    **named("eye", lambda d: call(first=(3,), **d.some(M=4, k=lambda: d.choice([1, -1]),
                                                        dtype=np.int8))),
    "identity": lambda d: call(first=(3,), **d.some(dtype=np.int8)),
    "tri": lambda d: call(first=(3,), **d.some(M=4, k=1, dtype=np.int8)),
    **named("tril_indices triu_indices", lambda d: call(first=(3,), **d.some(k=1, m=4))),
    "diag_indices": lambda d: call(first=(3,), **d.some(ndim=3)),
    "indices": lambda d: call(first=((2, 3),), **d.some(dtype=np.float32, sparse=True)),
    "meshgrid": lambda d: call(d.array("fi", (2,)), d.array("f", (3,)), **d.some(
        indexing="ij", sparse=True)),
    "astype": lambda d: call(d.array("fihbu", domain="finite"), static=(d.choice(
        [np.int32, np.float16, bool, "uint8"]),)),
    "vectorize": lambda d: d.choice([
        call(d.array("f", (2, 3)), d.array("fi", (3,)), first=(lambda x, y: x + y,)),
        call(d.array("fi", (2, 3)), d.array("f", (3,)), first=(lambda x, y: x[0] - y,),
             signature="(n),()->()"),
        call(d.array("fi", (2, 3)), 2, first=(lambda x, y: x * y,), excluded={1})]),
    "apply_along_axis": lambda d: call(d.array("fi", (2, 3)), first=(
        Of(lambda lib: lambda v: v.sum()), d.choice([0, 1]))),
    "block": lambda d: call(d.array("fi", (2, 3)), d.array("f", (2, 3))),
    **named("gcd lcm", binary("iiuphn", "finite", same=True)),
    **named("frexp modf", unary("ffehin")),
    "bitwise_count": unary("iupwbn", domain="finite"),
    "packbits": along_axis("iub", bitorder=["big", "little"]),
    "unpackbits": along_axis("uuuf", bitorder=["little"], count=[5, -3, 30]),
    **named("cumulative_sum cumulative_prod", along_axis(
        "fihub", include_initial=[True], dtype=[np.float32])),
    **named("nanmedian", reduction("ffi", where=False, shapes=FULL, **KEEP)),
    **named("nanquantile nanpercentile", lambda d: call(
        d.array("ffi", (2, 3), "floats"), d.choice([0.5, np.float32([0.25, 0.75]), 0.3]), **d.some(
            axis=lambda: d.choice([0, -1]), keepdims=True, method=lambda: d.choice(
                ["lower", "higher", "nearest", "midpoint", "inverted_cdf"])))),
    **named("partition", lambda d: call(d.array("f", (2, 1)), static=(d.choice([0, -1, 2]),))),
    "argpartition": lambda d: call(d.array("i", (1, 3)), static=(d.choice([0, 1]), 0)),
    "sort_complex": unary("fic", domain="finite"),
    "vecmat": lambda d: call(d.array("fic", (4, 3), "finite"), d.array("fi", (3, 2), "finite")),
    "unwrap": lambda d: call(d.array("fi", (2, 5), "finite"), **d.some(
        period=lambda: d.choice([4, 3.5]), axis=0, discont=2.5)),
    "resize": lambda d: call(d.array("fi", d.choice(RICH)), static=(d.choice(
        [(2, 2), 7, (0,), (-1,)]),)),
    "choose": lambda d: call(d.array("i", d.choice([(), (3,), (2, 3)])), [
        d.array("fi", (3,)), d.array("fi", (2, 3))], mode=d.choice(["clip", "wrap", "x"])),
    "put": lambda d: call(d.array("fi", (2, 3)), np.int32([0, 7, -1]), d.array("fi", (2,)),
                          inplace=False, **d.some(mode=lambda: d.choice(["clip", "wrap"]))),
    "place": lambda d: call(d.array("fi", (2, 3)), d.array("b", (2, 3)), d.array("fi", (2,)),
                            inplace=d.choice([False, False, True])),
    "put_along_axis": lambda d: call(d.array("fi", (2, 3)), np.int32([[2], [0]]), d.choice(
        [2, np.float32([[1], [2]])]), static=(1,), inplace=False),
    "insert": lambda d: d.choice([
        call(d.array("fi", (4,)), d.array("i", (2,)), d.array("fi", (2,))),
        call(d.array("fi", (4,)), np.int32(1), d.array("f", (2,))),
        call(d.array("fi", (2, 3)), np.int32(-1), d.array("f", (2,)), axis=1),
        call(d.array("fi", (2, 3)), first=(), static=(slice(0, 3, 2), 7), axis=1)]),
    "unravel_index": lambda d: call(d.array("i", d.choice(SHAPES)), static=(d.choice(
        [(2, 3), 4, (1, 2, 2)]),)),
    "ravel_multi_index": lambda d: call([d.array("i", (3,)), d.array("i", ())], static=((2, 3),),
                                        mode=d.choice(["clip", "wrap", "ignore"]), **d.some(
                                            order="F", dtype=np.int8)),
    "apply_over_axes": lambda d: call(d.array("fi", (2, 3)), first=(Of(
        lambda lib: lib.numpy.sum),), static=((0, -1),)),
    **named("polyadd polysub polymul", lambda d: call(
        d.array("fi", (3,), "finite"), d.array("fi", d.choice([(2,), (4,)]), "finite"))),
    "poly": lambda d: call(d.array("fi", d.choice([(3,), ()]), "finite")),
    "roots": lambda d: call(d.choice([np.float32([1, -6, 11, -6]), np.float32([2, 1, 3])]),
                            strip_zeros=False),
    "polydiv": lambda d: call(d.array("fi", d.choice([(4,), (1,)]), "positive"),
                              d.array("f", (2,), "positive")),
    **named("polyder polyint", lambda d: call(d.array("fi", (4,), "finite"), static=(
        d.choice([0, 1, 2, 3, -1]),))),
    "polyfit": lambda d: call(np.float32([1, 2, 3, 5]), d.array("f", (4,), "unit"), static=(
        d.choice([1, 2, -1]),), **d.some(w=np.float32([1, 2, 1, 0.5]))),
    "histogramdd": lambda d: call(d.array("f", (7, 2), "finite"), **d.some(
        bins=lambda: d.choice([4, [2, 3]]), density=True,
        range=[(-2.0, 2.0), (-1.0, 3.0)])),
    "histogram2d": lambda d: call(d.array("f", (7,), "finite"), d.array("i", (7,), "finite"),
                                  **d.some(bins=lambda: d.choice([4, [2, 3]]))),
}
# Called with the values themselves; what they give may be no array.
NUMPY_CONCRETE: dict[str, Maker] = {
    "spacing": unary("ffi", domain="finite"),
    **named("bartlett blackman hamming hanning", lambda d: call(first=(d.choice([5, 4, 0, 1]),))),
    "kaiser": lambda d: call(first=(d.choice([5, 4, 0, 1]), 2.5)),
    "i0": unary("ffi", "finite"),
    "cov": lambda d: call(d.array("fi", (3, 4), "finite"), **d.some(bias=True, rowvar=False)),
    "corrcoef": lambda d: call(d.array("f", (3, 4), "unit")),
    **named("tril_indices_from triu_indices_from", lambda d: call(d.array("f", d.choice(
        [(3, 2), (2, 3), (3,)])), **d.some(k=1))),
    "diag_indices_from": lambda d: call(d.array("f", d.choice([(2, 2), (2, 3), (3,), (2, 2, 2)]))),
    "mask_indices": lambda d: call(first=(3, Of(lambda lib: lib.numpy.triu)), **d.some(k=1)),
    "ix_": lambda d: call(d.array("ib", (3,)), d.array("i", d.choice([(2,), (0,), (2, 2)]))),
    "trim_zeros": lambda d: call(np.float32([[0, 0, 0], [0, 1, 0]]), **d.some(
        trim=lambda: d.choice("fb"), axis=1)),
    **named("fromfile fromiter", lambda d: call(first=("x",))),
    "frombuffer": lambda d: call(first=(b"abcd", d.choice([np.uint8, np.float32])), **d.some(
        offset=2)),
    "fromstring": lambda d: call(first=("1 2 3", d.choice([int, float])), sep=" "),
    "fromfunction": lambda d: call(first=(Of(lambda lib: lambda i, j: i + 2 * j), (2, 3)),
                                   **d.some(dtype=int)),
    **named("ndim shape size", lambda d: call(d.array("fis"))),
    **named("isscalar iscomplexobj isrealobj iterable", lambda d: call(d.choice(
        [d.array("ficsnt"), "a", [1, 2], np.float32(3)]))),
    "broadcast_shapes": lambda d: call(first=d.choice(
        [((2, 1), (3,)), ((2,), (3,)), ((), (4,)), ((0, 1), (1, 2))])),
    **named("nonzero argwhere flatnonzero unique", lambda d: call(
        d.array("fib", d.choice(SHAPES), "finite"))),
    "where": lambda d: call(d.array("bi", d.choice(RICH), "finite")),
    "bincount": lambda d: call(d.array("iu", (6,), "unit"), **d.some(minlength=7)),
    **named("compress extract", lambda d: call(d.array("b", (3,)), d.array("fi", (3,)))),
    "repeat": lambda d: call(d.array("fi", (3,)), np.int32([1, 0, 2])),
    "result_type": lambda d: call(d.array("fihuecsn"), d.array("fibupsnw")),
    **named("promote_types can_cast", lambda d: call(first=tuple(
        d.choice(["int8", "uint8", "float16", "bfloat16", "int32", "float32", "bool"])
        for _ in range(2)))),
    **named("issubdtype", lambda d: call(first=(
        d.choice([np.int32, np.float32, "bfloat16", bool]),
        d.choice([np.integer, np.floating, np.number, np.float32])))),
    "isdtype": lambda d: call(first=(d.choice(["int32", "float32", "bool"]), d.choice(
        ["integral", "real floating", "bool", "numeric", ("bool", "integral")]))),
    "array": lambda d: call(d.choice([d.array("fib"), [[1, 2], [3]], None, "a"]), **d.some(
        ndmin=2, copy=True)),
    "from_dlpack": lambda d: call(d.array("fiu")),
}


# ── The table: lax, which neither promotes nor broadcasts ────────────────────────────────────

REAL = "fffhe"


def shaped(*shapes: tuple, kinds: str = "fi", **options: Any) -> Maker:
    """`f(x)` or more arguments of one dtype and these shapes, and static ones by name."""
    def make(d: Draw) -> Call:
        kind = d.choice(kinds)
        given = {name: d.choice(values) for name, values in options.items()}
        return call(*[d.array(kind, shape, "finite") for shape in shapes], **given)
    return make


def known(kinds: str, shape: tuple, *statics: tuple) -> Maker:
    """`f(x, *static)` for one of these rows of known arguments."""
    return lambda d: call(d.array(kinds, shape, "finite"), static=d.choice(statics))


def places(d: Draw, count: int) -> list:
    return [np.int32(d.choice([0, 1, 2, -1, 7])) for _ in range(count)]


LAX: dict[str, Maker] = {
    **named("exp exp2 expm1 log log1p logistic sqrt rsqrt cbrt sin cos tan sinh cosh tanh "
            "asinh atan erf erfc", unary("fffhei")),
    **named("digamma lgamma", unary(REAL, "positive")),
    **named("bessel_i0e bessel_i1e", unary(REAL, "finite")),
    "zeta": lambda d: call(d.array("f", (3,), "above one") + 1, d.array("f", (3,), "above one")),
    "polygamma": lambda d: call(first=(np.float32([0, 1, 3]),),
                                static=(d.array("f", (3,), "above one"),)),
    "betainc": lambda d: call(first=(np.float32([.5, 2, 30]), np.float32([3, 1, 20])),
                              static=(np.abs(d.array("f", (3,), "unit")),)),
    **named("asin acos atanh erf_inv", unary(REAL, "unit")),
    "acosh": unary(REAL, "above one"),
    **named("abs neg sign square", unary("fffheipuc")),
    "reciprocal": unary("ffhc"),
    **named("floor ceil is_finite", unary(REAL)),
    "round": unary(REAL, rounding_method=[0, 1]),
    **named("real imag conj", unary("cc")),
    "complex": binary("f", same=True),
    **named("bitwise_not", unary("iupwb")),
    **named("mulhi", binary("iupw", same=True)),
    "reduce_precision": known("ffh", (2, 3), (5, 2), (8, 7), (3, 0), (11, 30), (1, 3)),
    "index_take": lambda d: call(d.array("fi", (2, 3)), d.array("i", (2, 4)),
                                 static=((0, 1),)),
    "scatter_apply": lambda d: call(d.array("i", (4, 3)), np.int32([[2], [0], [9]])),
    "tile": known("fib", (2, 3), ((2, 1),), ((1, 3),), ((0, 2),), ((2,),)),
    "stack": lambda d: call([d.array(k := d.choice("fib"), (2, 3)), d.array(k, (2, 3))],
                            static=(d.choice([0, 1, 2, -1, 3]),)),
    "unstack": known("fib", (2, 3), (0,), (1,), (-1,), (2,)),
    "collapse": known("fi", (2, 1, 3), (0,), (1,), (-2,), (0, 2), (1, 1), (2, 1)),
    "broadcast_like": lambda d: call(d.array("fi", (2, 3)), d.array("f", d.choice(
        [(4, 2, 3), (2, 3), (3,)]))),
    "optimization_barrier": unary("fib"),
    **named("approx_max_k approx_min_k", lambda d: call(
        d.distinct((2, 300)).astype(d.choice([np.float32, np.float16])),
        static=(d.choice([1, 5, 301, 0]),),
        **d.some(reduction_dimension=1, aggregate_to_topk=False))),
    "ragged_dot": lambda d: call(d.array("f", (5, 3), "unit"), d.array(
        "f", (2, 3, 4), "unit"), d.choice(
        [np.int32([2, 3]), np.int32([0, 4]), np.float32([2, 3]), np.int32([1, 1, 3])])),
    "ragged_dot_general": lambda d: call(
        d.array("i", (5, 6)), d.array("i", (6, 3)), np.int32([2, 3])),
    "reduce": lambda d: call(d.array("fi", (2, 3)), static=(d.choice([0, 1]),)),
    "reduce_window": lambda d: call(d.array("f", (4, 5), "finite"), window_strides=d.choice(
        [(1, 1), (2, 1)]), padding=d.choice(["SAME", "VALID"])),
    "conv": lambda d: call(d.array("f", (2, 3, 5), "unit"), d.array("f", (4, 3, 2), "unit"),
                           window_strides=(d.choice([1, 2]),), padding=d.choice(["SAME", "VALID"])),
    "conv_with_general_padding": lambda d: call(
        d.array("f", (2, 3, 5), "unit"), d.array("f", (4, 3, 2), "unit"), window_strides=(1,),
        padding=((1, 0),), lhs_dilation=(d.choice([1, 2]),), rhs_dilation=(2,)),
    "conv_general_dilated": lambda d: call(
        d.array("f", (2, 4, 5), "unit"), d.array("f", (4, 2, 2), "unit"), window_strides=(1,),
        padding="SAME", feature_group_count=2),
    "conv_transpose": lambda d: call(
        d.array("f", (2, 5, 3), "unit"), d.array("f", (2, 3, 4), "unit"), strides=(2,),
        padding=d.choice(["SAME", "VALID"])),
    "conv_general_dilated_patches": lambda d: call(
        d.array("f", (2, 3, 5), "unit"), filter_shape=(2,), window_strides=(2,), padding="SAME"),
    "conv_general_dilated_local": lambda d: call(
        d.array("f", (2, 3, 5), "unit"), d.array("f", (4, 6, 4), "unit"), window_strides=(1,),
        padding="VALID", filter_shape=(2,)),
    **named("igamma igammac igamma_grad_a", lambda d: call(
        d.array(k := d.choice("ffh"), (2, 3), "positive"), d.array(k, (2, 3), "positive"))),
    "empty": lambda d: call(first=((2, 3), d.choice([np.float32, np.int8]))),
    "platform_dependent": lambda d: call(d.array("f", (2, 3))),
    **named("population_count clz", unary("iupw")),
    **named("add sub mul", binary("ffihpuwc", same=True)),
    **named("max min", binary("ffihpuwb", same=True)),
    **named("div rem", binary("ffihpuw", same=True)),
    **named("pow", either(binary(REAL, "positive", same=True), lambda d: call(
        d.array("f", (2, 3), "positive"), d.array("i", (2, 3))))),
    **named("atan2 nextafter", binary("fffh", same=True)),
    **named("eq ne lt le gt ge", binary("ffihpuwb", same=True)),
    **named("bitwise_and bitwise_or bitwise_xor", binary("iupwb", same=True)),
    **named("shift_left shift_right_logical shift_right_arithmetic",
            binary("iupw", "unit", same=True)),
    "integer_pow": known("fihc", (2, 3), (0,), (1,), (2,), (3,), (-1,), (-2,), (8,)),
    "clamp": lambda d: d.choice([
        call(d.array(k := d.choice("fih"), (2, 3), "finite"), d.array(k, (2, 3), "finite"),
             d.array(k, (2, 3), "positive")),
        call(d.array(k, (2, 3), "finite"), first=(d.array(k, (), "unit"),),
             static=(d.array(k, (), "positive"),))]),
    "select": lambda d: call(d.array("b", d.choice([(), (2, 3)])), d.array(
        k := d.choice("fihb"), (2, 3)), d.array(k, (2, 3))),
    "select_n": lambda d: d.choice([
        call(d.array("b", (2, 3)), d.array("f", (2, 3)), d.array("f", (2, 3))),
        call(np.int32([[0, 1, 2], [2, 1, 0]]), *[d.array("i", (2, 3)) for _ in range(3)])]),
    "stop_gradient": unary("fic"),
    "full": lambda d: call(first=((2, 3), d.choice([1, 2.5, True])), **d.some(dtype=np.int8)),
    "full_like": lambda d: call(d.array("fih"), d.choice([1, 2.5]), **d.some(
        dtype=np.int8, shape=(2,))),
    "convert_element_type": lambda d: call(d.array("fffihbupws"), static=(d.choice(
        [np.int32, np.int8, np.uint8, np.float16, "bfloat16", bool, np.float32]),)),
    "bitcast_convert_type": lambda d: d.choice([
        call(d.array("fiw"), static=(d.choice([np.int32, np.float32, np.uint32]),)),
        call(d.array("f", (2,)), static=(np.uint8,)),
        call(d.array("u", (3, 4)), static=(np.int32,))]),
    **named("argmax argmin", known("fihu", (2, 3), (0, np.int32), (1, np.uint8), (1, np.int32))),
    **named("cumsum cumprod cummax cummin", lambda d: call(
        d.array("ffih", d.choice(RICH), "finite"), **d.some(axis=0, reverse=True))),
    "cumlogsumexp": lambda d: call(d.array("f", d.choice(RICH), "finite"), **d.some(
        axis=0, reverse=True)),
    **named("reduce_sum reduce_prod reduce_max reduce_min", known(
        "ffihu", (2, 1, 3), ((0,),), ((0, 2),), ((),), ((0, 1, 2),), ((2,),))),
    **named("reduce_and reduce_or reduce_xor", known(
        "biu", (2, 1, 3), ((0,),), ((0, 2),), ((),), ((0, 1, 2),))),
    "sort": either(known("fihb", (2, 3), (0,), (1,), (-1,)), lambda d: call(
        (d.array("i", (5,), "unit"), d.distinct((5,))), num_keys=d.choice([1, 2]))),
    "fft": lambda d: call(d.array("ffic", (2, 6), "finite"), static=d.choice(
        [("fft", (6,)), ("IFFT", (2, 6)), ("rfft", (6,)), ("irfft", (2, 10)), ("x", (6,)),
         ("fft", (4,)), ("rfft", ())])),
    "sort_key_val": lambda d: call(d.array("fi", (5,), "finite"), d.distinct((5,))),
    "top_k": known("fih", (2, 5), (1,), (3,), (5,), (0,)),
    "reshape": known("fib", (2, 6), ((3, 4),), ((12,),), ((2, 2, 3),)),
    "transpose": known("fib", (2, 1, 3), ((2, 0, 1),), ((0, 1, 2),), ((0, 1),)),
    "rev": known("fib", (2, 1, 3), ((0,),), ((0, 2),), ((),)),
    "squeeze": known("fi", (2, 1, 1), ((1,),), ((1, 2),), ((-1,),), ((0,),)),
    "expand_dims": known("fi", (2, 3), ((0,),), ((0, 2),), ((-1,),)),
    "broadcast": known("fis", (2, 3), ((),), ((2,),), ((2, 1),)),
    "broadcast_in_dim": known("fi", (3,), ((2, 3), (1,)), ((3, 2), (0,)), ((2, 2), (0,))),
    "broadcast_to_rank": lambda d: call(d.array("fi", (2, 3)), rank=d.choice([2, 4])),
    "iota": lambda d: call(first=(d.choice([np.int32, "float32", np.int8]), d.choice([0, 5]))),
    "broadcasted_iota": lambda d: call(first=(np.int32, d.choice([(2, 3), (0, 3), (4,)]), 0)),
    "pad": lambda d: call(d.array(k := d.choice("fi"), (2, 3)), np.asarray(7, DTYPES[k]),
                          static=(d.choice([((1, 0, 0), (0, 2, 1)), ((-1, 0, 0), (0, -2, 0)),
                                            ((0, 0, 2), (1, 1, 0))]),)),
    "concatenate": lambda d: call([d.array(k := d.choice("fi"), (2, 3)), d.array(k, (2, 3))],
                                  static=(d.choice([0, 1]),)),
    "slice": known("fib", (4, 5), ((0, 1), (3, 4)), ((1, 0), (4, 5), (2, 3)), ((0, 0), (0, 5)),
                   ((0, 1), (5, 4))),
    "slice_in_dim": known("fi", (4, 5), (1, 3), (-2, None), (0, 4, 2), (1, 4, 1, 1)),
    "index_in_dim": known("fi", (4, 5), (1,), (-1, 1), (2, 0, False), (9,)),
    "dynamic_slice": lambda d: call(d.array("fib", (4, 5)), places(d, 2), static=(d.choice(
        [(2, 3), (1, 5), (4, 5), (0, 1), (5, 5)]),)),
    "dynamic_slice_in_dim": lambda d: call(d.array("fi", (4, 5)), *places(d, 1), static=(
        d.choice([1, 3]), d.choice([0, 1]))),
    "dynamic_index_in_dim": lambda d: call(d.array("fi", (4, 5)), *places(d, 1), **d.some(
        axis=1, keepdims=False)),
    "dynamic_update_slice": lambda d: call(d.array(k := d.choice("fi"), (4, 5)), d.array(
        k, (2, 3)), places(d, 2)),
    "dynamic_update_slice_in_dim": lambda d: call(d.array(k := d.choice("fi"), (4, 5)), d.array(
        k, (2, 5)), *places(d, 1), static=(0,)),
    "dynamic_update_index_in_dim": lambda d: call(d.array(k := d.choice("fi"), (4, 5)), d.array(
        k, (5,)), *places(d, 1), static=(0,)),
    "split": lambda d: call(d.array("fi", (4, 5)), static=d.choice([((1, 3),), ((2, 3), 1)])),
    "gather": lambda d: gathered(d),
    **named("scatter scatter_add scatter_sub scatter_mul", lambda d: scattered(d, "clip")),
    **named("scatter_min scatter_max", lambda d: scattered(d, "fill")),
    "dot": lambda d: call(*[d.array("ffih", s, "finite") for s in d.choice(
        [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 2)), ((2, 3), (2, 3))])]),
    "dot_general": lambda d: call(d.array(k := d.choice("ffihc"), (4, 2, 3), "finite"), d.array(
        k, (4, 3, 2), "finite"), static=(d.choice(
            [(((2,), (1,)), ((0,), (0,))), (((1, 2), (2, 1)), ((0,), (0,))),
             (((2,), (1,)), ((), ())), (((), ()), ((0,), (0,)))]),)),
    "batch_matmul": shaped((4, 2, 3), (4, 3, 2), kinds="ffi"),
    "cond": lambda d: call(d.choice([True, False, np.bool_(True)]), first=(), static=()),
    "switch": lambda d: call(np.int32(d.choice([0, 1, 2, -1, 5])), d.array("f"), first=()),
    "fori_loop": lambda d: call(d.array("f", domain="unit")),
    "while_loop": lambda d: call(d.array("f", (3,), "positive")),
    "scan": lambda d: call(d.array("f", (3,), "unit"), d.array("f", (4, 3), "unit"), **d.some(
        reverse=True, unroll=2)),
    "map": lambda d: call(d.array("fi", (4, 3), "unit"), **d.some(batch_size=3)),
}


def gathered(d: Draw) -> Call:
    numbers = Of(lambda lib: lib.lax.GatherDimensionNumbers(
        offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0, 1)))
    return call(d.array("fi", (4, 5)), np.int32([[0, 1], [3, 9], [-1, 2]]), static=(
        numbers, (1, 2)), **d.some(mode=lambda: d.choice(["clip", "fill"])))


def scattered(d: Draw, mode: str) -> Call:
    numbers = Of(lambda lib: lib.lax.ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0, 1)))
    kind = d.choice("fi")
    return call(d.array(kind, (4, 5), "finite"), np.int32([[0, 1], [3, 9], [2, 2]]), d.array(
        kind, (3, 2), "finite"), static=(numbers,), **d.some(mode=lambda: d.choice(
            [mode, "drop"])))


LAX_CONCRETE: dict[str, Maker] = {
    "padtype_to_pads": lambda d: call(first=((5, 5), (2, 3), (2, 1), d.choice(
        ["SAME", "VALID", "same_lower"]))),
    "reduce_window_shape_tuple": lambda d: call(first=((4, 4), (2, 2), (1, 2), [(0, 0), (1, 1)])),
    "conv_shape_tuple": lambda d: call(first=((1, 2, 5), (4, 2, 3), (2,), "SAME")),
    "conv_general_permutations": lambda d: call(first=(("NHWC", "HWIO", "NHWC"),)),
    "conv_dimension_numbers": lambda d: call(first=((1, 2, 3), (1, 2, 3), ("NHC", "HIO", "NCH"))),
    "conv_general_shape_tuple": lambda d: call(first=(
        (1, 5, 2), (3, 2, 4), (2,), "VALID", ("NHC", "HIO", "NHC"))),
    "conv_transpose_shape_tuple": lambda d: call(first=(
        (1, 5, 2), (3, 2, 4), (2,), "VALID", ("NHC", "HIO", "NHC"))),
    "dtype": lambda d: call(d.array("fib", (2,))),
    "random_gamma_grad": lambda d: call(d.array("f", (3,), "positive"),
                                        d.array("f", (3,), "positive")),
    "shape_as_value": lambda d: call(first=(d.choice([(2, 3), ()]),)),
    "broadcast_shapes": lambda d: call(first=d.choice([((2, 1), (3,)), ((2,), (3,)), ((), ())])),
}

# ── The table: nn ────────────────────────────────────────────────────────────────────────────

NN: dict[str, Maker] = {
    **named("relu relu6 sigmoid silu swish soft_sign softplus log_sigmoid hard_sigmoid hard_silu "
            "hard_swish hard_tanh identity selu mish sparse_plus sparse_sigmoid squareplus "
            "tanh", unary("fffheis")),
    "log1mexp": unary("fffh", domain="positive"),
    **named("celu elu", unary("fffhs", alpha=[0.5, 2.0])),
    "leaky_relu": unary("fffhs", negative_slope=[0.2]),
    "gelu": unary("fffhs", approximate=[True, False]),
    "glu": lambda d: call(d.array("fh", (2, 4)), **d.some(axis=lambda: d.choice([0, 1]))),
    **named("softmax log_softmax", reduction("fffh", shapes=RICH, domain="finite")),
    **named("logsumexp", reduction("fffhi", domain="finite", **KEEP)),
    "logmeanexp": reduction("fff", domain="finite", **KEEP),
    "standardize": reduction("fff", shapes=RICH, domain="finite", epsilon=[1e-3]),
    "dot_product_attention": lambda d: call(
        *(d.array("f", (2, 3, 2, 4), "unit") for _ in range(3)), **d.some(is_causal=True)),
    "one_hot": lambda d: call(d.array("iu"), static=(4,), **d.some(
        axis=0, dtype=np.float32)),
}

TABLE = {"numpy": NUMPY, "lax": LAX, "nn": NN}
CONCRETE = {"numpy": NUMPY_CONCRETE, "lax": LAX_CONCRETE, "nn": {}}

# Functions of functions: what is compared is what comes out in the end.
ADAPTED: dict[str, Callable] = {
    "numpy.block": lambda f, lib: lambda x, y: f([[x, y], [y, x]]),
    "numpy.vectorize": lambda f, lib: lambda g, *xs, **options: f(g, **options)(*xs),
    "lax.reduce": lambda f, lib: lambda x, axis: f(x, 0, lib.lax.add, (axis,)),
    "lax.reduce_window": lambda f, lib: lambda x, **o: f(x, 0., lib.lax.add, (2, 2), **o),
    "lax.scatter_apply": lambda f, lib: lambda x, places: f(
        x, places, lambda x: 2 * x, lib.lax.ScatterDimensionNumbers((1,), (0,), (0,)),
        update_shape=(3, 3)),
    "lax.ragged_dot_general": lambda f, lib: lambda *args: f(
        *args, lib.lax.RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), (1,), ())),
    "lax.platform_dependent": lambda f, lib: lambda x: f(
        x, cpu=lambda x: 2 * x, default=lambda x: x),
    "lax.cond": lambda f, lib: lambda p: f(p, lambda x: x + 1, lambda x: x * 3, 2.0),
    "lax.switch": lambda f, lib: lambda i, x: f(i, [lib.numpy.sin, lambda x: 2 * x,
                                                    lambda x: x - x], x),
    "lax.fori_loop": lambda f, lib: lambda x: f(0, 3, lambda i, x: lib.numpy.sin(x) + i, x),
    "lax.while_loop": lambda f, lib: lambda x: f(lambda x: x.sum() < 50, lambda x: x * 2, x),
    "lax.scan": lambda f, lib: lambda x, xs, **o: f(
        lambda c, x: (c * 0.5 + lib.numpy.sin(x), (c, x * 2)), x, xs, **o),
    "lax.map": lambda f, lib: lambda xs, **o: f(lambda x: lib.numpy.sin(x) * x, xs, **o),
}

# Public callables without a row, and why.
TYPES = ("bfloat16 bool bool_ cdouble complex128 complex64 complex_ complexfloating csingle double "
         "dtype finfo float16 float32 float64 float_ floating generic iinfo inexact int16 int32 "
         "int64 int8 int_ integer ndarray number signedinteger single uint uint16 uint32 uint64 "
         "uint8 unsignedinteger character flexible object_ ComplexWarning float4_e2m1fn "
         "float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
         "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int1 int2 int4 uint1 uint2 "
         "uint4")
NOT_HERE = {
    **{f"numpy.{name}": "a type; tests/numpy/test_scalar_types.py" for name in TYPES.split()},
    **{f"numpy.{name}": "NumPy's own" for name in (
        "get_printoptions", "set_printoptions", "printoptions", "array_repr", "array_str",
        "save", "savez")},
    "numpy.einsum_path": "its text is NumPy's; tests/numpy/test_contractions.py",
    "numpy.load": "needs a file; its example makes one",
    **{f"numpy.{name}": "gives a function; tests/numpy/test_ufuncs.py" for name in (
        "frompyfunc", "ufunc")},
    "numpy.install_operators": "the hook that puts operators on arrays",
    **{f"lax.{name}": "a type" for name in (
        "GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers",
        "AccuracyMode", "ConvDimensionNumbers", "DotAlgorithm", "DotAlgorithmPreset", "FftType",
        "Precision",
        "RaggedDotDimensionNumbers", "RoundingMethod", "Tolerance")},
    **{f"lax.{name}": "needs a named axis; tests/interpreters/test_vmap.py" for name in (
        "all_gather", "axis_index", "axis_size", "pmax", "pmean", "pmin", "ppermute", "psum")},
    **{f"lax.{name}": f"takes functions; tests/higher_order/test_{file}.py" for name, file in (
        ("associative_scan", "associative"), ("custom_linear_solve", "linear"),
        ("custom_root", "linear"))},
    **{f"lax.{name}": "needs a named axis; tests/test_sharding.py" for name in (
        "all_to_all", "pbroadcast", "pcast", "pshuffle", "psum_scatter", "pswapaxes",
        "ragged_all_to_all")},
    "lax.with_sharding_constraint": "needs devices; tests/test_sharding.py",
}


# ── Comparing ────────────────────────────────────────────────────────────────────────────────

class Refused(NamedTuple):
    """The class of an error, and what it also is."""

    kinds: tuple[str, ...]
    text: str


def refusal(error: Exception) -> Refused:
    return Refused(tuple(kind.__name__ for kind in type(error).__mro__), str(error)[:300])


def function_of(lib: Any, module: str, name: str) -> Callable:
    f = getattr(getattr(lib, module), name)
    adapt = ADAPTED.get(f"{module}.{name}")
    return adapt(f, lib) if adapt else f


def leaves(lib: Any, x: Any) -> list:
    return lib.tree_util.tree_leaves(x)


def kind_of(x: Any) -> str:
    return str(x.dtype) if hasattr(x, "dtype") else type(x).__name__


def is_smooth(x: Any) -> bool:
    return type(x) is float or getattr(x, "dtype", None) == np.float32


def attempt(f: Callable, *args: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f(*args)
        except Exception as error:
            return refusal(error)


def value(lib: Any, f: Callable, case: Call, args: tuple) -> Any:
    return attempt(lambda: leaves(lib, case.run(f, args, lib)))


def direction(shape: tuple, dtype: Any) -> np.ndarray:
    return np.cos(np.arange(np.prod(shape, dtype=int)).reshape(shape) + 1.0).astype(dtype)


def slopes(lib: Any, f: Callable, case: Call, args: tuple) -> Any:
    """The cotangents of the float32 arguments."""
    flat, tree = lib.tree_util.tree_flatten(args)
    smooth = [i for i, x in enumerate(jax.tree_util.tree_leaves(case.args)) if is_smooth(x)]

    def of_smooth(*xs):
        given = dict(zip(smooth, xs, strict=True))
        whole = tree.unflatten([given.get(i, x) for i, x in enumerate(flat)])
        return [y for y in leaves(lib, case.run(f, whole, lib))
                if getattr(y, "dtype", None) == np.float32]

    def derivative():
        outs, back = lib.vjp(of_smooth, *[flat[i] for i in smooth])
        found = back([direction(np.shape(y), y.dtype) for y in outs]) if outs else []
        return [lib.lax.convert_element_type(x, np.float32) for x in found]  # never weak

    finite = all(np.all(np.isfinite(x)) for x in jax.tree_util.tree_leaves(case.args)
                 if is_smooth(x))
    return attempt(derivative) if smooth and finite else []


def assert_same(ours: Any, theirs: Any, case: Call, rough: float = 1.0) -> None:
    if isinstance(theirs, Refused) or isinstance(ours, Refused):
        assert type(ours) is type(theirs), (case, ours, theirs)
        assert theirs.kinds[0] in ours.kinds, (case, ours, theirs)
        return
    assert len(ours) == len(theirs), (case, ours, theirs)
    for x, y in zip(ours, theirs, strict=True):
        assert_same_leaf(x, y, case, rough)


def assert_same_leaf(x: Any, y: Any, case: Call, rough: float) -> None:
    if not isinstance(y, (jax.Array, np.ndarray)):
        assert x == y, (case, x, y)
        return
    assert str(x.dtype) == str(y.dtype), (case, x, y)
    if str(y.dtype) != "bool":  # a weak bool promotes as any other
        assert getattr(x, "weak_type", False) == getattr(y, "weak_type", False), (case, x, y)
    assert x.shape == y.shape, (case, x, y)
    assert_close(np.asarray(x), np.asarray(y), case, rough)


def assert_close(x: np.ndarray, y: np.ndarray, case: Call, rough: float = 1.0) -> None:
    if x.dtype.kind in "biu":
        np.testing.assert_array_equal(x, y, err_msg=str(case))
        return
    half = str(x.dtype) in ("bfloat16", "float16")
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    rtol, atol = (2e-2, 1e-2) if half else (2e-5, 4e-6)
    np.testing.assert_allclose(x.astype(wide), y.astype(wide), rtol=rough * rtol,
                               atol=rough * atol, err_msg=str(case))


# ── The tests ────────────────────────────────────────────────────────────────────────────────

def cases(module: str, name: str, make: Maker) -> list[Call]:
    return [make(Draw(f"{module}.{name} {i}{SEED}")) for i in range(CASES)]


def everything(lib: Any, f: Callable, chosen: list[Call], compiled: bool) -> list:
    """Values and cotangents of all cases; errors are found while the program is staged."""
    refused = {}

    def program(argss):
        found = []
        for i, (case, xs) in enumerate(zip(chosen, argss, strict=True)):
            for which, g in enumerate((value, slopes)):
                result = g(lib, f, case, case.with_arrays(xs))
                if isinstance(result, Refused):
                    refused[i, which] = result
                    result = []
                found.append(result)
        return found

    argss = [case.arrays() for case in chosen]
    found = (lib.jit(program) if compiled else program)(argss)
    return [(refused.get((i, 0), found[2 * i]), refused.get((i, 1), found[2 * i + 1]))
            for i in range(len(chosen))]


def check_batched(f: Callable, case: Call, eager: Any) -> None:
    """A batch of two, the second with its elements in another order, is a loop over the two."""
    xs = case.arrays()
    if isinstance(eager, Refused) or not xs or any(not hasattr(y, "shape") for y in eager):
        return

    def of_arrays(*xs):
        return leaves(minijax, case.run(f, case.with_arrays(xs), minijax))

    turned = [np.flip(x).copy() for x in xs]
    found = minijax.vmap(of_arrays)(*map(np.stack, zip(xs, turned, strict=True)))
    for x, y, z in zip(found, eager, of_arrays(*turned), strict=True):
        assert str(x.dtype) == str(y.dtype), (case, x, y)
        assert x.shape == (2, *y.shape), (case, x, y)
        assert_close(np.asarray(x), np.stack([np.asarray(y), np.asarray(z)]), case)


def is_finite(result: Any) -> bool:
    """Whether there is a result, and a derivative of it to speak of."""
    return type(result) is list and all(
        np.all(np.isfinite(np.asarray(x))) for x in result if is_smooth(x))


def in_complex_numbers(case: Call, result: Any) -> bool:
    xs = [*jax.tree_util.tree_leaves(case.args), *(result if type(result) is list else [])]
    return any(getattr(x, "dtype", np.dtype(bool)).kind == "c" for x in xs)


NAMES = [(module, name) for module, table in TABLE.items() for name in table]


@pytest.mark.parametrize(("module", "name"), NAMES, ids=map(".".join, NAMES))
def test_agrees_with_jax(module, name, guards):
    chosen = cases(module, name, TABLE[module][name])
    theirs = everything(jax, function_of(jax, module, name), chosen, compiled=True)
    f = function_of(minijax, module, name)
    ours = everything(minijax, f, chosen, compiled=False)
    for case, found, wanted in zip(chosen, ours, theirs, strict=True):
        assert_same(found[0], wanted[0], case)
        if is_finite(wanted[0]):
            assert_same(found[1], wanted[1], case, rough=4)
        check_batched(f, case, found[0])
    simple = [i for i, case in enumerate(chosen) if not in_complex_numbers(case, ours[i][0])]
    compiled = minijax.jit(lambda argss: [
        value(minijax, f, chosen[i], chosen[i].with_arrays(xs))
        if not isinstance(ours[i][0], Refused) else []
        for i, xs in zip(simple, argss, strict=True)])([chosen[i].arrays() for i in simple])
    for i, found in zip(simple, compiled, strict=True):
        if not isinstance(ours[i][0], Refused):
            assert_same(found, theirs[i][0], chosen[i])


def types(lib: Any, f: Callable, case: Call, given: Callable) -> Any:
    """The types of the results of a case; `given(k, x)` is the type of its array k."""
    def run(*arrays: Any) -> list:
        return leaves(lib, case.run(f, case.with_arrays(arrays), lib))

    arguments = [lib.ShapeDtypeStruct(x.shape, **given(k, x))
                 for k, x in enumerate(case.arrays())]
    return attempt(lambda: [(x.shape, str(x.dtype), x.weak_type)
                            for x in lib.eval_shape(run, *arguments)])


def same_types(module: str, name: str, case: Call, given: Callable) -> None:
    found, wanted = (types(lib, function_of(lib, module, name), case, given)
                     for lib in (minijax, jax))
    assert isinstance(found, Refused) == isinstance(wanted, Refused), (case, found, wanted)
    if not isinstance(wanted, Refused):
        assert found == wanted, case


# Where JAX's answer depends on the way that it takes: by chance, and of no use.
WEAK_BY_CHANCE = {"numpy.diagonal": "of a square matrix strong, of another weak",
                  "numpy.logical_and": "of two scalars as weak as one of them, for some dtypes"}
WEAK_BY_CHANCE |= dict.fromkeys(("numpy.logical_or", "numpy.logical_xor"),
                                WEAK_BY_CHANCE["numpy.logical_and"])


@pytest.mark.parametrize(("module", "name"), [
    row for row in NAMES if ".".join(row) not in WEAK_BY_CHANCE], ids=str)
def test_weak_arguments_have_results_as_weak_as_those_of_jax(module, name):
    for case in cases(module, name, TABLE[module][name]):
        same_types(module, name, case, lambda _, x: {
            "dtype": x.dtype, "weak_type": x.dtype in (np.float32, np.int32)})


@pytest.fixture
def with_64_bits():
    for lib in (minijax, jax):
        lib.config.update("jax_enable_x64", True)
    yield
    for lib in (minijax, jax):
        lib.config.update("jax_enable_x64", False)


@pytest.mark.parametrize(("module", "name"), NAMES, ids=map(".".join, NAMES))
def test_arguments_of_64_bits_among_others_have_results_of_jaxs_types(module, name, with_64_bits):
    wide = {np.dtype("int32"): np.int64, np.dtype("float32"): np.float64}
    for case in cases(module, name, TABLE[module][name]):
        for which in (lambda k: True, lambda k: k == 0, lambda k: k > 0):
            same_types(module, name, case, lambda k, x, which=which: {
                "dtype": wide.get(x.dtype, x.dtype) if which(k) else x.dtype})


CONCRETE_NAMES = [(module, name) for module, table in CONCRETE.items() for name in table]


@pytest.mark.parametrize(("module", "name"), CONCRETE_NAMES, ids=map(".".join, CONCRETE_NAMES))
def test_agrees_with_jax_on_known_values(module, name):
    for case in cases(module, name, CONCRETE[module][name]):
        found, wanted = (attempt(lambda lib=lib, case=case: case.run(
            getattr(getattr(lib, module), name), jax.tree_util.tree_map(
                lambda x: lib.numpy.asarray(x) if isinstance(x, np.ndarray) else x,
                case.args), lib)) for lib in (minijax, jax))
        if not isinstance(wanted, Refused):
            assert type(found).__name__.replace("ArrayImpl", "Array") == type(
                wanted).__name__.replace("ArrayImpl", "Array"), (case, found, wanted)
            found, wanted = leaves(minijax, found), leaves(jax, wanted)
        assert_same(found, wanted, case)


def test_every_public_function_is_here():
    public = {f"{module}.{name}" for module in TABLE
              for name, thing in vars(getattr(minijax, module)).items()
              if not name.startswith("_") and callable(thing)}
    tested = {f"{module}.{name}" for table in (TABLE, CONCRETE)
              for module, rows in table.items() for name in rows}
    missing = public - tested - set(NOT_HERE)
    assert not missing, f"add a row, or a reason: {sorted(missing)}"
    assert not (tested | set(NOT_HERE)) - public, "rows for what is not public"
