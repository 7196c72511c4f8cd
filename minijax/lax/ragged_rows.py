"""`ragged_all_to_all`: an exchange of rows, of which each receiver gets a number of its own.

Builds on `derived`, `collectives`.  In JAX: `jax/_src/lax/parallel.py`.
"""

from typing import Any

import numpy as np

from minijax.core import Array
from minijax.primitives import ad_util, algebra, gather_scatter
from minijax.primitives.collectives import all_gather, axis_index
from minijax.primitives.comparison import bitwise_and, clamp, ge, lt, select_n
from minijax.primitives.dynamic_slice import dynamic_index_in_dim
from minijax.primitives.shape import broadcast_in_dim, broadcasted_iota
from minijax.transforms.derived import derived


def ragged_all_to_all(operand: Any, output: Any, input_offsets: Any, send_sizes: Any,
                      output_offsets: Any, recv_sizes: Any, *, axis_name: Any,
                      axis_index_groups: Any = None) -> Array:
    """Each example sends some rows to each, which writes them at the sender's offset.

    Args:
      operand: the rows to send.
      output: the array into which rows are written.
      input_offsets, send_sizes: for each receiver, the first of its rows, and their number.
      output_offsets: for each receiver, the first row of its output that is written.
      recv_sizes: for each sender, the number of rows; `send_sizes` decides.
      axis_name: the axis name of `vmap` or `pmap`.
      axis_index_groups: only None.

    Raises:
      NotImplementedError: for groups.
    """
    if axis_index_groups is not None:
        raise NotImplementedError("ragged_all_to_all of groups: all_to_all with axis_index_groups "
                                  "sends parts of one size")
    axis_index(axis_name)  # or NameError
    return ragged_all_to_all_p.bind(operand, output, input_offsets, send_sizes, output_offsets,
                                    recv_sizes, axis_name=axis_name, axis_index_groups=None)


def _exchanged(operand: Any, output: Any, input_offsets: Any, send_sizes: Any, output_offsets: Any,
               recv_sizes: Any, *, axis_name: Any, axis_index_groups: None) -> Array:
    me, rows = axis_index(axis_name), all_gather(operand, axis_name)
    start, count, to = (dynamic_index_in_dim(all_gather(x, axis_name), me, 1, keepdims=False)
                        for x in (input_offsets, send_sizes, output_offsets))
    shape = (*start.shape, output.shape[0])
    start, count, to = (broadcast_in_dim(x, shape, (0,)) for x in (start, count, to))
    offset = algebra.sub(broadcasted_iota(start.dtype, shape, 1), to)
    is_sent = bitwise_and(ge(offset, ad_util.zeros(offset.aval)), lt(offset, count))
    for sender in range(shape[0]):
        source = clamp(np.zeros((), start.dtype), algebra.add(offset[sender], start[sender]),
                       np.asarray(rows.shape[1] - 1, start.dtype))
        received = gather_scatter.index_take(rows[sender], (source,), (0,))
        output = select_n(broadcast_in_dim(is_sent[sender], output.shape, (0,)), output, received)
    return output


ragged_all_to_all_p = derived("ragged_all_to_all", _exchanged, lambda: [], linear=[0, 1],
                              abstract_eval=lambda operand, output, *_, **__: [output])
