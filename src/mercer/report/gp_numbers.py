"""The part of a report that is about Gaussian process regression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from mercer.report import gp
from mercer.report.section import Section, count, curve_figures, noise_words

__all__ = ["GLOSSARY", "TITLE", "describe", "sections"]

TITLE: Final = "Gaussian process regression"
GLOSSARY: Final = (
    f"{gp.GLOSSARY} log_noise_variance: logarithm of the noise's variance; the target is "
    "standardised."
)


def describe(estimator: Any) -> tuple[str, ...]:
    """Say in plain words what the model is, and what its file holds."""
    return (
        "The model is a smooth unknown function of the inputs, and noise around it. "
        f"{gp.kernel_words(estimator)}How fast the "
        "function may change along each input, how far it may rise and fall, and how large the "
        f"noise is, {gp.AVERAGED.format(count(estimator.posterior_.n_total))}",
        noise_words(estimator),
        f"{gp.HOLDS_ROWS} This report holds summaries; of held-out rows, where there are any, "
        "drawings.",
    )


def sections(estimator: Any) -> tuple[Section, ...]:
    """Return the section on the relevance of the inputs, with the curve where there is one."""
    relevance, curves = gp.relevance_sections(estimator), curve_figures(estimator)
    if relevance:
        first, *rest = relevance
        return replace(first, figures=(*first.figures, *curves)), *rest
    return (Section("curve", "The curve", (), figures=curves),) if curves else ()
