"""What is fitted to classes and how; priors of logits, for standardised inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.spectral.classes.chain import ClassChain
from mercer.spectral.classes.joint import JointSampler
from mercer.spectral.classes.model import LogisticModel
from mercer.spectral.classes.sampler import ClassSampler
from mercer.spectral.mixture.gibbs import Mixture
from mercer.spectral.model import GammaPrior
from mercer.spectral.sampler import Start
from mercer.spectral.settings import SpectralSettings
from mercer.spectral.start import Scales

__all__ = ["MOST_CLASSES", "SAMPLERS", "ClassSettings", "default_leapfrog"]

Array = NDArray[np.float64]

SAMPLERS: Mapping[str, type[ClassChain]] = {"polya-gamma": ClassSampler, "joint": JointSampler}
# Each function takes (4 M)^2 numbers of memory several times over.
MOST_CLASSES = 20
# Steps of a trajectory, and the rows from which it is not worth its time: see docs/performance.md.
_N_LEAPFROG, _MANY_ROWS = 20, 1500
# Logits of order one to ten: unlike that of numbers, the precision is not relative to a noise, and
# of separable classes it must not fall without end.
_RIDGE_PRIOR = GammaPrior(1.0, 1.0)
_LINEAR_PRIOR = GammaPrior(1.0, 0.1)
_FIRST_RIDGE, _FIRST_LINEAR_PRECISION = 0.1, 1.0
# Weak: what is held out says when to stop.
_RIDGE_OF_ASCENT = 0.01
# Times |log c|^2 in the search for the start: 0 and 1 are not numbers with normal noise, whose
# evidence makes too much of what a few hundred of them say.
_PENALTY = 2.0
# Functions whose rows decide where chains start: the first ones look at the most rows.
_FUNCTIONS_OF_START = 3


@dataclass(frozen=True)
class ClassSettings:
    """What numbers and classes have in common, and what classes have besides.

    Attributes
    ----------
    spectral : SpectralSettings
    n_classes : int
    sampler : str
        One of `SAMPLERS`.
    n_leapfrog : int
        Steps of the trajectory before each sweep; 0 for none.
    """

    spectral: SpectralSettings
    n_classes: int
    sampler: str = "polya-gamma"
    n_leapfrog: int = 0

    @property
    def n_sticks(self) -> int:
        """Number K of functions."""
        return self.n_classes - 1

    def model(self, n_inputs: int) -> LogisticModel:
        """Return the regressions."""
        n_linear = 1 + n_inputs if self.spectral.linear_part else 0
        prior = _RIDGE_PRIOR if self.spectral.ridge_precision == "learn" else None
        return LogisticModel(n_linear, prior, _LINEAR_PRIOR)

    def climb(self, rng: np.random.Generator, X: Array, codes: Array) -> Scales:
        """Search for the start on standardised rows X (n, d) with places of classes (n,).

        As if the first functions were regressions of 0 and 1: the evidences add, and the scales
        are the geometric means over functions.
        """
        logs, evidence = [], 0.0
        for k in range(min(self.n_sticks, _FUNCTIONS_OF_START)):
            is_in = codes >= k
            target = (codes[is_in] == k).astype(np.float64)
            if target.size < 2 or np.ptp(target) == 0.0:
                continue
            target = (target - target.mean()) / target.std()
            found = self.spectral.climb(rng, X[is_in], target, _PENALTY)
            logs.append(np.log(found.scales))
            evidence += found.log_evidence
        first = self.spectral.first_scales(X.shape[1])
        if not logs:
            return Scales(first.scales, first.ridge, 0.0)
        return Scales(np.exp(np.mean(logs, axis=0)), first.ridge, evidence)

    def start(self, found: Scales) -> Start:
        """Return where chains start."""
        start = self.spectral.start(found)
        given = self.spectral.ridge_precision
        ridge = _FIRST_RIDGE if isinstance(given, str) else float(given)
        return Start(start.scales, start.factors, ridge, _FIRST_LINEAR_PRECISION)

    def precisions_of_ascent(self, n_inputs: int) -> Array:
        """Prior precisions of the coefficients on the way to the start, shape (2 M + p,)."""
        given = self.spectral.ridge_precision
        ridge = _RIDGE_OF_ASCENT if isinstance(given, str) else float(given)
        n_features = 2 * self.spectral.n_frequencies
        return self.model(n_inputs).prior_precisions(n_features, ridge, _FIRST_LINEAR_PRECISION)

    def mixture(self, found: Scales) -> Mixture:
        """Return the prior of the frequencies."""
        return self.spectral.mixture(found)


def default_leapfrog(n_rows: int) -> int:
    """Steps of the trajectories before sweeps over so many rows; 0 for none."""
    return _N_LEAPFROG if n_rows < _MANY_ROWS else 0
