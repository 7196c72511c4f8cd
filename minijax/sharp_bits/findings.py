"""Findings of checks, with their iteration: raised, warned of, or collected.

Builds on `config`, `context`, `errors`, `source_info`.  Each check's own file defines its
findings.  JAX has no counterpart.
"""

import contextlib
import html
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from minijax import config, errors
from minijax.util import context, source_info

T = TypeVar("T")

SHARP_BITS = (config.check_tracer_leaks, config.debug_nans, config.debug_infs,
              config.debug_key_reuse, config.debug_out_of_bounds, config.debug_purity,
              config.debug_recompiles, config.debug_dtype_truncation, config.debug_unsafe_casts)
sharp_bits = config.switch("sharp_bits", together=SHARP_BITS, doc=(
    "Start with every check of a silent trap turned on, as checking_sharp_bits does."))


@dataclass(frozen=True)
class Finding:
    """One trap that a program stepped into.

    Args:
      kind: the flag of the check, such as ``"debug_nans"``.
      message: what happened: the text of the error or warning.
      function, file, line: where it happened in the user's program, if known.
      fix: what to do about it, in one sentence.

    >>> print(Finding("debug_key_reuse", "the key was used twice", "f", "model.py", 3,
    ...               "Split the key before each use."))
    model.py:3, in f: the key was used twice (debug_key_reuse)
    The fix: Split the key before each use.
    """

    kind: str
    message: str
    function: str | None = None
    file: str | None = None
    line: int | None = None
    fix: str = ""
    by: object = field(default=None, compare=False, repr=False)  # one equation's findings are one

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}, in {self.function}: " if self.file else ""
        fix = f"\nThe fix: {self.fix}" if self.fix else ""
        return f"{place}{self.message} ({self.kind}){fix}"

    def _repr_html_(self) -> str:
        first, *rest = map(html.escape, str(self).splitlines())
        return f"<p><b>{first}</b></p>" + "".join(f"<p>{line}</p>" for line in rest)


def finding(kind: str, message: str, fix: str, source: source_info.SourceInfo | None = None,
            by: object = None) -> Finding:
    """A finding at a user's line: `source`, or else the line that is running."""
    source = source or source_info.user_frame()
    if source is None:
        return Finding(kind, message, fix=fix, by=by)
    return Finding(kind, message, source.function, source.short_file, source.line, fix, by)


def quoted(source: source_info.SourceInfo | None) -> str | None:
    """A user's line as in an error: its place, and its text if it is known."""
    if source is None:
        return None
    return f"{source.summary}: {source.text}" if source.text else source.summary


# The list that findings go to; None where they are raised and warned of.
_collected: ContextVar[list[Finding] | None] = ContextVar("minijax_findings", default=None)


def is_collecting() -> bool:
    """Whether findings are collected, so that the program goes on after each."""
    return _collected.get() is not None


def has_collected(kind: str) -> bool:
    """Whether a finding of a kind has been collected."""
    return any(each.kind == kind for each in _collected.get() or ())


def report(finding: Finding, error: Exception | None = None) -> None:
    """Collect a finding; or else raise `error`, or warn where there is none.

    The error bears the finding as its attribute `finding`.
    """
    if (collected := _collected.get()) is not None:
        # a loop that steps into it a thousand times is one finding
        is_repeated = any(other == finding or (finding.by is not None and other.by == finding.by)
                          for other in collected)
        if not is_repeated:
            collected.append(finding)
    elif error is None:
        errors.warn(f"{finding.message} {finding.fix}".rstrip(), errors.SharpBitWarning)
    else:
        error.finding = finding  # type: ignore[attr-defined]
        raise error


def refuse(kind: str, message: str, fix: str, error: type[Exception],
           source: source_info.SourceInfo | None, by: object = None) -> None:
    """Collect a finding at a user's line, or raise an error of it.

    Args:
      by: findings with one `by` are one: an equation, which runs the check, or a line.
    """
    place = f"\nIn {source.function}, {source.short_file}:{source.line}: " if source else ""
    raised = error(f"{message}{place}{source.text if source else ''}\n{fix}")
    if callable(by):  # an equation
        source_info.add_user_note(raised, source)
    report(finding(kind, message, fix, source, by), raised)


@contextlib.contextmanager
def checking_sharp_bits(value: bool = True, *, collect: bool = False) -> Iterator[list[Finding]]:
    """Turn on, in this thread, every check of a trap that is otherwise silent.

    Args:
      value: False turns them all off.
      collect: whether findings are put into a list, and the program goes on, instead of raising.

    Returns:
      A context manager; ``with … as findings`` gives the list.

    >>> from minijax import numpy as jnp
    >>> with checking_sharp_bits(collect=True) as findings:
    ...     x = jnp.log(jnp.float32(-1.0))
    >>> [finding.kind for finding in findings]
    ['debug_nans']
    """
    findings: list[Finding] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(sharp_bits(value))
        stack.callback(_collected.set, _collected.get())
        _collected.set(findings if collect else None)
        yield findings


# ── Which iteration of a loop, which example of a batch ──────────────────────────────────────

SHARDED = "sharded computation"  # of `pmap` and `shard_map`


class Step(NamedTuple):
    """One repetition: an iteration of a loop, an example of a batch.

    >>> print(Step("scan", 3, 10), "and", Step("vmap", 0, 4, (2,)))
    iteration 3 of a scan of 10 and example 0 of a vmap over 4 (and 2)
    """

    kind: str  # "scan", "while_loop", "vmap", SHARDED
    number: int  # from 0
    of: int | None = None  # how many there are, where that is known
    others: tuple[int, ...] = ()  # the numbers of the steps like it

    def __str__(self) -> str:
        if self.kind in ("vmap", SHARDED):
            shown = ", ".join(map(str, self.others[:5])) + (", …" if self.others[5:] else "")
            also = f" (and {shown})" if shown else ""
            return f"example {self.number} of a {self.kind} over {self.of}{also}"
        of = "" if self.of is None else f" of {self.of}"
        return f"iteration {self.number} of a {self.kind}{of}"


# The steps we are in while loops and batches run piece by piece, the outermost first.
current_steps: ContextVar[tuple[Step, ...]] = ContextVar("minijax_current_steps", default=())


def in_step(step: Step, f: Callable[..., T], *args: Any, outside: int | None = None,
            **kwargs: Any) -> T:
    """`f(*args, **kwargs)`, with the step recorded for checks inside.

    Args:
      outside: how many of the steps we are in are around this one; None: all of them.

    >>> in_step(Step("scan", 3, 10), lambda: list(map(str, current_steps.get())))
    ['iteration 3 of a scan of 10']
    """
    steps = current_steps.get()
    outer = len(steps) if outside is None else outside
    return context.with_values({current_steps: (*steps[:outer], step, *steps[outer:])},
                               f, *args, **kwargs)
