"""What several tests of predictive laws watch."""

import pytest

from mercer.posterior import predictive


@pytest.fixture
def rows_evaluated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of each evaluation of a distribution function, as the search for quantiles goes on."""
    n_rows: list[int] = []
    real = predictive._student_gap_and_slope

    def counted(p, goal, heaviest, distances, *others):
        n_rows.append(len(distances))
        return real(p, goal, heaviest, distances, *others)

    monkeypatch.setattr(predictive, "_student_gap_and_slope", counted)
    return n_rows
