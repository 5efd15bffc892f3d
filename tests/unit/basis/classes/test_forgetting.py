"""Forgetting of classes: weights by age, what particles carry, files, refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_expit

import mercer
from mercer.basis.class_filter import LEAST_WEIGHT, ClassSchedule, forgetting_schedule
from mercer.errors import UsageError
from mercer.posterior.container import read_container, write_container
from support.class_fits import bits, little, make_rows


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
            assert state.log_likelihood[i] == pytest.approx(weight @ logs, abs=1e-9)


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
    for name in ("rows/weight", "log_likelihood"):
        del arrays[f"state/filters/0/{name}"]
    write_container(tmp_path / "old.mercer", manifest, arrays)
    np.testing.assert_array_equal(
        mercer.load(tmp_path / "old.mercer").predict_proba(X), model.predict_proba(X)
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
