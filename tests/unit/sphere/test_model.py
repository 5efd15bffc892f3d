"""Signed rows and their noise: points, tables, likelihood."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods.label_noise import fixed_rate, row_rates
from mercer.sphere.sampler import SphereModel, signed_rows
from support.sphere_cases import noisy_rows

L = noisy_rows(7, 3)


def test_signed_rows() -> None:
    seen = signed_rows(L, np.array([1, 0, 0, 1, 1, 0, 1]))
    np.testing.assert_array_equal(seen, L * np.array([1, -1, -1, 1, 1, -1, 1])[:, np.newaxis])


def test_shapes_and_the_table() -> None:
    model = SphereModel(L, fixed_rate(0.2, 7))
    assert (model.n_rows, model.rank) == (7, 3)
    np.testing.assert_allclose(model.table, np.hstack([L @ L.T, L]), atol=1e-15)
    assert model.table.flags.c_contiguous
    assert model.table is model.table  # made once


def test_points() -> None:
    model = SphereModel(L, fixed_rate(0.2, 7))
    Z = np.random.default_rng(1).standard_normal((4, 3))
    extended = model.extended(Z)
    assert extended.shape == (4, 10)
    np.testing.assert_allclose(extended, [model.point(z) for z in Z], atol=1e-15)
    np.testing.assert_allclose(extended[2], np.append(L @ Z[2], Z[2]), atol=1e-15)


def test_rows_that_must_be_right_are_where_only_rounding_denies_it() -> None:
    """A certain row at its wall counts as right, an uncertain one as wrong."""
    model = SphereModel(np.eye(3), row_rates(np.array([0.0, 0.2, 0.0])))
    f = model.point(np.array([0.0, 0.0, 2.0]))[:3]
    assert f[0] > 0.0
    assert f[0] < 1e-9
    np.testing.assert_array_equal(f[1:], [0.0, 2.0])
    everywhere = SphereModel(np.eye(3), fixed_rate(0.0, 3)).point(np.zeros(3))
    assert (everywhere[:3] > 0.0).all()


def test_log_likelihood_of_a_known_rate() -> None:
    f = np.array([1.0, -1.0, 0.0])
    noise = fixed_rate(0.1, 3)
    value = noise.log_no_errors - noise.cost(f <= 0.0)
    assert value == pytest.approx(np.log(0.9 * 0.1 * 0.1))
