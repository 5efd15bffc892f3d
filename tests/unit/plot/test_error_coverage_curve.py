from __future__ import annotations

import numpy as np
import pytest

from mercer.plot import error_coverage
from mercer.plot.style import bare_figure
from mercer.posterior.scores import error_coverage_curve


def _line(ax, name):
    return next(line for line in ax.lines if line.get_gid() == f"mark-{name}")


def test_the_line_is_the_curve_and_points_are_at_the_shares():
    rng = np.random.default_rng(3)
    p = 0.5 + 0.5 * rng.random(200)
    y = (rng.random(200) > p).astype(int)
    curve = error_coverage_curve(y, np.column_stack([p, 1 - p]))
    ax = error_coverage(curve, ax=bare_figure(5, 4).subplots())
    np.testing.assert_array_equal(_line(ax, "curve").get_xdata(), curve.coverage)
    np.testing.assert_array_equal(_line(ax, "curve").get_ydata(), curve.error)
    points = _line(ax, "points")
    np.testing.assert_allclose(points.get_xdata(), [1.0, 0.9, 0.75, 0.5])
    np.testing.assert_array_equal(
        points.get_ydata(), [curve.error_at(c) for c in (1.0, 0.9, 0.75, 0.5)]
    )
    assert ax.texts[0].get_text() == f"{100 * curve.error_at(1.0):.1f} %"


@pytest.mark.parametrize("label", [0, 1])
def test_without_errors_and_with_nothing_else_it_still_draws(label):
    curve = error_coverage_curve([label], [[0.6, 0.4]])
    ax = error_coverage(curve, ax=bare_figure(5, 4).subplots())
    low, high = ax.get_ylim()
    assert low < float(label) < high
