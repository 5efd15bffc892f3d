"""Where a regressor stands beside its baselines, and what is said of it."""

from __future__ import annotations

import math

import pytest

from mercer.posterior.evaluation import mse_error, standing, verdict
from support.fake_regression import fake_regression


@pytest.mark.parametrize(
    ("noise", "baselines", "word", "best", "place"),
    [
        (0.0, (1.0, 2.0), "ahead", "baseline 1", "1 of 3"),
        (0.5, (0.5, 2.0), "level", "baseline 0.5", "1 of 3"),
        (1.5, (3.0, 0.0), "behind", "baseline 0", "2 of 3"),
    ],
)
def test_the_model_beside_the_best_baseline(
    noise: float, baselines: tuple[float, ...], word: str, best: str, place: str
) -> None:
    evaluation = fake_regression(noise=noise, baselines=baselines)
    found = standing(evaluation)
    assert found is not None
    assert (found[0], found[1].name) == (word, best)
    said = verdict(evaluation)
    phrase = {"level": "level with", "ahead": "ahead of", "behind": "behind"}[word]
    assert f"the model is {phrase} the best baseline, {best}" in said
    assert f"it takes place {place}" in said
    assert ("may well be chance" in said) == (word == "level")


def test_pairing_tells_apart_what_the_errors_themselves_do_not() -> None:
    """The same small bias on every row: far less than the error of either score."""
    evaluation = fake_regression(shift=0.15, baselines=(0.0,))
    model, best = evaluation.entries
    gap = model.scores.mse - best.scores.mse
    assert gap < mse_error(evaluation)
    assert best.gap_error is not None
    assert best.gap_error < mse_error(evaluation) / 4


def test_without_a_baseline_or_with_one_row_nothing_is_claimed() -> None:
    alone = fake_regression(baselines=())
    assert standing(alone) is None
    assert "nothing to compare" in verdict(alone)
    assert "of the variance" in verdict(alone)
    single = fake_regression(n_rows=1, baselines=(5.0,))
    found = standing(single)
    assert found is not None
    assert found[0] == "unknown"
    assert "One row says nothing" in verdict(single)
    assert math.isinf(mse_error(single))
