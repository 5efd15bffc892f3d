"""Plain twins of the compiled loops for classes, with the same random stream."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


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


def _stays(size: int, largest: int) -> float:
    return 1.0 if size == 0 else (0.0 if size == largest else 0.5)


def _normalise(log_weight: np.ndarray) -> float:
    total = float(np.logaddexp.reduce(log_weight))
    log_weight -= total
    return total


def with_mean(prior: Any, products: np.ndarray, moments: np.ndarray) -> tuple[Any, Any]:
    """Take back `mercer.basis.class_loops.eliminate_mean` at all levels (L, C, C), (L, C)."""
    m = prior.n_mean
    mean, rest = np.triu(products[:, :m]), products.copy()
    rest[:, :m], rest[:, :, :m] = 0.0, 0.0
    gram = np.swapaxes(mean, 1, 2) @ mean + rest
    ridge = np.full(m, prior.slope_precision)
    ridge[0] = prior.constant_precision
    gram[:, np.arange(m), np.arange(m)] -= ridge
    moment = np.einsum("lmc,lm->lc", mean, moments[:, :m])
    moment[:, m:] += moments[:, m:]
    return gram, moment


class Approximated:
    """The quadratic approximation by a regression with row weights omega, b = its moment."""

    def __init__(self, prior, design, sign, omega, moment, n) -> None:
        self._prior, self._sign, self._moment = prior, sign[:n], moment
        self._K = [each[:, :n].T for each in design]
        self.models = [
            Weighted(prior, K, omega[:n], b) for K, b in zip(self._K, moment, strict=True)
        ]
        self.gram = np.array([(K * omega[:n, None]).T @ K for K in self._K])

    def excess(self, level: int, columns: list[int], beta: np.ndarray) -> float:
        """Log likelihood less its approximation."""
        f = self._K[level][:, columns] @ beta
        near = self._moment[level, columns] @ beta
        near -= 0.5 * beta @ self.gram[level][np.ix_(columns, columns)] @ beta
        return float(-np.logaddexp(0.0, -self._sign * f).sum() - near)

    def along(self, level: int, columns: list[int], scale: float, new: int) -> np.ndarray:
        """How the others' coefficients stand in for a centre's."""
        U, _ = self.models[level].factor(columns, scale)
        s = self.gram[level][new, columns]
        return np.linalg.solve(U, np.linalg.solve(U.T, s))

    def with_centre(self, rng, level, columns, scale, beta, new) -> tuple[list[int], np.ndarray]:
        """A centre more, its coefficient drawn."""
        U, w = self.models[level].factor([*columns, new], scale)
        value = w[-1] / U[-1, -1] + rng.standard_normal() / U[-1, -1]
        rest = beta - value * self.along(level, columns, scale, new)
        return [*columns, new], np.append(rest, value)

    def without(self, level, columns, scale, beta, position) -> tuple[list[int], np.ndarray]:
        """A centre less."""
        new, value = columns[position], beta[position]
        columns = columns[:position] + columns[position + 1 :]
        rest = np.delete(beta, position) + value * self.along(level, columns, scale, new)
        return columns, rest


def _taken_by(rng: np.random.Generator, log_ratio: float) -> bool:
    return bool(math.log(1.0 - rng.random()) < log_ratio)


def _put_back(particles: Any, i: int, m: int, columns: list[int], beta: np.ndarray) -> None:
    particles.size[i] = len(columns) - m
    particles.members[i, : len(columns) - m] = columns[m:]
    particles.beta[i, : len(columns)] = beta


def _plain_rotate(rng, near, level, columns, scale, beta, excess, taken) -> np.ndarray:
    U, w = near.models[level].factor(columns, scale)
    mean = np.linalg.solve(U, w)
    aside = np.linalg.solve(U, rng.standard_normal(len(columns)))
    limit = -math.inf if taken is not _taken_by else excess + math.log(1.0 - rng.random())
    angle = 2.0 * math.pi * rng.random()
    lower, upper = angle - 2.0 * math.pi, angle
    while True:
        new = mean + math.cos(angle) * (beta - mean) + math.sin(angle) * aside
        if near.excess(level, columns, new) > limit:
            return new
        lower, upper = (angle, upper) if angle < 0.0 else (lower, angle)
        angle = lower + (upper - lower) * rng.random()


def _plain_carried(rng, near, level, m, log_size, new, values, largest, n_candidates, scale):
    model = near.models[level]
    if rng.random() >= _stays(len(new) - m, largest):
        position = m + int((len(new) - m) * rng.random())
        new, values = near.without(level, new, scale, values, position)
    k = len(new) - m
    if k >= min(largest, n_candidates):
        return new, values
    free = [c for c in range(m, m + n_candidates) if c not in new]
    logs = [model.evidence(new, scale) + log_size[k] + math.log(_stays(k, largest))]
    into = math.log((1.0 - _stays(k + 1, largest)) / (k + 1)) + log_size[k + 1]
    logs += [model.evidence([*new, c], scale) + into for c in free]
    weights = np.exp(np.array(logs) - max(logs))
    drawn = rng.random() * weights.sum()
    place = int(np.searchsorted(np.cumsum(weights), drawn, side="right"))
    if place:
        return near.with_centre(rng, level, new, scale, values, free[place - 1])
    return new, values


def plain_move(
    rng, near: Approximated, prior, log_size, n_widths, n_candidates, n_redraws, particles,
    taken: Callable[[np.random.Generator, float], bool] = _taken_by,
) -> None:  # fmt: skip
    """`move` for one scaling of the inputs."""
    m, largest = prior.n_mean, particles.members.shape[1]
    for i in range(len(particles.size)):
        level, scale = int(particles.level[i]), float(particles.scale[i])
        columns = _columns(particles, i, m)
        beta = particles.beta[i, : len(columns)].copy()
        excess, model = near.excess(level, columns, beta), near.models[level]
        new, values = columns, beta
        for _ in range(n_redraws):
            new, values = _plain_carried(
                rng, near, level, m, log_size, new, values, largest, n_candidates, scale
            )
        proposed = near.excess(level, new, values)
        if taken(rng, proposed - excess):
            columns, beta, excess = new, values, proposed
        other = level + (1 if rng.random() < 0.5 else -1)
        if 0 <= other < n_widths:
            ratio = near.models[other].evidence(columns, scale) - model.evidence(columns, scale)
            if _taken_by(rng, ratio):
                U, w = near.models[other].factor(columns, scale)
                values = np.linalg.solve(U, w + rng.standard_normal(len(columns)))
                proposed = near.excess(other, columns, values)
                if taken(rng, proposed - excess):
                    level, beta, excess = other, values, proposed
        beta = _plain_rotate(rng, near, level, columns, scale, beta, excess, taken)
        particles.level[i] = level
        _put_back(particles, i, m, columns, beta)
        rate = prior.scale_rate + 0.5 * float(beta[m:] @ beta[m:])
        shape = prior.scale_shape + 0.5 * (len(columns) - m)
        particles.scale[i] = rate / rng.standard_gamma(shape)


def plain_admit(rng, near: Approximated, prior, log_sizes, new, particles):
    """`admit`."""
    largest, m = particles.members.shape[1], prior.n_mean
    for i in range(len(particles.size)):
        level, scale = int(particles.level[i]), float(particles.scale[i])
        columns, model = _columns(particles, i, m), near.models[level]
        beta = particles.beta[i, : len(columns)].copy()
        before = near.excess(level, columns, beta)
        for a, column in enumerate(new):
            k, evidence = len(columns) - m, model.evidence(columns, scale)
            without, with_it = evidence + log_sizes[a + 1, k], -math.inf
            if k < largest:
                with_it = model.evidence([*columns, column], scale) + log_sizes[a + 1, k + 1]
            both = float(np.logaddexp(without, with_it))
            particles.log_weight[i] += both - evidence - log_sizes[a, k]
            if _taken_by(rng, with_it - both):
                columns, beta = near.with_centre(rng, level, columns, scale, beta, int(column))
        particles.log_weight[i] += near.excess(level, columns, beta) - before
        _put_back(particles, i, m, columns, beta)
    return _normalise(particles.log_weight)


def plain_retire(near: Approximated, prior, log_sizes, old, particles):
    """`retire`."""
    largest, m = particles.members.shape[1], prior.n_mean
    for i in range(len(particles.size)):
        level, scale = int(particles.level[i]), float(particles.scale[i])
        columns, model = _columns(particles, i, m), near.models[level]
        beta = particles.beta[i, : len(columns)].copy()
        before = near.excess(level, columns, beta)
        for a, column in enumerate(old):
            if column in columns:
                place = columns.index(column)
                columns, beta = near.without(level, columns, scale, beta, place)
            k, evidence = len(columns) - m, model.evidence(columns, scale)
            both = evidence + log_sizes[a, k]
            if k < largest:
                with_it = model.evidence([*columns, column], scale) + log_sizes[a, k + 1]
                both = float(np.logaddexp(both, with_it))
            particles.log_weight[i] += evidence + log_sizes[a + 1, k] - both
        particles.log_weight[i] += near.excess(level, columns, beta) - before
        _put_back(particles, i, m, columns, beta)
    return _normalise(particles.log_weight)
