from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mercer import models
from mercer.cli.stream_keeping import StreamState, read_state, write_stream_model
from mercer.cli.stream_plan import StreamOptions, plan_stream
from mercer.data.encoding import ColumnCode, Encoder
from mercer.errors import ModelFileError
from mercer.estimation.model_file import TableModel
from mercer.posterior.container import read_container, write_container
from mercer.posterior.evaluation import Provenance
from support.line_model.estimator import ENTRY, LineRegressor

X = np.array([[0.0, 1.0], [2.0, 0.5], [1.0, 1.0]])
STATE = StreamState(2, 2, (1.0, None), (None, X[0]), (("r1", X[1]), ("7", X[2])))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    codes = tuple(ColumnCode(name, "number") for name in ("y[t-2]", "y[t-3]"))
    made = Provenance("a pipe", "y", 3, 2, ("y[t-2]", "y[t-3]"), (), "mercer", 5, 1.0, "", ())
    table = TableModel(Encoder(codes, "error"), "y", None, made)
    write_stream_model(tmp_path / "m", LineRegressor().partial_fit(X, X[:, 0]), table, STATE)
    return tmp_path / "m"


def test_what_was_written_is_read(path: Path) -> None:
    state = read_state(path)
    assert (state.n_lags, state.horizon, state.past) == (2, 2, (1.0, None))
    assert state.waiting[0] is None
    np.testing.assert_array_equal(state.waiting[1], X[0])
    assert [name for name, _ in state.later] == ["r1", "7"]
    np.testing.assert_array_equal(state.later[1][1], X[2])


def test_a_model_of_no_stream_has_no_state(tmp_path: Path) -> None:
    LineRegressor().partial_fit(X, X[:, 0]).save(tmp_path / "m")
    state = read_state(tmp_path / "m")
    assert (state.n_lags, state.horizon, state.waiting, state.later) == (0, 1, (), ())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_lags", -1), ("n_lags", 1.5), ("n_lags", None), ("horizon", "2"), ("past", [1, 2, 3]),
        ("past", ["x"]), ("past", None), ("is_waiting", [True, True]), ("is_waiting", [1, 0]),
        ("names", [1, 2]), ("names", ["r1"]), ("is_waiting", ["a"]),
    ],
)  # fmt: skip
def test_f8_what_does_not_fit_together_is_refused(path: Path, name: str, value) -> None:
    manifest, arrays = read_container(path)
    manifest["stream"][name] = value
    write_container(path, manifest, arrays)
    with pytest.raises(ModelFileError, match="inconsistent state of a stream"):
        read_state(path)


def test_f8_rows_that_are_not_the_models_are_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = tuple(entry for entry in models.MODELS if entry.name != "basis")
    monkeypatch.setattr(models, "MODELS", (*others, ENTRY))
    options = StreamOptions(
        None, "auto", "auto", path, None, 60.0, None, None, 50, None, (), (), 0, None, False, "auto"
    )
    plan = plan_stream(options, lambda *_: None)
    assert (plan.target, plan.n_lags, plan.horizon, plan.seed, plan.columns) == ("y", 2, 2, 5, ())
    manifest, arrays = read_container(path)
    arrays["stream/rows"] = np.zeros((3, 3))
    write_container(path, manifest, arrays)
    with pytest.raises(ModelFileError, match="its inputs are not the model's"):
        plan_stream(options, lambda *_: None)
