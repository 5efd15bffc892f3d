"""Numbers and dates as people write them: what was written comes back, or is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from mercer.data.formats import CellFormat, FormatError, find_format
from mercer.errors import ModelFileError


def values(*texts: str | None, dates: str = "auto") -> list[float]:
    found = find_format(texts, dates)  # type: ignore[arg-type]
    assert found is not None
    assert CellFormat.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    return found.read_all(texts).tolist()


def refused(*texts: str | None, dates: str = "auto") -> tuple[str, str]:
    with pytest.raises(FormatError) as caught:
        find_format(texts, dates)  # type: ignore[arg-type]
    assert caught.value.cell in texts
    return caught.value.cell, str(caught.value)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["12.3%", "4 %", "-5%"], [12.3, 4, -5]),
        (["12,5 %", "7,25 %"], [12.5, 7.25]),
        (["$1,234.50", "$3"], [1234.5, 3]),
        (["1.234,50 €", "€ 3,10", "-€7"], [1234.5, 3.1, -7]),
        (["60.91 CHF", "CHF 1,060", "-CHF7"], [60.91, 1060.0, -7.0]),
        (["1.234,50 EUR", "3,10EUR", "(EUR 2)"], [1234.5, 3.1, -2.0]),
        (["£5", "(£1,234)", "£(6.5)", "£-2", "\u2212£3"], [5, -1234, -6.5, -2, -3]),
        (["123,456", "999", "1,000,000"], [123456, 999, 1e6]),
        (["1.234.567", "12"], [1234567, 12]),
        (["1,5", "2,75"], [1.5, 2.75]),
        (["1 234,5", "12 000 000"], [1234.5, 12e6]),
        (["1\u202f234", "12"], [1234, 12]),
        (["1'234.50", "2"], [1234.5, 2]),
        (["(12)", "5"], [-12, 5]),
        (["¥1,200", "¥300"], [1200, 300]),
        (["1248 CC", "998 CC"], [1248, 998]),
        (["23.4kmpl", "-18 kmpl"], [23.4, -18]),
        (["1 day", "8 days"], [1, 8]),
        (["21 °C", "3 °C"], [21, 3]),
        (["12 km/h", "7\u00a0km/h", "12 km/h"], [12, 7, 12]),
        (["1.234,5 m²", "2 m²"], [1234.5, 2]),
        (["1 234 kg", "5 678 kg"], [1234, 5678]),
        (["12 A", "9 A"], [12, 9]),
        (["13:45", "0:06", "100:30"], [13.75, 0.1, 100.5]),
        (["13:45:36", "00:00:01.8", "7:30:00"], [13.76, 0.0005, 7.5]),
        (["12:30 am", "12:00PM", "1:45 pm"], [0.5, 12.0, 13.75]),
    ],
)
def test_numbers(texts: list[str], expected: list[float]) -> None:
    assert values(*texts) == expected


@pytest.mark.parametrize(
    "texts",
    [
        ["Ulm", "Bonn"],
        ["1", "2.5"],  # as a program writes them
        ["1", "x"],
        ["REF 12", "REF 13"],  # no money
        ["chf 5", "chf 6"],
        ["(1)", "(2)"],  # levels in parentheses
        ["555 123 456", "555 123 457"],  # phone numbers
        ["192.168.100.200", "10.0.0.1"],
        ["1-2", "3-5"],
        ["12-mars-2024", "Room 12, 2024"],
        ["1/31/2024 13:05 PM"],
        ["1.2.24", "1.2.10"],
        ["12%", "none", "some", "all"],
        ["2:1", "3:0"],
        ["25:24", "30:28", "31:75"],  # scores
        ["13:60", "1300:15"],
        ["2 BHK", "4 Bedroom"],
        ["12 kg", "5 lb", "7 kg"],
        ["74 bhp", "null bhp", "81 bhp"],
        ["12A", "13A"],  # of a name
        [". km", ".. km"],
        ["1.5.2 v", "2.1 v"],
        ["5 kilograms per litre", "6 kilograms per litre"],
        [None, None],
        [],
    ],
)
def test_words_stay_words(texts: list[str | None]) -> None:
    assert find_format(texts) is None


@pytest.mark.parametrize(
    ("texts", "cell", "words"),
    [
        (["€1.234", "€5.678"], "€1.234", "may be 1.234 or 1234"),
        (["1,234", "5678"], "1,234", "may be 1234 or 1.234"),
        (["12,345%", "1,000%"], "12,345%", "may be 12345 or 12.345"),
        (["1,234", "5.678", "7"], "1,234", "may be 1234 or 1.234"),
        (["12%", "n.d.", "13%"], "n.d.", "'n.d.' is not a number, but '12%' and most"),
        (["$5", "€6", "$7"], "€6", "different units"),
        (["5 CHF", "6 EUR", "7 CHF"], "6 EUR", "different units"),
        (["12%", "5", "13%"], "5", "different units"),
        (["5 kg", "1,234 kg", "5678 kg"], "1,234 kg", "may be 1234 or 1.234"),
        (["13:45", "7:30", "noon"], "noon", "'noon' is not a number, but '13:45' and most"),
        (["59:59", "58:10", "1:00:05"], "1:00:05", "different units"),
        (["13:45 pm", "1:45 pm", "2:45 pm"], "13:45 pm", "not written as most numbers"),
        (["1,234.5", "1.234,5", "2,000.5"], "1.234,5", "not written as most numbers"),
        (["12,34,567", "1,000.5", "2,000.5"], "12,34,567", "not written as most numbers"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(texts: list[str], cell: str, words: str) -> None:
    found, said = refused(*texts)
    assert found == cell
    assert words in said


MARKS = {"english": (",", "."), "european": (".", ","), "space": ("\u202f", ".")}


@seed(4)
@settings(max_examples=200)
@given(
    cents=st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=6),
    convention=st.sampled_from(sorted(MARKS)),
    unit=st.sampled_from(["", "$", "€", "%", "CHF"]),
    is_left=st.booleans(),
    is_accounting=st.booleans(),
)
def test_what_was_written_comes_back(
    cents: list[int], convention: str, unit: str, is_left: bool, is_accounting: bool
) -> None:
    thousands, decimal = MARKS[convention]
    numbers = [each / 100 for each in [*cents, 123456789, 12]]  # these say what is what
    texts = []
    for number in numbers:
        words = f"{abs(number):,.2f}".translate(str.maketrans({",": thousands, ".": decimal}))
        words = f"{unit}{words}" if is_left and unit != "%" else f"{words}{unit}"
        negative = f"({words})" if is_accounting else f"-{words}"
        texts.append(negative if number < 0 else words)
    assert values(*texts) == numbers


@seed(5)
@settings(max_examples=200)
@given(
    moments=st.lists(
        st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 30)), min_size=1, max_size=5
    ),
    order=st.sampled_from(
        [
            *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%Y-%m-%d"),
            *("%d-%b-%Y", "%d %B %Y", "%b %d %Y", "%B %d, %Y"),
        ]
    ),
    time=st.sampled_from(["", " %H:%M:%S", " %I:%M:%S %p", ", %I:%M:%S%p"]),
)
def test_a_date_that_was_written_comes_back(moments: list[datetime], order: str, time: str) -> None:
    moments = [*moments, datetime(2024, 10, 31)]  # says which is the day
    if not time:
        moments = [m.replace(hour=0, minute=0, second=0) for m in moments]
    moments = [m.replace(microsecond=0) for m in moments]
    # strftime writes years below 1000 without zeros on some systems; these begin at 1000.
    texts = [m.strftime(order + time) for m in moments]
    epoch = datetime(1970, 1, 1)
    expected = [(m - epoch) / timedelta(days=1) for m in moments]
    np.testing.assert_allclose(values(*texts), expected, rtol=0, atol=1e-8)


def test_day_and_month() -> None:
    day = (datetime(2024, 2, 1) - datetime(1970, 1, 1)).days
    assert values("31/12/2024", "01/02/2024")[1] == day
    assert values("12/31/2024", "02/01/2024")[1] == day
    assert values("01/02/2024", dates="dayfirst") == [day]
    assert values("02/01/2024", dates="monthfirst") == [day]
    assert "--dates dayfirst or --dates monthfirst" in refused("01/02/2024", "03/04/2024")[1]
    assert "--dates dayfirst" in refused("12/31/2024", dates="dayfirst")[1]
    assert refused("31/12/2024", "12/31/2024")[0] == "12/31/2024"
    assert refused("31/12/2024", "31/02/2024") == (
        "31/02/2024",
        "'31/02/2024' is no day of the calendar (day/month/year)",
    )
    assert refused("31/12/2024", "30/12/2024", "soon")[0] == "soon"
    assert refused("31/12/2024", "2024-12-30", "29/12/2024")[0] == "31/12/2024"
    assert values("1-Feb-2024", "30 Sept 2023", "Feb. 1, 2024")[0] == day


def test_years_of_two_digits() -> None:
    day = (datetime(2024, 2, 1) - datetime(1970, 1, 1)).days
    assert values("12/31/24", "2/1/24", "7/4/69 6:30 PM")[1:] == [day, -181 + 18.5 / 24]
    assert values("31/12/97", "01/02/24")[1] == day  # 97 is no day
    assert values("31-Dec-24", "01-Feb-24") == values("Dec 31, 2024", "Feb 1, 2024")
    assert values("01/02/24", dates="dayfirst") == values("02/01/24", dates="monthfirst") == [day]
    years = [f"1/1/{year:02}" for year in range(100)]
    found = values(*years, dates="dayfirst")
    assert found == [
        (datetime(1900 + year + 100 * (year < 69), 1, 1) - datetime(1970, 1, 1)).days
        for year in range(100)
    ]
    # May 12 or December 5 of a year, or the 24th of May 2012.
    assert "--dates dayfirst or --dates monthfirst" in refused("05/12/24", "12/05/24")[1]
    assert "use --dates dayfirst, else" in refused("05/12/24", "13/12/24")[1]
    assert "may begin with the day or with the month" in refused("05/12/97")[1]
    assert refused("97/12/31", "24/01/05") == (
        "97/12/31",
        "'97/12/31' begins with a year of two digits; write dates as 2024-12-31",
    )
    assert "is no day of the calendar" in refused("12/31/97", "02/30/24")[1]
    assert refused("12/31/97", "12/30/97", "soon")[0] == "soon"
    assert refused("12/31/97", "12/30/97", "12/30/1997")[0] == "12/30/1997"
    short = CellFormat("date", order="md2")
    assert short.read("02/01/24") == short.read("02/01/2024") == short.read("1-Feb-24") == day
    assert short.kinds == "dates (month/day/year of two digits, 1969 to 2068)"
    with pytest.raises(ValueError, match="month/day/year of two digits"):
        short.read("24/12/31")


def test_codes_are_no_years_of_two_digits() -> None:
    days = [f"{day:02}.03.{year}" for day in (1, 13, 28) for year in (22, 23, 24)]
    assert "--categories" in refused(*days)[1]
    assert len(values(*days, dates="dayfirst")) == len(values(*days, "01.01.97")) - 1
    sizes = ["10 pcs 20", "12 box 24"]
    for codes in (days[:7], [*days, "A1"], [*days, "10.51.30"], ["1.2.10", "1.12.45"], sizes):
        assert find_format(codes, dates="dayfirst") is None
    hyphens = [f"03-{day:02}-24" for day in range(10, 20)]
    assert values(*hyphens)[0] == (datetime(2024, 3, 10) - datetime(1970, 1, 1)).days


def test_months_are_dates_if_all_cells_are() -> None:
    first = (datetime(1949, 12, 1) - datetime(1970, 1, 1)).days
    assert values("1949-12", "1950-01") == [first, first + 31]
    assert find_format(["1949-12", "1950-13"]) is None
    with pytest.raises(ValueError, match="is not a date \\(year-month\\)"):
        CellFormat("date", order="month").read("1950-13")


def test_time_zones() -> None:
    east = datetime(2024, 2, 1, tzinfo=timezone(timedelta(hours=2)))
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    found = values("2024-01-31T10:00:00Z", east.isoformat())
    np.testing.assert_allclose(found[1], (east - epoch) / timedelta(days=1), rtol=1e-14)
    assert "time zone" in refused("2024-01-31T10:00:00Z", "2024-01-31T10:00:00")[1]


def test_new_cells_are_read_as_in_training_or_refused() -> None:
    euros = CellFormat("number", "€", "european")
    assert euros.read("€1.234") == 1234.0
    for text in ("1.234", "$1.234", "€1,234.5", "n.d."):
        with pytest.raises(ValueError, match=r"is not a number written as '€1\.234,5'; correct"):
            euros.read(text)
    weights = CellFormat("number", "kg")
    assert weights.read("1,234 kgs") == weights.read("1234kg") == 1234.0
    for text in ("70", "5 lb", "kg", "70 kg net"):
        with pytest.raises(ValueError, match=r"is not a number written as '1,234\.5 kg'; correct"):
            weights.read(text)
    times = CellFormat("number", "::")
    assert times.read("7:30:00") == 7.5
    for text in ("7:30", "7.5", "7:30:00 XM"):
        with pytest.raises(ValueError, match="is not a time written as '13:45:00'; correct"):
            times.read(text)
    for order in ("iso", "named", "month"):
        with pytest.raises(ValueError, match="is not a date"):
            CellFormat("date", order=order).read("31/12/2024")
    day_first = CellFormat("date", order="dmy")
    assert day_first.read("01/02/2024") == day_first.read("2024-02-01")
    for text in ("12/31/2024", "2024-02-01T00:00Z", "1"):
        with pytest.raises(ValueError, match=r"is not a date \(day/month/year\)"):
            day_first.read(text)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "pickle"},
        {"kind": []},
        {"kind": "date"},
        {"unit": "kg 5"},
        {"unit": "days"},  # "day" is what it is called
        {"kind": "date", "order": "iso", "unit": "kg"},
        {"unit": "$€"},
        {"unit": ":::"},
        {"unit": None},
        {"convention": "roman"},
        {"convention": {}},
        {"order": "dmy"},
        {"has_zone": 1},
        {"has_zone": True},
        {"has_parentheses": 1},
        {"more": 1},
    ],
)
def test_f8_fields_that_do_not_fit(change: dict[str, object]) -> None:
    with pytest.raises(ModelFileError, match="inconsistent encoding"):
        CellFormat.from_dict(CellFormat("number", "$").to_dict() | change)
    with pytest.raises(ModelFileError, match="inconsistent encoding"):
        CellFormat.from_dict([])


def test_older_files_do_not_say_of_parentheses() -> None:
    fields = CellFormat("number", "$").to_dict()
    del fields["has_parentheses"]
    assert CellFormat.from_dict(fields) == CellFormat("number", "$")
    with pytest.raises(ModelFileError, match="inconsistent encoding"):
        CellFormat.from_dict(CellFormat("date", order="iso", has_parentheses=True).to_dict())


def test_a_word_for_a_missing_value_among_numbers_or_dates_is_told_its_option() -> None:
    for others in (("1,5 €", "2,5 €", "3,5 €"), ("2024-01-02", "2024-01-03", "2024-01-09")):
        cell, words = refused("k. A.", *others)
        assert cell == "k. A."
        assert words.endswith("empty it or learn with --null-values 'k. A.'")


def test_all_words_that_are_no_numbers_are_told_at_once() -> None:
    _, words = refused("1,5 €", "k. A.", "2,5 €", "-", "3,5 €", "4,5 €", "k. A.")
    assert "'k. A.' is not a number, but '1,5 €' and most other cells of the column are" in words
    assert "nor is '-'; " in words
    assert words.endswith("empty it or learn with --null-values 'k. A.' --null-values '-'")
