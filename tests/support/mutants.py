"""Ways to break a sampler or the evidence that the tests must notice."""

from __future__ import annotations

import dataclasses

import numpy as np

from mercer.gp import laplace, softmax
from mercer.gp.gaussian import RegressionPosterior
from mercer.likelihoods.logistic import success_probability
from mercer.sampling.hmc import HMC, Mass


class AcceptsAll:
    """A generator whose uniform draws are 0: every proposal with any chance is taken."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.standard_normal, self.integers = rng.standard_normal, rng.integers

    def random(self) -> float:
        self._rng.random()
        return 0.0


def accept_everything(monkeypatch) -> None:
    """HMC without its accept step."""
    step = HMC.step
    monkeypatch.setattr(HMC, "step", lambda self, rng, state: step(self, AcceptsAll(rng), state))


def drop_weight_term(monkeypatch) -> None:
    """The gradient of the evidence without d log|W|/d theta through the mode."""
    adjoint = laplace.evidence_adjoint
    monkeypatch.setattr(
        laplace,
        "evidence_adjoint",
        lambda inverse, root_weights, a, q: adjoint(inverse, root_weights, a, np.zeros_like(q)),
    )


def stop_newton_early(monkeypatch) -> None:
    """The paper's tolerance of 1e-4 on the change of the latent values, and no polish."""
    chord_steps = laplace.chord_steps

    def stopped(K, factors, y, totals, a, f, tolerance, max_steps, memory):
        if memory == 0:
            return 0.0, 0
        change, taken = chord_steps(K, factors, y, totals, a, f, 1e-4, max_steps, memory)
        return (0.0 if change < 1e-4 else change), taken

    for module in (laplace, softmax):
        monkeypatch.setattr(module, "chord_steps", stopped)


def start_newton_warm(monkeypatch) -> None:
    """The paper's iteration: Newton steps from the mode of the last call, until 1e-4."""
    last: dict[int, np.ndarray] = {}

    def warm(K, y, totals, factors_at, start=None):
        n = len(y)
        f = last.get(n, np.zeros(n))
        for _ in range(100):
            p = success_probability(f)
            W = p * (1.0 - p)
            a = np.linalg.solve(np.eye(n) + W[:, None] * K, W * f + y - p)
            new = K @ a
            change, f = np.abs(new - f).max(), new
            if change < 1e-4:
                break
        last[n] = f
        return a, f, factors_at(f)

    def no_polish(K, factors, y, a, f, *rest):
        return 0.0, 0

    monkeypatch.setattr(laplace, "find_mode", warm)
    monkeypatch.setattr(laplace, "chord_steps", no_polish)


def draw_momentum_from_the_covariance(monkeypatch) -> None:
    """Momenta from N(0, M^-1) in place of N(0, M), under the kinetic energy of M."""
    monkeypatch.setattr(
        Mass, "draw_momentum", lambda self, rng: self.factor @ rng.standard_normal(len(self.factor))
    )


def keep_the_momentum(monkeypatch) -> None:
    """The same momentum at the start of every trajectory."""
    monkeypatch.setattr(Mass, "draw_momentum", lambda self, rng: np.ones(len(self.factor)))


def drop_noise_gradient(monkeypatch) -> None:
    """The gradient of a regressor's evidence without its part along the noise."""
    evaluate = RegressionPosterior.evaluate

    def dropped(self, theta, near=None):
        point = evaluate(self, theta)
        gradient = point.gradient.copy()
        gradient[-1] = self.prior.gradient(theta)[-1]
        return dataclasses.replace(point, gradient=gradient)

    monkeypatch.setattr(RegressionPosterior, "evaluate", dropped)
