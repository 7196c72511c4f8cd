"""Profiles of memory: which arrays are alive, as a file of the tool `pprof`.

In JAX: `jax/_src/profiler.py`, over XLA.  Source of the format, a message of protocol buffers:
github.com/google/pprof, `proto/profile.proto`.
"""

import gzip
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence

from minijax.placement.resharding import live_arrays

Sample = tuple[str, Sequence[int], Mapping[str, str]]  # where, how much of each kind, labels


def _varint(n: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth says that more follow."""
    low, rest = n & 0x7F, n >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _field(number: int, value: int | bytes) -> bytes:
    """A field of a message: an integer, or bytes with their length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def profile(kinds: Sequence[tuple[str, str]], samples: Iterable[Sample]) -> bytes:
    """A profile of samples, for each of which there is a number of each kind.

    Args:
      kinds: for each kind its name and unit.

    >>> profile([("space", "bytes")], [("f", [7], {})]).endswith(b"bytes2" + bytes([1]) + b"f")
    True
    """
    strings = {"": 0}

    def text(word: str) -> int:
        return strings.setdefault(word, len(strings))
    out = b"".join(_field(1, _field(1, text(name)) + _field(2, text(unit))) for name, unit in kinds)
    for i, (place, values, labels) in enumerate(samples, 1):
        out += _field(2, _field(1, i) + b"".join(_field(2, n) for n in values) + b"".join(
            _field(3, _field(1, text(key)) + _field(2, text(value)))
            for key, value in labels.items()))
        out += _field(4, _field(1, i) + _field(4, _field(1, i)))
        out += _field(5, _field(1, i) + _field(2, text(place)))
    return out + b"".join(_field(6, word.encode()) for word in strings)


def device_memory_profile(backend: str | None = None) -> bytes:
    """The memory of all arrays that are alive, by type and device, as a file for `pprof`.

    Args:
      backend: the platform whose arrays are counted; None for all.

    >>> device_memory_profile()[:2] == bytes([0x1f, 0x8b])  # compressed, as pprof takes it
    True
    """
    totals: dict[tuple[str, str], tuple[int, int]] = {}
    for x in live_arrays(backend):
        for device in x.devices():
            key = x.aval.str_short(), f"{device.platform}:{device.id}"
            count, size = totals.get(key, (0, 0))
            totals[key] = count + 1, size + x.nbytes // len(x.devices())
    return gzip.compress(profile(
        (("allocations", "count"), ("space", "bytes")),
        [(kind, values, {"kind": "buffer", "device": device})
         for (kind, device), values in totals.items()]))


def save_device_memory_profile(filename: str | os.PathLike, backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file, which ``pprof -web`` shows."""
    pathlib.Path(filename).write_bytes(device_memory_profile(backend))
