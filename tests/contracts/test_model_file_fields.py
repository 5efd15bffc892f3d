"""Files whose fields were edited and whose sums were mended: refused, or as good as any other.

The golden files were written in format 1 by version 0.1.0: they are read for ever. Of each, every
field is edited in every way of `support.field_edits`, one at a time; then the file is read and
asked for all that the commands ask. Either it is refused as a damaged model file (exit 4), in one
line, or the answers are finite probabilities or laws: never another error, a warning or a hang.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import mercer.estimation.model_file as model_file
from mercer.cli.terminal import diagnosed, evaluation_json
from mercer.errors import ModelFileError
from mercer.models import MODELS, SavedModel, read_model
from mercer.posterior import schema
from mercer.posterior.container import read_container, write_container
from mercer.report import build_report, render
from support.field_edits import edits_of
from support.mangled import mutate

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.mercer"))
IDS = [path.stem for path in GOLDEN]
STRIDE = 397  # of the edits in the first tier: a systematic sample, all fields over all files


def ask(saved: SavedModel, *, has_report: bool) -> np.ndarray:
    """What `load`, `predict`, `inspect` and `report` need of a model; its predictions."""
    model, table = saved.estimator, saved.table
    X = np.random.default_rng(0).normal(size=(5, model.n_features_in_))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        if hasattr(model, "classes_"):
            answers = model.predict_proba(X)
            assert np.allclose(answers.sum(axis=1), 1.0)
        else:
            answers = np.column_stack(model.predict(X, return_std=True))
            assert (answers[:, 1] > 0.0).all()
    assert np.isfinite(answers).all()
    assert all([diagnosed(model.diagnostics_), str(model.posterior_.summary())])
    if table is None:  # as `save` writes it, without what the command line adds
        assert not has_report
        return np.asarray(answers)
    assert str(table.provenance)
    assert table.evaluation is not None or not has_report
    if table.evaluation is not None:
        json.dumps(evaluation_json(table.evaluation), allow_nan=False)
    if has_report:
        built = build_report(model, evaluation=table.evaluation, provenance=table.provenance)
        assert "<html" in render(built)
    return np.asarray(answers)


def survives(path: Path, monkeypatch: pytest.MonkeyPatch, picked: slice) -> tuple[int, int]:
    """Read every edited file that was picked; how many were refused, and how many not."""
    manifest, arrays = read_container(path)
    edits = list(edits_of(manifest, arrays))[picked]
    n_refused = 0
    for name, changed, columns in edits:
        copies = {each: values.copy() for each, values in columns.items()}
        monkeypatch.setattr(model_file, "read_container", lambda _, it=(changed, copies): it)
        try:
            ask(read_model("edited.mercer"), has_report=False)
        except ModelFileError as error:
            n_refused += 1
            if "\n" in str(error):
                pytest.fail(f"{path.name}, {name}: more than a line: {error}")
        except Exception as error:
            pytest.fail(f"{path.name}, {name}: {type(error).__name__}: {error}")
    return n_refused, len(edits)


def test_there_is_a_golden_file_of_every_estimator() -> None:
    kinds = [read_container(path)[0]["estimator"] for path in GOLDEN]
    assert sorted(kinds) == sorted(entry.estimator for entry in MODELS)


@pytest.mark.parametrize("path", GOLDEN, ids=IDS)
def test_files_of_format_1_are_read(path: Path) -> None:
    assert read_container(path)[0]["format"] == 1
    ask(read_model(path), has_report=path.stem == "gp-classes")


@pytest.mark.parametrize("path", GOLDEN, ids=IDS)
def test_edited_fields_are_refused_or_harmless(path: Path, monkeypatch) -> None:
    n_refused, n_edits = survives(path, monkeypatch, slice(IDS.index(path.stem), None, STRIDE))
    assert n_refused > 0.5 * n_edits


@pytest.mark.slow
@pytest.mark.parametrize("path", GOLDEN, ids=IDS)
def test_every_edit_of_every_field(path: Path, monkeypatch) -> None:
    n_refused, n_edits = survives(path, monkeypatch, slice(None))
    assert n_edits > 1000
    assert n_refused > 0.5 * n_edits


@pytest.mark.slow
@pytest.mark.parametrize("path", GOLDEN, ids=IDS)
def test_reports_of_edited_files(path: Path, monkeypatch) -> None:
    """What a report shows beside predictions: every edit of the table's part that is read."""
    manifest, arrays = read_container(path)
    for name, changed, columns in edits_of(manifest, arrays):
        if not name.startswith(("table/", "evaluation/", "fields/diagnostics", "fields/notes")):
            continue
        monkeypatch.setattr(model_file, "read_container", lambda _, it=(changed, columns): it)
        try:
            saved = read_model("edited.mercer")
        except ModelFileError:
            continue
        try:
            ask(saved, has_report=saved.table is not None and saved.table.evaluation is not None)
        except Exception as error:
            pytest.fail(f"{path.name}, {name}: {type(error).__name__}: {error}")


@pytest.mark.parametrize(
    "n_files", [20, pytest.param(1000, marks=pytest.mark.slow)], ids=["some", "a thousand"]
)
@pytest.mark.parametrize("path", GOLDEN, ids=IDS)
def test_p4_files_mutated_at_random(path: Path, n_files: int, tmp_path: Path) -> None:
    """They are refused, or predict; and streams go on."""
    rng, data, n_refused = np.random.default_rng(12), path.read_bytes(), 0
    changed = tmp_path / "m.mercer"
    for _ in range(n_files):
        changed.write_bytes(mutate(data, rng))
        try:
            saved = read_model(changed)
        except ModelFileError:
            n_refused += 1
            continue
        ask(saved, has_report=False)
        model = saved.estimator
        if hasattr(model, "partial_fit"):
            X = rng.normal(size=(9, model.n_features_in_))
            y = model.classes_[np.arange(9) % 2] if hasattr(model, "classes_") else X[:, 0]
            model.partial_fit(X, y)
            assert np.isfinite(model.log_predictive_).all()
    assert n_refused > 0.5 * n_files


def test_the_sum_is_mended_and_the_command_exits_with_4(tmp_path: Path) -> None:
    """The same edit through a real file: one line that names the field."""
    manifest, arrays = read_container(GOLDEN[IDS.index("gp-classes")])
    scale = arrays["standardizer/scale"] * 0.0
    write_container(tmp_path / "m.mercer", manifest, {**arrays, "standardizer/scale": scale})
    with pytest.raises(ModelFileError, match=r"^[^\n]*standardizer/scale[^\n]*$") as caught:
        read_model(tmp_path / "m.mercer")
    assert caught.value.exit_code == 4


def test_without_the_schema_edits_get_through(monkeypatch) -> None:
    """The mutant: ranges unchecked, an edit of the evaluation reaches the commands."""
    monkeypatch.setattr(schema.Array, "check", lambda *_: None)
    path = GOLDEN[IDS.index("gp-numbers")]
    manifest, arrays = read_container(path)
    bad = {**arrays, "evaluation/std": arrays["evaluation/std"] * 0.0}
    monkeypatch.setattr(model_file, "read_container", lambda _: (manifest, bad))
    saved = read_model("edited.mercer")
    assert saved.table is not None
    assert not saved.table.evaluation.rows.std.any()  # type: ignore[union-attr]
