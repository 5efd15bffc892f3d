"""One model of several: their predictions mixed, with weights by what they said of held-out rows.

**Scores.** Rows are held out a fold at a time; l_ik is the log predictive probability (classes) or
density (numbers) of row i by model k, fitted to the other folds.

**Weights** [1]_ are those of the mixture of highest log score,

    w = argmax over the simplex of  sum_i log sum_k w_k exp(l_ik) + sum_k log w_k / K,

the last term a Dirichlet(1 + 1/K, .., 1 + 1/K) prior, worth one row in all: no weight is 0. They
are no probabilities of models: one that is never the best alone has weight where it is right and
the others are wrong.

**Draws.** What is maximised is a log density of w, up to a constant: how well the rows tell the
weights is what draws from it show. They move in the logits a_k = log w_k - log w_K, whose Jacobian
prod_k w_k adds a sum of log w_k. Predictions take the weights above.

**Members** are fitted to all rows, and mixed: p(y | x) = sum_k w_k p_k(y | x).

**Cost.** A fit of each member to all rows, and one a fold, which begins at what that has left.

References
----------
.. [1] Y. Yao, A. Vehtari, D. Simpson and A. Gelman, Using stacking to average Bayesian predictive
   distributions, Bayesian Analysis 13 (2018), 917-1007.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike, NDArray
from scipy.stats import skew
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mercer.baselines.peers import ResidualSpread
from mercer.errors import DataError, MercerWarning, NumericalError, UsageError, warn_user
from mercer.estimation.base import (
    KernelEstimator,
    LabelPredictions,
    by_partition,
    encode_classes,
)
from mercer.estimation.model_file import (
    Arrays,
    ModelParts,
    common_parts,
    json_params,
    require,
    restore_common,
)
from mercer.estimation.numbers import NumberPredictions
from mercer.estimation.run import check_common, check_count, fitting, run_options
from mercer.estimation.splits import folds, number_groups
from mercer.estimation.standardize import fit_standardizer, scale_target
from mercer.estimation.tasks import CLASSIFICATION, REGRESSION, Task
from mercer.kernels.columns import distinct_rows
from mercer.models import ModelEntry, hint_of_model
from mercer.posterior.diagnostics import diagnose
from mercer.posterior.draws import Table
from mercer.posterior.evaluation import clustered_error
from mercer.posterior.positive_laws import MixedLaws, noise_of
from mercer.posterior.predictive import LawMixture, StudentMixture
from mercer.posterior.schema import Array as Rule
from mercer.posterior.schema import check_arrays
from mercer.posterior.scores import PROBA_FLOOR
from mercer.random import stream
from mercer.sampling.checkpoint import digest_arrays
from mercer.sampling.driver import RunOptions, count_workers, in_processes
from mercer.sampling.progress import tell
from mercer.stacking.members import (
    BOOSTING_FIELDS,
    BOOSTING_OF,
    PRIOR_ROWS,
    STACK,
    STACK_FIELDS,
    Learned,
    MemberTask,
    StackLeft,
    answer_of,
    by_name,
    draw_weights,
    entries_of,
    refuse_lost_order,
    rows_by_member,
    said_of,
    scores_by_fold,
    weights_of,
    with_targets,
)

__all__ = ["MercerClassifier", "MercerRegressor"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

_BOOSTING: Final = "boosting"
_FACTOR: Final = "gp_lognormal"  # of targets above 0

# Settings of the members that are named: a fit to 400 rows and those of its folds take some ten CPU
# seconds each. Held-out rows judge it by a fit of one chain, `for_folds`.
_SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "gp": {"n_chains": 2, "n_draws": 250},
    "spectral": {"n_chains": 1, "n_draws": 60, "n_warmup": 50},
    "sphere": {"lengthscale": "median", "n_chains": 1, "n_draws": 100, "n_warmup": 50},
    "basis": {},
}
_SETTINGS_OF_NUMBERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "gp": {**_SETTINGS["gp"], "noise": "normal"},
    _FACTOR: {**_SETTINGS["gp"], "noise": "lognormal"},
}
_MOST_ROWS: Final = {"gp": 1000, "sphere": 1000}  # "auto": of more it takes too long


def _are_less_skewed_in_logs(y: Array) -> bool:
    """Whether targets are above 0, and their logarithms lie more evenly than they do."""
    return bool(y.min() > 0.0 and abs(skew(np.log(y))) < abs(skew(y)))


# What both estimators share.


@dataclass(kw_only=True, eq=False, repr=False)
class _Stack(KernelEstimator):
    """Base of the two estimators; a subclass says of which task it is.

    Parameters
    ----------
    n_draws : int, default=250
        Kept draws of the weights, of each chain.
    random_state : int, Generator, RandomState or None, default=None
        An integer gives the same fit each time, for any ``n_jobs``.
    n_jobs : int or None, default=None
        Members that are fitted at a time; -1 for one a core.
    progress : bool or "auto", default="auto"
        A line for each member; "auto" on a terminal or in a notebook.
    checkpoint : path or None, default=None
        Folder where members save their state as they run: as in `GPClassifier`.
    max_seconds : float or None, default=None
        CPU seconds of all members together, of which each has an equal part of what is left. One
        that does not end in time is left out; where none does, the first stands alone, with as
        much of a fit as there was time for. ``notes_`` says so.

    Attributes
    ----------
    weights_ : dict of str to float
        Of each member its weight in every prediction, the largest first; with sum 1.
    members_ : dict of str to estimator
        The members, fitted to all rows, in the same order.
    log_score_folds_ : dict of str to ndarray of shape (n_folds,)
        Mean held-out log score of each member by fold, and of the "stack", with the weights of the
        other folds: nats a row, the lower the better, of numbers in the units of the target.
    comparison_ : Table
        A row a member: weight with the central 90 % of its draws, held-out log score, CPU seconds.
    posterior_ : Draws
        Draws of the weights, given the held-out scores: how well these tell them.
    diagnostics_ : Diagnostics
        Of these draws. Members have their own; ``notes_`` has what those with a tenth of the weight
        or more warn of.
    seconds_ : dict of str to float
        CPU seconds of each member, folds included.

    Raises
    ------
    NumericalError
        At ``fit``, if every member failed. One that fails alone is left out, with a warning.
    """

    models: Any = "auto"
    n_folds: int = 5
    encode: Any = "auto"
    n_draws: int = 250
    n_warmup: int = 150
    n_chains: int = 4
    thin: int = 1
    random_state: int | np.random.Generator | np.random.RandomState | None = None
    n_jobs: int | None = None
    progress: bool | str = "auto"
    checkpoint: str | Path | None = None
    max_seconds: float | None = None

    _task: ClassVar[Task]
    _encodes_folds = True
    _prior_rows = PRIOR_ROWS  # of a model from an older file what it was fitted with

    @property
    def _leaves(self) -> str:
        return "scores"

    @fitting()
    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Fit the members, to all rows and to all but each fold, and weigh them.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Inputs: finite numbers.
        y : array of shape (n,)
            Labels of two or more classes, or targets: finite numbers.
        groups : array of shape (n,), optional
            Rows with the same entry, of one patient say, are held out together: no member is then
            weighed by rows whose group it has learned from.
        """
        started = time.monotonic()
        self._check_arguments()
        self._forget()
        self._fit(*self._coded(X, y), number_groups(groups), started)
        self._warn_of_convergence()
        return self

    @abstractmethod
    def _coded(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, NDArray[Any], NDArray[Any]]:
        """Inputs, targets, and targets as scores need them."""

    def _fit(
        self, X: Array, y: NDArray[Any], codes: NDArray[Any], groups: Rows | None, started: float
    ) -> None:
        """Fit, score and weigh the members; ``codes`` are targets as scores need them."""
        self.feature_labels_ = self._labels()
        self.standardizer_ = fit_standardizer(X, "auto", self.feature_labels_)
        digest = digest_arrays(X, codes.astype(np.float64))
        options = run_options(self, digest, started)
        n_costly = len(distinct_rows(X)[0]) if self._task.is_stratified else None
        members, notes = self._members(len(y), codes, options.entropy, n_costly)
        if options.run is not None and options.run.is_resumed:
            notes = (*notes, f"resumed from {options.run.path}")
        keys, known = self._keys(X), self._nearby
        if not isinstance(known, StackLeft) or not set(known.names) <= set(members):
            known = None
        pairs, said = ((), "") if known else self._pairs(codes, groups, options.entropy)
        if known is not None:
            members = {name: members[name] for name in known.names}
        inputs = self.feature_labels_, self._sources
        task = MemberTask(X, y, codes, pairs, *inputs, self._table_of_rows, groups)
        learned = self._learn(task, members, known, options)
        kept, more = self._kept(learned)
        if known is not None:
            held_out = known.chosen(with_targets(keys, codes), [each.name for each in kept])
        else:
            held = [test for _, test in pairs if kept[0].scores is not None]
            rows = np.concatenate(held) if held else np.zeros(0, dtype=np.int64)
            fold = np.repeat(np.arange(len(held)), [len(test) for test in held])
            scores = np.array([each.scores[rows] for each in kept if each.scores is not None])
            scores = scores.reshape(len(kept), len(rows))
            keys = with_targets([keys[i] for i in rows], codes[rows])
            lefts = {each.name: getattr(each.estimator, "_left", None) for each in kept}
            held_out = scores, fold, rows if groups is None else groups[rows]
            self._left = StackLeft(tuple(lefts), keys, *held_out, lefts)
        names = tuple(each.name for each in kept)
        self._put({each.name: each.estimator for each in kept}, *held_out)
        sampled = draw_weights(self._scores, self._weights, names, options)
        self.posterior_, self.diagnostics_ = sampled.draws, diagnose(sampled.draws)
        self.seconds_ = {each.name: each.seconds for each in kept}
        own = [f"{name}: {line}" for name, line in said_of(self.members_, self.weights_)]
        self.notes_ = (*notes, *filter(None, [said]), *more, *sampled.notes, *own)

    def _learn(
        self,
        task: MemberTask,
        members: Mapping[str, Any],
        known: StackLeft | None,
        options: RunOptions,
    ) -> list[Learned]:
        """Fit and score the members one after the other, or so many at a time."""
        lefts = {} if known is None else known.members
        if options.n_jobs not in (None, 1) and len(members) > 1:
            limit = None if self.max_seconds is None else self.max_seconds / len(members)
            jobs = [
                delayed(task.learn)(name, each, lefts.get(name), limit)
                for name, each in members.items()
            ]
            return in_processes(count_workers(options.n_jobs), jobs)
        begun, learned = time.process_time(), list[Learned]()
        for name, each in members.items():
            limit = None
            if self.max_seconds is not None:  # what one leaves over is for the others
                spent = time.process_time() - begun if learned else 0.0
                limit = (self.max_seconds - spent) / (len(members) - len(learned))
            learned.append(task.learn(name, each, lefts.get(name), limit))
            words = learned[-1].problem or f"{learned[-1].seconds:.1f} CPU s"
            tell(f"stack: {name}, {words}", options.progress)
        return learned

    def _kept(self, learned: Sequence[Learned]) -> tuple[list[Learned], list[str]]:
        """Return the members that are mixed, and notes on those that are not.

        Where none was scored, the first that is fitted stands alone.

        Raises
        ------
        NumericalError
            If every member failed.
        """
        kept = [each for each in learned if each.scores is not None]
        notes = [f"{each.name} is left out: {each.problem}" for each in learned if each.problem]
        if not kept:
            kept = [each for each in learned if each.estimator is not None][:1]
            if not kept:
                raise NumericalError(f"no member of the stack could be fitted: {'; '.join(notes)}")
            words = "stopped by max_seconds" if self.max_seconds is not None else "no member scored"
            notes.append(f"{words}: no rows were held out, and {kept[0].name} stands alone")
        for each, words in zip([each for each in learned if each.problem], notes, strict=False):
            if not each.problem.startswith("out of time"):
                warn_user(words, MercerWarning)
        return kept, notes

    def _pairs(
        self, codes: NDArray[Any], groups: Rows | None, entropy: int
    ) -> tuple[tuple[Any, ...], str]:
        """Choose the folds: training and held-out rows of each, and a note."""
        is_classes, rng = self._task.is_stratified, stream(entropy, "stacking", 0)
        try:
            found = folds(codes, self.n_folds, rng, groups, is_classification=is_classes)
            pairs = tuple(pair for pair in found.pairs if len(pair[1]))
            if min(len(train) for train, _ in pairs) < 2:
                raise DataError("too few rows to hold any out")
        except DataError as error:
            return (), f"all members have equal weights: {error}"
        return pairs, f"weights: {found.note}" if found.note else ""

    def _members(
        self, n: int, codes: NDArray[Any], entropy: int, n_costly: int | None = None
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Make the members, unfitted, by name; and notes on those that take too long."""
        n_classes = len(np.unique(codes)) if self._task.is_stratified else 0
        able = {each.name: each for each in entries_of(self._task.name, n_classes)}
        given, notes = self._given(), list[str]()
        if given is None:
            given = [*able, _BOOSTING]
            for name, entry in able.items():
                most = min(entry.most_rows(n_classes), _MOST_ROWS.get(name, math.inf))
                if ((n_costly or n) if name == "gp" else n) > most:  # it fits rows alike as one
                    given.remove(name)
                    notes.append(
                        f"{name} is left out: above {most:.0f} rows it takes too long; name it in "
                        "models to have it"
                    )
            if self._task is REGRESSION and "gp" in given and _are_less_skewed_in_logs(codes):
                given.insert(given.index("gp") + 1, _FACTOR)
        members: dict[str, Any] = {}
        for k, (name, each) in enumerate(by_name(given).items()):
            seed = int(stream(entropy, "stacking", k + 1).integers(2**31))
            members[name] = self._make(each, able, seed)
        return members, tuple(notes)

    def _make(self, given: Any, able: Mapping[str, ModelEntry], seed: int) -> Any:
        """Make a member from its name or from an estimator."""
        if given == _BOOSTING:
            return BOOSTING_OF[self._task.name](random_state=seed)
        if isinstance(given, str):
            of_task = _SETTINGS_OF_NUMBERS if self._task is REGRESSION else {}
            settings = {**_SETTINGS, **of_task}[given]
            given = "gp" if given == _FACTOR else given
            if given not in able:
                raise UsageError(f"{given} does not tell so many classes apart: leave it out")
            own = {
                "random_state": seed,
                "progress": False,
                "encode": None,
                "checkpoint": self.checkpoint,
                **settings,
            }
            return able[given].estimator_class()(**own)
        params = given.get_params()
        open_ = [name for name in params if name.split("__")[-1] == "random_state"]
        open_ = sorted((name for name in open_ if params[name] is None), key=lambda name: len(name))
        model = clone(given).set_params(**{name: seed + k for k, name in enumerate(open_)})
        if self._task is REGRESSION and not hasattr(model, "predictive"):
            model = ResidualSpread(model, seed)
        return model

    def _given(self) -> list[Any] | None:
        """Return the members that were asked for; None for "auto"."""
        given = self.models
        if isinstance(given, str) and given == "auto":
            return None
        listed = [each.strip() for each in given.split(",")] if isinstance(given, str) else given
        try:
            listed = list(listed)
        except TypeError as error:
            raise UsageError(f"models must be 'auto' or a list; got {given!r}") from error
        known = [*(entry.name for entry in entries_of(self._task.name, 0)), _BOOSTING]
        known += [_FACTOR] * (self._task is REGRESSION)
        for each in listed:
            if isinstance(each, str) and each not in known:
                hint = hint_of_model(each, known)
                raise UsageError(f"no model {each!r} for {self._task.name}; there is: "
                                 f"{', '.join(known)}{hint}")  # fmt: skip
            is_made = not isinstance(each, type) and hasattr(each, "get_params")
            if not isinstance(each, str) and not is_made:
                raise UsageError(f"models holds {each!r}, which is no name and no estimator")
            if getattr(each, "noise", "") == "negative_binomial":
                raise UsageError("models mixes laws of numbers; that of counts is none of them")
        if not listed:
            raise UsageError("models must name one model at least")
        return listed

    def _check_arguments(self) -> None:
        self._given()
        check_count("n_folds", self.n_folds, 2)
        check_common(self)

    def _put(self, members: dict[str, Any], scores: Array, fold: Rows, groups: Rows) -> None:
        """Set the attributes that members and their scores make."""
        own = weights_of(scores, self._prior_rows)
        self._weights, self._scores, self._fold = own, scores, fold
        self._groups = np.unique(groups, return_inverse=True)[1]
        order = np.argsort(-own, kind="stable")
        names = list(members)
        self.members_ = {names[k]: members[names[k]] for k in order}
        self.weights_ = {names[k]: float(own[k]) for k in order}
        self._mixed = [(w, self.members_[name]) for name, w in self.weights_.items()]
        self.log_score_folds_ = scores_by_fold(names, scores, fold, self._prior_rows)

    @property
    def comparison_(self) -> Table:
        """Members and the stack: weight with its central 90 %, held-out log score, CPU seconds.

        Log scores are means over held-out rows, in nats, the lower the better; those of the stack
        have the weights of the other folds. ``gap`` is how far a member is behind the stack, with
        the standard error of that, rows paired, those of a group together.
        """
        check_is_fitted(self)
        names = list(self.posterior_.labels["weight"])
        ends = np.quantile(self.posterior_.flat("weight"), (0.05, 0.95), axis=0)
        lower, upper = (dict(zip(names, each.tolist(), strict=True)) for each in ends)
        *each, mixed = -rows_by_member(self._scores, self._fold, self._prior_rows)
        said, m = dict(zip(names, each, strict=True)), len(mixed)
        rows: list[tuple[Any, ...]] = []
        for name, weight in self.weights_.items():
            score = gap = error = None
            if m > 1:
                behind = said[name] - mixed
                score, gap = float(said[name].mean()), float(behind.mean())
                error = clustered_error(behind, self._groups)
            own = (score, gap, error, self.seconds_[name])
            rows.append((name, weight, lower[name], upper[name], *own))
        total = sum(self.seconds_.values())
        score = float(mixed.mean()) if m > 1 else None
        rows.append((STACK, None, None, None, score, None, None, total))
        columns = ("model", "weight", "lower", "upper", "log_score", "gap", "gap_error", "seconds")
        return Table(columns, tuple(rows))

    def _standardized(self, X: ArrayLike) -> Array:
        """Check new rows; each member standardises them by itself."""
        return self._new_rows(X)

    def _function_draws(
        self, parts: Sequence[Array], n_draws: int, rng: np.random.Generator
    ) -> list[Array]:
        counts = rng.multinomial(n_draws, [w for w, _ in self._mixed])
        drawn: list[list[Array]] = [[] for _ in parts]
        for count, (_, model) in zip(counts, self._mixed, strict=True):
            if count == 0:
                continue
            if isinstance(model, KernelEstimator):
                found = model._function_draws([model._standardized(Z) for Z in parts], count, rng)
            else:  # no posterior: the same function each time
                found = [np.repeat(answer_of(model, Z)[np.newaxis], count, axis=0) for Z in parts]
            for own, more in zip(drawn, found, strict=True):
                own.append(more)
        return [np.concatenate(own) for own in drawn]

    def _to_parts(self) -> ModelParts:
        values, arrays = common_parts(self)
        names = self.posterior_.labels["weight"]
        values["members"] = []
        for i, name in enumerate(names):
            model = self.members_[name]
            kinds = [*(entry.estimator for entry in entries_of(self._task.name, 0)), *_OWN]
            kind = type(model).__name__
            if kind not in kinds or not hasattr(model, "_to_parts"):
                raise UsageError(
                    f"a stack with {name} ({kind}) cannot be written to a file: the members of "
                    "those that can are models of mercer and boosting"
                )
            own = model._to_parts()
            values["members"].append(
                {
                    "name": name,
                    "estimator": kind,
                    "seconds": self.seconds_[name],
                    "params": own.params,
                    "fields": own.fields,
                }
            )
            arrays |= {f"members/{i}/{key}": column for key, column in own.arrays.items()}
        values |= {"noise_std": getattr(self, "noise_std_", None), "prior_rows": self._prior_rows}
        arrays |= {"scores": self._scores, "fold": self._fold, "groups": self._groups}
        params = json_params(self.get_params(deep=False))
        if not isinstance(self.models, str):
            given = {name: each for name, each in by_name(self.models).items() if name in names}
            values["given"] = [name for name, each in given.items() if not isinstance(each, str)]
            params["models"] = ",".join(name.split("-")[0] for name in given)
        return ModelParts(params, values, arrays)

    def _restore(self, parts: ModelParts) -> None:
        values, arrays = parts.fields, parts.arrays
        arrays = {"groups": np.arange(arrays["scores"].shape[-1]), **arrays}  # older files: none
        STACK_FIELDS.check(values, "fields", {})
        common = restore_common(parts)
        common.put_into(self)
        listed = values["members"]
        names = tuple(each["name"] for each in listed)
        require(common.draws.labels.get("weight") == names, "labels of weights")
        require(len(set(names)) == len(names), "names of members")
        scores = {
            "scores": Rule((len(names), "m"), least=-1e15, most=1e15),
            "fold": Rule(("m",), "int", 0, most=10**6),
            "groups": Rule(("m",), "int", 0, below="m"),
            "draws/weight": Rule(("n_chains", "n_draws", len(names)), least=0.0, most=1.0),
        }
        check_arrays(arrays, scores, {})
        members = {
            each["name"]: self._member_from(each, i, arrays) for i, each in enumerate(listed)
        }
        if given := values.get("given"):  # not by name: as they are set
            made = (clone(m) if k in given else k.split("-")[0] for k, m in members.items())
            self.models = list(made)
        self.seconds_ = {each["name"]: float(each["seconds"]) for each in listed}
        if values.get("noise_std") is not None:
            self.noise_std_ = float(values["noise_std"])
        self._prior_rows = float(values.get("prior_rows", len(names)))  # older files: one each
        self._put(members, arrays["scores"], arrays["fold"], arrays["groups"])

    def _member_from(self, listed: Mapping[str, Any], i: int, arrays: Arrays) -> Any:
        """Put one member together again; a ValueError where it does not fit the others."""
        begin, d = f"members/{i}/", len(self.feature_labels_)
        own = {
            name.removeprefix(begin): column
            for name, column in arrays.items()
            if name.startswith(begin)
        }
        parts = ModelParts(listed["params"], listed["fields"], own)
        kind = listed["estimator"]
        known = {entry.estimator: entry for entry in entries_of(self._task.name, 0)}
        if kind in known:
            model = known[kind].estimator_class()._from_parts(parts)
            require(len(model.feature_labels_) == d, "inputs of members")
        else:
            require(kind == BOOSTING_OF[self._task.name].__name__, "kinds of members")
            model = BOOSTING_OF[self._task.name]()
            if self._task is REGRESSION:
                BOOSTING_FIELDS.check(parts.fields, "fields", {})
                model.centre_, model.scale_ = parts.fields["centre"], parts.fields["scale"]
                model.std_ = parts.fields["std"]
                model._restore(parts, d, 1)
            else:
                n_classes = len(self.classes_)
                model.classes_ = self.classes_
                model._restore(parts, d, 1 if n_classes == 2 else n_classes)
        if self._task is CLASSIFICATION:
            require(np.array_equal(model.classes_, self.classes_), "classes of members")
        return model


_OWN: Final = tuple(each.__name__ for each in BOOSTING_OF.values())


class MercerClassifier(_Stack, LabelPredictions):
    """Classification by a mixture of models, weighted by what they said of held-out rows.

    Gaussian process, BaNK, the kernel Gibbs sampler, sequential kernel classification and gradient
    boosting by default: stacking of their predictive probabilities.

    Parameters
    ----------
    models : "auto", str or sequence of str and estimators, default="auto"
        The members, by name: "gp", "spectral", "sphere", "basis", "boosting"; a string may name
        several, with commas. Also classifiers with ``predict_proba``, as they are set. "auto": all
        that tell so many classes apart, but those that take too long for so many rows, which
        ``notes_`` names. Named ones have settings of fewer draws than by default.
    n_folds : int, default=5
        Parts of the rows, with the shares of the classes, that are held out one after the other.

    Notes
    -----
    The weights maximise the log score of the mixture on held-out rows [1]_, with a Dirichlet
    prior worth one row in all: see `mercer.stacking.estimator`.

    References
    ----------
    .. [1] Y. Yao, A. Vehtari, D. Simpson and A. Gelman, Using stacking to average Bayesian
       predictive distributions, Bayesian Analysis 13 (2018), 917-1007.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(60, noise=0.3, random_state=0)
    >>> model = MercerClassifier(models="basis,boosting", n_draws=50, random_state=0).fit(X, y)
    >>> round(sum(model.weights_.values()), 6), int(model.predict([[-1.0, 0.5]])[0])
    (1.0, 0)
    """

    _task = CLASSIFICATION

    def _coded(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, NDArray[Any], NDArray[Any]]:
        refuse_lost_order(self._given() or (), y)
        X, y = self._training_data(X, y, dtype=np.float64, ensure_min_samples=2)
        self.classes_, codes = encode_classes(np.asarray(y))
        return np.asarray(X), np.asarray(y), codes

    @by_partition
    def predict_proba(self, X: ArrayLike) -> Array:
        """Weighted mean of the members' probabilities, (m, C), in the order of ``classes_``."""
        check_is_fitted(self)
        rows = self._standardized(X)
        proba = np.asarray(sum(w * model.predict_proba(rows) for w, model in self._mixed))
        proba = np.maximum(proba, PROBA_FLOOR)  # as members are scored: none is impossible
        return np.asarray(proba / proba.sum(axis=1, keepdims=True))


class MercerRegressor(_Stack, NumberPredictions[LawMixture | MixedLaws]):
    """Regression by a mixture of models, weighted by what they said of held-out rows.

    Gaussian process, BaNK, sequential kernel regression and gradient boosting by default: stacking
    of their predictive densities. Boosting has a normal law as wide as residuals of rows left out.
    Of targets above 0 that their logarithm makes less skewed there is a second Gaussian process,
    whose noise is a factor.

    Parameters
    ----------
    models : "auto", str or sequence of str and estimators, default="auto"
        The members, by name: "gp", "gp_lognormal", "spectral", "basis", "boosting"; a string may
        name several, with commas. Also regressors: those without a law (``predictive``) get a
        normal one as wide as residuals of rows left out. "auto": all but those that take too long
        for so many rows, which ``notes_`` names. Named ones have settings of fewer draws than by
        default.
    n_folds : int, default=5
        Parts of the rows that are held out one after the other.

    Attributes
    ----------
    noise_std_ : float
        Weighted mean of the members' standard deviations of the noise, in units of the target; of
        boosting that of its law.

    See Also
    --------
    MercerClassifier : the same for classes, with what is done in detail.

    Examples
    --------
    >>> X = np.linspace(-3.0, 3.0, 60)[:, np.newaxis]
    >>> y = np.sin(2.0 * X[:, 0])
    >>> model = MercerRegressor(models="gp,boosting", n_draws=50, random_state=0).fit(X, y)
    >>> max(model.weights_, key=model.weights_.get)
    'gp'
    """

    _task = REGRESSION

    def _coded(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, NDArray[Any], NDArray[Any]]:
        X, y = self._training_data(X, y, dtype=np.float64, ensure_min_samples=2, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        scale_target(y)  # warns of a constant target, refuses one that is out of range
        return np.asarray(X), y, y

    def _fit(self, *given: Any) -> None:
        super()._fit(*given)
        spreads = [
            (w, getattr(model, "noise_std_", getattr(model, "std_", None)))
            for w, model in self._mixed
            if noise_of(model) != "lognormal"
        ]
        known = [(w, std) for w, std in spreads if std is not None]
        if known:
            self.noise_std_ = float(sum(w * std for w, std in known) / sum(w for w, _ in known))

    def _sample(self, Z: Array, n_draws: int, rng: np.random.Generator) -> Array:
        member = rng.choice(len(self._mixed), size=n_draws, p=[w for w, _ in self._mixed])
        drawn = np.empty((n_draws, len(Z)))
        for k, (_, model) in enumerate(self._mixed):
            mine, count = member == k, int((member == k).sum())
            if count and isinstance(model, KernelEstimator):
                drawn[mine] = model.sample_y(Z, count, rng)
            elif count:
                drawn[mine] = model.predictive(Z).sample(rng, count)
        return drawn

    def _law(self, Z: Array) -> LawMixture | MixedLaws:
        laws = [model.predictive(Z) for _, model in self._mixed]
        of_any = all(isinstance(law, StudentMixture) for law in laws)
        return (LawMixture if of_any else MixedLaws)(laws, self._share)

    def _expected(self, Z: Array) -> Array:
        means = (
            w * (model.predict(Z) if isinstance(model, KernelEstimator) else answer_of(model, Z)[0])
            for w, model in self._mixed
        )
        return np.asarray(sum(means))

    @property
    def _share(self) -> Array:
        return np.array([w for w, _ in self._mixed])
