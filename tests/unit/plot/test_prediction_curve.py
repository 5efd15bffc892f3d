from __future__ import annotations

import numpy as np
import pytest

from mercer import BaNKRegressor
from mercer.errors import UsageError
from mercer.plot import predicted_band
from mercer.plot.style import bare_figure
from support.learned import learned, waves


def _draw(model, X, y=None):
    return predicted_band(model, X, y, ax=bare_figure(5, 4).subplots())


def _marked(ax, name):
    return next(a for a in ax.get_children() if a.get_gid() == f"mark-{name}")


def test_curve_and_band_are_the_predictions_from_the_smallest_to_the_largest_input():
    model, (X, y) = learned(d=1), waves(d=1)
    ax = _draw(model, X, y)
    x, mean = _marked(ax, "mean").get_data()
    assert (x[0], x[-1]) == (X.min(), X.max())
    np.testing.assert_allclose(mean, model.predict(x[:, np.newaxis]))
    lower, upper = model.predict_interval(x[:, np.newaxis])
    ends = _marked(ax, "interval").get_paths()[0].vertices[:, 1]
    assert (ends.min(), ends.max()) == pytest.approx((lower.min(), upper.max()))
    np.testing.assert_array_equal(_marked(ax, "data").get_xydata(), np.column_stack([X[:, 0], y]))
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["90 %", "mean", "observed"]


def test_targets_are_optional_and_some_may_be_missing():
    X, y = waves(d=1)
    ax = _draw(learned(d=1), X[:, 0])
    assert all(a.get_gid() != "mark-data" for a in ax.lines)
    with_gaps = np.append(y, np.nan)
    ax = _draw(learned(d=1), np.append(X[:, 0], 9.0), with_gaps)
    assert _marked(ax, "mean").get_xdata()[-1] == 9.0
    assert ax.dataLim.y1 < 1e3


def test_a_model_of_a_frame_draws_without_a_warning():
    pandas = pytest.importorskip("pandas")
    X, y = waves(n=30, d=1)
    settings = {"n_frequencies": 4, "n_draws": 3, "n_warmup": 2, "n_chains": 1, "random_state": 0}
    frame = pandas.DataFrame({"year": X[:, 0]})
    model = BaNKRegressor(**settings, progress=False).fit(frame, y)
    assert _draw(model, frame, y).get_xlabel() == "year"


def test_what_cannot_be_drawn_is_refused():
    X, y = waves(d=1)
    with pytest.raises(UsageError, match="along one input, and the model has 3"):
        _draw(learned(), *waves())
    with pytest.raises(UsageError, match="do not fit 120 inputs"):
        _draw(learned(d=1), X, y[:-1])
    for wrong in (np.empty(0), np.ones((3, 2)), [np.nan]):
        with pytest.raises(UsageError, match="must be finite"):
            _draw(learned(d=1), wrong)
