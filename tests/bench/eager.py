"""Operations on small arrays that are not jitted, beside JAX, in microseconds.

`python -m tests.bench.eager [part of a name …] [--quick]`. Both libraries take turns; what counts
is the median time of a call among many in a row, of which the last is waited for.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minijax
from tests.bench._report import chosen, geometric_mean, options
from tests.bench.ratios import difference, seconds

# `x` and `y` are matrices, `v` is a vector, `c` has counts, `b` truths; `k` is a key.
OPERATIONS = """
x + y; x - y; x * y; x / y; x + 1.0; 2.0 * x; x ** 2; x // y; x % y; -x; abs(x); x > y; x == y
c & 3; x @ y; x @ v; jnp.sin(x); jnp.exp(x); jnp.tanh(x); jnp.floor(x); jnp.isnan(x)
jnp.maximum(x, y); jnp.arctan2(x, y); jnp.logaddexp(x, y); jnp.where(b, x, y)
jnp.clip(x, -1.0, 1.0); x.sum(); x.sum(axis=0); x.mean(); x.mean(axis=1); x.var(); x.max()
x.argmax(); b.any(); jnp.cumsum(v); jnp.prod(v); jnp.linalg.norm(x); x.reshape(-1); x.T
x.astype(int); v[:, None]; jnp.broadcast_to(v, (10, 10)); jnp.concatenate([x, y])
jnp.stack([x, y]); x[0]; x[1:5]; x[c]; x.at[0].set(1.0); jnp.zeros((10, 10)); jnp.arange(10)
jnp.zeros_like(x); jnp.dot(v, v); jnp.einsum("ij,kj->ik", x, y); jnp.outer(v, v); jnp.sort(v)
nn.relu(x); nn.softmax(x); nn.one_hot(c, 10); random.split(k); random.normal(k, (10,))
"""
# The same for transformations; `w` are the weights of a network.
TRANSFORMED = """
grad(loss)(w, x, y); value_and_grad(loss)(w, x, y); vmap(jnp.dot)(x, y); vmap(grad(energy))(x)
jvp(energy, (v,), (v,)); hessian(energy)(v)
"""
INNER = 100  # calls in a row


def names(lib: Any) -> dict[str, Any]:
    """What the expressions are made of, with the same numbers for both libraries."""
    rng, jnp = np.random.default_rng(0), lib.numpy

    def loss(w: Any, x: Any, y: Any) -> Any:
        for weights, bias in w[:-1]:
            x = jnp.tanh(x @ weights + bias)
        weights, bias = w[-1]
        return ((x @ weights + bias - y) ** 2).mean()

    def energy(v: Any) -> Any:
        return jnp.sum(jnp.sin(v) ** 2) + jnp.log(jnp.sum(jnp.exp(v)))

    def normal(*shape: int) -> Any:
        return jnp.asarray(rng.standard_normal(shape, np.float32))
    layers = [(normal(n, m), normal(m)) for n, m in ((10, 16), (16, 16), (16, 10))]
    x, y, v = normal(10, 10), normal(10, 10), normal(10)
    return {"jnp": jnp, "nn": lib.nn, "random": lib.random, "grad": lib.grad, "vmap": lib.vmap,
            "value_and_grad": lib.value_and_grad, "jvp": lib.jvp, "hessian": lib.hessian,
            "loss": loss, "energy": energy, "w": layers, "x": x, "y": y, "v": v, "b": x > y,
            "c": jnp.arange(8), "k": lib.random.PRNGKey(0)}


def split(text: str) -> list[str]:
    """The expressions of a text, which semicolons and lines separate."""
    return [each.strip() for each in text.replace("\n", ";").split(";") if each.strip()]


def measured(expression: str, libraries: Sequence[dict[str, Any]], quick: bool
             ) -> list[tuple[float, float]]:
    """The median and the least time of each library, in microseconds, its result compared."""
    calls: list[Callable[[], Any]] = [eval(f"lambda: {expression}", each) for each in libraries]
    if wrong := difference(*(call() for call in calls), 1e-4):
        raise ValueError(f"{expression}: {wrong}")
    times: list[list[float]] = [[] for _ in calls]
    once = max(min(seconds(call) for _ in range(5)) for call in calls)
    count = max(1, min(INNER, int(5e-3 / once)))
    for turn in range(10 if quick else 60):
        for k in range(len(calls)):  # who is first changes
            k = (k + turn) % len(calls)
            times[k].append(1e6 * seconds(calls[k], count))
    return [(statistics.median(each), min(each)) for each in times]


def table(text: str, libraries: Sequence[dict[str, Any]], given: Any) -> None:
    """The rows of some expressions, and the geometric mean of their ratios."""
    ratios, least = [], []
    for expression in split(text):
        if chosen(expression, given.words):
            (ours, our_least), (theirs, their_least) = measured(
                expression, libraries, given.quick)
            ratios.append(theirs / ours)
            least.append(their_least / our_least)
            print(f"{expression:32}{ours:11.2f} µs{theirs:11.2f} µs{ratios[-1]:8.2f}"
                  f"{least[-1]:10.2f}", flush=True)
    print(f"{f'geometric mean of {len(ratios)}':60}{geometric_mean(ratios):8.2f}"
          f"{geometric_mean(least):10.2f}   least {min(ratios, default=math.nan):.2f}\n")


def main() -> None:
    import jax

    given = options(__doc__ or "")
    jax.config.update("jax_threefry_partitionable", False)
    libraries = [names(minijax), names(jax)]
    print(f"{'':32}{'minijax':>14}{'JAX':>14}{'ratio':>8}{'of minima':>10}")
    for text in (OPERATIONS, TRANSFORMED):
        table(text, libraries, given)


if __name__ == "__main__":
    main()
