"""BNK-12: classes by Polya-Gamma variables: evidence by quadrature, and the joint law of a sweep,
also of one with joint moves.

Normal-inverse-gamma evidences change too little of the joint law for the number of runs here: the
ratios themselves are compared. Variables that are never redrawn are seen by BNK-8.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import log_expit

from mercer.spectral import class_sampler
from mercer.spectral.class_model import (
    CLASSES,
    ClassLaw,
    ClassState,
    LogisticModel,
    logistic_coefficients,
)
from mercer.spectral.class_sampler import ClassSampler, JointSampler
from mercer.spectral.model import RidgeDensity
from mercer.spectral.rows import MemoryRows, weighted_products
from mercer.spectral.sampler import decide, join
from support.spectral_cases import plain_design
from support.spectral_class_cases import problem
from support.spectral_class_joint import CASES, distances, limit, only_carries
from support.spectral_joint import decide_by_the_prior
from support.statistics import few_first, tiers

N_STEPS = 3
RIDGE = 0.3
FULL, LEARNED = "three classes, full, pcn", "two classes, learned scale"
CARRIED = [case for case in CASES if "pcn" in case or "learned" in case]
GLOBAL, SLOPES = "two classes, half global", "three classes, prior, linear part"


def grid_log_integral(log_density: Callable[[np.ndarray], np.ndarray]) -> float:
    """Log integral over the plane: the trapezoid rule, which is exact for what dies out."""
    ends = np.linspace(-30.0, 30.0, 801)
    grid = np.stack(np.meshgrid(ends, ends), axis=-1).reshape(-1, 2)
    logs = log_density(grid)
    top = logs.max()
    return float(top + np.log(np.exp(logs - top).sum()) + 2.0 * np.log(ends[1] - ends[0]))


def log_prior(beta: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(RIDGE / (2.0 * np.pi)) - 0.5 * RIDGE * np.square(beta).sum(axis=-1))


class OneFrequency:
    """A few rows, one frequency, and what a pass over the rows drew."""

    def __init__(self, n: int, seed: int) -> None:
        self.X, codes = problem(n, 2, seed=seed)
        self.kappa = (codes == 0) - 0.5
        self.W = np.array([[0.8, -0.5]])
        self.F = plain_design(self.W, self.X, False)
        self.rows = MemoryRows(self.X, codes, False)
        self.omega = np.empty(0)

    def evidence(self, rng: np.random.Generator) -> float:
        """Given omega drawn from PG(1, 0): log p(labels | W, omega)."""
        draw = CLASSES.weigher(rng)

        def weigh(f: np.ndarray, kappa: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            self.omega, weighted = draw(f, kappa)
            return self.omega, weighted

        none, coef = np.empty((0, 2)), np.zeros((1, 2))
        (products,) = weighted_products(
            self.rows, none, self.W, coef, lambda _: weigh, CLASSES.tasks
        )
        law = logistic_coefficients(products.gram, np.full(2, RIDGE))
        return law.log_evidence - len(self.X) * np.log(2.0)


@pytest.mark.parametrize(("n", "seed"), [(1, 0), (5, 1), (30, 2)])
def test_bnk_12_evidence_given_omega(n: int, seed: int) -> None:
    one = OneFrequency(n, seed)
    found = one.evidence(np.random.default_rng(seed))

    def log_density(beta: np.ndarray) -> np.ndarray:
        f = beta @ one.F.T
        terms = f @ one.kappa - 0.5 * np.square(f) @ one.omega - n * np.log(2.0)
        return np.asarray(terms + log_prior(beta))

    assert found == pytest.approx(grid_log_integral(log_density), rel=1e-10)


def test_bnk_12_evidence_on_average() -> None:
    """Over omega ~ PG(1, 0) it is that of the labels: |z| < 5 has false alarm 6e-7."""
    one, rng = OneFrequency(5, 1), np.random.default_rng(3)
    log_p = grid_log_integral(
        lambda beta: log_expit(2.0 * one.kappa * (beta @ one.F.T)).sum(axis=-1) + log_prior(beta)
    )
    ratios = np.exp([one.evidence(rng) - log_p for _ in range(10_000)])
    z = (ratios.mean() - 1.0) / (ratios.std() / np.sqrt(len(ratios)))
    assert abs(z) < 5.0


def ratio_error(n_classes: int, m: int) -> float:
    """Largest error of the log ratios of a sweep, against evidences of the textbook."""
    X, codes = problem(25, 2, n_classes)
    rng, K = np.random.default_rng(8), n_classes - 1
    W, proposed = rng.standard_normal((2, m, 2))
    omega = rng.gamma(2.0, 0.1, (K, len(X)))
    calls = iter(omega[k, codes >= k] for k in range(K))
    products = weighted_products(
        MemoryRows(X, codes, True), proposed, W, np.zeros((K, 2 * m + 3)),
        lambda _: lambda f, kappa: (next(calls), kappa), CLASSES.tasks,
    )  # fmt: skip
    linear, log_uniform = np.array([0.5, 2.0, 2.0]), np.log(rng.random(m))
    joints = tuple(join(p.gram, p, RIDGE, linear) for p in products)
    found = class_sampler.decide_together(joints, log_uniform)
    prior = np.concatenate([np.full(2 * m, RIDGE), linear])

    def evidence(W: np.ndarray) -> float:
        F, total = plain_design(W, X, True), 0.0
        for k in range(K):
            is_in = codes >= k
            own, b = F[is_in], F[is_in].T @ ((codes[is_in] == k) - 0.5)
            A = (own.T * omega[k, is_in]) @ own + np.diag(prior)
            total += 0.5 * b @ np.linalg.solve(A, b) - 0.5 * np.linalg.slogdet(A)[1]
        return float(total)

    errors = []
    for j in range(m):
        other = W.copy()
        other[j] = proposed[j]
        ratio = evidence(other) - evidence(W)
        errors.append(abs(ratio - found.log_ratio[j]))
        assert found.is_accepted[j] == (log_uniform[j] < found.log_ratio[j])
        W = other if found.is_accepted[j] else W
    return max(errors)


RATIOS = [(2, 1), (2, 5), (2, 40), (3, 5), (3, 40), (5, 13)]


@pytest.mark.parametrize(("n_classes", "m"), RATIOS)
def test_bnk_12_ratios(n_classes: int, m: int) -> None:
    assert ratio_error(n_classes, m) < 1e-10


def test_bnk_12_other_ratios_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: normal-inverse-gamma evidences; those of the first function only."""
    together = class_sampler.decide_together

    def normal_inverse_gamma(joints, log_uniform):
        return decide(joints[0], log_uniform, 1.0 + 0.5 * 25, 1.0)

    monkeypatch.setattr(class_sampler, "decide_together", normal_inverse_gamma)
    assert ratio_error(2, 5) > 0.01
    monkeypatch.setattr(class_sampler, "decide_together", lambda j, u: together(j[:1], u))
    assert ratio_error(3, 5) > 0.1


@pytest.mark.parametrize("n", tiers(150, 600))
@pytest.mark.parametrize("case", few_first(CASES, "two classes, pcn, linear part"))
def test_bnk_12_joint(case: str, n: int) -> None:
    """False alarm 1e-6 over all distances; detects 0.5 (600 runs: 0.25)."""
    found = distances(case, n, N_STEPS)
    assert max(found.values()) < limit(n), found


@pytest.mark.parametrize("n", tiers(150, 600))
@pytest.mark.parametrize("case", few_first(CASES, GLOBAL))
def test_bnk_12_joint_moves(case: str, n: int) -> None:
    """False alarm 1e-6 over all distances; detects 0.5 (600 runs: 0.25)."""
    found = distances(case, n, N_STEPS, kind=JointSampler)
    assert max(found.values()) < limit(n), found


def resize(sampler: ClassSampler, rng: np.random.Generator, state: ClassState) -> ClassState:
    """The state after moves of the sizes of functions alone."""
    for _ in range(10):
        state = sampler._resize(rng, state)
    return state


@pytest.mark.parametrize("n", tiers(150, 1000))
@pytest.mark.parametrize("case", few_first(CASES, GLOBAL))
def test_bnk_12_sizes(case: str, n: int) -> None:
    """False alarm 1e-6 over all distances; detects 0.5 (1000 runs: 0.2)."""
    found = distances(case, n, 4, step=resize)
    assert max(found.values()) < limit(n), found


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_bnk_12_joint_with_more_runs(case: str) -> None:
    """False alarm 1e-6 over all distances; detects 0.1."""
    found = distances(case, 4000, 5, seed=66)
    assert max(found.values()) < limit(4000), found


def coefficients_before_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ridge and coefficients are drawn for the frequencies before the sweep."""
    monkeypatch.setattr(class_sampler, "choose", lambda gram, *rest: gram)


def weighted_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """kappa is multiplied by omega, also where joint moves draw the linear part."""
    weigher = ClassLaw.weigher

    def mutant(self, rng):
        draw = weigher(self, rng)
        return lambda f, kappa: (lambda omega: (omega, omega * kappa))(draw(f, kappa)[0])

    monkeypatch.setattr(ClassLaw, "weigher", mutant)


def keep_the_sines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coefficient of a sine stays where the frequency changes its sign."""
    turn = ClassSampler._turn

    def mutant(self, rng, state):
        new = turn(self, rng, state)
        return class_sampler.replace(new, mean=state.mean, deviations=state.deviations)

    monkeypatch.setattr(ClassSampler, "_turn", mutant)


def forget_the_jacobian(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slice is on log ridge, the density that of the ridge."""
    density = RidgeDensity.__call__
    monkeypatch.setattr(RidgeDensity, "__call__", lambda self, x: density(self, x) - x)


MUTANTS = [
    (coefficients_before_frequencies, "two classes, prior", 300, 1),
    (weighted_labels, "two classes, prior", 300, 2),
    (keep_the_sines, "two classes, prior", 300, 2),
    (forget_the_jacobian, "two classes, prior", 300, 3),
]


@pytest.mark.parametrize(("mutant", "case", "n", "n_steps"), MUTANTS)
def test_bnk_12_sees(
    mutant, case: str, n: int, n_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    found = distances(case, n, n_steps)
    assert max(found.values()) > 1.2 * limit(n), found


def test_bnk_12_sees_joint_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    weighted_labels(monkeypatch)
    found = distances("two classes, pcn, linear part", 300, 2, kind=JointSampler)
    assert max(found.values()) > 1.2 * limit(300), found


@pytest.mark.parametrize("n", tiers(150, 1000))
@pytest.mark.parametrize("case", few_first(CARRIED, FULL, LEARNED))
def test_bnk_12_components_with_their_members(case: str, n: int) -> None:
    """Many frequencies moved together; false alarm 1e-6, detects 0.5 (1000 runs: 0.2)."""
    found = distances(case, n, 3, step=only_carries, n_anew=2)
    assert max(found.values()) < limit(n), found


@pytest.mark.parametrize("n", tiers(150, 600))
@pytest.mark.parametrize("case", few_first(CARRIED, LEARNED))
def test_bnk_12_joint_with_members(case: str, n: int) -> None:
    """Whole sweeps with such moves; false alarm 1e-6, detects 0.5 (600 runs: 0.25)."""
    found = distances(case, n, N_STEPS, n_anew=3)
    assert max(found.values()) < limit(n), found


def omega_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of later passes are drawn around what is no function of the rows."""
    monkeypatch.setattr(class_sampler, "WeighedOnce", lambda weigh_of: weigh_of)


def evidence_of_the_determinant(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the labels say of the coefficients is left out of the evidence."""

    def mutant(self, factor, prior_precisions):
        return -float(np.log(factor.diagonal()[: len(prior_precisions)]).sum())

    monkeypatch.setattr(LogisticModel, "evidence_of_factor", mutant)


@pytest.mark.parametrize("mutant", [omega_anew, decide_by_the_prior, evidence_of_the_determinant])
def test_bnk_12_sees_members_left(mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    found = distances(LEARNED, 1000, 4, step=only_carries, n_anew=2)
    assert max(found.values()) > 1.2 * limit(1000), found


def forget_the_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes are decided by the likelihood alone."""
    monkeypatch.setattr(class_sampler, "_log_density_of_log", lambda _, values: 0.0 * values)


def leave_the_ridge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coefficients move, their ridge stays."""
    move = ClassSampler._resize

    def mutant(self, rng, state):
        return dataclasses.replace(move(self, rng, state), ridge=state.ridge)

    monkeypatch.setattr(ClassSampler, "_resize", mutant)


@pytest.mark.parametrize("mutant", [forget_the_prior, leave_the_ridge])
def test_bnk_12_sees_wrong_sizes(mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    found = distances(SLOPES, 300, 4, step=resize)
    assert max(found.values()) > 1.2 * limit(300), found
