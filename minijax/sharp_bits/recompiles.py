"""Explains cache misses of jitted functions, and warns of repeated ones.

A call is compared with the one before it that differs least.  Builds on `core`, `tree_util`.
Chapter 08, *jit*.  In JAX: `explain_tracing_cache_miss` of `jax/_src/pjit.py`.
"""

import collections
import itertools
import logging
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

from minijax.util import caches, source_info
from minijax import config, core, errors, tree_util
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
    "device": "Choose the device once, outside of the loop."}


class Difference(NamedTuple):
    """One difference to an earlier call."""

    kind: str
    what: str
    now: str
    before: str
    where: str = ""  # as JAX's log calls it, if it does
    why: str = ""


Differences = Iterator[Difference]

# Of two calls with the same key.
ENDED_TRANSFORMATION = Difference("closure", "what the function closes over", "another value",
                                  "one of a transformation that has ended")


def explain_miss(arguments: Any, key: Any, earlier: Collection[Any]) -> None:
    """Explain why a call must be traced, in the log or as a warning, as the flags say.

    Args:
      arguments: the call's arguments, and the jitted function.
      key: the call's key in the table of traces.
      earlier: the keys of this function's earlier traces, oldest first.
    """
    name, code = source_info.identify(arguments.whole)
    if code is None or errors.is_internal(code.co_filename):
        return
    before = [old for old in list(earlier) if old.part == key.part]
    history = _histories[code]
    differences: list[Difference] = []
    if before:
        differences = min((list(_differences(key, old, arguments)) for old in reversed(before)),
                          key=len) or [ENDED_TRANSFORMATION]
        repeated = history.record_retrace(differences)
    else:
        repeated = history.record_first_trace(arguments.whole, bool(earlier))
    place = source_info.SourceInfo(code, code.co_firstlineno)
    if config.explain_cache_misses.value:
        logger.warning(_explanation(f"{name} defined at {place.file}:{place.line}", history,
                                    differences))
    if config.debug_recompiles.value and repeated is not None:
        kind, what = repeated
        message = (f"{name} ({place.short_file}:{place.line}) is traced and compiled for the "
                   f"{ALLOWED + 1}th time: {what}.")
        report(finding("debug_recompiles", message, FIXES[kind]))


# ── What happened before ─────────────────────────────────────────────────────────────────────

class History:
    """The record of all functions that share one code object."""

    def __init__(self) -> None:
        self.functions: list[Callable[[], Any]] = []
        self.causes: collections.Counter[tuple[str, str]] = collections.Counter()

    def record_first_trace(self, fun: Callable, other_object: bool) -> tuple[str, str] | None:
        """Record a function that is traced for the first time; a warning if its predecessors are
        gone.

        Functions that are kept alive (one for each model, say) are no mistake: they will be called.
        """
        kind = "object" if other_object else "function"
        num_dead = sum(ref() is None for ref in self.functions)
        self.functions.append(weakref.ref(getattr(fun, "__self__", None) or fun))
        if num_dead != ALLOWED or (kind, "") in self.causes:
            return None
        self.causes[kind, ""] += 1
        which = "the method of another" if other_object else "a new function"
        return kind, f"it is {which} object each time, and the earlier ones are gone"

    def record_retrace(self, differences: Sequence[Difference]) -> tuple[str, str] | None:
        """Record why a function is traced again; a warning beyond the limit."""
        self.causes.update((each.kind, each.what) for each in differences)
        for kind, what, now, before, _, why in differences:
            if self.causes[kind, what] == ALLOWED:
                return kind, (f"{what} changes from call to call: now {now}, before {before}"
                              + (f" ({why})" if why else ""))
        return None


# By identity: equal code at the same line of two programs is not the same.
# After clearing caches, tracing again is intended.
_histories = caches.OfObjects(lambda code: History())


# ── What is different ────────────────────────────────────────────────────────────────────────

def _differences(now: Any, before: Any, arguments: Any) -> Differences:
    arg_names = source_info.describe(arguments.whole, [0] * len(arguments.all), {}, "jit").arg_names
    if now.tree != before.tree:
        dynamic = [name for i, name in enumerate(arg_names) if i not in arguments.places]
        yield from _tree_differences(now.tree, before.tree, dynamic)
    else:
        for name, new, old in zip(arguments.info.arg_names, now.avals, before.avals, strict=True):
            yield from _type_differences(name or "an argument", new, old)
    yield from _static_differences(dict(now.static), dict(before.static), arg_names)
    for flag, new, old in zip(config.traced_names, now.flags, before.flags, strict=True):
        if new != old:
            yield Difference("flag", f"the flag jax_{flag}", repr(new), repr(old),
                             f"jax_{flag} differs:")
    for kind, what in (("axes", "the mapped axes"), ("device", "the device")):
        if (new := getattr(now, kind)) != (old := getattr(before, kind)):
            yield Difference(kind, what, str(new), str(old))


def _type_differences(name: str, now: core.ShapedArray, before: core.ShapedArray) -> Differences:
    for part in ("shape", "dtype", "weak_type"):
        if getattr(now, part) != getattr(before, part):
            kind = part.replace("_", " ")
            weak = part == "weak_type"
            yield Difference(kind, f"the {kind} of {name}", _type(now, weak), _type(before, weak),
                             f"at {name},", f"see {WEAK_TYPES}" if weak else "")


WEAK_TYPES = "https://docs.jax.dev/en/latest/type_promotion.html#weak-types"


def _type(aval: core.ShapedArray, shows_weak: bool) -> str:
    return aval.str_short(True) + (f"{{weak_type={aval.weak_type}}}" if shows_weak else "")


def _tree_differences(now: tree_util.PyTreeDef, before: tree_util.PyTreeDef,
                      arguments: Sequence[str | None]) -> Differences:
    for path, one, other, why in tree_util.equality_errors_pytreedef(now, before):
        where = "the arguments"
        if len(path) > 1:
            name = arguments[path[1].idx] if path[0].idx == 0 else path[1].key
            where = f"{name}{tree_util.keystr(path[2:])}"
        yield Difference("tree", f"the structure of {where}", one, other,
                         f"at input path {tree_util.keystr(path)},", f"so {why}")


def _static_differences(now: dict, before: dict, arguments: Sequence[str | None]) -> Differences:
    for place in {**before, **now}:
        new, old = now.get(place), before.get(place)
        if new != old:
            name = arguments[place] if isinstance(place, int) else place
            yield Difference("static value", f"the value of the static argument {name}", *(
                "not given" if static is None else repr(static[1]) for static in (new, old)))


# ── The messages ─────────────────────────────────────────────────────────────────────────────

_TYPES = "different input types:"
HEADINGS = {"shape": _TYPES, "dtype": _TYPES, "weak type": _TYPES,
            "tree": "different input pytree:",
            "flag": "Tracing context doesn't match, e.g. due to config or context manager."}


def _row(difference: Difference) -> str:
    """A line of the explanation."""
    _, what, now, before, where, why = difference
    return (f"\n  * {where or f'{what}:'} now {_bare(now)} and before {_bare(before)}"
            + (f", {why}" if why else ""))


def _bare(text: str) -> str:
    """A string's text without its quotes."""
    return text.strip("'")


def _explanation(where: str, history: History, differences: Sequence[Difference]) -> str:
    """The explanation of a miss, as in JAX's log."""
    frame = source_info.user_frame()
    miss = f"TRACING CACHE MISS at {frame.place if frame else 'an unknown line'}:\n"
    if differences:
        return (f"{miss}  for {where}\n"
                "  all previously seen cache keys differ. For the closest previous key:"
                + "".join(f"\n  {heading}" * bool(heading) + "".join(map(_row, rows))
                          for heading, rows in itertools.groupby(
                              differences, lambda d: HEADINGS.get(d.kind, ""))))
    same = ("\n  but seen another function defined on the same line; maybe the function is\n"
            "  being re-defined repeatedly, preventing caching?")
    return f"{miss}  never seen function:\n    {where}{same if len(history.functions) > 1 else ''}"
