"""scikit-learn's own checks, on every estimator with tiny settings; none is expected to fail.

In the first tier estimators of one setting each take turns, the second has all.
"""

from __future__ import annotations

import inspect
import pickle
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from mercer.baselines.a_la_carte import AlaCarteRegressor
from mercer.baselines.random_features import (
    MKLClassifier,
    MKLRegressor,
    RKSClassifier,
    RKSRegressor,
)
from mercer.baselines.rfo import RFOClassifier, RFORegressor
from mercer.errors import ConvergenceWarning
from mercer.gp.estimator import GPClassifier
from mercer.posterior import diagnostics as verdict
from mercer.spectral.classifier import BaNKClassifier
from mercer.spectral.estimator import BaNKRegressor
from mercer.sphere import selection
from mercer.sphere.estimator import KernelGibbsClassifier
from mercer.sphere.tempering import Tempering
from support import basis_fits, class_fits, process_fits, stacks
from support.spectral_fits import PAPER

TINY = {"n_draws": 20, "n_warmup": 10, "n_chains": 1, "random_state": 0, "progress": False}

FEW = {**TINY, "n_draws": 4, "n_warmup": 2}

TREES = DecisionTreeRegressor(random_state=0), DecisionTreeClassifier(random_state=0)

# One setting of each estimator, and of what mercer is compared with.
ESTIMATORS = [
    GPClassifier(kernel="rbf", **FEW),
    KernelGibbsClassifier(lengthscale="median", nugget=0.0, **TINY),
    process_fits.tiny(n_draws=4, n_warmup=2),
    BaNKRegressor(n_frequencies=6, **FEW),
    BaNKClassifier(n_frequencies=6, **FEW),
    basis_fits.tiny(n_particles=12, max_candidates=16),
    class_fits.tiny(n_particles=12),
    stacks.of_numbers(models=(basis_fits.tiny(n_particles=8, max_candidates=16), TREES[0])),
    stacks.of_classes(models=(class_fits.tiny(n_particles=8), TREES[1])),
    RKSRegressor(n_features=48, random_state=0),
]
OTHER_SETTINGS = [
    RKSClassifier(n_features=24, random_state=0, penalties=(1e-2,), length_factors=(0.5, 1.0)),
    MKLRegressor(n_features=48, random_state=0),
    MKLClassifier(n_features=24, random_state=0, penalties=(1e-2,), length_factors=(0.5, 1.0)),
    RFOClassifier(n_features=16, components=(1,), penalties=(1e-2,), random_state=0),
    RFORegressor(n_features=16, components=(1,), penalties=(1e-2,), random_state=0),
    AlaCarteRegressor(components=(2,), frequencies_each=(6,), random_state=0),
    GPClassifier(kernel="rbf", **TINY),
    process_fits.tiny(),
    BaNKRegressor(n_frequencies=6, **TINY),
    BaNKRegressor(n_frequencies=6, noise="student_t", **TINY),
    BaNKRegressor(n_frequencies=6, noise="contaminated", **TINY),
    BaNKRegressor(n_frequencies=6, noise="heteroscedastic", **TINY),
    BaNKClassifier(n_frequencies=6, **TINY),
    BaNKClassifier(n_frequencies=6, ordered=True, **TINY),
    basis_fits.tiny(),
    class_fits.tiny(),
    MKLClassifier(n_features=48, random_state=0, penalties=(1e-3, 1e-1)),
    RFORegressor(n_features=24, components=(1, 2), penalties=(1e-2,), random_state=0),
    GPClassifier(kernel="rbf", inference="nuts", **TINY),
    GPClassifier(kernel="rbf", inference="map", **TINY),
    GPClassifier(
        kernel="rbf",
        prior="paper",
        predictive_mean="mode",
        n_leapfrog=3,
        step_size=0.1,
        standardize="std",
        **TINY,
    ),
    # decision="bayes_point" is left out: its values are not in the order of the probabilities.
    KernelGibbsClassifier(kernel="linear", **TINY),
    KernelGibbsClassifier(lengthscale="median", noise_rate=0.1, rank=8, **TINY),
    process_fits.tiny(inference="nuts", kernel="matern32"),
    process_fits.tiny(inference="map", noise_std=0.1),
    process_fits.tiny(**process_fits.PAPER),
    BaNKRegressor(n_frequencies=6, **PAPER, **TINY),
    BaNKClassifier(n_frequencies=6, **PAPER, **TINY),
    # The paper's one length scale, for the ten inputs of a check: wider.
    basis_fits.tiny(**{**basis_fits.PAPER, "lengthscale": 3.0}),
    basis_fits.tiny(max_candidates=6, forgetting=(1.0, 0.9), kernel="matern32"),
    class_fits.tiny(**class_fits.PAPER),
    class_fits.tiny(n_buffered=16, max_candidates=6, kernel="matern32", lengthscale="median"),
]


@pytest.fixture(autouse=True)
def short_ladders(monkeypatch: pytest.MonkeyPatch) -> None:
    """How exact the evidence is does not matter here."""
    monkeypatch.setattr(selection, "_RUNS", (Tempering(10, 12),))


_TRAINING = {"check_classifiers_train", "check_regressors_train"}
_OWN = {"check_classifier_data_not_an_array", "check_regressor_data_not_an_array"}  # D14 here

# They ask that `predict` be the most probable class of `predict_proba`, and that its order be that
# of `decision_function`. Of the sphere one is the vote on the true class, the other of the recorded
# label: at one rate for all draws, an odd number of them so that no vote is even, and without a
# nugget, under which each draw has a probability and not a vote, they agree.
_AT_ONE_RATE = {"check_classifiers_train", "check_decision_proba_consistency"}


def where_votes_agree(estimator, check):
    """The estimator, or with settings under which votes and probabilities must agree."""
    if isinstance(estimator, KernelGibbsClassifier) and check.func.__name__ in _AT_ONE_RATE:
        return clone(estimator).set_params(noise_rate=0.1, nugget=0.0, n_draws=21)
    return estimator


def checks_of(estimators: list) -> Iterator:
    """Each estimator with each check; what a fit learns is tried on the hardest data, a file's.

    These are read-only and of the shorter type; of other types and from memory in the second tier.
    The first has each check of one classifier and of one regressor: they take turns.
    """
    cases = defaultdict(list)
    for each in estimators:
        for _, check in estimator_checks_generator(each):
            own = check.keywords
            name = "-".join([check.func.__name__, *map(str, own.values())])
            learns = own.get("readonly_memmap", False) or check.func.__name__ in _TRAINING
            is_slow = (learns and "X_dtype" not in own) or check.func.__name__ in _OWN
            one = where_votes_agree(each, check)
            title = f"{type(each).__name__}-{name}"
            cases[is_slow, is_classifier(each), name].append((one, check, title))
    for turn, ((is_slow, *_), same) in enumerate(cases.items()):
        for k, (one, check, title) in enumerate(same):
            is_its_turn = k == turn % len(same) and not is_slow
            yield pytest.param(one, check, marks=[] if is_its_turn else pytest.mark.slow, id=title)


# Its data hold constant columns, and mercer warns of them.
@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
@pytest.mark.parametrize(("estimator", "check"), list(checks_of(ESTIMATORS)))
def test_scikit_learn_checks(estimator, check) -> None:
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
@parametrize_with_checks(OTHER_SETTINGS)
def test_scikit_learn_checks_of_other_settings(estimator, check) -> None:
    check(where_votes_agree(estimator, check))


SEVEN = [
    GPClassifier(kernel="rbf", inference="hmc", **TINY),
    process_fits.tiny(inference="hmc"),
    KernelGibbsClassifier(lengthscale="median", nugget=0.0, **TINY),
    BaNKRegressor(n_frequencies=6, **TINY),
    BaNKClassifier(n_frequencies=6, **TINY),
    basis_fits.tiny(),
    class_fits.tiny(),
]


def fit_and_catch(estimator) -> list[warnings.WarningMessage]:
    x = np.random.default_rng(0).normal(size=(30, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(x, (x[:, 0] > 0.0).astype(int))
    return [each for each in caught if issubclass(each.category, ConvergenceWarning)]


@pytest.mark.parametrize("estimator", SEVEN, ids=lambda each: type(each).__name__)
def test_a_fit_that_has_not_converged_warns_once(estimator, monkeypatch) -> None:
    monkeypatch.setattr(verdict, "WEIGHT_LIMIT", 2.0)  # particles: never enough
    (warned,) = fit_and_catch(estimator)
    assert str(warned.message) == estimator.diagnostics_.worst_warning
    assert str(warned.message).startswith(estimator.diagnostics_.warnings[0])
    assert "Try more" in str(warned.message)
    assert warned.filename == __file__  # points at who called fit


@pytest.mark.parametrize("estimator", SEVEN, ids=lambda each: type(each).__name__)
def test_a_fit_with_nothing_to_say_is_silent(estimator, monkeypatch) -> None:
    monkeypatch.setattr("mercer.posterior.diagnostics.warning_texts", lambda *_: ())
    monkeypatch.setattr("mercer.basis.prediction._FEWEST_ANCESTORS", 0.0)
    assert fit_and_catch(estimator) == []


@pytest.mark.parametrize(
    "estimator",
    [
        *SEVEN,
        GPClassifier(kernel="rbf", **TINY),
        process_fits.tiny(),
        GPClassifier(kernel="rbf", integration="exact", **TINY),
        GPClassifier(kernel="rbf", inference="map", **TINY),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_fit_without_time_is_a_model_that_says_so(estimator) -> None:
    """A nanosecond: whatever is cut short, predictions are finite and a note names the cause."""
    x = np.random.default_rng(0).normal(size=(60, 2))
    x[:, 1] = np.exp(2.0 * x[:, 1])  # skewed: there is a warp to choose
    cut = clone(estimator).set_params(max_seconds=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        cut.fit(x, (x[:, 0] > 0.0).astype(int))
    assert any("max_seconds" in note for note in cut.notes_), cut.notes_
    predict = cut.predict_proba if is_classifier(cut) else cut.predict
    assert np.isfinite(predict(x)).all()
    assert len(cut.posterior_.summary().rows) > 0


def test_the_warning_is_public_can_be_filtered_and_pickles() -> None:
    import mercer

    assert mercer.ConvergenceWarning is ConvergenceWarning
    assert issubclass(ConvergenceWarning, UserWarning)
    copy = pickle.loads(pickle.dumps(ConvergenceWarning("R-hat of a is 2")))
    assert (type(copy), str(copy)) == (ConvergenceWarning, "R-hat of a is 2")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        estimator = GPClassifier(kernel="rbf", inference="hmc", **TINY)
        with pytest.raises(ConvergenceWarning, match="too short to judge"):
            fit_in_the_open(estimator)
    assert len(estimator.predict(np.zeros((2, 2)))) == 2  # the fit itself is whole


def fit_in_the_open(estimator) -> None:
    x = np.random.default_rng(0).normal(size=(30, 2))
    estimator.fit(x, (x[:, 0] > 0.0).astype(int))


@pytest.mark.parametrize("kind", {type(each): None for each in (*ESTIMATORS, *OTHER_SETTINGS)})
def test_each_argument_is_described_in_the_order_of_the_signature(kind: type) -> None:
    found = re.search(r"^Parameters\n-+\n(.*?)\n\n", inspect.getdoc(kind), re.M | re.S)
    described = re.findall(r"^(\w+)(?: :|$)", found[1], re.M)
    assert described == list(inspect.signature(kind).parameters)
    for what in ("UsageError", "n_features_in_, feature_names_in_"):
        assert re.findall(rf"^{what}$", inspect.getdoc(kind), re.M) == [what]
