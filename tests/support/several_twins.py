"""Moves of several classes in plain NumPy, from the same stream as the compiled loops.

The twin of a line move knows nothing of sides and crossings: it asks for the cost of each segment
at its middle. That of a trajectory lives in R^(C r): walls are vectors there, and costs are asked
for on both sides of a wall.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr

from mercer.likelihoods.label_noise import IMPOSSIBLE, Confusion
from mercer.sphere.loops import truncated_normal
from mercer.sphere.several import SeveralModel
from support.several_cases import cost_of, make_model, noises


def plain_gap(f: np.ndarray, c: int) -> np.ndarray:
    return f[c] - np.delete(f, c, axis=0).max(axis=0)


def log_mass(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Log mass of N(0, 1) between numbers, from the tail that they are nearer to."""
    is_mirrored = lower + upper > 0.0
    a, b = np.where(is_mirrored, -upper, lower), np.where(is_mirrored, -lower, upper)
    with np.errstate(divide="ignore"):
        return log_ndtr(b) + np.log(-np.expm1(log_ndtr(a) - log_ndtr(b)))


def plain_line_move(rng, x, width, f, c, h, model: SeveralModel) -> tuple[float, int]:
    """New coordinate and breakpoints that matter, from function values f (C, n)."""

    def moved(at: float) -> np.ndarray:
        values = f.copy()
        values[c] += (at - x) * h
        return values

    low = x - width * rng.random()
    high = low + width
    with np.errstate(divide="ignore", invalid="ignore"):
        b = x - plain_gap(f, c) / h
    edges = np.concatenate([[low], np.sort(b[(b > low) & (b < high)]), [high]])
    values = np.array([moved(middle) for middle in 0.5 * (edges[1:] + edges[:-1])])
    is_by_class = isinstance(model.noise, Confusion)
    outcome = values.argmax(axis=1) if is_by_class else model.is_wrong(values)
    is_change = np.append(True, (outcome[1:] != outcome[:-1]).any(axis=1))
    begins, costs = edges[:-1][is_change], cost_of(model, values[is_change])
    ends = np.append(begins[1:], high)
    is_possible = costs < 0.5 * IMPOSSIBLE
    log_weights = log_mass(begins, ends) - costs
    totals = np.cumsum(np.exp(log_weights - log_weights[is_possible].max()))
    chosen = int(np.searchsorted(totals, rng.random() * totals[-1], side="right"))
    n_breakpoints = int(is_possible.sum()) - 1
    return truncated_normal(rng, begins[chosen], ends[chosen]), n_breakpoints


def plain_sweep(rng, point, c, order, widths, model: SeveralModel) -> int:
    """All line moves of a class, on a point [f; x] in place."""
    n, n_breakpoints = model.n_rows, 0
    for k in order:
        h, x = model.L[:, k], point[c, n + k]
        new, m = plain_line_move(rng, x, widths[k], point[:, :n], c, h, model)
        point[c, :n] += (new - x) * h
        point[c, n + k] = new
        n_breakpoints += m
    return n_breakpoints


def case(n: int, r: int, n_classes: int, kind: str, seed: int = 0):
    """A model, and a random point that is possible."""
    model = make_model(n, r, n_classes, kind, seed=seed)
    rng = np.random.default_rng(seed)
    g = rng.standard_normal((n_classes, r))
    if model.noise.must_be_right.any():
        labels = np.where(model.noise.must_be_right, np.argmax(g @ model.L.T, axis=0), model.labels)
        model = SeveralModel(model.L, labels, noises(labels, n_classes)[kind])
    return model, model.point(g)


def plain_shuffle(rng: np.random.Generator, order: np.ndarray) -> None:
    """Shuffle in place as the compiled loops do."""
    for k in range(len(order) - 1, 0, -1):
        other = int(rng.random() * (k + 1))
        order[[k, other]] = order[[other, k]]


def walls(model: SeveralModel) -> np.ndarray:
    """Normals of all walls, (n (C - 1), C r): of row i and class c, (e_y - e_c) times L_i."""
    identity = np.eye(model.n_classes)
    return np.array([
        np.kron(identity[label] - identity[c], row)
        for row, label in zip(model.L, model.labels, strict=True)
        for c in range(model.n_classes) if c != label
    ])  # fmt: skip


def plain_trajectory(
    model: SeveralModel, g: np.ndarray, w: np.ndarray, duration: float
) -> tuple[np.ndarray, np.ndarray, int, int]:
    """End, velocity, events and reflections of a flight from (g, w), shapes (C, r)."""
    A, (p, v) = walls(model), (g.ravel(), w.ravel())
    left, last, n_events, n_reflections = duration, -1, 0, 0

    def cost(signs: np.ndarray) -> float:
        is_wrong = (signs.reshape(model.n_rows, -1) < 0).any(axis=1)
        return float(model.noise.cost(is_wrong))

    signs = np.where(p @ A.T > 0.0, 1, -1)
    while True:
        time = np.mod(np.arctan2(p @ A.T, -(v @ A.T)), math.pi)
        if last >= 0:
            time[last] = math.pi  # half a turn from where it was met
        k = int(np.argmin(time))
        if time[k] >= left:
            break
        c, s = math.cos(time[k]), math.sin(time[k])
        p, v = c * p + s * v, c * v - s * p
        left, last = left - time[k], k
        n_events += 1
        beyond = signs.copy()
        beyond[k] = -signs[k]
        length = np.linalg.norm(A[k])
        speed = v @ A[k] / length
        energy = speed**2 - 2.0 * (cost(beyond) - cost(signs))
        if energy > 0.0:
            new, signs = math.copysign(math.sqrt(energy), speed), beyond
        else:
            new = -speed
            n_reflections += 1
        v = v + (new - speed) * A[k] / length
    c, s = math.cos(left), math.sin(left)
    return (
        (c * p + s * v).reshape(g.shape),
        (c * v - s * p).reshape(g.shape),
        n_events,
        n_reflections,
    )


def plain_joint_move(rng, point: np.ndarray, velocity: np.ndarray, model: SeveralModel):
    """A new point [f; x] and the number of angles tried."""
    n, (n_classes, m) = model.n_rows, point.shape
    contrasts, turn = point - point.mean(axis=0), velocity - velocity.mean(axis=0)
    squared = 2.0 * rng.standard_gamma(0.5 * (n_classes - 1) * (m - n))
    contrasts *= math.sqrt(squared) / np.linalg.norm(contrasts[:, n:])
    limit = float(model.noise.cost(model.is_wrong(contrasts[:, :n]))) + rng.standard_exponential()
    angle = 2.0 * math.pi * rng.random()
    low, high, n_trials = angle - 2.0 * math.pi, angle, 1
    while True:
        end = math.cos(angle) * contrasts + math.sin(angle) * turn
        if model.noise.cost(model.is_wrong(end[:, :n])) <= limit:
            return end + velocity.mean(axis=0), n_trials
        low, high = (angle, high) if angle < 0.0 else (low, angle)
        angle = low + (high - low) * rng.random()
        n_trials += 1
