"""Tables of Gaussian processes beside their peers, for `reproduce.tables`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reproduce.markdown import table

__all__ = ["GP_TABLES"]

Metrics = dict[str, Any]


def _theta(metrics: Metrics) -> list[str]:
    header = ["method", "smallest ESS a CPU second", "smallest ESS", "CPU s"]
    header += ["warm-up, draws", "log score"]
    lines = table(
        header,
        [
            [
                row["method"],
                f"{row['ess_per_second']:g}",
                f"{row['min_ess']:g}",
                f"{row['cpu_seconds']:g}",
                f"{row['n_warmup']}, {row['n_draws']}",
                f"{row['log_score']:.4f} ± {row['log_score_standard_error']:.4f}",
            ]
            for row in metrics["means"]
        ],
    )
    ratios = " and ".join(f"{ratio:g} ({what})" for what, ratio in metrics["ratios"].items())
    score, error = metrics["log_score_of_full_models"]
    text = (
        f"Beside {metrics['best_peer']}, the best of the three: {ratios}. "
        f"Log score of all chains of the three: {score:.4f} ± {error:.4f}."
    )
    return [*lines, "", text]


def _map(metrics: Metrics) -> list[str]:
    header = ["n, d", "mercer, s", "scikit-learn, s", "ratio", "evidence, mercer"]
    header += ["evidence, scikit-learn"]
    return table(
        header,
        [
            [
                f"{row['n']}, {row['d']}",
                row["mercer_seconds"],
                row["sklearn_seconds"],
                row["ratio"],
                f"{row['mercer_evidence']:.3f}",
                f"{row['sklearn_evidence']:.3f}",
            ]
            for row in metrics["rows"]
        ],
    )


def _kernels(metrics: Metrics) -> list[str]:
    singles = list(metrics["mean_gap"])
    header = ["data", "auto", *singles, "auto less the best", "auto, CPU s"]

    def gap(row: Metrics) -> str:
        best = min(singles, key=lambda kernel: row["log_score"][kernel])
        return f"{row['gap'][best]:+.3f} ± {row['gap_error'][best]:.3f}"

    return table(
        header,
        [
            [
                f"{row['data']}, {row['n_rows']} x {row['n_inputs']}",
                *(f"{row['log_score'][kernel]:.3f}" for kernel in ("auto", *singles)),
                gap(row),
                f"{row['seconds']['auto']:.1f}",
            ]
            for row in metrics["rows"]
        ],
    )


def _categories(metrics: Metrics) -> list[str]:
    methods = list(metrics["rows"][0]["log_score"])
    less = f"auto less {methods[1]}"
    header = ["data", *methods, less, *(f"error, {each}" for each in methods), "auto, CPU s"]
    return table(
        header,
        [
            [
                f"{row['data']}, {row['n_inputs']} inputs",
                *(f"{row['log_score'][each]:.3f}" for each in methods),
                f"{row['gap'][methods[1]]:+.3f} ± {row['gap_error'][methods[1]]:.3f}",
                *(f"{row['error'][each]:.3f}" for each in methods),
                f"{row['seconds']['auto']:.1f}",
            ]
            for row in metrics["rows"]
        ],
    )


def _folds(metrics: Metrics) -> list[str]:
    header = ["data", "folds", "as a model", "difference", "CPU s", "CPU s, as a model"]
    return table(
        header,
        [
            [
                f"{row['data']}, {row['n']} x {row['d']}",
                f"{row['short']:.3f}",
                f"{row['whole']:.3f}",
                f"{row['gap']:+.4f} ± {row['gap_se']:.4f}",
                f"{row['seconds']:.1f}",
                f"{row['seconds_whole']:.1f}",
            ]
            for row in metrics["rows"]
        ],
    )


def _trends(metrics: Metrics) -> list[str]:
    header = ["tables", "number", "drawn by chains", "CPU s, median", "CPU s, largest"]
    keys = ["kind", "n_tables", "n_chains", "median_seconds", "largest_seconds"]
    return table(header, [[row[key] for key in keys] for row in metrics["kinds"]])


def _calibration(metrics: Metrics) -> list[str]:
    header = ["data", "method", "log score", "error", "less mercer", "less mercer, map"]

    def difference(row: Metrics, name: str) -> str:
        mean, error = row["less_mercer"].get(name, (None, None))
        return "" if mean is None else f"{mean:.3f} ± {error:.3f}"

    return table(
        header,
        [
            [
                row["data"],
                row["method"],
                f"{row['log_score']:.3f}",
                f"{100 * row['error_rate']:.1f} %",
                difference(row, "mercer"),
                difference(row, "mercer, map"),
            ]
            for row in metrics["means"]
        ],
    )


def _time(metrics: Metrics) -> list[str]:
    header = ["n", "a gradient, s", "search of the maximum, s", "memory, GiB"]
    keys = ["n", "gradient_seconds", "search_seconds", "peak_gib"]
    return table(header, [[row[key] for key in keys] for row in metrics["sizes"]])


def _in_r(metrics: Metrics) -> list[str]:
    header = ["data", "method", "errors", "repeats", "log score", "published"]
    rows = [
        [
            row["data"],
            row["method"],
            f"{row['errors']:.1f}" + (f" ± {row['standard_error']:.2g}" * (row["repeats"] > 1)),
            row["repeats"],
            f"{row['log_score']:.3f}",
            f"{row['published']:g}",
        ]
        for row in metrics["rows"]
    ]
    return [*table(header, rows), "", f"{metrics['r']}."]


def _inducing(
    metrics: Metrics, ours: str = "inducing points", error: str = "standardized_mse"
) -> list[str]:
    what = "squared error" if error == "standardized_mse" else "error"
    header = ["data", "method", "log score", f"less {ours}", what, "fit, CPU s", "predict, CPU s"]

    def gap(row: Metrics) -> str:
        own = metrics["beside"][row["table"]].get(row["method"])
        return "" if own is None else f"{own[0]:+.3f} ± {own[1]:.3f}"

    return table(
        header,
        [
            [
                row["table"],
                row["method"],
                f"{row['log_score']:.3f}",
                gap(row),
                f"{row[error]:.3g}",
                f"{row['seconds']:.1f}",
                f"{row['predict_seconds']:.1f}" if "predict_seconds" in row else "",
            ]
            for row in metrics["rows"]
        ],
    )


def _rows(metrics: Metrics) -> list[str]:
    return _inducing(metrics, "all rows", "error")


def _seconds(metrics: Metrics) -> list[str]:
    header = ["what", "found", "target", "met"]

    def line(row: Metrics) -> list[Any]:
        error = f" ± {row['error']:.3f}" if row.get("error") else ""  # none of one seed
        found = f"{row['found']:.3f}{error}" if error else f"{row['found']:g}"
        met = {True: "yes", False: "no", None: ""}[row["is_met"]]
        return [row["what"], found, row["target"], met]

    return table(header, [line(row) for row in metrics["targets"]])


def _fits(metrics: Metrics) -> list[str]:
    header = ["fit", "seeds", "CPU s", "log score"]
    return table(
        header,
        [
            [
                f"{row['fit']}, {row['method']}",
                row["n_seeds"],
                f"{row['seconds']:.3g}",
                f"{row['log_score']:.3f}",
            ]
            for row in metrics["rows"]
        ],
    )


#: Name of the table -> scenario, and what makes its lines from the metrics.
GP_TABLES: dict[str, tuple[str, Callable[[Metrics], list[str]]]] = {
    "gp-theta-peers": ("gp-theta-peers-v1", _theta),
    "gp-map": ("gp-map-v1", _map),
    "gp-kernels": ("gp-kernels-v3", _kernels),
    "gp-categories": ("gp-categories-v2", _categories),
    "gp-folds": ("gp-folds-v2", _folds),
    "gp-trends": ("gp-trends-v1", _trends),
    "gp-calibration": ("gp-calibration-v2", _calibration),
    "gp-inducing": ("gp-inducing-v1", _inducing),
    "gp-rows": ("gp-rows-v1", _rows),
    "seconds": ("seconds-v1", _seconds),
    "seconds-of-fits": ("seconds-v1", _fits),
    "gp-r-rows": ("gp-r-rows-v1", _in_r),
    "gp-size": ("gp-size-v1", _time),
}
