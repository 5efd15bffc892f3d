from __future__ import annotations

import pytest

from reproduce.papers import basis_weight
from reproduce.papers.basis_runs import Figures
from reproduce.papers.reproduction import Settings


def test_the_printed_weight_is_seen_to_be_biased() -> None:
    """30 runs: the ratio is 0.2 to 0.4, its error a twentieth or less of what is missing."""
    ratio, error, printed, exact = basis_weight.evidence_ratio(30)
    assert ratio + 5.0 * error < 0.8
    assert ratio > 0.05
    assert printed < exact - 0.1


@pytest.mark.parametrize(
    ("ratio", "error", "verdicts"),
    [(0.3, 0.09, ["fails", "fails"]), (1.01, 0.056, ["holds", "holds"])],
)
def test_claims_are_judged(
    ratio: float, error: float, verdicts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(basis_weight, "evidence_ratio", lambda n: [ratio, 0.02, 1.0, 1.5])

    def rows(settings: Settings, keys: tuple[str, ...]) -> dict[str, list[Figures]]:
        return {
            method.name: [Figures(error**2, 4.0, 0.1, 0.9, 0.9)] * 3
            for method in (basis_weight._EXACT, basis_weight._PRINTED)
        }

    monkeypatch.setattr(basis_weight, "sinc_rows", rows)
    found = basis_weight.part(Settings())
    assert [claim.verdict for claim in found.claims] == verdicts
    assert basis_weight._PRINTED.key == "printed"
