"""What happens while a function is traced: prints, clocks, draws, and writes into containers.

Stands on Python's profiling hook, which is told of every call on this thread.  Chapter 12,
*Pure functions*.  JAX has no counterpart.
"""

from __future__ import annotations

import builtins
import datetime
import logging
import random
import sys
import time
from collections import deque
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

import numpy as np

from minijax.sharp_bits.captured import is_own
from minijax.sharp_bits.captured import Change, Place, Snapshot
from minijax.source_info import SourceInfo, source_of

T = TypeVar("T")
Seen = tuple[str, str, SourceInfo]  # message with a place for the function's name, fix, where

_CLOCKS = ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns",
           "process_time", "process_time_ns", "thread_time", "localtime", "gmtime")
_NOW = ("now", "utcnow", "today")
_WRITTEN = (list, dict, set, deque, bytearray, np.ndarray, random.Random)
_LOG = logging.Logger._log.__code__
_AGAIN = "while `{{}}` is traced; when the compiled function runs, it {} again."


class Happenings:
    """Runs a function and notes what the user's code in it does that will not happen again.

    Attributes:
      seen: message, fix and line of each call that has an effect or reads a clock.
      writes: by the id of a container, the first line that calls one of its methods.
      advanced: the places of generators that were resumed, and the first line that did it.
      executed: the code of the user's functions that ran.
      reported: places that a function inside has reported.
    """

    def __init__(self, before: Snapshot):
        self.seen: list[Seen] = []
        self.writes: dict[int, SourceInfo] = {}
        self.advanced: dict[Place, SourceInfo] = {}
        self.executed: dict[CodeType, None] = {}
        self.reported: set[Any] = set()
        frames = [(generator.gi_frame, place) for ref, place in before.generators
                  if (generator := ref()) is not None]
        self._generators = {id(frame): (frame, place) for frame, place in frames if frame}
        self._running = False

    def run(self, fun: Callable[..., T], *args: Any) -> T:
        """``fun(*args)``, watched.  Another profiler that is at work is left alone."""
        outer = sys.getprofile()
        around = getattr(outer, "__self__", None)
        if outer is not None and not isinstance(around, Happenings):
            return fun(*args)
        # Restored twice: an interrupt may hit one of the two.
        try:
            try:
                self._running = True
                sys.setprofile(self._notice)
                return fun(*args)
            finally:
                sys.setprofile(outer)
        finally:
            self._running = False
            sys.setprofile(outer)
            if isinstance(around, Happenings):
                self._hand_over(around)

    def changes(self, before: Snapshot, after: Snapshot) -> list[Change]:
        """What differs, and the generators that went on and look as they did."""
        found = before.changes(after)
        known = {change.place for change in found}
        return found + [Change(place, before.contents[place], after.contents.get(place), False)
                        for place in self.advanced if place not in known]

    def line_of(self, change: Change) -> SourceInfo | None:
        """The line that called the method which made a change, where it was a method."""
        return self.advanced.get(change.place) or (
            self.writes.get(change.new.number) if change.new else None)

    def _hand_over(self, around: Happenings) -> None:
        around.executed.update(self.executed)
        around.writes.update(self.writes)
        around.reported |= self.reported
        self.reported = around.reported  # the same set: what is reported from now on counts, too

    def _notice(self, frame: FrameType, event: str, arg: Any) -> None:
        if not self._running:
            sys.setprofile(None)
        elif event == "c_call":
            if is_own(frame.f_code.co_filename):
                self._notice_builtin(frame, arg)
        elif event == "call":
            code = frame.f_code
            if is_own(code.co_filename):
                self.executed[code] = None
                if id(frame) in self._generators and frame.f_back:
                    place = self._generators[id(frame)][1]
                    self.advanced.setdefault(place, source_of(frame.f_back))
            elif code is _LOG:
                self._notice_log(frame)

    def _notice_builtin(self, frame: FrameType, called: Any) -> None:
        owner = getattr(called, "__self__", None)
        if called is builtins.print:
            self._add(frame, f"`print` is called {_AGAIN.format('will not print')}",
                      "Use jax.debug.print, which prints at each call.")
        elif called is builtins.input or called is builtins.open:
            self._add(frame, f"`{called.__name__}` is called "
                      + _AGAIN.format(f"will not call `{called.__name__}`"),
                      "Call it outside, and pass what was read as an argument.")
        elif owner is time and called.__name__ in _CLOCKS or (
                isinstance(owner, type) and issubclass(owner, datetime.date)
                and called.__name__ in _NOW):
            self._add(frame, f"`{called.__name__}` reads the clock while `{{}}` is traced: the "
                      "compiled function has that time as a constant.",
                      "Read the clock outside, and pass the time as an argument.")
        elif isinstance(owner, _WRITTEN):
            self.writes.setdefault(id(owner), source_of(frame))

    def _notice_log(self, frame: FrameType) -> None:
        caller: FrameType | None = frame
        while caller and caller.f_code.co_filename == _LOG.co_filename:
            caller = caller.f_back
        if caller and is_own(caller.f_code.co_filename):
            self._add(caller, f"a message is logged {_AGAIN.format('will not log')}",
                      "Use jax.debug.callback with a function that logs.")

    def _add(self, frame: FrameType, message: str, fix: str) -> None:
        self.seen.append((message, fix, source_of(frame)))
