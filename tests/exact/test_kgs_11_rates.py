"""KGS-11, RATE-1 and -2: unknown rates integrated out, their draws; rates of true classes; audit.

RATE-1: a law of labels, whatever the classifier, and evidences by enumeration of sign patterns.
RATE-2: symmetries. RATE-3: on Pima not all of a class are suspect. The mutant of all three has
rates of the recorded class, as mercer once had them.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mercer.likelihoods import label_noise
from mercer.likelihoods.label_noise import (
    Confusion,
    LabelNoise,
    class_rates,
    fixed_rate,
    learned_class_rates,
    learned_confusion,
    learned_rate,
    row_rates,
)
from mercer.sphere import estimator
from mercer.sphere.estimator import KernelGibbsClassifier
from mercer.sphere.several import SeveralModel
from support.several_cases import entangled, make_several
from support.several_cases import pattern_number as several_number
from support.several_cases import pattern_posterior as several_posterior
from support.sphere_cases import (
    RateGrid,
    error_law,
    noisy_gram,
    pattern_posterior,
    pattern_probabilities,
    patterns,
    signed,
)
from support.statistics import dkw_distance, dkw_limit, largest_z, tiers, z_limit

PRIORS = [(1.0, 1.0), (1.0, 9.0), (0.5, 2.0), (3.0, 1.5)]


def weight_error(prior: tuple[float, float], n: int, n_classes: int, grid: RateGrid) -> float:
    """Largest error in nats of the weight of e = 0..n errors, from steps and ``log_no_errors``."""
    noise = learned_rate(prior, n, n_classes)
    is_wrong = np.tri(n + 1, n, -1, dtype=bool)  # row e has e errors
    log_weight = noise.log_no_errors - noise.cost(is_wrong)
    return max(abs(log_weight[e] - grid.log_weight(e, n)) for e in range(n + 1))


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("prior", PRIORS)
def test_kgs_11_rate_integrated_out(prior: tuple[float, float], n_classes: int) -> None:
    grid = RateGrid.of(prior, n_classes)
    assert weight_error(prior, 12, n_classes, grid) < 1e-9


def test_kgs_11_sees_another_prior() -> None:
    assert weight_error((1.0, 3.0), 12, 2, RateGrid.of((1.0, 1.0))) > 0.1


def test_kgs_11_sees_a_prior_that_is_not_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = label_noise.log_incomplete_beta
    monkeypatch.setattr(label_noise, "log_incomplete_beta", lambda a, b, x: whole(a, b, 1.0))
    assert weight_error((1.0, 3.0), 12, 2, RateGrid.of((1.0, 3.0))) > 0.1


@pytest.mark.parametrize("n_classes", [2, 4])
def test_kgs_11_expected_rates(n_classes: int) -> None:
    prior, n = (1.5, 4.0), 60
    grid, noise = RateGrid.of(prior, n_classes), learned_rate(prior, n, n_classes)
    for e in (0, 1, 20, 59, 60):
        expected = noise.expected_rates(np.array([e]))[0]
        assert expected == pytest.approx(grid.posterior(e, n) @ grid.q, rel=1e-9)


def rate_distance(
    noise, e: int, n: int, prior: tuple[float, float], n_draws: int = 20_000
) -> float:
    """DKW distance of draws of the rate, given e errors, to the grid's posterior."""
    grid = RateGrid.of(prior, noise.n_classes)
    cumulative = np.cumsum(grid.posterior(e, n))
    draws = noise.draw_rates(np.random.default_rng(4), np.full((n_draws, 1), e))[:, 0]
    assert ((draws > 0.0) & (draws <= (noise.n_classes - 1) / noise.n_classes)).all()
    return dkw_distance(draws, lambda q: np.interp(q, grid.q, cumulative))


# With 2000 rows and 1990 errors the mass below 1/2 is about e^-1300: an inverse distribution
# function that is not in logarithms has nothing to invert.
CASES = [(0, 10, 2), (3, 10, 2), (10, 10, 2), (600, 1000, 2), (1990, 2000, 2), (700, 1000, 3)]


@pytest.mark.parametrize("n_draws", tiers(5_000, 20_000))
def test_kgs_11_draws_of_the_rate(n_draws: int) -> None:
    """False alarm 1e-6 over the family."""
    prior = (1.0, 3.0)
    for e, n, n_classes in CASES:
        distance = rate_distance(learned_rate(prior, n, n_classes), e, n, prior, n_draws)
        assert distance < dkw_limit(n_draws, len(CASES))


def test_kgs_11_draws_see_one_error_left_out() -> None:
    prior = (1.0, 3.0)
    assert rate_distance(learned_rate(prior, 10), 2, 10, (2.0, 3.0)) > 2.0 * dkw_limit(20_000, 6)


def test_kgs_11_evidence_with_the_rate_integrated_out() -> None:
    """Of a whole problem: enumeration with omega(e) against quadrature of Z(q) over the prior."""
    G, prior = signed(*noisy_gram(5)), (1.0, 3.0)
    grid, e, law = RateGrid.of(prior, size=4001), np.arange(6), error_law(G)
    log_z = [np.log(law @ (q**e * (1.0 - q) ** (5 - e))) for q in grid.q]
    assert pattern_posterior(G, learned_rate(prior, 5))[1] == pytest.approx(
        np.logaddexp.reduce(grid.log_prior + log_z), abs=1e-9
    )


# --- RATE-1: rates belong to the true class ------------------------------------------------------

RATES, PRIOR = np.array([0.1, 0.3]), (1.5, 3.0)
MATRIX = np.array([[0.6, 0.3, 0.1], [0.05, 0.9, 0.05], [0.2, 0.3, 0.5]])


def of_the_recorded_class(labels: np.ndarray, is_learned: bool) -> LabelNoise:
    """The mutant: a row recorded y is wrong at the rate of y, and the costs of classes add up."""
    if not is_learned:
        return row_rates(RATES[labels])
    sizes = np.bincount(labels, minlength=2)
    zero, one = (learned_rate(PRIOR, int(size)) for size in sizes)
    right = learned_class_rates(PRIOR, labels)
    step = (zero.total[0] + one.total[0, :, 0])[np.newaxis]
    return replace(right, step=step, log_no_errors=zero.log_no_errors + one.log_no_errors)


def law_of(recorded: np.ndarray, kind: str) -> Callable[[np.ndarray], float]:
    """Log probability of recorded labels, as a function of true classes, by one of our noises."""
    if kind == "matrix":
        return Confusion(recorded, MATRIX).log_likelihood
    if kind == "learned matrix":
        return learned_confusion(PRIOR, recorded, 3).log_likelihood
    noise = {
        "dict": lambda: class_rates(RATES, recorded),
        "learned": lambda: learned_class_rates(PRIOR, recorded),
        "dict, recorded": lambda: of_the_recorded_class(recorded, is_learned=False),
        "learned, recorded": lambda: of_the_recorded_class(recorded, is_learned=True),
    }[kind]()
    return lambda true: float(noise.log_no_errors - noise.cost(true != recorded))


def total_of_labels(kind: str, n_classes: int, n: int) -> np.ndarray:
    """Sum over all labels of their probability, for true classes in any numbers."""
    laws = [law_of(np.array(y), kind) for y in itertools.product(range(n_classes), repeat=n)]
    true = itertools.combinations_with_replacement(range(n_classes), n)
    return np.array([sum(math.exp(law(np.array(s))) for law in laws) for s in true])


@pytest.mark.parametrize(
    ("kind", "n_classes", "n"),
    [
        ("dict", 2, 5),
        ("learned", 2, 5),
        ("matrix", 3, 4),
        ("learned matrix", 3, 3),
        pytest.param("learned matrix", 3, 4, marks=pytest.mark.slow),
    ],
)
def test_rate_1_labels_have_a_law(kind: str, n_classes: int, n: int) -> None:
    np.testing.assert_allclose(total_of_labels(kind, n_classes, n), 1.0)


@pytest.mark.parametrize("kind", ["dict, recorded", "learned, recorded"])
def test_rate_1_sees_rates_of_the_recorded_class(kind: str) -> None:
    """p(0) + p(1) is 1.2 of a true first and .8 of a true second."""
    assert np.abs(total_of_labels(kind, 2, 5) - 1.0).max() > 0.2


def evidence_error(kind: str, n: int = 6) -> float:
    """Of sign patterns, enumerated: our evidence against rates integrated on a grid, in nats."""
    G, y = noisy_gram(n)
    labels, grid = (y > 0.0).astype(np.int64), RateGrid.of(PRIOR, size=4001)
    noise = {
        "dict": class_rates(RATES, labels),
        "learned": learned_class_rates(PRIOR, labels),
        "dict, recorded": of_the_recorded_class(labels, is_learned=False),
        "learned, recorded": of_the_recorded_class(labels, is_learned=True),
    }[kind]
    G, total = signed(G, y), 0.0
    for is_wrong, p in zip(patterns(n), pattern_probabilities(G), strict=True):
        true = np.where(is_wrong, 1 - labels, labels)
        log_labels = 0.0
        for c in (0, 1):
            n_wrong, n_all = int(is_wrong[true == c].sum()), int((true == c).sum())
            if kind.startswith("dict"):
                log_labels += n_wrong * np.log(RATES[c]) + (n_all - n_wrong) * np.log1p(-RATES[c])
            else:
                log_labels += grid.log_weight(n_wrong, n_all)
        total += p * math.exp(log_labels)
    return abs(pattern_posterior(G, noise)[1] - math.log(total))


@pytest.mark.parametrize("kind", ["dict", "learned"])
def test_rate_1_evidence(kind: str) -> None:
    assert evidence_error(kind) < 1e-7
    assert evidence_error(f"{kind}, recorded") > 0.05


def test_rate_1_a_learned_matrix_by_quadrature() -> None:
    """Rows with a flat law of the wrong labels: integrals of polynomials over the cut simplex."""
    prior, recorded = (2.0, 2.0), np.array([0, 0, 1, 1, 2, 2])
    nodes, weights = np.polynomial.legendre.leggauss(30)

    def integral(right: int, wrong: tuple[int, int]) -> float:
        """Of t^right a^wrong_0 b^wrong_1 t, t = 1 - a - b at least as large as a and b."""
        total = 0.0
        for low, high in ((0.0, 1.0 / 3.0), (1.0 / 3.0, 0.5)):
            a = low + (high - low) * 0.5 * (nodes + 1.0)
            top = np.minimum(0.5 * (1.0 - a), 1.0 - 2.0 * a)
            b = top[:, np.newaxis] * 0.5 * (nodes + 1.0)
            t = 1.0 - a[:, np.newaxis] - b
            values = t ** (right + 1) * a[:, np.newaxis] ** wrong[0] * b ** wrong[1]
            total += (high - low) / 2.0 * (weights * 0.5 * top * (values @ weights)).sum()
        return total

    for true in ([0, 0, 1, 1, 2, 2], [1, 0, 2, 1, 2, 0], [0] * 6):
        log_law = 0.0
        for c in range(3):
            seen = np.bincount(recorded[np.array(true) == c], minlength=3)
            others = tuple(int(seen[y]) for y in range(3) if y != c)
            log_law += math.log(integral(int(seen[c]), others) / integral(0, (0, 0)))
        noise = learned_confusion(prior, recorded, 3)
        assert noise.log_likelihood(np.array(true)) == pytest.approx(log_law, abs=1e-9)


def pattern_z(prior: tuple[float, float], n_steps: int) -> float:
    """Largest |z| of the shares of 27 patterns, of a chain that draws the matrix beside them."""
    base = entangled("learned")
    labels = base.labels
    model = SeveralModel(base.L, labels, learned_confusion(prior, labels, 3))
    exact = several_posterior(SeveralModel(base.L, labels, learned_confusion(PRIOR, labels, 3)))
    sampler, rng = make_several(model, ("lines", "ellipse")), np.random.default_rng(66)
    state, seen = sampler.init(rng), np.empty((40, n_steps // 40), np.int64)
    for k in range(seen.size):
        state, _ = sampler.step(rng, state)
        seen.flat[k] = several_number(state.point[:, :3])
    shares = np.array([(seen == k).mean(axis=1) for k in range(27)]).T
    is_large = exact > 0.01
    return largest_z(shares[:, is_large], exact[is_large], 40)


@pytest.mark.parametrize("n_steps", tiers(4_000, 20_000))
def test_rate_1_a_chain_with_its_matrix(n_steps: int) -> None:
    """Against patterns weighted by the integrated likelihood; false alarm 1e-6."""
    assert pattern_z(PRIOR, n_steps) < z_limit(40, 27)


@pytest.mark.slow
def test_rate_1_a_chain_sees_another_prior() -> None:
    assert pattern_z((30.0, 1.0), 20_000) > 2.0 * z_limit(40, 27)


# --- RATE-2: symmetries --------------------------------------------------------------------------


def log_evidence(make, y: np.ndarray, G: np.ndarray) -> float:
    """Of labels -1 and +1 under a noise made from them as 0 and 1."""
    return pattern_posterior(signed(G, y), make((y > 0.0).astype(np.int64)))[1]


def test_rate_2_swapping_the_classes_with_their_rates() -> None:
    G, y = noisy_gram(5)
    swapped = log_evidence(lambda labels: class_rates(RATES[::-1], labels), -y, G)
    assert log_evidence(lambda labels: class_rates(RATES, labels), y, G) == pytest.approx(swapped)
    learned = [log_evidence(lambda v: learned_class_rates(PRIOR, v), s * y, G) for s in (1, -1)]
    assert learned[0] == pytest.approx(learned[1])


def test_rate_2_equal_rates_are_one_rate() -> None:
    G, y = noisy_gram(5)
    one = pattern_posterior(signed(G, y), fixed_rate(0.2, 5))
    noise = class_rates(np.array([0.2, 0.2]), (y > 0.0).astype(np.int64))
    two = pattern_posterior(signed(G, y), noise)
    np.testing.assert_allclose(one[0], two[0])
    assert one[1] == pytest.approx(two[1])


def test_rate_2_rates_that_sum_to_one_say_nothing() -> None:
    """A label is + with the same probability whatever the class: evidence by counting."""
    G, y = noisy_gram(5)
    n_plus = int((y > 0.0).sum())
    expected = n_plus * np.log(0.3) + (5 - n_plus) * np.log(0.7)
    value = log_evidence(lambda labels: class_rates(np.array([0.3, 0.7]), labels), y, G)
    assert value == pytest.approx(expected, abs=1e-12)
    mutant = log_evidence(lambda labels: row_rates(np.array([0.3, 0.7])[labels]), y, G)
    assert abs(mutant - expected) > 0.05


def test_rate_2_rates_drawn_given_errors() -> None:
    """Of each true class: wrong rows among those that the classifier says to be of it."""
    labels, prior = np.array([0] * 30 + [1] * 20), (1.0, 3.0)
    noise, grid = learned_class_rates(prior, labels), RateGrid.of(prior)
    errors = np.full((20_000, 2), (2, 9))  # 2 recorded 0 are said to be 1, 9 recorded 1 to be 0
    for c, n_wrong, n_all in ((0, 9, 37), (1, 2, 13)):
        posterior = grid.posterior(n_wrong, n_all)
        assert noise.expected_rates(errors[:1])[0, c] == pytest.approx(posterior @ grid.q)
        cumulative = np.cumsum(posterior)
        drawn = noise.draw_rates(np.random.default_rng(4), errors)[:, c]
        distance = dkw_distance(drawn, lambda q, own=cumulative: np.interp(q, grid.q, own))
        assert distance < dkw_limit(20_000, 2)


# --- RATE-3: a table on which rates of the recorded class made all diabetics suspect --------------


def audited_pima() -> tuple[float, float]:
    """Of Ripley's 200 rows: share of draws with all of a class wrong, and error on his 332."""
    from reproduce.papers.matrices import named_arrays

    (X, y), (X_test, y_test) = named_arrays("pima_tr"), named_arrays("pima_te")
    model = KernelGibbsClassifier(
        noise_prior=PRIOR, lengthscale="median", nugget=0.4, n_draws=50, n_warmup=50, n_chains=2,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    is_wrong = model.posterior_.flat("is_wrong")
    is_all = is_wrong[:, y == 0].all(axis=1) | is_wrong[:, y == 1].all(axis=1)
    return float(is_all.mean()), float(np.mean(model.predict(X_test) != y_test))


@pytest.mark.skipif("MERCER_DATA" not in os.environ, reason="MERCER_DATA is not set")
def test_rate_3_no_class_of_pima_is_suspect_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the default ``noise_rate``, which compares one rate with one for each class."""
    share, error = audited_pima()
    assert share == 0.0
    assert error < 0.25
    monkeypatch.setattr(
        estimator,
        "learned_class_rates",
        lambda prior, labels, **_: of_the_recorded_class(labels, is_learned=True),
    )
    share, _ = audited_pima()
    assert share > 0.3


def audit_error(G: np.ndarray, y: np.ndarray, q: float, used: float) -> float:
    """Largest error over rows of p(1 - q)/(p(1 - q) + (1 - p)q), the leave-one-out probability.

    p is the posterior probability that label i is wrong; the leave-one-out one is that of
    y_i f_i <= 0 given the labels of all other rows. ``used`` is the rate of the fit behind p.
    """
    n, worst = len(y), 0.0
    is_wrong = patterns(n)
    p = pattern_posterior(signed(G, y), fixed_rate(used, n))[0] @ is_wrong
    for i in range(n):
        others = np.full(n, q)
        others[i] = 0.5  # the label says nothing
        left_out = (
            pattern_posterior(signed(G, y), label_noise.row_rates(others))[0] @ is_wrong[:, i]
        )
        identity = p[i] * (1.0 - q) / (p[i] * (1.0 - q) + (1.0 - p[i]) * q)
        worst = max(worst, abs(left_out - identity))
    return worst


def test_kgs_11_leave_one_out_identity() -> None:
    assert audit_error(*noisy_gram(5), 0.15, 0.15) < 1e-10


def test_kgs_11_identity_sees_another_rate() -> None:
    assert audit_error(*noisy_gram(5), 0.15, 0.1) > 0.01
