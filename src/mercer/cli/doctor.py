"""`mercer doctor`: versions, threads and caches of this machine, what is wrong, and the remedy."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from mercer.errors import INSTALL, MercerWarning

#: Distributions without which nothing runs, and the module of each.
NEEDED = {
    "numpy": "numpy", "scipy": "scipy", "scikit-learn": "sklearn", "numba": "numba",
    "joblib": "joblib", "arviz-stats": "arviz_stats", "matplotlib": "matplotlib",
}  # fmt: skip
#: Extras: the distribution and the module of each, and what it is for.
EXTRAS = {
    "arrow": ("pyarrow", "pyarrow", "Parquet and Arrow files"),
    "excel": ("openpyxl", "openpyxl", "spreadsheets (.xlsx)"),
    "zstd": ("backports.zstd", "backports.zstd", "files packed by zstd (.zst)"),
    "arviz": ("arviz", "arviz", "posterior_.to_arviz()"),
    "river": ("river", "river", "to_river()"),
    "review": ("uvicorn", "uvicorn", "the page of `mercer review`"),
    "torch": ("torch", "torch", "spectral models on a GPU"),
    "dask": ("distributed", "distributed", "rows and chains on a Dask cluster"),
}
METHODS = ("gp", "sphere", "basis", "spectral")
_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at and found; ``remedy`` is what to do, where it is wrong."""

    name: str
    words: str
    remedy: str = ""


def run(is_json: bool) -> None:
    """Do the work of `mercer doctor`: `mercer.cli.commands` has its options."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        packages, extras = list(_packages()), list(_extras())
    broken = [finding for finding in packages if finding.remedy]
    if broken:  # nothing else can be imported
        raise ImportError("; ".join(f"{each.words}; {each.remedy}" for each in broken))
    from mercer.cli.terminal import Session

    session = Session(is_json)
    found = [*_python(), *packages, *extras, *_devices(), *_machine(), *_caches(), *_data()]
    for finding in found:
        session.say(finding.name, finding.words)
    wrong = [finding for finding in found if finding.remedy]
    for finding in wrong:
        session.say("wrong", f"{finding.name}: {finding.words}; {finding.remedy}")
    if not wrong:
        session.say("verdict", "nothing is wrong")
    session.give({"findings": [asdict(each) for each in found], "n_wrong": len(wrong)})


def _python() -> Iterator[Finding]:
    import mercer

    version = importlib.metadata.version("mercer")
    yield Finding("mercer", f"{version}, in {Path(mercer.__file__).parent}")
    where = f"{platform.platform(terse=True)} {platform.machine()}"
    yield Finding("python", f"{platform.python_version()}, {sys.executable}, {where}")


def _packages() -> Iterator[Finding]:
    """Import what everything else needs; all versions are one line."""
    versions = []
    for name, module in NEEDED.items():
        try:
            importlib.import_module(module)
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except Exception as error:  # a broken installation raises anything
            remedy = f"install it again: pip install --force-reinstall {name}"
            yield Finding("packages", f"{name} cannot be imported ({error})", remedy)
    yield Finding("packages", ", ".join(versions))


def _extras() -> Iterator[Finding]:
    for extra, (name, module, use) in EXTRAS.items():
        if extra == "zstd" and sys.version_info >= (3, 14):
            yield Finding(extra, f"Python's own, for {use}")
            continue
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield Finding(extra, f"not there: {INSTALL.format(extra)}, for {use}")
            continue
        try:
            importlib.import_module(module)
        except Exception as error:
            remedy = f"install it again: pip install --force-reinstall {name}"
            yield Finding(extra, f"{name} {version} cannot be imported ({error})", remedy)
            continue
        yield Finding(extra, f"{name} {version}, for {use}")


def _devices() -> Iterator[Finding]:
    """Say which GPUs `device` may name, where PyTorch is there."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    if importlib.util.find_spec("array_api_compat") is None:
        words = "none without array-api-compat, which PyTorch does not bring"
        yield Finding("gpu", words, INSTALL.format("torch"))
        return
    n_gpus, name_of = torch.cuda.device_count(), torch.cuda.get_device_name
    names = ", ".join(f"{name_of(i)} (cuda:{i})" for i in range(n_gpus))
    words = f"{names}, for --set device=cuda of spectral" if names else "none that PyTorch can use"
    yield Finding("gpu", words)


def _machine() -> Iterator[Finding]:
    from joblib import cpu_count
    from threadpoolctl import threadpool_info

    n_cores, n_usable = os.cpu_count() or 1, cpu_count()
    yield Finding("cores", f"{n_usable} usable of {n_cores}")
    set_to = [f"{name}={os.environ[name]}" for name in _THREADS if name in os.environ]
    for pool in threadpool_info():
        n_threads = pool["num_threads"]
        words = f"{pool['internal_api']} {pool['version'] or ''}".strip()
        words += (
            f", {n_threads} thread{'s' * (n_threads > 1)}, {Path(pool['filepath']).parent.name}"
        )
        remedy = ""
        if n_threads > n_usable:
            remedy = f"more threads than usable cores are slow; set OMP_NUM_THREADS={n_usable}"
        yield Finding(pool["user_api"], words, remedy)
    yield Finding("threads", ", ".join(set_to) or "no environment variable sets their number")


def _caches() -> Iterator[Finding]:
    """Look where compiled loops and parsed text files are kept."""
    from mercer.data.csv_cache import cache_folder
    from mercer.numerics.compilation import look_at_cache

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for method in METHODS:
            importlib.import_module(f"mercer.{method}.estimator")
    lost = [str(each.message) for each in caught if issubclass(each.category, MercerWarning)]
    cache = look_at_cache()
    for folder in cache.folders:
        if not lost and not _is_writable(folder):
            lost = [f"{folder} cannot be written: what it lacks is compiled anew by every run"]
    words = f"{cache.n_compiled} of {cache.n_loops} compiled, {_size(cache.n_bytes)}"
    if not cache.n_compiled:
        words += " (the first fit compiles those of its method, in about ten seconds)"
    shared = os.path.commonpath([str(folder) for folder in cache.folders])
    remedy = f"{lost[0]}; set NUMBA_CACHE_DIR to a folder of yours" if lost else ""
    yield Finding("loops", f"{words}, in {shared}", remedy)
    rows = cache_folder()
    remedy = "" if _is_writable(rows) else "it cannot be written; set XDG_CACHE_HOME"
    n_bytes = sum(path.stat().st_size for path in rows.rglob("*") if path.is_file())
    yield Finding("rows", f"{_size(n_bytes)} of parsed text files, in {rows}", remedy)


def _data() -> Iterator[Finding]:
    folder = os.environ.get("MERCER_DATA")
    if folder is None:
        yield Finding("data", "MERCER_DATA is not set: the sets of the papers are not looked for")
        return
    remedy = "" if os.path.isdir(folder) else "there is no such folder; set MERCER_DATA anew"
    yield Finding("data", f"MERCER_DATA={folder}", remedy)


def _is_writable(folder: Path) -> bool:
    """Whether a folder can be written, or made where it is not there."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK)


def _size(n_bytes: int) -> str:
    """Write a number of bytes in MB."""
    return f"{n_bytes / 1e6:.1f} MB"
