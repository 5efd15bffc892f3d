from __future__ import annotations

import csv
import json
import shlex
import signal
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mercer import models
from mercer.baselines import random_features, rfo
from mercer.cli.compare import make_contenders
from mercer.cli.options import TableOptions
from mercer.cli.tables import read_training
from mercer.errors import UsageError
from mercer.estimation.splits import folds
from support.forked import Forked
from support.streams import write_classes

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


@pytest.mark.slow
def test_all_that_tell_three_classes_apart(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = write_classes(tmp_path / "rows.csv", ["ash", "birch", "cedar"], n=60)
    few = {"penalties": (1e-2,), "n_features": 24}
    for module, name, settings in (
        (random_features, "RKSClassifier", {**few, "length_factors": (1.0,)}),
        (random_features, "MKLClassifier", {**few, "length_factors": (1.0,)}),
        (rfo, "RFOClassifier", {**few, "components": (1,)}),
    ):
        monkeypatch.setattr(module, name, partial(getattr(module, name), **settings))
    code, out, _ = run(
        "compare", rows, "--target", "kind", "--drop", "name", "--cv", "2", "--json",
        "--metric", "error_rate", *SPHERE,
    )  # fmt: skip
    assert code == 0
    result = json.loads(out)
    names = [model["name"] for model in result["models"] if not model["is_baseline"]]
    assert sorted(names) == ["mercer basis", "mercer gp", "mercer spectral", "mercer sphere"]
    assert len(result["models"]) == 13
    assert all(model["error_rate"]["standard_error"] is not None for model in result["models"])


def test_every_model_of_ours_has_a_score_whatever_the_time(run, table: Path) -> None:
    code, out, err = run(
        "compare", table, "--target", "label", "--models", "gp,spectral,sphere,basis,dummy",
        "--cv", "2", "--seconds-per-model", "0.1", "--jobs", "1", "--json",
    )  # fmt: skip
    assert code == 0, err
    found = json.loads(out)
    models = {model["name"]: model for model in found["models"]}
    ours = {name: each["setting"] for name, each in models.items() if name.startswith("mercer")}
    assert ours == {
        "mercer gp": "maximum",
        "mercer spectral": "10 draws",
        "mercer sphere": "20 draws",
        "mercer basis": "50 particles",
    }
    assert all(models[name]["log_score"]["mean"] > 0 for name in ours)
    assert "scored at a quicker setting than by default" in found["advice"]
    assert "mercer sphere: 20 draws, log score " in err  # a line each, off a terminal


def test_of_gp_nothing_stands_between_the_maximum_and_its_own_setting() -> None:
    """Fifty draws take most of the time of all, as kernels are chosen before: it would be lost."""
    assert [len(each.quicker) for each in models.MODELS if each.name == "gp"] == [1, 1]


def test_settings_are_refined_while_time_is_left(run, table: Path) -> None:
    code, out, err = run(
        "compare", table, "--target", "label", "--models", "gp,dummy", "--cv", "2",
        "--set", "n_draws=60", "--set", "n_chains=1", "--jobs", "1", "--json",
    )  # fmt: skip
    assert code == 0, err
    gp = json.loads(out)["models"][0]
    assert (gp["setting"], gp["is_quick"]) == ("60 draws", False)
    said = [line.strip() for line in err.splitlines() if "mercer gp: " in line]
    assert [line.split(",")[0] for line in said if "folds" not in line] == [
        "mercer gp: maximum",
        "mercer gp: 60 draws",
    ]


@pytest.mark.slow  # a group that runs out of time is ended in estimation
def test_a_baseline_that_runs_out_of_time_is_listed_so(run, table: Path) -> None:
    """Forests take 0.7 s, class shares 0.04, most of it imports: far from both, anywhere."""
    code, out, _ = run(
        "compare", table, "--target", "label", "--models", "forest,dummy", "--cv", "2",
        "--seconds-per-model", "0.2", "--jobs", "1", "--json",
    )  # fmt: skip
    assert code == 0
    models = {model["name"]: model for model in json.loads(out)["models"]}
    assert models["random forest"]["problem"] == "out of time (0.2 CPU s)"
    assert "ran out of time" in json.loads(out)["advice"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ["integration=exact", "kernel=matern32", "rank=8"],
        ["inference=hmc", "n_leapfrog=5", "step_size=0.1", "kernel=linear"],
    ],
    ids=["exact", "hmc"],
)
def test_quick_settings_keep_what_was_asked_for(run, table: Path, options: list[str]) -> None:
    """Of what is incompatible with them nothing is left, and a rank takes no nugget."""
    code, out, err = run(
        "compare", table, "--target", "label", "--models", "gp,sphere", "--cv", "2",
        "--seconds-per-model", "0.1", "--jobs", "1", "--json",
        *(word for option in options for word in ("--set", option)),
    )  # fmt: skip
    assert code == 0, err
    assert all("problem" not in model for model in json.loads(out)["models"])


def test_scores_are_written_in_three_formats(run, table: Path, tmp_path: Path) -> None:
    for name in ("scores.json", "scores.csv", "scores.parquet"):
        code, _, err = run(
            "compare", table, "--target", "label", "--models", "logistic,dummy", "--cv", "2",
            "--out", tmp_path / name, "--jobs", "1",
        )  # fmt: skip
        assert code == 0, err
    found = json.loads((tmp_path / "scores.json").read_text())
    assert found["is_complete"]
    with open(tmp_path / "scores.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["model"] for row in rows] == ["class shares only", "logistic regression"]
    of_json = {model["name"]: model["log_score"]["mean"] for model in found["models"]}
    assert {row["model"]: float(row["log_score"]) for row in rows} == of_json
    code, _, err = run("compare", table, "--target", "label", "--out", tmp_path / "scores.txt")
    assert code == 2
    assert "must end in" in err


def test_what_was_scored_before_a_signal_is_kept(table: Path, tmp_path: Path) -> None:
    """SIGINT once the first model is written: table, advice and file are of what there is."""
    out = tmp_path / "scores.json"
    words = [
        "compare", str(table), "--target", "label", "--models", "gp,logistic", "--cv", "2",
        "--set", "n_draws=200000", "--set", "inference=hmc", "--seconds-per-model", "600",
        "--jobs", "1", "--out", str(out),
    ]  # fmt: skip
    process = Forked(["mercer", *words], text=True)
    said = ""
    for line in process.stderr:
        said += line
        if "logistic regression: log score" in line:
            break
    process.send_signal(signal.SIGINT)
    shown, err = process.communicate(timeout=60)
    assert process.returncode == 130, said + err
    assert "mercer gp maximum" in shown
    assert "logistic regression" in shown
    assert "advice " in shown
    assert "stopped by SIGINT; what was scored before is above and in " in err
    assert "--seconds-per-model" not in shown[shown.index("advice ") :]
    found = json.loads(out.read_text())
    assert not found["is_complete"]
    assert [model["name"] for model in found["models"] if "problem" not in model] == [
        "mercer gp",
        "logistic regression",
    ]


def test_the_command_that_is_recommended_runs_as_printed(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "patients of may.csv"
    rng = np.random.default_rng(5)
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["who", "seen", "dose", "ill"])
        for k in range(40):
            day, dose = f"{k % 12 + 1:02}/{k % 9 + 1:02}/2024", f"{rng.normal():.3f}"
            writer.writerow([f"p{k}", day, dose, "no" if rng.random() < 0.5 else "yes"])
    code, out, err = run(
        "compare", path, "--target", "ill", "--id", "who", "--dates", "monthfirst", "--cv", "2",
        "--models", "basis,dummy", "--set", "n_particles=10", "--jobs", "1",
    )  # fmt: skip
    assert code == 0, err
    command = next(line for line in out.splitlines() if line.startswith("next"))
    words = shlex.split(command.removeprefix("next"))
    assert words[0] == "mercer"
    code, out, err = run(*words[1:], "--jobs", "1")
    assert code == 0, err
    assert "--dates monthfirst" in command


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


def test_a_value_that_one_model_takes_is_not_for_those_that_refuse_it(tmp_path: Path) -> None:
    """As the command that a fit of counts proposes has it."""
    data, told = tmp_path / "counts.csv", []
    data.write_text("a,y\n" + "".join(f"{k % 7}.5,{k % 13}\n" for k in range(60)))
    options = TableOptions("y", "regression", (), None, None, "error")
    training = read_training(str(data), options)
    folds = [SimpleNamespace(y_train=np.zeros(40))]
    given = training, "gp,spectral", ("noise=negative_binomial",), 0, folds, told.append
    gp, spectral = (each.make(40, 40) for each in make_contenders(*given))
    assert (gp.noise, spectral.noise) == ("auto", "negative_binomial")
    assert told[-1] == "gp takes no noise=negative_binomial, and is compared without"
    with pytest.raises(UsageError, match="noise must be one of"):
        make_contenders(training, "gp,spectral", ("noise=odd",), 0, folds, told.append)


def test_an_order_of_classes_is_for_the_model_that_takes_one(tmp_path: Path) -> None:
    data, told = tmp_path / "grades.csv", []
    data.write_text("a,y\n" + "".join(f"{k % 7}.5,{'lmh'[k % 3]}\n" for k in range(60)))
    training = read_training(
        str(data), TableOptions("y", "classification", (), None, None, "error")
    )
    folds = [SimpleNamespace(y_train=np.zeros(40))]
    given = training, "gp,spectral", ("ordered=l,m,h",), 0, folds, told.append
    gp, spectral = (each.make(40, 40) for each in make_contenders(*given))
    assert "ordered" not in gp.get_params()
    assert spectral.ordered == [1, 2, 0]  # positions of the labels, as folds have them


def test_a_task_without_a_model_is_refused(run, monkeypatch: pytest.MonkeyPatch) -> None:
    classifiers = tuple(entry for entry in models.MODELS if entry.task == "classification")
    monkeypatch.setattr(models, "MODELS", classifiers)
    code, _, err = run("compare", "diabetes_progression", "--target", "target")
    assert code == 2
    assert "no model here does regression" in err


@pytest.mark.parametrize(
    "words", [["fit", "--model", "stack"], ["compare", "--models", "stack,dummy"]]
)
def test_a_stack_is_weighed_by_whole_groups(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    rows = [f"{i % 7}.{i},{i % 5},{i % 3},p{i // 4}" for i in range(48)]
    (tmp_path / "t.csv").write_text("a,b,y,patient\n" + "\n".join(rows) + "\n")
    seen = []

    def spy(codes, n_folds, rng, groups=None, **how):
        seen.append((len(codes), np.unique(groups, return_counts=True)[1]))
        return folds(codes, n_folds, rng, groups, **how)

    monkeypatch.setattr("mercer.stacking.estimator.folds", spy)
    code, _, err = run(
        words[0], tmp_path / "t.csv", *words[1:], "--target", "y", "--group", "patient",
        "--cv", "2", "--set", "models=boosting", "--set", "n_draws=4", "--set", "n_warmup=4",
    )  # fmt: skip
    assert code == 0, err
    assert seen
    assert all(sizes.sum() == n and set(sizes) == {4} for n, sizes in seen)


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
