"""Candidates of kernels, length scales and nuggets, compared by their evidence and averaged.

Candidates are compared in rounds. Expectation propagation, first on a subset of the rows where
there are many, drops those that are hopeless. Of the others a tempered run on all rows is begun,
and that of those still within reach and not well known is prolonged. Both give the evidence, each
by its precision. Posterior probabilities are those under equal prior ones, and the shares of the
draws on average. Folds need no runs: how far propagation is off is known from all rows.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NumericalError, UsageError
from mercer.estimation.run import check_choice, check_count
from mercer.features.maps import FeatureMap, draw_fourier, fit_nystroem
from mercer.kernels.base import Kernel
from mercer.kernels.columns import has_columns
from mercer.kernels.names import KERNELS, kernel_named, name_of_kernel
from mercer.likelihoods.label_noise import LabelNoise, learned_class_rates
from mercer.random import stream
from mercer.sampling.signals import is_late
from mercer.sphere.propagation import (
    LARGEST_PROPAGATED,
    NOT_AT_REST,
    Approximation,
    approximate_evidence,
    approximate_several,
)
from mercer.sphere.sampler import signed_rows
from mercer.sphere.space import (
    AUTO,
    LARGEST_EXACT,
    LEARN,
    MEDIAN,
    PRECOMPUTED,
    FeatureSpace,
    FiniteFeatures,
    KernelSpace,
    Space,
    SpaceArguments,
    StoredInputs,
    fit_covariance,
    kernel_parameters,
    median_distance,
    precomputed,
)
from mercer.sphere.tempering import (
    Climb,
    ErrorLaw,
    OutOfTimeError,
    Tempering,
    climb_errors,
    measure_noise,
    prolong,
)

Array = NDArray[np.float64]

# Candidates further behind than this, in nats and beyond two standard errors, are dropped: their
# share would be below the smallest.
_HOPELESS = 3.0
# How far expectation propagation is from tempered runs, in nats: with a nugget, and without.
_ERROR, _ERROR_WITHOUT_NUGGET = 0.5, 1.0
# Rows of the first subsets, where those are much fewer than there are, and how far behind is
# hopeless there: differences are smaller, and one subset differs from another.
_SUBSETS = (400, 8.0), (1200, 5.0)
# Most rows for propagation, and rows of the last subset where there are more.
_MOST_PROPAGATED, _LAST_SUBSET_ROWS = 3000, 2000
# The run that is begun, and what it is prolonged to.
_RUNS = (Tempering(12, 30), Tempering(12, 75))
# Standard errors in nats that are small enough: of an evidence, where weights of models are off by
# a factor of two then, and of the run alone, so that it can tell an approximation that is wrong.
_WELL_KNOWN, _SOME = 0.7, 2.0
# Standard errors by which an approximation that has gone wrong is away from a run.
_CONTRADICTION = 5.0
# Probability of the models, those of the least, that give no draws; and how many give some at most:
# the chains of each of them warm up.
_LEFT_OUT, _MOST_USED = 0.05, 6
# A priori log probabilities of one noise rate, and of one for each class: errors are seldom even.
_LOG_PRIOR = np.log([0.25, 0.75])


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

    ``is_final`` tells a candidate of the last round from one that was dropped before, of ``n_rows``
    rows, and ``is_approximate`` one without a run: evidence is -inf, its error inf, where it did
    not come to rest. There is a law of two classes only. ``by_class`` is the log evidence with a
    noise rate for each class, and ``one_rate`` that with one, where ``log_evidence`` is over both.
    """

    candidate: Candidate
    log_evidence: float
    standard_error: float
    n_rows: int
    is_final: bool
    law: ErrorLaw | None
    by_class: tuple[float, float] | None = None
    one_rate: float | None = None
    is_approximate: bool = False
    approximation: tuple[float, float] = (math.nan, math.nan)  # of the same, if it came to rest
    found: tuple[Approximation, ...] = ()  # of all rows at learned rates: one, one a class


def what_is_known(candidates: Sequence[Candidate], compared: Sequence[Compared]) -> Array:
    """What a comparison leaves for fits to most of its rows, those of folds.

    Of each candidate, shape (k, 2), what its evidence under one rate, and under one a class, has
    more than propagation says, in nats: nan where it was dropped, inf where it needs a run. What a
    fold chooses follows from its own rows but for that.
    """
    said, value = np.full((2, len(candidates), 2), np.nan)
    number = {(one.kernel, one.lengthscale, one.nugget): k for k, one in enumerate(candidates)}
    for one in compared:
        k = number[one.candidate.kernel, one.candidate.lengthscale, one.candidate.nugget]
        if one.n_rows == compared[0].n_rows:  # others were dropped on some of the rows
            said[k] = one.approximation
        if one.is_final:
            value[k] = one.log_evidence, (one.by_class or (one.log_evidence,))[0]
    with np.errstate(invalid="ignore"):  # of what did not come to rest
        return np.where(np.isnan(value) | np.isfinite(said), value - said, np.inf)


def _without_runs(approximate: Mapping[int, Compared], ahead: Array | None) -> dict[int, Compared]:
    """Evidence from propagation and what that is off by; nothing where one needs a run."""
    if ahead is None or not np.isfinite([one.approximation for one in approximate.values()]).all():
        return {}
    return {} if not np.isfinite(ahead[list(approximate)]).all() else {
        k: replace(
            one, log_evidence=one.log_evidence + ahead[k, 0], is_final=True, is_approximate=False,
            by_class=one.by_class and (one.by_class[0] + ahead[k, 1], one.by_class[1]),
        ) for k, one in approximate.items()
    }  # fmt: skip


def compare(
    candidates: Sequence[Candidate],
    labels: NDArray[np.int64],
    noise_of: Callable[[NDArray[np.int64]], LabelNoise],
    entropy: int,
    deadline: float | None = None,
    among: NDArray[np.int64] | None = None,
    by_class: LabelNoise | None = None,
    known: Array | None = None,
    *,
    has_runs: bool = True,
) -> tuple[Compared, ...]:
    """Estimate the evidence of candidates, of those that are not hopeless on all rows; best first.

    With several classes it is the sum over classes of the evidence of that class against the
    others, unless the noise is of several: enough to rank kernels, not a probability of the labels.

    Candidates have the same training rows, with labels 0..C-1, or the rows ``among`` them;
    ``noise_of(rows)`` gives the costs of errors of two classes for some rows. ``by_class`` has
    unknown rates for each of two classes, under which candidates are measured too: dropped is what
    is hopeless under both, since a smaller nugget leaves more to the rates.

    A candidate whose approximation did not come to rest has a run. One that was dropped has another
    chance if the best run ends below what was known of it. With what is ``known`` of a fit to more
    rows candidates far behind are left out, and the others have no runs where that is enough.
    Unless it ``has_runs`` the approximation decides, of all rows where some leave it open.

    What has not been measured by the ``deadline`` (of `time.monotonic`) is left out, and a run
    under way ends early; the candidates in the middle come first. The result may be empty.
    """
    everything = np.arange(len(labels)) if among is None else among
    measuring = _Measuring(labels, noise_of, entropy, deadline, by_class, len(everything))
    compared, approximate = dict[int, Compared](), dict[int, Compared]()
    alive = sorted(range(len(candidates)), key=lambda k: abs(k - len(candidates) // 2))
    if known is not None:
        alive = [k for k in alive if not np.isnan(known[k, 0])]
    screens = _screens(entropy, everything)
    if len(candidates) == 1 and has_runs:  # of few features propagation says too little
        is_full = isinstance(candidates[0].space, KernelSpace)
        screens = [each for each in screens if is_full and len(each[0]) == len(everything)]
    for rows, limit in screens:
        seen = {k: measuring.approximate(candidates[k], rows) for k in alive}
        measured = {k: one for k, one in seen.items() if one is not None}
        if has_runs and len(rows) < len(everything):
            measured |= _runs_of_restless(measuring, candidates, rows, measured)
        compared |= measured
        approximate, alive = measured, _not_hopeless(measured, limit) if measured else []
    if not has_runs:
        is_of_some = len(screens[-1][0]) < len(labels)
        alive = alive[:1] if is_of_some and labels.max() > 1 else alive
        if is_of_some and len(alive) > 1:  # some of the rows leave it open
            all_rows = np.arange(len(labels))
            seen = {k: measuring.approximate(candidates[k], all_rows) for k in alive}
            approximate = {k: one for k, one in seen.items() if one is not None}
            compared |= approximate
        return _approximated(compared, [k for k in alive if k in approximate])
    if not screens or len(screens[-1][0]) < len(everything):
        approximate = {}  # what some of the rows say is no part of the evidence of all
    finals = _without_runs({k: approximate[k] for k in alive if k in approximate}, known)
    compared |= finals
    looked_at, alive = set[int](), [] if finals else alive
    while alive:
        looked_at |= set(alive)
        _run_rounds(measuring, candidates, everything, alive, approximate, compared)
        alive = [k for k in _overlooked(compared) if k not in looked_at]
    return tuple(sorted(map(_shown, compared.values()), key=_standing))


def _approximated(compared: Mapping[int, Compared], finals: list[int]) -> tuple[Compared, ...]:
    """What propagation alone says: of candidates, and noises, where it came to rest."""
    said = []
    for k, one in compared.items():
        both = [(one.log_evidence, one.standard_error), *([one.by_class] if one.by_class else [])]
        is_final = k in finals and max(value for value, _ in both) > -math.inf
        (value, error), *by_class = [(v, e if v > -math.inf else 0.0) for v, e in both]
        one = replace(one, log_evidence=value, standard_error=error, is_final=is_final)
        said.append(_shown(replace(one, by_class=by_class[0] if by_class else None)))
    if finals and not any(one.is_final for one in said):
        raise NumericalError(NOT_AT_REST)
    return tuple(sorted(said, key=_standing))


def _runs_of_restless(
    measuring: _Measuring,
    candidates: Sequence[Candidate],
    rows: NDArray[np.int64],
    measured: Mapping[int, Compared],
) -> dict[int, Compared]:
    """What short runs say where the approximation came to no rest, but others did."""
    restless = [k for k, one in measured.items() if one.log_evidence == -math.inf]
    found = dict[int, Compared]()
    for k in restless if len(restless) < len(measured) else ():
        run = measuring.run(candidates[k], k, rows, _RUNS[0], None)
        if run is not None:
            found[k] = measuring.evidence(candidates[k], k, rows, run, _RUNS[0], is_needed=False)
    return found


def _run_rounds(
    measuring: _Measuring,
    candidates: Sequence[Candidate],
    rows: NDArray[np.int64],
    alive: list[int],
    approximate: Mapping[int, Compared],
    compared: dict[int, Compared],
) -> None:
    """Begin the runs of those ``alive``, and go on where one is within reach and not well known."""
    runs, enough = dict[int, tuple[Climb, ...]](), set[int]()
    for number, tempering in enumerate(_RUNS):
        measured, is_last = dict[int, Compared](), number == len(_RUNS) - 1
        for k in alive:
            found, other = runs.get(k), approximate.get(k)
            is_known = other is not None and np.isfinite(other.approximation[1])
            if k in enough and is_known:  # the run would say the same again
                measured[k] = replace(compared[k], is_final=is_last)
                continue
            if k not in enough:
                found = measuring.run(candidates[k], k, rows, tempering, found)
            if found is None:
                continue
            is_needed = is_last and not is_known
            own = measuring.evidence(candidates[k], k, rows, found, tempering, is_needed=is_needed)
            runs[k], measured[k] = found, replace(_both(own, other), is_final=is_last)
            if own.standard_error < _SOME and measured[k].standard_error < _WELL_KNOWN:
                enough.add(k)
        compared |= measured
        others = {k: one for k, one in compared.items() if one.is_final or k in measured}
        alive = [k for k in _not_hopeless(others, _HOPELESS) if k in measured]


def _overlooked(compared: Mapping[int, Compared]) -> list[int]:
    """Those dropped that had, of the same rows, more evidence than the best of the last round."""
    finals = [one for one in compared.values() if one.is_final]
    best = max((one.log_evidence for one in finals), default=np.inf)
    by_class = max((one.by_class[0] for one in finals if one.by_class), default=np.inf)
    return [
        k for k, one in compared.items()
        if finals and not one.is_final and one.n_rows == finals[0].n_rows
        and (one.log_evidence > best or (one.by_class is not None and one.by_class[0] > by_class))
    ]  # fmt: skip


def _both(run: Compared, other: Compared | None) -> Compared:
    """What a run and an approximation say together of the same rows: means by precision."""
    if other is None or other.n_rows != run.n_rows:
        return run
    own = run.log_evidence, run.standard_error
    value, error = _mean(*own, other.log_evidence, other.standard_error)
    by_class = None
    if run.by_class is not None and other.by_class is not None:
        by_class = _mean(*run.by_class, *other.by_class)
    return replace(
        run, log_evidence=value, standard_error=error, by_class=by_class,
        approximation=other.approximation,
    )  # fmt: skip


def _mean(one: float, error: float, two: float, error_of_two: float) -> tuple[float, float]:
    """That of a run and an approximation; of the run alone where they contradict each other."""
    is_known = np.isfinite(one) and error > 0.0 and np.isfinite(error_of_two)
    if not is_known or abs(one - two) > _CONTRADICTION * np.hypot(error, error_of_two):
        return one, error
    precision, other = error**-2.0, error_of_two**-2.0  # 0 where nothing is known
    return (precision * one + other * two) / (precision + other), (precision + other) ** -0.5


def _shown(one: Compared) -> Compared:
    """What an evidence that is not of the last round is good for."""
    error = np.nan if one.is_approximate else one.standard_error
    return one if one.is_final else replace(one, law=None, by_class=None, standard_error=error)


@dataclass(frozen=True)
class _Measuring:
    """What evidence is measured of; the arguments of `compare`."""

    labels: NDArray[np.int64]
    noise_of: Callable[[NDArray[np.int64]], LabelNoise]
    entropy: int
    deadline: float | None
    by_class: LabelNoise | None
    n_rows: int  # of all that it is about
    parts: dict[tuple[int, int], KernelSpace] = field(default_factory=dict)  # of fewer rows

    def approximate(self, candidate: Candidate, rows: NDArray[np.int64]) -> Compared | None:
        """Approximate the evidence on some rows; None if there is no time for it."""
        if is_late(self.deadline):
            return None
        L, variance = self._space(candidate, rows).smooth_rows()
        labels, n_classes = self.labels[rows], int(self.labels.max()) + 1
        noise, is_all = self.noise_of(rows), len(rows) == len(self.labels)
        if noise.n_classes > 2:
            each = [approximate_several(L, variance, noise, labels)]
        else:
            each = [
                approximate_evidence(signed_rows(L, (labels == c) * 1), variance, noise)
                for c in ([1] if n_classes == 2 else range(n_classes))
            ]
        error = _ERROR if candidate.nugget > 0.0 else _ERROR_WITHOUT_NUGGET
        (value, whole_error), found = _settled(each, error), None
        if self.by_class is not None:
            by_class = self._rates_by_class(rows)
            each.append(approximate_evidence(signed_rows(L, labels), variance, by_class, each[0]))
            found = _settled(each[1:], error)
        return Compared(
            candidate, value, whole_error, len(rows), False, None, found, is_approximate=True,
            approximation=(value, value if found is None else found[0]),
            found=tuple(each) if is_all and noise.prior and noise.n_classes == n_classes else (),
        )  # fmt: skip

    def run(
        self,
        candidate: Candidate,
        number: int,
        rows: NDArray[np.int64],
        tempering: Tempering,
        before: tuple[Climb, ...] | None,
    ) -> tuple[Climb, ...] | None:
        """Run a candidate, of several classes each, or go on; None if there is no time for it."""
        if is_late(self.deadline):
            return None
        try:
            if before is not None:
                return tuple(prolong(one, tempering.n_sweeps, self.deadline) for one in before)
            rng = stream(self.entropy, "evidence", 2 * number + (len(rows) < self.n_rows))
            L, n_classes = self._rows(candidate, rows), int(self.labels.max()) + 1
            prior = self.noise_of(rows).prior
            wanted = [1] if n_classes == 2 else range(n_classes)
            signed = (signed_rows(L, (self.labels[rows] == c) * 1) for c in wanted)
            return tuple(climb_errors(rng, own, tempering, self.deadline, prior) for own in signed)
        except OutOfTimeError:
            return None

    def evidence(
        self,
        candidate: Candidate,
        number: int,
        rows: NDArray[np.int64],
        runs: tuple[Climb, ...],
        tempering: Tempering,
        *,
        is_needed: bool,
    ) -> Compared:
        """What runs say of a candidate.

        Rates that differ, given or by class, are weighed by the draws of one rate, so that both
        have the same errors. Where hardly a draw counts they have a run if it ``is_needed``.
        """
        laws, noise = [one.law() for one in runs], self.noise_of(rows)
        rng = stream(self.entropy, "by class", number) if is_needed else None

        def weighed(other: LabelNoise) -> tuple[float, float]:
            found = runs[0].log_evidence(other)
            if rng is not None and not np.isfinite(found[1]):
                L = signed_rows(self._rows(candidate, rows), self.labels[rows])
                with contextlib.suppress(OutOfTimeError):
                    found = measure_noise(rng, L, other, tempering, self.deadline)
            return found

        if noise.is_common:
            each = np.array([law.log_evidence(noise) for law in laws])
        else:
            each = np.array([weighed(noise)])
        value, error = float(each[:, 0].sum()), float(np.linalg.norm(each[:, 1]))
        if len(laws) > 1:
            return Compared(candidate, value, error, len(rows), False, None)
        found = None if self.by_class is None else weighed(self._rates_by_class(rows))
        return Compared(candidate, value, error, len(rows), False, laws[0], found)

    def _rates_by_class(self, rows: NDArray[np.int64]) -> LabelNoise:
        assert self.by_class is not None
        assert self.by_class.prior is not None
        if len(rows) == len(self.labels):
            return self.by_class
        return learned_class_rates(self.by_class.prior, self.labels[rows])

    def _rows(self, candidate: Candidate, rows: NDArray[np.int64]) -> Array:
        return self._space(candidate, rows).design().L

    def _space(self, candidate: Candidate, rows: NDArray[np.int64]) -> Space:
        """That of some of the rows; nuggets of a kernel share its decomposition."""
        space = candidate.space
        if len(rows) == len(self.labels):
            return space
        if not isinstance(space, KernelSpace):
            return space.among(rows)
        plain = space.plain or space
        key = id(plain), len(rows)
        if key not in self.parts:
            self.parts[key] = plain.among(rows)
        return self.parts[key].with_nugget(candidate.nugget)


def _settled(each: Sequence[Approximation], error: float) -> tuple[float, float]:
    """Sum of log evidence with its error; one that did not come to rest may have any value."""
    if not all(one.is_settled for one in each):
        return -math.inf, math.inf
    return sum(one.log_evidence for one in each), error * math.sqrt(len(each))


def over_both_noises(compared: Sequence[Compared]) -> tuple[Compared, ...]:
    """With the evidence averaged over one noise rate and a rate for each class; the best first.

    One that was not measured with rates by class keeps the evidence of one. Errors add up: both
    evidences are of the same draws, as a rule.
    """
    changed = []
    for one in compared:
        if one.by_class is not None:
            errors = np.array([one.standard_error, one.by_class[1]])
            joint = _LOG_PRIOR + np.array([one.log_evidence, one.by_class[0]])
            value = float(np.logaddexp.reduce(joint))
            error = float(np.exp(joint - value) @ errors)
            one = replace(one, log_evidence=value, standard_error=error, one_rate=one.log_evidence)
        changed.append(one)
    return tuple(sorted(changed, key=_standing))


def say_restless(compared: Sequence[Compared]) -> tuple[str, ...]:
    """Say of which noise some of `over_both_noises` have no evidence: propagation never rested."""
    finals = [one for one in compared if one.is_final and one.is_approximate]
    both = [(one.one_rate, one.by_class[0]) for one in finals if one.by_class is not None]
    counts = [values.count(-math.inf) for values in zip(*both, strict=True)]
    words = "one noise rate", "a noise rate for each class"
    return tuple(
        f"with {what} expectation propagation came to no rest in {count} of {len(both)} models, "
        "which then have no share of the draws; sampler='auto' (up to 5000 rows) needs no rest"
        for what, count in zip(words, counts, strict=False)
        if count > 0
    )


def probabilities_by_noise(compared: Sequence[Compared]) -> Array:
    """Posterior probabilities (k, 2) of candidates under one noise rate and under one a class.

    Of those of `over_both_noises` that were run on all rows. Where there are none, one rate of the
    first.
    """
    weights = np.zeros((len(compared), 2))
    for j, one in enumerate(compared):
        if one.is_final and one.by_class is not None and one.one_rate is not None:
            weights[j] = one.one_rate, one.by_class[0]
            weights[j] += _LOG_PRIOR
        else:
            weights[j] = (one.log_evidence if one.is_final else -np.inf), -np.inf
    if not np.isfinite(weights).any():
        weights[0, 0] = 0.0
    weights = np.exp(weights - weights.max())
    return np.asarray(weights / weights.sum())


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


def probabilities(compared: Sequence[Compared]) -> Array:
    """Posterior probabilities (k,) of the candidates that were run on all rows.

    Where there are none, all to the first.
    """
    is_whole = np.array([c.is_final and c.log_evidence > -math.inf for c in compared])
    if not is_whole.any():
        return np.asarray([1.0] + [0.0] * (len(compared) - 1))
    log_evidence = np.where(is_whole, [c.log_evidence for c in compared], -np.inf)
    weights = np.exp(log_evidence - log_evidence.max())
    return np.asarray(weights / weights.sum())


def shares(probability: Array, rng: np.random.Generator, most: int = _MOST_USED) -> Array:
    """Shares of the draws of models from their probabilities, (k, 2) by noise.

    Without the least probable, 5 % in all. Where more than ``most`` (and six) are left, so many:
    those above a threshold keep their probability, the others have that of the threshold each and
    are drawn, systematically, so that every share is its probability on average: Fearnhead and
    Clifford (2003), section 4. The most probable alone would be those that fit best by chance.
    """
    p, most = probability.flatten(order="F"), min(most, _MOST_USED)
    order = np.argsort(p)
    p[order[np.cumsum(p[order]) < _LEFT_OUT]] = 0.0
    p /= p.sum()
    if np.count_nonzero(p) > most:
        falling = np.sort(p)[::-1][:most]
        thresholds = (1.0 - np.cumsum(falling) + falling) / np.arange(most, 0.0, -1.0)
        n_kept = int(np.argmax(falling <= thresholds))
        threshold, rest = thresholds[n_kept], np.where(p > thresholds[n_kept], 0.0, p)
        points = threshold * (rng.random() + np.arange(most - n_kept))
        drawn = np.searchsorted(np.cumsum(rest), points, side="right")
        p[rest > 0.0] = 0.0
        p[drawn] = threshold
    return np.asarray(p.reshape(probability.shape, order="F"))


def _screens(entropy: int, everything: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], float]]:
    """Rows for propagation, and how far behind is hopeless there."""
    n, screens = len(everything), []
    for size, limit in _SUBSETS:
        if n > size * 3 // 2:
            chosen = stream(entropy, "rows", 1).choice(everything, size, replace=False)
            screens.append((np.sort(chosen), limit))
    if n > _MOST_PROPAGATED:
        everything = stream(entropy, "rows", 4).choice(everything, _LAST_SUBSET_ROWS, replace=False)
    screens.append((np.sort(everything), _HOPELESS))
    return screens


def _standing(one: Compared) -> tuple[bool, int, bool, float]:
    """Order: those that came furthest first, by evidence."""
    return not one.is_final, -one.n_rows, one.is_approximate, -one.log_evidence


def _not_hopeless(compared: Mapping[int, Compared], limit: float) -> list[int]:
    """Those within reach of the best under one noise rate, or under one a class; the best first."""
    one_rate = {k: (one.log_evidence, one.standard_error) for k, one in compared.items()}
    by_class = {k: one.by_class for k, one in compared.items() if one.by_class is not None}
    gains = (value - one_rate[k][0] for k, (value, _) in by_class.items())
    gain = max(filter(math.isfinite, gains), default=-math.inf)
    best = max((value for value, _ in by_class.values()), default=-math.inf)
    for k in by_class:  # what is not known is that of one rate, and what others gain at most
        if by_class[k][0] == -math.inf:
            by_class[k] = min(one_rate[k][0] + gain, best), by_class[k][1]
    return list(dict.fromkeys([*_within_reach(one_rate, limit), *_within_reach(by_class, limit)]))


def _within_reach(evidence: Mapping[int, tuple[float, float]], limit: float) -> list[int]:
    """Those not behind the best by more than a limit and two standard errors, the best first.

    Those of which nothing is known, at -inf, come last.
    """
    order = sorted(evidence, key=lambda k: -evidence[k][0])
    kept = []
    for k in order:
        (value, error), (best, error_of_best) = evidence[k], evidence[order[0]]
        spread = float(np.hypot(error, error_of_best))
        if value == -np.inf or best - value <= limit + 2.0 * min(spread, limit):
            kept.append(k)
    return kept


# From the arguments ``kernel``, ``lengthscale``, ``nugget`` and ``rank`` to models to compare.

_NO_NUGGET = (
    "nugget 0: chains of finite features have none, and where classes overlap take labels for "
    "wrong; sampler='propagation' has one"
)
_AUTO_KERNELS = ("rbf", "matern32", "linear")
# Learned length scales, in median distances between rows.
_LENGTHSCALES = (0.25, 0.5, 1.0, 2.0, 4.0)
#: Features in the place of a kernel of more rows; half of them of more classes than a few.
FEATURES_OF_MANY = 512
_FEW_CLASSES, _MOST_OF_CHAINS = 4, 2000
MOST_PROPAGATED_CLASSES = 12  # of more, and of many rows, commands take chains


def settings_of_many(n: int, n_classes: int, noise_rate: Any = "learn") -> dict[str, Any]:
    """Features in place of a kernel, and no chains: those take ten minutes, or do not mix."""
    is_two, is_one_rate = n_classes == 2, noise_rate == "learn" or isinstance(noise_rate, float)
    is_several = 2 < n_classes <= MOST_PROPAGATED_CLASSES and is_one_rate
    if n <= (_MOST_OF_CHAINS if is_several else LARGEST_EXACT):
        return {}
    if not (is_two or is_several) or FEATURES_OF_MANY * n > LARGEST_PROPAGATED:
        return {"rank": FEATURES_OF_MANY}  # classes of rows on a disk are 0 here
    rank = FEATURES_OF_MANY if n_classes <= _FEW_CLASSES else FEATURES_OF_MANY // 2
    return {"rank": rank, "sampler": "propagation"}


def check_arguments(arguments: SpaceArguments) -> None:
    """Raise `UsageError` for the first one that is out of its range."""
    _check_kernel(arguments.kernel)
    _check_scale("lengthscale", arguments.lengthscale, (LEARN, MEDIAN), 0.0, is_open=True)
    _check_scale("nugget", arguments.nugget, (LEARN,), 0.0, is_open=False)
    check_choice("approximation", arguments.approximation, ("nystroem", "fourier"))
    check_choice("fit_intercept", arguments.fit_intercept, (True, False))
    if arguments.rank is not None:
        check_count("rank", arguments.rank, 1)
        if not arguments.may_have_rank:
            raise UsageError("rank needs a kernel of mercer, by name or as an object")


def _check_kernel(value: Any) -> None:
    if isinstance(value, str):
        if not set(value) & set("+*(["):
            return check_choice("kernel", value, (AUTO, PRECOMPUTED, *KERNELS))
        value = kernel_named(value)
    if isinstance(value, Kernel):
        if has_columns(value):
            raise UsageError(
                f"kernel {name_of_kernel(value)!r} looks at chosen inputs, and here there is one "
                "length scale for all of them; GPClassifier takes such kernels, or leave columns "
                "out of the table"
            )
        if not {each.kind for each in value.parameters()} <= {"variance", "weight"}:
            raise UsageError(
                f"kernel {name_of_kernel(value)!r} has more than variances and length scales: its "
                "parameters would not be learned here; GPClassifier learns them"
            )
    elif not callable(value):
        raise UsageError(f"kernel must be a name, a kernel or a callable; got {value!r}")
    return None


def _check_scale(
    name: str, value: Any, words: tuple[str, ...], lowest: float, *, is_open: bool
) -> None:
    if isinstance(value, str) and value in words:
        return
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not is_number or not np.isfinite(value) or value < lowest or (is_open and value == lowest):
        listed = ", ".join(repr(word) for word in words)
        bound = "above 0" if is_open else "of at least 0"
        raise UsageError(f"{name} must be {listed} or a number {bound}; got {value!r}")


def make_candidates(
    arguments: SpaceArguments, X: Array | StoredInputs, rng: np.random.Generator
) -> tuple[tuple[Candidate, ...], tuple[str, ...]]:
    """List the models that the checked arguments leave open, and what a user should be told.

    X holds standardised rows, or a Gram matrix; the generator draws landmarks and frequencies
    where there is a rank. A `DataError` where there are too many rows for an n x n matrix.
    """
    constant = 1.0 if arguments.fit_intercept and not arguments.is_precomputed else 0.0
    arguments.refuse_many(len(X))
    if arguments.is_finite:
        return _finite(arguments, X, constant, rng)
    assert isinstance(X, np.ndarray)
    nuggets, candidates = arguments.nuggets, list[Candidate]()
    for name, kernel in _kernels(arguments):
        for lengthscale in _lengthscales(arguments, kernel, X):
            if kernel is None:
                covariance = precomputed(X)
            else:
                covariance = fit_covariance(kernel, lengthscale, X, constant)
            space = KernelSpace(covariance, X, 0.0)
            candidates += [Candidate(name, lengthscale, k, space.with_nugget(k)) for k in nuggets]
    return tuple(candidates), ()


def _finite(
    arguments: SpaceArguments, X: Array | StoredInputs, constant: float, rng: np.random.Generator
) -> tuple[tuple[Candidate, ...], tuple[str, ...]]:
    nuggets, notes = arguments.nuggets, tuple[str, ...]()
    if not arguments.is_propagated and arguments.nugget not in (LEARN, 0.0):
        raise UsageError(
            "rank and a nugget exclude each other: a nugget makes every row a feature of the "
            "chains; sampler='propagation' takes both"
        )
    if not arguments.is_propagated:
        nuggets, notes = (0.0,), (_NO_NUGGET,) if arguments.nugget == LEARN else ()
    if arguments.is_linear:
        plain = FeatureSpace(FiniteFeatures.fitted(None, X, constant), X)
        linear = (Candidate("linear", None, k, replace(plain, nugget=k)) for k in nuggets)
        return tuple(linear), notes
    assert arguments.rank is not None
    ((name, kernel),) = _kernels(arguments)
    candidates = []
    for lengthscale in _lengthscales(arguments, kernel, X):
        theta = kernel_parameters(kernel, lengthscale, X)
        mapped: FeatureMap
        if arguments.approximation == "fourier":
            mapped = draw_fourier(rng, kernel, theta, X.shape[1], max(arguments.rank // 2, 1))
        else:
            mapped = fit_nystroem(rng, cast(Array, X), kernel, theta, arguments.rank)
        has_residual = arguments.is_propagated and arguments.approximation == "nystroem"
        own = FiniteFeatures.fitted(mapped, X, constant, has_residual=has_residual)
        plain = FeatureSpace(own, X)
        candidates += [Candidate(name, lengthscale, k, replace(plain, nugget=k)) for k in nuggets]
    return tuple(candidates), notes


def _kernels(arguments: SpaceArguments) -> list[tuple[str, Any]]:
    kernel = arguments.kernel
    if not isinstance(kernel, str):
        return [(_name(kernel), kernel)]
    if kernel == AUTO:
        return [(name, kernel_named(name)) for name in _AUTO_KERNELS]
    if kernel == PRECOMPUTED:
        return [(PRECOMPUTED, None)]
    return [(kernel, kernel_named(kernel))]


def _name(kernel: Kernel | Callable[..., Any]) -> str:
    if isinstance(kernel, Kernel):
        try:
            return name_of_kernel(kernel)
        except UsageError:
            return repr(kernel)
    return str(getattr(kernel, "__name__", type(kernel).__name__))


def _lengthscales(
    arguments: SpaceArguments, kernel: Any, X: Array | StoredInputs
) -> list[float | None]:
    has_lengthscale = isinstance(kernel, Kernel) and any(
        each.kind == "weight" for each in kernel.parameters()
    )
    if not has_lengthscale:
        return [None]
    if arguments.lengthscale == MEDIAN:
        return [median_distance(X)]
    if arguments.lengthscale == LEARN:
        median = median_distance(X)
        return [factor * median for factor in _LENGTHSCALES]
    return [float(arguments.lengthscale)]
