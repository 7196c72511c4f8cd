"""Long short-term memory, beside the reference that JAX has for it."""

import jax
import jax.experimental.rnn as theirs
import numpy as np
import pytest

import minijax
import minijax.experimental.rnn as ours

SIZES = {"input_size": 4, "hidden_size": 3, "num_layers": 2}


def arrays(bidirectional):
    rng, layers = np.random.RandomState(0), 2 * (1 + bidirectional)
    x, h, c = (rng.randn(*shape).astype(np.float32)
               for shape in [(3, 5, 4), (layers, 3, 3), (layers, 3, 3)])
    weights = rng.randn(ours.get_num_params_in_lstm(**SIZES, bidirectional=bidirectional))
    return x, h, c, weights.astype(np.float32) / 2, np.array([5, 3, 1], np.int32)


def results(rnn, lib, bidirectional):
    x, h, c, weights, lengths = arrays(bidirectional)
    sizes = {**SIZES, "bidirectional": bidirectional}

    def total(weights):
        parts = rnn.unpack_lstm_weights(weights, **sizes)
        y, h_n, c_n = rnn.lstm_ref(x, h, c, *parts, lengths, *SIZES.values(), 0., bidirectional)
        return (y * y).sum() + h_n.sum() - c_n.sum(), (y, h_n, c_n)
    yield rnn.unpack_lstm_weights(weights, **sizes)
    yield lib.value_and_grad(total, has_aux=True)(weights)
    yield rnn.swap_lstm_gates(weights, **sizes)
    yield rnn.init_lstm_weight(lib.random.PRNGKey(1), **sizes)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_weights_states_and_derivatives(bidirectional):
    assert (ours.get_num_params_in_lstm(**SIZES, bidirectional=bidirectional)
            == theirs.get_num_params_in_lstm(**SIZES, bidirectional=bidirectional))
    for mine, wanted in zip(results(ours, minijax, bidirectional),
                            results(theirs, jax, bidirectional), strict=True):
        assert str(minijax.tree.structure(mine)) == str(jax.tree.structure(wanted))
        for x, y in zip(minijax.tree.leaves(mine), jax.tree.leaves(wanted), strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x, y, 2e-5, 2e-5)


def test_lstm_is_its_reference_on_the_cpu():
    """JAX's needs cuDNN."""
    x, h, c, weights, lengths = arrays(True)
    parts = ours.unpack_lstm_weights(weights, **SIZES, bidirectional=True)
    for mine, wanted in zip(
            ours.lstm(x, h, c, weights, lengths, *SIZES.values(), 0., True),
            ours.lstm_ref(x, h, c, *parts, lengths, *SIZES.values(), 0., True), strict=True):
        np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize("lengths, dropout", [(np.array([5, 3, 1], np.int8), 0.),
                                              (np.array([5, 3, 1], np.int32), 0.5)])
def test_what_it_refuses(lengths, dropout):
    x, h, c, weights, _ = arrays(False)
    said = []
    for rnn in (ours, theirs):
        parts = rnn.unpack_lstm_weights(weights, **SIZES, bidirectional=False)
        with pytest.raises(NotImplementedError) as error:
            rnn.lstm_ref(x, h, c, *parts, lengths, *SIZES.values(), dropout, False)
        said.append(str(error.value))
    assert said[0] == said[1]
