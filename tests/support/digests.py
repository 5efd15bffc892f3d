"""Digests of what every estimator and command gives: proof that a move of code changes no bit.

``cd tests; python -m support.digests > before.txt`` before a move, the same after it, and a diff:
each line is a name and a SHA-256. Files and reports are taken without times, versions and paths.
One BLAS thread: set OPENBLAS_NUM_THREADS and OMP_NUM_THREADS to 1.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

import mercer
from mercer.cli.main import main
from mercer.posterior.container import read_container

QUICK = {"n_draws": 12, "n_warmup": 12, "n_chains": 2, "random_state": 3, "progress": False}
PARTICLES = {"n_particles": 20, "random_state": 3, "progress": False}
SPECTRAL = {**QUICK, "n_frequencies": 12}
_CHANGING = re.compile(
    r"/tmp/[^\s\"'<]*|(under\s)?\d+(\.\d+)?(e-?\d+)?\s?(ms|s|min|h|CPU seconds|seconds)\b"
    r"|\d{4}-\d\d-\d\d[T ]?[\d:.Z+]*"
    r"|data-sort=\"[^\"]*\"|(?m: +\d+\.\d\d$)"  # seconds of the table of scores
)


def table(n: int, d: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, a number, two classes and three classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    f = np.sin(1.5 * X[:, 0]) + 0.4 * X[:, -1]
    y = f + 0.2 * rng.standard_normal(n)
    return X, y, (f + 0.5 * rng.standard_normal(n) > 0).astype(int), np.digitize(y, (-0.5, 0.5))


def estimators() -> Iterator[tuple[str, Any, str]]:
    """Every estimator in a dozen settings, and the target that it learns."""
    gp = functools.partial(mercer.GPClassifier, kernel="rbf")
    reg = functools.partial(mercer.GPRegressor, kernel="rbf")
    for inference in ("hmc", "nuts", "map", "metropolis"):
        own = {**QUICK, "inference": inference}
        yield f"gp {inference}", gp(**own), "two"
        yield f"gp {inference} numbers", reg(**own), "numbers"
    yield "gp three classes", gp(**QUICK), "three"
    yield "gp shared", gp(**QUICK, shared_kernel=True, kernel="rbf + linear"), "three"
    yield "gp exact", gp(**QUICK, integration="exact"), "two"
    yield "gp matern", reg(**QUICK, kernel="matern32 + linear"), "numbers"
    yield "gp max_rows", reg(**QUICK, max_rows=20), "numbers"
    sphere = {**QUICK, "n_draws": 30}
    for name, own, target in (
        ("default", {}, "two"),
        ("three classes", {}, "three"),
        ("fixed", {"noise_rate": 0.1, "lengthscale": 1.0, "nugget": 0.1}, "two"),
        ("per class", {"noise_rate": {0: 0.1, 1: 0.2}, "lengthscale": 1.0, "nugget": 0.0}, "two"),
        ("lines", {"sampler": "lines", "lengthscale": "median", "nugget": 0.0}, "two"),
        ("circle", {"sampler": "great_circle", "lengthscale": "median", "nugget": 0.0}, "two"),
        ("rank", {"rank": 8, "lengthscale": "median", "nugget": 0.0}, "two"),
    ):
        yield f"sphere {name}", mercer.KernelGibbsClassifier(**{**sphere, **own}), target
    for name, own in (
        ("default", {}),
        ("sampled", {"variances": "sampled"}),
        ("forgetting", {"forgetting": (1.0, 0.98)}),
        ("few candidates", {"max_candidates": 12}),
    ):
        yield f"basis {name}", mercer.SequentialKernelRegressor(**PARTICLES, **own), "numbers"
    yield "basis two classes", mercer.SequentialKernelClassifier(**PARTICLES), "two"
    yield "basis three classes", mercer.SequentialKernelClassifier(**PARTICLES), "three"
    for name, own in (
        ("default", {}),
        ("prior", {"proposals": "prior", "base_measure": "full"}),
        ("learned concentration", {"concentration": "learn"}),
        ("subset", {"kernel_rows": 30, "full_draws": 2}),
    ):
        yield f"spectral {name}", mercer.BaNKRegressor(**SPECTRAL, **own), "numbers"
    for name, own, target in (
        ("two classes", {}, "two"),
        ("three classes", {"n_leapfrog": 0}, "three"),
        ("joint", {"sampler": "joint"}, "two"),
        ("subset of classes", {"kernel_rows": 30, "full_draws": 2}, "three"),
    ):
        yield f"spectral {name}", mercer.BaNKClassifier(**SPECTRAL, **own), target


def digest(*values: Any) -> str:
    """SHA-256 of arrays and texts."""
    found = hashlib.sha256()
    for value in values:
        if isinstance(value, str):
            found.update(value.encode())
        else:
            array = np.ascontiguousarray(value)
            found.update(f"{array.dtype.str}{array.shape}".encode() + array.tobytes())
    return found.hexdigest()


def file_digest(path: Path) -> str:
    """Of a model file: its arrays, and its manifest without what names the machine or the time."""
    manifest, arrays = read_container(path)
    text = _CHANGING.sub("*", json.dumps(manifest, sort_keys=True))
    text = re.sub(r'"(mercer|date|created|seconds|command)": ("[^"]*"|[\d.e-]+)', "*", text)
    return digest(text, *(arrays[name] for name in sorted(arrays)))


def of_estimators(folder: Path) -> Iterator[tuple[str, str]]:
    """Draws, predictions and file of every fit, and the predictions of the file."""
    X, y, two, three = table(60, 3)
    targets = {"numbers": y, "two": two, "three": three}
    Z = table(7, 3, 5)[0]
    for name, model, target in estimators():
        model.fit(X, targets[target])
        posterior = getattr(model, "posterior_", None)
        if posterior is not None:
            names = sorted(posterior.variables)
            yield f"{name}: draws", digest(*(posterior.variables[each] for each in names))
        answer = "predict_proba" if hasattr(model, "predict_proba") else "predict"
        yield f"{name}: {answer}", digest(getattr(model, answer)(Z), model.predict(Z))
        path = folder / "model.mercer"
        model.save(path)
        yield f"{name}: file", file_digest(path)
        yield f"{name}: loaded", digest(getattr(mercer.load(path), answer)(Z))
    stream = mercer.SequentialKernelRegressor(**PARTICLES, scale_rows=20)
    for i in range(0, 60, 7):
        stream.partial_fit(X[i : i + 7], y[i : i + 7])
    yield "basis stream", digest(stream.predict(Z), stream.log_predictive_)


def of_commands(folder: Path) -> Iterator[tuple[str, str]]:
    """What commands say and write."""
    X, y, two, three = table(60, 3)
    data = folder / "table.csv"
    cells = [["a", "b", "c", "kind", "number", "label"]]
    cells += [
        [*(f"{v:.5f}" for v in X[i]), "uvw"[three[i]], f"{y[i]:.5f}", ("no", "yes")[two[i]]]
        for i in range(60)
    ]
    data.write_text("\n".join(",".join(row) for row in cells) + "\n")
    tiny = [f"--set={k}={QUICK[k]}" for k in ("n_draws", "n_warmup", "n_chains")]
    particles = ["--set=n_particles=20"]
    model, report = folder / "m.mercer", folder / "r.html"
    for name, target, drop, own in (
        ("gp", "label", "number", tiny),
        ("sphere", "label", "number", [*tiny, "--set=lengthscale=median", "--set=nugget=0"]),
        ("basis", "label", "number", particles),
        ("spectral", "label", "number", [*tiny, "--set=n_frequencies=12"]),
        ("gp", "number", "label", tiny),
        ("basis", "number", "label", particles),
        ("spectral", "number", "label", [*tiny, "--set=n_frequencies=12"]),
    ):
        fit = ["fit", data, "--target", target, "--drop", drop, "--model", name, "--jobs", "1"]
        outputs = ["--test-size", "0.25", "--out", model, "--report", report]
        title = f"command {name} {target}"
        yield f"{title}: fit", said(*fit, *outputs, *own)
        yield f"{title}: report", digest(_CHANGING.sub("*", report.read_text()))
        yield f"{title}: file", file_digest(model)
        yield f"{title}: predict", said("predict", model, data)
        yield f"{title}: inspect", said("inspect", model)
        report.unlink()
    yield "command audit", said("audit", data, "--target", "label", "--drop", "number", *tiny)
    yield (
        "command stream",
        said("stream", data, "--target", "number", "--drop", "label", *particles),
    )
    yield "command datasets", said("datasets")


def said(*words: object) -> str:
    """Digest of exit code and standard output of a command."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(word) for word in words])
    if code:
        sys.stderr.write(f"{words}: {code}: {err.getvalue()[-300:]}\n")
    return digest(str(code), _CHANGING.sub("*", out.getvalue()))


def run() -> None:
    """Print all digests."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        for source in (of_estimators, of_commands):
            for title, found in source(Path(name)):
                sys.stdout.write(f"{title}: {found}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    run()
