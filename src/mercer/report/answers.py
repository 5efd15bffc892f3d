"""What a person asks: where the model errs, what decides, how, what the data are, what next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mercer import plot
from mercer.data.files import listing
from mercer.data.frame import InputFacts, TableFacts
from mercer.data.row_names import RowNames
from mercer.estimation.inspection import Effects, Importance, Inspection
from mercer.posterior.evaluation import AnyEvaluation, Evaluation, RegressionEvaluation
from mercer.report.section import (
    Cell,
    Figure,
    NamedTable,
    Section,
    Threshold,
    column,
    count,
    percent,
    svg,
)

Rows: TypeAlias = NDArray[np.int64]

_MOST_NAMED = 6


def answer_sections(
    evaluation: AnyEvaluation | None, inspection: Inspection | None
) -> tuple[Section, ...]:
    """Return what was seen of rows and inputs; nothing where nobody looked."""
    found = []
    names = None if inspection is None else inspection.names
    if isinstance(evaluation, Evaluation):
        found.append(class_errors_section(evaluation, names))
    elif evaluation is not None and names is not None:
        found.append(number_errors_section(evaluation, names))
    if inspection is not None and inspection.importance is not None:
        found.append(importance_section(inspection.importance))
    if inspection is not None and inspection.effects is not None and inspection.effects.curves:
        found.append(effects_section(inspection.effects))
    if inspection is not None and inspection.table is not None:
        found.append(data_section(inspection.table))
    if inspection is not None and inspection.steps:
        found.append(steps_section(inspection.steps))
    return tuple(found)


# Where it errs.

_MOST_LISTED = 30  # rows
_MOST_CLASSES = 12  # of a whole matrix of errors
_MOST_PAIRS = 20


def class_errors_section(evaluation: Evaluation, names: RowNames | None) -> Section:
    """Build the section of wrong classes; rows are listed where their names are known."""
    y, proba, classes = evaluation.y_index, evaluation.proba, evaluation.classes
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (y, proba.argmax(axis=1)), 1)
    n_wrong = len(y) - int(np.trace(counts))
    text = [_most_wrong(counts, classes) if n_wrong else "No held-out row got a wrong class."]
    threshold = None
    if len(classes) == 2:
        threshold = _threshold_of(evaluation)
        text.append(
            "The class is the more probable one, which is right where both errors cost the same. "
            "Where they do not, move the costs: if the probabilities are right, the best threshold "
            "follows from the costs alone."
        )
    tables = [_confusion_table(counts, classes), _class_table(counts, classes)]
    if names is not None:
        label_proba = proba[np.arange(len(y)), y]
        worst = np.argsort(label_proba, kind="stable")[:_MOST_LISTED]
        ranked = np.sort(proba, axis=1)
        unsure = np.argsort(ranked[:, -1] - ranked[:, -2], kind="stable")[:_MOST_LISTED]
        tables += [
            _class_rows(evaluation, names, worst, _WORST),
            _class_rows(evaluation, names, unsure, _UNSURE),
        ]
        text.append(_ROWS_WORDS + names.explanation)
    else:
        text.append(_UNNAMED)
    return Section(
        "errors", "Where does it err?", tuple(text), tables=tuple(tables), threshold=threshold
    )


_WORST = "The rows whose label surprised the model most: the lowest probability of the label first."
_UNSURE = "The rows that the model was least sure of: the smallest lead of the first class first."
_ROWS_WORDS = (
    "The worst rows are worth a look: a target may be wrong, or the inputs may lack what sets "
    "these rows apart. "
)
_UNNAMED = (
    "Which rows these are is not in a model file: `mercer fit --report`, or `mercer report MODEL "
    "DATA`, lists them by name."
)


def _most_wrong(counts: NDArray[np.int64], classes: Sequence[str]) -> str:
    """Name the error that is made most often."""
    wrong = counts - np.diag(np.diag(counts))
    true, said = divmod(int(wrong.argmax()), len(classes))
    n, n_true = int(wrong[true, said]), int(counts[true].sum())
    return (
        f"Of {count(int(counts.sum()))} held-out rows {count(int(wrong.sum()))} got a wrong class; "
        f"most often “{classes[true]}” was taken for “{classes[said]}”: {count(n)} of "
        f"{count(n_true)} rows."
    )


def _confusion_table(counts: NDArray[np.int64], classes: Sequence[str]) -> NamedTable:
    if len(classes) > _MOST_CLASSES:
        return _pairs_table(counts, classes)
    rows = [
        (
            Cell(f"is “{label}”", label),
            *(Cell(count(int(n)), int(n), c == i and n > 0) for c, n in enumerate(counts[i])),
        )
        for i, label in enumerate(classes)
    ]
    caption = "Held-out rows by their label (down) and the class they got (across); right in bold."
    return NamedTable(caption, ("label", *(f"got “{label}”" for label in classes)), tuple(rows))


def _pairs_table(counts: NDArray[np.int64], classes: Sequence[str]) -> NamedTable:
    wrong = counts - np.diag(np.diag(counts))
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MOST_PAIRS]
    rows = []
    for true, said in zip(*np.unravel_index(order, wrong.shape), strict=True):
        n = int(wrong[true, said])
        if n:
            share = n / int(counts[true].sum())
            cells = Cell(count(n), n), Cell(percent(share), share)
            rows.append(
                (Cell(classes[true], classes[true]), Cell(classes[said], classes[said]), *cells)
            )
    headings = ("label", "taken for", "rows", "of its rows")
    return NamedTable("The errors that were made most often.", headings, tuple(rows))


def _class_table(counts: NDArray[np.int64], classes: Sequence[str]) -> NamedTable:
    rows = []
    for i, label in enumerate(classes):
        n, said, right = int(counts[i].sum()), int(counts[:, i].sum()), int(counts[i, i])
        cells = [Cell(label, label), Cell(count(n), n), Cell(count(n - right), n - right)]
        for part, whole in ((n - right, n), (right, said)):
            share = part / whole if whole else math.nan
            cells.append(Cell(percent(share) if whole else "–", share if whole else ""))
        rows.append(tuple(cells))
    caption = (
        "Errors of each class. Missed: its rows that got another class. Right when named: of the "
        "rows that got this class, those that are of it."
    )
    return NamedTable(
        caption, ("class", "rows", "missed", "share", "right when named"), tuple(rows)
    )


def _threshold_of(evaluation: Evaluation) -> Threshold:
    """Count the rows of each class by the probability of the second, in thousandths."""
    step = np.floor(1000.0 * evaluation.proba[:, 1] + 1e-9).astype(np.int64)
    first, second = (
        tuple(np.bincount(step[evaluation.y_index == c], minlength=1001).tolist()) for c in (0, 1)
    )
    return Threshold((evaluation.classes[0], evaluation.classes[1]), (first, second))


def _class_rows(evaluation: Evaluation, names: RowNames, rows: Rows, caption: str) -> NamedTable:
    y, proba, classes = evaluation.y_index, evaluation.proba, evaluation.classes
    cells = []
    for i in rows:
        said = int(proba[i].argmax())
        p, top = float(proba[i, y[i]]), float(proba[i, said])
        cells.append(
            (
                Cell(names.short(int(i)), int(names.number[i])),
                Cell(classes[y[i]], classes[y[i]]),
                Cell(classes[said], classes[said], said != y[i]),
                Cell(percent(p), p),
                Cell(percent(top), top),
            )
        )
    headings = ("row", "label", "prediction", "probability of label", "of prediction")
    return NamedTable(caption, headings, tuple(cells))


def number_errors_section(evaluation: RegressionEvaluation, names: RowNames) -> Section:
    """Build the section of the numbers that were predicted worst."""
    held = evaluation.rows
    worst = np.argsort(held.log_density, kind="stable")[:_MOST_LISTED]
    unsure = np.argsort(-held.std, kind="stable")[:_MOST_LISTED]
    error = held.squared_errors
    n_part = max(1, len(error) // 20)
    share = float(np.sort(error)[-n_part:].sum() / max(error.sum(), np.finfo(float).tiny))
    text = (
        f"{percent(share, 0)} of the sum of squared errors is made on {count(n_part)} of "
        f"{count(len(error))} held-out rows, the worst {percent(n_part / len(error), 0)}.",
        _ROWS_WORDS + names.explanation,
    )
    surprising = "The rows whose target surprised the model most: the lowest log density first."
    wide = "The rows that the model was least sure of: the largest spread first."
    tables = (
        _number_rows(evaluation, names, worst, surprising),
        _number_rows(evaluation, names, unsure, wide),
    )
    return Section("errors", "Where does it err?", text, tables=tables)


def _number_rows(
    evaluation: RegressionEvaluation, names: RowNames, rows: Rows, caption: str
) -> NamedTable:
    held = evaluation.rows
    values = [
        values[rows].tolist() for values in (held.y, held.mean, held.std, held.lower, held.upper)
    ]
    texts = [column(each) for each in values]
    cells = [
        (
            Cell(names.short(int(i)), int(names.number[i])),
            *(Cell(text[k], value[k]) for text, value in zip(texts, values, strict=True)),
        )
        for k, i in enumerate(rows)
    ]
    headings = ("row", "observed", "predicted", "spread", "lower 90 %", "upper 90 %")
    return NamedTable(caption, headings, tuple(cells))


# What decides.


_LEAST_DECIDING = 1e-4  # nats a row
_BY_CHANCE = 0.05  # of reports, at most, that name an input that says nothing


def importance_section(found: Importance) -> Section:
    """Build the section of permutation importance."""
    order, n_errors = found.order, max(2.0, -ndtri(_BY_CHANCE / len(found.names)))
    is_sure = found.log_score > np.maximum(n_errors * found.log_score_error, _LEAST_DECIDING)
    sure = [found.names[j] for j in order if is_sure[j]]
    n_inputs = len(found.names)
    rest = n_inputs - len(sure)
    if sure:
        words = (
            f"{listing([f'“{name}”' for name in sure], _MOST_NAMED)} "
            f"{'decide' if len(sure) > 1 else 'decides'}"
        )
        others = f"; of the other {rest} none is seen to matter" if rest > 1 else ""
        words += (
            f": without {'any of them' if len(sure) > 1 else 'it'} predictions get worse{others}."
        )
    else:
        words = "Without any single input predictions get no worse than chance would make them."
    limits = f"Measured on {count(found.n_rows)} held-out rows, {found.n_repeats} times each"
    if found.n_left_out:
        limits += (
            f", of the {n_inputs} inputs that by themselves tell most of the target"
            f"{' or that the model looks at most' * found.asks_model}; "
            f"{found.n_left_out} more were not measured"
        )
    text = (
        words,
        "Each input in turn takes, in every row, its value from another held-out row: what it said "
        "of this row is lost, and the log score gets worse by as much as the model relied on it. "
        f"{limits}. Those are named whose loss is {n_errors:.1f} of its standard errors or more: "
        "of so many chance names one that says nothing in at most "
        f"{100.0 * _BY_CHANCE:.0f} % of reports.",
        "Inputs that say nearly the same cover for one another: each of them then looks as if it "
        "did not matter, while all of them together may. And what decides in the model need not "
        "cause anything in the world.",
    )
    figure = Figure(
        svg(
            plot.importance,
            1.0 + 0.34 * min(len(found.names), 15),
            *(found.log_score, found.log_score_error, found.names),
            repeats=found.repeats,
        ),
        "Points: log score lost without the input, a mean over rows. Bars: two standard errors to "
        "each side, each row compared with itself. Small points: single repeats. A bar that "
        "reaches zero may be chance.",
        "Importance of inputs, the greatest first: "
        f"{listing([found.names[j] for j in order], _MOST_NAMED)}.",
    )
    return Section(
        "importance", "What decides?", text, figures=(figure,), tables=(_importance_table(found),)
    )


def _importance_table(found: Importance) -> NamedTable:
    order, scale = found.order, 100.0 if found.is_classes else 1.0
    columns = [
        [float(x) for x in values[order]]
        for values in (
            found.log_score,
            found.log_score_error,
            np.ptp(found.repeats, axis=0),
            scale * found.error,
            scale * found.error_error,
        )
    ]
    texts = [column(values) for values in columns]
    rows = [
        (
            Cell(found.names[j], found.names[j]),
            *(
                Cell(text[i], values[i] if math.isfinite(values[i]) else "")
                for text, values in zip(texts, columns, strict=True)
            ),
        )
        for i, j in enumerate(order)
    ]
    error = "errors more, points" if found.is_classes else "squared error more"
    headings = ("input", "log score lost", "±", "range of repeats", error, "± ")
    caption = (
        "What is lost where the input is another row's: in log score, nats a row, and in "
        f"{'percentage points of rows that err' if found.is_classes else 'mean squared error'}. "
        "±: one standard error over rows, paired."
    )
    return NamedTable(caption, headings, tuple(rows))


# How inputs act.


def effects_section(found: Effects) -> Section:
    """Build the section of the curves of single inputs and of the strongest pair."""
    is_one = len(found.outputs) < 2
    what = "prediction" if not found.outputs else "probability of each class"
    if len(found.outputs) == 1:
        what = f"probability of “{found.outputs[0]}”"
    names = listing([f"“{curve.values.name}”" for curve in found.curves], 12)
    text = [
        f"The {what}, averaged over {count(found.n_rows)} rows, if one input had the value on the "
        "axis in all of them and the others stayed as they are.",
        "Bands hold 90 % of what the average over all rows may be, by the posterior and by the "
        "choice of rows: they say how well the curve is known, not how far single rows lie from it."
        + (" Dashed: the middle 80 % of the rows." if is_one else ""),
        "Where inputs go together, some of these rows are ones that nobody has seen: the curve "
        "then says what the model would do there, and little of the world.",
    ]
    figures = [
        Figure(
            svg(plot.effects, 0.5 + 1.55 * -(-len(found.curves) // 2), found),
            "The inputs that matter most, in order. Lines: mean over rows. Bands: 90 % for the "
            "mean over all rows."
            + (" Dashed: middle 80 % of the rows." if is_one else "")
            + (" Of a date: the part that moves the mean most." if found.n_left_out else ""),
            f"Curves of the mean {what} against {names}.",
        )
    ]
    pair = found.pair
    if pair is not None:
        share = pair.strength / pair.range if pair.range > 0 else 0.0
        strong = next(words for least, words in _STRENGTHS if share >= least)
        text.append(
            f"Of the pairs of the first inputs, “{pair.first.name}” and “{pair.second.name}” "
            f"{strong}: the sum of their two curves is {percent(share, 0)} of the map's range "
            "away from the map (root mean square)."
        )
        shown = f"probability of “{found.outputs[0]}”" if found.outputs else "prediction"
        figures.append(
            Figure(
                svg(plot.pair_effect, 3.9, pair),
                f"The pair that acts together most: mean {shown} over "
                f"{count(pair.n_rows)} rows, both inputs varied.",
                f"Map of the mean prediction against {pair.first.name} and {pair.second.name}.",
            )
        )
    return Section("effects", "How do inputs act?", tuple(text), figures=tuple(figures))


# Shares of the range from which a pair is said to act so.
_STRENGTHS = (
    (0.05, "change what the other does"),
    (0.01, "change a little what the other does"),
    (0.0, "act nearly by themselves"),
)


# What the data are, and what to do next.

_MOST_INPUTS, _MOST_FAR = 200, 10
_BARS = "▁▂▃▄▅▆▇█"
_MANY_TWINS = 0.02  # share of rows


def data_section(facts: TableFacts) -> Section:
    """Build the section of the inputs of the table."""
    shown, far = facts.inputs[:_MOST_INPUTS], far_off(facts)
    return Section(
        "data", "What the data are", data_words(facts), warnings=(*leak_words(facts), *far),
        tables=(_inputs_table(shown, len(facts.inputs)),),
    )  # fmt: skip


def data_words(facts: TableFacts) -> tuple[str, ...]:
    """Say what target and inputs are, and what of them deserves a second look."""
    missing = [each for each in facts.inputs if each.n_missing]
    text = [facts.target]
    if facts.n_all is not None and facts.n_all > facts.n_rows:
        text.insert(0, f"Of {count(facts.n_all)} rows {count(facts.n_rows)} are described here.")
    if missing:
        worst = max(missing, key=lambda each: each.n_missing)
        has, most = ("has", "") if len(missing) == 1 else ("have", " most")
        text.append(
            f"{count(len(missing))} of {count(len(facts.inputs))} inputs {has} missing values, "
            f"“{worst.name}”{most}: {percent(worst.n_missing / facts.n_rows)} of the rows; “What "
            "was fitted on what” tells what stands there."
        )
    if facts.pairs:
        listed = listing([f"“{a}” and “{b}” ({_signed(rho)})" for a, b, rho in facts.pairs], 5)
        text.append(
            f"Inputs that say nearly the same, by rank correlation: {listed}. One of them may "
            "cover for the other in what decides, and curves of one alone are then of rows that "
            "nobody has seen."
        )
    if facts.n_twins > _MANY_TWINS * facts.n_rows:
        text.append(
            f"{count(facts.n_twins)} rows have the inputs of another row. Where such twins are on "
            "both sides of a split, scores are too good; `--group` keeps them together."
        )
    return tuple(text)


def far_off(facts: TableFacts) -> tuple[str, ...]:
    """Warn of values far from all others."""
    if not facts.far:
        return ()
    said = "; ".join(facts.far[:_MOST_FAR])
    return (f"Far off: {said}. Where it is no slip, models know little of such rows.",)


def leak_words(facts: TableFacts) -> tuple[str, ...]:
    """Warn of inputs that alone give the target."""
    return tuple(
        f"“{each.name}” alone gives {percent(each.strength, 0)} of the target: is it known before "
        "the target is, or is it another name for it? If it leaks, drop it and fit again."
        for each in facts.leaks
    )


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


INPUT_HEADINGS = (
    "input", "kind", "missing", "different", "distribution", "range or levels", "tells alone"
)  # fmt: skip


def input_cells(facts: InputFacts) -> tuple[Cell, ...]:
    """One row of the table of inputs."""
    return (
        Cell(facts.name, facts.name),
        Cell(facts.kind, facts.kind),
        Cell(count(facts.n_missing) if facts.n_missing else "–", facts.n_missing),
        Cell(count(facts.n_distinct), facts.n_distinct),
        Cell(_bars(facts.counts), ""),
        Cell(facts.summary, facts.summary),
        Cell(percent(facts.strength, 0), facts.strength),
    )


def _inputs_table(inputs: Sequence[InputFacts], n_inputs: int) -> NamedTable:
    more = f" The first {len(inputs)} of {count(n_inputs)}." if n_inputs > len(inputs) else ""
    caption = (
        "The inputs. Distribution: ten equal steps from the lowest to the highest, or the "
        "commonest levels. Tells alone: share of the target's variance (of its Gini index, for "
        f"classes) that bins of this input give, without any model.{more}"
    )
    return NamedTable(caption, INPUT_HEADINGS, tuple(map(input_cells, inputs)))


def _bars(counts: Sequence[int]) -> str:
    top = max(counts, default=0)
    return "".join(_BARS[-(-(len(_BARS) - 1) * n // top)] for n in counts) if top else ""


def steps_section(steps: Sequence[tuple[str, str]]) -> Section:
    """Build the section of what to do next."""
    order = ", the most urgent first" if len(steps) > 1 else ""
    text = (f"What follows from what this page says{order}:",)
    return Section("next", "What next?", text, steps=tuple(steps))
