"""Whether the fixed parameters matter: one at a time is changed from the paper's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercer.basis.model import sampled
from reproduce.papers.basis_answer import Answer, Method, Problem
from reproduce.papers.basis_chain import learned, paper_filter
from reproduce.papers.basis_part import Part
from reproduce.papers.basis_runs import column, run_methods
from reproduce.papers.basis_sinc import WIDTH, sinc_set
from reproduce.papers.reproduction import Settings, judged

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["part"]

Array = NDArray[np.float64]

_N_SETS, _QUICK_SETS = 25, 2
# Errors within so much of the one at the paper's settings.
_MOST = 0.15
_PAPER = "paper's settings"


def part(settings: Settings) -> Part:
    """Errors at other values of lambda, k_max and the priors of the variances."""
    n_sets = _QUICK_SETS if settings.is_quick else _N_SETS
    problems = [sinc_set(seed) for seed in range(n_sets)]
    methods = [_method(f"fixed-{i}", name, o) for i, (name, o) in enumerate(_variants().items())]
    rows = run_methods("sinc", methods, problems, settings)
    errors = {name: np.sqrt(column(row, "error")) for name, row in rows.items()}
    base = float(errors[_PAPER].mean())
    gaps = {name: float(values.mean()) / base - 1.0 for name, values in errors.items()}
    del gaps[_PAPER]
    lowest, highest = (pick(gaps, key=lambda name: gaps[name]) for pick in (min, max))
    claim = judged(
        settings, "relatively insensitive to reasonable variations of the fixed parameters", "yes",
        f"errors from {100 * gaps[lowest]:+.0f} % ({lowest}) to {100 * gaps[highest]:+.0f} % "
        f"({highest}) of that at the paper's",
        max(abs(gap) for gap in gaps.values()) <= _MOST,
        f"relatively: within {100 * _MOST:.0f} %; one changed at a time",
    )  # fmt: skip
    return Part((claim,), (lambda axes: _draw(axes, errors),), errors)


def _variants() -> dict[str, dict[str, Any]]:
    """Options of `paper_filter` by name."""
    prior = sampled(1)
    return {
        _PAPER: {},
        "lambda = 0.5": {"expected": 0.5},
        "lambda = 2": {"expected": 2.0},
        "lambda = 5": {"expected": 5.0},
        "k_max = 10": {"n_centres": 10},
        "noise IG(0.1, 0.01)": {"prior": prior._replace(noise_shape=0.1, noise_rate=0.01)},
        "noise IG(2, 0.4)": {"prior": prior._replace(noise_shape=2.0, noise_rate=0.4)},
        "coefficients IG(0.1, 0.1)": {"prior": prior._replace(scale_shape=0.1, scale_rate=0.1)},
        "coefficients IG(2, 4)": {"prior": prior._replace(scale_shape=2.0, scale_rate=4.0)},
    }


def _method(key: str, name: str, options: Mapping[str, Any]) -> Method:
    def run(problem: Problem, seed: int, is_quick: bool) -> Answer:
        given = {"expected": 1.0, **options} | ({"n_particles": 20} if is_quick else {})
        rng = np.random.default_rng(seed)
        return Answer(
            learned(paper_filter(WIDTH, **given), problem.X, problem.y, rng).mean(problem.X_test)
        )

    return Method(key, name, run)


def _draw(axes: Axes, errors: dict[str, Array]) -> None:
    from mercer.plot import repeats
    from mercer.plot.style import PALETTE

    repeats(errors, ax=axes)
    axes.set_title("one changed at a time", loc="left", color=PALETTE["muted"])
    axes.set_xlabel("test error")
