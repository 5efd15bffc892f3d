"""The work of `mercer stream`: read what is there, answer it, learn it, until there is no more."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mercer.cli.terminal.exits import StoppedError
from mercer.cli.terminal.live_stream import LivePanel
from mercer.cli.work.live.answering import Numbers
from mercer.cli.work.live.facts import Facts, closing_words
from mercer.cli.work.live.keeping import Keeper, Stream
from mercer.cli.work.live.learner import Learner
from mercer.cli.work.live.lines import Line, LineSource
from mercer.cli.work.live.opening import STANDARD_INPUT, find_parser, opened
from mercer.cli.work.live.output import Output
from mercer.cli.work.live.plain import Answer, RowStream
from mercer.cli.work.live.planning import StreamOptions, StreamPlan
from mercer.cli.work.live.reporting import Reporter
from mercer.cli.work.live.rows import Parser, Row, Wanted
from mercer.cli.work.live.series import SeriesStream
from mercer.cli.work.live.stopping import Stopping, StreamStoppedError
from mercer.cli.work.live.tally import Tally
from mercer.data.wording import printable
from mercer.errors import DataError

__all__ = ["run_stream"]

# Rows are answered together only while that takes about so long, in seconds: signals, files and
# the panel wait for it.
_SHORT, _LONG = 0.02, 0.1
_MOST_ROWS = 1024


def run_stream(
    options: StreamOptions,
    plan: StreamPlan,
    path: Path | None,
    tell: Callable[[str, str], None],
    panel: LivePanel,
) -> None:
    """Answer all rows.

    Parameters
    ----------
    options : StreamOptions
    plan : StreamPlan
    path : Path or None
        None: standard input.
    tell : callable
        Takes a label and words.
    panel : LivePanel

    Raises
    ------
    DataError
        There is no row, or one that cannot be used where that ends the stream.
    StoppedError
        After SIGINT or SIGTERM, once the model is saved.
    BrokenPipeError
        Nobody reads the answers any more.

    Whatever is raised once there is a model, that is saved before, with all rows that it has
    learned.
    """
    with Stopping() as stopping, opened(path) as descriptor, panel.shown():
        name = STANDARD_INPUT if path is None else str(path)
        lines = LineSource(descriptor, name, stopping.wake)
        try:
            loop, first = _begin(options, plan, lines, tell, panel, stopping)
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
    tell("rows", closing_words(loop.keeper.learner.tally))
    n_outliers = getattr(loop.keeper.learner.answers.model, "n_outliers_", 0)
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
    tell: Callable[[str, str], None],
    panel: LivePanel,
    stopping: Stopping,
) -> tuple[_Loop, list[Line]]:
    """Wait for the first line, and put together what answers the others."""
    tally = Tally()
    reporter = Reporter(tell, lines.name, is_fatal=options.is_strict, tally=tally)
    wanted = Wanted(
        lines.name, plan.target, options.id_column, options.drop, plan.columns, plan.n_lags > 0
    )
    parser, first = find_parser(lines, wanted, options.form, reporter.note, stopping)
    learner = Learner(
        plan.answers,
        parser,
        reporter,
        tally,
        warmup=plan.warmup,
        encoder=plan.encoder,
        lag_names=plan.lag_names,
    )
    if plan.warmup and not learner.is_ready:
        reporter.note(
            f"nothing is predicted until {plan.warmup} rows with a target were read (--warmup)"
        )
    stream: Stream
    if plan.n_lags and isinstance(plan.answers, Numbers):
        stream = SeriesStream(learner, plan.answers, plan.n_lags, plan.horizon, plan.state)
    else:
        stream = RowStream(learner, plan.state)
    keeper = Keeper(options.save, options.save_every, plan.target, plan.seed, learner, stream)
    output, facts = Output(stopping), Facts(learner)
    return _Loop(lines, parser, stream, output, keeper, panel, facts, stopping), first


@dataclass
class _Loop:
    """Everything that a row passes."""

    lines: LineSource
    parser: Parser
    stream: Stream
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
            if self.lines.wait(self._seconds_left()):
                self._take(self.parser.rows(self.lines.read()))
            self._tick()
        if self.keeper.learner.tally.n_rows == 0:
            raise DataError(
                f"{printable(self.lines.name)}: there is no row of data, found 0 sample(s)"
            )

    def _take(self, rows: Sequence[Row]) -> None:
        begin = 0
        while begin < len(rows):
            n = self.keeper.n_rows_left or self.n_together
            end = begin + min(n, self.n_together)
            started = time.perf_counter()
            answers: list[Answer] = []
            try:
                answers.extend(self.stream.take(rows[begin:end]))
            finally:  # rows before one that ends the stream have their answers
                self._adapt(time.perf_counter() - started)
                if self.keeper.n_rows_left == 0:  # rows are in the file before they are answered
                    self.keeper.save()
                self.output.write(answers)
            self._tick()
            begin = end

    def rescue(self) -> bool:
        """Learn what was held back and write the file, since the stream ends by an error.

        Returns
        -------
        bool
            Whether it was written; why not is said, and hides no error.
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

    def _seconds_left(self) -> float | None:
        """Seconds until something is to be done even if no row comes; None: nothing is."""
        times = (self.keeper.seconds_left, self.panel.seconds_left)
        return min((seconds for seconds in times if seconds is not None), default=None)


def _hint(path: Path | None, *, is_saved: bool) -> str:
    if path is None:
        return "nothing was saved: with --save FILE the model is kept"
    name = printable(str(path))
    if not is_saved:
        return f"nothing was learned, so {name} is as it was"
    return f"the model is saved: --load {name} goes on from it"
