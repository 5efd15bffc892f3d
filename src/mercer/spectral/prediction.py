"""What draws of BaNK answer: predictions, the kernel and its spectrum, the inputs.

Each kept draw stores the mean mu_n of its coefficients and k deviations e drawn from their
posterior; mu_n + e and mu_n - e are draws of the coefficients, so that

    y* ~ N(phi(x)'(mu_n +- e), s2)

mixed over draws and signs is the posterior predictive law: 2 k normals a draw. Its mean is that of
phi(x)'mu_n, with the coefficients integrated out. Student's t noise makes these Student's t;
contaminated noise, of which new targets have that of the right ones, four normals in place of one;
heteroscedastic noise has a variance s2 exp(g(x)) in place of s2. Several outputs have the
frequencies of a draw in common, and coefficients and s2 of their own.
Of counts phi(x)'(mu_n +- e) is the logarithm of the mean of a negative binomial.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from mercer.errors import UsageError
from mercer.estimation.run import check_choice
from mercer.likelihoods.label_noise import WIDTHS, log_kinds, right_shares, shares_of, width_of
from mercer.posterior.draws import Draws, Table, finite_or_none
from mercer.posterior.labels import TargetLaws
from mercer.posterior.positive_laws import CountMixture
from mercer.posterior.predictive import StudentMixture
from mercer.spectral.missing import InputLaws
from mercer.spectral.mixture import Mixture, MixtureState
from mercer.spectral.model import design, feature_kernel, log_variances

Array = NDArray[np.float64]

_LOG_MEANS: Final = (-690.0, 34.5)  # of counts: within what `CountMixture` takes


#: Variables of draws that have an axis of outputs, where there are several.
OF_OUTPUTS: Final = ("noise_std", "function", "coef_mean", "coef_deviation")


@dataclass(frozen=True, eq=False)
class FunctionDraws:
    """Draws of the regression function, on standardised inputs and targets.

    Of several outputs those of all: an axis of q after the first in the next three.
    """

    frequencies: Array  # (S, M, d)
    mean: Array  # (S, 2 M + p)
    deviations: Array  # (S, k, 2 M + p)
    noise_std: Array  # (S,); of Student's t noise its scale; of counts 1 / sqrt(r)
    noise_df: Array | None = None  # (S,), degrees of freedom of Student's t noise
    log_shares: Array | None = None  # (S, 15), of kinds of errors, of contaminated noise
    is_of_counts: bool = False  # whether targets are, and functions logarithms of their means
    # Of heteroscedastic noise, whose log variance they give: (S, Q, d), (S, 2 Q + 1), and its least
    # and most among the training rows, (S, 2), which files of earlier versions do not have
    noise_frequencies: Array | None = None
    noise_coef: Array | None = None
    noise_range: Array | None = None
    inputs: InputLaws | None = field(default=None, kw_only=True)  # where missing ones are drawn

    @property
    def has_linear_part(self) -> bool:
        """Whether there are coefficients beyond those of the features."""
        return bool(self.mean.shape[-1] > 2 * self.frequencies.shape[1])

    def output(self, k: int) -> FunctionDraws:
        """Return those of one of several outputs."""
        own = self.mean[:, k], self.deviations[:, k], self.noise_std[:, k]
        return FunctionDraws(self.frequencies, *own, inputs=self.inputs)

    @property
    def scales(self) -> Array:
        """Standard deviation of the noise of each function, its scale if Student's t, (2 k S,)."""
        return np.repeat(self._target_std, 2 * self.deviations.shape[1])

    @property
    def _target_std(self) -> Array:
        if self.log_shares is None:
            return self.noise_std
        return np.asarray(self.noise_std * np.sqrt(width_of(self.log_shares)))

    def count_law(self, means: Array) -> CountMixture:
        """Law of counts of m rows with the components' means (m, 2 k S)."""
        return CountMixture(means, self.scales**-2)

    def noise_stds(self, X: Array) -> Array:
        """Standard deviation of the noise of each draw at rows X (m, d), (m, S).

        Of counts that of what one says of the logarithm of its mean, of each component, (m, 2 k S).
        """
        if self.is_of_counts:
            return np.asarray(np.sqrt(1.0 / self.locations(X)[1] + self.scales**2))
        V, coef = self.noise_frequencies, self.noise_coef
        if V is None or coef is None:
            return np.tile(self._noise_stds, (len(X), 1))
        logs = np.column_stack([log_variances(*each, X) for each in zip(V, coef, strict=True)])
        if self.noise_range is not None:
            logs = np.clip(logs, *self.noise_range.T)
        return np.asarray(self.noise_std * np.exp(0.5 * logs))

    def law(self, locations: Array, X: Array) -> StudentMixture:
        """Law of standardised targets of rows X (m, d) with the components' means (m, 2 k S)."""
        n = locations.shape[1]
        weights, k = np.full(n, 1.0 / n), 2 * self.deviations.shape[1]
        if self.noise_coef is not None:
            scales = np.repeat(self.noise_stds(X), k, axis=1)
            return StudentMixture(locations, scales, weights, math.inf)
        if self.log_shares is not None:
            noise = np.repeat(np.square(self.noise_std)[:, np.newaxis] * WIDTHS, k, axis=0)
            shares = np.repeat(right_shares(self.log_shares), k, axis=0)
            return StudentMixture.of_functions(locations, np.zeros(n), noise, shares, weights)
        if self.noise_df is None:
            return StudentMixture(locations, self.scales, weights, math.inf)
        df = np.repeat(self.noise_df, k)
        return StudentMixture(locations, self.scales, weights, df, has_own_variances=True)

    @property
    def mean_noise_std(self) -> Any:
        """Posterior mean of the standard deviation of the noise: a float, or (q,)."""
        return self._noise_stds.mean(axis=0)[()]

    @property
    def _noise_stds(self) -> Array:
        if self.noise_df is None:
            return self._target_std
        return np.asarray(self.noise_std * np.sqrt(self.noise_df / (self.noise_df - 2.0)))

    def expected(self, X: Array) -> Array:
        """Posterior mean at rows X (m, d), shape (m,), or (m, q) of several outputs."""
        if self.is_of_counts:
            return self.locations(X)[0]
        total = np.zeros((len(X), *self.mean.shape[1:-1]))
        for i in range(len(self.mean)):
            total += (self.mean[i] @ self._design(i, X)).T
        return total / len(self.mean)

    def locations(self, X: Array) -> tuple[Array, Array]:
        """Return the posterior mean (m,) and the components' means (m, 2 k S) at rows X (m, d)."""
        k = self.deviations.shape[1]
        total, parts = np.zeros(len(X)), np.empty((len(self.mean), 2 * k, len(X)))
        for i in range(len(self.mean)):
            F = self._design(i, X)
            mean = self.mean[i] @ F
            spread = self.deviations[i] @ F
            total += mean
            parts[i, :k] = mean + spread
            parts[i, k:] = mean - spread
        locations = np.ascontiguousarray(parts.reshape(-1, len(X)).T)
        if self.is_of_counts:
            means = np.exp(np.clip(locations, *_LOG_MEANS))
            return means.mean(axis=1), means
        return total / len(self.mean), locations

    def chosen(self, n_functions: int, rng: np.random.Generator) -> FunctionDraws:
        """Return one pair of functions of each of some draws: ``n_functions``, or one more."""
        n, k = -(-n_functions // 2), self.deviations.shape[1]
        which = np.resize(rng.permutation(len(self.mean)), n)
        pair = rng.integers(k, size=n)
        return self._of(which, self.deviations[which, pair][:, np.newaxis])

    def at(self, which: NDArray[np.int64]) -> FunctionDraws:
        """Return the draws at some positions."""
        return self._of(which, self.deviations[which])

    def _of(self, which: NDArray[np.int64], deviations: Array) -> FunctionDraws:
        given = self.frequencies[which], self.mean[which], deviations, self.noise_std[which]
        log_variance = (self.noise_frequencies, self.noise_coef, self.noise_range)
        noise = (self.noise_df, self.log_shares, *log_variance)
        df, shares, *logs = (None if each is None else each[which] for each in noise)
        inputs = None if self.inputs is None else self.inputs.at(which)
        return FunctionDraws(*given, df, shares, self.is_of_counts, *logs, inputs=inputs)

    def _design(self, i: int, X: Array) -> Array:
        if self.inputs is not None:
            X = self.inputs.filled(i, X)
        return design(self.frequencies[i], X, self.has_linear_part)


@dataclass(frozen=True, eq=False)
class SeveralLaws:
    """Laws of q outputs at m rows, each by itself; answers have outputs as their last axis."""

    laws: tuple[StudentMixture, ...]

    @property
    def mean(self) -> Array:
        """Mean, shape (m, q)."""
        return np.column_stack([law.mean for law in self.laws])

    @property
    def std(self) -> Array:
        """Standard deviation, shape (m, q)."""
        return np.column_stack([law.std for law in self.laws])

    def log_density(self, y: ArrayLike) -> Array:
        """Log density of targets (m, q) of each output by itself, in nats."""
        pairs = zip(self.laws, np.asarray(y).T, strict=True)
        return np.column_stack([law.log_density(each) for law, each in pairs])

    def pit(self, y: ArrayLike) -> Array:
        """Probability of values below targets (m, q)."""
        pairs = zip(self.laws, np.asarray(y).T, strict=True)
        return np.column_stack([law.pit(each) for law, each in pairs])

    def interval(self, level: float) -> tuple[Array, Array]:
        """Ends of the central intervals, both (m, q)."""
        lower, upper = zip(*(law.interval(level) for law in self.laws), strict=True)
        return np.column_stack(lower), np.column_stack(upper)

    def sample(self, rng: np.random.Generator, n: int, chosen: NDArray[np.integer]) -> Array:
        """Draw new targets (n, m, q) of chosen components (n,), the same of all outputs."""
        return np.stack([law.sample(rng, n, chosen) for law in self.laws], axis=-1)


def spread(n_total: int, n: int) -> NDArray[np.int64]:
    """Positions of n draws, each in the middle of its share of all."""
    n = min(n, n_total)
    return ((np.arange(n) + 0.5) * n_total / n).astype(np.int64)


def function_draws(draws: Draws) -> FunctionDraws:
    """Take what predictions need out of the draws of a fit."""
    is_of_counts = "dispersion" in draws.variables
    names = ("noise_frequencies", "noise_coef", "noise_range")
    logs = (draws.flat(each) if each in draws.variables else None for each in names)
    return FunctionDraws(
        draws.flat("frequencies"),
        draws.flat("coef_mean"),
        draws.flat("coef_deviation"),
        draws.flat("dispersion") ** -0.5 if is_of_counts else draws.flat("noise_std"),
        draws.flat("noise_df") if "noise_df" in draws.variables else None,
        shares_of(draws) if "log_rate" in draws.variables else None,
        is_of_counts,
        *logs,
        inputs=InputLaws.of(draws),
    )


# Which targets are wrong, by draws of a function with contaminated noise.
#
# Given a draw, the probability that a target y is wrong is that of its kinds of error. Draws that
# were learned from y count alike; those that were not, in proportion to the density p(y | draw)
# that they give it. The value that the other rows expect is the mean over draws learned without y:
# of those learned with it each has the weight 1 / p(y | draw).

DRAWS_THAT_JUDGE = 200
_ROWS_JUDGED_AT_ONCE = 256


def target_laws(
    functions: FunctionDraws,
    X: Array,
    y: Array,
    is_fitted: NDArray[np.bool_],
    most: int = DRAWS_THAT_JUDGE,
) -> TargetLaws:
    """What draws of functions say of standardised rows X (m, d), targets y (m,).

    ``is_fitted`` (m,) are the rows that the draws were learned from. By ``most`` draws at most.
    """
    functions = functions.at(spread(len(functions.mean), most))
    found, k = np.empty((3, len(X))), 2 * functions.deviations.shape[1]
    noise, variance = np.repeat(functions.noise_std**2, k), functions.scales**2
    shares = np.repeat(np.asarray(functions.log_shares), k, axis=0)
    for begin in range(0, len(X), _ROWS_JUDGED_AT_ONCE):
        rows = slice(begin, begin + _ROWS_JUDGED_AT_ONCE)
        means = functions.locations(X[rows])[1]
        logs = log_kinds(y[rows, np.newaxis] - means, noise, shares)
        whole = logsumexp(logs, axis=2)
        wrong = np.exp(logsumexp(logs[..., len(WIDTHS) :], axis=2) - whole)
        fitted = is_fitted[rows, np.newaxis]
        weights = _shares(np.where(fitted, 0.0, whole))
        found[0, rows] = (weights * wrong).sum(axis=1)
        weights = _shares(np.where(fitted, -whole, 0.0))
        found[1, rows] = (weights * means).sum(axis=1)
        squares = variance + (means - found[1, rows, np.newaxis]) ** 2
        found[2, rows] = np.sqrt((weights * squares).sum(axis=1))
    return TargetLaws(np.minimum(found[0], 1.0), *found[1:])


def _shares(logs: Array) -> Array:
    """Weights (m, S) with sum 1 from their logarithms."""
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


# The kernel that was learned, its spectral density and its components, in the user's units.
#
# With u_l the length of one standardised unit of input l (its standard deviation, say), a lag t in
# the user's units is t / u, a frequency w in radians per unit of the input is w u, and densities
# take the factor prod_l u_l. For a warped column u_l is that at the column's centre.

_LEVEL = 0.9
_FARTHEST = 1e100  # lag, in standardised units
_LARGEST_LOG = 700.0  # of a density: beyond, a double overflows
# Draws whose mixture is looked at: a density of each costs more than the band gains from all.
_MOST_DRAWS = 200

Band = tuple[Array, Array, Array]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Frequencies and mixtures of all draws."""

    draws: Draws
    mixture: Mixture  # the prior of frequencies that was used
    units: Array  # (d,), length of a standardised unit of each input
    best: str = "log_evidence"  # variable that is highest for the draw whose components are listed

    def kernel(self, lags: Array) -> Band:
        """Mean and 90 % band of the features' kernel at lags (n, d)."""
        # Beyond this a phase says nothing, and its cosine is any number.
        lags = np.clip(lags / self.units, -_FARTHEST, _FARTHEST)
        W = self.draws.flat("frequencies")
        return _band(np.stack([feature_kernel(each, lags) for each in W]))

    def density(self, frequencies: Array) -> Band:
        """Mean and 90 % band of the spectral density at frequencies (n, d)."""
        W = frequencies * self.units
        factor = float(np.log(self.units).sum())
        logs = [self.mixture.log_spectral_density(state, W) for state in self._states()]
        return _band(np.exp(np.clip(np.stack(logs) + factor, None, _LARGEST_LOG)))

    def marginal_density(self, values: Array, j: int) -> Band:
        """Mean and 90 % band of the spectral density of input j alone, at values (n,)."""
        unit = float(self.units[j])
        rows = [
            self.mixture.marginal_density(state, values * unit, j) * unit
            for state in self._states()
        ]
        return _band(np.stack(rows))

    def components(self, names: tuple[str, ...]) -> Table:
        """List the components of the draw that explains the data best, the largest first."""
        best = int(np.argmax(self.draws.flat(self.best)))
        W = self.draws.flat("frequencies")[best]
        Z = self.draws.flat("assignment")[best]
        labels, counts = np.unique(Z, return_counts=True)
        rows: list[tuple[Any, ...]] = []
        for rank, k in enumerate(labels[np.argsort(-counts, kind="stable")]):
            members = W[k == Z]
            share = len(members) / len(W)
            # The sign of a whole component means nothing: that of its largest mean is made +.
            centre = members.mean(axis=0)
            sign = np.sign(centre[np.argmax(np.abs(centre))]) or 1.0
            numbers = (np.stack([sign * centre, members.std(axis=0)]) / self.units).T
            rows += [
                (rank + 1, share, name, *map(float, pair))
                for name, pair in zip(names, numbers, strict=True)
            ]
        return Table(("component", "share", "input", "frequency", "spread"), tuple(rows))

    def _states(self) -> Iterator[MixtureState]:
        """Rebuild the mixture of each draw; its components are drawn given their members."""
        draws = self.draws
        chosen = np.linspace(0, draws.n_total - 1, min(draws.n_total, _MOST_DRAWS)).astype(int)
        W, Z = draws.flat("frequencies"), draws.flat("assignment")
        scale, concentration = draws.flat("base_scale"), draws.flat("concentration")
        for i in chosen:
            base = self.mixture.base.with_scale(scale[i])
            rng = np.random.default_rng(int(i))
            components = base.draw_components(rng, W[i], Z[i], int(Z[i].max()) + 1)
            yield MixtureState(Z[i], components, scale[i], float(concentration[i]))


def _band(values: Array) -> Band:
    """Mean, lower and upper end over draws, values (S, n)."""
    tail = 0.5 * (1.0 - _LEVEL)
    lower, upper = np.quantile(values, (tail, 1.0 - tail), axis=0)
    return values.mean(axis=0), lower, upper


# Which inputs the learned kernel depends on: how fast it falls along each of them.
#
# Along input l alone the kernel of M frequencies is k(t) = (1/M) sum_j cos(w_jl t). On average
# over lags t in [0, 1], in standardised units, it has fallen by
#
#     1 - (1/M) sum_j sin(w_jl) / w_jl,
#
# which, unlike 1 - k(1), no period hides.

_MOST_DRAWS_OF_INPUTS: Final = 200
# A kernel is looked at over so many standardised units, or over so many periods of its highest
# frequencies if these are shorter: then it has gone where it goes.
_LONGEST: Final = 3.0
_PERIODS: Final = 4.0
_HIGH: Final = 0.9


@dataclass(frozen=True, eq=False)
class InputScales:
    """How the kernel depends on each of d inputs, over S draws; standardised units.

    ``falls`` (S, d), the mean fall of the kernel over lags up to one unit, is about 0 where it
    does not depend on the input, and about 1 where it is gone long before. Frequencies of an
    input that was constant in all training rows mean nothing.
    """

    falls: Array
    frequency_scales: Array  # (S, d), root mean square of the frequencies, in radians per unit
    longest_lags: Array  # (d,), up to which it is worth looking
    is_constant: NDArray[np.bool_]

    @property
    def order(self) -> tuple[int, ...]:
        """Inputs that are not constant, the one along which the kernel falls fastest first."""
        order = np.argsort(-self.falls.mean(axis=0), kind="stable")
        return tuple(int(j) for j in order if not self.is_constant[j])


def input_scales(model: Any) -> InputScales:
    """Look at the frequencies of a fitted BaNK model, of at most 200 of its draws."""
    W = model.posterior_.flat("frequencies")
    chosen = np.unique(np.linspace(0, len(W) - 1, min(len(W), _MOST_DRAWS_OF_INPUTS)).astype(int))
    falls = [1.0 - np.sinc(W[i] / np.pi).mean(axis=0) for i in chosen]
    squares = [np.square(W[i]).mean(axis=0) for i in chosen]
    high = np.quantile(np.abs(W[chosen]).reshape(-1, W.shape[2]), _HIGH, axis=0)
    periods = 2.0 * math.pi / np.maximum(high, 1e-100)
    return InputScales(
        falls=np.stack(falls),
        frequency_scales=np.sqrt(np.stack(squares)),
        longest_lags=np.minimum(_LONGEST, _PERIODS * periods),
        is_constant=np.asarray(model.standardizer_.scale == 0.0),
    )


# Periods: waves that come back, where the draws agree on one.
#
# A draw of the function is a sum of waves, each with the squares of its coefficients as its power.
# Along an input a draw has a period where a tenth around some frequency, that of a period of two
# standard deviations or more, holds at least half of the power within a factor of two of it: a
# curve that only bends has its power spread. The period of the input is that which most draws have
# within a tenth, and its probability is their share of all draws.

_LONGEST_PERIOD: Final = 2.0  # standard deviations: seen to come back within the bulk of the rows
_SAME: Final = math.log(1.1)  # distance of logarithms within which periods are the same
_AROUND: Final = math.log(2.0)
_LIKELY: Final = 0.5  # probability from which a period is named


def drawn_periods(frequencies: Array, powers: Array) -> Array:
    """Period of each draw along an input, NaN where it has none, shape (S,).

    ``frequencies`` (S, M) are those along the input, in radians per standardised unit, and
    ``powers`` (S, M) the squares of their coefficients.
    """
    found = np.full(len(frequencies), np.nan)
    for i, (w, power) in enumerate(zip(np.abs(frequencies), powers, strict=True)):
        centres = w[w >= 2.0 * math.pi / _LONGEST_PERIOD]
        if not len(centres):
            continue
        with np.errstate(divide="ignore"):
            distance = np.abs(np.log(w)[:, np.newaxis] - np.log(centres))
        held = power @ (distance <= _SAME)
        best = int(np.argmax(held))
        if held[best] >= 0.5 * float(power @ (distance[:, best] <= _AROUND)) > 0.0:
            is_in = distance[:, best] <= _SAME
            found[i] = 2.0 * math.pi / float(np.average(w[is_in], weights=power[is_in]))
    return found


def common_period(periods: Array) -> tuple[float, float, float, float]:
    """Median, 5 % and 95 % quantile of the period most draws (S,) share, and their share of all."""
    found = periods[np.isfinite(periods)]
    if not len(found):
        return math.nan, math.nan, math.nan, 0.0
    is_same = np.abs(np.log(found[:, np.newaxis] / found)) <= _SAME
    same = found[is_same[:, int(np.argmax(is_same.sum(axis=0)))]]
    lower, upper = np.quantile(same, (0.05, 0.95))
    return float(np.median(same)), float(lower), float(upper), len(same) / len(periods)


def period_words(model: Any) -> tuple[str, ...]:
    """Say the period along each input that has one; one sentence if none has."""
    words = []
    for name, period, lower, upper, probability in model.periods().rows:
        if probability >= _LIKELY:
            share = f"{probability:.2f}".removeprefix("0")
            words.append(
                f"{name}: a period of {period:.4g}, between {lower:.4g} and {upper:.4g}, with "
                f"probability {share}"
            )
    return tuple(words) or ("no period along any input",)


# What drawn spectra answer: the learned kernel and its density, whatever it was learned from.


class LearnedKernel:
    """Mixin of estimators that learn a kernel.

    Parameters
    ----------
    n_frequencies : int or "auto", default="auto"
        Number of Fourier frequencies, two features each. "auto": by the effective degrees of
        freedom that the rows give the function at the start, six for ten of the first 60 and five
        for each four further ones, 16 at least; at most two for each five rows (48 with few of
        them) or 160, 384 from 5000 rows on; and then no more than have a use, the fewest
        from 32 on whose evidence is within .005 nats a row of that of all at the start. Of classes
        and counts of fewer than 5000 rows, if a short run refuses at most one of three others in
        place of a frequency: three times as many as it refuses, 32 at least.
    concentration : float or "learn", default=2.0
        Concentration of the Dirichlet process: the larger, the more components.
    base_measure : {"diagonal", "full"}, default="diagonal"
        Covariances of the components; full ones are for up to about 30 inputs.
    frequency_scale : float or "learn", default="learn"
        "learn": a scale for each input, from a few steps up the evidence on at most 2000 rows,
        then redrawn with the rest. A number fixes the scale at so many times 1 / sqrt(d) radians
        per standardised unit.
    missing : {"error", "posterior"}, default="error"
        What NaN in the inputs is: an error, or a number that is drawn along with the function, of
        rows whose inputs are jointly normal once standardised and whose gaps depend on the inputs
        that are there only (missing at random). Predictions of rows with gaps are averaged over
        what may stand there. At most ``kernel_rows`` rows, in memory; of numbers under normal noise
        and of counts, and of classes.
    full_draws : int, default=4
        Draws whose coefficients are learned from all rows, where ``kernel_rows`` is exceeded.
    standardize : str or False, default="auto"
        As for `GPRegressor`. "auto": mean and standard deviation; where columns are skewed
        (absolute skewness above 1) or hold artefacts (a standard deviation over ten times the
        interquartile range), these are left, clipped, given one scale with all others, or warped by
        Yeo-Johnson or the inverse hyperbolic sine (its knee at one interquartile range, from 3000
        rows on also at 0.3 or 0.1), whichever has the highest evidence on at most 2000 rows, of
        classes 6000. Constant columns become 0.
    device : str or None, default=None
        Where features, their products and the matrices of a sweep are computed in ``fit``: None,
        by NumPy on the processor; "cuda", "cuda:1", ..., by PyTorch, in double precision (extra
        ``mercer[torch]``). The same seed gives draws that differ in their last bits, and soon in
        more. Predictions are by NumPy: a fitted model needs no device.
    max_seconds : float or None, default=None
        Stop after a whole sweep once so much time has passed; ``notes_`` says so.

    Attributes
    ----------
    components_ : Table
        The draw with the highest evidence (of classes, likelihood): share, frequencies and spreads
        of each component, in radians per unit of each input.
    n_frequencies_ : int
        Frequencies that were used.
    """

    feature_labels_: tuple[str, ...]
    _spectrum: Spectrum

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = getattr(self, "missing", "error") == "posterior"
        return tags

    @property
    def _plots(self) -> tuple[str, ...]:
        return ("learned_kernel", "spectral_density")

    def _put(self: Any, result: Any) -> None:
        """Set the fitted attributes."""
        for name, value in result.attributes().items():
            setattr(self, name, value)
        draws, names = self.posterior_, ("log_evidence", "log_likelihood")
        score = next(name for name in names if name in draws.variables)  # highest in the best draw
        self._spectrum = Spectrum(draws, result.mixture, self.standardizer_.units, score)
        self.components_ = self._spectrum.components(self.feature_labels_)

    def kernel(self, lags: ArrayLike) -> Band:
        """Kernel that was learned, as a function of the difference of two inputs.

        Parameters
        ----------
        lags : array of shape (n, d), or (n,) for one input
            In units of the inputs; those of a warped input are measured at its centre.

        Returns
        -------
        mean, lower, upper : ndarray of shape (n,)
            Over draws, the central 90 %; 1 at lag 0.
        """
        check_is_fitted(self)
        return self._spectrum.kernel(self._points(lags, "lags"))

    def spectral_density(self, frequencies: ArrayLike) -> Band:
        """Density of frequencies, the same for w and -w.

        Parameters
        ----------
        frequencies : array of shape (n, d), or (n,) for one input
            In radians per unit of each input.

        Returns
        -------
        mean, lower, upper : ndarray of shape (n,)
            Over draws, the central 90 %.
        """
        check_is_fitted(self)
        return self._spectrum.density(self._points(frequencies, "frequencies"))

    def marginal_spectral_density(self, frequencies: ArrayLike, column: int) -> Band:
        """Density of the frequencies of one input, at frequencies of shape (n,).

        Parameters
        ----------
        frequencies : array of shape (n,)
            In radians per unit of the input.
        column : int
            Position of the input, from 0.
        """
        check_is_fitted(self)
        check_choice("column", column, range(len(self.feature_labels_)))
        values = np.asarray(frequencies, dtype=np.float64)
        if values.ndim != 1 or not np.isfinite(values).all():
            raise UsageError(
                f"frequencies must be finite numbers of shape (n,); got {values.shape}"
            )
        return self._spectrum.marginal_density(values, int(column))

    def periods(self: Any) -> Table:
        """Period along each input that most draws agree on, however few these are.

        Returns
        -------
        Table
            Columns input, period, lower and upper (the middle and the central 90 % of the draws
            that have it, in units of the input) and probability (their share of all draws; what
            is below a half is no period). Inputs that are constant or warped have no row.
        """
        check_is_fitted(self)
        draws, standardizer = self.posterior_, self.standardizer_
        W = draws.flat("frequencies")
        coef = draws.flat("coef_mean") + draws.flat("coef_deviation")[..., 0, :]
        squares = np.square(coef[..., : 2 * W.shape[1]]).reshape(len(W), -1, W.shape[1], 2)
        powers = squares.sum(axis=(1, 3))
        rows = []
        for j, name in enumerate(self.feature_labels_):
            if standardizer.scale[j] == 0.0 or standardizer.is_warped[j]:
                continue
            *period, probability = common_period(drawn_periods(W[:, :, j], powers))
            in_units = (each * float(standardizer.units[j]) for each in period)
            rows.append((name, *map(finite_or_none, in_units), probability))
        return Table(("input", "period", "lower", "upper", "probability"), tuple(rows))

    def _points(self, values: ArrayLike, name: str) -> Array:
        points = np.asarray(values, dtype=np.float64)
        d = len(self.feature_labels_)
        if points.ndim == 1 and d == 1:
            points = points[:, np.newaxis]
        if points.ndim != 2 or points.shape[1] != d or not np.isfinite(points).all():
            raise UsageError(f"{name} must be finite numbers of shape (n, {d}); got {points.shape}")
        return points
