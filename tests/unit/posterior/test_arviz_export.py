"""Draws as ArviZ holds them, before and after its 1.0."""

from __future__ import annotations

import sys
import types
import warnings
from typing import Any

import numpy as np
import pytest

from mercer.posterior.draws import Draws


@pytest.fixture
def draws() -> Draws:
    rng = np.random.default_rng(13)
    return Draws(
        variables={"weight": rng.normal(size=(2, 6, 2)), "noise": rng.gamma(2.0, size=(2, 6))},
        stats={
            "acceptance_rate": rng.random((2, 6)),
            "is_divergent": np.zeros((2, 6), dtype=bool),
            "energy": rng.normal(size=(2, 6)),
            "n_leapfrog": np.full((2, 6), 7),
            "step_size": np.full((2, 6), 0.1),
            "log_density": rng.normal(size=(2, 6)),
        },
        labels={"weight": ("glu", "bmi")},
        monitored=("weight",),
    )


def test_installed_arviz(draws: Draws) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        pytest.importorskip("arviz")
    data = draws.to_arviz()
    posterior, stats = data["posterior"], data["sample_stats"]
    np.testing.assert_array_equal(posterior["noise"].values, draws.variables["noise"])
    np.testing.assert_array_equal(
        posterior["weight"].sel(weight_dim_0="bmi").values, draws.variables["weight"][:, :, 1]
    )
    assert posterior["weight"].dims[:2] == ("chain", "draw")
    assert set(stats.data_vars) == {
        "acceptance_rate",
        "diverging",
        "energy",
        "n_steps",
        "step_size",
        "lp",
    }


def test_no_statistics_no_group() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        pytest.importorskip("arviz")
    data = Draws({"a": np.zeros((1, 3))}, {}, {}, ()).to_arviz()
    assert not hasattr(data, "sample_stats")


def test_arviz_from_1_0_takes_a_dict_of_groups(
    draws: Draws, monkeypatch: pytest.MonkeyPatch
) -> None:
    def from_dict(data: dict[str, Any], *, coords: Any = None, dims: Any = None) -> Any:
        return data, coords, dims

    new = types.ModuleType("arviz")
    new.from_dict = from_dict  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "arviz", new)
    groups, coords, dims = draws.to_arviz()
    assert set(groups) == {"posterior", "sample_stats"}
    assert coords == {"weight_dim_0": ["glu", "bmi"]}
    assert dims == {"weight": ["weight_dim_0"]}


def test_weighted_draws_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    new = types.ModuleType("arviz")
    new.from_dict = lambda data, coords, dims: data  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "arviz", new)
    """ArviZ averages draws alike, so that they are handed over as often as they weigh."""
    rng = np.random.default_rng(1)
    values = rng.normal(0.0, 2.0, (2, 4000))
    log_weights = -0.5 * values**2 * (1.0 - 0.25)  # of a standard normal
    draws = Draws({"a": values, "b": 3.0 * values}, {"acceptance": values}, {}, (), log_weights)
    groups = draws.to_arviz()
    a = np.asarray(groups["posterior"]["a"])
    assert a.shape == (2, 4000)
    assert abs(a.std() - 1.0) < 0.05
    assert abs(a.mean()) < 0.05
    assert abs(a[0].std() - a[1].std()) < 0.1  # shuffled: chains are alike
    np.testing.assert_array_equal(groups["posterior"]["b"], 3.0 * a)
    np.testing.assert_array_equal(groups["sample_stats"]["acceptance"], a)


def test_missing_arviz_names_the_extra(draws: Draws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"pip install 'mercer\[arviz\]'"):
        draws.to_arviz()
