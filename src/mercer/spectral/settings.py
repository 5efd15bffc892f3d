"""From the arguments of BaNK to priors, proposals and the standardisation of inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import norm

from mercer.errors import NumericalError, UsageError
from mercer.estimation.run import check_choice, check_count, check_positive
from mercer.estimation.standardize import (
    METHODS,
    ONE_SCALE,
    LeftOut,
    Standardizer,
    fit_quietly,
    fit_standardizer,
    with_scales_by_evidence,
)
from mercer.features.products import fill_features
from mercer.likelihoods.label_noise import log_kinds, log_shares, tied_rows
from mercer.numerics.cholesky import one_blas_thread
from mercer.posterior.positive_laws import WITH_ERRORS
from mercer.random import stream
from mercer.sampling.signals import is_late, stop_when_late
from mercer.spectral.base_measure import BaseMeasure, DiagonalBase, FullBase, ScalePrior
from mercer.spectral.mixture import ConcentrationPrior, Mixture, Start
from mercer.spectral.model import (
    N_FREQUENCIES,
    NOISES,
    RIDGE_LIMITS,
    FirstFunction,
    GammaPrior,
    HeteroscedasticNoise,
    RegressionModel,
    ScaleMixture,
    Scales,
    coefficients,
    design,
    fitted_values,
    left_out,
    ridge_density,
)
from mercer.spectral.rows import some_positions

Array = NDArray[np.float64]

# Inverse gamma prior of the noise variance, in squared standard deviations of the target: all but
# flat in its logarithm above the rate. IG(a, b) tells as much as 2a residuals with squares of 2b in
# all: with a = 1 two residuals of almost nothing, which 15 rows believed, and interpolated.
_NOISE_SHAPE, _NOISE_RATE = 0.1, 1e-4
_KNOWN = 0.25  # of the rows: as many residuals is a noise worth that is known
# A function has a tenth of the noise's variance or more: a mean of 1000 took clear functions of 40
# rows for noise, and a shape below 1 goes through the targets of some tables.
_RIDGE_PRIOR = GammaPrior(1.0, 0.1)
# With a rate far below 1 the linear part is all but absent beforehand, and the posterior may have a
# second mode, where frequencies do its work; chains hardly ever cross over.
_LINEAR_PRIOR = GammaPrior(1.0, 1.0)
_FIRST_RIDGE, _FIRST_LINEAR_PRECISION = 0.02, 1.0
# Components that a chain starts with, in multiples of the scales found: by itself it hardly ever
# finds a second one.
_FACTORS = (0.3, 1.0, 2.5)
_KAPPA0, _NU0 = 0.1, 3.0
_CONCENTRATION_PRIOR = ConcentrationPrior(1.0, 0.5)
_SCALE_SHAPE = 1.0


# Robust standard deviations of the target that it is cut at in the search for the start; and of
# what the function there leaves of it, beyond which a row does not look right.
TAME, _SUSPICIOUS = 3.0, 4.0
_RIDGES_OF_WAVES = np.array([1e-6, 1e2])
_HALVES, _ROUNDS, _RATES = 2, 4, (0.01, 0.1, 0.3)
# With many rows: numbers of frequencies whose evidence is compared, the ridges at which, and what
# a row may lose of it, in nats.
_NUMBERS = (32, 48, 64, 96, 128, 192, 256)
_RIDGES_TRIED = np.geomspace(1e-6, 1e2, 13)
_WORTH = 0.005
Evidence = Callable[[Array], float]  # of frequencies (m, d), in nats


def default_scale(n_inputs: int) -> Array:
    """Standard deviation of frequencies before any data are seen: phases x'w of variance one."""
    return np.full(n_inputs, n_inputs**-0.5)


# Where chains start: a scale for each input from a few steps up the evidence.
#
# With frequencies W0_jl c_l, W0 drawn once, the evidence of some rows is a smooth function of
# (log c, log ridge). A few steps of L-BFGS-B from c = 1, kept within `BOUNDS`, give scales that
# chains start around. To convergence they would overfit; an input that is dropped altogether would
# not come back; but a periodic one may need frequencies far above those of the start.
#
# **Gradient.** With F = [Phi, H], r = y - F mu_n and D = (a_n / b_n) r mu_n' - F Lambda_n^-1,
#
#     dL / dW_j     = sum_i (D_i,sin_j C_ij - D_i,cos_j S_ij) x_i
#     dL / dlog c_l = sum_j W_jl dL/dW_jl
#     dL / dlog ridge = M - ridge / 2 (tr_phi Lambda_n^-1 + (a_n / b_n) |mu_n,phi|^2)
#
# where C_ij and S_ij are the scaled cosine and sine of frequency j, and "phi" are the features
# alone.

BOUNDS = (1.0 / 4.0, 16.0)
_MOST_STEPS, _STEPS_OF_NOISE = 15, 40  # for a start; to tell a sum from a factor
# Searches that may begin in several ways begin at these multiples of the first scales: those from
# high frequencies miss smooth functions of a few among many inputs, those from low ones waves.
BEGINNINGS = (1.0, 0.5, 0.25)
_CLEARLY = 0.05  # nats a target, by which others must end higher: small leads lose small inputs
PENALTY = 0.05  # times |log c|^2: scales that the data say nothing of stay where they are


@dataclass(frozen=True, eq=False)
class EvidenceOfScales:
    """Log evidence of (log c, log ridge) for frequencies W0 (M, d), and its gradient.

    Of several outputs y is (n, q): the sum of theirs.
    """

    X: Array
    y: Array
    frequencies: Array
    model: RegressionModel
    linear_precision: float

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Evaluate at theta = (log c_1, .., log c_d, log ridge), both in nats."""
        model, m2 = self.model, 2 * len(self.frequencies)
        W, ridge = self.frequencies * np.exp(theta[:-1]), float(np.exp(theta[-1]))
        F = design(W, self.X, model.n_linear > 0)
        bordered = np.vstack([F, self.y.T])
        prior = model.prior_precisions(m2, ridge, self.linear_precision)
        law = coefficients(model, bordered @ bordered.T, prior)
        inverse, info = lapack.dpotri(law.factor, lower=1)
        if info != 0:
            raise NumericalError(f"the inverse of a matrix of order {len(F)} failed ({info})")
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        q, means = model.n_outputs, np.atleast_2d(law.mean)[:, :m2]
        gains = model.posterior_shape / np.atleast_1d(law.rate)
        residuals = np.atleast_2d(self.y.T - law.mean @ F)
        pulls = (
            gain * np.outer(*each) for gain, *each in zip(gains, means, residuals, strict=True)
        )
        D = sum(pulls) - q * (inverse[:m2] @ F)
        weights = D[1::2] * F[0:m2:2] - D[0::2] * F[1:m2:2]
        by_scale = np.sum(W * (weights @ self.X), axis=0)
        squares = float(gains @ np.vecdot(means, means))
        by_ridge = q * len(W) - 0.5 * ridge * (q * np.trace(inverse[:m2, :m2]) + squares)
        return law.log_evidence, np.append(by_scale, by_ridge)


def effective_degrees(frequencies: Array, X: Array, ridge: float, n_rows: int) -> float:
    """Effective degrees of freedom of a function of features, tr(G (G + ridge I)^-1).

    G is Phi'Phi of n_rows rows like those of X (n, d).
    """
    F = np.empty((2 * len(frequencies), len(X)))
    fill_features(frequencies, X, F)
    sizes = np.linalg.eigvalsh(F @ F.T) * (n_rows / len(X))
    return float((sizes / (sizes + ridge)).clip(0.0).sum())


def find_scales(
    rng: np.random.Generator,
    X: Array,
    y: Array,
    model: RegressionModel,
    first: Scales,
    linear_precision: float,
    penalty: float = PENALTY,
    deadline: float | None = None,
    most_steps: int = _MOST_STEPS,
) -> Scales:
    """Take a few steps up the evidence of rows X (n, d), y (n,) from the first scales.

    ``penalty`` times |log c|^2 is taken from it, in nats. After ``deadline``, of
    `time.monotonic`, no other step is taken; there is one at least.
    """
    d = X.shape[1]
    W0 = rng.standard_normal((N_FREQUENCIES, d)) * first.scales
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
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        callback=stop_when_late(deadline),
        options={"maxiter": most_steps},
    )
    is_cut = is_late(deadline) and not found.success and found.nit < most_steps
    scales, ridge = first.scales * np.exp(found.x[:-1]), float(np.exp(found.x[-1]))
    pull = found.x[:-1]
    return Scales(scales, ridge, penalty * float(pull @ pull) - float(found.fun), is_cut)


@dataclass(frozen=True)
class SpectralSettings:
    """See `mercer.BaNKRegressor` for each."""

    n_frequencies: int
    concentration: float | str
    proposals: str
    base_measure: str
    frequency_scale: float | str
    ridge_precision: float | str
    linear_part: bool
    n_deviations: int
    rows_to_resolve: int = 0  # where the rows say how many of these frequencies there are
    n_sweeps: int = 1  # that make a draw after warm-up
    noise: str = "normal"  # one of `mercer.spectral.model.NOISES`
    known_noise: float = 0.0  # its variance, as a quarter of the rows would know it; 0: not known

    @property
    def noise_law(self) -> ScaleMixture | None:
        """Law of the noise where it is a mixture of normals."""
        return NOISES[self.noise]

    @property
    def has_far_errors(self) -> bool:
        """Whether targets may be far off that are not to bend the start."""
        return self.noise_law is not None and self.noise_law.has_far_errors

    @property
    def is_scale_learned(self) -> bool:
        """Whether start and base measure take their scale from the data."""
        return self.frequency_scale == "learn"

    def model(self, n_rows: int, n_inputs: int, n_outputs: int = 1) -> RegressionModel:
        """Return the regression."""
        n_linear = 1 + n_inputs if self.linear_part else 0
        prior = _RIDGE_PRIOR if self.ridge_precision == "learn" else None
        known = _KNOWN * n_rows if self.known_noise > 0.0 else 0.0
        noise = _NOISE_SHAPE + 0.5 * known, _NOISE_RATE + 0.5 * known * self.known_noise
        return RegressionModel(n_rows, n_linear, *noise, prior, _LINEAR_PRIOR, n_outputs)

    def first_scales(self, n_inputs: int) -> Scales:
        """Where the search for the start begins, and what stays where there is no search."""
        unit = 1.0 if isinstance(self.frequency_scale, str) else float(self.frequency_scale)
        ridge = _FIRST_RIDGE if isinstance(self.ridge_precision, str) else self.ridge_precision
        return Scales(unit * default_scale(n_inputs), float(ridge))

    def climb(
        self,
        rng: np.random.Generator,
        X: Array,
        y: Array,
        penalty: float = PENALTY,
        deadline: float | None = None,
        limit: float = TAME,
        most_steps: int = _MOST_STEPS,
        beginnings: tuple[float, ...] = (1.0,),
    ) -> Scales:
        """Search for the start on standardised rows X (n, d), y (n,): see `find_scales`.

        Where the noise has far errors, targets count as no farther than ``limit``. Of several
        ``beginnings``, multiples of the first scales, the one that ends highest, if by far; none
        but the first after ``deadline``.
        """
        y = np.clip(y, -limit, limit) if self.has_far_errors else y
        first = self.first_scales(X.shape[1])
        model = self.model(len(X), X.shape[1], math.prod(y.shape[1:]))
        precision, found = self.start(first).linear_precision, list[Scales]()
        for factor in beginnings:
            if found and is_late(deadline):
                break
            begun = replace(first, scales=factor * first.scales)
            given = precision, penalty, deadline, most_steps
            found.append(find_scales(rng, X, y, model, begun, *given))
        is_cut = len(found) < len(beginnings) or any(each.is_cut for each in found)
        least = found[0].log_evidence + _CLEARLY * y.size
        ahead = [each for each in found if each.log_evidence > least] or found[:1]
        return replace(max(ahead, key=lambda each: each.log_evidence), is_cut=is_cut)

    def left_out(self, y: Array, X: Array, deadline: float | None = None) -> LeftOut:
        """Say of standardised targets (n,) what others say, given X (n, d): `gains_of_noise`.

        The same whatever the seed is.
        """
        most = _STEPS_OF_NOISE
        with one_blas_thread():
            found = self.climb(stream(0, "scales"), X, y, deadline=deadline, most_steps=most)
            return left_out(stream(0, "scales"), X, y, self.model(*X.shape), found)

    def search(
        self, entropy: int, X: Array, y: Array, deadline: float | None
    ) -> tuple[NDArray[np.bool_], FirstFunction | None, Scales]:
        """Which rows X (n, d), y (n,) look right, around which function, and where chains start."""
        right, first = np.ones(len(y), dtype=bool), None
        found = searched = self.first_scales(X.shape[1])
        if self.has_far_errors:
            right, first, searched = self.look_right(entropy, X, y, deadline)
        if self.noise in WITH_ERRORS and self.is_scale_learned:  # in that one way only
            found = searched
        elif self.is_scale_learned:
            rng, rows = stream(entropy, "scales"), (X[right], y[right])
            begun = BEGINNINGS if first is None else BEGINNINGS[1:]  # rows were looked at by one
            found = self.climb(rng, *rows, deadline=deadline, beginnings=begun)
            if searched.log_evidence + _CLEARLY * len(rows[1]) > found.log_evidence:
                found = searched  # not where it was not looked for: NaN
        return right, first, found

    def look_right(
        self, entropy: int, X: Array, y: Array, deadline: float | None = None
    ) -> tuple[NDArray[np.bool_], FirstFunction, Scales]:
        """Which rows X (n, d), y (n,) look right, more than half of them, around which function of
        which scales.

        Those whose error is no more than four robust deviations: of the function given the rows
        that looked right before, a few rounds of this. It begins in three ways, of which the one
        is taken by which targets are the most probable, were some of any share wrong: all rows,
        their targets cut at `TAME`, since those that are far may be wrong; all as they are, since
        targets may be skewed and right; and the half nearest to the middle target, since errors
        on one side that are many would be noise. The last not where a quarter of the targets
        equals the middle one: a function that is constant there would leave no error. Targets that
        are tied say nothing of the noise.

        This decides where chains start, and, of tied targets, what is known of the noise.
        """
        far, everywhere = np.abs(y - np.median(y)), np.ones(len(y), dtype=bool)
        begun = [(everywhere, TAME, 0), (everywhere, math.inf, 0)]
        if np.quantile(far, 0.25) > 0.0:
            begun.append((far <= np.median(far), math.inf, _HALVES))
        found = [self._settled(entropy, X, y, each, deadline) for each in begun]
        return max(found, key=lambda each: each[0])[1:]

    def _settled(
        self,
        entropy: int,
        X: Array,
        y: Array,
        begun: tuple[NDArray[np.bool_], float, int],
        deadline: float | None,
    ) -> tuple[float, NDArray[np.bool_], FirstFunction, Scales]:
        (right, limit, n_halves), model = begun, self.model(*X.shape)
        counts = ~tied_rows(y)
        for i in range(n_halves + _ROUNDS):
            rng, tame = stream(entropy, "scales"), np.clip(y, -limit, limit)
            scales = self.climb(rng, X[right], tame[right], deadline=deadline, limit=math.inf)
            rng = stream(entropy, "scales", 4)
            first, errors = FirstFunction.of(rng, (X, tame), right, counts, model, scales)
            size = np.abs(errors + y - tame)
            middle = float(np.median(size[counts]))
            most = middle if i < n_halves else max(_SUSPICIOUS * first.noise_std, middle)
            before, right, limit = right, size <= most, math.inf
            if is_late(deadline) or (i >= n_halves and (right == before).all()):
                break
        logs = [
            logsumexp(log_kinds(size, first.noise_std**2, log_shares(rate)), axis=1).sum()
            for rate in _RATES
        ]
        return float(max(logs)), right, first, scales

    def with_waves(self, rng: np.random.Generator, found: Scales, X: Array, y: Array) -> Scales:
        """Take the ridge by which rows X (n, d), y (n,) are most probable given waves of the start.

        That of slow features, which leave the waves over, would shrink them to nothing, and chains
        would lose them in a sweep or two.
        """
        if not found.waves or self.ridge_precision != "learn":
            return found
        W, _ = self.start(found).frequencies(rng, self.n_frequencies)
        F = np.vstack([design(W, X, self.linear_part), y.T])
        model = self.model(len(X), X.shape[1], math.prod(y.shape[1:]))
        density = ridge_density(model, F @ F.T, _FIRST_LINEAR_PRECISION)
        tried = np.append(math.log(found.ridge), np.linspace(*np.log(_RIDGES_OF_WAVES)))
        return replace(found, ridge=math.exp(max(tried, key=density)))

    def log_evidence(self, W: Array, X: Array, y: Array, deadline: float | None = None) -> float:
        """Log evidence of frequencies W (m, d) given rows X (n, d), y (n,), in nats.

        At the best of some ridges, or at that which is given; of one by the ``deadline``.
        """
        y = np.clip(y, -TAME, TAME) if self.has_far_errors else y
        F = np.vstack([design(W, X, self.linear_part), y.T])
        gram, model = F @ F.T, self.model(len(X), X.shape[1], math.prod(y.shape[1:]))
        best = -math.inf
        for ridge in self.ridges_tried(_RIDGES_TRIED):
            if best > -math.inf and is_late(deadline):
                break
            prior = model.prior_precisions(2 * len(W), ridge, _FIRST_LINEAR_PRECISION)
            try:
                best = max(best, coefficients(model, gram, prior).log_evidence)
            except NumericalError:  # of a ridge that is too small
                continue
        return best

    def ridges_tried(self, ridges: Array) -> Array:
        """These, if the ridge is learned."""
        given = self.ridge_precision
        return ridges if isinstance(given, str) else np.array([float(given)])

    def n_worth(
        self,
        rng: np.random.Generator,
        found: Scales,
        most: int,
        n_rows: int,
        log_evidence: Evidence,
        share: float = math.inf,
        deadline: float | None = None,
    ) -> int:
        """How many frequencies of the start, up to ``most``, so many rows have use for.

        The fewest, from 32 on, whose evidence is below that of all by no more than a few
        thousandths of a nat a row, and by no more than this share of it. Those of the start lie
        where chance put them; chains move them, and need fewer. ``most`` where this is not known by
        the ``deadline``.
        """
        fewer = [k for k in _NUMBERS if k < most]
        if not fewer:
            return most
        W = rng.permutation(self.start(found).frequencies(rng, self.n_frequencies)[0])
        of_all = log_evidence(W)
        if not math.isfinite(of_all):
            return most
        least = of_all - min(_WORTH * n_rows, share * abs(of_all))
        for k in fewer:
            if is_late(deadline):
                break
            if log_evidence(W[:k]) >= least:
                return k
        return most

    def resolved(self, rng: np.random.Generator, found: Scales, X: Array) -> SpectralSettings:
        """Have no more frequencies than rows like those of X (n, d) resolve, 16 at least.

        Six for ten of the first 60 effective degrees of freedom of the function at the start, five
        for each four further ones, and each has two features: what is more cannot be placed by the
        rows, and shares of components become walks of all that are there.
        """
        if self.rows_to_resolve == 0:
            return self
        W, _ = self.start(found).frequencies(rng, self.n_frequencies)
        degrees = effective_degrees(W, X, found.ridge, self.rows_to_resolve)
        first = min(degrees, _FIRST_DEGREES)
        wanted = _A_DEGREE * first + _A_FURTHER_DEGREE * (degrees - first)
        number = max(math.ceil(wanted), _FEWEST_RESOLVED)
        return self.reduced(min(number, self.n_frequencies))

    def reduced(self, number: int) -> SpectralSettings:
        """Have so many frequencies; draws take up to four sweeps instead of the others."""
        n_sweeps = min(round((self.n_frequencies / number) ** 2), _MOST_SWEEPS)
        return replace(self, n_frequencies=number, n_sweeps=n_sweeps)

    def start(self, found: Scales) -> Start:
        """Return where chains start."""
        factors = _FACTORS if self.is_scale_learned else (1.0,)
        ridge = found.ridge if self.ridge_precision == "learn" else float(self.ridge_precision)
        return Start(found.scales, factors, ridge, _FIRST_LINEAR_PRECISION, found.waves)

    def mixture(self, found: Scales) -> Mixture:
        """Return the prior of the frequencies, whose variance is that of the scales if learned."""
        base, prior = self._base(found)
        is_learned = isinstance(self.concentration, str)
        return Mixture(
            base,
            concentration=2.0 if is_learned else float(self.concentration),
            concentration_prior=_CONCENTRATION_PRIOR if is_learned else None,
            scale_prior=prior if self.is_scale_learned else None,
        )

    def _base(self, found: Scales) -> tuple[BaseMeasure[Any], ScalePrior]:
        """Base measure, and prior of its scale.

        Scales that were learned are those of frequencies, whose variance is that within components
        and that of their means, 1 / kappa0 times as much.
        """
        base: BaseMeasure[Any]
        if self.base_measure == "diagonal":
            base = DiagonalBase.from_std(found.scales, _KAPPA0, _NU0)
        else:
            base = FullBase.from_std(found.scales, _KAPPA0)
        if self.is_scale_learned:
            base = base.with_scale(base.scale / (1.0 + 1.0 / _KAPPA0))
        return base, ScalePrior(_SCALE_SHAPE, base.scale)


# Whether the variance of the noise is a function of the inputs, from errors of targets left out.

_FOLDS, _SPREADS, _STEPS_OF_VARIANCE = 5, (0.1, 0.25, 0.5, 1.0), 20


def varying_law(errors: Array, X: Array, deadline: float | None = None) -> Array:
    """Log density of errors (n,) of which the log variance is a function of rows X (n, d).

    Of each fifth by the function that is the most probable given the others, within its range among
    these; of the spread of functions by which all are the likeliest, of those that are looked at
    by the ``deadline``. The same whatever the seed is.
    """
    law = HeteroscedasticNoise().placed(stream(0, "scales", 5), default_scale(X.shape[1]), X)
    told = np.vstack([np.zeros(len(X)), design(law.beside, X, has_linear_part=False)])
    centred, fold = told[1:] - law.centre[:, np.newaxis], np.arange(len(X)) % _FOLDS
    best = np.full(len(X), -math.inf)
    for i, spread in enumerate(_SPREADS):
        if i > 0 and is_late(deadline):
            break
        logs = np.empty(len(X))
        for k in range(_FOLDS):
            others = fold != k
            variances = _variances(law, spread, (told[:, others], errors[others]), centred, others)
            logs[~others] = norm.logpdf(errors[~others], 0.0, np.sqrt(variances[~others]))
        best = max(best, logs, key=np.sum)
    return best


def _variances(
    law: HeteroscedasticNoise,
    spread: float,
    known: tuple[Array, Array],
    centred: Array,
    others: NDArray[np.bool_],
) -> Array:
    """Variance of each row (n,) by what is ``known``, features and errors, of the ``others``."""
    squares, rng, g = np.square(known[1]), stream(0, "scales"), np.zeros(len(others))
    parameter, variance = np.append(spread, np.zeros(len(law.centre))), float(np.mean(squares))
    with one_blas_thread():
        for _ in range(_STEPS_OF_VARIANCE):
            parameter = law.climbed(law.hearer(variance, parameter, rng)(*known), parameter)
            g = parameter[1:] @ centred
            g = np.clip(g, g[others].min(), g[others].max())
            variance = float(np.mean(squares * np.exp(-g[others])))
    return variance * np.exp(g)


# Waves that the rows show by themselves: needles, which chains that start from slow frequencies
# would take for noise.
#
# What features at the scales found leave of the targets is looked at along each input, by the
# periodogram of unevenly spaced values: at w, half the sum of squares that cos and sin of w x
# explain, over the variance. Of noise it is about exponential with mean 1, so that the highest of
# k values is above log(k / a) with probability a. The highest is taken out, and so on.

_CYCLES, _POINTS_A_CYCLE = 250, 4  # waves over the range of an input that are looked for, at most
_MOST_ROWS_OF_WAVES, _MOST_WAVES = 1000, 4
_FALSE_WAVES = 1e-3  # probability that noise shows one


def find_waves(
    rng: np.random.Generator, X: Array, y: Array, model: RegressionModel, found: Scales
) -> tuple[Array, ...]:
    """Find frequencies (d,) of waves along one input each in what the scales leave of y (n,).

    Of several outputs y is (n, q): those of each, where they differ.
    """
    if y.ndim > 1:
        found_in = [find_waves(rng, X, column, model, found) for column in y.T]
        return tuple({wave.tobytes(): wave for each in found_in for wave in each}.values())
    X, y = X[:_MOST_ROWS_OF_WAVES], y[:_MOST_ROWS_OF_WAVES]
    left = y - fitted_values(rng, X, y, model, found)
    grids = [_cycles(x) for x in X.T]
    n_looks = sum(len(grid) for grid in grids)
    waves: list[Array] = []
    while n_looks > 0 and len(waves) < _MOST_WAVES:
        powers = [
            _periodogram(x, left, grid) if len(grid) else np.zeros(1)
            for x, grid in zip(X.T, grids, strict=True)
        ]
        j = int(np.argmax([power.max() for power in powers]))
        if not powers[j].max() > math.log(n_looks / _FALSE_WAVES):
            break
        wave = np.zeros(X.shape[1])
        wave[j] = grids[j][np.argmax(powers[j])]
        waves.append(wave)
        phase = X[:, j] * wave[j]
        pair = np.column_stack([np.cos(phase), np.sin(phase), np.ones(len(left))])
        left = left - pair @ np.linalg.lstsq(pair, left, rcond=None)[0]
    return tuple(waves)


def _cycles(x: Array) -> Array:
    """Frequencies to look at along an input (n,), from two waves over its range on."""
    reach, n_values = float(np.ptp(x)), len(np.unique(x))
    most = min(n_values // 2, _CYCLES)
    if reach <= 0.0 or most <= 2:
        return np.empty(0)
    return 2.0 * math.pi / reach * np.arange(2.0, most, 1.0 / _POINTS_A_CYCLE)


def _periodogram(x: Array, left: Array, grid: Array) -> Array:
    """Power at each frequency of a grid (k,) of values left (n,) at x (n,), shape (k,)."""
    F = np.empty((2 * len(grid), len(x)))
    fill_features(grid[:, np.newaxis], x[:, np.newaxis], F)
    centred = left - left.mean()
    products = (F @ centred) ** 2 / np.maximum(np.square(F).sum(axis=1), 1e-12)
    variance = max(float(centred.var()), 1e-300)
    return np.asarray(products.reshape(-1, 2).sum(axis=1) / (2.0 * variance))


# The arguments that both estimators have: their ranges, and what is fitted by them.

# Beyond these, nothing is left of the digits of a double.
_RANGES = {
    "concentration": (1e-6, 1e6),
    "frequency_scale": (1e-6, 1e6),
    "ridge_precision": RIDGE_LIMITS,
}
MANY_ROWS, _OF_MANY_ROWS = 5000, 384
# With fewer rows: frequencies for each of them, two features each, and the fewest and the most.
_A_ROW, _FEWEST, MOST_OF_FEW_ROWS = 0.4, 48, 160
# Frequencies for each of the first degrees of freedom, and for each further one: fewer are as good
# for a plain function, but not for a rich one with little noise.
_A_DEGREE, _FIRST_DEGREES, _A_FURTHER_DEGREE = 0.6, 60.0, 1.25
_FEWEST_RESOLVED, _MOST_SWEEPS = 16, 4
# Of the function in all, at least: draws of the coefficients are cheaper than those of frequencies.
_FUNCTIONS = 128


def check_arguments(model: Any) -> None:
    """Raise `UsageError` for the first argument out of its range."""
    if model.n_frequencies != "auto":
        check_count("n_frequencies", model.n_frequencies, 1)
    for name, (lowest, highest) in _RANGES.items():
        value = getattr(model, name)
        if value == "learn":
            continue
        if not lowest <= check_positive(name, value) <= highest:
            raise UsageError(f"{name} must lie between {lowest:g} and {highest:g}; got {value!r}")
    check_choice("proposals", model.proposals, ("pcn", "prior"))
    check_choice("base_measure", model.base_measure, ("diagonal", "full"))
    check_choice("linear_part", model.linear_part, (True, False))
    check_choice("standardize", model.standardize, METHODS)
    check_choice("missing", model.missing, ("error", "posterior"))
    if model.kernel_rows is not None:
        check_count("kernel_rows", model.kernel_rows, 2)
    check_count("full_draws", model.full_draws, 1)
    if not isinstance(model.device, str | None):
        raise UsageError(f"device must be a name such as 'cuda', or None; got {model.device!r}")


#: What the paper's regressor and classifier have in common.
OF_PAPER: Final[dict[str, Any]] = {
    "n_frequencies": 384, "concentration": 1.0, "proposals": "prior", "base_measure": "full",
    "frequency_scale": 1.0, "ridge_precision": 0.5, "linear_part": False, "kernel_rows": None,
    "standardize": "std", "n_draws": 100, "n_warmup": 50, "n_chains": 1,
}  # fmt: skip

_FLOPS_A_SECOND = 3.5e10  # of the products of a sweep, by one core: see docs/scaling.md


def expected_seconds(model: Any, n_rows: int, n_functions: int = 1) -> float:
    """Say about how many CPU seconds chains take; 0 for less than many rows, and on a device.

    A sweep costs 12 N M^2 operations, of functions of classes 16 N M^2 each; the first half of
    warm-up looks at a few rows only.
    """
    n = min(n_rows, model.kernel_rows or n_rows)
    if n < MANY_ROWS or model.device is not None:
        return 0.0
    n_frequencies = settings_of(model, n).n_frequencies
    thin = 1 if model.thin == "auto" else model.thin
    n_sweeps = model.n_chains * (0.5 * model.n_warmup + model.n_draws * thin)
    each = 12.0 if n_functions == 1 else 16.0 * n_functions
    return float(n_sweeps * each * n * n_frequencies**2 / _FLOPS_A_SECOND)


def settings_of(model: Any, n_rows: int) -> SpectralSettings:
    """Return what is fitted to so many rows by arguments that have been checked."""
    n_frequencies, rows_to_resolve = model.n_frequencies, 0
    if n_frequencies == "auto":
        rows_to_resolve = n_rows if model.frequency_scale == "learn" else 0
        n_frequencies = int(np.clip(math.ceil(_A_ROW * n_rows), _FEWEST, MOST_OF_FEW_ROWS))
        n_frequencies = _OF_MANY_ROWS if n_rows >= MANY_ROWS else n_frequencies
    n_total = int(model.n_draws) * int(model.n_chains)
    return SpectralSettings(
        n_frequencies=int(n_frequencies),
        concentration=model.concentration,
        proposals=model.proposals,
        base_measure=model.base_measure,
        frequency_scale=model.frequency_scale,
        ridge_precision=model.ridge_precision,
        linear_part=bool(model.linear_part),
        n_deviations=-(-_FUNCTIONS // n_total),
        rows_to_resolve=rows_to_resolve,
    )


# How inputs and target are standardised: which columns are warped, the evidence decides.
#
# Where a column is skewed there are several ways to take it: as it is, clipped (if it holds
# artefacts), by Yeo-Johnson's warp, or by the inverse hyperbolic sine of its robustly scaled
# values, a line up to a knee and a logarithm beyond. Each is tried on all skewed columns at once,
# with a few steps up the evidence on some rows (`mercer.spectral.model`), and the highest evidence
# of the targets is taken.

ROWS_OF_WARP = 2000
_FEWEST_ROWS = 20  # below, no skewness is worth the name
# Of the inverse hyperbolic sine, in interquartile ranges. Thresholds may lie close together where
# most values are: the sharper ones are for that. Few rows do not show it: the evidence, of classes
# as if they were numbers, then prefers them where they predict worse.
_KNEE, _SHARPER_KNEES = 1.0, (0.3, 0.1)
_ROWS_OF_SHARPER_KNEES = 3000


class _Climber(Protocol):
    """What takes a few steps up the evidence of some rows."""

    def climb(
        self,
        rng: np.random.Generator,
        X: Array,
        y: Array,
        *,
        deadline: float | None = None,
        beginnings: tuple[float, ...] = (1.0,),
    ) -> Scales: ...


def choose_standardizer(
    X: Array,
    y: Array,
    method: object,
    names: tuple[str, ...],
    settings: _Climber,
    entropy: int,
    most_rows: int = ROWS_OF_WARP,
    deadline: float | None = None,
    numbers: Array | None = None,
) -> tuple[Standardizer, tuple[str, ...]]:
    """Learn the standardisation of inputs X (n, d), given standardised targets y (n,).

    ``numbers`` (n, q) stand for targets that are classes where scales are compared.

    The evidence is that of ``most_rows`` rows at most. What has not been tried by ``deadline``,
    of `time.monotonic`, is left out. The notes say what was decided, where something was.
    """
    first = fit_standardizer(X, method, names)
    if method != "auto":
        return first, ()
    one, said = with_scales_by_evidence(first, X, y if numbers is None else numbers, may_warp=False)
    which = first.is_skewed(X) | first.is_clipped
    is_warped = which.any() and len(X) >= _FEWEST_ROWS
    if not is_warped and ONE_SCALE not in said:
        return one, said
    # By what is found from there: with equal weights of inputs, as ``said``, neither may fit.
    plain = fit_quietly(X, "std")
    candidates = _candidates(X, first, plain, which) if is_warped else {"": first}
    if ONE_SCALE in said:
        candidates["given one scale with all others"] = one
    chosen = some_positions(stream(entropy, "rows", 1), len(X), most_rows)
    evidence: dict[str, float] = {}
    for how, each in candidates.items():
        if is_late(deadline):
            break
        rng, Z = stream(entropy, "scales", 1), each.transform(X[chosen])
        begun = (1.0,) if is_warped else BEGINNINGS  # of many ways to warp each in one: for time
        found = settings.climb(rng, Z, y[chosen], deadline=deadline, beginnings=begun)
        if found.is_cut:
            break
        evidence[how] = found.log_evidence
    if not is_warped:
        is_one = len(evidence) < 2 or evidence[""] < max(evidence.values())
        return (one, said) if is_one else (first, ())
    listed = ", ".join(repr(names[j]) for j in np.flatnonzero(which)[:5])
    listed += f" and {which.sum() - 5} more" if which.sum() > 5 else ""
    if len(evidence) < 2:  # there is nothing to compare
        why = "max_seconds left no time to choose a warp by evidence"
        return first, (f"skewed columns, standardised without one: {why}: {listed}",)
    best = max(evidence, key=lambda how: evidence[how])
    of_some = f" ({len(evidence)} of {len(candidates)} ways tried within max_seconds)"
    how_many = of_some if len(evidence) < len(candidates) else ""
    return candidates[best], (f"skewed columns, {best} by evidence{how_many}: {listed}",)


def _candidates(
    X: Array, first: Standardizer, plain: Standardizer, which: NDArray[np.bool_]
) -> dict[str, Standardizer]:
    """Standardisations of training rows X (n, d) to choose among, by what they do.

    ``first`` may clip columns, ``plain`` does not; ``which`` (d,) are the columns to warp.
    """
    found = {
        "taken as they are": plain,
        "warped (Yeo-Johnson)": plain.warped(X, "yeo-johnson", which),
    }
    sharper = _SHARPER_KNEES if len(X) >= _ROWS_OF_SHARPER_KNEES else ()
    for knee in (_KNEE, *sharper):
        where = "" if knee == _KNEE else f", knee at {knee:g} interquartile ranges"
        how = f"warped (inverse hyperbolic sine{where})"
        found[how] = plain.warped(X, "arcsinh", which, knee)
    if first.is_clipped.any():
        found["scaled by their quartiles and clipped"] = first
    return found
