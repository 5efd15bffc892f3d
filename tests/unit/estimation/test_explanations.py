"""Effects and contributions: one function for all models, against closed forms and enumeration."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from sklearn.base import clone

from mercer import (
    BaNKClassifier,
    BaNKRegressor,
    GPClassifier,
    GPRegressor,
    KernelGibbsClassifier,
    SequentialKernelClassifier,
    SequentialKernelRegressor,
)
from mercer.data.frame import Inputs
from mercer.errors import UsageError
from mercer.estimation import inspection
from mercer.estimation.inspection import drawn, effects_of, explain_rows, predicted
from mercer.posterior.predictive import NormalMixture
from support.statistics import few_first

RNG = np.random.default_rng(8)
X = RNG.standard_normal((60, 3))
NUMBERS = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.1 * RNG.standard_normal(60)
TWO = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
THREE = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])
INPUTS = Inputs.of_sizes(["a", "b", "c"], [1, 1, 1])
TINY = {"n_draws": 40, "n_chains": 1, "n_warmup": 10, "random_state": 0, "progress": False}
STREAM = {"n_particles": 60, "random_state": 0, "progress": False}
MODELS = {
    "gp two": (GPClassifier(kernel="rbf", **TINY), TWO),
    "gp several": (GPClassifier(kernel="rbf", **TINY), THREE),
    "gp exact": (GPClassifier(kernel="rbf", integration="exact", inference="hmc", **TINY), TWO),
    "gp numbers": (GPRegressor(kernel="rbf", **TINY), NUMBERS),
    "gp inducing": (
        GPRegressor(kernel="rbf", max_rows=30, n_inducing=15, **TINY), NUMBERS,
    ),
    "sphere two": (KernelGibbsClassifier(lengthscale="median", nugget=0.1, **TINY), TWO),
    "sphere several": (KernelGibbsClassifier(lengthscale="median", nugget=0.1, **TINY), THREE),
    "basis numbers": (SequentialKernelRegressor(**STREAM), NUMBERS),
    "basis forgetting": (SequentialKernelRegressor(forgetting=(1.0, 0.95), **STREAM), NUMBERS),
    "basis two": (SequentialKernelClassifier(**STREAM), TWO),
    "basis several": (SequentialKernelClassifier(**STREAM), THREE),
    "spectral numbers": (BaNKRegressor(n_frequencies=12, **TINY), NUMBERS),
    "spectral two": (BaNKClassifier(n_frequencies=12, **TINY), TWO),
    "spectral several": (BaNKClassifier(n_frequencies=12, **TINY), THREE),
}  # fmt: skip


# Of several classes the drawn functions are told apart as elsewhere: one model in the first tier.
# So it is of two classes of a filter, where several are in it, of those of BaNK, of filters side by
# side, and of exact draws, whose functions are drawn as Laplace's are.
_SLOW = (
    *("gp several", "sphere several", "spectral several", "gp inducing", "basis two"),
    *("spectral two", "basis forgetting", "gp exact"),
)


@pytest.fixture(scope="module", params=few_first(MODELS, *set(MODELS).difference(_SLOW)))
def model(request):
    import warnings

    unfitted, y = MODELS[request.param]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return unfitted.fit(X, y)


def many(model, rows, monkeypatch, n=4000):
    monkeypatch.setattr(inspection, "_N_DRAWS", n)
    monkeypatch.setattr("mercer.gp.averaging._HYPERPARAMETERS", 200)
    (found,) = drawn(model, [rows], np.random.default_rng(3))
    return found


def test_drawn_functions_average_to_the_prediction(model, monkeypatch):
    # Standard errors over 4000 draws (of chains' draws 40 at most differ): within five of them,
    # and 0.02 of the spread where few differ. False alarm about 1e-5 a value. A wrong sign, scale
    # or order of classes is out.
    found = many(model, X[:12], monkeypatch)
    want = predicted(model, X[:12])
    assert found.shape == (4000, *want.shape)
    error = found.std(axis=0) / np.sqrt(4000)
    assert np.all(np.abs(found.mean(axis=0) - want) <= 5 * error + 0.03 * want.std())


def test_drawn_functions_are_as_wide_as_the_law_of_the_function(model, monkeypatch):
    if not hasattr(model, "predictive") or not hasattr(model, "latent"):
        return  # the spread of the function is said by two regressors only
    found = many(model, X[:12], monkeypatch)[:, 0]
    spread = model.latent(X[:12])[1]
    if isinstance(model, GPRegressor):
        spread = np.sqrt(spread)
    assert np.allclose(found.std(axis=0), spread, rtol=0.1)


def test_contributions_add_up_and_are_in_their_band(model):
    found = explain_rows(model, X[:2], X[2:], INPUTS)
    assert np.allclose(found.contributions.sum(axis=1), found.prediction - found.baseline)
    assert np.all(found.lower <= found.contributions)
    assert np.all(found.contributions <= found.upper)
    assert np.all(found.errors == 0.0)  # eight sets: all are tried
    assert found.n_background == len(X) - 2
    if hasattr(model, "classes_"):
        position = [model.classes_.tolist().index(label) for label in found.output]
        proba = model.predict_proba(X[:2])
        assert np.allclose(found.prediction, proba[[0, 1], position])


def test_a_row_is_explained_alike_beside_others(model):
    found = explain_rows(model, X[:2], X[2:], INPUTS)
    alone = explain_rows(model, X[1:2], X[2:], INPUTS)
    for name in ("contributions", "lower", "upper"):
        assert np.allclose(getattr(alone, name)[0], getattr(found, name)[1], rtol=0, atol=1e-9)


def test_ends_of_bands_are_those_of_the_posterior():
    """Of other seeds an end of 1000 draws differs, of a normal law, by 2 % of the width (96: 6 %).

    Eight seeds tell twice the spread from once: a false alarm in 10 000.
    """
    model = GPRegressor(kernel="rbf", inference="map", random_state=0, progress=False)
    model.fit(X, NUMBERS)
    found = [explain_rows(model, X[:1], X[2:], INPUTS, entropy=seed) for seed in range(8)]
    lower, upper = (
        np.array([getattr(each, end)[0] for each in found]) for end in ("lower", "upper")
    )
    width = (upper - lower).mean(axis=0)
    assert np.all(np.array([lower.std(axis=0, ddof=1), upper.std(axis=0, ddof=1)]) < 0.045 * width)


def test_the_band_of_a_probability_is_within_what_it_can_be():
    model = GPClassifier(kernel="rbf", inference="map", random_state=0, progress=False)
    sure = np.repeat([[-4.0], [4.0]], 12, axis=0)
    model.fit(sure, np.repeat([0, 1], 12))
    found = explain_rows(model, sure[-1:], sure[:12], Inputs.of_sizes(["a"], [1]))
    assert found.upper[0, 0] <= 1.0


@pytest.mark.one_in(2)
@pytest.mark.parametrize("most", [8 * 24, 240])
def test_errors_count_the_choice_of_other_rows(monkeypatch, most):
    """All sets on 24 of 58 rows, or random orders from 30: as far apart as seeds are."""
    monkeypatch.setattr(inspection, "_MOST_POINTS", most)
    monkeypatch.setattr(inspection, "_FEWEST_BACKGROUND", 24 if most == 192 else 58)
    model = GPRegressor(kernel="rbf", inference="map", random_state=0, progress=False)
    model.fit(X, NUMBERS)
    found = [explain_rows(model, X[:2], X[2:], INPUTS, entropy=seed) for seed in range(40)]
    assert {each.n_background for each in found} == {24 if most == 192 else 30}
    spread = np.std([each.contributions for each in found], axis=0, ddof=1)
    error = np.mean([each.errors for each in found], axis=0)
    # 39 degrees of freedom: a standard deviation is off by more than 45 % once in 10 000.
    assert np.all(np.abs(spread / error - 1.0) < 0.5)


def test_every_model_has_curves_and_a_pair(model):
    classes = list(getattr(model, "classes_", ()))
    found = effects_of(model, X, INPUTS, order=[0, 1, 2], classes=classes)
    assert [curve.values.name for curve in found.curves] == ["a", "b", "c"]
    n_lines = 1 if len(classes) < 3 else 3
    assert found.curves[0].mean.shape == (n_lines, 15)
    assert found.pair is not None
    for curve in found.curves:
        assert np.all((curve.lower <= curve.mean) & (curve.mean <= curve.upper))
    again = effects_of(model, X, INPUTS, order=[0, 1, 2], classes=classes)
    assert np.array_equal(again.curves[1].lower, found.curves[1].lower)


def test_at_a_glance_fewer_draws_say_nearly_the_same(model):
    # Eight of 40 draws, weighted so as to agree with all: largest differences seen .016 and .018 in
    # a probability, .0023 of a target's spread; the first eight with equal weights have .029, .061
    # and .011. Of a fit by itself .006 to .052 in a probability of two classes, by the seed.
    before = predicted(model, X)
    seen = model._at_a_glance()
    most = 0.025 if hasattr(model, "classes_") else 0.005 * NUMBERS.std()
    gaps = [np.abs(predicted(seen, X) - before).max()]
    if isinstance(model, GPClassifier) and len(model.classes_) == 2:
        for seed in range(1, 8):
            other = clone(model).set_params(random_state=seed).fit(X, TWO)
            gaps.append(np.abs(predicted(other._at_a_glance(), X) - predicted(other, X)).max())
    assert np.mean(gaps) <= most
    assert np.array_equal(predicted(model, X), before)
    if isinstance(model, GPClassifier) and model.integration == "laplace":
        assert len(seen._answers.answers[0].theta) <= 8 < model.posterior_.n_total
    if isinstance(model, GPRegressor) and model.n_inducing is None:
        assert len(seen._functions[0].theta) <= 8 < model.posterior_.n_total


class Known:
    """A function that is known but for its slopes: a sum, and a product of the last two inputs."""

    feature_labels_ = tuple(f"x{j}" for j in range(12))

    def __init__(self, d, product=0.0):
        self.slopes = np.arange(1.0, d + 1.0)
        self.product = product

    def _f(self, X, slopes):
        return X @ slopes + self.product * X[:, -1] * X[:, len(slopes) - 2]

    def predict(self, X):
        return self._f(X, self.slopes)

    def predictive(self, X):
        return NormalMixture(self.predict(X)[:, np.newaxis], np.ones(1))

    def _standardized(self, X):
        return X

    def _at_a_glance(self):
        return self

    def _function_draws(self, parts, n_draws, rng):
        slopes = self.slopes * (1.0 + 0.1 * rng.standard_normal((n_draws, len(self.slopes))))
        return [np.stack([self._f(X, s) for s in slopes])[:, np.newaxis] for X in parts]


def shapley(function, x, background):
    """By the definition: all orders, all background rows."""
    d = len(x)
    found, orders = np.zeros(d), list(permutations(range(d)))
    for order in orders:
        points = background.copy()
        before = function(points).mean()
        for j in order:
            points[:, j] = x[j]
            after = function(points).mean()
            found[j] += (after - before) / len(orders)
            before = after
    return found


@pytest.mark.parametrize("d", [1, 2, 4, 12])
def test_of_a_linear_function_contributions_are_slopes_times_distances(d):
    rows = RNG.standard_normal((21, d))
    inputs = Inputs.of_sizes([f"x{j}" for j in range(d)], [1] * d)
    model = Known(d)
    found = explain_rows(model, rows[:1], rows[1:], inputs)
    want = model.slopes * (rows[0] - rows[1:].mean(axis=0))
    assert np.allclose(found.contributions[0], want)
    # The posterior of a slope has a standard deviation of a tenth of it: the band of 90 % is 0.165
    # of the distance to each side, from 1000 draws and for d = 12 from some background rows only.
    if d <= 4:
        half = 0.5 * (found.upper - found.lower)[0]
        assert np.allclose(half, 0.1645 * np.abs(want), rtol=0.15)
    if d == 12:  # random ways: from all rows they are exact for a linear function
        assert np.allclose(found.errors, 0.0, atol=1e-12)
        assert found.contributions.sum() == pytest.approx(found.prediction[0] - found.baseline[0])


@pytest.mark.parametrize("d", [7, 12])
def test_bands_of_an_input_that_most_rows_share_are_those_of_the_posterior(d):
    """Of 1000 draws the width of a band is off by 15 % less than once in 10 000."""
    rows = np.random.default_rng(4).standard_normal((61, d))
    rows[:, -2:] = 0.0
    rows[5:60:12, -2] = rows[9:60:15, -1] = 1.0  # five and four of 60 differ from the first
    model, inputs = Known(d), Inputs.of_sizes([f"x{j}" for j in range(d)], [1] * d)
    found = explain_rows(model, rows[:1], rows[1:], inputs)
    half = 0.5 * (found.upper - found.lower)[0, -2:]
    want = 0.1645 * np.abs(found.contributions[0, -2:])
    assert np.all(want > 0.0)
    assert np.allclose(half, want, rtol=0.15)


def test_random_ways_agree_with_enumeration(monkeypatch):
    # Within four standard errors, false alarm 6e-5 each; steps given to the wrong input are out.
    model, rows = Known(4, product=3.0), RNG.standard_normal((17, 4))
    inputs = Inputs.of_sizes(list("abcd"), [1] * 4)
    exact = explain_rows(model, rows[:1], rows[1:], inputs)
    want = shapley(model.predict, rows[0], rows[1:])
    assert np.allclose(exact.contributions[0], want)
    monkeypatch.setattr(inspection, "_MOST_POINTS", 200)
    found = explain_rows(model, rows[:1], rows[1:], inputs)
    assert np.any(found.errors > 0.0)
    assert np.all(np.abs(found.contributions[0] - want) <= 4 * found.errors[0] + 1e-9)
    assert found.contributions.sum() == pytest.approx(found.prediction[0] - found.baseline[0])


class Cubic(Known):
    """A sum, and a product of the last three inputs: random orders and their reverses differ."""

    def _f(self, X, slopes):
        return X @ slopes + 3.0 * X[:, -1] * X[:, -2] * X[:, -3]


def test_errors_from_all_other_rows_are_those_of_the_orders_alone(monkeypatch):
    """Two pairs of ways from each of 15 rows: as far apart as seeds are, and no more than that."""
    monkeypatch.setattr(inspection, "_MOST_POINTS", 2 * 15 * 14)
    rows, inputs = np.random.default_rng(3).standard_normal((16, 6)), [1] * 6
    found = [
        explain_rows(Cubic(6), rows[:1], rows[1:], Inputs.of_sizes("abcdef", inputs), entropy=seed)
        for seed in range(40)
    ]
    assert {each.n_background for each in found} == {15}
    spread = np.std([each.contributions[0] for each in found], axis=0, ddof=1)
    error = np.sqrt(np.mean([each.errors[0] ** 2 for each in found], axis=0))
    assert np.allclose(spread[:3], 0.0, atol=1e-12)
    assert np.allclose(error[:3], 0.0, atol=1e-12)
    # 39 degrees of freedom: a standard deviation is off by more than 45 % once in 10 000.
    assert np.all(np.abs(spread[3:] / error[3:] - 1.0) < 0.5)


def test_against_the_shap_package():
    shap = pytest.importorskip("shap", reason="the shap package is not installed")
    rows = RNG.standard_normal((21, 6))
    model = Known(6)
    inputs = Inputs.of_sizes(list("abcdef"), [1] * 6)
    found = explain_rows(model, rows[:1], rows[1:], inputs)
    explainer = shap.LinearExplainer((model.slopes, 0.0), rows[1:])
    assert np.allclose(found.contributions, explainer.shap_values(rows[:1]))


def test_columns_of_one_input_go_together_and_levels_are_named():
    levels = np.eye(3)[RNG.integers(3, size=40)]
    rows = np.column_stack([RNG.standard_normal(40), levels])
    model = Known(4)
    model.feature_labels_ = ("x", "c=red", "c=green", "c=blue")
    inputs = Inputs.of_sizes(["x", "c"], [1, 3])
    found = explain_rows(model, rows[:1], rows[1:25], inputs)
    want = (levels[0] - levels[1:25].mean(axis=0)) @ model.slopes[1:]
    assert found.contributions[0, 1] == pytest.approx(want)
    effects = effects_of(model, rows, inputs, order=[1, 0])
    assert set(effects.curves[0].values.labels) == {"red", "green", "blue"}
    assert effects.curves[1].values.labels == ()


def test_of_forty_classes_means_are_over_more_rows_than_draws(monkeypatch):
    """Draws at many rows together cost the cube of their number, means only the number."""
    sizes = []

    def spied(model, parts, *rest):
        sizes.extend(len(part) for part in parts)
        return drawn(model, parts, *rest)

    monkeypatch.setattr(inspection, "drawn", spied)
    rows = RNG.standard_normal((50, 4))
    inputs = Inputs.of_sizes(list("abcd"), [1] * 4)
    found = effects_of(Known(4), rows, inputs, order=[0, 1, 2, 3], classes=range(40))
    assert found.n_rows == 24
    assert sizes == [15 * 6] * 4


def test_of_two_values_there_is_no_line():
    rows = np.column_stack([RNG.integers(2, size=30), RNG.integers(2, size=30) * 3.0])
    model = Known(2)
    model.feature_labels_ = ("colour=red", "n")
    curves = effects_of(model, rows, Inputs.of_sizes(["colour", "n"], [1, 1]), order=[0, 1]).curves
    assert curves[0].values.labels == ("not red", "red")
    assert curves[1].values.labels == ("0", "3")
    rows[:, 1] = 1_000_001.0 + rows[:, 1] / 3.0
    curves = effects_of(model, rows, Inputs.of_sizes(["colour", "n"], [1, 1]), order=[0, 1]).curves
    assert curves[1].values.labels == ("1000001", "1000002")


def test_the_pair_that_acts_together_is_found_and_a_sum_has_none():
    rows = RNG.standard_normal((50, 4))
    inputs = Inputs.of_sizes(list("abcd"), [1] * 4)
    pair = effects_of(Known(4, product=3.0), rows, inputs, order=[0, 1, 2, 3]).pair
    assert {pair.first.name, pair.second.name} == {"c", "d"}
    assert pair.strength > 0.1 * pair.range
    assert effects_of(Known(4), rows, inputs, order=[0, 1, 2, 3]).pair.strength < 1e-9
    # Parts of one input, such as month and hour of a date, are no pair: they come together.
    dates = Inputs.of_sizes(["a", "date"], [2, 2])
    pair = effects_of(Known(4, product=3.0), rows, dates, order=[1, 0]).pair
    assert {pair.first.name, pair.second.name} != {"x2", "x3"}
    alone = Inputs.of_sizes(["date"], [4])
    assert effects_of(Known(4, product=3.0), rows, alone, order=[0]).pair is None


def test_rows_that_a_pair_is_averaged_over_are_of_the_whole_table():
    class Half(Known):
        """Two inputs act together in the second half of the table."""

        def predict(self, X):
            return X[:, 0] * X[:, 1] * (X[:, 2] > 0.0)

    rows = np.column_stack([RNG.standard_normal((1000, 2)), np.repeat([-1.0, 1.0], 500)])
    inputs = Inputs.of_sizes(list("abc"), [1] * 3)
    pair = effects_of(Half(3), rows, inputs, order=[0, 1]).pair
    alone = effects_of(Half(3), rows[500:], inputs, order=[0, 1]).pair
    # By the first rows of the table nothing; an average over few rows has half of it, more or less.
    assert 0.2 * alone.range < pair.range < 0.8 * alone.range
    assert pair.n_rows >= 10


def test_a_curve_of_a_line_is_the_line_and_its_band_the_slopes():
    rows = RNG.standard_normal((50, 2))
    inputs = Inputs.of_sizes(["a", "b"], [1, 1])
    (curve,) = effects_of(Known(2), rows, inputs, order=[1]).curves
    assert np.allclose(np.diff(curve.mean[0]) / np.diff(curve.values.numbers), 2.0)
    assert np.all(curve.rows_lower <= curve.mean)
    # Far out the slope's standard deviation of 0.2 rules: the band is about 0.33 x to each side.
    end = curve.values.numbers[-1]
    assert (curve.upper - curve.lower)[0, -1] == pytest.approx(2 * 0.33 * end, rel=0.4)


def test_a_band_holds_the_mean_over_all_rows():
    # At 0 only the other input's rows say where the curve is. By entropy, 200 times: a band of 90 %
    # holds it 156 times or less with probability 1e-7, one of the posterior alone about 20 times.
    rows = RNG.standard_normal((1000, 2))
    inputs = Inputs.of_sizes(["a", "b"], [1, 1])
    held = []
    for entropy in range(200):
        (curve,) = effects_of(Known(2), rows, inputs, order=[1], entropy=entropy).curves
        whole = rows[:, 0].mean() + 2.0 * curve.values.numbers[7]
        held.append(curve.lower[0, 7] <= whole <= curve.upper[0, 7])
    assert sum(held) > 156


def test_constant_inputs_have_no_curve():
    found = effects_of(Known(2), np.ones((9, 2)), Inputs.of_sizes("ab", [1, 1]), order=[0, 1])
    assert found.curves == ()


def test_a_label_that_is_none_is_refused(model):
    with pytest.raises(UsageError, match="label"):
        explain_rows(model, X[:1], X[1:], INPUTS, label="no such class")


def test_estimators_explain_rows_of_frames_and_arrays(model):
    import pandas as pd

    found = model.explain(X[:1], background=X[1:], random_state=3)
    assert found.names == ("x0", "x1", "x2")
    alone = model.explain(X[:1])
    assert alone.n_background == 1  # the centre of the training rows
    assert np.allclose(alone.contributions.sum(), alone.prediction - alone.baseline)
    own = model.explain(X[:10])
    assert own.contributions.shape == (10, 3)
    assert own.n_background == 10
    table = found.table()
    assert set(table.column("input")) == {"x0", "x1", "x2"}
    assert table.column("contribution")[0] == max(found.contributions[0], key=abs)
    with pytest.raises(ValueError, match="features"):
        model.explain(X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        model.explain(pd.DataFrame(np.full((1, 3), np.nan)).to_numpy())


def test_a_precomputed_kernel_has_no_inputs():
    fitted = KernelGibbsClassifier(kernel="precomputed", lengthscale="median", **TINY)
    with pytest.raises(UsageError, match="no inputs"):
        fitted.fit(X @ X.T, TWO).explain(X @ X.T)


def test_an_unfitted_model_is_refused():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        GPClassifier().explain(X)


def test_functions_that_are_certain_but_for_rounding_are_drawn():
    from mercer.gp.averaging import sample_functions

    class Certain:
        theta, weights = np.zeros((2, 1)), None

        def joint(self, i, rows):
            # A covariance of rank one far below the prior that it is the difference of.
            u = np.ones((len(rows), 1))
            shake = 1e-13 * np.random.default_rng(1).standard_normal((len(rows), len(rows)))
            return np.full(len(rows), 7.0), 1e-12 * u @ u.T + shake + shake.T

    (drawn_,) = sample_functions([Certain()], [1.0], [X], 20, np.random.default_rng(0))
    assert np.all(np.abs(drawn_ - 7.0) < 1e-4)


def test_of_a_date_the_part_that_moves_the_mean_most_is_drawn():
    """Five parts of each of several dates would crowd out all other inputs."""
    rows = RNG.standard_normal((50, 6))
    inputs = Inputs.of_sizes(["from", "to", "a"], [3, 2, 1])
    model = Known(6)
    found = effects_of(model, rows, inputs, order=[0, 1, 2])
    assert [curve.values.name for curve in found.curves] == ["x2", "x4", "a"]
    assert found.n_left_out == 3
    assert len(effects_of(model, rows, inputs, order=[0], all_parts=True).curves) == 3


def test_an_explanation_shows_its_first_row():
    rows = RNG.standard_normal((12, 2))
    found = explain_rows(Known(2), rows[:2], rows[2:], Inputs.of_sizes(["a<b", "c"], [1, 1]))
    assert repr(found).startswith(f"prediction {found.prediction[0]:.4g}, ")
    assert "the first of 2 rows, table(row) has the others\n\ninput" in repr(found)
    assert "a&lt;b" in found._repr_html_()
    assert "without inputs</p>" in replace(found, prediction=found.prediction[:1])._repr_html_()
