"""Fourier transforms by Stockham: radix by radix between two halves of scratch.

A length with a large prime factor is a convolution (Bluestein), a long one is a matrix: its columns
are transformed, then its rows.  Chapter 24, *Loops and Numba*.
In JAX: XLA's call of DUCC on the CPU.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.primitives.lengths import LONGEST, goes_in_steps, prime_factors
from minijax.primitives.slots import nest

WHOLE = (16, 8)  # numbers in vectors
COLUMNS = 16  # that are transformed side by side

Complex = tuple[Any, Any]


def read(parts: Sequence, at: tuple) -> Complex:
    return parts[0](at), parts[1](at)


def write(parts: Sequence, at: tuple, z: Complex) -> None:
    for x, part in zip(parts, z, strict=True):
        x.store(at, part)


def scratch(b: Any, shape: tuple[int, ...], dtype: Any) -> list:
    """Room for complex numbers."""
    return [b.value(b.temp(shape, dtype)) for _ in range(2)]


# ── The rules ────────────────────────────────────────────────────────────────────────────────

class Rows(NamedTuple):
    """Rows in memory or in formulas: what loads and stores their numbers."""

    load: Callable[..., Complex]
    store: Callable[..., None]


def fourier(b: Any, outputs: list, operands: list, *, axis: int) -> None:
    """The transform along an axis."""
    shape, dtype = outputs[0].shape, outputs[0].dtype
    rows, n, columns = shape[:axis], shape[axis], shape[axis + 1:]

    def beside(row: tuple, first: Any, width: int) -> None:
        def at(i: Any, j: Any) -> tuple:
            return (*row, i, *b.unravel(b.add(first, j), columns))
        _by_radices(b, n, width, dtype, lambda i, j: read(operands, at(i, j)),
                    lambda i, j, z: write(outputs, at(i, j), z))

    if math.prod(columns) > 1:
        _in_columns(b, rows, math.prod(columns), beside)
    elif math.prod(shape):
        after = (0,) * len(columns)
        _transform(b, rows, n, Rows(lambda row, i: read(operands, (*row, i, *after)),
                                    lambda row, i, z: write(outputs, (*row, i, *after), z)), dtype)


def of_real(b: Any, outputs: list, operands: list) -> None:
    """The first half of the transform of real rows: of their pairs as complex numbers, unfolded."""
    [x], half = operands, operands[0].shape[-1] // 2
    table = b.constant(roots(2 * half, x.dtype)[:, :half + 1])
    with nest(b, x.shape[:-1], "parallel") as row:
        found = scratch(b, (half,), x.dtype)

        def pair(i: Any, j: Any) -> Complex:
            at = b.mul(b.index(i), 2)
            return x((*row, at)), x((*row, b.add(at, 1)))

        def unfolded(k: Any) -> Complex:
            z, other = read(found, (k,)), read(found, (b.sub(half, k),))
            even = b.mul(b.add(z[0], other[0]), .5), b.mul(b.sub(z[1], other[1]), .5)
            odd = b.mul(b.add(z[1], other[1]), .5), b.mul(b.sub(other[0], z[0]), .5)
            return _each(b.add, even, times(b, odd, (table((0, k)), table((1, k)))))

        _by_radices(b, half, 1, x.dtype, pair, lambda i, j, z: write(found, (i,), z))
        total, other = read(found, (0,))
        write(outputs, (*row, 0), (b.add(total, other), 0))
        write(outputs, (*row, half), (b.sub(total, other), 0))
        with b.loop(half, 1, vectorize="parallel") as k:
            write(outputs, (*row, k), unfolded(b.index(k)))


def to_real(b: Any, outputs: list, operands: list) -> None:
    """The inverse, but for a factor: of half a spectrum that is folded, the numbers as pairs."""
    [out], [x, y] = outputs, operands
    half = x.shape[-1] - 1
    table = b.constant(roots(2 * half, x.dtype)[:, :half])
    with nest(b, x.shape[:-1], "parallel") as row:
        def folded(i: Any, j: Any) -> Complex:
            i = b.index(i)
            here, there = (*row, i), (*row, b.sub(half, i))
            re, other = x(here), x(there)
            # What stands at the ends counts as real.
            im, below = (b.select(b.eq(i, 0), b.const(0, x.dtype), y(at)) for at in (here, there))
            turned = times(b, (b.sub(re, other), b.add(im, below)),
                           (table((0, i)), b.neg(table((1, i)))))
            return b.add(b.sub(im, below), turned[0]), b.sub(b.add(re, other), turned[1])

        def put(i: Any, j: Any, z: Complex) -> None:
            at = b.mul(b.index(i), 2)
            out.store((*row, at), z[1])
            out.store((*row, b.add(at, 1)), z[0])
        _by_radices(b, half, 1, x.dtype, folded, put)


def _transform(b: Any, rows: tuple[int, ...], n: int, of: Rows, dtype: Any) -> None:
    """Each of many rows of n numbers."""
    if not goes_in_steps(n):
        _by_convolution(b, rows, n, of, dtype)
    elif n > LONGEST:
        _by_columns(b, rows, n, of, dtype)
    else:
        with nest(b, rows, "parallel") as row:
            _by_radices(b, n, 1, dtype, lambda i, j: of.load(row, i),
                        lambda i, j, z: of.store(row, i, z))


def _in_columns(b: Any, rows: tuple[int, ...], count: int, take: Callable) -> None:
    """``take(row, first, width)`` for each block of columns in each row."""
    with nest(b, rows, "parallel") as row:
        b.in_blocks(count, min(COLUMNS, count), lambda _, first, width: take(row, first, width))


# ── Plans ────────────────────────────────────────────────────────────────────────────────────

def radices(n: int) -> list[int]:
    """In what steps a row is transformed: eights, what is left of twos, odd primes.

    The first step stores with strides, of which vectors make up to eight; all others in stretches
    as long as what has been done, so that what is small comes late. (Measured.)

    >>> radices(96), radices(240), radices(250), radices(1024)
    ([4, 8, 3], [8, 6, 5], [5, 5, 5, 2], [4, 8, 8, 4])
    """
    primes = prime_factors(n)
    eights, left = divmod(primes.count(2), 3)
    odd, twos = [p for p in primes if p > 2], [1 << left] * (left > 0)
    if left <= odd.count(3):
        odd[:left], twos = [6] * left, []
    elif left == 1 and eights:
        eights, twos = eights - 1, [4, 4]
    steps = sorted([8] * eights + twos + odd, key=lambda r: (r > 8, -r))
    if 4 in twos and eights:
        steps.remove(4)
        steps.insert(0, 4)
    return steps


def smooth_above(n: int) -> int:
    """The least product of twos and at most one three or five that is not below n."""
    return min(k << max(0, math.ceil(math.log2(n / k))) for k in (1, 3, 5))


def roots(n: int, dtype: Any) -> np.ndarray:
    """``exp(-2πik/n)`` for k below n: real parts, then imaginary ones."""
    z = np.exp(-2j * np.pi * np.arange(n) / n)
    return np.stack([z.real, z.imag]).astype(dtype)


# ── One row, or columns side by side ─────────────────────────────────────────────────────────

def _by_radices(b: Any, n: int, width: int, dtype: Any, load: Callable, store: Callable) -> None:
    """n numbers of each of `width` columns, from ``load(i, j)`` to ``store(i, j, z)``.

    After some steps there are `left` transforms, each of `stride` numbers, of every `left`-th one
    that was given.  A step turns r of the transforms and joins them to one.
    """
    steps = radices(n) or [1]
    halves = scratch(b, (2, n * width), dtype) if len(steps) > 1 else []
    stride, left = 1, n
    across = width == 1
    for k, r in enumerate(steps):
        left //= r
        onward = across and not _goes_along(stride, r)
        _step(b, n, width, (k, r, stride, left), (across, onward), dtype,
              load if k == 0 else lambda at, c, k=k: read(halves, (
                  (k - 1) % 2, b.add(b.mul(at, width), c))),
              store if left == 1 else lambda at, c, z, k=k: write(halves, (
                  k % 2, b.add(b.mul(at, width), c)), z))
        stride *= r
        across = onward


def _goes_along(stride: int, r: int) -> bool:
    """Whether the numbers of a transform lie side by side after a step, and not those of all
    transforms: they fill a vector, or are shuffled easily.
    """
    return stride * r >= 8 or stride * r in (2, 4)


@contextlib.contextmanager
def _side_by_side(b: Any, n: int, again: bool) -> Iterator:
    """A loop in whole vectors; where what is computed `again` is not seen, the last overlap."""
    lanes = next((lanes for lanes in WHOLE if lanes < n), 0)
    if not (again and lanes and n % WHOLE[-1]):
        with b.loop(n, vectorize="parallel") as i:
            yield b.index(i)
        return
    with b.loop(-(-n // lanes)) as i:  # its turns write what others have written
        first = b.operation("min", (b.mul(b.index(i), lanes), b.index(n - lanes)))
        with b.loop(lanes, vectorize="parallel") as j:
            yield b.add(first, b.index(j))


def _step(b: Any, n: int, width: int, step: tuple[int, ...], across: tuple[bool, bool], dtype: Any,
          load: Callable, store: Callable) -> None:
    """Transforms of r times as many numbers, of r transforms each."""
    k, r, stride, left = step
    table = b.constant(roots(n, dtype)[:, np.outer(np.arange(r), np.arange(stride)) * left])
    counts = (stride, left) if across[0] else (left, stride)
    with (b.loop(counts[0], vectorize="parallel") as outer,
          _side_by_side(b, counts[1], width == 1 and n > r) as inner,
          b.loop(width, vectorize="parallel") as c):
        outer = b.index(outer)
        p, s = (inner, outer) if across[0] else (outer, inner)

        def given(j: int) -> Any:
            if across[0]:
                return b.add(b.mul(s, left * r), b.add(p, j * left))
            return b.add(b.mul(b.add(p, j * left), stride), s)

        def found(j: int) -> Any:
            if across[1]:
                return b.add(b.mul(b.add(s, j * stride), left), p)
            return b.add(b.mul(b.add(b.mul(p, r), j), stride), s)
        zs = [load(given(j), c) for j in range(r)]
        turned = [times(b, z, (table((0, j, s)), table((1, j, s)))) if j and k else z
                  for j, z in enumerate(zs)]
        for j, z in enumerate(small(b, turned)):
            store(found(j), c, z)


def times(b: Any, z: Complex, w: Complex) -> Complex:
    return (b.fma(z[0], w[0], b.neg(b.mul(z[1], w[1]))), b.fma(z[0], w[1], b.mul(z[1], w[0])))


def small(b: Any, zs: list[Complex]) -> list[Complex]:
    """The transform of few numbers, in registers."""
    n = len(zs)
    if n == 1:
        return zs
    if n % 2:
        return _prime(b, zs)
    even, odd = small(b, zs[::2]), small(b, zs[1::2])
    turned = [_by_root(b, z, k, n) for k, z in enumerate(odd)]
    pairs = list(zip(even, turned, strict=True))
    return [_each(b.add, z, w) for z, w in pairs] + [_each(b.sub, z, w) for z, w in pairs]


def _each(f: Callable, z: Complex, w: Complex) -> Complex:
    return f(z[0], w[0]), f(z[1], w[1])


def _by_root(b: Any, z: Complex, k: int, n: int) -> Complex:
    """Times ``exp(-2πik/n)``, for k below n / 2."""
    x, y = z
    if 4 * k == n:
        return y, b.neg(x)
    if k == 0:
        return z
    if 8 * k in (n, 3 * n):
        half, plus, minus = math.sqrt(.5), b.add(x, y), b.sub(y, x)
        return (b.mul(plus, half), b.mul(minus, half)) if 8 * k == n else (
            b.mul(minus, half), b.mul(plus, -half))
    angle = 2 * math.pi * k / n
    return times(b, z, (b.const(math.cos(angle), x.dtype), b.const(-math.sin(angle), x.dtype)))


def _prime(b: Any, zs: list[Complex]) -> list[Complex]:
    """An odd number of numbers: sums and differences of those that mirror each other."""
    n, first = len(zs), zs[0]
    sums = [_each(b.add, zs[k], zs[-k]) for k in range(1, n // 2 + 1)]
    gaps = [_each(b.sub, zs[k], zs[-k]) for k in range(1, n // 2 + 1)]
    found = {0: first}
    for z in sums:
        found[0] = _each(b.add, found[0], z)
    for j in range(1, n // 2 + 1):
        even, odd = first, (b.const(0, first[0].dtype),) * 2
        for k, (z, w) in enumerate(zip(sums, gaps, strict=True), 1):
            angle = 2 * math.pi * (j * k % n) / n
            cos, sin = (b.const(f(angle), first[0].dtype) for f in (math.cos, math.sin))
            even = b.fma(z[0], cos, even[0]), b.fma(z[1], cos, even[1])
            odd = (b.mul(w[0], sin), b.mul(w[1], sin)) if k == 1 else (
                b.fma(w[0], sin, odd[0]), b.fma(w[1], sin, odd[1]))
        found[j] = b.add(even[0], odd[1]), b.sub(even[1], odd[0])
        found[n - j] = b.sub(even[0], odd[1]), b.add(even[1], odd[0])
    return [found[j] for j in range(n)]


# ── Long rows ────────────────────────────────────────────────────────────────────────────────

def _by_columns(b: Any, rows: tuple[int, ...], n: int, of: Rows, dtype: Any) -> None:
    """A row as a matrix: its columns; each number turned by its place; its rows, stored as columns.
    """
    below = _divisor(n)
    above = n // below
    between = scratch(b, (*rows, n), dtype)
    step = 1 << (n.bit_length() + 1) // 2
    fine, coarse = (b.constant(table) for table in (
        roots(n, np.float64)[:, :step].astype(dtype),
        roots(n, np.float64)[:, ::step].astype(dtype)))

    def root(at: Any) -> Complex:
        low, high = b.rem(at, step), b.div(at, step)
        return times(b, (fine((0, low)), fine((1, low))), (coarse((0, high)), coarse((1, high))))

    def columns(row: tuple, first: Any, width: int) -> None:
        at = lambda i, j: b.add(b.add(b.mul(b.index(i), below), first), j)
        def put(i: Any, j: Any, z: Complex) -> None:
            turned = times(b, z, root(b.mul(i, b.add(first, j))))
            write(between, (*row, at(i, j)), turned)
        _by_radices(b, above, width, dtype, lambda i, j: of.load(row, at(i, j)), put)

    def lines(row: tuple, first: Any, width: int) -> None:
        def load(i: Any, j: Any) -> Complex:
            at = b.add(b.mul(b.add(first, j), below), i)
            return read(between, (*row, at))
        _by_radices(b, below, width, dtype, load, lambda i, j, z: of.store(
            row, b.add(b.add(b.mul(i, above), first), j), z))

    _in_columns(b, rows, below, columns)
    _in_columns(b, rows, above, lines)


def _divisor(n: int) -> int:
    """The divisor next to the root."""
    return max(k for k in range(1, math.isqrt(n) + 1) if n % k == 0)


# ── Prime factors that are large ─────────────────────────────────────────────────────────────

def _by_convolution(b: Any, rows: tuple[int, ...], n: int, of: Rows, dtype: Any) -> None:
    """Bluestein: with ``ij = (i² + j² - (i - j)²) / 2`` the transform is a convolution."""
    size = smooth_above(2 * n - 1)
    chirp = np.exp(-1j * np.pi * (np.arange(n, dtype=np.int64) ** 2 % (2 * n)) / n)
    mirrored = np.zeros(size, complex)
    mirrored[:n] = chirp.conj()
    mirrored[size - n + 1:] = chirp[:0:-1].conj()
    turn, spectrum = (b.constant(np.stack([z.real, z.imag]).astype(dtype))
                      for z in (chirp, np.fft.fft(mirrored) / size))
    between = scratch(b, (*rows, size), dtype)

    def at(table: Any, i: Any) -> Complex:
        return table((0, i)), table((1, i))

    def load(row: tuple, i: Any) -> Complex:
        inside = b.lt(i, n)
        place = b.min(i, n - 1)
        found = times(b, of.load(row, place), at(turn, place))
        return tuple(b.select(inside, x, b.const(0, x.dtype)) for x in found)

    def keep(row: tuple, i: Any, z: Complex) -> None:
        write(between[::-1], (*row, i), times(b, z, at(spectrum, i)))

    def give(row: tuple, i: Any, z: Complex) -> None:
        with b.when(b.lt(i, n)):
            of.store(row, i, times(b, z[::-1], at(turn, b.min(i, n - 1))))
    _transform(b, rows, size, Rows(load, keep), dtype)
    _transform(b, rows, size, Rows(lambda row, i: read(between, (*row, i)), give), dtype)
