"""What a command says: aligned lines, tables, progress; with ``--json`` only the JSON."""

from __future__ import annotations

import errno
import json
import math
import os
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from math import isnan
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mercer.data.files import printable, quoted
from mercer.posterior.diagnostics import LARGEST_SHAPE, Diagnostics
from mercer.posterior.evaluation import AnyEvaluation, Evaluation, ModelScore, verdict
from mercer.posterior.scores import Metric, RegressionScores, Scores
from mercer.sampling.progress import in_hand

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress

    from mercer.posterior.labels import Audit

_LABEL = 10  # width of the column of labels
_PIPED_WIDTH = 200
_SILENCE = 10.0  # seconds, after which a line is due where no bar can be drawn
_LATER = 60.0  # the same, once as many have passed


class Proposal(Protocol):
    """A command to run next, and the words before it."""

    @property
    def sentence(self) -> str: ...  # noqa: D102

    @property
    def command(self) -> str: ...  # noqa: D102


class _Output(Console):
    """Standard output; that nobody reads it any more is an error like any other."""

    def on_broken_pipe(self) -> None:
        """Let the caller see it, where rich would exit with 1."""
        raise BrokenPipeError(errno.EPIPE, "standard output is closed")


def _stdout() -> Console:
    console = _Output(highlight=False)
    if not console.is_terminal:
        console.width = _PIPED_WIDTH
    return console


@dataclass
class Session:
    """The two streams of a command; ``is_json`` keeps words off standard output."""

    is_json: bool = False
    out: Console = field(default_factory=_stdout)
    err: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))
    _is_patient: bool = False
    _lost: OSError | None = None  # why standard output takes no more

    @contextmanager
    def files_first(self) -> Iterator[None]:
        """Let a standard output that fails end nothing before its time: files are written first."""
        self._is_patient = True
        yield
        if self._lost is not None:
            raise self._lost

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            error.filename = error.filename or "standard output"
            if not self._is_patient:
                raise
            self._lost = self._lost or error
            # What Python still holds for it would fail wherever streams are flushed, as they are
            # before a process is started.
            with suppress(OSError), open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), sys.stdout.fileno())

    def say(self, label: str, words: str) -> None:
        """Say one thing, behind its label; on a terminal wrapped under it."""
        if not self.is_json:
            with self._writing():
                self._say(self.out, label, words)

    def note(self, label: str, words: str) -> None:
        """Say one thing on standard error, so that standard output can be piped on."""
        self._say(self.err, label, words)

    def propose(self, step: Proposal | None) -> None:
        """Say what to run next: the command on a line of its own, which is not wrapped."""
        if step is not None and not self.is_json:
            command = Text(f"{'next':<{_LABEL}}{printable(step.command)}")
            with self._writing():
                self._say(self.out, "", step.sentence)
                self.out.print(command, soft_wrap=True)

    def blank(self) -> None:
        """Leave a line empty."""
        if not self.is_json:
            with self._writing():
                self.out.print()

    def show(self, table: RenderableType) -> None:
        """Show a table."""
        if not self.is_json:
            with self._writing():
                self.out.print(table)

    def give(self, result: dict[str, Any]) -> None:
        """Print the result as JSON, if that was asked for."""
        if self.is_json:
            with self._writing():
                sys.stdout.write(json.dumps(result, indent=2, ensure_ascii=True) + "\n")

    @contextmanager
    def at_work(self, words: str | Callable[[], str]) -> Iterator[None]:
        """Note what is in hand, how far it is, and for how long: where no bar can be drawn.

        Every ten seconds of the first minute, then every minute.
        """
        if self.err.is_terminal:
            yield
            return
        is_over, began = threading.Event(), time.monotonic()

        def tell() -> None:
            while not is_over.wait(_LATER if time.monotonic() - began > _LATER else _SILENCE):
                now = (words if isinstance(words, str) else words()) or "the first steps"
                now = ": ".join(filter(None, dict.fromkeys((now, in_hand()))))
                self.note("at work", f"{now}, {spoken(time.monotonic() - began)} so far")

        thread = threading.Thread(target=tell, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Show a progress bar on standard error; a line now and then where that is no terminal."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed

        bar = Progress(
            TextColumn("{task.description:<9}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            Elapsed(),
            TextColumn("[dim]{task.fields[detail]}"),
            console=self.err,
            transient=True,
            disable=not self.err.is_terminal,
        )

        def words() -> str:
            return ", ".join(
                f"{each.description} {each.completed:.0f} of {each.total} {each.fields['detail']}"
                for each in bar.tasks
            ).strip()

        with bar, self.at_work(words):
            yield bar

    @contextmanager
    def warnings_as_lines(self) -> Iterator[None]:
        """Print each warning of the package once, as a line; leave out those of others.

        What the diagnostics of a fit warn of is said with them, at the end (`words.diagnosed`).
        """
        from mercer.errors import ConvergenceWarning, MercerWarning

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        said = {
            str(entry.message)
            for entry in caught
            if issubclass(entry.category, MercerWarning)
            and not issubclass(entry.category, ConvergenceWarning)
        }
        for words in sorted(said):
            self.note("warning", words)

    def _say(self, console: Console, label: str, words: str) -> None:
        clean = plain(words)
        lines = [clean]
        if console.is_terminal:
            lines = textwrap.wrap(clean, max(40, console.width - _LABEL)) or [""]
        style = "yellow" if label == "warning" else "dim"
        for position, line in enumerate(lines):
            head = label if position == 0 else ""
            text = Text.assemble((f"{head:<{_LABEL}}", style), line)
            console.print(text, soft_wrap=True)


def plain(words: str) -> str:
    """Return text of a report as a terminal shows it: "12.5 %" and "12 345" have narrow spaces."""
    return printable(words.replace("\u00a0", " ").replace("\u202f", " "))


# Tables of scores for the terminal.


def shown(
    metrics: Sequence[Metric], scores: Sequence[Any] = (), by: Metric | None = None
) -> list[Metric]:
    """Return the metrics that a table of scores has columns for, with the one it is sorted by.

    Any other has none where it is known of no model.
    """
    known = [m for m in metrics if not scores or any(math.isfinite(m.of(each)) for each in scores)]
    return [m for m in metrics if m == by or (m.is_shown and m in known)]


def digits3(value: float) -> str:
    """Write a number with three significant digits; a dash for nan.

    Examples
    --------
    >>> [digits3(x) for x in (0.12345, 0.0, 12.0, 3.1e-7)]
    ['0.123', '0', '12.0', '3.1e-07']
    """
    if not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    if abs(value) < 1e-4 or abs(value) >= 1e6:
        return f"{value:.3g}"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def duration(seconds: float) -> str:
    """Write seconds: three digits, minutes above ten of them."""
    if not math.isfinite(seconds):
        return "-"
    if seconds < 600:
        return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"
    return f"{seconds / 60:.0f} min"


def spoken(seconds: float) -> str:
    """Write a length of time with its unit, for a sentence.

    Examples
    --------
    >>> [spoken(t) for t in (2.446, 42.0, 960.0)]
    ['2.45 s', '42 s', '16 min']
    """
    words = duration(seconds)
    return words if words.endswith("min") else f"{words} s"


def plain_table(*columns: str, n_text: int = 1) -> Table:
    """Make an empty table: the first columns text, the others numbers."""
    table = Table(
        box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim"
    )
    for position, name in enumerate(columns):
        is_text = position < n_text
        table.add_column(
            name,
            justify="left" if is_text else "right",
            overflow="fold" if is_text else "ellipsis",
            no_wrap=not is_text,
        )
    return table


def evaluation_table(evaluation: AnyEvaluation) -> Table:
    """Show the scores of a model and its baselines, the best of each column in bold.

    Calibration has no winner: the class shares alone are always calibrated.
    """
    entries: tuple[ModelScore[Any], ...] = evaluation.entries
    metrics = shown(evaluation.metrics, [entry.scores for entry in entries])
    table = plain_table("held out", *(metric.heading for metric in metrics), "seconds")
    values = [[metric.of(entry.scores) for metric in metrics] for entry in entries]
    best = lowest(values, metrics)
    for entry, row in zip(entries, values, strict=True):
        cells = [
            Text(text, style="bold" if text == winner else "")
            for text, winner in zip(map(digits3, row), best, strict=True)
        ]
        table.add_row(printable(entry.name), *cells, duration(entry.seconds))
    return table


def lowest(rows: Sequence[Sequence[float]], metrics: Sequence[Metric]) -> list[str]:
    """Return the lowest of each column as it is shown; "" for a column without a winner."""
    columns = zip(metrics, zip(*rows, strict=True), strict=True)
    return [digits3(min(column)) if metric.has_winner else "" for metric, column in columns]


# Diagnostics and scores in words, and as JSON.


def diagnosed(diagnostics: Diagnostics) -> list[tuple[str, str]]:
    """Say what the diagnostics say, as pairs of a label and words."""
    if diagnostics.prediction_error is None:
        return _sampled(diagnostics)
    words = (
        f"Monte Carlo error of predictions {diagnostics.prediction_error:.2g}, "
        f"at most {diagnostics.largest_prediction_error:.2g}"
    )
    return [*_sampled(diagnostics), ("precision", words)]


#: What the words of diagnostics mean.
_MEANINGS = {
    "R-hat": "R-hat is the spread of chains together over that of each, 1 where they agree",
    "ESS": "ESS is how many independent draws they are worth",
    "effective": "effective sample size is how many independent draws they are worth",
    "k-hat": "k-hat above 0.7 says that a few draws carry all the weight, unless half would do",
    "diverge": "a divergent trajectory is one that lost the posterior where it bends sharply",
    "Monte Carlo error": "Monte Carlo error is what another seed would change",
    "BFMI": "BFMI is small where a chain moves too slowly between likely and unlikely places",
}


def meanings(said: Sequence[str]) -> str:
    """Say what those words of diagnostics mean that were said, and where more is."""
    text = " ".join(said)
    found = [words for term, words in _MEANINGS.items() if term in text]
    return f"{'; '.join(found)} (more: docs/glossary.md)" if found else ""


def _sampled(diagnostics: Diagnostics) -> list[tuple[str, str]]:
    if diagnostics.warnings:
        return [("warning", words) for words in diagnostics.warnings]
    if diagnostics.min_ess is None:
        return [("sampling", "no warnings, and no draws to judge")]
    if diagnostics.k_hat is not None:  # importance sampling
        words = f"{diagnostics.n_evaluations} evaluations, worth {diagnostics.effective_size:.0f}"
        shape = f"Pareto k-hat {diagnostics.k_hat:.2f}"
        if diagnostics.k_hat > LARGEST_SHAPE:  # as `is_trusted` has it
            shape += ", which is no matter, since half of the draws would do"
        return [("sampling", f"no warnings: {words} draws; {shape}")]
    if diagnostics.max_rhat is None:  # weighted particles
        return [("sampling", f"no warnings: ESS {diagnostics.min_ess:.0f}")]
    rhat, size = f"{diagnostics.max_rhat:.3f}", f"{diagnostics.min_ess:.0f}"
    words = f"R-hat at most {rhat}, as chance explains; ESS at least {size}"
    if diagnostics.acceptance_rate is not None:
        words += f", acceptance {diagnostics.acceptance_rate:.2f}"
    if diagnostics.has_trajectories:
        words += ", no divergences after warm-up"
    return [("sampling", f"no warnings: {words}")]


def score_words(evaluation: AnyEvaluation) -> str:
    """Say the scores of the model on one line."""
    return listed_scores(evaluation.entries[0].scores, evaluation.metrics)


def listed_scores(scores: Scores | RegressionScores, metrics: tuple[Metric, ...]) -> str:
    """List scores on one line, those that are known."""
    named = [(metric.brief, metric.of(scores)) for metric in metrics if metric.brief]
    listed = ", ".join(f"{name} {digits3(value)}" for name, value in named if not isnan(value))
    return f"{scores.n_rows} rows: {listed}"


def evaluation_json(evaluation: AnyEvaluation) -> dict[str, Any]:
    """Return scores and verdict as JSON can hold them; not what was said of each row."""
    classes = list(evaluation.classes) if isinstance(evaluation, Evaluation) else []
    return {
        "how": evaluation.how,
        "classes": classes,
        "entries": [asdict(entry) for entry in evaluation.entries],
        "verdict": verdict(evaluation).replace("\u00a0", " "),
    }


# What `audit` and `query` say: the noise rate, the list, tables of rows.

_N_SHOWN = 15
_LONGEST = 24  # letters of a label or a name in a table


def noise_json(estimator: Any) -> dict[str, Any]:
    """Return mean and 90 % interval of the noise rate, for each class where rates are by class."""
    is_of_values, draws = hasattr(estimator, "contamination_rate_"), estimator.posterior_
    draws = (
        np.exp(draws.flat("log_rate"))[:, np.newaxis] if is_of_values else draws.flat("noise_rate")
    )
    low, high = np.quantile(draws, (0.05, 0.95), axis=0)
    rates = [
        {"mean": float(mean), "lower": float(a), "upper": float(b)}
        for mean, a, b in zip(draws.mean(axis=0), low, high, strict=True)
    ]
    is_learned = is_of_values or isinstance(estimator.noise_rate, str)
    if len(rates) == 1:
        return {"is_learned": is_learned, **rates[0]}
    names = [str(label) for label in estimator.classes_.tolist()]
    return {"is_learned": is_learned, "by_class": dict(zip(names, rates, strict=True))}


def noise_words(estimator: Any) -> str:
    """Say the noise rate, learned or given."""
    found = noise_json(estimator)
    is_learned = found["is_learned"]
    if "by_class" not in found:
        how = _how(found, is_learned=is_learned)
        noun = "values" if hasattr(estimator, "contamination_rate_") else "labels"
        return f"{_share(found)} of the {noun} are wrong ({how})"
    parts = (
        f"{_share(rate)} of those that are {quoted(name)} ({_how(rate, is_learned=is_learned)})"
        for name, rate in found["by_class"].items()
    )
    return f"recorded wrong are {', '.join(parts)}"


def _share(rate: Mapping[str, float]) -> str:
    return f"{100 * rate['mean']:.1f} %"


def _how(rate: Mapping[str, float], *, is_learned: bool) -> str:
    if not is_learned:
        return "given"
    low, high = 100 * rate["lower"], 100 * rate["upper"]
    return f"learned; 90 % interval {low:.1f} to {high:.1f} %"


def list_words(audit: Audit) -> str:
    """Say how long the list is and what is expected of it."""
    n, k = len(audit.names), audit.n_listed
    wider = audit.wider()
    words = "" if wider is None else f"; --fdr {wider[0]:g} would list {wider[1]}"
    if k == 0:
        return (
            f"no row of {n}: of any list more than {100 * audit.fdr:g} % would be expected to be "
            f"right (--fdr {audit.fdr:g}){words}; {audit.of_first()}"
        )
    return (
        f"{k} row{'s' * (k > 1)} of {n}, of which {100 * audit.expected_fdr:.1f} % are expected to "
        f"be right after all (--fdr {audit.fdr:g} allows {100 * audit.fdr:g} %){words}"
    )


def suspects_table(audit: Audit) -> Table:
    """Show the first rows, as far as they are suspicious; those of the list in full ink."""
    names, first = audit.names.columns(), audit.cells(0)
    table = plain_table(*(printable(name) for name in (*names, *first)), "listed")
    is_number = {name: isinstance(value, float) for name, value in first.items()}
    for name, column in zip((*names, *first), table.columns, strict=False):
        column.justify = "right" if name == "row" or is_number.get(name) else "left"
    for i in range(audit.n_shown(_N_SHOWN)):
        cells = [values[i] for values in names.values()]
        for name, value in audit.cells(i).items():
            if isinstance(value, float):  # what is recorded as it is
                of_number = "{:.3f}" if name.startswith("P(") else "{:.10g}"
                value = digits3(value) if name in ("expected", "std") else of_number.format(value)
            cells.append(value)
        is_listed = i < audit.n_listed
        texts = [Text(_short(cell)) for cell in (*cells, "yes" if is_listed else "no")]
        table.add_row(*texts, style="" if is_listed else "dim")
    return table


def rows_table(columns: Mapping[str, Any], n_text: int) -> Table:
    """Show named columns, the first ones text."""
    table = plain_table(*(printable(name) for name in columns), n_text=n_text)
    for row in zip(*(values.tolist() for values in columns.values()), strict=True):
        table.add_row(*(Text(_short(digits3(c) if isinstance(c, float) else c)) for c in row))
    return table


def _short(cell: object) -> str:
    words = printable(str(cell))
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
