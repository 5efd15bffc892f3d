"""The same data in any form give the same fit (D7, D8, D9, D14); copies of an estimator agree."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from mercer.errors import MercerWarning, UsageError
from mercer.gp.estimator import GPClassifier
from mercer.posterior.labels import entropy_bits
from mercer.sphere.estimator import KernelGibbsClassifier
from support import class_fits, spectral_class_fits
from support.gp_cases import problem
from support.statistics import few_first, pairs_first

TINY = {"n_draws": 9, "n_warmup": 4, "n_chains": 1, "random_state": 0, "progress": False}
FEW = {"n_draws": 5, "n_warmup": 2}
ESTIMATORS = {
    "gp": lambda **own: GPClassifier(**TINY | {"kernel": "rbf"} | own),
    "sphere": lambda **own: KernelGibbsClassifier(
        **TINY | {"n_draws": 20, "n_warmup": 10, "lengthscale": "median", "nugget": 0.0} | own
    ),
    "spectral": lambda **own: spectral_class_fits.tiny(**FEW | own),
    "basis": lambda n_draws=30, **own: class_fits.tiny(n_particles=n_draws, **own),
}
NAMES = {name: name for name in ESTIMATORS}
_X = np.round(8.0 * problem(30, 3)[0])  # whole numbers: exact in every type
_Y = problem(30, 3)[1].astype(int)
_Z = np.round(8.0 * problem(9, 3, seed=4)[0])


@pytest.fixture(scope="module", params=ESTIMATORS)
def model(request: pytest.FixtureRequest):
    """Makes an estimator with tiny settings."""
    return ESTIMATORS[request.param]


@pytest.fixture(scope="module")
def expected(model) -> np.ndarray:
    return model().fit(_X, _Y).predict_proba(_Z)


# A trajectory in hundreds of coordinates makes two or three times as much of a last bit. What D8
# promises of it: units that are powers of two change no bit, others no more than another seed
# (below); the same to 1e-6 holds for its first steps, and for whole chains of sweeps alone.
STEADY = {
    **ESTIMATORS,
    "spectral": lambda: spectral_class_fits.tiny(n_leapfrog=0, n_draws=10, n_warmup=5),
    "spectral, trajectories": lambda: spectral_class_fits.tiny(n_draws=2, n_warmup=1),
}


@pytest.fixture(scope="module", params=STEADY)
def steady(request: pytest.FixtureRequest):
    """Makes an estimator whose chain does not let rounding grow to what D8 allows."""
    return STEADY[request.param]


@pytest.fixture(scope="module")
def expected_of_steady(steady) -> np.ndarray:
    return steady().fit(_X, _Y).predict_proba(_Z)


FORMS = {
    "fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "int": lambda X: X.astype(np.int64),
    "int8": lambda X: X.astype(np.int8),
    "list": lambda X: X.tolist(),
    "object": lambda X: X.astype(object),
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "backwards in memory": lambda X: X[::-1].copy()[::-1],
    "big endian": lambda X: X.astype(">f8"),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("model", "form"), pairs_first(NAMES, FORMS), indirect=["model"])
def test_d14_same_result_in_any_form(model, form, expected: np.ndarray) -> None:
    seen = model().fit(form(_X), _Y).predict_proba(form(_Z))
    np.testing.assert_array_equal(seen, expected)


def test_d14_read_only_memmap(model, tmp_path: Path, expected: np.ndarray) -> None:
    np.save(tmp_path / "X.npy", _X)
    np.save(tmp_path / "y.npy", _Y)
    X, y = (np.load(tmp_path / name, mmap_mode="r") for name in ("X.npy", "y.npy"))
    np.testing.assert_array_equal(model().fit(X, y).predict_proba(_Z), expected)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_d14_frames(model, frame, expected: np.ndarray) -> None:
    names = ("age", "mass", "dose")
    X, Z = (frame({n: V[:, j] for j, n in enumerate(names)}) for V in (_X, _Z))
    fitted = model().fit(X, _Y)
    np.testing.assert_array_equal(fitted.predict_proba(Z), expected)
    assert fitted.feature_labels_ == names
    assert list(fitted.feature_names_in_) == list(names)
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict_proba(Z[["mass", "age", "dose"]])  # D6
    if isinstance(fitted, GPClassifier):
        weights = tuple(f"log_weight[{n}]" for n in names)
        assert fitted.posterior_.entry_names("log_weight") == weights


LABELS = {
    "text": np.array(["no", "yes"]),
    "object": np.array(["no", "yes"], dtype=object),
    "bool": np.array([False, True]),
    "float": np.array([-1.0, 1.0]),
    "int": np.array([3, 7]),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("model", "labels"),
    pairs_first(NAMES, LABELS),
    indirect=["model"],
)
def test_d7_labels_come_back_in_their_type(model, labels: np.ndarray, expected: np.ndarray) -> None:
    fitted = model().fit(_X, labels[_Y])
    np.testing.assert_array_equal(fitted.predict_proba(_Z), expected)
    predicted = fitted.predict(_Z)
    assert predicted.dtype == labels.dtype == fitted.classes_.dtype
    # Of the sphere `expected` is of the label as recorded, `predict` of the true one.
    np.testing.assert_array_equal(predicted, labels[model().fit(_X, _Y).predict(_Z)])


def test_copies_agree(model, expected: np.ndarray) -> None:
    first = model().fit(_X, _Y)
    again = clone(first)
    assert not hasattr(again, "posterior_")
    assert again.get_params() == first.get_params()
    np.testing.assert_array_equal(again.fit(_X, _Y).predict_proba(_Z), expected)
    copied = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(copied.predict_proba(_Z), expected)


def test_latent_mean_and_variance() -> None:
    mean, variance = ESTIMATORS["gp"]().fit(_X, _Y).latent(_Z)
    assert mean.shape == variance.shape == (9,)
    assert (variance > 0.0).all()


def test_data_are_left_alone(model) -> None:
    X, y = _X.copy(), _Y.copy()
    model().fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(X, _X)
    np.testing.assert_array_equal(y, _Y)


def test_blocks_of_rows_do_not_matter(model, expected: np.ndarray) -> None:
    fitted = model().fit(_X, _Y)
    one_by_one = np.vstack([fitted.predict_proba(_Z[i : i + 1]) for i in range(9)])
    np.testing.assert_allclose(one_by_one, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="0 sample"):
        fitted.predict_proba(_Z[:0])


@pytest.mark.one_in(7)
@pytest.mark.parametrize(
    "scale",
    few_first([1e-300, 1e-200, 1e-100, 1e-30, 1e30, 1e100, 1e200, 1e300], 1e-300, 1e-30, 1e100),
)
@pytest.mark.parametrize("columns", [slice(None), slice(0, 1)], ids=["all", "one"])
def test_d8_scale(steady, scale: float, columns: slice, expected_of_steady: np.ndarray) -> None:
    """The result of the rescaled problem, or an error that names the column."""
    X, Z = _X.copy(), _Z.copy()
    X[:, columns] *= scale
    Z[:, columns] *= scale
    fitted = steady()
    try:
        fitted.fit(X, _Y)
    except ValueError as error:
        message = str(error)
    else:
        message = ""
    if message:
        assert "'x0'" in message
    else:
        np.testing.assert_allclose(fitted.predict_proba(Z), expected_of_steady, atol=1e-6)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("scale", [2.0**-90, 0.125, 2.0**40])
def test_d8_powers_of_two_change_no_bit(model, scale: float, expected: np.ndarray) -> None:
    fitted = model().fit(scale * _X, _Y)
    np.testing.assert_array_equal(fitted.predict_proba(scale * _Z), expected)


def probabilities(scale: float, new_scale: float) -> np.ndarray:
    """Of fits of `BaNKClassifier` with six seeds; rows to predict may be in another unit."""
    fits = [spectral_class_fits.tiny(n_draws=150, random_state=seed) for seed in range(6)]
    return np.array([m.fit(scale * _X, _Y).predict_proba(new_scale * _Z)[:, 1] for m in fits])


@pytest.mark.slow
def test_d8_other_units_change_trajectories_no_more_than_another_seed() -> None:
    """Over six seeds; the mutant asks in a unit that is not that of the training rows."""
    here = probabilities(1.0, 1.0)
    by_seed = np.sqrt(np.mean((here[:, None] - here[None]) ** 2) * 1.2)
    by_unit, mistaken = (
        np.sqrt(np.mean((probabilities(unit, asked) - here) ** 2))
        for unit, asked in ((2.54, 2.54), (25.4, 1.0))
    )
    assert 0.0 < by_unit < 1.5 * by_seed < mistaken


def test_d8_offset(steady, expected_of_steady: np.ndarray) -> None:
    seen = steady().fit(_X + 1e8, _Y).predict_proba(_Z + 1e8)
    np.testing.assert_allclose(seen, expected_of_steady, atol=1e-6)


def test_d9_constant_column(model, expected: np.ndarray) -> None:
    with pytest.warns(MercerWarning, match="'x1'") as warned:
        fitted = model().fit(np.insert(_X, 1, 5.0, axis=1), _Y)
    assert {each.filename for each in warned} == {__file__}  # points at who called fit
    p = fitted.predict_proba(np.insert(_Z, 1, 5.0, axis=1))
    other = fitted.predict_proba(np.insert(_Z, 1, -70.0, axis=1))
    np.testing.assert_array_equal(p, other)  # what was constant in training says nothing
    assert np.isfinite(p).all()
    if isinstance(fitted, GPClassifier):
        assert fitted.relevance_.shape == (9, 4)


def test_d9_all_columns_constant(model) -> None:
    with pytest.warns(MercerWarning, match="all columns are constant"):
        fitted = model().fit(np.ones((30, 2)), _Y)
    p = fitted.predict_proba(np.random.default_rng(0).standard_normal((5, 2)))
    assert np.ptp(p[:, 1]) < 1e-12
    assert p[0, 1] == pytest.approx(_Y.mean(), abs=0.15)


def test_d10_duplicate_rows_with_conflicting_labels(model) -> None:
    X = np.vstack([_X, _X, _X[:1]])
    y = np.concatenate([_Y, 1 - _Y, _Y[:1]])
    p = model().fit(X, y).predict_proba(_X)[:, 1]
    np.testing.assert_allclose(p, 0.5, atol=0.1)


@pytest.mark.one_in(3)
def test_d11_many_equal_rows(model) -> None:
    X = np.vstack([np.zeros((150, 3)), _X])
    p = model().fit(X, np.concatenate([np.ones(150, dtype=int), _Y])).predict_proba(_Z)
    assert np.isfinite(p).all()
    assert ((p > 0.0) & (p < 1.0)).all()


def test_two_rows_are_enough(model) -> None:
    p = model(n_draws=400).fit([[0.0], [1.0]], [0, 1]).predict_proba([[0.0], [1.0]])
    assert p[0, 1] < p[1, 1]
    assert p[0, 1] + p[1, 1] == pytest.approx(1.0, abs=0.1)


def test_not_fitted(model) -> None:
    calls = ["predict", "predict_proba", "latent", "clean_proba", "decision_function", "query",
             "margin_draws", "vote_margin", "information", "sample_proba"]  # fmt: skip
    calls = [call for call in calls if hasattr(model(), call)]
    assert len(calls) >= 2
    for call in calls:
        with pytest.raises(NotFittedError):
            getattr(model(), call)(_Z)


def test_rows_to_ask_for(model) -> None:
    """What a label would say is between nothing and the entropy of its class; no row twice."""
    fitted = model().fit(_X, _Y)
    pool = np.vstack([_Z, _Z[:3]])
    bits, p = fitted.information(pool), fitted.predict_proba(pool)
    assert (bits >= 0.0).all()
    assert (bits <= entropy_bits(p) + 0.1).all()  # a thousand draws
    chosen = fitted.query(pool, len(pool))
    assert sorted(chosen) == list(range(len(pool)))
    assert chosen[0] == bits.argmax()
    assert sorted(pool[chosen[-3:]].tolist()) == sorted(_Z[:3].tolist())  # copies come last
    with pytest.raises(UsageError, match="at most the 12 rows"):
        fitted.query(pool, 13)


def test_p5_far_away_is_finite(model) -> None:
    fitted = model().fit(_X, _Y)
    p = fitted.predict_proba(_Z * 1e12)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.isfinite(p).all()


def test_units_of_the_inputs_say_nothing_by_default() -> None:
    """`KernelGibbsClassifier` standardises by default; `paper` and callables do not."""
    own = {**TINY, "nugget": 0.0}
    scales = np.array([1.0, 1024.0, 0.0625])

    def standardizer(**arguments):
        return KernelGibbsClassifier(**own | arguments).fit(_X * scales, _Y).standardizer_

    plain = KernelGibbsClassifier(**own, lengthscale="median").fit(_X, _Y)
    scaled = KernelGibbsClassifier(**own, lengthscale="median").fit(_X * scales, _Y)
    np.testing.assert_array_equal(plain.predict_proba(_Z), scaled.predict_proba(_Z * scales))
    assert KernelGibbsClassifier.paper().standardize is False
    assert standardizer(standardize=False).scale.tolist() == [1.0, 1.0, 1.0]
    assert standardizer(kernel=lambda A, B: A @ B.T + 1.0).scale.tolist() == [1.0, 1.0, 1.0]
    assert (standardizer(kernel=lambda A, B: A @ B.T, standardize="std").scale != 1.0).all()
