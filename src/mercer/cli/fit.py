"""`mercer fit`: a model from a table, scored beside baselines, saved, with a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from mercer.cli.exits import stoppable
from mercer.cli.fitting import (
    FitOptions,
    Plan,
    fit_final,
    make_plan,
    plan_provenance,
    refuse_unconverged,
)
from mercer.cli.options import TableOptions
from mercer.cli.out_of_core import StoredTraining, fit_stored, open_training, refuse_with_engine
from mercer.cli.outputs import check_outputs, kept_to_this, typed_words
from mercer.cli.saving import (
    as_json,
    audit_step,
    compare_step,
    next_steps,
    say_fitted,
    table_model,
    words_of,
    write_files,
)
from mercer.cli.scoring import Scored, inspect_fit, look_of, say_first, score
from mercer.cli.tables import ScoringOptions
from mercer.cli.terminal import Session, evaluation_table
from mercer.data.frame import INDEX_COLUMNS
from mercer.errors import UsageError
from mercer.estimation.inspection import Inspection
from mercer.estimation.tasks import REGRESSION
from mercer.posterior.evaluation import NO_VERDICT, log_score_words, verdict


def run(
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
    """Do the work of `mercer fit`: `mercer.cli.commands` has its options."""
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
    fitted, targets, words = None, plan.table.targets, typed_words()
    if plan.is_scored_itself or plan.estimator._leaves_draws:
        say_first(plan, session)
        fitted = fit_final(plan, session)
    look = None if report is None else look_of(plan)
    scored = score(plan, session, fitted, look)
    can_tell = bool(np.ptp(plan.table.X, axis=0).any())
    steps = []
    for each, name in zip(scored, targets or (target,), strict=True):
        _say_scored(session, each, name if targets else "", can_tell=can_tell)
        own = words_of(words, name)
        steps.append(compare_step(own) if can_tell else None)
        if steps[-1] is not None and plan.table.task is REGRESSION:
            session.propose(audit_step(own, each[0], plan.table.source))
        session.propose(steps[-1])
    if fitted is None:
        fitted = fit_final(plan, session)
    if is_strict:
        refuse_unconverged(fitted)
    provenance = plan_provenance(plan, fitted, target)
    saved = table_model(plan, fitted, provenance, [evaluation for evaluation, *_ in scored])
    if (id_column := plan.table.names.id_column) not in INDEX_COLUMNS:  # which are found anew
        saved = replace(saved, id_column=id_column)
    say_fitted(fitted, session)

    def inspect() -> tuple[Inspection, ...]:
        looks = []
        for k, (evaluation, _, importance) in enumerate(scored):
            its, name = (fitted.output(k), targets[k]) if targets else (fitted, None)
            seen = inspect_fit(plan.outputs[k], its, importance)
            proposed = next_steps(words, its.estimator, evaluation, seen, target=name)
            looks.append(replace(seen, steps=proposed))
        return tuple(looks)

    write_files(fitted, saved, session, out=out, report=report, step=steps[0], inspect=inspect)
    session.give(as_json(plan.entry, fitted, saved, out=out, report=report, step=steps[0]))


def _say_scored(session: Session, scored: Scored, target: str, *, can_tell: bool) -> None:
    """Show scores and verdict, of one of several targets under its name."""
    evaluation, problems, _ = scored
    session.blank()
    if target:
        session.say("target", target)
    session.show(evaluation_table(evaluation))
    session.blank()
    for problem in problems:
        session.note("warning", problem)
    session.say("verdict", verdict(evaluation) if can_tell else NO_VERDICT)
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
