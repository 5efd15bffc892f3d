"""The table of models: a new method adds one line here.

Names in model files and on the command line are looked up here and nowhere else, so a file can
only ever name a class that this table knows.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mercer.data.files import nearest
from mercer.errors import DataError, ModelFileError, UsageError
from mercer.estimation.model_file import (
    ModelParts,
    TableModel,
    encoding_from,
    read_parts,
    table_model_from,
)

__all__ = [
    "MODELS",
    "ModelEntry",
    "SavedModel",
    "able_models",
    "check_name",
    "choose_model",
    "hint_of_model",
    "load",
    "model_names",
    "name_of",
    "read_model",
]


@dataclass(frozen=True)
class ModelEntry:
    """One model of the command line.

    Attributes
    ----------
    name : str
        Name of the method: what ``--model`` takes, and the folder.
    task : {"classification", "regression"}
    estimator : str
        Class name, as model files hold it.
    home : str
        Module that defines it.
    summary : str
        One line for people.
    max_classes : int
        The most classes that a classifier can tell apart.
    auto_rows : int or None
        The most rows for which "auto" takes it; None for any number.
    auto_rows_of_several : int
        The same of C classes, three and more: this over the cube root of C, so that factorisations
        of rows by rows, one a class, take the same time.
    warm_up : str
        Function that compiles its loops ahead.
    compiler : str
        Module of the method where that function is.
    quicker : tuple of dict
        Arguments of quicker settings, the quickest first: by them it is scored before its own.
    is_combined : bool
        Whether it is made of others: it is taken only where it is named.
    """

    name: str
    task: str
    estimator: str
    home: str
    summary: str
    max_classes: int = 0
    auto_rows: int | None = None
    auto_rows_of_several: int = 3605
    warm_up: str = "compile_loops"
    compiler: str = "fitting"
    quicker: tuple[Mapping[str, Any], ...] = ()
    is_combined: bool = False

    def most_rows(self, n_classes: int) -> float:
        """Return the most rows of so many classes (0: numbers) for which "auto" takes it."""
        if self.auto_rows is None:
            return math.inf
        if n_classes <= 2:
            return self.auto_rows
        return int(self.auto_rows_of_several * n_classes ** (-1.0 / 3.0))

    def compile_loops(self, tell: Callable[[str], None]) -> None:
        """Compile what the method needs, where that is not done yet; ``tell`` is told first."""
        if self.is_combined:
            for entry in MODELS:
                if entry.task == self.task and not entry.is_combined:
                    entry.compile_loops(tell)
            return
        method = self.home.rpartition(".")[0]
        getattr(importlib.import_module(f"{method}.{self.compiler}"), self.warm_up)(tell)

    def estimator_class(self) -> Any:
        """Import and return the class."""
        return getattr(importlib.import_module(self.home), self.estimator)


_MAXIMUM = {
    "kernel": "rbf",
    "inference": "map",
    "integration": "laplace",
    "n_leapfrog": None,
    "step_size": None,
}
_FEW_SWEEPS = ({"n_draws": 10, "n_warmup": 10}, {"n_draws": 30, "n_warmup": 20})
_FEW_PARTICLES = ({"n_particles": 50},)

MODELS = (
    ModelEntry(
        name="gp",
        task="classification",
        estimator="GPClassifier",
        home="mercer.gp.estimator",
        compiler="laplace",
        summary="Gaussian process classification",
        max_classes=50,
        auto_rows=5000,
        quicker=(_MAXIMUM,),
    ),
    ModelEntry(
        name="spectral",
        task="classification",
        estimator="BaNKClassifier",
        home="mercer.spectral.classifier",
        warm_up="compile_class_loops",
        summary="BaNK: random Fourier features whose spectral density is learned, for classes",
        max_classes=20,
        quicker=_FEW_SWEEPS,
    ),
    ModelEntry(
        name="sphere",
        task="classification",
        estimator="KernelGibbsClassifier",
        home="mercer.sphere.estimator",
        summary="kernel Gibbs sampler: classification when some labels are wrong",
        max_classes=50,
        quicker=(
            {"lengthscale": "median", "nugget": 0.1, "n_draws": 20, "n_warmup": 20},
            {"lengthscale": "median", "n_draws": 50, "n_warmup": 20},
        ),
    ),
    ModelEntry(
        name="gp",
        task="regression",
        estimator="GPRegressor",
        home="mercer.gp.regressor",
        compiler="laplace",
        summary="Gaussian process regression",
        auto_rows=5000,
        quicker=(_MAXIMUM,),
    ),
    ModelEntry(
        name="spectral",
        task="regression",
        estimator="BaNKRegressor",
        home="mercer.spectral.estimator",
        summary="BaNK: random Fourier features whose spectral density is learned",
        quicker=_FEW_SWEEPS,
    ),
    ModelEntry(
        name="basis",
        task="regression",
        estimator="SequentialKernelRegressor",
        home="mercer.basis.estimator",
        compiler="learner",
        summary="sequential Bayesian kernel regression: one pass, for streams",
        quicker=_FEW_PARTICLES,
    ),
    ModelEntry(
        name="basis",
        task="classification",
        estimator="SequentialKernelClassifier",
        home="mercer.basis.classifier",
        compiler="learner",
        warm_up="compile_class_loops",
        summary="sequential Bayesian kernel classification: one pass, for streams",
        max_classes=50,
        quicker=_FEW_PARTICLES,
    ),
    ModelEntry(
        name="stack",
        task="classification",
        estimator="MercerClassifier",
        home="mercer.stacking.estimator",
        summary="all of these and gradient boosting, mixed by what they said of held-out rows",
        max_classes=50,
        quicker=({"n_folds": 2},),
        is_combined=True,
    ),
    ModelEntry(
        name="stack",
        task="regression",
        estimator="MercerRegressor",
        home="mercer.stacking.estimator",
        summary="all of these and gradient boosting, mixed by what they said of held-out rows",
        quicker=({"n_folds": 2},),
        is_combined=True,
    ),
)


@dataclass(frozen=True)
class SavedModel:
    """A model file, read."""

    estimator: Any
    table: TableModel | None
    manifest: dict[str, Any]

    @property
    def outputs(self) -> tuple[SavedModel, ...]:
        """Models of each of several targets, or of the only one."""
        names: tuple[str, ...] = getattr(self.estimator, "output_names_", ())
        own: Sequence[TableModel | None] = () if self.table is None else self.table.outputs
        return tuple(
            SavedModel(self.estimator.output(k), own[k] if own else None, self.manifest)
            for k in range(len(names))
        ) or (self,)


def model_names() -> tuple[str, ...]:
    """Return the names that ``--model`` takes beside "auto"."""
    return tuple(dict.fromkeys(entry.name for entry in MODELS))


def name_of(estimator: Any) -> str:
    """Return the name of the model that an estimator is of, or else that of its class."""
    kind = type(estimator).__name__
    return next((entry.name for entry in MODELS if entry.estimator == kind), kind)


def check_name(name: str) -> None:
    """Refuse a name that is neither "auto" nor that of a model.

    Raises
    ------
    UsageError
        Naming the nearest.
    """
    known = model_names()
    if name != "auto" and name not in known:
        hint = hint_of_model(name, known)
        raise UsageError(f"no model {name!r}; there is: auto, {', '.join(known)}{hint}")


def hint_of_model(word: str, known: Sequence[str]) -> str:
    """Return "; did you mean 'x'?" for a misspelt name, or for a part of a class's name."""
    part = "".join(filter(str.isalnum, word)).lower()
    meant = {entry.name for entry in MODELS if part in entry.estimator.lower()} & set(known)
    return nearest(meant.pop() if len(meant) == 1 else word, known)


def able_models(task: str, n_classes: int) -> list[ModelEntry]:
    """Return the models for a task that can tell so many classes apart; of regression, all."""
    return [
        entry
        for entry in MODELS
        if entry.task == task and (task == "regression" or entry.max_classes >= n_classes)
    ]


def choose_model(name: str, task: str, n_classes: int, n_rows: int) -> ModelEntry:
    """Return the entry for ``--model NAME``, "auto" included, that fits the task.

    Parameters
    ----------
    name : str
    task : {"classification", "regression"}
    n_classes : int
        Number of classes of the target; does not matter for regression.
    n_rows : int
        Number of rows of the table: "auto" leaves out models that would take hours.

    Raises
    ------
    UsageError
        If there is no such model, or it is not for the task, or none is.
    DataError
        If the target has more classes than any model can tell apart.
    """
    check_name(name)
    fitting = [entry for entry in MODELS if entry.task == task]
    if not fitting:
        raise UsageError(f"no model here does {task} yet; there is: {', '.join(model_names())}")
    named = [
        entry
        for entry in fitting
        if name == entry.name or (name == "auto" and not entry.is_combined)
    ]
    if not named:
        others = ", ".join(entry.name for entry in fitting)
        raise UsageError(f"model {name} is not for {task}; --model {others} is, or use --task")
    able = [entry for entry in able_models(task, n_classes) if entry in named]
    if task == "classification" and not able:
        most = max(entry.max_classes for entry in named)
        name_hint = "; is it a name of the rows?" if 2 * n_classes > n_rows else ""
        raise DataError(
            f"the target has {n_classes} classes, and no model here tells more than {most} apart"
            f"{name_hint}"
        )
    if name == "auto":
        able = [entry for entry in able if entry.most_rows(n_classes) >= n_rows] or able
    return able[0]


def read_model(path: str | os.PathLike[str]) -> SavedModel:
    """Read a model file with all that is in it; no code of the file is run.

    Raises
    ------
    ModelFileError
        If the file is damaged, foreign, of a newer version, or inconsistent.
    StorageError
        If it cannot be read.
    """
    manifest, arrays = read_parts(path)
    entries = {entry.estimator: entry for entry in MODELS}
    entry = entries.get(str(manifest.get("estimator")))
    if entry is None:
        raise ModelFileError(f"{path}: unknown estimator {str(manifest.get('estimator'))[:80]!r}")
    parts = ModelParts(manifest["params"], manifest["fields"], arrays)
    try:
        estimator = entry.estimator_class()._from_parts(parts)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise ModelFileError(f"{path}: inconsistent model file: {error}") from error
    table = table_model_from(manifest, arrays)
    names = getattr(estimator, "output_names_", ())
    if table is not None and tuple(each.target for each in table.outputs) != names:
        raise ModelFileError(f"{path}: inconsistent model file: its targets are not its outputs")
    encoding = encoding_from(manifest) if table is None else table.encoder
    if encoding is not None:
        if len(encoding.feature_names) != len(estimator.feature_labels_):
            raise ModelFileError(f"{path}: inconsistent model file: its encoding has other inputs")
        from mercer.estimation.table_encoder import TableEncoder

        estimator.encoder_ = TableEncoder.of(encoding)
        estimator.encoder_.name_inputs(estimator)
        if getattr(estimator, "encode", "auto") is None:  # it was an encoder
            estimator.encode = TableEncoder(estimator.encoder_.missing)
    return SavedModel(estimator, table, manifest)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator that its ``save`` or the command line has written.

    Nothing in the file is executed: it is safe to load from a stranger.

    Parameters
    ----------
    path : path

    Returns
    -------
    estimator
        Fitted; predictions are the same to the last bit.

    Raises
    ------
    ModelFileError, StorageError
        As `read_model`.
    """
    return read_model(path).estimator
