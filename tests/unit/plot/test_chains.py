"""Chains, ranks and particles, drawn."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.plot import particles, ranks, trace
from mercer.plot.chains import choose
from mercer.plot.style import CHAIN_COLOURS, bare_figure, to_svg
from mercer.posterior.draws import Draws
from support.fake_estimator import INPUTS, fake_draws
from support.followed import followed

# Chains.


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


def _lines(ax):
    return [p for p in ax.patches if (p.get_gid() or "").startswith("mark-")]


def _draw(values):
    draws = Draws({"a": np.asarray(values, dtype=float)}, {}, {}, ("a",))
    return ranks(draws, fig=bare_figure(4, 2)).axes[0]


def test_equal_draws_of_chains_that_agree_are_level():
    """As of a count: all in one bin would leave the others empty."""
    for line in _lines(_draw(np.tile([0.0, 1.0, 1.0, 2.0], (3, 30)))):
        np.testing.assert_allclose(line.get_data().values, 1.0)


def test_heights_are_counts_of_ranks_over_their_mean():
    values = np.random.default_rng(0).standard_normal((3, 120))
    ax = _draw(values)
    order = np.empty(360, dtype=int)
    order[values.ravel().argsort()] = np.arange(360)  # rank 0 ... 359
    bins = order.reshape(3, 120) // 36  # ten bins of 36
    for line, chain in zip(_lines(ax), bins, strict=True):
        expected = np.bincount(chain, minlength=10) / 12
        np.testing.assert_allclose(line.get_data().values, expected)


def test_a_chain_that_stays_high_has_all_of_its_ranks_there():
    values = np.random.default_rng(0).standard_normal((2, 120)) + np.array([[0.0], [100.0]])
    low, high = (line.get_data().values for line in _lines(_draw(values)))
    np.testing.assert_allclose(low, [2.0] * 5 + [0.0] * 5)
    np.testing.assert_allclose(high, [0.0] * 5 + [2.0] * 5)


def test_the_band_is_the_central_98_percent_of_a_count():
    ax = _draw(np.random.default_rng(0).standard_normal((4, 250)))
    (band,) = [p for p in ax.patches if p.get_gid() is None]
    low, height = band.get_y(), band.get_height()
    counts = np.random.default_rng(1).binomial(250, 1 / 15, 200_000) * 15 / 250
    inside = np.mean((counts >= low - 1e-9) & (counts <= low + height + 1e-9))
    assert 0.975 < inside < 0.995  # counts are whole: the band holds a little more than 98 %


def test_a_constant_quantity_has_no_ranks_and_says_so():
    ax = _draw(np.ones((2, 50)))
    assert ax.texts[0].get_text() == "constant: nothing to rank"
    assert "mark-0-constant" in to_svg(ax.figure)


def test_a_variable_stands_for_all_of_its_entries():
    draws = fake_draws(n_draws=10)
    chosen = choose(draws, ("log_weight", "log_density"))
    assert [s.name for s in chosen] == [*(f"log_weight[{i}]" for i in INPUTS), "log_density"]
    for i, scalar in enumerate(chosen[:-1]):
        np.testing.assert_array_equal(scalar.values, draws.variables["log_weight"][:, :, i])


def test_single_entries_can_be_named():
    draws = fake_draws(n_draws=10)
    (bmi, row) = choose(draws, ("log_weight[bmi]", "latent[3]"))
    np.testing.assert_array_equal(bmi.values, draws.variables["log_weight"][:, :, 4])
    np.testing.assert_array_equal(row.values, draws.variables["latent"][:, :, 3])


def test_monitored_variables_are_the_default_and_twelve_the_limit():
    draws = fake_draws(n_draws=10)
    names = [s.name for s in choose(draws, None)]
    assert len(names) == 12
    assert names[0] == "log_signal_variance"


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match=r"no variable 'glu' among the draws: log_signal"):
        choose(fake_draws(n_draws=10), ("glu",))


def test_nothing_to_show_is_refused():
    draws = Draws({"a": np.zeros((1, 3))}, {}, {}, ())
    with pytest.raises(UsageError, match="nothing to show"):
        choose(draws, None)


# Particle bars.


def _bars(fig, name):
    """Middles and heights."""
    marked = [p for ax in fig.axes for p in ax.patches if p.get_gid().startswith(f"mark-{name}-")]
    return [(p.get_x() + 0.5 * p.get_width(), p.get_height()) for p in marked]


def _draw_particles(draws, *arguments):
    return particles(draws, *arguments, fig=bare_figure(6, 3))


def test_weights_count() -> None:
    variables = {"size": np.array([[2.0, 3.0, 3.0]]), "width": np.array([[0.5, 1.0, 0.5]])}
    weights = np.log([[0.5, 0.3, 0.2]])
    draws = Draws(variables, {}, {}, ("size", "width"), weights + 7.0)
    fig = _draw_particles(draws)
    np.testing.assert_allclose(_bars(fig, "size"), [(2.0, 0.5), (3.0, 0.5)])
    np.testing.assert_allclose(_bars(fig, "width"), [(0.0, 0.7), (1.0, 0.3)])
    assert [t.get_text() for t in fig.axes[1].get_xticklabels()] == ["0.5", "1"]
    plain = Draws(variables, {}, {}, ("size",))
    np.testing.assert_allclose(_bars(_draw_particles(plain), "size"), [(2.0, 1 / 3), (3.0, 2 / 3)])


def test_many_values_share_bars() -> None:
    rng = np.random.default_rng(0)
    variables = {
        "wide": rng.integers(0, 500, (1, 200)).astype(float), "smooth": rng.random((1, 200))
    }  # fmt: skip
    fig = _draw_particles(Draws(variables, {}, {}, ("wide", "smooth"), np.zeros((1, 200))))
    for name in variables:
        bars = _bars(fig, name)
        assert 20 <= len(bars) <= 25
        assert sum(height for _, height in bars) == pytest.approx(1.0)


def test_of_a_model() -> None:
    draws = followed().posterior_
    assert [ax.get_title(loc="left") for ax in _draw_particles(draws).axes] == list(draws.monitored)
    assert len(_draw_particles(draws, ["coef_std"]).axes) == 1
    with pytest.raises(UsageError, match="no variable 'x'"):
        _draw_particles(draws, ["x"])


@pytest.mark.parametrize("draw", [trace, ranks])
def test_draws_with_weights_are_no_chains(draw):
    draws = Draws({"a": np.zeros((1, 200))}, {}, {}, ("a",), np.zeros((1, 200)))
    with pytest.raises(UsageError, match="no chains: particles"):
        draw(draws)
