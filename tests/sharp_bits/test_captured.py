"""What a function sees besides its arguments: snapshots of it, and what differs between two."""

import collections
import datetime
import functools
import itertools
import logging
import random
import sys
import threading
import time
import types

import numpy as np
import pytest

from minijax import numpy as jnp
from minijax.sharp_bits.captured import Place, Snapshot
from minijax.sharp_bits.purity import read_line, write_line

VALUES = {
    "number": 1, "truth value": True, "text": "a", "nothing": None, "nan": float("nan"),
    "tuple": (1, 2), "list": [1, [2]], "dict": {"a": {"b": 1}, (1, 2): 3}, "set": {1, 2},
    "frozenset": frozenset({1}), "bytearray": bytearray(b"ab"), "deque": collections.deque([1]),
    "NumPy array": np.arange(6.0).reshape(2, 3).T, "NumPy scalar": np.float32(1),
    "empty": np.zeros((0, 2)), "large": np.zeros(3_000_000), "objects": np.array([None, 1]),
    "array": jnp.ones(3), "generator": (i for i in range(3)), "module": types, "class": Place,
    "date": datetime.date(2020, 1, 1), "lock": threading.Lock(), "partial": functools.partial(max),
    "random": random.Random(0), "rng": np.random.default_rng(0), "file": sys.stdout,
    "old rng": np.random.RandomState(0), "iterator": iter([1]), "logger": logging.getLogger("a"),
    "long list": list(range(2000)), "chain": itertools.chain([1], [2]), "clock": time.time,
}


@pytest.mark.parametrize("name", VALUES)
def test_what_does_not_change_is_not_seen_to_change(name):
    value = VALUES[name]

    def f(x):
        return x, value
    assert Snapshot(f).changes(Snapshot(f)) == []


def test_a_cycle_is_walked_once():
    loop: list = [1]
    loop.append(loop)

    def f(x):
        return loop
    before = Snapshot(f)
    loop[0] = 2
    assert [str(c.place) for c in before.changes(Snapshot(f))] == ["loop[0]"]


@pytest.mark.parametrize(("change", "place"), [
    (lambda v: v["list"].append(1), "value['list']"),
    (lambda v: v["list"][0].update(a=2), "value['list'][0]['a']"),
    (lambda v: v["set"].add(7), "value['set']"),
    (lambda v: v["array"].__setitem__(2, 9), "value['array']"),
    (lambda v: next(v["iterator"]), "value['iterator']"),
    (lambda v: next(v["generator"]), "value['generator']"),
    (lambda v: v["rng"].random(), "value['rng']"),
    (lambda v: v.pop("set"), "value"),
    (lambda v: v["deque"].popleft(), "value['deque']"),
    (lambda v: v["bytes"].extend(b"c"), "value['bytes']"),
])
def test_a_change_is_seen_at_its_place(change, place):
    value = {"list": [{"a": 1}], "set": {1}, "array": np.zeros(3), "iterator": iter([1, 2]),
             "generator": (i for i in (1, 2)), "rng": np.random.default_rng(0),
             "deque": collections.deque([1]), "bytes": bytearray(b"ab")}

    def f(x):
        return value
    before = Snapshot(f)
    change(value)
    assert [str(c.place) for c in before.changes(Snapshot(f))] == [place]


def test_a_place_that_no_code_mentions_has_no_line():
    codes = [test_a_place_that_no_code_mentions_has_no_line.__code__]
    assert write_line(codes, Place("global", "absent")) is None
    assert read_line(codes, Place("global", "absent", (".part",))) is None
