"""The shortest way from a call to compiled code: Python written for one tree of arguments.

Stands on `core`, `tree_util`.  Chapter 26, *Threads, caches and dispatch*.
In JAX: `jaxlib`'s `pjit.cc`, which does in C++ what is generated here.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minijax import caches, core
from minijax.core import ArrayImpl, ShapedArray
from minijax.higher_order.devices import CPU, Device, device_of, put
from minijax.tree_util import PyTreeDef, tree_flatten

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
        # By where a program runs, too, which its arguments decide.
        self.by_tree: dict[tuple[PyTreeDef, Device], tuple[Callable, dict]] = {}
        self.last: Callable = _miss

    def another(self, args: tuple, kwargs: dict) -> Any:
        """The same as `last`, for a tree of arguments that came earlier."""
        leaves, in_tree = tree_flatten((args, kwargs))
        call, _ = self.by_tree.get((in_tree, device_of(leaves)), (self.last, {}))
        if call is self.last:
            raise Miss
        self.last = call
        return call(args, kwargs)

    def add(self, in_tree: PyTreeDef, device: Device, avals: tuple[ShapedArray, ...], run: Run,
            out_tree: PyTreeDef, out_avals: list[ShapedArray]) -> None:
        """Know one more program, for a tree of arguments that `is_plain`."""
        programs: dict[tuple[ShapedArray, ...], tuple[Run, Callable]] = {}
        call, programs = self.by_tree.get((in_tree, device)) or (
            _compiled_call(in_tree, programs, device), programs)
        programs[avals] = (run, rebuilder(out_tree, tuple(out_avals), device))
        self.by_tree[in_tree, device] = call, programs
        self.last = call


def _miss(args: tuple, kwargs: dict) -> Any:
    raise Miss


def _root(tree: PyTreeDef) -> tuple[Any, Any]:
    """The type of a tree's root, None for a leaf; of a dict the keys, too."""
    return tree.node_data() or (None, None)


def is_plain(tree: PyTreeDef) -> bool:
    """Whether a tree is made of tuples, lists, dicts with written keys, and None."""
    kind, keys = _root(tree)
    written = kind in (None, tuple, list, type(None)) and keys is None or kind is dict and all(
        type(key) in (str, int) for key in keys)
    return written and all(map(is_plain, tree.children()))


def _convert(x: Any, device: Device) -> ArrayImpl:
    """A leaf that is a number, or lies on the host, as an array on the device."""
    if type(x) is ArrayImpl:
        return put(x, device)
    if isinstance(x, bool | int | float | np.ndarray | np.generic):
        try:
            value = core.as_value(x)
        except (TypeError, OverflowError):
            raise Miss from None
        if type(value) is ArrayImpl:
            return put(value, device)
    raise Miss


def _compiled_call(in_tree: PyTreeDef, programs: dict, device: Device) -> Callable:
    names = itertools.count()
    leaves: list[str] = []
    lines: list[str] = []
    args_tree, kwargs_tree = in_tree.children()
    lines += _take_apart(args_tree, "args", names, leaves)
    lines += _take_apart(kwargs_tree, "kwargs", names, leaves)
    lies_elsewhere = [f"({device.elsewhere.format(x=leaf)})" for leaf in leaves]
    if device is not device_of(()):  # then it is an argument's, which decides for all
        lines.append(f"if {' and '.join(lies_elsewhere)}: raise Miss")
    for leaf, condition in zip(leaves, lies_elsewhere, strict=True):
        lines.append(f"if {condition}: {leaf} = convert({leaf}, device)")
    avals = "".join(f"{leaf}.aval, " for leaf in leaves)
    lines.append(f"run, rebuild = programs[{f'({avals})' if avals else '()'}]")
    lines += [f"{leaf} = {device.passed.format(x=leaf)}" for leaf in leaves]
    source = ("def call(args, kwargs):\n    try:\n"
              + "".join(f"        {line}\n" for line in lines)
              + "    except (KeyError, RuntimeError):  # as of an array that was deleted\n"
              "        raise Miss from None\n"
              f"    return rebuild(run({', '.join(leaves)}))\n")
    return caches.written(source, "call", {"Array": device.array_type, "convert": _convert,
                                           "device": device, "programs": programs, "Miss": Miss})


def _take_apart(tree: PyTreeDef, value: str, names: Iterator[int], leaves: list[str]
                ) -> list[str]:
    """Statements that bind the leaves of `value` to new names, and raise Miss for another tree."""
    kind, keys = _root(tree)
    if kind is None:
        leaves.append(value)
        return []
    if kind is type(None):
        return [f"if {value} is not None: raise Miss"]
    parts = [f"x{next(names)}" for _ in tree.children()]
    lines = [f"if type({value}) is not {kind.__name__} or len({value}) != {len(parts)}: "
             "raise Miss"]
    if kind is dict:
        lines += [f"{part} = {value}[{key!r}]" for part, key in zip(parts, keys, strict=True)]
    elif parts:
        lines.append(f"{', '.join(parts)}, = {value}")
    for part, child in zip(parts, tree.children(), strict=True):
        lines += _take_apart(child, part, names, leaves)
    return lines


def rebuilder(out_tree: PyTreeDef, avals: tuple[ShapedArray, ...], device: Device = CPU
              ) -> Callable:
    """A function from a list of buffers to the result's tree of arrays."""
    array: Callable = ArrayImpl if device.is_host else device.array  # a class, soonest called
    if not is_plain(out_tree):
        return lambda buffers: out_tree.unflatten(list(map(array, buffers, avals)))
    types = {f"a{i}": aval for i, aval in enumerate(avals)}
    expression = out_tree.written(f"array(o[{i}], a{i})" for i in itertools.count())
    return caches.written(f"def rebuild(o):\n    return {expression}\n", "rebuild",
                          {"array": array, **types})
