from __future__ import annotations

import numpy as np

from mercer.plot import residuals
from mercer.plot.style import bare_figure


def _line(ax, name):
    return next((line for line in ax.lines if line.get_gid() == f"mark-{name}"), None)


def test_points_are_residuals_and_the_line_their_mean():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=1000)
    y = mean + 0.5 * mean + 0.1 * rng.normal(size=1000)
    ax = residuals(y, mean, n_shown=100, ax=bare_figure(5, 4).subplots())
    points, means = _line(ax, "points"), _line(ax, "means")
    assert len(points.get_xdata()) == 100
    assert set(points.get_ydata()) <= set(y - mean)
    np.testing.assert_allclose(means.get_ydata(), 0.5 * np.array(means.get_xdata()), atol=0.05)
    assert len(means.get_xdata()) == 12


def test_few_rows_have_no_line():
    ax = residuals([1.0, 2.0], [1.0, 1.5], ax=bare_figure(5, 4).subplots())
    assert _line(ax, "means") is None
    assert len(_line(ax, "points").get_xdata()) == 2
