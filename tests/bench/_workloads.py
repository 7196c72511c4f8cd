"""What is measured: each row is one program, written once for minijax and for JAX.

A row makes, from a library (a module like `jax`) and a random generator, a jitted function and
its arguments. `bytes` is what the arrays of one call take, `flops` what its products take.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

MILLION = 1 << 20


@dataclass(frozen=True)
class Row:
    """One workload."""

    name: str
    make: Callable[[Any, np.random.Generator], tuple[Callable, tuple]]
    bytes: int = 0
    flops: int = 0


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


def fused(n: int) -> Callable:
    """The simplest loop: what counts is memory."""
    def make(lib: Any, rng: np.random.Generator) -> tuple:
        return lib.jit(lambda x: x * 2 + 1), (_normal(rng, n),)
    return make


def chain(lib: Any, rng: np.random.Generator) -> tuple:
    """Elementary functions, one after the other."""
    jnp = lib.numpy
    return lib.jit(lambda x: jnp.tanh(jnp.exp(-x * x) + jnp.log1p(jnp.abs(x)))), (
        _normal(rng, MILLION),)


def special(name: str) -> Callable:
    """One function that XLA has no formula of its own for, or a long one."""
    def make(lib: Any, rng: np.random.Generator) -> tuple:
        return lib.jit(getattr(lib.scipy.special if hasattr(lib, "scipy") else lib.lax, name,
                               None) or getattr(lib.lax, name)), (_normal(rng, MILLION),)
    return make


def softmax(n: int) -> Callable:
    """Rows that fit into a cache, in passes that should be one."""
    def make(lib: Any, rng: np.random.Generator) -> tuple:
        return lib.jit(lib.nn.softmax), (_normal(rng, n, n),)
    return make


def total(n: int) -> Callable:
    """A sum over everything."""
    def make(lib: Any, rng: np.random.Generator) -> tuple:
        return lib.jit(lib.numpy.sum), (_normal(rng, n),)
    return make


def sum_over(axis: int) -> Callable:
    """A sum over rows or columns."""
    def make(lib: Any, rng: np.random.Generator) -> tuple:
        return lib.jit(lambda x: lib.numpy.sum(x, axis)), (_normal(rng, 4096, 1024),)
    return make


def rnn(lib: Any, rng: np.random.Generator) -> tuple:
    """A thousand small steps: nothing but overhead, if there is any."""
    jnp = lib.numpy
    hidden, steps = 32, 1000

    def run(w: Any, u: Any, h: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = jnp.tanh(w @ h + u @ x)
            return h, h
        return lib.lax.scan(step, h, xs)

    return lib.jit(run), (0.1 * _normal(rng, hidden, hidden), 0.1 * _normal(rng, hidden, hidden),
                          _normal(rng, hidden), _normal(rng, steps, hidden))


def while_loop(lib: Any, rng: np.random.Generator) -> tuple:
    """A million steps on scalars."""
    def run(x: Any) -> Any:
        return lib.lax.while_loop(lambda c: c[0] < 1_000_000,
                                  lambda c: (c[0] + 1, c[1] * 0.999 + 0.5), (0, x))[1]
    return lib.jit(run), (np.float32(rng.standard_normal()),)


def mlp_step(batch: int, *sizes: int) -> Callable:
    """One step of gradient descent on a two-layer classifier."""
    def make(lib: Any, rng: np.random.Generator) -> tuple:
        jnp = lib.numpy

        def loss(params: Any, x: Any, y: Any) -> Any:
            for w, b in params[:-1]:
                x = jnp.maximum(x @ w + b, 0)
            w, b = params[-1]
            logits = lib.nn.log_softmax(x @ w + b)
            return -jnp.mean(jnp.sum(logits * y, axis=1))

        def step(params: Any, x: Any, y: Any) -> Any:
            grads = lib.grad(loss)(params, x, y)
            return [(w - 0.1 * dw, b - 0.1 * db)
                    for (w, b), (dw, db) in zip(params, grads, strict=True)]

        params = [(0.1 * _normal(rng, m, n), _normal(rng, n))
                  for m, n in zip(sizes, sizes[1:], strict=False)]
        y = np.eye(sizes[-1], dtype=np.float32)[rng.integers(0, sizes[-1], batch)]
        return lib.jit(step), (params, _normal(rng, batch, sizes[0]), y)
    return make


def normal(lib: Any, rng: np.random.Generator) -> tuple:
    """Random bits, and the inverse of erf."""
    return (lib.jit(lambda key: lib.random.normal(key, (MILLION,))), (lib.random.PRNGKey(0),))


def take(lib: Any, rng: np.random.Generator) -> tuple:
    """Reads from anywhere."""
    at = rng.integers(0, MILLION, MILLION).astype(np.int32)
    return lib.jit(lambda x, i: lib.numpy.take(x, i)), (_normal(rng, MILLION), at)


def scatter_add(lib: Any, rng: np.random.Generator) -> tuple:
    """Adds to anywhere."""
    at = rng.integers(0, MILLION, MILLION).astype(np.int32)
    return lib.jit(lambda x, i, y: x.at[i].add(y)), (
        _normal(rng, MILLION), at, _normal(rng, MILLION))


def of_numpy(name: str) -> Callable:
    """A function of `numpy` on a million numbers."""
    def make(lib: Any, rng: np.random.Generator) -> tuple:
        return lib.jit(getattr(lib.numpy, name)), (_normal(rng, MILLION),)
    return make


def matmul(n: int) -> Callable:
    """A square product."""
    def make(lib: Any, rng: np.random.Generator) -> tuple:
        return lib.jit(lambda x, y: x @ y), (_normal(rng, n, n), _normal(rng, n, n))
    return make


def dispatch(lib: Any, rng: np.random.Generator) -> tuple:
    """Next to no work: what a call costs."""
    return lib.jit(lambda x: x + 1), (np.float32(1),)


def dispatch_tree(lib: Any, rng: np.random.Generator) -> tuple:
    """The same, with ten arrays in and ten out."""
    tree = {f"layer{k}": (np.float32(k), np.float32(1)) for k in range(5)}
    return lib.jit(lambda t: {k: (x + 1, y) for k, (x, y) in t.items()}), (tree,)


ROWS = [
    Row("x*2+1, 1M", fused(MILLION), 8 * MILLION),
    Row("x*2+1, 16M", fused(16 * MILLION), 8 * 16 * MILLION),
    Row("tanh(exp(-x²)+log1p|x|), 1M", chain, 8 * MILLION),
    Row("erf, 1M", special("erf"), 8 * MILLION),
    Row("erfc, 1M", special("erfc"), 8 * MILLION),
    Row("softmax 1024²", softmax(1024), 8 * MILLION),
    Row("softmax 4096²", softmax(4096), 8 * 16 * MILLION),
    Row("sum, 1M", total(MILLION), 4 * MILLION),
    Row("sum, 16M", total(16 * MILLION), 4 * 16 * MILLION),
    Row("sum (4096,1024) axis 0", sum_over(0), 4 * 4 * MILLION),
    Row("sum (4096,1024) axis 1", sum_over(1), 4 * 4 * MILLION),
    Row("RNN scan, hidden 32, 1000", rnn),
    Row("while_loop, 1M steps", while_loop),
    Row("MLP step 128: 784-256-10", mlp_step(128, 784, 256, 10)),
    Row("MLP step 64: 64-64-10", mlp_step(64, 64, 64, 10)),
    Row("normal, 1M", normal, 4 * MILLION),
    Row("take, 1M", take, 12 * MILLION),
    Row("scatter-add, 1M", scatter_add, 16 * MILLION),
    Row("sort, 1M", of_numpy("sort"), 8 * MILLION),
    Row("cumsum, 1M", of_numpy("cumsum"), 8 * MILLION),
    Row("matmul 1024", matmul(1024), 0, 2 * 1024**3),
    Row("dispatch f(x)", dispatch),
    Row("dispatch, tree of 10", dispatch_tree),
]
