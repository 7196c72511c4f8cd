"""The house holds: imports point down, light modules stay light, and every file has its place."""

import ast
import graphlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import size

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "minijax"

# ---- floors: a module imports from its own floor or below

GROUND, MACHINE, ROWS, COMPILER, CALLS, TOP = range(6)
FLOORS = {
    **dict.fromkeys(("errors", "config", "tree_util", "tree", "dtypes", "profiler", "util"),
                    GROUND),
    **dict.fromkeys(("core", "util.jaxpr_text"), MACHINE),
    **dict.fromkeys(("primitives", "sharp_bits"), ROWS),
    "compiler": COMPILER,
    **dict.fromkeys(("transforms", "control_flow", "custom", "placement"), CALLS),
}  # everything else is on top

# Imports from a higher floor, each with its reason.
UPWARD = {
    ("primitives/slots.py", "minijax.compiler.scalars"): (
        "where the formula of one element is also the meaning, it runs over NumPy arrays"
    ),
    ("primitives/families.py", "minijax.compiler.kernels"): (
        "a block names the loops that are an algorithm; loaded when they are first needed"
    ),
}

MOST_OF_THE_COURSE = 5_000  # lines of code; what grades exercises stands beside the chapters

# Modules from outside that `import minijax` may load.
LIGHT = {"numpy", "ml_dtypes", "minijax"} | set(sys.stdlib_module_names)

# Modules from outside that some file loads on first use, inside a function, with the reason.
ON_FIRST_USE: dict[tuple[str, str], str] = {
    ("compiler/cpu.py", "llvmlite"): "compiles and loads kernels",
    ("compiler/numba_compiler.py", "numba"): "the other compiler",
    ("compiler/targets/numba_nvvm.py", "numba"): "the other compiler, for a GPU",
    ("compiler/targets/driver.py", "cuda"): "launches kernels on a GPU",
    ("placement/mpi.py", "mpi4py"): "collectives among processes",
    ("notebook/show.py", "IPython"): "the course runs in IPython; the library does not",
    ("as_jax/checkpoints.py", "tensorstore"): "keeps the arrays of checkpoints",
    ("scipy/signal.py", "scipy"): "the windows that have names",
    ("primitives/lapack_host.py", "scipy"): "LAPACK's iterations: eigenvalues, triangular forms",
}


@dataclass(frozen=True)
class Import:
    """One imported module, as a file says it."""

    path: str
    line: int
    module: str
    inside_function: bool

    def __str__(self) -> str:
        return f"{self.path}:{self.line} imports {self.module}"


def imports_of(path):
    """Every import of a file that runs: those in functions too, those for types only not."""
    tree = ast.parse(path.read_text())
    found = []

    def visit(node, inside):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        for module in modules_named(node, path):
            found.append(Import(path.relative_to(PACKAGE).as_posix(), node.lineno, module, inside))
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(tree, False)
    return found


def modules_named(node, path):
    """The modules that a statement, or a call of `import_module` or `later`, loads."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        origin = absolute(node, path)
        return [inner(origin, alias.name) for alias in node.names]
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = ast.unparse(node.func).rpartition(".")[2]
        if called in ("import_module", "__import__", "later"):
            return [str(node.args[0].value)]
    return []


def absolute(node, path):
    if not node.level:
        return node.module
    parents = path.relative_to(ROOT).with_suffix("").parts[: -node.level]
    return ".".join([*parents, *([node.module] if node.module else [])])


def inner(origin, name):
    """`from minijax import core` loads minijax.core; `from minijax.core import bind` does too."""
    folder = ROOT / origin.replace(".", "/")
    is_module = (folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists()
    return f"{origin}.{name}" if is_module else origin


def floor(module):
    """The floor of a dotted module name or a path inside the package."""
    parts = module.removeprefix("minijax.").removesuffix(".py").replace("/", ".").split(".")
    return FLOORS.get(".".join(parts[:2]), FLOORS.get(parts[0], TOP))


PROGRAM_TEXT = PACKAGE / "compiler" / "numba_helpers.py"  # which is copied, not imported
FILES = sorted({*PACKAGE.rglob("*.py")} - {PROGRAM_TEXT})
IMPORTS = {path: imports_of(path) for path in FILES}
ALL = [found for path in FILES for found in IMPORTS[path]]
OURS = dict.fromkeys(found for found in ALL if found.module.split(".")[0] == "minijax")
OUTSIDE = [found for found in ALL if found.module.split(".")[0] not in LIGHT]
by_path = pytest.mark.parametrize(
    "path", FILES, ids=[path.relative_to(PACKAGE).as_posix() for path in FILES]
)


@by_path
def test_imports_point_down(path):
    upward = [
        str(found)
        for found in IMPORTS[path]
        if found in OURS
        and floor(found.module) > floor(found.path)
        and (found.path, found.module) not in UPWARD
    ]
    assert not upward


def test_the_course_is_a_client_that_nothing_else_imports():
    inward = [
        str(inside)
        for inside in OURS
        if f"{inside.module}.".startswith("minijax.notebook.")
        and not inside.path.startswith("notebook/")
    ]
    assert not inward


def test_the_course_has_few_lines_in_the_package():
    assert size.counted()["notebook/"] <= MOST_OF_THE_COURSE


@pytest.mark.parametrize("module", size.CLOSURES)
def test_an_import_loads_no_more_lines_than_its_ring_allows(module):
    assert size.closure(module)[1] <= size.CLOSURES[module]


def test_the_core_is_small():
    assert size.folder("core") <= size.MOST_OF_THE_CORE


def names_in_code(path):
    """Every name, attribute and word of a string that stands in the code of a file."""
    tree = ast.parse(path.read_text())
    alone = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if isinstance(value, str) and node not in alone and field != "type_comment":
                yield from re.findall(r"\w+", value)


def test_the_core_does_not_know_that_there_are_checks():
    core = [path for path in FILES if size.part_of(path) == size.CORE]
    assert not [path for path in core if "sharp_bits" in names_in_code(path)]


# Functions may store under a key of these: registries of users' classes, and Python's own.
REGISTRIES = {"api.registered", "core.stand_ins", "devices.processors", "errors.internal_files",
              "linecache.cache", "sys.modules", "sys.argv", "sys.path", "sys.excepthook"}


def switches(path):
    """What functions of a module assign to names of other modules, to classes and to `global`s."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    shared = {(alias.asname or alias.name).partition(".")[0] for node in ast.walk(tree)
              if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names}
    shared |= {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
    for node in (each for function in functions for each in ast.walk(function)):
        if isinstance(node, ast.Global):
            yield f"global {', '.join(node.names)}"
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            place = target.value if isinstance(target, ast.Subscript) else target
            base = place
            while isinstance(base, ast.Attribute | ast.Subscript):
                base = base.value
            if base is not place and isinstance(base, ast.Name) and base.id in shared or (
                    isinstance(place, ast.Attribute) and place.attr == "__class__"):
                yield ast.unparse(place)


def test_no_function_changes_what_the_next_call_does():
    """Hooks are set at import; what is on is a flag or the context. Registries may grow."""
    hidden = {(path.name, each) for path in PACKAGE.rglob("*.py")
              if path.parent.name != "notebook" for each in switches(path)}
    assert not {(name, each) for name, each in hidden if each not in REGISTRIES}
    assert {each for _, each in hidden} >= {"api.registered", "core.stand_ins"}  # it finds some


def test_no_modules_import_each_other_in_a_circle():
    """Imports in functions count, and the packages around a module that is imported."""
    below = {module_of(path): set() for path in FILES}
    for path in FILES:
        module = module_of(path)
        for found in IMPORTS[path]:
            parts = found.module.split(".")
            around = {".".join(parts[:n]) for n in range(2, len(parts) + 1)}
            below[module] |= {name for name in around & set(below)
                              if not f"{module}.".startswith(f"{name}.")}
    while below:
        read = {name for name, found in below.items() if not found & set(below)}
        assert read, f"these import each other in a circle, or stand on one: {sorted(below)}"
        below = {name: found for name, found in below.items() if name not in read}


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_primitives_import_late_only_what_is_loaded_late():
    late = {
        found.module
        for found in OURS
        if found.inside_function and found.path.startswith("primitives/")
    }
    of_programs = "minijax.compiler.", "minijax.sharp_bits.", "minijax.primitives.layouts"
    assert all(module.startswith(of_programs) for module in late)


# `jit` compiles; live cells may edit the compiler, and `explain` shows what it does.
MAY_COMPILE = {"transforms/compiled.py", "placement/gpus.py", "notebook/accesses.py",
               "notebook/live.py", "notebook/provenance.py", "notebook/widgets/loop_scopes.py",
               "notebook/widgets/simplifier.py"}


def test_the_compiler_is_reached_through_jit_only():
    assert not [
        str(found)
        for found in OURS
        if floor(found.module) == COMPILER
        and not found.path.startswith("compiler/")
        and (found.path, found.module) not in UPWARD
        and found.path not in MAY_COMPILE
    ]


def test_what_is_heavy_loads_on_first_use_and_where_the_list_says():
    wrong = [
        str(found)
        for found in OUTSIDE
        if not found.inside_function
        or (found.path, found.module.split(".")[0]) not in ON_FIRST_USE
    ]
    assert not wrong


def test_no_import_closes_a_circle():
    """Nor one hidden in a function: what two modules need of each other is a third below both."""
    graph = {}
    for found in OURS:
        here = "minijax." + found.path.removesuffix(".py").replace("/", ".")
        here = here.removesuffix(".__init__")
        if found.module != here:
            graph.setdefault(here, set()).add(found.module)
    graphlib.TopologicalSorter(graph).prepare()  # or else CycleError, which names the circle


def test_no_exception_is_stale():
    used = {(found.path, found.module) for found in OURS}
    assert [pair for pair in UPWARD if pair not in used] == []
    used = {(found.path, found.module.split(".")[0]) for found in OUTSIDE}
    present = [pair for pair in ON_FIRST_USE if (PACKAGE / pair[0]).exists()]
    assert [pair for pair in present if pair not in used] == []


def test_an_import_hidden_in_a_function_is_found(tmp_path, monkeypatch):
    package = tmp_path / "minijax"
    package.mkdir()
    source = "def f():\n    from .api import jit\n    importlib.import_module('numba')\n"
    (package / "core.py").write_text(source)
    (package / "api.py").write_text("")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    monkeypatch.setitem(globals(), "PACKAGE", package)
    found = imports_of(package / "core.py")
    assert [(i.line, i.module, i.inside_function) for i in found] == [
        (2, "minijax.api", True),
        (3, "numba", True),
    ]


def test_what_is_looked_for_stands_where_contributing_says():
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("## Where is it?\n")[2]
    rows = re.findall(r"^\|.*\| `([\w/.]+)` \| `(\w+)` \|$", section.partition("\n## ")[0], re.M)
    assert len(rows) >= 12
    for place, name in rows:
        tree = ast.parse((PACKAGE / place).read_text())
        assert name in {each for node in tree.body for each in names_bound_by(node)}, place


def names_bound_by(node):
    """The names that a statement of a module gives to something."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    return [each.id for each in ast.walk(node)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]


# ---- importing costs little


def loaded_by(statement):
    """The names of the modules that a fresh process has after a statement."""
    code = f"{statement}; import sys; print(*sorted(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    return set(run.stdout.split())


def test_import_minijax_loads_nothing_heavy():
    loaded = loaded_by("import minijax, minijax.numpy, minijax.random, minijax.lax, minijax.nn")
    heavy = {"numba", "llvmlite", "scipy", "IPython", "jax", "matplotlib", "cuda", "pytest"}
    assert not loaded & heavy
    assert "minijax.compiler.cpu" not in loaded


def test_tracing_and_differentiating_load_nothing_heavy():
    program = "import minijax as m; print(m.make_jaxpr(m.grad(lambda x: x * x))(2.0))"
    loaded = loaded_by(program)
    assert not loaded & {"numba", "llvmlite", "scipy", "IPython", "minijax.notebook"}


# ---- every file has its place and says what it is

DIRECTORIES = {"notebooks", "minijax", "tests", "book", ".ci", ".binder"}
TOP_FILES = {
    "pyproject.toml", "environment.yml", "Makefile", "LICENSE", "README.md", "CONTRIBUTING.md",
    "CHANGELOG.md", ".gitattributes", ".gitignore",
}  # fmt: skip


def checkout_files():
    """The paths that git keeps or would keep."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file()]


def test_nothing_stands_at_the_top_that_the_plan_does_not_name():
    for path in checkout_files():
        first, *rest = path.relative_to(ROOT).parts
        assert first in (DIRECTORIES if rest else TOP_FILES), path


# A directory of one machine. The first line of a script may name `env`.
ABSOLUTE = re.compile(r"(?<![\w.$}~])/(home|root|tmp|work|mnt|opt|srv|usr|var|Users)/(?!bin/env\b)")


def test_no_file_names_a_place_of_one_machine():
    found = []
    for path in checkout_files():
        if path.suffix in (".png", ".gz", ".npz", ".npy", ".so") or path.name == "test_house.py":
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if ABSOLUTE.search(line) or "index-url" in line or "find-links" in line:
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert not found


@by_path
def test_a_module_opens_by_saying_what_it_is(path):
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring, "a module opens with a docstring"
    lines = docstring.splitlines()
    assert len(lines) <= 5, "in at most five lines"
    assert lines[0].endswith((".", ":", "?", ",")) or len(lines) > 1


@by_path
def test_nothing_is_left_to_do(path):
    assert not re.findall(r"\b(TODO|FIXME|XXX)\b", path.read_text())


def test_tests_mirror_the_package():
    """tests/x/test_y.py tests minijax/x/y.py; the others test the house as a whole."""
    whole = {
        "bench", "book", "callables",
        "compositions", "corners",
        "derivative_stacks",
        "environment",
        "factorisations",
        "found_by_jaxs_tests", "growth",
        "house",
        "interrupts",
        "jax_differences",
        "jax_exclusions",
        "jax_docstrings",
        "jax_suite",
        "kinds_of_arguments",
        "laws",
        "tiny",
        "nesting",
        "on_device",
        "precision",
        "processes",
        "promotion_flags",
        "public_functions",
        "refusals", "rims",
        "sanitiser",
        "signatures",
        "threads",
        "tour",
        "walk",
    }
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        inside = path.relative_to(ROOT / "tests")
        name = inside.stem.removeprefix("test_")
        module = PACKAGE / inside.parent / name
        exists = module.with_suffix(".py").exists() or module.is_dir()
        as_a_whole = inside.parent == Path(".") and name in whole
        elsewhere = {Path("programs/test_programs.py"), Path("programs/test_on_a_gpu.py"),
                     Path("compiler/targets/test_every_primitive.py"),
                     Path("compiler/targets/test_ptx_machine.py"),
                     Path("generated/test_generated.py"),
                     Path("libraries/test_libraries.py"), Path("tutorials/test_tutorials.py"),
                     Path("notebook/test_in_a_browser.py"), Path("notebook/test_keyboard.py"),
                     Path("notebook/test_teaching.py"),
                     Path("numpy/test_index_expressions.py"),
                     Path("primitives/test_small_indices.py"),
                     Path("primitives/test_weak_types.py"),
                     Path("placement/processes/test_faults.py"),
                     Path("placement/processes/test_programs.py"),
                     Path("sharp_bits/test_casts.py"),
                     Path("sharp_bits/test_no_false_alarms.py"),
                     Path("sharp_bits/test_traps.py")}
        assert exists or as_a_whole or inside in elsewhere, inside
