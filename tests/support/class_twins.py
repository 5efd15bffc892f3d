"""Plain twins of the compiled loops for classes, with the same random stream."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.likelihoods.polya_gamma import fill_polya_gamma

Draw = Callable[[np.random.Generator, int, np.ndarray], np.ndarray]


def fresh(rng: np.random.Generator, i: int, f: np.ndarray) -> np.ndarray:
    """Omega of particle i given the latent values of the rows."""
    omega = np.empty(len(f))
    fill_polya_gamma(rng, f, len(f), omega)
    return omega


class Weighted:
    """Evidence of sets of columns K (n, C) with row weights omega, b = K'(y - 1/2)."""

    def __init__(self, prior: Any, K: np.ndarray, omega: np.ndarray, b: np.ndarray) -> None:
        self._prior, self._K, self._omega, self._b = prior, K, omega, b

    def factor(self, columns: list[int], scale: float) -> tuple[np.ndarray, np.ndarray]:
        """Upper factor of A, and U'^-1 b."""
        K, m = self._K[:, columns], self._prior.n_mean
        ridge = np.full(len(columns), 1.0 / scale)
        ridge[:m] = self._prior.slope_precision
        ridge[0] = self._prior.constant_precision
        L = np.linalg.cholesky((K * self._omega[:, None]).T @ K + np.diag(ridge))
        return L.T, np.linalg.solve(L, self._b[columns])

    def evidence(self, columns: list[int], scale: float) -> float:
        """Log evidence, up to a constant of the omegas."""
        U, w = self.factor(columns, scale)
        m = self._prior.n_mean
        half_prior = math.log(self._prior.constant_precision)
        half_prior += (m - 1) * math.log(self._prior.slope_precision)
        half_prior -= (len(columns) - m) * math.log(scale)
        return 0.5 * (w @ w + half_prior) - float(np.log(np.diag(U)).sum())


def _columns(particles: Any, i: int, m: int) -> list[int]:
    return [*range(m), *particles.members[i, : particles.size[i]].tolist()]


def _weighted(
    rng: np.random.Generator, design: np.ndarray, moment: np.ndarray, n: int, prior: Any,
    particles: Any, i: int, draw: Draw,
) -> tuple[Weighted, list[int], np.ndarray]:  # fmt: skip
    level = particles.level[i]
    columns, K = _columns(particles, i, prior.n_mean), design[level, :, :n].T
    omega = draw(rng, i, K[:, columns] @ particles.beta[i, : len(columns)])
    return Weighted(prior, K, omega, moment[level]), columns, omega


def _put(rng, prior, particles, i, columns, model) -> None:
    U, w = model.factor(columns, particles.scale[i])
    particles.beta[i, : len(columns)] = np.linalg.solve(U, w + rng.standard_normal(len(columns)))
    particles.size[i] = len(columns) - prior.n_mean
    particles.members[i, : particles.size[i]] = columns[prior.n_mean :]


def _stays(size: int, largest: int) -> float:
    return 1.0 if size == 0 else (0.0 if size == largest else 0.5)


def _plain_redraw(rng, prior, log_size, columns, largest, n_columns, scale, model) -> list[int]:
    m = prior.n_mean
    if rng.random() >= _stays(len(columns) - m, largest):
        del columns[rng.integers(m, len(columns))]
    k = len(columns) - m
    if k >= min(largest, n_columns - m):
        return columns
    free = [c for c in range(m, n_columns) if c not in columns]
    logs = [model.evidence(columns, scale) + log_size[k] + math.log(_stays(k, largest))]
    into = math.log((1.0 - _stays(k + 1, largest)) / (k + 1)) + log_size[k + 1]
    logs += [model.evidence([*columns, c], scale) + into for c in free]
    weights = np.exp(np.array(logs) - max(logs))
    place = int(np.searchsorted(np.cumsum(weights), rng.random() * weights.sum(), side="right"))
    return [*columns, free[place - 1]] if place else columns


def plain_move(
    rng, design, moment, n, prior, log_size, n_widths, n_candidates, n_redraws, particles,
    draw: Draw = fresh,
) -> None:  # fmt: skip
    """`move_particles` for one scaling of the inputs."""
    m, largest = prior.n_mean, particles.members.shape[1]
    for i in range(len(particles.size)):
        scale = particles.scale[i]
        model, columns, omega = _weighted(rng, design, moment, n, prior, particles, i, draw)
        for _ in range(n_redraws):
            columns = _plain_redraw(
                rng, prior, log_size, columns, largest, m + n_candidates, scale, model
            )
        level = particles.level[i] + (1 if rng.random() < 0.5 else -1)
        if 0 <= level < n_widths:
            there = Weighted(prior, design[level, :, :n].T, omega, moment[level])
            ratio = there.evidence(columns, scale) - model.evidence(columns, scale)
            if math.log(1.0 - rng.random()) < ratio:
                model, particles.level[i] = there, level
        _put(rng, prior, particles, i, columns, model)
        beta = particles.beta[i, m : len(columns)]
        shape = prior.scale_shape + 0.5 * len(beta)
        rate = prior.scale_rate + 0.5 * float(beta @ beta)
        particles.scale[i] = rate / rng.standard_gamma(shape)


def _normalise(log_weight: np.ndarray) -> float:
    total = float(np.logaddexp.reduce(log_weight))
    log_weight -= total
    return total


def plain_admit(rng, design, moment, n, prior, log_sizes, new, particles) -> float:
    """`admit`."""
    largest, m = particles.members.shape[1], prior.n_mean
    for i in range(len(particles.size)):
        scale = particles.scale[i]
        model, columns, _ = _weighted(rng, design, moment, n, prior, particles, i, fresh)
        for a, column in enumerate(new):
            k, evidence = len(columns) - m, model.evidence(columns, scale)
            without, with_it = evidence + log_sizes[a + 1, k], -math.inf
            if k < largest:
                with_it = model.evidence([*columns, column], scale) + log_sizes[a + 1, k + 1]
            both = float(np.logaddexp(without, with_it))
            particles.log_weight[i] += both - evidence - log_sizes[a, k]
            if math.log(1.0 - rng.random()) < with_it - both:
                columns = [*columns, int(column)]
        _put(rng, prior, particles, i, columns, model)
    return _normalise(particles.log_weight)


def plain_retire(rng, design, moment, n, prior, log_sizes, old, particles) -> float:
    """`retire`."""
    largest, m = particles.members.shape[1], prior.n_mean
    for i in range(len(particles.size)):
        scale = particles.scale[i]
        model, columns, _ = _weighted(rng, design, moment, n, prior, particles, i, fresh)
        for a, column in enumerate(old):
            columns = [c for c in columns if c != column]
            k, evidence = len(columns) - m, model.evidence(columns, scale)
            both = evidence + log_sizes[a, k]
            if k < largest:
                with_it = model.evidence([*columns, column], scale) + log_sizes[a, k + 1]
                both = float(np.logaddexp(both, with_it))
            particles.log_weight[i] += evidence + log_sizes[a + 1, k] - both
        _put(rng, prior, particles, i, columns, model)
    return _normalise(particles.log_weight)
