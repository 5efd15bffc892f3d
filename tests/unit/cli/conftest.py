from __future__ import annotations

import csv
import importlib
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mercer.cli.main import main
from mercer.estimation import workers
from support.plain_reports import plain_figures
from support.quick_boosting import quick_boosting

__all__ = ["plain_figures", "quick_boosting"]

TINY = ["--set", "n_draws=20", "--set", "n_warmup=10", "--set", "n_chains=1", "--jobs", "1"]

ENOUGH = 60.0  # CPU seconds, for any model here

Run = Callable[..., tuple[int, str, str]]


def write_csv(path: Path, *, n: int = 60, seed: int = 3, extra: bool = False) -> Path:
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 2
    a, b = rng.normal(2.0 * kind, 1.0), rng.normal(size=n)
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["name", "b", "a", "label"] if extra else ["a", "b", "label"])
        for i in range(n):
            label = ("ill", "well")[kind[i]]
            row = [f"{a[i]:.4f}", f"{b[i]:.4f}", label]
            writer.writerow([f"p{i:03}", row[1], row[0], label] if extra else row)
    return path


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folds and chains stay in this process, but where a test asks for more, or for little time."""
    for home in (
        "joblib",
        *(f"mercer.cli.{name}" for name in ("compare", "fitting", "out_of_core")),
    ):
        monkeypatch.setattr(f"{home}.cpu_count", lambda: 1)

    def run_jobs(jobs, n_workers, *, seconds_per_group=None, **told):
        limit = seconds_per_group if (seconds_per_group or ENOUGH) < ENOUGH else None
        return workers.run_jobs(jobs, n_workers, seconds_per_group=limit, **told)

    home = importlib.import_module("mercer.estimation.cross_validate")
    monkeypatch.setattr(home, "run_jobs", run_jobs)


@pytest.fixture(autouse=True)
def few_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of small tables three, where ten is the default."""
    monkeypatch.setattr("mercer.cli.tables.N_FOLDS", 3)


@pytest.fixture(autouse=True)
def few_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that a Gaussian process tries by default the first three."""
    averaging = importlib.import_module("mercer.gp.averaging")
    plain = averaging.plain_kernels
    monkeypatch.setattr(
        averaging, "plain_kernels", lambda *given, **how: itertools.islice(plain(*given, **how), 3)
    )


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process; returns code, standard output, standard error."""

    def call(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return (code, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_csv(tmp_path_factory.mktemp("data") / "patients.csv")


@pytest.fixture(scope="session")
def model(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model") / "m.mercer"
    assert (
        main(
            [
                "fit",
                str(table),
                "--target",
                "label",
                "--out",
                str(out),
                "--test-size",
                "0.25",
                *TINY,
            ]
        )
        == 0
    )
    return out


SPHERE = [
    *("--set", "n_draws=20", "--set", "n_warmup=20", "--set", "n_chains=2"),
    *("--set", "lengthscale=median", "--set", "nugget=0", "--jobs", "1"),
]

WRONG = (7, 30)  # positions, of the rows of `suspects` whose label is flipped


def write_suspects(path: Path, *, n: int = 40, seed: int = 6) -> Path:
    """Write two clusters, far apart, with two labels in their midst flipped."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 2
    X = 0.7 * rng.standard_normal((n, 2))
    X[list(WRONG)] = 0.0
    X[:, 0] += 5.0 * kind
    kind[list(WRONG)] = 1 - kind[list(WRONG)]
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["patient", "a", "b", "sick"])
        for i in range(n):
            row = [f"p{i:03}", f"{X[i, 0]:.4f}", f"{X[i, 1]:.4f}", ("no", "yes")[kind[i]]]
            writer.writerow(row)
    return path


@pytest.fixture(scope="session")
def suspects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_suspects(tmp_path_factory.mktemp("data") / "suspects.csv")


@pytest.fixture(scope="session")
def sphere_model(suspects: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model") / "s.mercer"
    words = ["fit", str(suspects), "--target", "sick", "--drop", "patient", "--model", "sphere"]
    assert main([*words, "--test-size", "0.25", "--out", str(out), *SPHERE]) == 0
    return out
