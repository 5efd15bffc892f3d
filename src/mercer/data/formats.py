"""How numbers and dates are written in a column of text: found once, remembered, applied again.

Numbers may have a sign for percent or money, or a unit that is the same in all cells, separators
between thousands and negative ones in parentheses; times become hours; dates may be ISO 8601, have
the month by its English name, or be year, month and day in a stated order, years of two digits
last. What a cell means is decided by its whole column; where the column leaves two readings open,
it is refused.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from mercer.data.files import quoted, stray_words
from mercer.errors import ModelFileError

#: What the user says of dates whose column does not tell day from month.
Dates = Literal["auto", "dayfirst", "monthfirst"]

#: Of ISO 4217 the codes that are traded most: any three letters may be the beginning of a name.
_CODES = (
    "AED ARS AUD BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK JPY KRW MAD "
    "MXN MYR NGN NOK NZD PHP PKR PLN QAR RON RSD RUB SAR SEK SGD THB TRY TWD UAH USD ZAR"
)
_MONEY = (*"€$£¥", *_CODES.split())
_ANY_MONEY = "|".join(map(re.escape, _MONEY))
#: Units of times: hours and minutes, and seconds with them.
_TIMES = (":", "::")
_SPACES = " \u00a0\u202f\u2009'\u2019"
#: Separator of thousands and decimal sign; a space stands for all of `_SPACES`.
_CONVENTIONS = {"english": (",", "."), "european": (".", ","), "space": (" ", "."),
                "space european": (" ", ",")}  # fmt: skip
#: What orders of dates are called; "2" is a year of two digits.
_ORDERS = {
    "iso": "ISO 8601", "ymd": "year/month/day", "dmy": "day/month/year", "mdy": "month/day/year",
    "dm2": "day/month/year of two digits", "md2": "month/day/year of two digits",
    "named": "months by name", "month": "year-month",
}  # fmt: skip
_FIRST_SHORT_YEAR = 1969  # as POSIX has it: 69 to 99 are 1969 to 1999, 00 to 68 are 2000 to 2068
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september",
           "october", "november", "december")  # fmt: skip
_SHAPE = re.compile(
    rf"(?P<open>\()?(?P<sign>[-+\u2212])?(?P<left>{_ANY_MONEY})?(?P<gap>[ \u00a0\u202f])?"
    r"(?P<inner>[-+\u2212(])?"
    rf"(?P<body>[0-9.,][0-9.,{_SPACES}]*?)"
    rf"(?P<inner_end>\))?[ \u00a0\u202f]?(?P<right>%|{_ANY_MONEY})?(?P<close>\))?"
)
_TIME = re.compile(r"(?i)(\d{1,3}):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?(?: ?([AP])M)?", re.ASCII)
#: A number and the unit it was measured in; one capital letter close to it is part of a name.
_MEASURE = re.compile(
    rf"(?P<number>[-+\u2212]?[0-9.,][0-9.,{_SPACES}]*?)"
    r"(?:[ \u00a0\u202f](?=\w)|(?![A-Z]\Z))(?P<unit>\u00b0?[^\W\d_](?:[^\W\d_]|/){0,15})"
)
_DATE = re.compile(
    r"(?i)(\d{1,4})([/.-])(\d{1,2})\2(\d{4}|\d{1,2})"
    r"(?:,?[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?(?: ?([AP])M)?)?"
)
_NAMED = re.compile(
    r"(?i)(?:(\d{1,2})([ /.-])([a-z]{3,9})\2|([a-z]{3,9})\.? (\d{1,2}),? )((?:\d{4}|\d{2})(?!\d).*)"
)
_MONTH = re.compile(r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])", re.ASCII)
#: Two numbers between which codes have points and hyphens as well as dates.
_LIKE_A_CODE = re.compile(r"\d+[.-]\d")
#: Different cells from which on codes are no days of the calendar all by chance.
_FEWEST_DATES = 8


class FormatError(ValueError):
    """A column is neither numbers, dates nor words: the cell that shows it, and what to do."""

    def __init__(self, cell: str, words: str) -> None:
        super().__init__(words)
        self.cell = cell


@dataclass(frozen=True)
class CellFormat:
    """How the cells of one column are written."""

    kind: Literal["number", "date"]
    #: Stands beside each number: "", "%", a sign or code of money, or a unit of measurement; of
    #: times one of `_TIMES`.
    unit: str = ""
    #: Thousands and decimals: "english" 1,234.5, "european" 1.234,5, "space" 1 234.5 or "space
    #: european" 1 234,5.
    convention: str = "english"
    #: One of `_ORDERS`; ISO dates and those with the month by name are understood in any case.
    order: str = ""
    has_zone: bool = False  # each date has a time zone, and is turned into UTC
    has_parentheses: bool = False  # some numbers of training were in parentheses: negative ones

    def read(self, text: str) -> float:
        """Read a cell: the number, or days since 1970 with the time of day as a fraction.

        A cell that is not written so is a ValueError that says what is expected.
        """
        value = self._number(text) if self.kind == "number" else self._date(text)
        if value is None:
            raise ValueError(f"{quoted(text)} is not {self.words}; correct it")
        return value

    def read_all(self, texts: Iterable[str | None]) -> NDArray[np.float64]:
        """Read many cells, NaN where one is missing; a `FormatError` names the first wrong one."""
        known: dict[str | None, float] = {None: math.nan}
        values = []
        for text in texts:
            if text not in known:
                try:
                    known[text] = self.read(str(text))
                except ValueError as error:
                    raise FormatError(str(text), str(error)) from None
            values.append(known[text])
        return np.array(values, dtype=np.float64)

    def write(self, number: float) -> str:
        """Write a number in this way, for an example."""
        if self.unit in _TIMES:
            return f"{int(number)}:{round(number % 1.0 * 60.0):02d}" + ":00" * (self.unit == "::")
        swap = str.maketrans(",.", "".join(_CONVENTIONS[self.convention]))
        words = f"{abs(number):,}".translate(swap)
        if _is_measure(self.unit):
            return f"{words} {self.unit}"
        sign = "-" if number < 0 else ""
        unit = f"{self.unit} " if len(self.unit) > 1 else self.unit
        return f"{sign}{words}%" if unit == "%" else f"{sign}{unit}{words}"

    @property
    def words(self) -> str:
        """What a cell is expected to be, with an example."""
        if self.kind == "number":
            kinds = {"%": ("percent", 12.5), **dict.fromkeys(_TIMES, ("a time", 13.75))}
            kind, value = kinds.get(self.unit, ("a number", 1234.5))
            return f"{kind} written as {quoted(self.write(value))}"
        zone = " with a time zone" if self.has_zone else ""
        return f"a date ({_ORDERS[self.order]}{zone})"

    @property
    def has_decimal_comma(self) -> bool:
        """Whether a comma is the decimal sign."""
        return _CONVENTIONS[self.convention][1] == ","

    @property
    def kinds(self) -> str:
        """What the cells are, in a note."""
        if self.kind == "date":
            years = ", 1969 to 2068" if "2" in self.order else ""
            return f"dates ({_ORDERS[self.order]}{years})"
        if self.unit == "%":
            return f"percent, read as numbers ({quoted(self.write(12.5))} is 12.5)"
        if self.unit in _TIMES:
            return f"times, read as hours ({quoted(self.write(13.75))} is 13.75)"
        more = f", '({self.write(1234.5)})' is -1234.5" if self.has_parentheses else ""
        return f"text read as numbers ({quoted(self.write(1234.5))} is 1234.5{more})"

    def to_dict(self) -> dict[str, Any]:
        """Turn into plain Python types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Any) -> CellFormat:
        """Read back what `to_dict` gave; a `ModelFileError` where the fields are no format."""
        if isinstance(fields, dict):  # older files do not have it
            fields = {"has_parentheses": False, **fields}
        if not isinstance(fields, dict) or set(fields) != set(cls.__dataclass_fields__):
            raise ModelFileError("inconsistent encoding: a format has the wrong fields")
        texts = [fields[name] for name in ("kind", "unit", "convention", "order")]
        if not all(isinstance(text, str) for text in texts):
            raise ModelFileError("inconsistent encoding: a format has fields of the wrong type")
        is_date, unit = fields["kind"] == "date", fields["unit"]
        is_known = unit in ("", "%", *_TIMES, *_MONEY) or _is_measure(unit)
        if not (
            fields["kind"] in ("number", "date")
            and (unit == "" if is_date else is_known)
            and fields["convention"] in (("english",) if is_date else tuple(_CONVENTIONS))
            and fields["order"] in (tuple(_ORDERS) if is_date else ("",))
            and isinstance(fields["has_zone"], bool)
            and isinstance(fields["has_parentheses"], bool)
            and not fields["has_parentheses" if is_date else "has_zone"]
        ):
            raise ModelFileError("inconsistent encoding: a format does not fit together")
        return cls(**fields)

    def _number(self, text: str) -> float | None:
        number, unit = _measured(text)
        if unit == self.unit:
            return replace(self, unit="")._number(number)
        parts = _Parts.of(text)
        return None if parts is None or parts.unit != self.unit else parts.value(self.convention)

    def _date(self, text: str) -> float | None:
        moment = _iso(f"{text}-01" if self.order == "month" else text) or _clear(text)
        if moment is None and len(self.order) == 3 and self.order != "iso":
            moment = _ordered(text, self.order)
        if moment is None or (moment.tzinfo is not None) != self.has_zone:
            return None
        # Without a zone days are those of the clock as it is.
        return (moment if self.has_zone else moment.replace(tzinfo=UTC)).timestamp() / 86400.0


@dataclass(frozen=True)
class _Parts:
    """A cell taken apart: its sign, its unit, and its digits with what separates them."""

    is_negative: bool
    in_parentheses: bool
    unit: str
    body: str

    @classmethod
    def of(cls, text: str) -> _Parts | None:
        """Take a cell apart; None where it has not the shape of a number or a time."""
        if _TIME.fullmatch(text):
            return cls(False, False, ":" * text.count(":"), text)
        found = _SHAPE.fullmatch(text)
        if found is None:
            return None
        left, right, inner = found["left"] or "", found["right"] or "", found["inner"] or ""
        n_open = bool(found["open"]) + (inner == "(")
        n_closed = bool(found["inner_end"]) + bool(found["close"])
        signs = (found["sign"] or "") + inner.strip("(")
        is_right = (
            n_open == n_closed
            and n_open + len(signs) <= 1
            and not (left and right)
            and (bool(left) or not (found["gap"] or inner))
        )
        if not is_right:
            return None
        in_parentheses = n_open == 1
        is_negative = in_parentheses or signs in ("-", "\u2212")
        return cls(is_negative, in_parentheses, left or right, found["body"])

    @property
    def has_space(self) -> bool:
        """Whether a space or an apostrophe separates thousands."""
        return any(letter in _SPACES for letter in self.body)

    @property
    def is_plain(self) -> bool:
        """Whether the cell is a number as a program writes it."""
        has_marks = "," in self.body or self.has_space or self.body.count(".") > 1
        return not (self.unit or self.in_parentheses or has_marks)

    @property
    def is_ungrouped(self) -> bool:
        """Whether more than three digits stand before the decimal sign without a separator."""
        return re.match(r"\d{4}", self.body) is not None

    def value(self, convention: str) -> float | None:
        """Read the number by a convention; None where it is not written so."""
        if self.unit in _TIMES:
            return _hours(self.body)
        if not _BODIES[convention].fullmatch(self.body):
            return None
        thousands, decimal = _CONVENTIONS[convention]
        digits = self.body
        for letter in _SPACES if thousands == " " else thousands:
            digits = digits.replace(letter, "")
        value = float(digits.replace(decimal, "."))
        return -value if self.is_negative else value


def _hours(text: str) -> float | None:
    """Read a time of day, or a length of time, in hours; None where no clock has this hour."""
    hours, minutes, seconds, half = _TIME.fullmatch(text).groups(default="")  # type: ignore[union-attr]
    hour = int(hours)
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (half in "pP")
    return hour + int(minutes) / 60.0 + float(seconds or 0.0) / 3600.0


def _body(convention: str) -> re.Pattern[str]:
    thousands, decimal = _CONVENTIONS[convention]
    # Within a number all thousands are separated alike.
    mark = rf"(?P<mark>[{_SPACES}])" if thousands == " " else f"(?P<mark>{re.escape(thousands)})"
    point = re.escape(decimal)
    grouped = rf"[1-9]\d{{0,2}}{mark}\d{{3}}(?:(?P=mark)\d{{3}})*"
    return re.compile(rf"(?:(?:{grouped}|\d+)(?:{point}\d*)?|{point}\d+)", re.ASCII)


_BODIES = {convention: _body(convention) for convention in _CONVENTIONS}


_MOST_STRAYS = 20  # that are kept to be told


class NumberFinder:
    """Find, block by block, how the numbers of a column are written.

    Cells that are numbers as a program writes them count as numbers without a unit.
    """

    def __init__(self) -> None:
        self._n_cells = 0
        self._units: Counter[str] = Counter()
        self._first: dict[str, str] = {}  # cell by unit
        self._strays: list[str] = []  # the first cells that are no numbers
        self._counts: Counter[str] = Counter()  # numbers by convention
        self._wrong: dict[str, str] = {}  # the first number that is not written so
        self._has: set[str] = set()
        self._marked = ""  # the first number with a comma or a point

    def add(self, texts: Iterable[str | None]) -> None:
        """Take cells; None is missing."""
        for text, n in Counter(text for text in texts if text is not None).items():
            self._n_cells += n
            parts = _Parts.of(text)
            if parts is None:
                if len(self._strays) < _MOST_STRAYS:
                    self._strays.append(text)
                continue
            self._units[parts.unit] += n
            self._first.setdefault(parts.unit, text)
            self._note(text, parts)
            for convention in _CONVENTIONS:
                if parts.value(convention) is None:
                    self._wrong.setdefault(convention, text)
                else:
                    self._counts[convention] += n

    def _note(self, text: str, parts: _Parts) -> None:
        facts = {
            "comma": "," in parts.body,
            "point": "." in parts.body,
            "space": parts.has_space,
            "plain space": " " in parts.body,
            "ungrouped": parts.is_ungrouped,
            "parentheses": parts.in_parentheses,
            "others": not parts.in_parentheses,
            "decorated": not parts.is_plain,
        }
        self._has |= {name for name, is_so in facts.items() if is_so}
        if not self._marked and (facts["comma"] or facts["point"]):
            self._marked = text

    def find(self) -> CellFormat | None:
        """Say how the numbers are written.

        None where most cells are no numbers, or all are as a program writes them. A `FormatError`
        where most cells are numbers and one is not, or where they may be read in two ways.
        """
        has = self._has
        if "decorated" not in has or ("parentheses" in has and "others" not in has):
            return None
        if 2 * sum(self._units.values()) <= self._n_cells:
            return None
        if "space" in has:
            open_ = [name for name in ("space", "space european") if name not in self._wrong]
        else:
            open_ = [name for name in ("english", "european") if name not in self._wrong]
        best = max(_CONVENTIONS, key=lambda name: self._counts[name])
        unit = self._units.most_common(1)[0][0]
        if unit in _TIMES and any(":" in cell for cell in self._strays):
            return None  # such as scores of games
        if not open_ and 2 * self._counts[best] <= self._n_cells:
            return None
        if self._strays or not open_ or len(self._units) > 1:
            self._refuse_stray(unit, best)
        if "plain space" in has and not (has & {"comma", "point"} or unit):
            return None  # as likely the parts of a number that names something
        convention, has_minus = self._choose(open_, unit), "parentheses" in has
        return CellFormat("number", unit, convention, has_parentheses=has_minus)

    def _refuse_stray(self, unit: str, convention: str) -> NoReturn:
        """Refuse the first cell that is not as most are."""
        example = quoted(self._first[unit])
        if self._strays:
            words = stray_words(self._strays, f"a number, but {example} and most other cells")
            raise FormatError(self._strays[0], words)
        if len(self._units) > 1:
            other = next(name for name in self._first if name != unit)
            cell = self._first[other]
            raise FormatError(
                cell,
                f"{quoted(cell)} and {example} are in different units; write all numbers of the "
                "column in the same unit",
            )
        cell = self._wrong[convention]
        raise FormatError(
            cell,
            f"{quoted(cell)} is not written as most numbers of the column are; write all with the "
            "same separators",
        )

    def _choose(self, open_: Sequence[str], unit: str) -> str:
        """Choose among the conventions by which all numbers can be read, if they agree."""
        marks = self._has & {"comma", "point"}
        if len(open_) == 1 or not marks or "space" in self._has:
            return open_[0]
        is_money = unit in _MONEY
        is_grouped = "ungrouped" not in self._has
        if marks == {"comma"} and unit != "%" and is_grouped:
            return "english"
        if marks == {"point"} and not is_money:
            return "english"
        cell = self._marked
        english = CellFormat("number", unit, "english").read(cell)
        european = CellFormat("number", unit, "european").read(cell)
        raise FormatError(
            cell,
            f"{quoted(cell)} may be {english:.12g} or {european:.12g}, and the column does not say "
            "which; write numbers without separators between thousands, and with a decimal point",
        )


def find_number_format(texts: Iterable[str | None]) -> CellFormat | None:
    """Say how the numbers of a column are written; see `NumberFinder.find`."""
    finder, cells = NumberFinder(), [text for text in texts if text is not None]
    parts = {cell: _measured(cell) for cell in dict.fromkeys(cells)}
    units = {unit for _, unit in parts.values()}
    unit = units.pop() if len(units) == 1 else None
    if unit is None:
        finder.add(cells)
        return finder.find()
    numbers = {number: cell for cell, (number, _) in parts.items()}
    finder.add(numbers)
    try:
        found = finder.find()
    except FormatError as error:
        raise FormatError(numbers[error.cell], str(error)) from None
    may_be = [CellFormat("number", convention=name) for name in ("english", "space")]
    for each in may_be if found is None else [found]:
        if all(each._number(number) is not None for number in numbers):
            return replace(each, unit=unit)
    return None


def odd_one_out(cells: Sequence[str]) -> tuple[str, str] | None:
    """Name the unit of measurement of most cells, and a cell that keeps them from being numbers."""
    units = [_measured(cell)[1] for cell in cells]
    unit, n = Counter(units).most_common(1)[0]
    if unit is None or 2 * n <= len(cells) or n == len(cells):
        return None
    return unit, next(cell for cell, other in zip(cells, units, strict=True) if other != unit)


def _is_measure(unit: str) -> bool:
    """Whether a unit is one of measurement, as `_measured` names it."""
    return _measured(f"1 {unit}")[1] == unit


def _measured(text: str) -> tuple[str, str | None]:
    """Take a cell apart: a number, and the unit it was measured in, in the singular.

    The unit of other cells, and of money, is None.
    """
    found = _MEASURE.fullmatch(text)
    if found is None or found["unit"] in _MONEY:
        return text, None
    unit = found["unit"]
    return found["number"], unit[:-1] if len(unit) > 2 and unit.endswith("s") else unit


def find_format(texts: Iterable[str | None], dates: Dates = "auto") -> CellFormat | None:
    """Say how the numbers or the dates of a column of text are written; None where it is words.

    `dates` decides between day and month where the column does not. A `FormatError` where most
    cells are numbers, or dates, and one is not, or where they may be read in two ways.
    """
    counts = Counter(text for text in texts if text is not None)
    if counts and all(map(_MONTH.fullmatch, counts)):
        return CellFormat("date", order="month")
    n_cells = counts.total()
    moments = {text: moment for text in counts if (moment := _clear(text)) is not None}
    others = {text: found for text in counts if (found := _fields(text)) is not None}
    others = {text: found for text, found in others.items() if text not in moments}
    n_dates = sum(counts[text] for text in (*moments, *others))
    if n_dates == 0 or 2 * n_dates <= n_cells:
        return _short_years(counts, dates) or find_number_format(counts.elements())
    strays = [cell for cell in counts if cell not in moments and cell not in others]
    if strays:
        raise FormatError(strays[0], stray_words(strays, "a date, but most other cells"))
    if moments and others:
        cell = next(iter(others))
        raise FormatError(
            cell,
            f"{quoted(cell)} is written in another way than {quoted(next(iter(moments)))}; write "
            "all dates as 2024-12-31",
        )
    if moments:
        return _clear_format(moments)
    return _checked(others, _order(others, dates))


def _checked(cells: Iterable[str], order: str) -> CellFormat:
    """Say that dates are written in that order, once all are days of the calendar."""
    for cell in cells:
        if _ordered(cell, order) is None:
            raise FormatError(cell, f"{quoted(cell)} is no day of the calendar ({_ORDERS[order]})")
    return CellFormat("date", order=order)


def _short_years(counts: Counter[str], dates: Dates) -> CellFormat | None:
    """Say how dates are written that end with two digits of the year; None for other cells.

    With slashes or the name of a month most cells have to be such dates; with points or hyphens,
    as codes may have them, all cells days of the calendar, and many.
    """
    cells = {text: found for text in counts if (found := _fields(_by_number(text), 2)) is not None}
    if not cells or 2 * sum(counts[text] for text in cells) <= counts.total():
        return None
    numbers = {text: found for text, found in cells.items() if text == _by_number(text)}
    strays = [text for text in counts if text not in cells]
    if any(map(_LIKE_A_CODE.match, cells)):
        readings = [[_ordered(text, order) for text in cells] for order in ("dm2", "md2")]
        if strays or len(cells) < _FEWEST_DATES or all(None in each for each in readings):
            return None
    if strays:
        raise FormatError(strays[0], stray_words(strays, "a date, but most other cells"))
    is_last, may_be_month = dates != "auto" or len(numbers) < len(cells), True
    for cell, (first, second, last, *_) in numbers.items():
        if int(first) > 31:
            raise FormatError(
                cell, f"{quoted(cell)} begins with a year of two digits; write dates as 2024-12-31"
            )
        may_be_month &= int(first) <= 12
        is_last |= int(second) > 12 or not 1 <= int(last) <= 31
    if not is_last:
        cell, more = next(iter(numbers)), " or --dates monthfirst" * may_be_month
        raise FormatError(
            cell,
            f"{quoted(cell)} may begin or end with a year of two digits, and no date of the column "
            f"says which; if it ends so, use --dates dayfirst{more}, else write dates as "
            "2024-12-31, or name the column in --categories if it has no dates",
        )
    return _checked(cells, f"{_order(numbers, dates)[:2]}2" if numbers else "dm2")


def _clear_format(moments: dict[str, datetime]) -> CellFormat:
    first, moment = next(iter(moments.items()))
    has_zone = moment.tzinfo is not None
    for cell, other in moments.items():
        if (other.tzinfo is not None) != has_zone:
            raise FormatError(
                cell,
                f"{quoted(cell)} and {quoted(first)}: one has a time zone, the other has none; "
                "write all with or all without",
            )
    order = "iso" if any(map(_iso, moments)) else "named"
    return CellFormat("date", order=order, has_zone=has_zone)


def _order(cells: dict[str, tuple[str, ...]], dates: Dates) -> str:
    """Find the order of year, month and day."""
    is_year_first = {text: len(fields[0]) == 4 for text, fields in cells.items()}
    if all(is_year_first.values()):
        return "ymd"
    if any(is_year_first.values()):
        cell = next(text for text, is_first in is_year_first.items() if is_first)
        raise FormatError(
            cell, f"{quoted(cell)} begins with the year and others do not; write all alike"
        )
    day_first = next((text for text, fields in cells.items() if int(fields[0]) > 12), None)
    month_first = next((text for text, fields in cells.items() if int(fields[1]) > 12), None)
    if day_first is not None and month_first is not None:
        raise FormatError(
            month_first,
            f"{quoted(month_first)} has the month first and {quoted(day_first)} the day; write all "
            "dates as 2024-12-31",
        )
    if day_first is None and month_first is None and dates == "auto":
        cell = next(iter(cells))
        raise FormatError(
            cell,
            f"{quoted(cell)} may begin with the day or with the month, and no date of the column "
            "says which; use --dates dayfirst or --dates monthfirst, or write dates as 2024-12-31",
        )
    contrary = {"auto": None, "dayfirst": month_first, "monthfirst": day_first}[dates]
    if contrary is not None:
        raise FormatError(contrary, f"{quoted(contrary)} is no date with --dates {dates}")
    return "dmy" if day_first is not None or dates == "dayfirst" else "mdy"


def _clear(text: str) -> datetime | None:
    """Read a date that can be read in one way only: ISO, or with the English name of a month."""
    by_number = _by_number(text)
    return _iso(text) if by_number == text else _ordered(by_number, "dmy")


def _by_number(text: str, order: str = "dmy") -> str:
    """Write a date that has the month by its English name by numbers; another text is as it is."""
    found = _NAMED.fullmatch(text)
    if found is None:
        return text
    word, day = (found[3] or found[4]).lower(), found[1] or found[5]
    month = next((k for k, name in enumerate(_MONTHS, 1) if name.startswith(word)), 0)
    first, second = (month, day) if order.startswith("m") else (day, month)
    return f"{first}/{second}/{found[6]}" if month > 0 else text


def _iso(text: str) -> datetime | None:
    """Read an ISO date, with or without a time."""
    if len(text) < 8 or not text[0].isdigit() or text.isdecimal():
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _fields(text: str, n_digits: int = 4) -> tuple[str, ...] | None:
    """Take a date apart whose year has four digits, or ends it with two: numbers, and the time."""
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    sizes = len(found[1]), len(found[4])
    if sizes.count(4) != 1 if n_digits == 4 else sizes[0] > 2 or sizes[1] != 2:
        return None
    hour, half = int(found[5] or 0), (found[8] or "").lower()
    if len(found[1]) == 3 or (half and not 1 <= hour <= 12):
        return None
    hour = hour % 12 + 12 * (half == "p") if half else hour
    return found[1], found[3], found[4], str(hour), found[6] or "0", found[7] or "0"


def _ordered(text: str, order: str) -> datetime | None:
    """Read a date whose order is known."""
    text = _by_number(text, order)
    fields = _fields(text) or (_fields(text, 2) if "2" in order else None)
    if fields is None or (len(fields[0]) == 4) != (order == "ymd"):
        return None
    by_letter = dict(zip(order.replace("2", "y"), map(int, fields[:3]), strict=True))
    hour, minute, second = map(int, fields[3:])
    year = by_letter["y"]
    if "2" in order and len(fields[2]) == 2:
        year += 100 * ((_FIRST_SHORT_YEAR - year + 99) // 100)
    try:
        return datetime(year, by_letter["m"], by_letter["d"], hour, minute, second)
    except ValueError:
        return None
