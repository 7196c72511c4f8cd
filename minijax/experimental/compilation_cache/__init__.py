"""The compiled programs that are kept on disk: `compilation_cache`.

In JAX: `jax/experimental/compilation_cache/`.
"""
