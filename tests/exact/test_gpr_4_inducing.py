"""GPR-4: inducing points. Of all rows: the exact process; of some: FITC, by dense matrices."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import mercer
from mercer.errors import MercerWarning, ModelFileError
from mercer.gp import gaussian as inducing
from mercer.gp.averaging import choose_inducing
from mercer.gp.regressor import GPRegressor
from mercer.posterior.container import read_container, write_container
from support.mangled import set_array
from support.process_fits import tiny
from support.spectral_fits import waves
from support.statistics import z_limit

N, LEARNING = 60, 25
X, Y = waves(N)
Z = waves(12, seed=4)[0]


def fitted(m: int, **own: Any) -> GPRegressor:
    return tiny(inference="map", max_rows=LEARNING, n_inducing=m, **own).fit(X, 5.0 * Y + 3.0)


def standardised(model: GPRegressor, y: np.ndarray) -> np.ndarray:
    return (y - model.target_centre_) / model.target_scale_


def exact_law(model: GPRegressor) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of new targets, standardised, from all rows, by scikit-learn."""
    functions = model._functions[0]
    kernel = ConstantKernel(np.exp(functions.theta[0, 0])) * RBF(
        np.exp(-0.5 * functions.theta[0, 1:])
    )
    noise = functions.noise_variance[0]
    process = GaussianProcessRegressor(kernel + ConstantKernel(1.0), alpha=noise, optimizer=None)
    process.fit(model.standardizer_.transform(X), standardised(model, 5.0 * Y + 3.0))
    mean, cov = process.predict(model.standardizer_.transform(Z), return_cov=True)
    return mean, cov + noise * np.eye(len(Z))


def dense_law(model: GPRegressor) -> tuple[np.ndarray, np.ndarray]:
    """The same given the inducing points, by matrices of all rows (Quinonero-Candela, eq. 25)."""
    functions = model._functions[0]
    kernel, theta = functions.kernel, functions.theta[0]
    rows, new = (model.standardizer_.transform(each) for each in (X, Z))
    together = np.vstack([functions.X, rows, new])
    K = kernel.gram(theta, together) + functions.intercept_variance
    m = len(functions.X)
    K[:m, :m] += 1e-8 * K[:m, :m].diagonal().mean() * np.eye(m)
    Q = K[m:, :m] @ np.linalg.solve(K[:m, :m], K[:m, m:])
    left, scale = np.diag(K[m:, m:] - Q)[:N], functions.scales[0]
    C = Q[:N, :N] + np.diag(scale * left + functions.noise_variance[0])
    gain = np.linalg.solve(C, Q[:N, N:]).T
    cov = K[m + N :, m + N :] - gain @ Q[:N, N:] + functions.noise_variance[0] * np.eye(len(Z))
    return gain @ standardised(model, 5.0 * Y + 3.0), cov


def gap(model: GPRegressor, law: tuple[np.ndarray, np.ndarray]) -> float:
    """Largest difference of mean and standard deviation, in those of the target."""
    mean, std = model.predict(Z, return_std=True)
    means = standardised(model, mean) - law[0]
    return float(np.abs([means, std / model.target_scale_ - np.sqrt(law[1].diagonal())]).max())


@pytest.mark.parametrize("m", [N, N + 20])
def test_gpr_4_all_rows_for_inducing_points(m: int) -> None:
    model = fitted(m)
    assert len(model._functions[0].X) == N
    assert gap(model, exact_law(model)) < 5e-5  # a nugget of 1e-8, noise of 4e-2
    assert f"by {N} inducing points" in model.notes_[0]


@pytest.mark.parametrize("m", [10, LEARNING, 40])
def test_gpr_4_some_rows_for_inducing_points(m: int) -> None:
    model = fitted(m)
    assert gap(model, dense_law(model)) < 1e-7


def test_gpr_4_several_draws() -> None:
    """The law is the mixture of the draws' laws, few of them, each given all rows."""
    model = tiny(max_rows=LEARNING, n_inducing=N, n_draws=100).fit(X, Y)
    functions = model._functions[0]
    assert len(functions.theta) == inducing.MOST_PREDICTING < model.posterior_.n_total
    alone = fitted(N)._functions[0]
    for i, (mean, variance) in enumerate(zip(*(v.T for v in functions.moments(Z)), strict=True)):
        draw = inducing.induced_draws(
            _draw(functions, i), alone.X, alone.X, functions_targets(model, alone.X)
        )
        np.testing.assert_allclose(draw.moments(Z)[0][:, 0], mean, atol=1e-6)
        np.testing.assert_allclose(draw.moments(Z)[1][:, 0], variance, atol=1e-6)


def _draw(functions: Any, i: int) -> Any:
    import dataclasses

    return dataclasses.replace(
        functions, theta=functions.theta[i : i + 1], weights=None,
        noise_variance=functions.noise_variance[i : i + 1] / functions.scales[i], factors=None,
    )  # fmt: skip


def functions_targets(model: GPRegressor, rows: np.ndarray) -> np.ndarray:
    """Targets of standardised rows, which are in the order of the table."""
    np.testing.assert_array_equal(rows, model.standardizer_.transform(X))
    return standardised(model, Y)


def test_gpr_4_sees_a_residual_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the diagonal R rows far from all inducing points would count as if they were sure."""
    monkeypatch.setattr(inducing, "_left", lambda whole, V: np.zeros_like(whole))
    model = fitted(10)
    assert gap(model, dense_law(model)) > 1e-3


def test_gpr_4_more_inducing_points_are_nearer_the_exact_law() -> None:
    gaps = [gap(model, exact_law(model)) for model in map(fitted, (10, 20, 40, 60))]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 100.0 * gaps[-1]


def worst_moment(model: GPRegressor, count: int) -> float:
    """Largest |z| of the means and second moments of joint draws at new rows."""
    mean, cov = dense_law(model)
    drawn = standardised(model, model.sample_y(Z, count, random_state=1))
    white = np.linalg.solve(np.linalg.cholesky(cov), (drawn - mean).T)
    second = (white @ white.T - count * np.eye(len(Z))) / np.sqrt(count)
    second[np.diag_indices(len(Z))] /= np.sqrt(2.0)
    return float(max(np.abs(white.mean(axis=1)).max() * np.sqrt(count), np.abs(second).max()))


def test_gpr_4_draws_of_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the hyperparameters, white to the last pair of rows; 90 statistics, 4000 draws."""
    model = fitted(20)
    assert worst_moment(model, 4000) < z_limit(4000, 90)
    monkeypatch.setattr(
        inducing.np, "tril", lambda L: np.diag(np.linalg.norm(np.triu(L.T), axis=0))
    )
    assert worst_moment(model, 4000) > z_limit(4000, 90)


def test_gpr_4_the_scale_of_the_noise() -> None:
    """Its evidence, by dense matrices, is larger than that of scales 3 % off; 1 if it is known."""
    model = fitted(20)
    functions, y = model._functions[0], standardised(model, 5.0 * Y + 3.0)
    K = functions.kernel.gram(
        functions.theta[0], np.vstack([functions.X, model.standardizer_.transform(X)])
    )
    K += functions.intercept_variance
    m = len(functions.X)
    Q = K[m:, :m] @ np.linalg.solve(
        K[:m, :m] + 1e-8 * K[:m, :m].diagonal().mean() * np.eye(m), K[:m, m:]
    )
    spread = np.diag(K[m:, m:] - Q) + functions.noise_variance[0] / functions.scales[0]
    best, *others = (
        multivariate_normal(np.zeros(N), Q + np.diag(c * functions.scales[0] * spread)).logpdf(y)
        for c in (1.0, 1.03, 1.0 / 1.03)
    )
    assert best > max(others)
    assert functions.scales[0] != 1.0
    known = fitted(20, noise_std=1.0)
    np.testing.assert_array_equal(known._functions[0].scales, 1.0)
    assert known.noise_std_ == pytest.approx(1.0, rel=1e-6)


def test_the_fitted_rows_come_first() -> None:
    rows, rng = np.array([3, 5, 8]), np.random.default_rng(0)
    assert set(rows) <= set(choose_inducing(10, rows, 6, rng))
    assert set(choose_inducing(10, rows, 2, rng)) <= set(rows)
    np.testing.assert_array_equal(choose_inducing(10, rows, 10, rng), np.arange(10))


def test_the_same_numbers_for_any_jobs_and_from_a_file(tmp_path: Path) -> None:
    models = [
        tiny(max_rows=LEARNING, n_inducing=30, n_chains=2, n_jobs=jobs, kernel="auto").fit(X, Y)
        for jobs in (1, 2)
    ]
    models[0].save(tmp_path / "m.mercer")
    models.append(mercer.load(tmp_path / "m.mercer"))
    first = models[0].predict(Z, return_std=True)
    for other in models[1:]:
        np.testing.assert_array_equal(other.predict(Z, return_std=True), first)
        np.testing.assert_array_equal(other.predict(Z, n_draws="all"), first[0])
    np.testing.assert_array_equal(models[2].sample_y(Z, 3, 1), models[0].sample_y(Z, 3, 1))


CHANGES = {
    "points nan": set_array("inducing/rows", lambda Z: Z * np.nan),
    "points cut": set_array("inducing/rows", lambda Z: Z[:-1]),
    "points narrow": set_array("inducing/rows", lambda Z: Z[:, :1]),
    "coef cut": set_array("inducing/0/coef", lambda a: a[:, :-1]),
    "factor zero": set_array("inducing/0/factor", lambda B: B * 0.0),
    "scale zero": set_array("inducing/0/scale", lambda k: 0.0 * k),
    "factor gone": lambda manifest, arrays: arrays.pop("inducing/0/factor"),
}


def test_f8_inconsistent_inducing_points(tmp_path: Path) -> None:
    fitted(20).save(tmp_path / "whole.mercer")
    for change in CHANGES.values():
        manifest, arrays = read_container(tmp_path / "whole.mercer")
        change(manifest, arrays)
        write_container(tmp_path / "m.mercer", manifest, arrays)
        with pytest.raises(ModelFileError, match=r"m\.mercer"):
            mercer.load(tmp_path / "m.mercer")


@pytest.mark.parametrize("kind", ["copies", "constant", "no noise", "constant target"])
def test_bad_rows(kind: str) -> None:
    """Rows that repeat, inputs that say nothing, targets without noise: finite answers."""
    rows, y = X.copy(), Y.copy()
    if kind == "copies":
        rows, y = np.repeat(X[:6], 10, axis=0), np.repeat(Y[:6], 10)
    elif kind == "constant":
        rows[:] = 1.0
    elif kind == "no noise":
        y = rows[:, 0].copy()
    else:
        y[:] = 2.0
    model = tiny(max_rows=LEARNING, n_inducing=50)
    with pytest.warns(MercerWarning, match="constant") if "constant" in kind else nullcontext():
        model.fit(rows, y)
    mean, std = model.predict(rows, return_std=True)
    assert np.isfinite(mean).all()
    assert (std >= 0.0).all()
    assert np.isfinite(std).all()
    if kind == "no noise":
        assert np.abs(mean - y).max() < 0.01


def test_none_takes_the_chosen_rows_only() -> None:
    model = tiny(inference="map", max_rows=LEARNING, n_inducing=None).fit(X, Y)
    assert f"fitted to {LEARNING} of {N} rows" in model.notes_[0]
    assert len(model._functions[0].X) == LEARNING


def test_gpr_4_a_row_of_weight_three_is_three_rows() -> None:
    """FITC of rows with weights, and of the rows repeated: coefficients, factors and the scale."""
    model = fitted(N)
    Xs, ys = model.standardizer_.transform(X), standardised(model, 5.0 * Y + 3.0)
    weights = np.arange(N) % 3 + 1
    of_rows = inducing.NoiseOfRows(weights.astype(float), np.full(N, 0.5))
    each = inducing.NoiseOfRows(np.ones(weights.sum()), np.full(weights.sum(), 0.5))
    draws, points = model._functions[0], Xs[::5]
    one = inducing.induced_draws(draws, points, Xs, ys, noise_of_rows=of_rows)
    other = inducing.induced_draws(
        draws, points, np.repeat(Xs, weights, axis=0), np.repeat(ys, weights), noise_of_rows=each
    )
    np.testing.assert_allclose(one.scales, other.scales, rtol=1e-8)
    np.testing.assert_allclose(one.factors, other.factors, rtol=1e-7)
    np.testing.assert_allclose(one.dual_coef, other.dual_coef, rtol=1e-6, atol=1e-8)
