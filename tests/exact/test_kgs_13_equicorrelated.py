"""KGS-13: any number of rows: G = (I + 11')/2, all labels +1, every number of errors as likely."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere import tempering as ladder
from mercer.sphere.space import spectrum_of
from mercer.sphere.tempering import Tempering, climb_errors
from support.sphere_cases import (
    equicorrelated_error_law,
    equicorrelated_gram,
    equicorrelated_log_z,
    equicorrelated_log_z_by_quadrature,
)
from support.statistics import largest_z, z_limit

RATES = (0.0, 0.002, 0.05, 0.2, 0.4)
SIZES = {12: (20, Tempering(24, 100)), 60: (20, Tempering(24, 150)), 250: (8, Tempering(24, 150))}


def exact(n: int) -> np.ndarray:
    """Log evidence of the rates: at 0 log 1/(n + 1), else by quadrature over the common part."""
    truth = [-np.log(n + 1.0)]
    for q in RATES[1:]:
        eta = np.log((1.0 - q) / q)
        assert equicorrelated_log_z(eta, n) == pytest.approx(
            equicorrelated_log_z_by_quadrature(eta, n), abs=1e-7
        )
        truth.append(n * np.log1p(-q) + equicorrelated_log_z(eta, n))
    return np.array(truth)


def estimates(n: int, n_runs: int) -> np.ndarray:
    """Log evidence of the rates and its standard error: (n_runs, n_rates, 2)."""
    L = spectrum_of(equicorrelated_gram(n)).design().L
    laws = [climb_errors(np.random.default_rng(s), L, SIZES[n][1]).law() for s in range(n_runs)]
    return np.array([[law.log_evidence(fixed_rate(q, n)) for q in RATES] for law in laws])


@pytest.mark.parametrize("n", SIZES)
def test_kgs_13_evidence(n: int) -> None:
    """False alarm 1e-6 over sizes and rates; what is seen is 0.2 nat for n = 60, 0.5 for 250."""
    n_runs = SIZES[n][0]
    seen = estimates(n, n_runs)
    assert np.isfinite(seen).all()
    assert largest_z(seen[..., 0], exact(n), n_runs) < z_limit(n_runs, len(RATES) * len(SIZES))
    z = (seen[..., 0] - exact(n)) / seen[..., 1]
    assert np.abs(z).max() < 6.0


def test_kgs_13_law_of_errors() -> None:
    """P(e) = 1/(n + 1), in nats, wherever the ladder was."""
    n = 60
    L = spectrum_of(equicorrelated_gram(n)).design().L
    law = climb_errors(np.random.default_rng(7), L, Tempering(24, 1500)).law()
    log_prior = law.log_prior[law.support] - np.log(equicorrelated_error_law(n)[law.support])
    assert len(law.support) > 0.9 * n
    assert np.abs(log_prior).mean() < 0.3


def test_kgs_13_sees_eta_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rungs are told to cost half of what they do."""
    law = ladder.error_law
    monkeypatch.setattr(ladder, "error_law", lambda errors, costs: law(errors, 0.5 * costs))
    n_runs = SIZES[60][0]
    seen = estimates(60, n_runs)[..., 0]
    assert largest_z(seen, exact(60), n_runs) > 2.0 * z_limit(n_runs, len(RATES) * len(SIZES))
