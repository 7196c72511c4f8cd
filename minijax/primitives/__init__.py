"""The rows: one block per primitive, every slot filled: `tests/test_laws.py` sees to that.

Builds on `core`, `jaxpr` and `tracing`; never on an interpreter nor a compiler.  Chapter 02.
In JAX: `jax/_src/lax/`.
"""
