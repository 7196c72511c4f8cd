"""Windows are NumPy's."""

import numpy as np
import pytest

import minijax.numpy as jnp


@pytest.mark.parametrize("size", [0, 1, 2, 5, 8])
@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
def test_a_window_is_numpys(name, size):
    np.testing.assert_allclose(getattr(jnp, name)(size), getattr(np, name)(size), atol=1e-6)
