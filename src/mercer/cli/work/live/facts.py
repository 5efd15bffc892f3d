"""How a stream does, in words: for the live panel, and at the end."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from mercer.cli.terminal.score_table import digits3
from mercer.cli.work.live.learner import Learner
from mercer.cli.work.live.tally import Tally

__all__ = ["Facts", "closing_words"]

_WINDOW = 3.0  # seconds over which rows are counted for their rate


class Facts:
    """Numbers by name, as they are now.

    Parameters
    ----------
    learner : Learner
    clock : callable
        Returns seconds.
    """

    def __init__(self, learner: Learner, clock: Callable[[], float] = time.monotonic) -> None:
        self._learner = learner
        self._clock = clock
        self._counts: deque[tuple[float, int]] = deque([(clock(), learner.tally.n_rows)])

    def __call__(self) -> dict[str, str]:
        """Return them; to be called a few times a second."""
        tally, model = self._learner.tally, self._learner.answers.model
        coverage, score, wrong = tally.recent_coverage, tally.recent_score, tally.recent_error_rate
        facts = {"rows": f"{tally.n_rows:,}", "rows/s": f"{self._rate():,.0f}"}
        if not self._learner.is_ready:
            facts["warm-up"] = f"{len(self._learner.held_rows)} of {self._learner.warmup}"
        facts["score (last 1000)"] = "-" if score is None else digits3(score)
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


def closing_words(tally: Tally) -> str:
    """Say what was done with all rows."""
    words = f"{tally.n_rows} read, {tally.n_learned} learned"
    if tally.n_bad:
        words += f", {tally.n_bad} bad"
    if tally.mean_score is not None:
        words += f"; mean score {digits3(tally.mean_score)} nats a row"
    if tally.error_rate is not None:
        words += f", {100 * tally.error_rate:.1f} % wrong"
    return words
