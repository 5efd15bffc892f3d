"""Where a model stands beside its baselines, said cautiously."""

from __future__ import annotations

import math
from typing import Final

from mercer.posterior.evaluation import Evaluation, ModelScore

__all__ = ["COMPARED", "error_rate_se", "standing", "verdict"]

COMPARED: Final = {"level": "level with", "ahead": "ahead of", "behind": "behind"}


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


def verdict(evaluation: Evaluation) -> str:
    """Say honestly, in a sentence or two, how the model compares in errors."""
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
    ending = {
        "level": "so a gap this small may well be chance.",
        "ahead": "so a gap this large is hardly chance.",
        "behind": "so a gap this large is hardly chance: prefer the baseline, or find out why.",
    }[word]
    return (
        f"In errors the model is {COMPARED[word]} the best baseline, {best.name}: it errs on "
        f"{_percent(error)} of these rows, the baseline on {_percent(best.scores.error_rate)}. "
        f"The standard error of the model's error rate is {margin}, {ending}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\u00a0%"
