from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

from reproduce.papers import basis_methods, basis_rivals
from reproduce.papers.basis_answer import Problem
from reproduce.papers.basis_rivals import gaussian_process, relevance_vectors, support_vectors
from reproduce.papers.basis_sinc import sinc_set

RNG = np.random.default_rng(1)
X = RNG.uniform(-3.0, 3.0, (40, 2))
F = 5.0 + 3.0 * np.sin(2.0 * X[:, 0])
Y = F + 0.3 * RNG.standard_normal(40)
PROBLEM = Problem(X[:30], Y[:30], X[30:], Y[30:])


class FakeRVR:
    """Says the kernel sum of all rows; knows the width 2 best."""

    def __init__(self, *, kernel: str, gamma: float, fit_intercept: bool) -> None:
        self.gamma, self.beta_, self.n_relevance_ = gamma, 4.0, 7

    def fit(self, X, z):
        self.is_good = abs(self.gamma - 0.25) < 1e-9
        self.table = {row.tobytes(): value for row, value in zip(X, z, strict=True)}
        return self

    def predict(self, X, return_std=False):
        mean = np.full(len(X), 0.0 if self.is_good else 9.0)
        return (mean, np.full(len(X), 1.3)) if return_std else mean


@pytest.fixture
def fake_rvm(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("fastrvm")
    module.RVR = FakeRVR
    monkeypatch.setitem(sys.modules, "fastrvm", module)


def test_support_vectors() -> None:
    found = support_vectors(PROBLEM, 2.0, is_quick=True)
    assert 1 <= found.n_kernels <= 30
    assert np.mean((found.mean - F[30:]) ** 2) < 0.5 * F.var()


@pytest.mark.parametrize("kind", ["isotropic", "ard", "fixed"])
def test_gaussian_process(kind: str) -> None:
    found = gaussian_process(PROBLEM, 2.0, kind=kind)
    assert np.mean((found.mean - F[30:]) ** 2) < 0.5 * F.var()
    inner, outer = found.of_function, found.of_target
    assert np.all((outer[0] < inner[0]) & (inner[0] < inner[1]) & (inner[1] < outer[1]))
    # Their squared half widths differ by that of the noise.
    half = [0.5 * (upper - lower) / 1.6448536 for lower, upper in (inner, outer)]
    np.testing.assert_allclose(half[1] ** 2 - half[0] ** 2, found.noise_std**2, rtol=1e-6)


@pytest.mark.usefixtures("fake_rvm")
def test_relevance_vectors_choose_their_width() -> None:
    centre, scale = PROBLEM.y.mean(), PROBLEM.y.std()
    for width, is_chosen, expected in ((2.0, False, 0.0), (4.0, False, 9.0), (2.8, True, 9.0),
                                       (2.0, True, 0.0)):  # fmt: skip
        found = relevance_vectors(PROBLEM, width, is_chosen=is_chosen, is_quick=True)
        np.testing.assert_allclose(found.mean, centre + scale * expected)
    assert found.n_kernels == 7.0
    assert found.noise_std == pytest.approx(0.5 * scale)
    np.testing.assert_allclose(np.diff(found.of_target, axis=0), 2 * 1.3 * scale * 1.6448536)
    np.testing.assert_allclose(np.diff(found.of_function, axis=0), 2 * 1.2 * scale * 1.6448536)


def test_without_its_package_it_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = basis_methods.SINC_METHODS
    monkeypatch.setattr(basis_methods, "has_rvm", lambda: False)
    left = [method.key for method in basis_methods.runnable(methods)]
    assert left == [m.key for m in methods if m.key not in ("rvm", "rvm-chosen")]
    monkeypatch.setattr(basis_methods, "has_rvm", lambda: True)
    assert basis_methods.runnable(methods) == methods


def test_the_package_itself() -> None:
    if not basis_rivals.has_rvm():
        pytest.skip(basis_rivals.MISSING_RVM)
    data = sinc_set(0)
    found = relevance_vectors(data, 1.6, is_chosen=False)
    assert np.sqrt(np.mean((found.mean - data.f_test) ** 2)) < 0.12
    assert 2 <= found.n_kernels <= 15
    assert 0.05 < found.noise_std < 0.2
