"""Text of ``hpn locate`` on a running lab: the probes, and each answer as it changes. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from hpn.failover.locating.parts import Suspects
from hpn.failover.locating.rounds import Round
from hpn.results.text.location import accusation, accused_documents, alike_line, share_of, unseen_line
from hpn.traffic.flows.probe_load import ProbeLoad


class LiveText:
    """Lines about one lab. ``first``: name of the part accused first in the last answer that accused anybody."""

    def __init__(self, lab: str) -> None:
        self._lab = lab
        self._start_ns: int | None = None
        self.first: str | None = None

    def probes(self, load: ProbeLoad, suspects: Suspects, start_ns: int) -> Iterator[str]:
        """Yield what is sent, and what nobody can see by it."""
        self._start_ns = start_ns
        yield (
            f"{load.streams} probes cross lab {self._lab}: {load.pps:,.0f} packets/s, {share_of(load.share)} of"
            f" {load.link}, less of others"
        )
        yield from unseen_line(suspects)
        yield from alike_line(suspects)

    def answer(self, found: Round) -> Iterator[str]:
        """Yield the answer, best first."""
        at = f"{self._seconds(found):8.1f} s  "
        if found.doubt:
            yield f"{at}inconclusive: {found.doubt}; losses of this time count for nobody"
            at = " " * len(at)
        elif not found.accused:
            yield f"{at}nobody is accused"
        for each in found.accused:
            self._note(found)
            yield f"{at}{each.suspect} {accusation(each)}, by the last {found.window_ns / 1e9:g} s"
            at = " " * len(at)

    def probes_document(self, load: ProbeLoad, suspects: Suspects, start_ns: int) -> dict[str, JsonValue]:
        """Return the probes as data."""
        self._start_ns = start_ns
        probes: dict[str, JsonValue] = {
            "lab": self._lab,
            "streams": load.streams,
            "packets_per_s": load.pps,
            "load": load.share,
            "busiest_link": load.link,
            "unseen": list(suspects.unseen),
        }
        return {"probes": probes}

    def answer_document(self, found: Round) -> dict[str, JsonValue]:
        """Return an answer as data; times are ns from the first probe."""
        self._note(found)
        at_ns = round(self._seconds(found) * 1e9)
        answer: dict[str, JsonValue] = {
            "at_ns": at_ns,
            "window_ns": found.window_ns,
            "accused": accused_documents(found.accused),
            "doubt": found.doubt,
        }
        return {"answer": answer}

    def _seconds(self, found: Round) -> float:
        return (found.at_ns - (self._start_ns or found.at_ns)) / 1e9

    def _note(self, found: Round) -> None:
        if found.accused:
            self.first = found.accused[0].suspect.parts[0].name
