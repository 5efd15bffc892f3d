"""`mercer fit`: a model from a table, scored beside baselines, saved, with a report."""

from __future__ import annotations

import functools
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from mercer.baselines.peers import peers_of
from mercer.cli.exits import kept_to_this
from mercer.cli.fitting import (
    LARGE,
    FitOptions,
    Fitted,
    Plan,
    about_file,
    by_positions,
    fit_final,
    make_plan,
    plan_provenance,
    refuse_unconverged,
)
from mercer.cli.options import TableOptions
from mercer.cli.out_of_core import (
    StoredTraining,
    beside_file,
    check_engine,
    fit_stored,
    hold_out,
    open_training,
)
from mercer.cli.outputs import check_outputs, typed_words
from mercer.cli.saving import (
    as_json,
    compare_step,
    next_steps,
    say_fitted,
    surprise_steps,
    table_model,
    words_of,
    write_files,
)
from mercer.cli.tables import ScoringOptions, table_facts
from mercer.cli.terminal import Session, digits3, evaluation_table
from mercer.data.files import printable
from mercer.data.frame import INDEX_COLUMNS
from mercer.errors import DataError, MercerError, RowsError, UsageError
from mercer.estimation.cross_validate import Contender, Result, contender_of, cross_validate
from mercer.estimation.inspection import (
    MOST_INPUTS,
    Effects,
    Importance,
    Increases,
    Inspection,
    Look,
    effects_of,
    importance_of,
    permuted_losses,
    plan_look,
)
from mercer.estimation.tasks import REGRESSION
from mercer.posterior.evaluation import NO_VERDICT, AnyEvaluation, log_score_words, verdict
from mercer.posterior.scores import find_metric

#: Scores on a target, warnings about them, importance of inputs.
Scored: TypeAlias = tuple[AnyEvaluation, list[str], Importance | None]


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
    of_all_rows = {**table.of_whole_tables, "--cv": cv}
    check_engine(engine, scheduler, workers, of_all_rows)
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
    with session.warnings_as_lines(), kept_to_this(checkpoint), session.files_first():
        if engine is None:
            plan = make_plan(options, session)
            _fit(plan, session, target=table.target, out=out, report=report, is_strict=strict)
            return
        stored = open_training(options, engine, session, scheduler=scheduler, n_workers=workers)
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
    # Of many inputs the model says which are measured.
    is_asked = report is not None and len(plan.table.encoder.inputs) > MOST_INPUTS
    if plan.is_scored_itself or plan.estimator._leaves or is_asked:
        _say_first(plan, session)
        fitted = fit_final(plan, session)
    look = None if report is None else _look_of(plan, fitted)
    scored = _score(plan, session, fitted, look)
    can_tell = bool(np.ptp(plan.table.X, axis=0).any())
    steps = []
    for each, name in zip(scored, targets or (target,), strict=True):
        _say_scored(session, each, name if targets else "", can_tell=can_tell)
        own = words_of(words, name)
        steps.append(compare_step(own) if can_tell else None)
        if steps[-1] is not None and plan.table.task is REGRESSION:
            for step in surprise_steps(own, each[0], plan.estimator, plan.table.source):
                session.propose(step)
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
            seen = _inspect_fit(plan.outputs[k], its, importance)
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
    """Fit rows that stay in their files, and score on some of them where that is asked for."""
    sample = plan = importance = None
    scoring = stored.options.scoring
    if scoring is not None and scoring.test is not None:
        stored, sample = beside_file(stored, scoring.test)
    elif scoring is not None and scoring.test_size is not None:
        stored, sample = hold_out(stored, scoring.test_size)
    fitted, saved = fit_stored(stored, session)
    if is_strict:
        refuse_unconverged(fitted)
    if sample is not None:
        plan = sample.plan(stored, fitted, saved)
        for note in plan.split.notes if scoring is not None and scoring.test is not None else ():
            session.note("scoring", note)
        look = None if report is None else _look_of(plan, fitted)
        (scored,) = _score(plan, session, fitted, look)
        evaluation, _, importance = scored
        _say_scored(session, scored, "", can_tell=bool(np.ptp(plan.table.X, axis=0).any()))
        saved = replace(saved, evaluation=evaluation)

    def inspect() -> tuple[Inspection, ...]:
        if plan is None or sample is None:
            return ()
        effects = _effects(plan, fitted, importance)
        return (Inspection(plan.split.names, importance, effects, sample.facts(stored, plan)),)

    say_fitted(fitted, session)
    write_files(fitted, saved, session, out=out, report=report, step=None, inspect=inspect)
    if out is not None and sample is None:
        words = f"--test-size holds rows out for them; mercer predict {out} OTHER_ROWS says them"
        session.say("scores", f"{words}, where the target is there")
    session.give(as_json(stored.entry, fitted, saved, out=out, report=report, step=None))


# What held-out rows say of a plan: scores, importance and effects of inputs.


def _score(
    plan: Plan, session: Session, fitted: Fitted | None, look: Look | None = None
) -> list[Scored]:
    """Score the model and the baselines on the same rows; of several targets, on each.

    ``fitted`` is the saved model, where it is itself the one that is scored, or folds start from
    it; ``look`` says how the importance of inputs is measured.
    """
    if not plan.table.targets:
        return [_score_target(plan, session, fitted, look)]
    if fitted is not None and plan.is_scored_itself:
        model = _score_itself(plan, fitted, look)
    else:
        contenders = [_contender(plan, fitted)]
        (model,) = _validated(contenders, plan, session, look)
    if model.problem:
        raise _typed(model, plan)
    return [
        _score_target(one, session, fitted, look, model.output(k))
        for k, one in enumerate(plan.outputs)
    ]


def _score_target(
    plan: Plan,
    session: Session,
    fitted: Fitted | None,
    look: Look | None,
    model: Result | None = None,
) -> Scored:
    """Score on one target; ``model`` is what held-out rows said of it, where they were asked."""
    peers = [peer for peer in peers_of(plan.table.task.name) if peer.is_brief]
    refusals = [peer.refusal(len(plan.table.labels)) for peer in peers]
    for words in filter(None, refusals):
        session.note("baseline", words)
    contenders = [
        Contender(peer.label, True, functools.partial(peer.make, plan.seed))
        for peer, refusal in zip(peers, refusals, strict=True)
        if not refusal
    ]
    if model is None and fitted is not None and plan.is_scored_itself:
        model = _score_itself(plan, fitted, look)
    if model is None:
        contenders.insert(0, _contender(plan, fitted))
    results = _validated(contenders, plan, session, look)
    model, *others = results if model is None else (model, *results)
    if model.problem:
        raise _typed(model, plan)
    scored = [result for result in (model, *others) if not result.problem]
    how = "; ".join(filter(None, (plan.split.how, model.cut_words)))
    evaluation = plan.table.task.evaluate(how, plan.table.classes, scored)
    importance = None
    if look is not None and model.increases:
        is_classes = plan.table.task.is_stratified
        importance = importance_of(look, model.increases, is_classes=is_classes)
    problems = [f"not scored: {each.name}: {each.problem}" for each in others if each.problem]
    problems += [model.cut_words] * bool(model.n_cut)
    return evaluation, problems, importance


def _validated(
    contenders: list[Contender], plan: Plan, session: Session, look: Look | None
) -> tuple[Result, ...]:
    """Fit contenders on all folds, with a progress bar.

    In this process where few rows are split once: baselines take less time than a worker to start.
    """
    n_costly = len(plan.split.folds) * sum(not each.is_baseline for each in contenders)
    is_quick = n_costly < 2 and len(plan.table.labels) <= LARGE

    def tell(result: Result) -> None:
        if result.is_quick:
            _say_first_scores(plan, session, result)

    n_folds, begun = len(plan.split.folds), Counter[str]()

    def fold_words(name: str) -> str:
        begun[name] += 1
        return f"fits, {name}" + (
            f", fold {(begun[name] - 1) % n_folds + 1} of {n_folds}" if n_folds > 1 else ""
        )

    with session.progress() as bar:
        n_fits = sum(len(each.settings) for each in contenders) * n_folds
        task = bar.add_task("scoring", total=n_fits, detail="fits")
        return cross_validate(
            contenders,
            plan.split.folds,
            n_jobs=1 if is_quick else plan.n_jobs,
            task=plan.table.task,
            on_begin=lambda name: bar.update(task, detail=fold_words(name)),
            on_fold=lambda name: bar.update(task, advance=1),
            on_result=tell,
            name_rows=plan.table.names.listed,
            look=look,
        )


def _look_of(plan: Plan, fitted: Fitted | None) -> Look | None:
    """Decide how the importance of inputs is measured; None where no row is held out."""
    table = plan.table
    n_rows = sum(len(fold.y_test) for fold in plan.split.folds)
    if n_rows < 2:
        return None
    return plan_look(
        table.encoder.inputs,
        table.X,
        table.y,
        n_rows=n_rows,
        n_classes=len(table.classes),
        entropy=plan.seed,
        model=None if fitted is None or table.targets else fitted.estimator,
    )


def _inspect_fit(plan: Plan, fitted: Fitted, importance: Importance | None) -> Inspection:
    """See how inputs act in the model that is saved, and describe the table."""
    table, found = plan.table, _effects(plan, fitted, importance)
    facts = table_facts(table.inputs, table.encoder, table.X, table.y, table.classes, table.names)
    return Inspection(plan.split.names, importance, found, facts)


def _effects(plan: Plan, fitted: Fitted, importance: Importance | None) -> Effects:
    """See how inputs act in the model that is saved: those that decide most first."""
    table, inputs = plan.table, plan.table.encoder.inputs
    order = list(range(len(inputs)))
    if importance is not None:
        first = [importance.names[j] for j in importance.order]
        order = [inputs.names.index(name) for name in first]
    return effects_of(
        fitted.estimator, table.X, inputs, order=order, classes=table.classes, entropy=plan.seed
    )


def _say_first(plan: Plan, session: Session) -> None:
    """Say what a quick setting scores, before the fit of the model that is scored itself."""
    own = _contender(plan)
    if own.sooner:
        folds, quick = plan.split.folds, replace(own, sooner=(), **vars(own.sooner[0]))
        n_jobs = min(plan.n_jobs, len(folds))
        with session.at_work("a quick fit first"):
            (result,) = cross_validate([quick], folds, n_jobs=n_jobs, task=plan.table.task)
        _say_first_scores(plan, session, result)


def _contender(plan: Plan, fitted: Fitted | None = None) -> Contender:
    """Return the model as folds fit it, its state in its folder.

    At its quickest setting first, unless that is its own, the maximum, of fewer kernels; or from
    what the fit to all rows has left.
    """
    checkpoint = None if plan.checkpoint is None else str(plan.checkpoint / "folds")
    params = {**plan.estimator.get_params(deep=False), "checkpoint": checkpoint}
    estimator = by_positions(type(plan.estimator)(**params), plan.table.classes)
    is_quick = getattr(plan.estimator, "inference", None) == "map"
    quicker = plan.entry.quicker[:1] if fitted is None and not is_quick else ()
    nearby = None if fitted is None else fitted.estimator._left
    own = contender_of(plan.label, estimator, quicker, plan.given, plan.split.folds, nearby)
    return replace(own, sooner=own.sooner[:1])


def _say_first_scores(plan: Plan, session: Session, result: Result) -> None:
    """Say what a quick setting scores, of each target."""
    if result.problem:
        return
    metric = find_metric(result.task.metrics, result.task.default_metric)
    for k, name in enumerate(plan.table.targets or ("",)):
        own = result.output(k) if name else result
        mean, _ = own.mean_and_error(metric.name)
        session.say(
            "at first",
            f"{name}{': ' * bool(name)}{metric.words} {digits3(mean)}, at a quick setting "
            f"({own.setting}); the fit as asked for follows",
        )


def _score_itself(plan: Plan, fitted: Fitted, look: Look | None) -> Result:
    (fold,) = plan.split.folds
    task = plan.table.task
    started = time.perf_counter()
    held = task.answer(fitted.estimator, fold.X_test, fold.y_test, task.variance(fold.y_train))
    seconds = fitted.seconds + time.perf_counter() - started
    increases: tuple[Increases, ...] = ()
    if look is not None and len(fold.y_test) > 1:
        rows = fold.X_test, fold.y_test
        increases = (permuted_losses(fitted.estimator, *rows, look, groups=fold.groups_test),)
    own = fold.groups_test
    return Result(plan.label, False, (held,), seconds, task, groups=own, increases=increases)


def _typed(result: Result, plan: Plan) -> Exception:
    """Return the error of a fold of the model, typed as a fit of all rows would raise it."""
    error = result.error
    if isinstance(error, RowsError):  # positions in the table: see `Fold.train`
        return about_file(error, plan.table)
    if isinstance(error, (MercerError, TimeoutError)):
        return error
    if isinstance(error, ValueError):
        return DataError(f"{printable(plan.table.source)}: {error}")
    return error or UsageError(result.problem)
