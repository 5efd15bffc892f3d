from __future__ import annotations

import numpy as np

from mercer.likelihoods.logistic import log_likelihood, success_probability


def test_far_out_nothing_overflows() -> None:
    f = np.array([-1e308, -800.0, 800.0, 1e308])
    np.testing.assert_array_equal(success_probability(f), [0.0, 0.0, 1.0, 1.0])
    assert log_likelihood(np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4), f) == 0.0
    assert log_likelihood(np.ones(1), np.ones(1), np.array([-800.0])) == -800.0


def test_any_shape() -> None:
    assert success_probability(np.zeros((2, 3))).shape == (2, 3)
