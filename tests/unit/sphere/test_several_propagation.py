"""Expectation propagation of several classes: beside that of two, sampling and chains."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logit

import mercer
from mercer import KernelGibbsClassifier
from mercer.errors import NumericalError, UsageError
from mercer.likelihoods.label_noise import fixed_rate, learned_rate, row_rates
from mercer.sphere import estimator, fitting, propagation, selection
from mercer.sphere.propagation import (
    SeveralLabels,
    Sites,
    approximate_evidence,
    approximate_posterior,
    approximate_several,
    log_orthant,
)
from mercer.sphere.sampler import signed_rows
from mercer.sphere.selection import settings_of_many

Array = NDArray[np.float64]

ROW_RATES = row_rates(np.linspace(0.01, 0.5, 60))
FEW: dict[str, Any] = {"n_draws": 60, "n_chains": 2, "random_state": 0, "progress": False}


def wedges(n: int, seed: int = 0) -> tuple[Array, NDArray[np.int64], NDArray[np.bool_]]:
    """Rows of two inputs, three classes by direction, every tenth label wrong."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    y = np.digitize(np.arctan2(X[:, 1], X[:, 0]), [-1.0, 1.0])
    is_flipped = np.arange(n) % 10 == 0
    return X, np.where(is_flipped, (y + rng.integers(1, 3, n)) % 3, y), is_flipped


def test_two_classes_are_those_of_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contrast of two classes is a priori what one function is."""
    for name, value in {"_AT_REST": 1e-5, "_NEARLY": 1e-5, "_LOOSER": 1.0}.items():
        monkeypatch.setattr(propagation, name, value)
    rng, n = np.random.default_rng(0), 60
    X = rng.standard_normal((n, 2))
    y = (X[:, 0] > 0.0).astype(np.int64)
    y[:6] = 1 - y[:6]
    L, variance = np.column_stack([X, np.ones(n)]), np.full(n, 0.1)
    for noise in (fixed_rate(0.1, n), learned_rate((1.0, 1.0), n), ROW_RATES):
        own, signed = SeveralLabels(L, variance, noise, y), signed_rows(L, y)
        beside = approximate_evidence(signed, variance, noise)
        assert own.evidence().log_evidence == pytest.approx(beside.log_evidence, abs=0.01)
        (law, *_), (other, *_) = (
            approximate_posterior(*each)[1]
            for each in ((L, variance, noise, y), (signed, variance, noise))
        )
        np.testing.assert_allclose(law.p_wrong, other.p_wrong, atol=5e-3)


def test_marginals_of_sites() -> None:
    """What sites say of every row and of all, beside the covariance of all contrasts at once."""
    rng, n, K = np.random.default_rng(3), 7, 2
    L, A = rng.standard_normal((n, 4)), rng.standard_normal((n, K, K))
    sites = Sites(A @ A.swapaxes(1, 2), rng.standard_normal((n, K)))
    labels = SeveralLabels(L, np.zeros(n), fixed_rate(0.1, n, 3), np.zeros(n, np.int64))
    found = labels._gaussian(sites)
    prior, W = np.kron(np.eye(K), L @ L.T), np.zeros((K, n, K, n))
    W[:, np.arange(n), :, np.arange(n)] = sites.precision
    inside = np.eye(K * n) + prior @ W.reshape(K * n, K * n)
    covariance = np.linalg.solve(inside, prior)
    mean = (covariance @ sites.shift.T.ravel()).reshape(K, n).T
    np.testing.assert_allclose(found.mean, mean, atol=1e-10)
    of_rows = covariance.reshape(K, n, K, n)[:, np.arange(n), :, np.arange(n)]
    np.testing.assert_allclose(found.variance, of_rows, atol=1e-10)
    assert found.log_det == pytest.approx(np.linalg.slogdet(inside)[1], abs=1e-9)


def test_sites_that_run_away_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """No number of halvings mends these; the law before them is what is left."""
    X, y, _ = wedges(30)
    labels = SeveralLabels(X, np.full(30, 0.1), fixed_rate(0.1, 30, 3), y)
    away = Sites(np.tile([[0.0, 1e20], [1e20, 0.0]], (30, 1, 1)), np.zeros((30, 2)))
    with pytest.raises(NumericalError, match="did not come to rest"):
        labels._gaussian(away)
    matched, n_swept = SeveralLabels._matched, list[int]()

    def leading_away(*arguments: Any) -> Any:
        n_swept.append(1)
        swept, wrong = matched(*arguments)
        return (replace(swept, sites=away) if len(n_swept) == 3 else swept), wrong

    monkeypatch.setattr(SeveralLabels, "_matched", leading_away)
    swept = labels.settle(labels.no_sites(), logit(np.full(30, 0.15)), 1e-9)
    assert len(n_swept) == 3
    assert not swept.is_settled
    assert np.isfinite(labels._gaussian(swept.sites).mean).all()


def test_more_features_than_rows_say_what_as_many_say() -> None:
    rng, n = np.random.default_rng(0), 30
    L, (_, y, _) = rng.standard_normal((n, 50)) / 7.0, wedges(30)
    given = np.full(n, 0.1), fixed_rate(0.1, n, 3), y
    found, plain = approximate_several(L, *given), SeveralLabels(L, *given).evidence()
    assert found.log_evidence == pytest.approx(plain.log_evidence, abs=1e-6)


def test_orthants() -> None:
    """One wall has a closed form, two have one for their probability."""
    log_p, slope, bend = log_orthant(np.array([[0.3]]), np.array([[[2.0]]]))
    z = 0.3 / np.sqrt(2.0)
    ratio = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) / np.exp(log_p[0])
    assert np.exp(log_p[0]) == pytest.approx(0.5839977, abs=1e-6)
    assert slope[0, 0] == pytest.approx(ratio / np.sqrt(2.0), rel=1e-9)
    assert bend[0, 0, 0] == pytest.approx(ratio * (ratio + z) / 2.0, rel=1e-9)
    rho = np.array([-0.5, 0.0, 0.5, 0.9])
    covariance = np.array([[[1.0, r], [r, 1.0]] for r in rho])
    exact = 0.25 + np.arcsin(rho) / (2.0 * np.pi)
    np.testing.assert_allclose(
        np.exp(log_orthant(np.zeros((4, 2)), covariance)[0]), exact, atol=0.015
    )


def test_derivatives_of_orthants() -> None:
    rng, step = np.random.default_rng(1), 1e-4
    A, mean = rng.standard_normal((3, 3)), rng.standard_normal((1, 3))
    covariance = (A @ A.T)[np.newaxis]
    slope = log_orthant(mean, covariance)[1][0]
    for k, e in enumerate(step * np.eye(3)):
        ahead, behind = (log_orthant(mean + s * e, covariance)[0][0] for s in (1.0, -1.0))
        assert slope[k] == pytest.approx((ahead - behind) / (2.0 * step), rel=1e-3)


@pytest.mark.parametrize(
    ("n", "n_classes", "rate", "nugget"),
    [(3, 3, 0.1, 0.0), (5, 3, 0.1, 0.1), (5, 3, 0.02, 0.1), (5, 4, 0.02, 0.3)],
)
def test_beside_draws_of_the_prior(n: int, n_classes: int, rate: float, nugget: float) -> None:
    """Evidence and P(wrong) of a few rows, of which most draws of the prior count."""
    rng, n_draws = np.random.default_rng(0), 200_000
    L, y = rng.standard_normal((n, 2)), np.arange(n) % n_classes
    f = rng.standard_normal((n_draws, n_classes, 2)) @ L.T
    f += np.sqrt(nugget) * rng.standard_normal(f.shape)
    is_wrong = f.argmax(axis=1) != y
    p = np.where(is_wrong, rate / (n_classes - 1), 1.0 - rate).prod(axis=1)
    own = SeveralLabels(L, np.full(n, nugget), fixed_rate(rate, n, n_classes), y)
    found = own.evidence()
    assert found.is_settled
    assert found.log_evidence == pytest.approx(np.log(p.mean()), abs=0.12)
    (law,) = approximate_posterior(own.L, own.variance, own.noise, y)[1]
    np.testing.assert_allclose(law.p_wrong, p @ is_wrong / p.sum(), atol=0.06)


@pytest.mark.parametrize("nugget", [0.0, 0.4])
def test_draws_say_what_the_law_says(nugget: float) -> None:
    """Of labels, and where f is drawn with the noise of rows, by which function is largest."""
    X, y, _ = wedges(60)
    L = np.column_stack([X, np.ones(60)])
    _, (law,) = approximate_posterior(L, np.full(60, nugget), fixed_rate(0.1, 60, 3), y)
    G, F, is_wrong = law.draw(np.random.default_rng(0), L, nugget, 400)
    assert G.shape == (400, 3, 3)
    assert F.shape == (400, 3, 60)
    np.testing.assert_allclose(G.sum(axis=1), 0.0, atol=1e-9)
    np.testing.assert_allclose(is_wrong.mean(axis=0), law.p_wrong, atol=1.0 / 400)
    if nugget > 0.0:
        np.testing.assert_array_equal(F.argmax(axis=1) != y, is_wrong)
        noise = F - G @ L.T
        assert noise.var() == pytest.approx(nugget, rel=0.2)


@pytest.fixture(scope="module")
def chains() -> KernelGibbsClassifier:
    X, y, _ = wedges(150)
    return KernelGibbsClassifier(n_draws=300, n_chains=2, random_state=0, progress=False).fit(X, y)


def test_beside_chains(chains: KernelGibbsClassifier) -> None:
    X, y, _ = wedges(150)
    model = KernelGibbsClassifier(sampler="propagation", **FEW).fit(X, y)
    assert "expectation propagation, an approximation" in " ".join(model.notes_)
    difference = np.abs(model.label_error_proba_ - chains.label_error_proba_)
    assert difference.mean() < 0.02
    assert model.noise_rate_ == pytest.approx(chains.noise_rate_, abs=0.02)
    new = np.random.default_rng(2).standard_normal((200, 2))
    assert np.abs(model.predict_proba(new) - chains.predict_proba(new)).mean() < 0.03


def test_the_model_is_the_same_anew_and_from_its_file(tmp_path: Path) -> None:
    X, y, _ = wedges(80)
    names = np.array(["a", "b", "c"])[y]
    model = KernelGibbsClassifier(sampler="propagation", nugget=0.1, **FEW).fit(X, names)
    again = KernelGibbsClassifier(sampler="propagation", nugget=0.1, n_jobs=2, **FEW).fit(X, names)
    model.save(tmp_path / "m.mercer")
    restored = mercer.load(tmp_path / "m.mercer")
    for other in (again, restored):
        np.testing.assert_array_equal(other.label_error_proba_, model.label_error_proba_)
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


def test_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """No draw keeps what it says of every row, and one model, by some of them, gives all draws."""
    for module in (fitting, estimator):
        monkeypatch.setattr(module, "LARGEST_WHOLE", 300)
    monkeypatch.setattr(selection, "_MOST_PROPAGATED", 200)
    monkeypatch.setattr(selection, "_LAST_SUBSET_ROWS", 150)
    monkeypatch.setattr(fitting, "_COMPARED_ROWS", 250)
    X, y, is_flipped = wedges(400)
    model = KernelGibbsClassifier(sampler="propagation", rank=40, **FEW).fit(X, y)
    assert not {"is_wrong", "chosen"} & set(model.posterior_.variables)
    assert len(set(model.posterior_.flat("model"))) == 1
    suspects = np.argsort(-model.label_error_proba_)[:40]
    assert is_flipped[suspects].mean() > 0.8
    np.testing.assert_allclose(model.label_proba_.sum(axis=1), 1.0)
    assert model.noise_rate_ == pytest.approx(0.1, abs=0.03)
    assert (model.predict(X[~is_flipped]) == y[~is_flipped]).mean() > 0.95


def test_rates_of_rows_count() -> None:
    """A label that is known to be right keeps its class."""
    X, y, is_flipped = wedges(200)
    rates = np.where(np.arange(200) < 100, 0.0, 0.2)
    y = np.where(is_flipped & (rates == 0.0), wedges(200, 0)[1], y)
    model = KernelGibbsClassifier(sampler="propagation", noise_rate=rates, nugget=0.4, **FEW).fit(
        X, y
    )
    assert model.label_error_proba_[:100].max() < 1e-9
    assert model.label_error_proba_[100:][is_flipped[100:]].mean() > 0.4


def test_what_it_cannot_do_is_said() -> None:
    X, y, _ = wedges(60)
    with pytest.raises(
        UsageError, match="more than two classes needs one noise rate, or one a row"
    ):
        KernelGibbsClassifier(sampler="propagation", noise_rate="learn per class").fit(X, y)
    with pytest.raises(
        UsageError, match="'tempered' is for two classes; use 'auto', 'hmc', 'lines'"
    ):
        KernelGibbsClassifier(sampler="tempered").fit(X, y)


def test_commands_take_it_of_many_rows() -> None:
    assert (
        settings_of_many(2000, 3) == settings_of_many(5000, 2) == settings_of_many(5000, 13) == {}
    )
    assert settings_of_many(2001, 3) == {"rank": 512, "sampler": "propagation"}
    assert settings_of_many(5001, 7) == {"rank": 256, "sampler": "propagation"}
    assert settings_of_many(5001, 13) == {"rank": 512}
    assert settings_of_many(2**20, 3) == {"rank": 512}
    for rate in ("learn per class", {"a": 0.1}):
        assert settings_of_many(3000, 3, rate) == {}
        assert settings_of_many(6000, 3, rate) == {"rank": 512}
        assert settings_of_many(6000, 2, rate)["sampler"] == "propagation"
    assert settings_of_many(3000, 3, 0.1)["sampler"] == "propagation"


def test_labels_that_follow_nothing() -> None:
    """Sites wander; what they say by then is said, with a note where they did not rest."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 2)), rng.integers(0, 3, 300)
    model = KernelGibbsClassifier(
        sampler="propagation", rank=40, lengthscale=0.5, nugget=0.0, **FEW
    ).fit(X, y)
    is_rough = any("had not come to rest" in note for note in model.notes_)
    assert is_rough or model.noise_rate_ > 0.3
    assert np.isfinite(model.label_proba_).all()
    np.testing.assert_allclose(model.label_proba_.sum(axis=1), 1.0)
