"""`mercer compare`: all models and baselines on the same folds."""

from __future__ import annotations

import functools

import click

from mercer.cli.options import (
    TableOptions,
    cv_option,
    debug_option,
    group_option,
    jobs_option,
    json_option,
    table_options,
)

__all__ = ["command"]

_METRICS = (
    *("log_score", "calibration_error", "error_rate", "brier_score"),
    *("rmse", "mse", "standardized_mse", "mae"),
)


@click.command()
@click.argument("data", metavar="DATA")
@table_options
@group_option
@click.option("--models", metavar="A,B,..", help="Only these models and baselines.")
@click.option(
    "--metric",
    type=click.Choice(_METRICS),
    help="What the table is sorted by, lower is better: the first two for any task, the next two "
    "for classes, the others for numbers [default: log_score; for numbers rmse].",
)
@click.option(
    "--seconds-per-model",
    type=click.FloatRange(0.1),
    default=60.0,
    show_default=True,
    help="One that takes longer, over all its folds, is ended.",
)
@cv_option("Number of folds [default: 10 below 1000 rows, else 5].")
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
    models: str | None,
    metric: str | None,
    seconds_per_model: float,
    cv: int | None,
    jobs: int | None,
    is_json: bool,
) -> None:
    """Compare all models and baselines that fit the task, on the same folds.

    \b
    mercer compare patients.csv --target diabetic
    mercer compare wine --target target --models forest,svc --metric error_rate
    mercer compare houses.csv --target price --metric mse
    """
    from joblib import cpu_count

    from mercer.cli.terminal.exits import StoppedError, stoppable
    from mercer.cli.terminal.live_scores import LiveScores, advice, best_model, results_json
    from mercer.cli.terminal.session import Session
    from mercer.cli.work.contenders import make_contenders, metric_for
    from mercer.cli.work.planning import describe_table
    from mercer.cli.work.provenance import fit_step, typed_words
    from mercer.cli.work.splitting import N_FOLDS, SMALL, cross_validation
    from mercer.cli.work.table import read_training
    from mercer.estimation.cross_validate import FOLD_DRAWS, cross_validate

    session = Session(is_json)
    table = read_training(data, TableOptions(target, task, drop, id_column, group, missing, dates))
    tell = functools.partial(session.note, "")
    metric = metric_for(table.task, metric)
    contenders = make_contenders(table, models, settings, seed, tell)
    describe_table(table, session)
    n_folds = cv or (N_FOLDS if len(table.labels) < SMALL else 5)
    split = cross_validation(table, n_folds, seed)
    session.say(
        "scoring",
        f"{split.how}, the same for all; at most {seconds_per_model:g} s a model, its "
        f"folds added up; mercer's models have 1 chain of at most {FOLD_DRAWS} draws a fold",
    )
    for note in split.notes:
        session.say("", note)
    session.say("seed", str(seed))
    session.blank()
    live = LiveScores([each.name for each in contenders], len(split.folds), metric, table.task)
    try:
        with live.shown(session.err), stoppable(None):
            results = cross_validate(
                contenders,
                split.folds,
                n_jobs=jobs or cpu_count(),
                task=table.task,
                seconds_per_contender=seconds_per_model,
                on_begin=live.begin,
                on_fold=live.count,
                on_result=live.add,
            )
    except StoppedError as error:
        raise StoppedError(error.signal_number, "`compare` keeps nothing") from error
    session.show(live.table(is_final=True))
    session.blank()
    for result in results:
        if result.error is not None:
            session.note("warning", f"{result.name}: {result.problem}")
    words = advice(results, metric, seconds_per_model)
    session.say("advice", words)
    found = best_model(results, metric)
    step = None if found is None else fit_step(typed_words(), found[0], is_kept=found[1])
    session.propose(step)
    command = None if step is None else step.command
    session.give({**results_json(results, metric, split.how, words), "next": command})
