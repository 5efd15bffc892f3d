"""Vermaak, Godsill & Doucet, Table 1: the sinc data, 25 sets.

Error: root of the mean squared distance to the true curve at 1000 points. All methods see the same
sets. "Long chains" are the paper's model by Markov chains on all rows at once: what one pass could
reach at best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from reproduce.papers.basis_methods import FEW, SINC_METHODS, runnable
from reproduce.papers.basis_rivals import MISSING_RVM, RVM_NOTE, has_rvm
from reproduce.papers.basis_runs import (
    BESIDE,
    Figures,
    column,
    figures_table,
    run_methods,
)
from reproduce.papers.basis_sinc import NOISE_STD, sinc_set
from reproduce.papers.reproduction import Claim, Reproduction, Settings, judged, mean_and_error

__all__ = ["reproduce", "sinc_rows"]

Array = NDArray[np.float64]
Rows = Mapping[str, Sequence[Figures]]

_N_SETS, _QUICK_SETS = 25, 2
_PUBLISHED = {
    "Figueiredo": ("0.0455", "7.0", "-"),
    "SVM": ("0.0519", "28.0", "-"),
    "RVM": ("0.0494", "6.9", "0.0943"),
    "VRVM": ("0.0494", "7.4", "0.0950"),
    "MCMC": ("0.0468", "6.5", "-"),
    "sequential RVM": ("0.0591", "4.5", "0.1136"),
}
_DEFAULT, _FEW, _PAPER, _CHAINS = (
    SINC_METHODS[0].name, SINC_METHODS[1].name, SINC_METHODS[2].name, SINC_METHODS[4].name,
)  # fmt: skip
_SVM, _RVM, _GP = "SVR", "RVM, the paper's width", "GP"
_COUNTERPARTS = {_PAPER: "sequential RVM", _CHAINS: "MCMC", _SVM: "SVM", _RVM: "RVM"}
_OURS = "a promise of mercer, not of the paper"


def sinc_rows(settings: Settings, keys: Sequence[str] | None = None) -> dict[str, list[Figures]]:
    """Run the methods of these keys, or all, on all sets; by name."""
    n_sets = _QUICK_SETS if settings.is_quick else _N_SETS
    methods = [m for m in runnable(SINC_METHODS) if keys is None or m.key in keys]
    return run_methods("sinc", methods, [sinc_set(seed) for seed in range(n_sets)], settings)


def reproduce(settings: Settings) -> Reproduction:
    """Run every method on every set."""
    rows = sinc_rows(settings)
    errors = {name: np.sqrt(column(row, "error")) for name, row in rows.items()}
    heads = {name: [("test error", values)] for name, values in errors.items()}
    return Reproduction(
        name="basis-table-1",
        title="Sequential kernel regression: the sinc data",
        source="Vermaak, Godsill & Doucet (2003), Table 1",
        command="mercer reproduce basis-table-1" + (" --quick" if settings.is_quick else ""),
        claims=(*_paper_claims(rows, errors, settings), *_own_claims(rows, errors, settings)),
        measured=errors,
        unit="test error",
        published={ours: float(_PUBLISHED[theirs][0]) for ours, theirs in _COUNTERPARTS.items()},
        notes=() if has_rvm() else (RVM_NOTE,),
        number=".4f",
        tables=(figures_table(rows, heads, ".4f", _PUBLISHED),),
        beside={
            words: {name: column(row, key) for name, row in rows.items()}
            for words, key in BESIDE.items()
        },
    )


def _paper_claims(rows: Rows, errors: Mapping[str, Array], settings: Settings) -> list[Claim]:
    mean, error = mean_and_error(errors[_PAPER])
    kernels = float(column(rows[_PAPER], "n_kernels").mean())
    noise = float(column(rows[_PAPER], "noise_std").mean())
    claims = [
        judged(
            settings, "the paper's settings err no more than published", "0.0591",
            f"{mean:.4f} +- {error:.4f}", mean <= 0.0591, "with exact weights",
        ),
        judged(
            settings, "with about 4.5 kernels", "4.5", f"{kernels:.1f}", abs(kernels - 4.5) <= 0.5,
            "about: half a kernel",
        ),
        judged(
            settings, "the noise is found", "0.1136, true 0.1", f"{noise:.4f}",
            abs(noise - NOISE_STD) <= 0.01, "within 0.01",
        ),
    ]  # fmt: skip
    words, paper = "fewer kernels than SVM and RVM, at a slightly larger error than both", "yes"
    if _RVM not in rows:
        return [*claims, Claim(words, paper, "-", "not judged", MISSING_RVM)]
    support, relevance = (float(column(rows[name], "n_kernels").mean()) for name in (_SVM, _RVM))
    svm, rvm = float(errors[_SVM].mean()), float(errors[_RVM].mean())
    is_met = kernels < min(support, relevance) and max(svm, rvm) < mean <= 1.25 * min(svm, rvm)
    ours = f"{kernels:.1f} against {support:.1f} and {relevance:.1f}; "
    ours += f"{mean:.4f} against {svm:.4f} and {rvm:.4f}"
    return [*claims, judged(settings, words, paper, ours, is_met, "slightly: by a quarter at most")]


def _own_claims(rows: Rows, errors: Mapping[str, Array], settings: Settings) -> list[Claim]:
    def against(words: str, name: str, other: str, most: float) -> Claim:
        excess = float(errors[name].mean() / errors[other].mean()) - 1.0
        ours = (
            f"{errors[name].mean():.4f} against {errors[other].mean():.4f}, {100 * excess:+.1f} %"
        )
        return judged(settings, words, "-", ours, excess <= most, _OURS)

    coverage = float(column(rows[_DEFAULT], "function_coverage").mean())
    return [
        against("one pass errs at most 5 % more than long chains", _PAPER, _CHAINS, 0.05),
        against("the default errs at most 3 % more than the GP", _DEFAULT, _GP, 0.03),
        against(f"its {FEW} kernels err at most 5 % more than that GP", _FEW, _GP, 0.05),
        judged(
            settings, "90 % intervals of the default hold 85 to 97 % of the curve", "-",
            f"{100 * coverage:.0f} %", 0.85 <= coverage <= 0.97, _OURS,
        ),
    ]  # fmt: skip
