"""The scenarios of sequential kernel regression at tiny sizes, so that they cannot rot."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

_NO_RIVER = "River is not installed"


def lines_of(name: str, metrics: Any) -> list[str]:
    """The lines of a table; the metrics are as a record holds them."""
    from reproduce.basis_tables import BASIS_TABLES

    return BASIS_TABLES[name][1](json.loads(json.dumps(metrics)))


def tiny_growth() -> dict[str, Any]:
    from reproduce.stream_growth import growth

    return growth(10, 8, 1000, 2000, 1)


def test_growth() -> None:
    metrics = tiny_growth()
    assert metrics["ratio"] == pytest.approx(metrics["late_us"] / metrics["early_us"], rel=0.01)
    assert 0.02 < metrics["early_gib"] <= metrics["late_gib"] < 4.0
    lines = lines_of("basis-growth", {"growth": metrics})
    assert len(lines) == 6
    assert "times what it did" in lines[-1]


@pytest.mark.slow
def test_rates() -> None:
    pytest.importorskip("river", reason=_NO_RIVER)
    from reproduce.scenarios.basis_stream_v1 import rates, summary

    growth = {"ratio": 1.1}
    metrics = summary(rates(6, 8, 200, 1, 1), [growth])
    ours, river = metrics["rates"][:4], metrics["rates"][4:]
    assert [row["method"] for row in ours] == ["mercer"] * 4
    assert len({(row["lengthscale"], row["forgetting"]) for row in ours}) == 4
    assert all(row["sums_alone_ms"] < row["median_ms"] <= row["percentile_99_ms"] for row in ours)
    assert metrics["rows_per_second"] == min(row["rows_per_second"] for row in ours)
    assert metrics["ratio_of_growth"] == 1.1
    assert [row["forgetting"] for row in river] == [1.0, 0.998]
    assert len(lines_of("basis-stream", metrics)) == 2 + 6


def test_rates_of_classes() -> None:
    pytest.importorskip("river", reason=_NO_RIVER)
    from reproduce.scenarios.basis_stream_v1 import classes

    row = classes("Phishing", 0, 215)
    assert row["n_classes"] == 2
    assert 0.0 < row["median_ms"] <= row["percentile_99_ms"] <= row["slowest_ms"]
    assert -1.0 < row["log_score"] < 0.0
    assert 0.0 <= row["errors"] < 0.5


@pytest.mark.slow
def test_candidates() -> None:
    from reproduce.scenarios.basis_candidates_v1 import fitted, summary

    rows = [
        {
            "data": data,
            "n": 60,
            "n_candidates": r,
            "seed": 0,
            **fitted(data, 60, r, 0),
            "peak_gib": 1,
        }
        for data in ("sinc", "friedman")
        for r in (60, 8)
    ]
    assert all(0.5 < row["coverage"] <= 1.0 for row in rows)
    metrics = summary(rows)
    few, all_ = metrics["means"][0]["few"], metrics["means"][0]["all"]
    assert (few["n_candidates"], all_["n_candidates"]) == (8, 60)
    assert few["rmse_of_function"] > all_["rmse_of_function"]
    assert metrics["largest_error_ratio"] >= metrics["means"][0]["error_ratio"] > 1.0
    assert len(lines_of("basis-candidates", metrics)) == 2 + 4


def test_settings_for_speed() -> None:
    from reproduce.scenarios.basis_peers_v1 import OURS, fitted

    result = fitted(OURS[1], 120, 0)
    assert result["rmse"] < 0.15
    assert 0.0 < result["n_centres"] <= 15.0
    assert result["fit_gib"] >= 0.0


def test_peers() -> None:
    pytest.importorskip("fastrvm", reason="fastrvm is not installed")
    from reproduce.scenarios.basis_peers_v1 import PEERS, fitted

    assert all(fitted(peer, 120, 0)["rmse"] < 0.15 for peer in PEERS)


def test_the_better_peer_is_compared() -> None:
    from reproduce.scenarios.basis_peers_v1 import OURS, PEERS, summary

    figures = zip((*OURS, *PEERS), (2.0, 1.0, 0.1, 0.2), (1.0, 1.5, 1.2, 1.0), strict=True)
    rows = [
        {"method": method, "n": 1000, "seconds": seconds, "rmse": rmse, "peak_gib": 0.5,
         "n_centres": 7.0, "fit_gib": 0.1}
        for method, seconds, rmse in figures
    ]  # fmt: skip
    metrics = summary(rows)
    assert metrics["ratios"]["1000"][OURS[1]] == {
        "beside": PEERS[1], "time": 5.0, "error": 1.5, "memory": 1.0
    }  # fmt: skip
    assert len(lines_of("basis-peers", metrics)) == 2 + 4


def drift(families: tuple[str, ...], dimensions: tuple[int, ...]) -> list[dict[str, Any]]:
    from reproduce.scenarios.basis_drift_v1 import Sizes, rows_of

    sizes = Sizes(
        n_rows=50, n_first=20, n_repeats=2, n_particles=5, n_bumps=(6, 8), n_features=20
    )  # fmt: skip
    rows = rows_of(families, dimensions, sizes)
    assert {row["change"] for row in rows} == {"none", "slow", "abrupt"}
    assert all(np.isfinite(row["log_score"]) and row["ms_a_row"] > 0.0 for row in rows)
    return rows


@pytest.mark.slow
def test_drift() -> None:
    from reproduce.scenarios.basis_drift_v1 import summary

    rows = drift(("mercer", "SGD", "persistence"), (8,))
    assert len(rows) == 3 * (4 + 6 + 1)
    metrics = summary(rows)
    above = [each["log_score_above"] for each in metrics["above_best"]]
    assert [set(each) for each in above] == [{"SGD", "persistence"}] * 3
    lines = lines_of("basis-drift", metrics)
    assert len(lines) == 2 + 3 * 3
    assert sum("forgetting 1, 0.998, 0.99" in line for line in lines) == 3


def test_drift_of_river() -> None:
    pytest.importorskip("river", reason=_NO_RIVER)
    assert len(drift(("River",), (1, 8))) == 2 * 3 * 3


def outliers(families: tuple[str, ...]) -> list[dict[str, Any]]:
    from reproduce.scenarios.basis_outliers_v1 import STREAMS, rows_of

    rows = rows_of(families, (1,), 130, 1, n_particles=8, max_candidates=16)
    assert [row["stream"] for row in rows] == sorted(
        (row["stream"] for row in rows), key=STREAMS.index
    )
    assert all(np.isfinite(row["log_score"]) and row["ms_a_row"] > 0.0 for row in rows)
    return rows


@pytest.mark.slow
def test_outliers() -> None:
    from reproduce.scenarios.basis_outliers_v1 import summary

    rows = outliers(("mercer", "SGD"))
    assert len(rows) == 4 * (2 + 4) + 2
    ours = {(row["stream"], row["setting"]): row for row in rows if row["family"] == "mercer"}
    guarded, plain = (ours["one wild", setting] for setting in ("robust", "not robust"))
    assert guarded["rows_to_recover"] < plain["rows_to_recover"]
    assert guarded["log_score"] > plain["log_score"] + 1.0
    assert all(row["rows_to_recover"] is None for row in rows if row["stream"] != "one wild")
    metrics = summary(rows)
    (cost,) = metrics["cost_of_the_guard"]
    clean = [ours["clean", setting]["log_score"] for setting in ("not robust", "robust")]
    assert cost == {"d": 1, "nats": pytest.approx(clean[0] - clean[1], abs=1e-4)}
    assert [each["stream"] for each in metrics["above_best"]] == [
        "clean", "one per cent", "one wild", "level"
    ]  # fmt: skip
    lines = lines_of("basis-outliers", metrics)
    assert len(lines) == 2 + 4 * (2 + 1) + 2 + 2
    assert "with 1 input." in lines[-1]


def test_outliers_of_river() -> None:
    pytest.importorskip("river", reason=_NO_RIVER)
    assert len(outliers(("River",))) == 4 * 5


@pytest.mark.parametrize(
    ("lost", "rows"), [(np.zeros(60), 0), (np.append(np.ones(7), np.zeros(90)), 3)]
)
def test_rows_to_recover(lost: np.ndarray[Any, Any], rows: int) -> None:
    """Seven rows lose a nat each: the mean of the next fifty is below 0.1 once four are left."""
    from reproduce.scenarios.basis_outliers_v1 import _rows_to_recover

    assert _rows_to_recover(lost) == rows


def test_outliers_are_where_the_stream_says() -> None:
    from reproduce.workloads import outliers_v1

    y = np.zeros(1000)
    for stream, moved in (("clean", 0), ("one wild", 1), ("level", 500)):
        got, is_moved = outliers_v1(y, stream, 0)
        assert np.count_nonzero(got) == moved
        assert is_moved.sum() == (0 if stream == "level" else moved)
    got, is_moved = outliers_v1(y, "one per cent", 0)
    np.testing.assert_array_equal(is_moved, got != 0.0)
    assert 3 <= is_moved.sum() <= 20
    assert not is_moved[:100].any()
    assert np.abs(got[is_moved]).min() >= 2.0
    assert np.abs(got).max() <= 200.0


# ------------------------------------------------------------------------ what scenarios stand on


def test_a_point_learner_is_scored_before_it_learns() -> None:
    from reproduce.stream_peers import Persistence, scores_of

    y = np.array([1.0, 3.0, 5.0, 9.0])
    X = np.arange(4.0)[:, np.newaxis]
    said = scores_of(Persistence, X, y, 4)
    np.testing.assert_allclose(said.mean, [y.mean(), 1.0, 3.0, 5.0])
    spread = y.std()
    variance = 0.99 * spread**2 + 0.01 * (1.0 - y.mean()) ** 2
    want = -0.5 * np.log(2.0 * np.pi * variance) - 0.5 * (3.0 - 1.0) ** 2 / variance
    assert said.log_density[1] == pytest.approx(want)


@pytest.mark.parametrize("d", [1, 8])
def test_a_stream_changes_as_it_says(d: int) -> None:
    from reproduce.workloads import drifting_rows_v1

    streams = {c: drifting_rows_v1(4000, d, c, 1) for c in ("none", "slow", "abrupt")}
    X, y = streams["none"]
    assert X.shape == (4000, d)
    assert all(np.array_equal(X, other) for other, _ in streams.values())
    late, early = slice(3500, None), slice(None, 500)
    distance = {c: np.sqrt(np.mean((streams[c][1] - y)[late] ** 2)) for c in streams}
    assert distance["none"] == 0.0 < 0.3 < distance["slow"] < distance["abrupt"]
    np.testing.assert_array_equal(streams["abrupt"][1][early], y[early])
    assert not np.array_equal(drifting_rows_v1(4000, d, "none", 2)[1], y)


def test_streams_and_sinc_have_the_noise_that_they_say() -> None:
    from reproduce.workloads import sinc_rows_v1, steady_rows_v1

    X, y, f = sinc_rows_v1(4000, 3)
    assert 0.095 < np.std(y - f) < 0.105
    assert not np.array_equal(sinc_rows_v1(4000, 4)[1], y)
    X, y = steady_rows_v1(4000, 3)
    assert 0.48 < np.std(y - np.sin(X @ [1.0, 0.6, -0.3])) < 0.52
    assert not np.array_equal(steady_rows_v1(4000, 4)[1], y)


def test_a_page_of_the_paper_has_claims_tables_and_notes() -> None:
    claim = {"claim": "error", "paper": ".05", "ours": ".04", "verdict": "met", "note": "25 sets"}
    page = {"claims": [claim], "tables": [["| a |", "|---|", "| 1 |"]], "notes": ["A note."]}
    for name in ("basis-table-1", "basis-figure-1", "basis-table-2", "basis-claims"):
        lines = lines_of(name, {name: page})
        assert lines[2] == "| error | .05 | .04 | met (25 sets) |"
        assert lines[3:] == ["", "| a |", "|---|", "| 1 |", "", "A note."]
