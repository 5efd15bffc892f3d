"""SMC-13: what a particle carries is what it would be if worked out afresh, after every row."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.basis.filter import Filter, State
from support import basis_mutants
from support.basis_cases import masks_of, plain_design
from support.basis_enumeration import Enumerated
from support.basis_runs import CASES, case


def largest_error(filter_: Filter, state: State, X: np.ndarray, y: np.ndarray) -> float:
    """Of all log targets, from dense algebra over the rows."""
    exact, particles = Enumerated(filter_, plain_design(filter_, X), y, 2, 2), state.particles
    masks = masks_of(particles, filter_.grid.n_mean)
    errors = [
        particles.log_target[i]
        - exact.log_target(int(particles.level[i]), int(mask), particles.scale[i], noise)
        for i, (mask, noise) in enumerate(zip(masks, particles.noise, strict=True))
    ]
    return float(np.abs(errors).max())


def errors_after_rows(name: str) -> list[float]:
    filter_, X, y = case(name)
    rng = np.random.default_rng(13)
    state, errors = filter_.init(rng), []
    for t in range(len(X)):
        state, _ = filter_.learn(rng, state, X[t], float(y[t]))
        particles = state.particles
        assert abs(np.exp(particles.log_weight).sum() - 1.0) < 1e-12
        held = np.arange(particles.members.shape[1]) < particles.size[:, None]
        bits = masks_of(particles, filter_.grid.n_mean)
        assert np.all(held.sum(axis=1) == [int(mask).bit_count() for mask in bits])
        errors.append(largest_error(filter_, state, X[: t + 1], y[: t + 1]))
    return errors


@pytest.mark.parametrize("name", CASES)
def test_smc_13(name: str) -> None:
    """Weights sum to 1, no centre is held twice, and every log target is right to 1e-8."""
    assert max(errors_after_rows(name)) < 1e-8


@pytest.mark.parametrize("name", ["integrated", "evictions, sampled"])
def test_smc_13_sees_stale_targets(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    basis_mutants.stale_target(monkeypatch)
    assert max(errors_after_rows(name)) > 0.1
