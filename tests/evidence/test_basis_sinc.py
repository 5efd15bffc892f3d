from __future__ import annotations

import numpy as np
import pytest

from reproduce.papers.basis_sinc import sinc, sinc_set


def test_the_rows_are_those_of_section_4_1() -> None:
    data = sinc_set(3)
    np.testing.assert_allclose(np.sort(data.X[:, 0]), np.linspace(-10.0, 10.0, 50), atol=1e-14)
    assert not np.array_equal(data.X[:, 0], np.sort(data.X[:, 0]))
    assert data.X_test.shape == (1000, 1)
    x = data.X_test[:, 0]
    np.testing.assert_allclose(data.f_test, np.sin(x) / x, atol=1e-12)
    assert sinc(np.zeros(1))[0] == 1.0


def test_noise_is_a_tenth() -> None:
    """False alarm below 1e-6: 2500 and 50,000 draws."""
    sets = [sinc_set(seed) for seed in range(50)]
    errors = np.concatenate([data.y - sinc(data.X[:, 0]) for data in sets])
    assert errors.std() == pytest.approx(0.1, rel=0.08)
    fresh = np.concatenate([data.y_test - data.f_test for data in sets])
    assert fresh.std() == pytest.approx(0.1, rel=0.02)


def test_orders_are_of_the_same_rows() -> None:
    plain, first, again = sinc_set(4), sinc_set(4, order=1), sinc_set(4, order=1)
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.array_equal(first.X, plain.X)
    for data in (plain, first):
        order = np.argsort(data.X[:, 0])
        np.testing.assert_array_equal(data.y[order], plain.y[np.argsort(plain.X[:, 0])])
    assert not np.array_equal(first.X, sinc_set(4, order=2).X)
