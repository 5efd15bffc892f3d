"""Candidates compared by evidence, and their shares."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest

from mercer.kernels.names import kernel_named
from mercer.likelihoods.label_noise import (
    LabelNoise,
    class_rates,
    fixed_rate,
    learned_class_rates,
    learned_rate,
    row_rates,
)
from mercer.sphere import selection, tempering
from mercer.sphere.propagation import approximate_evidence
from mercer.sphere.sampler import signed_rows
from mercer.sphere.selection import (
    Candidate,
    Compared,
    _both,
    _not_hopeless,
    compare,
    over_both_noises,
    probabilities,
    probabilities_by_noise,
    shares,
    under_rates_by_class,
    what_is_known,
)
from mercer.sphere.space import FeatureSpace, FiniteFeatures, KernelSpace, fit_covariance
from mercer.sphere.tempering import Tempering, climb_errors, measure_noise

RNG = np.random.default_rng(1)
N = 60
X = RNG.uniform(-2.0, 2.0, (N, 2))
RING = ((X**2).sum(axis=1) > 2.0).astype(np.int64)  # no line separates it
THREE = np.digitize(X[:, 0], [-0.7, 0.7])


def noise_of(rows: np.ndarray) -> LabelNoise:
    return learned_rate((1.0, 1.0), len(rows))


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_RUNS", (Tempering(10, 20), Tempering(10, 40)))


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
    run, error = compared[0].law.log_evidence(noise_of(RING))
    assert abs(run - compared[0].log_evidence) < 4.0 * error  # it is not alone:
    assert compared[0].standard_error < error
    dropped = [one for one in compared if not one.is_final]
    assert all(one.law is None for one in dropped)
    np.testing.assert_array_equal(probabilities(compared), [1.0, 0.0, 0.0])


def spy(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, bool]]:
    """Rows and sweeps of each run, and whether it goes on with one."""
    seen: list[tuple[int, int, bool]] = []
    climb, on = selection.climb_errors, selection.prolong

    def climbing(rng, L, ladder, *rest):
        seen.append((len(L), ladder.n_sweeps, False))
        return climb(rng, L, ladder, *rest)

    def going_on(run, n_sweeps, deadline):
        seen.append((run.seen.shape[2], n_sweeps, True))
        return on(run, n_sweeps, deadline)

    monkeypatch.setattr(selection, "climb_errors", climbing)
    monkeypatch.setattr(selection, "prolong", going_on)
    return seen


def test_one_candidate_has_a_run_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = spy(monkeypatch)
    (one,) = compare([LINEAR], RING, noise_of, 7)
    assert seen == [(N, 20, False)]
    assert one.is_final


def test_runs_are_prolonged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the candidates that are left and not well known; nothing is measured twice."""
    seen = spy(monkeypatch)
    for limit in ("_WELL_KNOWN", "_SOME"):
        monkeypatch.setattr(selection, limit, np.inf)
    alike = compare([rbf(1.4), rbf(1.5)], RING, noise_of, 7)
    assert seen == [(N, 20, False), (N, 20, False)]
    assert [one.is_final for one in alike] == [True, True]
    seen.clear()
    monkeypatch.setattr(selection, "_WELL_KNOWN", 0.0)
    compared = compare([rbf(1.4), rbf(1.5)], RING, noise_of, 7)
    assert seen == [(N, 20, False), (N, 20, False), (N, 40, True), (N, 40, True)]
    assert [one.is_final for one in compared] == [True, True]


def test_the_hopeless_have_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor has their evidence a standard error."""
    seen = spy(monkeypatch)
    first, second = compare([rbf(0.02), rbf(1.5)], RING, noise_of, 7)
    assert seen == [(N, 20, False), (N, 40, True)]
    assert (first.is_final, first.is_approximate) == (True, False)
    assert (second.is_final, second.is_approximate) == (False, True)
    assert np.isfinite(first.standard_error)
    assert np.isnan(second.standard_error)


@pytest.mark.parametrize(
    ("said", "is_settled"),
    [(3e10, False), (-1e4, False), (-10.0, True)],
    ids=["no probability", "far too low", "too high by 30 nats"],
)
@pytest.mark.parametrize("which", ["best", "worst"])
def test_an_approximation_that_is_wrong_decides_nothing(
    monkeypatch: pytest.MonkeyPatch, which: str, said: float, is_settled: bool
) -> None:
    """Not at rest it says nothing; one that promised too much has those back that it had dropped.

    The seed and the runs are those of the comparison with the right approximations; of this seed a
    run knows its evidence to a nat, so that ten nats more contradict it.
    """
    models = [rbf(0.02), rbf(1.5)]
    right = compare(models, RING, noise_of, 8)[0]
    wrong = models[which == "best"].space.smooth_rows()[0]

    def approximating(L, variance, noise, *rest):
        found = approximate_evidence(L, variance, noise, *rest)
        if L.shape != wrong.shape or not np.array_equal(np.abs(L), np.abs(wrong)):
            return found
        return replace(found, log_evidence=said, is_settled=is_settled)

    monkeypatch.setattr(selection, "approximate_evidence", approximating)
    compared = compare(models, RING, noise_of, 8)
    assert compared[0].candidate.lengthscale == 1.5
    assert compared[0].is_final
    run = right.law.log_evidence(noise_of(RING))[0]  # alone, where the other contradicts it
    assert compared[0].log_evidence == (run if which == "best" else right.log_evidence)
    assert all(one.log_evidence < 0.0 for one in compared)


def test_unknown_evidence_of_rates_by_class_is_that_of_one_rate_and_what_others_gain() -> None:
    pairs = [(-10.0, -13.0), (-12.0, -14.0), (-13.0, -np.inf), (-60.0, -np.inf)]
    compared = {k: made(one, by_class=two) for k, (one, two) in enumerate(pairs)}
    assert _not_hopeless(compared, 4.0) == [0, 1, 2]
    compared[4] = made(-70.0, by_class=-20.0)  # where one gains 50 nats another may, too
    assert _not_hopeless(compared, 4.0) == [0, 1, 2, 3]
    alone = {k: made(-10.0 * k, by_class=-np.inf) for k in (1, 2)}
    assert _not_hopeless(alone, 4.0) == [1, 2]


def test_unknown_evidence_is_within_reach_and_no_measure_of_others() -> None:
    unknown = made(-np.inf, by_class=-np.inf)
    compared = {0: unknown, 1: made(-10.0, by_class=-10.0), 2: made(-30.0, by_class=-30.0)}
    assert _not_hopeless(compared, 4.0) == [1, 0]
    assert _both(made(-10.0), replace(unknown, standard_error=np.inf)).log_evidence == -10.0


def test_a_run_and_an_approximation_together() -> None:
    """Weighed by their precisions; an approximation of other rows, or none at all, is left out."""
    run, other = made(-10.0, by_class=-12.0), replace(made(-11.0), standard_error=0.2)
    both = _both(run, other)
    assert both.log_evidence == pytest.approx(-10.2)
    assert both.standard_error == pytest.approx(125.0**-0.5)
    assert both.by_class is None
    assert _both(run, replace(other, by_class=(-13.0, 0.2))).by_class[0] == pytest.approx(-12.5)
    for unknown in (None, replace(other, n_rows=N - 1), replace(other, standard_error=np.inf)):
        assert _both(run, unknown).log_evidence == -10.0
    broken = replace(run, log_evidence=-9.0, standard_error=np.inf)
    assert _both(broken, other).log_evidence == -11.0


def test_the_seed_decides_and_candidates_do_not_disturb_each_other() -> None:
    first = compare([rbf(1.5), rbf(0.02)], RING, noise_of, 7)[0].log_evidence
    assert compare([rbf(1.5), LINEAR], RING, noise_of, 7)[0].log_evidence == first
    assert compare([rbf(1.5)], RING, noise_of, 8)[0].log_evidence != first


def test_rates_by_class_are_weighed_by_the_draws_of_one() -> None:
    """Reweighted within four standard errors of a run of its own, where draws overlap."""
    rows = signed_rows(rbf(1.5).space.design().L, RING)
    two = learned_class_rates((1.0, 1.0), RING)
    run = climb_errors(np.random.default_rng(1), rows, Tempering(20, 400))
    value, error = run.log_evidence(two)
    own, own_error = measure_noise(np.random.default_rng(2), rows, two, Tempering(20, 400))
    assert error < 1.0
    assert abs(value - own) < 4.0 * np.hypot(error, own_error)
    assert abs(value - run.law().log_evidence(noise_of(RING))[0]) > 0.1


@pytest.mark.parametrize("kind", ["classes", "rows"])
def test_rates_that_were_given_weigh_the_models(kind: str) -> None:
    """Half of the classifiers are right on an independent row: its probability is known.

    Rows have length scales far below their distances, so that a learned rate gives each 1/2.
    """
    if kind == "classes":
        noise = class_rates(np.array([0.05, 0.3]), RING)
        exact = np.log(np.where(RING == 1, 0.5 * (0.7 + 0.05), 0.5 * (0.95 + 0.3))).sum()
    else:
        noise = row_rates(np.where(np.arange(N) < 20, 1e-4, 0.3))
        exact = -N * np.log(2.0)
    covariance = fit_covariance(kernel_named("rbf"), 1e-3, X, 0.0)
    apart = Candidate("rbf", 1e-3, 0.0, KernelSpace(covariance, X, 0.0))
    for models in ([apart], [apart, replace(apart, nugget=0.1)]):
        best = compare(models, RING, noise.among, 7)[0]
        assert best.law is not None
        assert abs(best.log_evidence - exact) < 4.0 * best.standard_error + 0.05


def test_rates_of_rows_that_are_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Say what one rate says, where enough draws count for rates that differ, too."""
    monkeypatch.setattr(selection, "_RUNS", (Tempering(10, 60), Tempering(10, 120)))
    fixed = compare([rbf(1.5)], RING, lambda rows: fixed_rate(0.1, len(rows)), 7)[0]
    same = compare([rbf(1.5)], RING, row_rates(np.full(N, 0.1)).among, 7)[0]
    assert same.log_evidence == pytest.approx(fixed.log_evidence, abs=1e-6)
    assert same.standard_error == pytest.approx(fixed.standard_error, rel=1e-3)


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
    """And where there are too many for propagation, on more of them; runs are on all."""
    monkeypatch.setattr(selection, "_SUBSETS", ((20, 8.0), (30, 5.0), (50, 5.0)))
    monkeypatch.setattr(selection, "_LAST_SUBSET_ROWS", 40)
    monkeypatch.setattr(selection, "_WELL_KNOWN", 0.0)
    seen, propagated = spy(monkeypatch), []

    def spying(L, *rest):
        propagated.append(len(L))
        return approximate_evidence(L, *rest)

    monkeypatch.setattr(selection, "approximate_evidence", spying)
    compare([rbf(1.5), rbf(1.4)], RING, noise_of, 7)
    monkeypatch.setattr(selection, "_MOST_PROPAGATED", 45)
    compare([rbf(1.5), rbf(1.4)], RING, noise_of, 7)
    assert propagated == [20, 20, 30, 30, N, N, 20, 20, 30, 30, 40, 40]
    assert seen == 2 * [(N, 20, False), (N, 20, False), (N, 40, True), (N, 40, True)]


CANDIDATES = [rbf(1.5), rbf(1.4), rbf(1.6)]


def test_after_the_deadline_nothing_is_measured() -> None:
    assert compare(CANDIDATES, RING, noise_of, 7, time.monotonic() - 1.0) == ()


@pytest.mark.parametrize(
    ("n_looks", "n_measured", "n_run"), [(1, 2, 0), (20, 3, 0), (40, 3, 1), (78, 3, 2), (110, 3, 3)]
)
def test_every_sweep_looks_at_the_clock(
    monkeypatch: pytest.MonkeyPatch, n_looks: int, n_measured: int, n_run: int
) -> None:
    """A clock that ticks whenever it is looked at; the middle of the candidates comes first."""
    ticks = itertools.count()
    monkeypatch.setattr(tempering, "_ROWS_A_LOOK", N)
    monkeypatch.setattr(selection, "_WELL_KNOWN", 0.0)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    compared = compare(CANDIDATES, RING, noise_of, 7, float(n_looks))
    assert len(compared) == n_measured
    assert not any(one.is_final for one in compared)
    assert [one.is_approximate for one in compared] == [k >= n_run for k in range(n_measured)]
    assert 1.4 in [one.candidate.lengthscale for one in compared]
    np.testing.assert_array_equal(probabilities(compared), np.arange(n_measured) == 0)
    assert next(ticks) < n_looks + 8  # of what is left each is asked for once


def made(log_evidence: float, *, is_final: bool = True, by_class: float | None = None) -> Compared:
    pair = None if by_class is None else (by_class, 0.2)
    return Compared(LINEAR, log_evidence, 0.1, N, is_final, None, pair)


def test_over_one_rate_and_one_for_each_class() -> None:
    """Posterior probabilities of the pairs, rates by class a priori three times as likely.

    The same draws say both evidences, so that their errors add up.
    """
    two = [made(-10.0, by_class=-12.0), made(-11.0, by_class=-8.0), made(-20.0, is_final=False)]
    averaged = over_both_noises(two)
    np.testing.assert_allclose(
        [one.log_evidence for one in averaged[:2]],
        np.log(np.exp([[-11.0, -8.0], [-10.0, -12.0]]) @ [0.25, 0.75]),
    )
    share = 0.75 / (0.75 + 0.25 * np.exp(-3.0))  # of rates by class, for the first
    error = share * 0.2 + (1.0 - share) * 0.1
    assert averaged[0].standard_error == pytest.approx(error)
    pairs = np.array([[1.0, 3.0 * np.exp(3.0)], [np.exp(1.0), 3.0 * np.exp(-1.0)], [0.0, 0.0]])
    np.testing.assert_allclose(probabilities_by_noise(averaged), pairs / pairs.sum())


def test_candidates_measured_under_one_rate_only() -> None:
    """They have that rate; where nothing was run on all rows, the first has all."""
    cut = over_both_noises([made(-10.0, by_class=-10.0), made(-10.0)])
    np.testing.assert_allclose(probabilities_by_noise(cut), [[0.125, 0.375], [0.5, 0.0]])
    short = over_both_noises([made(-10.0, is_final=False), made(-11.0, is_final=False)])
    np.testing.assert_array_equal(probabilities_by_noise(short), [[1.0, 0.0], [0.0, 0.0]])


def test_rates_by_class_alone() -> None:
    """A candidate that was not measured under them has no share."""
    clear = [made(-10.0, by_class=-12.0), made(-11.0, by_class=-8.0), made(-20.0, is_final=False)]
    first, second, dropped = under_rates_by_class(clear)
    assert (first.log_evidence, first.standard_error) == (-8.0, 0.2)
    assert second.log_evidence == -12.0
    assert not dropped.is_final
    cut = under_rates_by_class([made(-10.0, by_class=-12.0), made(-9.0)])
    np.testing.assert_array_equal(probabilities(cut), [1.0, 0.0])


def test_dropped_is_what_is_hopeless_under_both_noises() -> None:
    """A candidate far behind under one rate may be the best under one a class."""
    pairs = [(-10.0, -30.0), (-30.0, -9.0), (-30.0, -31.0), (-11.0, -30.0)]
    compared = {k: made(one, by_class=two) for k, (one, two) in enumerate(pairs)}
    assert _not_hopeless(compared, 4.0) == [0, 3, 1]
    of_one_rate = {k: made(one) for k, (one, _) in enumerate(pairs)}
    assert _not_hopeless(of_one_rate, 4.0) == [0, 3]


def test_labels_of_one_class_that_are_often_wrong() -> None:
    """Two in five of the outside recorded as inside, or a fifth of both: evidence tells which."""
    rng = np.random.default_rng(2)
    rows = rng.uniform(-2.0, 2.0, (150, 2))
    ring = ((rows**2).sum(axis=1) > 2.0).astype(np.int64)
    covariance = fit_covariance(kernel_named("rbf"), 1.5, rows, 1.0)
    one = Candidate("rbf", 1.5, 0.0, KernelSpace(covariance, rows, 0.0))
    gain = []
    for rates in ((0.0, 0.4), (0.2, 0.2)):
        labels = np.where(rng.random(150) < np.array(rates)[ring], 1 - ring, ring)
        noise = learned_class_rates((1.0, 1.0), labels)
        (found,) = compare([one], labels, noise_of, 7, by_class=noise)
        assert found.by_class is not None
        gain.append(found.by_class[0] - found.log_evidence)
    assert gain[0] > 5.0
    assert gain[1] < 3.0


def test_posterior_probabilities() -> None:
    """Of those that were run on all rows."""
    seen = probabilities(
        [made(-10.0), made(-10.0 - np.log(3.0)), made(-800.0), made(5.0, is_final=False)]
    )
    np.testing.assert_allclose(seen, [0.75, 0.25, 0.0, 0.0], atol=1e-300)
    np.testing.assert_allclose(probabilities([made(-1e5), made(-1e5)]), 0.5)


@pytest.mark.parametrize(
    ("probability", "share"),
    [
        ([0.9, 0.04, 0.03, 0.02, 0.01], [0.9, 0.04, 0.03]),
        ([0.3, 0.27, 0.2, 0.19, 0.04], [0.3, 0.27, 0.2, 0.19]),
        ([0.94, 0.06], [0.94, 0.06]),
        ([1.0], [1.0]),
    ],
)
def test_the_least_probable_give_no_draws(probability: list[float], share: list[float]) -> None:
    """While they have less than one in twenty in all."""
    n, column = len(probability), np.zeros((len(probability), 2))
    column[:, 0] = probability
    expected = np.zeros((n, 2))
    expected[: len(share), 0] = np.array(share) / sum(share)
    np.testing.assert_allclose(shares(column, np.random.default_rng(1)), expected)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sharpness", [0.0, 1.0, 2.0])
def test_a_few_models_of_many(sharpness: float) -> None:
    """Every share is the probability on average, to five standard errors; the least are left out.

    At equal evidence the largest share of 40 is 4 %: less than 5 %, and yet they are all.
    """
    p = np.exp(sharpness * np.random.default_rng(4).standard_normal((20, 2))) * [0.25, 0.75]
    p /= p.sum()
    before = p.copy()
    weights = np.array([shares(p, np.random.default_rng(seed), 6) for seed in range(4000)])
    np.testing.assert_array_equal(p, before)
    np.testing.assert_array_equal(np.count_nonzero(weights, axis=(1, 2)), 6)
    np.testing.assert_allclose(weights.sum(axis=(1, 2)), 1.0)
    is_used = weights.any(axis=0)
    assert 0.03 < p[~is_used].sum() < 0.05
    expected = np.where(is_used, p, 0.0) / p[is_used].sum()
    error = np.abs(weights.mean(axis=0) - expected)
    assert (error <= 5.0 * weights.std(axis=0) / np.sqrt(4000.0) + 1e-12).all()
    is_kept = weights.std(axis=0) < 1e-12
    np.testing.assert_allclose(weights[0, is_kept], expected[is_kept], atol=1e-12)


def test_no_more_models_than_draws() -> None:
    p, rng = np.full((20, 2), 1.0 / 40.0), np.random.default_rng(1)
    assert [np.count_nonzero(shares(p, rng, most)) for most in (1, 2, 5, 50)] == [1, 2, 5, 6]


def test_a_part_of_the_rows_needs_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what all rows have left, which is as good as runs; without it there are some."""
    models = [rbf(0.02), rbf(1.0), rbf(1.5)]
    two = learned_class_rates((1.0, 1.0), RING)
    whole = compare(models, RING, noise_of, 7, by_class=two)
    known = what_is_known(models, whole)
    assert np.isnan(known[0]).all()
    assert np.isfinite(known[1:]).all()
    rows = np.arange(N) % 10 > 0
    part = [replace(one, space=one.space.among(np.flatnonzero(rows))) for one in models]
    by_class = learned_class_rates((1.0, 1.0), RING[rows])
    seen = spy(monkeypatch)
    found = compare(part, RING[rows], noise_of, 7, None, None, by_class, known)
    assert seen == []
    assert [one.is_final for one in found] == [True, True]
    alone = compare(part, RING[rows], noise_of, 8, by_class=by_class)
    for one in found:
        (other,) = (each for each in alone if each.candidate is one.candidate)
        assert abs(one.log_evidence - other.log_evidence) < 4.0
        assert abs(one.by_class[0] - other.by_class[0]) < 4.0
    seen.clear()
    known[1:] = np.inf
    assert len(compare(part, RING[rows], noise_of, 7, None, None, by_class, known)) == 2
    assert len(seen) >= 2
