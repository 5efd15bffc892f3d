from __future__ import annotations

import numpy as np
import pytest

from mercer.plot import trace
from mercer.plot.style import CHAIN_COLOURS, bare_figure
from support.fake_estimator import fake_draws


def test_one_row_a_scalar_and_one_line_a_chain():
    draws = fake_draws(n_draws=40)
    fig = trace(draws, ("log_density", "log_weight[glu]"), fig=bare_figure(5, 3))
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["log_density", "log_weight[glu]"]
    expected = (draws.variables["log_density"], draws.variables["log_weight"][:, :, 1])
    for ax, values in zip(fig.axes, expected, strict=True):
        assert [line.get_color() for line in ax.lines] == list(CHAIN_COLOURS[:4])
        np.testing.assert_array_equal([line.get_ydata() for line in ax.lines], values)
        np.testing.assert_array_equal(ax.lines[0].get_xdata(), np.arange(1, 41))
    assert fig.axes[-1].get_xlabel() == "draw"


@pytest.mark.parametrize(("n_draws", "stride"), [(300, 1), (301, 2), (1000, 4)])
def test_long_chains_are_thinned_and_it_is_said(n_draws, stride):
    fig = trace(fake_draws(n_draws=n_draws), ("log_density",), fig=bare_figure(5, 3))
    (ax,) = fig.axes
    assert len(ax.lines[0].get_xdata()) == -(-n_draws // stride)
    assert ax.get_xlabel() == ("draw" if stride == 1 else f"draw (one in {stride} shown)")


def test_more_chains_than_colours_go_round():
    fig = trace(fake_draws(n_chains=8, n_draws=20), ("log_density",), fig=bare_figure(5, 3))
    assert fig.axes[0].lines[6].get_color() == CHAIN_COLOURS[0]
