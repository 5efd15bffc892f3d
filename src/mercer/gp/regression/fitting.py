"""From standardised data and settings to the draws of a GP regressor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import DataError
from mercer.gp.fitting import FittedGP, GPSettings, fit_posterior, monitored_rows
from mercer.gp.hyperparameters import paper_start
from mercer.gp.regression.model import RegressionPosterior, RegressionRecorder
from mercer.kernels.names import kernel_named
from mercer.numerics.normal_prior import NormalPrior
from mercer.sampling.driver import Labels, RunOptions

__all__ = ["MOST_ROWS", "RegressionSettings", "check_size", "fit_regression"]

Array = NDArray[np.float64]

MOST_ROWS = 5000
_MONITORED = ("log_signal_variance", "log_weight", "log_noise_variance", "latent")
# log s2 ~ N(-3, 3^2), s2 in squared standard deviations of the target: of the noise's standard
# deviation 90 % lie between a fiftieth and 2.6 of these. The paper's prior of all log parameters.
_NOISE_MEAN, _NOISE_STD, _NOISE_START = -3.0, 3.0, -2.0
# Of all log weights, from one start of a search to the next: length scales down to a fiftieth.
_SHIFTS = (0.0, 3.0, 5.5, 8.0)


@dataclass(frozen=True)
class RegressionSettings:
    """What is fitted and by which sampler; see `mercer.GPRegressor`.

    Attributes
    ----------
    common : GPSettings
    kernel : str
        Name of a kernel with one weight per input.
    log_noise_variance : float or None
        Of standardised targets, where it is known.
    """

    common: GPSettings
    kernel: str
    log_noise_variance: float | None

    def as_options(self) -> dict[str, Any]:
        """Return the options that the draws depend on, as JSON can hold them."""
        own = {"kernel": self.kernel, "log_noise_variance": self.log_noise_variance}
        return {**self.common.as_options("GPRegressor"), **own}

    def posterior(self, X: Array, y: Array) -> RegressionPosterior:
        """Return the posterior of the hyperparameters, with its prior and its starts.

        The first start is the paper's; with the wide prior its weights are the prior's means, so
        that with many inputs rows are not all alone. The others have shorter length scales: from
        a long one the search takes a fast function for noise.
        """
        d = X.shape[1]
        prior, start = self.common.prior_of(d), paper_start(d)
        if self.common.prior != "paper":
            start[1:] = prior.mean[1:]
        starts = [start + np.append(0.0, np.full(d, shift)) for shift in _SHIFTS]
        if self.log_noise_variance is None:
            means, stds = np.append(prior.mean, _NOISE_MEAN), np.append(prior.std, _NOISE_STD)
            prior = NormalPrior(means, stds)
            starts = [np.append(each, _NOISE_START) for each in starts]
        return RegressionPosterior(
            X, y, kernel_named(self.kernel), prior, tuple(starts), self.log_noise_variance
        )


def fit_regression(
    X: Array, y: Array, settings: RegressionSettings, options: RunOptions, names: tuple[str, ...]
) -> FittedGP:
    """Draw hyperparameters for standardised inputs (n, d) and targets (n,)."""
    model = settings.posterior(X, y)
    recorder = RegressionRecorder(model, monitored_rows(options, len(y)))
    labels = Labels({"log_weight": names}, _MONITORED)
    return fit_posterior(model, recorder, settings.common, options, labels)


def check_size(n: int) -> None:
    """Refuse more rows than matrices of n x n numbers are for, before any is made.

    Raises
    ------
    DataError
        With the memory that they would take, and what to do.
    """
    if n > MOST_ROWS:
        raise DataError(
            f"{n} rows need matrices of {8e-9 * n**2:.1f} GB each, and hours: a Gaussian process "
            f"is for {MOST_ROWS} rows at most; take some of the rows, or BaNKRegressor (--model "
            "spectral), whose time is linear in the rows"
        )
