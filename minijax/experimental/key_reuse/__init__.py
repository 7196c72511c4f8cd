"""Keys that are used twice: ``with jax.debug_key_reuse(True):`` raises `KeyReuseError` for them.

Defines no names, as in JAX.  Builds on nothing.  Chapter 16, *Random numbers*.
In JAX: `jax/experimental/key_reuse/`.
"""
