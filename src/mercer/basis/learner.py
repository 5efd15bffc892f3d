"""A stream of numbers being learned: scales, filters and the random stream."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.basis.arrays import Array
from mercer.basis.bank import Bank, BankState, Outlook
from mercer.basis.row_learner import RowLearner
from mercer.basis.scales import Scales, leaving_columns
from mercer.basis.settings import FilterSettings
from mercer.errors import RowsError
from mercer.estimation.target_scale import TargetScale
from mercer.posterior.student_predictive import Contamination, StudentMixture
from mercer.random import stream

__all__ = ["Learner", "Running", "in_units"]

_LARGEST = 1e100


@dataclass
class Running:
    """What there is once the scales are known.

    Attributes
    ----------
    scales : Scales
    bank : Bank
    state : BankState
        After the rows learned so far.
    rng : numpy.random.Generator
        As the last row left it.
    """

    scales: Scales
    bank: Bank
    state: BankState
    rng: np.random.Generator

    def standardise(self, X: Array) -> Array:
        """Standardise rows (n, d)."""
        return self.scales.standardizer.transform(X)

    def raw_inputs(self, Z: Array) -> Array:
        """Return standardised inputs in the user's units."""
        return self.scales.standardizer.inverse(Z)

    def law(self, Z: Array, *, has_noise: bool = True) -> StudentMixture:
        """Law of the targets of standardised rows Z (m, d), or of the function, in user's units."""
        return in_units(self.bank.law(self.state, Z, has_noise=has_noise), self.scales.target)

    def scaled(self, y: NDArray[Any]) -> list[float]:
        """Standardise targets (n,)."""
        values: list[float] = self.scales.target.transform(y).tolist()
        return values

    def learn(self, z: Array, target: float) -> Outlook:
        """Learn a standardised row."""
        self.state, outlook = self.bank.learn(self.rng, self.state, z, target)
        return outlook

    def score(self, seen: Outlook) -> float:
        """Log predictive density of a row that was learned, in nats and the user's units."""
        return seen.log_density - math.log(self.scales.target.scale)

    def leaving(self, X: Array, y: NDArray[Any], names: tuple[str, ...]) -> list[str]:
        """Name the columns of X (n, d), and the target, that leave ten scales."""
        return leaving_columns(self.standardise(X), self.scales.target.transform(y), names)


@dataclass(kw_only=True)
class Learner(RowLearner[Running, Outlook]):
    """Learns rows with numbers as targets.

    Attributes
    ----------
    settings : FilterSettings
    """

    settings: FilterSettings

    def check(self, X: Array, y: NDArray[Any]) -> None:
        """Refuse targets whose squares overflow."""
        self.check_size(y)

    def check_size(self, y: Array) -> None:
        """Refuse targets (n,) whose squares overflow, before anything is learned."""
        values = y if self.running is None else self.running.scales.target.transform(y)
        is_large = ~(np.abs(values) < _LARGEST)
        if is_large.any():
            raise RowsError([int(np.argmax(is_large))], ": the target is too large to compute with")

    def begin_stream(self, X: Array, y: NDArray[Any]) -> Running:
        """Set up the filters, with scales learned from the first rows (n, d)."""
        return self.begin(self.given.of_first_rows(X, y, self.names), X, y)

    def begin(self, scales: Scales, X: Array, y: Array) -> Running:
        """Set up the filters, length scales learned from rows X (n, d), y (n,)."""
        Z, z = scales.standardizer.transform(X), scales.target.transform(y)
        bank = self.settings.bank(self.settings.levels(Z, z, self.entropy), self.entropy)
        state = bank.init(stream(self.entropy, "start"))
        self.running = Running(scales, bank, state, stream(self.entropy, "chain"))
        return self.running


def in_units(law: StudentMixture, target: TargetScale) -> StudentMixture:
    """Return the law of the target from that of the standardised one."""
    locations = law.locations * target.scale + target.centre
    outliers = law.outliers
    if outliers is not None:
        location = outliers.location * target.scale + target.centre
        outliers = Contamination(outliers.share, location, outliers.scale * target.scale)
    scales = law.scales * target.scale
    return StudentMixture(locations, scales, law.weights, law.df, outliers=outliers)
