"""`mercer compare`: all models and baselines on the same folds."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mercer.baselines.peers import peers_of
from mercer.cli.fitting import always, make_estimator, parse_settings
from mercer.cli.options import (
    TableOptions,
    cv_option,
    debug_option,
    group_option,
    jobs_option,
    json_option,
    table_options,
)
from mercer.cli.tables import TrainingTable
from mercer.cli.terminal import digits3, duration, lowest, plain_table, shown
from mercer.data.files import nearest, quoted
from mercer.errors import UsageError
from mercer.estimation.cross_validate import Contender, Result, for_folds, maker_of
from mercer.estimation.tasks import CLASSIFICATION, Task
from mercer.models import able_models, choose_model, model_names
from mercer.posterior.evaluation import (
    HeldClasses,
    HeldOut,
    HeldTargets,
    digits,
    joined,
    paired_gap,
)
from mercer.posterior.scores import Metric, find_metric

__all__ = [
    "LiveScores",
    "advice",
    "best_model",
    "command",
    "make_contenders",
    "metric_for",
    "results_json",
]


# The table of `compare`: it fills as models finish, and ends with a sentence of advice.

# What a model of mercer says beyond probabilities.
_ALSO = {
    "mercer gp": " and which inputs matter",
    "mercer sphere": " and which labels are probably wrong",
}


class LiveScores:
    """The state of the table: finished models sorted by the metric, then the others."""

    def __init__(
        self, names: Sequence[str], n_folds: int, metric: str, task: Task = CLASSIFICATION
    ) -> None:
        self._n_done = dict.fromkeys(names, 0)
        self._begun: set[str] = set()
        self._n_folds = n_folds
        self._metric = find_metric(task.metrics, metric)
        self._columns = shown(task.metrics, self._metric)
        self._results: dict[str, Result] = {}
        self._live: Live | None = None

    @contextmanager
    def shown(self, console: Console) -> Iterator[None]:
        """Draw the table while the block runs, on a terminal."""
        if not console.is_terminal:
            yield
            return
        with Live(self.table(), console=console, transient=True, auto_refresh=False) as self._live:
            yield

    def begin(self, name: str) -> None:
        """Take in that a fold of a model is begun."""
        self._begun.add(name)
        self._redraw()

    def count(self, name: str) -> None:
        """Take in that a fold of a model is finished."""
        self._n_done[name] += 1
        self._redraw()

    def add(self, result: Result) -> None:
        """Take in the result of a model."""
        self._results[result.name] = result
        self._redraw()

    def table(self, *, is_final: bool = False) -> Table:
        """Build the table as it stands; the best of each column in bold at the end."""
        columns, by = self._columns, self._metric
        names = [metric.heading for metric in columns]
        position = columns.index(by)
        if not by.is_pooled:
            names[position] += " ±"
        table = plain_table("model", *names, "seconds")
        done = [result for result in self._results.values() if not result.problem]
        done.sort(key=lambda result: result.mean_and_error(by.name)[0])
        means = [[result.mean_and_error(each.name)[0] for each in columns] for result in done]
        best = lowest(means, columns) if means and is_final else [""] * len(columns)
        for result, values in zip(done, means, strict=True):
            texts = [digits3(value) for value in values]
            cells = [
                Text(text, style="bold" if text == winner else "")
                for text, winner in zip(texts, best, strict=True)
            ]
            error = result.mean_and_error(by.name)[1]
            if math.isfinite(error):
                cells[position].append(f" {_error_text(by, error)}", style="dim")
            table.add_row(result.name, *cells, duration(result.seconds))
        for name, n_done in self._n_done.items():
            found = self._results.get(name)
            if found is None:
                words = f" {n_done}/{self._n_folds}" if name in self._begun else ""
                table.add_row(Text(f"{name}{words}", style="dim"))
            elif found.problem:
                words = found.problem.split(":")[0]
                table.add_row(Text.assemble(f"{name}: ", (words, "yellow")))
        return table

    def _redraw(self) -> None:
        if self._live is not None:
            self._live.update(self.table(), refresh=True)


def _error_text(metric: Metric, error: float) -> str:
    if metric.error_decimals is None:
        return digits(error, 2)
    return f"{error:.{metric.error_decimals}f}"


def advice(results: Sequence[Result], metric: str, limit: float) -> str:
    """Say in a sentence or two which to take: mercer's best beside the best baseline.

    The difference is taken row by row; within two standard errors of it the two are called level.
    """
    task = results[0].task
    by = find_metric(task.metrics, metric)
    words = by.words
    scored = [result for result in results if not result.problem]
    ours = _best([result for result in scored if not result.is_baseline], metric)
    theirs = _best([result for result in scored if result.is_baseline], metric)
    lost = [result.name for result in results if result.problem.startswith("out of time")]
    ending = (
        f" {' and '.join(lost)} ran out of time: --seconds-per-model above {limit:g} would tell."
        if lost
        else ""
    )
    if ours is None or theirs is None:
        only = ours or theirs
        if only is None:
            return f"No model has scores.{ending}"
        kind = "baseline" if only.is_baseline else "model"
        return f"Of the {kind}s scored, {only.name} has the lowest {words}.{ending}"
    gap, error = _difference(ours, theirs, metric)
    amount = digits3(abs(gap))
    if not by.is_pooled:
        amount += f", with a standard error of {digits3(error)} of the difference, rows paired"
        amount += "" if ours.groups is None else " and groups taken whole"
    if abs(gap) <= 2 * error:
        quicker, slower = sorted((ours, theirs), key=lambda result: result.seconds)
        times = slower.seconds / max(quicker.seconds, 1e-9)
        speed = "both take about as long"
        if times >= 1.5:
            speed = f"{quicker.name} is {times:.{0 if times >= 2.5 else 1}f} times as fast"
        return (
            f"{ours.name} and {theirs.name} are level in {words} (apart by {amount}): "
            f"{speed}, {ours.name} also says how sure it is"
            f"{_ALSO.get(ours.name, '')}.{ending}"
        )
    if gap < 0:
        return f"Take {ours.name}: its {words} is below that of {theirs.name} by {amount}.{ending}"
    return f"Take {theirs.name}: its {words} is below that of {ours.name} by {amount}.{ending}"


def best_model(results: Sequence[Result], metric: str) -> tuple[str, bool] | None:
    """Return mercer's best as ``--model`` takes it, and whether no baseline is clearly better."""
    scored = [result for result in results if not result.problem]
    ours = _best([result for result in scored if not result.is_baseline], metric)
    theirs = _best([result for result in scored if result.is_baseline], metric)
    if ours is None:
        return None
    name = ours.name.removeprefix("mercer ")
    if theirs is None:
        return name, True
    gap, error = _difference(ours, theirs, metric)
    return name, gap <= 2 * error


def results_json(
    results: Sequence[Result], metric: str, how: str, advice_words: str
) -> dict[str, Any]:
    """Return everything as JSON can hold it."""
    return {
        "how": how,
        "metric": metric,
        "models": [_as_json(result) for result in results],
        "advice": advice_words,
    }


def _as_json(result: Result) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": result.name, "is_baseline": result.is_baseline}
    if result.problem:
        return {**fields, "problem": result.problem}
    for metric in result.task.metrics:
        mean, error = result.mean_and_error(metric.name)
        fields[metric.name] = {
            "mean": mean,
            "standard_error": error if math.isfinite(error) else None,
        }
    return {**fields, "seconds": result.seconds, "n_folds": len(result.parts)}


def _best(results: Sequence[Result], metric: str) -> Result | None:
    return min(results, key=lambda result: result.mean_and_error(metric)[0], default=None)


def _difference(first: Result, second: Result, metric: str) -> tuple[float, float]:
    """Return first minus second and the standard error of that, rows paired."""
    pair = _pooled(first), _pooled(second)
    found = paired_gap(*pair, metric, first.groups)
    if found is None or found[1] is None:
        gap = first.mean_and_error(metric)[0] - second.mean_and_error(metric)[0]
        return gap, abs(gap)  # no standard error is known: never called apart
    return found[0], found[1]


def _pooled(result: Result) -> HeldOut:
    """Return the rows of all folds, in an order that is the same for all models."""
    classes = [part for part in result.parts if isinstance(part, HeldClasses)]
    if classes:
        return joined(classes)
    return joined([part for part in result.parts if isinstance(part, HeldTargets)])


# What `compare` compares: the models that fit the task, and the baselines.


def make_contenders(
    table: TrainingTable,
    names: str | None,
    settings: Sequence[str],
    seed: int,
    tell: Callable[[str], None],
) -> list[Contender]:
    """Return the contenders that were asked for, or all that fit; the quick ones first.

    ``tell`` is told when a model has loops to compile, and which baseline is left out.

    Raises
    ------
    UsageError
        If a name is unknown or not of this task, or an argument of ``--set``, or nothing is left.
    """
    arguments = parse_settings(settings)
    task, n_classes, n_rows = table.task.name, len(table.classes), len(table.labels)
    if not able_models(task, 0):
        choose_model("auto", task, n_classes, n_rows)
    able = {entry.name: entry for entry in able_models(task, n_classes)}
    peers = {peer.name: peer for peer in peers_of(task)}
    chosen = _chosen(names, [*peers, *model_names()])
    baselines = {name: peer for name, peer in peers.items() if name in chosen}
    for name, peer in list(baselines.items()):
        if peer.most_rows is not None and n_rows > peer.most_rows:
            tell(f"{peer.label} is left out: it is for {peer.most_rows} rows at most")
            del baselines[name]
    contenders = [
        Contender(peer.label, True, functools.partial(peer.make, seed))
        for peer in baselines.values()
    ]
    entries = {name: entry for name, entry in able.items() if name in chosen}
    classes = {name: entry.estimator_class() for name, entry in entries.items()}
    known = {argument for each in classes.values() for argument in each().get_params()}
    for name, estimator_class in classes.items():
        entries[name].compile_loops(tell)
        # What only another contender takes is not for this one; what none takes is an error.
        mine = estimator_class().get_params()
        taken = {k: v for k, v in arguments.items() if k in mine or k not in known}
        estimator = make_estimator(estimator_class, taken, always(seed))
        contenders.append(Contender(f"mercer {name}", False, maker_of(for_folds(estimator))))
    if names is not None:
        for name in chosen:
            if name not in able and name not in peers:
                choose_model(name, task, n_classes, n_rows)
    if not contenders:
        raise UsageError("--models leaves nothing to compare")
    return contenders


def metric_for(task: Task, name: str | None) -> str:
    """Return the metric that was asked for, or the task's own.

    Raises
    ------
    UsageError
        If it is not one of the task.
    """
    if name is None:
        return task.default_metric
    known = [metric.name for metric in task.metrics if metric.has_winner or metric.is_pooled]
    if name not in known:
        raise UsageError(f"--metric {name} is not for {task.name}; there is: {', '.join(known)}")
    return name


def _chosen(names: str | None, known: list[str]) -> list[str]:
    if names is None:
        return known
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen:
        if name not in known:
            hint = nearest(name, known)
            raise UsageError(f"no model {quoted(name)}; there is: {', '.join(known)}{hint}")
    if not chosen:
        raise UsageError(f"--models names none; there is: {', '.join(known)}")
    return chosen


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

    from mercer.cli.exits import StoppedError, stoppable
    from mercer.cli.fitting import describe_table
    from mercer.cli.outputs import typed_words
    from mercer.cli.saving import fit_step
    from mercer.cli.tables import N_FOLDS, SMALL, cross_validation, read_training
    from mercer.cli.terminal import Session
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
                name_rows=table.names.listed,
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
