"""One loop over all elements: chains of operations, special functions, formulas."""

import jax.numpy as jnp
from jax import jit, lax

from tests.bench._row import KILO, MILLION, Row, normal, uniform

SIZES = {"1k": KILO, "1M": MILLION, "16M": 16 * MILLION}


@jit
def three(x):
    return jnp.maximum(x * 2 + 1, 0)


@jit
def twenty(x):
    y = x
    for k in range(5):
        y = jnp.minimum(jnp.abs(y * 0.9 - x) + k, 8)
    return y


@jit
def transcendental(x):
    return jnp.tanh(jnp.exp(-x * x) + jnp.log1p(jnp.abs(x)))


@jit
def waves(x):
    return jnp.sin(x) * jnp.cos(3 * x)


@jit
def black_scholes(price, strike, years, rate, volatility):
    deviation = volatility * jnp.sqrt(years)
    d = (jnp.log(price / strike) + (rate + volatility ** 2 / 2) * years) / deviation
    normal_cdf = lambda z: 0.5 * (1 + lax.erf(z / jnp.sqrt(2.0)))
    discounted = strike * jnp.exp(-rate * years)
    call = price * normal_cdf(d) - discounted * normal_cdf(d - deviation)
    return call, call - price + discounted


@jit
def signal(wave, taps):
    """A carrier taken off, a low pass, and what is left of phase and loudness."""
    times = jnp.arange(len(wave))
    base = wave * jnp.exp(-0.25j * times)
    low = sum(tap * base[k:len(wave) - len(taps) + k] for k, tap in enumerate(taps))
    turned = low[1:] * jnp.conj(low[:-1])
    return jnp.arctan2(turned.imag, turned.real), jnp.abs(low) ** 2


@jit
def mandelbrot(c_real, c_imag):
    def step(_, state):
        x, y, count = state
        inside = x * x + y * y < 4
        x, y = (jnp.where(inside, x * x - y * y + c_real, x),
                jnp.where(inside, 2 * x * y + c_imag, y))
        return x, y, count + inside
    zero = jnp.zeros_like(c_real)
    return lax.fori_loop(0, 50, step, (zero, zero, zero))[2]


OPTION = [uniform(50, 150, MILLION), uniform(50, 150, MILLION), uniform(0.1, 2, MILLION),
          uniform(0, 0.1, MILLION), uniform(0.1, 0.5, MILLION)]

CALL = "the call itself, at this size"
THREADS = "the threads' start and end, at this size"
ARITHMETIC = "its own arithmetic: dozens of operations an element"

ROWS = [
    *(Row(f"3 operations, {label}", three, [normal(n)], limit=CALL if n == KILO else THREADS)
      for label, n in SIZES.items()),
    *(Row(f"20 operations, {label}", twenty, [normal(n)], limit=ARITHMETIC)
      for label, n in SIZES.items()),
    *(Row(f"tanh(exp(-x²)+log1p|x|), {label}", transcendental, [normal(n)], limit=ARITHMETIC)
      for label, n in SIZES.items()),
    Row("sin(x) cos(3x), 1M", waves, [normal(MILLION)], limit=ARITHMETIC),
    Row("erf, 1M", jit(lax.erf), [normal(MILLION)],
        limit="its polynomial: 30 instructions a vector, at most two a cycle"),
    Row("erfc, 1M", jit(lax.erfc), [normal(MILLION)],
        limit="float64 arithmetic, which its accuracy takes"),
    Row("Black–Scholes, 1M", black_scholes, OPTION, limit=ARITHMETIC),
    Row("complex signal, 256k", signal, [normal(MILLION // 4), normal(9)]),
    Row("mandelbrot 512², 50 steps", mandelbrot,
        [uniform(-2, 1, 512, 512), uniform(-1.5, 1.5, 512, 512)],
        tolerance=0.2),  # a point on the border may leave some steps sooner
]
