"""Counts and running scores of a stream."""

from __future__ import annotations

from collections import deque
from statistics import fmean

from mercer.cli.work.live.answering import Said

__all__ = ["Tally"]

_RECENT = 1000


class Tally:
    """Rows read, learned and skipped, and the mean score: of all rows, and of the last 1000.

    Examples
    --------
    >>> tally = Tally()
    >>> for score in (-1.0, -2.0):
    ...     tally.add(Said({}, score, score > -1.5))
    >>> tally.mean_score, tally.recent_score, tally.recent_coverage
    (-1.5, -1.5, 0.5)
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.last_row = 0  # number of the last one that was learned, or skipped
        self.n_learned = 0
        self.n_bad = 0
        self._n_scored = 0
        self._sum = 0.0
        self._scores: deque[float] = deque(maxlen=_RECENT)
        self._inside: deque[bool] = deque(maxlen=_RECENT)
        self._right: deque[bool] = deque(maxlen=_RECENT)
        self._n_judged = self._n_wrong = 0

    def add(self, said: Said) -> None:
        """Take in what was said of a row; without a score it does not count."""
        if said.score is None:
            return
        self._n_scored += 1
        self._sum += said.score
        self._scores.append(said.score)
        if said.is_inside is not None:
            self._inside.append(said.is_inside)
        if said.is_right is not None:
            self._right.append(said.is_right)
            self._n_judged += 1
            self._n_wrong += not said.is_right

    @property
    def mean_score(self) -> float | None:
        """Mean over all rows scored; None before the first."""
        return self._sum / self._n_scored if self._n_scored else None

    @property
    def recent_score(self) -> float | None:
        """Mean over the last 1000 rows scored; None before the first."""
        return fmean(self._scores) if self._scores else None

    @property
    def recent_coverage(self) -> float | None:
        """Share, of the last 1000 rows scored, of those inside their interval."""
        return fmean(self._inside) if self._inside else None

    @property
    def error_rate(self) -> float | None:
        """Share, of all classes predicted, of those that were wrong; None before the first."""
        return self._n_wrong / self._n_judged if self._n_judged else None

    @property
    def recent_error_rate(self) -> float | None:
        """The same of the last 1000."""
        return 1.0 - fmean(self._right) if self._right else None
