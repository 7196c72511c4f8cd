"""The tools of the course's cells: live source, columns, transformations at work, checks.

Builds on the whole package.  `%load_ext minijax.notebook` defines the magics; everything else works
without IPython too, as plain text.  JAX has no counterpart.
"""

from typing import Any

from minijax.notebook.accesses import show_accesses as show_accesses
from minijax.notebook.checks import check as check
from minijax.notebook.claims import says as says
from minijax.notebook.columns import show_column as show_column
from minijax.notebook.live import live as live, live_reset as live_reset
from minijax.notebook.show import progress as progress, show_jaxpr as show_jaxpr
from minijax.notebook.watch import watch as watch
from minijax.notebook.widgets import explain as explain, step as step


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext minijax.notebook` calls."""
    from minijax.notebook import magics
    magics.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """What `%unload_ext minijax.notebook` calls."""
    from minijax.notebook import magics
    magics.unload(shell)
