from __future__ import annotations

import math

import numpy as np
import pytest

from mercer.posterior.comparison import error_rate_se, standing, verdict
from mercer.posterior.evaluation import Evaluation, ModelScore
from mercer.posterior.scores import Scores


def entry(name: str, error: float, n: int = 400) -> ModelScore:
    return ModelScore(name, name != "mercer gp", Scores(n, error, 0.3, 0.1, 0.02), 1.0)


def evaluation(*errors: float) -> Evaluation:
    names = ["mercer gp", "logistic regression", "boosting"]
    entries = tuple(entry(name, error) for name, error in zip(names, errors, strict=False))
    n = entries[0].scores.n_rows
    proba = np.full((n, 2), 0.5)
    return Evaluation("a test", ("no", "yes"), np.zeros(n, dtype=np.int64), proba, entries)


def test_the_standard_error_is_binomial_and_never_0() -> None:
    assert error_rate_se(entry("x", 0.25)) == pytest.approx(math.sqrt(0.25 * 0.75 / 400), rel=0.02)
    assert 0.0 < error_rate_se(entry("x", 0.0)) < 0.01


@pytest.mark.parametrize(
    ("errors", "word"),
    [((0.10, 0.20, 0.30), "ahead"), ((0.10, 0.11, 0.30), "level"), ((0.30, 0.25, 0.10), "behind")],
)
def test_standing_is_beside_the_best_baseline(errors: tuple[float, ...], word: str) -> None:
    place = standing(evaluation(*errors))
    assert place is not None
    assert place[0] == word
    assert place[1].scores.error_rate == min(errors[1:])
    assert word in verdict(evaluation(*errors))


def test_without_a_baseline_nothing_is_claimed() -> None:
    assert standing(evaluation(0.1)) is None
    assert "nothing to compare" in verdict(evaluation(0.1))
