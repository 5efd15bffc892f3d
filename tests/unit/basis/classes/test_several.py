"""Several classes by stick-breaking."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.basis.class_filter import ClassOutlook, ClassSeen, stick_proba
from mercer.basis.learner import ClassSettings

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
