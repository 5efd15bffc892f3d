"""The end of `mercer fit`: what was fitted, in words, in files, as JSON."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from mercer.cli.terminal.score_table import spoken
from mercer.cli.terminal.session import Session
from mercer.cli.terminal.words import diagnosed, evaluation_json
from mercer.cli.work.fitting import Fitted, Plan
from mercer.cli.work.provenance import NextStep, as_pair
from mercer.estimation.model_file import TableModel, write_model

__all__ = ["as_json", "say_fitted", "write_files"]


def say_fitted(fitted: Fitted, session: Session) -> None:
    """Say what was fitted and what its diagnostics say."""
    estimator = fitted.estimator
    size, seconds = estimator.posterior_.size_words, spoken(fitted.seconds)
    session.say("fitted", f"on {fitted.n_rows} rows in {seconds}: {size}")
    for note in estimator.notes_:
        session.say("", note)
    if estimator.diagnostics_.worst_warning:
        session.note("warning", estimator.diagnostics_.worst_warning)
    else:
        for label, words in diagnosed(estimator.diagnostics_):
            session.say(label, words)


def write_files(
    fitted: Fitted,
    saved: TableModel,
    session: Session,
    *,
    out: Path | None,
    report: Path | None,
    step: NextStep | None,
) -> None:
    """Write what was asked for; the model first, so that nothing can lose a long fit."""
    if out is not None:
        write_model(out, fitted.estimator, saved)
        size = out.stat().st_size / 2**20
        holds = "no" if "X" not in fitted.estimator._to_parts().arrays else "the standardised"
        session.say("model", f"{out} ({size:.1f} MB, holds {holds} training rows)")
    if report is not None:
        from mercer.report import build_report, render, write_report

        provenance, evaluation = saved.provenance, saved.evaluation
        built = build_report(
            fitted.estimator, evaluation=evaluation, provenance=provenance, next_step=as_pair(step)
        )
        write_report(report, render(built))
        session.say("report", str(report))
    if out is None and report is None:
        session.say("saved", "nothing; --out model.mercer and --report report.html would")


def as_json(
    plan: Plan,
    fitted: Fitted,
    saved: TableModel,
    *,
    out: Path | None,
    report: Path | None,
    step: NextStep | None,
) -> dict[str, object]:
    """Return the result as JSON can hold it."""
    provenance = saved.provenance
    return {
        "model": plan.entry.name,
        "estimator": plan.entry.estimator,
        "task": plan.table.task.name,
        "classes": [str(label) for label in plan.table.classes],
        "n_rows": fitted.n_rows,
        "inputs": list(provenance.input_names),
        "notes": list(provenance.notes),
        "next": None if step is None else step.command,
        "evaluation": None if saved.evaluation is None else evaluation_json(saved.evaluation),
        "diagnostics": fitted.estimator.diagnostics_.to_dict(),
        "seconds": fitted.seconds,
        "provenance": {**asdict(provenance), "versions": dict(provenance.versions)},
        "out": None if out is None else str(out),
        "report": None if report is None else str(report),
    }
