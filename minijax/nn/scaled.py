"""Products of block-scaled arrays, quantised before the product or by it.

Builds on `numpy`.  Block formats: *OCP Microscaling Formats (MX) Specification* 1.0.
In JAX: `jax/_src/cudnn/scaled_matmul_stablehlo.py`.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes, lax, tree_util, numpy as jnp
from minijax.custom.custom_jvp_vjp import custom_vjp
from minijax.numpy.arguments import ArrayLike, as_arrays
from minijax.primitives.axes import Axes, as_dims

STACKED = (((2,), (2,)), ((0,), (0,)))  # rows times rows, of a stack of matrices


# ── Products of quantised arrays ─────────────────────────────────────────────────────────────

def _check(lhs: Any, rhs: Any, lhs_scales: Any, rhs_scales: Any) -> None:
    arrays = lhs, rhs, lhs_scales, rhs_scales
    if any(x.ndim != 3 for x in arrays):
        raise ValueError("scaled_matmul requires all inputs to be 3-dimensional arrays")
    a, b, a_scales, b_scales = (x.shape for x in arrays)
    for what, x, y in (("inputs a and b", a, b), ("scales", a_scales, b_scales)):
        if (x[0], x[2]) != (y[0], y[2]):
            raise ValueError(f"scaled_matmul requires {what} to have matching batch (B) and "
                             f"contract (K) dimensions, but got shapes {x} and {y}")
    if a[:2] != a_scales[:2] or b[:2] != b_scales[:2]:
        raise ValueError("scaled_matmul requires scales to match non-contract dimensions of "
                         f"inputs, but got shapes a: {a}, b: {b}, a_scales: {a_scales}, "
                         f"b_scales: {b_scales}")
    if a_scales[2] == 0 or a[2] % a_scales[2]:
        raise ValueError("scaled_matmul requires the contract dimension (K) to consist of whole "
                         f"blocks, but got {a_scales[2]} scales for {a[2]} numbers")


def scaled_matmul(lhs: ArrayLike, rhs: ArrayLike, lhs_scales: ArrayLike, rhs_scales: ArrayLike,
                  preferred_element_type: Any = np.float32) -> Any:
    """The products of stacks of rows, each block of numbers times its scale, summed in float32.

    Args:
      lhs: (B, M, K).
      rhs: (B, N, K).
      lhs_scales: (B, M, blocks), where K is a multiple of the number of blocks.
      rhs_scales: (B, N, blocks).
      preferred_element_type: the dtype of the result.

    Returns:
      (B, M, N).

    Raises:
      ValueError: for shapes that do not fit.

    >>> x = jnp.ones((1, 1, 4))
    >>> scaled_matmul(x, x, jnp.array([[[1., 2.]]]), jnp.array([[[1., 10.]]]))
    Array([[[42.]]], dtype=float32)
    """
    a, b, *scales = as_arrays("scaled_matmul", lhs, rhs, lhs_scales, rhs_scales)
    _check(a, b, *scales)
    return lax.dot_general(_dequantized(a, scales[0]), _dequantized(b, scales[1]), STACKED,
                           preferred_element_type=preferred_element_type)


def _dequantized(x: Any, scales: Any) -> Any:
    """Each number times the scale of its block."""
    size = x.shape[-1] // scales.shape[-1]
    return x.astype(np.float32) * jnp.repeat(scales.astype(np.float32), size, axis=-1)


# ── Quantising ───────────────────────────────────────────────────────────────────────────────

@dataclasses.dataclass
class BlockScaleConfig:
    """How an array is quantised: numbers of `data_type`, of which each block has a scale.

    Args:
      mode: the name of the format.
      block_size: how many numbers have a scale in common.
      data_type, scale_type: their dtypes.
      global_scale: what all are divided by before, an array of one float; or None.
      infer_only: accepted for compatibility.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: Any = None) -> BlockScaleConfig:
    """How `scaled_dot_general` quantises an array.

    Args:
      mode: "mxfp8", whose scales are powers of two, or "nvfp4".
      global_scale: for "nvfp4", what all numbers are divided by; by default one.

    Raises:
      ValueError: for another mode.

    >>> get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "nvfp4":
        scale = jnp.ones(1, np.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, jnp.float4_e2m1fn.dtype.type,
                                jnp.float8_e4m3fn.dtype.type, scale, False)
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, jnp.float8_e4m3fn.dtype.type,
                                jnp.float8_e8m0fnu.dtype.type, None, False)
    raise ValueError(f"Unsupported mode: {mode}")


def _power_of_two_above(x: Any, dtype: Any) -> Any:
    """The least power of two that is no less than `x`, in a dtype that has only exponents."""
    bits = lax.bitcast_convert_type(x.astype(np.float32), np.uint32)
    exponent, mantissa = bits >> 23, bits & 0x7FFFFF
    # the least power, 2**-127, is no normal float32; above the largest one there is no other
    above = (mantissa > jnp.where(exponent == 0, 1 << 22, 0)) & (exponent != 254)
    return lax.bitcast_convert_type((exponent + above).astype(np.uint8), dtype)


def _quantized(x: Any, config: BlockScaleConfig, global_scale: Any) -> tuple[Any, Any]:
    """Numbers of few bits, and the scale of each block of the last axis."""
    if x.shape[-1] % config.block_size:
        raise ValueError(f"{config.mode} has blocks of {config.block_size} numbers, of which "
                         f"{x.shape[-1]}, the size that is summed over, is no multiple. Pad it.")
    blocks = x.reshape(*x.shape[:-1], -1, config.block_size)
    if global_scale is not None:
        blocks = blocks.astype(np.float32) / global_scale
    elif not dtypes.issubdtype(x.dtype, np.floating) or x.dtype.itemsize < 2:
        blocks = blocks.astype(np.float32)
    largest = jnp.asarray(jnp.finfo(config.data_type).max, blocks.dtype)
    scales = jnp.abs(blocks).max(-1, keepdims=True) / largest
    if config.mode == "mxfp8":
        scales = _power_of_two_above(scales, config.scale_type)
    else:
        scales = jnp.clip(scales, 0, float(jnp.finfo(config.scale_type).max))
        scales = scales.astype(config.scale_type)
    data = blocks.astype(np.float32) / scales.astype(np.float32)
    data = jnp.clip(data, -float(largest), float(largest)).astype(config.data_type)
    return data.reshape(x.shape), scales[..., 0]


# ── Products with quantisation ───────────────────────────────────────────────────────────────

def _product(configs: Sequence[BlockScaleConfig], global_scales: Sequence[Any], dtype: Any,
             *operands: Any) -> Any:
    """The products of rows, of two stacks of matrices that are quantised first."""
    a, b = (_dequantized(*_quantized(x, c, s))
            for x, c, s in zip(operands, configs, global_scales, strict=True))
    out = lax.dot_general(a, b, STACKED)
    for scale in global_scales:
        out = out if scale is None else out * scale
    return out.astype(dtype)


def _backward(configs: Sequence[BlockScaleConfig], dtype: Any, residuals: tuple, ct: Any) -> tuple:
    """The cotangents: quantised products, too; in nvfp4 unquantised ones, which are zero where an
    operand was beyond the range of the format.
    """
    lhs, rhs, scales = residuals
    operands, out_cotangents = (lhs, rhs), (ct, ct.swapaxes(1, 2))
    transposed = [x.swapaxes(1, 2) for x in (rhs, lhs)]
    if configs[2].mode == "nvfp4":
        cotangents = [lax.dot_general(t, x, STACKED, preferred_element_type=dtype)
                      for t, x in zip(out_cotangents, transposed, strict=True)]
        limits = [math.prod(float(jnp.finfo(d).max) for d in (c.data_type, c.scale_type))
                  for c in configs[:2]]
        cotangents = [jnp.where(jnp.abs(x) <= (1 if s is None else s) * limit, g, 0)
                      for x, s, limit, g in zip(operands, scales, limits, cotangents, strict=False)]
    else:
        cotangents = [_product((configs[2], configs[i]), (scales[2], scales[i]), dtype, t, x)
                      for i, t, x in zip((1, 0), out_cotangents, transposed, strict=True)]
    return (*(g.astype(x.dtype) for g, x in zip(cotangents, operands, strict=True)),
            tree_util.tree_map(jnp.zeros_like, scales))


def _with_derivative(configs: Sequence[BlockScaleConfig], dtype: Any) -> Any:
    """The product of two stacks of matrices, quantised, and its derivative."""
    def scaled_dot_general_fn(lhs: Any, rhs: Any, scales: Sequence[Any]) -> Any:
        return _product(configs[:2], scales[:2], dtype, lhs, rhs)
    function = custom_vjp(scaled_dot_general_fn)
    function.defvjp(lambda *args: (scaled_dot_general_fn(*args), args),
                    functools.partial(_backward, configs, dtype))
    return function


def _as_matrices(x: Any, contract: Axes, batch: Axes) -> tuple[Any, tuple, tuple]:
    """The operand as (batch, free, contracted), and the sizes of its batch and free axes."""
    free = tuple(d for d in range(x.ndim) if d not in contract + batch)
    sizes = [tuple(x.shape[d] for d in axes) for axes in (batch, free, contract)]
    matrices = x.transpose(batch + free + contract).reshape(tuple(map(math.prod, sizes)))
    return matrices, sizes[0], sizes[1]


def scaled_dot_general(lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: Any,
                       preferred_element_type: Any = np.float32,
                       configs: Sequence[BlockScaleConfig] | None = None,
                       implementation: str | None = None) -> Any:
    """A product of arrays that are quantised in blocks before, as are those of its derivative.

    Args:
      lhs, rhs: arrays of floats; what is summed over consists of whole blocks.
      dimension_numbers: as in `lax.dot_general`.
      preferred_element_type: float32, bfloat16 or float16: the dtype of the result.
      configs: how lhs, rhs and the cotangent are quantised, from `get_scaled_dot_general_config`.
        None: this is `lax.dot_general`.
      implementation: accepted for compatibility.

    Returns:
      An array whose axes are the batch, the remaining ones of lhs, and those of rhs.

    Raises:
      TypeError: for another dtype.
      ValueError: for blocks that are not whole.

    >>> configs = [get_scaled_dot_general_config("mxfp8")] * 3
    >>> x = jnp.ones((2, 64))
    >>> scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=configs)
    Array([[64., 64.],
           [64., 64.]], dtype=float32)
    """
    a, b = as_arrays("scaled_dot_general", lhs, rhs)
    if configs is None:
        return lax.dot_general(a, b, dimension_numbers,
                               preferred_element_type=preferred_element_type)
    dtype = np.dtype(preferred_element_type)
    if dtype not in (np.float32, np.float16, dtypes.bfloat16):
        raise TypeError(f"Only support preferred_element_type in (f32, bf16, f16), but got {dtype}")
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    a, stack, rows = _as_matrices(a, as_dims(lhs_contract), as_dims(lhs_batch))
    b, _, columns = _as_matrices(b, as_dims(rhs_contract), as_dims(rhs_batch))
    scales = [None if c.global_scale is None else jnp.asarray(c.global_scale, np.float32)
              for c in configs]
    return _with_derivative(configs, dtype)(a, b, scales).reshape(stack + rows + columns)
