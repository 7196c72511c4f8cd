"""Two small libraries that old programs bring with them: `optimizers` and `stax`.

In JAX: `jax/example_libraries/`.
"""
