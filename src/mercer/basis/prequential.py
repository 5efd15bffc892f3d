"""Rows predicted, then learned, one after the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.basis.answers import Prequential
from mercer.basis.arrays import Array
from mercer.basis.bank import Outlook
from mercer.basis.learner import in_units
from mercer.basis.rows import known_runs
from mercer.errors import DataError
from mercer.posterior.predictive import check_level

__all__ = ["predict_then_learn"]


def predict_then_learn(model: Any, X: Any, y: Any, level: float | None) -> Prequential:
    """See `mercer.SequentialKernelRegressor.prequential`."""
    if level is not None:
        check_level(level)
    targets = np.asarray(y, dtype=np.float64)
    if targets.ndim != 1:
        raise DataError("y must be numbers of shape (m,), NaN where there is no target")
    is_known = ~np.isnan(targets)
    X, _ = model._numbers(X, np.where(is_known, targets, 0.0), is_first=not model._is_begun)
    with model._begun():
        learner, said = model._learner, _Said(model, level)
        learner.check_size(targets[is_known])
        for chunk in known_runs(is_known):
            if is_known[chunk.start]:
                learner.learn(X[chunk], targets[chunk], said.see)
            else:
                learner.release(said.see)
                said.predict(X[chunk])
        learner.release(said.see)
    model._warn_of_leaving(X[is_known], targets[is_known])
    return said.result(len(targets))


class _Said:
    """Collects what was said of each row."""

    def __init__(self, model: Any, level: float | None) -> None:
        self._model, self._level = model, level
        self._columns: list[list[float]] = [[] for _ in range(6)]

    def see(self, outlook: Outlook) -> None:
        """Take in a row that was learned."""
        self._model._keep_density(outlook)
        target = self._model._ready().scales.target
        mean, std = outlook.moments
        ends = None if self._level is None else in_units(outlook.law, target).interval(self._level)
        moments = mean * target.scale + target.centre, std * target.scale
        self._add(moments, ends, self._model._last_densities[-1], outlook.n_centres)

    def predict(self, X: Array) -> None:
        """Take in rows without a target."""
        running, n_centres = self._model._ready(), self._model.n_centres_
        for z in running.standardise(X):
            law = running.law(z[np.newaxis])
            ends = None if self._level is None else law.interval(self._level)
            self._add((law.mean[0], law.std[0]), ends, math.nan, n_centres)

    def result(self, n: int) -> Prequential:
        """Return the last n rows: those before them had been held back."""
        columns = [np.array(column[-n:]) if n else np.empty(0) for column in self._columns]
        mean, std, lower, upper, log_density, n_centres = columns
        if self._level is None:
            return Prequential(mean, std, None, None, log_density, n_centres)
        return Prequential(mean, std, lower, upper, log_density, n_centres)

    def _add(
        self,
        moments: tuple[float, float],
        ends: tuple[Array, Array] | None,
        log_density: float,
        n_centres: float,
    ) -> None:
        lower, upper = (0.0, 0.0) if ends is None else (ends[0][0], ends[1][0])
        values = (*moments, lower, upper, log_density, n_centres)
        for column, value in zip(self._columns, values, strict=True):
            column.append(float(value))
