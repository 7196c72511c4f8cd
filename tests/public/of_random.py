"""The table of `random`: each key is two words, so that it is traced and batched, too."""

from typing import Any

import numpy as np

from .draw import Draw, Maker, call, named

DTYPED = {"dtype": np.float16}


def free(**options: Any) -> Maker:
    """`f(key, shape, dtype)`."""
    return lambda d: call(d.key(), **d.some(**sized(d, (5,), (2, 3), (0,), ()), **options))


def sized(d: Draw, *shapes: tuple) -> dict:
    return {"shape": lambda: d.choice(shapes)}


def of(*domains: str, **options: Any) -> Maker:
    """`f(key, a, b, …, shape, dtype)` with parameters that broadcast."""
    def make(d: Draw) -> Any:
        shapes = [(3,), d.choice([(), (3,), (2, 3)]), ()]
        args = [d.array(d.choice("fffs"), s, domain)
                for s, domain in zip(shapes, domains, strict=False)]
        return call(d.key(), *args, **d.some(**sized(d, (2, 3), (4, 2, 3)), **options))
    return make


RANDOM: dict[str, Maker] = {
    **named("PRNGKey key", lambda d: call(d.array("iiuw", ()))),
    "fold_in": lambda d: call(d.key(), d.array("iw", ())),
    "split": lambda d: call(d.key(), **d.some(num=lambda: d.choice([1, 3, (2, 2), 0]))),
    **named("clone key_data wrap_key_data", lambda d: call(d.key())),
    "bits": free(dtype=np.uint8),
    **named("normal exponential gumbel laplace logistic cauchy maxwell", free(**DTYPED)),
    "rademacher": free(dtype=np.int8),
    "uniform": lambda d: call(d.key(), (4,), **d.some(
        minval=lambda: d.array("fn", ()), maxval=lambda: d.array("f", (4,)))),
    "randint": lambda d: call(d.key(), static=((2, 3), d.choice([0, -3]), d.choice([1, 7, 200])),
                              **d.some(dtype=lambda: d.choice([np.int8, np.uint32]))),
    "bernoulli": lambda d: call(d.key(), d.array("f", (3,), "unit") ** 2, **d.some(
        mode=lambda: d.choice(["low", "high"]), **sized(d, (2, 3)))),
    **named("gamma loggamma chisquare t dirichlet pareto rayleigh wald", of("positive", **DTYPED)),
    "lognormal": of("positive", **DTYPED),
    "beta": of("positive", "positive", **DTYPED),
    "f": lambda d: call(d.key(), d.array("f", (3,), "positive"), d.array("f", (3,), "positive"),
                        **d.some(**DTYPED)),
    "poisson": of("positive", dtype=np.int16),
    "geometric": lambda d: call(d.key(), d.array("f", (3,), "unit") ** 2, **d.some(
        **sized(d, (2, 3)), dtype=np.int16)),
    "binomial": lambda d: call(d.key(), d.choice([np.float32([3, 20, 0]), 12.0]),
                               d.array("f", (3,), "unit") ** 2, **d.some(**sized(d, (2, 3)))),
    "multinomial": lambda d: call(d.key(), np.float32(d.choice([4, 0, 30])),
                                  np.float32([.2, .5, .3])),
    "triangular": lambda d: call(d.key(), d.array("f", (3,), "unit") - 2, d.array(
        "f", (3,), "unit"), d.array("f", (3,), "unit") + 2, **d.some(**sized(d, (2, 3)))),
    "truncated_normal": lambda d: call(d.key(), d.array("fs", (3,), "unit") - 1, d.array(
        "f", (3,), "unit") + 1, **d.some(**sized(d, (2, 3)))),
    **named("double_sided_maxwell weibull_min", lambda d: call(
        d.key(), d.array("f", (3,), "unit"), d.array("f", (3,), "positive"), shape=(3,))),
    "generalized_normal": lambda d: call(d.key(), d.choice([1.5, 2.0]), **d.some(
        **sized(d, (3,), (2, 3)))),
    "ball": lambda d: call(d.key(), static=(d.choice([1, 3]),), **d.some(
        p=lambda: d.choice([1, 2.5]), **sized(d, (3,), (2, 3)))),
    "orthogonal": lambda d: call(d.key(), static=(d.choice([1, 3]),), **d.some(**sized(d, (2,)))),
    "multivariate_normal": lambda d: call(d.key(), d.array("f", (3,), "finite"), d.matrix(
        positive=True), **d.some(**sized(d, (2,)), method=lambda: d.choice(
            ["cholesky", "svd", "eigh"]))),
    "categorical": lambda d: call(d.key(), d.array("f", (2, 3), "finite"), **d.some(
        axis=lambda: d.choice([0, -1]), mode=lambda: d.choice(["low", "high"]))),
    "choice": lambda d: call(d.key(), d.choice([5, d.array("fib", d.choice([(4,), (4, 2)]))]),
                             **d.some(**sized(d, (2,), (3, 1), ()), replace=False,
                                      axis=lambda: d.choice([0, -1]))),
    "permutation": lambda d: call(d.key(), d.choice([5, d.array("fib", d.choice(
        [(4,), (4, 2)]))]), **d.some(independent=True, axis=lambda: d.choice([0, -1]))),
}
