from __future__ import annotations

import numpy as np

from mercer.numerics.logistic_normal import expected_logistic


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
