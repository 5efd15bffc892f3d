"""Laplace's error against rows per region."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from mercer.errors import UsageError
from mercer.plot import laplace_distance


def test_a_point_a_row_and_a_line_of_medians() -> None:
    rng = np.random.default_rng(0)
    x = np.exp(rng.uniform(0.0, 4.0, 120))
    y = 0.1 / x * rng.choice([-1.0, 1.0], 120)
    ax = laplace_distance(x, y, ax=Figure().subplots())
    points, line = ax.lines
    np.testing.assert_allclose(points.get_ydata(), np.abs(y))
    assert len(line.get_xdata()) == 6
    assert np.all(np.diff(line.get_ydata()) < 0.0)


def test_no_difference_has_a_place_too() -> None:
    ax = laplace_distance([1.0, 2.0], [0.0, 0.0], ax=Figure().subplots())
    assert (ax.lines[0].get_ydata() > 0.0).all()


@pytest.mark.parametrize(
    ("x", "y"), [([1.0], [0.1, 0.2]), ([0.0], [0.1]), ([1.0], [np.nan]), ([], [])]
)
def test_refusals(x: list[float], y: list[float]) -> None:
    with pytest.raises(UsageError, match="rows per region"):
        laplace_distance(x, y)
