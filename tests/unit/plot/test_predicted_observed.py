from __future__ import annotations

import numpy as np

from mercer.plot import predictions
from mercer.plot.style import bare_figure


def _marked(ax, name):
    return next(each for each in ax.get_children() if each.get_gid() == f"mark-{name}")


def test_points_and_bars_are_those_of_the_rows():
    y, mean = np.array([1.0, 2.0, 9.0]), np.array([1.5, 2.5, 3.0])
    ax = predictions(y, mean, mean - 1, mean + 1, ax=bare_figure(5, 5).subplots())
    np.testing.assert_array_equal(_marked(ax, "points-inside").get_xdata(), [1.5, 2.5])
    np.testing.assert_array_equal(_marked(ax, "points-outside").get_ydata(), [9.0])
    (bar,) = _marked(ax, "intervals-outside").get_segments()
    np.testing.assert_array_equal(bar, [[3.0, 2.0], [3.0, 4.0]])
    assert ax.texts[0].get_text() == "outside: 1 of 3"


def test_all_inside_and_a_single_row():
    ax = predictions([1.0], [1.0], [0.0], [2.0], ax=bare_figure(5, 5).subplots())
    assert ax.texts[0].get_text() == "outside: 0 of 1"
    assert not [each for each in ax.get_children() if each.get_gid() == "mark-points-outside"]
