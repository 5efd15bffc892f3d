"""The great-circle step in plain NumPy, as it must be and as it must not be, and its arcs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.likelihoods.label_noise import LabelNoise
from mercer.sphere import great_circle as compiled
from support.sphere_cases import powered

# (rng, point, direction, n_rows, noise) -> (point, n_errors, n_arcs), or just (point, ...).
Step = Callable[..., tuple]


def extended(L: np.ndarray, g: np.ndarray) -> np.ndarray:
    """[L g; g] for every g of shape (..., r)."""
    return np.concatenate([g @ L.T, g], axis=-1)


def great_circle_move(
    rng: np.random.Generator,
    point: np.ndarray,
    direction: np.ndarray,
    n_rows: int,
    noise: LabelNoise,
) -> tuple[np.ndarray, int, int]:
    """One compiled step: the new point, its errors, and the arcs that it was chosen from."""
    moved, n_errors, n_arcs = compiled.great_circle_moves(
        rng, point, direction[np.newaxis], n_rows, noise
    )
    return moved, int(n_errors[0]), int(n_arcs[0])


def tangent_of(point: np.ndarray, direction: np.ndarray, n_rows: int) -> np.ndarray:
    """The direction, projected on the tangent space at g and scaled to the length of g."""
    g, z = point[n_rows:], direction[n_rows:]
    share = (z @ g) / (g @ g)
    return (direction - share * point) * np.sqrt((g @ g) / ((z - share * g) @ (z - share * g)))


def paper_step(
    rng: np.random.Generator,
    point: np.ndarray,
    direction: np.ndarray,
    n_rows: int,
    noise: LabelNoise,
    mistake: str = "",
) -> tuple[np.ndarray, int, int]:
    """The paper's steps 2 to 8: all 2n angles sorted, errors at the middle of every arc.

    Parameters
    ----------
    mistake : str
        "difference": errors at half the difference of two angles, as printed (K1).
        "no wrap": the arc from the last angle to the first is left out.
    """
    v = tangent_of(point, direction, n_rows)
    f, f_v = point[:n_rows], v[:n_rows]
    live = (f != 0.0) | (f_v != 0.0)
    once = np.arctan2(-f[live], f_v[live])
    begin = np.sort(np.mod(np.append(once, once + np.pi), 2.0 * np.pi))
    end = np.append(begin[1:], begin[0] + 2.0 * np.pi)
    if mistake == "no wrap":
        begin, end = begin[:-1], end[:-1]
    middle = 0.5 * (end - begin if mistake == "difference" else end + begin)
    is_wrong = np.outer(np.cos(middle), f) + np.outer(np.sin(middle), f_v) <= 0.0
    cost = noise.cost(is_wrong)
    masses = (end - begin) * np.exp(cost.min() - cost)
    k = int(np.searchsorted(np.cumsum(masses), rng.random() * masses.sum(), side="right"))
    t = begin[k] + rng.random() * (end[k] - begin[k])
    return np.cos(t) * point + np.sin(t) * v, int(is_wrong[k].sum()), len(begin)


def mistaken(mistake: str) -> Step:
    """`paper_step` with a mistake."""
    return lambda *arguments: paper_step(*arguments, mistake)


def tempered(step: Step, power: float) -> Step:
    """A step at another rate of label noise: the likelihood to a power."""
    return lambda rng, point, direction, n_rows, noise: step(
        rng, point, direction, n_rows, powered(noise, power)
    )


def isotropic(rng: np.random.Generator, count: int, L: np.ndarray) -> np.ndarray:
    """Directions z ~ N(0, I), shape (count, r)."""
    return rng.standard_normal((count, L.shape[1]))


def iid_coefficients(rng: np.random.Generator, count: int, L: np.ndarray) -> np.ndarray:
    """Directions sum_i a_i L_i with a ~ N(0, I): the trap K2."""
    return rng.standard_normal((count, len(L))) @ L


def arcs_of(
    point: np.ndarray, direction: np.ndarray, n_rows: int, noise: LabelNoise
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges (A + 1,) from -pi/2 to 3 pi/2, errors (A,) and probabilities (A,) of a circle's arcs.

    The two arcs that contain -pi/2 and pi/2 come in two pieces each.
    """
    ordered, masses = np.empty(n_rows), np.empty((2, n_rows + 1))
    errors = np.empty((2, n_rows + 1), np.int64)
    n_live = compiled.circle_arcs(
        point, direction, n_rows, noise.jumps, noise.total, noise.row_cost, noise.is_common,
        ordered, masses, errors,
    )[0]  # fmt: skip
    half = ordered[:n_live]
    edges = np.concatenate([[-0.5 * np.pi], half, [0.5 * np.pi], half + np.pi, [1.5 * np.pi]])
    masses = masses[:, : n_live + 1].ravel()
    return edges, errors[:, : n_live + 1].ravel(), masses / masses.sum()
