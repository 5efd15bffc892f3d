from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mercer.errors import NumericalError
from mercer.gp.gaussian import fit_exact, noisy_factor


def problem(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    G = rng.standard_normal((n, n))
    return G @ G.T / n, rng.standard_normal(n)


@pytest.mark.parametrize("n", [2, 65, 130])
def test_evidence_is_the_density_of_a_normal(n: int) -> None:
    K, y = problem(n)
    before = K.copy()
    C = K + 0.3 * np.eye(n)
    fit = fit_exact(K, y, 0.3, np.empty((n, n)))
    expected = multivariate_normal(np.zeros(n), C).logpdf(y)
    assert fit.log_evidence == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(fit.dual_coef, np.linalg.solve(C, y), rtol=1e-8)
    a = fit.dual_coef
    np.testing.assert_allclose(
        fit.adjoint, 0.5 * (np.outer(a, a) - np.linalg.inv(C)), rtol=1e-8, atol=1e-10
    )
    np.testing.assert_array_equal(K, before)


def test_the_factor_is_of_the_noisy_gram_in_the_room_given() -> None:
    K, _ = problem(5)
    room = np.empty((5, 5))
    L = noisy_factor(K, 0.2, room)
    assert np.shares_memory(L, room)
    np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, K + 0.2 * np.eye(5), rtol=1e-12)


def test_what_is_not_positive_definite_is_refused() -> None:
    with pytest.raises(NumericalError, match="not positive definite"):
        noisy_factor(-np.eye(3), 0.5, np.empty((3, 3)))
