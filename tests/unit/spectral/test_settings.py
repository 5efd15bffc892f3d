from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mercer.spectral.base_measure import DiagonalBase, FullBase
from mercer.spectral.model import Scales
from mercer.spectral.settings import SpectralSettings, default_scale


def settings(**own: Any) -> SpectralSettings:
    plan = {
        "n_frequencies": 8, "concentration": 2.0, "proposals": "pcn", "base_measure": "diagonal",
        "frequency_scale": "learn", "ridge_precision": "learn", "linear_part": True,
        "n_deviations": 2,
    }  # fmt: skip
    return SpectralSettings(**{**plan, **own})


@pytest.mark.parametrize("d", [1, 4, 100])
def test_phases_of_standardised_rows_have_variance_one(d: int) -> None:
    assert np.sum(default_scale(d) ** 2) == pytest.approx(1.0)


def test_what_is_learned_and_what_is_given() -> None:
    found = Scales(np.array([0.5, 2.0]), 0.3)
    learned, given = settings(), settings(ridge_precision=0.5, frequency_scale=1.0)
    assert learned.is_scale_learned
    assert not given.is_scale_learned
    assert learned.start(found).ridge == 0.3
    assert given.start(found).ridge == 0.5
    assert learned.model(10, 2).ridge_prior is not None
    assert given.model(10, 2).ridge_prior is None
    assert given.first_scales(2).ridge == 0.5
    assert len(learned.start(found).factors) > 1
    assert given.start(found).factors == (1.0,)
    assert learned.mixture(found).scale_prior is not None
    assert given.mixture(found).scale_prior is None


def test_a_number_fixes_the_scale_in_units_of_the_default() -> None:
    np.testing.assert_allclose(settings(frequency_scale=3.0).first_scales(4).scales, 1.5)


@pytest.mark.parametrize("kind", ["diagonal", "full"])
@pytest.mark.parametrize("given", ["learn", 1.0])
def test_variances_are_those_of_the_scales(kind: str, given: float | str) -> None:
    """Of frequencies, E Sigma (1 + 1 / kappa0), where scales are learned; else of components."""
    found = Scales(np.array([0.5, 2.0]), 0.3)
    mixture = settings(base_measure=kind, frequency_scale=given).mixture(found)
    base = mixture.base
    if isinstance(base, DiagonalBase):
        variances = base.scale / (base.nu0 - 2.0)
    else:
        assert isinstance(base, FullBase)
        variances = base.scale[0] * np.diag(base.psi) / (base.nu0 - 3.0)
    if given == "learn":
        variances = variances * (1.0 + 1.0 / base.kappa0)
        assert mixture.scale_prior is not None
        np.testing.assert_allclose(mixture.scale_prior.mean, base.scale)
    np.testing.assert_allclose(variances, found.scales**2)


def test_concentration() -> None:
    found = Scales(np.ones(2), 0.3)
    assert settings(concentration=0.7).mixture(found).concentration == 0.7
    assert settings(concentration=0.7).mixture(found).concentration_prior is None
    assert settings(concentration="learn").mixture(found).concentration_prior is not None


def test_columns_of_the_linear_part() -> None:
    assert settings().model(10, 3).n_linear == 4
    assert settings(linear_part=False).model(10, 3).n_linear == 0
    precisions = settings().model(10, 3).linear_precisions(2.0)
    np.testing.assert_array_equal(precisions[1:], 2.0)
    assert precisions[0] < 1e-2  # the intercept is nearly flat
