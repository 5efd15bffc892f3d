from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from mercer.spectral.class_fitting import ClassDraws
from support.spectral_cases import plain_design


def made(n_sticks: int, has_linear_part: bool) -> ClassDraws:
    rng = np.random.default_rng(6)
    p = 10 + (3 if has_linear_part else 0)
    return ClassDraws(
        rng.standard_normal((4, 5, 2)),
        rng.standard_normal((4, n_sticks, p)),
        rng.standard_normal((4, n_sticks, 3, p)),
    )


@pytest.mark.parametrize("has_linear_part", [False, True])
@pytest.mark.parametrize("n_sticks", [1, 3])
def test_against_plain_sums(n_sticks: int, has_linear_part: bool) -> None:
    draws, X = made(n_sticks, has_linear_part), np.random.default_rng(7).standard_normal((9, 2))
    total, all_f = np.zeros((9, n_sticks + 1)), []
    for i in range(4):
        F = plain_design(draws.frequencies[i], X, has_linear_part)
        for j in range(3):
            for sign in (1.0, -1.0):
                f = F @ (draws.mean[i] + sign * draws.deviations[i, :, j]).T
                left = np.ones(9)
                for k in range(n_sticks):
                    total[:, k] += left * expit(f[:, k])
                    left = left * (1.0 - expit(f[:, k]))
                total[:, -1] += left
                all_f.append(f)
    found = draws.probabilities(X)
    np.testing.assert_allclose(found, total / 24, rtol=1e-10)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    mean, variance = draws.moments(X)
    np.testing.assert_allclose(mean, np.mean(all_f, axis=0), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(variance, np.var(all_f, axis=0), rtol=1e-10)
