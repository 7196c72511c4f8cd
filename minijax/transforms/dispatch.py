"""Fast dispatch from a call to compiled code: Python generated for one tree of arguments.

Builds on `core`, `tree_util`.  Chapter 26, *Threads, caches and dispatch*.
In JAX: `jaxlib`'s `pjit.cc`, the same in C++.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.util import caches
from minijax import core
from minijax.core import ArrayImpl, ShapedArray
from minijax.placement.devices import Device, DeviceArray, device_of, put
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
        # By where a program runs, too, which its arguments decide, and which of them are sharded.
        self.by_tree: dict[tuple[PyTreeDef, Device, tuple[int, ...]], tuple[Callable, dict]] = {}
        self.last: Callable = _miss

    def other_trees(self, args: tuple, kwargs: dict) -> Any:
        """The same as `last`, for a tree of arguments that came earlier."""
        leaves, in_tree = tree_flatten((args, kwargs))
        place = in_tree, device_of(leaves), sharded(leaves)
        call, _ = self.by_tree.get(place, (self.last, {}))
        if call is self.last:
            raise Miss
        self.last = call
        return call(args, kwargs)

    def add(self, in_tree: PyTreeDef, device: Device, leaves: Sequence[Any], run: Run,
            rebuild: Callable) -> None:
        """Know one more program, for a tree of arguments that `is_plain`, with such leaves."""
        where = sharded(leaves)
        place = in_tree, device, where
        programs: dict[tuple, tuple[Run, Callable]] = {}
        call, programs = self.by_tree.get(place) or (
            _compiled_call(in_tree, programs, device, {i: type(leaves[i]) for i in where}),
            programs)
        programs[(*(x.aval for x in leaves), *(leaves[i].sharding for i in where))] = run, rebuild
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
            value = core.as_value(x)
        except (TypeError, ValueError, OverflowError):
            raise Miss from None
        if type(value) is ArrayImpl:
            return put(value, device)
    raise Miss


def sharded(leaves: Sequence[Any]) -> tuple[int, ...]:
    """Which of some leaves are arrays with a sharding, as on another CPU device than the first."""
    return tuple(i for i, x in enumerate(leaves) if isinstance(x, ArrayImpl)
                 and type(x) is not ArrayImpl and not isinstance(x, DeviceArray))


def _compiled_call(in_tree: PyTreeDef, programs: dict, device: Device, kinds: dict[int, type]
                   ) -> Callable:
    """The call for a tree; `kinds` has the class of each leaf with a sharding."""
    lines, leaves = _taken_apart(in_tree, "args", "kwargs")
    lines += [f"if type({leaves[i]}) is not Sharded: raise Miss" for i in kinds]
    lies_elsewhere = {leaf: f"({device.elsewhere.format(x=leaf)})"
                      for i, leaf in enumerate(leaves) if i not in kinds}
    if device is not device_of(()):  # then it is of an argument, which decides for all
        lines.append(f"if {' and '.join(lies_elsewhere.values())}: raise Miss")
    lines += [f"if {condition}: {leaf} = convert({leaf}, device)"
              for leaf, condition in lies_elsewhere.items()]
    key = "".join(f"{leaf}.aval, " for leaf in leaves)
    key += "".join(f"{leaves[i]}.sharding, " for i in kinds)
    lines.append(f"run, rebuild = programs[{f'({key})' if key else '()'}]")
    lines += [f"{leaf} = {device.passed.format(x=leaf)}" for leaf in leaves]
    source = ("def call(args, kwargs):\n    try:\n"
              + "".join(f"        {line}\n" for line in lines)
              + "    except (KeyError, RuntimeError):  # as of an array that was deleted\n"
              "        raise Miss from None\n"
              f"    return rebuild(run({', '.join(leaves)}))\n")
    return caches.written(source, "call", {
        "Array": device.array_type, "Sharded": next(iter(kinds.values()), None),
        "convert": _convert, "device": device, "programs": programs, "Miss": Miss})


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


def rebuilder(out_tree: PyTreeDef, avals: Sequence[ShapedArray], placed: Any = ArrayImpl,
              places: Sequence[Any] = ()) -> Callable:
    """A function from a list of buffers to the result's tree of arrays.

    Args:
      placed: the class of an array with a device, or a sharding.
      places: that of each result; None for an array on the host.
    """
    whole = [*zip(avals, itertools.chain(places, itertools.repeat(None)), strict=False)]
    if not is_plain(out_tree):
        return lambda buffers: out_tree.unflatten(
            [ArrayImpl(buffer, aval) if place is None else placed(buffer, aval, place)
             for buffer, (aval, place) in zip(buffers, whole, strict=True)])
    leaves = [f"Array(o[{i}], a{i})" if place is None else f"Placed(o[{i}], a{i}, p{i})"
              for i, (_, place) in enumerate(whole)]
    lines: list[str] = []

    def bound(kind: Kind) -> Callable[[Any, list[str]], str]:
        def name_of(data: Any, parts: list[str]) -> str:
            lines.append(f"    t{len(lines)} = {kind.show(data, parts)}\n")
            return f"t{len(lines) - 1}"
        return name_of
    root = out_tree.folded(iter(leaves), bound)
    return caches.written(f"def rebuild(o):\n{''.join(lines)}    return {root}\n", "rebuild", {
        "Array": ArrayImpl, "Placed": placed,
        **{f"{name}{i}": x for i, pair in enumerate(whole)
           for name, x in zip("ap", pair, strict=True)}})
