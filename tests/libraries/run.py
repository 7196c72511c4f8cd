"""Runs the programs of one file, on JAX or on minijax; prints as JSON what they return and print.

`python run.py programs/optax.py`; `python -m minijax.as_jax run.py programs/optax.py`; names of
programs after it run those alone, and show their errors.
"""

import contextlib
import inspect
import io
import json
import os
import runpy
import sys
import time


def plain(leaf, folder):
    """A leaf as numbers with their shape and dtype; a text, without the folder; or a flag."""
    import jax
    import numpy as np
    if isinstance(leaf, str):
        return leaf.replace(folder, "")
    if isinstance(leaf, bool | type(None)):
        return leaf
    if hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    x = np.asarray(leaf)
    numbers = x.astype({"c": str, "b": bool}.get(x.dtype.kind, float))
    return {"dtype": str(x.dtype), "shape": list(x.shape), "values": numbers.ravel().tolist()}


def main(path, *only):
    os.environ.update(JAX_PLATFORMS="cpu", JAX_THREEFRY_PARTITIONABLE="0")
    import jax
    names = runpy.run_path(path)
    programs = {name: f for name, f in names.items()
                if getattr(f, "__module__", None) == "<run_path>" and hasattr(f, "__code__")
                and not inspect.signature(f).parameters and (not only or name in only)}
    results = {}
    for name, program in programs.items():
        began = time.perf_counter()
        try:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                leaves = jax.tree.leaves(program())
                jax.effects_barrier()
            leaves += [text] if (text := printed.getvalue()) else []
            results[name] = [plain(x, os.path.dirname(path) + os.sep) for x in leaves]
        except Exception as error:
            if only:
                raise
            results[name] = [f"stopped by {type(error).__name__}: {error}"]
        print(f"{name}: {time.perf_counter() - began:.2f} s", file=sys.stderr)
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
