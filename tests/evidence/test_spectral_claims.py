"""How often the kernel of random frequencies is off, and the slope of its logarithm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reproduce.papers import spectral_claims
from reproduce.papers.reproduction import Settings, write_reproduction
from reproduce.papers.spectral_claims import Curve, exceedance, fitted_slope

SIZES = (50, 60, 70, 80)


def curve_of(slope: float, *, d: int = 1, n_repeats: int = 4000) -> Curve:
    """Counts that fall as told."""
    counts = tuple(round(n_repeats * 0.4 * np.exp(slope * (size - 50))) for size in SIZES)
    return Curve(d, 0.3, SIZES, counts, n_repeats)


def test_the_slope_is_found_within_its_error() -> None:
    slope, error = fitted_slope(curve_of(-0.05))
    assert abs(slope + 0.05) < 1e-3 < error


def test_rare_and_common_events_are_left_out() -> None:
    curve = Curve(1, 0.3, (10, 20, 50, 60, 70, 90), (4000, 2500, 1600, 971, 589, 9), 4000)
    assert fitted_slope(curve)[0] == pytest.approx(-0.05, abs=1e-3)
    assert np.isnan(fitted_slope(Curve(1, 0.3, (10, 20), (3000, 1000), 4000))[0])


def test_probabilities_that_fall_too_slowly_are_seen() -> None:
    bound = curve_of(-0.05).bound
    assert bound == pytest.approx(-0.0075)
    for slope, verdict in ((-0.05, "holds"), (bound, "fails"), (bound / 2.0, "fails")):
        claim = spectral_claims._claim(1, [curve_of(-0.05), curve_of(slope)], Settings())
        assert claim.verdict == verdict


def test_errors_of_few_frequencies_are_counted() -> None:
    """Frequencies of 0 make the estimate 1 everywhere: exp(-2) is .8 below it, but not .9."""
    assert exceedance(np.zeros, 1, 0.8, 4, 10) == 10
    assert exceedance(np.zeros, 1, 0.9, 4, 10) == 0


def test_dependent_frequencies_are_seen() -> None:
    """Each frequency drawn 40 times over: the mutant; its probabilities hardly fall with M.

    False alarms: independent draws have a slope of -0.117 with a standard error of about 0.02, the
    bound is -0.0075, so that the first verdict is wrong for one seed in a thousand at most; that of
    the mutant, a slope of -0.003 with an error of 0.0005, is nine errors from it.
    """

    def verdict(n_copies: int) -> str:
        rng = np.random.default_rng(4)

        def draw(shape: tuple[int, int]) -> np.ndarray:
            return np.repeat(rng.standard_normal((shape[0] // n_copies, shape[1])), n_copies, 0)

        sizes = tuple(n_copies * k for k in (5, 9, 13, 17))
        counts = tuple(exceedance(draw, 1, 0.3, size, 400) for size in sizes)
        return spectral_claims._claim(1, [Curve(1, 0.3, sizes, counts, 400)], Settings()).verdict

    assert verdict(1) == "holds"
    assert verdict(40) == "fails"


def test_points_do_not_come_twice() -> None:
    for d in (1, 2, 5):
        D = spectral_claims.differences(d)
        assert D.shape[1] == d
        assert np.abs(D).max() <= 2.0
        assert len(np.unique(D, axis=0)) == len(D)


def test_a_quick_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(spectral_claims, "_QUICK_REPEATS", 20)
    settings = Settings(is_quick=True, folder=tmp_path)
    outcome = spectral_claims.reproduce(settings)
    assert [claim.verdict for claim in outcome.claims] == ["not judged"] * 3
    assert spectral_claims.reproduce(settings).to_csv() == outcome.to_csv()
    paths = write_reproduction(outcome, tmp_path)
    assert paths[2].read_bytes().startswith(b"\x89PNG")
