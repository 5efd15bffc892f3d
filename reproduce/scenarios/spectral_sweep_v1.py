"""One sweep of BaNK over all frequencies, beside what it cannot do without, and beside the paper.

50 000 rows of 20 inputs, 384 frequencies, the defaults of the estimator, from a state that a few
sweeps have reached. One thread. Contenders take turns, medians of 7 rounds.

* The limit: a matrix product at 12 n M^2 flops and one cosine and sine of n M angles. The rate of
  the product is that of dgemm at the shapes that the sweep works with, 2 M x 1024 by 1024 x 2 M
  added to what is there, its operands in the cache; other lengths than 1024 are measured too, and
  the ratio to the fastest of them is given beside. Cosine and sine are mercer's own loop, many
  times as fast as NumPy's: a harder limit than NumPy's would be. Target: 1.5.
* The paper's scheme, one frequency at a time (`reproduce.one_at_a_time`), its features in memory,
  its start not counted: a few visits are timed and scaled to all frequencies. Target: a tenth.
* The accept loop, from the products to the decisions (the linear part is eliminated in it), beside
  one Cholesky factor (dpotrf) of order 2 M, which an evidence takes. Target: 5.
* What shares of a sweep go to products, accept loop, ridge, coefficients and mixture: each part
  timed by itself on the same state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from mercer.features.products import cosines_and_sines
from mercer.spectral.fitting import compile_loops
from mercer.spectral.loops import select
from mercer.spectral.model import draw_ridge, ridge_density
from mercer.spectral.rows import MemoryRows
from mercer.spectral.sampler import SpectralSampler, SpectralState, decide, join, propose
from reproduce.limits import DgemmLimit
from reproduce.one_at_a_time import OneAtATime
from reproduce.spectral_chain import spectral_chain, standardised, warmed_up
from reproduce.timing import interleaved
from reproduce.workloads import friedman_rows_v1

SEED = 0
TARGETS = {"to_limit": 1.5, "to_paper": 0.1, "loop_in_factors": 5.0}

# Rows that the sweep works on at a time, and other lengths of the product.
_LENGTH, _OTHER_LENGTHS = 1024, (256, 4096)
_N_VISITS = 8

Array = NDArray[np.float64]
Calls = dict[str, Callable[[], Any]]


def run() -> dict[str, object]:
    """Measure at the size of the targets."""
    return {"targets": TARGETS, **measured(50_000, 384, n_warmup=10, n_rounds=7)}


def measured(n: int, n_frequencies: int, n_warmup: int, n_rounds: int) -> dict[str, object]:
    """Time a sweep, its parts, its limit and the paper's scheme."""
    compile_loops(lambda line: None)
    X, y, _ = friedman_rows_v1(n)
    rows = MemoryRows(standardised(X), standardised(y), has_linear_part=True)
    with threadpool_limits(limits=1):
        chain = spectral_chain(rows, n_frequencies)
        sampler, state = warmed_up(chain, n_warmup, SEED)
        parts, loop = _parts(sampler, state)
        flops = 12.0 * n * n_frequencies**2
        products = {k: DgemmLimit(2 * n_frequencies, k, flops) for k in (_LENGTH, *_OTHER_LENGTHS)}
        contenders: Calls = {
            "sweep": lambda: sampler.step(np.random.default_rng(SEED), state),
            **{f"dgemm {length}": product for length, product in products.items()},
            **_sincos(n, n_frequencies),
            "paper": _visits(sampler, state),
            **parts,
        }
        seconds = interleaved(contenders, n_rounds=n_rounds, repeat=1)
        brief = interleaved(loop, n_rounds=n_rounds, repeat=3)
    return {
        "n": n,
        "d": rows.n_inputs,
        "n_frequencies": n_frequencies,
        "acceptance_rate": round(_acceptance(sampler, state), 3),
        **_compared(seconds, n_frequencies, products),
        "accept_loop_ms": _rounded(1e3 * brief["loop"]),
        "dpotrf_ms": _rounded(1e3 * brief["dpotrf"]),
        "accept_loop_in_factors": _rounded(brief["loop"] / brief["dpotrf"]),
        "shares": {name: _rounded(seconds[name] / seconds["sweep"]) for name in parts},
    }


def _compared(
    seconds: dict[str, float], n_frequencies: int, limits: dict[int, DgemmLimit]
) -> dict[str, object]:
    sweep, sincos = seconds["sweep"], seconds["sincos"]
    products = {k: limit.scale * seconds[f"dgemm {k}"] for k, limit in limits.items()}
    fastest = min(products, key=lambda k: products[k])
    paper = seconds["paper"] / _N_VISITS * n_frequencies
    return {
        "sweep_seconds": _rounded(sweep),
        "dgemm_seconds": _rounded(products[_LENGTH]),
        "sincos_seconds": _rounded(sincos),
        "sweep_to_limit": _rounded(sweep / (products[_LENGTH] + sincos)),
        "fastest_length_of_dgemm": fastest,
        "sweep_to_limit_at_fastest_length": _rounded(sweep / (products[fastest] + sincos)),
        "numpy_sincos_seconds": _rounded(seconds["NumPy's sincos"]),
        "paper_visits_timed": _N_VISITS,
        "paper_seconds": _rounded(paper),
        "sweep_to_paper": _rounded(sweep / paper),
    }


def _sincos(n: int, n_frequencies: int) -> Calls:
    """Cosines and sines of n M angles, a block that stays in the cache at a time."""
    phase = 3.0 * np.random.default_rng(SEED).standard_normal((n_frequencies, _LENGTH))
    out = np.empty((2 * n_frequencies, _LENGTH))
    blocks = [phase[:, : min(_LENGTH, n - begin)] for begin in range(0, n, _LENGTH)]

    def ours() -> None:
        for block in blocks:
            cosines_and_sines(block, 1.0, out[:, : block.shape[1]])

    def numpys() -> None:
        for block in blocks:
            np.cos(block, out=out[0::2, : block.shape[1]])
            np.sin(block, out=out[1::2, : block.shape[1]])

    return {"sincos": ours, "NumPy's sincos": numpys}


def _visits(sampler: SpectralSampler, state: SpectralState) -> Callable[[], None]:
    """Some visits of the paper's scheme, to other frequencies each time."""
    scheme, rng = OneAtATime(sampler, state), np.random.default_rng(SEED)
    proposed = propose(rng, sampler.mixture, state.mixture, state.frequencies, sampler.tuning)
    position = 0

    def call() -> None:
        nonlocal position
        for _ in range(_N_VISITS):
            j = position % len(proposed)
            scheme.visit(j, proposed[j], float(np.log(rng.random())))
            position += 1

    return call


def _parts(sampler: SpectralSampler, state: SpectralState) -> tuple[Calls, Calls]:
    """Parts of a sweep on one state; the accept loop by itself beside a Cholesky factor."""
    model, W = sampler.model, state.frequencies
    rng = np.random.default_rng(SEED)
    proposed = propose(rng, sampler.mixture, state.mixture, W, sampler.tuning)
    log_uniform = np.log(rng.random(len(W)))
    products = sampler.rows.products(proposed, W)
    is_accepted = np.arange(len(W)) % 3 == 0

    def loop() -> Any:
        precisions = sampler.model.linear_precisions(state.linear_precision)
        joint = join(state.gram, products, state.ridge, precisions)
        return decide(joint, log_uniform, model.posterior_shape, model.noise_rate)

    def ridge() -> float:
        density = ridge_density(model, state.gram, state.linear_precision)
        return draw_ridge(np.random.default_rng(SEED), density, state.ridge)

    def coefficients() -> SpectralState:
        return sampler._complete(
            np.random.default_rng(SEED), W, state.gram, state.ridge, state.linear_precision,
            state.mixture,
        )  # fmt: skip

    parts: Calls = {
        "products": lambda: sampler.rows.products(proposed, W),
        "accept loop": lambda: (
            loop(),
            select(state.gram, products.among, products.across, is_accepted),
        ),
        "ridge": ridge,
        "coefficients": coefficients,
        "mixture": lambda: sampler._turn(np.random.default_rng(SEED), state),
    }
    among = np.array(products.among, order="F")
    among[np.diag_indices(len(among))] += state.ridge
    dpotrf = {"dpotrf": lambda: lapack.dpotrf(among, lower=1, clean=0)}
    return parts, {"loop": loop, **dpotrf}


def _acceptance(sampler: SpectralSampler, state: SpectralState) -> float:
    return sampler.step(np.random.default_rng(SEED), state)[1].acceptance_rate


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
