"""Adaptive importance sampling of known densities: proposals, weights, rounds, stops."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_t, t

from mercer.sampling import importance
from mercer.sampling.checkpoint import RunIdentity, open_run
from mercer.sampling.driver import RunOptions, SamplingStoppedError
from mercer.sampling.importance import (
    Difference,
    ImportanceSample,
    Rounds,
    SplitT,
    first_proposal,
    fit_proposal,
    importance_sample,
    pareto_shape,
    thinned,
)

COVARIANCE = np.array([[1.0, 0.6], [0.6, 2.0]])
OPTIONS = RunOptions(n_draws=1, n_warmup=1, n_chains=1, thin=1, entropy=3)
START = first_proposal(np.array([0.5, -0.5]), COVARIANCE)


@dataclass(frozen=True)
class Skewed:
    """A normal with log z as its second coordinate's companion: log gamma(2) in each coordinate."""

    nowhere: bool = False

    def __call__(self, x: np.ndarray) -> tuple[float, Mapping[str, np.ndarray]]:
        """Log density of independent log gamma(2) variables: their integral is 1."""
        log_density = float(np.sum(2.0 * x - np.exp(x)))
        return (-np.inf if self.nowhere else log_density), {"square": x * x}


def run(
    options: RunOptions = OPTIONS, wanted: float = 300.0, is_frozen: bool = False, **given: object
) -> ImportanceSample:
    target = Skewed()
    rounds = Rounds(wanted, is_frozen, 100, lambda recorded, W: 1.2 * wanted, 1200)
    sample = importance_sample(target, START, rounds, replace(options, **given))
    assert sample is not None
    return sample


def test_the_first_proposal_is_a_spherical_t_around_the_maximum() -> None:
    x = np.random.default_rng(0).normal(size=(20, 2))
    known = multivariate_t(START.centre, 1.2 * COVARIANCE, df=START.df)
    np.testing.assert_allclose(START.log_density(x), known.logpdf(x), rtol=1e-12)


def test_split_proposals_have_integral_one_and_are_drawn_as_their_density_says() -> None:
    split = SplitT(
        START.centre, START.root, np.array([0.4, 2.0]), np.array([1.5, 0.7]), df=START.df
    )
    x = START.draw(np.random.default_rng(1), 40_000)
    W = np.exp(split.log_density(x) - START.log_density(x))
    # z < 5: false alarms 6e-7 each.
    assert abs(W.mean() - 1.0) < 5.0 * W.std() / 200.0
    drawn = split.draw(np.random.default_rng(2), 40_000)
    for moment in (lambda v: v[:, 0], lambda v: np.tanh(v[:, 1]), lambda v: np.tanh(v[:, 0] ** 3)):
        weighted = W * (moment(x) - moment(drawn).mean())
        error = math.hypot(weighted.std() / 200.0, moment(drawn).std() / 200.0)
        assert abs(weighted.mean()) < 5.0 * error


def test_scales_below_and_above_are_found() -> None:
    split = SplitT(START.centre, START.root, np.array([0.4, 2.0]), np.array([1.5, 0.7]), df=1000.0)
    x = split.draw(np.random.default_rng(4), 5000)
    found = fit_proposal(START, x, np.zeros(len(x)))
    np.testing.assert_allclose(found.below, np.sqrt(1.5) * split.below, rtol=0.1)
    np.testing.assert_allclose(found.above, np.sqrt(1.5) * split.above, rtol=0.1)


@pytest.mark.parametrize("is_frozen", [False, True])
def test_rounds_end_when_enough_is_known(is_frozen: bool) -> None:
    sample = run(is_frozen=is_frozen)
    is_counted = np.isfinite(sample.log_weights)
    assert sample.ess >= (330.0 if is_frozen else 360.0)
    assert len(sample.log_weights) < 1200
    assert is_counted.all() != is_frozen
    assert is_counted[-1]
    assert sample.is_trusted
    W = np.exp(sample.log_weights - logsumexp(sample.log_weights))
    error = np.sqrt(np.square(W) @ np.square(sample.positions - W @ sample.positions))
    # The mean of a log gamma(2) is digamma(2).
    assert np.all(np.abs(W @ sample.positions - 0.4227843350984671) < 5.0 * error)
    assert abs(sample.log_evidence) < 5.0 * sample.log_evidence_se
    np.testing.assert_array_equal(sample.recorded["square"], sample.positions**2)


@dataclass(frozen=True)
class Tilted:
    """`Skewed` less a third of the sum of its coordinates, which moves and widens it."""

    def __call__(self, x: np.ndarray) -> tuple[float, Mapping[str, np.ndarray]]:
        """Log density, and what `Skewed` records."""
        log_density, recorded = Skewed()(x)
        return log_density - x.sum() / 3.0, recorded


@pytest.mark.parametrize("is_frozen", [False, True])
def test_draws_correct_the_density_that_they_are_of(is_frozen: bool, tmp_path: Path) -> None:
    """All weights are of the density with the difference, which is asked for once."""
    asked = list[np.ndarray]()

    def correct(few: np.ndarray) -> Difference:
        asked.append(few)
        return lambda x, value, recorded: x.sum() / 3.0

    rounds = Rounds(300.0, is_frozen, 100, lambda recorded, W: 360.0, 2400)
    sample, again = (  # the second from the checkpoint, which holds the density as it was
        importance_sample(Tilted(), START, rounds, folder_of(tmp_path), correct=correct)
        for _ in range(2)
    )
    assert [len(few) for few in asked] == [40, 40]
    W = np.exp(sample.log_weights - logsumexp(sample.log_weights))
    error = np.sqrt(np.square(W) @ np.square(sample.positions - W @ sample.positions))
    # z < 5: false alarms 6e-7 each.
    assert np.all(np.abs(W @ sample.positions - 0.4227843350984671) < 5.0 * error)
    assert abs(sample.log_evidence) < 5.0 * sample.log_evidence_se < 0.5
    values = [Skewed()(x)[0] for x in sample.positions]
    np.testing.assert_allclose(sample.log_density, values, atol=1e-12)
    assert again.is_resumed
    np.testing.assert_array_equal(again.log_weights, sample.log_weights)


def test_without_a_difference_all_stays_as_it_was() -> None:
    rounds = Rounds(300.0, False, 100, lambda recorded, W: 360.0, 1200)
    same = importance_sample(Skewed(), START, rounds, OPTIONS, correct=lambda few: None)
    np.testing.assert_array_equal(same.log_weights, run().log_weights)


@dataclass(frozen=True)
class Mirrored:
    """Two normals in four coordinates, of which one is the other with its halves swapped."""

    def __call__(self, x: np.ndarray) -> tuple[float, Mapping[str, np.ndarray]]:
        """Log density; each has the integral 1."""
        modes = np.array([[2.0, 1.0, -2.0, -1.0], [-2.0, -1.0, 2.0, 1.0]])
        logs = -50.0 * np.square(x - modes).sum(axis=1) + 2.0 * math.log(50.0 / math.pi)
        return float(logsumexp(logs)), {}


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("is_told", [True, False])
def test_the_mass_of_orders_that_no_data_tell_apart_counts(is_frozen: bool, is_told: bool) -> None:
    """The mutant sees the mode where it starts, and states a small error of half the mass."""
    start = first_proposal(np.array([2.0, 1.0, -2.0, -1.0]), 0.01 * np.eye(4))
    wide = SplitT(np.zeros(4), 5.0 * np.eye(4), np.ones(4), np.ones(4), 7.0)
    rounds = Rounds(300.0, is_frozen, 100, lambda recorded, W: 300.0, 1200)
    orders = np.array([[0, 1, 2, 3], [2, 3, 0, 1]])[: 1 + is_told]
    sample = importance_sample(Mirrored(), start, rounds, OPTIONS, wide, orders)
    assert sample is not None
    assert sample.log_evidence_se < 0.05
    assert (abs(sample.log_evidence - math.log(2.0)) < 5.0 * sample.log_evidence_se) == is_told


@dataclass(frozen=True)
class Apart:
    """Two normals in six coordinates, of which the farther, wider one has nine tenths of all."""

    def __call__(self, x: np.ndarray) -> tuple[float, Mapping[str, np.ndarray]]:
        """Log density; its integral is 1."""
        logs = -0.5 * np.square((x - MODES) / STDS).sum(axis=1) - 6.0 * np.log(STDS[:, 0])
        return float(logsumexp(logs + np.log([0.1, 0.9]))) - 3.0 * math.log(2.0 * math.pi), {}


MODES, STDS = np.array([np.zeros(6), np.full(6, 2.0)]), np.array([[0.5], [1.0]])


@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_maximum_that_no_search_has_found_is_climbed_to(
    is_frozen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importance, "_MOST_BRANCHED", 0)  # as where parameters are many
    start = first_proposal(MODES[0], 0.25 * np.eye(6))
    wide = SplitT(np.zeros(6), 2.0 * np.eye(6), np.ones(6), np.ones(6), 7.0)
    rounds = Rounds(300.0, is_frozen, 100, lambda recorded, W: 300.0, 1600)
    climbed = list[np.ndarray]()

    def climb(position: np.ndarray) -> SplitT | None:
        climbed.append(position)
        is_new = len(climbed) == 1
        return first_proposal(MODES[1], np.eye(6)) if is_new else None

    sample = importance_sample(Apart(), start, rounds, OPTIONS, wide, climb=climb)
    assert sample is not None
    assert sample.is_trusted
    assert climbed[0].mean() > 1.0  # nearer to the maximum that was not known
    W = np.exp(sample.log_weights - logsumexp(sample.log_weights))
    share = W @ (sample.positions.mean(axis=1) > 1.0)
    error = np.sqrt(np.square(W) @ np.square((sample.positions.mean(axis=1) > 1.0) - share))
    # z < 5: false alarms 6e-7 each.
    assert abs(share - 0.9) < 5.0 * error
    assert abs(sample.log_evidence) < 5.0 * sample.log_evidence_se
    assert sample.log_evidence_se < 0.1


@dataclass(frozen=True)
class Crossed:
    """Two normals in three coordinates: where one is narrow the other is wide."""

    def __call__(self, x: np.ndarray) -> tuple[float, Mapping[str, np.ndarray]]:
        """Log density; its integral is 1."""
        stds = np.array([[0.1, 2.0, 2.0], [2.0, 0.5, 0.5]])
        shifts = np.array([[0.0, 0.0, 0.0], [-2.0, 3.0, 1.0]])
        logs = -0.5 * np.square((x - shifts) / stds).sum(axis=1) - np.log(stds).sum(axis=1)
        total = float(np.logaddexp(*(logs + np.log([0.7, 0.3]))))
        return total - 1.5 * math.log(2.0 * math.pi), {"first": x[:1]}


def test_branches_of_a_density_get_parts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """One t along the axes of the first has few draws in the second, and misses it at times."""
    start = first_proposal(np.zeros(3), np.diag([0.01, 4.0, 4.0]))
    wide = SplitT(np.zeros(3), 3.0 * np.eye(3), np.ones(3), np.ones(3), 7.0)
    rounds = Rounds(200.0, True, 100, lambda recorded, W: 200.0, 4800)
    n_evaluations, n_wrong = np.zeros((2, 20)), np.zeros(2)
    for has_branches in (0, 1):
        monkeypatch.setattr(importance, "_MOST_BRANCHED", 8 * has_branches)
        for seed in range(20):
            options = replace(OPTIONS, entropy=seed)
            sample = importance_sample(Crossed(), start, rounds, options, wide)
            assert sample is not None
            n_evaluations[has_branches, seed] = len(sample.positions)
            n_wrong[has_branches] += abs(sample.log_evidence) > 0.15 or not sample.is_trusted
    assert n_evaluations[1].mean() < 0.75 * n_evaluations[0].mean()
    assert 2 * n_wrong[1] <= n_wrong[0], n_wrong


def test_each_part_of_a_mixture_is_fitted_to_its_own_positions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One t fitted to both would be as wide as they are apart."""
    monkeypatch.setattr(importance, "_TOLD", 0.0)  # nothing but the wide one defends
    rng = np.random.default_rng(6)
    n_own = np.array([300, 700])
    stds = np.repeat([0.4, 0.8], n_own)[:, np.newaxis]
    x = np.repeat(MODES * 3.0, n_own, axis=0) + stds * rng.standard_normal((1000, 6))
    firsts = [first_proposal(mode, 0.25 * np.eye(6)) for mode in MODES * 3.0]
    wide = SplitT(np.zeros(6), 5.0 * np.eye(6), np.ones(6), np.ones(6), 7.0)
    mixture = importance._Mixture(firsts, wide, 0.1, (slice(None),), None)
    learned = mixture.learned(x, np.zeros(1000), [300.0], is_open=False)
    drawn = learned.draw(rng, 20_000)
    # Both densities are of integral 1, and draws follow them: means of ratios are 1.
    ratio = np.exp(wide.log_density(drawn) - learned.log_density(drawn))
    assert abs(ratio.mean() - 1.0) < 5.0 * ratio.std() / math.sqrt(20_000)
    for k, std in enumerate((0.4, 0.8)):
        near = np.square(drawn - MODES[k] * 3.0).sum(axis=1) < 30.0
        assert abs(near.mean() - 0.9 * n_own[k] / 1000) < 0.04
        # Of a t with 7 degrees of freedom, and wider than what it was fitted to.
        assert np.isclose(drawn[near].std(), std * math.sqrt(7 / 5 * 7 / 6), rtol=0.15)


def test_there_is_nothing_to_weigh_where_there_is_no_mass() -> None:
    rounds = Rounds(50.0, True, 20, lambda recorded, W: 50.0, 60)
    assert importance_sample(Skewed(nowhere=True), START, rounds, OPTIONS) is None


@dataclass(frozen=True)
class Normal:
    """A normal with independent coordinates; its constant is left out."""

    mean: float
    std: float

    def __call__(self, x: np.ndarray) -> tuple[float, Mapping[str, np.ndarray]]:
        return -0.5 * float(np.square((x - self.mean) / self.std).sum()), {"square": x * x}


def test_any_number_of_processes_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    started = list[int]()
    make = importance.in_processes
    monkeypatch.setattr(
        importance, "in_processes", lambda n, calls: started.append(n) or make(n, calls)
    )
    samples = [run(wanted=60.0), run(wanted=60.0, n_jobs=2)]
    assert not started  # evaluations of microseconds are not worth the start of processes
    monkeypatch.setattr(importance, "_WORTH_PROCESSES", 0.0)
    samples.append(run(wanted=60.0, n_jobs=2))
    assert set(started) == {2}
    for other in samples[1:]:
        np.testing.assert_array_equal(samples[0].positions, other.positions)
        np.testing.assert_array_equal(samples[0].log_weights, other.log_weights)


@pytest.mark.parametrize(("sizes", "n_rounds"), [([2.0], 5), ([2.0] * 3, 4)])
def test_a_single_round_of_few_effective_draws_is_not_hopeless(
    sizes: list[float], n_rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fourth round's size is small: of it alone, or of two before it, too."""
    told = [20.0] * (4 - len(sizes)) + sizes + [500.0] * 4
    monkeypatch.setattr(importance, "_HOPELESS_ROUNDS", 4)
    monkeypatch.setattr(
        importance, "effective_sample_size", lambda _: told.pop(0) if told else 500.0
    )
    monkeypatch.setattr(importance, "fit_proposal", lambda first, positions, weights: first)
    assert len(run().log_weights) == 100 * n_rounds


def test_time_ends_rounds_between_evaluations() -> None:
    sample = run(wanted=1e9, deadline=time.monotonic() - 1.0)
    assert sample.is_late
    assert 0 < len(sample.log_weights) < 100
    np.testing.assert_allclose(
        sample.log_weights,
        sample.log_density - START.log_density(sample.positions),
        rtol=1e-12,
    )


def folder_of(path: Path, entropy: int = 3) -> RunOptions:
    folder = open_run(path, RunIdentity("data", {}, "0"), entropy)
    return replace(OPTIONS, run=folder)


@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_stopped_run_goes_on_to_the_same_bits(is_frozen: bool, tmp_path: Path) -> None:
    whole = run(is_frozen=is_frozen)
    late = {"deadline": time.monotonic() - 1.0, "is_frozen": is_frozen}
    stopped = run(folder_of(tmp_path), **late)
    assert 0 < len(stopped.log_weights) < len(whole.log_weights)
    resumed = run(folder_of(tmp_path), is_frozen=is_frozen)
    assert resumed.is_resumed
    np.testing.assert_array_equal(resumed.log_weights, whole.log_weights)
    np.testing.assert_array_equal(resumed.recorded["square"], whole.recorded["square"])


@pytest.mark.parametrize("from_the_end", [0, 1, 40])
def test_a_signal_in_any_evaluation_ends_the_run(
    from_the_end: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in the last: it was lost where nobody looked at it any more."""
    n_evaluations = len(run().positions)
    evaluate, seen = Skewed.__call__, []

    def interrupted(self, x: np.ndarray) -> tuple[float, Mapping[str, np.ndarray]]:
        seen.append(x)
        if len(seen) == n_evaluations - from_the_end:
            signal.raise_signal(signal.SIGTERM)
        return evaluate(self, x)

    monkeypatch.setattr(Skewed, "__call__", interrupted)
    with pytest.raises(SamplingStoppedError):
        run()


@pytest.mark.parametrize("df", [2.0, 4.0])
def test_imp_3_the_shape_of_the_tail_is_found(df: float) -> None:
    # Weights of a t against draws of a t with fewer degrees of freedom have a known tail: with
    # p(x) ~ x^-(a + 1) and q(x) ~ x^-(b + 1) the weight w ~ x^(b - a) exceeds t with probability
    # ~ t^(-b / (b - a)): shape 1 - a / b.
    rng, a = np.random.default_rng(5), 1.0
    shapes = [
        pareto_shape(t(a).logpdf(x) - t(df).logpdf(x))
        for x in t(df).rvs((20, 4000), random_state=rng)
    ]
    assert abs(np.mean(shapes) - (1.0 - a / df)) < 0.15


@pytest.mark.parametrize("n", [25, 100, 225, 226, 1000])
def test_imp_3_the_shape_is_that_of_another_package(n: int) -> None:
    from arviz_stats.base import array_stats

    log_weights = np.random.default_rng(n).standard_t(4.0, n)
    np.testing.assert_allclose(pareto_shape(log_weights), array_stats.psislw(-log_weights)[1])


def test_imp_3_one_draw_that_carries_all_has_no_tail_to_trust() -> None:
    log_weights = np.append(np.random.default_rng(0).normal(size=400), 1000.0)
    assert pareto_shape(log_weights) == np.inf
    assert pareto_shape(np.zeros(100)) == np.inf  # equal weights have none, either


def test_thinned_draws_keep_every_average_in_expectation() -> None:
    rng = np.random.default_rng(6)
    x, log_weights = rng.normal(size=300), 2.0 * rng.normal(size=300)
    W = np.exp(log_weights - logsumexp(log_weights))
    means = []
    for _ in range(400):
        kept, logs = thinned(rng, log_weights, 60)
        assert len(kept) == 60
        means.append(np.exp(logs) @ x[kept])
    # t < 5: false alarms below 1e-6.
    assert abs(np.mean(means) - W @ x) < 5.0 * np.std(means) / 20.0
    assert np.std(means) < 0.1
