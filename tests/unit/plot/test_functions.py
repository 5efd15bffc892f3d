"""Functions, centres, boundaries and repeated runs, drawn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from mercer import BaNKRegressor, GPRegressor
from mercer.errors import UsageError
from mercer.estimation.inspection import Effect, Effects, Values
from mercer.plot import boundaries, centres, effects, learned_kernel, predicted_band, repeats
from mercer.plot.style import bare_figure
from support.audited import WRONG, audited, two_clusters
from support.followed import bumps, followed
from support.learned import learned, waves

# Prediction curve.


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
    for wrong in (np.empty(0), [np.nan]):
        with pytest.raises(UsageError, match="must be finite"):
            _draw(learned(d=1), wrong)
    with pytest.raises(ValueError, match="expecting 1 features"):
        _draw(learned(d=1), np.ones((3, 2)))
    with pytest.raises(UsageError, match="BaNK learns, not of a GPRegressor"):
        learned_kernel(GPRegressor(kernel="rbf", inference="map").fit(X[:20], y[:20]))


def test_a_band_along_a_column_of_text_is_that_of_its_code():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"sex": ["m", "f"] * 10})
    model = GPRegressor(kernel="rbf", inference="map", random_state=0)
    ax = _draw(model.fit(frame, np.arange(20.0) % 2), frame, np.arange(20.0) % 2)
    assert (ax.get_xlabel(), _marked(ax, "mean").get_xdata()[[0, -1]].tolist()) == (
        *("sex=m", [0.0, 1.0]),
    )


# Kernel centres.


def _draw_centres(model, *arguments, **named):
    return centres(model, *arguments, ax=bare_figure(5, 4).subplots(), **named)


def test_along_one_input_the_centres_stand_on_the_sum() -> None:
    model = followed()
    ax, summary = _draw_centres(model, 5), model.summarise(5)
    x, y = _marked(ax, "centres").get_data()
    np.testing.assert_array_equal(x, summary.centres[:, 0])
    np.testing.assert_allclose(y, summary.predict(summary.centres))
    x, y = _marked(ax, "sum").get_data()
    np.testing.assert_allclose(np.ravel(y), summary.predict(np.reshape(x, (-1, 1))))
    assert (np.min(x), np.max(x)) == (model.candidates_.min(), model.candidates_.max())
    x, mean = _marked(ax, "mean").get_data()
    np.testing.assert_allclose(mean, model.predict(x[:, np.newaxis]))
    assert [t.get_text() for t in ax.get_legend().get_texts()][-1] == "5 kernels"


def test_in_two_inputs_circles_are_as_large_as_kernels_are_high() -> None:
    model = followed(d=2, names=("a", "b"))
    ax, summary = _draw_centres(model, 6), model.summarise(6)
    circles = _marked(ax, "centres")
    np.testing.assert_allclose(circles.get_offsets(), summary.centres)
    areas, heights = circles.get_sizes(), np.abs(summary.coef)
    assert areas.argsort().tolist() == heights.argsort().tolist()
    colours = np.unique(circles.get_facecolors(), axis=0)
    assert len(colours) == len(np.unique(np.sign(summary.coef)))
    assert len(_marked(ax, "candidates").get_xdata()) == 120
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")


def test_of_several_inputs_two_are_named() -> None:
    model = followed(d=3, names=("a", "b", "c"))
    with pytest.raises(UsageError, match="the model has 3: name two"):
        _draw_centres(model)
    ax = _draw_centres(model, columns=("c", 0))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("c", "a")
    with pytest.raises(UsageError, match="no input 'd'"):
        _draw_centres(model, columns=("a", "d"))
    for wrong in (("a", "a"), ("a",), ("a", "b", "c")):
        with pytest.raises(UsageError, match="columns must be two inputs"):
            _draw_centres(model, columns=wrong)


def test_there_may_be_fewer_rows_than_kernels_wanted() -> None:
    ax = _draw_centres(followed(n=4), 10)
    assert len(_marked(ax, "centres").get_xdata()) <= 4
    assert len(bumps(4)[1]) == 4


# Sampled boundaries.


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


def test_boundaries_that_cannot_be_drawn_are_refused():
    X, y = two_clusters()
    with pytest.raises(UsageError, match="over two inputs, not 3"):
        boundaries(audited(d=3), *two_clusters(d=3), ax=_axes())
    with pytest.raises(UsageError, match="no class 'NO'"):
        boundaries(audited(), X, np.char.upper(y), ax=_axes())
    with pytest.raises(UsageError, match="do not fit 40 rows"):
        boundaries(audited(), X, y[:-1], ax=_axes())

    class Three:
        feature_labels_ = ("x0", "x1")
        classes_ = np.arange(3)

    with pytest.raises(UsageError, match="two classes, not 3"):
        boundaries(Three(), X, y, ax=_axes())


def test_boundaries_of_a_frame_are_those_of_its_columns():
    """In another order they were drawn, with the axes exchanged."""
    pandas = pytest.importorskip("pandas")
    X, y = two_clusters()
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = clone(audited()).set_params(n_draws=4, n_warmup=4).fit(frame, y)
    assert boundaries(model, frame, y, ax=_axes()).get_xlabel() == "a"  # a warning would fail
    with pytest.raises(ValueError, match="same order"):
        boundaries(model, frame[["b", "a"]], y, ax=_axes())


# Repeated runs.


def test_every_repeat_is_a_dot_and_published_figures_are_diamonds() -> None:
    axes = bare_figure(5.0, 2.0).subplots()
    measured = {"ours": np.array([2.0, 3.0, 3.0]), "theirs": np.array([4.0])}
    assert repeats(measured, published={"ours": 3.0, "unknown": 9.0}, ax=axes) is axes
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert [len(line.get_xdata()) for line in dots] == [3, 1]
    diamonds = [line for line in axes.lines if line.get_marker() == "D"]
    assert [float(line.get_xdata()[0]) for line in diamonds] == [3.0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ours", "theirs"]


@pytest.mark.parametrize("n_levels", [3, 12])
def test_names_of_levels_are_not_written_over_one_another(n_levels: int) -> None:
    labels = tuple(f"referred by {k}" for k in range(n_levels))
    values = Values("note", np.array([0]), np.arange(n_levels)[:, np.newaxis], labels)
    level = np.full((1, n_levels), 0.5)
    curve = Effect(values, level, level - 0.1, level + 0.1, level - 0.2, level + 0.2)
    fig = effects(Effects((curve, curve), None, (), 9))
    fig.draw_without_rendering()
    for ax in fig.axes:
        angle = np.radians(ax.get_xticklabels()[0].get_rotation())
        height = ax.get_xticklabels()[0].get_fontsize() * fig.dpi / 72.0
        steps = np.diff([text.get_window_extent().x1 for text in ax.get_xticklabels()])
        assert (steps * np.sin(angle) > height).all()
