"""Why a call of a jitted function had to be traced, and whether that happens again and again.

A call is compared with the one before it that differs least.  Stands on `core`, `tree_util`.
Chapter 08, *jit*.  In JAX: `explain_tracing_cache_miss` of `jax/_src/pjit.py`.
"""

from __future__ import annotations

import collections
import logging
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

from minijax import caches, config, core, errors, source_info, tree_util
from minijax.sharp_bits.findings import finding, report

logger = logging.getLogger("minijax")

# A program may well have a few types of arguments: layers of different size, a shorter last
# batch, one call with a Python number.  What comes back more often than this is a loop.
ALLOWED = 5

FIXES = {
    "function": "Make the function once and jit it once, outside of the loop; what changes from "
                "call to call becomes an argument.",
    "object": "Jit a function that takes the object's arrays as arguments, and not its method.",
    "shape": "Pad the argument to one size, or to a few, and mask what was added.",
    "dtype": "Pass the argument in one dtype: convert it before the call.",
    "weak type": "Pass either always a Python number or always an array, such as jnp.float32(x).",
    "tree": "Keep the structure of the arguments the same: what grows from call to call is "
            "better an array of fixed size.",
    "static value": "Do not declare the argument static where its value does not decide a shape "
                    "or a Python branch; or accept one compilation for each value.",
    "flag": "Change the flag once, outside of the loop.",
    "closure": "Pass what the function closes over as an argument.",
    "axes": "Call the function always under the same named axes.",
    "backend": "Choose the backend once, outside of the loop.",
}


class Call(NamedTuple):
    """All that decides which trace a call can use."""

    tree: tree_util.PyTreeDef
    avals: tuple[core.ShapedArray, ...]
    static: tuple
    flags: tuple
    axes: tuple
    backend: str


class Names(NamedTuple):
    """What a function calls its positional arguments, those not static, and all leaves."""

    arguments: Sequence[str | None]
    dynamic: Sequence[str | None]
    leaves: Sequence[str | None]


class Difference(NamedTuple):
    """One thing that is another than in an earlier call."""

    kind: str
    name: str
    now: str
    before: str

    @property
    def what(self) -> str:
        return {"static value": f"the value of the static argument {self.name}",
                "flag": f"the flag jax_{self.name}",
                "tree": f"the structure of {self.name}",
                "closure": "what the function closes over",
                "axes": "the mapped axes", "backend": "the backend"}.get(
                    self.kind, f"the {self.kind} of {self.name}")


# Of two calls with the same key.
ENDED = Difference("closure", "", "another value", "one of a transformation that has ended")


def missed(given: Any, key: tuple, known: Collection[tuple]) -> None:
    """Say why a call must be traced, to the log or as a warning, whichever flag is on.

    Args:
      given: the call's arguments, and the jitted function.
      key: the call's key in the table of traces.
      known: the keys of this function's earlier traces, oldest first.
    """
    fun = given.whole
    name, code = source_info.identify(fun)
    if code is None or errors.is_internal(code.co_filename):
        return
    # what stands before the tree of arguments: the function may be jitted as a method, too
    part = key[:-len(given.avals) - 5]
    before = [_call(k[len(part):]) for k in list(known)
              if k[:len(part)] == part and isinstance(k[len(part)], tree_util.PyTreeDef)]
    history = _history_of(code)
    if not before:
        differences: list[Difference] = []
        repeated = history.sees(fun, bool(known))
    else:
        now = _call(key[len(part):])
        names = _names(given)
        differences = min((list(_differences(now, old, names)) for old in reversed(before)),
                          key=len) or [ENDED]
        repeated = history.counts(differences)
    where = f"{name} defined at {code.co_filename}:{code.co_firstlineno}"
    if config.explain_cache_misses.value:
        logger.warning(_explanation(where, history, differences))
    if config.debug_recompiles.value and repeated is not None:
        _warn(f"{name} ({_short(code)})", *repeated)


def _call(key: tuple) -> Call:
    tree, *avals, static, flags, axes, backend = key
    return Call(tree, tuple(avals), static, flags, axes, backend)


# ── What happened before ─────────────────────────────────────────────────────────────────────

class History:
    """What is remembered of all functions that share one piece of code."""

    def __init__(self) -> None:
        self.functions: list[Callable[[], Any]] = []
        self.causes: collections.Counter[tuple[str, str]] = collections.Counter()
        self.same_code_before = False

    def sees(self, fun: Callable, other_object: bool) -> tuple[str, int, str] | None:
        """Note a function traced for the first time; a warning where the last ones are gone.

        Functions that are kept (one for each model, say) are no mistake: they will be called.
        """
        kind = "object" if other_object else "function"
        gone = sum(ref() is None for ref in self.functions)
        self.same_code_before = bool(self.functions)
        self.functions.append(weakref.ref(getattr(fun, "__self__", None) or fun))
        if gone != ALLOWED or (kind, "") in self.causes:
            return None
        self.causes[kind, ""] += 1
        what = ("it is the method of another object" if other_object else
                "it is a new function object") + " each time, and the earlier ones are gone"
        return kind, gone + 1, what

    def counts(self, differences: Sequence[Difference]) -> tuple[str, int, str] | None:
        """Note why a known function is traced again; a warning when it is once too often."""
        for each in differences:
            self.causes[each.kind, each.name] += 1
        for each in differences:
            count = self.causes[each.kind, each.name]
            if count == ALLOWED:
                return each.kind, count + 1, (f"{each.what} changes from call to call: "
                                              f"now {each.now}, before {each.before}")
        return None


_histories: dict[int, tuple[weakref.ref, History]] = {}
caches.cleared_by(_histories.clear)  # who clears what was traced means it to be traced anew


def _history_of(code: Any) -> History:
    """By identity: equal code at the same line of two programs is not the same."""
    place = id(code)
    if place not in _histories or _histories[place][0]() is not code:
        forget = _histories.pop  # at the end of Python the name is gone before the code is
        gone = weakref.ref(code, lambda _: forget(place, None))
        _histories[place] = (gone, History())
    return _histories[place][1]


# ── What is different ────────────────────────────────────────────────────────────────────────

def _differences(now: Call, before: Call, names: Names) -> Iterator[Difference]:
    if now.tree != before.tree:
        yield from _tree_differences(now.tree, before.tree, names.dynamic)
    else:
        for name, new, old in zip(names.leaves, now.avals, before.avals, strict=True):
            yield from _type_differences(name or "an argument", new, old)
    yield from _static_differences(dict(sum(now.static, ())), dict(sum(before.static, ())),
                                   names.arguments)
    for flag, new_value, old_value in zip(config.traced_names(), now.flags, before.flags,
                                          strict=True):
        if new_value != old_value:
            yield Difference("flag", flag, repr(new_value), repr(old_value))
    if now.axes != before.axes:
        yield Difference("axes", "", str(now.axes), str(before.axes))
    if now.backend != before.backend:
        yield Difference("backend", "", now.backend, before.backend)


def _type_differences(name: str, now: core.ShapedArray, before: core.ShapedArray
                      ) -> Iterator[Difference]:
    for kind in ("shape", "dtype", "weak_type"):
        if getattr(now, kind) != getattr(before, kind):
            yield Difference(kind.replace("_", " "), name, _type(now), _type(before))


def _type(aval: core.ShapedArray) -> str:
    return aval.str_short() + (" (weakly typed)" if aval.weak_type else "")


def _tree_differences(now: tree_util.PyTreeDef, before: tree_util.PyTreeDef,
                      arguments: Sequence[str | None]) -> Iterator[Difference]:
    trees = [tree_util.tree_unflatten(tree, range(tree.num_leaves)) for tree in (now, before)]
    for path, one, other, why in tree_util.equality_errors(*trees):
        where = "the arguments"
        if len(path) > 1:
            name = arguments[path[1].idx] if path[0].idx == 0 else path[1].key
            where = f"{name}{tree_util.keystr(path[2:])}"
        yield Difference("tree", where, one, f"{other} ({why})")


def _static_differences(now: dict, before: dict, arguments: Sequence[str | None]
                        ) -> Iterator[Difference]:
    for place in {**before, **now}:
        new, old = now.get(place), before.get(place)
        if new != old:
            name = arguments[place] if isinstance(place, int) else place
            yield Difference("static value", str(name), *(
                "not given" if given is None else repr(given.value) for given in (new, old)))


def _names(given: Any) -> Names:
    """What the function calls its arguments and their leaves; static ones have no leaves."""
    whole = source_info.describe(given.whole, [0] * len(given.all), {}, "jit").arg_names
    leaves = source_info.describe(given.whole, given.all, given.kwargs, "jit", given.places)
    dynamic = [name for i, name in enumerate(whole) if i not in given.places]
    return Names(whole, dynamic, leaves.arg_names)


# ── What is said ─────────────────────────────────────────────────────────────────────────────

def _warn(function: str, kind: str, count: int, what: str) -> None:
    message = f"{function} is traced and compiled for the {count}th time: {what}."
    report(finding("debug_recompiles", message, FIXES[kind]))


def _explanation(where: str, history: History, differences: Sequence[Difference]) -> str:
    """The reason for a miss, as JAX's log has it."""
    frame = source_info.user_frame()
    lines = [f"TRACING CACHE MISS at {frame.place if frame else 'an unknown line'}:"]
    if differences:
        lines += [f"  for {where}",
                  "  all previously seen cache keys differ. For the closest previous key:"]
        lines += [f"  * {d.what}: now {d.now} and before {d.before}" for d in differences]
    else:
        lines += ["  never seen function:", f"    {where}"]
        if history.same_code_before:
            lines += ["  but seen another function defined on the same line; maybe the function "
                      "is", "  being re-defined repeatedly, preventing caching?"]
    return "\n".join(lines)


def _short(code: Any) -> str:
    return f"{source_info.SourceInfo(code, code.co_firstlineno).short_file}:{code.co_firstlineno}"
