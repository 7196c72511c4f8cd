"""External routines of kernels, on addresses and int64 numbers: BLAS and LAPACK, whose matrices are
column-major, and our microkernels for matrix products and transposes.

Builds on builder.py; library.py finds the library's. Chapter 24.
In JAX: jaxlib's LAPACK kernels, and the dot emitters on Eigen and oneDNN.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from minijax.primitives.precision import allows_tf32
from minijax.primitives.summation import LONG

from . import cpu
from .builder import Builder
from .loops import INT64, Buffer, Call, Constant, Scalar, Statement, accessed

LIBRARY = "blas_"  # before the name of a routine
# Fortran takes everything by its address: that of an int64 is also that of its low bytes, of a
# letter, or of an int32, whichever integers the library has. The lengths of letters come last, all
# 1; no routine has more of them, and more arguments than it looks at do no harm.
LENGTHS = ["i64 1"] * 4
BLOCK = r"block_(halves_)?(float\d\d|u?int\d\d)_(\d+)x(\d+)(_whole)?"  # rows x columns
TRANSPOSE = r"transpose_(\d+)_(\d+)x(\d+)"  # bits of an element
# Of stacks of matrices, or of images and weights, of these dtypes; of float32 perhaps in fewer
# digits.
_DTYPE = r"([a-z]+\d*(?:_e\d+m\d+[a-z\d]*)?)"  # a name, such as float8_e4m3fn
PRODUCT, CONVOLUTION = (rf"{name}_{_DTYPE}_{_DTYPE}_{_DTYPE}(_tf32)?"
                        for name in ("product", "convolution"))
ALONE = "minijax_blas"  # of pool.py: from 1 to -1 the library uses one thread
# Parameters, buffers in registers, the lanes of a vector, statements.
Microkernel: TypeAlias = tuple[list, list[Buffer], int, list[Statement]]


def product_of(x: np.dtype, y: np.dtype, z: np.dtype, precision: Any = None,
               name: str = "product") -> str:
    """The routine of a product, or a convolution, with result z; its name ends in `_tf32` where
    that precision will do.
    """
    is_single = {x.name, y.name, z.name} == {"float32"}
    return f"{name}_{x.name}_{y.name}_{z.name}{'_tf32' * (is_single and allows_tf32(precision))}"


def work(call: Call) -> float | None:
    """The approximate cost of a call in simple operations, if it is known."""
    if match := re.fullmatch(TRANSPOSE, call.external):
        return float(max(map(int, match.groups()[1:])))
    match, k = re.fullmatch(BLOCK, call.external), call.args[5:6]
    if match is None:
        return None
    terms = int(k[0].value) if isinstance(k[0], Constant) else LONG
    return int(match[3]) * int(match[4]) * terms / 2


def reads_and_writes(call: Call) -> tuple[tuple[Buffer, ...], tuple[Buffer, ...]]:
    """The buffers that a call may read, and those that it may write; a block adds to its own part
    of the result only.
    """
    buffers = accessed(call)
    return (buffers[:-1], buffers[-1:]) if is_microkernel(call.external) else (buffers, buffers)


def is_microkernel(external: str) -> bool:
    return re.fullmatch(rf"{BLOCK}|{TRANSPOSE}", external) is not None


def microkernel(name: str) -> Microkernel:
    """A microkernel of that name."""
    return (block if re.fullmatch(BLOCK, name) else transpose)(name)


def transpose(name: str) -> Microkernel:
    """The transpose z of x: the next row of x begins `step` elements later, that of z `below`."""
    bits, rows, columns = map(int, re.fullmatch(TRANSPOSE, name).groups())  # type: ignore[union-attr]
    b, lanes, word = Builder(), max(rows, columns), np.dtype(f"uint{bits}")
    x, z = (Buffer(name, word, (), role) for name, role in (("x", "input"), ("z", "output")))
    step, below = (Scalar(name, INT64) for name in ("step", "below"))
    square = Buffer("square", word, (lanes, lanes), "local")

    def place(row: int, step: Any, column: Any) -> Any:
        return (b.add(b.mul(b.index(row), step), column),)

    with b.loop(lanes, vectorize="parallel") as j:
        for i in range(rows):
            element = partial(b.load, x, place(i, step, j))
            b.store(square, (b.index(i), j), element() if columns == lanes else b.choose(
                b.lt(j, columns), element, partial(b.const, 0, word)))
    with b.loop(lanes, vectorize="parallel") as i:
        elements = [b.load(square, (i, b.index(j))) for j in range(lanes)]
        with b.when(rows == lanes or b.lt(i, rows)):
            for j in range(columns):
                b.store(z, place(j, below, i), elements[j])
    return [x, step, z, below], [square], lanes, b.scopes[0].statements


def block(name: str) -> Microkernel:
    """The microkernel of a matrix product with `k` terms.

    A row of y and of the result, of `stop` numbers, is a vector; the next row begins `step` or
    `below` numbers later. Rows before `row` and columns before `column` are skipped; the others are
    added to the result, if `adds` is not 0. With halves a number holds two terms. The one for whole
    blocks, of which nothing is skipped, compiles in half the time.
    """
    halves, dtype, *sizes, whole = re.fullmatch(BLOCK, name).groups()  # type: ignore[union-attr]
    (rows, columns), b = map(int, sizes), Builder()
    x, y, z = (Buffer(name, np.dtype(dtype), (), role) for name, role in (
        ("x", "input"), ("y", "input"), ("z", "output")))
    sums = [Buffer("total", x.dtype, (columns,), "local") for _ in range(rows)]  # in registers
    edge = Buffer("edge", x.dtype, (rows, columns), "local")
    numbers: Any = (Scalar(name, INT64) for name in (
        "down right step terms below row column stop adds".split()))
    down, right, step, k, below, row, column, stop, adds = numbers
    parameters = [x, down, right, y, step, k, z, below, row, column, stop, adds]
    if whole:
        row, column, stop = (b.const(n, INT64) for n in (0, 0, columns))
    zero = b.const(0, x.dtype)

    def lanes() -> Any:
        return b.loop(columns, vectorize="parallel")

    def one_more(x: Any, y: Any, total: Any) -> Any:
        if zero.dtype.kind == "f" and cpu.has("fma"):
            return b.fma(x, y, total)
        return b.add(total, b.halves(x, y) if halves else b.mul(x, y))

    def sum_terms(term_at: Callable[[Any, Any], Any]) -> None:
        with b.loop(k) as i, lanes() as j:
            term = term_at(j, b.add(b.mul(i, step), j))
            for r, total in enumerate(sums):
                factor = b.load(x, (b.add(b.mul(b.index(r), down), b.mul(i, right)),))
                b.store(total, (j,), one_more(factor, term, b.load(total, (j,))))

    def put(r: Any, j: Any, total: Any, is_first: bool) -> None:
        place = (b.add(b.mul(b.index(r), below), j),)
        b.store(z, place, b.add(zero if is_first else b.load(z, place), total))

    with lanes() as j:
        for total in sums:
            b.store(total, (j,), zero)
    with b.when(b.eq(stop, columns)):
        sum_terms(lambda _, at: b.load(y, (at,)))
    with b.when(b.lt(stop, columns)):
        sum_terms(lambda j, at: b.choose(b.lt(j, stop), lambda: b.load(y, (at,)), lambda: zero))
    skipped_columns = b.or_(column, b.sub(columns, stop))
    skipped = b.or_(row, skipped_columns)
    with b.when(b.ne(skipped, 0)), lanes() as j:
        for r, total in enumerate(sums):
            b.store(edge, (r, j), b.load(total, (j,)))
    for is_first, test in (True, b.eq(adds, 0)), (False, b.ne(adds, 0)):
        with b.when(b.and_(test, b.eq(skipped, 0))), lanes() as j:
            for r, total in enumerate(sums):
                put(r, j, b.load(total, (j,)), is_first)
        with b.when(b.and_(test, b.ne(skipped, 0))), b.loop(rows, row) as r:
            with b.when(b.eq(skipped_columns, 0)), lanes() as j:
                put(r, j, b.load(edge, (r, j)), is_first)
            with b.when(b.ne(skipped_columns, 0)), b.loop(stop, column) as j:
                put(r, j, b.load(edge, (r, j)), is_first)
    return parameters, [*sums, edge], columns, b.scopes[0].statements
