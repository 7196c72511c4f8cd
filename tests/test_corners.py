"""Every elementwise operation, reduction and sort at the ends of its dtypes: eager, compiled, JAX.

Bit for bit, but for functions whose values are rounded: their special values are the same, the
others within a few units in the last place.  `CORNERS=1 pytest tests/test_corners.py` takes every
operation at every dtype (two minutes), otherwise one pair in ten; `python -m tests.test_corners`
prints the table: how many results differ, for each operation and dtype.
"""

import functools
import os
import warnings

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax import config

EVERY = 1 if os.environ.get("CORNERS") else 10
FLOATS = ["float16", "bfloat16", "float32", "float64"]
SIGNED, UNSIGNED = ([f"{u}int{n}" for n in (8, 16, 32, 64)] for u in ("", "u"))
NARROW = ["int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float8_e3m4"]
DTYPES = ["bool", *SIGNED, *UNSIGNED, *FLOATS, "complex64", *NARROW]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def is_float(dtype):
    return "float" in dtype.name


# ── The corners ──────────────────────────────────────────────────────────────────────────────

def corners_of_floats(dtype):
    """Zeros, the smallest and largest numbers, powers of two where integers end, inf, nan."""
    limits = ml_dtypes.finfo(dtype)
    sizes = [0, float(limits.tiny), .3, .5, 1 - float(limits.epsneg), 1, 1 + float(limits.eps),
             1.5, 2, 2.5, 3, 7, 100, 127.5, 1e4, float(limits.max) / 2, float(limits.max), np.inf]
    sizes += [2.**k for k in (7, 8, 15, 16, 31, 32, 63, 64) if 2.**k <= float(limits.max)]
    sizes = np.array([x for x in sizes if x <= float(limits.max) or x == np.inf])
    nans = np.array([np.nan, -np.nan])
    return np.concatenate([sizes, -sizes, nans]).astype(dtype)


def subnormal_corners(dtype):
    """As many numbers, the subnormal ones among them."""
    found = corners_of_floats(dtype)
    limits = ml_dtypes.finfo(dtype)
    least, most = float(limits.smallest_subnormal), float(limits.tiny)
    small = np.array([least, 3 * least, most / 2, most - least, most, 1.5 * most, 4 * most])
    small = np.concatenate([small, -small]).astype(dtype)
    found[5:5 + len(small)] = small
    return found


def corners_of_integers(dtype):
    """Both ends and their neighbours, zero and its, and the width, for shifts."""
    limits, width = np.iinfo(dtype), 8 * dtype.itemsize
    found = {limits.min, limits.min + 1, limits.max // 2, limits.max // 2 + 1, limits.max - 1,
             limits.max, 0, 1, 2, 3, 7, 100, width - 1, width, width + 1}
    if limits.min:
        found |= {-1, -2, -3, -7, -100, 1 - width, -width, -1 - width}
    return np.array(sorted(found), dtype)


def corners(name, subnormal=False):
    dtype = dtype_of(name)
    if name == "bool":
        return np.array([False, True])
    if name in NARROW:
        codes = np.arange(1 << ml_dtypes.iinfo(dtype).bits if "int" in name else 256)
        return codes.astype(np.uint8).view(dtype)
    if dtype.kind in "iu":
        return corners_of_integers(dtype)
    if dtype.kind != "c":
        return (subnormal_corners if subnormal else corners_of_floats)(dtype)
    parts = corners("float32")
    sizes = np.array([0, 1, 1.5, np.finfo(np.float32).max, np.inf], np.float32)
    parts = parts[np.isin(np.abs(parts), sizes) | np.isnan(parts)][:-1]
    z = np.empty((len(parts), len(parts)), dtype)
    z.real, z.imag = parts[:, None], parts
    return z.ravel()


def arguments(name, subnormal=False):
    """All corners; all pairs of them, apart and in an array of two rows and of two columns."""
    values = corners(name, subnormal)
    some = values
    if name == "complex64":  # the largest numbers alone: products and quotients overflow inside
        some = values[~(np.isfinite(values) & (np.abs(values) > 1e38))][::2]
    if len(values) > 99:
        some = values[::5]
    x, y = (grid.ravel() for grid in np.meshgrid(some, some))
    return values, x, y, np.stack([x, y]), np.stack([x, y], 1)


# ── The operations ───────────────────────────────────────────────────────────────────────────

def path(lib, name):
    return functools.reduce(getattr, name.split("."), lib)


UNARY = {"lax": "neg sign abs square sqrt rsqrt cbrt exp exp2 log log1p expm1 logistic sin cos tan "
                "asin acos atan sinh cosh tanh asinh acosh atanh erf erfc erf_inv lgamma digamma "
                "floor ceil round is_finite bitwise_not population_count clz real imag reciprocal",
         "numpy": "log2 log10 fabs deg2rad absolute negative sign signbit square trunc rint round "
                  "isinf isposinf isneginf nan_to_num angle sinc logical_not diff ediff1d gradient"}
BINARY = {"lax": "add sub mul div rem max min pow atan2 nextafter eq ne lt le gt ge bitwise_and "
                 "bitwise_or bitwise_xor shift_left shift_right_logical shift_right_arithmetic "
                 "complex",
          "numpy": "add subtract multiply divide floor_divide remainder fmod divmod power "
                   "float_power maximum minimum fmax fmin arctan2 hypot copysign nextafter ldexp "
                   "heaviside logaddexp logaddexp2 greater less_equal left_shift right_shift "
                   "logical_xor isclose",
          "scipy.special": "xlogy xlog1py"}
ROWS = {"lax": "reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor "
               "cumsum cumprod cummax cummin cumlogsumexp argmax argmin sort",
        "numpy": "sum prod max min mean median any all count_nonzero ptp nansum nanprod nanmax "
                 "nanmin nanmean argmax nanargmax nanargmin cumsum argsort"}
TARGETS = [name for name in DTYPES if name != "complex64"]


def along(lib, home, name, x, axis):
    """A reduction, cumulation or sort along an axis of two."""
    f = path(lib, f"{home}.{name}")
    if home == "numpy":
        return f(x, axis=axis)
    if name in ("argmax", "argmin"):
        return f(x, axis, np.int32)
    return f(x, (axis,)) if name.startswith("reduce") else f(x, axis)


def operations():
    """Name: a function of the library, all corners, and pairs of corners in four forms."""
    found = {}
    for home, names in UNARY.items():
        for name in names.split():
            found[f"{home}.{name}"] = lambda L, v, x, y, p, q, f=f"{home}.{name}": path(L, f)(v)
    for home, names in BINARY.items():
        for name in names.split():
            found[f"{home}.{name}"] = lambda L, v, x, y, p, q, f=f"{home}.{name}": path(L, f)(x, y)
    for home, names in ROWS.items():
        for name in names.split():
            found[f"{home}.{name} of pairs"] = lambda L, v, x, y, p, q, h=home, n=name: (
                along(L, h, n, p, 0), along(L, h, n, q, 1))
    for name in TARGETS:
        found[f"to {name}"] = lambda L, v, x, y, p, q, d=name: L.lax.convert_element_type(
            v, dtype_of(d))
        found[f"bits as {name}"] = lambda L, v, x, y, p, q, d=name: (
            L.lax.bitcast_convert_type(v, dtype_of(d)))
    for n in (-3, -2, -1, 0, 1, 2, 3, 5, 8):
        found[f"integer_pow {n}"] = lambda L, v, x, y, p, q, n=n: L.lax.integer_pow(v, n)
    for n in (-.5, .5, 2.5):
        found[f"x ** {n}"] = lambda L, v, x, y, p, q, n=n: v ** n
    for name in ("int8", "int32", "uint8"):
        found[f"pow to {name}"] = lambda L, v, x, y, p, q, d=name: L.lax.pow(
            x, L.lax.convert_element_type(y, dtype_of(d)))
        found[f"ldexp by {name}"] = lambda L, v, x, y, p, q, d=name: L.numpy.ldexp(
            x, L.lax.convert_element_type(y, dtype_of(d)))
    for name in ("add", "multiply", "max", "min"):
        found[f"at {name}"] = lambda L, v, x, y, p, q, n=name: getattr(
            x.at[np.arange(x.shape[0])], n)(y)
    found |= {
        "round to even": lambda L, v, x, y, p, q: L.lax.round(
            v, L.lax.RoundingMethod.TO_NEAREST_EVEN),
        "clamp": lambda L, v, x, y, p, q: L.lax.clamp(x, y, x[::-1]),
        "clip": lambda L, v, x, y, p, q: L.numpy.clip(x, y, y[::-1]),
        "where": lambda L, v, x, y, p, q: L.numpy.where(x == y, x, y),
        "top_k of pairs": lambda L, v, x, y, p, q: tuple(L.lax.top_k(q, 2)),
        "sort by keys": lambda L, v, x, y, p, q: L.lax.sort((p, p != p), 0)}
    return found


OPERATIONS = operations()

# What is left out, and why.
SKIPPED = {
    ("bool", "clamp"): "a row of jax_differences.toml",
    ("complex64", "clamp"): "XLA lacks it",
    ("bool", "numpy.round"): "a row of jax_differences.toml",
    ("bfloat16", "lax.exp2"): "XLA takes exp of x log(2), a number of three digits"}
_ROW = "a row of jax_differences.toml"
_OF_SHORT_FLOATS = {
    "lax.erfc": "XLA lacks it", **dict.fromkeys((
        "numpy.signbit", "numpy.copysign", "ldexp by int8", "ldexp by int32", "ldexp by uint8",
        "numpy.mean of pairs", "numpy.nanmean of pairs", "lax.cumlogsumexp of pairs",
        "numpy.nanargmax of pairs", "numpy.nanargmin of pairs", "lax.exp2", "lax.logistic",
        "numpy.logaddexp2"), _ROW)}
_OF_SMALL_INTEGERS = {
    "top_k of pairs": "XLA lacks it", "lax.cumlogsumexp of pairs": "both refuse it",
    **dict.fromkeys((
        "numpy.sum of pairs", "numpy.prod of pairs", "numpy.nansum of pairs",
        "numpy.nanprod of pairs", "numpy.power", "numpy.right_shift", "lax.population_count"),
        _ROW)}
for _name in NARROW:
    _skipped = _OF_SMALL_INTEGERS if "int" in _name else _OF_SHORT_FLOATS
    SKIPPED |= {(_name, _op): why for _op, why in _skipped.items()}

# Units in the last place that rounded functions may be apart, four unless said; XLA is the one
# that is far from the truth. Where two numbers cancel, the units are those of 1.
ROUNDED = set(
    "rsqrt cbrt exp exp2 log log1p expm1 logistic sin cos tan asin acos atan sinh cosh tanh asinh "
    "acosh atanh erf erfc erf_inv lgamma digamma log2 log10 deg2rad angle sinc pow atan2 power "
    "float_power arctan2 hypot logaddexp logaddexp2 xlogy xlog1py ** cumlogsumexp mean nanmean "
    "integer_pow".split())
ROUNDED_TWICE = {"sqrt", "xlog1py"}  # floats of a byte, by XLA: to float16 before
UNITS = {"exp2": 40, "cbrt": 100, "sinh": 20, "cosh": 20, "digamma": 20, "logaddexp2": 20,
         "float_power": 12}
CANCELLING = {"lgamma", "digamma", "logaddexp", "logaddexp2", "cumlogsumexp", "log2"}
KEEPS_SIGN_OF_NAN = {"lax.neg", "lax.abs", "numpy.copysign", "where", "numpy.signbit"}


# Other functions of infinite and nan parts are a row of jax_differences.toml.
COMPLEX = {
    "lax.neg", "lax.sign", "lax.abs", "lax.sqrt", "lax.real", "lax.imag", "lax.square",
    "numpy.square", "numpy.float_power",
    "numpy.sign", "numpy.isinf", "numpy.nan_to_num", "numpy.logical_not", "numpy.diff", "lax.add",
    "lax.sub", "lax.div", "lax.max", "lax.min", "lax.eq", "lax.ne", "numpy.divide",
    "numpy.maximum", "numpy.fmin", "numpy.greater", "where", "integer_pow 3",
    "at add", "at max", "at min", *(f"to {name}" for name in TARGETS),
    *(f"{name} of pairs" for name in (
        "lax.reduce_sum", "lax.reduce_max", "lax.reduce_min", "lax.cumsum", "lax.cummax",
        "lax.cummin", "lax.sort", "numpy.max", "numpy.min", "numpy.argsort", "numpy.any",
        "numpy.count_nonzero"))}


def words_of(operation):
    return set(operation.replace(".", " ").split())


def chosen(name):
    """The operations that this run takes at a dtype."""
    offset = DTYPES.index(name)
    return {op: f for i, (op, f) in enumerate(OPERATIONS.items())
            if (i + offset) % EVERY == 0 and (name, op) not in SKIPPED
            and (name != "complex64" or op in COMPLEX)}


# ── Running and comparing ────────────────────────────────────────────────────────────────────

def results(lib, ops, args):
    """Name: the list of arrays, or the class of the error."""
    found = {}
    for op, f in ops.items():
        try:
            out = f(lib, *args)
        except (TypeError, ValueError, OverflowError) as error:
            found[op] = type(error).__name__
            continue
        found[op] = list(out) if isinstance(out, tuple) else [out]
    return found


def run(lib, ops, args, compiled, **options):
    """`results`, by one compiled program if wanted, as NumPy arrays."""
    with lib.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args = [lib.numpy.asarray(x) for x in args]
        refused = {}

        def program(*args):
            found = results(lib, ops, args)
            refused.update({op: r for op, r in found.items() if isinstance(r, str)})
            return {op: r for op, r in found.items() if not isinstance(r, str)}
        outs = (lib.jit(program, **options) if compiled else program)(*args)
        return refused | {op: [np.asarray(x) for x in out] for op, out in outs.items()}


def parts_of(x):
    return [x.real.copy(), x.imag.copy()] if x.dtype.kind == "c" else [x]


def differences(op, ours, theirs, *, of_jax=True):
    """At which places two results are not the same, as pairs."""
    if isinstance(ours, str) or isinstance(theirs, str):
        same = isinstance(ours, str) and isinstance(theirs, str)
        return [] if same else [(ours if isinstance(ours, str) else "a result",
                                 theirs if isinstance(theirs, str) else "a result")]
    if [(x.dtype, x.shape) for x in ours] != [(x.dtype, x.shape) for x in theirs]:
        return [([(x.dtype, x.shape) for x in out] for out in (ours, theirs))]
    found = []
    for a, b in zip(ours, theirs, strict=True):
        for x, y in zip(*(map(np.atleast_1d, parts_of(z)) for z in (a, b)), strict=True):
            size = np.abs(b) if b.dtype.kind == "c" else None
            bad = ~(alike_floats(op, x, y, of_jax, size) if is_float(x.dtype) else x == y)
            found += [(str(p), str(q)) for p, q in zip(x[bad], y[bad], strict=True)]
    return found


@np.errstate(invalid="ignore")
def alike_floats(op, x, y, of_jax, size=None):
    limits, word = ml_dtypes.finfo(x.dtype), np.dtype(f"u{x.dtype.itemsize}")
    x, y = np.atleast_1d(x), np.atleast_1d(y)
    same, is_short = x.view(word) == y.view(word), x.dtype.itemsize == 1
    if op not in KEEPS_SIGN_OF_NAN or is_short:
        same |= np.isnan(x) & np.isnan(y)
    if is_short and not of_jax:
        return same
    if of_jax and x.dtype != np.float16 and not is_short:  # XLA's smallest number is `tiny`
        tiny = float(limits.tiny)
        p, q = x.astype(np.float64), y.astype(np.float64)
        same |= (abs(p) <= tiny) & (abs(q) <= tiny) & (
            (np.signbit(p) == np.signbit(q)) | (p != 0) & (size is not None))
    words = words_of(op)
    if words & ROUNDED or is_short and words & ROUNDED_TWICE or size is not None:
        units = max([UNITS.get(word, 4) for word in words])
        p, q = (z.astype(np.longdouble) for z in (x, y))
        with np.errstate(all="ignore"):
            scale = np.maximum(abs(q), 1 if words & CANCELLING else float(limits.tiny))
            scale = scale if size is None else np.where(size < np.inf, size, scale)
            near = abs(p - q) <= units * float(limits.eps) * scale
        near &= (np.signbit(p) == np.signbit(q)) | bool(words & CANCELLING) | (p != q)
        same |= near & np.isfinite(q) & np.isfinite(p)
    return same


def of_jax(name, every):
    """What JAX gives; of pairs few at a time: XLA loses nans in extrema of many (a row of
    jax_differences.toml)."""
    ops, (v, x, y, p, q) = chosen(name), arguments(name)
    places = {op: f for op, f in ops.items() if name in NARROW or not op.endswith("pairs")}
    if name in ("complex64", *NARROW):  # each by itself and as for users: signs of zeros depend on
        # it, and so does what is above the largest float of a byte
        parts = [run(jax, {op: f}, (v, x, y, p, q), True, compiler_options={
            "xla_backend_optimization_level": 3, "xla_cpu_use_fusion_emitters": True})
            for op, f in places.items()]
        found = dict(item for part in parts for item in part.items())
    else:
        found = run(jax, places, (v, x, y, p, q), compiled=True)
    pieces = np.split(np.arange(len(x)), len(x) // int(len(x)**.5))  # one row of the grid each
    for op in ops.keys() - places.keys():
        parts = [run(jax, {op: ops[op]}, (v, x[k], y[k], p[:, k], q[k]), compiled=False)[op]
                 for k in pieces]
        found[op] = parts[0] if isinstance(parts[0], str) else [
            np.concatenate(arrays, 0 if i or op.startswith("top_k") else -1)
            for i, arrays in enumerate(zip(*parts, strict=True))]
    return found


def found_at(name, theirs):
    """All differences at a dtype: (operation, where, pairs)."""
    ops = chosen(name)
    for way in ("eager", "compiled"):
        ours = run(minijax, ops, arguments(name), way == "compiled")
        for op in ours:
            if bad := differences(op, ours[op], theirs[op]):
                yield op, way, bad
    if name in FLOATS + NARROW:
        one, other = (run(minijax, ops, arguments(name, subnormal=True), jitted)
                      for jitted in (False, True))
        for op in one:
            if bad := differences(op, one[op], other[op], of_jax=False):
                yield op, "eager and compiled, subnormal", bad


@pytest.mark.parametrize("name", DTYPES)
def test_operations_agree_at_the_corners_of(name, jax_says):
    theirs = of_jax(name, EVERY) if EVERY == 1 else jax_says(lambda: of_jax(name, EVERY))
    found = [f"{op}, {way}: {len(bad)} places, as {bad[:3]}"
             for op, way, bad in found_at(name, theirs)]
    assert not found, "\n".join(found)


# What is made of bits, of which a narrow number has fewer.
OF_BITS = {"population_count", "clz", "nextafter", "shift_left", "shift_right_logical",
           "shift_right_arithmetic"}


@pytest.mark.parametrize("name", [
    *NARROW, "int2", "uint2", "float4_e2m1fn", "float8_e4m3", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "float8_e4m3b11fnuz", "float8_e8m0fnu"])
def test_narrow_numbers_are_computed_in_wide_ones_and_rounded_once(name):
    dtype = dtype_of(name)
    wide = minijax.dtypes.computed_in(dtype)
    codes = np.arange(1 << minijax.dtypes.itemsize_bits(dtype)).astype(np.uint8).view(dtype)
    x, y = (grid.ravel() for grid in np.meshgrid(codes, codes[::len(codes) // 16 or 1]))
    for i, op in enumerate([op for home in (UNARY, BINARY) for op in home["lax"].split()
                            if op not in OF_BITS]):
        args = (codes,) if op in UNARY["lax"].split() else (x, y)
        f = getattr(minijax.lax, op)
        try:
            found = (minijax.jit(f) if i % 4 == 0 else f)(*args)
        except TypeError:
            continue
        rounded = f(*(a.astype(wide) for a in args)).astype(found.dtype)
        assert not differences(op, [np.asarray(found)], [np.asarray(rounded)], of_jax=False), op


PLANTED = {  # right but at the corners
    "lax.max": ("max_p", lambda x, y: [np.maximum(x, y)]),
    "lax.div": ("div_p", lambda x, y: [np.floor_divide(x, np.where(y == 0, 1, y))]),
    "lax.shift_left": ("shift_left_p", lambda x, y: [np.left_shift(x, y % 32)]),
    "lax.pow": ("pow_p", lambda x, y: [np.sqrt(x)])}


@pytest.mark.of_tests
@pytest.mark.parametrize("op", PLANTED)
def test_a_planted_fault_is_found(monkeypatch, op, beside_jax):
    primitive, wrong = PLANTED[op]
    name = "int32" if op in ("lax.div", "lax.shift_left") else "float32"
    args = arguments(name)
    found = beside_jax(lambda lib: run(lib, {op: OPERATIONS[op]}, args, False)[op])
    assert not differences(op, *found)
    monkeypatch.setattr(getattr(minijax.lax, primitive), "impl", wrong)
    with config.prepared_calls(False):  # of which each has the calls of the meaning before
        assert differences(op, run(minijax, {op: OPERATIONS[op]}, args, False)[op], found[1])


def table():
    """How many places differ, for each operation and dtype; a dot where none does."""
    cells = {}
    for name in DTYPES:
        for op, _, bad in found_at(name, of_jax(name, EVERY)):
            cells[op, name] = cells.get((op, name), 0) + len(bad)
    yield f"{'':28}" + "".join(f"{name:>10}" for name in DTYPES)
    for op in OPERATIONS:
        left_out = {name for name in DTYPES if (name, op) in SKIPPED
                    or name == "complex64" and op not in COMPLEX}
        counts = [cells.get((op, name), "-" if name in left_out else "·") for name in DTYPES]
        yield f"{op:28}" + "".join(f"{count:>10}" for count in counts)


if __name__ == "__main__":
    EVERY = 1
    print("\n".join(table()))
