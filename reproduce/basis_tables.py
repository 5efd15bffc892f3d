"""Tables of the scenarios of sequential kernel regression, for `reproduce.tables`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reproduce.markdown import page_lines, table

__all__ = ["BASIS_TABLES"]

Metrics = dict[str, Any]


def _stream(metrics: Metrics) -> list[str]:
    header = ["method", "length scale", "forgetting", "centres", "rows a second"]
    header += ["one row, ms", "99 % under, ms", "its sums alone, ms"]
    keys = ["method", "lengthscale", "forgetting", "n_centres", "rows_per_second"]
    keys += ["median_ms", "percentile_99_ms", "sums_alone_ms"]
    rows = [["" if row[key] is None else row[key] for key in keys] for row in metrics["rates"]]
    return table(header, rows)


def _growth(metrics: Metrics) -> list[str]:
    growth = metrics["growth"]
    lines = table(
        ["rows before", "a row, us", "centres", "memory, GiB"],
        [
            [growth[f"n_{when}"], *(growth[f"{when}_{what}"] for what in ("us", "centres", "gib"))]
            for when in ("early", "late")
        ],
    )
    return [*lines, "", f"A row costs {growth['ratio']} times what it did."]


def _candidates(metrics: Metrics) -> list[str]:
    header = ["data", "rows", "candidates", "error", "coverage", "centres", "seconds"]
    header += ["memory, GiB"]
    keys = ["n_candidates", "rmse_of_function", "coverage", "n_centres", "seconds", "peak_gib"]
    return table(
        header,
        [
            [each["data"], each["n"], *(each[which][key] for key in keys)]
            for each in metrics["means"]
            for which in ("few", "all")
        ],
    )


def _peers(metrics: Metrics) -> list[str]:
    header = ["rows", "method", "seconds", "error", "centres", "memory, GiB", "of the fit, GiB"]
    keys = ["n", "method", "seconds", "rmse", "n_centres", "peak_gib", "fit_gib"]
    return table(header, [[row[key] for key in keys] for row in metrics["rows"]])


def _drift(metrics: Metrics) -> list[str]:
    """All rates of forgetting side by side, and the best setting of each peer on each stream."""
    header = ["inputs", "change", "method", "setting", "error", "log score", "ms a row"]
    streams: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in metrics["rows"]:
        streams.setdefault((row["d"], row["change"], row["family"]), []).append(row)
    shown = [
        rows[-1] if family == "mercer" else max(rows, key=lambda row: float(row["log_score"]))
        for (_, _, family), rows in streams.items()
    ]
    return table(
        header,
        [
            [
                row["d"],
                row["change"],
                row["family"],
                row["setting"],
                f"{row['rmse']:.3f}",
                f"{row['log_score']:.3f} ± {row['log_score_standard_error']:.3f}",
                row["ms_a_row"],
            ]
            for row in shown
        ],
    )


def _outliers(metrics: Metrics) -> list[str]:
    """mercer's settings, the best setting of each family of peers, what the guard costs."""
    header = ["inputs", "stream", "method", "setting", "error", "log score", "rows to recover"]
    streams: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in metrics["rows"]:
        streams.setdefault((row["d"], row["stream"], row["family"]), []).append(row)
    shown = [
        row
        for (_, _, family), rows in streams.items()
        for row in (rows if family == "mercer" else [max(rows, key=lambda row: row["log_score"])])
    ]
    lines = table(
        header,
        [
            [
                row["d"],
                row["stream"],
                row["family"],
                row["setting"],
                f"{row['rmse']:.3f}",
                f"{row['log_score']:.3f} ± {row['log_score_standard_error']:.3f}",
                "" if row["rows_to_recover"] is None else row["rows_to_recover"],
            ]
            for row in shown
        ],
    )
    cost = " and ".join(
        f"{each['nats']:.4f} nats a row with {each['d']} input{'' if each['d'] == 1 else 's'}"
        for each in metrics["cost_of_the_guard"]
    )
    return [*lines, "", f"On clean streams the guard costs {cost}."]


def _page(name: str) -> Callable[[Metrics], list[str]]:
    return lambda metrics: page_lines(metrics[name])


#: Name of the table -> scenario, and what makes its lines from the metrics.
BASIS_TABLES: dict[str, tuple[str, Callable[[Metrics], list[str]]]] = {
    "basis-stream": ("basis-stream-v1", _stream),
    "basis-growth": ("basis-stream-v1", _growth),
    "basis-candidates": ("basis-candidates-v1", _candidates),
    "basis-peers": ("basis-peers-v1", _peers),
    "basis-drift": ("basis-drift-v1", _drift),
    "basis-outliers": ("basis-outliers-v1", _outliers),
    "basis-table-1": ("basis-papers-v1", _page("basis-table-1")),
    "basis-figure-1": ("basis-papers-v1", _page("basis-figure-1")),
    "basis-table-2": ("basis-papers-v1", _page("basis-table-2")),
    "basis-claims": ("basis-papers-v1", _page("basis-claims")),
}
