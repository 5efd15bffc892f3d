"""IMP-2: the evidence by importance sampling has no bias, however few the evaluations.

Mean of the estimate over the evidence of a grid, 400 runs of 50 evaluations (200 of a frozen
proposal), proposals adapted after 25 or (slow) after every 10: |t| < 5.3, false alarm 2e-7 each.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from mercer.sampling import importance
from mercer.sampling.driver import RunOptions
from mercer.sampling.importance import (
    Proposal,
    Rounds,
    first_proposal,
    importance_sample,
    wide_proposal,
)
from support.gp_cases import grid_posterior

RUNS = 400
T_LIMIT = 5.3


def bias(
    n_parameters: int, n_rounds: int, *, is_frozen: bool = False, n_runs: int = RUNS
) -> tuple[float, float]:
    """Mean over runs of the evidence over the true one, less 1, and its t."""
    case = grid_posterior(n_parameters)
    model, maximum = case.model, case.maximum
    assert maximum.covariance is not None
    target = model.values(maximum.point, maximum.slopes, np.array([0]))
    start = first_proposal(maximum.point.position, maximum.covariance)
    wide = wide_proposal(model.prior.mean, model.prior.std)
    rounds, logs = Rounds(np.inf, is_frozen, 50 // n_rounds, lambda recorded, W: 25.0, 50), []
    for seed in range(n_runs):
        options = RunOptions(n_draws=1, n_warmup=1, n_chains=1, thin=1, entropy=seed)
        sample = importance_sample(target, start, rounds, options, wide)
        assert sample is not None
        logs.append(sample.log_evidence + model.prior.log_constant - case.log_evidence)
    excess = np.exp(logs) - 1.0
    return float(excess.mean()), float(excess.mean() / (excess.std(ddof=1) / np.sqrt(n_runs)))


@pytest.mark.parametrize(
    ("n_parameters", "n_rounds"),
    [
        (3, 2),
        pytest.param(1, 2, marks=pytest.mark.slow),
        pytest.param(3, 5, marks=pytest.mark.slow),
    ],
)
def test_imp_2_evidence_has_no_bias(n_parameters: int, n_rounds: int) -> None:
    assert abs(bias(n_parameters, n_rounds)[1]) < T_LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("n_runs", [200, RUNS])
def test_imp_2_evidence_of_a_frozen_proposal_has_no_bias(n_runs: int) -> None:
    assert abs(bias(2, 5, is_frozen=True, n_runs=n_runs)[1]) < T_LIMIT


def mixture(
    log_density: np.ndarray, positions: np.ndarray, proposals: list[Proposal], counts: list[int]
) -> tuple[float, float]:
    """All draws against the mixture of all proposals, as for averages."""
    logs = importance.weigh(log_density, positions, proposals[: len(counts)], counts)
    return float(logsumexp(logs) - np.log(len(logs))), 1.0


def own_round(
    log_density: np.ndarray, positions: np.ndarray, proposals: list[Proposal], counts: list[int]
) -> tuple[float, float]:
    """Every round against the proposal that was fitted to it, the last against its own."""
    shifted = [*proposals[1 : len(counts)], proposals[len(counts) - 1]]
    parts = np.split(np.arange(len(positions)), np.cumsum(counts)[:-1])
    logs = np.concatenate(
        [
            log_density[part] - proposal.log_density(positions[part])
            for part, proposal in zip(parts, shifted, strict=True)
        ]
    )
    return float(logsumexp(logs) - np.log(len(logs))), 1.0


@pytest.mark.parametrize(("mutant", "n_parameters"), [(mixture, 2), (own_round, 1)])
def test_imp_2_sees_proposals_that_see_their_own_round(
    mutant: object, n_parameters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importance, "evidence_of_rounds", mutant)
    assert abs(bias(n_parameters, 2)[1]) > T_LIMIT
