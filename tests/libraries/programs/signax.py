"""What Signax does: signatures of paths."""

import jax
import jax.numpy as jnp
import signax

PATH = jnp.cumsum(jax.random.normal(jax.random.key(3), (6, 2)), axis=0)


def signatures_of_paths():
    return (signax.signature(PATH, depth=3), signax.logsignature(PATH, depth=3),
            signax.signature(jnp.stack([PATH, -PATH]), depth=2))


def signatures_are_joined_and_differentiated():
    left, right = (signax.signature(p, 3, flatten=False) for p in (PATH[:4], PATH[3:]))
    gradient = jax.jit(jax.grad(lambda path: signax.signature(path, 3).sum()))
    return signax.signature_combine(left, right), gradient(PATH)
