"""One run over noise levels: shapes, seeds, what it can say. Its exactness: KGS-7, KGS-13."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from mercer.likelihoods.label_noise import (
    LabelNoise,
    fixed_rate,
    learned_class_rates,
    learned_rate,
    row_rates,
)
from mercer.sphere import tempering
from mercer.sphere.tempering import OutOfTimeError, Tempering, climb_errors, measure_noise
from support.sphere_cases import noisy_gram, noisy_rows, pattern_posterior, signed

L = noisy_rows(25, 4, 0.1)
SHORT = Tempering(10, 30)


def test_a_law_of_errors() -> None:
    law = climb_errors(np.random.default_rng(1), L, Tempering(10, 300)).law()
    assert law.log_prior.shape == (26,)
    assert np.exp(law.log_prior).sum() == pytest.approx(1.0)
    assert law.is_connected
    # Far from labels that say nothing, as many errors as not.
    mean = np.exp(law.log_prior) @ np.arange(26.0)
    assert mean == pytest.approx(12.5, abs=4.0)
    value, error = law.log_evidence(fixed_rate(0.1, 25))
    assert -25.0 * np.log(2.0) < value < 0.0
    assert 0.0 < error < 1.0


def test_the_seed_decides() -> None:
    one, two, three = (climb_errors(np.random.default_rng(s), L, SHORT).law() for s in (1, 1, 2))
    np.testing.assert_array_equal(one.log_prior, two.log_prior)
    assert (one.log_prior != three.log_prior).any()


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 4), (40, 1), (3, 30)])
def test_any_shape(shape: tuple[int, int]) -> None:
    law = climb_errors(np.random.default_rng(3), noisy_rows(*shape), SHORT).law()
    assert np.isfinite(law.log_evidence(fixed_rate(0.2, shape[0]))).all()


def test_rungs_end_where_a_learned_rate_is_out_of_reach() -> None:
    """The evidence over rates is that of a run down to certain labels, with fewer events."""
    n, prior = 600, (1.0, 3.0)
    rows = noisy_rows(n, 4, 0.3)
    whole, short = (
        climb_errors(np.random.default_rng(6), rows, Tempering(20, 300), None, given)
        for given in (None, prior)
    )
    assert whole.sampler.powers[-1] == 1.0
    assert short.sampler.powers[-1] < 0.5
    noise = learned_rate(prior, n)
    (value, error), (other, other_error) = (run.law().log_evidence(noise) for run in (whole, short))
    assert abs(value - other) < 4.0 * np.hypot(error, other_error) + 0.05
    least = short.law().least_rate
    assert 0.001 < least < 0.2
    assert short.law().curve(np.array([0.5 * least, 0.3])).noise_rates.tolist() == [0.3]


def test_few_rows_leave_every_rate_within_reach() -> None:
    one, two = (
        climb_errors(np.random.default_rng(1), L, SHORT, None, given).law()
        for given in (None, (1.0, 3.0))
    )
    np.testing.assert_array_equal(one.log_prior, two.log_prior)
    assert two.least_rate == 0.0


def test_rows_that_are_zero_are_always_wrong() -> None:
    rows = np.vstack([L, np.zeros((3, 4))])
    law = climb_errors(np.random.default_rng(4), rows, SHORT).law()
    assert law.support.min() >= 3
    value, _ = law.log_evidence(fixed_rate(0.2, 28))
    expected, error = (
        climb_errors(np.random.default_rng(5), L, Tempering(20, 300))
        .law()
        .log_evidence(fixed_rate(0.2, 25))
    )
    assert value == pytest.approx(expected + 3.0 * np.log(0.2), abs=1.0 + 5.0 * error)


def evidence_z(noise: LabelNoise) -> float:
    """Standard errors between the ladder's evidence and that of enumerated patterns."""
    G, y = noisy_gram(5)
    rows = np.linalg.cholesky(G) * y[:, np.newaxis]
    exact = pattern_posterior(signed(G, y), learned_class_rates((1.0, 3.0), (y > 0) * 1))[1]
    value, error = measure_noise(np.random.default_rng(4), rows, noise, Tempering(20, 1000))
    assert error < 0.05
    return abs(value - exact) / error


def test_evidence_of_rates_by_class() -> None:
    """Within five standard errors; of rates of the recorded class far from it."""
    labels = (noisy_gram(5)[1] > 0.0).astype(np.int64)
    assert evidence_z(learned_class_rates((1.0, 3.0), labels)) < 5.0
    assert evidence_z(row_rates(np.array([0.1, 0.3])[labels])) > 10.0


def test_a_run_ends_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that ticks at every look: with ten sweeps there is a law, with fewer an error."""
    ticks = itertools.count()
    monkeypatch.setattr(tempering, "_ROWS_A_LOOK", len(L))  # a look at every sweep
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    law = climb_errors(np.random.default_rng(1), L, Tempering(10, 160), 45.5).law()
    assert np.isfinite(law.log_evidence(fixed_rate(0.2, 25))[0])
    assert next(ticks) == 47
    for deadline in (50.5, 70.5):
        with pytest.raises(OutOfTimeError):
            climb_errors(np.random.default_rng(1), L, Tempering(10, 150), deadline).law()
