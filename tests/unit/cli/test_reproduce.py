from __future__ import annotations

import json

import pytest


def test_list(run) -> None:
    code, out, _ = run("reproduce", "--list", "--json")
    assert code == 0
    names = {entry["name"] for entry in json.loads(out)["names"]}
    assert {"gp-pima", "gp-crabs", "sphere-figure-1", "sphere-claims"} <= names


def test_nothing_named(run) -> None:
    code, _, err = run("reproduce")
    assert code == 2
    assert "gp-pima" in err


def test_a_misspelt_name(run) -> None:
    code, _, err = run("reproduce", "gp-prima")
    assert code == 2
    assert "did you mean 'gp-pima'" in err


def test_without_the_data(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERCER_DATA", raising=False)
    code, _, err = run("reproduce", "gp-crabs")
    assert code == 6
    assert "MERCER_DATA" in err


def test_an_installed_package_says_where_it_runs(run, monkeypatch, tmp_path) -> None:
    """Away from the source: one line that says what to do, no traceback."""
    import mercer

    monkeypatch.setattr(mercer, "__file__", str(tmp_path / "site" / "x" / "mercer" / "__init__.py"))
    monkeypatch.chdir(tmp_path)
    code, _, err = run("reproduce", "gp-pima")
    assert code == 2
    assert "source archive of mercer" in err
    assert err.count("\n") == 1
