from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.plot import label_errors
from mercer.plot.style import bare_figure


def _axes():
    return bare_figure(5, 4).subplots()


def test_rows_come_sorted_and_the_list_is_shaded():
    p = np.array([0.1, 1.0, 0.0, 0.9, 0.95])
    ax = label_errors(p, fdr=0.06, ax=_axes())
    (dots,) = ax.lines
    assert dots.get_gid() == "mark-rows"
    assert dots.get_ydata().tolist() == [1.0, 0.95, 0.9, 0.1, 0.0]
    (band,) = ax.patches
    assert (band.get_x(), band.get_x() + band.get_width()) == (0.5, 3.5)
    assert ax.texts[0].get_text() == "list: 3 rows at 6 % expected false"


def test_of_many_rows_the_list_and_as_many_more_are_shown():
    p = np.concatenate([np.ones(30), np.zeros(970)])
    ax = label_errors(p, fdr=0.01, ax=_axes())
    assert len(ax.lines[0].get_xdata()) == 60
    assert "first 60 of 1000" in ax.get_xlabel()


def test_without_a_list_nothing_is_shaded():
    ax = label_errors([0.2, 0.1], ax=_axes())
    assert not ax.patches
    assert ax.texts[0].get_text().startswith("list: 0 rows")


@pytest.mark.parametrize("p", [[], [1.2], [float("nan")]])
def test_what_is_no_probability_is_refused(p):
    with pytest.raises(UsageError, match="probabilities"):
        label_errors(p, ax=_axes())
