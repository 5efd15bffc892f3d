"""Candidates compared by evidence, and their shares."""

from __future__ import annotations

import time

import numpy as np
import pytest

from mercer.kernels.names import kernel_named
from mercer.likelihoods.label_noise import LabelNoise, learned_rate
from mercer.sphere import selection
from mercer.sphere.covariance import fit_covariance
from mercer.sphere.finite import FiniteFeatures
from mercer.sphere.ladder import Ladder
from mercer.sphere.selection import Candidate, Compared, compare, shares
from mercer.sphere.space import FeatureSpace, KernelSpace

RNG = np.random.default_rng(1)
N = 60
X = RNG.uniform(-2.0, 2.0, (N, 2))
RING = ((X**2).sum(axis=1) > 2.0).astype(np.int64)  # no line separates it
THREE = np.digitize(X[:, 0], [-0.7, 0.7])


def noise_of(n: int) -> LabelNoise:
    return learned_rate((1.0, 1.0), n)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_SHORT", Ladder(10, 20))
    monkeypatch.setattr(selection, "_MEDIUM", Ladder(10, 24))
    monkeypatch.setattr(selection, "_LONG", ((40, Ladder(10, 30)), (10**9, Ladder(10, 40))))


LINEAR = Candidate("linear", None, 0.0, FeatureSpace(FiniteFeatures.fitted(None, X, 1.0), X))


def rbf(lengthscale: float, nugget: float = 0.0) -> Candidate:
    covariance = fit_covariance(kernel_named("rbf"), lengthscale, X, 1.0)
    return Candidate("rbf", lengthscale, nugget, KernelSpace(covariance, X, nugget))


def test_the_better_model_comes_first() -> None:
    compared = compare([LINEAR, rbf(1.5), rbf(0.02)], RING, noise_of, 7)
    assert compared[0].candidate.lengthscale == 1.5
    assert compared[0].is_final
    assert compared[0].n_rows == N
    assert compared[0].log_evidence > compared[1].log_evidence + 4.0
    assert len(compared) == 3
    assert compared[0].law is not None
    assert compared[0].law.log_evidence(noise_of(N))[0] == compared[0].log_evidence
    dropped = [one for one in compared if not one.is_final]
    assert all(one.law is None for one in dropped)
    np.testing.assert_array_equal(shares(compared), [1.0, 0.0, 0.0])


def test_one_candidate_has_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ladders = []
    measure = selection.measure_errors
    monkeypatch.setattr(
        selection,
        "measure_errors",
        lambda rng, L, ladder: ladders.append(ladder) or measure(rng, L, ladder),
    )
    (one,) = compare([LINEAR], RING, noise_of, 7)
    assert ladders == [Ladder(10, 40)]
    assert one.is_final


def test_the_seed_decides_and_candidates_do_not_disturb_each_other() -> None:
    first = compare([rbf(1.5)], RING, noise_of, 7)[0].log_evidence
    assert compare([rbf(1.5), LINEAR], RING, noise_of, 7)[0].log_evidence == first
    assert compare([rbf(1.5)], RING, noise_of, 8)[0].log_evidence != first


def test_several_classes_are_ranked_by_each_against_the_others() -> None:
    compared = compare([rbf(0.02), rbf(1.5)], THREE, noise_of, 7)
    assert compared[0].candidate.lengthscale == 1.5
    assert compared[0].law is None
    each = sum(
        compare([rbf(1.5)], (c == THREE).astype(np.int64), noise_of, 7)[0].log_evidence
        for c in range(3)
    )
    assert compared[0].log_evidence == pytest.approx(each, abs=6.0 * compared[0].standard_error)


def test_among_some_rows() -> None:
    rows = np.arange(0, N, 2)
    (one,) = compare([rbf(1.5)], RING, noise_of, 7, among=rows)
    assert one.n_rows == 30
    small = KernelSpace(rbf(1.5).space.covariance, X[rows], 0.0)
    (alone,) = compare([Candidate("rbf", 1.5, 0.0, small)], RING[rows], noise_of, 7)
    assert one.log_evidence == alone.log_evidence


def test_many_rows_begin_with_a_subset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_SUBSET_ROWS", 20)
    sizes = []
    measure = selection.measure_errors
    monkeypatch.setattr(
        selection,
        "measure_errors",
        lambda rng, L, ladder: sizes.append(len(L)) or measure(rng, L, ladder),
    )
    compare([rbf(1.5), rbf(1.4)], RING, noise_of, 7)
    assert sizes == [20, 20, N, N, N, N]


def test_after_the_deadline_one_run_is_left() -> None:
    compared = compare([rbf(1.5), rbf(1.4), rbf(1.6)], RING, noise_of, 7, time.monotonic() - 1.0)
    assert [one.is_final for one in compared] == [True, False, False]
    assert shares(compared)[0] == 1.0


def made(log_evidence: float, *, is_final: bool = True) -> Compared:
    return Compared(LINEAR, log_evidence, 0.1, N, is_final, None)


def test_shares_are_posterior_probabilities() -> None:
    """Of those that were run on all rows; 0 below one in twenty."""
    weights = shares(
        [made(-10.0), made(-10.0 - np.log(3.0)), made(-15.0), made(5.0, is_final=False)]
    )
    np.testing.assert_allclose(weights, [0.75, 0.25, 0.0, 0.0])
    np.testing.assert_allclose(shares([made(-1e5), made(-1e5)]), 0.5)
