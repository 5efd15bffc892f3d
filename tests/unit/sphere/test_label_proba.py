"""P(class) of training rows from draws: of few rows, of several classes, of many rows."""

from __future__ import annotations

import numpy as np

from mercer.posterior.draws import Draws
from mercer.sphere import space as module
from mercer.sphere.prediction import label_proba
from mercer.sphere.space import FeatureSpace, FiniteFeatures


def draws_of(**variables: np.ndarray) -> Draws:
    return Draws(variables, {}, {}, ())


def test_two_classes_count_the_draws_that_contradict_the_label() -> None:
    is_wrong = np.array([[[True, False], [True, False], [False, False], [True, True]]])
    p = label_proba(draws_of(is_wrong=is_wrong), (), np.array([1, 0]), 2)
    np.testing.assert_allclose(p, [[0.75, 0.25], [0.75, 0.25]])


def test_several_classes_count_what_was_chosen() -> None:
    chosen = np.array([[[0, 2], [1, 2], [1, 2], [0, 1]]], dtype=np.int16)
    is_wrong = np.zeros((1, 4, 2), dtype=bool)
    p = label_proba(draws_of(is_wrong=is_wrong, chosen=chosen), (), np.array([0, 2]), 3)
    np.testing.assert_allclose(p, [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]])


def test_many_rows_are_as_if_every_draw_was_tried(monkeypatch) -> None:
    monkeypatch.setattr(module, "_BLOCK_ROWS", 64)
    rng = np.random.default_rng(8)
    X = rng.standard_normal((300, 3))
    g = np.array([2.0, -1.0, 0.5, 0.0]) + 0.1 * rng.standard_normal((50, 4))
    space = FeatureSpace(FiniteFeatures(None, 1.0, 0.0), X)
    draws = draws_of(coefficients=g[np.newaxis], model=np.zeros((1, 50), np.int64))
    p = label_proba(draws, [space], np.zeros(300, np.int64), 2)
    expected = (X.astype(np.float32).astype(np.float64) @ g[:, :3].T > 0.0).mean(axis=1)
    np.testing.assert_allclose(p[:, 1], expected)
    assert ((expected > 0.0) & (expected < 1.0)).any()


def test_many_rows_under_several_models_are_seen_by_the_features_of_each_draw() -> None:
    rng = np.random.default_rng(9)
    X = rng.standard_normal((300, 2))
    spaces = [FeatureSpace(features, X) for features in (lambda Z: Z, lambda Z: Z[:, 1:] ** 3)]
    model, g = rng.integers(0, 2, 40), np.array([2.0, -1.0]) + 0.3 * rng.standard_normal((40, 2))
    draws = draws_of(coefficients=g[np.newaxis], model=model[np.newaxis])
    p = label_proba(draws, spaces, np.zeros(300, np.int64), 2)
    rows = [space.kept(lambda first, blocks: blocks).astype(np.float64) for space in spaces]
    each = [rows[j] @ w[: 2 - j] > 0.0 for j, w in zip(model, g, strict=True)]
    np.testing.assert_allclose(p[:, 1], np.mean(each, axis=0), atol=1e-12)
