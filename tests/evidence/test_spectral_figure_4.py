from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mercer.errors import StorageError
from reproduce.papers import spectral_figure_4, spectral_folds
from reproduce.papers.reproduction import Settings, write_reproduction
from reproduce.papers.spectral_figure_4 import _Run, slope
from support.table_1 import write_sets


def test_slope_of_a_power_law() -> None:
    sizes = np.array([24.0, 48.0, 96.0])
    assert slope(sizes, 3.0 * sizes**1.7) == pytest.approx(1.7)


def curve(sizes: tuple[int, ...], mse: list[float], power: float) -> dict[int, list[_Run]]:
    return {
        size: [_Run(error + shift, float(size) ** power) for shift in (0.0, 0.01)]
        for size, error in zip(sizes, mse, strict=True)
    }


@pytest.mark.parametrize(
    ("power_n", "power_m", "mse_n", "mse_m", "verdicts"),
    [
        (1.0, 2.0, [0.5, 0.4, 0.2], [0.5, 0.3, 0.25], ["holds"] * 4),
        (2.0, 1.0, [0.5, 0.4, 0.6], [0.5, 0.4, 0.2], ["fails"] * 4),
        (1.0, 2.0, [0.5, 0.6, 0.4], [0.3, 0.2, 0.35], ["holds", "holds", "holds", "fails"]),
    ],
)
def test_claims_are_judged(power_n, power_m, mse_n, mse_m, verdicts: list[str]) -> None:
    by_rows = {"bike": curve((600, 1200, 2400), mse_n, power_n)}
    by_frequencies = {"bike": curve((24, 48, 96), mse_m, power_m)}
    claims = spectral_figure_4._claims(by_rows, by_frequencies, False)
    assert [claim.verdict for claim in claims] == verdicts
    quick = spectral_figure_4._claims(by_rows, by_frequencies, True)
    assert {claim.verdict for claim in quick} == {"not judged"}


class Fake:
    """Remembers the rows and the size; predicts the mean."""

    seen: list[tuple[int, int, int]]

    def __init__(self, n_frequencies: int, n_sweeps: int, seed: int) -> None:
        self.size = n_frequencies

    def fit(self, X: np.ndarray, y: np.ndarray) -> Fake:
        self.seen.append((len(X), self.size, int(1e6 * abs(X[0, 0]))))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.zeros(len(X))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    write_sets(monkeypatch, tmp_path, 400, *spectral_figure_4._SETS)
    monkeypatch.setattr(Fake, "seen", [], raising=False)
    monkeypatch.setattr(spectral_figure_4, "_unfitted", Fake)
    monkeypatch.setattr(spectral_figure_4, "_load_loops", lambda: None)
    yield
    spectral_folds._arrays.cache_clear()


def test_run_draws(fake, tmp_path: Path) -> None:
    settings = Settings(is_quick=True, folder=tmp_path / "out")
    outcome = spectral_figure_4.reproduce(settings)
    # Three sizes of either kind on two sets; the largest is in both.
    assert len(Fake.seen) == 2 * (3 + 3 - 1)
    assert {rows for rows, _, _ in Fake.seen} == {80, 160, 320}
    # Subsets begin with the same row: they lie within each other.
    assert len({first for _, _, first in Fake.seen}) == 2
    assert len(outcome.measured) == 12
    paths = write_reproduction(outcome, tmp_path / "out")
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    assert spectral_figure_4.reproduce(settings).to_csv() == outcome.to_csv()
    assert len(Fake.seen) == 10


def test_sizes_of_the_model_are_those_asked_for() -> None:
    model = spectral_figure_4._unfitted(24, 81, 5)
    assert (model.n_frequencies, model.n_draws, model.n_warmup) == (24, 40, 41)
    assert (model.n_chains, model.random_state) == (1, 5)


def test_without_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERCER_DATA", raising=False)
    with pytest.raises(StorageError, match="MERCER_DATA"):
        spectral_figure_4.reproduce(Settings())
