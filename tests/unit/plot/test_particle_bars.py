from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.plot import particles
from mercer.plot.style import bare_figure
from mercer.posterior.draws import Draws
from support.followed import followed


def _bars(fig, name):
    """Middles and heights."""
    marked = [p for ax in fig.axes for p in ax.patches if p.get_gid().startswith(f"mark-{name}-")]
    return [(p.get_x() + 0.5 * p.get_width(), p.get_height()) for p in marked]


def _draw(draws, *arguments):
    return particles(draws, *arguments, fig=bare_figure(6, 3))


def test_weights_count() -> None:
    variables = {"size": np.array([[2.0, 3.0, 3.0]]), "width": np.array([[0.5, 1.0, 0.5]])}
    weights = np.log([[0.5, 0.3, 0.2]])
    draws = Draws(variables, {}, {}, ("size", "width"), weights + 7.0)
    fig = _draw(draws)
    np.testing.assert_allclose(_bars(fig, "size"), [(2.0, 0.5), (3.0, 0.5)])
    np.testing.assert_allclose(_bars(fig, "width"), [(0.0, 0.7), (1.0, 0.3)])
    assert [t.get_text() for t in fig.axes[1].get_xticklabels()] == ["0.5", "1"]
    plain = Draws(variables, {}, {}, ("size",))
    np.testing.assert_allclose(_bars(_draw(plain), "size"), [(2.0, 1 / 3), (3.0, 2 / 3)])


def test_many_values_share_bars() -> None:
    rng = np.random.default_rng(0)
    variables = {
        "wide": rng.integers(0, 500, (1, 200)).astype(float), "smooth": rng.random((1, 200))
    }  # fmt: skip
    fig = _draw(Draws(variables, {}, {}, ("wide", "smooth"), np.zeros((1, 200))))
    for name in variables:
        bars = _bars(fig, name)
        assert 20 <= len(bars) <= 25
        assert sum(height for _, height in bars) == pytest.approx(1.0)


def test_of_a_model() -> None:
    draws = followed().posterior_
    assert [ax.get_title(loc="left") for ax in _draw(draws).axes] == list(draws.monitored)
    assert len(_draw(draws, ["coef_std"]).axes) == 1
    with pytest.raises(UsageError, match="no variable 'x'"):
        _draw(draws, ["x"])
