"""A program of which the last process does something wrong: which, says the argument."""

import os
import signal
import sys
import time


def main(fault):
    import numpy as np

    import minijax as jax
    from minijax.experimental import multihost_utils
    jax.distributed.initialize()
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    x = jax.device_put(np.arange(4.0 * jax.device_count()), jax.NamedSharding(mesh, jax.P("x")))
    total = jax.jit(lambda x: x.sum())
    total(x)
    if jax.process_index() == jax.process_count() - 1:
        if fault == "exception":
            raise ValueError("what went wrong")
        if fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "sleep":
            time.sleep(100)
        if fault == "exit":
            sys.exit(3)
        if fault == "other program":
            jax.jit(lambda x: (x * 2).sum())(x)
        if fault == "other shape":
            multihost_utils.process_allgather(np.ones(3))
    elif fault == "other program":
        jax.jit(lambda x: (x * 3).sum())(x)
    elif fault == "other shape":
        multihost_utils.process_allgather(np.ones(4))
    for _ in range(3):
        total(x)
    print("not stopped", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
