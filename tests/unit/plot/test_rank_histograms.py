from __future__ import annotations

import numpy as np

from mercer.plot import ranks
from mercer.plot.style import bare_figure, to_svg
from mercer.posterior.draws import Draws


def _lines(ax):
    return [p for p in ax.patches if (p.get_gid() or "").startswith("mark-")]


def _draw(values):
    draws = Draws({"a": np.asarray(values, dtype=float)}, {}, {}, ("a",))
    return ranks(draws, fig=bare_figure(4, 2)).axes[0]


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
