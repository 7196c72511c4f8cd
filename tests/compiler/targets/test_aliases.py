"""Alias metadata: accesses of disjoint buffers are declared independent, and no others."""

import re

import numpy as np
import pytest

from minijax.compiler.loops import Buffer
from minijax.compiler.targets.aliases import Aliases, Metadata

F32 = np.dtype("float32")
X, Y = Buffer("x", F32, (64,), "input"), Buffer("y", F32, (64,), "output")
A, B = (Buffer(name, F32, (64,), "temp") for name in "ab")


def apart(buffer: Buffer, offsets: dict[Buffer, int]) -> set[Buffer]:
    """The buffers that an access to one is declared to be independent of."""
    metadata = Metadata()
    aliases = Aliases(metadata, [X, Y, A, B], offsets)
    own = {x: re.findall(r"!\d+", aliases.access(x).partition("!noalias")[0]) for x in (X, Y, A, B)}
    texts = dict(line.split(" = ") for line in metadata.lines)
    others = re.search(r"!noalias (!\d+)", aliases.access(buffer))
    assert others
    scopes = set(re.findall(r"!\d+", texts[others[1]]))
    return {x for x, names in own.items() if scopes & {*names}}


@pytest.mark.parametrize("offset, shares", [(256, False), (192, True), (0, True)])
def test_temps_are_apart_unless_they_share_bytes(offset: int, shares: bool) -> None:
    offsets = {A: 0, B: offset}
    assert apart(A, offsets) == {X, Y} | (set() if shares else {B})
    assert apart(X, offsets) == {Y, A, B}
