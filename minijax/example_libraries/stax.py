"""Small neural networks: a layer is a pair of functions, and networks are layers of layers.

Builds on `numpy`, `nn`, `random`.
In JAX: `jax/example_libraries/stax.py`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax import lax, nn, numpy as jnp, random
from minijax.nn.initializers import glorot_normal, normal, ones, zeros
from minijax.numpy.arguments import documented

glorot, randn, logsoftmax = glorot_normal, normal, nn.log_softmax

Shape = Any  # a tuple of sizes, or a list of them for a layer of several inputs
Params = Any


class Layer(NamedTuple):
    """``init(rng, input_shape)`` gives (output shape, parameters); ``apply(params, inputs)``."""

    init: Callable[[Any, Shape], tuple[Shape, Params]]
    apply: Callable[..., Any]


# ── Layers with parameters ───────────────────────────────────────────────────────────────────

def Dense(out_dim: int, W_init: Any = glorot_normal(), b_init: Any = normal()) -> Layer:  # noqa: B008
    """Each output is a weighted sum of all inputs, plus a bias.

    >>> init, apply = Dense(3)
    >>> shape, (w, b) = init(random.key(0), (-1, 2))
    >>> shape, w.shape, b.shape, apply((w, b), jnp.ones((5, 2))).shape
    ((-1, 3), (2, 3), (3,), (5, 3))
    """
    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Params]:
        w_key, b_key = random.split(rng)
        weights = W_init(w_key, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (weights, b_init(b_key, (out_dim,)))

    def apply(params: Params, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        return jnp.dot(inputs, weights) + bias

    return Layer(init, apply)


def BatchNorm(axis: int | Sequence[int] = (0, 1, 2), epsilon: float = 1e-5, center: bool = True,
              scale: bool = True, beta_init: Any = zeros, gamma_init: Any = ones) -> Layer:
    """Inputs normalized to mean 0 and variance 1 over the batch, then scaled and shifted.

    >>> init, apply = BatchNorm(axis=0)
    >>> _, params = init(random.key(0), (-1, 1))
    >>> apply(params, jnp.array([[1.], [3.]])).ravel().round(2)
    Array([-1.,  1.], dtype=float32)

    Args:
      axis: the axes of the batch, over which mean and variance are taken.
      center, scale: whether a shift and a scale are learned.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Params]:
        shape = tuple(n for d, n in enumerate(input_shape) if d not in axes)
        beta_key, gamma_key = random.split(rng)
        return input_shape, (beta_init(beta_key, shape) if center else (),
                             gamma_init(gamma_key, shape) if scale else ())

    def apply(params: Params, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        index = tuple(None if d in axes else slice(None) for d in range(x.ndim))
        x = nn.standardize(x, axes, epsilon=epsilon)
        x = gamma[index] * x if scale else x
        return x + beta[index] if center else x

    return Layer(init, apply)


# ── Layers without parameters ────────────────────────────────────────────────────────────────

def _without_parameters(apply: Callable[[Any], Any], shape_of: Callable[[Shape], Shape]) -> Layer:
    """A layer without parameters, from its function and the function of its output shape."""
    return Layer(lambda rng, input_shape: (shape_of(input_shape), ()),
                 lambda params, inputs, **kwargs: apply(inputs))


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A layer that applies one function to every element.

    >>> _, apply = elementwise(jnp.clip, min=0)
    >>> apply((), jnp.array([-1, 2]))
    Array([0, 2], dtype=int32)
    """
    return _without_parameters(lambda x: fun(x, **fun_kwargs), lambda shape: shape)


Tanh, Exp = elementwise(jnp.tanh), elementwise(jnp.exp)
Relu, Softplus, Sigmoid, Elu, LeakyRelu, Selu, Gelu = (elementwise(fun) for fun in (
    nn.relu, nn.softplus, nn.sigmoid, nn.elu, nn.leaky_relu, nn.selu, nn.gelu))
LogSoftmax, Softmax = (elementwise(fun, axis=-1) for fun in (nn.log_softmax, nn.softmax))
Identity = _without_parameters(lambda x: x, lambda shape: shape)
Flatten = _without_parameters(lambda x: jnp.reshape(x, (x.shape[0], -1)),
                              lambda shape: (shape[0], math.prod(shape[1:])))


def Dropout(rate: float, mode: str = "train") -> Layer:
    """In training, inputs kept with probability `rate` and divided by it; the others are 0.

    >>> _, apply = Dropout(0.5)
    >>> apply((), jnp.ones(4), rng=random.key(0)).shape
    (4,)

    Args:
      mode: "train"; anything else leaves the inputs as they are.
    """
    def apply(params: Params, inputs: Any, **kwargs: Any) -> Any:
        if (rng := kwargs.get("rng")) is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument. That is, "
                "instead of `apply_fun(params, inputs)`, call it like `apply_fun(params, inputs, "
                "rng)` where `rng` is a PRNG key (e.g. from `jax.random.key`).")
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return Layer(lambda rng, input_shape: (input_shape, ()), apply)


# ── Several inputs, several outputs ──────────────────────────────────────────────────────────

def FanOut(num: int) -> Layer:
    """The input, a number of times.

    >>> FanOut(2).apply((), 7)
    [7, 7]
    """
    return _without_parameters(lambda x: [x] * num, lambda shape: [shape] * num)


FanInSum = _without_parameters(lambda inputs: sum(inputs[1:], inputs[0]), lambda shapes: shapes[0])


def FanInConcat(axis: int = -1) -> Layer:
    """All inputs, concatenated along an axis.

    >>> FanInConcat().init(random.key(0), [(2, 3), (2, 4)])
    ((2, 7), ())
    """
    def output_shape(shapes: Shape) -> Shape:
        shape = list(shapes[0])
        shape[axis] = sum(other[axis] for other in shapes)
        return tuple(shape)

    return _without_parameters(lambda inputs: jnp.concatenate(inputs, axis), output_shape)


# ── Layers of layers ─────────────────────────────────────────────────────────────────────────

def serial(*layers: Any) -> Layer:
    """Layers one after the other; the parameters are a list of theirs.

    >>> init, apply = serial(Dense(8), Relu, Dense(1))
    >>> shape, params = init(random.key(0), (-1, 3))
    >>> shape, apply(params, jnp.ones((5, 3))).shape
    ((-1, 1), (5, 1))
    """
    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Params]:
        params = []
        for layer_init, _ in layers:
            rng, layer_rng = random.split(rng)
            input_shape, layer_params = layer_init(layer_rng, input_shape)
            params.append(layer_params)
        return input_shape, params

    def apply(params: Params, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        for (_, layer_apply), layer_params, key in zip(layers, params, keys, strict=True):
            inputs = layer_apply(layer_params, inputs, rng=key, **kwargs)
        return inputs

    return Layer(init, apply)


def parallel(*layers: Any) -> Layer:
    """Layers side by side, each with an input of its own: first `FanOut`, last a `FanIn`.

    >>> init, apply = serial(FanOut(2), parallel(Dense(2), Identity), FanInConcat())
    >>> init(random.key(0), (-1, 3))[0]
    (-1, 5)
    """
    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Params]:
        keys = random.split(rng, len(layers))
        pairs = [layer_init(key, shape) for (layer_init, _), key, shape
                 in zip(layers, keys, input_shape, strict=True)]
        return [shape for shape, _ in pairs], tuple(params for _, params in pairs)

    def apply(params: Params, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        return [layer_apply(layer_params, x, rng=key, **kwargs)
                for (_, layer_apply), layer_params, x, key
                in zip(layers, params, inputs, keys, strict=True)]

    return Layer(init, apply)


def _keys(rng: Any, count: int) -> Any:
    return [None] * count if rng is None else random.split(rng, count)


def shape_dependent(make_layer: Callable[[Shape], Any]) -> Layer:
    """A layer that `make_layer` makes for the shape of its inputs.

    >>> halve = shape_dependent(lambda shape: Dense(shape[-1] // 2))
    >>> halve.init(random.key(0), (-1, 6))[0]
    (-1, 3)
    """
    return Layer(lambda rng, shape: make_layer(shape)[0](rng, shape),
                 lambda params, x, **kwargs: make_layer(x.shape)[1](params, x, **kwargs))


# ── Convolutions and pools ───────────────────────────────────────────────────────────────────

_IMAGES, _ROWS = ("NHWC", "HWIO", "NHWC"), ("NHC", "HIO", "NHC")


def _convolution(name: str, convolve: Callable, shape_of: Callable, specs: Any = None) -> Callable:
    """The function that makes layers of a kind of convolution; `specs`: its dimension numbers."""
    def general(dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int],
                strides: Sequence[int] | None = None, padding: Any = "VALID", W_init: Any = None,
                b_init: Any = normal(1e-6)) -> Layer:  # noqa: B008
        _, rhs_spec, out_spec = dimension_numbers
        steps = strides or (1,) * len(filter_shape)
        w_init = W_init or glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))

        def init(rng: Any, input_shape: Shape) -> tuple[Shape, Params]:
            sizes = iter(filter_shape)
            features = input_shape[dimension_numbers[0].index("C")]
            kernel = tuple({"O": out_chan, "I": features}.get(c) or next(sizes) for c in rhs_spec)
            bias = tuple(out_chan if c == "C" else 1 for c in out_spec)
            w_key, b_key = random.split(rng)
            shape = shape_of(input_shape, kernel, steps, padding, dimension_numbers)
            return shape, (w_init(w_key, kernel), b_init(b_key, bias))

        def apply(params: Params, inputs: Any, **kwargs: Any) -> Any:
            weights, bias = params
            return convolve(inputs, weights, steps, padding,
                            dimension_numbers=dimension_numbers) + bias

        return Layer(init, apply)

    def layer(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
              padding: Any = "VALID", W_init: Any = None, b_init: Any = normal(1e-6)  # noqa: B008
              ) -> Layer:
        return general(specs, out_chan, filter_shape, strides, padding, W_init, b_init)

    rank = len(specs[0]) - 2 if specs else 2
    shape = (2, *(5,) * rank, 1)
    return documented(
        layer if specs else general, name,
        "Each output is a weighted sum of a window and its features, plus a bias.",
        f"""init, apply = {name}({"" if specs else f"{_IMAGES}, "}4, {(3,) * rank})
    >>> shape, params = init(random.key(0), {shape})
    >>> apply(params, jnp.ones({shape})).shape == shape -> True""")


_FORWARD = lax.conv_general_dilated, lax.conv_general_shape_tuple
_TRANSPOSE = lax.conv_transpose, lax.conv_transpose_shape_tuple
GeneralConv = _convolution("GeneralConv", *_FORWARD)
Conv = _convolution("Conv", *_FORWARD, _IMAGES)
GeneralConvTranspose = _convolution("GeneralConvTranspose", *_TRANSPOSE)
Conv1DTranspose = _convolution("Conv1DTranspose", *_TRANSPOSE, _ROWS)
ConvTranspose = _convolution("ConvTranspose", *_TRANSPOSE, _IMAGES)


def _pooling(name: str, op: Callable, initial: float, meaning: str, mean: bool = False) -> Callable:
    """The function that makes layers of a reduction of windows."""
    def pool(window_shape: Sequence[int], strides: Sequence[int] | None = None,
             padding: Any = "VALID", spec: str | None = None) -> Layer:
        spec = spec or f"N{'x' * len(window_shape)}C"

        def each_axis(spatial: Sequence[int]) -> tuple[int, ...]:
            sizes = iter(spatial)
            return tuple(1 if c in "NC" else next(sizes) for c in spec)

        sizes, steps = each_axis(window_shape), each_axis(strides or (1,) * len(window_shape))

        def init(rng: Any, input_shape: Shape) -> tuple[Shape, Params]:
            pads = padding if not isinstance(padding, str) else lax.padtype_to_pads(
                input_shape, sizes, steps, padding)
            return lax.reduce_window_shape_tuple(input_shape, sizes, steps, pads), ()

        def apply(params: Params, inputs: Any, **kwargs: Any) -> Any:
            out = lax.reduce_window(inputs, initial, op, sizes, steps, padding)
            if not mean:
                return out
            ones = jnp.ones([1 if c in "NC" else n for c, n in zip(
                spec, inputs.shape, strict=True)], inputs.dtype)
            return out / lax.reduce_window(ones, initial, op, sizes, steps, padding)

        return Layer(init, apply)

    return documented(pool, name, f"{meaning} of each window.", f"""init, apply = {name}((2, 2))
    >>> apply((), jnp.ones((1, 4, 4, 3))).shape -> (1, 3, 3, 3)""")


MaxPool = _pooling("MaxPool", lax.max, -math.inf, "The largest element")
SumPool = _pooling("SumPool", lax.add, 0., "The sum")
AvgPool = _pooling("AvgPool", lax.add, 0., "The mean", mean=True)
