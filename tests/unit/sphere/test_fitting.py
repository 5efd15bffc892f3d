"""From candidates to draws: averaged over models, with what they say of the noise."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest
from sklearn.base import clone

from mercer.kernels.names import kernel_named
from mercer.likelihoods.label_noise import (
    LabelNoise,
    fixed_rate,
    learned_class_rates,
    learned_rate,
    row_rates,
)
from mercer.sampling.driver import RunOptions
from mercer.sphere import fitting, selection
from mercer.sphere.estimator import KernelGibbsClassifier
from mercer.sphere.fitting import Problem, fit_sphere
from mercer.sphere.sampler import SphereModel
from mercer.sphere.selection import Candidate
from mercer.sphere.space import KernelSpace, fit_covariance
from mercer.sphere.tempering import Tempering

RNG = np.random.default_rng(1)
X = RNG.standard_normal((30, 2))
LABELS = (X[:, 0] + 0.3 * RNG.standard_normal(30) > 0.0).astype(np.int64)
OPTIONS = RunOptions(12, 8, 2, 1, 5, progress=False)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_RUNS", (Tempering(10, 12),))
    monkeypatch.setattr(selection, "_HOPELESS", 100.0)


def rbf(nugget: float) -> Candidate:
    covariance = fit_covariance(kernel_named("rbf"), 2.0, X, 1.0)
    return Candidate("rbf", 2.0, nugget, KernelSpace(covariance, X, nugget))


def problem(noise=None, candidates=None, sampler: str = "auto", labels=LABELS) -> Problem:
    return Problem(
        candidates or (rbf(0.1),), labels, noise or learned_rate((1.0, 1.0), 30),
        lambda rows: learned_rate((1.0, 1.0), len(rows)), sampler,
    )  # fmt: skip


def test_draws_hold_what_predictions_need() -> None:
    fitted = fit_sphere(problem(), OPTIONS)
    variables = fitted.draws.variables
    assert {name: values.shape[2:] for name, values in variables.items()} == {
        "coefficients": (30,), "length": (), "is_wrong": (30,), "margin": (20,), "model": (),
        "n_errors": (), "noise_rate": (1,), "log_likelihood": (),
    }  # fmt: skip
    assert (fitted.draws.n_chains, fitted.draws.n_draws) == (2, 12)
    assert fitted.draws.monitored == ("n_errors", "noise_rate", "margin")
    assert fitted.draws.entry_names("margin")[0].startswith("margin[row ")
    assert (np.abs(variables["margin"]) <= 1.0).all()
    np.testing.assert_array_equal(variables["n_errors"], variables["is_wrong"].sum(axis=-1))
    noise = learned_rate((1.0, 1.0), 30)
    expected = noise.log_no_errors - noise.cost(variables["is_wrong"])
    np.testing.assert_allclose(variables["log_likelihood"], expected)
    assert ((variables["noise_rate"] > 0.0) & (variables["noise_rate"] < 0.5)).all()


@pytest.mark.parametrize("candidates", [(rbf(0.1),), (rbf(0.1), rbf(0.4))], ids=len)
def test_many_rows_have_one_rate_and_the_notes_say_so(
    candidates: tuple[Candidate, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One candidate is not compared then, and several are on some of the rows."""
    said = "one noise rate for all rows: above 5000"
    one = problem(candidates=candidates)
    assert not any(said in note for note in fitting._choose(one, OPTIONS).notes)
    monkeypatch.setattr(fitting, "LARGEST_WHOLE", 20)
    monkeypatch.setattr(fitting, "_COMPARED_ROWS", 15)
    many = dataclasses.replace(one, noise_of=None if len(candidates) == 1 else one.noise_of)
    assert sum(said in note for note in fitting._choose(many, OPTIONS).notes) == 1
    known = dataclasses.replace(many, noise=fixed_rate(0.1, 30))
    assert not any(said in note for note in fitting._choose(known, OPTIONS).notes)


def test_draws_are_averaged_over_one_rate_and_one_a_class() -> None:
    """Each with its own costs; those of one rate have it for both classes."""
    by_class = learned_class_rates((1.0, 1.0), LABELS)
    both = dataclasses.replace(problem(candidates=(rbf(0.1), rbf(0.4))), by_class=by_class)
    fitted = fit_sphere(both, dataclasses.replace(OPTIONS, n_draws=60))
    rates, variables = fitted.draws.variables["noise_rate"], fitted.draws.variables
    assert rates.shape == (2, 60, 2)
    is_one = (rates[..., 0] == rates[..., 1])[0]
    assert 0 < is_one.sum() < 60
    np.testing.assert_array_equal(is_one, rates[1, :, 0] == rates[1, :, 1])
    for chosen, noise in ((is_one, both.noise), (~is_one, by_class)):
        expected = noise.log_no_errors - noise.cost(variables["is_wrong"][:, chosen])
        np.testing.assert_allclose(variables["log_likelihood"][:, chosen], expected)
    assert len(fitted.models) == len({id(model) for model in fitted.models}) <= 2
    assert variables["model"].max() == len(fitted.models) - 1
    share = is_one.mean()
    (said,) = [note for note in fitted.notes if note.startswith("noise by evidence")]
    assert "one rate (" in said
    assert "and a rate for each class (" in said
    assert int(said.split("(")[1].split("%")[0]) / 100.0 == pytest.approx(share, abs=0.06)


def test_a_chain_that_one_model_lacks_is_left_out_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where it was out of time in the warm-up of that model."""
    drawn = fitting._sample

    def cut(one, candidate, rows, options):
        found, sampler = drawn(one, candidate, rows, options)
        n_chains = 1 if options.first_chain else 2
        draws = found.draws.first_chains(n_chains)
        note = "1 chain left out" if n_chains == 1 else "whole"
        return dataclasses.replace(found, draws=draws, notes=(note,)), sampler

    both = problem(candidates=(rbf(0.1), rbf(0.4)))
    whole = fit_sphere(both, OPTIONS)
    monkeypatch.setattr(fitting, "_sample", cut)
    fitted = fit_sphere(both, OPTIONS)
    assert "1 chain left out" in fitted.notes
    assert (fitted.draws.n_chains, fitted.draws.n_draws) == (1, 12)
    for name, values in fitted.draws.variables.items():
        if name != "noise_rate":  # drawn after the chains
            np.testing.assert_array_equal(values, whole.draws.variables[name][:1])


def test_many_rows_with_little_time_have_one_model_and_a_short_warm_up(monkeypatch) -> None:
    monkeypatch.setattr(fitting, "_HASTY_WARMUP", 5)
    many = problem(candidates=(rbf(0.1), rbf(0.4)))
    limited = dataclasses.replace(OPTIONS, n_draws=60, deadline=time.monotonic() + 600.0)
    assert not any("for max_seconds" in note for note in fit_sphere(many, limited).notes)
    monkeypatch.setattr(fitting, "LARGEST_WHOLE", 20)
    monkeypatch.setattr(fitting, "_COMPARED_ROWS", 15)
    assert len(fit_sphere(many, dataclasses.replace(limited, deadline=None)).models) == 2
    hasty = fit_sphere(many, limited)
    assert len(hasty.models) == 1
    assert fitting._HASTY.format(5) in hasty.notes


def test_trajectories_of_a_draw() -> None:
    """One where every label is right; where some may be wrong more, and fewer for many rows."""

    def count(n: int, noise: LabelNoise) -> int:
        return fitting._n_trajectories(SphereModel(np.zeros((n, 2)), noise))

    assert count(50, fixed_rate(0.0, 50)) == 1
    assert count(50, fixed_rate(0.1, 50)) == count(50, learned_rate((1.0, 1.0), 50)) == 8
    assert count(1000, fixed_rate(0.1, 1000)) == 4
    assert count(5000, fixed_rate(0.1, 5000)) == 2


def test_models_warm_up_for_their_share() -> None:
    assert fitting._part_of_warmup(150, 1.0) == 150
    assert fitting._part_of_warmup(150, 0.7) == 105
    assert fitting._part_of_warmup(150, 0.1) == 30
    assert fitting._part_of_warmup(20, 0.1) == 20


def test_coefficients_give_the_values_that_were_drawn() -> None:
    fitted = fit_sphere(problem(), OPTIONS)
    space, draws = rbf(0.1).space, fitted.draws
    G = space.covariance.gram(X) + 0.1 * np.eye(30)
    f = draws.flat("coefficients") @ G * np.where(LABELS == 1, 1.0, -1.0)
    np.testing.assert_array_equal(f <= 0.0, draws.flat("is_wrong"))
    np.testing.assert_allclose(np.linalg.norm(
        draws.flat("coefficients") @ space.design().L, axis=1), draws.flat("length"))  # fmt: skip
    p_wrong = draws.flat("is_wrong").mean(axis=0)
    own = fitted.label_proba[np.arange(30), LABELS]
    np.testing.assert_allclose(own, 1.0 - p_wrong)


@pytest.mark.parametrize(
    ("noise", "n_rates", "is_monitored"),
    [
        (fixed_rate(0.2, 30), 1, False),
        (learned_class_rates((1.0, 1.0), LABELS), 2, True),
        (row_rates(np.linspace(0.05, 0.4, 30)), 1, False),
    ],
)
def test_rates_of_every_kind(noise, n_rates: int, is_monitored: bool) -> None:
    draws = fit_sphere(problem(noise), OPTIONS).draws
    assert draws.variables["noise_rate"].shape == (2, 12, n_rates)
    assert ("noise_rate" in draws.monitored) == is_monitored


def test_models_are_averaged_by_evidence() -> None:
    """Each draw says which model it came from; all chains have the same shares."""
    candidates = (rbf(0.0), rbf(0.05), rbf(0.1))
    fitted = fit_sphere(problem(candidates=candidates), OPTIONS)
    model = fitted.draws.variables["model"]
    assert model.shape == (2, 12)
    np.testing.assert_array_equal(model[0], model[1])
    assert set(np.unique(model)) == set(range(len(fitted.models)))
    assert len(fitted.models) >= 2
    assert [one.candidate for one in fitted.compared][: len(fitted.models)] == list(fitted.models)
    assert len(np.unique(fitted.draws.variables["length"])) == 24  # no two chains are alike


def test_draws_are_split_by_weight() -> None:
    assert fitting._allot(np.array([0.7, 0.3]), 10) == [7, 3]
    assert fitting._allot(np.array([0.94, 0.06]), 4) == [3, 1]
    assert fitting._allot(np.array([1.0]), 5) == [5]
    assert fitting._allot(np.array([0.34, 0.33, 0.33]), 2) == [1, 1, 1]


@pytest.mark.parametrize("sampler", ["auto", "hmc", "lines", "great_circle", "tempered"])
def test_every_sampler_of_two_classes(sampler: str) -> None:
    fitted = fit_sphere(problem(sampler=sampler), OPTIONS)
    assert fitted.draws.n_total == 24
    assert np.isfinite(fitted.draws.flat("coefficients")).all()
    assert fitted.label_proba[np.arange(30), LABELS].mean() > 0.7


def test_the_seed_decides() -> None:
    one, two = (fit_sphere(problem(), OPTIONS).draws.flat("coefficients") for _ in range(2))
    np.testing.assert_array_equal(one, two)
    other = RunOptions(12, 8, 2, 1, 6, progress=False)
    assert (fit_sphere(problem(), other).draws.flat("coefficients") != one).any()


def test_without_a_comparison() -> None:
    plain = Problem((rbf(0.1),), LABELS, learned_rate((1.0, 1.0), 30), None, "auto")
    fitted = fit_sphere(plain, OPTIONS)
    assert fitted.compared == ()
    assert len(fitted.models) == 1


def test_several_classes() -> None:
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    fitted = fit_sphere(problem(learned_rate((1.0, 1.0), 30, 3), labels=labels), OPTIONS)
    assert fitted.draws.variables["coefficients"].shape == (2, 12, 3, 30)
    np.testing.assert_allclose(fitted.label_proba.sum(axis=1), 1.0)
    assert (fitted.label_proba.argmax(axis=1) == labels).mean() > 0.7


def test_folds_start_from_what_all_rows_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run over noise levels; what is left of other arguments is not used."""
    whole = KernelGibbsClassifier(
        lengthscale=2.0, n_draws=12, n_warmup=8, n_chains=1, random_state=0
    ).fit(X, LABELS)
    assert whole._leaves == "evidence"
    assert not KernelGibbsClassifier(kernel="rbf", rank=5)._leaves
    part = clone(whole)
    part._nearby = whole._left
    runs = []
    climb = selection.climb_errors
    monkeypatch.setattr(
        selection, "climb_errors", lambda *rest: runs.append(len(rest)) or climb(*rest)
    )
    part.fit(X[3:], LABELS[3:])
    assert runs == []
    assert not any("measured before" in note for note in part.notes_)
    other = clone(whole).set_params(nugget=0.1)
    other._nearby = whole._left
    other.fit(X[3:], LABELS[3:])
    assert len(runs) == 1
