"""BNK-4: evidence and law of the coefficients against the multivariate t and the textbook."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from mercer.spectral.model import GammaPrior, RegressionModel, coefficients
from mercer.spectral.rows import MemoryRows
from support.spectral_cases import marginal_law, plain_design, problem

A0, B0 = 2.5, 0.7
RIDGE, LINEAR_PRECISION = 0.3, 1.7
CASES = [  # rows, inputs, frequencies, linear part
    (1, 1, 1, False),
    (6, 1, 2, True),
    (9, 3, 10, True),
    (9, 3, 10, False),
    (40, 2, 7, True),
    (40, 2, 7, False),
]


class Regression:
    """One problem, its evidence by the package and what it must be."""

    def __init__(self, n: int, d: int, m: int, has_linear_part: bool, unit: float = 1.0) -> None:
        X, y = problem(n, d)
        self.W = np.random.default_rng(3).standard_normal((m, d))
        self.y = unit * y
        self.rows = MemoryRows(X, self.y, has_linear_part)
        self.F = plain_design(self.W, X, has_linear_part)
        prior = GammaPrior(1.0, 1.0)
        n_linear = 1 + d if has_linear_part else 0
        self.model = RegressionModel(n, n_linear, A0, unit**2 * B0, None, prior)
        linear = np.array([1e-4] + [LINEAR_PRECISION] * d) if has_linear_part else []
        self.prior_precisions = np.r_[np.full(2 * m, RIDGE), linear]

    def solved(self):
        precisions = self.model.prior_precisions(2 * len(self.W), RIDGE, LINEAR_PRECISION)
        return coefficients(self.model, self.rows.gram(self.W), precisions)

    @property
    def log_evidence(self) -> float:
        law = marginal_law(self.model, self.F, self.prior_precisions)
        return float(law.logpdf(self.y))


@pytest.mark.parametrize("case", CASES)
def test_bnk_4_evidence(case: tuple) -> None:
    one = Regression(*case)
    assert one.solved().log_evidence == pytest.approx(one.log_evidence, rel=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_bnk_4_law_of_the_coefficients(case: tuple) -> None:
    """mu_n, b_n and Lambda_n; b_n by a sum of squares, which cancels nothing."""
    one = Regression(*case)
    law, L0 = one.solved(), np.diag(one.prior_precisions)
    Ln = one.F.T @ one.F + L0
    mean = np.linalg.solve(Ln, one.F.T @ one.y)
    residual = one.y - one.F @ mean
    rate = B0 + 0.5 * (residual @ residual + mean @ L0 @ mean)
    np.testing.assert_allclose(law.mean, mean, rtol=1e-8, atol=1e-10)
    assert law.rate == pytest.approx(rate, rel=1e-10)
    factor = np.tril(law.factor)
    np.testing.assert_allclose(factor @ factor.T, Ln, rtol=1e-12, atol=1e-12)
    covariance = law.deviations(np.eye(len(mean)))
    np.testing.assert_allclose(covariance @ covariance.T @ Ln, np.eye(len(mean)), atol=1e-8)


def test_bnk_4_targets_that_are_all_but_explained() -> None:
    """b_n is not lost to y'y - y'F mu_n: noise of 1e-6 under targets of order one."""
    rng = np.random.default_rng(8)
    X, W = rng.standard_normal((60, 2)), rng.standard_normal((5, 2))
    F = plain_design(W, X, False)
    y = F @ rng.standard_normal(10) + 1e-6 * rng.standard_normal(60)
    model = RegressionModel(60, 0, 1.0, 1e-14, None, GammaPrior(1.0, 1.0))
    law = coefficients(model, MemoryRows(X, y, False).gram(W), np.full(10, 1e-16))
    mean = np.linalg.lstsq(F, y)[0]
    residual = y - F @ mean
    assert law.rate == pytest.approx(1e-14 + 0.5 * residual @ residual, rel=1e-3)


@pytest.mark.parametrize("unit", [1e-3, 40.0])
def test_b3_units_of_the_targets(unit: float) -> None:
    """Targets and noise in another unit: only the density's unit changes."""
    first, second = Regression(9, 3, 10, True), Regression(9, 3, 10, True, unit)
    expected = first.solved().log_evidence - 9 * math.log(unit)
    assert second.solved().log_evidence == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(second.solved().mean, unit * first.solved().mean, rtol=1e-8)


def absolute_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trap B3: coefficients of prior variance 1 / ridge, whatever the noise."""
    relative = RegressionModel.prior_precisions
    monkeypatch.setattr(
        RegressionModel,
        "prior_precisions",
        lambda self, *rest: relative(self, *rest) * self.noise_rate / self.noise_shape,
    )


def test_b3_an_absolute_prior_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    absolute_prior(monkeypatch)
    one = Regression(9, 3, 10, True)
    assert abs(one.solved().log_evidence / one.log_evidence - 1.0) > 1e-2
    first = one.solved().log_evidence
    second = Regression(9, 3, 10, True, 40.0).solved().log_evidence
    assert abs(second - first + 9 * math.log(40.0)) > 1.0


def test_bnk_4_one_row_without_features() -> None:
    """By hand: y ~ t of 2 a_0 degrees with squared scale b_0 / a_0 (1 + 1 / ridge)."""
    model = RegressionModel(1, 0, A0, B0, None, GammaPrior(1.0, 1.0))
    gram = np.array([[1.0, 0.0, 0.4], [0.0, 0.0, 0.0], [0.4, 0.0, 0.16]])  # x = 0, y = 0.4
    found = coefficients(model, gram, np.full(2, RIDGE)).log_evidence
    scale = math.sqrt(B0 / A0 * (1.0 + 1.0 / RIDGE))
    assert found == pytest.approx(stats.t.logpdf(0.4, 2.0 * A0, scale=scale), rel=1e-12)
