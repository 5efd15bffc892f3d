"""Warnings in words: one fault at a time, and the limits to the last digit."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.posterior.diagnostics import Diagnostics, bfmi_limit, ess_limit, warning_texts
from mercer.posterior.draws import Cell, Draws, Table

LEVEL = 1e-4
ESS, BFMI = ess_limit(2000, LEVEL), bfmi_limit(500, LEVEL)


def table(*rows: tuple[Cell, ...]) -> Table:
    return Table(("name", "mean", "ess_bulk", "ess_tail", "rhat", "rhat_limit"), rows)


def draws(n_draws: int = 500, log_weights: np.ndarray | None = None) -> Draws:
    return Draws({"x": np.zeros((4, n_draws))}, {}, {}, (), log_weights=log_weights)


def texts(
    *rows: tuple[Cell, ...],
    of: Draws | None = None,
    n_divergent: int = 0,
    bfmi: tuple[float, ...] = (),
) -> tuple[str, ...]:
    return warning_texts(of or draws(), table(*rows), n_divergent, bfmi, LEVEL)


GOOD: tuple[Cell, ...] = ("good", 0.0, ESS, ESS, 1.0099, 1.01)


def test_nothing_to_say_at_the_limits() -> None:
    assert texts(GOOD, bfmi=(BFMI, 0.9)) == ()


def test_the_limits_of_long_runs_are_the_aims() -> None:
    assert ess_limit(2000, 0.5) == pytest.approx(400.0)
    assert ess_limit(100, 0.5) == pytest.approx(25.0)
    assert bfmi_limit(500, 0.5) == pytest.approx(0.3)
    assert 0.25 < bfmi_limit(100_000, LEVEL) < 0.3
    assert 150.0 < ESS < 300.0


def test_high_rhat_names_the_worst_for_its_limit() -> None:
    rows = (GOOD, ("a", 0.0, 500.0, 500.0, 1.3, 1.2), ("b", 0.0, 500.0, 500.0, 1.25, 1.01))
    (text,) = texts(*rows)
    assert text.startswith(
        "R-hat of b is 1.25 and should be below 1.010 (2 of 3 quantities miss this): the chains"
    )
    assert "n_warmup" in text


def test_rhat_at_the_limit_warns() -> None:
    (text,) = texts(("a", 0.0, 500.0, 500.0, 1.04, 1.04))
    assert text.startswith("R-hat of a is 1.04 and should be below 1.040: ")


@pytest.mark.parametrize(
    ("bulk", "tail", "kind", "size"),
    [(ESS - 1.0, 900.0, "bulk", ESS - 1.0), (900.0, 90.0, "tail", 90.0), (50.0, 20.0, "tail", 20)],
)
def test_low_ess(bulk: float, tail: float, kind: str, size: float) -> None:
    (text,) = texts(GOOD, ("a", 0.0, bulk, tail, 1.0, 1.01))
    assert text.startswith(
        f"the {kind} effective sample size of a is {size:.0f} and should be at least {ESS:.0f}: "
    )
    assert "n_draws" in text


def test_low_bfmi_names_the_chain() -> None:
    (text,) = texts(GOOD, bfmi=(0.9, 0.01, 0.02))
    assert text.startswith(
        f"BFMI of chain 2 is 0.01 and should be at least {BFMI:.2g} (2 of 3 chains"
    )


def test_divergences() -> None:
    (text,) = texts(GOOD, n_divergent=7)
    assert text.startswith("7 of 2000 draws came from divergent trajectories")


@pytest.mark.parametrize("limit", [1.66, 9.0, None])
def test_too_short_where_chains_in_two_places_could_not_be_told(limit: float | None) -> None:
    wide: tuple[Cell, ...] = ("wide", 0.0, 80.0, 80.0, None if limit is None else 1.5, limit)
    (text,) = texts(wide, of=draws(50))
    assert text.startswith("too short to judge: 200 draws in total")
    assert "of wide" in text
    assert len(texts(wide, of=draws(50), n_divergent=1)) == 2
    assert texts(("narrow", 0.0, 80.0, 80.0, 1.5, 1.65), of=draws(50)) == ()


def test_what_was_found_in_short_chains_is_said_in_place_of_too_short() -> None:
    (text,) = texts(("a", 0.0, 80.0, 80.0, 2.5, 2.0), of=draws(50))
    assert text.startswith("R-hat of a is 2.5")


def test_uneven_weights() -> None:
    even = draws(10, np.zeros((4, 10)))
    assert texts(("x", 0.0, 40.0, 40.0, None, None), of=even) == ()
    peaked = draws(30, np.where(np.arange(30) < 1, 0.0, -50.0) + np.zeros((4, 1)))
    (text,) = texts(("x", 0.0, 4.0, 4.0, None, None), of=peaked)
    assert text.startswith("the 120 weighted draws are worth 4.0 equal ones, less than 10%")


def test_one_line_for_all() -> None:
    found = Diagnostics(table(), None, 0, (), ("first.", "second.", "third."))
    assert found.worst_warning == "first. (2 more in the diagnostics.)"
    assert Diagnostics(table(), None, 0, (), ("first.",)).worst_warning == "first."
    assert Diagnostics(table(), None, 0, (), ()).worst_warning == ""
