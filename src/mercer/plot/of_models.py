"""Plots of a fitted model: what each takes from it, and from rows that are given.

A plot draws what it is handed: a curve, draws, weights. `of_model` lets it take a fitted model in
the place of these, with rows where it needs some, so that ``mercer.plot.reliability(model, X, y)``
and ``model.plot.reliability(X, y)`` are one. Plots that begin with a model anyway need nothing.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from mercer.errors import UsageError, rows_without_names
from mercer.estimation.base import KernelEstimator
from mercer.estimation.inspection import (
    Effects,
    Importance,
    effects_of,
    importance_of,
    permuted_losses,
    plan_look,
)
from mercer.estimation.run import nearest_hint
from mercer.estimation.tasks import (
    CLASSIFICATION,
    REGRESSION,
    Task,
    has_task,
    is_fitted_estimator,
    known_rows,
    task_of,
)
from mercer.posterior.evaluation import HeldClasses
from mercer.posterior.scores import (
    error_coverage_curve,
    fewest_class,
    gains_curve,
    interval_coverage,
    pit_histogram,
    reliability_curve,
)

Result = TypeVar("Result")
Given = tuple[tuple[Any, ...], dict[str, Any]]  # what a plot is called with


def of_model(draw: Callable[..., Result]) -> Callable[..., Result]:
    """Let a plot take a fitted model, and rows where it needs some, for what it draws.

    The rest of its arguments stays as it is.
    """
    given = _GIVEN[draw.__name__]
    signature = inspect.signature(given)
    names = set(signature.parameters)

    @functools.wraps(draw)
    def plot(*args: Any, **kwargs: Any) -> Result:
        if not (args and is_fitted_estimator(args[0])):
            return draw(*args, **kwargs)
        own = {name: kwargs.pop(name) for name in names & kwargs.keys()}
        try:
            signature.bind(*args, **own)
        except TypeError as error:
            raise UsageError(f"{draw.__name__} of a model: {error}") from None
        with rows_without_names():  # those of a frame are checked, and then an array
            drawn, how = given(*args, **own)
        return draw(*drawn, **{**how, **kwargs})

    return plot


def _held(model: Any, X: Any, y: Any, task: Task) -> Any:
    """What a model says of rows with a known target: `HeldClasses` or `HeldTargets`."""
    if not has_task(model, task):
        wanted = "laws of numbers" if task is REGRESSION else "classes"
        raise UsageError(f"this plot is of {wanted}, which {type(model).__name__} does not predict")
    rows, known, _, _ = known_rows(model, X, y)
    return task.answer(model, rows, known, float("nan"))


def _of_held(task: Task, given: Callable[[Any], Given]) -> Callable[[Any, Any, Any], Given]:
    """Take what a plot draws from what a model says of rows with a known target."""
    return lambda model, X, y: given(_held(model, X, y, task))


def _gains(held: HeldClasses) -> Given:
    """Rows of the class that the fewest are of."""
    fewest = fewest_class(held.y_index, held.proba.shape[1])
    return (gains_curve(held.y_index == fewest, held.proba[:, fewest]),), {}


def _importance(model: Any, X: Any, y: Any) -> Given:
    found = _measured(model, X, y)
    how = {"repeats": found.repeats}
    return (found.log_score, found.log_score_error, found.names), how


def _measured(model: Any, X: Any, y: Any) -> Importance:
    """The importance of the inputs on held-out rows."""
    rows, known, classes, _ = known_rows(_mercers(model), X, y)
    n, inputs = len(known), model._inputs()
    look = plan_look(inputs, rows, known, n_rows=n, n_classes=len(classes), entropy=0, model=model)
    parts = [permuted_losses(model, rows, known, look)]
    return importance_of(look, parts, is_classes=len(classes) > 0)


def _curves(model: Any, X: Any, y: Any, columns: Sequence[int | str] | None) -> Effects:
    """How inputs act: those that are named, or all in their order; ten at most are drawn."""
    rows, inputs = _mercers(model)._new_rows(X), model._inputs()
    if y is not None and len(y) != len(rows):
        raise UsageError("y needs one target for each row of X; inputs are named as columns=")
    order = list(range(len(inputs)))
    if columns is not None:
        columns = [columns] if isinstance(columns, (str, int)) else columns
        unknown = [str(c) for c in columns if c not in inputs.names and c not in order]
        if unknown:
            raise UsageError(
                f"there is no input {unknown[0]!r}{nearest_hint(unknown[0], inputs.names)}"
            )
        order = [inputs.names.index(c) if isinstance(c, str) else int(c) for c in columns]
    classes = () if task_of(model) is REGRESSION else tuple(model.classes_.tolist())
    is_asked = columns is not None
    return effects_of(model, rows, inputs, order=order, classes=classes, all_parts=is_asked)


# Targets say nothing here: they may be given as to other plots of held-out rows.


def _effects(
    model: Any, X: Any, y: Any = None, *, columns: Sequence[int | str] | None = None
) -> Given:
    return (_curves(model, X, y, columns),), {}


def _pair_effect(
    model: Any, X: Any, y: Any = None, *, columns: Sequence[int | str] | None = None
) -> Given:
    pair = _curves(model, X, y, columns).pair
    if pair is None:
        raise UsageError("there is no pair of inputs that vary")
    return (pair,), {}


def _relevance(model: Any) -> Given:
    if not hasattr(model, "relevance_"):
        raise UsageError("this kernel has no weight for each input; take importance(X, y)")
    return (model.relevance_, model.feature_labels_), {
        "prior_interval": model.prior_weight_interval_
    }


def _target_errors(model: Any) -> Given:
    if not hasattr(model, "target_error_proba_"):
        raise UsageError('only a regressor fitted with noise="contaminated" says which are wrong')
    laws = (model.expected_target_, model.expected_target_std_, model.target_error_proba_ > 0.5)
    return (model.recorded_, *laws), {}


def _of_draws(model: Any, names: Sequence[str] | None = None) -> Given:
    return (_mercers(model).posterior_, names), {}


def _mercers(model: Any) -> Any:
    if not isinstance(model, KernelEstimator):
        raise UsageError(f"this plot is of estimators of mercer, not of a {type(model).__name__}")
    return model


_GIVEN: Final[dict[str, Callable[..., Given]]] = {
    "effects": _effects,
    "error_coverage": _of_held(
        CLASSIFICATION, lambda held: ((error_coverage_curve(held.y_index, held.proba),), {})
    ),
    "evidence_curve": lambda model: ((model.evidence_curve_,), {"noise_rate": model.noise_rate_}),
    "gains": _of_held(CLASSIFICATION, _gains),
    "importance": _importance,
    "interval_coverage": _of_held(REGRESSION, lambda held: ((interval_coverage(held.pit),), {})),
    "label_errors": lambda model: ((model.label_error_proba_,), {}),
    "laplace_distance": lambda model, X: (
        (model.rows_per_region(X), model.laplace_distance(X).differences),
        {},
    ),
    "pair_effect": _pair_effect,
    "particles": _of_draws,
    "pit": _of_held(REGRESSION, lambda held: ((pit_histogram(held.pit),), {})),
    "predictions": _of_held(
        REGRESSION, lambda held: ((held.y, held.mean, held.lower, held.upper), {})
    ),
    "prequential": lambda model, window=None: ((model.log_predictive_, window), {}),
    "ranks": _of_draws,
    "relevance": _relevance,
    "reliability": _of_held(
        CLASSIFICATION,
        lambda held: ((reliability_curve(*held.judged),), {"probabilities": held.judged[1]}),
    ),
    "residuals": _of_held(REGRESSION, lambda held: ((held.y, held.mean), {})),
    "target_errors": _target_errors,
    "trace": _of_draws,
}

_OF_ALL = ("effects", "importance", "pair_effect")
_OF_CLASSES = ("error_coverage", "gains", "reliability")
_OF_NUMBERS = ("interval_coverage", "pit", "predictions", "residuals")


def _signature(name: str, function: Callable[..., Any]) -> inspect.Signature:
    """What a plot of a model takes, as editors and notebooks show it: rows, then how it looks."""
    whole = inspect.signature(function)
    own = list(inspect.signature(_GIVEN.get(name, function)).parameters.values())[1:]
    known = {each.name for each in own}
    further = [
        each
        for each in whole.parameters.values()
        if each.kind is each.KEYWORD_ONLY and each.name not in known
    ]
    plain = [each.replace(annotation=each.empty) for each in (*own, *further)]
    return inspect.Signature(plain, return_annotation=whole.return_annotation)


class ModelPlots:
    """The plots of one fitted model, each a method: ``model.plot.reliability(X, y)``.

    What a method draws, and what else it takes, is said of the function of that name in
    `mercer.plot`, which is the same with the model before the rest.
    """

    def __init__(self, model: KernelEstimator) -> None:
        self._model = model

    def __dir__(self) -> list[str]:
        model = self._model
        is_fitted_estimator(model)
        if task_of(model) is REGRESSION:
            own = _OF_NUMBERS + ("predicted_band",) * (len(model.feature_labels_) == 1)
        else:
            own = _OF_CLASSES
        draws: tuple[str, ...] = ()
        if model.posterior_.monitored:  # a maximum alone is no draw
            draws = ("particles",) if model.posterior_.is_weighted else ("ranks", "trace")
        return sorted({*_OF_ALL, *own, *draws, *model._plots})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        known = dir(self)
        if name not in known:
            kind = type(self._model).__name__
            raise AttributeError(
                f"{kind} has no plot {name!r}{nearest_hint(name, known)}; it has {', '.join(known)}"
            )
        function: Callable[..., Any] = getattr(importlib.import_module("mercer.plot"), name)
        bound: Any = functools.partial(function, self._model)
        functools.update_wrapper(bound, function)
        bound.__signature__ = _signature(name, function)
        return bound

    def __repr__(self) -> str:
        return f"plots of {type(self._model).__name__}: {', '.join(dir(self))}"
