"""Tables of the scenarios of BaNK, for `reproduce.tables`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reproduce.markdown import page_lines, table

__all__ = ["SPECTRAL_TABLES"]

Metrics = dict[str, Any]


def _sweep(metrics: Metrics) -> list[str]:
    targets = metrics["targets"]
    seconds = {"sweep": metrics["sweep_seconds"], "paper": metrics["paper_seconds"]}
    limit = metrics["dgemm_seconds"] + metrics["sincos_seconds"]
    loop = f"{metrics['accept_loop_ms']:g} ms"
    return table(
        ["what", "time", "beside", "its time", "ratio", "target"],
        [
            ["a sweep", f"{seconds['sweep']:g} s", "one product and one sine and cosine",
             f"{limit:.3g} s", metrics["sweep_to_limit"], targets["to_limit"]],
            ["a sweep", f"{seconds['sweep']:g} s", "the paper's scheme",
             f"{seconds['paper']:g} s", metrics["sweep_to_paper"], targets["to_paper"]],
            ["its accept loop", loop, "one Cholesky factor", f"{metrics['dpotrf_ms']:g} ms",
             metrics["accept_loop_in_factors"], targets["loop_in_factors"]],
        ],
    )  # fmt: skip


def _shares(metrics: Metrics) -> list[str]:
    shares = metrics["shares"]
    percent = [f"{100 * share:.1f} %" for share in shares.values()]
    rest = max(1.0 - sum(shares.values()), 0.0)
    return table([*shares, "the rest"], [[*percent, f"{100 * rest:.1f} %"]])


def _linear(metrics: Metrics) -> list[str]:
    header = ["rows", "a sweep, s", "reading alone, s", "file, GiB", "memory, GiB"]
    keys = ["n", "sweep_seconds", "reading_seconds", "gib_of_the_file", "peak_gib"]
    lines = table(header, [[row[key] for key in keys] for row in metrics["rows"]])
    exponent, without = metrics["exponent"], metrics["exponent_without_the_smallest"]
    return [*lines, "", f"Time grows as the power {exponent} of the number of rows; {without} "
            "without the smallest size."]  # fmt: skip


def _dask(metrics: Metrics) -> list[str]:
    targets = metrics["targets"]
    words = {"no cluster": "no cluster", "1 workers": "one worker", "2 workers": "two workers"}
    lines = table(
        ["who makes the pass", "seconds"],
        [[words[name], seconds] for name, seconds in metrics["seconds"].items()],
    )
    return [
        *lines,
        "",
        f"Two workers are {metrics['two_workers_to_one']:.2f} times as fast as one (target "
        f"{targets['two_workers_to_one']:g}); one takes {metrics['one_worker_to_none']:.2f} times "
        f"as long as no cluster (target {targets['one_worker_to_none']:g} at most).",
    ]


def _features(metrics: Metrics) -> list[str]:
    seconds, best = metrics["seconds"], metrics["fastest_of_sklearn"]
    return table(
        ["rows", "method", "seconds", "rows a second"],
        [
            [metrics["n"], "mercer", seconds["mercer"], metrics["rows_per_second"]],
            [metrics["n"], f"RBFSampler, {best}", seconds[best],
             metrics["rows_per_second_of_sklearn"]],
            [metrics["n"], "the product alone", seconds["dgemm"],
             round(metrics["n"] / seconds["dgemm"])],
        ],
    )  # fmt: skip


def _large(metrics: Metrics) -> list[str]:
    names = {
        "mercer": "mercer",
        "features": "RBFSampler, ridge regression",
        "trees": "histogram gradient boosting",
    }
    header = ["method", "rows", "minutes", "memory, GiB", "error", "error of the function"]
    keys = ["n_rows", "minutes", "peak_gib", "standardized_mse", "standardized_mse_of_function"]
    rows = [[names[row["method"]], *(row[key] for key in keys)] for row in metrics["rows"]]
    return table(header, rows)


def _million(metrics: Metrics) -> list[str]:
    names = {
        "mercer": "mercer",
        "features": "RBFSampler, logistic regression",
        "trees": "histogram gradient boosting",
    }
    header = ["method", "minutes", "memory, GiB", "error", "log score", "log score of the law"]
    keys = ["minutes", "peak_gib", "error_rate", "log_score", "log_score_of_the_law"]
    rows = [[names[row["method"]], *(row[key] for key in keys)] for row in metrics["rows"]]
    return table(header, rows)


def _peers(metrics: Metrics) -> list[str]:
    header = ["data", "method", "setting", "seconds", "error", "log score"]
    return table(
        header,
        [
            [
                row["data"],
                row["family"],
                row["setting"],
                f"{row['seconds']:.3g}",
                f"{row['standardized_mse']:.4f}",
                "" if row["log_score"] is None else f"{row['log_score']:.3f}",
            ]
            for row in metrics["rows"]
        ],
    )


def _classes(metrics: Metrics) -> list[str]:
    keys = ["n", "n_frequencies", "sampler", "n_leapfrog", "ms_of_a_sweep",
            "smallest_ess_per_second", "median_ess_per_second",
            "smallest_kernel_ess_per_second"]  # fmt: skip
    header = ["rows", "frequencies", "sampler", "steps of a trajectory", "a sweep, ms",
              "smallest ESS / s", "median ESS / s", "of the kernel, smallest"]  # fmt: skip
    return table(header, [[row[key] for key in keys] for row in metrics["ess"]])


def _class_sweeps(metrics: Metrics) -> list[str]:
    names = list(metrics["sweeps"][0]["ms"])
    return table(
        ["rows", "frequencies", *(f"{name}, ms" for name in names)],
        [
            [row["n"], row["n_frequencies"], *(row["ms"][name] for name in names)]
            for row in metrics["sweeps"]
        ],
    )


def _claims(claims: list[dict[str, str]]) -> list[str]:
    rows = []
    for claim in claims:
        verdict = f"{claim['verdict']} ({claim['note']})" if claim["note"] else claim["verdict"]
        rows.append([claim["claim"], claim["paper"], claim["ours"], verdict])
    return table(["claim", "paper", "ours", "verdict"], rows)


def _page(metrics: Metrics) -> list[str]:
    """Claims, then the further tables of a reproduction."""
    lines = _claims(metrics["claims"])
    for further in metrics["tables"]:
        lines += ["", *further]
    return lines


def _paper_chain(metrics: Metrics) -> list[str]:
    header = ["data", "method", "folds", "error", "CPU s a fold"]
    return table(
        header,
        [
            [
                row["data"],
                row["method"],
                row["n_folds"],
                f"{row['error']:.3g}"
                + (f" ± {row['standard_error']:.2g}" if row["n_folds"] > 1 else ""),
                f"{row['cpu_seconds']:.1f}",
            ]
            for row in metrics["rows"]
        ],
    )


#: Name of the table -> scenario, and what makes its lines from the metrics.
SPECTRAL_TABLES: dict[str, tuple[str, Callable[[Metrics], list[str]]]] = {
    "spectral-sweep": ("spectral-sweep-v1", _sweep),
    "spectral-shares": ("spectral-sweep-v1", _shares),
    "spectral-linear": ("spectral-linear-v1", _linear),
    "dask-sums": ("dask-sums-v1", _dask),
    "spectral-features": ("spectral-features-v1", _features),
    "spectral-large": ("spectral-large-v1", _large),
    "spectral-million": ("spectral-million-v1", _million),
    "spectral-peers": ("spectral-peers-v1", _peers),
    "spectral-classes": ("spectral-classes-v1", _classes),
    "spectral-class-sweeps": ("spectral-classes-v1", _class_sweeps),
    "spectral-table-1": ("spectral-table-1-v1", _page),
    "spectral-table-2": ("spectral-table-2-v1", page_lines),
    "spectral-claims": ("spectral-claims-v1", page_lines),
    "spectral-paper-chain": ("spectral-paper-chain-v1", _paper_chain),
    "spectral-figure-5": ("spectral-figure-5-v1", page_lines),
    "spectral-figure-4-classes": ("spectral-figure-4-classes-v1", page_lines),
    "spectral-figure-3": (
        "spectral-figures-v1",
        lambda metrics: _page(metrics["spectral-figure-3"]),
    ),
    "spectral-figure-4": (
        "spectral-figures-v1",
        lambda metrics: _page(metrics["spectral-figure-4"]),
    ),
}
