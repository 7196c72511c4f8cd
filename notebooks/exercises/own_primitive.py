"""The exercises of chapter 30, *A primitive that is missing*."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minijax as jax
from minijax import core
from minijax.compiler.loops import Constant, For, walk
from minijax.compiler.targets.emulator import Refused
from minijax.notebook import laws
from minijax.notebook.checks import agree, exercise, expect, instead_of, near, wanting

CHAPTER = "30_a_primitive_that_is_missing"


def _random_matrix(random: Any, rows: int, columns: int, dtype: Any = np.float64) -> np.ndarray:
    """About a third of it is not zero; the second row is empty."""
    dense = random.integers(-9, 10, (rows, columns)) * (random.random((rows, columns)) < 0.35)
    dense[1:2] = 0
    return dense.astype(dtype)


def _csr(dense: np.ndarray) -> tuple:
    rows, columns = np.nonzero(dense)
    counts = np.bincount(rows, minlength=len(dense))
    stops = np.cumsum(counts)
    return (dense[rows, columns], columns.astype(np.int32), (stops - counts).astype(np.int32),
            stops.astype(np.int32))


_PARTS = ("data", "columns", "starts", "stops")


def _check_parts(inputs: str, answer: Any, expected: tuple, **hints: Any) -> None:
    expect(isinstance(answer, tuple | list) and len(answer) == 4, "four arrays are wanted, in this "
           "order: data, columns, starts, stops")
    for name, part, right in zip(_PARTS, answer, expected, strict=True):
        part = np.asarray(part)
        agree(inputs, part, right, hints.get(name, ""), what=f"`{name}`")
        expect(part.dtype == right.dtype, f"for {inputs} `{name}` has the dtype {right.dtype}, and "
               f"yours has {part.dtype}")


# -- to_csr ----------------------------------------------------------------------------------------

def grade_to_csr(to_csr: Callable) -> None:
    random = np.random.default_rng(30)
    matrices: list[np.ndarray] = [
        np.array([[0, 2, 0], [0, 0, 0], [3, 0, 4]], np.float32), np.eye(2)[:, ::-1],
        np.zeros((2, 3)), np.array([[1e-30, 0.0], [0.0, -1e-13]]),
        np.array([[0.0, np.nan], [2.0, 0.0]]),
        *(_random_matrix(random, *random.integers(3, 7, 2)) for _ in range(4))]
    for dense in matrices:
        inputs, expected = f"{dense.tolist()}", _csr(dense)
        with wanting(inputs, expected, (ValueError, "a row may be empty")):
            answer = to_csr(dense)
        _check_parts(inputs, answer, expected,
                     data="each number that is not 0, and be it tiny, or negative, or nan; they "
                          "stand row by row, and in a row from left to right",
                     columns="the numbers stand row by row, and in a row from left to right",
                     starts="row i begins where the rows before it end; an empty row, too",
                     stops="row i ends where it begins, plus the numbers in it")


_TO_CSR = """
def to_csr(dense):
    rows, columns = np.nonzero({matrix})
    stops = np.cumsum({counts})
    starts = {starts}
    return dense[{place}], columns.astype({dtype}), starts.astype(np.int32), stops.astype(np.int32)
"""


def _to_csr_text(matrix: str = "dense", counts: str = "np.sum(dense != 0, axis=1)",
                 starts: str = "np.concatenate([[0], stops[:-1]])", dtype: str = "np.int32",
                 place: str = "rows, columns") -> str:
    return _TO_CSR.format(matrix=matrix, counts=counts, starts=starts, dtype=dtype, place=place)


exercise(
    "to_csr", chapter=CHAPTER, grade=grade_to_csr, solution=_to_csr_text(),
    wrong=[(_to_csr_text(matrix="dense.T", place="columns, rows"), "row by row"),
           (_to_csr_text(counts="np.bincount(rows)"), "`starts`"),
           (_to_csr_text(starts="stops"), "row i begins"),
           (_to_csr_text(starts="np.concatenate([[0], stops])"), "row i begins"),
           (_to_csr_text(dtype="np.int64"), "int32, and yours has int64"),
           (_to_csr_text(matrix="dense > 0", counts="np.sum(dense > 0, axis=1)"), "or negative"),
           (_to_csr_text(matrix="abs(dense) > 0", counts="np.sum(abs(dense) > 0, axis=1)"),
            "or nan"),
           ("def to_csr(dense):\n    return dense[dense != 0]", "four arrays"),
           (_to_csr_text(matrix="abs(dense) > 1e-9", counts="np.sum(abs(dense) > 1e-9, axis=1)"),
            "[[1e-30, 0.0]"),
           (_to_csr_text(counts="np.sum(dense, axis=1)"), "row i")],
    right=["def to_csr(dense):\n    data, columns, starts, stops = [], [], [], []\n"
           "    for row in dense:\n        starts.append(len(data))\n"
           "        for j, x in enumerate(row):\n            if x != 0:\n"
           "                data.append(x)\n                columns.append(j)\n"
           "        stops.append(len(data))\n"
           "    return (np.array(data, dense.dtype), *(np.array(x, np.int32)\n"
           "            for x in (columns, starts, stops)))"],
    hints=["`np.nonzero` lists the places of what is not zero, row by row"])


# -- the chapter's block ---------------------------------------------------------------------------

BLOCK = '''
from minijax import core

def product_of(data, columns, starts, stops, x):
    rows = [data[start:stop] @ x[columns[start:stop]] for start, stop in zip(starts, stops)]
    return [np.array(rows, x.dtype).reshape(len(starts), x.shape[1])]

def product_type(data, columns, starts, stops, x):
    if not data.dtype == x.dtype in (np.float32, np.float64):
        raise TypeError(f"the numbers are float32 or float64, got {data.dtype} and {x.dtype}")
    if data.shape != columns.shape or starts.shape != stops.shape or x.ndim != 2:
        raise TypeError(f"no sparse matrix and a matrix: {data}, {columns}, {starts}, {x}")
    return [core.ShapedArray((starts.shape[0], x.shape[1]), x.dtype)]

def place(b, operand, k):
    return b.convert(operand((k,)), np.int64)

def product_loop(b, outs, operands):
    [out], [data, columns, starts, stops, x] = outs, operands
    rows, count = out.shape
    with b.loop(rows, vectorize="parallel") as i, b.loop(count, vectorize="parallel") as j:
        total = b.variable(0, out.dtype)
        with b.loop(place(b, stops, i), start=place(b, starts, i)) as k:
            term = b.mul(data((k,)), x((place(b, columns, k), j)))
            b.assign(total, b.add(b.read(total), term))
        b.store(out, (i, j), b.read(total))

def product_jvp(primals, tangents):
    data, *where, x = primals
    data_dot, *_, x_dot = tangents
    terms = []
    if not isinstance(data_dot, core.Zero):
        terms.append(product_p.bind(data_dot, *where, x))
    if not isinstance(x_dot, core.Zero):
        terms.append(product_p.bind(data, *where, x_dot))
    return [product_p.bind(*primals)], [sum(terms[1:], terms[0])]

def row_of_each(stops, count):
    return jnp.searchsorted(stops, jnp.arange(count), side="right")

def product_transpose(cotangents, data, columns, starts, stops, x):
    [ct] = cotangents
    seen = ct[row_of_each(stops, columns.shape[0])]
    if isinstance(x, core.Undefined):
        nothing = jnp.zeros(x.aval.shape, x.aval.dtype)
        return [None, None, None, None, nothing.at[columns].add(data[:, None] * seen)]
    return [jnp.sum(seen * x[columns], axis=1), None, None, None, None]

def in_front(x, dim, size):
    return jnp.broadcast_to(x, (size, *x.shape)) if dim is None else jnp.moveaxis(x, dim, 0)

def product_batch(axis, args, dims):
    data, columns, starts, stops, x = (in_front(x, d, axis.size) for x, d in zip(args, dims))
    [_, entries], [_, rows], [_, height, width] = data.shape, starts.shape, x.shape
    number = jnp.arange(axis.size, dtype=columns.dtype)[:, None]
    out = product_p.bind(
        data.reshape(axis.size * entries),
        (columns + height * number).reshape(axis.size * entries),
        (starts + entries * number).reshape(axis.size * rows),
        (stops + entries * number).reshape(axis.size * rows),
        x.reshape(axis.size * height, width))
    return [out.reshape(axis.size, rows, width)], [0]

product_p = core.Primitive(
    "sparse_product", impl=product_of, abstract_eval=product_type, jvp=product_jvp,
    transpose=product_transpose, batch=product_batch, loop=product_loop, examples=list,
    may_produce_nan=True)
'''


def _block(*changes: tuple[str, str]) -> core.Primitive:
    """The chapter's primitive, with other source in place of some of its own."""
    source = BLOCK
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    names: dict[str, Any] = {"np": np, "jnp": jax.numpy}
    exec(source, names)
    return names["product_p"]


def _arguments(dense: np.ndarray, count: int, seed: int = 0) -> tuple:
    x = np.random.default_rng(seed).integers(-4, 5, (dense.shape[1], count)).astype(dense.dtype)
    return (*_csr(dense), x)


# -- row_loop --------------------------------------------------------------------------------------

def grade_row_loop(row_loop: Callable) -> None:
    random = np.random.default_rng(31)
    p = _block()
    p.loop = row_loop
    for rows, columns, count in ((5, 7, 8), (4, 3, 5)):
        _check_row_loop(p, _random_matrix(random, rows, columns, np.float32), count)


def _check_row_loop(p: core.Primitive, dense: np.ndarray, count: int) -> None:
    """Look at the order of the loops of a product, and at what it gives in two places."""
    args = _arguments(dense, count)
    lowered = jax.jit(p.bind).lower(*args)
    _check_order(lowered._lowered.kernel, count)
    [device] = jax.devices("emulator")
    with instead_of(Refused, "", "on the emulator it is refused: a result is read before anything "
                    "is stored there (set a row to 0 first), or two threads store at one place "
                    "(where the promise \"parallel\" is false)"), \
         instead_of(Refused, "an index outside of", "on the emulator it is refused: an index lies "
                    "outside of its array; which row of x belongs to a number?"):
        there = [jax.device_put(x, device) for x in args]
        results = {"on the emulator": jax.jit(p.bind)(*there)}
    results["on the CPU"] = lowered.compile()(*args)
    for where, result in results.items():
        empty = ~dense.any(axis=1)
        agree(f"a random matrix and an x of shape {args[-1].shape}, {where},", result,
              dense @ args[-1],
              (not near(np.asarray(result)[empty], 0 * args[-1][:1]), "a row without numbers is 0, "
               "and yours is not: is it set to 0 first, and are only the numbers from `starts` on "
               "added?"),
              "each number of a row adds a multiple of the row of x with the number's column",
              what="the product")


def _check_order(kernel: Any, count: int) -> None:
    """The loops over entries have a loop over columns inside; none is the innermost."""
    entries = [s for s in walk(kernel.body) if isinstance(s, For)
               and not isinstance(s.stop, Constant)]
    expect(entries, "no loop goes over the entries of a row, from `starts` to `stops`")
    expect(not any(loop.vectorize == "parallel" for loop in entries), "the loop over the entries "
           "promises to be parallel, and all its rounds add to one row")
    inside = [s for loop in entries for s in walk(loop.body) if isinstance(s, For)]
    expect(inside, "the innermost loop still goes over the entries: the one over j belongs inside "
           "of it")
    expect(any(s.trip_count == count for s in inside), f"x has {count} columns, and no loop inside "
           "of that over the entries has as many rounds")


_ROW_LOOP = """
def row_loop(b, outs, operands):
    [out], [data, columns, starts, stops, x] = outs, operands
    rows, count = out.shape
    with b.loop(rows, vectorize="parallel") as i:
        {first}
        with b.loop(place(b, stops, i), start=place(b, starts, i)) as k:
            with b.loop(count, vectorize="parallel") as j:
                term = b.mul(data((k,)), x((place(b, columns, k), j)))
                b.store(out, (i, j), {total})
"""


def _row_loop_text(first: str = 'with b.loop(count, vectorize="parallel") as j:\n'
                   "            b.store(out, (i, j), 0)",
                   total: str = "b.add(b.load(out, (i, j)), term)") -> str:
    return _ROW_LOOP.format(first=first, total=total)


exercise(
    "row_loop", chapter=CHAPTER, grade=grade_row_loop, solution=_row_loop_text(), given=BLOCK,
    wrong=[("row_loop = product_loop", "the innermost loop still"),
           (_row_loop_text(first="pass"), "set a row to 0 first"),
           (_row_loop_text().replace("start=place(b, starts, i))",
                                     "start=place(b, starts, i), vectorize='parallel')"),
            "add to one row"),
           (_row_loop_text().replace("place(b, columns, k), j", "place(b, columns, i), j"),
            "with the number's column"),
           (_row_loop_text(total="term"), "the product is"),
           (_row_loop_text().replace("b.loop(count,", "b.loop(8,"), "x has 5 columns"),
           (_row_loop_text().replace("start=place(b, starts, i)", "start=0"), "from `starts` on"),
           (_row_loop_text().replace("x((place(b, columns, k), j))", "x((k, j))"),
            "outside of its array"),
           ("def row_loop(b, outs, operands):\n    [out], _ = outs, operands\n"
            "    with b.loop(out.shape[0]) as i, b.loop(out.shape[1]) as j:\n"
            "        b.store(out, (i, j), 0)", "no loop goes over")],
    afterthought="which of the two is quicker for a vector, where `count` is 1?",
    hints=["`b.load(out, (i, j))` is what stands there now"])


# -- transposed ------------------------------------------------------------------------------------

def _parts(data: Any, *places: Any) -> tuple[np.ndarray, ...]:
    """Numbers of a sparse matrix, and their places."""
    return np.array(data, np.float32), *[np.array(part, np.int32) for part in places]


def grade_transposed(transposed: Callable) -> None:
    random = np.random.default_rng(32)
    matrices = [np.array([[0, 2, 0], [0, 0, 0], [3, 0, 4]], np.float32),
                *(_random_matrix(random, *random.integers(3, 7, 2)) for _ in range(4))]
    for dense in matrices:
        inputs, expected = f"the matrix {dense.tolist()}", _csr(dense.T)
        with wanting(inputs, expected):
            answer = transposed(*_csr(dense), dense.shape[1])
        _check_parts(inputs, answer, expected,
                     data="the numbers of a row stand together: sort them by their old columns",
                     columns="a number's new column is its old row",
                     starts="row i begins where the rows before it end; an empty row, too",
                     stops="how many numbers were in each column? A column may be empty")
    data, *places = _csr(matrices[0])
    inputs = f"the matrix {matrices[0].tolist()}, of which the number 2 is a 0 now,"
    expected = (data[[1, 0, 2]] * [1, 0, 1], *_csr(matrices[0].T)[1:])
    _check_parts(inputs, transposed(np.where(data == 2, np.float32(0), data), *places, 3),
                 tuple(part.astype(right.dtype) for part, right in zip(
                     expected, _csr(matrices[0].T), strict=True)),
                 data="a number that is 0 has its place as well: `data` may change later")
    twice = _parts([1, 2, 4], [1, 1, 0], [0, 2], [2, 3])
    _check_parts("the numbers 1 and 2 at one place, and 4 below, left of them,",
                 transposed(*twice, 2),
                 _parts([4, 1, 2], [1, 0, 0], [0, 1], [1, 3]),
                 data="both numbers of a place are kept, in their order")
    data, columns = random.permutation(600).astype(np.float32), random.integers(0, 4, 600)
    order = np.lexsort((np.arange(600), columns))
    stops = np.cumsum(np.bincount(columns, minlength=5))
    _check_parts("30 rows of 20 numbers, in 5 columns, many of them at one place,",
                 transposed(*_parts(data, columns, np.arange(30) * 20, np.arange(1, 31) * 20), 5),
                 _parts(data[order], order // 20, np.concatenate([[0], stops[:-1]]), stops),
                 data="the numbers of a place are kept in their order: the sort has to be stable, "
                      "and look at no number")


_TRANSPOSED = """
def transposed(data, columns, starts, stops, count):
    rows = np.repeat(np.arange(len(starts)), stops - starts)
    order = np.argsort({key}, kind="stable")
    counts = np.bincount(columns{minlength})
    stops = np.cumsum(counts)
    return ({data}, {columns}.astype(np.int32), (stops - counts).astype(np.int32),
            stops.astype(np.int32))
"""


def _transposed_text(key: str = "columns", minlength: str = ", minlength=count",
                     data: str = "data[order]", columns: str = "rows[order]") -> str:
    return _TRANSPOSED.format(key=key, minlength=minlength, data=data, columns=columns)


exercise(
    "transposed", chapter=CHAPTER, grade=grade_transposed, solution=_transposed_text(),
    wrong=[(_transposed_text(data="data"), "sort them by"),
           (_transposed_text(columns="columns[order]"), "its old row"),
           (_transposed_text(minlength=""), "an empty row"),
           ("def transposed(data, columns, starts, stops, count):\n"
            "    dense = np.zeros((count, len(starts)), data.dtype)\n"
            "    rows = np.repeat(np.arange(len(starts)), stops - starts)\n"
            "    dense[columns, rows] = data\n    rows, columns = np.nonzero(dense)\n"
            "    counts = np.bincount(rows, minlength=count)\n    stops = np.cumsum(counts)\n"
            "    return (dense[rows, columns], *(x.astype(np.int32) for x in (columns, "
            "stops - counts, stops)))", "has its place as well"),
           (_transposed_text(key="rows"), "sort them by"),
           (_TRANSPOSED.replace('np.argsort({key}, kind="stable")', "np.lexsort((data, rows, "
                                "columns))").format(
               data="data[order]", columns="rows[order]", minlength=", minlength=count"),
            "in their order"),
           ("def transposed(data, columns, starts, stops, count):\n"
            "    rows = np.repeat(np.arange(len(starts)), stops - starts)\n"
            "    found = dict(zip(zip(columns, rows), data))\n    keys = sorted(found)\n"
            "    counts = np.bincount([c for c, _ in keys], minlength=count)\n"
            "    stops = np.cumsum(counts)\n"
            "    return (np.array([found[k] for k in keys], data.dtype), *(np.array(x, np.int32)\n"
            "            for x in ([r for _, r in keys], stops - counts, stops)))",
            "both numbers of"),
           ("def transposed(data, columns, starts, stops, count):\n"
            "    return data, columns, stops, starts", "`data`")],
    hints=["`np.argsort(columns, kind='stable')` leaves equal columns in the order of the rows"])


# -- my_examples -----------------------------------------------------------------------------------

# What is wrong with a block, where, the law that finds it, and what an example needs.
_FAULTS: Sequence[tuple[str, tuple[str, str], laws.Law, str]] = [
    ("`.at[].set` in place of `.at[].add` in the transpose", (".add(", ".set("),
     laws.vjp_agrees_with_jvp, "it shows where two rows have a number in the same column"),
    ("an `impl` by `np.add.reduceat`",
     ("rows = [data[start:stop] @ x[columns[start:stop]] for start, stop in zip(starts, stops)]",
      "rows = np.add.reduceat(np.vstack([data[:, None] * x[columns], 0 * x[:1]]), starts)"
      " if len(starts) else []"),
     laws.compiled_is_the_meaning, "where a row is empty, `reduceat` gives a number and not 0"),
    ("a batch rule that shifts columns by the number of rows", ("height * number", "rows * number"),
     laws.vmap_is_a_python_loop, "in a square matrix there are as many rows as columns"),
    ("a loop that reads the first column of x for all",
     ("x((place(b, columns, k), j))", "x((place(b, columns, k), 0))"),
     laws.compiled_is_the_meaning, "it shows where x has several columns, with other numbers"),
    ("a loop that adds up in float32",
     ("b.store(out, (i, j), b.read(total))",
      "b.store(out, (i, j), b.convert(b.convert(b.read(total), np.float32), out.dtype))"),
     laws.compiled_is_the_meaning, "it shows with float64, and numbers that float32 cannot hold"),
    ("an `impl` by `np.vstack`", (
        "return [np.array(rows, x.dtype).reshape(len(starts), x.shape[1])]",
        "return [np.vstack(rows).astype(x.dtype)]"),
     laws.the_meaning_has_the_type_that_was_promised, "a matrix may have no rows at all"),
]


def grade_my_examples(my_examples: Callable) -> None:
    examples = my_examples()
    expect(isinstance(examples, list) and all(isinstance(e, core.Example) for e in examples),
           f"a list of `core.Example` is wanted, and yours is {examples!r:.100}")
    expect(0 < len(examples) <= 12, f"from one to twelve examples are wanted; yours are "
           f"{len(examples)}")
    right = _block()
    for law in {law.__name__: law for _, _, law, _ in _FAULTS}.values():
        complaint = _complaint(law, right, examples)
        expect(not complaint, f"on your examples the right block breaks a law: {complaint}")
    for name, change, law, hint in _FAULTS:
        expect(_complaint(law, _block(change), examples), f"your examples do not find {name}\n"
               f"{hint}")


def _complaint(law: laws.Law, p: core.Primitive, examples: Sequence[core.Example]) -> str:
    return laws.complaint_of(lambda: law(p, [laws.Case(p, example) for example in examples]))


_EXAMPLES = """
def my_examples():
    def example(dense, count, dtype):
        dense = np.array(dense, dtype)
        rows, columns = np.nonzero(dense)
        counts = np.bincount(rows, minlength=len(dense)).astype(np.int32)
        stops = np.cumsum(counts, dtype=np.int32)
        x = {x}
        return core.Example((dense[rows, columns], columns.astype(np.int32), stops - counts, stops,
                             x.astype(dtype)))
    dense = {dense}
    return [{chosen}]
"""


def _examples_text(dense: str = "[[0, 2, 0, 0.1], [0, 0, 0, 0], [3, 0, -1, 5]]",
                   x: str = "np.cos(np.arange(dense.shape[1] * count)).reshape("
                            "dense.shape[1], count)",
                   chosen: str = "example(dense, 2, np.float64), example(dense, 1, np.float32), "
                                 "example(np.zeros((0, 3)), 2, np.float32)") -> str:
    return _EXAMPLES.format(dense=dense, x=x, chosen=chosen)


exercise(
    "my_examples", chapter=CHAPTER, grade=grade_my_examples, solution=_examples_text(), given=BLOCK,
    wrong=[(_examples_text(dense="[[0, 2, 0], [0, 0, 0], [3, 0.1, -1]]"), "in a square matrix"),
           (_examples_text(dense="[[0, 2, 0, 0], [0, 0, 0, 0], [3, 0, -1, 5]]"), "in the same col"),
           (_examples_text(dense="[[0, 2, 0, 0.1], [3, 0, -1, 5]]"), "where a row is empty"),
           (_examples_text(chosen="example(dense, 1, np.float64), "
                                  "example(np.zeros((0, 3)), 2, np.float32)"), "several columns"),
           (_examples_text(chosen="example(dense, 2, np.float32), "
                                  "example(np.zeros((0, 3)), 2, np.float32)"), "cannot hold"),
           (_examples_text(chosen="example(dense, 2, np.float64)"), "no rows at all"),
           ("def my_examples():\n    return []", "from one to twelve"),
           ("def my_examples():\n    return [(1.0, 2.0)]", "a list of `core.Example`")],
    right=[_examples_text(dense="[[1.1, 2, 0], [0, 0, 0], [0, 1.3, 0], [0, 4, 4]]",
                          x="np.random.default_rng(0).normal(size=(dense.shape[1], count))",
                          chosen="example(dense, 3, np.float64), "
                                 "example(np.zeros((0, 2)), 1, np.float64)")],
    afterthought="an example for each kind of mistake is worth more than many of one kind",
    hints=["think of rows and columns that are empty, or shared; of shapes; and of dtypes"])


# -- sampled_p -------------------------------------------------------------------------------------

def _sampled_examples(seed: int) -> list[core.Example]:
    """Places drawn at random, some of them twice; then no places, and no columns."""
    random = np.random.default_rng(seed)

    def example(dtype: Any, height: int, width: int, count: int, places: int) -> core.Example:
        a, b = (random.integers(-4, 5, (n, count)).astype(dtype) for n in (height, width))
        rows, columns = (random.integers(0, n, places).astype(np.int32) for n in (height, width))
        return core.Example((a, b, rows, columns))
    return [example(np.float64, 3, 4, 2, 7), example(np.float32, 2, 5, 3, 4),
            example(np.float32, 4, 2, 1, 6), example(np.float32, 3, 3, 2, 0),
            example(np.float32, 2, 3, 0, 4)]


_WORDS = {
    "vmap_is_a_python_loop": "a batch of pairs of matrices is one pair of tall matrices: shift "
                             "rows and columns, as the chapter does",
    "jvp_does_not_change_the_primal": "which operand does each tangent take the place of?",
    "jvp_is_the_slope": "the operation is linear in `a`, and in `b`: two terms",
    "vjp_agrees_with_jvp": "which rows of `a` does a place read? One may be read twice: add",
    "compiled_is_the_meaning": "the loop does not give what `impl` gives",
    "launches_are_the_meaning": "on the emulator the loop does not give what `impl` gives"}


def grade_sampled(p: Any) -> None:
    expect(isinstance(p, core.Primitive), f"a `core.Primitive` is wanted, and yours is {p!r:.100}")
    examples = _sampled_examples(seed=33)
    complaint = laws.complaint_of(lambda: laws.check_slots(p))
    expect(not complaint, complaint)
    for example in examples:
        a, b, rows, columns = example.args
        inputs = f"a of shape {a.shape}, b of shape {b.shape} and {len(rows)} places"
        expected = np.sum(a[rows] * b[columns], axis=1)
        with wanting(inputs, expected, what="`impl`"):
            [result] = p.impl(*example.args)
        agree(inputs, result, expected, what="`impl`")
    a, b, rows, columns = examples[0].args
    for name, args in {"columns of other numbers": (a, b[:, :1], rows, columns),
                       "fewer rows than columns": (a, b, rows[1:], columns),
                       "two dtypes": (a.astype(np.float32), b, rows, columns)}.items():
        with jax.enable_x64(True):
            complaint = laws.complaint_of(functools.partial(jax.eval_shape, p.bind, *args))
        expect(complaint.startswith("TypeError"), f"for {name} a TypeError is wanted from "
               f"`abstract_eval`, and yours {'raises ' + complaint if complaint else 'takes it'}")
    own = p.examples()
    expect(own, "your block has no examples: they are its tests")
    expect(all(isinstance(each, core.Example) for each in own), "the examples of your block are "
           f"`core.Example`s, and yours are {own!r:.100}")
    for law, those in (*((law, examples) for law in laws.LAWS), *((law, own) for law in laws.LAWS)):
        complaint = _complaint(law, p, those)
        name = law.__name__
        expect(not complaint, f"the law does not hold that {name.replace('_', ' ')}: {complaint}"
               + (f"\n{_WORDS.get(name, '')}" if those is examples else
                  "\nit does for others: what is wrong with this example of your block?"))


_SAMPLED = """
from minijax import core

def sampled_type(a, b, rows, columns):
    {check}
    return [core.ShapedArray(rows.shape, a.dtype)]

def sampled_loop(s, outs, operands):
    [out], [a, b, rows, columns] = outs, operands
    with s.loop(out.shape[0], vectorize="parallel") as k:
        row, column = (s.convert(x((k,)), np.int64) for x in (rows, columns))
        total = s.variable(0, out.dtype)
        with s.loop(a.shape[1]) as j:
            s.assign(total, s.add(s.read(total), s.mul(a((row, j)), b(({column}, j)))))
        s.store(out, (k,), s.read(total))

def sampled_jvp(primals, tangents):
    a, b, rows, columns = primals
    terms = [sampled_p.bind(*args, rows, columns) for args, t in (
        ((tangents[0], b), tangents[0]), {second}) if not isinstance(t, core.Zero)]
    return [sampled_p.bind(*primals)], [sum(terms[1:], terms[0])]

def sampled_transpose(cotangents, a, b, rows, columns):
    [ct] = cotangents
    def spread(x, places, other):
        return jnp.zeros(x.aval.shape, x.aval.dtype).at[places].{add}(ct[:, None] * other)
    if isinstance(a, core.Undefined):
        return [spread(a, rows, b[columns]), None, None, None]
    return [None, spread(b, columns, a[rows]), None, None]

def sampled_batch(axis, args, dims):
    a, b, rows, columns = (
        jnp.broadcast_to(x, (axis.size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
        for x, d in zip(args, dims))
    n = axis.size
    number = jnp.arange(n, dtype=rows.dtype)[:, None]
    out = sampled_p.bind(
        a.reshape(n * a.shape[1], a.shape[2]), b.reshape(n * b.shape[1], b.shape[2]),
        (rows + {height} * number).reshape(n * rows.shape[1]),
        (columns + b.shape[1] * number).reshape(n * rows.shape[1]))
    return [out.reshape(n, rows.shape[1])], [0]

def sampled_examples():
    a, b = np.arange(6.0).reshape(3, 2), np.arange(8.0).reshape(4, 2) - 3
    rows, columns = np.array([0, 2, 2], np.int32), np.array([3, 0, 1], np.int32)
    return [core.Example((a, b, rows, columns)),
            core.Example((a.astype(np.float32), b.astype(np.float32), rows, columns))]

sampled_p = core.Primitive(
    "sampled", impl=lambda a, b, rows, columns: [{impl}],
    abstract_eval=sampled_type, jvp=sampled_jvp, transpose=sampled_transpose,
    batch={batch}, loop={loop}, examples=sampled_examples, may_produce_nan=True)
"""


def _sampled_text(
        check: str = "if (a.dtype != b.dtype or rows.shape != columns.shape\n"
                     "            or a.shape[1:] != b.shape[1:]):\n"
                     '        raise TypeError(f"no two matrices and places: {a}, {b}, {rows}, '
                     '{columns}")',
        second: str = "((a, tangents[1]), tangents[1])", add: str = "add", column: str = "column",
        height: str = "a.shape[1]", batch: str = "sampled_batch", loop: str = "sampled_loop",
        impl: str = "np.sum(a[rows] * b[columns], axis=1)") -> str:
    return _SAMPLED.format(check=check, second=second, add=add, column=column, height=height,
                           batch=batch, loop=loop, impl=impl)


exercise(
    "sampled_p", chapter=CHAPTER, grade=grade_sampled, solution=_sampled_text(),
    wrong=[(_sampled_text(impl="a[rows] @ b[columns].T"), "`impl`"),
           (_sampled_text(impl="np.sum(a[columns] * b[rows], axis=1)"), "`impl`"),
           (_sampled_text(check="pass"), "a TypeError is wanted"),
           (_sampled_text(second="((b, tangents[1]), tangents[1])"), "take the place of"),
           (_sampled_text(second="((a, b), tangents[1])"), "two terms"),
           (_sampled_text(add="set"), "read twice"),
           (_sampled_text(height="b.shape[1]"), "tall matrices"),
           (_sampled_text(batch="None"), "has no batch"),
           (_sampled_text(loop="None"), "exactly one of"),
           (_sampled_text().replace("rows + a.shape[1]", "rows - a.shape[1]"), "tall matrices"),
           (_sampled_text().replace("np.array([0, 2, 2]", "np.array([0, 3, 2]"), "this example"),
           (_sampled_text().replace("core.Example((a, b, rows, columns))", "(a, b, rows, columns)"),
            "`core.Example`s"),
           (_sampled_text(column="row"), "what `impl` gives"),
           ("def sampled_p(a, b, rows, columns):\n    return (a[rows] * b[columns]).sum(1)",
            "a `core.Primitive`")],
    right=[_sampled_text(loop="None, element=lambda s, at, a, b, rows, columns: Reduction(\n"
                         '        "add", a.dtype, (a.shape[1],), lambda j: s.mul(\n'
                         "            a((s.convert(rows(at), np.int64), j)),\n"
                         "            b((s.convert(columns(at), np.int64), j))), lambda x: x)",
                         ).replace("from minijax import core\n", "from minijax import core\n"
                                   "from minijax.primitives.slots import Reduction\n")],
    hints=["begin with a copy of the chapter's block, and change one rule after another"])
