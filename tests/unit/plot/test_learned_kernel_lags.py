from __future__ import annotations

import numpy as np
import pytest

from mercer import BaNKRegressor
from mercer.errors import UsageError
from mercer.plot import learned_kernel
from mercer.plot.kernel import position
from mercer.plot.style import bare_figure
from mercer.spectral.prediction import input_scales
from support.learned import PERIOD, learned


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
