from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mercer.errors import NumericalError
from mercer.gp import importance as evidence
from mercer.gp.importance import EvidenceEstimator, log_likelihoods
from support.gp_cases import posterior


def made(**settings) -> tuple[EvidenceEstimator, object]:
    model = posterior(12, 2)
    estimator = EvidenceEstimator(model.X, model.y, model.kernel, **settings)
    return estimator, model.evaluate(np.array([2.0, -1.0, 0.0]))


def test_log_likelihoods() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 511, 512, 513, 1100):
        f, y = 30.0 * rng.standard_normal((2, n, 3)), (rng.random(n) < 0.5).astype(float)
        expected = np.einsum("i,sij->sj", y, f) - np.logaddexp(0.0, f).sum(axis=1)
        np.testing.assert_allclose(
            log_likelihoods(y, np.ones(len(y)), f), expected, rtol=1e-12, atol=1e-11
        )
    assert np.isfinite(log_likelihoods(np.ones(2), np.ones(2), np.full((1, 2, 1), -1e6))).all()


def test_repeats_itself_and_needs_no_first_set_where_the_number_is_given() -> None:
    estimator, point = made(min_draws=8, max_draws=8)
    one = estimator.estimate(np.random.default_rng(1), point)
    two = estimator.estimate(np.random.default_rng(1), point)
    assert one.log_evidence == two.log_evidence
    assert one.n_draws == 8
    assert 1.0 <= one.ess <= 8.0
    rng = np.random.default_rng(1)
    estimator.estimate(rng, point)
    expected = np.random.default_rng(1)
    expected.standard_normal((2, 12, 4))
    expected.random()
    assert rng.random() == expected.random()


def test_claimed_error_is_the_error() -> None:
    estimator, point = made(min_draws=64, max_draws=64, proposal="laplace")
    rng = np.random.default_rng(2)
    found = [estimator.estimate(rng, point) for _ in range(300)]
    spread = np.std([estimate.log_evidence for estimate in found])
    claimed = np.sqrt(np.mean([estimate.log_std**2 for estimate in found]))
    assert 0.7 < claimed / spread < 1.4


def test_more_draws_where_a_first_set_asks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator, point = made(min_draws=64, max_draws=300)
    assert estimator.estimate(np.random.default_rng(1), point).n_draws == 64
    monkeypatch.setattr(evidence, "_WANTED_STD", 1e-6)
    assert estimator.estimate(np.random.default_rng(1), point).n_draws == 300


def test_no_density_has_no_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator, point = made()
    nowhere = dataclasses.replace(point, log_density=-np.inf)
    assert estimator.estimate(np.random.default_rng(1), nowhere).log_evidence == -np.inf

    def fail(K):
        raise NumericalError("no factor")

    monkeypatch.setattr(evidence, "lower_factor", fail)
    assert estimator.estimate(np.random.default_rng(1), point).log_evidence == -np.inf


def test_another_gaussian_stands_in_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator, point = made()
    usual = estimator.estimate(np.random.default_rng(1), point)
    assert not usual.is_fallback
    monkeypatch.setattr(evidence, "match_moments", lambda K, y, totals, a, weights: None)
    found = estimator.estimate(np.random.default_rng(1), point)
    assert found.is_fallback
    assert found.log_evidence == pytest.approx(usual.log_evidence, abs=0.3)
