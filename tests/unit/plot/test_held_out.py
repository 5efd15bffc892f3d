"""What held-out rows say, drawn."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.plot import (
    error_coverage,
    gains,
    interval_coverage,
    pit,
    predictions,
    prequential,
    reliability,
    residuals,
)
from mercer.plot.style import bare_figure
from mercer.posterior.scores import (
    error_coverage_curve,
    gains_curve,
    pit_histogram,
    reliability_curve,
)
from mercer.posterior.scores import interval_coverage as count_inside

# Held out.


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


def test_the_name_of_the_diagonal_lies_on_no_point():
    p = np.repeat((np.arange(10) + 0.5) / 10, 40)
    curve = reliability_curve(np.tile(np.arange(40), 10) < 40 * p, p)
    ax = reliability(curve, ax=bare_figure(4, 4).subplots())
    ax.figure.draw_without_rendering()
    (name,) = ax.get_legend().get_texts()
    assert name.get_text() == "calibrated"
    where = name.get_window_extent()
    points = ax.transData.transform(np.column_stack([curve.mean_predicted, curve.observed]))
    assert len(points) == 10
    assert not any(where.contains(*point) for point in points)


def test_the_histogram_counts_the_rows():
    p, curve = _curve()
    ax = reliability(curve, probabilities=p, ax=bare_figure(4, 4).subplots())
    (strip,) = ax.child_axes
    heights = [bar.get_height() for bar in strip.patches]
    np.testing.assert_array_equal(heights, np.histogram(p, bins=20, range=(0, 1))[0])
    assert strip.texts[0].get_text() == "400 rows"
    ax.figure.draw_without_rendering()
    extents = [bar.get_window_extent() for bar in strip.patches]
    assert not any(strip.texts[0].get_window_extent().overlaps(each) for each in extents)


def test_probabilities_of_exactly_zero_and_one_are_counted():
    curve = reliability_curve([0, 1, 1], [0.0, 1.0, 1.0])
    ax = reliability(curve, probabilities=[0.0, 1.0, 1.0], ax=bare_figure(4, 4).subplots())
    heights = [bar.get_height() for bar in ax.child_axes[0].patches]
    assert (heights[0], heights[-1]) == (1, 2)


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


def test_gains_are_shares_of_the_class_beside_chance_and_what_is_expected():
    p = np.linspace(0.5, 0.001, 200)
    y = (np.random.default_rng(0).random(200) < p).astype(int)
    curve = gains_curve(y, p)
    ax = gains(curve, ax=bare_figure(5, 4).subplots())
    np.testing.assert_allclose(_line(ax, "curve").get_ydata(), np.cumsum(y) / y.sum())
    np.testing.assert_array_equal(_line(ax, "chance").get_ydata(), curve.share)
    assert ax.get_xscale() == "log"
    gains(gains_curve([1], [0.3]), ax=bare_figure(5, 4).subplots()).figure.draw_without_rendering()
    with pytest.raises(UsageError, match="no row"):
        gains(gains_curve([0, 0], [0.3, 0.2]))


@pytest.mark.parametrize("is_first", [False, True])
def test_probabilities_of_a_rare_class_are_drawn_larger(is_first):
    """At the end where they lie; rows beyond are counted in words."""
    p = np.append(np.linspace(0.001, 0.04, 600), [0.9, 0.8])
    y = np.append(np.arange(600) % 50 == 0, [1, 0]).astype(int)
    if is_first:
        y, p = 1 - y, 1.0 - p
    curve = reliability_curve(y, p)
    ax = reliability(curve, probabilities=p, ax=bare_figure(4, 4).subplots())
    low, high = ax.get_xlim()
    assert ax.get_ylim() == (low, high)
    assert high - low < 0.2
    assert low < curve.lower.min() < curve.upper.max() < high
    (strip,) = ax.child_axes
    assert strip.texts[0].get_text() == "602 rows, 2 of them beyond"
    assert sum(bar.get_height() for bar in strip.patches) == 600


def _coverage_of(wrong):
    """A curve of rows, the most certain first."""
    p = np.linspace(0.99, 0.6, len(wrong))
    curve = error_coverage_curve(np.asarray(wrong, dtype=int), np.column_stack([p, 1 - p]))
    return curve, error_coverage(curve, ax=bare_figure(5, 4).subplots())


def test_where_the_surest_rows_are_wrong_the_curve_is_seen_to_leave():
    curve, ax = _coverage_of([1, 1] + [0] * 18)
    top = ax.get_ylim()[1]
    edge = _line(ax, "beyond")
    assert edge.get_ydata()[0] == top < curve.error.max()
    assert edge.get_xdata()[0] == curve.coverage[curve.error > top].max()
    assert ax.texts[-1].get_text() == "to 100 %"
    _, ax = _coverage_of([0] * 10 + [1] * 3 + [0] * 7)  # above the points, but not at the left end
    assert ax.get_ylim()[1] > 3 / 13
    assert not [line for line in ax.lines if line.get_gid() == "mark-beyond"]


def test_numbers_at_the_points_do_not_overlap():
    for wrong in ([0] * 16 + [1, 1, 0, 0], [0] * 17 + [1, 1, 1], [0] * 10 + [1] * 8 + [0, 0]):
        _, ax = _coverage_of(wrong)
        ax.figure.draw_without_rendering()
        first, *others = [text.get_window_extent() for text in ax.texts]
        assert not any(first.overlaps(other) for other in others)


@pytest.mark.parametrize("label", [0, 1])
def test_without_errors_and_with_nothing_else_it_still_draws(label):
    curve = error_coverage_curve([label], [[0.6, 0.4]])
    ax = error_coverage(curve, ax=bare_figure(5, 4).subplots())
    low, high = ax.get_ylim()
    assert low < float(label) < high


def test_the_line_is_the_curve_and_chance_is_grey():
    curve = count_inside(np.random.default_rng(0).random(90))
    ax = interval_coverage(curve, ax=bare_figure(5, 5).subplots())
    line = next(line for line in ax.lines if line.get_gid() == "mark-coverage")
    np.testing.assert_array_equal(line.get_xdata(), curve.level)
    np.testing.assert_array_equal(line.get_ydata(), curve.observed)
    (band,) = [each for each in ax.collections if each.get_gid() == "mark-chance"]
    assert band.get_paths()


@pytest.mark.parametrize("n", [1, 30, 500])
def test_bars_are_the_shares_and_fit(n):
    histogram = pit_histogram(np.random.default_rng(0).random(n))
    ax = pit(histogram, ax=bare_figure(5, 4).subplots())
    bars = [bar for bar in ax.patches if str(bar.get_gid()).startswith("mark-bar-")]
    assert [bar.get_height() for bar in bars] == histogram.share.tolist()
    assert ax.get_ylim()[1] > histogram.share.max()


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


# Residual points.


def _residual_line(ax, name):
    return next((line for line in ax.lines if line.get_gid() == f"mark-{name}"), None)


def test_points_are_residuals_and_the_line_their_mean():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=1000)
    y = mean + 0.5 * mean + 0.1 * rng.normal(size=1000)
    ax = residuals(y, mean, n_shown=100, ax=bare_figure(5, 4).subplots())
    points, means = _residual_line(ax, "points"), _residual_line(ax, "means")
    assert len(points.get_xdata()) == 100
    assert set(points.get_ydata()) <= set(y - mean)
    np.testing.assert_allclose(means.get_ydata(), 0.5 * np.array(means.get_xdata()), atol=0.05)
    assert len(means.get_xdata()) == 12


@pytest.mark.parametrize("draw", [residuals, predictions])
def test_numbers_of_six_digits_do_not_touch(draw):
    mean = np.linspace(45_000.0, 445_000.0, 50)
    given = (mean,) if draw is residuals else (mean, mean - 1e4, mean + 1e4)
    ax = draw(mean, *given)
    ax.figure.canvas.draw()
    boxes = [each.get_window_extent() for each in ax.get_xticklabels() if each.get_text()]
    assert len(boxes) > 2
    assert all(left.x1 + 5.0 < right.x0 for left, right in pairwise(boxes))


def test_few_rows_have_no_line():
    ax = residuals([1.0, 2.0], [1.0, 1.5], ax=bare_figure(5, 4).subplots())
    assert _residual_line(ax, "means") is None
    assert len(_residual_line(ax, "points").get_xdata()) == 2


# Running scores.


def _draw(*arguments):
    return prequential(*arguments, ax=bare_figure(5, 4).subplots())


def _marked_scores(ax, name):
    return next(a for a in ax.get_children() if a.get_gid() == f"mark-{name}")


def test_means_of_all_rows_and_of_the_last() -> None:
    values = np.random.default_rng(0).standard_normal(60)
    ax = _draw(values, 7)
    rows, so_far = _marked_scores(ax, "so-far").get_data()
    np.testing.assert_array_equal(rows, np.arange(1, 61))
    np.testing.assert_allclose(so_far, [values[: t + 1].mean() for t in range(60)])
    rows, lately = _marked_scores(ax, "lately").get_data()
    np.testing.assert_array_equal(rows, np.arange(7, 61))
    np.testing.assert_allclose(lately, [values[t - 6 : t + 1].mean() for t in range(6, 60)])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["last 7", "all rows so far"]


def test_rows_without_a_target_are_left_out() -> None:
    values = np.array([np.nan, 1.0, np.nan, 3.0])
    rows, so_far = _marked_scores(_draw(values), "so-far").get_data()
    np.testing.assert_array_equal(rows, [2, 4])
    np.testing.assert_allclose(so_far, [1.0, 2.0])


def test_a_first_row_that_was_a_surprise_does_not_squeeze_the_rest() -> None:
    values = np.concatenate([[-1e6], np.zeros(2000)])
    low, high = _draw(values).get_ylim()
    assert -1e5 < low < high < 1e5


def test_one_row() -> None:
    assert len(_marked_scores(_draw([0.5]), "so-far").get_xdata()) == 1


@pytest.mark.parametrize("wrong", [[], [np.nan], [[1.0]], [np.inf, 1.0]])
def test_what_is_refused(wrong) -> None:
    with pytest.raises(UsageError, match="log_density"):
        _draw(wrong)
    with pytest.raises(UsageError, match="window"):
        _draw([1.0], 0)
