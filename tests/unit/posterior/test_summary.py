"""The table of `Draws.summary()`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.posterior.draws import Draws

COLUMNS = ("name", "mean", "sd", "q05", "q95", "mcse", "ess_bulk", "ess_tail", "rhat")


def test_monitored_first_then_scalars_and_labelled() -> None:
    rng = np.random.default_rng(12)
    shape = (4, 120)
    draws = Draws(
        variables={
            "latent": rng.normal(size=(*shape, 7)),
            "noise": rng.gamma(2.0, size=shape),
            "weight": rng.normal(size=(*shape, 2)),
            "theta": rng.normal(size=(*shape, 2)),
        },
        stats={},
        labels={"weight": ("glu", "bmi")},
        monitored=("theta",),
    )
    table = draws.summary()
    assert table.columns == COLUMNS
    assert table.column("name") == ("theta[0]", "theta[1]", "noise", "weight[glu]", "weight[bmi]")
    assert all(value is not None for value in table.rows[0])
    assert table.rows[2][5:] == (None,) * 4
    np.testing.assert_allclose(
        np.array(table.rows[2][1:5], dtype=float),
        [
            draws.flat("noise").mean(),
            draws.flat("noise").std(ddof=1),
            *np.quantile(draws.flat("noise"), [0.05, 0.95]),
        ],
    )


def test_weights_are_used() -> None:
    draws = Draws(
        {"x": np.array([[0.0, 1.0, 50.0]])}, {}, {}, (), log_weights=np.log([[0.5, 0.5, 1e-99]])
    )
    assert draws.summary().rows[0][:5] == ("x", 0.5, 0.5, 0.0, 1.0)


def test_values_that_are_not_finite_become_none() -> None:
    draws = Draws({"x": np.array([[0.0, np.nan]])}, {}, {}, ())
    assert draws.summary().rows == (("x", *(None,) * 8),)


def test_booleans_and_integers() -> None:
    draws = Draws({"b": np.array([[True, False]]), "k": np.array([[1, 3]])}, {}, {}, ())
    assert draws.summary().column("mean") == (0.5, 2.0)


def test_draws_of_several_models_are_judged_model_by_model() -> None:
    x = np.random.default_rng(13).normal(size=(4, 200)) + np.repeat([0.0, 9.0], 100)
    draws = Draws({"x": x}, {}, {}, ("x",), segments=(100, 100))
    assert draws.summary().rows[0][-1] < 1.05  # type: ignore[operator]
    assert replace(draws, segments=()).summary().rows[0][-1] > 1.3  # type: ignore[operator]
    with pytest.raises(UsageError, match="are not the 200 draws"):
        replace(draws, segments=(100, 99))
