"""Which rows are candidates; that this does not bias the evidence: SMC-14."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import nbinom, poisson

from mercer import SequentialKernelRegressor
from mercer.basis.filter import copied, with_room
from mercer.basis.model import Reservoir, Schedule, SetPrior, integrated, sampled
from mercer.sampling.checkpoint import pack
from support.basis_cases import make_filter, problem, run


def held(reservoir: Reservoir, n_rows: int) -> list[int]:
    """Row numbers in the slots after so many rows."""
    slots: dict[int, int] = {}
    for t in range(n_rows):
        slot = reservoir.slot(t)
        if slot is not None:
            slots[slot] = t
    return sorted(slots.values())


def test_the_first_rows_fill_it() -> None:
    assert held(Reservoir(5, 1, False), 5) == [0, 1, 2, 3, 4]
    assert len(held(Reservoir(5, 1, False), 500)) == 5


def test_it_depends_on_key_and_row_alone() -> None:
    assert held(Reservoir(5, 1, False), 99) == held(Reservoir(5, 1, False), 99)
    assert held(Reservoir(5, 1, False), 99) != held(Reservoir(5, 2, False), 99)


def test_every_row_is_held_with_the_same_probability() -> None:
    """400 keys, 4 of 20 rows: counts of 80 +- 8. False alarm 1e-6 (4.9 sd of one of 20)."""
    counts = np.zeros(20)
    for key in range(400):
        counts[held(Reservoir(4, key, False), 20)] += 1
    assert np.abs(counts - 80.0).max() < 5.5 * np.sqrt(400 * 0.2 * 0.8)


def test_where_rows_are_forgotten_recent_ones_are_preferred() -> None:
    """With 3 slots a row is admitted with probability 1 / 20, however long the stream."""
    old, recent = (np.mean(held(Reservoir(3, 7, f), 3000)) for f in (False, True))
    assert recent > 2700.0 > old
    n_admitted = sum(Reservoir(3, 7, True).slot(t) is not None for t in range(2000, 4000))
    assert 60 < n_admitted < 145


SCHEDULE = Schedule(n_eager=16, block=8, later_fraction=0.25)


def test_blocks() -> None:
    begins = [t for t in range(48) if SCHEDULE.begins_block(t)]
    assert begins == [*range(16), 16, 24, 32, 40]
    assert sum(SCHEDULE.rows_in_block(t) for t in begins) == 48


def test_who_is_moved_depends_on_the_number_of_rows_alone() -> None:
    fractions = [SCHEDULE.fraction(n) for n in range(1, 33)]
    assert fractions[:16] == [1.0] * 16
    assert [n + 1 for n, f in enumerate(fractions) if f == 0.25] == [24, 32]
    assert set(fractions[16:]) == {0.0, 0.25}


@pytest.mark.parametrize("kind", ["poisson", "negative_binomial"])
@pytest.mark.parametrize("n_candidates", [0, 1, 3, 12])
def test_prior_of_sets(kind: str, n_candidates: int) -> None:
    """All sets of a size share its probability; cut at the largest size, it adds up to 1."""
    largest, mean = 5, 2.5
    log_size = SetPrior(kind, mean, largest).log_size(n_candidates)
    assert log_size.shape == (largest + 2,)
    k = np.arange(min(n_candidates, largest) + 1)
    law = poisson(mean) if kind == "poisson" else nbinom(1, 1.0 / (1.0 + mean))
    expected = law.pmf(k) / law.pmf(k).sum() / comb(n_candidates, k)
    np.testing.assert_allclose(np.exp(log_size[: len(k)]), expected, rtol=1e-12)
    assert (log_size[len(k) :] == -np.inf).all()


def test_variances() -> None:
    assert not integrated(3).is_sampled
    assert sampled(3).is_sampled
    assert integrated(3).n_mean == sampled(3).n_mean == 3
    assert 2.0 * integrated(1).noise_shape < 1.0  # hardly anything is said of the noise


def test_more_room_changes_no_number() -> None:
    filter_ = make_filter(n_slots=8, n_particles=3)
    state = run(filter_, *problem(8, 1), np.random.default_rng(0))
    longer = with_room(state, 100, 90, 1)
    assert longer.rows.X.shape == (100, 1)
    assert longer.rows.distances.shape == (1, 100, 90)
    assert longer.centres.shape == (90, 1)
    assert longer.statistics.gram.shape == (2, 91, 91)
    assert longer.pending.shape[2] == longer.leaving.shape[2] == 91
    for name, array in pack(state, "s").items():
        new = pack(longer, "s")[name]
        kept = new[tuple(slice(n) for n in array.shape)]
        np.testing.assert_array_equal(kept, array, err_msg=name)
        assert new.sum() == array.sum()


def test_a_copy_shares_nothing() -> None:
    state = run(make_filter(n_particles=3), *problem(5, 1), np.random.default_rng(0))
    ours, theirs = pack(state, "s"), pack(copied(state), "s")
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name])
        assert not np.shares_memory(array, theirs[name])


# The function without the noise of a target, against the predictive law.


RNG = np.random.default_rng(6)
X = RNG.uniform(-3.0, 3.0, (40, 1))
Y = 5.0 + 2.0 * np.sin(2.0 * X[:, 0]) + 0.4 * RNG.standard_normal(40)
NEW = np.linspace(-5.0, 5.0, 7)[:, np.newaxis]


@pytest.mark.parametrize("variances", ["integrated", "sampled"])
def test_the_noise_is_what_is_left(variances: str) -> None:
    model = SequentialKernelRegressor(
        n_particles=60, variances=variances, random_state=0, progress=False
    ).fit(X, Y)
    mean, std = model.latent(NEW)
    whole, with_noise = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, whole, rtol=1e-12)
    # The variance of the noise is the same everywhere.
    noise = with_noise**2 - std**2
    np.testing.assert_allclose(noise, noise[0], rtol=1e-9)
    assert np.sqrt(noise[0]) == pytest.approx(model.noise_std_, rel=0.05)
    lower, upper = model.latent_interval(NEW, 0.9)
    outer_lower, outer_upper = model.predict_interval(NEW, 0.9)
    assert np.all((outer_lower < lower) & (lower < mean) & (mean < upper) & (upper < outer_upper))
    inner = model.latent_interval(NEW, 0.5)
    assert np.all((lower < inner[0]) & (inner[1] < upper))


def test_blocks_of_rows_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SequentialKernelRegressor(n_particles=10, random_state=0, progress=False).fit(X, Y)
    expected = model.latent_interval(NEW)
    monkeypatch.setattr(SequentialKernelRegressor, "_rows_at_once", 3)
    np.testing.assert_array_equal(model.latent_interval(NEW), expected)
