"""The learned kernel, its spectral density, and relevances, drawn."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import BaNKRegressor
from mercer.errors import UsageError
from mercer.plot import importance, learned_kernel, relevance, spectral_density
from mercer.plot.kernel import _nice_periods, position
from mercer.plot.style import bare_figure, to_svg
from mercer.spectral.prediction import input_scales
from support.learned import PERIOD, learned


@pytest.fixture(scope="module")
def quick_start() -> None:
    """The start as it is: its waves are looked at."""


# Learned kernel lags.


def _draw(model, column=None, **options):
    return learned_kernel(model, column, fig=bare_figure(5, 4), **options)


def _line(ax):
    return ax.lines[-1]


def _check_panel(ax, model, j):
    lags = _line(ax).get_xdata()
    mean, lower, upper = model.kernel(np.outer(lags, np.eye(model.n_features_in_)[j]))
    np.testing.assert_allclose(_line(ax).get_ydata(), mean)
    assert _line(ax).get_gid() == f"mark-kernel-{j}"
    (band,) = ax.collections
    path = band.get_paths()[0].vertices
    assert path[:, 1].min() == pytest.approx(lower.min())
    assert path[:, 1].max() == pytest.approx(max(upper.max(), 1.0))
    assert ax.get_ylim()[0] < lower.min()
    assert mean[0] == pytest.approx(1.0)


def test_one_input_has_one_panel_up_to_three_standard_deviations():
    model = learned(d=1, n_draws=60, n_warmup=60)  # so many that it knows the period
    (ax,) = _draw(model).axes
    _check_panel(ax, model, 0)
    assert ax.get_xlim() == pytest.approx((0.0, 3.0 * model.standardizer_.units[0]))
    assert ax.get_xlabel() == "difference in x0"
    lags, kernel = _line(ax).get_data()
    far = lags > 0.6 * PERIOD
    assert lags[far][np.argmax(kernel[far])] == pytest.approx(PERIOD, abs=0.4)


def test_several_inputs_come_as_panels_in_order_of_how_fast_the_kernel_falls():
    model = learned(names=("a", "b", "c"))
    fig = _draw(model)
    order = input_scales(model).order
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["abc"[j] for j in order]
    for ax, j in zip(fig.axes, order, strict=True):
        _check_panel(ax, model, j)
    assert len({ax.get_ylim() for ax in fig.axes}) == 1
    assert fig.get_supxlabel() == "difference in the input, the others equal"


def test_four_inputs_make_a_square_and_of_long_names_stays_what_fits():
    names = ("a", "temperature of cement", "c", "d")
    cases = ((4, {0, 1}, "temperature of cement"), (3, {0, 1, 2}, "temperat…cement"))
    for d, columns, title in cases:
        axes = _draw(learned(d=d, names=names[:d])).axes
        assert {ax.get_subplotspec().colspan.start for ax in axes} == columns
        assert {ax.get_title(loc="left") for ax in axes} == {"a", title, *names[2:d]}


def test_a_column_is_named_or_counted_and_lags_end_where_asked():
    model = learned(names=("a", "b", "c"))
    for column in (1, "b", np.int64(1)):
        (ax,) = _draw(model, column, longest_lag=12.5).axes
        _check_panel(ax, model, 1)
        assert ax.get_xlim() == (0.0, 12.5)
        assert ax.get_xlabel() == "difference in b"


def test_of_many_inputs_nine_are_shown_and_it_is_said():
    fig = _draw(learned(n=40, d=11, n_draws=4, n_warmup=4))
    assert len(fig.axes) == 9
    assert "9 of 11" in fig.get_supxlabel()


@pytest.mark.filterwarnings("ignore:.*constant")
def test_constant_inputs_are_left_out_unless_all_are():
    X = np.random.default_rng(0).standard_normal((30, 2))
    X[:, 0] = 1.0
    model = _refit(X)
    (ax,) = _draw(model).axes
    assert ax.get_xlabel() == "difference in x1"
    (ax,) = _draw(_refit(np.ones((30, 2)))).axes
    assert ax.get_xlabel() == "difference in x0"


def _refit(X):
    settings = {"n_frequencies": 4, "n_draws": 3, "n_warmup": 2, "n_chains": 1, "random_state": 0}
    return BaNKRegressor(**settings, progress=False).fit(X, np.sin(X[:, 1] + np.arange(30)))


def test_without_a_figure_a_new_one_is_made():
    import matplotlib.pyplot as plt

    fig = learned_kernel(learned())
    assert fig.number in plt.get_fignums()
    plt.close(fig)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("glucse", "no input 'glucse'; did you mean 'glucose'"),
        ("z", "no input 'z'$"),
        (3, "no input 3: there are 3"),
        (-1, "no input -1"),
    ],
)
def test_an_input_that_is_not_there_is_refused(column, message):
    model = learned(names=("glucose", "b", "c"))
    with pytest.raises(UsageError, match=message):
        position(model, column)


@pytest.mark.parametrize("end", [0.0, -1.0, np.inf, np.nan])
def test_a_longest_lag_that_is_none_is_refused(end):
    with pytest.raises(UsageError, match="longest_lag"):
        _draw(learned(), longest_lag=end)


# Spectral density band.


def _draw_density(model, *column):
    return spectral_density(model, *column, ax=bare_figure(5, 4).subplots())


def _density_line(ax):
    return next(line for line in ax.lines if line.get_gid() == "mark-density")


def test_line_and_band_are_those_of_the_model():
    model = learned()
    for j in (0, 2):
        ax = _draw_density(model, j)
        w = _density_line(ax).get_xdata()
        mean, lower, upper = model.marginal_spectral_density(w, j)
        np.testing.assert_allclose(_density_line(ax).get_ydata(), mean)
        (band,) = ax.collections
        ends = band.get_paths()[0].vertices[:, 1]
        assert (ends.min(), ends.max()) == pytest.approx((lower.min(), upper.max()))
        assert f"x{j}, radians per unit" in ax.get_xlabel()


def test_the_axis_holds_the_drawn_frequencies_and_the_hill_is_at_the_period():
    model = learned(d=1)
    ax = _draw_density(model)
    drawn = np.abs(model.posterior_.flat("frequencies")) / model.standardizer_.units[0]
    assert ax.get_xlim() == pytest.approx((0.0, np.quantile(drawn, 0.99)))
    w, density = _density_line(ax).get_data()
    assert w[0] == 0.0
    slow, valley, hill = np.interp((0.1, 1.0, 2 * np.pi / PERIOD), w, density)
    assert valley < min(slow, hill)
    (periods,) = ax.child_axes
    marked = {
        float(t.get_text()): x
        for t, x in zip(periods.get_xticklabels(), periods.get_xticks(), strict=True)
    }
    assert len(marked) >= 2
    for period, x in marked.items():
        assert x == pytest.approx(2 * np.pi / period)


def test_the_axis_of_periods_is_no_axes_of_its_own_in_the_drawing():
    svg = to_svg(_draw_density(learned(d=1)).figure)
    assert 'id="axes_1"' in svg
    assert 'id="axes_2"' not in svg


def test_a_warped_input_has_no_periods():
    assert not _draw_density(learned(d=1, standardize="yeo-johnson")).child_axes
    assert _draw_density(learned(d=1, standardize="std")).child_axes


@pytest.mark.parametrize("end", [1e-7, 0.02, 0.99, 2 * np.pi, 31.0, 4e8])
def test_periods_are_round_and_have_room(end):
    periods = _nice_periods(end)
    places = 2 * np.pi / np.array(periods) / end
    assert len(periods) >= 2
    assert places.max() <= 1.0
    assert (np.diff(places) <= -0.14).all()
    assert all(len(f"{period:.1e}") <= 8 for period in periods)


def test_inputs_are_named_or_counted():
    model = learned(names=("a", "b", "c"))
    assert "of b," in _draw_density(model, "b").get_xlabel()
    with pytest.raises(UsageError, match="no input 'd'"):
        _draw_density(model, "d")


# Input relevance.


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
