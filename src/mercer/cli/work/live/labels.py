"""What a model that learns row by row says of a row, as fields of an answer: classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.work.live.answering import Fields, Said
from mercer.cli.work.live.cells import BOOLEANS, read_number
from mercer.cli.work.live.rows import listed
from mercer.data.wording import quoted

__all__ = ["Labels"]

Array = NDArray[np.float64]


class Labels:
    """The most probable class, and the probability of each.

    Parameters
    ----------
    model : classifier
        With ``partial_fit``, ``prequential`` and ``predict_proba``.
    classes : ndarray of shape (C,)
        Sorted: text, booleans or whole numbers.
    """

    def __init__(self, model: Any, classes: NDArray[Any]) -> None:
        self.model = model
        self._classes = classes
        self._values = classes.tolist()
        self._place = {value: k for k, value in enumerate(self._values)}
        self._names = [str(v).lower() if isinstance(v, bool) else str(v) for v in self._values]

    @property
    def unknown(self) -> Fields:
        """No class at all."""
        return {"prediction": None, "proba": None}

    def target(self, cell: str, *, has_decimal_comma: bool) -> Any:
        """Read a class; a ValueError says why it is none."""
        label: Any = cell.strip()
        kind = self._classes.dtype.kind
        if kind == "b":
            label = BOOLEANS.get(label.lower())
        elif kind in "iuf":
            label = read_number(cell, has_decimal_comma=has_decimal_comma)
        if label not in self._place:
            raise ValueError(
                f"{quoted(cell.strip())} is none of the classes that the model was begun with: "
                f"{listed(self._names)}"
            )
        return self._values[self._place[label]]

    def shown(self, target: Any) -> Any:
        """Return a target as JSON has it."""
        return target

    def ahead(self, X: Array, y: Sequence[Any]) -> list[Said]:
        """Predict each row, then learn it where its class is there, one after the other."""
        targets = np.empty(len(y), dtype=object)
        targets[:] = y
        rows = self.model.prequential(X, targets, classes=self._classes)
        said = []
        for k, value in enumerate(y):
            fields = self._fields(rows.proba[k])
            fields["n_centres"] = float(rows.n_centres[k])
            if value is None:
                said.append(Said(fields))
            else:
                is_right = bool(fields["prediction"] == value)
                said.append(Said(fields, float(rows.log_density[k]), is_right=is_right))
        return said

    def learn(self, X: Array, y: Sequence[Any]) -> None:
        """Learn rows, one after the other."""
        self.model.partial_fit(X, np.array(y, dtype=self._classes.dtype), classes=self._classes)

    def settle(self, n_features: int) -> None:
        """Ask for a prediction: rows that the model holds back are learned before."""
        self.model.predict_proba(np.zeros((1, n_features)))

    def _fields(self, proba: Array) -> Fields:
        return {
            "prediction": self._values[int(np.argmax(proba))],
            "proba": dict(zip(self._names, proba.tolist(), strict=True)),
        }
