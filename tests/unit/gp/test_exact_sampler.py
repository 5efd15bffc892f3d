from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mercer.gp.exact import DelayedAcceptance, log_laplace_error
from mercer.gp.importance import EvidenceEstimator, no_estimate
from support.exact_runs import exact_sampler


def walk(sampler: DelayedAcceptance, count: int, seed: int = 1):
    rng = np.random.default_rng(seed)
    state = sampler.init(rng)
    for _ in range(count):
        new, info = sampler.step(rng, state)
        yield state, new, info
        state = new


def with_slope(sampler: DelayedAcceptance) -> DelayedAcceptance:
    """The same with a slope that makes the second stage refuse."""
    correction = dataclasses.replace(sampler.correction, slope=np.array([0.5, -1.0, 2.0]))
    return dataclasses.replace(sampler, correction=correction)


@pytest.mark.parametrize("inference", ["hmc", "nuts"])
def test_a_rejected_point_keeps_its_estimate(inference: str) -> None:
    sampler, outcomes = with_slope(exact_sampler(inference, n_inner=2)), set()
    for old, new, info in walk(sampler, 40):
        outcomes.add(info.is_accepted)
        assert (new is old) == (not info.is_accepted)
        assert info.log_laplace_error == log_laplace_error(sampler.model, new)
        assert new.point.position is not old.point.position or not info.is_accepted
    assert outcomes == {True, False}


def test_points_are_laplaces_whatever_the_slope() -> None:
    sampler = with_slope(exact_sampler())
    for _, new, _ in walk(sampler, 10):
        again = sampler.model.evaluate(new.point.position)
        assert new.point.log_density == pytest.approx(again.log_density, abs=1e-9)
        np.testing.assert_allclose(new.point.gradient, again.gradient, rtol=0, atol=1e-9)


def test_where_no_evidence_can_be_had_nothing_is_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sampler = exact_sampler()
    rng = np.random.default_rng(1)
    state = sampler.init(rng)
    monkeypatch.setattr(
        EvidenceEstimator, "estimate", lambda self, rng, point: no_estimate(len(self.y))
    )
    for _ in range(20):
        state, info = sampler.step(rng, state)
        assert not info.is_accepted
        assert np.isfinite(info.log_laplace_error)


def test_leaves_a_start_without_evidence() -> None:
    sampler = exact_sampler()
    rng = np.random.default_rng(1)
    state = sampler.init(rng)
    lost = dataclasses.replace(state, estimate=no_estimate(12))
    assert np.isnan(log_laplace_error(sampler.model, lost))
    new, _ = sampler.step(rng, lost)
    assert np.isfinite(log_laplace_error(sampler.model, new))


def test_what_a_draw_records() -> None:
    sampler = exact_sampler()
    state = sampler.init(np.random.default_rng(1))
    draw = sampler.record(state)
    assert list(draw) == ["x", "log_density", "log_laplace_error", "exact_latent", "exact_coef"]
    assert draw["exact_coef"].shape == (12,)
    np.testing.assert_array_equal(draw["exact_latent"], state.estimate.latent[:5])


def test_without_the_second_stage_it_is_the_inner_chain() -> None:
    sampler = exact_sampler()
    off = dataclasses.replace(sampler.correction, is_estimated=False, is_exact=False)
    sampler = dataclasses.replace(sampler, correction=off)
    rng = np.random.default_rng(3)
    plain = sampler.inner.init(rng)
    for _, new, info in walk(sampler, 10, seed=3):
        plain, _ = sampler.inner.step(rng, plain)
        np.testing.assert_array_equal(new.point.position, plain.point.position)
        assert info.second_acceptance_rate in (0.0, 1.0)
        rng.random() if info.is_accepted else None
