"""F8: a file with a right sum and wrong contents fails when it is read."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer import GPClassifier
from mercer.errors import ModelFileError
from mercer.posterior.container import read_container, write_container
from support.mangled import set_array, set_field, taken


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 2)), np.arange(12) % 2
    path = tmp_path_factory.mktemp("model") / "m.mercer"
    settings: dict[str, Any] = {"n_draws": 5, "n_warmup": 2, "n_chains": 1}
    GPClassifier(kernel="rbf", inference="hmc", **settings, random_state=0, progress=False).fit(
        X, y
    ).save(path)
    return path


CHANGES = {
    "rows cut": set_array("X", lambda X: X[:-1]),
    "rows empty": set_array("X", lambda X: X[:0]),
    "rows nan": set_array("X", lambda X: X * np.nan),
    "rows bool": set_array("X", lambda X: X > 0),
    "targets cut": set_array("y", lambda y: y[:-1]),
    "targets 2": set_array("y", lambda y: y + 1.0),
    "scale cut": set_array("standardizer/scale", lambda s: s[:-1]),
    "kind 7": set_array("standardizer/kind", lambda k: k + 7),
    "after_scale 0": set_array("standardizer/after_scale", lambda s: s * 0.0),
    "weights huge": set_array("draws/log_weight", lambda w: w + 200.0),
    "coef nan": set_array("draws/dual_coef", lambda a: a * np.nan),
    "correction gone": lambda manifest, arrays: arrays.pop("draws/dual_correction"),
    "no classes": set_field("fields/classes/values", []),
    "one class": set_field("fields/classes/values", [1, 1]),
    "classes nested": set_field("fields/classes/values", [[1], [2]]),
    "label bomb": set_field("fields/classes", {"dtype": "<V500000000", "values": ["a", "b"]}),
    "label overflow": set_field("fields/classes", {"dtype": "<i4", "values": [2**40, 1]}),
    "params wrong": set_field("params/inference", {"x": 1}),
    "params unknown": set_field("params/callback", "os.system"),
    "params counts": set_field("params/n_draws", "many"),
    "labels": set_field("fields/labels_of_inputs", ["a"]),
}


def test_probabilities_of_earlier_versions_may_be_beyond_one_by_little(
    model_file: Path, tmp_path: Path
) -> None:
    """A few were of modes that the search had not reached, and files with them were refused."""
    manifest, arrays = read_container(model_file)
    for excess, is_right in ((4e-4, True), (0.1, False)):
        coef = np.array(arrays["draws/dual_coef"])
        coef[0, 0] = np.where(arrays["y"] == 1.0, -excess, 0.0)
        write_container(tmp_path / "m.mercer", manifest, {**arrays, "draws/dual_coef": coef})
        with nullcontext() if is_right else pytest.raises(ModelFileError, match="dual_coef"):
            mercer.load(tmp_path / "m.mercer")


WEIGHTED_CHANGES = {
    "weights cut": set_array("log_weights", lambda w: w[:, :-1]),
    "weights nan": set_array("log_weights", lambda w: w * np.nan),
    "few beyond": set_array("few/0/positions", lambda i: i + 1000),
    "few backwards": set_array("few/0/positions", lambda i: i[::-1]),
    "few cut": set_array("few/0/positions", lambda i: i[:-1]),
    "few weights": set_array("few/0/weights", lambda w: 2.0 * w),
    "few gone": lambda manifest, arrays: arrays.pop("few/0/weights"),
    "evidence": set_field("fields/log_evidence", [1.0]),
    "evidence text": set_field("fields/log_evidence", ["a", "b"]),
}


def test_f8_inconsistent_weights(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 2)), np.arange(12) % 2
    model = GPClassifier(kernel="rbf", n_draws=90, n_chains=1, random_state=0, progress=False).fit(
        X, y
    )
    model.save(tmp_path / "weighted.mercer")
    assert model.posterior_.n_total > 64
    assert taken(tmp_path / "weighted.mercer", tmp_path, WEIGHTED_CHANGES) == []


def test_f8_inconsistent(model_file: Path, tmp_path: Path) -> None:
    assert taken(model_file, tmp_path, CHANGES) == []


def test_a_file_says_nothing_of_how_it_was_run(model_file: Path) -> None:
    manifest, _ = read_container(model_file)
    assert not {"checkpoint", "n_jobs", "progress", "max_seconds"} & set(manifest["params"])


def test_long_text_labels_take_no_memory(model_file: Path, tmp_path: Path) -> None:
    manifest, arrays = read_container(model_file)
    manifest["fields"]["classes"] = {"dtype": "<U500000000", "values": ["a", "b"]}
    write_container(tmp_path / "m.mercer", manifest, arrays)
    assert mercer.load(tmp_path / "m.mercer").classes_.nbytes < 100
