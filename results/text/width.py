"""Tables that fit the terminal's width, and text shortened to a line.

Changes when a table looks different. ``results.text.table_parts`` decides the columns of each part and their widths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from hpn.results.text.table_parts import GAP, Column, Shown, parts


class FittingTable(Table):
    """A ``rich`` table of plain ``Text`` cells.

    ``keys``: number of columns that name the rows. ``empty``: the sentence shown instead of a table without rows.
    """

    keys = 1
    empty = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Print the table if it fits, else in parts that fit."""
        if not self.row_count:
            yield Text(self.empty)
            return
        if self.title:
            yield self.title
        columns = [
            Column(str(each.header), tuple(str(cell) for cell in each.cells), each.justify == "right")
            for each in self.columns
        ]
        for number, part in enumerate(parts(columns, self.keys, options.max_width)):
            if number:
                yield Text()
            yield from _lines(part, console)


def _lines(part: Sequence[Shown], console: Console) -> Iterator[Text]:
    """Yield head and rows of one part, without trailing blanks."""
    for line in _row(part, [each.column.head for each in part], console):
        yield Text(line, "bold", no_wrap=True)
    for cells in zip(*(each.column.cells for each in part), strict=True):
        for line in _row(part, cells, console):
            yield Text(line, no_wrap=True)


def _row(part: Sequence[Shown], cells: Sequence[str], console: Console) -> Iterator[str]:
    """Yield the lines of one row: as many as its longest cell has."""
    wrapped = [_wrapped(cell, each.width, console) for each, cell in zip(part, cells, strict=True)]
    for pieces in zip_longest(*wrapped, fillvalue=""):
        aligned = (_aligned(piece, each) for each, piece in zip(part, pieces, strict=True))
        yield (" " * GAP).join(aligned).rstrip()


def _wrapped(cell: str, width: int, console: Console) -> list[str]:
    """Return the cell wrapped between words; a word that is too long is folded."""
    return [str(line).rstrip() for line in Text(cell).wrap(console, width, overflow="fold")]


def _aligned(piece: str, shown: Shown) -> str:
    blanks = " " * (shown.width - Text(piece).cell_len)
    return blanks + piece if shown.column.right else piece + blanks


def shortened(text: str, most: int = 400) -> str:
    """Return the text on one line of at most ``most`` characters, truncated with '...'."""
    one_line = " ".join(text[: 4 * most].split())
    return one_line if len(one_line) <= most else one_line[: max(0, most - 3)] + "..."
