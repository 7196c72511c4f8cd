"""The compiled programs on disk: `compilation_cache`.

In JAX: `jax/experimental/compilation_cache/`.
"""
