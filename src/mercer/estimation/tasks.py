"""The two tasks: how rows are split, what a model says of held-out rows, and how that is judged."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.evaluation import (
    AnyEvaluation,
    Evaluation,
    HeldClasses,
    HeldOut,
    HeldTargets,
    ModelScore,
    RegressionEvaluation,
    RegressionModelScore,
    clustered_error,
    hold,
    joined,
    paired_gap,
    rows_worth,
)
from mercer.posterior.regression_scores import RegressionScores
from mercer.posterior.scores import CLASSIFICATION_METRICS, REGRESSION_METRICS, Metric, Scores

#: Rows that a regressor predicts at a time: it holds a number for each of them and each draw.
BLOCK: Final = 1000

Array = NDArray[np.float64]


class Answered(Protocol):
    """One model's held-out rows, fold by fold; the rows of a fold are the same for all models."""

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def is_baseline(self) -> bool: ...  # noqa: D102

    @property
    def parts(self) -> tuple[HeldOut, ...]: ...  # noqa: D102

    @property
    def seconds(self) -> float: ...  # noqa: D102

    @property
    def groups(self) -> NDArray[np.int64] | None: ...  # noqa: D102


class Task(ABC):
    """What differs between classification and regression where models are scored."""

    name: ClassVar[Literal["classification", "regression"]]
    metrics: ClassVar[tuple[Metric, ...]]  # the scores, in the order of tables
    default_metric: ClassVar[str]  # the name of the one that `compare` sorts by
    is_stratified: ClassVar[bool]  # splits keep the shares of the classes
    noun: ClassVar[str]  # what one target is: a class, a value

    @abstractmethod
    def encode(self, values: NDArray[Any]) -> tuple[tuple[Any, ...], NDArray[Any]]:
        """Return the classes, sorted, and what folds learn: positions among them, or numbers."""

    @abstractmethod
    def known(
        self, values: NDArray[Any], classes: Sequence[Any]
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return which targets can be scored, positions ascending, and these as `encode` does."""

    @abstractmethod
    def n_smallest(self, y: NDArray[Any]) -> int:
        """Return the number of rows of the smallest class; of numbers, of all."""

    @abstractmethod
    def variance(self, y: NDArray[Any]) -> float:
        """Return the variance of training targets, by which errors are standardised; or nan."""

    @abstractmethod
    def answer(self, model: Any, X: Array, y: NDArray[Any], variance: float) -> HeldOut:
        """Return what a fitted model says of rows X (m, d) whose target is known.

        ``y`` (m,) is as `encode` returns it, ``variance`` that of the targets that the model was
        trained on.
        """

    @abstractmethod
    def score(self, parts: Sequence[HeldOut]) -> Scores | RegressionScores:
        """Score the rows of one or several folds together."""

    @abstractmethod
    def evaluate(
        self, how: str, classes: tuple[Any, ...], answered: Sequence[Answered]
    ) -> AnyEvaluation:
        """Put together what model files and reports keep; the model itself comes first."""


class _Classification(Task):
    name = "classification"
    metrics = CLASSIFICATION_METRICS
    default_metric = "log_score"
    is_stratified = True
    noun = "class"

    def encode(self, values: NDArray[Any]) -> tuple[tuple[Any, ...], NDArray[Any]]:
        classes, index = np.unique(values, return_inverse=True)
        return tuple(classes.tolist()), index.reshape(-1).astype(np.int64)

    def known(
        self, values: NDArray[Any], classes: Sequence[Any]
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        position = {label: index for index, label in enumerate(classes)}
        found = [position.get(label, -1) for label in values.tolist()]
        index = np.array(found, dtype=np.int64)
        kept = np.flatnonzero(index >= 0)
        return kept, index[kept]

    def n_smallest(self, y: NDArray[Any]) -> int:
        return int(np.bincount(y).min())

    def variance(self, y: NDArray[Any]) -> float:
        return math.nan

    def answer(self, model: Any, X: Array, y: NDArray[Any], variance: float) -> HeldClasses:
        return HeldClasses(y, np.asarray(model.predict_proba(X), dtype=np.float64))

    def score(self, parts: Sequence[HeldOut]) -> Scores:
        return _classes(parts).scores()

    def evaluate(
        self, how: str, classes: tuple[Any, ...], answered: Sequence[Answered]
    ) -> Evaluation:
        rows = _classes(answered[0].parts)
        entries = tuple(
            ModelScore(
                each.name,
                each.is_baseline,
                self.score(each.parts),
                each.seconds,
                *_errors(
                    _classes(each.parts),
                    rows,
                    "error_rate",
                    each.groups,
                    is_model=each is answered[0],
                ),
            )
            for each in answered
        )
        names = tuple(str(label) for label in classes)
        return Evaluation(how, names, rows.y_index, rows.proba, entries)


class _Regression(Task):
    name = "regression"
    metrics = REGRESSION_METRICS
    default_metric = "rmse"
    is_stratified = False
    noun = "value"

    def encode(self, values: NDArray[Any]) -> tuple[tuple[Any, ...], NDArray[Any]]:
        return (), np.asarray(values, dtype=np.float64)

    def known(
        self, values: NDArray[Any], classes: Sequence[Any]
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        return np.arange(len(values)), np.asarray(values, dtype=np.float64)

    def n_smallest(self, y: NDArray[Any]) -> int:
        return len(y)

    def variance(self, y: NDArray[Any]) -> float:
        return float(y.var())

    def answer(self, model: Any, X: Array, y: NDArray[Any], variance: float) -> HeldTargets:
        blocks = [slice(begin, begin + BLOCK) for begin in range(0, len(X), BLOCK)]
        return joined([hold(model.predictive(X[rows]), y[rows], variance) for rows in blocks])

    def score(self, parts: Sequence[HeldOut]) -> RegressionScores:
        return _targets(parts).scores()

    def evaluate(
        self, how: str, classes: tuple[Any, ...], answered: Sequence[Answered]
    ) -> RegressionEvaluation:
        rows = _targets(answered[0].parts)
        entries = tuple(
            RegressionModelScore(
                each.name,
                each.is_baseline,
                self.score(each.parts),
                each.seconds,
                *_errors(
                    _targets(each.parts), rows, "mse", each.groups, is_model=each is answered[0]
                ),
            )
            for each in answered
        )
        return RegressionEvaluation(how, rows, entries)


def _classes(parts: Sequence[HeldOut]) -> HeldClasses:
    return joined([part for part in parts if isinstance(part, HeldClasses)])


def _targets(parts: Sequence[HeldOut]) -> HeldTargets:
    return joined([part for part in parts if isinstance(part, HeldTargets)])


def _errors(
    other: HeldOut,
    model: HeldOut,
    metric: str,
    groups: NDArray[np.int64] | None,
    *,
    is_model: bool,
) -> tuple[float | None, float | None, int | None, float | None, float | None]:
    """Return standard errors of the differences from the model in ``metric`` and in log score.

    Where rows come in groups, how many there are follows, the standard error of ``metric``
    itself, and how many independent rows they are worth.
    """
    n_groups = own = n_worth = None
    if groups is not None:
        n_groups, n_worth = len(np.unique(groups)), rows_worth(other.residuals, groups)
        if n_groups != 1:
            own = clustered_error(other.losses[metric], groups)
    if is_model:
        return None, None, n_groups, own, n_worth
    gaps = (paired_gap(other, model, name, groups) for name in (metric, "log_score"))
    first, second = (None if gap is None else gap[1] for gap in gaps)
    return first, second, n_groups, own, n_worth


CLASSIFICATION: Final[Task] = _Classification()
REGRESSION: Final[Task] = _Regression()
#: By name.
TASKS: Final[dict[str, Task]] = {task.name: task for task in (CLASSIFICATION, REGRESSION)}


def task_of(estimator: Any) -> Task:
    """Return the task that a model of mercer or a baseline is for."""
    return REGRESSION if hasattr(estimator, "predictive") else CLASSIFICATION
