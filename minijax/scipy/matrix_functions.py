"""Functions of matrices: exponential, square root, any function; Sylvester's equation.

Builds on `numpy.linalg`, `lax.linalg`.
In JAX: `jax/_src/scipy/linalg.py`.
"""

import functools
from collections.abc import Callable
from typing import Any

from minijax import lax, numpy as jnp
from minijax.core import Array
from minijax.transforms.derivatives import jvp
from minijax.transforms.jit import jit
from minijax.numpy.arguments import ArrayLike, as_array, promote_dtypes, promote_dtypes_inexact

# ── Exponentials ─────────────────────────────────────────────────────────────────────────────

# The coefficients of the [13/13] Padé approximation of exp, and the largest 1-norm of a matrix
# for it: Higham, *The scaling and squaring method revisited* (2005).
_PADE = [64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800.,
         129060195264000., 10559470521600., 670442572800., 33522128640., 1323241920., 40840800.,
         960960., 16380., 182., 1.]
_MAX_NORM = 5.371920351148152


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of a square matrix: the sum of its powers ``Aⁿ / n!``.

    >>> expm(jnp.zeros((2, 2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)

    Args:
      upper_triangular: whether A is; its lower triangle is then not read.
      max_squarings: a matrix that needs more gives nan.
    """
    # JAX: approximations of lower degree for small matrices.
    [x] = promote_dtypes_inexact(as_array("expm", A))
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"Expected A to be a (batched) square matrix, got {x.shape=}.")
    one = lambda x: _expm(jnp.triu(x) if upper_triangular else x, max_squarings)
    return jnp.vectorize(one, signature="(n,n)->(n,n)")(x)


@functools.partial(jit, static_argnums=1, inline=True)
def _expm(x: Any, max_squarings: int) -> Any:
    """``exp(x) = exp(x / 2ⁿ)`` squared n times."""
    size: Any = jnp.linalg.norm(lax.stop_gradient(x), 1) if x.size else jnp.zeros(())
    count: Any = jnp.maximum(0, jnp.ceil(jnp.log2(size / _MAX_NORM)))
    root = _pade(x / jnp.exp2(count))
    power, _ = lax.scan(lambda y, i: (lax.cond(i < count, lambda: y @ y, lambda: y), None),
                        root, jnp.arange(max_squarings, dtype=count.dtype))
    return jnp.where(count > max_squarings, jnp.nan, power)


def _pade(x: Any) -> Any:
    one: Any = jnp.eye(x.shape[-1], dtype=x.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2

    def even_powers(*c: float) -> Any:
        return (x6 @ (c[6] * x6 + c[5] * x4 + c[4] * x2)
                + c[3] * x6 + c[2] * x4 + c[1] * x2 + c[0] * one)
    scale = [c / _PADE[0] for c in _PADE]
    odd, even = x @ even_powers(*scale[1::2]), even_powers(*scale[::2])
    return jnp.linalg.solve(even - odd, even + odd)


def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None,
                 compute_expm: bool = True) -> Any:
    """``expm(A)``, and its derivative in the direction E.

    >>> expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)), compute_expm=False)
    Array([[1.]], dtype=float32)

    Args:
      method: taken for SciPy's sake; it is the derivative of `expm`.
      compute_expm: False for the derivative alone.
    """
    a, e = as_array("expm_frechet", A), as_array("expm_frechet", E)
    for name, x in (("A", a), ("E", e)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"expected {name} to be a (batched) square matrix, "
                             f"got {name}.shape={x.shape}")
    exponential, derivative = jvp(expm, (a,), (e,))
    return (exponential, derivative) if compute_expm else derivative


# ── Functions of matrices by their triangular form ───────────────────────────────────────────

def _complex_schur(x: Any) -> list[Any]:
    """T and a unitary Z with ``x = Z T Zᴴ``, complex."""
    return lax.linalg.schur(jnp.astype(x, jnp.result_type(x.dtype, jnp.complex64)))


def _back_substitute(a: Any, b: Any) -> Any:
    """The vector x for which ``a x = b``, a being upper triangular."""
    return lax.linalg.triangular_solve(a, b, left_side=True)


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form, and its vectors, from the real one of `schur`.

    >>> jnp.round(rsf2csf(jnp.array([[0., 1.], [-1., 0.]]), jnp.eye(2))[0], 3)
    Array([[0.+1.j, 0.+0.j],
           [0.+0.j, 0.-1.j]], dtype=complex64)
    """
    t, z = as_array("rsf2csf", T), as_array("rsf2csf", Z)
    for name, x in (("T", t), ("Z", z)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"Input '{name}' must be square.")
    if t.shape[-1] != z.shape[-1]:
        raise ValueError(f"Input array shapes must match: Z: {z.shape} vs. T: {t.shape}")
    t, z = (jnp.astype(x, jnp.result_type(x.dtype, jnp.complex64)) for x in promote_dtypes(t, z))
    return jnp.vectorize(_complex_schur_of_real, signature="(n,n),(n,n)->(n,n),(n,n)")(t, z)


def _complex_schur_of_real(t: Any, z: Any) -> Any:
    """From the last row up, a rotation eliminates each nonzero element below the diagonal."""
    def rotate(i: Any, matrices: Any) -> Any:
        t, z = matrices
        k = len(t) - 2 - i
        block = lax.dynamic_slice(t, (k, k), (2, 2))
        (a, _), (c, d) = block
        is_block = abs(c) > jnp.finfo(t.dtype).eps * (abs(a) + abs(d))
        x = jnp.where(is_block, jnp.linalg.eigvals(block)[0] - d, 1)
        y = jnp.where(is_block, c, 0)
        length = jnp.sqrt(jnp.real(x * jnp.conj(x) + y * jnp.conj(y)))
        rotation: Any = jnp.array([[jnp.conj(x), y], [-y, x]]) / length
        places = jnp.arange(len(t))

        def rotated(x: Any, apply: Callable, axis: int, mask: Any = True) -> Any:
            pair = lax.dynamic_slice_in_dim(x, k, 2, axis)
            return lax.dynamic_update_slice_in_dim(x, jnp.where(mask, apply(pair), pair), k, axis)
        columns = lambda x, mask=True: rotated(x, lambda pair: pair @ jnp.conj(rotation.T), 1, mask)
        t = rotated(t, lambda pair: rotation @ pair, 0, places >= k)
        return columns(t, places[:, None] < k + 2), columns(z)
    if len(t) > 1:
        t, z = lax.fori_loop(0, len(t) - 1, rotate, (t, z))
    row, column = jnp.indices(t.shape)
    return jnp.where(row == column + 1, 0, t), z


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The principal square root of a square matrix, complex: ``sqrtm(A) @ sqrtm(A) = A``.

    >>> sqrtm(jnp.array([[4., 0.], [0., 9.]]))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 3.+0.j]], dtype=complex64)

    Args:
      blocksize: 1; others are not implemented.

    Source: Björck and Hammarling, *A Schur method for the square root of a matrix* (1983).
    """
    if blocksize > 1:
        raise NotImplementedError("Blocked version is not implemented yet.")
    [x] = promote_dtypes_inexact(as_array("sqrtm", A))
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise ValueError(f"expected a square matrix, got shape {x.shape}")
    return _sqrtm_of_schur(*_complex_schur(x))


@functools.partial(jit, inline=True)
def _sqrtm_of_schur(t: Any, z: Any) -> Any:
    """The square root of ``z t z*``, column by column."""
    roots = jnp.sqrt(jnp.diagonal(t))

    def column(root: Any, j: Any) -> tuple[Any, None]:
        """``R r + r_jj r = t`` for the elements above the diagonal in column j."""
        above = jnp.where(jnp.arange(len(t)) < j, t[:, j], 0)
        shifted = root + roots[j] * jnp.eye(len(t), dtype=t.dtype)
        is_zero = jnp.diagonal(shifted) == 0  # of two eigenvalues zero: 0 / 0 counts as 0
        r = _back_substitute(shifted + jnp.diag(jnp.astype(is_zero, t.dtype)), above)
        return root.at[:, j].add(jnp.where(is_zero & (r != 0), jnp.inf, r)), None
    r, _ = lax.scan(column, jnp.diag(roots), jnp.arange(len(t)))
    return z @ r @ jnp.conj(z.T)


def funm(A: ArrayLike, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """A function of a square matrix: what a power series of the function is for the matrix.

    >>> funm(jnp.array([[1., 1.], [0., 2.]]), lambda x: x * x)
    Array([[1.+0.j, 3.+0.j],
           [0.+0.j, 4.+0.j]], dtype=complex64)

    Args:
      func: takes and gives an array of numbers, the eigenvalues.
      disp: False for an estimate of the relative error, too: it is large, and what stands above
        the diagonal wrong, where eigenvalues are alike.

    Source: Parlett, *A recurrence among the elements of functions of triangular matrices* (1976).
    """
    x = as_array("funm", A)
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise ValueError("expected square array_like input")
    t, z = rsf2csf(*lax.linalg.schur(x))
    numbers = jnp.diagonal(t)
    values = func(numbers)

    def column(f: Any, j: Any) -> tuple[Any, None]:
        """``T f - f t_jj = F t - t f_jj`` for the elements above the diagonal in column j."""
        above = jnp.where(jnp.arange(len(t)) < j, t[:, j], 0)
        gaps = numbers - numbers[j]
        shifted = t + jnp.diag(jnp.where(gaps == 0, 1, gaps) - numbers)
        right = f @ above - above * values[j]
        return f.at[:, j].add(_back_substitute(shifted, right)), None
    f, _ = lax.scan(column, jnp.diag(values), jnp.arange(len(t)))
    out = z @ f @ jnp.conj(z.T)
    return out if disp else (out, _error_of_function(t))


def _error_of_function(t: Any) -> Any:
    """An estimate of the error from the gaps between eigenvalues."""
    eps = jnp.finfo(t.dtype).eps
    numbers, above = jnp.diagonal(t), jnp.triu(t, 1)
    gaps = jnp.where(jnp.tri(len(t), dtype=bool), jnp.inf, abs(numbers[:, None] - numbers))
    nearest = jnp.min(gaps, initial=abs(t[0, 0]))
    nearest = jnp.where(nearest == 0, eps, nearest)
    return jnp.clip(eps / nearest * jnp.linalg.norm(above, 1), eps, 1)


def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur",
                    tol: float = 1e-8) -> Array:
    """The X for which ``A X + X B = C``; nan where an eigenvalue of A is one of -B.

    >>> solve_sylvester(jnp.array([[1.]]), jnp.array([[2.]]), jnp.array([[6.]]))
    Array([[2.]], dtype=float32)

    Args:
      method: "schur" or "eigen"; both take the triangular forms here.
      tol: how near to zero a sum of eigenvalues may come.

    Source: Bartels and Stewart, *Solution of the matrix equation AX + XB = C* (1972).
    """
    if method not in ("schur", "eigen"):
        raise ValueError(f"Unrecognized method {method}. The two valid methods are either "
                         '"schur" or "eigen".')
    a, b, c = promote_dtypes_inexact(A, B, C)
    (m, n), rows = c.shape[-2:], a.shape[-2:]
    if rows != (m, m) or b.shape[-2:] != (n, n):
        raise ValueError("Incompatible shapes for Sylvester equation:\n"
                         f"A: {a.shape}\nB: {b.shape}\nC: {c.shape}")
    solved = functools.partial(_sylvester, tol)
    x = jnp.vectorize(solved, signature="(m,m),(n,n),(m,n)->(m,n)")(a, b, c)
    return x if jnp.iscomplexobj(c) else jnp.real(x)


def _sylvester(tol: float, a: Any, b: Any, c: Any) -> Any:
    """By the columns of X, for triangular matrices."""
    (r, u), (s, v) = _complex_schur(a), _complex_schur(b)
    right = jnp.conj(u.T) @ c @ v

    def column(y: Any, j: Any) -> tuple[Any, None]:
        shifted = r + s[j, j] * jnp.eye(len(r), dtype=r.dtype)
        solution = _back_substitute(shifted, right[:, j] - y @ s[:, j])
        return y.at[:, j].set(solution), None
    y, _ = lax.scan(column, jnp.zeros_like(right), jnp.arange(len(s)))
    sums = jnp.abs(jnp.diagonal(r)[:, None] + jnp.diagonal(s))
    return jnp.where(jnp.all(sums > tol), u @ y @ jnp.conj(v.T), jnp.nan)
