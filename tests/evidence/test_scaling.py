"""What rows cost: the counts, the fit, the predictions; the scenario at tiny sizes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from reproduce.cost_model import (
    ENGINE_TERMS,
    TERMS,
    Cluster,
    Size,
    chain_sweeps,
    fitted,
    predicted,
    total,
    work_counts,
)
from reproduce.spectral_tables import SPECTRAL_TABLES


def lines_of(name: str, metrics: Any) -> list[str]:
    """The lines of a table; the metrics are as a record holds them."""
    return SPECTRAL_TABLES[name][1](json.loads(json.dumps(metrics)))


SMALL = tuple(
    Size(kind, n, m, d)
    for kind in ("sweep", "classes", "completion")
    for n, m, d in ((20_000, 16, 3), (40_000, 8, 10), (20_000, 32, 5))
)


@pytest.mark.slow
def test_what_rows_cost() -> None:
    """The scenario in little: every engine, a model, predictions and their tables."""
    pytest.importorskip("distributed")
    from reproduce.scenarios import spectral_scaling_v1 as scenario

    held_out = (Size("sweep", 30_000, 12, 4),)
    rows = scenario.rows_of((*SMALL, Size("checksums", 40_000, 1, 3)), held_out, 1)
    pairs = scenario.pairs_of(held_out[0], 1)
    metrics = scenario.metrics_of(rows, pairs, scenario.passes_of_fits(20_000, 3000, 8, 4))
    assert {row["workers"] for row in metrics["sizes"]} == {0, 1, 2}
    assert metrics["passes"]["numbers"] == {"completion": 1, "reading": 4}  # one for the noise
    assert metrics["passes"]["classes"]["newton"] == metrics["passes"]["classes"]["likelihood"]
    assert len(lines_of("scaling-check", metrics)) == 2 + 1 + 2
    assert len(lines_of("scaling-billion", metrics)) == 2 + 5 * 3
    for name in ("model", "engine", "pairs", "fits", "chains"):
        assert lines_of(f"scaling-{name}", metrics)


def test_seconds_of_a_sum_of_terms_are_found_again() -> None:
    true = dict(zip(TERMS, 1e-9 * np.arange(1.0, 1.0 + len(TERMS)), strict=True))
    sizes = [*SMALL, *(Size("checksums", n, 1, 4) for n in (10_000, 90_000))]
    sizes += [Size("newton", 50_000, 12, 9), Size("likelihood", 30_000, 70, 2)]
    sizes += [Size("reading", n, 1, 6) for n in (100, 20_000)]
    counts = [work_counts(size) for size in sizes]
    seconds = [total(true, each) for each in counts]
    found = fitted(counts, seconds, seconds)
    for size in (Size("sweep", 10**6, 384, 20), Size("classes", 10**6, 100, 50)):
        assert total(found, work_counts(size)) == pytest.approx(total(true, work_counts(size)))


def test_products_are_counted_as_the_pages_say() -> None:
    """12 n M^2 operations of a sweep, 16 of classes, 4 of a completed draw, and two passes."""
    n, m = 1000, 10_000
    for kind, flops in (("sweep", 12), ("classes", 16), ("newton", 4)):
        counts = work_counts(Size(kind, n, m, 3))
        assert counts["products"] == pytest.approx(flops * n * m**2, rel=1e-3)
    assert work_counts(Size("classes", n, m, 3))["passes"] == 2
    assert work_counts(Size("completion", n, m, 3))["passes"] == 1
    assert chain_sweeps(200_000, 100, 100) == {25_000: 23, 50_000: 23, 100_000: 23, 200_000: 131}


def test_a_pass_ends_with_the_longest_share() -> None:
    model = {"work": dict.fromkeys(TERMS, 1e-9), "engine": dict.fromkeys(ENGINE_TERMS, 1e-9)}
    size = Size("sweep", 10**8, 64, 5)
    whole = predicted(model, size, Cluster(1))
    shared = predicted(model, size, Cluster(8))
    assert whole["work"] / 8 <= shared["work"] < 1.3 * whole["work"] / 8
    assert shared["reading"] == pytest.approx(whole["reading"] / 8)
    parts = ("work", "reading", "client", "reduction")
    assert shared["total"] == pytest.approx(sum(shared[part] for part in parts))


@pytest.mark.slow  # starts a cluster
def test_labels_of_rows_on_two_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    from reproduce.scenarios import sphere_dask_v1 as scenario

    monkeypatch.setattr(scenario, "_FILE_ROWS", 4000)
    found = scenario.measured(10_000, 6, n_draws=40, n_warmup=40)
    assert found["average_precision"] > 0.99
    assert found["error"] < 0.01
    assert 0.0 < found["gib_a_worker"] < 4.0


def test_weights_of_inputs_and_none() -> None:
    from reproduce.scenarios import sphere_weights_v1 as scenario
    from reproduce.tables import _TABLES

    short = {"n_draws": 30, "n_warmup": 30, "n_chains": 1, "nugget": 0.1}
    rows = scenario.cell("simulated 8", 300, 0, **short)
    assert [row["is_weighed"] for row in rows[:2]] == [False, True]
    assert rows[1]["log_score"] < rows[0]["log_score"]
    assert all(row["precision"] > 0.2 for row in rows[2:])
    found = scenario.summary(rows)
    assert [(row["data"], row["rate"]) for row in found["rows"]] == [
        ("simulated 8", 0.0), ("simulated 8", 0.1)
    ]  # fmt: skip
    assert len(_TABLES["sphere-weights"][1](found)) == 2 + 2


def test_audits_by_one_rate_and_by_one_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    from reproduce.scenarios import sphere_audit_v2 as scenario

    monkeypatch.setattr(scenario, "SETTINGS", {"n_draws": 20, "n_warmup": 10, "n_chains": 1})
    own, one_rate = scenario._cell("rings_200", "5 % and 30 %", 0, "mercer")
    assert [own["method"], one_rate["method"]] == list(scenario.OURS)
    assert own["is_by_class"]
    assert not one_rate["is_by_class"]
    assert own["average_precision"] > one_rate["average_precision"] + 0.1


def test_a_review_in_the_order_of_the_model() -> None:
    from reproduce.scenarios import review_v1 as scenario

    X, y = scenario._table("moons_200", 0)
    recorded, is_wrong = scenario._flipped(y, 0)
    looked_at, in_list = scenario._reviewed(X, y, recorded, 2, 0)
    assert 2 <= looked_at < 20
    assert 2 <= in_list < 20
    assert 15 <= is_wrong.sum() <= 25


def test_an_audit_by_propagation_finds_flips() -> None:
    from reproduce.scenarios import audit_rows_v2 as scenario

    (row,) = scenario._cell(300, scenario.DECIDE, "propagation")
    assert row["found"] > 0.4
    assert 0.05 < row["wrong"] < 0.2


def test_one_scale_for_columns_of_one_unit() -> None:
    from reproduce.scenarios import one_scale_v1 as scenario
    from reproduce.tables import _TABLES

    X = scenario.table_of("spectra", 0)[0]
    assert X.shape == (2500, 60)
    assert X.std(axis=0).max() > 10.0 * X.std(axis=0).min()
    short = {"n_frequencies": 8, "n_draws": 4, "n_warmup": 4, "n_chains": 1}
    rows = scenario.cell("digits, 3 or 8", 60, True, "spectral", 0, **short)
    rows += scenario.cell("spectra", 60, False, "gp", 0, kernel="isotropic(rbf)")
    assert [row["is_one"] for row in rows] == [False, True, False, True]
    assert all(row["error"] < 0.6 for row in rows)
    found = scenario.summary(rows)
    assert [row["model"] for row in found["rows"]] == ["spectral", "gp"]
    assert len(_TABLES["one-scale"][1](found)) == 2 + 2
