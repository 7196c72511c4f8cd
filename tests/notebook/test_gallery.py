"""The gallery: every example on the page of an error raises it, and every fix runs."""

from typing import Any

import pytest

from minijax import errors
from minijax.notebook.error_pages import parts_of
from minijax.notebook.gallery import exhibit, gallery, run
from minijax.sharp_bits.findings import SHARP_BITS
from tests.notebook.test_errors import Balanced

PAGES = {name: parts_of(kind) for name, kind in vars(errors).items()
         if isinstance(kind, type) and issubclass(kind, Exception)}
EXAMPLES = [pytest.param(name, program, id=f"{name}-{i}") for name, parts in PAGES.items()
            if "The smallest example" in parts
            for i, program in enumerate(parts["The smallest example"].programs)]
FIXES = [pytest.param(program, id=f"{name}-{i}") for name, parts in PAGES.items()
         if "The fix" in parts for i, program in enumerate(parts["The fix"].programs)]


@pytest.mark.parametrize("name, program", EXAMPLES)
def test_an_example_raises_the_error_whose_page_it_stands_on(name: str, program: str) -> None:
    error = run(program)
    assert type(error) is getattr(errors, name), error  # one prints as a class of Python's


@pytest.mark.parametrize("program", FIXES)
def test_a_fix_runs(program: str) -> None:
    assert run(program) is None


def test_every_class_has_an_example_and_a_fix_but_the_bases() -> None:
    without = {name for name, parts in PAGES.items()
               if not name.startswith("_") and "The smallest example" not in parts}
    assert without == {"JAXTypeError", "JAXIndexError", "InconclusiveDimensionOperation"}
    assert {each.kind for each in gallery()} == {
        getattr(errors, name) for name, parts in PAGES.items() if "The smallest example" in parts}


@pytest.mark.parametrize("flag", [flag.name for flag in SHARP_BITS])
def test_every_check_of_a_silent_trap_has_an_example(flag: str) -> None:
    called = {"check_tracer_leaks": "checking_leaks"}.get(flag, flag)
    found = [name for name, parts in PAGES.items() if "The smallest example" in parts
             and any(called in program for program in parts["The smallest example"].programs)]
    assert len(found) == 1


@pytest.mark.parametrize("kind", [errors.TracerBoolConversionError, errors.KeyReuseError])
def test_an_exhibit_shows_the_program_the_message_the_reason_and_the_program_mended(
        kind: Any) -> None:
    shown = exhibit(kind)
    for text in (repr(shown), "".join(Balanced(shown._repr_html_()).text)):
        message = str(shown.error).splitlines()[0]
        places = [text.index(part) for part in (
            shown.broken.strip(), message, shown.mended.strip())]
        assert places == sorted(places)
    assert Balanced(shown._repr_html_()).open == []


def test_an_example_that_does_not_fail_is_no_exhibit() -> None:
    class Fine(Exception):
        """Nothing.

        **What happened.** Nothing.

        **The smallest example.** ::

            1 + 1

        **The fix.** None::

            2
        """

    with pytest.raises(TypeError, match="example of Fine gives None"):
        exhibit(Fine).error  # noqa: B018
