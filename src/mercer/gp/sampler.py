"""Samplers over the hyperparameters of a GP, and the point that they start from.

**Target.** `mercer.gp.hyperparameters.HyperparameterTarget`.

**Default** ("hmc"): the maximum of the posterior by L-BFGS; its Hessian by central differences of
the gradient; jittered HMC from draws of that Gaussian with the inverse Hessian as covariance of
the mass; in warm-up the mass is estimated anew from the draws. "nuts" and "metropolis" start and
are tuned likewise.

**Paper** (`paper_hmc`): theta starts at 0 and -2, unit mass, 20 leapfrog steps of 0.1
(section 2.3), no tuning.

**Cost.** About 15 gradients for each search of a maximum, two a parameter for the Hessian.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from mercer.errors import NumericalError
from mercer.gp.hyperparameters import NO_EVIDENCE, HyperparameterTarget
from mercer.sampling.hmc import HMC
from mercer.sampling.leapfrog import HamiltonianTuning
from mercer.sampling.mass import mass_from_covariance, unit_mass
from mercer.sampling.metropolis import Metropolis
from mercer.sampling.nuts import NUTS
from mercer.sampling.target import Point

__all__ = ["Maximum", "Record", "find_maximum", "make_sampler", "paper_hmc"]

Array = NDArray[np.float64]
Record = Callable[[Point], Mapping[str, Array]]

_FIRST_STEP_SIZE = 0.5  # of the search, in units of the Gaussian at the maximum
_HESSIAN_STEP = 0.05  # of log parameters; the error of a central difference is of its square


@dataclass(frozen=True)
class Maximum:
    """The maximum of the posterior and the Gaussian that its curvature gives."""

    point: Point
    covariance: Array | None
    is_converged: bool


@dataclass(frozen=True)
class _GaussianStart:
    mean: Array
    factor: Array

    def __call__(self, rng: np.random.Generator) -> Array:
        """Draw from the Gaussian at the maximum."""
        return self.mean + self.factor @ rng.standard_normal(len(self.mean))


@dataclass(frozen=True)
class _FixedStart:
    position: Array

    def __call__(self, rng: np.random.Generator) -> Array:
        """Return the position; nothing is drawn."""
        return self.position


def find_maximum(
    model: HyperparameterTarget, *, with_covariance: bool, deadline: float | None = None
) -> Maximum:
    """Find the highest of the maxima next to the model's starts, and its Gaussian if wanted.

    The searches, though not the Hessian, end at ``deadline``, in seconds of `time.monotonic`.

    Raises
    ------
    NumericalError
        If the evidence can be computed at none of the places where they end.
    """
    found = [_search(model, start, deadline) for start in model.starts]
    point, is_converged = max(found, key=lambda end: end[0].log_density)
    if not np.isfinite(point.log_density):
        raise NumericalError(NO_EVIDENCE)
    covariance = _covariance(model, point) if with_covariance else None
    return Maximum(point, covariance, is_converged)


def _search(
    model: HyperparameterTarget, start: Array, deadline: float | None
) -> tuple[Point, bool]:
    """Climb from a start; where the climb ends, and whether it converged."""
    points: dict[bytes, Point] = {}

    def objective(theta: Array) -> tuple[float, Array]:
        point = model.evaluate(theta.copy())
        points.clear()
        points[theta.tobytes()] = point
        if not np.isfinite(point.log_density):
            return 1e10, np.zeros_like(theta)
        return -point.log_density, -point.gradient

    def stop_when_late(intermediate_result: object) -> None:
        if deadline is not None and time.monotonic() > deadline:
            raise StopIteration

    result = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=stop_when_late,
        options={"maxiter": 100, "ftol": 1e-9},
    )
    return points.get(result.x.tobytes()) or model.evaluate(result.x), bool(result.success)


def _covariance(model: HyperparameterTarget, point: Point) -> Array:
    """Inverse of the negative Hessian at the maximum, no wider than the prior in any direction."""
    p = len(point.position)
    hessian = np.empty((p, p))
    for k, shift in enumerate(_HESSIAN_STEP * np.eye(p)):
        above = model.evaluate(point.position + shift).gradient
        below = model.evaluate(point.position - shift).gradient
        hessian[k] = (below - above) / (2.0 * _HESSIAN_STEP)
    # In units of the prior's standard deviations the posterior is at least as narrow as the prior.
    std = model.prior.std
    scaled = 0.5 * (hessian + hessian.T) * np.outer(std, std)
    eigenvalues, vectors = np.linalg.eigh(scaled)
    inverse = (vectors / np.maximum(eigenvalues, 1.0)) @ vectors.T
    return np.asarray(inverse * np.outer(std, std))


def make_sampler(
    inference: str, model: HyperparameterTarget, maximum: Maximum, recorder: Record
) -> HMC | NUTS | Metropolis:
    """Make the jittered HMC, the NUTS or the random walk that warm-up then tunes."""
    assert maximum.covariance is not None
    mass = mass_from_covariance(maximum.covariance)
    start = _GaussianStart(maximum.point.position, mass.factor)
    tuning = HamiltonianTuning(_FIRST_STEP_SIZE, mass)
    if inference == "nuts":
        return NUTS(model, start, recorder, tuning)
    if inference == "metropolis":
        return Metropolis(model, start, recorder, tuning)
    return HMC(model, start, recorder, tuning)


def paper_hmc(
    model: HyperparameterTarget, recorder: Record, *, n_leapfrog: int, step_size: float
) -> HMC:
    """Make the paper's HMC: fixed steps, unit mass, fixed start."""
    start = _FixedStart(model.starts[0])
    tuning = HamiltonianTuning(step_size, unit_mass(len(start.position)))
    return HMC(model, start, recorder, tuning, n_leapfrog=n_leapfrog, path_length=None)
