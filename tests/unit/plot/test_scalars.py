from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.plot.chains import choose
from mercer.posterior.draws import Draws
from support.fake_estimator import INPUTS, fake_draws


def test_a_variable_stands_for_all_of_its_entries():
    draws = fake_draws(n_draws=10)
    chosen = choose(draws, ("log_weight", "log_density"))
    assert [s.name for s in chosen] == [*(f"log_weight[{i}]" for i in INPUTS), "log_density"]
    for i, scalar in enumerate(chosen[:-1]):
        np.testing.assert_array_equal(scalar.values, draws.variables["log_weight"][:, :, i])


def test_single_entries_can_be_named():
    draws = fake_draws(n_draws=10)
    (bmi, row) = choose(draws, ("log_weight[bmi]", "latent[3]"))
    np.testing.assert_array_equal(bmi.values, draws.variables["log_weight"][:, :, 4])
    np.testing.assert_array_equal(row.values, draws.variables["latent"][:, :, 3])


def test_monitored_variables_are_the_default_and_twelve_the_limit():
    draws = fake_draws(n_draws=10)
    names = [s.name for s in choose(draws, None)]
    assert len(names) == 12
    assert names[0] == "log_signal_variance"


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match=r"no variable 'glu' among the draws: log_signal"):
        choose(fake_draws(n_draws=10), ("glu",))


def test_nothing_to_show_is_refused():
    draws = Draws({"a": np.zeros((1, 3))}, {}, {}, ())
    with pytest.raises(UsageError, match="nothing to show"):
        choose(draws, None)
