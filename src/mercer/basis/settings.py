"""From an estimator's arguments to filters: rows, scales, settings, checks."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.basis.ensemble import Ensemble
from mercer.basis.filter import Filter, PrintedFilter
from mercer.basis.length_scales import (
    KINDS,
    LengthScaleGrid,
    Scalings,
    chosen_lengthscales,
    n_lengthscales,
    n_linear,
    relevance_scalings,
)
from mercer.basis.model import Array, Reservoir, Schedule, SetPrior, integrated, sampled
from mercer.errors import MercerWarning, UsageError
from mercer.estimation.run import check_choice, check_common, check_count, check_positive
from mercer.estimation.standardize import (
    METHODS,
    ONE_SCALE,
    Standardizer,
    TargetScale,
    fit_scales,
    identity,
    rows_that_weigh,
    scale_target,
    weigh_inputs,
)
from mercer.random import stream
from mercer.sampling.resampling import SCHEMES

# Which rows of a stream have a target.


def known_runs(is_known: NDArray[np.bool_]) -> list[slice]:
    """Cut rows where known and unknown targets meet."""
    if not len(is_known):
        return []
    ends = [0, *(np.flatnonzero(np.diff(is_known)) + 1).tolist(), len(is_known)]
    return [slice(a, b) for a, b in pairwise(ends)]


# Scales of inputs and target, and how a stream learns them from its first rows.

# A column that goes further than this from its centre, in scales, is pointed out.
_FAR = 10.0


@dataclass(frozen=True, eq=False)
class Scales:
    """How a row is standardised."""

    standardizer: Standardizer
    target: TargetScale
    notes: tuple[str, ...] = ()  # what targets said of the inputs' scales


@dataclass(frozen=True, eq=False)
class GivenScales:
    """What the user said of the scales, and how the rest is learned."""

    method: Any  # one of the methods of `mercer.estimation.standardize`
    input_scale: NDArray[np.float64] | None  # (d,) or (), standard deviations of the inputs
    target: TargetScale | None
    is_robust: bool = False  # learn the target's scale within ten interquartile ranges
    fewest: int | None = None  # inputs that targets may give one scale; None for none
    is_weighed: bool = False  # inputs of a table, by rows left out

    @property
    def is_complete(self) -> bool:
        """Whether no row is needed."""
        return self.target is not None and (self.input_scale is not None or self.method is False)

    def check_width(self, d: int) -> None:
        """Refuse scales of another number of inputs than d."""
        if self.input_scale is not None and self.input_scale.shape not in ((), (d,)):
            raise UsageError(
                f"input_scale must be a number or one for each of {d} inputs; got shape "
                f"{self.input_scale.shape}"
            )

    def of_table(self, X: Array, y: Array, names: tuple[str, ...]) -> Scales:
        """Learn what is not given from all rows (n, d) of a table."""
        standardizer, said = self._given(X.shape[1]), tuple[str, ...]()
        if standardizer is None:
            standardizer, said = fit_scales(X, self.method, names, y, self.fewest)
            if self.is_weighed and self.method == "auto":
                rows = rows_that_weigh(len(X))
                standardizer, weighed = weigh_inputs(standardizer, X[rows], y[rows], names)
                said += weighed
        return Scales(standardizer, self.target or scale_target(self._regular(y)), said)

    def of_first_rows(self, X: Array, y: Array, names: tuple[str, ...]) -> Scales:
        """Learn from the first rows of a stream: a column that was constant so far may change."""
        d = X.shape[1]
        standardizer, target = self._given(d), self.target
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MercerWarning)
            if standardizer is None:
                learned, said = identity(d), tuple[str, ...]()
                if len(X):
                    learned, said = fit_scales(X, self.method, names, y, self.fewest)
                is_one = ONE_SCALE in said or (self.method == "common" and learned.scale.any())
                other = learned.scale.max() if is_one else 1.0
                scale = np.where(learned.scale == 0.0, other, learned.scale)
                standardizer = replace(learned, scale=scale)
            if target is None:
                target = scale_target(self._regular(y)) if len(y) else TargetScale(0.0, 1.0)
        return Scales(standardizer, target)

    def _regular(self, y: Array) -> Array:
        """Leave out targets beyond ten interquartile ranges from the median, if some differ."""
        lower, median, upper = np.percentile(y, [25.0, 50.0, 75.0])
        is_regular = np.abs(y - median) <= _FAR * (upper - lower)
        is_used = self.is_robust and upper > lower
        return y[is_regular] if is_used else y

    def _given(self, d: int) -> Standardizer | None:
        if self.input_scale is None:
            return None
        return replace(identity(d), scale=np.broadcast_to(self.input_scale, (d,)).copy())


def leaving_columns(Z: Array, z: Array, names: tuple[str, ...]) -> list[str]:
    """Name the columns of standardised rows, and the target, that leave ten scales."""
    far = [names[j] for j in np.flatnonzero(np.abs(Z).max(axis=0, initial=0.0) > _FAR)]
    return far + (["the target"] if np.abs(z).max(initial=0.0) > _FAR else [])


#: Candidates where ``max_candidates`` is None.
MOST_CANDIDATES = 512
_FEWEST_BUFFERED, _MOST_BUFFERED = 512, 2048
# Rows after each of which some particles are moved: few rows leave the time for it.
_YOUNG = 512
# Later, blocks: the sums of all length scales are passed once a block.
_BLOCK, _FRACTION = 16, 0.4


@dataclass(frozen=True)
class FilterSettings:
    """Arguments of the estimator, checked.

    A `UsageError` where weights as printed are asked for with variances integrated or rows
    forgotten.
    """

    kernel: str
    lengthscale: str | tuple[float, ...]
    n_particles: int
    expected_centres: float
    max_centres: int
    max_candidates: int
    centres_prior: str
    variances: str
    linear_part: bool | int | str
    resampling: str
    forgetting: tuple[float, ...]
    weighting: str = "exact"
    input_scalings: int = 1
    move_fraction: float | None = None
    robust: bool = False

    def __post_init__(self) -> None:
        check_choice("weighting", self.weighting, ("exact", "printed"))
        is_exact = self.weighting == "exact"
        if not is_exact and (self.variances != "sampled" or self.forgetting != (1.0,)):
            raise UsageError("weighting='printed' needs variances='sampled' and forgetting=1.0")
        if self.robust and not is_exact:
            raise UsageError("weighting='printed' needs robust='auto' or False")

    def ensemble(self, grid: LengthScaleGrid, entropy: int, n_rows: int = 0) -> Ensemble:
        """Build the filters; ``entropy`` seeds the reservoirs' random streams.

        Of the ``n_rows`` of a table as many are kept as memory allows; 0 for a stream.
        """
        prior = integrated if self.variances == "integrated" else sampled
        key = int(stream(entropy, "rows", 4).integers(2**63))
        n_buffered = self._n_buffered(n_rows)
        sets = SetPrior(self.centres_prior, self.expected_centres, self.max_centres)
        if self.weighting == "printed":
            printed = PrintedFilter(
                self.n_particles, prior(grid.n_mean), sets, grid, self.max_candidates,
                self.resampling, n_buffered,
            )  # fmt: skip
            return Ensemble((printed,))
        schedule = self._schedule(n_buffered)
        filters = tuple(
            Filter(
                n_particles=self.n_particles,
                prior=prior(grid.n_mean),
                sets=sets,
                grid=grid,
                reservoir=Reservoir(self.max_candidates, key, retention < 1.0),
                schedule=schedule,
                scheme=self.resampling,
                retention=retention,
            )
            for retention in self.forgetting
        )
        return Ensemble(filters, self.robust)

    def _n_buffered(self, n_rows: int) -> int:
        """Rows kept: of a table, all up to a limit, so that sums can be made from them."""
        return max(_FEWEST_BUFFERED, self.max_candidates, min(n_rows, _MOST_BUFFERED))

    def _schedule(self, n_buffered: int) -> Schedule:
        if self.move_fraction is None:
            return Schedule(
                n_young=_YOUNG, block=_BLOCK, later_fraction=_FRACTION, n_buffered=n_buffered
            )
        share = self.move_fraction
        return Schedule(n_eager=0, block=1, later_fraction=share, n_buffered=n_buffered)

    def grid(
        self, Z: Array, y: Array, entropy: int, is_late: Callable[[], bool] = lambda: False
    ) -> LengthScaleGrid:
        """Return what particles choose among, for standardised rows Z (n, d) and targets y (n,).

        The targets are looked at where ``input_scalings`` is more than 1; ``entropy`` seeds
        the random stream of the scalings, and once ``is_late`` the search for them ends.
        """
        scalings = relevance_scalings(
            stream(entropy, "scalings"), Z, y, self.input_scalings, is_late
        )
        return self.grid_of(chosen_lengthscales(self.lengthscale, Z, scalings.factors), scalings)

    def grid_of(self, lengthscales: Array, scalings: Scalings) -> LengthScaleGrid:
        """Return the levels of length scales (W,) and scalings of the inputs."""
        factors, log_prior, n_rows, is_cut = scalings
        prior = (log_prior, n_rows, is_cut) if len(factors) > 1 else ()
        return LengthScaleGrid(lengthscales, factors, self.kernel, self.linear_part, *prior)

    def n_bytes(self, n_rows: int, d: int) -> int:
        """Estimate the memory that a fit of so many rows takes, in bytes."""
        r = min(n_rows, self.max_candidates)
        n_levels = n_lengthscales(self.lengthscale) * self.input_scalings
        buffered = min(n_rows, self._n_buffered(n_rows))
        sums = n_levels * r * r * (2 if n_rows > buffered else 1) + buffered * (r + d)
        particles = self.n_particles * (1 + self.max_centres + n_linear(self.linear_part, d)) ** 2
        return 8 * len(self.forgetting) * (sums + 2 * particles)


# Checks of the arguments that take several forms; messages name the parameter and its range.


def check_shared(model: Any) -> None:
    """Check the arguments that mean the same for numbers and classes."""
    check_choice("kernel", model.kernel, KINDS)
    check_count("n_particles", model.n_particles, 2)
    check_positive("expected_centres", model.expected_centres)
    check_count("max_centres", model.max_centres, 1)
    if model.max_candidates is not None:
        check_count("max_candidates", model.max_candidates, 1)
    check_choice("centres_prior", model.centres_prior, ("negative_binomial", "poisson"))
    if isinstance(model.linear_part, numbers.Integral) and not isinstance(model.linear_part, bool):
        check_count("linear_part", model.linear_part, 1)
    else:
        check_choice("linear_part", model.linear_part, (True, False, "auto"))
    check_choice("resampling", model.resampling, tuple(SCHEMES))
    check_choice("standardize", model.standardize, METHODS)
    check_count("scale_rows", model.scale_rows, 1)
    check_common(model)


def checked_lengthscale(value: Any) -> str | tuple[float, ...]:
    """Return "learn", "median", or numbers; else a `UsageError`."""
    if isinstance(value, str) and value in ("learn", "median"):
        return value
    numbers_ = _numbers(value)
    if not numbers_ or not all(1e-6 <= each <= 1e6 for each in numbers_):
        raise UsageError(
            "lengthscale must be 'learn', 'median' or numbers between 1e-06 and 1e+06; "
            f"got {value!r}"
        )
    return numbers_


def checked_forgetting(value: Any) -> tuple[float, ...]:
    """Return the weights in [0.5, 1] that rows keep, one for each filter; else a `UsageError`."""
    numbers_ = _numbers(value)
    if not numbers_ or not all(0.5 <= each <= 1.0 for each in numbers_):
        raise UsageError(f"forgetting must be one or several numbers in [0.5, 1]; got {value!r}")
    return numbers_


def checked_share(value: Any) -> float | None:
    """Return the share in (0, 1] of the particles that is moved after each row; None for "auto"."""
    if isinstance(value, str) and value == "auto":
        return None
    share = _numbers(value)
    if len(share) != 1 or not 0.0 < share[0] <= 1.0:
        raise UsageError(f"move_fraction must be 'auto' or a number in (0, 1]; got {value!r}")
    return share[0]


def checked_given(method: Any, input_scale: Any, target_scale: Any) -> GivenScales:
    """Return what was said of the scales; a `UsageError` where one is not a positive number."""
    scale = None
    if input_scale is not None:
        numbers_ = _numbers(input_scale)
        if not numbers_ or not all(0.0 < each < math.inf for each in numbers_):
            raise UsageError(f"input_scale must be numbers above 0; got {input_scale!r}")
        scale = np.array(numbers_ if np.ndim(input_scale) else numbers_[0])
    return GivenScales(method, scale, _target(target_scale))


def _target(value: Any) -> TargetScale | None:
    if value is None:
        return None
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2:
        centre, scale = value
        if not (isinstance(centre, numbers.Real) and math.isfinite(centre)):
            raise UsageError(f"the centre of target_scale must be a number; got {centre!r}")
        return TargetScale(float(centre), check_positive("target_scale", scale))
    return TargetScale(0.0, check_positive("target_scale", value))


def _numbers(value: Any) -> tuple[float, ...]:
    """Return a number, or the numbers of a sequence; none where something else is among them."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    each = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    is_right = all(isinstance(v, numbers.Real) and not isinstance(v, bool) for v in each)
    return tuple(float(v) for v in each) if is_right else ()
