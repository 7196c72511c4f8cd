"""The table of JAX's own tests: what `python -m tests.jax_suite --table` wrote adds up."""

from tests.jax_suite.__main__ import RESULTS, cells, reasons, rows_of, stale, with_total

LEAST = 0.97  # of the cases of a file that need nothing inside of JAX


def test_a_row_has_the_share_of_the_cases_that_need_no_internals():
    assert cells("nn", 199, 1, 7) == ["nn", "199", "1", "7", "99.5%"]
    assert cells("ann", 0, 0, 1) == ["ann", "0", "0", "1", "-"]


def test_the_last_row_is_the_sum_of_the_others():
    rows = {"b": cells("b", 1, 1, 0), "a": cells("a", 2, 0, 5)}
    assert with_total(rows) == [rows["a"], rows["b"], ["all 2 files", "3", "1", "5", "75.0%"]]
    assert f"| {' | '.join(with_total(rows_of(RESULTS))[-1])} |" in RESULTS.read_text()


def test_of_each_file_all_but_three_in_a_hundred_cases_pass_or_their_reason_is_given():
    explained = {each["file"]: each["cases"] for each in reasons() if "why" in each}
    for name, passed, failed, *_ in rows_of(RESULTS).values():
        if int(passed) < LEAST * (int(passed) + int(failed)):
            assert name == "x64_context" and len(explained[name]) == 1  # one program, jitted or not


def test_a_reason_that_no_case_needs_is_named():
    case = "LaxTest.testDotAlgorithmConfig"
    passed = {case: ("passed", "") for each in reasons() for case in each["cases"]}
    assert case not in stale("lax", {case: ("failed", "")})
    assert case in stale("lax", passed)
