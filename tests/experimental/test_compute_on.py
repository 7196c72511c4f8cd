"""Where XLA is to compute, and notes for it, change no number; beside JAX."""

import importlib

import jax
import pytest

import minijax


def module(lib, name):
    return importlib.import_module(f"{lib.__name__}.experimental.{name}")


def outcome(f):
    try:
        return f()
    except Exception as error:
        return type(error), str(error)


def numbers(lib):
    """A program under each of these contexts and decorators, and what they refuse."""
    jnp = lib.numpy
    compute_on, notes = module(lib, "compute_on").compute_on, module(lib, "xla_metadata")

    @lib.jit
    def f(x):
        with compute_on("device_host"), notes.set_xla_metadata(a=1):
            return notes.set_xla_metadata(jnp.sin(x) * x, note="later")
    yield float(f(2.))
    yield float(lib.grad(f)(2.))
    yield float(compute_on("gpu_stream:1")(lambda x: x + 1)(2.))
    yield float(notes.set_xla_metadata(a="b")(f)(2.))
    yield str(notes.set_xla_metadata(a="b")(f).lower(2.).out_info)[:20]
    for kind in (3, "somewhere"):
        yield outcome(lambda kind=kind: compute_on(kind).__enter__())


def test_notes_for_xla_change_no_number():
    for mine, theirs in zip(numbers(minijax), numbers(jax), strict=True):
        assert mine == pytest.approx(theirs) if isinstance(mine, float) else mine == theirs
