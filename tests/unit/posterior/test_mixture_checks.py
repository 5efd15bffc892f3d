"""Shapes and numbers that are no mixtures; the laws' own tests refuse them through the laws."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import DataError
from mercer.posterior.predictive import NormalMixture, one_value_per_row


def test_values_become_an_array_of_floats() -> None:
    values = one_value_per_row([1, 2], 2)
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, [1.0, 2.0])
    for y in ([1.0], [[1.0, 2.0]], [1.0, np.nan], [np.inf, 0.0]):
        with pytest.raises(DataError, match="one finite value for each of 2 rows"):
            one_value_per_row(y, 2)


def test_components_need_a_place_and_a_scale() -> None:
    NormalMixture(np.zeros((2, 3)), np.ones(3))
    NormalMixture(np.zeros((2, 3)), np.ones((2, 3)), np.zeros(2))
    NormalMixture(np.zeros((0, 3)), np.ones(3))
    with pytest.raises(DataError, match="centre"):
        NormalMixture(np.zeros((2, 3)), np.ones(3), np.zeros(3))
    with pytest.raises(DataError, match="positive"):
        NormalMixture(np.zeros((2, 3)), np.array([1.0, 0.0, 1.0]))
