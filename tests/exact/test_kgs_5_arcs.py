"""KGS-5: errors and masses of the arcs of random circles, against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods.label_noise import LabelNoise, fixed_rate
from support.circle_cases import arcs_of, extended, tangent_of
from support.sphere_cases import noises, noisy_rows

N, R = 12, 5
KINDS = noises(N) | {"certain": fixed_rate(0.0, N), "useless": fixed_rate(0.5, N)}


def circle(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A random point and direction; one row is zero."""
    rng = np.random.default_rng(seed + 100)
    L = noisy_rows(N, R, seed=seed)
    L[4] = 0.0
    point, direction = extended(L, rng.standard_normal((2, R)))
    return point, direction


def is_wrong_at(t: np.ndarray, point: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Which rows are wrong at the angles."""
    v = tangent_of(point, direction, N)
    return np.outer(np.cos(t), point[:N]) + np.outer(np.sin(t), v[:N]) <= 0.0


def brute_mass(
    edges: np.ndarray, point: np.ndarray, direction: np.ndarray, noise: LabelNoise
) -> np.ndarray:
    """Probability below each edge, by the midpoint rule.

    Cells of a grid at whose ends different rows are wrong are split until they are shorter than
    1e-9; every row changes twice in a turn, so that no cell hides a change.
    """
    begin = np.linspace(-0.5 * np.pi, 1.5 * np.pi, 2001)
    begin, width = begin[:-1], float(begin[1] - begin[0])
    middles, lengths = [], []
    while width > 1e-9:
        differs = (
            is_wrong_at(begin, point, direction) != is_wrong_at(begin + width, point, direction)
        ).any(axis=1)
        middles.append(begin[~differs] + 0.5 * width)
        lengths.append(np.full(len(middles[-1]), width))
        width /= 16.0
        begin = (begin[differs, None] + width * np.arange(16)).ravel()
    middle, length = np.concatenate(middles), np.concatenate(lengths)
    cost = noise.cost(is_wrong_at(middle, point, direction))
    mass = length * np.exp(cost.min() - cost)
    order = np.argsort(middle)
    total = np.append(0.0, np.cumsum(mass[order]))
    upper = np.append(-0.5 * np.pi, middle[order] + 0.5 * length[order])
    return np.interp(edges, upper, total / total[-1])


def disagreement(noise: LabelNoise, arcs=arcs_of) -> tuple[int, float]:
    """Arcs with a wrong count of errors, and the largest error of a mass, over ten circles."""
    n_wrong, worst = 0, 0.0
    for seed in range(10):
        point, direction = circle(seed)
        edges, errors, mass = arcs(point, direction, N, noise)
        middle = 0.5 * (edges[1:] + edges[:-1])
        n_wrong += int((errors != is_wrong_at(middle, point, direction).sum(axis=1)).sum())
        expected = np.diff(brute_mass(edges, point, direction, noise))
        worst = max(worst, float(np.abs(mass - expected).max()))
    return n_wrong, worst


@pytest.mark.parametrize("kind", KINDS)
def test_kgs_5_arcs(kind: str) -> None:
    n_wrong, worst = disagreement(KINDS[kind])
    assert n_wrong == 0
    assert worst < 2e-6


def test_kgs_5_there_are_two_pieces_more_than_arcs() -> None:
    edges, errors, mass = arcs_of(*circle(0), N, KINDS["fixed"])
    assert len(edges) - 1 == len(errors) == len(mass) == 2 * (N - 1) + 2
    assert (np.diff(edges) > 0.0).all()
    assert errors[0] == errors[-1]
    assert errors[N - 1] == errors[N]


def test_kgs_5_sees_a_zero_row_mirrored() -> None:
    """Mutant: the other half turn has n - e errors, as if every row crossed."""

    def arcs(point, direction, n_rows, noise):
        edges, errors, mass = arcs_of(point, direction, n_rows, noise)
        half = len(errors) // 2
        return edges, np.append(errors[:half], n_rows - 1 - errors[:half]), mass

    assert disagreement(KINDS["fixed"], arcs)[0] > 0


def test_kgs_5_sees_half_the_difference() -> None:
    """K1: errors where the paper prints them."""

    def arcs(point, direction, n_rows, noise):
        edges, _, _ = arcs_of(point, direction, n_rows, noise)
        is_wrong = is_wrong_at(0.5 * np.diff(edges), point, direction)
        mass = np.diff(edges) * np.exp(-noise.cost(is_wrong))
        return edges, is_wrong.sum(axis=1), mass / mass.sum()

    n_wrong, worst = disagreement(KINDS["fixed"], arcs)
    assert n_wrong > 0
    assert worst > 0.01


def test_kgs_5_sees_the_last_arc_left_out() -> None:
    def arcs(point, direction, n_rows, noise):
        edges, errors, mass = arcs_of(point, direction, n_rows, noise)
        mass[0] = 0.0
        return edges, errors, mass / mass.sum()

    assert disagreement(KINDS["fixed"], arcs)[1] > 1e-3
