"""Where compiled programs are kept."""

import importlib

import numpy as np

import minijax


def test_where_compiled_programs_are_kept(tmp_path):
    cache = importlib.import_module("minijax.experimental.compilation_cache.compilation_cache")
    before = minijax.config.jax_compilation_cache_dir
    try:
        cache.set_cache_dir(str(tmp_path))
        cache.reset_cache()
        minijax.jit(lambda x: x * 3 + 1)(np.ones(3))
        assert minijax.config.jax_compilation_cache_dir == str(tmp_path)
        assert list(tmp_path.iterdir())
    finally:
        cache.set_cache_dir(before)
