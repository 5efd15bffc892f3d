"""Every plot of every estimator, as ``model.plot.NAME`` and as ``mercer.plot.NAME(model)``."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer.plot
from mercer.errors import DataWarning, UsageError
from mercer.plot.style import bare_figure
from mercer.posterior.scores import reliability_curve
from support import basis_fits, class_fits
from support.process_fits import tiny

TINY = {"n_draws": 8, "n_warmup": 4, "n_chains": 2, "random_state": 0, "progress": False}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
NUMBERS = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=60)
CLASSES = np.where(NUMBERS > 0.0, "ham", "spam")
HELD = {"error_coverage", "gains", "importance", "interval_coverage", "pit", "predictions"}
HELD |= {"reliability", "residuals", "boundaries"}
ROWS = {"effects", "pair_effect", "laplace_distance", "predicted_band"}

MODELS = {
    "gp": lambda: mercer.GPClassifier(kernel="rbf", integration="exact", **TINY).fit(X, CLASSES),
    "gp numbers": lambda: tiny(inference="importance").fit(X, NUMBERS),
    "gp one input": lambda: tiny(inference="map").fit(X[:, :1], NUMBERS),
    "sphere": lambda: mercer.KernelGibbsClassifier(lengthscale="median", **TINY).fit(X, CLASSES),
    "basis": lambda: basis_fits.tiny().fit(X, NUMBERS),
    "basis classes": lambda: class_fits.tiny().fit(X, CLASSES),
    "spectral": lambda: mercer.BaNKRegressor(n_frequencies=6, **TINY).fit(X, NUMBERS),
    "spectral classes": lambda: mercer.BaNKClassifier(n_frequencies=6, **TINY).fit(X, CLASSES),
}
EXPECTED = {
    "gp": "effects error_coverage gains importance laplace_distance pair_effect ranks relevance "
    "reliability trace",
    "gp numbers": "effects importance interval_coverage pair_effect particles pit predictions "
    "relevance residuals",
    "gp one input": "effects importance interval_coverage pair_effect pit predicted_band "
    "predictions relevance residuals",
    "sphere": "boundaries effects error_coverage evidence_curve gains importance label_errors "
    "pair_effect ranks reliability trace",
    "basis": "centres effects importance interval_coverage pair_effect particles pit predictions "
    "prequential residuals",
    "basis classes": "effects error_coverage gains importance pair_effect particles prequential "
    "reliability",
    "spectral": "effects importance interval_coverage learned_kernel pair_effect pit predictions "
    "ranks residuals spectral_density trace",
    "spectral classes": "effects error_coverage gains importance learned_kernel pair_effect ranks "
    "reliability spectral_density trace",
}


@pytest.mark.parametrize("name", MODELS)
def test_each_plot_that_is_listed_draws(name: str) -> None:
    """The function of a plot draws what the method does: of the first model that has it."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    model = MODELS[name]()
    assert dir(model.plot) == EXPECTED[name].split()
    rows = X[:, : model.n_features_in_]
    target = CLASSES if hasattr(model, "classes_") else NUMBERS
    for plot in dir(model.plot):
        given = (rows, target) if plot in HELD else (rows,) if plot in ROWS else ()
        if name == "gp one input" and plot == "pair_effect":
            with pytest.raises(UsageError, match="no pair"):
                model.plot.pair_effect(rows)
            continue
        inspect.signature(getattr(model.plot, plot)).bind(*given)  # what an editor shows
        drawn = getattr(model.plot, plot)(*given)
        assert isinstance(drawn, Axes | Figure)
        if next(each for each, plots in EXPECTED.items() if plot in plots.split()) == name:
            other = getattr(mercer.plot, plot)(model, *given)
            assert type(drawn) is type(other)
        ids = [artist.get_gid() for artist in drawn.findobj() if artist.get_gid()]
        assert any(each.startswith("mark-") for each in ids), plot
        plt.close("all")


def test_the_plot_of_a_model_is_that_of_its_numbers() -> None:
    """Of a pipeline of scikit-learn, too; further arguments are those of the plot."""
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, CLASSES)
    ax = bare_figure(4, 4).subplots()
    assert mercer.plot.reliability(model, X, y=CLASSES, ax=ax) is ax
    curve = reliability_curve(CLASSES == "spam", model.predict_proba(X)[:, 1])
    other = mercer.plot.reliability(curve, ax=bare_figure(4, 4).subplots())
    points = [line.get_xydata() for line in ax.lines], [line.get_xydata() for line in other.lines]
    for one, expected in zip(*points, strict=True):
        np.testing.assert_array_equal(one, expected)


def test_targets_are_no_inputs_to_draw() -> None:
    model = tiny(inference="map").fit(X, NUMBERS)
    ones = np.ones(len(X), dtype=int)
    assert len(model.plot.effects(X, ones).axes) == len(model.plot.effects(X).axes)
    assert len(model.plot.effects(X, ones, columns=["x1"]).axes) == 1


def test_the_class_whose_probability_is_drawn_is_named() -> None:
    def words(figure: Figure) -> set[str]:
        return {each.get_text() for each in figure.findobj(Text)}

    numbers = tiny(inference="map").fit(X, NUMBERS)
    classes = class_fits.tiny().fit(X, CLASSES)
    three = class_fits.tiny().fit(X, np.where(X[:, 0] > 0.7, "egg", CLASSES))
    for model, first, second in (
        (numbers, "prediction", "prediction"),
        (classes, "probability of spam", "probability of spam"),
        (three, "probability", "probability of egg"),
    ):
        assert first in words(model.plot.effects(X))
        assert second in words(model.plot.pair_effect(X).figure)


def test_rows_that_are_left_out_are_counted() -> None:
    labels, numbers = CLASSES.copy(), NUMBERS.copy()
    labels[:7], numbers[:3] = "beans", np.nan
    model = class_fits.tiny().fit(X, CLASSES)
    with pytest.warns(DataWarning, match="not in training: 7 of 60 rows are left out"):
        ax = model.plot.error_coverage(X, labels)
    other = model.plot.error_coverage(X[7:], CLASSES[7:])
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), other.lines[0].get_xydata())
    with pytest.warns(DataWarning, match="missing targets: 3 of 60 rows are left out"):
        tiny(inference="map").fit(X, NUMBERS).plot.pit(X, numbers)


def test_a_model_of_a_frame_is_drawn_and_reported_without_a_warning(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["age", "income"])
    model = tiny(inference="map").fit(frame, NUMBERS)
    for plot in ("importance", "predictions", "pit", "residuals", "interval_coverage"):
        getattr(model.plot, plot)(frame, NUMBERS)
    model.report(tmp_path / "r.html", frame, NUMBERS)
    assert len(model.plot.effects(frame, columns="age").axes) == 1
    classes = class_fits.tiny().fit(frame, CLASSES)
    classes.plot.reliability(frame, CLASSES)


def test_what_does_not_fit_is_said() -> None:
    model = tiny(inference="map").fit(X, NUMBERS)
    with pytest.raises(
        AttributeError, match="GPRegressor has no plot 'relevanc'; did you mean 're"
    ):
        _ = model.plot.relevanc
    with pytest.raises(UsageError, match="of classes, which GPRegressor does not predict"):
        mercer.plot.reliability(model, X, NUMBERS)
    with pytest.raises(UsageError, match="laws of numbers, which Ridge does not"):
        mercer.plot.pit(Ridge().fit(X, NUMBERS), X, NUMBERS)
    with pytest.raises(UsageError, match="of mercer, not of a Ridge"):
        mercer.plot.trace(Ridge().fit(X, NUMBERS))
    with pytest.raises(UsageError, match="one target for each row"):
        model.plot.pit(X, NUMBERS[1:])
    with pytest.raises(UsageError, match="no input 'x7'"):
        model.plot.effects(X, columns=[np.str_("x7")])
    with pytest.raises(UsageError, match="inputs are named as columns="):
        model.plot.effects(X, ["x0"])
    with pytest.raises(UsageError, match=r"predictions of a model: missing .* argument: 'y'"):
        model.plot.predictions(X)
    with pytest.raises(NotFittedError):
        mercer.plot.relevance(tiny())
    assert "plots of GPRegressor: effects" in repr(model.plot)
