"""Ways to break the particle filter that the tests must notice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.basis import filter as basis_filter
from mercer.basis.filter import Filter
from mercer.basis.model import SetPrior
from mercer.basis.population_loops import normalise


def printed_weight(monkeypatch) -> None:
    """S1: the weight is the ratio of targets; how likely the choice was is left out."""
    extend = basis_filter.extend

    def mutant(rng, *rest):
        particles = rest[-1]
        weight, target = particles.log_weight.copy(), particles.log_target.copy()
        extend(rng, *rest)
        particles.log_weight[:] = weight + particles.log_target - target
        return normalise(particles.log_weight)

    monkeypatch.setattr(basis_filter, "extend", mutant)


def single_parent(monkeypatch) -> None:
    """A set without the retired candidate is taken to come from itself alone."""
    drop_candidate = basis_filter.drop_candidate

    def mutant(*arguments):
        particles = arguments[-1]
        weight, target = particles.log_weight.copy(), particles.log_target.copy()
        drop_candidate(*arguments)
        particles.log_weight[:] = weight + particles.log_target - target
        return normalise(particles.log_weight)

    monkeypatch.setattr(basis_filter, "drop_candidate", mutant)


def forget_the_constant(monkeypatch) -> None:
    """The prior of the sets is not normalised where it is cut."""
    log_size = SetPrior.log_size

    def mutant(self, n_candidates):
        values = log_size(self, n_candidates)
        return values - values[0]

    monkeypatch.setattr(SetPrior, "log_size", mutant)


def stale_target(monkeypatch) -> None:
    """What a particle carries is not worked out again after a move."""
    move_particles = basis_filter.move_particles

    def mutant(*arguments):
        particles = arguments[5]
        target = particles.log_target.copy()
        result = move_particles(*arguments)
        particles.log_target[:] = target
        return result

    monkeypatch.setattr(basis_filter, "move_particles", mutant)


def forget_the_discount(monkeypatch) -> None:
    """The sums are discounted, the weights stay."""
    discount = basis_filter.discount

    def mutant(statistics, prior, log_size, particles):
        weight = particles.log_weight.copy()
        discount(statistics, prior, log_size, particles)
        particles.log_weight[:] = weight
        return 0.0

    monkeypatch.setattr(basis_filter, "discount", mutant)


def move_after_resampling_only(monkeypatch) -> None:
    """Particles are moved where they were just resampled, and only then."""
    resampled, moved = Filter._resampled, Filter._moved
    was_resampled = False

    def noting(self, rng, state):
        nonlocal was_resampled
        new = resampled(self, rng, state)
        was_resampled = new is not state
        return new

    def sometimes(self, rng, state):
        return moved(self, rng, state) if was_resampled else state

    monkeypatch.setattr(Filter, "_resampled", noting)
    monkeypatch.setattr(Filter, "_moved", sometimes)


def weigh_nothing(monkeypatch) -> None:
    """Rows are learned, the weights stay as they were."""
    learn_row = basis_filter.learn_row

    def mutant(*arguments):
        particles = arguments[5]
        weight = particles.log_weight.copy()
        gains = learn_row(*arguments)
        particles.log_weight[:] = weight
        return gains

    monkeypatch.setattr(basis_filter, "learn_row", mutant)


def oldest_rows_count_nothing(monkeypatch) -> None:
    """A new candidate is taken to vanish on the rows that are gone."""
    admit = basis_filter.admit

    def mutant(state, grid, slot, x, weights):
        if state.old.gram.shape[1] == 0:
            return admit(state, grid, slot, x, weights)
        old = state.old._replace(
            gram=np.zeros_like(state.old.gram), moment=np.zeros_like(state.old.moment)
        )
        return replace(admit(replace(state, old=old), grid, slot, x, weights), old=state.old)

    monkeypatch.setattr(basis_filter, "admit", mutant)


def never_move(monkeypatch) -> None:
    """No particle is moved."""
    monkeypatch.setattr(Filter, "_moved", lambda self, rng, state: state)
