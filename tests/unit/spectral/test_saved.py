"""Model files: what comes back, and F8: right sum and wrong contents fail when it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer.posterior.container import read_container
from support.mangled import set_array, set_field, taken
from support.spectral_fits import PAPER, tiny, waves

X, Y = waves(40)
Z = waves(9, seed=4)[0]
KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": PAPER,
    "full": {"base_measure": "full", "concentration": "learn"},
    "without linear part": {"linear_part": False},
    "warped": {"standardize": "yeo-johnson"},
    "some rows": {"kernel_rows": 25, "full_draws": 2},
    "some rows, all draws completed": {"kernel_rows": 25, "full_draws": 1000},
    "several chains": {"n_chains": 2, "n_draws": 5},
    "Student's t": {"noise": "student_t"},
    "noise that varies": {"noise": "heteroscedastic"},
}


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest):
    return tiny(**KINDS[request.param]).fit(X, Y)


def test_what_is_written_comes_back(model, tmp_path: Path) -> None:
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    for name, arguments in (
        ("predict", (Z, True)),
        ("predict_interval", (Z, 0.8)),
        ("sample_y", (Z, 7, 1)),
        ("kernel", (Z,)),
        ("spectral_density", (Z,)),
        ("marginal_spectral_density", (Z[:, 0], 2)),
    ):
        np.testing.assert_array_equal(
            getattr(again, name)(*arguments), getattr(model, name)(*arguments)
        )
    for name in ("noise_std_", "components_", "notes_", "feature_labels_", "n_frequencies_",
                 "n_training_rows_", "n_features_in_"):  # fmt: skip
        assert getattr(again, name) == getattr(model, name)
    assert again.diagnostics_.to_dict() == model.diagnostics_.to_dict()
    lines = [str(one.posterior_.summary()).splitlines() for one in (again, model)]
    assert sorted(lines[0]) == sorted(lines[1])
    again.save(tmp_path / "twice.mercer")
    assert (tmp_path / "twice.mercer").stat().st_size == (tmp_path / "m.mercer").stat().st_size


def test_names_of_columns_come_back(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["age", "mass", "dose"])
    tiny().fit(frame, Y).save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert list(again.feature_names_in_) == ["age", "mass", "dose"]
    assert {row[2] for row in again.components_.rows} == {"age", "mass", "dose"}


def test_no_training_row_is_in_the_file(model, tmp_path: Path) -> None:
    """Nor a standardised one: no array has as many rows as there were."""
    model.save(tmp_path / "m.mercer")
    _, arrays = read_container(tmp_path / "m.mercer")
    for name, values in arrays.items():
        assert len(X) not in values.shape, name


def test_a_file_says_nothing_of_how_it_was_run(model, tmp_path: Path) -> None:
    model.save(tmp_path / "m.mercer")
    manifest, _ = read_container(tmp_path / "m.mercer")
    assert not {"checkpoint", "n_jobs", "progress", "max_seconds"} & set(manifest["params"])


CHANGES = {
    "scales cut": set_array("start_scales", lambda v: v[:-1]),
    "scales 0": set_array("start_scales", lambda v: v * 0.0),
    "scales nan": set_array("start_scales", lambda v: v * np.nan),
    "scales integers": set_array("start_scales", lambda v: v.astype(np.int64) + 1),
    "scales gone": lambda manifest, arrays: arrays.pop("start_scales"),
    "standardizer cut": set_array("standardizer/scale", lambda v: v[:-1]),
    "standardizer kind": set_array("standardizer/kind", lambda v: v + 7),
    "frequencies nan": set_array("draws/frequencies", lambda v: v * np.nan),
    "frequencies cut": set_array("draws/frequencies", lambda v: v[:, :, :-1]),
    "frequencies of fewer inputs": set_array("draws/frequencies", lambda v: v[..., :-1]),
    "frequencies flat": set_array("draws/frequencies", lambda v: v[..., 0]),
    "no frequencies": set_array("draws/frequencies", lambda v: v[:, :, :0]),
    "frequencies gone": lambda manifest, arrays: arrays.pop("draws/frequencies"),
    "mean cut": set_array("draws/coef_mean", lambda v: v[..., :-1]),
    "mean nan": set_array("draws/coef_mean", lambda v: v * np.nan),
    "deviation cut": set_array("draws/coef_deviation", lambda v: v[..., :-1]),
    "no deviations": set_array("draws/coef_deviation", lambda v: v[:, :, :0]),
    "deviation flat": set_array("draws/coef_deviation", lambda v: v[:, :, 0]),
    "noise negative": set_array("draws/noise_std", lambda v: -v),
    "noise 0": set_array("draws/noise_std", lambda v: 0.0 * v),
    "assignment of too many": set_array("draws/assignment", lambda v: v + 6),
    "assignment negative": set_array("draws/assignment", lambda v: v - 9),
    "assignment a float": set_array("draws/assignment", lambda v: v + 0.0),
    "assignment cut": set_array("draws/assignment", lambda v: v[..., :-1]),
    "base scale 0": set_array("draws/base_scale", lambda v: 0.0 * v),
    "concentration negative": set_array("draws/concentration", lambda v: -v),
    "evidence nan": set_array("draws/log_evidence", lambda v: v * np.nan),
    "evidence gone": lambda manifest, arrays: arrays.pop("draws/log_evidence"),
    "target scale 0": set_field("fields/target_scale", 0.0),
    "target centre": set_field("fields/target_centre", "much"),
    "no rows": set_field("fields/n_training_rows", 0),
    "rows": set_field("fields/n_training_rows", None),
    "labels": set_field("fields/labels_of_inputs", ["a"]),
    "params wrong": set_field("params/proposals", {"x": 1}),
    "params unknown": set_field("params/callback", "os.system"),
    "params frequencies": set_field("params/n_frequencies", "os.system"),
    "params linear part": set_field("params/linear_part", False),
    "params base": set_field("params/base_measure", "round"),
    "params draws": set_field("params/n_draws", "many"),
}


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.mercer"
    tiny(n_draws=5).fit(X, Y).save(path)
    return path


@pytest.fixture(scope="module")
def completed_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "c.mercer"
    tiny(n_draws=5, kernel_rows=25, full_draws=2).fit(X, Y).save(path)
    return path


def test_f8_inconsistent(model_file: Path, tmp_path: Path) -> None:
    assert taken(model_file, tmp_path, CHANGES) == []


SHAPES = {
    "noise": set_array("draws/noise_std", lambda v: v[..., np.newaxis]),
    "base scale cut": set_array("draws/base_scale", lambda v: v[..., :-1]),
    "base scale flat": set_array("draws/base_scale", lambda v: v[..., 0]),
    "concentration": set_array("draws/concentration", lambda v: v[..., np.newaxis]),
    "evidence": set_array("draws/log_evidence", lambda v: v[..., np.newaxis]),
    "another base": set_field("params/base_measure", "full"),
}


def test_f8_shapes(model_file: Path, tmp_path: Path) -> None:
    assert taken(model_file, tmp_path, SHAPES) == []


OF_FUNCTIONS = {
    "frequencies cut": set_array("functions/frequencies", lambda v: v[:, :-1]),
    "frequencies of fewer inputs": set_array("functions/frequencies", lambda v: v[..., :-1]),
    "mean cut": set_array("functions/mean", lambda v: v[:, :-1]),
    "mean of fewer draws": set_array("functions/mean", lambda v: v[:-1]),
    "deviations nan": set_array("functions/deviations", lambda v: v * np.nan),
    "no deviations": set_array("functions/deviations", lambda v: v[:, :0]),
    "noise 0": set_array("functions/noise_std", lambda v: 0.0 * v),
    "noise of other shape": set_array("functions/noise_std", lambda v: v[:, None]),
    "noise gone": lambda manifest, arrays: arrays.pop("functions/noise_std"),
}


def test_f8_coefficients_of_all_rows(completed_file: Path, tmp_path: Path) -> None:
    assert taken(completed_file, tmp_path, OF_FUNCTIONS) == []
