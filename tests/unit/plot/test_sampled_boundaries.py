from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.plot import boundaries
from mercer.plot.style import bare_figure
from support.audited import WRONG, audited, two_clusters


def _axes():
    return bare_figure(5, 4).subplots()


def _lines(ax):
    return {line.get_gid(): line for line in ax.lines}


def test_lines_pass_where_the_classifier_is_undecided():
    model, (X, y) = audited(), two_clusters()
    ringed = np.isin(np.arange(40), WRONG)
    ax = boundaries(model, X, y, ringed=ringed, n_classifiers=7, ax=_axes())
    drawn = [c for c in ax.collections if (c.get_gid() or "").startswith("mark-boundary-")]
    assert 1 <= len(drawn) <= 7
    picked = np.linspace(0, 39, 7).round().astype(int)
    latent = model.margin_draws(X)[picked]
    for c in drawn:
        j = int(c.get_gid().rpartition("-")[2])
        points = np.concatenate([path.vertices for path in c.get_paths()])
        f = model.margin_draws(points)[picked[j]]
        assert np.abs(f).max() < 0.05 * np.abs(latent[j]).max()  # of linear interpolation
    rings = _lines(ax)["mark-ringed"]
    assert set(map(tuple, rings.get_xydata())) == set(map(tuple, X[list(WRONG)]))
    assert _lines(ax)["mark-class-0"].get_xydata().tolist() == X[y == "no"].tolist()
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["no", "yes", "label suspected"]


def test_inputs_name_the_axes_and_rings_are_optional():
    X, y = two_clusters()
    ax = boundaries(audited(), X, y, n_classifiers=2, ax=_axes())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "x1")
    assert "mark-ringed" not in _lines(ax)


def test_what_cannot_be_drawn_is_refused():
    X, y = two_clusters()
    with pytest.raises(UsageError, match="over two inputs, not 3"):
        boundaries(audited(d=3), *two_clusters(d=3), ax=_axes())
    with pytest.raises(UsageError, match="do not fit 40 rows"):
        boundaries(audited(), X, y[:-1], ax=_axes())

    class Three:
        n_features_in_ = 2
        classes_ = np.arange(3)

    with pytest.raises(UsageError, match="two classes, not 3"):
        boundaries(Three(), X, y, ax=_axes())
