"""Leaked tracers: the references that keep a tracer alive after the end of its transformation.

Builds on `core`, `findings` and the garbage collector, which tracks (nearly) every reference.
Chapter 12, *Pure functions*.  In JAX: `jax/_src/core.py` (`maybe_find_leaked_tracers`,
`leaked_tracer_error`, `why_alive_container_info`).
"""

import functools
import gc
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from minijax import config
from minijax.util import context, source_info
from minijax.core import Level, Trace, Tracer, jaxpr
from minijax.errors import TracerLeakError, UnexpectedTracerError, is_internal
from minijax.sharp_bits.captured import attributes, closure, defaults
from minijax.sharp_bits.findings import finding, report

FIX = "Return the value from the function, and store what the call returns."
MOST_SHOWN = 10
# Types that may refer to a tracer: tracers and traces (which are checked themselves), and
# equations, whose derivative rules may close over one.
MAY_HOLD = (Tracer, Trace, jaxpr.JaxprEqn)

# The levels entered since the innermost transformation that is being checked began.
_levels: ContextVar[list[weakref.ref[Level]] | None] = ContextVar("minijax_levels", default=None)


def watch(level: Level) -> None:
    """Schedule a check of a new level for the end of its transformation."""
    level.is_watched = True
    if (levels := _levels.get()) is not None:
        levels.append(weakref.ref(level))


def checked(enter: Callable, *args: Any, **kwargs: Any) -> Any:
    """``enter(*args, **kwargs)``; a finding if a tracer of a level created inside survives.

    Raises:
      TracerLeakError: unless findings are collected.
    """
    levels: list[weakref.ref[Level]] = []
    result = context.with_values({_levels: levels}, enter, *args, **kwargs)
    for level in levels:
        _check(level)
    return result


def _check(ref: weakref.ref[Level]) -> None:
    """Report the tracers of an ended level that user objects keep alive.

    Only its tracers and its trace hold a level, so it is nearly always gone by now.
    """
    leaks = _leaks(ref)
    if not all(leak.is_certain for leak in leaks):
        gc.unfreeze()  # the collector does not traverse frozen objects
        gc.collect()   # cycles without outside references, as of a recursive function, do not count
        leaks = _leaks(ref)
    level = ref()
    if not leaks or level is None:
        return
    shown = [leak.text for leak in leaks[:MOST_SHOWN]]
    if len(leaks) > MOST_SHOWN:
        shown.append(f"… and {len(leaks) - MOST_SHOWN} more")
    error = TracerLeakError(leaks[0].trace_name, shown)
    function = level.debug_info.func_name if level.debug_info else "the function"
    message = f"`{function}` has ended, and a tracer of it is left: {leaks[0].text}"
    report(finding("check_tracer_leaks", message, FIX, leaks[0].source), error)


class Leak(NamedTuple):
    """A surviving tracer: the report, and where it was created."""

    text: str
    is_certain: bool
    trace_name: str
    source: source_info.SourceInfo | None


def _leaks(ref: weakref.ref[Level]) -> list[Leak]:
    tracers = _tracers_of(ref)
    if not tracers:
        return []
    heap = Heap()
    heap.referrers(tracers)
    leaks = [leak for x in tracers if (leak := _leak(x, heap)) is not None]
    return sorted(leaks, key=lambda leak: leak.text.count(" <- "))  # the shortest chains first


def _tracers_of(ref: weakref.ref[Level]) -> "Examined":
    level = ref()
    referrers = gc.get_referrers(level) if level else ()
    return Examined(x for x in referrers if isinstance(x, Tracer))


def _leak(tracer: Tracer, heap: "Heap") -> Leak | None:
    """The reference chain of a tracer, in words; None if no user object holds it."""
    if (chain := referrer_chain(tracer, heap)) is None:
        return None
    words, is_certain = chain
    frames, info = tracer.frames, tracer.level.debug_info
    source = frames[-1] if frames else None
    lines = [f"{type(tracer).__name__} of type {tracer.aval.str_long()}"
             + (f", from {info.func_src_info} traced for {info.traced_for}" if info else ""),
             f"  held by: {' <- '.join(words)}"]
    if source is not None:
        lines.insert(1, f"  made at: {source.summary}: {source.text}")
    return Leak("\n".join(lines), is_certain, tracer.trace_name(), source)


# ── Who holds an object: the shortest way from it to a variable ──────────────────────────────

MOST_SEEN = 10_000  # objects; a longer search would visit the whole program
UNTRACKED = ("something that Python's garbage collector does not look into, such as a NumPy array "
             "of objects")


class Examined(tuple):
    """Objects under examination, which do not count as referring to themselves."""


class Heap:
    """The reference graph as the garbage collector knows it, and the running functions.

    A pass over the heap is slow, so each object's holders are looked up once.
    """

    def __init__(self) -> None:
        self.running = [frame for frame in source_info.frames_outside()
                        if frame.f_locals is not frame.f_globals]
        self._snapshots = {id(frame.f_locals) for frame in self.running}  # copies, no referrers
        self._referrers: dict[int, Examined] = {}

    def referrers(self, objects: Examined) -> Examined:
        """The referrers of each object, in one pass over the heap."""
        new = Examined(x for x in objects if id(x) not in self._referrers)
        referrers: dict[int, list[Any]] = {id(x): [] for x in new}
        for referrer, referent in self._referrers_of(new):
            for x in referent:
                if id(x) in referrers:
                    referrers[id(x)].append(referrer)
        self._referrers.update((key, Examined(some)) for key, some in referrers.items())
        return Examined(self._referrers[id(x)] for x in objects)

    def _referrers_of(self, objects: Examined) -> Iterator[tuple[Any, Iterable[Any]]]:
        """The objects that may refer to some of these, with all their referents."""
        arguments = tuple(objects)  # from Python 3.13 on, this one counts as a referrer
        for x in gc.get_referrers(*arguments) if arguments else ():
            is_ours = isinstance(x, types.FrameType) and is_internal(x.f_code.co_filename)
            if not (type(x) is Examined or x is arguments or id(x) in self._snapshots or is_ours):
                yield x, gc.get_referents(x)
        yield from ((frame, frame.f_locals.values()) for frame in self.running)  # unseen by it


def referrer_chain(x: Any, heap: Heap) -> tuple[list[str], bool] | None:
    """The shortest reference chain from an object to a variable that keeps it alive.

    Args:
      x: the object.
      heap: the reference graph.

    Returns:
      A phrase for each referrer, and whether the chain ends in a variable.  None where only objects
      of the types in `MAY_HOLD` refer to it: those may, and are not followed.
    """
    seen, frontier = {id(x)}, [Examined([x])]  # ways from the object outwards
    rootless, is_held_internally = Examined(), False
    while frontier and len(seen) < MOST_SEEN:
        for chain in frontier:
            if _is_namespace(chain[-1]) or any(chain[-1] is frame for frame in heap.running):
                return _describe(chain), True
        referrers_of_ends = heap.referrers(Examined(chain[-1] for chain in frontier))
        extended = []
        for chain, referrers in zip(frontier, referrers_of_ends, strict=True):
            if not referrers and not rootless:  # its referrer is unknown to the collector
                rootless = chain
            for referrer in referrers:
                if isinstance(referrer, MAY_HOLD):
                    is_held_internally = True
                elif id(referrer) not in seen:
                    seen.add(id(referrer))
                    extended.append(Examined((*chain, referrer)))
        frontier = extended
    if is_held_internally and not rootless:
        return None
    while len(rootless) > 1 and isinstance(rootless[-1], tuple | list | dict | functools.partial):
        rootless = Examined(rootless[:-1])  # the arguments of a running call: of no interest
    return _describe(rootless) or [UNTRACKED], False


def _is_namespace(x: Any) -> bool:
    """Whether an object is the dict of a module's globals."""
    return type(x) is dict and "__name__" in x and ("__builtins__" in x or "__loader__" in x)


# ── In words ─────────────────────────────────────────────────────────────────────────────────

def _describe(chain: tuple) -> list[str]:
    """A phrase for each referrer, from the object outwards; several objects may share one."""
    phrases: list[str] = []
    while len(chain) > 1:
        phrase, count = next(_phrases(*chain[:4]), (_unnamed(chain[1]), 1))
        if phrase:
            phrases.append(phrase)
        chain = chain[count:]
    return phrases


def _phrases(referent: Any, *referrers: Any) -> Iterator[tuple[str, int]]:
    """The phrase for the next referrer, and how many objects of the chain it covers.

    A named part of an object lies in its dict, or in a tuple of cells; so the outermost object that
    has a name for it comes first.
    """
    if not _is_ours(referrers[0]):
        for count in range(len(referrers), 0, -1):
            for phrase, parts in _named_parts(referrers[count - 1]):
                yield from ((phrase.format(name), count) for name, x in parts if x is referent)


def _named_parts(x: Any) -> Iterator[tuple[str, Iterable[tuple[Any, Any]]]]:
    """The named parts of an object, with the phrase for each."""
    if _is_namespace(x):
        yield f"`{{}}`, a global of the module `{x['__name__']}`", x.items()
    elif isinstance(x, dict):
        yield f"entry {{!r}} of {_a(x)}", x.items()
    elif isinstance(x, Sequence):
        yield f"item {{}} of {_a(x)}", enumerate(x)
    elif isinstance(x, types.FrameType):
        yield _variable(x), x.f_locals.items()
    elif isinstance(x, types.GeneratorType) and x.gi_frame is not None:
        yield _variable(x.gi_frame, "the suspended generator "), x.gi_frame.f_locals.items()
    else:
        if isinstance(x, types.FunctionType):
            function = _at(x.__code__, x.__code__.co_firstlineno)
            yield f"`{{}}`, which {function} closes over", closure(x)
            yield f"the default of the argument `{{}}` of {function}", defaults(x)
        whole = f"the class {x.__name__}" if isinstance(x, type) else _a(x)
        yield f"attribute `{{}}` of {whole}", attributes(x)


def _unnamed(x: Any) -> str:
    """The phrase for a referrer without a name for what it holds."""
    if isinstance(x, types.CellType):
        return "a variable of a function"
    return "" if _is_ours(x) else _a(x)


def _is_ours(x: Any) -> bool:
    return type(x).__module__.split(".")[0] == "minijax" or isinstance(x, types.ModuleType)


def _a(x: Any) -> str:
    name = type(x).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _variable(frame: types.FrameType, whose: str = "") -> str:
    return f"`{{}}`, a variable of {whose}{_at(frame.f_code, frame.f_lineno)}"


def _at(code: types.CodeType, line: int) -> str:
    place = source_info.SourceInfo(code, line)
    return f"{place.function}() at {place.short_file}:{place.line}"


# ── A tracer that is used after its transformation ───────────────────────────────────────────

def leaked(tracer: Tracer) -> UnexpectedTracerError:
    """The error of a leak: the value, its function, its line, and a way to find the leak."""
    info, frames, rule = tracer.level.debug_info, tracer.frames, "-" * 30
    parts = ["Encountered an unexpected tracer. A function transformed by JAX had a side effect, "
             "allowing for a reference to an intermediate value with type "
             f"{tracer.aval.str_long()} wrapped in a {type(tracer).__name__} to escape the scope "
             "of the transformation.\nJAX transformations require that functions explicitly "
             "return their outputs, and disallow saving intermediate values to global state."]
    if info is not None:
        parts.append(f"The function being traced when the value leaked was "
                     f"{info.func_src_info} traced for {info.traced_for}.")
    if frames:
        limit = config.tracer_error_num_traceback_frames.value
        shown = [f.place for f in frames[-limit:]]
        parts += [rule, f"The leaked intermediate value was created on line {shown[-1]}. ", rule,
                  f"When the value was created, the final {limit} stack frames (most recent last) "
                  "excluding JAX-internal frames were:", rule, *shown, rule, ""]
    parts.append("To catch the leak earlier, try setting the environment variable "
                 "JAX_CHECK_TRACER_LEAKS or using the `jax.checking_leaks` context manager.")
    return UnexpectedTracerError("\n".join(parts))
