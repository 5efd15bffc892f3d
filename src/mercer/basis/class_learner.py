"""From a classifier's arguments and rows to its filters: settings, learner, training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.basis.class_filter import (
    ClassFilter,
    ClassOutlook,
    ClassSchedule,
    StickBreaking,
    StickState,
    default_prior,
)
from mercer.basis.learner import MOST_BYTES, Fitted, RowLearner, learn_table
from mercer.basis.length_scales import LengthScaleGrid, chosen_lengthscales, n_lengthscales
from mercer.basis.model import Array, Integers, Reservoir, SetPrior
from mercer.basis.settings import leaving_columns
from mercer.errors import DataError, RowsError
from mercer.estimation.run import CommonArguments, run_options
from mercer.estimation.standardize import Standardizer
from mercer.random import stream
from mercer.sampling.checkpoint import digest_arrays

#: Candidates where ``max_candidates`` is None.
MOST_CANDIDATES = 128


@dataclass(frozen=True)
class ClassSettings:
    """Arguments of the estimator, checked; ``n_buffered``: rows of a stream that are held."""

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
        """Build the filters, for W length scales (falling, in standardised units) and d inputs.

        ``n_rows`` are the rows of a table, all to be held; 0 for a stream. ``entropy``
        seeds the reservoirs' random streams.
        """
        grid = LengthScaleGrid(lengthscales, np.ones((1, d)), self.kernel, self.linear_part)
        keys = stream(entropy, "rows", 4).integers(2**63, size=n_classes - 1)
        n_buffered = max(self.n_buffered, n_rows)
        # Several classes need their candidates soon: each filter has some of the rows only.
        is_rare = n_classes == 2 and n_buffered == self.n_buffered
        return StickBreaking(
            tuple(
                ClassFilter(
                    n_particles=self.n_particles,
                    prior=default_prior(grid.n_mean),
                    sets=SetPrior(self.centres_prior, self.expected_centres, self.max_centres),
                    grid=grid,
                    reservoir=Reservoir(
                        self.max_candidates, int(key), n_buffered == self.n_buffered
                    ),
                    schedule=ClassSchedule(n_buffered=n_buffered, is_rare=is_rare),
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


# A stream of rows with classes being learned: scales, filters, random stream.

# Standardised inputs: the products of larger ones overflow.
_LARGEST = 1e100


@dataclass
class ClassRunning:
    """What there is once the scales are known; state and generator after the last row."""

    standardizer: Standardizer
    sticks: StickBreaking
    state: StickState
    rng: np.random.Generator

    def standardise(self, X: Array) -> Array:
        """Standardise rows (n, d)."""
        return self.standardizer.transform(X)

    def proba(self, Z: Array) -> Array:
        """Probabilities (m, C) of the classes at standardised rows Z (m, d)."""
        return self.sticks.proba(self.state, Z)

    def scaled(self, y: NDArray[Any]) -> list[int]:
        """Return positions (n,) among the classes as they are."""
        positions: list[int] = y.astype(np.int64).tolist()
        return positions

    def learn(self, z: Array, target: int) -> ClassOutlook:
        """Learn a standardised row."""
        self.state, outlook = self.sticks.learn(self.rng, self.state, z, target)
        return outlook

    def score(self, seen: ClassOutlook) -> float:
        """Log probability of the class of a row that was learned, in nats."""
        return seen.log_density

    def leaving(self, X: Array, y: NDArray[Any], names: tuple[str, ...]) -> list[str]:
        """Name the columns of X (n, d) that leave ten scales."""
        return leaving_columns(self.standardise(X), np.zeros(0), names)


@dataclass(kw_only=True)
class ClassLearner(RowLearner[ClassRunning, ClassOutlook]):
    """Learns rows with positions among the classes as targets."""

    settings: ClassSettings
    n_classes: int

    def check(self, X: Array, y: NDArray[Any]) -> None:
        """Refuse inputs whose products overflow."""
        check_size(X if self.running is None else self.running.standardise(X))

    def begin_stream(self, X: Array, y: NDArray[Any]) -> ClassRunning:
        """Set up the filters, with scales learned from the first rows (n, d)."""
        scales = self.given.of_first_rows(X, y.astype(np.float64), self.names)
        return self.begin(scales.standardizer, X, 0)

    def begin(self, standardizer: Standardizer, X: Array, n_rows: int) -> ClassRunning:
        """Set up the filters: length scales from rows X (n, d), ``n_rows`` of a table to hold."""
        lengthscales = self.settings.lengthscales(standardizer.transform(X))
        sticks = self.settings.sticks(
            lengthscales, X.shape[1], self.n_classes, n_rows, self.entropy
        )
        state = sticks.init(stream(self.entropy, "start"))
        self.running = ClassRunning(standardizer, sticks, state, stream(self.entropy, "chain"))
        return self.running


def check_size(Z: Array) -> None:
    """Refuse inputs Z (n, d) whose products overflow; the error names the row."""
    is_large = (~(np.abs(Z) < _LARGEST)).any(axis=1)
    if is_large.any():
        raise RowsError([int(np.argmax(is_large))], ": an input is too large to compute with")


# From a table with classes to a learner that has learned its rows, through the one driver.


def fit_classes(
    learner: ClassLearner,
    X: Array,
    labels: Integers,
    common: CommonArguments,
    started: float,
    estimator: Any,
) -> Fitted[ClassLearner]:
    """Learn the rows of a table in their order, with a new learner; all are held.

    The estimator's arguments identify the checkpoint. A `DataError` where that would take more
    memory than is reasonable.
    """
    n_bytes = learner.settings.n_bytes(len(X), X.shape[1], learner.n_classes)
    if n_bytes > MOST_BYTES:
        raise DataError(
            f"to hold {len(X)} rows takes about {n_bytes / 2**30:.0f} GiB; use partial_fit, which "
            "holds n_buffered of them, or a smaller max_candidates"
        )
    options = run_options(common, estimator, digest_arrays(X, labels), started)
    learner = replace(learner, entropy=options.entropy)
    scales = learner.given.of_table(X, labels.astype(np.float64), learner.names)
    running = learner.begin(scales.standardizer, X, len(X))
    Z = running.standardise(X)
    check_size(Z)
    return learn_table(learner, running.sticks, Z, labels, options, 0.0)
