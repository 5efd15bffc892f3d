from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mercer.plot.style import bare_figure
from reproduce.papers import spectral_class_folds, spectral_figure_4_classes
from reproduce.papers.reproduction import Settings
from reproduce.papers.spectral_figure_4_classes import (
    ClassCurves,
    ClassRun,
    class_claims,
    class_curves,
)
from support.table_2 import write_class_sets


def curves(power_n: float, power_m: float, last_error: float) -> ClassCurves:
    errors = (0.3, 0.2, last_error)
    by_rows = zip((600, 1200, 2400), errors, strict=True)
    by_frequencies = zip((24, 48, 96), errors, strict=True)
    return ClassCurves(
        {"eeg": {n: ClassRun(e, float(n) ** power_n) for n, e in by_rows}},
        {"eeg": {m: ClassRun(e, float(m) ** power_m) for m, e in by_frequencies}},
    )


@pytest.mark.parametrize(
    ("case", "verdicts"),
    [
        ((1.0, 1.0, 0.1), ["holds"] * 3),
        ((1.0, 2.0, 0.1), ["holds", "fails", "holds"]),
        ((0.3, 1.0, 0.4), ["fails", "holds", "fails"]),
    ],
)
def test_claims_are_judged(case: tuple[float, float, float], verdicts: list[str]) -> None:
    found = curves(*case)
    assert [claim.verdict for claim in class_claims(found, Settings())] == verdicts
    quick = class_claims(found, Settings(is_quick=True))
    assert {claim.verdict for claim in quick} == {"not judged"}


def test_without_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERCER_DATA", raising=False)
    found = class_curves(Settings())
    assert found.is_empty
    assert [claim.verdict for claim in class_claims(found, Settings())] == ["not judged"]


class Fake:
    """Remembers the rows and the size; predicts class 1."""

    seen: list[tuple[int, int]]

    def __init__(self, n_frequencies: int, n_sweeps: int) -> None:
        self.size = n_frequencies

    def fit(self, X: np.ndarray, y: np.ndarray) -> Fake:
        self.seen.append((len(X), self.size))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.ones(len(X))


def test_every_size_is_run_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_class_sets(monkeypatch, tmp_path, 300, "eeg", "shuttle")
    monkeypatch.setattr(Fake, "seen", [], raising=False)
    monkeypatch.setattr(spectral_figure_4_classes, "_unfitted", Fake)
    settings = Settings(is_quick=True, folder=tmp_path / "out")
    found = class_curves(settings)
    assert len(Fake.seen) == 1 + 2 * (3 + 3 - 1)
    assert class_curves(settings) == found
    assert len(Fake.seen) == 2 + 2 * (3 + 3 - 1)
    errors, seconds = found.flat()
    assert len(errors) == len(seconds) == 12
    figure = bare_figure(4.0, 3.0)
    for what in ("error", "seconds"):
        found.draw(figure.subplots(), "N", what)
    spectral_class_folds.class_rows.cache_clear()


def test_sizes_of_the_model_are_those_asked_for() -> None:
    model = spectral_figure_4_classes._unfitted(24, 41)
    assert (model.n_frequencies, model.n_draws, model.n_warmup) == (24, 20, 21)
