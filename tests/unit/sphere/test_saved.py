"""Model files: what comes back, and F8: right sum and wrong contents fail when it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer import KernelGibbsClassifier
from mercer.errors import UsageError
from mercer.kernels.stationary import MaternARD
from mercer.posterior.container import read_container
from mercer.posterior.draws import Table
from mercer.sphere import selection
from mercer.sphere.tempering import Tempering
from support.mangled import set_array, set_field, taken

RNG = np.random.default_rng(0)
X, Y, Z = RNG.standard_normal((14, 2)), np.arange(14) % 2, RNG.standard_normal((5, 2))
NAMES = np.array(["no", "yes"])
GRAM = np.exp(-0.5 * ((np.vstack([X, Z])[:, np.newaxis] - X) ** 2).sum(axis=-1))
ROW_RATES = np.linspace(0.05, 0.4, 14)


@pytest.fixture(autouse=True, scope="module")
def short():
    """How exact the evidence is does not matter here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "_RUNS", (Tempering(10, 40), Tempering(10, 60)))
        yield


def fitted(X=X, y=Y, **arguments) -> KernelGibbsClassifier:
    plan = {"lengthscale": 1.0, "nugget": 0.1, "n_draws": 5, "n_warmup": 2, "n_chains": 1}
    model = KernelGibbsClassifier(**{**plan, **arguments}, random_state=0, progress=False)
    return model.fit(X, y)


KINDS: dict[str, dict[str, Any]] = {
    "kernel": {},
    "averaged": {"nugget": "learn", "n_draws": 40},
    "object": {"kernel": MaternARD(1.5)},
    "linear": {"kernel": "linear", "nugget": "learn"},
    "nystroem": {"rank": 4, "nugget": 0.0, "decision": "bayes_point"},
    "two maps": {"rank": 4, "nugget": 0.0, "lengthscale": "learn", "n_draws": 40},
    "fourier": {"rank": 4, "nugget": 0.0, "approximation": "fourier", "standardize": "std"},
    "rates by class": {"noise_rate": {"yes": 0.1, "no": 0.3}, "y": NAMES[Y]},
    "rates by row": {"noise_rate": ROW_RATES},
    "number": {"noise_rate": np.float64(0.1), "noise_prior": [1, 2]},
    "learned by class": {"noise_rate": "learn per class"},
    "three classes": {"y": np.arange(14) % 3},
    "precomputed": {"kernel": "precomputed", "X": GRAM[:14]},
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_comes_back(kind: str, tmp_path: Path) -> None:
    model = fitted(**KINDS[kind])
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    new = GRAM[14:] if kind == "precomputed" else Z
    for name in ("predict", "predict_proba", "clean_proba", "decision_function", "margin_draws",
                 "vote_margin", "information", "query"):  # fmt: skip
        seen, expected = (getattr(one, name)(new) for one in (again, model))
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(seen, expected, rtol=1e-10, atol=1e-12)
        else:
            np.testing.assert_array_equal(seen, expected)
    for name in ("label_proba_", "label_error_proba_", "recorded_", "classes_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    np.testing.assert_allclose(again.bayes_point_, model.bayes_point_)
    for name in ("noise_rate_", "log_evidence_", "log_evidence_se_", "compared_", "notes_"):
        assert getattr(again, name) == getattr(model, name)
    assert model.posterior_.segments or kind != "averaged"
    assert again.posterior_.segments == model.posterior_.segments
    assert (again.evidence_curve_ is None) == (model.evidence_curve_ is None)
    if model.evidence_curve_ is not None:
        for name in ("noise_rates", "log_evidence", "standard_error"):
            seen, expected = (getattr(one.evidence_curve_, name) for one in (again, model))
            np.testing.assert_array_equal(seen, expected)
    assert again.get_params()["decision"] == model.decision
    again.save(tmp_path / "twice.mercer")
    assert (tmp_path / "twice.mercer").stat().st_size == (tmp_path / "m.mercer").stat().st_size


def test_a_loaded_model_can_be_fitted_again(tmp_path: Path) -> None:
    for kind in ("kernel", "rates by class", "rates by row", "number"):
        model = fitted(**KINDS[kind])
        model.save(tmp_path / "m.mercer")
        again = mercer.load(tmp_path / "m.mercer").set_params(progress=False)
        again.fit(X, KINDS[kind].get("y", Y))
        np.testing.assert_array_equal(again.predict_proba(Z), model.predict_proba(Z))


def test_a_standard_error_that_is_not_known(tmp_path: Path) -> None:
    """It is inf where rungs of the ladder share no draws."""
    model = fitted(nugget="learn")
    columns, rows = model.compared_.columns, model.compared_.rows
    place = columns.index("standard_error")
    model.compared_ = Table(columns, tuple((*r[:place], np.inf, *r[place + 1 :]) for r in rows))
    model.log_evidence_se_ = np.inf
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict_proba(Z), model.predict_proba(Z))


def test_a_callable_fits_no_file(tmp_path: Path) -> None:
    model = fitted(kernel=lambda A, B: 1.0 + A @ B.T)
    with pytest.raises(UsageError, match="callable"):
        model.save(tmp_path / "m.mercer")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.mercer"
    fitted().save(path)
    return path


@pytest.fixture(scope="module")
def gram_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "g.mercer"
    fitted(**KINDS["precomputed"]).save(path)
    return path


@pytest.fixture(scope="module")
def map_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "n.mercer"
    fitted(**KINDS["nystroem"]).save(path)
    return path


CHANGES = {
    "rows cut": set_array("X", lambda X: X[:-1]),
    "rows empty": set_array("X", lambda X: X[:0]),
    "rows nan": set_array("X", lambda X: X * np.nan),
    "columns cut": set_array("X", lambda X: X[:, :1]),
    "rows integers": set_array("X", lambda X: X.astype(np.int64)),
    "theta cut": set_array("model0/theta", lambda t: t[:-1]),
    "theta nan": set_array("model0/theta", lambda t: t * np.nan),
    "theta gone": lambda manifest, arrays: arrays.pop("model0/theta"),
    "coefficients nan": set_array("draws/coefficients", lambda a: a * np.nan),
    "coefficients cut": set_array("draws/coefficients", lambda a: a[..., :-1]),
    "coefficients of classes": set_array("draws/coefficients", lambda a: a[:, :, np.newaxis]),
    "length 0": set_array("draws/length", lambda v: v * 0.0),
    "rates above 1": set_array("draws/noise_rate", lambda v: v + 1.0),
    "rates of three classes": set_array("draws/noise_rate", lambda v: np.repeat(v, 3, axis=-1)),
    "model out of range": set_array("draws/model", lambda v: v + 1),
    "model negative": set_array("draws/model", lambda v: v - 1),
    "model a float": set_array("draws/model", lambda v: v + 0.0),
    "labels cut": set_array("recorded", lambda v: v[:-1]),
    "labels out of range": set_array("recorded", lambda v: v + 1),
    "label_proba above 1": set_array("label_proba", lambda v: v + 1.0),
    "curve cut": set_array("curve/log_evidence", lambda v: v[:-1]),
    "curve nan": set_array("curve/standard_error", lambda v: v * np.nan),
    "no models": set_field("fields/models", []),
    "kind": set_field("fields/models/0/kind", "pickle"),
    "kernel unknown": set_field("fields/models/0/kernel", "os.system"),
    "scale 0": set_field("fields/models/0/scale", 0.0),
    "nugget negative": set_field("fields/models/0/nugget", -1.0),
    "evidence": set_field("fields/evidence", ["much", None]),
    "compared": set_field("fields/compared", {"columns": 3, "rows": None}),
    "params wrong": set_field("params/sampler", {"x": 1}),
    "params unknown": set_field("params/callback", "os.system"),
    "params rate": set_field("params/noise_rate", [0.1, 0.2, 0.3]),
    "params prior": set_field("params/noise_prior", [1.0]),
}  # fmt: skip


def test_f8_inconsistent(model_file: Path, tmp_path: Path) -> None:
    assert taken(model_file, tmp_path, CHANGES) == []


OF_GRAM = {
    "not square": set_array("X", lambda G: G[:, :-1]),
    "cut": set_array("X", lambda G: G[:-1, :-1]),
    "not symmetric": set_array("X", lambda G: G + np.tri(14)),
    "indefinite": set_array("X", lambda G: G - 2.0 * np.eye(14)),
}
OF_MAP = {
    "landmarks cut": set_array("X", lambda Z: Z[:-1]),
    "nan": set_array("model0/root_inverse", lambda R: R * np.nan),
    "no features": set_array("model0/root_inverse", lambda R: R[:, :0]),
    "another kernel": set_field("fields/models/0/kernel", "linear"),
}


def test_f8_gram_and_map(gram_file: Path, map_file: Path, tmp_path: Path) -> None:
    assert taken(gram_file, tmp_path, OF_GRAM) == []
    assert taken(map_file, tmp_path, OF_MAP) == []


def test_a_file_says_nothing_of_how_it_was_run(model_file: Path) -> None:
    manifest, _ = read_container(model_file)
    assert not {"checkpoint", "n_jobs", "progress", "max_seconds"} & set(manifest["params"])
