from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reproduce.papers import sphere_figure_1
from reproduce.papers.reproduction import Settings, write_reproduction
from reproduce.papers.sphere_figure_1 import _claims, _log_posterior, _Surface


def surface(n_modes: int, angle: float = 3.0) -> _Surface:
    modes = np.tile([-1.0, 0.0, 0.0], (n_modes, 1))
    return _Surface(np.eye(3), n_modes, n_modes, modes, 0.1, 0.2, angle)


def verdicts(few: list[int], many: list[int], angle: float, clean: list[int]) -> list[str]:
    claims = _claims([surface(k) for k in few], [surface(k, angle) for k in many], clean)
    return [claim.verdict for claim in claims]


def test_verdicts() -> None:
    assert verdicts([4, 1, 2], [1, 1], 9.0, [1, 1, 1]) == ["holds"] * 4
    assert verdicts([4, 1, 1], [1, 2], 11.0, [1, 2, 1]) == ["fails"] * 4


def test_log_posterior_is_that_of_the_likelihood() -> None:
    """n = 3 signed rows along the axes; at longitude pi/2, latitude pi only the first is wrong."""
    values = _log_posterior(np.eye(3) + 0.1, np.array([np.pi / 2]), np.array([np.pi, np.pi / 4]))
    assert values[0, 1] == pytest.approx(np.log(0.8))
    assert values[0, 0] == pytest.approx(np.log(0.2))
    S = np.array([[1.0, 0, 0], [0, 1.0, 0.1], [-1.0, 0, 0]])
    one = _log_posterior(S, np.array([np.pi / 2]), np.array([np.pi / 3]))
    assert one[0, 0] == pytest.approx((2 * np.log(0.8) + np.log(0.2)) / 3)


def test_every_local_maximum_of_ten_rows_counts() -> None:
    ten = sphere_figure_1._surface(10, 0)
    assert ten.n_modes == ten.n_local > 1
    assert ten.second_depth >= np.log(4.0) / 10 - 1e-12


def test_quick_run_draws_two_panels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sphere_figure_1, "_MANY", 150)
    outcome = sphere_figure_1.reproduce(Settings(is_quick=True))
    assert list(outcome.measured) == ["n = 10", "n = 150"]
    assert outcome.claims[0].verdict == outcome.claims[1].verdict == "holds"
    paths = write_reproduction(outcome, tmp_path)
    assert paths[2].read_bytes().startswith(b"\x89PNG")
