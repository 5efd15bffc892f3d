"""What held-out rows say: scores, and whether probabilities or intervals are right."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from scipy.stats import binom

from mercer import plot
from mercer.posterior.evaluation import (
    COMPARED,
    Evaluation,
    HeldClasses,
    HeldTargets,
    ModelScore,
    RegressionEvaluation,
    error_rate_se,
    log_score_words,
    mse_error,
    points,
    standing,
    verdict,
)
from mercer.posterior.scores import (
    COVERAGES,
    LEVEL,
    ErrorCoverage,
    RegressionScores,
    ReliabilityCurve,
    Scores,
    error_coverage_curve,
    interval_coverage,
    pit_histogram,
    reliability_curve,
)
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
    svg,
)

LOG_SCORE: Final = "The log score judges the probabilities and not only the labels."
ABSENT: Final = (
    "There are no held-out rows: nothing here says how well the model predicts rows that it has "
    "not seen. Name a test file, a test share or a number of folds when fitting to get scores."
)


def class_sections(evaluation: Evaluation | None) -> tuple[Section, ...]:
    """Return the sections on held-out rows of a classifier."""
    return (
        scores_section(evaluation),
        *gains_sections(evaluation),
        reliability_section(evaluation),
        coverage_section(evaluation),
    )


def class_tiles(evaluation: Evaluation) -> tuple[Tile, ...]:
    """Return the headline numbers of a classifier."""
    model = evaluation.entries[0]
    place = standing(evaluation)
    note = "no baseline to compare with"
    if place is not None:
        word, best = place
        note = f"{COMPARED[word]} the best baseline ({percent(best.scores.error_rate)})"
        if best.gap_error is not None:
            note += f", apart by {_points(best, model).lstrip('−')} points"
    first = Tile(
        "Error rate",
        percent(model.scores.error_rate),
        note if place is not None else f"± {100 * error_rate_se(model):.1f}, {note}",
        needs_attention=place is not None and place[0] == "behind",
    )
    rare, precision = evaluation.rare, model.scores.average_precision
    if rare is not None and precision is not None:
        note = f"of {rare.name}, {percent(rare.share)} of the rows; chance {rare.share:.3f}"
        first = Tile("Average precision", f"{precision:.3f}", note)
    return (
        first,
        Tile("Log score", f"{model.scores.log_score:.3f}", "nats a row, lower is better"),
        Tile(
            "Calibration error",
            percent(model.scores.calibration_error),
            "average distance of probability from frequency",
        ),
    )


def scores_section(evaluation: Evaluation | None) -> Section:
    """Build the section of scores, the baselines beside the model."""
    title = "Scores on rows it had not seen"
    if evaluation is None:
        return Section("scores", title, (ABSENT,))
    return Section(
        "scores", title, _standing(evaluation, LOG_SCORE), tables=(_score_table(evaluation),)
    )


def _standing(
    evaluation: Evaluation | RegressionEvaluation, judges: str, of_baselines: str = ""
) -> tuple[str, ...]:
    """Say on what was scored, and how the model stands beside the baselines."""
    n_rows = evaluation.entries[0].scores.n_rows
    scored = f"Scored on {count(n_rows)} rows that were not used for fitting ({evaluation.how})."
    if len(evaluation.entries) == 1:
        return scored, verdict(evaluation)
    log_scores = f"{judges} {log_score_words(evaluation)} {of_baselines}".rstrip()
    return scored, verdict(evaluation), log_scores


def _score_table(evaluation: Evaluation) -> NamedTable:
    model = evaluation.entries[0]
    has_rare = model.scores.average_precision is not None
    columns = (
        "model", *("average precision",) * has_rare, "error rate", "− model’s", "log score",
        "− model’s", "Brier score", "calibration", "time",
    )  # fmt: skip

    def arrange(entry: ModelScore[Scores], cells: Sequence[Cell]) -> tuple[Cell, ...]:
        error, log_score, brier = cells
        of_error, of_log_score = _gap_cells(entry, model)
        calibration = entry.scores.calibration_error  # which has no winner
        shown = Cell(f"{calibration:.3f}", calibration)
        precision = entry.scores.average_precision or 0.0
        first = (Cell(f"{precision:.3f}", precision),) * has_rare
        return *first, error, of_error, log_score, of_log_score, brier, shown

    caption = (
        "The same rows for all. − model’s: less the score of the model (error rates in percentage "
        "points), ± the standard error of this difference, rows paired. Lower is better; the "
        "lowest error rate, log score and Brier score are in bold. Calibration error alone is no "
        "contest: who gives every row the same probability can have 0. "
        f"{'Average precision, of the rare class: higher is better. ' if has_rare else ''}"
        "Time: fitting and predicting."
    )
    return NamedTable(caption, columns, _score_rows(evaluation, _judged, _texts, arrange))


def _judged(entry: ModelScore[Scores]) -> tuple[float, ...]:
    return entry.scores.error_rate, entry.scores.log_score, entry.scores.brier_score


def _texts(judged: tuple[float, ...]) -> tuple[str, ...]:
    error, *others = judged
    return (percent(error), *(f"{value:.3f}" for value in others))


def _score_rows(
    evaluation: Evaluation | RegressionEvaluation,
    judged: Callable[[Any], tuple[float, ...]],
    write: Callable[[tuple[float, ...]], tuple[str, ...]],
    arrange: Callable[[Any, Sequence[Cell]], tuple[Cell, ...]],
) -> tuple[tuple[Cell, ...], ...]:
    """Build a row a model: its name, what ``arrange`` makes of the judged scores, its time.

    What ``write`` makes look equal to the lowest is bold alike.
    """
    entries: tuple[ModelScore[Any], ...] = evaluation.entries
    lowest = write(tuple(min(column) for column in zip(*map(judged, entries), strict=True)))
    rows = []
    for entry in entries:
        scores = judged(entry)
        cells = [
            Cell(text, value, text == best)
            for text, value, best in zip(write(scores), scores, lowest, strict=True)
        ]
        name = entry.name if entry.is_baseline else f"{entry.name} (this model)"
        time = Cell(duration(entry.seconds), entry.seconds)
        rows.append((Cell(name, entry.name), *arrange(entry, cells), time))
    return tuple(rows)


def _gap_cells(entry: ModelScore[Scores], model: ModelScore[Scores]) -> tuple[Cell, Cell]:
    """Show how far a baseline's error rate and log score are from the model's."""
    if entry is model or entry.gap_error is None or entry.log_score_gap_error is None:
        return Cell("–", 0.0), Cell("–", 0.0)
    gap = entry.scores.log_score - model.scores.log_score
    words = f"{number(gap, 2)} ± {number(entry.log_score_gap_error, 2)}"
    points = entry.scores.error_rate - model.scores.error_rate
    return Cell(_points(entry, model), points), Cell(words, gap)


def _points(entry: ModelScore[Scores], model: ModelScore[Scores]) -> str:
    """Write how much more a baseline errs than the model, in percentage points."""
    assert entry.gap_error is not None
    gap = entry.scores.error_rate - model.scores.error_rate
    return f"{points(gap)} ± {points(entry.gap_error)}".replace("-", "−")


_LOOKED_AT: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


def gains_sections(evaluation: Evaluation | None) -> tuple[Section, ...]:
    """Build the section on how well the rows of a rare class are found, if one is."""
    rare = None if evaluation is None else evaluation.rare
    if rare is None:
        return ()
    name, curve, n, n_rare = rare.name, rare.gains, len(rare.gains.found), rare.n_rare
    others = {curve.n_looked_at(share) for share in _LOOKED_AT}
    rows = []
    for k in sorted({n_rare} | {k for k in others if abs(k - n_rare) > 0.2 * n_rare}):
        found, expected, spread = (
            float(x[k - 1]) for x in (curve.found, curve.expected, curve.spread)
        )
        cells = (
            Cell(count(k), k),
            Cell(percent(k / n), k / n),
            Cell(f"{found:.0f}", found),
            Cell(f"{expected:.1f} ± {spread:.1f}", expected),
            Cell(percent(found / n_rare, 0), found / n_rare),
            Cell(percent(found / k, 0), found / k),
        )
        rows.append(cells)
    of_all, of_first = percent(rare.share), percent(rare.n_found / n_rare, 0)
    order = f"Of the first {count(n_rare)} rows in that order {of_first} are"
    if n_rare == 1:
        order = f"The first row in that order {'is' if rare.n_found >= 0.5 else 'is not'}"
    text = (
        f"{name} is rare: {count(n_rare)} of {count(n)} held-out rows, {of_all}. Never to name it "
        "costs few errors, and finds none of them. What counts is whether its rows come first "
        "where rows are put in the order of their probability.",
        f"{order} {name}; of rows taken by chance {of_all} would be. Where looking at a row costs "
        "something, go on as long as the probability of the next one is worth it; the next section "
        "says whether to believe it.",
    )
    figure = Figure(
        svg(plot.gains, 3.6, curve),
        f"Share of all {name} among the rows that are looked at. Grey: by chance. Band: what the "
        "probabilities say themselves, in nine cases of ten.",
        f"Gains: {order[0].lower()}{order[1:]} {name}.",
    )
    headings = ("looked at", "of all", "found", "expected", f"of all {name}", "right")
    caption = (
        f"Rows with the largest probability of {name}. Expected: the sum of their probabilities, ± "
        f"its standard deviation. Right: which share of the rows looked at is {name}."
    )
    table = NamedTable(caption, headings, tuple(rows))
    what = f"Are the rows of {name} found?"
    return (Section("gains", what, text, figures=(figure,), tables=(table,)),)


def reliability_section(evaluation: Evaluation | None) -> Section:
    """Build the section of the reliability diagram."""
    title = "Can the probabilities be trusted?"
    if evaluation is None:
        return Section("reliability", title, ("There are no held-out rows to check them on.",))
    y, p = HeldClasses(evaluation.y_index, evaluation.proba).judged
    if evaluation.proba.shape[1] == 2:
        what = f"“{evaluation.classes[1]}”"
        when, came = f", the answer should be {what}", f"{what} came out"
    else:
        what = "the most probable class"
        when, came = f" of {what}, it should be right", f"{what} was right"
    entry = evaluation.entries[0]
    curve = reliability_curve(y, p, share_worth=1.0 / _widening(entry) ** 2)
    reach = (curve.lower <= curve.mean_predicted) & (curve.mean_predicted <= curve.upper)
    n_bins, n_reach = len(reach), int(np.count_nonzero(reach))
    error = entry.scores.calibration_error
    by_chance = _error_by_chance(curve) * _widening(entry)
    text = (
        f"When the model says 70 %{when} seven times in ten. Each point gathers about "
        f"{round(p.size / n_bins)} held-out rows with similar probabilities and shows how often "
        f"{came}; on the diagonal the probabilities are right.",
        f"{n_reach} of {n_bins} bars reach the diagonal; of bars that each hold 90 %, about nine "
        f"in ten should. On average the points lie {100 * error:.1f} percentage points from it "
        f"(the calibration error). At this number of rows{of_groups(entry)} some distance is "
        f"chance: even "
        f"perfect probabilities would lie about {100 * by_chance:.1f} points off.",
    )
    places = np.round(np.column_stack([curve.mean_predicted, curve.observed]) / _DOT)
    n_places = len(np.unique(places, axis=0))
    on_others = f", {n_bins - n_places} of which lie on others" if n_places < n_bins else ""
    figure = Figure(
        svg(plot.reliability, 5.35, curve, probabilities=p),
        f"Predicted probability of {what} and how often it was observed. Points: "
        f"{n_bins} groups of rows{on_others}. Bars: 90 % intervals. Above: how many rows got which "
        "probability.",
        f"Reliability diagram: {n_reach} of {n_bins} groups of rows agree with the diagonal "
        "within their 90 % intervals.",
    )
    return Section("reliability", title, text, figures=(figure,))


def of_groups(entry: ModelScore[Any]) -> str:
    """Say, where rows come in groups, how many independent ones they are worth."""
    if entry.n_worth is None:
        return ""
    return f" in {entry.n_groups} groups, worth about {entry.n_worth:.0f} independent rows,"


def _widening(entry: ModelScore[Scores]) -> float:
    """How much wider chance scatters rows in groups than as many independent ones."""
    return 1.0 if entry.n_worth is None else math.sqrt(entry.scores.n_rows / entry.n_worth)


def _error_by_chance(curve: ReliabilityCurve) -> float:
    """Return the calibration error to expect of perfect probabilities.

    The frequency in a bin of m rows is about normal around p with variance p (1 - p) / m, and the
    mean distance of a normal variable from its mean is sqrt(2 / pi) standard deviations.
    """
    p, m = curve.mean_predicted, curve.n_rows
    distance = np.sqrt(2 / np.pi * p * (1 - p) / m)
    return float(np.sum(distance * m) / np.sum(m))


def coverage_section(evaluation: Evaluation | None) -> Section:
    """Build the section of the error-coverage curve."""
    title = "What if it may leave rows undecided?"
    if evaluation is None:
        return Section("coverage", title, ("There are no held-out rows to count errors on.",))
    curve = error_coverage_curve(evaluation.y_index, evaluation.proba)
    whole, half = curve.error_at(1.0), curve.error_at(0.5)
    top = evaluation.proba.max(axis=1)
    text = (
        "A person can look at the rows that the model is least sure of. The curve says what that "
        "would gain: the error among the rows that are left to the model, those with the largest "
        "probability of their class.",
        _gain_words(
            curve,
            whole,
            half,
            float(np.sort(top)[len(top) - curve.n_decided(0.5)]),
            _widening(evaluation.entries[0]),
        ),
    )
    listed = ", ".join(f"{percent(curve.error_at(c))} of {percent(c, 0)}" for c in COVERAGES)
    figure = Figure(
        svg(plot.error_coverage, 3.6, curve),
        "Error among the rows that are decided. Points: with all, 90, 75 and 50 % of them. Of few "
        "rows, at the left, the error is mostly chance.",
        f"Error-coverage curve: errors of {listed} of the rows.",
    )
    return Section("coverage", title, text, figures=(figure,), tables=(_coverage_table(curve),))


def _gain_words(
    curve: ErrorCoverage, whole: float, half: float, bound: float, widening: float
) -> str:
    n_half = curve.n_decided(0.5)
    words = (
        f"Of all {count(len(curve.error))} rows it errs on {percent(whole)}, of the surer half on "
        f"{percent(half)}"
    )
    if whole == 0.0:
        return f"{words}: there is no error to avoid."
    if half > whole:
        return f"{words}: its certainty does not tell where it errs."
    least = math.floor(1000 * bound) / 1000  # "at least 100 %" would be of none but 1
    words += f" (those with a probability of at least {percent(least)})"
    # The surer half against the other one, both binomial at the common rate.
    n_other = max(len(curve.error) - n_half, 1)
    other = (whole * len(curve.error) - half * n_half) / n_other
    spread = math.sqrt(whole * (1.0 - whole) * (1.0 / n_half + 1.0 / n_other)) * widening
    return f"{words}." if other - half > 2.0 * spread else f"{words}: a gap that may be chance."


def _coverage_table(curve: ErrorCoverage) -> NamedTable:
    rows = []
    for share in COVERAGES:
        k, error = curve.n_decided(share), curve.error_at(share)
        rows.append(
            (
                Cell(percent(share, 0), share),
                Cell(count(k), k),
                Cell(percent(error), error),
                Cell(f"{error * k:.0f}", error * k),
            )
        )
    caption = f"The area under the curve, its mean error, is {percent(curve.area)}."
    return NamedTable(caption, ("decided", "rows", "error rate", "errors"), tuple(rows))


# What held-out rows say of a regressor: scores, predictions, whether its intervals are right.

Score: TypeAlias = ModelScore[RegressionScores]

_DOT: Final = 0.02  # about the width of a point of a reliability diagram
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
    said = _standing(evaluation, *_LOG_SCORE)
    return Section("scores", _TITLES["scores"], said, tables=(_number_table(evaluation),))


_LOG_SCORE: Final = (
    "The log score judges the whole prediction, its spread included.",
    "A baseline that predicts a number only is given one spread for all rows, that of its "
    "residuals on training rows it had not seen.",
)


def _number_table(evaluation: RegressionEvaluation) -> NamedTable:
    columns = (
        "model", "RMSE", "MSE / var.", "MSE − model’s", "log score", "in 90 %", "length", "time",
    )  # fmt: skip
    model = evaluation.entries[0]

    def arrange(entry: Score, cells: Sequence[Cell]) -> tuple[Cell, ...]:
        (rmse, share, log_score), s = cells, entry.scores
        inside = Cell(percent(s.coverage_90), s.coverage_90)
        width = Cell(number(s.width_90), s.width_90)
        return rmse, share, _gap_cell(entry, model), log_score, inside, width

    caption = (
        "The same rows for all. RMSE: root mean squared error, in the units of the target. MSE: "
        "its square, also as a share of the variance of the training targets, and less that of "
        "the model, with the standard error of this difference. Lower is better; the lowest are "
        "in bold. 90 % of the rows should be in their 90 % intervals, which are the better the "
        "shorter. Time: fitting and predicting."
    )
    return NamedTable(
        caption, columns, _score_rows(evaluation, _judged_numbers, _number_texts, arrange)
    )


def _judged_numbers(entry: Score) -> tuple[float, ...]:
    s = entry.scores
    share = math.nan if s.standardized_mse is None else s.standardized_mse
    return s.rmse, share, s.log_score


def _number_texts(judged: tuple[float, ...]) -> tuple[str, ...]:
    rmse, share, log_score = judged
    of_variance = percent(share) if share >= 0.001 else number(share, 2)
    return number(rmse, 4), "–" if math.isnan(share) else of_variance, f"{log_score:.3f}"


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
    drawn = (rows.y, rows.mean, rows.lower, rows.upper)
    figures = (
        Figure(
            svg(plot.predictions, 4.6, *(each[shown] for each in drawn)),
            "Observed against predicted values. Bars: 90 % intervals, in another colour where the "
            "value is outside.",
            f"Observed against predicted values of {len(shown)} rows; {n_outside} lie outside of "
            "their 90 % interval.",
        ),
        Figure(
            svg(plot.residuals, 3.6, rows.y, rows.mean, n_shown=_MOST_DRAWN),
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
    n, n_worth, distance = len(rows.pit), _worth(entry), rows.scores().calibration_error
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
        f"low or too high. The average distance from level is {percent(distance)}; by "
        f"chance alone perfect laws would have about {percent(_distance_by_chance(n_worth))}.",
    )
    figures = (
        Figure(
            svg(plot.interval_coverage, 4.4, curve),
            "Share of rows inside central intervals, against the probability that these claim. "
            "Grey: the range of chance (90 %).",
            f"Coverage curve: {n_in_band} of {len(is_in_band)} levels agree "
            "with the diagonal within chance.",
        ),
        Figure(
            svg(plot.pit, 4.4, histogram),
            "Probability that was given to values below the one that came (PIT). Grey: the range "
            "of chance (90 %) for each bar.",
            f"Histogram of the PIT in {len(histogram.share)} bars from "
            f"{percent(float(histogram.share.min()), 0)} to "
            f"{percent(float(histogram.share.max()), 0)} of the rows.",
        ),
    )
    return Section("intervals", _TITLES["intervals"], text, figures=figures)


def _distance_by_chance(n: int) -> float:
    """Return the mean of the integral of |F_n(u) - u| for n uniform numbers, about.

    F_n(u) is about normal around u with variance u (1 - u) / n; the mean distance of a normal
    variable from its mean is sqrt(2 / pi) standard deviations, and the integral of
    sqrt(u (1 - u)) is pi / 8.
    """
    return math.sqrt(2.0 / math.pi / n) * math.pi / 8.0
