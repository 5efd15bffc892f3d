"""Figure 3: the problem is the paper's. False alarm 1e-6 for the moments of the frequencies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import multivariate_normal

from reproduce.papers import spectral_figure_3
from reproduce.papers.reproduction import Settings, write_reproduction
from reproduce.papers.spectral_figure_3 import _LAGS, _Outcome, _problem, true_kernel
from support.statistics import largest_z, z_limit

T = np.array([0.3, 1.0, 2.7, 5.0])


def printed(t: np.ndarray) -> np.ndarray:
    """The kernel as section 4.1 has it."""
    return np.exp(-(t**2) / (2.0 * 2.0**2)) * (0.5 + 0.5 * np.cos(0.75 * np.pi * t))


def frequencies(n_problems: int) -> np.ndarray:
    return np.concatenate([_problem(seed).frequencies for seed in range(n_problems)])


def z_of(W: np.ndarray) -> float:
    """Largest |z| of mean cosines against the kernel."""
    return largest_z(np.cos(np.outer(W, T)), printed(T), 50)


def test_frequencies_are_those_of_the_kernel() -> None:
    assert z_of(frequencies(200)) < z_limit(50, len(T))


def test_sees_a_spread_that_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: the variance 1/4 taken for a standard deviation."""
    monkeypatch.setattr(spectral_figure_3, "_SPREAD", 0.25)
    assert z_of(frequencies(200)) > z_limit(50, len(T))


def test_the_kernel_is_the_printed_one() -> None:
    np.testing.assert_allclose(true_kernel(_LAGS), printed(_LAGS), atol=1e-15)


def test_data_have_the_signal_and_the_noise_of_the_paper() -> None:
    """f has variance 1 given the input, e has variance 1: over many problems y has 2."""
    y = np.concatenate([_problem(seed).y for seed in range(60)])
    assert y.var() == pytest.approx(2.0, rel=0.15)
    problem = _problem(3)
    assert problem.X.shape == (1000, 1)
    assert problem.X.std() == pytest.approx(4.0, rel=0.1)
    np.testing.assert_array_equal(problem.y, _problem(3).y)


def outcome_of(shift: float, width: float) -> _Outcome:
    curve = true_kernel(_LAGS) + shift
    return _Outcome(curve, curve, curve, curve - width, curve + width)


def test_coverage_counts_lags() -> None:
    assert outcome_of(0.1, 0.2).coverage == 1.0
    assert outcome_of(0.2, 0.1).coverage == 0.0
    half = outcome_of(0.0, 0.1)
    half.mean[:], half.lower[:61], half.upper[:61] = 0.0, 2.0, 3.0
    assert half.coverage == pytest.approx(60 / 121)


@pytest.mark.parametrize(
    ("shift", "width", "verdicts"),
    [(0.05, 0.1, ["holds", "holds"]), (0.2, 0.1, ["fails", "fails"])],
)
def test_claims_are_judged(shift: float, width: float, verdicts: list[str]) -> None:
    outcome = outcome_of(shift, width)
    error = spectral_figure_3._error(outcome.mean)
    assert error == pytest.approx(shift)
    names = ("BaNK", "true spectral density, 250 draws", "all known but the shares")
    errors = {name: np.full(2, error) for name in names}
    coverage = np.full(2, outcome.coverage)
    claims = spectral_figure_3._claims(errors, coverage, False)
    assert [claim.verdict for claim in claims] == verdicts
    quick = spectral_figure_3._claims(errors, coverage, True)
    assert [claim.verdict for claim in quick] == ["not judged"] * 2


def test_what_is_told_is_the_posterior_of_the_share() -> None:
    """Against scipy's density of the targets, share by share."""
    problem = _problem(5)
    rows = slice(0, 60)
    few = spectral_figure_3._Problem(problem.X[rows], problem.y[rows], problem.frequencies)
    lags = few.X - few.X.T
    shares = spectral_figure_3._SHARES
    laws = [
        multivariate_normal(cov=spectral_figure_3._mixture_kernel(lags, s) + np.eye(60))
        for s in shares
    ]
    weights = softmax([law.logpdf(few.y) for law in laws])
    expected = sum(
        w * spectral_figure_3._mixture_kernel(_LAGS, s)
        for w, s in zip(weights, shares, strict=True)
    )
    np.testing.assert_allclose(spectral_figure_3._told(few), expected, atol=1e-10)


class Fake:
    """Knows the kernel."""

    def kernel(self, lags: np.ndarray):
        curve = true_kernel(lags[:, 0])
        return curve + 0.02, curve - 0.1, curve + 0.1


def test_run_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(spectral_figure_3, "_fitted", lambda *arguments: Fake())
    monkeypatch.setattr(spectral_figure_3, "_SHARES", np.array([0.3, 0.7]))
    settings = Settings(tell=lines.append, folder=tmp_path)
    outcome = spectral_figure_3.reproduce(settings)
    assert [claim.verdict for claim in outcome.claims] == ["holds", "holds"]
    np.testing.assert_allclose(outcome.measured["BaNK"], 0.02)
    assert outcome.beside["coverage"]["BaNK"].mean() == 1.0
    paths = write_reproduction(outcome, tmp_path)
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    assert spectral_figure_3.reproduce(settings).to_markdown() == outcome.to_markdown()
    assert len(lines) == 10
