"""Matrices of a sweep on a device: the decisions, laws and draws of NumPy."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer import BaNKRegressor
from mercer.errors import NumericalError, UsageError
from mercer.features.device import Device
from mercer.spectral import sampler
from mercer.spectral.class_model import CLASSES
from mercer.spectral.model import coefficients, ridge_density
from mercer.spectral.rows import GramSum, MemoryRows, of_blocks, weighted_products
from mercer.spectral.trajectory import likelihood_gradient
from support.devices import device_for_tests
from support.spectral_cases import make_model, problem
from support.spectral_class_cases import problem as class_problem

M, RIDGE = 31, 0.3
SHAPES = pytest.mark.parametrize(("linear", "q"), [(True, 1), (False, 1), (True, 3)])


@pytest.fixture(params=["strict", "torch"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Device:
    """An array library that holds to the standard alone, and PyTorch on the processor."""
    monkeypatch.setattr(sampler, "_FEW_ON_DEVICE", 3)
    monkeypatch.setattr(sampler, "_FEW", 3)
    return device_for_tests(request.param)


def rows_on(device: Device | None, linear: bool, q: int = 1) -> MemoryRows:
    X, y = problem(300, 3)
    if q > 1:
        y = np.column_stack([y, np.sin(X[:, :1] + np.arange(q - 1))])
    return MemoryRows(X, y, linear, device)


@SHAPES
def test_a_sweep_decides_as_in_numpy(device: Device, linear: bool, q: int) -> None:
    rng = np.random.default_rng(0)
    old, new = rng.standard_normal((2, M, 3))
    log_uniform, precisions = np.log(rng.random(M)), np.full(4 if linear else 0, 0.1)
    found = []
    for rows in (rows_on(None, linear, q), rows_on(device, linear, q)):
        gram, products = rows.gram(old), rows.products(new, old)
        assert products.device == rows.device
        joint = sampler.join(gram, products, RIDGE, precisions)
        decisions = sampler.decide(joint, log_uniform, 151.0, 0.5)
        chosen = sampler.choose(gram, products, decisions.is_accepted)
        found.append((decisions, chosen, products.here()))
    (here, gram, parts), (there, gram_there, parts_there) = found
    np.testing.assert_array_equal(there.is_accepted, here.is_accepted)
    assert 3 < here.is_accepted.sum() < M - 3
    np.testing.assert_allclose(there.log_ratio, here.log_ratio, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(gram_there, gram, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(parts_there.among, parts.among, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(parts_there.across, parts.across, rtol=1e-12, atol=1e-9)


@SHAPES
def test_the_laws_of_ridge_and_coefficients_are_those_of_numpy(
    device: Device, linear: bool, q: int
) -> None:
    gram = rows_on(None, linear, q).gram(np.random.default_rng(1).standard_normal((M, 3)))
    model = replace(make_model(300, 4 if linear else 0), n_outputs=q)
    here, there = (ridge_density(model, gram, 0.7, each) for each in (None, device))
    for log_ridge in (-3.0, 0.0, 2.5):
        assert there(log_ridge) == pytest.approx(here(log_ridge), rel=1e-10)
    given = model, gram, model.prior_precisions(2 * M, RIDGE, 0.7)
    before = gram.copy()
    here, there = coefficients(*given), coefficients(*given, device)
    np.testing.assert_array_equal(gram, before)
    np.testing.assert_allclose(there.mean, here.mean, rtol=1e-9, atol=1e-11)
    assert there.log_evidence == pytest.approx(here.log_evidence, rel=1e-12)
    z = np.random.default_rng(2).standard_normal((here.mean.shape[-1], 2))
    np.testing.assert_allclose(there.deviations(z), here.deviations(z), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_products_and_gradient_of_classes_are_those_of_numpy(
    device: Device, linear: bool, n_classes: int
) -> None:
    X, codes = class_problem(300, 3, n_classes)
    W, proposed = np.random.default_rng(3).standard_normal((2, 5, 3))
    coef = np.random.default_rng(4).standard_normal((n_classes - 1, 10 + 4 * linear))
    rows = [MemoryRows(X, codes, linear, each) for each in (None, device)]
    here, there = (likelihood_gradient(each, W, coef) for each in rows)
    assert there.value == pytest.approx(here.value, rel=1e-12)
    np.testing.assert_allclose(there.frequencies, here.frequencies, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(there.coef, here.coef, rtol=1e-9, atol=1e-9)
    for new, known_at in (
        (proposed, None),
        (proposed[:0], None),
        (proposed[:2], 2.0 * W if n_classes == 2 else None),
    ):
        here, there = (
            weighted_products(
                each, new, W, coef, of_blocks(np.random.default_rng(5), CLASSES.weigher),
                CLASSES.tasks, known_at,
            )
            for each in rows
        )  # fmt: skip
        for a, b in zip(here, there, strict=True):
            assert b.device == device
            np.testing.assert_allclose(b.gram, a.gram, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(b.here().among, a.among, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(b.here().across, a.across, rtol=1e-9, atol=1e-9)
            np.testing.assert_array_equal(b.gram, b.gram.T)


def test_a_matrix_without_a_factor_is_a_numerical_error(device: Device) -> None:
    with pytest.raises(NumericalError, match="order 3 is not positive definite"):
        device.factorise(-np.eye(3), np.zeros(3))


def test_inputs_that_stay_on_the_device_do_not_travel(device: Device) -> None:
    """Nor are they a part of what is pickled, or of rows with other inputs."""
    rows = rows_on(device, linear=True)
    whole = rows.gram(np.ones((2, 3)))
    copy = pickle.loads(pickle.dumps(rows))
    assert set(vars(copy)) == {"X", "y", "has_linear_part", "device", "is_missing"}
    np.testing.assert_array_equal(copy.gram(np.ones((2, 3))), whole)
    np.testing.assert_array_equal(rows.gram(np.ones((2, 3))), whole)
    other = replace(rows, X=2.0 * rows.X)
    assert np.abs(other.gram(np.ones((2, 3))) - whole).max() > 1.0


@pytest.mark.parametrize("most_kept", [0, 2**30])
def test_rows_left_out_are_left_out_there(
    device: Device, most_kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether inputs stay on the device or come anew in each pass."""
    monkeypatch.setattr("mercer.features.device._MOST_KEPT", most_kept)
    X, y = problem(20_000, 2)
    gone, W = np.array([0, 7, 16_383, 16_384, 19_999]), np.array([[1.0, 0.5], [0.2, -2.0]])
    here, there = (
        MemoryRows(X, y, True, each).sums([lambda each=each: _gram(W, each)], left_out=gone)
        for each in (None, device)
    )
    expected = MemoryRows(np.delete(X, gone, axis=0), np.delete(y, gone), True).gram(W)
    np.testing.assert_allclose(_gram(W, None).gram(here[0]), expected, atol=1e-8)
    np.testing.assert_allclose(_gram(W, device).gram(there[0]), expected, atol=1e-8)


def _gram(W: np.ndarray, device: Device | None):
    return GramSum(W, 4, device)


@pytest.mark.parametrize("kernel_rows", [None, 60])
def test_rows_on_a_disk_are_summed_there(
    device: Device, kernel_rows: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums come back from wherever the rows are; the spectrum of all rows, or of some."""
    monkeypatch.setattr("mercer.spectral.rows.check_device", lambda name: name and device)
    monkeypatch.setattr("mercer.spectral.fitting._ROWS_OF_SCALES", 50)
    np.save(tmp_path / "rows.npy", np.column_stack(problem(200, 2)))
    settings = {"n_frequencies": 5, "n_draws": 2, "n_warmup": 2, "n_chains": 1, "random_state": 0}
    here, there = (
        BaNKRegressor(device=name, kernel_rows=kernel_rows, **settings).fit(
            mercer.data.open(tmp_path / "rows.npy"), "x2"
        )
        for name in (None, "there")
    )
    Z = pd.DataFrame(np.random.default_rng(6).standard_normal((5, 2)), columns=["x0", "x1"])
    np.testing.assert_allclose(there.predict(Z), here.predict(Z), rtol=1e-8, atol=1e-9)


def test_a_device_that_is_full_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    strict = device_for_tests("strict")

    class OutOfMemoryError(RuntimeError):
        """As PyTorch has it."""

    def full(*args: object, **kwargs: object) -> None:
        raise OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("mercer.spectral.rows.check_device", lambda name: name and strict)
    monkeypatch.setattr(Device, "design", full)
    X, y = problem(40, 2)
    model = BaNKRegressor(device="cuda", n_frequencies=5, n_draws=2, n_warmup=2, n_jobs=1)
    with pytest.raises(UsageError, match="too little memory; take fewer n_frequencies"):
        model.fit(X, y)
