"""Two small libraries that older programs use: `optimizers` and `stax`.

In JAX: `jax/example_libraries/`.
"""
