"""What families refuse."""

import pytest

import minijax  # noqa: F401
from minijax.primitives.slots import broadcast_shapes


def test_shapes_of_unequal_rank_do_not_stretch():
    with pytest.raises(TypeError, match="add: arrays must have the same number of dimensions"):
        broadcast_shapes("add", [(3,), (3, 3)])
