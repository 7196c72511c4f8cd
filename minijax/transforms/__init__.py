"""Transformations as users call them: derivatives, `jit`, `make_jaxpr`."""
