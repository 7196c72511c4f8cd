"""Complex numbers are pairs of reals below `simplify`: loops never see them, no program notices.

That each operation's numbers are right is the business of the laws and of the corners.
"""

import jax
import numpy as np
import pytest

import minijax
from minijax import lax
from minijax.compiler.lowered import Lowered
from minijax.compiler.loops import For, Load, Store, walk
from minijax.compiler.pairs import Pair
from tests import sanitiser, test_laws

Z = np.array([.5 + .1j, -.3 + .7j, 1.2 - .4j], np.complex64)
A = ((np.arange(12).reshape(3, 4) - 4) * (1 - .5j) / 10 + .1j).astype(np.complex64)
REAL = np.array([1, -2, .5], np.float32)


def lowered(f, *args):
    return Lowered(minijax.make_jaxpr(f)(*args), "f")


def test_both_parts_lie_side_by_side_in_one_buffer_and_in_one_loop():
    kernel = lowered(lambda x, y: x * y + 1j, Z, Z).kernel
    assert [b.shape for b in (*kernel.inputs, *kernel.outputs)] == [(3, 2)] * 3
    assert {b.dtype for b in kernel.buffers} == {np.dtype(np.float32)} and not kernel.temps
    statements = list(walk(kernel.body))
    counts = [sum(isinstance(s, kind) for s in statements) for kind in (For, Load, Store)]
    assert counts == [1, 4, 2]


def test_what_one_chain_of_products_reads_twice_is_computed_once_in_one_loop():
    def chain(z, w):
        for _ in range(12):
            z = z * w + w
        return z
    kernel = lowered(chain, Z, Z).kernel
    assert sum(isinstance(s, For) for s in walk(kernel.body)) == 1 and not kernel.temps


def test_the_parts_of_a_matrix_are_taken_apart_once_before_the_loops_that_read_it():
    def steps(w, x):
        return lax.fori_loop(0, 5, lambda i, x: w @ x, x)
    kernel = lowered(steps, np.eye(40, dtype=np.complex64), np.ones(40, np.complex64)).kernel
    copies = [b for b in kernel.temps if b.shape == (40, 40)]
    assert len(copies) <= 4  # each part, and as columns
    outer = [s for s in kernel.body if isinstance(s, For)]
    inside = [s for s in walk(outer[-1].body) if isinstance(s, Store) and s.buffer in copies]
    assert not inside


PROGRAMS = {
    "a loop that ends when it may": lambda L: L.lax.while_loop(
        lambda s: (s[1] < 20) & L.numpy.any(abs(s[0]) < 2), lambda s: (s[0] * s[0] + Z, s[1] + 1),
        (L.numpy.asarray(Z), 0)),
    "a scalar that is carried": lambda L: L.lax.fori_loop(
        0, 5, lambda i, z: z * z + .1j, L.numpy.asarray(Z)[0]),
    "a scan with complex constants, carries and rows": lambda L: L.lax.scan(
        lambda c, x: (c * x + Z, (c[0], abs(x))), L.numpy.asarray(Z), L.numpy.asarray(A)[:, 0]),
    "a scan of real numbers, complex inside": lambda L: L.lax.scan(
        lambda c, x: (c + abs(x + 1j), c), np.float32(0), L.numpy.asarray(REAL)),
    "a branch": lambda L: L.lax.cond(
        REAL[0] > 0, lambda z: z * 2, L.numpy.conj, L.numpy.asarray(Z)),
    "branches of a batch": lambda L: L.vmap(lambda x, z: L.lax.cond(
        x > 0, lambda z: z * 2, L.numpy.conj, z))(REAL, L.numpy.asarray(Z)),
    "a gradient": lambda L: L.grad(
        lambda z: L.numpy.sum(abs(L.numpy.sin(z) * z) ** 2))(L.numpy.asarray(Z)),
    "a holomorphic derivative": lambda L: L.vmap(L.grad(
        lambda z: z * L.numpy.exp(z) / (1 + z), holomorphic=True))(L.numpy.asarray(Z)),
    "a gradient through a scan": lambda L: L.grad(lambda z: abs(L.lax.scan(
        lambda c, x: (c * x + z[0], c), z[1], z)[0]))(L.numpy.asarray(Z)),
    "a rule of its own": lambda L: squared(L)(L.numpy.asarray(Z)),
    "what is computed again": lambda L: L.grad(lambda z: abs(L.checkpoint(
        lambda z: L.numpy.sin(z) * z)(z)).sum())(L.numpy.asarray(Z)),
    "products": lambda L: (A @ L.numpy.asarray(A).T.conj(), L.numpy.vdot(Z, L.numpy.asarray(Z)),
                           L.numpy.asarray(Z) @ A, L.numpy.asarray(A) @ np.ones(4, np.float32)),
    "products with a batch": lambda L: L.vmap(lambda a: A @ a)(
        L.numpy.stack([A.T, 2j * A.T])),
    "sorts": lambda L: (L.numpy.sort(np.array([2, 1 - 1j, np.nan, 1 - 3j, 2j], np.complex64)),
                        L.numpy.argsort(L.numpy.asarray(A), axis=0)),
    "reductions": lambda L: [f(L.numpy.asarray(A)) for f in (
        L.numpy.sum, L.numpy.prod, L.numpy.mean, L.numpy.max, lambda x: x.prod(0),
        lambda x: x.min(1), lambda x: L.numpy.cumsum(x, 1), lambda x: L.numpy.cumprod(x, 0))],
    "updates": lambda L: [L.numpy.asarray(Z).at[np.array([2, 0, 2])].set(1j),
                          *(getattr(L.numpy.asarray(Z).at[np.array([2, 0, 2])], f)(1 + 2j)
                            for f in ("add", "multiply", "min", "max"))],
    "reads that fill": lambda L: (L.numpy.asarray(Z)[np.array([2, 9])], L.numpy.asarray(Z).at[
        np.array([2, 9])].get(mode="fill", fill_value=3 - 1j)),
    "moves": lambda L: (L.numpy.roll(Z, 1), L.numpy.pad(L.numpy.asarray(A), 1, constant_values=2j),
                        L.numpy.stack([Z, 1j * Z], 1).ravel(), L.numpy.asarray(Z)[::-1],
                        L.numpy.split(L.numpy.asarray(A), 2, 1)),
    "inputs, constants and numbers as results": lambda L: (
        L.numpy.asarray(Z), L.numpy.asarray(Z), 1j, Z[1] * L.numpy.ones(2)),
    "other types": lambda L: (L.numpy.asarray(Z).real.astype(np.complex64),
                              L.numpy.asarray(Z) != 0, L.numpy.arange(3) * 1j),
    "nothing": lambda L: [f(L.numpy.asarray(Z)[:0]) for f in (
        lambda z: z * z, L.numpy.sum, L.numpy.prod, lambda z: z @ z)]}


def squared(L):
    f = L.custom_jvp(lambda z: z * z)
    f.defjvps(lambda t, out, z: 2 * z * t)
    return f


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_programs_give_jaxs_numbers_and_types(name):
    ours, theirs = (jax.tree.leaves(jax.tree.map(np.asarray, lib.jit(
        lambda lib=lib: PROGRAMS[name](lib))())) for lib in (minijax, jax))
    assert [(x.dtype, x.shape) for x in ours] == [(x.dtype, x.shape) for x in theirs]
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", ["a scan with complex constants, carries and rows", "products",
                                  "a loop that ends when it may", "updates", "reductions"])
def test_memory_holds_what_programs_read(name):
    sanitiser.check(lambda: PROGRAMS[name](minijax))
    sanitiser.check(lambda z, a: ((a @ a.T)[:, 0] * z, z, z.sum()), Z, A)


@pytest.mark.parametrize("x64", [False, True])
def test_arguments_are_read_and_results_written_where_they_are(x64):
    with minijax.enable_x64(x64):
        z = minijax.numpy.asarray(Z, np.complex128 if x64 else np.complex64)
        found = minijax.jit(lambda z, x: (z, x * z[0], z.imag, z[1] * 2j))(z, REAL)
        assert [x.dtype for x in found] == [z.dtype, z.dtype, z.real.dtype, z.dtype]
        wanted = (Z, REAL * Z[0], Z.imag, Z[1] * 2j)
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6)


def test_a_weak_number_stays_weak():
    found = minijax.jit(lambda z: (z * 2, z.real))(1j)
    assert all(x.weak_type for x in found)


def test_a_callback_is_given_complex_arrays(capsys):
    minijax.jit(lambda z, x: minijax.debug.print("{} {}", z[1], x))(Z, 2.)
    assert capsys.readouterr().out == f"{minijax.numpy.asarray(Z)[1]} 2.0\n"


def factors(L, a):
    """What JAX and NumPy agree on: signs and order are LAPACK's business."""
    hermitian = a @ L.numpy.conj(a).T + 2 * np.eye(3, dtype=np.complex64)
    q, r = L.numpy.linalg.qr(a)
    u, s, v = L.numpy.linalg.svd(a, full_matrices=False)
    w, e = L.numpy.linalg.eigh(hermitian)
    return (L.numpy.linalg.cholesky(hermitian), q @ r, (u * s) @ v, s, (e * w) @ L.numpy.conj(e).T,
            w, L.numpy.linalg.solve(hermitian, a), L.numpy.linalg.det(hermitian),
            L.lax.linalg.triangular_solve(hermitian, a, left_side=True, conjugate_a=True))


FACTORED = {
    "at once": lambda L, a: L.jit(lambda a: factors(L, a))(a),
    "for a batch": lambda L, a: L.jit(L.vmap(lambda t: factors(L, t * a)))(REAL),
    "in a loop": lambda L, a: L.jit(lambda a: L.lax.scan(
        lambda c, t: (c * t, factors(L, c)), a, REAL))(a),
    "by its derivative": lambda L, a: L.jit(L.grad(
        lambda a: sum(L.numpy.sum(abs(x)) for x in factors(L, a))))(a)}


@pytest.mark.parametrize("way", FACTORED)
def test_what_has_no_formula_is_left_to_numpy(way):
    square = A[:, :3] + np.eye(3, dtype=np.complex64)
    ours, theirs = (jax.tree.map(np.asarray, FACTORED[way](lib, lib.numpy.asarray(square)))
                    for lib in (minijax, jax))
    for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-4)


def test_a_primitive_without_a_meaning_cannot_be_left_to_numpy():
    mystery = minijax.core.primitive.Primitive("mystery", abstract_eval=lambda x: [x])
    with pytest.raises(NotImplementedError, match="mystery"):
        minijax.jit(lambda z: mystery.bind(z))(Z)


def test_values_near_the_ends_of_the_exponents_do_not_overflow():
    with minijax.enable_x64(True):
        for dtype, large, small in ((np.complex64, 3e38, 1e-44), (np.complex128, 1e308, 1e-322)):
            z = np.array([large / 2 * (1 + 1j), small * (3 + 4j), large * 1j], dtype)
            np.testing.assert_allclose(minijax.jit(abs)(z), np.abs(z), rtol=1e-6)
            root = minijax.jit(minijax.numpy.sqrt)(z)
            np.testing.assert_allclose(root, np.sqrt(z), rtol=1e-6)


def test_functions_keep_their_digits_where_results_are_small():
    z = np.array([1e-4 + 1e-5j, -3e-5 + 2e-4j], np.complex64)
    wide = z.astype(np.complex128)
    for name, near in (("log", 1), ("log1p", 0), ("expm1", 0), ("tanh", 0), ("arctanh", 0),
                       ("arcsin", 0), ("sin", 0)):
        point, precise = (near + z).astype(np.complex64), near + wide
        if near:
            precise = point.astype(np.complex128)
        wanted = getattr(np, name)(precise)
        found = np.asarray(minijax.jit(getattr(minijax.numpy, name))(point))
        assert np.all(abs(found - wanted) <= 4e-7 * abs(wanted)), name


# -- the laws tested -------------------------------------------------------------------------------


def exchanged(rule):
    """A rule that gives the imaginary part for the real one."""
    def wrong(*args, **params):
        found = rule(*args, **params)
        return Pair(found.im, found.re) if isinstance(found, Pair) else ~found if (
            found.dtype == bool) else found + 1
    return wrong


@pytest.mark.of_tests
@pytest.mark.parametrize("name", ["mul", "div", "abs", "exp", "log1p", "tanh", "asin", "eq", "max",
                                  "dot_general", "reduce_prod", "cummax", "scatter-mul"])
def test_a_wrong_formula_breaks_a_law(name, monkeypatch):
    p = test_laws.PRIMITIVES[name]
    monkeypatch.setattr(p, "complex_parts", exchanged(p.complex_parts))
    assert test_laws.broken(test_laws.compiled_complex_numbers_are_the_meaning, p,
                            lambda: test_laws.cases(p))
