"""Classes as targets of functions, and functions as probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.special import softmax as softmax_of

from mercer.baselines.losses import Loss, logistic, softmax
from mercer.estimation.base import encode_classes

__all__ = ["ClassTargets", "probabilities"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassTargets:
    """Two classes are told apart by one function, C classes by C of them.

    Attributes
    ----------
    classes : ndarray of shape (C,)
        Sorted.
    targets : ndarray of shape (n, 1) or (n, C)
        1 where a row is of the second class, or of the class of the column.
    loss : callable
        Of `mercer.baselines.losses`.
    """

    classes: NDArray[Any]
    targets: Array
    loss: Loss

    @classmethod
    def of(cls, y: NDArray[Any]) -> ClassTargets:
        """Encode labels."""
        classes, index = encode_classes(y)
        if len(classes) == 2:
            return cls(classes, index[:, np.newaxis].astype(np.float64), logistic)
        return cls(classes, np.eye(len(classes))[index], softmax)


def probabilities(f: Array) -> Array:
    """Turn functions (m, q) into probabilities of the classes (m, C)."""
    if f.shape[1] == 1:
        second = expit(f)
        return np.hstack([1.0 - second, second])
    return np.asarray(softmax_of(f, axis=1))
