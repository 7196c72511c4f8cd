"""The magics of the course, `%%live`, `%%mini` and others; short errors, programs in colour.

Builds on `live`, `errors`, `pictures`, `processes`; IPython passes its shell, so that this module
does not import it.  JAX has no counterpart.
"""

import functools
import sys
from types import TracebackType
from typing import Any

from minijax.core import Program
from minijax.notebook import pictures
from minijax.notebook.errors import full_error, short_error
from minijax.notebook.library import library
from minijax.notebook.live import live, live_reset
from minijax.notebook.source import full_names


def load(shell: Any) -> None:
    """Make the magics known to an IPython shell, its errors short, and its programs coloured."""
    shell.register_magic_function(_live, "cell", "live")
    shell.register_magic_function(_live_reset, "line", "live_reset")
    shell.register_magic_function(_mini, "line_cell", "mini")
    shell.register_magic_function(functools.partial(_processes, shell, {}), "cell", "processes")
    shell.register_magic_function(_full_error, "line", "full_error")
    shell.set_custom_exc((Exception,), _show_error)
    _html_of(shell).for_type(Program, pictures.to_html)


def unload(shell: Any) -> None:
    """Undo every edit, and let errors be long again, and programs plain."""
    live_reset()
    shell.set_custom_exc((), None)
    _html_of(shell).pop(Program, None)


def _html_of(shell: Any) -> Any:
    """What knows how a shell shows an object as HTML."""
    return shell.display_formatter.formatters["text/html"]


def _live(line: str, cell: str) -> None:
    """`%%live NAME …`: the cell holds these definitions of the package, and may change them."""
    if live(line.split(), cell):
        print(f"live: {', '.join(full_names(line.split()))} changed; %live_reset undoes it")


def _live_reset(line: str) -> None:
    """`%live_reset [NAME …]`: what live cells changed is as in the package's files again."""
    print("live:", ", ".join(live_reset(*line.split())) or "nothing was changed,", "restored")


def _mini(line: str, cell: str | None = None) -> None:
    """`%%mini`: the cell is put into the reader's library. `%mini begin NN`, `%mini save`."""
    if cell is not None:
        library.write(cell)
        return
    verb, *chapter = line.split() or [""]
    if verb not in ("begin", "save"):
        raise ValueError("%mini begin NN begins from what stands after that chapter, or from your "
                         "own file; %mini save writes it; %%mini puts a cell into mini")
    print(library.begin(*chapter) if verb == "begin" else library.save())


def _processes(shell: Any, modules: dict[str, str], line: str, cell: str) -> None:
    """`%%processes 2 [NAME …]`: the cell is a program of two processes; keep values of the first.

    `%%processes as NAME`: the cell runs here, and is a module that such programs may import, as is
    the reader's library.
    """
    from minijax.notebook import processes
    first, *names = line.split()
    if first == "as":
        exec(compile(cell, f"{names[0]}.py", "exec"), shell.user_ns)
        modules[names[0]] = cell
        return
    shell.user_ns.update(dict.fromkeys(names))
    if why := processes.missing():
        print(why)
        return
    ran = processes.run(cell, int(first), names, {**modules, "mini": library.text})
    shell.user_ns.update(ran.values)
    print(ran)


def _full_error(line: str) -> None:
    """`%full_error`: the last error with every frame."""
    print(full_error())


def _show_error(shell: Any, kind: type[BaseException], error: BaseException,
                tb: TracebackType | None, tb_offset: int | None = None) -> list[str]:
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, tb
    lines = short_error(error.with_traceback(tb)).splitlines()
    shell._showtraceback(kind, error, lines)
    return lines
