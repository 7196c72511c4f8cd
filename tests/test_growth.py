"""The work of each stage grows as the program does: twice the equations, twice the calls.

Counted in calls of functions, not in seconds.
"""

import sys

import numpy as np
import pytest

import minijax as jax
from minijax import lax, numpy as jnp
from minijax.compiler import llvm

SIZES = 40, 80, 160
STEEPER = 1.2  # by which the second doubling may cost more than twice the first


def gradient_of_layers(n):
    def loss(layers, x):
        for w, b in layers:
            x = jnp.tanh(x @ w + b)
        return jnp.sum(x ** 2)
    return jax.grad(loss), ([(np.ones((4, 4), np.float32), np.ones(4, np.float32))] * n,
                            np.ones((2, 4), np.float32))


def steps_of_a_recurrent_network(n):
    def states(w, x):
        h, found = jnp.zeros(4), []
        for each in x:
            h = jnp.tanh(h @ w + each)
            found.append(h)
        return jnp.stack(found)
    return states, (np.ones((4, 4), np.float32), np.ones((n, 4), np.float32))


def optimizer_of_many_leaves(n):
    def step(params, grads, means):
        means = [0.9 * m + 0.1 * g for m, g in zip(means, grads, strict=True)]
        return [p - 0.1 * m / (jnp.sqrt(m * m) + 1) for p, m in zip(params, means, strict=True)]
    leaves = [np.ones((2, 2 + k % 3), np.float32) for k in range(n)]
    return step, (leaves, leaves, leaves)


def rows_put_together(n):
    return lambda x: jnp.stack([x[k] * k for k in range(n)]), (np.ones((n, 4), np.float32),)


def neighbours_multiplied(n):
    def f(x):
        first = [x * k for k in range(n)]
        return [*first, *(a * b for a, b in zip(first, first[1:], strict=False))]
    return f, (np.ones(4, np.float32),)


def scans_one_after_the_other(n):
    def f(x):
        for k in range(n):
            x = lax.scan(lambda total, y, k=k: (total + y * k, total), x[0], x)[1]
        return x
    return f, (np.ones(4, np.float32),)


PROGRAMS = (gradient_of_layers, steps_of_a_recurrent_network, optimizer_of_many_leaves,
            rows_put_together, neighbours_multiplied, scans_one_after_the_other)


def calls(stage):
    """The number of calls that a stage takes, and its result."""
    count, before = 0, sys.getprofile()

    def note(_frame, event, _):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        result = stage()
    finally:
        sys.setprofile(before)
    return count, result


def cotangents(f, args):
    out, pullback = jax.vjp(f, *args)
    return pullback(jax.tree.map(jnp.ones_like, out))


def stages(program, size):
    """The calls of each stage for a program of a size."""
    f, args = program(size)
    jax.clear_caches()
    found = {}
    found["trace"], jaxpr = calls(lambda: jax.make_jaxpr(f)(*args))
    found["print"], _ = calls(lambda: str(jaxpr))
    found["jvp"], _ = calls(lambda: jax.make_jaxpr(lambda *a: jax.jvp(f, a, a))(*args))
    found["vjp"], _ = calls(lambda: jax.make_jaxpr(lambda *a: cotangents(f, a))(*args))
    found["vmap"], _ = calls(lambda: jax.make_jaxpr(
        jax.vmap(f, in_axes=None, axis_size=3))(*args))
    lowered = jax.jit(f).trace(*args).lower()
    found["simplify"], _ = calls(lambda: lowered._lowered.simplified)
    found["loops"], kernel = calls(lambda: lowered._lowered.kernel)
    found["text of the loops"], _ = calls(lowered.as_text)
    found["text of the machine code"], _ = calls(lambda: llvm.assembly(kernel))
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_every_stage_takes_work_in_proportion_to_the_program(program):
    stages(program, 2)  # modules are loaded
    small, middle, large = (stages(program, size) for size in SIZES)
    steeper = {stage: (large[stage] - middle[stage]) / (middle[stage] - small[stage]) / 2
               for stage in small}
    assert not {stage: ratio for stage, ratio in steeper.items() if ratio > STEEPER}


def test_a_missing_attribute_of_a_tracer_is_no_search_of_its_program():
    """`hasattr(x, "sharding")` is asked of every value by libraries."""
    def asked_after(n):
        def f(x):
            for _ in range(n):
                x = jnp.sin(x)
            found.append(calls(lambda: [hasattr(x, name) for name in (
                "sharding", "device", "format", "no_attribute_of_arrays")])[0])
            return x
        found = []
        jax.make_jaxpr(f)(1.0)
        return found[0]
    asked_after(1)
    assert asked_after(100) == asked_after(10)
