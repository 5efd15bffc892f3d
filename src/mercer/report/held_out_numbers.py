"""What held-out rows say of a regressor: scores, predictions, whether its intervals are right."""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import numpy as np
from scipy.stats import binom

from mercer.posterior.evaluation import (
    COMPARED,
    HeldTargets,
    ModelScore,
    RegressionEvaluation,
    log_score_words,
    mse_error,
    standing,
    verdict,
)
from mercer.posterior.regression_scores import (
    LEVEL,
    RegressionScores,
    interval_coverage,
    pit_histogram,
)
from mercer.report.figures import interval_coverage_svg, pit_svg, predictions_svg, residuals_svg
from mercer.report.held_out import ABSENT, of_groups
from mercer.report.section import (
    Cell,
    Figure,
    NamedTable,
    Section,
    Tile,
    count,
    duration,
    number,
    percent,
)

Score: TypeAlias = ModelScore[RegressionScores]

_MOST_DRAWN: Final = 500  # rows: more points would be one blot, and a large file
_SURPRISING: Final = 1e-3  # chance of a coverage this far off that asks for attention
_TOLERATED: Final = 0.01  # of many rows less is surprising, too, and matters to nobody
_TITLES: Final = {
    "scores": "Scores on rows it had not seen",
    "predictions": "How good are the predictions?",
    "intervals": "Can the intervals be trusted?",
}


def number_sections(evaluation: RegressionEvaluation | None) -> tuple[Section, ...]:
    """Return the sections on held-out rows of a regressor."""
    if evaluation is None:
        none = ("There are no held-out rows to check them on.",)
        return (
            Section("scores", _TITLES["scores"], (ABSENT,)),
            *(Section(key, _TITLES[key], none) for key in ("predictions", "intervals")),
        )
    return (
        _scores_section(evaluation),
        _predictions_section(evaluation),
        _intervals_section(evaluation.rows, evaluation.entries[0]),
    )


def number_tiles(evaluation: RegressionEvaluation) -> tuple[Tile, ...]:
    """Return the headline numbers of a regressor."""
    scores = evaluation.entries[0].scores
    place = standing(evaluation)
    note = "no baseline to compare with"
    if place is not None:
        word, best = place
        note = f"{COMPARED[word]} the best baseline ({number(best.scores.rmse)})"
    return (
        Tile(
            "Root mean squared error",
            number(scores.rmse),
            f"± {number(_rmse_error(evaluation), 2)}, {note}",
            needs_attention=place is not None and place[0] == "behind",
        ),
        Tile("Log score", f"{scores.log_score:.3f}", "nats a row, lower is better"),
        Tile(
            "Inside 90 % intervals",
            percent(scores.coverage_90),
            f"of {count(scores.n_rows)} rows{of_groups(evaluation.entries[0])}".rstrip(","),
            needs_attention=abs(scores.coverage_90 - LEVEL) > _TOLERATED
            and _is_surprising(scores.coverage_90, _worth(evaluation.entries[0])),
        ),
    )


def _share_words(share: float) -> str:
    return percent(share) if share >= 0.001 else number(share, 2)


def _worth(entry: Score) -> int:
    """How many independent rows say whether intervals are right."""
    return entry.scores.n_rows if entry.n_worth is None else max(round(entry.n_worth), 1)


def _is_surprising(coverage: float, n: int) -> bool:
    inside = round(coverage * n)
    chance = 2 * min(binom.cdf(inside, n, LEVEL), binom.sf(inside - 1, n, LEVEL))
    return bool(chance < _SURPRISING)


def _rmse_error(evaluation: RegressionEvaluation) -> float:
    """Return the standard error of the root, to first order."""
    rmse = evaluation.entries[0].scores.rmse
    return mse_error(evaluation) / (2 * rmse) if rmse > 0 else math.nan


def _scores_section(evaluation: RegressionEvaluation) -> Section:
    n_rows = evaluation.entries[0].scores.n_rows
    text = [
        f"Scored on {count(n_rows)} rows that were not used for fitting ({evaluation.how}).",
        verdict(evaluation),
    ]
    if len(evaluation.entries) > 1:
        text.append(f"{_LOG_SCORE[0]} {log_score_words(evaluation)} {_LOG_SCORE[1]}")
    return Section("scores", _TITLES["scores"], tuple(text), tables=(_score_table(evaluation),))


_LOG_SCORE: Final = (
    "The log score judges the whole prediction, its spread included.",
    "A baseline that predicts a number only is given one spread for all rows, that of its "
    "residuals on training rows it had not seen.",
)
_COLUMNS: Final = (
    "model",
    "RMSE",
    "MSE / var.",
    "MSE − model’s",
    "log score",
    "in 90 %",
    "length",
    "time",
)


def _score_table(evaluation: RegressionEvaluation) -> NamedTable:
    model = evaluation.entries[0]
    lowest = [min(column) for column in zip(*map(_judged, evaluation.entries), strict=True)]
    rows = []
    for entry in evaluation.entries:
        s = entry.scores
        judged = _judged(entry)
        rmse, share, log_score = (
            Cell(text, value, text == best)
            for text, value, best in zip(_texts(judged), judged, _texts(tuple(lowest)), strict=True)
        )
        name = entry.name if entry.is_baseline else f"{entry.name} (this model)"
        others = (
            Cell(percent(s.coverage_90), s.coverage_90),
            Cell(number(s.width_90), s.width_90),
            Cell(duration(entry.seconds), entry.seconds),
        )
        rows.append(
            (Cell(name, entry.name), rmse, share, _gap_cell(entry, model), log_score, *others)
        )
    caption = (
        "The same rows for all. RMSE: root mean squared error, in the units of the target. MSE: "
        "its square, also as a share of the variance of the training targets, and less that of "
        "the model, with the standard error of this difference. Lower is better; the lowest are "
        "in bold. 90 % of the rows should be in their 90 % intervals, which are the better the "
        "shorter. Time: fitting and predicting."
    )
    return NamedTable(caption, _COLUMNS, tuple(rows))


def _judged(entry: Score) -> tuple[float, float, float]:
    s = entry.scores
    share = math.nan if s.standardized_mse is None else s.standardized_mse
    return s.rmse, share, s.log_score


def _texts(judged: tuple[float, ...]) -> tuple[str, str, str]:
    """Write them; what looks equal to the lowest is bold alike."""
    rmse, share, log_score = judged
    return number(rmse, 4), "–" if math.isnan(share) else _share_words(share), f"{log_score:.3f}"


def _gap_cell(entry: Score, model: Score) -> Cell:
    if entry is model or entry.gap_error is None:
        return Cell("–", 0.0)
    gap = entry.scores.mse - model.scores.mse
    return Cell(f"{number(gap, 2)} ± {number(entry.gap_error, 2)}", gap)


def _predictions_section(evaluation: RegressionEvaluation) -> Section:
    rows, scores = evaluation.rows, evaluation.entries[0].scores
    n = len(rows.y)
    shown = np.unique(np.linspace(0, n - 1, min(n, _MOST_DRAWN)).astype(np.int64))
    some = "" if len(shown) == n else f" Shown are {count(len(shown))} of {count(n)} rows."
    text = (
        f"On average the prediction is off by {number(scores.mae)} (mean absolute error)"
        f"{_explained(scores.r2)}. In the first drawing a point on the diagonal was predicted "
        f"exactly; its bar is the 90 % interval.{some}",
        "The second shows what is left. If the line leaves zero by more than its bars, predictions "
        "are off in one direction there; a cloud that widens says that there values are harder to "
        "predict.",
    )
    n_outside = int(np.count_nonzero((rows.y[shown] < rows.lower[shown])
                                     | (rows.y[shown] > rows.upper[shown])))  # fmt: skip
    figures = (
        Figure(
            predictions_svg(rows, shown),
            "Observed against predicted values. Bars: 90 % intervals, in another colour where the "
            "value is outside.",
            f"Observed against predicted values of {len(shown)} rows; {n_outside} lie outside of "
            "their 90 % interval.",
        ),
        Figure(
            residuals_svg(rows, _MOST_DRAWN),
            "Observed minus predicted values. Line: their mean among neighbouring predictions, "
            "with two standard errors.",
            f"Residuals of {len(shown)} rows against their predictions.",
        ),
    )
    return Section("predictions", _TITLES["predictions"], text, figures=figures)


def _explained(r2: float | None) -> str:
    if r2 is None:
        return ""
    if r2 <= 0:
        return "; the mean of these rows would predict them better"
    return f", and it explains {percent(r2)} of the variance of these rows"


def _intervals_section(rows: HeldTargets, entry: Score) -> Section:
    n, n_worth = len(rows.pit), _worth(entry)
    curve, histogram = interval_coverage(rows.pit, n_worth), pit_histogram(rows.pit, n_worth)
    inside = float(np.mean((rows.lower <= rows.y) & (rows.y <= rows.upper)))
    is_in_band = (curve.lower <= curve.observed) & (curve.observed <= curve.upper)
    n_in_band = int(np.count_nonzero(is_in_band))
    text = (
        f"Of 90 % intervals nine in ten should hold the value that came; here {percent(inside)} of "
        f"{count(n)}{of_groups(entry)} do. The first drawing shows the same at every level: on "
        "the diagonal intervals are right, below it too narrow, above it too wide. "
        f"{n_in_band} of {len(is_in_band)} points lie in the grey band, where perfect intervals "
        "would lie with a probability of 90 % each.",
        "The second shows how far up in its predicted law each value came out. Right laws give "
        "level bars; a valley says too narrow, a hill too wide, a slope that predictions are too "
        f"low or too high. The average distance from level is {percent(_distance(rows))}; by "
        f"chance alone perfect laws would have about {percent(_distance_by_chance(n_worth))}.",
    )
    figures = (
        Figure(
            interval_coverage_svg(curve),
            "Share of rows inside central intervals, against the probability that these claim. "
            "Grey: the range of chance (90 %).",
            f"Coverage curve: {n_in_band} of {len(is_in_band)} levels agree "
            "with the diagonal within chance.",
        ),
        Figure(
            pit_svg(histogram),
            "Probability that was given to values below the one that came (PIT). Grey: the range "
            "of chance (90 %) for each bar.",
            f"Histogram of the PIT in {len(histogram.share)} bars from "
            f"{percent(float(histogram.share.min()), 0)} to "
            f"{percent(float(histogram.share.max()), 0)} of the rows.",
        ),
    )
    return Section("intervals", _TITLES["intervals"], text, figures=figures)


def _distance(rows: HeldTargets) -> float:
    return rows.scores().calibration_error


def _distance_by_chance(n: int) -> float:
    """Return the mean of the integral of |F_n(u) - u| for n uniform numbers, about.

    F_n(u) is about normal around u with variance u (1 - u) / n; the mean distance of a normal
    variable from its mean is sqrt(2 / pi) standard deviations, and the integral of
    sqrt(u (1 - u)) is pi / 8.
    """
    return math.sqrt(2.0 / math.pi / n) * math.pi / 8.0
