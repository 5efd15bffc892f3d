"""The table of `compare`: it fills as models finish, and ends with a sentence of advice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mercer.cli.terminal.score_table import digits3, duration, lowest, plain_table, shown
from mercer.estimation.cross_validate import Result
from mercer.estimation.tasks import CLASSIFICATION, Task
from mercer.posterior.comparison import paired_gap
from mercer.posterior.digits import digits
from mercer.posterior.held_out import HeldClasses, HeldOut, HeldTargets, joined
from mercer.posterior.metrics import Metric, find_metric

__all__ = ["LiveScores", "advice", "best_model", "results_json"]

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
    found = paired_gap(*pair, metric)
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
