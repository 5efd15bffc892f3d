"""What a fitted model makes of its inputs: which decide, how they act, what each adds to a row.

**Importance** [1]_: an input of a held-out row is replaced by that of another held-out row, which
keeps the law of the input and breaks its tie with the target and with the other inputs; what is
predicted then is that much worse.

**Effects** [2]_: one input (or two) is set to a value in all of some rows; the mean prediction is a
function of the value. It belongs to the posterior mean; the same of drawn functions f_s makes a
band, made wider by the standard error over the rows, where they are some of all. The strength of a
pair is the root mean square of what its map has beyond the sum of the two curves.

**Contributions** [3]_: Shapley values of the game v(S) = mean over background rows b of
f(x_S, b_not S). That of input j is

    phi_j = sum over S without j of |S|! (d - |S| - 1)! / d! (v(S + j) - v(S)),

so that sum_j phi_j = f(x) - mean_b f(b). Of few inputs all sets are evaluated. Else phi_j is a mean
over random orders, each with a background row and followed by its reverse: on the way from b to x
inputs are changed one after the other, and j gets the step that its change makes. Each way adds up
to f(x) - f(b), and every background row is used equally often, so that additivity is exact; the
Monte Carlo error of a contribution is the standard error over the pairs of ways (from the same row,
if there are several). Shapley values are linear in f: of the posterior mean they are means, too.

Columns that encode one input go together in all of these. **Cost**: bounded numbers of predictions;
importance and effects ask a model that averages over many draws for a few of them.
Bands are of drawn functions, 96 for a curve and 1000 for a contribution, moved to the posterior
mean: few draws say well how wide the posterior is, and less well where.

References
----------
.. [1] L. Breiman (2001), "Random forests", Machine Learning 45, 5-32, section 10.
.. [2] J. H. Friedman (2001), "Greedy function approximation: a gradient boosting machine", Ann.
   Statist. 29, 1189-1232, section 8.2.
.. [3] E. Strumbelj and I. Kononenko (2014), "Explaining prediction models and individual
   predictions with feature contributions", Knowl. Inf. Syst. 41, 647-665.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb, stdtrit

from mercer.data.frame import Inputs, TableFacts, strengths_alone
from mercer.data.row_names import RowNames
from mercer.errors import DataError, UsageError, rows_without_names
from mercer.estimation.tasks import BLOCK, REGRESSION, task_of
from mercer.numerics.cholesky import one_blas_thread
from mercer.posterior.draws import Table
from mercer.posterior.evaluation import HeldClasses, paired_error
from mercer.random import stream

__all__ = ["Explanation"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


# Which inputs decide: held-out rows with one input of another row.

# Rows predicted in all, so that every model answers within seconds; of several classes fewer.
_MOST_PREDICTED: Final = 6_000
_MOST_ROWS: Final = 400
_LEAST_ROWS: Final = 60
_LEAST_MOVED: Final = 20  # rows, where inputs are chosen
MOST_INPUTS: Final = 40
_N_REPEATS: Final = 3


@dataclass(frozen=True, eq=False)
class Look:
    """How the importance of inputs is measured: which inputs, of how many rows, how often."""

    inputs: Inputs
    n_rows: int
    n_left_out: int  # inputs that are not measured, since there are too many
    entropy: int
    n_repeats: int = _N_REPEATS
    is_classes: bool = False
    asks_model: bool = False  # whether a model had a say in which inputs are measured

    def share(self, n_parts: int, part: int, y: NDArray[Any]) -> tuple[Rows, Array]:
        """Choose the rows that one fold of several measures, and how much each of them counts.

        ``y`` are the targets of its rows. Half of the rows are shared among classes alike, as far
        as these have rows: of a rare one few others would be measured. With its weight (mean 1) a
        class counts by its share of all.
        """
        n, rng = min(-(-self.n_rows // n_parts), len(y)), self.rng(part)
        if not self.is_classes or n == len(y):
            return np.sort(rng.choice(len(y), size=n, replace=False)), np.ones(n)
        kinds, of, counts = np.unique(y, return_inverse=True, return_counts=True)
        own = np.minimum(counts, max(1, n // (2 * len(kinds))))
        own += (max(0, n - own.sum()) * (counts - own)) // max(1, (counts - own).sum())
        rows = [rng.permutation(np.flatnonzero(of == c))[: own[c]] for c in range(len(kinds))]
        chosen = np.sort(np.concatenate(rows))
        return chosen, (counts / own)[of[chosen]] * len(chosen) / len(y)

    def rng(self, part: int) -> np.random.Generator:
        """Return the generator of one fold."""
        return stream(self.entropy, "inspection", part)


def plan_look(
    inputs: Inputs,
    X: Array,
    y: NDArray[Any],
    *,
    n_rows: int,
    n_classes: int,
    entropy: int,
    model: Any | None = None,
) -> Look:
    """Decide what is measured of ``n_rows`` held-out rows, so that it takes seconds.

    Of many inputs, those are measured that alone tell most of the target, or of one of q, in rows
    X (m, d), y (m,) or (m, q), and those that predictions of the ``model`` depend on most. There
    are ``n_classes`` classes, 0 of numbers.
    """
    kept = inputs
    if len(inputs) > MOST_INPUTS:
        strengths = strengths_alone(X, y, inputs, is_classes=n_classes > 0)
        ranks = np.argsort(np.argsort(-strengths, kind="stable"))
        if model is not None:
            moved = _dependence(model, inputs, X, entropy)
            of_model = np.argsort(np.argsort(-moved, kind="stable"))
            ranks = np.minimum(ranks, np.where(moved > 0.0, of_model, len(inputs)))
        kept = inputs.take(np.sort(np.argsort(ranks, kind="stable")[:MOST_INPUTS]))
    most = _MOST_PREDICTED // (_N_REPEATS * len(kept) * max(1, n_classes - 1))
    n = min(n_rows, max(_LEAST_ROWS, min(_MOST_ROWS, most)))
    n_left_out = len(inputs) - len(kept)
    return Look(kept, n, n_left_out, entropy, _N_REPEATS, n_classes > 0, model is not None)


def _dependence(model: Any, inputs: Inputs, X: Array, entropy: int) -> Array:
    """How far predictions of some rows move where one input is that of another row: (d,)."""
    model, rng = model._at_a_glance(), stream(entropy, "inspection", 2)
    n = min(len(X), max(_LEAST_MOVED, _MOST_PREDICTED // len(inputs)))
    rows, others = (X[rng.choice(len(X), size=n, replace=False)] for _ in range(2))
    found, n_at_once = [predicted(model, rows)], max(1, BLOCK // n)
    for begin in range(0, len(inputs), n_at_once):
        columns = inputs.columns[begin : begin + n_at_once]
        changed = np.repeat(rows[np.newaxis], len(columns), axis=0)
        for own, each in zip(changed, columns, strict=True):
            own[:, each] = others[:, each]
        found.append(predicted(model, changed.reshape(-1, X.shape[1])))
    said = np.concatenate(found, axis=1).reshape(len(found[0]), 1 + len(inputs), n, -1)
    return np.asarray(np.abs(said[:, 1:] - said[:, :1]).mean(axis=2).max(axis=(0, 2)))


@dataclass(frozen=True, eq=False)
class Increases:
    """How much worse held-out rows are predicted with one input of another row.

    ``log_score`` and ``error`` are (R, n, d): repeats, rows, inputs. The error is 1 for a wrong
    class, else the squared error; of several outputs there is an axis more. ``units`` (1 + R, n,
    d) number the groups, or rows, of a row and then of those that its inputs are taken of. A row
    that stands for others that are not measured counts for as many: see `Look.share`.
    """

    log_score: Array
    error: Array
    units: Rows

    def output(self, k: int) -> Increases:
        """Return those of one of several outputs."""
        return Increases(self.log_score[..., k], self.error[..., k], self.units)

    @classmethod
    def joined(cls, parts: Sequence[Increases]) -> Increases:
        """Put the rows of several folds together."""
        fields = [(part.log_score, part.error, part.units) for part in parts]
        return cls(*(np.concatenate(each, axis=1) for each in zip(*fields, strict=True)))


def losses_of(model: Any, X: Array, y: NDArray[Any]) -> Array:
    """Log score and error of each row of X (m, d), shape (2, m), or (2, m, q) of several outputs.

    ``y`` holds positions among the classes of the model, or numbers.
    """
    if not hasattr(model, "predictive"):
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
    sources: Sequence[str] = (),
) -> Increases:
    """Predict rows with one input of another row; all of one input in a single call.

    The model is fitted to other rows than X (m, d); ``y`` (m,), or (m, q) of several outputs, are
    positions of classes, or numbers. This is fold ``part`` of ``n_parts``; ``sources`` are of each
    column the input that it comes from, where this fold has an encoding of its own.
    """
    if len(X) < 2:
        raise DataError("a row alone has no other to take an input from")
    model, rng = model._at_a_glance(), look.rng(part)
    rows, weights = look.share(n_parts, part, y)
    n, n_repeats = len(rows), look.n_repeats
    base = losses_of(model, X[rows], y[rows])
    found = np.empty((2, n_repeats, n, len(look.inputs), *y.shape[1:]))
    of_rows = np.arange(len(X)) + (part << 32) if groups is None else groups
    units = np.empty((1 + n_repeats, n, len(look.inputs)), dtype=np.int64)
    repeated, targets = np.tile(X[rows], (n_repeats, 1)), np.concatenate([y[rows]] * n_repeats)
    for j, (name, columns) in enumerate(zip(look.inputs.names, look.inputs.columns, strict=True)):
        if len(sources):
            columns = np.flatnonzero(np.array(sources) == name)
        # Any other row, each with the same probability.
        donors = rng.integers(len(X) - 1, size=(n_repeats, n))
        donors += donors >= rows
        units[:, :, j] = of_rows[np.vstack([rows, donors])]
        changed = repeated.copy()
        changed[:, columns] = X[donors.ravel()][:, columns]
        losses = losses_of(model, changed, targets).reshape(2, n_repeats, n, *y.shape[1:])
        # A row that got its own value is the same row, whatever the last digits of its loss are.
        is_equal = (changed == repeated) | (np.isnan(changed) & np.isnan(repeated))
        is_same = is_equal.all(axis=1).reshape(n_repeats, n)
        found[:, :, :, j] = losses - base[:, np.newaxis]
        found[:, is_same, j] = 0.0
    found *= weights.reshape(-1, *[1] * (found.ndim - 3))
    return Increases(found[0], found[1], units)


@dataclass(frozen=True, eq=False)
class Importance:
    """How much worse held-out rows are predicted without each input: means over rows, (d,).

    Standard errors are those of a mean over pairs of rows, each compared with itself: see
    `paired_error`. ``repeats`` (R, d) are the means of each repeat, whose spread is what chance in
    the choice of other rows does.
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
    asks_model: bool = False  # see `Look`

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
    measured = all_rows.log_score, all_rows.error
    means = [each.mean(axis=(0, 1)) for each in measured]
    errors = [
        np.array([paired_error(x[..., j], all_rows.units[..., j]) for j in range(x.shape[2])])
        for x in measured
    ]
    return Importance(
        look.inputs.names, means[0], errors[0], means[1], errors[1],
        all_rows.log_score.mean(axis=1), measured[0].shape[1], look.n_left_out, is_classes,
        look.asks_model,
    )  # fmt: skip


# What a model predicts and what functions drawn from its posterior say, at parts of rows.

_N_DRAWS: Final = 96  # for a curve
_N_DRAWS_OF_ROWS: Final = 1000  # for a contribution
_LEVEL: Final = 0.9


def predicted(model: Any, X: Array) -> Array:
    """Predict rows X (m, d): (K, m), K = 1 posterior mean or the probabilities of K classes."""
    with one_blas_thread(), rows_without_names():  # many small products
        if task_of(model) is REGRESSION:
            return np.asarray(model.predict(X), dtype=np.float64)[np.newaxis]
        return np.asarray(model.predict_proba(X), dtype=np.float64).T


def drawn(
    model: Any, parts: Sequence[Array], rng: np.random.Generator, n_draws: int | None = None
) -> list[Array]:
    """Draw functions from the posterior, 96 by default: values (S, K, m) for each part."""
    with one_blas_thread(), rows_without_names():
        standardized = [model._standardized(X) for X in parts]
        return list(model._function_draws(standardized, n_draws or _N_DRAWS, rng))


def _band(draws: Array, centre: Array) -> tuple[Array, Array]:
    """Ends of the central 90 % of draws (S, ...), moved so that their mean is the centre."""
    tail = 0.5 * (1.0 - _LEVEL)
    moved = draws - draws.mean(axis=0) + centre
    lower, upper = np.quantile(moved, (tail, 1.0 - tail), axis=0)
    return np.minimum(lower, centre), np.maximum(upper, centre)


def _widened(
    band: tuple[Array, Array], mean: Array, each: Array, n_all: int
) -> tuple[Array, Array]:
    """Let a band of means (...) over rows (..., n) out of ``n_all`` hold what other rows would do.

    Both lengths, the posterior's and that of Student's interval of a mean, are added as those of
    independent normals are.
    """
    n = each.shape[-1]
    error = each.std(axis=-1, ddof=1) * np.sqrt(1.0 / n - 1.0 / n_all)
    more = stdtrit(n - 1, 0.5 * (1.0 + _LEVEL)) * error
    return mean - np.hypot(mean - band[0], more), mean + np.hypot(band[1] - mean, more)


# How single inputs and a pair of them act.

_N_VALUES: Final = 15
_MOST_CURVES: Final = 10
_MOST_LINES: Final = 5  # classes
_N_CURVE_PREDICTIONS: Final = 10_000
_LEAST_CURVE_ROWS, _MOST_CURVE_ROWS = 24, 60
_LEAST_DRAWN_ROWS, _MOST_DRAWN_ROWS = 6, 24  # at which functions are drawn
_N_PAIRED: Final = 4  # inputs whose pairs are compared
_PAIR_GRID: Final = 5
_MAP_GRID: Final = 9
_PAIR_ROWS: Final = 20


@dataclass(frozen=True, eq=False)
class Values:
    """Values that one input takes on a curve: rows of its columns, numbers or names of levels."""

    name: str
    columns: Rows
    points: Array  # (G, k)
    labels: tuple[str, ...]  # of levels; empty for numbers

    @property
    def numbers(self) -> Array:
        """Where the values are on an axis, shape (G,)."""
        return np.asarray(np.arange(len(self.points)) * 1.0 if self.labels else self.points[:, 0])

    def few(self, n: int) -> Values:
        """Keep n of the values, evenly spaced."""
        at = np.unique(np.linspace(0, len(self.points) - 1, n).round().astype(np.int64))
        labels = tuple(self.labels[i] for i in at) if self.labels else ()
        return Values(self.name, self.columns, self.points[at], labels)


@dataclass(frozen=True, eq=False)
class Effect:
    """The mean prediction as one input is varied, for K classes or K = 1 number.

    ``mean``, ``lower`` and ``upper`` (K, G): the mean over some rows, and a 90 % band of that over
    all of them.
    ``rows_lower`` and ``rows_upper`` (K, G): central 80 % of the predictions of single rows.
    """

    values: Values
    mean: Array
    lower: Array
    upper: Array
    rows_lower: Array
    rows_upper: Array


@dataclass(frozen=True, eq=False)
class PairEffect:
    """The mean prediction (G, H) as two inputs are varied, and how strong the pair is."""

    first: Values
    second: Values
    mean: Array
    strength: float  # root mean square of what the sum of the two curves lacks
    range: float  # between the lowest and the highest of the map
    n_rows: int  # over which it is averaged
    outputs: tuple[str, ...] = ()  # the class whose probability it is; none for a number


@dataclass(frozen=True, eq=False)
class Effects:
    """How inputs act: the curves, the strongest pair, and what is predicted."""

    curves: tuple[Effect, ...]
    pair: PairEffect | None
    outputs: tuple[str, ...]  # names of the K lines: classes, or none for a number
    n_rows: int
    n_left_out: int = 0  # parts of dates whose curves have less of a range than another's


def values_of(
    name: str, columns: Rows, X: Array, feature_names: Sequence[str]
) -> tuple[Values, ...]:
    """Choose the values on the axis of an input; of dates, those of each part.

    A column that says where it is missing is 0 on a curve; of levels "missing" is one more.
    """
    if len(columns) > 1 and feature_names[columns[-1]] == f"{name} (missing)":
        gap = columns[-1]
        is_known = X[:, gap] == 0.0
        if not is_known.any():
            return ()
        found = values_of(name, columns[:-1], X[is_known], feature_names)
        with_gap = []
        for each in found:
            points = np.hstack([each.points, np.zeros((len(each.points), 1))])
            labels = each.labels
            if len(found) == 1 and labels and not is_known.all():
                filled = X[np.argmin(is_known), each.columns]
                points = np.vstack([points, np.append(filled, 1.0)])
                labels = (*labels, "missing")
            with_gap.append(Values(each.name, np.append(each.columns, gap), points, labels))
        return tuple(with_gap)
    if len(columns) == 1:
        level = feature_names[columns[0]].removeprefix(name).removeprefix("=")
        if level == " (frequency)":
            name, level = f"{name} (share of rows)", ""
        x = X[:, columns[0]][~np.isnan(X[:, columns[0]])]
        own = known = np.unique(x)
        if len(own) > _N_VALUES:
            shares = np.linspace(0.02, 0.98, _N_VALUES)
            known = np.unique(np.quantile(x, shares))
            if 2 * len(known) < _N_VALUES:  # most rows have one value: the others tell the range
                known = np.unique(np.quantile(own, shares))
        words: tuple[str, ...] = ()
        if len(own) == 2:  # no line between them
            written = (tuple(f"{value:.{n}g}" for value in known) for n in range(6, 18))
            words = (f"not {level}", level) if level else next(w for w in written if w[0] != w[1])
        return (Values(name, columns, known[:, np.newaxis], words),)
    own = X[:, columns]
    if np.isin(own, (0.0, 1.0)).all():
        levels = np.flatnonzero(own.any(axis=0))
        levels = levels[np.argsort(-own[:, levels].sum(axis=0), kind="stable")][:_N_VALUES]
        words = tuple(feature_names[columns[i]].removeprefix(f"{name}=") for i in levels)
        return (Values(name, columns, np.eye(len(columns))[levels], words),)
    parts = (values_of(feature_names[c], np.array([c]), X, feature_names) for c in columns)
    return tuple(each for part in parts for each in part)


def effects_of(
    model: Any,
    X: Array,
    inputs: Inputs,
    *,
    order: Sequence[int],
    classes: Sequence[Any] = (),
    entropy: int = 0,
    all_parts: bool = False,
) -> Effects:
    """Vary the first ten inputs in an order, each in some rows of X (n, d).

    Of two classes the probability of the second is shown, of several those of the five likeliest.
    Of a date the part with the widest curve is drawn, or ten panels of ``all_parts``.
    """
    model, rng = model._at_a_glance(), stream(entropy, "inspection", 1)
    found = [
        [each for each in values_of(inputs.names[j], inputs.columns[j], X, model.feature_labels_)
         if len(each.points) > 1]
        for j in order
    ]  # fmt: skip
    if all_parts:
        found = [[each] for parts in found for each in parts]
    found = [parts for parts in found if parts][:_MOST_CURVES]
    chosen = [each for parts in found for each in parts]
    if not chosen:
        return Effects((), None, (), 0)
    n_functions = max(1, len(classes) - 1)
    n_rows = _N_CURVE_PREDICTIONS // (len(chosen) * _N_VALUES * n_functions)
    n_rows = min(len(X), max(_LEAST_CURVE_ROWS, min(_MOST_CURVE_ROWS, n_rows)))
    rows = X[rng.choice(len(X), size=n_rows, replace=False)]  # the first of them are as random
    lines = _lines(predicted(model, rows), len(classes))
    parts = [_varied(rows, [values]) for values in chosen]
    said = np.split(predicted(model, np.concatenate(parts))[lines], _ends(parts), axis=1)
    ends = np.cumsum([len(each) for each in found]).tolist()
    swings = [np.ptp(s.reshape(len(lines), -1, n_rows).mean(axis=2), axis=1).max() for s in said]
    kept = [
        max(range(end - len(each), end), key=swings.__getitem__)
        for each, end in zip(found, ends, strict=True)
    ]
    n_left_out = len(chosen) - len(kept)
    chosen, said = [chosen[k] for k in kept], [said[k] for k in kept]
    # Of several functions the draws at many rows together cost the cube of their number.
    n_few = max(_LEAST_DRAWN_ROWS, min(_MOST_DRAWN_ROWS, n_rows // n_functions**2))
    few = rows[:n_few]
    functions = drawn(model, [_varied(few, [values]) for values in chosen], rng)
    curves = []
    for values, one, draws in zip(chosen, said, functions, strict=True):
        shape = len(lines), len(values.points), -1
        each = one.reshape(shape)
        mean = each.mean(axis=2)
        band = _band(draws[:, lines].reshape(len(draws), *shape).mean(axis=3), mean)
        if n_rows < len(X):  # a mean over these rows is not that over all
            band = _widened(band, mean, each, len(X))
        if len(classes):
            band = np.maximum(band[0], 0.0), np.minimum(band[1], 1.0)
        spread = np.quantile(each, (0.1, 0.9), axis=2)
        curves.append(Effect(values, mean, *band, spread[0], spread[1]))
    n_paired = max(4, _PAIR_ROWS // n_functions)
    owners = [next(j for j in order if v.columns[0] in inputs.columns[j]) for v in chosen]
    pair = _strongest_pair(model, rows[:n_paired], chosen[:_N_PAIRED], owners, int(lines[0]))
    outputs = tuple(str(classes[k]) for k in lines) if len(classes) else ()
    pair = pair if pair is None else replace(pair, outputs=outputs[:1])
    return Effects(tuple(curves), pair, outputs, n_rows, n_left_out)


def _lines(said: Array, n_classes: int) -> Rows:
    if n_classes == 2:
        return np.array([1])
    return np.sort(np.argsort(-said.mean(axis=1), kind="stable")[:_MOST_LINES])


def _ends(parts: Sequence[Array]) -> Rows:
    return np.cumsum([len(part) for part in parts])[:-1]


def _varied(rows: Array, chosen: Sequence[Values]) -> Array:
    """Set inputs to all combinations of their values in all rows: the last index is the row."""
    found = rows[np.newaxis]
    for values in chosen:
        found = np.repeat(found[:, np.newaxis], len(values.points), axis=1)
        found[..., values.columns] = values.points[:, np.newaxis]
        found = found.reshape(-1, *rows.shape)
    return np.ascontiguousarray(found.reshape(-1, rows.shape[1]))


def _strongest_pair(
    model: Any, rows: Array, chosen: Sequence[Values], owners: Sequence[int], line: int
) -> PairEffect | None:
    """Find the pair whose map is farthest from the sum of two curves, and draw its map.

    ``owners`` are the inputs that values belong to: parts of one date are no pair.
    """
    few = [values.few(_PAIR_GRID) for values in chosen]
    pairs = [
        (i, j) for i in range(len(few)) for j in range(i + 1, len(few)) if owners[i] != owners[j]
    ]
    if not pairs:
        return None

    def maps(values: Sequence[tuple[Values, Values]]) -> list[Array]:
        parts = [_varied(rows, pair) for pair in values]
        said = np.split(predicted(model, np.concatenate(parts))[line], _ends(parts))
        return [
            one.reshape(len(a.points), len(b.points), len(rows)).mean(axis=2)
            for one, (a, b) in zip(said, values, strict=True)
        ]

    strengths = [_beyond(each) for each in maps([(few[i], few[j]) for i, j in pairs])]
    i, j = pairs[int(np.argmax(strengths))]
    first, second = chosen[i].few(_MAP_GRID), chosen[j].few(_MAP_GRID)
    (mean,) = maps([(first, second)])
    return PairEffect(first, second, mean, max(strengths), float(np.ptp(mean)), len(rows))


def _beyond(mean: Array) -> float:
    """Root mean square of a map less the sum of its two curves."""
    curves = mean.mean(axis=0, keepdims=True) + mean.mean(axis=1, keepdims=True) - mean.mean()
    return float(np.sqrt(np.square(mean - curves).mean()))


# What each input adds to the prediction of one row.

_FEWEST_BACKGROUND: Final = 24  # rows for which all sets of inputs are tried
_MOST_POINTS: Final = 6000  # that are predicted for a row
_MOST_DRAWN_POINTS: Final = 600  # of these, at which functions are drawn


@dataclass(frozen=True, eq=False)
class Explanation:
    """What each input adds to the prediction of each of n rows: Shapley values.

    Attributes
    ----------
    names : tuple of str
        The inputs.
    output : tuple
        The class of each row whose probability is explained; empty for numbers.
    prediction : ndarray of shape (n,)
        The posterior mean, in units of the target, or the probability of the class.
    baseline : ndarray of shape (n,)
        Mean prediction of the background rows.
    contributions : ndarray of shape (n, d)
        Posterior means; of each row they sum to ``prediction - baseline``.
    lower, upper : ndarray of shape (n, d)
        Ends of the central 90 % of the posterior, by 1000 drawn functions.
    errors : ndarray of shape (n, d)
        Monte Carlo standard errors of the contributions, from the choice of background rows and
        of orders; 0 where all sets of inputs were tried on all rows.
    n_background : int
        Rows that stand for not knowing an input.
    """

    names: tuple[str, ...]
    output: tuple[Any, ...]
    prediction: Array
    baseline: Array
    contributions: Array
    lower: Array
    upper: Array
    errors: Array
    n_background: int

    def table(self, row: int = 0) -> Table:
        """Return the contributions to one row, the largest first, as a table that prints."""
        order = np.argsort(-np.abs(self.contributions[row]), kind="stable")
        columns = (self.contributions, self.lower, self.upper, self.errors)
        return Table(
            ("input", "contribution", "lower", "upper", "error"),
            tuple((self.names[j], *(float(c[row, j]) for c in columns)) for j in order),
        )

    def __str__(self) -> str:
        return f"{self._headline}\n\n{self.table()}"

    __repr__ = __str__  # what an interpreter shows

    def _repr_html_(self) -> str:
        """Show the first row in a notebook."""
        return f"<p>{html.escape(self._headline)}</p>{self.table()._repr_html_()}"

    @property
    def _headline(self) -> str:
        n = len(self.prediction)
        what = f"probability of {self.output[0]!r}" if self.output else "prediction"
        more = f"; the first of {n} rows, table(row) has the others" if n > 1 else ""
        return f"{what} {self.prediction[0]:.4g}, {self.baseline[0]:.4g} without inputs{more}"


@dataclass(frozen=True, eq=False)
class _Ways:
    """Points between background rows and a row, and what their values give.

    Contributions are ``weights`` (P, d, L) times the values at the points of each of P parts, L of
    them each, averaged over the parts.
    """

    points: Array  # (P, L, D)
    weights: Array  # (d, L) or (P, d, L)

    def contributions(self, values: Array) -> Array:
        """From values (..., P, L): contributions of each part, (..., P, d)."""
        if self.weights.ndim == 2:
            return np.asarray(values @ self.weights.T)
        return np.asarray(np.einsum("...pl,pdl->...pd", values, self.weights))


def _all_sets(x: Array, background: Array, inputs: Inputs) -> _Ways:
    """All sets of inputs, for each background row."""
    d = len(inputs)
    sets = (np.arange(2**d)[:, np.newaxis] >> np.arange(d)) & 1  # (2^d, d)
    points = np.repeat(background[:, np.newaxis], 2**d, axis=1)
    for j, columns in enumerate(inputs.columns):
        has = np.flatnonzero(sets[:, j])
        points[:, has[:, np.newaxis], columns] = x[columns]
    size = sets.sum(axis=1)
    # A set with j counts |S - j|! (d - |S|)! / d! = 1 / (d binom(d - 1, |S| - 1)), one without it
    # minus 1 / (d binom(d - 1, |S|)).
    with_j = 1.0 / (d * comb(d - 1, np.maximum(size - 1, 0)))
    without = -1.0 / (d * np.maximum(comb(d - 1, size), 1.0))
    weights = np.where(sets.T == 1, with_j, without)
    return _Ways(points, weights)


def _random_ways(
    x: Array, background: Array, inputs: Inputs, n_parts: int, rng: np.random.Generator
) -> _Ways:
    """Random orders and their reverses, from background rows to the row."""
    d = len(inputs)
    orders = rng.permuted(np.tile(np.arange(d), (n_parts, 1)), axis=1)
    orders = np.stack([orders, orders[:, ::-1]], axis=1)  # (P, 2, d)
    points = np.repeat(background[np.arange(n_parts) % len(background), np.newaxis], 2, axis=1)
    points = np.repeat(points[:, :, np.newaxis], d + 1, axis=2)  # (P, 2, d + 1, D)
    rank = np.argsort(orders, axis=2)  # when each input is changed
    for j, columns in enumerate(inputs.columns):
        is_changed = np.arange(d + 1) > rank[:, :, j, np.newaxis]
        points[..., columns] = np.where(
            is_changed[..., np.newaxis], x[columns], points[..., columns]
        )
    steps = np.eye(d + 1)[1:] - np.eye(d + 1)[:-1]  # (d, d + 1), the step of each place
    weights = 0.5 * steps[rank]  # (P, 2, d, d + 1)
    weights = np.moveaxis(weights, 1, 2).reshape(n_parts, d, -1)
    return _Ways(points.reshape(n_parts, 2 * (d + 1), -1), weights)


def _drawn_ways(
    ways: _Ways, x: Array, background: Array, inputs: Inputs, n_lines: int, rng: np.random.Generator
) -> tuple[_Ways, Array]:
    """Ways of some hundred points, to draw functions at, and what each counts (P, d)."""
    # The step of an input from a row that has the same one is zero: rows that differ in it stand
    # for all that do, and one is taken for each input, as far as they go.
    differs = np.stack([(background[:, c] != x[c]).any(axis=1) for c in inputs.columns], axis=1)
    rows = np.arange(len(ways.points)) % len(background)
    if ways.points[..., 0].size > _MOST_DRAWN_POINTS // n_lines:
        rows = rng.permutation(len(background))
        first = np.unique(differs[rows].argmax(axis=0))
        n = max(2, _MOST_DRAWN_POINTS // (2 * (len(inputs) + 1) * n_lines))
        rows = np.append(rows[first], np.delete(rows, first))[:n]
        ways = _random_ways(x, background[rows], inputs, len(rows), rng)
    has = differs[rows]
    return ways, differs.mean(axis=0) * has / np.maximum(has.sum(axis=0), 1)


def explain_rows(
    model: Any, X: Array, background: Array, inputs: Inputs, *, label: Any = None, entropy: int = 0
) -> Explanation:
    """Say what each input adds to the prediction of each row of X (n, D).

    Inputs of ``background`` (b, D), of many rows a part at random, take the place of unknown ones.
    ``label`` is the class to explain; None: of two classes the second, of several the most probable
    of each row. ``entropy`` seeds the random ways.
    """
    rng = stream(entropy, "inspection", 2)
    said = predicted(model, X)
    line = _explained_class(model, said, label)
    d, n_rows = len(inputs), len(background)
    n_functions = max(1, len(said) - 1)
    most_points = _MOST_POINTS // n_functions
    has_all_sets = 2**d * min(n_rows, _FEWEST_BACKGROUND) <= most_points
    b = min(n_rows, max(1, most_points // (2**d if has_all_sets else 2 * (d + 1))))
    if b < n_rows:
        background = background[rng.choice(n_rows, size=b, replace=False)]
    found = np.empty((4, len(X), d))
    baselines = predicted(model, background).mean(axis=1)[line]
    is_classes = task_of(model) is not REGRESSION
    widest = 1.0 if is_classes else np.inf  # a probability changes by 1 at most
    for i, x in enumerate(X):
        rng = stream(entropy, "inspection", 3)  # a row is explained alike, beside any others
        if has_all_sets:
            ways = _all_sets(x, background, inputs)
        else:
            n_ways = b * max(1, most_points // (2 * (d + 1) * b))
            ways = _random_ways(x, background, inputs, n_ways, rng)
        n_parts, n_points, _ = ways.points.shape
        at_points = predicted(model, ways.points.reshape(n_parts * n_points, -1))[line[i]]
        parts = ways.contributions(at_points.reshape(n_parts, n_points))
        mean = parts.mean(axis=0)
        alike = parts.reshape(-1, b, d) if n_parts > b else parts[:, np.newaxis]
        variance = alike.var(axis=0, ddof=min(len(alike) - 1, 1)).mean(axis=0)
        error = np.sqrt(variance / n_parts * (1.0 - b / n_rows if has_all_sets else 1.0))
        few, counts = _drawn_ways(ways, x, background, inputs, n_functions, rng)
        (draws,) = drawn(model, [np.concatenate(few.points)], rng, _N_DRAWS_OF_ROWS)
        values = draws[:, line[i]].reshape(-1, *few.points.shape[:2])
        band = _band((few.contributions(values) * counts).sum(axis=1), mean)
        found[:, i] = mean, *np.clip(band, -widest, widest), error
    output = tuple(model.classes_[line].tolist()) if is_classes else ()
    f, (mean, lower, upper, errors) = said[line, np.arange(len(X))], found
    return Explanation(inputs.names, output, f, baselines, mean, lower, upper, errors, b)


def _explained_class(model: Any, said: Array, label: Any) -> Rows:
    """Position of the class that is explained for each row; 0 for numbers."""
    n = said.shape[1]
    if task_of(model) is REGRESSION:
        if label is not None:
            raise UsageError("label is for classes; the model predicts a number")
        return np.zeros(n, dtype=np.int64)
    classes = model.classes_.tolist()
    if label is None:
        return np.ones(n, dtype=np.int64) if len(classes) == 2 else said.argmax(axis=0)
    if label not in classes:
        raise UsageError(f"label must be one of {classes}; got {label!r}")
    return np.full(n, classes.index(label))


# What a report shows of all this.


@dataclass(frozen=True, eq=False)
class Inspection:
    """What a report shows of rows and inputs, beyond the scores."""

    names: RowNames  # what the held-out rows are called, in the order of the evaluation
    importance: Importance | None = None
    effects: Effects | None = None
    table: TableFacts | None = None
    steps: tuple[tuple[str, str], ...] = ()  # what to do next: a sentence and a command each
