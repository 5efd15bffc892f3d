"""AlaCarteRegressor and RFORegressor as a user meets them."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer.baselines import AlaCarteRegressor, RFORegressor
from mercer.errors import UsageError

RNG = np.random.default_rng(51)
X = RNG.standard_normal((150, 3)) * [1.0, 100.0, 0.01] + [0.0, 50.0, 3.0]
F = 1000.0 + 20.0 * np.sin(2.0 * X[:, 0])
Y = F + RNG.standard_normal(150)

each = pytest.mark.parametrize("cls", [AlaCarteRegressor, RFORegressor])
SMALL = {
    AlaCarteRegressor: {"components": (1, 2), "frequencies_each": (8,), "max_iter": 40},
    RFORegressor: {"n_features": 32, "components": (1, 2), "penalties": (1e-3, 1e-1)},
}


def small(cls, **settings):
    return cls(**{**SMALL[cls], "random_state": 0, **settings})


@each
def test_learns_the_function(cls) -> None:
    model = small(cls).fit(X[:100], Y[:100])
    assert np.mean((model.predict(X[100:]) - F[100:]) ** 2) < 0.1 * Y.var()
    assert 0.0 < model.cv_errors_.min() < 0.3


@pytest.mark.one_in(2)
@each
def test_same_seed_same_bits(cls) -> None:
    first, second = (small(cls, selection_rows=60).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(first.predict(X), second.predict(X))


@pytest.mark.one_in(2)
@each
def test_units_do_not_matter(cls) -> None:
    plain = small(cls).fit(X, Y).predict(X)
    scaled = small(cls).fit(X * 2.0**40, Y * 2.0**-900).predict(X * 2.0**40)
    np.testing.assert_allclose(scaled, plain * 2.0**-900, rtol=1e-6)


@pytest.mark.one_in(2)
@each
def test_few_rows_and_a_constant_target(cls) -> None:
    for n in (2, 3, 10):
        assert np.isfinite(small(cls).fit(X[:n], Y[:n]).predict(X)).all()
    np.testing.assert_allclose(small(cls).fit(X, np.full(150, 0.1)).predict(X), 0.1, rtol=1e-12)


@each
def test_a_limit_of_time_says_so(cls) -> None:
    model = small(cls, max_seconds=1e-6).fit(X, Y)
    assert "max_seconds" in model.notes_[0]
    assert np.isfinite(model.predict(X)).all()


def test_a_la_carte_finds_noise_and_inputs() -> None:
    model = small(AlaCarteRegressor, components=(1,), max_iter=100).fit(X, Y)
    assert 0.3 < model.noise_variance_ * Y.var() < 2.0
    sizes = np.abs(model.frequencies_).mean(axis=0)
    assert sizes[0] > 2.0 * max(sizes[1:])


def test_coefficients_are_from_all_rows_and_the_likelihood_from_some() -> None:
    settings = {"components": (1,), "likelihood_rows": 60, "selection_rows": 60}
    model = small(AlaCarteRegressor, **settings).fit(X, Y)
    phase = model.standardizer_.transform(X) @ model.frequencies_.T
    features = np.stack([np.cos(phase), np.sin(phase)], axis=2).reshape(150, -1)
    features *= model.weights_[0] / np.sqrt(len(model.frequencies_))
    u = (Y - Y.mean()) / Y.std()
    # The intercept has a flat prior: rows and targets are centred.
    centred = features - features.mean(axis=0)
    A = centred.T @ centred + model.noise_variance_ * np.eye(features.shape[1])
    b = np.linalg.solve(A, centred.T @ (u - u.mean()))
    expected = Y.mean() + Y.std() * (centred @ b)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-8)


@pytest.mark.parametrize(
    ("cls", "settings", "words"),
    [
        (AlaCarteRegressor, {"components": ()}, "components"),
        (AlaCarteRegressor, {"frequencies_each": (0,)}, "each of frequencies_each"),
        (AlaCarteRegressor, {"likelihood_rows": 1}, "likelihood_rows"),
        (AlaCarteRegressor, {"max_seconds": 0.0}, "max_seconds"),
        (AlaCarteRegressor, {"standardize": "sdt"}, "did you mean 'std'"),
        (RFORegressor, {"penalties": (0.0,)}, "each of penalties"),
        (RFORegressor, {"random_state": -1}, "random_state"),
    ],
)
def test_bad_arguments_are_named(cls, settings: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        small(cls, **settings).fit(X, Y)


def test_public_names() -> None:
    assert mercer.baselines.AlaCarteRegressor is AlaCarteRegressor
    assert len(mercer.baselines.__all__) == 7
    assert all(hasattr(mercer.baselines, name) for name in mercer.baselines.__all__)
