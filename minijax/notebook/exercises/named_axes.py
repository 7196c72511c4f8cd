"""The exercises of chapter 11, *Named axes and many devices*."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import exercise, expect, instead_of, near

CHAPTER = "11_named_axes"


def _agrees(found: Any, wanted: Any, given: str) -> None:
    expect(near(found, wanted), f"for {given} the answer is {np.asarray(wanted).tolist()}, "
           f"and yours is {np.asarray(found).tolist()}")


def _batches() -> list[list[float]]:
    random = np.random.default_rng(0)
    return [[1.0, 2.0, 5.0], *(random.integers(-9, 9, n).astype(float).tolist() for n in (1, 4, 6))]


def _primitives(f: Callable, x: Any, name: str) -> set[str]:
    """The collectives in a function of one example, as it is before any `vmap`."""
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


# ── 1. times_the_sum ─────────────────────────────────────────────────────────────────────────

def grade_times_the_sum(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 3,
           "three numbers, one for each example")
    expect(not near(answer, [1.0, 4.0, 9.0]), "that is each number times itself; the sum is over "
           "all examples")
    expect(not near(answer, [1.0, 3.0, 6.0]) and not near(answer, [1.0, 6.0, 18.0]),
           "each example gets the whole sum, not the sum so far")
    expect(near(answer, [6.0, 12.0, 18.0]), "what is the sum of all three, and what is each times "
           "that?")


exercise("times_the_sum", chapter=CHAPTER, grade=grade_times_the_sum, solution="[6.0, 12.0, 18.0]",
         wrong=[("[1.0, 4.0, 9.0]", "times itself"), ("[1.0, 6.0, 18.0]", "not the sum so far"),
                ("36.0", "three numbers"), ("[6.0, 6.0, 6.0]", "each times that")])


# ── 2. pmean ─────────────────────────────────────────────────────────────────────────────────

def grade_pmean(pmean: Callable) -> None:
    from minijax.notebook.library import library
    mini = library.module
    for xs in _batches():
        found = mini.vmap(lambda x: x - pmean(x, "i"), axis_name="i")(np.array(xs))
        _agrees(found, np.array(xs) - np.mean(xs), f"x - pmean(x) and {xs}")
    found = mini.vmap(lambda x: mini.vmap(lambda y: pmean(x * y, "out"))(np.array([1.0, 2.0])),
                      axis_name="out")(np.array([1.0, 3.0, 8.0]))
    _agrees(found, [[4.0, 8.0]] * 3, "the outer one of two axes, and [1, 3, 8] times [1, 2],")
    slope = mini.grad(lambda xs: mini.sum(mini.vmap(
        lambda x: x * pmean(x, "i"), axis_name="i")(xs)))(np.array([1.0, 2.0, 5.0]))
    _agrees(slope, np.full(3, 16 / 3), "the gradient of the sum of x * pmean(x) at [1, 2, 5]")


_MINI = """
from minijax.notebook.library import library
library.begin("11")
from mini import axis_index, psum, sum
"""

exercise(
    "pmean", chapter=CHAPTER, grade=grade_pmean, given=_MINI,
    solution="def pmean(x, axis_name):\n    return psum(x, axis_name) / psum(1.0, axis_name)",
    wrong=[("def pmean(x, axis_name):\n    return psum(x, axis_name)", "the answer is"),
           ("def pmean(x, axis_name):\n    return psum(x, axis_name) / psum(x, axis_name)",
            "the answer is"),
           ("def pmean(x, axis_name):\n    return psum(x, 'i') / psum(1.0, 'i')",
            "unbound axis name"),
           ("def pmean(x, axis_name):\n    return psum(x, axis_name) / len(x)",
            "your answer raised")])


# ── 3. numbers_sent ──────────────────────────────────────────────────────────────────────────

def grade_numbers_sent(answer: Any) -> None:
    expect(isinstance(answer, int), "a whole number")
    expect(answer != 2048, "the vector has a gradient, too")
    expect(answer not in (1000 * 2080, 8000 * 2080), "a device adds up its own examples before it "
           "sends anything")
    expect(answer != 8 * 2080, "that is what all of them send together")
    expect(answer not in (1000, 8000, 64000), "it is not the examples that are sent")
    expect(answer == 64 * 32 + 32, "the gradient has one number for each parameter: how many are "
           "there?")


exercise("numbers_sent", chapter=CHAPTER, grade=grade_numbers_sent, solution="2080",
         wrong=[("2048", "the vector"), ("2_080_000", "adds up its own"),
                ("1000", "not the examples"),
                ("16640", "all of them"), ("96", "how many are")])


# ── 4. standardised ──────────────────────────────────────────────────────────────────────────

def grade_standardised(f: Callable) -> None:
    for xs in ([1.0, 2.0, 5.0], [0.0, 10.0], [3.0, -1.0, 4.0, 1.0, -5.0]):
        wanted = (np.array(xs) - np.mean(xs)) / np.std(xs)
        found = jax.vmap(f, axis_name="batch")(jnp.array(xs))
        expect(np.shape(found) == (len(xs),), f"for each example one number: {len(xs)} in all, "
               f"not the shape {np.shape(found)}")
        _agrees(found, wanted.round(5), f"{xs}")


_STANDARDISED = """
def standardised(x):
    far = x - lax.{mean}(x, "batch")
    return {out}
"""


def _standard_text(mean: str = "pmean", out: str = 'far / jnp.sqrt(lax.pmean(far ** 2, "batch"))'
                   ) -> str:
    return _STANDARDISED.format(mean=mean, out=out)


exercise(
    "standardised", chapter=CHAPTER, grade=grade_standardised, solution=_standard_text(),
    wrong=[(_standard_text(mean="psum"), "the answer is"),
           (_standard_text(out='far / lax.pmean(far ** 2, "batch")'), "the answer is"),
           (_standard_text(out='far / jnp.sqrt(lax.psum(far ** 2, "batch"))'), "the answer is"),
           ("def standardised(x):\n    return (x - jnp.mean(x)) / (jnp.std(x) + 1.0)",
            "the answer is"),
           (_standard_text(out='far / jnp.sqrt(lax.pmean(far ** 2, "i"))'), "unbound axis name")])


# ── 5. from_example ──────────────────────────────────────────────────────────────────────────

def grade_from_example(f: Callable) -> None:
    for xs in _batches():
        for k in range(len(xs)):
            found = jax.vmap(lambda x, k=k: f(x, k), axis_name="i")(jnp.array(xs))
            _agrees(found, [xs[k]] * len(xs), f"{xs} and k = {k}")
    names = _primitives(lambda x: f(x, 0), jnp.arange(3.0), "i")
    expect("psum" in names, "use `lax.psum`")


_FROM = """
def from_example(x, k):
    return lax.{collective}(jnp.where({test}, x, {other}), "i")
"""


def _from_text(collective: str = "psum", test: str = 'lax.axis_index("i") == k',
               other: str = "0") -> str:
    return _FROM.format(collective=collective, test=test, other=other)


exercise(
    "from_example", chapter=CHAPTER, grade=grade_from_example, solution=_from_text(),
    wrong=[(_from_text(other="x"), "the answer is"),
           (_from_text(collective="pmean"), "the answer is"),
           (_from_text(collective="pmax"), "the answer is"),
           (_from_text(test="x == k"), "the answer is"),
           ('def from_example(x, k):\n    return lax.all_gather(x, "i")[k]', "use `lax.psum`")])


# ── 6. place ─────────────────────────────────────────────────────────────────────────────────

def grade_place(place: Callable) -> None:
    for xs in (*_batches(), [2.0, 2.0, 1.0]):
        found = jax.vmap(place, axis_name="i")(jnp.array(xs))
        expect(np.shape(found) == (len(xs),), f"for each example one number: {len(xs)} in all, "
               f"not the shape {np.shape(found)}")
        _agrees(found, [sum(y < x for y in xs) for x in xs], f"{xs}")


exercise(
    "place", chapter=CHAPTER, grade=grade_place,
    solution='def place(x):\n    return jnp.sum(lax.all_gather(x, "i") < x)',
    wrong=[('def place(x):\n    return jnp.sum(lax.all_gather(x, "i") <= x)', "the answer is"),
           ('def place(x):\n    return lax.all_gather(x, "i") < x', "not the shape"),
           ('def place(x):\n    return lax.axis_index("i")', "the answer is"),
           ('def place(x):\n    return jnp.sum(lax.all_gather(x, "i") > x)', "the answer is")])


# ── 7. parallel_gradient ─────────────────────────────────────────────────────────────────────

def grade_parallel_gradient(parallel_gradient: Callable) -> None:
    def loss(w: Any, xs: Any) -> Any:
        return jnp.mean(jnp.sin(xs @ w) ** 2)

    random = np.random.default_rng(0)
    for devices, examples in ((3, 5), (1, 4), (4, 2)):
        w = jnp.asarray(random.normal(size=2).round(2))
        xs = jnp.asarray(random.normal(size=(devices, examples, 2)).round(2))
        found = parallel_gradient(loss)(w, xs)
        wanted = jax.grad(loss)(w, xs.reshape(-1, 2))
        expect(np.shape(found) == (2,), "the gradient has the shape of w, (2,), and yours "
               f"{np.shape(found)}")
        _agrees(found, wanted, f"{devices} devices with {examples} examples each,")


_PARALLEL = """
def parallel_gradient(loss):
    def one(w, xs):
        return {inside}
    return jax.vmap(one, in_axes={axes}, out_axes={out}, axis_name="devices")
"""


def _parallel_text(inside: str = 'lax.pmean(jax.grad(loss)(w, xs), "devices")',
                   axes: str = "(None, 0)", out: str = "None") -> str:
    return _PARALLEL.format(inside=inside, axes=axes, out=out)


exercise(
    "parallel_gradient", chapter=CHAPTER, grade=grade_parallel_gradient, solution=_parallel_text(),
    wrong=[(_parallel_text(inside='lax.psum(jax.grad(loss)(w, xs), "devices")'), "the answer is"),
           (_parallel_text(out="0"), "the shape of w"),
           (_parallel_text(inside="jax.grad(loss)(w, xs)"), "your answer raised"),
           (_parallel_text(axes="0"), "your answer raised")])


# ── 8. ring_sum ──────────────────────────────────────────────────────────────────────────────

def grade_ring_sum(ring_sum: Callable) -> None:
    for xs in _batches():
        of_all = functools.partial(ring_sum, count=len(xs))
        found = jax.vmap(of_all, axis_name="i")(jnp.array(xs))
        expect(np.shape(found) == (len(xs),), f"for each example one number: {len(xs)} in all, "
               f"not the shape {np.shape(found)}")
        _agrees(found, [np.sum(xs)] * len(xs), f"{xs}")
    names = _primitives(lambda x: ring_sum(x, 3), jnp.arange(3.0), "i")
    expect("psum" not in names, "no `psum` here: each device speaks only to the next")


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
    wrong=[(_ring_text(rounds="count"), "the answer is"),
           (_ring_text(sent="total"), "the answer is"),
           (_ring_text(to="k + 1"), "your answer raised"),
           (_ring_text(rounds="1"), "the answer is"),
           ('def ring_sum(x, count):\n    return lax.psum(x, "i")', "no `psum` here")])


# ── 9. by_level ───────────────────────────────────────────────────────────────────────────────

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
        found, wanted = by_level(of, heard.append)(x), of(x)
        expect(not isinstance(found, mini.Tracer), "the result is still a tracer: take its value")
        _agrees(found, wanted, what)
        expect(len(heard) == 1, f"`tell` is to be called once, and you call it {len(heard)} times")
        expect(isinstance(heard[0], list) and all(np.shape(row) == (2,) for row in heard[0]),
               f"`tell` is given a list of pairs; yours is {heard[0]!r}")
        return [(str(name), int(count)) for name, count in heard[0]]

    rows = table(wave, "sin(x) * x")
    expect([count for _, count in rows] == [2], "sin(x) * x has two operations, on one level; your "
           f"table is {rows}")
    for of, what, own, kind, inside in ((swing(wave), "its jvp", 7, "JVPTrace", 2),
                                        (mini.vmap(wave), "its vmap", 2, "BatchTrace", 2),
                                        (slope(wave), "its gradient", 8, "JVPTrace", 3),
                                        (mini.jit(wave), "a jit of it", 1, "JaxprTrace", 2)):
        rows = table(of, what)
        expect(len(rows) > 1, f"in {what} a level is open inside yours; your table is {rows}")
        expect(kind not in rows[0][0], f"from the outside in: your own level first, then {kind}")
        expect(rows[0][1] == own, f"for {what}, {own} operations come to your level; your table is "
               f"{rows}")
        expect((kind, inside) in rows, f"for {what}, a {kind} interprets {inside} operations; your "
               f"table is {rows}")
    for around, what in ((swing, "jvp"), (mini.vmap, "vmap"), (slope, "grad"), (mini.jit, "jit")):
        heard.clear()
        _agrees(around(by_level(wave, heard.append))(x), around(wave)(x), f"{what} of it")
        expect([count for _, count in heard[0]] == [2], f"under {what}, sin(x) * x still has two "
               f"operations; your table is {heard[0]}")


_BY_LEVEL = """
class CountTrace(Trace):
    \"\"\"Has everything done by its parent, and is told what the levels inside interpret.\"\"\"

    def __init__(self, parent):
        super().__init__(parent)
        self.names = {{}}

    def join(self, x):
        return Tracer(self, aval_of(x), value=x)

    def value(self, x):
        return x.value if self.owns(x) else x

    def interpret(self, primitive, args, params):
        outs = run_with({parent}, primitive.bind, *map(self.value, args), **params)
        return list(map(self.join, outs))


def outwards(trace):
    \"\"\"A trace, its parent, and so on to the one that evaluates.\"\"\"
    while trace is not None:
        yield trace
        trace = getattr(trace, "parent", None)


def telling(interpret):
    \"\"\"The method of a trace that interprets; it first tells all levels around that count.\"\"\"
    def method(self, primitive, args, params):
        for outer in outwards(self):
            if isinstance(outer, CountTrace):
                outer.names.setdefault(self, []).append(primitive.name)
        return interpret(self, primitive, args, params)
    return method


CountTrace.interpret = telling(CountTrace.interpret)
JVPTrace.interpret = telling(JVPTrace.interpret)
BatchTrace.interpret = telling(BatchTrace.interpret)
{written}
SplitTrace.interpret = telling(SplitTrace.interpret)


def by_level(f, tell):
    def run(*args):
        flat, in_tree = flatten(args)
        g, out_tree = flat_function(f, in_tree)
        trace = CountTrace(current)
        outs = run_with(trace, g, *map(trace.join, flat))
        levels = sorted(trace.names, key=lambda level: {order})
        tell([(type(level).__name__, len(trace.names[level])) for level in levels])
        return unflatten(out_tree(), {outs})
    return run
"""


def _by_level_text(written: str = "JaxprTrace.process = telling(JaxprTrace.process)",
                  order: str = "len([*outwards(level)])", parent: str = "self.parent",
                  outs: str = "list(map(trace.value, outs))") -> str:
    return _BY_LEVEL.format(written=written, order=order, outs=outs, parent=parent)


exercise(
    "by_level", chapter=CHAPTER, grade=grade_by_level, given="%mini begin 11",
    solution=_by_level_text(),
    wrong=[(_by_level_text(outs="outs"), "still a tracer"),
           (_by_level_text(order="-len([*outwards(level)])"), "from the outside in"),
           (_by_level_text(written=""), "a level is open inside"),
           (_by_level_text(written="JaxprTrace.process = telling(telling(JaxprTrace.process))"),
            "a JaxprTrace interprets 2"),
           (_by_level_text().replace("        tell([", "        tell([]); tell(["), "once")],
    hints=["begin with the trace of exercise 2 in chapter 02, and join and split as `jvp` does",
           "a JaxprTrace interprets in `process`, and all others do in `interpret`"])


# ── 10. cumsum ───────────────────────────────────────────────────────────────────────────────

def grade_cumsum(cumsum: Callable) -> None:
    from minijax.notebook.library import library
    mini = library.module
    random = np.random.default_rng(0)
    row, table, way = random.normal(size=5), random.normal(size=(3, 5)), random.normal(size=5)
    _agrees(cumsum(row), np.cumsum(row), "a vector")
    _agrees(cumsum(table), np.cumsum(table, -1), "a matrix, along its last axis,")
    names = [eqn.primitive.name for eqn in mini.make_jaxpr(cumsum)(row).eqns]
    expect(names == ["cumsum"], f"one operation named cumsum is asked for; yours are {names}")
    [found] = mini.make_jaxpr(cumsum)(table).out_avals
    expect(found == mini.aval_of(table), f"the type of the result is {mini.aval_of(table)}, that "
           f"of the argument; yours is {found}")
    _agrees(mini.jvp(cumsum, (row,), (way,))[1], np.cumsum(way), "a tangent")
    gradient = mini.grad(lambda x: mini.sum(cumsum(x) * way))
    back = np.cumsum(way[::-1])[::-1]
    _agrees(gradient(row), back, f"the gradient of the sum of cumsum(x) * {way.round(2).tolist()}")
    for axis in (0, 1):
        found = mini.vmap(cumsum, in_axes=axis)(table)
        _agrees(found, np.cumsum(np.moveaxis(table, axis, 0), -1), f"vmap with in_axes={axis}")
    with instead_of(KeyError, "cumsum", 'now its loop: `LOOPS["cumsum"] = …`'):
        found = mini.jit(cumsum)(table)
    _agrees(found, np.cumsum(table, -1), "the compiled running sums of a matrix")
    _agrees(mini.jit(gradient)(row), back, "the compiled gradient")


_CUMSUM = """
def cumsum_impl(x, reverse):
    return np.cumsum(x[..., ::-1], {axis})[..., ::-1] if reverse else np.cumsum(x, {axis})


cumsum_p = linear("cumsum", cumsum_impl, lambda n, reverse: {{"reverse": reverse}},
                  lambda ct, before, reverse: cumsum_p(ct, reverse={back}))
cumsum_p.types = lambda aval, reverse: [{aval}]


def cumsum(x):
    return cumsum_p(x, reverse=False)


def cumsum_loop(text, eqn, reverse):
    [x], [v] = eqn.inputs, eqn.outputs
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
                 turned: str = "reverse", loop: str = 'LOOPS["cumsum"] = cumsum_loop') -> str:
    return _CUMSUM.format(axis=axis, back=back, aval=aval, turned=turned, loop=loop)


exercise(
    "cumsum", chapter=CHAPTER, grade=grade_cumsum, given="%mini begin 11", solution=_cumsum_text(),
    wrong=[(_cumsum_text(axis="None"), "along its last axis"),
           (_cumsum_text(back="reverse"), "the gradient of the sum"),
           (_cumsum_text(aval="ShapedArray((), aval.dtype)"), "the type of the result"),
           (_cumsum_text(loop=""), "now its loop"),
           (_cumsum_text(turned="False"), "the compiled gradient"),
           ("def cumsum(x):\n    n = np.shape(x)[-1]\n"
            "    rows = reshape(x, (*np.shape(x)[:-1], 1, n))\n"
            "    return sum(mul(rows, np.tril(np.ones((n, n)))), -1)", "one operation")],
    hints=["a running sum from the end is the transpose of one from the beginning: give the "
           "primitive a parameter that says which",
           "`sum_loop` of chapter 08 shows what a loop of one's own looks like"])
