"""The public transformations: derivatives, `jit`, `make_jaxpr`."""
