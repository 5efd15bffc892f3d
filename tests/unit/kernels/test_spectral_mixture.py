from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.kernels import base as rows
from mercer.kernels import stationary as spectral_mixture
from mercer.kernels.base import Sum
from mercer.kernels.stationary import SpectralComponent, SpectralMixture
from support.kernel_cases import gradient_error, plain_covariances

MIXTURE = SpectralMixture(2)
THETA = np.array([0.7, 0.2, -1.0, -2.0, -1.4, -0.3, -1.0, 0.4, -1.2, -3.0])
X = np.random.default_rng(1).standard_normal((15, 2))
Z = np.random.default_rng(2).standard_normal((4, 2)) * 3.0


def formula(x: np.ndarray, z: np.ndarray) -> float:
    t, covariance = x - z, 0.0
    for log_v, w0, w1, f0, f1 in THETA.reshape(2, 5):
        w, f = np.exp([w0, w1]), np.exp([f0, f1])
        waves = np.cos(2.0 * np.pi * f * t).prod()
        covariance += np.exp(log_v - 0.5 * (w * t**2).sum()) * waves
    return float(covariance)


def formula_error() -> float:
    return float(np.abs(MIXTURE.gram(THETA, X) - plain_covariances(formula, X, X)).max())


def adjoint() -> np.ndarray:
    A = np.random.default_rng(3).standard_normal((15, 15))
    return A + A.T


def test_against_the_formula() -> None:
    assert formula_error() < 1e-13
    cross = MIXTURE.cross_gram(THETA, X, Z)
    np.testing.assert_allclose(cross, plain_covariances(formula, X, Z), rtol=1e-11, atol=1e-15)


def test_sees_one_cosine_of_all_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """cos(f.t) is another spectral mixture, with a frequency vector and its opposite only."""

    def of_all(K: np.ndarray, c: np.ndarray, s: np.ndarray, *others: np.ndarray) -> None:
        own, theirs = np.arctan2(s, c).sum(1), np.arctan2(others[1], others[0]).sum(0)
        K *= np.cos(own[:, None] - theirs)

    monkeypatch.setattr(spectral_mixture, "multiply_by_cosines", of_all)
    assert formula_error() > 1e-2


def test_gradient() -> None:
    assert gradient_error(MIXTURE, THETA, X, adjoint()) < 1e-8


def test_gradient_sees_the_other_cosines_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def alone(G: np.ndarray, *arguments: np.ndarray) -> None:
        turns, c, s, others_c, others_s, slopes = arguments
        odd = s[:, None] * others_c.T - c[:, None] * others_s.T
        slopes += np.einsum("ij,il,ijl->l", G, turns, odd)

    monkeypatch.setattr(spectral_mixture, "slopes_of_cosines", alone)
    assert gradient_error(MIXTURE, THETA, X, adjoint()) > 1e-3


def test_a_cosine_that_is_zero_divides_nothing() -> None:
    """A quarter of a turn between rows: all but one of the cosines must not be a quotient."""
    corners = np.array([[0.0, 0.0], [0.25, 0.0], [0.25, 0.25], [1.0, 0.5]])
    theta, A = np.array([0.1, 0.2, 0.3, 0.0, 0.0]), adjoint()[:4, :4]
    assert gradient_error(SpectralComponent(), theta, corners, A) < 1e-9


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    K = MIXTURE.gram(THETA, X)
    gradient = MIXTURE.gradient(THETA, X, K, adjoint())
    monkeypatch.setattr(rows, "_BLOCK_ENTRIES", 60)
    np.testing.assert_array_equal(MIXTURE.gram(THETA, X), K)
    np.testing.assert_allclose(MIXTURE.gradient(THETA, X, K, adjoint()), gradient, rtol=1e-12)


def test_a_mixture_is_a_sum_of_components() -> None:
    assert SpectralMixture(1) == SpectralComponent()
    assert Sum((SpectralComponent(),) * 2) == MIXTURE
    assert SpectralMixture(2) + SpectralMixture(3) == SpectralMixture(5)


@pytest.mark.parametrize("n_components", [0, 11, 2.0, True, "2"])
def test_other_numbers_are_refused(n_components: object) -> None:
    with pytest.raises(UsageError, match="from 1 to 10 components"):
        SpectralMixture(n_components)  # type: ignore[arg-type]
