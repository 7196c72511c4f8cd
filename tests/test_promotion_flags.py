"""Flags that forbid promotion forbid what the user writes, as in JAX, and nothing inside of it.

Every public function, with the arguments of its table: where JAX has a result, so has minijax, and
the numbers are those without the flags. What JAX refuses is recorded: a word for each flag and case.
"""

import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import minijax
from tests.recorded import Refused
from tests.test_public_functions import (
    NAMES, SOURCES, TABLE, attempt, cases, function_of, leaves, value,
)

FLAGS = {"rank": lambda lib: lib.numpy_rank_promotion("raise"),
         "dtype": lambda lib: lib.numpy_dtype_promotion("strict")}


def outcome(lib: Any, result: Any) -> str:
    return result.kinds[0] if isinstance(result, Refused) else "-"


def staged(lib: Any, f: Callable, case: Any) -> Any:
    """A result without its numbers: what is refused is refused before any is computed."""
    return attempt(lambda: lib.eval_shape(
        lambda *xs: leaves(lib, case.run(f, case.with_arrays(xs), lib)), *case.arrays()))


def under(flag: Callable, lib: Any, run: Callable, *args: Any) -> Any:
    with flag(lib):
        return run(lib, *args)
