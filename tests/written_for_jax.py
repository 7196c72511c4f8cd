"""One source for both libraries: a program written for JAX, with only its import lines changed."""

import re

# `import jax`, `import jax.x as y`, `from jax.x import y`; in `import jax` the name stays jax.
IMPORT = re.compile(r"^(import|from) jax(?=[. \n])(?P<rest>.*)$", re.MULTILINE)


def with_minijax(source: str) -> str:
    """The program with its library replaced in the import lines, and nowhere else."""
    def replaced(line: re.Match) -> str:
        renamed = " as jax" if line[0] == "import jax" else ""
        return f"{line[1]} minijax{line['rest']}{renamed}"
    return IMPORT.sub(replaced, source)
