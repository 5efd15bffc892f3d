import numpy as np

from mercer.basis.filter import copied, with_room
from mercer.sampling.checkpoint import pack
from support.basis_cases import make_filter, problem, run


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
