"""Kernels, length scales and nuggets compared by their evidence, and averaged by it.

Candidates are compared in rounds. Short tempered runs, the first on a subset of the rows where
there are many, drop those that are hopeless; a long one weighs the others on all rows.
The weights are posterior probabilities under equal prior ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods.label_noise import LabelNoise
from mercer.random import stream
from mercer.sphere.evidence import ErrorLaw
from mercer.sphere.ladder import Ladder, measure_errors
from mercer.sphere.model import signed_rows
from mercer.sphere.space import Space

__all__ = ["Candidate", "Compared", "compare", "shares"]

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
    says how many rows the evidence is of. There is a law for two classes only.
    """

    candidate: Candidate
    log_evidence: float
    standard_error: float
    n_rows: int
    is_final: bool
    law: ErrorLaw | None


def compare(
    candidates: Sequence[Candidate],
    labels: NDArray[np.int64],
    noise_of: Callable[[int], LabelNoise],
    entropy: int,
    deadline: float | None = None,
    among: NDArray[np.int64] | None = None,
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
        Of `time.monotonic`: no further run is begun after it, once every candidate has had one.

    among : ndarray of int64, optional
        The rows that all of this is about, where they are not all.

    Returns
    -------
    tuple of Compared
        The best first.
    """
    everything = np.arange(len(labels)) if among is None else among
    compared: dict[int, Compared] = {}
    alive = list(range(len(candidates)))
    rounds = _rounds(entropy, everything) if len(candidates) > 1 else []
    for number, (rows, ladder) in enumerate(rounds):
        for k in alive:
            rng = stream(entropy, "evidence", 3 * k + number)
            compared[k] = _measure(rng, candidates[k], labels, rows, noise_of, ladder)
        limit = _HOPELESS if len(rows) == len(everything) else _HOPELESS_ON_SUBSET
        alive = _not_hopeless({k: compared[k] for k in alive}, limit)
    ladder = next(ladder for size, ladder in _LONG if len(everything) <= size)
    for count, k in enumerate(alive):
        if deadline is not None and time.monotonic() > deadline and count:
            break
        rng = stream(entropy, "evidence", 3 * k + 2)
        compared[k] = _measure(
            rng, candidates[k], labels, everything, noise_of, ladder, is_final=True
        )
    return tuple(sorted(compared.values(), key=_standing))


def shares(compared: Sequence[Compared]) -> Array:
    """Posterior probabilities of the candidates that were run on all rows; 0 below 5 %."""
    is_whole = np.array([c.is_final for c in compared])
    log_evidence = np.array([c.log_evidence for c in compared])
    weights = np.where(is_whole, np.exp(log_evidence - log_evidence[is_whole].max()), 0.0)
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
    *,
    is_final: bool = False,
) -> Compared:
    space = candidate.space
    L = space.design().L if len(rows) == len(labels) else space.some_rows(rows)
    noise = noise_of(len(rows))
    n_classes = int(labels.max()) + 1
    if n_classes == 2:
        law = measure_errors(rng, signed_rows(L, labels[rows]), ladder)
        value, error = law.log_evidence(noise)
        return Compared(candidate, value, error, len(rows), is_final, law if is_final else None)
    each = np.empty((n_classes, 2))
    for c in range(n_classes):  # each class against the others
        binary = (labels[rows] == c).astype(np.int64)
        each[c] = measure_errors(rng, signed_rows(L, binary), ladder).log_evidence(noise)
    value, error = float(each[:, 0].sum()), float(np.linalg.norm(each[:, 1]))
    return Compared(candidate, value, error, len(rows), is_final, None)


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
