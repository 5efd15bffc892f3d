"""The part of a report that is about a mixture of models: what each is worth."""

from __future__ import annotations

from typing import Any, Final

from mercer.data.files import listing
from mercer.report.section import (
    HOLDS_SUMMARIES,
    Section,
    count,
    from_table,
    number,
    percent,
)

TITLE: Final = "All models in one"
GLOSSARY: Final = (
    "weight: of a model in every prediction, as likely as the held-out scores have it."
)
_HEADINGS: Final = {
    "lower": "5 %",
    "upper": "95 %",
    "log_score": "log score",
    "gap": "behind the stack",
    "gap_error": "standard error",
    "seconds": "CPU s",
}


def describe(estimator: Any) -> tuple[str, ...]:
    """Say in plain words what the model is, and what its file holds."""
    n = len(estimator.weights_)
    kind = "probabilities" if hasattr(estimator, "classes_") else "probability densities"
    return (
        f"{count(n)} models ({listing(list(estimator.weights_))}) were fitted to the same rows, "
        f"and their {kind} are mixed: a prediction is the weighted mean of theirs. The weights are "
        "those that gave rows which the models had not seen the highest mean log score (stacking).",
        "A saved model file contains the members, and what their own files would: all but those of "
        "spectral and boosting hold standardised training rows, so share it as you would share the "
        f"data. {HOLDS_SUMMARIES}",
    )


def sections(estimator: Any) -> tuple[Section, ...]:
    """Return the section on the members and their weights."""
    table = estimator.comparison_
    first, weight = next(iter(estimator.weights_.items()))
    text = [
        f"{first} has the largest weight, {percent(weight, 0)}. A weight is not the probability "
        "that a model is right: one that is never the best alone has weight where it is right and "
        "the others are wrong, and of two that say the same either may have it. The interval is "
        "how well the held-out rows tell a weight."
    ]
    gaps = [row for row in table.rows[:-1] if row[5] is not None]
    if len(gaps) > 1:
        best = min(gaps, key=lambda row: row[4])
        way = "behind" if best[5] >= 0.0 else "ahead of"
        text.append(
            f"By itself {best[0]} scores best on held-out rows; it is {number(abs(best[5]))} nats "
            f"a row {way} the stack, with a standard error of {number(best[6])} (rows paired, "
            "groups whole). The stack is scored fold by fold, with the weights of the other folds."
        )
    caption = (
        "The members: weight with its central 90 %, mean log score of held-out rows (nats, the "
        "lower the better), CPU seconds of all fits."
    )
    named = from_table(caption, table, headings=_HEADINGS, decimals={"weight": 3, "seconds": 1})
    return (Section("members", "Members and weights", tuple(text), tables=(named,)),)
