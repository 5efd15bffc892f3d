"""A table of named columns that knows from which file and row each of its rows came."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.data.files import nearest, place, printable, quoted, stray_words
from mercer.errors import DataError

Kind = Literal["number", "text", "boolean", "date", "other"]
#: Columns in which pandas leaves the names of rows: CSV without a name for them, and Parquet.
INDEX_COLUMNS = ("Unnamed: 0", "__index_level_0__")


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table.

    Parameters
    ----------
    name : str
        The name in the header.
    values : ndarray of shape (n_rows,)
        Numbers and booleans (0 and 1) as float64 with NaN for a missing one; text and dates as
        objects, a string or None.
    kind : {"number", "text", "boolean", "date", "other"}
        What the cells are. "other" is a type that no model can use (a list, say): its values are
        the name of the type.
    written : frozenset of str
        Of the target of a file of text its cells as they stand, without those after the first 1000
        different ones or so, and without words for a missing value.
    null_words : frozenset of str
        Of text in a file the words for a missing value that were found.
    order : tuple of str
        Of an ordered category its levels, from the lowest to the highest.
    has_codes : bool
        Of numbers in a file of text whether one of the first begins with a 0, as codes do: 01067.
    """

    name: str
    values: NDArray[Any]
    kind: Kind
    written: frozenset[str] = frozenset()
    order: tuple[str, ...] = ()
    null_words: frozenset[str] = frozenset()
    has_codes: bool = False

    @property
    def is_missing(self) -> NDArray[np.bool_]:
        """Which cells are missing."""
        if self.values.dtype == np.float64:
            return np.asarray(np.isnan(self.values))
        return np.fromiter((v is None for v in self.values), dtype=np.bool_, count=len(self.values))

    def take(self, rows: NDArray[np.integer[Any]]) -> Column:
        """Keep the rows at the given positions."""
        return replace(self, values=self.values[rows])


@dataclass(frozen=True, eq=False)
class Origin:
    """Where each row of a table came from."""

    files: tuple[str, ...]  # the files that were read, as they were named
    file: NDArray[np.int32]  # (n_rows,), position in `files`
    row: NDArray[np.int64]  # (n_rows,), counted from 1 within the file
    line: NDArray[np.int64]  # (n_rows,), line on which the row starts; 0 where a file has no lines

    @classmethod
    def of_file(cls, file: str, lines: NDArray[np.int64]) -> Origin:
        """All rows of one file, in order."""
        n = len(lines)
        return cls((file,), np.zeros(n, np.int32), np.arange(1, n + 1, dtype=np.int64), lines)

    def take(self, rows: NDArray[np.integer[Any]]) -> Origin:
        """Keep the rows at the given positions."""
        return Origin(self.files, self.file[rows], self.row[rows], self.line[rows])


@dataclass(frozen=True, eq=False)
class Frame:
    """A table: columns of equal length, and where the rows came from.

    Parameters
    ----------
    columns : tuple of Column
        In the order of the file.
    source : str
        The file, the folder or the data set, as it was named.
    origin : Origin
        File, row and line of each row.

    Raises
    ------
    DataError
        Two columns have the same name.
    """

    columns: tuple[Column, ...]
    source: str
    origin: Origin

    def __post_init__(self) -> None:
        refuse_twins(self.source, self.names)

    @classmethod
    def from_columns(cls, columns: Sequence[Column], source: str) -> Frame:
        """Build a table that was not read from lines of a file."""
        n = len(columns[0].values) if columns else 0
        return cls(tuple(columns), source, Origin.of_file(source, np.zeros(n, np.int64)))

    @classmethod
    def of_header(cls, names: Sequence[str], source: str) -> Frame:
        """Build a table without rows, to look columns up in."""
        return cls.from_columns([Column(name, np.empty(0), "number") for name in names], source)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.origin.row)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """Find a column by its name; a `DataError` names the nearest where there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise DataError(
            f"{printable(self.source)}: there is no column {quoted(name)}"
            f"{nearest(name, self.names) or '; the columns are ' + self._some_names()}"
        )

    def named(self, entries: Iterable[str]) -> list[str]:
        """Find columns by entries that are a name, or several separated by commas.

        A `DataError` names the nearest where one is not there.
        """
        found: list[str] = []
        for entry in entries:
            parts = [entry] if entry in self.names else [p.strip() for p in entry.split(",")]
            found += [self.column(part).name for part in parts if part]
        return found

    def without(self, names: Iterable[str]) -> Frame:
        """Leave out the named columns; a `DataError` names the nearest where one is not there."""
        left_out = {self.column(name).name for name in names}
        kept = tuple(column for column in self.columns if column.name not in left_out)
        return Frame(kept, self.source, self.origin)

    def take(self, rows: NDArray[np.integer[Any]]) -> Frame:
        """Keep the rows at the given positions; each remembers where it came from."""
        columns = tuple(column.take(rows) for column in self.columns)
        return Frame(columns, self.source, self.origin.take(rows))

    def place(self, row: int, column: str | None = None) -> str:
        """Name the place of a row (and column) for a message: file, row and line."""
        origin = self.origin
        file = origin.files[int(origin.file[row])]
        return place(file, int(origin.row[row]), int(origin.line[row]), column)

    def _some_names(self) -> str:
        names = ", ".join(quoted(name) for name in self.names[:10])
        if len(self.names) == 1:
            return f"{names} alone: a comma, a semicolon, a tab or | separates cells"
        return names + (", ..." if len(self.names) > 10 else "")


def index_words(name: str) -> str:
    """Say what a column without a name is taken for."""
    return f"column {quoted(name)}, which has no name: the names of the rows, and no input"


def index_column(names: Sequence[str]) -> str | None:
    """Find the column that holds names of rows and has no name itself; None: there is none.

    It is the first column of a text file, and any column of a Parquet file.
    """
    text, arrow = INDEX_COLUMNS
    if names and names[0] == text:
        return text
    return arrow if arrow in names else None


def refuse_twins(source: str, names: Iterable[str]) -> None:
    """Refuse two columns of the same name, and say which columns they are."""
    seen: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if name in seen:
            raise DataError(
                f"{printable(source)}: column {quoted(name)} is there twice "
                f"(columns {seen[name]} and {position}); rename one of them"
            )
        seen[name] = position


def refuse_other_columns(
    first: str, first_names: tuple[str, ...], source: str, names: tuple[str, ...]
) -> None:
    """Refuse a file whose columns are not those of the first one; their order may differ."""
    for name in first_names:
        if name not in names:
            raise DataError(
                f"{printable(source)}: column {quoted(name)} of {printable(first)} is missing"
                f"{nearest(name, names)}"
            )
    for name in names:
        if name not in first_names:
            raise DataError(
                f"{printable(source)}: column {quoted(name)} is not in {printable(first)}; "
                "remove it, or add it to all files"
            )


# What the cells of a text file are: numbers, booleans, dates or text.

#: Cells that stand for a missing value, unless others are named.
MISSING = frozenset({"", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "?", "None"})
#: What keeps such words, on the command line.
KEEP_WORDS = "--null-values ''"
#: Where such words have been replaced already.
EMPTY = frozenset({""})
#: A whole number with leading zeros, which is a code where it is a class.
CODE = re.compile(r"[-+]?0\d+")
# Different cells that are kept of a target; first cells that are looked at for leading zeros.
_MOST_WRITTEN, _FIRST = 1000, 1000


def null_words(words: Iterable[str] | None) -> frozenset[str]:
    """Words that stand for a missing value, an empty cell among them; those of `MISSING` if None.

    A text holds words separated by commas.
    """
    if words is None:
        return MISSING
    parts = words.split(",") if isinstance(words, str) else words
    return EMPTY.union(part.strip() for part in parts)


def parse_number(text: str) -> float | None:
    """Read a number as it is written in a file; None when it is not one."""
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def parse_numbers(
    cells: Sequence[str], has_decimal_comma: bool, null_values: frozenset[str] = MISSING
) -> NDArray[np.float64] | None:
    """Read the numbers of many cells, NaN for a missing one; None when one is not a number."""
    joined = "".join(cells)
    if "_" in joined:
        return None
    if has_decimal_comma and "," in joined and "." not in joined:
        cells = [cell.replace(",", ".") for cell in cells]
    try:
        if null_values in (MISSING, EMPTY):  # no number is among them
            return np.array(list(map(float, cells)))
    except ValueError:
        pass
    try:
        texts = (cell.strip() for cell in cells)
        return np.array([np.nan if text in null_values else float(text) for text in texts])
    except ValueError:
        return None


class ColumnBuilder:
    """Collect the cells of one column, block by block, without holding the text of numbers.

    With `is_text` every cell is text, even one that looks like a number. With `is_held` the cells
    are held as text from the start, because it is known that not all are numbers. With `is_target`
    whole numbers with leading zeros, such as 01, are codes, and all cells text.
    """

    def __init__(
        self,
        name: str,
        *,
        is_text: bool = False,
        is_held: bool = False,
        has_decimal_comma: bool = False,
        is_target: bool = False,
        null_values: frozenset[str] = MISSING,
    ) -> None:
        self.name = name
        self._null_values = null_values
        self._nulls: frozenset[str] = frozenset()
        self._is_target = is_target
        self._written: set[str] = set()
        self._is_text = is_text
        self._has_decimal_comma = has_decimal_comma
        self._is_number = not (is_text or is_held)
        self._has_codes = False
        self._numbers: list[NDArray[np.float64]] = []
        self._texts: list[str | None] = []
        self._levels: dict[str, str] = {}

    @property
    def is_broken(self) -> bool:
        """Whether text came after a block of numbers, so that the column must be read again."""
        return not self._is_number and bool(self._numbers)

    def add(self, cells: Sequence[str]) -> None:
        """Take the next cells of the column."""
        if self._is_target:
            found = {cell.strip() for cell in cells}
            self._is_number &= not any(map(CODE.fullmatch, found))
            if len(self._written) <= _MOST_WRITTEN:
                self._written |= found
        if self._is_number:
            numbers = parse_numbers(cells, self._has_decimal_comma, self._null_values)
            if numbers is not None:
                if not self._numbers:
                    self._has_codes = any(CODE.fullmatch(cell.strip()) for cell in cells[:_FIRST])
                self._numbers.append(numbers)
                return
            self._is_number = False
        if not self.is_broken:
            share, nulls = self._levels.setdefault, self._null_values
            texts = [cell.strip() for cell in cells]
            self._nulls |= nulls.intersection(texts)
            self._texts.extend(None if text in nulls else share(text, text) for text in texts)

    def finish(self) -> Column:
        """Make the column and say what it is."""
        if self._is_number:
            blocks = self._numbers or [np.empty(0)]
            numbers = np.concatenate(blocks)
            column = Column(self.name, numbers, "number", has_codes=self._has_codes)
        else:
            column = column_of_texts(self.name, self._texts, is_text=self._is_text)
        nulls = self._null_values & self._written | self._nulls
        return replace(column, written=frozenset(self._written - nulls), null_words=nulls - EMPTY)


def column_of_texts(name: str, texts: Sequence[str | None], *, is_text: bool) -> Column:
    """Make a column of booleans, of dates or, if they are neither or with `is_text`, of text.

    A text of None is a missing cell.
    """
    present = [] if is_text else list({text for text in texts if text is not None})
    if present and all(text.lower() in ("true", "false") for text in present):
        numbers = [np.nan if text is None else float(text.lower() == "true") for text in texts]
        return Column(name, np.array(numbers), "boolean")
    values = np.empty(len(texts), dtype=object)
    values[:] = texts
    return Column(name, values, "date" if present and all(map(_is_date, present)) else "text")


def code_notes(columns: Iterable[Column]) -> tuple[str, ...]:
    """Say which inputs have numbers that begin with a 0, and how they are levels."""
    return tuple(
        f"column {quoted(column.name)}: some of its numbers begin with a 0; if they are codes "
        f"(postal, say), --categories {quoted(column.name)} takes each for a level"
        for column in columns
        if column.has_codes
    )


def gap_words(column: Column) -> str:
    """Say which words of a column of text are read as missing, after what is said of its gaps."""
    return f"; {missing_words(column.null_words)}" if column.null_words else ""


def missing_words(found: Collection[str]) -> str:
    """Say that these words are read as missing, and how they are kept."""
    words = f"{', '.join(map(quoted, sorted(found)))} in it {'is' if len(found) == 1 else 'are'}"
    return f"{words} read as missing: where that is a class or level, learn with {KEEP_WORDS}"


def joined_order(orders: Collection[tuple[str, ...]]) -> tuple[str, ...]:
    """Order of the levels of a column in parts: the longest, if all others are in it, or none."""
    longest = max(orders, key=len, default=())
    is_one = all(order and order == tuple(x for x in longest if x in order) for order in orders)
    return longest if is_one else ()


def stray_text(column: Column) -> tuple[int, str] | None:
    """Find the cell that makes a column of numbers look like text, and say a sentence about it.

    A column is taken for one of numbers when more than half of its cells, but not all, are.
    """
    present = np.flatnonzero(~column.is_missing)
    strays = [int(i) for i in present if parse_number(column.values[i]) is None]
    if not strays or 2 * len(strays) >= len(present):
        return None
    n_others = len(present) - len(strays)
    words = stray_words(column.values[strays], f"a number, but {n_others} other cells")
    return strays[0], words


def _is_date(text: str) -> bool:
    if len(text) < 8 or not text[0].isdigit():
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


# What a table is, for those who look at it.


def may_leak(strength: float, n_rows: int) -> bool:
    """Whether an input that alone tells so large a share of the target may be its other name."""
    return strength >= 0.98 and n_rows >= 30  # of fewer rows chance does that, too


@dataclass(frozen=True)
class InputFacts:
    """What one input of a table is."""

    name: str
    kind: str  # in words
    n_missing: int
    n_distinct: int
    summary: str  # quantiles, or the commonest levels
    counts: tuple[int, ...]  # of a small histogram
    strength: float  # share of the target that it tells alone: see `strength_alone`


@dataclass(frozen=True)
class TableFacts:
    """What the inputs of a table are, and what of them deserves a warning."""

    n_rows: int
    inputs: tuple[InputFacts, ...]
    target: str  # in words
    pairs: tuple[tuple[str, str, float], ...]  # inputs that go together: rank correlations
    n_twins: int  # rows whose inputs another row has as well
    far: tuple[str, ...] = ()  # rows with a value far from all others: a sentence an input
    n_all: int | None = None  # rows of the table, where some are described

    @property
    def leaks(self) -> tuple[InputFacts, ...]:
        """Inputs that alone give the target."""
        return tuple(each for each in self.inputs if may_leak(each.strength, self.n_rows))


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of a table, and the columns of the matrix that each of them became."""

    names: tuple[str, ...]
    columns: tuple[NDArray[np.int64], ...]

    @classmethod
    def of_sizes(cls, names: Sequence[str], sizes: Sequence[int]) -> Inputs:
        """Inputs that take so many columns each, one after the other."""
        ends = np.cumsum(sizes)
        spans = [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        return cls(tuple(names), tuple(spans))

    def __len__(self) -> int:
        return len(self.names)

    def take(self, chosen: NDArray[np.integer[Any]]) -> Inputs:
        """Keep some of them, in that order."""
        return Inputs(tuple(self.names[j] for j in chosen), tuple(self.columns[j] for j in chosen))


# Values far from all others: more often a slip of who wrote them than rare.

_GAP, _GAP_OF_BENT, _MOST_ON_A_SIDE = 3.0, 0.8, 5
_LEAST_COMPARED: Final = 20  # values
_NORMAL_WIDTH: Final = 2.9  # of the middle 95 % of a normal law, in distances between its quartiles


def far_values(x: NDArray[np.float64]) -> NDArray[np.int64]:
    """Positions of the values of x (n,) beyond a gap on either side, ascending; NaN are left out.

    The gap is three times as wide as the middle half of the values (or as that of a normal law
    whose middle 95 % these are, if that is wider), for positive ones in logarithms, too; for others
    .8 times in inverse hyperbolic sines of robust deviations, which are logarithms far out. At most
    a hundredth of the values, one at least and five at most, are beyond it.
    """
    known = np.flatnonzero(np.isfinite(x))
    order = known[np.argsort(x[known], kind="stable")]
    half = x[order] / 2.0  # differences of halves do not overflow
    if len(half) < _LEAST_COMPARED or np.count_nonzero(np.diff(half)) < 2:
        return np.empty(0, np.int64)
    if half[0] > 0.0:
        bent, gap_of_bent = np.log(half), _GAP
    else:
        first, middle, third = np.quantile(half, (0.25, 0.5, 0.75))
        width = 0.5 * (third - first) or 1.0
        bent, gap_of_bent = np.arcsinh((half - middle) / width), _GAP_OF_BENT
    most = min(max(len(half) // 100, 1), _MOST_ON_A_SIDE)
    ways = _beyond_gaps(half, _GAP, most), _beyond_gaps(bent, gap_of_bent, most)
    below, above = (min(each) for each in zip(*ways, strict=True))
    found = np.concatenate([order[:below], order[len(order) - above :]])
    return np.sort(found).astype(np.int64)


def _beyond_gaps(ordered: NDArray[np.float64], gap: float, most: int) -> tuple[int, int]:
    """How many of ascending values are below the last gap among the lowest, above the first one."""
    low, first, third, high = np.quantile(ordered, (0.025, 0.25, 0.75, 0.975))
    width = gap * max(third - first, (high - low) / _NORMAL_WIDTH)
    if width == 0.0:
        return 0, 0
    below = np.flatnonzero(np.diff(ordered[: most + 1]) > width)
    above = np.flatnonzero(np.diff(ordered[-most - 1 :]) > width)
    return int(below[-1]) + 1 if len(below) else 0, most - int(above[0]) if len(above) else 0


# How much one input alone tells of the target, without a model.

_N_BINS: Final = 20
_LEAST_IN_BIN: Final = 5


def strengths_alone(
    X: NDArray[np.float64], y: NDArray[Any], inputs: Inputs, *, is_classes: bool
) -> NDArray[np.float64]:
    """Share of the target (n,), or of one of q (n, q), that each of d inputs tells alone; (d,)."""
    alone, targets = functools.partial(strength_alone, is_classes=is_classes), np.atleast_2d(y.T)
    return np.array([max(alone(X[:, each], t) for t in targets) for each in inputs.columns])


def strength_alone(x: NDArray[np.float64], y: NDArray[Any], *, is_classes: bool) -> float:
    """Share of the target that bins of one input explain, less what chance would; in [0, 1].

    ``x`` (n, k) are the columns of one input: a single one is cut into at most twenty bins with
    about equally many rows; of levels the commonest are bins, a fifth as many as rows at most, and
    of other columns the best is taken. Of numbers it is the share of the
    variance between bins, or the square of the rank correlation if that is larger, of classes the
    share of the Gini index; adjusted for the number of bins.
    """
    is_known = ~np.isnan(x).any(axis=1)
    x, y = x[is_known], y[is_known]
    n = len(y)
    if n < 2:
        return 0.0
    if x.shape[1] > 1 and not np.isin(x, (0.0, 1.0)).all():  # the parts of a date, say
        return max(strength_alone(x[:, [j]], y, is_classes=is_classes) for j in range(x.shape[1]))
    bins = _bins(x)
    n_bins = int(bins.max()) + 1
    if n_bins < 2 or n <= n_bins:
        return 0.0
    targets = np.eye(int(y.max()) + 1)[y] if is_classes else np.asarray(y, float)[:, np.newaxis]
    total = float(np.square(targets - targets.mean(axis=0)).sum())
    if total == 0.0:
        return 0.0
    sizes = np.bincount(bins, minlength=n_bins)
    means = np.stack([np.bincount(bins, t, n_bins) for t in targets.T], axis=1) / sizes[:, None]
    within = float(np.square(targets - means[bins]).sum())
    binned = max(0.0, 1.0 - (within / (n - n_bins)) / (total / (n - 1)))
    if is_classes or x.shape[1] > 1:
        return binned
    from scipy.stats import rankdata

    ranks = np.corrcoef(rankdata(x[:, 0]), rankdata(targets[:, 0]))[0, 1]
    return max(binned, 1.0 - (1.0 - float(ranks) ** 2) * (n - 1) / max(n - 2, 1))


def _bins(x: NDArray[np.float64]) -> NDArray[np.int64]:
    """Number the bins of one input, shape (n,)."""
    most = max(2, len(x) // _LEAST_IN_BIN)
    if x.shape[1] > 1:
        _, index, sizes = np.unique(x, axis=0, return_inverse=True, return_counts=True)
        rank = np.argsort(np.argsort(-sizes, kind="stable"), kind="stable")
        return np.minimum(rank[index.reshape(-1)], most - 1).astype(np.int64)
    values, index = np.unique(x[:, 0], return_inverse=True)
    n_bins = min(_N_BINS, most)
    if len(values) <= n_bins:
        return index.reshape(-1).astype(np.int64)
    cuts = np.unique(np.quantile(x[:, 0], np.arange(1, n_bins) / n_bins))
    return np.unique(np.searchsorted(cuts, x[:, 0]), return_inverse=True)[1].astype(np.int64)
