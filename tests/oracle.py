"""The oracle: an expression, evaluated with minijax and with JAX, must give the same."""

import contextlib
import functools
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

import minijax
from tests.factorisations import invariants
from tests.recorded import Answers, Array, Refused, assert_whole

SAMPLES = {
    "f": np.float32([[-1.5, 0.0, 2.25], [3.0, -0.5, 100.0]]),
    "g": np.float32([[0.1, 0.25, 0.5], [0.75, 0.875, 0.9]]),
    "v": np.float32([1.0, -2.0, 4.0]),
    "x": np.float32([np.nan, 1.0, -np.inf, 2.0, -0.0, 0.1, 0.5, 0.9, -3.5]),
    "n": np.float32([[np.nan, 1.0, -np.inf], [2.0, np.nan, -0.0]]),
    "i": np.int32([[-7, 0, 5], [3, -1, 8]]),
    "w": np.int32([2, 3, -4]),
    "k": np.int32([2, 0, 1]),
    "p": np.int8([100, -100, 3]),
    "u": np.uint8([[250, 3, 0], [7, 9, 255]]),
    "b": np.array([[True, False, True], [False, False, True]]),
    "c": np.complex64([[1 + 2j, -1j, 0], [3, -2 + 0.5j, 1 - 1j]]),
    "e": np.zeros((0, 3), np.float32),
    "t": np.float32(np.arange(24).reshape(2, 3, 4) - 11),
    "m": np.float32([[2.0, 1.0], [0.5, -3.0]]),
}


def arrays(top: Any) -> dict[str, Any]:
    """The samples as a library's arrays."""
    found = {name: top.numpy.asarray(x) for name, x in SAMPLES.items()}
    return found | {"s": top.numpy.asarray(2.5), "h": top.numpy.asarray(SAMPLES["f"], "bfloat16")}


@functools.cache
def namespace(top: Any) -> dict[str, Any]:
    """A library under its usual names, and the samples."""
    return arrays(top) | {"jnp": top.numpy, "jax": top, "np": np, "lax": top.lax, "nn": top.nn}


def evaluated(expression: str, top: Any) -> Any:
    """The value of an expression in a library, or the error it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(expression, dict(namespace(top)))
        except Exception as error:
            return error


# ── What JAX says, to many expressions at once ───────────────────────────────────────────────

# Compiling what one expression does takes JAX longer than all else in its test: those of a file are
# one program. What has no place in one, or no arrays for its result, is evaluated by itself.
TOGETHER = 30

Question = tuple[str, bool]  # an expression, and whether 64 bits are enabled


class Oracle:
    """JAX's answers to what the tests of a file ask: those recorded, and the others at once."""

    def __init__(self, items: Iterable[Any], answers: Answers) -> None:
        self.answers = answers
        self.at_once: dict[Question, Any] = {}
        rest = dict.fromkeys(q for item in items for q in questions(item)
                             if self.key(*q) not in answers.kept)
        for wide in (False, True):
            those = [expression for expression, w in rest if w == wide]
            for k in range(0, len(those), TOGETHER):
                with jax.enable_x64(wide):
                    values = at_once(those[k:k + TOGETHER])
                self.at_once |= {(expression, wide): x for expression, x in values.items()}

    def key(self, *question: Any) -> str:
        return self.answers.key(*question, *SAMPLES.values())

    def check(self, expression: str, wide: bool, rtol: float | None, atol: float) -> None:
        """JAX may say something else outside of a compiled program."""
        ours = evaluated(expression, minijax)
        self.answers.check(
            self.key(expression, wide),
            lambda theirs: assert_agree(expression, ours, theirs, rtol, atol),
            lambda: self.at_once[expression, wide], lambda: evaluated(expression, jax))


def questions(item: Any) -> list[Question]:
    """What a test asks, if it does nothing but ask: it runs, and nobody answers."""
    asked: list[Question] = []
    doors = {name: functools.partial(lambda wide, expression, *_, **__: asked.append(
        (expression, wide)), wide) for name, wide in (("agrees_with_jax", False),
                                                      ("agrees_with_64_bits", True))}
    given = (item.callspec.params if hasattr(item, "callspec") else {}) | doors
    names = item._fixtureinfo.argnames
    if {*names} & {*doors} and {*names} <= {*given}:
        with contextlib.suppress(Exception):
            item.obj(**{name: given[name] for name in names})
    return asked


def at_once(expressions: list[str]) -> dict[str, Any]:
    """The values of those that can be in one program."""
    def program(samples: dict[str, Any]) -> dict[str, Any]:
        found = {}
        for expression in expressions:
            with contextlib.suppress(Exception):
                value = eval(expression, namespace(jax) | samples)
                leaves = jax.tree_util.tree_leaves(value)
                if leaves and all(isinstance(x, jax.Array) for x in leaves):
                    found[expression] = value
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return jax.jit(program)({name: namespace(jax)[name] for name in arrays(jax)})
        except Exception:  # one of them does not compile
            half = len(expressions) // 2
            return at_once(expressions[:half]) | at_once(expressions[half:]) if half else {}


ATOL = 2e-7


def assert_agree(expression: str, ours: Any, theirs: Any, rtol: float | None = None,
                 atol: float = ATOL) -> None:
    """The same; factors of a matrix need only agree in what they must satisfy."""
    must = invariants(expression, theirs)
    if must is None or isinstance(ours, Exception):
        assert_same(ours, theirs, rtol, atol)
        return
    assert_same(ours, theirs, close=lambda *_: None)
    for x, y in zip(invariants(expression, ours) or (), must, strict=True):
        bound = max(atol, 1e-5 * np.abs(np.nan_to_num(y)).max(initial=0))
        assert_close(x, y, max(rtol or 0, 1e-5), bound)


def assert_same(ours: Any, theirs: Any, rtol: float | None = None, atol: float = ATOL,
                close: Callable[..., None] | None = None) -> None:
    if isinstance(theirs, Exception | Refused) or isinstance(ours, Exception):
        kind = theirs.kinds[0] if isinstance(theirs, Refused) else type(theirs).__name__
        assert type(ours).__name__ == kind, (ours, theirs)
    elif isinstance(theirs, jax.Array | Array):
        assert isinstance(ours, minijax.numpy.ndarray)
        assert (str(ours.dtype), ours.weak_type) == (str(theirs.dtype), theirs.weak_type)
        assert ours.shape == theirs.shape
        (close or assert_close)(np.asarray(ours), np.asarray(theirs), rtol, atol)
    elif isinstance(theirs, (tuple, list)):
        assert (type(ours).__name__, len([*ours])) == (type(theirs).__name__, len([*theirs]))
        for x, y in zip(ours, theirs, strict=True):
            assert_same(x, y, rtol, atol, close)
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    else:
        assert ours == theirs or repr(ours) == repr(theirs)


def assert_close(x: np.ndarray, y: np.ndarray, rtol: float | None = None,
                 atol: float = ATOL) -> None:
    if x.dtype.kind in "biu":
        np.testing.assert_array_equal(x, y)
        return
    default = 3e-6 if x.dtype.itemsize >= 4 else 1e-2
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(x.astype(wide), y.astype(wide), rtol=rtol or default, atol=atol)


@pytest.fixture(scope="module")
def answers(request: pytest.FixtureRequest) -> Iterator[Answers]:
    recorded = Answers(request.path)
    yield recorded
    recorded.close()


@pytest.fixture
def jax_says(request: pytest.FixtureRequest, answers: Answers) -> Callable[..., Any]:
    """`jax_says(ask)` is `ask()`, or what that was here, in a file of this text."""
    count = itertools.count()
    return lambda ask, *how: answers.said(
        answers.key(request.node.name, next(count), answers.path.read_text()), ask, *how)


@pytest.fixture
def beside_jax(jax_says: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """`beside_jax(f)` is what `f(minijax)` gives, and what `f(jax)` gave in a file of this text."""
    return lambda f: (f(minijax), jax_says(lambda: f(jax), assert_whole))


@pytest.fixture(scope="module")
def oracle(request: pytest.FixtureRequest, answers: Answers) -> Oracle:
    namespace(minijax), namespace(jax)  # with 32 bits and fewer
    items = (item for item in request.session.items if item.path == request.path)
    return Oracle(items, answers)


@pytest.fixture
def agrees_with_64_bits(oracle: Oracle) -> Callable[..., None]:
    """The same where 64 bits are enabled; the samples still have 32 and fewer."""
    def check(expression: str, rtol: float | None = None, atol: float = ATOL) -> None:
        with minijax.enable_x64(True), jax.enable_x64(True):
            oracle.check(expression, True, rtol, atol)
    return check


@pytest.fixture
def agrees_with_jax(oracle: Oracle) -> Callable[..., None]:
    """Checks an expression: dtype first, then weak type, shape and value; or the error's class."""
    def check(expression: str, rtol: float | None = None, atol: float = ATOL) -> None:
        oracle.check(expression, minijax.config.jax_enable_x64, rtol, atol)
    return check
