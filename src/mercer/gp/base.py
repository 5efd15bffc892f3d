"""What the estimators of GP models share: the arguments of their sampler, what draws say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mercer.errors import UsageError
from mercer.estimation.base import KernelEstimator
from mercer.estimation.options import check_choice, check_count, check_positive
from mercer.estimation.run import CommonArguments
from mercer.estimation.standardize import METHODS
from mercer.gp.fitting import GPSettings
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws

__all__ = ["GPEstimator"]


class GPEstimator(KernelEstimator):
    """Base of `GPClassifier` and `GPRegressor`."""

    inference: str
    prior: str
    n_leapfrog: int | None
    step_size: float | None
    standardize: str | bool
    checkpoint: str | Path | None

    def _check_sampler(self) -> CommonArguments:
        """Check the arguments that all GP estimators have."""
        check_choice("inference", self.inference, ("hmc", "nuts", "map"))
        check_choice("prior", self.prior, ("wide", "paper"))
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

    def _settings(self) -> GPSettings:
        return GPSettings(self.inference, self.prior, self.n_leapfrog, self.step_size)

    def _set_posterior(
        self, X: NDArray[np.float64], draws: Draws, diagnostics: Diagnostics, notes: tuple[str, ...]
    ) -> None:
        """Set what is learned of the hyperparameters on standardised rows X (n, d)."""
        self._X = X
        self.posterior_ = draws
        self.diagnostics_ = diagnostics
        self.notes_ = notes
        self.relevance_ = np.exp(draws.flat("log_weight"))
        lower, upper = self._settings().prior_of(X.shape[1]).interval(0.9)
        self.prior_weight_interval_ = (float(np.exp(lower[1])), float(np.exp(upper[1])))
