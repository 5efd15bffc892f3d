"""From a table to a matrix of numbers, the same way in training and in prediction."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mercer.data.files import listing, nearest, printable, quoted
from mercer.data.formats import CellFormat, Dates, FormatError, find_format, odd_one_out
from mercer.data.frame import (
    MISSING,
    Column,
    ColumnBuilder,
    Frame,
    Inputs,
    gap_words,
    missing_words,
    null_words,
    parse_number,
    stray_text,
)
from mercer.errors import DataError, ModelFileError, UsageError

# How one column of a table becomes columns of a matrix: learned, applied, written and read.

#: What to do about a column, and about missing values; `TableEncoder` says it in words of Python.
LEAVE_OUT = "leave the column out with --drop"
FILL_IN = "use --missing impute, indicator or drop"
REFIT = "fit the model with --missing impute, indicator or drop"
#: Text with more levels than this is encoded by the frequency of the level, unless it is named as
#: a category; that has this many at most.
MAX_LEVELS, MOST_LEVELS = 50, 2000
_FEW_LEVELS, _SENTENCE = 10, 4  # levels that need no word; words of a text that is no level
CodeKind = Literal["number", "boolean", "date", "levels", "frequency"]
#: What a date gives, and what it is called.
DATE_PARTS = {
    "year": "year",
    "month": "month",
    "weekday": "day of week",
    "hour": "hour",
    "days": "days since",
}
#: Days from 1970 of the first and the last date that there may be.
_FIRST_DAY, _LAST_DAY = -719162.0, 2932897.0


@dataclass(frozen=True)
class ColumnCode:
    """The encoding of one column, fixed by the training rows.

    Numbers and booleans pass as one column; text becomes one column for each level (a single one
    for two levels), or the frequency of its level; a date becomes its `parts`.
    """

    name: str
    kind: CodeKind
    levels: tuple[str, ...] = ()  # the levels of text seen in training, sorted
    frequencies: tuple[float, ...] = ()  # the share of each level in training, for "frequency"
    #: What takes the place of a missing value (of a date: days since 1970); None: nothing does.
    fill: float | str | None = None
    #: How dates, and numbers that are not as a program writes them, stand in the table.
    written: CellFormat | None = None
    parts: tuple[str, ...] = ()  # those of `DATE_PARTS` that vary in training
    origin: float = 0.0  # the first date of training, in days since 1970
    #: Whether one more column is 1 where the value is missing.
    has_indicator: bool = False

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns of the matrix."""
        more = (f"{self.name} (missing)",) if self.has_indicator else ()
        return (*self._value_names, *more)

    @property
    def _value_names(self) -> tuple[str, ...]:
        if self.kind == "levels":
            shown = self.levels[1:] if len(self.levels) == 2 else self.levels
            return tuple(f"{self.name}={level}" for level in shown)
        if self.kind == "frequency":
            return (f"{self.name} (frequency)",)
        if self.kind == "date":
            return tuple(f"{self.name} ({words})" for words in self._part_words())
        return (self.name,)

    def _part_words(self) -> list[str]:
        first = f" {np.datetime64(int(self.origin), 'D')}"
        return [DATE_PARTS[part] + (first if part == "days" else "") for part in self.parts]

    def encode(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Encode texts or floats, of dates days since 1970: (n,) to columns without indicator."""
        if self.kind == "date":
            return np.column_stack([_date_part(values, part, self.origin) for part in self.parts])
        if self.kind == "frequency":
            shares = dict(zip(self.levels, self.frequencies, strict=True))
            return np.array([[shares.get(value, 0.0)] for value in values]).reshape(-1, 1)
        if self.kind == "levels":
            X = np.zeros((len(values), len(self._value_names)))
            offset = len(self.levels) - X.shape[1]
            positions = {level: k - offset for k, level in enumerate(self.levels)}
            for row, value in enumerate(values):
                k = positions.get(value)
                if k is None:
                    X[row] = self._unseen
                elif k >= 0:
                    X[row, k] = 1.0
            return X
        return np.asarray(values, dtype=np.float64).reshape(-1, 1)

    @property
    def _unseen(self) -> float:
        """What stands in every column of a level that was not in training.

        Such a level is as far from each of the K levels, (1, 0, ..), as they are from one another:
        (1 - c)^2 + (K - 1) c^2 = 2. Two levels share a column, which has no room for a third.
        """
        K = len(self.levels)
        return 0.5 if K == 2 else (1.0 - math.sqrt(1.0 + K)) / K

    @property
    def is_text(self) -> bool:
        """Whether it is of words."""
        return self.kind in ("levels", "frequency")

    def recognised(self, texts: NDArray[Any]) -> tuple[NDArray[Any], tuple[str, ...]]:
        """Write each text as the level that it spells in another way, and list those of no level.

        1.0 is 1, and TRUE is true, where one level alone is written so.
        """
        known, spelled, unseen = set(self.levels), {}, []
        for row, text in enumerate(texts):
            if text not in known:
                if text not in spelled:
                    found = [other for other in _spellings(text) if other in known]
                    spelled[text] = found[0] if len(found) == 1 else text
                texts[row] = spelled[text]
                if texts[row] not in known:
                    unseen.append(text)
        return texts, tuple(unseen)

    @property
    def coding_of_unseen(self) -> str:
        """What a level of text becomes that was not in training, in words."""
        if self.kind == "frequency":
            return "frequency 0"
        if len(self.levels) != 2:
            return "one more level"
        return f"halfway between the two, {' and '.join(map(quoted, self.levels))}"

    def differs_in_every(self, n_rows: int) -> bool:
        """Whether it has as many levels as there are rows: their frequencies say nothing."""
        return self.kind == "frequency" and len(self.levels) == n_rows

    def note(self) -> str | None:
        """Say in one line what may surprise; None: nothing does."""
        column = f"column {quoted(self.name)}"
        if len(self.levels) > _FEW_LEVELS:
            how = ", an input each"
            if self.kind == "frequency":
                how = f" (more than {MAX_LEVELS}), encoded by their frequency in training"
            if sum(len(level.split()) for level in self.levels) >= _SENTENCE * len(self.levels):
                how += "; free text is not read, only told apart: better left out"
            if (odd := odd_one_out(self.levels)) is not None:
                how += f"; most are numbers in {odd[0]}, but {quoted(odd[1])} is not"
            return f"{column}: {len(self.levels)} levels of text{how}"
        if self.kind == "date":
            assert self.written is not None
            words = self._part_words()
            if "weekday" in self.parts:
                words[self.parts.index("weekday")] += " (Monday is 1)"
            zone = " in UTC" if self.written.has_zone else ""
            return f"{column}: {self.written.kinds}{zone}, as {', '.join(words)}"
        if self.written is not None:
            return f"{column}: {self.written.kinds}"
        return None

    def to_dict(self) -> dict[str, Any]:
        """Turn into plain Python types."""
        fields = asdict(self)
        return {name: list(x) if isinstance(x, tuple) else x for name, x in fields.items()}

    @classmethod
    def from_dict(cls, fields: Any) -> ColumnCode:
        """Read back what `to_dict` gave; a `ModelFileError` where the fields are no encoding."""
        if isinstance(fields, dict):  # older files do not have these
            older: dict[str, Any] = {"written": None, "parts": [], "origin": 0.0}
            fields = {**older, "has_indicator": False, **fields}
        if not isinstance(fields, dict) or set(fields) != set(cls.__dataclass_fields__):
            raise ModelFileError("inconsistent encoding: a column has the wrong fields")
        written = None if fields["written"] is None else CellFormat.from_dict(fields["written"])
        levels, frequencies = fields["levels"], fields["frequencies"]
        is_text, fill = fields["kind"] in ("levels", "frequency"), fields["fill"]
        if not (
            isinstance(fields["name"], str)
            and fields["kind"] in ("number", "boolean", "date", "levels", "frequency")
            and isinstance(levels, list)
            and isinstance(frequencies, list)
            and all(isinstance(level, str) for level in levels)
            and len(set(levels)) == len(levels)
            and bool(levels) == is_text
            and len(frequencies) == (len(levels) if fields["kind"] == "frequency" else 0)
            and all(_is_number(share) and 0 < share <= 1 for share in frequencies)
            and (fill is None or (isinstance(fill, str) if is_text else _is_number(fill)))
            and _is_date_code(fields, written)
            and isinstance(fields["has_indicator"], bool)
            and (fill is not None or not fields["has_indicator"])
        ):
            raise ModelFileError("inconsistent encoding: a column does not fit together")
        tuples = {name: tuple(fields[name]) for name in ("levels", "frequencies", "parts")}
        return cls(**{**fields, **tuples, "written": written, "origin": float(fields["origin"])})


def fit_code(
    column: Column,
    *,
    has_fill: bool,
    is_category: bool = False,
    written: CellFormat | None = None,
    counts: NDArray[np.int64] | None = None,
) -> ColumnCode:
    """Learn the encoding of a column that has at least one value and can be encoded.

    Each level of a category is an input, however many there are. Dates, and numbers that are
    `written` in some way, come as numbers. With `has_fill`, what takes the place of a missing value
    is learned too. `counts` says how often each cell is there; once by default.
    """
    if counts is None:
        counts = np.ones(len(column.values), dtype=np.int64)
    counts = counts[~column.is_missing]
    present = column.values[~column.is_missing]
    if written is not None and written.kind == "date":
        origin = float(np.floor(present.min()))
        parts = [part for part in DATE_PARTS if part != "weekday" or written.order != "month"]
        varied = tuple(part for part in parts if np.ptp(_date_part(present, part, origin)) > 0.0)
        fill = _median(present, counts) if has_fill else None
        return ColumnCode(
            column.name, "date", fill=fill, written=written, parts=varied or ("days",),
            origin=origin,
        )  # fmt: skip
    if column.kind == "boolean":
        fill = float(np.average(present, weights=counts) > 0.5) if has_fill else None
        return ColumnCode(column.name, "boolean", fill=fill)
    if column.kind == "number":
        fill = _median(present, counts) if has_fill else None
        return ColumnCode(column.name, "number", fill=fill, written=written)
    times: Counter[str] = Counter()
    for level, n in zip(present, counts.tolist(), strict=True):
        times[level] += n
    levels = tuple(sorted(times))
    commonest = max(levels, key=lambda level: times[level]) if has_fill else None
    if is_category or len(levels) <= MAX_LEVELS:
        return ColumnCode(column.name, "levels", levels, fill=commonest)
    shares = tuple(times[level] / times.total() for level in levels)
    return ColumnCode(column.name, "frequency", levels, shares, commonest)


def _median(values: NDArray[Any], counts: NDArray[np.int64]) -> float:
    """Median of values, each of which is there so many times."""
    order = np.argsort(values)
    total = counts[order].cumsum()
    low, high = (np.searchsorted(total, total[-1] / 2, side) for side in ("left", "right"))
    return float((values[order[low]] + values[order[high]]) / 2)


def as_levels(column: Column) -> NDArray[Any]:
    """Write the cells of any column as text, whole numbers without a point; None is missing."""
    if column.values.dtype != np.float64:
        return column.values
    words = np.empty(len(column.values), dtype=object)
    for row, value in enumerate(column.values):
        if math.isnan(value):
            continue
        if column.kind == "boolean":
            words[row] = "true" if value else "false"
        else:
            words[row] = str(int(value)) if value.is_integer() else repr(float(value))
    return words


def _spellings(text: str) -> tuple[str, ...]:
    """Write a whole number, or true and false, in the other ways of programs."""
    if text.lower() in ("true", "false"):
        return text.lower(), text.title(), text.upper()
    if parse_number(text) is None:
        return ()
    return (text.removesuffix(".0") if text.endswith(".0") else f"{text}.0",)


def _date_part(days: NDArray[Any], part: str, origin: float) -> NDArray[np.float64]:
    """Take one part of dates that are days since 1970."""
    days = np.asarray(days, dtype=np.float64)
    whole = np.floor(days)
    if part == "days":
        return days - origin
    if part == "hour":
        return np.asarray(np.round(24.0 * (days - whole), 9))
    if part == "weekday":
        return np.asarray((whole + 3.0) % 7.0 + 1.0)  # the first day of 1970 was a Thursday
    dates = whole.astype(np.int64).astype("datetime64[D]")
    if part == "year":
        return np.asarray(dates.astype("datetime64[Y]").astype(np.int64) + 1970.0)
    return np.asarray(dates.astype("datetime64[M]").astype(np.int64) % 12 + 1.0)


def _is_date_code(fields: dict[str, Any], written: CellFormat | None) -> bool:
    """Whether the format of a column fits its kind, and parts and origin are there for dates."""
    parts, origin, fill = fields["parts"], fields["origin"], fields["fill"]
    if not isinstance(parts, list) or not _is_number(origin):
        return False
    if fields["kind"] != "date":
        is_written = written is None or (written.kind == "number" and fields["kind"] == "number")
        return is_written and not parts and origin == 0.0
    days = [origin] if fill is None else [origin, fill]
    return (
        written is not None
        and written.kind == "date"
        and bool(parts)
        and all(isinstance(part, str) and part in DATE_PARTS for part in parts)
        and len(set(parts)) == len(parts)
        and float(origin).is_integer()
        and all(_FIRST_DAY <= day <= _LAST_DAY for day in days)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


Missing = Literal["error", "drop", "impute", "indicator", "posterior"]
_FILLING = ("impute", "indicator", "posterior")
_SHOWING = ("indicator", "posterior")  # by a column more, of all or all but numbers


@dataclass(frozen=True, eq=False)
class Encoded:
    """A table as a matrix."""

    X: NDArray[np.float64]  # (n, d), finite
    rows: NDArray[np.int64]  # (n,), positions in the table of the rows that were kept
    ignored: tuple[str, ...]  # columns of the table that were not needed
    notes: tuple[str, ...]  # what was done to rows or cells, one line each
    #: Of columns of text the cells, one a row, with a level that was not in training.
    unseen: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Encoder:
    """What turns a table into a matrix; fixed by the training rows (see `fit_encoder`)."""

    codes: tuple[ColumnCode, ...]  # one for each column that is needed
    missing: Missing
    #: How the numbers of the target are written, where not as a program writes them.
    target: CellFormat | None = None
    #: Words in tables of text that stand for a missing value.
    null_values: frozenset[str] = MISSING

    @property
    def input_names(self) -> tuple[str, ...]:
        """The columns of a table that are needed."""
        return tuple(code.name for code in self.codes)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns of the matrix; of two with the same name the later one has a number."""
        found: dict[str, None] = {}
        for name in (name for code in self.codes for name in code.feature_names):
            own, n = name, 1
            while own in found:
                n += 1
                own = f"{name} ({n})"
            found[own] = None
        return tuple(found)

    @property
    def sources(self) -> tuple[str, ...]:
        """Of each column of the matrix the column of the table that it comes from."""
        return tuple(code.name for code in self.codes for _ in code.feature_names)

    @property
    def inputs(self) -> Inputs:
        """The columns of a table, with those of the matrix that each became."""
        return Inputs.of_sizes(self.input_names, [len(c.feature_names) for c in self.codes])

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the encoding, one line each."""
        return tuple(note for code in self.codes if (note := code.note()) is not None)

    @property
    def learns(self) -> bool:
        """Whether other rows would give another encoding: levels, dates, what fills gaps."""
        return any(c.kind not in ("number", "boolean") or c.fill is not None for c in self.codes)

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers that pass as they are."""
        return not self.learns and all(code.written is None for code in self.codes)

    def again(self, frame: Frame) -> Encoder:
        """Learn the encoding anew, from some rows of the table that it was learned from.

        How columns are written is taken over. A column that has no value in these rows is left out.
        """
        if not self.learns:
            return self
        return replace(self, codes=fit_encoder(frame, missing=self.missing, like=self).codes)

    def texts(self, target: str | None = None, classes: Iterable[Any] = ()) -> tuple[str, ...]:
        """Name the columns of a new table whose cells are read as they stand.

        Inputs that are words, or whose format tells what they mean; and the target of a model where
        its numbers have a format, or a class is a word. Nothing is guessed from other rows.
        """
        names = [code.name for code in self.codes if code.is_text or code.written is not None]
        is_words = any(isinstance(label, str) for label in classes)
        if target is not None and (is_words or self.target is not None):
            names.append(target)
        return tuple(names)

    def transform(self, frame: Frame, remedy: str = REFIT) -> Encoded:
        """Encode a table, matching its columns by name.

        A level of text that was not in training becomes one as far from each of those as they are
        from one another (where two levels share one column: halfway between them), and a note
        says so. A column that is missing, or a
        cell that is missing, infinite or of the wrong kind, is a `DataError` that says where, and
        names the remedy of missing cells.
        """
        columns = {code.name: self._find(frame, code) for code in self.codes}
        kept, notes = _handle_missing(frame, columns, self.missing, remedy)
        rows = np.flatnonzero(kept)
        blocks = []
        unseen = {}
        for code in self.codes:
            values = columns[code.name].values
            is_missing = columns[code.name].is_missing
            if code.fill is not None:
                values = np.where(is_missing, code.fill, values)
            values = values[rows]
            if code.is_text:
                values, unseen[code.name] = code.recognised(values)
            blocks.append(code.encode(values))
            if code.has_indicator:
                blocks.append(is_missing[rows, np.newaxis].astype(np.float64))
        ignored = tuple(name for name in frame.names if name not in columns)
        notes += self.notes_of_unseen(
            {name: (len(cells), cells[0]) for name, cells in unseen.items() if cells}
        )
        return Encoded(np.hstack(blocks), rows, ignored, tuple(notes), unseen)

    def notes_of_unseen(self, unseen: Mapping[str, tuple[int, str]]) -> list[str]:
        """Say, by column, how many rows hold a level that was not in training, and the first."""
        notes = []
        for code in (each for each in self.codes if each.name in unseen):
            n, first = unseen[code.name]
            rows = "1 row holds" if n == 1 else f"{n} rows hold"
            words = f"{rows} a level that was not in training ({quoted(first)}), encoded as"
            more = f"{code.coding_of_unseen}: predictions may be too sure"
            notes.append(f"column {quoted(code.name)}: {words} {more}")
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Turn into plain Python types, for a model file."""
        return {
            "missing": self.missing,
            "codes": [code.to_dict() for code in self.codes],
            "target": None if self.target is None else self.target.to_dict(),
            "null_values": sorted(self.null_values),
        }

    @classmethod
    def from_dict(cls, fields: Any) -> Encoder:
        """Read back what `to_dict` gave; a `ModelFileError` where the fields are no encoder."""
        if isinstance(fields, dict):  # older files do not have it
            fields = {"target": None, "null_values": sorted(MISSING), **fields}
        if (
            not isinstance(fields, dict)
            or set(fields) != {"missing", "codes", "target", "null_values"}
            or fields["missing"] not in get_args(Missing)
            or not isinstance(fields["codes"], list)
            or not fields["codes"]
            or not isinstance(fields["null_values"], list)
            or not all(isinstance(word, str) for word in fields["null_values"])
        ):
            raise ModelFileError("inconsistent encoding: the wrong fields")
        target = None if fields["target"] is None else CellFormat.from_dict(fields["target"])
        if target is not None and target.kind != "number":
            raise ModelFileError("inconsistent encoding: the target is not numbers")
        codes = tuple(map(ColumnCode.from_dict, fields["codes"]))
        encoder = cls(codes, fields["missing"], target, null_words(fields["null_values"]))
        if len(set(encoder.input_names)) != len(encoder.input_names):
            raise ModelFileError("inconsistent encoding: a column is there twice")
        return encoder

    def _find(self, frame: Frame, code: ColumnCode) -> Column:
        """Find the column of a code, its cells of the kind that the code takes."""
        if code.name not in frame.names:
            raise no_column(frame.source, code.name, frame.names)
        column = frame.column(code.name)
        if code.written is not None and not column.is_missing.all():
            return _read_written(frame, column, code.written)
        if code.is_text:
            return replace(column, values=as_levels(column), kind="text")
        if column.is_missing.all():
            return Column(code.name, np.full(frame.n_rows, np.nan), "number")
        if column.kind == "text":  # of a file with types: numerals are what they are in CSV
            builder = ColumnBuilder(code.name, null_values=self.null_values)
            builder.add(["" if cell is None else cell for cell in column.values])
            column = builder.finish()
        if column.values.dtype != np.float64:
            is_number = code.kind == "number"
            cells = column.values if is_number and column.kind == "text" else [None]
            is_odd = [cell is None or parse_number(cell) is None for cell in cells]
            row = int(np.argmax(~column.is_missing & is_odd))
            words = f"the model needs {'a number' if is_number else 'true or false (1 or 0)'} here"
            if column.kind == "text":
                no = "not a number" if is_number else "neither true nor false"
                words = f"{quoted(column.values[row])} is {no}; {words}"
            else:
                words += f", and the column is {_kind_words(column)}"
            row, reason = stray_text(column) or (row, words)
            raise DataError(f"{frame.place(row, code.name)}: {reason}")
        refuse_infinite(frame, column)
        if code.kind == "boolean":
            odd = ~np.isin(column.values, (0.0, 1.0)) & ~column.is_missing
            if odd.any():
                raise DataError(
                    f"{frame.place(int(np.argmax(odd)), code.name)}: the model needs true or "
                    "false (1 or 0) here; correct it"
                )
        return column


def check_categories(categories: Any) -> tuple[str, ...]:
    """Return the names of columns that are categories, if that is what they are."""
    if isinstance(categories, str) or not all(isinstance(name, str) for name in categories):
        raise UsageError(f"categories are names of columns, not {categories!r}")
    return tuple(categories)


def fit_encoder(
    frame: Frame,
    *,
    missing: Missing = "error",
    dates: Dates = "auto",
    categories: Collection[str] = (),
    like: Encoder | None = None,
    counts: NDArray[np.int64] | None = None,
) -> Encoder:
    """Learn how the columns of a training table, inputs only, become numbers.

    The options are those of `TableEncoder`; with `missing` "drop" rows of missing values are left
    out.
    `like` is the encoder of the whole table of which these are some rows: how its columns are
    written holds here, and the day from which dates are counted. `counts` says how often each row
    is there; once by default.
    """
    if missing not in get_args(Missing):
        known = ", ".join(get_args(Missing))
        raise UsageError(f"missing must be one of {known}, and is {quoted(missing)}")
    source = printable(frame.source)
    if not frame.columns:
        raise DataError(f"{source}: there is no column left to learn from")
    of_all = {} if like is None else {code.name: code for code in like.codes}
    categories = (
        [frame.column(name).name for name in categories]  # says what there is
        if like is None
        else [code.name for code in like.codes if code.kind == "levels"]
    )
    formats = {name: code.written for name, code in of_all.items()}
    columns, refused = [], dict[str, DataError]()
    for column in frame.columns:
        is_category = column.name in categories
        if is_category and column.kind in ("number", "boolean", "date"):
            column = replace(column, values=as_levels(column), kind="text")
        if like is None:
            try:
                column, formats[column.name] = _read_input(
                    frame, column, dates, is_category=is_category
                )
            except DataError as error:
                refused[column.name] = error
        elif (written := formats[column.name]) is not None:
            column = _read_written(frame, column, written)
        if not column.is_missing.all():
            columns.append(column)
    if refused:
        first, *others = refused
        either = f"; nor can {listing(list(map(quoted, others)))} be read" if others else ""
        raise DataError(f"{refused[first]}{either}")
    kept, _ = _handle_missing(frame, {column.name: column for column in columns}, missing)
    rows = np.flatnonzero(kept)
    codes = []
    for column in columns:
        written = formats[column.name]
        has_gap = bool(column.is_missing.any())
        is_number = column.kind == "number" and (written is None or written.kind == "number")
        is_kept = missing == "posterior" and is_number
        code = fit_code(
            column.take(rows),
            is_category=column.name in categories,
            has_fill=missing in _FILLING and not is_kept,
            written=written,
            counts=None if counts is None else counts[rows],
        )
        if len(code.levels) > MOST_LEVELS and code.kind == "levels":
            raise DataError(
                f"{source}: column {quoted(column.name)} has {len(code.levels)} levels, and a "
                f"category {MOST_LEVELS} at most; {LEAVE_OUT}, or do not name it as a category"
            )
        if column.name in of_all:
            code = replace(code, origin=of_all[column.name].origin)
        codes.append(replace(code, has_indicator=has_gap and missing in _SHOWING and not is_kept))
    return Encoder(tuple(codes), missing)


def times_of(frame: Frame, name: str, dates: Dates = "auto") -> NDArray[np.float64]:
    """Read a column by which rows have an order in time: numbers, or days since 1970."""
    column = frame.column(name)
    if column.is_missing.any():
        row = int(np.argmax(column.is_missing))
        raise DataError(f"{frame.place(row, name)}: the time of the row is missing; fill it in")
    written = _find_written(frame, column, dates)
    if written is not None:
        column = _read_written(frame, column, written)
    if column.kind != "number":
        raise DataError(
            f"{printable(frame.source)}: column {quoted(name)} is {_kind_words(column)}, and rows "
            "have an order in time by dates or numbers"
        )
    refuse_infinite(frame, column)
    return np.asarray(column.values, dtype=np.float64)


def no_column(source: str, name: str, names: Iterable[str]) -> DataError:
    """Make the error for a table without a column that a model needs; the nearest is named."""
    hint = nearest(name, names) or "; add it"
    if name.endswith("]") and name.partition("[t-")[0] in names:
        hint = ": it is an earlier value of a series, which mercer stream --load goes on with"
    return DataError(
        f"{printable(source)}: column {quoted(name)} is missing, and the model needs it{hint}"
    )


def _read_input(
    frame: Frame, column: Column, dates: Dates, *, is_category: bool
) -> tuple[Column, CellFormat | None]:
    """Read a column to learn from, and find how it is written; an error where it is no input."""
    written = None if is_category else _find_written(frame, column, dates)
    if written is not None:
        column = _read_written(frame, column, written)
    _refuse_unusable(frame, column, is_category=is_category)
    if column.is_missing.all():  # before gaps are: no way to fill them in helps
        raise DataError(
            f"{printable(frame.source)}: column {quoted(column.name)} has no value at all; "
            f"{LEAVE_OUT}"
        )
    return column, written


def _find_written(frame: Frame, column: Column, dates: Dates) -> CellFormat | None:
    """Find how the numbers or dates of a column of text are written; None where it is words."""
    if column.kind not in ("text", "date"):
        return None
    try:
        return find_format(column.values, dates)
    except FormatError as error:
        place = _place_of(frame, column, error)
        raise DataError(f"{place}: {error}, or {LEAVE_OUT}") from None


def _read_written(frame: Frame, column: Column, written: CellFormat) -> Column:
    """Read numbers or dates that are written in a known way, as numbers."""
    if column.kind in ("text", "date"):
        try:
            values = written.read_all(column.values)
        except FormatError as error:
            raise DataError(f"{_place_of(frame, column, error)}: {error}") from None
        column = Column(column.name, values, "number")
    else:
        # Numbers of a Parquet file are what they are; those of text may have lost separators.
        is_plain = written.kind == "number" and not written.unit and column.kind == "number"
        if not is_plain or (written.has_decimal_comma and frame.origin.line.any()):
            row = int(np.argmin(column.is_missing))
            raise DataError(
                f"{frame.place(row, column.name)}: the model needs {written.words} here, and the "
                f"column is {_kind_words(column)}; write it as in training"
            )
    refuse_infinite(frame, column)
    return column


def _place_of(frame: Frame, column: Column, error: FormatError) -> str:
    """Name the place of the first cell that shows an error."""
    row = next(k for k, text in enumerate(column.values) if text == error.cell)
    return frame.place(row, column.name)


def without_empty(inputs: Frame, kept: Collection[str]) -> tuple[Frame, tuple[str, ...]]:
    """Leave out the columns without any value, except those ``kept``, and say which they are."""
    empty = [each for each in inputs.columns if each.is_missing.all() and each.name not in kept]
    if not empty:
        return inputs, ()
    words = "column {} has" if len(empty) == 1 else "columns {} have"
    said = words.format(listing([quoted(each.name) for each in empty]))
    kept_inputs = inputs.without([each.name for each in empty])
    return kept_inputs, (f"{said} no value in any row: no input",)


def _refuse_unusable(frame: Frame, column: Column, *, is_category: bool) -> None:
    """Refuse dates, foreign types, infinite numbers, and numbers spoilt by a stray text."""
    where = f"{printable(frame.source)}: column {quoted(column.name)}"
    if column.kind in ("date", "other"):
        raise DataError(
            f"{where} is {_kind_words(column)}; {LEAVE_OUT}, or turn it into numbers or text first"
        )
    if column.kind == "number":
        refuse_infinite(frame, column)
    if column.kind == "text" and not is_category and (found := stray_text(column)):
        ways_out = f"name the column in --categories if its values are levels, or {LEAVE_OUT}"
        raise DataError(f"{frame.place(found[0], column.name)}: {found[1]}; {ways_out}")


def refuse_infinite(frame: Frame, column: Column) -> None:
    """Refuse an infinite number, and say where it is."""
    infinite = np.isinf(column.values)
    if infinite.any():
        raise DataError(
            f"{frame.place(int(np.argmax(infinite)), column.name)}: infinite, or too large for a "
            "float64; correct it"
        )


def _handle_missing(
    frame: Frame, columns: dict[str, Column], missing: Missing, remedy: str = FILL_IN
) -> tuple[NDArray[np.bool_], list[str]]:
    """Decide which rows stay, and say what was done; an error names the remedy."""
    kept = np.ones(frame.n_rows, dtype=np.bool_)
    if not columns:
        return kept, []
    gaps = np.column_stack([column.is_missing for column in columns.values()])
    has_gap = gaps.any(axis=1)
    n_gaps = int(has_gap.sum())
    if n_gaps == 0:
        return kept, []
    n_rows = f"{n_gaps} of {frame.n_rows} rows"
    if missing == "error":
        row = int(np.argmax(has_gap))
        name = list(columns)[int(np.argmax(gaps[row]))]
        raise DataError(
            f"{frame.place(row, name)}: missing value ({n_rows} have one); fill it in, or {remedy}"
            f"{gap_words(columns[name])}"
        )
    if missing in _FILLING:
        what = {
            "impute": "the median or the commonest value took its place",
            "indicator": "the median or the commonest value took its place, and a column for each "
            "input says where",
            "posterior": "numbers are averaged over what may stand there, and a column says where "
            "others are missing",
        }
        words = f"{n_rows} have a missing value; {what[missing]}"
        return kept, [words, *_gap_notes(columns.values())]
    if n_gaps == frame.n_rows:
        names = (quoted(name) for name, gap in zip(columns, gaps.T, strict=True) if gap.any())
        raise DataError(
            f"{printable(frame.source)}: every row has a missing value (in {', '.join(names)}); "
            f"{FILL_IN}, or {LEAVE_OUT}"
        )
    kept &= ~has_gap
    return kept, [f"{n_rows} have a missing value and were dropped", *_gap_notes(columns.values())]


def _gap_notes(columns: Iterable[Column]) -> list[str]:
    """Say of which columns of text words are read as missing: they may be levels."""
    found = [column for column in columns if column.kind == "text" and column.null_words]
    if not found:
        return []
    names = ", ".join(quoted(column.name) for column in found[:5])
    words = frozenset[str]().union(*(column.null_words for column in found))
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    noun = "column" if len(found) == 1 else "columns"
    return [f"{noun} {names}{more}: {missing_words(words)}"]


def _kind_words(column: Column) -> str:
    if column.kind == "other":
        present = column.values[~column.is_missing]
        return f"of type {printable(str(present[0]))}" if len(present) else "of an unknown type"
    return "dates" if column.kind == "date" else column.kind
