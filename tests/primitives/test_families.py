"""What families refuse, and the check that no block of the package has an empty slot."""

import pytest

import minijax  # noqa: F401
from minijax import primitives
from minijax.core import Primitive, cannot
from minijax.primitives.slots import broadcast_shapes


def test_no_primitive_of_the_package_has_an_empty_slot():
    primitives.check_package()


def test_an_empty_slot_is_named():
    p = Primitive("half", impl=lambda x: [x / 2], abstract_eval=lambda x: [x])
    with pytest.raises(TypeError, match="'half' has no jvp"):
        primitives.check_slots(p)


def test_a_reason_fills_a_slot_and_two_lowerings_do_not():
    why = cannot("it has no meaning")
    slots = dict.fromkeys(primitives.SLOTS, why)
    primitives.check_slots(Primitive("nothing", **slots, element=why))
    with pytest.raises(TypeError, match="exactly one of element, loop, library"):
        primitives.check_slots(Primitive("nothing", **slots, element=why, loop=why))


def test_shapes_of_unequal_rank_do_not_stretch():
    with pytest.raises(TypeError, match="add: arrays must have the same number of dimensions"):
        broadcast_shapes("add", [(3,), (3, 3)])
