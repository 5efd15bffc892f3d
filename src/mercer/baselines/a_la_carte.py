"""`AlaCarteRegressor`: the kernel of a GP as a mixture, by maximum likelihood of its features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.baselines.base import (
    FrequencyMixture,
    FunctionRegressor,
    draw_mixture,
    equations_of,
    groups_of,
    solve_allowed,
    some_rows,
    typical_distance,
)
from mercer.baselines.paths import (
    Deadline,
    Minimum,
    NormalEquations,
    features_of,
    fitted_values,
    minimise,
    normal_equations,
    split_rows,
)
from mercer.baselines.rfo import checked_counts
from mercer.estimation.run import check_count, check_positive
from mercer.numerics.cholesky import factorise, invert_factored, solve_factored
from mercer.random import entropy_of, stream

__all__ = ["AlaCarteRegressor", "SpectralEvidence"]


# The likelihood that A la Carte climbs: that of a GP whose kernel is a mixture, by its features.
#
#     y ~ N(0, Phi'Phi + s2 I),  Phi (2F, n): nu_k F^(-1/2) cos(omega_kj'x_i), .. sin(omega_kj'x_i)
#
# which is that of Bayesian linear regression on Phi with coefficients N(0, I). With A = Phi Phi' +
# s2 I, m = A^-1 Phi y and r = y - Phi'm
#
#     log p = -(|r|^2 / s2 + |m|^2 + log |A| + (n - 2F) log s2 + n log 2 pi) / 2
#     d log p / d Phi = m r' / s2 - A^-1 Phi
#     d log p / d log s2 = (|r|^2 / s2 - n + 2F - s2 tr A^-1) / 2
#
# The vector of parameters holds log nu (K,), log s2, then those of the frequencies
# (`mercer.baselines.base`). One evaluation costs O(n F^2).

Array = NDArray[np.float64]

_START_NOISE_VARIANCE = 0.1
_LOG_NOISE_VARIANCE = (math.log(1e-8), math.log(10.0))
_LOG_WEIGHT = (-7.0, 4.0)


@dataclass(frozen=True, eq=False)
class SpectralEvidence:
    """The log likelihood of given rows."""

    mixture: FrequencyMixture
    Z: Array  # (n, d), standardised
    y: Array  # (n,), scaled to mean about 0 and standard deviation about 1

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

    @np.errstate(over="ignore", invalid="ignore")  # of a step that is too long
    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the negative log likelihood, in nats, and its gradient."""
        K, n = self.mixture.n_components, len(self.y)
        s2, W = self.noise_variance(theta), self.frequencies(theta)
        Phi = features_of(W, self.Z) * self.weights(theta)[:, np.newaxis]
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


_STEP_OF_NOISE = 10.0  # Where all rows make the equations singular at the noise variance found.
_N_STEPS_OF_NOISE = 12


@dataclass(kw_only=True, eq=False, repr=False)
class AlaCarteRegressor(FunctionRegressor):
    """GP regression whose spectral density, a mixture of normals, is optimised: A la Carte.

    The kernel is sum_k nu_k^2 exp(-|S_k t|^2 / 2) cos(mu_k't), by the features of frequencies
    S_k w_kj + mu_k with unit draws w_kj that are made once. The likelihood of the GP with these
    features is climbed over nu_k, the scales of S_k (diagonal), mu_k and the noise variance.
    Numbers of components and of frequencies of each are chosen by cross-validation on the training
    rows.

    Parameters
    ----------
    components : sequence of int, default=(2, 4)
        Numbers of components that are tried.
    frequencies_each : sequence of int, default=(24, 96)
        Numbers of frequencies of each component that are tried.
    n_folds : int, default=3
        Number of cross-validation folds; the score is the squared error.
    selection_rows : int, default=1000
        Rows that the settings are chosen on, at most.
    likelihood_rows : int, default=4000
        Rows whose likelihood is climbed, at most; coefficients are from all rows.
    max_iter : int, default=60
        Steps of L-BFGS, of each fit.
    max_seconds : float or None, default=None
        Stop after a whole step once so much time has passed, half of it for cross-validation;
        ``notes_`` says so, and the result is then not the same each time.

    Attributes
    ----------
    n_components_, n_each_ : int
        What was chosen.
    cv_errors_ : ndarray of shape (n_settings,)
        Mean squared errors of the rows held out, of the standardised target, for each number of
        components with each number of frequencies.
    weights_ : ndarray of shape (n_components_,)
        nu_k, of the standardised target.
    noise_variance_ : float
        Noise variance of the standardised target: ten times larger, once or more often, where all
        rows together make the equations singular.
    log_likelihood_ : float
        In nats, of the rows that it was climbed on.
    frequencies_ : ndarray of shape (F, d)
        Optimised; in radians per unit of the standardised inputs.
    coef_ : ndarray of shape (2 F,)
        Coefficients of the cosine and the sine of each frequency in turn, over the root of F.
    intercept_ : float
        Constant term, in units of the standardised target.
    n_iter_ : int
        Steps of L-BFGS of the last climb.
    notes_ : tuple of str
        What else a user should know of this fit, a line each.

    See Also
    --------
    RFOClassifier : frequencies by a logistic loss.

    Notes
    -----
    As [2]_ in its form with a mixture of normals, with plain random features in place of
    Fastfood's; cross-validated as in section 4.2 of [1]_. A step costs O(n F^2).

    References
    ----------
    .. [1] J. B. Oliva et al., Bayesian nonparametric kernel-learning, AISTATS (2016).
    .. [2] Z. Yang, A. J. Smola, L. Song and A. G. Wilson, A la Carte - learning fast kernels,
       AISTATS (2015).

    Examples
    --------
    >>> X = np.linspace(-3, 3, 60)[:, np.newaxis]
    >>> model = AlaCarteRegressor(frequencies_each=(12,), random_state=0)
    >>> model = model.fit(X, np.sin(2 * X[:, 0]))
    >>> bool(abs(model.predict([[0.5]])[0] - np.sin(1.0)) < 0.01)
    True
    """

    components: Sequence[int] = (2, 4)
    frequencies_each: Sequence[int] = (24, 96)
    n_folds: int = 3
    selection_rows: int = 1000
    likelihood_rows: int = 4000
    max_iter: int = 60
    standardize: str | bool = "auto"
    random_state: object = None
    max_seconds: float | None = None

    def _learn(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None) -> None:
        sizes, n_folds, n_kept, n_rows = self._arguments()
        entropy, late = entropy_of(self.random_state), Deadline.after(self.max_seconds)
        soon = late if self.max_seconds is None else Deadline.after(0.5 * self.max_seconds)
        rows, u = self._checked_numbers(X, y)
        some = some_rows(stream(entropy, "rows"), len(u), n_kept)
        Z, v = self.standardizer_.transform(rows[some]), u[some]
        seed = int(stream(entropy, "folds").integers(2**31))
        folds = split_rows(len(v), n_folds, seed, groups_of(groups, len(u), some))
        squares = np.zeros(len(sizes))
        for index, (train, test) in product(range(len(sizes)), folds):
            evidence, minimum = self._climb(Z[train], v[train], entropy, sizes, index, soon)
            W = evidence.frequencies(minimum.theta)
            equations = normal_equations(W, [(Z[train], v[train])])
            coef, _ = _coefficients(evidence, minimum.theta, equations)
            squares[index] += ((v[test] - fitted_values(W, coef, Z[test])) ** 2).sum()
        self.cv_errors_ = squares / len(v)
        best = int(np.argmin(self.cv_errors_))
        self.n_components_, self.n_each_ = sizes[best]
        some = some_rows(stream(entropy, "rows", 1), len(u), n_rows)
        Z = self.standardizer_.transform(rows[some])
        evidence, minimum = self._climb(Z, u[some], entropy, sizes, best, late)
        theta = minimum.theta
        self.frequencies_ = evidence.frequencies(theta)
        self.weights_ = np.exp(theta[: evidence.mixture.n_components])
        equations = equations_of(self.frequencies_, self.standardizer_, rows, u)
        coef, self.noise_variance_ = _coefficients(evidence, theta, equations)
        self.intercept_, self.coef_ = float(coef[0]), coef[1:]
        self.log_likelihood_, self.n_iter_ = -minimum.value, minimum.n_steps
        cut = f"stopped by max_seconds after {self.n_iter_} steps of L-BFGS"
        self.notes_ = (cut,) if minimum.is_cut_short else ()

    def _arguments(self) -> tuple[list[tuple[int, int]], int, int, int]:
        """Check all arguments; return sizes (K, D), folds, and rows for the two climbs."""
        n_folds, n_kept = self._checked_selection()
        counts = checked_counts("components", self.components)
        sizes = list(product(counts, checked_counts("frequencies_each", self.frequencies_each)))
        if self.max_seconds is not None:
            check_positive("max_seconds", self.max_seconds)
        check_count("max_iter", self.max_iter, 1)
        return sizes, n_folds, n_kept, check_count("likelihood_rows", self.likelihood_rows, 2)

    def _climb(
        self, Z: Array, u: Array, entropy: int, sizes: Sequence[tuple[int, int]], index: int,
        deadline: Deadline,
    ) -> tuple[SpectralEvidence, Minimum]:  # fmt: skip
        """Climb with the index-th size: its draws are the same for all rows."""
        rng = stream(entropy, "start", index)
        mixture = draw_mixture(rng, *sizes[index], Z.shape[1], False)
        distance = typical_distance(stream(entropy, "scales"), Z, "euclidean")
        evidence = SpectralEvidence(mixture, Z, u)
        start = evidence.start(distance)
        return evidence, minimise(evidence, start, self.max_iter, deadline, evidence.bounds())


def _coefficients(
    evidence: SpectralEvidence, theta: Array, equations: NormalEquations
) -> tuple[Array, float]:
    """Posterior mean of intercept (flat prior) and coefficients, and the noise variance used."""
    weights = np.append(1.0, evidence.weights(theta))
    weighted = NormalEquations(
        equations.gram * np.outer(weights, weights), equations.moments * weights
    )
    s2 = evidence.noise_variance(theta)
    allowed = [s2 * _STEP_OF_NOISE**k for k in range(_N_STEPS_OF_NOISE)]
    coef, used = solve_allowed(weighted, allowed)
    return coef * weights, used
