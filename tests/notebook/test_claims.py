"""What chapters say of outputs holds, and what they say is left out is not in the package."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import minijax
from minijax.notebook import says, weave

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
CHAPTERS = sorted(NOTEBOOKS.glob("[0-9]*.md"))
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=[c.stem for c in CHAPTERS])

# ---------------------------------------------------------------- what is said of outputs


@each_chapter
def test_each_claim_of_a_cell_stands_in_the_prose_beside_it(chapter: Path) -> None:
    assert weave.unsaid(chapter) == []


@each_chapter
def test_each_chapter_makes_claims(chapter: Path) -> None:
    assert "\nsays(" in chapter.read_text(encoding="utf-8")


@pytest.mark.parametrize(("claim", "values"), [
    ("90 more sines", [91]), ("a third, 0.33", [0.34]), ("Ten blocks of ten", [10, 9]),
    ("2.8% of 1,000", [0.0295, 1000]), ("all of them agree", [False]), ("2 of 3", [2]),
    ("above the roof, 1.2", [1.2, False])])
def test_a_false_claim_fails(claim: str, values: list) -> None:
    with pytest.raises(AssertionError, match=re.escape(f'"{claim}"')):
        says(claim, *values)


def test_a_claim_holds_as_its_numbers_are_rounded() -> None:
    says("2.9% of 1,000, and half of it", 0.0285, 999.6, 0.52)
    says("minus three is -3, no more", 3, -3.2)
    says("where they agree, on 20 of 20", True)
    says("256 of `bfloat16`", 256)  # the digits of a name are no number


def test_a_claim_that_no_sentence_beside_the_cell_makes_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "09_x.md"
    cell = '```{code-cell} ipython3\n%time f()\nsays("two of *them*", 2)\n```\n'
    for before, after in (("There are two\nof them.", ""), ("", "And `two` of them.")):
        path.write_text(f"{before}\n\n{cell}\n{after}\n")
        assert weave.unsaid(path) == []
    path.write_text(f"two of them\n\n{cell.replace('two', 'six')}\nthree of them\n\n{cell}")
    assert weave.unsaid(path) == ["six of *them*", "two of *them*"]


# ---------------------------------------------------------------- names in the prose

PACKAGE = Path(minijax.__file__).parent


def stale(text: str) -> list[str]:
    """Names that the text says are in a file of the package, and that are not.

    It says so by "`name` in [`file`](link)", and in the rows of the tables that name files.
    """
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    said = re.findall(r"((?:`[^`]+`(?:, | and )?)+) ?\(?(?:is |are )?(?:in |\()"
                      r"\[`[^`]+`\]\(\.\./minijax/([^)]+)\)", re.sub(r"\s+", " ", prose))
    said += re.findall(r"^\| ([^|]*`[^|]*) \| `([\w/]+\.py)` \|", prose, flags=re.M)
    return [f"{name} in {file}" for names, file in said
            for name in re.findall(r"`([^`]+)`", names)
            if not (PACKAGE / file).is_file()
            or re.findall(r"\w+", name)[-1] not in (Path(file).stem, *re.findall(
                r"\w+", (PACKAGE / file).read_text(encoding="utf-8")))]


@each_chapter
def test_what_is_said_to_be_in_a_file_is_there(chapter: Path) -> None:
    assert stale(chapter.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("text", [
    "The cast saturates (`_gone` in\n[`scalars.py`](../minijax/compiler/scalars.py)).",
    "`dot` and `_gone` (in [`scalars.py`](../minijax/compiler/scalars.py))",
    "| `_gone` | `compiler/scalars.py` | `jax/_src/x.py` |",
    "| `convert` | `compiler/gone.py` | `jax/_src/x.py` |"])
def test_a_name_that_is_not_in_the_file_is_reported(text: str) -> None:
    assert any("gone" in each for each in stale(text))


# ---------------------------------------------------------------- what is left out

WHERE = ("", ".numpy", ".lax", ".nn", ".random", ".tree_util", ".tree", ".scipy", ".experimental",
         ".numpy.linalg", ".numpy.fft", ".scipy.special", ".scipy.linalg", ".nn.initializers")


def left_out(text: str) -> Iterator[str]:
    """The names in backticks in the first sentence after "What we left out"; in parentheses stands
    what explains them.
    """
    for sentence in re.findall(r"^What we left out(.*?)(?:\.\s|\n\n|\Z)", text, re.M | re.S):
        depth = 0
        for name, mark in re.findall(r"`([^`]+)`|([()])", re.sub(r"\]\([^)]*\)", "", sentence)):
            depth += {"(": 1, ")": -1}.get(mark, 0)
            if name and not depth:
                yield name


def is_there(name: str) -> bool:
    """Whether the package has a public name, as a reader writes it."""
    *path, last = re.sub(r"^(jax|minijax|jnp)\b\.?", "", name.partition("(")[0]).split(".")
    for place in WHERE:
        try:
            module = importlib.import_module(".".join([f"minijax{place}", *path]))
        except ImportError:
            continue
        if last in dir(module) or hasattr(module, last):
            return True
    return last.isidentifier() and last.startswith("jax_") and hasattr(minijax.config, last)


@each_chapter
def test_what_a_chapter_says_is_left_out_is_not_in_the_package(chapter: Path) -> None:
    names = left_out(chapter.read_text(encoding="utf-8"))
    assert not [name for name in names if is_there(name)]


def test_a_name_that_has_come_since_is_found() -> None:
    text = ("\nWhat we left out: `associative_scan`, and `lax.custom_root` (`jit` needs neither), "
            "`jnp.no_such(x)`\nand [`jax.nn.gelu`](x.md); `jax_enable_x64`. `vmap` has it.\n")
    names = list(left_out(text))
    assert names == ["associative_scan", "lax.custom_root", "jnp.no_such(x)", "jax.nn.gelu",
                     "jax_enable_x64"]
    assert [name for name in names if is_there(name)] == [
        "associative_scan", "lax.custom_root", "jax.nn.gelu", "jax_enable_x64"]
