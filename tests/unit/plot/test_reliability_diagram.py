from __future__ import annotations

import numpy as np

from mercer.plot import reliability
from mercer.plot.style import bare_figure
from mercer.posterior.scores import reliability_curve


def _curve():
    rng = np.random.default_rng(3)
    p = rng.random(400)
    return p, reliability_curve((rng.random(400) < p).astype(int), p)


def test_points_and_intervals_are_those_of_the_curve():
    _, curve = _curve()
    ax = reliability(curve, ax=bare_figure(4, 4).subplots())
    points = next(line for line in ax.lines if line.get_gid() == "mark-points")
    np.testing.assert_allclose(points.get_xdata(), curve.mean_predicted)
    np.testing.assert_allclose(points.get_ydata(), curve.observed)
    bars = next(c for c in ax.collections if c.get_gid() == "mark-intervals")
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, np.column_stack([curve.lower, curve.upper]))
    assert not ax.child_axes


def test_the_histogram_counts_the_rows():
    p, curve = _curve()
    ax = reliability(curve, probabilities=p, ax=bare_figure(4, 4).subplots())
    (strip,) = ax.child_axes
    heights = [bar.get_height() for bar in strip.patches]
    np.testing.assert_array_equal(heights, np.histogram(p, bins=20, range=(0, 1))[0])
    assert strip.texts[0].get_text() == "400 rows"


def test_probabilities_of_exactly_zero_and_one_are_counted():
    curve = reliability_curve([0, 1, 1], [0.0, 1.0, 1.0])
    ax = reliability(curve, probabilities=[0.0, 1.0, 1.0], ax=bare_figure(4, 4).subplots())
    heights = [bar.get_height() for bar in ax.child_axes[0].patches]
    assert (heights[0], heights[-1]) == (1, 2)
