"""Diagnostics and scores in words, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from math import isnan
from typing import Any

from mercer.cli.terminal.score_table import digits3
from mercer.posterior.comparison import verdict
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.evaluation import AnyEvaluation, Evaluation
from mercer.posterior.metrics import Metric
from mercer.posterior.regression_scores import RegressionScores
from mercer.posterior.scores import Scores

__all__ = ["diagnosed", "evaluation_json", "listed_scores", "score_words"]


def diagnosed(diagnostics: Diagnostics) -> list[tuple[str, str]]:
    """Say what the diagnostics say, as pairs of a label and words."""
    if diagnostics.warnings:
        return [("warning", words) for words in diagnostics.warnings]
    if diagnostics.min_ess is None:
        return [("sampling", "no warnings, and no draws to judge")]
    if diagnostics.max_rhat is None:  # weighted particles
        return [("sampling", f"no warnings: ESS {diagnostics.min_ess:.0f}")]
    rhat, size = f"{diagnostics.max_rhat:.3f}", f"{diagnostics.min_ess:.0f}"
    words = f"R-hat at most {rhat}, as chance explains; ESS at least {size}"
    if diagnostics.acceptance_rate is not None:
        words += f", acceptance {diagnostics.acceptance_rate:.2f}"
    return [("sampling", f"no warnings: {words}, no divergences after warm-up")]


def score_words(evaluation: AnyEvaluation) -> str:
    """Say the scores of the model on one line."""
    return listed_scores(evaluation.entries[0].scores, evaluation.metrics)


def listed_scores(scores: Scores | RegressionScores, metrics: tuple[Metric, ...]) -> str:
    """List scores on one line, those that are known."""
    named = [(metric.brief, metric.of(scores)) for metric in metrics if metric.brief]
    listed = ", ".join(f"{name} {digits3(value)}" for name, value in named if not isnan(value))
    return f"{scores.n_rows} rows: {listed}"


def evaluation_json(evaluation: AnyEvaluation) -> dict[str, Any]:
    """Return scores and verdict as JSON can hold them; not what was said of each row."""
    classes = list(evaluation.classes) if isinstance(evaluation, Evaluation) else []
    return {
        "how": evaluation.how,
        "classes": classes,
        "entries": [asdict(entry) for entry in evaluation.entries],
        "verdict": verdict(evaluation).replace("\u00a0", " "),
    }
