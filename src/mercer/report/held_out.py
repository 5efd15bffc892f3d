"""What held-out rows say: scores beside the baselines, and whether the probabilities are right."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from mercer.posterior.evaluation import Evaluation, ModelScore
from mercer.posterior.scores import PROBA_FLOOR, ReliabilityCurve, reliability_curve
from mercer.report.figures import reliability_svg
from mercer.report.section import Cell, Figure, NamedTable, Section
from mercer.report.words import count, duration, ordinal, percent

__all__ = ["COMPARED", "error_rate_se", "reliability_section", "scores_section", "standing"]

COMPARED: Final = {"level": "level with", "ahead": "ahead of", "behind": "behind"}

_ABSENT: Final = (
    "There are no held-out rows: nothing here says how well the model predicts rows that it has "
    "not seen. Name a test file, a test share or a number of folds when fitting to get scores."
)


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


def scores_section(evaluation: Evaluation | None) -> Section:
    """Build the section of scores, the baselines beside the model."""
    title = "Scores on rows it had not seen"
    if evaluation is None:
        return Section("scores", title, (_ABSENT,))
    n_rows = evaluation.entries[0].scores.n_rows
    text = [
        f"Scored on {count(n_rows)} rows that were not used for fitting ({evaluation.how}).",
        _verdict(evaluation),
    ]
    if len(evaluation.entries) > 1:
        text.append(_log_score_words(evaluation))
    return Section("scores", title, tuple(text), tables=(_score_table(evaluation),))


def _verdict(evaluation: Evaluation) -> str:
    model = evaluation.entries[0]
    error, se = model.scores.error_rate, error_rate_se(model)
    margin = f"{100 * se:.1f} percentage points"
    place = standing(evaluation)
    if place is None:
        return (
            f"The model errs on {percent(error)} of these rows, with a standard error of {margin}. "
            "No baseline was run, so there is nothing to compare it with."
        )
    word, best = place
    compared = (
        f"it errs on {percent(error)} of these rows, the baseline on "
        f"{percent(best.scores.error_rate)}. The standard error of the model's error rate is "
        f"{margin}"
    )
    ending = {
        "level": "so a gap this small may well be chance.",
        "ahead": "so a gap this large is hardly chance.",
        "behind": "so a gap this large is hardly chance: prefer the baseline, or find out why.",
    }[word]
    return (
        f"In errors the model is {COMPARED[word]} the best baseline, {best.name}: {compared}, "
        f"{ending}"
    )


def _log_score_words(evaluation: Evaluation) -> str:
    model = evaluation.entries[0]
    scores = [entry.scores.log_score for entry in evaluation.entries]
    observed = evaluation.proba[np.arange(len(evaluation.y_index)), evaluation.y_index]
    losses = -np.log(np.clip(observed, PROBA_FLOOR, 1.0))
    se = float(losses.std(ddof=1)) / math.sqrt(losses.size) if losses.size > 1 else math.inf
    place = sum(score < model.scores.log_score for score in scores[1:]) + 1
    best = min(evaluation.entries[1:], key=lambda entry: entry.scores.log_score)
    return (
        "The log score judges the probabilities and not only the labels (lower is better; nats a "
        f"row). Here the model comes {ordinal(place)} of {len(scores)}: "
        f"{model.scores.log_score:.3f}, with a standard error of {se:.3f}, beside "
        f"{best.scores.log_score:.3f} of {best.name}, the best baseline."
    )


def _score_table(evaluation: Evaluation) -> NamedTable:
    columns = ("model", "error rate", "± s.e.", "log score", "Brier score", "calibration", "time")
    lowest = _lowest(evaluation)
    rows = []
    for entry in evaluation.entries:
        s = entry.scores
        values = (s.error_rate, s.log_score, s.brier_score, s.calibration_error)
        error, *others = (
            Cell(text, value, text == best)
            for text, value, best in zip(_score_texts(values), values, lowest, strict=True)
        )
        se = error_rate_se(entry)
        name = entry.name if entry.is_baseline else f"{entry.name} (this model)"
        time = Cell(duration(entry.seconds), entry.seconds)
        rows.append((Cell(name, entry.name), error, Cell(f"{100 * se:.1f}", se), *others, time))
    caption = (
        "The same rows for all. Lower is better; the lowest error rate, log score and Brier score "
        "are in bold. Calibration error alone is no contest: who gives every row the same "
        "probability can have 0. Time: fitting and predicting."
    )
    return NamedTable(caption, columns, tuple(rows))


def _score_texts(values: tuple[float, ...]) -> tuple[str, ...]:
    error, *others = values
    return (percent(error), *(f"{value:.3f}" for value in others))


def _lowest(evaluation: Evaluation) -> tuple[str, ...]:
    """Return the lowest of each score as it is shown, so that what looks equal is bold alike."""
    table = [
        (s.error_rate, s.log_score, s.brier_score, s.calibration_error)
        for s in (entry.scores for entry in evaluation.entries)
    ]
    *judged, _ = _score_texts(tuple(min(column) for column in zip(*table, strict=True)))
    return (*judged, "")  # calibration error has no winner


def reliability_section(evaluation: Evaluation | None) -> Section:
    """Build the section of the reliability diagram."""
    title = "Can the probabilities be trusted?"
    if evaluation is None:
        return Section("reliability", title, ("There are no held-out rows to check them on.",))
    label = evaluation.classes[1]
    p = evaluation.proba[:, 1]
    curve = reliability_curve(evaluation.y_index, p)
    reach = (curve.lower <= curve.mean_predicted) & (curve.mean_predicted <= curve.upper)
    n_bins, n_reach = len(reach), int(np.count_nonzero(reach))
    error = evaluation.entries[0].scores.calibration_error
    by_chance = _error_by_chance(curve)
    text = (
        f"When the model says 70 %, the answer should be “{label}” seven times in ten. Each point "
        f"gathers about {round(p.size / n_bins)} held-out rows with similar probabilities and "
        f"shows how often “{label}” came out; on the diagonal the probabilities are right.",
        f"{n_reach} of {n_bins} bars reach the diagonal; of bars that each hold 90 %, about nine "
        f"in ten should. On average the points lie {100 * error:.1f} percentage points from it "
        f"(the calibration error). At this number of rows some distance is chance: even "
        f"perfect probabilities would lie about {100 * by_chance:.1f} points off.",
    )
    figure = Figure(
        reliability_svg(curve, p),
        f"Predicted probability of “{label}” and how often it was observed. Points: "
        f"{n_bins} groups of rows. Bars: 90 % intervals. Above: how many rows got which "
        "probability.",
        f"Reliability diagram: {n_reach} of {n_bins} groups of rows agree with the diagonal "
        "within their 90 % intervals.",
    )
    return Section("reliability", title, text, figures=(figure,))


def _error_by_chance(curve: ReliabilityCurve) -> float:
    """Return the calibration error to expect of perfect probabilities.

    The frequency in a bin of m rows is about normal around p with variance p (1 - p) / m, and the
    mean distance of a normal variable from its mean is sqrt(2 / pi) standard deviations.
    """
    p, m = curve.mean_predicted, curve.n_rows
    distance = np.sqrt(2 / np.pi * p * (1 - p) / m)
    return float(np.sum(distance * m) / np.sum(m))
