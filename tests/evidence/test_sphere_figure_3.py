from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reproduce.papers import sphere_figure_3
from reproduce.papers.reproduction import Settings, write_reproduction


@pytest.mark.parametrize(
    ("steps", "verdict"),
    [((2.0, 2.0), "holds"), ((2.0, -2.0), "fails"), ((2.0, 0.1), "fails")],
)
def test_every_step_must_be_clear(steps: tuple[float, float], verdict: str) -> None:
    """The last case: 0.1 is within two standard errors of 0."""
    noise = np.array([-0.3, 0.3, 0.3, -0.3])
    first = np.array([5.0, 6.0, 7.0, 8.0])
    percent = {("grid", 0.0): first, ("grid", 0.1): first + steps[0] + noise}
    percent["grid", 0.2] = percent["grid", 0.1] + steps[1] - noise
    assert sphere_figure_3._claim(percent, "grid").verdict == verdict


def test_a_cloud_has_fifty_draws_at_each_rate() -> None:
    cloud = sphere_figure_3._cloud(0)
    assert [f.shape for f in cloud.at_rows] == [(50, 76)] * 3
    assert np.array_equal(cloud.at_rows[0] > 0.0, np.tile(cloud.labels == 1, (50, 1)))
    assert not np.array_equal(cloud.at_rows[2] > 0.0, np.tile(cloud.labels == 1, (50, 1)))
    n_columns, n_rows = len(sphere_figure_3._SIDE[0]), len(sphere_figure_3._SIDE[1])
    nearest = int(np.abs(sphere_figure_3._SIDE[1] - cloud.X[0, 1]).argmin()) * n_columns
    nearest += int(np.abs(sphere_figure_3._SIDE[0] - cloud.X[0, 0]).argmin())
    on_grid = cloud.on_grid[1].reshape(50, n_rows * n_columns)[:, nearest]
    assert np.corrcoef(on_grid, cloud.at_rows[1][:, 0])[0, 1] > 0.99


def test_quick_run_holds_and_draws(tmp_path: Path) -> None:
    outcome = sphere_figure_3.reproduce(Settings(is_quick=True))
    assert [claim.verdict for claim in outcome.claims] == ["holds", "holds"]
    assert outcome.measured["training rows, q = 0.0"].tolist() == [0.0] * 5
    assert write_reproduction(outcome, tmp_path)[2].read_bytes().startswith(b"\x89PNG")
