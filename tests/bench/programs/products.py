"""Products of matrices of every shape, and what is made of them."""

import jax.numpy as jnp
from jax import jit, scipy

from tests.bench._row import Row, below, bfloat16, normal


@jit
def product(x, y):
    return x @ y


@jit
def product_in_int32(x, y):
    return jnp.matmul(x, y, preferred_element_type=jnp.int32)


@jit
def three_factors(a, b, c):
    return jnp.einsum("ab,bc,c->a", a, b, c)


@jit
def convolve(images, kernel):
    """Each of the kernel's nine places is a product."""
    padded = jnp.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    _, height, width, _ = images.shape
    return sum(padded[:, i:i + height, j:j + width] @ kernel[i, j]
               for i in range(3) for j in range(3))


@jit
def cholesky(x):
    return jnp.linalg.cholesky(x @ x.mT + 8 * jnp.eye(x.shape[-1]))


@jit
def solve(a, b):
    return jnp.linalg.solve(a, b)


@jit
def exponential(x):
    return scipy.linalg.expm(x)


def complexes(*shape, **how):
    """Complex numbers around 0."""
    part = normal(*shape, **how)
    return lambda rng: part(rng) + 1j * part(rng)


SHAPES = {"64": (64, 64, 64), "512": (512, 512, 512), "1024": (1024, 1024, 1024),
          "2048": (2048, 2048, 2048), "tall, 64k×64×64": (65536, 64, 64),
          "inner, 64×64k×64": (64, 65536, 64), "vector, 2048²": (2048, 2048, 1)}
BATCHES = {"batched, 256 of 64": (256, 64), "batched, 4096 of 8": (4096, 8)}

COPIED = "operands that are copied to blocks first"

ROWS = [
    *(Row(f"matmul {name}", product, [normal(m, k), normal(k, n)], 2 * m * k * n,
          limit="the reading of a matrix from memory" if n == 1 else COPIED)
      for name, (m, k, n) in SHAPES.items()),
    *(Row(f"matmul {name}", product, [normal(batch, n, n), normal(batch, n, n)],
          2 * batch * n ** 3, limit=COPIED) for name, (batch, n) in BATCHES.items()),
    Row("matmul bfloat16, 1024", product, [bfloat16(1024, 1024), bfloat16(1024, 1024)],
        2 * 1024 ** 3, tolerance=2e-2),
    *(Row(f"matmul {dtype} in int32, {name}", product_in_int32,
          [below(100, m, k, dtype=dtype), below(100, k, n, dtype=dtype)], limit=COPIED)
      for dtype in ("int8", "int16", "int32")
      for name, (m, k, n) in (("512", SHAPES["512"]), ("8×512×2048", (8, 512, 2048)))),
    Row("einsum ab,bc,c->a, 512", three_factors, [normal(512, 512), normal(512, 512), normal(512)],
        4 * 512 ** 2),
    Row("convolution 3×3, 8×32²×32", convolve, [normal(8, 32, 32, 32), normal(3, 3, 32, 32)],
        2 * 9 * 8 * 32 ** 4, limit=COPIED),
    *(Row(f"solve complex, {n}", solve, [complexes(n, n), complexes(n, n)], tolerance=1e-2)
      for n in (4, 64)),
    Row("expm complex, 4", exponential, [complexes(4, 4, scale=0.3)]),
    Row("batched Cholesky, 256 of 16", cholesky, [normal(256, 16, 16)],
        limit="LAPACK's calls, one for each small matrix"),
]
