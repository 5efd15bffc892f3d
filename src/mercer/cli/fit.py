"""`mercer fit`: a model from a table, scored beside baselines, saved, with a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mercer.cli.options import (
    TableOptions,
    cv_option,
    debug_option,
    group_option,
    jobs_option,
    json_option,
    out_path,
    run_options,
    table_options,
)

if TYPE_CHECKING:
    from mercer.cli.fitting import Plan
    from mercer.cli.terminal import Session

__all__ = ["command"]


@click.command()
@click.argument("data", metavar="DATA")
@table_options
@group_option
@click.option(
    "--model",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="auto, gp, sphere, spectral or basis.",
)
@click.option("--test", metavar="FILE", help="Score on the rows of this file or data set.")
@click.option("--test-size", type=float, metavar="SHARE", help="Score on this share of the rows.")
@cv_option("Score by K folds [default: 10 below 1000 rows, else --test-size 0.25].")
@click.option(
    "--no-refit", is_flag=True, help="Save the model that was scored, not one of all rows."
)
@out_path("--out", "Save the model.")
@out_path("--report", "Write a report, one HTML file.")
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
    group: str | None,
    missing: str,
    dates: str,
    seed: int,
    model: str,
    test: str | None,
    test_size: float | None,
    cv: int | None,
    no_refit: bool,
    out: Path | None,
    report: Path | None,
    checkpoint: Path | None,
    strict: bool,
    jobs: int | None,
    is_json: bool,
) -> None:
    """Fit a model to a table, score it beside baselines, save it.

    DATA is a CSV (also .gz), Parquet or Arrow file, a folder of these, or a data set by name.

    \b
    mercer fit patients.csv --target diabetic --out model.mercer --report report.html
    mercer fit houses.csv --target price --task regression --out model.mercer
    mercer fit breast_cancer --target target --test-size 0.25
    """
    from mercer.cli.exits import stoppable
    from mercer.cli.fitting import FitOptions, kept_to_this, make_plan
    from mercer.cli.outputs import check_outputs
    from mercer.cli.tables import ScoringOptions
    from mercer.cli.terminal import Session

    check_outputs(
        {"--out": out, "--report": report}, {"DATA": data, "--test": test}, checkpoint=checkpoint
    )
    session = Session(is_json)
    options = FitOptions(
        data=data,
        table=TableOptions(target, task, drop, id_column, group, missing, dates),
        scoring=ScoringOptions(test, test_size, cv, not no_refit),
        model=model,
        settings=settings,
        seed=seed,
        jobs=jobs,
        checkpoint=checkpoint,
    )
    with session.warnings_as_lines(), stoppable(checkpoint), kept_to_this(checkpoint):
        plan = make_plan(options, session)
        _fit(plan, session, target=target, out=out, report=report, is_strict=strict)


def _fit(
    plan: Plan,
    session: Session,
    *,
    target: str,
    out: Path | None,
    report: Path | None,
    is_strict: bool,
) -> None:
    from mercer.cli.fitting import fit_final, refuse_unconverged, say_first, score
    from mercer.cli.outputs import typed_words
    from mercer.cli.saving import (
        as_json,
        compare_step,
        provenance_of,
        say_fitted,
        write_files,
    )
    from mercer.cli.terminal import evaluation_table
    from mercer.estimation.model_file import TableModel
    from mercer.posterior.evaluation import verdict

    fitted = None
    if plan.is_scored_itself or plan.estimator._leaves_draws:
        say_first(plan, session)
        fitted = fit_final(plan, session)
    evaluation, problems = score(plan, session, fitted)
    session.blank()
    session.show(evaluation_table(evaluation))
    session.blank()
    for problem in problems:
        session.note("warning", f"not scored: {problem}")
    session.say("verdict", verdict(evaluation))
    step = compare_step(typed_words())
    session.propose(step)
    if fitted is None:
        fitted = fit_final(plan, session)
    if is_strict:
        refuse_unconverged(fitted)
    provenance = provenance_of(plan, fitted, target)
    saved = TableModel(plan.table.encoder, target, evaluation, provenance, fitted.variance)
    say_fitted(fitted, session)
    write_files(fitted, saved, session, out=out, report=report, step=step)
    session.give(as_json(plan, fitted, saved, out=out, report=report, step=step))
