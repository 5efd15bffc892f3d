"""River models that learn and predict rows as dicts; River must be installed."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from river import base

from mercer.errors import DataError, RowsError
from mercer.estimation.run import nearest_hint

__all__ = ["RiverKernelClassifier", "RiverKernelRegressor"]


class _NamedRows:
    """A copy of a model, and the names by which its inputs are found in a row.

    They are those of the first row, unless the model knows names.
    """

    def __init__(self, model: Any) -> None:
        self.learned = copy.deepcopy(model)
        self.names: tuple[Hashable, ...] | None = getattr(model, "feature_labels_", None)
        if hasattr(self.learned, "feature_names_in_"):
            del self.learned.feature_names_in_  # rows come as arrays, in the order of the names

    def row(self, x: Mapping[Any, Any]) -> list[float]:
        """Return a row in the order of the names."""
        if self.names is None:
            self.names = tuple(x)
            self.learned._names_of_columns = tuple(str(name) for name in x)
        missing = [name for name in self.names if name not in x]
        if missing:
            hint = nearest_hint(str(missing[0]), [str(name) for name in x])
            raise DataError(f"the row has no {missing[0]!r}, which earlier ones had{hint}")
        return [float(x[name]) for name in self.names]


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
        self._rows = _NamedRows(model)

    @property
    def learned(self) -> Any:
        """The model that goes on."""
        return self._rows.learned

    def learn_one(self, x: Mapping[Any, Any], y: float) -> None:
        """Learn a row."""
        self.learned.partial_fit([self._rows.row(x)], [float(y)])

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Posterior mean of the target; 0 before the first row."""
        if not self.learned._is_begun:
            return 0.0
        held = self.learned._learner.held_y
        if held:
            return float(np.mean(held))
        return float(self.learned.predict([self._rows.row(x)])[0])


class RiverKernelClassifier(base.Classifier):  # type: ignore[misc]
    """Sequential Bayesian kernel classification for River.

    Inputs are matched by name, as in `RiverKernelRegressor`. The model must know its classes before
    it learns: where they are not given, the first ``scale_rows`` rows are held back, and the
    classes are those seen in them. Until then the shares of the classes so far are predicted. A
    class that appears later is refused.

    Parameters
    ----------
    model : SequentialKernelClassifier
        Learned or not. It stays as it is.
    classes : sequence, optional
        All classes that may come.
    """

    def __init__(self, model: Any, classes: Sequence[Any] | None = None) -> None:
        self.model = model
        self.classes = classes
        self._rows = _NamedRows(model)
        self._held: list[tuple[list[float], Any]] = []

    @property
    def learned(self) -> Any:
        """The model that goes on."""
        return self._rows.learned

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Learn a row."""
        row = self._rows.row(x)
        if self.classes is not None or hasattr(self.learned, "classes_"):
            known = None if self.learned._is_begun else self.classes
            self.learned.partial_fit([row], [y], classes=known)
            return
        labels = list(dict.fromkeys([*(label for _, label in self._held), y]))
        self.learned._check_row(row, y)
        if len({isinstance(label, str) for label in labels}) > 1:
            raise DataError(f"label {y!r}: some labels are text, others are none")
        self._held.append((row, y))
        if len(self._held) < self.learned.scale_rows or len(labels) < 2:
            return
        rows, values = zip(*self._held, strict=True)
        try:
            self.learned.partial_fit(list(rows), list(values), classes=labels)
        except RowsError as error:  # of one that is too large, which must go
            del self._held[error.rows[0]]
            raise
        self._held = []

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Probability of each class; as long as rows are held, the shares of those seen."""
        labels = [label for _, label in self._held]
        if hasattr(self.learned, "classes_"):  # the model may hold rows back, too
            labels = self.learned.classes_[self.learned._learner.held_y].tolist()
        if labels or not hasattr(self.learned, "classes_"):
            return {label: labels.count(label) / len(labels) for label in dict.fromkeys(labels)}
        proba = self.learned.predict_proba([self._rows.row(x)])[0].tolist()
        return dict(zip(self.learned.classes_.tolist(), proba, strict=True))
