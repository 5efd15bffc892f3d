"""What every finite feature map promises; a new one joins by one line in ``MAPS``."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.features import maps
from mercer.features.maps import FeatureMap, FourierMap, NystroemMap, draw_fourier, fit_nystroem
from mercer.kernels.names import kernel_named
from mercer.posterior.container import read_container, write_container

_D = 3
_X = np.random.default_rng(17).standard_normal((40, _D))
_THETA = np.array([0.4, -0.5, 0.3, -2.0])
_RBF, _MATERN, _LINEAR = (kernel_named(name) for name in ("rbf", "matern12", "linear"))


def rng() -> np.random.Generator:
    return np.random.default_rng(18)


# Name: the map, and how it comes back from the arrays of a file.
MAPS: dict[str, tuple[FeatureMap, Callable[[dict], FeatureMap]]] = {
    "nystroem": (
        fit_nystroem(rng(), _X, _RBF, _THETA, 11),
        lambda arrays: NystroemMap.from_arrays(_RBF, arrays),
    ),
    "nystroem of low rank": (
        fit_nystroem(rng(), _X, _LINEAR, _THETA[:1], 11, "kmeans++"),
        lambda arrays: NystroemMap.from_arrays(_LINEAR, arrays),
    ),
    "fourier": (draw_fourier(rng(), _RBF, _THETA, _D, 9), FourierMap.from_arrays),
    "fourier of matern": (draw_fourier(rng(), _MATERN, _THETA, _D, 9), FourierMap.from_arrays),
}

each_map = pytest.mark.parametrize("phi", [phi for phi, _ in MAPS.values()], ids=list(MAPS))
each_name = pytest.mark.parametrize("name", MAPS)


@each_map
def test_shape_and_type(phi: FeatureMap) -> None:
    assert phi.n_inputs == _D
    Phi = phi.features(_X)
    assert Phi.shape == (40, phi.n_features)
    assert Phi.dtype == np.float64
    assert Phi.flags.c_contiguous
    assert phi.features(_X[:0]).shape == (0, phi.n_features)


@each_map
def test_single_precision_is_that_of_the_result(phi: FeatureMap) -> None:
    double, single = phi.features(_X), phi.features(_X, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, rtol=1e-6, atol=1e-6 * np.abs(double).max())


@each_map
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_out_is_overwritten_and_returned(phi: FeatureMap, dtype: type) -> None:
    out = np.full((40, phi.n_features), np.nan, dtype)
    assert phi.features(_X, out=out) is out
    np.testing.assert_array_equal(out, phi.features(_X, dtype=dtype))


@each_map
def test_blocks_of_rows_change_nothing(phi: FeatureMap, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = phi.features(_X)
    monkeypatch.setattr(maps, "_BLOCK_ENTRIES", 7 * phi.n_features)
    np.testing.assert_allclose(phi.features(_X), whole, rtol=1e-11, atol=1e-12)


@each_map
def test_rows_are_left_alone(phi: FeatureMap) -> None:
    X = _X.copy()
    X.flags.writeable = False
    phi.features(X)
    phi.features(X, dtype=np.float32)


@each_map
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_huge_inputs_have_finite_features(phi: FeatureMap, dtype: type) -> None:
    """Standardised inputs are kept within 1e100; single precision has no room for a linear map."""
    X = np.copysign(1e30 if dtype == np.float32 else 1e100, _X[:5])
    assert np.isfinite(phi.features(X, dtype=dtype)).all()


@each_map
def test_what_does_not_fit_is_refused(phi: FeatureMap) -> None:
    with pytest.raises(UsageError, match="columns"):
        phi.features(_X[:, :2])
    with pytest.raises(UsageError, match="columns"):
        phi.features(_X[0])
    with pytest.raises(UsageError, match="float32 or float64"):
        phi.features(_X, dtype=np.float16)
    with pytest.raises(UsageError, match="of shape"):
        phi.features(_X, out=np.empty((40, phi.n_features + 1)))


@each_map
def test_frozen_and_pickles(phi: FeatureMap) -> None:
    assert dataclasses.is_dataclass(phi)
    twin = pickle.loads(pickle.dumps(phi))
    np.testing.assert_array_equal(twin.features(_X), phi.features(_X))
    with pytest.raises(dataclasses.FrozenInstanceError):
        phi.anything = 1


@each_name
def test_round_trip_through_a_file(name: str, tmp_path) -> None:
    phi, from_arrays = MAPS[name]
    write_container(tmp_path / "map", {}, phi.to_arrays())
    twin = from_arrays(read_container(tmp_path / "map")[1])
    assert type(twin) is type(phi)
    np.testing.assert_array_equal(twin.features(_X), phi.features(_X))


@each_name
def test_bad_arrays_are_refused(name: str) -> None:
    phi, from_arrays = MAPS[name]
    good = phi.to_arrays()
    for key, values in good.items():
        bad = [
            values.astype(np.float32),
            values[np.newaxis],
            np.full_like(values, np.nan),
        ]
        if values.ndim > 0:
            bad += [values[:0], np.concatenate([values, values])]
        for wrong in bad:
            if key == "frequencies" and wrong.shape[0] == 2 * _D:
                continue  # frequencies of six inputs: nothing else says how many there are
            with pytest.raises(ValueError):
                from_arrays({**good, key: wrong})
        with pytest.raises(KeyError):
            from_arrays({k: v for k, v in good.items() if k != key})
