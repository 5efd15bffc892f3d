"""Scores of rows that come block by block and are not kept."""

from __future__ import annotations

import math
from dataclasses import replace

from mercer.posterior.held_out import HeldOut
from mercer.posterior.regression_scores import RegressionScores
from mercer.posterior.scores import Scores

__all__ = ["RunningScores"]


class RunningScores:
    """Means over rows, by running sums.

    The calibration error and r2 need all rows at once, and are left out: nan and None.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.posterior.held_out import HeldClasses
    >>> running = RunningScores()
    >>> for y in ([0, 1], [1]):
    ...     running.add(HeldClasses(np.array(y), np.full((len(y), 2), 0.5)))
    >>> running.scores().n_rows, round(running.scores().log_score, 4)
    (3, 0.6931)
    """

    def __init__(self) -> None:
        self._n_rows = 0
        self._sums: dict[str, float] = {}
        self._last: Scores | RegressionScores | None = None

    def add(self, held: HeldOut) -> None:
        """Score some rows, one at least; always of the same task."""
        self._last = held.scores()
        values = self._last.to_dict()
        n = self._last.n_rows
        self._n_rows += n
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + n * (
                math.nan if value is None else value
            )

    def scores(self) -> Scores | RegressionScores | None:
        """Return the scores of all rows so far; None before the first."""
        if self._last is None:
            return None
        means = {name: total / self._n_rows for name, total in self._sums.items()}
        if isinstance(self._last, Scores):
            return Scores(
                n_rows=self._n_rows,
                error_rate=means["error_rate"],
                log_score=means["log_score"],
                brier_score=means["brier_score"],
                calibration_error=math.nan,
            )
        standardized = means["standardized_mse"]
        return replace(
            self._last,
            n_rows=self._n_rows,
            mse=means["mse"],
            rmse=math.sqrt(means["mse"]),
            standardized_mse=None if math.isnan(standardized) else standardized,
            mae=means["mae"],
            r2=None,
            log_score=means["log_score"],
            coverage_90=means["coverage_90"],
            width_90=means["width_90"],
            calibration_error=math.nan,
        )
