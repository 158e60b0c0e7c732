"""Text of ``hpn locate``: what was seen, who was accused from when to when, and when the answer was right. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from pydantic import JsonValue

from hpn.failover.analysis.phrases import plain
from hpn.failover.locating.answer import Located
from hpn.failover.locating.parts import PartKind, Suspects
from hpn.failover.locating.rounds import Round
from hpn.failover.locating.seen import Accused
from hpn.failover.locating.sources import SOURCES

_MOST_NAMES = 3


def columns(source: str) -> tuple[str, ...]:
    """Return the heads of the columns of ``rows``."""
    return "from", "to", "suspect", f">{SOURCES[source].bad}", ">confidence", "also accused"


def lines(found: Located, load: float) -> Iterator[str]:
    """Yield what the answer rests on, and how it compares with the drill's faults."""
    suspects = found.seen.suspects
    for doubt in found.doubts:
        yield f"inconclusive: {doubt}"
    cost = f", at most {share_of(load)} of a NIC's port" if load else ""
    counted = SOURCES[found.source].counted
    yield (
        f"{len(suspects.paths)} paths, {_made(found):,} {counted}{cost}; source {found.source}, method {found.method}"
    )
    yield from unseen_line(suspects)
    yield from alike_line(suspects)
    for fault, score in found.scores:
        name = f"{fault.fault} ({fault.what})"
        if score.first_ns is None:
            told = f"{score.wrong} wrong answers" if score.wrong else "nobody was accused"
            told = told if score.lost else "nothing bad was seen on a path that is known"
            yield f"{name}: not located; {told}"
            continue
        stable = "not stable before the repair" if score.stable_ns is None else f"stable after {_ms(score.stable_ns)}"
        yield f"{name}: located after {_ms(score.first_ns)}, {stable}; {score.wrong} of {score.rounds} answers wrong"
    if found.false_alarms:
        yield f"{found.false_alarms} answers name a part that never failed while nothing was wrong"


def unseen_line(suspects: Suspects) -> Iterator[str]:
    """Yield a line about links that no path crosses, if there are any."""
    if suspects.unseen:
        more = len(suspects.unseen) - _MOST_NAMES
        named = ", ".join(suspects.unseen[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
        yield f"no path crosses {named}: a fault there cannot be seen"


def alike_line(suspects: Suspects) -> Iterator[str]:
    """Yield a line about directions of links on the same paths, if there are any."""
    alike = _alike(suspects)
    if alike:
        yield f"{alike} directions of links are on the same paths as another one: no method can tell these apart"


def accusation(accused: Accused) -> str:
    """Return what a suspect is accused of: 'loses 1 % of its packets (confidence 0.97)'."""
    return f"loses {share_of(accused.loss)} of its packets (confidence {accused.confidence:.2f})"


def accused_documents(accused: Iterable[Accused]) -> list[JsonValue]:
    """Return who is accused, as data."""
    return [
        {"parts": [str(part) for part in each.suspect.parts], "loss": each.loss, "confidence": each.confidence}
        for each in accused
    ]


def rows(found: Located) -> Iterator[tuple[str, ...]]:
    """Yield one row for each stretch of rounds that accuse the same suspect first."""
    for suspect, group in groupby(found.rounds, key=lambda each: each.accused[0].suspect if each.accused else None):
        if suspect is None:
            continue
        stretch = list(group)
        best = max((each.accused[0] for each in stretch), key=lambda each: each.confidence)
        others = dict.fromkeys(str(each.suspect) for told in stretch for each in told.accused[1:])
        begin, end = (_at(found, each) for each in (stretch[0], stretch[-1]))
        yield begin, end, str(suspect), share_of(best.loss), f"{best.confidence:.2f}", ", ".join(others)


def document(found: Located, load: float) -> dict[str, JsonValue]:
    """Return the answer as data; times are ns from the start of traffic."""
    start_ns = found.seen.bins.start_ns
    return {
        "source": found.source,
        "method": found.method,
        "doubts": list(found.doubts),
        "paths": len(found.seen.suspects.paths),
        "packets": _made(found),
        "load": load,
        "unseen": list(found.seen.suspects.unseen),
        "false_alarms": found.false_alarms,
        "faults": [
            {
                "fault": fault.fault,
                "at_ns": fault.at_ns - start_ns,
                "first_ns": score.first_ns,
                "stable_ns": score.stable_ns,
                "answers": score.rounds,
                "wrong": score.wrong,
            }
            for fault, score in found.scores
        ],
        "rounds": [
            {
                "at_ns": each.at_ns - start_ns,
                "window_ns": each.window_ns,
                "accused": accused_documents(each.accused),
            }
            for each in found.rounds
            if each.accused
        ],
    }


def _alike(suspects: Suspects) -> int:
    """Return how many directions of links share their suspect with another direction."""
    shared = (sum(part.kind is PartKind.DIRECTION for part in suspect.parts) for suspect in suspects.suspects)
    return sum(count for count in shared if count > 1)


def _made(found: Located) -> int:
    return int(found.seen.sent[:, -1].sum())


def _at(found: Located, each: Round) -> str:
    return f"{(each.at_ns - found.seen.bins.start_ns) / 1e9:.1f} s"


def _ms(span_ns: int) -> str:
    return f"{span_ns / 1e6:.0f} ms"


def share_of(share: float) -> str:
    """Return a share as per cent: '0.12 %'."""
    return f"{plain(100 * share, 3)} %"
