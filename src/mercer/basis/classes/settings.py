"""What the classifier's arguments mean: from scales and rows to filters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.basis.arrays import Array
from mercer.basis.classes.filter import ClassFilter
from mercer.basis.classes.model import default_prior
from mercer.basis.classes.schedule import ClassSchedule
from mercer.basis.classes.several import StickBreaking
from mercer.basis.levels.levels import Levels, chosen_lengthscales, n_lengthscales
from mercer.basis.model import SetPrior
from mercer.basis.reservoir import Reservoir
from mercer.random import stream

__all__ = ["MOST_CANDIDATES", "ClassSettings"]

#: Candidates where ``max_candidates`` is None.
MOST_CANDIDATES = 128


@dataclass(frozen=True)
class ClassSettings:
    """Arguments of the estimator, checked.

    Attributes
    ----------
    kernel, resampling, centres_prior : str
    lengthscale : str or tuple of float
    n_particles, max_centres, max_candidates : int
    expected_centres : float
    linear_part : bool
    n_buffered : int
        The most rows of a stream that are held.
    """

    kernel: str
    lengthscale: str | tuple[float, ...]
    n_particles: int
    expected_centres: float
    max_centres: int
    max_candidates: int
    centres_prior: str
    linear_part: bool
    resampling: str
    n_buffered: int

    def sticks(
        self, lengthscales: Array, d: int, n_classes: int, n_rows: int, entropy: int
    ) -> StickBreaking:
        """Build the filters.

        Parameters
        ----------
        lengthscales : ndarray of shape (W,)
            Falling, in standardised units.
        d : int
            Number of inputs.
        n_classes : int
        n_rows : int
            Rows of a table that are all to be held; 0 for a stream.
        entropy : int
            Of the reservoirs' random streams.
        """
        levels = Levels(lengthscales, np.ones((1, d)), self.kernel, self.linear_part)
        keys = stream(entropy, "rows", 4).integers(2**63, size=n_classes - 1)
        n_buffered = max(self.n_buffered, n_rows)
        return StickBreaking(
            tuple(
                ClassFilter(
                    n_particles=self.n_particles,
                    prior=default_prior(levels.n_mean),
                    sets=SetPrior(self.centres_prior, self.expected_centres, self.max_centres),
                    levels=levels,
                    reservoir=Reservoir(
                        self.max_candidates, int(key), n_buffered == self.n_buffered
                    ),
                    schedule=ClassSchedule(n_buffered=n_buffered),
                    scheme=self.resampling,
                )
                for key in keys
            )
        )

    def lengthscales(self, Z: Array) -> Array:
        """Return the length scales to choose among, falling; Z (n, d) are standardised rows."""
        return chosen_lengthscales(self.lengthscale, Z)

    def n_bytes(self, n_rows: int, d: int, n_classes: int) -> int:
        """Estimate the memory that a fit of so many rows takes, in bytes."""
        n_levels = n_lengthscales(self.lengthscale)
        n_columns = 1 + d * self.linear_part + self.max_candidates
        return 16 * (n_classes - 1) * n_levels * n_columns * n_rows
