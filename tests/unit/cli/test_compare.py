from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from mercer import models
from mercer.baselines import mkl as mkl_classifier
from mercer.baselines import rfo
from mercer.baselines import rks as rks_classifier

from .conftest import SPHERE, TINY


def test_named_contenders_on_the_same_folds(run, table: Path) -> None:
    code, out, _ = run(
        "compare", table, "--target", "label", "--models", "gp,logistic,dummy", "--cv", "2", *TINY
    )
    assert code == 0
    lines = out.splitlines()
    order = [line.split("  ")[0] for line in lines if line[:5] in ("mercr", "logis", "class")]
    assert order == ["logistic regression", "class shares only"]
    assert "mercer gp" in out
    assert "advice " in out
    assert "\x1b" not in out


def test_all_that_tell_three_classes_apart(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in (
        (rks_classifier, "RKSClassifier"),
        (mkl_classifier, "MKLClassifier"),
        (rfo, "RFOClassifier"),
    ):
        monkeypatch.setattr(module, name, partial(getattr(module, name), n_features=24))
    code, out, _ = run(
        "compare", "iris", "--target", "target", "--cv", "2", "--json", "--metric", "error_rate",
        *SPHERE,
    )  # fmt: skip
    assert code == 0
    result = json.loads(out)
    names = [model["name"] for model in result["models"] if not model["is_baseline"]]
    assert sorted(names) == ["mercer basis", "mercer gp", "mercer spectral", "mercer sphere"]
    assert len(result["models"]) == 13
    assert all(model["error_rate"]["standard_error"] is not None for model in result["models"])


def test_one_that_runs_out_of_time_is_listed_so(run, table: Path) -> None:
    code, out, _ = run(
        "compare", table, "--target", "label", "--models", "gp,dummy", "--cv", "2",
        "--seconds-per-model", "0.7", "--set", "n_draws=100000", "--jobs", "2", "--json",
    )  # fmt: skip
    assert code == 0
    models = {model["name"]: model for model in json.loads(out)["models"]}
    assert models["mercer gp"]["problem"] == "out of time (0.7 s)"
    assert "log_score" in models["class shares only"]
    assert "ran out of time" in json.loads(out)["advice"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--models", "forrest"], "did you mean 'forest'"),
        (["--models", ","], "names none"),
        (["--set", "n_chans=2"], "did you mean 'n_chains'"),
    ],
)
def test_misspelt_options(run, table: Path, options: list[str], words: str) -> None:
    code, _, err = run("compare", table, "--target", "label", *options)
    assert code == 2
    assert words in err


def test_a_setting_goes_to_the_models_that_take_it(run, table: Path) -> None:
    code, out, err = run(
        "compare", table, "--target", "label", "--models", "gp,sphere", "--cv", "2", "--json",
        "--set", "inference=map", *SPHERE,
    )  # fmt: skip
    assert code == 0, err
    assert all("problem" not in model for model in json.loads(out)["models"])


def test_a_task_without_a_model_is_refused(run, monkeypatch: pytest.MonkeyPatch) -> None:
    classifiers = tuple(entry for entry in models.MODELS if entry.task == "classification")
    monkeypatch.setattr(models, "MODELS", classifiers)
    code, _, err = run("compare", "diabetes_progression", "--target", "target")
    assert code == 2
    assert "no model here does regression" in err


def test_rows_of_a_group_are_taken_together(run, tmp_path: Path) -> None:
    """Each row five times, as if a patient came five times: the error of the gap widens."""
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal(30), rng.standard_normal(30)
    label = np.where(a + rng.standard_normal(30) > 0.0, "ill", "well")
    path = tmp_path / "t.csv"
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["patient", "a", "b", "label"])
        writer.writerows(
            [f"p{k}", f"{a[k]:.3f}", f"{b[k]:.3f}", label[k]] for k in range(30) for _ in range(5)
        )
    said = {}
    for option in ("--group", "--drop"):
        code, out, err = run(
            "compare", path, "--target", "label", option, "patient", "--cv", "3", "--json",
            "--models", "basis,logistic", "--set", "n_particles=20",
        )  # fmt: skip
        assert code == 0, err
        said[option] = json.loads(out)["advice"]
    assert "rows paired and groups taken whole" in said["--group"]
    assert "groups" not in said["--drop"]
