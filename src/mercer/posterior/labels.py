"""Which labels or values are most likely wrong, how long a list to check, which to ask for next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from mercer.data.row_names import RowNames
from mercer.errors import UsageError
from mercer.posterior.positive_laws import CONTAMINATED_LOGNORMAL

Array = NDArray[np.float64]

_SUSPICIOUS, _FEWEST_SHOWN = 0.01, 5
_LOOKED_AT = 15  # rows that somebody will look at, listed or not
_WIDER = (0.1, 0.2, 0.3, 0.4, 0.5)
# Shares of all rows, expected errors, and the share of these on one side that call for caution.
_MANY, _FEWEST_ON_A_SIDE, _ON_ONE_SIDE = 0.15, 10.0, 0.75
_FEW_DRAWS = 50  # of which a share says little


@dataclass(frozen=True, eq=False)
class Audit(ABC):
    """All rows of a table, the one whose target is most likely wrong first."""

    names: RowNames
    recorded: NDArray[Any]  # (n,), the target as it stands
    p_wrong: Array  # (n,), P(it is wrong), falling
    n_listed: int  # the first so many are the list to check
    fdr: float  # largest expected share of right targets in the list that was allowed

    @abstractmethod
    def columns(self) -> dict[str, NDArray[Any]]:
        """What is written of every row beside its names."""

    @abstractmethod
    def cells(self, i: int) -> dict[str, Any]:
        """What is shown of row i, a text or a number; probabilities are called P(...)."""

    @abstractmethod
    def caution(self) -> str:
        """What else than errors looks like this; empty where nothing suggests it."""

    @property
    def is_listed(self) -> NDArray[np.bool_]:
        """Which rows are on the list to check, shape (n,)."""
        return np.arange(len(self.names)) < self.n_listed

    @property
    def row(self) -> NDArray[np.int64]:
        """Number of each row: in its file from 1, or its position in X from 0; `names` tells."""
        return self.names.number

    @property
    def expected_fdr(self) -> float:
        """Expected share of the list that is right after all; 0 of an empty list."""
        return float(np.mean(1.0 - self.p_wrong[: self.n_listed])) if self.n_listed else 0.0

    def of_first(self) -> str:
        """Say how many of the first rows are expected to be wrong, whether listed or not."""
        n = min(_LOOKED_AT, len(self.p_wrong))
        return f"of the first {n} rows about {self.p_wrong[:n].sum():.1f} are expected to be wrong"

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


@dataclass(frozen=True, eq=False)
class LabelAudit(Audit):
    """Of labels: the label that suits each row best of the others."""

    suggested: NDArray[Any]  # (n,)
    p_suggested: Array  # (n,), P(the suggested label is right)
    n_classes: int
    n_draws: int | None = None  # of which probabilities are shares, where that is known

    def columns(self) -> dict[str, NDArray[Any]]:
        """Label, probability, suggestion, its probability, and whether it is listed."""
        return {
            "label": self.recorded,
            "p_wrong": self.p_wrong,
            "suggested": self.suggested,
            "p_suggested": self.p_suggested,
            "is_listed": self.is_listed,
        }

    def cells(self, i: int) -> dict[str, Any]:
        """The two labels and their probabilities; of two classes one says the other."""
        labels = {"recorded": str(self.recorded[i]), "suggested": str(self.suggested[i])}
        found = {**labels, "P(wrong)": float(self.p_wrong[i])}
        if self.n_classes > 2:
            found["P(suggested)"] = float(self.p_suggested[i])
        return found

    def caution(self) -> str:
        """Of few draws that they say little; of many errors that classes may overlap instead."""
        if self.n_draws is not None and self.n_draws < _FEW_DRAWS:
            return (
                f"P(wrong) is a share of {self.n_draws} draws, and known to "
                f"{0.5 / self.n_draws**0.5:.2f} at best: nothing to act on before a longer run"
            )
        share = float(self.p_wrong.mean())
        if share <= _MANY:
            return ""
        return (
            f"{100 * share:.0f} % of the labels wrong are more than records usually have. Where "
            "inputs do not decide the class (what will happen, what somebody chose) rows of the "
            "rarer outcome look wrong, and are not; if about 5 % can be wrong, noise_rate=0.05 "
            "says so"
        )


@dataclass(frozen=True, eq=False)
class TargetAudit(Audit):
    """Of numbers: the value that the other rows would have each row have."""

    expected: Array  # (n,), its mean, in units of the target
    expected_std: Array  # (n,), its standard deviation, noise included
    is_of_logarithms: bool = False  # whether the noise is a factor

    def columns(self) -> dict[str, NDArray[Any]]:
        """Value, probability, what is expected, its deviation, and whether it is listed."""
        return {
            "value": self.recorded,
            "p_wrong": self.p_wrong,
            "expected": self.expected,
            "expected_std": self.expected_std,
            "is_listed": self.is_listed,
        }

    def cells(self, i: int) -> dict[str, Any]:
        """Value, what is expected, the probability, and how sure the expected one is."""
        return {
            "recorded": float(self.recorded[i]),
            "expected": float(self.expected[i]),
            "P(wrong)": float(self.p_wrong[i]),
            "std": float(self.expected_std[i]),
        }

    @property
    def _share_above(self) -> float | None:
        """How much of what looks wrong is above what is expected; None where both sides are."""
        n_wrong = float(self.p_wrong.sum())
        above = float(self.p_wrong @ (self.recorded > self.expected)) / max(n_wrong, 1e-300)
        is_one_side = max(above, 1.0 - above) > _ON_ONE_SIDE
        return above if n_wrong >= _FEWEST_ON_A_SIDE and is_one_side else None

    @property
    def is_skewed(self) -> bool:
        """Whether an audit of the logarithms may find less wrong: above what is expected."""
        is_above = (self._share_above or 0.0) > 0.5
        return is_above and float(self.recorded.min()) > 0.0 and not self.is_of_logarithms

    def caution(self) -> str:
        """Of errors on one side that noise may have a long tail there; of many, that it varies."""
        above, share = self._share_above, float(self.p_wrong.mean())
        if above is not None:
            return (
                f"{100 * max(above, 1.0 - above):.0f} % of what looks wrong lies "
                f"{'above' if above > 0.5 else 'below'} what is expected: noise with a long tail "
                "looks like that, too" + "; an audit of the logarithms would tell" * self.is_skewed
            )
        if share > _MANY:
            return (
                f"{100 * share:.0f} % of the values wrong are more than records usually have: "
                "noise that is wider for some rows looks like that, too"
            )
        return ""


@dataclass(frozen=True, eq=False)
class TargetLaws:
    """What the other rows, and the target itself, say of each target; standardised.

    Attributes
    ----------
    wrong : ndarray of shape (n,)
        P(wrong).
    mean, std : ndarray of shape (n,)
        Of a right target at the row, given all the others.
    """

    wrong: Array
    mean: Array
    std: Array


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


def audit_of(estimator: Any, *, fdr: float = 0.1, names: RowNames | None = None) -> Audit:
    """Order the rows that a model was fitted to by the probability that their target is wrong.

    The estimator tells wrong labels, or wrong numbers; rows have its names for them unless others
    are given.
    """
    known = estimator.row_names_ if names is None else names
    if hasattr(estimator, "target_error_proba_"):
        return audit_targets(
            estimator.target_error_proba_,
            estimator.recorded_,
            estimator.expected_target_,
            estimator.expected_target_std_,
            fdr=fdr,
            names=known,
            is_of_logarithms=estimator.noise == CONTAMINATED_LOGNORMAL,
        )
    given = estimator.label_proba_, estimator.recorded_, estimator.classes_
    n_draws = estimator.posterior_.n_total
    return audit_labels(*given, fdr=fdr, names=known, n_draws=n_draws)


def audit_labels(
    label_proba: Array,
    recorded: NDArray[Any],
    classes: NDArray[Any],
    *,
    fdr: float = 0.1,
    names: RowNames | None = None,
    n_draws: int | None = None,
) -> LabelAudit:
    """Order the rows by the probability that their label is wrong.

    ``label_proba`` (n, C) is P(class) of each row, its recorded label taken into account;
    ``classes`` (C,) are sorted. Rows are called ``names``, or by their positions from 0.
    """
    n = len(label_proba)
    index, every = np.searchsorted(classes, recorded), np.arange(n)
    others = label_proba.copy()
    others[every, index] = 0.0
    p_wrong = others.sum(axis=1)
    others[every, index] = -1.0  # never the best of the others
    best = others.argmax(axis=1)
    order, ranked = _ranked(p_wrong, recorded, fdr, names)
    return LabelAudit(
        **ranked,
        suggested=classes[best[order]],
        p_suggested=others[every, best][order],
        n_classes=len(classes),
        n_draws=n_draws,
    )


def audit_targets(
    p_wrong: Array,
    recorded: Array,
    expected: Array,
    expected_std: Array,
    *,
    fdr: float = 0.1,
    names: RowNames | None = None,
    is_of_logarithms: bool = False,
) -> TargetAudit:
    """Order the rows by the probability that their value is wrong; all arrays are (n,)."""
    order, ranked = _ranked(p_wrong, recorded, fdr, names)
    return TargetAudit(
        **ranked,
        expected=expected[order],
        expected_std=expected_std[order],
        is_of_logarithms=is_of_logarithms,
    )


def _ranked(
    p_wrong: Array, recorded: NDArray[Any], fdr: float, names: RowNames | None
) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """Return the order of the rows, and what every audit has, in this order."""
    if not 0.0 <= fdr <= 1.0:
        raise UsageError(f"fdr must be in [0, 1]; got {fdr}")
    order = np.argsort(-p_wrong, kind="stable")
    known = RowNames.positions(len(p_wrong)) if names is None else names
    return order, {
        "names": known.take(order),
        "recorded": recorded[order],
        "p_wrong": p_wrong[order],
        "n_listed": longest_list(p_wrong[order], fdr),
        "fdr": fdr,
    }


# Which rows to ask the labels of: the most that a label can say, and not the same twice.

# Rows with the most information, among which a batch is put together.
_SHORT_LIST = 500
# A row with a smaller share of its variance left is a copy of what was chosen, but for rounding.
_COPY = 1e-10


def entropy_bits(p: Array) -> Array:
    """Entropy of distributions over the last axis, in bits."""
    return np.asarray(entr(p).sum(axis=-1) / np.log(2.0))


def information_of_draws(drawn: Array) -> Array:
    """Bits that a label says of the function, given its probabilities under draws: (S, K, m).

    H(mean p) - mean H(p), shape (m,).
    """
    each = np.moveaxis(drawn, 1, -1)
    known = entropy_bits(each).mean(axis=0)
    return np.asarray(np.maximum(entropy_bits(each.mean(axis=0)) - known, 0.0))


def covariance_of_draws(drawn: Array) -> Array:
    """Covariance (m, m) of what draws say of rows, (S, m) or (S, K, m): the mean over the K."""
    deviations = (drawn - drawn.mean(axis=0)).reshape(-1, drawn.shape[-1])
    return np.asarray(deviations.T @ deviations / len(deviations))


def short_list(information: Array, n_queries: int, rows: Array | None = None) -> NDArray[np.int64]:
    """Positions of the rows that a batch is chosen from: those with the most information.

    Where ``rows`` of shape (m, d) are given, of equal ones only the first comes before all others.
    """
    order = np.argsort(-information, kind="stable")
    if rows is not None:
        is_copy = np.ones(len(rows), dtype=bool)
        is_copy[np.unique(rows, axis=0, return_index=True)[1]] = False
        order = order[np.argsort(is_copy[order], kind="stable")]
    return order[: max(_SHORT_LIST, 3 * n_queries)]


def choose_batch(information: Array, covariance: Array, n_queries: int) -> NDArray[np.int64]:
    """Choose rows one after the other, each by its information not yet covered by those before.

    Covered is the share of the variance of its function that the values of the chosen rows
    explain: of a second copy of a row all of it. Copies come after all other rows. ``covariance``
    (m, m) is that of the function at the rows. Positions are returned, the most wanted first.
    """
    variance = np.maximum(covariance.diagonal().copy(), np.finfo(float).tiny)
    left, factors = variance.copy(), np.empty((0, len(variance)))
    chosen: list[int] = []
    for _ in range(n_queries):
        share = np.clip(left / variance, 0.0, 1.0)
        score = np.where(share > _COPY, information * share, -0.5)
        score[chosen] = -1.0
        best = int(np.argmax(score))
        chosen.append(best)
        if share[best] > _COPY:
            row = (covariance[best] - factors.T @ factors[:, best]) / np.sqrt(left[best])
            factors = np.vstack([factors, row])
            left = np.maximum(left - row**2, 0.0)
    return np.array(chosen, dtype=np.int64)
