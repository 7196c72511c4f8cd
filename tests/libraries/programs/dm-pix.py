"""What PIX does with images."""

import dm_pix as pix
import jax
import jax.numpy as jnp

KEY = jax.random.key(3)
IMAGE = jax.random.uniform(jax.random.key(5), (8, 6, 3))


def colours_change():
    return (pix.adjust_brightness(IMAGE, 0.2), pix.adjust_contrast(IMAGE, 1.5),
            pix.adjust_gamma(IMAGE, 2.2), pix.adjust_hue(IMAGE, 0.3),
            pix.adjust_saturation(IMAGE, 0.4), pix.rgb_to_hsv(IMAGE), pix.rgb_to_grayscale(IMAGE))


def images_are_moved_and_blurred():
    return (pix.flip_left_right(IMAGE), pix.rotate(IMAGE, 0.3), pix.center_crop(IMAGE, 4, 4),
            jax.jit(pix.gaussian_blur, static_argnums=(1, 2))(IMAGE, 1.0, 3),
            pix.random_crop(KEY, IMAGE, (4, 4, 3)), pix.random_flip_up_down(KEY, IMAGE))


def images_are_compared():
    other = jnp.clip(IMAGE + 0.1 * jax.random.normal(KEY, IMAGE.shape), 0, 1)
    return (pix.psnr(IMAGE, other), pix.mae(IMAGE, other), pix.rmse(IMAGE, other),
            pix.simse(IMAGE, other), jax.grad(pix.mse)(IMAGE, other))
