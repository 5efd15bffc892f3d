"""Members of a stack: gradient boosting as arrays, fits that are scored, draws of the weights."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from threadpoolctl import threadpool_limits

from mercer.baselines.peers import ResidualSpread
from mercer.data.encoding import Encoder
from mercer.data.frame import Frame
from mercer.errors import UsageError
from mercer.estimation.base import KernelEstimator
from mercer.estimation.cross_validate import for_folds
from mercer.estimation.inspection import losses_of
from mercer.estimation.model_file import ModelParts, require
from mercer.estimation.splits import fit_groups
from mercer.estimation.standardize import scale_target
from mercer.estimation.tasks import ORDER_TAKEN, ordered_categories
from mercer.models import MODELS, ModelEntry, able_models, name_of
from mercer.posterior.draws import Draws, stacking_weights
from mercer.posterior.predictive import NormalMixture
from mercer.posterior.schema import Array as Rule
from mercer.posterior.schema import Fields, ListOf, Maybe, Number, Text, check_arrays
from mercer.sampling.driver import Labels, RunOptions, Sampled, sample
from mercer.sampling.hmc import HamiltonianAdaptation, HamiltonianTuning, unit_mass
from mercer.sampling.nuts import NUTS
from mercer.sampling.sampler import Point
from mercer.sampling.signals import check_stop

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

STACK: Final = "stack"  # the mixture, among its members
PRIOR_ROWS: Final = 1.0  # that the Dirichlet prior of the weights is worth in all


def refuse_lost_order(members: Sequence[Any], y: Any) -> None:
    """Raise a `UsageError` where members are to take an order of labels that they do not see."""
    labels = ordered_categories(y)
    if labels is not None and any(getattr(each, "ordered", False) is True for each in members):
        raise UsageError(
            "members of a stack do not see the order of a Categorical: list its labels, "
            f"ordered={labels}"
        )


def said_of(members: Mapping[str, Any], weights: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """Names of members with the order of classes that they take, and what they warn of.

    Of those with a tenth of the weight, but that their draws are few.
    """
    for name, weight in weights.items():
        notes = getattr(members[name], "notes_", ())
        yield from ((name, note) for note in notes if note.startswith(ORDER_TAKEN))
        found = getattr(members[name], "diagnostics_", None)
        words = "" if found is None else found.worst_warning
        if words and weight >= 0.1 and not words.startswith("too short"):
            yield name, words


# Gradient boosting whose trees are plain arrays, so that a file can hold them.


@dataclass(frozen=True, eq=False)
class Trees:
    """Regression trees, node after node: rows go left up to the threshold, and stay in a leaf.

    ``roots`` (n_rounds, K) are the positions of the K trees of each round; the others (N,), of N
    nodes. ``first`` (K,) is what the values of a tree a round are added to.
    """

    feature: Rows
    threshold: Array
    left: Rows
    right: Rows
    value: Array
    roots: Rows
    first: Array

    @classmethod
    def of(cls, fitted: Any) -> Trees:
        """Take the trees out of scikit-learn's histogram gradient boosting."""
        nodes = [tree.nodes for each in fitted._predictors for tree in each]
        sizes = [len(each) for each in nodes]
        begins = np.cumsum([0, *sizes[:-1]])
        joined = np.concatenate(nodes)
        own, shift = np.arange(len(joined)), np.repeat(begins, sizes)
        is_leaf = joined["is_leaf"].astype(bool)
        return cls(
            np.where(is_leaf, 0, joined["feature_idx"]).astype(np.int64),
            np.where(is_leaf, 0.0, joined["num_threshold"]).astype(np.float64),
            np.where(is_leaf, own, joined["left"] + shift).astype(np.int64),
            np.where(is_leaf, own, joined["right"] + shift).astype(np.int64),
            joined["value"].astype(np.float64),
            begins.reshape(len(fitted._predictors), -1).astype(np.int64),
            np.asarray(fitted._baseline_prediction, dtype=np.float64).reshape(-1),
        )

    def __call__(self, X: Array) -> Array:
        """Sum the values of the leaves that rows (m, d) fall into: (m, K)."""
        total = np.tile(self.first, (len(X), 1))
        rows = np.arange(len(X))[:, np.newaxis]
        for roots in self.roots:
            node = np.tile(roots, (len(X), 1))
            while True:
                is_left = X[rows, self.feature[node]] <= self.threshold[node]
                below = np.where(is_left, self.left[node], self.right[node])
                if np.array_equal(below, node):
                    break
                node = below
            total += self.value[node]
        return total


_LARGEST = 1e100
_TREES = {
    "trees/feature": Rule(("N",), "int", 0, below="d"),
    "trees/threshold": Rule(("N",), least=-1.7e308, most=1.7e308),
    "trees/left": Rule(("N",), "int", 0, below="N"),
    "trees/right": Rule(("N",), "int", 0, below="N"),
    "trees/value": Rule(("N",), least=-_LARGEST, most=_LARGEST),
    "trees/roots": Rule(("1+", "K"), "int", 0, below="N"),
    "trees/first": Rule(("K",), least=-_LARGEST, most=_LARGEST),
}


class _Boosting(BaseEstimator):  # type: ignore[misc]
    """Base of gradient boosting as a member: scikit-learn's, with its defaults."""

    _numbers: ClassVar[tuple[str, ...]] = ()  # fitted ones that a file holds, beside the trees

    def __init__(self, *, random_state: int | None = None) -> None:
        self.random_state = random_state

    def _to_parts(self) -> ModelParts:
        arrays = {f"trees/{name}": values for name, values in vars(self.trees_).items()}
        own = {name: getattr(self, f"{name}_") for name in self._numbers}
        return ModelParts({}, own, arrays)

    def _restore(self, parts: ModelParts, d: int, n_outputs: int) -> None:
        sizes = {"d": d, "K": n_outputs}
        check_arrays(parts.arrays, _TREES, sizes)
        trees = Trees(**{f.name: parts.arrays[f"trees/{f.name}"] for f in fields(Trees)})
        own = np.arange(len(trees.left))
        is_leaf = (trees.left == own) & (trees.right == own)
        is_inner = (trees.left > own) & (trees.right > own)  # so that every way ends
        require(bool((is_leaf | is_inner).all()), "trees/left")
        self.trees_ = trees


class BoostingClassifier(ClassifierMixin, _Boosting):  # type: ignore[misc]
    """Histogram gradient boosting of classes."""

    def fit(self, X: Array, y: NDArray[Any]) -> BoostingClassifier:
        """Grow the trees."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        fitted = HistGradientBoostingClassifier(random_state=self.random_state).fit(X, y)
        self.classes_, self.trees_ = fitted.classes_, Trees.of(fitted)
        return self

    def predict_proba(self, X: Array) -> Array:
        """Probabilities of the classes, (m, C)."""
        raw = self.trees_(X)
        if raw.shape[1] > 1:
            return np.asarray(softmax(raw, axis=1))
        return np.hstack([expit(-raw), expit(raw)])


class BoostingRegressor(RegressorMixin, _Boosting):  # type: ignore[misc]
    """Histogram gradient boosting of numbers; a normal as wide as residuals of rows left out."""

    _numbers = ("centre", "scale", "std")

    def fit(self, X: Array, y: Array, groups: Rows | None = None) -> BoostingRegressor:
        """Grow the trees, also without a fifth of the rows each time, which say how far it is."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        target = scale_target(y)
        regressor = HistGradientBoostingRegressor(random_state=self.random_state)
        spread = ResidualSpread(regressor, self.random_state or 0)
        found = spread.fit(X, target.transform(y), groups)
        self.trees_ = Trees.of(found.regressor_)
        self.centre_, self.scale_ = target.centre, target.scale
        self.std_ = found.std_ * target.scale
        return self

    def predictive(self, X: Array) -> NormalMixture:
        """A normal law for each row."""
        mean = self.trees_(X) * self.scale_ + self.centre_
        return NormalMixture(mean, np.array([self.std_]))


BOOSTING_OF: Final[dict[str, type[_Boosting]]] = {
    "classification": BoostingClassifier,
    "regression": BoostingRegressor,
}
BOOSTING_FIELDS: Final = Fields(
    {
        "centre": Number(-1e200, 1e200),
        "scale": Number(0.0, 1e200, is_open=True),
        "std": Number(0.0, 1e200, is_open=True),
    }
)
STACK_FIELDS: Final = Fields(
    {
        "members": ListOf(
            Fields(
                {
                    "name": Text(),
                    "estimator": Text(),
                    "seconds": Number(0.0),
                    "params": Fields({}, is_closed=False),
                    "fields": Fields({}, is_closed=False),
                }
            ),
            least=1,
        ),
        "noise_std": Maybe(Number(0.0)),
        "given": ListOf(Text()),
        "prior_rows": Number(0.0, 1e6),
    },
    frozenset({"given", "prior_rows"}),
    is_closed=False,
)


# The weights: draws from their posterior.


@dataclass(frozen=True, eq=False)
class WeightsPosterior:
    """Log density of the logits of the weights, given scores (K, n) of held-out rows.

    The position (K - 1,) holds the logits but the last, which is 0.
    """

    scores: Array
    prior_rows: float = PRIOR_ROWS

    def evaluate(self, theta: Array) -> Point:
        """Evaluate log density and gradient."""
        logits = np.append(theta, 0.0)
        log_w = log_softmax(logits)
        w = np.exp(log_w)
        joint = self.scores + log_w[:, np.newaxis]
        highest = joint.max(axis=0, initial=-np.inf)
        parts = np.exp(joint - highest)
        total = parts.sum(axis=0)
        power = self.prior_rows / len(w) + 1.0  # 1 more for the Jacobian
        value = float((np.log(total) + highest).sum() + power * log_w.sum())
        slope = (parts / total).sum(axis=1) - self.scores.shape[1] * w
        slope += power * (1.0 - len(w) * w)
        return Point(theta, value, slope[:-1], {"weight": w})


@dataclass(frozen=True)
class _NearLogits:
    centre: Array

    def __call__(self, rng: np.random.Generator) -> Array:
        """Draw a start."""
        return self.centre + 0.5 * rng.standard_normal(len(self.centre))


def _weight_of(point: Point) -> Mapping[str, Array]:
    return {"weight": point.extra["weight"]}


def weights_of(scores: Array, prior_rows: float = PRIOR_ROWS) -> Array:
    """Return the weights (K,) by the log scores (K, n) of held-out rows; equal where n is 0."""
    if not scores.size:
        return np.full(len(scores), 1.0 / len(scores))
    return stacking_weights(scores, prior_rows / len(scores))[0]


def draw_weights(
    scores: Array, weights: Array, names: Sequence[str], options: RunOptions
) -> Sampled:
    """Draw weights given the log scores (K, n) of held-out rows, by the no-U-turn sampler.

    Chains start near ``weights`` (K,), those of the highest density. They have no checkpoint: a run
    that goes on may have other members than before, and other scores.
    """
    options = replace(options, progress=False, run=None)
    labels = Labels({"weight": tuple(names)}, ("weight",))
    if len(names) == 1:  # its weight is 1, and no chain could move
        one = np.ones((options.n_chains, options.n_draws, 1))
        return Sampled(Draws({"weight": one}, {}, labels.labels, labels.monitored), ())
    log_w = np.log(weights)
    tuning = HamiltonianTuning(0.5, unit_mass(len(names) - 1))
    start = _NearLogits(log_w[:-1] - log_w[-1])
    sampler = NUTS(WeightsPosterior(scores), start, _weight_of, tuning)
    adaptation = HamiltonianAdaptation(options.n_warmup, 0.8)
    return sample(sampler, options, adaptation=adaptation, labels=labels)


# A member: fitted to all rows, and scored on rows that it has not seen.


@dataclass(frozen=True, eq=False)
class Learned:
    """What became of one member.

    ``estimator`` is fitted to all rows; None where that failed. ``scores`` (n,) are log scores of
    rows that were held out, nan of those that never were; None where there are none of some fold.
    """

    name: str
    estimator: Any = None
    scores: Array | None = None
    seconds: float = 0.0
    problem: str = ""


@dataclass(frozen=True, eq=False)
class StackLeft:
    """What a fit leaves for fits to some of its rows: scores by rows, and what members leave."""

    names: tuple[str, ...]
    keys: tuple[bytes, ...]  # of the rows that the scores are of, `with_targets`
    scores: Array  # (K, m)
    fold: Rows  # (m,)
    groups: Rows  # (m,), alike where rows may be
    members: Mapping[str, Any]

    def chosen(self, keys: Sequence[bytes], names: Sequence[str]) -> tuple[Array, Rows, Rows]:
        """Scores of these rows and members alone, and the folds and groups of the rows.

        Of rows that are equal there are as many as are given.
        """
        own = Counter(keys)
        mine = np.zeros(len(self.keys), dtype=bool)
        for i, key in enumerate(self.keys):
            mine[i], own[key] = own[key] > 0, own[key] - 1
        kept = [self.names.index(name) for name in names]
        return self.scores[kept][:, mine], self.fold[mine], self.groups[mine]


def with_targets(keys: Sequence[bytes], codes: NDArray[Any]) -> tuple[bytes, ...]:
    """Tell rows apart by what is known of their inputs, and by their targets."""
    return tuple(key + code.tobytes() for key, code in zip(keys, codes, strict=True))


@dataclass(frozen=True, eq=False)
class MemberTask:
    """Rows that members learn from: inputs, targets, these as scores need them, folds.

    Where cells of a table were encoded, ``table`` holds them and how: each fold has an encoding of
    its own.
    """

    X: Array
    y: NDArray[Any]
    codes: NDArray[Any]  # positions of classes, or numbers
    pairs: tuple[tuple[Rows, Rows], ...]
    names: tuple[str, ...]  # of the inputs
    sources: tuple[str, ...]  # the columns of the table that these come from
    table: tuple[Frame, Encoder] | None = None
    groups: Rows | None = None  # what rows of the same one share is no news: members may ask

    def part(self, rows: Rows, others: Rows) -> tuple[MemberTask, Array]:
        """Return some of the rows, without folds, and the inputs of others as these encode them."""
        X, X_others, names = self.X[rows], self.X[others], (self.names, self.sources)
        if self.table is not None and self.table[1].learns:
            mine = self.table[0].take(rows)
            encoder = self.table[1].again(mine)
            X, X_others = (encoder.transform(each).X for each in (mine, self.table[0].take(others)))
            names = encoder.feature_names, encoder.sources
        groups = None if self.groups is None else self.groups[rows]
        own = MemberTask(X, self.y[rows], self.codes[rows], (), *names, groups=groups)
        return own, X_others

    def learn(self, name: str, model: Any, nearby: Any, seconds: float | None) -> Learned:
        """Fit a member to all rows, then to all but each fold, in so many CPU seconds."""
        begun = time.process_time()

        def left() -> float | None:
            spent = time.process_time() - begun
            return None if seconds is None else max(seconds - spent, 1e-9)

        if seconds is not None and seconds <= 0.0:
            return Learned(name, problem="out of time")
        fitted, scores = None, np.full(len(self.y), np.nan)
        try:
            with warnings.catch_warnings(), threadpool_limits(limits=1):
                warnings.simplefilter("ignore")  # of convergence, say: the scores tell
                fitted = self._fit(model, nearby, left())
                own = getattr(fitted, "_left", None)
                for train, test in self.pairs:
                    check_stop()
                    if left() == 1e-9:
                        break
                    short = for_folds(model) if isinstance(model, KernelEstimator) else model
                    part, X_test = self.part(train, test)
                    without = part._fit(short, own, left())
                    scores[test] = -losses_of(without, X_test, self.codes[test])[0]
        except Exception as error:
            words = str(error).splitlines()[0] if str(error) else type(error).__name__
            problem = f"it failed ({words})"
            return Learned(name, fitted, None, time.process_time() - begun, problem)
        spent, problem = time.process_time() - begun, ""
        held = np.concatenate([test for _, test in self.pairs]) if self.pairs else np.zeros(0, int)
        if left() == 1e-9 and self.pairs:
            return Learned(name, fitted, None, spent, f"out of time ({spent:.2g} CPU s)")
        if not np.isfinite(scores[held]).all():
            problem = "it failed (the log scores of held-out rows are not finite)"
            return Learned(name, fitted, None, spent, problem)
        return Learned(name, fitted, scores, spent)

    def _fit(self, model: Any, nearby: Any, seconds: float | None) -> Any:
        """Fit a copy of an estimator; one that can begins near another fit and stops in time."""
        copy = clone(model)
        if isinstance(copy, KernelEstimator):
            copy._nearby = nearby
            copy._names_of_columns, copy._sources_of_columns = self.names, self.sources
            if seconds is not None:
                copy.set_params(max_seconds=seconds)
        return copy.fit(self.X, self.y, **fit_groups(copy, self.groups))


def by_name(given: Sequence[Any]) -> dict[str, Any]:
    """Name members that are given by name or as estimators; the second "gp" is "gp-2"."""
    found: dict[str, Any] = {}
    for each in given:
        name = each if isinstance(each, str) else name_of(each)
        alike = sum(other.split("-")[0] == name for other in found)
        found[f"{name}-{alike + 1}" if alike else name] = each
    return found


def entries_of(task: str, n_classes: int) -> list[ModelEntry]:
    """The models that can be members, by their order in the table."""
    able = able_models(task, n_classes)
    return [entry for entry in MODELS if entry in able and not entry.is_combined]


def answer_of(model: Any, X: Array) -> Array:
    """Predict rows (m, d) by a model that need not have more than a law: (K, m)."""
    if hasattr(model, "predictive"):
        return np.asarray(model.predictive(X).mean, dtype=np.float64)[np.newaxis]
    return np.asarray(model.predict_proba(X), dtype=np.float64).T


def rows_by_member(scores: Array, fold: Rows, prior_rows: float = PRIOR_ROWS) -> Array:
    """Log scores of held-out rows by each member, and by their mixture: (K + 1, m).

    The weights of the mixture in one fold are those of the others.
    """
    mixed = np.empty(scores.shape[1])
    for k in np.unique(fold):
        mine = fold == k
        weights = weights_of(scores[:, ~mine], prior_rows)
        highest = scores[:, mine].max(axis=0)
        mixed[mine] = np.log(weights @ np.exp(scores[:, mine] - highest)) + highest
    return np.vstack([scores, mixed])


def scores_by_fold(
    names: Sequence[str], scores: Array, fold: Rows, prior_rows: float
) -> dict[str, Array]:
    """Mean held-out log score of each member, and of their mixture, in each fold."""
    by_row = rows_by_member(scores, fold, prior_rows)
    return {
        name: np.array([-said[fold == k].mean() for k in np.unique(fold)])
        for name, said in zip([*names, STACK], by_row, strict=True)
    }
