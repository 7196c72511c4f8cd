"""What JAX refuses is refused, what it takes is taken: each argument in turn is spoilt.

The functions and their good arguments are those of `tests/public`. A few of each
function's spoilt calls run; `REFUSALS=all` runs all of them and prints those that differ.
"""

import os
import random
import re
from collections.abc import Iterator
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
from tests.public import ADAPTED, NAMES, TABLE
from tests.public.draw import Call, Draw, Of, resolved
from tests.test_errors import normalized
from tests.test_public_functions import Refused, attempt, function_of, leaves

FEW = None if os.environ.get("REFUSALS") == "all" else 4
TEXTS = {"text": "text", "none": None, "type": object}
ARRAYS = {
    "list": [1.0, 2.0], "ragged": [[1.0, 2.0], [3.0]], "scalar": np.float32(0.5),
    "empty": np.zeros(0, np.float32), "strings": np.array(["a", "b"]),
    "objects": np.array([None, 1], object), "date": np.array(["2020-01-01"], "datetime64[D]"),
    "key": Of(lambda lib: lib.random.key(0))}
DTYPES = (np.complex64, np.bool_, np.uint8, np.int32, ml_dtypes.bfloat16)
AXES = {"far": 99, "far below": -99, "half": 1.5, "twice": (0, 0), "wide": (99,)}
OPTIONS = {"axis": (99, "x", 1.5), "dtype": ("nonsense", object), "nonsense": (1,)}

# What is no array at all: who looks at it first says which of the two errors it is.
NO_ARRAYS = {*TEXTS, *ARRAYS} - {"scalar", "empty"}

# Classes of errors that JAX does not choose: it trips over what it did not expect.
ACCIDENTS = ("AttributeError", "AssertionError", "UnboundLocalError", "TracerArrayConversionError",
             "ConcretizationTypeError", "UFuncTypeError")
TRIPPED = ("tuple index out of range", "object is not iterable", "tuple indices must be",
           "len() of unsized object", "not inexact", "not supported between instances")

# Names where one of the two takes what the other refuses, or gives another type, and why.
DIFFERENT = {
    **dict.fromkeys(("numpy.argmax", "numpy.argmin", "numpy.nanargmax", "numpy.nanargmin",
                     "lax.argmax", "lax.argmin"), "we do not order complex numbers or keys there"),
    **dict.fromkeys(("lax.reduce_and", "lax.reduce_or", "lax.reduce_xor", "numpy.moveaxis"),
                    "an axis that is named twice counts once there"),
    **dict.fromkeys(("lax.eq", "lax.ne", "numpy.setdiff1d", "numpy.imag", "numpy.diagflat",
                     "numpy.insert", "numpy.signbit", "lax.bitcast_convert_type",
                     "numpy.extract", "numpy.put", "lax.full_like"), "keys"),
    **dict.fromkeys(("lax.reshape", "lax.tile", "numpy.tile", "numpy.reshape", "random.bits",
                     "random.uniform", "random.maxwell", "random.PRNGKey", "random.orthogonal",
                     *(f"numpy.linalg.{name}" for name in (
                         "cond det inv matrix_norm matrix_rank norm pinv qr slogdet solve svd "
                         "svdvals").split())),
                    "JAX finds these sizes or dtypes to be wrong only when it compiles"),
    **dict.fromkeys(("lax.integer_pow", "lax.dynamic_slice_in_dim", "lax.dynamic_index_in_dim",
                     "lax.dynamic_update_slice_in_dim", "lax.sort", "lax.cumlogsumexp",
                     "numpy.array_split", "numpy.hsplit", "numpy.vsplit", "numpy.dsplit",
                     "numpy.split", "numpy.unravel_index", "numpy.polyfit", "numpy.resize"),
                    "JAX takes a float for an integer, or None for a number"),
    **dict.fromkeys(("numpy.nan_to_num", "numpy.bincount", "numpy.repeat", "numpy.std",
                     "numpy.nanvar", "numpy.nanstd", "numpy.var", "numpy.nancumsum",
                     "numpy.nancumprod", "numpy.permute_dims", "lax.convert_element_type",
                     "lax.approx_max_k", "lax.approx_min_k", "numpy.array_equiv", "numpy.clip",
                     "numpy.tril_indices", "numpy.triu_indices", "numpy.diag_indices"),
                    "an argument that is not looked at, as it does not matter there"),
    **dict.fromkeys(("scipy.special.expn", "scipy.special.ndtr"), "JAX takes a list there"),
    "scipy.special.owens_t": "of complex numbers, where JAX's formula does not hold",
    **dict.fromkeys(("numpy.round", "numpy.around", "numpy.quantile", "numpy.percentile",
                     "numpy.nanquantile", "numpy.nanpercentile", "numpy.interp", "numpy.partition",
                     "nn.log1mexp", "nn.softmax", "nn.log_softmax", "nn.standardize",
                     "nn.one_hot", "lax.index_take", "scipy.special.softmax",
                     "scipy.special.log_softmax", "scipy.special.sph_harm_y"),
                    "truths, or integers, that JAX refuses and NumPy takes"),
    **dict.fromkeys(("numpy.polyadd", "numpy.polysub", "numpy.polydiv", "numpy.trapezoid",
                     "numpy.gradient", "numpy.argwhere", "numpy.nonzero", "numpy.fill_diagonal",
                     "numpy.vander"), "sizes and dtypes that JAX does not mean"),
}


def spoilt(x: Any) -> Iterator[tuple[str, Any]]:
    """What else may stand where `x` stands."""
    yield from TEXTS.items()
    if isinstance(x, (np.ndarray, float)):
        yield from ARRAYS.items()
        for dtype in DTYPES:
            yield dtype.__name__, np.ones(np.shape(x), dtype)
        yield "longer", np.ones((7, *np.shape(x)), np.float32)
    elif isinstance(x, (int, tuple)) and not isinstance(x, bool):
        yield from AXES.items()
    elif isinstance(x, str):
        yield from (("nonsense", "nonsense"), ("three", 3))


def mutants(case: Call) -> Iterator[tuple[str, str, Call]]:
    """The call with one argument spoilt, missing or too many: which, how, the call."""
    for field in ("args", "static"):
        given = getattr(case, field)
        for i, x in enumerate(given):
            for how, y in spoilt(x):
                yield f"{field}[{i}]", how, case._replace(
                    **{field: (*given[:i], y, *given[i + 1:])})
    for name, x in case.options.items():
        for how, y in spoilt(x):
            yield name, how, case._replace(options={**case.options, name: y})
    for name, values in OPTIONS.items():
        for y in values if name not in case.options else ():
            yield name, repr(y), case._replace(options={**case.options, name: y})
    yield "the last", "is missing", case._replace(args=case.args[:-1])


def outcome(lib: Any, module: str, name: str, case: Call) -> Any:
    """The types that come out, or the refusal."""
    found = []

    def program():
        args = tuple(resolved(lib, x) for x in case.args)
        for x in leaves(lib, case.run(function_of(lib, module, name), args, lib)):
            found.append((x.shape, str(x.dtype), bool(getattr(x, "weak_type", False)))
                         if hasattr(x, "shape") and hasattr(x, "dtype") else type(x).__name__)
        return 0
    refused = attempt(lib.eval_shape, program)  # nothing is computed
    return refused if isinstance(refused, Refused) else found


AXIS_BEYOND_THE_RANK = ("far", "far below", "99")


@pytest.mark.parametrize("part", range(4))
def test_an_axis_that_is_not_there_is_refused_in_the_words_of_jax(part):
    count, differ = 0, []
    for module, name in FUNCTIONS[part::4]:
        full = f"{module}.{name}"
        cases = [case for which, how, case in mutants(TABLE[module][name](Draw(f"{full} 0")))
                 if how in AXIS_BEYOND_THE_RANK and (which == "axis" or which.startswith("static"))]
        for case in random.Random(full).sample(cases, min(FEW and 2 or 999, len(cases))):
            ours, theirs = (outcome(lib, module, name, case) for lib in (minijax, jax))
            if not (isinstance(ours, Refused) and isinstance(theirs, Refused)
                    and theirs.kinds[0] not in ACCIDENTS):
                continue
            count += 1
            said = first_line(ours), first_line(theirs)
            if "positional-only" in said[1]:  # a detail of how the function got its derivative
                continue
            if said[0] != said[1] and full not in OTHER_WORDS:
                differ.append((full, *said))
    assert not differ and count > 50, (count, differ)


def difference(ours: Any, theirs: Any, how: str) -> str | None:
    """What is not the same: "taken", "refused", "type" or "class"."""
    if isinstance(theirs, Refused) and "ConcretizationTypeError" in theirs.kinds:
        return None  # here what is known stays known while a program is traced
    if isinstance(ours, Refused) != isinstance(theirs, Refused):
        return "refused" if isinstance(ours, Refused) else "taken"
    if not isinstance(ours, Refused):
        return None if ours == theirs else "type"
    if ours.kinds[0] == theirs.kinds[0]:
        return None
    by_chance = theirs.kinds[0] in ACCIDENTS or any(text in theirs.text for text in TRIPPED)
    either = {ours.kinds[0], theirs.kinds[0]} <= {"TypeError", "ValueError"} and how in NO_ARRAYS
    return None if by_chance or either else "class"


# Of an axis or an option that is not there, JAX says the same; but for these it speaks of something
# inside: another function, a tuple's index, NumPy's own check.
OTHER_WORDS = {f"numpy.{name}" for name in (
    "reshape pad array_split linspace logspace geomspace".split())} | {
        "lax.dynamic_slice", "random.randint", "random.ball", "random.orthogonal"}


def first_line(refused: Refused) -> str:
    words = normalized(f"{refused.kinds[0]}: {refused.text.splitlines()[0]}")
    return re.sub(r"\w+\(\) got", "f() got", words)  # a function has several names


FUNCTIONS = [row for row in NAMES if ".".join(row) not in ADAPTED]


@pytest.mark.parametrize("part", range(8))
def test_what_jax_refuses_is_refused_with_its_error(part):
    count, classes, others = 0, [], []
    for module, name in FUNCTIONS[part::8]:
        full = f"{module}.{name}"
        every = list(mutants(TABLE[module][name](Draw(f"{full} 0"))))
        for which, how, case in random.Random(full).sample(every, min(FEW or 999, len(every))):
            ours, theirs = (outcome(lib, module, name, case) for lib in (minijax, jax))
            differs, count = difference(ours, theirs, how), count + 1
            if differs and FEW is None:
                print(differs, full, which, how, "| JAX:", theirs, "| here:", ours)
            if differs == "class":
                classes.append((full, which, how))
            elif differs and full not in DIFFERENT:
                others.append((full, differs, which, how, theirs, ours))
    assert not others
    assert len(classes) < 0.03 * count, classes
