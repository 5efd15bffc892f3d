"""P(class) of training rows from draws: of few rows, of several classes, of many rows."""

from __future__ import annotations

import numpy as np

from mercer.posterior.draws import Draws
from mercer.sphere import fitting as module
from mercer.sphere.fitting import label_proba
from mercer.sphere.space import FeatureSpace, FiniteFeatures


def draws_of(**variables: np.ndarray) -> Draws:
    return Draws(variables, {}, {}, ())


def test_two_classes_count_the_draws_that_contradict_the_label() -> None:
    is_wrong = np.array([[[True, False], [True, False], [False, False], [True, True]]])
    p = label_proba(draws_of(is_wrong=is_wrong), None, np.array([1, 0]), 2)
    np.testing.assert_allclose(p, [[0.75, 0.25], [0.75, 0.25]])


def test_several_classes_count_what_was_chosen() -> None:
    chosen = np.array([[[0, 2], [1, 2], [1, 2], [0, 1]]], dtype=np.int16)
    is_wrong = np.zeros((1, 4, 2), dtype=bool)
    p = label_proba(draws_of(is_wrong=is_wrong, chosen=chosen), None, np.array([0, 2]), 3)
    np.testing.assert_allclose(p, [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]])


def test_many_rows_are_as_if_every_draw_was_tried(monkeypatch) -> None:
    monkeypatch.setattr(module, "_BLOCK_ROWS", 64)
    rng = np.random.default_rng(8)
    X = rng.standard_normal((300, 3))
    g = np.array([2.0, -1.0, 0.5, 0.0]) + 0.1 * rng.standard_normal((50, 4))
    space = FeatureSpace(FiniteFeatures(None, 1.0, 0.0), X)
    p = label_proba(draws_of(coefficients=g[np.newaxis]), space, np.zeros(300, np.int64), 2)
    expected = (X.astype(np.float32).astype(np.float64) @ g[:, :3].T > 0.0).mean(axis=1)
    np.testing.assert_allclose(p[:, 1], expected)
    assert ((expected > 0.0) & (expected < 1.0)).any()
