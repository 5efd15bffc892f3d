"""Which row to ask a person about next, and what the answers teach.

Rows with a label are asked about in the order of the probability that it is wrong; rows of a pool,
which have none, in the order of what a label would teach. After every few decisions a kernel Gibbs
classifier is fitted again, in the background: what a person has decided is then known to be right
(but for one in a thousand). The others are wrong at the rate of all labels: what was asked about
was chosen by what is recorded and decided alone, so being left over says nothing of its own.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import MercerError, UsageError
from mercer.review.journal import Action, Decision, Journal

Array = NDArray[np.float64]

_SLIP = 1e-3  # P(a person's label is wrong)
_N_NEIGHBOURS = 5
_RARE = 0.01  # a share of rows that is no surprise
_QUICK: dict[str, Any] = {"n_draws": 200, "n_warmup": 100, "n_chains": 2, "progress": False}
# With a pool labels are few: a linear part learns at once, and no half of the labels is wrong. The
# model that so many at least find stays, with its weights of the inputs.
_FEW_LABELS: dict[str, Any] = {"kernel": "rbf + linear", "noise_prior": (1.0, 9.0)}
_ENOUGH_LABELS = 200


class StaleError(UsageError):
    """A decision about a row that is no longer the one to decide: another page was faster."""


@dataclass(frozen=True, eq=False)
class Labels:
    """The rows to go through: inputs, and labels as they stand, None of a row of a pool."""

    X: Array  # (n, d), as an estimator takes them
    recorded: tuple[str | None, ...]  # (n,)
    classes: tuple[str, ...]
    names: tuple[str, ...]  # what the rows are called
    cells: Mapping[str, Sequence[str]]  # column -> text of each row, for a person to read


@dataclass(frozen=True)
class Neighbour:
    """A row near the one in question."""

    name: str
    label: str
    distance: float
    is_decided: bool


@dataclass(frozen=True)
class Question:
    """One row to decide on, with what speaks for and against its label."""

    row: int
    position: int  # lines of the journal when it was asked: a decision must name it
    name: str
    recorded: str | None
    p_wrong: float | None
    suggested: str
    probabilities: dict[str, float]
    cells: dict[str, str]
    neighbours: tuple[Neighbour, ...]
    unusual: tuple[tuple[str, str], ...]  # inputs that speak against the label, and how


@dataclass(frozen=True, eq=False)
class _Known:
    """What a fit says of each row."""

    proba: Array  # (n, C), labels taken into account
    p_wrong: Array  # (n,), that the label in the table is wrong; 0 where there is none
    worth: Array  # (n,), what a label would teach, in nats; of rows without one
    Z: Array  # (n, d), standardised inputs
    settings: dict[str, Any]  # of the classifier, for the next fit
    n_decided: int  # decisions that it has learned from
    n_lines: int  # of the journal then


class Reviewer:
    """The state of a review; the decisions of its journal stand.

    The classifier learns again after ``refit_every`` decisions, never if 0; ``say`` is told in
    words what goes on.
    """

    def __init__(
        self,
        labels: Labels,
        journal: Journal,
        *,
        refit_every: int = 5,
        seed: int = 0,
        say: Callable[[str], None] = lambda words: None,
    ) -> None:
        self.labels, self.journal = labels, journal
        self._refit_every, self._seed, self._say = refit_every, seed, say
        self._lock = threading.RLock()
        self._worker = ThreadPoolExecutor(1, "mercer-review")
        self._refit: Future[None] | None = None
        self._first: _Known | None = None  # what the labels say before any decision
        self._known: _Known | None = None
        self._codes = {label: k for k, label in enumerate(labels.classes)}

    def begin(self) -> None:
        """Learn from the labels, which takes as long as an audit; then from the decisions."""
        self._first = self._known = self._learn(None)
        if self._is_due():
            self._known = self._learn(self._first)

    @property
    def p_wrong(self) -> Array:
        """P(the label in the table is wrong) of each row, shape (n,), as it is known now."""
        return self._now().p_wrong

    def question(self) -> Question | None:
        """Return the row to decide on next; None when all are decided."""
        with self._lock:
            left = self._left()
            return None if not len(left) else self._ask(int(left[0]))

    def decide(self, row: int, action: Action, label: str | None, position: int) -> Question | None:
        """Take a decision, write it down, and return the next question.

        A `StaleError` where the row is decided already, or the question was asked before another
        decision; a `UsageError` where the action or the label is none that this row can have.
        """
        with self._lock:
            if position != self.journal.n_lines:
                raise StaleError("this row was decided elsewhere; here is the next one")
            recorded = self._recorded(row)
            if row in self.journal.standing:
                raise StaleError("this row was decided before; here is the next one")
            allowed = ("keep", "change", "unsure") if recorded is not None else ("label", "unsure")
            if action not in allowed:
                raise UsageError(f"{action!r} is none of {', '.join(allowed)}")
            if action == "unsure":
                label = None
            elif action == "keep":
                label = recorded
            elif label not in self._codes or label == recorded:
                raise UsageError(f"{label!r} is none of the other classes")
            p_wrong = None if recorded is None else round(self._now().p_wrong[row], 6)
            self.journal.add(row, self.labels.names[row], action, recorded, label, p_wrong)
            self._refit_if_due()
            return self.question()

    def undo(self, position: int) -> Question | None:
        """Take the latest decision back, and ask about that row again."""
        with self._lock:
            if position != self.journal.n_lines:
                raise StaleError("something was decided elsewhere; here is the next row")
            standing = list(self.journal.standing.values())
            if not standing:
                raise UsageError("there is no decision to take back")
            last = standing[-1]
            self.journal.add(last.row, last.name, "undo", last.recorded, None, None)
            return self._ask(last.row)

    def progress(self) -> dict[str, Any]:
        """Count what was decided, and what is left to find."""
        with self._lock:
            standing = self.journal.standing.values()
            counts = dict.fromkeys(("keep", "change", "unsure", "label"), 0)
            for decision in standing:
                counts[decision.action] += 1
            left = [row for row in self._left() if self.labels.recorded[row] is not None]
            p_wrong = self._now().p_wrong[left]
            known, n_wrong = self._known, float(p_wrong.sum())
            return {
                **counts,
                "position": self.journal.n_lines,
                "n_decided": len(standing),
                "n_left": len(left),
                "n_rows": len(self.labels.recorded),
                "expected_wrong": round(n_wrong, 1 if n_wrong < 10.0 else None),
                "expected_in_next_ten": round(float(np.sort(p_wrong)[::-1][:10].sum()), 1),
                "is_learning": self._refit is not None and not self._refit.done(),
                "n_learned": 0 if known is None else known.n_decided,
            }

    def final_labels(self) -> list[str | None]:
        """Labels as they stand after all decisions; unsure rows keep theirs."""
        final = list(self.labels.recorded)
        for row, decision in self.journal.standing.items():
            if decision.label is not None:
                final[row] = decision.label
        return final

    def wait(self) -> None:
        """Wait until the classifier has learned what is decided."""
        if self._refit is not None:
            self._refit.result()

    def close(self) -> None:
        """End without waiting for the classifier."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _recorded(self, row: int) -> str | None:
        if isinstance(row, bool) or not 0 <= row < len(self.labels.recorded):
            raise UsageError(f"there is no row {row}")
        return self.labels.recorded[row]

    def _left(self) -> NDArray[np.int64]:
        """Rows that are not decided, those worth most first: the pool before labelled ones."""
        known = self._now()
        is_left = np.ones(len(self.labels.recorded), dtype=np.bool_)
        is_left[list(self.journal.standing)] = False
        is_pool = np.array([label is None for label in self.labels.recorded])
        # A pool is asked about first: that is what it was given for.
        worth = np.where(is_pool, 10.0 + known.worth, known.p_wrong)
        order = np.argsort(-worth, kind="stable")
        return order[is_left[order]]

    def _now(self) -> _Known:
        if self._known is None:
            raise UsageError("begin() was not called")
        return self._known

    def _ask(self, row: int) -> Question:
        known, recorded = self._now(), self.labels.recorded[row]
        proba = known.proba[row]
        others = [k for k, label in enumerate(self.labels.classes) if label != recorded]
        best = max(others, key=lambda k: proba[k])
        near = self._neighbours(row)
        return Question(
            row=row,
            position=self.journal.n_lines,
            name=self.labels.names[row],
            recorded=recorded,
            p_wrong=None if recorded is None else float(known.p_wrong[row]),
            suggested=self.labels.classes[best],
            probabilities={label: float(proba[k]) for k, label in enumerate(self.labels.classes)},
            cells={name: texts[row] for name, texts in self.labels.cells.items()},
            neighbours=near,
            unusual=self._unusual(row, self.labels.classes[best]),
        )

    def _current(self) -> list[str | None]:
        """Labels that hold now; of unsure rows none."""
        labels = list(self.labels.recorded)
        for row, decision in self.journal.standing.items():
            labels[row] = decision.label
        return labels

    def _neighbours(self, row: int) -> tuple[Neighbour, ...]:
        """The nearest other rows with a label, in standardised inputs."""
        Z, labels = self._now().Z, self._current()
        distance = np.sqrt(np.square(Z - Z[row]).sum(axis=1))
        distance[row] = np.inf
        distance[[k for k, label in enumerate(labels) if label is None]] = np.inf
        standing = self.journal.standing
        nearest = np.argsort(distance, kind="stable")[:_N_NEIGHBOURS]
        return tuple(
            Neighbour(
                self.labels.names[k], str(labels[k]), round(float(distance[k]), 3), k in standing
            )
            for k in nearest
            if np.isfinite(distance[k])
        )

    def _unusual(self, row: int, suggested: str) -> tuple[tuple[str, str], ...]:
        """Columns whose value is nearer to what the suggested class has, or more common there."""
        recorded = self.labels.recorded[row]
        if recorded is None:
            return ()
        labels = np.array([label or "" for label in self._current()])
        own, other = labels == recorded, labels == suggested
        own[row] = False
        if not own.any() or not other.any():
            return ()
        found = []
        for name, texts in self.labels.cells.items():
            try:
                values = np.array([float(text) if text else np.nan for text in texts])
            except ValueError:
                is_same = np.array(texts) == texts[row]
                centre, rival = is_same[own].mean(), is_same[other].mean()
                gain = np.log((rival + _RARE) / (centre + _RARE)) if texts[row] else 0.0
                words = f"{texts[row]}: {_percent(centre)} of {recorded}, {_percent(rival)} of "
            else:
                spread = np.nanstd(values)
                if not np.isfinite(values[row]) or not spread > 0.0:
                    continue
                centre, rival = np.nanmedian(values[own]), np.nanmedian(values[other])
                gain = (abs(values[row] - centre) - abs(values[row] - rival)) / spread
                words = f"{texts[row]}: usual is {centre:.4g} in {recorded}, {rival:.4g} in "
            if gain > 0.5:
                found.append((gain, name, words + suggested))
        return tuple((name, words) for _, name, words in sorted(found, reverse=True)[:5])

    def _refit_if_due(self) -> None:
        if self._is_due() and (self._refit is None or self._refit.done()):
            self._refit = self._worker.submit(self._learn_again)

    def _is_due(self) -> bool:
        n_new = self.journal.n_lines - self._now().n_lines  # undone decisions count as well
        return 0 < self._refit_every <= n_new

    def _learn_again(self) -> None:
        """Fit in the background; a fit that fails leaves what was known, and is said."""
        try:
            known = self._learn(self._first)
        except (MercerError, ValueError, ArithmeticError) as error:
            self._say(f"the classifier did not learn from the latest decisions: {error}")
            return
        with self._lock:
            self._known = known

    def _learn(self, first: _Known | None) -> _Known:
        """Learn from the decisions, given what the labels said first: the same after a restart."""
        with self._lock:
            standing, n_lines = dict(self.journal.standing), self.journal.n_lines
            labels = self._current()
        if first is None:
            pairs = zip(self.labels.recorded, labels, strict=True)
            labels, standing, n_lines = [now if was is None else was for was, now in pairs], {}, 0
        if len({*labels} - {None}) < 2:
            self._say("the decisions leave fewer than two classes; learning from recorded labels")
            labels, standing = list(self.labels.recorded), {}
        started = time.monotonic()
        taught = np.array([k for k, label in enumerate(labels) if label is not None])
        y = np.array([self._codes[str(labels[k])] for k in taught])
        is_decided = np.array([k in standing for k in taught])
        settings: dict[str, Any] = _FEW_LABELS if None in self.labels.recorded else {}
        rate: Any = "learn"
        if first is not None:
            settings = first.settings
            rate = np.where(is_decided, _SLIP, self._rate(first.p_wrong, standing))
        X = first.Z if first is not None and "standardize" in settings else self.labels.X
        model = self._fitted(X[taught], y, {**settings, "noise_rate": rate})
        proba = np.zeros((len(labels), len(self.labels.classes)))
        proba[np.ix_(taught, model.classes_)] = model.label_proba_
        rest = np.setdiff1d(np.arange(len(labels)), taught)
        worth = np.zeros(len(labels))
        if len(rest):
            proba[np.ix_(rest, model.classes_)] = model.clean_proba(X[rest])
            worth[rest] = model.information(X[rest])
        if first is None and (settings is not _FEW_LABELS or len(taught) >= _ENOUGH_LABELS):
            settings = {**_best_of(model), "standardize": False}
        Z = model.standardizer_.transform(X)
        words = "again " if first is not None else ""
        self._say(f"learned {words}in {time.monotonic() - started:.1f} s")
        codes = np.array([self._codes.get(label or "", -1) for label in self.labels.recorded])
        own = proba[np.arange(len(codes)), np.maximum(codes, 0)]
        p_wrong = np.where(codes < 0, 0.0, 1.0 - own)
        return _Known(proba, p_wrong, worth, Z, settings, len(standing), n_lines)

    def _fitted(self, X: Array, y: NDArray[np.int64], given: dict[str, Any]) -> Any:
        from mercer.sphere.estimator import KernelGibbsClassifier
        from mercer.sphere.selection import settings_of_many

        many = settings_of_many(len(y), len(self.labels.classes))
        model = KernelGibbsClassifier(**_QUICK, **many, **given, random_state=self._seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an order of rows needs no converged digits
            return model.fit(X, y)

    def _rate(self, p_wrong: Array, standing: Mapping[int, Decision]) -> float:
        """Return the rate of wrong labels: those found, and those expected where none decided."""
        p_wrong = p_wrong.copy()
        for row, decision in standing.items():
            if decision.label is not None:  # unsure says nothing
                p_wrong[row] = decision.label != decision.recorded
        p_wrong = p_wrong[[label is not None for label in self.labels.recorded]]
        return float(np.clip((1.0 + p_wrong.sum()) / (2.0 + len(p_wrong)), _SLIP, 0.45))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _best_of(model: Any) -> dict[str, Any]:
    """Return kernel, length scale and nugget of the most probable model that was compared."""
    table = model.compared_
    if not table.rows:
        return {}
    best = dict(zip(table.columns, table.rows[0], strict=True))
    found = {"kernel": best["kernel"]}
    for name in ("lengthscale", "nugget"):
        if isinstance(best.get(name), (int, float)):
            found[name] = float(best[name])
    return found


def as_json(question: Question | None) -> dict[str, Any] | None:
    """Turn a question into what JSON can hold."""
    return None if question is None else asdict(question)
