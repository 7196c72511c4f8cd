"""What is measured: the rows of `programs/`, for one library or the other."""

from collections.abc import Sequence
from pathlib import Path

from tests.bench._row import Row
from tests.written_for_jax import with_minijax

PROGRAMS = Path(__file__).parent / "programs"
SUBJECTS = ("elementwise", "reductions", "indexing", "ordering", "products", "transforms",
            "loops", "training", "calls", "windows", "lengths")
TO_COMPILE = (*SUBJECTS, "unrolled")  # whose first calls are measured


def rows(library: str, subjects: Sequence[str] = SUBJECTS) -> list[Row]:
    """Every row of some subjects, its program on "minijax" or on "jax"."""
    found = []
    for subject in subjects:
        path = PROGRAMS / f"{subject}.py"
        source = path.read_text(encoding="utf-8")
        names = {"__name__": subject}
        code = with_minijax(source) if library == "minijax" else source
        exec(compile(code, str(path), "exec"), names)
        found += names["ROWS"]
    return found
