"""The table of `numpy`: how the arguments of each public function are made."""

import numpy as np

from .draw import (
    FULL, KEEP, PAIRS, RICH, SHAPES, Maker, Of, along_axis, arrays, binary, call, either, named,
    reduction, unary,
)

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
