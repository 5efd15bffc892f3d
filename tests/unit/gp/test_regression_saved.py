"""F8: a file with a right sum and wrong contents fails when it is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mercer
from support.mangled import set_array, set_field, taken
from support.process_fits import tiny
from support.spectral_fits import waves


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.mercer"
    tiny(n_draws=5, n_warmup=2).fit(*waves(12)).save(path)
    return path


CHANGES = {
    "rows cut": set_array("X", lambda X: X[:-1]),
    "targets nan": set_array("y", lambda y: y * np.nan),
    "rows huge": set_array("X", lambda X: X * 1e200),
    "targets huge": set_array("y", lambda y: y * 1e200),
    "targets cut": set_array("y", lambda y: y[:-1]),
    "noise huge": set_array("draws/log_noise_variance", lambda t: t + 200.0),
    "weights cut": set_array("draws/log_weight", lambda w: w[..., :-1]),
    "evidence gone": lambda manifest, arrays: arrays.pop("draws/log_evidence"),
    "coef nan": set_array("draws/dual_coef", lambda a: a * np.nan),
    "coef huge": set_array("draws/dual_coef", lambda a: a * 1e300),
    "scale 0": set_field("fields/target_scale", 0.0),
    "centre nan": set_field("fields/target_centre", "nan"),
    "centre text": set_field("fields/target_centre", "a"),
    "kernel": set_field("params/kernel", "linear"),
    "noise": set_field("params/noise_std", -1.0),
}


def test_f8_inconsistent(model_file: Path, tmp_path: Path) -> None:
    assert taken(model_file, tmp_path, CHANGES) == []


def test_attributes_come_back(tmp_path: Path) -> None:
    model = tiny(kernel="matern52").fit(*waves(12))
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    for name in ("noise_std_", "log_marginal_likelihood_", "prior_weight_interval_"):
        assert getattr(again, name) == getattr(model, name)
    np.testing.assert_array_equal(again.relevance_, model.relevance_)
    Z = waves(5, seed=4)[0]
    np.testing.assert_array_equal(again.latent(Z), model.latent(Z))
    np.testing.assert_array_equal(again.sample_y(Z, 3, 1), model.sample_y(Z, 3, 1))
