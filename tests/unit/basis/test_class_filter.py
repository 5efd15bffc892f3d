"""The filter of classes: targets, forgetting, schedule, several classes."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, log_expit
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import mercer
from mercer.basis.class_filter import (
    LEAST_WEIGHT,
    ClassFilter,
    ClassOutlook,
    ClassSchedule,
    ClassSeen,
    ClassState,
    default_prior,
    forgetting_schedule,
    stick_proba,
)
from mercer.basis.classifier import SequentialKernelClassifier, log_targets
from mercer.basis.learner import ClassSettings
from mercer.basis.length_scales import LengthScaleGrid
from mercer.basis.model import Reservoir, SetPrior
from mercer.errors import UsageError
from mercer.posterior.container import read_container, write_container
from support.class_fits import bits, little, make_rows
from support.class_twins import with_mean

# The filter of two classes: rows held, candidates, numbers far out, quality.


LEVELS = LengthScaleGrid(np.array([1.0, 0.5, 0.25]), np.ones((1, 2)), "matern32", linear_part=True)


def made(n_buffered: int, n_slots: int = 5) -> ClassFilter:
    return ClassFilter(
        8, default_prior(3), SetPrior("poisson", 2.0, 4), LEVELS,
        Reservoir(n_slots, 1, is_forgetting=False), ClassSchedule(2, 2, n_buffered), "systematic",
    )  # fmt: skip


def run(filter_: ClassFilter, X: np.ndarray) -> ClassState:
    rng = np.random.default_rng(0)
    state = filter_.init(rng)
    for t, x in enumerate(X):
        state, _ = filter_.learn(rng, state, x, 1.0 if t % 3 else -1.0)
    return state


@pytest.mark.parametrize("n_rows", [5, 64, 65, 90, 250])
def test_the_ring_holds_the_last_rows_and_their_design(n_rows: int) -> None:
    X = np.random.default_rng(1).standard_normal((n_rows, 2))
    state = run(made(80), X)
    n, r = state.n_held, state.n_candidates
    assert n == min(n_rows, 80)
    order = np.argsort(np.arange(n_rows - n, n_rows) % len(state.rows.sign))
    assert np.array_equal(state.rows.X[:n], X[n_rows - n :][order])
    for level in range(3):
        design = LEVELS.design(state.rows.X[:n], state.centres[:r], level)
        np.testing.assert_allclose(state.rows.design[level, : 3 + r, :n].T, design, atol=1e-12)
    assert r + state.is_waiting[r:].sum() == min(n_rows, 5)


@pytest.mark.parametrize("n_rows", [72, 200])
def test_the_approximation_is_about_the_rows_held(n_rows: int) -> None:
    """Its sums are those of the anchors, after a round ends; anchors fit the labels."""
    X = np.random.default_rng(1).standard_normal((n_rows, 2))
    filter_, rng = made(80, 20), np.random.default_rng(0)
    state = filter_.init(rng)
    for x in X:
        state, _ = filter_.learn(rng, state, x, 1.0 if x[0] > 0.2 else -1.0)
    state = filter_._approximate(state, state.n_candidates)
    n, C, near = state.n_held, 3 + state.n_candidates, state.approximation
    sign, anchor = state.rows.sign[:n], near.anchor[:n]
    assert np.mean((anchor > 0.0) == (sign > 0.0)) > 0.9
    proba = expit(anchor)
    weight = proba * (1.0 - proba)
    right = 0.5 * (1.0 + sign) - proba + weight * anchor
    gram, moment = with_mean(filter_.prior, near.products, near.moments)
    for level in range(3):
        K = state.rows.design[level, :C, :n]
        np.testing.assert_allclose(gram[level, :C, :C], (K * weight) @ K.T, atol=1e-10)
        np.testing.assert_allclose(moment[level, :C], K @ right, atol=1e-10)


def test_candidates_wait_until_the_next_move() -> None:
    X = np.random.default_rng(1).standard_normal((11, 2))
    state = run(made(80, 20), X)
    assert state.n_candidates == 8
    assert np.flatnonzero(state.is_waiting).tolist() == [8, 9, 10]
    assert np.array_equal(state.waiting[8:11], X[8:])


def test_what_is_said_before_is_what_is_predicted() -> None:
    X = np.random.default_rng(2).standard_normal((20, 2))
    filter_ = made(80)
    state = run(filter_, X)
    seen = filter_.look(copy.deepcopy(state), X[3] + 0.1)
    assert seen.proba == pytest.approx(filter_.predict(state, X[3:4] + 0.1)[0], abs=1e-12)


def test_targets_of_particles() -> None:
    filter_ = made(80)
    state = run(filter_, np.random.default_rng(3).standard_normal((9, 2)))
    p, got = state.particles, log_targets(filter_, state)
    for i in range(8):
        k, g = p.size[i], p.scale[i]
        columns = [0, 1, 2, *p.members[i, :k]]
        f = state.rows.design[p.level[i]][columns, :9].T @ p.beta[i, : 3 + k]
        y = state.rows.sign[:9] > 0
        expected = np.log(np.where(y, expit(f), expit(-f))).sum()
        squares = p.beta[i, :3] ** 2 @ [1.0, 2.0, 2.0]  # slopes of two inputs share the variance
        expected += filter_.sets.log_size(state.n_candidates)[k] - 1.5 / np.pi**2 * squares
        expected += -0.5 * (p.beta[i, 3 : 3 + k] ** 2).sum() / g - 0.5 * k * np.log(2 * np.pi * g)
        expected += 0.5 * np.log(0.1 / np.pi) - 1.5 * np.log(g) - 0.1 / g
        assert got[i] == pytest.approx(expected)


@pytest.mark.parametrize("value", [1e8, 1e50, 1e99])
def test_inputs_far_out_leave_finite_numbers(value: float) -> None:
    X = np.random.default_rng(4).standard_normal((40, 2))
    X[7] *= value
    X[20:23] = X[19]
    state = run(made(16), X)
    assert np.isfinite(state.particles.beta).all()
    assert np.isfinite(state.particles.log_weight).all()
    assert np.isfinite(state.log_evidence)


def test_log_loss_is_at_most_that_of_a_gaussian_process() -> None:
    """Ripley's mixture. Over four sets of 250 the means are .245 and .258."""
    rng = np.random.default_rng(0)
    y, part = rng.integers(0, 2, (2, 1200))
    means = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])[y, part]
    X = (means + np.sqrt(0.03) * rng.standard_normal((1200, 2))) * 3.0
    model = SequentialKernelClassifier(n_particles=150, random_state=0).fit(X[:200], y[:200])
    other = GaussianProcessClassifier(ConstantKernel(1.0) * RBF(1.0)).fit(X[:200], y[:200])
    losses = [
        -np.log(each.predict_proba(X[200:])[np.arange(1000), y[200:]]).mean()
        for each in (model, other)
    ]
    assert losses[0] < losses[1] + 0.005


# Forgetting of classes: weights by age, what particles carry, files, refusals.


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_weigh_by_what_came_after_them(n_classes: int) -> None:
    """Also rows of classes that a filter does not learn; particles carry what rows say so."""
    X, y = make_rows(40, n_classes)
    classes = np.unique(y)
    model = little(forgetting=0.9).partial_fit(X, y, classes)
    for c, (filter_, state) in enumerate(
        zip(model._learner.running.sticks.filters, model._learner.running.state.states, strict=True)
    ):
        learned = np.flatnonzero(np.searchsorted(classes, y) >= c)
        n_ring = len(state.rows.sign)
        kept = learned[-n_ring:]
        weight = np.empty(len(kept))
        weight[np.arange(len(learned))[-n_ring:] % n_ring] = 0.9 ** (len(y) - 1 - kept)
        np.testing.assert_allclose(state.rows.weight[: len(kept)], weight, rtol=1e-12)
        particles, m = state.particles, filter_.prior.n_mean
        for i, size in enumerate(particles.size):
            columns = [*range(m), *particles.members[i, :size]]
            design = state.rows.design[particles.level[i], columns, : len(kept)]
            logs = log_expit(
                state.rows.sign[: len(kept)] * (particles.beta[i, : m + size] @ design)
            )
            assert particles.log_likelihood[i] == pytest.approx(weight @ logs, abs=1e-9)


def test_forgetting_follows_what_changes() -> None:
    """Labels turn round half way: a model that forgets is right again, one that does not errs."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (400, 1))
    y = (X[:, 0] > 0.0) ^ (np.arange(400) >= 200)
    late = slice(280, None)
    scores = [
        little(forgetting=g, n_buffered=400).prequential(X, y).log_density[late].mean()
        for g in (1.0, 0.95)
    ]
    assert scores[1] > scores[0] + 0.2


def test_a_stream_that_forgets_goes_on_to_the_bit(tmp_path: Path) -> None:
    X, y = make_rows(50, 3)
    model = little(forgetting=0.9).partial_fit(X[:37], y[:37], np.unique(y))
    model.save(tmp_path / "m.mercer")
    resumed = mercer.load(tmp_path / "m.mercer")
    assert bits(resumed.partial_fit(X[37:], y[37:])) == bits(model.partial_fit(X[37:], y[37:]))


def test_a_file_of_before_has_no_weights(tmp_path: Path) -> None:
    X, y = make_rows(50)
    model = little().fit(X, y)
    model.save(tmp_path / "m.mercer")
    manifest, arrays = read_container(tmp_path / "m.mercer")
    for name in ("rows/weight", "particles/log_likelihood"):
        del arrays[f"state/filters/0/{name}"]
    write_container(tmp_path / "old.mercer", manifest, arrays)
    old = mercer.load(tmp_path / "old.mercer")
    np.testing.assert_array_equal(old.predict_proba(X), model.predict_proba(X))
    np.testing.assert_allclose(
        *(each._learner.running.state.states[0].particles.log_likelihood for each in (old, model)),
        rtol=1e-10,
    )


def test_rows_are_held_until_they_weigh_a_thousandth() -> None:
    schedule = forgetting_schedule(ClassSchedule(n_buffered=1024), 0.99)
    assert 0.99**schedule.n_buffered <= LEAST_WEIGHT < 0.99 ** (schedule.n_buffered - 1)
    assert schedule.period(10_000) == ClassSchedule().period(300)
    assert forgetting_schedule(ClassSchedule(), 1.0) == ClassSchedule()


def test_there_is_no_evidence() -> None:
    X, y = make_rows(30)
    model = little(forgetting=0.9).fit(X, y)
    assert not hasattr(model, "log_evidence_")
    assert not hasattr(model, "log_evidence_se_")


@pytest.mark.parametrize("value", [0.4, 1.1, "auto", (1.0, 0.9)])
def test_what_is_refused(value: object) -> None:
    X, y = make_rows(30)
    with pytest.raises(UsageError, match=r"forgetting must be .* \[0.5, 1\]"):
        little(forgetting=value).fit(X, y)


# When particles are moved.


def test_candidates_change_hands_so_often_in_each_doubling() -> None:
    schedule = ClassSchedule(per_doubling=16, n_buffered=1 << 20, is_rare=True)
    assert all(schedule.renews_at(n) for n in range(1, 33))
    for power, times in ((32, 16), (64, 16), (128, 4), (256, 4), (512, 4), (4096, 4)):
        assert sum(schedule.renews_at(n) for n in range(power, 2 * power)) == times


def test_they_do_evenly_once_the_buffer_is_full() -> None:
    schedule = ClassSchedule(per_doubling=4, n_buffered=32)
    assert [n for n in range(100, 140) if schedule.renews_at(n)] == [104, 112, 120, 128, 136]
    rare = ClassSchedule(per_doubling=4, n_buffered=32, is_rare=True)
    assert [n for n in range(100, 140) if rare.renews_at(n)] == [128]


def test_a_round_moves_each_particle_once() -> None:
    schedule = ClassSchedule(per_doubling=4, n_buffered=1 << 20)
    for first in (70, 1024):
        period = schedule.period(1024) if first == 1024 else schedule.period(70)
        start = -(-first // period) * period
        shares = [schedule.share(t, 250) for t in range(start, start + period)]
        assert [i for a, b in shares for i in range(a, b)] == list(range(250))


# Several classes by stick-breaking.


SETTINGS = ClassSettings(
    kernel="rbf", lengthscale=(1.0,), n_particles=10, expected_centres=2.0, max_centres=3,
    max_candidates=5, centres_prior="poisson", linear_part=True, resampling="systematic",
    n_buffered=64,
)  # fmt: skip


def test_probabilities() -> None:
    success = np.array([[0.5, 0.1], [0.2, 1.0]])
    np.testing.assert_allclose(stick_proba(success), [[0.5, 0.1, 0.4], [0.1, 0.9, 0.0]], atol=1e-11)
    assert (stick_proba(success) > 0.0).all()
    assert (stick_proba(np.array([[1.0, 0.0]])) < 1.0).all()


def test_each_filter_learns_the_rows_of_its_class_and_later_ones() -> None:
    sticks, rng = SETTINGS.sticks(np.ones(1), 2, 3, 0, 1), np.random.default_rng(0)
    state, X = sticks.init(rng), np.random.default_rng(1).standard_normal((30, 2))
    labels, total = np.arange(30) % 3, 0.0
    for x, label in zip(X, labels, strict=True):
        said = sticks.proba(state, x[np.newaxis])[0]
        state, outlook = sticks.learn(rng, state, x, int(label))
        if min(s.n_seen for s in state.states) < 3:
            continue
        # only what a filter says just before it resamples may differ
        total += abs(float(outlook.log_density - np.log(said[label]))) > 1e-9
    assert total < 15
    assert [each.n_seen for each in state.states] == [30, 20]
    assert np.array_equal(state.states[1].rows.X[:20], X[labels > 0])
    assert state.states[1].rows.sign[:4].tolist() == [1.0, -1.0, 1.0, -1.0]


def test_evidence_is_that_of_two_classes_where_there_are_two() -> None:
    sticks, rng = SETTINGS.sticks(np.ones(1), 1, 2, 0, 1), np.random.default_rng(0)
    state, total = sticks.init(rng), 0.0
    for t in range(6):
        state, outlook = sticks.learn(rng, state, np.array([0.1 * t]), t % 2)
        total += outlook.log_density
    assert state.states[0].log_evidence == pytest.approx(total, abs=3.0)


def test_intervals_of_probabilities_are_those_of_the_particles() -> None:
    """Two classes: weighted quantiles; three: products of independent draws, by a million."""
    rng = np.random.default_rng(3)
    for n_filters in (1, 2):
        seen = [
            ClassSeen(0.0, 1.0, rng.beta(2.0, 3.0, 300), rng.dirichlet(np.full(300, 2.0)))
            for _ in range(n_filters)
        ]
        outlook = ClassOutlook(np.empty(0), 0.0, 1.0, tuple(seen))
        lower, upper = outlook.interval(0.8)
        drawn = np.stack([rng.choice(s.each, size=10**6, p=s.weights) for s in seen])
        ends = np.quantile(stick_proba(drawn), (0.1, 0.9), axis=0)
        np.testing.assert_allclose([lower, upper], ends, atol=0.03)
        assert (upper - lower > 0.1).all()
