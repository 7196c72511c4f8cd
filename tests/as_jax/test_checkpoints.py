"""TensorStore keeps arrays as under JAX: what one has written, the other reads."""

import pytest

from tests.as_jax.test_internals import run

pytest.importorskip("tensorstore")

ARRAYS = """
import jax, jax.numpy as jnp
from jax.experimental.array_serialization.serialization import (
    GlobalAsyncCheckpointManager, get_tensorstore_spec)
arrays = [jnp.arange(6.0).reshape(2, 3), jnp.ones(3, jnp.bfloat16), jnp.array(True),
          jnp.arange(3, dtype=jnp.int8), jnp.array([1 + 2j], "complex64")]
specs = [get_tensorstore_spec(f"{folder}/{n}") for n in range(len(arrays))]
manager = GlobalAsyncCheckpointManager()
"""
WRITE = """
manager.serialize(arrays, specs, on_commit_callback=lambda: print("written"))
manager.wait_until_finished()
manager.check_for_errors()
"""
READ = """
where = [x.sharding for x in arrays]
for x in (*manager.deserialize(where, specs),
          *manager.deserialize(where, specs, global_shapes=[(4, 2), (2,), (), (3,), (2,)]),
          *manager.deserialize(where, specs, dtypes=["int32", "float32", bool, "int8", "complex64"]
                                 )):
    print(x.dtype, x.shape, x.tolist())
"""


def printed(root, folder, program):
    start = "import minijax.as_jax" if root == "minijax" else "pass"
    return run(f"{start}\nfolder = {str(folder)!r}\n{ARRAYS}{program}")


def test_one_reads_what_the_other_has_written(tmp_path):
    for folder, writer in (("a", "jax"), ("b", "minijax")):
        assert printed(writer, tmp_path / folder, WRITE) == "written\n"
        theirs = printed("jax", tmp_path / folder, READ)
        assert printed("minijax", tmp_path / folder, READ) == theirs
        assert "float32 (4, 2) [[0.0, 1.0], [3.0, 4.0], [0.0, 0.0], [0.0, 0.0]]" in theirs


def test_what_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    for root in ("jax", "minijax"):
        assert "refused" in printed(root, tmp_path / "file", """
try:
    manager.serialize(arrays, specs, on_commit_callback=lambda: print("written"))
    manager.wait_until_finished()
except ValueError as error:
    print("refused")
""")
