"""What the learned rows answer: the prediction methods of the estimator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from mercer.basis.arrays import Array
from mercer.basis.learner import Learner, Running
from mercer.basis.predict import noise_variances
from mercer.basis.results import (
    diagnose_population,
    log_evidence_error,
    population_draws,
    typical_particle,
)
from mercer.basis.stream_estimator import StreamEstimator
from mercer.estimation.number_answers import NumberAnswers
from mercer.estimation.options import check_count
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws
from mercer.posterior.predictive import check_level
from mercer.posterior.student_predictive import StudentMixture
from mercer.random import entropy_of

__all__ = ["Prequential", "StreamRegressor"]


@dataclass(frozen=True, eq=False)
class Prequential:
    """Rows, each predicted before it was learned.

    Attributes
    ----------
    mean, std : ndarray of shape (m,)
        In units of the target.
    lower, upper : ndarray of shape (m,) or None
        Of the central interval, where one was asked for.
    log_density : ndarray of shape (m,)
        Predictive log density of the target, in nats; NaN where there was none.
    n_centres : ndarray of shape (m,)
        Mean number of centres.
    """

    mean: Array
    std: Array
    lower: Array | None
    upper: Array | None
    log_density: Array
    n_centres: Array


class StreamRegressor(NumberAnswers[StudentMixture], StreamEstimator[Running]):
    """Base of `SequentialKernelRegressor`: all that needs the learned rows only."""

    _learner: Learner

    def latent(self, X: ArrayLike) -> tuple[Array, Array]:
        """Posterior mean and standard deviation of the function, without the noise of a target.

        Parameters
        ----------
        X : array or frame of shape (m, d)

        Returns
        -------
        mean, std : ndarray of shape (m,)
            In units of the target.
        """
        laws = self._latent_laws(X)
        mean = np.concatenate([law.mean for law in laws])
        return mean, np.concatenate([law.std for law in laws])

    def latent_interval(self, X: ArrayLike, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of the function, without the noise of a target.

        Parameters
        ----------
        X : array or frame of shape (m, d)
        level : float, default=0.9
            Its probability, in (0, 1).

        Returns
        -------
        lower, upper : ndarray of shape (m,)
            In units of the target.
        """
        check_level(level)
        ends = [law.interval(level) for law in self._latent_laws(X)]
        lower, upper = (np.concatenate(side) for side in zip(*ends, strict=True))
        return lower, upper

    def sample_y(
        self,
        X: ArrayLike,
        n_draws: int = 1,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> Array:
        """Draw new targets of each row, independent given the particle: (n_draws, m)."""
        check_is_fitted(self)
        check_count("n_draws", n_draws, 1)
        rng = np.random.default_rng(entropy_of(random_state))
        Z = self._standardized(X)
        first = self._law(Z[:1])
        # All rows of a draw come from the same particle, in whatever block they are.
        drawn = rng.choice(len(first.weights), size=n_draws, p=first.weights)
        parts = [self._law(Z[rows]).sample(rng, n_draws, drawn) for rows in self._blocks(Z)]
        return np.concatenate(parts, axis=1)

    @property
    def posterior_(self) -> Draws:
        """Particles as weighted draws."""
        running = self._ready()
        return population_draws(running.bank, running.state, self._learner.entropy)

    @property
    def diagnostics_(self) -> Diagnostics:
        """Effective sizes of the population, and warnings in words."""
        return diagnose_population(self.posterior_, self._ready().state)

    @property
    def centres_(self) -> Array:
        """Centres of a typical particle, (k, d), in units of the inputs.

        Its number of centres is nearest to the mean; of those that are, it has the highest target.
        """
        running = self._ready()
        best = running.state.states[int(np.argmax(running.state.scores))]
        i = typical_particle(best.particles)
        members = best.particles.members[i, : best.particles.size[i]]
        return running.raw_inputs(best.centres[members - running.bank.filters[0].levels.n_mean])

    @property
    def candidates_(self) -> Array:
        """Inputs that may be centres, (r, d), in their units."""
        running = self._ready()
        state = running.state.states[int(np.argmax(running.state.scores))]
        return running.raw_inputs(state.centres[: state.statistics.n_candidates])

    @property
    def n_rows_held_(self) -> int:
        """Rows that the model, and a file of it, holds."""
        check_is_fitted(self)
        running = self._learner.running
        if running is None:
            return len(self._learner.held_y)
        first = running.state.states[0]
        return min(first.n_seen, len(first.rows.y))

    @property
    def n_centres_(self) -> float:
        """Posterior mean of the number of centres."""
        state = self._ready().state
        each = [np.exp(s.particles.log_weight) @ s.particles.size for s in state.states]
        return state.mean(np.array(each))

    @property
    def n_outliers_(self) -> int:
        """Rows set aside, since their targets were outliers."""
        return self._ready().state.surprises.n_set_aside

    @property
    def noise_std_(self) -> float:
        """Posterior mean of the standard deviation of the noise, in units of the target."""
        running = self._ready()
        each = []
        for filter_, state in zip(running.bank.filters, running.state.states, strict=True):
            variance, degrees = noise_variances(filter_, state)
            factor = _root_inverse_chi(degrees)
            each.append(float(np.exp(state.particles.log_weight) @ np.sqrt(variance)) * factor)
        return running.state.mean(np.array(each)) * self.target_scale_

    @property
    def log_evidence_(self) -> float:
        """Log evidence of the rows that were learned, in nats; its exponential is unbiased.

        Raises
        ------
        AttributeError
            Where rows are forgotten or weighted as printed: there is none.
        """
        state = self._ready().state
        self._check_has_evidence()
        first = state.states[0]
        return first.log_evidence - first.n_seen * math.log(self.target_scale_)

    @property
    def log_evidence_se_(self) -> float:
        """Standard error of the log evidence, in nats, to first order."""
        state = self._ready().state
        self._check_has_evidence()
        return log_evidence_error(state)

    @property
    def standardizer_(self) -> Any:
        """How the inputs are standardised."""
        return self._ready().scales.standardizer

    @property
    def target_centre_(self) -> float:
        """What is subtracted from the target, in its units."""
        return self._ready().scales.target.centre

    @property
    def target_scale_(self) -> float:
        """What the target is then divided by."""
        return self._ready().scales.target.scale

    def _check_has_evidence(self) -> None:
        settings = self._learner.settings
        if settings.forgetting != (1.0,) or settings.weighting != "exact":
            raise AttributeError(
                "there is no evidence where rows are forgotten or weighed as printed"
            )

    def _latent_laws(self, X: ArrayLike) -> list[StudentMixture]:
        """Laws of the function at blocks of rows, without the noise of a target."""
        check_is_fitted(self)
        Z, running = self._standardized(X), self._ready()
        return [running.law(Z[rows], has_noise=False) for rows in self._blocks(Z)]

    def _law(self, Z: Array) -> StudentMixture:
        return self._ready().law(Z)

    def _expected(self, Z: Array) -> Array:
        return self._law(Z).mean


def _root_inverse_chi(degrees: float) -> float:
    """Mean of the root of degrees over a chi-square of them: 1 where these are infinite."""
    from scipy.special import gammaln

    if not np.isfinite(degrees):
        return 1.0
    if degrees <= 1.0:
        return math.inf
    log_ratio = gammaln(0.5 * (degrees - 1.0)) - gammaln(0.5 * degrees)
    return float(np.sqrt(0.5 * degrees) * np.exp(log_ratio))
