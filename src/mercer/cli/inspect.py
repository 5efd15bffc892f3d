"""`mercer inspect`: what is inside a table, a model file or a checkpoint."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from mercer.cli.options import TableOptions
from mercer.cli.outputs import provenance_json
from mercer.cli.terminal import Session, diagnosed, evaluation_json, plain, plain_table, score_words
from mercer.data.files import printable, quoted
from mercer.data.formats import FormatError, find_format
from mercer.data.frame import Column, stray_text
from mercer.data.tables import read_frame
from mercer.errors import ModelFileError
from mercer.models import SavedModel
from mercer.posterior.container import is_container, read_container
from mercer.posterior.evaluation import is_warning

_HOLDS_ROWS = (
    "yes: the standardised training rows and their labels can be read out of it, so share it only "
    "with those who may see the data"
)


def run(data: str, table: TableOptions, is_json: bool) -> None:
    """Do the work of `mercer inspect`: `mercer.cli.commands` has its options."""
    path, session = Path(data), Session(is_json)
    if is_container(path) or path.suffix == ".mercer":
        _inside(path, session)
        return
    with session.warnings_as_lines():
        if not table.target:
            _columns(data, table, session)
        else:
            _table(data, table, session)


def _columns(data: str, options: TableOptions, session: Session) -> None:
    frame = read_frame(data, encoding=options.encoding, null_values=options.null_values)
    shown = plain_table("column", "kind", "missing", n_text=2)
    kinds, odd = dict[str, str](), dict[str, str]()
    for column in frame.columns:
        kinds[column.name], odd[column.name] = _kind(column)
        n_missing = int(column.is_missing.sum())
        shown.add_row(printable(column.name), kinds[column.name], str(n_missing or "-"))
    session.say("data", f"{frame.source}: {frame.n_rows} rows")
    session.show(shown)
    notes = [f"column {quoted(name)}: {words}" for name, words in odd.items() if words]
    for words in notes:
        session.note("note", words)
    session.say("next", "--target COLUMN says which is to be predicted, and more of the others")
    columns = [{"column": name, "kind": kind} for name, kind in kinds.items()]
    given = {"file": data, "kind": "table", "n_rows": frame.n_rows, "columns": columns}
    session.give(given | {"notes": notes})


def _kind(column: Column) -> tuple[str, str]:
    """Say what a column is as it is written, and of which cells it is not, that `fit` refuses."""
    if column.kind != "text":
        return column.kind, ""
    try:
        found = find_format(column.values)
    except FormatError as error:
        return column.kind, str(error)
    if found is not None:
        return found.kinds, ""
    stray = stray_text(column)
    return column.kind, stray[1] if stray else ""


def _table(data: str, options: TableOptions, session: Session) -> None:
    from mercer.cli.fitting import describe_table
    from mercer.cli.tables import read_training, table_facts
    from mercer.report.answers import INPUT_HEADINGS, data_words, input_cells, leak_words

    is_strict = options.missing == "error"
    options = replace(options, missing="impute") if is_strict else options
    table = read_training(data, options, may_be_several=True)
    parts = {name: table.output(k) for k, name in enumerate(table.targets)} or {"": table}
    found = {
        name: table_facts(own.inputs, own.encoder, own.X, own.y, own.classes, own.names)
        for name, own in parts.items()
    }
    facts = next(iter(found.values()))
    describe_table(table, session)
    shown = plain_table(
        *INPUT_HEADINGS[:-1], *(f"tells {name or 'alone'}" for name in found), n_text=2
    )
    for column in shown.columns:  # ranges, the longest, give way on a narrow terminal
        column.no_wrap = column.header != "range or levels"
    for each in zip(*(its.inputs for its in found.values()), strict=True):
        cells = [*input_cells(each[0]), *(input_cells(other)[-1] for other in each[1:])]
        shown.add_row(*(plain(cell.text) for cell in cells))
    session.blank()
    session.show(shown)
    session.blank()
    for name, its in found.items():
        about = f"{name}: " if name else ""
        for words in data_words(its) if its is facts else (its.target,):
            session.say("", (about if words == its.target else "") + words)
        for words in leak_words(its):
            session.note("warning", about + words)
    if is_strict and any(each.n_missing for each in facts.inputs):
        session.note(
            "note", "fit asks for --missing impute, indicator or drop where values are missing"
        )
    given = {
        name: asdict(its) | {"leaks": [x.name for x in its.leaks]} for name, its in found.items()
    }
    session.give(
        {"file": data, "kind": "table", "task": table.task.name, **given[next(iter(given))]}
        | {"notes": list(table.notes)}
        | ({"outputs": given} if table.targets else {})
    )


def _inside(path: Path, session: Session) -> None:
    manifest, arrays = read_container(path)
    kind = manifest.get("kind")
    if kind == "model":
        from mercer.models import read_model

        _model(path, read_model(path), session)
    elif kind in ("chain", "run"):
        facts = _checkpoint(manifest, arrays)
        for label, words in facts.items():
            session.say(label, str(words))
        session.give({"file": str(path), "size": path.stat().st_size, **facts})
    else:
        raise ModelFileError(f"{path}: a mercer file, but neither a model nor a checkpoint")


def _checkpoint(manifest: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    if manifest["kind"] == "run":
        options = manifest.get("options")
        pairs = options.items() if isinstance(options, dict) else ()
        words = ", ".join(f"{name}={value}" for name, value in pairs)
        return {
            "kind": "checkpoint: identity of a run",
            "mercer": str(manifest.get("version")),
            "data": f"SHA-256 {manifest.get('data')}",
            "options": words,
        }
    if "positions" in arrays:
        return {
            "kind": "checkpoint: evaluations of importance sampling",
            "run": str(manifest.get("run")),
            "evaluations": manifest.get("n_done"),
        }
    draws = next((values for name, values in arrays.items() if name.startswith("draws/")), ())
    return {
        "kind": "checkpoint: state of one chain",
        "run": str(manifest.get("run")),
        "steps": manifest.get("n_done"),
        "draws": len(draws),
    }


def _model(path: Path, saved: SavedModel, session: Session) -> None:
    from mercer.cli.prediction import find_predictors
    from mercer.cli.saving import outputs_json

    manifest, estimator = saved.manifest, saved.estimator
    draws = estimator.posterior_
    size = path.stat().st_size
    holds_rows = bool(manifest.get("holds_training_rows"))
    name = str(manifest["estimator"])
    classes = [str(label) for label in getattr(estimator, "classes_", ())]
    inputs = list(estimator.feature_labels_)
    made_by = f"format {manifest['format']}, written by mercer {manifest['mercer']}"
    session.say("kind", f"model, {made_by}")
    session.say("size", f"{size / 2**20:.2f} MB")
    session.say("estimator", f"{name}({_settings(estimator)})")
    if saved.table is not None:
        made = saved.table.provenance
        session.say("data", f"{made.source}, target {made.target!r}: {made.n_rows} rows")
        for note in made.notes:
            session.say("warning" if is_warning(note) else "", note)
        session.say("made", f"{made.created} in {made.seconds:.1f} s, seed {made.seed}")
        session.say("command", made.command)
        session.say("versions", ", ".join(f"{name} {version}" for name, version in made.versions))
    more = f" and {len(inputs) - 12} more" if len(inputs) > 12 else ""
    session.say("inputs", f"{len(inputs)}: {', '.join(inputs[:12])}{more}")
    task = "task", find_predictors(saved)[0].task.name
    session.say(*(("classes", ", ".join(classes)) if classes else task))
    kernels = getattr(estimator, "kernel_weights_", {})
    weights = getattr(estimator, "weights_", {})
    for label, own in (("kernels", kernels), ("weights", weights)):
        if len(own) > 1:
            session.say(label, ", ".join(f"{each} {w:.3g}" for each, w in own.items()))
    words = draws.size_words if draws.is_weighted else f"{draws.n_total}: {draws.size_words}"
    session.say("draws", words)
    targets = "their targets only" if estimator._to_parts().holds_targets else "no"
    session.say("rows", f"holds training rows: {_HOLDS_ROWS if holds_rows else targets}")
    for label, words in (*_periods(estimator), *diagnosed(estimator.diagnostics_)):
        session.say(label, words)
    evaluation = None if saved.table is None else saved.table.evaluation
    for predictor, one in zip(find_predictors(saved), saved.outputs, strict=True):
        its = None if one.table is None else one.table.evaluation
        words = "none stored" if its is None else f"{score_words(its)} ({its.how})"
        session.say("scores", predictor.about(words))
    session.give(
        {
            "file": str(path),
            "kind": "model",
            "size": size,
            "format": manifest["format"],
            "mercer": manifest["mercer"],
            "estimator": name,
            "params": manifest["params"],
            "inputs": inputs,
            "classes": classes,
            "kernels": kernels,
            "weights": weights,
            "n_draws": draws.n_total,
            "holds_training_rows": holds_rows,
            "diagnostics": estimator.diagnostics_.to_dict(),
            "evaluation": None if evaluation is None else evaluation_json(evaluation),
            **({} if saved.table is None else outputs_json(saved.table)),
            "provenance": None if saved.table is None else provenance_json(saved.table.provenance),
        }
    )


def _periods(estimator: Any) -> list[tuple[str, str]]:
    """Say what a learned kernel says of periods."""
    if not hasattr(estimator, "periods"):
        return []
    from mercer.spectral.prediction import period_words

    return [("period", words) for words in period_words(estimator)]


def _settings(estimator: Any) -> str:
    """Write the arguments that differ from their defaults, as one would type them."""
    defaults = type(estimator)().get_params()
    given = {k: v for k, v in estimator.get_params().items() if v != defaults[k]}
    return ", ".join(f"{name}={value!r}" for name, value in given.items())
