"""`mercer audit`: the rows of a table whose label is probably wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mercer.cli.options import (
    TableOptions,
    debug_option,
    jobs_option,
    json_option,
    out_path,
    run_options,
    spreadsheet_option,
    table_options,
)

if TYPE_CHECKING:
    from mercer.cli.terminal.session import Session
    from mercer.cli.work.auditing import Writes
    from mercer.cli.work.fitting import Plan

__all__ = ["command"]


@click.command()
@click.argument("data", metavar="DATA")
@table_options
@click.option(
    "--fdr",
    type=click.FloatRange(0.0, 1.0),
    default=0.1,
    show_default=True,
    metavar="SHARE",
    help="List rows while at most this share of them is expected to be right.",
)
@out_path("--out", "Write all rows: .csv, .parquet or .json.")
@out_path("--report", "Write a report, one HTML file.")
@spreadsheet_option
@run_options
@jobs_option
@json_option
@debug_option
def command(
    data: str,
    target: str,
    task: str,
    settings: tuple[str, ...],
    drop: tuple[str, ...],
    id_column: str | None,
    missing: str,
    dates: str,
    seed: int,
    fdr: float,
    out: Path | None,
    report: Path | None,
    is_for_spreadsheet: bool,
    checkpoint: Path | None,
    strict: bool,
    jobs: int | None,
    is_json: bool,
) -> None:
    """List the rows of DATA by the probability that their label is wrong.

    A kernel Gibbs classifier (sphere) learns from all rows that some labels are wrong, how many,
    and which; each suspicious row gets the label that suits it best. If more than half of the
    labels are wrong, nothing can tell.

    \b
    mercer audit patients.csv --target diabetic --id patient --out audit.csv
    mercer audit breast_cancer --target target --fdr 0.05 --report audit.html
    """
    from mercer.cli.terminal.exits import stoppable
    from mercer.cli.terminal.session import Session
    from mercer.cli.work.auditing import Writes, check_id
    from mercer.cli.work.outputs import check_outputs
    from mercer.cli.work.planning import FitOptions, make_plan
    from mercer.cli.work.resuming import kept_to_this
    from mercer.cli.work.rows_out import check_format

    check_outputs({"--out": out, "--report": report}, {"DATA": data}, checkpoint=checkpoint)
    check_format(out, is_for_spreadsheet=is_for_spreadsheet)
    session = Session(is_json)
    options = FitOptions(
        data=data,
        table=TableOptions(target, task, drop, id_column, None, missing, dates),
        scoring=None,
        model="sphere",
        settings=settings,
        seed=seed,
        jobs=jobs,
        checkpoint=checkpoint,
    )
    check_id(options.table)
    with session.warnings_as_lines(), stoppable(checkpoint), kept_to_this(checkpoint):
        plan = make_plan(options, session)
        writes = Writes(out, report, is_for_spreadsheet)
        _audit(plan, session, options.table, fdr, writes, is_strict=strict)


def _audit(
    plan: Plan,
    session: Session,
    options: TableOptions,
    fdr: float,
    writes: Writes,
    *,
    is_strict: bool,
) -> None:
    from mercer.cli.terminal.audit_words import list_words, noise_words, suspects_table
    from mercer.cli.work.auditing import audit_fitted, audit_json, write_audit
    from mercer.cli.work.conflicts import say_conflicts
    from mercer.cli.work.fitting import fit_final, refuse_unconverged
    from mercer.cli.work.provenance import provenance_of
    from mercer.cli.work.saving import say_fitted

    conflicts = say_conflicts(plan.table)
    if conflicts:
        session.say("conflicts", conflicts)
    fitted = fit_final(plan, session)
    if is_strict:
        refuse_unconverged(fitted)
    say_fitted(fitted, session)
    audited = audit_fitted(plan, fitted, fdr)
    session.say("noise", noise_words(fitted.estimator))
    session.say("list", list_words(audited.audit))
    session.blank()
    session.show(suspects_table(audited.audit))
    session.blank()
    provenance = provenance_of(plan, fitted, options.target)
    write_audit(audited, fitted, provenance, session, writes)
    session.give(audit_json(plan, fitted, audited, provenance, writes))
