"""Problems of a lab, causes only: failures that follow from a failed switch or link are just counted. Pure.

Changes when something more can go wrong, or causes have other consequences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hpn.results.watch.snapshot import Snapshot
from hpn.testbed.fabric.model import Link, LinkKind, Nic

CUT_OFF, SWITCH, HELD, CARRIER, LACP, BGP, BFD, SUSPECT, ROUTES = (
    *("NIC cut off", "switch dead", "ToR held", "link without carrier"),
    *("LACP port idle", "BGP session down", "BFD session down", "part suspected", "routes missing"),
)
"""Kinds, the worst first."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One cause: its kind, the affected part of the fabric, and a description."""

    kind: str
    part: str
    text: str

    @property
    def key(self) -> tuple[str, str]:
        """Key that identifies the same cause at another moment."""
        return self.kind, self.part

    def __str__(self) -> str:
        return f"{self.part} {self.text}"


def problems(moment: Snapshot) -> list[Problem]:
    """Return all problems, the worst first."""
    dead = _dead(moment)
    cut = [nic for nic in moment.fabric.nics if moment.condition.active.get(nic.name) == 0]
    told = {link.name for name in dead for link in moment.fabric.links_of(name)}
    told |= {
        link.name for name in moment.condition.held for link in moment.fabric.links_of(name) if moment.is_dark(link)
    }
    told |= {link.name for nic in cut for link in nic.links}
    rest = [link for link in moment.fabric.links if link.name not in told]
    return [
        *(_cut_off(moment, nic) for nic in cut),
        *(_switch(moment, name) for name in dead),
        *(Problem(HELD, name, f"takes no part: {said}") for name, said in moment.condition.held.items()),
        *(_link(moment, link) for link in rest if moment.is_dark(link)),
        *(_protocol(moment, link) for link in rest if not moment.is_dark(link) and not moment.is_well(link)),
        *_suspects(moment),
        *_routes(moment),
    ]


def summary(found: Iterable[Problem]) -> str:
    """Return the number of problems by kind: '20 x link without carrier, 3 x BGP session down'."""
    return ", ".join(f"{times} x {kind}" for kind, times in Counter(trouble.kind for trouble in found).items())


def _dead(moment: Snapshot) -> list[str]:
    broken = set(moment.condition.broken)
    return [n.name for n in moment.fabric.switches if n.name in broken or n.name in moment.condition.dead]


def _by_hand(moment: Snapshot, part: str) -> str:
    return " (by hand)" if part in moment.condition.broken else ""


def _cut_off(moment: Snapshot, nic: Nic) -> Problem:
    reasons = dict.fromkeys(f"{moment.state(link)}{_by_hand(moment, link.name)}" for link in nic.links)
    dead = [link.upper.node for link in nic.links if link.upper.node in moment.condition.dead]
    why = f"dead {', '.join(dead)}" if len(dead) == len(nic.links) else ", ".join(reasons)
    return Problem(CUT_OFF, nic.name, f"is cut off, no port of its LAG is active: {why}")


def _switch(moment: Snapshot, name: str) -> Problem:
    links = moment.fabric.links_of(name)
    kinds = Counter(_lost(moment, link) for link in links if not moment.is_well(link))
    lost = ", ".join(f"{times} {what}{'s' * (times > 1)}" for what, times in kinds.items())
    how = "crashed (by hand)" if name in moment.condition.broken else "has lost its BGP daemon"
    return Problem(SWITCH, name, f"{how}, with it {lost}" if lost else how)


def _lost(moment: Snapshot, link: Link) -> str:
    if link.kind is LinkKind.ACCESS:
        return "LAG port"
    return "switch link" if moment.is_dark(link) else "BGP session"


def _link(moment: Snapshot, link: Link) -> Problem:
    with_it = ""
    if link.kind is LinkKind.ACCESS:
        nic = moment.fabric.nic_of_link(link.name)
        left = moment.condition.active.get(nic.name, len(nic.links))
        with_it = f", its LAG uses {left} of {len(nic.links)} ports"
    return Problem(CARRIER, link.name, f"has no carrier{_by_hand(moment, link.name)}{with_it}")


def _protocol(moment: Snapshot, link: Link) -> Problem:
    kind = LACP if link.kind is LinkKind.ACCESS else BFD if moment.state(link).endswith("BFD down") else BGP
    return Problem(kind, link.name, f"{'LACP' if kind is LACP else 'BGP'} {moment.state(link)}")


def _suspects(moment: Snapshot) -> Iterator[Problem]:
    for part, said in (moment.condition.suspects or {}).items():
        yield Problem(SUSPECT, part, f"{said}, says hpn locate")


def _routes(moment: Snapshot) -> Iterator[Problem]:
    """Yield one line for all missing routes: they follow from other problems, or appear in a moment."""
    dead = set(_dead(moment))
    missing = {name: text for name, text in moment.condition.routes.items() if name not in dead}
    if missing:
        where = f"{len(missing)} switches, such as " if len(missing) > 1 else ""
        yield Problem(ROUTES, "routes", f"to NICs are missing on {where}{next(iter(missing.values()))}")
