from __future__ import annotations

import numpy as np
import pytest

from reproduce.papers.sphere_votes import _agreement_claim, _coverage_claim, coverage_errors


def test_rows_of_small_margin_are_left_out_first() -> None:
    is_wrong = np.array([True, False, False, False, True, False, False, False])
    vote_margin = np.array([0.0, 0.1, 0.2, 0.3, 0.15, 0.4, 0.5, 0.5])
    assert coverage_errors(is_wrong, vote_margin) == [0.25, 1 / 7, 1 / 6, 0.0]


@pytest.mark.parametrize(
    ("last", "verdict"), [((1.0, 1.2), "holds"), ((3.0, 3.2), "fails"), ((9.0, 9.0), "fails")]
)
def test_coverage_must_halve_the_error(last: tuple[float, float], verdict: str) -> None:
    errors = np.array([[6.0, 5.0, 4.0, last[0]], [6.2, 5.2, 4.2, last[1]]])
    assert _coverage_claim("toy", errors).verdict == verdict


def test_errors_must_not_rise_on_the_way() -> None:
    errors = np.array([[6.0, 7.0, 4.0, 1.0], [6.2, 7.2, 4.2, 1.2]])
    assert _coverage_claim("toy", errors).verdict == "fails"


@pytest.mark.parametrize(
    ("agreement", "gap", "verdict"),
    [(99.0, 0.2, "holds"), (94.0, 0.2, "fails"), (99.0, 0.8, "fails"), (99.0, -0.8, "fails")],
)
def test_agreement_and_errors_are_both_asked_for(
    agreement: float, gap: float, verdict: str
) -> None:
    vote = np.array([5.0, 6.0, 7.0])
    claim = _agreement_claim("toy", np.full(3, agreement), vote, vote + gap)
    assert claim.verdict == verdict
    assert f"difference {gap:+.2f}" in claim.ours
