from __future__ import annotations

import itertools

import numpy as np
import pytest

from reproduce.papers.sphere_draws import (
    draw_by_great_circles,
    draw_classifiers,
    mean_disagreement,
    model_of,
    unit,
)
from reproduce.papers.sphere_problems import sphere_rows
from support.statistics import largest_z, z_limit


def test_disagreement_is_that_of_all_pairs() -> None:
    f = np.random.default_rng(1).standard_normal((7, 5))
    pairs = [np.mean((a > 0) != (b > 0)) for a, b in itertools.combinations(f, 2)]
    assert mean_disagreement(f) == pytest.approx(np.mean(pairs))
    assert mean_disagreement(np.repeat(f[:1], 4, axis=0)) == 0.0


def test_directions_have_length_one() -> None:
    g = np.random.default_rng(2).standard_normal((4, 3))
    assert np.linalg.norm(unit(g), axis=1) == pytest.approx(np.ones(4))


def test_without_noise_every_draw_is_right() -> None:
    X, labels = sphere_rows(np.random.default_rng(3), 30, 0.0)
    model = model_of(X, labels, 0.0)
    rng = np.random.default_rng(4)
    for g in (draw_classifiers(rng, model, 10, thin=2), draw_by_great_circles(rng, model, 10, 5)):
        assert g.shape == (10, 3)
        assert np.array_equal(g @ X.T > 0.0, np.tile(labels == 1, (10, 1)))


def test_the_same_seed_gives_the_same_draws() -> None:
    model = model_of(*sphere_rows(np.random.default_rng(5), 20, 0.1), 0.1)
    first, second = (draw_classifiers(np.random.default_rng(6), model, 5) for _ in range(2))
    assert np.array_equal(first, second)


def difference_z(rate_of_circles: float) -> float:
    """Largest |t| of u and u_1^2 between the two samplers, 100 batches of thinned draws."""
    rng = np.random.default_rng(7)
    X, labels = sphere_rows(rng, 25, 0.2)
    by_moves = unit(draw_classifiers(rng, model_of(X, labels, 0.2), 2000, thin=2))
    by_circles = unit(draw_by_great_circles(rng, model_of(X, labels, rate_of_circles), 2000, 10))
    difference = by_moves - by_circles
    squares = by_moves[:, :1] ** 2 - by_circles[:, :1] ** 2
    return largest_z(np.hstack([difference, squares]), np.zeros(4), 100)


def test_both_samplers_have_one_law() -> None:
    assert difference_z(0.2) < z_limit(100, 4)


def test_another_rate_is_seen() -> None:
    assert difference_z(0.4) > 1.5 * z_limit(100, 4)
