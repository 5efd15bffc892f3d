"""What a user sees of a population: draws with weights, and what they say about themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.basis.arrays import Array, Particles
from mercer.basis.bank import Bank, BankState
from mercer.basis.predict import noise_variances
from mercer.posterior.diagnostics import Diagnostics, diagnose
from mercer.posterior.draws import Draws
from mercer.random import stream

__all__ = [
    "diagnose_population",
    "evidence_variance",
    "judge_ancestry",
    "log_evidence_error",
    "population_draws",
]

_MONITORED = ("n_centres", "noise_std", "lengthscale")
# Fewer distinct ancestors over fifty rows than this share of the particles are pointed out.
_FEWEST_ANCESTORS = 0.02


def population_draws(bank: Bank, state: BankState, entropy: int) -> Draws:
    """Return all particles of all filters as weighted draws.

    Variables, each of shape (1, particles): "n_centres"; "noise_std" and "coef_std" (prior standard
    deviation of a coefficient), of the standardised target; "lengthscale", in standardised units.
    """
    rng = stream(entropy, "coefficients")
    columns: dict[str, list[Array]] = {name: [] for name in (*_MONITORED, "coef_std")}
    logs, targets = [], []
    for filter_, each, share in zip(bank.filters, state.states, state.log_weights, strict=True):
        particles = each.particles
        variance, degrees = noise_variances(filter_, each)
        if np.isfinite(degrees):  # scaled inverse chi-square
            variance = variance * degrees / rng.chisquare(degrees, len(variance))
        noise = np.sqrt(variance)
        columns["n_centres"].append(particles.size.astype(np.float64))
        columns["noise_std"].append(noise)
        columns["lengthscale"].append(
            filter_.levels.lengthscales[particles.level % filter_.levels.n_widths]
        )
        columns["coef_std"].append(noise * np.sqrt(particles.scale))
        logs.append(share + particles.log_weight)
        targets.append(particles.log_target)
    variables = {name: np.concatenate(parts)[np.newaxis] for name, parts in columns.items()}
    stats = {"log_density": np.concatenate(targets)[np.newaxis]}
    return Draws(variables, stats, {}, _MONITORED, np.concatenate(logs)[np.newaxis])


def diagnose_population(draws: Draws, state: BankState) -> Diagnostics:
    """Judge a population: effective sizes by the weights, and how many ancestors are left."""
    return judge_ancestry(draws, state.states, ", or forgetting if the stream changes")


def judge_ancestry(draws: Draws, states: Sequence[Any], remedy: str) -> Diagnostics:
    """Judge populations: effective sizes by the weights, and how many ancestors are left.

    Parameters
    ----------
    draws : Draws
    states : sequence of State or ClassState
    remedy : str
        What else to try where few ancestors are left; may be empty.
    """
    found = diagnose(draws)
    fewest = min(each.n_ancestors / len(each.particles.size) for each in states)
    if fewest >= _FEWEST_ANCESTORS:
        return found
    text = (
        f"the particles come from {100.0 * fewest:.2g} % of those fifty rows earlier: the rows "
        f"surprised them. Try more particles (n_particles){remedy}."
    )
    return replace(found, warnings=(*found.warnings, text))


def evidence_variance(state: Any) -> float:
    """Variance of the log evidence of a filter, in square nats.

    To first order: each time particles were resampled, and at the end, the relative variance of
    the mean weight is (N / ESS - 1) / N, as if the moves had made them independent in between.
    """
    weights = np.exp(state.particles.log_weight)
    last = float(weights @ weights / weights.sum() ** 2) - 1.0 / len(weights)
    return float(max(state.evidence_variance + last, 0.0))


def log_evidence_error(state: BankState) -> float:
    """Standard error of the log evidence of the one filter, in nats."""
    return math.sqrt(evidence_variance(state.states[0]))


def typical_particle(particles: Particles) -> int:
    """Position of the particle to show: of a mean size, and of those with the highest target."""
    mean = np.exp(particles.log_weight) @ particles.size
    distances = np.abs(particles.size - mean)
    is_near = distances == distances.min()
    return int(np.argmax(np.where(is_near, particles.log_target, -np.inf)))
