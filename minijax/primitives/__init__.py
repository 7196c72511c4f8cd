"""The primitives: one block for each, with every slot filled, as `tests/test_laws.py` checks.

Builds on `core`; never on an interpreter or a compiler.  Chapter 02.
In JAX: `jax/_src/lax/`.
"""
