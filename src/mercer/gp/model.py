"""The posterior of the hyperparameters: Laplace's evidence times a normal prior."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NumericalError
from mercer.gp.laplace import fit_laplace
from mercer.kernels.base import Kernel
from mercer.numerics.normal_prior import NormalPrior
from mercer.numerics.workspace import Workspace
from mercer.sampling.target import Point

__all__ = [
    "LARGEST_LOG",
    "NO_EVIDENCE",
    "HyperparameterPosterior",
    "default_prior",
    "paper_prior",
    "paper_start",
]

Array = NDArray[np.float64]

NO_EVIDENCE = "the evidence cannot be computed in double precision; standardise the inputs"

# exp(40) is beyond any scale that data can tell apart, and within double precision.
LARGEST_LOG = 40.0


@dataclass(frozen=True)
class HyperparameterPosterior:
    """log p(theta | y) up to a constant, theta the log parameters of the kernel.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Standardised inputs.
    y : ndarray of shape (n,)
        Targets, 0.0 or 1.0.
    kernel : Kernel
    prior : NormalPrior
        Over theta, shape (p,).
    """

    X: Array
    y: Array
    kernel: Kernel
    prior: NormalPrior
    workspace: Workspace = field(default_factory=Workspace, compare=False, repr=False)

    def __post_init__(self) -> None:
        n_parameters = self.kernel.n_parameters(self.X.shape[1])
        if self.prior.mean.shape != (n_parameters,):
            raise ValueError(
                f"a prior of {len(self.prior.mean)} parameters for a kernel of {n_parameters}"
            )

    def evaluate(self, theta: Array) -> Point:
        """Log density, gradient and dual coefficients at theta.

        Where the evidence cannot be computed the log density is -inf, so that no sampler goes
        there; that is so only for hyperparameters beyond e^40 or of no meaning in double precision.
        """
        n = len(self.y)
        if not np.all(np.abs(theta) < LARGEST_LOG):
            return _outside(theta, n)
        try:
            K = self.kernel.gram(theta, self.X, out=self.workspace.take("gram", n))
            fit = fit_laplace(K, self.y, scratch=self.workspace.take("factor", n))
        except NumericalError:
            return _outside(theta, n)
        gradient = self.kernel.gradient(theta, self.X, K, fit.adjoint)
        return Point(
            position=theta,
            log_density=fit.log_evidence + self.prior.log_density(theta),
            gradient=gradient + self.prior.gradient(theta),
            extra={
                "a": fit.a,
                "q": fit.q,
                "f": fit.f,
                "gain": fit.gain,
                "K_q": K @ fit.q,
            },
        )


def _outside(theta: Array, n: int) -> Point:
    zeros = {name: np.zeros(n) for name in ("a", "q", "f", "gain", "K_q")}
    return Point(theta, -np.inf, np.zeros_like(theta), zeros)


def default_prior(n_inputs: int) -> NormalPrior:
    """log v0 ~ N(1, 3^2), log w_l ~ N(-1 - log d, 2^2).

    Wide where data speak (separable classes want v0 of e^4 to e^7), and with the weight of an
    input that says nothing at a size that does not slow the chain down.
    """
    mean = np.full(n_inputs + 1, -1.0 - np.log(n_inputs))
    std = np.full(n_inputs + 1, 2.0)
    mean[0], std[0] = 1.0, 3.0
    return NormalPrior(mean, std)


def paper_prior(n_inputs: int) -> NormalPrior:
    """N(-3, 3^2) for every log parameter: section 2.3 of the paper."""
    return NormalPrior(np.full(n_inputs + 1, -3.0), np.full(n_inputs + 1, 3.0))


def paper_start(n_inputs: int) -> Array:
    """0 for log v0 and -2 for every log w: section 2.3 of the paper."""
    theta = np.full(n_inputs + 1, -2.0)
    theta[0] = 0.0
    return theta
