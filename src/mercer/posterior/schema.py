"""What a file must hold, as tables: of each field its type, shape and range, by one checker.

A manifest's entries are described by `Text`, `Flag`, `Whole`, `Number`, `ListOf`, `MapOf`,
`Fields` and `Maybe`; arrays by `Array`. Sizes are symbols (n rows, d inputs, C classes, ...): the
first field that names one fixes it, all others must agree. Descriptions of what all models have
stand at the end of this file; what a method adds stands with the method, in the same words.

Nothing is converted: a file that holds "3" for 3 was not written by mercer. What fits is used as
it is; the first field that does not is named by a `ValueError`, which the reader of the file turns
into the error of a damaged model file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Sizes = dict[str, int]

LARGEST = 1e150  # of a number anywhere in a file: its square is finite
_LARGEST_RAW = 1.7e308  # of inputs in their own units
_LARGEST_TARGET = 1e298  # of targets: laws of numbers take locations and scales up to 1e300
LARGEST_COUNT = 2**53
LONGEST_TEXT = 2**16
_SUM_TOLERANCE = 1e-6

_KINDS = {"float": np.dtype(np.float64), "int": np.dtype(np.int64), "bool": np.dtype(np.bool_)}


class Rule(Protocol):
    """What one entry of a manifest must be."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Raise ValueError, naming ``where``, unless the value is that; fix sizes that are new."""


def _refuse(where: str, words: str) -> None:
    raise ValueError(f"{where} {words}")


def _fits(size: str | int, length: int, sizes: Sizes) -> bool:
    """Whether a length is that of a symbol or number; a new symbol takes it."""
    return length == (size if isinstance(size, int) else sizes.setdefault(size, length))


@dataclass(frozen=True)
class Text:
    """Text of at most 65536 characters; of digits alone, of at most 100."""

    is_digits: bool = False

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """As in `Rule`."""
        if not isinstance(value, str) or len(value) > LONGEST_TEXT:
            _refuse(where, "is not text")
        if self.is_digits and not (value.isascii() and value.isdigit() and len(value) <= 100):
            _refuse(where, "is not text of digits")


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """As in `Rule`."""
        if not isinstance(value, bool):
            _refuse(where, "is neither true nor false")


@dataclass(frozen=True)
class Choice:
    """One of a few texts."""

    among: tuple[str, ...]

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """As in `Rule`."""
        if not isinstance(value, str) or value not in self.among:
            _refuse(where, f"is none of {', '.join(self.among)}")


@dataclass(frozen=True)
class Whole:
    """A whole number in a range, ends included; ``size``: and it is that one."""

    least: int = 0
    most: int = LARGEST_COUNT
    size: str = ""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """As in `Rule`."""
        if type(value) is not int or not self.least <= value <= self.most:
            _refuse(where, f"is no whole number of at least {self.least}")
        if self.size and not _fits(self.size, value, sizes):
            _refuse(where, f"is {value} and not {sizes[self.size]}")


@dataclass(frozen=True)
class Number:
    """A finite number in a range, ends included unless ``is_open`` (above least only)."""

    least: float = -LARGEST
    most: float = LARGEST
    is_open: bool = False

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """As in `Rule`."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not self.least <= value <= self.most:
            _refuse(where, f"is no number from {self.least:g} to {self.most:g}")
        if self.is_open and value == self.least:
            _refuse(where, f"is not above {self.least:g}")


@dataclass(frozen=True)
class Maybe:
    """Null, or what the rule says."""

    rule: Rule

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """As in `Rule`."""
        if value is not None:
            self.rule.check(value, where, sizes)


@dataclass(frozen=True)
class ListOf:
    """A list, each entry by one rule; ``size``: of so many entries, ``least`` of them at least."""

    rule: Rule
    size: str | int = ""
    least: int = 0
    is_set: bool = False  # no entry twice

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """As in `Rule`."""
        if not isinstance(value, list) or len(value) < self.least:
            _refuse(where, f"is no list of {self.least} or more")
        if self.size != "" and not _fits(self.size, len(value), sizes):
            _refuse(where, f"has {len(value)} entries where another number is due")
        for position, each in enumerate(value):
            self.rule.check(each, f"{where}[{position}]", sizes)
        if self.is_set and len(set(value)) < len(value):
            _refuse(where, "names something twice")


@dataclass(frozen=True)
class MapOf:
    """An object with any names; each entry by one rule."""

    rule: Rule

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """As in `Rule`."""
        if not isinstance(value, dict):
            _refuse(where, "is no object")
        for name, each in value.items():
            self.rule.check(each, f"{where}/{name}", sizes)


@dataclass(frozen=True)
class Fields:
    """An object with these entries, each by its own rule; those in ``optional`` may be missing."""

    rules: Mapping[str, Rule]
    optional: frozenset[str] = frozenset()
    is_closed: bool = True  # there is nothing else in it

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """As in `Rule`."""
        if not isinstance(value, dict):
            _refuse(where, "is no object")
        for name, rule in self.rules.items():
            if name in value:
                rule.check(value[name], f"{where}/{name}", sizes)
            elif name not in self.optional:
                _refuse(f"{where}/{name}", "is missing")
        unknown = sorted(set(value) - set(self.rules))
        if self.is_closed and unknown:
            _refuse(f"{where}/{unknown[0][:40]}", "does not belong there")


@dataclass(frozen=True)
class Cells:
    """A table as `Table.to_dict` gives it: text in the first column, numbers or null in others.

    The first ``n_least`` columns are there at least: later versions of mercer added some.
    """

    columns: tuple[str, ...]
    n_least: int

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """As in `Rule`."""
        Fields({"columns": ListOf(Text()), "rows": ListOf(Anything())}).check(value, where, sizes)
        there = tuple(value["columns"])
        if there != self.columns[: max(len(there), self.n_least)]:
            _refuse(f"{where}/columns", f"are not {', '.join(self.columns)}")
        numbers = ListOf(Maybe(Number(-math.inf, math.inf)), size=len(there) - 1)
        for position, row in enumerate(value["rows"]):
            ListOf(Anything(), size=len(there)).check(row, f"{where}/rows[{position}]", sizes)
            Text().check(row[0], f"{where}/rows[{position}]", sizes)
            numbers.check(row[1:], f"{where}/rows[{position}]", sizes)


@dataclass(frozen=True)
class Anything:
    """Whatever JSON holds: checked elsewhere."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """As in `Rule`."""


@dataclass(frozen=True)
class Array:
    """An array: its axes, its type, and the range of its entries."""

    #: For each axis a symbol, a number, or "1+" (any length but 0); "..." at the end: any more.
    axes: tuple[str | int, ...]
    kind: str = "float"  # "float", "int" or "bool", of 64 bits; floats are finite
    least: float = -LARGEST  # ends of the range, included
    most: float = LARGEST
    is_open: bool = False  # the least is not included
    below: str = ""  # a symbol: entries are positions, smaller than it
    sums_to_one: bool = False  # along the last axis
    may_be_nan: bool = False
    is_optional: bool = False

    def check(self, values: NDArray[Any], where: str, sizes: Sizes) -> None:
        """Raise ValueError, naming ``where``, unless the array is that; fix sizes that are new."""
        if values.dtype != _KINDS[self.kind]:
            _refuse(where, f"is an array of {values.dtype}, not of {_KINDS[self.kind]}")
        axes = self.axes[:-1] if self.axes[-1:] == ("...",) else self.axes
        if values.ndim < len(axes) or (axes == self.axes and values.ndim > len(axes)):
            _refuse(where, f"has {values.ndim} axes, not {len(axes)}")
        for size, length in zip(axes, values.shape, strict=False):
            if not (length > 0 if size == "1+" else _fits(size, length, sizes)):
                _refuse(where, f"has the shape {values.shape}, which does not fit the others")
        if self.kind == "bool" or not values.size:
            return
        is_right = (values > self.least) if self.is_open else (values >= self.least)
        is_right &= values <= self.most
        if self.below:
            is_right &= values < sizes[self.below]
        if self.may_be_nan:
            is_right |= np.isnan(values)
        if not is_right.all():
            bad = values[~is_right][0]
            _refuse(where, f"holds {bad}, which is out of its range")
        if self.sums_to_one and np.abs(values.sum(axis=-1) - 1.0).max() > _SUM_TOLERANCE:
            _refuse(where, "does not sum to 1")


def check_arrays(
    arrays: Mapping[str, NDArray[Any]], table: Mapping[str, Array], sizes: Sizes
) -> None:
    """Check arrays by name, in the order of the table; those that it does not name are left alone.

    A ValueError names the first that is missing or not what the table says.
    """
    for name, rule in table.items():
        if name in arrays:
            rule.check(arrays[name], name, sizes)
        elif not rule.is_optional:
            _refuse(name, "is missing")


def draws_of(
    shapes: Mapping[str, tuple[str | int, ...]], least: float = -LARGEST, most: float = LARGEST
) -> dict[str, Array]:
    """Describe draws of floats by the shape of one; all have the same range."""
    axes = ("n_chains", "n_draws")
    return {
        f"draws/{name}": Array((*axes, *shape), least=least, most=most)
        for name, shape in shapes.items()
    }


# What all models have. n_..: sizes of their own; d inputs.

_JUDGED = ("name", "mean", "sd", "mcse", "ess_bulk", "ess_tail", "rhat", "rhat_limit")

DIAGNOSTICS = Fields(
    {
        "table": Cells(_JUDGED, 7),
        "acceptance_rate": Maybe(Number(0.0, 1.0)),
        "n_divergent": Whole(),
        "bfmi": ListOf(Number(0.0)),
        "warnings": ListOf(Text()),
        "max_rhat": Anything(),  # these three follow from the others and are not read
        "min_ess": Anything(),
        "is_converged": Anything(),
        "k_hat": Number(),
        "effective_size": Number(0.0),
        "n_evaluations": Whole(1),
        "prediction_error": Number(0.0),
        "largest_prediction_error": Number(0.0),
    },
    optional=frozenset({"max_rhat", "min_ess", "is_converged"})
    | {"k_hat", "effective_size", "n_evaluations"}
    | {"prediction_error", "largest_prediction_error"},
)

STANDARDIZER = {
    "standardizer/kind": Array(("d",), "int", 0, 3),
    "standardizer/centre": Array(("d",), least=-_LARGEST_RAW, most=_LARGEST_RAW),
    "standardizer/scale": Array(("d",), least=0.0, most=_LARGEST_RAW),  # 0: a constant column
    "standardizer/shape": Array(("d",), least=-100.0, most=100.0),
    "standardizer/after_centre": Array(("d",)),
    "standardizer/after_scale": Array(("d",), least=0.0, is_open=True),
}

# Of a regressor: its target in the user's units is centre + scale times what it learned.
TARGET = Fields(
    {
        "target_centre": Number(-_LARGEST_TARGET, _LARGEST_TARGET),
        "target_scale": Number(0.0, _LARGEST_TARGET, is_open=True),
    },
    is_closed=False,
)

LABELS = Fields({"dtype": Text(), "values": ListOf(Anything(), size="C", least=2)})

# Beside them: names of columns, notes, what is monitored; "segments" are for draws of several
# models, "classes" for classifiers.
COMMON = Fields(
    {
        "labels_of_inputs": ListOf(Text(), size="d", least=1),
        "has_feature_names": Flag(),
        "notes": ListOf(Text()),
        "diagnostics": DIAGNOSTICS,
        "labels": MapOf(ListOf(Text())),
        "monitored": ListOf(Text(), is_set=True),
        "segments": ListOf(Whole(1)),
        "classes": LABELS,
    },
    optional=frozenset({"segments", "classes"}),
    is_closed=False,
)

PROVENANCE = Fields(
    {
        "source": Text(),
        "target": Text(),
        "n_rows": Whole(1),
        "n_inputs": Whole(1, size="n_inputs"),
        "input_names": ListOf(Text(), size="n_inputs"),
        "notes": ListOf(Text()),
        "command": Text(),
        "seed": Whole(),
        "seconds": Number(0.0),
        "created": Text(),
        "versions": ListOf(ListOf(Text(), size=2)),
    },
    is_closed=False,
)

_OF_ROWS = Whole(1, size="n_held")
# Which the first files do not hold.
_GAPS = frozenset({"gap_error", "log_score_gap_error", "n_groups", "own_error", "n_worth"})
_ENTRY: dict[str, Rule] = {
    "name": Text(),
    "is_baseline": Flag(),
    "seconds": Number(0.0),
    "gap_error": Maybe(Number(0.0)),
    "log_score_gap_error": Maybe(Number(0.0)),
    "n_groups": Maybe(Whole(1)),
    "own_error": Maybe(Number(0.0)),
    "n_worth": Maybe(Number(1.0)),
}
_SHARE = Number(0.0, 1.0)
_CLASS_SCORES = Fields(
    {
        "n_rows": _OF_ROWS,
        "error_rate": _SHARE,
        "log_score": Number(0.0),
        "brier_score": Number(0.0, 2.0),
        "calibration_error": _SHARE,
        "average_precision": Maybe(_SHARE),
    },
    optional=frozenset({"average_precision"}),  # which the first files do not hold
)
_NUMBER_SCORES = Fields(
    {
        "n_rows": _OF_ROWS,
        "mse": Number(0.0, 1e300),
        "rmse": Number(0.0),
        "standardized_mse": Maybe(Number(0.0, 1e300)),
        "mae": Number(0.0),
        "r2": Maybe(Number(-1e300, 1.0)),
        "log_score": Number(),
        "coverage_90": _SHARE,
        "width_90": Number(0.0),
        "calibration_error": _SHARE,
    }
)
EVALUATION_CLASSES = Fields(
    {
        "how": Text(),
        "kind": Choice(("classification",)),
        "classes": ListOf(Text(), size="C", least=2, is_set=True),
        "entries": ListOf(Fields({**_ENTRY, "scores": _CLASS_SCORES}, _GAPS), least=1),
    },
    optional=frozenset({"kind"}),  # which the first files do not say
    is_closed=False,
)
CLASS_EVALUATION = {
    "evaluation/y_index": Array(("n_held",), "int", 0, below="C"),
    "evaluation/proba": Array(("n_held", "C"), least=0.0, most=1.0, sums_to_one=True),
}
EVALUATION_NUMBERS = Fields(
    {
        "how": Text(),
        "kind": Choice(("regression",)),
        "entries": ListOf(Fields({**_ENTRY, "scores": _NUMBER_SCORES}, _GAPS), least=1),
    },
    is_closed=False,
)
NUMBER_EVALUATION = {
    "evaluation/y": Array(("n_held",)),
    "evaluation/mean": Array(("n_held",)),
    "evaluation/std": Array(("n_held",), least=0.0, is_open=True),
    "evaluation/lower": Array(("n_held",)),
    "evaluation/upper": Array(("n_held",)),
    "evaluation/log_density": Array(("n_held",), most=1e150),
    "evaluation/pit": Array(("n_held",), least=0.0, most=1.0),
    "evaluation/variance": Array(("n_held",), least=0.0, may_be_nan=True),
}
