"""The two tasks: how rows are split, what a model says of held-out rows, and how that is judged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from mercer.errors import DataError, DataWarning, UsageError, rows_without_names, warn_user
from mercer.posterior.evaluation import (
    AnyEvaluation,
    Evaluation,
    HeldClasses,
    HeldOut,
    HeldTargets,
    ModelScore,
    RegressionEvaluation,
    clustered_error,
    hold,
    joined,
    paired_gap,
    rows_worth,
)
from mercer.posterior.scores import CLASSIFICATION_METRICS, REGRESSION_METRICS, Metric

if TYPE_CHECKING:
    from mercer.data.source import RowSource

#: Rows that a regressor predicts at a time: it holds a number for each of them and each draw.
BLOCK: Final = 1000
_BLOCK_ROWS = 16384  # of a target that is read

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


@dataclass(frozen=True)
class Task:
    """What differs between classification and regression where models are scored."""

    name: Literal["classification", "regression"]
    metrics: tuple[Metric, ...]  # the scores, in the order of tables
    default_metric: str  # the name of the one that `compare` sorts by
    noun: str  # what one target is: a class, a value
    is_stratified: bool  # targets are classes, whose shares splits keep

    def encode(self, values: NDArray[Any]) -> tuple[tuple[Any, ...], NDArray[Any]]:
        """Return the classes, sorted, and what folds learn: positions among them, or numbers."""
        if not self.is_stratified:
            return (), np.asarray(values, dtype=np.float64)
        classes, index = np.unique(values, return_inverse=True)
        return tuple(classes.tolist()), index.reshape(-1).astype(np.int64)

    def known(
        self, values: NDArray[Any], classes: Sequence[Any]
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return which targets can be scored, positions ascending, and these as `encode` does."""
        if not self.is_stratified:
            return np.arange(len(values)), np.asarray(values, dtype=np.float64)
        position = {label: index for index, label in enumerate(classes)}
        found = [position.get(label, -1) for label in values.tolist()]
        index = np.array(found, dtype=np.int64)
        kept = np.flatnonzero(index >= 0)
        return kept, index[kept]

    def n_smallest(self, y: NDArray[Any]) -> int:
        """Return the number of rows of the smallest class; of numbers, of all."""
        return int(np.bincount(y).min()) if self.is_stratified else len(y)

    def variance(self, y: NDArray[Any]) -> Any:
        """Return the variance of training targets, a list of several; nan of classes.

        Errors are standardised by it.
        """
        return math.nan if self.is_stratified else y.var(axis=0).tolist()

    def answer(self, model: Any, X: Array, y: NDArray[Any], variance: Any) -> HeldOut:
        """Return what a fitted model says of rows X (m, d) whose target is known.

        ``y`` (m,) is as `encode` returns it, ``variance`` that of the targets that the model was
        trained on.
        """
        if self.is_stratified:
            return HeldClasses(y, np.asarray(model.predict_proba(X), dtype=np.float64))
        blocks = [slice(begin, begin + BLOCK) for begin in range(0, len(X), BLOCK)]
        return joined([hold(model.predictive(X[rows]), y[rows], variance) for rows in blocks])

    def evaluate(
        self, how: str, classes: tuple[Any, ...], answered: Sequence[Answered]
    ) -> AnyEvaluation:
        """Put together what model files and reports keep; the model itself comes first."""
        rows = joined(answered[0].parts)
        kind = Evaluation if isinstance(rows, HeldClasses) else RegressionEvaluation
        entries: list[ModelScore[Any]] = []
        for each in answered:
            own = joined(each.parts)
            errors = _errors(own, rows, kind.main_error, each.groups, is_model=each is answered[0])
            entries.append(
                ModelScore(each.name, each.is_baseline, own.scores(), each.seconds, *errors)
            )
        if isinstance(rows, HeldTargets):
            return RegressionEvaluation(how, rows, tuple(entries))
        names = tuple(str(label) for label in classes)
        return Evaluation(how, names, rows.y_index, rows.proba, tuple(entries))


def _errors(
    other: HeldOut, model: HeldOut, metric: str, groups: NDArray[np.int64] | None, *, is_model: bool
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


CLASSIFICATION: Final = Task(
    "classification", CLASSIFICATION_METRICS, "log_score", "class", is_stratified=True
)
REGRESSION: Final = Task("regression", REGRESSION_METRICS, "rmse", "value", is_stratified=False)
#: By name.
TASKS: Final[dict[str, Task]] = {task.name: task for task in (CLASSIFICATION, REGRESSION)}


def known_rows(
    estimator: Any, X: Any, y: Any
) -> tuple[Array, NDArray[Any], tuple[Any, ...], NDArray[np.int64]]:
    """Return rows as a fitted estimator takes them, their targets, its classes, and positions in X.

    Rows with a label that was not in training, or a number that is missing, are left out, which is
    warned of; targets are as `Task.encode` has them.
    A `UsageError` where no target is known, or there is not one target for each row.
    """
    task = task_of(estimator)
    with rows_without_names():
        rows = estimator._new_rows(X) if hasattr(estimator, "_new_rows") else X
    classes = tuple(estimator.classes_.tolist()) if task.is_stratified else ()
    positions, known = task.known(np.asarray(y), classes)
    if not task.is_stratified:
        positions = np.flatnonzero(np.isfinite(known))
        known = known[positions]
    if len(rows) != len(np.asarray(y)) or not len(positions):
        raise UsageError("y needs one target for each row of X, and one that is known")
    if len(positions) < len(rows):
        n = len(rows) - len(positions)
        words = "labels that were not in training" if classes else "missing targets"
        warn_user(f"{words}: {n} of {len(rows)} rows are left out", DataWarning)
        rows = np.asarray(rows)[positions]
    return rows, known, classes, positions


def is_fitted_estimator(given: Any) -> bool:
    """Whether this is an estimator, of scikit-learn's kind; a `NotFittedError` if not fitted."""
    if not isinstance(given, BaseEstimator):
        return False
    check_is_fitted(given)
    return True


def has_task(estimator: Any, task: Task) -> bool:
    """Whether any estimator predicts probabilities of classes, or laws of numbers."""
    return is_classifier(estimator) if task is CLASSIFICATION else hasattr(estimator, "predictive")


def task_of(estimator: Any) -> Task:
    """Return the task that a model of mercer or a baseline is for; one output has a task."""
    if getattr(estimator, "n_outputs_", 1) > 1:
        raise UsageError(
            f"a model of {estimator.n_outputs_} outputs answers this of one of them: "
            f"model.output({estimator.output_names_[0]!r})"
        )
    return REGRESSION if hasattr(estimator, "predictive") else CLASSIFICATION


ORDER_TAKEN = "classes from the lowest to the highest"


def ordered_categories(y: Any) -> list[Any] | None:
    """Labels of an ordered pandas Categorical, or of a frame's one column; None of all else."""
    found = getattr(y, "dtypes", getattr(y, "dtype", None))
    dtype: Any = next(iter(found), None) if isinstance(found, Iterable) else found
    return list(dtype.categories) if getattr(dtype, "ordered", False) else None


def classes_of(model: Any, values: NDArray[np.float64]) -> NDArray[Any]:
    """Labels of rows that are not in memory: those that are known to the model, or whole numbers.

    A `DataError` if there is one class only.
    """
    if len(values) < 2:
        raise DataError(f"the target holds one class only: {values[0]:g}; two are needed")
    if hasattr(model, "classes_"):
        return np.asarray(model.classes_)
    whole = values.astype(np.int64)
    return whole if np.array_equal(whole, values) else values


def classes_of_rows(model: Any, rows: RowSource) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Labels of rows on a disk, the target last, and each row's position among them: one pass.

    A `DataError` if there is one class only, or a number that is not whole.
    """
    targets = np.concatenate(rows.each(_targets, _BLOCK_ROWS))
    values, labels = np.unique(targets, return_inverse=True)
    refuse_fractions(values, rows)
    return classes_of(model, values), labels.astype(np.int64)


def _targets(_first: int, blocks: Iterator[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.concatenate([block[:, -1] for block in blocks])


def refuse_fractions(values: Iterable[float], rows: RowSource) -> None:
    """Raise a `DataError` for the first value of a target on a disk that is no class."""
    if part := next((value for value in values if not float(value).is_integer()), None):
        where = f"{rows.name}: target {rows.names[-1]!r}"
        raise DataError(f"{where}: {part:g} is not a whole number, so no class")
