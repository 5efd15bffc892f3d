"""Where a model stands beside its baselines, said cautiously."""

from __future__ import annotations

import math
from typing import Final

from mercer.posterior.digits import digits
from mercer.posterior.evaluation import (
    AnyEvaluation,
    Evaluation,
    ModelScore,
    RegressionEvaluation,
    RegressionModelScore,
)

__all__ = ["COMPARED", "error_rate_se", "mse_error", "regression_standing", "standing", "verdict"]

COMPARED: Final = {"level": "level with", "ahead": "ahead of", "behind": "behind"}
_CHANCE: Final = {
    "level": "so a gap this small may well be chance.",
    "ahead": "so a gap this large is hardly chance.",
    "behind": "so a gap this large is hardly chance: prefer the baseline, or find out why.",
}


def error_rate_se(entry: ModelScore) -> float:
    """Return the standard error of an error rate, not 0 for a model without errors.

    Of k errors in n rows: the binomial one at (k + 1) / (n + 2).
    """
    n = entry.scores.n_rows
    rate = (entry.scores.error_rate * n + 1) / (n + 2)
    return math.sqrt(rate * (1 - rate) / n)


def standing(evaluation: Evaluation) -> tuple[str, ModelScore] | None:
    """Say where the model stands beside the best baseline: "ahead", "level" or "behind".

    Level is a gap of error rates below two standard errors of the gap. The same rows are scored,
    but which rows each baseline misses is not kept, so the errors are taken as independent: the
    verdict is cautious.

    Returns
    -------
    (word, best baseline), or None without baselines
    """
    model, *others = evaluation.entries
    if not others:
        return None
    best = min(others, key=lambda entry: entry.scores.error_rate)
    gap = model.scores.error_rate - best.scores.error_rate
    if abs(gap) < 2 * math.hypot(error_rate_se(model), error_rate_se(best)):
        return "level", best
    return ("ahead" if gap < 0 else "behind"), best


def regression_standing(
    evaluation: RegressionEvaluation,
) -> tuple[str, RegressionModelScore] | None:
    """Say where the model stands in squared error beside the best baseline, as `standing`.

    Level is a gap of mean squared errors below two standard errors of the gap, whose rows are
    paired.
    """
    model, *others = evaluation.entries
    if not others:
        return None
    best = min(others, key=lambda entry: entry.scores.mse)
    gap = model.scores.mse - best.scores.mse
    if best.gap_error is None or abs(gap) <= 2 * best.gap_error:
        return "level", best
    return ("ahead" if gap < 0 else "behind"), best


def mse_error(evaluation: RegressionEvaluation) -> float:
    """Return the standard error of the model's mean squared error; infinite for a single row."""
    squares = evaluation.rows.squared_errors
    if len(squares) < 2:
        return math.inf
    return float(squares.std(ddof=1)) / math.sqrt(len(squares))


def verdict(evaluation: AnyEvaluation) -> str:
    """Say honestly, in a sentence or two, how the model compares in errors."""
    if isinstance(evaluation, RegressionEvaluation):
        return _regression_verdict(evaluation)
    return _classification_verdict(evaluation)


def _classification_verdict(evaluation: Evaluation) -> str:
    model = evaluation.entries[0]
    error, se = model.scores.error_rate, error_rate_se(model)
    margin = f"{100 * se:.1f} percentage points"
    place = standing(evaluation)
    if place is None:
        return (
            f"The model errs on {_percent(error)} of these rows, with a standard error of "
            f"{margin}. No baseline was run, so there is nothing to compare it with."
        )
    word, best = place
    return (
        f"In errors the model is {COMPARED[word]} the best baseline, {best.name}: it errs on "
        f"{_percent(error)} of these rows, the baseline on {_percent(best.scores.error_rate)}. "
        f"The standard error of the model's error rate is {margin}, {_CHANCE[word]}"
    )


def _regression_verdict(evaluation: RegressionEvaluation) -> str:
    scores = evaluation.entries[0].scores
    rmse = digits(scores.rmse, 4)
    place = regression_standing(evaluation)
    if place is None:
        return (
            f"The root mean squared error of the model is {rmse} on these rows, in the units of "
            f"the target{_of_variance(scores.standardized_mse)}. No baseline was run, so there is "
            "nothing to compare it with."
        )
    word, best = place
    n_better = sum(entry.scores.mse < scores.mse for entry in evaluation.entries[1:])
    return (
        f"In squared error the model is {COMPARED[word]} the best baseline, {best.name}: its root "
        f"mean squared error is {rmse} (in the units of the target), the baseline's "
        f"{digits(best.scores.rmse, 4)}; it takes place {n_better + 1} of "
        f"{len(evaluation.entries)}. "
        f"{_gap_words(word, scores.mse - best.scores.mse, best.gap_error)}"
    )


def _gap_words(word: str, gap: float, error: float | None) -> str:
    if error is None:
        return "One row says nothing of a difference."
    apart = f"{digits(abs(gap))} ± {digits(error, 2)}"
    return f"On the same rows the mean squared errors differ by {apart}, {_CHANCE[word]}"


def _of_variance(share: float | None) -> str:
    return "" if share is None else f", its square {_percent(share)} of the variance"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\u00a0%"
