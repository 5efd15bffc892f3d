"""What is fitted and how, from the arguments of the estimator; priors for standardised data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.spectral.mixture.base import BaseMeasure, ScalePrior
from mercer.spectral.mixture.diagonal import DiagonalBase
from mercer.spectral.mixture.full import FullBase
from mercer.spectral.mixture.gibbs import Mixture
from mercer.spectral.mixture.partition import ConcentrationPrior
from mercer.spectral.model import GammaPrior, RegressionModel
from mercer.spectral.sampler import Start
from mercer.spectral.start import PENALTY, Scales, find_scales

__all__ = ["SpectralSettings", "default_scale"]

Array = NDArray[np.float64]

# Inverse gamma prior of the noise variance, in squared standard deviations of the target: all but
# flat in its logarithm above the rate. IG(a, b) tells as much as 2a residuals with squares of 2b in
# all: with a = 1 two residuals of almost nothing, which 15 rows believed, and interpolated.
_NOISE_SHAPE, _NOISE_RATE = 0.1, 1e-4
_RIDGE_PRIOR = GammaPrior(1.0, 1e-3)
_LINEAR_PRIOR = GammaPrior(1.0, 1e-2)
_FIRST_RIDGE, _FIRST_LINEAR_PRECISION = 0.02, 1.0
# Components that a chain starts with, in multiples of the scales found: by itself it hardly ever
# finds a second one.
_FACTORS = (0.3, 1.0, 2.5)
_KAPPA0, _NU0 = 0.1, 3.0
_CONCENTRATION_PRIOR = ConcentrationPrior(1.0, 0.5)
_SCALE_SHAPE = 1.0


def default_scale(n_inputs: int) -> Array:
    """Standard deviation of frequencies before any data are seen: phases x'w of variance one."""
    return np.full(n_inputs, n_inputs**-0.5)


@dataclass(frozen=True)
class SpectralSettings:
    """See `mercer.BaNKRegressor` for each."""

    n_frequencies: int
    concentration: float | str
    proposals: str
    base_measure: str
    frequency_scale: float | str
    ridge_precision: float | str
    linear_part: bool
    n_deviations: int

    @property
    def is_scale_learned(self) -> bool:
        """Whether start and base measure take their scale from the data."""
        return self.frequency_scale == "learn"

    def model(self, n_rows: int, n_inputs: int) -> RegressionModel:
        """Return the regression."""
        n_linear = 1 + n_inputs if self.linear_part else 0
        prior = _RIDGE_PRIOR if self.ridge_precision == "learn" else None
        return RegressionModel(n_rows, n_linear, _NOISE_SHAPE, _NOISE_RATE, prior, _LINEAR_PRIOR)

    def first_scales(self, n_inputs: int) -> Scales:
        """Where the search for the start begins, and what stays where there is no search."""
        unit = 1.0 if isinstance(self.frequency_scale, str) else float(self.frequency_scale)
        ridge = _FIRST_RIDGE if isinstance(self.ridge_precision, str) else self.ridge_precision
        return Scales(unit * default_scale(n_inputs), float(ridge))

    def climb(
        self, rng: np.random.Generator, X: Array, y: Array, penalty: float = PENALTY
    ) -> Scales:
        """Search for the start on standardised rows X (n, d), y (n,): see `find_scales`."""
        n, d = X.shape
        first = self.first_scales(d)
        precision = self.start(first).linear_precision
        return find_scales(rng, X, y, self.model(n, d), first, precision, penalty)

    def start(self, found: Scales) -> Start:
        """Return where chains start."""
        factors = _FACTORS if self.is_scale_learned else (1.0,)
        ridge = found.ridge if self.ridge_precision == "learn" else float(self.ridge_precision)
        return Start(found.scales, factors, ridge, _FIRST_LINEAR_PRECISION)

    def mixture(self, found: Scales) -> Mixture:
        """Return the prior of the frequencies: its expected variance is that of the scales."""
        base, prior = self._base(found)
        is_learned = isinstance(self.concentration, str)
        return Mixture(
            base,
            concentration=2.0 if is_learned else float(self.concentration),
            concentration_prior=_CONCENTRATION_PRIOR if is_learned else None,
            scale_prior=prior if self.is_scale_learned else None,
        )

    def _base(self, found: Scales) -> tuple[BaseMeasure[Any], ScalePrior]:
        variances = found.scales**2
        if self.base_measure == "diagonal":
            scale = (_NU0 - 2.0) * variances
            return DiagonalBase(scale, _KAPPA0, _NU0), ScalePrior(_SCALE_SHAPE, scale)
        return FullBase.from_std(found.scales, _KAPPA0), ScalePrior(_SCALE_SHAPE, np.ones(1))
