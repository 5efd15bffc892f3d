"""What the estimator's arguments mean: from scales and rows to filters."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.basis.arrays import Array
from mercer.basis.bank import Bank
from mercer.basis.filter import Filter
from mercer.basis.levels.levels import Levels, chosen_lengthscales, n_lengthscales
from mercer.basis.levels.relevance import Scalings, relevance_scalings
from mercer.basis.model import SetPrior, integrated, sampled
from mercer.basis.printed import PrintedFilter
from mercer.basis.reservoir import Reservoir
from mercer.basis.schedule import Schedule
from mercer.errors import UsageError
from mercer.estimation.options import check_choice
from mercer.random import stream

__all__ = ["MOST_CANDIDATES", "FilterSettings"]

#: Candidates where ``max_candidates`` is None.
MOST_CANDIDATES = 512
_FEWEST_BUFFERED = 512
# Rows after each of which some particles are moved: few rows leave the time for it.
_YOUNG = 512
# Later, blocks: the sums of all length scales are passed once a block.
_BLOCK, _FRACTION = 16, 0.4


@dataclass(frozen=True)
class FilterSettings:
    """Arguments of the estimator, checked.

    Attributes
    ----------
    kernel, resampling, variances, centres_prior : str
    lengthscale : str or tuple of float
    n_particles, max_centres, max_candidates : int
    expected_centres : float
    linear_part : bool
    forgetting : tuple of float
    input_scalings : int
    move_fraction : float or None
    weighting : str
    robust : bool

    Raises
    ------
    UsageError
        If weights as printed are asked for where variances are integrated or rows forgotten.
    """

    kernel: str
    lengthscale: str | tuple[float, ...]
    n_particles: int
    expected_centres: float
    max_centres: int
    max_candidates: int
    centres_prior: str
    variances: str
    linear_part: bool
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

    def bank(self, levels: Levels, entropy: int) -> Bank:
        """Build the filters.

        Parameters
        ----------
        levels : Levels
        entropy : int
            Of the reservoirs' random streams.
        """
        prior = integrated if self.variances == "integrated" else sampled
        key = int(stream(entropy, "rows", 4).integers(2**63))
        n_buffered = max(_FEWEST_BUFFERED, self.max_candidates)
        sets = SetPrior(self.centres_prior, self.expected_centres, self.max_centres)
        if self.weighting == "printed":
            printed = PrintedFilter(
                self.n_particles, prior(levels.n_mean), sets, levels, self.max_candidates,
                self.resampling, n_buffered,
            )  # fmt: skip
            return Bank((printed,))
        schedule = self._schedule(n_buffered)
        filters = tuple(
            Filter(
                n_particles=self.n_particles,
                prior=prior(levels.n_mean),
                sets=sets,
                levels=levels,
                reservoir=Reservoir(self.max_candidates, key, retention < 1.0),
                schedule=schedule,
                scheme=self.resampling,
                retention=retention,
            )
            for retention in self.forgetting
        )
        return Bank(filters, self.robust)

    def _schedule(self, n_buffered: int) -> Schedule:
        if self.move_fraction is None:
            return Schedule(
                n_young=_YOUNG, block=_BLOCK, later_fraction=_FRACTION, n_buffered=n_buffered
            )
        share = self.move_fraction
        return Schedule(n_eager=0, block=1, later_fraction=share, n_buffered=n_buffered)

    def levels(self, Z: Array, y: Array, entropy: int) -> Levels:
        """Return what particles choose among.

        Parameters
        ----------
        Z : ndarray of shape (n, d)
            Standardised rows.
        y : ndarray of shape (n,)
            Standardised targets; looked at where ``input_scalings`` is more than 1.
        entropy : int
            Of the random stream of the scalings.
        """
        scalings = relevance_scalings(stream(entropy, "scalings"), Z, y, self.input_scalings)
        return self.levels_of(chosen_lengthscales(self.lengthscale, Z, scalings.factors), scalings)

    def levels_of(self, lengthscales: Array, scalings: Scalings) -> Levels:
        """Return the levels of length scales (W,) and scalings of the inputs."""
        factors, log_prior, n_rows = scalings
        prior = (log_prior, n_rows) if len(factors) > 1 else ()
        return Levels(lengthscales, factors, self.kernel, self.linear_part, *prior)

    def n_bytes(self, n_rows: int, d: int) -> int:
        """Estimate the memory that a fit of so many rows takes, in bytes."""
        r = min(n_rows, self.max_candidates)
        n_levels = n_lengthscales(self.lengthscale) * self.input_scalings
        buffered = min(n_rows, max(_FEWEST_BUFFERED, self.max_candidates))
        sums = n_levels * r * r * (2 if n_rows > buffered else 1) + buffered * (r + d)
        particles = self.n_particles * (1 + self.max_centres + d * self.linear_part) ** 2
        return 8 * len(self.forgetting) * (sums + 2 * particles)
