"""Hyperparameters of a GP classifier: ESS a second beside PyMC, BlackJAX and NumPyro.

`make_classification(2200, 8)`, the first 200 rows for training. log v0 ~ N(0, 2^2) and
log w ~ N(-log d, 2^2), that is N(log d^.5, 1) over log length scales and N(0, 1) over the log of
the standard deviation. The smallest bulk effective sample size (rank-normalised, arviz) of the nine
log parameters over CPU seconds, warm-up counted, compiling not: the median of three seeds. One
chain, one thread, one core, each method in a process of its own.

mercer draws the hyperparameters alone, from Laplace's posterior ("laplace") or from the exact one
("exact"); the three peers that the targets mean, nutpie and NUTS of BlackJAX and NumPyro, draw them
together with 200 whitened latent values, from the exact posterior. BlackJAX's `laplace_hmc` draws
from Laplace's. The targets are 10 and 3 times the best of the three. Beside the rates stands the
log score of the other 2000 rows, and its standard error over the seeds: chains of the exact
posterior agree if they are right. Laplace's need not, nor agree with each other: from the same
hyperparameters mercer moves the mode towards the mean, `laplace_hmc` draws latent values from the
Gaussian at the mode. Peers are predicted with from at most 400 draws.

Runs take a minute or two each; twenty minutes in all.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduce.cells import measured
from reproduce.fresh import in_fresh_process
from reproduce.theta_peers import NUGGET, PEERS, Problem, Sampled, one_core

SEED = 0
NEEDS_PACKAGES = ("pymc", "nutpie", "blackjax", "numpyro", "jax")

TARGETS = {"laplace": 10.0, "exact": 3.0}
# Arguments of GPClassifier; those that it does not have are left out, with their row.
OURS: dict[str, dict[str, str]] = {
    "mercer, laplace, hmc": {"kernel": "rbf", "inference": "hmc"},
    "mercer, laplace, nuts": {"kernel": "rbf", "inference": "nuts"},
    "mercer, exact": {"kernel": "rbf", "inference": "hmc", "integration": "exact"},
}
LAPLACE, EXACT = "mercer, laplace, hmc", "mercer, exact"
FULL = ("PyMC, nutpie", "BlackJAX, NUTS", "NumPyro, NUTS")
# Steps of warm-up, draws: about a minute for each peer. Warm-up of mercer is its default.
SIZES = {
    **dict.fromkeys(OURS, (150, 2000)),
    **dict.fromkeys(FULL, (300, 500)),
    "BlackJAX, laplace_hmc": (100, 150),
}
_N_TRAIN, _D, _MOST_PREDICTED = 200, 8, 400

Array = NDArray[np.float64]
Rows = list[dict[str, Any]]
# A chain that can be asked for log parameters and for probabilities of the test rows.
Chain = tuple[float, Array, Callable[[], Array]]


def run() -> dict[str, object]:
    """Measure all methods, three seeds each."""
    return summary(rows_of(known_methods(), SIZES, n_seeds=3))


def known_methods() -> tuple[str, ...]:
    """All peers, and mercer's own as far as `GPClassifier` has the arguments."""
    from mercer import GPClassifier

    known = inspect.signature(GPClassifier).parameters
    ours = [name for name, arguments in OURS.items() if set(arguments) <= set(known)]
    return (*ours, *PEERS)


def rows_of(methods: tuple[str, ...], sizes: dict[str, tuple[int, int]], n_seeds: int) -> Rows:
    """Run the methods: a row for each seed."""
    cells = [(method, *sizes[method], n_seeds) for method in methods]
    return measured("gp-theta-peers-v1", cells, _cell)


def summary(rows: Rows) -> dict[str, object]:
    """Medians by method, and what mercer does beside the best peer with the full model."""
    methods = dict.fromkeys(row["method"] for row in rows)
    means = [_over_seeds([row for row in rows if row["method"] == name]) for name in methods]
    rates = {row["method"]: row["ess_per_second"] for row in means}
    best = max((name for name in FULL if name in rates), key=rates.__getitem__)
    full = [row["log_score"] for row in rows if row["method"] in FULL]
    ratios = {
        what: round(rates[name] / rates[best], 2)
        for what, name in (("laplace", LAPLACE), ("exact", EXACT))
        if name in rates
    }
    return {
        "targets": TARGETS,
        "best_peer": best,
        "ratios": ratios,
        "log_score_of_full_models": _mean_and_error(full),
        "means": means,
        "rows": rows,
    }


def _over_seeds(rows: Rows) -> dict[str, Any]:
    keys = ("ess_per_second", "min_ess", "cpu_seconds")
    medians = {key: float(f"{np.median([row[key] for row in rows]):.3g}") for key in keys}
    score, error = _mean_and_error([row["log_score"] for row in rows])
    same = {key: rows[0][key] for key in ("method", "n_warmup", "n_draws")}
    return {**same, **medians, "log_score": score, "log_score_standard_error": error}


def _mean_and_error(values: list[float]) -> tuple[float, float]:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return round(float(np.mean(values)), 5), round(float(error), 5)


def _cell(method: str, n_warmup: int, n_draws: int, n_seeds: int) -> Rows:
    result = in_fresh_process(__name__, "chains", method, n_warmup, n_draws, n_seeds)
    return [{"method": method, **row} for row in result["rows"]]


def chains(method: str, n_warmup: int, n_draws: int, n_seeds: int) -> dict[str, Any]:
    """In a process of its own: compile once, then one chain for each seed."""
    one_core()
    problem, X_test, y_test = data()
    make = _mercer(method, problem, X_test) if method in OURS else _peer(method, problem, X_test)
    sampler = make(n_warmup, n_draws)
    return {"rows": [_measured_chain(sampler(k), y_test, n_warmup, n_draws, k)
                     for k in range(n_seeds)]}  # fmt: skip


def data() -> tuple[Problem, Array, Array]:
    """Training rows with the prior, and the inputs and labels of the test rows."""
    from sklearn.datasets import make_classification

    X, y = make_classification(
        2200, _D, n_informative=4, n_redundant=0, flip_y=0.1, random_state=SEED
    )
    first = X[:_N_TRAIN]
    X = (X - first.mean(axis=0)) / first.std(axis=0)
    mean = np.append(0.0, np.full(_D, -np.log(_D)))
    labels = y.astype(np.float64)
    problem = Problem(X[:_N_TRAIN], labels[:_N_TRAIN], mean, np.full(_D + 1, 2.0))
    return problem, X[_N_TRAIN:], labels[_N_TRAIN:]


def _measured_chain(
    chain: Chain, y_test: Array, n_warmup: int, n_draws: int, seed: int
) -> dict[str, Any]:
    from mercer.posterior.scores import log_score

    seconds, theta, predict = chain
    ess, p = smallest_bulk_ess(theta), predict()
    return {
        "seed": seed,
        "n_warmup": n_warmup,
        "n_draws": n_draws,
        "ess_per_second": float(f"{ess / seconds:.4g}"),
        "min_ess": float(f"{ess:.4g}"),
        "cpu_seconds": float(f"{seconds:.4g}"),
        "log_score": float(f"{log_score(y_test, np.column_stack([1.0 - p, p])):.6g}"),
    }


def smallest_bulk_ess(theta: Array) -> float:
    """Of the columns of one chain (n_draws, p)."""
    from arviz_stats.base import array_stats

    columns = theta.T[:, np.newaxis]
    return min(float(array_stats.ess(column, 0, 1, method="bulk")) for column in columns)


def _mercer(method: str, problem: Problem, X_test: Array) -> Callable[[int, int], Any]:
    from mercer import GPClassifier

    # Of log v0, and of the log weights, which have the same.
    moments = list(zip(problem.mean.tolist(), problem.std.tolist(), strict=True))
    same: dict[str, Any] = {
        "prior": {"variance": moments[0], "weight": moments[1]},
        "standardize": False,
        "n_chains": 1,
        "n_jobs": 1,
        "progress": False,
        **OURS[method],
    }

    def make(n_warmup: int, n_draws: int) -> Callable[[int], Chain]:
        GPClassifier(n_warmup=60, n_draws=5, random_state=0, **same).fit(problem.X, problem.y)

        def run(seed: int) -> Chain:
            begin = time.process_time()
            model = GPClassifier(n_warmup=n_warmup, n_draws=n_draws, random_state=seed, **same)
            model.fit(problem.X, problem.y)
            seconds, draws = time.process_time() - begin, model.posterior_
            parts = (draws.flat("log_signal_variance"), draws.flat("log_weight"))
            return seconds, np.column_stack(parts), lambda: model.predict_proba(X_test)[:, 1]

        return run

    return make


def _peer(method: str, problem: Problem, X_test: Array) -> Callable[[int, int], Any]:
    def make(n_warmup: int, n_draws: int) -> Callable[[int], Chain]:
        run = PEERS[method](problem, n_warmup, n_draws)

        def chain(seed: int) -> Chain:
            sampled = run(seed)
            return sampled.seconds, sampled.theta, lambda: predicted(problem, sampled, X_test)

        return chain

    return make


def predicted(problem: Problem, sampled: Sampled, X_test: Array) -> Array:
    """Probabilities of label 1 at the test rows, averaged over draws and over the function.

    Given latent values f = v0^.5 L z of the training rows the function is normal at a new row:
    mean v0^.5 r'L^-T z and variance v0 (1 - |L^-1 r|^2), r its correlations with them.
    """
    from scipy.linalg import solve_triangular

    from mercer.kernels.stationary import SquaredExponentialARD
    from mercer.likelihoods.logistic import expected_logistic

    kernel, n = SquaredExponentialARD(), len(problem.X)
    kept = np.unique(np.linspace(0, len(sampled.theta) - 1, _MOST_PREDICTED).astype(int))
    total = np.zeros(len(X_test))
    for theta, z in zip(sampled.theta[kept], sampled.z[kept], strict=True):
        shape, v0 = np.append(0.0, theta[1:]), np.exp(theta[0])
        L = np.linalg.cholesky(kernel.gram(shape, problem.X) + NUGGET * np.eye(n))
        V = solve_triangular(L, kernel.cross_gram(shape, X_test, problem.X).T, lower=True)
        variance = v0 * np.maximum(1.0 - np.einsum("ij,ij->j", V, V), 0.0)
        total += expected_logistic(np.sqrt(v0) * (V.T @ z), variance)
    return total / len(kept)
