"""What the rules of operations with programs inside share."""

import minijax
from minijax.higher_order.rules import cut, fixpoint, rearranged
from minijax.jaxpr import eval_jaxpr


def test_inputs_and_outputs_can_be_rearranged():
    closed = minijax.make_jaxpr(lambda x, y: (x - y, x, y))(1.0, 2.0)
    turned = rearranged(closed, [1, 0], [2, 0])
    assert eval_jaxpr(turned.jaxpr, (), 5.0, 8.0) == [5.0, 3.0]


def test_a_fixpoint_is_the_least_one():
    reach = {0: [1], 1: [2], 2: [], 3: [0]}
    step = lambda flags: [any(flags[j] and i in reach[j] for j in reach)  # noqa: E731
                          for i in range(4)]
    assert fixpoint([True, False, False, False], step) == [True, True, True, False]


def test_a_list_is_cut_into_pieces():
    assert cut([1, 2, 3, 4], 1, 2) == [[1], [2, 3], [4]]
