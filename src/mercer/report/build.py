"""A report from a fitted estimator: which sections there are, in which order, and the headline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mercer.errors import UsageError
from mercer.posterior.evaluation import Evaluation, Provenance
from mercer.posterior.label_errors import LabelAudit
from mercer.report import gp, sphere
from mercer.report.chains import chains_section, diagnostics_section
from mercer.report.held_out import (
    COMPARED,
    coverage_section,
    error_rate_se,
    reliability_section,
    scores_section,
    standing,
)
from mercer.report.overview import fit_section, reproduce_section
from mercer.report.section import Report, Section, Tile
from mercer.report.words import count, percent

__all__ = ["build_report"]


@dataclass(frozen=True)
class _Method:
    """What a report says about one method and no other."""

    title: str
    glossary: str
    describe: Callable[[Any], tuple[str, ...]]
    sections: Callable[[Any, LabelAudit | None], tuple[Section, ...]]


_METHODS: Final = {
    "GPClassifier": _Method(
        gp.TITLE, gp.GLOSSARY, gp.describe, lambda model, _: gp.sections(model)
    ),
    "KernelGibbsClassifier": _Method(
        sphere.TITLE, sphere.GLOSSARY, sphere.describe, sphere.sections
    ),
}


def build_report(
    estimator: Any,
    *,
    evaluation: Evaluation | None,
    provenance: Provenance | None,
    audit: LabelAudit | None = None,
) -> Report:
    """Put together the report of a fitted estimator.

    Parameters
    ----------
    estimator : GPClassifier or KernelGibbsClassifier
        Fitted.
    evaluation : Evaluation or None
        Scores on held-out rows; without them the report says that there are none.
    provenance : Provenance or None
        What it was fitted on and how; without it the report says that this is not known.
    audit : LabelAudit, optional
        Of the labels of the training rows, for a report on them: their section then comes first,
        and absent held-out scores are no lack.

    Returns
    -------
    Report

    Raises
    ------
    UsageError
        If there is no report for this kind of estimator.
    """
    kind = type(estimator).__name__
    if kind not in _METHODS:
        raise UsageError(f"there is no report for {kind}, only for {', '.join(_METHODS)}")
    method = _METHODS[kind]
    held_out = (
        scores_section(evaluation),
        reliability_section(evaluation),
        coverage_section(evaluation),
    )
    sections = (
        fit_section(estimator, method.describe(estimator), provenance),
        *(held_out if audit is None or evaluation is not None else ()),
        *method.sections(estimator, audit),
        chains_section(estimator),
        diagnostics_section(estimator, method.glossary),
        reproduce_section(estimator, provenance),
    )
    title = method.title if audit is None else f"Audit of labels: {method.title}"
    tiles = _tiles(estimator, evaluation) if audit is None else _audit_tiles(estimator, audit)
    return Report(title, _subtitle(provenance), tiles, sections)


def _subtitle(provenance: Provenance | None) -> str:
    if provenance is None:
        return ""
    rows, inputs = count(provenance.n_rows), count(provenance.n_inputs)
    return f"{provenance.target} in {provenance.source} · {rows} rows · {inputs} inputs"


def _sampling_tile(estimator: Any) -> Tile:
    n_warnings = len(estimator.diagnostics_.warnings)
    return Tile(
        "Sampling",
        "no warnings" if n_warnings == 0 else f"{n_warnings} warning{'s' * (n_warnings > 1)}",
        f"{count(estimator.posterior_.n_total)} draws, see Diagnostics",
        needs_attention=n_warnings > 0,
    )


def _audit_tiles(estimator: Any, audit: LabelAudit) -> tuple[Tile, ...]:
    listed = f"of {count(len(audit.row))}"
    if audit.n_listed:
        listed += f"; {percent(audit.expected_fdr)} of them expected to be right"
    wrong = Tile("Labels wrong", percent(float(audit.p_wrong.mean())), "of all rows, expected")
    tiles = (Tile("Rows to check", count(audit.n_listed), listed), wrong)
    return (*tiles, _sampling_tile(estimator))


def _tiles(estimator: Any, evaluation: Evaluation | None) -> tuple[Tile, ...]:
    sampling = _sampling_tile(estimator)
    if evaluation is None:
        return (Tile("Held-out scores", "none", "see Scores", needs_attention=True), sampling)
    model = evaluation.entries[0]
    place = standing(evaluation)
    note = "no baseline to compare with"
    if place is not None:
        word, best = place
        note = f"{COMPARED[word]} the best baseline ({percent(best.scores.error_rate)})"
    return (
        Tile(
            "Error rate",
            percent(model.scores.error_rate),
            f"± {100 * error_rate_se(model):.1f}, {note}",
            needs_attention=place is not None and place[0] == "behind",
        ),
        Tile("Log score", f"{model.scores.log_score:.3f}", "nats a row, lower is better"),
        Tile(
            "Calibration error",
            percent(model.scores.calibration_error),
            "average distance of probability from frequency",
        ),
        sampling,
    )
