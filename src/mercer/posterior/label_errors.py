"""Which labels are most likely wrong, which label would be right, and how long a list to check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.row_names import RowNames
from mercer.errors import UsageError

Array = NDArray[np.float64]

_SUSPICIOUS, _FEWEST_SHOWN = 0.01, 5
_WIDER = (0.1, 0.2, 0.3, 0.4, 0.5)


@dataclass(frozen=True, eq=False)
class LabelAudit:
    """All rows of a table, the one whose label is most likely wrong first."""

    names: RowNames
    recorded: NDArray[Any]  # (n,), the label as it stands
    suggested: NDArray[Any]  # (n,), the best of the others
    p_wrong: Array  # (n,), P(the recorded label is wrong), falling
    p_suggested: Array  # (n,), P(the suggested label is right)
    n_listed: int  # the first so many are the list to check
    fdr: float  # largest expected share of right labels in the list that was allowed
    n_classes: int

    @property
    def row(self) -> NDArray[np.int64]:
        """Number of each row: in its file from 1, or its position in X from 0; `names` tells."""
        return self.names.number

    @property
    def expected_fdr(self) -> float:
        """Expected share of the list whose labels are right after all; 0 of an empty list."""
        return float(np.mean(1.0 - self.p_wrong[: self.n_listed])) if self.n_listed else 0.0

    def wider(self) -> tuple[float, int] | None:
        """Return the next of 10, 20, ... 50 % expected false ones that lists more rows, how many.

        None where none does.
        """
        for fdr in _WIDER:
            n = longest_list(self.p_wrong, fdr)
            if fdr > self.fdr and n > self.n_listed:
                return fdr, n
        return None

    def n_shown(self, most: int) -> int:
        """How many rows a table shows: the suspicious ones, within bounds."""
        n_suspicious = int(np.count_nonzero(self.p_wrong >= _SUSPICIOUS))
        return min(len(self.names), max(_FEWEST_SHOWN, min(n_suspicious, most)))


def longest_list(p_wrong: Array, fdr: float) -> int:
    """Length of the longest list whose expected false discovery rate is at most ``fdr``.

    ``p_wrong`` falls: the expected share of right labels among the first k, the mean of 1 - p,
    rises with k.

    Examples
    --------
    >>> longest_list(np.array([0.99, 0.9, 0.8, 0.5, 0.1]), 0.1)
    2
    """
    mean = np.cumsum(1.0 - p_wrong) / np.arange(1, len(p_wrong) + 1)
    return int(np.count_nonzero(mean <= fdr + 1e-12))


def audit_labels(
    label_proba: Array,
    recorded: NDArray[Any],
    classes: NDArray[Any],
    *,
    fdr: float = 0.1,
    names: RowNames | None = None,
) -> LabelAudit:
    """Order the rows by the probability that their label is wrong.

    ``label_proba`` (n, C) is P(class) of each row, its recorded label taken into account;
    ``classes`` (C,) are sorted. Rows are called ``names``, or by their positions from 0.
    """
    if not 0.0 <= fdr <= 1.0:
        raise UsageError(f"fdr must be in [0, 1]; got {fdr}")
    n = len(label_proba)
    index, every = np.searchsorted(classes, recorded), np.arange(n)
    others = label_proba.copy()
    others[every, index] = 0.0
    p_wrong = others.sum(axis=1)
    others[every, index] = -1.0  # never the best of the others
    best = others.argmax(axis=1)
    order = np.argsort(-p_wrong, kind="stable")
    known = RowNames.positions(n) if names is None else names
    return LabelAudit(
        names=known.take(order),
        recorded=recorded[order],
        suggested=classes[best[order]],
        p_wrong=p_wrong[order],
        p_suggested=others[every, best][order],
        n_listed=longest_list(p_wrong[order], fdr),
        fdr=fdr,
        n_classes=len(classes),
    )
