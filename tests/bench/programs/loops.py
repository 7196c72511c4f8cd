"""Loops: recurrent networks, numbers step by step, simulations, clusters."""

import jax
import jax.numpy as jnp
from jax import grad, jit, lax

from tests.bench._row import Row, normal, number, uniform, zeros


def rnn_step(params, h, x):
    return jnp.tanh(h @ params["w"] + x @ params["u"] + params["b"])


def gru_step(params, h, x):
    update, reset = jnp.split(
        jax.nn.sigmoid(h @ params["w"] + x @ params["u"] + params["b"]), 2, axis=-1)
    proposed = jnp.tanh((reset * h) @ params["v"] + x @ params["z"])
    return update * h + (1 - update) * proposed


def lstm_step(params, state, x):
    h, cell = state
    gates = h @ params["w"] + x @ params["u"] + params["b"]
    i, f, g, o = jnp.split(gates, 4, axis=-1)
    cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(cell), cell


def last(step):
    """The state after all steps."""
    return jit(lambda params, h, xs: lax.scan(lambda h, x: (step(params, h, x), None), h, xs)[0])


def gradient(step):
    def loss(params, h, xs):
        end = lax.scan(lambda h, x: (step(params, h, x), None), h, xs)[0]
        return sum(jnp.sum(each ** 2) for each in jax.tree.leaves(end))
    return jit(grad(loss))


@jit
def matrix_vector_rnn(w, u, h, xs):
    def step(h, x):
        h = jnp.tanh(w @ h + u @ x)
        return h, h
    return lax.scan(step, h, xs)


@jit
def count(x):
    return lax.while_loop(lambda c: c[0] < 1_000_000,
                          lambda c: (c[0] + 1, c[1] * 0.999 + 0.5), (0, x))[1]


@jit
def newton(x):
    return lax.fori_loop(0, 100_000, lambda _, y: 0.5 * (y + x / y), x)


@jit
def sieve(limit):
    candidates = jnp.arange(100_000)

    def cross_out(p, prime):
        return jnp.where(prime[p], prime & ((candidates % p != 0) | (candidates == p)), prime)
    return lax.fori_loop(2, 317, cross_out, candidates > limit)


def accelerations(place, mass):
    apart = place[None] - place[:, None]
    cubed = (jnp.sum(apart ** 2, axis=-1) + 0.01) ** -1.5
    return jnp.einsum("ijk,ij,j->ik", apart, cubed, mass)


@jit
def n_body(place, speed, mass):
    def step(state, _):
        place, speed = state
        speed = speed + 0.001 * accelerations(place, mass)
        return (place + 0.001 * speed, speed), None
    return lax.scan(step, (place, speed), None, length=10)[0]


def orbit(params, start):
    def slope(y):
        return jnp.stack([params[0] * y[0] - params[1] * y[0] * y[1],
                          params[1] * y[0] * y[1] - params[2] * y[1]])

    def step(y, _):
        k1 = slope(y)
        k2 = slope(y + 0.005 * k1)
        k3 = slope(y + 0.005 * k2)
        k4 = slope(y + 0.01 * k3)
        return y + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None
    return jnp.sum(lax.scan(step, start, None, length=1000)[0] ** 2)


@jit
def k_means(points, centres):
    def step(centres, _):
        distance = jnp.sum((points[:, None] - centres) ** 2, axis=-1)
        nearest = jax.nn.one_hot(jnp.argmin(distance, axis=1), len(centres))
        return nearest.T @ points / jnp.maximum(nearest.sum(axis=0), 1)[:, None], None
    return lax.scan(step, centres, None, length=5)[0]


def cell(gates, hidden, steps, batch, **more):
    """Parameters, a state, and inputs of a recurrent network."""
    params = {"w": normal(hidden, gates * hidden, scale=0.1),
              "u": normal(hidden, gates * hidden, scale=0.1), "b": zeros(gates * hidden), **more}
    return [params, normal(batch, hidden), normal(steps, batch, hidden)]


PROPOSE = {"v": normal(64, 64, scale=0.1), "z": normal(64, 64, scale=0.1)}
RNN, GRU, LSTM = cell(1, 64, 100, 16), cell(2, 64, 100, 16, **PROPOSE), cell(4, 64, 100, 16)
LSTM[1] = (LSTM[1], zeros(16, 64))

def reading(part):
    """The gradient of a loop by a large constant, of which each turn reads a part."""
    def last(constant):
        def step(h, i):
            return jnp.tanh(part(constant, i) @ h), None
        return jnp.sum(lax.scan(step, jnp.ones(64), jnp.arange(300))[0])
    return jit(grad(last))


PARTS = {"a slice": lambda x, i: x[:64, :64], "a transpose": lambda x, i: x.T[:64, :64],
         "a reshape": lambda x, i: x.reshape(1024, 256)[:64, :64],
         "a window": lambda x, i: lax.dynamic_slice(x, (i, i), (64, 64)),
         "rows": lambda x, i: x[(7 * i + jnp.arange(64)) % 512, :64],
         "a branch": lambda x, i: lax.cond(i % 2 == 0, lambda: x[:64, :64], lambda: x[64:128, :64])}

ROWS = [
    *(Row(f"gradient by {name} of 512², 300 steps", reading(part), [normal(512, 512, scale=0.1)],
          limit="the latency of one step after another")
      for name, part in PARTS.items()),
    Row("RNN, hidden 32, 1000 steps", matrix_vector_rnn,
        [normal(32, 32, scale=0.1), normal(32, 32, scale=0.1), normal(32), normal(1000, 32)]),
    *(Row(f"{name} 16×64, 100 steps{how}", make(step), given, factor * products,
          limit="steps after one another, whose products are too small to share")
      for name, step, given, products in (
          ("RNN", rnn_step, RNN, 2 * 100 * 16 * 64 * 64 * 2),
          ("GRU", gru_step, GRU, 2 * 100 * 16 * 64 * 64 * 6),
          ("LSTM", lstm_step, LSTM, 2 * 100 * 16 * 64 * 64 * 8))
      for how, make, factor in (("", last, 1), (", gradient", gradient, 3))),
    Row("while, 1M steps", count, [number(0.3)]),
    Row("fori, 100k divisions", newton, [number(2.0)],
        limit="the latency of a division and an addition"),
    Row("sieve to 100k", sieve, [number(1.0)], limit="a division of integers for each number"),
    Row("n-body, 256, 10 steps", n_body,
        [normal(256, 3), normal(256, 3), uniform(0.1, 1, 256)], tolerance=1e-3),
    Row("RK4, 1000 steps, gradient", jit(grad(orbit)),
        [uniform(0.9, 1.1, 3), uniform(0.9, 1.1, 2)], tolerance=1e-3),
    Row("k-means, 4096×16, 32 centres", k_means, [normal(4096, 16), normal(32, 16)],
        2 * 5 * 4096 * 16 * 32, tolerance=1e-2),
]
