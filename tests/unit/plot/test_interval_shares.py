from __future__ import annotations

import numpy as np

from mercer.plot import interval_coverage
from mercer.plot.style import bare_figure
from mercer.posterior.scores import interval_coverage as count_inside


def test_the_line_is_the_curve_and_chance_is_grey():
    curve = count_inside(np.random.default_rng(0).random(90))
    ax = interval_coverage(curve, ax=bare_figure(5, 5).subplots())
    line = next(line for line in ax.lines if line.get_gid() == "mark-coverage")
    np.testing.assert_array_equal(line.get_xdata(), curve.level)
    np.testing.assert_array_equal(line.get_ydata(), curve.observed)
    (band,) = [each for each in ax.collections if each.get_gid() == "mark-chance"]
    assert band.get_paths()
