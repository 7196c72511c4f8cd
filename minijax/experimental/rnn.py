"""Long short-term memory: `lstm`, with the weights in the order of cuDNN.

Builds on `numpy`, `lax`.  In JAX: `jax/experimental/rnn.py`, whose `lstm` is cuDNN's and needs a
GPU; its `lstm_ref` is the definition.
Source: Hochreiter and Schmidhuber, *Long Short-Term Memory*, 1997.
"""

import functools
import math
from typing import Any

import numpy as np

from minijax import lax, random, numpy as jnp
from minijax.transforms.api import vmap
from minijax.core import Array, refuse
from minijax.transforms.jit import jit
from minijax.nn import sigmoid

Weights = dict[int, Array]  # by layer; for two directions there are twice as many layers


def _shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
            ) -> list[tuple[int, ...]]:
    """The shapes of the matrices for inputs and states, layer by layer; then of their biases."""
    directions, gates = 1 + bidirectional, 4 * hidden_size
    matrices: list[tuple[int, ...]] = []
    for layer in range(num_layers * directions):
        width = input_size if layer < directions else directions * hidden_size
        matrices += [(gates, width), (gates, hidden_size)]
    return [*matrices, *[(gates,)] * len(matrices)]


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
                           ) -> int:
    """How many weights there are.

    >>> get_num_params_in_lstm(3, 2, num_layers=1, bidirectional=False)
    56
    """
    return sum(map(math.prod, _shapes(input_size, hidden_size, num_layers, bidirectional)))


def init_lstm_weight(rng: Any, input_size: int, hidden_size: int, num_layers: int,
                     bidirectional: bool) -> Array:
    """Random weights, between plus and minus the root of ``1 / hidden_size``.

    >>> init_lstm_weight(random.key(0), 3, 2, 1, False).shape
    (56,)
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    k = np.sqrt(1.0 / hidden_size)
    return random.uniform(rng, (count,), np.float32, -k, k)


def _matrices(weights: Array, shapes: list[tuple[int, ...]]) -> list[Array]:
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return list(map(jnp.reshape, jnp.split(weights, ends), shapes))


def unpack_lstm_weights(weights: Array, input_size: int, hidden_size: int, num_layers: int,
                        bidirectional: bool) -> tuple[Weights, Weights, Weights, Weights]:
    """The weights of each layer: for inputs, for states, and the biases of both.

    The rows of each are those of the input, forget, cell and output gates, in this order.
    """
    parts = _matrices(weights, _shapes(input_size, hidden_size, num_layers, bidirectional))
    half = len(parts) // 2
    return (dict(enumerate(parts[:half:2])), dict(enumerate(parts[1:half:2])),
            dict(enumerate(parts[half::2])), dict(enumerate(parts[half + 1::2])))


def swap_lstm_gates(weights: Any, input_size: int, hidden_size: int, num_layers: int,
                    bidirectional: bool) -> Array:
    """The weights with those of the cell gate and of the output gate swapped, as in JAX."""
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    parts = [jnp.split(part, 4) for part in _matrices(jnp.asarray(weights), shapes)]
    return jnp.concatenate([jnp.ravel(gate) for i, f, g, o in parts for gate in (i, f, o, g)])


def lstm(x: Any, h_0: Any, c_0: Any, weights: Any, seq_lengths: Any, input_size: int,
         hidden_size: int, num_layers: int, dropout: float, bidirectional: bool,
         precision: Any = None) -> tuple[Array, Array, Array]:
    """The states of all steps, and the last state and cell of each layer.

    Args:
      x: the inputs, (batch, steps, input_size).
      h_0, c_0: the first states and cells, (layers times directions, batch, hidden_size).
      weights: all weights, in one row.
      seq_lengths: how many steps each of the batch has, as int32.
      input_size, hidden_size, num_layers, bidirectional: the sizes.
      dropout: 0.
      precision: accepted for compatibility; all are full on the CPU.

    Raises:
      NotImplementedError: for another dropout, and for lengths of another dtype.
    """
    sizes = input_size, hidden_size, num_layers
    unpacked = unpack_lstm_weights(jnp.asarray(weights), *sizes, bidirectional)
    return lstm_ref(x, h_0, c_0, *unpacked, seq_lengths, *sizes, dropout, bidirectional)


@jit(static_argnums=(8, 9, 10, 11, 12))
def lstm_ref(x: Array, h_0: Array, c_0: Array, W_ih: Weights, W_hh: Weights, b_ih: Weights,
             b_hh: Weights, seq_lengths: Array, input_size: int, hidden_size: int, num_layers: int,
             dropout: float, bidirectional: bool) -> tuple[Array, Array, Array]:
    """The same as `lstm`, for weights as `unpack_lstm_weights` returns them."""
    refuse((seq_lengths.dtype != np.int32, "`seq_lengths` can only be int32."),
           (dropout != 0.0, "Dropout not supported in LSTM reference because we cannot determine "
            "CUDNN dropout mask."), error=NotImplementedError)
    directions = 2 if bidirectional else 1
    sequence, states, cells = x.transpose(1, 0, 2), [], []
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            i = layer * directions + direction
            xs = _reversed(sequence, seq_lengths) if direction else sequence
            out, h, c = _layer(xs, h_0[i], c_0[i], W_ih[i], W_hh[i], b_ih[i], b_hh[i], seq_lengths)
            outs.append(_reversed(out, seq_lengths) if direction else out)
            states.append(h)
            cells.append(c)
        sequence = jnp.concatenate(outs, axis=-1)
    return sequence.transpose(1, 0, 2), jnp.stack(states), jnp.stack(cells)


def _layer(sequence: Array, h: Array, c: Array, w_input: Array, w_state: Array, b_input: Array,
               b_state: Array, lengths: Array) -> tuple[Array, Array, Array]:
    """The states of all steps, zero after the length of each sequence; the last state and cell."""
    gates = [jnp.split(w, 4) for w in (w_input, w_state, b_input, b_state)]

    def step(carry: tuple, x: Array) -> tuple:
        h, c = carry
        i, f, g, o = (x @ wi.T + bi[None] + h @ ws.T + bs[None]
                      for wi, ws, bi, bs in zip(*gates, strict=True))
        c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
        h = sigmoid(o) * jnp.tanh(c)
        return (h, c), (h, c)
    _, (hs, cs) = lax.scan(step, (h, c), sequence)
    last = (lengths - 1, jnp.arange(hs.shape[1]))
    is_valid = lengths[None] > jnp.arange(hs.shape[0], dtype=np.int32)[:, None]
    return jnp.where(is_valid[..., None], hs, 0), hs[last], cs[last]


def _reversed(sequence: Array, lengths: Array) -> Array:
    """Each sequence of the batch reversed; the padding after its last step stays there."""
    roll = vmap(functools.partial(jnp.roll, axis=0), in_axes=(1, 0), out_axes=1)
    return roll(sequence, sequence.shape[0] - lengths)[::-1]
