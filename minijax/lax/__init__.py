"""`minijax.lax`: JAX's `lax` names, imported from the modules that define them.

Builds on `primitives`, `control_flow`.  In JAX: `jax/lax/__init__.py`.
"""

from typing import TYPE_CHECKING

from minijax.placement.out_sharding import exported
from minijax.util import lazily

if TYPE_CHECKING:
    from minijax.dtypes import dtype
    from minijax.control_flow.associative_scan import associative_scan
    from minijax.custom.composite import composite
    from minijax.control_flow.loops import fori_loop, map, scan, while_loop
    from minijax.control_flow.cond import cond, cond_p, platform_dependent, switch
    from minijax.lax.stateful_rng import rng_uniform, rng_uniform_p
    from minijax.custom.linear_solve import custom_linear_solve, custom_root, linear_solve_p
    from minijax.control_flow.loop_rules import scan_p, while_p
    from minijax.placement.resharding import sharding_constraint_p, with_sharding_constraint
    from minijax.lax.special import (betainc, igamma, igamma_grad_a, igamma_grad_a_p, igamma_p,
                                     igammac, igammac_p, polygamma, random_gamma_grad,
                                     regularized_incomplete_beta_p)
    from minijax.lax import linalg
    from minijax.lax.ragged_rows import ragged_all_to_all, ragged_all_to_all_p
    from minijax.lax.tokens import after_all, create_token
    from minijax.primitives.algebra import (
        add, add_p, cbrt, cbrt_p, complex, complex_p, conj, conj_p, div, div_p, imag, imag_p,
        integer_pow, integer_pow_p, max, max_p, min, min_p, mul, mul_p, mulhi, mulhi_p, neg, neg_p,
        real, real_p, reciprocal, rsqrt, rsqrt_p, sqrt, sqrt_p, square, square_p, sub, sub_p)
    from minijax.primitives.analytic import (
        acos, acos_p, acosh, acosh_p, asin, asin_p, asinh, asinh_p, atan, atan2, atan2_p, atan_p,
        atanh, atanh_p, cos, cos_p, cosh, cosh_p, erf, erf_inv, erf_inv_p, erf_p, erfc, erfc_p, exp,
        exp2, exp2_p, exp_p, expm1, expm1_p, log, log1p, log1p_p, log_p, logistic, logistic_p, pow,
        pow_p, sin, sin_p, sinh, sinh_p, tan, tan_p, tanh, tanh_p)
    from minijax.primitives.comparison import (
        and_p, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, clamp, clamp_p, clz, clz_p, eq_p,
        eq_to_p, ge, ge_p, gt, gt_p, le, le_p, le_to_p, lt, lt_p, lt_to_p, ne_p, not_p, or_p,
        population_count, population_count_p, select, select_n, select_n_p, shift_left,
        shift_left_p, shift_right_arithmetic, shift_right_arithmetic_p, shift_right_logical,
        shift_right_logical_p, xor_p)
    from minijax.primitives.collectives import (
        all_gather, all_gather_p, all_to_all, all_to_all_p, axis_index, axis_index_p, axis_size,
        pbroadcast, pcast, pmax, pmax_p, pmean, pmin, pmin_p, ppermute, ppermute_p, precv, psend,
        pshuffle, psum, psum_p, psum_scatter, pswapaxes)
    from minijax.primitives.contract import (batch_matmul, dot, dot_general, dot_general_p,
                                             DotDimensionNumbers, ragged_dot, ragged_dot_general,
                                             RaggedDotDimensionNumbers)
    from minijax.primitives.convert import (bitcast_convert_type, bitcast_convert_type_p,
                                            convert_element_type, convert_element_type_p, copy_p,
                                            empty, optimization_barrier, optimization_barrier_p,
                                            stage, stage_p, stop_gradient, stop_gradient_p)
    from minijax.lax.filled import full, full_like
    from minijax.primitives.ad_util import broadcast_in_dim_p, reduce_sum_p, reshape_p, transpose_p
    from minijax.primitives.bit_generators import (RandomAlgorithm, rng_bit_generator,
                                                   rng_bit_generator_p)
    from minijax.primitives.fft import fft, fft_p, FftType
    from minijax.primitives.bessel import bessel_i0e, bessel_i0e_p, bessel_i1e, bessel_i1e_p
    from minijax.primitives.gamma import (digamma, digamma_p, lgamma, lgamma_p, polygamma_p, zeta,
                                          zeta_p)
    from minijax.primitives.gather_scatter import (
        gather, gather_p, index_take, scatter, scatter_add, scatter_add_p, scatter_max,
        scatter_max_p, scatter_min, scatter_min_p, scatter_mul, scatter_mul_p, scatter_p,
        scatter_sub, scatter_sub_p)
    from minijax.primitives.dynamic_slice import (
        dynamic_index_in_dim, dynamic_slice, dynamic_slice_in_dim, dynamic_slice_p,
        dynamic_update_index_in_dim, dynamic_update_slice, dynamic_update_slice_in_dim,
        dynamic_update_slice_p)
    from minijax.primitives.keys import eq, ne
    from minijax.primitives.reduce import (
        cumlogsumexp, cumlogsumexp_p, cummax, cummax_p, cummin, cummin_p, cumprod, cumprod_p,
        cumsum, cumsum_p, reduce_and, reduce_and_p, reduce_max, reduce_max_p, reduce_min,
        reduce_min_p, reduce_or, reduce_or_p, reduce_prod, reduce_prod_p, reduce_sum, reduce_xor,
        reduce_xor_p)
    from minijax.primitives.rounding import (abs, abs_p, ceil, ceil_p, floor, floor_p, is_finite,
                                             is_finite_p, nextafter, nextafter_p, reduce_precision,
                                             reduce_precision_p, rem, rem_p, round, round_p,
                                             RoundingMethod, sign, sign_p)
    from minijax.primitives.shape import (broadcast, broadcast_in_dim, broadcast_like,
                                          broadcast_shapes, broadcast_to_rank, broadcasted_iota,
                                          collapse, expand_dims, iota, iota_p, reshape, rev, rev_p,
                                          shape_as_value, squeeze, squeeze_p, transpose)
    from minijax.primitives.joining import (concatenate, concatenate_p, split, split_p, stack,
                                            stack_p, tile, tile_p, unstack, unstack_p)
    from minijax.primitives.slicing import index_in_dim, pad, pad_p, slice, slice_in_dim, slice_p
    from minijax.primitives.sort import (approx_max_k, approx_min_k, approx_top_k_p, argmax,
                                         argmax_p, argmin, argmin_p, sort, sort_key_val, sort_p,
                                         top_k, top_k_p)
    from minijax.primitives.windows import (GatherDimensionNumbers, GatherScatterMode,
                                            ScatterDimensionNumbers)
    from minijax.primitives.scaled import scaled_dot
    from minijax.primitives.sinks import dce_sink, dce_sink_p
    from minijax.primitives.precision import (AccuracyMode, DotAlgorithm, DotAlgorithmPreset,
                                              Precision, PrecisionLike, Tolerance)
    from minijax.primitives.windowed_reductions import (
        padtype_to_pads, reduce_window_max_p, reduce_window_min_p, reduce_window_shape_tuple,
        reduce_window_sum_p, select_and_gather_add_p, select_and_scatter_add_p)
    from minijax.primitives.convolution import (
        conv, conv_dimension_numbers, conv_general_dilated, conv_general_dilated_local,
        conv_general_dilated_p, conv_general_dilated_patches, conv_general_permutations,
        conv_general_shape_tuple, conv_shape_tuple, conv_transpose, conv_transpose_shape_tuple,
        conv_with_general_padding, ConvDimensionNumbers, ConvGeneralDilatedDimensionNumbers)
    from minijax.control_flow.reducers import (reduce, reduce_p, reduce_window, reduce_window_p,
                                               scatter_apply)

__all__ = lazily.attach(globals(), exported(__name__))
del TYPE_CHECKING, exported, lazily
