"""Tables of the scenarios of BaNK, for `reproduce.tables`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reproduce.cost_model import ENGINE_TERMS, TERMS
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


def _device_sweeps(metrics: Metrics) -> list[str]:
    header = ["rows", "frequencies", "pass, s", "share of the peak", "sweep, s",
              "sweep by NumPy, s", "times as fast"]  # fmt: skip
    lines = [
        [row["n"], row["n_frequencies"], row["pass_seconds"], f"{row['share_of_peak']:.0%}",
         row["sweep_seconds"], f"{row['numpy_pass_seconds'] + row['numpy_rest_seconds']:.3g}",
         f"{row['times_as_fast']:.0f}"]
        for row in metrics["sweeps"]
    ]  # fmt: skip
    said = (
        f"Card: {metrics['card']}, whose products of matrices in double precision reach "
        f"{metrics['peak_tflops']:g} TFLOP/s. NumPy with {metrics['threads']} threads."
    )
    return [*table(header, lines), "", said]


def _device_fits(metrics: Metrics) -> list[str]:
    short = [
        [f"one chain of 20 sweeps, {row['of']}", row["n"], row["settings"]["n_frequencies"],
         f"{row['device']:g} s", f"{row['numpy']:g} s"]
        for row in metrics["fits"]
    ]  # fmt: skip
    whole = [
        [f"the default, spectrum of {row['kernel_rows']} rows", row["n"], row["n_frequencies"],
         f"{row['seconds']:g} s", "-"]
        for row in metrics["whole_fits"]
    ]  # fmt: skip
    return table(["fit", "rows", "frequencies", "on the card", "by NumPy"], [*short, *whole])


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


def _scaling_model(metrics: Metrics) -> list[str]:
    """Seconds a unit: what one process does, then what Dask adds."""
    parts = (("work", TERMS, "one process"), ("engine", ENGINE_TERMS, "added by Dask"))
    return table(
        ["by", "for each", "CPU seconds"],
        [
            [who, words, f"{metrics['model'][part][name]:.3g}"]
            for part, terms, who in parts
            for name, words in terms.items()
        ],
    )


_KINDS = {
    "sweep": "a sweep, numbers",
    "classes": "a sweep, two classes",
    "completion": "coefficients of four draws",
    "checksums": "checksums",
}


def _scaling_check(metrics: Metrics) -> list[str]:
    """What was held out, beside the model; and the largest errors of what was fitted."""
    header = ["what", "rows", "frequencies", "inputs"]
    rows = [row for row in metrics["sizes"] if row["is_held_out"]]
    for n_workers in (0, 1, 2):
        header += [("no engine", "one worker", "two workers")[n_workers], "model, error"]
    lines = table(
        header,
        [
            [
                *(_KINDS[row["kind"]], row["n"], row["n_frequencies"], row["d"]),
                *(cell for each in _alike(rows, row) for cell in _beside_model(each)),
            ]
            for row in rows
            if row["workers"] == 0
        ],
    )
    fitted = [abs(row["error"]) for row in metrics["sizes"] if not row["is_held_out"]]
    median, largest = sorted(fitted)[len(fitted) // 2], max(fitted)
    return [
        *lines,
        "",
        f"Of what was fitted, {len(fitted)} sizes and engines, the median error is "
        f"{100 * median:.0f} %, the largest {100 * largest:.0f} %.",
    ]


def _alike(rows: list[Metrics], row: Metrics) -> list[Metrics]:
    keys = ("kind", "n", "n_frequencies", "d")
    return [each for each in rows if all(each[key] == row[key] for key in keys)]


def _beside_model(row: Metrics) -> tuple[str, str]:
    return f"{row['seconds']:.3g}", f"{row['expected']:.3g}, {100 * row['error']:+.0f} %"


def _scaling_engine(metrics: Metrics) -> list[str]:
    """What Dask adds to each size."""
    rows = metrics["sizes"]
    return table(
        ["what", "rows", "frequencies", "inputs", "no engine, CPU s", "one worker", "two workers"],
        [
            [
                *(_KINDS[row["kind"]], row["n"], row["n_frequencies"], row["d"]),
                f"{row['seconds']:.3g}",
                *(f"{each['to_none']:.2f} times" for each in _alike(rows, row)[1:]),
            ]
            for row in rows
            if row["workers"] == 0
        ],
    )


def _scaling_pairs(metrics: Metrics) -> list[str]:
    """What Dask adds to the largest size, measured in turn."""
    target = metrics["targets"]
    lines = table(
        ["workers", "one process, CPU s", "client and scheduler", "on the workers", "ratio"],
        [
            [
                row["workers"],
                *(f"{row[key]:.3g}" for key in ("none", "client", "on_workers")),
                f"{row['to_none']:.2f}",
            ]
            for row in metrics["pairs"]
        ],
    )
    return [
        *lines,
        "",
        f"The targets: one worker at most {target['one_worker_to_none']:g}, and in all at most "
        f"{1.0 + target['added_to_a_sweep']:g}.",
    ]


def _scaling_fits(metrics: Metrics) -> list[str]:
    """Passes that fits made."""
    words = {"numbers": "numbers", "classes": "two classes"}
    kinds = ["reading", "completion", "newton", "likelihood"]
    return table(
        ["fit of", "that only read", "coefficients of all draws", "Newton steps", "likelihoods"],
        [[words[name], *(of.get(k, 0) for k in kinds)] for name, of in metrics["passes"].items()],
    )


def _scaling_chains(metrics: Metrics) -> list[str]:
    """A chain of the defaults, and its completion from all rows."""
    words = {"sweep": ("numbers", "numbers"), "classes": ("classes", "two classes")}
    million = metrics["passes_of_million"]
    return table(
        ["fit of", "`kernel_rows`", "four chains, CPU minutes", "each 10^6 rows, CPU minutes"],
        [
            [
                words[row["kind"]][1],
                row["n"],
                f"{4 * row['seconds'] / 60:.3g}",
                f"{million[words[row['kind']][0]] / 60:.3g}",
            ]
            for row in metrics["chains"]
        ],
    )


def _scaling_billion(metrics: Metrics) -> list[str]:
    header = ["what", "workers", "minutes", "work", "reading", "one process", "sums on their way"]
    parts = ("total", "work", "reading", "client", "reduction")
    order = {row["what"]: k for k, row in reversed(list(enumerate(metrics["predictions"])))}
    rows = sorted(metrics["predictions"], key=lambda row: (order[row["what"]], row["workers"]))
    return table(
        header,
        [
            [row["what"], row["workers"], *(f"{row[part] / 60:.3g}" for part in parts)]
            for row in rows
        ],
    )


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


def _long_chains(metrics: Metrics) -> list[str]:
    keys = ("largest error", "largest rhat of kernel", "coverage", "width", "cpu_seconds")
    errors = {
        name: {row["seed"]: row["error"] for row in metrics["each"] if row["run"] == name}
        for name in ("default", "long")
    }
    ratios = [errors["default"][seed] / error for seed, error in errors["long"].items()]
    lines = table(
        ["run", "error", "largest error", "largest R-hat of the kernel", "lags in the band",
         "width of the band", "CPU s"],
        [
            [row["run"], f"{row['error']:.3f} ± {row['standard_error']:.3f}",
             *(f"{row[key]:.{places}f}" for key, places in zip(keys, (3, 3, 2, 2, 0), strict=True))]
            for row in metrics["rows"]
        ],
    )  # fmt: skip
    said = f"{min(ratios):.2f} to {max(ratios):.2f} times that of the long run"
    return [
        *lines,
        "",
        f"On each of the {len(ratios)} data sets the error of the default is {said}.",
    ]


def _counts(metrics: Metrics) -> list[str]:
    return table(
        ["data", "rows", "method", "log score", "in 90 %", "width", "error", "CPU s"],
        [
            [cell["data"], cell["n_rows"], method, f"{row['log_score']:.3f}",
             f"{row['coverage_90']:.3f}", f"{row['width_90']:.4g}", f"{row['rmse']:.4g}",
             f"{row['cpu_seconds']:.1f}"]
            for cell in metrics["cells"]
            for method, row in cell["scores"].items()
        ],
    )  # fmt: skip


def _noise(metrics: Metrics) -> list[str]:
    rows = []
    for cell in metrics["cells"]:
        for method, row in cell["scores"].items():
            log_score = row["log_score"]
            chosen = dict.fromkeys(cell["chosen"] if method == "mercer, auto" else ())
            name = f"{method}: {', '.join(chosen)}" if chosen else method
            rows.append(
                [cell["data"], cell["n_rows"], name,
                 "–" if log_score is None else f"{log_score:.3f}", f"{row['coverage_90']:.3f}",
                 f"{row['worst_third']:.3f}", f"{row['width_90']:.4g}",
                 f"{row['interval_score']:.4g}", f"{row['rmse']:.4g}", f"{row['cpu_seconds']:.1f}"]
            )  # fmt: skip
    names = ["log score", "in 90 %", "worst third", "width", "interval score", "error", "CPU s"]
    return table(["data", "rows", "method", *names], rows)


def _missing(metrics: Metrics) -> list[str]:
    names = ["log score, whole rows", "rows with gaps", "in 90 %, whole rows", "rows with gaps",
             "error", "CPU s"]  # fmt: skip
    return table(
        ["data", "rows", "method", *names],
        [
            [cell["data"], cell["n_rows"], method,
             *(f"{row[key]:.3f}" for key in ("log_score_whole", "log_score_gaps",
                                             "coverage_whole", "coverage_gaps")),
             f"{row['rmse']:.4g}", f"{row['cpu_seconds']:.1f}"]
            for cell in metrics["cells"]
            for method, row in cell["scores"].items()
        ],
    )  # fmt: skip


def _missing_of_classes(metrics: Metrics) -> list[str]:
    names = ["log loss, whole rows", "rows with gaps", "errors", "CPU s"]
    return table(
        ["data", "rows", "method", *names],
        [
            [cell["data"], cell["n_rows"], method,
             *(f"{row[key]:.3f}" for key in ("log_loss_whole", "log_loss_gaps", "errors")),
             f"{row['cpu_seconds']:.1f}"]
            for cell in metrics["classes"]
            for method, row in cell["scores"].items()
        ],
    )  # fmt: skip


def _defaults(metrics: Metrics) -> list[str]:
    names = ["warn", "sweeps a draw", "largest R-hat", "least effective size", "log score", "CPU s"]
    return table(
        ["data", "rows", "thin", *names],
        [
            [cell["data"], cell["n_rows"], cell["setting"],
             f"{cell['n_warn']} of {cell['n_seeds']}", f"{cell['times']:.1f}",
             f"{cell['max_rhat']:.2f}", f"{cell['min_ess']:.0f}",
             f"{cell['log_score']:.3f}", f"{cell['cpu_seconds']:.1f}"]
            for cell in metrics["cells"]
        ],
    )  # fmt: skip


def _frequencies(metrics: Metrics) -> list[str]:
    return table(
        ["data", "method", "frequencies", "log score", "error", "CPU s"],
        [
            [cell["data"], cell["method"], cell["frequencies"] or "",
             f"{cell['log_score']:.4f} ± {cell['log_score_se']:.4f}", f"{cell['error']:.4f}",
             f"{cell['cpu_seconds']:.1f}"]
            for cell in metrics["cells"]
        ],
    )  # fmt: skip


def _ordered(metrics: Metrics) -> list[str]:
    return table(
        ["data", "method", "log score", "ranked probability score", "wrong", "CPU s"],
        [
            [cell["data"], cell["method"], f"{cell['log_score']:.3f} ± {cell['log_score_se']:.3f}",
             f"{cell['ranked']:.3f} ± {cell['ranked_se']:.3f}",
             f"{cell['error']:.3f} ± {cell['error_se']:.3f}", f"{cell['cpu_seconds']:.1f}"]
            for cell in metrics["cells"]
        ],
    )  # fmt: skip


def _series(metrics: Metrics) -> list[str]:
    return table(
        ["series", "task", "method", "seeds", "log score", "worst", "error", "in 90 %", "CPU s"],
        [
            [row["series"], row["task"], row["method"], row["n_seeds"], f"{row['log_score']:.2f}",
             f"{row['worst_log_score']:.2f}", f"{row['error']:.3f}", f"{row['inside']:.2f}",
             f"{row['cpu_seconds']:.1f}"]
            for row in metrics["rows"]
        ],
    )  # fmt: skip


def _series_periods(metrics: Metrics) -> list[str]:
    rows = []
    for row in metrics["periods"]:
        found, unit = row["bank"], row["unit"]
        said = "none"
        if found is not None:
            said = (
                f"{found['period']:.4g} {unit}, between {found['lower']:.4g} and "
                f"{found['upper']:.4g}, with probability {found['probability']:.2f}"
            )
        rows.append([row["series"], said, f"{row['mixture']:.3g} {unit}"])
    return table(["series", "period, BaNK", "heaviest component, spectral mixture"], rows)


#: Name of the table -> scenario, and what makes its lines from the metrics.
SPECTRAL_TABLES: dict[str, tuple[str, Callable[[Metrics], list[str]]]] = {
    "spectral-sweep": ("spectral-sweep-v1", _sweep),
    "spectral-shares": ("spectral-sweep-v1", _shares),
    "spectral-device-sweeps": ("spectral-device-v1", _device_sweeps),
    "spectral-device-fits": ("spectral-device-v1", _device_fits),
    "spectral-linear": ("spectral-linear-v1", _linear),
    "dask-sums": ("dask-sums-v1", _dask),
    "scaling-model": ("spectral-scaling-v1", _scaling_model),
    "scaling-check": ("spectral-scaling-v1", _scaling_check),
    "scaling-engine": ("spectral-scaling-v1", _scaling_engine),
    "scaling-pairs": ("spectral-scaling-v1", _scaling_pairs),
    "scaling-fits": ("spectral-scaling-v1", _scaling_fits),
    "scaling-chains": ("spectral-scaling-v1", _scaling_chains),
    "scaling-billion": ("spectral-scaling-v1", _scaling_billion),
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
    "spectral-figure-3": ("spectral-figure-3-v1", page_lines),
    "spectral-figure-3-long": ("spectral-figure-3-long-v1", _long_chains),
    "spectral-counts": ("spectral-counts-v1", _counts),
    "spectral-ordered": ("spectral-ordered-v1", _ordered),
    "spectral-noise": ("spectral-noise-v2", _noise),
    "spectral-missing": ("spectral-missing-v1", _missing),
    "spectral-missing-classes": ("spectral-missing-v1", _missing_of_classes),
    "spectral-default": ("spectral-default-v1", _defaults),
    "spectral-frequencies": ("spectral-frequencies-v1", _frequencies),
    "spectral-series": ("spectral-series-v1", _series),
    "spectral-series-periods": ("spectral-series-v1", _series_periods),
    "spectral-figure-4": (
        "spectral-figures-v1",
        lambda metrics: _page(metrics["spectral-figure-4"]),
    ),
}
