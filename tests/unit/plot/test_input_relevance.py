from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.plot import importance, relevance
from mercer.plot.style import bare_figure


def _axes():
    return bare_figure(5, 3).subplots()


def _marked(ax, name):
    return next(a for a in ax.get_children() if a.get_gid() == f"mark-{name}")


def _labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_inputs_are_sorted_by_median_and_intervals_are_quantiles():
    rng = np.random.default_rng(1)
    weights = np.exp(rng.normal((0.0, 4.0, -4.0), 1.0, (500, 3)))
    ax = relevance(weights, ("low", "high", "least"), ax=_axes())
    assert _labels(ax) == ["high", "low", "least"]
    order = [1, 0, 2]
    medians = _marked(ax, "medians")
    np.testing.assert_allclose(medians.get_xdata(), np.median(weights, axis=0)[order])
    for name, ends in (("interval-90", (0.05, 0.95)), ("interval-50", (0.25, 0.75))):
        drawn = np.array([path[:, 0] for path in _marked(ax, name).get_segments()])
        np.testing.assert_allclose(drawn, np.quantile(weights, ends, axis=0).T[order])
    top, bottom = ax.get_ylim()[1], ax.get_ylim()[0]
    assert top < 0 < bottom  # the first row is on top


def test_the_prior_is_shaded():
    ax = relevance(np.ones((5, 1)), ("x",), prior_interval=(0.01, 30.0), ax=_axes())
    (band,) = [p for p in ax.patches if p.get_gid() is None]
    x0, x1 = band.get_x(), band.get_x() + band.get_width()
    assert (x0, x1) == pytest.approx((0.01, 30.0))
    assert ax.get_xlim()[0] < 0.01
    assert ax.get_xlim()[1] > 30


def test_weights_that_hardly_differ_still_get_a_labelled_axis():
    ax = relevance(np.full((5, 2), 3.0), ("a", "b"), ax=_axes())
    low, high = ax.get_xlim()
    assert high / low >= 99.9
    ax.figure.canvas.draw()
    shown = [t.get_text() for t in ax.get_xticklabels() if low <= t.get_position()[0] <= high]
    assert set(shown) & {"1", "10"}


def test_powers_far_from_one_are_written_out():
    ax = relevance(np.array([[1e-7], [1e-5]]), ("a",), ax=_axes())
    ax.figure.canvas.draw()
    assert "10⁻⁶" in [t.get_text() for t in ax.get_xticklabels()]


def test_of_many_inputs_thirty_are_shown_and_it_is_said():
    weights = np.exp(np.arange(40.0))[None, :]
    ax = relevance(weights, [f"x{i}" for i in range(40)], ax=_axes())
    assert _labels(ax) == [f"x{i}" for i in range(39, 9, -1)]
    assert "30 greatest of 40" in ax.get_xlabel()


@pytest.mark.parametrize(
    ("weights", "names", "message"),
    [
        (np.ones((4, 2)), ("a",), "do not fit"),
        (np.ones(4), ("a",), "do not fit"),
        (np.ones((0, 1)), ("a",), "do not fit"),
        (np.ones((4, 0)), (), "do not fit"),
        (np.zeros((4, 1)), ("a",), "positive and finite"),
        (np.full((4, 1), np.nan), ("a",), "positive and finite"),
    ],
)
def test_weights_that_cannot_be_drawn_are_refused(weights, names, message):
    with pytest.raises(UsageError, match=message):
        relevance(weights, names, ax=_axes())


def test_importance_shows_points_bars_and_names_the_greatest_on_top():
    names = [f"input {j}" for j in range(20)]
    values = np.arange(20.0)
    repeats = np.stack([values, values + 1.0])
    ax = importance(values, np.full(20, 0.25), names, repeats=repeats, ax=_axes())
    assert _labels(ax)[:2] == ["input 19", "input 18"]
    assert len(ax.get_yticks()) == 15
    assert _marked(ax, "points").get_xdata()[0] == 19.0
    bars = _marked(ax, "intervals").get_segments()
    np.testing.assert_allclose(bars[0][:, 0], [18.5, 19.5])
    with pytest.raises(UsageError, match="do not fit"):
        importance([1.0], [0.1], ["a", "b"])
