"""Bayesian linear regression, row by row: what a stream sees of a model that learns like that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.errors import UsageError
from mercer.estimation.base import KernelEstimator
from mercer.estimation.model_file import ModelParts, json_params
from mercer.models import ModelEntry
from mercer.posterior.diagnostics import diagnose
from mercer.posterior.draws import Draws
from mercer.posterior.predictive import NormalMixture

__all__ = ["ENTRY", "LineRegressor"]

ENTRY = ModelEntry(
    name="basis",
    task="regression",
    estimator="LineRegressor",
    home="support.line_model.estimator",
    summary="straight lines, for tests",
)


@dataclass(frozen=True)
class Prequential:
    mean: np.ndarray
    std: np.ndarray
    lower: np.ndarray | None
    upper: np.ndarray | None
    log_density: np.ndarray
    n_centres: np.ndarray
    laws: list[NormalMixture]


class LineRegressor(RegressorMixin, KernelEstimator):
    """Holds the first rows back until scales are known; above 1e100 nothing is taken."""

    def __init__(
        self,
        *,
        scale_rows: int = 200,
        input_scale: Any = None,
        target_scale: Any = None,
        standardize: str | bool = "auto",
        random_state: Any = None,
        progress: bool | str = "auto",
        checkpoint: Any = None,
        max_seconds: float | None = None,
    ) -> None:
        self.scale_rows = scale_rows
        self.input_scale = input_scale
        self.target_scale = target_scale
        self.standardize = standardize
        self.random_state = random_state
        self.progress = progress
        self.checkpoint = checkpoint
        self.max_seconds = max_seconds

    def _check_arguments(self) -> None:
        if self.scale_rows < 1:
            raise UsageError("scale_rows must be a whole number of at least 1")

    def fit(self, X, y) -> LineRegressor:
        return self.partial_fit(X, y)

    def partial_fit(self, X, y) -> LineRegressor:
        X, y = self._checked(X, y)
        if not np.isfinite(y).all():
            raise ValueError(f"row {int(np.argmin(np.isfinite(y)))} has no finite target")
        for x, value in zip(X, y, strict=True):
            self._learn(x, value)
        return self

    def prequential(self, X, y, level=None) -> Prequential:
        X, y = self._checked(X, y)
        parts, laws = [], []
        for x, value in zip(X, y, strict=True):
            law = self.predictive(x[np.newaxis])
            laws.append(law)
            ends = (np.nan, np.nan) if level is None else np.ravel(law.interval(level))
            score = np.nan if np.isnan(value) else law.log_density([value])[0]
            parts.append([law.mean[0], law.std[0], *ends, score, self.n_centres_])
            if not np.isnan(value):
                self._learn(x, value)
        mean, std, lower, upper, score, n_centres = np.array(parts).T
        if level is None:
            return Prequential(mean, std, None, None, score, n_centres, laws)
        return Prequential(mean, std, lower, upper, score, n_centres, laws)

    def predictive(self, X) -> NormalMixture:
        check_is_fitted(self)
        self._replay()
        Phi = self._design(np.asarray(X, dtype=np.float64))
        coef = np.linalg.solve(self.precision_, self.moment_)
        noise = self.noise_std_ / self.scale_[-1]
        spread = np.sum(Phi * np.linalg.solve(self.precision_, Phi.T).T, axis=1)
        scales = noise * np.sqrt(1.0 + spread)[:, np.newaxis] * self.scale_[-1]
        return NormalMixture(
            (Phi @ coef * self.scale_[-1] + self.shift_[-1])[:, np.newaxis], scales
        )

    def predict(self, X, return_std: bool = False):
        law = self.predictive(self._new_rows(X))
        return (law.mean, law.std) if return_std else law.mean

    @property
    def n_centres_(self) -> float:
        return 1.0 + 0.5 * self.n_rows_seen_

    @property
    def noise_std_(self) -> float:
        return float(np.sqrt(self.squares_ / (self.n_rows_seen_ + 2.0)) * self.scale_[-1])

    @property
    def posterior_(self) -> Draws:
        if not hasattr(self, "n_rows_seen_"):
            raise AttributeError("posterior_")
        return Draws({"moment": self.moment_.reshape(1, 1, -1)}, {}, {}, ())

    @property
    def diagnostics_(self) -> Any:
        return diagnose(self.posterior_)

    notes_ = ()

    def _checked(self, X, y):
        X = self._checked_rows(X, dtype=np.float64, reset=not hasattr(self, "n_rows_seen_"))
        if np.abs(X).max() > 1e100:
            raise ValueError(f"row {int(np.argmax(np.abs(X).max(axis=1)))} is too large")
        if not hasattr(self, "n_rows_seen_"):
            self._begin(X.shape[1])
        return X, np.asarray(y, dtype=np.float64)

    def _begin(self, d: int) -> None:
        self.feature_labels_ = self._labels()
        self.precision_, self.moment_ = np.eye(d + 1), np.zeros(d + 1)
        self.squares_, self.n_rows_seen_ = 1.0, 0
        self.held_: list[np.ndarray] = []
        self.shift_, self.scale_ = np.zeros(d + 1), np.ones(d + 1)
        self.is_scaled_ = self.input_scale is not None

    def _learn(self, x, value) -> None:
        self.n_rows_seen_ += 1
        if not self.is_scaled_:
            self.held_.append(np.append(x, value))
            if len(self.held_) == self.scale_rows:
                self._replay()
            return
        phi = self._design(x[np.newaxis])[0]
        value = (value - self.shift_[-1]) / self.scale_[-1]
        error = value - phi @ np.linalg.solve(self.precision_, self.moment_)
        spread = 1.0 + phi @ np.linalg.solve(self.precision_, phi)
        self.squares_ += float(error**2 / spread)
        self.precision_ = self.precision_ + np.outer(phi, phi)
        self.moment_ = self.moment_ + phi * value

    def _replay(self) -> None:
        if self.is_scaled_ or not self.held_:
            return
        rows, self.held_ = np.array(self.held_), []
        self.shift_ = rows.mean(axis=0)
        self.scale_ = np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1.0)
        self.is_scaled_ = True
        self.n_rows_seen_ -= len(rows)
        for row in rows:
            self._learn(row[:-1], row[-1])

    def _design(self, X) -> np.ndarray:
        return np.column_stack([np.ones(len(X)), (X - self.shift_[:-1]) / self.scale_[:-1]])

    def _to_parts(self) -> ModelParts:
        fields = {"n": self.n_rows_seen_, "names": list(self.feature_labels_)}
        fields |= {"squares": self.squares_, "is_scaled": self.is_scaled_}
        arrays = {name: getattr(self, f"{name}_") for name in _ARRAYS}
        arrays["held"] = np.array(self.held_).reshape(len(self.held_), len(self.shift_))
        return ModelParts(json_params(self.get_params()), fields, arrays)

    @classmethod
    def _from_parts(cls, parts: ModelParts) -> LineRegressor:
        model = cls(**parts.params)
        model.feature_labels_ = tuple(parts.fields["names"])
        model.n_features_in_ = len(model.feature_labels_)
        model.n_rows_seen_ = parts.fields["n"]
        model.squares_, model.is_scaled_ = parts.fields["squares"], parts.fields["is_scaled"]
        for name in _ARRAYS:
            setattr(model, f"{name}_", np.array(parts.arrays[name]))
        model.held_ = list(parts.arrays["held"])
        return model


_ARRAYS = ("precision", "moment", "shift", "scale")
