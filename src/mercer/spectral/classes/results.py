"""What a fit of BaNK to classes leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimation.standardize import Standardizer
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws
from mercer.spectral.classes.predict import ClassDraws
from mercer.spectral.mixture.gibbs import Mixture

__all__ = ["ClassResult"]


@dataclass(frozen=True, eq=False)
class ClassResult:
    """A fit.

    Attributes
    ----------
    classes : ndarray of shape (C,)
        Labels, sorted.
    order : ndarray of shape (C,), int
        Positions among them in the order in which they are told apart.
    feature_labels : tuple of str
    standardizer : Standardizer
    n_rows : int
        Training rows.
    start_scales : ndarray of shape (d,)
        Of the frequencies, where chains started.
    draws : Draws
    diagnostics : Diagnostics
    notes : tuple of str
    mixture : Mixture
        The prior of the frequencies.
    functions : ClassDraws
        What predictions come from: those draws, or a few of them with coefficients from all rows.
    """

    classes: NDArray[Any]
    order: NDArray[np.int64]
    feature_labels: tuple[str, ...]
    standardizer: Standardizer
    n_rows: int
    start_scales: NDArray[np.float64]
    draws: Draws
    diagnostics: Diagnostics
    notes: tuple[str, ...]
    mixture: Mixture
    functions: ClassDraws

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of the estimator by name."""
        return {
            "classes_": self.classes,
            "class_order_": self.classes[self.order],
            "feature_labels_": self.feature_labels,
            "standardizer_": self.standardizer,
            "n_training_rows_": self.n_rows,
            "start_scales_": self.start_scales,
            "posterior_": self.draws,
            "diagnostics_": self.diagnostics,
            "notes_": self.notes,
            "n_frequencies_": int(self.draws.variables["frequencies"].shape[2]),
            "_functions": self.functions,
            "_order": self.order,
        }
