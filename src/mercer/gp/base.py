"""What the estimators of GP models share: the arguments of their sampler, what draws say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import UsageError
from mercer.estimation.base import KernelEstimator
from mercer.estimation.options import check_choice, check_count, check_positive
from mercer.estimation.run import CommonArguments
from mercer.estimation.standardize import METHODS
from mercer.gp.choosing import limit_of_rows
from mercer.gp.fitting import GPSettings
from mercer.gp.parameters import input_weights, named_parameters
from mercer.gp.priors import PriorChoice, check_prior, plain_prior
from mercer.kernels.names import as_kernel, name_of_kernel
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws

__all__ = ["GPEstimator"]


class GPEstimator(KernelEstimator):
    """Base of `GPClassifier` and `GPRegressor`."""

    kernel: Any
    inference: str
    prior: PriorChoice
    n_leapfrog: int | None
    step_size: float | None
    max_rows: int | str
    standardize: str | bool
    checkpoint: str | Path | None

    def _check_sampler(self) -> CommonArguments:
        """Check the arguments that all GP estimators have."""
        check_choice("inference", self.inference, ("hmc", "nuts", "map", "metropolis"))
        check_prior(self.prior)
        limit_of_rows(self.max_rows, self.inference)
        check_choice("standardize", self.standardize, METHODS)
        if (self.n_leapfrog is None) != (self.step_size is None):
            raise UsageError("n_leapfrog and step_size are given together or not at all")
        if self.n_leapfrog is not None:
            check_choice("inference (with n_leapfrog)", self.inference, ("hmc",))
            check_count("n_leapfrog", self.n_leapfrog, 1)
            check_positive("step_size", self.step_size)
        # The maximum is found in no time: there is no state to save.
        checkpoint = None if self.inference == "map" else self.checkpoint
        return self._common(checkpoint)

    def _set_kernel(self, n_inputs: int) -> None:
        self.kernel_ = as_kernel(self.kernel, n_inputs)

    def _settings(self) -> GPSettings:
        prior, kernel = plain_prior(self.prior), name_of_kernel(self.kernel_)
        return GPSettings(self.inference, prior, self.n_leapfrog, self.step_size, kernel)

    def _set_posterior(
        self, X: NDArray[np.float64], draws: Draws, diagnostics: Diagnostics, notes: tuple[str, ...]
    ) -> None:
        """Set what is learned of the hyperparameters on standardised rows X (n, d)."""
        self._X = X
        self.posterior_ = draws
        self.diagnostics_ = diagnostics
        self.notes_ = notes
        name = input_weights(self.kernel_)
        if name is None:
            return
        d = X.shape[1]
        # Several classes have weights of their own: their average says how much an input matters.
        weights = np.exp(draws.flat(name)).reshape(draws.n_total, -1, d)
        self.relevance_ = weights.mean(axis=1)
        prior = self._settings().prior_of(d).interval(0.9)
        lower, upper = (named_parameters(self.kernel_, d, end)[name][0] for end in prior)
        self.prior_weight_interval_ = (float(np.exp(lower)), float(np.exp(upper)))
