"""CPU seconds of the defaults, each beside its target: fits, predictions, streams, one command.

* Command: the first one of the README, ``mercer fit breast_cancer``, with its imports, baselines,
  report and model file: CPU seconds of all its processes, and the clock. Target: 10 seconds, no
  warning.
* Classifiers of 300 rows, 8 and 30 inputs (scikit-learn's ``make_classification``, a third to half
  of the inputs informative, a tenth of the labels flipped): the default, which averages over
  hyperparameters and kernels; ``inference="map"``, the same kernels at their maxima; one kernel,
  ``kernel="rbf"``, and scikit-learn's classifier with the same kernel, a length scale for each
  input, its search begun once. Targets: 4 and 10 times the maximum with a log score no worse;
  faster than scikit-learn's, a better score, also at 1000 rows of 8 inputs.
* Regressors of 200, 500 and 1000 rows of Friedman's first function, 10 inputs, noise of 1: default
  and maximum. Targets: 3, 10 and 40 seconds.
* Predictions of the default classifier of 427 rows of breast cancer, 30 inputs: the first call for
  a row, which makes the factors, later ones, and 1000 rows. Targets: 20 ms and 1 s.
* The other methods at 200 rows of the same two tables. Targets: kernel Gibbs sampler 3 seconds,
  sequential kernel regression 2, BaNK 5.
* Effective draws a CPU second of `KernelGibbsClassifier` on a cone of classifiers without wrong
  labels, 100 rows in 100 dimensions (`sphere-cone-v1`): the smallest of 20 margins. Target: 5000.
* Streams, one row a call: River's Phishing, Bananas (two classes) and ImageSegments (seven), and in
  calls of 1000 rows numbers of three inputs (settings of `basis-stream-v1`). Targets: 500 rows a
  CPU second and 99 % of rows under 5 ms; of numbers 2000 rows a CPU second.

Medians of six seeds of classifiers of 300 rows, of three of the command, of five predictions; one
seed of the rest. Log scores are means over seeds and 2000 other rows, in nats, lower is better,
with standard errors of differences over seeds. One BLAS thread. Eight CPU minutes.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from arviz_stats.base import array_stats
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, make_classification, make_friedman1
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from threadpoolctl import threadpool_limits

from mercer import (
    BaNKClassifier,
    BaNKRegressor,
    GPClassifier,
    GPRegressor,
    KernelGibbsClassifier,
    SequentialKernelClassifier,
    SequentialKernelRegressor,
)
from reproduce.cells import measured
from reproduce.stream_growth import PRIOR
from reproduce.workloads import cone_v1, steady_rows_v1

SEED = 0
NEEDS_PACKAGES = ("river",)
OURS, MAP, ONE, PEER = "default", "maximum", "one kernel", "scikit-learn"
#: Rows, inputs and seeds of classifiers; times the maximum that the default may take.
CLASSIFIERS: dict[tuple[int, int], tuple[int, float | None]] = {
    (300, 8): (6, 4.0),
    (300, 30): (6, 10.0),
    (1000, 8): (1, None),
}
#: Rows and seeds of regressors, and CPU seconds.
REGRESSORS = {200: (1, 3.0), 500: (1, 10.0), 1000: (1, 40.0)}
OTHERS: dict[str, tuple[Any, float]] = {
    "kernel Gibbs sampler": (KernelGibbsClassifier, 3.0),
    "sequential kernel regression": (SequentialKernelRegressor, 2.0),
    "sequential kernel classification": (SequentialKernelClassifier, 2.0),
    "BaNK, numbers": (BaNKRegressor, 5.0),
    "BaNK, classes": (BaNKClassifier, 5.0),
}
STREAMS = {"Phishing": 1250, "Bananas": 2000, "ImageSegments": 1000}  # rows
_LEARNED = 300  # rows of a stream before it is timed
_N_TEST, _N_SEEDS = 2000, 3
_README = ["fit", "breast_cancer", "--target", "target", "--test-size", "0.25", "--no-refit"]

Array = NDArray[np.float64]
Rows = list[dict[str, Any]]


def run() -> dict[str, object]:
    """Measure all."""
    fits = [
        ("classifier", n, d, seed)
        for (n, d), (n_seeds, _) in CLASSIFIERS.items()
        for seed in range(n_seeds)
    ]
    fits += [
        ("regressor", n, 10, seed)
        for n, (n_seeds, _) in REGRESSORS.items()
        for seed in range(n_seeds)
    ]
    fits += [(name, 200, 0, seed) for name in OTHERS for seed in range(_N_SEEDS)]
    return summary(
        measured("seconds-v1", [("command", seed) for seed in range(_N_SEEDS)], _command),
        measured("seconds-v1", fits, fitted),
        measured("seconds-v1", [("predict", 427)], _predict),
        measured("seconds-v1", [("cone", 100)], _cone),
        measured("seconds-v1", [("stream", *each) for each in STREAMS.items()], _classes)
        + measured("seconds-v1", [("numbers", 2000, 3)], _numbers),
    )


def summary(
    command: Rows, fits: Rows, predict: Rows, cone: Rows, streams: Rows
) -> dict[str, object]:
    """Medians of seconds and means of log scores of each fit; all that has a target beside it."""
    rows: Rows = []
    for name, method in dict.fromkeys((row["fit"], row["method"]) for row in fits):
        own = _of(fits, name, method)
        rows.append({
            "fit": name,
            "method": method,
            "n_seeds": len(own),
            "seconds": float(f"{np.median([row['seconds'] for row in own]):.3g}"),
            "log_score": round(float(np.mean([row["log_score"] for row in own])), 4),
        })  # fmt: skip
    targets = [
        *(_beside(fits, n, d, most) for (n, d), (_, most) in CLASSIFIERS.items()),
        [_at_most(f"regressor, {n} x 10", rows, most) for n, (_, most) in REGRESSORS.items()],
        [_at_most(f"{name}, 200 rows", rows, most) for name, (_, most) in OTHERS.items()],
        _of_command(command),
        [
            _target("a row predicted, s", predict[0]["later_row"], 0.02),
            _target("the first row predicted, s", predict[0]["first_row"], None),
            _target("1000 rows predicted, s", predict[0]["1000_rows"], 1.0),
            _target("effective draws a second on a cone", cone[0]["per_second"], 5000.0, -1),
        ],
        *(_of_stream(row) for row in streams),
    ]
    return {
        "targets": [row for some in targets for row in some],
        "rows": rows,
        "command": command,
        "predict": predict[0],
        "cone": cone[0],
        "streams": streams,
    }


def _of(fits: Rows, name: str, method: str) -> Rows:
    return [row for row in fits if (row["fit"], row["method"]) == (name, method)]


def _target(what: str, found: float, target: float | None, sign: int = 1) -> dict[str, Any]:
    """Say whether a figure is at most (sign 1) or at least (-1) its target; None: there is none."""
    is_met = None if target is None else bool(sign * found <= sign * target)
    words = "" if target is None else f"{'at most' if sign > 0 else 'at least'} {target:g}"
    return {"what": what, "found": float(f"{found:.3g}"), "target": words, "is_met": is_met}


def _at_most(name: str, rows: Rows, most: float) -> dict[str, Any]:
    (row,) = [row for row in rows if row["fit"] == name and row["method"] == OURS]
    return _target(f"{name}, s", row["seconds"], most)


def _beside(fits: Rows, n: int, d: int, most: float | None) -> Rows:
    """Hold a default classifier against its maximum, and both settings against scikit-learn's."""
    name, found = f"classifier, {n} x {d}", Rows()
    pairs: list[tuple[str, str, float | None]] = [(OURS, PEER, 1.0), (ONE, PEER, 1.0)]
    for method, other, times in [(OURS, MAP, most), *pairs]:
        ours, theirs = _of(fits, name, method), _of(fits, name, other)
        ratio = np.median([a["seconds"] / b["seconds"] for a, b in zip(ours, theirs, strict=True)])
        gaps = np.array(
            [a["log_score"] - b["log_score"] for a, b in zip(ours, theirs, strict=True)]
        )
        error = float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else 0.0
        said = f"{name}: {method}, less {other}"
        score = {
            "what": f"{said}: log score",
            "found": round(float(gaps.mean()), 4),
            "error": round(error, 4),
            "target": "no worse" if other == MAP else "better",
            "is_met": bool(gaps.mean() <= error) if other == MAP else bool(gaps.mean() < 0.0),
        }
        found += [_target(f"{name}: {method}, times {other}", float(ratio), times), score]
    return found


def _of_command(command: Rows) -> Rows:
    cpu = float(np.median([row["cpu_seconds"] for row in command]))
    n_warnings = max(row["n_warnings"] for row in command)
    clock = float(np.median([row["clock_seconds"] for row in command]))
    return [
        _target("first command of the README, CPU s", cpu, 10.0),
        _target("first command of the README, s by the clock", clock, None),
        _target("first command of the README, warnings", n_warnings, 0.0),
    ]


def _of_stream(row: dict[str, Any]) -> Rows:
    name, least = row["stream"], 2000.0 if row["stream"] == "numbers" else 500.0
    found = [_target(f"stream, {name}: rows a CPU second", row["rows_per_second"], least, -1)]
    if "percentile_99_ms" in row:
        said = f"stream, {name}: 99 % of rows under, ms"
        found.append(_target(said, row["percentile_99_ms"], 5.0))
    return found


def _command(_: str, seed: int) -> Rows:
    program = [sys.executable, "-m", "mercer", *_README, "--seed", str(seed)]
    with tempfile.TemporaryDirectory() as folder:
        files = ["--out", str(Path(folder) / "m.mercer"), "--report", str(Path(folder) / "m.html")]
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run([*program, *files], check=True, capture_output=True, text=True)
        clock, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    n_warnings = sum(line.startswith("warning") for line in (done.stdout + done.stderr).split("\n"))
    row = {"cpu_seconds": round(cpu, 2), "clock_seconds": round(clock, 2)}
    return [{**row, "n_warnings": n_warnings}]


def fitted(kind: str, n: int, d: int, seed: int) -> Rows:
    """Fit a table by each method of that kind: seconds and log score."""
    is_numbers = kind in {"regressor", "sequential kernel regression", "BaNK, numbers"}
    X, y = _table(n + _N_TEST, d or (10 if is_numbers else 8), seed, is_numbers=is_numbers)
    common = {"random_state": seed, "progress": False}
    methods: dict[str, Callable[[], Any]]
    if kind in OTHERS:
        methods = {OURS: lambda: OTHERS[kind][0](**common)}
    else:
        estimator = GPRegressor if is_numbers else GPClassifier
        methods = {
            OURS: lambda: estimator(**common),
            MAP: lambda: estimator(**common, inference="map"),
        }
    if kind == "classifier":
        kernel = ConstantKernel(1.0, (1e-4, 1e8)) * RBF(np.ones(d), (1e-3, 1e6))
        methods[ONE] = lambda: GPClassifier(**common, kernel="rbf")
        methods[PEER] = lambda: GaussianProcessClassifier(kernel, n_restarts_optimizer=0)
    rows, name = Rows(), f"{kind}, {n} x {d}" if d else f"{kind}, {n} rows"
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, make in methods.items():
            make().fit(X[:40], y[:40])  # so that nothing is loaded or compiled below
            begin = time.process_time()
            model = make().fit(X[:n], y[:n])
            seconds = time.process_time() - begin
            loss = _loss(model, X[n:], y[n:])
            rows.append({"fit": name, "method": method, "seconds": seconds, "log_score": loss})
    return rows


def _table(n: int, d: int, seed: int, *, is_numbers: bool) -> tuple[Array, Array]:
    if is_numbers:
        return make_friedman1(n, d, noise=1.0, random_state=seed)  # type: ignore[no-any-return]
    X, y = make_classification(
        n,
        d,
        n_informative=min(4, d) if d < 10 else 10,
        n_redundant=0,
        flip_y=0.1,
        random_state=seed,
    )
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def _loss(model: Any, X: Array, y: Array) -> float:
    if hasattr(model, "predictive"):
        return float(-model.predictive(X).log_density(y).mean())
    return float(-np.log(model.predict_proba(X)[np.arange(len(y)), y.astype(int)]).mean())


def _predict(_: str, n: int) -> Rows:
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(y))
    with threadpool_limits(limits=1):
        model = GPClassifier(random_state=SEED, progress=False).fit(X[order[:n]], y[order[:n]])
        many = np.tile(X, (2, 1))[:1000]
        first, *later = [_seconds(model, X[:1]) for _ in range(6)]
        thousand = [_seconds(model, many) for _ in range(5)]
    return [
        {
            "first_row": float(f"{first:.2g}"),
            "later_row": float(f"{np.median(later):.2g}"),
            "1000_rows": float(f"{np.median(thousand):.2g}"),
        }
    ]


def _seconds(model: Any, X: Array) -> float:
    begin = time.process_time()
    model.predict_proba(X)
    return time.process_time() - begin


def _cone(_: str, n: int) -> Rows:
    cone = cone_v1(n, n)
    signs = np.random.default_rng(SEED).choice([-1, 1], n)
    X = cone.rows * signs[:, np.newaxis]
    model = KernelGibbsClassifier(
        kernel="linear", noise_rate=0.0, nugget=0.0, fit_intercept=False, standardize=False,
        n_draws=2000, random_state=SEED, progress=False,
    )  # fmt: skip
    with threadpool_limits(limits=1):
        model.fit(X[:20], signs[:20])
        begin = time.process_time()
        model.fit(X, signs)
        seconds = time.process_time() - begin
    draws = model.posterior_
    margins = model.margin_draws(cone.directions).reshape(draws.n_chains, draws.n_draws, -1)
    sizes = [
        array_stats.ess(margins[:, :, k], method="bulk", chain_axis=0, draw_axis=1)
        for k in range(margins.shape[-1])
    ]
    return [{"per_second": float(f"{min(sizes) / seconds:.3g}"), "seconds": round(seconds, 2)}]


def _classes(_: str, name: str, n_rows: int) -> Rows:
    from river import datasets

    pairs = [(list(x.values()), label) for x, label in getattr(datasets, name)().take(n_rows)]
    X = np.array([inputs for inputs, _ in pairs], dtype=np.float64)
    y = np.unique([label for _, label in pairs], return_inverse=True)[1]
    model = SequentialKernelClassifier(random_state=SEED)
    model.prequential(X[:_LEARNED], y[:_LEARNED], classes=np.unique(y))
    seconds, scores = [], []
    with threadpool_limits(limits=1):
        for t in range(_LEARNED, len(y)):
            begin = time.process_time()
            row = model.prequential(X[t : t + 1], y[t : t + 1])
            seconds.append(time.process_time() - begin)
            scores.append(float(row.log_density[0]))
    return [
        {
            "stream": name,
            "n_classes": int(y.max()) + 1,
            "rows_per_second": float(f"{len(seconds) / sum(seconds):.3g}"),
            "percentile_99_ms": float(f"{1e3 * np.percentile(seconds, 99):.3g}"),
            "slowest_ms": float(f"{1e3 * max(seconds):.3g}"),
            "log_score": round(float(-np.mean(scores)), 4),
        }
    ]


def _numbers(_: str, n_before: int, n_parts: int) -> Rows:
    model = SequentialKernelRegressor(max_candidates=256, random_state=SEED, **PRIOR)
    model.partial_fit(*steady_rows_v1(n_before))
    seconds = []
    with threadpool_limits(limits=1):
        for part in range(n_parts):
            X, y = steady_rows_v1(1000, part)
            begin = time.process_time()
            model.partial_fit(X, y)
            seconds.append((time.process_time() - begin) / len(y))
    return [{"stream": "numbers", "rows_per_second": float(f"{1.0 / np.median(seconds):.4g}")}]
