"""Loops are compiled once on a machine, and also where no folder of the machine may be written."""

from __future__ import annotations

import inspect
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mercer import GPClassifier
from mercer.features.products import cosines_and_sines
from mercer.gp import laplace
from mercer.gp import loops as gp_loops
from mercer.likelihoods.polya_gamma import fill_polya_gamma
from mercer.numerics import compilation
from mercer.spectral import fitting as spectral_fitting
from mercer.spectral import loops as spectral_loops
from mercer.sphere import fitting as sphere_fitting
from mercer.sphere import loops as sphere_loops
from mercer.sphere import several_loops
from mercer.sphere.several import separating_functions
from support import loops_to_compile
from support.first_run import run_with_cache

_TWICE = """
from mercer.numerics.compilation import compile_first
from support.loops_to_compile import total, warm_up
told = []
compile_first(told.append, warm_up)
first = len(told)
compile_first(told.append, warm_up)
print(first, len(told), total(1000).hex())
"""


def test_loops_are_compiled_once_said_once_and_give_the_same_bits(tmp_path: Path) -> None:
    """And again where what is cached is of other sources."""
    *compiled, first = run_with_cache(_TWICE, tmp_path)[0].split()
    *cached, again = run_with_cache(_TWICE, tmp_path)[0].split()
    assert (compiled, cached) == (["1", "1"], ["0", "0"])
    assert first == again
    (stamp,) = tmp_path.rglob("mercer-loops.sha256")
    stamp.write_text("of another release")
    cached = list(tmp_path.rglob("*.nbi"))
    assert cached
    assert run_with_cache(_TWICE, tmp_path)[0].split()[:2] == ["1", "1"]


def test_a_warm_up_that_fails_is_tried_again(monkeypatch, tmp_path: Path) -> None:
    told: list[str] = []
    monkeypatch.setattr(compilation, "_stamp", lambda warm_up: tmp_path / "stamp")
    for _ in range(2):
        compilation.compile_first(told.append, loops_to_compile.fails)
    assert len(told) == 2


def test_without_a_folder_that_can_be_written(tmp_path: Path) -> None:
    """Neither beside the source nor at home: one line, and the answer; nothing is left behind."""
    (tmp_path / "loops.py").write_text(Path(loops_to_compile.__file__).read_text())
    (tmp_path / "__pycache__").write_text("a file where the folder would be")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "XDG"))}
    env |= {"HOME": "/proc/none", "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    env |= {"TMPDIR": str(tmp_path)}
    program = "import loops; print(loops.total(1))"
    done = subprocess.run(
        [sys.executable, "-B", "-c", program], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == str(math.cos(1.0)), done.stderr
    assert done.stderr.count("no folder for compiled loops can be written") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"loops.py", "__pycache__"}


_FIRST_RUN = """
import hashlib, mercer, numpy as np
X = np.random.default_rng(0).standard_normal((30, 3))
model = mercer.{make}
model.set_params(random_state=0, progress=True{settings})
model.fit(X, {target})
print(hashlib.sha256(np.ascontiguousarray(model.predict{proba}(X)).tobytes()).hexdigest())
"""
_FEW_DRAWS = ", n_draws=3, n_warmup=2, n_chains=1"
_CLASSES = {"target": "X[:, 0] > 0.0", "proba": "_proba"}
FIRST_RUNS = {
    "gp": {"make": "GPClassifier(kernel='rbf')", **_CLASSES},
    "gp, numbers": {"make": "GPRegressor(kernel='rbf')", "target": "np.sin(X[:, 0])", "proba": ""},
    "gp, several": {
        "make": "GPClassifier(kernel='rbf')",
        "target": "np.arange(30) % 3",
        "proba": "_proba",
    },
    "sphere": {"make": "KernelGibbsClassifier(lengthscale=1.0, nugget=0.1)", **_CLASSES},
    "spectral": {
        "make": "BaNKRegressor(n_frequencies=30)",
        "target": "np.sin(X[:, 0])",
        "proba": "",
    },
    "spectral, classes": {"make": "BaNKClassifier(n_frequencies=30)", **_CLASSES},
    "basis": {
        "make": "SequentialKernelRegressor()",
        "target": "np.sin(X[:, 0])",
        "proba": "",
        "settings": "",
    },
    "basis, classes": {"make": "SequentialKernelClassifier()", **_CLASSES, "settings": ""},
}


@pytest.mark.slow  # each compiles a method: ten seconds and more
@pytest.mark.parametrize("name", FIRST_RUNS)
def test_p1_compiling_changes_no_bit_and_is_said_once(name: str, tmp_path: Path) -> None:
    """The run that compiles gives the bits of the next one, and is the only one that says so."""
    program = _FIRST_RUN.format(**{"settings": _FEW_DRAWS, **FIRST_RUNS[name]})
    first, said = run_with_cache(program, tmp_path)
    again, silence = run_with_cache(program, tmp_path)
    assert first == again
    assert "compiling the inner loops of this model" in said
    assert "compiling" not in silence


def test_every_loop_of_bank_is_compiled_ahead() -> None:
    spectral_fitting.compile_now()
    spectral_fitting.compile_classes_now()
    loops = [
        value
        for name, value in vars(spectral_loops).items()
        if hasattr(value, "signatures")
        and not name.startswith("_")
        and value.__module__ == spectral_loops.__name__
    ]
    assert len(loops) == 15
    assert all(loop.signatures for loop in [*loops, cosines_and_sines, fill_polya_gamma])


def test_a_fit_of_two_classes_compiles_nothing_itself() -> None:
    laplace.compile_now()
    loops = [value for value in vars(gp_loops).values() if hasattr(value, "signatures")]
    before = [len(loop.signatures) for loop in loops]
    X = np.random.default_rng(0).standard_normal((20, 2))
    GPClassifier(kernel="rbf", random_state=0, progress=False).fit(X, X[:, 0] > 0.0)
    assert [len(loop.signatures) for loop in loops] == before


def test_loops_of_the_sphere_are_compiled_where_they_are_needed(monkeypatch) -> None:
    """Those of several classes and of the great circle are not, where nobody asks for them."""
    asked = []
    monkeypatch.setattr(
        sphere_fitting,
        "compile_first",
        lambda tell, *warm_ups: asked.extend(warm_up.__name__ for warm_up in warm_ups),
    )
    for arguments, functions in (
        ((), ["compile_now"]),
        ((3,), ["compile_now", "compile_several"]),
        ((2, "great_circle"), ["compile_now", "compile_circle"]),
    ):
        asked.clear()
        sphere_fitting.compile_loops(lambda line: None, *arguments)
        assert asked == functions
        for function in functions:
            getattr(sphere_fitting, function)()


@pytest.mark.parametrize(
    ("loop", "costs", "warm_up", "axes"),
    [
        (sphere_loops.trajectories, "total", sphere_fitting.compile_now, [3]),
        (sphere_loops.tempered_sweeps, "total", sphere_fitting.compile_now, [3]),
        (several_loops.cycles, "step", sphere_fitting.compile_several, [2, 3]),
    ],
    ids=["trajectories", "tempered_sweeps", "cycles"],
)
def test_loops_of_the_sphere_are_compiled_for_rates_by_class_too(
    loop, costs, warm_up, axes: list[int]
) -> None:
    """Costs of learned rates of two classes are of the type of others; of a matrix not."""
    warm_up()
    position = list(inspect.signature(loop.py_func).parameters).index(costs)
    assert sorted(signature[position].ndim for signature in loop.signatures) == axes


def test_the_start_of_certain_labels_is_compiled_ahead() -> None:
    """That of several classes, for the arrays that it is asked with; else a first fit compiles."""
    sphere_fitting.compile_several()
    n_before = len(several_loops.perceptron.signatures)
    x = np.linspace(-1.0, 1.0, 12)  # least squares never say the class in the middle
    separating_functions(np.column_stack([np.ones(12), x]), np.arange(12) // 4, 3, np.arange(12))
    assert len(several_loops.perceptron.signatures) == n_before == 1


def test_other_methods_do_not_change_what_is_cached(tmp_path: Path, monkeypatch) -> None:
    """The loops of one method call those of the common folders, and none of another method."""
    home = tmp_path / "numerics" / "compilation.py"
    for name in ("numerics", "gp", "sphere", "features"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "loops.py").write_text("@compiled(nogil=True)")
    monkeypatch.setattr(compilation, "__file__", str(home))

    def digests() -> list[str]:
        compilation._digest.cache_clear()
        return [compilation._digest(name) for name in ("gp", "sphere", "features")]

    first = digests()
    (tmp_path / "gp" / "loops.py").write_text("@compiled(nogil=False)")
    second = digests()
    assert [a == b for a, b in zip(first, second, strict=True)] == [False, True, True]
    (tmp_path / "features" / "loops.py").write_text("@compiled(nogil=False)")
    assert not set(second) & set(digests())
    compilation._digest.cache_clear()


_IN_AN_ORDER = """
import hashlib, mercer, numpy as np
X = np.random.default_rng(0).standard_normal((30, 3))
y = X[:, 0] * X[:, 1] + np.sin(X[:, 2])
labels = np.digitize(y, [-0.5, 0.5])
for name in {names}:
    is_regressor = name.endswith("Regressor")
    model = getattr(mercer, name)(random_state=0, progress=False)
    if "n_chains" in model.get_params():
        model.set_params(n_draws=20, n_chains=1)
    model.fit(X, y if is_regressor else labels if name != "GPClassifier" else labels > 0)
    answers = model.predict(X) if is_regressor else model.predict_proba(X)
    print(name, hashlib.sha256(answers.tobytes()).hexdigest())
"""


def test_p1_what_was_used_before_changes_no_bit() -> None:
    """Functions that compiled loops share are in the process once: as its first caller has them."""
    names = ["SequentialKernelRegressor", "SequentialKernelClassifier", "GPRegressor"]
    names += ["GPClassifier", "KernelGibbsClassifier", "BaNKRegressor", "BaNKClassifier"]
    first, second = (_lines_in_order(order) for order in (names, names[::-1]))
    assert len(first) == len(names)
    assert sorted(first) == sorted(second)


def _lines_in_order(names: list[str]) -> list[str]:
    program = _IN_AN_ORDER.format(names=names)
    run = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()
