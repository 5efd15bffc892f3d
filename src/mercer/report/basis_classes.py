"""The part of a report that is about sequential kernel classification."""

from __future__ import annotations

from typing import Any, Final

from mercer.report.basis import pass_sections
from mercer.report.section import Section, count, number

__all__ = ["GLOSSARY", "TITLE", "describe", "sections"]

TITLE: Final = "Sequential kernel classification"
GLOSSARY: Final = (
    "n_centres: number of kernels in the sum. coef_std: how high they are before the data speak, "
    "in logits. lengthscale: how far a kernel reaches, in standard deviations of the inputs."
)


def describe(estimator: Any) -> tuple[str, ...]:
    """Say in plain words what the model is, and what its file holds."""
    draws, n_rows = estimator.posterior_, estimator.n_rows_seen_
    words = [
        "The logarithm of the odds of the classes is a sum of kernels, bumps of one width, each "
        "around one of the rows. How many there are, around which rows, how wide and how high is "
        f"not fixed: {count(draws.n_total)} particles hold what is plausible given the data, and "
        "every probability is an average over them. There are "
        f"{number(estimator.n_centres_, 2)} kernels on average. {count(n_rows)} rows were learned "
        "in one pass, each predicted before it was learned.",
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
        "rows, standardised, with their labels: share it as you would share the data. This report "
        "holds summaries.",
    )


def sections(estimator: Any) -> tuple[Section, ...]:
    """Return the section on the pass over the rows."""
    drift = "a smaller buffer (as --set n_buffered=256) forgets sooner what a stream brought first"
    return pass_sections(estimator, "the probability that was given to the class", drift)
