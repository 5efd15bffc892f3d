"""From standardised inputs and two classes to draws from the exact posterior."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gp.binary.model import HyperparameterPosterior, Recorder
from mercer.gp.exact.adaptation import ExactAdaptation
from mercer.gp.exact.sampler import DelayedAcceptance, make_exact_sampler
from mercer.gp.fitting import FittedGP, GPSettings, fit_posterior, kernel_labels, monitored_rows
from mercer.sampling.adaptation import HamiltonianAdaptation
from mercer.sampling.driver import RunOptions

__all__ = ["fit_exactly"]

Array = NDArray[np.float64]


def fit_exactly(
    X: Array, y: Array, settings: GPSettings, options: RunOptions, names: tuple[str, ...]
) -> FittedGP:
    """Draw hyperparameters and latent functions for inputs (n, d), targets in {0, 1}."""
    n, d = X.shape
    kernel, rows = settings.make_kernel(), monitored_rows(options, n)
    model = HyperparameterPosterior(X, y, kernel, settings.prior_of(d))

    def refine(
        inner: Any, adaptation: HamiltonianAdaptation
    ) -> tuple[DelayedAcceptance, ExactAdaptation]:
        return make_exact_sampler(inner, model, rows), ExactAdaptation(adaptation)

    labels = kernel_labels(kernel, names)
    monitored = tuple("exact_latent" if name == "latent" else name for name in labels.monitored)
    labels = replace(labels, monitored=monitored)
    return fit_posterior(model, Recorder(model, rows), settings, options, labels, refine)
