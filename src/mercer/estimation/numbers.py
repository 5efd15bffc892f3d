"""What regressors share: laws of predictions, targets that may be wrong, which noise there is."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student_t
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.errors import DataError, NumericalError, UsageError
from mercer.estimation.base import KernelEstimator, by_partition
from mercer.estimation.model_file import ModelParts, require
from mercer.estimation.run import check_count
from mercer.estimation.standardize import LeftOut, scale_target
from mercer.posterior.positive_laws import (
    LOGNORMAL,
    NOT_POSITIVE,
    OF_LOGARITHMS,
    STUDENT,
    SUITING,
    VARYING,
    WITH_ERRORS,
    LogNormalMixture,
    exp_within,
    noise_of,
)
from mercer.posterior.predictive import StudentMixture, check_level
from mercer.random import entropy_of

if TYPE_CHECKING:
    from mercer.data.row_names import RowNames
    from mercer.posterior.evaluation import TargetLaw
    from mercer.posterior.labels import TargetLaws

Array = NDArray[np.float64]
Law = TypeVar("Law", bound="TargetLaw")
_MOMENTS = ("mean", "std")
_FAR = 3.0  # standard deviations of targets, from their mean


def _held_back(f: Array, stds: Array) -> Array:
    """Let what is beyond nearly all standardised targets count by its precision, if that is low."""
    near = np.clip(f, -_FAR, _FAR)
    return np.asarray(near + (f - near) / np.square(np.maximum(stds, 1.0)))


class NumberPredictions(RegressorMixin, KernelEstimator, Generic[Law]):  # type: ignore[misc]
    """Base of regressors: a subclass gives the law of standardised rows, and the rest follows."""

    @abstractmethod
    def _law(self, Z: Array) -> Law:
        """Law of the targets of standardised rows (m, d), in their units."""

    @abstractmethod
    def _expected(self, Z: Array) -> Array:
        """Mean of that law, shape (m,), where the law itself is not needed."""

    @abstractmethod
    def _sample(self, Z: Array, n_draws: int, rng: np.random.Generator) -> Array:
        """Draw their targets, (n_draws, m)."""

    @by_partition
    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Posterior mean of the target.

        Parameters
        ----------
        X : array or frame of shape (m, d)
        return_std : bool, default=False

        Returns
        -------
        mean : ndarray of shape (m,)
            In units of the target.
        std : ndarray of shape (m,)
            Standard deviation of a new observation, noise included; only with ``return_std``.
        """
        check_is_fitted(self)
        Z = self._standardized(X)
        if return_std:
            laws = [self._law(Z[rows]) for rows in self._blocks(Z)]
            return tuple(np.concatenate([getattr(law, name) for law in laws]) for name in _MOMENTS)
        return np.concatenate([self._expected(Z[rows]) for rows in self._blocks(Z)])

    @by_partition
    def predict_interval(self, X: ArrayLike, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of a new observation, averaged over draws.

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
        check_is_fitted(self)
        check_level(level)
        Z = self._standardized(X)
        ends = [self._law(Z[rows]).interval(level) for rows in self._blocks(Z)]
        lower, upper = (np.concatenate(side) for side in zip(*ends, strict=True))
        return lower, upper

    def sample_y(
        self,
        X: ArrayLike,
        n_draws: int = 1,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> Array:
        """Draw new targets, shape (n_draws, m), of several outputs (n_draws, m, q).

        Those of a draw come from one function, particle or member, each with noise of its own; a
        Gaussian process refuses rows X (m, d) whose joint covariance is too large: a `DataError`.
        """
        check_is_fitted(self)
        check_count("n_draws", n_draws, 1)
        rng = np.random.default_rng(entropy_of(random_state))
        return self._sample(self._standardized(X), n_draws, rng)

    def predictive(self, X: ArrayLike) -> Law:
        """Predictive law of the target of each row: a mixture, one or more components a draw.

        Parameters
        ----------
        X : array or frame of shape (m, d)
            A thousand rows or so at a time: each takes hundreds of components.
        """
        check_is_fitted(self)
        return self._law(self._standardized(X))


class JudgedNumbers:
    """Mixin of regressors by draws: the units of targets, and which of these may be wrong.

    Attributes
    ----------
    expected_target_, expected_target_std_ : ndarray of shape (n,)
        Mean and standard deviation of a right target of each row, given the targets of the others.
    contamination_rate_ : float
        Posterior mean of the share of wrong targets.
    recorded_ : ndarray of shape (n,)
        Targets as they were given.
    row_names_ : RowNames
        How a report calls the rows.
    """

    noise: str
    target_centre_: float  # where noise is a factor, of its logarithm, as the scale
    target_scale_: float

    @property
    def _noises(self) -> tuple[str, ...]:
        """The noise that there may be."""
        return SUITING if self.noise == "auto" else (self.noise,)

    def _noise_in(self, parts: ModelParts) -> str:
        """The noise that a file names; files of before have that of the arguments."""
        noise = parts.fields.get("noise", self._noises[0])
        require(noise in self._noises, "noise")
        return str(noise)

    @property
    def _is_log(self) -> bool:
        return noise_of(self) in OF_LOGARITHMS

    def _in_units(self, f: Array) -> Array:
        """Values of the function in units of the target; medians where its noise is a factor."""
        values = f * self.target_scale_ + self.target_centre_
        return exp_within(values) if self._is_log else values

    def _law_in_units(self, law: Any, Z: Array, centre: Callable[[], Array]) -> Any:
        """The law of standardised targets of rows Z in units; ``centre`` gives a better mean."""
        scale, shift = self.target_scale_, self.target_centre_
        if self._is_log:
            return LogNormalMixture(law.in_units(scale, shift), self._mean_in_units(centre(), Z))
        return law.in_units(scale, shift, centre() * scale + shift)

    def _mean_in_units(self, f: Array, Z: Array) -> Array:
        """Mean of targets around a function at f (m,), at standardised rows Z, in their units.

        Where noise is a factor, that of the law of the targets would have no end far from the rows:
        there the logarithm may be anything. Nor is the middle of the function taken at its word
        where it is beyond nearly all targets, and known less well than one of which nothing is
        known: what is beyond counts by its precision.
        """
        if not self._is_log:
            return self._in_units(f)
        far = np.flatnonzero(np.abs(f) > _FAR)
        if len(far):
            f = f.copy()
            f[far] = _held_back(f[far], self._standard_law(Z[far]).std)
        factor = LogNormalMixture(self._noise_law().in_units(self.target_scale_, 0.0)).mean
        return exp_within(f * self.target_scale_ + self.target_centre_ + np.log(factor))

    @abstractmethod
    def _standard_law(self, Z: Array) -> StudentMixture:
        """Law of standardised targets of standardised rows."""

    @abstractmethod
    def _noise_law(self) -> StudentMixture:
        """Law of the noise of one standardised target."""

    def _drawn(self: Any, Z: Array) -> Array:
        drawn = super()._drawn(Z)  # type: ignore[misc]
        return np.asarray(np.log(drawn) if self._is_log else drawn)

    @abstractmethod
    def _laws_of(self, Z: NDArray[np.float64], y: NDArray[np.float64]) -> TargetLaws:
        """What the draws say of standardised rows (m, d) and targets that were not fitted."""

    @property
    def _is_contaminated(self) -> bool:
        return self.noise in WITH_ERRORS

    def target_errors(
        self: Any, X: ArrayLike, y: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Say of rows that were not fitted how probably their targets are wrong.

        Parameters
        ----------
        X : array or frame of shape (m, d)
        y : array of shape (m,)
            Their targets.

        Returns
        -------
        proba : ndarray of shape (m,)
            Probability that each is wrong, each by itself.
        expected, std : ndarray of shape (m,)
            Mean and standard deviation of a right target there.

        Raises
        ------
        UsageError
            If the noise is not "contaminated".
        """
        from mercer.likelihoods.label_noise import FARTHEST

        check_is_fitted(self)
        if not self._is_contaminated:
            raise UsageError('target_errors needs a fit with noise="contaminated"')
        Z = self._standardized(X)
        given = np.asarray(y, dtype=np.float64)
        if given.shape != (len(Z),) or not np.isfinite(given).all():
            raise DataError(f"y must hold {len(Z)} finite numbers, one for a row of X")
        if self._is_log and not (given > 0.0).all():
            raise DataError(f"a target is {given.min():g}, and {NOT_POSITIVE}")
        z = (np.log(given) if self._is_log else given) - self.target_centre_
        laws = self._laws_of(Z, np.clip(z / self.target_scale_, -FARTHEST, FARTHEST))
        return laws.wrong, *self._expected_targets(laws)

    def _expected_targets(self, laws: TargetLaws) -> tuple[Array, Array]:
        """Mean and standard deviation of right targets, in their units."""
        mean, std, scale = laws.mean, laws.std, self.target_scale_
        if not self._is_log:
            return mean * scale + self.target_centre_, std * scale
        # None is known less well than a target of which nothing is known.
        square = np.minimum(np.square(np.minimum(std, 1.0) * scale), 340.0)  # whose exp is finite
        logs = _held_back(mean, std) * scale + self.target_centre_
        expected = exp_within(logs + 0.5 * square)
        return expected, expected * np.sqrt(np.expm1(square))

    def _set_errors(self: Any, y: NDArray[np.float64], laws: TargetLaws, names: RowNames) -> None:
        self.recorded_, self._laws = y, laws
        self.row_names_ = names
        self.target_error_proba_ = laws.wrong
        self.expected_target_, self.expected_target_std_ = self._expected_targets(laws)
        self.contamination_rate_ = float(np.exp(self.posterior_.flat("log_rate")).mean())

    def _put_errors(self: Any, parts: ModelParts) -> None:
        """Add what is known of the targets to the parts of a file."""
        parts.arrays["recorded"] = self.recorded_
        parts.fields["rows"], numbers = self.row_names_.to_parts()
        parts.arrays.update(numbers)
        for name, values in vars(self._laws).items():
            parts.arrays[f"targets/{name}"] = values

    def _restore_errors(self: Any, parts: ModelParts) -> None:
        """Check what a file says of targets, and take it over."""
        from mercer.data.row_names import RowNames
        from mercer.posterior.labels import TargetLaws
        from mercer.posterior.schema import LARGEST, Array, check_arrays

        rules = {
            "recorded": Array(("1+",), least=-LARGEST, most=LARGEST),
            "targets/wrong": Array(("1+",), least=0.0, most=1.0),
            "targets/mean": Array(("1+",), least=-LARGEST, most=LARGEST),
            "targets/std": Array(("1+",), least=0.0, most=LARGEST),
        }
        check_arrays(parts.arrays, rules, {})
        recorded, *laws = (parts.arrays[name] for name in rules)
        require(len({len(recorded), *map(len, laws)}) == 1, "targets")
        names = RowNames.from_parts(parts.fields.get("rows"), parts.arrays, len(recorded))
        self._set_errors(recorded, TargetLaws(*laws), names)


# Which law the noise has, where that is not said.
#
# One model of targets as they are, and the law of each row given the others, in units of the
# target. Noise is a factor where a model of their logarithm gives them more log density, by a
# twentieth of a nat a row and two and a half standard errors, and hardly expects them worse. It has
# heavy tails where a Student's t law of the errors, each in units of what is expected of it, does,
# by a fiftieth and one standard error, and its centre is near their mean: the function of skewed
# errors is another one than the mean, and squared errors grow by the square of how far, which may
# be a 25th of them, and a fifth of the nats that are gained. It varies where a function of the
# inputs, learned from the errors of other rows, does as their log variance, by .03 nats and one and
# a half. Of several the likeliest, but a factor, which has no parameter, unless twice as much is
# gained otherwise.

FEWEST_DECIDING, _WORTH_A_FACTOR, _STANDARD_ERRORS, _WORSE = 20, 0.05, 2.5, 1.1
_WORTH_TAILS, _MOST_OFF, _OFF_A_NAT = 0.02, 0.04, 0.2
_WORTH_VARYING, _ERRORS_OF_VARYING = 0.03, 1.5
_DEGREES, _ROUNDS_OF_TAILS, _NARROWEST = (2.25, 3.0, 4.0, 6.0, 10.0, 18.0, 34.0), 50, 1e-6
TIME_OF_NOISE = 0.1  # of the time that there is


def gains_of_noise(
    y: Array,
    left_out: Callable[[Array], LeftOut],
    laws: tuple[str, ...],
    varying: Callable[[Array], Array] | None = None,
) -> dict[str, float]:
    """Say by how many nats a row which of these laws of noise are likelier than a normal one.

    Of targets (n,) in their units; ``left_out`` is called with them standardised, ``varying`` with
    errors (n,), for the log density of each by the variance that the others say it has.
    """
    is_positive = LOGNORMAL in laws and bool((y > 0.0).all()) and np.ptp(np.log(y)) > 0.0
    if len(y) < FEWEST_DECIDING or np.ptp(y) == 0.0 or not (is_positive or STUDENT in laws):
        return {}
    found: dict[str, float] = {}
    with suppress(DataError, NumericalError):  # too large, or too small, or no evidence
        sums, errors, stds = _errors_left_out(y, left_out, is_log=False)
        if STUDENT in laws:
            found[STUDENT] = gain_of_tails(errors / stds, sums + np.log(stds))
        if VARYING in laws and varying is not None:
            gains = varying(errors / stds) - np.log(stds) - sums
            found[VARYING] = _sure_gain(gains, _WORTH_VARYING, _ERRORS_OF_VARYING)
        if is_positive:
            factors, others, _ = _errors_left_out(y, left_out, is_log=True)
            if np.abs(others).mean() <= _WORSE * np.abs(errors).mean():
                found[LOGNORMAL] = _sure_gain(factors - sums, _WORTH_A_FACTOR, _STANDARD_ERRORS)
    return {law: gain for law, gain in found.items() if gain > 0.0}


def _errors_left_out(
    y: Array, left_out: Callable[[Array], LeftOut], *, is_log: bool
) -> tuple[Array, Array, Array]:
    """Log density of each target (n,) by the others, error, and what is expected of it.

    The expected error is in units of the target, or of its logarithm.
    """
    target = scale_target(y, is_log=is_log)
    logs, means, stds, variance = left_out(target.transform(y))
    logs, means = logs - math.log(target.scale), means * target.scale + target.centre
    if is_log:
        logs = logs - np.log(y)
        with np.errstate(over="ignore"):
            means = np.exp(means + 0.5 * variance * target.scale**2)
    return logs, y - means, stds * target.scale


def _sure_gain(gains: Array, worth: float, standard_errors: float) -> float:
    """Mean of gains (n,) if it is worth so much and so many standard errors, else 0."""
    gain, uncertainty = float(gains.mean()), float(gains.std()) / math.sqrt(len(gains))
    return gain if gain > max(worth, standard_errors * uncertainty) else 0.0


def gain_of_tails(errors: Array, logs: Array) -> float:
    """Say by how many nats a row errors (n,) are likelier by a Student's t law than by logs (n,).

    That of the likeliest centre, scale and degrees of freedom; 0 where it is not likelier, or its
    centre far from their mean.
    """
    tails, off = _student_law(errors)
    gain = _sure_gain(tails - logs, _WORTH_TAILS, 1.0)
    return gain if off**2 <= min(_MOST_OFF, _OFF_A_NAT * gain) else 0.0


def _student_law(errors: Array) -> tuple[Array, float]:
    """Log density of errors (n,) by the likeliest Student's t, and how far its centre is from their
    mean, in standard deviations; for each number of degrees of freedom by EM."""
    spread = max(float(errors.std()), math.ulp(0.0))
    z, best = (errors - errors.mean()) / spread, (np.full(len(errors), -math.inf), 0.0)
    for df in _DEGREES:
        centre, scale = float(np.median(z)), max(float(np.median(np.abs(z))), _NARROWEST)
        for _ in range(_ROUNDS_OF_TAILS):
            weights = (df + 1.0) / (df + np.square((z - centre) / scale))
            centre = float(np.average(z, weights=weights))
            scale = max(math.sqrt(float(np.mean(weights * np.square(z - centre)))), _NARROWEST)
        logs = student_t.logpdf(z, df, centre, scale) - math.log(spread)
        if logs.sum() > best[0].sum():
            best = logs, abs(centre)
    return best


_SAID_OF_NOISE = {
    LOGNORMAL: "is a factor",
    STUDENT: "has heavy tails",
    VARYING: "depends on the inputs",
}
_NOT_SO = {LOGNORMAL: "it is added", STUDENT: "it has none", VARYING: "it does not"}


def likeliest_noise(gains: dict[str, float]) -> tuple[str, tuple[str, ...]]:
    """Name the law that `gains_of_noise` speak for, and say why where it is not the normal one."""
    if not gains:
        return "normal", ()
    law, gain = max(gains.items(), key=lambda each: each[1])
    if 2.0 * gains.get(LOGNORMAL, 0.0) >= gain:
        law, gain = LOGNORMAL, gains[LOGNORMAL]
    said = f"noise {_SAID_OF_NOISE[law]}: targets left out are likelier so, by {gain:.2f} nats each"
    return law, (said + f' (noise="normal": {_NOT_SO[law]})',)
