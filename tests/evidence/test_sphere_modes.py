"""Cells and modes against brute force: patterns of many points, adjacent where one row differs."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.sphere.sampler import signed_rows
from reproduce.papers.sphere_modes import Cells, cells_of, find_modes
from reproduce.papers.sphere_problems import sphere_rows


def random_rows(n: int, seed: int) -> np.ndarray:
    """Signed rows whose signs are random: many modes."""
    return np.random.default_rng(seed).standard_normal((n, 3))


def brute_patterns(S: np.ndarray) -> np.ndarray:
    """Patterns of wrong rows of points around every vertex, which meets four cells."""
    n = len(S)
    i, j = np.triu_indices(n, 1)
    vertices = np.cross(S[i], S[j])
    vertices = np.concatenate([vertices, -vertices])
    vertices /= np.linalg.norm(vertices, axis=1, keepdims=True)
    near = vertices[:, None] + 1e-6 * np.random.default_rng(0).standard_normal((60, 3))
    return np.unique((near.reshape(-1, 3) @ S.T <= 0.0), axis=0)


def brute_depths(patterns: np.ndarray) -> list[float]:
    """Depths of all modes, by flooding from each and raising the level one error at a time."""
    errors = patterns.sum(axis=1)
    neighbours = (patterns[:, None] != patterns).sum(axis=2) == 1
    rank = np.lexsort((np.arange(len(errors)), errors)).argsort()  # breaks ties between modes
    depths = []
    for cell in range(len(errors)):
        if (errors[neighbours[cell]] < errors[cell]).any():
            continue
        for level in range(errors[cell], len(patterns[0]) + 1):
            reached = np.zeros(len(errors), bool)
            reached[cell] = True
            while True:
                grown = reached | (neighbours[reached].any(axis=0) & (errors <= level))
                if (grown == reached).all():
                    break
                reached = grown
            if (rank[reached] < rank[cell]).any():
                depths.append(float(level - errors[cell]))
                break
        else:
            depths.append(np.inf)
    return sorted(depths, reverse=True)


@pytest.mark.parametrize("seed", range(6))
def test_cells_and_modes_are_those_of_brute_force(seed: int) -> None:
    S = random_rows(9, seed)
    cells = cells_of(np.random.default_rng(1), S)
    patterns = brute_patterns(S)
    assert len(cells.errors) == len(patterns) == 9 * 8 + 2
    assert sorted(cells.errors) == sorted(patterns.sum(axis=1))
    assert find_modes(cells).depth.tolist() == brute_depths(patterns)


@pytest.mark.parametrize("n", [2, 3, 60])
def test_n_circles_make_so_many_cells_and_edges(n: int) -> None:
    cells = cells_of(np.random.default_rng(1), random_rows(n, 7))
    assert len(cells.errors) == n * (n - 1) + 2
    assert len(cells.better) == 2 * n * (n - 1)
    assert (cells.errors[cells.worse] == cells.errors[cells.better] + 1).all()


def test_the_centre_of_a_cell_has_its_errors() -> None:
    S = random_rows(12, 8)
    cells = cells_of(np.random.default_rng(1), S)
    centres = np.array([cells.centre(cell) for cell in range(len(cells.errors))])
    assert np.array_equal(np.count_nonzero(centres @ S.T <= 0.0, axis=1), cells.errors)


@pytest.mark.parametrize("n", [5, 10, 60])
def test_without_wrong_labels_there_is_one_mode(n: int) -> None:
    """On the way to a separating classifier every crossing of a row puts it right."""
    rng = np.random.default_rng(n)
    modes = find_modes(cells_of(rng, signed_rows(*sphere_rows(rng, n, 0.0))))
    assert modes.depth.tolist() == [np.inf]


def test_a_wrong_turn_of_the_list_is_seen() -> None:
    """Mutant of the errors: those of the cells across the edge, as if rows changed late."""
    S = random_rows(9, 0)
    cells = cells_of(np.random.default_rng(1), S)
    turned = Cells(cells.errors, cells.worse, cells.better, cells.middle)
    assert find_modes(turned).depth.tolist() != brute_depths(brute_patterns(S))
