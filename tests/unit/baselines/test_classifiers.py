"""RKSClassifier, MKLClassifier and RFOClassifier as a user meets them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from mercer.baselines import MKLClassifier, RFOClassifier, RKSClassifier
from mercer.errors import UsageError

RNG = np.random.default_rng(41)
X = RNG.standard_normal((90, 2)) * [1.0, 100.0]
F = np.sin(2.0 * X[:, 0])
Y = np.where(F + 0.3 * RNG.standard_normal(90) > 0, "yes", "no")
THREE = np.digitize(X[:, 0], [-0.5, 0.5])

FIXED = (RKSClassifier, MKLClassifier)
FACTORS = (0.5, 1.0)
fixed = pytest.mark.parametrize("cls", FIXED)
each = pytest.mark.parametrize("cls", [*FIXED, RFOClassifier])


def small(cls, **settings):
    searched = {"components": (1, 2), "steps": (5, 20)}
    own = searched if cls is RFOClassifier else {"length_factors": FACTORS}
    tiny = {"n_features": 24, "penalties": (1e-2, 1e-1), "n_folds": 2, "random_state": 0}
    return cls(**{**tiny, **own, **settings})


@cache
def fitted(cls, n_classes: int = 2):
    return small(cls).fit(X, Y if n_classes == 2 else THREE)


@each
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_and_labels(cls, n_classes: int) -> None:
    model, labels = fitted(cls, n_classes), Y if n_classes == 2 else THREE
    proba = model.predict_proba(X)
    assert proba.shape == (90, n_classes)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])
    assert model.score(X, labels) > 0.8


@fixed
def test_is_logistic_regression_at_what_was_chosen(cls) -> None:
    model = fitted(cls)
    i, k = np.unravel_index(np.argmin(model.cv_errors_), model.cv_errors_.shape)
    assert model.length_factor_ == FACTORS[i]
    assert model.penalty_ == (1e-2, 1e-1)[k]
    phase = model.standardizer_.transform(X) @ model.frequencies_.T
    pairs = np.stack([np.cos(phase), np.sin(phase)], axis=2)
    Phi = pairs.reshape(len(X), -1) / np.sqrt(len(model.frequencies_))
    plain = LogisticRegression(C=1.0 / model.penalty_, tol=1e-8, max_iter=5000).fit(Phi, Y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(Phi), atol=2e-3)


@each
def test_same_seed_same_bits(cls) -> None:
    first, second = (small(cls, selection_rows=40).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    other = small(cls, selection_rows=40, random_state=1).fit(X, Y)
    assert not np.array_equal(first.predict_proba(X), other.predict_proba(X))


@each
def test_a_class_of_one_row(cls) -> None:
    labels = np.array(["a", *(["b"] * 15), *(["c"] * 14)])
    assert np.isfinite(small(cls).fit(X[:30], labels).predict_proba(X)).all()


@each
def test_one_class_is_refused(cls) -> None:
    with pytest.raises(ValueError, match="one class only"):
        small(cls).fit(X, np.ones(90))


def test_a_bank_of_one_kernel_is_the_single_kernel() -> None:
    bank = small(MKLClassifier, kernels=("rbf",), scales=(1.0,)).fit(X, Y)
    single = fitted(RKSClassifier)
    np.testing.assert_array_equal(bank.predict_proba(X), single.predict_proba(X))


def test_optimised_frequencies_find_the_input_that_matters() -> None:
    model = small(RFOClassifier, components=(1,), penalties=(1e-1,)).fit(X, Y)
    sizes = np.abs(model.frequencies_).mean(axis=0)
    assert sizes[0] > 1.5 * sizes[1]


def test_optimisation_under_a_limit_of_time_says_so() -> None:
    model = small(RFOClassifier, max_seconds=1e-6).fit(X, Y)
    assert "max_seconds" in model.notes_[0]
    assert fitted(RFOClassifier).notes_ == ()


@pytest.mark.parametrize(
    ("cls", "settings", "words"),
    [
        (RKSClassifier, {"n_features": 7}, "even"),
        (RKSClassifier, {"penalties": ()}, "penalties"),
        (RKSClassifier, {"length_factors": "1"}, "length_factors"),
        (MKLClassifier, {"n_features": 22}, "at least 24"),
        (MKLClassifier, {"kernels": ("rbf", "laplase")}, "did you mean 'laplace'"),
        (RFOClassifier, {"components": ()}, "components"),
        (RFOClassifier, {"components": (0,)}, "each of components"),
        (RFOClassifier, {"components": (30,)}, "at least 60"),
        (RFOClassifier, {"spread": "ful"}, "did you mean 'full'"),
        (RFOClassifier, {"steps": (0,)}, "each of steps"),
        (RFOClassifier, {"max_seconds": -1.0}, "max_seconds"),
    ],
)
def test_bad_arguments_are_named(cls, settings: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        small(cls, **settings).fit(X, Y)
