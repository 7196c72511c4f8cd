"""The table of `lax`, which neither promotes nor broadcasts."""

from typing import Any

import numpy as np

from .draw import DTYPES, REAL, RICH, Call, Draw, Maker, Of, binary, call, either, named, unary


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
    # of integers, for in JAX it has no derivative
    "scaled_dot": lambda d: call(
        d.array("i", (2, 3, 8), "unit"), d.array("i", (2, 8, 5), "unit"),
        lhs_scale=np.arange(12, dtype=np.int32).reshape(2, 3, 2), **d.some(
            rhs_scale=np.full((2, 1, 5), 2, np.int32), preferred_element_type=np.float32)),
    "dce_sink": lambda d: call(d.array("fi")),
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
