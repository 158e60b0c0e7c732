"""A ToR's daemons when they are frozen, killed, taken out and back in odd orders, without a kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from hpn.testbed.events import Event
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import LinkKind
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink.rtnl import NUD_REACHABLE
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent, NeighbourEvent, RouteEvent
from hpn.testbed.lab import tor as module
from hpn.testbed.lab.tor import Tor
from hpn.testbed.lag.config import PortConfig
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.speaker import ActiveSink, SystemAt
from hpn.testbed.lag.speakers import LocalLacp, Speaking
from tests.lab.running import tiny

FABRIC = build(tiny(path_control={"enabled": False}))
NODE = FABRIC.node("p0.s0.t0.0")
LINKS = [link for link in FABRIC.links_of(NODE.name) if link.kind is LinkKind.ACCESS]
HOSTS = [FABRIC.nic_of_link(link.name).ip for link in LINKS]


class FakeNetlink:
    """A kernel where every access port is up and every host known."""

    def __init__(self, _space: NetNs) -> None:
        pass

    def run(self, requests: Sequence[bytes]) -> None:
        pass

    def links(self) -> list[LinkEvent]:
        return [LinkEvent(0, link.upper.ifindex, link.upper.name, True, True, False) for link in LINKS]

    def neighbours(self) -> list[NeighbourEvent]:
        ends = zip(LINKS, HOSTS, strict=True)
        return [NeighbourEvent(0, link.upper.ifindex, ip, link.lower.mac, NUD_REACHABLE, False) for link, ip in ends]

    def routes(self) -> list[RouteEvent]:
        return []


class FakeSpeakers(LocalLacp):
    """Make fake ones."""

    def make(self, system: SystemAt) -> Speaking:
        return FakeSpeaker(system.ports, system.on_active or (lambda _ports: None))


class FakeSpeaker:
    """Its partner is in Synchronization as long as ``partner``."""

    partner = True

    def __init__(self, ports: Sequence[PortConfig], on_active: ActiveSink) -> None:
        self.speaks = False
        self.active_ports: tuple[str, ...] = ()
        self._name = ports[0].name
        self._on_active = on_active

    def start(self) -> None:
        self.thaw()
        self.refuse(False)

    def stop(self) -> None:
        self.speaks, self.active_ports = False, ()

    def freeze(self) -> None:
        self.speaks = False

    def thaw(self) -> None:
        self.speaks = True

    def refuse(self, refusing: bool) -> None:
        active = (self._name,) if self.partner and self.speaks and not refusing else ()
        if active != self.active_ports:
            self.active_ports = active
            self._on_active(active)

    def carrier(self, port: str, up: bool) -> None:
        pass

    def status(self) -> tuple[PortStatus, ...]:
        return ()


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    monkeypatch.setattr(module, "Netlink", FakeNetlink)
    return []


def started(events: list[Event]) -> Tor:
    made = Tor(FABRIC, NODE, NetNs(NODE.name, -1), events.append, FakeSpeakers())
    made.start()
    assert [event.subject for event in events if event.what == "learned"] == HOSTS
    return made


async def test_who_was_killed_while_it_hung_does_not_speak_when_the_hang_is_over(events: list[Event]) -> None:
    made = started(events)
    made.freeze()
    made.crash()
    made.thaw({link.upper.name for link in LINKS})
    assert not any(speaker.speaks for speaker in made.speakers.values())  # type: ignore[attr-defined]
    assert not made.running


async def test_a_host_that_left_for_good_while_its_tor_was_out_has_no_route_afterwards(
    events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = started(events)
    made.leave()
    assert not [event for event in events if event.what == "lost"], "it forwards as long as it can"
    monkeypatch.setattr(FakeSpeaker, "partner", False)
    made.rejoin()
    await asyncio.sleep(0)  # what one turn of the loop brings goes to the kernel together
    assert [event.subject for event in events if event.what == "lost"] == HOSTS


async def test_routes_stay_when_the_partners_are_still_there_at_the_end_of_a_leave(events: list[Event]) -> None:
    made = started(events)
    made.leave()
    made.rejoin()
    assert not [event for event in events if event.what == "lost"]


async def test_a_dead_tor_that_was_to_leave_touches_no_route_when_it_rejoins(events: list[Event]) -> None:
    made = started(events)
    made.leave()
    made.crash()
    made.rejoin()
    assert not [event for event in events if event.what == "lost"]
