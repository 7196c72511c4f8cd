"""What the rules of operations with programs inside share."""

import minijax
from minijax.control_flow.loop_rules import Loop
from minijax.control_flow.program_rules import rearranged, split_list
from minijax.core.jvp import jvp_jaxpr
from minijax.core.jaxpr import eval_jaxpr


def test_inputs_and_outputs_can_be_rearranged():
    closed = minijax.make_jaxpr(lambda x, y: (x - y, x, y))(1.0, 2.0)
    turned = rearranged(closed, [1, 0], [2, 0])
    assert eval_jaxpr(turned.jaxpr, (), 5.0, 8.0) == [5.0, 3.0]


def test_a_flag_of_a_carry_is_kept_until_no_turn_sets_another():
    body = minijax.make_jaxpr(lambda w, a, b, c, d: (a, a * w, b, d + 1., c))(1., 2., 3., 4., 5.)
    program, flags, found = Loop(body, 0, 1, 4).carry_fixpoint(
        jvp_jaxpr, [False, True, False, False, False])
    assert flags == [False, True, True, True, False]
    assert found == [True, True, True, False, True]  # the last is a row, and no carry
    assert len(program.in_avals) == 5 + 3 and len(program.out_avals) == 5 + 4


def test_a_type_among_the_inputs_is_one_that_is_ignored():
    closed = minijax.make_jaxpr(lambda x: x + 1.)(1.0)
    assert eval_jaxpr(rearranged(closed, [closed.in_avals[0], 0]).jaxpr, (), 7.0, 1.0) == [2.0]


def test_a_list_is_cut_into_pieces():
    assert split_list([1, 2, 3, 4], 1, 2) == [[1], [2, 3], [4]]
