"""The errors as pairs of programs: one that raises the error, and the corrected one.

Builds on the docstrings of `errors`, which contain both; the book and chapter 21 show them,
and a test runs every one.  JAX has no counterpart.
"""

import html
import inspect
import linecache
import textwrap
import warnings
from dataclasses import dataclass
from typing import Any

from minijax import errors
from minijax.notebook import pictures
from minijax.notebook.error_pages import parts_of, plain
from minijax.notebook.errors import short_error, short_error_html, with_code

PRELUDE = """\
from functools import partial
import numpy as np
import minijax as jax
import minijax.numpy as jnp
from minijax import grad, jit, lax, random, vmap
"""


# ── Running them ─────────────────────────────────────────────────────────────────────────────


def run(program: str) -> Exception | None:
    """Run a program of a page with the usual imports; return what it raises, or warns of first."""
    names: dict[str, Any] = {}
    exec(PRELUDE, names)
    filename = "example.py"
    linecache.cache[filename] = (len(program), None, program.splitlines(True), filename)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", errors.SharpBitWarning)
            exec(compile(program, filename, "exec"), names)
    except Exception as error:
        return error
    return None


# ── Showing them ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Exhibit:
    """One error: a broken program, what it says, why, and the program mended."""

    kind: type[Exception]
    broken: str
    mended: str

    @property
    def why(self) -> str:
        """What happened, in the words of the class's page."""
        return plain(parts_of(self.kind)["What happened"].pieces[0][0])

    @property
    def fix(self) -> str:
        """What to do about it, in a sentence."""
        return parts_of(self.kind)["The fix"].sentence()

    @property
    def error(self) -> Exception:
        """What the broken program raises; raises TypeError where it does not."""
        error = run(self.broken)
        if not isinstance(error, self.kind):
            raise TypeError(f"the example of {self.kind.__name__} gives {error!r}")
        return error

    def __repr__(self) -> str:
        says = textwrap.indent(short_error(self.error), "    ")
        return f"{self.broken}\nsays\n\n{says}\n\n{self.why}\n\nMended:\n\n{self.mended}"

    def _repr_html_(self) -> str:
        def code(program: str) -> str:
            return f'<pre style="{pictures.PRE}">{html.escape(program.rstrip())}</pre>'
        why = with_code(" ".join(self.why.split()))
        return (f"{code(self.broken)}{short_error_html(self.error)}<p>{why}</p>"
                f"{code(self.mended)}")


def exhibit(kind: type[Exception]) -> Exhibit:
    """The first example of an error class, broken and mended.

    >>> print(exhibit(errors.NonConcreteBooleanIndexError).broken)
    @jit
    def sum_of_positive(x):
        return x[x > 0].sum()       # NonConcreteBooleanIndexError
    <BLANKLINE>
    sum_of_positive(jnp.arange(-5, 5))
    <BLANKLINE>
    """
    parts = parts_of(kind)
    return Exhibit(kind, parts["The smallest example"].programs[0], parts["The fix"].programs[0])


def gallery() -> list[Exhibit]:
    """Every error class that has an example, in the order of the page.

    >>> len(gallery()) > 10
    True
    """
    kinds = [kind for kind in vars(errors).values()
             if inspect.isclass(kind) and issubclass(kind, Exception)]
    return [exhibit(kind) for kind in kinds if "The smallest example" in parts_of(kind)]
