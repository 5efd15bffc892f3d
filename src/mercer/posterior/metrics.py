"""The scores by which models are compared: what tables and sentences call them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["CLASSIFICATION_METRICS", "REGRESSION_METRICS", "Metric", "find_metric"]


@dataclass(frozen=True)
class Metric:
    """One score; lower is better, if there is a better.

    Attributes
    ----------
    name : str
        Field of `Scores` or `RegressionScores`.
    heading : str
        Of a column of a table.
    words : str
        In a sentence.
    brief : str
        In a list of scores; empty where lists leave it out.
    is_shown : bool
        Whether tables have a column for it though they are not sorted by it.
    has_winner : bool
        Whether the lowest is the best: a calibration error alone is no contest, as a model that
        says the same of every row can have 0, and coverage has a level to meet.
    is_pooled : bool
        Whether it is that of all rows together, without a standard error over folds: of a few
        rows it is mostly chance.
    error_decimals : int or None
        Of its standard error in tables; None where its size depends on the units of the target.
    """

    name: str
    heading: str
    words: str
    brief: str = ""
    is_shown: bool = True
    has_winner: bool = True
    is_pooled: bool = False
    error_decimals: int | None = 3

    def of(self, scores: Any) -> float:
        """Return the score; nan where it is not known."""
        value = getattr(scores, self.name)
        return math.nan if value is None else float(value)


def _calibration(heading: str) -> Metric:
    words = "calibration error"
    return Metric(
        "calibration_error", heading, words, brief=words, has_winner=False, is_pooled=True
    )


CLASSIFICATION_METRICS: Final = (
    Metric("error_rate", "error", "error rate", brief="error"),
    Metric("log_score", "log score", "log score", brief="log score"),
    Metric("brier_score", "Brier", "Brier score", brief="Brier"),
    _calibration("calibration"),
)

REGRESSION_METRICS: Final = (
    Metric("rmse", "RMSE", "root mean squared error", brief="RMSE", error_decimals=None),
    Metric("mse", "MSE", "mean squared error", is_shown=False, error_decimals=None),
    Metric(
        "standardized_mse",
        "MSE/var",
        "mean squared error over the variance of the target",
        brief="MSE/variance",
        error_decimals=None,
    ),
    Metric("mae", "MAE", "mean absolute error", is_shown=False, error_decimals=None),
    Metric("log_score", "log score", "log score", brief="log score"),
    Metric(
        "coverage_90",
        "in 90 %",
        "share of rows inside 90 % intervals",
        brief="share inside 90 % intervals",
        has_winner=False,
    ),
    _calibration("calibr."),
)


def find_metric(metrics: tuple[Metric, ...], name: str) -> Metric:
    """Return the metric of that name.

    Raises
    ------
    KeyError
        If there is none.
    """
    for metric in metrics:
        if metric.name == name:
            return metric
    raise KeyError(name)
