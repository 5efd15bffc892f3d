"""What learned rows answer: the methods that both estimators share, and those of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.basis.ensemble import Ensemble, EnsembleState, Outlook, mean_function, noise_variances
from mercer.basis.learner import AnyRunning, Learner, RowLearner, Running
from mercer.basis.length_scales import LengthScaleGrid
from mercer.basis.model import Array, Particles, variance_of_families
from mercer.basis.settings import known_runs
from mercer.errors import INSTALL, DataError, MercerWarning, warn_user
from mercer.estimation.base import KernelEstimator
from mercer.estimation.numbers import NumberPredictions
from mercer.posterior.diagnostics import Diagnostics, diagnose
from mercer.posterior.draws import Draws, Table
from mercer.posterior.predictive import StudentMixture, check_level
from mercer.random import stream

__all__ = [
    "RIVER_MISSING", "Prequential", "SparseSummary", "StreamEstimator", "StreamRegressor",
    "diagnose_population", "evidence_variance", "judge_ancestry",
    "population_draws", "predict_then_learn", "summarise",
]  # fmt: skip


# Weighted draws and diagnostics of a population; its mean on few kernels.


_MONITORED = ("n_centres", "noise_std", "lengthscale")
# Fewer distinct ancestors over fifty rows than this share of the particles are pointed out.
_FEWEST_ANCESTORS = 0.02


def population_draws(ensemble: Ensemble, state: EnsembleState, entropy: int) -> Draws:
    """Return all particles of all filters as weighted draws.

    Variables, each of shape (1, particles): "n_centres"; "noise_std" and "coef_std" (prior standard
    deviation of a coefficient), of the standardised target; "lengthscale", in standardised units.
    """
    rng = stream(entropy, "coefficients")
    columns: dict[str, list[Array]] = {name: [] for name in (*_MONITORED, "coef_std")}
    logs, targets = [], []
    for filter_, each, share in zip(ensemble.filters, state.states, state.log_weights, strict=True):
        particles = each.particles
        variance, degrees = noise_variances(filter_, each)
        if np.isfinite(degrees):  # scaled inverse chi-square
            variance = variance * degrees / rng.chisquare(degrees, len(variance))
        noise = np.sqrt(variance)
        columns["n_centres"].append(particles.size.astype(np.float64))
        columns["noise_std"].append(noise)
        columns["lengthscale"].append(
            filter_.grid.lengthscales[particles.level % filter_.grid.n_widths]
        )
        columns["coef_std"].append(noise * np.sqrt(particles.scale))
        logs.append(share + particles.log_weight)
        targets.append(particles.log_target)
    variables = {name: np.concatenate(parts)[np.newaxis] for name, parts in columns.items()}
    stats = {"log_density": np.concatenate(targets)[np.newaxis]}
    return Draws(variables, stats, {}, _MONITORED, np.concatenate(logs)[np.newaxis])


def diagnose_population(draws: Draws, state: EnsembleState) -> Diagnostics:
    """Judge a population: effective sizes by the weights, and how many ancestors are left."""
    return judge_ancestry(draws, state.states, ", or forgetting if the stream changes")


def judge_ancestry(draws: Draws, states: Sequence[Any], remedy: str) -> Diagnostics:
    """Judge populations: effective sizes by the weights, and how many ancestors are left.

    ``remedy`` says what else to try where few are left; may be empty.
    """
    found = diagnose(draws)
    fewest = min(each.n_ancestors / len(each.particles.size) for each in states)
    if fewest >= _FEWEST_ANCESTORS:
        return found
    text = (
        f"the particles come from {100.0 * fewest:.2g} % of those fifty rows earlier: the rows "
        f"surprised them. Try more particles (n_particles){remedy}."
    )
    return replace(found, warnings=(*found.warnings, text))


def evidence_variance(state: Any) -> float:
    """Variance of the log evidence of a filter, in square nats, to first order."""
    return float(max(state.evidence_variance + variance_of_families(state.particles, 1), 0.0))


def typical_particle(particles: Particles) -> int:
    """Position of the particle to show: of a mean size, and of those with the highest target."""
    mean = np.exp(particles.log_weight) @ particles.size
    distances = np.abs(particles.size - mean)
    is_near = distances == distances.min()
    return int(np.argmax(np.where(is_near, particles.log_target, -np.inf)))


# The posterior mean on a few kernels: greedy projection onto the candidates.
#
# Inference keeps its dense prior; only what is shown is made sparse. Kernels are taken one after
# the other, each the one that lowers most the squared distance to the posterior mean over the
# buffered rows, all coefficients fitted anew (orthogonal matching pursuit).

# Length scales with less of the posterior than this are not tried.
_LEAST_SHARE = 0.05
_DEPENDENT = 1e-10


@dataclass(frozen=True, eq=False)
class SparseSummary:
    """A sum of a few kernels.

    Attributes
    ----------
    centres : ndarray of shape (k, d)
        In units of the inputs.
    coef : ndarray of shape (k,)
        In units of the target.
    mean_coef : ndarray of shape (1,) or (1 + d,)
        Coefficients of the constant, then of the standardised inputs; in units of the target.
    lengthscale : float
        In standardised units.
    scaling : ndarray of shape (d,)
        Factors of the standardised inputs in the kernel.
    distance : float
        Root mean squared difference from the posterior mean over the rows, in units of the target.
    """

    centres: Array
    coef: Array
    mean_coef: Array
    lengthscale: float
    scaling: Array
    distance: float
    _standardised: Array
    _levels: LengthScaleGrid
    _standardizer: Any
    _names: tuple[str, ...]

    def predict(self, X: ArrayLike) -> Array:
        """Value of the sum at rows X (m, d), in units of the target."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != len(self._names) or not np.isfinite(X).all():
            raise DataError(f"X must be finite numbers of shape (m, {len(self._names)})")
        design = self._levels.design(self._standardizer.transform(X), self._standardised, 0)
        return np.asarray(design @ np.concatenate([self.mean_coef, self.coef]))

    def table(self) -> Table:
        """Tabulate centres and coefficients, the largest first."""
        order = np.argsort(-np.abs(self.coef), kind="stable")
        rows = tuple(tuple(float(v) for v in (self.coef[i], *self.centres[i])) for i in order)
        return Table(("coef", *self._names), rows)


def summarise(running: Running, names: tuple[str, ...], n_centres: int) -> SparseSummary:
    """Project the posterior mean on so many kernels, no more than there are candidates."""
    best = int(np.argmax(running.state.scores))
    filter_, state = running.ensemble.filters[best], running.state.states[best]
    r = state.statistics.n_candidates
    if n_centres > r:
        raise DataError(f"n_centres must be at most the number of candidates, {r}")
    Z = state.rows.X[: min(state.n_seen, len(state.rows.y))]
    target = mean_function(filter_, state, Z)
    m, weights = filter_.grid.n_mean, np.exp(state.particles.log_weight)
    shares, tried = np.bincount(state.particles.level, weights), []
    for level in np.flatnonzero(shares >= min(_LEAST_SHARE, shares.max())).tolist():
        design = filter_.grid.design(Z, state.centres[:r], level)
        chosen, coef, distance = _pursue(design, target, m, n_centres)
        tried.append((distance, level, chosen, coef))
    distance, level, chosen, coef = min(tried, key=lambda each: each[0])
    scale = running.scales.target
    coef = coef * scale.scale
    coef[0] += scale.centre
    centres = state.centres[chosen - m]
    return SparseSummary(
        centres=running.raw_inputs(centres),
        coef=coef[m:],
        mean_coef=coef[:m],
        lengthscale=float(filter_.grid.lengthscales[level % filter_.grid.n_widths]),
        scaling=filter_.grid.scalings[level // filter_.grid.n_widths],
        distance=distance * scale.scale,
        _standardised=centres,
        _levels=filter_.grid.only(level),
        _standardizer=running.scales.standardizer,
        _names=names,
    )


def _pursue(design: Array, target: Array, m: int, n_centres: int) -> tuple[Any, Array, float]:
    """Choose columns beyond the first m; return them, all coefficients, and the distance."""
    Q = np.linalg.qr(design[:, :m])[0]
    left = design - Q @ (Q.T @ design)
    rest = target - Q @ (Q.T @ target)
    lengths = np.einsum("ij,ij->j", design, design)
    chosen: list[int] = []
    for _ in range(n_centres):
        squares = np.einsum("ij,ij->j", left, left)
        usable = squares > _DEPENDENT * lengths
        usable[:m] = False
        if not usable.any():
            break
        gains = np.where(usable, (rest @ left) ** 2 / np.where(usable, squares, 1.0), -1.0)
        best = int(np.argmax(gains))
        q = left[:, best] / np.sqrt(squares[best])
        rest = rest - q * (q @ rest)
        left = left - np.outer(q, q @ left)
        chosen.append(best)
    columns = np.array([*range(m), *chosen])
    coef = np.linalg.lstsq(design[:, columns], target, rcond=None)[0]
    distance = float(np.sqrt(np.mean((design[:, columns] @ coef - target) ** 2)))
    return np.array(chosen, dtype=np.int64), np.asarray(coef), distance


RIVER_MISSING = f"River is missing; {INSTALL.format('river')}"


class StreamEstimator(KernelEstimator, Generic[AnyRunning]):
    """Base of both estimators: a learner, and the scores of the last call that learned.

    Parameters
    ----------
    kernel : {"rbf", "matern12", "matern32", "matern52"}, default="rbf"
    lengthscale : "learn", "median", float or sequence of float, default="learn"
        "learn": each particle carries one of up to 13, from twice the median distance of the
        first rows down to a 32nd of that, but none below the distance from a row to the nearest
        other. Numbers are in standardised units; of several, each particle
        carries one.
    n_particles : int, default=250
    expected_centres : float, default=20
        Prior mean of the number of centres.
    max_centres : int, default=50
        The most centres of a particle.
    centres_prior : {"negative_binomial", "poisson"}, default="negative_binomial"
        Prior of the number of centres. The first spreads wide: accurate with more centres.
    resampling : {"systematic", "stratified", "multinomial"}, default="systematic"
    standardize : str or False, default="auto"
        How each input is scaled, as for `GPRegressor`; learned from the first rows.
    scale_rows : int, default=200
        With ``partial_fit``: rows from which scales and length scales are learned. They are held
        back, then learned in order; sooner if somebody predicts.
    input_scale : float, array of shape (d,) or None, default=None
        Standard deviations of the inputs, if they are known beforehand.
    random_state : int, Generator, RandomState or None, default=None
        An integer gives the same results each time.
    progress : bool or "auto", default="auto"
        A progress bar of ``fit``; "auto" shows it on a terminal or in a notebook.
    checkpoint : path or None, default=None
        Folder where ``fit`` saves its state as it goes, and from which it goes on.
    max_seconds : float or None, default=None
        ``fit`` stops after so much time, with the rows learned so far; ``notes_`` says so.

    Attributes
    ----------
    mean_log_predictive_ : float
        Mean of the log predictive densities of all rows learned.
    n_rows_seen_ : int
    """

    _learner: RowLearner[AnyRunning, Any]
    _last_densities: list[float]
    #: So many scores are kept, those of earlier calls too; 0: those of the last call that learned.
    _n_scores = 0
    # A pass is a chain of one draw.
    n_draws, n_warmup, n_chains, thin, n_jobs = 1, 0, 1, 1, 1

    @property
    def _plots(self) -> tuple[str, ...]:
        return ("prequential",)

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_begun

    @property
    def log_predictive_(self) -> Array:
        """Log predictive density of each row of the last call that learned, in nats.

        For a classifier, the log probability of the class. Of a model that `mercer stream` saved
        it is of the last 1000 rows.
        """
        self._ready()
        return self._scores()

    def _scores(self) -> Array:
        return np.array(self._last_densities[-self._n_scores :], dtype=np.float64)

    @property
    def mean_log_predictive_(self) -> float:
        """Mean of these over all rows learned, in nats: the prequential score."""
        self._ready()
        return self._learner.sum_log_density / max(self._learner.n_scored, 1)

    @property
    def n_rows_seen_(self) -> int:
        """Rows learned or held back."""
        check_is_fitted(self)
        return self._learner.n_seen

    @property
    def _is_begun(self) -> bool:
        return hasattr(self, "_learner")

    def _ready(self) -> AnyRunning:
        """Return what runs once the scales are fixed: rows held back are learned now."""
        check_is_fitted(self)
        return self._learner.release(self._keep_density)

    def _keep_density(self, seen: Any) -> None:
        """Note the score of a row that is being learned."""
        running = self._learner.running
        assert running is not None
        self._last_densities.append(running.score(seen))

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Score anew; what fails inside leaves everything as it was."""
        is_new = not self._is_begun
        densities = getattr(self, "_last_densities", [])
        self._last_densities = densities[-self._n_scores :] if self._n_scores else []
        try:
            yield
        except Exception:
            self._last_densities = densities
            if is_new:
                self._forget()
            raise

    def _put(self, learner: Any, notes: tuple[str, ...]) -> None:
        self._learner = learner
        self._params_when_begun = self.get_params(deep=False)
        self._last_densities = []
        self.feature_labels_ = learner.names
        self.notes_ = notes

    def _forget(self) -> None:
        super()._forget()
        if self._is_begun:
            del self._learner

    def _checked(
        self, X: Any, y: Any, *, is_first: bool, is_numeric: bool, n_least: int = 1
    ) -> tuple[Array, NDArray[Any]]:
        """Return rows and targets as arrays; what is not finite is named by its row.

        Arrays that are as they should be are returned as they are: of a row after the other,
        scikit-learn's checks would take a third of the time.
        """
        if not is_first and self._is_checked(X, y, n_least):
            return X, y
        checked, targets = self._training_data(
            X, y, dtype=np.float64, y_numeric=is_numeric, reset=is_first,
            ensure_min_samples=n_least,
        )  # fmt: skip
        return np.asarray(checked), np.asarray(targets)

    def _is_checked(self, X: Any, y: Any, n_least: int) -> bool:
        """Whether these are arrays of finite numbers and of the right shapes, without names."""
        return (
            type(X) is np.ndarray
            and type(y) is np.ndarray
            and X.dtype == np.float64
            and y.dtype in (np.float64, np.int64)
            and X.flags.c_contiguous
            and X.shape == (len(y), len(getattr(self, "feature_labels_", ())))
            and y.shape == (len(X),)
            and len(X) >= n_least
            and (hasattr(self, "encoder_") or not hasattr(self, "feature_names_in_"))
            and bool(np.isfinite(X).all() and np.isfinite(y).all())
        )

    def _warn_of_leaving(self, X: Array, y: NDArray[Any]) -> None:
        """Warn, once each, of columns that have left the scales learned from the first rows."""
        new = self._learner.leaving(X, y)
        if new:
            warn_user(
                f"{', '.join(new)}: more than ten scales from where the stream began; the scales "
                "stay as they are",
                MercerWarning,
            )


# What the learned rows answer: the prediction methods of the estimator.


@dataclass(frozen=True, eq=False)
class Prequential:
    """Rows, each predicted before it was learned.

    Attributes
    ----------
    mean, std : ndarray of shape (m,)
        In units of the target.
    lower, upper : ndarray of shape (m,) or None
        Ends of the central interval, where one was asked for.
    log_density : ndarray of shape (m,)
        Predictive log density of the target, in nats; NaN where there was none.
    n_centres : ndarray of shape (m,)
        Mean number of centres.
    laws : tuple of StudentMixture or None
        Predictive law of each row without a target, which scores it when it comes; None of others.
    """

    mean: Array
    std: Array
    lower: Array | None
    upper: Array | None
    log_density: Array
    n_centres: Array
    laws: tuple[StudentMixture | None, ...] = ()


class StreamRegressor(NumberPredictions[StudentMixture], StreamEstimator[Running]):
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

    def _sample(self, Z: Array, n_draws: int, rng: np.random.Generator) -> Array:
        first = self._law(Z[:1])
        # All rows of a draw come from the same particle, in whatever block they are.
        drawn = rng.choice(len(first.weights), size=n_draws, p=first.weights)
        parts = [self._law(Z[rows]).sample(rng, n_draws, drawn) for rows in self._blocks(Z)]
        return np.concatenate(parts, axis=1)

    @property
    def posterior_(self) -> Draws:
        """Particles as weighted draws."""
        running = self._ready()
        return population_draws(running.ensemble, running.state, self._learner.entropy)

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
        return running.raw_inputs(best.centres[members - running.ensemble.filters[0].grid.n_mean])

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
        for filter_, state in zip(running.ensemble.filters, running.state.states, strict=True):
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
        """Standard error of the log evidence, nats, to first order: rare seeds are further off."""
        state = self._ready().state
        self._check_has_evidence()
        return math.sqrt(evidence_variance(state.states[0]))

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

    def _function_draws(
        self, parts: Sequence[Array], n_draws: int, rng: np.random.Generator
    ) -> list[Array]:
        running, target = self._ready(), self._ready().scales.target
        drawn = running.ensemble.functions(running.state, parts, n_draws, rng)
        return [f[:, np.newaxis] * target.scale + target.centre for f in drawn]

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


# Rows predicted, then learned, one after the other.


def predict_then_learn(model: Any, X: Any, y: Any, level: float | None) -> Prequential:
    """See `mercer.SequentialKernelRegressor.prequential`."""
    if level is not None:
        check_level(level)
    targets = np.asarray(y, dtype=np.float64)
    if targets.ndim != 1:
        raise DataError("y must be numbers of shape (m,), NaN where there is no target")
    is_known = ~np.isnan(targets)
    X, _ = model._numbers(X, np.where(is_known, targets, 0.0), is_first=not model._is_begun)
    with model._begun():
        learner, said = model._learner, _Said(model, level)
        learner.foresee(X[is_known], targets[is_known], said.see)
        for chunk in known_runs(is_known):
            if is_known[chunk.start]:
                learner.learn(X[chunk], targets[chunk], said.see)
            else:
                learner.release(said.see)
                said.predict(X[chunk])
        learner.release(said.see)
    model._warn_of_leaving(X[is_known], targets[is_known])
    return said.result(len(targets))


class _Said:
    """Collects what was said of each row."""

    def __init__(self, model: Any, level: float | None) -> None:
        self._model, self._level = model, level
        self._columns: list[list[float]] = [[] for _ in range(6)]
        self._laws: list[StudentMixture | None] = []

    def see(self, outlook: Outlook) -> None:
        """Take in a row that was learned."""
        self._model._keep_density(outlook)
        target = self._model._ready().scales.target
        mean, std = outlook.moments
        ends = None
        if self._level is not None:
            ends = outlook.law.in_units(target.scale, target.centre).interval(self._level)
        moments = mean * target.scale + target.centre, std * target.scale
        self._add(moments, ends, self._model._last_densities[-1], outlook.n_centres)
        self._laws.append(None)

    def predict(self, X: Array) -> None:
        """Take in rows without a target."""
        running, n_centres = self._model._ready(), self._model.n_centres_
        for z in running.standardise(X):
            law = running.law(z[np.newaxis])
            ends = None if self._level is None else law.interval(self._level)
            self._add((law.mean[0], law.std[0]), ends, math.nan, n_centres)
            self._laws.append(law)

    def result(self, n: int) -> Prequential:
        """Return the last n rows: those before them had been held back."""
        columns = [np.array(column[-n:]) if n else np.empty(0) for column in self._columns]
        mean, std, lower, upper, log_density, n_centres = columns
        laws = tuple(self._laws[len(self._laws) - n :])
        if self._level is None:
            return Prequential(mean, std, None, None, log_density, n_centres, laws)
        return Prequential(mean, std, lower, upper, log_density, n_centres, laws)

    def _add(
        self,
        moments: tuple[float, float],
        ends: tuple[Array, Array] | None,
        log_density: float,
        n_centres: float,
    ) -> None:
        lower, upper = (0.0, 0.0) if ends is None else (ends[0][0], ends[1][0])
        values = (*moments, lower, upper, log_density, n_centres)
        for column, value in zip(self._columns, values, strict=True):
            column.append(float(value))
