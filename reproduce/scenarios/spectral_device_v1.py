"""Sweeps and fits of BaNK on a GPU: beside the peak of the card, and beside two cores.

90 inputs, standardised; double precision everywhere.

* A sweep of regression with 384 and 2048 frequencies at 10^6 rows, and with 384 at 50 000, and its
  pass over the rows alone: 14 n M^2 flops, as a share of what a product of two matrices of order
  8192 reaches on the same card. Medians of 3.
* The same sweep by NumPy with two threads of BLAS: its pass is timed on some rows and scaled to
  all, the rest of it is timed as it is.
* A short fit through the estimator, regression and classes of 20 000 rows, one chain: on the card
  and by NumPy with two threads.
* Fits of 10^6 rows on the card: the default, whose spectrum is learned on 50 000 rows, and one
  whose spectrum is learned on all.

Loops are compiled and the card is awake before anything is timed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer import BaNKClassifier, BaNKRegressor
from mercer.features.device import check_device
from mercer.spectral.fitting import compile_class_loops, compile_loops
from mercer.spectral.rows import MemoryRows
from reproduce.spectral_chain import spectral_chain, standardised, warmed_up
from reproduce.timing import interleaved

SEED = 0
NEEDS_PACKAGES = ("torch",)
NEEDS_CUDA = True

N_INPUTS, N_THREADS, _ORDER = 90, 2, 8192
# Rows, frequencies, and rows that the pass by NumPy is timed on.
SIZES = ((1_000_000, 384, 20_000), (1_000_000, 2048, 5_000), (50_000, 384, 20_000))
SHORT = {"n_frequencies": 384, "n_warmup": 10, "n_draws": 10, "n_chains": 1, "random_state": SEED}

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Measure at the sizes of the targets."""
    import torch

    check_device("cuda")
    compile_loops(lambda line: None)
    compile_class_loops(lambda line: None)
    peak = _peak(torch)
    return {
        "card": torch.cuda.get_device_name(),
        "peak_tflops": round(peak, 1),
        "threads": N_THREADS,
        "sweeps": [_sweep(torch, peak, *size) for size in SIZES],
        "fits": [_short("numbers"), _short("classes")],
        "whole_fits": [_whole_fit(1_000_000, 50_000), _whole_fit(1_000_000, 1_000_000)],
    }


def _rows(n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((n, N_INPUTS))
    f = np.tanh(X[:, 0] * X[:, 1]) + np.sin(2.0 * X[:, 2]) + X[:, 3]
    return X, standardised(f + 0.3 * rng.standard_normal(n))


def _peak(torch: Any) -> float:
    """Teraflops of a product of matrices in double precision."""
    A = torch.randn(_ORDER, _ORDER, dtype=torch.float64, device="cuda")
    return 2.0 * _ORDER**3 / _seconds(torch, lambda: A @ A, 5) / 1e12


def _seconds(torch: Any, call: Callable[[], Any], n: int = 3) -> float:
    def whole() -> None:
        call()
        torch.cuda.synchronize()

    return interleaved({"it": whole}, n_rounds=n, repeat=1)["it"]


def _sweep(torch: Any, peak: float, n: int, m: int, n_timed: int) -> dict[str, object]:
    X, y = _rows(n)
    rows = MemoryRows(X, y, True, check_device("cuda"))
    rng = np.random.default_rng(SEED)
    old, new = 0.1 * rng.standard_normal((2, m, N_INPUTS))
    with threadpool_limits(limits=1, user_api="blas"):
        there = _seconds(torch, lambda: rows.products(new, old))
        sampler, state = warmed_up(spectral_chain(rows, m), 2, SEED)
        sweep = _seconds(torch, lambda: sampler.step(np.random.default_rng(SEED), state))
    few = MemoryRows(X[:n_timed], y[:n_timed], True)
    with threadpool_limits(limits=N_THREADS, user_api="blas"):
        sampler, state = warmed_up(spectral_chain(few, m), 1, SEED)
        calls = {
            "pass": lambda: few.products(new, old),
            "sweep": lambda: sampler.step(np.random.default_rng(SEED), state),
        }
        here = interleaved(calls, n_rounds=1 if m > 1000 else 3, repeat=1)
    whole = here["pass"] * n / n_timed
    rest = here["sweep"] - here["pass"]
    return {
        "n": n,
        "n_frequencies": m,
        "pass_seconds": _rounded(there),
        "share_of_peak": _rounded(14.0 * n * m**2 / there / 1e12 / peak),
        "sweep_seconds": _rounded(sweep),
        "numpy_pass_seconds": _rounded(whole),
        "numpy_rest_seconds": _rounded(rest),
        "numpy_rows_timed": n_timed,
        "times_as_fast": _rounded((whole + rest) / sweep),
    }


def _short(what: str) -> dict[str, object]:
    X, y = _rows(20_000)
    model = BaNKRegressor if what == "numbers" else BaNKClassifier
    targets = y if what == "numbers" else (y > np.median(y)).astype(np.int64)
    seconds = {}
    for device in ("cuda", None):
        with threadpool_limits(limits=N_THREADS, user_api="blas"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so few draws are too few to judge
            begin = time.perf_counter()
            model(device=device, **SHORT).fit(X, targets)
            seconds["device" if device else "numpy"] = _rounded(time.perf_counter() - begin)
    ratio = _rounded(seconds["numpy"] / seconds["device"])
    return {"of": what, "n": len(X), "settings": SHORT, **seconds, "times_as_fast": ratio}


def _whole_fit(n: int, kernel_rows: int) -> dict[str, object]:
    X, y = _rows(n + 20_000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.perf_counter()
        model = BaNKRegressor(device="cuda", kernel_rows=kernel_rows, random_state=SEED)
        model.fit(X[:n], y[:n])
        seconds = time.perf_counter() - begin
    error = float(np.mean((y[n:] - model.predict(X[n:])) ** 2))
    diagnostics = model.diagnostics_
    return {
        "n": n,
        "kernel_rows": kernel_rows,
        "n_frequencies": model.n_frequencies_,
        "seconds": round(seconds, 1),
        "standardized_mse": _rounded(error),
        "max_rhat": round(float(diagnostics.max_rhat), 3),
        "notes": list(model.notes_),
        "warnings": [str(each.message) for each in caught],
    }


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
