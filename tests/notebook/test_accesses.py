"""What a warp touches is counted from what the emulator does, and drawn."""

import base64
import html
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler.loops import Load
from minijax.notebook import show_accesses
from minijax.notebook.accesses import SECTOR, accesses

X = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
PROGRAMS = {"a chain": lambda x: jnp.tanh(x) + 1, "a transpose": lambda x: x.T + 1,
            "sums of rows": lambda x: x.sum(1), "sums of columns": lambda x: x.sum(0),
            "every other": lambda x: x[:, ::2] * 2, "two launches": lambda x: x.ravel().sum()}


def drawn(f, *args):
    """The picture, as a tree."""
    data = re.search(r'base64,([^"]+)"', show_accesses(f, *args).html)[1]
    return ElementTree.fromstring(base64.b64decode(data))


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_number_of_the_argument_is_asked_for_and_sectors_are_counted(name):
    f = PROGRAMS[name]
    for _, some in accesses(f, X):
        for access in some:
            size = access.statement.buffer.dtype.itemsize
            assert 0 < access.asked <= access.sent * SECTOR
            assert sum(map(len, access.sectors())) == len(np.unique(access.first)) * size
            assert len(access.sectors()) == len(np.unique(access.first * size // SECTOR))
    loads = [access for _, some in accesses(f, X) for access in some
             if isinstance(access.statement, Load) and access.statement.buffer.role == "input"]
    wanted = X.nbytes // 2 if name == "every other" else X.nbytes
    assert sum(access.asked for access in loads) >= wanted


def test_neighbours_share_sectors_and_every_eighth_number_has_one_of_its_own():
    [(_, [load, store])] = accesses(lambda x: x * 2, X.ravel())
    assert (len(load.first), len(load.sectors()), len(store.sectors())) == (128, 16, 16)
    assert (load.percent, store.percent) == (100, 100)
    [(_, [load, store])] = accesses(lambda x: x * 2, X.ravel()[:256])
    assert (len(load.first), len(load.sectors()), len(store.sectors())) == (32, 4, 4)
    [(_, [load, store])] = accesses(lambda x: x[::8] * 2, X.ravel())
    assert (len(load.sectors()), len(store.sectors())) == (32, 4)
    assert (load.percent, store.percent) == (12, 100)


def test_a_jitted_function_and_nests_of_arguments_are_taken():
    f = jax.jit(lambda pair: pair["a"] + pair["b"])
    assert repr(show_accesses(f, {"a": X, "b": X})).count("load") == 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_picture_has_a_box_for_each_sector_and_says_what_the_text_says(name):
    f = PROGRAMS[name]
    shown, root = show_accesses(f, X), drawn(f, X)
    assert html.escape(repr(shown), quote=True) in shown.html
    boxes = root.findall(".//{*}rect")
    outlined = [box for box in boxes if box.get("stroke") != "none"]
    assert len(outlined) == sum(map(len, re.findall("[▁-█]+", repr(shown))))
    words = " ".join(text.text for text in root.findall(".//{*}text"))
    lines = re.findall(r"((?:load|store) \S+) +(\d+ numbers?) +in +(\d+ sectors?)", repr(shown))
    assert lines and all(f"{name}: {some} in {sectors}" in words
                         for name, some, sectors in lines)
    width, height = float(root.get("width")), float(root.get("height"))
    for box in boxes:
        x, y, w, h = (float(box.get(side)) for side in ("x", "y", "width", "height"))
        assert 0 <= x <= x + w <= width and 0 <= y <= y + h <= height


def test_the_same_picture_each_time():
    assert show_accesses(PROGRAMS["two launches"], X) == show_accesses(
        PROGRAMS["two launches"], X)
