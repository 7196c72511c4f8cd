"""One transformation's rules for many primitives: a column, cut from the blocks.

Builds on `source`.  Chapters 02 to 04 show columns.  In JAX a column is a table of rules, such as
`ad.primitive_jvps`; here it is generated.
"""

import ast
import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType

from minijax.core import Primitive
from minijax.notebook import pictures, source
from minijax.notebook.show import Shown

# The arguments of a block, or of a family's function, that fill each slot.
KEYWORDS = {
    "impl": ("impl",),
    "abstract_eval": ("abstract_eval", "accepts", "result"),
    "jvp": ("jvp", "derivative", "derivatives"),
    "transpose": ("transpose",),
    "batch": ("batch",),
    "lower": ("element", "loop", "library", "program"),
    "split": ("split",),
    "examples": ("examples",),
}


@dataclass(frozen=True)
class Cell:
    """What one block says for one slot."""

    primitive: str
    rule: str


def show_column(slot: str, module: ModuleType, only: str = "") -> Shown:
    """The rules of one slot, for each primitive whose block stands in a module.

    Args:
      slot: ``"jvp"``, ``"transpose"``, ``"batch"``, ``"impl"``, ``"abstract_eval"``, ``"lower"``,
        ``"split"`` or ``"examples"``.
      module: such as ``minijax.primitives.algebra``.
      only: names of primitives, if not all are wanted.

    >>> import minijax.primitives.algebra
    >>> show_column("jvp", minijax.primitives.algebra, only="neg sqrt")
    neg   lambda t, z, x: neg(t)
    sqrt  lambda t, z, x: mul(t, div(coefficient(.5, x), z))
    """
    if slot not in KEYWORDS:
        raise ValueError(f"no slot is called {slot!r}; the slots are {', '.join(KEYWORDS)}")
    wanted = only.split()
    cells = [cell for cell in column(slot, module) if not wanted or cell.primitive in wanted]
    helpers = _helpers(module, [cell.rule for cell in cells])
    width = max((len(cell.primitive) for cell in cells), default=0) + 2
    rows = [(cell.primitive.ljust(width), cell.rule.replace("\n", "\n" + " " * width))
            for cell in cells]
    text = "\n".join(name + rule for name, rule in rows)
    box = "\n".join(f"<b>{html.escape(name)}</b>{html.escape(rule)}" for name, rule in rows)
    return Shown("\n\n".join([text, *helpers]),
                 f'<pre style="{pictures.PRE}">' + "\n\n".join([box, *map(html.escape, helpers)])
                 + "</pre>")


def column(slot: str, module: ModuleType) -> Iterator[Cell]:
    """The cells of a column, in the order of the blocks."""
    text = source.module_text(module.__name__)
    tree = source.module_tree(module.__name__)
    for node in tree.body:
        for name in source.bound_names(node):
            primitive = getattr(module, name, None)
            if isinstance(primitive, Primitive) and isinstance(node, ast.Assign):
                yield Cell(primitive.name, _rule(slot, node.value, text))


def _rule(slot: str, block: ast.expr, text: str) -> str:
    """The source of a rule: given in the block, or filled by the family."""
    found = []
    if isinstance(block, ast.Call):
        found = [_segment(k.value, text) for k in block.keywords if k.arg in KEYWORDS[slot]]
    if found:
        return "\n".join(found)
    maker = ast.unparse(block.func) if isinstance(block, ast.Call) else "its maker"
    return f"(filled by `{maker}`)"


def _segment(node: ast.expr, text: str) -> str:
    """An expression as it is written, its further lines moved left with the first."""
    lines = (ast.get_source_segment(text, node) or "").split("\n")
    shift = node.col_offset
    return "\n".join([lines[0], *(line[min(shift, len(line) - len(line.lstrip())):]
                                  for line in lines[1:])])


def _helpers(module: ModuleType, rules: Sequence[str]) -> list[str]:
    """The module's own functions that the rules name, and those that these name."""
    private = {node.name for node in source.module_tree(module.__name__).body
               if isinstance(node, ast.FunctionDef) and node.name.startswith("_")}
    found: dict[str, str] = {}
    queue = list(rules)
    for text in queue:  # grows while it is read
        for name in sorted(private - set(found)):
            if name in _names(text):
                found[name] = source.find(f"{module.__name__}.{name}").text
                queue.append(found[name])
    return list(found.values())


def _names(text: str) -> set[str]:
    try:
        return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    except SyntaxError:  # several rules, one below the other, or a note
        return set(text.replace("(", " ").replace(")", " ").replace(",", " ").split())
