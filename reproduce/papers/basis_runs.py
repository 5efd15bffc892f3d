"""Figures made of answers, kept in files; their table; claims about them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from reproduce.papers.basis_answer import Answer, Method, Problem
from reproduce.papers.kept import kept, parts_folder
from reproduce.papers.reproduction import Settings, mean_and_error

__all__ = ["BESIDE", "Figures", "column", "figures_of", "figures_table", "run_methods"]

Array = NDArray[np.float64]

#: Further columns of the files: words of their heads, and names of the figures.
BESIDE = {
    "kernels": "n_kernels",
    "noise": "noise_std",
    "coverage of the curve": "function_coverage",
    "coverage of targets": "target_coverage",
}
_FORMATS = {
    "n_kernels": ".1f",
    "noise_std": ".3g",
    "function_coverage": ".3f",
    "target_coverage": ".3f",
}


@dataclass(frozen=True)
class Figures:
    """Of one method on one data set.

    Attributes
    ----------
    error : float
        Mean squared.
    n_kernels, noise_std : float
    function_coverage, target_coverage : float
        Shares of test rows within their intervals; nan without.
    """

    error: float
    n_kernels: float
    noise_std: float
    function_coverage: float
    target_coverage: float


def figures_of(answer: Answer, problem: Problem) -> Figures:
    """Hold an answer against test rows."""
    f = problem.f_test
    truth = problem.y_test if f is None else f
    return Figures(
        float(np.mean((answer.mean - truth) ** 2)),
        float(answer.n_kernels),
        float(answer.noise_std),
        math.nan if f is None else _coverage(answer.of_function, f),
        _coverage(answer.of_target, problem.y_test),
    )


def _coverage(band: tuple[Array, Array] | None, values: Array) -> float:
    return math.nan if band is None else float(np.mean((band[0] <= values) & (values <= band[1])))


def run_methods(
    name: str, methods: Sequence[Method], problems: Sequence[Problem], settings: Settings
) -> dict[str, list[Figures]]:
    """Run every method on every problem, or read what this version of mercer found before.

    Parameters
    ----------
    name : str
        Of the problems, in names of files; the seed of a method is the number of the problem.

    Returns
    -------
    dict
        Of each method by its name, problem by problem.
    """
    return {
        method.name: [
            _run_method(name, method, problem, seed, settings)
            for seed, problem in enumerate(problems)
        ]
        for method in methods
    }


def _run_method(
    name: str, method: Method, problem: Problem, seed: int, settings: Settings
) -> Figures:
    def run() -> Mapping[str, Any]:
        settings.tell(f"{name}, {method.name}, set {seed + 1}")
        with threadpool_limits(limits=1):
            answer = method.run(problem, seed, settings.is_quick)
        return asdict(figures_of(answer, problem))

    stamp = {"data": name, "method": method.key, "seed": seed}
    part = f"{name}-{method.key}-{seed}"
    return Figures(**kept(parts_folder(settings, "basis"), part, stamp, run))


def column(rows: Sequence[Figures], name: str) -> Array:
    """One figure of all data sets."""
    return np.array([getattr(row, name) for row in rows])


def figures_table(
    rows: Mapping[str, Sequence[Figures]],
    errors: Mapping[str, Sequence[tuple[str, Array]]],
    number: str,
    published: Mapping[str, Sequence[str]],
) -> str:
    """Tabulate methods: errors, then kernels, noise and coverage; then the published figures.

    Parameters
    ----------
    rows : mapping of method to sequence of Figures
    errors : mapping of method to sequence of (head, ndarray)
        Error columns with their heads.
    number : str
        Format of errors.
    published : mapping of method to sequence of str
        Cells of the first columns.
    """
    heads = [head for head, _ in next(iter(errors.values()))]
    heads += ["kernels", "noise", "curve in 90 %", "targets in 90 %"]
    body = []
    for name, row in rows.items():
        means = [mean_and_error(values) for _, values in errors[name]]
        cells = [f"{mean:{number}} ± {error:.2g}" for mean, error in means]
        for key, form in _FORMATS.items():
            known = column(row, key)
            cells.append("-" if np.isnan(known).any() else format(known.mean(), form))
        body.append([name, *cells])
    for name, figures in published.items():
        body.append([f"published: {name}", *figures, *["-"] * (len(heads) - len(figures))])
    lines = [["method", *heads], ["---"] * (len(heads) + 1), *body]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
