"""Fourier transforms of rows, by Stockham: radix by radix between two halves of scratch.

The `loop` rule of `fourier`.  A length with a large prime factor is a convolution (Bluestein), a
long one is a matrix: its columns are transformed, then its rows.  Chapter 24, *Loops and Numba*.
In JAX: XLA's call of DUCC on the CPU.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minijax.primitives.slots import nest

LONGEST = 1 << 13  # numbers in a row that is transformed in one piece: they stay in a cache
COLUMNS = 16       # that are transformed side by side where a row is a matrix
PRIME = 19         # the largest that is a radix

Complex = tuple[Any, Any]


class Rows(NamedTuple):
    """Rows in memory or in formulas: what loads and stores their numbers."""

    load: Callable[..., Complex]
    store: Callable[..., None]


def fourier(b: Any, outputs: list, operands: list) -> None:
    """The `loop` rule of the primitive of that name."""
    *rows, n = outputs[0].shape
    if not outputs[0].size:
        return

    def load(row: tuple, i: Any) -> Complex:
        return operands[0]((*row, i)), operands[1]((*row, i))

    def store(row: tuple, i: Any, z: Complex) -> None:
        for out, x in zip(outputs, z, strict=True):
            b.store(out, (*row, i), x)
    transform(b, tuple(rows), n, Rows(load, store), outputs[0].dtype)


def transform(b: Any, rows: tuple[int, ...], n: int, of: Rows, dtype: Any) -> None:
    """Each of many rows of n numbers."""
    if max(prime_factors(n), default=1) > PRIME:
        _by_convolution(b, rows, n, of, dtype)
    elif n > LONGEST:
        _by_columns(b, rows, n, of, dtype)
    else:
        with nest(b, rows, "parallel") as row:
            _by_radices(b, n, 1, dtype, lambda i, j: of.load(row, i),
                      lambda i, j, z: of.store(row, i, z))


# ── Plans ────────────────────────────────────────────────────────────────────────────────────

def prime_factors(n: int) -> list[int]:
    """The primes of which n is the product, the smallest first.

    >>> prime_factors(360)
    [2, 2, 2, 3, 3, 5]
    """
    found: list[int] = []
    p = 2
    while p * p <= n:
        while n % p == 0:
            found, n = [*found, p], n // p
        p += 1
    return [*found, n] if n > 1 else found


def radices(n: int) -> list[int]:
    """In what steps a row is transformed: eights, then what is left of twos, then odd primes.

    >>> radices(96), radices(1024)
    ([8, 4, 3], [8, 8, 4, 4])
    """
    primes = prime_factors(n)
    twos = primes.count(2)
    eights = next((k for k in range(twos // 3, -1, -1) if (twos - 3 * k) % 2 == 0), 0)
    left = twos - 3 * eights
    steps = [8] * eights + [4] * (left // 2) + [2] * (left % 2)
    return (steps if twos != 1 else [2]) + primes[twos:]


def smooth_above(n: int) -> int:
    """The least product of twos and at most one three or five that is not below n."""
    return min(k << max(0, math.ceil(math.log2(n / k))) for k in (1, 3, 5))


def roots(n: int, dtype: Any) -> np.ndarray:
    """``exp(-2πik/n)`` for k below n: real parts, then imaginary ones."""
    z = np.exp(-2j * np.pi * np.arange(n) / n)
    return np.stack([z.real, z.imag]).astype(dtype)


# ── One row, or columns side by side ─────────────────────────────────────────────────────────

def _by_radices(b: Any, n: int, width: int, dtype: Any, load: Callable, store: Callable) -> None:
    """n numbers of each of `width` columns, from ``load(i, j)`` to ``store(i, j, z)``."""
    steps = radices(n) or [1]
    halves = [b.temp((2, n * width), dtype) for _ in range(2)] if len(steps) > 1 else []
    table = b.constant(roots(n, dtype))
    stride, left = 1, n
    for k, r in enumerate(steps):
        left //= r
        first, last = k == 0, k == len(steps) - 1
        wide = stride * width

        def take(i: Any, q: Any, first: bool = first, wide: int = wide, k: int = k) -> Complex:
            if first:
                return load(i, q)
            at = b.add(b.mul(b.index(i), wide), q)
            return tuple(b.load(x, ((k - 1) % 2, at)) for x in halves)

        def put(i: Any, q: Any, z: Complex, last: bool = last, wide: int = wide, k: int = k
                ) -> None:
            if last:
                s = b.index(q) if width == 1 else b.div(b.index(q), width)
                column = b.index(0) if width == 1 else b.rem(b.index(q), width)
                store(b.add(b.mul(b.index(i), wide // width), s), column, z)
            else:
                at = b.add(b.mul(b.index(i), wide), q)
                for x, part in zip(halves, z, strict=True):
                    b.store(x, (k % 2, at), part)

        with b.loop(left, vectorize="parallel") as p, b.loop(wide, vectorize="parallel") as q:
            p = b.index(p)
            found = small(b, [take(b.add(p, j * left), q) for j in range(r)])
            for j, z in enumerate(found):
                if j and left > 1:
                    at = b.mul(p, j * stride)
                    z = times(b, z, (table((0, at)), table((1, at))))
                put(b.add(b.mul(p, r), j), q, z)
        stride *= r


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
    between = [b.temp((*rows, n), dtype) for _ in range(2)]
    step = 1 << (n.bit_length() + 1) // 2
    fine, coarse = (b.constant(table) for table in (
        roots(n, np.float64)[:, :step].astype(dtype),
        roots(n, np.float64)[:, ::step].astype(dtype)))

    def root(at: Any) -> Complex:
        low, high = b.rem(at, step), b.div(at, step)
        return times(b, (fine((0, low)), fine((1, low))), (coarse((0, high)), coarse((1, high))))

    def blocks(count: int, take: Callable) -> None:
        with nest(b, rows, "parallel") as row:
            b.in_blocks(count, min(COLUMNS, count),
                        lambda _, first, width: take(row, first, width))

    def columns(row: tuple, first: Any, width: int) -> None:
        at = lambda i, j: b.add(b.add(b.mul(b.index(i), below), first), j)
        def put(i: Any, j: Any, z: Complex) -> None:
            turned = times(b, z, root(b.mul(i, b.add(first, j))))
            for x, part in zip(between, turned, strict=True):
                b.store(x, (*row, at(i, j)), part)
        _by_radices(b, above, width, dtype, lambda i, j: of.load(row, at(i, j)), put)

    def lines(row: tuple, first: Any, width: int) -> None:
        def load(i: Any, j: Any) -> Complex:
            at = b.add(b.mul(b.add(first, j), below), i)
            return tuple(b.load(x, (*row, at)) for x in between)
        _by_radices(b, below, width, dtype, load, lambda i, j, z: of.store(
            row, b.add(b.add(b.mul(i, above), first), j), z))

    blocks(below, columns)
    blocks(above, lines)


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
    between = [b.temp((*rows, size), dtype) for _ in range(2)]

    def at(table: Any, i: Any) -> Complex:
        return table((0, i)), table((1, i))

    def load(row: tuple, i: Any) -> Complex:
        inside = b.lt(i, n)
        place = b.min(i, n - 1)
        found = times(b, of.load(row, place), at(turn, place))
        return tuple(b.select(inside, x, b.const(0, x.dtype)) for x in found)

    def keep(row: tuple, i: Any, z: Complex) -> None:
        for x, part in zip(between[::-1], times(b, z, at(spectrum, i)), strict=True):
            b.store(x, (*row, i), part)

    def give(row: tuple, i: Any, z: Complex) -> None:
        with b.when(b.lt(i, n)):
            of.store(row, i, times(b, z[::-1], at(turn, b.min(i, n - 1))))
    transform(b, rows, size, Rows(load, keep), dtype)
    transform(b, rows, size, Rows(
        lambda row, i: tuple(b.load(x, (*row, i)) for x in between), give), dtype)
