"""The work of `mercer fit`: settings, a plan of the run, the fit."""

from __future__ import annotations

import functools
import hashlib
import json
import shlex
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count

from mercer.cli.options import TableOptions
from mercer.cli.outputs import make_provenance
from mercer.cli.tables import (
    UNSCORED,
    ScoringOptions,
    Split,
    TrainingTable,
    far_words,
    read_training,
    refuse_conflicts,
    split_rows,
)
from mercer.cli.terminal import Session, spoken
from mercer.data.files import nearest, printable, quoted
from mercer.data.frame import may_leak, strengths_alone
from mercer.errors import (
    DataError,
    MercerError,
    ModelFileError,
    NumericalError,
    RowsError,
    StorageError,
    UsageError,
)
from mercer.estimation.cross_validate import for_folds
from mercer.estimation.splits import fit_groups
from mercer.models import ModelEntry, able_models, check_name, choose_model
from mercer.posterior.container import load_json, mercer_version, write_atomically
from mercer.posterior.evaluation import Provenance
from mercer.posterior.positive_laws import CONTAMINATED, CONTAMINATED_LOGNORMAL, WITH_ERRORS
from mercer.sampling.checkpoint import digest_arrays

# ``--set NAME=VALUE``: from words to arguments of an estimator.

_WORDS: dict[str, Any] = {"true": True, "false": False, "none": None}
_OWN_OPTIONS = {
    "random_state": "--seed", "checkpoint": "--checkpoint",
    "encode": "--missing, --dates and --categories",
    "missing": "--missing",
}  # fmt: skip


def parse_value(text: str) -> Any:
    """Read a whole number, a number, numbers with commas, true, false, none, or else text.

    Examples
    --------
    >>> [parse_value(text) for text in ("3", "0.1", "true", "none", "nuts", "1,9")]
    [3, 0.1, True, None, 'nuts', (1.0, 9.0)]
    """
    for read in (int, float, _numbers):
        try:
            return read(text)
        except ValueError:
            continue
    return _WORDS.get(text.lower(), text)


def _numbers(text: str) -> tuple[float, ...]:
    parts = text.split(",")
    if len(parts) < 2:
        raise ValueError
    return tuple(float(part) for part in parts)


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Read NAME=VALUE pairs; the last of a name counts.

    A `UsageError` if one is not of this form.
    """
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set takes NAME=VALUE, such as n_draws=500; got {quoted(text)}")
        settings[name.strip()] = parse_value(value.strip())
    return settings


def always(seed: int, missing: str = "error") -> dict[str, Any]:
    """Arguments that the command line gives to every model, unless ``--set`` does."""
    common: dict[str, Any] = {"random_state": seed, "standardize": "auto"}
    return {**common, "missing": missing} if missing == "posterior" else common


def features_of_many(
    entry: ModelEntry, settings: dict[str, Any], n: int, n_classes: int = 0
) -> dict[str, Any]:
    """Say what sphere takes of many rows, of so many classes in memory, unless settings do."""
    from mercer.kernels.names import KERNELS
    from mercer.sphere.selection import settings_of_many

    has_matrices = settings.get("kernel", "rbf") in KERNELS.keys() - {"linear"}
    if entry.name != "sphere" or not has_matrices:
        return {}
    return settings_of_many(n, n_classes, settings.get("noise_rate", "learn"))


def features_words(estimator: Any) -> str:
    """Say, after what the model is, that it has finite features, and no chains."""
    params = estimator.get_params()
    rank = params.get("rank")
    said = "" if rank is None else f", {rank} features in place of its kernel"
    if params.get("sampler") == "propagation":
        said += ", expectation propagation in place of chains"
    return said


def make_estimator(
    estimator_class: Any,
    settings: dict[str, Any],
    common: dict[str, Any],
    others: Sequence[ModelEntry] = (),
) -> Any:
    """Construct an unfitted estimator and have it check its arguments.

    ``settings``, from ``--set``, go before ``common``, what the command line decides, of which is
    left out what the model does not know. A `UsageError` if a setting is unknown (those of the
    ``others`` that have it, or the nearest, are named), has an option of its own, or is out of its
    range.
    """
    estimator = estimator_class()
    known = estimator.get_params()
    for name in settings:
        if name in _OWN_OPTIONS:
            raise UsageError(f"--set {name}: use {_OWN_OPTIONS[name]}")
        if name not in known:
            hint = _models_with(name, others) or nearest(name, known)
            hint = hint or f"; there is: {', '.join(known)}"
            raise UsageError(
                f"--set {quoted(name)}: {estimator_class.__name__} has no such argument{hint}"
            )
    taken = {name: value for name, value in common.items() if name in known}
    estimator.set_params(**{**taken, **settings})
    try:
        estimator._check_arguments()
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error
    return estimator


def _models_with(name: str, entries: Sequence[ModelEntry]) -> str:
    """Say which models have an argument; empty where none has."""
    having = [f"--model {e.name}" for e in entries if name in e.estimator_class()().get_params()]
    return f"; it is one of {' and '.join(having)}" if having else ""


def in_order(settings: dict[str, Any], order: Sequence[Any]) -> dict[str, Any]:
    """Let ``ordered=true`` be the order of the classes that the file knows, if it does."""
    is_asked = order and settings.get("ordered") is True
    return {**settings, "ordered": list(order)} if is_asked else settings


def by_positions(estimator: Any, classes: Sequence[Any]) -> Any:
    """Turn an order of labels into one of their positions, which folds have in their place.

    A `UsageError` if the labels are others.
    """
    ordered = estimator.get_params(deep=False).get("ordered", False)
    if ordered is False:
        return estimator
    from mercer.spectral.class_fitting import order_of_labels

    order = order_of_labels(ordered, np.array(classes), None)
    return estimator.set_params(ordered=order.tolist())


# ``--checkpoint DIR``: the identity of a command, so that only the same one goes on from it.

_LIMIT = 2**20  # bytes of run.json


def data_digest(table: TrainingTable) -> str:
    """SHA-256 of what a model sees of a table: names, inputs, classes and targets."""
    import numpy as np

    words = json.dumps([table.encoder.to_dict(), [str(label) for label in table.classes]])
    return digest_arrays(np.frombuffer(words.encode(), dtype=np.uint8), table.X, table.y)


def claim_folder(folder: Path, data: str, options: dict[str, Any], session: Session) -> None:
    """Write the identity of a command into a folder, or check the one that is there; say which.

    ``data`` is the digest of the rows. A `ModelFileError` if it belongs to other data, other
    options or another version, and names the difference; a `StorageError` if it cannot be read or
    written.
    """
    mine = {"mercer": mercer_version(), "data": data, "options": options}
    path = folder / "run.json"
    name = printable(str(path))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            write_atomically(path, (json.dumps(mine, indent=2).encode(),))
            session.say("resume", f"the state is kept in {folder}")
            return
        with open(path, "rb") as stream:
            found = load_json(stream.read(_LIMIT), "run file")
    except ValueError as error:
        raise ModelFileError(f"{name}: {error}; remove the folder to begin again") from None
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"{name}: {error.strerror}") from error
    difference = _difference(found, json.loads(json.dumps(mine)))
    if difference:
        raise ModelFileError(
            f"{name}: begun with {difference}; use another --checkpoint folder, or remove this one"
        )
    session.say("resume", f"going on from {folder}")


def _difference(found: dict[str, Any], mine: dict[str, Any]) -> str:
    """Name the first difference: "seed 1, and this is seed 2"."""
    if found.get("mercer") != mine["mercer"]:
        return f"mercer {found.get('mercer')}, and this is {mine['mercer']}"
    if found.get("data") != mine["data"]:
        then, now = str(found.get("data"))[:12], mine["data"][:12]
        return f"other data (SHA-256 {then}..., now {now}...)"
    before = found.get("options")
    before = before if isinstance(before, dict) else {}
    last = "scored rows"  # others decide which they are
    for key in sorted({*before, *mine["options"]}, key=lambda key: (key == last, key)):
        old, new = before.get(key), mine["options"].get(key)
        if old != new:
            return f"{key} {old!r}, and this is {new!r}"
    return ""


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be fitted, and with which resources."""

    entry: ModelEntry
    table: TrainingTable
    split: Split
    estimator: Any  # unfitted, as it will be saved
    seed: int
    n_jobs: int
    checkpoint: Path | None
    given: frozenset[str]  # arguments of ``--set``

    @property
    def label(self) -> str:
        """Name of the model in tables."""
        return f"mercer {self.entry.name}"

    @property
    def is_scored_itself(self) -> bool:
        """Whether the saved model is the one that is scored."""
        return self.split.train is not None

    @property
    def outputs(self) -> tuple[Plan, ...]:
        """Plans of each of several targets, or of the only one."""
        return tuple(map(self._output, range(len(self.table.targets)))) or (self,)

    def _output(self, k: int) -> Plan:
        folds = tuple(
            replace(fold, y_train=fold.y_train[:, k], y_test=fold.y_test[:, k])
            for fold in self.split.folds
        )
        return replace(self, table=self.table.output(k), split=replace(self.split, folds=folds))


@dataclass(frozen=True, eq=False)
class Fitted:
    """The model that is saved."""

    estimator: Any
    n_rows: int
    seconds: float
    variance: Any  # of the targets of these rows, a list of several; None of classes

    def output(self, k: int) -> Fitted:
        """Return the model of one of several targets."""
        estimator = self.estimator.output(k)
        return replace(self, estimator=estimator, variance=self.variance[k])


def fit_final(plan: Plan, session: Session) -> Fitted:
    """Fit the model that is saved, with all its chains and its own progress bar."""
    table = plan.table
    started = time.perf_counter()
    estimator = plan.estimator
    # Without a data frame scikit-learn has no way to pass the names of columns to `fit`.
    estimator._names_of_columns = table.encoder.feature_names
    estimator._sources_of_columns = table.encoder.sources
    estimator._names_of_rows = table.names.without_ids()
    if table.encoder.learns:
        estimator._table_of_rows = table.inputs, table.encoder
    try:
        with session.warnings_as_lines(), session.at_work("fitting"):
            # What `constant_columns` has said.
            warnings.filterwarnings("ignore", "(all columns are|constant columns)")
            groups = fit_groups(estimator, table.groups)
            labels = table.labels  # files keep text of fixed width as such
            labels = labels.astype(str) if labels.dtype == object else labels
            estimator.fit(table.X, labels, **groups)
    except RowsError as error:
        raise about_file(error, table) from error
    except (MercerError, TimeoutError):
        raise
    except ValueError as error:
        raise DataError(f"{printable(table.source)}: {error}") from error
    seconds = time.perf_counter() - started
    # How it was run is no part of the model: the file is the same for any number of processes.
    estimator.set_params(progress="auto", checkpoint=None)
    if "n_jobs" in estimator.get_params():
        estimator.set_params(n_jobs=None)
    if table.targets:
        estimator.output_names_ = table.targets
    variance = None if table.classes else table.task.variance(table.y)
    return Fitted(estimator, len(table.y), seconds, variance)


def plan_provenance(plan: Plan, fitted: Fitted, target: str) -> Provenance:
    """Say of a model that a plan was fitted to where it came from."""
    table = plan.table
    said = (table.reason, *table.notes)
    return provenance_of(fitted, table.source, table.encoder.feature_names, target, plan.seed, said)


def provenance_of(
    fitted: Fitted, source: str, inputs: Sequence[str], target: str, seed: int, said: Sequence[str]
) -> Provenance:
    """Say of a model where it came from; ``said`` are notes on the table."""
    # A run that was resumed gives the same file as one that was not.
    notes = [note for note in fitted.estimator.notes_ if not note.startswith("resumed")]
    return make_provenance(
        source,
        tuple(inputs),
        target=target,
        n_rows=fitted.n_rows,
        seed=seed,
        seconds=fitted.seconds,
        notes=(*said, *notes),
    )


def refuse_unconverged(fitted: Fitted) -> None:
    """Raise `NumericalError` with what the diagnostics warn of, if they do: ``--strict``."""
    warnings = fitted.estimator.diagnostics_.warnings
    if warnings:
        raise NumericalError(f"--strict: {' '.join(warnings)}")


def about_file(error: RowsError, table: TrainingTable) -> DataError:
    """Return an error about rows of an array as one about rows of the user's file."""
    return DataError(f"{printable(table.source)}: {table.names.listed(error.rows)}{error.words}")


def constant_columns(table: TrainingTable) -> str:
    """Say which inputs are constant; empty if none is, or a hint on names of rows has said it."""
    features = np.array(table.encoder.feature_names, dtype=object)
    is_constant = np.ptp(table.X, axis=0) == 0
    if is_constant.all():
        return (
            f"all inputs are constant ({', '.join(map(quoted, features[:5]))}), so there is "
            "nothing to learn: the predictions are the prior's and say nothing of a row"
        )
    codes, n = table.encoder.codes, table.inputs.n_rows
    told = [code.name for code in codes if code.differs_in_every(n)]
    names = features[is_constant & ~np.isin(table.encoder.sources, told)]
    if not len(names):
        return ""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    if (np.abs(table.X[0, np.isin(features, names)]) > 2.0**53).any():
        more += " (of such long numbers 15 digits count; as names of rows --id keeps all)"
    return f"constant, so without effect: {', '.join(map(quoted, names[:5]))}{more}"


# From the options of `mercer fit` to what is fitted, each choice said in one line.

LARGE = 2000  # rows, above which an n x n method is slow


@dataclass(frozen=True)
class FitOptions:
    """The options of `mercer fit` that decide what is fitted.

    `audit` has no scoring, and takes the model that audits such a table.
    """

    data: str
    table: TableOptions
    scoring: ScoringOptions | None
    model: str
    settings: tuple[str, ...]
    seed: int
    jobs: int | None
    checkpoint: Path | None


def make_plan(options: FitOptions, session: Session) -> Plan:
    """Read the table, choose the model and the split, and say so."""
    settings = parse_settings(options.settings)
    if options.model != "auto":
        check_name(options.model)  # before any reading
    table = read_training(options.data, options.table, may_be_several=options.scoring is not None)
    describe_table(table, session)
    settings = in_order(settings, table.order)
    n_rows, model = len(table.labels), options.model
    if options.scoring is None:
        model, settings = _auditor(table, options.model, settings, session)
    model = _able_to_do(options, table, model)
    n_counted = table.n_costly if model == "auto" else n_rows
    entry = choose_model(model, table.task.name, len(table.classes), n_counted)
    n_jobs = options.jobs or cpu_count()
    checkpoint = options.checkpoint
    common = {**always(options.seed, options.table.missing), "n_jobs": n_jobs}
    if session.is_json:
        common["progress"] = False
    if checkpoint is not None:
        common["checkpoint"] = str(checkpoint / "fit")
    able = able_models(table.task.name, len(table.classes))
    common |= features_of_many(entry, settings, n_rows, len(table.classes or ()))
    estimator = make_estimator(entry.estimator_class(), settings, common, able)
    refuse_conflicts(table, estimator)
    _describe_model(options, entry, estimator, table, session)
    if table.targets:
        words = f"{', '.join(table.targets)}: one kernel, a function and noise each"
        session.say("targets", words)
    _warn_of_size(entry, estimator, table.n_costly if entry.name == "gp" else n_rows, session)
    _warn_of_hours(entry, estimator, n_rows, len(table.classes or ()), session)
    entry.compile_loops(functools.partial(session.note, ""))
    split = UNSCORED
    if options.scoring is not None:
        split = split_rows(table, options.table.target, options.scoring, options.seed)
        _describe_split(split, estimator, session)
        table = table if split.train is None else table.part(split.train)
    if checkpoint is not None:
        identity = identity_of(options, entry, settings, split)
        claim_folder(checkpoint, data_digest(table), identity, session)
    session.say("seed", str(options.seed))
    return Plan(
        entry, table, split, estimator, options.seed, n_jobs, checkpoint, frozenset(settings)
    )


def _able_to_do(options: FitOptions, table: TrainingTable, model: str) -> str:
    """Return BaNK where only it does what is asked for; a `UsageError` if another is named."""
    lacks = {
        "learns one target; spectral learns several": bool(table.targets),
        "does not draw missing inputs; spectral does": options.table.missing == "posterior",
    }
    asked = [words for words, is_asked in lacks.items() if is_asked]
    if asked and model not in ("auto", "spectral"):
        raise UsageError(f"--model {model} {asked[0]}")
    return "spectral" if asked else model


_AUDITORS = {"classification": ("sphere",), "regression": ("gp", "spectral")}
_MOST_AUDITED = 1000  # rows of numbers, by a Gaussian process: more are not fitted with errors


def _auditor(
    table: TrainingTable, model: str, settings: dict[str, Any], session: Session
) -> tuple[str, dict[str, Any]]:
    """Return the model that audits a table, and its settings.

    Of numbers "auto" is BaNK above the rows of a Gaussian process, unless settings are given that
    only the latter has; where the noise is a factor, and it is not given, logarithms are audited,
    and ``session`` says so. A `UsageError` if the targets are numbers of which there are two: they
    are classes; or for a model that does not audit such a table.
    """
    able = _AUDITORS[table.task.name]
    if model not in ("auto", *able):
        raise UsageError(
            f"--model {model} does not audit {table.task.name}: {' or '.join(able)} does"
        )
    if table.classes:
        return "sphere", settings
    values = np.unique(table.labels)
    if len(values) <= 2:
        raise UsageError(
            f"{printable(table.source)}: {table.reason}, but the target has only "
            f"{len(values)} value{'s' * (len(values) > 1)}: --task classification audits classes"
        )
    if model == "auto":
        known = choose_model("spectral", "regression", 0, 0).estimator_class()().get_params()
        is_large = len(table.labels) > _MOST_AUDITED and settings.keys() <= known.keys()
        model = "spectral" if is_large else "gp"
    if settings.get("noise", CONTAMINATED) not in WITH_ERRORS:
        raise UsageError(
            f"--set noise={settings['noise']}: an audit of numbers is of noise="
            f"{' or noise='.join(WITH_ERRORS)}"
        )
    if "noise" in settings:
        return model, settings
    from mercer.spectral.estimator import gain_beside_errors

    values = np.asarray(table.labels, dtype=np.float64)
    gain = gain_beside_errors(table.X, values, table.encoder.feature_names)
    if gain is None:
        return model, {"noise": CONTAMINATED, **settings}
    why = f"noise is a factor, by {gain:.2f} nats for each value given the others"
    session.say("audited", f"logarithms: {why} (--set noise={CONTAMINATED}: values)")
    return model, {"noise": CONTAMINATED_LOGNORMAL, **settings}


_MOST_FAR = 3  # inputs that are told of


def describe_table(table: TrainingTable, session: Session) -> None:
    """Say what was read, the task, and what was done to columns and rows."""
    n, d = table.X.shape
    n_columns = len(table.inputs.names)
    inputs = f"{d} input{'s' * (d != 1)}"
    if d != n_columns:
        inputs += f" from {n_columns} column{'s' * (n_columns != 1)}"
    session.say("data", f"{table.source}: {n} rows, {inputs}")
    session.say("task", table.reason)
    for note in table.notes:
        session.say("columns", note)
    far = far_words(table.encoder, table.X, table.y, table.names)
    if far:
        n_more = len(far) - _MOST_FAR
        more = f"; {n_more} more such column{'s' * (n_more > 1)}" if n_more > 0 else ""
        said = "; ".join(far[:_MOST_FAR]) + more
        session.say("far off", f"{said}: where it is no slip, models know little of such rows")
    for words in _leak_words(table):
        session.say("leak", words)
    constant = constant_columns(table)
    if constant:
        session.note("warning", constant)


def _leak_words(table: TrainingTable) -> list[str]:
    """Ask of inputs that alone give a target whether they are known before it is."""
    inputs = table.encoder.inputs
    shares = strengths_alone(table.X, table.y, inputs, is_classes=bool(table.classes)).tolist()
    return [
        f"{quoted(name)} alone gives {100.0 * share:.0f} % of the target: is it known before the "
        f"target is? If not: --drop {shlex.quote(name)}"
        for name, share in zip(inputs.names, shares, strict=True)
        if may_leak(share, len(table.X))
    ]


def _describe_model(
    options: FitOptions, entry: ModelEntry, estimator: Any, table: TrainingTable, session: Session
) -> None:
    summary, why = entry.summary, "as asked"
    inference = estimator.get_params().get("inference")
    if inference == "map":
        summary += ", hyperparameters at their maximum"
    elif inference is not None:
        summary += ", averaged over hyperparameters"
    summary += features_words(estimator)
    if options.model == "auto" and options.scoring is None:
        large = f" above {_MOST_AUDITED} rows" if entry.name == "spectral" else ""
        why = "the one that audits" + large
    if options.model == "auto" and options.scoring is not None:
        first = able_models(table.task.name, 0)[0]
        why = "auto"
        n_classes = len(table.classes or ())
        if entry is not first and n_classes > first.max_classes:
            why = f"auto: {first.name} tells at most {first.max_classes} classes apart"
        elif options.table.missing == "posterior":
            why = "auto: the one that draws missing inputs"
        elif table.targets:
            why = "auto: the one that learns several targets"
        elif entry is not first:
            why = f"auto: above {first.most_rows(n_classes)} rows {first.name} takes too long"
        elif len(table.labels) > first.most_rows(n_classes):
            why = f"auto: {table.n_costly} of {len(table.labels)} rows differ in their inputs"
    session.say("model", f"{entry.name}, {summary} ({why})")


def _warn_of_size(entry: ModelEntry, estimator: Any, n: int, session: Session) -> None:
    """Warn where n x n matrices of a kernel make a run long, or walls of many rows may."""
    params = estimator.get_params()
    taught = params.get("max_rows", n)  # "auto" is few enough
    n = min(n, taught) if isinstance(taught, int) else 0
    if n <= LARGE or params.get("kernel", "linear") == "linear":
        return
    if params.get("rank") is not None:
        if params["sampler"] == "propagation":
            words = "--set sampler=auto takes up to an hour, and overlap for labels that are wrong"
            session.note("chains", words)
        elif params["max_seconds"] is None:
            words = "where many labels look wrong this takes up to an hour; --set max_seconds=900"
            session.note("time", f"{words} ends it in time")
        return
    few = ", or --set rank=512 --set sampler=propagation (approximate)"
    finite = few if "rank" in params else ""
    ends = "; --set max_seconds=60 ends it in time" if params.get("max_seconds", 0) is None else ""
    session.note(
        "warning",
        f"{n} rows: the time of {entry.name} grows with their cube, and above {LARGE} it is "
        f"long; fewer rows, or --set n_draws and --set n_chains{finite}, shorten it{ends}",
    )


_LONG = 60.0  # CPU seconds, above which a fit is said to be long before it begins
# Times the products of its sweeps: recorded are 1.1 with 384 frequencies, 1.4 to 2.6 with fewer.
_LONGER = 2.0
_FEWER = 20_000  # rows that a kernel is learned from in less time


def _warn_of_hours(
    entry: ModelEntry, estimator: Any, n: int, n_classes: int, session: Session
) -> None:
    """Say how long chains over many rows take, and what takes less."""
    if entry.name != "spectral":
        return
    from mercer.spectral.settings import expected_seconds

    seconds = expected_seconds(estimator, n, max(n_classes - 1, 1))
    params = estimator.get_params()
    if seconds < _LONG or params.get("max_seconds") is not None:
        return
    rows = min(n, params["kernel_rows"] or n)
    words = (
        f"the saved model takes {_between(estimator, seconds)} of CPU time, "
        f"its kernel learned from {rows} rows; "
    )
    if rows > _FEWER:
        words += f"--set kernel_rows={_FEWER} takes {_FEWER / rows:.0%} of that, and "
    session.note("time", f"{words}--set max_seconds={_LONG:g} ends it in time")


def _between(estimator: Any, seconds: float) -> str:
    """Say how long a fit takes; much less where the rows have use for few frequencies."""
    if estimator.n_frequencies == "auto":
        return f"up to {spoken(_LONGER * seconds)} (a tenth of it where few frequencies do)"
    return f"about {spoken(seconds)} to {spoken(_LONGER * seconds)}"


def _describe_split(split: Split, estimator: Any, session: Session) -> None:
    words = split.how
    params = estimator.get_params()
    if "n_folds" in params:  # a mixture of models
        words += "; what is scored has weights by the held-out scores of its own training rows"
    elif split.train is None and "n_chains" in params and params.get("inference") != "map":
        n_chains, n_draws = estimator.n_chains, estimator.n_draws
        short = for_folds(estimator)
        fits = "each fold" if len(split.folds) > 1 else "the scored fit"
        if params.get("inference") == "importance":
            words += (
                f"; {fits} keeps up to {short.n_draws} draws, the saved model, on all rows, "
                f"{n_chains * n_draws}"
            )
        else:
            words += (
                f"; {fits} has {short.n_chains} chain of {short.n_draws} draws, the saved model "
                f"{n_chains} of {n_draws}, on all rows"
            )
    session.say("scoring", words)
    for note in split.notes:
        session.say("", note)


def identity_of(
    options: FitOptions, entry: ModelEntry, settings: dict[str, Any], split: Split
) -> dict[str, Any]:
    """Return every option that the result depends on, as JSON can hold it."""
    scored = hashlib.sha256()
    for fold in split.folds:
        scored.update(fold.X_test.tobytes() + fold.y_test.tobytes())
    return {
        "model": entry.name,
        "settings": settings,
        "seed": options.seed,
        "scoring": split.how,
        "scored rows": scored.hexdigest(),
        "is_refitted": options.scoring is None or options.scoring.is_refitted,
        **asdict(options.table),
    }
