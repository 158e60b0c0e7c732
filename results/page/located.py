"""Location on the page of a run: who was accused when, with the truth, and what was drained. Pure.

Changes when a page tells something else of locating.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpn.failover.analysis.location import Drained, Location, Stretch
from hpn.failover.analysis.phrases import in_ms, packets
from hpn.results.page.chart import Chart, Line, Moment, thinned
from hpn.results.page.sections import Table
from hpn.results.page.time_charts import GROUP, X_LABEL
from hpn.results.text.location import share_of

_MOST_ROWS = 20
_MOST_LINES = 5
_OTHERS = "others"
_ANSWERS = ("from", "to", "accused", ">loss", ">confidence", "truth")
_DRAINS = ("link", "fault in it", ">after", ">lost since", ">if it had stayed")


def located_chart(location: Location, begin_ns: int, end_ns: int, moments: Sequence[Moment]) -> Chart | None:
    """Return the confidence of each accusation over time; None if nobody was accused."""
    if not location.stretches:
        return None
    named = list(dict.fromkeys(map(_named, location.stretches)))
    if len(named) > _MOST_LINES:
        named = [*named[: _MOST_LINES - 1], _OTHERS]
    ends = [begin_ns, *(at for each in location.stretches for at in (each.begin_ns, each.end_ns)), end_ns]
    times = sorted({at for at in ends if begin_ns <= at <= end_ns})
    lines = [Line(name, [_confidence(location.stretches, name, named, at) for at in times]) for name in named]
    xs, drawn = thinned([(at - begin_ns) / 1e9 for at in times], lines)
    title = f"Located by {location.method}: who was accused first, and how surely"
    return Chart("located", title, X_LABEL, "confidence", xs, drawn, tuple(moments), steps=True, group=GROUP)


def located_tables(location: Location, begin_ns: int) -> Iterator[Table]:
    """Yield the tables of the accused and of the drained, as far as there were any."""
    rows = tuple(_answer(each, begin_ns) for each in location.stretches[:_MOST_ROWS])
    more = len(location.stretches) - len(rows)
    if rows:
        rest = f"; {more} more are left out" if more > 0 else ""
        yield Table(f"Who was accused, in seconds since the traffic began{rest}", _ANSWERS, rows)
    if location.drains:
        yield Table(
            "Links taken out of use because they were located", _DRAINS, tuple(_drain(each) for each in location.drains)
        )


def _answer(each: Stretch, begin_ns: int) -> tuple[str, ...]:
    begin, end = (f"{(at - begin_ns) / 1e9:.1f} s" for at in (each.begin_ns, each.end_ns))
    return begin, end, each.suspect, share_of(each.loss), f"{each.confidence:.2f}", _truth(each)


def _drain(each: Drained) -> tuple[str, ...]:
    left = "-" if each.if_left is None else f"about {packets(each.if_left)}"
    return each.link, each.fault or "none: it was well", in_ms(each.after_ms), packets(each.lost), left


def _truth(each: Stretch) -> str:
    return f"right: {each.fault}" if each.fault else "wrong"


def _named(each: Stretch) -> str:
    return f"{each.suspect} ({_truth(each)})"


def _confidence(found: Sequence[Stretch], name: str, named: Sequence[str], at_ns: int) -> float | None:
    """Return the confidence of the accusation that a line shows at a time; None if another is accused, or nobody."""
    for each in found:
        mine = _named(each) if _named(each) in named else _OTHERS
        if mine == name and each.begin_ns <= at_ns <= each.end_ns:
            return each.confidence
    return None
