"""Special functions at the rims of their domains: values are SciPy's, derivatives JAX's.

The rims are zeros of both signs, poles, small and large numbers, infinities and nan, and for
functions of more arguments all their combinations.  What is eager is compared with what is
compiled, too.
"""

import functools
import warnings

import jax
import numpy as np
import pytest
import scipy.special

import minijax

SIZES = [0, .5, 1, 1.5, 2, 3, 10, 100, 1e4, np.inf]
RIMS = np.array([*SIZES, *np.negative(SIZES), np.nan])
FEW = np.array([0, .5, 1, 3, 30, np.inf, -.5, -1, -np.inf, np.nan])

# How many arguments, and where SciPy decides: elsewhere values are JAX's, or nobody's.
everywhere = lambda *args: True
both_positive = lambda a, b: ~np.signbit(a) & ~np.signbit(b) & (a == a) & (b == b)
few_powers = lambda x, power: ~(abs(power) > 10) | np.isinf(power)
FUNCTIONS = {
    "digamma": (1, lambda x: x != 0), "gammaln": (1, lambda x: x != -np.inf),
    "loggamma": (1, lambda x: x != 0), "gamma": (1, lambda x: (x > -100) & (x != 0)),
    "gammasgn": (1, everywhere), "erf": (1, everywhere), "erfc": (1, everywhere),
    "erfinv": (1, everywhere), "expit": (1, everywhere), "logit": (1, everywhere),
    "entr": (1, everywhere), "ndtr": (1, everywhere), "ndtri": (1, everywhere),
    "log_ndtr": (1, everywhere), "i0": (1, everywhere), "i0e": (1, everywhere),
    "i1": (1, everywhere), "i1e": (1, everywhere), "exp1": (1, everywhere),
    "expi": (1, everywhere), "spence": (1, everywhere), "fresnel": (1, everywhere),
    "dawsn": (1, everywhere), "erfcx": (1, everywhere),
    "gammainc": (2, everywhere), "gammaincc": (2, everywhere),
    "zeta": (2, lambda s, q: (s < np.inf) & ((q > 0) | (s <= 100))), "xlogy": (2, everywhere),
    "xlog1py": (2, everywhere), "betaln": (2, both_positive),
    "beta": (2, both_positive), "rel_entr": (2, everywhere),
    "kl_div": (2, everywhere), "boxcox": (2, few_powers), "boxcox1p": (2, few_powers),
    "comb": (2, lambda n, k: (k >= 0) & (k <= n) & (n < np.inf)),
    "poch": (2, lambda z, m: (z > 0) & (z + m > 0) & (z + m < np.inf)),
    # in float32 its terms cancel left of zero, and its zeta function underflows for large orders
    "polygamma": (2, lambda n, x: (n == 0) & (x != 0) | (n > 0) & (
        (x.dtype == np.float64) | ((x > 0) & (n < 30)))),
    "expn": (2, everywhere),
    "betainc": (3, everywhere)}
OF_ORDER = {"polygamma", "expn"}  # whose first argument is an integer
ORDERS = np.int32([0, 1, 2, 3, 10, 30])


def grid_of(name, dtype):
    count = FUNCTIONS[name][0]
    rims = np.asarray(RIMS if count < 3 else FEW, dtype)
    axes = [ORDERS, rims] if name in OF_ORDER else [rims] * count
    return [x.ravel() for x in np.meshgrid(*axes, indexing="ij")]


def results_of(f, *args):
    out = f(*args)
    return [np.asarray(x) for x in (out if isinstance(out, tuple) else [out])]


def differences(args, ours, theirs, where, rtol, atol=0):
    """Where two results are not near each other, and not the same infinity or nan."""
    with np.errstate(all="ignore"):
        near = np.isclose(ours, theirs, rtol, atol, equal_nan=True)
        tiny = np.finfo(ours.dtype).tiny
        near |= (abs(ours) <= tiny) & (abs(theirs) <= tiny)
    bad = np.flatnonzero(~near & where)
    return [f"{tuple(float(x[k]) for x in args)}: {ours[k]}, not {theirs[k]}" for k in bad]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_at_the_rims_are_of_scipy(name, dtype):
    args, rtol = grid_of(name, dtype), 2e-3 if dtype == "float32" else 1e-9
    with minijax.enable_x64(True), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        f, where = getattr(minijax.scipy.special, name), FUNCTIONS[name][1](*args)
        wanted = results_of(getattr(scipy.special, name), *(
            x if x.dtype.kind == "i" else x.astype(float) for x in args))
        eager = results_of(f, *args)
        for ours, same, theirs in zip(results_of(minijax.jit(f), *args), eager, wanted,
                                      strict=True):
            bad = differences(args, ours, theirs.astype(dtype), where, rtol, 1e-30)
            bad += differences(args, ours, same, where, rtol / 10, 1e-30)
            assert not bad, "\n".join(bad)


# ── Derivatives ──────────────────────────────────────────────────────────────────────────────

# Where JAX's derivative is a number, ours is the same, but in these places (rows of
# jax_differences.toml): there JAX has the value of a formula, and ours is the limit.
LIMITS = {
    ("spence", 0): lambda x: (x <= 0) | (x == 1), ("ndtri", 0): lambda x: abs(x - .5) >= .5,
    ("i0", 0): lambda x: x == 0, ("log_ndtr", 0): lambda x: x < -100,
    ("expn", 1): lambda n, x: x == 0,
    ("zeta", 0): lambda s, q: (s <= 1) | (q <= 0), ("zeta", 1): lambda s, q: (s <= 1) | (q <= 0),
    ("betaln", 0): lambda a, b: a + b > 100, ("betaln", 1): lambda a, b: a + b > 100,
    ("beta", 0): lambda a, b: a + b > 100, ("beta", 1): lambda a, b: a + b > 100,
    ("rel_entr", 0): lambda p, q: (p != p) | (q != q),
    ("kl_div", 0): lambda p, q: np.isinf(p) | np.isinf(q),
    ("kl_div", 1): lambda p, q: np.isinf(p) | np.isinf(q)}
NEVER_ENDING = {"gammainc", "gammaincc", "exp1", "expi"}  # JAX's loops, at rims
STEPS = {"gammasgn"}
SLOPES = [(name, k) for name, (count, _) in FUNCTIONS.items()
          for k in ([count - 1] if name in OF_ORDER | {"betainc"} else range(count))
          if name not in NEVER_ENDING | STEPS | {"comb", "poch", "fresnel"}]


def slopes(lib, args):
    """The derivatives of all functions, by one compiled program."""
    def slope(f, k, args):
        return lib.jvp(lambda x: f(*args[:k], x, *args[k + 1:]), (args[k],),
                       (lib.numpy.ones_like(args[k]),))[1]
    with lib.enable_x64(True):
        outs = lib.jit(lambda args: {(name, k): slope(
            getattr(lib.scipy.special, name), k, args[name]) for name, k in SLOPES})(args)
        return {which: np.asarray(out) for which, out in outs.items()}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivatives_at_the_rims_are_of_jax(dtype, jax_says):
    args = {name: [x[abs(np.nan_to_num(x, posinf=0, neginf=0)) < 1e3] for x in grid_of(name, dtype)]
            if FUNCTIONS[name][0] == 1 else grid_of(name, dtype) for name, _ in SLOPES}
    found = []
    ours, theirs = slopes(minijax, args), jax_says(lambda: slopes(jax, args))
    for name, k in SLOPES:
        limits = LIMITS.get((name, k), lambda *args: np.False_)(*args[name])
        where = (theirs[name, k] == theirs[name, k]) & ~limits
        bad = differences(args[name], ours[name, k], theirs[name, k], where,
                          5e-3 if dtype == "float32" else 1e-5, 1e-6)
        found += [f"{name} by {k}: {each}" for each in bad]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("name", "place", "slope"), [
    ("digamma", 0., np.inf), ("digamma", -3., np.inf), ("ndtri", 0., np.inf), ("spence", 1., -1.),
    ("ndtri", 1., np.inf), ("spence", 0., -np.inf), ("i0", 0., 0.), ("log_ndtr", -1e30, 1e30),
    ("log_ndtr", -np.inf, np.inf), ("dawsn", 3e38, 0.), ("erfcx", 3e38, 0.)])
def test_a_derivative_at_a_rim_is_the_limit(name, place, slope):
    for f in (minijax.grad(getattr(minijax.scipy.special, name)),
              minijax.jit(minijax.grad(getattr(minijax.scipy.special, name)))):
        np.testing.assert_allclose(f(np.float32(place)), slope, rtol=1e-6, atol=1e-6)


def test_polygamma_left_of_zero_is_a_derivative():
    places = np.array([-.3, -1.5, -7.25, -20.5])
    with minijax.enable_x64(True):
        f = minijax.scipy.special.digamma
        for _ in range(4):
            before, f = f, minijax.grad(f)
            step = 1e-5
            between = [(before(x + step) - before(x - step)) / (2 * step) for x in places]
            np.testing.assert_allclose([f(x) for x in places], between, rtol=1e-4, atol=1e-4)


def test_what_does_not_vary_has_no_part_in_a_derivative():
    """Its slope is infinite here, and zero times that would be nan."""
    f = minijax.scipy.special.xlogy
    assert minijax.jvp(lambda x: f(x, 1e-38), (10.,), (1.,))[1] < -80
    for slope in (minijax.grad, minijax.jacfwd):
        assert slope(functools.partial(minijax.scipy.special.zeta, 2.))(np.inf) == 0


# ── Complex numbers ──────────────────────────────────────────────────────────────────────────

PARTS = np.float32([0, 1, -1, np.inf, -np.inf, np.nan, 3e38, -3e38])
COMPLEX = (PARTS[:, None] + np.complex64(0)).repeat(8, 1)
COMPLEX.imag = PARTS
OF_COMPLEX = {"multiply": lambda z, w: z * w,
              **{f"power {p}": lambda z, w, p=p: z ** p for p in (-1., 0., .5, 1., 2., 3., 2 + 0j)}}


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_products_and_powers_of_complex_numbers_at_the_rims_are_of_jax(name, jax_says):
    """Of powers those that are compiled, where XLA makes products of some."""
    f, args = OF_COMPLEX[name], [x.ravel() for x in np.meshgrid(COMPLEX, COMPLEX)]
    theirs = np.asarray(jax_says(lambda: jax.jit(f, compiler_options={
        "xla_backend_optimization_level": 3, "xla_cpu_use_fusion_emitters": True})(*args)))
    for way in [minijax.jit(f), *[f] * (name == "multiply")]:
        ours = np.asarray(way(*map(minijax.numpy.array, args)))
        for part in ("real", "imag"):
            np.testing.assert_allclose(getattr(ours, part), getattr(theirs, part), rtol=1e-5,
                                       atol=1e-6, err_msg=f"{name}, {part}")


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_determinants_of_weak_matrices_are_as_weak_as_those_of_jax(n, beside_jax):
    def weak(lib):
        x = lib.lax.broadcast(lib.lax.full((), 2.), (n, n))
        sign, size = lib.numpy.linalg.slogdet(x)
        return [y.weak_type for y in (x, lib.numpy.linalg.det(x), sign, size)]
    ours, theirs = beside_jax(weak)
    assert ours == theirs
