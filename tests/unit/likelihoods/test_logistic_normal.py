from __future__ import annotations

import numpy as np

from mercer.likelihoods.logistic import expected_logistic, logistic_moments


def test_symmetric_monotone_and_a_probability() -> None:
    mean = np.linspace(-800.0, 800.0, 2001)
    for variance in (0.0, 1.0, 1e4, 1e300):
        p = expected_logistic(mean, np.full(2001, variance))
        assert ((p >= 0.0) & (p <= 1.0)).all()
        assert (np.diff(p) >= 0.0).all()
        np.testing.assert_allclose(p + p[::-1], 1.0, atol=1e-15)


def test_shape_is_kept() -> None:
    assert expected_logistic(np.zeros((2, 3)), np.ones((2, 3))).shape == (2, 3)
    assert expected_logistic(np.zeros(0), np.zeros(0)).shape == (0,)


def test_moments_are_derivatives_of_each_other_and_averages() -> None:
    mean = np.linspace(-40.0, 40.0, 801)
    for variance in (0.0, 1.0, 30.0):
        v, h = np.full(801, variance), 1e-4
        above, below = logistic_moments(mean + h, v), logistic_moments(mean - h, v)
        found = logistic_moments(mean, v)
        for k in range(3):
            slope = (above[k] - below[k]) / (2.0 * h)
            np.testing.assert_allclose(slope, found[k + 1], atol=1e-7)
        np.testing.assert_allclose(found.logistic, expected_logistic(mean, v), atol=1e-15)
    plain = logistic_moments(mean, np.zeros(801))
    p = 1.0 / (1.0 + np.exp(-mean))
    np.testing.assert_allclose(plain.softplus, np.logaddexp(0.0, mean), atol=2.1e-6)
    np.testing.assert_allclose(plain.slope, p * (1.0 - p), atol=3.1e-6)
    np.testing.assert_allclose(plain.curvature, p * (1.0 - p) * (1.0 - 2.0 * p), atol=2e-5)
