"""Caches: cleared, they are empty, all of them; what nobody holds is not kept."""

import functools
import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest

import minijax
import minijax.util.absent  # which a name that is missing would load
import minijax.numpy as jnp
from minijax.compiler import cpu
from minijax.util import caches
from minijax import core, lax
from minijax.transforms.stages import Traced
from minijax.transforms.jit import JitFunction
from minijax.core.jaxpr import ClosedJaxpr


TABLES = (dict, list, set, weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)


class Plain:
    """A function that no weak reference can be made to."""

    __slots__ = ()

    def __call__(self, x):
        return x * 3


def exercise(size):
    """Programs of all kinds, of types that depend on `size`."""
    x = jnp.arange(size, dtype=jnp.float32)
    name = f"x{size}"
    namespace = {}
    exec(compile("def f(x, k):\n    return x * k", f"{name}.py", "exec"), namespace)
    f = functools.partial(namespace["f"], k=float(size))
    total = jnp.float16(size) + x.sum() + np.arange(size, dtype=np.int16).sum()
    jitted = minijax.jit(lambda tree: {name: lax.sin(tree[name])})
    held = [jitted, minijax.jit(Plain()), minijax.make_jaxpr(minijax.grad(lambda x: f(x).sum()))(x)]
    jitted({name: x})
    held[1](x)
    minijax.vmap(minijax.grad(minijax.jit(lambda x: f(x) ** 2)))(x)
    lax.scan(lambda c, y: (c + y, c), total, x)
    keys = minijax.random.split(minijax.random.key(size), size)
    minijax.jit(minijax.vmap(minijax.random.normal))(keys[::-1])
    minijax.hessian(lambda x: (x @ x) ** 2)(x)
    minijax.jit(lambda x: x[:, None] + jnp.zeros(1 << 16))(x)  # large: kept for the next array
    with minijax.checking_sharp_bits():
        minijax.jit(f)(x)
        minijax.jit(f)(x[1:])
    with minijax.enable_x64(True):
        jnp.ones(size, "float64") * size
    return held


def containers():
    """Every container of the package's modules and classes, and every function that remembers."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "minijax":
            for owner in (module, *filter(lambda x: isinstance(x, type), vars(module).values())):
                if getattr(owner, "__module__", name).startswith("minijax"):
                    yield from ((f"{owner.__name__}.{key}", value)
                                for key, value in list(vars(owner).items())
                                if isinstance(value, TABLES))
    for value in gc.get_objects():
        if isinstance(value, functools._lru_cache_wrapper) and value.__module__ and (
                value.__module__.startswith("minijax")):
            yield f"{value.__module__}.{value.__qualname__}", value


def sizes():
    found = {}
    for name, x in containers():
        found[name] = x.cache_info().currsize if hasattr(x, "cache_info") else len(x)
    return found


def in_a_fresh_process():
    """Prints what `clear_caches` left behind, and exits with how much it was."""
    exercise(5)  # loads what is loaded when first needed, learns what is true of the machine
    minijax.clear_caches()
    gc.collect()
    cpu.undisturbed(lambda: None)  # which first unloads the kernels that nobody refers to
    before = sizes()
    held = exercise(7)
    grown = [name for name, n in sizes().items() if n > before.get(name, 0)]
    minijax.clear_caches()
    gc.collect()
    left = []
    for x in gc.get_objects():
        if isinstance(x, Traced) or isinstance(x, ClosedJaxpr) and x.__dict__.get("_derived"):
            left.append((repr(x)[:80], 0, 1))
        if isinstance(x, JitFunction) and (x._dispatcher.by_tree or x._cache_size()):
            left.append((repr(x)[:80], 0, 1))
    del x
    count = len(held)
    held.clear()
    gc.collect()
    cpu.undisturbed(lambda: None)
    left += [(name, before.get(name, 0), n) for name, n in sizes().items()
             if n > before.get(name, 0)]
    print("grown and emptied:", *sorted(grown), "left:", *left, sep="\n  ")
    sys.exit(len(left) + (len(grown) < 10) + (count < 3))


def test_clearing_the_caches_empties_every_one_that_the_process_has():
    environment = os.environ | {"MINIJAX_CACHE_DIR": ""}  # what compiles is loaded both times
    run = subprocess.run([sys.executable, __file__], env=environment, capture_output=True,
                         text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_what_was_cleared_is_made_again():
    held = exercise(6)
    minijax.clear_caches()
    np.testing.assert_array_equal(held[1](jnp.ones(2)), [3, 3])
    assert held[0]({"x6": jnp.zeros(2)})["x6"].shape == (2,)
    exercise(6)


def test_a_type_is_forgotten_when_nobody_holds_it():
    def types():
        return {key for key in list(core.ShapedArray._interned) if 7919 in key[0]}
    held = core.ShapedArray((7919,), np.float32)
    for n in range(50):
        core.ShapedArray((n, 7919), np.float32)
    assert {key[0] for key in types()} == {(7919,)}
    assert core.ShapedArray([7919], "float32") is held


def test_a_cache_is_cleared_with_all_others():
    @caches.remembered(maxsize=5)
    def double(x):
        return 2 * x
    table = {1: 2}
    caches.cleared_by(table.clear)
    try:
        assert double(2) == 4 and double.cache_info().currsize == 1
        minijax.clear_caches()
        assert double.cache_info().currsize == 0 and not table
    finally:
        del caches._clears[-2:]


@pytest.mark.parametrize("made", [lambda: minijax.make_jaxpr(lambda x: x * 2)(1.0)])
def test_what_is_derived_from_a_program_goes_with_the_others(made):
    closed, runs = made(), []
    for _ in range(2):
        closed.derived(("mine",), lambda: runs.append(1))
    minijax.clear_caches()
    closed.derived(("mine",), lambda: runs.append(1))
    assert len(runs) == 2


if __name__ == "__main__":
    in_a_fresh_process()
