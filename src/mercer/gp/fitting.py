"""From a posterior of hyperparameters to its draws: maximum, importance sampling, chains."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from mercer.errors import NumericalError
from mercer.estimation.standardize import LeftOut
from mercer.gp.exact import CalibratedValues, calibrated
from mercer.gp.gaussian import NoiseOfRows, RegressionPosterior
from mercer.gp.hyperparameters import (
    NO_EVIDENCE,
    SEARCHING,
    FewValues,
    HyperparameterTarget,
    Maximum,
    NormalPrior,
    PriorChoice,
    Recorder,
    few_that_decide,
    find_maximum,
    kernel_prior,
    noise_prior,
    orders_of_alike,
    parameter_labels,
    with_curvature,
)
from mercer.gp.laplace import LaplaceValues
from mercer.kernels.base import Kernel
from mercer.kernels.names import kernel_named
from mercer.numerics.cholesky import one_blas_thread
from mercer.posterior.diagnostics import Diagnostics, diagnose, flat_weights
from mercer.posterior.draws import Draws
from mercer.random import stream
from mercer.sampling.driver import Labels, RunOptions, Sampled, load_finished, sample, sample_longer
from mercer.sampling.hmc import (
    HMC,
    HamiltonianAdaptation,
    HamiltonianTuning,
    mass_from_covariance,
    unit_mass,
)
from mercer.sampling.importance import (
    Difference,
    ImportanceSample,
    Rounds,
    SplitT,
    first_proposal,
    importance_sample,
    tempered_positions,
    thinned,
    wide_proposal,
)
from mercer.sampling.metropolis import Metropolis
from mercer.sampling.nuts import NUTS
from mercer.sampling.sampler import Adaptation, Point, Sampler
from mercer.sampling.signals import is_late

# Samplers over the hyperparameters of a GP, and the point that they start from.
#
# **Target.** `mercer.gp.hyperparameters.HyperparameterTarget`.
#
# **Default** ("hmc"): the maximum of the posterior by L-BFGS; its Hessian by differences of
# the gradient; jittered HMC from draws of that Gaussian with the inverse Hessian as covariance of
# the mass; in warm-up the mass is estimated anew from the draws. "nuts" and "metropolis" start and
# are tuned likewise.
#
# **Paper** (`paper_hmc`): theta starts at 0 and -2, unit mass, 20 leapfrog steps of 0.1
# (section 2.3), no tuning.
#
# **Cost.** About 15 gradients for each search of a maximum, one a parameter for the Hessian.

Array = NDArray[np.float64]


Evaluate = Callable[[Array], tuple[float, Mapping[str, Array]]]  # log density, what a draw keeps


_FIRST_STEP_SIZE = 0.5  # of the search, in units of the Gaussian at the maximum


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


@dataclass(frozen=True)
class _WeightedStart:
    positions: Array
    weights: Array

    def __call__(self, rng: np.random.Generator) -> Array:
        """Draw one of the positions."""
        return np.asarray(self.positions[rng.choice(len(self.weights), p=self.weights)])


def make_sampler(
    inference: str, model: HyperparameterTarget, maximum: Maximum, recorder: Recorder
) -> HMC | NUTS | Metropolis:
    """Make the jittered HMC, the NUTS or the random walk that warm-up then tunes.

    Where the maximum comes without its curvature, chains start there and the mass is the prior's.
    """
    position, covariance = maximum.point.position, maximum.covariance
    start: _GaussianStart | _FixedStart
    if covariance is None:
        mass = mass_from_covariance(np.diag(model.prior.std**2))
        start = _FixedStart(position)
    else:
        mass = mass_from_covariance(covariance)
        start = _GaussianStart(position, mass.factor)
    tuning = HamiltonianTuning(_FIRST_STEP_SIZE, mass)
    if inference == "nuts":
        return NUTS(model, start, recorder, tuning)
    if inference == "metropolis":
        return Metropolis(model, start, recorder, tuning)
    return HMC(model, start, recorder, tuning)


def paper_hmc(
    model: HyperparameterTarget, recorder: Recorder, *, n_leapfrog: int, step_size: float
) -> HMC:
    """Make the paper's HMC: fixed steps, unit mass, fixed start."""
    start = _FixedStart(model.starts[0])
    tuning = HamiltonianTuning(step_size, unit_mass(len(start.position)))
    return HMC(model, start, recorder, tuning, n_leapfrog=n_leapfrog, path_length=None)


Refinement = Callable[[Any, HamiltonianAdaptation], tuple[Sampler[Any, Any], Adaptation]]

_MONITORED_ROWS = 20
_ACCEPTANCE = {"hmc": 0.75, "nuts": 0.75, "metropolis": 0.3}  # wanted of warm-up


@dataclass(frozen=True)
class GPSettings:
    """What is fitted and by which sampler; see `mercer.GPClassifier`.

    ``kernel`` is the expression that names it, ``share`` its weight in predictions: of as many
    effective draws importance sampling makes.
    """

    inference: str
    prior: PriorChoice
    n_leapfrog: int | None
    step_size: float | None
    kernel: str = "rbf"
    share: float = 1.0

    def make_kernel(self) -> Kernel:
        """Return the kernel."""
        return kernel_named(self.kernel)

    def prior_of(self, n_inputs: int, *, is_several: bool = False) -> NormalPrior:
        """Return the prior of the log parameters of the kernel, for numbers or classes."""
        return kernel_prior(n_inputs, self.prior, self.make_kernel(), is_several=is_several)


@dataclass(frozen=True)
class FittedGP:
    """What a fit leaves behind.

    ``evidence`` is the log evidence, hyperparameters integrated out, and its standard error; nats.
    """

    draws: Draws
    diagnostics: Diagnostics
    notes: tuple[str, ...]
    evidence: tuple[float, float] | None = None


def kernel_labels(
    kernel: Kernel, names: tuple[str, ...], *further: str, classes: tuple[str, ...] = ()
) -> Labels:
    """Name the entries of parameters, of ``classes`` with kernels of their own by class.

    The parameters are monitored, and ``further``.
    """
    monitored = (*(parameter.name for parameter in kernel.parameters()), *further)
    return Labels(parameter_labels(kernel, names, classes), monitored)


def monitored_rows(options: RunOptions, n: int) -> NDArray[np.int64]:
    """Draw the rows, 20 at most, whose latent values are monitored: sorted positions."""
    rows = stream(options.entropy, "rows").choice(n, min(n, _MONITORED_ROWS), replace=False)
    return np.sort(rows)


def fit_posterior(
    recorder: Recorder,
    settings: GPSettings,
    options: RunOptions,
    labels: Labels,
    refine: Refinement | None = None,
    maximum: Maximum | None = None,
) -> FittedGP:
    """Draw the hyperparameters of a GP from their posterior, the recorder's, or find its maximum.

    ``refine``, where given, turns the sampler and its adaptation into those that are run. The
    ``maximum`` is searched for unless it is known.

    Raises
    ------
    NumericalError
        If the evidence cannot be computed where the chains are.
    SamplingStoppedError
        After Ctrl-C or SIGTERM, once checkpoints are written.
    """
    model, fit = recorder.model, _Fit(recorder, options, labels, settings.share)
    is_importance = settings.inference == "importance"
    finished = None if is_importance else load_finished(options, labels=labels)
    if finished is not None:
        return _diagnosed(finished, recorder)
    if settings.n_leapfrog is not None and settings.step_size is not None:
        n_leapfrog, step_size = settings.n_leapfrog, settings.step_size
        sampler = paper_hmc(model, recorder, n_leapfrog=n_leapfrog, step_size=step_size)
        return _diagnosed(sample(sampler, options, labels=labels), recorder)
    is_map, is_many = settings.inference == "map", len(model.prior.mean) > MOST_PARAMETERS
    if maximum is None:
        with one_blas_thread():
            deadline = options.deadline_before_chains(1.0 if is_map else SEARCHING)
            is_curved = not is_map and not is_many
            maximum = find_maximum(model, with_covariance=is_curved, deadline=deadline)
    elif maximum.covariance is None and is_importance and not is_many:
        maximum = fit.curved(maximum)
    if is_map:
        return _fitted_maximum(maximum, recorder, labels)
    if is_importance:
        return fit.by_importance(maximum)
    if maximum.covariance is None and is_many:
        maximum = fit.curved(maximum)
    tuned = make_sampler(settings.inference, model, maximum, recorder)
    adaptation = HamiltonianAdaptation(options.n_warmup, _ACCEPTANCE[settings.inference])
    if refine is not None:
        refined, refined_adaptation = refine(tuned, adaptation)
        sampled = sample(refined, options, adaptation=refined_adaptation, labels=labels)
    elif settings.inference == "metropolis":  # as long as its rivals of the paper
        sampled = sample(tuned, options, adaptation=adaptation, labels=labels)
    else:
        return fit.by_chains(tuned, adaptation, maximum.notes)
    return _diagnosed(sampled, recorder, maximum.notes)


# Importance sampling over the hyperparameters, and the chains that take over where it fails.

# Of predictions: their Monte Carlo standard error, averaged over rows, that is wanted; in
# probabilities, or standard deviations of the target.
_ACCURACY = 0.004
# Effective draws: never fewer, so that a mean is known to a fourteenth of the posterior's standard
# deviation, or a tenth where an evaluation is costly and predictions are known with as few. Not
# more but where it costs hardly anything, by rows.
_FEWEST, _FEWEST_COSTLY, _MOST = 200.0, 100.0, 600.0
_FEW_ROWS, _COSTLY_ROWS = 150, 400
_LEAST = 50.0  # of one of several kernels, whose weights are the shares of these numbers
_SHORT = 1000  # draws: a run of fewer, such as a fold's, wants that share of these numbers
_LEARNED = 0.5  # of these are those that a proposal is fitted to, and at least two a parameter
# With more parameters the positions that taught the proposals count, too: the bias that this has is
# small beside the Monte Carlo error, and the cost of others is not. So they do with very few, where
# rows are many: of two or three no bias was seen at 160 and 200 rows.
_FEW_PARAMETERS, _FEWEST_PARAMETERS = 8, 3
#: Of importance sampling: of more, those by the law of few, or chains.
MOST_PARAMETERS = 310
_MOST_CELLS_OF_CHAINS = 100_000
_ROUND = 100  # evaluations, and at least four a parameter
_MOST_ROUNDS = (24, 96)  # in evaluations; where some do not count
_MOST_CORRECTED = 64  # parameters: draws of more say little of those of the corrected density
# Evaluations where there are more parameters than this: chains take as long as several times as
# many, and do not mix better. Of all together so many numbers are kept at most.
_MANY_PARAMETERS, _MOST_EVALUATIONS, _MOST_NUMBERS = 30, 20_000, 100_000_000


_LEAST_MASS, _MOST_OTHERS = 4.0, 2  # of other maxima: log mass below the largest; their number
_FAR_BELOW = 10.0  # of a maximum, for each parameter: log density where there is no mass
_FAR = 3.0  # standard deviations of a maximum from another, or it is the same

_CALIBRATING = 2**31 + 1  # of the streams for importance sampling: no round has this number
_N_CALIBRATING, _TIME_OF_CALIBRATING = 24, 0.5  # positions, for three numbers, and share of time
_MOST_JUDGED = 100  # rows whose predictions' Monte Carlo error is computed
_THINNING = 2**31  # of the streams for importance sampling: no round has this number
_SHORT_WARMUP = 60  # steps, where the covariance is known
_FEWEST_OF_CHAIN = 100  # draws
_NO_MASS = "importance sampling found no mass around the maximum"
# Largest Monte Carlo error, of a probability or in standard deviations of the target.
_ENOUGH = 0.01


@dataclass(frozen=True)
class _Fit:
    """How a posterior, the recorder's, is drawn from; see `GPSettings` for the share."""

    recorder: Recorder
    options: RunOptions
    labels: Labels
    share: float

    @property
    def model(self) -> HyperparameterTarget:
        return self.recorder.model

    def by_importance(self, maximum: Maximum) -> FittedGP:
        """Draw by adaptive importance sampling; by chains where its weights say that it failed."""
        n_parameters = len(maximum.point.position)
        if n_parameters > MOST_PARAMETERS:
            return self._of_many(maximum)
        model, options = self.model, self.options
        orders = orders_of_alike(model.kernel, model.X.shape[1], n_parameters)
        maxima = _Maxima(model, orders, options, [maximum])
        others = maxima.others()
        width = np.diag(model.prior.std**2) if maximum.covariance is None else maximum.covariance
        proposal = first_proposal(maximum.point.position, width)
        values: Evaluate = model.values(maximum.point, maximum.slopes, self.recorder.rows)
        said: tuple[str, ...] = ()
        if maximum.covariance is not None:
            rng = stream(options.entropy, "importance", _CALIBRATING)
            values, said = self._calibrated(values, proposal.draw(rng, _N_CALIBRATING))
        is_open = isinstance(values, LaplaceValues) and len(said) > 0

        def correct(few: Array) -> Difference | None:
            # The proposal's positions may be too far apart for one function: draws are not.
            nonlocal values, said
            values, said = self._calibrated(values, few)
            return values.difference if isinstance(values, CalibratedValues) else None

        found = importance_sample(
            values,
            proposal,
            self._rounds(maximum),
            options,
            wide_proposal(model.prior.mean, model.prior.std),
            orders,
            others,
            maxima.climb,
            correct if is_open and n_parameters <= _MOST_CORRECTED else None,
        )
        maximum = replace(maximum, notes=(*maximum.notes, *said))
        if found is None or not (found.is_trusted or found.is_late):
            return self.instead(maximum, found)
        notes = [*maximum.notes]
        if found.is_resumed and options.run is not None:
            notes.append(f"resumed from {options.run.path}")
        if found.is_late:
            worth = f"{len(found.log_weights)} evaluations, worth {found.ess:.0f} draws"
            notes.append(f"stopped by max_seconds: {worth}")
        error = values.error if isinstance(values, CalibratedValues) else 0.0
        evidence = found.log_evidence + model.prior.log_constant  # which a log density lacks
        known = evidence, math.hypot(found.log_evidence_se, error)
        return self._weighted(found, tuple(notes), known)

    def _rounds(self, maximum: Maximum) -> Rounds:
        """Say how many evaluations are made, by the number of parameters and of rows."""
        n_parameters, n_rows = len(maximum.point.position), maximum.point.extra["f"].shape[-1]
        model, most = self.model, self._most
        part = min(most / _SHORT, 1.0)

        def at_least(effective: float) -> float:
            return min(max(part * self.share * effective, _LEAST), float(most))

        usual = at_least(_FEWEST)
        fewest = at_least(_FEWEST_COSTLY) if n_rows > _COSTLY_ROWS else usual
        size = max(round(_ROUND * usual / _FEWEST), 4 * n_parameters)
        is_plain = n_parameters <= _FEWEST_PARAMETERS and n_rows > _FEW_ROWS
        is_frozen = n_parameters <= _FEW_PARAMETERS and not is_plain
        enough = usual
        if is_frozen:
            enough = max(part * (_MOST if n_rows <= _FEW_ROWS else _FEWEST), fewest)
        learned = max(_LEARNED * fewest, 2.0 * n_parameters) if is_frozen else fewest
        limit = _MOST_ROUNDS[is_frozen] * size
        if n_parameters > _MANY_PARAMETERS:
            most_kept = _MOST_NUMBERS // maximum.point.extra["f"].size
            limit = max(limit, min(_MOST_EVALUATIONS, most_kept))

        def wanted(recorded: Mapping[str, Array], W: Array) -> float:
            predicted = model.predicted(recorded).reshape(len(W), -1)
            spread = np.sqrt(W @ np.square(predicted - W @ predicted)).mean()
            few = max(part * (self.share * spread / _ACCURACY) ** 2, fewest)
            return float(min(few, enough, most))

        return Rounds(learned, is_frozen, size, wanted, limit)

    def _of_many(self, maximum: Maximum) -> FittedGP:
        """Draw the parameters of few inputs that decide, by the prior of hundreds; else by chains.

        These also where they take no more than minutes, as they find out which inputs decide. Of
        the evidence nothing is said otherwise: that is no part of it.
        """
        p, deadline = len(maximum.point.position), self.options.deadline_before_chains(SEARCHING)
        is_small = self.model.X.size <= _MOST_CELLS_OF_CHAINS
        with one_blas_thread():
            found = None if is_small else few_that_decide(self.model, maximum, deadline)
        if found is None or len(found[0].places) > MOST_PARAMETERS:
            many = f"{p} hyperparameters are too many for importance sampling"
            return self.instead(self.curved(maximum), None, many)
        few, own = found
        said = (
            f"{len(few.places)} of {p} hyperparameters are averaged over: by their prior and "
            "the data the weights of the other inputs are so small that no prediction hangs on them"
        )
        of_few = replace(self, recorder=replace(self.recorder, model=few))
        fitted = of_few.by_importance(replace(own, notes=(*own.notes, said)))
        return replace(fitted, evidence=None)

    def curved(self, maximum: Maximum) -> Maximum:
        """Return a maximum with its curvature, or a note that time was over."""
        with one_blas_thread():
            deadline = self.options.deadline_before_chains(SEARCHING)
            return with_curvature(self.model, maximum, deadline)

    def instead(
        self, maximum: Maximum, found: ImportanceSample | None, why: str = _NO_MASS
    ) -> FittedGP:
        """Run chains of HMC from the weighted positions, whose covariance is their mass.

        See `by_chains` for their length.
        """
        said = f"{why}: drawn by chains (HMC)"
        sampler = make_sampler("hmc", self.model, maximum, self.recorder)
        n_warmup = self.options.n_warmup
        if found is not None:
            worth = f"{len(found.log_weights)} evaluations worth {found.ess:.0f} draws"
            said = (
                f"importance sampling was not to be trusted ({worth}, Pareto k-hat "
                f"{found.k_hat:.2f}): drawn by chains (HMC)"
            )
            positions, W = tempered_positions(found)
            p = positions.shape[1]
            is_known = 1.0 / np.square(W).sum() > 2.0 * p
            lowest = maximum.point.log_density - _FAR_BELOW * p  # of positions that have mass
            if maximum.covariance is not None and is_known and found.log_density.max() > lowest:
                shifted = positions - W @ positions
                std = np.sqrt(W @ np.square(shifted) / np.diag(maximum.covariance))
                mass = mass_from_covariance(maximum.covariance * np.outer(std, std))
                tuning = HamiltonianTuning(_FIRST_STEP_SIZE, mass)
                sampler = HMC(self.model, _WeightedStart(positions, W), self.recorder, tuning)
                n_warmup = min(n_warmup, _SHORT_WARMUP)
        shorter = replace(self, options=replace(self.options, n_warmup=n_warmup))
        adaptation = HamiltonianAdaptation(n_warmup, _ACCEPTANCE["hmc"])
        return shorter.by_chains(sampler, adaptation, (*maximum.notes, said))

    def by_chains(
        self, sampler: Sampler[Any, Any], adaptation: HamiltonianAdaptation, notes: tuple[str, ...]
    ) -> FittedGP:
        """Run chains: a third of their draws, and all where these do not tell enough.

        It is enough that no prediction has a Monte Carlo error over .01 and nothing is to be warned
        of. Of one of several kernels they have its share of the draws, and predictions count as
        much.
        """
        share, all_draws = self.share, self.options.n_draws
        most = min(max(math.ceil(share * all_draws), _FEWEST_OF_CHAIN), all_draws)
        lengths = tuple(dict.fromkeys((max(most // 3, min(_FEWEST_OF_CHAIN, most)), most)))
        runs = sample_longer(
            sampler, self.options, lengths, adaptation=adaptation, labels=self.labels
        )
        for n_draws, sampled in zip(lengths, runs, strict=True):
            fitted = _diagnosed(sampled, self.recorder, notes)
            error = fitted.diagnostics.largest_prediction_error
            is_known = error is not None and share * error < _ENOUGH
            if is_late(self.options.deadline):
                break
            if n_draws < most and is_known and not fitted.diagnostics.warnings:
                said = (
                    f"chains ended after {n_draws} of {most} draws: no prediction has a Monte "
                    f"Carlo error over {_ENOUGH / share:.2g}"
                )
                return replace(fitted, notes=(*fitted.notes, said))
        return fitted

    @property
    def _most(self) -> int:
        """How many draws are kept at most."""
        return self.options.n_draws * self.options.n_chains

    def _calibrated(self, values: Evaluate, positions: Array) -> tuple[Evaluate, tuple[str, ...]]:
        """Correct the evidence where it is approximate, that of two classes; see `calibrated`."""
        if isinstance(values, FewValues):
            whole, said = self._calibrated(values.whole, values.few.all_of(positions))
            return replace(values, whole=whole), said
        if not isinstance(values, LaplaceValues) or values.model.n_functions > 1:
            return values, ()
        with one_blas_thread():
            deadline = self.options.deadline_before_chains(_TIME_OF_CALIBRATING)
            return calibrated(values, positions, deadline)

    def _weighted(
        self, found: ImportanceSample, notes: tuple[str, ...], evidence: tuple[float, float] | None
    ) -> FittedGP:
        """Make draws of weighted positions, as many as are to be kept, alike terms in any order."""
        rng = stream(self.options.entropy, "importance", _THINNING)
        kept, log_weights = thinned(rng, found.log_weights, self._most)
        positions = found.positions[kept]
        orders = orders_of_alike(self.model.kernel, self.model.X.shape[1], positions.shape[1])
        own = orders[rng.integers(len(orders), size=len(kept))]
        variables = {
            **self.model.parameters(np.take_along_axis(positions, own, axis=1)),
            "log_density": found.log_density[kept],
            **{name: values[kept] for name, values in found.recorded.items()},
        }
        draws = Draws(
            {name: values[np.newaxis] for name, values in variables.items()},
            {},
            self.labels.labels,
            self.labels.monitored,
            log_weights[np.newaxis],
        )
        told = (found.k_hat, found.ess, len(found.log_weights))
        diagnostics = diagnose(draws).of_importance(*told, is_trusted=found.is_trusted)
        diagnostics = _with_errors(diagnostics, draws, self.recorder)
        return FittedGP(draws, diagnostics, notes, evidence)


@dataclass(frozen=True)
class _Maxima:
    """The maxima that are known, the first one by the search, and where to look for others."""

    model: HyperparameterTarget
    orders: NDArray[np.int64]
    options: RunOptions
    known: list[Maximum]

    def others(self) -> list[SplitT]:
        """Propose around other maxima that the search has found and that have mass, two at most."""
        deadline, found = self.options.deadline_before_chains(SEARCHING), list[SplitT]()
        for point in self.known[0].others:
            around = self._around(point, deadline) if len(found) < _MOST_OTHERS else None
            found += [] if around is None else [around]
        return found

    def climb(self, position: Array) -> SplitT | None:
        """Propose around the maximum above a position; None where that is known."""
        deadline = self.options.deadline
        try:
            with one_blas_thread():
                found = find_maximum(self.model, starts=(position,), deadline=deadline)
        except NumericalError:  # where its value can be had, and not its gradient
            return None
        return self._around(found.point, deadline)

    def _around(self, point: Point, deadline: float | None) -> SplitT | None:
        """Propose around a maximum that is far from those known, and has mass; None of others."""
        mirrored = point.position[self.orders]
        if any(_is_near(mirrored, each) for each in self.known):
            return None
        with one_blas_thread():
            other = with_curvature(self.model, Maximum(point, None, True), deadline)
        best = max(each.log_evidence(self.model.prior) for each in self.known)
        if other.covariance is None or other.log_evidence(self.model.prior) <= best - _LEAST_MASS:
            return None
        self.known.append(other)
        return first_proposal(point.position, other.covariance)


def _is_near(positions: Array, maximum: Maximum) -> bool:
    """Whether the Gaussian of a maximum says little of one of the positions (g, p)."""
    if maximum.covariance is None:
        return True
    shifts = positions - maximum.point.position
    squares = (shifts * np.linalg.solve(maximum.covariance, shifts.T).T).sum(axis=1)
    return bool(squares.min() < _FAR**2)


def _with_errors(diagnostics: Diagnostics, draws: Draws, recorder: Recorder) -> Diagnostics:
    """Add the Monte Carlo error of predictions at training rows, or some of them, evenly spaced."""
    predicted = recorder.model.predicted(draws.variables)
    predicted = predicted[..., :: -(-predicted.shape[-1] // _MOST_JUDGED)]
    values = predicted.reshape(draws.n_chains, draws.n_draws, -1)
    return diagnostics.of_predictions(values, flat_weights(draws))


def _diagnosed(sampled: Sampled, recorder: Recorder, notes: tuple[str, ...] = ()) -> FittedGP:
    draws = sampled.draws
    if not np.isfinite(draws.flat("log_density")).all():
        raise NumericalError(NO_EVIDENCE)
    diagnostics = _with_errors(diagnose(draws), draws, recorder)
    return FittedGP(draws, diagnostics, (*notes, *sampled.notes))


def _fitted_maximum(maximum: Maximum, recorder: Recorder, labels: Labels) -> FittedGP:
    """Wrap the maximum as one draw; whether it converged is all that there is to diagnose."""
    variables = {
        name: np.asarray(value)[np.newaxis, np.newaxis]
        for name, value in recorder(maximum.point).items()
    }
    draws = Draws(variables, {}, labels.labels, ())
    warnings = () if maximum.is_converged else ("the search for the maximum did not converge",)
    diagnostics = Diagnostics(diagnose(draws).table, None, 0, (), warnings)
    said = "inference='map': one point, no posterior spread"
    return FittedGP(draws, diagnostics, (*maximum.notes, said))


# Hyperparameters that some of the rows taught, moved to where more rows have them.
#
# Of r times as many rows the likelihood's precision is about r times that of those that taught:
# with C the covariance of the draws and P the prior's precision the posterior given all rows has
# nearly the covariance (P + r (C^-1 - P))^-1. By Newton's steps with it its maximum is sought from
# the mean of the draws, a gradient of these rows each; the draws keep their places about it, nearer
# by as much.

_MOST_MOVES, _FARTHEST_MOVE, _WORTH_A_MOVE = 3, 2.0, 2.0  # steps; of a log parameter; nats
_PARTS_OF_MOVES = (1.0, 0.4)  # that are tried of a step


def moved(
    taught: HyperparameterTarget,
    model: HyperparameterTarget,
    draws: tuple[Array, Array],
    few: Array,
    deadline: float | None,
) -> Array:
    """Return positions ``few`` (m, p) of ``draws`` moved to where more rows have their mass.

    ``model`` is the posterior given more rows than those of the one that was drawn from;
    ``draws`` are positions (S, p) and weights (S,), of sum 1. A single draw, and those of several
    maxima, whose mean is nowhere, stay where they are.
    """
    positions, weights = draws
    p, worth = positions.shape[1], 1.0 / np.square(weights).sum()
    if (
        len(model.X) <= len(taught.X)
        or len(positions) == 1
        or len(orders_of_alike(model.kernel, model.X.shape[1], p)) > 1
    ):
        return few
    mean = weights @ positions
    shifted = positions - mean
    C = (weights * shifted.T) @ shifted
    C = np.where(np.eye(p, dtype=np.bool_), C + 1e-12, C * worth / (worth + p))
    with one_blas_thread():
        of_few = [taught.evaluate(each).log_density for each in few]
        if not taught.evaluate(mean).log_density >= np.mean(of_few):
            return few
        prior = np.diag(1.0 / np.square(model.prior.std))
        values, vectors = np.linalg.eigh(np.linalg.inv(C) - prior)
        learned = (vectors * np.maximum(values, 0.0)) @ vectors.T
        own = np.linalg.inv(prior + len(model.X) / len(taught.X) * learned)
        nearer = np.linalg.cholesky(own) @ np.linalg.inv(np.linalg.cholesky(C))
        return np.asarray(_climbed(model, mean, own, deadline) + (few - mean) @ nearer.T)


def _climbed(
    model: HyperparameterTarget, position: Array, covariance: Array, deadline: float | None
) -> Array:
    """Climb from a position by a few Newton's steps, with the covariance that all are to have."""
    if is_late(deadline):
        return position
    point = model.evaluate(position)
    for _ in range(_MOST_MOVES):
        if is_late(deadline) or not np.isfinite(point.log_density):
            break
        step = covariance @ point.gradient
        step *= min(1.0, _FARTHEST_MOVE / max(float(np.abs(step).max()), 1e-300))
        near = point.extra.get("f")
        tried = (model.evaluate(point.position + part * step, near) for part in _PARTS_OF_MOVES)
        found = next((each for each in tried if each.log_density > point.log_density), None)
        if found is None:
            break
        gain, point = found.log_density - point.log_density, found
        if gain < _WORTH_A_MOVE:
            break
    return point.position


# From standardised data and settings to the draws of a GP regressor.

# Of an intercept, in squared standard deviations of the target. The target is centred by the mean
# of the same rows: to take that mean for known would make intervals of n rows too narrow, by about
# 1/n of their width (the mean's own error, and the degree of freedom that it costs the variance).
# As the mean lies within 1 / sqrt(n) of that of the law, 1 is nearly flat, at any n; and a variance
# that is no larger than the target's own does not blow up predictions far from all rows.
_INTERCEPT_VARIANCE = 1.0


@dataclass(frozen=True)
class RegressionSettings:
    """What is fitted and by which sampler; see `mercer.GPRegressor`.

    ``log_noise_variance`` is that of standardised targets, where it is known; ``noise_of_rows`` is
    there where rows count differently, or their noise differs.
    """

    common: GPSettings
    log_noise_variance: float | None
    noise_of_rows: NoiseOfRows | None = None

    @property
    def intercept_variance(self) -> float:
        """Prior variance of the intercept; the paper has none."""
        return 0.0 if self.common.prior == "paper" else _INTERCEPT_VARIANCE

    def posterior(self, X: Array, y: Array) -> RegressionPosterior:
        """Return the posterior of the hyperparameters, with its prior."""
        kernel, prior = self.common.make_kernel(), self.common.prior_of(X.shape[1])
        if self.log_noise_variance is None:
            prior = prior.with_one_more(*noise_prior(X.shape[1], self.common.prior))
        return RegressionPosterior(
            X, y, kernel, prior, self.common.prior == "paper", self.log_noise_variance,
            self.intercept_variance, self.noise_of_rows,
        )  # fmt: skip


def fit_regression(
    X: Array,
    y: Array,
    settings: RegressionSettings,
    options: RunOptions,
    names: tuple[str, ...],
    maximum: Maximum | None = None,
) -> FittedGP:
    """Draw hyperparameters for standardised inputs (n, d) and targets (n,)."""
    model = settings.posterior(X, y)
    recorder = Recorder(model, monitored_rows(options, len(y)))
    labels = kernel_labels(model.kernel, names, "log_noise_variance", "latent")
    return fit_posterior(recorder, settings.common, options, labels, maximum=maximum)


# Of targets left out, for `gains_of_noise`: the kernel at its maximum given all rows.

_NEARLY, _CLIMBS = 1e-4, 2  # of log densities, relative; from the highest starts


def left_out(y: Array, X: Array, settings: RegressionSettings, deadline: float | None) -> LeftOut:
    """Say of each standardised target (n,) what the others, and inputs (n, d), say of it."""
    model = settings.posterior(X, y)
    with one_blas_thread():
        maximum = find_maximum(model, deadline=deadline, tolerance=_NEARLY, most=_CLIMBS)
        model = replace(model, inverse=np.empty((len(y), len(y))))
        point = model.evaluate(maximum.point.position)
    precision = np.asarray(model.inverse).diagonal()
    means, stds = y - point.extra["dual_coef"] / precision, 1.0 / np.sqrt(precision)
    return norm.logpdf(y, means, stds), means, stds, model.noise_variance(point.position)
