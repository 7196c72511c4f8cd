"""Attention: for each query the mean of the values, weighted by the similarity of their keys.

Builds on `numpy`, `normalisers`.  Chapter 00, *A tour*, has networks.
In JAX: `jax/_src/nn/functions.py`.
"""

from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.nn.normalisers import logsumexp, softmax
from minijax.numpy.arguments import ArrayLike, as_array
from minijax.core import refuse


def _four_axes(x: Any) -> Any:
    """The array, with axes of size one before its own."""
    x = jnp.asarray(x)
    return jnp.expand_dims(x, tuple(range(4 - x.ndim)))


def _check(query: Any, key: Any, value: Any, bias: Any, mask: Any, query_lengths: Any,
           key_lengths: Any, implementation: str | None) -> None:
    batch, places, heads, features = key.shape
    for name, x, shape, dtype in (
            ("value", value, [batch, places, heads, features], key.dtype),
            ("query", query, [batch, -1, -1, features], key.dtype),
            ("mask", mask, [-1] * 4, np.dtype(bool)), ("bias", bias, [-1] * 4, None),
            ("query_seq_lengths", query_lengths, [batch], np.dtype("int32")),
            ("key_value_seq_lengths", key_lengths, [batch], np.dtype("int32"))):
        if x is not None:
            refuse((x.ndim != len(shape), f"{name} ndim should be {len(shape)}, but got {x.ndim}"),
                   (dtype is not None and dtype != x.dtype,
                    f"{name} dtype should be {dtype}, but got {x.dtype}"),
                   (any(n not in (-1, m) for n, m in zip(shape, x.shape, strict=False)),
                    f"{name} shape should be {shape}: but got {x.shape}"), error=ValueError)
    refuse((query.shape[2] % heads, "The number of query heads must be a multiple of key/value "
            f"heads, but got {query.shape[2]} vs {heads}"),
           (implementation == "cudnn", "implementation='cudnn' is a kernel of NVIDIA's, which "
            "minijax does not call; leave it out: the same is computed from products and a "
            "softmax."),
           (implementation not in (None, "xla"),
            f"Unsupported implementation option: {implementation}"), error=ValueError)


def _attention_mask(queries: int, keys: int, is_causal: bool, window: Any, query_lengths: Any,
                    key_lengths: Any) -> Any:
    """The keys of each query: bools of shape (batch or 1, 1, queries, keys)."""
    query, key = jnp.arange(queries)[:, None], jnp.arange(keys)[None, :]
    mask = jnp.ones((1, 1, queries, keys), bool)
    if is_causal:
        mask &= key <= query
    if window is not None:
        left, right = (window, window) if isinstance(window, int) else window
        mask &= (key >= query - left) & (key <= query + right)
    for index, lengths in ((query, query_lengths), (key, key_lengths)):
        if lengths is not None:
            mask &= index < lengths[:, None, None, None]
    return mask


def dot_product_attention(
        query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None,
        mask: ArrayLike | None = None, *, scale: float | None = None, is_causal: bool = False,
        query_seq_lengths: ArrayLike | None = None, key_value_seq_lengths: ArrayLike | None = None,
        local_window_size: int | tuple[int, int] | None = None,
        implementation: str | None = None, return_residual: bool = False) -> Any:
    """``softmax(query · key / sqrt(features) + bias) · value``, for each head.

    Args:
      query: floats of shape (batch, places, heads, features), or without the first axis.
      key, value: of shape (batch, other places, heads, features); with fewer heads, of which
        `heads` is a multiple, several of the queries' share one.
      bias: added to the logits; broadcasts to (batch, heads, places, other places).
      mask: bools of such a shape: the keys of each query.
      scale: a factor of the products; ``1 / sqrt(features)`` by default.
      is_causal: whether queries ignore the keys after their own place.
      query_seq_lengths, key_value_seq_lengths: the lengths of the sequences of the batch:
        integers of shape (batch,).
      local_window_size: how many keys to the left and to the right of its place a query has.
      implementation: None or "xla"; there is one.
      return_residual: whether to return the logarithms of the sums too, (batch, places, heads).

    Returns:
      An array of the shape of `query`.

    >>> x = jnp.ones((1, 3, 2, 4))
    >>> dot_product_attention(x, x, x).shape
    (1, 3, 2, 4)

    Raises:
      ValueError: for shapes that do not fit.
    """
    query, key, value = (as_array("dot_product_attention", x) for x in (query, key, value))
    shape = query.shape
    query, key, value = map(_four_axes, (query, key, value))
    bias, mask = (None if x is None else _four_axes(x) for x in (bias, mask))
    query_seq_lengths, key_value_seq_lengths = (
        None if x is None else jnp.asarray(x) for x in (query_seq_lengths, key_value_seq_lengths))
    _check(query, key, value, bias, mask, query_seq_lengths, key_value_seq_lengths, implementation)
    group_size = query.shape[2] // key.shape[2]
    if group_size > 1:
        key, value = (jnp.repeat(x, group_size, axis=2) for x in (key, value))
    scale = 1 / np.sqrt(query.shape[3]) if scale is None else scale
    logits = jnp.einsum("BTNH,BSNH->BNTS", query, key,
                        preferred_element_type=jnp.promote_types(query.dtype, np.float32))
    logits = logits * jnp.asarray(scale, logits.dtype)
    logits = logits if bias is None else (logits + bias).astype(logits.dtype)
    whole_mask = _attention_mask(query.shape[1], key.shape[1], is_causal, local_window_size,
                                 query_seq_lengths, key_value_seq_lengths)
    whole_mask = whole_mask if mask is None else whole_mask & mask
    # the least float would overflow to -inf in a difference
    logits = jnp.where(whole_mask, logits, -0.7 * jnp.finfo(logits.dtype).max)
    weights = softmax(logits, axis=-1).astype(key.dtype)
    out = jnp.einsum("BNTS,BSNH->BTNH", weights, value)
    sums = jnp.moveaxis(logsumexp(logits, axis=-1), 1, 2).astype(key.dtype)
    if query_seq_lengths is not None:
        is_valid = jnp.arange(query.shape[1]) < query_seq_lengths[:, None]
        out = jnp.where(is_valid[..., None, None], out, 0)
    out = out.reshape(shape)
    return (out, sums.reshape(shape[:-1])) if return_residual else out
