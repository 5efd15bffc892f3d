from __future__ import annotations

from mercer.posterior.draws import Table
from mercer.report.section import Cell, from_table


def test_a_table_gets_words_and_keeps_what_it_is_sorted_by():
    table = Table(("name", "rhat", "flag"), (("a", 1.00412, True), ("b", None, False)))
    named = from_table("words", table, headings={"rhat": "R-hat"}, decimals={"rhat": 3})
    assert named.columns == ("name", "R-hat", "flag")
    assert named.rows[0] == (Cell("a", "a"), Cell("1.004", 1.00412), Cell("1", 1.0))
    assert named.rows[1][1] == Cell("–", "")
