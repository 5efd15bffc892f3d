from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.errors import DataError, UsageError
from mercer.spectral.classifier import BaNKClassifier
from support.devices import device_for_tests
from support.spectral_class_fits import NAMES, tiny, waves
from support.spectral_fits import PAPER

X, Y = waves()
Z = waves(25, seed=31)[0]
KINDS = {
    "default": {},
    "paper": PAPER,
    "full": {"base_measure": "full", "concentration": "learn"},
}


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest) -> BaNKClassifier:
    return tiny(**KINDS[request.param]).fit(X, Y)


def test_paper_settings() -> None:
    paper = BaNKClassifier.paper()
    assert (paper.n_frequencies, paper.ridge_precision, paper.n_chains) == (384, 0.5, 1)
    assert (paper.proposals, paper.base_measure, paper.standardize) == ("prior", "full", "std")


def test_trajectories_where_rows_are_few() -> None:
    """The rows of the spectrum count."""
    of = BaNKClassifier()._class_settings
    assert (of(1499, 2).n_leapfrog, of(1500, 2).n_leapfrog) == (20, 0)
    assert BaNKClassifier(kernel_rows=500)._class_settings(10**6, 2).n_leapfrog == 20
    assert BaNKClassifier(kernel_rows=None)._class_settings(10**6, 2).n_leapfrog == 0
    assert BaNKClassifier(n_leapfrog=3)._class_settings(10**6, 2).n_leapfrog == 3
    assert BaNKClassifier.paper()._class_settings(100, 2).n_leapfrog == 0


@pytest.mark.parametrize("n", [0, 2, "auto"])
def test_trajectories_are_told(n: int | str) -> None:
    stats = tiny(n_leapfrog=n).fit(X, Y).posterior_.stats
    assert ("trajectory_acceptance" in stats) == (n != 0)
    if n != 0:
        assert ((stats["trajectory_acceptance"] >= 0) & (stats["trajectory_acceptance"] <= 1)).all()
        assert (stats["trajectory_step"] > 0.0).all()


@pytest.mark.parametrize("bad", [-1, 1.5, "many", None])
def test_other_lengths_of_trajectories_are_refused(bad: object) -> None:
    with pytest.raises(UsageError, match="n_leapfrog"):
        tiny(n_leapfrog=bad).fit(X, Y)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("n_classes", "lowest"), [(2, 0.85), (3, 0.8), (4, 0.7)])
def test_it_learns(n_classes: int, lowest: float) -> None:
    """On rows it has not seen, and its probabilities are worth something."""
    rows, labels = waves(500, n_classes=n_classes)
    fitted = tiny(n_frequencies=30).fit(rows[:300], labels[:300])
    assert fitted.score(rows[300:], labels[300:]) > lowest
    proba = fitted.predict_proba(rows[300:])
    at = np.arange(200), np.searchsorted(fitted.classes_, labels[300:])
    shares = np.unique(labels[:300], return_counts=True)[1] / 300
    assert -np.log(proba[at]).mean() < 0.6 * -(shares @ np.log(shares))


def test_attributes(model: BaNKClassifier) -> None:
    assert model.n_frequencies_ == 6
    assert list(model.class_order_) == ["birch", "ash"]
    assert model.posterior_.n_total == 20
    assert "log_likelihood" in str(model.posterior_.summary())
    assert sum({row[0]: row[1] for row in model.components_.rows}.values()) == pytest.approx(1.0)


def test_answers_agree(model: BaNKClassifier) -> None:
    proba, log_odds = model.predict_proba(Z), model.decision_function(Z)
    np.testing.assert_allclose(log_odds, np.log(proba[:, 1] / proba[:, 0]))
    np.testing.assert_array_equal(model.predict(Z), NAMES[(log_odds > 0.0).astype(int)])
    mean, variance = model.latent(Z)
    assert mean.shape == variance.shape == (25,)
    assert (variance > 0.0).all()
    assert np.corrcoef(mean, log_odds)[0, 1] > 0.9


def test_several_classes_are_told_apart_by_their_frequency() -> None:
    rows, labels = waves(90, n_classes=3)
    fitted = tiny().fit(rows, labels)
    counts = np.unique(labels, return_counts=True)[1]
    np.testing.assert_array_equal(fitted.class_order_, NAMES[:3][np.argsort(-counts)])
    mean, variance = fitted.latent(Z)
    assert mean.shape == variance.shape == (25, 2)
    proba = fitted.predict_proba(Z)
    np.testing.assert_array_equal(fitted.decision_function(Z), np.log(proba))
    first = int(np.argmax(counts))
    assert np.corrcoef(mean[:, 0], proba[:, first])[0, 1] > 0.9


def test_thresholds_close_to_the_median_are_seen() -> None:
    """Classes by the order of magnitude: a warp that is a line up to the quartiles hides them."""
    magnitude = 3.0 * np.random.default_rng(31).standard_normal(3000)
    column = np.sign(magnitude) * np.expm1(np.abs(magnitude))
    rows = np.column_stack([column, np.roll(magnitude, 1)])
    fitted = tiny().fit(rows, NAMES[(np.sin(magnitude) > 0.0).astype(int)])
    assert "knee at 0." in fitted.notes_[0]
    assert "'x0'" in fitted.notes_[0]


def test_probabilities_are_never_0_or_1() -> None:
    rows, labels = waves(60, n_classes=3)
    fitted = tiny(ridge_precision=1e-6).fit(rows, labels)
    proba = fitted.predict_proba(1e4 * Z)
    assert proba.min() > 0.0
    assert proba.max() < 1.0


def test_blocks_of_rows_do_not_matter(model: BaNKClassifier) -> None:
    rows = np.tile(Z, (BaNKClassifier._rows_at_once // len(Z) + 2, 1))
    expected = np.tile(model.predict_proba(Z), (len(rows) // len(Z), 1))
    np.testing.assert_allclose(model.predict_proba(rows), expected, rtol=1e-10)
    np.testing.assert_allclose(model.latent(rows)[0][:25], model.latent(Z)[0], rtol=1e-10)


def test_kernel_and_density(model: BaNKClassifier) -> None:
    lags = np.vstack([np.zeros((1, 3)), Z])
    mean, lower, upper = model.kernel(lags)
    np.testing.assert_array_equal([mean[0], lower[0], upper[0]], 1.0)
    for values in (*model.spectral_density(lags), *model.marginal_spectral_density(Z[:, 0], 1)):
        assert (values >= 0.0).all()


def test_too_many_classes_are_refused() -> None:
    rows = np.random.default_rng(0).standard_normal((42, 2))
    with pytest.raises(DataError, match="more than 20 classes"):
        tiny().fit(rows, np.arange(42) // 2)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kernel_rows", [None, 30, 200])
def test_rows_on_a_disk(tmp_path: Path, kernel_rows: int | None) -> None:
    """Read block by block they give the bits of the arrays, where labels are numbers."""
    path, numbers = tmp_path / "rows.csv", np.searchsorted(np.unique(Y), Y) * 2.0 + 1.0
    table = np.column_stack([X, numbers])
    text = ["a,b,c,kind", *(",".join(repr(float(v)) for v in row) for row in table)]
    path.write_text("\n".join(text) + "\n")
    with_file = tiny(kernel_rows=kernel_rows).fit(mercer.data.open(path), "kind")
    with_arrays = tiny(kernel_rows=kernel_rows).fit(X, numbers)
    np.testing.assert_array_equal(with_file.classes_, [1, 3])
    assert with_file.classes_.dtype == np.int64
    proba = with_file.predict_proba(pd.DataFrame(Z, columns=["a", "b", "c"]))
    np.testing.assert_array_equal(proba, with_arrays.predict_proba(Z))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "texts.csv"])
def test_true_and_false_are_classes_on_a_disk_as_in_memory(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=80)
    frame = pd.DataFrame({"x": x, "is_late": x + 0.2 * rng.normal(size=80) > 0.0})
    in_memory = tiny().fit(frame[["x"]], frame["is_late"])
    path, given = tmp_path / name, {}
    if name == "texts.csv":
        frame.insert(0, "place", np.where(x > 1.0, "north", "south"))
        given = {"encode": "auto", "target": "is_late"}
    if name == "t.parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False)
    model = tiny().fit(mercer.data.open(path, cache=tmp_path / "cache", **given), "is_late")
    assert model.classes_.dtype == bool
    assert model.classes_.tolist() == [False, True]
    model.save(tmp_path / "m.mercer")
    assert mercer.load(tmp_path / "m.mercer").classes_.tolist() == [False, True]
    if not given:
        np.testing.assert_array_equal(model.predict(frame[["x"]]), in_memory.predict(frame[["x"]]))


def test_classes_with_a_fraction_are_refused_on_a_disk_as_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,kind\n1,5\n2,7.5\n3,5\n")
    with pytest.raises(ValueError, match="continuous"):
        tiny().fit([[1.0], [2.0], [3.0]], [5.0, 7.5, 5.0])
    with pytest.raises(DataError, match=r"rows\.csv: target 'kind': 7\.5 is not a whole number"):
        tiny().fit(mercer.data.open(path), "kind")


def test_one_class_on_a_disk_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,kind\n1,5\n2,5\n3,5\n")
    with pytest.raises(DataError, match="one class only: 5"):
        tiny().fit(mercer.data.open(path), "kind")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("n_classes", "own"), [(2, {}), (3, {}), (3, {"kernel_rows": 200})])
def test_a_device_gives_the_probabilities_of_numpy(
    n_classes: int, own: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights are drawn in the same order, so that short chains differ in rounding alone."""
    strict = device_for_tests("strict")
    monkeypatch.setattr("mercer.spectral.rows.check_device", lambda name: name and strict)
    monkeypatch.setattr("mercer.spectral.sampler._FEW_ON_DEVICE", 1)
    rows, labels = waves(2500, n_classes=n_classes)
    settings = {"n_draws": 2, "n_warmup": 2, "n_chains": 1, "n_jobs": 1, **own}
    here, there = (tiny(**settings, device=name).fit(rows, labels) for name in (None, "strict"))
    np.testing.assert_allclose(there.predict_proba(Z), here.predict_proba(Z), atol=1e-9)
    means = [model.posterior_.variables["coef_mean"] for model in (here, there)]
    assert means[0].tobytes() != means[1].tobytes()  # it was the device


def test_a_device_for_what_does_not_use_it_is_refused() -> None:
    with pytest.raises(UsageError, match="leave device out"):
        tiny(sampler="joint", device="cpu").fit(X, Y)
    with pytest.raises(UsageError, match="device must be a name"):
        tiny(device=0).fit(X, Y)
