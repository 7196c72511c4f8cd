"""A program of one process, initialized as JAX's."""

import jax
import pytest

import minijax.distributed


def outcome(f, *args, **kwargs):
    try:
        return repr(f(*args, **kwargs))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def test_one_process_is_initialized_as_by_jax():
    """JAX's words, where it says no."""
    mine = minijax.distributed
    for arguments in [(), ("here:1",), ("here:1", 1), ("here:1", 2, 2), ("here:1", 1, -1)]:
        theirs = outcome(jax._src.distributed.State().initialize, *arguments)
        assert outcome(mine.initialize, *arguments) == theirs, arguments
    assert not mine.is_initialized()
    mine.initialize("here:1", 1, 0)
    assert mine.is_initialized()
    with pytest.raises(RuntimeError, match="should only be called once"):
        mine.initialize("here:1", 1, 0)
    mine.shutdown()
    assert not mine.is_initialized()
