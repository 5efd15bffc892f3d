"""What the estimators that learn row by row share, whatever their targets."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.basis.arrays import Array
from mercer.basis.row_learner import RowLearner, Running
from mercer.basis.rows import name_not_finite
from mercer.errors import DataError, MercerWarning
from mercer.estimation.base import KernelEstimator

__all__ = ["RIVER_MISSING", "StreamEstimator"]

RIVER_MISSING = "River is missing; install it with: pip install 'mercer[river]'"


class StreamEstimator(KernelEstimator, Generic[Running]):
    """Base of both estimators: a learner, and the scores of the last call that learned."""

    _learner: RowLearner[Running, Any]
    _last_densities: list[float]

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_begun

    @property
    def log_predictive_(self) -> Array:
        """Log predictive density of each row of the last call that learned, in nats.

        Of a class: its log probability.
        """
        self._ready()
        return np.array(self._last_densities)

    @property
    def mean_log_predictive_(self) -> float:
        """Mean of these over all rows learned, in nats: the prequential score."""
        self._ready()
        return self._learner.sum_log_density / max(self._learner.n_scored, 1)

    @property
    def n_rows_seen_(self) -> int:
        """Rows learned or held back."""
        check_is_fitted(self)
        return self._learner.n_seen

    @property
    def _is_begun(self) -> bool:
        return hasattr(self, "_learner")

    def _ready(self) -> Running:
        """Return what runs once the scales are fixed: rows held back are learned now."""
        check_is_fitted(self)
        return self._learner.release(self._keep_density)

    def _keep_density(self, seen: Any) -> None:
        """Note the score of a row that is being learned."""
        running = self._learner.running
        assert running is not None
        self._last_densities.append(running.score(seen))

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Score anew; what fails inside leaves everything as it was."""
        is_new = not self._is_begun
        densities, self._last_densities = getattr(self, "_last_densities", []), []
        try:
            yield
        except Exception:
            self._last_densities = densities
            if is_new:
                self._forget()
            raise

    def _put(self, learner: Any, notes: tuple[str, ...]) -> None:
        self._learner = learner
        self._params_when_begun = self.get_params(deep=False)
        self._last_densities = []
        self.feature_labels_ = learner.names
        self.notes_ = notes

    def _forget(self) -> None:
        super()._forget()
        if self._is_begun:
            del self._learner

    def _checked(
        self, X: Any, y: Any, *, is_first: bool, is_numeric: bool, n_least: int = 1
    ) -> tuple[Array, NDArray[Any]]:
        """Return rows and targets as arrays; what is not finite is named by its row."""
        try:
            checked, targets = validate_data(
                self, X, y, dtype=np.float64, order="C", y_numeric=is_numeric, reset=is_first,
                ensure_min_samples=n_least,
            )  # fmt: skip
        except ValueError as error:
            is_not_finite = any(word in str(error) for word in ("NaN", "infinity"))
            where = name_not_finite(X, y) if is_not_finite else None
            if where is None:
                raise
            raise DataError(where) from error
        return np.asarray(checked), np.asarray(targets)

    def _warn_of_leaving(self, X: Array, y: NDArray[Any]) -> None:
        """Warn, once each, of columns that have left the scales learned from the first rows."""
        new = self._learner.leaving(X, y)
        if new:
            warnings.warn(
                f"{', '.join(new)}: more than ten scales from where the stream began; the scales "
                "stay as they are",
                MercerWarning,
                stacklevel=3,
            )
