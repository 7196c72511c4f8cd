"""The oracle of `tests/numpy`, for the tests of this folder."""

import importlib.util
from pathlib import Path

_path = Path(__file__).parents[1] / "numpy" / "conftest.py"
_spec = importlib.util.spec_from_file_location("oracle_of_numpy", _path)
_oracle = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_oracle)
agrees_with_jax, agrees_with_64_bits = _oracle.agrees_with_jax, _oracle.agrees_with_64_bits
