"""Gradients of the optimised baselines against differences of five points, and values by hand."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mercer.baselines import paths as losses
from mercer.baselines.a_la_carte import SpectralEvidence
from mercer.baselines.base import FrequencyMixture, draw_mixture
from mercer.baselines.paths import WeightObjective, loss_of_block
from mercer.baselines.rfo import FrequencyObjective
from mercer.errors import NumericalError

Array = np.ndarray

RNG = np.random.default_rng(12)
N, D = 30, 3
Z = RNG.standard_normal((N, D))
Y = RNG.standard_normal(N)
TARGETS = {
    "squared": Y[:, np.newaxis],
    "logistic": (Y[:, np.newaxis] > 0).astype(float),
    "softmax": np.eye(3)[RNG.integers(3, size=N)],
}
_STEP = 1e-3
_CLOSE = 1e-7

full_or_diagonal = pytest.mark.parametrize("is_full", [True, False])


def differences(function: Callable[[Array], tuple[float, Array]], theta: Array) -> Array:
    """Five points: the error is of order step^4."""
    gradient = np.empty_like(theta)
    for i in range(len(theta)):
        e = np.zeros_like(theta)
        e[i] = _STEP
        values = [function(theta + k * e)[0] for k in (-2, -1, 1, 2)]
        gradient[i] = np.dot([1.0, -8.0, 8.0, -1.0], values) / (12.0 * _STEP)
    return gradient


def largest_error(function: Callable[[Array], tuple[float, Array]], theta: Array) -> float:
    gradient = function(theta)[1]
    return float(np.abs(gradient - differences(function, theta)).max() / np.abs(gradient).max())


def mixture(is_full: bool) -> FrequencyMixture:
    return draw_mixture(np.random.default_rng(2), 2, 4, D, is_full)


def near(start: Array) -> Array:
    return start + 0.3 * np.random.default_rng(3).standard_normal(len(start))


def objective(is_full: bool, name: str) -> tuple[FrequencyObjective, Array]:
    found = FrequencyObjective(mixture(is_full), Z, TARGETS[name], getattr(losses, name), 0.3)
    return found, near(found.start(2.0))


def evidence(is_full: bool) -> tuple[SpectralEvidence, Array]:
    found = SpectralEvidence(mixture(is_full), Z, Y)
    return found, near(found.start(2.0))


@full_or_diagonal
@pytest.mark.parametrize("name", TARGETS)
def test_gradient_of_random_frequency_optimisation(is_full: bool, name: str) -> None:
    assert largest_error(*objective(is_full, name)) < _CLOSE


@full_or_diagonal
def test_gradient_of_a_la_carte(is_full: bool) -> None:
    assert largest_error(*evidence(is_full)) < _CLOSE


def test_gradient_of_coefficients() -> None:
    Phi = np.random.default_rng(5).standard_normal((6, N))
    loss_at = functools.partial(loss_of_block, Phi, TARGETS["softmax"], losses.softmax)
    found = WeightObjective(loss_at, 3, 0.3)
    assert largest_error(found, near(np.zeros(21))) < _CLOSE


def test_a_transposed_matrix_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: M_k' w in place of M_k w where the gradient is pulled back."""
    pull_back = FrequencyMixture.pull_back

    def transposed(self: FrequencyMixture, theta: Array, gradient: Array) -> Array:
        found = pull_back(self, theta, gradient)
        K, _, d = self.draws.shape
        matrices = found[: K * d * d].reshape(K, d, d).transpose(0, 2, 1)
        return np.append(matrices.ravel(), found[K * d * d :])

    monkeypatch.setattr(FrequencyMixture, "pull_back", transposed)
    assert largest_error(*evidence(True)) > 1e-2
    assert largest_error(*objective(True, "logistic")) > 1e-2


def test_a_wrong_sign_of_the_sine_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the derivative of the phases has the other sign."""
    pull_back = FrequencyMixture.pull_back
    monkeypatch.setattr(
        FrequencyMixture,
        "pull_back",
        lambda self, theta, gradient: pull_back(self, theta, -gradient),
    )
    assert largest_error(*evidence(False)) > 1e-2
    assert largest_error(*objective(False, "logistic")) > 1e-2


@full_or_diagonal
def test_the_likelihood_is_that_of_the_process(is_full: bool) -> None:
    found, theta = evidence(is_full)
    phase = Z @ found.frequencies(theta).T
    features = np.stack([np.cos(phase), np.sin(phase)], axis=2).reshape(N, -1) / np.sqrt(8)
    K = (features * found.weights(theta) ** 2) @ features.T
    law = multivariate_normal(np.zeros(N), K + found.noise_variance(theta) * np.eye(N))
    assert -found(theta)[0] == pytest.approx(law.logpdf(Y), rel=1e-10)


def test_the_objective_is_the_printed_one() -> None:
    """Section 4.3, sum by sum, for one row after the other."""
    found, theta = objective(True, "logistic")
    mixture = found.mixture
    b, nu, spectral = found._parts(theta)
    M, mu = mixture._parts(spectral)
    total = 0.15 * float((b**2).sum())
    for x, y in zip(Z, found.targets[:, 0], strict=True):
        f = float(b[0, 0])
        for k in range(2):
            for j in range(4):
                zeta = x @ M[k] @ mixture.draws[k, j] + x @ mu[k]
                at = 1 + 2 * (4 * k + j)
                f += (
                    nu[k] ** 2
                    / np.sqrt(8)
                    * float(b[at, 0] * np.cos(zeta) + b[at + 1, 0] * np.sin(zeta))
                )
        total += np.log1p(np.exp(f)) - y * f
    assert found(theta)[0] == pytest.approx(total, rel=1e-12)


def test_a_noise_that_is_too_small_is_refused() -> None:
    few = SpectralEvidence(mixture(False), Z[:5], Y[:5])
    theta = few.start(2.0)
    theta[2] = -200.0
    with pytest.raises(NumericalError):
        few(theta)


def test_a_step_too_long_gives_no_value_and_no_warning() -> None:
    """A line search may go anywhere, and goes back where there is no value."""
    found, theta = evidence(False)
    theta[found.mixture.n_components + 1] = 800.0
    assert np.isnan(found(theta)[0])
