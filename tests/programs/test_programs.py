"""Whole programs, each written for JAX, give JAX's results here: only the import lines change.

Numbers agree to 1e-5 of the largest number in their array; whole numbers, truth values, shapes
and dtypes agree exactly.
"""

from pathlib import Path

import jax
import numpy as np
import pytest

from tests.written_for_jax import with_minijax

PROGRAMS = sorted(path for path in Path(__file__).parent.glob("*.py")
                  if not path.name.startswith("test_"))

def results_of(path, source):
    """The numbers that a program gives, each with its place in the tree."""
    names = {"__name__": path.stem}
    exec(compile(source, str(path), "exec"), names)
    return [(jax.tree_util.keystr(place), np.asarray(x))
            for place, x in jax.tree_util.tree_leaves_with_path(names["main"]())]


def check_same(where, ours, theirs):
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, where
    if not np.issubdtype(theirs.dtype, np.inexact):
        np.testing.assert_array_equal(ours, theirs, err_msg=where)
        return
    assert np.isfinite(theirs).all(), f"{where}: the program itself goes astray"
    tolerance = 1e-5 * np.max(np.abs(theirs), initial=0)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance, err_msg=where)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_only_the_imports_change(path, answers):
    source = path.read_text()
    theirs = answers.said(answers.key(source), lambda: results_of(path, source))
    ours = results_of(path, with_minijax(source))
    assert [where for where, _ in ours] == [where for where, _ in theirs]
    for (where, our_value), (_, their_value) in zip(ours, theirs, strict=True):
        check_same(where, our_value, their_value)


def test_nothing_but_import_lines_is_rewritten():
    program = "import jax\nimport jax.numpy as jnp\nfrom jax import lax\nx = 'import jax'\n"
    assert with_minijax(program) == ("import minijax as jax\nimport minijax.numpy as jnp\n"
                                     "from minijax import lax\nx = 'import jax'\n")
