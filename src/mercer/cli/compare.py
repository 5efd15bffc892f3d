"""`mercer compare`: all models and baselines on the same folds.

Models of mercer are scored at a quick setting first, then at longer ones while their time lasts.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mercer.baselines.peers import peers_of
from mercer.cli.exits import StoppedError, stoppable
from mercer.cli.fitting import (
    always,
    by_positions,
    describe_table,
    in_order,
    make_estimator,
    parse_settings,
)
from mercer.cli.options import TableOptions
from mercer.cli.outputs import check_format, check_outputs, typed_words, write_rows
from mercer.cli.saving import NextStep, compare_noise_step, fit_step
from mercer.cli.tables import (
    FEWER_FOLDS,
    N_FOLDS,
    SMALL,
    TrainingTable,
    cross_validation,
    read_training,
)
from mercer.cli.terminal import Session, digits3, duration, lowest, plain_table, shown, spoken
from mercer.data.files import listing, printable, quoted
from mercer.errors import UsageError
from mercer.estimation.cross_validate import (
    FOLD_DRAWS,
    Contender,
    Fold,
    Result,
    contender_of,
    cross_validate,
)
from mercer.estimation.tasks import CLASSIFICATION, Task
from mercer.models import able_models, choose_model, hint_of_model, model_names
from mercer.posterior.container import write_atomically
from mercer.posterior.evaluation import HeldTargets, compared, digits, joined, paired_gap
from mercer.posterior.scores import Metric, find_metric

# The table of `compare`: it fills as models finish, and ends with a sentence of advice.

# What a model of mercer says beyond probabilities.
_ALSO = {
    "mercer gp": " and which inputs matter",
    "mercer sphere": " and which labels are probably wrong",
}


class LiveScores:
    """The state of the table: finished models sorted by the metric, then the others.

    On a terminal it is drawn as it fills; elsewhere ``tell`` gets a line for each model at each of
    its settings.
    """

    def __init__(
        self,
        names: Sequence[str],
        n_folds: int,
        metric: str,
        task: Task = CLASSIFICATION,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._n_done = dict.fromkeys(names, 0)  # of the setting in hand
        self._begun: set[str] = set()
        self._n_folds = n_folds
        self._task = task
        self._metric = find_metric(task.metrics, metric)
        self._results: dict[str, Result] = {}
        self._live: Live | None = None
        self._tell = tell

    @contextmanager
    def shown(self, console: Console) -> Iterator[None]:
        """Draw the table while the block runs, on a terminal."""
        if not console.is_terminal:
            yield
            return
        self._tell = None
        with Live(self.table(), console=console, transient=True, auto_refresh=False) as self._live:
            yield
        self._live = None

    def begin(self, name: str) -> None:
        """Take in that a fold of a model is begun."""
        self._begun.add(name)
        self._redraw()

    def count(self, name: str) -> None:
        """Take in that a fold of a model is finished."""
        self._n_done[name] += 1
        self._redraw()

    def in_hand(self) -> str:
        """Say how far the models are that have begun and have no result yet."""
        return ", ".join(
            f"{name}: {self._n_done[name]} of {self._n_folds} folds"
            for name in self._n_done
            if name in self._begun and (name not in self._results or self._n_done[name])
        )

    def add(self, result: Result) -> None:
        """Take in the result of a model, which may have others at longer settings."""
        self._results[result.name] = result
        self._n_done[result.name] = 0
        words = result.problem
        if not words:
            mean, error = result.mean_and_error(self._metric.name)
            spread = f" ± {_error_text(self._metric, error)}" if math.isfinite(error) else ""
            words = f"{self._metric.words} {digits3(mean)}{spread}, {spoken(result.seconds)} of CPU"
            words = f"{result.setting}, {words}" if result.setting else words
        if self._tell is not None:
            self._tell(f"{result.name}: {words}")
        self._redraw()

    @property
    def results(self) -> tuple[Result, ...]:
        """What is known of each model, in the order of their names."""
        return tuple(
            self._results.get(name)
            or Result(name, not name.startswith("mercer "), (), math.nan, self._task, "not scored")
            for name in self._n_done
        )

    def table(self, *, is_final: bool = False) -> Table:
        """Build the table as it stands; the best of each column in bold at the end."""
        done = [result for result in self._results.values() if not result.problem]
        by = self._metric
        columns = shown(self._task.metrics, [result.pooled for result in done], by)
        names = [metric.heading for metric in columns]
        position = columns.index(by)
        if not by.is_pooled:
            names[position] += " ±"
        table = plain_table("model", *names, "CPU s")
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
            n_done = self._n_done[result.name]
            more = f" {n_done}/{self._n_folds}" if n_done and not is_final else ""
            label = Text.assemble(result.name, (f" {result.setting}{more}", "dim"))
            label.rstrip()
            table.add_row(label, *cells, duration(result.seconds))
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


def advice(results: Sequence[Result], metric: str, limit: float | None) -> str:
    """Say in a sentence or two which to take: mercer's best beside the baselines.

    Differences are taken row by row; within two standard errors of it, more where these come from
    few groups, two models are called level. Beside a simple baseline that is level nothing else
    needs to be said. ``limit`` are the CPU seconds of a model; None where something else ended the
    comparison.
    """
    task = results[0].task
    by = find_metric(task.metrics, metric)
    words = by.words
    ours, theirs = _best_two(results, metric)
    ending = "" if limit is None else _unfinished(results, limit)
    if ours is None or theirs is None:
        only = ours or theirs
        if only is None:
            return f"No model has scores.{ending}"
        kind = "baseline" if only.is_baseline else "model"
        return f"Of the {kind}s scored, {only.name} has the lowest {words}.{ending}"
    gap, error, word = _difference(ours, theirs, metric)
    if word == "level":
        simple = _simple_and_level(results, ours, metric)
        first = f"{ours.name} and {theirs.name} are level in {words}"
        if simple is not None:
            theirs = simple
            gap, error, _ = _difference(ours, theirs, metric)
            first = f"{ours.name} is only level with {theirs.name}, which is simpler, in {words}"
        quicker, slower = sorted((ours, theirs), key=lambda result: result.seconds)
        times = slower.seconds / max(quicker.seconds, 1e-9)
        speed = "both take about as long"
        if times >= 1.5:
            speed = f"{quicker.name} is {times:.{0 if times >= 2.5 else 1}f} times as fast"
        subject = "and" if speed.startswith(ours.name) else ours.name
        return (
            f"{first} (apart by {_amount(gap, error, by, ours)}): {speed}, {subject} also says "
            f"how sure it is{_ALSO.get(ours.name, '')}.{_of_laws(results, metric)}{ending}"
        )
    better, worse = (ours, theirs) if gap < 0 else (theirs, ours)
    return (
        f"Take {better.name}: its {words} is below that of {worse.name} by "
        f"{_amount(gap, error, by, ours)}.{_of_laws(results, metric) if gap > 0 else ''}{ending}"
    )


def _of_laws(results: Sequence[Result], metric: str) -> str:
    """Say whether mercer's best is ahead in log score, where the comparison is by another."""
    ours, theirs = _best_two(results, "log_score")
    if ours is None or theirs is None or metric == "log_score":
        return ""
    gap, error, word = _difference(ours, theirs, "log_score")
    if word != "ahead":
        return ""
    by = find_metric(ours.task.metrics, "log_score")
    return (
        f" How sure a prediction is, {ours.name} says best: its log score is below that of "
        f"{theirs.name} by {_amount(gap, error, by, ours)}."
    )


def _amount(gap: float, error: float, by: Metric, ours: Result) -> str:
    amount = digits3(abs(gap))
    if not by.is_pooled:
        amount += f", with a standard error of {digits3(error)} of the difference, rows paired"
        amount += "" if ours.groups is None else " and groups taken whole"
    return amount


def _unfinished(results: Sequence[Result], limit: float) -> str:
    """Say which models more time would score, or score at a longer setting."""
    lost = [each.name for each in results if each.problem.startswith("out of time")]
    quick = [each.name for each in results if each.is_quick]
    words = ""
    if lost:
        words = f" {listing(lost)} ran out of time: --seconds-per-model above {limit:g} would tell."
    if quick:
        verb = "was" if len(quick) == 1 else "were"
        words += (
            f" {listing(quick)} {verb} scored at a quicker setting than by default, which the "
            f"table names: --seconds-per-model above {limit:g} goes on."
        )
    return words


def _best_two(results: Sequence[Result], metric: str) -> tuple[Result | None, Result | None]:
    """Return mercer's best and the best baseline."""
    scored = [result for result in results if not result.problem]
    return (
        _best([result for result in scored if not result.is_baseline], metric),
        _best([result for result in scored if result.is_baseline], metric),
    )


def _simple_and_level(results: Sequence[Result], ours: Result, metric: str) -> Result | None:
    """Return the simplest baseline that is level with mercer's best, if a simple one is."""
    scored = {result.name: result for result in results if not result.problem}
    for peer in peers_of(ours.task.name):
        found = scored.get(peer.label)
        if found and peer.is_simple and _difference(ours, found, metric)[2] != "ahead":
            return found
    return None


def best_model(results: Sequence[Result], metric: str) -> tuple[str, bool] | None:
    """Return mercer's best as ``--model`` takes it, and whether no baseline is clearly better."""
    ours, theirs = _best_two(results, metric)
    if ours is None:
        return None
    name = ours.name.removeprefix("mercer ")
    if theirs is None:
        return name, True
    return name, _difference(ours, theirs, metric)[2] != "behind"


def results_json(
    results: Sequence[Result], metric: str, how: str, advice_words: str, *, is_complete: bool = True
) -> dict[str, Any]:
    """Return everything as JSON can hold it."""
    return {
        "how": how,
        "metric": metric,
        "is_complete": is_complete,
        "models": [_as_json(result) for result in results],
        "advice": advice_words,
    }


def write_scores(path: Path, results: Sequence[Result], as_json: dict[str, Any]) -> None:
    """Write the scores to a file by its suffix: all of the JSON, or a row for each model."""
    if path.suffix.lower() == ".json":
        write_atomically(path, (json.dumps(as_json, indent=2).encode(),))
        return
    rows: list[dict[str, Any]] = []
    for each in results:
        row: dict[str, Any] = {"model": each.name, "setting": each.setting}
        row["problem"] = each.problem
        for metric in each.task.metrics:
            found = (math.nan, math.nan) if each.problem else each.mean_and_error(metric.name)
            row[metric.name], row[f"{metric.name}_se"] = found
        rows.append({**row, "seconds": each.seconds})
    kinds = {name: object if isinstance(v, str) else float for name, v in rows[0].items()}
    write_rows(path, {k: np.array([row[k] for row in rows], kind) for k, kind in kinds.items()})


def _as_json(result: Result) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": result.name, "is_baseline": result.is_baseline}
    if result.problem:
        return {**fields, "problem": result.problem}
    if result.setting:
        fields |= {"setting": result.setting, "is_quick": result.is_quick}
    for metric in result.task.metrics:
        mean, error = result.mean_and_error(metric.name)
        fields[metric.name] = {
            "mean": mean,
            "standard_error": error if math.isfinite(error) else None,
        }
    return {**fields, "seconds": result.seconds, "n_folds": len(result.parts)}


def _best(results: Sequence[Result], metric: str) -> Result | None:
    return min(results, key=lambda result: result.mean_and_error(metric)[0], default=None)


def _difference(first: Result, second: Result, metric: str) -> tuple[float, float, str]:
    """Return first minus second, its standard error, rows paired, and the word of `compared`."""
    pair = joined(first.parts), joined(second.parts)  # rows in an order that is that of all models
    found = paired_gap(*pair, metric, first.groups)
    if found is None or found[1] is None:
        gap = first.mean_and_error(metric)[0] - second.mean_and_error(metric)[0]
        return gap, abs(gap), "level"  # no standard error is known: never called apart
    n_groups = None if first.groups is None else len(np.unique(first.groups))
    gap, error = found[0], found[1]
    return gap, error, compared(gap, error, n_groups)


# What `compare` compares: the models that fit the task, and the baselines.


def make_contenders(
    table: TrainingTable,
    names: str | None,
    settings: Sequence[str],
    seed: int,
    folds: Sequence[Fold],
    tell: Callable[[str], None],
) -> list[Contender]:
    """Return the contenders that were asked for, or all that fit; those of mercer first.

    ``tell`` is told when a model has loops to compile, and which baseline is left out. A
    `UsageError` if a name is unknown or not of this task, or an argument of ``--set``, or nothing
    is left.
    """
    arguments = in_order(parse_settings(settings), table.order)
    task, n_classes, n_rows = table.task.name, len(table.classes), len(table.labels)
    if not able_models(task, 0):
        choose_model("auto", task, n_classes, n_rows)
    able = {entry.name: entry for entry in able_models(task, n_classes)}
    peers = {peer.name: peer for peer in peers_of(task)}
    chosen = _chosen(names, [*peers, *model_names()])
    if names is None:  # what is made of the others takes as long as all of them
        chosen = [name for name in chosen if name not in able or not able[name].is_combined]
    baselines = {name: peer for name, peer in peers.items() if name in chosen}
    for name, peer in list(baselines.items()):
        if refusal := peer.refusal(n_rows):
            tell(refusal)
            del baselines[name]
    contenders: list[Contender] = []
    if table.encoder.missing == "posterior":
        tell(
            "spectral alone draws missing inputs; others that do not take gaps get medians, and a "
            "column for each input that says where"
        )
    entries = {name: entry for name, entry in able.items() if name in chosen}
    classes = {name: entry.estimator_class() for name, entry in entries.items()}
    known = {argument for each in classes.values() for argument in each().get_params()}
    refusing = {k: _refusing(classes, k, v) for k, v in arguments.items() if k in known}
    for name, estimator_class in classes.items():
        entries[name].compile_loops(tell)
        # What only another contender takes is not for this one; what none takes is an error.
        mine = estimator_class().get_params()
        for k in (k for k, others in refusing.items() if name in others):
            tell(f"{name} takes no {k}={arguments[k]}, and is compared without")
            del mine[k]
        taken = {k: v for k, v in arguments.items() if k in mine or k not in known}
        estimator = make_estimator(estimator_class, taken, always(seed, table.encoder.missing))
        estimator = by_positions(estimator, table.classes)
        quicker = entries[name].quicker
        contenders.append(contender_of(f"mercer {name}", estimator, quicker, taken, folds))
    contenders += [
        Contender(peer.label, True, functools.partial(peer.make, seed))
        for peer in sorted(baselines.values(), key=lambda peer: not peer.is_brief)
    ]
    if names is not None:
        for name in chosen:
            if name not in able and name not in peers:
                choose_model(name, task, n_classes, n_rows)
    if not contenders:
        raise UsageError("--models leaves nothing to compare")
    return contenders


def _refusing(classes: Mapping[str, Any], argument: str, value: Any) -> set[str]:
    """Models that have an argument and refuse a value of it which another one takes."""
    having = {name for name, each in classes.items() if argument in each().get_params()}
    found = set()
    for name in having:
        try:
            make_estimator(classes[name], {argument: value}, {})
        except UsageError:
            found.add(name)
    return found if found < having else set()


def metric_for(task: Task, name: str | None) -> str:
    """Return the metric that was asked for, or the task's own.

    A `UsageError` if it is not one of the task.
    """
    if name is None:
        return task.default_metric
    known = [m.name for m in task.metrics if m.is_lower_better and (m.has_winner or m.is_pooled)]
    if name not in known:
        raise UsageError(f"--metric {name} is not for {task.name}; there is: {', '.join(known)}")
    return name


def _chosen(names: str | None, known: list[str]) -> list[str]:
    if names is None:
        return known
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen:
        if name not in known:
            hint = hint_of_model(name, known)
            raise UsageError(f"no model {quoted(name)}; there is: {', '.join(known)}{hint}")
    if not chosen:
        raise UsageError(f"--models names none; there is: {', '.join(known)}")
    return chosen


def run(
    data: str,
    table: TableOptions,
    settings: tuple[str, ...],
    seed: int,
    models: str | None,
    metric: str | None,
    seconds_per_model: float,
    cv: int | None,
    out: Path | None,
    jobs: int | None,
    is_json: bool,
) -> None:
    """Do the work of `mercer compare`: `mercer.cli.commands` has its options."""
    check_format(out)
    check_outputs({"--out": out}, {"DATA": data})
    session = Session(is_json)
    training = read_training(data, table)
    tell = functools.partial(session.note, "")
    metric = metric_for(training.task, metric)
    is_cheap = len(training.labels) < SMALL and training.times is None
    n_folds = cv or (N_FOLDS if is_cheap else FEWER_FOLDS)
    split = cross_validation(training, n_folds, seed)
    contenders = make_contenders(training, models, settings, seed, split.folds, tell)
    describe_table(training, session)
    session.say(
        "scoring",
        f"{split.how}, the same for all; {seconds_per_model:g} CPU seconds a model, its folds "
        "added up; mercer's models at a quick setting first, then at longer ones while these last, "
        f"1 chain of at most {FOLD_DRAWS} draws a fold",
    )
    for note in split.notes:
        session.say("", note)
    session.say("seed", str(seed))
    session.blank()
    live = LiveScores(
        [each.name for each in contenders], len(split.folds), metric, training.task, tell
    )
    report = _Report(live, metric, seconds_per_model, split.how, out)
    try:
        with live.shown(session.err), session.at_work(live.in_hand), stoppable(None):
            cross_validate(
                contenders,
                split.folds,
                n_jobs=jobs or cpu_count(),
                task=training.task,
                seconds_per_contender=seconds_per_model,
                on_begin=live.begin,
                on_fold=live.count,
                on_result=report.take,
                name_rows=training.names.listed,
            )
    except StoppedError as error:
        report.end(session, is_complete=False)
        place = "above" if out is None else f"above and in {printable(str(out))}"
        raise StoppedError(error.signal_number, f"what was scored before is {place}") from error
    report.end(session, is_complete=True)


@dataclass(frozen=True)
class _Report:
    """What is said and written of the results there are."""

    live: LiveScores
    metric: str
    limit: float
    how: str
    out: Path | None

    def take(self, result: Result) -> None:
        """Take in the result of a model, and keep what is known so far."""
        self.live.add(result)
        if self.out is not None:
            write_scores(self.out, self.live.results, self._as_json(is_complete=False)[0])

    def end(self, session: Session, *, is_complete: bool) -> None:
        """Show the table, what to take, and the command that does."""
        session.show(self.live.table(is_final=True))
        session.blank()
        for result in self.live.results:
            if result.error is not None:
                words = result.problem or f"failed at a longer setting: {result.error}"
                session.note("warning", f"{result.name}: {words}")
        fields, step = self._as_json(is_complete=is_complete)
        session.say("advice", fields["advice"])
        session.propose(step)
        best = _best_two(self.live.results, self.metric)[0]
        held = None if best is None else joined(best.parts)
        if isinstance(held, HeldTargets):
            session.propose(compare_noise_step(typed_words(), held))
        if self.out is not None:
            write_scores(self.out, self.live.results, fields)
        session.give(fields)

    def _as_json(self, *, is_complete: bool) -> tuple[dict[str, Any], NextStep | None]:
        results = self.live.results
        words = advice(results, self.metric, self.limit if is_complete else None)
        found = best_model(results, self.metric)
        step = None if found is None else fit_step(typed_words(), found[0], is_kept=found[1])
        fields = results_json(results, self.metric, self.how, words, is_complete=is_complete)
        return {**fields, "next": None if step is None else step.command}, step
