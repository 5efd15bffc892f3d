from __future__ import annotations

import numpy as np
import pytest

from reproduce.papers import basis_order
from reproduce.papers.basis_order import mean_distance
from reproduce.papers.reproduction import Settings


def test_mean_distance_is_over_pairs() -> None:
    curves = np.random.default_rng(0).standard_normal((5, 30))
    squares = [np.mean((curves[i] - curves[j]) ** 2) for i in range(5) for j in range(5) if i != j]
    assert mean_distance(curves) == pytest.approx(np.sqrt(np.mean(squares)))


@pytest.mark.parametrize(("extra", "verdict"), [(0.0, "holds"), (1.0, "fails")])
def test_orders_are_held_against_seeds(
    extra: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)

    def curves(kind: str, seed: int, n: int, *, is_ordered: bool) -> np.ndarray:
        return (1.0 + extra * is_ordered) * rng.standard_normal((n, 100))

    monkeypatch.setattr(basis_order, "_curves", curves)
    found = basis_order.part(Settings())
    assert [claim.verdict for claim in found.claims] == [verdict] * 2
    assert len(found.measured["paper's settings, orders"]) == 10
