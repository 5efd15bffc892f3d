from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.estimator_checks import _NotAnArray

import mercer
from mercer import BaNKRegressor
from mercer.errors import DataError, ModelFileError, UsageError
from mercer.posterior.container import read_container, write_container

TINY = {"n_frequencies": 8, "n_draws": 8, "n_warmup": 8, "n_chains": 2, "random_state": 0}


def sensors(n: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """Two inputs; three outputs of other levels and units, the last a line."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-2.0, 2.0, (n, 2))
    f = np.column_stack([np.sin(3.0 * X[:, 0]), np.cos(3.0 * X[:, 0]), 0.5 * X[:, 1]])
    return X, [0.0, 5.0, -2.0] + [1.0, 100.0, 1e-3] * (f + 0.2 * rng.standard_normal((n, 3)))


@pytest.fixture(scope="module")
def fitted() -> BaNKRegressor:
    return BaNKRegressor(**TINY).fit(*sensors())


def test_answers_have_a_last_axis_of_outputs(fitted: BaNKRegressor) -> None:
    X, Y = sensors()
    mean, std = fitted.predict(X, return_std=True)
    lower, upper = fitted.predict_interval(X, 0.8)
    assert {a.shape for a in (mean, std, lower, upper, fitted.predict_noise_std(X))} == {(50, 3)}
    np.testing.assert_allclose(mean, fitted.predict(X), rtol=1e-12)
    assert fitted.sample_y(X, 7, random_state=0).shape == (7, 50, 3)
    law = fitted.predictive(X)
    assert law.log_density(Y).shape == (50, 3)
    assert fitted.noise_std_.shape == (3,)
    assert fitted.score(X, Y) > 0.8
    assert (fitted.n_outputs_, fitted.output_names_) == (3, ("y0", "y1", "y2"))
    assert fitted.__sklearn_tags__().target_tags.multi_output
    assert not BaNKRegressor(noise="student_t").__sklearn_tags__().target_tags.multi_output


def test_noise_of_outputs_is_drawn_apart(fitted: BaNKRegressor) -> None:
    """Standardised errors of 2000 draws of one row: no correlation beyond chance, 1e-6."""
    X, _ = sensors()
    drawn = fitted.sample_y(X[:1], 2000, random_state=1)[:, 0]
    functions = fitted.predict(X[:1])
    correlation = np.corrcoef((drawn - functions).T)
    assert np.abs(correlation - np.eye(3)).max() < 4.9 / np.sqrt(2000.0) + 0.1


def test_the_model_of_one_output(fitted: BaNKRegressor, tmp_path: Path) -> None:
    """It answers as its column does, explains, and is saved like any other."""
    X, Y = sensors()
    one = fitted.output(1)
    np.testing.assert_allclose(one.predict(X), fitted.predict(X)[:, 1], rtol=1e-12)
    lower, upper = one.predict_interval(X)
    np.testing.assert_array_equal([lower, upper], [a[:, 1] for a in fitted.predict_interval(X)])
    np.testing.assert_array_equal(one.kernel(X), fitted.kernel(X))
    assert one.explain(X[:2], X[:12]).contributions.shape == (2, 2)
    assert len(one.query(X, 3)) == 3
    one.save(tmp_path / "one.mercer")
    loaded = mercer.load(tmp_path / "one.mercer")
    np.testing.assert_array_equal(loaded.predict(X), one.predict(X))
    assert one.score(X, Y[:, 1]) > 0.8
    with pytest.raises(UsageError, match=re.escape("no output 3; there is: y0, y1, y2")):
        fitted.output(3)
    with pytest.raises(UsageError, match="there is: one"):
        one.output(0)


def test_names_are_those_of_the_frame() -> None:
    pd = pytest.importorskip("pandas")
    X, Y = sensors()
    model = BaNKRegressor(**TINY).fit(X, pd.DataFrame(Y[:, :2], columns=["north", "east"]))
    np.testing.assert_allclose(model.output("east").predict(X), model.predict(X)[:, 1], rtol=1e-12)


@pytest.mark.parametrize("more", [{}, {"kernel_rows": 30, "full_draws": 2}])
def test_files(more: dict, tmp_path: Path) -> None:
    X, Y = sensors()
    model = BaNKRegressor(**TINY, **more).fit(X, Y)
    model.save(tmp_path / "all.mercer")
    loaded = mercer.load(tmp_path / "all.mercer")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))
    np.testing.assert_array_equal(loaded.noise_std_, model.noise_std_)
    assert loaded.output_names_ == model.output_names_


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("target_scale", np.array([1.0, -1.0, 1.0])),
        ("target_scale", np.ones(2)),
        ("target_centre", np.zeros((3, 1))),
        ("draws/noise_std", np.ones((2, 8))),
        ("draws/coef_mean", np.zeros((2, 8, 2, 19))),
    ],
)
def test_files_that_do_not_fit(
    fitted: BaNKRegressor, tmp_path: Path, name: str, value: np.ndarray
) -> None:
    fitted.save(tmp_path / "all.mercer")
    manifest, arrays = read_container(tmp_path / "all.mercer")
    write_container(tmp_path / "bad.mercer", manifest, {**arrays, name: value})
    with pytest.raises(ModelFileError, match=name):
        mercer.load(tmp_path / "bad.mercer")


def test_one_column_is_one_target() -> None:
    X, Y = sensors()
    alone = BaNKRegressor(**TINY).fit(X, Y[:, 0])
    with pytest.warns(UserWarning, match="column-vector"):
        column = BaNKRegressor(**TINY).fit(X, Y[:, :1])
    np.testing.assert_array_equal(column.predict(X), alone.predict(X))


def test_what_is_of_one_output_is_refused(fitted: BaNKRegressor) -> None:
    X, Y = sensors()
    for ask in (
        lambda: fitted.explain(X[:2], X[:12]),
        lambda: fitted.query(X),
        lambda: fitted.plot.residuals(X, Y),
    ):
        with pytest.raises(UsageError, match=re.escape("of 3 outputs answers this of one")):
            ask()


def test_report(fitted: BaNKRegressor, tmp_path: Path) -> None:
    X, Y = sensors()
    page = fitted.report(tmp_path / "r.html", X, Y)
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", Path(page).read_text())
    for k in range(3):
        assert f"y{k}: Scores on rows it had not seen" in titles
    fitted.report(tmp_path / "bare.html")
    assert "y0: " not in "".join(re.findall(r"<h2.*?</h2>", (tmp_path / "bare.html").read_text()))
    with pytest.raises(UsageError, match="a column for each of 3 outputs"):
        fitted.report(tmp_path / "r.html", X, Y[:, 0])


@pytest.mark.parametrize(
    "noise", ["student_t", "contaminated", "heteroscedastic", "negative_binomial"]
)
def test_other_noise_is_of_one_output(noise: str) -> None:
    with pytest.raises(UsageError, match="several outputs have normal noise"):
        BaNKRegressor(noise=noise, **TINY).fit(*sensors())


def test_targets_that_cannot_be_learned() -> None:
    X, Y = sensors()
    with pytest.raises(ValueError, match="Input y contains NaN"):
        BaNKRegressor(**TINY).fit(X, np.where(Y > 100.0, np.nan, Y))
    with pytest.raises(DataError, match="the target is text"):
        BaNKRegressor(**TINY).fit(X, np.full((50, 2), "a"))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        BaNKRegressor(**TINY).fit(X, Y[:40])


def test_noise_that_is_unlike_is_noted() -> None:
    X, Y = sensors()
    rng = np.random.default_rng(0)
    Y = np.column_stack([Y[:, 2], np.sin(X[:, 0]) + rng.standard_normal(50), X[:, 0]])
    notes = BaNKRegressor(**TINY).fit(X, Y).notes_
    assert any("by itself may be learned better" in note for note in notes), notes


@pytest.mark.slow
def test_outputs_that_bend_alike_learn_the_kernel_better() -> None:
    """Error of the kernel from one and from two curves with it, on average of eight tables."""
    lags = np.linspace(0.0, 3.0, 31)

    def kernel(t: np.ndarray) -> np.ndarray:
        return np.cos(3.0 * t) * np.exp(-0.5 * (0.3 * t) ** 2)

    errors = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-3.0, 3.0, 40)
        factor = np.linalg.cholesky(kernel(x[:, np.newaxis] - x) + 1e-9 * np.eye(40))
        curves, noise = rng.standard_normal((2, 40, 4))
        Y = factor @ curves + 0.5 * noise
        own = {"n_frequencies": 20, "n_draws": 40, "n_warmup": 40, "n_chains": 1}
        model = BaNKRegressor(**own, linear_part=False, random_state=0)
        fits = (model.fit(x[:, np.newaxis], y).kernel(lags)[0] for y in (Y[:, 0], Y[:, :2]))
        errors.append([np.sqrt(np.mean((found - kernel(lags)) ** 2)) for found in fits])
    alone, together = np.mean(errors, axis=0)
    assert together < alone


def test_targets_that_only_become_an_array() -> None:
    """Of a container that no function of NumPy takes, one column or several."""
    X, Y = sensors()
    one = BaNKRegressor(**TINY).fit(X, _NotAnArray(Y[:, 0]))
    np.testing.assert_array_equal(one.predict(X), BaNKRegressor(**TINY).fit(X, Y[:, 0]).predict(X))
    assert BaNKRegressor(**TINY).fit(X, _NotAnArray(Y)).n_outputs_ == 3
