"""Speakers on real veths: a host and its two ToRs in one loop, with the nftables datapath behind the host.

Once with their machines in that loop, once with them in a process of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from hpn.testbed.events import Event
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets.packet import PacketSocket
from hpn.testbed.kernel.rtnetlink.netlink import Monitor
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent
from hpn.testbed.lag.config import LacpConfig, PortConfig
from hpn.testbed.lag.lacp_process.speakers import RemoteLacp
from hpn.testbed.lag.nft_datapath import NftDatapath
from hpn.testbed.lag.speaker import SystemAt
from hpn.testbed.lag.speakers import HERE, Speakers, Speaking
from hpn.testbed.lag.states import Selected
from tests.lag import rack
from tests.lag.rack import NIC_MAC, PORTS, Rack, udp_frame, wire

SHARED, OTHER = "00:00:5e:00:01:01", "00:00:5e:00:01:02"
WAIT_NS = 50_000_000

pytestmark = pytest.mark.kernel


@dataclass
class Lab:
    """A rack with everything running; ``active`` is the history of the host's active sets."""

    rack: Rack
    path: NftDatapath
    host: Speaking
    tors: tuple[Speaking, Speaking]
    lacp: Speakers
    active: list[tuple[str, ...]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, condition: Callable[[], bool], within_s: float = 10) -> None:
        async with asyncio.timeout(within_s):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


def start(systems: tuple[str, str], *, apart: bool) -> Lab:
    where = rack.build()
    lacp = RemoteLacp([where.host, *where.tors], lambda _event: None) if apart else HERE
    active: list[tuple[str, ...]] = []
    events: list[Event] = []
    changed = asyncio.Event()
    path = NftDatapath(Nft(where.host), "bond0", "bond0i", PORTS, 1)
    path.setup()

    def tell(event: Event) -> None:
        events.append(event)
        changed.set()

    def on_active(ports: tuple[str, ...]) -> None:
        path.set_active(ports)
        active.append(ports)
        changed.set()

    ports = [PortConfig(name, index + 1) for index, name in enumerate(PORTS)]
    config = LacpConfig(NIC_MAC, key=1, aggregate_wait_ns=WAIT_NS)
    host = lacp.make(SystemAt("host", where.host, config, ports, tell, on_active))
    tors = tuple(
        lacp.make(
            SystemAt(
                space.name,
                space,
                LacpConfig(system, key=7, aggregate_wait_ns=WAIT_NS),
                [PortConfig("down0", offset + 1)],
                tell,
            )
        )
        for space, system, offset in zip(where.tors, systems, (300, 600), strict=True)
    )
    for speaker, space in zip((host, *tors), (where.host, *where.tors), strict=True):
        speaker.start()
        follow_links(where, space, speaker)
    return Lab(where, path, host, (tors[0], tors[1]), lacp, active, events, changed)


def follow_links(where: Rack, space: NetNs, speaker: Speaking) -> None:
    """What the lab does: a link monitor that tells the speaker about carriers."""
    monitor = Monitor(space, link=True)
    members = {status.name for status in speaker.status()}

    def read() -> None:
        for event in monitor.read():
            if isinstance(event, LinkEvent) and event.name in members:
                speaker.carrier(event.name, event.carrier)

    asyncio.get_running_loop().add_reader(monitor.fileno(), read)
    for link in where.links[space].links():
        if link.name in members:
            speaker.carrier(link.name, link.carrier)


@pytest.mark.parametrize("apart", [False, True])
async def test_both_ports_join_and_after_a_carrier_loss_udp_takes_the_other_port(*, apart: bool) -> None:
    lab = start((SHARED, SHARED), apart=apart)
    await lab.until(lambda: lab.host.active_ports == PORTS and all(tor.active_ports for tor in lab.tors))
    assert [status.partner.port for status in lab.host.status()] == [301, 601]
    sport = next(
        p for p in range(49152, 65536) if lab.path.port_for("10.0.0.1", "10.0.1.1", p, 4791, 17, PORTS) == "eth0"
    )
    frame = udp_frame("10.0.0.1", "10.0.1.1", sport, 4791, b"elephant")
    far = [wire(tor, "down0", 0x0800) for tor in lab.rack.tors]
    lag = wire(lab.rack.host, "bond0")
    lag.send(frame)
    assert await asyncio.get_running_loop().sock_recv(far[0], 9000) == frame

    lab.rack.set_link(lab.rack.tors[0], "down0", False)
    await lab.until(lambda: lab.host.active_ports == ("eth1",))
    assert lab.active[-1] == ("eth1",)
    assert lab.tors[0].active_ports == ()
    lag.send(frame)
    assert await asyncio.get_running_loop().sock_recv(far[1], 9000) == frame

    lab.rack.set_link(lab.rack.tors[0], "down0", True)
    await lab.until(lambda: lab.host.active_ports == PORTS)
    assert lab.active[-3:] == [PORTS, ("eth1",), PORTS]
    lab.lacp.close()


@pytest.mark.parametrize("apart", [False, True])
async def test_a_tor_with_a_system_id_of_its_own_is_refused(*, apart: bool) -> None:
    lab = start((SHARED, OTHER), apart=apart)
    await lab.until(lambda: bool(lab.active) and any(s.selected is Selected.STANDBY for s in lab.host.status()))
    (taken,) = lab.host.active_ports
    refused = 1 - PORTS.index(taken)
    await lab.until(lambda: bool(lab.tors[1 - refused].active_ports))
    # Past the aggregate wait of both ends, the refused ToR must still hold the port back.
    waited = asyncio.get_running_loop().time() + 5 * WAIT_NS / 1e9
    asyncio.get_running_loop().call_at(waited, lab.changed.set)
    await lab.until(lambda: asyncio.get_running_loop().time() >= waited)
    assert lab.host.active_ports == (taken,)
    assert lab.tors[refused].active_ports == ()
    assert {len(ports) for ports in lab.active} == {1}
    lab.lacp.close()


@pytest.mark.parametrize("apart", [False, True])
async def test_noise_on_the_wire_changes_nothing(*, apart: bool) -> None:
    lab = start((SHARED, SHARED), apart=apart)
    await lab.until(lambda: lab.host.active_ports == PORTS)
    noise = PacketSocket(lab.rack.tors[0], "down0", 0x8809)
    for payload in (b"", b"\x01", b"\x01\x01\x01\x13" + bytes(200), bytes(110), b"\xff" * 1500):
        assert noise.send(payload, "01:80:c2:00:00:02")
    lab.tors[1].stop()
    lab.tors[1].start()
    lab.tors[1].carrier("down0", True)
    await lab.until(lambda: lab.active[-1] == ("eth0",))
    await lab.until(lambda: lab.active[-1] == PORTS)
    lab.lacp.close()
