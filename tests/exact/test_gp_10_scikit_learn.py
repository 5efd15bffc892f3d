"""GP-10: evidence and gradient against scikit-learn's at fixed hyperparameters."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from mercer.gp.laplace import HyperparameterPosterior
from support.gp_cases import posterior, thetas
from support.mutants import drop_weight_term


def errors(n: int, d: int) -> tuple[float, float]:
    """Largest relative difference of log evidence and of its gradient."""
    model = posterior(n, d)
    worst = np.zeros(2)
    for theta in thetas(d, 12):
        evidence, gradient = _scikit_learn(model, theta)
        point = model.evaluate(theta)
        seen = point.log_density - model.prior.log_density(theta)
        slope = point.gradient - model.prior.gradient(theta)
        worst[0] = max(worst[0], abs(seen - evidence) / abs(evidence))
        worst[1] = max(worst[1], np.abs(slope - gradient).max() / np.abs(gradient).max())
    return float(worst[0]), float(worst[1])


def _scikit_learn(model: HyperparameterPosterior, theta: np.ndarray):
    """Its length scale is w^-1/2: d/dlog w is minus half of d/dlog length scale."""
    scale = np.exp(-0.5 * theta[1:])
    kernel = ConstantKernel(np.exp(theta[0])) * RBF(scale)
    reference = GaussianProcessClassifier(kernel, optimizer=None, max_iter_predict=500)
    reference.fit(model.X, model.y)
    evidence, gradient = reference.log_marginal_likelihood(reference.kernel_.theta, True)
    return evidence, gradient * np.r_[1.0, np.full(len(scale), -0.5)]


@pytest.mark.parametrize(("n", "d"), [(30, 1), (60, 3)])
def test_gp_10_scikit_learn(n: int, d: int) -> None:
    evidence, gradient = errors(n, d)
    assert evidence < 1e-6
    assert gradient < 1e-6


def test_gp_10_scikit_learn_sees_the_weight_term_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    drop_weight_term(monkeypatch)
    assert errors(30, 1)[1] > 1e-2
