"""RKSRegressor and MKLRegressor as a user meets them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import mercer
from mercer.baselines import MKLRegressor, RKSRegressor
from mercer.baselines import base as regressor
from mercer.baselines import paths as ridge_path
from mercer.errors import MercerWarning, NumericalError, UsageError

RNG = np.random.default_rng(31)
X = RNG.standard_normal((150, 3)) * [1.0, 100.0, 0.01] + [0.0, 50.0, 3.0]
Y = 1000.0 + 20.0 * np.sin(2.0 * X[:, 0]) + RNG.standard_normal(150)

each = pytest.mark.parametrize("cls", [RKSRegressor, MKLRegressor])


def small(cls, **settings):
    return cls(**{"n_features": 60, "random_state": 0, **settings})


def features(model, X: np.ndarray) -> np.ndarray:
    """Cosine and sine of each frequency in turn."""
    phase = model.standardizer_.transform(X) @ model.frequencies_.T
    pairs = np.stack([np.cos(phase), np.sin(phase)], axis=2)
    return pairs.reshape(len(X), -1) / np.sqrt(len(model.frequencies_))


@each
def test_is_ridge_regression_at_what_was_chosen(cls) -> None:
    model = small(cls).fit(X, Y)
    i, k = np.unravel_index(np.argmin(model.cv_errors_), model.cv_errors_.shape)
    assert model.length_factor_ == regressor.FACTORS[i]
    assert model.penalty_ == regressor.PENALTIES[k]
    F = features(model, X)
    u = (Y - Y.mean()) / Y.std()
    plain = Ridge(alpha=model.penalty_, solver="svd").fit(F, u)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.predict(X), Y.mean() + Y.std() * plain.predict(F), rtol=1e-9)
    assert np.mean((model.predict(X) - Y) ** 2) < 0.2 * Y.var()


@each
def test_same_seed_same_bits(cls) -> None:
    first, second = (small(cls, selection_rows=60).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    other = small(cls, selection_rows=60, random_state=1).fit(X, Y)
    assert not np.array_equal(first.predict(X), other.predict(X))


@each
def test_blocks_change_rounding_only(cls, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = small(cls, penalties=(0.1,)).fit(X, Y)
    monkeypatch.setattr(ridge_path, "_BLOCK_ENTRIES", 61 * 13)
    parts = small(cls, penalties=(0.1,)).fit(X, Y)
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-12)


@each
def test_units_do_not_matter(cls) -> None:
    plain = small(cls).fit(X, Y).predict(X)
    scaled = (
        small(cls).fit(X * [1e150, 1e-200, 1.0], Y * 2.0**-900).predict(X * [1e150, 1e-200, 1.0])
    )
    np.testing.assert_allclose(scaled, plain * 2.0**-900, rtol=1e-6)
    huge = small(cls).fit(X, Y * 1e304).predict(1e3 * X)
    assert np.isfinite(huge).all()


@each
def test_a_constant_target_is_predicted_exactly(cls) -> None:
    model = small(cls).fit(X, np.full(150, 0.1))
    np.testing.assert_array_equal(model.predict(X + 1.0), 0.1)


@each
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_fewer_rows_than_features_or_folds(cls) -> None:
    for n in (2, 3, 20):
        assert np.isfinite(small(cls).fit(X[:n], Y[:n]).predict(X)).all()
    with pytest.raises(ValueError, match="1 sample"):
        small(cls).fit(X[:1], Y[:1])


@each
def test_constant_columns(cls) -> None:
    padded = np.column_stack([X, np.full(150, 7.0)])
    with pytest.warns(MercerWarning, match="x3"):
        model = small(cls).fit(padded, Y)
    np.testing.assert_allclose(
        model.predict(padded + np.array([0.0, 0.0, 0.0, 5.0])), model.predict(padded), rtol=1e-12
    )
    with pytest.warns(MercerWarning, match="all columns"):
        flat = small(cls).fit(np.ones((30, 2)), Y[:30])
    np.testing.assert_allclose(flat.predict(np.ones((1, 2))), Y[:30].mean(), rtol=1e-6)


@each
def test_rows_that_are_seldom_are_learned_though_settings_do_not_see_them(cls) -> None:
    rare = np.zeros(150)
    rare[[3, 77]] = 50.0
    model = small(cls, selection_rows=10).fit(X, rare)
    assert np.ptp(model.predict(X)) > 1.0


@each
def test_all_rows_make_the_coefficients(cls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings come from a subset: penalty and length scale would fit all of it either way."""
    model = small(cls, selection_rows=40, penalties=(0.01,), length_factors=(1.0,)).fit(X, Y)
    F = features(model, X)
    plain = Ridge(alpha=0.01, solver="svd").fit(F, model._target_scale_.standardise(Y))
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6, atol=1e-8)


def test_a_penalty_that_all_rows_do_not_allow_gives_way_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solve = regressor.ridge

    def singular_below(equations, penalty):
        if penalty < 0.1:
            raise NumericalError("singular")
        return solve(equations, penalty)

    monkeypatch.setattr(regressor, "ridge", singular_below)
    assert small(RKSRegressor, penalties=(1.0, 1e-3, 0.1)).fit(X, Y).penalty_ == 0.1
    with pytest.raises(NumericalError, match="larger"):
        small(RKSRegressor, penalties=(1e-3,)).fit(X, Y)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_features": 7}, "even"),
        ({"n_features": 0}, "n_features"),
        ({"penalties": ()}, "penalties"),
        ({"penalties": (0.0,)}, "each of penalties"),
        ({"length_factors": "1"}, "length_factors"),
        ({"n_folds": 1}, "n_folds"),
        ({"selection_rows": 1}, "selection_rows"),
        ({"standardize": "sdt"}, "did you mean 'std'"),
        ({"random_state": -1}, "random_state"),
    ],
)
@each
def test_bad_arguments_are_named(cls, settings: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        small(cls, **settings).fit(X, Y)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kernels": ("rbf", "laplase")}, "did you mean 'laplace'"),
        ({"kernels": "rbf"}, "sequence of names"),
        ({"kernels": ()}, "sequence of names"),
        ({"scales": (-1.0,)}, "each of scales"),
        ({"n_features": 22}, "at least 24"),
    ],
)
def test_bad_banks_are_named(settings: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        small(MKLRegressor, **settings).fit(X, Y)


def test_a_bank_of_one_kernel_is_the_single_kernel() -> None:
    bank = small(MKLRegressor, kernels=("rbf",), scales=(1.0,)).fit(X, Y)
    np.testing.assert_array_equal(bank.predict(X), small(RKSRegressor).fit(X, Y).predict(X))


def test_an_earlier_fit_survives_a_refused_one() -> None:
    model = small(RKSRegressor).fit(X, Y)
    expected = model.predict(X)
    with pytest.raises(UsageError):
        model.set_params(n_folds=0).fit(X, Y)
    with pytest.raises(ValueError, match="NaN"):
        model.set_params(n_folds=2).fit(np.full_like(X, np.nan), Y)
    np.testing.assert_array_equal(model.predict(X), expected)


def test_names_of_columns_are_kept() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = small(RKSRegressor).fit(frame, Y)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(frame), small(RKSRegressor).fit(X, Y).predict(X))


def test_public_names() -> None:
    assert mercer.baselines.RKSRegressor is RKSRegressor
    assert {"RKSRegressor", "MKLRegressor"} <= set(dir(mercer.baselines))
    with pytest.raises(AttributeError, match="no attribute"):
        mercer.baselines.RSKRegressor  # noqa: B018
