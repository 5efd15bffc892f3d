"""The posterior of the hyperparameters for several classes: Laplace's evidence times a prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NumericalError
from mercer.gp.hyperparameters import is_within_range, no_density
from mercer.gp.priors import paper_start
from mercer.gp.several.correction import damped_correction
from mercer.gp.several.covariance import latent_covariance
from mercer.gp.several.laplace import curvature, fit_softmax
from mercer.kernels.base import Kernel
from mercer.likelihoods.softmax import class_probabilities, one_hot
from mercer.numerics.normal_prior import NormalPrior
from mercer.numerics.workspace import Workspace
from mercer.sampling.target import Point

__all__ = ["SoftmaxPosterior", "SoftmaxRecorder"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SoftmaxPosterior:
    """log p(theta | y) up to a constant, theta the log parameters of all kernels.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Standardised inputs.
    y : ndarray of shape (n,), int
        Codes of the classes, from 0 to ``n_classes`` - 1.
    n_classes : int
        C, two or more.
    kernel : Kernel
    kernel_prior : NormalPrior
        Over the log parameters of one kernel; the same for every class, and independent.
    is_shared : bool
        Whether all classes have one kernel in common. Else theta holds the log parameters of the
        kernel of the first class, then those of the second, and so on.
    """

    X: Array
    y: NDArray[np.int64]
    n_classes: int
    kernel: Kernel
    kernel_prior: NormalPrior
    is_shared: bool = False
    workspace: Workspace = field(default_factory=Workspace, compare=False, repr=False)

    def __post_init__(self) -> None:
        n_parameters = self.kernel.n_parameters(self.X.shape[1])
        if self.kernel_prior.mean.shape != (n_parameters,):
            raise ValueError(
                f"a prior of {len(self.kernel_prior.mean)} parameters for a kernel of "
                f"{n_parameters}"
            )

    @property
    def n_kernels(self) -> int:
        """How many kernels there are: one, or one for each class."""
        return 1 if self.is_shared else self.n_classes

    @property
    def prior(self) -> NormalPrior:
        """Of all log parameters."""
        one, times = self.kernel_prior, self.n_kernels
        return NormalPrior(np.tile(one.mean, times), np.tile(one.std, times))

    @property
    def starts(self) -> tuple[Array, ...]:
        """The paper's start for every kernel, whatever the prior."""
        return (np.tile(paper_start(self.X.shape[1], self.kernel), self.n_kernels),)

    def evaluate(self, theta: Array) -> Point:
        """Log density, gradient, and what a draw records, at theta of shape (n_kernels p,).

        Where the evidence cannot be computed the log density is -inf, so that no sampler goes
        there: at log parameters beyond 40, and at most signal variances beyond about e^18.
        """
        if not is_within_range(theta):
            return self._outside(theta)
        n = len(self.y)
        scratch = tuple(
            self.workspace.take_stack(name, self.n_classes, n) for name in ("factors", "products")
        )
        try:
            K = self.grams(theta)
            fit = fit_softmax(K, one_hot(self.y, self.n_classes), (scratch[0], scratch[1]))
        except NumericalError:
            return self._outside(theta)
        parts = zip(self.split(theta), K, fit.adjoint, strict=True)
        gradient = [self.kernel.gradient(own, self.X, K_c, A) for own, K_c, A in parts]
        prior = self.prior
        return Point(
            position=theta,
            log_density=fit.log_evidence + prior.log_density(theta),
            gradient=np.concatenate(gradient) + prior.gradient(theta),
            extra={"a": fit.a, "q": fit.q, "f": fit.f},
        )

    def split(self, theta: Array) -> Array:
        """Log parameters of each kernel, shape (n_kernels, p)."""
        return theta.reshape(self.n_kernels, -1)

    def grams(self, theta: Array) -> Array:
        """Gram matrices of the kernels, (n_kernels, n, n), in scratch memory."""
        K = self.workspace.take_stack("grams", self.n_kernels, len(self.y))
        for own, out in zip(self.split(theta), K, strict=True):
            self.kernel.gram(own, self.X, out=out)
        return K

    def _outside(self, theta: Array) -> Point:
        shape = (self.n_classes, len(self.y))
        return no_density(theta, {name: np.zeros(shape) for name in ("a", "q", "f")})


@dataclass(frozen=True)
class SoftmaxRecorder:
    """Name the parts of an evaluated point that a draw keeps.

    Attributes
    ----------
    model : SoftmaxPosterior
    rows : ndarray of shape (k,), int
        The rows whose latent values are monitored.
    """

    model: SoftmaxPosterior
    rows: NDArray[np.int64]

    def __call__(self, point: Point) -> Mapping[str, Array]:
        """Return log parameters (n_kernels, p), log density, latent values, dual coefficients.

        The length of the correction needs the covariance of the latent values at every row, which
        costs about one gradient.
        """
        f = point.extra["f"]
        return {
            "theta": self.model.split(point.position),
            "log_density": np.asarray(point.log_density),
            "latent": f[:, self.rows],
            "dual_coef": point.extra["a"],
            "dual_correction": self._correction(point),
        }

    def _correction(self, point: Point) -> Array:
        model, extra = self.model, point.extra
        if not np.isfinite(point.log_density):
            return np.zeros_like(extra["q"])
        K, f, q = model.grams(point.position), extra["f"], extra["q"]
        scratch = model.workspace.take_stack("factors", model.n_classes, len(model.y))
        factors = curvature(K, class_probabilities(f), scratch)
        covariance = latent_covariance(factors, K, np.diagonal(K, axis1=1, axis2=2))
        K_q = np.matmul(K, q[:, :, np.newaxis])[:, :, 0]
        return damped_correction(
            one_hot(model.y, model.n_classes), f, covariance, extra["a"], q, K_q
        )
