"""The posterior of the hyperparameters, Laplace's evidence times a prior; what a draw keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NumericalError
from mercer.gp.binary.correction import damped_correction, posterior_variance
from mercer.gp.binary.laplace import fit_laplace
from mercer.gp.hyperparameters import is_within_range, no_density
from mercer.gp.parameters import named_parameters
from mercer.gp.priors import paper_start
from mercer.kernels.base import Kernel
from mercer.numerics.normal_prior import NormalPrior
from mercer.numerics.workspace import Workspace
from mercer.sampling.target import Point

__all__ = ["HyperparameterPosterior", "Recorder"]

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
        return (paper_start(self.X.shape[1], self.kernel),)

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


@dataclass(frozen=True)
class Recorder:
    """Name the parts of an evaluated point that a draw of a classifier keeps.

    Attributes
    ----------
    model : HyperparameterPosterior
    rows : ndarray of shape (k,), int
        The rows whose latent values are monitored.
    """

    model: HyperparameterPosterior
    rows: NDArray[np.int64]

    def __call__(self, point: Point) -> Mapping[str, Array]:
        """Return log parameters, log density, latent values and dual coefficients."""
        model, extra, theta = self.model, point.extra, point.position
        y, a = model.y, extra["a"]
        variance = posterior_variance(y, a, extra["gain"], model.kernel.diagonal(theta, model.X))
        correction = damped_correction(y, extra["f"], variance, a, extra["q"], extra["K_q"])
        return {
            **named_parameters(model.kernel, model.X.shape[1], theta),
            "log_density": np.asarray(point.log_density),
            "latent": extra["f"][self.rows],
            "dual_coef": a,
            "dual_correction": correction,
        }
