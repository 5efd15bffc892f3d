"""From the argument ``noise_rate`` to what errors cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import UsageError
from mercer.likelihoods.label_noise import (
    Confusion,
    LabelNoise,
    class_rates,
    confusion_of_rates,
    fixed_rate,
    learned_class_rates,
    learned_confusion,
    learned_rate,
    row_rates,
)

__all__ = ["LEARN", "LEARN_PER_CLASS", "NoiseArgument", "check_noise"]

LEARN, LEARN_PER_CLASS = "learn", "learn per class"

# Candidates are compared at this rate where labels are certain: a run may see no classifier
# without any error.
_ALMOST_CERTAIN = 1e-4


@dataclass(frozen=True)
class NoiseArgument:
    """The argument with its prior, checked; what it means follows once the labels are known."""

    rate: Any
    prior: tuple[float, float]

    @property
    def is_learned(self) -> bool:
        """Whether rates are learned."""
        return isinstance(self.rate, str)

    def costs(self, labels: NDArray[np.int64], classes: NDArray[Any]) -> LabelNoise | Confusion:
        """Costs of errors for labels 0..C-1.

        Raises
        ------
        UsageError
            If rates do not fit the classes or rows, or are out of their range.
        """
        n, n_classes = len(labels), len(classes)
        limit = (n_classes - 1) / n_classes
        if isinstance(self.rate, str):
            if self.rate == LEARN:
                return learned_rate(self.prior, n, n_classes)
            return self._by_class(labels, n_classes)
        if isinstance(self.rate, Mapping):
            rates = _rates_by_class(self.rate, classes, limit)
            if n_classes == 2:
                return class_rates(rates, labels)
            return Confusion(labels, confusion_of_rates(rates))
        rates = np.asarray(self.rate, dtype=np.float64)
        if rates.ndim == 2 and rates.shape[0] == rates.shape[1]:
            _check_matrix(rates, n_classes)
            if n_classes == 2:
                return class_rates(1.0 - rates.diagonal(), labels)
            return Confusion(labels, rates)
        _check_range(rates, limit)
        if rates.ndim == 0:
            return fixed_rate(float(rates), n, n_classes)
        if rates.shape != (n,):
            raise UsageError(
                f"noise_rate as an array needs one rate for each of the {n} rows; "
                f"got shape {rates.shape}"
            )
        return row_rates(rates, n_classes)

    def _by_class(self, labels: NDArray[np.int64], n_classes: int) -> LabelNoise | Confusion:
        """Costs with rates of each class, learned."""
        if n_classes == 2:
            return learned_class_rates(self.prior, labels)
        return learned_confusion(self.prior, labels, n_classes)

    def for_comparison(self) -> Callable[[int], LabelNoise]:
        """Costs that models of two classes are compared under: one rate, known or learned."""
        if not isinstance(self.rate, str | Mapping) and np.ndim(self.rate) == 0:
            rate = max(float(self.rate), _ALMOST_CERTAIN)
            return lambda n: fixed_rate(min(rate, 0.5), n)
        return lambda n: learned_rate(self.prior, n)


def check_noise(rate: Any, prior: Any) -> NoiseArgument:
    """Check what can be checked before the labels are known.

    Raises
    ------
    UsageError
        Naming the argument and its range.
    """
    try:
        a, b = (float(value) for value in prior)
    except (TypeError, ValueError):
        a = b = -1.0
    if not (0.0 < a < np.inf and 0.0 < b < np.inf):
        raise UsageError(f"noise_prior must be two numbers above 0, (a, b); got {prior!r}")
    if isinstance(rate, str):
        if rate not in (LEARN, LEARN_PER_CLASS):
            raise UsageError(
                f"noise_rate must be a number in [0, 0.5], {LEARN!r}, {LEARN_PER_CLASS!r}, a "
                f"dict of class and rate, one rate a row, or a matrix of classes; got {rate!r}"
            )
        return NoiseArgument(rate, (a, b))
    if not isinstance(rate, Mapping):
        try:
            values = np.asarray(rate, dtype=np.float64)
        except (TypeError, ValueError):
            raise UsageError(f"noise_rate must be a number in [0, 0.5]; got {rate!r}") from None
        _check_range(values, 1.0)
    return NoiseArgument(rate, (a, b))


def _check_range(rates: NDArray[np.float64], limit: float) -> None:
    is_right = (rates >= 0.0) & (rates <= limit)  # False for NaN
    if not is_right.all():
        wrong = rates[~is_right].ravel()[0] if rates.ndim else float(rates)
        shown = 0.5 if limit in (0.5, 1.0) else round(limit, 4)
        raise UsageError(f"noise_rate must be in [0, {shown}]; got {wrong}")


def _check_matrix(matrix: NDArray[np.float64], n_classes: int) -> None:
    """P(recorded y | class c): rows that sum to one, the diagonal largest."""
    if matrix.shape != (n_classes, n_classes):
        raise UsageError(
            f"noise_rate as a matrix needs a row and a column for each of the {n_classes} classes; "
            f"got shape {matrix.shape}"
        )
    is_law = (matrix >= 0.0).all() and np.allclose(matrix.sum(axis=1), 1.0, rtol=0.0, atol=1e-9)
    if not is_law or (matrix.diagonal() < matrix.max(axis=1)).any():
        raise UsageError(
            "noise_rate as a matrix has P(recorded as the column's class | class of the row): rows "
            "that sum to 1, the diagonal the largest entry of each"
        )


def _rates_by_class(
    rate: Mapping[Any, float], classes: NDArray[Any], limit: float
) -> NDArray[np.float64]:
    known = {label: float(value) for label, value in rate.items()}
    missing = [label for label in classes.tolist() if label not in known]
    extra = [label for label in known if label not in classes.tolist()]
    if missing or extra:
        raise UsageError(
            f"noise_rate names the classes {list(known)}, the target has {classes.tolist()}"
        )
    rates = np.array([known[label] for label in classes.tolist()])
    _check_range(rates, limit)
    return rates
