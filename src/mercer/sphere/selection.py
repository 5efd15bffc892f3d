"""Kernels, length scales and nuggets compared by their evidence, and averaged by it.

Candidates are compared in rounds. Short tempered runs, the first on a subset of the rows where
there are many, drop those that are hopeless; a long one weighs the others on all rows.
The weights are posterior probabilities under equal prior ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods.label_noise import LabelNoise
from mercer.random import stream
from mercer.sphere.evidence import ErrorLaw
from mercer.sphere.ladder import Ladder, OutOfTimeError, measure_errors, measure_noise
from mercer.sphere.model import signed_rows
from mercer.sphere.space import Space

__all__ = [
    "WORTH_A_RATE",
    "Candidate",
    "Compared",
    "compare",
    "evidence_of_noise",
    "is_by_class_better",
    "shares",
    "under_rates_by_class",
]

Array = NDArray[np.float64]

# Candidates further behind than this, in nats and beyond two standard errors, are dropped.
_HOPELESS = 4.0
# On a subset of the rows differences are smaller and less to be trusted.
_HOPELESS_ON_SUBSET = 12.0
_SUBSET_ROWS = 400
# Rounds before the last one, each on what the one before has left.
_SHORT, _MEDIUM = Ladder(n_pilot=10, n_sweeps=30), Ladder(n_pilot=12, n_sweeps=60)
# The last round: fewer sweeps where they are dear.
_LONG = ((600, Ladder(20, 150)), (10**9, Ladder(16, 60)))
# Models with a smaller share of the evidence give no draws.
_SMALLEST_SHARE = 0.05
# A rate for each class must explain the labels better than one by so many nats.
WORTH_A_RATE = 1.0


@dataclass(frozen=True)
class Candidate:
    """A model to be compared: what it is called, and its feature space."""

    kernel: str
    lengthscale: float | None
    nugget: float
    space: Space


@dataclass(frozen=True)
class Compared:
    """A candidate with its log evidence (nats), standard error, and the law that gave them.

    ``is_final`` tells a candidate of the last round from one that was dropped before; ``n_rows``
    says how many rows the evidence is of. There is a law for two classes only. ``by_class`` is the
    log evidence with a noise rate for each class, of the last round where it was asked for.
    """

    candidate: Candidate
    log_evidence: float
    standard_error: float
    n_rows: int
    is_final: bool
    law: ErrorLaw | None
    by_class: tuple[float, float] | None = None


def compare(
    candidates: Sequence[Candidate],
    labels: NDArray[np.int64],
    noise_of: Callable[[int], LabelNoise],
    entropy: int,
    deadline: float | None = None,
    among: NDArray[np.int64] | None = None,
    by_class: LabelNoise | None = None,
) -> tuple[Compared, ...]:
    """Estimate the evidence of candidates, of those that are not hopeless on all rows.

    With several classes it is the sum over classes of the evidence of that class against the
    others: enough to rank kernels, not a probability of the labels.

    Parameters
    ----------
    candidates : sequence of Candidate
        At least one; the same training rows for all.
    labels : ndarray of shape (n,), int64
        0..C-1.
    noise_of : callable
        Costs of errors of two classes, common to all rows, for a number of rows.
    entropy : int
        Of the random streams.
    deadline : float, optional
        Of `time.monotonic`: what has not been measured by then is left out, and a run under way
        ends early. The candidates in the middle come first: those that nobody would be surprised
        by.
    among : ndarray of int64, optional
        The rows that all of this is about, where they are not all.
    by_class : LabelNoise, optional
        Rates for each of two classes, under which candidates of the last round are measured too;
        of all rows.

    Returns
    -------
    tuple of Compared
        The best first; empty if there was no time for any. Without one of the last round there was
        no time for that.
    """
    everything = np.arange(len(labels)) if among is None else among
    compared: dict[int, Compared] = {}
    alive = sorted(range(len(candidates)), key=lambda k: abs(k - len(candidates) // 2))
    rounds = _rounds(entropy, everything) if len(candidates) > 1 else []
    for number, (rows, ladder) in enumerate(rounds):
        measured: dict[int, Compared] = {}
        for k in alive:
            rng = stream(entropy, "evidence", 3 * k + number)
            one = _measure(rng, candidates[k], labels, rows, noise_of, ladder, deadline)
            if one is not None:
                measured[k] = one
        if not measured:
            break
        compared |= measured
        limit = _HOPELESS if len(rows) == len(everything) else _HOPELESS_ON_SUBSET
        alive = _not_hopeless(measured, limit)
    ladder = next(ladder for size, ladder in _LONG if len(everything) <= size)
    for k in alive:
        rng = stream(entropy, "evidence", 3 * k + 2)
        one = _measure(rng, candidates[k], labels, everything, noise_of, ladder, deadline)
        if one is None:
            break
        compared[k] = replace(one, is_final=True)
        if by_class is not None:
            rng = stream(entropy, "by class", k)
            found = _measure_by_class(rng, candidates[k], labels, by_class, ladder, deadline)
            compared[k] = replace(compared[k], by_class=found)
    finals = [replace(one, law=one.law if one.is_final else None) for one in compared.values()]
    return tuple(sorted(finals, key=_standing))


def evidence_of_noise(compared: Sequence[Compared]) -> tuple[float, float] | None:
    """Log evidence of one noise rate and of one for each class, of all candidates together.

    Of those that were measured under both, as if a priori equal; None if there are none.
    """
    both = [(one.log_evidence, one.by_class[0]) for one in compared if one.by_class is not None]
    if not both:
        return None
    totals = np.logaddexp.reduce(np.array(both), axis=0) - np.log(len(both))
    return float(totals[0]), float(totals[1])


def is_by_class_better(compared: Sequence[Compared]) -> bool:
    """Whether a noise rate for each class explains the labels clearly better than one."""
    evidence = evidence_of_noise(compared)
    return evidence is not None and evidence[1] > evidence[0] + WORTH_A_RATE


def under_rates_by_class(compared: Sequence[Compared]) -> tuple[Compared, ...]:
    """Those measured under rates by class with that evidence, the best first; then the others."""
    changed = []
    for one in compared:
        if one.by_class is None:
            changed.append(replace(one, is_final=False))
        else:
            value, error = one.by_class
            changed.append(replace(one, log_evidence=value, standard_error=error))
    return tuple(sorted(changed, key=_standing))


def shares(compared: Sequence[Compared]) -> Array:
    """Posterior probabilities of the candidates that were run on all rows; 0 below 5 %.

    Where there are none, all to the first.
    """
    is_whole = np.array([c.is_final for c in compared])
    if not is_whole.any():
        return np.asarray([1.0] + [0.0] * (len(compared) - 1))
    log_evidence = np.array([c.log_evidence for c in compared])
    best = log_evidence[is_whole].max()
    weights = np.where(is_whole, np.exp(np.minimum(log_evidence - best, 0.0)), 0.0)
    weights /= weights.sum()
    weights = np.where(weights >= _SMALLEST_SHARE, weights, 0.0)
    return np.asarray(weights / weights.sum())


def _rounds(entropy: int, everything: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], Ladder]]:
    """Rows and ladders of the rounds before the last."""
    if len(everything) <= _SUBSET_ROWS * 3 // 2:
        return [(everything, _SHORT), (everything, _MEDIUM)]
    chosen = stream(entropy, "rows", 1).choice(everything, _SUBSET_ROWS, replace=False)
    return [(np.sort(chosen), _MEDIUM), (everything, _SHORT)]


def _measure(
    rng: np.random.Generator,
    candidate: Candidate,
    labels: NDArray[np.int64],
    rows: NDArray[np.int64],
    noise_of: Callable[[int], LabelNoise],
    ladder: Ladder,
    deadline: float | None,
) -> Compared | None:
    """Measure a candidate on some rows; None if there is no time for it."""
    if deadline is not None and time.monotonic() > deadline:
        return None
    space = candidate.space
    L = space.design().L if len(rows) == len(labels) else space.some_rows(rows)
    noise = noise_of(len(rows))
    n_classes = int(labels.max()) + 1
    try:
        if n_classes == 2:
            law = measure_errors(rng, signed_rows(L, labels[rows]), ladder, deadline)
            value, error = law.log_evidence(noise)
            return Compared(candidate, value, error, len(rows), False, law)
        each = np.empty((n_classes, 2))
        for c in range(n_classes):  # each class against the others
            binary = (labels[rows] == c).astype(np.int64)
            law = measure_errors(rng, signed_rows(L, binary), ladder, deadline)
            each[c] = law.log_evidence(noise)
    except OutOfTimeError:
        return None
    value, error = float(each[:, 0].sum()), float(np.linalg.norm(each[:, 1]))
    return Compared(candidate, value, error, len(rows), False, None)


def _measure_by_class(
    rng: np.random.Generator,
    candidate: Candidate,
    labels: NDArray[np.int64],
    noise: LabelNoise,
    ladder: Ladder,
    deadline: float | None,
) -> tuple[float, float] | None:
    try:
        L = signed_rows(candidate.space.design().L, labels)
        return measure_noise(rng, L, noise, ladder, deadline)
    except OutOfTimeError:
        return None


def _standing(one: Compared) -> tuple[bool, float]:
    """Order: those that were run on all rows first, by evidence."""
    return not one.is_final, -one.log_evidence


def _not_hopeless(compared: Mapping[int, Compared], limit: float) -> list[int]:
    """Those within reach of the best, which comes first."""
    order = sorted(compared, key=lambda k: -compared[k].log_evidence)
    best = compared[order[0]]
    kept = []
    for k in order:
        spread = float(np.hypot(compared[k].standard_error, best.standard_error))
        gap = best.log_evidence - compared[k].log_evidence
        if not gap > limit + 2.0 * min(spread, limit):
            kept.append(k)
    return kept
