"""The container of draws."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.posterior.draws import Draws


def make_draws(n_chains: int = 2, n_draws: int = 5) -> Draws:
    rng = np.random.default_rng(1)
    return Draws(
        variables={
            "weight": rng.normal(size=(n_chains, n_draws, 2)),
            "noise": rng.gamma(2.0, size=(n_chains, n_draws)),
            "matrix": rng.normal(size=(n_chains, n_draws, 2, 3)),
        },
        stats={"energy": rng.normal(size=(n_chains, n_draws))},
        labels={"weight": ("glu", "bmi")},
        monitored=("weight",),
    )


def test_sizes() -> None:
    draws = make_draws(3, 4)
    assert (draws.n_chains, draws.n_draws, draws.n_total) == (3, 4, 12)


def test_flat_is_chain_after_chain() -> None:
    draws = make_draws()
    assert draws.flat("matrix").shape == (10, 2, 3)
    np.testing.assert_array_equal(draws.flat("noise")[5:], draws.variables["noise"][1])


def test_entry_names() -> None:
    draws = make_draws()
    assert draws.entry_names("noise") == ("noise",)
    assert draws.entry_names("weight") == ("weight[glu]", "weight[bmi]")
    assert draws.entry_names("matrix")[:4] == (
        "matrix[0,0]",
        "matrix[0,1]",
        "matrix[0,2]",
        "matrix[1,0]",
    )


def test_unknown_variable_is_named() -> None:
    with pytest.raises(UsageError, match="'nose'; there are weight, noise, matrix"):
        make_draws().flat("nose")


def test_pickles() -> None:
    draws = pickle.loads(pickle.dumps(make_draws()))
    np.testing.assert_array_equal(draws.flat("noise"), make_draws().flat("noise"))
    assert draws.labels == {"weight": ("glu", "bmi")}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("variables", {}, "at least one"),
        ("variables", {"a": np.zeros(3)}, "axes"),
        ("variables", {"a": np.zeros((2, 0))}, "not empty"),
        ("variables", {"a": np.zeros((2, 3)), "b": np.zeros((2, 4))}, "'b'"),
        ("stats", {"energy": np.zeros((2, 3, 1))}, "'energy'"),
        ("labels", {"b": ("x",)}, "no variable 'b'"),
        ("labels", {"a": ("x",)}, "1 labels"),
        ("monitored", ("b",), "no variable 'b'"),
        ("log_weights", np.zeros(3), "log_weights"),
        ("log_weights", np.full((2, 3), -np.inf), "finite maximum"),
        ("log_weights", np.full((2, 3), np.nan), "finite maximum"),
    ],
)
def test_refuses_what_does_not_fit(field: str, value: object, message: str) -> None:
    fields = {"variables": {"a": np.zeros((2, 3))}, "stats": {}, "labels": {}, "monitored": ()}
    with pytest.raises(UsageError, match=message):
        Draws(**{**fields, field: value})


def test_how_many_in_words() -> None:
    values = {"x": np.zeros((1, 7))}
    assert Draws(values, {}, {}, ()).size_words == "1 chain of 7 draws"
    assert Draws({"x": np.zeros((2, 7))}, {}, {}, ()).size_words == "2 chains of 7 draws"
    weighted = Draws(values, {}, {}, (), np.zeros((1, 7)))
    assert weighted.is_weighted
    assert weighted.size_words == "7 weighted draws"


def test_shown_without_its_arrays() -> None:
    draws = make_draws()
    assert repr(draws) == "<Draws: 2 chains of 5 draws; weight, noise, matrix>"
    page = draws._repr_html_()
    assert "<td>matrix</td><td>2x3</td>" in page
    assert "2 chains of 5 draws" in page


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((1, 1), "one point, nothing drawn"),
        ((4, 1), "4 chains of 1 draw"),
        ((1, 5), "1 chain of 5 draws"),
    ],
)
def test_sizes_in_words(shape: tuple[int, int], words: str) -> None:
    assert Draws({"x": np.zeros(shape)}, {}, {}, ()).size_words == words
