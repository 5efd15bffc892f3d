from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.plot import spectral_density
from mercer.plot.kernel import _nice_periods
from mercer.plot.style import bare_figure, to_svg
from support.learned import PERIOD, learned


def _draw(model, *column):
    return spectral_density(model, *column, ax=bare_figure(5, 4).subplots())


def _line(ax):
    return next(line for line in ax.lines if line.get_gid() == "mark-density")


def test_line_and_band_are_those_of_the_model():
    model = learned()
    for j in (0, 2):
        ax = _draw(model, j)
        w = _line(ax).get_xdata()
        mean, lower, upper = model.marginal_spectral_density(w, j)
        np.testing.assert_allclose(_line(ax).get_ydata(), mean)
        (band,) = ax.collections
        ends = band.get_paths()[0].vertices[:, 1]
        assert (ends.min(), ends.max()) == pytest.approx((lower.min(), upper.max()))
        assert f"x{j}, radians per unit" in ax.get_xlabel()


def test_the_axis_holds_the_drawn_frequencies_and_the_hill_is_at_the_period():
    model = learned(d=1)
    ax = _draw(model)
    drawn = np.abs(model.posterior_.flat("frequencies")) / model.standardizer_.units[0]
    assert ax.get_xlim() == pytest.approx((0.0, np.quantile(drawn, 0.99)))
    w, density = _line(ax).get_data()
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
    svg = to_svg(_draw(learned(d=1)).figure)
    assert 'id="axes_1"' in svg
    assert 'id="axes_2"' not in svg


def test_a_warped_input_has_no_periods():
    assert not _draw(learned(d=1, standardize="yeo-johnson")).child_axes
    assert _draw(learned(d=1, standardize="std")).child_axes


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
    assert "of b," in _draw(model, "b").get_xlabel()
    with pytest.raises(UsageError, match="no input 'd'"):
        _draw(model, "d")
