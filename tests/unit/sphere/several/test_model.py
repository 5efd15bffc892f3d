from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods.label_noise import fixed_rate, row_rates
from mercer.sphere.several import SeveralModel
from support.several_cases import make_model


def test_a_row_is_right_where_its_own_function_is_largest() -> None:
    model = make_model(20, 3, 4)
    g = np.random.default_rng(1).standard_normal((5, 4, 3))
    f = g @ model.L.T
    np.testing.assert_array_equal(model.is_wrong(f), np.argmax(f, axis=1) != model.labels)
    np.testing.assert_array_equal(model.is_wrong(f[2]), model.is_wrong(f)[2])


def test_a_tie_is_an_error() -> None:
    """As with two classes, where a row with f = 0 is wrong whatever its label."""
    model = SeveralModel(np.array([[0.0], [1.0]]), np.array([0, 1]), fixed_rate(0.1, 2, 3))
    np.testing.assert_array_equal(model.is_wrong(np.array([[0.0, 1.0]] * 3)), [True, True])


def test_points_and_shapes() -> None:
    model = make_model(6, 2, 3)
    assert (model.n_rows, model.rank, model.n_classes) == (6, 2, 3)
    g = np.arange(6.0).reshape(3, 2)
    point = model.point(g)
    np.testing.assert_array_equal(point[:, 6:], g)
    np.testing.assert_allclose(point[:, :6], [[row @ g_c for row in model.L] for g_c in g])
    np.testing.assert_allclose(model.gram, model.L @ model.L.T)


def test_log_likelihood() -> None:
    model = make_model(6, 2, 3)
    f = np.random.default_rng(2).standard_normal((7, 3, 6))
    e = (np.argmax(f, axis=1) != model.labels).sum(axis=1)
    expected = e * np.log(0.2 / 2.0) + (6 - e) * np.log(0.8)
    np.testing.assert_allclose(model.log_likelihood(f), expected)


def test_wall_products() -> None:
    """Against contrasts e_y - e_c, written out."""
    model = make_model(9, 2, 4)
    others = [[c for c in range(4) if c != y] for y in range(4)]
    for y in range(4):
        for t, c in enumerate(others[y]):
            for s in range(3):
                for i, label in enumerate(model.labels):
                    wall = np.eye(4)[label] - np.eye(4)[others[label][s]]
                    product = (np.eye(4)[y] - np.eye(4)[c]) @ wall
                    assert model.wall_products[y, t, s, i] == product


@pytest.mark.parametrize("rates", [np.array([0.0, 0.1, 0.0]), np.zeros(3), np.full(3, 0.2)])
def test_which_rows_must_be_right(rates: np.ndarray) -> None:
    model = SeveralModel(np.eye(3), np.arange(3), row_rates(rates, 3))
    np.testing.assert_array_equal(model.must_be_right, rates == 0.0)
    model = SeveralModel(np.eye(3), np.arange(3), fixed_rate(float(rates.max()), 3, 3))
    np.testing.assert_array_equal(model.must_be_right, rates.max() == 0.0)
