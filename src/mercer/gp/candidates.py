"""Which kernels are compared where the data choose, and where the search for each begins.

Kernels go from simple to rich, and a search begins at the maximum of a simpler one. Of any table:
RBF and Matern 5/2, with one weight for all inputs, with one per input, the sum of both, each with a
linear part; of large tables with hundreds of inputs none with one per input. Of classes all have a
constant part where that of the first gains on held-out rows: a class that lies within another, or
around it, is a function of one sign less a level, and functions whose mean is 0 say little of it.
Of a table with columns of text, with the better of the two families: categories that shift a
function of the numbers (a sum), that each have a function of their own (a product), both, a shift
from each category by itself, and a function of each number by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from mercer.gp.hyperparameters import Maximum, starts_of_one
from mercer.kernels.columns import categories_of, on_columns
from mercer.kernels.names import kernel_named, write_kernel

Array = NDArray[np.float64]
Terms = tuple[str, ...]
Search = tuple[Terms, Sequence[Array]]  # what is searched for, and the starts; none: the model's

_FAMILIES = ("rbf", "matern52")
_LINEAR, CONSTANT = "linear", "constant"
#: Inputs that have a weight each, whatever the rows n; of more d it takes n^2 d for a gradient, of
#: which so many are worth their time, and fewer where a sum is searched for, too.
MOST_WEIGHTS, _MOST_PRODUCTS, _MOST_OF_SUMS = 300, 2e8, 3e7
_MOST_LEVELS = 50  # of a category, that have a weight each like other inputs
_MOST_TERMS = 8  # of sums with a term for each input or category


@dataclass(frozen=True)
class Candidate:
    """A kernel that was compared with others: what it is the sum of, and its maximum.

    ``log_likelihood`` is the log density there without the prior, ``scores`` (m,) the log scores of
    held-out rows, nats: of the first ones only where it fell behind, of none where the likelihood
    of a simpler kernel is as high.
    """

    terms: Terms
    maximum: Maximum
    log_likelihood: float
    scores: Array

    @property
    def name(self) -> str:
        """The expression that names the kernel."""
        return " + ".join(self.terms)


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
        inner = term.removeprefix("isotropic(").replace(")", "", 1) if term not in left else term
        case_of = next((each for each in (term, inner) if each in left), None)
        if case_of is None:
            return False
        left.remove(case_of)
    return True


def rank(scores: Array) -> tuple[int, float]:
    """Order candidates by the held-out rows that they have scores of, then by these."""
    return len(scores), float(scores.sum())


def n_varying(terms: Terms) -> int:
    """How many terms vary with the inputs: all but the constant."""
    return len(terms) - (CONSTANT in terms)


def plain_kernels(
    found: Mapping[Terms, Candidate], n: int, d: int, n_levels: int = 0, n_classes: int = 0
) -> Iterator[Search]:
    """Kernels of n rows of d inputs, each after those that it begins from are ``found``.

    Of a table with a category of so many levels that these have no weight each, isotropic ones; of
    a large one of hundreds of inputs no sums with a weight for each, or no weights either. A
    constant is tried of classes only, ``n_classes`` above 0: the intercept of numbers is integrated
    out whatever the kernel. Sums begin also where the term with one weight is slow, and where the
    other looks at one input alone: this not of many inputs, nor of two classes, which never gained.
    """
    singles = [isotropic(family) for family in _FAMILIES] if d > 1 else list(_FAMILIES)
    yield (singles[0],), ()
    if n_classes:
        yield (singles[0], CONSTANT), _starts(found, d, (singles[0],), _with_level)
    level = _level(found)
    yield (singles[1], *level), _starts(found, d, (singles[0], *level), _as_it_is)
    cost = n * n * d if d > MOST_WEIGHTS else 0
    if d > 1 and cost <= _MOST_PRODUCTS and n_levels <= _MOST_LEVELS:
        for family in _FAMILIES:
            base = (isotropic(family), *level)
            yield (family, *level), _starts(found, d, base, _one_weight_each)
        for family in _FAMILIES if cost <= _MOST_OF_SUMS else ():
            simple, other = (isotropic(family), *level), (family, *level)
            halves = _starts(found, d, simple, _halves, other)
            slow = _starts(found, d, simple, _slow_halves, other)
            terms = (simple[0], *other)
            kernel = kernel_named(" + ".join(terms))
            alone = [starts_of_one(kernel, d, each) for each in halves if n_classes != 2]
            yield terms, [*halves, *slow, *chain.from_iterable(alone)]
        singles += _FAMILIES if cost <= _MOST_OF_SUMS else ()
    for term in singles:
        yield (term, _LINEAR, *level), _starts(found, d, (term, *level), _with_linear)


def _level(found: Mapping[Terms, Candidate]) -> Terms:
    """The constant, if the first kernel scores better with it; else no term."""
    plain = next(iter(found), ())
    other = found.get((*plain, CONSTANT))
    return () if other is None or rank(other.scores) <= rank(found[plain].scores) else (CONSTANT,)


def kernels_of_categories(
    found: Mapping[Terms, Candidate], labels: tuple[str, ...], sources: tuple[str, ...]
) -> Iterator[Search]:
    """Kernels of a table with columns of text, after the plain ones; none of other tables.

    ``labels`` and ``sources`` are names of the inputs and of the columns that they come from.
    """
    categories, d = [own for _, own in categories_of(labels, sources)], len(labels)
    level = _level(found)
    singles = [each for terms, each in found.items() if terms[1:] == level]
    if not categories or not singles:
        return
    base = max(singles, key=lambda each: rank(each.scores))
    family = next(each for each in _FAMILIES if each in base.terms[0])
    numbers = [j for j in range(d) if not any(j in own for own in categories)]
    (own,), rest = _split(base, d)
    halved = own[:, :1] - np.log(2.0)  # the variance of two terms instead of one
    kinds = _on(_CATEGORICAL, categories)
    shifts = np.hstack((halved, np.zeros((len(own), len(categories)))))
    smooth: Terms = ()
    block = np.zeros((len(own), 0))
    if numbers:
        weights = np.broadcast_to(own[:, 1:], (len(own), d))[:, numbers]
        if len(numbers) > 1:
            alike = np.hstack((halved, weights.mean(axis=1, keepdims=True)))
            yield (_on(isotropic(family), numbers), kinds, *level), _start([alike, shifts], rest)
        every = np.hstack((halved, weights))
        yield (_on(family, numbers), kinds, *level), _start([every, shifts], rest)
        sums = [each for terms, each in found.items() if kinds in terms]
        if not sums:
            return
        best = max(sums, key=lambda each: rank(each.scores))
        (block, shifts), rest = _split(best, d)
        smooth, own_curves = best.terms[:1], np.hstack((block, shifts[:, 1:]))
        product = f"{smooth[0]}*{kinds}"
        yield (product, *level), _start([own_curves], rest)
        yield (
            (*smooth, kinds, product, *level),
            _start([block, shifts, _less(own_curves, 2)], rest),
        )
    else:
        yield (kinds, *level), _start([shifts], rest)
    if 1 < len(categories) <= _MOST_TERMS:
        each = [_on(_CATEGORICAL, [one]) for one in categories]
        parts = [_less(shifts[:, [0, 1 + k]], len(each)) for k in range(len(each))]
        yield (*smooth, *each, *level), _start([block, *parts], rest)
    if 1 < len(numbers) <= _MOST_TERMS:
        each = [_on(family, [j]) for j in numbers]
        every = np.hstack((block[:, :1], np.broadcast_to(block[:, 1:], (len(own), len(numbers)))))
        parts = [_less(every[:, [0, 1 + k]], len(each)) for k in range(len(each))]
        yield (*each, kinds, *level), _start([*parts, shifts], rest)


_CATEGORICAL = "categorical"


def _on(kernel: str, inputs: Sequence[int | tuple[int, ...]]) -> str:
    """Write a kernel of some inputs; each of several columns, side by side, is a range."""
    columns = [each if isinstance(each, int) else range(each[0], each[-1] + 1) for each in inputs]
    return write_kernel(on_columns(kernel_named(kernel), columns))


def _less(block: Array, n: int) -> Array:
    """The parameters (m, size) of a term with an n-th of its variance."""
    return np.hstack((block[:, :1] - np.log(n), block[:, 1:]))


def _start(blocks: Parts, rest: Array) -> tuple[Array, ...]:
    if rest.ndim == 2:
        return (np.hstack((*blocks, rest)).ravel(),)
    return (np.concatenate((np.hstack(blocks).ravel(), rest)),)


# Starts of a search from the maxima of simpler kernels. Parts of theta: a block (m, size) a term,
# of m kernels (one for each class, or one), and what comes after them: the noise of a regressor, or
# the constants (m, 1) of classes.

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
    return _start(change(parts, second, d), rest)


def _split(candidate: Candidate, d: int) -> tuple[Parts, Array]:
    kernels = [kernel_named(term) for term in candidate.terms]
    sizes = [kernel.n_parameters(d) for kernel in kernels]
    theta, p = candidate.maximum.point.position, sum(sizes)
    m = max(len(theta) // p, 1)
    parts = np.split(theta[: m * p].reshape(m, p), np.cumsum(sizes)[:-1], axis=1)
    return (parts[:-1], parts[-1]) if CONSTANT in candidate.terms else (parts, theta[m * p :])


def _one_weight_each(parts: Parts, _: Parts | None, d: int) -> Parts:
    variance, weight = parts[0][:, :1], parts[0][:, 1:]
    return [variance, np.repeat(weight, d, axis=1)]


def _halves(parts: Parts, others: Parts | None, d: int) -> Parts:
    own = others[0] if others is not None else np.hstack(_one_weight_each(parts, None, d))
    halved = [parts[0].copy(), own.copy()]
    for part in halved:
        part[:, 0] -= np.log(2.0)
    return halved


def _slow_halves(parts: Parts, others: Parts | None, d: int) -> Parts:
    slow, own = _halves(parts, others, d)
    slow[:, 1] -= 3.0
    return [slow, own]


def _as_it_is(parts: Parts, _: Parts | None, d: int) -> Parts:
    return parts


def _with_level(parts: Parts, _: Parts | None, d: int) -> Parts:
    return [*parts, parts[0][:, :1]]


def _with_linear(parts: Parts, _: Parts | None, d: int) -> Parts:
    return [*parts, np.full((len(parts[0]), 1), -np.log(d))]
