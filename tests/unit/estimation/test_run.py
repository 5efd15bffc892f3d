from __future__ import annotations

import functools
import json
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import Ridge

from mercer.errors import UsageError
from mercer.estimation.base import KernelEstimator
from mercer.estimation.run import check_common, fingerprint, run_options
from mercer.kernels.names import kernel_named
from mercer.posterior.container import mercer_version
from mercer.random import entropy_of, stream


class Toy(KernelEstimator):
    """An estimator of one argument, and of one that says what is done with the draws."""

    _after_draws = ("decision",)
    n_draws, n_warmup, n_chains, thin, random_state = 10, 5, 2, 1, 7
    progress, checkpoint, max_seconds = False, None, None

    def __init__(self, value: object = None, decision: object = None, n_jobs: int = 1) -> None:
        self.value = value
        self.decision = decision
        self.n_jobs = n_jobs

    def given(self, **arguments: object) -> Toy:
        vars(self).update(arguments)
        return self


def test_options_pass_through() -> None:
    options = run_options(Toy(), "d", time.monotonic())
    assert (options.n_draws, options.n_warmup, options.n_chains, options.thin) == (10, 5, 2, 1)
    assert (options.entropy, options.run, options.deadline) == (7, None, None)


def test_max_seconds_counts_from_the_start_of_fit() -> None:
    assert run_options(Toy().given(max_seconds=10.0), "d", 100.0).deadline == 110.0


def test_a_checkpoint_keeps_the_first_entropy(tmp_path: Path) -> None:
    free = {"checkpoint": tmp_path, "random_state": None}
    first, again, other = (run_options(Toy(k).given(**free), "d", 0.0) for k in (1, 1, 2))
    assert first.entropy == again.entropy != other.entropy
    assert again.run is not None
    assert again.run.is_resumed


def test_progress_is_checked() -> None:
    with pytest.raises(UsageError, match="progress"):
        check_common(Toy().given(progress="always"))
    check_common(Toy())


def test_version() -> None:
    assert mercer_version().count(".") >= 1


def test_entropy() -> None:
    assert entropy_of(5) == entropy_of(np.int64(5)) == 5
    assert entropy_of(None) != entropy_of(None)
    for make in (np.random.default_rng, np.random.RandomState):
        assert entropy_of(make(3)) == entropy_of(make(3))
        shared = make(3)
        assert entropy_of(shared) != entropy_of(shared)
    for bad in (-1, 1.5, "a"):
        with pytest.raises(ValueError, match="random_state"):
            entropy_of(bad)


def test_streams_differ_by_purpose_and_index_and_never_change() -> None:
    keys = [("start", 0), ("chain", 0), ("chain", 1), ("rows", 0), ("folds", 0)]
    first = [stream(1, *key).integers(2**62) for key in keys]
    assert len(set(first)) == len(keys)
    assert first == [stream(1, *key).integers(2**62) for key in keys]
    # A stored reference: the same seed means the same draws in later versions too.
    assert stream(1, "chain", 0).integers(1000, size=4).tolist() == [882, 86, 821, 713]


def module(text: str) -> types.ModuleType:
    """A module of a user, which is edited between two runs."""
    made = types.ModuleType("users_own")
    sys.modules["users_own"] = made  # which dataclasses ask
    exec(text, vars(made))
    return made


def kernel_of(text: str) -> Callable[..., object]:
    return vars(module(text))["kernel"]


SCALED = "SCALE = {}\ndef kernel(a, b):\n    return SCALE * (a @ b.T) ** {}\n"
CALLING = (
    "def power(x):\n    return x ** {}\ndef kernel(a, b, scale={}):\n    return power(a @ b.T)\n"
)
KINDS = "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Own:\n    scale: float\n"
KINDS += "    def __call__(self, a, b):\n        return self.scale * (a @ b.T) ** {}\n"

SAME_OR_NOT = [
    # What it was before: one name, one repr, two kernels.
    (kernel_of(SCALED.format(1.0, 2)), kernel_of(SCALED.format(1.0, 3))),
    (kernel_of(SCALED.format(1.0, 2)), kernel_of(SCALED.format(4.0, 2))),
    (kernel_of(CALLING.format(2, 1)), kernel_of(CALLING.format(3, 1))),
    (kernel_of(CALLING.format(2, 1)), kernel_of(CALLING.format(2, 5))),
    (module(KINDS.format(2)).Own(1.0), module(KINDS.format(3)).Own(1.0)),
    (module(KINDS.format(2)).Own(1.0), module(KINDS.format(2)).Own(2.0)),
    (kernel_named("rbf"), kernel_named("matern32")),
    (kernel_named("rbf + polynomial(2)"), kernel_named("rbf + polynomial(3)")),
    (RBF(1.0), RBF(2.0)),
    (RBF(1.0) + WhiteKernel(1.0), RBF(1.0) + WhiteKernel(2.0)),
    (Ridge(alpha=1.0), Ridge(alpha=2.0)),
    (np.arange(5.0), np.arange(5)),
    (np.full(1000, 0.1), np.append(np.full(999, 0.1), 0.2)),
    (np.array(["a", None], dtype=object), np.array(["a", "b"], dtype=object)),
    ({"a": 0.1, "b": 0.2}, {"a": 0.2, "b": 0.1}),
    ({1: 0.1}, {"1": 0.1}),
    (np.random.default_rng(1), np.random.default_rng(2)),
    (np.random.RandomState(1), np.random.RandomState(2)),
    (functools.partial(kernel_of(SCALED.format(1.0, 2)), b=1), kernel_of(SCALED.format(1.0, 2))),
    (float("inf"), float("nan")),
    (1, True),
    (np.add, np.multiply),
]


@pytest.mark.parametrize(("one", "other"), SAME_OR_NOT, ids=lambda value: type(value).__name__)
def test_what_differs_is_another_run(one: object, other: object) -> None:
    first, again, second = (
        json.dumps(fingerprint(Toy(value)), allow_nan=False) for value in (one, one, other)
    )
    assert first == again != second


def test_what_is_equal_is_the_same_run() -> None:
    again = kernel_of(SCALED.format(1.0, 2))
    for value, equal in [
        (kernel_of(SCALED.format(1.0, 2)), again),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"x", "y", "z"}, {"z", "y", "x"}),
        ((1, 9), [1, 9]),
        (np.float64(0.5), 0.5),
        (kernel_named("rbf + rbf"), kernel_named("rbf+rbf")),
    ]:
        assert fingerprint(Toy(value)) == fingerprint(Toy(equal))
    assert fingerprint(Toy(1, "vote", 4)) == fingerprint(Toy(1, "bayes_point", 1))


class Silent:
    """An object that does not tell what it is."""


def inside() -> Callable[..., object]:
    def kernel(a: object, b: object) -> None:
        """One of the functions that are made by a call."""

    return kernel


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (lambda a, b: a @ b.T, "a lambda"),
        (inside(), "inside another"),
        (Silent(), "Silent, which does not tell"),
        (Silent().__init__, "does not tell"),
        ({"kernel": [Silent()]}, "does not tell"),
        (functools.partial(inside(), 1), "inside another"),
        (type("Local", (), {"__qualname__": "f.<locals>.Local"})(), "a class inside a function"),
        (np.ma.masked_array([1.0], [True]), "MaskedArray"),
    ],
)
def test_what_has_no_identity_is_refused_with_a_checkpoint_only(
    value: object, words: str, tmp_path: Path
) -> None:
    run_options(Toy(value), "d", 0.0)
    with pytest.raises(UsageError, match=f"value cannot be used with a checkpoint.*{words}"):
        run_options(Toy(value).given(checkpoint=tmp_path), "d", 0.0)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_other_processes_say_the_same(tmp_path: Path) -> None:
    """No address and no order of a set, which another process has otherwise, is part of it."""
    (tmp_path / "users_own.py").write_text(SCALED.format(1.0, 2))
    program = """
import sys; sys.path.insert(0, sys.argv[1])
import json, users_own
from mercer import KernelGibbsClassifier
from mercer.estimation.run import fingerprint
model = KernelGibbsClassifier(kernel=users_own.kernel, noise_rate={"b": .1, "a": .2})
print(json.dumps(fingerprint(model)))
"""
    said = {
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)],
            env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(said) == 1
