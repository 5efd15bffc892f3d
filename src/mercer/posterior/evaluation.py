"""What held-out rows said of a fitted model, and where the fit came from; model files keep it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.held_out import HeldTargets
from mercer.posterior.metrics import CLASSIFICATION_METRICS, REGRESSION_METRICS, Metric
from mercer.posterior.regression_scores import RegressionScores
from mercer.posterior.scores import Scores

__all__ = [
    "AnyEvaluation",
    "Evaluation",
    "ModelScore",
    "Provenance",
    "RegressionEvaluation",
    "RegressionModelScore",
]


@dataclass(frozen=True)
class ModelScore:
    """The held-out scores of one model or baseline on the rows of an `Evaluation`.

    Attributes
    ----------
    name : str
    is_baseline : bool
    scores : Scores
    seconds : float
    gap_error, log_score_gap_error : float or None
        Standard error of the difference between its error rate (its log score) and the model's,
        over paired rows; None for the model itself, of a single row, and in files that do not
        hold it.
    """

    name: str
    is_baseline: bool
    scores: Scores
    seconds: float
    gap_error: float | None = None
    log_score_gap_error: float | None = None


@dataclass(frozen=True)
class Evaluation:
    """Held-out class probabilities of the model, with the scores of the baselines beside it.

    Attributes
    ----------
    how : str
        In words: "10-fold cross-validation", "25 % of the rows held out", "test file x.csv".
    classes : tuple of str
        Class labels, in the order of the columns of ``proba``.
    y_index : ndarray of shape (n,)
        Index of the observed class of each held-out row.
    proba : ndarray of shape (n, C)
        Held-out class probabilities of the model.
    entries : tuple of ModelScore
        The model itself first, then the baselines, on the same rows and folds.
    """

    how: str
    classes: tuple[str, ...]
    y_index: NDArray[np.int64]
    proba: NDArray[np.float64]
    entries: tuple[ModelScore, ...]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The scores of the entries."""
        return CLASSIFICATION_METRICS


@dataclass(frozen=True)
class RegressionModelScore:
    """The held-out scores of one model or baseline on the rows of a `RegressionEvaluation`.

    Attributes
    ----------
    name : str
    is_baseline : bool
    scores : RegressionScores
    seconds : float
    gap_error, log_score_gap_error : float or None
        Standard error of the difference between its mean squared error (its log score) and the
        model's, over paired rows; None as in `ModelScore`.
    """

    name: str
    is_baseline: bool
    scores: RegressionScores
    seconds: float
    gap_error: float | None
    log_score_gap_error: float | None = None


@dataclass(frozen=True)
class RegressionEvaluation:
    """Held-out predictive laws of the model, with the scores of the baselines beside it.

    Attributes
    ----------
    how : str
        As in `Evaluation`.
    rows : HeldTargets
        Held-out rows, as the model predicts them.
    entries : tuple of RegressionModelScore
        The model itself first, then the baselines, on the same rows and folds.
    """

    how: str
    rows: HeldTargets
    entries: tuple[RegressionModelScore, ...]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The scores of the entries."""
        return REGRESSION_METRICS


AnyEvaluation: TypeAlias = Evaluation | RegressionEvaluation


@dataclass(frozen=True)
class Provenance:
    """What was fitted on what, and how to do it again."""

    source: str  # file or data set, as the user named it
    target: str
    n_rows: int
    n_inputs: int
    input_names: tuple[str, ...]
    notes: tuple[str, ...]  # encodings, standardisation, rows left out: one line each
    command: str  # how to reproduce, as typed
    seed: int
    seconds: float  # of the final fit
    created: str  # ISO date
    versions: tuple[tuple[str, str], ...]  # package, version
