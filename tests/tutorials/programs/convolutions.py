"""Convolutions: of one axis and of several, and the general one with its layouts and dilations."""

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax


def noisy_wave():
    x = jnp.linspace(0.0, 6.0, 60)
    return jnp.sin(x) + 0.1 * jax.random.normal(jax.random.key(5), (60,))


def a_signal_is_smoothed():
    window = jnp.ones(7) / 7
    return [jnp.convolve(noisy_wave(), window, mode=mode) for mode in ("same", "valid", "full")]


def a_signal_is_compared():
    y = noisy_wave()
    return (jnp.correlate(y, y[20:30], mode="valid"), jnp.convolve(y[:3], y),
            jnp.convolve(jnp.arange(4), jnp.array([1, -1])))


def picture(height=12, width=9):
    rows, columns = jnp.mgrid[:height, :width]
    return ((rows // 3 + columns // 2) % 2).astype(jnp.float32)


def a_picture_is_smoothed():
    at = jnp.linspace(-2, 2, 5)
    window = jsp.stats.norm.pdf(at) * jsp.stats.norm.pdf(at[:, None])
    noisy = picture() + 0.2 * jax.random.normal(jax.random.key(6), (12, 9))
    return [jsp.signal.convolve(noisy, window, mode=mode) for mode in ("same", "valid", "full")]


def two_axes_by_their_own_functions():
    edge = jnp.array([[1.0, 0.0, -1.0]] * 2)
    return (jsp.signal.convolve2d(picture(), edge, mode="same"),
            jsp.signal.correlate2d(picture(), edge, mode="valid"),
            jsp.signal.correlate(picture(), edge, mode="full"))


KERNEL = jnp.zeros((3, 3, 2, 4)) + jnp.array(
    [[2.0, 1.0, 0.0], [1.0, 0.0, -1.0], [0.0, -1.0, -2.0]])[:, :, None, None] * (
    1 + jnp.arange(4.0))  # in the layout HWIO
IMAGE = jnp.zeros((1, 20, 18, 2))  # in the layout NHWC
for _channel in range(2):
    _at = 3 + 6 * _channel
    IMAGE = IMAGE.at[0, _at:_at + 4, _at - 1:_at + 5, _channel].set(1.0 + _channel)


def shown(out):
    print("shape", out.shape)
    return out


def the_simplest_function():
    return shown(lax.conv(jnp.transpose(IMAGE, [0, 3, 1, 2]), jnp.transpose(KERNEL, [3, 2, 0, 1]),
                          (1, 1), "SAME"))


def padding_of_ones_own():
    return shown(lax.conv_with_general_padding(
        jnp.transpose(IMAGE, [0, 3, 1, 2]), jnp.transpose(KERNEL, [3, 2, 0, 1]), (1, 1),
        ((2, 2), (0, 3)), (1, 1), (1, 1)))


def channels_must_agree():
    try:
        lax.conv(jnp.transpose(IMAGE, [0, 3, 1, 2]), KERNEL, (1, 1), "SAME")
    except Exception as error:
        return f"{type(error).__name__}: {error}"


LAYOUT = lax.conv_dimension_numbers(IMAGE.shape, KERNEL.shape, ("NHWC", "HWIO", "NHWC"))


def layouts_have_numbers():
    print(LAYOUT)
    print(lax.conv_dimension_numbers((1, 2, 3), (1, 2, 3), ("NCW", "OIW", "NWC")))
    print(lax.conv_dimension_numbers((1, 2, 3, 4), (1, 2, 3, 4), None))


def general(strides=(1, 1), padding="SAME", lhs_dilation=(1, 1), rhs_dilation=(1, 1),
            kernel=KERNEL, **how):
    return shown(lax.conv_general_dilated(IMAGE, kernel, strides, padding, lhs_dilation,
                                          rhs_dilation, LAYOUT, **how))


def padded_to_the_same_size():
    return general()


def not_padded():
    return general(padding="VALID")


def with_strides():
    return general(strides=(2, 2)), general(strides=(3, 1), padding="SAME_LOWER")


def a_kernel_with_holes():
    return general(padding="VALID", rhs_dilation=(4, 5))


def an_image_with_holes():
    return general(padding=((0, 0), (0, 0)), lhs_dilation=(2, 2))


def transposed():
    turned = jnp.rot90(jnp.rot90(KERNEL, axes=(0, 1)), axes=(0, 1))
    by_hand = general(padding=((2, 1), (2, 1)), lhs_dilation=(2, 2), kernel=turned)
    at_once = shown(lax.conv_transpose(IMAGE, KERNEL, (2, 2), "SAME",
                                       dimension_numbers=("NHWC", "HWIO", "NHWC")))
    return by_hand, at_once, shown(lax.conv_transpose(
        IMAGE, jnp.swapaxes(KERNEL, 2, 3), (2, 1), "VALID", transpose_kernel=True,
        dimension_numbers=("NHWC", "HWIO", "NHWC")))


def groups_of_channels():
    return (general(kernel=KERNEL[:, :, :1], feature_group_count=2),
            general(precision=lax.Precision.HIGHEST, preferred_element_type=jnp.float32))


def one_axis():
    kernel = jnp.array([[[1.0, 0.0, -1.0], [-1.0, 0.0, 1.0]],
                        [[1.0, 2.0, 1.0], [-1.0, -1.0, -2.0]]]).transpose([2, 1, 0])  # WIO
    data = np.zeros((1, 40, 2), np.float32)  # NWC
    data[0, 5:12, 0] = data[0, 20:30, 1] = 1.0
    layout = lax.conv_dimension_numbers(data.shape, kernel.shape, ("NWC", "WIO", "NWC"))
    print(data.shape, kernel.shape, layout)
    return shown(lax.conv_general_dilated(data, kernel, (1,), "SAME", (1,), (1,), layout))


def three_axes():
    kernel = jnp.zeros((3, 3, 3)).at[1].set(-1.0).at[::2, 1, 1].set(4.0)[..., None, None]  # HWDIO
    x, y, z = np.mgrid[0:1:6j, 0:1:7j, 0:1:5j]
    data = (jnp.sin(3 * x) * jnp.cos(2 * y) + z)[None, ..., None]  # NHWDC
    layout = lax.conv_dimension_numbers(data.shape, kernel.shape, ("NHWDC", "HWDIO", "NHWDC"))
    print(layout)
    return shown(lax.conv_general_dilated(data.astype(jnp.float32), kernel, (1, 1, 1), "SAME",
                                          (1, 1, 1), (1, 1, 1), layout))


def convolutions_are_differentiated():
    def energy(image, kernel):
        return (lax.conv_general_dilated(image, kernel, (2, 1), ((1, 1), (2, 0)), (1, 2),
                                         (2, 1), LAYOUT) ** 2).sum()
    return jax.jit(jax.grad(energy, (0, 1)))(IMAGE * 0.1, KERNEL)


def convolutions_are_mapped():
    return jax.vmap(lambda k: lax.conv_general_dilated(
        IMAGE, k, (1, 1), "VALID", dimension_numbers=LAYOUT))(jnp.stack([KERNEL, -KERNEL])).sum((
            2, 3))
