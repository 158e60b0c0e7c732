"""Screen of a lab for any terminal size: problems first, then planes, rails, links and the last events. Pure.

Rows that do not fit are counted. Links with problems of their own come first, then the busiest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from rich.text import Text

from hpn.results.text.values import rate
from hpn.results.watch.event_lines import EventLines
from hpn.results.watch.lately import Lately
from hpn.results.watch.plane_totals import PlaneTotals, RailTotals, planes, rails
from hpn.results.watch.problems import Problem, problems, summary
from hpn.results.watch.snapshot import Snapshot
from hpn.testbed.fabric.model import Link, LinkKind

_WIDE = 140  # width from which switches' links are shown next to NICs' links
_GAP = 2
_LEAST_LATELY = 8  # marks
_BAD, _HEAD, _GOOD = "bold red", "bold", "green"

T = TypeVar("T")
Row = tuple[str, ...]


def picture(
    moment: Snapshot, since: Mapping[tuple[str, str], int], news: EventLines, lately: Lately, width: int, height: int
) -> list[Text]:
    """Return at most ``height`` lines of at most ``width`` columns.

    ``since``: time at which each problem was first seen, by key. ``lately``: has taken this moment and those before.
    """
    found = problems(moment)
    top = [_title(moment), *_wrong(moment, found, since, max(3, height // 5)), Text(), *_planes(moment)]
    if len(rows := rails(moment)) > 1:
        top += [Text(), *_rails(rows, max(2, height // 6))]
    left = height - len(top) - 2  # a blank line ahead of the links, one ahead of the events
    heard = news.last(max(2, left // 3)) if left > 4 else []
    links = _links(moment, lately, width, left - len(heard) - (1 if heard else -1))
    lines = [*top, *([Text(), *links] if links else [])]
    if heard:
        lines += [Text(), Text("events, those at once in one line", _HEAD), *(Text(line) for line in heard)]
    for line in lines[:height]:
        line.truncate(width, overflow="ellipsis")
    return lines[:height]


def block(moment: Snapshot, since: Mapping[tuple[str, str], int]) -> list[str]:
    """Return the lab in a few lines for a log, without links and events."""
    found = problems(moment)
    lines = [_title(moment), *_wrong(moment, found, since, len(found) + 1), *_planes(moment)]
    return [line.plain.rstrip() for line in lines]


def _title(moment: Snapshot) -> Text:
    fabric = moment.fabric
    counts = f"{len(fabric.hosts)} hosts, {len(fabric.switches)} switches, {len(fabric.links)} links"
    made = f"{fabric.spec.architecture}, {counts}, {moment.datapath} LAG, {fabric.spec.bgp.daemon}"
    locates = "" if moment.condition.suspects is None else ", hpn locate runs"
    return Text.assemble((moment.lab, _HEAD), f"  {made}, up {duration(moment.up_s)}{locates}")


def duration(seconds: float) -> str:
    """Return a duration: '12 s', '3 min 12 s', '5 h 2 min'."""
    whole = int(max(0.0, seconds))
    minutes, hours = whole // 60, whole // 3600
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


def _wrong(moment: Snapshot, found: Sequence[Problem], since: Mapping[tuple[str, str], int], room: int) -> list[Text]:
    """Return the headline and the worst problems in at most ``room`` lines; the last line counts the others."""
    if not found:
        return [Text("all is well", _GOOD)]
    headline = Text(f"{len(found)} thing{'s are' if len(found) > 1 else ' is'} wrong", _BAD)
    fits = len(found) < room
    shown = found if fits else found[: room - 2]
    lines = [_trouble(moment, trouble, since) for trouble in shown]
    return [headline, *lines, *([] if fits else [Text(f"! and {summary(found[len(shown) :])}", "red")])]


def _trouble(moment: Snapshot, trouble: Problem, since: Mapping[tuple[str, str], int]) -> Text:
    seconds = (moment.condition.at_ns - since.get(trouble.key, moment.condition.at_ns)) / 1e9
    return Text.assemble((f"! {duration(seconds):>8}  ", _BAD), (trouble.part, "red"), f" {trouble.text}")


def _planes(moment: Snapshot) -> list[Text]:
    head = ("plane", ">switches", ">links", ">LACP", ">BGP", ">to hosts", ">from hosts", ">load", ">drops/s")
    found = planes(moment)
    return _columns(head, [_plane(one) for one in found], [_plane_is_well(one) for one in found])


def _plane(one: PlaneTotals) -> Row:
    return (
        *(str(one.plane), str(one.switches), str(one.links), str(one.lacp), str(one.bgp)),
        *(_bps(one.to_hosts_bps), _bps(one.from_hosts_bps), f"{one.load:.0%}", _count(one.drops_per_s)),
    )


def _plane_is_well(one: PlaneTotals) -> bool:
    return all(part.well == part.all for part in (one.switches, one.links, one.lacp, one.bgp))


def _rails(found: Sequence[RailTotals], room: int) -> list[Text]:
    head = ["rail", ">whole", ">cut off"]
    for plane in range(len(found[0].lacp)):
        head += [f">LACP {plane}", f">to {plane}", f">from {plane}"]
    found = sorted(found, key=lambda one: (one.nics.well == one.nics.all, one.rail))  # incomplete rails first
    shown = found if len(found) <= room else found[: room - 1]
    wells = [one.nics.well == one.nics.all for one in shown]
    lines = _columns(head, [_rail(one) for one in shown], wells)
    return lines if len(shown) == len(found) else [*lines, _more(found[len(shown) :], _rail_is_well, "rails")]


def _rail_is_well(one: RailTotals) -> bool:
    return one.nics.well == one.nics.all


def _rail(one: RailTotals) -> Row:
    by_plane = zip(one.lacp, one.to_hosts_bps, one.from_hosts_bps, strict=True)
    cells = (cell for lacp, to, off in by_plane for cell in (str(lacp), _bps(to), _bps(off)))
    return (str(one.rail), str(one.nics), str(one.cut_off or "-"), *cells)


def _links(moment: Snapshot, lately: Lately, width: int, room: int) -> list[Text]:
    access = [link for link in moment.fabric.links if link.kind is LinkKind.ACCESS]
    above = [link for link in moment.fabric.links if link.kind is not LinkKind.ACCESS]
    if room < 3:
        return []
    of_kind = partial(_of_kind, moment, lately)
    if width >= _WIDE:
        half = (width - _GAP) // 2
        left, right = of_kind(access, "NIC port", half, room), of_kind(above, "between switches", half, room)
        return _beside(left, right, half)
    if room < 7 or not above:
        return of_kind(moment.fabric.links, "link", width, room)
    lower = max(3, min(room // 3, len(above) + 1))
    return [*of_kind(access, "NIC port", width, room - lower), *of_kind(above, "between switches", width, lower)]


def _of_kind(moment: Snapshot, lately: Lately, links: Sequence[Link], title: str, width: int, room: int) -> list[Text]:
    """Return a heading and at most ``room - 1`` lines of links; the last one counts those left out."""
    ordered = _ordered(moment, links, room - 1)
    shown = ordered if len(ordered) < room else ordered[: max(1, room - 2)]
    kinds = {link.kind for link in links}
    directions = (">to ToR", ">to NIC") if kinds == {LinkKind.ACCESS} else (">up", ">down")
    head = (title, *directions, ">load", ">drops/s", "state")
    lines = _columns(head, [_link(moment, link) for link in shown], [moment.is_well(link) for link in shown])
    used = max(map(len, lines)) + _GAP
    if width - used >= _LEAST_LATELY:
        marks = ["lately", *(lately.of(link)[used - width :] for link in shown)]
        lines = [_padded(line, used).append(mark) for line, mark in zip(lines, marks, strict=True)]
    rest = ordered[len(shown) :]
    return [*lines, *([_more(rest, moment.is_well, "links")] if rest else [])]


def _ordered(moment: Snapshot, links: Sequence[Link], room: int) -> list[Link]:
    """Return links in order: those with problems of their own, then the busiest, then those of failed switches.

    Links with problems fill at most half of ``room``.
    """
    dead = {*moment.condition.dead, *moment.condition.broken}
    told = [link for link in links if link.lower.node in dead or link.upper.node in dead]
    wrong = [link for link in links if not moment.is_well(link) and link not in told]
    first = wrong[: max(1, room // 2)]
    rest = [link for link in links if link not in first and link not in told]
    return [*first, *sorted(rest, key=lambda link: -round(moment.load(link), 2)), *told]


def _link(moment: Snapshot, link: Link) -> Row:
    up, down = moment.rate(link.lower), moment.rate(link.upper)
    drops = _count(up.drops_per_s + down.drops_per_s)
    return link.name, _bps(up.sent_bps), _bps(down.sent_bps), f"{moment.load(link):.0%}", drops, moment.state(link)


def _padded(line: Text, width: int) -> Text:
    line.pad_right(width - len(line))
    return line


def _more(rest: Sequence[T], is_well: Callable[[T], bool], what: str) -> Text:
    ill = sum(not is_well(one) for one in rest)
    return Text(f"and {len(rest)} more {what}, " + (f"{ill} of them not well" if ill else "all well"), "dim")


def _bps(value: float) -> str:
    """Return a rate in bit/s with three digits; whole numbers below a thousand."""
    return rate(float(f"{value:.3g}")) if value >= 1000 else f"{value:.0f}"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 or value == 0 else "<1"


def _beside(left: Sequence[Text], right: Sequence[Text], half: int) -> list[Text]:
    """Return two blocks side by side, the left one truncated to ``half`` columns."""
    lines = []
    for number in range(max(len(left), len(right))):
        line = left[number].copy() if number < len(left) else Text()
        line.truncate(half, overflow="ellipsis", pad=True)
        if number < len(right):
            line.append(" " * _GAP)
            line.append_text(right[number])
        lines.append(line)
    return lines


def _columns(head: Sequence[str], rows: Sequence[Row], wells: Iterable[bool]) -> list[Text]:
    """Return the lines of a table; a heading that starts with '>' right-aligns its column."""
    titles = [title.lstrip(">") for title in head]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    right = [title.startswith(">") for title in head]

    def line(row: Sequence[str]) -> str:
        cells = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True))
        return (" " * _GAP).join(cells).rstrip()

    styled = (Text(line(row), "" if well else "red") for row, well in zip(rows, wells, strict=True))
    return [Text(line(titles), _HEAD), *styled]
