"""From a table to a learner that has learned its rows, through the one driver."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from mercer.basis.arrays import Array
from mercer.basis.learner import Learner
from mercer.basis.row_learner import RowLearner
from mercer.basis.sampler import BatchSampler, RowFilters
from mercer.errors import DataError
from mercer.estimation.run import CommonArguments, run_options
from mercer.sampling.checkpoint import digest_arrays
from mercer.sampling.driver import RunOptions, run_to_end

__all__ = ["MOST_BYTES", "Fitted", "fit_learner", "learn_table"]

#: Memory above which a fit is refused.
MOST_BYTES = 8 * 2**30
_ROWS_AT_ONCE = 32

Learned = TypeVar("Learned", bound=RowLearner[Any, Any])


@dataclass(frozen=True, eq=False)
class Fitted(Generic[Learned]):
    """A learner after all rows, the predictive log density of each in nats, and notes."""

    learner: Learned
    log_density: Array
    notes: tuple[str, ...]


def fit_learner(
    learner: Learner,
    X: Array,
    y: Array,
    common: CommonArguments,
    started: float,
    estimator: Any,
) -> Fitted[Learner]:
    """Learn the rows of a table (n, d) in their order.

    Parameters
    ----------
    learner : Learner
        New; it is begun here.
    estimator : estimator
        Whose arguments identify the checkpoint.

    Raises
    ------
    DataError
        If that would take more memory than is reasonable.
    """
    _check_memory(learner, *X.shape)
    options = run_options(common, estimator, digest_arrays(X, y), started)
    learner = replace(learner, entropy=options.entropy)
    scales = learner.given.of_table(X, y, learner.names)
    running = learner.begin(scales, X, y)
    Z, z = running.standardise(X), scales.target.transform(y)
    return learn_table(learner, running.bank, Z, z, options, math.log(scales.target.scale))


def learn_table(
    learner: Learned,
    filters: RowFilters,
    Z: Array,
    y: NDArray[Any],
    options: RunOptions,
    log_unit: float,
) -> Fitted[Learned]:
    """Learn standardised rows Z (n, d), y (n,) through the driver.

    Parameters
    ----------
    learner : RowLearner
        Begun, with these filters.
    log_unit : float
        Is subtracted from the log density of each target: that of its scale.
    """
    sampler = BatchSampler(filters, Z, y, _ROWS_AT_ONCE)
    end = run_to_end(sampler, replace(options, n_draws=sampler.n_steps))
    running: Any = learner.running
    running.state, running.rng = filters.copied(end.state.filters), end.rng
    n = running.state.n_seen
    log_density = end.state.log_density[:n] - log_unit
    learner.n_scored, learner.sum_log_density = n, sum(log_density.tolist())
    late = (f"stopped by max_seconds: {n} of {len(y)} rows learned",) if n < len(y) else ()
    return Fitted(learner, log_density, (*end.notes, *late))


def _check_memory(learner: Learner, n: int, d: int) -> None:
    n_bytes = learner.settings.n_bytes(n, d)
    if n_bytes > MOST_BYTES:
        raise DataError(
            f"{n} rows with {learner.settings.max_candidates} candidates take about "
            f"{n_bytes / 2**30:.0f} GiB; use max_candidates=256"
        )
