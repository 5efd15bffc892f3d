"""The posterior of the hyperparameters: Laplace's evidence times a normal prior."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NumericalError
from mercer.gp.hyperparameters import is_within_range, no_density, paper_start
from mercer.gp.laplace import fit_laplace
from mercer.kernels.base import Kernel
from mercer.numerics.normal_prior import NormalPrior
from mercer.numerics.workspace import Workspace
from mercer.sampling.target import Point

__all__ = ["HyperparameterPosterior"]

Array = NDArray[np.float64]


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

    @property
    def starts(self) -> tuple[Array, ...]:
        """The paper's start, whatever the prior."""
        return (paper_start(self.X.shape[1]),)

    def evaluate(self, theta: Array) -> Point:
        """Log density, gradient and dual coefficients at theta.

        Where the evidence cannot be computed the log density is -inf, so that no sampler goes
        there; that is so only for hyperparameters beyond e^40 or of no meaning in double precision.
        """
        n = len(self.y)
        if not is_within_range(theta):
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
    return no_density(theta, {name: np.zeros(n) for name in ("a", "q", "f", "gain", "K_q")})
