"""The posterior of a GP regressor's hyperparameters: exact evidence times a normal prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NumericalError
from mercer.gp.hyperparameters import is_within_range, no_density
from mercer.gp.parameters import named_parameters
from mercer.gp.regression.evidence import fit_exact
from mercer.kernels.base import Kernel
from mercer.numerics.normal_prior import NormalPrior
from mercer.numerics.workspace import Workspace
from mercer.sampling.target import Point

__all__ = ["NOISE_FLOOR", "RegressionPosterior", "RegressionRecorder", "whole_noise_variance"]

Array = NDArray[np.float64]

# The variance of the noise is never below this times 1 + v0, v0 the variance of the function
# averaged over the rows: targets without any noise, or all
# the same, then have a proper posterior. The rounding of a factor of K + s2 I is about 1e-16 n v0,
# at 5000 rows a thousandth of it.
NOISE_FLOOR = 1e-9


def whole_noise_variance(signal_variance: Array, log_noise_variance: Array) -> Array:
    """Variance of the noise with its floor: e^t + 1e-9 (1 + v0); arrays of the same shape."""
    return np.asarray(np.exp(log_noise_variance) + NOISE_FLOOR * (1.0 + signal_variance))


@dataclass(frozen=True)
class RegressionPosterior:
    """log p(theta | y) up to a constant: log parameters of the kernel[, of the noise's variance].

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Standardised inputs.
    y : ndarray of shape (n,)
        Standardised targets.
    kernel : Kernel
    prior : NormalPrior
        Over theta, shape (p,).
    starts : tuple of ndarray of shape (p,)
        Where searches begin; the paper's chain begins at the first.
    log_noise_variance : float or None
        Where it is known; None where it is the last of theta.
    intercept_variance : float
        Prior variance of an intercept, which is integrated out; 0: there is none.
    """

    X: Array
    y: Array
    kernel: Kernel
    prior: NormalPrior
    starts: tuple[Array, ...]
    log_noise_variance: float | None = None
    intercept_variance: float = 0.0
    workspace: Workspace = field(default_factory=Workspace, compare=False, repr=False)

    def __post_init__(self) -> None:
        wanted = self.kernel.n_parameters(self.X.shape[1]) + (self.log_noise_variance is None)
        if self.prior.mean.shape != (wanted,):
            raise ValueError(f"a prior of {len(self.prior.mean)} parameters for {wanted}")

    def evaluate(self, theta: Array) -> Point:
        """Log density, gradient and dual coefficients at theta.

        Where the evidence cannot be computed the log density is -inf, so that no sampler goes
        there; that is so only for hyperparameters beyond e^40 or of no meaning in double precision.
        """
        n = len(self.y)
        if not is_within_range(theta):
            return no_density(theta, self._extra(np.zeros(n), 0.0, 0.0))
        kernel_theta, log_noise = self.split(theta)
        signal = self.kernel.diagonal(kernel_theta, self.X).mean()
        noise = float(whole_noise_variance(signal, np.asarray(log_noise)))
        K = self.kernel.gram(kernel_theta, self.X, out=self.workspace.take("gram", n))
        try:
            scratch = self.workspace.take("factor", n)
            fit = fit_exact(K, self.y, noise, scratch, self.intercept_variance)
        except NumericalError:
            return no_density(theta, self._extra(np.zeros(n), 0.0, 0.0))
        trace = float(fit.adjoint.trace())
        fit.adjoint.ravel()[:: n + 1] += NOISE_FLOOR * trace / n  # the floor moves with the kernel
        gradient = np.zeros_like(theta)
        gradient[: len(kernel_theta)] = self.kernel.gradient(kernel_theta, self.X, K, fit.adjoint)
        if self.log_noise_variance is None:
            gradient[-1] = np.exp(log_noise) * trace
        return Point(
            position=theta,
            log_density=fit.log_evidence + self.prior.log_density(theta),
            gradient=gradient + self.prior.gradient(theta),
            extra=self._extra(fit.dual_coef, noise, fit.log_evidence),
        )

    def split(self, theta: Array) -> tuple[Array, float]:
        """Return the kernel's log parameters and the log variance of the noise."""
        if self.log_noise_variance is None:
            return theta[:-1], float(theta[-1])
        return theta, self.log_noise_variance

    def _extra(self, dual_coef: Array, noise: float, log_evidence: float) -> dict[str, Array]:
        return {
            "dual_coef": dual_coef,
            "f": self.y - noise * dual_coef,  # (K + v 11') a = y - s2 a
            "log_evidence": np.asarray(log_evidence),
        }


@dataclass(frozen=True)
class RegressionRecorder:
    """Name the parts of an evaluated point that a draw keeps.

    Attributes
    ----------
    model : RegressionPosterior
    rows : ndarray of shape (k,), int
        The rows where the mean of the function is monitored.
    """

    model: RegressionPosterior
    rows: NDArray[np.int64]

    def __call__(self, point: Point) -> Mapping[str, Array]:
        """Return log parameters, log density and evidence, function and dual coefficients."""
        kernel_theta, log_noise = self.model.split(point.position)
        return {
            **named_parameters(self.model.kernel, self.model.X.shape[1], kernel_theta),
            "log_noise_variance": np.asarray(log_noise),
            "log_density": np.asarray(point.log_density),
            "log_evidence": point.extra["log_evidence"],
            "latent": point.extra["f"][self.rows],
            "dual_coef": point.extra["dual_coef"],
        }
