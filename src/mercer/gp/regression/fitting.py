"""From standardised data and settings to the draws of a GP regressor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.gp.fitting import (
    FittedGP,
    GPSettings,
    fit_posterior,
    kernel_labels,
    monitored_rows,
)
from mercer.gp.priors import noise_prior, paper_start, places_of_weights, prior_start
from mercer.gp.regression.model import RegressionPosterior, RegressionRecorder
from mercer.numerics.normal_prior import NormalPrior
from mercer.sampling.driver import RunOptions

__all__ = ["RegressionSettings", "fit_regression"]

Array = NDArray[np.float64]

_NOISE_START = -2.0
# Of an intercept, in squared standard deviations of the target. The target is centred by the mean
# of the same rows: to take that mean for known would make intervals of n rows too narrow, by about
# 1/n of their width (the mean's own error, and the degree of freedom that it costs the variance).
# As the mean lies within 1 / sqrt(n) of that of the law, 1 is nearly flat, at any n; and a variance
# that is no larger than the target's own does not blow up predictions far from all rows.
_INTERCEPT_VARIANCE = 1.0
# Of all log weights, from one start of a search to the next: length scales down to a fiftieth.
_SHIFTS = (0.0, 3.0, 5.5, 8.0)


@dataclass(frozen=True)
class RegressionSettings:
    """What is fitted and by which sampler; see `mercer.GPRegressor`.

    Attributes
    ----------
    common : GPSettings
    log_noise_variance : float or None
        Of standardised targets, where it is known.
    """

    common: GPSettings
    log_noise_variance: float | None

    @property
    def intercept_variance(self) -> float:
        """Prior variance of the intercept; the paper has none."""
        return 0.0 if self.common.prior == "paper" else _INTERCEPT_VARIANCE

    def posterior(self, X: Array, y: Array) -> RegressionPosterior:
        """Return the posterior of the hyperparameters, with its prior and its starts.

        The first start is the paper's; with the wide prior its weights are the prior's means, so
        that with many inputs rows are not all alone. The others have shorter length scales: from
        a long one the search takes a fast function for noise.
        """
        d, kernel, prior = X.shape[1], self.common.make_kernel(), self.common.prior_of(X.shape[1])
        is_paper = self.common.prior == "paper"
        start = paper_start(d, kernel) if is_paper else prior_start(d, kernel, prior)
        starts = [start + shift * places_of_weights(kernel, d) for shift in _SHIFTS]
        if self.log_noise_variance is None:
            mean, std = noise_prior(d, self.common.prior)
            prior = NormalPrior(np.append(prior.mean, mean), np.append(prior.std, std))
            starts = [np.append(each, _NOISE_START) for each in starts]
        noise, intercept = self.log_noise_variance, self.intercept_variance
        return RegressionPosterior(X, y, kernel, prior, tuple(starts), noise, intercept)


def fit_regression(
    X: Array, y: Array, settings: RegressionSettings, options: RunOptions, names: tuple[str, ...]
) -> FittedGP:
    """Draw hyperparameters for standardised inputs (n, d) and targets (n,)."""
    model = settings.posterior(X, y)
    recorder = RegressionRecorder(model, monitored_rows(options, len(y)))
    labels = kernel_labels(model.kernel, names, "log_noise_variance")
    return fit_posterior(model, recorder, settings.common, options, labels)
