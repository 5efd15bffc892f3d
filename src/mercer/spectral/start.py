"""Where chains start: a scale for each input from a few steps up the evidence.

With frequencies W0_jl c_l, W0 drawn once, the evidence of some rows is a smooth function of
(log c, log ridge). A few steps of L-BFGS-B from c = 1, kept within `BOUNDS`, give scales that
chains start around. To convergence they would overfit; an input that is dropped altogether would
not come back; but a periodic one may need frequencies far above those of the start.

**Gradient.** With F = [Phi, H], r = y - F mu_n and D = (a_n / b_n) r mu_n' - F Lambda_n^-1,

    dL / dW_j     = sum_i (D_i,sin_j C_ij - D_i,cos_j S_ij) x_i
    dL / dlog c_l = sum_j W_jl dL/dW_jl
    dL / dlog ridge = M - ridge / 2 (tr_phi Lambda_n^-1 + (a_n / b_n) |mu_n,phi|^2)

where C_ij and S_ij are the scaled cosine and sine of frequency j, and "phi" are the features alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.optimize import minimize

from mercer.errors import NumericalError
from mercer.spectral.model import RegressionModel, coefficients
from mercer.spectral.probe import design

__all__ = ["BOUNDS", "PENALTY", "EvidenceOfScales", "Scales", "find_scales"]

Array = NDArray[np.float64]

BOUNDS = (1.0 / 4.0, 16.0)
_N_FREQUENCIES = 128
_MOST_STEPS = 15
PENALTY = 0.05  # times |log c|^2: scales that the data say nothing of stay where they are


@dataclass(frozen=True)
class Scales:
    """Standard deviation of the frequencies of each input, and the ridge that goes with it.

    ``log_evidence`` is that of the rows they were found on, in nats; NaN before the search.
    """

    scales: Array
    ridge: float
    log_evidence: float = math.nan


@dataclass(frozen=True, eq=False)
class EvidenceOfScales:
    """Log evidence of (log c, log ridge) and its gradient.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    frequencies : ndarray of shape (M, d)
        W0.
    model : RegressionModel
        For n rows.
    linear_precision : float
    """

    X: Array
    y: Array
    frequencies: Array
    model: RegressionModel
    linear_precision: float

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Evaluate at theta = (log c_1, .., log c_d, log ridge), both in nats.

        Raises
        ------
        NumericalError
            If the features are collinear to working precision.
        """
        model, m2 = self.model, 2 * len(self.frequencies)
        W, ridge = self.frequencies * np.exp(theta[:-1]), float(np.exp(theta[-1]))
        F = design(W, self.X, model.n_linear > 0)
        bordered = np.concatenate([F, self.y[np.newaxis]])
        prior = model.prior_precisions(m2, ridge, self.linear_precision)
        law = coefficients(model, bordered @ bordered.T, prior)
        inverse, info = lapack.dpotri(law.factor, lower=1)
        if info != 0:
            raise NumericalError(f"the inverse of a matrix of order {len(F)} failed ({info})")
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        gain = model.posterior_shape / law.rate
        residual = self.y - law.mean @ F
        D = gain * np.outer(law.mean[:m2], residual) - inverse[:m2] @ F
        weights = D[1::2] * F[0:m2:2] - D[0::2] * F[1:m2:2]
        by_scale = np.sum(W * (weights @ self.X), axis=0)
        mu = law.mean[:m2]
        by_ridge = len(W) - 0.5 * ridge * (np.trace(inverse[:m2, :m2]) + gain * float(mu @ mu))
        return law.log_evidence, np.append(by_scale, by_ridge)


def find_scales(
    rng: np.random.Generator,
    X: Array,
    y: Array,
    model: RegressionModel,
    first: Scales,
    linear_precision: float,
    penalty: float = PENALTY,
) -> Scales:
    """Take a few steps up the evidence of rows X (n, d), y (n,) from the first scales.

    ``penalty`` times |log c|^2 is taken from it, in nats.
    """
    d = X.shape[1]
    W0 = rng.standard_normal((_N_FREQUENCIES, d)) * first.scales
    evidence = EvidenceOfScales(X, y, W0, model, linear_precision)

    def loss(theta: Array) -> tuple[float, Array]:
        try:
            value, gradient = evidence.value_and_gradient(theta)
        except NumericalError:
            return 1e300, np.zeros(d + 1)
        pull = np.append(theta[:-1], 0.0)
        return penalty * float(pull @ pull) - value, 2.0 * penalty * pull - gradient

    start = np.append(np.zeros(d), np.log(first.ridge))
    bounds = [(np.log(BOUNDS[0]), np.log(BOUNDS[1]))] * d + [(np.log(1e-8), np.log(1e2))]
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _MOST_STEPS}
    )
    scales, ridge = first.scales * np.exp(found.x[:-1]), float(np.exp(found.x[-1]))
    pull = found.x[:-1]
    return Scales(scales, ridge, penalty * float(pull @ pull) - float(found.fun))
