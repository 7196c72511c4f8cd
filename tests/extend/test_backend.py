"""Platforms as clients of XLA, beside JAX."""

import importlib
import subprocess
import sys

import jax
import pytest

import minijax


def extend(lib, name):
    return importlib.import_module(f"{lib.__name__}.extend.{name}")


def outcome(f):
    try:
        return f()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def said(lib):
    """What a program learns of backends."""
    b = extend(lib, "backend")
    mine = b.get_backend()
    yield mine.platform, mine.device_count(), mine.local_device_count(), mine.process_index()
    yield mine is b.get_backend("cpu"), list(b.backends()), b.backends()["cpu"] is mine
    yield str(mine.devices()), mine.devices() == lib.devices()
    yield str(b.get_default_device()), b.backend_xla_version()
    yield outcome(lambda: b.get_backend("nowhere")).splitlines()[0]
    x = lib.numpy.arange(3.) * 2
    yield any(y is x for y in mine.live_arrays())


def test_backends_as_jax_has_them(capsys):
    for mine, theirs in zip(said(minijax), said(jax), strict=True):
        assert mine == theirs


def test_a_backends_cache_is_cleared_with_the_others():
    class Cache:
        cleared = 0

        def cache_clear(self):
            self.cleared += 1
    cache = Cache()
    extend(minijax, "backend").register_backend_cache(cache, "a test")
    minijax.clear_caches()
    extend(minijax, "backend").clear_backends()
    assert cache.cleared == 2
    with pytest.raises(NotImplementedError, match="clients of XLA"):
        extend(minijax, "backend").register_backend_factory("mine", lambda: None)


WHOLE_LIBRARY = """
import importlib, pkgutil
import minijax as jax
def walk(package):
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not info.name.rpartition(".")[2].startswith("_"):
            try:
                yield importlib.import_module(info.name)
            except ImportError:  # what is optional and not installed
                pass
modules = [*walk(jax)]
print(len(modules) > 200, jax.live_arrays(), end=" ")
x = jax.random.normal(jax.random.key(0), (3,))
y = jax.grad(lambda x: jax.numpy.linalg.norm(x) + jax.nn.softmax(x)[0])(x)
print(len(jax.live_arrays()))
"""


def test_a_programs_arrays_are_the_only_ones():
    done = subprocess.run([sys.executable, "-c", WHOLE_LIBRARY], capture_output=True, text=True,
                          timeout=100)
    assert done.stdout == "True [] 2\n", done.stdout + done.stderr
