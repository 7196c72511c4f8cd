"""`python run.py LIBRARY FILE [NAMES]`: run programs in this process, one of one or of several.

The last process writes the results of each as JSON: dtypes, numbers, shardings. Where JAX runs, the
variables COORDINATOR, COUNT and RANK say which process it is; minijax knows from its launcher.
"""

import importlib
import json
import os
import sys
import traceback
from pathlib import Path


def described(jax, tree):
    """Each leaf of a result: dtype, elements, and the spec of its sharding over all devices."""
    gather = importlib.import_module(jax.__name__ + ".experimental.multihost_utils")
    leaves = []
    for x in jax.tree.leaves(tree):
        place = getattr(x, "sharding", None)
        over_all = place is not None and place.num_devices == jax.device_count()
        words = jax.random.key_data(x) if jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key) else x
        whole = gather.process_allgather(words, tiled=True)
        wide = whole.astype("complex128" if whole.dtype.kind == "c" else "float64")
        leaves.append([str(x.dtype), list(whole.shape), [[v.real, v.imag] if whole.dtype.kind == "c"
                       else v for v in wide.reshape(-1).tolist()],
                       str(place.spec) if over_all and hasattr(place, "spec") else ""])
    return leaves


def main(library, path, names):
    jax = importlib.import_module(library)
    if "COORDINATOR" in os.environ:
        jax.distributed.initialize(os.environ["COORDINATOR"], int(os.environ["COUNT"]),
                                   int(os.environ["RANK"]))
    elif "PMI_SIZE" in os.environ:
        jax.distributed.initialize()
    sys.path.insert(0, str(Path(__file__).parent))
    programs = importlib.import_module("programs")
    results = {}
    for name in [*programs.QUICK, "texts"] if names == ["quick"] else names:
        try:
            f = programs.ALL.get(name) or getattr(programs, name)
            results[name] = described(jax, f(jax)) if name in programs.ALL else f(jax)
        except Exception as error:
            traceback.print_exc()
            results[name] = f"{type(error).__name__}: {error}"
    if jax.process_index() == jax.process_count() - 1:
        Path(path).write_text(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
