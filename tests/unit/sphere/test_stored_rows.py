"""Rows on a disk: the draws of the same rows in memory, to the last bit, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mercer
import mercer.data
from mercer import KernelGibbsClassifier, TableEncoder
from mercer.data import source
from mercer.data.csv_cache import cache_folder
from mercer.errors import DataError, MercerWarning, StorageError, UsageError
from mercer.sphere import space

pytestmark = [
    pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
]

N = 17_000  # two blocks, the second not whole
RUN = {"n_draws": 3, "n_warmup": 5, "n_chains": 2, "random_state": 3, "progress": False}


def table(n: int = N) -> np.ndarray:
    """Inputs of several scales, one skewed and one constant; labels, a tenth of them wrong."""
    rng = np.random.default_rng(11)
    X = rng.standard_normal((n, 4)) * [1.0, 20.0, 0.1, 1.0]
    X[:, 2], X[:, 3] = np.exp(2.0 * X[:, 0]), 7.0
    y = (np.sin(2.0 * X[:, 0]) + X[:, 1] / 20.0 > 0.0) ^ (rng.random(n) < 0.1)
    return np.column_stack([X, y])


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return table()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def fits(rows: np.ndarray, folder: Path, **how: object) -> list[KernelGibbsClassifier]:
    """From memory, and from a file."""
    np.save(folder / "rows.npy", rows)
    with pytest.warns(MercerWarning, match=r"constant columns .* 'x3'"):
        one = KernelGibbsClassifier(**RUN, **how).fit(rows[:, :-1], rows[:, -1].astype(int))
    stored = mercer.data.open(folder / "rows.npy")
    with pytest.warns(MercerWarning, match=r"constant columns .* 'x3'"):
        two = KernelGibbsClassifier(**RUN, **how).fit(stored, "x4")
    return [one, two]


def assert_same(one: KernelGibbsClassifier, two: KernelGibbsClassifier) -> None:
    for name, values in one.posterior_.variables.items():
        np.testing.assert_array_equal(two.posterior_.variables[name], values, err_msg=name)
    for name in ("classes_", "label_proba_", "label_error_proba_", "recorded_", "notes_"):
        np.testing.assert_array_equal(getattr(two, name), getattr(one, name), err_msg=name)
    assert two.compared_ == one.compared_


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "how",
    [
        {"kernel": "linear"},
        {"kernel": "linear", "fit_intercept": False, "standardize": False, "n_jobs": 2},
        {"rank": 12, "lengthscale": "median", "standardize": "arcsinh"},
        {"kernel": "rbf + matern32", "rank": 9, "lengthscale": "median", "noise_rate": 0.1},
        {"rank": 8, "lengthscale": 3.0, "approximation": "fourier", "standardize": "robust"},
    ],
    ids=lambda how: " ".join(map(str, how.values())),
)
def test_draws_are_those_of_rows_in_memory(
    how: dict[str, object], rows: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(space, "_CELLS", 2 * N)  # two columns, then two
    one, two = fits(rows, tmp_path, **how)
    assert_same(one, two)
    X = rows[:50, :-1]
    np.testing.assert_array_equal(two.predict_proba(X), one.predict_proba(X))
    two.save(tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.label_error_proba_, one.label_error_proba_)
    assert not any(cache_folder().iterdir())  # the features are gone


def test_a_sign_that_is_wrong_in_one_row_is_seen(
    rows: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: one far error more than there is, in the file of features alone."""
    kept = space.StoredInputs.kept

    def wrong(self, make, width):
        def turned(first, blocks):
            for k, block in enumerate(make(first, blocks)):
                if k == 1:
                    block[np.argmax(np.abs(block).sum(axis=1))] *= -1.0
                yield block

        return kept(self, turned, width)

    monkeypatch.setattr(space.StoredInputs, "kept", wrong)
    one, two = fits(rows, tmp_path, kernel="linear")
    with pytest.raises(AssertionError):
        assert_same(one, two)


def test_few_rows_are_read_with_all_that_memory_allows(tmp_path: Path) -> None:
    """Three classes by an exact kernel."""
    rows = table(30)
    rows[:, -1] += rows[:, 0] > 0.5
    one, two = fits(rows, tmp_path, lengthscale="median", nugget=0.1)
    assert_same(one, two)
    assert len(two.classes_) == 3


@pytest.mark.filterwarnings("ignore:overflow encountered")  # a round of warm-up has one draw
def test_classes_that_are_text_and_inputs_with_gaps(rows: np.ndarray, tmp_path: Path) -> None:
    lines = [
        f"{'' if k % 50 == 0 else repr(a)},{'uvw'[k % 3]},{'yes' if y else 'no'}"
        for k, (a, y) in enumerate(zip(rows[:, 0].tolist(), rows[:, -1], strict=True))
    ]
    (tmp_path / "rows.csv").write_text("a,b,label\n" + "\n".join(lines) + "\n")
    encoder = TableEncoder(missing="impute")
    stored = mercer.data.open(tmp_path / "rows.csv", encode=encoder, target="label", progress=False)
    model = KernelGibbsClassifier(kernel="linear", **RUN).fit(stored, "label")
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.encoder_.encoding_.sources.count("b") == 3
    assert set(model.recorded_[:50]) == {"no", "yes"}


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ({}, DataError, "set rank=512"),
        ({"kernel": "precomputed"}, UsageError, "takes a Gram matrix in memory"),
        ({"kernel": "linear", "sampler": "lines"}, UsageError, "sampler='lines' needs at most"),
    ],
)
def test_what_needs_the_rows_in_memory_is_refused(
    how: dict[str, object], error: type[Exception], words: str, rows: np.ndarray
) -> None:
    stored = mercer.data.open(rows[:, [0, 1, 2, 4]])
    with pytest.raises(error, match=words):
        KernelGibbsClassifier(**how, **RUN).fit(stored, "x3")
    assert not cache_folder().exists() or not any(cache_folder().iterdir())


def test_several_classes_of_many_rows_and_fractions_are_refused(rows: np.ndarray) -> None:
    several = rows[:, [0, 1, 4]].copy()
    several[::3, 2] = 2.0
    model = KernelGibbsClassifier(kernel="linear", **RUN)
    with pytest.raises(UsageError, match=r"more than two classes of .* there are 3 classes"):
        model.fit(mercer.data.open(several), "x2")
    with pytest.raises(DataError, match="is not a whole number, so no class"):
        model.fit(mercer.data.open(several), "x0")


def test_a_full_disk_is_said(rows: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, **how: object) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(source, "NamedTemporaryFile", Full)
    stored = mercer.data.open(rows[:, [0, 1, 4]])
    with pytest.raises(StorageError, match=r"No space left on device.*XDG_CACHE_HOME"):
        KernelGibbsClassifier(kernel="linear", **RUN).fit(stored, "x2")


_PROGRAM = """
import sys, warnings
import numpy as np
import mercer.data
from mercer import KernelGibbsClassifier

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024

warnings.simplefilter("ignore")
model = KernelGibbsClassifier(
    kernel="linear", n_draws=2, n_warmup=2, n_chains=1, random_state=0, progress=False
)
rng = np.random.default_rng(0)
few = rng.standard_normal((6000, 3))
model.fit(few, few[:, 0] > 0)  # loads and compiles what is needed
before, most = anonymous(), 0.0
step = mercer.sphere.screened.ScreenedSampler.step

def watched(*given):
    global most
    most = max(most, anonymous())
    return step(*given)

mercer.sphere.screened.ScreenedSampler.step = watched
model.fit(mercer.data.open(sys.argv[1]), sys.argv[2])
print(most - before)
"""


@pytest.mark.slow  # as that of a pass in test_opening
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_does_not_grow_with_the_inputs(tmp_path: Path) -> None:
    """120 000 rows of 50 columns: 48 MB as they are, 24 MB as features; without a copy it takes 51.

    The rows that a chain starts from are all of them here, and gone by the first step or not yet.
    """
    rng = np.random.default_rng(4)
    X = rng.standard_normal((120_000, 50))
    np.save(tmp_path / "rows.npy", np.column_stack([X, X[:, 0] > 0.0]))
    out = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path / "rows.npy"), "x50"],
        capture_output=True, text=True, check=True,
        env=os.environ | {"MALLOC_MMAP_THRESHOLD_": "1000000"},  # what is freed is given back
    )  # fmt: skip
    assert float(out.stdout) < 70.0


def test_features_of_a_killed_process_are_removed(rows: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", rows)
    code = (
        "import mercer.data; from mercer import KernelGibbsClassifier as Model; "
        f"rows = mercer.data.open({str(tmp_path / 'rows.npy')!r}); "
        "Model(rank=8, lengthscale='median', n_draws=10**6, progress=False).fit(rows, 'x4')"
    )

    def files() -> list[Path]:
        return list(cache_folder().glob("fit-*/*"))

    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as running:
        assert _comes(lambda: bool(files()))
        running.kill()
    assert _comes(lambda: not any(cache_folder().glob("fit-*")))


def _comes(is_there: Callable[[], bool], seconds: float = 120.0) -> bool:
    end = time.monotonic() + seconds
    while not is_there() and time.monotonic() < end:
        time.sleep(0.05)
    return is_there()


def test_columns_of_rows_on_a_disk_are_learned_some_at_a_time(monkeypatch) -> None:
    """Each number is read once, whatever the widths; of unscaled ones extremes, in one pass."""
    table = np.random.default_rng(3).standard_normal((700, 21))
    rows = source.open_array(table)
    passes = []
    each = type(rows).each

    def counted(self, *given):
        passes.append(self.n_columns)
        return each(self, *given)

    monkeypatch.setattr(type(rows), "each", counted)
    for cells, expected in ((2**23, [20]), (7000, [10, 10]), (1, [8, 8, 4])):
        monkeypatch.setattr(space, "_CELLS", cells)
        passes.clear()
        np.testing.assert_array_equal(np.hstack(list(space.some_columns(rows))), table[:, :-1])
        assert passes == expected
    np.testing.assert_array_equal(space.extremes(rows)[0], table[:, :-1].min(axis=0))
    np.testing.assert_array_equal(space.extremes(rows)[1], table[:, :-1].max(axis=0))
