"""Cabling of a running lab: each port is asked by LLDP who is at the other end, and held against the fabric.

Every port sends one LLDP frame and every port listens, as both ends of a real cable do every 30 s. So a link tells two
answers, and a frame that is lost one way leaves the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial

from hpn.testbed.fabric.model import Fabric, Link, Port
from hpn.testbed.kernel.packets.lldp import ETHERTYPE_LLDP, NEAREST_BRIDGE, Neighbour, decode, encode
from hpn.testbed.kernel.packets.packet import OnFrame, PacketSocket
from hpn.testbed.lab.lab import Lab

_TTL_S = 120  # 802.1AB-2016 9.2.5.22: four intervals of 30 s, plus one second in the standard's own default
_PATIENCE_S = 1.0
"""Longer than a frame waits in any queue of a lab."""


@dataclass(frozen=True, slots=True)
class FarEnd:
    """One port of a link: the port that the fabric has at its other end, and those that were heard there."""

    link: str
    here: str
    expected: str
    heard: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """True if the expected port was heard, and no other."""
        return self.heard == (self.expected,)

    @property
    def wrong(self) -> bool:
        """True if another port was heard: silence alone is no wrong cable."""
        return any(label != self.expected for label in self.heard)


async def far_ends(lab: Lab, nodes: Collection[str] = ()) -> tuple[FarEnd, ...]:
    """Ask every port and return the answers in the fabric's order; of the ports of ``nodes`` alone, if given."""
    heard = await _ask(lab)
    asked = (port for port in _ports(lab.fabric) if not nodes or port[1].node in nodes)
    return tuple(
        FarEnd(link.name, here.label, link.far_end(here.node).label, tuple(sorted(heard[here.label])))
        for link, here in asked
    )


async def _ask(lab: Lab) -> Mapping[str, set[str]]:
    """Return the labels of the ports that each port hears; wait for those with carrier alone."""
    ports = list(_ports(lab.fabric))
    heard: dict[str, set[str]] = {here.label: set() for _, here in ports}
    waiting = {here.label for _, here in ports if lab.watcher.carrier(here.node, here.ifindex)}
    all_heard = asyncio.Event()

    def on_frame(here: str, payload: bytes, _source: str) -> None:
        sender = decode(payload)
        if sender is not None:
            heard[here].add(sender.label)
            waiting.discard(here)
        if not waiting:
            all_heard.set()

    with ExitStack() as closing:
        opened = [(here, _open(lab, here, partial(on_frame, here.label), closing)) for _, here in ports]
        for here, port in opened:
            port.send(encode(Neighbour(here.node, here.name, _TTL_S)), NEAREST_BRIDGE)
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S if waiting else 0):
                await all_heard.wait()
    return heard


def _open(lab: Lab, here: Port, on_frame: OnFrame, closing: ExitStack) -> PacketSocket:
    space = lab.wiring.namespaces[here.node]
    opened = PacketSocket(space, here.name, ETHERTYPE_LLDP, group=NEAREST_BRIDGE, on_frame=on_frame)
    closing.callback(opened.close)
    return opened


def _ports(fabric: Fabric) -> Iterator[tuple[Link, Port]]:
    for link in fabric.links:
        yield link, link.lower
        yield link, link.upper
