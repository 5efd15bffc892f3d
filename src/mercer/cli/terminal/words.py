"""Diagnostics and scores in words, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mercer.cli.terminal.score_table import digits3
from mercer.posterior.comparison import verdict
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.evaluation import Evaluation

__all__ = ["diagnosed", "evaluation_json", "score_words"]


def diagnosed(diagnostics: Diagnostics) -> list[tuple[str, str]]:
    """Say what the diagnostics say, as pairs of a label and words."""
    if diagnostics.warnings:
        return [("warning", words) for words in diagnostics.warnings]
    if diagnostics.max_rhat is None or diagnostics.min_ess is None:
        return [("sampling", "no warnings, and no draws to judge")]
    words = f"R-hat at most {diagnostics.max_rhat:.3f}, ESS at least {diagnostics.min_ess:.0f}"
    if diagnostics.acceptance_rate is not None:
        words += f", acceptance {diagnostics.acceptance_rate:.2f}"
    return [("sampling", f"no warnings: {words}, no divergences")]


def score_words(evaluation: Evaluation) -> str:
    """Say the scores of the model on one line."""
    s = evaluation.entries[0].scores
    return (
        f"{s.n_rows} rows: error {digits3(s.error_rate)}, log score {digits3(s.log_score)}, "
        f"Brier {digits3(s.brier_score)}, calibration error {digits3(s.calibration_error)}"
    )


def evaluation_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return scores and verdict as JSON can hold them; not the probabilities of each row."""
    return {
        "how": evaluation.how,
        "classes": list(evaluation.classes),
        "entries": [asdict(entry) for entry in evaluation.entries],
        "verdict": verdict(evaluation).replace("\u00a0", " "),
    }
