from __future__ import annotations

import numpy as np
import pytest

from mercer.plot import pit
from mercer.plot.style import bare_figure
from mercer.posterior.scores import pit_histogram


@pytest.mark.parametrize("n", [1, 30, 500])
def test_bars_are_the_shares_and_fit(n):
    histogram = pit_histogram(np.random.default_rng(0).random(n))
    ax = pit(histogram, ax=bare_figure(5, 4).subplots())
    bars = [bar for bar in ax.patches if str(bar.get_gid()).startswith("mark-bar-")]
    assert [bar.get_height() for bar in bars] == histogram.share.tolist()
    assert ax.get_ylim()[1] > histogram.share.max()
