"""How much there is to read: lines of code of the package, without docstrings, comments, blanks.

`python -m tests.size` prints a table of the folders, and one of what an import loads; `--write`
also writes them into CONTRIBUTING.md.
"""

import ast
import io
import json
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "minijax"
GROUND = ("errors", "config", "util", "tree_util", "tree", "dtypes")
CORE = "core/ and the ground under it"
# What an import loads without `minijax/__init__.py`, which sets the hooks: lines of code, at most.
CLOSURES = {"minijax.core": 2_500, "minijax.transforms.gradients": 3_500,
            "minijax.transforms.jit": 4_500}
MOST_OF_THE_CORE = 1_300  # lines of code of its own folder
MARKS = "<!-- lines of code: python -m tests.size --write -->", "<!-- end of the lines -->"


def code_lines(source: str) -> int:
    """The lines of a module that hold code: a string that stands alone is no code."""
    strings = {(node.lineno, node.col_offset) for node in ast.walk(ast.parse(source))
               if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
               and isinstance(node.value.value, str)}
    nothing = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
               tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in nothing and token.start not in strings:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines)


def part_of(path: Path) -> str:
    """The part of the package that a file belongs to."""
    first, *rest = path.relative_to(PACKAGE).parts
    first = first.removesuffix(".py")
    if rest[:1] == ["targets"]:
        return "compiler/targets/, for GPUs"
    if first in (*GROUND, "core"):
        return CORE
    return f"{first}/" if (PACKAGE / first).is_dir() else "the other modules on top"


def counted() -> Counter[str]:
    lines: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        lines[part_of(path)] += code_lines(path.read_text())
    return lines


def folder(name: str) -> int:
    """The lines of code of one folder of the package."""
    return sum(code_lines(path.read_text()) for path in (PACKAGE / name).rglob("*.py"))


LOADED = """
import importlib, json, sys, types
package = types.ModuleType("minijax")
package.__path__ = [sys.argv[1]]
sys.modules["minijax"] = package
importlib.import_module(sys.argv[2])
print(json.dumps([module.__file__ for name, module in sys.modules.items()
                  if name.startswith("minijax.")]))
"""


def closure(module: str) -> tuple[int, int]:
    """How many modules the import of one loads, and their lines of code."""
    run = subprocess.run([sys.executable, "-c", LOADED, str(PACKAGE), module],
                         capture_output=True, text=True, check=True)
    files = json.loads(run.stdout)
    return len(files), sum(code_lines(Path(file).read_text()) for file in files)


def closures() -> str:
    """What imports load, as a table in Markdown."""
    rows = ((module, *closure(module), most) for module, most in CLOSURES.items())
    return "\n".join(["| import | modules | lines of code | at most |", "|---|---:|---:|---:|",
                      *(f"| `{module}` | {count} | {lines:,} | {most:,} |"
                        for module, count, lines, most in rows)])


def table() -> str:
    """The folders as Markdown: the core first, the rest by size, then the sum."""
    lines = counted()
    rows = [(CORE, lines.pop(CORE)), *lines.most_common()]
    house = sum(n for part, n in rows if part != "notebook/")
    rows.append(("all without `notebook/`", house))
    return "\n".join(["| part | lines of code |", "|---|---:|",
                      *(f"| {part} | {n:,} |" for part, n in rows)])


def written(text: str) -> str:
    """CONTRIBUTING.md with the table of today."""
    before, _, rest = text.partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    return f"{before}{MARKS[0]}\n\n{table()}\n\n{closures()}\n\n{MARKS[1]}{after}"


if __name__ == "__main__":
    print(f"{table()}\n\n{closures()}")
    if "--write" in sys.argv:
        path = ROOT / "CONTRIBUTING.md"
        path.write_text(written(path.read_text()))
