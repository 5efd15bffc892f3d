"""Warnings in words: one fault at a time, and the limits to the last digit."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.posterior.draws import Draws
from mercer.posterior.table import Cell, Table
from mercer.posterior.verdict import warning_texts


def table(*rows: tuple[Cell, ...]) -> Table:
    return Table(("name", "mean", "ess_bulk", "ess_tail", "rhat"), rows)


def draws(n_draws: int = 100, log_weights: np.ndarray | None = None) -> Draws:
    return Draws({"x": np.zeros((4, n_draws))}, {}, {}, (), log_weights=log_weights)


GOOD: tuple[Cell, ...] = ("good", 0.0, 400.0, 400.0, 1.0099)


def test_nothing_to_say_at_the_limits() -> None:
    assert warning_texts(draws(), table(GOOD), 0, (0.3, 0.9)) == ()


def test_high_rhat_names_the_worst() -> None:
    rows = (GOOD, ("a", 0.0, 500.0, 500.0, 1.01), ("b", 0.0, 500.0, 500.0, 1.25))
    (text,) = warning_texts(draws(), table(*rows), 0, ())
    assert text.startswith(
        "R-hat of b is 1.25 and should be below 1.01 (2 of 3 quantities miss this): the chains"
    )
    assert "n_warmup" in text


def test_rhat_at_the_limit_warns() -> None:
    (text,) = warning_texts(draws(), table(("a", 0.0, 500.0, 500.0, 1.01)), 0, ())
    assert text.startswith("R-hat of a is 1.01 and should be below 1.01: ")


@pytest.mark.parametrize(
    ("bulk", "tail", "kind", "size"),
    [(399.4, 900.0, "bulk", "399"), (900.0, 120.0, "tail", "120"), (50.0, 20.0, "tail", "20")],
)
def test_low_ess(bulk: float, tail: float, kind: str, size: str) -> None:
    (text,) = warning_texts(draws(), table(GOOD, ("a", 0.0, bulk, tail, 1.0)), 0, ())
    assert text.startswith(
        f"the {kind} effective sample size of a is {size} and should be at least 400: "
    )
    assert "n_draws" in text


def test_low_bfmi_names_the_chain() -> None:
    (text,) = warning_texts(draws(), table(GOOD), 0, (0.9, 0.1, 0.29))
    assert text.startswith("BFMI of chain 2 is 0.1 and should be at least 0.3 (2 of 3 chains")


def test_divergences() -> None:
    (text,) = warning_texts(draws(), table(GOOD), 7, ())
    assert text.startswith("7 of 400 draws came from divergent trajectories")


def test_too_short_is_the_only_warning_on_convergence() -> None:
    bad: tuple[Cell, ...] = ("bad", 0.0, 3.0, 3.0, 2.0)
    (text,) = warning_texts(draws(99), table(bad), 0, (0.01,))
    assert text.startswith("too short to judge: 396 draws in total")
    assert len(warning_texts(draws(99), table(bad), 1, ())) == 2
    assert len(warning_texts(draws(100), table(bad), 0, (0.01,))) == 3


def test_uneven_weights() -> None:
    even = draws(10, np.zeros((4, 10)))
    assert warning_texts(even, table(("x", 0.0, 40.0, 40.0, None)), 0, ()) == ()
    peaked = draws(30, np.where(np.arange(30) < 1, 0.0, -50.0) + np.zeros((4, 1)))
    (text,) = warning_texts(peaked, table(("x", 0.0, 4.0, 4.0, None)), 0, ())
    assert text.startswith("the 120 weighted draws are worth 4.0 equal ones, less than 10%")
