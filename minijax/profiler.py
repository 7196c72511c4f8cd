"""Profiles: times of tracing, compilation and evaluation, in a file for https://ui.perfetto.dev.

Tracing and compilation record their own events; under the flag `profiling` evaluation records each
operation (`sharp_bits.checking`).  Builds on `config`.
In JAX: `jax/_src/profiler.py`; there XLA records threads and devices, too.
"""

import contextlib
import dataclasses
import datetime
import gzip
import json
import os
import pathlib
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

from minijax import config
from minijax.util import lazily, tracebacks


class _Profile(NamedTuple):
    """A profile in progress, and its files."""

    folder: pathlib.Path
    names: tuple[str, ...]
    began: float
    events: list[dict[str, Any]]
    level: int  # 0: no events


@dataclasses.dataclass
class ProfileOptions:
    """How a profile is made: `host_tracer_level` 0 records nothing, and `session_id` is the name of
    its folder.  The others are those of XLA's profiler, and change nothing here.

    >>> ProfileOptions().host_tracer_level
    2
    """

    advanced_configuration: dict[str, Any] = dataclasses.field(default_factory=dict)
    duration_ms: int = 0
    enable_hlo_proto: bool = True
    host_tracer_level: int = 2
    include_dataset_ops: bool = True
    python_tracer_level: int = 1
    raise_error_on_start_failure: bool = False
    repository_path: str = ""
    session_id: str = ""
    start_timestamp_ns: int = 0


_running: list[_Profile] = []  # one at most


def record(name: str, start: float, /, **details: Any) -> None:
    """Record an event that ends now, and began at `start` by `time.perf_counter`."""
    for profile in filter(lambda each: each.level, _running):
        profile.events.append({
            "name": name, "ph": "X", "pid": os.getpid(), "tid": threading.get_ident(),
            "ts": (start - profile.began) * 1e6, "dur": (time.perf_counter() - start) * 1e6,
            "args": {key: str(value) for key, value in details.items()}})


def evaluated(evaluate: Callable[..., list], primitive: Any, args: Sequence[Any],
              params: dict[str, Any]) -> list:
    """Evaluate an operation, and record it; a compiled program has its function's name."""
    start = time.perf_counter()
    outs = evaluate(primitive, args, params)
    record(str(params.get("name", primitive)), start,
         operands=", ".join(x.aval.str_short(True) for x in args))
    return outs


class TraceAnnotation:
    """A block that profiles record under this name, with these details.

    >>> with TraceAnnotation("forward", layer=3):
    ...     pass
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        self._name, self._details = name, kwargs

    def __enter__(self) -> Self:
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: Any) -> None:
        record(self._name, self._start, **self._details)


class StepTraceAnnotation(TraceAnnotation):
    """A step of training.

    >>> with StepTraceAnnotation("train", step_num=7):
    ...     pass
    """


def annotate_function(func: Callable, name: str | None = None, **decorator_kwargs: Any) -> Callable:
    """The function, with all calls recorded in profiles, by default under its name.

    >>> annotate_function(abs, name="size")(-2)
    2
    """
    @tracebacks.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(name or func.__name__, **decorator_kwargs):
            return func(*args, **kwargs)
    return annotated


def start_trace(log_dir: os.PathLike | str, create_perfetto_link: bool = False,
                create_perfetto_trace: bool = False,
                profiler_options: ProfileOptions | None = None) -> None:
    """Start a profile, which `stop_trace` writes into a folder below `log_dir`.

    Args:
      log_dir: a folder, which need not exist.
      create_perfetto_link: must be False.
      create_perfetto_trace: whether to write a copy as ``perfetto_trace.json.gz``.
      profiler_options: None for the defaults.

    Raises:
      RuntimeError: where one has been started already.
    """
    if _running:
        raise RuntimeError("Profile has already been started. Only one profile may be run at a "
                           "time.")
    if create_perfetto_link:
        raise NotImplementedError("create_perfetto_link: write the profile, and open its file in "
                                  "https://ui.perfetto.dev")
    options = profiler_options or ProfileOptions()
    session = options.session_id or datetime.datetime.now().strftime("%Y_%m_%d_%H_%M_%S")
    names = (platform.node(), "perfetto_trace")[:1 + create_perfetto_trace]
    _running.append(_Profile(pathlib.Path(log_dir) / "plugins" / "profile" / session, names,
                             time.perf_counter(), [], options.host_tracer_level))
    config.update("profiling", True)


def stop_trace() -> None:
    """Stop the profile, and write it.

    Raises:
      RuntimeError: where none has been started.
    """
    if not _running:
        raise RuntimeError("No profile started")
    config.update("profiling", False)
    profile = _running.pop()
    profile.folder.mkdir(parents=True, exist_ok=True)
    for name, ending in zip(profile.names, (".trace.json.gz", ".json.gz"), strict=False):
        with gzip.open(profile.folder / (name + ending), "wt", encoding="utf-8") as file:
            json.dump({"displayTimeUnit": "ns", "traceEvents": profile.events}, file)


@contextlib.contextmanager
def trace(log_dir: os.PathLike | str, create_perfetto_link: bool = False,
          create_perfetto_trace: bool = False, profiler_options: ProfileOptions | None = None
          ) -> Iterator[None]:
    """A block of which a profile is written; the arguments are those of `start_trace`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, trace(folder):
    ...     pass
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


_OF_MEMORY = ("device_memory_profile", "save_device_memory_profile")
lazily.attach(globals(), table=dict.fromkeys(_OF_MEMORY, "minijax.placement.memory_profile"))


def __dir__() -> list[str]:
    return sorted({*globals(), *_OF_MEMORY})
