"""What every regressor promises of its data: the same in any form give the same fit.

D6, D8 to D11, D14; what is saved comes back. A new one joins in ``support.regressors``.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mercer
from mercer.basis.learner import BatchSampler
from mercer.errors import MercerWarning
from mercer.sampling.hmc import HMC
from mercer.spectral.sampler import SpectralSampler
from support.regressors import KERNEL_LEARNERS, REGRESSORS
from support.regressors import NEW_X as _Z
from support.regressors import TRAIN_X as _X
from support.regressors import TRAIN_Y as _Y
from support.statistics import few_first, pairs_first


@pytest.fixture(scope="module", params=REGRESSORS)
def make(request: pytest.FixtureRequest):
    """Makes a regressor with tiny settings."""
    return REGRESSORS[request.param]


# What is read from the data before any setting counts needs one setting of each.
OF_ONE_SETTING = {name: name for name in REGRESSORS if "paper" not in name}
one_setting = pytest.mark.parametrize("make", OF_ONE_SETTING, indirect=True)


@pytest.fixture(scope="module", params=KERNEL_LEARNERS)
def make_learner(request: pytest.FixtureRequest):
    """Makes one of those that learn a kernel."""
    return KERNEL_LEARNERS[request.param]


@pytest.fixture(scope="module")
def fitted(make):
    return make().fit(_X, _Y)


@pytest.fixture(scope="module")
def expected(fitted) -> tuple[np.ndarray, np.ndarray]:
    return fitted.predict(_Z, return_std=True)


@one_setting
def test_rows_to_ask_for(fitted) -> None:
    """Where the function is least known, then what that leaves open; copies come last."""
    pool = np.vstack([_Z, _Z[:3]])
    chosen = fitted.query(pool, len(pool))
    assert sorted(chosen) == list(range(len(pool)))
    (drawn,) = fitted._function_draws([fitted._standardized(_Z)], 1000, np.random.default_rng(0))
    spread = drawn[:, 0].std(axis=0)
    assert spread[chosen[0] % len(_Z)] > 0.8 * spread.max()  # a thousand draws
    assert sorted(pool[chosen[-3:]].tolist()) == sorted(_Z[:3].tolist())
    assert not hasattr(fitted, "information")


def assert_close(seen, expected, tolerance: float = 1e-6) -> None:
    for one, other in zip(seen, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def assert_same(seen, expected) -> None:
    for one, other in zip(seen, expected, strict=True):
        np.testing.assert_array_equal(one, other)


FORMS = {
    "fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "int": lambda X: X.astype(np.int64),
    "int8": lambda X: X.astype(np.int8),
    "list": lambda X: X.tolist(),
    "object": lambda X: X.astype(object),
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "backwards in memory": lambda X: X[::-1].copy()[::-1],
    "big endian": lambda X: X.astype(">f8"),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("make", "form"), pairs_first(OF_ONE_SETTING, FORMS), indirect=["make"])
def test_d14_same_result_in_any_form(make, form, expected) -> None:
    assert_same(make().fit(form(_X), _Y).predict(form(_Z), return_std=True), expected)


@one_setting
def test_d14_read_only_memmap(make, tmp_path: Path, expected) -> None:
    np.save(tmp_path / "X.npy", _X)
    np.save(tmp_path / "y.npy", _Y)
    X, y = (np.load(tmp_path / name, mmap_mode="r") for name in ("X.npy", "y.npy"))
    assert_same(make().fit(X, y).predict(_Z, return_std=True), expected)


@pytest.mark.one_in(3)
@one_setting
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_d14_frames(make, frame, expected) -> None:
    names = ("age", "mass", "dose")
    X, Z = (frame({n: V[:, j] for j, n in enumerate(names)}) for V in (_X, _Z))
    model = make().fit(X, _Y)
    assert_same(model.predict(Z, return_std=True), expected)
    assert model.feature_labels_ == names
    assert list(model.feature_names_in_) == list(names)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(Z[["mass", "age", "dose"]])  # D6


@pytest.mark.one_in(5)
@one_setting
@pytest.mark.parametrize("form", [list, np.asarray, pd.Series, lambda y: y.astype(np.longdouble)])
def test_d14_targets_in_any_form(make, form, expected) -> None:
    assert_same(make().fit(_X, form(_Y)).predict(_Z, return_std=True), expected)


@one_setting
def test_targets_of_whole_numbers(make) -> None:
    y = np.round(4.0 * _Y)
    seen = [make().fit(_X, y.astype(kind)).predict(_Z) for kind in (float, np.int8, bool)]
    np.testing.assert_array_equal(seen[1], seen[0])
    assert seen[2].dtype == np.float64


def test_copies_agree(fitted, expected) -> None:
    again = clone(fitted)
    assert not hasattr(again, "posterior_")
    assert again.get_params() == fitted.get_params()
    assert_same(again.fit(_X, _Y).predict(_Z, return_std=True), expected)
    assert_same(pickle.loads(pickle.dumps(fitted)).predict(_Z, return_std=True), expected)


@one_setting
def test_data_are_left_alone(make) -> None:
    X, y = _X.copy(), _Y.copy()
    make().fit(X, y).predict(X)
    np.testing.assert_array_equal(X, _X)
    np.testing.assert_array_equal(y, _Y)


def test_units(make, expected) -> None:
    """Other units and origins of inputs and target: the same predictions in these units."""
    model = make().fit(1000.0 * _X - 4e4, 7.0 * _Y + 30.0)
    mean, std = model.predict(1000.0 * _Z - 4e4, return_std=True)
    assert_close(((mean - 30.0) / 7.0, std / 7.0), expected)


def test_units_of_intervals_and_draws(make, fitted) -> None:
    """By powers of two, so that the fits are the same to the bit."""
    model = make().fit(1024.0 * _X, 8.0 * _Y)
    intervals = fitted.predict_interval(_Z)
    assert_close(model.predict_interval(1024.0 * _Z), [8.0 * end for end in intervals])
    assert_close([model.sample_y(1024.0 * _Z, 5, 1)], [8.0 * fitted.sample_y(_Z, 5, 1)])
    assert model.noise_std_ == pytest.approx(8.0 * fitted.noise_std_)


def test_units_of_the_kernel(make_learner) -> None:
    fitted, model = make_learner().fit(_X, _Y), make_learner().fit(1024.0 * _X, 8.0 * _Y)
    assert_close(model.kernel(1024.0 * _Z), fitted.kernel(_Z))
    densities = fitted.spectral_density(_Z / 20.0)
    scaled = [1024.0**3 * band for band in model.spectral_density(_Z / 1024.0 / 20.0)]
    assert_close([band / 1024.0**6 for band in scaled], densities)


SCALES = (1e-300, 1e-200, 1e-100, 1e-30, 1e30, 1e100, 1e200, 1e300)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("scale", few_first(SCALES, 1e-300, 1e-30, 1e100))
@pytest.mark.parametrize("columns", [slice(None), slice(0, 1)], ids=["all", "one"])
def test_d8_scale(make, scale: float, columns: slice, expected) -> None:
    """The result of the rescaled problem, or an error that names the column."""
    X, Z = _X.copy(), _Z.copy()
    X[:, columns] *= scale
    Z[:, columns] *= scale
    model = make()
    try:
        model.fit(X, _Y)
    except ValueError as error:
        assert "'x0'" in str(error)  # noqa: PT017
        return
    assert_close(model.predict(Z, return_std=True), expected)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("scale", few_first(SCALES, 1e-300, 1e-30, 1e100))
def test_d8_scale_of_the_target(make, scale: float, expected) -> None:
    model = make()
    try:
        model.fit(_X, _Y * scale)
    except ValueError as error:
        assert "target" in str(error)  # noqa: PT017
        return
    mean, std = model.predict(_Z, return_std=True)
    assert_close((mean / scale, std / scale), expected)


def test_d8_offset(make, expected) -> None:
    mean, std = make().fit(_X + 1e8, _Y + 1e6).predict(_Z + 1e8, return_std=True)
    assert_close((mean - 1e6, std), expected)


def test_d9_constant_column(make) -> None:
    with pytest.warns(MercerWarning, match="'x1'"):
        model = make().fit(np.insert(_X, 1, 5.0, axis=1), _Y)
    seen = model.predict(np.insert(_Z, 1, 5.0, axis=1), return_std=True)
    assert_same(model.predict(np.insert(_Z, 1, -70.0, axis=1), return_std=True), seen)
    assert np.isfinite(seen).all()


@one_setting
def test_d9_all_columns_constant(make) -> None:
    with pytest.warns(MercerWarning, match="all columns are constant"):
        model = make().fit(np.ones((40, 2)), _Y)
    mean = model.predict(np.random.default_rng(0).standard_normal((5, 2)))
    assert np.ptp(mean) < 1e-12
    assert mean[0] == pytest.approx(_Y.mean(), abs=0.3 * _Y.std())


@one_setting
def test_constant_target(make) -> None:
    with pytest.warns(MercerWarning, match="the target is constant"):
        model = make().fit(_X, np.full(40, 2.5))
    np.testing.assert_allclose(model.predict(_Z), 2.5)
    lower, upper = model.predict_interval(_Z)
    assert (lower <= 2.5).all()
    assert (upper >= 2.5).all()


@one_setting
@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
def test_all_is_constant(make) -> None:
    """One row and one target are left: nothing to compare kernels by."""
    model = make().fit(np.ones_like(_X), np.full(40, 2.5))
    np.testing.assert_allclose(model.predict(_Z), 2.5)
    lower, upper = model.predict_interval(_Z)
    assert ((lower <= 2.5) & (upper >= 2.5)).all()


def test_duplicated_columns(make) -> None:
    seen = make().fit(np.hstack([_X, _X]), _Y).predict(np.hstack([_X, _X]), return_std=True)
    assert np.isfinite(seen).all()
    assert np.mean((seen[0] - _Y) ** 2) < _Y.var()


@pytest.mark.one_in(2)
def test_d10_duplicate_rows_with_other_targets(make) -> None:
    """The mean of both, and a noise of the size of their difference."""
    X, y = np.vstack([_X, _X]), np.concatenate([_Y + 1.0, _Y - 1.0])
    model = make().fit(X, y)
    assert model.noise_std_ > 0.5
    assert np.isfinite(model.predict(_Z)).all()


@pytest.mark.one_in(2)
def test_d11_many_equal_rows(make) -> None:
    X = np.vstack([np.zeros((150, 3)), _X])
    mean, std = make().fit(X, np.concatenate([np.zeros(150), _Y])).predict(_Z, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0.0).all()


@pytest.mark.one_in(5)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_rows(make, n: int) -> None:
    mean, std = make().fit(_X[:n], _Y[:n]).predict(_Z, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0.0).all()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_fewer_rows_than_features(make_learner, n: int) -> None:
    model = make_learner(n_frequencies=50).fit(_X[:n], _Y[:n])
    mean, std = model.predict(_Z, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0.0).all()


@pytest.mark.one_in(2)
def test_an_outlier_among_the_inputs(make) -> None:
    """One value of 1e12: the other rows are still told from each other, where "auto" may."""
    X = np.random.default_rng(3).standard_normal((100, 2))
    y = 3.0 * X[:, 0]
    X[7, 0] = 1e12
    model = make(standardize="auto").fit(X, y)
    rest = np.delete(np.arange(100), 7)
    error = model.predict(X)[rest] - y[rest]
    assert np.mean(error**2) < 0.3 * y[rest].var()


def test_an_outlier_among_the_targets(make) -> None:
    y = _Y.copy()
    y[3] = 1e12
    assert np.isfinite(make().fit(_X, y).predict(_Z, return_std=True)).all()


def test_p5_far_away_is_finite(fitted) -> None:
    for far in (_Z * 1e12, _Z * 1e300):
        assert np.isfinite(fitted.predict(far, return_std=True)).all()
        assert np.isfinite(fitted.predict_interval(far)).all()


@one_setting
def test_not_fitted(make) -> None:
    for call in ("predict", "predict_interval", "predictive", "sample_y", "score"):
        arguments = (_Z, _Y[:9]) if call == "score" else (_Z,)
        with pytest.raises(NotFittedError):
            getattr(make(), call)(*arguments)
    with pytest.raises(NotFittedError):
        make().save("never.mercer")


def test_no_kernel_before_the_fit(make_learner) -> None:
    for call in ("kernel", "spectral_density"):
        with pytest.raises(NotFittedError):
            getattr(make_learner(), call)(_Z)
    with pytest.raises(NotFittedError):
        make_learner().marginal_spectral_density(_Z[:, 0], 0)


def interrupt(self: object, *arguments: object) -> None:
    raise KeyboardInterrupt


def test_a_refit_that_fails_leaves_the_first_fit(make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole, as scikit-learn's estimators do: whether it is refused or stopped half way."""
    model = make().fit(_X, _Y)
    first = model.predict(_X)
    for sampler in (SpectralSampler, HMC, BatchSampler):
        monkeypatch.setattr(sampler, "init", interrupt)
    monkeypatch.setattr("mercer.gp.fitting.importance_sample", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(5.0 - 3.0 * _X, 1e6 * _Y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((len(_Y), 5), np.nan), _Y)
    np.testing.assert_array_equal(model.predict(_X), first)


@pytest.mark.one_in(2)
def test_saved_and_loaded(make, fitted, tmp_path: Path, expected) -> None:
    """The same bits, and it can be fitted again."""
    fitted.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert type(again) is type(fitted)
    assert_same(again.predict(_Z, return_std=True), expected)
    assert_same(again.predict_interval(_Z, 0.8), fitted.predict_interval(_Z, 0.8))
    assert_same(again.set_params(progress=False).fit(_X, _Y).predict(_Z, return_std=True), expected)
