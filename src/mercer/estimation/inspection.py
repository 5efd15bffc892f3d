"""What a fitted model makes of its inputs: which of them decide.

Permutation importance [1]_: an input of a held-out row is replaced by that of another held-out row,
which keeps the law of the input and breaks its tie with the target and with the other inputs; what
is predicted then is that much worse. Columns that encode one input are replaced together.

References
----------
.. [1] L. Breiman (2001), "Random forests", Machine Learning 45, 5-32, section 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mercer.data.row_names import RowNames
from mercer.errors import DataError
from mercer.estimation.tasks import BLOCK, REGRESSION, task_of
from mercer.posterior.evaluation import HeldClasses, clustered_error

__all__ = [
    "Importance",
    "Increases",
    "Inputs",
    "Inspection",
    "Look",
    "importance_of",
    "permuted_losses",
    "plan_look",
    "strength_alone",
]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of a table, and the columns of the matrix that each of them became."""

    names: tuple[str, ...]
    columns: tuple[Rows, ...]

    @classmethod
    def of_sizes(cls, names: Sequence[str], sizes: Sequence[int]) -> Inputs:
        """Inputs that take so many columns each, one after the other."""
        ends = np.cumsum(sizes)
        spans = [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        return cls(tuple(names), tuple(spans))

    def __len__(self) -> int:
        return len(self.names)

    def take(self, chosen: NDArray[np.integer[Any]]) -> Inputs:
        """Keep some of them, in that order."""
        return Inputs(tuple(self.names[j] for j in chosen), tuple(self.columns[j] for j in chosen))


# Which inputs decide: held-out rows with one input of another row.

# Rows predicted in all, so that every model answers within seconds; of several classes fewer.
_MOST_PREDICTED: Final = 10_000
_MOST_ROWS: Final = 400
_LEAST_ROWS: Final = 60
_MOST_INPUTS: Final = 40
_N_REPEATS: Final = 3


@dataclass(frozen=True, eq=False)
class Look:
    """How the importance of inputs is measured: which inputs, of how many rows, how often."""

    inputs: Inputs
    n_rows: int
    n_left_out: int  # inputs that are not measured, since there are too many
    entropy: int
    n_repeats: int = _N_REPEATS

    def share(self, n_parts: int, part: int, n_rows: int) -> Rows:
        """Choose the rows that one fold of several measures, out of its ``n_rows``."""
        n = min(-(-self.n_rows // n_parts), n_rows)
        return np.sort(self.rng(part).choice(n_rows, size=n, replace=False))

    def rng(self, part: int) -> np.random.Generator:
        """Return the generator of one fold."""
        from mercer.random import stream

        return stream(self.entropy, "inspection", part)


def plan_look(
    inputs: Inputs, X: Array, y: NDArray[Any], *, n_rows: int, n_classes: int, entropy: int
) -> Look:
    """Decide what is measured of ``n_rows`` held-out rows, so that it takes seconds.

    Of many inputs, those that alone tell most of the target in rows X (m, d), y (m,) are measured.
    There are ``n_classes`` classes, 0 of numbers.
    """
    strengths = [strength_alone(X[:, each], y, is_classes=n_classes > 0) for each in inputs.columns]
    order = np.argsort(-np.array(strengths), kind="stable")[:_MOST_INPUTS]
    kept = inputs.take(np.sort(order))
    most = _MOST_PREDICTED // (_N_REPEATS * len(kept) * max(1, n_classes - 1))
    n = min(n_rows, max(_LEAST_ROWS, min(_MOST_ROWS, most)))
    return Look(kept, n, len(inputs) - len(kept), entropy)


@dataclass(frozen=True, eq=False)
class Increases:
    """How much worse held-out rows are predicted with one input of another row.

    ``log_score`` and ``error`` are (R, n, d): repeats, rows, inputs. The error is 1 for a wrong
    class, else the squared error. ``groups`` (n,) numbers the groups that rows come in.
    """

    log_score: Array
    error: Array
    groups: Rows | None = None

    @classmethod
    def joined(cls, parts: Sequence[Increases]) -> Increases:
        """Put the rows of several folds together."""
        groups = [part.groups for part in parts if part.groups is not None]
        return cls(
            np.concatenate([part.log_score for part in parts], axis=1),
            np.concatenate([part.error for part in parts], axis=1),
            np.concatenate(groups) if groups else None,
        )


def losses_of(model: Any, X: Array, y: NDArray[Any]) -> Array:
    """Log score and error of each row of X (m, d), shape (2, m).

    ``y`` holds positions among the classes of the model, or numbers.
    """
    if task_of(model) is not REGRESSION:
        losses = HeldClasses(y, np.asarray(model.predict_proba(X), dtype=np.float64)).losses
        return np.stack([losses["log_score"], losses["error_rate"]])
    parts = []
    for begin in range(0, len(X), BLOCK):
        rows = slice(begin, begin + BLOCK)
        law = model.predictive(X[rows])
        parts.append(np.stack([-law.log_density(y[rows]), np.square(law.mean - y[rows])]))
    return np.concatenate(parts, axis=1)


def permuted_losses(
    model: Any,
    X: Array,
    y: NDArray[Any],
    look: Look,
    *,
    n_parts: int = 1,
    part: int = 0,
    groups: Rows | None = None,
) -> Increases:
    """Predict rows with one input of another row; all of one input in a single call.

    Parameters
    ----------
    model : estimator
        Fitted, on other rows.
    X, y : ndarray of shape (m, d) and (m,)
        Held-out rows: positions of classes, or numbers.
    look : Look
    n_parts, part : int
        Of how many folds this is which.
    groups : ndarray of shape (m,), optional
    """
    if len(X) < 2:
        raise DataError("a row alone has no other to take an input from")
    rows, rng = look.share(n_parts, part, len(X)), look.rng(part)
    n, n_repeats = len(rows), look.n_repeats
    base = losses_of(model, X[rows], y[rows])
    found = np.empty((2, n_repeats, n, len(look.inputs)))
    targets = np.tile(y[rows], n_repeats)
    for j, columns in enumerate(look.inputs.columns):
        # Any other row, each with the same probability.
        donors = rng.integers(len(X) - 1, size=(n_repeats, n))
        donors += donors >= rows
        changed = np.tile(X[rows], (n_repeats, 1))
        changed[:, columns] = X[donors.ravel()][:, columns]
        losses = losses_of(model, changed, targets).reshape(2, n_repeats, n)
        found[..., j] = losses - base[:, np.newaxis]
    return Increases(found[0], found[1], None if groups is None else groups[rows])


@dataclass(frozen=True, eq=False)
class Importance:
    """How much worse held-out rows are predicted without each input: means over rows, (d,).

    Standard errors are those of a mean over rows, which are paired: each row is compared with
    itself. ``repeats`` (R, d) are the means of each repeat, whose spread is what chance in the
    choice of other rows does.
    """

    names: tuple[str, ...]
    log_score: Array  # nats a row
    log_score_error: Array
    error: Array  # share of wrong classes, or squared error
    error_error: Array
    repeats: Array
    n_rows: int
    n_left_out: int  # inputs that were not measured
    is_classes: bool

    @property
    def order(self) -> Rows:
        """Positions of the inputs, the one that decides most first."""
        return np.argsort(-self.log_score, kind="stable")

    @property
    def n_repeats(self) -> int:
        """How often each input was replaced."""
        return len(self.repeats)


def importance_of(look: Look, parts: Sequence[Increases], *, is_classes: bool) -> Importance:
    """Sum up what the folds say of each input."""
    all_rows = Increases.joined(parts)
    n = all_rows.log_score.shape[1]
    groups = np.arange(n) if all_rows.groups is None else all_rows.groups
    by_row = [all_rows.log_score.mean(axis=0), all_rows.error.mean(axis=0)]
    means, errors = (
        [each.mean(axis=0) for each in by_row],
        [np.array([clustered_error(column, groups) for column in each.T]) for each in by_row],
    )
    return Importance(
        look.inputs.names, means[0], errors[0], means[1], errors[1],
        all_rows.log_score.mean(axis=1), n, look.n_left_out, is_classes,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Inspection:
    """What a report shows of rows and inputs, beyond the scores."""

    names: RowNames  # what the held-out rows are called, in the order of the evaluation
    importance: Importance | None = None


# How much one input alone tells of the target, without a model.

_N_BINS: Final = 20
_LEAST_IN_BIN: Final = 5


def strength_alone(x: Array, y: NDArray[Any], *, is_classes: bool) -> float:
    """Share of the target that bins of one input explain, less what chance would; in [0, 1].

    ``x`` (n, k) are the columns of one input: a single one is cut into at most twenty bins with
    about equally many rows, several (levels) are as they are. Of numbers it is the share of the
    variance between bins, of classes that of the Gini index, adjusted for the number of bins.
    """
    n = len(y)
    bins = _bins(x)
    n_bins = int(bins.max()) + 1
    if n_bins < 2 or n <= n_bins:
        return 0.0
    targets = np.eye(int(y.max()) + 1)[y] if is_classes else np.asarray(y, float)[:, np.newaxis]
    total = float(np.square(targets - targets.mean(axis=0)).sum())
    if total == 0.0:
        return 0.0
    sizes = np.bincount(bins, minlength=n_bins)
    means = np.stack([np.bincount(bins, t, n_bins) for t in targets.T], axis=1) / sizes[:, None]
    within = float(np.square(targets - means[bins]).sum())
    return max(0.0, 1.0 - (within / (n - n_bins)) / (total / (n - 1)))


def _bins(x: Array) -> Rows:
    """Number the bins of one input, shape (n,)."""
    if x.shape[1] > 1:
        return np.unique(x, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    values, index = np.unique(x[:, 0], return_inverse=True)
    n_bins = min(_N_BINS, max(2, len(x) // _LEAST_IN_BIN))
    if len(values) <= n_bins:
        return index.reshape(-1).astype(np.int64)
    cuts = np.unique(np.quantile(x[:, 0], np.arange(1, n_bins) / n_bins))
    return np.unique(np.searchsorted(cuts, x[:, 0]), return_inverse=True)[1].astype(np.int64)
