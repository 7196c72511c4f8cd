"""A module without names, as in JAX."""

import importlib


def test_the_module_about_keys_that_are_used_twice_has_no_names():
    for lib in ("jax", "minijax"):
        found = vars(importlib.import_module(f"{lib}.experimental.key_reuse"))
        assert not [name for name in found if not name.startswith("_")]
