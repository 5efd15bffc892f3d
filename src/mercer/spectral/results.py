"""What a fit of BaNK leaves behind: what the estimator shows and what its file holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimation.standardize import Standardizer
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws
from mercer.spectral.mixture.gibbs import Mixture
from mercer.spectral.predict import FunctionDraws

__all__ = ["Result"]


@dataclass(frozen=True, eq=False)
class Result:
    """A fit.

    Attributes
    ----------
    feature_labels : tuple of str
    standardizer : Standardizer
    target_centre, target_scale : float
        Mean and standard deviation of the training targets, in their units.
    n_rows : int
        Training rows.
    start_scales : ndarray of shape (d,)
        Of the frequencies, where chains started.
    draws : Draws
    diagnostics : Diagnostics
    notes : tuple of str
    mixture : Mixture
        The prior of the frequencies.
    functions : FunctionDraws
        What predictions come from: those draws, or a few of them with coefficients from all rows.
    """

    feature_labels: tuple[str, ...]
    standardizer: Standardizer
    target_centre: float
    target_scale: float
    n_rows: int
    start_scales: NDArray[np.float64]
    draws: Draws
    diagnostics: Diagnostics
    notes: tuple[str, ...]
    mixture: Mixture
    functions: FunctionDraws

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of the estimator by name."""
        return {
            "feature_labels_": self.feature_labels,
            "standardizer_": self.standardizer,
            "target_centre_": self.target_centre,
            "target_scale_": self.target_scale,
            "n_training_rows_": self.n_rows,
            "start_scales_": self.start_scales,
            "posterior_": self.draws,
            "diagnostics_": self.diagnostics,
            "notes_": self.notes,
            "n_frequencies_": int(self.draws.variables["frequencies"].shape[2]),
            "noise_std_": float(self.functions.noise_std.mean()) * self.target_scale,
            "_functions": self.functions,
        }
