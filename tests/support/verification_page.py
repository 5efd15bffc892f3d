"""The tables of ``docs/verification.md``: ``python -m support.verification_page`` makes them.

Run it in the folder ``tests``. What is compared is the first paragraph of a test file; the figures
are those of its docstrings and of its statements; what a code of a promise or of a bad input means
is said here. A test holds the page against this, and looks for codes that are not on it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "verification.md"

FAMILIES = {
    "KGS": "Kernel Gibbs sampler (`sphere`)",
    "SMC": "Filters over sets of kernel centres (`basis`)",
    "GP": "Gaussian processes for classes (`gp`)",
    "GPR": "Gaussian processes for numbers (`gp`)",
    "BNK": "BaNK (`spectral`)",
    "IMP": "Importance sampling of hyperparameters",
    "MIX": "Moves between components",
    "RATE": "Rates of wrong labels",
    "DIST": "Sums over blocks of rows",
    "COV": "Coverage of intervals",
}
MEANINGS = {
    "Traps of the papers": {
        "K1": "Errors of an arc are counted at its middle, not at half its length.",
        "K2": "A direction is isotropic in the feature space, not in the expansion coefficients.",
        "K3": "Without noise a chain starts at a classifier that is right on every row.",
        "S1": "The weight of a particle holds the probability of the way back.",
        "S2": "Priors of the variances are proper.",
        "S3": "Each row's target has its own prior of the centres, normalised.",
        "G1": "Laplace's evidence has one determinant, of I + W^(1/2) K W^(1/2).",
        "G2": "The energy is a function of the hyperparameters alone: no warm starts.",
        "B1": "In the ratio of a joint move each density belongs to its own frequencies.",
        "B2": "Laplace's evidence counts the coefficients, not the rows.",
        "B3": "The prior of the coefficients scales with the noise.",
        "B4": "Exchanging a frequency changes two columns of features, and both are exchanged.",
    },
    "Promises": {
        "P1": "The same seed, versions and machine: the same bits, for any number of processes.",
        "P2": "A run that was killed and goes on gives the bits of one that was not.",
        "P3": "A file is the old one or the new one, whole, whenever the process is killed.",
        "P4": "Reading a file runs no code from it and takes no more memory than it declares.",
        "P5": "Predictions are finite numbers, whatever the row.",
        "P6": "A test of random numbers states its false alarm and what it detects.",
        "P7": "What is not random agrees across machines to 1e-8.",
    },
    "Bad data": {
        "D1": "No rows, no columns, or one row.",
        "D2": "One class only.",
        "D3": "Missing values and infinities.",
        "D4": "Text, complex numbers, ragged rows, targets of the wrong kind.",
        "D5": "A column twice, or no target.",
        "D6": "Other columns, or another order of them, when predicting.",
        "D7": "Labels of any type, and labels never seen.",
        "D8": "Values of any size, far from zero, and units that differ.",
        "D9": "Columns that are constant.",
        "D10": "Rows that are there twice, also with different targets.",
        "D11": "Many equal rows: a Gram matrix that is all but singular.",
        "D12": "More rows or columns than memory holds.",
        "D13": "Arguments out of range, refused by name when fitting.",
        "D14": "Any array, frame or memory map gives the same result; sparse matrices are refused.",
        "D15": "Text with byte-order marks, NULs, other encodings, endless quotes; gzip bombs.",
        "D16": "Control characters in names are escaped where they are printed.",
        "D17": "Files that are not there, not readable, or no files.",
    },
    "Bad model files": {
        "F1": "Cut short or with a bit flipped.",
        "F2": "Of a newer format; those of older ones are read.",
        "F3": "Pickles of any kind: nothing of them is run.",
        "F4": "Archives under our suffix.",
        "F5": "Headers that declare more than there is, or than memory holds.",
        "F6": "Names of estimators that are not in the table.",
        "F7": "Manifests that are deep, of other types or out of range.",
        "F8": "Valid arrays that contradict each other.",
    },
    "Trouble while running": {
        "R1": "Ctrl-C: the last state is saved, and how to resume is said.",
        "R2": "SIGTERM: the same, with its own exit code.",
        "R3": "SIGKILL while writing: what was there before is read.",
        "R4": "A full or read-only disk: the old file stays, and the temporary one goes.",
        "R5": "Two processes with one folder: the second is refused, and the first named.",
        "R6": "Other data or options are another run; another version is refused.",
        "R7": "A worker that is lost: its work is done again, with the same bits.",
        "R8": "A scheduler that is lost ends the run, which can be resumed.",
        "R9": "Nothing listens beyond this machine.",
        "R10": "Clocks that jump, forks and thread pools change nothing.",
        "R11": "A package that is not installed is named where it is needed.",
    },
}
_LONG = re.compile(rf"\b({'|'.join(FAMILIES)})-(\d+)\b")
_SHORT = re.compile(r"(?<![\w\"'.])([KSGBPDFR])(\d{1,2})(?=[\s,:;.)\]]|-[a-z])")
_SHORT_ID = re.compile(r"[\"']([DF])(\d{1,2})(?=[ \"'-])")
_SHORT_NAME = re.compile(r"def test_([ksgbpdfr])(\d{1,2})_")
_LONG_NAME = re.compile(rf"^test_({'|'.join(FAMILIES).lower()})_(\d+)(?:_and_(\d+))?(?:_|$)")
_DEFINED = re.compile(rf"^def test_({'|'.join(FAMILIES).lower()})_\d", re.MULTILINE)
_ALARM = re.compile(r"alarms? (?:rate )?(?:of |is )?(\d[\d.]*(?:e-\d+)?)")
_DETECTS = re.compile(r"[Dd]etects ((?:[^.;:(]|\.\d|\([^)]*\))+)")
_COUNTS = re.compile(r"(?:n_)?(?:count|draws|runs|sweeps|pairs|steps|repeats)|N", re.IGNORECASE)
_NO_DRAWS = (
    "tiers",
    "default_rng",
    "nodes",
    "of",
    "arange",
    "linspace",
    "standard_normal",
    "fixed_rate",
)
_STATISTICS = ("z_limit", "dkw_limit", "FALSE_ALARM", "chi2", "norm.isf", "t.isf")
_NO_CODES = {"B0", "F16", "F32", "F64"}  # a prior's rate, and types of numbers


@dataclass(frozen=True)
class Case:
    """A test function."""

    path: Path
    name: str
    text: str  # its docstring
    is_slow: bool


def codes_of(name: str) -> list[str]:
    """Codes of a test function: ``test_smc_3_and_4_...`` has two."""
    found = _LONG_NAME.match(name)
    if not found:
        return []
    family, *numbers = found.groups()
    return [f"{family.upper()}-{number}" for number in numbers if number]


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _is_slow(node: ast.FunctionDef) -> bool:
    return any("mark.slow" in ast.unparse(each) for each in node.decorator_list)


def _named_counts(tree: ast.AST) -> Iterator[int]:
    """Numbers that are assigned to a name such as N_RUNS, its defaults, and those of a tier."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "tiers":
            yield ast.literal_eval(node.args[0])
        pairs: list[tuple[ast.expr | ast.arg, ast.expr]] = []
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=False))
            else:
                pairs = [(target, value)]
        elif isinstance(node, ast.FunctionDef) and node.args.defaults:
            last = node.args.args[-len(node.args.defaults) :]
            pairs = list(zip(last, node.args.defaults, strict=True))
        for name, value in pairs:
            text = name.arg if isinstance(name, ast.arg) else ast.unparse(name)
            if not _COUNTS.fullmatch(text.strip("_")) or not isinstance(value, ast.Constant):
                continue
            if value.value >= (20 if "runs" in text.lower() else 400):
                yield value.value


def _given_counts(tree: ast.AST) -> Iterator[int]:
    """Whole numbers of at least 1000 that functions are given, but for those of `_NO_DRAWS`."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] not in _NO_DRAWS:
            for each in call.args:
                if isinstance(each, ast.Constant) and isinstance(each.value, int):
                    yield each.value if each.value >= 1000 else 0


def _draws(path: Path) -> int:
    """Most draws, runs or steps that a test file of the first tier takes; 0 where it says none."""
    tree = _tree(path)
    parts = [
        node
        for node in tree.body
        if not (isinstance(node, ast.FunctionDef) and (_is_slow(node) or "_see" in node.name))
    ]
    body = ast.Module(parts, [])
    named = [*_named_counts(body), *_imported_counts(tree)]
    largest = max([0, *named])
    return largest if largest >= 400 else max([largest, *_given_counts(body)])


def _imported_counts(tree: ast.Module) -> Iterator[int]:
    """Numbers such as N_RUNS that a test file takes from a support module."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("support."):
            wanted = {each.name for each in node.names if _COUNTS.fullmatch(each.name)}
            home = (ROOT / "tests" / (node.module or "").replace(".", "/")).with_suffix(".py")
            if wanted:
                statements = [
                    s for s in _tree(home).body if any(w in ast.unparse(s) for w in wanted)
                ]
                yield from _named_counts(ast.Module(statements[:1], []))


@cache
def cases() -> list[Case]:
    """Every test whose name begins with a code of an exact law."""
    found = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if not _DEFINED.search(path.read_text()):
            continue
        for node in _tree(path).body:
            if isinstance(node, ast.FunctionDef) and codes_of(node.name):
                text = " ".join((ast.get_docstring(node) or "").split())
                found.append(Case(path, node.name, text, _is_slow(node)))
    return found


def _statement(path: Path) -> str:
    """First paragraph of a test file without its codes."""
    text = (ast.get_docstring(_tree(path)) or "").split("\n\n")[0]
    text = re.sub(r"^[A-Z]+-\d+[^:]*: ", "", " ".join(text.split()))
    return text[:1].upper() + text[1:]


def _is_mutant(case: Case) -> bool:
    return bool(re.search(r"_sees?(_|$)|_seen$", case.name)) or "utant" in case.text


def _exact_row(code: str) -> list[str]:
    own = [case for case in cases() if code in codes_of(case.name)]
    paths = list(dict.fromkeys(case.path for case in own))
    texts = [ast.get_docstring(_tree(path)) or "" for path in paths] + [case.text for case in own]
    alarms = dict.fromkeys(each for text in texts for each in _ALARM.findall(text))
    is_random = bool(alarms) or any(s in path.read_text() for path in paths for s in _STATISTICS)
    true = [case for case in own if not _is_mutant(case)]
    draws = max(map(_draws, paths)) if is_random else 0
    detects = dict.fromkeys(
        found.strip() for case in true for found in _DETECTS.findall(case.text) if not case.is_slow
    )
    n_mutants, n_slow = sum(map(_is_mutant, own)), sum(case.is_slow for case in own)
    return [
        f"**{code}**",
        " ".join(map(_statement, paths)),
        f"{draws:,}".replace(",", " ") if draws else "",
        (", ".join(alarms) or "1e-6") if is_random else "exact",
        "; ".join(detects),
        f"{len(true)} + {n_mutants}" + (f" ({n_slow} slow)" if n_slow else ""),
        ", ".join(f"`{path.relative_to(ROOT / 'tests')}`" for path in paths),
    ]


def long_codes_in(text: str) -> set[str]:
    """Codes of exact laws, and those of traps that say so."""
    found = {f"{family}-{number}" for family, number in _LONG.findall(text)}
    return found | set(re.findall(r"[Tt]raps? ([KSGB]\d)\b", text))


def codes_in(text: str) -> set[str]:
    """Every code that a file mentions or names a test by."""
    found = long_codes_in(text)
    for pattern in (_SHORT, _SHORT_ID, _SHORT_NAME):
        found |= {f"{letter.upper()}{number}" for letter, number in pattern.findall(text)}
    return found - _NO_CODES


@cache
def _mentions() -> dict[str, set[str]]:
    """Codes of every file of the tests."""
    return {
        path.relative_to(ROOT / "tests").as_posix(): codes_in(path.read_text())
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path != Path(__file__)
    }


def _markdown(header: list[str], rows: list[list[str]]) -> list[str]:
    cells = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in cells]


def tables() -> str:
    """All tables of the page."""
    found = {code for case in cases() for code in codes_of(case.name)}
    lines: list[str] = []
    header = [
        "code",
        "what is compared",
        "draws or runs",
        "false alarm",
        "detects",
        "tests",
        "in `tests/`",
    ]
    for family, title in FAMILIES.items():
        own = [code for code in found if code.rpartition("-")[0] == family]
        if own:
            own.sort(key=lambda code: int(code.rpartition("-")[2]))
            lines += [f"### {title}", "", *_markdown(header, [_exact_row(c) for c in own]), ""]
    for title, meanings in MEANINGS.items():
        rows = []
        for code, meaning in meanings.items():
            homes = [f"`{path}`" for path, codes in _mentions().items() if code in codes]
            if homes:
                more = [f"and {len(homes) - 4} more"] if len(homes) > 4 else []
                rows.append([f"**{code}**", meaning, ", ".join(homes[:4] + more)])
        lines += [f"## {title}", "", *_markdown(["code", "meaning", "in `tests/`"], rows), ""]
    return "\n".join(lines)


_MARKS = re.compile(r"<!-- from the tests -->\n.*<!-- end -->", re.DOTALL)


def filled(page: str) -> str:
    """The page with its tables made anew."""
    block = f"<!-- from the tests -->\n\n{tables()}\n<!-- end -->"
    return _MARKS.sub(lambda _: block, page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
