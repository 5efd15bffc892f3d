r"""The likelihood that A la Carte climbs: that of a GP whose kernel is a mixture, by its features.

    y ~ N(0, Phi'Phi + s2 I),  Phi (2F, n): nu_k F^(-1/2) cos(omega_kj'x_i), .. sin(omega_kj'x_i)

which is that of Bayesian linear regression on Phi with coefficients N(0, I). With A = Phi Phi' +
s2 I, m = A^-1 Phi y and r = y - Phi'm

    log p = -(|r|^2 / s2 + |m|^2 + log |A| + (n - 2F) log s2 + n log 2 pi) / 2
    d log p / d Phi = m r' / s2 - A^-1 Phi
    d log p / d log s2 = (|r|^2 / s2 - n + 2F - s2 tr A^-1) / 2

The vector of parameters holds log nu (K,), log s2, then those of the frequencies
(`mercer.baselines.frequency_mixture`). One evaluation costs O(n F^2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.baselines.frequency_mixture import FrequencyMixture
from mercer.features.products import fill_features
from mercer.numerics.cholesky import factorise, invert_factored, solve_factored

__all__ = ["SpectralEvidence"]

Array = NDArray[np.float64]

_START_NOISE_VARIANCE = 0.1
_LOG_NOISE_VARIANCE = (math.log(1e-8), math.log(10.0))
_LOG_WEIGHT = (-7.0, 4.0)


@dataclass(frozen=True, eq=False)
class SpectralEvidence:
    """The log likelihood of given rows.

    Attributes
    ----------
    mixture : FrequencyMixture
    Z : ndarray of shape (n, d)
        Standardised rows.
    y : ndarray of shape (n,)
        Of mean about 0 and standard deviation about 1.
    """

    mixture: FrequencyMixture
    Z: Array
    y: Array

    def start(self, distance: float) -> Array:
        """Return weights 1, a noise variance of a tenth, and the start of the mixture."""
        first = np.append(np.zeros(self.mixture.n_components), math.log(_START_NOISE_VARIANCE))
        return np.append(first, self.mixture.start(distance))

    def bounds(self) -> list[tuple[float | None, float | None]]:
        """Return limits of every parameter: the matrix A is to stay positive definite."""
        K = self.mixture.n_components
        n_free = len(self.mixture.start(1.0))
        return [_LOG_WEIGHT] * K + [_LOG_NOISE_VARIANCE] + [(None, None)] * n_free

    def weights(self, theta: Array) -> Array:
        """nu of each feature, shape (2 F,)."""
        K = self.mixture.n_components
        return np.repeat(np.exp(theta[:K]), 2 * self.mixture.n_frequencies // K)

    def noise_variance(self, theta: Array) -> float:
        """s2, in units of the squared target."""
        return float(np.exp(theta[self.mixture.n_components]))

    def frequencies(self, theta: Array) -> Array:
        """Return omega, of shape (F, d)."""
        return self.mixture.frequencies(theta[self.mixture.n_components + 1 :])

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the negative log likelihood, in nats, and its gradient.

        Raises
        ------
        NumericalError
            If A is not positive definite to working precision.
        """
        K, n = self.mixture.n_components, len(self.y)
        s2, W = self.noise_variance(theta), self.frequencies(theta)
        Phi = np.empty((2 * len(W), n))
        fill_features(W, self.Z, Phi)
        Phi *= self.weights(theta)[:, np.newaxis]
        A = np.asfortranarray(Phi @ Phi.T)
        A[np.diag_indices(len(A))] += s2
        L = factorise(A)
        m = solve_factored(L, Phi @ self.y)
        r = self.y - m @ Phi
        rr = float(r @ r) / s2
        log_det = 2.0 * float(np.log(L.diagonal()).sum()) + (n - len(A)) * math.log(s2)
        log_p = -0.5 * (rr + float(m @ m) + log_det + n * math.log(2.0 * math.pi))
        lower = np.tril(invert_factored(L))
        inverse = lower + np.tril(lower, -1).T
        of_Phi = np.outer(m, r / s2) - inverse @ Phi
        of_noise = 0.5 * (rr - n + len(A) - s2 * float(np.trace(inverse)))
        of_weights = (of_Phi * Phi).sum(axis=1).reshape(K, -1).sum(axis=1)
        of_phase = of_Phi[1::2] * Phi[0::2] - of_Phi[0::2] * Phi[1::2]
        of_mixture = self.mixture.pull_back(theta[K + 1 :], of_phase @ self.Z)
        return -log_p, -np.concatenate([of_weights, [of_noise], of_mixture])
