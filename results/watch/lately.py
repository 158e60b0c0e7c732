"""Load of each link lately, a mark a reading: a heat map beside the links of ``hpn watch``. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from hpn.results.watch.snapshot import Snapshot
from hpn.testbed.fabric.model import Link

READINGS = 60
DROPPED, ILL, EMPTY = "x", "!", "."
_LEVELS = "▁▂▃▄▅▆▇█"
_IDLE = 0.005  # share of a link's rate below which it is empty


@dataclass(slots=True)
class Lately:
    """Marks of the last readings by link, the newest last."""

    _marks: dict[str, deque[str]] = field(default_factory=dict)
    _rates: Mapping[int, object] | None = None

    def look(self, moment: Snapshot) -> None:
        """Take a moment; one with the rates of the last is no reading."""
        if moment.rates is self._rates:
            return
        self._rates = moment.rates
        for link in moment.fabric.links:
            self._marks.setdefault(link.name, deque(maxlen=READINGS)).append(_mark(moment, link))

    def of(self, link: Link) -> str:
        """Return the marks of a link, the newest last."""
        return "".join(self._marks.get(link.name, ()))


def _mark(moment: Snapshot, link: Link) -> str:
    """Return packets dropped, a link that is not well, nothing sent, or one of eight levels of its load."""
    if moment.rate(link.lower).drops_per_s + moment.rate(link.upper).drops_per_s > 0:
        return DROPPED
    if not moment.is_well(link):
        return ILL
    load = moment.load(link)
    return EMPTY if load < _IDLE else _LEVELS[min(int(load * len(_LEVELS)), len(_LEVELS) - 1)]
