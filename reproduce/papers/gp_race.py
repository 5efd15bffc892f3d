"""Metropolis against HMC on the posterior of the paper: effective draws a second.

Smallest bulk effective sample size of the log parameters over the CPU seconds of the whole fit,
maximum, Hessian and warm-up counted: one chain each, fitted in turn, the median over seeds.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mercer.errors import MercerWarning
from mercer.gp.estimator import GPClassifier
from reproduce.papers.gp_cells import Split
from reproduce.papers.kept import kept, parts_folder
from reproduce.papers.reproduction import Claim, Settings, judged

__all__ = ["CHAINS", "Lap", "race", "race_claims", "race_table"]

HMC, METROPOLIS, PAPER = "HMC, tuned", "Metropolis, tuned", "HMC, paper's settings"
#: Draws of each chain; warm-up as the estimator has it.
CHAINS = {PAPER: 633, HMC: 1000, METROPOLIS: 1000}
_QUICK_DRAWS = 60


@dataclass(frozen=True)
class Lap:
    """Of one chain: smallest effective size, CPU seconds, and what they make, each a median.

    Attributes
    ----------
    min_ess, cpu_seconds, ess_per_second : float
    """

    min_ess: float
    cpu_seconds: float
    ess_per_second: float


def race(splits: Mapping[str, Split], settings: Settings) -> dict[str, dict[str, Lap]]:
    """Run the chains in turn on the training rows of each data set.

    Returns
    -------
    dict
        Of each data set, the laps by the names of the chains.
    """
    folder = parts_folder(settings, "gp-table-1")
    laps: dict[str, dict[str, Lap]] = {}
    for data, split in splits.items():
        seen: dict[str, list[dict[str, Any]]] = {name: [] for name in CHAINS}
        for seed in range(1 if settings.is_quick else 3):
            settings.tell(f"{data}, HMC and Metropolis, seed {seed + 1}")
            stamp = {"data": data, "chains": CHAINS, "seed": seed}
            part = kept(folder, f"{data}-race-{seed}", stamp, partial(_one, split, seed, settings))
            for name in CHAINS:
                seen[name].append(part[name])
        laps[data] = {name: _median(each) for name, each in seen.items()}
    return laps


def _one(split: Split, seed: int, settings: Settings) -> dict[str, dict[str, float]]:
    # Loops are compiled before the clock runs.
    _lap(_model(HMC, seed, 5), split)
    return {
        name: _lap(_model(name, seed, _QUICK_DRAWS if settings.is_quick else n_draws), split)
        for name, n_draws in CHAINS.items()
    }


def _model(name: str, seed: int, n_draws: int) -> GPClassifier:
    model = GPClassifier.paper()
    if name != PAPER:
        inference = "hmc" if name == HMC else "metropolis"
        model = GPClassifier(
            kernel="rbf", prior="paper", standardize="std", inference=inference, n_chains=1
        )
    model.set_params(random_state=seed, n_draws=n_draws, n_jobs=1, progress=False)
    return model


def _lap(model: GPClassifier, split: Split) -> dict[str, float]:
    begin = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore", MercerWarning)
        model.fit(split.X, split.y)
    seconds = time.process_time() - begin
    return {"min_ess": smallest_size(model), "cpu_seconds": seconds}


def smallest_size(model: GPClassifier) -> float:
    """Smallest bulk effective size of the log parameters; 0 where there is none."""
    table = model.diagnostics_.table
    sizes = zip(table.column("name"), table.column("ess_bulk"), strict=True)
    of_theta = [size for name, size in sizes if str(name).startswith(("log_signal", "log_weight"))]
    known = [float(size) for size in of_theta if isinstance(size, float | int)]
    return min(known) if len(known) == len(of_theta) and known else 0.0


def _median(laps: Sequence[Mapping[str, float]]) -> Lap:
    sizes = np.array([lap["min_ess"] for lap in laps])
    seconds = np.array([lap["cpu_seconds"] for lap in laps])
    rates = sizes / seconds
    return Lap(float(np.median(sizes)), float(np.median(seconds)), float(np.median(rates)))


def race_claims(laps: Mapping[str, Mapping[str, Lap]], settings: Settings) -> tuple[Claim, ...]:
    """Hold the paper's word on the speed of Metropolis against the laps."""
    claims = []
    for data, lap in laps.items():
        hmc, metropolis = lap[HMC].ess_per_second, lap[METROPOLIS].ess_per_second
        claims.append(
            judged(
                settings,
                f"{data}: sampling by Metropolis is slower than by HMC",
                "slower",
                f"{metropolis:.1f} effective draws a second against {hmc:.1f}, both tuned",
                metropolis < hmc,
                "smallest bulk effective size, CPU seconds with warm-up",
            )
        )
    return tuple(claims)


def race_table(laps: Mapping[str, Mapping[str, Lap]]) -> str:
    """Tabulate the laps."""
    lines = [
        "| data set | chain | smallest bulk ESS | CPU s | ESS a CPU second |",
        "|---" * 5 + "|",
    ]
    for data, lap in laps.items():
        for name, each in lap.items():
            cells = [data, name, f"{each.min_ess:.0f}", f"{each.cpu_seconds:.3g}"]
            lines.append("| " + " | ".join([*cells, f"{each.ess_per_second:.1f}"]) + " |")
    return "\n".join(lines)
