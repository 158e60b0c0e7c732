"""Path control over real links: BGP takes a /32 away, the sender's queue pairs follow, and nothing else told them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hpn.testbed.events import EventKind, now_ns
from hpn.testbed.fabric.model import Nic
from hpn.testbed.routing.pathcontrol.actions import Move
from hpn.testbed.routing.pathcontrol.agent_io import AgentIo
from hpn.testbed.routing.pathcontrol.destinations import HostSettings
from hpn.testbed.routing.pathcontrol.host_agent import Connection, HostAgent
from tests.routing import fabrics
from tests.routing.minilab import MiniLab


def parity(sport: int, dst_ip: str, dport: int, active: Sequence[str]) -> str:
    return active[sport % len(active)]


class Sender:
    """A host's agent on its two ports, with one queue pair per plane."""

    def __init__(self, lab: MiniLab, nic: Nic, dst: Nic) -> None:
        self.ports = tuple(link.lower.name for link in nic.links)
        self.moves: list[Move] = []
        self.agent = HostAgent(nic.name, self.ports, HostSettings(refresh_ms=200), parity)
        self.io = AgentIo(nic.host, lab.spaces[nic.host], self.agent, self.ports, lab.events.append, self.moves.append)
        self.dst = dst

    def start(self) -> None:
        self.io.start()
        self.io.perform(self.agent.set_active(self.ports, now_ns()))
        pair = [Connection(plane, self.dst.ip, 4791, 0xC000 + plane) for plane in (0, 1)]
        self.io.perform(self.agent.add(pair, now_ns()))


async def both_planes_know(lab: MiniLab, target: Nic) -> None:
    """The target announces itself on both ports, until the first segment's ToRs have its /32."""
    for plane in (0, 1):
        lab.greet(target, plane)
    prefix = f"{target.ip}/32"
    await lab.until(lambda: all(len(lab.routes(f"p0.s0.t0.{plane}", prefix)) == 2 for plane in (0, 1)))


@pytest.mark.kernel
async def test_a_sender_leaves_the_plane_that_lost_its_destination_and_returns() -> None:
    lab = MiniLab(fabrics.hpn())
    await lab.start()
    source, target = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s1.h0.r0")
    await both_planes_know(lab, target)
    sender = Sender(lab, source, target)
    sender.start()
    lab.cut(target.links[0].lower)
    await lab.until(lambda: len(sender.moves) == 1)
    lab.mend(target.links[0].lower)
    await lab.until(lambda: len(sender.moves) == 2, again=lambda: lab.greet(target, 0))
    away, home = sender.moves
    assert (away.connection, away.old_sport, away.from_port, away.to_port) == (0, 0xC000, "r0p0", "r0p1")
    assert (home.connection, home.sport, home.to_port) == (0, 0xC000, "r0p0")
    story = [(e.subject, e.what) for e in lab.events if e.kind is EventKind.PATH and e.what != "reachable"]
    assert story == [(target.ip, "unreachable"), ("0", "moved"), ("0", "moved")]


@pytest.mark.kernel
async def test_a_sender_that_missed_the_notice_learns_at_its_next_refresh() -> None:
    lab = MiniLab(fabrics.hpn())
    await lab.start()
    source, target = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s1.h0.r0")
    await both_planes_know(lab, target)
    tor = source.links[0].upper.node
    sender = Sender(lab, source, target)
    sender.start()
    agent, io = lab.agents[tor]
    await lab.until(lambda: agent.told(source.links[0].upper.name, target.ip) is True)
    io.stop()  # what it sends now is lost
    lab.cut(target.links[0].lower)
    await lab.until(lambda: not lab.routes(tor, f"{target.ip}/32"))
    await lab.until(lambda: agent.told(source.links[0].upper.name, target.ip) is False)
    io.start()
    await lab.until(lambda: any(move.connection == 0 for move in sender.moves))


@pytest.mark.kernel
async def test_an_agg_that_goes_away_moves_nobody() -> None:
    lab = MiniLab(fabrics.hpn())
    await lab.start()
    source, target = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s1.h0.r0")
    await both_planes_know(lab, target)
    sender = Sender(lab, source, target)
    sender.start()
    lab.cut(lab.fabric.link("p0.s0.t0.0-p0.a0.0").upper)
    await lab.until(lambda: lab.routes("p0.s0.t0.0", f"{target.ip}/32") == {"up1"})
    lab.bgp["p0.a0.1"].kill()  # and now the plane is gone
    await lab.until(lambda: len(sender.moves) == 1)
    story = [e.what for e in lab.events if e.kind is EventKind.PATH and e.what != "reachable"]
    assert story == ["unreachable", "moved"]
