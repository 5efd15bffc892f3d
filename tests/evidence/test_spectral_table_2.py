from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mercer.data.named import list_named
from mercer.errors import StorageError
from reproduce.papers import spectral_class_cells, spectral_class_folds, spectral_table_2
from reproduce.papers.reproduction import Settings, write_reproduction
from reproduce.papers.spectral_cells import CellKey
from reproduce.papers.spectral_class_cells import ClassCell, class_work, run_class_cell
from reproduce.papers.spectral_class_folds import CLASS_SETS, class_fold_of
from reproduce.papers.spectral_table_2 import class_marked
from support.table_2 import use_stand_ins, write_class_sets

PIMA = CLASS_SETS[0]
FULL, QUICK = Settings(), Settings(is_quick=True)


def cells(*wrong: range) -> list[ClassCell]:
    return [ClassCell(tuple(rows), 0.3, 1.0, 400, 100, 8) for rows in wrong]


def row(**changes: list[ClassCell]) -> dict[str, list[ClassCell]]:
    found = {
        "RKS": cells(range(40), range(41)),
        "MKL": cells(range(40), range(42)),
        "RFO": cells(range(40), range(43)),
        "BaNK": cells(range(20), range(22)),
        "gradient boosting": cells(range(23), range(26)),
        "calibrated SVC": cells(range(21), range(24)),
    }
    return {**found, **{name.replace("_", " "): value for name, value in changes.items()}}


def verdicts(found: dict, settings: Settings = FULL) -> list[str]:
    claims = spectral_table_2._claims(settings, [PIMA], {"pima": found})
    return [claim.verdict for claim in claims[:4]]


def test_every_set_is_a_known_one_and_figures_are_those_of_the_table() -> None:
    known = {entry.name: entry for entry in list_named()}
    assert all(known[s.name].task == "classification" for s in CLASS_SETS)
    printed = {s.printed: s.published for s in CLASS_SETS}
    assert printed["pima"]["RFO"] == (0.2592, 0.0214)
    assert printed["space"]["BaNK"] == (0.0009, 0.0001)
    assert printed["susy"]["MKL"] == (0.201, 0.0001)
    assert printed["skin"]["MKL"] == (0.2737, 0.105)
    assert [s.target for s in CLASS_SETS] == [0.228, 0.245, 0.0196, 0.0002, None, None]


def test_the_lowest_has_the_asterisk_and_what_is_level_is_bold() -> None:
    texts = class_marked(row())
    assert texts["BaNK"] == "**0.21 ± 0.01\\***"
    # Nested errors: three rows apart are level, forty are not.
    assert texts["calibrated SVC"] == "**0.225 ± 0.015**"
    assert texts["RKS"] == "0.405 ± 0.005"


def test_claims_are_judged() -> None:
    assert verdicts(row()) == ["holds"] * 4
    lost = row(BaNK=cells(range(60), range(60)))
    assert verdicts(lost) == ["fails"] * 4
    assert verdicts(row(), QUICK) == ["not judged"] * 4


def test_within_one_standard_error_is_no_worse() -> None:
    # Differences of 2 and 0 rows: mean 1, standard error 1.
    assert verdicts(row(calibrated_SVC=cells(range(18), range(22))))[3] == "holds"
    assert verdicts(row(calibrated_SVC=cells(range(18), range(21))))[3] == "fails"


@pytest.fixture
def sets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    use_stand_ins(monkeypatch)
    write_class_sets(monkeypatch, tmp_path, 60, "pima", "shuttle", "susy", "skin")
    yield
    spectral_class_folds.class_rows.cache_clear()


def test_class_one_against_the_rest(sets) -> None:
    fold = class_fold_of("shuttle", 0, False)
    assert set(np.unique(fold.y)) == {0, 1}
    assert ((fold.X[:, 0] > 1.5) <= (fold.y == 1)).all()
    assert (len(fold.y), len(fold.y_test)) == (48, 12)


def test_work(sets, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {key.name for key in class_work(FULL)} == {"pima", "shuttle", "susy", "skin"}
    assert len(class_work(FULL)) == 4 * 5 * 8
    assert {(key.name, key.fold) for key in class_work(QUICK)} == {("pima", 0), ("pima", 1)}
    monkeypatch.setattr(spectral_class_cells, "n_training_rows", lambda name: 60_000)
    assert "svc" not in {key.method for key in class_work(FULL)}


def test_a_cell_is_run_once_and_says_which_rows_are_wrong(sets, tmp_path: Path) -> None:
    lines: list[str] = []
    settings = Settings(is_quick=True, tell=lines.append, folder=tmp_path / "out")
    key = CellKey("pima", "bank", 1)
    first = run_class_cell(key, settings)
    assert run_class_cell(key, settings) == first
    assert lines == ["pima, BaNK, fold 2"]
    assert 0.0 < first.log_loss < 0.6
    assert first.error == len(first.wrong) / 12 < 0.4


def test_a_row_of_every_set_and_files(sets, tmp_path: Path) -> None:
    outcome = spectral_table_2.reproduce(Settings(folder=tmp_path / "out"))
    assert len(outcome.measured) == 4 * 8
    assert outcome.claims[-1].claim == "the same on diabetic, eeg"
    assert spectral_table_2.reproduce(Settings(folder=tmp_path / "out")).to_csv() == (
        outcome.to_csv()
    )
    paths = write_reproduction(outcome, tmp_path / "out")
    page = paths[1].read_text()
    assert "| skin | 60 | 3 |" in page
    # All are the same method here: all are level.
    line = next(line for line in page.splitlines() if line.startswith("| skin | 60"))
    assert line.count("**") == 16
    assert "log loss: BaNK" in page
    assert paths[2].read_bytes().startswith(b"\x89PNG")


def test_without_any_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERCER_DATA", raising=False)
    with pytest.raises(StorageError, match="MERCER_DATA"):
        spectral_table_2.reproduce(Settings())
