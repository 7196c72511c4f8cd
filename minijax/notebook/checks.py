"""Exercises: their solutions are registered beside the chapters, and `check` tests an answer.

Builds on `show`; the chapters' folder `exercises` has one file for each of them.
JAX has no counterpart.
"""

import ast
import contextlib
import dis
import html
import importlib
import inspect
import json
import re
import sys
import traceback
import types
import unittest.mock
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from minijax.notebook.show import Shown, show

RIGHT, NOT_YET, UNANSWERED = "right", "not yet", "not answered"


@dataclass(frozen=True)
class Exercise:
    """One exercise: how an answer is graded, the solution, and answers that are often given."""

    name: str
    chapter: str
    grade: Callable[[Any], None]
    solution: str
    wrong: tuple[tuple[str, str], ...]  # an answer's source, and words that its hint contains
    right: tuple[str, ...] = ()  # other answers that are right
    given: str = ""
    afterthought: str = ""
    hints: tuple[str, ...] = ()


_exercises: dict[str, Exercise] = {}
_verdicts: dict[str, str] = {}
_tries: dict[str, int] = {}


def exercise(name: str, *, chapter: str, grade: Callable[[Any], None], solution: str,
             wrong: Sequence[tuple[str, str]], right: Sequence[str] = (), given: str = "",
             afterthought: str = "", hints: Sequence[str] = ()) -> Exercise:
    """Register an exercise.

    Args:
      name: what `check` calls it; one of its kind in the whole course.
      chapter: the stem of the chapter's files, such as ``"00_tour"``.
      grade: looks at an answer; returns if it is right, and otherwise uses `expect`.
      solution: source of a right answer: an expression, or definitions; that of the exercise's name
        counts, or else the last.
      wrong: pairs of a wrong answer's source and words that its hint must contain.
      right: sources of right answers besides the solution.
      given: source of what the chapter has defined and answers use.
      afterthought: what to say to a right answer.
      hints: general ones, of which each further try shows one more.
    """
    if name in _exercises and _exercises[name].chapter != chapter:
        raise ValueError(f"two exercises are called {name!r}")
    new = Exercise(name, chapter, grade, solution.strip() + "\n", tuple(wrong), tuple(right),
                   given, afterthought, tuple(hints))
    _exercises[name] = new
    return new


PACKAGE = "exercises"  # which registers all exercises when it is imported
# The chapters' folder is the one in which a notebook runs, or else that of the checkout.
CHAPTERS = (Path(), Path(__file__).parents[2] / "notebooks")


def exercises() -> dict[str, Exercise]:
    """All exercises of the course, by name."""
    if PACKAGE not in sys.modules:
        _import_exercises()
    return _exercises


def _import_exercises() -> None:
    """Import the package `exercises` that stands beside the chapters."""
    folders = [folder.absolute() for folder in CHAPTERS if (folder / PACKAGE).is_dir()]
    if not folders:
        raise LookupError("the exercises stand beside the chapters, in the folder "
                          "`notebooks/exercises` of a checkout of minijax, and this program runs "
                          "elsewhere: run it in that `notebooks`")
    sys.path.insert(0, str(folders[0]))
    try:
        importlib.import_module(PACKAGE)
    finally:
        sys.path.remove(str(folders[0]))


# ---------------------------------------------------------------- grading


class Hint(Exception):
    """Raised while an answer is graded: it is not right, and this is what to tell."""


def expect(condition: Any, hint: str) -> None:
    """Go on if the condition holds; otherwise the answer is not right yet, and this is its hint.

    >>> expect(1 + 1 == 3, "count again")
    Traceback (most recent call last):
    ...
    minijax.notebook.checks.Hint: count again
    """
    if not condition:
        raise Hint(hint)


@contextlib.contextmanager
def instead_of(kind: type[Exception], words: str, hint: str) -> Iterator[None]:
    """Where an answer raises an error of this kind, with these words in it, say this hint.

    >>> with instead_of(TypeError, "not iterable", "a rule gives a list"):
    ...     list(3)
    Traceback (most recent call last):
    ...
    minijax.notebook.checks.Hint: a rule gives a list
    """
    try:
        yield
    except kind as error:
        if words not in str(error):
            raise
        raise Hint(hint) from None


def near(x: Any, y: Any, tolerance: float = 1e-4) -> bool:
    """Whether two arrays (or numbers) have one shape and nearly the same values.

    >>> near(1.0, 1.00001), near([1.0, 2.0], 1.0), near(None, 1.0)
    (True, False, False)
    """
    try:
        mine, theirs = np.asarray(x, float), np.asarray(y, float)
    except (TypeError, ValueError):
        return False
    return mine.shape == theirs.shape and bool(
        np.allclose(mine, theirs, rtol=tolerance, atol=tolerance, equal_nan=True))


def shown(x: Any) -> str:
    """A value on one line, as a hint shows it.

    >>> shown([1.0, 2.0]), shown(0.12345678), shown({"a": 1})
    ('[1, 2]', '0.12346', "{'a': 1}")
    """
    try:
        array = np.asarray(x)
    except (TypeError, ValueError):
        return repr(x)
    if array.dtype.kind not in "biufc":
        return repr(x)
    text = np.array2string(array, separator=", ", threshold=40, formatter={
        "bool": str, "int": str, "float_kind": lambda number: f"{number:.5g}"})
    return re.sub(r"\s+", " ", text)


def numbers(answer: Any) -> Any:
    """What an answer gave, if it is an array, or can be one; otherwise a hint.

    >>> numbers([1, 2.5])
    [1, 2.5]
    >>> numbers(None)
    Traceback (most recent call last):
    ...
    minijax.notebook.checks.Hint: your function gave None: does each way through it end in `return`?
    """
    expect(answer is not None, "your function gave None: does each way through it end in `return`?")
    try:
        is_array = np.asarray(answer).dtype.kind in "biufc"
    except (TypeError, ValueError):
        is_array = False
    expect(is_array, f"an array of numbers is wanted, and yours is {answer!r}")
    return answer


def agree(given: str, found: Any, wanted: Any, *hints: str | tuple[Any, str],
          what: str = "the answer", tolerance: float = 1e-4) -> None:
    """Go on if an answer gave what is wanted; otherwise tell what was given, wanted and found.

    Args:
      given: the input, in words that follow "for".
      found: what the answer gave.
      wanted: what it should have given.
      hints: what to say besides: the first that is a string, or whose condition holds.
      what: a name for what the answer gave.
      tolerance: how near the two must be; 0 for equal ones.

    >>> agree("x = 3", 6, 9, (False, "that is the sum"), "multiply x by itself")
    Traceback (most recent call last):
    ...
    minijax.notebook.checks.Hint: for x = 3 the answer is 9, and yours is 6
    multiply x by itself
    """
    if near(found, wanted, tolerance):
        return
    telling = (hint if isinstance(hint, str) else hint[0] and hint[1] for hint in hints)
    why = next((f"\n{text}" for text in telling if text), "")
    told = [shown(wanted), shown(found)]
    if told[0] == told[1]:  # they differ in digits that are not shown
        told = [repr(np.asarray(x).tolist()) for x in (wanted, found)]
    raise Hint(f"for {given} {what} is {told[0]}, and yours is {told[1]}{why}")


@contextlib.contextmanager
def wanting(given: str, wanted: Any,
            *hints: str | tuple[type[Exception] | tuple[type[Exception], ...], str],
            what: str = "the answer") -> Iterator[None]:
    """Where an answer raises an error, tell what was given and wanted as well.

    Args:
      given: the input, in words that follow "for".
      wanted: what the answer should have given.
      hints: what to say besides: the first that is a string, or whose error was raised.
      what: a name for what the answer should have given.

    >>> with wanting("x = 3", 9, (TypeError, "multiply two numbers")):
    ...     "3" * "3"
    Traceback (most recent call last):
    ...
    minijax.notebook.checks.Hint: for x = 3 the answer is 9, and yours raised TypeError: ...
    multiply two numbers
    """
    try:
        yield
    except Hint:
        raise
    except Exception as error:
        telling = (hint if isinstance(hint, str) else isinstance(error, hint[0]) and hint[1]
                   for hint in hints)
        why = next((f"\n{text}" for text in telling if text), "")
        raised = trouble(error).removeprefix("your answer ")
        raise Hint(f"for {given} {what} is {shown(wanted)}, and yours {raised}{why}") from None


def chosen(answer: Any, cases: Mapping[str, tuple[str, Any, str]], yes: str, no: str) -> None:
    """Go on if an answer names the right ones of several cases; otherwise tell of one.

    Args:
      answer: a string of their letters.
      cases: by letter: the case itself, whether it belongs to the answer, and a hint.
      yes: what is true of a case that belongs to it.
      no: what is true of the others.

    >>> cases = {"a": ("3", True, "a number"), "b": ("[3]", False, "a tree of one number")}
    >>> chosen("ab", cases, "is taken", "is refused")
    Traceback (most recent call last):
    ...
    minijax.notebook.checks.Hint: `[3]` is refused, and by your answer it is taken
    a tree of one number
    """
    some = "".join(list(cases)[:3])
    expect(isinstance(answer, str), f'a string of letters is wanted, such as "{some}", and yours '
           f"is {answer!r}")
    letters = set(answer.lower()) - set(" ,")
    expect(letters <= set(cases), f"the letters are {min(cases)} to {max(cases)}, and yours are "
           f"{', '.join(sorted(letters))}")
    for letter, (case, holds, hint) in cases.items():
        expect(bool(holds) == (letter in letters), f"`{case}` {yes if holds else no}, and by your "
               f"answer it {no if holds else yes}\n{hint}")


def check(name: str, answer: Any) -> None:
    """Say whether the answer to an exercise is right, and if not, what to think of.

    >>> check("no such exercise", 1)
    Traceback (most recent call last):
    ...
    LookupError: no exercise is called 'no such exercise'
    """
    if name not in exercises():
        raise LookupError(f"no exercise is called {name!r}")
    state, text = verdict(_exercises[name], answer)
    if state == RIGHT:
        state, text = _on_variants(_exercises[name], answer, text)
    if _verdicts.get(name) != RIGHT or state == RIGHT:
        _verdicts[name] = state
    if state == NOT_YET:
        text = "\n".join([text, *_more_hints(name)])
    _record(name, state)
    _say(name, state, text)


@contextlib.contextmanager
def variant(seed: int) -> Iterator[None]:
    """Inside, random inputs of the graders are other ones; 0 is the usual draw.

    >>> def draw():
    ...     return np.random.default_rng(3).integers(1 << 30)
    >>> with variant(1):
    ...     other = draw()
    >>> other == draw()
    np.False_
    """
    usual = np.random.default_rng

    def other(start: Any = None) -> np.random.Generator:
        return usual([seed, start] if seed and isinstance(start, int) else start)
    with unittest.mock.patch.object(np.random, "default_rng", other):
        yield


_variants: list[int] = []  # the seeds of hidden inputs, for `make grade`


def grade_on(seeds: Sequence[int]) -> None:
    """From now on `check` also looks at an answer with these seeds of random inputs."""
    _variants[:] = seeds


def _on_variants(exercise: Exercise, answer: Any, praise: str) -> tuple[str, str]:
    """How a right answer stands on hidden inputs, but for those on which the solution fails."""
    for seed in _variants:
        with variant(seed):
            state, text = verdict(exercise, answer)
            if state != RIGHT and (exercise.given.startswith("%mini begin ") or verdict(
                    exercise, evaluate(exercise, exercise.solution))[0] == RIGHT):
                return state, text
    return RIGHT, praise


PROGRESS = "my_progress.json"  # beside the chapters; where it is, checks are recorded in it


def _record(name: str, state: str) -> None:
    """Write down how an exercise stands, and how often it was tried, if the reader wants that."""
    path = Path(PROGRESS)
    if state != UNANSWERED and path.is_file():
        kept = json.loads(path.read_text())
        old = kept.get(name, {"state": state, "tries": 0})
        kept[name] = {"state": RIGHT if RIGHT in (old["state"], state) else state,
                      "tries": old["tries"] + 1}
        path.write_text(json.dumps(kept, indent=1) + "\n")


def verdict(exercise: Exercise, answer: Any) -> tuple[str, str]:
    """How an answer stands, and what to say of it."""
    if is_unanswered(answer):
        of_mini = answer is ... and exercise.given.startswith("%mini begin")
        return UNANSWERED, "fill in the cell above, run it, then run this one" + (
            f" (`mini` has no `{exercise.name}` yet: the cell begins with `%%mini`, and must run)"
            * of_mini)
    try:
        exercise.grade(_as_written(exercise, answer))
    except Hint as hint:
        return NOT_YET, str(hint)
    except Exception as error:
        return NOT_YET, trouble(error)
    return RIGHT, exercise.afterthought


def _as_written(exercise: Exercise, answer: Any) -> Any:
    """The answer; an array counts as the list of its rows, and 3.0 or NumPy's 3 as the count 3."""
    if exercise.solution.startswith(("[", "(")):
        return answer.tolist() if hasattr(answer, "tolist") and np.ndim(answer) else answer
    is_number = exercise.solution.strip().isdecimal() and np.ndim(answer) == 0 and (
        np.asarray(answer).dtype.kind in "iuf")
    return int(answer) if is_number and float(answer).is_integer() else answer


def is_unanswered(answer: Any) -> bool:
    """Whether the answer is what stood there for a start.

    >>> def mine(x):
    ...     ...  # your code
    >>> is_unanswered(mine), is_unanswered(...), is_unanswered(None), is_unanswered(3)
    (True, True, True, False)
    """
    if answer is None or answer is ...:
        return True
    if isinstance(answer, type):
        return any(map(is_unanswered, (f for f in vars(answer).values() if callable(f))))
    answer = inspect.unwrap(answer) if callable(answer) else answer
    return isinstance(answer, types.FunctionType) and _is_empty(answer.__code__)


def _is_empty(code: types.CodeType) -> bool:
    """Whether a function's body is nothing but a docstring and dots."""
    idle = {"RESUME", "NOP", "CACHE", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}
    return all(step.opname in idle and (step.argval is None or step.opname == "RESUME")
               for step in dis.get_instructions(code))


def trouble(error: Exception) -> str:
    """An exception out of a reader's answer: what it says, and the reader's line."""
    from minijax.notebook.errors import is_readers_file
    message = (str(error).splitlines() or [""])[0]
    text = f"your answer raised {type(error).__name__}: {message}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if is_readers_file(f.filename)]
    if not frames or not frames[-1].line:
        return text
    return f"{text}\n  in line {frames[-1].lineno}: {frames[-1].line}"


def _more_hints(name: str) -> list[str]:
    """With each further try, one general hint more."""
    tries = _tries[name] = _tries.get(name, 0) + 1
    return list(_exercises[name].hints[:tries - 1])


SIGNS = {RIGHT: ("✔", "#1a7f37"), NOT_YET: ("✗", "#bc4c00"), UNANSWERED: ("…", "#7d8590")}


def _say(name: str, state: str, text: str) -> None:
    word = "right" if state == RIGHT else "not yet"
    sign, colour = SIGNS[state]
    lines = re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text)).replace("\n", "<br>")
    box = (f'<div style="border-left:4px solid {colour};padding:.2em .8em">{sign} '
           f"<b>{html.escape(name)}</b>: {word}{'<br>' + lines if lines else ''}</div>")
    show(Shown(f"{name}: {word}{': ' + text if text else ''}", box))


# ---------------------------------------------------------------- for tests and for grading


def evaluate(exercise: Exercise, text: str) -> Any:
    """The answer that a piece of source gives, after what the chapter has defined.

    Where that is `%mini begin 02`, the source is a cell of the reader's library, begun there.
    """
    import minijax
    from minijax.notebook.library import library
    names = {"jax": minijax, "jnp": minijax.numpy, "lax": minijax.lax, "np": np}
    body = ast.parse(text.strip()).body
    if exercise.given.startswith("%mini begin "):
        library.begin(exercise.given.split()[-1])
        library.write(text)
        names = vars(library.module)
    else:
        exec(compile(exercise.given, f"<given for {exercise.name}>", "exec"), names)
        if len(body) == 1 and isinstance(body[0], ast.Expr):
            return eval(compile(text.strip(), "<answer>", "eval"), names)
        exec(compile(text, "<answer>", "exec"), names)
    from minijax.notebook.source import bound_names
    bound = [name for node in body for name in bound_names(node)]
    return names[exercise.name if exercise.name in bound else bound[-1]]


def score(names: Sequence[str] = ()) -> str:
    """What was checked in this process, and how many exercises of these chapters are right."""
    every = exercises()
    chapters = {every[name].chapter for name in (*names, *_verdicts) if name in every}
    asked = [name for name, e in every.items() if e.chapter in chapters]
    lines = [f"{_verdicts.get(name, UNANSWERED):>13}  {name}" for name in asked]
    right = sum(_verdicts.get(name) == RIGHT for name in asked)
    return "\n".join([*lines, f"{right} of {len(asked)} exercises are right"])
