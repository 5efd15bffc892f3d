from __future__ import annotations

from pathlib import Path

import pytest

from mercer.errors import StorageError
from reproduce.papers import spectral_class_folds, spectral_figure_5, spectral_folds
from reproduce.papers.reproduction import Settings, write_reproduction
from reproduce.papers.spectral_figure_5 import TIMED
from reproduce.papers.spectral_methods import PAPER_CHAIN
from reproduce.scenarios import spectral_paper_chain_v1
from support.table_1 import write_sets
from support.table_2 import write_class_sets


def verdicts(rows: dict, settings: Settings) -> list[str]:
    return [claim.verdict for claim in spectral_figure_5._claims(settings, rows)]


def test_claims_are_judged() -> None:
    good = {"bike": {"RKS": 1.0, "MKL": 2.0, "AlaC": 20.0, "BaNK": 30.0}}
    bad = {"eeg": {"RKS": 1.0, "MKL": 90.0, "RFO": 2.0, "BaNK": 30.0}}
    assert verdicts(good, Settings()) == ["holds", "holds"]
    assert verdicts(bad, Settings()) == ["fails", "fails"]
    assert verdicts({**good, **bad}, Settings(is_quick=True)) == ["not judged"] * 2


def test_sizes_are_those_asked_for() -> None:
    for task, methods in TIMED.items():
        for timed in methods:
            model = timed.make(384, False)
            assert type(model).__name__.endswith(task)
            values = model.get_params()
            n = values.get("n_frequencies", values.get("n_features", 0) // 2)
            assert n == 384 or values["frequencies_each"] == (96,)


def test_every_method_on_every_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_class_sets(monkeypatch, tmp_path, 70, "pima")
    write_sets(monkeypatch, tmp_path, 70, "airfoil")
    lines: list[str] = []
    settings = Settings(is_quick=True, tell=lines.append, folder=tmp_path / "out")
    outcome = spectral_figure_5.reproduce(settings)
    assert len(lines) == len(outcome.measured) == 10
    paths = write_reproduction(outcome, tmp_path / "out")
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    assert spectral_figure_5.reproduce(settings).to_csv() == outcome.to_csv()
    assert len(lines) == 10
    spectral_folds._arrays.cache_clear()
    spectral_class_folds.class_rows.cache_clear()


def test_without_any_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERCER_DATA", raising=False)
    with pytest.raises(StorageError, match="MERCER_DATA"):
        spectral_figure_5.reproduce(Settings())


def test_the_paper_chain_beside_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The scenario that runs both on the same folds."""
    write_class_sets(monkeypatch, tmp_path, 70, "pima")
    write_sets(monkeypatch, tmp_path, 70, "airfoil")
    folds = []
    for data in ("airfoil", "pima"):
        for key in spectral_paper_chain_v1.KEYS:
            for fold in range(2):
                folds += spectral_paper_chain_v1.fit_fold(data, fold, key, is_quick=True)
    rows = spectral_paper_chain_v1.means(folds)
    assert [(row["data"], row["method"], row["n_folds"]) for row in rows] == [
        (data, method, 2) for data in ("airfoil", "pima") for method in (PAPER_CHAIN, "BaNK")
    ]
    first, second = (each["error"] for each in folds[:2])
    assert rows[0]["error"] == pytest.approx((first + second) / 2)
    assert rows[0]["standard_error"] == pytest.approx(abs(first - second) / 2)
    assert all(each["cpu_seconds"] > 0.0 for each in folds)
    assert all(0.0 <= each["error"] <= 1.0 for each in folds if each["data"] == "pima")
    spectral_folds._arrays.cache_clear()
    spectral_class_folds.class_rows.cache_clear()
