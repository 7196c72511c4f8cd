"""The plugin of pytest that runs a file of JAX's tests, and writes the outcome of each case.

`JAX_SUITE_CHECKOUT` is the checkout, `JAX_SUITE_ON` minijax or jax, `JAX_SUITE_OUTCOMES` the file.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

ON_MINIJAX = os.environ["JAX_SUITE_ON"] == "minijax"
SECONDS = float(os.environ.get("JAX_SUITE_SECONDS", "60"))  # for one case
# The share of the cases, drawn at random, or between which two: 0.2-0.4 are others than 0.2.
LOW, HIGH = [0.0, *map(float, os.environ.get("JAX_SUITE_SHARE", "1").split("-"))][-2:]
CASES = os.environ.get("JAX_SUITE_CASES", "").split("\n")  # or names of those to run, or of files

if ON_MINIJAX:
    from tests.jax_suite import stand_ins
    stand_ins.install(Path(os.environ["JAX_SUITE_CHECKOUT"]))


def uncounted(event: str) -> Any:
    """JAX counts these events inside of its dispatch."""
    return lambda: stand_ins.Missing(f"test_util.count_events({event!r})")()


def counting(owner: Any, name: str) -> Any:
    """A context manager for the number of calls of a function of ours."""
    @contextlib.contextmanager
    def count() -> Iterator[Any]:
        calls, original = [], getattr(owner, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            return original(*args, **kwargs)
        setattr(owner, name, counted)
        try:
            yield lambda: len(calls)
        finally:
            setattr(owner, name, original)
    return count


def name_of(item: pytest.Item) -> str:
    """A case, with its class; of a library's tests, with its file."""
    name = item.name if item.cls is None else f"{item.cls.__name__}.{item.name}"
    return f"{item.path}::{name}" if os.environ["JAX_SUITE_ON"] == "library" else name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the cases that are named, or else the drawn share, which is the same in every run."""
    items[:] = [x for x in items if name_of(x) in CASES or (
        (CASES == [""] or str(x.path) in CASES)
        and LOW <= zlib.crc32(x.nodeid.encode()) / 2**32 < HIGH)]


def pytest_collection_finish() -> None:
    """Replace counters of JAX's helpers, which the tests have imported."""
    if not ON_MINIJAX:
        return
    from jax._src import test_util

    from minijax.transforms import compiled, jit
    compilations = counting(compiled, "_make_executable")
    ours = {"count_jit_tracing_cache_miss": counting(jit.CallArguments, "trace"),
            "count_pjit_cpp_cache_miss": counting(jit.JitFunction, "_call_here"),
            **dict.fromkeys(("count_jit_and_pmap_lowerings", "count_jit_compilation_cache_miss"),
                            compilations)}
    for name in [x for x in vars(test_util) if x.startswith("count_")]:
        setattr(test_util, name, ours.get(name) or uncounted(name))


# What a test asks of our objects that JAX has for itself, or of XLA: the name is in the message.
OF_JAX = re.compile("|".join((
    r"has no (?:attribute )?'(_\w+)'", r"there is no stage '(hlo|stablehlo)'",
    r"has no (MLIR), so no compiler_ir", r"minijax has no (XLA executable)",
    r"'(?:function|Partial)' object has no attribute '(args|func)'",
    r"(stablehlo\.\w+|custom_call|@my\.\w+|sdy\.sharding|optimization_barrier)[^\n]* not found in",
    r"'Backend' object has no attribute '(live_executables)'",
    r"cannot assign to field '(_\w+)'",
    r"is not <(\S+\.Missing) object")))


def cause(error: BaseException | None) -> str:
    """The internals that a failure needs; empty where it is one of ours."""
    while error is not None:
        if isinstance(error, stand_ins.NeedsInternals):
            return str(error)
        if isinstance(error, AttributeError) and str(error.name).startswith("_") and (
                "is `jax` in this process" in str(error)):
            return f"{getattr(error.obj, '__name__', '')}.{error.name}"
        if name := OF_JAX.search(str(error)):
            return str(name.group(0))
        error = error.__cause__ or error.__context__
    return ""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Stop a case that takes too long; inside of it, what is missing is not passed on."""
    def stop(*_: Any) -> None:
        raise TimeoutError(f"longer than {SECONDS:.0f} seconds")
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    if ON_MINIJAX:
        stand_ins.running = True
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo
                              ) -> Generator[None, Any, Any]:
    """Write the outcome of a case: passed, failed, skipped, or internals with their name."""
    report = yield
    if report.when != "call" and report.outcome == "passed":
        return report
    outcome, text = report.outcome, ""
    if outcome == "failed" and call.excinfo:
        needs = cause(call.excinfo.value) if ON_MINIJAX else ""
        outcome, text = ("internals", needs) if needs else ("failed", "")
        text = text or f"{call.excinfo.typename}: {call.excinfo.value}"
    with open(os.environ["JAX_SUITE_OUTCOMES"], "a") as file:
        file.write(json.dumps([name_of(item), outcome, text]) + "\n")
    return report
