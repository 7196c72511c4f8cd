"""The exercises of chapter 11, *Named axes and many devices*."""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import Hint, agree, exercise, expect, instead_of, near, shown, wanting

from .ways import of_dtype

CHAPTER = "11_named_axes"


def _batches() -> list[list[float]]:
    random = np.random.default_rng(0)
    return [[1.0, 2.0, 5.0], *(random.integers(-9, 9, n).astype(float).tolist() for n in (1, 4, 6))]


def _primitives(f: Callable, x: Any, name: str) -> set[str]:
    """The collectives of a function of one example, before any `vmap`."""
    seen: set[str] = set()

    def look(x: Any) -> Any:
        def names(jaxpr: Any) -> None:
            for eqn in jaxpr.eqns:
                seen.add(eqn.primitive.name)
                for value in eqn.params.values():
                    if hasattr(value, "eqns"):
                        names(value)
        names(jax.make_jaxpr(f)(x).jaxpr)
        return x
    jax.vmap(look, axis_name=name)(x)
    return seen


def _for_all(f: Callable, xs: list[float], name: str, also: str = "") -> tuple[str, Any]:
    """The inputs in words, and the results of a function of one example for all examples."""
    inputs = f"the examples {xs}{also}"
    with instead_of(NameError, "unbound axis name", f"the axis is called {name!r} here, and your "
                    "answer asks for another"):
        result = jax.vmap(f, axis_name=name)(jnp.array(xs))
    expect(np.shape(result) == (len(xs),), f"for {inputs} one number is expected for each, the "
           f"shape ({len(xs)},), and yours is {np.shape(result)}")
    return inputs, result


# ── times_the_sum ────────────────────────────────────────────────────────────────────────────

def grade_times_the_sum(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 3,
           f"three numbers are expected, one for each example, and yours is {answer!r}")
    expect(not near(answer, [1.0, 4.0, 9.0]), "that is each number times itself; the sum is over "
           "all examples")
    expect(not near(answer, [1.0, 3.0, 6.0]) and not near(answer, [1.0, 6.0, 18.0]),
           "each example gets the whole sum, not the sum so far")
    expect(not near(answer, [6.0, 6.0, 6.0]), "that is the sum, for each; what is x times that?")
    expect(near(answer, [6.0, 12.0, 18.0]), f"divided by the examples, yours is "
           f"{[round(float(a) / x, 3) for a, x in zip(answer, (1, 2, 3), strict=True)]}, which "
           "should be the sum of all three, three times")


exercise("times_the_sum", chapter=CHAPTER, grade=grade_times_the_sum, solution="[6.0, 12.0, 18.0]",
         wrong=[("[1.0, 4.0, 9.0]", "times itself"), ("[1.0, 6.0, 18.0]", "not the sum so far"),
                ("36.0", "three numbers"), ("[6.0, 6.0, 6.0]", "what is x times that"),
                ("[7.0, 8.0, 9.0]", "divided by the examples")])


# ── standardised ─────────────────────────────────────────────────────────────────────────────

def grade_standardised(f: Callable) -> None:
    for xs in ([1.0, 2.0, 5.0], [0.0, 10.0], [3.0, -1.0, 4.0, 1.0, -5.0], *_batches()[2:],
               [1001.0, 1002.0, 1006.0], [0.001, 0.002, 0.006]):
        mean, off = np.mean(xs), np.std(xs)
        far = np.array(xs) - mean
        inputs, result = _for_all(f, xs, "batch")
        agree(inputs, result, far / off,
              (near(result, 0 * far), "inside the function `x` is a single number, which is its "
               "own mean: `jnp.mean` cannot see the others"),
              (near(result, far / off**2), "that is measured in squared deviations: the root is "
               "missing"),
              (near(result, far / off / len(xs)**0.5), "the mean of the squared distances is "
               "expected, not their sum"),
              (near(result, far / np.mean(abs(far))), "that is in units of the mean distance; "
               "the squares are missing"),
              (near(result, far), "these are the distances from the mean; divide them"),
              (xs[0] > 1000, "right near 0; but here the squares of the numbers have a million "
               "times the size of their variance, and their difference is all rounding: square the "
               "distances"),
              (max(xs) < 0.01, "right for larger numbers; is something added below the root? These "
               "examples have a variance of a few millionths"),
              f"the mean is {mean:g}, and the standard deviation {off:.5g}")


_STANDARDISED = """
def standardised(x):
    far = x - {mean}
    return {out}
"""


def _standard_text(mean: str = 'lax.pmean(x, "batch")',
                   out: str = 'far / jnp.sqrt(lax.pmean(far ** 2, "batch"))') -> str:
    return _STANDARDISED.format(mean=mean, out=out)


exercise(
    "standardised", chapter=CHAPTER, grade=grade_standardised, solution=_standard_text(),
    wrong=[("def standardised(x):\n    d = x - lax.pmean(x, \"batch\")\n"
            "    return d / jnp.sqrt(lax.pmean(d * d, \"batch\") + 1e-5)", "added below the root"),
           (_standard_text(mean='lax.psum(x, "batch")'), "the mean is 2.66"),
           (_standard_text(out='far / lax.pmean(far ** 2, "batch")'), "the root is missing"),
           (_standard_text(out='far / jnp.sqrt(lax.psum(far ** 2, "batch"))'), "not their sum"),
           (_standard_text(out='far / lax.pmean(jnp.abs(far), "batch")'), "squares are missing"),
           ("def standardised(x):\n    return (x - jnp.mean(x)) / (jnp.std(x) + 1.0)",
            "is its own mean"),
           (_standard_text(out='far / jnp.sqrt(lax.pmean(far ** 2, "i"))'), "asks for another"),
           ('def standardised(x):\n    m = lax.pmean(x, "batch")\n'
            '    return (x - m) / jnp.sqrt(lax.pmean(x * x, "batch") - m * m)',
            "square the distances")],
    hints=["`lax.pmean` twice: for the mean, and for the mean of the squared distances"])


# ── pmean ────────────────────────────────────────────────────────────────────────────────────

def grade_pmean(pmean: Callable) -> None:
    from minijax.notebook.library import library
    mini = library.module
    for xs in _batches():
        inputs = f"pmean(x, 'i') and the examples {xs}"
        with (instead_of(TypeError, "len()", f"for {inputs}, inside the function x is a single "
                         "number, which has no length: how many examples are there?"),
              instead_of(TypeError, "unsized", f"for {inputs}, inside the function x is a "
                         "single number, which has no length: how many examples are there?")):
            result = mini.vmap(lambda x: pmean(x, "i") + 0.0 * x, axis_name="i")(np.array(xs))
        agree(inputs, result, np.full(len(xs), np.mean(xs)),
              (near(result, np.full(len(xs), np.sum(xs))), "that is the sum"),
              (near(result, xs), "that is each example itself"),
              (near(result, np.full(len(xs), np.sum(xs) / 3)), "there are not always 3 examples"),
              (near(result, np.ones(len(xs))), "divide by how many there are: if each gives a 1 "
               "in place of x, what is their sum?"), what="the mean")
    inputs = "two axes, the outer one called 'out', and [1, 3, 8] times [1, 2]"
    with instead_of(NameError, "unbound axis name", f"for {inputs}, pmean(x, 'out') asks for an "
                    "axis of another name"):
        result = mini.vmap(lambda x: mini.vmap(lambda y: pmean(x * y, "out"))(np.array([1.0, 2.0])),
                          axis_name="out")(np.array([1.0, 3.0, 8.0]))
    agree(inputs, result, [[4.0, 8.0]] * 3, what="the mean over 'out'")
    slope = mini.grad(lambda xs: mini.sum(mini.vmap(
        lambda x: x * pmean(x, "i"), axis_name="i")(xs)))(np.array([1.0, 2.0, 5.0]))
    agree("the sum of x * pmean(x, 'i') at [1, 2, 5]", slope, np.full(3, 16 / 3),
          what="the gradient")


exercise(
    "pmean", chapter=CHAPTER, grade=grade_pmean, given="%mini begin 11",
    solution="def pmean(x, axis_name):\n    return psum(x, axis_name) / psum(1.0, axis_name)",
    wrong=[("def pmean(x, axis_name):\n    return psum(x, axis_name)", "that is the sum"),
           ("def pmean(x, axis_name):\n    return psum(x, axis_name) / psum(x, axis_name)",
            "each gives a 1"),
           ("def pmean(x, axis_name):\n    return psum(x, 'i') / psum(1.0, 'i')",
            "of another name"),
           ("def pmean(x, axis_name):\n    return psum(x, axis_name) / 3.0", "not always 3"),
           ("def pmean(x, axis_name):\n    return psum(x, axis_name) / len(x)",
            "which has no length")],
    hints=["the sum is at hand; and how many examples are there?"])


# ── from_example ─────────────────────────────────────────────────────────────────────────────

def grade_from_example(f: Callable) -> None:
    for xs in (*_batches(), [4.0, 4.0, -1.0]):
        n = len(xs)
        for k in range(n):
            inputs, result = _for_all(functools.partial(f, k=k), xs, "i", f" and k = {k}")
            others = np.sum(xs) - xs[k]
            agree(inputs, result, [xs[k]] * n,
                  (near(result, [xs[k] / n] * n), "that is its share of a mean"),
                  (near(result, [np.sum(xs)] * n), "that is the sum of all of them: the others "
                   "should add nothing"),
                  (near(result, [others] * n), "that is the sum of all *others*"),
                  (near(result, [max(xs[k], 0)] * n), "the zeros of the others are larger than "
                   "a negative number: add up in place of comparing"),
                  (near(result, [xs[k] if j == k else 0 for j in range(n)]), "example k has it, "
                   "and the others were not told"),
                  (near(result, np.sum(np.equal(xs, k)) * float(k) * np.ones(n)), "k is a place, "
                   "and no value: which place has an example?"))
    names = _primitives(lambda x: f(x, 0), jnp.arange(3.0), "i")
    expect("psum" in names, "the values are right, but this exercise is about `lax.psum`, and "
           f"yours uses {sorted(names & {'all_gather', 'pmax', 'pmin', 'ppermute'})}")
    vectors = jnp.arange(6).reshape(3, 2)
    result = jax.vmap(functools.partial(f, k=1), axis_name="i")(vectors)
    inputs = f"the vectors {shown(vectors)} and k = 1"
    agree(inputs, result, [[2, 3]] * 3, "an example may be a vector, too: choose, and add up, "
          "element by element")
    of_dtype(inputs, result, np.int32, "a value is passed on as it is")
    inputs, result = _for_all(functools.partial(f, k=0), [1.0, np.inf], "i", " and k = 0")
    agree(inputs, result, [1.0, 1.0], "infinity times 0 is nan: choose by `jnp.where`, in place of "
          "multiplying")


_FROM = """
def from_example(x, k):
    return lax.{collective}(jnp.where({test}, x, {other}), "i")
"""


def _from_text(collective: str = "psum", test: str = 'lax.axis_index("i") == k',
               other: str = "0") -> str:
    return _FROM.format(collective=collective, test=test, other=other)


exercise(
    "from_example", chapter=CHAPTER, grade=grade_from_example, solution=_from_text(),
    wrong=[(_from_text(other="x"), "should add nothing"),
           ('def from_example(x, k):\n    return lax.psum(x * (lax.axis_index("i") == k), "i")',
            "is nan: choose by"),
           ('def from_example(x, k):\n    return lax.psum(jnp.where(lax.axis_index("i") == k, '
            'jnp.sum(x), 0), "i")', "element by element"),
           ('def from_example(x, k):\n    return lax.psum(jnp.where(lax.axis_index("i") == k, x, '
            '0.0), "i")', "as it is"),
           (_from_text(collective="pmean"), "share of a mean"),
           (_from_text(collective="pmax"), "zeros of the others"),
           (_from_text(test="x == k"), "which place has an example"),
           (_from_text(test='lax.axis_index("i") != k'), "all *others*"),
           ('def from_example(x, k):\n    return jnp.where(lax.axis_index("i") == k, x, 0)',
            "were not told"),
           ('def from_example(x, k):\n    return lax.all_gather(x, "i")[k]', "about `lax.psum`")],
    hints=["a sum in which all terms but one are zero"])


# ── numbers_sent ─────────────────────────────────────────────────────────────────────────────

def grade_numbers_sent(answer: Any) -> None:
    expect(isinstance(answer, int), f"a whole number is expected, and yours is {answer!r}")
    expect(answer != 2048, "the vector has a gradient, too")
    expect(answer not in (1000 * 2080, 8000 * 2080), "a device adds up the gradients of its own "
           "examples before it sends anything")
    expect(answer != 8 * 2080, "that is what all of them send together")
    expect(answer != 2080 // 8, "each device sends the whole of its gradient, not a share")
    expect(answer not in (1000, 8000, 64000), "it is not the examples that are sent")
    expect(answer == 64 * 32 + 32, f"not {answer}: the gradient has one number for each parameter; "
           "how many are there?")


exercise("numbers_sent", chapter=CHAPTER, grade=grade_numbers_sent, solution="2080",
         wrong=[("2048", "the vector"), ("2_080_000", "gradients of its own"),
                ("1000", "not the examples"), ("260", "not a share"),
                ("16640", "all of them"), ("96", "how many are")])


# ── parallel_gradient ────────────────────────────────────────────────────────────────────────

def grade_parallel_gradient(parallel_gradient: Callable) -> None:
    seen: list[tuple] = []

    def loss(w: Any, xs: Any) -> Any:
        seen.append(np.shape(xs))
        return jnp.mean(jnp.sin(xs @ w) ** 2)

    random = np.random.default_rng(0)
    for devices, examples in ((3, 5), (1, 4), (4, 2)):
        w = jnp.asarray(random.normal(size=2).round(2))
        xs = jnp.asarray(random.normal(size=(devices, examples, 2)).round(2))
        inputs = f"{devices} devices with {examples} examples each"
        with (instead_of(ValueError, "out_axes", f"for {inputs} the result was "
                         "not known to be the same for all devices, so `out_axes=None` cannot "
                         "take it: where do they exchange their gradients?"),
              instead_of(ValueError, "inconsistent sizes", f"for {inputs}, each device has all of "
                         "w, and a row of xs: say so with `in_axes`"),
              mock.patch.object(jax, "vmap", wraps=jax.vmap) as vmap):
            result = parallel_gradient(loss)(w, xs)
        expect((examples, 2) in seen, f"for {inputs} the loss of one device is that of an array of "
               f"shape {(examples, 2)}, and yours is given {seen[-1:]}: which axis of xs counts "
               "the devices?")
        named = any(call.kwargs.get("axis_name") is not None for call in vmap.call_args_list)
        expected = jax.grad(loss)(w, xs.reshape(-1, 2))
        expect(np.shape(result) == (2,), f"for {inputs} the gradient is expected once, with the "
               f"shape (2,) of w, and yours has the shape {np.shape(result)}")
        agree(inputs, result, expected,
              (devices > 1 and near(result, devices * expected), "that is the sum of all devices' "
               "gradients; the loss is a mean"),
              (near(result, jax.grad(loss)(w, xs[0])), "that is the gradient of the first device"),
              what="the gradient")
        expect(named, "the numbers are right; but each device should compute its own gradient, and "
               "exchange it along an axis with a name: `jax.vmap(…, axis_name=…)`")


_PARALLEL = """
def parallel_gradient(loss):
    def one(w, xs):
        return {inside}
    return {map}
"""


def _parallel_text(inside: str = 'lax.pmean(jax.grad(loss)(w, xs), "devices")',
                   axes: str = "(None, 0)", out: str = "None", map: str = "") -> str:
    return _PARALLEL.format(inside=inside, map=map or f"jax.vmap(one, in_axes={axes}, "
                            f'out_axes={out}, axis_name="devices")')


exercise(
    "parallel_gradient", chapter=CHAPTER, grade=grade_parallel_gradient, solution=_parallel_text(),
    wrong=[(_parallel_text(inside='lax.psum(jax.grad(loss)(w, xs), "devices")'),
            "the loss is a mean"),
           (_parallel_text(out="0"), "is expected once"),
           (_parallel_text(inside="jax.grad(loss)(w, xs)"), "exchange their gradients"),
           (_parallel_text(map="lambda w, xs: jax.grad(loss)(w, xs[0])"), "of the first device"),
           (_parallel_text(axes="0"), "say so with `in_axes`"),
           (_parallel_text(axes="(None, 1)"), "counts the devices"),
           ("def parallel_gradient(loss):\n    return jax.grad(lambda w, xs: jnp.mean("
            "jax.vmap(loss, in_axes=(None, 0))(w, xs)))", "an axis with a name")],
    hints=["first the gradient of one device, then a collective"])


# ── place ────────────────────────────────────────────────────────────────────────────────────

def grade_place(place: Callable) -> None:
    for xs in ([5.0, 1.0, 2.0], *_batches(), [2.0, 2.0, 1.0], [0.5, 0.25, -0.5, 0.75],
               [1.0, 1.0001, 0.9999]):
        n = len(xs)
        inputs, result = _for_all(place, xs, "i")
        agree(inputs, result, [sum(y < x for y in xs) for x in xs],
              (near(result, np.arange(n)), "that is where the example stands, not which of all it "
               "is by size"),
              (near(result, np.zeros(n)), "`x` is a single number here, which is compared with "
               "itself alone"),
              (near(result, [sum(y > x for y in xs) for x in xs]), "those are the larger ones"),
              (near(result, [sum(y <= x for y in xs) for x in xs]), "an example is not smaller "
               "than itself, nor than its equal"))


exercise(
    "place", chapter=CHAPTER, grade=grade_place,
    solution='def place(x):\n    return jnp.sum(lax.all_gather(x, "i") < x)',
    wrong=[('def place(x):\n    return jnp.sum(lax.all_gather(x, "i") <= x)', "nor than its equal"),
           ('def place(x):\n    return lax.all_gather(x, "i") < x', "one number is expected"),
           ('def place(x):\n    return jnp.sum(lax.all_gather(x, "i") <= x - 1)',
            "for the examples [0.5, 0.25, -0.5, 0.75]"),
           ('def place(x):\n    return jnp.sum(lax.all_gather(x, "i") < x - 0.01)',
            "for the examples [1.0, 1.0001, 0.9999]"),
           ('def place(x):\n    return lax.axis_index("i")', "where the example stands"),
           ('def place(x):\n    return jnp.sum(x < x)', "itself alone"),
           ('def place(x):\n    return jnp.sum(lax.all_gather(x, "i") > x)', "the larger ones")],
    hints=["compare all values with your own, and count"])


# ── ring_sum ─────────────────────────────────────────────────────────────────────────────────

def grade_ring_sum(ring_sum: Callable) -> None:
    for xs in ([1.0, 2.0, 5.0], [1.0, 10.0, 100.0, 1000.0], *_batches()[1:]):
        n = len(xs)
        with instead_of(ValueError, "ppermute", f"for {n} examples the pairs of the ring name a "
                        f"device that is not there: they are numbered 0 to {n - 1}, and behind "
                        "the last comes the first again"):
            inputs, result = _for_all(functools.partial(ring_sum, count=n), xs, "i")
        agree(inputs, result, [np.sum(xs)] * n,
              (near(result, np.sum(xs) + np.array(xs)), "each has counted its own number twice: "
               "after how many rounds does it come back?"),
              (near(result, np.sum(xs) - np.array(xs)), "its own number is missing"),
              (near(result, np.array(xs) + np.roll(xs, 1)), "only the neighbour's number is in "
               "it: more rounds are needed"),
              (near(result, xs), "nothing has been added"),
              (n != 3, f"right for 3 devices, and here are {n}: is the ring written for 3, or its "
               "rounds?"),
              (near(result, np.cumsum(xs)), "these are sums from the first on: behind the last "
               "device comes the first again"),
              "what is passed on in each round: what came in the last one, or the sum so far?")
    names = _primitives(lambda x: ring_sum(x, 3), jnp.arange(3.0), "i")
    for name in sorted(names & {"psum", "all_gather", "all_to_all"}):
        expect(False, f"the values are right, but no `{name}` here: each device speaks only to the "
               "next")
    wires: set[tuple[int, int]] = set()

    def watched(x: Any, axis_name: Any, perm: Any) -> Any:
        wires.update(perm)
        return sent(x, axis_name, perm)
    sent = jax.lax.ppermute
    with mock.patch.object(jax.lax, "ppermute", watched):
        _for_all(functools.partial(ring_sum, count=5), [1.0, 2.0, 3.0, 4.0, 5.0], "i")
    expect({(b - a) % 5 for a, b in wires} in ({1}, {4}, set()),
           f"the values are right, but of 5 devices number 0 sends to "
           f"{sorted(b for a, b in wires if a == 0)}: in a ring it can send only to the next")


_RING = """
def ring_sum(x, count):
    ring = [(k, {to}) for k in range(count)]
    total = {start}
    for _ in range({rounds}):
        x = lax.ppermute({sent}, "i", ring)
        total = total + x
    return total
"""


def _ring_text(to: str = "(k + 1) % count", start: str = "x", rounds: str = "count - 1",
               sent: str = "x") -> str:
    return _RING.format(to=to, start=start, rounds=rounds, sent=sent)


exercise(
    "ring_sum", chapter=CHAPTER, grade=grade_ring_sum, solution=_ring_text(),
    wrong=[("def ring_sum(x, count):\n    total = passed = x\n    for _ in range(count - 1):\n"
            "        passed = lax.ppermute(passed, \"i\", [(0, 1), (1, 2), (2, 0)])\n"
            "        total = total + passed\n    return total", "is the ring written for 3"),
           (_ring_text(rounds="count"), "its own number twice"),
           (_ring_text(sent="total"), "or the sum so far"),
           (_ring_text(to="k + 1"), "comes the first again"),
           (_ring_text(rounds="1"), "more rounds are needed"),
           (_ring_text().replace("range(count)]", "range(count - 1)]"), "sums from the first on"),
           (_ring_text(start="0.0"), "its own number is missing"),
           ('def ring_sum(x, count):\n    return lax.psum(x, "i")', "no `psum` here"),
           ('def ring_sum(x, count):\n    return jnp.sum(lax.all_gather(x, "i"), axis=0)',
            "no `all_gather` here"),
           ('def ring_sum(x, count):\n    return x + sum(lax.ppermute(x, "i", [(j, (j + k) '
            '% count) for j in range(count)]) for k in range(1, count))', "only to the next")],
    right=['def ring_sum(x, count):\n    total = x\n    for _ in range(count - 1):\n'
           '        total = x + lax.ppermute(total, axis_name="i", perm=[(j, (j - 1) % count) '
           'for j in range(count)])\n    return total'],
    hints=["two names: what is passed on, and the sum"])


# ── allreduce ────────────────────────────────────────────────────────────────────────────────

class _World:
    """A process among pretended ones, each of which is a thread."""

    def __init__(self, rank: int, boxes: dict[tuple[int, int], queue.Queue]):
        self.rank, self.size, self.boxes = rank, round(len(boxes) ** 0.5), boxes
        self.sent = 0

    def sendrecv(self, x: Any, dest: int, sendtag: int = 0, recvbuf: Any = None,
                 source: int | None = None, **_: Any) -> Any:
        source = dest if source is None else source
        expect(dest in range(self.size) and source in range(self.size), f"there is no process "
               f"{dest if dest not in range(self.size) else source}: of {self.size}, the last has "
               f"the rank {self.size - 1}")
        self.sent += 1
        self.boxes[self.rank, dest].put(np.array(x))
        try:
            return self.boxes[source, self.rank].get(timeout=1.0)
        except queue.Empty:
            raise Hint(f"of {self.size} processes, {self.rank} waits for a message from {source}, "
                       "which sends it none: both must choose each other") from None

    def __getattr__(self, name: str) -> Any:
        raise Hint(f"`world.{name}` is what you are to write, or is not needed: by hand there are "
                   "`rank`, `size` and `sendrecv`")


def _on_worlds(f: Callable, count: int) -> tuple[list, int]:
    """The results of a function in each of several pretended processes, and the most messages."""
    boxes: dict[tuple[int, int], queue.Queue] = {
        (a, b): queue.Queue() for a in range(count) for b in range(count)}
    worlds, results, raised = [_World(rank, boxes) for rank in range(count)], {}, {}

    def of(world: _World) -> None:
        try:
            results[world.rank] = f(world)
        except Exception as error:
            raised[world.rank] = error
    threads = [threading.Thread(target=of, args=(world,), daemon=True) for world in worlds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise next(iter(raised.values()))  # the first; others may wait for that process
    return [results[rank] for rank in range(count)], max(world.sent for world in worlds)


def grade_allreduce(allreduce: Callable) -> None:
    for count in (1, 2, 4, 8, 16):
        xs = np.array([[10.0 ** rank, rank * (rank + 3) % 11 - 5.0] for rank in range(count)])
        result, sent = _on_worlds(
            lambda world, xs=xs: allreduce(xs[world.rank].copy(), world), count)
        pairs = [xs[rank] + xs[rank ^ 1] for rank in range(count)] if count > 1 else xs
        agree(f"{count} processes with {shown(xs[:, 1])}", np.array(result)[:, 1],
              np.full(count, xs[:, 1].sum()),
              (count > 2 and near(result, pairs), "that is the sum of two: one round is not "
               "enough"),
              (count > 8, "right for 8: the number of rounds depends on that of the processes"),
              (count > 1 and near(result, xs[::-1]), "what came has taken the place of what was "
               "there: add them"),
              "in round k the other process is the one whose rank differs in bit k; what is sent "
              "is the sum so far")
        rounds = count.bit_length() - 1
        expect(sent <= rounds, f"the sums are right, but with {count} processes each sends {sent} "
               f"messages, and {rounds} are enough")


_ALLREDUCE = """
def allreduce(x, world):
    step = 1
    while step < {end}:
        other = {other}
        {add}
        step *= 2
    return x
"""


def _allreduce_text(end: str = "world.size", other: str = "world.rank ^ step",
                    add: str = "x = x + world.sendrecv(x, dest=other, source=other)") -> str:
    return _ALLREDUCE.format(end=end, other=other, add=add)


exercise(
    "allreduce", chapter=CHAPTER, grade=grade_allreduce, solution=_allreduce_text(),
    wrong=[(_allreduce_text(end="min(2, world.size)"), "one round is not enough"),
           (_allreduce_text(end="min(8, world.size)"), "depends on that of the processes"),
           (_allreduce_text(add="x = world.sendrecv(x, dest=other, source=other)"), "add them"),
           (_allreduce_text(other="world.rank + step"), "there is no process"),
           (_allreduce_text(other="world.size - 1 - world.rank"), "differs in bit k"),
           (_allreduce_text(other="(world.rank + step) % world.size"), "choose each other"),
           ("def allreduce(x, world):\n    return world.allreduce(x)", "by hand"),
           ("def allreduce(x, world):\n    total = x\n    for k in range(1, world.size):\n"
            "        other = world.rank ^ k\n"
            "        total = total + world.sendrecv(x, dest=other, source=other)\n"
            "    return total", "2 are enough")],
    right=["def allreduce(x, world):\n    for k in range(world.size.bit_length() - 1):\n"
           "        other = world.rank + 2**k if world.rank // 2**k % 2 == 0 else "
           "world.rank - 2**k\n        x = x + world.sendrecv(x, dest=other)\n    return x",
           _allreduce_text(add="x += world.sendrecv(x, dest=other, source=other)")],
    hints=["`world.rank ^ 1` is the rank with its last bit changed: 1 for 0, and 0 for 1"])


# ── bytes_sent ───────────────────────────────────────────────────────────────────────────────

def grade_bytes_sent(answer: Any) -> None:
    expect(isinstance(answer, int | float), f"a number is expected, and yours is {answer!r}")
    expect(not near(answer, 4 * 4810), "that is all of the gradient, once; in a ring each sends "
           "parts of it, 7 times, and 7 times again")
    expect(not near(answer, 7 * 4810 / 8 * 4), "that is the first half, after which each process "
           "has the sum of one part")
    expect(not near(answer, 14 * 4810 / 8), "those are numbers; each has four bytes")
    expect(not near(answer, 14 * 4810 * 4), "a message has one part of eight, and not all")
    expect(not near(answer, 8 * 14 * 4810 / 8 * 4), "that is what all of them send together")
    expect(not near(answer, 16 * 4810 / 8 * 4), "in 7 rounds a part has been at all 8")
    expect(near(answer, 33670), f"not {answer}: two times 7 messages, each of an eighth of the "
           "gradient")


exercise("bytes_sent", chapter=CHAPTER, grade=grade_bytes_sent, solution="2 * 7 * 4810 // 8 * 4",
         wrong=[("4 * 4810", "parts of it"), ("7 * 4810 / 8 * 4", "the first half"),
                ("14 * 4810 / 8", "four bytes"), ("14 * 4810 * 4", "one part of eight"),
                ("16 * 4810 / 8 * 4", "has been at all 8"), ("1000", "two times 7")],
         right=["33670", "33670.0"])


# ── ring_seconds ─────────────────────────────────────────────────────────────────────────────

def grade_ring_seconds(ring_seconds: Callable) -> None:
    from minijax.placement.communication_costs import Machine, Transfer, in_ring
    for p, n, latency, bandwidth in ((4, 1000, 0.5, 10.0), (8, 4096, 2.0, 1e3), (2, 8, 1.0, 1.0),
                                     (3, 100, 0.5, 1.0), (3, 0, 1.0, 1.0), (1, 8, 1.0, 1.0),
                                     (4096, 1 << 20, 5e-6, 1e10)):
        machine = Machine(latency, bandwidth, 1.0)
        expected = machine.seconds(in_ring(Transfer("reduce", p, n, 1, "")))
        result, part = ring_seconds(p, n, latency, bandwidth), n / p / bandwidth
        agree(f"p = {p}, n = {n}, latency = {latency}, bandwidth = {bandwidth}", result, expected,
              (near(result, expected / 2), "after p - 1 rounds each process has the sum of one "
               "part only: as many more bring it to all"),
              (near(result, 2 * p * (latency + part)), "a part that starts at one process has been "
               "at all of them after p - 1 rounds"),
              (near(result, (p - 1) * (latency + n / bandwidth)), "a message has one part of p, "
               "n / p bytes, and there are twice as many"),
              (near(result, 2 * (p - 1) * (latency + n / bandwidth)), "a message has one part of "
               "p, n / p bytes"),
              (near(result, 2 * (p - 1) * (latency + n // p / bandwidth)), "the share n / p is not "
               "rounded here"),
              (near(result, latency + 2 * (p - 1) * part), "every message takes the latency, not "
               "the first alone"),
              (near(result, 2 * (p - 1) * (latency + n / p * bandwidth)), "bandwidth is in bytes "
               "a second: the larger, the shorter"),
              what="seconds")


_SECONDS = """
def ring_seconds(p, n, latency, bandwidth):
    return {rounds} * ({message})
"""


def _seconds_text(rounds: str = "2 * (p - 1)", message: str = "latency + n / p / bandwidth") -> str:
    return _SECONDS.format(rounds=rounds, message=message)


exercise(
    "ring_seconds", chapter=CHAPTER, grade=grade_ring_seconds, solution=_seconds_text(),
    wrong=[(_seconds_text(rounds="(p - 1)"), "one part only"),
           (_seconds_text(rounds="2 * p"), "after p - 1 rounds"),
           (_seconds_text(message="latency + n / bandwidth"), "n / p bytes"),
           (_seconds_text(message="latency + n // p / bandwidth"), "is not rounded"),
           (_seconds_text(message="latency + n / p * bandwidth"), "the larger, the shorter"),
           ("def ring_seconds(p, n, latency, bandwidth):\n"
            "    return latency + 2 * (p - 1) * n / p / bandwidth", "every message")],
    hints=["how many messages does each process send, and how large is one?"])


# ── by_level ──────────────────────────────────────────────────────────────────────────────────

def grade_by_level(by_level: Callable) -> None:
    from minijax.notebook.library import library
    mini, heard = library.module, list[list]()
    x, ones = np.array([0.5, 1.0, 2.0]), np.ones(3)

    def wave(x: Any) -> Any:
        return mini.sin(x) * x

    def swing(f: Callable) -> Callable:
        return lambda x: mini.jvp(f, (x,), (ones,))[1]

    def slope(f: Callable) -> Callable:
        return mini.grad(lambda x: mini.sum(f(x)))

    def table(of: Callable, what: str) -> list:
        heard.clear()
        result, expected = by_level(of, heard.append)(x), of(x)
        expect(not isinstance(result, mini.Tracer), "the result is still a tracer: take its value")
        agree(what, result, expected, "the function gives what f gives", what="the result")
        expect(len(heard) == 1, f"`tell` should be called once, and you call it {len(heard)} times")
        expect(isinstance(heard[0], list) and all(np.shape(row) == (2,) for row in heard[0]),
               f"`tell` is given a list of pairs; yours is {heard[0]!r}")
        return [(str(name), int(count)) for name, count in heard[0]]

    rows = table(wave, "sin(x) * x")
    expect([count for _, count in rows] == [2], "sin(x) * x has two operations, on one level; your "
           f"table is {rows}")
    for of, what, own, kind, inside in (
            (swing(wave), "its jvp", 7, "JVPTrace", 2),
            (mini.vmap(wave), "its vmap", 2, "BatchTrace", 2),
            (slope(wave), "its gradient", 8, "JVPTrace", 3),
            (mini.jit(wave), "a jit of it", 1, "DynamicJaxprTrace", 2)):
        rows = table(of, what)
        expect(len(rows) > 1, f"in {what} a level is open inside yours; your table is {rows}")
        expect(kind not in rows[0][0], f"from the outside in: your own level first, then {kind}")
        expect(rows[0][1] == own, f"for {what}, {own} operations come to your level; your table is "
               f"{rows}")
        expect((kind, inside) in rows, f"for {what}, a {kind} interprets {inside} operations; your "
               f"table is {rows}")
    for around, what in ((swing, "jvp"), (mini.vmap, "vmap"), (slope, "grad"), (mini.jit, "jit")):
        heard.clear()
        agree(f"{what} of it", around(by_level(wave, heard.append))(x), around(wave)(x),
              what="the result")
        expect([count for _, count in heard[0]] == [2], f"under {what}, sin(x) * x still has two "
               f"operations; your table is {heard[0]}")
    heard.clear()
    inputs, expected = "f(x, y) = (sin(x), x * y), at x and 2 x,", [np.sin(x), 2 * x * x]
    with wanting(inputs, expected, "f may have several arguments, and several results"):
        results = by_level(lambda x, y: (mini.sin(x), x * y), heard.append)(x, 2 * x)
        agree(inputs, results, expected, "f may have several arguments, and several results")
    expect([count for _, count in heard[0]] == [2], f"for {inputs} the table has one level of two "
           f"operations; yours is {heard[0]}")


_BY_LEVEL = """
class CountTrace(RuleTrace):
    \"\"\"Has everything done by its parent, and is told what the levels inside interpret.\"\"\"

    def __init__(self, parent):
        super().__init__(parent)
        self.names = {{}}

    def join(self, x):
        return Tracer(self, get_aval(x), value=x)

    def value(self, x):
        return x.value if self.owns(x) else x

    def process_primitive(self, primitive, args, params):
        outs = primitive.bind(*map(self.value, args), **params)
        return list(map(self.join, outs))


def outwards(trace):
    \"\"\"A trace, its parent, and so on to the one that evaluates.\"\"\"
    while trace is not None:
        yield trace
        trace = trace.parent


def telling(process_primitive):
    \"\"\"The method of a trace that interprets; it first tells all levels around that count.\"\"\"
    def method(self, primitive, args, params):
        for outer in outwards(self):
            if isinstance(outer, CountTrace):
                outer.names.setdefault(self, []).append(primitive.name)
        return process_primitive(self, primitive, args, params)
    return method


for kind in {kinds}:
    kind.process_primitive = telling(kind.process_primitive)


def by_level(f, tell):
    def run(*args):
        flat, in_tree = tree_flatten(args)
        g, out_tree = flat_function(f, in_tree)
        trace = CountTrace(current_trace)
        outs = run_with(trace, g, *map(trace.join, flat))
        levels = sorted(trace.names, key=lambda level: {order})
        tell([(type(level).__name__, len(trace.names[level])) for level in levels])
        return tree_unflatten(out_tree(), {outs})
    return run
"""


def _by_level_text(written: str = ", DynamicJaxprTrace",
                  order: str = "len([*outwards(level)])",
                  outs: str = "list(map(trace.value, outs))") -> str:
    kinds = f"(CountTrace, JVPTrace, BatchTrace{written})"
    return _BY_LEVEL.format(kinds=kinds, order=order, outs=outs)


exercise(
    "by_level", chapter=CHAPTER, grade=grade_by_level, given="%mini begin 11",
    solution=_by_level_text(),
    wrong=[(_by_level_text(outs="outs"), "still a tracer"),
           (_by_level_text().replace("map(trace.join, flat)", "map(trace.join, flat[:1])"),
            "several arguments"),
           (_by_level_text().replace("tree_unflatten(out_tree(), list(map(trace.value, outs)))",
                                     "trace.value(outs[0])"), "several results"),
           (_by_level_text(order="-len([*outwards(level)])"), "from the outside in"),
           (_by_level_text(written=""), "a level is open inside"),
           (_by_level_text(written=", DynamicJaxprTrace, DynamicJaxprTrace"),
            "a DynamicJaxprTrace interprets 2"),
           (_by_level_text().replace("        tell([", "        tell([]); tell(["), "once")],
    hints=["begin with the trace of your own of chapter 02, and join and split as `jvp` does",
           "every trace interprets in `process_primitive`; a SplitTrace in that of its base"])


# ── cumsum ───────────────────────────────────────────────────────────────────────────────────

def grade_cumsum(cumsum: Callable) -> None:
    from minijax.notebook.library import library
    mini = library.module
    random = np.random.default_rng(0)
    row, table, way = (random.normal(size=s).round(1) for s in (4, (2, 4), 4))
    agree(f"the vector {shown(row)}", cumsum(row), np.cumsum(row))
    agree(f"the matrix {shown(table)}", cumsum(table), np.cumsum(table, -1),
          "the sums run along the last axis")
    names = [eqn.primitive.name for eqn in mini.make_jaxpr(cumsum)(row).eqns]
    expect(names == ["cumsum"], f"one operation named cumsum is expected; yours are {names}")
    [eqn] = mini.make_jaxpr(cumsum)(row).eqns
    expect(getattr(eqn.primitive, "abstract_eval", None) is not None, "it has no `abstract_eval`: "
           "without that rule, each tracing runs the operation on an example")
    [result] = mini.make_jaxpr(cumsum)(table).out_avals
    expect(result == mini.get_aval(table), f"the type of the result is {mini.get_aval(table)}, "
           f"that of the argument; yours is {result}")
    [result] = mini.make_jaxpr(cumsum)(row.astype(np.float32)).out_avals
    expect(result.dtype == np.float32, f"the type of the result is that of the argument, here of "
           f"float32; yours is {result}")
    agree(f"the tangent {shown(way)}", mini.jvp(cumsum, (row,), (way,))[1], np.cumsum(way),
          "running sums are linear: the tangent goes the way of the value",
          what="the tangent of the result")
    gradient = mini.grad(lambda x: mini.sum(cumsum(x) * way))
    back = np.cumsum(way[::-1])[::-1]
    inputs = f"the sum of cumsum(x) * {shown(way)}"
    result = gradient(row)
    agree(inputs, result, back, (near(result, np.cumsum(way)), "the transpose is again a running "
          "sum, but from the other end: which results is the first number in, and which the last?"),
          what="the gradient")
    weights = random.normal(size=(3, 3)).round(1)
    agree(f"the sum of cumsum(x) * {shown(weights)}, for a matrix x,",
          mini.grad(lambda x: mini.sum(cumsum(x) * weights))(1.0 * weights),
          np.cumsum(weights[:, ::-1], -1)[:, ::-1], "right for vectors: the way back goes along "
          "the last axis, too", what="the gradient")
    for axis in (0, 1):
        result = mini.vmap(cumsum, in_axes=axis)(table)
        agree(f"the matrix {shown(table)} under vmap with in_axes={axis}", result,
              np.cumsum(np.moveaxis(table, axis, 0), -1))
    squares = mini.grad(lambda x: mini.sum(cumsum(x) * cumsum(x)))
    agree(f"the sum of cumsum(x)², under vmap, at the rows {shown(table)}",
          mini.vmap(squares)(table), 2 * np.cumsum(np.cumsum(table, -1)[:, ::-1], -1)[:, ::-1],
          "a batch of sums from the end is made from the end, too", what="the gradient")
    with instead_of(NotImplementedError, "cumsum", 'now its loop: `LOOPS["cumsum"] = …`'):
        result = mini.jit(cumsum)(table)
    agree(f"the matrix {shown(table)}, compiled,", result, np.cumsum(table, -1),
          "NumPy's result is right, your loop's is not")
    result = mini.jit(gradient)(row)
    agree(inputs + ", compiled,", result, back, (near(result, np.cumsum(way)), "your loop runs "
          "from the beginning also where it should run from the end"), what="the gradient")
    result = mini.jit(mini.grad(lambda x: mini.sum(cumsum(x) * table)))(2.0 * table)
    agree(f"the sum of cumsum(x) * {shown(table)}, compiled,", result,
          np.cumsum(table[:, ::-1], -1)[:, ::-1], "right for vectors: the loop goes along the last "
          "axis of a matrix, also from the end", what="the gradient")


_CUMSUM = """
def cumsum_impl(x, reverse):
    return np.cumsum(x[..., ::-1], {axis})[..., ::-1] if reverse else np.cumsum(x, {axis})


cumsum_p = linear("cumsum", cumsum_impl, lambda n, reverse: {{"reverse": reverse}},
                  lambda ct, before, reverse: cumsum_p(ct, reverse={back}))
{typed}cumsum_p.abstract_eval = lambda aval, reverse: [{aval}]


def cumsum(x):
    return cumsum_p(x, reverse=False)


def cumsum_loop(text, eqn, reverse):
    [x], [v] = eqn.invars, eqn.outvars
    part, out, n = text.element(x), text.stored(v, None), v.aval.shape[-1]

    def statement(at):
        *rows, k = at
        here, before = (f"{{n - 1}} - {{k}}", f"{{n}} - {{k}}") if {turned} else (k, f"{{k}} - 1")
        return (f"{{place(out, [*rows, here])}} = {{part([*rows, here])}} + "
                f"({{place(out, [*rows, before])}} if {{k}} > 0 else 0.0)")
    text.loop(v.aval.shape, statement)


{loop}
"""


def _cumsum_text(axis: str = "-1", back: str = "not reverse", aval: str = "aval",
                 turned: str = "reverse", loop: str = 'LOOPS["cumsum"] = cumsum_loop',
                 typed: str = "") -> str:
    return _CUMSUM.format(axis=axis, back=back, aval=aval, turned=turned, loop=loop, typed=typed)


exercise(
    "cumsum", chapter=CHAPTER, grade=grade_cumsum, given="%mini begin 11", solution=_cumsum_text(),
    wrong=[("cumsum_p = linear(\"cumsum\", lambda x: np.cumsum(x, axis=-1), lambda n: {},\n"
            "                  lambda ct, before: dot(np.triu(np.ones((before[-1],) * "
            "2)), ct))\ncumsum_p.abstract_eval = lambda x: [x]\ndef cumsum(x):\n"
            "    return cumsum_p(x)\ndef cumsum_loop(text, eqn):\n"
            "    [x], [v] = eqn.invars, eqn.outvars\n"
            "    part, total = text.element(x), text.stored(v, lambda at: \"0\")\n"
            "    def statement(at):\n        *s, k, j = at\n"
            "        return f\"{place(total, [*s, k])} += {part([*s, j])} if {j} <= {k} "
            "else 0.0\"\n    text.loop((*x.aval.shape, x.aval.shape[-1]), statement)\n"
            "LOOPS[\"cumsum\"] = cumsum_loop", "the way back goes along"),
           (_cumsum_text(axis="None"), "along the last axis"),
           (_cumsum_text(back="reverse"), "from the other end"),
           (_cumsum_text(aval="ShapedArray((), aval.dtype)"), "the type of the result"),
           (_cumsum_text(loop=""), "now its loop"),
           (_cumsum_text(aval="ShapedArray(aval.shape, np.dtype(float))"), "here of float32"),
           (_cumsum_text().replace('{"reverse": reverse}', '{"reverse": False}'),
            "made from the end, too"),
           (_cumsum_text(typed="# "), "no `abstract_eval`"),
           (_cumsum_text(turned="False"), "your loop runs from the beginning"),
           (_cumsum_text().replace("v.aval.shape[-1]", "v.aval.shape[0]"), "also from the end"),
           ("def cumsum(x):\n    n = np.shape(x)[-1]\n"
            "    rows = reshape(x, (*np.shape(x)[:-1], 1, n))\n"
            "    return sum(mul(rows, np.tril(np.ones((n, n)))), -1)", "one operation")],
    hints=["a running sum from the end is the transpose of one from the beginning: give the "
           "primitive a parameter that says which",
           "`sum_loop` of chapter 08 shows what a loop of one's own looks like"])
