"""Averaging over kernels: a small set, compared by evidence, the probable ones fitted and weighted.

**Evidence** of a kernel, hyperparameters integrated out, by Laplace at the maximum, where the prior
is a proper density and Sigma the inverse of the negative Hessian:

    log Z = log p(y, theta) + p/2 log 2 pi + 1/2 log|Sigma| .

As Sigma is no wider than the prior, log Z is at most the log density without the prior's constant:
kernels whose maximum is hopeless, or no higher than that of a simpler kernel, need no Hessian.

**Choice**: Occam's window [1]_: no kernel that is a hundred times less probable than the best, none
that is less probable than a simpler case of itself, three at most. The searches go from simple to
rich kernels, each from the maximum of a simpler one; where there are many rows, on 300 of them
first.

References
----------
.. [1] D. Madigan and A. E. Raftery, Model selection and accounting for model uncertainty in
   graphical models using Occam's window, JASA 89 (1994).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from mercer.errors import NumericalError
from mercer.estimation.model_file import require
from mercer.gp.fitting import FittedGP
from mercer.gp.hyperparameters import (
    LARGEST_LOG,
    NO_EVIDENCE,
    SEARCHING,
    HyperparameterTarget,
    Maximum,
    find_maximum,
    with_curvature,
)
from mercer.kernels.names import kernel_named
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws, representatives
from mercer.posterior.schema import check_arrays, draws_of
from mercer.sampling.driver import RunOptions, is_late, part_of_time

__all__ = [
    "AUTO",
    "AveragedGP",
    "Candidate",
    "Few",
    "KernelFit",
    "check_draws",
    "choose_few",
    "choose_kernels",
    "compare_kernels",
    "few_rows",
    "fit_kernels",
    "mixed_moments",
    "with_few",
]

Array = NDArray[np.float64]

AUTO = "auto"
_FAMILIES = ("rbf", "matern52")
_LINEAR = "linear"
_WINDOW = 4.6  # nats: a hundredth
_MOST_KEPT = 3
_LEAST_GAIN = 0.5  # nats of log density that a richer kernel gains, or it is passed over
_FEW_ROWS = 300  # kernels are first compared on so many rows, where there are over a third more
_FEW_WINDOW, _FEW_MARGIN, _FEW_KEPT = 9.2, 2.3, 4  # of that first comparison

Terms = tuple[str, ...]
Few = tuple[NDArray[np.int64], Array]
ModelOf = Callable[[str], HyperparameterTarget]


@dataclass(frozen=True)
class Candidate:
    """A kernel that was compared with others.

    Attributes
    ----------
    terms : tuple of str
        What it is the sum of.
    maximum : Maximum
    log_evidence : float
        Laplace's, with the hyperparameters integrated out, nats; where ``is_bound`` no more is
        known than that it is not larger.
    is_bound : bool
    """

    terms: Terms
    maximum: Maximum
    log_evidence: float
    is_bound: bool = False

    @property
    def name(self) -> str:
        """The expression that names the kernel."""
        return " + ".join(self.terms)


@dataclass(frozen=True)
class KernelFit:
    """One kernel of a fitted model: its draws, and its weight in every prediction.

    ``few`` are the positions and weights of the draws that predict; None: all do.
    """

    kernel: str
    weight: float
    log_evidence: float | None
    fitted: FittedGP
    few: Few | None = None

    @property
    def predicting(self) -> Draws:
        """The draws that predict."""
        return self.fitted.draws if self.few is None else self.fitted.draws.chosen(*self.few)


@dataclass(frozen=True)
class AveragedGP:
    """A fit with several kernels, the most probable first, and what is to be said of it.

    Attributes
    ----------
    fits : tuple of KernelFit
    notes : tuple of str
    weighted : Candidate or None
        The best kernel with a weight per input, if none of the fits has one.
    """

    fits: tuple[KernelFit, ...]
    notes: tuple[str, ...]
    weighted: Candidate | None = None

    @property
    def diagnostics(self) -> Diagnostics:
        """Those of the most probable kernel, with the warnings of all."""
        first = self.fits[0].fitted.diagnostics
        if len(self.fits) == 1:
            return first
        warnings = tuple(
            f"{each.kernel}: {line}"
            for each in self.fits
            for line in each.fitted.diagnostics.warnings
        )
        return replace(first, warnings=warnings)


def isotropic(family: str) -> str:
    """Name the kernel of that family with one weight for all inputs."""
    return f"isotropic({family})"


def has_input_weights(terms: Terms) -> bool:
    """Whether a kernel has a weight per input."""
    return any(family in terms for family in _FAMILIES)


def is_simpler(one: Terms, other: Terms) -> bool:
    """Whether each term of one kernel is a case of a term of its own of the other, richer one."""
    if one == other:
        return False
    left = list(other)
    for term in sorted(one, key=lambda term: term not in other):
        inner = term.removeprefix("isotropic(").removesuffix(")")
        case_of = next((each for each in (term, inner) if each in left), None)
        if case_of is None:
            return False
        left.remove(case_of)
    return True


def compare_kernels(
    model_of: ModelOf, d: int, deadline: float | None = None
) -> tuple[Candidate, ...]:
    """Find the maximum of each kernel of the set for d inputs, and its evidence where needed."""
    found: dict[Terms, Candidate] = {}

    def search(terms: Terms, starts: Sequence[Array] = ()) -> None:
        if found and is_late(deadline):
            return
        candidate = _candidate(model_of, terms, starts, tuple(found.values()), deadline)
        if candidate is not None:
            found[terms] = candidate

    singles = [isotropic(family) for family in _FAMILIES] if d > 1 else list(_FAMILIES)
    for term in singles:
        search((term,), [each.maximum.point.position for each in found.values()][:1])
    if d > 1:
        for family in _FAMILIES:
            search((family,), _starts(found, d, (isotropic(family),), _one_weight_each))
        for family in _FAMILIES:
            simple = (isotropic(family),)
            search((*simple, family), _starts(found, d, simple, _halves, (family,)))
    for base in choose_kernels(tuple(found.values())):
        search((*base.terms, _LINEAR), _starts(found, d, base.terms, _with_linear))
    return tuple(found.values())


def choose_kernels(
    candidates: Sequence[Candidate],
    window: float = _WINDOW,
    margin: float = 0.0,
    most: int = _MOST_KEPT,
) -> tuple[Candidate, ...]:
    """Occam's window: see above; the most probable kernel first."""
    known = sorted((c for c in candidates if not c.is_bound), key=lambda c: -c.log_evidence)
    kept = [
        c
        for c in known
        if c.log_evidence > known[0].log_evidence - window
        and not any(
            is_simpler(other.terms, c.terms) and other.log_evidence >= c.log_evidence + margin
            for other in known
        )
    ]
    return tuple(kept[:most])


def _candidate(
    model_of: ModelOf,
    terms: Terms,
    starts: Sequence[Array],
    others: tuple[Candidate, ...],
    deadline: float | None,
) -> Candidate | None:
    """Search for the maximum, and compute the evidence unless a bound of it is enough.

    None where the evidence cannot be computed at all.
    """
    model = model_of(" + ".join(terms))
    try:
        maximum = find_maximum(model, with_covariance=False, deadline=deadline, starts=starts)
    except NumericalError:
        return None
    highest = maximum.point.log_density
    known = [other.log_evidence for other in others if not other.is_bound]
    is_hopeless = bool(known) and highest < max(known) - _FEW_WINDOW
    is_idle = any(
        is_simpler(other.terms, terms) and highest < other.maximum.point.log_density + _LEAST_GAIN
        for other in others
    )
    if not (is_hopeless or is_idle):
        maximum = with_curvature(model, maximum, deadline)
    if maximum.covariance is None:
        return Candidate(terms, maximum, highest, is_bound=bool(known))
    log_det = np.linalg.slogdet(maximum.covariance)[1]
    evidence = highest + 0.5 * log_det - np.log(model.prior.std).sum()
    return Candidate(terms, maximum, float(evidence))


# Starts of a search from the maxima of simpler kernels. Parts of theta: a block (m, size) a term,
# of m kernels (one for each class, or one), and what comes after them: the noise of a regressor.

Parts = list[Array]


def _starts(
    found: Mapping[Terms, Candidate],
    d: int,
    base: Terms,
    change: Callable[[Parts, Parts | None, int], Parts],
    other: Terms = (),
) -> tuple[Array, ...]:
    """Return theta of the maximum of ``base`` changed into that of a richer kernel."""
    if base not in found:
        return ()
    parts, rest = _split(found[base], d)
    second = _split(found[other], d)[0] if other in found else None
    blocks = np.concatenate(change(parts, second, d), axis=1)
    return (np.concatenate((blocks.ravel(), rest)),)


def _split(candidate: Candidate, d: int) -> tuple[Parts, Array]:
    kernels = [kernel_named(term) for term in candidate.terms]
    sizes = [kernel.n_parameters(d) for kernel in kernels]
    theta, p = candidate.maximum.point.position, sum(sizes)
    m = max(len(theta) // p, 1)
    return np.split(theta[: m * p].reshape(m, p), np.cumsum(sizes)[:-1], axis=1), theta[m * p :]


def _one_weight_each(parts: Parts, _: Parts | None, d: int) -> Parts:
    variance, weight = parts[0][:, :1], parts[0][:, 1:]
    return [variance, np.repeat(weight, d, axis=1)]


def _halves(parts: Parts, others: Parts | None, d: int) -> Parts:
    own = others[0] if others is not None else np.hstack(_one_weight_each(parts, None, d))
    halved = [parts[0].copy(), own.copy()]
    for part in halved:
        part[:, 0] -= np.log(2.0)
    return halved


def _with_linear(parts: Parts, _: Parts | None, d: int) -> Parts:
    return [*parts, np.full((len(parts[0]), 1), -np.log(d))]


# From a comparison to a fit: the kernels that were chosen, their weights, what is said of it.

Fit = Callable[[str, RunOptions, Maximum], FittedGP]


def fit_kernels(
    model_of: ModelOf, few_of: ModelOf | None, fit: Fit, options: RunOptions, d: int
) -> AveragedGP:
    """Compare the kernels of the set for d inputs, and fit those that are probable.

    Parameters
    ----------
    model_of : callable
        From a kernel's name to the posterior of its hyperparameters on all rows.
    few_of : callable or None
        The same on a few of many rows, on which most kernels are ruled out.
    fit : callable
        Draws for the kernel of that name, from its maximum.
    options : RunOptions
    d : int

    Raises
    ------
    NumericalError
        If the evidence of no kernel can be computed.
    SamplingStoppedError
        As in `fit_posterior`.
    """
    deadline = options.deadline_before_chains(SEARCHING)
    with threadpool_limits(limits=1, user_api="blas"):
        compared = compare_kernels(few_of or model_of, d, deadline)
        candidates = compared
        if few_of is not None:
            candidates = _compare_again(model_of, compared, deadline)
    chosen = choose_kernels(candidates)
    if not chosen:
        raise NumericalError(NO_EVIDENCE)
    weighted = None
    if not any(has_input_weights(each.terms) for each in chosen):
        weighted = _best_weighted(candidates)
        if weighted is not None and weighted.maximum.covariance is None:
            with threadpool_limits(limits=1, user_api="blas"):
                maximum = with_curvature(model_of(weighted.name), weighted.maximum, deadline)
            weighted = None if maximum.covariance is None else replace(weighted, maximum=maximum)
    laplace = [each.log_evidence for each in chosen]
    fits = []
    for i, (candidate, weight) in enumerate(zip(chosen, softmax(laplace), strict=True)):
        own = replace(
            options,
            deadline=part_of_time(options.deadline, weight / softmax(laplace)[i:].sum()),
            first_chain=i * options.n_chains,
        )
        fitted = fit(candidate.name, own, candidate.maximum)
        fits.append(KernelFit(candidate.name, weight, candidate.log_evidence, fitted))
    fits, how = _weighted(fits)
    notes = [_say_chosen(fits, how), *_say_left_out(chosen, candidates, compared)]
    if few_of is not None:
        notes.append(f"kernels were first compared on {_FEW_ROWS} of the rows")
    if weighted is not None:
        notes.append(
            "the kernels that were kept weigh all inputs alike: relevance_ is that of "
            f"{weighted.name}, from the curvature at its maximum"
        )
    if is_late(deadline):
        notes.append("max_seconds cut the comparison of kernels short")
    return AveragedGP(tuple(fits), (*notes, *_notes_of(fits)), weighted)


def few_rows(n: int) -> int | None:
    """How many of n rows kernels are first compared on; None: on all at once."""
    return _FEW_ROWS if 3 * n > 4 * _FEW_ROWS else None


def _compare_again(
    model_of: ModelOf, compared: tuple[Candidate, ...], deadline: float | None
) -> tuple[Candidate, ...]:
    """Search on all rows, from the maxima on a few, for the kernels that are not ruled out."""
    chosen = choose_kernels(compared, _FEW_WINDOW, _FEW_MARGIN, _FEW_KEPT)
    weighted = _best_weighted(compared)
    if weighted is not None and not any(has_input_weights(each.terms) for each in chosen):
        chosen = (*chosen, weighted)
    again: list[Candidate] = []
    for each in chosen:
        if again and is_late(deadline):
            break
        start = each.maximum.point.position
        found = _candidate(model_of, each.terms, (start,), tuple(again), deadline)
        if found is not None:
            again.append(found)
    return tuple(again)


def _best_weighted(candidates: tuple[Candidate, ...]) -> Candidate | None:
    """Return the most probable of the kernels with a weight per input; bounds are the last."""
    ranked = [c for c in candidates if has_input_weights(c.terms)]
    return max(ranked, key=lambda c: (not c.is_bound, c.log_evidence), default=None)


def _weighted(fits: list[KernelFit]) -> tuple[list[KernelFit], str]:
    """Weigh the kernels by their evidence, the most probable first; and say what evidence it is.

    That of importance sampling where all have it, and Laplace's of all where one has not: chains
    give none.
    """
    sampled = [
        each.fitted.evidence
        for each in fits
        if each.fitted.evidence is not None and each.fitted.draws.is_weighted
    ]
    how, evidences = "Laplace's, at the maximum", [each.log_evidence for each in fits]
    if len(sampled) == len(fits):
        error = max(se for _, se in sampled)
        how = f"importance sampling, standard error {error:.2f} nats"
        evidences = [evidence for evidence, _ in sampled]
    weights = softmax(np.array(evidences, dtype=np.float64))
    pairs = zip(fits, weights, evidences, strict=True)
    again = [replace(f, weight=float(w), log_evidence=z) for f, w, z in pairs]
    return sorted(again, key=lambda each: -each.weight), how


def _say_chosen(fits: Sequence[KernelFit], how: str) -> str:
    parts = [f"{each.kernel} {100.0 * each.weight:.0f} %" for each in fits]
    return f"kernels by their evidence ({how}): {', '.join(parts)}"


def _say_left_out(
    chosen: tuple[Candidate, ...],
    candidates: tuple[Candidate, ...],
    compared: tuple[Candidate, ...],
) -> Iterator[str]:
    """Name the kernels that were compared and left out, and how far they are below the best."""
    names = {each.name for each in chosen}
    whole = {each.name: each for each in candidates}
    left = [whole.get(each.name, each) for each in compared if each.name not in names]
    best = chosen[0].log_evidence
    first = max((c.log_evidence for c in compared if not c.is_bound), default=best)

    def gap(each: Candidate) -> float:
        return (best if each.name in whole else first) - each.log_evidence

    known = sorted((c for c in left if not c.is_bound), key=gap)
    if known:
        parts = [f"{each.name} {gap(each):.1f}" for each in known]
        yield f"kernels left out, with nats of evidence below the best: {', '.join(parts)}"
    rest = [each.name for each in left if each.is_bound]
    if rest:
        yield (
            "kernels left out at their maximum, hopeless or no better than a simpler one: "
            + ", ".join(rest)
        )


def _notes_of(fits: Sequence[KernelFit]) -> tuple[str, ...]:
    """Join the notes of all fits: said once if it is true of all, else with the kernel's name."""
    together: dict[str, list[str]] = {}
    for each in fits:
        for note in each.fitted.notes:
            together.setdefault(note, []).append(each.kernel)
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


def check_draws(
    draws: Draws, shapes: Mapping[str, tuple[int, ...]], log_parameters: tuple[str, ...]
) -> None:
    """Raise ValueError unless these are all, finite, of their shapes, log parameters in range."""
    require(set(draws.variables) <= {*shapes, "latent"}, "names of draws")
    own = {name: shape for name, shape in shapes.items() if name in log_parameters}
    arrays = {f"draws/{name}": values for name, values in draws.variables.items()}
    check_arrays(arrays, draws_of(shapes) | draws_of(own, -LARGEST_LOG, LARGEST_LOG), {})


# The few draws that predict.

_MOST_FEW = 80
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
) -> tuple[Few, float] | None:
    """Choose the draws that predict, so that their averages agree with those of all.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Standardised training rows.
    weights : ndarray of shape (N,)
        Of all draws; they sum to 1.
    at_rows : ndarray of shape (N, k)
        What each draw predicts at the training rows.
    predict : callable
        What each draw predicts at other rows (m, d): (N, m) or (N, m C).
    parameters : ndarray of shape (N, p)
        Log parameters: what they predict far from all rows, and how surely, goes with these.

    Returns
    -------
    few : positions and weights
    difference : float
        Between their average prediction and that of all. At points halfway between two training
        rows, or up to as far beyond, which the choice has not seen, it is at most half of it.
    None
        Where there are no more draws than that.
    """
    if len(weights) <= _MOST_FEW:
        return None
    rng = np.random.default_rng(0)  # the same pairs always
    n_pool = _SEEN + _JUDGING
    first, second = rng.integers(len(X), size=(2, n_pool))
    share = rng.choice([0.5, -0.5, -1.0], size=(n_pool, 1))  # of the way: between, or beyond
    at_pool = predict(X[first] + share * (X[second] - X[first])).reshape(len(weights), n_pool, -1)
    judged = at_pool[:, _SEEN:].reshape(len(weights), -1)
    spread = np.sqrt(weights @ np.square(at_rows - weights @ at_rows)).mean()
    centred = parameters - weights @ parameters
    std = np.sqrt(weights @ np.square(centred))
    units = centred / np.where(std > 0.0, std, 1.0) * spread
    seen = at_pool[:, :_SEEN].reshape(len(weights), -1)
    features = np.hstack([at_rows, seen, _WEIGHT_OF_PARAMETERS * units, units * units])
    few = representatives(features, weights, _MOST_FEW)
    largest = float(np.abs(few[1] @ judged[few[0]] - weights @ judged).max())
    return few, max(_SAFETY * largest, _NOTHING)


def with_few(
    averaged: AveragedGP, choose: Callable[[KernelFit], tuple[Few, float] | None], unit: str
) -> AveragedGP:
    """Choose the draws of each kernel that predict, and say how closely they agree with all.

    Parameters
    ----------
    averaged : AveragedGP
    choose : callable
        From a kernel's fit to what `choose_few` returns.
    unit : str
        Of the difference, a format for the number.
    """
    chosen = [choose(each) for each in averaged.fits]
    pairs = zip(averaged.fits, chosen, strict=True)
    fits = tuple(each if few is None else replace(each, few=few[0]) for each, few in pairs)
    taken = [each for each in chosen if each is not None]
    if not taken:
        return averaged
    n_few = sum(each.predicting.n_total for each in fits)
    n_total = sum(each.fitted.draws.n_total for each in fits)
    note = (
        f"predictions average over {n_few} of {n_total} draws, weighted so as to agree with all: "
        f'largest difference about {unit.format(max(each[1] for each in taken))}; n_draws="all" '
        "takes all"
    )
    return replace(averaged, fits=fits, notes=(*averaged.notes, note))
