"""What a user sees of a population: weighted draws and diagnostics; its mean on few kernels.

What a user sees of a population: draws with weights, and what they say about themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.basis.ensemble import Bank, BankState, mean_function, noise_variances
from mercer.basis.learner import Running
from mercer.basis.length_scales import Levels
from mercer.basis.model import Array, Particles
from mercer.errors import DataError
from mercer.posterior.diagnostics import Diagnostics, diagnose
from mercer.posterior.draws import Draws, Table
from mercer.random import stream

__all__ = [
    "SparseSummary",
    "diagnose_population",
    "evidence_variance",
    "judge_ancestry",
    "log_evidence_error",
    "population_draws",
    "summarise",
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


# The posterior mean on a few kernels: greedy projection onto the candidates.
#
# Inference keeps its dense prior; only what is shown is made sparse. Kernels are taken one after
# the other, each the one that lowers most the squared distance to the posterior mean over the
# buffered rows, all coefficients fitted anew (orthogonal matching pursuit).

# Length scales with less of the posterior than this are not tried.
_LEAST_SHARE = 0.05
_DEPENDENT = 1e-10


@dataclass(frozen=True, eq=False)
class SparseSummary:
    """A sum of a few kernels.

    Attributes
    ----------
    centres : ndarray of shape (k, d)
        In units of the inputs.
    coef : ndarray of shape (k,)
        In units of the target.
    mean_coef : ndarray of shape (1,) or (1 + d,)
        Coefficients of the constant, then of the standardised inputs; in units of the target.
    lengthscale : float
        In standardised units.
    scaling : ndarray of shape (d,)
        Factors of the standardised inputs in the kernel.
    distance : float
        Root mean squared difference from the posterior mean over the rows, in units of the target.
    """

    centres: Array
    coef: Array
    mean_coef: Array
    lengthscale: float
    scaling: Array
    distance: float
    _standardised: Array
    _levels: Levels
    _standardizer: Any
    _names: tuple[str, ...]

    def predict(self, X: ArrayLike) -> Array:
        """Value of the sum at rows X (m, d), in units of the target."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != len(self._names) or not np.isfinite(X).all():
            raise DataError(f"X must be finite numbers of shape (m, {len(self._names)})")
        design = self._levels.design(self._standardizer.transform(X), self._standardised, 0)
        return np.asarray(design @ np.concatenate([self.mean_coef, self.coef]))

    def table(self) -> Table:
        """Tabulate centres and coefficients, the largest first."""
        order = np.argsort(-np.abs(self.coef), kind="stable")
        rows = tuple(tuple(float(v) for v in (self.coef[i], *self.centres[i])) for i in order)
        return Table(("coef", *self._names), rows)


def summarise(running: Running, names: tuple[str, ...], n_centres: int) -> SparseSummary:
    """Project the posterior mean on so many kernels.

    Raises
    ------
    DataError
        If there are fewer candidates, or no rows.
    """
    best = int(np.argmax(running.state.scores))
    filter_, state = running.bank.filters[best], running.state.states[best]
    r = state.statistics.n_candidates
    if n_centres > r:
        raise DataError(f"n_centres must be at most the number of candidates, {r}")
    Z = state.rows.X[: min(state.n_seen, len(state.rows.y))]
    target = mean_function(filter_, state, Z)
    m, weights = filter_.levels.n_mean, np.exp(state.particles.log_weight)
    shares, tried = np.bincount(state.particles.level, weights), []
    for level in np.flatnonzero(shares >= min(_LEAST_SHARE, shares.max())).tolist():
        design = filter_.levels.design(Z, state.centres[:r], level)
        chosen, coef, distance = _pursue(design, target, m, n_centres)
        tried.append((distance, level, chosen, coef))
    distance, level, chosen, coef = min(tried, key=lambda each: each[0])
    scale = running.scales.target
    coef = coef * scale.scale
    coef[0] += scale.centre
    centres = state.centres[chosen - m]
    return SparseSummary(
        centres=running.raw_inputs(centres),
        coef=coef[m:],
        mean_coef=coef[:m],
        lengthscale=float(filter_.levels.lengthscales[level % filter_.levels.n_widths]),
        scaling=filter_.levels.scalings[level // filter_.levels.n_widths],
        distance=distance * scale.scale,
        _standardised=centres,
        _levels=filter_.levels.only(level),
        _standardizer=running.scales.standardizer,
        _names=names,
    )


def _pursue(design: Array, target: Array, m: int, n_centres: int) -> tuple[Any, Array, float]:
    """Choose columns beyond the first m; return them, all coefficients, and the distance."""
    Q = np.linalg.qr(design[:, :m])[0]
    left = design - Q @ (Q.T @ design)
    rest = target - Q @ (Q.T @ target)
    lengths = np.einsum("ij,ij->j", design, design)
    chosen: list[int] = []
    for _ in range(n_centres):
        squares = np.einsum("ij,ij->j", left, left)
        usable = squares > _DEPENDENT * lengths
        usable[:m] = False
        if not usable.any():
            break
        gains = np.where(usable, (rest @ left) ** 2 / np.where(usable, squares, 1.0), -1.0)
        best = int(np.argmax(gains))
        q = left[:, best] / np.sqrt(squares[best])
        rest = rest - q * (q @ rest)
        left = left - np.outer(q, q @ left)
        chosen.append(best)
    columns = np.array([*range(m), *chosen])
    coef = np.linalg.lstsq(design[:, columns], target, rcond=None)[0]
    distance = float(np.sqrt(np.mean((design[:, columns] @ coef - target) ** 2)))
    return np.array(chosen, dtype=np.int64), np.asarray(coef), distance
