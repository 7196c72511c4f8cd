"""Fast dispatch from a call to compiled code: Python generated for one tree of arguments.

Builds on `core`, `tree_util`.  Chapter 26, *Threads, caches and dispatch*.
In JAX: `jaxlib`'s `pjit.cc`, the same in C++.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.util import caches
from minijax.core import ArrayImpl, Avals, as_value
from minijax.placement.devices import CPU, Device, device_of, put
from minijax.util.pytree import Kind, PyTreeDef
from minijax.tree_util import tree_flatten

Run = Callable[..., list[np.ndarray]]


class Miss(Exception):
    """The arguments are not of the tree a dispatcher was written for."""


class Dispatcher:
    """Calls the compiled programs of one function, in one state of the flags.

    ``last(args, kwargs)`` was generated for the tree of arguments that came last: it takes the tree
    apart, looks up the program for these types, runs it, and builds the result's tree.  It raises
    `Miss` for anything it does not know, having done nothing.
    """

    def __init__(self, state: object = None):
        self.state = state  # of the flags, from `config.state`; None: there is nothing to call
        self.by_tree: dict[tuple[PyTreeDef, Device], tuple[Callable, dict]] = {}
        self.last: Callable = _miss

    def other_trees(self, args: tuple, kwargs: dict) -> Any:
        """The same as `last`, for a tree of arguments that came earlier."""
        leaves, in_tree = tree_flatten((args, kwargs))
        call, _ = self.by_tree.get((in_tree, device_of(leaves)), (self.last, {}))
        if call is self.last:
            raise Miss
        self.last = call
        return call(args, kwargs)

    def add(self, in_tree: PyTreeDef, device: Device, leaves: Sequence[Any], run: Run,
            rebuild: Callable) -> None:
        """Know one more program, for a tree of arguments that `is_plain`, with such leaves."""
        place = in_tree, device
        programs: dict[tuple, tuple[Run, Callable]] = {}
        call, programs = self.by_tree.get(place) or (
            _compiled_call(in_tree, programs, device), programs)
        programs[tuple(x.aval for x in leaves)] = run, rebuild
        self.by_tree[place] = call, programs
        self.last = call


def _miss(args: tuple, kwargs: dict) -> Any:
    raise Miss


def is_plain(tree: PyTreeDef) -> bool:
    """Whether a tree is made of tuples, lists, dicts with written keys, and None."""
    return all(node is None or node[0].type in (tuple, list, type(None)) or node[0].type is dict
               and all(type(key) in (str, int) for key in node[2]) for node in tree.nodes)


def _convert(x: Any, device: Device) -> ArrayImpl:
    """A leaf that is a number, or lies on the host, as an array on the device."""
    if type(x) is ArrayImpl:
        return put(x, device)
    if isinstance(x, bool | int | float | np.ndarray | np.generic):
        try:
            value = as_value(x)
        except (TypeError, ValueError, OverflowError):
            raise Miss from None
        if type(value) is ArrayImpl:
            return put(value, device)
    raise Miss


def _compiled_call(in_tree: PyTreeDef, programs: dict, device: Device) -> Callable:
    """The call for a tree of arguments on a device."""
    lines, leaves = _taken_apart(in_tree, "args", "kwargs")
    lies_elsewhere = {leaf: f"({device.elsewhere.format(x=leaf)})" for leaf in leaves}
    if device is not device_of(()):  # then it is of an argument
        lines.append(f"if {' and '.join(lies_elsewhere.values())}: raise Miss")
    lines += [f"if {condition}: {leaf} = convert({leaf}, device)"
              for leaf, condition in lies_elsewhere.items()]
    key = "".join(f"{leaf}.aval, " for leaf in leaves)
    lines.append(f"run, rebuild = programs[{f'({key})' if key else '()'}]")
    lines += [f"{leaf} = {device.passed.format(x=leaf)}" for leaf in leaves]
    source = ("def call(args, kwargs):\n    try:\n"
              + "".join(f"        {line}\n" for line in lines)
              + "    except (KeyError, RuntimeError):  # as of an array that was deleted\n"
              "        raise Miss from None\n"
              f"    return rebuild(run({', '.join(leaves)}))\n")
    return caches.written(source, "call", {
        "Array": device.array_type, "convert": _convert, "device": device, "programs": programs,
        "Miss": Miss})


def _taken_apart(tree: PyTreeDef, *children: str) -> tuple[list[str], list[str]]:
    """Statements that bind the leaves of a node's children, or raise Miss for another tree; and
    the names of the leaves.
    """
    names = itertools.count()
    lines: list[str] = []
    leaves: list[str] = []
    ahead = list(children)
    for node in reversed(tree.nodes[:-1]):  # each before its children, the last child first
        value = ahead.pop()
        if node is None:
            leaves.append(value)
            continue
        kind, count, keys = node
        if kind.type is type(None):
            lines.append(f"if {value} is not None: raise Miss")
            continue
        parts = [f"x{next(names)}" for _ in range(count)]
        lines.append(f"if type({value}) is not {kind.type.__name__} or len({value}) != {count}: "
                     "raise Miss")
        if kind.type is dict:
            lines += [f"{part} = {value}[{key!r}]" for part, key in zip(parts, keys, strict=True)]
        elif parts:
            lines.append(f"{', '.join(parts)}, = {value}")
        ahead += parts
    return lines, leaves[::-1]


def rebuilder(out_tree: PyTreeDef, avals: Avals, device: Device = CPU) -> Callable:
    """A function from the results of a program on a device to the tree of arrays."""
    if not is_plain(out_tree):
        return lambda memories: out_tree.unflatten(map(device.array, memories, avals))
    home = "" if device.is_host else ", device"
    leaves = [f"Array(o[{i}], a{i}{home})" for i in range(len(avals))]
    lines: list[str] = []

    def bound(kind: Kind) -> Callable[[Any, list[str]], str]:
        def name_of(data: Any, parts: list[str]) -> str:
            lines.append(f"    t{len(lines)} = {kind.show(data, parts)}\n")
            return f"t{len(lines) - 1}"
        return name_of
    root = out_tree.folded(iter(leaves), bound)
    return caches.written(f"def rebuild(o):\n{''.join(lines)}    return {root}\n", "rebuild", {
        "Array": device.array_type, "device": device,
        **{f"a{i}": aval for i, aval in enumerate(avals)}})
