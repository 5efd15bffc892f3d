"""The end of `mercer fit`: provenance, and what was fitted in words, in files, as JSON."""

from __future__ import annotations

import itertools
import os
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from mercer.cli.commands import cli
from mercer.cli.fitting import Fitted, Plan, parse_settings
from mercer.cli.outputs import provenance_json
from mercer.cli.terminal import Session, diagnosed, evaluation_json, meanings, spoken
from mercer.data.named import is_named
from mercer.data.row_names import RowNames
from mercer.data.tables import split_sheet
from mercer.estimation.cross_validate import is_cut_short
from mercer.estimation.inspection import Inspection
from mercer.estimation.model_file import TableModel, write_model
from mercer.estimation.tasks import REGRESSION, task_of
from mercer.models import MODELS, ModelEntry
from mercer.posterior.evaluation import (
    AnyEvaluation,
    Evaluation,
    HeldTargets,
    Provenance,
    is_warning,
    standing,
)
from mercer.posterior.labels import Audit, TargetAudit
from mercer.posterior.positive_laws import CONTAMINATED_LOGNORMAL, STUDENT, VARYING, noise_of

# How to do it again, and what to do next: commands as they can be typed, seed, versions.


_MODEL = "model.mercer"
# Options of a table that every command which learns from one takes, with the parameter of each.
_OF_TABLE = {
    "--task": "task",
    "--drop": "drop",
    "--id": "id_column",
    "--group": "group",
    "--time": "time",
    "--categories": "categories",
    "--missing": "missing",
    "--null-values": "null_values",
    "--dates": "dates",
    "--encoding": "encoding",
    "--seed": "seed",
    "--set": "settings",
    "--cv": "cv",
}


class NextStep(NamedTuple):
    """What to run next: a sentence with the reason, and a command as it is pasted into a shell."""

    sentence: str
    command: str


def _step(why: str, parts: Sequence[str]) -> NextStep:
    return NextStep(f"{why}, run:", shlex.join(parts))


def compare_step(words: Sequence[str], *, data: str | None = None) -> NextStep | None:
    """Propose to compare all models on the table that a command learned from.

    ``words`` are the command line, from the name of the command on; its options of the table are
    kept. ``data`` is another table of the same columns. None where the table is not there, or the
    words are no command of mercer that fits.
    """
    known = _parsed(words)
    if known is None:
        return None
    table = known["data"] if data is None else data
    if not os.path.lexists(split_sheet(table)[0]) and not is_named(table):
        return None
    if known.get("model") == "stack":  # its settings are of no other model
        known = {**known, "settings": ()}
    command = ["mercer", "compare", table, "--target", known["target"], *_table_options(known)]
    return _step("To see all models and baselines on the same folds", command)


def fit_step(words: Sequence[str], model: str, *, is_kept: bool) -> NextStep | None:
    """Propose to fit one model to the table of a command, whose words are as for `compare_step`.

    ``model`` is what ``--model`` named; it is to be saved if ``is_kept``, else reported.
    """
    known = _parsed(words)
    if known is None:
        return None
    taken: set[str] = set()
    for entry in MODELS:
        if entry.name == model:
            taken |= set(entry.estimator_class()().get_params())
    settings = [each for each in known["settings"] if each.partition("=")[0].strip() in taken]
    options = _table_options({**known, "settings": settings})
    command = ["mercer", "fit", known["data"], "--target", known["target"], "--model", model]
    if is_kept:
        return _step("To fit and save it", [*command, *options, "--out", _free_name(_MODEL)])
    end = ["--report", _free_name("report.html")]
    return _step("To see where it errs", [*command, *options, *end])


def words_of(words: Sequence[str], target: str) -> list[str]:
    """Write the command of several targets as one of ``target``, which leaves out the others."""
    known = _parsed(words) or {"target": target}
    others = [name for name in known["target"].split(",") if name != target]
    if known["target"] == target:
        return list(words)
    return [*words, "--target", target, *(word for name in others for word in ("--drop", name))]


def next_steps(
    words: Sequence[str],
    estimator: Any,
    evaluation: AnyEvaluation | None,
    inspection: Inspection,
    *,
    data: str | None = None,
    model: str | None = None,
    target: str | None = None,
) -> tuple[tuple[str, str], ...]:
    """Propose what suits what was found: a sentence and a command each, the most urgent first.

    ``words`` are the command that fitted the model, from its name on, ``data`` another table that
    was looked at, ``model`` the file of the model, where it is known; ``target`` is the one of
    several that was looked at.
    """
    own = words if target is None else words_of(words, target)
    output = [] if target is None else ["--target", target]
    known = _parsed(own)
    if known is None:
        return ()
    table = known["data"] if data is None else data
    if not os.path.lexists(split_sheet(table)[0]) and not is_named(table):
        return ()
    end = ["--target", known["target"], *_table_options(known)]
    steps: list[NextStep] = []
    facts = inspection.table
    leaks = [] if facts is None else [each.name for each in facts.leaks]
    if leaks:
        drop = [word for name in leaks for word in ("--drop", name)]
        why = "To see what the other inputs say, without the one that gives all"
        steps.append(_step(why, ["mercer", *_anew(words), *drop]))
    longer = _longer(words, known, estimator)
    if longer is not None:
        steps.append(longer)
    if evaluation is not None and _is_behind(evaluation):
        why = "A baseline is ahead: to see whether another model is as good"
        steps.append(_step(why, ["mercer", "compare", table, *end]))
    if evaluation is not None:
        steps += surprise_steps(own, evaluation, estimator, table)
    saved = known.get("out") if model is None else model
    if saved is not None and evaluation is not None and len(inspection.names):
        where = (known.get("test") or table) if data is None else data  # the scored rows' table
        command = _explain_command(str(saved), where, evaluation, inspection.names, known)
        why = "To see what the inputs said of the row that surprised the model most"
        steps.append(_step(why, [*command, *output]))
    if saved is not None and hasattr(estimator, "query"):
        what = "target" if task_of(estimator) is REGRESSION else "label"
        why = f"With rows that have no {what} yet: to choose those whose {what} would teach most"
        steps.append(_step(why, ["mercer", "query", str(saved), "POOL.csv", "-n", "10", *output]))
    return tuple(steps)


def _is_behind(evaluation: AnyEvaluation) -> bool:
    """Whether a baseline has smaller errors, hardly by chance."""
    place = standing(evaluation)
    return place is not None and place[0] == "behind"


def surprise_steps(
    words: Sequence[str], evaluation: AnyEvaluation, estimator: Any, table: str
) -> list[NextStep]:
    """Propose what held-out targets that surprised the model ask for: an audit, and other noise.

    The latter first where noise that is a factor may be all there is to it.
    """
    known = _parsed(words)
    if known is None:
        return []
    suiting, found = _noise_beside(evaluation, estimator), [_audit(evaluation, known, table)]
    if suiting is not None:
        place = 0 if suiting[0] == "lognormal" else 1
        found.insert(place, _noise_step(*suiting, estimator, known, table))
    return [step for step in found if step is not None]


def _audit(evaluation: AnyEvaluation, known: Mapping[str, Any], table: str) -> NextStep | None:
    """Propose to look for wrong targets, where held-out ones surprised the model."""
    doubt = _doubtful(evaluation)
    if doubt is None:
        return None
    others = _table_options(known, without=("--group", "--time", "--cv", "--set"))
    return _step(doubt, ["mercer", "audit", table, "--target", known["target"], *others])


def audit_steps(
    words: Sequence[str], estimator: Any, audit: Audit, *, model: str, n_rows: int
) -> tuple[NextStep, ...]:
    """Propose what to do with suspicious targets: look at labels, and learn in spite of them.

    Where the diagnostics warn, to audit longer first; where what looks wrong may be a long tail, to
    audit logarithms. ``model`` is the name of the one that audited, ``n_rows`` how many rows there
    are.
    """
    known = _parsed(words)
    if known is None or known["data"] == "-":
        return ()
    longer = _longer(words, known, estimator)
    first = () if longer is None else (longer,)
    table = [known["data"], "--target", known["target"]]
    if isinstance(audit, TargetAudit):
        noise = estimator.noise
        if audit.is_skewed:
            command = ["mercer", *_anew(words, "noise"), "--set", f"noise={CONTAMINATED_LOGNORMAL}"]
            why = "To audit the logarithms, of which a long tail is no error"
            first = (_step(why, command), *first)
        is_named = any(each.startswith("noise=") for each in known["settings"])
        own = ["--model", model, *([] if is_named else ["--set", f"noise={noise}"])]
        own += [*_table_options(known), "--out", _free_name(_MODEL)]
        command = ["mercer", "fit", *table, *own]
        return (*first, _step("For predictions in spite of the values that are wrong", command))
    from mercer.sphere.fitting import LARGEST_WHOLE

    options = _table_options(known, without=("--task", "--set"))
    where = {f"--{name}": known[name] for name in ("engine", "scheduler", "workers")}
    engine = [word for name, value in where.items() if value for word in (name, str(value))]
    out = ["--model", "sphere", *_table_options(known), *engine, "--out", _free_name(_MODEL)]
    why = "For predictions that allow for the labels that are wrong"
    steps = [_step(why, ["mercer", "fit", *table, *out])]
    if n_rows <= LARGEST_WHOLE:
        why = "To decide of each on a page, and get the table with labels mended"
        steps.insert(0, _step(why, ["mercer", "review", *table, *options]))
    return (*first, *steps)


def _explain_command(
    saved: str, table: str, evaluation: AnyEvaluation, names: RowNames, known: Mapping[str, Any]
) -> list[str]:
    """Write the command that explains the held-out row whose target surprised the model most."""
    position = worst_row(evaluation)
    number = str(names.number[position])
    if names.has_files:
        number = f"{names.files[names.file[position]]}:{number}"
    coding = ["--encoding", known["encoding"]] if known.get("encoding") else []
    return ["mercer", "explain", saved, table, "--row", number, *coding]


_SURPRISING = 0.05  # probability of a label
_FAR = 4.0  # standard deviations of a predictive law


def _doubtful(evaluation: AnyEvaluation) -> str | None:
    """Say why targets may be wrong: how many held-out ones surprised the model; None if none."""
    if isinstance(evaluation, Evaluation):
        n_wrong = int(np.sum(label_probabilities(evaluation) < _SURPRISING))
        rows = "row's label" if n_wrong == 1 else "rows' labels"
        what, found = "labels", f"gives {n_wrong} {rows} less than {100 * _SURPRISING:.0f} %"
    else:
        held = evaluation.rows
        n_wrong = int(np.sum(np.abs(held.y - held.mean) > _FAR * held.std))
        rows = "row's value" if n_wrong == 1 else "rows' values"
        what = "values"
        found = f"has {n_wrong} {rows} more than {_FAR:.0f} standard deviations from its prediction"
    return f"The model {found}: to find {what} that are probably wrong" if n_wrong else None


_VARYING = 4.0  # standard errors of a rank correlation: false alarm 6e-5
_LEAST_SCATTER = 50  # held-out rows
_RAREST = 1e-12  # probability of a target that counts as no farther off


_VARYING_NOISES = {VARYING, "negative_binomial"}
_MEANS_ALONE = (
    "Rows with more noise, or with far targets, count less here: for the least squared error alone"
)


def _noise_beside(evaluation: AnyEvaluation, estimator: Any) -> tuple[str, str] | None:
    """Say which noise held-out targets suggest: see below.

    Where the model found one that varies or has heavy tails, the normal one, if a baseline has
    smaller errors.
    """
    members = (estimator, *getattr(estimator, "members_", {}).values())
    noises = {noise_of(one) for one in members}
    if isinstance(evaluation, Evaluation):
        return None
    is_chosen = getattr(estimator, "noise", None) == "auto"
    if is_chosen and noise_of(estimator) in (VARYING, STUDENT) and _is_behind(evaluation):
        return "normal", _MEANS_ALONE
    if _VARYING_NOISES & noises:
        return None
    found = _suiting_noise(evaluation.rows)
    if found is None and hasattr(estimator, "n_inducing"):  # BaNK has found out by itself
        found = _tails(evaluation.rows)
    return None if found is None or found[0] in noises else found


def _noise_step(
    noise: str, why: str, estimator: Any, known: Mapping[str, Any], table: str
) -> NextStep:
    """Propose to fit the table with other noise."""
    model = ["--model", "spectral"]
    if noise == "lognormal" and hasattr(estimator, "n_inducing"):  # a Gaussian process
        model = ["--model", "gp"] if known["model"] == "gp" else []
    options = [*_table_options(known, without=("--set",)), "--report", _free_name("report.html")]
    own = [*model, "--set", f"noise={noise}"]
    return _step(why, ["mercer", "fit", table, "--target", known["target"], *own, *options])


def compare_noise_step(words: Sequence[str], held: HeldTargets) -> NextStep | None:
    """Propose to compare models with other noise, where held-out targets of one look like it."""
    known = _parsed(words)
    if known is None or any(each.startswith("noise=") for each in known["settings"]):
        return None
    suiting = _suiting_noise(held)
    if suiting is None:
        return None
    noise, why = suiting
    own = ["--models", "gp,spectral" if noise == "lognormal" else "spectral"]
    own += [*_table_options(known), "--set", f"noise={noise}"]
    return _step(why, ["mercer", "compare", known["data"], "--target", known["target"], *own])


def _suiting_noise(held: HeldTargets) -> tuple[str, str] | None:
    """Say which noise targets suggest that surprise a model more at some predictions, and why.

    Of counts their own law, whose noise varies with the mean; of targets above 0 noise that is a
    factor, where that leaves less of it.
    """
    y, mean = held.y, held.mean
    if y.ndim > 1 or len(y) < _LEAST_SCATTER or np.ptp(mean) == 0.0:
        return None
    from scipy.stats import spearmanr

    correlation = spearmanr(mean, np.abs(held.pit - 0.5)).statistic
    if not abs(correlation) * np.sqrt(len(y)) > _VARYING:
        return None
    where, least = "high" if correlation > 0.0 else "low", y.min()
    noise, how = VARYING, "to let the noise vary"
    if correlation > 0.0 and least == 0.0 and (y == np.rint(y)).all():
        noise = "negative_binomial"
    elif correlation > 0.0 and least > 0.0 and _is_factor(y, np.maximum(mean, least)):
        noise, how = "lognormal", "to take noise for a factor, which keeps intervals above 0"
    return noise, f"Targets scatter more where predictions are {where}: {how}"


def _tails(held: HeldTargets) -> tuple[str, str] | None:
    """Say that targets suggest noise with heavy tails, where they surprise a model like that."""
    if held.y.ndim > 1 or len(held.y) < _LEAST_SCATTER:
        return None
    from scipy.stats import norm

    from mercer.estimation.numbers import gain_of_tails

    z = norm.ppf(np.clip(held.pit, _RAREST, 1.0 - _RAREST))
    if gain_of_tails(z, norm.logpdf(z)) == 0.0:
        return None
    return STUDENT, "Targets are farther off than expected too often: to let noise have heavy tails"


def _is_factor(y: NDArray[np.float64], mean: NDArray[np.float64]) -> bool:
    """Whether one normal law of log(y / mean) has a higher log score than three laws of y - mean.

    The three are of thirds of the rows, by their means. All is above 0.
    """
    thirds = np.array_split((y - mean)[np.argsort(mean, kind="stable")], 3)
    with np.errstate(divide="ignore"):  # of no noise
        loss_of_thirds = np.mean([np.log(third.std()) for third in thirds])
        return bool(np.log(np.log(y / mean).std()) + np.log(y).mean() < loss_of_thirds)


def label_probabilities(evaluation: Evaluation) -> NDArray[np.float64]:
    """Probability of the label that each held-out row has."""
    y = evaluation.y_index
    return np.asarray(evaluation.proba[np.arange(len(y)), y])


def worst_row(evaluation: AnyEvaluation) -> int:
    """Position of the held-out row whose target surprised the model most."""
    if isinstance(evaluation, Evaluation):
        return int(np.argmin(label_probabilities(evaluation)))
    return int(np.argmin(evaluation.rows.log_density))


def _longer(words: Sequence[str], known: Mapping[str, Any], estimator: Any) -> NextStep | None:
    """Propose more draws or particles, or the time for them, where the diagnostics warn.

    How much time there was is in the command: a file of a model does not say.
    """
    params = {**estimator.get_params(), **parse_settings(known["settings"])}
    if not estimator.diagnostics_.warnings or params.get("inference") == "map":
        return None
    name = "n_draws" if "n_draws" in params else "n_particles"
    if is_cut_short(estimator) and params.get("max_seconds") is not None:
        name = "max_seconds"
    command = ["mercer", *_anew(words, name), "--set", f"{name}={4 * params[name]}"]
    return _step("The diagnostics warn: to give the sampling four times as long", command)


_WRITTEN = ("--out", "--report", "--fixed")


def _anew(words: Sequence[str], setting: str | None = None) -> list[str]:
    """Write a command for another run: files of other names, no checkpoint, without a setting."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word.startswith("-o"):
            word = f"--out={word[2:]}" if word[2:] else "--out"
        option, is_joined, value = word.partition("=")
        if option not in ("--checkpoint", "--set", *_WRITTEN):
            kept.append(word)
            continue
        value = value if is_joined else next(rest, "")
        if option in _WRITTEN:
            value = _free_name(value, 2)
        is_left_out = option == "--set" and value.partition("=")[0].strip() == setting
        kept += [] if is_left_out or option == "--checkpoint" else [option, value]
    return kept


def _parsed(words: Sequence[str]) -> dict[str, Any] | None:
    """Return the parameters of a command line that learns from a table."""
    if not words or words[0] not in ("fit", "compare", "audit"):
        return None
    try:
        context = cli.commands[words[0]].make_context(
            words[0], list(words[1:]), resilient_parsing=True
        )
    except click.ClickException:
        return None
    known = context.params
    return known if known.get("data") and known.get("target") else None


def _table_options(known: Mapping[str, Any], *, without: Collection[str] = ()) -> list[str]:
    """Write the options of the table that were given, as they are typed."""
    defaults = {"task": "auto", "missing": "error", "dates": "auto", "seed": 0}
    words: list[str] = []
    for option, name in _OF_TABLE.items():
        if option in without:
            continue
        value = known.get(name)
        for one in value if isinstance(value, (tuple, list)) else (value,):
            if one is not None and one != defaults.get(name):
                words += [option, str(one)]
    return words


def _free_name(name: str, first: int = 1) -> str:
    """Return the name of a file that is not there yet, with a number from the second on."""
    stem, suffix = os.path.splitext(name)
    names = (f"{stem}{'' if k == 1 else f'-{k}'}{suffix}" for k in itertools.count(first))
    return next(each for each in names if not os.path.lexists(each))


def table_model(
    plan: Plan, fitted: Fitted, provenance: Provenance, evaluations: Sequence[AnyEvaluation]
) -> TableModel:
    """Put together what is kept beside a model; of several targets a part for each."""
    table, target = plan.table, provenance.target
    if not table.targets:
        return TableModel(table.encoder, target, evaluations[0], provenance, fitted.variance)
    parts = zip(plan.outputs, table.targets, evaluations, fitted.variance, strict=True)
    outputs = tuple(
        TableModel(one.table.encoder, name, each, replace(provenance, target=name), variance)
        for one, name, each, variance in parts
    )
    return TableModel(table.encoder, target, None, provenance, outputs=outputs)


def outputs_json(saved: TableModel) -> dict[str, Any]:
    """Return the scores of each of several targets, where there are several."""
    found = {each.target: each.evaluation for each in saved.outputs}
    scores = {name: each and evaluation_json(each) for name, each in found.items()}
    return {"outputs": scores} if scores else {}


def say_fitted(fitted: Fitted, session: Session) -> None:
    """Say what was fitted and what its diagnostics say."""
    estimator = fitted.estimator
    size, seconds = estimator.posterior_.size_words, spoken(fitted.seconds)
    n_kernels = len(getattr(estimator, "kernel_weights_", {}))
    of_first = f" of the first of {n_kernels} kernels" if n_kernels > 1 else ""
    session.say("fitted", f"on {fitted.n_rows} rows in {seconds}: {size}{of_first}")
    if weights := getattr(estimator, "weights_", {}):
        session.say("weights", ", ".join(f"{each} {w:.3g}" for each, w in weights.items()))
    for note in estimator.notes_:
        say, label = (session.note, "warning") if is_warning(note) else (session.say, "")
        say(label, note)
    worst = estimator.diagnostics_.worst_warning
    pairs = [("warning", worst)] if worst else diagnosed(estimator.diagnostics_)
    say = session.note if worst else session.say
    for label, words in pairs:
        say(label, words)
    if explained := meanings([words for _, words in pairs]):
        say("", explained)


def write_files(
    fitted: Fitted,
    saved: TableModel,
    session: Session,
    *,
    out: Path | None,
    report: Path | None,
    step: NextStep | None,
    inspect: Callable[[], Sequence[Inspection]] = lambda: (),
) -> None:
    """Write what was asked for; the model first, so that nothing can lose a long fit.

    ``inspect`` says what the report shows of rows and inputs, of each target.
    """
    if out is not None:
        write_model(out, fitted.estimator, saved)
        size = out.stat().st_size / 2**20
        parts = fitted.estimator._to_parts()
        targets = "the targets of the" if parts.holds_targets else "no"
        holds = "the standardised" if parts.holds_rows else targets
        session.say("model", f"{out} ({size:.1f} MB, holds {holds} training rows)")
    if report is not None:
        from mercer.report import build_report, render, write_report

        with session.at_work("report"):
            scored = saved.outputs or (saved,)
            looks: Sequence[Inspection | None] = inspect() or [None] * len(scored)
            seen = [(own.evaluation, its) for own, its in zip(scored, looks, strict=True)]
            built = build_report(
                fitted.estimator, provenance=saved.provenance, next_step=step, outputs=seen
            )
        write_report(report, render(built))
        session.say("report", str(report))
    if out is None and report is None:
        session.say("saved", "nothing; --out model.mercer and --report report.html would")


def as_json(
    entry: ModelEntry,
    fitted: Fitted,
    saved: TableModel,
    *,
    out: Path | None,
    report: Path | None,
    step: NextStep | None,
) -> dict[str, object]:
    """Return the result as JSON can hold it."""
    provenance = saved.provenance
    return {
        "model": entry.name,
        "estimator": entry.estimator,
        "task": entry.task,
        "classes": [str(label) for label in getattr(fitted.estimator, "classes_", ())],
        "n_rows": fitted.n_rows,
        "inputs": list(provenance.input_names),
        "notes": list(provenance.notes),
        "next": None if step is None else step.command,
        "evaluation": None if saved.evaluation is None else evaluation_json(saved.evaluation),
        **outputs_json(saved),
        "diagnostics": fitted.estimator.diagnostics_.to_dict(),
        "weights": getattr(fitted.estimator, "weights_", None),
        "seconds": fitted.seconds,
        "provenance": provenance_json(provenance),
        "out": None if out is None else str(out),
        "report": None if report is None else str(report),
    }
