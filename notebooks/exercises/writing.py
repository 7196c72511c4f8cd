"""The exercises of chapter 32, *A language model that writes*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.notebook.checks import agree, exercise, expect, near, numbers, shown, wanting

CHAPTER = "32_a_language_model_that_writes"


def _softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


# -- causal_weights --------------------------------------------------------------------------------

def grade_causal_weights(causal_weights: Callable) -> None:
    random = np.random.default_rng(2)
    tables = [*(random.normal(size=(n, n)).round(1) for n in (3, 1, 4)),
              np.array([[1000.0, 3.0], [2.0, 1.0]]), np.array([[3.0, 1000.0], [2.0, 1.0]]),
              np.array([[-50.0, 0.0], [-60.0, -60.0]]),
              np.array([[-3000.0, 0.0], [-3000.0, -3001.0]])]
    for fits in tables:
        n = len(fits)
        expected = np.zeros((n, n))
        for k in range(n):
            expected[k, :k + 1] = _softmax(fits[k, :k + 1])
        inputs = f"the fits {shown(fits)}"
        with wanting(inputs, expected):
            result = numbers(jax.jit(causal_weights)(jnp.array(fits, jnp.float32)))
        agree(inputs, result, expected,
              (near(result, _softmax(fits)), "that looks at the future as well"),
              (near(result, np.tril(_softmax(fits))), "the weights of a row add up to 1: what is "
               "left out may not be in the sum either"),
              (near(result, expected.T), "the *rows* add up to 1"),
              (bool(np.isnan(result).any()) and abs(fits).max() < 9, "the softmax of a row in "
               "which all is hidden is nan: row k looks at column k, too"),
              (bool(np.isnan(result).any()), "exp(1000) is infinity, and the share "
               "of a fit beside it is 0: hide first, and let `jax.nn.softmax` do the rest"),
              (n > 1 and near(result.sum(axis=0), np.ones(n)), "the weights of a *row* add up to "
               "1, and those of your columns do"),
              (near(np.diag(result), np.zeros(n)), "row k looks at column k, too"),
              "a place that is hidden behaves as if its fit were minus infinity",
              what="the table of weights")
        rest = np.asarray(result)[np.triu_indices(n, 1)]
        expect(not rest.any(), f"for {inputs} the weights of later columns are 0, and yours are "
               f"{rest.tolist()}: a place that is hidden behaves as if its fit were minus infinity")


_WEIGHTS = """
def causal_weights(fits):
    past = jnp.tril(jnp.ones(fits.shape, bool))
    return {}
"""

exercise("causal_weights", chapter=CHAPTER, grade=grade_causal_weights,
         solution=_WEIGHTS.format("jax.nn.softmax(jnp.where(past, fits, -jnp.inf))"),
         wrong=[(_WEIGHTS.format("jax.nn.softmax(jnp.where(jnp.tril(past, -1), fits, -jnp.inf))"),
                 "all is hidden is nan"),
                (_WEIGHTS.format("jax.nn.softmax(jnp.where(past, fits, fits.min() - 20.0))"),
                 "weights of later columns"),
                (_WEIGHTS.format("jax.nn.softmax(fits)"), "looks at the future"),
                (_WEIGHTS.format("jnp.where(past, jax.nn.softmax(fits), 0.0)"), "add up to 1"),
                (_WEIGHTS.format("jax.nn.softmax(jnp.where(past, fits, 0.0))"), "minus infinity"),
                (_WEIGHTS.format("jax.nn.softmax(jnp.where(past, fits, -1000.0))"),
                 "looks at the future"),
                (_WEIGHTS.format("jnp.exp(fits) * past / (jnp.exp(fits) * past).sum(1, "
                                 "keepdims=True)"), "is infinity"),
                (_WEIGHTS.format("jnp.tril(jax.nn.softmax(fits)) / jnp.tril(jax.nn.softmax(fits))"
                                 ".sum(1, keepdims=True)"), "hide first"),
                (_WEIGHTS.format("jax.nn.softmax(jnp.where(past.T, fits, -jnp.inf))"),
                 "minus infinity")],
         right=[_WEIGHTS.format("jax.nn.softmax(jnp.where(past, fits, -1e9))"),
                _WEIGHTS.format("jax.nn.softmax(fits, where=past)")])


# -- look_back -------------------------------------------------------------------------------------

def grade_look_back(look_back: Callable) -> None:
    random = np.random.default_rng(3)
    for places, width, at in ((3, 4, 2), (3, 4, 0), (4, 2, 1), (5, 3, 3), (4, 1, 2), (6, 4, 3)):
        query = random.normal(size=width).round(1).astype(np.float32)
        keys, values = random.normal(size=(2, places, width)).round(1).astype(np.float32)
        if places == 6:  # all fits of the past are far below those of nothing
            keys[:at + 1] -= 4000 * query / (query @ query)
        weights = _softmax(keys[:at + 1] @ query / np.sqrt(width))
        expected = weights @ values[:at + 1]
        for rest in (0.0, 9.0, np.nan):
            keys[at + 1:], values[at + 1:] = rest, rest
            inputs = (f"query = {shown(query)}, keys = {shown(keys)}, values = {shown(values)} and "
                      f"at = {at}")
            with wanting(inputs, expected, (
                    IndexError, "`at` is traced, and so the size of a slice may not depend on it: "
                    "keep all places, with a mask"), (
                    TypeError, "`at` is traced: keep all places, with a mask")):
                result = numbers(jax.jit(look_back)(query, keys, values, at))
            everywhere = _softmax(keys @ query / np.sqrt(width)) @ values
            agree(inputs, result, expected,
                  (np.isnan(rest) and bool(np.isnan(result).any()), "a weight of 0 times nan is "
                   "nan: what stands behind `at` is to be replaced"),
                  (near(result, everywhere), "that looks at all places"),
                  (places == 6, "the fits are about -4000: what is hidden must be below them"),
                  (near(result, _softmax(keys[:at + 1] @ query) @ values[:at + 1]), "the fits are "
                   "divided by the root of the length of the query"),
                  (at > 0 and near(result, _softmax(keys[:at] @ query / np.sqrt(width))
                                   @ values[:at]), "the place `at` itself counts, too"),
                  what="the attention", tolerance=1e-3)
    query, keys = np.array([1, 2, 0, -1], np.float32), np.eye(3, 4, dtype="f4")
    values = np.array([[1, 2], [3, 5], [8, 13]], np.float32)
    expected = _softmax(keys[:2] @ query / 2) @ values[:2]
    with wanting("keys of length 4 and values of length 2", expected):
        agree("keys of length 4 and values of length 2", jax.jit(look_back)(query, keys, values, 1),
              expected, "the root is that of the length of the query", what="the attention")


_BACK = """
def look_back(query, keys, values, at):
    past = jnp.arange(len(keys)) {sign} at
    fits = keys @ query / {root}
    weights = jax.nn.softmax(jnp.where(past, fits, -jnp.inf))
    return weights @ {values}
"""


def _back_text(sign: str = "<=", root: str = "len(query) ** 0.5",
               values: str = "jnp.where(past[:, None], values, 0.0)") -> str:
    return _BACK.format(sign=sign, root=root, values=values)


exercise("look_back", chapter=CHAPTER, grade=grade_look_back, solution=_back_text(),
         wrong=[(_back_text(values="values"), "a weight of 0 times nan"),
                (_back_text(root="1.0"), "root of the length"),
                (_back_text(root="values.shape[1] ** 0.5"), "length of the query"),
                (_back_text(sign="<"), "the place `at` itself"),
                (_back_text(sign=">="), "the attention"),
                ("def look_back(query, keys, values, at):\n"
                 "    weights = jax.nn.softmax(keys[:at + 1] @ query / len(query) ** 0.5)\n"
                 "    return weights @ values[:at + 1]", "with a mask"),
                ("def look_back(query, keys, values, at):\n"
                 "    return jax.nn.softmax(keys @ query / len(query) ** 0.5) @ values",
                 "at all places")],
         hints=["`jnp.arange(len(keys)) <= at` says which places count"])


# -- best_few --------------------------------------------------------------------------------------

def grade_best_few(best_few: Callable) -> None:
    random = np.random.default_rng(5)
    cases = [(np.array([3.0, 1.0, 2.0]), 2), (np.array([3.0, 1.0, 2.0]), 1),
             (np.array([-3.0, -1.0, -2.0]), 3),
             *((random.permutation(n) * 0.5 - 2, k) for n, k in ((5, 2), (6, 4), (7, 1))),
             (np.array([1000.0, 1001.0, 3.0]), 2), (np.array([-3000.0, -3002.0, -3001.0]), 2)]
    for scores, k in cases:
        kept = scores >= np.sort(scores)[-k]
        expected = np.where(kept, _softmax(np.where(kept, scores, -np.inf)), 0.0)
        inputs = f"scores = {shown(scores)} and k = {k}"
        with wanting(inputs, expected):
            result = numbers(best_few(jnp.array(scores, jnp.float32), k))
        agree(inputs, result, expected,
              (near(result, _softmax(scores)), "that keeps all of them"),
              (np.shape(result) == (k,), "one probability for each score, in its place, and 0 for "
               "those that are left out"),
              (near(result, np.where(kept, _softmax(scores), 0.0)), "the probabilities that are "
               "left should add up to 1"),
              (abs(scores).max() > 100, "the exponentials of large scores are infinite, and those "
               "of very negative ones 0: replace what is left out by minus infinity, and let "
               "`jax.nn.softmax` do the rest"),
              (int(np.count_nonzero(result)) != k, f"{np.count_nonzero(result)} of yours are not "
               f"0, and {k} should be"),
              "a score that is left out behaves as minus infinity", what="the row of probabilities")


_FEW = "def best_few(scores, k):\n    least = jnp.sort(scores)[-k]\n    return {}"

exercise("best_few", chapter=CHAPTER, grade=grade_best_few,
         solution=_FEW.format("jax.nn.softmax(jnp.where(scores >= least, scores, -jnp.inf))"),
         wrong=[(_FEW.format("jnp.where(scores >= least, jax.nn.softmax(scores), 0.0)"),
                 "add up to 1"),
                ("def best_few(scores, k):\n    e = jnp.where(scores >= jnp.sort(scores)[-k], "
                 "jnp.exp(scores), 0.0)\n    return e / e.sum()", "are infinite"),
                (_FEW.format("jax.nn.softmax(jnp.where(scores >= least, scores, -100.0))"),
                 "by minus infinity"),
                (_FEW.format("jax.nn.softmax(jnp.where(scores > least, scores, -jnp.inf))"),
                 "of yours are not"),
                (_FEW.format("jax.nn.softmax(lax.top_k(scores, k)[0])"), "in its place"),
                (_FEW.format("jax.nn.softmax(jnp.where(scores >= least, scores, 0.0))"),
                 "of yours are not"),
                (_FEW.format("jax.nn.softmax(scores)"), "keeps all")],
         right=["def best_few(scores, k):\n    best, at = lax.top_k(scores, k)\n"
                "    return jnp.zeros(len(scores)).at[at].set(jax.nn.softmax(best))"])


# -- my_model --------------------------------------------------------------------------------------

LETTERS, PLACES, WORD, LINES = 6, 16, 4, 24


def _rows(seed: int, count: int) -> np.ndarray:
    """Rows of one random word each, again and again."""
    found = np.random.default_rng(seed).integers(0, LETTERS, (count, WORD))
    return np.tile(found, (1, PLACES // WORD + 1))[:, :PLACES + 1]


def grade_my_model(my_model: Callable) -> None:
    parts = my_model(LETTERS, PLACES)
    expect(isinstance(parts, tuple | list) and len(parts) == 3 and all(map(callable, parts)),
           f"three functions are wanted, `init`, `scores` and `write`, and yours is {parts}")
    init, scores, write = parts
    ids, params = jnp.array(_rows(1, 1)[0, :PLACES]), init(jax.random.key(4))
    before = numbers(scores(params, ids))
    expect(np.shape(before) == (PLACES, LETTERS), f"for {PLACES} places and {LETTERS} letters the "
           f"scores have the shape ({PLACES}, {LETTERS}), and yours {np.shape(before)}")
    for place in (PLACES - 1, 7):
        after = scores(params, ids.at[place].set((ids[place] + 1) % LETTERS))
        expect(near(before[:place], after[:place]), f"a change of letter {place} changes scores "
               "before it: a place must not look ahead")
    params = _trained(scores, params, _rows(2, 16 * 300).reshape(300, 16, -1))
    _check_recall(scores, params)
    _check_writing(write, params)


def _late_loss(scores: Callable, params: Any, rows: Any, first: int) -> Any:
    log_p = jax.nn.log_softmax(jax.vmap(lambda row: scores(params, row[:-1]))(rows))
    return -jnp.take_along_axis(log_p, rows[:, 1:, None], axis=2)[:, first:].mean()


def _trained(scores: Callable, params: Any, batches: np.ndarray) -> Any:
    """The parameters after a step of Adam for each batch."""
    def step(state: Any, rows: Any) -> tuple:
        p, mean, square, n = state
        gradient = jax.grad(lambda p: _late_loss(scores, p, rows, 0))(p)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, gradient)
        n = n + 1
        p = jax.tree.map(lambda p, m, s: p - 0.01 * (m / (1 - 0.9**n)) / (
            jnp.sqrt(s / (1 - 0.99**n)) + 1e-8), p, mean, square)
        return (p, mean, square, n), 0.0
    zeros = jax.tree.map(jnp.zeros_like, params)
    return jax.jit(lambda p, rows: lax.scan(step, (p, zeros, zeros, 0.0), rows)[0][0])(
        params, jnp.array(batches))


def _check_recall(scores: Callable, params: Any) -> None:
    rows, guessing = jnp.array(_rows(3, 64)), float(np.log(LETTERS))
    late = float(jax.jit(lambda p, rows: _late_loss(scores, p, rows, WORD - 1))(params, rows))
    expect(late < guessing / 3, f"after 300 steps the loss from the fifth letter on is {late:.2f}, "
           f"and less than {guessing / 3:.2f} is asked for; guessing has {guessing:.2f}. Can a "
           "place find the letter that stood four places before the next one?")


def _check_writing(write: Callable, params: Any) -> None:
    compiled = jax.jit(write, static_argnums=3)
    kept, varied = [], 0
    for n in (1, PLACES):
        with wanting(f"n = {n}", f"{n} letters", "`write` gives n letters, n being at most "
                     f"{PLACES} here"):
            line = compiled(params, jax.random.key(0), 0, n)
        expect(np.shape(line) == (n,), f"`write` of n = {n} letters gives {shown(line)}")
    for seed in range(LINES):
        start = seed % LETTERS
        line = np.asarray(compiled(params, jax.random.key(seed), start, PLACES - 1))
        expect(line.shape == (PLACES - 1,) and line.dtype.kind in "iu",
               f"`write` of n = {PLACES - 1} letters gives {shown(line)}")
        expect(bool(np.all((line >= 0) & (line < LETTERS))), f"the letters are 0 to {LETTERS - 1}, "
               f"and yours are {shown(line)}")
        again = compiled(params, jax.random.key(seed), start, PLACES - 1)
        expect(np.array_equal(line, again), "the same key writes different letters")
        if not seed:
            anew = jax.jit(lambda p, key: write(p, key, 0, PLACES - 1))(params, jax.random.key(0))
            expect(np.array_equal(line, anew), "the same key writes different letters, where "
                   "`write` is compiled once more: it remembers something")
        whole = np.array([start, *line])
        varied += len({*whole[:WORD].tolist()}) > 1
        kept.append(whole[WORD:] == whole[:-WORD])
    expect(varied >= LINES / 2, f"of {LINES} words that it writes {LINES - varied} are one letter "
           "again and again: does a letter that is drawn become part of what the next one sees, "
           "at the right place, and is the next one drawn from the scores of that place?")
    expect(np.mean(kept) > 0.5, f"{np.mean(kept):.0%} of the letters that it writes are those of "
           "four places before, and the trained model knows better: does the next letter "
           "see what was drawn, at the right place?")
    for place, share in enumerate(np.mean(kept, axis=0)[:WORD]):
        expect(share > 0.4, f"the letter at place {place} stands four places later again in "
               f"{share:.0%} of {LINES} lines, and the trained model knows better: does the next "
               "letter see those before it, " + (
                   "and `start` at place 0?" if place == 0 else "each at its own place?"))


_MODEL = """
def my_model(letters, places, width=32):
    past = {past}

    def init(key):
        shapes = {{"letters": (letters, width), "places": (places, width),
                  "asks": (width, width), "offers": (width, width), "gives": (width, width),
                  "last": (width, letters)}}
        keys = jax.random.split(key, len(shapes))
        return {{name: jax.random.normal(part, shape) * shape[0] ** -0.5
                for part, (name, shape) in zip(keys, shapes.items())}}

    def scores(p, ids):
        x = {x}
        fits = (x @ p["asks"]) @ (x @ p["offers"]).T * width ** -0.5
        weights = jax.nn.softmax(jnp.where(past, fits, -1e9))
        return (x + {seen}) @ p["last"]

    def write(p, key, start, n):
        def one(ids, step):
            at, key = step
            letter = jax.random.categorical(key, scores(p, ids)[{at}])
            return ids.at[at + 1].set(letter, mode="drop"), letter
        ids = jnp.zeros(places, int).at[0].set(start)
        return lax.scan(one, ids, (jnp.arange(n), jax.random.split({key}, n)))[1]

    return {parts}
"""


def _model_text(past: str = "jnp.tril(jnp.ones((places, places), bool))",
                x: str = 'p["letters"][ids] + p["places"]', key: str = "key", at: str = "at",
                seen: str = 'weights @ (x @ p["gives"])', parts: str = "init, scores, write"
                ) -> str:
    return _MODEL.format(past=past, x=x, key=key, at=at, seen=seen, parts=parts)


exercise("my_model", chapter=CHAPTER, grade=grade_my_model, solution=_model_text(),
         wrong=[(_model_text(parts="init, scores"), "three functions"),
                (_model_text(past="jnp.ones((places, places), bool)"), "must not look ahead"),
                (_model_text(seen="0.0"), "find the letter"),
                (_model_text(x='p["letters"][ids]'), "find the letter"),
                (_model_text(at="-1"), "become part of"),
                (_model_text().replace("jnp.arange(n), jax.random.split(key, n)",
                                       "jnp.arange(places - 1), jax.random.split(key, places - 1)"),
                 "of n = 1"),
                *((_model_text().replace("ids.at[at + 1].set(letter", f"ids.at[{to}].set(letter"),
                   "four places") for to in ("at", "at - 1", "1")),
                (_model_text().replace(".at[0].set(start)", ""), "and `start` at place 0"),
                (_model_text().replace(".at[0].set(start)", ".at[1].set(start)"), "`start` at"),
                (_model_text(seen='weights @ (x @ p["gives"]) @ p["last"]'), "raised")],
         hints=["begin with `init` and `scores` of the chapter, with the sizes that are handed in"])
