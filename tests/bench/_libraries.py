"""A library in a process of its own: loaded, told where to keep what it compiles, started anew."""

import json
import os
import subprocess
import sys
from typing import Any

LIBRARIES = ("minijax", "jax")
# An installed package has its bytecode beside it, as JAX has here; a checkout writes it once.
WITH_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}


def library(name: str) -> Any:
    """minijax or JAX, with a cache on disk where `MINIJAX_CACHE_DIR` says."""
    if name == "minijax":
        import minijax
        return minijax
    import jax
    jax.config.update("jax_compilation_cache_dir", os.environ["MINIJAX_CACHE_DIR"] + "/jax")
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return jax


def ready(name: str) -> Any:
    """A library that has compiled once: what it loads for that is not counted."""
    lib = library(name)
    lib.block_until_ready(lib.jit(lambda x: lib.numpy.sin(x) @ x)(lib.numpy.ones(7)))
    return lib


def child(module: str, *words: str, cache: str, limit: float | None = None) -> Any:
    """What a fresh process prints as JSON: `python -m tests.bench.MODULE word …`."""
    done = subprocess.run([sys.executable, "-m", f"tests.bench.{module}", *words],
                          env=os.environ | {"MINIJAX_CACHE_DIR": cache} | WITH_BYTECODE,
                          timeout=limit, capture_output=True, text=True)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        raise RuntimeError(reason[0])
    return json.loads(done.stdout.splitlines()[-1])
