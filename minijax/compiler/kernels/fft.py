"""Fourier transforms by Stockham's algorithm: radix by radix between two halves of scratch.

Columns are transformed side by side. A length with a large prime factor becomes a convolution
(Bluestein), a long row a matrix (four-step). Chapter 24, *Loops
and Numba*. In JAX: XLA's call of DUCC on the CPU.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from minijax.primitives.smooth_lengths import LONGEST, is_smooth, prime_factors
from minijax.primitives.slots import nest

from .. import cpu

COLUMNS = 16  # columns that are transformed side by side

Complex = tuple[Any, Any]


def read(parts: Sequence, at: tuple) -> Complex:
    return parts[0](at), parts[1](at)


def write(parts: Sequence, at: tuple, z: Complex) -> None:
    for x, part in zip(parts, z, strict=True):
        x.store(at, part)


def scratch(b: Any, shape: tuple[int, ...], dtype: Any) -> list:
    """A temp for complex numbers."""
    return [b.value(b.temp(shape, dtype)) for _ in range(2)]


# ── The rules ────────────────────────────────────────────────────────────────────────────────

# Numbers are loaded and stored by row, position and column: in memory, or by formulas.

def fourier(b: Any, outputs: list, operands: list, *, axis: int) -> None:
    """The transform along an axis."""
    shape, dtype = outputs[0].shape, outputs[0].dtype
    columns = shape[axis + 1:]
    at = lambda row, i, j: (*row, i, *b.unravel(j, columns))
    if math.prod(shape):
        _transform(b, shape[:axis], shape[axis], dtype, lambda *place: read(operands, at(*place)),
                   lambda row, i, j, z: write(outputs, at(row, i, j), z), math.prod(columns))


def of_real(b: Any, outputs: list, operands: list) -> None:
    """Transform real rows: as half as many complex numbers, followed by an unfolding."""
    [x], half = operands, operands[0].shape[-1] // 2
    table = roots(b, 2 * half, np.arange(half + 1), x.dtype)
    with nest(b, x.shape[:-1], "parallel") as row:
        spectrum = scratch(b, (half,), x.dtype)

        def pair(i: Any, j: Any) -> Complex:
            at = b.mul(i, 2)
            return x((*row, at)), x((*row, b.add(at, 1)))

        def unfolded(k: Any) -> Complex:
            z, other = read(spectrum, (k,)), read(spectrum, (b.sub(half, k),))
            even = b.mul(b.add(z[0], other[0]), .5), b.mul(b.sub(z[1], other[1]), .5)
            odd = b.mul(b.add(z[1], other[1]), .5), b.mul(b.sub(other[0], z[0]), .5)
            return _each(b.add, even, multiply(b, odd, read(table, (k,))))

        _stockham(b, half, 1, x.dtype, pair, lambda i, j, z: write(spectrum, (i,), z))
        total, other = read(spectrum, (0,))
        write(outputs, (*row, 0), (b.add(total, other), 0))
        write(outputs, (*row, half), (b.sub(total, other), 0))
        with b.loop(half, 1, vectorize="parallel") as k:
            write(outputs, (*row, k), unfolded(k))


def to_real(b: Any, outputs: list, operands: list) -> None:
    """The inverse without its factor: the spectrum is folded into half as many complex numbers."""
    [out], [x, y] = outputs, operands
    half = x.shape[-1] - 1
    table = roots(b, 2 * half, np.arange(half), x.dtype)
    with nest(b, x.shape[:-1], "parallel") as row:
        def folded(i: Any, j: Any) -> Complex:
            here, there = (*row, i), (*row, b.sub(half, i))
            re, other = x(here), x(there)
            # The imaginary parts of the first and the last element are ignored.
            im, below = (b.select(b.eq(i, 0), b.const(0, x.dtype), y(at)) for at in (here, there))
            odd = b.sub(re, other), b.add(im, below)
            cos, sin = read(table, (i,))
            rotated = multiply(b, odd, (cos, b.neg(sin)))
            return b.add(b.sub(im, below), rotated[0]), b.sub(b.add(re, other), rotated[1])

        def put(i: Any, j: Any, z: Complex) -> None:
            at = b.mul(i, 2)
            out.store((*row, at), z[1])
            out.store((*row, b.add(at, 1)), z[0])
        _stockham(b, half, 1, x.dtype, folded, put)


def _transform(b: Any, rows: tuple[int, ...], n: int, dtype: Any, load: Callable, store: Callable,
               count: int = 1) -> None:
    """Transform many rows of n numbers, or of such columns, `count` in each; a length of columns
    is smooth and short.
    """
    if count == 1 and not is_smooth(n):
        _bluestein(b, rows, n, dtype, load, store)
    elif count == 1 and n > LONGEST:
        _four_step(b, rows, n, dtype, load, store)
    else:
        _columns(b, rows, n, dtype, load, store, count)


def _columns(b: Any, rows: tuple[int, ...], n: int, dtype: Any, load: Callable, store: Callable,
             count: int, finish: Callable = lambda z, i, first, j: z) -> None:
    """Transform columns of n numbers, `count` in each row, which ``load(row, i, column)`` loads;
    some side by side. Element i of the j-th from the `first` on is finished before it is stored.
    """
    with nest(b, rows, "parallel") as row:
        b.in_blocks(count, min(COLUMNS, count), lambda _, first, width: _stockham(
            b, n, width, dtype, lambda i, j: load(row, i, b.add(first, j)),
            lambda i, j, z: store(row, i, b.add(first, j), finish(z, i, first, j))))


# ── Plans ────────────────────────────────────────────────────────────────────────────────────

def radices(n: int, most: int = 8) -> list[int]:
    """The radices of a transform: eights or fours, remaining twos, odd primes.

    The first step stores with strides, and vectors make up to eight of them; later steps store runs
    as long as the finished transforms, so small radices come late. (Measured.)

    >>> radices(96), radices(240), radices(250), radices(1024)
    ([4, 8, 3], [8, 6, 5], [5, 5, 5, 2], [4, 8, 8, 4])
    >>> radices(96, 4), radices(240, 4), radices(512, 4)
    ([6, 4, 4], [5, 4, 4, 3], [4, 8, 4, 4])
    """
    primes = prime_factors(n)
    count, left = divmod(primes.count(2), most.bit_length() - 1)
    odd, twos = [p for p in primes if p > 2], [1 << left] * (left > 0)
    if left <= odd.count(3):
        odd[:left], twos = [6] * left, []
    elif left == 1 and count:
        count, twos = count - 1, [4, 4] if most == 8 else [8]
    steps = sorted([most] * count + twos + odd, key=lambda r: (r > 8, -r))
    if 4 in steps and 8 in steps:
        steps.remove(4)
        steps.insert(0, 4)
    return steps


def roots(b: Any, n: int, powers: np.ndarray, dtype: Any) -> list:
    """``exp(-2πik/n)`` for some k, as constants."""
    return constants(b, np.exp(-2j * np.pi * powers / n), dtype)


def constants(b: Any, z: np.ndarray, dtype: Any) -> list:
    """The real and the imaginary parts of complex constants."""
    table = b.constant(np.stack([z.real, z.imag]).astype(dtype))
    return [table.row(0), table.row(1)]


# ── Transforms side by side ──────────────────────────────────────────────────────────────────

def _stockham(b: Any, n: int, width: int, dtype: Any, load: Callable, store: Callable) -> None:
    """Transforms of n numbers, `width` side by side, from ``load(i, j)`` to ``store(i, j, z)``.

    After some steps there are `left` transforms, each of `stride` numbers, of every `left`-th
    input. A step combines r of them, after their twiddle factors. Transforms lie side by side;
    those of a single row, once they are long, one after the other.
    """
    few_registers = width > 1 and not b.on_gpu and cpu.vector_registers()[0] < 32
    steps = radices(n, 4 if few_registers else 8) or [1]
    halves = [scratch(b, (n * width,), dtype) for _ in steps[1:3]]
    stride, left, contiguous = 1, n, False

    def place(i: Any, j: Any) -> tuple:
        return (b.add(b.mul(i, width), j),)

    for k, r in enumerate(steps):
        left //= r
        # Transforms are contiguous after a step if they fill a vector, or are easily shuffled.
        contiguous_after = contiguous or width == 1 and (stride * r >= 8 or stride * r in (2, 4))
        _butterflies(
            b, (r, stride, left, width), (contiguous, contiguous_after), dtype,
            load if k == 0 else lambda i, j, k=k: read(halves[(k - 1) % 2], place(i, j)),
            store if left == 1 else lambda i, j, z, k=k: write(halves[k % 2], place(i, j), z))
        stride, contiguous = stride * r, contiguous_after


def _butterflies(b: Any, sizes: tuple[int, ...], contiguous: tuple[bool, bool], dtype: Any,
                 load: Callable, store: Callable) -> None:
    """A butterfly step: transforms of r times the length, each from r transforms."""
    r, stride, left, width = sizes
    table = roots(b, r * stride, np.outer(np.arange(r), np.arange(stride)), dtype)
    loops, is_outer = (stride, left, width), 1 in (stride, left)
    if not is_outer and width > 1:  # positions and columns are next to each other
        loops = stride, 1, left * width
    order = -1 if contiguous[0] else 1

    def load_index(j: int) -> Any:
        if contiguous[0]:
            return b.add(b.mul(b.add(p, j * left), stride), s)
        return b.add(b.mul(s, left * r), b.add(p, j * left))

    def store_index(j: int) -> Any:
        if contiguous[1]:
            return b.add(b.mul(b.add(b.mul(p, r), j), stride), s)
        return b.add(b.mul(b.add(s, j * stride), left), p)

    with (nest(b, loops[:2][::order], "parallel" * (width == 1 or not is_outer)) as outer,
          b.loop(loops[2], vectorize="parallel") as column):
        s, p = outer[::order]
        zs = [load(load_index(j), column) for j in range(r)]
        rotated = [multiply(b, z, read(table, (j, s))) if j and stride > 1 else z
                   for j, z in enumerate(zs)]
        for j, z in enumerate(short_transform(b, rotated)):
            store(store_index(j), column, z)


def multiply(b: Any, z: Complex, w: Complex) -> Complex:
    return (b.fma(z[0], w[0], b.neg(b.mul(z[1], w[1]))), b.fma(z[0], w[1], b.mul(z[1], w[0])))


def short_transform(b: Any, zs: list[Complex]) -> list[Complex]:
    """The transform of few numbers, in registers."""
    n = len(zs)
    if n == 1:
        return zs
    if n % 2:
        return _prime(b, zs)
    even, odd = short_transform(b, zs[::2]), short_transform(b, zs[1::2])
    rotated = [_twiddled(b, z, k, n) for k, z in enumerate(odd)]
    pairs = list(zip(even, rotated, strict=True))
    return [_each(b.add, z, w) for z, w in pairs] + [_each(b.sub, z, w) for z, w in pairs]


def _each(f: Callable, z: Complex, w: Complex) -> Complex:
    return f(z[0], w[0]), f(z[1], w[1])


def _twiddled(b: Any, z: Complex, k: int, n: int) -> Complex:
    """A twiddle factor: times ``exp(-2πik/n)``, for k below n / 2."""
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
    return multiply(b, z, (b.const(math.cos(angle), x.dtype), b.const(-math.sin(angle), x.dtype)))


def _prime(b: Any, zs: list[Complex]) -> list[Complex]:
    """An odd length: sums and differences of the pairs that mirror each other."""
    n, first = len(zs), zs[0]
    sums = [_each(b.add, zs[k], zs[-k]) for k in range(1, n // 2 + 1)]
    differences = [_each(b.sub, zs[k], zs[-k]) for k in range(1, n // 2 + 1)]
    outputs = {0: reduce(partial(_each, b.add), [first, *sums])}
    for j in range(1, n // 2 + 1):
        even, odd = first, (b.const(0, first[0].dtype),) * 2
        for k, (z, w) in enumerate(zip(sums, differences, strict=True), 1):
            angle = 2 * math.pi * (j * k % n) / n
            cos, sin = (b.const(f(angle), first[0].dtype) for f in (math.cos, math.sin))
            even = b.fma(z[0], cos, even[0]), b.fma(z[1], cos, even[1])
            odd = (b.mul(w[0], sin), b.mul(w[1], sin)) if k == 1 else (
                b.fma(w[0], sin, odd[0]), b.fma(w[1], sin, odd[1]))
        outputs[j] = b.add(even[0], odd[1]), b.sub(even[1], odd[0])
        outputs[n - j] = b.sub(even[0], odd[1]), b.add(even[1], odd[0])
    return [outputs[j] for j in range(n)]


# ── Long rows ────────────────────────────────────────────────────────────────────────────────

def _four_step(b: Any, rows: tuple[int, ...], n: int, dtype: Any, load: Callable, store: Callable
               ) -> None:
    """The four-step transform: a row as a matrix; its columns; twiddle factors; its rows, stored as
    columns.
    """
    below = max(k for k in range(1, math.isqrt(n) + 1) if n % k == 0)  # next to the root
    above = n // below
    spectra = scratch(b, (*rows, n), dtype)
    step = 1 << (n.bit_length() + 1) // 2
    powers = np.arange(step), np.arange(0, n, step)
    fine, coarse = (roots(b, n, each, dtype) for each in powers)
    near = roots(b, n, np.outer(np.arange(above), np.arange(COLUMNS)), dtype)

    def twiddled(z: Complex, i: Any, first: Any, j: Any) -> Complex:
        """Times the root of i * (first + j): of i * first it is one for all columns of a block."""
        at = b.mul(i, first)
        root = multiply(b, read(fine, (b.rem(at, step),)), read(coarse, (b.div(at, step),)))
        return multiply(b, z, multiply(b, root, read(near, (i, j))))

    at = lambda i, size, j: b.add(b.mul(i, size), j)
    _columns(b, rows, above, dtype, lambda row, i, j: load(row, at(i, below, j), 0),
             lambda row, i, j, z: write(spectra, (*row, at(i, below, j)), z), below, twiddled)
    _columns(b, rows, below, dtype, lambda row, i, j: read(spectra, (*row, at(j, below, i))),
             lambda row, i, j, z: store(row, at(i, above, j), 0, z), above)


# ── Prime factors that are large ─────────────────────────────────────────────────────────────

def _bluestein(b: Any, rows: tuple[int, ...], n: int, dtype: Any, load: Callable, store: Callable
               ) -> None:
    """Bluestein: with ``ij = (i² + j² - (i - j)²) / 2`` the transform is a convolution."""
    # The least length whose factors are twos and at most one three or five.
    size = min(k << max(0, math.ceil(math.log2((2 * n - 1) / k))) for k in (1, 3, 5))
    chirp = np.exp(-1j * np.pi * (np.arange(n, dtype=np.int64) ** 2 % (2 * n)) / n)
    filter_ = np.zeros(size, complex)
    filter_[:n] = chirp.conj()
    filter_[size - n + 1:] = chirp[:0:-1].conj()
    twiddles, spectrum = (constants(b, z, dtype) for z in (chirp, np.fft.fft(filter_) / size))
    spectra = scratch(b, (*rows, size), dtype)

    def chirped(row: tuple, i: Any, j: Any) -> Complex:
        inside = b.lt(i, n)
        place = b.min(i, n - 1)
        product = multiply(b, load(row, place, j), read(twiddles, (place,)))
        return tuple(b.select(inside, x, b.const(0, x.dtype)) for x in product)

    def convolve(row: tuple, i: Any, j: Any, z: Complex) -> None:
        write(spectra[::-1], (*row, i), multiply(b, z, read(spectrum, (i,))))

    def unchirped(row: tuple, i: Any, j: Any, z: Complex) -> None:
        with b.when(b.lt(i, n)):
            store(row, i, j, multiply(b, z[::-1], read(twiddles, (b.min(i, n - 1),))))
    _transform(b, rows, size, dtype, chirped, convolve)
    _transform(b, rows, size, dtype, lambda row, i, j: read(spectra, (*row, i)), unchirped)
