from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.plot import prequential
from mercer.plot.style import bare_figure


def _draw(*arguments):
    return prequential(*arguments, ax=bare_figure(5, 4).subplots())


def _marked(ax, name):
    return next(a for a in ax.get_children() if a.get_gid() == f"mark-{name}")


def test_means_of_all_rows_and_of_the_last() -> None:
    values = np.random.default_rng(0).standard_normal(60)
    ax = _draw(values, 7)
    rows, so_far = _marked(ax, "so-far").get_data()
    np.testing.assert_array_equal(rows, np.arange(1, 61))
    np.testing.assert_allclose(so_far, [values[: t + 1].mean() for t in range(60)])
    rows, lately = _marked(ax, "lately").get_data()
    np.testing.assert_array_equal(rows, np.arange(7, 61))
    np.testing.assert_allclose(lately, [values[t - 6 : t + 1].mean() for t in range(6, 60)])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["last 7", "all rows so far"]


def test_rows_without_a_target_are_left_out() -> None:
    values = np.array([np.nan, 1.0, np.nan, 3.0])
    rows, so_far = _marked(_draw(values), "so-far").get_data()
    np.testing.assert_array_equal(rows, [2, 4])
    np.testing.assert_allclose(so_far, [1.0, 2.0])


def test_a_first_row_that_was_a_surprise_does_not_squeeze_the_rest() -> None:
    values = np.concatenate([[-1e6], np.zeros(2000)])
    low, high = _draw(values).get_ylim()
    assert -1e5 < low < high < 1e5


def test_one_row() -> None:
    assert len(_marked(_draw([0.5]), "so-far").get_xdata()) == 1


@pytest.mark.parametrize("wrong", [[], [np.nan], [[1.0]], [np.inf, 1.0]])
def test_what_is_refused(wrong) -> None:
    with pytest.raises(UsageError, match="log_density"):
        _draw(wrong)
    with pytest.raises(UsageError, match="window"):
        _draw([1.0], 0)
