from __future__ import annotations

import numpy as np

from mercer.plot import repeats
from mercer.plot.style import bare_figure


def test_every_repeat_is_a_dot_and_published_figures_are_diamonds() -> None:
    axes = bare_figure(5.0, 2.0).subplots()
    measured = {"ours": np.array([2.0, 3.0, 3.0]), "theirs": np.array([4.0])}
    assert repeats(measured, published={"ours": 3.0, "unknown": 9.0}, ax=axes) is axes
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert [len(line.get_xdata()) for line in dots] == [3, 1]
    diamonds = [line for line in axes.lines if line.get_marker() == "D"]
    assert [float(line.get_xdata()[0]) for line in diamonds] == [3.0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ours", "theirs"]
