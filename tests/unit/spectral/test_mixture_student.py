from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from mercer.spectral.base_measure import t_characteristic, t_log_density


@pytest.mark.parametrize("degrees", [0.7, 3.0, 40.0])
@pytest.mark.parametrize("d", [1, 3])
def test_log_density(d: int, degrees: float) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((d, d))
    S, x = A @ A.T + np.eye(d), rng.standard_normal((5, d))
    square = np.einsum("ni,ij,nj->n", x, np.linalg.inv(S), x)
    found = t_log_density(square, degrees, d, np.linalg.slogdet(S)[1])
    np.testing.assert_allclose(found, stats.multivariate_t.logpdf(x, None, S, degrees), rtol=1e-12)


def test_characteristic_function_in_closed_form() -> None:
    u = np.array([0.0, 1e-300, 1e-12, 0.1, 1.0, 7.0, 1e4])
    np.testing.assert_allclose(t_characteristic(u**2, 1.0), np.exp(-u), rtol=1e-12)
    r = np.sqrt(3.0) * u
    np.testing.assert_allclose(t_characteristic(u**2, 3.0), (1.0 + r) * np.exp(-r), rtol=1e-12)
    r = np.sqrt(5.0) * u
    np.testing.assert_allclose(
        t_characteristic(u**2, 5.0), (1.0 + r + r**2 / 3.0) * np.exp(-r), rtol=1e-12
    )


@pytest.mark.parametrize("degrees", [0.5, 3.7, 30.0])
@pytest.mark.parametrize("u", [0.3, 1.5])
def test_characteristic_function_is_the_transform(u: float, degrees: float) -> None:
    law = stats.t(degrees)
    half = quad(law.pdf, 0.0, np.inf, weight="cos", wvar=u, limlst=200)[0]
    assert t_characteristic(np.array([u**2]), degrees)[0] == pytest.approx(2.0 * half, abs=1e-7)


@pytest.mark.parametrize("degrees", [3.0, 80.0, 300.0])
def test_where_the_bessel_function_overflows(degrees: float) -> None:
    """Of every argument a number in [0, 1] that falls, and near 0 a parabola."""
    u = np.concatenate([[0.0], np.logspace(-200, 3, 2000)])
    found = t_characteristic(u**2, degrees)
    assert np.isfinite(found).all()
    assert found[0] == 1.0
    assert ((found >= 0.0) & (found <= 1.0)).all()
    assert (np.diff(found) <= 1e-9).all()
    gauss = np.exp(-0.5 * u**2 * degrees / (degrees - 2.0))
    np.testing.assert_allclose(found[u < 0.005], gauss[u < 0.005], atol=1e-6)
