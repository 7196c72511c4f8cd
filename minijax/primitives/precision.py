"""The precision that a caller requests: of products by algorithm, of functions by tolerance.

Builds on `config`.  The CPU has one precision, which is the highest; a GPU has TF32, too.
In JAX: `jax/_src/lax/lax.py`, `jax/_src/lax/other.py`.
"""

import dataclasses
import enum
from typing import Any, NamedTuple, Union

import numpy as np

from minijax import config, dtypes


# ── Functions ────────────────────────────────────────────────────────────────────────────────

class AccuracyMode(enum.Enum):
    """The requested accuracy of a function; minijax always uses the highest."""

    HIGHEST, DEFAULT = range(1, 3)


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """The error that a function's result may have: absolute, relative, in units in the last place.

    >>> Tolerance(rtol=1e-5)
    Tolerance(atol=0.0, rtol=1e-05, ulps=0)

    Raises:
      ValueError: for a negative one, and when all are zero.
    """

    atol: float = 0.
    rtol: float = 0.
    ulps: int = 0

    def __post_init__(self) -> None:
        if min(self.atol, self.rtol, self.ulps) < 0:
            raise ValueError("Tolerances must be non-negative.")
        if self.atol == self.rtol == self.ulps == 0:
            raise ValueError("At least one of atol, rtol, or ulps must be set.")


def check_accuracy(accuracy: Any) -> None:
    """Refuse other values than a mode, a tolerance, or None.

    Raises:
      NotImplementedError: for those.
    """
    if accuracy is not None and not isinstance(accuracy, AccuracyMode | Tolerance):
        raise NotImplementedError(f"Accuracy {accuracy} not supported")


# ── Products ─────────────────────────────────────────────────────────────────────────────────

class Precision(enum.Enum):
    """The precision of products: on a GPU the lower two give those of float32 fewer digits."""

    DEFAULT, HIGH, HIGHEST = range(3)

    @classmethod
    def _missing_(cls, value: object) -> Any:
        return _NAMES.get(value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


class DotAlgorithm(NamedTuple):
    """The arithmetic of a product: the dtypes of its operands and of its sum."""

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Algorithms of products by their names: operand, operand, sum."""

    (DEFAULT, ANY_F8_ANY_F8_F32, ANY_F8_ANY_F8_F32_FAST_ACCUM, ANY_F8_ANY_F8_ANY,
     ANY_F8_ANY_F8_ANY_FAST_ACCUM, F16_F16_F16, F16_F16_F32, BF16_BF16_BF16, BF16_BF16_F32,
     BF16_BF16_F32_X3, BF16_BF16_F32_X6, BF16_BF16_F32_X9, TF32_TF32_F32, TF32_TF32_F32_X3,
     F32_F32_F32, F64_F64_F64) = range(16)

    __repr__, __str__ = Precision.__repr__, Precision.__str__


# JAX: of float32, those in bfloat16 give the numbers of float32 on the CPU, too.
_ON_THE_CPU = {DotAlgorithmPreset[name] for name in (
    "DEFAULT", "F16_F16_F16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6",
    "F32_F32_F32", "F64_F64_F64")}


def rounds_factors(precision: Any, dtype: np.dtype) -> tuple[Any, Any] | None:
    """The dtypes to which an algorithm rounds factors of a dtype, and their sum, if it does.

    >>> rounds_factors(DotAlgorithmPreset.F16_F16_F16, np.dtype("float32"))
    (dtype('float16'), dtype('float16'))
    """
    if precision is DotAlgorithmPreset.F16_F16_F16 and dtype.kind == "f" and dtype != np.float16:
        return np.dtype(np.float16), np.dtype(np.float16)
    if precision is DotAlgorithmPreset.BF16_BF16_F32 and dtype == np.float16:
        return dtypes.BFLOAT16, np.dtype(np.float32)
    if precision is DotAlgorithmPreset.F64_F64_F64 and dtype == np.float32:
        return np.dtype(np.float64), np.dtype(np.float64)
    return None

_NAMES: dict[Any, Precision] = {
    "highest": Precision.HIGHEST, "float32": Precision.HIGHEST, "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH, "tensorfloat32": Precision.HIGH, "default": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT, "fastest": Precision.DEFAULT, None: Precision.DEFAULT}


def canonical_precision(precision: Any) -> Any:
    """A precision as a pair for the two operands, or an algorithm, or None.

    Raises:
      ValueError: for what is none, and for an algorithm that the CPU has not.

    >>> canonical_precision("highest")
    (Precision.HIGHEST, Precision.HIGHEST)
    """
    if precision is None:
        precision = config.default_matmul_precision.value
        if precision is None:
            return None
    if isinstance(precision, str):
        precision = DotAlgorithmPreset.__members__.get(precision, precision)
    if precision in _ON_THE_CPU:
        return precision
    if isinstance(precision, DotAlgorithmPreset | DotAlgorithm):
        raise ValueError(f"The precision '{precision}' is not supported by dot_general on CPU")
    pair = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    named: Any = tuple(_NAMES.get(p) if isinstance(p, str) else p for p in pair)
    if [isinstance(p, Precision) for p in named] == [True, True]:
        return named
    raise ValueError("Precision argument must be one of:\n- None,\n"
                     f"- a string in {list(_NAMES)},\n- a lax.Precision value,\n"
                     "- a tuple of two lax.Precision values or strings,\n"
                     "- a lax.DotAlgorithmPreset or the name of one of these presets, or\n"
                     f"- a lax.DotAlgorithm value;\nbut got {precision}.")


def allows_tf32(precision: Any) -> bool:
    """Whether a float32 product on a GPU may round its factors to TF32, as it does by default.

    TF32 has 11 significant bits of float32's 24, and its range; sums keep 24.

    >>> allows_tf32(None), allows_tf32(canonical_precision("highest"))
    (True, False)
    """
    return precision in (None, DotAlgorithmPreset.DEFAULT) or isinstance(precision, tuple) and (
        Precision.HIGHEST not in precision)


PrecisionLike = Union[  # noqa: UP007  as JAX's, which prints so
    None, str, Precision, tuple[str, str], tuple[Precision, Precision], DotAlgorithm,
    DotAlgorithmPreset]
