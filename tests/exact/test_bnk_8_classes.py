"""BNK-8: one frequency of one input and its coefficients, labels given, against quadrature.

Nodes are quantiles of the prior of |W|; at each the coefficients of each function are integrated
out by Gauss and Hermite's rule, with the logistic likelihood itself: no Polya-Gamma variables.
Components are integrated out in closed form. Long chains, two and three classes, both samplers.

That all functions decide is seen by BNK-12, where the ratios themselves are compared; what breaks
the ratio of the joint moves, by `test_bnk_8_one_move`.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, log_expit

from mercer.spectral import class_sampler
from mercer.spectral.base_measure import DiagonalBase
from mercer.spectral.class_sampler import ClassChain, ClassSampler, JointSampler
from mercer.spectral.rows import weighted_products
from support.spectral_class_cases import make_classes
from support.statistics import largest_z, z_limit

N, FEW, RIDGE = 20, 3, 0.05
SCALE, KAPPA0, NU0 = 0.5, 0.2, 3.0
PREDICTIVE = stats.t(NU0, scale=np.sqrt(SCALE * (1.0 + 1.0 / KAPPA0) / NU0))
N_BATCHES, N_STEPS, N_CELLS, N_NODES = 40, 6_000, 6, 400
AT = (0, 1, 2)  # rows whose functions are looked at
KINDS: dict[str, type[ClassChain]] = {"polya-gamma": ClassSampler, "joint": JointSampler}
CHAINS = [
    ("polya-gamma", 2, 1.0, N),
    ("polya-gamma", 2, 0.7, N),
    ("polya-gamma", 3, 1.0, N),
    ("polya-gamma", 3, 0.7, N),
    ("polya-gamma", 2, 1.0, FEW),
    ("joint", 2, 1.0, N),
    ("joint", 3, 1.0, N),
]
# Of the first tier; the limit counts all.
LIMIT = z_limit(N_BATCHES, sum(N_CELLS + 2 * len(AT) * (chain[1] - 1) for chain in CHAINS))
X = 2.0 * np.random.default_rng(14).standard_normal((N, 1))
WAVE = np.sin(1.4 * X[:, 0] + 0.4)
CODES = {2: (WAVE < 0.0).astype(float), 3: 1.0 + np.sign(np.round(WAVE))}


class Exact:
    """Posterior of |W| in cells, and posterior means of s(f) and s(f)^2 at some rows."""

    def __init__(self, n_classes: int, n: int) -> None:
        w = PREDICTIVE.ppf(0.5 + (np.arange(N_NODES) + 0.5) / (2 * N_NODES))
        codes = CODES[n_classes][:n]
        log_p, means = np.zeros(N_NODES), []
        for k in range(n_classes - 1):
            found = [stick_integrals(each, codes, k) for each in w]
            log_p += [one[0] for one in found]
            means.append([one[1] for one in found])
        weights = np.exp(log_p - log_p.max())
        weights /= weights.sum()
        places = np.searchsorted(np.cumsum(weights), np.arange(1, N_CELLS) / N_CELLS)
        self.edges = w[places]
        cells = np.bincount(np.searchsorted(self.edges, w), weights, N_CELLS)
        self.truth = np.concatenate([cells, *(weights @ np.array(each) for each in means)])

    def columns(self, W: np.ndarray, f: np.ndarray) -> np.ndarray:
        """What a chain's draws W (S,), f (S, K, N) say of the same."""
        cells = np.eye(N_CELLS)[np.searchsorted(self.edges, np.abs(W))]
        p = expit(f[:, :, AT])
        parts = [np.concatenate([p[:, k], p[:, k] ** 2], axis=1) for k in range(p.shape[1])]
        return np.concatenate([cells, *parts], axis=1)


exact = functools.cache(Exact)


def stick_integrals(w: float, codes: np.ndarray, k: int) -> tuple[float, np.ndarray]:
    """Log evidence of one function at a frequency, and posterior means at some rows."""
    x, weights = np.polynomial.hermite_e.hermegauss(80)
    beta = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2) / np.sqrt(RIDGE)
    prior = np.outer(weights, weights).ravel()
    f = beta @ np.stack([np.cos(w * X[:, 0]), np.sin(w * X[:, 0])])[:, : len(codes)]
    is_in = codes >= k
    sign = np.where(codes[is_in] == k, 1.0, -1.0)
    density = prior * np.exp(log_expit(sign * f[:, is_in]).sum(axis=1))
    p = expit(f[:, AT])
    means = density @ np.concatenate([p, p**2], axis=1) / density.sum()
    return float(np.log(density.sum())), means


def worst(kind: str, n_classes: int, step: float, n: int = N) -> float:
    base = DiagonalBase(np.array([SCALE]), KAPPA0, NU0)
    sampler = make_classes(
        X[:n], CODES[n_classes][:n], n_classes=n_classes, base=base, has_linear_part=False,
        is_ridge_learned=False, step=step, n_frequencies=1, ridge=RIDGE, kind=KINDS[kind],
    )  # fmt: skip
    rng, W, f = np.random.default_rng(72), [], []
    state = sampler.init(rng)
    for _ in range(N_STEPS + 200):
        state, _ = sampler.step(rng, state)
        w = state.frequencies[0, 0]
        W.append(w)
        coef = state.mean + state.deviations[:, 0]
        f.append(coef @ np.stack([np.cos(w * X[:, 0]), np.sin(w * X[:, 0])]))
    values = exact(n_classes, n).columns(np.array(W[200:]), np.array(f[200:]))
    return largest_z(values, exact(n_classes, n).truth, N_BATCHES)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "n_classes", "step", "n"),
    CHAINS,
)
def test_bnk_8_classes(kind: str, n_classes: int, step: float, n: int) -> None:
    """False alarm 1e-6 over all columns of all chains."""
    assert worst(kind, n_classes, step, n) < LIMIT


def late_omega(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables are drawn at the coefficients of the sweep before."""
    before: list[np.ndarray] = []

    def mutant(rows, proposed, frequencies, coef, weigh, tasks):
        before.append(coef)
        return weighted_products(rows, proposed, frequencies, before[-2:][0], weigh, tasks)

    monkeypatch.setattr(class_sampler, "weighted_products", mutant)


def ignore_the_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """All proposals are accepted."""
    together = class_sampler.decide_together
    monkeypatch.setattr(
        class_sampler, "decide_together", lambda joints, u: together(joints, u - 1e9)
    )


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [late_omega, ignore_the_labels])
def test_bnk_8_sees(mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert worst("polya-gamma", 2, 1.0) > 1.2 * LIMIT
