"""The two samplers of BaNK for classes beside each other, and a sweep beside the regression's.

Labels of a wavy function of three inputs, drawn by a logistic law; 50 frequencies and the 160 that
are the default, the defaults of the estimator but for the sampler, one chain, one thread.

* Effective sample size for a second of the processor, of functions at 20 held-out rows and of the
  kernel at 10 lags, from 500 and 2000 rows; each sampler with a trajectory before its sweeps, as
  by default below 1500 rows, and without. Sweeps that tune the steps are not counted; of
  `N_SWEEPS` sweeps the smallest over rows and over lags is kept. The default is to be the fastest.
* Milliseconds of a sweep against rows and frequencies: both samplers, and the regression on the
  same rows with the labels as numbers, which knows half of its products from the sweep before. They
  take turns; medians of rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from arviz_stats.base import array_stats
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer import BaNKClassifier
from mercer.spectral.class_fitting import SAMPLERS, make_class_sampler
from mercer.spectral.class_sampler import ClassAdaptation
from mercer.spectral.fitting import compile_class_loops as compile_loops
from mercer.spectral.rows import MemoryRows
from mercer.spectral.sampler import StepAdaptation
from reproduce.spectral_chain import spectral_chain, standardised, warmed_up
from reproduce.timing import interleaved
from reproduce.workloads import wavy_classes_v1

SEED = 0

# Rows and frequencies.
SIZES_OF_ESS = ((500, 50), (500, 160), (2000, 50), (2000, 160))
N_LEAPFROG = 20
N_WARMUP, N_SWEEPS = 200, 1000
# Rows and frequencies of the sweeps that are timed.
SIZES_OF_SWEEPS = ((500, 50), (2000, 50), (8000, 50), (2000, 160), (8000, 160), (8000, 384))
_N_HELD_OUT = 20

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Measure both."""
    compile_loops(lambda line: None)
    with threadpool_limits(limits=1):
        return {
            "n_sweeps": N_SWEEPS,
            "ess": [
                ess_row(n, sampler, n_leapfrog, m, N_WARMUP, N_SWEEPS)
                for n, m in SIZES_OF_ESS
                for sampler in SAMPLERS
                for n_leapfrog in (N_LEAPFROG, 0)
            ],
            "sweeps": [sweep_row(n, m, n_warmup=20, n_rounds=7) for n, m in SIZES_OF_SWEEPS],
        }


def ess_row(
    n: int, sampler: str, n_leapfrog: int, n_frequencies: int, n_warmup: int, n_sweeps: int
) -> dict[str, Any]:
    """Run a chain and look at the functions at held-out rows, and at the kernel."""
    X, y = wavy_classes_v1(n + _N_HELD_OUT)
    chain = _class_chain(X[:n], y[:n], sampler, n_frequencies, n_leapfrog)
    probe = replace(chain.probe, rows=X[n:])
    chain, state = warmed_up(chain, n_warmup, SEED, ClassAdaptation(has_steps=True))
    rng, accepted = np.random.default_rng(SEED), 0.0
    functions, kernels = [], []
    began = time.process_time()
    for _ in range(n_sweeps):
        state, info = chain.step(rng, state)
        accepted += info.acceptance_rate / n_sweeps
        functions.append(probe.function(state.frequencies, state.coef)[0])
        kernels.append(probe.kernel(state.frequencies))
    seconds = time.process_time() - began
    of_rows, of_lags = _ess(functions), _ess(kernels)
    return {
        "n": n,
        "n_frequencies": n_frequencies,
        "sampler": sampler,
        "n_leapfrog": n_leapfrog,
        "acceptance_rate": round(accepted, 3),
        "ms_of_a_sweep": _rounded(1e3 * seconds / n_sweeps),
        "smallest_ess_per_second": _rounded(min(of_rows) / seconds),
        "median_ess_per_second": _rounded(float(np.median(of_rows)) / seconds),
        "smallest_kernel_ess_per_second": _rounded(min(of_lags) / seconds),
    }


def _ess(draws: list[Array]) -> list[float]:
    """Effective sample sizes of the entries of vectors, one a sweep."""
    return [float(array_stats.ess(each[np.newaxis])) for each in np.array(draws).T]


def sweep_row(n: int, n_frequencies: int, n_warmup: int, n_rounds: int) -> dict[str, Any]:
    """Time sweeps of both samplers and of the regression."""
    X, y = wavy_classes_v1(n)
    rows = MemoryRows(X, standardised(y), has_linear_part=True)
    chains = {
        **{name: _class_chain(X, y, name, n_frequencies, 0) for name in SAMPLERS},
        "regression": spectral_chain(rows, n_frequencies),
    }
    calls = {}
    for name, chain in chains.items():
        tuning = ClassAdaptation(has_steps=True) if name in SAMPLERS else StepAdaptation()
        calls[name] = _sweep(*warmed_up(chain, n_warmup, SEED, tuning))
    seconds = interleaved(calls, n_rounds=n_rounds, repeat=1)
    return {
        "n": n,
        "n_frequencies": n_frequencies,
        "ms": {name: _rounded(1e3 * each) for name, each in seconds.items()},
    }


def _class_chain(X: Array, y: Array, sampler: str, n_frequencies: int, n_leapfrog: int) -> Any:
    """The sampler of two classes, without the search for where chains start."""
    model = BaNKClassifier(n_frequencies=n_frequencies, sampler=sampler, n_leapfrog=n_leapfrog)
    settings = model._class_settings(len(X), 2)
    rows, found = MemoryRows(X, y, True), settings.spectral.first_scales(X.shape[1])
    return make_class_sampler(rows, X, found, settings)


def _sweep(chain: Any, state: Any) -> Callable[[], Any]:
    return lambda: chain.step(np.random.default_rng(SEED), state)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
