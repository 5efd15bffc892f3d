"""Averaging over kernels: a small set, compared on held-out rows, stacked, the best fitted.

**Scores** of a kernel: log predictive probabilities l_i (classes) or densities (numbers) of rows
that were held out, a fifth at a time, at the maximum given the others. Each search begins at the
maximum given all rows, so that it takes a few steps only; folds go on until 300 rows are scored,
and end early for a kernel that is far behind.

**Choice** [1]_: predictions are the mixture sum_k w_k p_k whose weights have the highest log score
sum_i log sum_k w_k exp(l_ik) on those rows. These weights are no probabilities of kernels: one
that is never the best alone has weight where it is right and others are wrong. The mixture begins
with the best kernel; the one that adds most is added while that is over a tenth of a nat, three at
most. Their weights have a Dirichlet(2, .., 2) prior, which is worth one row for each: that takes
kernels that 150 rows can hardly tell apart nearer to one another.

The searches go from simple to rich kernels, each from the maximum of a simpler one; where there are
many rows, on 300 of them first. Evidence is a worse guide [2]_: it hangs on the prior of each of
many length scales.

References
----------
.. [1] Y. Yao, A. Vehtari, D. Simpson and A. Gelman, Using stacking to average Bayesian predictive
   distributions, Bayesian Analysis 13 (2018).
.. [2] The same, section 2: evidence chooses among models of which one is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from mercer.errors import NumericalError, UsageError
from mercer.estimation.model_file import require
from mercer.gp.candidates import (
    MOST_WEIGHTS,
    Candidate,
    Terms,
    has_input_weights,
    is_simpler,
    kernels_of_categories,
    n_varying,
    plain_kernels,
    rank,
)
from mercer.gp.fitting import MOST_PARAMETERS, FittedGP
from mercer.gp.hyperparameters import (
    LARGEST_LOG,
    MANY_INPUTS,
    MOST_CLIMBS,
    NO_EVIDENCE,
    SEARCHING,
    HyperparameterTarget,
    Maximum,
    find_maximum,
    with_curvature,
)
from mercer.kernels.columns import categories_of, in_names
from mercer.kernels.names import kernel_named
from mercer.numerics.cholesky import covariance_root, one_blas_thread
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws, representatives, stacking_weights
from mercer.posterior.schema import check_arrays, draws_of
from mercer.random import stream
from mercer.sampling.driver import RunOptions
from mercer.sampling.signals import is_late, part_of_time

Array = NDArray[np.float64]

AUTO = "auto"
_MOST_CLIMBS = 4  # of the search for a sum, from the highest of its starts
_MOST_OF_HUNDREDS = 3  # of the search of a fold, with hundreds of inputs
_MOST_KEPT = 3
_NAMED = 3  # of those left out; the others are counted
_LEAST_GAIN = 0.1  # nats, of all held-out rows, that a further kernel adds to their log score
_LEAST_LIKELIER = 0.5  # nats that a richer kernel gains at the maximum, or it is passed over
# Kernels are first compared on so many rows, of numbers and of classes, where there are over a
# third more.
_FEW_ROWS, _FEW_ROWS_OF_CLASSES = 500, 300
_N_FOLDS, _HELD_OUT, _MOST_REPEATS = 5, 300, 4  # of few rows all are held out up to four times
_BEHIND, _BEHIND_FROM = 2.0, 2  # standard errors behind the best, after so many folds: the end
# Of log densities, relative: .01 nats are no matter. A fold's search begins at the maximum of all
# rows, and one that ended earlier would stay where the rows held out have put it.
_TOLERANCE, _FOLD_TOLERANCE = 1e-5, 1e-4

Few = tuple[NDArray[np.int64], Array]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class KernelTask:
    """What a comparison of kernels needs to know of an estimator and its rows.

    ``model_of`` goes from a kernel's name and some rows to the posterior of its hyperparameters
    given these; ``score`` from a name, its maximum given some rows, these and others to the log
    scores of the others, nats. ``fit`` draws for a kernel given all rows, from its maximum (None:
    it is searched for), with its share of the draws. ``y`` (n,) are targets, or codes of classes;
    there are ``d`` inputs, named by ``labels``, from the columns ``sources`` of a table.
    """

    model_of: Callable[[str, Rows], HyperparameterTarget]
    score: Callable[[str, Maximum, Rows, Rows], Array]
    fit: Callable[[str, RunOptions, Maximum | None, float], FittedGP]
    y: Array
    d: int
    is_classes: bool
    labels: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    def words(self, kernel: str) -> str:
        """Name a kernel by the names of the inputs that it looks at."""
        return words_of(kernel, self.labels, self.sources)

    def folds(self, rows: Rows, entropy: int) -> list[tuple[Rows, Rows]]:
        """Return rows that are kept and those held out, of each fold that is scored.

        Fifths of the rows at random, of classes with equal shares, until 300 are held out: of fewer
        rows several times.
        """
        n, rng, folds = len(rows), stream(entropy, "rows", 3), list[tuple[Rows, Rows]]()
        if n == 1:  # all rows were alike: nothing tells kernels apart
            return [(rows, rows)]
        n_folds = min(_N_FOLDS, n)
        n_scored = min(-(-_HELD_OUT * n_folds // n), _MOST_REPEATS * n_folds)
        while len(folds) < n_scored:
            order = rng.permutation(rows)
            if self.is_classes:
                order = order[np.argsort(self.y[order], kind="stable")]
            fold = np.arange(n) % n_folds
            folds += [(order[fold != k], order[fold == k]) for k in range(n_folds)]
        return folds[:n_scored]


@dataclass(frozen=True)
class KernelFit:
    """One kernel of a fitted model: its draws, and its weight in every prediction.

    ``log_evidence`` is that of importance sampling, or Laplace's at the maximum. ``few`` are the
    positions and weights of the draws that predict; None: all do. ``words`` are what the kernel is
    called where its inputs have names.
    """

    kernel: str
    weight: float
    log_evidence: float | None
    fitted: FittedGP
    few: Few | None = None
    words: str | None = None

    @property
    def name(self) -> str:
        """What a reader calls the kernel."""
        return self.words or self.kernel

    @property
    def predicting(self) -> Draws:
        """The draws that predict."""
        return self.fitted.draws if self.few is None else self.fitted.draws.chosen(*self.few)

    def share_of(self, most: int) -> int:
        """How many of so many draws of the mixture are this kernel's: a quarter at least."""
        return max(round(self.weight * most), most // 4)


@dataclass(frozen=True)
class AveragedGP:
    """A fit with several kernels, that of most weight first, and what is to be said of it."""

    fits: tuple[KernelFit, ...]
    notes: tuple[str, ...]

    @property
    def diagnostics(self) -> Diagnostics:
        """Those of the kernel of most weight, with the warnings of all."""
        first = self.fits[0].fitted.diagnostics
        if len(self.fits) == 1:
            return first
        warnings = tuple(
            f"{each.name}: {line}"
            for each in self.fits
            for line in each.fitted.diagnostics.warnings
        )
        return replace(first, warnings=warnings)


def words_of(kernel: str, labels: tuple[str, ...], sources: tuple[str, ...]) -> str:
    """Write a kernel with the names of the inputs that it looks at, where it does not see all."""
    return in_names(kernel_named(kernel), labels, sources) if "[" in kernel else kernel


def compare_kernels(
    task: KernelTask, rows: Rows, entropy: int, deadline: float | None = None
) -> tuple[Candidate, ...]:
    """Find the maximum of each kernel of the set given these rows, and score it by folds."""
    found: dict[Terms, Candidate] = {}
    d, folds = task.d, task.folds(rows, entropy)

    def search(terms: Terms, starts: Sequence[Array] = ()) -> None:
        if found and is_late(deadline):
            return
        others = tuple(found.values())
        candidate = _candidate(task, terms, rows, folds, starts, others, deadline)
        if candidate is not None:
            found[terms] = candidate

    n_levels = max((len(own) for _, own in categories_of(task.labels, task.sources)), default=0)
    n_classes = len(np.unique(task.y)) if task.is_classes else 0
    for terms, starts in plain_kernels(found, len(task.y), d, n_levels, n_classes):
        search(terms, starts)
    for terms, starts in kernels_of_categories(found, task.labels, task.sources):
        search(terms, starts)
    return tuple(found.values())


def choose_kernels(
    candidates: Sequence[Candidate], n_rows: int, most: int = _MOST_KEPT
) -> tuple[tuple[Candidate, ...], Array]:
    """Choose kernels for a mixture, and their stacking weights; the largest weight first.

    Of ``n_rows`` rows there may be more scores: they were held out repeatedly.
    """
    n_scored = max((len(each.scores) for each in candidates), default=0)
    known = [each for each in candidates if len(each.scores) == n_scored]  # the simple ones first
    if n_scored == 0:  # no time was left for folds: the simplest
        return tuple(known[:1]), np.ones(len(known[:1]))
    n_times = max(n_scored / n_rows, 1.0)
    scores = np.array([each.scores for each in known])
    chosen = [int(np.argmax(scores.sum(axis=1)))]
    now = float(scores[chosen[0]].sum())
    while len(chosen) < min(most, len(known)):
        tried = [[*chosen, k] for k in range(len(known)) if k not in chosen]
        gains = [stacking_weights(scores[each])[1] - now for each in tried]
        best = int(np.argmax(gains))
        if gains[best] < _LEAST_GAIN * n_times:
            break
        chosen, now = tried[best], now + gains[best]
    weights, _ = stacking_weights(scores[chosen], prior_rows=n_times)
    order = np.argsort(-weights, kind="stable")
    return tuple(known[chosen[k]] for k in order), weights[order]


def _candidate(
    task: KernelTask,
    terms: Terms,
    rows: Rows,
    folds: Sequence[tuple[Rows, Rows]],
    starts: Sequence[Array],
    others: tuple[Candidate, ...],
    deadline: float | None,
) -> Candidate | None:
    """Search for the maximum and score the kernel, unless a simpler one is as likely there.

    None where its density or its scores cannot be computed.
    """
    name = " + ".join(terms)
    try:
        model = task.model_of(name, rows)
        if task.d > MANY_INPUTS and has_input_weights(terms) and n_varying(terms) == 1:
            # From weights that are all alike few become large; of hundreds none.
            starts = (*(() if model.prior.share is not None else starts), *model.starts)
        simpler = [each.log_likelihood for each in others if is_simpler(each.terms, terms)]
        # Not roughly: on the plateau where a sum begins a climb of small steps seems to have ended.
        most = MOST_CLIMBS if n_varying(terms) == 1 else _MOST_CLIMBS
        maximum = find_maximum(
            model, starts=starts, most=most, deadline=deadline, tolerance=_TOLERANCE
        )
        point = maximum.point
        likelihood = point.log_density - model.prior.log_density(point.position)
        is_idle = likelihood < max(simpler, default=-np.inf) + _LEAST_LIKELIER
        scores = np.empty(0)
        if not is_idle:
            best = max((each.scores for each in others), key=rank, default=scores)
            scores = _held_out(task, terms, maximum, folds, best, deadline)
    except NumericalError:
        return None
    return Candidate(terms, maximum, likelihood, scores)


def _held_out(
    task: KernelTask,
    terms: Terms,
    maximum: Maximum,
    folds: Sequence[tuple[Rows, Rows]],
    best: Array,
    deadline: float | None,
) -> Array:
    """Log scores of held-out rows; of the first folds only where it falls behind, or is late.

    Each fold's search begins at the maximum of all rows; not where this has chosen among many
    inputs, for it did so with the rows held out. The levels of a category are one.
    """
    name, scores = " + ".join(terms), np.empty(0)
    has_chosen = len(set(task.sources)) > MANY_INPUTS and has_input_weights(terms)
    for kept, out in folds:
        if is_late(deadline):
            break
        model = task.model_of(name, kept)
        starts = model.starts if has_chosen else (maximum.point.position,)
        most = MOST_CLIMBS if model.prior.share is None else _MOST_OF_HUNDREDS
        own = find_maximum(
            model, deadline=deadline, starts=starts, tolerance=_FOLD_TOLERANCE, most=most
        )
        scores = np.concatenate([scores, task.score(name, own, kept, out)])
        if not np.isfinite(scores).all():
            raise NumericalError(f"the scores of {name} are not finite")
        if _BEHIND_FROM * len(out) <= len(scores) < len(best) and _is_behind(scores, best):
            break
    return scores


def _is_behind(scores: Array, best: Array) -> bool:
    """Whether a kernel is surely worse than the best, and a mixture with it, too."""
    best = best[: len(scores)]
    gap, mixture = best - scores, stacking_weights(np.array([best, scores]))[1]
    is_worse = gap.sum() >= _BEHIND * gap.std() * np.sqrt(len(gap))
    return bool(is_worse and mixture < best.sum() + _LEAST_GAIN)


# From a comparison to a fit: the kernels that were chosen, their weights, what is said of it.


def fit_kernels(task: KernelTask, few: Rows | None, options: RunOptions) -> AveragedGP:
    """Compare the kernels of the set, and fit those that the mixture takes.

    ``few`` are those of many rows on which most kernels are ruled out; None: all. A
    `NumericalError` if no kernel's density and scores can be computed.
    """
    deadline, rows = options.deadline_before_chains(SEARCHING), np.arange(len(task.y))
    with one_blas_thread():
        compared = compare_kernels(task, rows if few is None else few, options.entropy, deadline)
        candidates = compared
        if few is not None:
            chosen, _ = choose_kernels(compared, len(few))
            candidates = _compare_again(task, compared, chosen, options.entropy, deadline)
        chosen, weights = choose_kernels(candidates, len(rows))
        if not chosen:
            raise NumericalError(NO_EVIDENCE)
        curved = [_curved(task, each, deadline) for each in chosen]
    fits = []
    for candidate, weight, own in zip(curved, weights, _shares(options, weights), strict=True):
        fitted = task.fit(candidate.name, own, candidate.maximum, float(weight))
        evidence = None if fitted.evidence is None else fitted.evidence[0]
        if evidence is None and candidate.maximum.covariance is not None:
            evidence = candidate.maximum.log_evidence(task.model_of(candidate.name, rows).prior)
        words = task.words(candidate.name)
        fits.append(KernelFit(candidate.name, float(weight), evidence, fitted, words=words))
    notes = [
        _say_chosen(fits, len(chosen[0].scores)),
        *_say_left_out(task, chosen, weights, compared, candidates),
    ]
    if few is not None:
        notes.append(f"kernels were first compared on {len(few)} of the rows")
    if is_late(deadline):
        notes.append("max_seconds cut the comparison of kernels short")
    return AveragedGP(tuple(fits), (*notes, *_notes_of(fits)))


def _shares(options: RunOptions, weights: Array) -> Iterator[RunOptions]:
    """Options of each kernel's fit: its part of the time left, and chains of its own."""
    for i, weight in enumerate(weights):
        share = float(weight / weights[i:].sum())
        deadline = part_of_time(options.deadline, share)
        yield replace(options, deadline=deadline, first_chain=i * options.n_chains)


def few_rows(n: int, *, is_classes: bool) -> int | None:
    """How many of n rows kernels are first compared on; None: on all at once."""
    few = _FEW_ROWS_OF_CLASSES if is_classes else _FEW_ROWS
    return few if 3 * n > 4 * few else None


def _compare_again(
    task: KernelTask,
    compared: tuple[Candidate, ...],
    chosen: tuple[Candidate, ...],
    entropy: int,
    deadline: float | None,
) -> tuple[Candidate, ...]:
    """Search on all rows, from the maxima on a few, for the kernels ``chosen`` by these."""
    again_of = list(chosen)
    weighted = [each for each in compared if has_input_weights(each.terms)]
    if weighted and not any(has_input_weights(each.terms) for each in chosen):
        # The best of them: more rows may tell inputs apart.
        again_of.append(max(weighted, key=lambda each: rank(each.scores)))
    rows = np.arange(len(task.y))
    folds, again = task.folds(rows, entropy), list[Candidate]()
    for each in again_of:
        if again and is_late(deadline):
            break
        start = (each.maximum.point.position,)
        found = _candidate(task, each.terms, rows, folds, start, tuple(again), deadline)
        if found is not None:
            again.append(found)
    return tuple(again)


def _curved(task: KernelTask, candidate: Candidate, deadline: float | None) -> Candidate:
    """Return a candidate with the curvature at its maximum, unless time is over.

    Not of so many parameters that a fit looks at few of them.
    """
    if len(candidate.maximum.point.position) > MOST_PARAMETERS:
        return candidate
    rows = np.arange(len(task.y))
    maximum = with_curvature(task.model_of(candidate.name, rows), candidate.maximum, deadline)
    return candidate if maximum.covariance is None else replace(candidate, maximum=maximum)


def _say_chosen(fits: Sequence[KernelFit], n_scored: int) -> str:
    parts = [f"{each.name} {100.0 * each.weight:.0f} %" for each in fits]
    scored = f"{n_scored} predictions of rows held out among those it learned from"
    return f"kernels stacked by the log score of {scored}: {', '.join(parts)}"


def _say_left_out(
    task: KernelTask,
    chosen: tuple[Candidate, ...],
    weights: Array,
    compared: tuple[Candidate, ...],
    candidates: tuple[Candidate, ...],
) -> Iterator[str]:
    """Name the nearest of the kernels left out and how far behind they are; count the others."""
    if task.d > MOST_WEIGHTS and not any(has_input_weights(each.terms) for each in compared):
        yield f"no kernel with a weight for each of {task.d} inputs was compared, such as 'rbf'"
    names = [each.name for each in chosen]
    gaps: dict[str, float] = {}
    for several in (compared, candidates):  # on a few rows, and of some kernels on all
        whole = {each.name: each.scores for each in several if len(each.scores) > 0}
        kept = [(w, whole[name]) for name, w in zip(names, weights, strict=True) if name in whole]
        if kept:
            shares = np.array([[w] for w, _ in kept])
            shortest = min(len(each) for _, each in kept)
            own = [each[:shortest] for _, each in kept]
            mixture = logsumexp(own, axis=0, b=shares / shares.sum())
            for name, scores in whole.items():
                m = min(len(scores), shortest)
                gaps[name] = float((mixture[:m] - scores[:m]).mean())
    left = sorted((gap, name) for name, gap in gaps.items() if name not in names)
    idle = [each for each in compared if each.name not in names and not len(each.scores)]
    if not left and not idle:
        return
    # One may be above: few rows ruled it out, or time was over before its last.
    said = [
        f"{task.words(name)} {abs(gap):.3f}{' above' * (gap < -5e-4)}"
        for gap, name in left[:_NAMED]
    ]
    unit = " (nats a held-out row below the rest)" if said else ""
    if any(part.endswith("above") for part in said):
        unit = f"{unit[:-1]}; above: the first rows ruled it out, or time was over)"
    if len(left) > _NAMED:
        said.append(f"{len(left) - _NAMED} further behind")
    if idle:
        said.append(f"{len(idle)} at their maximum as likely as a simpler one")
    yield f"kernels left out{unit}: {', '.join(said)}"


def _notes_of(fits: Sequence[KernelFit]) -> tuple[str, ...]:
    """Join the notes of all fits: said once if it is true of all, else with the kernel's name."""
    together: dict[str, list[str]] = {}
    for each in fits:
        for note in each.fitted.notes:
            together.setdefault(note, []).append(each.name)
    return tuple(
        note if len(names) == len(fits) else f"{', '.join(names)}: {note}"
        for note, names in together.items()
    )


# Of the draws of all kernels: the mixture that they make, and the checks of those from a file.


def mixed_moments(
    weights: Sequence[float], moments: Sequence[tuple[Array, Array]]
) -> tuple[Array, Array]:
    """Mean and variance of a mixture of laws with these weights, means and variances."""
    total = sum(w * mean for w, (mean, _) in zip(weights, moments, strict=True))
    spread = sum(
        w * (variance + (mean - total) ** 2)
        for w, (mean, variance) in zip(weights, moments, strict=True)
    )
    return np.asarray(total), np.asarray(spread)


_HYPERPARAMETERS: Final = 16  # draws of them that whole functions are drawn from


class JointDraws(Protocol):
    """Draws that say how values of f at new rows go together: `ClassDraws`, or of numbers."""

    @property
    def theta(self) -> Array:
        """Log parameters, one entry a draw."""
        ...

    @property
    def weights(self) -> Array | None:
        """Of the draws, shape (S,), any sum; None where all count alike."""
        ...

    def joint(self, i: int, X: Array) -> tuple[Array, Array]:
        """Mean (k m,) and covariance of k functions at rows X (m, d), by draw ``i``."""
        ...


def sample_functions(
    draws: Sequence[JointDraws],
    weights: Sequence[float],
    parts: Sequence[Array],
    n_draws: int,
    rng: np.random.Generator,
) -> list[Array]:
    """Draw f at parts of rows X (m, d), shape (n_draws, k m) each.

    ``draws`` are those of each kernel, ``weights`` the kernels'. Sixteen draws of the
    hyperparameters at most are met, by systematic resampling; parts are independent given these.
    """
    pairs: list[tuple[JointDraws, int]] = []
    shares: list[float] = []
    for own, weight in zip(draws, weights, strict=True):
        each = np.ones(len(own.theta)) if own.weights is None else own.weights
        pairs += [(own, i) for i in range(len(each))]
        shares += (weight * each / each.sum()).tolist()
    n_met = min(_HYPERPARAMETERS, n_draws)
    at = (rng.random() + np.arange(n_met)) / n_met
    met = np.minimum(np.searchsorted(np.cumsum(shares), at), len(pairs) - 1)
    sizes = np.bincount(np.arange(n_draws) * n_met // n_draws)
    counts = np.bincount(met, sizes).astype(np.int64)
    found: list[list[Array]] = [[] for _ in parts]
    with one_blas_thread():
        for j in np.flatnonzero(counts):
            own, i = pairs[j]
            for values, X in zip(found, parts, strict=True):
                mean, covariance = own.joint(i, X)
                noise = rng.standard_normal((counts[j], len(mean)))
                values.append(mean + noise @ covariance_root(covariance).T)
    return [np.concatenate(values) for values in found]


def check_draws(
    draws: Draws, shapes: Mapping[str, tuple[int, ...]], log_parameters: tuple[str, ...]
) -> None:
    """Raise ValueError unless these are all, finite, of their shapes, log parameters in range."""
    require(set(draws.variables) <= {*shapes, "latent"}, "names of draws")
    own = {name: shape for name, shape in shapes.items() if name in log_parameters}
    arrays = {f"draws/{name}": values for name, values in draws.variables.items()}
    check_arrays(arrays, draws_of(shapes) | draws_of(own, -LARGEST_LOG, LARGEST_LOG), {})


# The rows that teach the hyperparameters, and those through which functions are given all.


def stratified_rows(
    y: NDArray[np.float64], limit: int, rng: np.random.Generator, *, is_classes: bool
) -> NDArray[np.int64]:
    """Choose ``limit`` of more rows at random, stratified by their targets or classes y (n,).

    Each class keeps its share of the rows, to the next whole number, and one row at least; of
    numbers one row is taken from each of ``limit`` strata between quantiles. Returns positions,
    ascending. A `UsageError` where there are more classes than half of ``limit``.
    """
    order = rng.permutation(len(y))
    if not is_classes:
        order = order[np.argsort(y[order], kind="stable")]
        strata = np.array_split(order, limit)
        return np.sort(np.array([rng.choice(stratum) for stratum in strata]))
    classes, code, counts = np.unique(y[order], return_inverse=True, return_counts=True)
    if len(classes) > limit // 2:
        raise UsageError(f"max_rows={limit} is too few for {len(classes)} classes: take twice")
    share = limit * counts / len(y)
    taken = np.maximum(np.floor(share), 1.0).astype(np.int64)
    while taken.sum() < limit:
        taken[np.argmax(share - taken)] += 1
    while taken.sum() > limit:
        taken[np.argmax(np.where(taken > 1, taken - share, -np.inf))] -= 1
    return np.sort(np.concatenate([order[code == k][: taken[k]] for k in range(len(classes))]))


def choose_inducing(
    n: int, fitted: NDArray[np.int64], wanted: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Choose ``wanted`` of n rows, or all: the ``fitted`` first, then any others, at random."""
    others = np.setdiff1d(np.arange(n), fitted)
    return np.sort(np.concatenate([rng.permutation(fitted), rng.permutation(others)])[:wanted])


# The few draws that predict.

MOST_FEW, _LEAST_FEW = 80, 40
AT_A_GLANCE = 8  # for the thousands of predictions that a report is made of
_SEEN, _JUDGING = 160, 96  # points near rows that the choice looks at, and others that judge it
_SAFETY = 2.0  # of the difference at the points that judge
_NOTHING = 1e-5  # no smaller difference is stated: points of one input may all lie close
_WEIGHT_OF_PARAMETERS = 3.0  # their spread as features, in units of that of predictions


def choose_few(
    X: Array,
    weights: Array,
    at_rows: Array,
    predict: Callable[[Array], Array],
    parameters: Array,
    most: int = MOST_FEW,
) -> tuple[Few, float] | None:
    """Choose the draws that predict, so that their averages agree with those of all.

    ``X`` (n, d) are standardised training rows, ``weights`` (N,) those of all draws, with sum 1,
    ``at_rows`` (N, k) what each draw predicts at the training rows, and ``predict`` what at others
    (m, d): (N, m) or (N, m C). ``parameters`` (N, p) are log parameters: what draws predict far
    from all rows, and how surely, goes with these.

    Returns positions and weights of ``most`` draws, and the difference between their average
    prediction and that of all: at points halfway between two training rows, or up to as far beyond,
    which the choice has not seen, it is at most half of it. None where there are no more draws than
    that. ``most`` is half of their number if that is less, but not below 40.
    """
    most = min(most, max(len(weights) // 2, _LEAST_FEW))
    if len(weights) <= most:
        return None
    rng = np.random.default_rng(0)  # the same pairs always
    n_pool = _SEEN + _JUDGING
    first, second = rng.integers(len(X), size=(2, n_pool))
    share = rng.choice([0.5, -0.5, -1.0], size=(n_pool, 1))  # of the way: between, or beyond
    at_pool = predict(X[first] + share * (X[second] - X[first])).reshape(len(weights), n_pool, -1)
    judged = at_pool[:, _SEEN:].reshape(len(weights), -1)
    seen = np.hstack([at_rows, at_pool[:, :_SEEN].reshape(len(weights), -1)])
    spread = np.sqrt(weights @ np.square(seen - weights @ seen)).mean()
    centred = parameters - weights @ parameters
    std = np.sqrt(weights @ np.square(centred))
    units = centred / np.where(std > 0.0, std, 1.0) * spread
    features = np.hstack([seen, _WEIGHT_OF_PARAMETERS * units, units * units])
    few = representatives(features, weights, most)
    largest = float(np.abs(few[1] @ judged[few[0]] - weights @ judged).max())
    return few, max(_SAFETY * largest, _NOTHING)


def with_few(
    averaged: AveragedGP,
    choose: Callable[[KernelFit], tuple[Few, float] | None],
    unit: str,
    *,
    is_induced: bool = False,
) -> AveragedGP:
    """Choose the draws of each kernel that predict, and say how closely they agree with all.

    ``choose`` goes from a kernel's fit to what `choose_few` returns; ``unit`` is the format of the
    difference. Where ``is_induced`` these draws are then conditioned on more rows, and no others
    can be asked.
    """
    pairs = [(each, choose(each)) for each in averaged.fits]
    fits = tuple(each if few is None else replace(each, few=few[0]) for each, few in pairs)
    taken = [each.weight * few[1] for each, few in pairs if few is not None]
    if not taken:
        return averaged
    n_few = sum(each.predicting.n_total for each in fits)
    n_total = sum(each.fitted.draws.n_total for each in fits)
    of_kernels = f" of {len(fits)} kernels" if len(fits) > 1 else ""
    note = (
        f"predictions average over {n_few} of {n_total} draws{of_kernels}, weighted so as to agree "
        f"with all: largest difference about {unit.format(sum(taken))}"
    ) + (" given the fitted rows alone" if is_induced else '; n_draws="all" takes all')
    return replace(averaged, fits=fits, notes=(*averaged.notes, note))
