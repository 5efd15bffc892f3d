"""`mercer fit`: a model from a table, scored beside baselines, saved, with a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mercer.cli.options import (
    TableOptions,
    complete_model,
    cv_option,
    data_argument,
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
    from mercer.cli.out_of_core import StoredTraining
    from mercer.cli.scoring import Scored
    from mercer.cli.terminal import Session
    from mercer.estimation.inspection import Inspection


@click.command()
@data_argument()
@table_options
@group_option
@click.option(
    "--model",
    shell_complete=complete_model,
    default="auto",
    show_default=True,
    metavar="NAME",
    help="auto, gp, sphere, spectral or basis; stack mixes all of them and boosting.",
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
@click.option(
    "--engine",
    type=click.Choice(["dask"]),
    help="Leave the rows in their files: workers of a Dask cluster read and sum them (spectral).",
)
@click.option("--scheduler", metavar="ADDRESS", help="Of the cluster [default: one started here].")
@click.option(
    "--workers", type=click.IntRange(1, 1024), metavar="N", help="To start [default: all cores]."
)
@json_option
@debug_option
def command(
    data: str,
    table: TableOptions,
    settings: tuple[str, ...],
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
    engine: str | None,
    scheduler: str | None,
    workers: int | None,
    is_json: bool,
) -> None:
    """Fit a model to a table, score it beside baselines, save it.

    DATA is a CSV, JSON lines (both also .gz, .zst), Excel (FILE.xlsx or FILE.xlsx:SHEET), Parquet
    or Arrow file, a folder of these, a data set by name, or -, standard input. Several targets,
    numbers with commas between their names, learn one kernel (spectral). A long fit is
    announced: --set max_seconds=60 ends it in time, with what it has by then, and --set
    inference=map takes the most probable hyperparameters of a Gaussian process alone.

    \b
    mercer fit - --target diabetic --out model.mercer < patients.jsonl
    mercer fit patients.csv --target diabetic --out model.mercer --report report.html
    mercer fit houses.csv --target price --task regression --out model.mercer
    mercer fit breast_cancer --target target --test-size 0.25
    mercer fit sensors.csv --target north,east --out model.mercer
    mercer fit flights/ --target delay --engine dask --workers 4 --out model.mercer
    """
    from mercer.cli.exits import stoppable
    from mercer.cli.fitting import FitOptions, make_plan
    from mercer.cli.out_of_core import open_training, refuse_with_engine
    from mercer.cli.outputs import check_outputs, kept_to_this
    from mercer.cli.tables import ScoringOptions
    from mercer.cli.terminal import Session
    from mercer.errors import UsageError

    check_outputs(
        {"--out": out, "--report": report}, {"DATA": data, "--test": test}, checkpoint=checkpoint
    )
    session = Session(is_json)
    if engine is None and (scheduler is not None or workers is not None):
        raise UsageError("--scheduler and --workers are of --engine dask")
    if engine is not None:
        unused = {
            "--id": table.id_column, "--group": table.group, "--test": test,
            "--test-size": test_size, "--cv": cv, "--encoding": table.encoding,
        }  # fmt: skip
        refuse_with_engine([name for name, value in unused.items() if value is not None])
    options = FitOptions(
        data=data,
        table=table,
        scoring=ScoringOptions(test, test_size, cv, not no_refit, table.encoding),
        model=model,
        settings=settings,
        seed=seed,
        jobs=jobs,
        checkpoint=checkpoint,
    )
    with (
        session.warnings_as_lines(),
        stoppable(checkpoint),
        kept_to_this(checkpoint),
        session.files_first(),
    ):
        if engine is None:
            plan = make_plan(options, session)
            _fit(plan, session, target=table.target, out=out, report=report, is_strict=strict)
            return
        stored = open_training(
            options, scheduler=scheduler, n_workers=workers, is_quiet=session.is_json
        )
        _fit_stored(stored, session, out=out, report=report, is_strict=strict)


def _fit(
    plan: Plan,
    session: Session,
    *,
    target: str,
    out: Path | None,
    report: Path | None,
    is_strict: bool,
) -> None:
    """Fit, score, write and say; of several targets each is scored beside baselines of its own."""
    from dataclasses import replace

    import numpy as np

    from mercer.cli.fitting import fit_final, refuse_unconverged
    from mercer.cli.outputs import typed_words
    from mercer.cli.saving import (
        as_json,
        audit_step,
        compare_step,
        next_steps,
        plan_provenance,
        say_fitted,
        table_model,
        write_files,
    )
    from mercer.cli.scoring import inspect_fit, look_of, say_first, score
    from mercer.estimation.tasks import REGRESSION

    fitted, targets = None, plan.table.targets
    if plan.is_scored_itself or plan.estimator._leaves_draws:
        say_first(plan, session)
        fitted = fit_final(plan, session)
    look = None if report is None else look_of(plan)
    scored = score(plan, session, fitted, look)
    can_tell = bool(np.ptp(plan.table.X, axis=0).any())
    for each, target_name in zip(scored, targets or ("",), strict=True):
        _say_scored(session, each, target_name, can_tell=can_tell)
    step = compare_step(typed_words()) if can_tell and not targets else None
    if step is not None and plan.table.task is REGRESSION:
        session.propose(audit_step(typed_words(), scored[0][0], plan.table.source))
    session.propose(step)
    if fitted is None:
        fitted = fit_final(plan, session)
    if is_strict:
        refuse_unconverged(fitted)
    provenance = plan_provenance(plan, fitted, target)
    saved = table_model(plan, fitted, provenance, [evaluation for evaluation, *_ in scored])
    say_fitted(fitted, session)

    def inspect() -> tuple[Inspection, ...]:
        if targets:
            each = enumerate(zip(plan.outputs, scored, strict=True))
            return tuple(inspect_fit(one, fitted.output(k), its[2]) for k, (one, its) in each)
        ((evaluation, _, importance),) = scored
        seen = inspect_fit(plan, fitted, importance)
        steps = next_steps(typed_words(), fitted.estimator, evaluation, seen)
        return (replace(seen, steps=steps),)

    write_files(fitted, saved, session, out=out, report=report, step=step, inspect=inspect)
    session.give(as_json(plan.entry, fitted, saved, out=out, report=report, step=step))


def _say_scored(session: Session, scored: Scored, target: str, *, can_tell: bool) -> None:
    """Show scores and verdict, of one of several targets under its name."""
    from mercer.cli.terminal import evaluation_table
    from mercer.posterior.evaluation import log_score_words, verdict

    evaluation, problems, _ = scored
    session.blank()
    if target:
        session.say("target", target)
    session.show(evaluation_table(evaluation))
    session.blank()
    for problem in problems:
        session.note("warning", f"not scored: {problem}")
    said = "none: where no input varies, no model tells one row from another"
    session.say("verdict", verdict(evaluation) if can_tell else said)
    session.say("", log_score_words(evaluation) if can_tell else "")


def _fit_stored(
    stored: StoredTraining,
    session: Session,
    *,
    out: Path | None,
    report: Path | None,
    is_strict: bool,
) -> None:
    """Fit rows that stay in their files; who wants scores predicts other files."""
    from mercer.cli.fitting import refuse_unconverged
    from mercer.cli.out_of_core import fit_stored
    from mercer.cli.saving import as_json, say_fitted, write_files

    session.say("data", stored.words)
    for note in stored.rows.encoding.notes if stored.rows.encoding else ():
        session.note("", note)
    session.say("task", stored.reason)
    session.say("model", f"spectral ({stored.entry.summary})")
    session.say("seed", str(stored.options.seed))
    fitted, saved = fit_stored(stored, session)
    if is_strict:
        refuse_unconverged(fitted)
    say_fitted(fitted, session)
    write_files(fitted, saved, session, out=out, report=report, step=None)
    if out is not None:
        session.say(
            "scores", f"mercer predict {out} OTHER_ROWS says them, where the target is there"
        )
    session.give(as_json(stored.entry, fitted, saved, out=out, report=report, step=None))
