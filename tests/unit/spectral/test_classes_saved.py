"""Model files: what comes back, and F8: right sum and wrong contents fail when it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer.posterior.container import read_container
from support.mangled import set_array, set_field, taken
from support.spectral_class_fits import tiny, waves
from support.spectral_fits import PAPER

X, Y = waves(40, n_classes=3)
Z = waves(9, seed=4)[0]
KINDS: dict[str, tuple[int, dict[str, Any]]] = {
    "two classes": (2, {}),
    "three classes": (3, {}),
    "paper": (2, PAPER),
    "some rows": (3, {"kernel_rows": 25, "full_draws": 2}),
    "some rows, all draws completed": (2, {"kernel_rows": 25, "full_draws": 1000}),
    "several chains": (3, {"n_chains": 2, "n_draws": 5, "base_measure": "full"}),
}


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest):
    n_classes, own = KINDS[request.param]
    return tiny(**own).fit(*waves(40, n_classes=n_classes))


def test_what_is_written_comes_back(model, tmp_path: Path) -> None:
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    for name in ("predict", "predict_proba", "decision_function", "latent", "kernel",
                 "spectral_density"):  # fmt: skip
        np.testing.assert_array_equal(getattr(again, name)(Z), getattr(model, name)(Z))
    for name in ("components_", "notes_", "feature_labels_", "n_frequencies_", "n_training_rows_"):
        assert getattr(again, name) == getattr(model, name)
    np.testing.assert_array_equal(again.class_order_, model.class_order_)
    again.save(tmp_path / "twice.mercer")
    assert (tmp_path / "twice.mercer").stat().st_size == (tmp_path / "m.mercer").stat().st_size


def test_no_training_row_is_in_the_file(model, tmp_path: Path) -> None:
    """Nor a standardised one: no array has as many rows as there were."""
    model.save(tmp_path / "m.mercer")
    _, arrays = read_container(tmp_path / "m.mercer")
    for name, values in arrays.items():
        assert len(X) not in values.shape, name


CHANGES = {
    "order cut": set_array("class_order", lambda v: v[:-1]),
    "order twice": set_array("class_order", lambda v: 0 * v),
    "order floats": set_array("class_order", lambda v: v + 0.0),
    "order gone": lambda manifest, arrays: arrays.pop("class_order"),
    "a class less": set_field("fields/classes/values", ["ash", "birch"]),
    "no classes": lambda manifest, arrays: manifest["fields"].pop("classes"),
    "scales 0": set_array("start_scales", lambda v: v * 0.0),
    "frequencies cut": set_array("draws/frequencies", lambda v: v[:, :, :-1]),
    "frequencies nan": set_array("draws/frequencies", lambda v: v * np.nan),
    "mean cut": set_array("draws/coef_mean", lambda v: v[..., :-1]),
    "mean of one function": set_array("draws/coef_mean", lambda v: v[:, :, :1]),
    "mean huge": set_array("draws/coef_mean", lambda v: v * 1e200),
    "no deviations": set_array("draws/coef_deviation", lambda v: v[:, :, :, :0]),
    "deviation flat": set_array("draws/coef_deviation", lambda v: v[:, :, :, 0]),
    "deviation of one function": set_array("draws/coef_deviation", lambda v: v[:, :, :1]),
    "assignment": set_array("draws/assignment", lambda v: v + 6),
    "concentration negative": set_array("draws/concentration", lambda v: -v),
    "likelihood nan": set_array("draws/log_likelihood", lambda v: v * np.nan),
    "likelihood gone": lambda manifest, arrays: arrays.pop("draws/log_likelihood"),
    "likelihood flat": set_array("draws/log_likelihood", lambda v: v[..., np.newaxis]),
    "no rows": set_field("fields/n_training_rows", 0),
    "params linear part": set_field("params/linear_part", False),
    "params base": set_field("params/base_measure", "round"),
}
OF_FUNCTIONS = {
    "frequencies cut": set_array("functions/frequencies", lambda v: v[:, :-1]),
    "mean of one function": set_array("functions/mean", lambda v: v[:, :1]),
    "mean of fewer draws": set_array("functions/mean", lambda v: v[:-1]),
    "deviations nan": set_array("functions/deviations", lambda v: v * np.nan),
    "no deviations": set_array("functions/deviations", lambda v: v[:, :, :0]),
    "mean gone": lambda manifest, arrays: arrays.pop("functions/mean"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("model")
    tiny(n_draws=5).fit(X, Y).save(folder / "m.mercer")
    tiny(n_draws=5, kernel_rows=25, full_draws=2).fit(X, Y).save(folder / "c.mercer")
    return folder / "m.mercer", folder / "c.mercer"


def test_f8_inconsistent(files: tuple[Path, Path], tmp_path: Path) -> None:
    assert taken(files[0], tmp_path, CHANGES) == []


def test_f8_coefficients_of_all_rows(files: tuple[Path, Path], tmp_path: Path) -> None:
    assert taken(files[1], tmp_path, OF_FUNCTIONS) == []
