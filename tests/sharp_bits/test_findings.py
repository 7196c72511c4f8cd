"""Findings are raised, warned of, or collected; one switch turns every check on."""

import threading
import warnings

import pytest

import minijax as jax
from minijax import config, errors
from minijax.sharp_bits.findings import (SHARP_BITS, Finding, checking_sharp_bits, finding,
                                         is_collecting, report)


def found(line=1):
    return Finding("debug_nans", "a nan came out", "f", "model.py", line, "Keep away from 0 / 0.")


def test_a_finding_prints_its_place_what_happened_its_flag_and_the_fix():
    assert str(found(3)) == ("model.py:3, in f: a nan came out (debug_nans)\n"
                             "The fix: Keep away from 0 / 0.")


def test_in_a_notebook_a_finding_is_text_that_cannot_be_taken_for_markup():
    shown = Finding("debug_nans", "x < 0 & y", fix="<b>")._repr_html_()
    assert "x &lt; 0 &amp; y" in shown and "The fix: &lt;b&gt;" in shown


def test_a_finding_is_at_the_running_line_of_the_user():
    here = finding("debug_nans", "a nan", "mend it")
    assert here.function == "test_a_finding_is_at_the_running_line_of_the_user"
    assert here.file == "test_findings.py"


def test_a_finding_with_an_error_is_raised_and_borne_by_the_error():
    with pytest.raises(ZeroDivisionError) as caught:
        report(found(), ZeroDivisionError("no"))
    assert caught.value.finding == found()


def test_a_finding_without_an_error_is_a_warning_at_the_line_of_the_user():
    with pytest.warns(errors.SharpBitWarning, match=r"a nan came out Keep away") as given:
        report(found())
    assert given[0].filename == __file__


def test_while_collecting_the_program_goes_on_and_a_finding_counts_once():
    with checking_sharp_bits(collect=True) as findings:
        assert is_collecting()
        for line in (1, 2, 1):
            report(found(line), ZeroDivisionError("no"))
    assert findings == [found(1), found(2)]
    assert not is_collecting()


def test_one_switch_turns_every_check_on_and_leaves_them_as_they_were():
    with config.debug_nans(True):
        with jax.checking_sharp_bits():
            assert all(flag.value for flag in SHARP_BITS)
        with jax.checking_sharp_bits(False):
            assert not any(flag.value for flag in SHARP_BITS)
        assert [flag.name for flag in SHARP_BITS if flag.value] == ["debug_nans"]


def test_the_switch_is_undone_by_an_error():
    with pytest.raises(KeyError), checking_sharp_bits(collect=True):
        raise KeyError
    assert not is_collecting()
    assert not any(flag.value for flag in SHARP_BITS)


def test_another_thread_neither_checks_nor_collects():
    seen = []
    with checking_sharp_bits(collect=True):
        thread = threading.Thread(target=lambda: seen.append(
            (is_collecting(), config.debug_nans.value)))
        thread.start()
        thread.join()
    assert seen == [(False, False)]


def test_an_inner_switch_raises_where_an_outer_one_collects():
    with checking_sharp_bits(collect=True) as findings:
        with checking_sharp_bits(), pytest.raises(ZeroDivisionError):
            report(found(), ZeroDivisionError("no"))
        report(found(), ZeroDivisionError("no"))
    assert findings == [found()]


def test_warnings_of_the_same_line_follow_the_filters_of_the_user():
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.SharpBitWarning)
        with pytest.raises(errors.SharpBitWarning):
            report(found())
