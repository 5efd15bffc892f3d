"""Where a model stands beside its baselines, said cautiously."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from mercer.posterior.digits import digits
from mercer.posterior.evaluation import (
    AnyEvaluation,
    Evaluation,
    ModelScore,
    RegressionEvaluation,
    RegressionModelScore,
)
from mercer.posterior.held_out import HeldOut

__all__ = [
    "COMPARED",
    "compared",
    "error_rate_se",
    "log_score_words",
    "mse_error",
    "paired_gap",
    "regression_standing",
    "standing",
    "verdict",
]

COMPARED: Final = {
    "level": "level with",
    "ahead": "ahead of",
    "behind": "behind",
    "unknown": "not judged against",
}
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


def paired_gap(first: HeldOut, second: HeldOut, metric: str) -> tuple[float, float | None] | None:
    """Return how much larger a score of ``first`` is than that of ``second``, on the same rows.

    Parameters
    ----------
    first, second : HeldClasses or HeldTargets
        Of the same rows, in the same order.
    metric : str

    Returns
    -------
    (difference, standard error) or None
        The standard error is that of the difference, since what one finds hard the other finds
        hard; None of a single row. None for a score that is no mean over rows.

    Notes
    -----
    Of error rates only rows that one alone misses count. Of few of them their spread is too small
    an estimate (none at all: 0), so the standard error is Bonett and Price's [1]_: one more such
    row on either side.

    References
    ----------
    .. [1] D. G. Bonett and R. M. Price (2012), "Adjusted Wald confidence interval for a difference
       of binomial proportions based on paired data", J. Educ. Behav. Stat. 37, 479-488.
    """
    mine, other = first.losses.get(metric), second.losses.get(metric)
    if mine is None or other is None:
        return None
    gaps = mine - other
    n, gap = len(gaps), float(gaps.mean())
    if n < 2:
        return gap, None
    if metric != "error_rate":
        return gap, float(gaps.std(ddof=1)) / math.sqrt(n)
    only_first = (np.count_nonzero(gaps > 0) + 1) / (n + 2)
    only_second = (np.count_nonzero(gaps < 0) + 1) / (n + 2)
    spread = only_first + only_second - (only_first - only_second) ** 2
    return gap, math.sqrt(spread / (n + 2))


def compared(gap: float, error: float | None) -> str:
    """Say where a model stands whose score is larger by ``gap``: "ahead", "level" or "behind".

    Level is a gap within two standard errors of the gap; "unknown", where there is none.
    """
    if error is None:
        return "unknown"
    if abs(gap) <= 2 * error:
        return "level"
    return "ahead" if gap < 0 else "behind"


def standing(evaluation: Evaluation) -> tuple[str, ModelScore] | None:
    """Say where the model stands beside the best baseline in errors, as `compared`.

    Returns
    -------
    (word, best baseline), or None without baselines
    """
    model, *others = evaluation.entries
    if not others:
        return None
    best = min(others, key=lambda entry: entry.scores.error_rate)
    return compared(model.scores.error_rate - best.scores.error_rate, best.gap_error), best


def regression_standing(
    evaluation: RegressionEvaluation,
) -> tuple[str, RegressionModelScore] | None:
    """Say where the model stands in squared error beside the best baseline, as `standing`."""
    model, *others = evaluation.entries
    if not others:
        return None
    best = min(others, key=lambda entry: entry.scores.mse)
    return compared(model.scores.mse - best.scores.mse, best.gap_error), best


def log_score_words(evaluation: AnyEvaluation) -> str:
    """Say how the model's log score compares with that of the best baseline, on the same rows."""
    entries: tuple[ModelScore | RegressionModelScore, ...] = evaluation.entries
    model, *others = entries
    if not others:
        return ""
    best = min(others, key=lambda entry: entry.scores.log_score)
    mine, theirs = model.scores.log_score, best.scores.log_score
    place = sum(entry.scores.log_score < mine for entry in others) + 1
    word = compared(mine - theirs, best.log_score_gap_error)
    return (
        f"In log score (nats a row) the model takes place {place} of {len(others) + 1}, "
        f"{COMPARED[word]} {best.name}, the best baseline: {mine:.3f} beside {theirs:.3f}. "
        f"{_gap_words(word, f'{abs(mine - theirs):.3f}', _fixed(best.log_score_gap_error), model)}"
    )


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
    error = model.scores.error_rate
    place = standing(evaluation)
    if place is None:
        return (
            f"The model errs on {_percent(error)} of these rows, with a standard error of "
            f"{100 * error_rate_se(model):.1f} percentage points. No baseline was "
            "run, so there is nothing to compare it with."
        )
    word, best = place
    gap = _points(error - best.scores.error_rate)
    return (
        f"In errors the model is {COMPARED[word]} the best baseline, {best.name}: it errs on "
        f"{_percent(error)} of these rows, the baseline on {_percent(best.scores.error_rate)}. "
        f"{_gap_words(word, gap, _points(best.gap_error), model)}"
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
    gap = f"{digits(abs(scores.mse - best.scores.mse))} in mean squared error"
    error = "" if best.gap_error is None else digits(best.gap_error, 2)
    n_better = sum(entry.scores.mse < scores.mse for entry in evaluation.entries[1:])
    return (
        f"In squared error the model is {COMPARED[word]} the best baseline, {best.name}: its root "
        f"mean squared error is {rmse} (in the units of the target), the baseline's "
        f"{digits(best.scores.rmse, 4)}; it takes place {n_better + 1} of "
        f"{len(evaluation.entries)}. "
        f"{_gap_words(word, gap, error, evaluation.entries[0])}"
    )


def _gap_words(word: str, gap: str, error: str, model: ModelScore | RegressionModelScore) -> str:
    """Say whether a gap is chance; ``gap`` and ``error`` are written out, with their unit."""
    if word == "unknown":
        if model.scores.n_rows == 1:
            return "One row says nothing of a difference."
        return (
            "Whether they differ by chance is not known: the file does not hold the standard error "
            "of the difference."
        )
    return (
        f"On the same rows the two differ by {gap} with a standard error of {error} (of the "
        f"difference, rows paired), {_CHANCE[word]}"
    )


def _points(share: float | None) -> str:
    return "" if share is None else f"{100 * abs(share):.1f} percentage points"


def _fixed(error: float | None) -> str:
    return "" if error is None else f"{error:.3f}"


def _of_variance(share: float | None) -> str:
    return "" if share is None else f", its square {_percent(share)} of the variance"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\u00a0%"
