"""From standardised inputs and two classes to the draws of a classifier."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.gp.binary.model import HyperparameterPosterior, Recorder
from mercer.gp.fitting import FittedGP, GPSettings, fit_posterior, kernel_labels, monitored_rows
from mercer.sampling.driver import RunOptions

__all__ = ["fit_gp"]

Array = NDArray[np.float64]


def fit_gp(
    X: Array, y: Array, settings: GPSettings, options: RunOptions, names: tuple[str, ...]
) -> FittedGP:
    """Draw hyperparameters of a classifier for standardised inputs (n, d), targets in {0, 1}."""
    n, d = X.shape
    kernel = settings.make_kernel()
    model = HyperparameterPosterior(X, y, kernel, settings.prior_of(d))
    recorder = Recorder(model, monitored_rows(options, n))
    return fit_posterior(model, recorder, settings, options, kernel_labels(kernel, names))
