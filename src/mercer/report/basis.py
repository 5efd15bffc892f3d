"""The part of a report that is about sequential kernel regression: its centres, its one pass."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mercer import plot
from mercer.report.section import (
    HOLDS_SUMMARIES,
    Cell,
    Figure,
    NamedTable,
    Section,
    count,
    noise_words,
    number,
    percent,
    svg,
)

TITLE: Final = "Sequential kernel regression"
GLOSSARY: Final = (
    "n_centres: number of kernels in the sum. noise_std: standard deviation of the noise, in those "
    "of the target. lengthscale: how far a kernel reaches, in standard deviations of the inputs."
)
_N_SHOWN: Final = 10
_FEWEST_ROWS: Final = 30  # of which a course can be drawn
_MOST_INPUTS: Final = 6  # in the table


def describe(estimator: Any) -> tuple[str, ...]:
    """Say in plain words what the model is, and what its file holds."""
    draws, n_rows = estimator.posterior_, estimator.n_rows_seen_
    return (
        "The model is a sum of kernels, bumps of one width, each around one of the rows, and noise "
        "around it. How many there are, around which rows, how wide and how high is not fixed: "
        f"{count(draws.n_total)} weighted particles hold what is plausible given the data, and "
        f"every prediction is an average over them. {count(n_rows)} rows were learned in one pass, "
        "each predicted before it was learned.",
        noise_words(estimator),
        "The model can go on learning, so a saved model file contains the last "
        f"{count(min(n_rows, estimator.n_rows_held_))} training rows, standardised: share it as "
        f"you would share the data. {HOLDS_SUMMARIES} The rows that are centres are in it too.",
    )


def sections(estimator: Any) -> tuple[Section, ...]:
    """Return the sections on the centres and on the pass over the rows."""
    given = "the probability density that was given to the target"
    return _centres_section(estimator), *pass_sections(estimator, given)


def _centres_section(estimator: Any) -> Section:
    n_shown = min(_N_SHOWN, len(estimator.candidates_))
    summary = estimator.summarise(n_shown)
    n_shown = len(summary.coef)
    spread = float(estimator.predict(estimator.candidates_).std())
    share = 1.0 if spread == 0.0 else max(0.0, 1.0 - (summary.distance / spread) ** 2)
    counts = estimator.posterior_.flat("n_centres")
    how_many = (
        f"The sum has {number(estimator.n_centres_, 2)} kernels on average, between "
        f"{int(counts.min())} and {int(counts.max())} in the particles. Many sets of centres give "
        "all but the same curve, so none of them is the right one."
    )
    if n_shown == 0:  # as where all rows have the same inputs
        text = (how_many, "At the rows no kernel adds anything to the mean of the average curve.")
        return Section("centres", "Centres", text)
    text = (
        how_many,
        f"Shown is a shorter sum that was fitted to the average of all of them: {n_shown} kernels, "
        f"taken one after the other, which explain {percent(share, 0)} of the variance of the "
        "average curve over the rows. It is a summary to look at; predictions are made from all "
        "particles.",
    )
    figures = (_figure(estimator, n_shown),) if len(estimator.feature_labels_) <= 2 else ()
    return Section(
        "centres", "Centres", text, figures=figures, tables=(_table(estimator, summary),)
    )


def _figure(estimator: Any, n_shown: int) -> Figure:
    names = estimator.feature_labels_
    if len(names) == 1:
        return Figure(
            svg(plot.centres, 3.6, estimator, n_shown),
            "Line and band: the prediction, and the 90 % interval of a new observation. Dashed: "
            f"the sum of {n_shown} kernels, with dots at their centres.",
            f"Prediction against {names[0]}, and a sum of {n_shown} kernels.",
        )
    return Figure(
        svg(plot.centres, 4.4, estimator, n_shown),
        "Small dots: rows that may be centres. Circles: those of the shorter sum, larger where "
        "the kernel is higher; blue lifts the curve, vermilion lowers it.",
        f"Centres of {n_shown} kernels over {names[0]} and {names[1]}.",
    )


def _table(estimator: Any, summary: Any) -> NamedTable:
    names = estimator.feature_labels_[:_MOST_INPUTS]
    order = np.argsort(-np.abs(summary.coef), kind="stable")
    rows = tuple(
        (
            Cell(number(summary.coef[i]), float(summary.coef[i])),
            *(Cell(number(value), float(value)) for value in summary.centres[i, : len(names)]),
        )
        for i in order
    )
    is_part = len(names) < len(estimator.feature_labels_)
    caption = (
        "The kernels of the shorter sum: height, in units of the target, and centre. Their length "
        f"scale is {number(summary.lengthscale, 2)} standard deviations of the inputs."
        + f" The first {len(names)} of {len(estimator.feature_labels_)} inputs."
        * is_part
    )
    return NamedTable(caption, ("height", *names), rows)


def pass_sections(estimator: Any, given: str) -> tuple[Section, ...]:
    """Return the section on the one pass over the rows, if there are enough of them.

    ``given`` is what the score is the logarithm of.
    """
    densities = estimator.log_predictive_
    n = len(densities)
    if n < _FEWEST_ROWS:
        return ()
    tenth = n // 10
    early, late = float(densities[:tenth].mean()), float(densities[-tenth:].mean())
    n_seen = estimator.n_rows_seen_
    which = (
        f"All {count(n)} rows" if n >= n_seen else f"The last {count(n)} of {count(n_seen)} rows"
    )
    course = "better" if late > early else "no better"
    text = (
        "Each row was predicted before it was learned, so this is an honest score without rows "
        f"held out: the logarithm of {given}, in nats, on average. A log score is this "
        "with the other sign, so here higher is better.",
        f"{which}: {number(float(densities.mean()))}. The first tenth of them: "
        f"{number(early)}; the last, predicted from all before: {number(late)}, which is "
        f"{course}. Where the recent rows fall below the average and stay there, the data have "
        "changed on the way: forgetting (as --set forgetting=0.99) is for that.",
    )
    figure = Figure(
        svg(plot.prequential, 3.4, densities),
        "Mean predictive log density of all these rows so far, and of the last of them.",
        f"Prequential score of {count(n)} rows.",
    )
    return (Section("pass", "One pass over the rows", text, figures=(figure,)),)


# The part of a report that is about sequential kernel classification.

TITLE_OF_CLASSES: Final = "Sequential kernel classification"
GLOSSARY_OF_CLASSES: Final = (
    "n_centres: number of kernels in the sum. coef_std: how high they are before the data speak, "
    "in logits. lengthscale: how far a kernel reaches, in standard deviations of the inputs."
)


def describe_classes(estimator: Any) -> tuple[str, ...]:
    """Say in plain words what the model is, and what its file holds."""
    draws, n_rows = estimator.posterior_, estimator.n_rows_seen_
    words = [
        "The logarithm of the odds of the classes is a sum of kernels, bumps of one width, each "
        "around one of the rows. How many there are, around which rows, how wide and how high is "
        f"not fixed: {count(draws.n_total)} particles hold what is plausible given the data, and "
        "every probability is an average over them. There are "
        f"{number(estimator.n_centres_, 2)} kernels on average. {count(n_rows)} rows were learned "
        "in one pass, each predicted before it was learned."
    ]
    classes = [str(label) for label in estimator.classes_]
    if len(classes) > 2:
        words.append(
            f"The {len(classes)} classes are told apart one after the other, by a sum each: is it "
            f"{classes[0]}, else is it {classes[1]}, and so on."
        )
    held = estimator.n_rows_held_
    return (
        *words,
        f"The model can go on learning, so a saved model file contains {count(held)} training "
        "rows, standardised, with their labels: share it as you would share the data. "
        f"{HOLDS_SUMMARIES}",
    )


def class_sections(estimator: Any) -> tuple[Section, ...]:
    """Return the section on the pass over the rows."""
    return pass_sections(estimator, "the probability that was given to the class")
