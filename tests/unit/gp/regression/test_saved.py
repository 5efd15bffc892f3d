"""F8: a file with a right sum and wrong contents fails when it is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer.errors import ModelFileError
from mercer.posterior.container import read_container, write_container
from support.mangled import mutate
from support.process_fits import tiny
from support.spectral_fits import waves


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.mercer"
    tiny(n_draws=5, n_warmup=2).fit(*waves(12)).save(path)
    return path


def set_array(name: str, change: Callable[[np.ndarray], Any]) -> Callable[[dict, dict], None]:
    return lambda manifest, arrays: arrays.__setitem__(name, np.asarray(change(arrays[name])))


def set_field(name: str, value: Any) -> Callable[[dict, dict], None]:
    return lambda manifest, arrays: manifest["fields"].__setitem__(name, value)


def set_argument(name: str, value: Any) -> Callable[[dict, dict], None]:
    return lambda manifest, arrays: manifest["params"].__setitem__(name, value)


CHANGES = {
    "rows cut": set_array("X", lambda X: X[:-1]),
    "targets nan": set_array("y", lambda y: y * np.nan),
    "rows huge": set_array("X", lambda X: X * 1e200),
    "targets huge": set_array("y", lambda y: y * 1e9),
    "targets cut": set_array("y", lambda y: y[:-1]),
    "noise huge": set_array("draws/log_noise_variance", lambda t: t + 200.0),
    "weights cut": set_array("draws/log_weight", lambda w: w[..., :-1]),
    "evidence gone": lambda manifest, arrays: arrays.pop("draws/log_evidence"),
    "coef nan": set_array("draws/dual_coef", lambda a: a * np.nan),
    "coef huge": set_array("draws/dual_coef", lambda a: a * 1e300),
    "scale 0": set_field("target_scale", 0.0),
    "centre nan": set_field("target_centre", "nan"),
    "centre text": set_field("target_centre", "a"),
    "kernel": set_argument("kernel", "linear"),
    "noise": set_argument("noise_std", -1.0),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_f8_inconsistent(model_file: Path, tmp_path: Path, change: Any) -> None:
    manifest, arrays = read_container(model_file)
    change(manifest, arrays)
    write_container(tmp_path / "m.mercer", manifest, arrays)
    with pytest.raises(ModelFileError):
        mercer.load(tmp_path / "m.mercer")


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


@pytest.mark.slow
def test_a_thousand_mutated_files(model_file: Path, tmp_path: Path) -> None:
    """P4: they are refused, or give the same predictions."""
    rng, data, path = np.random.default_rng(13), model_file.read_bytes(), tmp_path / "m.mercer"
    X, n_refused = waves(12)[0], 0
    for _ in range(1000):
        path.write_bytes(mutate(data, rng))
        try:
            model = mercer.load(path)
        except ModelFileError:
            n_refused += 1
            continue
        mean, std = model.predict(X, return_std=True)
        assert np.isfinite(mean).all()
        assert (std > 0.0).all()
    assert n_refused > 500
