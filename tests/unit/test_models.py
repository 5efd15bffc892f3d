"""The table of models: which one is chosen for a task, and what is said when none is."""

from __future__ import annotations

import dataclasses

import pytest

from mercer import GPClassifier, models
from mercer.errors import DataError, UsageError
from support.ridge_model.estimator import ENTRY, RidgeRegressor


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    classifiers = [entry for entry in models.MODELS if entry.task == "classification"]
    monkeypatch.setattr(models, "MODELS", (*classifiers, ENTRY))


SLOW = dataclasses.replace(ENTRY, name="slow", auto_rows=2000)


@pytest.mark.parametrize(
    ("name", "task", "n_classes", "found"),
    [
        ("auto", "classification", 2, "spectral"),
        ("auto", "classification", 3, "spectral"),
        ("auto", "classification", 21, "sphere"),
        ("sphere", "classification", 2, "sphere"),
        ("stack", "classification", 2, "stack"),
        ("auto", "regression", 0, "ridge-draws"),
        ("ridge-draws", "regression", 0, "ridge-draws"),
    ],
)
def test_the_first_that_fits_is_chosen(name: str, task: str, n_classes: int, found: str) -> None:
    assert models.choose_model(name, task, n_classes, 10**6).name == found


@pytest.mark.parametrize(
    ("name", "task", "n_classes", "kind", "words"),
    [
        ("spere", "classification", 2, UsageError, "did you mean 'sphere'"),
        ("gp", "regression", 0, UsageError, "model gp is not for regression"),
        ("ridge-draws", "classification", 2, UsageError, "is not for classification"),
        ("gp", "classification", 51, DataError, "51 classes"),
        ("auto", "ranking", 0, UsageError, "no model here does ranking"),
    ],
)
def test_what_does_not_fit_is_refused(
    name: str, task: str, n_classes: int, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        models.choose_model(name, task, n_classes, 10)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("bank", "spectral"), ("BaNKClassifier", "spectral"), ("kernel-gibbs", "sphere"),
        ("sequential", "basis"), ("Spectrl", "spectral"), ("classifier", None), ("", None),
    ],
)  # fmt: skip
def test_a_class_is_known_by_its_name(word: str, meant: str | None) -> None:
    hint = models.hint_of_model(word, models.model_names())
    assert hint == ("" if meant is None else f"; did you mean {meant!r}?")


@pytest.mark.parametrize(
    ("n_classes", "n_rows", "found"),
    [(2, 5000, "gp"), (2, 5001, "spectral"), (6, 1983, "gp"), (6, 1984, "spectral")],
)
def test_auto_of_classes_by_their_number_and_that_of_rows(
    n_classes: int, n_rows: int, found: str
) -> None:
    assert models.choose_model("auto", "classification", n_classes, n_rows).name == found


def test_functions_of_several_classes_are_given_all_rows_that_auto_takes() -> None:
    (entry,) = (each for each in models.MODELS if each.estimator == "GPClassifier")
    for n_classes in range(3, 51):
        given = GPClassifier()._most_given(10, n_classes)
        assert 0 <= given - entry.most_rows(n_classes) <= 1


def test_auto_leaves_out_what_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "MODELS", (SLOW, ENTRY))
    for name, n_rows, found in (
        ("auto", 2000, "slow"), ("auto", 2001, "ridge-draws"), ("slow", 2001, "slow"),
    ):  # fmt: skip
        assert models.choose_model(name, "regression", 0, n_rows).name == found
    monkeypatch.setattr(models, "MODELS", (SLOW,))
    assert models.choose_model("auto", "regression", 0, 2001).name == "slow"


def test_names_are_those_of_the_table() -> None:
    assert models.model_names()[-1] == "ridge-draws"
    assert models.name_of(RidgeRegressor()) == "ridge-draws"
    assert models.name_of(object()) == "object"
    assert [entry.name for entry in models.able_models("classification", 50)] == [
        "gp",
        "sphere",
        "basis",
        "stack",
    ]
    assert models.able_models("regression", 10**6) == [ENTRY]
