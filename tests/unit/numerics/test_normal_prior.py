from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mercer.gp.hyperparameters import NormalPrior

PRIOR = NormalPrior(np.array([1.0, -2.0]), np.array([3.0, 0.5]))


def test_log_density_up_to_a_constant() -> None:
    a, b = np.array([0.3, -1.0]), np.array([2.0, 0.1])
    exact = [stats.norm(PRIOR.mean, PRIOR.std).logpdf(x).sum() for x in (a, b)]
    seen = [PRIOR.log_density(x) for x in (a, b)]
    assert seen[0] - seen[1] == pytest.approx(exact[0] - exact[1])
    assert PRIOR.log_density(PRIOR.mean) == 0.0


def test_gradient_against_differences() -> None:
    x, h = np.array([0.3, -1.0]), 1e-5
    for k in range(2):
        shift = h * (np.arange(2) == k)
        slope = (PRIOR.log_density(x + shift) - PRIOR.log_density(x - shift)) / (2.0 * h)
        assert PRIOR.gradient(x)[k] == pytest.approx(slope, rel=1e-8)


def test_interval_holds_its_share() -> None:
    lower, upper = PRIOR.interval(0.9)
    law = stats.norm(PRIOR.mean, PRIOR.std)
    np.testing.assert_allclose(law.cdf(lower), 0.05)
    np.testing.assert_allclose(law.cdf(upper), 0.95)
