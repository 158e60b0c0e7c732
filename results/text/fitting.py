"""A table that never splits a word: where it is wider than the terminal it becomes several, one below the other.

Changes when the way tables meet a narrow terminal does. Numbers, addresses, MACs and names have no spaces, so they stay
whole; sentences wrap between words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

_GAP = 2  # blanks between columns
_SENTENCE = 24  # columns of text narrower than this are hard to read


class FittingTable(Table):
    """A ``rich`` table of one-line ``Text`` cells. ``keys``: so many columns say what a row is of."""

    keys = 1

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Print the table where it fits; else parts of it that do, each with the keys in front."""
        room = options.max_width
        natural = [self._width(index, whole=True) for index in range(len(self.columns))]
        if sum(natural) + _GAP * (len(natural) - 1) <= room:
            yield from super().__rich_console__(console, options)
            return
        least = [min(self._least(index), room) for index in range(len(self.columns))]
        for number, part in enumerate(_parts(least, room, self.keys)):
            if number:
                yield Text()
            yield from self._part(part, least, natural, room, first=number == 0).plain(console, options)

    def plain(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table as ``rich`` shows it."""
        yield from super().__rich_console__(console, options)

    def _width(self, index: int, *, whole: bool) -> int:
        """The width of the widest cell, or of the widest word."""
        column = self.columns[index]
        texts = [str(column.header), *(str(cell) for cell in column.cells)]
        pieces = texts if whole else [word for text in texts for word in text.split(" ")]
        return max((Text(piece).cell_len for piece in pieces), default=0)

    def _least(self, index: int) -> int:
        """The least width of a column: its widest word, and some room where it holds sentences."""
        return max(self._width(index, whole=False), min(self._width(index, whole=True), _SENTENCE))

    def _part(
        self, part: Sequence[int], least: Sequence[int], natural: Sequence[int], room: int, *, first: bool
    ) -> FittingTable:
        widths = _shared([least[index] for index in part], [natural[index] for index in part], room)
        made = FittingTable(
            title=self.title if first else None, title_justify="left", box=None, pad_edge=False, padding=(0, _GAP, 0, 0)
        )
        for index, width in zip(part, widths, strict=True):
            column = self.columns[index]
            made.add_column(column.header, justify=column.justify, overflow="fold", width=width)
        for cells in zip(*(list(self.columns[index].cells) for index in part), strict=True):
            made.add_row(*cells)
        return made


def _parts(least: Sequence[int], room: int, most_keys: int) -> Iterator[list[int]]:
    """Columns that fit beside each other, in order, the first ones in front of each: as many as leave room for all."""
    keys = list(range(most_keys))
    while len(keys) > 1 and sum(least[key] + _GAP for key in keys) + max(least[len(keys) :], default=0) > room:
        keys.pop()
    part = list(keys)
    for index in range(len(keys), len(least)):
        wanted = sum(least[each] + _GAP for each in part) + least[index]
        if wanted > room and len(part) > len(keys):
            yield part
            part = list(keys)
        part.append(index)
    yield part


def _shared(least: Sequence[int], natural: Sequence[int], room: int) -> list[int]:
    """Widths between least and natural that fill the room."""
    widths = list(least)
    spare = room - sum(widths) - _GAP * (len(widths) - 1)
    for index in sorted(range(len(widths)), key=lambda each: natural[each] - least[each]):
        more = max(0, min(natural[index] - widths[index], spare))
        widths[index] += more
        spare -= more
    return widths


def shortened(text: str, most: int = 400) -> str:
    """The text on one line of so many characters, cut where it goes on too long."""
    one_line = " ".join(text[: 4 * most].split())
    return one_line if len(one_line) <= most else one_line[: max(0, most - 3)] + "..."
