"""Tables of the README and the docs, made from records by ``python -m reproduce.tables``.

A page holds ``<!-- table: NAME -->`` and ``<!-- end of table -->``; what stands between them is
written here, and a test holds it against the records.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reproduce.basis_tables import BASIS_TABLES
from reproduce.gp_tables import GP_TABLES
from reproduce.markdown import page_lines, table
from reproduce.record import read_record
from reproduce.spectral_tables import SPECTRAL_TABLES

__all__ = ["PAGES", "filled", "main"]

ROOT = Path(__file__).parent.parent
PAGES = (
    "README.md",
    "docs/papers/gp.md",
    "docs/papers/basis.md",
    "docs/papers/spectral.md",
    "docs/performance.md",
    "docs/scaling.md",
    "docs/how-to/classify-a-table.md",
    "docs/how-to/data-do-not-fit.md",
    "docs/how-to/find-wrong-labels.md",
    "docs/how-to/find-wrong-numbers.md",
    "docs/how-to/mix-all-models.md",
    "docs/how-to/predict-counts.md",
    "docs/how-to/noise-that-varies.md",
    "docs/how-to/missing-inputs.md",
)
_WIDE = ("default", "maximum", "lasso", "forest", "boosting")
_MARK = re.compile(r"<!-- table: ([a-z0-9-]+) -->\n.*?<!-- end of table -->", re.DOTALL)


def main() -> None:
    """Fill in the tables of all pages."""
    for page in PAGES:
        path = ROOT / page
        path.write_text(filled(path.read_text()))


def filled(text: str) -> str:
    """Return the page with every table made anew."""
    return _MARK.sub(lambda match: _block(match.group(1)), text)


def _block(name: str) -> str:
    scenario, make = _TABLES[name]
    record = read_record(scenario)
    if record is None:
        raise FileNotFoundError(f"no record of {scenario}: run python -m reproduce {scenario}")
    lines = make(record["metrics"])
    machine = record["machine"]
    source = (
        f"Record `reproduce/results/{scenario}.json`: commit {record['commit']}, "
        f"{record['date']}, {machine['cpu']}, one BLAS thread."
    )
    return "\n".join([f"<!-- table: {name} -->", *lines, "", source, "<!-- end of table -->"])


def _peers(metrics: dict[str, Any]) -> list[str]:
    names = {
        "make_classification_300_v1": "simulated, 300 x 8",
        "breast_cancer_300_v1": "breast cancer, 300 x 30",
    }
    header = ["data", "method", "log score", "error", "fit, CPU s", "predict, CPU s"]
    return table(
        header,
        [
            [
                names[row["data"]],
                row["method"],
                f"{row['log_score']:.3f} ± {row['log_score_standard_error']:.3f}",
                f"{100 * row['error_rate']:.1f} %",
                f"{row['fit_seconds']:.2f}",
                f"{row['predict_seconds']:.2f}",
            ]
            for row in metrics["rows"]
        ],
    )


def _stack(metrics: dict[str, Any]) -> list[str]:
    """Of each table the stack beside its best member, boosting and equal weights."""
    header = ["data", "rows judged", "stack", "best member", "less it", "less boosting"]
    header += ["less equal weights", "mean weights", "CPU s"]

    def less(row: dict[str, Any], name: str) -> str:
        if name not in row["gap"]:
            return "-"
        return f"{row['gap'][name]:+.3f} ± {row['gap_error'][name]:.3f}"

    def weights(row: dict[str, Any]) -> str:
        order = sorted(row["weights"].items(), key=lambda each: -each[1])
        return ", ".join(f"{name} {w:.2f}" for name, w in order)

    return table(
        header,
        [
            [
                row["data"],
                row["n_judged"],
                f"{row['log_score']['stack']:.3f}",
                f"{row['best']} {row['log_score'][row['best']]:.3f}",
                *(less(row, name) for name in (row["best"], "boosting", "equal")),
                weights(row),
                f"{row['seconds']:.0f}",
            ]
            for row in metrics["rows"]
        ],
    )


def _gradient(metrics: dict[str, Any]) -> list[str]:
    header = ["n", "d", "log v0", "dpotrf, ms", "gradient, ms", "ratio"]
    keys = ["n", "d", "log_signal_variance", "dpotrf_ms", "gradient_ms", "ratio"]
    return table(header, [[row[key] for key in keys] for row in metrics["rows"]])


def _ess(metrics: dict[str, Any]) -> list[str]:
    header = ["data", "sampler", "smallest ESS a CPU second", "smallest ESS", "CPU s", "draws"]
    keys = ["data", "sampler", "ess_per_second", "min_ess", "cpu_seconds", "n_draws_in_all"]
    return table(header, [[row[key] for key in keys] for row in metrics["rows"]])


def _coverage(metrics: dict[str, Any]) -> list[str]:
    """Shares over all families and numbers of inputs, then the cells that are off."""
    levels = (50, 90, 99)

    def shares(row: dict[str, Any]) -> list[str]:
        return [f"{row[f'inside_{level}']} ± {row[f'inside_{level}_se']}" for level in levels]

    lines = table(
        ["estimator", "n", "sets", *(f"in {level} %" for level in levels), "log score"],
        [
            [row["estimator"], row["n"], row["n_sets"], *shares(row), row["log_score"]]
            for row in metrics["by_size"]
        ],
    )
    n_cells, n_missed = len(metrics["cells"]), metrics["n_missed"]
    said = f"Of {n_cells} cells {n_missed} are off by more than {metrics['target_points']:g} points"
    return [*lines, "", said + " and two standard errors."]


def _means(
    part: str, keys: tuple[str, ...], names: tuple[str, ...]
) -> Callable[[dict[str, Any]], list[str]]:
    """Lines of means with their errors, of one part of a record."""

    def lines(metrics: dict[str, Any]) -> list[str]:
        rows = [
            [*(row[key] for key in keys), *(f"{row[name]} ± {row[f'{name}_se']}" for name in names)]
            for row in metrics[part]
        ]
        return table([*keys, *names], rows)

    return lines


def _alike(metrics: dict[str, Any]) -> list[str]:
    sizes = list(dict.fromkeys(row["n"] for row in metrics["rows"]))
    heads = [f"{what}, {n} rows" for n in sizes for what in ("CPU seconds", "log score")]
    found: dict[str, list[object]] = {}
    for row in metrics["rows"]:
        seconds = "" if row["method"] == "best" else row["seconds"]
        found.setdefault(row["method"], []).extend([seconds, f"{row['log_score']:.4f}"])
    return table(["method", *heads], [[name, *cells] for name, cells in found.items()])


def _airfoil(metrics: dict[str, Any]) -> list[str]:
    names = {
        "as it is": "airfoil, smooth process",
        "logarithms": "airfoil, logarithms of frequency and thickness",
        "matern12": 'airfoil, `kernel="matern12"`',
        "simulated": "same inputs, targets of a smooth process",
    }
    rows = [
        [
            names[row["how"]],
            row["n_sets"],
            *(f"{row[f'inside_{level}']} ± {row[f'inside_{level}_se']}" for level in (50, 90, 99)),
            row["log_score"],
        ]
        for row in metrics["airfoil"]
    ]
    return table(["targets", "splits", "in 50 %", "in 90 %", "in 99 %", "log score"], rows)


def _claims(name: str) -> Callable[[dict[str, Any]], list[str]]:
    def make(metrics: dict[str, Any]) -> list[str]:
        rows = [
            [
                claim["claim"],
                claim["paper"],
                claim["ours"],
                claim["verdict"] + (f" ({claim['note']})" if claim["note"] else ""),
            ]
            for claim in metrics[name]["claims"]
        ]
        return [*table(["claim", "paper", "ours", "verdict"], rows), "", *metrics[name]["notes"]]

    return make


def _size(metrics: dict[str, Any]) -> list[str]:
    return table(
        ["n", "peak of fit, n x n arrays", "of fit and predict"],
        [[metrics["n"], metrics["peak_arrays_fit"], metrics["peak_arrays_fit_and_predict"]]],
    )


def _seconds_of_classes(metrics: dict[str, Any]) -> list[str]:
    keys = ["data", "method", "fit_seconds", "predict_seconds", "error", "log_score"]
    header = ["table", "method", "fit, s", "predict, s", "error", "log score"]
    return table(header, [[row[key] for key in keys] for row in metrics["rows"]])


def _one_scale(metrics: dict[str, Any]) -> list[str]:
    header = ["table", "rows", "model", "fits with one scale", "log score, each", "by evidence",
              "error, each", "by evidence"]  # fmt: skip
    keys = ["data", "n_rows", "model", "auto_is_one", "std_log_score", "auto_log_score",
            "std_error", "auto_error"]  # fmt: skip
    return table(header, [[row[key] for key in keys] for row in metrics["rows"]])


def _weights(metrics: dict[str, Any]) -> list[str]:
    header = ["table", "labels flipped", "fits with weights", "log score, none", "weights",
              "error, none", "weights", "precision, none", "weights"]  # fmt: skip
    keys = ["data", "rate", "weights_is_weighed", "none_log_score", "weights_log_score",
            "none_error", "weights_error", "none_precision", "weights_precision"]  # fmt: skip
    return table(header, [[row[key] for key in keys] for row in metrics["rows"]])


def _startup(metrics: dict[str, Any]) -> list[str]:
    names = {
        "help_seconds": "`mercer --help`",
        "import_seconds": "`import mercer`",
        "bare_python_seconds": "Python alone",
        "first_fit_with_compilation_seconds": "first fit, loops compiled",
        "first_fit_from_cache_seconds": "first fit, loops cached",
    }
    return table(["process", "seconds"], [[text, metrics[key]] for key, text in names.items()])


def _cone(metrics: dict[str, Any]) -> list[str]:
    header = ["m, d", "sampler", "law", "smallest ESS a CPU second", "smallest ESS", "CPU s"]
    return table(
        header,
        [
            [
                f"{row['m']}, {row['d']}",
                row["sampler"],
                row["law"],
                f"{row['ess_per_second']:g}"
                + ("" if row["has_200_effective"] else " (under 200 effective draws at the limit)"),
                f"{row['min_ess']:.0f}",
                f"{row['cpu_seconds']:.0f}",
            ]
            for row in metrics["rows"]
        ],
    )


def _audit(metrics: dict[str, Any]) -> list[str]:
    rivals = ["logistic", "forest", "boosting", "gp"]
    ours = ["mercer", "mercer, one rate"]
    header = ["data", "flipped", *ours, *rivals, "best of the twelve", "best less mercer"]
    header += ["share wrong", "learned"]
    header += [f"listed at {one['fdr']:g}: right of all" for one in metrics["lists"]]
    lines = table(
        header,
        [
            [
                cell["data"],
                cell["flips"],
                *(f"{cell['average_precision'][method]:.3f}" for method in (*ours, *rivals)),
                f"{cell['best_rival']}, {cell['average_precision'][cell['best_rival']]:.3f}",
                _with_error(cell["below_best"], cell["below_best_standard_error"]),
                f"{cell['true_share']:.3f}",
                f"{cell['learned_share']:.3f}",
                *(f"{one['right']} of {one['listed']}" for one in cell["lists"]),
            ]
            for cell in metrics["cells"]
        ],
    )
    said = "; ".join(
        f"{one['right']} of {one['listed']} at {one['fdr']:g} ({one['expected']:g} expected)"
        for one in metrics["lists"]
    )
    settings = ", ".join(f"{name} {value}" for name, value in metrics["settings"].items())
    seeds = f"Seeds: {metrics['n_seeds']}. Settings: {settings}; else the defaults."
    return [*lines, "", f"Rows of all lists that are right after all: {said}.", "", seeds]


def _audit_rows(metrics: dict[str, Any]) -> list[str]:
    kind, head = ("kind", "labels") if "kind" in metrics["rows"][0] else ("classes", "classes")
    heads = [
        "rows", head, "by", "CPU seconds", "share that looks wrong", "of the flipped found",
        "listed", "of these right", "warns",
    ]  # fmt: skip
    rows = [
        [
            row["n"], row[kind], row["how"], f"{row['seconds']:g}", f"{row['wrong']:.3f}",
            "" if row["found"] is None else f"{row['found']:.3f}",
            row["listed"], "" if row["right"] is None else f"{row['right']:.3f}",
            "yes" if row["warns"] else "no",
        ]
        for row in metrics["rows"]
    ]  # fmt: skip
    return table(heads, rows)


def _audit_numbers(metrics: dict[str, Any]) -> list[str]:
    methods = list(metrics["cells"][0]["average_precision"])
    shares = [name for name in ("learned_share", "share_of_values") if name in metrics["cells"][0]]
    heads = [name.replace("_", " ") for name in shares]
    lines = table(
        ["data", "errors", *methods, "best rival less mercer", *heads],
        [
            [
                cell["data"],
                cell["kind"],
                *(f"{cell['average_precision'][method]:.3f}" for method in methods),
                _with_error(cell["below_best"], cell["below_best_standard_error"]),
                *(f"{cell[name]:.3f}" for name in shares),
            ]
            for cell in metrics["cells"]
        ],
    )
    share, seconds = 100 * metrics["share_wrong"], metrics["cpu_seconds"]
    end = f"Seeds: {metrics['n_seeds']}; wrong: {share:g} %. mercer: {seconds} CPU seconds a fit."
    return [*lines, "", end]


def _with_error(value: float, error: float | None) -> str:
    return f"{value:.3f}" if error is None else f"{value:.3f} ± {error:.3f}"


def _review(metrics: dict[str, Any]) -> list[str]:
    orders = ("review", "list", "logistic", "forest")
    header = ["data", "rows", "seeds", "flips to find", "review", "list", "logistic", "forest"]
    header += [f"{order} less review" for order in orders[1:]]
    return table(
        header,
        [
            [
                *(row[key] for key in ("data", "n", "n_seeds", "least", *orders)),
                *(f"{row[f'{o}_more']} ± {row[f'{o}_more_error']}" for o in orders[1:]),
            ]
            for row in metrics["rows"]
        ],
    )


def _active(metrics: dict[str, Any]) -> list[str]:
    header = ["data", "learner", "queries", "mean error", "last error", "above mercer's query"]
    return table(
        header,
        [
            [
                row["data"],
                row["learner"],
                row["strategy"],
                f"{row['area']:.4f} ± {row['standard_error']:.4f}",
                f"{row['last_error']:.4f}",
                f"{row['above_ours']:.4f} ± {row['above_ours_standard_error']:.4f}",
            ]
            for row in metrics["rows"]
        ],
    )


def _noise(metrics: dict[str, Any]) -> list[str]:
    header = ["n", "q", "trajectories: smallest ESS a CPU second", "smallest ESS", "of the errors"]
    header += ["line moves: smallest ESS a CPU second", "smallest ESS", "ratio"]
    return table(
        header,
        [
            [
                row["n"],
                row["q"],
                f"{row['hmc']['ess_per_second']:g}",
                f"{row['hmc']['min_ess']:.0f}",
                f"{row['hmc']['ess_per_second_of_errors']:g}",
                f"{row['lines']['ess_per_second']:g}",
                f"{row['lines']['min_ess']:.0f}",
                f"{row['ratio']:g}",
            ]
            for row in metrics["rows"]
        ],
    )


def _events(metrics: dict[str, Any]) -> list[str]:
    header = ["n", "r", "an event, us", "its memory traffic, us", "ratio"]
    keys = ["n", "r", "event_us", "traffic_us", "ratio"]
    return table(header, [[row[key] for key in keys] for row in metrics["events"]])


def _circle(metrics: dict[str, Any]) -> list[str]:
    header = ["n = r", "product, us a direction", "whole step, us", "speed of the product"]
    keys = ["n", "product_us_a_direction", "step_us", "speed_of_the_product"]
    return table(header, [[metrics[key] for key in keys]])


def _evidence(metrics: dict[str, Any]) -> list[str]:
    header = ["data", "n", "error in nats, median of ten runs", "largest", "CPU s"]
    rows = [
        [
            row["data"],
            row["n"],
            row.get("median_error", "no exact value"),
            row.get("largest_error", f"sd between runs {row.get('largest_sd_between_seeds')}"),
            row["seconds"],
        ]
        for row in metrics["rows"]
    ]
    return table(header, rows)


def _misspecified(metrics: dict[str, Any]) -> list[str]:
    header = [
        "n",
        "sampler",
        "smallest ESS a CPU second",
        "smallest ESS",
        "ESS a CPU second, errors",
    ]
    keys = ["n", "sampler", "ess_per_second", "min_ess", "ess_per_second_of_errors"]
    return table(header, [[row[key] for key in keys] for row in metrics["rows"]])


def _many(metrics: dict[str, Any]) -> list[str]:
    logistic = metrics["logistic"]
    header = ["n, r", "method", "minutes", "peak GiB", "R-hat", "error", "average precision"]
    size = f"{metrics['n']}, {metrics['r']}"
    return table(
        header,
        [
            [size, "mercer", metrics["minutes"], metrics["peak_gib"],
             metrics["max_rhat_of_margins"], metrics["error"], metrics["average_precision"]],
            [size, "logistic regression", logistic["minutes"], "", "", logistic["error"],
             logistic["average_precision"]],
        ],
    )  # fmt: skip


def _many_on_dask(metrics: dict[str, Any]) -> list[str]:
    header = ["n, r", "draws", "minutes", "GiB a worker", "GiB of the command", "R-hat",
              "smallest ESS", "error", "average precision"]  # fmt: skip
    keys = ["minutes", "gib_a_worker", "gib_of_the_command", "max_rhat_of_margins",
            "min_ess_of_margins", "error", "average_precision"]  # fmt: skip
    size, draws = f"{metrics['n']}, {metrics['r']}", f"2 x {metrics['n_draws']}"
    return table(header, [[size, draws, *(metrics[key] for key in keys)]])


_TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], list[str]]]] = {
    "stack": ("stack-v2", _stack),
    "gp-peers": ("gp-peers-v1", _peers),
    "gp-gradient": ("gp-gradient-v1", _gradient),
    "gp-ess": ("gp-ess-v1", _ess),
    "gp-memory": ("gp-memory-v1", _size),
    "seconds-classes": ("seconds-classes-v1", _seconds_of_classes),
    "one-scale": ("one-scale-v1", _one_scale),
    "sphere-weights": ("sphere-weights-v1", _weights),
    "startup": ("startup-v1", _startup),
    "sphere-cone": ("sphere-cone-v1", _cone),
    "sphere-noise": ("sphere-noise-v1", _noise),
    "sphere-events": ("sphere-noise-v1", _events),
    "sphere-circle": ("sphere-circle-v1", _circle),
    "sphere-evidence": ("sphere-evidence-v1", _evidence),
    "sphere-misspecified": ("sphere-misspecified-v1", _misspecified),
    "sphere-many": ("sphere-many-v1", _many),
    "sphere-dask": ("sphere-dask-v1", _many_on_dask),
    "sphere-audit": ("sphere-audit-v2", _audit),
    "audit-rows": ("audit-rows-v2", _audit_rows),
    "audit-classes": ("audit-classes-v1", _audit_rows),
    "audit-numbers": ("audit-numbers-v1", _audit_numbers),
    "audit-factors": ("audit-factors-v1", _audit_numbers),
    "review": ("review-v1", _review),
    "sphere-active": ("sphere-active-v1", _active),
    "coverage": ("coverage-v1", _coverage),
    "coverage-airfoil": ("coverage-v1", _airfoil),
    "bands": ("bands-v1", _means("functions", ("estimator",), ("function", "contributions"))),
    "bands-levels": ("bands-v1", _means("levels", ("estimator", "n_levels"), ("known", "new"))),
    "gp-alike": ("gp-alike-v1", _alike),
    "gp-wide": ("gp-wide-v1", _means("rows", ("task", "kind", "n", "d"), _WIDE)),
    **GP_TABLES,
    **BASIS_TABLES,
    **SPECTRAL_TABLES,
    "gp-pima": ("gp-accuracy-v1", _claims("gp-pima")),
    "gp-crabs": ("gp-accuracy-v1", _claims("gp-crabs")),
    "gp-table-1": ("gp-table-1-v1", page_lines),
    "gp-claims": ("gp-claims-v1", page_lines),
    "gp-table-2": ("gp-table-2-v1", page_lines),
}

if __name__ == "__main__":
    main()
