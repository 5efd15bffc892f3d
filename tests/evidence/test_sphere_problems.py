from __future__ import annotations

import numpy as np
import pytest

from reproduce.papers.sphere_problems import (
    PROBLEMS,
    TRUE_CLASSIFIER,
    on_sphere,
    plane_rows,
    sphere_rows,
    split_of,
)


def test_angles_are_those_of_the_paper() -> None:
    assert on_sphere(np.array(np.pi / 2), np.array(np.pi)) == pytest.approx(TRUE_CLASSIFIER)
    assert on_sphere(np.array(0.0), np.array(1.0)) == pytest.approx([0.0, 0.0, 1.0])
    grid = on_sphere(np.linspace(0.0, 3.0, 4)[:, None], np.linspace(0.0, 6.0, 5))
    assert grid.shape == (4, 5, 3)


def test_rows_have_length_one_and_a_share_of_wrong_labels() -> None:
    """|share - 0.2| < 5 sd: false alarm 6e-7; a rate of 0.25 is 40 sd away."""
    n = 100_000
    X, labels = sphere_rows(np.random.default_rng(1), n, 0.2)
    assert np.linalg.norm(X, axis=1) == pytest.approx(np.ones(n))
    is_wrong = labels != (X @ TRUE_CLASSIFIER > 0.0)
    assert abs(is_wrong.mean() - 0.2) < 5.0 * np.sqrt(0.16 / n)


def test_the_same_seed_has_the_same_rows_at_another_rate() -> None:
    noisy, clean = (sphere_rows(np.random.default_rng(2), 50, rate) for rate in (0.3, 0.0))
    assert np.array_equal(noisy[0], clean[0])
    assert np.array_equal(clean[1], clean[0] @ TRUE_CLASSIFIER > 0.0)
    assert not np.array_equal(noisy[1], clean[1])


def test_another_classifier_gives_its_own_classes() -> None:
    w = np.array([0.2, -1.0, 0.4])
    X, labels = sphere_rows(np.random.default_rng(3), 50, 0.0, w)
    assert np.array_equal(labels, X @ w > 0.0)


def test_rows_in_the_plane_have_both_classes() -> None:
    X, labels = plane_rows(np.random.default_rng(4), 76)
    assert X.shape == (76, 2)
    assert 20 < labels.sum() < 56


@pytest.mark.parametrize("problem", PROBLEMS)
def test_only_training_labels_are_turned_over(problem: str) -> None:
    noisy, clean = (split_of(problem, 5, 60, 80, rate) for rate in (0.5, 0.0))
    assert noisy.X.shape[0] == 60
    assert np.array_equal(noisy.X_test, clean.X_test)
    assert np.array_equal(noisy.labels_test, clean.labels_test)
    assert 10 < np.count_nonzero(noisy.labels != clean.labels) < 50
