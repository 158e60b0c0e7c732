"""Table as CSV (RFC 4180, UTF-8, lines end in LF), safe from interpretation as spreadsheet formulas. Pure.

Changes when another program reads a cell as a command. Names in run folders are untrusted: CWE-1236.
"""

from __future__ import annotations

import csv
import io

from hpn.results.tables.collect import Rows
from hpn.results.tables.table import Cell, Table
from hpn.results.text.printable import printable

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # full width too: some spreadsheets accept them
_AS_TEXT = "'"


def csv_of(table: Table, rows: Rows) -> str:
    """Return a line of column names, then one line per row; unknown cells are empty, flags are true or false."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(column.name for column in table.columns)
    writer.writerows([_shown(cell) for cell in row] for row in rows)
    return file.getvalue()


def _shown(cell: Cell) -> str | int | float:
    match cell:
        case None:
            return ""
        case bool():
            return "true" if cell else "false"
        case str():
            return _text(cell)
    return cell


def _text(cell: str) -> str:
    """Return the text without control characters, prefixed by an apostrophe if it begins like a formula."""
    shown = printable(cell)
    return _AS_TEXT + shown if shown.lstrip().startswith(_FORMULA) else shown
