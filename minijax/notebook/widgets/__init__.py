"""The interactive pictures of the course: all but `explain` are films.

Each shows a real computation.  Builds on `film`, `drawing`, and the modules shown.
JAX has no counterpart.
"""

from typing import TYPE_CHECKING

from minijax.util import lazily
from minijax.notebook.widgets.step import step as step
from minijax.notebook.widgets.confusion import confusion as confusion
from minijax.notebook.widgets.tangent import tangent as tangent
from minijax.notebook.widgets.lattice import lattice as lattice
from minijax.notebook.widgets.reverse import reverse as reverse
from minijax.notebook.widgets.checkpointing import checkpointing as checkpointing
from minijax.notebook.widgets.kept import kept as kept
from minijax.notebook.widgets.prefix import prefix as prefix
from minijax.notebook.widgets.explain import explain as explain
from minijax.notebook.widgets.places import places as places
from minijax.notebook.widgets.rounds import rounds as rounds
from minijax.notebook.widgets.barrier import barrier as barrier
from minijax.notebook.widgets.sectors import sectors as sectors
from minijax.notebook.widgets.roof import roof as roof
from minijax.notebook.widgets.keys import keys as keys

if TYPE_CHECKING:  # loaded when used, with the partitioner or the compiler
    from minijax.notebook.widgets.held_blocks import blocks as blocks
    from minijax.notebook.widgets.speedups import scaling as scaling
    from minijax.notebook.widgets.loop_scopes import scopes as scopes
    from minijax.notebook.widgets.simplifier import simplifying as simplifying

lazily.attach(globals())
