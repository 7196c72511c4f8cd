"""Where temps lie: those that are needed together are apart, the others share."""

import random

import numpy as np
import pytest

from minijax.compiler.loops import INT64, Buffer, Constant, For, If, Load, Scalar, Store
from minijax.compiler.memory import layout

F32 = np.dtype(np.float32)
ZERO, TRUE = Constant(np.int64(0), INT64), Constant(np.bool_(True), np.dtype(bool))


def temps(*sizes):
    return [Buffer(f"t{k}", F32, (n,), "temp") for k, n in enumerate(sizes)]


def write(temp):
    return Store(temp, (ZERO,), Constant(np.float32(1), F32))


def read(temp):
    return Load(Scalar("x", F32), temp, (ZERO,))


def loop(*body):
    return For(Scalar("i", INT64), ZERO, Constant(np.int64(3), INT64), body)


def test_what_follows_takes_the_place_of_what_is_over():
    a, b = temps(100, 100)
    offsets, size = layout([a, b], [loop(write(a), read(a)), loop(write(b), read(b))])
    assert offsets[a] == offsets[b] == 0 and size == 448
    offsets, size = layout([a, b], [write(a), write(b), read(a), read(b)])
    assert offsets[a] != offsets[b] and size == 896


def test_a_loop_is_lived_through_by_what_comes_in_or_goes_out():
    a, b, c = temps(16, 16, 16)
    offsets, _ = layout([a, b, c], [write(a), loop(read(a), write(b), read(b), write(c)), read(c)])
    assert len(set(offsets.values())) == 3
    offsets, _ = layout([a, b, c], [write(a), loop(write(b), read(b)), read(a), loop(write(c))])
    assert offsets[b] != offsets[a] == offsets[c]


def test_a_temp_that_nobody_uses_has_no_place():
    a, b = temps(4, 4)
    assert layout([a, b], [write(b)]) == ({b: 0}, 64)


def grown(choose, places, depth):
    """A random tree of statements; `places[temp]` are the paths to where it is used."""
    def body(path, depth):
        made = []
        for k in range(choose.randint(1, 5)):
            here = (*path, k)
            if depth and choose.random() < 0.5:
                inner = tuple(body(here, depth - 1))
                made.append(If(TRUE, inner, ()) if choose.random() < 0.3 else loop(*inner))
            else:
                temp = choose.choice(list(places))
                places[temp].append(here)
                made.append(choose.choice([write, read])(temp))
        return made
    return body((), depth)


@pytest.mark.parametrize("seed", range(30))
def test_temps_share_memory_only_where_all_of_one_comes_before_all_of_the_other(seed):
    choose = random.Random(seed)
    places = {temp: [] for temp in temps(*(choose.randint(0, 60) for _ in range(8)))}
    offsets, size = layout(list(places), grown(choose, places, 3))
    used = [temp for temp in places if places[temp]]
    assert set(offsets) == set(used)
    for x in used:
        assert offsets[x] % 64 == 0 and offsets[x] + x.nbytes <= size
        for y in used:
            apart = (offsets[x] + max(x.nbytes, 1) <= offsets[y]
                     or offsets[y] + max(y.nbytes, 1) <= offsets[x])
            over = _is_over(places[x], places[y]) or _is_over(places[y], places[x])
            assert x is y or apart or over


def _is_over(earlier, later):
    """Whether one's uses end before the other's begin, in the innermost body that holds both,
    and neither goes round a loop that the other is in."""
    def stretch(paths):
        first, last = min(paths), max(paths)
        n = 0
        while n < min(len(first), len(last)) and first[n] == last[n]:
            n += 1
        return first[:n + 1], last[:n + 1]
    end, begin = stretch(earlier)[1], stretch(later)[0]
    n = min(len(end), len(begin))
    return end[:n] < begin[:n]
