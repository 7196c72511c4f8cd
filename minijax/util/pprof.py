"""Profiles in the format of the tool `pprof`: a message of protocol buffers.

Source: github.com/google/pprof, `proto/profile.proto`.  In JAX: in XLA.
"""

from collections.abc import Iterable, Mapping, Sequence

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

    >>> profile([("space", "bytes")], [("f", [7], {})])[-11:]
    b'2\\x05bytes2\\x01f'
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
