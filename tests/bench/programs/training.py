"""Steps of training, and what else is asked of networks."""

import jax
import jax.numpy as jnp
from jax import grad, hessian, jit, nn, vmap

from tests.bench._row import Row, below, normal, one_hot, zeros


def descend(params, grads):
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads)


def predict(params, x):
    for w, b in params[:-1]:
        x = nn.relu(x @ w + b)
    w, b = params[-1]
    return nn.log_softmax(x @ w + b)


def mlp_loss(params, x, y):
    return -jnp.mean(jnp.sum(predict(params, x) * y, axis=-1))


@jit
def mlp_step(params, x, y):
    return descend(params, grad(mlp_loss)(params, x, y))


@jit
def per_example(params, x, y):
    return vmap(grad(mlp_loss), in_axes=(None, 0, 0))(params, x, y)


def small_loss(flat, x, y):
    w1, w2 = flat[:64].reshape(8, 8), flat[64:].reshape(8, 4)
    return jnp.mean((jnp.tanh(x @ w1) @ w2 - y) ** 2)


def normalised(x):
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred ** 2, axis=-1, keepdims=True) + 1e-5)


def attend(layer, x):
    batch, length, width = x.shape
    heads = lambda w: (x @ w).reshape(batch, length, 4, width // 4)
    q, k, v = heads(layer["q"]), heads(layer["k"]), heads(layer["v"])
    scores = jnp.einsum("blhd,bmhd->bhlm", q, k) / jnp.sqrt(width / 4)
    causal = jnp.tril(jnp.ones((length, length), bool))
    weights = nn.softmax(jnp.where(causal, scores, -1e9))
    return jnp.einsum("bhlm,bmhd->blhd", weights, v).reshape(x.shape) @ layer["o"]


def transformer_loss(params, tokens):
    x = params["embed"][tokens[:, :-1]] + params["place"]
    for layer in params["layers"]:
        x = x + attend(layer, normalised(x))
        x = x + nn.gelu(normalised(x) @ layer["up"]) @ layer["down"]
    logits = nn.log_softmax(normalised(x) @ params["embed"].T)
    return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1))


@jit
def transformer_step(params, tokens):
    return descend(params, grad(transformer_loss)(params, tokens))


def convolve(images, kernel):
    padded = jnp.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    _, height, width, _ = images.shape
    return sum(padded[:, i:i + height, j:j + width] @ kernel[i, j]
               for i in range(3) for j in range(3))


def cnn_loss(params, images, labels):
    x = images
    for kernel in params["kernels"]:
        x = nn.relu(convolve(x, kernel))
        batch, height, width, channels = x.shape
        x = x.reshape(batch, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))
    logits = nn.log_softmax(x.reshape(len(x), -1) @ params["out"])
    return -jnp.mean(jnp.sum(logits * labels, axis=-1))


@jit
def cnn_step(params, images, labels):
    return descend(params, grad(cnn_loss)(params, images, labels))


def trace_transformer(params, tokens):
    """Nothing is run: the program is written down, as for each new shape."""
    program = jax.make_jaxpr(lambda *given: grad(transformer_loss)(*given))(params, tokens)
    return [aval.shape for aval in program.out_avals]


def mlp(*sizes):
    return [(normal(m, n, scale=m ** -0.5), zeros(n))
            for m, n in zip(sizes, sizes[1:], strict=False)]


def layer(width):
    square = lambda: normal(width, width, scale=width ** -0.5)
    return {"q": square(), "k": square(), "v": square(), "o": square(),
            "up": normal(width, 4 * width, scale=width ** -0.5),
            "down": normal(4 * width, width, scale=(4 * width) ** -0.5)}


TRANSFORMER = [{"embed": normal(256, 128, scale=0.1), "place": normal(64, 128, scale=0.1),
                "layers": [layer(128), layer(128)]}, below(256, 8, 65)]
CNN = [{"kernels": [normal(3, 3, 1, 16, scale=0.3), normal(3, 3, 16, 32, scale=0.1)],
        "out": normal(7 * 7 * 32, 10, scale=0.02)}, normal(32, 28, 28, 1), one_hot(32, 10)]

ROWS = [
    Row("MLP step 128: 784-256-10", mlp_step,
        [mlp(784, 256, 10), normal(128, 784), one_hot(128, 10)],
        2 * 128 * 256 * (2 * 784 + 3 * 10),
        limit="products of a few rows, whose other operand is copied first"),
    Row("MLP step 64: 64-64-10", mlp_step, [mlp(64, 64, 10), normal(64, 64), one_hot(64, 10)]),
    Row("transformer step, 2×128, 8×64", transformer_step, TRANSFORMER,
        3 * 2 * 512 * (2 * 12 * 128 ** 2 + 2 * 2 * 64 * 128 + 256 * 128),
        limit="products of a few rows, and what lies between them"),
    Row("CNN step, 32×28², 16-32", cnn_step, CNN,
        2 * 32 * 9 * (2 * 784 * 16 + 3 * 196 * 16 * 32)),
    Row("per-example gradients, 64", per_example,
        [mlp(64, 64, 10), normal(64, 64), one_hot(64, 10)]),
    Row("hessian of an MLP, 96 weights", jit(hessian(small_loss)),
        [normal(96, scale=0.3), normal(64, 8), normal(64, 4)],
        limit="loops of some microseconds, on one thread"),
    Row("tracing a transformer's gradient", trace_transformer, TRANSFORMER,
        limit="the interpreter of Python"),
]
