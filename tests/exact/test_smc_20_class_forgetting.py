"""SMC-20: likelihoods of classes to falling powers, against enumeration; moves under them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer.basis.class_filter import ClassFilter, ClassSchedule
from mercer.basis.class_loops import move_particles
from support.class_cases import largest_z, moved_from_exact, tiny_filter
from support.statistics import FALSE_ALARM, tiers

# Candidates held, schedule, rows, prior, weight of a row after the next.
CASES = {
    "all rows": (6, ClassSchedule(8, 1, 64), 6, True, 0.7),
    "sets of two, rows leave": (3, ClassSchedule(8, 2, 4), 7, False, 0.8),
}


def filter_of(case: str, n_particles: int) -> ClassFilter:
    n_slots, schedule, _, is_wide, retention = CASES[case]
    return tiny_filter(n_particles, n_slots, schedule, is_wide=is_wide, retention=retention)


def z_of(case: str, n_runs: int) -> float:
    """Largest |z| of evidence and cells, over its limit."""
    _, z, limit = largest_z(filter_of(case, 40), CASES[case][2], n_runs, len(CASES))
    return z / limit


@pytest.mark.parametrize("n_runs", tiers(100, 300))
@pytest.mark.parametrize("case", CASES)
def test_smc_20(case: str, n_runs: int) -> None:
    """False alarm 1e-6 over all; detects 17 % of the evidence (300 runs: 10 %)."""
    assert z_of(case, n_runs) < 1.0


@pytest.mark.parametrize("case", CASES)
def test_smc_20_one_round_of_moves(case: str) -> None:
    """False alarm 1e-6 over sets, 1e-6 over bias and scale: detects 4 % of a distribution."""
    sets, p = moved_from_exact(filter_of(case, 2), CASES[case][2], 20_000, 2, move_particles)
    assert sets < 1.0
    assert p > FALSE_ALARM / 4.0


def test_smc_20_sees_weights_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: rows count less, and particles keep the weights that they had before."""

    def faded(self, state):
        log_weight = state.particles.log_weight.copy()
        new = whole(self, state)
        new.particles.log_weight[:] = log_weight
        return replace(new, log_evidence=state.log_evidence)

    whole = ClassFilter.faded
    monkeypatch.setattr(ClassFilter, "faded", faded)
    assert z_of("all rows", 100) > 1.0


def test_smc_20_sees_moves_that_forget_nothing() -> None:
    """The mutant: moves look at all rows alike."""

    def plain(rng, design, labels, *rest) -> None:
        move_particles(rng, design, labels._replace(weight=np.zeros(0)), *rest)

    sets, p = moved_from_exact(filter_of("all rows", 2), 6, 20_000, 2, plain)
    assert sets > 1.0 or p < 0.01 * FALSE_ALARM
