"""Eight threads trace, differentiate and run at once, and every result is right.

`MINIJAX_THREADS_SECONDS=30` lets them run longer.
"""

import os
import threading
import time

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import lax

SECONDS = float(os.environ.get("MINIJAX_THREADS_SECONDS", "5"))


def work(seed: int) -> None:
    """One round: new functions, so that everything is traced, and old ones, so that caches hit."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=3).astype(np.float32)
    scale = float(rng.integers(1, 5))

    def f(v):
        return jnp.sin(v) * scale
    expected = np.cos(x) * np.float32(scale)
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(x), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(shared(x), np.cos(x) * 2, rtol=1e-4, atol=1e-5)
    total, _ = lax.scan(lambda c, y: (c + scale * y, None), jnp.float32(0), jnp.asarray(x))
    np.testing.assert_allclose(total, scale * x.sum(), rtol=1e-3, atol=1e-4)
    with jax.enable_x64(bool(seed % 2)):
        wide = jnp.asarray(1.0).dtype
        assert wide == (np.float64 if seed % 2 else np.float32)


@jax.jit
def shared(x):
    return jax.vmap(jax.grad(lambda v: 2.0 * jnp.sin(v)))(x)


def test_eight_threads_work_without_an_error_or_a_wrong_result():
    failures: list[BaseException] = []
    rounds = [0] * 8
    stop = time.monotonic() + SECONDS

    def loop(thread: int) -> None:
        try:
            while (not rounds[thread] or time.monotonic() < stop) and not failures:
                work(1000 * thread + rounds[thread])
                rounds[thread] += 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=loop, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        raise failures[0]
    assert min(rounds) > 0
