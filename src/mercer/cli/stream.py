"""`mercer stream`: rows as they come, each predicted, then learned."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.live import Live

from mercer.atomic import locked
from mercer.cli.exits import StoppedError
from mercer.cli.outputs import check_outputs, make_provenance
from mercer.cli.stream_model import Learner, Reporter, Tally, Undecided
from mercer.cli.stream_plan import (
    Interval,
    RowStream,
    SeriesStream,
    StreamOptions,
    StreamPlan,
    StreamState,
    plan_stream,
    read_interval,
    write_stream_model,
)
from mercer.cli.stream_rows import (
    Line,
    LineSource,
    Parser,
    Row,
    Stopping,
    StreamStoppedError,
    Wanted,
    find_parser,
    opened,
)
from mercer.cli.terminal import Session, digits3, plain_table
from mercer.data.files import STANDARD_INPUT, printable
from mercer.data.frame import null_words
from mercer.errors import DataError, MercerWarning, StorageError
from mercer.estimation.model_file import TableModel
from mercer.posterior.draws import finite_or_none

# How a stream does, in words: for the live panel, and at the end.

_WINDOW = 3.0  # seconds over which rows are counted for their rate


class Facts:
    """Numbers by name, as they are now; the clock returns seconds."""

    def __init__(self, learner: Learner, clock: Callable[[], float] = time.monotonic) -> None:
        self._learner = learner
        self._clock = clock
        self._counts: deque[tuple[float, int]] = deque([(clock(), learner.tally.n_rows)])

    def __call__(self) -> dict[str, str]:
        """Return them; to be called a few times a second."""
        tally, model = self._learner.tally, self._learner.predictor.model
        coverage, score, wrong = tally.recent_coverage, tally.recent_score, tally.recent_error_rate
        facts = {"rows": f"{tally.n_rows:,}", "rows/s": f"{self._rate():,.0f}"}
        if not self._learner.is_ready:
            facts["warm-up"] = f"{len(self._learner.held)} of {self._learner.warmup}"
        facts["log score (last 1000)"] = "-" if score is None else digits3(score)
        if coverage is not None:
            facts["in interval"] = f"{100 * coverage:.1f} %"
        if wrong is not None:
            facts["wrong (last 1000)"] = f"{100 * wrong:.1f} %"
        if self._learner.is_ready and tally.n_learned:
            facts["centres"] = f"{model.n_centres_:.1f}"
            if hasattr(model, "noise_std_"):
                facts["noise"] = digits3(model.noise_std_)
        facts["bad rows"] = f"{tally.n_bad:,}"
        return facts

    def _rate(self) -> float:
        """Rows per second of the last seconds."""
        now = self._clock()
        self._counts.append((now, self._learner.tally.n_rows))
        while len(self._counts) > 2 and self._counts[1][0] < now - _WINDOW:
            self._counts.popleft()
        then, n_rows = self._counts[0]
        return (self._learner.tally.n_rows - n_rows) / max(now - then, 1e-9)


def closing_words(tally: Tally, n_set_aside: int = 0) -> str:
    """Say what was done with all rows, of which the model set some aside."""
    words = f"{tally.n_rows} read, {tally.n_learned - n_set_aside} learned"
    if tally.n_bad:
        words += f", {tally.n_bad} bad"
    if tally.mean_score is not None:
        words += f"; mean log score {digits3(tally.mean_score)} nats a row (lower is better)"
    if tally.error_rate is not None:
        words += f", {100 * tally.error_rate:.1f} % wrong"
    return words


# Warnings of the package, said when they come: a stream may never end.


@contextmanager
def warnings_at_once(tell: Callable[[str, str], None]) -> Iterator[None]:
    """Say each warning of the package once, by label and words; leave out those of others."""
    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: object) -> None:
        words = str(message)
        if issubclass(category, MercerWarning) and words not in said:
            said.add(words)
            tell("warning", words)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show  # type: ignore[assignment]
        yield


# The panel of `stream`: one row of numbers that changes while rows come.

_EVERY = 0.25  # seconds between two pictures


class LivePanel:
    """Draw numbers by name, at most four times a second; nothing unless it ``is_shown``."""

    def __init__(
        self, console: Console, *, is_shown: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._is_shown = is_shown
        self._clock = clock
        self._live: Live | None = None
        self._next = clock()

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the next picture; None: there is none."""
        return None if self._live is None else max(0.0, self._next - self._clock())

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Draw while the block runs."""
        if not self._is_shown:
            yield
            return
        with Live(
            console=self._console, auto_refresh=False, transient=True, redirect_stdout=False,
            redirect_stderr=False,
        ) as self._live:  # fmt: skip
            yield
        self._live = None

    def tick(self, facts: Callable[[], Mapping[str, str]]) -> None:
        """Draw anew if it is time."""
        if self._live is not None and self._clock() >= self._next:
            now = facts()
            table = plain_table(*now, n_text=0)
            table.add_row(*now.values())
            self._live.update(table, refresh=True)
            self._next = self._clock() + _EVERY


# Answers as JSON lines on standard output, each written at once.

_PIECE = 4096  # bytes that a pipe takes whole once it can be written to
_PATIENCE = 1.0  # seconds that a reader has for what is left, once a signal came


class Output:
    """Write to standard output; a reader that takes its time makes this wait, and loses nothing.

    Once a signal came, a reader that takes nothing is not waited for.
    """

    def __init__(self, stopping: Stopping) -> None:
        self._stopping = stopping
        try:
            sys.stdout.flush()
            self._descriptor: int | None = sys.stdout.fileno()
        except (OSError, ValueError):  # replaced by something that is no file
            self._descriptor = None

    def write(self, answers: Sequence[dict[str, Any]]) -> None:
        """Write a line for each answer; a StorageError says which are lost."""
        rows = [answer["row"] for answer in answers]
        text = "".join(json.dumps(_finite(answer), allow_nan=False) + "\n" for answer in answers)
        if self._descriptor is None:
            sys.stdout.write(text)
            return
        data = memoryview(text.encode())
        while data:
            self._wait(self._descriptor)
            try:
                data = data[os.write(self._descriptor, data[:_PIECE]) :]
            except BrokenPipeError:
                raise
            except OSError as error:
                first = rows[-bytes(data).count(b"\n")]
                raise StorageError(
                    f"cannot write to standard output: {error.strerror}; the answers of rows "
                    f"{first} to {rows[-1]} are lost"
                ) from error

    def _wait(self, descriptor: int) -> None:
        """Wait until something can be written."""
        if self._stopping.received is None:
            _, ready, _ = select.select([self._stopping.wake], [descriptor], [])
            if ready:
                return
        started = time.monotonic()
        while time.monotonic() < started + _PATIENCE:
            _, ready, _ = select.select([], [descriptor], [], _PATIENCE)
            if ready:
                return
        raise StreamStoppedError


# The model file of a stream: written at intervals and at the end, always whole.


@dataclass
class Keeper:
    """Write the model to a path (None: nowhere) when it is time."""

    path: Path | None
    every: Interval
    plan: StreamPlan
    learner: Learner
    state: Callable[[], StreamState]  # of the stream, beside the model
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._started = self._last = self.clock()
        self._n_written = 0

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the next file; None: there is nothing to write."""
        if self.path is None or not self._is_behind:
            return None
        if self.n_rows_left == 0:
            return 0.0
        return max(0.0, self._last + self.every.seconds - self.clock())

    @property
    def n_rows_left(self) -> int | None:
        """Rows to the next file; None: any number, or there is nothing to write to."""
        if self.path is None or self.every.rows is None:
            return None
        return max(0, self._n_written + self.every.rows - self.learner.tally.n_rows)

    @property
    def _is_behind(self) -> bool:
        return self.learner.is_ready and self.learner.tally.n_rows > self._n_written

    def tick(self) -> None:
        """Write the file if it is time."""
        if self.seconds_left == 0.0:
            self.save()

    def save(self) -> bool:
        """Write the file; False if there is none to write, or nothing was ever learned."""
        model, encoder = self.learner.predictor.model, self.learner.encoder
        if self.path is None or encoder is None or not getattr(model, "n_rows_seen_", 0):
            return False
        provenance = make_provenance(
            self.learner.reporter.source,
            encoder.feature_names,
            target=self.plan.target,
            n_rows=int(model.n_rows_seen_),
            seed=self.plan.seed,
            seconds=self.clock() - self._started,
            notes=(*encoder.notes, "learned row by row"),
        )
        id_column = self.plan.id_column
        table = TableModel(encoder, self.plan.target, None, provenance, id_column=id_column)
        write_stream_model(self.path, model, table, self.state())
        self._n_written = self.learner.tally.n_rows
        self._last = self.clock()
        return True


# The work of `mercer stream`: read what is there, answer it, learn it, until there is no more.

# Rows are answered together only while that takes about so long, in seconds: signals, files and
# the panel wait for it.
_SHORT, _LONG = 0.02, 0.1
_MOST_ROWS = 1024
_MANY_BAD = 10  # rows, after which it is said that none could be used
_LOOK_AT = "see --target, --format, --encoding, and of a series of classes --task classification"


def run_stream(
    options: StreamOptions,
    plan: StreamPlan,
    path: Path | None,
    tell: Callable[[str, str], None],
    panel: LivePanel,
) -> None:
    """Answer all rows of a file, or of standard input where there is no path.

    Whatever is raised once there is a model, that is saved before, with all rows that it has
    learned.
    """
    given = {"--encoding": options.encoding is not None, "--format": options.form != "auto"}
    of_text = [option for option, is_given in given.items() if is_given]
    with Stopping() as stopping, opened(path, of_text) as source, panel.shown():
        name = STANDARD_INPUT if path is None else str(path)
        lines = LineSource(source.descriptor, name, stopping.wake, options.encoding)
        try:
            loop, first = _begin(options, plan, lines, source.texts, tell, panel, stopping)
        except StreamStoppedError:
            raise StoppedError(stopping.received or signal.SIGINT, "no row was read") from None
        try:
            loop.run(first)
            loop.stream.finish()
            is_saved = loop.keeper.save()
        except BaseException as error:
            is_saved = loop.rescue()
            if isinstance(error, StreamStoppedError):
                hint = _hint(options.save, is_saved=is_saved)
                raise StoppedError(stopping.received or signal.SIGINT, hint) from None
            if options.save is not None and not isinstance(error, BrokenPipeError):
                tell("saved" if is_saved else "not saved", loop.said_of_file(is_saved=is_saved))
            raise
    learner = loop.keeper.learner
    model, n_outliers = learner.predictor.model, learner.n_set_aside
    tell("rows", closing_words(learner.tally, n_outliers))
    has_learned = learner.tally.n_learned and hasattr(model, "diagnostics_")
    if has_learned and (worst := model.diagnostics_.worst_warning):
        tell("warning", worst)
    if n_outliers:
        tell(
            "outliers",
            f"set aside, not learned, for their targets: {n_outliers}; --set robust=False learns "
            "every row",
        )
    if is_saved:
        tell("saved", str(options.save))


def _begin(
    options: StreamOptions,
    plan: StreamPlan,
    lines: LineSource,
    texts: tuple[str, ...],
    tell: Callable[[str, str], None],
    panel: LivePanel,
    stopping: Stopping,
) -> tuple[_Loop, list[Line]]:
    """Wait for the first line, and put together what answers the others."""
    reporter = Reporter(tell, lines.name, options.is_strict)
    fills_gaps = (plan.encoder or plan).missing in ("impute", "indicator")
    wanted = Wanted(
        lines.name, plan.target, options.id_column, options.drop, plan.columns, plan.n_lags > 0,
        texts, fills_gaps=fills_gaps, fitted_id=plan.id_column,
        null_values=plan.encoder.null_values if plan.encoder else null_words(options.null_values),
    )  # fmt: skip
    parser, first = find_parser(lines, wanted, options.form, reporter.note, stopping)
    learner = Learner(
        plan.predictor, parser, reporter, warmup=plan.warmup, encoder=plan.encoder,
        lag_names=plan.lag_names, missing=plan.missing,
    )  # fmt: skip
    if plan.warmup and not learner.is_ready:
        reporter.note(
            f"nothing is predicted until {plan.warmup} rows with a target were read (--warmup)"
        )
    if isinstance(plan.predictor, Undecided) and plan.target in texts:
        plan.predictor.is_text = True
    stream: RowStream | SeriesStream = RowStream(learner, plan.state)
    if plan.n_lags:
        stream = SeriesStream(learner, plan.n_lags, plan.horizon, plan.state, fills_gaps=fills_gaps)
    keeper = Keeper(options.save, options.save_every, plan, learner, stream.state)
    output, facts = Output(stopping), Facts(learner)
    return _Loop(lines, parser, stream, output, keeper, panel, facts, stopping), first


@dataclass
class _Loop:
    """Everything that a row passes."""

    lines: LineSource
    parser: Parser
    stream: RowStream | SeriesStream
    output: Output
    keeper: Keeper
    panel: LivePanel
    facts: Facts
    stopping: Stopping
    n_together: int = 1

    def run(self, first: Sequence[Line]) -> None:
        """Answer the lines that were read already, then all others."""
        self._take(self.parser.rows(first))
        while not self.lines.is_over:
            times = (self.keeper.seconds_left, self.panel.seconds_left)
            left = min((seconds for seconds in times if seconds is not None), default=None)
            if self.lines.wait(left):  # or until something is to be done though no row comes
                self._take(self.parser.rows(self.lines.read()))
            self._tick()
        tally, name = self.keeper.learner.tally, printable(self.lines.name)
        if tally.n_rows == 0:
            raise DataError(f"{name}: there is no row of data")
        if tally.n_bad == tally.n_rows:
            raise DataError(f"{name}: none of the {tally.n_rows} rows could be used: {_LOOK_AT}")

    def _take(self, rows: Sequence[Row]) -> None:
        begin = 0
        while begin < len(rows):
            n = self.keeper.n_rows_left or self.n_together
            end = begin + min(n, self.n_together)
            started = time.perf_counter()
            answers: list[dict[str, Any]] = []
            try:
                answers.extend(self.stream.take(rows[begin:end]))
            finally:  # rows before one that ends the stream have their answers
                self._adapt(time.perf_counter() - started)
                if self.keeper.n_rows_left == 0:  # rows are in the file before they are answered
                    self.keeper.save()
                self.output.write(answers)
            self._say_if_useless()
            self._tick()
            begin = end

    def _say_if_useless(self) -> None:
        """Say so where no row could be used so far: an option will be wrong."""
        learner = self.keeper.learner
        n = learner.tally.n_rows
        if n >= _MANY_BAD and learner.tally.n_bad == n:
            learner.reporter.once(
                f"none of the first {n} rows could be used: {_LOOK_AT}", "useless"
            )

    def rescue(self) -> bool:
        """Learn what was held back and write the file, since the stream ends by an error.

        Whether it was written is returned; why not is said, and hides no error.
        """
        with suppress(Exception):  # rows held back that cannot be used
            self.stream.finish()
        try:
            return self.keeper.save()
        except Exception as error:
            self.keeper.learner.reporter.note(f"the model could not be saved: {error}")
            return False

    def said_of_file(self, *, is_saved: bool) -> str:
        """What a file holds after an error, for whoever goes on from it."""
        name, last = printable(str(self.keeper.path)), self.keeper.learner.tally.last_row
        if not is_saved:
            return f"{name} is as it was"
        return f"{name} has learned the rows to row {last}: --load {name} goes on after it"

    def _adapt(self, seconds: float) -> None:
        """Take more or fewer rows together, by the time of the last ones."""
        if seconds < _SHORT:
            self.n_together = min(2 * self.n_together, _MOST_ROWS)
        elif seconds > _LONG:
            self.n_together = max(1, self.n_together // 2)

    def _tick(self) -> None:
        self.stopping.check()
        self.keeper.tick()
        self.panel.tick(self.facts)


def _finite(value: Any) -> Any:
    """Write null for what is not known yet: the spread after too few rows is infinite."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return finite_or_none(value) if isinstance(value, float) else value


def _hint(path: Path | None, *, is_saved: bool) -> str:
    if path is None:
        return "nothing was saved: with --save FILE the model is kept"
    name = printable(str(path))
    if not is_saved:
        return f"nothing was learned, so {name} is as it was"
    return f"the model is saved: --load {name} goes on from it"


def run(path: Path | None, save_every: str, on_bad_row: str, quiet: bool, **given: Any) -> None:
    """Do the work of `mercer stream`: `mercer.cli.commands` has its options."""
    save: Path | None = given["save"]
    path = None if path == Path("-") else path
    check_outputs({"--save": save}, {"INPUT": path, "--load": given["load"]})
    session = Session()
    is_shown = session.err.is_terminal and not sys.stdout.isatty() and not quiet
    every = read_interval(save_every)
    options = StreamOptions(**given, save_every=every, is_strict=on_bad_row == "fail")

    def tell(label: str, words: str) -> None:
        if not quiet:
            session.note(label, words)

    kept = nullcontext() if save is None else locked(save)  # also from reading --load on
    source_of = click.get_current_context().get_parameter_source
    for name in ("warmup", "seed") if given["load"] else ():
        if source_of(name) is ParameterSource.COMMANDLINE:
            tell("note", f"--{name} has no effect on a model that is loaded")
    with kept, warnings_at_once(tell):
        plan = plan_stream(options, tell)
        if path is None and sys.stdin is not None and sys.stdin.isatty():
            tell("input", "type rows: CSV with a header, or a JSON object a line; Ctrl-D ends")
        run_stream(options, plan, path, tell, LivePanel(session.err, is_shown=is_shown))
