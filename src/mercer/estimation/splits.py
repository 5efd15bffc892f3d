"""Splitting rows into training and test rows: stratified, groups kept whole, forward in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import TimeSeriesSplit
from sklearn.utils.validation import check_array, has_fit_parameter

from mercer.errors import DataError, UsageError

Rows = NDArray[np.int64]
N_TRIES = 20


@dataclass(frozen=True, eq=False)
class Folds:
    """The folds of a cross-validation."""

    #: positions of training and test rows; every class is in every training part
    pairs: tuple[tuple[Rows, Rows], ...]
    #: What differs from what was asked; empty if nothing does. Rows of a class that has a single
    #: row (or group) are in all training parts and in no test part.
    note: str


def holdout(
    labels: NDArray[Any],
    test_size: float,
    rng: np.random.Generator,
    groups: NDArray[Any] | None = None,
    *,
    is_classification: bool = True,
) -> tuple[Rows, Rows]:
    """Split rows once, a share ``test_size`` of them for testing: sorted positions of both parts.

    The shares of the classes are kept, and every class has a training row. Rows of one group stay
    on one side; then the shares are kept as well as the groups allow. A `DataError` where there are
    too few rows or groups.
    """
    classes, units, held = _index(labels, groups, is_classification)
    free = np.flatnonzero(~held)
    if groups is None:
        chosen = _choose_rows(classes[free], test_size, rng)
    else:
        chosen = _choose_groups(classes[free], test_size, rng, units[free])
    is_test = np.zeros(len(classes), dtype=np.bool_)
    is_test[free[chosen]] = True
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def folds(
    labels: NDArray[Any],
    n_folds: int,
    rng: np.random.Generator,
    groups: NDArray[Any] | None = None,
    *,
    is_classification: bool = True,
) -> Folds:
    """Split rows into folds, with the shares of the classes kept and groups whole.

    There are fewer folds where the smallest class has fewer rows (or groups) than ``n_folds``, and
    then the note says so. A `DataError` where there are too few for two folds.
    """
    if n_folds < 2:
        raise UsageError(f"the number of folds must be at least 2, and is {n_folds}")
    classes, units, held = _index(labels, groups, is_classification)
    free = np.flatnonzero(~held)
    unit = "row" if groups is None else "group"
    n_units = len(set(units[free]))
    n_smallest = min(len(set(units[free][classes[free] == k])) for k in set(classes[free]))
    n_kept = min(n_folds, n_units, max(n_smallest, 2))
    fold_of = np.full(len(classes), -1, dtype=np.int64)
    if groups is None:
        fold_of[free] = _deal_rows(classes[free], n_kept, rng)
    else:
        fold_of[free] = _deal_groups(classes[free], n_kept, rng, units[free])
    notes = []
    if n_kept < n_folds:
        few = (
            f"there are {n_units} {unit}s"
            if n_kept == n_units
            else (f"the smallest class has {n_smallest} {unit}{'s' if n_smallest > 1 else ''}")
        )
        notes.append(f"{n_kept} folds instead of {n_folds}: {few}")
    if held.any():
        notes.append(
            f"{int(held.sum())} of {len(held)} rows {'is' if held.sum() == 1 else 'are'} never "
            f"tested, because a class has a single {unit}"
        )
    pairs = tuple(
        (np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(n_kept)
    )
    return Folds(pairs, "; ".join(notes))


def latest(times: NDArray[np.float64], test_size: float) -> tuple[Rows, Rows]:
    """Split off the latest rows, a share ``test_size`` of them, or more where times are equal."""
    if not 0.0 < test_size < 1.0:
        raise UsageError(f"--test-size must be between 0 and 1, and is {test_size:g}")
    n_train = len(times) - max(round(test_size * len(times)), 1)
    is_test = times >= np.sort(times)[n_train]
    if is_test.all():
        raise DataError("no row is earlier than those to score on: their times are the same")
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def forward_folds(times: NDArray[np.float64], n_folds: int) -> Folds:
    """Split rows forward in time, as `TimeSeriesSplit` does their different times.

    Each fold is tested on the rows of a span, and trained on all earlier ones; those of the first
    span are never tested.
    """
    if n_folds < 2:
        raise UsageError(f"the number of folds must be at least 2, and is {n_folds}")
    different, place = np.unique(times, return_inverse=True)
    if len(different) <= n_folds:
        raise DataError(f"{n_folds} folds in time need {n_folds + 1} times; {len(different)} found")
    spans = TimeSeriesSplit(n_folds).split(different)
    pairs = tuple(
        (np.flatnonzero(place < span[0]), np.flatnonzero((place >= span[0]) & (place <= span[-1])))
        for _, span in spans
    )
    n_first = len(pairs[0][0])
    return Folds(pairs, f"the {n_first} earliest of {len(times)} rows are never tested")


def number_groups(groups: Any) -> Rows | None:
    """Number the groups that rows come in, shape (n,); None where they come in none."""
    if groups is None:
        return None
    try:
        checked = check_array(groups, ensure_2d=False, dtype=None, input_name="groups")
        return np.asarray(np.unique(checked, return_inverse=True)[1].reshape(-1), dtype=np.int64)
    except TypeError:  # they cannot be sorted
        raise DataError("groups must be all numbers or all text, and none missing") from None


def fit_groups(model: Any, groups: Rows | None) -> dict[str, Rows]:
    """Return the groups of training rows as ``fit`` takes them; nothing where it takes none."""
    if groups is None or not has_fit_parameter(model, "groups"):
        return {}
    return {"groups": groups}


def _index(
    labels: NDArray[Any], groups: NDArray[Any] | None, is_classification: bool
) -> tuple[Rows, Rows, NDArray[np.bool_]]:
    """Number the classes and the units (rows or groups), and find the rows that only train.

    The only unit of a class can never be tested: its class would be missing from the training.
    """
    n = len(labels)
    classes = np.zeros(n, dtype=np.int64)
    if is_classification:
        classes = np.unique(labels, return_inverse=True)[1].reshape(n)
    units = np.arange(n)
    if groups is not None:
        if len(groups) != n:
            raise UsageError(f"there are {n} rows, but {len(groups)} entries of groups")
        units = np.unique(groups, return_inverse=True)[1].reshape(n)
    lonely = [units[classes == k][0] for k in set(classes) if len(set(units[classes == k])) == 1]
    held: NDArray[np.bool_] = np.isin(units, lonely)
    if len(set(units[~held])) < 2:
        unit = "row" if groups is None else "group"
        need = "every class needs" if is_classification else "there must be"
        raise DataError(
            f"found {len(set(units))} {unit}(s), too few to split into training and test rows: "
            f"{need} two {unit}s"
        )
    return classes, units, held


def _choose_rows(classes: Rows, test_size: float, rng: np.random.Generator) -> Rows:
    """Choose test rows: of each class its share, by largest remainders, but never all."""
    counts = np.bincount(classes)
    room = np.maximum(counts - 1, 0)
    n_test = min(max(round(test_size * len(classes)), 1), int(room.sum()))
    taken = np.minimum(np.floor(test_size * counts).astype(np.int64), room)
    while taken.sum() < n_test:
        lacking = np.where(taken < room, test_size * counts - taken, -np.inf)
        taken[np.argmax(lacking)] += 1
    chosen = [rng.permutation(np.flatnonzero(classes == k))[:m] for k, m in enumerate(taken)]
    return np.concatenate(chosen)


def _choose_groups(classes: Rows, test_size: float, rng: np.random.Generator, units: Rows) -> Rows:
    """Choose test groups: the best of a few random choices by the shares of the classes."""
    counts = _count(classes, units)
    totals = counts.sum(axis=0)
    best_cost, best = np.inf, units[:0]
    for _ in range(N_TRIES):
        order = rng.permutation(len(counts))
        n_rows = counts[order].sum(axis=1).cumsum()
        n_test = int(np.argmin(np.abs(n_rows[:-1] - test_size * n_rows[-1]))) + 1
        in_test = counts[order[:n_test]].sum(axis=0)
        cost = float(np.abs(in_test / totals - test_size).sum())
        if (in_test < totals).all() and cost < best_cost:
            best_cost, best = cost, order[:n_test]
    if not len(best):
        raise _no_split()
    return np.flatnonzero(np.isin(np.unique(units, return_inverse=True)[1], best))


def _deal_rows(classes: Rows, n_folds: int, rng: np.random.Generator) -> Rows:
    """Deal rows to folds in turn, class by class: sizes differ by one row at most."""
    order = rng.permutation(len(classes))
    order = order[np.argsort(classes[order], kind="stable")]
    fold_of = np.empty(len(classes), dtype=np.int64)
    fold_of[order] = np.arange(len(classes)) % n_folds
    return fold_of


def _deal_groups(classes: Rows, n_folds: int, rng: np.random.Generator, units: Rows) -> Rows:
    """Deal groups to folds, largest first, each to the fold that has least of its classes."""
    counts = _count(classes, units)
    shares = counts / counts.sum(axis=0)
    for _ in range(N_TRIES):
        order = rng.permutation(len(counts))
        order = order[np.argsort(-counts[order].sum(axis=1), kind="stable")]
        load = np.zeros((n_folds, counts.shape[1]))
        fold_of_group = np.empty(len(counts), dtype=np.int64)
        for group in order:
            fold = np.lexsort((load.sum(axis=1), np.round(load @ shares[group], 12)))[0]
            load[fold] += shares[group]
            fold_of_group[group] = fold
        if (load < 1.0 - 1e-9).all():
            return fold_of_group[np.unique(units, return_inverse=True)[1]]
    raise _no_split()


def _count(classes: Rows, units: Rows) -> Rows:
    """Count the rows of each group (row) and class (column) that is there."""
    _, group = np.unique(units, return_inverse=True)
    _, kind = np.unique(classes, return_inverse=True)
    counts = np.zeros((group.max() + 1, kind.max() + 1), dtype=np.int64)
    np.add.at(counts, (group, kind), 1)
    return counts


def _no_split() -> DataError:
    return DataError(
        "the groups cannot be split so that every class has a training row; use larger or fewer "
        "groups, or fewer folds"
    )
