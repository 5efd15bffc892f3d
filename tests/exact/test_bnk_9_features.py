"""BNK-9: the features of the mixture's frequencies give the mixture's kernel."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from mercer.spectral.base_measure import DiagonalComponents
from mercer.spectral.mixture import Mixture, MixtureState
from mercer.spectral.model import design, feature_kernel
from support.mixture_cases import BASES, CONCENTRATION
from support.statistics import FALSE_ALARM

LAGS = np.array([0.3, 1.0, 2.5, 4.0])
M, N_DRAWS = 50, 2500
# Two-sided, over the lags of four bases and of one state.
LIMIT = float(stats.norm.isf(FALSE_ALARM / (2.0 * len(LAGS) * (len(BASES) + 1))))


def products(W: np.ndarray, lags: np.ndarray) -> np.ndarray:
    """phi(x)'phi(x + t) at a place x that must not matter."""
    x = np.full(lags.shape, 0.7)
    return np.einsum("mi,mi->i", design(W, x, False), design(W, x + lags, False))


def state_of(d: int) -> MixtureState:
    """Two components apart from 0, with 30 and 20 frequencies."""
    means = np.array([[1.5], [-0.4]]) * np.ones(d)
    variances = np.array([[0.04], [0.5]]) * np.ones(d)
    Z = np.repeat([0, 1], [30, 20])
    return MixtureState(Z, DiagonalComponents(means, variances), np.full(d, 0.5), CONCENTRATION)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("m", [1, 7, 400])
def test_bnk_9_features_of_a_row_have_length_one(m: int, d: int) -> None:
    """phi(x)'phi(x) = 1, also far away and for frequencies of 0."""
    rng = np.random.default_rng(9)
    W, X = (
        rng.standard_normal((m, d)),
        rng.standard_normal((50, d)) * np.logspace(-3, 6, 50)[:, None],
    )
    W[0] = 0.0
    np.testing.assert_allclose((design(W, X, False) ** 2).sum(axis=0), 1.0, rtol=4e-15)
    np.testing.assert_allclose(feature_kernel(W, np.zeros((1, d))), 1.0, rtol=0.0, atol=1e-15)


def test_bnk_9_the_kernel_is_that_of_the_features() -> None:
    rng = np.random.default_rng(9)
    W, lags = rng.standard_normal((30, 2)), rng.standard_normal((20, 2))
    np.testing.assert_allclose(products(W, lags), feature_kernel(W, lags), atol=1e-14)


def prior_z(case: str) -> float:
    """Frequencies from the prior against the characteristic function of one of them."""
    mixture, rng = Mixture(BASES[case], CONCENTRATION), np.random.default_rng(91)
    lags = LAGS[:, np.newaxis] * np.ones(mixture.base.n_inputs)
    seen = np.array([products(mixture.draw_prior(rng, 1)[1], lags) for _ in range(N_DRAWS)])
    error = seen.mean(axis=0) - mixture.base.characteristic(lags)
    return float(np.abs(error / (seen.std(axis=0, ddof=1) / math.sqrt(N_DRAWS))).max())


@pytest.mark.parametrize("case", BASES)
def test_bnk_9_expected_products(case: str) -> None:
    """False alarm 1e-6 over all lags; detects 11 standard errors, 0.16."""
    assert prior_z(case) < LIMIT


def state_z() -> float:
    """The same given components: their kernels weighted by their members, and a new one's."""
    mixture, state = Mixture(BASES["diagonal, 2 inputs"], CONCENTRATION), state_of(2)
    mixture = dataclasses.replace(mixture, base=mixture.base.with_scale(state.scale))
    rng, lags = np.random.default_rng(92), LAGS[:, np.newaxis] * np.ones(2)
    seen = []
    for _ in range(N_DRAWS):
        W = mixture.centre(state) + mixture.draw_noise(rng, state)
        j = int(rng.random() * (M + CONCENTRATION))
        W = W[j : j + 1] if j < M else mixture.draw_prior(rng, 1)[1]
        seen.append(products(W, lags))
    error = np.mean(seen, axis=0) - mixture.kernel(state, lags)
    return float(np.abs(error / (np.std(seen, axis=0, ddof=1) / math.sqrt(N_DRAWS))).max())


def test_bnk_9_expected_products_given_components() -> None:
    assert state_z() < LIMIT


def test_bnk_9_sees_a_kernel_without_its_oscillation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: exp(-t'Sigma t / 2), the means forgotten."""
    monkeypatch.setattr(
        DiagonalComponents,
        "characteristic",
        lambda self, lags: np.exp(-0.5 * (lags**2 @ self.variances.T)),
    )
    assert state_z() > 1.5 * LIMIT


def test_bnk_9_the_sign_of_the_means_is_nothing() -> None:
    """mu -> -mu: the same kernel and the same density, in which w and -w are one."""
    mixture, state = Mixture(BASES["diagonal, 2 inputs"], CONCENTRATION), state_of(2)
    turned = dataclasses.replace(
        state,
        components=DiagonalComponents(-state.means, state.components.variances),
    )
    points = np.random.default_rng(9).standard_normal((30, 2))
    for name in ("kernel", "density", "log_spectral_density"):
        function = getattr(mixture, name)
        np.testing.assert_allclose(function(turned, points), function(state, points), rtol=1e-13)
        np.testing.assert_allclose(function(state, -points), function(state, points), rtol=1e-13)
