from __future__ import annotations

import json
from pathlib import Path

from .conftest import TINY


def test_a_model_is_described(run, model: Path) -> None:
    code, out, err = run("inspect", model)
    assert code == 0
    for words in ("GPClassifier(", "n_draws=20", "target 'label'", "ill, well", "2: a, b"):
        assert words in out
    assert "training rows" in out
    assert "Pareto k-hat" in out
    assert not err


def test_json(run, model: Path) -> None:
    code, out, _ = run("inspect", model, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["holds_training_rows"] is True
    assert found["n_draws"] == 20
    assert "checkpoint" not in found["params"]


def test_checkpoints_are_recognised(run, table: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    words = ["--target", "label", "--test-size", "0.25", *TINY, "--checkpoint", state]
    assert run("fit", table, *words)[0] == 0
    (evaluations,) = (state / "fit").glob("*/importance.mercer")
    code, out, _ = run("inspect", evaluations)
    assert code == 0
    assert "evaluations of importance sampling" in out
    words = ["--target", "label", "--test-size", "0.25", *TINY, "--set", "inference=hmc"]
    state = tmp_path / "chains"
    assert run("fit", table, *words, "--checkpoint", state)[0] == 0
    (chain,) = (state / "fit").glob("*/chain-0.mercer")
    code, out, _ = run("inspect", chain)
    assert code == 0
    assert "state of one chain" in out
    assert "steps     30" in out
    code, out, _ = run("inspect", chain.with_name("run.mercer"), "--json")
    assert code == 0
    assert json.loads(out)["kind"].startswith("checkpoint")
