"""The work of `mercer audit`: from a fitted model to the rows whose label is probably wrong."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.options import TableOptions
from mercer.cli.terminal.audit_words import noise_json
from mercer.cli.terminal.session import Session
from mercer.cli.work.fitting import Fitted, Plan
from mercer.cli.work.rows_out import for_spreadsheet, records, write_rows
from mercer.data.wording import quoted
from mercer.errors import UsageError
from mercer.posterior.evaluation import Provenance
from mercer.posterior.label_errors import LabelAudit, audit_labels

__all__ = ["Audited", "Writes", "audit_fitted", "audit_json", "check_id", "write_audit"]

_COLUMNS = ("file", "row", "label", "p_wrong", "suggested", "p_suggested", "is_listed")


@dataclass(frozen=True)
class Writes:
    """The files that are asked for, and whether texts of the CSV are made safe for spreadsheets."""

    out: Path | None
    report: Path | None
    is_for_spreadsheet: bool


@dataclass(frozen=True, eq=False)
class Audited:
    """The audit of a table, and its columns as they are written."""

    audit: LabelAudit

    def columns(self) -> dict[str, NDArray[Any]]:
        """Name what is written of every row, the most suspicious first."""
        audit = self.audit
        is_listed = np.arange(len(audit.names)) < audit.n_listed
        values = (
            audit.recorded, audit.p_wrong, audit.suggested, audit.p_suggested, is_listed
        )  # fmt: skip
        return {**audit.names.columns(), **dict(zip(_COLUMNS[2:], values, strict=True))}


def check_id(options: TableOptions) -> None:
    """Refuse, before any work, a column of names that is called like a column of the result.

    Raises
    ------
    UsageError
        Naming it.
    """
    if options.id_column in _COLUMNS:
        raise UsageError(
            f"--id {quoted(options.id_column)} is also a column of the audit; rename it"
        )


def audit_fitted(plan: Plan, fitted: Fitted, fdr: float) -> Audited:
    """Order the rows of the table by the probability that their label is wrong."""
    estimator = fitted.estimator
    audit = audit_labels(
        estimator.label_proba_,
        estimator.recorded_,
        estimator.classes_,
        fdr=fdr,
        names=plan.table.names,
    )
    return Audited(audit)


def write_audit(
    audited: Audited,
    fitted: Fitted,
    provenance: Provenance,
    session: Session,
    writes: Writes,
) -> None:
    """Write what was asked for: the rows, the report."""
    out, report = writes.out, writes.report
    if out is not None:
        columns = audited.columns()
        write_rows(out, for_spreadsheet(columns) if writes.is_for_spreadsheet else columns)
        session.say("written", f"{out}, all {len(audited.audit.names)} rows")
    if report is not None:
        from mercer.report import build_report, render, write_report

        built = build_report(
            fitted.estimator, evaluation=None, provenance=provenance, audit=audited.audit
        )
        write_report(report, render(built))
        session.say("report", str(report))
    if out is None and report is None:
        session.say("saved", "nothing; --out audit.csv and --report audit.html would")


def audit_json(
    plan: Plan,
    fitted: Fitted,
    audited: Audited,
    provenance: Provenance,
    writes: Writes,
) -> dict[str, Any]:
    """Return the result as JSON can hold it."""
    audit, estimator = audited.audit, fitted.estimator
    return {
        "model": plan.entry.name,
        "classes": [str(label) for label in plan.table.classes],
        "n_rows": fitted.n_rows,
        "fdr": audit.fdr,
        "n_listed": audit.n_listed,
        "expected_fdr": audit.expected_fdr,
        "noise_rate": noise_json(estimator),
        "compared": estimator.compared_.to_dict(),
        "rows": records(audited.columns()),
        "notes": list(provenance.notes),
        "diagnostics": estimator.diagnostics_.to_dict(),
        "seconds": fitted.seconds,
        "provenance": {**asdict(provenance), "versions": dict(provenance.versions)},
        "out": None if writes.out is None else str(writes.out),
        "report": None if writes.report is None else str(writes.report),
    }
