"""Optimised frequencies: settings by cross-validation, then all rows, within a limit of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from mercer.baselines.descent import Deadline, Minimum, minimise
from mercer.baselines.frequency_mixture import FrequencyMixture, draw_mixture
from mercer.baselines.inputs import some_rows
from mercer.baselines.losses import Loss
from mercer.baselines.random_features import typical_distance
from mercer.baselines.rfo_objective import FrequencyObjective, Functions
from mercer.baselines.ridge_path import fitted_values
from mercer.errors import UsageError
from mercer.estimation.options import check_count
from mercer.random import stream

__all__ = ["Found", "FrequencySearch", "checked_components", "checked_counts"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Found:
    """What a search ends with.

    Attributes
    ----------
    errors : ndarray of shape (n_numbers of components, n_penalties, n_numbers of steps)
        Losses of the rows held out, a row.
    n_components : int
    penalty : float
    n_steps : int
    functions : Functions
    minimum : Minimum
        Of the last descent, on all rows.
    """

    errors: Array
    n_components: int
    penalty: float
    n_steps: int
    functions: Functions
    minimum: Minimum


@dataclass(frozen=True)
class FrequencySearch:
    """Settings of the search.

    Attributes
    ----------
    n_frequencies : int
    components : tuple of int
        Numbers of components that are tried.
    penalties : tuple of float
        In rising order.
    is_full : bool
    steps : tuple of int
        Of L-BFGS, in rising order.
    n_folds, n_selection_rows : int
    max_seconds : float or None
        Half of it at most for cross-validation.
    """

    n_frequencies: int
    components: tuple[int, ...]
    penalties: tuple[float, ...]
    is_full: bool
    steps: tuple[int, ...]
    n_folds: int
    n_selection_rows: int
    max_seconds: float | None

    def run(self, entropy: int, Z: Array, targets: Array, loss: Loss) -> Found:
        """Choose by cross-validation, and optimise on all rows."""
        half = None if self.max_seconds is None else 0.5 * self.max_seconds
        soon, late = Deadline.after(half), Deadline.after(self.max_seconds)
        some = some_rows(stream(entropy, "rows"), len(Z), self.n_selection_rows)
        distance = typical_distance(stream(entropy, "scales"), Z[some], "euclidean")
        seed = int(stream(entropy, "folds").integers(2**31))
        errors = self._errors(entropy, Z[some], targets[some], loss, distance, seed, soon)
        i, k, m = np.unravel_index(int(np.argmin(errors)), errors.shape)
        mixture = self._mixture(entropy, int(i), Z.shape[1])
        objective = FrequencyObjective(mixture, Z, targets, loss, self.penalties[k])
        *_, minimum = _stages(objective, distance, self.steps[: m + 1], late)
        return Found(
            errors, self.components[i], self.penalties[k], self.steps[m],
            objective.functions(minimum.theta), minimum,
        )  # fmt: skip

    def _errors(
        self, entropy: int, Z: Array, targets: Array, loss: Loss, distance: float, seed: int,
        deadline: Deadline,
    ) -> Array:  # fmt: skip
        """Losses of the rows held out, a row."""
        errors = np.zeros((len(self.components), len(self.penalties), len(self.steps)))
        folds = list(KFold(min(self.n_folds, len(Z)), shuffle=True, random_state=seed).split(Z))
        for i, k, (train, test) in product(
            range(len(self.components)), range(len(self.penalties)), folds
        ):
            mixture = self._mixture(entropy, i, Z.shape[1])
            objective = FrequencyObjective(
                mixture, Z[train], targets[train], loss, self.penalties[k]
            )
            for m, minimum in enumerate(_stages(objective, distance, self.steps, deadline)):
                functions = objective.functions(minimum.theta)
                f = fitted_values(functions.frequencies, functions.coef, Z[test])
                errors[i, k, m] += loss(f, targets[test])[0]
        return errors / len(Z)

    def _mixture(self, entropy: int, i: int, d: int) -> FrequencyMixture:
        """Return the mixture of the i-th number of components: the same draws for all folds."""
        n_components = self.components[i]
        n_each = self.n_frequencies // n_components
        return draw_mixture(stream(entropy, "start", i), n_components, n_each, d, self.is_full)


def _stages(
    objective: FrequencyObjective, distance: float, steps: Sequence[int], deadline: Deadline
) -> Iterator[Minimum]:
    """Go down, and stop after so many steps each time; steps are counted from the start."""
    theta, n_done = objective.start(distance), 0
    for n_steps in steps:
        found = minimise(objective, theta, n_steps - n_done, deadline)
        theta, n_done = found.theta, n_steps
        yield found


def checked_components(components: Sequence[int], n_features: int) -> tuple[int, ...]:
    """Return numbers of components in rising order, or raise `UsageError`."""
    found = checked_counts("components", components)
    if 2 * found[-1] > n_features:
        raise UsageError(
            f"n_features must be at least {2 * found[-1]}, two for each component; got {n_features}"
        )
    return found


def checked_counts(name: str, values: Sequence[int]) -> tuple[int, ...]:
    """Return whole numbers above 0, at least one, each once and in rising order."""
    if isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
        raise UsageError(f"{name} must be a sequence of numbers; got {values!r}")
    return tuple(sorted({check_count(f"each of {name}", value, 1) for value in values}))
