"""A River regressor that learns and predicts rows as dicts; River must be installed."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from river import base

from mercer.errors import DataError
from mercer.estimation.options import nearest_hint

__all__ = ["RiverKernelRegressor"]


class RiverKernelRegressor(base.Regressor):  # type: ignore[misc]
    """Sequential Bayesian kernel regression for River.

    Inputs are matched by name: those of the first row, unless the model knows names. Further ones
    are ignored; a row without one of them is refused. As long as the model holds rows back to learn
    its scales, the mean of their targets is predicted.

    Parameters
    ----------
    model : SequentialKernelRegressor
        Learned or not. It stays as it is: the wrapper goes on with a copy, and so do its clones.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.learned = copy.deepcopy(model)
        self._names: tuple[Hashable, ...] | None = getattr(model, "feature_labels_", None)
        if hasattr(self.learned, "feature_names_in_"):
            del self.learned.feature_names_in_  # rows come as arrays, in the order of the names

    def learn_one(self, x: Mapping[Any, Any], y: float) -> None:
        """Learn a row."""
        if self._names is None:
            self._names = tuple(x)
            self.learned._names_of_columns = tuple(str(name) for name in x)
        self.learned.partial_fit(self._row(x, self._names), [float(y)])

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Posterior mean of the target; 0 before the first row."""
        if self._names is None:
            return 0.0
        held = self.learned._learner.held_y
        if held:
            return float(np.mean(held))
        return float(self.learned.predict(self._row(x, self._names))[0])

    def _row(self, x: Mapping[Any, Any], names: tuple[Hashable, ...]) -> Any:
        missing = [name for name in names if name not in x]
        if missing:
            hint = nearest_hint(str(missing[0]), [str(name) for name in x])
            raise DataError(f"the row has no {missing[0]!r}, which earlier ones had{hint}")
        return np.array([[float(x[name]) for name in names]])
