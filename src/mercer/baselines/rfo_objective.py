r"""The objective of random frequency optimisation, section 4.3 of Oliva et al.

    sum_i loss(f(x_i), y_i) + penalty / 2 (|b|^2 + |b_0|^2)
    f(x) = b_0 + F^(-1/2) sum_k nu_k^2 sum_j (b_kj^cos cos(omega_kj'x) + b_kj^sin sin(omega_kj'x))

over b_0, b, nu and the parameters of the frequencies (`mercer.baselines.frequency_mixture`). The
paper has no F^(-1/2), which nu takes up, and the logistic loss; others are put in its place here,
with several functions f where there are several classes. One evaluation costs O(n F (d + q)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.baselines.frequency_mixture import FrequencyMixture
from mercer.baselines.losses import Loss
from mercer.baselines.ridge_path import blocks_of
from mercer.features.products import fill_features

__all__ = ["FrequencyObjective", "Functions"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Functions:
    """Linear functions of features, as `mercer.baselines.ridge_path.fitted_values` takes them.

    Attributes
    ----------
    frequencies : ndarray of shape (F, d)
    coef : ndarray of shape (1 + 2 F, q)
        Intercepts first; of features over the root of F, nu included.
    """

    frequencies: Array
    coef: Array


@dataclass(frozen=True, eq=False)
class FrequencyObjective:
    """The objective on given rows.

    The vector of parameters holds the coefficients (1 + 2 F, q) row by row, the intercepts first,
    then nu (K,), then those of the mixture.

    Attributes
    ----------
    mixture : FrequencyMixture
    Z : ndarray of shape (n, d)
        Standardised rows.
    targets : ndarray of shape (n, q)
    loss : callable
        Of `mercer.baselines.losses`.
    penalty : float
    """

    mixture: FrequencyMixture
    Z: Array
    targets: Array
    loss: Loss
    penalty: float

    def start(self, distance: float) -> Array:
        """Return coefficients 0, nu 1, and the start of the mixture."""
        n_coef = (1 + 2 * self.mixture.n_frequencies) * self.targets.shape[1]
        ones = np.ones(self.mixture.n_components)
        return np.concatenate([np.zeros(n_coef), ones, self.mixture.start(distance)])

    def functions(self, theta: Array) -> Functions:
        """Return the functions f."""
        b, nu, spectral = self._parts(theta)
        coef = b.copy()
        coef[1:] *= self._weights(nu)
        return Functions(self.mixture.frequencies(spectral), coef)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the objective and its gradient."""
        b, nu, spectral = self._parts(theta)
        functions, weights = self.functions(theta), self._weights(nu)
        value = 0.5 * self.penalty * float(np.vdot(b, b))
        moments, of_frequencies = np.zeros_like(b), np.zeros_like(functions.frequencies)
        for rows in blocks_of(len(self.Z), len(b)):
            value += self._add(functions, rows, moments, of_frequencies)
        of_b = moments.copy()
        of_b[1:] *= weights
        of_b += self.penalty * b
        by_component = (b[1:] * moments[1:]).reshape(self.mixture.n_components, -1).sum(axis=1)
        of_nu = 2.0 * nu * by_component
        of_spectral = self.mixture.pull_back(spectral, of_frequencies)
        return value, np.concatenate([of_b.ravel(), of_nu, of_spectral])

    def _add(
        self, functions: Functions, rows: slice, moments: Array, of_frequencies: Array
    ) -> float:
        """Add a block of rows to sums of features times residuals, and to d/d omega."""
        Z, coef = self.Z[rows], functions.coef
        Phi = np.empty((2 * len(functions.frequencies), len(Z)))
        fill_features(functions.frequencies, Z, Phi)
        value, residuals = self.loss(coef[0] + Phi.T @ coef[1:], self.targets[rows])
        moments[0] += residuals.sum(axis=0)
        moments[1:] += Phi @ residuals
        cosines, sines = Phi[0::2], Phi[1::2]
        of_phase = (coef[2::2] @ residuals.T) * cosines - (coef[1::2] @ residuals.T) * sines
        of_frequencies += of_phase @ Z
        return value

    def _weights(self, nu: Array) -> Array:
        """nu_k^2 of each feature: shape (2 F, 1)."""
        n_each = 2 * self.mixture.n_frequencies // self.mixture.n_components
        return np.repeat(nu**2, n_each)[:, np.newaxis]

    def _parts(self, theta: Array) -> tuple[Array, Array, Array]:
        q, K = self.targets.shape[1], self.mixture.n_components
        end = (1 + 2 * self.mixture.n_frequencies) * q
        return theta[:end].reshape(-1, q), theta[end : end + K], theta[end + K :]
