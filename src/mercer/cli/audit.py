"""`mercer audit`: the rows of a table whose label or value is probably wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.exits import kept_to_this
from mercer.cli.fitting import (
    FitOptions,
    Fitted,
    Plan,
    fit_final,
    make_plan,
    plan_provenance,
    refuse_unconverged,
)
from mercer.cli.options import TableOptions
from mercer.cli.out_of_core import check_engine, fit_stored, open_training
from mercer.cli.outputs import (
    check_format,
    check_outputs,
    provenance_json,
    records,
    typed_words,
    write_rows,
)
from mercer.cli.saving import audit_steps, say_fitted
from mercer.cli.tables import WrittenTable, say_conflicts, spellings
from mercer.cli.terminal import Session, list_words, noise_json, noise_words, suspects_table
from mercer.data.encoding import Encoder
from mercer.data.files import quoted
from mercer.data.row_names import RowNames
from mercer.errors import UsageError
from mercer.estimation.inspection import Inspection
from mercer.models import ModelEntry
from mercer.posterior.evaluation import FEW_ROWS, Provenance
from mercer.posterior.labels import Audit, TargetAudit, audit_of

# Names that a column of row names cannot have, whichever the audit is.
_COLUMNS = (
    "file", "row", "label", "p_wrong", "suggested", "p_suggested", "is_listed", "value", "expected",
    "expected_std",
)  # fmt: skip


# What `--fixed` adds to a table.
_BESIDE = ("recorded", "p_wrong", "is_changed")


@dataclass(frozen=True)
class Writes:
    """The files that are asked for, and whether texts of the CSV are made safe for spreadsheets."""

    out: Path | None
    report: Path | None
    fixed: Path | None
    is_for_spreadsheet: bool


def audit_columns(audit: Audit) -> dict[str, NDArray[Any]]:
    """Name what is written of every row, the most suspicious first."""
    return {**audit.names.columns(), **audit.columns()}


def read_written(plan: Plan, options: TableOptions) -> WrittenTable:
    """Read the cells that ``--fixed`` writes again, before any work."""
    written = WrittenTable.read(plan.table.source, options.encoding, options.null_values)
    for name in _BESIDE:
        if name in written.columns:
            raise UsageError(f"--fixed adds a column {quoted(name)}, which is there; rename it")
    return written


def fixed_columns(
    written: WrittenTable, audit: Audit, target: str, encoder: Encoder
) -> dict[str, NDArray[Any]]:
    """Name the columns of the table, its target replaced where it is listed, and what was there.

    Labels and numbers are written as the table writes them.
    """
    at = written.at(audit.names)
    recorded, changed = written.columns[target], at[: audit.n_listed]
    if isinstance(audit, TargetAudit):
        write = str if encoder.target is None else encoder.target.write
        better = [write(value) for value in audit.expected.tolist()]
    else:
        spelled = spellings(audit.recorded.tolist(), recorded[at].tolist())
        better = [spelled[str(label)] for label in audit.columns()["suggested"]]
    fixed, p_wrong = recorded.copy(), np.full(len(recorded), None, dtype=object)
    fixed[changed], p_wrong[at] = better[: audit.n_listed], audit.p_wrong
    is_changed = np.isin(np.arange(len(recorded)), changed)
    beside = zip(_BESIDE, (recorded, p_wrong, is_changed), strict=True)
    return {**written.columns, target: fixed, **dict(beside)}


def check_id(options: TableOptions) -> None:
    """Refuse, before any work, a column of names that is called like a column of the result."""
    if options.id_column in _COLUMNS:
        raise UsageError(
            f"--id {quoted(options.id_column)} is also a column of the audit; rename it"
        )


def write_audit(
    audit: Audit,
    fitted: Fitted,
    provenance: Provenance,
    session: Session,
    writes: Writes,
    entry: ModelEntry,
) -> None:
    """Write what was asked for: the rows, the report, JSON; propose what to do next."""
    out, report = writes.out, writes.report
    steps = audit_steps(
        typed_words(), fitted.estimator, audit, model=entry.name, n_rows=fitted.n_rows
    )
    if out is not None:
        columns = audit_columns(audit)
        write_rows(out, columns, is_for_spreadsheet=writes.is_for_spreadsheet)
        session.say("written", f"{out}, all {len(audit.names)} rows")
    if report is not None:
        from mercer.report import build_report, render, write_report

        looked = Inspection(audit.names, steps=steps)
        built = build_report(
            fitted.estimator, provenance=provenance, audit=audit, inspection=looked
        )
        write_report(report, render(built))
        session.say("report", str(report))
    if out is None and report is None and writes.fixed is None:
        session.say("saved", "nothing; --out audit.csv and --report audit.html would")
    for step in steps:
        session.propose(step)
    session.give(audit_json(entry, fitted, audit, provenance, writes))


def audit_json(
    entry: ModelEntry, fitted: Fitted, audit: Audit, provenance: Provenance, writes: Writes
) -> dict[str, Any]:
    """Return the result as JSON can hold it."""
    estimator = fitted.estimator
    written = (("out", writes.out), ("report", writes.report), ("fixed", writes.fixed))
    return {
        "model": entry.name,
        "classes": [str(label) for label in getattr(estimator, "classes_", ())],
        "n_rows": fitted.n_rows,
        "fdr": audit.fdr,
        "n_listed": audit.n_listed,
        "expected_fdr": audit.expected_fdr,
        "caution": audit.caution(),
        "noise_rate": noise_json(estimator),
        "compared": estimator.compared_.to_dict() if entry.name == "sphere" else None,
        "rows": records(audit_columns(audit)),
        "notes": list(provenance.notes),
        "diagnostics": estimator.diagnostics_.to_dict(),
        "seconds": fitted.seconds,
        "provenance": provenance_json(provenance),
        **{name: path and str(path) for name, path in written},
    }


def run(
    data: str,
    table: TableOptions,
    fdr: float,
    out: Path | None,
    report: Path | None,
    fixed: Path | None,
    is_for_spreadsheet: bool,
    checkpoint: Path | None,
    strict: bool,
    engine: str | None,
    scheduler: str | None,
    workers: int | None,
    is_json: bool,
    **of_fit: Any,
) -> None:
    """Do the work of `mercer audit`: `mercer.cli.commands` has its options."""
    written = {"--out": out, "--report": report, "--fixed": fixed}
    check_outputs(written, {"DATA": data}, checkpoint=checkpoint)
    for path in (out, fixed):
        check_format(path, is_for_spreadsheet=is_for_spreadsheet)
    if fixed is not None and data == "-":
        raise UsageError("--fixed reads its table twice: give a file, not standard input")
    session = Session(is_json)
    options = FitOptions(data=data, table=table, scoring=None, checkpoint=checkpoint, **of_fit)
    check_id(table)
    if table.missing == "posterior":
        raise UsageError("an audit does not draw missing inputs; use --missing indicator or impute")
    writes = Writes(out, report, fixed, is_for_spreadsheet)
    check_engine(engine, scheduler, workers, {**table.of_whole_tables, "--fixed": fixed})
    with session.warnings_as_lines(), kept_to_this(checkpoint), session.files_first():
        if engine is None:
            plan = make_plan(options, session)
            _audit(plan, session, table, fdr, writes, is_strict=strict)
            return
        stored = open_training(options, engine, session, scheduler=scheduler, n_workers=workers)
        fitted, saved = fit_stored(stored, session)
        audit = _listed(fitted, session, fdr, fitted.estimator.row_names_, is_strict=strict)
        write_audit(audit, fitted, saved.provenance, session, writes, stored.entry)


def _audit(
    plan: Plan,
    session: Session,
    options: TableOptions,
    fdr: float,
    writes: Writes,
    *,
    is_strict: bool,
) -> None:
    written = None if writes.fixed is None else read_written(plan, options)
    conflicts = say_conflicts(plan.table) if plan.table.classes else ""
    if conflicts:
        session.say("conflicts", conflicts)
    if len(plan.table.labels) < FEW_ROWS:
        session.say("few", f"{len(plan.table.labels)} rows: too few to tell wrong ones from rare")
    fitted = fit_final(plan, session)
    audit = _listed(fitted, session, fdr, plan.table.names, is_strict=is_strict)
    provenance = plan_provenance(plan, fitted, options.target)
    if written is not None and writes.fixed is not None:
        columns = fixed_columns(written, audit, options.target, plan.table.encoder)
        is_safe = writes.is_for_spreadsheet
        write_rows(writes.fixed, columns, written.line_end, is_for_spreadsheet=is_safe)
        what = f"{'label' if plan.table.classes else 'value'}{'s' * (audit.n_listed != 1)}"
        session.say(
            "fixed",
            f"{writes.fixed}, {audit.n_listed} {what} replaced; who learns from it leaves out what "
            f"is beside them: --drop {','.join(_BESIDE)}",
        )
    write_audit(audit, fitted, provenance, session, writes, plan.entry)


def _listed(
    fitted: Fitted, session: Session, fdr: float, names: RowNames, *, is_strict: bool
) -> Audit:
    """Say what was fitted, and which rows are the most suspicious."""
    if is_strict:
        refuse_unconverged(fitted)
    say_fitted(fitted, session)
    audit = audit_of(fitted.estimator, fdr=fdr, names=names)
    session.say("noise", noise_words(fitted.estimator))
    session.say("list", list_words(audit))
    if caution := audit.caution():
        session.say("caution", caution)
    session.blank()
    session.show(suspects_table(audit))
    session.blank()
    return audit
