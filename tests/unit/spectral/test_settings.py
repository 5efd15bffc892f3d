from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer.spectral.base_measure import DiagonalBase, FullBase
from mercer.spectral.class_fitting import ClassSettings
from mercer.spectral.estimator import BaNKRegressor
from mercer.spectral.model import Scales, coefficients, design
from mercer.spectral.settings import (
    SpectralSettings,
    default_scale,
    effective_degrees,
    settings_of,
)


@pytest.fixture(scope="module")
def quick_start() -> None:
    """The start as it is."""


def settings(**own: Any) -> SpectralSettings:
    plan = {
        "n_frequencies": 8, "concentration": 2.0, "proposals": "pcn", "base_measure": "diagonal",
        "frequency_scale": "learn", "ridge_precision": "learn", "linear_part": True,
        "n_deviations": 2,
    }  # fmt: skip
    return SpectralSettings(**{**plan, **own})


@pytest.mark.parametrize("d", [1, 4, 100])
def test_phases_of_standardised_rows_have_variance_one(d: int) -> None:
    assert np.sum(default_scale(d) ** 2) == pytest.approx(1.0)


def test_what_is_learned_and_what_is_given() -> None:
    found = Scales(np.array([0.5, 2.0]), 0.3)
    learned, given = settings(), settings(ridge_precision=0.5, frequency_scale=1.0)
    assert learned.is_scale_learned
    assert not given.is_scale_learned
    assert learned.start(found).ridge == 0.3
    assert given.start(found).ridge == 0.5
    assert learned.model(10, 2).ridge_prior is not None
    assert given.model(10, 2).ridge_prior is None
    assert given.first_scales(2).ridge == 0.5
    assert len(learned.start(found).factors) > 1
    assert given.start(found).factors == (1.0,)
    assert learned.mixture(found).scale_prior is not None
    assert given.mixture(found).scale_prior is None


def test_a_number_fixes_the_scale_in_units_of_the_default() -> None:
    np.testing.assert_allclose(settings(frequency_scale=3.0).first_scales(4).scales, 1.5)


@pytest.mark.parametrize("kind", ["diagonal", "full"])
@pytest.mark.parametrize("given", ["learn", 1.0])
def test_variances_are_those_of_the_scales(kind: str, given: float | str) -> None:
    """Of frequencies, E Sigma (1 + 1 / kappa0), where scales are learned; else of components."""
    found = Scales(np.array([0.5, 2.0]), 0.3)
    mixture = settings(base_measure=kind, frequency_scale=given).mixture(found)
    base = mixture.base
    if isinstance(base, DiagonalBase):
        variances = base.scale / (base.nu0 - 2.0)
    else:
        assert isinstance(base, FullBase)
        variances = base.scale[0] * np.diag(base.psi) / (base.nu0 - 3.0)
    if given == "learn":
        variances = variances * (1.0 + 1.0 / base.kappa0)
        assert mixture.scale_prior is not None
        np.testing.assert_allclose(mixture.scale_prior.mean, base.scale)
    np.testing.assert_allclose(variances, found.scales**2)


def test_concentration() -> None:
    found = Scales(np.ones(2), 0.3)
    assert settings(concentration=0.7).mixture(found).concentration == 0.7
    assert settings(concentration=0.7).mixture(found).concentration_prior is None
    assert settings(concentration="learn").mixture(found).concentration_prior is not None


def test_columns_of_the_linear_part() -> None:
    assert settings().model(10, 3).n_linear == 4
    assert settings(linear_part=False).model(10, 3).n_linear == 0
    precisions = settings().model(10, 3).linear_precisions(2.0)
    np.testing.assert_array_equal(precisions[1:], 2.0)
    assert precisions[0] < 1e-2  # the intercept is nearly flat


def resolved(X: np.ndarray, ridge: float, **own: Any) -> SpectralSettings:
    """Settings of 160 frequencies at most, after a look at rows."""
    plan = settings(**{"n_frequencies": 160, "rows_to_resolve": len(X), **own})
    found = Scales(np.ones(X.shape[1]), ridge)
    return plan.resolved(np.random.default_rng(3), found, X)


def test_frequencies_by_degrees_of_freedom() -> None:
    """Against the trace of the hat matrix; sweeps take up what fewer of them save."""
    X = np.linspace(-12.0, 12.0, 300)[:, np.newaxis]
    found, plan = Scales(np.ones(1), 0.1), settings(n_frequencies=160)
    W, _ = plan.start(found).frequencies(np.random.default_rng(3), 160)
    F = np.hstack([np.cos(X * W[:, 0]), np.sin(X * W[:, 0])]) / np.sqrt(160)
    hat = F @ np.linalg.solve(F.T @ F + 0.1 * np.eye(320), F.T)
    assert effective_degrees(W, X, 0.1, 300) == pytest.approx(np.trace(hat), rel=1e-8)
    new = resolved(X, 0.1)
    assert new.n_frequencies == int(np.ceil(0.6 * np.trace(hat)))
    assert 16 < new.n_frequencies < 36
    assert new.n_sweeps == 4
    wide = 4.0 * X
    degrees = effective_degrees(W, wide, 0.1, 300)
    assert degrees > 60
    assert resolved(wide, 0.1).n_frequencies == np.ceil(0.6 * 60 + 1.25 * (degrees - 60))


def test_more_rows_like_these_resolve_more() -> None:
    X = np.linspace(-12.0, 12.0, 300)[:, np.newaxis]
    assert resolved(X, 0.1, rows_to_resolve=3000).n_frequencies > resolved(X, 0.1).n_frequencies


def test_not_fewer_than_16_nor_more_than_asked_for() -> None:
    X = np.random.default_rng(4).standard_normal((500, 6))
    few, many = resolved(X, 1e4), resolved(X, 1e-4)
    assert (few.n_frequencies, few.n_sweeps) == (16, 4)
    assert (many.n_frequencies, many.n_sweeps) == (160, 1)
    assert resolved(X, 1e4, n_frequencies=12) == settings(
        n_frequencies=12, rows_to_resolve=500, n_sweeps=1
    )


def line_and(curve: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows X (2000, 2), and targets: a line, a curve over the first input, and noise."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((2000, 2))
    y = X[:, 1] + np.interp(X[:, 0], np.linspace(-3.0, 3.0, len(curve)), curve)
    y += noise * rng.standard_normal(2000)
    return X, (y - y.mean()) / y.std()


PLAIN = line_and(np.zeros(2), 2.0)
ROUGH = line_and(np.random.default_rng(8).standard_normal(80), 0.05)


def worth(how: SpectralSettings | ClassSettings, X: np.ndarray, y: np.ndarray) -> int:
    plan, found = settings(n_frequencies=384), Scales(np.array([8.0, 1.0]), 0.1)
    given = np.random.default_rng(3), found, 384, len(y), lambda W: how.log_evidence(W, X, y)
    return plan.n_worth(*given)


def test_numbers_have_use_for_more_frequencies_the_rougher_the_function() -> None:
    assert worth(settings(), *PLAIN) == 32
    assert worth(settings(), *ROUGH) > 64
    assert worth(settings(noise="contaminated"), *ROUGH) > 64


def test_all_frequencies_stay_where_nothing_is_known() -> None:
    (X, y), found = PLAIN, Scales(np.array([8.0, 1.0]), 0.1)
    given = np.random.default_rng(3), found, 384, len(y), lambda W: settings().log_evidence(W, X, y)
    plan = settings(n_frequencies=384)
    assert plan.n_worth(*given, deadline=time.monotonic() - 1.0) == 384
    assert plan.n_worth(*given[:4], lambda W: -np.inf) == 384  # nor where there is no evidence


def test_classes_have_use_for_more_frequencies_the_rougher_the_function() -> None:
    (X, y), classes = ROUGH, ClassSettings(settings(), 2)
    assert worth(classes, X, 2.0 - (X[:, 1] > 0.0) - (X[:, 1] > 1.0)) == 32
    assert worth(classes, X, 2.0 - (y > 0.0) - (y > 0.7)) > 64


def test_evidence_is_that_of_the_best_ridge_or_of_the_given_one() -> None:
    (X, y), W = ROUGH, np.random.default_rng(9).standard_normal((20, 2))
    learned, given = settings(), settings(ridge_precision=1e-2)
    model, F = learned.model(len(X), 2), np.vstack([design(W, X, True), y])
    of = [
        coefficients(model, F @ F.T, model.prior_precisions(40, ridge, 1.0)).log_evidence
        for ridge in (1e-2, *np.geomspace(1e-6, 1e2, 13))
    ]
    assert given.log_evidence(W, X, y) == pytest.approx(of[0], rel=1e-12)
    assert learned.log_evidence(W, X, y) == pytest.approx(max(of[1:]), rel=1e-12)


def test_evidence_of_classes_is_that_of_laplace() -> None:
    """Two classes of thirty rows, against a search by SciPy and a numerical Hessian's volume."""
    rng = np.random.default_rng(10)
    X, W = rng.standard_normal((30, 2)), rng.standard_normal((3, 2))
    codes = (X[:, 0] + 0.5 * rng.standard_normal(30) > 0.0).astype(float)
    F, sign = design(W, X, True), np.where(codes == 0.0, 1.0, -1.0)
    prior = np.array([0.5] * 6 + [1e-2, 1.0, 1.0])

    def loss(coef: np.ndarray) -> float:
        return float(np.logaddexp(0.0, -sign * (coef @ F)).sum() + 0.5 * prior @ coef**2)

    found = minimize(loss, np.zeros(9), method="BFGS", options={"gtol": 1e-8})
    p = 1.0 / (1.0 + np.exp(-found.x @ F))
    hessian = (F * (p * (1.0 - p))) @ F.T + np.diag(prior)
    want = -found.fun + 0.5 * np.log(prior).sum() - 0.5 * np.linalg.slogdet(hessian)[1]
    classes = ClassSettings(settings(ridge_precision=0.5), 1)
    assert classes.log_evidence(W, X, codes) == pytest.approx(want, abs=1e-2)


def test_a_number_that_is_given_stays() -> None:
    X = np.zeros((10, 2))
    assert resolved(X, 1e4, rows_to_resolve=0).n_frequencies == 160
    for own, rows in ({}, 700), ({"frequency_scale": 1.0}, 0), ({"n_frequencies": 160}, 0):
        assert settings_of(BaNKRegressor(**own), 700).rows_to_resolve == rows
