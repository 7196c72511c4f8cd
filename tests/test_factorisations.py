"""What the tests compare of a factorisation allows what LAPACK may choose, and nothing else."""

import numpy as np
import pytest

from tests.factorisations import adjoint, invariants

A = np.cos(np.arange(16.0) ** 1.4).reshape(4, 4) + 2 * np.eye(4)
PHASES = np.exp(1j * np.array([0.3, 2.0, -1.0, 3.1]))
SIGNS = np.array([1.0, -1.0, -1.0, 1.0])


def schur() -> tuple[np.ndarray, np.ndarray]:
    """A triangular form, by the eigenvectors."""
    z = np.linalg.qr(np.linalg.eig(A + 0j)[1])[0]
    return adjoint(z) @ A @ z, z


def factors(name: str) -> tuple[np.ndarray, ...]:
    return {"eigh": lambda: tuple(np.linalg.eigh(A + A.T)), "eig": lambda: tuple(np.linalg.eig(A)),
            "svd": lambda: tuple(np.linalg.svd(A)), "qr": lambda: tuple(np.linalg.qr(A)),
            "schur": schur}[name]()


OTHER_CHOICES = {
    "eigh": lambda w, v: (w, v * SIGNS),
    "eig": lambda w, v: (w[::-1], v[:, ::-1] * PHASES),
    "svd": lambda u, s, vh: (u * SIGNS, s, SIGNS[:, None] * vh),
    "qr": lambda q, r: (q * SIGNS, SIGNS[:, None] * r),
    "schur": lambda t, z: (t * PHASES / PHASES[:, None], z * PHASES),
}


def differ(name: str, factors: tuple[np.ndarray, ...], others: tuple[np.ndarray, ...]) -> bool:
    return not all(np.allclose(x, y, atol=1e-6) for x, y in zip(
        invariants(f"la.{name}(a)", factors), invariants(f"la.{name}(a)", others), strict=True))


@pytest.mark.parametrize("name", OTHER_CHOICES)
def test_another_choice_is_the_same(name):
    chosen = factors(name)
    others = OTHER_CHOICES[name](*chosen)
    assert any(not np.allclose(x, y) for x, y in zip(chosen, others, strict=True))
    assert not differ(name, chosen, others)


@pytest.mark.of_tests
@pytest.mark.parametrize("name", OTHER_CHOICES)
def test_a_wrong_factor_is_found_whichever_it_is(name):
    chosen = factors(name)
    for place, factor in enumerate(chosen):
        for wrong in (factor * 1.01, np.conj(factor) + 1e-3, factor[::-1]):
            others = (*chosen[:place], wrong, *chosen[place + 1:])
            assert differ(name, chosen, others), (place, wrong)
